"""Does the system stay the same? Checks of level, noise and effects over time."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.special import fdtrc, stdtr

from forecause.common.arrays import Array, Index, Mask
from forecause.config.advice import Advice, hint
from forecause.config.thresholds import DiagnosisThresholds, thresholds
from forecause.data.windows import Windows, batches_of, moments_of
from forecause.diagnostics.examined import Examined
from forecause.diagnostics.finding import Finding, Gravity, into, listed
from forecause.regression.least_squares import KnownFeatures, pseudo_inverse
from forecause.regression.moments import BATCH, Moments, unexplained
from forecause.regression.residuals import Residuals
from forecause.seasons.course import positions_of

# Time and memory:
MOST_INPUTS = 1000  # of a linear model of its own


@dataclass(frozen=True)
class Change:
    """How much something changed, and the p-value of no change; both (column,)."""

    size: Array
    p_value: Array


def level_and_noise(run: Examined) -> Iterator[Finding]:
    """A level that wanders or shifts, noise whose variance changes."""
    windows, bounds = run.looked, run.bounds
    rho, has_unit_root = persistence(windows)
    wandering = has_unit_root & (rho > bounds.near_unit_root) & run.is_number
    yield from _of_columns(
        run,
        "wandering",
        wandering,
        rho,
        "{:.3f}",
        "{} may wander without a level to return to (the share of a shock that stays, about 1), "
        "which makes unrelated variables look related",
        Advice("difference", True, "try {}"),
        gravity="doubt" if _is_short(windows, wandering, bounds) else "alert",
    )
    if not has_rows_for_blocks(windows):
        return
    level = bounds.level / windows.shape[1]
    moved = level_change(windows)
    shifts = (moved.p_value < level) & (np.abs(moved.size) > bounds.least_level_change)
    yield from _of_columns(
        run,
        "changing-level",
        shifts & ~wandering,
        moved.size,
        "{:+.2f} sd",
        "The mean of {} differs between the earlier and the later half of the data",
        Advice("trend", "auto", "let {} take it out"),
        Advice("difference", True, "try {}"),
        Advice("regimes", "auto", "find regimes with {}"),
    )
    noise = noise_change(windows, run.residuals)
    factor = np.abs(np.log(np.maximum(noise.size, 1e-12)))
    changed = (noise.p_value < level) & (factor > np.log(bounds.least_noise_ratio))
    yield from _of_columns(
        run,
        "changing-noise",
        changed & run.is_number,  # a label's noise follows from its chances
        noise.size,
        "{:.2g} times",
        "The unexplained variance of {} changed from the earlier to the later half of the data",
        hint("look at each part by itself"),
        hint("transform the variable (a logarithm, say)"),
    )


def _is_short(windows: Windows, wandering: Mask, bounds: DiagnosisThresholds) -> bool:
    """Whether two walks or more in few rows are related by chance more often than promised."""
    return bool(wandering.sum() > 1 and len(windows) < bounds.short_for_walks)


def changing_effects(run: Examined) -> Iterator[Finding]:
    """Chow's test of the residuals: do parts of time, or of a cycle, want models of their own?

    Not asked of known domains. Of the residuals, since a curved system that visits other places
    looks changed to a line alone. A cycle that passes through a curved mechanism changes what
    drives a variable in the course of it, even if the cycle itself is taken out.
    """
    windows, inputs = run.looked, run.windows.inputs
    rows = len(windows)
    if inputs > MOST_INPUTS or rows < run.bounds.windows_per_input * (inputs + 1):
        return
    if windows.panel.domain is not None:
        return
    chow = _Chow(run)
    quarter = np.arange(rows) * 4 // rows
    parts = [("from the earlier to the later half", quarter // 2)]
    if rows >= run.bounds.rows_per_input_of_quarters * (inputs + 1):
        parts.append(("from quarter to quarter of the data", quarter))
    parts += _phases(windows)
    level = run.bounds.level / (windows.shape[1] * len(parts))
    largest, when = np.zeros(windows.shape[1]), [""] * windows.shape[1]
    for words, part in parts:
        change = chow(part)
        clear = (change.p_value < level) & (change.size > run.bounds.least_gain)
        for column in np.flatnonzero(clear & (change.size > largest)):
            largest[column], when[column] = change.size[column], words
    if largest.any():
        words = when[int(largest.argmax())]
        yield from _of_columns(
            run,
            "changing-effects",
            largest > 0,
            largest,
            "{:.0%} of the noise",
            f"What drives {{}} changes {words} (in brackets: what a model for each part would "
            "explain), so one graph cannot be right for all rows",
            Advice("regimes", "auto", "find regimes with {}"),
            Advice("domain", words="name them with {}"),
            Advice("rows", words="explain some rows alone with {}"),
            gravity="doubt",
        )


def _of_columns(
    run: Examined,
    kind: str,
    changed: Mask,
    size: Array,
    figure: str,
    seen: str,
    *advice: Advice,
    gravity: Gravity = "alert",
) -> Iterator[Finding]:
    """A finding about the variables whose columns changed, as (column,) masks and sizes tell."""
    places = np.flatnonzero(_one_of_each_label(changed, size, run)).tolist()
    if places:
        sizes = {run.column_names[i]: float(size[i]) for i in places}
        shown = listed([f"{name} ({figure.format(value)})" for name, value in sizes.items()])
        before, after = seen.split("{}")
        names = tuple(sizes)
        text = f"{before}{shown}{after}{run.sampled}"
        yield Finding(kind, text, gravity, into(*names), names, sizes, advice)


def _one_of_each_label(changed: Mask, size: Array, run: Examined) -> Mask:
    """Of a label's changed columns (column,) the one that changed most."""
    kept = changed.copy()
    for label in run.coding.labels:
        own = label.columns
        most = own[np.argmax(np.where(changed[own], np.abs(size[own]), -1.0))]
        kept[own] = changed[own] & (own == most)
    return kept


