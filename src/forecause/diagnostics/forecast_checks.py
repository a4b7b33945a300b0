"""What the forecasts tell: no skill, residuals that still hold something, edges due to a misfit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from forecause.advice import Advice, hint
from forecause.diagnostics.examined import Examined, by_size, named
from forecause.diagnostics.finding import (
    Finding,
    Links,
    into,
    listed,
    strongest,
)
from forecause.forecast.comparison import over_mean
from forecause.regression.residuals import Residuals
from forecause.work_sharing import shared

FURTHEST = 30  # rows back that residuals are compared, or twice the lag window if longer

Memory = tuple[float, int, int, int]  # correlation, variable now, variable earlier, lag


def forecast_skill(run: Examined) -> Iterator[Finding]:
    """Variables that the mean or the last value forecasts as well on held-out rows."""
    losses = over_mean(run.fitted.losses)
    share = {str(name): float(row[row["chosen"]]) for name, row in losses.iterrows()}
    naive = {str(name): float(value) for name, value in losses["naive"].items()}
    driven = set(run.graph.edges["target"])
    hardly = run.bounds.hardly_forecast
    believed = {n: s for n, s in share.items() if n in driven and not s < 1}
    unexplained = {n: s for n, s in share.items() if n not in driven and not s < hardly}
    lazy = {n: naive[n] for n in share if naive[n] <= min(share[n], 1)}
    if believed:
        shown = listed([f"{name} ({loss:.2f})" for name, loss in believed.items()])
        yield _of_targets(
            "no-skill",
            f"The mean forecasts {shown} at least as well as the forecaster does (held-out loss "
            "over the mean's), so the edges found there are weak at best",
            believed,
            hint("try more rows"),
            Advice("max_lag", words="a longer lag window"),
            Advice("forecaster", words="another forecaster"),
        )
    if unexplained:
        shown = listed([f"{name} ({loss:.2f})" for name, loss in unexplained.items()])
        yield _of_targets(
            "unpredictable",
            f"Hardly anything among the columns helps to forecast {shown}; in brackets, the "
            "held-out error over the mean's. Either nothing drives such a variable, or its causes "
            "were not recorded",
            unexplained,
        )
    if lazy:
        shown = listed([f"{n} ({loss:.3f} against {share[n]:.3f})" for n, loss in lazy.items()])
        yield _of_targets(
            "naive-wins",
            f"Repeating the last value forecasts {shown} at least as well as the forecaster does "
            "(held-out loss), so the edges found there carry little weight",
            lazy,
            Advice("difference", True, "try {}"),
            hint("use more rows"),
            Advice("forecaster", words="another forecaster"),
        )


def own_past_wins(run: Examined) -> Iterator[Finding]:
    """Variables that nothing forecasts better than their own past, although links were found.

    No forecast, no graph: such links are at most tentative; see `unforecast_links`.
    """
    if run.causal is None:
        return
    edges = run.graph.edges
    driven = set(edges["target"][edges["source"] != edges["target"]])
    losses = run.causal.losses
    names = [n for n in losses.index[~run.causal.is_forecast] if n in driven]
    if names:
        gains = {str(n): float(losses.loc[n, "causal"] / losses.loc[n, "own past"]) for n in names}
        shown = listed([f"{name} ({share:.3f})" for name, share in gains.items()])
        yield _of_targets(
            "own-past-wins",
            f"On held-out rows nothing forecasts {shown} better than its own past (in brackets, "
            "the error of its causes over that), so links into it are at most tentative",
            gains,
            hint("try more rows"),
            Advice("max_lag", words="a longer lag window"),
        )


def missing_causes(run: Examined) -> Iterator[Finding]:
    """Variables that all inputs together forecast clearly better than their causes alone."""
    if run.causal is None or not run.causal.missing_causes:
        return
    ratio = run.causal.losses["causal"] / run.causal.losses["dense"]
    gaps = {name: float(ratio[name]) for name in run.causal.missing_causes}
    shown = listed([f"{name} ({share:.2f})" for name, share in gaps.items()])
    yield _of_targets(
        "missing-causes",
        f"All inputs together forecast {shown} clearly better than its causes in the graph do (in "
        "brackets, the error of the causes over that): some causes are missing there",
        gaps,
        hint("try more rows"),
        Advice("fdr", words="a larger accepted share of false edges"),
    )


def _of_targets(kind: str, seen: str, evidence: dict[str, float], *advice: Advice) -> Finding:
    names = tuple(evidence)
    return Finding(kind, seen, "alert", into(*names), names, evidence, advice)


def residual_memory(run: Examined) -> Iterator[Finding]:
    """Residuals that earlier residuals still tell about: too short a window, or a poor fit."""
    max_lag, names = run.windows.max_lag, run.names
    furthest = max(FURTHEST, 2 * max_lag)
    beyond = _memories(run, range(max_lag + 1, furthest + 1), run.residuals, furthest)
    inside = _memories(run, range(1, max_lag + 1), run.residuals_beside_lines, furthest)
    if beyond:
        numbers = {run.column_names[column] for column in run.coding.numeric_columns}
        grave = [one for one in beyond if names[one[1]] in numbers and names[one[2]] in numbers]
        oldest = (grave or beyond)[0][3]
        yield Finding(
            "short-window",
            "Something older than the lag window still tells about what the forecaster leaves "
            f"unexplained (correlation): {_described(beyond, names)}{run.sampled}",
            gravity="doubt" if grave else "alert",
            about=into(*named(names, [now for _, now, _, _ in grave or beyond])),
            variables=named(names, [place for _, i, j, _ in beyond for place in (i, j)]),
            evidence=_figures(beyond, names),
            advice=(
                Advice("max_lag", oldest, "try {} or more"),
                Advice("season", (oldest,), "if that is a season, {}"),
            ),
        )
    if inside:
        yield Finding(
            "poor-fit",
            "The forecaster does not use all that its lag window tells (correlation of what is "
            f"left): {_described(inside, names)}{run.sampled}",
            about=into(*named(names, [now for _, now, _, _ in inside])),
            variables=named(names, [place for _, i, j, _ in inside for place in (i, j)]),
            evidence=_figures(inside, names),
            advice=(
                Advice("forecaster", words="try another forecaster"),
                Advice("max_lag", words="a longer lag window for a cause that lingers"),
            ),
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


def residuals_correlate_beyond(
    residuals: Residuals, max_lag: int, furthest: int, least: float, level: float
) -> bool:
    """Whether residuals are correlated with residuals from before the lag window.

    `level` is shared by all correlations that are looked at; smaller ones than `least` do not
    matter.
    """
    lags = range(max_lag + 1, furthest + 1)
    for lag in lags:
        correlation, p_values = residuals.correlation(lag, least)
        clear = np.abs(correlation) > least
        if (clear & (p_values < level / (len(lags) * correlation.size))).any():
            return True
    return False


def _described(memories: Sequence[Memory], names: Sequence[str]) -> str:
    """Examples like `a with b 7 rows earlier (+0.31)`."""
    return listed(
        [
            f"{names[i]} with {'itself' if i == j else names[j]} "
            f"{lag} row{'s' if lag > 1 else ''} earlier ({r:+.2f})"
            for r, i, j, lag in memories
        ]
    )


def _figures(memories: Sequence[Memory], names: Sequence[str]) -> dict[str, float]:
    return strongest((f"{names[i]} with {names[j]} at lag {lag}", r) for r, i, j, lag in memories)


def misfit(run: Examined) -> Iterator[Finding]:
    """Edges that the tests marked as doubtful: the learner misses something they may copy."""
    edges = run.graph.edges
    if "doubtful" not in edges or not edges["doubtful"].any():
        return
    doubtful = edges[edges["doubtful"].astype(bool)]
    columns = (doubtful[name].tolist() for name in ("source", "target", "lag"))
    places = [(source, target, int(lag)) for source, target, lag in zip(*columns, strict=True)]
    shown = [f"{source} -> {target} at lag {lag}" for source, target, lag in places]
    targets = [name for name in run.graph.variables if name in {target for _, target, _ in places}]
    yield Finding(
        "misfit",
        f"The learner misses something about {listed(targets)}: no error rate is promised there. "
        f"Doubtful are {listed(shown)}, whose source may only carry a copy of what was missed",
        gravity="doubt",
        about=tuple(Links(*place) for place in places),
        variables=tuple(targets),
        evidence={"doubtful edges": len(places)},
    )
