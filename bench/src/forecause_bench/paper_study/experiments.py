"""Every experiment of the paper on one page: where its figures are here, and how far they go."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from forecause_bench.document import Block, Heading, Paragraph, Table, Text
from forecause_bench.paper_study import causaltime, refinement, theorem
from forecause_bench.paper_study.answers import Study
from forecause_bench.paper_study.queue import SEEDS
from forecause_bench.paper_study.readout_study import transformers
from forecause_bench.paper_study.tables import ROWS, SECTIONS, Section

HALF_SIZE = "half size only: "
READOUTS = "[readouts](../paper-readouts/table.md), [in words](../../why/which-readout.md)"


@dataclass(frozen=True)
class Experiment:
    """One whose figures are not in a table of their own."""

    title: str
    place: str
    state: Callable[[Study], str]


def _read(study: Study) -> str:
    return f"read from every fit of the transformer: {len(transformers(study))}"


def _files(study: Study, folder: str) -> int:
    return len(list((study.folder / folder).glob("*.json")))


def _theorem(study: Study) -> str:
    wanted = len(theorem.SYSTEMS) * len(theorem.HEADS) * theorem.SEEDS
    done = _files(study, theorem.FOLDER)
    return f"{done} of {wanted} fits; parents of the variance and of the shape are not in the paper"


def _causaltime(study: Study) -> str:
    sets = _files(study, causaltime.FOLDER)
    return f"{sets} of 3 sets; that of air quality is not to be had here"


def _refined(study: Study) -> str:
    return f"fits refined: {_files(study, refinement.FOLDER)}"


OTHERS = (
    Experiment(
        "Top-k per target and over the graph, threshold",
        "[tables](table.md#the-rule-that-chooses-edges)",
        _read,
    ),
    Experiment("LRP, gradient and attention", READOUTS, _read),
    Experiment("Agreement with interventions", READOUTS, _read),
    Experiment(
        "Uncertainty: ranks over windows", "[figure](ranks.png), [claims](claims.md)", _read
    ),
    Experiment("Strength by lag", "[figure](lags.png)", _read),
    Experiment("Theorem: score energy", "[table](../paper-theorem/table.md)", _theorem),
    Experiment(
        "CausalTime, with the low-complexity variant and its MLP",
        "[table](../paper-causaltime/table.md), [in words](../../why/what-causaltime-measures.md)",
        _causaltime,
    ),
    Experiment(
        "LPCMCI, PCMCI+ and DYNOTEARS after the transformer",
        "[table](../paper-refinement/table.md), and "
        f"{HALF_SIZE}[table](../paper-post-processing/table.md)",
        _refined,
    ),
    Experiment(
        "Long lags, nonlinear",
        "none",
        lambda _: "left out: the paper's figures are those of its linear table",
    ),
    Experiment(
        "Chronos-2, zero-shot and fine-tuned",
        "none",
        lambda _: "not run: no published weights are to be had here",
    ),
)


def experiments_page(study: Study) -> list[Block]:
    """Tables, what has none, and the rivals."""
    body = [
        [section.title, f"[tables](table.md#{_anchor(section)})", _state(section, study)]
        for section in SECTIONS
    ]
    body += [[one.title, one.place, one.state(study)] for one in OTHERS]
    return [
        Heading("Every experiment of the paper, and its state here", 1),
        Paragraph(
            "Made from the store by `python -m forecause_bench.paper_study.page`. A column of a "
            f"table is complete with {SEEDS} seeds. What the paper's claims come to stands on the "
            "[page of claims](claims.md)."
        ),
        Table(
            ["experiment", "where", "state"], [[Text(c) for c in row] for row in body], words=True
        ),
        Heading("Rivals", 2),
        Paragraph("Systems (kind and seed) on which each was run."),
        _rivals(study),
    ]


def _state(section: Section, study: Study) -> str:
    """How many columns are complete, which have fewer seeds, which none."""
    seeds = {column.name: len(study.seeds(column.kind)) for column in section.columns}
    complete = sum(count >= SEEDS for count in seeds.values())
    few = [f"{name} ({count})" for name, count in seeds.items() if 0 < count < SEEDS]
    none = [name for name, count in seeds.items() if not count]
    parts = [f"{complete} of {len(seeds)} columns complete"]
    parts += [f"fewer seeds: {'; '.join(few)}"] if few else []
    parts += [f"not fitted: {'; '.join(none)}"] if none else []
    return ". ".join(parts)


def _rivals(study: Study) -> Table:
    methods = dict.fromkeys(row.rival for row in ROWS if row.rival)
    labels = {name: next(row.label for row in ROWS if row.rival == name) for name in methods}
    runs = [run for seeds in study.rivals.values() for run in seeds.values()]
    body = []
    for name, label in labels.items():
        done = sum(run.metrics(name) is not None for run in runs)
        stopped = sum(run.stopped_after(name) > 0 for run in runs)
        state = f"{done} of {len(runs)}" + (f", {stopped} stopped at the limit" if stopped else "")
        body.append([Text(label.split(",")[0]), Text(state)])
    return Table(["method", "systems"], body, words=True)


def _anchor(section: Section) -> str:
    """The anchor of its heading."""
    return re.sub(r"[^a-z0-9-]", "", section.title.lower().replace(" ", "-"))
