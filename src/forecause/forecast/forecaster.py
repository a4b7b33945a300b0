"""Forecaster: what every model that predicts X_t from its past has in common."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from forecause.config import ForecasterSpec
from forecause.data.variables import LabelColumns
from forecause.data.windows import Window, Windows
from forecause.errors import InputError
from forecause.forecast.backward import PLAIN, Rules
from forecause.forecast.heads import LIKELIHOODS, Labelled, Likelihood
from forecause.progress import QUIET, Progress
from forecause.regression.residuals import Residuals

WATCHED = 4096  # held-out windows looked at to decide when to stop
LEAST_NOISE = 1e-6  # of a target's variance: a perfect forecast still has a likelihood

MOST_AT_ONCE = 2048  # windows that are forecast, unless the forecaster asks for fewer
WINDOWS_PER_INPUT = 3  # a domain with fewer learns from all domains


@dataclass(frozen=True)
class KnownErrors:
    """Errors (window, target) of the best rivals on the windows that training looks at."""

    errors: Tensor

    def __call__(self, _watched: Windows) -> Tensor:
        return self.errors


@dataclass(frozen=True)
class FitData:
    """What a forecaster is fitted to; held-out windows may stop or tune it, never teach.

    One that learns step by step may give up once it clearly cannot beat its rivals: `to_beat`
    gives the errors (window, target) of each target's best one on some windows.
    """

    windows: Windows
    held_out: Windows
    seed: int = 0
    progress: Progress = QUIET
    to_beat: Callable[[Windows], Tensor] | None = None
    seconds: float | None = None  # after which training stops
    columns: tuple[int, ...] | None = None  # targets worth the work, if not all are

    def watched(self, rng: np.random.Generator) -> Windows:
        """The held-out windows that training looks at; `rng` is fresh from the seed."""
        return self.held_out.sample(WATCHED, rng)

    def alone(self) -> FitData:
        """The same for another process: nobody hears of progress there, and the errors of the
        rivals are known, so that these need not travel."""
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
        steps, columns = own.shape
        if len(own) < WINDOWS_PER_INPUT * steps * columns or not len(held_out):
            return self
        return replace(self, windows=own, held_out=held_out)


class ForecasterSettings(ForecasterSpec):
    """Base of the settings of every forecaster, a user's own too; `build` makes the model.

    `domains` and `labels` are filled in before it is built.

    Examples
    --------
    >>> import forecause as fc
    >>> fc.Linear().closed_form, fc.MLP().closed_form
    (True, False)
    """

    domains: int = 0  # whose index is an input; 0: it is none
    labels: tuple[LabelColumns, ...] = ()  # columns that together are one variable

    @abstractmethod
    def build(self, shape: tuple[int, int]) -> Forecaster:
        """An unfitted forecaster of windows (max_lag, columns)."""

    def features(self, inputs: int) -> int:
        """Terms that a closed form fits to so many inputs."""
        return inputs


class Forecaster(nn.Module, ABC):
    """Maps the standardised past of all variables to the forecast of each.

    A subclass is one file: settings, parameters, `forward` and `fit`. Attribution, selection and
    the report need nothing else.

    With `domains`, the index of each window's domain is an input too. An input that is not
    `allowed` (target, step, source) must not reach the target's forecast. Here a variable is a
    column: a label has one for each of its levels, which is forecast as its standardised
    probability.

    Examples
    --------
    >>> import torch
    >>> import forecause as fc
    >>> model = fc.Linear().build((2, 3))  # 2 lags of 3 variables
    >>> model(torch.zeros(5, 2, 3)).shape
    torch.Size([5, 3])
    """

    read_windows: int = 2000  # over which relevance is averaged, at most
    asked_inputs: int = 10**9  # windows times inputs that its own tests ask about, at most
    separate_targets: bool = False  # the first axis of every parameter is the target
    logits: ClassVar[bool] = False  # outputs of a label are its levels' logits

    def __init__(
        self, shape: tuple[int, int], settings: ForecasterSettings, head: str = "mse"
    ) -> None:
        super().__init__()
        self.max_lag, self.n_variables = shape
        self.settings = settings
        self.head_name = head
        self.domains = settings.domains  # 0: the domain is no input
        self.labels = settings.labels
        self.likelihood: Likelihood = LIKELIHOODS[head]
        if self.labels:
            self.likelihood = Labelled(self.likelihood, self.labels, self.logits)
        self.register_buffer("noise_variance", torch.ones(self.n_variables))
        everything = torch.ones(self.n_variables, self.max_lag, self.n_variables, dtype=torch.bool)
        self.register_buffer("allowed", everything)

    @property
    def kind(self) -> str:
        """The name it is chosen by."""
        return self.settings.kind

    @property
    def is_straight(self) -> bool:
        """Whether its slopes are the same in every window."""
        return False

    @property
    def reads_few(self) -> bool:
        """Whether every target is to be kept to a few inputs before fitting; see `read_only`."""
        return False

    def read_only(self, places: Tensor) -> None:
        """Keep every target to these places step * variable (target, input)."""
        raise NotImplementedError(f"the {self.kind} reads all inputs")

    def attentions(self, past: Tensor) -> list[Tensor]:
        """Attention weights of every layer, (batch, head, query token, key token)."""
        raise InputError(
            f"Attention can only be read from a transformer, found the forecaster {self.kind!r}; "
            "choose forecaster='transformer' or readout='gradient'."
        )

    def member_of(self, _column: int) -> Forecaster:
        """The model that makes the forecast of a column: itself, unless it chose from several."""
        return self

    def contribution(self, target: int, step: int, source: int, values: Tensor) -> Tensor | None:
        """What one input alone adds to a forecast at these values (point,).

        None where the forecast is no sum of what its inputs add.
        """
        return None

    def offers(self, _column: int) -> bool:
        """Whether it may be chosen to forecast a column: not where it has nothing of its own."""
        return True

    def keep_only(self, columns: Collection[int]) -> None:
        """Forget what only other target columns need, which another forecaster was chosen for."""
        return

    @property
    def label(self) -> str:
        """The kind, and the head if it is not the default one."""
        return self.kind if self.head_name == "mse" else f"{self.kind}-{self.head_name}"

    @property
    def work_per_window(self) -> int:
        """Roughly the multiplications of a forecast, to tell small steps from large ones."""
        return parameter_count(self)

    @property
    def windows_per_pass(self) -> int | None:
        """How many windows of a batch are best learned from at once; None: all of them."""
        return None

    def constrain(self, allowed: Tensor) -> None:
        """Keep inputs from targets, (target, step, source), before fitting."""
        self.get_buffer("allowed").copy_(allowed)

    @abstractmethod
    def forward(self, past: Tensor, rules: Rules = PLAIN, domain: Tensor | None = None) -> Tensor:
        """Forecast (batch, variable) from the past (batch, max_lag, variable), oldest first.

        `domain` (batch,) is each window's index; a forecaster without `domains` does not read it.
        """

    @abstractmethod
    def fit(self, fit_data: FitData) -> None:
        """Fit the parameters to `fit_data.windows`; held-out windows only decide when to stop."""

    def forecast(self, window: Window) -> Tensor:
        """The forecast of every window, (batch, variable)."""
        forecast: Tensor = self(window.past, domain=window.domain)
        return forecast

    def errors(self, window: Window) -> Tensor:
        """What is made small, (batch, variable).

        The squared error, or the negative log-likelihood where more than the mean is learned.
        """
        outputs = self.outputs(window.past, domain=window.domain)
        return self.likelihood.errors(outputs, window.target)

    def loss(self, window: Window) -> Tensor:
        """Mean error per target, (variable,), the one to learn from."""
        return self.errors(window).mean(0)

    def outputs(self, past: Tensor, rules: Rules = PLAIN, domain: Tensor | None = None) -> Tensor:
        """The numbers the head asks for, (batch, variable, output)."""
        return self(past, rules, domain)[..., None]

    def distribution(self, past: Tensor, domain: Tensor | None = None) -> Tensor:
        """Parameters of p(X_t | past) for `self.likelihood`, (batch, variable, parameter)."""
        outputs = self.outputs(past, domain=domain)
        if not self.likelihood.fixed:
            return outputs
        log_variance = self.get_buffer("noise_variance").log()[:, None]
        return torch.cat([outputs, log_variance.expand_as(outputs)], dim=-1)

    def log_likelihood(self, window: Window) -> Tensor:
        """log p(X_t | past) per target, (batch, variable), in standardised units."""
        parameters = self.distribution(window.past, window.domain)
        return self.likelihood.log_prob(parameters, window.target)

    @property
    def learns_variance(self) -> bool:
        """Whether the variance of some target may depend on the past."""
        return not self.likelihood.fixed

    def variance(self, window: Window) -> Tensor:
        """Variance of p(X_t | past) per target, (batch, variable)."""
        return self.likelihood.variance(self.distribution(window.past, window.domain))

    def estimate_noise(self, held_out: Windows) -> None:
        """Take the noise variance per target from the errors on held-out windows."""
        found = squared_errors(self, held_out).mean(0).clamp(min=LEAST_NOISE)
        self.get_buffer("noise_variance").copy_(found)

    def jacobian(self, past: Tensor, rules: Rules = PLAIN, domain: Tensor | None = None) -> Tensor:
        """d forecast / d past per sample: (batch, target, max_lag, source).

        One backward pass per target; a forecaster with a cheaper way overrides this.
        """
        past = past.detach().requires_grad_()
        return self._gradients(self(past, rules, domain), past)

    def score(self, window: Window) -> Tensor:
        """d log p(X_t | past) / d past per sample: (batch, target, max_lag, source)."""
        if self.likelihood.fixed and not self.labels:  # (x - f) / variance * df / dpast
            pull = (window.target - self.forecast(window)) / self.get_buffer("noise_variance")
            return pull[:, :, None, None] * self.jacobian(window.past, domain=window.domain)
        past = window.past.detach().requires_grad_()
        return self._gradients(self.log_likelihood(replace(window, past=past)), past)

    def without_forbidden(self, past: Tensor, run: Callable[[Tensor], Tensor]) -> Tensor:
        """`run` (batch, target, ...) where each target sees its allowed inputs alone.

        The others are held at their mean. For a forecaster whose targets share their inputs: one
        run for each group of targets with the same inputs.
        """
        allowed = self.get_buffer("allowed")
        if bool(allowed.all()):
            return run(past)
        kinds, kind_of = torch.unique(allowed, dim=0, return_inverse=True)
        answers = []
        for kind in kinds:
            answers.append(run(past * kind))
        return torch.stack([answers[k][:, i] for i, k in enumerate(kind_of.tolist())], dim=1)

    def _gradients(self, values: Tensor, past: Tensor) -> Tensor:
        """d values (batch, target) / d past, (batch, target, max_lag, source)."""
        rows = [
            torch.autograd.grad(values[:, i].sum(), past, retain_graph=True)[0]
            for i in range(values.shape[1])
        ]
        return torch.stack(rows, dim=1)


def squared_errors(forecaster: Forecaster, windows: Windows) -> Tensor:
    """Squared error of every window and target, (window, target)."""

    def squares(window: Window) -> Tensor:
        return (forecaster.forecast(window) - window.target).square()

    return over_windows(forecaster, windows, squares)


def residuals_of(forecaster: Forecaster, windows: Windows) -> Residuals:
    """Target minus forecast of every window."""

    def left(window: Window) -> Tensor:
        return window.target - forecaster.forecast(window)

    values = over_windows(forecaster, windows, left).double().numpy()
    return Residuals.of(values, windows.rows, windows.panel.starts)


@torch.no_grad()
def over_windows(
    forecaster: Forecaster,
    windows: Windows,
    measure: Callable[[Window], Tensor],
) -> Tensor:
    """`measure` (batch, target), such as `forecaster.errors`, of all windows, on the CPU."""
    device = next(iter(forecaster.state_dict().values())).device
    size = forecaster.windows_per_pass or MOST_AT_ONCE
    return torch.cat([measure(b.to(device)).cpu() for b in windows.batches(size)])


def parameter_count(module: nn.Module) -> int:
    """Number of trainable numbers."""
    return sum(p.numel() for p in module.parameters() if p.requires_grad)


def _as_forecast(_step: int, forecast: Tensor) -> Tensor:
    return forecast


@torch.no_grad()
def roll(
    forecaster: Forecaster,
    past: Tensor,
    steps: int,
    following: Callable[[int, Tensor], Tensor] = _as_forecast,
    domain: Tensor | None = None,
) -> Tensor:
    """past (case, max_lag, column) -> (case, step, column); the domain (case,) stays as it is.

    `following` maps a step and its forecast (case, column) to what is taken to happen.
    """
    rows = []
    for step in range(steps):
        row = following(step, forecaster(past, domain=domain))
        past = torch.cat([past[:, 1:], row[:, None]], dim=1)
        rows.append(row)
    return torch.stack(rows, dim=1)
