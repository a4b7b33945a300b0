"""Edges by a forecaster's own p-values, whatever forecaster it is.

It is fitted on each of two parts of time and asked for forecasts on the other, with every input in
turn replaced by values that are likely given the others (see projected_covariance). Nothing but
forecasts is needed. Where it learns the variance too, what it says of that is tested in the same
way, on its squared errors.

A forecaster with pretrained weights is no exception. One that is used as it is gives the same
answers twice; what it is tested on must only not have been part of its pretraining. It may be
biased or on a wrong scale: f - h_c is a function of the other inputs, which the projections take
out, and the statistic does not depend on the scale of h_c.

The tests hold for any function, also for random weights, which lean on a cause now and then. But a
forecaster that beats the mean for no target has learned nothing, and draws nothing.

The cost: 1 + 3 * inputs forecasts of every window that is tested on, in batches and without
gradients. `Forecaster.asked_inputs` bounds the windows of a slow one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import ndtri

from forecause.common.arrays import Array, Floats, Index, Single
from forecause.config.thresholds import thresholds
from forecause.data.windows import Window, Windows, inputs_of
from forecause.errors import InputError
from forecause.forecast.forecaster import ENOUGH_WINDOWS, Forecaster
from forecause.forecast.input_tests.projected_covariance import (
    Evidence,
    Fold,
    FoldView,
    Predictor,
    candidate_evidence,
    time_folds,
)
from forecause.forecast.input_tests.protocol import (
    DRAWS,
    InputTests,
    TestedWindows,
    TestRequest,
    by_group,
)
from forecause.progress import Progress
from forecause.regression.p_values import gain_over_blocks

# Time and memory:
MOST_NUMBERS = 100_000_000  # effects held at once
BATCH = 1024

# Numerics:
LEAST_SQUARE = 1e-4  # error, relative to its mean, below which its logarithm is not trusted

TESTING = "testing the forecaster's inputs"

Ask = Callable[[Forecaster, Window], Floats]
"""What is asked of a forecaster about windows, (batch, variable)."""


@dataclass(frozen=True, eq=False)
class Refits:
    """Fits of a forecaster to parts of time, and the windows that each may be tested on."""

    forecasters: tuple[Forecaster, ...]
    learned_rows: tuple[Index, ...]  # (fit,) rows of the panel
    tested_rows: tuple[Index, ...]

    @classmethod
    def of(
        cls, windows: Windows, folds: Sequence[Fold], forecasters: Sequence[Forecaster]
    ) -> Refits:
        """Of the forecasters that were fitted to the folds of `refit_folds`."""
        return cls(
            tuple(forecasters),
            tuple(windows.rows[fold.train] for fold in folds),
            tuple(windows.rows[fold.test] for fold in folds),
        )

    def tests(self, request: TestRequest) -> InputTests:
        """The p-value of every input.

        A target with filled cells is tested on the windows in which its value was observed. The
        relevance of a forecaster without gradients is its mean squared effect.
        """
        windows, progress = request.windows, request.progress
        inputs = inputs_of(windows)
        evidence, data = self._evidence(windows, progress)
        filled = np.flatnonzero(windows.filled_share > thresholds().tests.most_filled)
        for target in filled.tolist():
            again, _ = self._evidence(windows.observed(target), progress, target)
            for kept in ("p_values", "relevance", "block_sums"):
                getattr(evidence, kept)[target] = getattr(again, kept)[target]
        p_values = inputs.p_values_of_targets(evidence.p_values)
        if not self._has_learned(evidence, data):
            p_values[:] = 1.0  # no forecast, no graph
        p_values[~by_group(request.allowed.values)] = np.nan
        level = request.level(p_values)
        stability = evidence.stability(level, DRAWS, np.random.default_rng(0))
        has_gradients = all(one.settings.has_gradient for one in self.forecasters)
        return InputTests(
            data.by_lag(p_values),
            data.by_lag(inputs.largest_of_targets(stability)),
            (self.forecasters[0].label,) * len(p_values),
            None if has_gradients else data.by_lag(inputs.largest_of_targets(evidence.relevance)),
        )

    def _evidence(
        self, windows: Windows, progress: Progress, target: int | None = None
    ) -> tuple[Evidence, TestedWindows]:
        """Of all target columns, or of one."""
        data = TestedWindows.of(windows.thin(self._most(windows)))
        columns = data.targets.shape[1]
        folds = [
            Fold(*(np.flatnonzero(np.isin(data.rows, rows)) for rows in parts))
            for parts in zip(self.learned_rows, self.tested_rows, strict=True)
        ]
        wanted = np.isin(np.arange(columns), np.arange(columns) if target is None else target)

        def evidence_on(targets: Array, ask: Ask) -> Evidence:
            every = [
                _Answers(forecaster, data, fold, ask, progress)
                for forecaster, fold in zip(self.forecasters, folds, strict=True)
            ]
            of_targets = [[_OfTarget(answers, t) for t in range(columns)] for answers in every]
            return candidate_evidence(data.inputs, targets, folds, of_targets, data.groups, wanted)

        evidence = evidence_on(data.targets, lambda one, window: one.forecast(window))
        if any(forecaster.learns_variance for forecaster in self.forecasters):
            wanted &= np.isin(np.arange(columns), windows.panel.coding.numeric_columns)
            log_squares = _log_squares(evidence.errors)
            spread = evidence_on(log_squares, lambda one, window: np.log(one.variance(window)))
            evidence = _of_either(evidence, spread)
        return evidence, data

    def _has_learned(self, evidence: Evidence, data: TestedWindows) -> bool:
        """Whether it forecasts some target better than the mean, on rows it did not learn from.

        One gain may be luck among many targets: the level is divided by their number.
        """
        if any(forecaster.learns_variance for forecaster in self.forecasters):
            return True  # it may know the spread alone
        tested = np.isin(data.rows, np.concatenate(self.tested_rows))
        targets, errors = data.targets[tested], evidence.errors[tested]
        gain = gain_over_blocks(np.square(targets - targets.mean(0)), np.square(errors))
        level = thresholds().tests.learned_nothing / len(gain)
        return bool(gain.max() > -ndtri(level))

    def _most(self, windows: Windows) -> int:
        """How many windows are tested on."""
        by_memory = MOST_NUMBERS // (windows.inputs * windows.shape[1])
        by_time = min(f.asked_inputs for f in self.forecasters) // windows.inputs
        least = thresholds().tests.windows_per_refitted * windows.inputs
        return max(least, min(ENOUGH_WINDOWS, by_memory, by_time))


def refit_folds(windows: Windows) -> list[Fold]:
    """The parts of time to fit on, and those to test on."""
    least = thresholds().tests.windows_per_refitted
    if len(windows) < least * windows.inputs:
        raise InputError(
            f"There are {len(windows):,} windows for {windows.inputs} inputs, and at least "
            f"{least} for every input are needed to test a forecaster on rows that "
            "it did not learn from; use forecaster='linear', select='top-k', more rows or a "
            "smaller lag window."
        )
    return list(time_folds(windows.rows, windows.max_lag))


def _log_squares(errors: Array) -> Array:
    """Errors (row, target) as logarithms of their squares; tiny ones do not count as minus
    infinity."""
    squares = errors**2
    return np.asarray(np.log(squares + LEAST_SQUARE * np.maximum(squares.mean(0), 1e-300)))


def _of_either(mean: Evidence, spread: Evidence) -> Evidence:
    """An effect on the mean or on the variance counts; the smaller p-value times two."""
    smaller = spread.p_values < mean.p_values
    return replace(
        mean,
        p_values=np.minimum(2 * np.minimum(mean.p_values, spread.p_values), 1.0),
        block_sums=np.where(smaller[..., None, None], spread.block_sums, mean.block_sums),
    )


class _Answers:
    """What a forecaster says of some rows, for all targets at once."""

    def __init__(
        self,
        forecaster: Forecaster,
        data: TestedWindows,
        fold: Fold,
        ask: Ask,
        progress: Progress,
    ) -> None:
        self.forecaster, self.shape, self.ask = forecaster, data.past_shape, ask
        self.progress, self.groups = progress, len(data.groups.groups)
        self.domain = None if data.domain is None else data.domain[fold.test]
        self.reads = data.groups.tested
        self._asked: tuple[Array, Array] | None = None
        self._effects: dict[int, Single] = {}

    def forecasts(self, inputs: Array) -> Array:
        """(row, target) of inputs (row, input), kept until other inputs are asked about."""
        if self._asked is None or self._asked[0] is not inputs:
            self._asked = inputs, self._forecast(inputs)
        return self._asked[1]

    def effects(self, view: FoldView, group: int) -> Array:
        """h_c (row, target) of a group on the rows whose forecasts were asked for last."""
        if group not in self._effects:
            assert self._asked is not None
            self.progress.step(TESTING, len(self._effects) / self.groups)
            others = [self._forecast(inputs) for inputs in view.replaced(group)]
            effect = self._asked[1] - np.mean(others, axis=0)
            self._effects[group] = effect.astype(np.float32)
        return self._effects[group].astype(np.float64)

    def _forecast(self, inputs: Array) -> Array:
        steps, columns = self.shape
        past = inputs.astype(np.float32).reshape(-1, steps, columns)[:, ::-1]
        batch = Window(past, np.zeros((len(past), columns), dtype=np.float32), self.domain)
        parts = [
            self.ask(self.forecaster, batch[start : start + BATCH])
            for start in range(0, len(past), BATCH)
        ]
        return np.concatenate(parts).astype(np.float64)


class _OfTarget(Predictor):
    """One target's part of a forecaster's answers."""

    for_all_targets = True

    def __init__(self, answers: _Answers, target: int) -> None:
        self.answers, self.target, self.reads = answers, target, answers.reads

    def predict(self, inputs: Array) -> Array:
        return self.answers.forecasts(inputs)[:, self.target]

    def effect(self, view: FoldView, group: int) -> Array:
        return self.answers.effects(view, group)[:, self.target]
