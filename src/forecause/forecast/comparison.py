"""Candidates side by side on held-out windows: their losses, and who forecasts which variable."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch
from torch import Tensor

from forecause.data.windows import Window, Windows
from forecause.forecast.forecaster import Forecaster, over_windows, squared_errors
from forecause.forecast.heads import LIKELIHOODS, Labelled
from forecause.forecast.models.per_target import choose


class Comparison:
    """Losses of fitted forecasters on the windows they are judged by.

    Of a label all columns count together: as its Brier score, or as its cross-entropy.
    """

    def __init__(self, judging: Windows, mean: npt.NDArray[np.float64]) -> None:
        """`mean` (column,) is that of the windows that were learned from."""
        self.judging, self.mean = judging, mean
        self.coding = judging.panel.coding
        self.members: list[Forecaster] = []
        self.squared: list[Tensor] = []  # errors (window, column)
        self.nll: list[Tensor] = []  # negative log-likelihood (window, column)

    def add(self, member: Forecaster) -> None:
        """Judge one more candidate."""
        self.members.append(member)
        self.squared.append(squared_errors(member, self.judging))
        self.nll.append(-over_windows(member, self.judging, member.log_likelihood))

    def to_beat(self, member: Forecaster, windows: Windows) -> Tensor:
        """The errors on these windows of each column's best candidate, of the kind that `member`
        learns by, (window, column)."""
        by_nll = torch.full((windows.shape[1],), not member.likelihood.fixed)
        for label in member.labels:
            by_nll[label.columns] = True
        errors = []
        for rival in self.members:
            squared = squared_errors(rival, windows)
            nll = -over_windows(rival, windows, rival.log_likelihood)
            errors.append(torch.where(by_nll, nll, squared))
        best = torch.stack([e.mean(0) for e in errors]).argmin(0)
        return torch.stack([errors[i][:, column] for column, i in enumerate(best.tolist())], dim=1)

    def residuals(self, rivals: Sequence[Forecaster], windows: Windows) -> Tensor:
        """What the best of some candidates for each column leaves of it, (window, column)."""
        places = [self.members.index(rival) for rival in rivals]
        best = torch.stack([self.squared[p].mean(0) for p in places]).argmin(0)

        def left(window: Window) -> Tensor:
            every = torch.stack([window.target - rival.forecast(window) for rival in rivals])
            return every.gather(0, best.expand(1, len(window), -1))[0]

        return over_windows(rivals[0], windows, left)

    def choose(self, by_likelihood: bool) -> Forecaster:
        """The only candidate, or for each variable the best."""
        if len(self.members) == 1:
            return self.members[0]
        errors = self.nll if by_likelihood else self.squared
        return choose(self.members, [self._shared(e, by_likelihood) for e in errors])

    def losses(self, fitted: Forecaster) -> pd.DataFrame:
        """Squared errors: `naive` (the last value repeated), `mean` (of what was learned from),
        the candidates, and `chosen`."""
        found = [self._shared(e, summed=False).double().mean(0) for e in self.squared]
        simple = {"naive": naive_loss(self.judging), "mean": mean_loss(self.judging, self.mean)}
        return self._table({n: self._of_variables(e) for n, e in simple.items()}, found, fitted)

    def nlls(self, fitted: Forecaster) -> pd.DataFrame:
        """Negative log-likelihoods: `mean` (of a distribution that never changes), the candidates,
        and `chosen`."""
        found = [self._shared(e, summed=True).double().mean(0) for e in self.nll]
        return self._table({"mean": self._of_mean()}, found, fitted)

    def _table(
        self,
        reference: dict[str, npt.NDArray[np.float64]],
        found: Sequence[Tensor],
        fitted: Forecaster,
    ) -> pd.DataFrame:
        first, columns = self.coding.first, self.judging.shape[1]
        chosen = [fitted.member_of(column).label for column in range(columns)]
        numbers = {m.label: e.numpy()[first] for m, e in zip(self.members, found, strict=True)}
        names = [chosen[column] for column in first]
        return pd.DataFrame(
            {**reference, **numbers, "chosen": names},
            index=pd.Index(self.coding.variables, name="variable"),
        )

    def _shared(self, errors: Tensor, summed: bool) -> Tensor:
        """Errors (window, column); each of a label's columns has what its variable has."""
        if not self.coding.labels:
            return errors
        weights = self.coding.weights(self.judging.scale.mean)
        mixed = torch.from_numpy((weights > 0) * 1.0 if summed else weights)
        return (errors.double() @ mixed)[:, self.coding.of_column]

    def _of_variables(self, columns: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        if not self.coding.labels:
            return columns
        return np.asarray(columns @ self.coding.weights(self.judging.scale.mean))

    def _of_mean(self) -> npt.NDArray[np.float64]:
        labels = self.coding.label_columns(self.judging.scale.mean)
        likelihood = Labelled(LIKELIHOODS["mse"], labels, logits=False)  # forecasts are 0: the mean
        parts = []
        for batch in self.judging.batches(4096):
            value = batch.target.double()
            parts.append(-likelihood.log_prob(torch.zeros(*value.shape, 2).double(), value))
        return self._shared(torch.cat(parts), summed=True).mean(0).numpy()[self.coding.first]


def naive_loss(windows: Windows) -> npt.NDArray[np.float64]:
    """Mean squared error of repeating the last value, (column,)."""
    total = sum((b.target - b.past[:, -1]).double().square().sum(0) for b in windows.batches(4096))
    return np.asarray(total) / len(windows)


def mean_loss(windows: Windows, mean: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Mean squared error of forecasting a mean (column,), (column,)."""
    known = torch.from_numpy(mean)
    total = sum((b.target.double() - known).square().sum(0) for b in windows.batches(4096))
    return np.asarray(total) / len(windows)


def over_mean(losses: pd.DataFrame) -> pd.DataFrame:
    """A table of losses without `mean`, its numbers as shares of it: 1 is no better than the mean.

    Runs of version 0.1 have no such column; their losses are shares of the variance already.
    """
    if "mean" not in losses:
        return losses
    mean = losses["mean"].clip(lower=1e-12)
    numbers = losses.drop(columns=["mean", "chosen"]).div(mean, axis=0)
    return numbers.assign(chosen=losses["chosen"])
