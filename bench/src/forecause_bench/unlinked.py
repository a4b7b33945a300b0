"""Families of series that look related because of time, not because one drives another.

Each family can also be drawn with a few true links, and without its disturbance, so that what the
disturbance costs can be measured.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
Stamps = npt.NDArray[np.datetime64]
Noise = Callable[[int, int, np.random.Generator], Array]
Disturbance = Callable[[Array, np.random.Generator], Array]

MAX_LAG = 5  # of the truth
BURN_IN = 500  # rows simulated before the first that is kept
USUAL_SELF = 0.5  # coefficient of a variable's own last value, where a family has no other
LINK_SIZE = (0.2, 0.4)  # smallest and largest coefficient of a true link
ROWS_OF_YEARS = 1200  # from so many rows on, an annual cycle is one of daily rows
START = np.datetime64("2015-01-01T00:00:00")
HOUR, DAY, MONTH = "h", "D", "M"


@dataclass(frozen=True)
class Family:
    """One kind of series: how it remembers, its noise, and what time adds to it."""

    self_coefficient: float = USUAL_SELF
    noise: Noise | None = None  # None: independent Gaussian
    disturb: Disturbance | None = None
    step: str = HOUR  # between rows, where there are time stamps
    counts: bool = False


def gaussian(rows: int, variables: int, rng: np.random.Generator) -> Array:
    """Independent noise of variance 1, (row, variable)."""
    return rng.standard_normal((rows, variables))


def garch(rows: int, variables: int, rng: np.random.Generator) -> Array:
    """GARCH(1, 1) with Student's t of 5 degrees of freedom, mean variance 1, (row, variable)."""
    shocks = rng.standard_t(5, (rows, variables)) / np.sqrt(5 / 3)
    variance, noise = np.ones(variables), np.empty((rows, variables))
    for row in range(rows):
        noise[row] = np.sqrt(variance) * shocks[row]
        variance = 0.05 + 0.15 * noise[row] ** 2 + 0.8 * variance
    return noise


def seasonal_noise(rows: int, variables: int, rng: np.random.Generator) -> Array:
    """Noise whose size has a daily cycle, the same for all variables."""
    size = 1 + 0.8 * np.sin(2 * np.pi * np.arange(rows) / 24)
    return np.asarray(gaussian(rows, variables, rng) * size[:, None] / np.sqrt(1.32))


def cycle(
    rows: int, variables: int, period: float, weights: list[float], rng: np.random.Generator
) -> Array:
    """A cycle of every variable with its own phase; weights are those of its harmonics."""
    angle = 2 * np.pi * np.arange(rows)[:, None] / period
    total = np.zeros((rows, variables))
    for order, weight in enumerate(weights, start=1):
        size = weight * rng.uniform(0.7, 1.3, variables)
        total += size * np.sin(order * angle + rng.uniform(0, 2 * np.pi, variables))
    return total


def annual_trend(values: Array, rng: np.random.Generator) -> Array:
    """A year and a straight trend: monthly rows, or daily ones where there are years of them."""
    rows, variables = values.shape
    period = 365.25 if rows >= ROWS_OF_YEARS else 12.0
    slope = rng.uniform(-3, 3, variables)
    trend = np.linspace(0, 1, rows)[:, None] * slope
    return values + cycle(rows, variables, period, [2.0], rng) + trend


def shared_day(values: Array, rng: np.random.Generator) -> Array:
    """A daily cycle in every variable."""
    rows, variables = values.shape
    return values + cycle(rows, variables, 24.0, [1.5], rng)


def strong_day(values: Array, rng: np.random.Generator) -> Array:
    """A daily cycle that is most of what is seen."""
    rows, variables = values.shape
    return values + cycle(rows, variables, 24.0, [4.0, 2.0], rng)


def day_and_week(values: Array, rng: np.random.Generator) -> Array:
    """A daily and a weekly cycle."""
    rows, variables = values.shape
    day = cycle(rows, variables, 24.0, [2.0, 1.0], rng)
    return values + day + cycle(rows, variables, 168.0, [2.0, 0.7], rng)


def month_with_drift(values: Array, rng: np.random.Generator) -> Array:
    """A monthly cycle and a straight trend."""
    rows, variables = values.shape
    drift = np.linspace(0, 1, rows)[:, None] * rng.uniform(-4, 4, variables)
    return values + cycle(rows, variables, 30.4375, [2.0, 0.7], rng) + drift


