"""Several steps ahead: what corrects the futures of the guarded forecaster, and how wide bands are.

See `outlook_fit` for how it is found.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd

from forecause.config.thresholds import thresholds

QUANTILE = 0.8  # of the errors, that bands go by
SMOOTHING = "smoothing"

Array: TypeAlias = npt.NDArray[np.float64]
Index: TypeAlias = npt.NDArray[np.int64]


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
        names = {0.0: "{}", 0.5: "{} and " + SMOOTHING, 1.0: SMOOTHING}
        listed = [
            one.replace(" and ", ", ") if self.share[c] else one
            for one, c in zip(by, first, strict=True)
        ]
        return [
            names[float(self.share[c])].format(one) for one, c in zip(listed, first, strict=True)
        ]

    def describe(self) -> dict[str, Any]:
        """What run.json holds of it; the numbers are in `arrays`."""
        table = self.errors.astype(object).where(self.errors.notna(), None).reset_index()
        errors = {str(name): table[name].tolist() for name in table}
        return {"season": self.season, "errors": errors}

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """By name."""
        names = ("share", "paths", "spread", "origins")
        return {f"outlook.{name}": getattr(self, name) for name in names}

    @classmethod
    def restored(cls, about: Mapping[str, Any], arrays: Mapping[str, Any]) -> Outlook:
        """From what `describe` and `arrays` gave."""
        errors = pd.DataFrame(about["errors"]).set_index("variable").astype(float)
        share, paths, spread, origins = (
            np.asarray(arrays[f"outlook.{name}"], dtype=np.float64)
            for name in ("share", "paths", "spread", "origins")
        )
        return cls(share, paths, spread, origins, int(about["season"]), errors)
