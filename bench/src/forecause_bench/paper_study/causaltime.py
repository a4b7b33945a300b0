"""What CausalTime measures: python -m forecause_bench.paper_study.causaltime --data FOLDER.

Controls beside the published methods on two of its three sets: correlation, least squares and
ridge, the size of variances, and the paper's MLP under weight decay. They know nothing of causes;
where they rank the graph better than methods that look for causes, the set does not tell.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from rich.console import Console
from scipy.stats import rankdata
from torch.nn import functional

from forecause_bench.document import Block, Heading, Lines, Paragraph, Table, Text, to_markdown
from forecause_bench.methods import find_method
from forecause_bench.paper import paper_rows
from forecause_bench.paper_study.answers import Summary
from forecause_bench.paper_study.store import STORE, write
from forecause_bench.paper_study.systems import commit
from forecause_bench.real.loaders import causaltime

Array = npt.NDArray[np.float64]
Series = Array  # (sample, step, variable)

FOLDER = "causaltime"
ITEMS = {"traffic": "Traffic", "medical": "Medical"}
MAX_LAG = 5
RIDGES = (0.01, 0.1, 1.0, 10.0)  # penalty per window, of standardised inputs
DECAYS = (0.0, 0.01, 0.1)
HIDDEN, STEPS, BATCH, RATE = 64, 2000, 256, 1e-3
READ = 500  # windows
SEEDS = 3
OURS = {
    "forecause": "Forecause, default",
    "low-complexity": "low-complexity transformer, our training",
    "low-complexity-mlp": "its MLP with sparse gradients, our training",
}


def correlation(values: Series) -> Array:
    """|correlation| of two variables within a row, whatever the time."""
    return np.abs(np.corrcoef(values.reshape(-1, values.shape[2]).T))


def least_squares(values: Series, lag: int, ridge: float = 0.0) -> Array:
    """The largest |coefficient| over lags of a VAR on standardised values, (target, source)."""
    found = _coefficients(values, lag, ridge)
    return np.asarray(np.abs(found.T.reshape(found.shape[1], lag, -1)).max(1))


def held_out_error(values: Series, lag: int, ridge: float = 0.0) -> float:
    """The error of such a VAR on the last fifth of the samples, fitted to the others."""
    early, late = _split(values)
    past, now = windows_of(late, lag)
    return float(np.square(now - past @ _coefficients(early, lag, ridge)).mean())


def _coefficients(values: Series, lag: int, ridge: float) -> Array:
    """(lag * source, target)."""
    past, now = windows_of(values, lag)
    gram = past.T @ past / len(past) + ridge * np.eye(past.shape[1])
    return np.asarray(np.linalg.solve(gram, past.T @ now / len(past)))


def _split(values: Series) -> tuple[Series, Series]:
    cut = len(values) * 4 // 5
    return values[:cut], values[cut:]


def mlp(values: Series, decay: float, seed: int) -> tuple[Array, float]:
    """Mean |gradient| of a two-layer network, added over lags, and its held-out error.

    Fitted on the first four fifths of the samples.
    """
    early, late = _split(values)
    past, now = _tensors(early)
    torch.manual_seed(seed)
    first = torch.nn.Linear(past.shape[1], HIDDEN)
    last = torch.nn.Linear(HIDDEN, now.shape[1])
    parameters = [*first.parameters(), *last.parameters()]
    optimiser = torch.optim.Adam(parameters, lr=RATE, weight_decay=decay)

    def forecast(inputs: torch.Tensor) -> torch.Tensor:
        return last(torch.relu(first(inputs)))

    for _ in range(STEPS):
        batch = torch.randint(len(past), (BATCH,))
        optimiser.zero_grad()
        functional.mse_loss(forecast(past[batch]), now[batch]).backward()
        optimiser.step()
    with torch.no_grad():
        later, next_rows = _tensors(late)
        error = float(functional.mse_loss(forecast(later), next_rows))
        chosen = torch.linspace(0, len(past) - 1, READ).long()
        on = (first(past[chosen]) > 0).float()  # (window, hidden)
        slopes = torch.einsum("th,wh,hi->wti", last.weight, on, first.weight)
        size = slopes.abs().mean(0).reshape(now.shape[1], MAX_LAG, -1).sum(1)
    return size.double().numpy(), error


def windows_of(values: Series, lag: int) -> tuple[Array, Array]:
    """Inputs (window, lag * variable), lag 1 first, and what followed (window, variable)."""
    steps, variables = values.shape[1:]
    past = [
        values[:, lag - back : steps - back].reshape(-1, variables) for back in range(1, lag + 1)
    ]
    return np.hstack(past), values[:, lag:].reshape(-1, variables)


def standardised(values: Series, axes: tuple[int, ...]) -> Series:
    """Mean 0 and standard deviation 1 over samples and steps, or over the steps of each sample."""
    sd = values.std(axes, keepdims=True)
    return np.asarray((values - values.mean(axes, keepdims=True)) / np.maximum(sd, 1e-8))


def auroc(scores: Array, true: npt.NDArray[np.bool_], self_links: bool) -> float:
    """Of pairs (target, source), those of a variable with itself counted or not."""
    kept = np.ones(true.shape, dtype=bool) if self_links else ~np.eye(len(true), dtype=bool)
    found, wanted = scores[kept], true[kept]
    causes, others = int(wanted.sum()), int((~wanted).sum())
    above = rankdata(found)[wanted].sum() - causes * (causes + 1) / 2
    return float(above / (causes * others))


def direction(scores: Array, true: npt.NDArray[np.bool_]) -> float:
    """Of pairs linked one way alone, the share whose true way has the higher score."""
    one_way = true & ~true.T
    if not one_way.any():
        return float("nan")
    higher, equal = scores > scores.T, np.isclose(scores, scores.T)  # a correlation has no way
    return float(np.where(equal, 0.5, higher)[one_way].mean())


def controls(values: Series, seeds: int) -> Iterator[tuple[str, Callable[[], list[Any]]]]:
    """Label, and what gives the scores of every seed, with an error or alone."""
    whole, each = standardised(values, (0, 1)), standardised(values, (1,))
    size = values.var((0, 1))
    yield "correlation within a row", lambda: [correlation(whole)]
    yield "the same, each sample standardised", lambda: [correlation(each)]
    yield "variance of the source", lambda: [np.tile(size, (len(size), 1))]
    yield f"least squares, lag {MAX_LAG}", lambda: [regression(whole, MAX_LAG)]
    yield "least squares, lag 3, each sample standardised", lambda: [regression(each, 3)]
    for ridge in RIDGES:
        yield f"ridge {ridge:g}, lag {MAX_LAG}", partial(_regressions, whole, ridge)
    for decay in DECAYS:
        yield f"MLP, weight decay {decay:g}", partial(_networks, whole, decay, seeds)


def regression(values: Series, lag: int, ridge: float = 0.0) -> tuple[Array, float]:
    """Scores and held-out error."""
    return least_squares(values, lag, ridge), held_out_error(values, lag, ridge)


def _regressions(values: Series, ridge: float) -> list[Any]:
    return [regression(values, MAX_LAG, ridge)]


def _networks(values: Series, decay: float, seeds: int) -> list[Any]:
    return [mlp(values, decay, seed) for seed in range(seeds)]


def measure(data: Path, item: str, store: Path, closed_form: bool = False) -> None:
    """Every control and our own methods on one set; what the store has is skipped.

    With `closed_form`, only what needs no training.
    """
    path = store / FOLDER / f"{item}.json"
    found: dict[str, Any] = {"item": item, "runs": {}}
    if path.exists():
        found = json.loads(path.read_text(encoding="utf-8"))
    dataset = causaltime(data, item)[0]
    true = dataset.truth.adjacency.any("lag").values
    length = len(dataset.panel.values) // len(dataset.panel.starts)
    values = dataset.panel.values.reshape(-1, length, len(true))
    one_way = int((true & ~true.T).sum())
    found |= {"links": int(true.sum()), "own": int(np.diag(true).sum()), "one_way": one_way}
    for label, run in controls(values, SEEDS):
        if label not in found["runs"] and not (closed_form and label.startswith("MLP")):
            found["runs"][label] = [_scored(answer, true) for answer in run()]
            write(path, found)
            Console().print(item, label, found["runs"][label])
    for method, label in () if closed_form else OURS.items():
        if label in found["runs"]:
            continue
        began = time.process_time()
        graph = find_method(method).answers(dataset.panel, MAX_LAG, 0, dataset.truth)[0].graph
        assert graph.scores is not None
        scored = _scored(graph.scores.max("lag").values, true)
        seconds = round(time.process_time() - began, 1)
        found["runs"][label] = [{**scored, "seconds": seconds, "commit": commit()}]
        write(path, found)
        Console().print(item, label, scored, seconds)


def page(store: Path) -> list[Block]:
    """Our methods, then controls, then published methods, in one table."""
    sets = {
        name: json.loads(path.read_text(encoding="utf-8"))
        for item, name in ITEMS.items()
        if (path := store / FOLDER / f"{item}.json").exists()
    }
    measured = dict.fromkeys(label for one in sets.values() for label in one["runs"])
    labels = sorted(measured, key=lambda label: label not in OURS.values())
    body = []
    for label in labels:
        cells = [Text(label)]
        for one in sets.values():
            runs = one["runs"].get(label, [])
            for metric in ("auroc", "auroc_no_self"):
                cells.append(Text(_mean(runs, metric)))
        cells.append(Text(_mean(sets["Medical"]["runs"].get(label, []), "direction")))
        cells += [Text(_mean(one["runs"].get(label, []), "error")) for one in sets.values()]
        body.append(cells)
    for row, figures in paper_rows("causaltime", "summary/auroc").items():
        known = [figures.get(name) for name in sets]
        texts = [[f"{one.mean:.3f}" if one else "-", ""] for one in known]
        cells = [Text(text, "quoted") if text else Text("") for pair in texts for text in pair]
        body.append([Text(f"{row}, as published", "quoted"), *cells, *[Text("")] * 3])
    header = [f"{name}{end}" for name in sets for end in ("", ", no self-links")]
    errors = [f"held-out error, {name}" for name in sets]
    about = [
        f"{name}: {one['links']} links of 20 variables, {one['own']} of them to itself, "
        f"{one['one_way']} one way only"
        for name, one in sets.items()
    ]
    return [
        Heading("What CausalTime measures", 1),
        Lines(
            [
                "Command: `python -m forecause_bench.paper_study.causaltime --data FOLDER`",
                *about,
                f"AUROC of the summary graph; MLP: {SEEDS} seeds, the others one. The air-quality "
                "set is not to be had here.",
            ]
        ),
        Table(["", *header, "direction, Medical", *errors], body),
        Paragraph(
            "Direction: of pairs linked one way only, the share in which the true way has the "
            "higher score; 0.5 is chance. The Traffic graph has no such pair. Held-out errors are "
            "those of the last fifth of the samples, as shares of the variance."
        ),
    ]


def _tensors(values: Series) -> tuple[torch.Tensor, torch.Tensor]:
    past, now = windows_of(values, MAX_LAG)
    return torch.from_numpy(past).float(), torch.from_numpy(now).float()


def _scored(answer: Any, true: npt.NDArray[np.bool_]) -> dict[str, float]:
    scores, error = answer if isinstance(answer, tuple) else (answer, None)
    found = {
        "auroc": auroc(scores, true, self_links=True),
        "auroc_no_self": auroc(scores, true, self_links=False),
        "direction": direction(scores, true),
    }
    found |= {} if error is None else {"error": error}
    return {name: round(value, 4) for name, value in found.items() if not np.isnan(value)}


def _mean(runs: list[dict[str, float]], metric: str) -> str:
    summary = Summary.of([run[metric] for run in runs if metric in run])
    return f"{summary.mean:.3f}" if summary else ""


def main() -> None:
    """Measure what is missing, then write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="folder with traffic and medical")
    parser.add_argument("--store", type=Path, default=STORE)
    parser.add_argument("--out", type=Path, default=Path("docs/benchmarks/paper-causaltime"))
    parser.add_argument("--closed-form", action="store_true", help="only what needs no training")
    parser.add_argument("--only", choices=list(ITEMS), help="one of the sets")
    asked = parser.parse_args()
    torch.set_num_threads(1)
    for item in ITEMS if asked.data else ():
        if asked.only in (None, item):
            measure(asked.data, item, asked.store, asked.closed_form)
    asked.out.mkdir(parents=True, exist_ok=True)
    (asked.out / "table.md").write_text(to_markdown(page(asked.store)), encoding="utf-8")


if __name__ == "__main__":
    main()
