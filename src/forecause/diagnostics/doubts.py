"""Reasons not to promise an error rate, each from one closed-form statistic.

All look at what is left once time is taken out, and at the errors of a straight-line forecast of
it, whatever forecaster was fitted: few rows, near-copies, memory beyond the window, a cycle that
drifts, and mechanisms that change. Every check needs significance and a size that matters.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import fdtrc

from forecause.data.seasons.course import positions_of, series_spans
from forecause.data.windows import Windows
from forecause.regression.least_squares import KnownFeatures
from forecause.regression.residuals import Residuals
from forecause.regression.screen import inputs_at_once

LEVEL = 0.005  # of each check, shared by all it compares
SAME = 0.98  # correlation from which two variables are nearly one
WINDOWS_PER_INPUT = 3
MOST_CHECKED_WINDOWS = 20_000  # looked at
MOST_INPUTS = 1000  # with more, errors of straight-line forecasts take too long
FURTHEST = 30  # rows back that errors are compared
LEAST_CORRELATION = 0.1  # of errors, below which it does not matter
BLOCKS = 20  # of time; every other one makes up a part that should differ by chance alone
LEAST_GAIN = 0.03  # share of the errors that separate models of the halves explain
BAND, FLANK = 1.25, 1.6  # half width of a band of frequencies and of the bands beside it, factors
LEAST_CYCLES = 3.0  # in the data, of the lowest frequency that is looked at
LEAST_FREQUENCIES = 4  # in each band
LEAST_HUMP = 5.0  # power of a band over that of the bands beside it
LEAST_BAND_SHARE = 0.25  # of a variable's variance

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Doubt:
    """A reason under the code of the alert it belongs to, with the option that helps."""

    code: str
    sentence: str
    variables: tuple[str, ...] = ()


def find_doubts(windows: Windows) -> tuple[Doubt, ...]:
    """Every reason for doubt about the windows of a panel whose time terms are taken out."""
    if len(windows) < WINDOWS_PER_INPUT * inputs_at_once(windows.inputs, len(windows)):
        return (_few_rows(windows), *_near_copies(windows))
    found = [*_near_copies(windows), *_drifting_cycle(windows)]
    if windows.inputs <= MOST_INPUTS:
        looked = windows.spread(MOST_CHECKED_WINDOWS)
        batch = looked.draw(np.arange(len(looked)))
        past = batch.past.double().numpy().reshape(len(looked), -1)
        design = np.column_stack([np.ones(len(past)), past])
        targets = batch.target.double().numpy()[:, windows.panel.coding.numeric_columns]
        if targets.shape[1]:
            errors = KnownFeatures.of(design).taken_off(targets)
            found += _memory(errors, looked)
            found += _regimes(design, targets, looked)
    return tuple(found)


def _few_rows(windows: Windows) -> Doubt:
    return Doubt(
        "few-rows",
        f"There are only {len(windows):,} windows for {windows.inputs} inputs; use a smaller "
        "--max-lag, fewer variables or more rows.",
    )


def _near_copies(windows: Windows) -> Iterator[Doubt]:
    """Numbers that agree in their levels and in their steps: levels that wander agree by chance."""
    columns = windows.panel.coding.numeric_columns
    looked = windows.spread(MOST_CHECKED_WINDOWS)
    rows = looked.draw(np.arange(len(looked))).rows.double().numpy()[:, -2:, columns]
    if len(columns) < 2:
        return
    alike = [np.abs(_correlation(part)) for part in (rows[:, 1], rows[:, 1] - rows[:, 0])]
    both = np.triu(np.minimum(*alike), 1)
    one, other = np.unravel_index(both.argmax(), both.shape)
    if both[one, other] > SAME:
        names = [windows.panel.variables[columns[place]] for place in (one, other)]
        yield Doubt(
            "near-duplicates",
            f"{names[0]} and {names[1]} are nearly the same (correlation {both[one, other]:.3f}), "
            "so which of them is the cause cannot be told; keep one of them.",
            tuple(names),
        )


def _correlation(values: Array) -> Array:
    centred = values - values.mean(0)
    size = np.sqrt((centred**2).sum(0))
    return np.asarray(centred.T @ centred / np.maximum(np.outer(size, size), 1e-300))


def _memory(errors: Array, looked: Windows) -> Iterator[Doubt]:
    """The strongest correlation of errors with errors from before the window."""
    residuals, lag_window = Residuals.of(errors, looked.rows, looked.panel.starts), looked.max_lag
    furthest = min(FURTHEST, len(errors) // 4)
    tests = errors.shape[1] ** 2 * max(FURTHEST - lag_window, 1)
    strongest, at = 0.0, 0
    for lag in range(lag_window + 1, furthest + 1):
        correlation, p_values = residuals.correlation(lag, LEAST_CORRELATION)
        told = np.where(p_values < LEVEL / tests, np.abs(correlation), 0.0).max()
        if told > max(strongest, LEAST_CORRELATION):
            strongest, at = float(told), lag
    if at:
        yield Doubt(
            "short-window",
            f"What happened {at} rows earlier still tells about the errors of a straight-line "
            f"forecast (correlation {strongest:.2f}); try --max-lag {at} or, if that is a season, "
            f"--season {at}.",
        )


def _drifting_cycle(windows: Windows) -> Iterator[Doubt]:
    """The highest hump of any number's spectrum: a cycle whose length or shape drifts.

    A cycle of fixed length was taken out before; one that drifts spreads over a band of
    frequencies, which stands out from the bands beside it as no ordinary memory does.
    """
    panel, best = windows.panel, (0.0, 0.0, 0.0, "")  # height, share, period, name
    edges = np.append(panel.starts, panel.rows)
    longest = int(np.diff(edges).argmax())
    rows = slice(max(edges[longest], edges[longest + 1] - MOST_CHECKED_WINDOWS), edges[longest + 1])
    for column in panel.coding.numeric_columns.tolist():
        own = np.asarray(panel.values[rows, column], dtype=np.float64)
        known = np.isfinite(own)
        if known.sum() < 0.8 * len(own):
            continue
        own = np.where(known, own - own[known].mean(), 0.0)
        power = np.abs(np.fft.rfft(own)) ** 2
        for centre, height, share in _humps(power, len(own)):
            if height > best[0] and share > LEAST_BAND_SHARE:
                best = (height, share, 1 / centre, panel.variables[column])
    if best[0] >= LEAST_HUMP:
        yield Doubt(
            "cycle",
            f"A cycle of about {best[2]:.0f} rows is left and makes up {best[1]:.0%} of {best[3]}; "
            "let --season auto take it out or name its period with --season or, if its length "
            "varies, add what drives it (daylight, the calendar) as a variable.",
            (best[3],),
        )


def _humps(power: Array, rows: int) -> Iterator[tuple[float, float, float]]:
    """Centre, height over the higher of the bands beside it, and share of power of every band."""
    cumulated = np.concatenate([[0.0], np.cumsum(power[1:])])  # from frequency 1 / rows on
    total = max(float(cumulated[-1]), 1e-300)
    centre = LEAST_CYCLES / rows * BAND * FLANK
    while centre * BAND * FLANK < 0.5:
        edges = np.array([1 / (BAND * FLANK), 1 / BAND, BAND, BAND * FLANK]) * centre * rows
        places = np.clip(np.round(edges).astype(int), 0, len(cumulated) - 1)
        counts = np.maximum(np.diff(places), 1)
        below, inside, above = np.diff(cumulated[places]) / counts
        if counts.min() >= LEAST_FREQUENCIES:
            share = float(inside * counts[1] / total)
            yield centre, float(inside / max(below, above, 1e-300)), share
        centre *= 1.1


def _regimes(design: Array, targets: Array, windows: Windows) -> Iterator[Doubt]:
    """Chow's test: do the halves of time, or of a cycle, want models of their own?

    Not asked of known domains. A cycle that passes through a curved mechanism changes what drives
    a variable in the course of it, even if the cycle itself is taken out.
    """
    rows, columns = design.shape
    if rows < 3 * columns or windows.panel.domain is not None:
        return
    block = np.arange(rows) * BLOCKS // rows
    together, free = _squares(design, targets), rows - 2 * columns
    usual = _chow(together, _squares_apart(design, targets, block % 2), columns, free)
    parts = [("from the earlier to the later half", 2 * block >= BLOCKS), *_phases(windows)]
    tests = targets.shape[1] * len(parts)
    most, said = 0.0, None
    for words, part in parts:
        apart = _squares_apart(design, targets, part)
        # parts that alternate differ by chance alone, more so where the size of the noise varies
        f_values = _chow(together, apart, columns, free) / np.maximum(usual, 1)
        gain = 1 - (apart / free) / np.maximum(together / (rows - columns), 1e-300)
        changed = (fdtrc(columns, free, f_values) * tests < LEVEL) & (gain > LEAST_GAIN)
        if changed.any() and float(gain[changed].max()) > most:
            place = int(np.where(changed, gain, 0.0).argmax())
            most, said = float(gain[place]), (place, words)
    if said is not None:
        name = windows.panel.variables[windows.panel.coding.numeric_columns[said[0]]]
        yield Doubt(
            "changing-effects",
            f"What drives {name} changes {said[1]}: a model for each part would explain {most:.0%} "
            "more of its errors. Find regimes with --regimes auto, name them with --domain, or "
            "explain some rows alone with --rows.",
            (name,),
        )


def _phases(windows: Windows) -> Iterator[tuple[str, npt.NDArray[np.bool_]]]:
    """Of every cycle that was taken out, halves of it (window,), cut at two places."""
    course = windows.panel.course
    if course is None:
        return
    position = np.zeros(windows.panel.rows)
    for first, end in series_spans(windows.panel):
        position[first:end] = positions_of(windows.panel, first, end)
    place = position[windows.rows]
    for cycle in max(course.terms, key=lambda terms: terms.rows).cycles:
        turn = place / cycle.period % 1
        yield f"with {cycle.words}", turn < 0.5
        yield f"with {cycle.words}", (turn < 0.25) | (turn >= 0.75)


def _chow(together: Array, apart: Array, columns: int, free: int) -> Array:
    """F values of models of their own for two parts, (target,)."""
    f_values = (together - apart) / columns / (np.maximum(apart, 1e-12 * together) / free)
    return np.maximum(f_values, 0)


def _squares_apart(design: Array, targets: Array, part: npt.NDArray[np.generic]) -> Array:
    """`_squares` of models of their own for the rows in and out of a part."""
    inside = part.astype(bool)
    first, second = (_squares(design[rows], targets[rows]) for rows in (inside, ~inside))
    return first + second


def _squares(design: Array, targets: Array) -> Array:
    """Sums of squared errors of least squares, (target,)."""
    errors = KnownFeatures.of(design).taken_off(targets)
    return np.asarray((errors**2).sum(0))
