"""Forecaster: what every model that predicts X_t from its past has in common."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from forecause.common.arrays import Array, Floats, Index, Mask
from forecause.config import ForecasterSpec
from forecause.config.advice import Advice
from forecause.config.thresholds import thresholds
from forecause.data.variables import LabelColumns
from forecause.data.windows import Window, Windows
from forecause.errors import InputError
from forecause.forecast.likelihood import MeanLikelihood
from forecause.progress import QUIET, Progress
from forecause.regression.residuals import Residuals

if TYPE_CHECKING:
    from forecause.forecast.input_tests.protocol import InputTests, TestRequest

# Time and memory:
ENOUGH_WINDOWS = 20_000  # of a longer table no more are learned from, compared or tested on
MANY_INPUTS = 100  # beyond so many some models and tests read the plausible ones alone
WATCHED = 4096  # held-out windows looked at to decide when to stop
MOST_AT_ONCE = 2048  # windows that are forecast together

# Numerics:
LEAST_NOISE = 1e-6  # of a target's variance: a perfect forecast still has a likelihood

# Shape of the model:
STEP = 0.5  # standard deviations by which an input is moved either way to tell its mean slope


@dataclass(frozen=True)
class Rules:
    """How relevance is passed back: the plain gradient, or LRP as a modified one.

    `query_key` and `value` are factors on the gradients of an attention's inputs, `residual` one on
    the residual beside attention (not beside the feed-forward network). With `linearise` a norm's
    standard deviation is held constant and f(x) is passed back as f(x) / x.
    """

    query_key: float = 1.0
    value: float = 1.0
    residual: float = 1.0
    linearise: bool = False


PLAIN = Rules()


@dataclass(frozen=True)
class KnownErrors:
    """Errors (window, target) of the best rivals on the windows that training looks at."""

    errors: Floats

    def __call__(self, _watched: Windows) -> Floats:
        return self.errors


@dataclass(frozen=True)
class FitData:
    """What a forecaster is fitted to; held-out windows are used for early stopping and for the
    noise variance, not for gradients.

    One that learns step by step may give up once it clearly cannot beat its rivals: `to_beat`
    gives the errors (window, target) of each target's best one on some windows.
    """

    windows: Windows
    held_out: Windows
    seed: int = 0
    progress: Progress = QUIET
    to_beat: Callable[[Windows], Floats] | None = None
    seconds: float | None = None  # after which training stops
    columns: tuple[int, ...] | None = None  # targets worth the work, if not all are

    def watched(self, rng: np.random.Generator) -> Windows:
        """The held-out windows that training looks at; `rng` is fresh from the seed."""
        return self.held_out.sample(WATCHED, rng)

    def picklable(self) -> FitData:
        """The same for another process: without progress, and with the rivals' errors in place of
        the rivals."""
        known = self.to_beat
        if known is not None and not isinstance(known, KnownErrors):
            known = KnownErrors(known(self.watched(np.random.default_rng(self.seed))))
        return replace(self, progress=QUIET, to_beat=known)

    def time_is_up(self, began: float) -> bool:
        """Whether training that began at this time.monotonic() has to stop."""
        return self.seconds is not None and time.monotonic() - began > self.seconds

    def of_domain(self, domain: int) -> FitData:
        """The part about one domain, or all of it if that is too little."""
        own, held_out = self.windows.in_domain(domain), self.held_out.in_domain(domain)
        enough = thresholds().choice.windows_per_domain_input * own.inputs
        if len(own) < enough or not len(held_out):
            return self
        return replace(self, windows=own, held_out=held_out)


class ForecasterSettings(ForecasterSpec):
    """Base of the settings of every forecaster, a user's own too; `build` makes the model.

    `domains` and `labels` are filled in before it is built.

    Examples
    --------
    >>> import forecause as fc
    >>> fc.forecasters.Linear().closed_form, fc.forecasters.MLP().closed_form
    (True, False)
    """

    refusal: ClassVar[str] = ""  # why it cannot be asked for by name, if it follows from a run

    domains: int = 0  # whose index is an input; 0: it is none
    labels: tuple[LabelColumns, ...] = ()  # columns that together are one variable

    @classmethod
    def of_preset(cls, preset: str) -> ForecasterSpec:
        if cls.refusal:
            raise InputError(cls.refusal)
        return super().of_preset(preset)

    @abstractmethod
    def build(self, shape: tuple[int, int]) -> Forecaster:
        """An unfitted forecaster of windows (max_lag, columns)."""

    def seeded_build(self, shape: tuple[int, int], seed: int) -> Forecaster:
        """The same; random first weights, where there are any, depend on the seed alone."""
        return self.build(shape)

    def features(self, inputs: int) -> int:
        """Terms that a closed form fits to so many inputs."""
        return inputs


class Forecaster(ABC):
    """Maps the standardised past of all variables to the forecast of each.

    A subclass is one file: settings, parameters, `forward` and `fit`. Attribution, selection and
    the report need nothing else. Its parameters are NumPy arrays, whose names `state_names` lists:
    they are what a saved run holds. A subclass that knows its slopes overrides `jacobian`.

    With `domains`, the index of each window's domain is an input too. An input that is not
    `allowed` (target, step, source) must not reach the target's forecast. Here a variable is a
    column: a label has one for each of its levels, which is forecast as its standardised
    probability.

    Examples
    --------
    >>> import numpy as np
    >>> import forecause as fc
    >>> model = fc.forecasters.Linear().build((2, 3))  # 2 lags of 3 variables
    >>> model(np.zeros((5, 2, 3))).shape
    (5, 3)
    """

    state_names: ClassVar[tuple[str, ...]] = ()  # attributes that are parameters
    read_windows: int = 2000  # over which relevance is averaged, at most
    asked_inputs: int = 10**9  # windows times inputs that its own tests ask about, at most

    allowed: Mask  # (target, step, source)
    noise_variance: Array  # (target,) of the errors on held-out windows

    def __init__(
        self, shape: tuple[int, int], settings: ForecasterSettings, head: str = "mse"
    ) -> None:
        self.max_lag, self.n_variables = shape
        self.settings = settings
        self.head_name = head
        self.domains = settings.domains  # 0: the domain is no input
        self.labels = settings.labels
        self.noise_variance = np.ones(self.n_variables)
        self.allowed = np.ones((self.n_variables, self.max_lag, self.n_variables), dtype=bool)

    # What it is.

    @property
    def kind(self) -> str:
        """The name it is chosen by."""
        return self.settings.kind

    @property
    def label(self) -> str:
        """The kind, and the head if it is not the default one."""
        return self.kind if self.head_name == "mse" else f"{self.kind}-{self.head_name}"

    @property
    def is_straight(self) -> bool:
        """Whether its slopes are the same in every window."""
        return False

    @property
    def learns_variance(self) -> bool:
        """Whether the variance of some target may depend on the past."""
        return False

    @property
    def reads_few(self) -> bool:
        """Whether every target is to be kept to a few inputs before fitting; see `read_only`."""
        return False

    @property
    def members(self) -> Mapping[str, Forecaster]:
        """The forecasters that it is made of, by their names in a saved run."""
        return {}

    def member_of(self, _column: int) -> Forecaster:
        """The model that makes the forecast of a column: itself, unless it chose from several."""
        return self

    def has_model_for(self, _column: int) -> bool:
        """Whether it may be chosen to forecast a column: not where it has nothing of its own."""
        return True

    # How it is fitted.

    def constrain(self, allowed: Mask) -> None:
        """Keep inputs from targets, (target, step, source), before fitting."""
        self.allowed = np.array(allowed, dtype=bool).reshape(self.allowed.shape)

    def read_only(self, places: Index) -> None:
        """Keep every target to these places step * variable (target, input)."""
        raise NotImplementedError(f"the {self.kind} reads all inputs")

    @abstractmethod
    def fit(self, fit_data: FitData) -> None:
        """Fit the parameters to `fit_data.windows`; held-out windows only decide when to stop."""

    def estimate_noise(self, held_out: Windows) -> None:
        """Take the noise variance per target from the errors on held-out windows."""
        mean = squared_errors(self, held_out).mean(0, dtype=np.float64)
        self.noise_variance = np.maximum(mean, LEAST_NOISE)

    def unfitted(self, seed: int = 0) -> Forecaster:
        """A new one with the same settings and allowed inputs, to be fitted."""
        fresh = self.settings.seeded_build((self.max_lag, self.n_variables), seed)
        fresh.constrain(self.allowed)
        return fresh

    def keep_only(self, columns: Collection[int]) -> None:
        """Forget what only other target columns need, which another forecaster was chosen for."""
        return

    # What it says.

    def input_tests(self, request: TestRequest) -> InputTests:
        """The p-value of every input: how likely its effect is to be chance.

        Here from refits on two parts of time, each tested on the other; only forecasts are needed.
        A closed form knows its p-values from its moments.
        """
        assert request.refits is not None, f"the {self.kind} is tested by refits"
        return request.refits.tests(request)

    @abstractmethod
    def forward(self, past: Floats, rules: Rules = PLAIN, domain: Index | None = None) -> Floats:
        """Forecast (batch, variable) from the past (batch, max_lag, variable), oldest first.

        `domain` (batch,) is each window's index; a forecaster without `domains` does not read it.
        `rules` change how relevance is passed back, never the forecast.
        """

    def __call__(self, past: Floats, rules: Rules = PLAIN, domain: Index | None = None) -> Floats:
        return self.forward(past, rules, domain)

    def forecast(self, window: Window) -> Floats:
        """The forecast of every window, (batch, variable)."""
        return self.forward(window.past, domain=window.domain)

    def errors(self, window: Window) -> Floats:
        """What is made small, (batch, variable).

        The squared error, or the negative log-likelihood where more than the mean is learned.
        """
        return np.asarray((self.forecast(window) - window.target) ** 2)

    def log_likelihood(self, window: Window) -> Floats:
        """log p(X_t | past) per target, (batch, variable), in standardised units."""
        mean = self.forecast(window)
        return MeanLikelihood(self.labels).log_prob(mean, self.noise_variance, window.target)

    def variance(self, window: Window) -> Floats:
        """Variance of p(X_t | past) per target, (batch, variable)."""
        return MeanLikelihood(self.labels).variance(self.forecast(window), self.noise_variance)

    def jacobian(self, past: Floats, rules: Rules = PLAIN, domain: Index | None = None) -> Floats:
        """d forecast / d past per sample: (batch, target, max_lag, source).

        Here the mean slope within half a standard deviation of each input, which takes two
        forecasts per input; a forecaster that knows its slopes overrides this.
        """
        slopes = np.zeros((len(past), self.n_variables, *past.shape[1:]), dtype=past.dtype)
        for step, source in np.ndindex(self.max_lag, self.n_variables):
            moved = past.copy()
            moved[:, step, source] += STEP
            above = self.forward(moved, domain=domain)
            moved[:, step, source] -= 2 * STEP
            below = self.forward(moved, domain=domain)
            slopes[:, :, step, source] = (above - below) / (2 * STEP)
        return slopes

    def score(self, window: Window) -> Floats:
        """d log p(X_t | past) / d past per sample: (batch, target, max_lag, source)."""
        slopes = self.jacobian(window.past, domain=window.domain)
        likelihood, mean = MeanLikelihood(self.labels), self.forecast(window)
        return likelihood.score(mean, self.noise_variance, window.target, slopes)

    def contribution(self, target: int, step: int, source: int, values: Floats) -> Floats | None:
        """What one input alone adds to a forecast at these values (point,).

        None where the forecast is no sum of what its inputs add.
        """
        return None

    def attentions(self, past: Floats, domain: Index | None = None) -> list[Floats]:
        """Attention weights of every layer, (batch, head, query token, key token)."""
        raise InputError(
            f"Attention can only be read from the transformer, found the forecaster {self.kind!r}; "
            f"use {Advice('forecaster', 'transformer')} or {Advice('readout', 'gradient')}."
        )

    # How it is kept.

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Everything that was fitted, by name; what a saved run holds."""
        names = ("noise_variance", "allowed", *self.state_names)
        state = {name: np.asarray(getattr(self, name)) for name in names}
        for name, member in self.members.items():
            state |= {f"members.{name}.{own}": values for own, values in member.state().items()}
        return state

    def load_state(self, state: Mapping[str, npt.NDArray[Any]]) -> None:
        """Take over what `state` of a forecaster with the same settings gave."""
        expected = self.state()
        if missing := [name for name in expected if name not in state]:
            raise ValueError(f"the array {missing[0]} of the {self.kind} is missing")
        if unknown := [name for name in state if name not in expected]:
            raise ValueError(f"the {self.kind} has no array {unknown[0]}")
        for name in ("noise_variance", "allowed", *self.state_names):
            own = np.asarray(getattr(self, name))
            if state[name].shape != own.shape:
                raise ValueError(
                    f"the array {name} of the {self.kind} should have the shape {own.shape}, "
                    f"found {state[name].shape}"
                )
            setattr(self, name, np.array(state[name], dtype=own.dtype))
        for name, member in self.members.items():
            begin = f"members.{name}."
            part = {k.removeprefix(begin): v for k, v in state.items() if k.startswith(begin)}
            member.load_state(part)

    def to(self, device: str) -> Self:
        """The same, its work done on a device; only networks have a choice."""
        for member in self.members.values():
            member.to(device)
        return self

    def picklable(self) -> Self:
        """The same, ready for another process: on the processor, whatever it was fitted on."""
        return self.to("cpu")

    @property
    def size(self) -> int:
        """How many numbers were fitted."""
        return sum(values.size for values in self.state().values())


