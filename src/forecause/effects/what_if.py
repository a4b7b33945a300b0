"""Questions to the causal forecaster: the direct effect of an input, the future under an action.

The causal forecaster reads the causes of every target alone, so what has no path from a variable
that is held does not move. What comes out is causal only as far as the columns hold every common
cause of what is set and what is watched; CAVEAT says so with every result.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from forecause.data.panel import column_ranges
from forecause.data.sampling import rows_to_come
from forecause.data.windows import Windows
from forecause.diagnostics.power import noise_sd
from forecause.effects.intervals import COLUMNS, LEVEL, UNKNOWN, Interval, average_effect
from forecause.errors import InputError
from forecause.forecast.causal import CausalForecaster
from forecause.forecast.forecaster import Forecaster, roll
from forecause.result import Result
from forecause.views import card, figure

if TYPE_CHECKING:
    from forecause.data.variables import Label

CAVEAT = (
    "Holds if every common cause of the variable that is set and of what it drives is among the "
    "columns, and if the forecaster was right about values like these."
)
DENSE = (
    " The run is without a causal forecaster, as of an old version or read anew: its "
    "forecaster reads all inputs, so variables without a path from what is set may move."
)

BANDS = (80, 95)  # per cent
BAND_DRAWS = 2_000
WIDTH_DRAWS = 500  # noisy futures by which the width of bands is measured
MEAN_DRAWS = 1_000  # noisy futures whose mean is the forecast of a curved forecaster
FARTHEST = 1e6  # standard deviations: a value that runs away stays a number, so 0 times it is 0
MOST_STEPS = 5_000  # which take seconds
MOST_DRAWN = 4_000_000  # steps x futures: 2,000 steps with their bands
MOST_CELLS = 10**8  # steps x futures x columns, of 12 bytes or more
ENOUGH_NOISE = 40  # windows of a domain whose errors stand for it

Array = npt.NDArray[np.float64]
Index = npt.NDArray[np.int64]
Single = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Push:
    """A variable raised once by an amount, in its own units, and then left to itself.

    Examples
    --------
    >>> import forecause as fc
    >>> system = fc.simulate(nodes=4, max_lag=2, rows=500, seed=1)
    >>> run = fc.discover(system.frame(), max_lag=2, forecaster="linear")
    >>> run.simulate_do({"X1": fc.Push(1.0)}, steps=2).shape
    (2, 4)
    """

    amount: float
    step: int = 1  # at which step ahead


class _Action(NamedTuple):
    """What is done in each step, (step, column), standardised."""

    held: Single  # NaN where nothing is held
    pushed: Single  # 0 where nothing is pushed


@dataclass(frozen=True, eq=False)
class Effect:
    """The effect of one earlier value: how a forecast moves when it is raised by one sd.

    Direct: all other values are held where they are, so what goes through other variables in
    between is left out; unless it is `total`. In the data's own units.
    `change` is the average over the rows of the data, per standard deviation of the source, with a
    confidence interval from `low` to `high`; `samples` holds what the causal forecaster says in
    every window that was tried.
    """

    source: str
    target: str
    lag: int
    shift: float  # one standard deviation of the source
    samples: Array  # (window,)
    change: float = float("nan")
    low: float = float("nan")  # of the interval; NaN where it is not known
    high: float = float("nan")
    level: float = LEVEL
    caveat: str = CAVEAT
    total: bool = False

    @property
    def mean(self) -> float:
        """Average change of the target's forecast."""
        return float(self.samples.mean())

    @property
    def sd(self) -> float:
        """How much the change differs between windows: 0 if the effect is linear."""
        return float(self.samples.std())

    def quantile(self, share: float | Sequence[float]) -> Any:
        """Quantiles of the change over the windows."""
        return np.quantile(self.samples, share)

    def __repr__(self) -> str:
        change = self.mean if np.isnan(self.change) else self.change
        interval = f"{self.level:.0%} interval {self.low:+.3g} to {self.high:+.3g}"
        if np.isnan(self.low):
            interval = "interval unknown without the data"
        return (
            f"Effect({self.source} + {self.shift:.3g} -> {self.target} {change:+.3g} after "
            f"{self.lag}, {'total' if self.total else 'direct'}, {interval})"
        )

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        change = self.mean if np.isnan(self.change) else self.change
        span = {"from": self.low, "to": self.high} if self.low == self.low else {}
        told = {"rows later": str(self.lag), f"change of {self.target}": change, **span}
        kind = "total" if self.total else "direct"
        title = (
            f"{self.source} raised by {figure(self.shift)}, one standard deviation: {kind} effect"
        )
        return card(title, [self.caveat], pd.DataFrame([told]))


