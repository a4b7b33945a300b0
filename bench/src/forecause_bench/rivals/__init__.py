"""The methods people use instead, behind one signature: `(panel, max_lag, seed) -> LaggedGraph`.

Those that can respect prior knowledge take it as a fourth argument, `knowledge`.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass

from forecause.data.panel import Panel
from forecause.edges.knowledge import Knowledge
from forecause.errors import InputError
from forecause.graph.lagged import LaggedGraph

Method = Callable[..., LaggedGraph]
"""(panel, max_lag, seed), and `knowledge` where the baseline respects it."""

NOTHING = Knowledge()

__all__ = ["BASELINES", "Baseline", "Method", "run_baseline"]


@dataclass(frozen=True)
class Baseline:
    """One method: how tables call it, where its code is, and what it needs."""

    label: str
    module: str  # in this folder
    function: str
    nonlinear: bool = False
    respects_knowledge: bool = False  # forbidden and required edges

    def load(self) -> Method:
        """The function itself; its packages are imported only now."""
        method: Method = getattr(
            importlib.import_module(f"{__name__}.{self.module}"), self.function
        )
        return method


BASELINES: dict[str, Baseline] = {
    "pcmci": Baseline("PCMCI", "pcmci", "pcmci", respects_knowledge=True),
    "pcmci-fdr": Baseline("PCMCI (FDR)", "pcmci", "pcmci_fdr", respects_knowledge=True),
    "pcmci+": Baseline("PCMCI+", "pcmci", "pcmci_plus", respects_knowledge=True),
    "pcmci+-now": Baseline("PCMCI+ with lag 0", "pcmci", "pcmci_plus_now", respects_knowledge=True),
    "lpcmci": Baseline("LPCMCI", "pcmci", "lpcmci", respects_knowledge=True),
    "var-lingam": Baseline("VAR-LiNGAM", "var_lingam", "var_lingam"),
    "dynotears": Baseline("DYNOTEARS", "dynotears", "dynotears", respects_knowledge=True),
    "nts-notears": Baseline("NTS-NOTEARS", "nts_notears", "nts_notears", nonlinear=True),
    "tcdf": Baseline("TCDF", "tcdf", "tcdf", nonlinear=True),
    "granger-pairwise": Baseline("Pairwise Granger", "granger", "granger_pairwise"),
    "granger": Baseline("Multivariate Granger", "granger", "granger", respects_knowledge=True),
    "var-fdr": Baseline("VAR (FDR)", "var_fdr", "var_fdr", respects_knowledge=True),
    "ols-all": Baseline("Least squares given all (HC3)", "ols_all", "ols_all"),
    "cmlp": Baseline("Neural Granger (cMLP)", "cmlp", "cmlp", nonlinear=True),
    "random": Baseline("Random guess", "random_guess", "random_guess"),
}


def run_baseline(
    name: str, panel: Panel, max_lag: int, seed: int = 0, knowledge: Knowledge = NOTHING
) -> LaggedGraph:
    """Run the baseline of this name, within what is known of the edges."""
    if name not in BASELINES:
        raise InputError(f"Unknown baseline {name!r}; choose one of {', '.join(BASELINES)}.")
    baseline = BASELINES[name]
    if not knowledge:
        return baseline.load()(panel, max_lag, seed)
    if not baseline.respects_knowledge:
        able = [other for other in BASELINES if BASELINES[other].respects_knowledge]
        raise InputError(
            f"The baseline {name!r} cannot respect forbidden or required edges; leave them out or "
            f"choose one of {', '.join(able)}."
        )
    return baseline.load()(panel, max_lag, seed, knowledge)
