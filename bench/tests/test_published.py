"""The paper's transformer read in every way from one fit, kept tiny here."""

import pytest

from forecause.networks.settings import DeepTransformer
from forecause.simulation import simulate
from forecause_bench import published, suites
from forecause_bench.scoring import score_answer


@pytest.fixture(scope="module")
def tiny():
    """The paper's model, shrunk; gives the numbers of layers that were asked for."""
    asked = []

    def settings(layers):
        asked.append(layers)
        small = DeepTransformer(width=8, heads=1, layers=1)
        return small.trained_with(max_steps=100, cooldown=50, rounds=0, look_every=50)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(published, "settings", settings)
        yield asked


@pytest.fixture(scope="module")
def answers(tiny):
    panel = simulate(nodes=3, max_lag=2, rows=400, in_degree=1.0, seed=1).panel
    return {answer.label: answer for answer in published.deep(panel, 2, 0)}


def test_one_fit_gives_the_answers_of_all_suites(answers, tiny):
    assert tiny == [4]
    graph = {label: len(answer.graph) for label, answer in answers.items()}
    for name in ("variants", "top-k", "uncertainty", "interventions"):
        asked = suites.SUITES[name].answers["dot"]
        small = {label for label in asked if "overall" not in label or int(label[-10:-8]) <= 18}
        assert small <= set(graph)
    assert graph[""] == graph["attention, top-3 per target"] == 9
    assert [graph[f"top-{k} per target"] for k in (1, 2, 4, 5)] == [3, 6, 12, 15]
    assert [graph[f"top-{k} overall"] for k in (3, 18)] == [3, 18]
    assert "top-21 overall" not in graph  # there are 18 candidates


def test_rank_scores_differ_in_what_they_rank_by(answers):
    scores = {label.partition(",")[0]: a.graph.scores.values for label, a in answers.items()}
    product = scores["mean rank"] * scores["1 / sd of rank"]
    assert scores["mean / sd of rank"] == pytest.approx(product)


def test_interventions_agree_with_themselves_and_mostly_with_the_gradient(answers):
    same = answers["by intervention"].extra
    assert (same["pearson"], same["spearman"]) == pytest.approx((1.0, 1.0))
    assert answers["by gradient"].extra["pearson"] > 0.9


def test_every_segment_has_a_graph_of_its_own(tiny):
    system = simulate(nodes=3, max_lag=2, rows=400, in_degree=1.0, segments=2, seed=1)
    found = published.shallow(system.panel, 2, 0)
    assert tiny[-1] == 1
    assert all(set(answer.graph.domains) == set(system.graph.domains) for answer in found)
    whole, *parts = (a.scores.values for a in (found[0].graph, *found[0].graph.domains.values()))
    assert all((part != whole).any() for part in parts)
    assert 0 <= score_answer(found[0].graph, system.graph)["metrics"]["lagged"]["f1"] <= 1


def test_refinement_starts_from_the_graph_with_three_edges_per_target(tiny):
    panel = simulate(nodes=3, max_lag=2, rows=400, in_degree=1.0, seed=1).panel
    found = {a.label: len(a.graph) for a in published.refined_latent(panel, 2, 0)}
    assert found["as discovered"] == 9 >= found["refined"]
    labels = [answer.label for answer in published.refined_instantaneous(panel, 2, 0)]
    assert labels == ["as discovered (lagged)", "refined by PCMCI+", "refined by DYNOTEARS"]


def test_a_model_that_is_told_the_segment_differs_from_one_that_is_not(tiny):
    system = simulate(nodes=3, max_lag=2, rows=400, in_degree=1.0, segments=2, seed=1)
    told, untold = (
        answer(system.panel, 2, 0)[0].graph
        for answer in (published.told_the_segment, published.shallow)
    )
    assert set(told.domains) == set(untold.domains)
    assert (told.scores.values != untold.scores.values).any()
