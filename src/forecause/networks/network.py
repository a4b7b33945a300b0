"""Networks: torch modules that forecast, and the NumPy face that the rest of the program sees.

A `NetworkModule` works on tensors; `Network` turns arrays into tensors at its door and back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from forecause.common.arrays import Array, Floats, Index, Mask
from forecause.common.work_sharing import limit_loaded_torch
from forecause.data.windows import Window, Windows
from forecause.errors import InputError
from forecause.forecast.forecaster import (
    LEAST_NOISE,
    MOST_AT_ONCE,
    PLAIN,
    FitData,
    Forecaster,
    ForecasterSettings,
    Rules,
)
from forecause.networks.heads import LIKELIHOODS, Labelled, Likelihood

limit_loaded_torch()


@dataclass(frozen=True, eq=False)
class TensorWindow:
    """A `Window` as tensors on a network's device."""

    past: Tensor  # (batch, max_lag, column), oldest step first
    target: Tensor  # (batch, column), the row to be forecast
    domain: Tensor | None = None  # (batch,)

    @classmethod
    def of(cls, rows: Tensor, domain: Tensor | None = None) -> TensorWindow:
        """From neighbouring rows (batch, max_lag + 1, column), the last of which is the target."""
        return cls(rows[:, :-1], rows[:, -1], domain)

    @classmethod
    def drawn(
        cls,
        window: Window,
        device: torch.device | str = "cpu",
        dtype: torch.dtype = torch.float32,
    ) -> TensorWindow:
        """The values of drawn windows."""
        past, target = (_tensor(x).to(device, dtype) for x in (window.past, window.target))
        domain = None if window.domain is None else _tensor(window.domain).to(device)
        return cls(past, target, domain)

    def __len__(self) -> int:
        return len(self.past)

    def __getitem__(self, chosen: slice) -> TensorWindow:
        """Some windows of the batch."""
        return self._each(lambda values: values[chosen])

    @property
    def rows(self) -> Tensor:
        """Past and target as neighbouring rows, (batch, max_lag + 1, column)."""
        return torch.cat([self.past, self.target[:, None]], dim=1)

    def blank(self) -> TensorWindow:
        """One window of zeros, like these."""
        return self._each(lambda values: values.new_zeros(1, *values.shape[1:]))

    def _each(self, change: Callable[[Tensor], Tensor]) -> TensorWindow:
        domain = None if self.domain is None else change(self.domain)
        return TensorWindow(change(self.past), change(self.target), domain)


def _tensor(values: npt.NDArray[Any]) -> Tensor:
    """Tensors cannot share memory that is read-only or has negative strides."""
    if not values.flags.writeable or min(values.strides, default=0) < 0:
        values = values.copy()
    return torch.from_numpy(values)


