"""Interventions on a fitted forecaster: the effect of one input, and the future under an action.

What comes out is causal only as far as the forecaster's inputs hold every common cause of what
is set and what is watched; CAVEAT says so with every result.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch
from torch import Tensor

from forecause.data.sampling import rows_to_come
from forecause.data.windows import Windows
from forecause.diagnostics.power import noise_sd
from forecause.effects.intervals import COLUMNS, LEVEL, UNKNOWN, Interval, average_effect
from forecause.errors import InputError
from forecause.forecast.forecaster import roll
from forecause.result import Result

if TYPE_CHECKING:
    from forecause.data.variables import Label

CAVEAT = (
    "Holds if every common cause of the variable that is set and of what it drives is among the "
    "columns, and if the forecaster was right about values like these."
)

BANDS = (80, 95)  # per cent
BAND_DRAWS = 2_000
MOST_STEPS = 5_000  # which take seconds
MOST_DRAWN = 4_000_000  # steps x futures: 2,000 steps with their bands
MOST_CELLS = 10**8  # steps x futures x columns, of 12 bytes or more
ENOUGH_NOISE = 40  # windows of a domain whose errors stand for it

Array = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Effect:
    """How a forecast moves when one earlier value is raised by one standard deviation.

    In the data's own units. `change` is the average over the rows of the data, per standard
    deviation of the source, with a confidence interval from `low` to `high`; `samples` holds what
    the forecaster says in every window that was tried.
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
            f"{self.lag}, {interval})"
        )


@torch.no_grad()
def effect(found: Result, source: str, target: str, lag: int) -> Effect:
    """Raise `source`, `lag` rows back, by one sd in windows from all over the data."""
    cause, outcome = _number_place(found, source), _number_place(found, target)
    if not 1 <= lag <= found.graph.max_lag:
        raise InputError(f"The lag must lie between 1 and {found.graph.max_lag}, found {lag}.")
    window = found.data.sampled
    raised = window.past.clone()
    raised[:, -lag, cause] += 1.0  # inputs are standardised
    before, after = (found.forecaster(past, domain=window.domain) for past in (window.past, raised))
    change = (after - before)[:, outcome].double().numpy()
    sd = found.data.sd
    interval = _interval(found, source, target, lag)
    return Effect(source, target, lag, float(sd[cause]), change * sd[outcome], *interval)


def _interval(found: Result, source: str, target: str, lag: int) -> Interval:
    """As the graph has it; of what is no edge, from the data, where it is at hand."""
    edges = found.graph.edges
    own = (edges["source"] == source) & (edges["target"] == target) & (edges["lag"] == lag)
    if own.any() and COLUMNS[0] in edges:
        return Interval(*edges.loc[own, list(COLUMNS)].to_numpy(dtype=float)[0])
    windows = found.windows
    if windows is None:
        try:
            windows = Windows.of(found.left_of(), found.graph.max_lag)
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

    Without `draws` the noise is left out; with them, that many noisy futures are drawn, and the
    index has the levels draw and step. A variable of labels has a column variable=level for each
    of its levels: its probability, or in a draw 1 for the level that was drawn and 0 for others.
    """
    _check_size(steps, draws, len(found.data.columns))
    place = _series_place(found, series)
    held = _held(found, do or {}, steps, place)  # (step, column), NaN where nothing is held
    past, domain = _latest(found, series)
    past, domain = past.expand(max(draws, 1), -1, -1), domain.expand(max(draws, 1))
    variables = len(found.data.columns)
    noise = torch.zeros(steps, max(draws, 1), variables)
    chance = torch.Generator().manual_seed(seed)
    if draws:
        past_noise = _past_noise(found, int(domain[0]))
        drawn = torch.randint(len(past_noise), noise.shape[:2], generator=chance)
        noise = past_noise[drawn]

    def happens(step: int, forecast: Tensor) -> Tensor:
        following = forecast + noise[step]
        for label in found.forecaster.labels:
            levels = label.probabilities(forecast[:, label.columns])
            if draws:
                drawn = torch.multinomial(levels, 1, generator=chance)
                levels = torch.zeros_like(levels).scatter_(1, drawn, 1.0)
            following[:, label.columns] = label.standardised(levels)
        return torch.where(held[step].isnan(), following, held[step].nan_to_num())

    rolled = roll(found.forecaster, past, steps, happens, domain)
    values = rolled.double().numpy() * found.data.sd + found.data.mean
    if found.data.course is not None:
        values = found.data.course.restored(place, values)
    table = pd.DataFrame(
        values.reshape(-1, variables),
        index=_index(found, place, steps, draws),
        columns=list(found.data.columns),
    )
    table.attrs["caveat"] = CAVEAT
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
    the past, as large as on held-out rows. A level of a label has a probability and no band.
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
    table.attrs["caveat"] = CAVEAT
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


def _past_noise(found: Result, domain: int) -> Tensor:
    """What the forecaster got wrong in the kept windows, (window, column), standardised.

    All variables of a window together, since their noise may be related; scaled to the error on
    held-out rows, which is larger. Of the same domain, where there are enough windows of it.
    """
    window = found.data.sampled
    errors = (window.target - found.forecaster.forecast(window)).double()
    if window.domain is not None and (window.domain == domain).sum() >= ENOUGH_NOISE:
        errors = errors[window.domain == domain]
    errors = errors - errors.mean(0)
    coding = found.data.coding
    size = torch.from_numpy(noise_sd(found.losses)[coding.of_column])
    return (errors * (size / errors.std(0).clamp(min=1e-12)).clamp(min=1.0)).float()


def variable_place(found: Result, name: str) -> int:
    """The variable's index, or an InputError that lists the names."""
    names = found.data.variables
    if name not in names:
        raise InputError(f"Unknown variable {name!r}; choose one of {', '.join(names)}.")
    return names.index(name)


