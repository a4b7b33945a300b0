"""The study at the paper's size: the store, the rules, the tables."""

import json
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from forecause.edges.knowledge import Knowledge
from forecause.graph.lagged import LaggedGraph
from forecause.refine.links import Links
from forecause.refine.tigramite_search import by_target, search_latent
from forecause_bench.document import to_markdown
from forecause_bench.paper_study import (
    causaltime,
    experiments,
    fit,
    isolate,
    page,
    queue,
    quick_pcmci,
    refinement,
    rivals,
    run,
    theorem,
)
from forecause_bench.paper_study.answers import Kind, Study, fit_metrics
from forecause_bench.paper_study.fit import Course, run_fit
from forecause_bench.paper_study.queue import Fit, in_order
from forecause_bench.paper_study.rivals import add_rivals, at_false_discovery_rate
from forecause_bench.paper_study.scores import (
    auroc,
    every_lag,
    metrics,
    own_last_share,
    threshold,
    top_k,
)
from forecause_bench.paper_study.store import (
    STORE,
    WHOLE,
    StoredFit,
    edges_by_segment,
    stored_fits,
    write,
)
from forecause_bench.paper_study.systems import recorded
from forecause_bench.paper_study.tables import Column, Row, Section, f1_table
from forecause_bench.rivals import run_baseline

TINY = {"nodes": 3, "max_lag": 2, "in_degree": 1.0, "max_in_degree": 2}


@pytest.fixture
def tiny(monkeypatch):
    """Systems of three variables, and a training of two steps."""
    monkeypatch.setitem(queue.SYSTEMS, "tiny", TINY)
    monkeypatch.setitem(queue.SYSTEMS, "tiny-segments", {**TINY, "segments": 2})
    for name, value in {"MOST_STEPS": 2, "COOLDOWN": 1, "LOOK_EVERY": 1, "BATCH": 16}.items():
        monkeypatch.setattr(fit, name, value)
    for name in ("WATCHED", "GLIMPSE", "READ_TOKENS", "SEGMENT_TOKENS", "SHIFTED"):
        monkeypatch.setattr(fit, name, 20)


def test_the_rules_choose_what_they_say():
    scores = np.random.default_rng(0).random((4, 4, 3))
    assert (top_k(scores, 2).sum((1, 2)) == 2).all()
    assert top_k(scores, 1)[0].ravel()[scores[0].argmax()]
    even = np.ones((4, 4, 3))
    even[:, 0, 0] = 1.5
    assert np.argwhere(threshold(even)).tolist() == [[i, 0, 0] for i in range(4)]


def test_ranking_agrees_with_scikit_learn():
    rng = np.random.default_rng(1)
    scores, true = rng.integers(0, 9, (5, 5, 2)).astype(float), rng.random((5, 5, 2)) < 0.3
    assert auroc(scores, true) == pytest.approx(roc_auc_score(true.ravel(), scores.ravel()))
    assert causaltime.auroc(scores[..., 0], true[..., 0], self_links=True) == pytest.approx(
        roc_auc_score(true[..., 0].ravel(), scores[..., 0].ravel())
    )


def test_a_pair_marked_at_every_lag_has_a_precision_of_one_over_the_lags():
    true = np.zeros((3, 3, 5), dtype=bool)
    true[0, 1, 2] = true[2, 0, 4] = True
    assert metrics(every_lag(true), true)["precision"] == pytest.approx(1 / 5)
    assert metrics(true, true) == {"precision": 1, "recall": 1, "f1": 1, "shd": 0}


def test_the_own_last_value_counts_only_where_it_is_no_cause():
    scores, true = np.zeros((2, 2, 1)), np.zeros((2, 2, 1), dtype=bool)
    scores[0] = [[9.0], [1.0]]  # its own value is a cause here
    scores[1] = [[3.0], [1.0]]
    true[0, 0, 0] = True
    assert own_last_share(scores, true) == pytest.approx(0.25)


def test_hidden_variables_count_within_the_in_degree():
    settings = {"nodes": 10, "max_lag": 2, "in_degree": 2.7, "max_in_degree": 3}
    seen, all_seen = [], []
    for seed in range(5):
        panel, truth = recorded(100, seed, hidden=5, **settings)
        assert panel.values.shape == (100, 10)
        assert truth.variables == panel.variables
        seen.append(len(truth))
        all_seen.append(len(recorded(100, seed, **settings)[1]))
    # Of 2.4 causes among 14 others, 9 can be seen; the self-links stay.
    assert np.mean(seen) < 0.85 * np.mean(all_seen)


