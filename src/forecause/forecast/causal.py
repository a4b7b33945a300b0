"""The causal forecaster, and what a run keeps of it: every target reads its causes alone.

See `causal_fit` for how it is fitted, `guard` for who forecasts in its place.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pandas as pd
from pydantic import Field

from forecause.common.arrays import Array, Index, Mask, Single
from forecause.forecast.forecaster import Forecaster
from forecause.forecast.means import Blend  # noqa: F401  (what a saved run may hold)
from forecause.forecast.members import (
    Member,
    PerTargetChoice,
    PerTargetChoiceSettings,
    built,
    rebuilt,
)
from forecause.forecast.outlook import Outlook, table_as_lists

# Time and memory:
MOST_RESIDUALS = 2_000  # windows whose residuals are kept for draws


class CausalSettings(PerTargetChoiceSettings):
    """Which member forecasts each target, and how many residuals are kept."""

    kind: ClassVar[str] = "causal"
    refusal: ClassVar[str] = (
        "The forecaster 'causal' is fitted by every run, to the causes that it found; ask for "
        "forecaster='auto' or another one, and find it in `run.causal`."
    )

    residual_rows: int = Field(default=0, ge=0, le=MOST_RESIDUALS)
    residual_domains: bool = False  # whether the domain of each is kept

    def build(self, shape: tuple[int, int]) -> CausalForecaster:
        return CausalForecaster(shape, self, built(self.members, shape))


class CausalForecaster(PerTargetChoice):
    """Members fitted to the causes of each target, and what they leave of unseen time."""

    state_names = ("residuals", "domain_of_residual")
    settings: CausalSettings

    def __init__(
        self, shape: tuple[int, int], settings: CausalSettings, members: dict[str, Forecaster]
    ) -> None:
        super().__init__(shape, settings, members)
        count = settings.residual_rows
        self.residuals: Single = np.zeros((count, self.n_variables), dtype=np.float32)
        self.domain_of_residual: Index = np.zeros(
            count if settings.residual_domains else 0, dtype=np.int64
        )

    @classmethod
    def joined(
        cls,
        members: Mapping[str, Forecaster],
        names: Sequence[str],
        residuals: Array,
        domain: Index | None,
    ) -> CausalForecaster:
        """Each column forecast by the member with its name, (column,)."""
        used = {name: member for name, member in members.items() if name in names}
        first = next(iter(used.values()))
        settings = CausalSettings(
            kinds=tuple(names),
            members={name: Member.of(member) for name, member in used.items()},
            residual_rows=len(residuals),
            residual_domains=domain is not None,
        )
        made = cls((first.max_lag, first.n_variables), settings, used)
        made.allowed = np.stack([used[name].allowed[i] for i, name in enumerate(names)])
        made.residuals = residuals.astype(np.float32)
        made.domain_of_residual = made.domain_of_residual if domain is None else domain
        return made

    @property
    def residual_domain(self) -> Index | None:
        """The domain of every residual, (window,), where there are any."""
        return self.domain_of_residual if self.settings.residual_domains else None


@dataclass(frozen=True, eq=False)
class Causal:
    """The causal forecaster of a run, beside what it is compared with on held-out time."""

    forecaster: CausalForecaster  # of what-if and effects
    guarded: CausalForecaster  # of forecasts: the same, or another for some targets
    losses: pd.DataFrame  # per variable: causal, dense, own past, ..., mean; `forecast_by`
    missing_causes: tuple[str, ...] = ()  # targets that the dense one forecasts clearly better
    outlook: Outlook | None = None  # several steps ahead: what follows the level, and spread
    trial: CausalForecaster | None = None  # guarded, fitted to the early windows; not saved

    @property
    def forecast_by(self) -> tuple[str, ...]:
        """Who forecasts each variable, such as "causal and lasso", the larger share first."""
        return tuple(self.losses["forecast_by"])

    @property
    def is_forecast(self) -> Mask:
        """Whether the dense or the causal one forecasts a variable better than its own past.

        True where no held-out value was observed.
        """
        best = self.losses[["causal", "dense"]].min(axis=1)
        return np.asarray(~(best >= self.losses["own past"]))

    def describe(self) -> dict[str, Any]:
        """What run.json holds of it; the numbers are in `arrays`."""
        guarded = None if self.guarded is self.forecaster else _described(self.guarded)
        return {
            "forecaster": _described(self.forecaster),
            "guarded": guarded,
            "losses": table_as_lists(self.losses),
            "missing_causes": list(self.missing_causes),
            "outlook": None if self.outlook is None else self.outlook.describe(),
        }

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """What was fitted, by name."""
        kept = {f"causal.{name}": values for name, values in self.forecaster.state().items()}
        if self.guarded is not self.forecaster:
            kept |= {f"guarded.{name}": values for name, values in self.guarded.state().items()}
        return kept if self.outlook is None else kept | self.outlook.arrays()

    @classmethod
    def restored(
        cls,
        about: Mapping[str, Any],
        arrays: Mapping[str, npt.NDArray[Any]],
        shape: tuple[int, int],
    ) -> Causal:
        """From what `describe` and `arrays` gave."""
        forecaster = _loaded(about["forecaster"], arrays, "causal.", shape)
        guarded = forecaster
        if about["guarded"] is not None:
            guarded = _loaded(about["guarded"], arrays, "guarded.", shape)
        losses = pd.DataFrame(about["losses"]).set_index("variable")
        numbers = [name for name in losses if name != "forecast_by"]
        losses = losses.astype(dict.fromkeys(numbers, float))
        outlook = about.get("outlook")
        if outlook is not None:
            outlook = Outlook.restored(outlook, arrays)
        return cls(forecaster, guarded, losses, tuple(about["missing_causes"]), outlook)


def _described(forecaster: CausalForecaster) -> dict[str, Any]:
    return {"kind": forecaster.kind, "settings": forecaster.settings.model_dump(mode="json")}


def _loaded(
    about: Mapping[str, Any],
    arrays: Mapping[str, npt.NDArray[Any]],
    begin: str,
    shape: tuple[int, int],
) -> CausalForecaster:
    own = {k.removeprefix(begin): v for k, v in arrays.items() if k.startswith(begin)}
    forecaster = rebuilt(CausalSettings.kind, shape, about["settings"], own)
    assert isinstance(forecaster, CausalForecaster)
    return forecaster
