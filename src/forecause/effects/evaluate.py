"""Rolling-origin evaluation: how good forecasts are on rows that came after the fit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd

from forecause.common.arrays import Array, Index
from forecause.common.bounded import is_whole
from forecause.common.work_sharing import one_thread
from forecause.config import Config
from forecause.config.thresholds import thresholds
from forecause.data.panel import Panel
from forecause.data.windows import Windows
from forecause.errors import InputError
from forecause.forecast.follower import Follower, final_path, history_before
from forecause.forecast.outlook_fit import rolled
from forecause.progress import QUIET, Progress
from forecause.regression.autoregression import Autoregression
from forecause.result import Result
from forecause.seasons.course import differenced, positions_of
from forecause.seasons.repeated import Season, naive_error, repeated, seasons_of

METHODS = (
    "forecaster",
    "var",
    "var in differences",
    "seasonal naive",
    "drift",
    "last value",
    "mean",
)
OURS, REFERENCE = "forecaster", "seasonal naive"

# Time and memory:
DRAWS = 300  # futures whose mean is the forecast of a curved model

# Shape of the model:
USUAL_LAGS = 12  # most of a VAR, per (rows / 100) ** 0.25

Refit = Literal["auto", "first", "every"]
Discover = Callable[[Panel, Config, Progress], Result]
"""Runs the whole method on a panel."""


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Forecasts of every method from every origin beside what happened, and their errors."""

    forecasts: pd.DataFrame  # series, row (first to forecast), variable, step, method, forecast …
    seasons: dict[str, int]  # rows of a season for each variable; 1 where there is none
    scale: dict[str, float]  # mae of seasonal naive before the first origin; see mase
    notes: tuple[str, ...] = ()

    @property
    def table(self) -> pd.DataFrame:
        """Errors by variable, step and method; see `summary` for the columns."""
        return self._errors(["variable", "step", "method"])

    @property
    def summary(self) -> pd.DataFrame:
        """Errors by variable and method, over all steps.

        mae and rmse in the data's units; mase: mae relative to that of seasonal naive one season
        ahead before the first origin; skill: 1 - mae / mae of seasonal naive on the same rows.
        """
        return self._errors(["variable", "method"])

    @property
    def sentence(self) -> str:
        """What came out, in words."""
        data = self.forecasts
        error = (data["forecast"] - data["actual"]).abs() / data["variable"].map(self.scale)
        origins = data.assign(error=error).pivot_table("error", ["series", "row"], "method")
        size = origins.mean()  # by method
        rival = str(size.drop(OURS).idxmin())
        won = int((origins[OURS] < origins[rival]).sum())
        seasonal = max(self.seasons.values()) > 1
        naive = "seasonal naive's" if seasonal else "the last value's, there being no season"
        return (
            f"Up to {data['step'].max()} rows ahead from {len(origins)} origins, the forecaster's "
            f"mean absolute error is {_compared(size[OURS], size[rival])} that of its best rival, "
            f"the {rival} (smaller at {won} of {len(origins)} origins), and "
            f"{_compared(size[OURS], size[REFERENCE])} {naive}."
        )

    def __repr__(self) -> str:
        return f"Evaluation({self.sentence})"

    def _errors(self, kept: list[str]) -> pd.DataFrame:
        """Means for each of `kept`; what has no actual value does not count."""
        error = self.forecasts["forecast"] - self.forecasts["actual"]
        sizes = self.forecasts[kept].assign(mae=error.abs(), rmse=error**2, count=error)
        how = {"count": "count", "mae": "mean", "rmse": "mean"}
        found = sizes.groupby(kept, sort=False).agg(how).reset_index()
        found["rmse"] **= 0.5
        found["mase"] = found["mae"] / found["variable"].map(self.scale)
        reference = found["mae"].where(found["method"] == REFERENCE)
        others = [found[name] for name in kept if name != "method"]
        found["skill"] = 1 - found["mae"] / reference.groupby(others).transform("max")
        return found