def test_training_ends_when_edges_and_loss_stand_still():
    def course(losses, edges):
        return Course(list(range(len(losses))), losses, {"lrp": [np.array(e) for e in edges]})

    same = [[0, 1, 2]] * 10
    assert course([1.0, 0.9, 0.899, 0.898], [same] * 4).steady()
    assert not course([1.0, 0.9, 0.8, 0.7], [same] * 4).steady(), "the loss still falls"
    other = [[3, 4, 5]] * 10
    assert not course([0.9, 0.9, 0.9], [same, same, other]).steady(), "the edges still change"
    assert not course([0.9, 0.9], [same, same]).steady(), "too few looks"


def test_a_fit_comes_back_from_its_file_as_it_was(tiny, tmp_path):
    content = run_fit(Fit("tiny", rows=300), tmp_path / "weights" / "tiny.safetensors")
    write(tmp_path / "tiny_seed0.json", content)
    (stored,) = stored_fits(tmp_path)
    assert stored.steps == 2
    assert stored.shape == (3, 3, 2)
    assert {"gradient", "lrp", "balanced-lrp", "cp-lrp", "intervention", "var"} <= set(
        stored.readouts()
    )
    truth = recorded(300, 0, **Fit("tiny").settings)[1].adjacency.values
    assert (stored.truths[WHOLE] == truth).all()
    assert 0 <= fit_metrics(stored, "gradient")["f1"] <= 1
    assert (tmp_path / "weights" / "tiny.safetensors").exists()


def test_every_part_of_the_lrp_rule_can_be_read_by_itself(tiny, tmp_path):
    tiny_fit = Fit("tiny", rows=300)
    weights = tmp_path / "tiny.safetensors"
    run_fit(tiny_fit, weights)
    found = {name: np.array(read) for name, read in isolate.isolated(tiny_fit, weights, 30).items()}
    assert list(found) == list(isolate.RULES)
    plain, *others = found.values()
    assert all((plain != other).any() for other in others)
    both = found["attention and both residuals halved, linearised"]
    balanced = found["attention and its residual halved, linearised: balanced"]
    assert (both != balanced).any()


def test_segments_are_scored_against_their_own_graphs(tiny, tmp_path):
    fit_of_two = Fit("tiny-segments", rows=400)
    write(tmp_path / "a_seed0.json", run_fit(fit_of_two))
    stored = stored_fits(tmp_path)[0]
    each = [
        metrics(top_k(stored.relevance("lrp", name)), true)["f1"]
        for name, true in stored.truths.items()
    ]
    assert len(each) == 2
    assert fit_metrics(stored, "lrp")["f1"] == pytest.approx(np.mean(each))
    add_rivals(tmp_path / "rivals" / "a.json", fit_of_two, ["var-fdr"])
    kind = Kind("tiny-segments", rows=400)
    assert Study(tmp_path).rival(kind, "var-fdr").seeds == 1, "one graph counts for every segment"


def test_a_stopped_queue_goes_on_with_what_is_missing(monkeypatch, tmp_path):
    done = []
    monkeypatch.setattr(run, "in_order", lambda: [Fit("linear"), Fit("monotonic")])
    monkeypatch.setattr(run, "run_fit", lambda fit, weights: done.append(fit.name) or {"a": 1})
    monkeypatch.setattr("sys.argv", ["run", "--store", str(tmp_path), "--most", "1"])
    run.main()
    run.main()
    assert done == ["linear_50k_seed0", "monotonic_50k_seed0"]
    assert not list(tmp_path.glob("*.part"))


def test_the_queue_names_every_fit_once_and_the_base_first():
    names = [fit.name for fit in in_order()]
    assert len(set(names)) == len(names)
    assert names[0] == "linear_50k_seed0"
    for system in ("linear", "mlp-concat", "noise-large", "hidden-10", "regular-2", "extreme-2"):
        assert {f"{system}_50k_seed{seed}" for seed in range(3)} <= set(names)


def test_pcmci_with_fdr_needs_no_second_search():
    panel, _ = recorded(1500, 0, **{**TINY, "nodes": 5})
    plain, corrected = (run_baseline(name, panel, 2, 0) for name in ("pcmci", "pcmci-fdr"))
    keys = ["source", "target", "lag"]
    found = at_false_discovery_rate(plain).edges[keys].values.tolist()
    assert sorted(found) == sorted(corrected.edges[keys].values.tolist())


