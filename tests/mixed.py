"""Systems of numbers and labels that several tests look at."""

import numpy as np
import pandas as pd

MIXED_EDGES = {("x", "x", 1), ("x", "weather", 1), ("weather", "y", 2)}


def mixed(rows=2000, seed=0, names=("sun", "rain", "snow")) -> pd.DataFrame:
    """x makes one level likely when high, another when low and the third near zero; the level two
    rows back shifts y; z has nothing to do with any of them."""
    rng = np.random.default_rng(seed)
    x, y, z = rng.normal(size=(3, rows + 50))
    level = np.zeros(rows + 50, dtype=int)
    shift = np.array([0.9, 0.0, -0.9])
    for t in range(2, rows + 50):
        x[t] += 0.5 * x[t - 1]
        logits = np.array([1.5 * x[t - 1], -1.2 * x[t - 1], 1.1 - 1.2 * x[t - 1] ** 2])
        level[t] = rng.choice(3, p=np.exp(logits) / np.exp(logits).sum())
        y[t] += shift[level[t - 2]]
    table = pd.DataFrame({"x": x, "weather": np.array(names)[level], "y": y, "z": z})
    return table[50:].reset_index(drop=True)