def common_shifts(values: Array, rng: np.random.Generator) -> Array:
    """Two to four jumps at rows that all variables share, each of its own size."""
    rows, variables = values.shape
    shifted = values.copy()
    for row in rng.choice(np.arange(rows // 10, 9 * rows // 10), rng.integers(2, 5), replace=False):
        shifted[row:] += rng.uniform(1.5, 4, variables) * rng.choice([-1, 1], variables)
    return shifted


def common_smooth_trend(values: Array, rng: np.random.Generator) -> Array:
    """One slow curve, which every variable follows to its own extent."""
    rows, variables = values.shape
    time = np.linspace(0, 1, rows)
    curve = 2 * time + np.sin(2 * np.pi * (time * rng.uniform(0.5, 1.5) + rng.uniform()))
    size = rng.uniform(1, 3, variables) * rng.choice([-1, 1], variables)
    return np.asarray(values + curve[:, None] * size)


def outliers(values: Array, rng: np.random.Generator) -> Array:
    """One cell in twenty is off by several standard deviations; the system does not notice."""
    wild = rng.uniform(5, 10, values.shape) * rng.choice([-1, 1], values.shape)
    return np.asarray(values + np.where(rng.uniform(size=values.shape) < 0.05, wild, 0.0))


def growing_cycle(values: Array, rng: np.random.Generator) -> Array:
    """A daily cycle and noise that both grow with a rising level, as in sales or passengers."""
    rows, variables = values.shape
    level = 1 + np.linspace(0, 1, rows)[:, None] * rng.uniform(1, 3, variables)
    day = cycle(rows, variables, 24.0, [1.5, 0.7], rng)
    return np.asarray(level * (8 + day + values))


FAMILIES: dict[str, Family] = {
    "white-noise": Family(0.0),
    "random-walks": Family(1.0, step=DAY),
    "ar-95": Family(0.95),
    "ar-99": Family(0.99, step=DAY),
    "annual-trend": Family(disturb=annual_trend, step=MONTH),
    "shared-day": Family(disturb=shared_day),
    "strong-day": Family(disturb=strong_day),
    "day-and-week": Family(disturb=day_and_week),
    "month-drift": Family(disturb=month_with_drift, step=DAY),
    "garch-t": Family(0.3, noise=garch, step=DAY),
    "level-shifts": Family(disturb=common_shifts),
    "smooth-trend": Family(disturb=common_smooth_trend, step=DAY),
    "counts": Family(counts=True),
    "outliers": Family(disturb=outliers),
    "growing-cycle": Family(disturb=growing_cycle),
    "seasonal-variance": Family(noise=seasonal_noise),
}


def make(
    family: str, rows: int, seed: int, links: bool = False, disturbed: bool = True
) -> tuple[Array, Mask, Stamps | None]:
    """Values (row, variable), the true edges (target, source, lag) and time stamps.

    Half of the seeds have time stamps. Without `links` the truth holds self edges only; without
    `disturbed` the same system is drawn with ordinary memory and noise, and time adds nothing.
    """
    kind = FAMILIES[family] if disturbed else Family(counts=FAMILIES[family].counts)
    rng = np.random.default_rng([zlib.crc32(family.encode()), seed])
    variables = 5 + seed % 4
    coefficients = draw_coefficients(variables, kind.self_coefficient, links, rng)
    total = rows + BURN_IN
    noise = (kind.noise or gaussian)(total, variables, rng)
    values = _counts(coefficients, total, rng) if kind.counts else _linear(coefficients, noise)
    values = values[BURN_IN:]
    if kind.disturb is not None:
        values = kind.disturb(values, rng)
    return values, coefficients != 0, _stamps(family, rows) if seed % 2 == 0 else None


def draw_coefficients(
    variables: int, self_coefficient: float, links: bool, rng: np.random.Generator
) -> Array:
    """Of a linear system, (target, source, lag).

    Links run from earlier to later variables of a random order. What is driven by others remembers
    no more than usual, so that a walk that drives it is not summed up.
    """
    coefficients = np.zeros((variables, variables, MAX_LAG))
    coefficients[range(variables), range(variables), 0] = self_coefficient
    if not links:
        return coefficients
    order = rng.permutation(variables)
    for place in rng.choice(np.arange(1, variables), min(4, variables - 1), replace=False):
        target, source = order[place], order[rng.integers(place)]
        lag = rng.integers(MAX_LAG - 1)
        coefficients[target, source, lag] = rng.uniform(*LINK_SIZE) * rng.choice([-1, 1])
        coefficients[target, target, 0] = min(self_coefficient, USUAL_SELF)
    return coefficients


def _linear(coefficients: Array, noise: Array) -> Array:
    """A linear system driven by noise (row, variable), started at zero."""
    flat = coefficients.transpose(2, 1, 0).reshape(-1, len(coefficients))  # (lag source, target)
    values = np.zeros((len(noise) + MAX_LAG, noise.shape[1]))
    for row in range(len(noise)):
        past = values[row : row + MAX_LAG][::-1].ravel()
        values[row + MAX_LAG] = past @ flat + noise[row]
    return values[MAX_LAG:]


def _counts(coefficients: Array, rows: int, rng: np.random.Generator) -> Array:
    """Poisson counts whose mean is a linear function of earlier counts."""
    flat = np.abs(coefficients).transpose(2, 1, 0).reshape(-1, len(coefficients))
    values = np.ones((rows + MAX_LAG, len(coefficients)))
    for row in range(rows):
        past = values[row : row + MAX_LAG][::-1].ravel()
        values[row + MAX_LAG] = rng.poisson(0.5 + past @ flat)
    return values[MAX_LAG:]


def _stamps(family: str, rows: int) -> Stamps:
    step = FAMILIES[family].step
    if step == MONTH and rows >= ROWS_OF_YEARS:
        step = DAY
    return np.asarray(START.astype(f"datetime64[{step}]") + np.arange(rows))
