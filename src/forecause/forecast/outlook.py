"""Several steps ahead: what corrects the futures of the guarded forecaster, and how wide bands are.

See `outlook_fit` for how it is found.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from forecause.common.arrays import Array, Index
from forecause.config.thresholds import thresholds

# Shape of the model:
QUANTILE = 0.8  # of the errors, that bands go by

SMOOTHING = "smoothing"
ARRAYS = ("share", "paths", "spread", "origins")  # that a saved run holds


@dataclass(frozen=True, eq=False)
class Outlook:
    """What corrects the futures of the guarded forecaster, all in the data's units."""

    share: Array  # (column,) of the follower's forecast beside the model's: 0, a half or 1
    paths: Array  # (series, step, column) of the follower, after the end of every series
    spread: Array  # (step, column) that QUANTILE of the late errors stay below; NaN: not known
    origins: Array  # (step,) independent ones that this was measured by
    season: int
    errors: pd.DataFrame  # per variable: mean absolute late errors over those of the last value

    def path(self, series: int, steps: int) -> Array:
        """The follower's forecast (step, column) after the end of a series."""
        path = self.paths[series]
        more = steps - len(path)
        if more > 0:
            path = np.concatenate([path, np.resize(path[-self.season :], (more, path.shape[1]))])
        return path[:steps]

    def centre(self, model: Array, path: Array) -> Array:
        """The forecast (step, column) from the model's and the follower's."""
        known = np.where(self.share > 0, path, 0.0)
        return np.asarray((1 - self.share) * model + self.share * known)

    def widening(self, drawn: Array) -> Array:
        """By how much the noise of futures (draw, step, column) is to be multiplied.

        To the size of the errors on late rows, the more so the more independent origins there
        were. Beyond the steps that were measured what follows a level goes on as a random walk.
        """
        size = np.quantile(np.abs(drawn - drawn.mean(0)), QUANTILE, axis=0)  # (step, column)
        steps = min(len(size), len(self.spread))
        found = np.ones_like(size)
        if steps == 0:
            return found
        counts = self.origins[:steps, None]
        trust = np.where(self.share > 0, 1.0, counts / (counts + thresholds().choice.prior_origins))
        with np.errstate(divide="ignore", invalid="ignore"):
            factor = (self.spread[:steps] / size[:steps]) ** trust
            found[:steps] = np.where(np.isfinite(factor) & (factor > 0), factor, 1.0)
            later = np.arange(steps + 1, len(size) + 1)[:, None] / steps
            walk = np.sqrt(later) * size[steps - 1] / size[steps:]
        goes_on = (self.share > 0) & np.isfinite(walk)
        found[steps:] = found[steps - 1] * np.where(goes_on, walk, 1.0)
        return found

    def named(self, by: list[str], first: Index) -> list[str]:
        """Who forecasts each variable, `by` being the model's part; `first` its first column."""
        words = []
        for one, share in zip(by, self.share[first].tolist(), strict=True):
            several = {0.0: one, 0.5: f"{one.replace(' and ', ', ')} and {SMOOTHING}"}
            words.append(several.get(share, SMOOTHING))
        return words

    def describe(self) -> dict[str, Any]:
        """What run.json holds of it; the numbers are in `arrays`."""
        return {"season": self.season, "errors": table_as_lists(self.errors)}

    def arrays(self) -> dict[str, Array]:
        """By name."""
        return {f"outlook.{name}": getattr(self, name) for name in ARRAYS}

    @classmethod
    def restored(cls, about: Mapping[str, Any], arrays: Mapping[str, Any]) -> Outlook:
        """From what `describe` and `arrays` gave."""
        errors = pd.DataFrame(about["errors"]).set_index("variable").astype(float)
        own = {n: np.asarray(arrays[f"outlook.{n}"], dtype=np.float64) for n in ARRAYS}
        return cls(**own, season=int(about["season"]), errors=errors)


def table_as_lists(table: pd.DataFrame) -> dict[str, list[Any]]:
    """Columns and index as plain lists; what is not a number is None."""
    table = table.reset_index()
    return {
        str(name): [None if cell != cell else cell for cell in table[name].tolist()]
        for name in table
    }
