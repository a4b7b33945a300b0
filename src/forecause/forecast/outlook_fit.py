"""How the outlook is found: who forecasts several steps of each variable, and how far it errs.

The guarded forecaster is compared with one that follows the level of each variable (half
exponential smoothing, half its own changes), and with the mean of both. All learn from the early
rows, with what time explained of those alone, and forecast from many origins among the late ones.
The errors there also say how wide a band is at every step.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from forecause.common.arrays import Array, Floats, Index
from forecause.config.thresholds import thresholds
from forecause.data.panel import Panel
from forecause.data.windows import Windows
from forecause.errors import InputError
from forecause.forecast.causal import Causal, CausalForecaster
from forecause.forecast.follower import Follower, final_path, history_before
from forecause.forecast.forecaster import roll
from forecause.forecast.outlook import QUANTILE, SMOOTHING, Outlook
from forecause.forecast.refit import known_mean
from forecause.seasons.course import TimeCourse, positions_of, time_taken_out
from forecause.seasons.repeated import seasons_of

if TYPE_CHECKING:
    from forecause.config import Config

# Time and memory:
MOST_STEPS = 24  # ahead, that are measured
JUDGED_STEPS = 12  # of them, that the choice goes by
KEPT_STEPS = 200  # of a path; after them its last season is repeated
MOST_LATE = 1_000  # rows
MOST_ORIGINS, MOST_CURVED_ORIGINS = 150, 40
CURVED_DRAWS = 10  # futures of every origin whose mean is a curved model's forecast
MOST_SERIES = 20
MOST_CELLS = 20_000_000  # of forecasts held at once

# Shape of the model:
SHARES = (0.0, 0.5, 1.0)  # of what follows the level, beside the model


def with_outlook(causal: Causal, read: Panel, windows: Windows, config: Config) -> Causal:
    """The causal forecaster with its outlook; `read` is the panel before time was taken out."""
    parts = _Part.all_of(read, windows, config)
    trial = causal.trial
    if trial is None or not parts or len(parts) < len(read.series_names):
        return causal
    try:
        season = table_season(read, parts)
        model = _Model(trial, windows, _early_course(read, parts, config))
    except InputError:  # a column stands still in the early rows: nothing is known of it there
        return causal
    judged = _Judged.of([_judge(read, part, model, season) for part in parts])
    if not len(judged.actual):
        return causal
    share = judged.shares(windows)
    outlook = Outlook(
        share,
        np.stack([final_path(part.history, season, KEPT_STEPS) for part in parts]),
        *judged.spread(share),
        season,
        judged.table(windows),
    )
    by = outlook.named(list(causal.forecast_by), windows.panel.coding.first)
    return replace(causal, outlook=outlook, losses=causal.losses.assign(forecast_by=by))


def table_season(read: Panel, parts: list[_Part]) -> int:
    """The season in rows that most variables have, of those that have one; else 1."""
    early = read.at_rows(np.concatenate([np.arange(p.first, p.split) for p in parts]))
    found = seasons_of(early, "auto")[read.coding.numeric_columns]
    seasons, counts = np.unique(found[found > 1], return_counts=True)
    return int(seasons[counts.argmax()]) if len(seasons) else 1


@dataclass(frozen=True, eq=False)
class _Part:
    """The last unbroken stretch of one series."""

    series: int
    first: int  # row of the panel
    split: int  # row: where the late ones begin
    history: Array  # (row, column)

    @classmethod
    def all_of(cls, read: Panel, windows: Windows, config: Config) -> list[_Part]:
        """Of every series that is long enough; none where there are too many series."""
        if len(read.series_names) > MOST_SERIES:
            return []
        found, least = [], thresholds().choice.least_history
        _, late = windows.split(config.forecasting.held_out)
        for series, (begin, end) in enumerate(read.spans):
            if end <= begin:
                continue
            history = history_before(read, end)
            first = end - len(history)
            own = late.rows[(late.rows >= first) & (late.rows < end)]
            if len(history) < least or not len(own):
                continue
            split = max(int(own[0]), end - MOST_LATE)
            if split - first >= least // 2:
                found.append(cls(series, first, split, history))
        return found

    @property
    def late(self) -> int:
        """How many rows are late."""
        return self.first + len(self.history) - self.split


@dataclass(frozen=True, eq=False)
class _Model:
    """The guarded forecaster as fitted to the early windows."""

    forecaster: CausalForecaster
    windows: Windows
    course: TimeCourse | None  # of the early rows

    def paths(self, read: Panel, part: _Part, rows: Index, steps: int) -> Array:
        """Forecasts (origin, step, column) from rows of the panel on, in the data's units."""
        panel = read if self.course is None else self.course.applied(read)
        found = rolled(self.forecaster, self.windows, panel, rows, steps)
        if self.course is None:
            return found
        begin, end = read.spans[part.series]
        place = positions_of(read, begin, end)[rows - begin]
        last = np.asarray(read.values[rows - 1], dtype=np.float64)
        return np.stack(
            [
                self.course.restored(part.series, own, int(at), before)
                for own, at, before in zip(found, place, last, strict=True)
            ]
        )