def squared_errors(forecaster: Forecaster, windows: Windows) -> Floats:
    """Squared error of every window and target, (window, target)."""
    return over_windows(windows, lambda w: (forecaster.forecast(w) - w.target) ** 2)


def residuals_of(forecaster: Forecaster, windows: Windows) -> Residuals:
    """Target minus forecast of every window."""
    left = over_windows(windows, lambda window: window.target - forecaster.forecast(window))
    return Residuals.of(left.astype(np.float64), windows.rows, windows.panel.starts)


def over_windows(windows: Windows, measure: Callable[[Window], Floats]) -> Floats:
    """`measure` (batch, target), such as `forecaster.errors`, of all windows."""
    return np.concatenate([measure(batch) for batch in windows.batches(MOST_AT_ONCE)])


def roll(
    forecaster: Forecaster,
    past: Floats,
    steps: int,
    following: Callable[[int, Floats], Floats] | None = None,
    domain: Index | None = None,
) -> Floats:
    """past (case, max_lag, column) -> (case, step, column); the domain (case,) stays as it is.

    `following` maps a step and its forecast (case, column) to what is taken to happen, which is the
    forecast by default.
    """
    rows = []
    with np.errstate(over="ignore", invalid="ignore"):  # an unstable model runs away
        for step in range(steps):
            row = forecaster(past, domain=domain)
            row = row if following is None else following(step, row)
            past = np.concatenate([past[:, 1:], row[:, None]], axis=1)
            rows.append(row)
    return np.stack(rows, axis=1)
