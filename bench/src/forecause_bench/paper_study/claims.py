"""The paper's claims, each with a verdict that follows from the store by a rule written here.

A verdict needs three seeds in every column that a claim is about; until then the claim is "not
tested", and the figures so far are shown beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from forecause_bench.document import Block, Heading, Paragraph, Table, Text
from forecause_bench.paper_study.answers import Kind, Study, Summary, ceiling
from forecause_bench.paper_study.queue import CNN
from forecause_bench.paper_study.readout_study import with_interventions
from forecause_bench.paper_study.scores import every_lag, metrics, threshold, top_k
from forecause_bench.paper_study.store import StoredFit

SEEDS = 3
CLOSE = 0.03  # of F1: what counts as the same
CONFIRMED, NOT_CONFIRMED, NOT_TESTED = "confirmed", "not confirmed", "not tested"

Figures = Sequence[Summary | None]
Compared = dict[str, Figures]  # by label, one figure per kind


@dataclass(frozen=True)
class Claim:
    """What the paper says, what is compared for it, and when that confirms it."""

    text: str
    kinds: tuple[Kind, ...]
    compare: Callable[[Study, Sequence[Kind]], Compared]
    holds: Callable[[list[list[float]]], bool]  # of means, by label and kind
    rule: str


def _kinds(*systems: str) -> tuple[Kind, ...]:
    return tuple(Kind(system) for system in systems)


def _read(readout: str) -> Callable[[Study, Kind], Summary | None]:
    return lambda study, kind: study.read(kind, readout)


def _rival(method: str) -> Callable[[Study, Kind], Summary | None]:
    return lambda study, kind: study.rival(kind, method)


def _side_by_side(
    **sources: Callable[[Study, Kind], Summary | None],
) -> Callable[[Study, Sequence[Kind]], Compared]:
    def compare(study: Study, kinds: Sequence[Kind]) -> Compared:
        names = {name: name.replace("_", " ") for name in sources}
        return {names[name]: [get(study, kind) for kind in kinds] for name, get in sources.items()}

    return compare


def _first_is_highest(means: list[list[float]]) -> bool:
    """On every kind, at least as high as all others."""
    first, *others = np.array(means)
    return bool((first >= np.max(others, axis=0) - 1e-9).all())


def _first_is_higher(means: list[list[float]]) -> bool:
    """On every kind, clearly above the second."""
    first, second = np.array(means[:2])
    return bool((first > second + CLOSE).all())


def _first_is_as_good(means: list[list[float]]) -> bool:
    first, second = np.array(means[:2])
    return bool((first >= second - CLOSE).all())


def _level(means: list[list[float]]) -> bool:
    return float(np.ptp(means[0])) <= CLOSE


def _falls(means: list[list[float]]) -> bool:
    return bool((np.diff(means[0]) < 0).all())


def _rises(means: list[list[float]]) -> bool:
    return bool((np.diff(means[0]) > 0).all())


def _mean_rank(study: Study, kind: Kind) -> Summary | None:
    def measure(fit: StoredFit) -> float:
        (true,) = fit.truths.values()
        return metrics(top_k(fit.relevance("lrp", what="mean_rank")), true)["f1"]

    return study.of_fits(kind, measure)


def _agreement(study: Study, kind: Kind) -> Summary | None:
    return study.of_fits(kind, lambda fit: with_interventions(fit, "lrp"))


def _one_layer(readout: str) -> Callable[[Study, Kind], Summary | None]:
    return lambda study, kind: study.read(Kind(kind.system, kind.rows, layers=1), readout)


def _convolutional(study: Study, kind: Kind) -> Summary | None:
    return study.read(Kind(kind.system, kind.rows, network=CNN), "lrp")


def _told(study: Study, kind: Kind) -> Summary | None:
    return study.read(Kind(kind.system, kind.rows, told_segment=True), "lrp")


NONLINEAR = _kinds("monotonic", "piecewise-monotonic", "mlp-add", "mlp-concat")
FORMS = (Kind("linear"), *NONLINEAR)
SEGMENTS = _kinds("regular-2", "regular-5", "extreme-2", "extreme-5")
WELL_USED = {
    "VAR_top_3": _read("var"),
    "PCMCI+": _rival("pcmci+"),
    "VAR_with_FDR": _rival("var-fdr"),
}
AS_PUBLISHED = {
    "PCMCI_at_5_%": _rival("pcmci"),
    "Granger,_all_lags": lambda study, kind: study.rival(kind, "granger", change=every_lag),
}

CLAIMS = (
    Claim(
        "better than PCMCI and Granger as it ran them, on nonlinear systems",
        NONLINEAR,
        _side_by_side(DOT=_read("lrp"), **AS_PUBLISHED),
        _first_is_highest,
        "highest on all four forms",
    ),
    Claim(
        "better than linear methods used well, on nonlinear systems",
        NONLINEAR,
        _side_by_side(DOT=_read("lrp"), **WELL_USED),
        _first_is_highest,
        "highest on all four forms",
    ),
    Claim(
        "better with long lags",
        _kinds("lag-10", "lag-25"),
        _side_by_side(DOT=_read("lrp"), **WELL_USED),
        _first_is_highest,
        "highest at lags 10 and 25",
    ),
    Claim(
        "better with many variables",
        _kinds("nodes-25", "nodes-25-nonlinear"),
        _side_by_side(DOT=_read("lrp"), **WELL_USED),
        _first_is_highest,
        "highest with 25, linear and nonlinear",
    ),
    Claim(
        "better on systems that change, than methods that see all rows as one",
        SEGMENTS,
        _side_by_side(DOT=_read("lrp"), **WELL_USED),
        _first_is_highest,
        "highest with 2 and 5 segments of both kinds",
    ),
    Claim(
        "accuracy grows with rows",
        (Kind("mlp-concat"), Kind("mlp-concat", 100_000), Kind("mlp-concat", 1_000_000)),
        _side_by_side(DOT=_read("lrp")),
        _rises,
        "rises from 50,000 to 100,000 to 1,000,000 rows of MLP-concat systems",
    ),
    Claim(
        "relevance by LRP is better than attention",
        FORMS,
        _side_by_side(LRP=_read("lrp"), attention=_read("attention")),
        _first_is_higher,
        f"more than {CLOSE} above on all five forms",
    ),
    Claim(
        "attention tells more in a shallow model",
        _kinds("linear", "monotonic", "mlp-concat"),
        _side_by_side(one_layer=_one_layer("attention"), four_layers=_read("attention")),
        _first_is_higher,
        f"attention of one layer more than {CLOSE} above that of four",
    ),
    Claim(
        "deep is better than shallow",
        _kinds("linear", "monotonic", "mlp-concat"),
        _side_by_side(four_layers=_read("lrp"), one_layer=_one_layer("lrp")),
        _first_is_higher,
        f"more than {CLOSE} above on three forms",
    ),
    Claim(
        "the threshold does as well as top-k at a moderate size",
        FORMS,
        _side_by_side(
            threshold=lambda study, kind: study.read(kind, "lrp", rule=threshold),
            top_3=_read("lrp"),
        ),
        _first_is_as_good,
        f"not more than {CLOSE} below on any form",
    ),
    Claim(
        "ranks over windows are better than raw relevance",
        FORMS,
        _side_by_side(mean_rank=_mean_rank, relevance=_read("lrp")),
        _first_is_highest,
        "at least as high on all five forms",
    ),
    Claim(
        "relevance agrees with interventions",
        FORMS,
        _side_by_side(rank_correlation=_agreement),
        lambda means: min(means[0]) >= 0.8,
        "rank correlation of at least 0.8 on all five forms",
    ),
    Claim(
        "the kind and the variance of noise do not matter to it",
        _kinds("linear", "noise-uniform", "noise-mixed", "noise-small", "noise-large"),
        _side_by_side(DOT=_read("lrp")),
        _level,
        f"a range of at most {CLOSE}",
    ),
    Claim(
        "hidden causes hurt the transformer",
        _kinds("linear", "hidden-3", "hidden-5", "hidden-10"),
        _side_by_side(
            DOT=_read("lrp"), most_for_3_edges=lambda study, kind: study.of_fits(kind, ceiling)
        ),
        _falls,
        "falls with their number; the second row is what three edges per target can reach at all",
    ),
    Claim(
        "unequal noise hurts DYNOTEARS",
        _kinds("linear", "noise-small", "noise-large"),
        _side_by_side(DYNOTEARS=_rival("dynotears")),
        _falls,
        "falls from equal variances to 0.5 to 5 to 0 to 10",
    ),
    Claim(
        "the domain index helps",
        _kinds("regular-5", "extreme-5"),
        _side_by_side(told=_told, from_context=_read("lrp")),
        _first_is_higher,
        f"more than {CLOSE} above with five segments of both kinds",
    ),
    Claim(
        "a convolutional network does as well",
        FORMS,
        _side_by_side(convolutional=_convolutional, transformer=_read("lrp")),
        _first_is_as_good,
        f"not more than {CLOSE} below on any form",
    ),
)
UNTESTED = {
    "LPCMCI after it helps with hidden causes": "no verdict for fewer than three seeds of each "
    "number: [table](../paper-refinement/table.md)",
    "PCMCI+ and DYNOTEARS after it find the effects within a row": "only at half size: "
    "[table](../paper-post-processing/table.md)",
    "pretrained models recover structure zero-shot": "no published weights can be had here",
}


def judged(claim: Claim, study: Study) -> tuple[str, str]:
    """The verdict and the figures behind it."""
    compared = claim.compare(study, claim.kinds)
    complete = all(
        found is not None and found.seeds >= SEEDS
        for figures in compared.values()
        for found in figures
    )
    if not complete:
        return NOT_TESTED, _told_so_far(compared)
    means = [[found.mean for found in figures if found] for figures in compared.values()]
    return (CONFIRMED if claim.holds(means) else NOT_CONFIRMED), _told_so_far(compared)


def claims_page(study: Study) -> list[Block]:
    """The table of claims."""
    body = []
    for claim in CLAIMS:
        verdict, figures = judged(claim, study)
        systems = ", ".join(_name(kind) for kind in claim.kinds)
        cells = (claim.text, f"**{verdict}**", systems, figures, claim.rule)
        body.append([Text(cell) for cell in cells])
    for text, why in UNTESTED.items():
        body.append([Text(text), Text(f"**{NOT_TESTED}**"), Text(""), Text(why), Text("")])
    return [
        Heading("The paper's claims at its own size", 1),
        Paragraph(
            "Made from the store by `python -m forecause_bench.paper_study.page`. A verdict needs "
            f"{SEEDS} seeds in every column; with fewer, a claim is not tested. The rule in the "
            "last column was written when the first fit, linear with seed 0, was known and no "
            "other; that on DYNOTEARS later, before its figures were. A dash is a figure that is "
            "missing; the number of seeds stands in brackets. 10 variables, lag 5 and 50,000 rows "
            "unless the system's name says otherwise. F1 of the lagged graph unless it says "
            "otherwise; DOT is the published model with LRP and the top 3 per target."
        ),
        Table(
            ["claim", "verdict", "systems", "figures, in the same order", "rule"], body, words=True
        ),
    ]


def _told_so_far(compared: Compared) -> str:
    return "; ".join(
        f"{label} {' '.join(_text(found) for found in figures)}"
        for label, figures in compared.items()
    )


def _text(found: Summary | None) -> str:
    return f"{found.mean:.2f} ({found.seeds})" if found else "-"


def _name(kind: Kind) -> str:
    return kind.system if kind.rows == 50_000 else f"{kind.system} {kind.rows:,} rows"
