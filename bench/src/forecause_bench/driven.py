"""Families of tables that something which is not a column moves, and sound ones beside them.

Six variables with memory, four links between them or none. Each family adds what a plant, a market
or a logger adds: a hidden state, one volatility, two sensors of one quantity.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
Rng = np.random.Generator
Family = Callable[[int, Array, Rng], Array]
"""(rows, coefficients (target, source, lag), rng) -> values (row, variable)."""

VARIABLES, MAX_LAG = 6, 3
BURN_IN = 200
MEMORY = 0.5  # coefficient of a variable's own last value
LINK_SIZE = (0.25, 0.45)
LINKS = 4


def make(family: str, rows: int, seed: int, links: bool) -> tuple[Array, Array]:
    """Values (row, variable) and the coefficients (target, source, lag) of the true edges."""
    rng = np.random.default_rng([zlib.crc32(family.encode()), seed])
    coefficients = np.zeros((VARIABLES, VARIABLES, MAX_LAG))
    coefficients[range(VARIABLES), range(VARIABLES), 0] = MEMORY
    if links:
        order = rng.permutation(VARIABLES)
        for place in rng.choice(np.arange(1, VARIABLES), LINKS, replace=False).tolist():
            source, lag = order[rng.integers(place)], rng.integers(MAX_LAG)
            size = rng.uniform(*LINK_SIZE) * (1 if family in POSITIVE else rng.choice([-1, 1]))
            coefficients[order[place], source, lag] = size
    return (BROKEN | SOUND)[family](rows, coefficients, rng), coefficients


def system(
    rows: int,
    coefficients: Array,
    rng: Rng,
    drive: Array | None = None,
    noise: Array | None = None,
) -> Array:
    """The linear system with noise of variance 1, or with `noise` (burn-in and row, variable);
    `drive` (row, variable) is added to it."""
    total = rows + BURN_IN
    values = rng.standard_normal((total, len(coefficients))) if noise is None else noise.copy()
    if drive is not None:
        values[BURN_IN:] += drive
    by_lag = coefficients.transpose(2, 0, 1)
    for row in range(len(by_lag), total):
        for lag, matrix in enumerate(by_lag, start=1):
            values[row] += matrix @ values[row - lag]
    return values[BURN_IN:]


def autoregression(rows: int, memory: float, rng: Rng) -> Array:
    """One hidden series of variance 1, (row,)."""
    values, noise = np.zeros(rows + BURN_IN), rng.standard_normal(rows + BURN_IN)
    for row in range(1, len(values)):
        values[row] = memory * values[row - 1] + np.sqrt(1 - memory**2) * noise[row]
    return values[BURN_IN:]


def on_and_off(rows: int, rng: Rng, mean_length: float = 30.0) -> Array:
    """A state of 0 or 1 that lasts so many rows on average, (row,)."""
    return np.asarray(np.cumsum(rng.uniform(size=rows) < 1 / mean_length) % 2, dtype=np.float64)


def followed(drive: Array, rows_to_follow: Array) -> Array:
    """What sensors show that follow a drive (row,) at their own pace (variable,)."""
    seen, shown = np.zeros(len(rows_to_follow)), np.empty((len(drive), len(rows_to_follow)))
    for row, value in enumerate(drive):
        seen = seen + (value - seen) / rows_to_follow
        shown[row] = seen
    return shown


def _sizes(low: float, high: float, rng: Rng) -> Array:
    """A size and a sign for every variable."""
    return np.asarray(rng.uniform(low, high, VARIABLES) * rng.choice([-1, 1], VARIABLES))


def state_at_own_pace(rows: int, coefficients: Array, rng: Rng) -> Array:
    """A hidden state, which every sensor follows at its own pace."""
    shown = followed(on_and_off(rows, rng), rng.uniform(1, 8, VARIABLES))
    return system(rows, coefficients, rng) + shown * _sizes(2, 4, rng)


def state_jumps(rows: int, coefficients: Array, rng: Rng) -> Array:
    """A hidden state that shifts every level at once."""
    return system(rows, coefficients, rng) + on_and_off(rows, rng)[:, None] * _sizes(1, 3, rng)


def shared_rate(rows: int, coefficients: Array, rng: Rng) -> Array:
    """Self-exciting counts with one slow background rate for all."""
    return counts(coefficients, np.exp(0.6 * autoregression(rows, 0.98, rng)), rng)


def one_divisor(rows: int, coefficients: Array, rng: Rng) -> Array:
    """All columns divided by one slowly changing number."""
    divisor = np.exp(0.2 * autoregression(rows, 0.98, rng))[:, None]
    return (system(rows, coefficients, rng) + 8) / divisor


def response_times(rows: int, coefficients: Array, rng: Rng) -> Array:
    """Three sensors follow one hidden driver within 1, 3 and 8 rows."""
    values, paces = system(rows, coefficients, rng), np.array([1.0, 3.0, 8.0])
    shown = followed(2 * autoregression(rows, 0.8, rng), paces)
    values[:, rng.permutation(VARIABLES)[:3]] += shown * np.array([1.0, 1.5, 2.5])
    return values


def staggered_driver(rows: int, coefficients: Array, rng: Rng) -> Array:
    """A hidden driver reaches three of the six, one row apart."""
    hidden = autoregression(rows + MAX_LAG, 0.8, rng)
    drive = np.zeros((rows, VARIABLES))
    for delay, place in enumerate(rng.permutation(VARIABLES)[:3].tolist()):
        drive[:, place] = hidden[MAX_LAG - delay :][:rows]
    return system(rows, coefficients, rng, drive)


def twins(rows: int, coefficients: Array, rng: Rng) -> Array:
    """The last variable is a second, noisy sensor of the first, correlation about .9."""
    alone = coefficients.copy()
    alone[-1, :, :] = alone[:, -1, :] = 0.0
    values = system(rows, alone, rng)
    values[:, -1] = values[:, 0]
    coefficients[-1, :-1, :] = coefficients[:-1, -1, :] = 0.0  # what is no longer true
    noise = rng.standard_normal((rows, 2)) * values[:, 0].std() * 0.33
    values[:, [0, -1]] += noise
    return values


def wandering_cycle(rows: int, coefficients: Array, rng: Rng) -> Array:
    """A daily cycle in all, whose height wanders."""
    height = 2 + 1.5 * autoregression(rows, 0.99, rng)
    angle = 2 * np.pi * np.arange(rows)[:, None] / 24 + rng.uniform(0, 2 * np.pi, VARIABLES)
    return system(rows, coefficients, rng) + height[:, None] * np.sin(angle)


def one_volatility(rows: int, coefficients: Array, rng: Rng) -> Array:
    """Absolute returns with one volatility: no link at all."""
    coefficients[:] = 0.0
    size = np.exp(0.5 * autoregression(rows, 0.97, rng))[:, None]
    return np.abs(rng.standard_normal((rows, VARIABLES)) * size)


def drifting_week(rows: int, coefficients: Array, rng: Rng) -> Array:
    """A weekly pattern that drifts, with holidays."""
    pattern, values = rng.standard_normal((7, VARIABLES)), system(rows, coefficients, rng)
    holiday = rng.uniform(size=rows) < 0.03
    for row in range(rows):
        pattern += 0.06 * rng.standard_normal((7, 1))
        values[row] += 2 * pattern[6 if holiday[row] else row % 7]
    return values


def outages(rows: int, coefficients: Array, rng: Rng) -> Array:
    """A logger that writes 0 into all columns now and then, for one to five rows."""
    values = system(rows, coefficients, rng) + 4
    for start in np.flatnonzero(rng.uniform(size=rows) < 0.006).tolist():
        values[start : start + int(rng.integers(1, 6))] = 0.0
    return values


def market(rows: int, coefficients: Array, rng: Rng) -> Array:
    """Returns that follow one factor, some of them with part of it a row later."""
    factor, late = rng.standard_normal(rows + 1), rng.uniform(0, 0.6, VARIABLES)
    loads = rng.uniform(0.7, 1.3, VARIABLES)
    drive = factor[1:, None] * loads * (1 - late) + factor[:-1, None] * loads * late
    return system(rows, coefficients, rng) + drive


def bursts(rows: int, coefficients: Array, rng: Rng) -> Array:
    """Hidden incidents, which reach every variable within three rows and fade at its own pace."""
    incident = np.where(rng.uniform(size=rows + MAX_LAG) < 0.02, rng.exponential(6, rows + 3), 0.0)
    shown = followed(incident, rng.uniform(1, 4, VARIABLES))
    delays = rng.integers(0, MAX_LAG + 1, VARIABLES)
    late = np.stack([shown[MAX_LAG - d :][:rows, i] for i, d in enumerate(delays)], axis=1)
    return system(rows, coefficients, rng) + late * rng.uniform(1, 2, VARIABLES)


def shares(rows: int, coefficients: Array, rng: Rng) -> Array:
    """Shares that add up to 100."""
    parts = np.exp(0.3 * system(rows, coefficients, rng))
    return 100 * parts / parts.sum(1, keepdims=True)


def counts(coefficients: Array, rate: Array, rng: Rng) -> Array:
    """Self-exciting counts with a background rate (row,)."""
    values = np.zeros((len(rate), VARIABLES))
    for row, background in enumerate(rate):
        mean = np.full(VARIABLES, background)
        for lag in range(1, min(row, MAX_LAG) + 1):
            mean += 0.6 * coefficients[:, :, lag - 1] @ values[row - lag]
        values[row] = rng.poisson(np.clip(mean, 0, 1e4))
    return values


def plain(rows: int, coefficients: Array, rng: Rng) -> Array:
    """The linear system as it is."""
    return system(rows, coefficients, rng)


def rounded(rows: int, coefficients: Array, rng: Rng) -> Array:
    """Rounded to whole numbers."""
    return np.round(system(rows, coefficients, rng))


def noisy_sensors(rows: int, coefficients: Array, rng: Rng) -> Array:
    """Measurement error of half a standard deviation, of each sensor alone."""
    values = system(rows, coefficients, rng)
    return values + 0.5 * values.std(0) * rng.standard_normal(values.shape)


def self_exciting(rows: int, coefficients: Array, rng: Rng) -> Array:
    """Self-exciting counts, each with its own background."""
    return counts(coefficients, np.ones(rows), rng)


def heavy_tails(rows: int, coefficients: Array, rng: Rng) -> Array:
    """Independent shocks with heavy tails, now and then."""
    shock = rng.standard_t(4, (rows, VARIABLES)) * (rng.uniform(size=(rows, VARIABLES)) < 0.3)
    return system(rows, coefficients, rng, shock)


def own_volatility(rows: int, coefficients: Array, rng: Rng) -> Array:
    """Shocks whose size wanders, for each variable by itself."""
    sizes = np.stack([autoregression(rows, 0.95, rng) for _ in range(VARIABLES)], axis=1)
    return system(rows, coefficients, rng, rng.standard_normal(sizes.shape) * np.exp(0.5 * sizes))


def own_states(rows: int, coefficients: Array, rng: Rng) -> Array:
    """Hidden states, one for every variable: nothing is common."""
    states = np.stack([on_and_off(rows, rng) for _ in range(VARIABLES)], axis=1)
    return system(rows, coefficients, rng, 1.5 * states)


def bent(rows: int, coefficients: Array, rng: Rng) -> Array:
    """Links through saturating curves."""
    total = rows + BURN_IN
    values = rng.standard_normal((total, VARIABLES))
    for row in range(MAX_LAG, total):
        for lag in range(1, MAX_LAG + 1):
            values[row] += 1.5 * coefficients[:, :, lag - 1] @ np.tanh(values[row - lag])
    return values[BURN_IN:]


BROKEN: dict[str, Family] = {
    "state at own pace": state_at_own_pace,
    "state jumps": state_jumps,
    "shared rate": shared_rate,
    "one divisor": one_divisor,
    "response times": response_times,
    "staggered driver": staggered_driver,
    "twins": twins,
    "wandering cycle": wandering_cycle,
    "one volatility": one_volatility,
    "drifting week": drifting_week,
    "outages": outages,
    "market": market,
    "bursts": bursts,
    "shares": shares,
}
SOUND: dict[str, Family] = {
    "plain": plain,
    "rounded": rounded,
    "noisy sensors": noisy_sensors,
    "self-exciting": self_exciting,
    "heavy tails": heavy_tails,
    "own volatility": own_volatility,
    "own states": own_states,
    "bent": bent,
}
POSITIVE = ("shared rate", "self-exciting")  # counts can only be raised
