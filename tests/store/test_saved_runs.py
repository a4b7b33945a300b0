"""Runs that versions 0.1 and 0.2 saved still load, and answer as they did."""

from pathlib import Path

import numpy as np
import pytest

import forecause as fc
from forecause.forecast.forecaster import roll

RUNS = Path(__file__).parent / "saved_runs"


def test_a_run_whose_forecaster_has_a_member_for_each_domain():
    """Version 0.1 could not load its own: it took `linear-by-domain` apart and found no kind."""
    run = fc.load(RUNS / "0.1-domains")
    assert run.losses["chosen"].tolist() == ["linear", "linear-by-domain"]
    assert [run.forecaster.member_of(i).kind for i in (0, 1)] == ["linear", "linear"]
    assert run.config.max_lag == 1
    assert set(run.graph.domains) == {"north", "south"}
    forecast = run.forecast(2).to_numpy()
    np.testing.assert_allclose(forecast[0], [-0.878078, 1.316631], rtol=1e-4)


def test_a_run_with_labels_and_a_learned_variance():
    run = fc.load(RUNS / "0.1-labels")
    assert run.forecaster.kind == "mlp"
    assert run.config.edges.k == 1
    assert run.config.edges.fdr is None
    assert run.nll is not None
    assert run.nll.loc["number", "mlp-gaussian"] == pytest.approx(1.188563, rel=1e-4)
    assert run.forecast(1)["number"].item() == pytest.approx(0.298484, rel=1e-4)


def test_a_run_of_version_0_2_with_a_forecaster_for_each_target_and_domain():
    run = fc.load(RUNS / "0.2-domains")
    chosen = ["linear", "linear-by-domain", "dictionary-by-domain"]
    assert run.losses["chosen"].tolist() == chosen
    assert [run.forecaster.member_of(i).label for i in range(3)] == chosen
    data = run.data
    past = ((data.latest - data.mean) / data.sd).astype(np.float32)
    rolled = roll(run.forecaster, past, 2, domain=np.array(data.latest_domain))[0]
    expected = [[-0.013829, -0.390524, 0.259217], [-0.028770, -0.025372, 0.057190]]
    np.testing.assert_allclose(rolled * data.sd + data.mean, expected, atol=1e-5)
    np.testing.assert_allclose(run.forecast(1).to_numpy(), expected[:1], atol=1e-5)


@pytest.mark.parametrize("name", ["0.1-domains", "0.1-labels", "0.2-domains"])
def test_it_is_saved_again_in_the_present_layout(name, tmp_path):
    run = fc.load(RUNS / name)
    again = fc.load(run.save(tmp_path / "run"))
    assert again.graph == run.graph
    assert again.config == run.config
    assert (tmp_path / "run" / "report.html").exists()
