"""Rolling-origin evaluation: how good forecasts are on rows that came after the fit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from forecause.config import Config, ForecastOptions
from forecause.data.panel import Panel
from forecause.data.standardised import Scale
from forecause.data.windows import Windows
from forecause.edges.knowledge import Candidates
from forecause.errors import InputError
from forecause.forecast.forecaster import Forecaster, roll
from forecause.forecast.selection import fit_best
from forecause.progress import QUIET, Progress
from forecause.resources.fitting import fit_as_asked
from forecause.result import Result
from forecause.seasons.course import (
    TimeCourse,
    differenced,
    positions_of,
    series_spans,
    time_taken_out,
)
from forecause.seasons.repeated import Season, naive_error, repeated, seasons_of
from forecause.work_sharing import one_thread

METHODS = ("forecaster", "var", "seasonal naive", "last value", "mean")
REFERENCE = "seasonal naive"
BATCH = 512  # futures rolled together

Array = npt.NDArray[np.float64]
Rows = npt.NDArray[np.int64]
Refit = Literal["auto", "first", "every"]


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
        won = int((origins["forecaster"] < origins[REFERENCE]).sum())
        count, steps, seasonal = len(origins), data["step"].max(), max(self.seasons.values()) > 1
        naive = "seasonal naive's" if seasonal else "the last value's, there being no season"
        return (
            f"Up to {steps} rows ahead from {count} origins, the forecaster's mean absolute error "
            f"is {_compared(size['forecaster'], size[REFERENCE])} {naive} (smaller at {won} of "
            f"{count} origins) and {_compared(size['forecaster'], size['var'])} that of a VAR; "
            f"the smallest is that of the {size.idxmin()}."
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
    slow to train. Further settings are those of `discover`, by name. The VAR is the linear
    forecaster, fitted to the same rows with season and trend left in.
    """
    _check(steps, origins, season, refit)
    if config is None and season != "auto":  # the forecaster is told, too
        settings = {"season": season if season and season > 1 else "none", **settings}
    chosen = Config.of(config, max_lag=max_lag, **settings)
    if chosen.forecasting.per_series:
        panel = panel.with_domain(panel.series, panel.series_names)
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
            known = _known(panel, each.known, chosen.lag)
            models = _fit(known, chosen, progress)
        rolled = [model.forecasts(panel, each.rows, steps) for model in models]
        simple = _simple_forecasts(panel, each, seasons, steps)
        parts.append(_tidy(panel, each.rows, np.stack([*rolled, *simple])))
    names = panel.variables
    return Evaluation(
        pd.concat(parts, ignore_index=True),
        dict(zip(names, seasons.tolist(), strict=True)),
        dict(zip(names, naive_error(first, seasons).tolist(), strict=True)),
        _notes(panel, chosen, sum(len(each.rows) for each in rounds), origins),
    )


def evaluate(found: Result, *, data: Any = None, **options: Any) -> Evaluation:
    """`rolling_origin` with the settings of a run, on its data or on `data`."""
    return rolling_origin(found.panel_of(data), config=found.config, **options)


@dataclass(frozen=True)
class _Round:
    """One origin of every series that has one."""

    rows: Rows  # (case,) the first row to forecast
    since: Rows  # (case,) the first row of its series
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


@dataclass(frozen=True, eq=False)
class _Model:
    """A forecaster, the scale it knows, and what time explained of what it was fitted to."""

    forecaster: Forecaster
    scale: Scale
    course: TimeCourse | None

    def forecasts(self, panel: Panel, rows: Rows, steps: int) -> Array:
        """Forecasts from each row on, (case, step, variable), in the data's units."""
        left = panel if self.course is None else self.course.applied(panel)
        found = _rolled(self.forecaster, self.scale, left, rows, steps)
        if self.course is None:
            return found
        spans = series_spans(panel)
        for case, row in enumerate(rows.tolist()):
            series = int(panel.series[row])
            position = positions_of(panel, *spans[series])[row - spans[series][0]]
            last = np.asarray(panel.values[row - 1], dtype=np.float64)
            found[case] = self.course.restored(series, found[case], int(position), last)
        return found


def _fit(windows: Windows, chosen: Config, progress: Progress) -> list[_Model]:
    """The forecaster and the VAR, fitted to windows that end at the origin."""
    variables = windows.panel.coding.variables
    candidates = Candidates.of(chosen.edges, variables, chosen.lag)
    left = time_taken_out(windows.panel, chosen)
    own = windows if left is windows.panel else Windows.of(left, chosen.lag)
    forecaster = fit_as_asked(own, chosen, candidates, progress=progress).forecaster
    plain = ForecastOptions(
        forecaster="linear", held_out=chosen.forecasting.held_out, domain_input=False
    )
    var = fit_best(windows, plain)
    return [
        _Model(forecaster.picklable(), own.scale, left.course),
        _Model(var.forecaster, windows.scale, None),
    ]


def _rolled(model: Forecaster, scale: Scale, panel: Panel, rows: Rows, steps: int) -> Array:
    """Forecasts from each row on, (case, step, variable), in the panel's units."""
    places = rows[:, None] + np.arange(-model.max_lag, 0)
    past = (panel.values[places] - scale.mean) / scale.sd
    known = np.zeros(len(rows)) if panel.domain is None else panel.domain[rows - 1]
    past, known = past.astype(np.float32), known.astype(np.int64)  # the last known domain
    parts = [
        roll(model, past[start : start + BATCH], steps, domain=known[start : start + BATCH])
        for start in range(0, len(past), BATCH)
    ]
    forecast = np.concatenate(parts).astype(np.float64)
    ran_away = np.isnan(forecast)
    return np.where(ran_away, np.inf, forecast * scale.sd + scale.mean)


def _simple_forecasts(panel: Panel, each: _Round, seasons: Rows, steps: int) -> Array:
    """Seasonal naive, last value and mean, (method, case, step, variable)."""
    found = np.empty((3, len(each.rows), steps, len(panel.variables)))
    for case, (row, since) in enumerate(zip(each.rows.tolist(), each.since.tolist(), strict=True)):
        history = np.asarray(panel.values[_stretch(panel, row)[0] : row], dtype=np.float64)
        for column, season in enumerate(seasons.tolist()):
            found[0, case, :, column] = repeated(history[:, column], season, steps)
        found[1, case] = history[-1]
        found[2, case] = np.nanmean(panel.values[since:row], axis=0, dtype=np.float64)
    return found


def _tidy(panel: Panel, rows: Rows, forecasts: Array) -> pd.DataFrame:
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


def _notes(panel: Panel, chosen: Config, made: int, origins: int) -> tuple[str, ...]:
    asked = origins * len(panel.series_names)
    regimes = chosen.forecasting.regimes
    notes = {
        f"{made} of {asked} origins were used; the others lack a complete past.": made < asked,
        "Regimes were not used: at an origin the one to come is not known.": regimes,
    }
    return tuple(note for note, holds in notes.items() if holds)


def _check(steps: int, origins: int, season: Season, refit: str) -> None:
    if not all(isinstance(count, int) for count in (steps, origins)) or min(steps, origins) < 1:
        raise InputError(f"Steps and origins must be at least 1, found {steps} and {origins}.")
    if season not in ("auto", None) and not (isinstance(season, int) and season >= 1):
        raise InputError(f"The season must be auto, None or a number of rows, found {season!r}.")
    if refit not in ("auto", "first", "every"):
        raise InputError(f"Refit must be auto, first or every, found {refit!r}.")
