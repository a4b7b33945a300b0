"""Every baseline is found by name, answers in one form and recovers an easy system."""

import subprocess
import sys
import warnings

import numpy as np
import pytest

from forecause.data import Panel
from forecause.errors import InputError, MissingExtra
from forecause.refine.tigramite_search import quiet
from forecause_bench.rivals import BASELINES, run_baseline

NAMES = [
    "pcmci",
    "pcmci-fdr",
    "pcmci+",
    "pcmci+-now",
    "lpcmci",
    "var-lingam",
    "dynotears",
    "nts-notears",
    "tcdf",
    "granger-pairwise",
    "granger",
    "var-fdr",
    "ols-all",
    "cmlp",
    "random",
]
LEARNERS = [name for name in NAMES if name != "random"]
# Tests at 5 % without correction report false edges, pairwise ones indirect effects as well.
LOWEST_F1 = {"pcmci": 0.8, "granger": 0.8, "granger-pairwise": 0.55, "lpcmci": 0.8, "tcdf": 0.8}


@pytest.fixture(scope="module")
def answers(easy_panel):
    return {name: run_baseline(name, easy_panel, 2, seed=0) for name in NAMES}


def test_the_registry_holds_the_names_users_type():
    assert list(BASELINES) == NAMES


@pytest.mark.parametrize("name", LEARNERS)
def test_each_baseline_recovers_an_easy_system(name, answers, easy_truth, f1_of):
    assert f1_of(answers[name], easy_truth) >= LOWEST_F1.get(name, 0.9)


@pytest.mark.parametrize("name", LEARNERS)
def test_scores_rank_the_true_edges_above_the_rest(name, answers, easy_truth):
    scores, true = answers[name].scores.sel(lag=slice(1, None)), easy_truth.adjacency.values
    assert scores.dims == ("target", "source", "lag")
    assert scores.values[true].min() > np.quantile(scores.values[~true], 0.95)


@pytest.mark.parametrize("name", ["nts-notears", "tcdf", "cmlp", "random"])
@pytest.mark.usefixtures("quick")
def test_the_same_seed_gives_the_same_graph(name, easy_panel):
    first, second = (run_baseline(name, easy_panel, 2, seed=3) for _ in range(2))
    assert first == second


@pytest.fixture(scope="module")
def relay_series():
    """Short series of noise in which b starts where a ended in the series before."""
    rng = np.random.default_rng(0)
    series = rng.normal(size=(100, 12, 2))
    series[1:, 0, 1] = 3 * series[:-1, -1, 0]
    return series


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("name", LEARNERS)
def test_no_edge_is_drawn_from_one_series_to_the_next(name, relay_series, edges_of):
    apart = Panel.from_arrays(list(relay_series), ["a", "b"])
    assert ("a", "b", 1) not in edges_of(run_baseline(name, apart, 2))


def test_the_edge_between_series_would_be_found_if_they_were_joined(relay_series, edges_of):
    joined = Panel.from_arrays([relay_series.reshape(-1, 2)], ["a", "b"])
    assert ("a", "b", 1) in edges_of(run_baseline("var-fdr", joined, 2))


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("name", LEARNERS)
def test_missing_values_are_left_out(name, easy_panel, easy_truth, f1_of):
    values = easy_panel.values.copy()
    holes = np.random.default_rng(1).uniform(size=values.shape) < 0.01
    values[holes] = np.nan
    holed = Panel.from_arrays([values], easy_panel.variables)
    assert f1_of(run_baseline(name, holed, 2), easy_truth) >= LOWEST_F1.get(name, 0.9)


def test_an_unknown_name_is_answered_with_the_known_ones(easy_panel):
    with pytest.raises(InputError, match=r"'pcmc'; choose one of pcmci, pcmci-fdr.*random"):
        run_baseline("pcmc", easy_panel, 2)


def test_without_tigramite_its_extra_is_named(easy_panel, monkeypatch):
    for module in [m for m in sys.modules if m.startswith("tigramite.")]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, "tigramite", None)
    with pytest.raises(MissingExtra, match=r"tigramite.*\.\[refine\]"):
        run_baseline("pcmci", easy_panel, 2)


def test_listing_the_baselines_loads_none_of_their_packages():
    code = (
        "import sys, forecause_bench.rivals as b; assert b.BASELINES;"
        "print([m for m in ('tigramite', 'lingam', 'statsmodels') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_warnings_and_printing_of_foreign_code_are_silenced(capfd):
    with quiet():
        warnings.warn("this would fail the test", UserWarning, stacklevel=1)
        sys.stdout.write("this too")
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("name", ["pcmci+", "lpcmci", "var-lingam", "var-fdr"])
def test_foreign_code_prints_nothing(name, easy_panel, capfd):
    run_baseline(name, easy_panel, 1)
    assert capfd.readouterr() == ("", "")
