"""The future of a series, with or without an action, as one course, many draws or bands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from forecause.common.arrays import Array, Index, Single
from forecause.data.summary import rows_to_come
from forecause.effects.actions import Action, Push, action_of, outside
from forecause.effects.answering import (
    CAVEAT,
    FARTHEST,
    Models,
    caveat_of,
    check_count,
    noise_of,
)
from forecause.errors import InputError
from forecause.forecast.forecaster import Forecaster, roll
from forecause.result import Result

# Looks:
BANDS = (80, 95)  # per cent

# Time and memory:
BAND_DRAWS = 2_000
WIDTH_DRAWS = 500  # noisy futures by which the width of bands is measured
MEAN_DRAWS = 1_000  # noisy futures whose mean is the forecast of a curved forecaster
MOST_STEPS = 5_000  # which take seconds
MOST_DRAWN = 4_000_000  # steps x futures: 2,000 steps with their bands
MOST_CELLS = 10**8  # steps x futures x columns, of 12 bytes or more


def future(
    found: Result,
    steps: int,
    series: str | None = None,
    do: Mapping[str, Any] | None = None,
    draws: int = 0,
    seed: int = 0,
) -> pd.DataFrame:
    """Forecast step by step from the end of a series, some variables being held where `do` says.

    Without `draws` it is the mean of what may happen; with them, that many noisy futures, and the
    index has the levels draw and step. A variable of labels has a column variable=level for each
    of its levels: its probability, or in a draw 1 for the level that was drawn and 0 for others.

    Without an action the guarded forecaster answers. With one, what the action changes is added to
    its forecast: the difference between two futures of the causal forecaster, with and without the
    action and with the same noise. What has no path from what is held stays as it is, exactly.
    """
    _check_size(steps, draws, len(found.data.columns))
    check_count("seed", seed, least=0)
    if not isinstance(do, Mapping | None):
        example = "{'oil': 3}"
        if isinstance(do, str) and do.count("=") == 1:
            name, value = (part.strip() for part in do.split("="))
            example = f"{{{name!r}: {value}}}"
        raise InputError(f"What is held must be given by name, as {example}; found {do!r:.80}.")
    place = _series_place(found, series)
    action = action_of(found, do or {}, steps, place)
    rolls = _Rolls(found, *_latest(found, series), steps, draws, seed)
    standardised = rolls.underaction_of(action) if do else rolls.guarded
    values = in_data_units(found, place, standardised)
    correction = rolls.correction(place)
    if correction is not None:
        values += np.where(np.isnan(action.held), correction, 0.0)
    table = pd.DataFrame(
        values.reshape(-1, values.shape[-1]),
        index=_index(found, place, steps, draws),
        columns=list(found.data.columns),
    )
    for name, given in (do or {}).items():
        if name in table and not isinstance(given, Push):  # shown as it was given
            path = np.broadcast_to(np.asarray(given, dtype=np.float64), steps)
            table[name] = np.tile(path, max(draws, 1))
    table.attrs["caveat"] = caveat_of(found) if do else CAVEAT
    table.attrs["outside"] = outside(found, values, do or {})
    if found.causal is not None:
        names = found.data.variables
        table.attrs["forecast_by"] = dict(zip(names, found.causal.forecast_by, strict=True))
    return table


def bands(
    found: Result,
    steps: int,
    series: str | None = None,
    do: Mapping[str, Any] | None = None,
    levels: Sequence[int] = BANDS,
    seed: int = 0,
) -> pd.DataFrame:
    """The future with its bands, one line per step and variable: forecast, low_80, high_80, ...

    A band holds the middle of many noisy futures, whose noise is what the forecaster got wrong in
    blocks of time that it had not seen. A level of a label has a probability and no band.
    """
    _check_size(steps, BAND_DRAWS, len(found.data.columns))
    middle = future(found, steps, series, do)
    drawn = future(found, steps, series, do, BAND_DRAWS, seed)
    numbers = found.data.coding.numeric_columns
    index = pd.MultiIndex.from_product([middle.index, middle.columns])
    table = index.set_names([str(middle.index.name), "variable"]).to_frame(index=False)
    table["forecast"] = middle.to_numpy().ravel()
    futures = drawn.to_numpy().reshape(BAND_DRAWS, steps, -1)
    for level in levels:
        share = (1 - level / 100) / 2
        for name, at in (("low", share), ("high", 1 - share)):
            edge = np.full(middle.shape, np.nan)
            edge[:, numbers] = np.quantile(futures[:, :, numbers], at, axis=0)
            table[f"{name}_{level}"] = edge.ravel()
    table.attrs.update(middle.attrs)
    return table


def _check_size(steps: int, draws: int, columns: int) -> None:
    """Refuse a future that would take minutes or fill the memory."""
    for name, number, least in (("steps", steps, 1), ("draws", draws, 0)):
        check_count(f"number of {name}", number, least)
    if steps > MOST_STEPS:
        raise InputError(f"At most {MOST_STEPS:,} steps can be forecast, found {steps!r:.20}.")
    most = min(MOST_DRAWN, MOST_CELLS // columns) // max(draws, 1)
    if draws and steps > most:
        raise InputError(
            f"At most {most:,} steps of {draws:,} futures of {columns:,} columns can be drawn, "
            f"found {steps:,}."
        )


class _Rolls:
    """Futures of one series' end; the same noise whoever forecasts and whatever is held."""

    def __init__(
        self, found: Result, past: Single, domain: int, steps: int, draws: int, seed: int
    ) -> None:
        self.found, self.past, self.domain = found, past, domain
        self.steps, self.draws, self.seed = steps, draws, seed
        self.models = Models.of(found)
        nothing = np.zeros((steps, past.shape[-1]), dtype=np.float32)
        self.nothing = Action(np.full_like(nothing, np.nan), nothing)

    @cached_property
    def guarded(self) -> Single:
        """What comes without an action, (draw or 1, step, column), standardised."""
        return self.of(self.models.guarded)

    def underaction_of(self, action: Action) -> Single:
        """(draw or 1, step, column), standardised."""
        causal, guarded = self.models
        moved = self.of(causal, action)
        if causal is guarded:
            return moved
        change = moved - self.of(causal)
        following = self.guarded + change
        for label in causal.labels:
            at = (..., label.columns)
            levels = label.standardised(label.probabilities(following[at].astype(np.float64)))
            is_moved = (change[at] != 0).any(-1, keepdims=True)
            other = moved[at] if self.draws else levels
            following[at] = np.where(is_moved, other, following[at] - change[at])
        return np.where(np.isnan(action.held), following, action.held)

    def correction(self, series: int) -> Array | None:
        """What the outlook adds to the futures of the guarded forecaster, in the data's units."""
        outlook = None if self.found.causal is None else self.found.causal.outlook
        if outlook is None:
            return None
        mean = in_data_units(self.found, series, self._with(0).guarded)[0]
        moved = outlook.centre(mean, outlook.path(series, self.steps)) - mean
        if not self.draws:
            return moved[None]
        tried = in_data_units(self.found, series, self._with(WIDTH_DRAWS).guarded)
        own = in_data_units(self.found, series, self.guarded)
        wider = np.asarray(moved + (outlook.widening(tried) - 1) * (own - mean))
        for label in self.models.guarded.labels:
            wider[..., label.columns] = 0.0  # a level is drawn or not
        return wider

    def _with(self, draws: int) -> _Rolls:
        """The same futures with so many draws, of seed 0."""
        if (draws, 0) == (self.draws, self.seed):
            return self
        return _Rolls(self.found, self.past, self.domain, self.steps, draws, 0)

    def of(self, forecaster: Forecaster, action: Action | None = None) -> Single:
        """The futures that a forecaster tells, (draw or 1, step, column), standardised.

        Without draws and where it is curved, the mean of many noisy futures: a future without
        noise would be biased.
        """
        held, pushed = self.nothing if action is None else action
        is_mean = not self.draws
        is_noisy = self.draws > 0 or (self.steps > 1 and not forecaster.is_straight)
        count = self.draws or (MEAN_DRAWS if is_noisy else 1)
        rng = np.random.default_rng(self.seed)
        noise = np.zeros((self.steps, count, self.past.shape[-1]), dtype=np.float32)
        labels = forecaster.labels
        chance = rng.random((self.steps, count, len(labels)), dtype=np.float32)
        if is_noisy:
            past_noise = noise_of(self.found, forecaster, self.domain)
            noise = past_noise[_drawn_evenly(len(past_noise), self.steps, count, rng)]
        means = np.empty((1, self.steps, self.past.shape[-1]), dtype=np.float32)

        def happens(step: int, forecast: Single) -> Single:
            expected, following = forecast.astype(np.float32), forecast + noise[step]
            for place, label in enumerate(labels):
                levels = label.probabilities(forecast[:, label.columns].astype(np.float64))
                expected[:, label.columns] = label.standardised(levels)
                if is_noisy:
                    drawn = (levels.cumsum(-1)[:, :-1] < chance[step, :, [place]].T).sum(-1)
                    levels = np.eye(levels.shape[-1])[drawn]
                following[:, label.columns] = label.standardised(levels)
            free = np.isnan(held[step])
            mean = expected.mean(0, dtype=np.float64) + pushed[step]
            means[0, step] = np.where(free, mean, held[step])
            following = np.nan_to_num(following + pushed[step]).clip(-FARTHEST, FARTHEST)
            return np.where(free, following, held[step]).astype(np.float32)

        past = np.repeat(self.past[None], count, axis=0)
        domain = np.full(count, self.domain, dtype=np.int64)
        rolled = roll(forecaster, past, self.steps, happens, domain)
        return means if is_mean else rolled.astype(np.float32)


