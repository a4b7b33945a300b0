"""`found.plot`: the figures of a run for papers, each drawn into matplotlib axes and returned."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap

from forecause.effects.attribution import attribution_of_run
from forecause.errors import InputError
from forecause.forecast.comparison import chosen_losses
from forecause.graph.axes import by_lag
from forecause.graph.lagged import LaggedGraph
from forecause.report import drawing
from forecause.report.content import check_same_variables
from forecause.report.drawing import COLOURS, plain
from forecause.report.words import delay_unit

if TYPE_CHECKING:
    from forecause.result import Result

INTERVENTION_WORK = 40_000  # forecasts that the interventions plot may ask for
SEPARATE_LAGS = 6  # up to this many lags each get their own histogram


class Plots:
    """Every plot takes `axes` to draw into, or makes a figure, and returns the axes."""

    def __init__(self, run: Result) -> None:
        self.run = run

    def graph(self, axes: Axes | None = None, *, self_links: bool = True) -> Axes:
        """The summary graph: one arrow per pair, labelled with its lags."""
        axes = _axes(axes, (6.5, 5.0))
        unit = delay_unit(self.run.timing)
        drawing.summary_graph(axes, self.run.graph, self_links, unit)
        return axes

    def timegraph(self, axes: Axes | None = None) -> Axes:
        """The graph unrolled in time: columns t - max_lag .. t, an arrow per edge."""
        graph = self.run.graph
        axes = _axes(axes, (1.6 * graph.max_lag + 3.0, 0.45 * len(graph.variables) + 1.2))
        drawing.time_graph(axes, graph)
        return axes

    def heatmap(
        self,
        axes: Axes | None = None,
        *,
        values: str = "relevance",
        lag: int | None = None,
        truth: LaggedGraph | None = None,
    ) -> Axes:
        """A statistic of every candidate, target x (lag, source), or of one lag.

        A triangle in the top left corner marks a predicted edge, in the top right a true one.
        `values` names a variable of `found.relevance`, such as mean_rank or sd_rank.
        """
        graph = self.run.graph
        if truth is not None:
            check_same_variables(graph, truth, "true graph")
        shown = self._statistic(values)
        if lag is not None and lag not in shown["lag"]:
            raise InputError(f"The lag must be one of 1..{graph.max_lag}, found {lag}.")
        lags = [lag] if lag is not None else [int(value) for value in shown["lag"].values]
        count = len(graph.variables)
        axes = _axes(axes, (min(0.32 * count * len(lags) + 2.2, 14.0), min(0.32 * count + 1.6, 9)))
        drawing.heatmap(axes, shown.sel(lag=lags), graph, truth, values)
        return axes

    def uncertainty(self, axes: Axes | None = None, *, truth: LaggedGraph | None = None) -> Axes:
        """Mean rank of every candidate over the samples against the sd of its rank."""
        mean, sd = self._statistic("mean_rank"), self._statistic("sd_rank")
        axes = _axes(axes, (5.0, 4.0))
        drawing.candidates(axes, mean, sd, self.run.graph, truth)
        axes.set(xlabel="mean rank over samples (highest: strongest)", ylabel="sd of the rank")
        return axes

    def strengths(self, axes: Axes | None = None, *, bins: int = 25) -> Axes:
        """Histograms of the candidates' scores by lag; ticks below mark the chosen edges."""
        scores = self.run.scores
        lags = [int(lag) for lag in scores["lag"].values]
        groups = {f"lag {lag}": [lag] for lag in lags}
        if len(lags) > SEPARATE_LAGS:
            groups = {"lag 1": lags[:1], f"lags 2 to {lags[-1]}": lags[1:]}
        axes = _axes(axes, (5.5, 3.8))
        drawing.histograms(axes, scores, groups, self.run.graph, bins)
        return axes

    def interventions(self, axes: Axes | None = None) -> Axes:
        """Effect of raising an input by one sd against its score, over the run's kept windows."""
        from forecause.forecast.attribution.readouts import VariableRelevance, intervention

        sample, scores = self.run.data.sampled, self.run.scores
        inputs = scores.sizes["source"] * scores.sizes["lag"]
        count = max(min(len(sample), INTERVENTION_WORK // inputs), 8)
        model = self.run.forecaster
        signed = intervention(model, sample[:count])
        if model.labels:
            columns = VariableRelevance.of(model)
            signed = columns.of_variables(columns.signed(signed))
        effect = np.abs(signed).mean(0, dtype=np.float64)  # (target, step, source)
        changes = scores.copy(data=by_lag(effect))
        axes = _axes(axes, (5.0, 4.0))
        drawing.candidates(axes, scores, changes, self.run.graph, None)
        axes.set(xscale="log", yscale="log")
        axes.set(xlabel="score", ylabel="mean |change| of the forecast (sd)")
        axes.set_title(f"rank correlation {_rank_correlation(scores, changes):.2f}", fontsize=10)
        return axes

    def forecast(self, variable: str | None = None, axes: Axes | None = None) -> Axes:
        """Held-out rows of a variable (the best forecast one by default) with a 90 % interval."""
        near = self.run.evidence.get("stretch")
        if near is None:
            raise InputError("This run keeps no held-out stretch to draw; discover it again.")
        names = self.run.data.variables
        if variable is not None and variable not in names:
            raise InputError(f"Unknown variable {variable!r}; choose one of {', '.join(names)}.")
        place = names.index(variable) if variable is not None else self._best_forecast()
        axes = _axes(axes, (7.0, 2.8))
        drawing.forecast(axes, near, place, self.run.graph.max_lag)
        axes.set_ylabel(drawing.plain(names[place]))
        return axes

    def attribution(
        self,
        target: str,
        axes: Axes | None = None,
        *,
        rows: slice | None = None,
        bins: int | None = 100,
        most: int = 12,
    ) -> Axes:
        """The inputs that mattered most for the forecast of a target, and when.

        Means over bins of rows; with `bins=None`, the signed contribution in every row.
        """

        run = attribution_of_run(self.run, target, rows, bins=bins)
        inputs = min(most, run.sizes["source"] * run.sizes["lag"])
        axes = _axes(axes, (9.0, 0.28 * inputs + 1.2))
        attribution(axes, run, most)
        return axes

    def _statistic(self, name: str) -> xr.DataArray:
        known = [str(key) for key in self.run.relevance.data_vars]
        if name not in known:
            raise InputError(f"Unknown statistic {name!r}; choose one of {', '.join(known)}.")
        return self.run.relevance[name]

    def _best_forecast(self) -> int:
        return int(np.argmin(chosen_losses(self.run.losses).to_numpy()))


def _axes(axes: Axes | None, size: tuple[float, float]) -> Axes:
    """The given axes, or those of a new figure that notebooks show."""
    if axes is not None:
        return axes
    from matplotlib import pyplot as plt

    return plt.subplots(figsize=size, layout="constrained")[1]


def _rank_correlation(one: xr.DataArray, other: xr.DataArray) -> float:
    from scipy.stats import spearmanr

    result: Any = spearmanr(one.values.ravel(), other.values.ravel())
    return float(result.statistic)


SIGNED = LinearSegmentedColormap.from_list(
    "signed", [COLOURS["lowers"], "white", COLOURS["raises"]]
)
TICKS = 6


def attribution(axes: Axes, run: xr.Dataset, most: int = 12) -> None:
    """The strongest inputs of a target, strongest above, along time.

    `found` comes from attribute.over_time. Single rows show the signed contribution; bins, in
    which signs cancel, its mean size.
    """
    single = bool((run["windows"] == 1).all())
    values = run["contribution" if single else "magnitude"].stack(input=("source", "lag"))
    strength = run["magnitude"].mean("time").stack(input=("source", "lag"))
    shown = values.isel(input=np.argsort(-strength.values, kind="stable")[:most])
    picture = shown.transpose("input", "time").values
    top = float(np.abs(picture).max()) or 1.0
    image = axes.imshow(
        picture,
        cmap=SIGNED if single else "Blues",
        vmin=-top if single else 0.0,
        vmax=top,
        aspect="auto",
        interpolation="nearest",
    )
    readout = str(run.attrs["readout"])
    what = "contribution (sd)" if readout == "input-gradient" else readout
    label = what if single else f"mean size of {what}"
    axes.figure.colorbar(image, ax=axes, label=label, pad=0.01, fraction=0.04)
    names = [f"{plain(str(source))}, lag {lag}" for source, lag in shown["input"].values]
    axes.set_yticks(range(len(names)), names, fontsize=8)
    columns = np.unique(np.linspace(0, picture.shape[1] - 1, TICKS).astype(np.int64))
    axes.set_xticks(columns, _labels(run["time"].values[columns]), fontsize=8)
    axes.set_xlabel("time" if np.issubdtype(run["time"].dtype, np.datetime64) else "row")
    series = run["series"].values
    for border in np.flatnonzero(series[1:] != series[:-1]):
        axes.axvline(float(border) + 0.5, color="#18212c", linewidth=1)
    axes.set_title(f"what moves the forecast of {plain(str(run.attrs['target']))}", fontsize=10)


def _labels(time: npt.NDArray[np.generic]) -> list[str]:
    """Dates without a time of day where none of them has one."""
    if not np.issubdtype(time.dtype, np.datetime64):
        return [plain(str(moment)) for moment in time]
    stamps = time.astype("datetime64[m]")
    whole_days = bool((stamps == stamps.astype("datetime64[D]")).all())
    unit = "datetime64[D]" if whole_days else "datetime64[m]"
    return [str(stamp).replace("T", " ") for stamp in stamps.astype(unit)]