class Models(NamedTuple):
    """Who answers: `causal` says what follows an action, `guarded` what comes without one."""

    causal: Forecaster
    guarded: Forecaster

    @classmethod
    def of(cls, found: Result) -> Models:
        """Those of a run; the dense forecaster where an old run has no other."""
        if found.causal is None:
            return cls(found.forecaster, found.forecaster)
        return cls(found.causal.forecaster, found.causal.guarded)


def effect(found: Result, source: str, target: str, lag: int) -> Effect:
    """The direct effect: raise `source`, `lag` rows back, by one sd in windows of all the data."""
    cause, outcome = number_place(found, source), number_place(found, target)
    if not 1 <= lag <= found.graph.max_lag:
        raise InputError(f"The lag must lie between 1 and {found.graph.max_lag}, found {lag}.")
    window, model = found.data.sampled, Models.of(found).causal
    raised = window.past.copy()
    raised[:, -lag, cause] += 1.0  # inputs are standardised
    before, after = (model(past, domain=window.domain) for past in (window.past, raised))
    change = (after - before)[:, outcome].astype(np.float64)
    sd = found.data.sd
    interval = _interval(found, source, target, lag)
    caveat = caveat_of(found)
    samples = change * sd[outcome]
    return Effect(source, target, lag, float(sd[cause]), samples, *interval, caveat=caveat)


def caveat_of(found: Result) -> str:
    """On what answers rest."""
    return CAVEAT if found.causal is not None else CAVEAT + DENSE


def _interval(found: Result, source: str, target: str, lag: int) -> Interval:
    """Read from the table of edges; for what is no edge, estimated from the data if it is there."""
    edges = found.graph.edges
    own = (edges["source"] == source) & (edges["target"] == target) & (edges["lag"] == lag)
    if own.any() and COLUMNS[0] in edges:
        return Interval(*edges.loc[own, list(COLUMNS)].to_numpy(dtype=float)[0])
    windows = found.windows
    if windows is None:
        try:
            windows = Windows.of(found.deseasonalised_panel(), found.graph.max_lag)
        except InputError:  # a loaded run whose data is gone
            return UNKNOWN
    return average_effect(found.graph, windows, source, target, lag)


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
    if not isinstance(do, Mapping | None):
        raise InputError(f"What is held must be given by name, as {{'oil': 3}}; found {do!r:.80}.")
    place = _series_place(found, series)
    action = _action(found, do or {}, steps, place)
    rolls = _Rolls(found, *_latest(found, series), steps, draws, seed)
    standardised = rolls.under_action(action) if do else rolls.guarded
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
    table.attrs["outside"] = _outside(found, values, do or {})
    if found.causal is not None:
        names = found.data.variables
        table.attrs["forecast_by"] = dict(zip(names, found.causal.forecast_by, strict=True))
    return table


