import numpy as np
import pytest
import statsmodels.api as sm
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import Ridge

from forecause.data.windows import moments_of
from forecause.errors import InputError
from forecause.regression.least_squares import residual_of
from forecause.regression.moments import (
    Moments,
    cross_validated,
    lowest,
    unexplained,
    with_intercept,
)


def flat(past):
    return past.reshape(len(past), -1)


def regression(windows, target):
    window = windows.draw(np.arange(len(windows))).rows.astype(float)
    design = sm.add_constant(flat(window[:, :-1]))
    return sm.OLS(window[:, -1, target], design).fit()


def test_coefficients_and_loss_are_those_of_least_squares(chain_windows):
    moments = moments_of(chain_windows, flat)
    coefficients = moments.solve()
    for target in range(3):
        reference = regression(chain_windows, target)
        np.testing.assert_allclose(coefficients[:, target], reference.params, atol=1e-7)
        mse = float((reference.resid**2).mean())
        assert float(moments.loss(coefficients)[target]) == pytest.approx(mse, rel=1e-9)


def test_group_tests_are_the_f_tests_of_statsmodels(chain_windows):
    groups = [np.array([0]), np.array([1, 4]), np.array([2, 3, 5])]
    p_values = moments_of(chain_windows, flat).group_p_values(groups)
    for target in range(3):
        reference = regression(chain_windows, target)
        for g, features in enumerate(groups):
            restriction = np.zeros((len(features), 7))
            restriction[np.arange(len(features)), features + 1] = 1
            expected = float(reference.f_test(restriction).pvalue)
            assert p_values[target, g] == pytest.approx(expected, rel=1e-4, abs=1e-300)


def test_a_feature_that_never_varies_costs_no_degree_of_freedom(chain_windows):
    def padded(past):
        return np.concatenate([flat(past), np.zeros((len(past), 1))], axis=1)

    plain = moments_of(chain_windows, flat).group_p_values([np.array([0])])
    with_zero = moments_of(chain_windows, padded).group_p_values([np.array([0, 6])])
    np.testing.assert_allclose(plain, with_zero, rtol=1e-6)


def test_more_inputs_than_windows_is_refused(chain_windows):
    few = chain_windows.at(np.arange(6))
    with pytest.raises(InputError, match=r"found 6 windows for 6 inputs"):
        moments_of(few, flat).group_p_values([np.array([0])])


def test_the_inverse_is_that_of_the_gram_matrix(chain_windows):
    moments = moments_of(chain_windows, flat)
    both = moments.inverse() @ moments.gram
    np.testing.assert_allclose(both, np.eye(len(both)), atol=1e-6)


def test_wide_designs_are_solved_as_narrow_ones_are():
    rng = np.random.default_rng(0)
    features = rng.normal(size=(1500, 1100))
    targets = features[:, :2] + rng.normal(size=(1500, 2))
    moments = Moments.summed([(features, targets)])
    expected = np.linalg.lstsq(sm.add_constant(features), targets, rcond=None)[0]
    np.testing.assert_allclose(moments.solve(), expected, atol=1e-6)


@given(left=st.integers(0, 6), right=st.integers(0, 6), steps=st.data())
def test_the_lowest_place_of_a_valley_is_found(left, right, steps):
    down, up = (
        np.cumsum(steps.draw(st.lists(st.integers(1, 9), min_size=size, max_size=size)))
        for size in (left, right)
    )
    valley = [*down[::-1].tolist(), 0, *up.tolist()]
    assert lowest(valley.__getitem__, len(valley)) == left


def test_moments_without_a_part_are_those_of_the_rest(chain_windows):
    every = moments_of(chain_windows)
    early, late = chain_windows.split(0.3)
    left, own = every.without(moments_of(late)), moments_of(early)
    assert left.count == own.count == len(early)
    for name in ("gram", "cross", "square"):
        expected = np.asarray(getattr(own, name))
        np.testing.assert_allclose(np.asarray(getattr(left, name)), expected, atol=1e-6)


