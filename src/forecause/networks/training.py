"""The one training loop of every forecaster that learns by gradient descent."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from forecause.common.work_sharing import threads_for
from forecause.config.advice import Advice
from forecause.config.thresholds import thresholds
from forecause.data.windows import Window, Windows
from forecause.errors import InputError, TrainingError
from forecause.forecast.forecaster import FitData
from forecause.networks import distributed
from forecause.networks.distributed import Ranks
from forecause.networks.network import NetworkModule, TensorWindow, over_windows
from forecause.networks.settings import TrainedSettings, TrainingSettings
from forecause.networks.several_trainings import Penalty, learn_sparsely, train_by_blocks
from forecause.regression.p_values import clearly_better

# Time and memory:
SMALL_STEP = 20_000_000  # work of a batch below which one thread is fastest


class Trained(NetworkModule):
    """A network that learns by gradient descent."""

    settings: TrainedSettings
    logits: ClassVar[bool] = True
    penalty: Penalty | None = None  # while it learns

    def loss(self, window: TensorWindow) -> Tensor:
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


def train(model: NetworkModule, fit_data: FitData, settings: TrainingSettings) -> None:
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
    rival, loss = _Rival(fit_data, watched, ranks), _loss_of(model, ranks)
    size = min(settings.batch_size, len(fit_data.windows))
    batches = _shuffled(fit_data.windows, size, rng, ranks)
    with threads_for(model.work_per_window * size // ranks.size >= SMALL_STEP):
        for step in range(1, most + 1):
            optimiser.param_groups[0]["lr"] = schedule.rate(step)
            optimiser.zero_grad()
            batch = TensorWindow.drawn(next(batches), device)
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
            lost = rival.wins_against(model, schedule.history, stalled)
            if schedule.ended(step) or ranks.agree(lost or fit_data.time_is_up(began)):
                break
    best.restore()
    model.estimate_noise(watched)


def _loss_of(model: NetworkModule, ranks: Ranks) -> Callable[[TensorWindow, int], Tensor]:
    """The loss of this process's share of a batch of so many windows.

    Its backward pass leaves the gradient of the whole batch's loss in every process.
    """
    if ranks.alone:
        return lambda share, _batch: model.loss(share).sum()
    if next(model.parameters()).device.type not in ("cpu", "cuda"):
        raise InputError(
            f"Several processes can train on cpu or cuda; give {Advice('device', 'cpu')}."
        )
    # A parameter may have no use, like the embedding of domains that are not there; the first
    # step shows which, and they stay the same.
    together = DistributedDataParallel(_WeightedLoss(model), static_graph=True)
    return lambda share, batch: together(share, ranks.size / batch)


class _WeightedLoss(nn.Module):
    """The loss as DDP wants it: the forward pass of a module.

    DDP averages over processes, whose shares may differ by a window: a share's mean counts as
    often as it has windows. One without any takes part with a window that counts nothing.
    """

    def __init__(self, model: NetworkModule) -> None:
        super().__init__()
        self.model = model

    def named_buffers(self, *_: Any, **__: Any) -> Iterator[tuple[str, Tensor]]:
        """None: DDP would send them around at every step, and no step changes them."""
        return iter(())

    def forward(self, share: TensorWindow, per_window: float) -> Tensor:
        if len(share):
            return self.model.loss(share).sum() * (len(share) * per_window)
        return self.model.loss(share.blank()).sum() * 0.0


class _Rival:
    """The best rival of every target, by its errors (window, target) on the watched windows.

    Without any nothing is to be beaten.
    """

    def __init__(self, fit_data: FitData, watched: Windows, ranks: Ranks) -> None:
        self.watched = watched
        self.errors: Tensor | None = None
        if fit_data.to_beat is not None:
            errors = np.asarray(fit_data.to_beat(watched), dtype=np.float32)
            self.errors = ranks.of_first(torch.from_numpy(errors))

    def wins_against(self, model: NetworkModule, history: Sequence[Tensor], stalled: bool) -> bool:
        """Whether the model had better give up; `history` is its loss (target,) at every look.

        It is out of reach where no target would be won even if the last half's gain came once more
        (of many targets some always might by chance: one in twenty does not count). Once training
        has stalled, some target must clearly be won, or going on at a lower rate is in vain.
        """
        if self.errors is None:
            return False
        if len(history) >= 8:
            now, earlier = history[-1], history[len(history) // 2]
            promising = now - (earlier - now).clamp(min=0) <= self.errors.mean(0)
            if int(promising.sum()) <= len(now) // 20:
                return True
        if not stalled:
            return False
        own, by = over_windows(model, self.watched, model.errors), thresholds().choice.network_wins
        targets = zip(self.errors.numpy().T, own.numpy().T, strict=True)
        return not any(clearly_better(rival, errors, by) for rival, errors in targets)


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

    def __init__(self, model: NetworkModule, losses: Tensor) -> None:
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
        return bool(gain > thresholds().choice.network_progress)

    def _gain(self, now: Tensor, before: Tensor) -> Tensor:
        """Relative fall of a squared error; absolute one of a log-likelihood, which has no zero."""
        return 1 - now / before if self.model.likelihood.fixed else before - now

    def restore(self) -> None:
        self.model.load_state_dict(self.weights)


def passes(model: NetworkModule, batch: TensorWindow) -> Iterator[tuple[TensorWindow, float]]:
    """Parts of a batch, each for a pass of its own, and their shares of it.

    Gradients of parts add up to the batch's, and a part's activations stay in the cache.
    """
    size = model.windows_per_pass or len(batch)
    for start in range(0, len(batch), size):
        part = batch[start : start + size]
        yield part, len(part) / len(batch)


def backward(model: NetworkModule, batch: TensorWindow) -> None:
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


def _held_out_losses(model: NetworkModule, watched: Windows, ranks: Ranks) -> Tensor:
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
            f"extreme outliers in the data, or use {Advice('forecaster', 'linear')}."
        )
    return losses
