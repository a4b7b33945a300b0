"""Discovery: what a run found, and what can be done with it afterwards."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pandas as pd
import xarray as xr

from forecause.common.work_sharing import one_thread
from forecause.config import (
    ForecasterSpec,
    InstantaneousName,
    ReadoutName,
    RuleName,
    SelectionRule,
)
from forecause.diagnostics.power import Learned, Power, measure_power, noise_sd
from forecause.effects.attribution import attribution_of_run
from forecause.effects.changes import Changes, changed
from forecause.effects.direct_effect import Effect, effect
from forecause.effects.explain import Explanation, explain
from forecause.effects.futures import bands as future_bands
from forecause.effects.futures import future
from forecause.effects.responses import Response, response, total_effect, variance_shares
from forecause.graph.lagged import LaggedGraph, links_among
from forecause.progress import QUIET, Progress
from forecause.refine.run import refine
from forecause.resources.workers import LOCAL, Workers
from forecause.result import Result

if TYPE_CHECKING:
    from forecause.effects.evaluate import Evaluation, Refit
    from forecause.report.plots import Plots

# Time and memory:
QUICK_REPEATS = 5  # of the power, where all forecasters are fitted in a moment


@dataclass(frozen=True, eq=False)
class Discovery(Result):
    """The graph, the scores behind it, and the forecaster they were read from.

    Attributes
    ----------
    graph : LaggedGraph
        The edges, with their scores and how sure they are.
    relevance : xarray.Dataset
        Statistics of every candidate over (target, source, lag).
    forecaster : Forecaster
        What each target keeps and what decided its edges.
    losses : pandas.DataFrame
        Held-out squared error per variable and candidate, and which was chosen.
    config : Config
        Everything that was asked for.
    findings : tuple of Finding
        What the diagnosis saw; empty is good.
    causal : Causal
        Every target fitted again on its causes; `forecast`, `effect` and `simulate_do` ask it.

    Examples
    --------
    >>> import forecause as fc
    >>> system = fc.simulate(nodes=4, max_lag=2, rows=500, seed=1)
    >>> run = fc.discover(system.frame(), max_lag=2, forecaster="linear")
    >>> list(run.graph.edges.columns[:3])
    ['source', 'target', 'lag']
    >>> run.forecast(steps=2).shape
    (2, 4)
    """

    def forecast(
        self, steps: int = 1, series: str | None = None, *, bands: bool = False
    ) -> pd.DataFrame:
        """Forecast the next steps of a series (the last one by default), in the data's units.

        A row per step, with its time where the data has times. Of a variable of labels, the
        probability of each level, in columns named variable=level. With `bands`, a line for every
        step and variable instead: forecast, low_80, high_80, low_95, high_95.
        """
        return future_bands(self, steps, series) if bands else future(self, steps, series)

    @one_thread()
    def effect(self, source: str, target: str, lag: int, *, total: bool = False) -> Effect:
        """The direct effect of raising a variable by one sd on another `lag` rows later.

        All other inputs are held, so what goes through them is left out; with `total` it counts,
        as in `response`. Either way with a 90 % interval. A level of a label, "weather=rain",
        stands in place of the other levels; as a target, its probability moves.
        """
        return (total_effect if total else effect)(self, source, target, lag)

    @one_thread()
    def response(
        self,
        source: str,
        horizon: int = 12,
        amount: float | None = None,
        held: bool = False,
        through: str | None = None,
        *,
        data: Any = None,
        seed: int = 0,
    ) -> Response:
        """The total effect of a variable on all others over time, by every path, with 90 % bands.

        The source is raised by `amount` (one standard deviation), once or, if `held`, from then
        on; a level of a label, "weather=rain", holds in place of the others. With `through`, only
        what passes that variable. A run that was loaded reads its data again for the bands, or
        takes it from `data`.
        """
        return response(self, source, horizon, amount, held, through, data, seed)

    @one_thread()
    def explain(
        self,
        event: Any = None,
        until: Any = None,
        target: str | None = None,
        *,
        data: Any = None,
        graph: Any = None,
    ) -> Explanation:
        """What caused an event: the variables at which something new entered, most likely first.

        `event` is a time or a row number, to `until`; alone, rows about it are looked at. `target`
        is the variable that gave the alarm. `data` holds the event where the run's own rows do not
        (all of it, unless an event is named); they are what is normal. `graph` replaces the run's
        graph: a LaggedGraph, or pairs (source, target), such as your services' calls.
        """
        return explain(self, event, until, target, data, graph)

    @one_thread()
    def changed(self, before: Any, after: Any) -> Changes:
        """Which links vanished, appeared or changed between two periods, and whose noise did.

        A period is a pair (start, end), a slice or 'START..END' of the run's data; a table, a
        file or another run stand for themselves.
        """
        return changed(self, before, after)

    def variance_shares(self, horizon: int = 12) -> pd.DataFrame:
        """Which sources the uncertainty of a forecast comes from: target, source, after, share."""
        return variance_shares(self, horizon)

    @one_thread()
    def simulate_do(
        self,
        do: Mapping[str, Any],
        steps: int = 1,
        series: str | None = None,
        draws: int = 0,
        seed: int = 0,
    ) -> pd.DataFrame:
        """The future of a series if some variables are held at a value, or at one per step.

        `{"oil": fc.Push(1.0)}` raises one once instead. Compare with `forecast(steps)`; the table's
        `attrs["outside"]` names what is set beyond the values of the data. `draws` futures
        with noise instead of their mean course.
        A variable of labels is held at a level; in a draw, one of its columns is 1.
        """
        return future(self, steps, series, do, draws, seed)

    def reread(
        self,
        *,
        readout: ReadoutName | None = None,
        select: RuleName | SelectionRule | None = None,
        fdr: float | None = None,
        data: Any = None,
    ) -> Discovery:
        """This run with edges by another readout, rule or error rate; nothing is trained again.

        The forecaster and its tests stay as they are; there is no causal forecaster of the new
        edges. A run that was loaded reads its data again from where it came from, or from `data`.
        """
        from forecause.method import reread

        return reread(self, {"readout": readout, "select": select, "fdr": fdr}, data)

    @one_thread()
    def refine(
        self,
        *,
        latent: bool = False,
        instantaneous: bool = False,
        method: InstantaneousName = "pcmci+",
        data: Any = None,
        progress: Progress = QUIET,
    ) -> Discovery:
        """This run with its graph refined for hidden common causes, or for effects within a row.

        A run that was loaded reads its data again from where it came from, or from `data`.
        """
        self._collect_evidence()  # of the graph as it was found
        return refine(
            self,
            latent=latent,
            instantaneous=instantaneous,
            method=method,
            data=data,
            progress=progress,
        )

    def evaluate(
        self,
        steps: int = 12,
        origins: int = 5,
        *,
        season: int | Literal["auto"] | None = "auto",
        refit: Refit = "auto",
        data: Any = None,
        progress: Progress = QUIET,
    ) -> Evaluation:
        """How well `forecast` does on rows that it was not fitted to, beside real rivals.

        Runs again on what came before each origin; see forecause.effects.evaluate.
        """
        from forecause.effects.evaluate import evaluate
        from forecause.method import run_on

        return evaluate(
            self,
            discover=run_on,
            data=data,
            steps=steps,
            origins=origins,
            season=season,
            refit=refit,
            progress=progress,
        )

    @one_thread()
    def attribution_over_time(
        self,
        target: str,
        rows: slice | None = None,
        readout: str = "input-gradient",
        *,
        bins: int | None = None,
        data: Any = None,
    ) -> xr.Dataset:
        """Which input mattered for the forecast of a target, and when: (time, source, lag)."""
        return attribution_of_run(self, target, rows, readout, bins=bins, data=data)

    @property
    def learned(self) -> Learned:
        """What can be simulated from."""
        return Learned(self.graph, self.forecaster, self.data, noise_sd(self.losses))

    @property
    def is_quick(self) -> bool:
        """Whether all forecasters of the run are fitted in a moment."""
        tried = set(self.losses.columns) - {"naive", "mean", "chosen"}
        return all(
            label in ForecasterSpec.known and ForecasterSpec.known[label].instant for label in tried
        )

    def power(
        self,
        seed: int = 0,
        repeats: int | None = None,
        progress: Progress = QUIET,
        workers: Workers = LOCAL,
    ) -> Power:
        """Which of its edges a run like this one would find again, by their strength.

        Simulates from the forecaster along the graph and rediscovers; 5 times by default where
        all forecasters are fitted in a moment, and once otherwise.
        """
        from forecause.method import rediscover

        usual = QUICK_REPEATS if self.is_quick else 1
        return measure_power(
            self.learned,
            partial(rediscover, self.config),
            seed=seed,
            repeats=usual if repeats is None else repeats,
            progress=progress,
            workers=workers,
        )

    def with_power(
        self,
        seed: int = 0,
        repeats: int | None = None,
        progress: Progress = QUIET,
        workers: Workers = LOCAL,
    ) -> Discovery:
        """This run together with its `power`, which is then saved and reported with it."""
        return replace(self, measured_power=self.power(seed, repeats, progress, workers))

    def _collect_evidence(self) -> None:
        """Gather what the page shows, once: it is not part of finding the graph."""
        if not self.evidence and self.windows is not None:
            from forecause.report.evidence import collect

            self.evidence.update(collect(self, self.windows))

    @property
    def plot(self) -> Plots:
        """Figures of this run: `plot.graph()`, `plot.heatmap()`, ...; axes in, axes out."""
        from forecause.report.plots import Plots

        self._collect_evidence()
        return Plots(self)

    @one_thread()
    def report(
        self,
        path: str | Path = "report.html",
        *,
        compare: Discovery | None = None,
        truth: LaggedGraph | None = None,
        event: Explanation | None = None,
    ) -> Path:
        """Write the one-page report, beside another run or the true graph if given.

        With `event`, what `explain` told, it has a section about the event.
        """
        from forecause.report.page import write_report

        self._collect_evidence()
        return write_report(self, Path(path), compare=compare, truth=truth, event=event)

    @one_thread()
    def save(self, folder: str | Path, *, overwrite: bool = False) -> Path:
        """Save the run, whole or not at all; `forecause.load(folder)` gives it back.

        A run of the same settings and data is replaced; anything else that is in the folder is
        an InputError, unless `overwrite` is true.
        """
        from forecause.store.run_folder import save

        self._collect_evidence()
        return save(self, Path(folder), overwrite)

    @one_thread()
    def widget(self, height: int = 780) -> Any:
        """The page inside a notebook: filter, click a link or a variable. Needs `anywidget`."""
        from forecause.report.widget import run_widget

        self._collect_evidence()
        return run_widget(self, height)

    def _repr_html_(self) -> str:
        """What a notebook without widgets shows."""
        from forecause.report.notebook import notebook_html

        return notebook_html(self)

    def _repr_mimebundle_(self, **_asked: Any) -> dict[str, Any]:
        """What a notebook shows: the page to touch where it has widgets, else the picture."""
        from forecause.report.widget import default_view

        self._collect_evidence()
        still = {"text/plain": repr(self), "text/html": self._repr_html_()}
        return {**default_view(self), **still}

    def __repr__(self) -> str:
        return (
            f"Discovery({links_among(self.graph)}, max_lag={self.graph.max_lag}, "
            f"forecaster={self.forecaster.kind!r})"
        )
