"""The recipe of docs/guides/prior-knowledge.md for deploys, holidays and other known events."""

import numpy as np
import pandas as pd

import forecause as fc


def metrics(rows=1500, seed=0):
    """A deploy moves a at once, b a row later and c two rows later; a drives b."""
    rng = np.random.default_rng(seed)
    deploy = (rng.uniform(size=rows) < 0.03).astype(float)
    noise, values = rng.normal(size=(rows, 3)), np.zeros((rows, 3))
    for row in range(2, rows):
        moved = 4 * deploy[[row, row - 1, row - 2]]
        values[row] = 0.5 * values[row - 1] + noise[row] + moved
        values[row, 1] += 0.3 * values[row - 1, 0]
    return pd.DataFrame(values, columns=["a", "b", "c"]).assign(deploy=deploy)


def links(run):
    edges = run.graph.edges
    between = edges[edges["source"] != edges["target"]]
    return set(zip(between["source"], between["target"], between["lag"], strict=True))


def test_known_events_take_the_links_away_that_they_make():
    table = metrics()
    without = links(fc.discover(table[["a", "b", "c"]], max_lag=3, forecaster="linear"))
    assert without > {("a", "b", 1)}
    table["deploy"] = table["deploy"].shift(-1, fill_value=0)
    run = fc.discover(table, max_lag=4, forecaster="linear", forbid=["deploy <- *"])
    events = {("deploy", "a", 1), ("deploy", "b", 2), ("deploy", "c", 3)}
    assert links(run) == {("a", "b", 1)} | events
