"""What the forecasts tell: no skill, residuals that still hold something, edges due to a misfit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from forecause.common.work_sharing import shared
from forecause.config.advice import Advice, hint
from forecause.diagnostics.examined import Examined, by_size, named
from forecause.diagnostics.finding import Finding, Links, into, listed, strongest
from forecause.forecast.comparison import chosen_losses, over_mean
from forecause.graph.edge_table import between_variables, edge_keys
from forecause.regression.residuals import Residuals

TRY_MORE_ROWS = hint("try more rows")
LONGER_WINDOW = Advice("max_lag", words="a longer lag window")
OTHER_FORECASTER = Advice("forecaster", words="another forecaster")

Memory = tuple[float, int, int, int]  # correlation, variable now, variable earlier, lag


def forecast_skill(run: Examined) -> Iterator[Finding]:
    """Variables that the mean or the last value forecasts as well on held-out rows."""
    losses = over_mean(run.fitted.losses)
    share, naive = chosen_losses(losses).to_dict(), losses["naive"].to_dict()
    driven, hardly = set(run.graph.edges["target"]), run.bounds.hardly_forecast
    believed = {n: s for n, s in share.items() if n in driven and not s < 1}
    unexplained = {n: s for n, s in share.items() if n not in driven and not s < hardly}
    lazy = {n: naive[n] for n in share if naive[n] <= min(share[n], 1)}
    yield from _of_targets(
        "no-skill",
        "The mean forecasts {} at least as well as the forecaster does (held-out loss over the "
        "mean's), so the edges found there are weak at best",
        believed,
        "{:.2f}",
        *(TRY_MORE_ROWS, LONGER_WINDOW, OTHER_FORECASTER),
    )
    yield from _of_targets(
        "unpredictable",
        "Hardly anything among the columns helps to forecast {}; in brackets, the held-out error "
        "over the mean's. Either nothing drives such a variable, or its causes were not recorded",
        unexplained,
        "{:.2f}",
    )
    shown = [f"{name} ({loss:.3f} against {share[name]:.3f})" for name, loss in lazy.items()]
    yield from _of_targets(
        "naive-wins",
        "Repeating the last value forecasts {} at least as well as the forecaster does (held-out "
        "loss), so the edges found there carry little weight",
        lazy,
        shown,
        *(Advice("difference", True, "try {}"), hint("use more rows"), OTHER_FORECASTER),
    )


def own_past_wins(run: Examined) -> Iterator[Finding]:
    """Variables that nothing forecasts better than their own past, although links were found.

    No forecast, no graph: such links are at most tentative; see `unforecast_links`.
    """
    if run.causal is None:
        return
    driven = set(run.graph.edges["target"][between_variables(run.graph.edges)])
    losses = run.causal.losses
    names = [n for n in losses.index[~run.causal.is_forecast] if n in driven]
    yield from _of_targets(
        "own-past-wins",
        "On held-out rows nothing forecasts {} better than its own past (in brackets, the error of "
        "its causes over that), so links into it are at most tentative",
        (losses["causal"] / losses["own past"])[names].to_dict(),
        "{:.3f}",
        *(TRY_MORE_ROWS, LONGER_WINDOW),
    )


def missing_causes(run: Examined) -> Iterator[Finding]:
    """Variables that all inputs together forecast clearly better than their causes alone."""
    if run.causal is None:
        return
    ratio = run.causal.losses["causal"] / run.causal.losses["dense"]
    yield from _of_targets(
        "missing-causes",
        "All inputs together forecast {} clearly better than its causes in the graph do (in "
        "brackets, the error of the causes over that): some causes are missing there",
        ratio[list(run.causal.missing_causes)].to_dict(),
        "{:.2f}",
        *(TRY_MORE_ROWS, Advice("fdr", words="a larger accepted share of false edges")),
    )


def _of_targets(
    kind: str, seen: str, figures: dict[Any, float], shown: str | list[str], *advice: Advice
) -> Iterator[Finding]:
    """About the variables that have figures, if any: {} in `seen` are they, each with its figure in
    brackets, or as `shown`."""
    if figures:
        if isinstance(shown, str):
            shown = [f"{name} ({shown.format(value)})" for name, value in figures.items()]
        names, evidence = tuple(figures), {name: float(v) for name, v in figures.items()}
        text = seen.replace("{}", listed(shown))
        yield Finding(kind, text, "alert", into(*names), names, evidence, advice)


def residual_memory(run: Examined) -> Iterator[Finding]:
    """Residuals that earlier residuals still tell about: too short a window, or a poor fit."""
    max_lag, names = run.windows.max_lag, run.names
    furthest = max(run.bounds.furthest_back, 2 * max_lag)
    beyond = _memories(run, range(max_lag + 1, furthest + 1), run.residuals, furthest)
    inside = _memories(run, range(1, max_lag + 1), run.residuals_beside_lines, furthest)
    if beyond:
        numbers = {run.column_names[column] for column in run.coding.numeric_columns}
        grave = [one for one in beyond if names[one[1]] in numbers and names[one[2]] in numbers]
        oldest = (grave or beyond)[0][3]
        advice = Advice("max_lag", oldest, "try {} or more")
        yield _remembered(
            run,
            "short-window",
            "Something older than the lag window still tells about what the forecaster leaves "
            "unexplained (correlation)",
            beyond,
            (advice, Advice("season", (oldest,), "if that is a season, {}")),
            grave,
        )
    if inside:
        advice = Advice("forecaster", words="try another forecaster")
        lingers = Advice("max_lag", words="a longer lag window for a cause that lingers")
        seen = "The forecaster does not use all that its lag window tells (correlation of what is"
        yield _remembered(run, "poor-fit", f"{seen} left)", inside, (advice, lingers))


def _remembered(
    run: Examined,
    kind: str,
    seen: str,
    memories: list[Memory],
    advice: tuple[Advice, ...],
    grave: Sequence[Memory] = (),
) -> Finding:
    """Residuals that earlier ones tell about, of which some may be grave."""
    names = run.names
    shown = [
        f"{names[i]} with {'itself' if i == j else names[j]} "
        f"{lag} row{'s' if lag > 1 else ''} earlier ({r:+.2f})"
        for r, i, j, lag in memories
    ]
    return Finding(
        kind,
        f"{seen}: {listed(shown)}{run.sampled}",
        gravity="doubt" if grave else "alert",
        about=into(*named(names, [now for _, now, _, _ in grave or memories])),
        variables=named(names, [place for _, i, j, _ in memories for place in (i, j)]),
        evidence=strongest(
            (f"{names[i]} with {names[j]} at lag {k}", r) for r, i, j, k in memories
        ),
        advice=advice,
    )


def _memories(run: Examined, lags: range, residuals: Residuals, looked_at: int) -> list[Memory]:
    """Correlations of residuals with earlier ones that matter, the strongest first; the level is
    shared by all lags that are `looked_at`."""
    work = 2 * len(residuals.values) * residuals.values.shape[1] ** 2
    clear: list[Memory] = []
    correlations = shared(lambda lag: run.correlation(lag, residuals), lags, work)
    for lag, (correlation, p_values) in zip(lags, correlations, strict=True):
        level = run.bounds.level / (looked_at * correlation.size)
        real = (np.abs(correlation) > run.bounds.least_correlation) & (p_values < level)
        clear += [(float(correlation[i, j]), i, j, lag) for i, j in by_size(correlation, real)]
    return sorted(clear, key=lambda one: -abs(one[0]))


def misfit(run: Examined) -> Iterator[Finding]:
    """Edges that the tests marked as doubtful: the learner misses something they may copy."""
    edges = run.graph.edges
    if "doubtful" not in edges or not edges["doubtful"].any():
        return
    links = [Links(*key) for key in edge_keys(edges[edges["doubtful"].astype(bool)])]
    targets = [name for name in run.graph.variables if name in {one.target for one in links}]
    yield Finding(
        "misfit",
        f"The learner misses something about {listed(targets)}: no error rate is promised there. "
        f"Doubtful are {listed(list(map(str, links)))}, whose source may only carry a copy of what "
        "was missed",
        gravity="doubt",
        about=tuple(links),
        variables=tuple(targets),
        evidence={"doubtful edges": len(links)},
    )
