"""Are shocks taken for errors: python -m forecause_bench.shocks.

Tables of six variables with four links, whose shocks the system feels, with heavy tails or with
skewed values. The share of tables in which cells are read as missing is printed by family.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from rich.console import Console

from forecause.data.gaps import additive_outliers
from forecause_bench.unlinked import BURN_IN, draw_coefficients

Array = npt.NDArray[np.float64]
Noise = Callable[[tuple[int, int], np.random.Generator], Array]

SIZES = (300, 500, 1000, 2000)  # rows, by turns of the seed
VARIABLES = 6


def shocks(shape: tuple[int, int], rng: np.random.Generator) -> Array:
    """Ordinary noise, and in three rows of a hundred a shock of 5 to 10 standard deviations."""
    wild = rng.uniform(5, 10, shape)
    return rng.normal(size=shape) + np.where(rng.uniform(size=shape) < 0.03, wild, 0.0)


FAMILIES: dict[str, tuple[Noise, Callable[[Array], Array], Callable[[Array], Array]]] = {
    "shocks": (shocks, np.asarray, np.asarray),
    "shocks, saturating answers": (shocks, lambda x: 2 * np.tanh(x), np.asarray),
    "t, 3 degrees of freedom": (lambda s, rng: rng.standard_t(3, s), np.asarray, np.asarray),
    "t, 2 degrees of freedom": (lambda s, rng: rng.standard_t(2, s), np.asarray, np.asarray),
    "rain": (lambda s, rng: rng.gamma(0.3, 3, s), np.asarray, np.asarray),
    "lognormal": (lambda s, rng: rng.normal(size=s), np.asarray, np.exp),
}
"""Noise, what a cause does, and what is recorded of the values."""


def table(family: str, own: float, seed: int) -> Array:
    """Values (row, variable); `own` is the coefficient of a variable's last value."""
    noise, answer, recorded = FAMILIES[family]
    rng = np.random.default_rng([seed, 77])
    weights = draw_coefficients(VARIABLES, own, True, rng)
    lags = weights.shape[2]
    new = noise((SIZES[seed % len(SIZES)] + BURN_IN, VARIABLES), rng)
    values = np.zeros_like(new)
    for row in range(lags, len(new)):
        past = answer(values[row - lags : row][::-1])  # (lag, source)
        values[row] = np.einsum("tsl,ls->t", weights, past) + new[row]
    return np.asarray(recorded(values[BURN_IN:]))


def main() -> None:
    """Print how many tables of every family lose cells."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=int, default=20)
    parser.add_argument("--first-seed", type=int, default=600)
    asked = parser.parse_args()
    seeds = range(asked.first_seed, asked.first_seed + asked.tables)
    columns, start = list(range(VARIABLES)), np.array([0])
    for family in FAMILIES:
        for own in (0.0, 0.5):
            touched = sum(
                additive_outliers(table(family, own, seed), start, columns) is not None
                for seed in seeds
            )
            Console().print(f"{family}, memory {own}: {touched} of {asked.tables} tables")


if __name__ == "__main__":
    main()
