"""What drives somebody else's forecaster: tested inputs beside the model's own importances."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from forecause.config import Config, TopK
from forecause.discovery import Discovery
from forecause.errors import InputError
from forecause.forecast.foreign import Foreign, ForeignModel
from forecause.graph.edge_table import edge_keys
from forecause.method import discover

# Looks:
LEANS = 2.0  # times an equal share of the importance: the model leans on such an input
UNTESTED = (
    "{name} cannot be fitted again, so its inputs are ranked by relevance alone: no error rate is "
    "promised."
)


@dataclass(frozen=True, eq=False)
class Drivers:
    """For every target the inputs of a model, those that passed its tests first.

    `table` has target, source, lag, is_driver, q_value, relevance (share of the target's), and
    importance (the model's own share) where the model has one. `run` is the whole discovery.
    """

    table: pd.DataFrame
    run: Discovery
    name: str
    is_tested: bool

    @property
    def drivers(self) -> pd.DataFrame:
        """The rows of `table` that passed the tests."""
        return self.table[self.table["is_driver"]].reset_index(drop=True)

    @property
    def sentences(self) -> tuple[str, ...]:
        """In words: what drives each target, and what the model leans on without a test's leave."""
        if not self.is_tested:
            return (UNTESTED.format(name=self.name),)
        return tuple(line for _, own in self.table.groupby("target") for line in _words(own))

    def __repr__(self) -> str:
        return "\n".join([f"Drivers of {self.name}", *self.sentences])


def drivers(
    model: Any = None,
    data: Any = None,
    max_lag: int = 5,
    *,
    fit: Any = None,
    predict: Any = None,
    **options: Any,
) -> Drivers:
    """The tested drivers of somebody else's forecaster.

    Parameters
    ----------
    model
        A regressor or pipeline with scikit-learn's `fit` and `predict` (LightGBM and XGBoost have
        such classes), a torch module that maps (window, lag, variable) to (window, variable), a
        global model of darts, a model of neuralforecast with `hist_exog_list`, or a
        `make_reduction` of sktime. It is fitted anew on parts of time, by its own `fit`.
    data
        A table, as `discover` takes it.
    max_lag
        How many rows back the model looks.
    fit, predict
        Functions in place of a model: `fit(past, target)` gives anything, `predict` of that and a
        past gives forecasts. `predict(past)` alone, in the data's units, is a model that cannot be
        fitted again: its inputs get a relevance and no error rate.
    options
        Other options of `discover`.

    Examples
    --------
    >>> import forecause as fc
    >>> from sklearn.linear_model import Ridge
    >>> system = fc.simulate(nodes=4, max_lag=2, rows=400, seed=1)
    >>> found = fc.drivers(Ridge(), system.frame(), max_lag=2)
    >>> list(found.table.columns)
    ['target', 'source', 'lag', 'is_driver', 'q_value', 'relevance', 'importance']
    """
    if data is None:
        raise InputError("drivers needs the model and the data: fc.drivers(model, table).")
    if (model is None) == (predict is None) or (model is not None and fit is not None):
        raise InputError(
            "Give a model, or functions in its place: fc.drivers(None, table, fit=fit, "
            "predict=predict), or predict= alone."
        )
    foreign = Foreign(model, fit=fit, predict=predict)
    is_tested = foreign.adapter().can_be_refitted
    if not is_tested:  # as it was fitted: in the data's units, with seasons and trends in them
        options = {"select": TopK(1), "season": "none", "trend": "none"} | options
        if not isinstance(options["select"], TopK):
            raise InputError(UNTESTED.format(name=foreign.name) + " Leave select out.")
    options, settings = _split(options)
    run = discover(data, max_lag, forecaster=foreign, config=settings, **options)
    return Drivers(_table(run, is_tested), run, foreign.name, is_tested)


def _split(options: dict[str, Any]) -> tuple[dict[str, Any], Config | None]:
    """Options of discover, and a configuration for those that it has no name for."""
    trend = options.pop("trend", None)
    config = options.pop("config", None)
    if trend is not None:
        config = (config or Config()).with_options(trend=trend)
    return options, config


def _table(run: Discovery, is_tested: bool) -> pd.DataFrame:
    """Every candidate, the tested ones of each target first."""
    statistics = run.relevance
    relevance = statistics["relevance"]
    own = importances_of(run)
    frame = relevance.to_series().rename("relevance").reset_index()
    share = frame.groupby("target")["relevance"].transform("sum")
    frame["relevance"] /= share.where(share > 0, 1.0)
    frame["q_value"] = np.nan
    frame["is_driver"] = False
    if is_tested:
        frame["q_value"] = statistics["q_value"].to_series().to_numpy()
        chosen = set(edge_keys(run.graph.edges))
        frame["is_driver"] = [key in chosen for key in edge_keys(frame)]
    frame["importance"] = np.nan if own is None else own.ravel()
    columns = ["target", "source", "lag", "is_driver", "q_value", "relevance", "importance"]
    order = {name: place for place, name in enumerate(run.data.variables)}
    return (
        frame[columns]
        .assign(place=frame["target"].map(order))
        .sort_values(["place", "is_driver", "relevance"], ascending=[True, False, False])
        .drop(columns="place")
        .reset_index(drop=True)
    )


def importances_of(run: Discovery) -> Any:
    """The model's own (target, source, lag); None where it has none or a variable holds labels."""
    model = run.forecaster.member_of(0)
    if run.data.labels or not isinstance(model, ForeignModel):
        return None
    return model.importances


def _words(own: pd.DataFrame) -> list[str]:
    target = own["target"].iloc[0]
    found = own[own["is_driver"]]
    named = [f"{r.source} (lag {r.lag}, q = {r.q_value:.2g})" for r in found.itertuples()]
    lines = [f"{target}: driven by {', '.join(named)}." if named else f"{target}: no driver found."]
    for row in own[~own["is_driver"] & (own["importance"] * len(own) >= LEANS)].itertuples():
        lines.append(
            f"{target}: the model leans on {row.source} (lag {row.lag}, {row.importance:.0%} of "
            f"its importance); the test says q = {row.q_value:.2g}."
        )
    return lines
