"""Make every table and figure from the store: python -m forecause_bench.paper_study.page.

It fits nothing and takes seconds.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from forecause_bench.document import Block, Heading, Lines, Paragraph, to_markdown
from forecause_bench.paper_study.answers import Kind, Study
from forecause_bench.paper_study.claims import claims_page
from forecause_bench.paper_study.experiments import experiments_page
from forecause_bench.paper_study.figures import (
    axes_figure,
    course_figure,
    lag_figure,
    means_figure,
    rank_figure,
    rows_figure,
)
from forecause_bench.paper_study.queue import ONE_LAYER
from forecause_bench.paper_study.readout_study import (
    MEASURES,
    against,
    all_fits,
    by_depth,
    by_system,
    summary_table,
    transformers,
)
from forecause_bench.paper_study.store import STORE
from forecause_bench.paper_study.tables import (
    SECTIONS,
    blocks_of,
    choices_table,
)

COMMAND = "python -m forecause_bench.paper_study.page"
CHOICES = (
    ("linear", Kind("linear")),
    ("monotonic", Kind("monotonic")),
    ("MLP-add", Kind("mlp-add")),
    ("MLP-concat", Kind("mlp-concat")),
)


def tables_page(study: Study) -> list[Block]:
    """All of the paper's tables."""
    fits = all_fits(study)
    commits = sorted({fit.content["commit"] for fit in fits})
    minutes = sum(sum(fit.content["seconds"].values()) for fit in fits) / 60
    blocks: list[Block] = [
        Heading("The paper's tables at its own size", 1),
        Lines(
            [
                f"Command: `{COMMAND}`, from the {len(fits)} fits in `bench/paper-fits`, "
                f"{len(transformers(study))} of them of the published transformer",
                f"The fits: `python -m forecause_bench.paper_study.run`, commit "
                f"{', '.join(commits)}, {minutes:.0f} minutes of processor time in all, one thread",
                "10 variables, lag 5 and 50,000 rows unless a column says otherwise; in-degree "
                "2.7 on average and 3 at most",
                "A fit ends when 90 % of the top-3 edges and the held-out error (0.5 %) have stood "
                "still over three looks of 100 steps; the rate then falls to zero in 200 steps; "
                "at most 1,500 steps",
                "Mean ± standard deviation over seeds; one seed is one system; a figure of fewer "
                "seeds than the fits has their number in brackets",
                "PCMCI and PCMCI+ are tigramite's searches, with partial correlations from one "
                "covariance matrix, which gives the same figures (`paper_study/quick_pcmci.py`)",
                "TCDF and NTS-NOTEARS, an estimated three and two minutes of processor time a "
                "system, and VAR-LiNGAM are run by `python -m forecause_bench.paper_study.rivals "
                "--methods tcdf,nts-notears,var-lingam`; they stand as not run where that has not "
                "been done for lack of time",
            ]
        ),
        Paragraph("What has been run and what has not: [every experiment](experiments.md)."),
    ]
    for section in SECTIONS:
        blocks += blocks_of(section, study)
    blocks += [
        Heading("The rule that chooses edges", 2),
        Paragraph(
            "F1 of the same fits under other rules. Each k is fixed beforehand; to pick the best "
            "row of this table would be to use the truth."
        ),
        choices_table(study, [(name, kind) for name, kind in CHOICES if study.seeds(kind)]),
    ]
    return blocks


def readouts_page(study: Study) -> list[Block]:
    """The same fits read in every way."""
    fits = transformers(study)
    blocks: list[Block] = [
        Heading("Seven readouts of the same fits", 1),
        Lines([f"Command: `{COMMAND}`, from the {len(fits)} fits in `bench/paper-fits`"]),
        Paragraph(
            "Means over the fits of four layers on systems with one graph. Gradient energy and "
            "squared coefficients enter the share of the own last value by their roots, so that "
            "all rows are on one scale."
        ),
        summary_table(study),
        Heading("Against the gradient, fit by fit", 2),
        Paragraph("F1 of the top 3 on every fit of the transformer that has both readouts."),
        against(study, "gradient"),
        Heading("Against LRP as published, fit by fit", 2),
        against(study, "lrp"),
        Heading("By depth: share of the own last value / F1", 2),
        Paragraph(
            "Every attention that an input passes halves it, and the own last value need not pass "
            "any: LRP as published should favour it by a factor of 2 with one layer, and between 2 "
            "and 16 with four."
        ),
        by_depth(study, ONE_LAYER),
    ]
    for name, (label, _) in MEASURES.items():
        blocks += [Heading(f"By system: {label}", 2), by_system(study, name)]
    return blocks


def write_all(study: Study, out: Path) -> None:
    """The pages, and the figures beside them."""
    tables, readouts = out / "paper", out / "paper-readouts"
    for path, blocks in (
        (tables / "table.md", tables_page(study)),
        (tables / "experiments.md", experiments_page(study)),
        (tables / "claims.md", claims_page(study)),
        (readouts / "table.md", readouts_page(study)),
    ):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(to_markdown(blocks), encoding="utf-8")
    for name, draw in (
        ("axes", axes_figure),
        ("rows", rows_figure),
        ("means", means_figure),
        ("course", course_figure),
        ("lags", lag_figure),
        ("ranks", rank_figure),
    ):
        draw(study).savefig(tables / f"{name}.png", dpi=110)


def main() -> None:
    """Make the pages."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--store", type=Path, default=STORE)
    parser.add_argument("--out", type=Path, default=Path("docs/benchmarks"))
    asked = parser.parse_args()
    write_all(Study(asked.store), asked.out)


if __name__ == "__main__":
    main()