class TestBlocks:
    """Sums over blocks of time, whose sizes differ."""

    BLOCKS = (slice(0, 40), slice(40, 130), slice(130, 200))

    @pytest.fixture
    def table(self):
        rng = np.random.default_rng(5)
        features = rng.normal(size=(200, 3)) + 1
        return features, features @ rng.normal(size=(3, 2)) + rng.normal(size=(200, 2))

    @pytest.fixture
    def blocks(self, table):
        features, targets = table
        return Moments.of_blocks(with_intercept(features), targets, self.BLOCKS)

    @pytest.fixture
    def parts(self, table):
        """The moments of each block by itself."""
        features, targets = table
        return [Moments.summed([(features[b], targets[b])]) for b in self.BLOCKS]

    def same(self, found, expected):
        assert found.count == expected.count
        for name in ("gram", "cross", "square"):
            np.testing.assert_allclose(getattr(found, name), getattr(expected, name), atol=1e-9)

    def test_a_block_and_their_sum_are_those_of_its_rows(self, table, blocks, parts):
        self.same(blocks.block(1), parts[1])
        whole = Moments.summed([table])
        self.same(blocks.total(), whole)
        self.same(blocks.total(without=2), Moments.added(parts[:2]))
        self.same(Moments.added(parts), whole)
        left_out = blocks.left_out
        assert left_out.count.tolist() == [160, 110, 130]
        np.testing.assert_allclose(left_out.gram[0], whole.gram - parts[0].gram)

    def test_features_may_be_put_beside_those_that_are_there(self, table, blocks):
        features, targets = table
        more = np.sin(features[:, :2])
        design = with_intercept(features)
        found = blocks.extended(design, more, targets, self.BLOCKS)
        expected = Moments.of_blocks(np.hstack([design, more]), targets, self.BLOCKS)
        for name in ("count", "gram", "cross", "square"):
            np.testing.assert_allclose(getattr(found, name), getattr(expected, name), atol=1e-9)

    def test_some_targets_and_features_are_those_of_a_smaller_table(self, table):
        features, targets = table
        whole = Moments.summed([table])
        self.same(whole.of_targets([1]), Moments.summed([(features, targets[:, [1]])]))
        self.same(
            whole.of_features(np.array([2, 0])), Moments.summed([(features[:, [2, 0]], targets)])
        )

    def test_batches_of_any_size_give_the_same_sums(self, table):
        features, targets = table
        batches = [(features[i : i + 64], targets[i : i + 64]) for i in range(0, 200, 64)]
        self.same(Moments.summed(batches), Moments.summed([table]))

    @pytest.mark.parametrize("penalty", [0.3, (5.0, 0.1, 0.2, 0.4)])
    def test_a_penalty_is_that_of_ridge_per_window_and_spares_the_intercept(self, table, penalty):
        features, targets = table
        found = Moments.summed([table]).solve(np.array(penalty))
        scale = np.broadcast_to(penalty, 4)[1:]  # a penalty of each is one of scaled features
        oracle = Ridge(alpha=200.0).fit(features / np.sqrt(scale), targets)
        np.testing.assert_allclose(found[1:], (oracle.coef_ / np.sqrt(scale)).T, rtol=1e-6)
        np.testing.assert_allclose(found[0], oracle.intercept_, rtol=1e-6)

    def test_the_loss_is_that_of_any_coefficients(self, table):
        features, targets = table
        coefficients = np.random.default_rng(0).normal(size=(4, 2))
        left = unexplained(
            [(features[:50], targets[:50]), (features[50:], targets[50:])], coefficients
        )
        np.testing.assert_allclose(left, targets - coefficients[0] - features @ coefficients[1:])
        found = Moments.summed([table]).loss(coefficients)
        np.testing.assert_allclose(found, (left**2).mean(0))

    def test_what_is_not_allowed_is_as_if_it_were_not_there(self, table):
        features, targets = table
        allowed = np.array([[True, True], [False, True], [True, False]])
        found = Moments.summed([table]).solve(0.1, allowed)
        for target in range(2):
            own = np.flatnonzero(allowed[:, target])
            alone = Moments.summed([(features[:, own], targets[:, [target]])]).solve(0.1)[:, 0]
            np.testing.assert_allclose(found[np.r_[0, own + 1], target], alone)
            assert not found[1:, target][~allowed[:, target]].any()

    def left_out_losses(self, table, ridge):
        """Of every block, by a fit to the others; (block, target)."""
        features, targets = table
        losses = []
        for block in self.BLOCKS:
            rest = np.delete(np.arange(200), block)
            fit = Ridge(alpha=ridge * len(rest)).fit(features[rest], targets[rest])
            losses.append(np.square(targets[block] - fit.predict(features[block])).mean(0))
        return np.array(losses)

    def test_a_block_is_forecast_by_the_others(self, table, blocks):
        expected = self.left_out_losses(table, 0.5)
        np.testing.assert_allclose(blocks.left_out_losses(0.5), expected, rtol=1e-6)

    def test_the_best_penalty_of_each_target_loses_least_over_all_windows(self, table, blocks):
        ridges, weights = (1e-6, 0.05, 0.5), np.array([40, 90, 70]) / 200
        losses = np.array([weights @ self.left_out_losses(table, ridge) for ridge in ridges])
        best, loss = blocks.best_penalties([np.asarray(ridge) for ridge in ridges])
        np.testing.assert_array_equal(best, losses.argmin(0))
        np.testing.assert_allclose(loss, losses.min(0), rtol=1e-6)

    def test_a_loss_rises_by_what_a_group_explains_beside_the_others(self, table):
        features, targets = table
        groups = [np.array([1]), np.array([2, 3]), np.array([], dtype=int)]
        found = Moments.summed([(features, targets[:, :1])]).rises(0.0, groups)

        def loss(columns):
            design = with_intercept(features[:, columns])
            return np.square(residual_of(targets[:, 0], design)).mean()

        whole = loss([0, 1, 2])
        np.testing.assert_allclose(
            found, [loss([1, 2]) - whole, loss([0]) - whole, 0.0], rtol=1e-6, atol=1e-12
        )


