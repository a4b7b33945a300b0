"""More families that something hidden moves, as another user would bring them, and sound ones.

Four to twelve variables, windows of two to five lags, 300 to 2,000 rows. The hidden thing reaches
every variable with a lag of its own, through squares, as a state, in two groups, or two variables
alone; or it is the logger: late, frozen, too slow.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from forecause_bench.driven import BURN_IN, LINK_SIZE, MEMORY, Array, Rng, autoregression, system

SIZES = (0.15, 0.25, 0.5, 0.75, 1.0)  # of the largest table, by turns of the seed
LINKS = 4

Edges = set[tuple[int, int, int]]  # source, target, lag
Make = Callable[[int, Array, Rng], Array | tuple[Array, Edges]]
"""(rows, coefficients (target, source, lag), rng) -> values (row, variable), and what is true of
them if that is not what the coefficients say."""


@dataclass(frozen=True)
class Family:
    """How a table is made, and its size."""

    make: Make
    variables: int = 6
    max_lag: int = 3
    links: int = LINKS
    memory: float = MEMORY
    size: tuple[float, float] = LINK_SIZE


def make(name: str, rows: int, seed: int, links: bool) -> tuple[Array, Edges]:
    """Values (row, variable) and the true edges."""
    family, rng = (HIDDEN | SOUND)[name], np.random.default_rng([zlib.crc32(name.encode()), seed])
    count = family.variables
    coefficients = np.zeros((count, count, family.max_lag))
    coefficients[range(count), range(count), 0] = family.memory
    if links:
        order = rng.permutation(count)
        wanted = min(family.links, count - 1)
        for place in rng.choice(np.arange(1, count), wanted, replace=False).tolist():
            source, lag = order[rng.integers(place)], rng.integers(family.max_lag)
            coefficients[order[place], source, lag] = rng.uniform(*family.size) * rng.choice(
                [-1, 1]
            )
    made = family.make(rows, coefficients, rng)
    return made if isinstance(made, tuple) else (made, edges_of(coefficients))


def edges_of(coefficients: Array) -> Edges:
    """Those of coefficients (target, source, lag)."""
    return {(int(j), int(i), int(lag) + 1) for i, j, lag in np.argwhere(coefficients)}


def late(hidden: Array, rows: int, variables: int, rng: Rng) -> Array:
    """A hidden series (row,) as it reaches every variable after a lag of its own."""
    most = len(hidden) - rows
    lags = rng.integers(0, most + 1, variables)
    return np.stack([hidden[most - lag :][:rows] for lag in lags], axis=1)


def loads(low: float, high: float, variables: int, rng: Rng) -> Array:
    """A size and a sign for every variable."""
    return np.asarray(rng.uniform(low, high, variables) * rng.choice([-1, 1], variables))


def shape(coefficients: Array) -> tuple[int, int]:
    """The number of variables and the largest lag."""
    return len(coefficients), coefficients.shape[2]


def wandering_driver(rows: int, coefficients: Array, rng: Rng) -> Array:
    """A hidden random walk."""
    count, lags = shape(coefficients)
    hidden = 0.15 * np.cumsum(rng.standard_normal(rows + lags))
    seen = late(hidden, rows, count, rng) * loads(0.7, 1.5, count, rng)
    return system(rows, coefficients, rng) + seen


def driver_beyond_window(rows: int, coefficients: Array, rng: Rng) -> Array:
    """A hidden random walk that reaches some variables six rows after others."""
    count, _ = shape(coefficients)
    hidden = 0.15 * np.cumsum(rng.standard_normal(rows + 6))
    seen = late(hidden, rows, count, rng) * loads(0.7, 1.5, count, rng)
    return system(rows, coefficients, rng) + seen


def two_drivers(rows: int, coefficients: Array, rng: Rng) -> Array:
    """Two hidden drivers, each of four of ten variables."""
    count, lags = shape(coefficients)
    order, drive = rng.permutation(count), np.zeros((rows, count))
    for group in (order[:4], order[4:8]):
        hidden = autoregression(rows + lags, 0.85, rng)
        drive[:, group] = late(hidden, rows, 4, rng) * loads(0.5, 1, 4, rng)
    return system(rows, coefficients, rng, drive)


def squares(rows: int, coefficients: Array, rng: Rng) -> Array:
    """A hidden driver acts through its square."""
    count, lags = shape(coefficients)
    hidden = autoregression(rows + lags, 0.85, rng) ** 2 - 1
    return system(
        rows, coefficients, rng, late(hidden, rows, count, rng) * loads(0.5, 1, count, rng)
    )


def half_squares(rows: int, coefficients: Array, rng: Rng) -> Array:
    """Half of the variables follow a hidden driver, the others its square."""
    count, lags = shape(coefficients)
    drive = late(autoregression(rows + lags, 0.85, rng), rows, count, rng)
    drive[:, ::2] = drive[:, ::2] ** 2 - 1
    return system(rows, coefficients, rng, drive * loads(0.6, 1.2, count, rng))


def one_size_of_noise(rows: int, coefficients: Array, rng: Rng) -> Array:
    """One volatility for all noise."""
    size = np.exp(0.6 * autoregression(rows + BURN_IN, 0.97, rng))[:, None]
    noise = rng.standard_normal((rows + BURN_IN, len(coefficients))) * size
    return system(rows, coefficients, rng, noise=noise)


def log_volatility(rows: int, coefficients: Array, rng: Rng) -> tuple[Array, Edges]:
    """Logarithms of absolute returns with one volatility, which reaches each at its own lag."""
    count, lags = shape(coefficients)
    size = np.exp(0.5 * late(autoregression(rows + lags, 0.9, rng), rows, count, rng))
    return np.log(np.abs(rng.standard_normal((rows, count)) * size) + 0.01), set()


def heavy_driver(rows: int, coefficients: Array, rng: Rng) -> Array:
    """A hidden driver with heavy tails."""
    count, lags = shape(coefficients)
    hidden = rng.standard_t(2.5, rows + lags)
    for row in range(1, len(hidden)):
        hidden[row] = 0.7 * hidden[row - 1] + 0.7 * hidden[row]
    return system(
        rows, coefficients, rng, late(hidden, rows, count, rng) * loads(0.3, 0.8, count, rng)
    )


def ramps(rows: int, coefficients: Array, rng: Rng) -> Array:
    """Ramps up and down that all share."""
    count, lags = shape(coefficients)
    turns = np.sort(rng.choice(rows + lags, max(4, rows // 70), replace=False))
    hidden = np.interp(np.arange(rows + lags), turns, 1.5 * rng.standard_normal(len(turns)))
    seen = late(hidden, rows, count, rng) * loads(0.8, 1.5, count, rng)
    return system(rows, coefficients, rng) + seen


def seasonal_height(rows: int, coefficients: Array, rng: Rng) -> Array:
    """A daily cycle whose height rises and falls over months, for all."""
    time = np.arange(rows)
    height = np.interp(time, np.linspace(0, rows, 8), rng.uniform(0.2, 2, 8))[:, None]
    wave = np.sin(2 * np.pi * time[:, None] / 24 + rng.uniform(0, 6.28, len(coefficients)))
    return system(rows, coefficients, rng) + wave * height * loads(0.6, 1.2, len(coefficients), rng)


def three_states(rows: int, coefficients: Array, rng: Rng) -> Array:
    """A hidden state of three kinds, each with a level of its own for every variable."""
    count, lags = shape(coefficients)
    state = np.zeros(rows + lags, dtype=int)
    for row in range(1, len(state)):
        state[row] = state[row - 1] if rng.uniform() > 0.03 else rng.integers(3)
    levels = 1.2 * rng.standard_normal((3, count))
    when = late(np.arange(rows + lags, dtype=float), rows, count, rng).astype(int)
    return system(rows, coefficients, rng) + levels[state[when], np.arange(count)]


def pair_with_memory(rows: int, coefficients: Array, rng: Rng) -> Array:
    """An unmeasured cause with memory of two variables alone, one a row after the other."""
    return _pair(rows, coefficients, autoregression(rows + 1, 0.6, rng), rng)


def pair_of_shocks(rows: int, coefficients: Array, rng: Rng) -> Array:
    """Shocks that reach one variable a row before another."""
    return _pair(rows, coefficients, rng.standard_normal(rows + 1), rng)


def _pair(rows: int, coefficients: Array, hidden: Array, rng: Rng) -> Array:
    drive = np.zeros((rows, len(coefficients)))
    first, second = rng.permutation(len(coefficients))[:2]
    drive[:, first], drive[:, second] = hidden[1:], hidden[:-1] * rng.choice([-1, 1])
    return system(rows, coefficients, rng, drive)


def two_twins(rows: int, coefficients: Array, rng: Rng) -> tuple[Array, Edges]:
    """Two of six variables have a second sensor each."""
    values, both = system(rows, coefficients[:6, :6], rng), rng.permutation(6)[:2]
    values = np.hstack([values, values[:, both]])
    noisy = np.isin(np.arange(8), [*both, 6, 7])
    values += 0.4 * values.std(0) * noisy * rng.standard_normal(values.shape)
    return values, edges_of(coefficients[:6, :6])


def slow_rows(rows: int, coefficients: Array, rng: Rng) -> tuple[Array, Edges]:
    """Only every third row is recorded; causes of causes count as true."""
    return system(3 * rows, coefficients[:, :, :1], rng)[::3], _ancestors(coefficients)


def means_of_rows(rows: int, coefficients: Array, rng: Rng) -> tuple[Array, Edges]:
    """Means of four rows are recorded; causes of causes count as true."""
    values = system(4 * rows, coefficients[:, :, :1], rng)
    return values.reshape(rows, 4, -1).mean(1), _ancestors(coefficients)


def _ancestors(coefficients: Array) -> Edges:
    count, lags = shape(coefficients)
    linked = (coefficients[:, :, 0] != 0).astype(float)
    reached = np.linalg.matrix_power(linked, count) > 0
    return {(int(j), int(i), lag) for i, j in np.argwhere(reached) for lag in range(1, lags + 1)}


def frozen(rows: int, coefficients: Array, rng: Rng) -> Array:
    """A logger that repeats the last row now and then."""
    values = system(rows, coefficients, rng)
    for start in np.flatnonzero(rng.uniform(size=rows) < 0.01).tolist():
        values[start : start + int(rng.integers(2, 15))] = values[start]
    return values


def late_at_times(rows: int, coefficients: Array, rng: Rng) -> Array:
    """A logger that is a row late at times, for all."""
    values = system(rows + 1, coefficients, rng)
    is_late = np.cumsum(rng.uniform(size=rows) < 0.05) % 2
    return np.asarray(values[np.arange(rows) + 1 - is_late])


def lead_and_lag(rows: int, coefficients: Array, rng: Rng) -> tuple[Array, Edges]:
    """Returns of one factor, with heavy tails and one volatility, priced at once or days later."""
    count, lags = shape(coefficients)
    size = np.exp(0.4 * autoregression(rows + lags, 0.95, rng))
    factor = late(size * rng.standard_t(4, rows + lags), rows, count, rng)
    own = 0.8 * rng.standard_t(4, (rows, count))
    return own + factor * rng.uniform(0.4, 1, count), set()


def one_rate(rows: int, coefficients: Array, rng: Rng) -> tuple[Array, Edges]:
    """Counts with one rate, which reaches each at its own lag."""
    count, lags = shape(coefficients)
    rate = 3 * np.exp(0.4 * late(autoregression(rows + lags, 0.8, rng), rows, count, rng))
    return rng.poisson(rate).astype(np.float64), set()


def queues(rows: int, coefficients: Array, rng: Rng) -> tuple[Array, Edges]:
    """Three services under one load: arrivals, what waits, and how long; each drives its own."""
    load, waiting = np.exp(0.5 * autoregression(rows, 0.9, rng)), np.zeros(3)
    values = np.zeros((rows, 9))
    for row in range(rows):
        arrived = rng.poisson(4 * load[row], 3)
        values[row, 6:] = 0.3 * waiting + rng.standard_normal(3)
        waiting = np.maximum(0, waiting + arrived - 5.5 - np.arange(3))
        values[row, :3], values[row, 3:6] = arrived, waiting
    ways = [(one, one + 3) for one in range(6)] + [(one, one + 6) for one in range(3)]
    return values, {(j, i, lag) for j, i in ways for lag in range(1, shape(coefficients)[1] + 1)}


def noisy_cause(rows: int, coefficients: Array, rng: Rng) -> tuple[Array, Edges]:
    """The cause of all others is a column, recorded with an error."""
    count, lags = shape(coefficients)
    hidden = autoregression(rows + lags, 0.8, rng)
    drive = late(hidden[:-1], rows, count, rng) * loads(0.5, 1, count, rng)
    values = system(rows, coefficients * np.eye(count)[:, :, None], rng, drive)
    values[:, 0] = hidden[lags:] + 0.7 * rng.standard_normal(rows)
    true = {(0, i, lag) for i in range(1, count) for lag in range(1, lags + 1)}
    return values, true


def five_of_twelve(rows: int, coefficients: Array, rng: Rng) -> Array:
    """A hidden driver of five of twelve variables."""
    count, lags = shape(coefficients)
    drive = np.zeros((rows, count))
    seen = late(autoregression(rows + lags, 0.7, rng), rows, 5, rng)
    drive[:, rng.permutation(count)[:5]] = seen * loads(0.6, 1, 5, rng)
    return system(rows, coefficients, rng, drive)


def three_of_four(rows: int, coefficients: Array, rng: Rng) -> Array:
    """A hidden driver of three of four variables."""
    count, lags = shape(coefficients)
    drive = np.zeros((rows, count))
    seen = late(autoregression(rows + lags - 2, 0.9, rng), rows, 3, rng)
    drive[:, :3] = seen * loads(0.4, 0.8, 3, rng)
    return system(rows, coefficients, rng, drive)


def plain(rows: int, coefficients: Array, rng: Rng) -> Array:
    """The linear system as it is."""
    return system(rows, coefficients, rng)


def recorded_driver(rows: int, coefficients: Array, rng: Rng) -> Array:
    """What drives all others is a column."""
    coefficients[:, :, :] = coefficients * np.eye(len(coefficients))[:, :, None]
    coefficients[0, 0, 0] = 0.8
    for target in range(1, len(coefficients)):
        lag = rng.integers(coefficients.shape[2])
        coefficients[target, 0, lag] = rng.uniform(0.3, 0.6) * rng.choice([-1, 1])
    return system(rows, coefficients, rng)


def many_links(rows: int, coefficients: Array, rng: Rng) -> Array:
    """Twelve links among seven variables."""
    order = rng.permutation(len(coefficients))
    for _ in range(8):
        first, second = sorted(rng.choice(len(coefficients), 2, replace=False).tolist())
        place = order[second], order[first], rng.integers(coefficients.shape[2])
        coefficients[place] = rng.uniform(0.2, 0.4) * rng.choice([-1, 1])
    return system(rows, coefficients, rng)


def lognormal(rows: int, coefficients: Array, rng: Rng) -> Array:
    """Skewed noise."""
    noise = np.exp(rng.standard_normal((rows + BURN_IN, len(coefficients))))
    return system(rows, coefficients, rng, noise=noise - np.exp(0.5))


def cycles(rows: int, coefficients: Array, rng: Rng) -> Array:
    """A day and a week in all, of fixed height."""
    time, count = 2 * np.pi * np.arange(rows)[:, None], len(coefficients)
    day, week = (np.sin(time / period + rng.uniform(0, 6, count)) for period in (24, 168))
    return system(rows, coefficients, rng) + 2 * day + week


def gaps(rows: int, coefficients: Array, rng: Rng) -> Array:
    """Nothing is recorded now and then, of all at once."""
    values = system(rows, coefficients, rng)
    for start in np.flatnonzero(rng.uniform(size=rows) < 0.01).tolist():
        values[start : start + int(rng.integers(2, 15))] = np.nan
    return values


def lingering_noise(rows: int, coefficients: Array, rng: Rng) -> Array:
    """Moving averages as noise, for each variable by itself."""
    noise = rng.standard_normal((rows + BURN_IN + 2, len(coefficients)))
    noise = noise[2:] + 0.6 * noise[1:-1] + 0.3 * noise[:-2]
    return system(rows, coefficients, rng, noise=noise)


def small_errors(rows: int, coefficients: Array, rng: Rng) -> Array:
    """Measurement error of a third of a standard deviation, of each sensor alone."""
    values = system(rows, coefficients, rng)
    return values + 0.3 * values.std(0) * rng.standard_normal(values.shape)


FAST = (0.4, 0.6)
HIDDEN: dict[str, Family] = {
    "wandering driver": Family(wandering_driver, 7, 4),
    "driver beyond window": Family(driver_beyond_window, 7, 2),
    "two drivers": Family(two_drivers, 10, 2),
    "squares": Family(squares),
    "half squares": Family(half_squares),
    "one size of noise": Family(one_size_of_noise),
    "log volatility": Family(log_volatility),
    "heavy driver": Family(heavy_driver),
    "ramps": Family(ramps),
    "seasonal height": Family(seasonal_height),
    "three states": Family(three_states, 8),
    "pair with memory": Family(pair_with_memory, 8, 2),
    "pair of shocks": Family(pair_of_shocks, 8, 2),
    "two twins": Family(two_twins, 8, 2),
    "slow rows": Family(slow_rows, 6, 2, memory=0.7, size=FAST),
    "means of rows": Family(means_of_rows, 6, 2, memory=0.7, size=FAST),
    "frozen": Family(frozen),
    "late at times": Family(late_at_times),
    "lead and lag": Family(lead_and_lag, 8, 2),
    "one rate": Family(one_rate),
    "queues": Family(queues, 9),
    "noisy cause": Family(noisy_cause),
    "five of twelve": Family(five_of_twelve, 12, 2),
    "three of four": Family(three_of_four, 4, 5, links=2),
}
SOUND: dict[str, Family] = {
    "twelve variables": Family(plain, 12, 2, links=8),
    "four variables": Family(plain, 4, 5, links=3),
    "recorded driver": Family(recorded_driver, 7),
    "many links": Family(many_links, 7, 2, memory=0.4),
    "near unit roots": Family(plain, memory=0.95, size=(0.1, 0.3)),
    "lognormal": Family(lognormal),
    "cycles": Family(cycles),
    "gaps": Family(gaps),
    "swinging": Family(plain, 8, 4, memory=-0.3),
    "lingering noise": Family(lingering_noise),
    "small errors": Family(small_errors, 8, 2),
}