class NetworkModule(nn.Module):
    """Maps the standardised past of all variables to the forecast of each, in torch.

    A subclass has parameters, `forward` or, where it knows other heads, `outputs`, and `fit`; see
    `Trained` in training.py, whose `fit` is gradient descent. All shapes are those of `Forecaster`.
    """

    read_windows: int = 2000
    asked_inputs: int = 10**9
    reads_few: bool = False  # whether targets are to be kept to a few inputs; see `read_only`
    windows_per_pass: int | None = None  # of a batch that are best learned from at once; None: all
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
    def work_per_window(self) -> int:
        """Roughly the multiplications of a forecast, to tell small steps from large ones."""
        return parameter_count(self)

    @property
    def unfitted_settings(self) -> ForecasterSettings:
        """Those from which it is built as it was before fitting."""
        return self.settings

    def read_only(self, places: Tensor) -> None:
        """Keep every target to these places step * variable (target, input)."""
        raise NotImplementedError(f"the {self.kind} reads all inputs")

    def constrain(self, allowed: Tensor) -> None:
        """Keep inputs from targets, (target, step, source), before fitting."""
        self.get_buffer("allowed").copy_(allowed)

    def forward(self, past: Tensor, rules: Rules = PLAIN, domain: Tensor | None = None) -> Tensor:
        """Forecast (batch, variable) from the past (batch, max_lag, variable), oldest first."""
        return self.likelihood.mean(self.outputs(past, rules, domain))

    def outputs(self, past: Tensor, rules: Rules = PLAIN, domain: Tensor | None = None) -> Tensor:
        """The numbers the head asks for, (batch, variable, output)."""
        return self(past, rules, domain)[..., None]

    def fit(self, fit_data: FitData) -> None:
        """Fit the parameters to `fit_data.windows`."""
        raise NotImplementedError

    def forecast(self, window: TensorWindow) -> Tensor:
        """The forecast of every window, (batch, variable)."""
        forecast: Tensor = self(window.past, domain=window.domain)
        return forecast

    def errors(self, window: TensorWindow) -> Tensor:
        """The squared error, or the negative log-likelihood where more than the mean is learned."""
        outputs = self.outputs(window.past, domain=window.domain)
        return self.likelihood.errors(outputs, window.target)

    def loss(self, window: TensorWindow) -> Tensor:
        """Mean error per target, (variable,), the one to learn from."""
        return self.errors(window).mean(0)

    def distribution(self, window: TensorWindow) -> Tensor:
        """Parameters of p(X_t | past) for `self.likelihood`, (batch, variable, parameter)."""
        return self.with_noise(self.outputs(window.past, domain=window.domain))

    def with_noise(self, outputs: Tensor) -> Tensor:
        """Parameters of the distribution from outputs (batch, variable, output)."""
        if not self.likelihood.fixed:
            return outputs
        log_variance = self.get_buffer("noise_variance").log()[:, None]
        return torch.cat([outputs, log_variance.expand_as(outputs)], dim=-1)

    def log_likelihood(self, window: TensorWindow) -> Tensor:
        """log p(X_t | past) per target, (batch, variable), in standardised units."""
        return self.likelihood.log_prob(self.distribution(window), window.target)

    def variance(self, window: TensorWindow) -> Tensor:
        """Variance of p(X_t | past) per target, (batch, variable)."""
        return self.likelihood.variance(self.distribution(window))

    def estimate_noise(self, held_out: Windows) -> None:
        """Take the noise variance per target from the errors on held-out windows."""

        def squares(window: TensorWindow) -> Tensor:
            return (self.forecast(window) - window.target).square()

        mean = over_windows(self, held_out, squares).mean(0).clamp(min=LEAST_NOISE)
        self.get_buffer("noise_variance").copy_(mean)

    def jacobian(self, past: Tensor, rules: Rules = PLAIN, domain: Tensor | None = None) -> Tensor:
        """d forecast / d past per sample: (batch, target, max_lag, source).

        One backward pass per target; a network with a cheaper way overrides this.
        """
        past = past.detach().requires_grad_()
        return _gradients(self(past, rules, domain), past)

    def score(self, window: TensorWindow) -> Tensor:
        """d log p(X_t | past) / d past per sample: (batch, target, max_lag, source)."""
        if self.likelihood.fixed and not self.labels:  # (x - f) / variance * df / dpast
            pull = (window.target - self.forecast(window)) / self.get_buffer("noise_variance")
            return pull[:, :, None, None] * self.jacobian(window.past, domain=window.domain)
        past = window.past.detach().requires_grad_()
        return _gradients(self.log_likelihood(replace(window, past=past)), past)

    def attentions(self, past: Tensor, domain: Tensor | None = None) -> list[Tensor] | None:
        """Attention weights of every layer, (batch, head, query, key), if it has any."""
        return None

    def without_forbidden(self, past: Tensor, run: Callable[[Tensor], Tensor]) -> Tensor:
        """`run` (batch, target, ...) where each target sees its allowed inputs alone.

        The others are held at their mean. For a network whose targets share their inputs: one
        run for each group of targets with the same inputs.
        """
        allowed = self.get_buffer("allowed")
        if bool(allowed.all()):
            return run(past)
        kinds, kind_of = torch.unique(allowed, dim=0, return_inverse=True)
        answers = [run(past * kind) for kind in kinds]
        return torch.stack([answers[k][:, i] for i, k in enumerate(kind_of.tolist())], dim=1)


def _gradients(values: Tensor, past: Tensor) -> Tensor:
    """d values (batch, target) / d past, (batch, target, max_lag, source)."""
    rows = [
        torch.autograd.grad(values[:, i].sum(), past, retain_graph=True)[0]
        for i in range(values.shape[1])
    ]
    return torch.stack(rows, dim=1)