def _number_place(found: Result, name: str) -> int:
    """The column of a variable that is a number."""
    place = variable_place(found, name)
    if found.data.coding.label(place):
        raise InputError(
            f"{name!r} holds labels, which cannot be raised by a standard deviation; compare "
            "futures in which it is held at one level or another (simulate_do)."
        )
    return int(found.data.coding.first[place])


def _held(found: Result, do: Mapping[str, Any], steps: int, series: int) -> Tensor:
    """Standardised values that variables are held at, (step, column)."""
    held = np.full((steps, len(found.data.columns)), np.nan)
    mean, sd = found.data.mean, found.data.sd
    for name, values in do.items():
        label = found.data.coding.label(variable_place(found, name))
        if label is not None:
            columns = label.columns
            held[:, columns] = (_held_levels(label, values, steps) - mean[columns]) / sd[columns]
            continue
        place = _number_place(found, name)
        path = np.asarray(values, dtype=np.float64)
        if path.ndim > 1 or (path.ndim == 1 and len(path) != steps):
            raise InputError(
                f"{name!r} must be held at one number or at {steps} numbers, one per step; found "
                f"an array of shape {path.shape}."
            )
        if found.data.course is not None:
            path = found.data.course.taken_from(series, place, np.broadcast_to(path, steps))
        held[:, place] = (path - mean[place]) / sd[place]
    return torch.from_numpy(held.astype(np.float32))


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


def _latest(found: Result, series: str | None) -> tuple[Tensor, Tensor]:
    """The standardised end of a series, (1, max_lag, column), and the index of its domain, (1,)."""
    data, place = found.data, _series_place(found, series)
    end = data.latest[place]
    if np.isnan(end).any():
        raise InputError(
            f"The last {len(end)} rows of the series hold missing values, so there is nothing "
            "to forecast from; fill them (interpolate) or drop the incomplete rows."
        )
    past = ((end - data.mean) / data.sd).astype(np.float32)
    domain = data.latest_domain[place] if data.latest_domain else 0
    return torch.from_numpy(past)[None], torch.tensor([domain])


def _index(found: Result, series: int, steps: int, draws: int) -> pd.Index:
    """The times to come, where the data has times; the numbers of the steps otherwise."""
    numbers = range(1, steps + 1)
    if not draws:
        times = rows_to_come(found.timing, series, steps)
        return pd.Index(numbers, name="step") if times is None else times
    return pd.MultiIndex.from_product([range(1, draws + 1), numbers], names=["draw", "step"])
