"""The paper's figures as they are printed there."""

from forecause_bench.paper import Figure, paper_figure


def test_figures_are_those_of_the_paper():
    assert paper_figure("highdim_linear", "n=25", "dot-paper", "f1") == Figure(0.91, 0.02)
    assert paper_figure("highdim_linear", "n=100", "pcmci", "shd") == Figure(2500.0, 59.6)
    assert paper_figure("ns_regular_seg2", "1M", "dot-paper", "f1") == Figure(0.79, 0.01)
    assert paper_figure("noise", "Uniform", "pcmci", "f1") == Figure(0.72, 0.08)


def test_a_figure_without_a_spread_has_none():
    assert paper_figure("highdim_linear", "n=25", "nts-notears", "f1") == Figure(0.0, None)


def test_guessing_at_the_true_density_is_the_papers_random_guess():
    assert paper_figure("highdim_linear", "Base", "random-oracle", "f1") == Figure(0.05, 0.02)
    assert paper_figure("highdim_linear", "Base", "random", "f1") is None


def test_what_the_paper_does_not_report_is_not_made_up():
    assert paper_figure("highdim_linear", "Base", "forecause", "f1") is None
    assert paper_figure("highdim_linear", "n=7", "dot-paper", "f1") is None
    assert paper_figure("highdim_linear", "Base", "dot-paper", "auroc") is None