def has_rows_for_blocks(windows: Windows) -> bool:
    """Whether the halves can be cut into blocks worth averaging."""
    bounds = thresholds().diagnosis
    return len(windows) >= 2 * bounds.blocks_of_half * bounds.rows_per_block


def persistence(windows: Windows) -> tuple[Array, Mask]:
    """The sum of each column's autoregressive coefficients, and whether 1 fits as well.

    An augmented Dickey-Fuller regression whose lags are those of the window:
    x_t = c + rho x_{t-1} + sum over k of d_k (x_{t-k} - x_{t-k-1}).
    """
    steps, columns = windows.shape
    rho, t = np.zeros(columns), np.full(columns, -np.inf)
    if len(windows) <= steps + 2:
        return rho, t > thresholds().diagnosis.unit_root_t
    gram, cross, square = _autoregression(windows)
    inverse = pseudo_inverse(gram)
    coefficients = np.einsum("vij,vj->vi", inverse, cross)
    explained = np.einsum("vi,vij,vj->v", coefficients, gram, coefficients)
    left = square - 2 * (coefficients * cross).sum(1) + explained
    variance = np.maximum(left, 0) / (len(windows) - steps - 1)
    rho = coefficients[:, 1]
    t = (rho - 1) / np.sqrt(np.maximum(variance * inverse[:, 1, 1], 1e-300))
    return rho, t > thresholds().diagnosis.unit_root_t


def _autoregression(windows: Windows) -> tuple[Array, Array, Array]:
    """Sums of products of each column's own past (1, x_{t-1}, differences) and x_t.

    (column, term, term), (column, term) and (column,). They follow from the moments of the past
    itself: x_{t-1} and the differences are linear in it.
    """
    steps, _ = windows.shape
    terms = np.zeros((steps + 1, steps + 1))  # (term, intercept and own step, oldest first)
    terms[0, 0] = terms[1, steps] = 1.0
    terms[2:, 1:] = np.diff(np.eye(steps), axis=0)
    own = (  # a regression for every column, (column, window, step)
        (
            window.past.astype(np.float64).transpose(2, 0, 1),
            window.target.astype(np.float64).T[..., None],
        )
        for window in windows.batches(BATCH)
    )
    moments = Moments.summed(own)
    return terms @ moments.gram @ terms.T, moments.cross[..., 0] @ terms.T, moments.square[:, 0]


def level_change(windows: Windows) -> Change:
    """Difference of the means of the later and the earlier half, in standard deviations."""
    halves = [half.targets() for half in windows.split(0.5)]
    early, late = (_block_means(half) for half in halves)
    return Change(halves[1].mean(0) - halves[0].mean(0), _welch_p_values(early, late))


