"""What a run keeps for its page: curves and series, computed once while the data is at hand.

Everything is plain JSON and bounded: at most MOST_EDGES edges get curves, and the number of
windows behind a curve shrinks for forecasters that take long to evaluate.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from forecause.data.windows import Windows
from forecause.forecast.base import Forecaster
from forecause.forecast.choice import Choice
from forecause.forecast.transformer import Transformer
from forecause.graph.lagged import LaggedGraph
from forecause.report.history import course, stretch, ticks, timing
from forecause.report.numbers import short
from forecause.report.reproduction import origin

if TYPE_CHECKING:
    from forecause.discovery import Discovery

FORMAT = "forecause.evidence/1"
MOST_EDGES = 200
GRID = 25  # points of a response curve
RESPONSE_WINDOWS = 100
LOSS_WINDOWS = 400
BINS = 60  # of the influence over time
BIN_WINDOWS = 10
WORK = 6e9  # multiplications that each kind of curve may cost: about a second

Edge = tuple[int, int, int]  # source, target, lag
Array = npt.NDArray[np.float64]


def collect(found: Discovery, windows: Windows) -> dict[str, Any]:
    """Gather what the page shows beyond the graph; `windows` are all windows of the data."""
    held_out = found.forecaster.seen(windows).split(found.settings.held_out)[1]
    edges = strongest_edges(found.graph)
    look = Look(found.forecaster, found.forecaster.seen(windows), held_out)
    responses = look.responses(edges)
    influences = look.influences(edges)
    lost = look.lost_without(edges)
    return {
        "format": FORMAT,
        "time": timing(windows.panel),
        "course": course(windows.panel),
        "stretch": look.close_up(),
        "edges": [
            {"edge": list(edge), "response": r, "influence": short(i), "lost": short(loss)}
            for edge, r, i, loss in zip(edges, responses, influences, lost, strict=True)
        ],
        "domains": _domain_spans(windows),
        "origin": origin(),
    }


def strongest_edges(graph: LaggedGraph) -> list[Edge]:
    """The edges that get curves: those of the graph, then those of its domains, strongest first."""
    place = {name: i for i, name in enumerate(graph.variables)}
    tables = [graph.edges, *(part.edges for part in graph.domains.values())]
    wanted = {
        (place[source], place[target], int(lag)): None
        for table in tables
        for source, target, lag in zip(table["source"], table["target"], table["lag"], strict=True)
        if lag > 0  # a forecaster does not see the row it predicts
    }
    return list(wanted)[:MOST_EDGES]


@dataclass(frozen=True, eq=False)
class Look:
    """A fitted forecaster beside the windows it is looked at with."""

    forecaster: Forecaster
    windows: Windows
    held_out: Windows

    @torch.no_grad()
    def responses(self, edges: Sequence[Edge]) -> list[dict[str, Any]]:
        """Mean forecast of the target as the source is set to quantiles of its values."""
        rounds = max(len(edges), 1) * GRID
        past = _spread(self.windows, self._affordable(RESPONSE_WINDOWS, rounds))[:, :-1]
        shares = torch.linspace(0.01, 0.99, GRID)
        grid = torch.quantile(_spread(self.windows, 2000)[:, -1], shares, dim=0)  # (grid, variable)
        curves = []
        for source, target, lag in edges:
            changed = past.repeat(GRID, 1, 1)
            changed[:, -lag, source] = grid[:, source].repeat_interleave(len(past))
            forecast = self._forecast(changed, target).view(GRID, len(past)).mean(1)
            curves.append(
                {"x": self._units(grid[:, source], source), "y": self._units(forecast, target)}
            )
        return curves

    def influences(self, edges: Sequence[Edge]) -> Array:
        """Mean |d forecast / d input| in BINS equal stretches of the rows, (edge, bin)."""
        per_bin = self._affordable(BIN_WINDOWS, BINS * 3 * self.forecaster.n_variables)
        cuts = np.linspace(0, self.windows.panel.rows, BINS + 1)
        values = np.full((len(edges), BINS), np.nan)
        if not edges:
            return values
        source, target, lag = np.array(edges).T
        for bin_ in range(BINS):
            inside = np.flatnonzero(
                (self.windows.rows >= cuts[bin_]) & (self.windows.rows < cuts[bin_ + 1])
            )
            if len(inside):
                past = _spread(self.windows.at(inside), per_bin)[:, :-1]
                slopes = self.forecaster.jacobian(past).detach().abs().mean(0).numpy()
                values[:, bin_] = slopes[target, -lag, source]
        return values

    @torch.no_grad()
    def lost_without(self, edges: Sequence[Edge]) -> Array:
        """Relative growth of the held-out squared error when the input is its mean, (edge,)."""
        batch = _spread(self.held_out, self._affordable(LOSS_WINDOWS, max(len(edges), 1)))
        past, truth = batch[:, :-1], self.forecaster.following(batch)
        before = (self.forecaster(past) - truth).square().mean(0)
        growth = np.full(len(edges), np.nan)
        for place, (source, target, lag) in enumerate(edges):
            without = past.clone()
            without[:, -lag, source] = 0.0  # standardised: the mean
            after = (self._forecast(without, target) - truth[:, target]).square().mean()
            growth[place] = float(after / before[target].clamp(min=1e-12) - 1)
        return growth

    @torch.no_grad()
    def close_up(self) -> dict[str, Any]:
        """A stretch of held-out rows: values with `max_lag` rows before, forecasts, their error."""
        chosen = stretch(self.windows, self.held_out)
        near = self.held_out.at(chosen)
        forecast = self.forecaster(near.draw(np.arange(len(near)))[:, :-1])
        batch = _spread(self.held_out, self._affordable(5 * LOSS_WINDOWS, 1))
        error = self.forecaster(batch[:, :-1]) - self.forecaster.following(batch)
        start, end = int(near.rows[0]), int(near.rows[-1]) + 1
        panel, scale = self.windows.panel, self.windows.scale
        values = np.asarray(panel.values[start - self.windows.max_lag : end], dtype=np.float64)
        return {
            "values": short(values.T),  # (variable, max_lag + row)
            "forecast": short((forecast.numpy() * scale.sd + scale.mean).T),  # (variable, row)
            "error_sd": short(error.numpy().std(0) * scale.sd),  # (variable,)
            "ticks": ticks(panel, start, end),
        }

    def _forecast(self, past: Tensor, target: int) -> Tensor:
        """Forecast of one target, (batch,), asking only the model that makes it."""
        model = self.forecaster
        if isinstance(model, Choice):
            model = cast(Forecaster, model.members[model.settings.kinds[target]])
        past = past if model.domains else model.inputs(past)
        return torch.cat([model(part)[:, target] for part in past.split(2048)])

    def _affordable(self, wanted: int, rounds: int) -> int:
        """How many windows `rounds` evaluations may each use; the same on every machine."""
        cost = sum(values.numel() for values in self.forecaster.state_dict().values())
        if any(isinstance(module, Transformer) for module in self.forecaster.modules()):
            cost *= self.windows.shape[0] * self.windows.shape[1]  # every input is a token
        return int(np.clip(WORK / (cost * rounds), 4, wanted))

    def _units(self, values: Tensor, variable: int) -> Any:
        scale = self.windows.scale
        return short(values.numpy() * scale.sd[variable] + scale.mean[variable])


def _spread(windows: Windows, count: int) -> Tensor:
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