class _Rolls:
    """Futures of one series' end; the same noise whoever forecasts and whatever is held."""

    def __init__(
        self, found: Result, past: Single, domain: int, steps: int, draws: int, seed: int
    ) -> None:
        self.found, self.past, self.domain = found, past, domain
        self.steps, self.draws, self.seed = steps, draws, seed
        self.models = Models.of(found)
        nothing = np.zeros((steps, past.shape[-1]), dtype=np.float32)
        self.nothing = _Action(np.full_like(nothing, np.nan), nothing)

    @cached_property
    def guarded(self) -> Single:
        """What comes without an action, (draw or 1, step, column), standardised."""
        return self.of(self.models.guarded)

    def under_action(self, action: _Action) -> Single:
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

    def of(self, forecaster: Forecaster, action: _Action | None = None) -> Single:
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
        if isinstance(number, bool) or not isinstance(number, int | np.integer):
            raise InputError(f"The number of {name} must be a whole number, found {number!r:.80}.")
        if number < least:
            raise InputError(
                f"The number of {name} must be at least {least}, found {number!r:.80}."
            )
    if steps > MOST_STEPS:
        raise InputError(f"At most {MOST_STEPS:,} steps can be forecast, found {steps!r:.20}.")
    most = min(MOST_DRAWN, MOST_CELLS // columns) // max(draws, 1)
    if draws and steps > most:
        raise InputError(
            f"At most {most:,} steps of {draws:,} futures of {columns:,} columns can be drawn, "
            f"found {steps:,}."
        )


def noise_of(found: Result, forecaster: Forecaster, domain: int) -> Single:
    """What a forecaster got wrong, (window, column), standardised, about zero.

    All variables of a window together, since their noise may be related. Of the same domain, where
    there are enough windows of it.
    """
    if isinstance(forecaster, CausalForecaster):
        errors, domains = forecaster.residuals.astype(np.float64), forecaster.residual_domain
    else:
        errors, domains = _scaled_errors(found, forecaster), found.data.sampled.domain
    if domains is not None and (domains == domain).sum() >= ENOUGH_NOISE:
        errors = errors[domains == domain]
    return np.asarray(errors - errors.mean(0), dtype=np.float32)


def _scaled_errors(found: Result, forecaster: Forecaster) -> Array:
    """Errors in the windows kept of an old run, scaled to those on held-out rows, which are
    larger."""
    window = found.data.sampled
    errors = (window.target - forecaster.forecast(window)).astype(np.float64)
    size = noise_sd(found.losses)[found.data.coding.of_column]
    return np.asarray(errors * np.maximum(size / np.maximum(errors.std(0, ddof=1), 1e-12), 1.0))


def variable_place(found: Result, name: str) -> int:
    """The variable's index, or an InputError that lists the names."""
    names = found.data.variables
    if name not in names:
        raise InputError(f"Unknown variable {name!r}; choose one of {', '.join(names)}.")
    return names.index(name)


def number_place(found: Result, name: str) -> int:
    """The column of a variable that is a number."""
    place = variable_place(found, name)
    if found.data.coding.label(place):
        raise InputError(
            f"{name!r} holds labels, which cannot be raised by a standard deviation; compare "
            "futures in which it is held at one level or another (simulate_do)."
        )
    return int(found.data.coding.first[place])


def _outside(found: Result, values: Array, do: Mapping[str, Any]) -> list[str]:
    """What is set or pushed beyond the values of the data, where forecasts are guesses."""
    if not do:
        return []
    if found.panel is None:
        if found.data.course is not None:
            return []  # how high the season was in the rows that are kept is not known
        seen = found.data.sampled.rows.astype(np.float64) * found.data.sd + found.data.mean
        low, high = seen.min((0, 1)), seen.max((0, 1))
    else:
        low, high = column_ranges(found.panel.values)
    names = found.data.columns
    return [
        name
        for place, name in enumerate(names)
        if name in do
        and bool(((values[..., place] < low[place]) | (values[..., place] > high[place])).any())
    ]


def _action(found: Result, do: Mapping[str, Any], steps: int, series: int) -> _Action:
    """What `do` asks for in each step."""
    pushes = {name: one for name, one in do.items() if isinstance(one, Push)}
    pushed = np.zeros((steps, len(found.data.columns)))
    course = found.data.course
    for name, push in pushes.items():
        place = number_place(found, name)
        if not np.isfinite(push.amount) or not 1 <= push.step <= steps:
            raise InputError(
                f"{name!r} can be pushed by a number at one of the steps 1 to {steps}, found "
                f"{push}."
            )
        size = push.amount / found.data.sd[place]
        pushed[push.step - 1, place] = size
        if course is not None and course.levels is not None and push.step < steps:
            pushed[push.step, place] = -size  # of a difference: up, and down again
    others = {name: values for name, values in do.items() if name not in pushes}
    return _Action(_held(found, others, steps, series), pushed.astype(np.float32))


def _held(found: Result, do: Mapping[str, Any], steps: int, series: int) -> Single:
    """Standardised values that variables are held at, (step, column)."""
    held = np.full((steps, len(found.data.columns)), np.nan)
    mean, sd = found.data.mean, found.data.sd
    for name, values in do.items():
        label = found.data.coding.label(variable_place(found, name))
        if label is not None:
            columns = label.columns
            held[:, columns] = (_held_levels(label, values, steps) - mean[columns]) / sd[columns]
            continue
        place = number_place(found, name)
        path = np.asarray(values, dtype=np.float64)
        if path.ndim > 1 or (path.ndim == 1 and len(path) != steps):
            raise InputError(
                f"{name!r} must be held at one number or at {steps} numbers, one per step; found "
                f"an array of shape {path.shape}."
            )
        if found.data.course is not None:
            path = found.data.course.taken_from(series, place, np.broadcast_to(path, steps))
        held[:, place] = (path - mean[place]) / sd[place]
    return held.astype(np.float32)


def _held_levels(label: Label, values: Any, steps: int) -> Array:
    """One level, or one per step, as (step, level) of 0 and 1."""
    path = [str(level) for level in np.atleast_1d(np.asarray(values, dtype=object))]
    path = path * steps if len(path) == 1 else path
    if len(path) != steps or not set(path) <= set(label.levels):
        raise InputError(
            f"{label.name!r} must be held at one of {', '.join(label.levels)}, or at {steps} of "
            f"them, one per step; found {values!r}."
        )
    return np.array([[float(one == level) for level in label.levels] for one in path])


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
