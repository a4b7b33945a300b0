"""Tests of pieces of time (waves, trends, steps), each beside a variable's own past.

The own past stands beside every piece, so that an autoregression or a random walk does not look
like a cycle or a trend.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import fft
from scipy.special import fdtrc

from forecause.config.thresholds import thresholds
from forecause.regression.least_squares import orthonormal_basis, orthonormal_columns
from forecause.seasons.terms import Array, TimeTerms, waves

# Numerics:
LEAST_NEW = 1e-5  # of a piece, that other terms and the own past do not hold already


class PieceTests:
    """Tests of pieces of time in values (row, variable), beside each variable's own past."""

    def __init__(self, values: Array, own_lags: int) -> None:
        self.own_lags = own_lags
        spread = values.std(0)
        self.values = ((values - values.mean(0)) / np.where(spread > 0, spread, 1))[:, spread > 0]
        self.rows, self.variables = self.values.shape
        self._terms, self._columns = TimeTerms(self.rows), np.zeros((self.rows, 0))
        self._beside: Array | None = None  # what the bases below stand for
        self._bases: dict[int, tuple[Array, Array]] = {}

    def f_values(self, pieces: Array, beside: Array) -> Array:
        """F values of pieces (row, term) together, given own past and other terms, (variable,)."""
        f_values = np.zeros(self.variables)
        for column in range(self.variables):
            basis, left = self.residualise_on_own_lags(column, beside)
            rest = pieces[self.own_lags :] - basis @ (basis.T @ pieces[self.own_lags :])
            rest /= np.maximum(np.sqrt((pieces**2).sum(0)), 1e-300)
            rest = orthonormal_basis(rest, LEAST_NEW)
            if not rest.shape[1]:
                continue
            explained = ((rest.T @ left) ** 2).sum()
            free = len(left) - basis.shape[1] - rest.shape[1]
            f_values[column] = (
                explained / rest.shape[1] / max((left @ left - explained) / free, 1e-12)
            )
        return f_values

    def p_value(self, pieces: Array, beside: Array) -> float:
        """Smallest p-value over variables of pieces together, times how many variables."""
        best = self.f_values(pieces, beside).max()
        return self.variables * float(fdtrc(pieces.shape[1], self.rows - 4 * self.own_lags, best))

    def wave_p_value(self, frequencies: Sequence[float], beside: Array) -> float:
        """Smallest p-value over variables and frequencies, times how many were tried."""
        time = np.arange(self.rows, dtype=np.float64)
        f_values = [self.f_values(np.stack(waves(f, time), 1), beside).max() for f in frequencies]
        best = float(max(f_values, default=0.0))
        tests = self.variables * max(len(frequencies), 1)
        p_value = float(fdtrc(2, self.rows - 3 * self.own_lags, best))
        return float(min(1.0, tests * p_value))

    def each_t_value(self, pieces: Array, beside: Array) -> Array:
        """t values of each piece (row, term) by itself, (variable, term): pieces hardly overlap."""
        t_values = np.zeros((self.variables, pieces.shape[1]))
        for column in range(self.variables):
            basis, left = self.residualise_on_own_lags(column, beside)
            rest = pieces[self.own_lags :] - basis @ (basis.T @ pieces[self.own_lags :])
            size = (rest**2).sum(0)
            seen = size > LEAST_NEW * (pieces**2).sum(0)
            along = left @ rest / np.sqrt(np.where(seen, size, np.inf))
            t_values[column] = along / np.sqrt(left @ left / len(left))
        return t_values

    def residualise_on_own_lags(self, column: int, beside: Array) -> tuple[Array, Array]:
        """An orthonormal basis of what stands beside a piece, and what it leaves of a variable."""
        if self._beside is not beside:
            self._beside, self._bases = beside, {}
        if column not in self._bases:
            own = self.values[:, column]
            past = [own[self.own_lags - k : len(own) - k] for k in range(1, self.own_lags + 1)]
            design = np.column_stack([np.ones(len(past[0])), *past, beside[self.own_lags :]])
            basis = orthonormal_columns(design)
            following = own[self.own_lags :]
            self._bases[column] = basis, following - basis @ (basis.T @ following)
        return self._bases[column]

    def columns(self, terms: TimeTerms) -> Array:
        """The terms' columns, the same array for the same terms as last time."""
        if self._terms != terms:
            self._terms, self._columns = terms, terms.matrix()
        return self._columns

    def criterion(self, terms: TimeTerms) -> float:
        """Schwarz's criterion of an autoregression of every variable beside the terms."""
        matrix = self.columns(terms)
        parameters = matrix.shape[1] + len(terms.shifts)  # the row of a shift is chosen too
        left = [self.residualise_on_own_lags(c, matrix)[1] for c in range(self.variables)]
        fit = sum(len(e) * np.log(max(float(e @ e), 1e-12) / len(e)) for e in left)
        return float(fit + np.log(self.rows) * parameters * self.variables)


def wave_f_values(basis: Array, left: Array) -> tuple[Array, Array]:
    """F values of a sine and cosine of every frequency beside a basis, by fast transforms.

    basis (row, column) is orthonormal, left (row,) what it leaves of a variable. Returns the
    frequencies, in cycles per row, twice as dense as Fourier's, and their F values.
    """
    rows = len(left)
    size = 2 * fft.next_fast_len(rows)
    waves = fft.rfft(left, size)  # sum of left (cos - i sin)
    held = fft.rfft(np.ascontiguousarray(basis.T), size).T
    frequencies = np.arange(len(waves)) / size
    double = fft.fft(np.ones(rows), size)[(2 * np.arange(len(waves))) % size]
    cos_cos = (rows + double.real) / 2 - (held.real**2).sum(1)
    sin_sin = (rows - double.real) / 2 - (held.imag**2).sum(1)
    cos_sin = -double.imag / 2 + (held.real * held.imag).sum(1)
    determinant = cos_cos * sin_sin - cos_sin**2
    a, b = waves.real, -waves.imag
    explained = sin_sin * a**2 - 2 * cos_sin * a * b + cos_cos * b**2
    valid = determinant > 1e-6 * rows**2
    explained = np.where(valid, explained / np.where(valid, determinant, 1.0), 0.0)
    explained = np.clip(explained, 0, (1 - 1e-9) * (left @ left))
    free = rows - basis.shape[1] - 2
    return frequencies, explained / 2 / ((left @ left - explained) / free)


def step_f_values(basis: Array, left: Array) -> Array:
    """F values of a step at every row beside an orthonormal basis (row, column), (row,)."""
    rows = len(left)
    after = np.cumsum(left[::-1])[::-1]
    held = np.cumsum(basis[::-1], axis=0)[::-1]
    room = np.arange(rows, 0, -1) - (held**2).sum(1)
    valid = room > 1e-6 * rows
    explained = np.where(valid, after**2 / np.where(valid, room, 1.0), 0.0)
    explained = np.clip(explained, 0, (1 - 1e-9) * (left @ left))
    f_values = explained / ((left @ left - explained) / (rows - basis.shape[1] - 1))
    least = thresholds().seasons.rows_of_level
    f_values[:least] = f_values[-least:] = 0.0
    return np.asarray(f_values)
