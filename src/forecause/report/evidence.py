"""What a run keeps for its page: curves and series, computed once while the data is at hand.

Everything is plain JSON and bounded: at most MOST_EDGES edges get curves, and the number of
windows behind a curve shrinks for forecasters that take long to evaluate.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from forecause.common.arrays import Array, Floats, Index
from forecause.data.summary import timing
from forecause.data.variables import Variables
from forecause.data.windows import Window, Windows
from forecause.forecast.attribution.readouts import VariableRelevance
from forecause.forecast.forecaster import MOST_AT_ONCE, Forecaster
from forecause.graph.edge_table import edge_keys
from forecause.graph.lagged import LaggedGraph
from forecause.report.history import course, short, stretch, ticks, time_parts
from forecause.report.reproduction import origin

if TYPE_CHECKING:
    from forecause.result import Result

FORMAT = "forecause.evidence/1"
MOST_EDGES = 200
GRID = 25  # points of a response curve
RESPONSE_WINDOWS = 100
LOSS_WINDOWS = 400
BINS = 60  # of the influence over time
BIN_WINDOWS = 10
QUANTILE_WINDOWS = 2000
CURVE_WORK = 6e9  # multiplications that each kind of curve may cost: about a second

Edge = tuple[int, int, int]  # source, target, lag


def collect(run: Result, windows: Windows) -> dict[str, Any]:
    """Gather what the page shows beyond the graph; `windows` are all windows of the data.

    What an edge does is told by the causal forecaster, which was fitted to all rows; what held-out
    rows tell, by the forecaster that has not seen them.
    """
    held_out = windows.split(run.config.forecasting.held_out)[1]
    edges = strongest_edges(run.graph)
    probe = ModelProbe(run.forecaster, windows, held_out)
    whole = course(windows.panel) | time_parts(windows.panel)
    for name in {"values", "explained", "left"} & set(whole):
        whole[name] = [whole[name][column] for column in probe.shown]
    causal = run.forecaster if run.causal is None else run.causal.forecaster
    effects = ModelProbe(causal, windows, held_out)
    responses = effects.responses(edges)
    influences = effects.influences(edges)
    lost = probe.lost_without(edges)
    return {
        "format": FORMAT,
        "time": timing(windows.panel),
        "course": whole,
        "stretch": probe.close_up(),
        "edges": [
            {"edge": list(edge), "response": r, "influence": short(i), "lost": short(loss)}
            for edge, r, i, loss in zip(edges, responses, influences, lost, strict=True)
        ],
        "domains": _domain_spans(windows),
        "origin": origin(),
        **({"levels": probe.levels_shown()} if probe.coding.labels else {}),
    }


def strongest_edges(graph: LaggedGraph) -> list[Edge]:
    """The edges that get curves: those of the graph, then those of its domains, strongest first."""
    place = {name: i for i, name in enumerate(graph.variables)}
    tables = [graph.edges, *(part.edges for part in graph.domains.values())]
    wanted = {
        (place[source], place[target], lag): None
        for table in tables
        for source, target, lag in edge_keys(table)
        if lag > 0  # a forecaster does not see the row it predicts
    }
    return list(wanted)[:MOST_EDGES]


@dataclass(frozen=True, eq=False)
class ModelProbe:
    """A fitted forecaster beside the windows it is asked about.

    Edges are those of variables; a label is shown by the probability of one of its levels.
    """

    forecaster: Forecaster
    windows: Windows
    held_out: Windows

    @property
    def coding(self) -> Variables:
        return self.windows.panel.coding

    @cached_property
    def shown(self) -> Index:
        """The column of every variable that is drawn."""
        return self.coding.shown(self.windows.scale.mean)

    def levels_shown(self) -> dict[str, str]:
        """The level of every label that is drawn."""
        place = dict(zip(self.coding.variables, self.shown.tolist(), strict=True))
        return {one.name: one.levels[place[one.name] - one.first] for one in self.coding.labels}

    def responses(self, edges: Sequence[Edge]) -> list[dict[str, Any]]:
        """Mean forecast of the target as the source is set to quantiles of its values.

        A label as the source is set to its levels, numbered from 1; as the target it shows the
        probability of the level that moves most.
        """
        rounds = max(len(edges), 1) * GRID
        count = self._affordable(RESPONSE_WINDOWS, rounds, self._slow())
        window = _evenly(self.windows, count)
        as_it_was = self.forecaster.forecast(window)
        shares = np.linspace(0.01, 0.99, GRID)
        usual = _evenly(self.windows, QUANTILE_WINDOWS).target
        grid = np.quantile(usual, shares, axis=0).astype(usual.dtype)  # (grid, column)
        curves = []
        for source, target, lag in edges:
            x, values = self._settings(source, grid)
            moved = self._moved(window, as_it_was, (source, target, lag), values)
            curves.append({"x": x, **self._curve(moved.mean(1), target)})
        return curves

    def _moved(self, window: Window, as_it_was: Floats, edge: Edge, values: Floats) -> Floats:
        """Forecasts of an edge's target if its source had `values` (point, column of source).

        (point, batch, column of target); `as_it_was` (batch, column) is the forecast without.
        """
        source, target, lag = edge
        model, past = self.forecaster.member_of(target), window.past
        taken = model.contribution(target, -lag, source, past[:, -lag, source])
        given = model.contribution(target, -lag, source, values[:, 0])
        if taken is not None and given is not None and not self.coding.labels:
            return (as_it_was[:, target] - taken + given[:, None])[:, :, None]
        changed = np.tile(past, (len(values), 1, 1))
        changed[:, -lag, self.coding.columns(source)] = np.repeat(values, len(past), axis=0)
        domain = None if window.domain is None else np.tile(window.domain, len(values))
        moved = self._forecast(changed, domain, self.coding.columns(target))
        return moved.reshape(len(values), len(past), -1)

    def _settings(self, source: int, grid: Floats) -> tuple[Any, Floats]:
        """What a variable is set to, as shown (point,) and as its columns (point, column)."""
        label, columns = self.coding.label(source), self.coding.columns(source)
        if label is None:
            return self._units(grid[:, columns[0]], columns[0]), grid[:, columns]
        scale, levels = self.windows.scale, np.eye(len(columns))
        values = ((levels - scale.mean[columns]) / scale.sd[columns]).astype(np.float32)
        return short(np.arange(1, len(columns) + 1)), values

    def _curve(self, forecast: Floats, target: int) -> dict[str, Any]:
        """The forecasts (point, column) of a number, or of the level of a label whose probability
        varies most."""
        label, columns = self.coding.label(target), self.coding.columns(target)
        units = forecast * self.windows.scale.sd[columns]
        place = int(np.argmax(np.ptp(units, axis=0)))
        curve = {"y": self._units(forecast[:, place], columns[place])}
        return curve if label is None else {**curve, "level": label.levels[place]}

    def influences(self, edges: Sequence[Edge]) -> Array:
        """Mean |d forecast / d input| in BINS equal stretches of the rows, (edge, bin)."""
        per_bin = self._affordable(
            BIN_WINDOWS, BINS * 3 * self.forecaster.n_variables, [self.forecaster]
        )
        cuts = np.linspace(0, self.windows.panel.rows, BINS + 1)
        places = np.searchsorted(self.windows.rows, cuts)
        values = np.full((len(edges), BINS), np.nan)
        if not edges:
            return values
        source, target, lag = np.array(edges).T
        for bin_ in range(BINS):
            inside = np.arange(places[bin_], places[bin_ + 1])
            if len(inside):
                window = _evenly(self.windows.at(inside), per_bin)
                slopes = np.abs(self._slopes(window)).mean(0)
                values[:, bin_] = slopes[target, -lag, source]
        return values

    def lost_without(self, edges: Sequence[Edge]) -> Array:
        """Relative growth of the held-out squared error when the input is its mean, (edge,)."""
        count = self._affordable(LOSS_WINDOWS, max(len(edges), 1), self._slow())
        window = _evenly(self.held_out, count)
        truth = window.target
        weights = self.coding.weights(self.windows.scale.mean)
        as_it_was = self.forecaster.forecast(window)
        before = ((as_it_was - truth) ** 2).mean(0)
        growth = np.full(len(edges), np.nan)
        for place, (source, target, lag) in enumerate(edges):
            columns = self.coding.columns(target)
            mean = np.zeros((1, len(self.coding.columns(source))), truth.dtype)  # standardised
            (moved,) = self._moved(window, as_it_was, (source, target, lag), mean)
            error = ((moved - truth[:, columns]) ** 2).mean(0)
            share = weights[columns, target]
            after, known = (error * share).sum(), (before[columns] * share).sum()
            growth[place] = float(after / max(known, 1e-12) - 1)
        return growth

    def _slopes(self, window: Window) -> Floats:
        """d forecast / d input of variables, (batch, target, step, source)."""
        slopes = self.forecaster.jacobian(window.past, domain=window.domain)
        if not self.forecaster.labels:
            return slopes
        columns = VariableRelevance.of(self.forecaster)
        return columns.of_variables(columns.signed(slopes))

    def close_up(self) -> dict[str, Any]:
        """A stretch of held-out rows: values with `max_lag` rows before, forecasts, their error."""
        chosen = stretch(self.windows, self.held_out)
        near = self.held_out.at(chosen)
        forecast = self.forecaster.forecast(near.whole())
        batch = _evenly(self.held_out, self._affordable(5 * LOSS_WINDOWS, 1, [self.forecaster]))
        error = self.forecaster.forecast(batch) - batch.target
        start, end = int(near.rows[0]), int(near.rows[-1]) + 1
        panel, scale = self.windows.panel, self.windows.scale
        values = np.asarray(panel.values[start - self.windows.max_lag : end], dtype=np.float64)
        ahead = forecast * scale.sd + scale.mean
        if panel.course is not None:  # in the data's own units
            explained = panel.course.of_rows(panel, start - self.windows.max_lag, end)
            values, ahead = values + explained, ahead + explained[self.windows.max_lag :]
        return {
            "values": short(values.T[self.shown]),  # (variable, max_lag + row)
            "forecast": short(ahead.T[self.shown]),  # (variable, row)
            "error_sd": short((error.std(0) * scale.sd)[self.shown]),  # (variable,)
            "ticks": ticks(panel, start, end),
        }

    def _forecast(self, past: Floats, domain: Index | None, columns: Index) -> Floats:
        """Forecast of one target's columns, (batch, column), by the only model that makes it."""
        model = self.forecaster.member_of(int(columns[0]))
        parts = []
        for start in range(0, len(past), MOST_AT_ONCE):
            part = slice(start, start + MOST_AT_ONCE)
            where = None if domain is None else domain[part]
            parts.append(model(past[part], domain=where)[:, columns])
        return np.concatenate(parts)

    def _slow(self) -> list[Forecaster]:
        """The models that must be asked again for every change of an input; see `_moved`."""
        columns = range(self.windows.shape[1])
        models = dict.fromkeys(map(self.forecaster.member_of, columns))
        return [model for model in models if self.coding.labels or not model.settings.adds_up]

    def _affordable(self, wanted: int, rounds: int, models: Sequence[Forecaster]) -> int:
        """How many windows `rounds` evaluations may each use; the same on every machine."""
        cost = sum(model.size for model in models)
        if any(model.settings.token_per_input for model in models):
            cost *= self.windows.shape[0] * self.windows.shape[1]
        return int(np.clip(CURVE_WORK / max(cost * rounds, 1), 4, wanted))

    def _units(self, values: Floats, variable: int) -> Any:
        scale = self.windows.scale
        return short(values * scale.sd[variable] + scale.mean[variable])


def _evenly(windows: Windows, count: int) -> Window:
    """At most `count` windows, evenly spread over time."""
    places = np.linspace(0, len(windows) - 1, min(count, len(windows)))
    return windows.draw(np.unique(places.astype(np.int64)))


def _domain_spans(windows: Windows) -> list[list[Any]]:
    """[domain, start, end] as shares of all rows, where domains are known."""
    panel = windows.panel
    if panel.domain is None:
        return []
    cuts = np.flatnonzero(np.diff(panel.domain)) + 1
    edges = [0, *cuts[:200].tolist(), panel.rows]
    return [
        [panel.domain_names[panel.domain[a]], round(a / panel.rows, 4), round(b / panel.rows, 4)]
        for a, b in pairwise(edges)
    ]
