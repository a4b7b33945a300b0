"""The one training loop of every forecaster that learns by gradient descent."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
import torch
from torch import Tensor

from forecause.config import EVERY_HEAD, ForecasterSpec, HeadName, Settings
from forecause.data.windows import Window, Windows
from forecause.errors import TrainingError
from forecause.forecast.forecaster import (
    FitData,
    Forecaster,
    ForecasterSettings,
    over_windows,
)
from forecause.forecast.training import distributed
from forecause.forecast.training.by_blocks import train_by_blocks
from forecause.forecast.training.distributed import Ranks
from forecause.forecast.training.sparsity import TRIED, Penalty, learn_sparsely
from forecause.regression.p_values import clearly_better
from forecause.work_sharing import threads_for

QUICK_STEPS = 1000  # of training, at most, under the preset quick
SMALL_STEP = 20_000_000  # work of a batch below which one thread is fastest
CLEARLY = 3.0  # standard errors of the difference, for one of several targets
PROGRESS = 1e-4  # fall of the held-out loss that counts as progress


class TrainingSettings(Settings):
    """Adam with warm-up; the rate falls when the held-out loss stalls, then training stops."""

    learning_rate: float = 3e-3
    batch_size: int = 64
    max_steps: int = 6000
    warmup_steps: int = 100
    look_every: int = 100  # steps between looks at the held-out loss
    patience: int = 4  # looks without progress before the rate falls
    rate_drops: int = 2  # how often the rate falls to a third before training stops
    cooldown: int = 0  # steps at the end in which the rate falls to zero; instead of drops
    rounds: int = 0  # over all windows that the cap of steps leaves room for, however many
    clip: float = 1.0  # largest norm of a gradient

    def most_steps(self, windows: int) -> int:
        """The cap for so many windows to learn from."""
        return max(self.max_steps, self.rounds * windows // self.batch_size)

    def least_steps(self, rivals: bool) -> int:
        """Those after which training can end at the earliest; `rivals` make it give up sooner."""
        stalls = 1 if rivals else self.rate_drops + 1
        return self.patience * stalls * self.look_every + self.cooldown

    @classmethod
    def paper(cls) -> TrainingSettings:
        """Adam at the published rate and batch size; how it ends is not published."""
        return cls(
            learning_rate=1e-3,
            batch_size=256,
            warmup_steps=0,
            patience=8,
            rate_drops=0,
            cooldown=300,
            rounds=10,
            clip=1e9,  # that is, not at all
        )


class TrainedSettings(ForecasterSettings):
    """What the settings of every forecaster that learns by gradient descent hold."""

    training: TrainingSettings = TrainingSettings()
    sparsity: tuple[float, ...] = ()  # weights of the gradients' penalty, smallest first

    @classmethod
    def of_preset(cls, preset: str) -> ForecasterSpec:
        settings = cls()
        if preset == "quick":
            return settings.trained_with(max_steps=QUICK_STEPS, rate_drops=1)
        return settings

    def trained_with(self, **changes: Any) -> Self:
        """The same with other fields of `training`."""
        training = self.training.model_copy(update=changes)
        return self.model_copy(update={"training": training})


class NetworkSettings(TrainedSettings):
    """What the settings of our own networks hold: any head, and sparse gradients if asked for."""

    head_names: ClassVar[tuple[str, ...]] = EVERY_HEAD
    can_be_sparse: ClassVar[bool] = True

    head: HeadName = "mse"

    @classmethod
    def of_preset(cls, preset: str) -> ForecasterSpec:
        if preset != "sparse":
            return super().of_preset(preset)
        # one fit for each weight, meant for few rows
        brief = cls().trained_with(max_steps=1000, look_every=50, patience=3, rate_drops=1)
        return brief.model_copy(update={"sparsity": TRIED})


class Trained(Forecaster):
    """A forecaster that learns by gradient descent."""

    settings: TrainedSettings
    logits: ClassVar[bool] = True
    penalty: Penalty | None = None  # while it learns

    def loss(self, window: Window) -> Tensor:
        return self.penalty.loss(self, window) if self.penalty else super().loss(window)

    def fit(self, fit_data: FitData) -> None:
        weights = self.settings.sparsity
        if not weights:
            train_by_blocks(self, fit_data, partial(train, settings=self.settings.training))
            return
        # Shrunk for different times, the slopes of targets could not be compared.
        self.separate_targets = False
        weight = learn_sparsely(self, fit_data, weights, train_under)
        self.settings = self.settings.model_copy(update={"sparsity": (weight,)})


def train_under(model: Trained, fit_data: FitData, penalty: Penalty | None) -> None:
    """Fit `model` under a penalty on its gradients."""
    model.penalty = penalty
    train(model, fit_data, model.settings.training)
    model.penalty = None


def train(model: Forecaster, fit_data: FitData, settings: TrainingSettings) -> None:
    """Fit `model` and leave it with the weights that did best on the held-out windows.

    Training also ends as soon as the model is clearly not going to beat its rival,
    and when its time is up.
    """
    ranks, began = distributed.current(), time.monotonic()
    most = settings.most_steps(len(fit_data.windows))
    steps = f"{most} steps of {settings.batch_size}"
    ranks.meet(f"training the {model.kind} on {len(fit_data.windows)} windows in {steps}")
    rng = np.random.default_rng(fit_data.seed)
    watched = fit_data.watched(rng)
    device = next(model.parameters()).device
    optimiser = torch.optim.Adam(model.parameters(), fused=device.type in ("cpu", "cuda"))
    schedule = _Schedule(settings, most)
    best = _Best(model, _held_out_losses(model, watched, ranks))
    rival, loss = _Rival.of(fit_data, watched, ranks), ranks.loss_of(model)
    size = min(settings.batch_size, len(fit_data.windows))
    batches = _shuffled(fit_data.windows, size, rng, ranks)
    with threads_for(model.work_per_window * size // ranks.size >= SMALL_STEP):
        for step in range(1, most + 1):
            optimiser.param_groups[0]["lr"] = schedule.rate(step)
            optimiser.zero_grad()
            batch = next(batches).to(device)
            for part, share in passes(model, batch) if ranks.alone else [(batch, 1.0)]:
                (loss(part, size) * share).backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), settings.clip)
            optimiser.step()
            out_of_time = ranks.alone and fit_data.time_is_up(began)
            if step % settings.look_every and not (schedule.is_last(step) or out_of_time):
                continue
            fit_data.progress.step(f"training the {model.kind}", step / most)
            losses = _finite(_held_out_losses(model, watched, ranks), model.kind, step)
            stalled = schedule.stalls_after(losses, progress=best.improve(losses))
            if stalled:
                best.restore()
                schedule.slow_down(step)
            lost = rival is not None and rival.wins_against(model, schedule.history, stalled)
            if schedule.ended(step) or ranks.agree(lost or fit_data.time_is_up(began)):
                break
    best.restore()
    model.estimate_noise(watched)


class _Rival:
    """The best rival of every target, by its errors (window, target) on the watched windows."""

    def __init__(self, errors: Tensor, watched: Windows) -> None:
        self.errors, self.watched = errors, watched

    @classmethod
    def of(cls, fit_data: FitData, watched: Windows, ranks: Ranks) -> _Rival | None:
        errors = ranks.of_first(fit_data.to_beat(watched) if fit_data.to_beat else None)
        return None if errors is None else cls(errors, watched)

    def wins_against(self, model: Forecaster, history: Sequence[Tensor], stalled: bool) -> bool:
        """Whether the model had better give up; `history` is its loss (target,) at every look."""
        return self._is_out_of_reach(history) or (stalled and not self.leads_somewhere(model))

    def _is_out_of_reach(self, history: Sequence[Tensor]) -> bool:
        """Whether no target would be won even if the last half's gain came once more.

        Of many targets some always might by chance: one in twenty does not count.
        """
        if len(history) < 8:
            return False
        now, earlier = history[-1], history[len(history) // 2]
        promising = now - (earlier - now).clamp(min=0) <= self.errors.mean(0)
        return int(promising.sum()) <= len(now) // 20

    def leads_somewhere(self, model: Forecaster) -> bool:
        """Whether some target is clearly won. If none is, going on at a lower rate is in vain."""
        own = over_windows(model, self.watched, model.errors)
        targets = zip(self.errors.T, own.T, strict=True)
        return any(clearly_better(rival, errors, CLEARLY) for rival, errors in targets)


class _Schedule:
    """The learning rate: warm-up, constant, a third each time the held-out loss stalls; or, with a
    cooldown, down to zero in so many steps once it stalls or the cap is as near."""

    def __init__(self, settings: TrainingSettings, most: int) -> None:
        self.settings = settings
        self.cooldown = min(settings.cooldown, most // 2)
        self.last = most
        self.idle_looks = 0
        self.drops = 0
        self.history: list[Tensor] = []  # held-out loss (target,) of every look

    def rate(self, step: int) -> float:
        warm = min(1.0, step / max(self.settings.warmup_steps, 1))
        cool = min(1.0, (self.last - step + 1) / max(self.cooldown, 1))
        return self.settings.learning_rate * min(warm, cool) * 0.3**self.drops

    def stalls_after(self, losses: Tensor, progress: bool) -> bool:
        """Take note of a look; True once `patience` looks in a row brought no progress."""
        self.history.append(losses)
        self.idle_looks = 0 if progress else self.idle_looks + 1
        return self.idle_looks >= self.settings.patience

    def slow_down(self, step: int) -> None:
        self.idle_looks = 0
        if self.cooldown:
            self.last = min(self.last, step + self.cooldown)
        else:
            self.drops += 1

    def is_last(self, step: int) -> bool:
        return bool(self.cooldown) and step == self.last

    def ended(self, step: int) -> bool:
        return self.drops > self.settings.rate_drops or self.is_last(step)


class _Best:
    """The best weights seen, kept per target where the targets share no parameter."""

    def __init__(self, model: Forecaster, losses: Tensor) -> None:
        self.model = model
        self.losses = losses
        self.weights = {name: w.clone() for name, w in model.state_dict().items()}

    def improve(self, losses: Tensor) -> bool:
        """Keep the present weights where they are better; True if that is real progress."""
        if self.model.separate_targets:
            better, gain = losses < self.losses, self._gain(losses, self.losses).max()
        else:
            gain = self._gain(losses.mean(), self.losses.mean())
            better = (gain > 0).expand_as(losses)
        for name, weight in self.model.state_dict().items():
            if self.model.separate_targets:
                self.weights[name][better] = weight[better]
            elif gain > 0:
                self.weights[name].copy_(weight)
        self.losses = torch.where(better, losses, self.losses)
        return bool(gain > PROGRESS)

    def _gain(self, now: Tensor, before: Tensor) -> Tensor:
        """Relative fall of a squared error; absolute one of a log-likelihood, which has no zero."""
        return 1 - now / before if self.model.likelihood.fixed else before - now

    def restore(self) -> None:
        self.model.load_state_dict(self.weights)


def passes(model: Forecaster, batch: Window) -> Iterator[tuple[Window, float]]:
    """Parts of a batch, each for a pass of its own, and their shares of it.

    Gradients of parts add up to the batch's, and a part's activations stay in the cache.
    """
    size = model.windows_per_pass or len(batch)
    for start in range(0, len(batch), size):
        part = batch[start : start + size]
        yield part, len(part) / len(batch)


def backward(model: Forecaster, batch: Window) -> None:
    """The gradient of a batch's loss, as a step of training takes it."""
    for part, share in passes(model, batch):
        (model.loss(part).sum() * share).backward()


def _shuffled(
    windows: Windows, size: int, rng: np.random.Generator, ranks: Ranks
) -> Iterator[Window]:
    """This rank's share of batches without end, every window once per round."""
    while True:
        order = rng.permutation(len(windows))
        for start in range(0, len(order) - size + 1, size):
            yield windows.draw(ranks.share(order[start : start + size]))


def _held_out_losses(model: Forecaster, watched: Windows, ranks: Ranks) -> Tensor:
    """Mean error per target, (target,); each rank looks at its share, all get the same numbers."""
    if ranks.alone:
        return over_windows(model, watched, model.errors).mean(0)
    own = watched.at(ranks.share(np.arange(len(watched))))
    total = torch.zeros(model.n_variables, dtype=torch.float64)
    if len(own):
        total += over_windows(model, own, model.errors).double().sum(0)
    return (ranks.total(total) / len(watched)).float()


def _finite(losses: Tensor, kind: str, step: int) -> Tensor:
    if not bool(torch.isfinite(losses).all()):
        raise TrainingError(
            f"The loss of the {kind} became infinite or undefined at step {step}; look for "
            "extreme outliers in the data, or use --forecaster linear or additive."
        )
    return losses
