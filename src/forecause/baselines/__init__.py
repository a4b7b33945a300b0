"""The methods people use instead, behind one signature: `(panel, max_lag, seed) -> LaggedGraph`."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass

from forecause.data.panel import Panel
from forecause.errors import InputError
from forecause.graph.lagged import LaggedGraph

Method = Callable[[Panel, int, int], LaggedGraph]

__all__ = ["BASELINES", "Baseline", "Method", "run_baseline"]


@dataclass(frozen=True)
class Baseline:
    """One method: how tables call it, where its code is, and what it needs."""

    label: str
    module: str  # in this folder
    function: str
    nonlinear: bool = False
    extra: str | None = None  # the optional dependency group it needs

    def load(self) -> Method:
        """The function itself; its packages are imported only now."""
        method: Method = getattr(
            importlib.import_module(f"{__name__}.{self.module}"), self.function
        )
        return method


BASELINES: dict[str, Baseline] = {
    "pcmci": Baseline("PCMCI", "pcmci", "pcmci", extra="baselines"),
    "pcmci-fdr": Baseline("PCMCI (FDR)", "pcmci", "pcmci_fdr", extra="baselines"),
    "pcmci+": Baseline("PCMCI+", "pcmci", "pcmci_plus", extra="baselines"),
    "lpcmci": Baseline("LPCMCI", "lpcmci", "lpcmci", extra="baselines"),
    "var-lingam": Baseline("VAR-LiNGAM", "var_lingam", "var_lingam", extra="baselines"),
    "dynotears": Baseline("DYNOTEARS", "dynotears", "dynotears"),
    "nts-notears": Baseline("NTS-NOTEARS", "nts_notears", "nts_notears", nonlinear=True),
    "tcdf": Baseline("TCDF", "tcdf", "tcdf", nonlinear=True),
    "granger-pairwise": Baseline("Pairwise Granger", "granger", "granger_pairwise"),
    "granger": Baseline("Multivariate Granger", "granger", "granger"),
    "var-fdr": Baseline("VAR (FDR)", "var_fdr", "var_fdr"),
    "cmlp": Baseline("Neural Granger (cMLP)", "cmlp", "cmlp", nonlinear=True),
    "random": Baseline("Random guess", "random_guess", "random_guess"),
}


def run_baseline(name: str, panel: Panel, max_lag: int, seed: int = 0) -> LaggedGraph:
    """Run the baseline of this name."""
    if name not in BASELINES:
        raise InputError(f"Unknown baseline {name!r}; choose one of {', '.join(BASELINES)}.")
    return BASELINES[name].load()(panel, max_lag, seed)
