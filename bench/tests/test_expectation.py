"""Systems drawn to see whether the announced time holds."""

from forecause.resources.cost import Cost
from forecause_bench.document import to_markdown
from forecause_bench.expectation import MOST_INPUTS, Drawn, Measured, document


def test_a_seed_draws_the_same_system_within_the_bounds():
    for seed in range(50):
        drawn = Drawn.of(seed)
        assert drawn == Drawn.of(seed)
        assert 3 <= drawn.nodes <= 60
        assert drawn.nodes * drawn.max_lag <= MOST_INPUTS
        assert 300 <= drawn.rows <= 20_000


def test_the_table_counts_the_runs_outside_the_range():
    cost = Cost({"tests": 10.0}, 0.5)
    found = [Measured(Drawn.of(seed), cost, took) for seed, took in enumerate((1.0, 10.0, 90.0))]
    text = to_markdown(document(found))
    assert "It held in 1 of 3 runs; 1 took less and 1 took more." in text
    assert text.count("| less |") == text.count("| more |") == 1