def rolled(
    forecaster: CausalForecaster,
    windows: Windows,
    panel: Panel,
    rows: Index,
    steps: int,
    draws: int = CURVED_DRAWS,
) -> Array:
    """Mean forecasts (origin, step, column) from rows of a panel on, in its units.

    A curved model's is the mean of noisy futures, the same noise for all origins; at every step
    it sums to zero over the draws, so that few of them suffice.
    """
    scale = windows.scale
    past = (panel.values[rows[:, None] + np.arange(-windows.max_lag, 0)] - scale.mean) / scale.sd
    domain = np.zeros(len(rows)) if panel.domain is None else panel.domain[rows - 1]
    draws = 1 if forecaster.is_straight or steps == 1 else draws
    residuals = forecaster.residuals.astype(np.float64)
    rng = np.random.default_rng(0)
    noise = np.zeros((steps, draws, past.shape[2]))
    if draws > 1 and len(residuals):
        noise = residuals[rng.integers(len(residuals), size=(steps, draws))]
        noise = (noise - noise.mean(1, keepdims=True)) * np.sqrt(draws / (draws - 1))
    means = np.empty((len(rows), steps, past.shape[2]))

    def happens(step: int, forecast: Floats) -> Floats:
        futures = forecast.reshape(len(rows), draws, -1)
        means[:, step] = futures.mean(1)
        return np.nan_to_num((futures + noise[step]).reshape(forecast.shape)).astype(np.float32)

    repeated = np.repeat(past, draws, axis=0).astype(np.float32)
    roll(forecaster, repeated, steps, happens, np.repeat(domain, draws).astype(np.int64))
    return means * scale.sd + scale.mean


def _early_course(read: Panel, parts: list[_Part], config: Config) -> TimeCourse | None:
    """What time explains of the early rows alone."""
    splits = {part.series: part.split for part in parts}
    kept = [np.arange(first, splits[s]) for s, (first, _) in enumerate(read.spans)]
    return time_taken_out(read.at_rows(np.concatenate(kept)), config).course


