"""Which readout: own last value, ranking, and agreement with interventions, over all fits."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from forecause_bench.document import Table, Text
from forecause_bench.paper_study.answers import Kind, Study, Summary, fit_metrics
from forecause_bench.paper_study.queue import DEEP, TRANSFORMER, in_order
from forecause_bench.paper_study.scores import agreement, auroc, own_last_share
from forecause_bench.paper_study.store import WHOLE, Array, StoredFit

READOUTS = {
    "gradient": "gradient energy",
    "input-gradient": "input x gradient",
    "lrp": "AttnLRP, as published",
    "balanced-lrp": "AttnLRP, residual balanced",
    "cp-lrp": "CP-LRP",
    "attention": "attention",
    "intervention": "interventions",
    "var": "VAR coefficients (no network)",
}
SQUARES = ("gradient", "var")  # energies: their roots are compared with the others
Measure = Callable[[StoredFit, str], float]


def own_share(fit: StoredFit, readout: str) -> float:
    """Of targets whose own last value is no cause, the share that it gets."""
    if not fit.has(readout):
        return float("nan")
    each = [own_last_share(_size(fit, readout, name), true) for name, true in fit.truths.items()]
    return float(np.nanmean(each)) if not np.isnan(each).all() else float("nan")


def ranking(fit: StoredFit, readout: str) -> float:
    """AUROC over all candidates, mean over segments."""
    if not fit.has(readout):
        return float("nan")
    each = [auroc(fit.relevance(readout, name), true) for name, true in fit.truths.items()]
    return float(np.mean(each))


def top_3(fit: StoredFit, readout: str) -> float:
    """F1 of three edges per target."""
    return fit_metrics(fit, readout)["f1"]


def with_interventions(fit: StoredFit, readout: str) -> float:
    """Rank correlation with the effects of interventions, over all rows."""
    if readout == "var":
        return float("nan")
    effects = fit.relevance("intervention")
    return agreement(fit.relevance(readout), effects)


MEASURES: dict[str, tuple[str, Measure]] = {
    "f1": ("F1, top 3", top_3),
    "auroc": ("AUROC", ranking),
    "own": ("share of the own last value where it is no cause", own_share),
    "agreement": ("rank correlation with interventions", with_interventions),
}


def summary_table(study: Study) -> Table:
    """Means over all stationary deep fits, each weighing the same."""
    fits = stationary(study)
    body = []
    for readout, label in READOUTS.items():
        cells = []
        for _, measure in MEASURES.values():
            found = Summary.of([measure(fit, readout) for fit in fits])
            cells.append(Text(f"{found.mean:.3f}" if found else ""))
        body.append([Text(label), *cells])
    return Table(["readout", *[label for label, _ in MEASURES.values()]], body)


def by_system(study: Study, name: str) -> Table:
    """One measure, by readout and system, those with segments too."""
    _, measure = MEASURES[name]
    every = deep(study)
    body = []
    for system in dict.fromkeys(fit.system for fit in every):
        fits = [fit for fit in every if fit.system == system]
        found = [Summary.of([measure(fit, readout) for fit in fits]) for readout in READOUTS]
        texts = [f"{one.mean:.3f}" if one else "" for one in found]
        body.append([Text(system), Text(str(len(fits))), *[Text(text) for text in texts]])
    return Table(["system", "seeds", *READOUTS.values()], body)


def by_depth(study: Study, systems: Sequence[str]) -> Table:
    """Share of the own last value where it is no cause, and F1, by layers."""
    body = []
    planned = {(fit.system, fit.layers) for fit in in_order()}
    for system in systems:
        for layers in (1, 2, 3, 4):
            if (system, layers) not in planned:
                continue
            fits = study.fits.get(Kind(system, layers=layers), {})
            cells = []
            for readout in ("gradient", "lrp", "balanced-lrp"):
                share = Summary.of([own_share(fit, readout) for fit in fits.values()])
                found = Summary.of([top_3(fit, readout) for fit in fits.values()])
                known = f"{share.mean:.3f} / {found.mean:.2f}" if share and found else "not run"
                cells.append(Text(known))
            name = f"{system}, {layers} layer{'s' if layers > 1 else ''}"
            body.append([Text(name), Text(str(len(fits))), *cells])
    names = [READOUTS[readout] for readout in ("gradient", "lrp", "balanced-lrp")]
    return Table(["system", "seeds", *names], body)


def against(study: Study, chosen: str) -> Table:
    """F1 of every readout beside a chosen one on the same fits, those with segments too."""
    body = []
    for readout, label in READOUTS.items():
        if readout == chosen:
            continue
        pairs = [(top_3(fit, readout), top_3(fit, chosen)) for fit in transformers(study)]
        more = [one - other for one, other in pairs if not np.isnan(one + other)]
        higher, lower = (sum(sign * gap > 1e-9 for gap in more) for sign in (1, -1))
        mean = f"{np.mean(more):+.3f}" if more else ""
        counts = (len(more), higher, len(more) - higher - lower, lower)
        body.append([Text(label), *[Text(str(count)) for count in counts], Text(mean)])
    return Table(["readout", "fits", "higher", "the same", "lower", "mean difference"], body)


def stationary(study: Study) -> Sequence[StoredFit]:
    """Deep fits of systems with one graph, which have every readout."""
    return [fit for fit in deep(study) if list(fit.truths) == [WHOLE]]


def deep(study: Study) -> Sequence[StoredFit]:
    """The fits of the published transformer with all its layers."""
    return [fit for fit in transformers(study) if fit.layers == DEEP]


def transformers(study: Study) -> Sequence[StoredFit]:
    """The fits of the published transformer."""
    return [fit for fit in all_fits(study) if fit.network == TRANSFORMER]


def all_fits(study: Study) -> Sequence[StoredFit]:
    """Every fit of the store."""
    return [fit for seeds in study.fits.values() for fit in seeds.values()]


def _size(fit: StoredFit, readout: str, segment: str) -> Array:
    found = fit.relevance(readout, segment)
    return np.sqrt(found) if readout in SQUARES else found