def in_data_units(found: Result, series: int, standardised: Single) -> Array:
    """Futures (draw, step, column) of a series with what time explains put back."""
    values = standardised.astype(np.float64) * found.data.sd + found.data.mean
    return values if found.data.course is None else found.data.course.restored(series, values)


def _drawn_evenly(among: int, steps: int, count: int, rng: np.random.Generator) -> Index:
    """Places (step, draw); in every step each of `among` is drawn about equally often."""
    times = -(-count // among)
    every = np.tile(np.arange(among), (steps, times))
    return rng.permuted(every, axis=1)[:, :count]


def _series_place(found: Result, series: str | None) -> int:
    """The index of a series, the last one by default."""
    names = found.data.series_names
    if series is not None and series not in names:
        raise InputError(f"Unknown series {series!r}; choose one of {', '.join(names)}.")
    return names.index(series) if series else len(names) - 1


def _latest(found: Result, series: str | None) -> tuple[Single, int]:
    """The standardised end of a series, (max_lag, column), and the index of its domain."""
    data, place = found.data, _series_place(found, series)
    end = data.latest[place]
    if np.isnan(end).any():
        raise InputError(
            f"The last {len(end)} rows of the series hold missing values, so there is nothing "
            "to forecast from; fill them (interpolate) or drop the incomplete rows."
        )
    past = ((end - data.mean) / data.sd).astype(np.float32)
    domain = data.latest_domain[place] if data.latest_domain else 0
    return past, int(domain)


def _index(found: Result, series: int, steps: int, draws: int) -> pd.Index:
    """The times to come, where the data has times; the numbers of the steps otherwise."""
    numbers = range(1, steps + 1)
    if not draws:
        times = rows_to_come(found.timing, series, steps)
        return pd.Index(numbers, name="step") if times is None else times
    return pd.MultiIndex.from_product([range(1, draws + 1), numbers], names=["draw", "step"])
