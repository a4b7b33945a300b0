"""Candidates side by side on held-out windows: their losses, and who forecasts which variable."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property

import numpy as np
import pandas as pd

from forecause.common.arrays import Array, Floats
from forecause.config.thresholds import thresholds
from forecause.data.windows import Window, Windows
from forecause.forecast.forecaster import Forecaster, over_windows, squared_errors
from forecause.forecast.likelihood import MeanLikelihood
from forecause.forecast.means import JOINED, Stack
from forecause.forecast.members import PerTargetChoice
from forecause.networks.settings import TrainedSettings
from forecause.regression.p_values import clearly_better, gain_over_blocks


class Comparison:
    """Losses of fitted forecasters on the windows they are judged by.

    Of a label all columns count together: as its Brier score, or as its cross-entropy.
    """

    def __init__(self, judging: Windows, mean: Array) -> None:
        """`mean` (column,) is that of the windows that were learned from."""
        self.judging, self.mean = judging, mean
        self.coding = judging.panel.coding
        self.members: list[Forecaster] = []
        self.squared: list[Floats] = []  # errors (window, column)
        self.stacked: dict[str, Floats] = {}  # the same of stacks that are kept, by their labels

    def add(self, member: Forecaster) -> None:
        """Judge one more candidate."""
        self.members.append(member)
        self.squared.append(squared_errors(member, self.judging))

    @cached_property
    def nll(self) -> list[Floats]:
        """Negative log-likelihoods (window, column) of all candidates, once none is to come."""
        return [-over_windows(self.judging, member.log_likelihood) for member in self.members]

    def to_beat(self, member: Forecaster, windows: Windows) -> Floats:
        """The errors on these windows of each column's best candidate, of the kind that `member`
        learns by, (window, column)."""
        by_nll = np.full(windows.shape[1], member.learns_variance)
        for label in member.labels:
            by_nll[label.columns] = True
        errors = []
        for rival in self.members:
            squared = squared_errors(rival, windows)
            nll = -over_windows(windows, rival.log_likelihood)
            errors.append(np.where(by_nll, nll, squared))
        best = np.argmin([e.mean(0, dtype=np.float64) for e in errors], axis=0)
        return np.stack([errors[i][:, column] for column, i in enumerate(best)], axis=1)

    def residuals(self, rivals: Sequence[Forecaster], windows: Windows) -> Floats:
        """What the best of some candidates for each column leaves of it, (window, column)."""
        places = [self.members.index(rival) for rival in rivals]
        best = np.argmin([self.squared[p].mean(0, dtype=np.float64) for p in places], axis=0)

        def left(window: Window) -> Floats:
            every = np.stack([window.target - rival.forecast(window) for rival in rivals])
            return np.take_along_axis(every, best[None, None], axis=0)[0]

        return over_windows(windows, left)

    def choose(self, by_likelihood: bool) -> Forecaster:
        """The only candidate, or for each variable the best."""
        if len(self.members) == 1:
            return self.members[0]
        errors = self.nll if by_likelihood else self.squared
        return choose(self.members, [self._shared(e, by_likelihood) for e in errors])

    def keep(self, labels: Sequence[str]) -> PerTargetChoice:
        """Each column (column,) forecast by the candidate that its label names, or by the mean of
        those that it names; by the simplest one where none of them has a model of the column."""
        candidates = {member.label: member for member in self.members}
        kinds, read = [], dict[str, list[int]]()
        for column, label in enumerate(labels):
            parts = [p for p in label.split(JOINED) if p in candidates]
            parts = [p for p in parts if candidates[p].has_model_for(column)]
            parts = parts or [self.members[0].label]
            kinds.append(JOINED.join(parts))
            for part in parts:
                read.setdefault(part, []).append(column)
        members: dict[str, Forecaster] = {}
        for kind in dict.fromkeys(kinds):
            parts = kind.split(JOINED)
            stack = {part: candidates[part] for part in parts}
            members[kind] = Stack.of(stack) if len(parts) > 1 else candidates[kind]
            if len(parts) > 1:
                self.stacked[kind] = squared_errors(members[kind], self.judging)
        for part, columns in read.items():
            candidates[part].keep_only(columns)
        return PerTargetChoice.of(kinds, members)

    def networks_ahead(self) -> dict[Forecaster, list[int]]:
        """The columns that each network forecasts clearly better than everything simpler."""
        networks = [isinstance(m.settings, TrainedSettings) for m in self.members]
        simple = np.flatnonzero(~np.array(networks)).tolist()
        best = np.argmin([self.squared[p].mean(0, dtype=np.float64) for p in simple], axis=0)
        errors = np.stack([self.squared[simple[b]][:, c] for c, b in enumerate(best)], axis=1)
        every = range(errors.shape[1])
        return {
            member: clear_wins(errors, self.squared[place], every, closed_form=False)
            for place, member in enumerate(self.members)
            if networks[place]
        }

    def losses(self, fitted: Forecaster) -> pd.DataFrame:
        """Squared errors: `naive` (the last value repeated), `mean` (of what was learned from),
        the candidates, stacks of them where these are kept, and `chosen`."""
        each = [self._shared(e, summed=False).mean(0, dtype=np.float64) for e in self.squared]
        simple = {
            "naive": mean_square(self.judging, lambda batch: batch.past[:, -1]),
            "mean": mean_square(self.judging, lambda _batch: self.mean),
        }
        table = self._table({n: self._of_variables(e) for n, e in simple.items()}, each, fitted)
        for place, (label, errors) in enumerate(self.stacked.items(), table.shape[1] - 1):
            means = self._shared(errors, summed=False).mean(0, dtype=np.float64)
            table.insert(place, label, means[self.coding.first])
        return table

    def nlls(self, fitted: Forecaster) -> pd.DataFrame:
        """Negative log-likelihoods: `mean` (of a distribution that never changes), the candidates,
        and `chosen`."""
        means = [self._shared(e, summed=True).mean(0, dtype=np.float64) for e in self.nll]
        return self._table({"mean": self._of_mean()}, means, fitted)

    def _table(
        self,
        reference: dict[str, Array],
        means: Sequence[Floats],
        fitted: Forecaster,
    ) -> pd.DataFrame:
        first, columns = self.coding.first, self.judging.shape[1]
        chosen = [fitted.member_of(column).label for column in range(columns)]
        numbers = {m.label: e[first] for m, e in zip(self.members, means, strict=True)}
        names = [chosen[column] for column in first]
        return pd.DataFrame(
            {**reference, **numbers, "chosen": names},
            index=pd.Index(self.coding.variables, name="variable"),
        )

    def _shared(self, errors: Floats, summed: bool) -> Floats:
        """Errors (window, column); each of a label's columns has what its variable has."""
        if not self.coding.labels:
            return errors
        weights = self.coding.weights(self.judging.scale.mean)
        mixed = (weights > 0) * 1.0 if summed else weights
        return np.asarray((errors @ mixed)[:, self.coding.of_column])

    def _of_variables(self, columns: Array) -> Array:
        if not self.coding.labels:
            return columns
        return np.asarray(columns @ self.coding.weights(self.judging.scale.mean))

    def _of_mean(self) -> Array:
        likelihood = MeanLikelihood(self.coding.label_columns(self.judging.scale.mean))
        parts = []
        for batch in self.judging.batches(4096):
            value = batch.target.astype(np.float64)  # forecasts are 0: the mean
            one = np.ones(value.shape[1])
            parts.append(-likelihood.log_prob(np.zeros_like(value), one, value))
        return np.asarray(
            self._shared(np.concatenate(parts), summed=True).mean(0)[self.coding.first]
        )