class Network(Forecaster):
    """A torch module as a forecaster: arrays in, arrays out, in batches that fit its device."""

    def __init__(self, module: NetworkModule) -> None:
        # Not the base's: what it sets is the module's here.
        self.module = module
        self.max_lag, self.n_variables = module.max_lag, module.n_variables
        self.head_name, self.domains = module.head_name, module.domains
        self.labels = module.labels
        self.read_windows, self.asked_inputs = module.read_windows, module.asked_inputs
        self._trained = [name for name, p in module.named_parameters() if p.requires_grad]

    @property
    def settings(self) -> ForecasterSettings:  # type: ignore[override]
        """Of the module, which may settle some of them by fitting."""
        return self.module.settings

    @property
    def allowed(self) -> Mask:  # type: ignore[override]
        """(target, step, source)."""
        return np.asarray(self.module.get_buffer("allowed").cpu().numpy())

    @property
    def noise_variance(self) -> Array:  # type: ignore[override]
        """(target,) of the errors on held-out windows."""
        return np.asarray(self.module.get_buffer("noise_variance").cpu().double().numpy())

    @property
    def learns_variance(self) -> bool:
        return not self.module.likelihood.fixed

    @property
    def reads_few(self) -> bool:
        return self.module.reads_few

    def read_only(self, places: Index) -> None:
        self.module.read_only(_tensor(places))

    def constrain(self, allowed: Mask) -> None:
        self.module.constrain(_tensor(np.asarray(allowed, dtype=bool)))

    def unfitted(self, seed: int = 0) -> Forecaster:
        fresh = self.module.unfitted_settings.seeded_build((self.max_lag, self.n_variables), seed)
        fresh.constrain(self.allowed)
        if self.reads_few:
            fresh.read_only(self.module.get_buffer("reads").cpu().numpy())
        return fresh.to(str(self._device))

    def fit(self, fit_data: FitData) -> None:
        for name, parameter in self.module.named_parameters():
            parameter.requires_grad_(name in self._trained)
        self.module.train()
        self.module.fit(fit_data)
        self.module.eval().requires_grad_(False)

    def estimate_noise(self, held_out: Windows) -> None:
        self.module.estimate_noise(held_out)

    def forward(self, past: Floats, rules: Rules = PLAIN, domain: Index | None = None) -> Floats:
        window = Window(past, past[:, -1], domain)
        return self._answer(window, lambda part: self.module(part.past, rules, part.domain))

    def errors(self, window: Window) -> Floats:
        return self._answer(window, self.module.errors)

    def log_likelihood(self, window: Window) -> Floats:
        return self._answer(window, self.module.log_likelihood)

    def variance(self, window: Window) -> Floats:
        return self._answer(window, self.module.variance)

    def jacobian(self, past: Floats, rules: Rules = PLAIN, domain: Index | None = None) -> Floats:
        window = Window(past, past[:, -1], domain)
        own = self.module.jacobian
        return self._answer(window, lambda part: own(part.past, rules, part.domain), slopes=True)

    def score(self, window: Window) -> Floats:
        return self._answer(window, self.module.score, slopes=True)

    def attentions(self, past: Floats, domain: Index | None = None) -> list[Floats]:
        window = self._tensors(Window(past, past[:, -1], domain))
        with torch.no_grad():
            layers = self.module.attentions(window.past, window.domain)
        if layers is None:
            return super().attentions(past, domain)
        return [np.asarray(layer.cpu().numpy()) for layer in layers]

    def backward_pass(self, window: Window) -> None:
        """The gradient of a batch's loss, as a step of training takes it."""
        from forecause.networks.training import backward

        backward(self.module, self._tensors(window))

    def state(self) -> dict[str, npt.NDArray[Any]]:
        return {k: np.asarray(v.cpu().numpy()) for k, v in self.module.state_dict().items()}

    def load_state(self, state: Mapping[str, npt.NDArray[Any]]) -> None:
        self.module.load_state_dict({name: _tensor(values) for name, values in state.items()})
        self.module.eval().requires_grad_(False)

    def to(self, device: str) -> Self:
        self.module.to(pick_device(device))
        return self

    @property
    def _device(self) -> torch.device:
        return self.module.get_buffer("allowed").device

    def _tensors(self, window: Window) -> TensorWindow:
        dtype = self.module.get_buffer("noise_variance").dtype
        return TensorWindow.drawn(window, self._device, dtype)

    def _answer(
        self, window: Window, ask: Callable[[TensorWindow], Tensor], slopes: bool = False
    ) -> Floats:
        """`ask` (batch, ...) of all windows, so many at a time as the module likes."""
        size = self.module.windows_per_pass or MOST_AT_ONCE
        parts = [window[start : start + size] for start in range(0, max(len(window), 1), size)]
        with torch.set_grad_enabled(slopes):
            answers = [ask(self._tensors(part)).detach().cpu().numpy() for part in parts]
        return answers[0] if len(answers) == 1 else np.concatenate(answers)


def parameter_count(module: nn.Module) -> int:
    """Number of trainable numbers."""
    return sum(p.numel() for p in module.parameters() if p.requires_grad)


@torch.no_grad()
def over_windows(
    module: NetworkModule, windows: Windows, measure: Callable[[TensorWindow], Tensor]
) -> Tensor:
    """`measure` (batch, target), such as `module.errors`, of all windows, on the CPU."""
    device = module.get_buffer("allowed").device
    size = module.windows_per_pass or MOST_AT_ONCE
    batches = (TensorWindow.drawn(batch, device) for batch in windows.batches(size))
    return torch.cat([measure(batch).cpu() for batch in batches])


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """First weights depend on the seed alone, and the caller's random state is left as it was."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        yield


def pick_device(asked: str) -> str:
    """`auto` takes CUDA or Apple's GPU when there is one."""
    if asked != "auto":
        try:
            if torch.device(asked).type == "meta":
                raise NotImplementedError  # tensors without values
            return str(torch.empty(0, device=torch.device(asked)).device)
        except (RuntimeError, AssertionError, NotImplementedError, ImportError):
            raise InputError(
                f"The device {asked!r} is unknown or not there; try auto, cpu, cuda or mps."
            ) from None
    if torch.cuda.is_available():
        return "cuda"
    return "mps" if torch.backends.mps.is_available() else "cpu"