@dataclass(frozen=True, eq=False)
class _Judged:
    """Forecasts from origins among the late rows beside what happened there."""

    actual: Array  # (origin, step, column), NaN after the end or where it was filled
    last: Array  # (origin, 1, column) the value before each origin
    model: Array  # (origin, step, column)
    follower: Array  # the same

    @classmethod
    def of(cls, parts: list[_Judged]) -> _Judged:
        """Several as one; as many steps as all have."""
        steps = min(one.actual.shape[1] for one in parts)
        names = ("actual", "last", "model", "follower")
        return cls(*(np.concatenate([getattr(p, n)[:, :steps] for p in parts]) for n in names))

    def mixed(self, share: Array | float) -> Array:
        """Absolute errors (origin, step, column)."""
        return np.abs((1 - share) * self.model + share * self.follower - self.actual)

    def errors(self, share: float) -> Array:
        """(column,) relative to the last value's: mean of that of the next step and of all.

        NaN for what did not move.
        """
        steps = slice(0, JUDGED_STEPS)
        own, naive = self.mixed(share)[:, steps], np.abs(self.last - self.actual)[:, steps]
        with np.errstate(invalid="ignore", divide="ignore"):
            ratio = known_mean(own[:, 0]) / known_mean(naive[:, 0])
            ratio_all = known_mean(own, (0, 1)) / known_mean(naive, (0, 1))
        mean = (ratio + ratio_all) / 2
        return np.where(np.isfinite(mean), mean, np.nan)

    def shares(self, windows: Windows) -> Array:
        """The follower's (column,): that of least error, if it is clearly less than the model's."""
        errors = np.stack([self.errors(share) for share in SHARES])  # (share, column)
        best = np.nan_to_num(errors, nan=np.inf).argmin(0)
        with np.errstate(invalid="ignore", divide="ignore"):
            gain = 1 - np.take_along_axis(errors, best[None], 0)[0] / errors[0]
        chosen = np.where(gain > thresholds().choice.least_gain_of_level, best, 0)
        is_number = np.isin(np.arange(len(best)), windows.panel.coding.numeric_columns)
        return np.array(SHARES)[np.where(is_number, chosen, 0)]

    def spread(self, share: Array) -> tuple[Array, Array]:
        """The size of errors (step, column), and independent origins (step,)."""
        errors = self.mixed(share)
        known = np.asarray(~np.isnan(errors).all(0))
        size = np.full(known.shape, np.nan)
        count = (~np.isnan(errors).all(2)).sum(0) / np.arange(1, known.shape[0] + 1)
        for step, origins in enumerate(np.maximum(count, 1)):
            level = min(QUANTILE * (1 + 0.5 / origins), 1.0)
            own = known[step]
            size[step, own] = np.nanquantile(errors[:, step, own], level, axis=0)
        return size, count

    def table(self, windows: Windows) -> pd.DataFrame:
        """Relative errors per variable."""
        coding, names = windows.panel.coding, ("model", "model and smoothing", SMOOTHING)
        values = {n: self.errors(s)[coding.first] for n, s in zip(names, SHARES, strict=True)}
        return pd.DataFrame(values, index=pd.Index(coding.variables, name="variable")).fillna(1.0)


def _judge(read: Panel, part: _Part, model: _Model, season: int) -> _Judged:
    """Both forecasts from origins of one series."""
    steps = int(np.clip(part.late // 4, 1, MOST_STEPS))
    is_straight = model.forecaster.is_straight
    most = MOST_ORIGINS if is_straight else MOST_CURVED_ORIGINS
    most = int(np.clip(MOST_CELLS // (steps * part.history.shape[1]), 5, most))
    complete = ~read.incomplete
    end = part.first + len(part.history)
    rows = np.arange(part.split, end)
    lag = model.windows.max_lag
    has_past = np.array(
        [row - lag >= part.first and complete[row - lag : row].all() for row in rows]
    )
    rows = rows[has_past]
    rows = rows[np.unique(np.linspace(0, len(rows) - 1, most).astype(int))] if len(rows) else rows
    values = np.full((len(rows), steps, part.history.shape[1]), np.nan)
    for place, row in enumerate(rows):
        happened = np.asarray(read.values[row : min(row + steps, end)], dtype=np.float64)
        if read.filled is not None:
            happened = np.where(read.filled[row : row + len(happened)], np.nan, happened)
        values[place, : len(happened)] = happened
    if not len(rows):
        return _Judged(values, values[:, :1], values, values)
    origins = rows - part.first
    follower = Follower.fitted(part.history[: part.split - part.first], season)
    return _Judged(
        values,
        part.history[origins - 1][:, None],
        model.paths(read, part, rows, steps),
        follower.paths(part.history, origins, steps),
    )