@one_thread()
def rolling_origin(
    panel: Panel,
    max_lag: int | None = None,
    *,
    discover: Discover,
    steps: int = 12,
    origins: int = 5,
    season: Season = "auto",
    refit: Refit = "auto",
    config: Config | None = None,
    progress: Progress = QUIET,
    **settings: Any,
) -> Evaluation:
    """Forecast `steps` rows from each of the last `origins` places of every series.

    At an origin only what came before it in each series is known: models, scale, season and
    means come from there. An origin whose past is incomplete moves back to the nearest complete
    one. `refit` at every origin or fit at the first alone; auto does the latter where models are
    slow to train. Further settings are those of `discover`, by name.

    The forecaster is the one that `forecast` asks: a run by `discover` on these rows, the graph
    included. Its rivals see the same rows: vector autoregressions by least squares in levels and in
    differences, their lags by AIC; the last season, value, and mean; and a straight line from the
    first row through the last (drift).
    """
    _check(steps, origins, season, refit)
    if config is None and season != "auto":  # the forecaster is told, too
        settings = {"season": season if season and season > 1 else "none", **settings}
    chosen = Config.of(config, max_lag=max_lag, **settings)
    asked_regimes = bool(chosen.forecasting.regimes)
    chosen = chosen.with_options(**panel.reading)  # counters found in it, too
    chosen = chosen.with_options(regimes=None)  # the one to come is not known at an origin
    quick = chosen.spec is not None and chosen.spec.instant
    every = refit == "every" or (refit == "auto" and quick)
    rounds = _rounds(
        differenced(panel) if chosen.data.difference else panel, chosen.lag, steps, origins
    )
    first = _known(panel, rounds[0].known, chosen.lag)
    seasons = seasons_of(first.panel, season)
    parts = []
    for place, each in enumerate(rounds):
        progress.step(f"forecasting from origin {place + 1} of {len(rounds)}", place / len(rounds))
        if place == 0 or every:
            known = _known(panel, each.known, chosen.lag).panel
            found = discover(known, chosen, progress)
            rivals = _autoregressions(known, int(seasons.max()))
        ours = run_forecasts(found, panel, each.rows, steps)
        simple = _simple_forecasts(panel, each, seasons, steps, rivals)
        parts.append(_tidy(panel, each.rows, np.concatenate([ours[None], simple])))
    names = panel.variables
    return Evaluation(
        pd.concat(parts, ignore_index=True),
        dict(zip(names, seasons.tolist(), strict=True)),
        dict(zip(names, naive_error(first, seasons).tolist(), strict=True)),
        _notes(panel, asked_regimes, sum(len(each.rows) for each in rounds), origins),
    )


def evaluate(found: Result, *, discover: Discover, data: Any = None, **options: Any) -> Evaluation:
    """`rolling_origin` with the settings of a run, on its data or on `data`."""
    return rolling_origin(found.panel_of(data), discover=discover, config=found.config, **options)


@dataclass(frozen=True)
class _Round:
    """One origin of every series that has one."""

    rows: Index  # (case,) the first row to forecast
    since: Index  # (case,) the first row of its series
    known: list[tuple[int, int]]  # first and end of the known rows of each series


def _rounds(panel: Panel, max_lag: int, steps: int, origins: int) -> list[_Round]:
    """Origins `steps` rows apart, counted from the end of each series, earliest first."""
    possible = Windows.of(panel, max_lag).rows
    rounds: list[_Round] = []
    used: set[int] = set()
    within = panel.rows // steps + 1  # origins further back lie before the data
    for back in range(min(origins, within), 0, -1):
        cases, known = [], []
        for first, end in _spans(panel):
            wanted = end - back * steps
            nearest = possible[: np.searchsorted(possible, wanted, side="right")][-1:]
            row = int(nearest[0]) if len(nearest) and nearest[0] >= first else None
            known.append((first, max(wanted, first) if row is None else row))
            if row is not None and row not in used:
                used.add(row)
                cases.append((row, first))
        if cases:
            rows, since = np.array(cases, dtype=np.int64).T
            rounds.append(_Round(rows, since, known))
    if not rounds:
        raise InputError(
            f"No series has {max_lag} complete rows (the largest lag) followed by {steps} to "
            "forecast; use fewer steps or a smaller lag."
        )
    return rounds


def _spans(panel: Panel) -> list[tuple[int, int]]:
    """First row and end of every series."""
    first = np.flatnonzero(np.diff(panel.series, prepend=-1)).tolist()
    return list(zip(first, [*first[1:], panel.rows], strict=True))


def _known(panel: Panel, spans: list[tuple[int, int]], max_lag: int) -> Windows:
    """The windows of these rows alone, with their own scale; a single series is not copied."""
    kept = np.concatenate([np.arange(first, end) for first, end in spans])
    try:
        known = panel.at_rows(kept)
        return Windows.of(known, max_lag)
    except InputError as error:
        reason = f"What came before an origin is not enough: {error} Or use fewer origins or steps."
        raise InputError(reason) from None


def run_forecasts(
    found: Result, panel: Panel, rows: Index, steps: int, follower: Follower | None = None
) -> Array:
    """What `forecast` of a run says from each row on, (case, step, variable).

    What follows the level is fitted anew before every row, if it is not given.
    """
    assert found.causal is not None
    assert found.windows is not None
    course, outlook = found.data.course, found.causal.outlook
    left = panel if course is None else course.applied(panel)
    if found.config.forecasting.per_series:
        left = left.with_domain(left.series, left.series_names)
    told = rolled(found.causal.guarded, found.windows, left, rows, steps, DRAWS)
    spans = panel.spans
    for case, row in enumerate(rows.tolist()):
        series = int(panel.series[row])
        if course is not None:
            position = positions_of(panel, *spans[series])[row - spans[series][0]]
            last = np.asarray(panel.values[row - 1], dtype=np.float64)
            told[case] = course.restored(series, told[case], int(position), last)
        history = history_before(panel, row)
        least = thresholds().choice.least_history
        if outlook is not None and outlook.share.any() and len(history) >= least:
            if follower is None:
                path = final_path(history, outlook.season, steps)
            else:
                path = follower.paths(history, np.array([len(history)]), steps)[0]
            told[case] = outlook.centre(told[case], path)
    return np.where(np.isnan(told), np.inf, told)  # it ran away


