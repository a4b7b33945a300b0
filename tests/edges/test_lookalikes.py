"""What imitates a link is told from a link, where the data can tell."""

import numpy as np

from forecause.data import Panel, Windows
from forecause.edges.lookalikes import echoes, only_surprises

ROWS = 1_500


def noise(seed: int, variables: int = 3) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(ROWS, variables))


def with_memory(shocks: np.ndarray, coefficient: float = 0.5, links=()) -> np.ndarray:
    """Each variable remembers itself; links are (source, target, lag, size)."""
    values = shocks.copy()
    for row in range(3, len(values)):
        values[row] += coefficient * values[row - 1]
        for source, target, lag, size in links:
            values[row, target] += size * values[row - lag, source]
    return values


def asked(*links: tuple[int, int, int]) -> np.ndarray:
    """Links (source, target, lag) as a mask (target, source, lag)."""
    mask = np.zeros((3, 3, 3), dtype=bool)
    for source, target, lag in links:
        mask[target, source, lag - 1] = True
    return mask


def windows_of(values: np.ndarray) -> Windows:
    return Windows.of(Panel.of(values), 3)


def test_a_shock_that_reaches_one_first_and_another_later_is_told_from_a_cause():
    both = asked((0, 1, 1), (0, 1, 2))
    told = 0
    for seed in range(6):
        shared = np.random.default_rng([seed, 1]).normal(size=ROWS)
        shocks = noise(seed)
        shocks[:, 0] += shared
        shocks[1:, 1] += shared[:-1]
        told += only_surprises(windows_of(with_memory(shocks)), both, 0.005, 0.05)[1, 0, 0]
        cause = with_memory(noise(seed), links=[(0, 1, 1, 0.4)])
        assert not only_surprises(windows_of(cause), both, 0.005, 0.05).any()
    assert told >= 4


def test_without_a_memory_of_the_source_shock_and_cause_cannot_be_told_apart():
    shared = np.random.default_rng(1).normal(size=ROWS)
    shocks = noise(0)
    shocks[:, 0] += shared
    shocks[1:, 1] += shared[:-1]
    assert not only_surprises(windows_of(shocks), asked((0, 1, 1)), 0.005, 0.05).any()


def test_an_older_lag_beside_noise_that_lingers_is_an_echo_and_two_lags_of_a_cause_are_not():
    both, found, true = asked((0, 1, 1), (0, 1, 2)), 0, 0
    for seed in range(4):
        shocks = noise(seed)
        lingering = shocks.copy()
        lingering[2:] += 0.6 * shocks[1:-1] + 0.3 * shocks[:-2]
        one = windows_of(with_memory(lingering, links=[(0, 1, 1, 0.4)]))
        two = windows_of(with_memory(shocks, links=[(0, 1, 1, 0.4), (0, 1, 2, -0.2)]))
        found += int(echoes(one, both, 0.05)[1, 0, 1])
        true += int(echoes(two, both, 0.05).any())
        assert not echoes(one, both, 0.05)[1, 0, 0]
    assert found >= 3
    assert true <= 1


def test_nothing_is_said_of_what_was_not_asked_or_of_few_rows():
    windows = windows_of(with_memory(noise(0)))
    nothing = np.zeros((3, 3, 3), dtype=bool)
    assert not only_surprises(windows, nothing, 0.5, 0.05).any()
    assert not echoes(windows, nothing, 0.5).any()
    few = Windows.of(Panel.of(noise(0)[:25]), 3)
    assert not only_surprises(few, asked((0, 1, 1)), 0.999, 0.05).any()