@pytest.mark.parametrize(
    ("name", "search"), [("pcmci", quick_pcmci.pcmci), ("pcmci+", quick_pcmci.pcmci_plus)]
)
def test_pcmci_by_moments_gives_the_figures_of_tigramites_own_test(name, search):
    panel, _ = recorded(600, 3, nodes=4, max_lag=2, in_degree=2.0, max_in_degree=3)
    quick, plain = search(panel, 2).edges, run_baseline(name, panel, 2, 0).edges
    keys = ["source", "target", "lag"]
    quick, plain = (edges.sort_values(keys) for edges in (quick, plain))
    assert len(quick) > 3
    assert quick[keys].values.tolist() == plain[keys].values.tolist()
    for column in ("score", "p_value"):
        assert quick[column].to_numpy() == pytest.approx(plain[column].to_numpy(), abs=1e-10)


def test_lpcmci_by_moments_marks_the_same_causes():
    panel, _ = recorded(600, 3, hidden=2, nodes=4, max_lag=2, in_degree=2.0, max_in_degree=3)
    names = panel.variables
    graph = LaggedGraph.from_edges(names, 2, [(a, b, 1) for a in names for b in names])
    found = edges_by_segment(refinement.plain_lpcmci(panel, graph))[WHOLE]
    mask = np.zeros((4, 4, 3), dtype=bool)
    mask[:, :, 1] = True
    links = Links.of(panel, 2, Knowledge()).within(mask).for_lpcmci()
    marks = by_target(search_latent(panel, 2, links, pc_alpha=refinement.LEVEL)["graph"])
    expected = np.argwhere(np.isin(marks, ("-->", "o->"))).tolist()
    assert sorted(found) == sorted(edge for edge in expected if edge[2])
    assert 0 < len(found) < mask.sum(), "some go, some stay"


def test_a_table_says_what_is_missing(tmp_path):
    text = to_markdown(page.tables_page(Study(tmp_path)))
    assert "Not fitted yet: linear, monotonic" in text


def test_the_page_of_experiments_counts_seeds(tiny, tmp_path, monkeypatch):
    section = Section("Tiny systems", (Column("a", Kind("tiny", 300)), Column("b", Kind("none"))))
    monkeypatch.setattr(experiments, "SECTIONS", (section,))
    write(tmp_path / "tiny_0k_seed0.json", run_fit(Fit("tiny", rows=300)))
    text = to_markdown(experiments.experiments_page(Study(tmp_path)))
    where = "[tables](table.md#tiny-systems)"
    state = "0 of 2 columns complete. fewer seeds: a (1). not fitted: b"
    assert f"| Tiny systems | {where} | {state} |" in text
    assert "read from every fit of the transformer: 1" in text


def test_a_rival_that_takes_too_long_is_stopped_and_named(tiny, tmp_path, monkeypatch):
    def endless(panel, max_lag, seed, truth):
        while True:
            sum(range(1000))

    slow = SimpleNamespace(answers=endless)
    quick = rivals.find_method("var-fdr")
    monkeypatch.setattr(rivals, "find_method", {"tcdf": slow, "var-fdr": quick}.__getitem__)
    path = tmp_path / "rivals" / "tiny.json"
    add_rivals(path, Fit("tiny", rows=300), ["tcdf", "var-fdr"], limit=0.3)
    kept = json.loads(path.read_text(encoding="utf-8"))["methods"]
    assert kept["tcdf"]["stopped_after"] == 0.3
    assert "edges" in kept["var-fdr"], "the next one has its own time"
    study, kind = Study(tmp_path), Kind("tiny", 300)
    assert study.rival(kind, "tcdf") is None
    assert Row("TCDF", rival="tcdf").absent(study, kind).startswith("over")
    assert Row("PCMCI", rival="pcmci").absent(study, kind) == "not run"


def test_a_rival_that_was_not_run_on_every_seed_says_on_how_many(tiny, tmp_path):
    for seed in range(2):
        asked = Fit("tiny", seed, rows=300)
        write(tmp_path / f"{asked.name}.json", run_fit(asked))
    add_rivals(tmp_path / "rivals" / "tiny.json", Fit("tiny", rows=300), ["var-fdr"])
    table = f1_table([Column("tiny", Kind("tiny", 300))], Study(tmp_path)).body
    told = {row[0].text: row[1].text for row in table}
    assert told["VAR, tests with FDR"].endswith("(1)")
    assert "(" not in told["DOT, gradient energy"]


