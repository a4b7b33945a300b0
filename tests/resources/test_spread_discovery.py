"""A discovery whose stages are spread over Ray: the same to the last bit, whoever dies."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import errands
import forecause as fc
from forecause.common.work_sharing import helped_by, parallel_map
from forecause.config import Config
from forecause.data import scratch
from forecause.errors import InputError
from forecause.method import Run, run_method
from forecause.networks import several_trainings
from forecause.regression import screen
from forecause.resources import fitting
from forecause.resources.over_ray import RayHelpers
from forecause.resources.workers import WorkerDied


@dataclass
class Noted:
    """Helpers that remember what they were asked for; their first worker dies, if asked so, or the
    first at a certain function."""

    helpers: RayHelpers
    dead: Path | None = None
    asked: set[str] = None
    at: str | None = None

    def each(self, function, common, items):
        self.asked = (self.asked or set()) | {function.__name__}
        dies = self.dead and self.at in (None, function.__name__)
        doing = errands.DieFirst(function, self.dead) if dies else function
        return self.helpers.each(doing, common, items)


def assert_same(run, other):
    xr.testing.assert_identical(run.relevance, other.relevance)
    pd.testing.assert_frame_equal(run.graph.edges, other.graph.edges, check_exact=True)
    pd.testing.assert_frame_equal(run.losses, other.losses, check_exact=True)


def test_pieces_come_in_order_and_an_error_is_that_of_its_piece(ray):
    with helped_by(RayHelpers(ray)):
        assert list(parallel_map(errands.plus, 10, [2, 1, 0])) == [12, 11, 10]
        with pytest.raises(InputError, match=r"^three$"):
            list(parallel_map(errands.plus, 10, [1, 3, 2]))
    assert list(parallel_map(errands.plus, 10, [2, 1, 0])) == [12, 11, 10]


def test_a_piece_that_always_kills_its_worker_ends_the_run_with_a_sentence(ray):
    with helped_by(RayHelpers(ray)), pytest.raises(WorkerDied, match="piece 1 died 3 times"):
        list(parallel_map(errands.kill, None, [0, 1]))


def test_a_system_for_learners_is_the_same_whoever_dies_on_the_way(ray, tmp_path):
    system = fc.simulate(nodes=4, max_lag=2, rows=600, mechanism="mlp-add", seed=3)
    config = Config.of(max_lag=2)
    helpers = Noted(RayHelpers(ray), tmp_path / "dead")
    with helped_by(helpers):
        spread_out = run_method(system.panel, config, Run())
    assert (tmp_path / "dead").exists()
    stages = {"_moments_of_rows", "_tried_plausible", "_fit_to", "_of_target", "_of_targets"}
    assert stages <= helpers.asked
    assert_same(spread_out, run_method(system.panel, config, Run()))


def test_a_wide_table_is_the_same(ray, monkeypatch):
    monkeypatch.setattr(screen, "WIDE", 50)
    system = fc.simulate(nodes=26, max_lag=2, rows=500, seed=4)
    workers = fc.discover(system.panel, max_lag=2, workers=ray)
    assert_same(workers, fc.discover(system.panel, max_lag=2))


def test_large_parquet_files_are_read_by_the_workers(ray, tmp_path, monkeypatch):
    monkeypatch.setattr(scratch, "LARGE", 1000)
    frame = fc.simulate(nodes=4, max_lag=2, rows=1500, seed=5).frame()
    for number, part in enumerate(np.array_split(np.arange(len(frame)), 3)):
        frame.iloc[part].to_parquet(tmp_path / f"{number}.parquet", row_group_size=150, index=False)
    asked = {"max_lag": 2, "forecaster": "linear"}
    assert_same(fc.discover(tmp_path, **asked, workers=ray), fc.discover(tmp_path, **asked))


class TestNetworks:
    """Whole networks are pieces, and of one with a network per target blocks of targets."""

    MLP = fc.forecasters.MLP(hidden=8).trained_with(max_steps=60, look_every=30)

    def assert_spread(self, ray, asked, stage, dead=None):
        system = fc.simulate(nodes=3, max_lag=2, rows=300, mechanism="mlp-add", seed=6)
        config = Config.of(max_lag=2, **asked)
        helpers = Noted(RayHelpers(ray), dead, at=stage)
        with helped_by(helpers):
            spread_out = run_method(system.panel, config, Run())
        assert stage in helpers.asked
        assert dead is None or dead.exists()
        here = run_method(system.panel, config, Run())
        assert_same(spread_out, here)
        for name, weight in here.forecaster.state().items():
            np.testing.assert_array_equal(weight, spread_out.forecaster.state()[name])

    def test_the_fits_of_own_tests_and_of_a_cross_fit(self, ray, tmp_path):
        asked = {"forecaster": self.MLP, "select": "fdr", "cross_fit": 2}
        self.assert_spread(ray, asked, "_remote_fit", tmp_path / "dead")

    def test_blocks_of_targets(self, ray, tmp_path, monkeypatch):
        monkeypatch.setattr(several_trainings, "TARGETS_TOGETHER", 2)
        monkeypatch.setattr(fitting, "TARGETS_TOGETHER", 2)
        self.assert_spread(ray, {"forecaster": self.MLP}, "_of_block", tmp_path / "dead")

    def test_weights_of_the_penalty(self, ray):
        sparse = self.MLP.model_copy(update={"sparsity": (0.0, 0.1)})
        asked = {"forecaster": sparse, "select": "top-k", "k": 1}  # one network, no own tests
        self.assert_spread(ray, asked, "_learned")
