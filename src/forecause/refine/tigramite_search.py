"""PCMCI+ and LPCMCI by the package tigramite: data in its form, results in ours.

Tests are partial correlations and scores their absolute values. tigramite is loaded when it is
used, and kept quiet.
"""

from __future__ import annotations

import importlib
import io
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from typing import Any

import numpy as np

from forecause.common.arrays import Floats
from forecause.config.thresholds import thresholds
from forecause.data import Panel
from forecause.errors import InputError, MissingExtra
from forecause.graph import LaggedGraph
from forecause.graph.edge_table import CAUSE, WITHOUT_DIRECTION
from forecause.refine.candidates import counted_columns
from forecause.refine.links import Assumptions, Links, graph_of

# Formats:
MISSING = -1e300  # what tigramite is told to read as a missing value; it refuses NaN


def search_plus(panel: Panel, max_lag: int, links: Links) -> Any:
    """What PCMCI+ finds among these links, as tigramite gives it."""
    with quiet():
        return pcmci_searcher(panel, max_lag).run_pcmciplus(
            tau_max=max_lag,
            pc_alpha=thresholds().hidden.pcmci_plus_level,
            link_assumptions=links.for_pcmci(),
        )


def graph_plus(panel: Panel, results: Any, links: Links) -> LaggedGraph:
    """The results of `search_plus` as a graph with lag 0, one edge per pair there."""
    marks = links.directed(by_target(results["graph"]))
    is_edge = marks == CAUSE
    is_edge[:, :, 0] |= np.isin(marks[:, :, 0], WITHOUT_DIRECTION) & np.tri(
        len(marks), k=-1, dtype=bool
    )
    scores = np.abs(by_target(results["val_matrix"]))
    chosen = links.completed(scores, is_edge)
    marks = np.where(is_edge & ~links.fixed, marks, CAUSE)
    p = by_target(results["p_matrix"])
    sign = np.sign(by_target(results["val_matrix"])).astype(int)
    return graph_of(panel, scores, chosen, first_lag=0, mark=marks, sign=sign, p_value=p)


def search_latent(panel: Panel, max_lag: int, links: Assumptions, **bounds: Any) -> Any:
    """What LPCMCI finds among these links, as tigramite gives it; `bounds` are its settings."""
    frame, test = frame_of(panel, max_lag), partial_correlation(panel)
    searcher = load("tigramite.lpcmci").LPCMCI(frame, test)
    with quiet():
        return searcher.run_lpcmci(link_assumptions=links, tau_max=max_lag, **bounds)


def pcmci_searcher(panel: Panel, max_lag: int) -> Any:
    """tigramite's PCMCI object, which also runs PCMCI+."""
    return load("tigramite.pcmci").PCMCI(frame_of(panel, max_lag), partial_correlation(panel), 0)


def frame_of(panel: Panel, max_lag: int) -> Any:
    """A tigramite DataFrame; each unbroken stretch of the panel is a dataset of its own.

    tigramite leaves out the samples of a test that touch a missing value. A label is a variable of
    several columns: its levels without the most common one.
    """
    if max_lag < 1:
        raise InputError(f"The largest lag must be at least 1, found {max_lag}.")
    # Tests condition on the parents of a lagged variable, so they reach back 2 * max_lag.
    stretches = [
        np.nan_to_num(values.astype(np.float64), nan=MISSING)
        for values in np.split(panel.values, panel.starts[1:])
        if len(values) > 2 * max_lag
    ]
    if not stretches:
        raise InputError(
            f"tigramite needs an unbroken stretch of more than {2 * max_lag} rows for a largest "
            f"lag of {max_lag}, found none; use a smaller lag or more rows."
        )
    frames = load("tigramite.data_processing")
    several = len(stretches) > 1
    return frames.DataFrame(
        dict(enumerate(stretches)) if several else stretches[0],
        analysis_mode="multiple" if several else "single",
        missing_flag=MISSING,
        vector_vars=_vectors(panel),
    )


def _vectors(panel: Panel) -> dict[int, list[tuple[int, int]]] | None:
    """The columns (column, lag 0) of every variable, where some have several."""
    if not panel.labels:
        return None
    members = counted_columns(panel)
    return {variable: [(int(c), 0) for c in own] for variable, own in enumerate(members)}


def partial_correlation(panel: Panel) -> Any:
    """tigramite's linear conditional independence test with analytic p-values."""
    if panel.labels:
        return load("tigramite.independence_tests.parcorr_mult").ParCorrMult(verbosity=0)
    return load("tigramite.independence_tests.parcorr").ParCorr(verbosity=0)


def by_target(matrix: Floats) -> Floats:
    """tigramite's (source, target, lag 0 ..) as (target, source, lag 0 ..)."""
    return matrix.transpose(1, 0, 2)


def lagged(matrix: Floats) -> Floats:
    """tigramite's (source, target, lag 0 ..) as (target, source, lag 1 ..)."""
    return by_target(matrix)[:, :, 1:]


def load(module: str) -> Any:
    """Import a module of the `refine` extra, or say how to install it."""
    package = module.partition(".")[0]
    with quiet():
        try:
            return importlib.import_module(module)
        except ModuleNotFoundError as error:
            raise MissingExtra((error.name or package).partition(".")[0], "refine") from error


@contextmanager
def quiet() -> Iterator[None]:
    """Silence the warnings and the printing of foreign code."""
    with warnings.catch_warnings(), redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        yield