def test_rules_are_isolated_where_weights_were_kept(tiny, tmp_path, monkeypatch):
    fits = [Fit("tiny", rows=300), Fit("tiny", rows=300, layers=1), Fit("tiny", 1, rows=300)]
    monkeypatch.setattr(isolate, "in_order", lambda: fits)
    monkeypatch.setattr(isolate, "READ", 30)
    for asked in fits:
        kept = tmp_path / f"{asked.name}.safetensors" if asked.seed == 0 else None
        write(tmp_path / f"{asked.name}.json", run_fit(asked, kept))
    folders = ["--store", str(tmp_path), "--weights", str(tmp_path), "--out", str(tmp_path)]
    monkeypatch.setattr("sys.argv", ["isolate", *folders])
    isolate.main()
    text = (tmp_path / "table.md").read_text(encoding="utf-8")
    assert "## 4 layers, 1 fit\n" in text
    assert "## 1 layer, 1 fit\n" in text
    assert "seed1" not in text, "its weights were not kept"


def test_the_shape_of_the_noise_leaves_mean_and_variance_alone():
    values, parents = theorem.draw(("shape",), seed=0, rows=20_000)
    source, lag = parents["shape"][0]
    cause, effect = np.roll(values[:, source], lag)[5:], values[5:, 0]
    low, high = effect[cause < -1], effect[cause > 1]
    assert abs(low.mean()) < 0.1
    assert abs(high.mean()) < 0.1
    assert low.var() == pytest.approx(high.var(), rel=0.15)
    assert (low**3).mean() < -1 < 1 < (high**3).mean()


def test_direction_is_asked_of_one_way_pairs_alone():
    true = np.array([[False, True, True], [False, False, True], [True, False, False]])
    scores = np.array([[0, 2.0, 0], [1, 0, 3], [5, 1, 0]])
    assert causaltime.direction(scores, true) == 1.0
    assert np.isnan(causaltime.direction(scores, true & true.T))


def test_every_fit_of_the_committed_store_can_be_read():
    for path in STORE.glob("*_seed*.json"):
        stored = StoredFit.read(path)
        assert stored.content["name"] == path.stem
        assert stored.content["commit"]
        assert 0 <= fit_metrics(stored, "lrp")["f1"] <= 1
    for path in (STORE / "rivals").glob("*.json"):
        assert json.loads(path.read_text(encoding="utf-8"))["methods"]


def test_the_convolutional_network_is_fitted_and_read_like_the_transformer(tiny, tmp_path):
    asked = Fit("tiny", rows=300, network=queue.CNN)
    assert asked.name == "tiny_0k_cnn_seed0"
    write(tmp_path / f"{asked.name}.json", run_fit(asked))
    write(tmp_path / "tiny_0k_seed0.json", run_fit(Fit("tiny", rows=300)))
    study = Study(tmp_path)
    convolutional = Kind("tiny", 300, network=queue.CNN)
    assert {len(study.seeds(kind)) for kind in (convolutional, Kind("tiny", 300))} == {1}
    (fit,) = study.fits[convolutional].values()
    assert not fit.has("attention")
    (transformer,) = study.fits[Kind("tiny", 300)].values()
    assert not np.allclose(fit.relevance("lrp"), transformer.relevance("lrp"))
    assert (fit.relevance("var") == transformer.relevance("var")).all(), "the same system"


def test_refined_graphs_are_scored_beside_the_predicted_one(tiny, tmp_path, monkeypatch):
    monkeypatch.setitem(queue.SYSTEMS, "hidden-3", {**TINY, "hidden": 1})
    asked = Fit("hidden-3", rows=300)
    write(tmp_path / f"{asked.name}.json", run_fit(asked))
    monkeypatch.setattr(refinement, "in_order", lambda: [asked])

    def endless(panel, graph):
        while True:
            sum(range(1000))

    nothing = refinement.REFINED["hidden"]["LPCMCI, as in the paper"]
    monkeypatch.setitem(refinement.REFINED, "hidden", {"quick": nothing, "slow": endless})
    folders = ["--store", str(tmp_path), "--out", str(tmp_path), "--limit", "0.5"]
    monkeypatch.setattr("sys.argv", ["refinement", *folders])
    refinement.main()
    (stored,) = stored_fits(tmp_path)
    f1 = metrics(top_k(stored.relevance("lrp")), stored.truths[WHOLE])["f1"]
    text = (tmp_path / "table.md").read_text(encoding="utf-8")
    (predicted,) = [line for line in text.splitlines() if line.startswith("| as predicted")]
    assert f"/ {f1:.2f} (1)" in predicted
    assert "| slow | 1 stopped at the limit |" in text
    assert "| quick | " in text