def _autoregressions(known: Panel, season: int) -> tuple[Autoregression, Autoregression]:
    """In levels and in differences."""
    most = max(int(USUAL_LAGS * (known.rows / 100) ** 0.25), season + 1)
    levels = np.split(np.asarray(known.values, dtype=np.float64), known.starts[1:])
    levels = [part for part in levels if len(part) > 2]
    changes = [np.diff(part, axis=0) for part in levels]
    return Autoregression.fitted(levels, most), Autoregression.fitted(changes, most)


def _simple_forecasts(
    panel: Panel,
    each: _Round,
    seasons: Index,
    steps: int,
    rivals: tuple[Autoregression, Autoregression],
) -> Array:
    """Everything but ours, (method, case, step, variable)."""
    found = np.empty((len(METHODS) - 1, len(each.rows), steps, len(panel.variables)))
    ahead = np.arange(1, steps + 1)[:, None]
    for case, (row, since) in enumerate(zip(each.rows.tolist(), each.since.tolist(), strict=True)):
        history = np.asarray(panel.values[_stretch(panel, row)[0] : row], dtype=np.float64)
        known = history_before(panel, row)
        found[0, case] = rivals[0].path(known, steps)
        changes = np.diff(known, axis=0, prepend=known[:1])
        found[1, case] = known[-1] + rivals[1].path(changes, steps).cumsum(0)
        for column, season in enumerate(seasons.tolist()):
            found[2, case, :, column] = repeated(history[:, column], season, steps)
        found[3, case] = known[-1] + ahead * (known[-1] - known[0]) / max(len(known) - 1, 1)
        found[4, case] = history[-1]
        found[5, case] = np.nanmean(panel.values[since:row], axis=0, dtype=np.float64)
    found[:2][np.isnan(found[:2])] = np.inf  # an autoregression that ran away
    return found


def _tidy(panel: Panel, rows: Index, forecasts: Array) -> pd.DataFrame:
    """Forecasts (method, case, step, variable) in long form, beside what happened if known."""
    actual, steps = np.full_like(forecasts[0], np.nan), forecasts.shape[2]
    for case, row in enumerate(rows.tolist()):
        until = min(row + steps, _stretch(panel, row)[1])
        happened = panel.values[row:until]
        if panel.filled is not None:
            happened = np.where(panel.filled[row:until], np.nan, happened)
        actual[case, : len(happened)] = happened
    levels: list[Any] = [rows, panel.variables, range(1, steps + 1), METHODS]
    names = ["row", "variable", "step", "method"]
    table = pd.MultiIndex.from_product(levels, names=names).to_frame(index=False)
    table.insert(0, "series", np.array(panel.series_names)[panel.series[table["row"]]])
    table["forecast"] = forecasts.transpose(1, 3, 2, 0).ravel()
    table["actual"] = np.repeat(actual.transpose(0, 2, 1).ravel(), len(METHODS))
    return table


def _stretch(panel: Panel, row: int) -> tuple[int, int]:
    """First row and end of the unbroken stretch that a row lies in."""
    place = int(np.searchsorted(panel.starts, row, side="right"))
    end = panel.starts[place] if place < len(panel.starts) else panel.rows
    return int(panel.starts[place - 1]), int(end)


def _compared(ours: float, theirs: float) -> str:
    if abs(ours - theirs) < 0.005 * theirs or not theirs:
        return "larger than" if ours > theirs == 0 else "about the same as"
    change = ours / theirs - 1
    return f"{abs(change):.0%} {'smaller' if change < 0 else 'larger'} than"


def _notes(panel: Panel, regimes: bool, made: int, origins: int) -> tuple[str, ...]:
    asked = origins * len(panel.series_names)
    notes = {
        f"{made} of {asked} origins were used; the others lack a complete past.": made < asked,
        "Regimes were not used: at an origin the one to come is not known.": regimes,
    }
    return tuple(note for note, holds in notes.items() if holds)


def _check(steps: int, origins: int, season: Season, refit: str) -> None:
    if not (is_whole(steps) and is_whole(origins)) or min(steps, origins) < 1:
        raise InputError(f"Steps and origins must be at least 1, found {steps} and {origins}.")
    if season not in ("auto", None) and not (isinstance(season, int) and season >= 1):
        raise InputError(f"The season must be auto, None or a number of rows, found {season!r}.")
    if refit not in ("auto", "first", "every"):
        raise InputError(f"Refit must be auto, first or every, found {refit!r}.")
