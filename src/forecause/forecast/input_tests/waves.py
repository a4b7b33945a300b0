"""Waves: a closed-form test for what half of the rows are too few to learn.

A fast wave of an input, sin(w x + phase), shows in nothing that lines, splines or products see, and
a learner must find its rate in a search. Here the errors of forecasts for rows that were not
learned from are tested against every rate at once, on all rows.
"""

from __future__ import annotations

import numpy as np
from scipy.special import chdtrc

from forecause.arrays import Array, Single
from forecause.config.thresholds import thresholds
from forecause.regression.scan import WAVE_RATES, InputGroups

MOST_ROWS = 4000
SMALLEST_P = 1e-300


def wave_p_values(inputs: Array, errors: Array, candidates: InputGroups) -> Array:
    """P-values (target, group) of no wave in inputs (row, input) that errors (row, target) follow.

    The largest over all rates of s' V^-1 s, with s the sum of (sin, cos) times the error and V
    the sum of their outer products, squared errors as weights, so that the noise may vary; a
    p-value is multiplied by the number of rates. 1 for groups that are not a single number, and
    everywhere if no target shows a clear wave.
    """
    p_values = np.ones((errors.shape[1], len(candidates.groups)))
    groups = [
        g for g, own in enumerate(candidates.groups) if len(own) == 1 and candidates.curved[own[0]]
    ]
    if not groups:
        return p_values
    columns = np.array([candidates.groups[g][0] for g in groups])
    rows = np.unique(np.linspace(0, len(inputs) - 1, MOST_ROWS).astype(np.int64))
    largest = _largest_statistics(inputs[np.ix_(rows, columns)], errors[rows])
    corrected = np.clip(chdtrc(2, largest) * len(WAVE_RATES), SMALLEST_P, 1.0)
    if corrected.min() * corrected.size < thresholds().tests.wave_p:
        p_values[:, groups] = corrected
    return p_values


def _largest_statistics(inputs: Array, errors: Array) -> Array:
    """(target, input) over all rates."""
    x = inputs.astype(np.float32)
    e = (errors - errors.mean(0)).astype(np.float32)
    squares = e * e
    largest = np.zeros((e.shape[1], x.shape[1]))
    for rate in WAVE_RATES:
        sine, cosine = (
            _centred(np.sin(np.float32(rate) * x)),
            _centred(np.cos(np.float32(rate) * x)),
        )
        s, c = e.T @ sine, e.T @ cosine  # (target, input)
        ss, cc, sc = squares.T @ sine**2, squares.T @ cosine**2, squares.T @ (sine * cosine)
        determinant = np.maximum(ss * cc - sc * sc, 1e-6 * ss * cc + 1e-9)
        largest = np.maximum(largest, (s * s * cc - 2 * s * c * sc + c * c * ss) / determinant)
    return largest


def _centred(values: Single) -> Single:
    return np.asarray(values - values.mean(0))
