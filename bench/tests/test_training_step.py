"""The figures of a training step."""

from forecause_bench.training_step import Speed, measure


def test_the_share_of_the_peak_is_operations_per_second_over_it():
    speed = Speed("made up", 0.01, 200_000_000, 6.0, 6000, {"mm": 0.4, "mul": 0.25})
    (line,) = speed.sentences(peak=1e11)
    assert "a step takes 10.0 ms, 20% of the peak" in line
    assert "takes 6.00 s, 10.0% of 6,000 steps" in line
    assert "mm 40%, mul 25%" in line


def test_operations_are_those_of_the_matrix_products():
    found = measure("mlp", "default", (2, 3))
    # per window and target: 6 x (1 + 32) + 32 x 32 + 32 products, forward and two ways backward,
    # but for the past, which wants no gradient
    forward = 64 * 3 * 2 * (6 * 33 + 32 * 32 + 32)
    past = 64 * 3 * 2 * 6 * 33
    assert found.operations == 3 * forward - past
    assert found.step > 0
    assert sum(found.shares.values()) <= 1
