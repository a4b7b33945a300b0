"""`max_lag="auto"`: as far back as anything is remembered, and hardly further."""

import pandas as pd
import pytest

import forecause as fc
from forecause.diagnostics.lag_window import propose_max_lag
from forecause.simulation import simulate
from systems import CHAIN_EDGES, chain, edge_set


@pytest.mark.parametrize("lag", [2, 3, 8, 20])
def test_the_true_reach_of_a_linear_system_is_proposed(lag):
    system = simulate(nodes=4, max_lag=lag, rows=4000, in_degree=4, seed=lag)
    reach = int(system.graph.edges["lag"].max())
    proposal, reason = propose_max_lag(system.panel)
    assert reach <= proposal <= reach + 5
    assert f"Lag window {proposal}" in reason.sentence
    assert reason.gravity == "note"


def test_few_rows_allow_short_windows_only():
    panel = fc.Panel.of(pd.DataFrame(chain(120), columns=list("abc")))
    assert propose_max_lag(panel)[0] <= 6


def test_discover_uses_the_proposal_and_says_why():
    found = fc.discover(
        pd.DataFrame(chain(), columns=list("abc")), max_lag="auto", forecaster="linear"
    )
    assert found.config.max_lag == found.graph.max_lag == 2
    assert edge_set(found.graph) == CHAIN_EDGES
    assert any(note.startswith("Lag window 2") for note in found.data.notes)
