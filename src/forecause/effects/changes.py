"""Which links changed between two periods.

Every target is fitted to all its inputs in each period by itself; a coefficient has changed where
the difference is large for its HC3 standard errors, which assume nothing about the noise. Links of
the graph and all other candidates have half of the accepted false discoveries each. That the noise
of a variable changed is told apart: it is no change of a link.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import ndtr, stdtr

from forecause.common.arrays import Array
from forecause.common.views import card
from forecause.config.thresholds import thresholds
from forecause.data.panel import Panel
from forecause.data.summary import sampling_text, timing
from forecause.data.windows import Windows, past_and_targets
from forecause.effects.coefficient_draws import has_dense_fit
from forecause.effects.periods import between, data_of, ends_of
from forecause.errors import InputError
from forecause.graph.edge_table import edge_keys
from forecause.graph.lagged import LaggedGraph
from forecause.regression.p_values import adjusted_p_values
from forecause.regression.robust import hc3_fit
from forecause.result import Result

# Time and memory:
MOST_WINDOWS = 50_000  # of a period


CAVEAT = (
    "Holds if no common cause outside the table changed in between; a link that was moved only "
    "within a row or beyond the lag window is not seen."
)


@dataclass(frozen=True, eq=False)
class Changes:
    """What differs between two periods.

    `links`: source, target, lag, change (vanished, appeared, sign, stronger, weaker), before and
    after with their standard errors (of the target's sd, per sd of the source over both periods),
    q_value. `noise`: variable, before, after (sd of what the past does not tell), q_value.
    """

    links: pd.DataFrame
    noise: pd.DataFrame
    tests: pd.DataFrame  # every candidate: source, target, lag, before, after, p_value, q_value
    rows: tuple[int, int]  # windows of the two periods
    graph: LaggedGraph
    caveat: str = CAVEAT

    @property
    def sentence(self) -> str:
        """The answer in words."""
        if self.links.empty:
            said = "No link is known to have changed"
        else:
            words = [
                f"{r.source} -> {r.target} after {r.lag} {WORDS[str(r.change)]} "
                f"({r.before:+.2f} to {r.after:+.2f})"
                for r in self.links.itertuples()
            ]
            count = len(words)
            more = f" and {count - 5} more" if count > 5 else ""
            said = f"{count} link{'s' if count > 1 else ''} changed: {'; '.join(words[:5])}{more}"
        if len(self.noise):
            said += f". The noise changed in {', '.join(self.noise['variable'])}"
        return said + "."

    def plot(self, axes: Any = None) -> Any:
        """The links of the graph and what changed among them, on a circle; the axes.

        Grey: as before. Dotted: vanished. Thick: appeared. Coloured: sign or strength.
        """
        from matplotlib import pyplot as plt

        axes = plt.subplots(figsize=(5.5, 5.0), layout="constrained")[1] if axes is None else axes
        names = self.graph.variables
        angle = 2 * np.pi * np.arange(len(names)) / len(names)
        spot = dict(zip(names, np.stack([np.cos(angle), np.sin(angle)], axis=1), strict=True))
        changed = {(r.source, r.target): str(r.change) for r in self.links.itertuples()}
        kept = zip(self.graph.edges["source"], self.graph.edges["target"], strict=True)
        for source, target in dict.fromkeys([*kept, *changed]):
            if source != target:
                style = STYLES[changed.get((source, target), "")]
                axes.annotate(
                    "",
                    spot[target] * 0.92,
                    spot[source] * 0.92,
                    arrowprops={"arrowstyle": "->", "shrinkA": 8, "shrinkB": 8} | style,
                )
        for name, place in spot.items():
            axes.text(*(1.08 * place), name.replace("$", r"\$"), ha="center", va="center")
        axes.set(xlim=(-1.35, 1.35), ylim=(-1.25, 1.25), aspect="equal")
        axes.set_axis_off()
        return axes

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        return card(self.sentence, [self.caveat], self.links)

    def __repr__(self) -> str:
        return f"Changes({self.sentence})"


WORDS = {
    "vanished": "vanished",
    "appeared": "appeared",
    "sign": "changed its sign",
    "stronger": "became stronger",
    "weaker": "became weaker",
}
STYLES: dict[str, dict[str, Any]] = {
    "": {"color": "#b8c0c8", "linewidth": 1.0},
    "vanished": {"color": "#c0392b", "linewidth": 1.8, "linestyle": ":"},
    "appeared": {"color": "#1d7f4f", "linewidth": 2.6},
    "sign": {"color": "#8e44ad", "linewidth": 2.2},
    "stronger": {"color": "#2266aa", "linewidth": 2.2},
    "weaker": {"color": "#2266aa", "linewidth": 1.4, "linestyle": "--"},
}


@dataclass(frozen=True, eq=False)
class _Fit:
    """Dense least squares of one period, all standardised alike."""

    coefficients: Array  # (input, target)
    errors: Array  # (input, target) HC3 standard errors
    noise: Array  # (target,) variance of the residuals
    noise_error: Array  # (target,) standard error of its logarithm
    freedom: int
    windows: int

    @classmethod
    def of(cls, past: Array, targets: Array) -> _Fit:
        design = np.column_stack([np.ones(len(past)), past])
        coefficients, h, left = hc3_fit(design, targets)
        errors = np.sqrt(np.maximum((h**2).T @ left**2, 1e-300))
        plain = targets - design @ coefficients
        freedom = len(past) - design.shape[1]
        noise = (plain**2).sum(0) / freedom
        kurtosis = np.mean(left**4, axis=0) / np.maximum(np.mean(left**2, axis=0) ** 2, 1e-300)
        spread = np.sqrt(np.maximum(kurtosis - 1, 0.5) / freedom)
        return cls(coefficients[1:], errors[1:], noise, spread, freedom, len(past))


def changed(found: Result, before: Any, after: Any) -> Changes:
    """Which links differ between two periods of the run's data, two tables or two runs."""
    panels = [_panel(found, part) for part in (before, after)]
    _check_apart(found, before, after)
    _check_columns(found, panels)
    _check_steps(*panels)
    lags = found.graph.max_lag
    windows = [Windows.of(panel, lags) for panel in panels]
    fits = []
    sd, mean = _common_scale(panels)
    for part in windows:
        if not has_dense_fit(len(part), part.inputs):
            raise InputError(
                f"A period of {len(part):,} windows is too short for {part.inputs} lagged inputs; "
                "take longer periods, fewer variables or a smaller lag."
            )
        part = replace(part.thin(MOST_WINDOWS), scale=replace(part.scale, mean=mean, sd=sd))
        fits.append(_Fit.of(*(x.astype(np.float64) for x in past_and_targets(part))))
    tests = _tests(found, fits[0], fits[1])
    level = thresholds().changes.fdr / 2
    links = tests[tests["q_value"] <= level]
    kinds = [_kind(r) for r in links.itertuples()]
    links = links.assign(change=kinds).sort_values("q_value", ignore_index=True)
    columns = ["source", "target", "lag", "change", "before", "after"]
    links = links[[*columns, "before_error", "after_error", "q_value"]]
    noise = _noise(found, fits[0], fits[1], sd)
    rows = (fits[0].windows, fits[1].windows)
    return Changes(links, noise, tests, rows, found.graph, CAVEAT + _on_units(panels))


def _panel(found: Result, part: Any) -> Panel:
    """A period of the run's data, or a table or run of its own; without what time explains."""
    if part is None:
        raise InputError("Name both periods: a pair (start, end), a table, a file or a run.")
    if isinstance(part, Result):
        if part.graph.variables != found.graph.variables:
            raise InputError("The two runs have other variables, or in another order.")
        return part.windows.panel if part.windows is not None else part.deseasonalised_panel()
    if not _is_period(part):
        return found.deseasonalised_panel(part)
    whole = (
        found.windows.panel
        if found.windows is not None
        else found.deseasonalised_panel(panel=data_of(found))
    )
    if len(whole.series_names) > 1:
        raise InputError("A period can be named in one series; give two tables instead.")
    cut = whole.at_rows(np.flatnonzero(between(*ends_of(part), whole.time, whole.rows)))
    starts = np.union1d(cut.starts, [0])
    return replace(cut, starts=starts, course=None)


def _is_period(part: Any) -> bool:
    return isinstance(part, slice | tuple) or (isinstance(part, str) and ".." in part)


def _check_apart(found: Result, before: Any, after: Any) -> None:
    """Refuse two periods of the run's data that share rows."""
    if not (_is_period(before) and _is_period(after)):
        return
    read = data_of(found)
    one, other = (between(*ends_of(part), read.time, read.rows) for part in (before, after))
    shared = np.flatnonzero(one & other)
    if len(shared):
        raise InputError(
            f"The two periods share {len(shared):,} rows, from row {shared[0]} on; name two that "
            "have none in common."
        )


def _check_columns(found: Result, panels: list[Panel]) -> None:
    """Refuse labels whose levels differ."""
    for panel in panels:
        odd = set(panel.variables) ^ set(found.data.columns)
        if odd:
            raise InputError(
                f"The levels of labels differ: {', '.join(sorted(odd))} is not in the run and in "
                "both periods; give periods in which all of them occur."
            )


def _check_steps(one: Panel, other: Panel) -> None:
    """Refuse rows that are farther apart in one period: lags would mean other times."""
    steps = [timing(panel) for panel in (one, other)]
    known = [step["step"] for step in steps if step["step"] and step["kind"] == steps[0]["kind"]]
    if len(known) == 2 and max(known) > 1.5 * min(known):
        texts = [sampling_text(step) for step in steps]
        raise InputError(
            f"Lags differ in the two periods: {texts[0]} in one, {texts[1]} in the other."
        )


def _on_units(panels: list[Panel]) -> str:
    """What to look at where a column varies far more in one period."""
    ratio = np.divide(*(np.maximum(panel.moments[1], 1e-300) for panel in panels))
    odd = np.flatnonzero(np.maximum(ratio, 1 / ratio) > thresholds().changes.other_units)
    names = ", ".join(panels[0].variables[column] for column in odd)
    return f" {names} varies far more in one period: is its unit the same?" if len(odd) else ""


def _common_scale(panels: list[Panel]) -> tuple[Array, Array]:
    """Standard deviations and means (column,) of both periods: one scale for both fits."""
    means, sds = zip(*(panel.moments for panel in panels), strict=True)
    sd = np.sqrt((sds[0] ** 2 + sds[1] ** 2) / 2)
    return np.maximum(sd, 1e-300), np.asarray((means[0] + means[1]) / 2)


def _tests(found: Result, one: _Fit, other: _Fit) -> pd.DataFrame:
    """Every candidate among numbers, with its own q-value among links or elsewhere."""
    coding, lags = found.data.coding, found.graph.max_lag
    numbers = coding.numeric_columns
    names = [found.data.columns[c] for c in numbers]
    columns = len(found.data.columns)
    shape = (lags, columns, columns)

    def taken(values: Array) -> Array:  # (step, source, target) -> flat, lag from 1
        return values.reshape(shape)[::-1][:, numbers][:, :, numbers].ravel()

    difference = taken(other.coefficients - one.coefficients)
    error = np.sqrt(taken(one.errors**2 + other.errors**2))
    freedom = min(one.freedom, other.freedom)
    p = 2 * stdtr(freedom, -np.abs(difference / error))
    lag, source, target = (index.ravel() for index in np.indices((lags, len(names), len(names))))
    table = pd.DataFrame(
        {
            "source": np.array(names, dtype=object)[source],
            "target": np.array(names, dtype=object)[target],
            "lag": lag + 1,
            "before": taken(one.coefficients),
            "after": taken(other.coefficients),
            "before_error": taken(one.errors),
            "after_error": taken(other.errors),
            "p_value": p,
        }
    )
    known = set(edge_keys(found.graph.causal.edges))
    is_link = np.array([key in known for key in edge_keys(table)])
    q = np.ones(len(table))
    for group in (is_link, ~is_link):
        q[group] = adjusted_p_values(p[group])
    return table.assign(in_graph=is_link, q_value=q)


def _kind(row: Any) -> str:
    """What happened to a link whose coefficient changed."""
    clear = thresholds().changes.clear
    was = abs(row.before) > clear * row.before_error
    is_now = abs(row.after) > clear * row.after_error
    if was and is_now and row.before * row.after < 0:
        return "sign"
    if was and not is_now:
        return "vanished"
    if is_now and not was:
        return "appeared"
    return "stronger" if abs(row.after) > abs(row.before) else "weaker"


def _noise(found: Result, one: _Fit, other: _Fit, sd: Array) -> pd.DataFrame:
    """The variables whose noise changed: sds in the data's units."""
    z = np.log(other.noise / one.noise) / np.hypot(one.noise_error, other.noise_error)
    numbers = found.data.coding.numeric_columns
    table = pd.DataFrame(
        {
            "variable": [found.data.columns[c] for c in numbers],
            "before": (np.sqrt(one.noise) * sd)[numbers],
            "after": (np.sqrt(other.noise) * sd)[numbers],
            "q_value": adjusted_p_values(2 * ndtr(-np.abs(z[numbers]))),
        }
    )
    kept = table[table["q_value"] <= thresholds().changes.noise_fdr]
    return kept.sort_values("q_value", ignore_index=True)