def choose(members: Sequence[Forecaster], errors: Sequence[Floats]) -> PerTargetChoice:
    """Pick per target from errors (window, target), members ordered simple to rich.

    A richer member must be better by more than the standard error of the difference: a tie goes
    to the simpler one, which has fewer ways to be wrong. One that is no closed form must be so
    over several blocks of time, and where windows are few over all its targets together, too.
    """
    winners = [0] * members[0].n_variables
    for rival, member in enumerate(members[1:], 1):
        offered = [t for t in range(len(winners)) if member.has_model_for(t)]
        before = np.stack([errors[winners[t]][:, t] for t in range(len(winners))], axis=1)
        for target in clear_wins(before, errors[rival], offered, member.settings.closed_form):
            winners[target] = rival
    kinds = [members[winner].label for winner in winners]
    return PerTargetChoice.of(kinds, {m.label: m for m in members if m.label in kinds})


def clear_wins(
    before: Floats, after: Floats, offered: Sequence[int], closed_form: bool
) -> list[int]:
    """The offered targets whose errors (window, target) are clearly lower after than before."""
    before, after = before.astype(np.float64), after.astype(np.float64)
    bounds = thresholds().choice
    if closed_form or len(before) < bounds.blocks_of_time * bounds.windows_per_block:
        won = [t for t in offered if clearly_better(before[:, t], after[:, t])]
    else:
        gain = gain_over_blocks(before, after, bounds.blocks_of_time)
        won = [t for t in offered if gain[t] > 1]
    if closed_form or len(before) >= bounds.few_judged or not won:
        return won
    scale = np.maximum(before[:, offered].mean(0), 1e-12)
    simpler, richer = ((errors[:, offered] / scale).mean(1) for errors in (before, after))
    return won if clearly_better(simpler, richer) else []


def mean_square(windows: Windows, forecast: Callable[[Window], Floats]) -> Array:
    """Mean squared error of what is forecast of a batch, (column,)."""
    total = np.zeros(windows.shape[1])
    for batch in windows.batches(4096):
        total += ((batch.target - forecast(batch)).astype(np.float64) ** 2).sum(0)
    return total / len(windows)


def over_mean(losses: pd.DataFrame) -> pd.DataFrame:
    """A table of losses without `mean`, its numbers as shares of it: 1 is no better than the mean.

    Runs of version 0.1 have no such column; their losses are shares of the variance already.
    """
    if "mean" not in losses:
        return losses
    mean = losses["mean"].clip(lower=1e-12)
    numbers = losses.drop(columns=["mean", "chosen"]).div(mean, axis=0)
    return numbers.assign(chosen=losses["chosen"])


def chosen_losses(losses: pd.DataFrame) -> pd.Series[float]:
    """Held-out loss of the forecaster in use, per variable."""
    rows = losses.to_dict(orient="records")
    return pd.Series([float(row[row["chosen"]]) for row in rows], index=losses.index)