def blocks_of_noise(targets, blocks=6):
    """Blocks of few windows, where a large penalty is better; targets differ in size."""
    rng = np.random.default_rng(6)
    x = rng.normal(size=(blocks, 20, 8))
    y = (0.5 * x[..., :1] + rng.normal(size=(blocks, 20, targets))) * np.linspace(1, 4, targets)
    return [Moments.summed([(a, b)]) for a, b in zip(x, y, strict=True)]


def chosen_by_hand(blocks, ridges, judged, judges):
    """Solution by the penalty with the least error of some targets over some left-out blocks."""
    whole, errors = Moments.added(blocks), []
    for ridge in ridges:
        losses = [
            block.count * block.loss(whole.without(block).solve(ridge))[judged].sum()
            for block in judges
        ]
        errors.append(sum(losses))
    assert 0 < np.argmin(errors) < len(ridges) - 1  # so that a wrong choice shows
    return whole.solve(ridges[np.argmin(errors)])


RIDGES = (0.001, 0.01, 0.1, 0.3, 0.6, 1.0, 2.0, 5.0, 20.0, 100.0)


def test_one_penalty_for_all_targets_is_the_one_that_forecasts_left_out_blocks_best():
    blocks = blocks_of_noise(3)
    expected = chosen_by_hand(blocks, RIDGES, np.arange(3), blocks)
    np.testing.assert_allclose(cross_validated(blocks, RIDGES), expected)


def test_with_one_block_the_largest_penalty_is_taken():
    (block,) = blocks_of_noise(3, blocks=1)
    np.testing.assert_allclose(cross_validated([block], (2.0, 1.0)), block.solve(2.0))


@pytest.mark.parametrize("most", [4, 5])
def test_of_very_many_targets_every_few_are_judged(monkeypatch, most):
    monkeypatch.setattr("forecause.regression.moments.MOST_JUDGED", most)
    blocks = blocks_of_noise(9)
    step = {4: 3, 5: 2}[most]
    expected = chosen_by_hand(blocks, RIDGES, np.arange(0, 9, step), blocks)
    np.testing.assert_allclose(cross_validated(blocks, RIDGES), expected)


@pytest.mark.parametrize(("most", "every"), [(9, 1), (8, 2)])
def test_with_very_many_features_every_second_block_is_left_out(monkeypatch, most, every):
    monkeypatch.setattr("forecause.regression.moments.MANY_FEATURES", most)
    blocks = blocks_of_noise(3)  # of 8 features and an intercept
    expected = chosen_by_hand(blocks, RIDGES, np.arange(3), blocks[::every])
    np.testing.assert_allclose(cross_validated(blocks, RIDGES), expected)


def test_a_penalty_is_chosen_by_the_inputs_that_are_allowed():
    blocks, allowed = blocks_of_noise(1), np.array([[True]] * 2 + [[False]] * 6)
    own = [block.of_features(np.arange(2)) for block in blocks]
    expected = cross_validated(own, RIDGES)
    np.testing.assert_allclose(cross_validated(blocks, RIDGES, allowed)[:3], expected)
    np.testing.assert_allclose(
        cross_validated(blocks, RIDGES, np.repeat(allowed, 1, axis=1))[3:], 0.0
    )