def noise_change(windows: Windows, residuals: Residuals) -> Change:
    """Ratio of the later half's to the earlier half's variance around one linear model, or around
    the forecaster, whose residuals these are, where inputs are too many for another fit."""
    if windows.inputs > MOST_INPUTS:
        halves = [residuals.at(half.rows) ** 2 for half in windows.split(0.5)]
    else:
        coefficients = moments_of(windows).solve()
        halves = [unexplained(batches_of(half), coefficients) ** 2 for half in windows.split(0.5)]
    early, late = (np.log(np.maximum(_block_means(half), 1e-12)) for half in halves)
    ratio = halves[1].mean(0) / np.maximum(halves[0].mean(0), 1e-12)
    return Change(ratio, _welch_p_values(early, late))


def _block_means(values: Array) -> Array:
    """Means of consecutive blocks, (block, column)."""
    return np.stack(
        [block.mean(0) for block in np.array_split(values, thresholds().diagnosis.blocks_of_half)]
    )


def _welch_p_values(early: Array, late: Array) -> Array:
    """Welch's test between the blocks of two halves; blocks stand for independent looks."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # blocks of a label that never change
        shares = [part.var(0, ddof=1) / len(part) for part in (early, late)]
        total = shares[0] + shares[1]
        squares = sum(s**2 / (len(p) - 1) for s, p in zip(shares, (early, late), strict=True))
        t = (early.mean(0) - late.mean(0)) / np.sqrt(total)
        p_values = 2 * stdtr(total**2 / squares, -np.abs(t))
    return np.asarray(np.nan_to_num(p_values, nan=1.0))


class _Chow:
    """Chow's test of the forecaster's residuals on the past, for parts of the windows.

    Parts that alternate differ by chance alone, more so where the size of the noise varies: other
    parts must differ by more than those.
    """

    def __init__(self, run: Examined) -> None:
        past = run.batch.past.astype(np.float64).reshape(len(run.looked), -1)
        self.design = np.column_stack([np.ones(len(past)), past])
        self.targets = run.residuals.values
        self.together = self._squares(np.arange(len(past)))
        block = np.arange(len(past)) * 2 * run.bounds.blocks_of_half // len(past)
        self.usual = np.maximum(self._f(self._apart(block % 2), 2), 1.0)

    def __call__(self, part: Index) -> Change:
        """Share of the unexplained variance that goes with models of their own; part (window,)."""
        rows, columns = self.design.shape
        count = len(np.unique(part))
        apart, free = self._apart(part), rows - count * columns
        f_values = self._f(apart, count) / self.usual
        gain = 1 - (apart / free) / np.maximum(self.together / (rows - columns), 1e-300)
        return Change(gain, np.asarray(fdtrc((count - 1) * columns, free, f_values)))

    def _f(self, apart: Array, count: int) -> Array:
        """F values of models of their own for so many parts, (target,)."""
        rows, columns = self.design.shape
        more, free = (count - 1) * columns, rows - count * columns
        least = np.maximum(apart, 1e-12 * self.together + 1e-300)
        return np.maximum((self.together - apart) / more / (least / free), 0)

    def _apart(self, part: Index) -> Array:
        """Squared errors of models of their own for each part, (target,)."""
        return np.sum([self._squares(np.flatnonzero(part == one)) for one in np.unique(part)], 0)

    def _squares(self, rows: Index) -> Array:
        """Sums of squared errors of least squares on some windows, (target,)."""
        errors = KnownFeatures.of(self.design[rows]).taken_off(self.targets[rows])
        return np.asarray((errors**2).sum(0))


def _phases(windows: Windows) -> Iterator[tuple[str, Index]]:
    """Of every cycle that was taken out, halves of it (window,), cut at two places."""
    course = windows.panel.course
    if course is None:
        return
    position = np.zeros(windows.panel.rows)
    for first, end in windows.panel.spans:
        position[first:end] = positions_of(windows.panel, first, end)
    place = position[windows.rows]
    for cycle in max(course.terms, key=lambda terms: terms.rows).cycles:
        turn = place / cycle.period % 1
        yield f"with {cycle.words}", (turn < 0.5).astype(np.int64)
        yield f"with {cycle.words}", ((turn < 0.25) | (turn >= 0.75)).astype(np.int64)
