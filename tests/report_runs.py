"""Runs that the tests of the report look at."""

from dataclasses import replace

import numpy as np
import pandas as pd
import xarray as xr

from fitted import build
from forecause.config import Config
from forecause.data import Panel, Windows
from forecause.data.summary import DataSummary
from forecause.discovery import Discovery
from forecause.graph.lagged import LaggedGraph
from forecause.report.evidence import collect

NASTY = ('</script><script>alert("x")</script>', "a \"quote\" & 'more'", "שלום עולם")


def linear_run(weight, values, names, chosen=None, time=None) -> Discovery:
    """A discovery from given coefficients (target, source, lag) instead of fitted ones."""
    weight = np.asarray(weight, dtype=float)
    panel = Panel.from_arrays([np.asarray(values)], names)
    if time is not None:
        panel = replace(panel, time=time)
    windows = Windows.of(panel, weight.shape[2])
    forecaster = build("linear", windows.shape, {})
    oldest_first = weight[:, :, ::-1].transpose(0, 2, 1).copy()
    forecaster.load_state(forecaster.state() | {"weight": oldest_first})
    axes = ("target", "source", "lag")
    rng = np.random.default_rng(0)
    coords = {"target": list(names), "source": list(names), "lag": range(1, weight.shape[2] + 1)}
    statistics = xr.Dataset(
        {
            "relevance": (axes, weight**2),
            "effect": (axes, weight),
            "mean_rank": (axes, rng.uniform(1, 9, weight.shape)),
            "sd_rank": (axes, rng.uniform(0, 2, weight.shape)),
        },
        coords=coords,
    )
    mask = weight != 0 if chosen is None else chosen
    sign = statistics["effect"].copy(data=np.sign(weight).astype(int))
    confidence = statistics["effect"].copy(data=rng.uniform(0.5, 1, weight.shape))
    details = {"effect": statistics["effect"], "sign": sign, "confidence": confidence}
    for name in ("mean_rank", "sd_rank"):
        details[name] = statistics[name]
    index = pd.Index(list(names), name="variable")
    losses = pd.DataFrame({"naive": 2.0, "linear": 0.5, "chosen": "linear"}, index=index)
    found = Discovery(
        graph=LaggedGraph.from_scores(statistics["relevance"], mask, details),
        relevance=statistics,
        forecaster=forecaster,
        losses=losses,
        config=Config.of(max_lag=weight.shape[2], forecaster="linear"),
        data=DataSummary.of(windows),
    )
    return replace(found, evidence=collect(found, windows))


def three_variables(names=("a", "b", "c"), rows=1000, seed=0) -> Discovery:
    """a raises b after 1 row, b lowers c after 2, c remembers itself; all of known size."""
    weight = np.zeros((3, 3, 2))
    weight[1, 0, 0], weight[2, 1, 1], weight[2, 2, 0], weight[1, 0, 1] = 0.8, -0.5, 0.3, 0.2
    values = np.random.default_rng(seed).normal(size=(rows, 3)) * [1.0, 2.0, 5.0] + [0, 10, -3]
    return linear_run(weight, values, names)


def many_variables(count=100, max_lag=5, edges=300) -> Discovery:
    """A large run whose scores are drawn at random."""
    rng = np.random.default_rng(0)
    weight = rng.normal(size=(count, count, max_lag)) * 0.02
    strongest = np.argsort(np.abs(weight).ravel())[-edges:]
    chosen = np.zeros(weight.size, dtype=bool)
    chosen[strongest] = True
    names = [f"sensor {i}" for i in range(count)]
    return linear_run(
        weight, rng.normal(size=(700, count)), names, chosen=chosen.reshape(weight.shape)
    )


def with_domains(found: Discovery) -> Discovery:
    """Summer lacks the strongest edge, winter has it with the other sign."""
    graph = found.graph
    turned = graph.edges.copy()
    turned.loc[0, ["effect", "sign"]] = [-0.8, -1]
    summer = LaggedGraph(graph.variables, graph.max_lag, graph.edges.drop(0), graph.scores)
    winter = LaggedGraph(graph.variables, graph.max_lag, turned, graph.scores)
    return replace(found, graph=replace(graph, domains={"summer": summer, "winter": winter}))
