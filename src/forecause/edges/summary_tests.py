"""Does a source drive a target at all? One test over all lags of every (target, source) pair."""

from __future__ import annotations

import numpy as np
import pandas as pd
import xarray as xr

from forecause.common.arrays import Array, Index
from forecause.config.thresholds import thresholds
from forecause.data.windows import Windows, inputs_of
from forecause.forecast.forecaster import MANY_INPUTS
from forecause.forecast.input_tests.given_parents import ConditionalTests, Model, robust_p_value
from forecause.forecast.input_tests.protocol import link_q_values
from forecause.regression.p_values import cauchy_combination

# Time and memory:
MOST_JOINTLY_TESTED = 5_000  # of the joint tests
MOST_PAIRS = 10_000  # of a table; of more pairs, those with a q-value above LEAST_Q are left out
LEAST_Q = 0.5


def summary_edges(windows: Windows, p_values: xr.DataArray, allowed: xr.DataArray) -> pd.DataFrame:
    """A table source, target, p, q of pairs, strongest first, from p-values of single lags.

    All pairs that were tested, or where they are very many those that are not hopeless.

    Where inputs are few and there is one domain, a joint test of all lags takes part. q-values are
    adjusted for pairs; self-links and links between variables apart.
    """
    of_lags = p_values.values  # (target, source, lag)
    of_pairs = _of_lags_alone(of_lags)
    one_domain = len(windows.panel.domain_names) < 2
    if windows.inputs <= MANY_INPUTS and one_domain and np.isfinite(of_pairs).any():
        of_pairs = _with_joint_tests(windows, of_pairs, allowed)
    names = [str(name) for name in p_values["source"].values]
    adjusted = link_q_values(of_pairs)
    shown = np.isfinite(of_pairs)
    if shown.sum() > MOST_PAIRS:
        shown &= adjusted <= LEAST_Q
    target, source = np.nonzero(shown)
    table = pd.DataFrame(
        {
            "source": [names[s] for s in source],
            "target": [names[t] for t in target],
            "p": of_pairs[target, source],
            "q": adjusted[target, source],
        }
    )
    return table.sort_values(["p", "target", "source"], ignore_index=True)


def _of_lags_alone(of_lags: Array) -> Array:
    """(target, source) from (target, source, lag); NaN where no lag was tested."""
    of_pairs = np.full(of_lags.shape[:2], np.nan)
    tested = np.isfinite(of_lags).sum(2)
    for count in np.unique(tested[tested > 0]).tolist():
        own = of_lags[tested == count]  # (pair, lag)
        of_tested = own[np.isfinite(own)].reshape(-1, count)
        of_pairs[tested == count] = cauchy_combination(of_tested.T, np.full(count, 1 / count))
    return of_pairs


def _with_joint_tests(windows: Windows, of_lags: Array, allowed: xr.DataArray) -> Array:
    """P-values (target, source) of single lags combined with those of all lags jointly.

    Targets with filled cells keep the first, which are of observed cells alone.
    """
    inputs = inputs_of(windows)
    lagged = ConditionalTests.of(windows, inputs.by_input(allowed.values), MOST_JOINTLY_TESTED)
    joint = inputs.p_values_of_targets(SummaryTests(lagged).joint_p_values())
    share = thresholds().edges.joint_share
    shares = np.array([share, 1 - share])
    both = cauchy_combination(np.stack([joint.ravel(), of_lags.ravel()]), shares)
    combined = np.where(
        np.isfinite(joint) & np.isfinite(of_lags), both.reshape(joint.shape), of_lags
    )
    is_filled = windows.filled_share[inputs.coding.first] > thresholds().tests.most_filled
    return np.asarray(np.where(is_filled[:, None], of_lags, combined))


class SummaryTests:
    """Joint tests of (target column, source variable) pairs.

    Do all lags of the source together add to the plausible parents that are other variables? Strong
    where an effect is spread over lags, as in autocorrelated series; tests of single lags are where
    one lag acts.
    """

    def __init__(self, lagged: ConditionalTests) -> None:
        self.lagged, self.terms = lagged, lagged.terms

    def joint_p_values(self) -> Array:
        """P-values (target column, source) of all lags together; NaN where none is allowed."""
        shape = len(self.lagged.allowed), self.lagged.inputs.variables
        p_values = np.full(shape, np.nan)
        for target, source in np.ndindex(*shape):
            if len(self._lags(target, source)):
                p_values[target, source] = self.joint(target, source)
        return p_values

    def joint(self, target: int, source: int) -> float:
        """P-value that all lags of a source together add nothing for one target column."""
        lags, model = self._lags(target, source), self.lagged.models[target]
        tests = self.lagged.tests_of(target)
        given = self._given(model, lags)
        tested = np.concatenate([self._tested(model, lag) for lag in lags.tolist()])
        p_value = float(tests.group_p_values(given, [tested])[0])
        if p_value >= thresholds().tests.confirm_level:
            return p_value
        features, outcome = self.lagged.features, self.lagged.outcome(target)
        robust = max(p_value, robust_p_value(features, outcome, given, tested))
        if not self.lagged.has_rows_for_all(target):
            return robust
        given_all = self._given_all_lines(target, given, tested, lags)
        return float(self.lagged.confirmed(target, np.array(robust), np.array(given_all)))

    def _lags(self, target: int, source: int) -> Index:
        """The allowed inputs that are lags of a source."""
        allowed = np.flatnonzero(self.lagged.allowed[target])
        return allowed[allowed % self.lagged.inputs.variables == source]

    def _given(self, model: Model, lags: Index) -> Index:
        """The features of the parents that are not lags of the source, and the intercept."""
        others = [model.of(i) for i in model.bent if i not in lags]
        return np.concatenate([np.zeros(1, dtype=np.int64), *others])

    def _tested(self, model: Model, lag: int) -> Index:
        """The line of a lag, or its spline if it is a bent parent."""
        return model.of(lag) if lag in model.bent else self.terms.lines[lag]

    def _given_all_lines(self, target: int, given: Index, tested: Index, lags: Index) -> float:
        """The joint p-value given the lines of all other sources too."""
        allowed = np.flatnonzero(self.lagged.allowed[target])
        others = [self.terms.lines[i] for i in np.setdiff1d(allowed, lags)]
        every = np.unique(np.concatenate([given, *others]))
        classical = float(self.lagged.tests_of(target).group_p_values(every, [tested])[0])
        features, outcome = self.lagged.features, self.lagged.outcome(target)
        return max(classical, robust_p_value(features, outcome, every, tested))
