"""Do the bands of total effects hold: `forecause bench responses`.

Systems of the study's family with known equations. The true response is the mean difference of two
futures of the system itself, with and without the push, from many of its states and under the same
noise. Beside it: a dense VAR's asymptotic bands by statsmodels, on the same rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from forecause.method import discover
from forecause.simulation import simulate
from forecause.simulation.simulator import Simulated

FIRST_SEED = 25_000  # the width of the bands was chosen on 26_500 and later ones
ROWS = (500, 2_000)
SEEDS = 12
MECHANISMS = {"linear": "linear", "curved": "monotonic", "MLP-add": "mlp-add"}
SYSTEM: dict[str, Any] = {"nodes": 8, "max_lag": 3, "in_degree": 2.0}
HORIZON, SOURCES = 8, 3
STATES = 1_000  # of the system, from which a curved one's true response is averaged
BIG, SMALL = 0.1, 0.02  # of a target's sd
NORMAL_90 = 1.6449

Array = npt.NDArray[np.float64]


def measure(first_seed: int, seeds: int, rows: Sequence[int], _data: Any) -> Iterator[pd.DataFrame]:
    """A line for every response of every system: who says it, the truth, the band's ends."""
    for seed in range(first_seed, first_seed + seeds):
        for count in rows:
            for name, mechanism in MECHANISMS.items():
                made = simulate(rows=count, seed=seed, mechanism=mechanism, **SYSTEM)
                for part in of_system(made, seed):
                    yield part.assign(system=name, rows=count, seed=seed)


def of_system(made: Simulated, seed: int) -> Iterator[pd.DataFrame]:
    """Every method's responses to the pushes of some sources, in sds, beside the true ones."""
    names, sd = list(made.variables), made.values.std(0)
    run = discover(made.panel, SYSTEM["max_lag"], seed=seed, season="none", device="cpu")
    var = dense_var(made.values)
    for place in range(min(SOURCES, len(names))):
        true = true_response(made, place, sd[place], seed) / sd
        own = run.response(names[place], HORIZON).table
        shape = (len(names), HORIZON)
        told = [own[c].to_numpy().reshape(shape).T / sd for c in ("effect", "low", "high")]
        yield _lines("Forecause", true, *told)
        if var is not None:
            point, error = (part[:, :, place] * sd[place] / sd for part in var)
            yield _lines(
                "dense VAR", true, point, point - NORMAL_90 * error, point + NORMAL_90 * error
            )


def _lines(method: str, true: Array, point: Array, low: Array, high: Array) -> pd.DataFrame:
    parts = {"true": true, "point": point, "low": low, "high": high}
    return pd.DataFrame({name: part.ravel() for name, part in parts.items()}).assign(method=method)


def dense_var(values: Array) -> tuple[Array, Array] | None:
    """Impulse responses of a VAR on all lags, and their standard errors, (row, target, source)."""
    try:
        from statsmodels.tsa.api import VAR
    except ImportError:
        return None
    fitted = VAR(values).fit(SYSTEM["max_lag"]).irf(HORIZON)
    return fitted.irfs[1:], fitted.stderr(orth=False)[1:]


def true_response(made: Simulated, place: int, size: float, seed: int) -> Array:
    """The mean response (row, variable) of the system itself to raising a variable once."""
    (system,) = made.systems
    straight = set(system.edges["mechanism"]) <= {"linear"}
    rng = np.random.default_rng([seed, place])
    last = rng.integers(system.max_lag, len(made.values), 1 if straight else STATES)
    total = np.zeros((HORIZON, len(made.variables)))
    for row in last.tolist():
        past = made.values[row - system.max_lag : row]
        raised = past.copy()
        raised[-1, place] += size
        noise = made.noise_sd * rng.standard_normal((HORIZON, len(made.variables)))
        plain, moved = (system.run(start, noise) for start in (past, raised))
        assert plain is not None
        assert moved is not None
        total += moved - plain
    return total / len(last)


def summary(found: pd.DataFrame) -> list[pd.DataFrame]:
    """Per system, rows, size of the true effect and method: coverage, width, error."""
    size = found["true"].abs()
    found = found.assign(
        size=np.select([size >= BIG, size >= SMALL], ["big", "small"], "none"),
        held=(found["low"] <= found["true"]) & (found["true"] <= found["high"]),
        width=found["high"] - found["low"],
        error=(found["point"] - found["true"]) ** 2,
    )
    keys = ["system", "rows", "size", "method"]
    table = found.groupby(keys, sort=False)[["held", "width", "error"]].mean()
    table["error"] = np.sqrt(table["error"])
    table["effects"] = found.groupby(keys, sort=False).size()
    return [table.reset_index().sort_values(keys, ignore_index=True)]
