"""Lorenz-96: not recorded, but the field's standard beside recorded data."""

from __future__ import annotations

from typing import Any

from forecause.simulate.lorenz96 import lorenz96
from forecause_bench.real.dataset import Dataset


def generate(rows: int, seed: int, **equation: Any) -> Dataset:
    """One run; i-2, i-1, i and i+1 drive i, so every variable drives itself."""
    made = lorenz96(rows=rows, seed=seed, **equation)
    return Dataset(f"Lorenz-96, seed {seed}", made.panel, made.graph)
