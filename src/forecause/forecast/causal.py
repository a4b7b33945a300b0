"""The causal forecaster: every target fitted again on its causes alone, on all rows.

The recipe (bench causal): inputs are the edges of the graph. Per target ridge lines, whose penalty
is chosen on 5 contiguous blocks of time; splines only if they are a standard error better there;
dictionary, trees or a network only where something joint was kept, and if two standard errors
better on the last fifth. Then everything is fitted again on all rows. What is no cause of a target
cannot move it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd

from forecause.config import ForecasterSpec, ForecastOptions
from forecause.data.windows import Windows
from forecause.forecast.additive import Additive
from forecause.forecast.choice import Member, PerTargetChoice, PerTargetChoiceSettings
from forecause.forecast.dictionary import Dictionary
from forecause.forecast.forecaster import FitData, Forecaster, ForecasterSettings, residuals_of
from forecause.forecast.linear import Linear
from forecause.forecast.products import Products
from forecause.forecast.refit import (
    Candidate,
    Causes,
    Rows,
    closed_form_on,
    of_variables,
    simplest,
    with_labels,
)
from forecause.forecast.trees import Trees
from forecause.progress import QUIET, Progress
from forecause.regression.p_values import clearly_better

MOST_RESIDUALS = 2_000  # windows whose residuals are kept for draws
LEAST_TO_LEARN = 400  # windows; with fewer neither dictionary nor trees are tried
ENOUGH_TO_CHOOSE = 3_000  # windows, from which on forms that no target took are not fitted again
LEARNED_BY = 2.0  # standard errors by which a joint function must be better than curves
MOST_MULTIPLIED = 12  # causes of a target whose products are tried
STOPPED_BY = 10  # every so manieth block of time stops the training of a network
CLOSED_FORMS = ("linear", "additive")

Array: TypeAlias = npt.NDArray[np.float64]
Single: TypeAlias = npt.NDArray[np.float32]
Index: TypeAlias = npt.NDArray[np.int64]


class CausalSettings(PerTargetChoiceSettings):
    """Which member forecasts each target, and how many residuals are kept."""

    kind: ClassVar[str] = "causal"

    residual_rows: int = 0
    residual_domains: bool = False  # whether the domain of each is kept

    def build(self, shape: tuple[int, int]) -> CausalForecaster:
        return CausalForecaster(
            shape, self, {name: member.build(shape) for name, member in self.members.items()}
        )


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

    @property
    def forecast_by(self) -> tuple[str, ...]:
        """Who forecasts each variable: "causal", or the rival that is clearly better at it."""
        return tuple(self.losses["forecast_by"])

    @property
    def is_forecast(self) -> npt.NDArray[np.bool_]:
        """Whether the dense or the causal one forecasts a variable better than its own past."""
        best = self.losses[["causal", "dense"]].min(axis=1)
        return np.asarray(best < self.losses["own past"])

    def describe(self) -> dict[str, Any]:
        """What run.json holds of it; the numbers are in `arrays`."""
        guarded = None if self.guarded is self.forecaster else _described(self.guarded)
        return {
            "forecaster": _described(self.forecaster),
            "guarded": guarded,
            "losses": self.losses.reset_index().to_dict("list"),
            "missing_causes": list(self.missing_causes),
        }

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """What was fitted, by name."""
        kept = {f"causal.{name}": values for name, values in self.forecaster.state().items()}
        if self.guarded is not self.forecaster:
            kept |= {f"guarded.{name}": values for name, values in self.guarded.state().items()}
        return kept

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
        return cls(forecaster, guarded, losses, tuple(about["missing_causes"]))


def _described(forecaster: CausalForecaster) -> dict[str, Any]:
    return {"kind": forecaster.kind, "settings": forecaster.settings.model_dump(mode="json")}


def _loaded(
    about: Mapping[str, Any],
    arrays: Mapping[str, npt.NDArray[Any]],
    begin: str,
    shape: tuple[int, int],
) -> CausalForecaster:
    forecaster = CausalSettings(**about["settings"]).build(shape)
    own = {k.removeprefix(begin): v for k, v in arrays.items() if k.startswith(begin)}
    forecaster.load_state(own)
    return forecaster


@dataclass(frozen=True, eq=False)
class Refit:
    """What the fits on the causes have in common."""

    windows: Windows
    early: Windows
    late: Windows  # held out while candidates are compared
    causes: Causes
    joint: frozenset[int] = frozenset()  # columns for which joint functions are tried
    network: ForecasterSettings | None = None  # tried too, if one was asked for by name
    closed_forms: tuple[str, ...] = CLOSED_FORMS
    seed: int = 0
    device: str = "cpu"
    progress: Progress = QUIET
    rows: Rows = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "rows", Rows.of(self.windows))

    @classmethod
    def asked(
        cls,
        windows: Windows,
        early: Windows,
        late: Windows,
        causes: Causes,
        dense: Forecaster,
        options: ForecastOptions,
        joint: Collection[int] = (),
        **context: Any,
    ) -> Refit:
        """As the options of a run have it: with the kinds that were asked for and kept."""
        columns = range(windows.shape[1])
        kept = [dense.member_of(column).settings for column in columns]
        own = windows.panel.coding.of_column
        learned = {own[c] for c in columns if kept[c].kind not in CLOSED_FORMS or c in joint}
        kind, network = _asked_kind(options), None
        if kind in CLOSED_FORMS:
            learned = set()
        elif kind not in ("auto", "dictionary", "trees"):
            network = _mlp(options)
        forms = CLOSED_FORMS[:1] if kind == "linear" else CLOSED_FORMS
        joint = frozenset(c for c in columns if own[c] in learned)
        return cls(windows, early, late, causes, joint, network, forms, **context)

    def trial(self) -> tuple[CausalForecaster, dict[int, str]]:
        """Fitted to the early windows, and which learner won which column on the late ones."""
        early = self.rows.among(self.early)
        members, names = self._closed(early, self.closed_forms)
        fitted = {name: one.model for name, one in members.items()}
        won: dict[int, str] = {}
        for settings in self._learners(len(self.windows)):
            learner = self._learned(settings, self.early, self.late)
            fitted[learner.label] = learner
            for column in self._clearly_better(learner, fitted, names):
                names[column] = won[column] = learner.label
        return CausalForecaster.joined(fitted, names, np.zeros((0, len(names))), None), won

    def final(
        self, trial: CausalForecaster, won: Mapping[int, str], losses: Array
    ) -> CausalForecaster:
        """Fitted to all windows; `losses` (column,) are those of the trial on late windows.

        Lines or splines are chosen again, unless there were windows enough to choose by before.
        """
        forms: Collection[str] = self.closed_forms
        if len(self.rows) >= ENOUGH_TO_CHOOSE:
            forms = {CLOSED_FORMS[0], *(one.kind for one in trial.members.values())}
        members, names = self._closed(self.rows, forms)
        left_out = _picked({name: one.left_out for name, one in members.items()}, names)
        fitted = {name: one.model for name, one in members.items()}
        kept = sample_of_residuals(left_out)
        residuals = left_out[kept]
        for settings in self._learners(len(self.windows)):
            columns = [c for c, label in won.items() if label == self._label(settings)]
            if not columns:
                continue
            learner = self._refitted(settings, columns)
            fitted[learner.label] = learner
            places = np.searchsorted(self.windows.rows, self.rows.row[kept])
            errors = residuals_of(learner, self.windows.at(places)).values
            for column in columns:
                names[column] = learner.label
                learner.noise_variance[column] = max(losses[column], 1e-6)
                inner = max(float(np.sqrt(np.mean(errors[:, column] ** 2))), 1e-12)
                larger = max(np.sqrt(losses[column]) / inner, 1.0)  # it has seen these windows
                residuals[:, column] = errors[:, column] * larger
        domain = self.rows.domain
        return CausalForecaster.joined(
            fitted, names, residuals, None if domain is None else domain[kept]
        )

    def _closed(self, rows: Rows, forms: Collection[str]) -> tuple[dict[str, Candidate], list[str]]:
        """Lines and splines on the causes, by their labels, and which one each column has."""
        domains = len(self.causes.in_domain)
        found = []
        for kind in (Linear, Additive):
            if kind.kind not in forms:
                continue
            settings = with_labels(kind(), self.windows)
            for known in (0, domains) if domains else (0,):
                own = settings.model_copy(update={"domains": known})
                found.append(closed_form_on(own, rows, self.causes, self.windows.shape))
        places = simplest(found, self.windows.panel.coding, self.windows.scale.mean)
        labels = [one.model.label for one in found]
        return dict(zip(labels, found, strict=True)), [labels[i] for i in places]

    def _learners(self, windows: int) -> list[ForecasterSettings]:
        """What is tried beside lines and splines."""
        if windows < LEAST_TO_LEARN or not self.joint:
            return []
        found: list[ForecasterSettings] = [Dictionary(), Trees()]
        if any(places := self._multiplied()):
            found.insert(0, Products(places=places))
        return [*found, self.network] if self.network else found

    def _multiplied(self) -> tuple[tuple[int, ...], ...]:
        """The causes (target,) whose products are tried: those of joint columns, if few."""
        flat = self.causes.everywhere.reshape(len(self.causes.everywhere), -1)
        return tuple(
            tuple(np.flatnonzero(own).tolist())
            if column in self.joint and 2 <= own.sum() <= MOST_MULTIPLIED
            else ()
            for column, own in enumerate(flat)
        )

    def _label(self, settings: ForecasterSettings) -> str:
        return self._completed(settings).build(self.windows.shape).label

    def _completed(self, settings: ForecasterSettings) -> ForecasterSettings:
        labels = self.windows.panel.coding.label_columns(self.windows.scale.mean)
        changes: dict[str, Any] = {"labels": labels, "domains": len(self.causes.in_domain)}
        if isinstance(settings, Products):
            changes["domains"] = 0
        if "inputs" in type(settings).model_fields:  # a network whose targets read their own
            changes["inputs"] = int(max(self.causes.anywhere.sum((1, 2)).max(), 1))
        return settings.model_copy(update=changes)

    def _learned(
        self,
        settings: ForecasterSettings,
        windows: Windows,
        held_out: Windows,
        columns: Collection[int] | None = None,
    ) -> Forecaster:
        """A learner fitted to the causes of some columns, of all that are joint by default."""
        columns = sorted(self.joint if columns is None else columns)
        settings = self._completed(settings)
        model = settings.seeded_build(self.windows.shape, self.seed).to(self.device)
        self.causes.of_columns(columns).constrain(model)
        if model.reads_few:
            model.read_only(_places(model.allowed, int(getattr(settings, "inputs", 0))))
        model.fit(FitData(windows, held_out, self.seed, self.progress, columns=tuple(columns)))
        return model.to("cpu")

    def _refitted(self, settings: ForecasterSettings, columns: Collection[int]) -> Forecaster:
        """The same on all windows; the training of a network is stopped by some blocks of time."""
        if settings is not self.network:
            return self._learned(settings, self.windows, self.late, columns)
        *most, rest = self.windows.interleaved(STOPPED_BY, 10 * STOPPED_BY)
        rows = np.sort(np.concatenate([part.rows for part in most]))
        learned = self.windows.at(np.searchsorted(self.windows.rows, rows))
        return self._learned(settings, learned, rest, columns)

    def _clearly_better(
        self, learner: Forecaster, fitted: Mapping[str, Forecaster], names: Sequence[str]
    ) -> list[int]:
        """The joint columns that a learner forecasts better than what they have."""
        coding, mean = self.windows.panel.coding, self.windows.scale.mean
        errors = {name: squares(fitted[name], self.late) for name in {*names, learner.label}}
        before = of_variables(_picked(errors, names), coding, mean)
        after = of_variables(errors[learner.label], coding, mean)
        better = []
        for column in sorted(self.joint):
            if not learner.has_model_for(column):
                continue
            v = int(coding.of_column[column])
            known = ~np.isnan(before[:, v])
            if clearly_better(before[known, v], after[known, v], LEARNED_BY):
                better.append(column)
        return better


def squares(forecaster: Forecaster, windows: Windows) -> Array:
    """Squared errors (window, column), NaN where the value to be forecast was filled."""
    errors = residuals_of(forecaster, windows).values ** 2
    if windows.panel.filled is not None:
        errors[windows.panel.filled[windows.rows]] = np.nan
    return errors


def _picked(errors: Mapping[str, Array], names: Sequence[str]) -> Array:
    """(window, column), each column from the one with its name."""
    return np.stack([errors[name][:, i] for i, name in enumerate(names)], axis=1)


def sample_of_residuals(left_out: Array) -> Index:
    """At most MOST_RESIDUALS windows, evenly over time, in which every target was observed.

    Where these are few, others too, whose missing residuals are those of other windows (in place).
    """
    is_whole = ~np.isnan(left_out).any(1)
    whole = np.flatnonzero(is_whole if is_whole.mean() > 0.2 else np.ones(len(left_out), bool))
    places = np.unique(np.linspace(0, len(whole) - 1, min(MOST_RESIDUALS, len(whole))).astype(int))
    kept = whole[places]
    rng = np.random.default_rng(0)
    for column in np.flatnonzero(np.isnan(left_out[kept]).any(0)):
        values = left_out[:, column]
        gaps, known = np.isnan(values), values[~np.isnan(values)]
        values[gaps] = rng.choice(known, gaps.sum()) if len(known) else 0.0
    return kept


def _places(allowed: npt.NDArray[np.bool_], inputs: int) -> Index:
    """The places (target, input) of every target's causes, filled up by what it may not read."""
    flat = allowed.reshape(len(allowed), -1)
    order = np.argsort(~flat, axis=1, kind="stable")[:, :inputs]
    return np.sort(order, axis=1)


def _asked_kind(options: ForecastOptions) -> str:
    asked = options.forecaster
    return asked.kind if isinstance(asked, ForecasterSpec) else asked


def _mlp(options: ForecastOptions) -> ForecasterSettings:
    """The network on the causes: the MLP that was asked for, or that of the preset."""
    asked = options.forecaster
    kind = ForecasterSpec.named("mlp")
    spec = asked if isinstance(asked, kind) else kind.of_preset(options.preset)
    assert isinstance(spec, ForecasterSettings)
    return spec
