"""Several answers from one fitted transformer, kept tiny here."""

import pytest

from forecause.forecast.models.deep_transformer import DeepTransformer
from forecause.forecast.training.loop import TrainingSettings
from forecause.simulation import simulate
from forecause_bench import studies


@pytest.fixture(autouse=True)
def tiny(monkeypatch):
    """The paper's model, shrunk; gives the numbers of layers that were asked for."""
    asked = []

    def paper(layers=4):
        asked.append(layers)
        training = TrainingSettings(max_steps=100, look_every=50)
        return DeepTransformer(width=8, heads=1, layers=1, training=training)

    monkeypatch.setattr(studies, "DeepTransformer", paper)
    return asked


@pytest.fixture(scope="module")
def panel():
    return simulate(nodes=3, max_lag=2, rows=400, in_degree=1.0, seed=1).panel


def test_variants_cross_readouts_with_rules(panel, tiny):
    deep = studies.deep_variants(panel, 2, 0)
    studies.shallow_variants(panel, 2, 0)
    assert tiny == [4, 1]
    assert [answer.label for answer in deep] == [
        "LRP, top-3 per target",
        "LRP, threshold",
        "attention, top-3 per target",
        "attention, threshold",
    ]
    assert len(deep[0].graph) == len(deep[2].graph) == 9


def test_each_k_gives_a_graph_of_that_many_edges(panel):
    sizes = {answer.label: len(answer.graph) for answer in studies.k_sensitivity(panel, 2, 0)}
    assert [sizes[f"top-{k} per target"] for k in range(1, 6)] == [3, 6, 9, 12, 15]
    assert [sizes[f"top-{k} overall"] for k in (3, 18)] == [3, 18]
    assert "top-21 overall" not in sizes  # there are 18 candidates


def test_rank_scores_share_one_fit_and_differ_in_what_they_rank_by(panel, tiny):
    answers = studies.rank_scores(panel, 2, 0)
    assert tiny == [4]
    assert len(answers) == 8
    scores = {answer.label.partition(",")[0]: answer.graph.scores.values for answer in answers}
    product = scores["mean rank"] * scores["1 / sd of rank"]
    assert scores["mean / sd of rank"] == pytest.approx(product)


def test_interventions_agree_with_themselves_and_mostly_with_the_gradient(panel):
    found = {a.label: a.extra for a in studies.intervention_agreement(panel, 2, 0)}
    assert found["intervention"]["pearson"] == pytest.approx(1.0)
    assert found["intervention"]["spearman"] == pytest.approx(1.0)
    assert found["gradient"]["pearson"] > 0.9
    assert set(found) == {"intervention", "gradient", "input-gradient", "lrp"}
