"""The paper's tables at its own size, as blocks of a document."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from forecause_bench.document import Block, Heading, Paragraph, Table, Text
from forecause_bench.paper import paper_figure
from forecause_bench.paper_study.answers import Kind, Study, Summary, ceiling
from forecause_bench.paper_study.queue import CNN, TRANSFORMER
from forecause_bench.paper_study.scores import every_lag, overall, per_target, threshold
from forecause_bench.paper_study.store import StoredFit

MISSING = "not run"
METRICS = ("f1", "precision", "recall", "shd")


@dataclass(frozen=True)
class Column:
    """A column of a table: its heading, its fits, and where the paper has its figures."""

    name: str
    kind: Kind
    paper: tuple[str, str] | None = None  # table and column


@dataclass(frozen=True)
class Section:
    """One of the paper's tables."""

    title: str
    columns: tuple[Column, ...]
    note: str = ""
    short: str = ""  # title of its panel in a figure, if the other is too long


def _columns(table: str, *places: tuple[str, str, str]) -> tuple[Column, ...]:
    return tuple(Column(name, Kind(system), (table, column)) for name, system, column in places)


BY_ROWS = ((50_000, "50k"), (100_000, "100k"), (1_000_000, "1M"))
SECTIONS = (
    Section(
        "Nonlinear mechanisms",
        _columns(
            "nonlinearity",
            ("linear", "linear", "Linear"),
            ("monotonic", "monotonic", "CAM-M"),
            ("piecewise + monotonic", "piecewise-monotonic", "CAM-PL+M"),
            ("MLP-add", "mlp-add", "MLP-Add"),
            ("MLP-concat", "mlp-concat", "MLP-Cat"),
        ),
        "The paper's column of piecewise-linear and monotonic functions pools 27 runs, those with "
        "many variables and long lags among them; at this size its transformer has about 0.65.",
    ),
    Section(
        "Kinds of noise",
        _columns(
            "noise",
            ("Gaussian", "linear", "Gaussian"),
            ("uniform", "noise-uniform", "Uniform"),
            ("mixed", "noise-mixed", "Mixed"),
            ("variances 0.5 to 5", "noise-small", "Hetero-S"),
            ("variances 0 to 10", "noise-large", "Hetero-L"),
        ),
    ),
    Section(
        "Hidden causes",
        _columns(
            "latent",
            ("none", "linear", "Base"),
            *[(f"{n}", f"hidden-{n}", f"{n} Latent") for n in (3, 5, 10)],
        ),
        "Hidden variables are like the others and count within the in-degree, so the more are "
        "hidden, the fewer edges there are to be found, and three edges per target are more and "
        "more too many. The row of the most that can be had shows it.",
    ),
    *[
        Section(
            f"Segments with a graph each, {name}",
            (
                Column("1", Kind("linear"), (f"ns_{kind}_seg2", "Base")),
                *[
                    Column(f"{n}", Kind(f"{kind}-{n}"), (f"ns_{kind}_seg{n}", "50K"))
                    for n in (2, 5, 10)
                ],
            ),
            "F1 is averaged over the segments' own graphs. The transformer learns from all rows "
            "and is read segment by segment; Forecause is told where segments begin; the other "
            "rivals give one graph for all rows, as in the paper. The VAR of each segment shows "
            "what the knowledge of the segments alone is worth.",
            f"Segments, {name.split()[0]}",
        )
        for kind, name in (("regular", "linear"), ("extreme", "monotonic with lags of their own"))
    ],
    Section(
        "Many variables",
        (
            Column("10", Kind("linear"), ("highdim_linear", "Base")),
            Column("25", Kind("nodes-25"), ("highdim_linear", "n=25")),
            Column("50", Kind("nodes-50"), ("highdim_linear", "n=50")),
            Column("100", Kind("nodes-100"), ("highdim_linear", "n=100")),
            Column("10 nonlinear", Kind("piecewise-monotonic")),
            Column("25 nonlinear", Kind("nodes-25-nonlinear"), ("highdim_nonlinear", "n=25")),
        ),
        "Nonlinear: piecewise-linear and monotonic functions.",
    ),
    Section(
        "Long lags, linear",
        (
            Column("5", Kind("linear"), ("longrange_linear", "Base")),
            *[
                Column(f"{lag}", Kind(f"lag-{lag}"), ("longrange_linear", f"k={lag}"))
                for lag in (10, 25, 50)
            ],
        ),
        "The paper's nonlinear table of long lags has the figures of the linear one for five of "
        "its eight rivals, so it has no table of its own here.",
    ),
    Section(
        "More rows",
        tuple(
            Column(f"{name}, {size}", Kind(system, rows), (table, size.upper()) if table else None)
            for system, name, table in (
                ("regular-2", "2 linear segments", "ns_regular_seg2"),
                ("extreme-2", "2 monotonic segments", "ns_extreme_seg2"),
                ("linear", "linear", ""),
                ("mlp-concat", "MLP-concat", ""),
            )
            for rows, size in BY_ROWS
        ),
        "The paper varies the rows of systems with segments.",
    ),
    Section(
        "Small changes between segments, and the segment as an input",
        (
            Column("linear, fresh graphs", Kind("regular-5")),
            Column("linear, a fifth moves", Kind("regular-5-drift")),
            Column("linear, told", Kind("regular-5", told_segment=True)),
            Column("monotonic, fresh graphs", Kind("extreme-5")),
            Column("monotonic, a fifth moves", Kind("extreme-5-drift")),
            Column("monotonic, told", Kind("extreme-5", told_segment=True)),
        ),
        "Five segments. The paper shows these as figures without numbers.",
    ),
    Section(
        "One layer",
        (
            *[
                Column(
                    f"{name}, {layers} layers" if layers > 1 else f"{name}, 1 layer",
                    Kind(system, layers=layers),
                )
                for system, name in (
                    ("linear", "linear"),
                    ("monotonic", "monotonic"),
                    ("mlp-concat", "MLP-concat"),
                    ("regular-2", "2 segments"),
                )
                for layers in (4, 1)
            ],
        ),
        "The paper shows these as figures without numbers.",
    ),
    Section(
        "A convolutional network in its place",
        (
            *[
                Column(f"{name}, {network}", Kind(system, network=network))
                for system, name in (
                    ("linear", "linear"),
                    ("monotonic", "monotonic"),
                    ("piecewise-monotonic", "piecewise + monotonic"),
                    ("mlp-add", "MLP-add"),
                    ("mlp-concat", "MLP-concat"),
                )
                for network in (TRANSFORMER, CNN)
            ],
        ),
        "In the columns of the convolutional network the rows named DOT are its own. It has no "
        "attention, and sees whole windows alone. The paper shows it as a figure without numbers.",
    ),
    Section(
        "Causes within the row",
        (Column("1 per variable", Kind("instantaneous-1")),),
        "F1 of the lagged edges alone, before any refinement.",
    ),
)


@dataclass(frozen=True)
class Row:
    """A row of a table: a readout of the fits, or a rival."""

    label: str
    readout: str = ""
    rival: str = ""
    every_lag: bool = False  # a linked pair is marked at all lags
    paper: bool = False  # whether the paper has this row

    def figure(self, study: Study, kind: Kind, metric: str) -> Summary | None:
        """Over the seeds that were fitted."""
        if self.readout:
            return study.read(kind, self.readout, metric)
        return study.rival(kind, self.rival, metric, every_lag if self.every_lag else None)

    def absent(self, study: Study, kind: Kind) -> str:
        """What to write where there is no figure."""
        stopped = study.stopped_after(kind, self.rival)
        return f"over {stopped / 60:.0f} min" if stopped else MISSING

    def published(self, column: Column) -> str:
        """The paper's F1."""
        if not self.paper or column.paper is None:
            return ""
        found = paper_figure(*column.paper, self.rival or "dot", "f1")
        if found is None:
            return ""
        return f"{found.mean:.2f}" if found.sd is None else f"{found.mean:.2f} ± {found.sd:.2f}"


ROWS = (
    Row("DOT, LRP, as published", "lrp", paper=True),
    Row("DOT, LRP with a balanced residual", "balanced-lrp"),
    Row("DOT, CP-LRP", "cp-lrp"),
    Row("DOT, input x gradient", "input-gradient"),
    Row("DOT, gradient energy", "gradient"),
    Row("DOT, interventions", "intervention"),
    Row("DOT, attention", "attention"),
    Row("VAR coefficients, top 3: the control", "var"),
    Row("VAR coefficients of each segment, top 3", "var by segment"),
    Row("Forecause, default", rival="forecause"),
    Row("VAR, tests with FDR", rival="var-fdr"),
    Row("PCMCI at 5 %, as published", rival="pcmci", paper=True),
    Row("PCMCI with FDR", rival="pcmci-fdr"),
    Row("PCMCI+", rival="pcmci+"),
    Row("VAR-LiNGAM", rival="var-lingam", paper=True),
    Row("DYNOTEARS", rival="dynotears", paper=True),
    Row("TCDF", rival="tcdf", paper=True),
    Row("NTS-NOTEARS", rival="nts-notears", paper=True),
    Row("Granger, all lags of a pair", rival="granger", every_lag=True, paper=True),
    Row("Granger, lag by lag", rival="granger"),
    Row(
        "Pairwise Granger, all lags of a pair",
        rival="granger-pairwise",
        every_lag=True,
        paper=True,
    ),
    Row("Pairwise Granger, lag by lag", rival="granger-pairwise"),
    Row("Random guess at the true density", rival="random-oracle", paper=True),
)


def blocks_of(section: Section, study: Study) -> list[Block]:
    """Heading, F1 of all rows beside the paper's, and the other metrics."""
    shown = [column for column in section.columns if study.knows(column.kind)]
    blocks: list[Block] = [Heading(section.title, 2)]
    blocks += [Paragraph(section.note)] if section.note else []
    blocks += [Paragraph(missing_sentence(section, study))]
    if not shown:
        return blocks
    blocks.append(Paragraph("F1 of the lagged graph; *in italics* what the paper has."))
    blocks.append(f1_table(shown, study))
    blocks.append(Paragraph("Precision / recall / SHD."))
    blocks.append(_other_metrics(shown, study))
    return blocks


def f1_table(columns: Sequence[Column], study: Study) -> Table:
    """A row per method, and what is behind every column at the end."""
    body = []
    for row in ROWS:
        texts = [_told(row, study, column.kind) for column in columns]
        if row.paper or set(texts) != {MISSING}:
            body.append([Text(row.label), *[Text(text) for text in texts]])
        quoted = [row.published(column) for column in columns]
        if any(quoted):
            cells = [Text(text, "quoted") if text else Text("") for text in quoted]
            body.append([Text(f"{_short(row.label)}, in the paper", "quoted"), *cells])
    return Table(["", *[column.name for column in columns]], [*body, *_footer(columns, study)])


def missing_sentence(section: Section, study: Study) -> str:
    """How many seeds each column has, and which columns have none."""
    none = [column.name for column in section.columns if not study.seeds(column.kind)]
    few = [
        f"{column.name}: {len(seeds)} of 3"
        for column in section.columns
        if (seeds := study.seeds(column.kind)) and len(seeds) < 3
    ]
    parts = [f"Not fitted yet: {', '.join(none)}."] if none else []
    parts += [f"Fewer than three seeds: {'; '.join(few)}."] if few else []
    return " ".join(parts) or "All columns have three seeds."


def choices_table(study: Study, kinds: Sequence[tuple[str, Kind]]) -> Table:
    """How much the rule matters: k per target, k over the graph, the threshold."""
    rules = [(f"top {k} per target", per_target(k)) for k in (1, 2, 3, 4, 5)]
    rules += [(f"top {k} overall", overall(k)) for k in (15, 21, 24, 27, 30, 36)]
    rules += [("threshold 1 / (L p)", threshold)]
    body = []
    for label, rule in rules:
        for readout, name in (("lrp", "LRP"), ("gradient", "gradient")):
            found = [study.read(kind, readout, rule=rule) for _, kind in kinds]
            body.append([Text(f"{name}, {label}"), *[_text(one) for one in found]])
    return Table(["", *[name for name, _ in kinds]], body)


def _footer(columns: Sequence[Column], study: Study) -> list[list[Text]]:
    def row(label: str, measure: Callable[[StoredFit], float], digits: int) -> list[Text]:
        found = [study.of_fits(column.kind, measure) for column in columns]
        texts = [f"{one.mean:.{digits}f}" if one else "" for one in found]
        return [Text(label), *[Text(text) for text in texts]]

    seeds = [Text(str(len(study.seeds(column.kind)))) for column in columns]
    return [
        row("The most that three edges per target can have", ceiling, 2),
        row("Held-out error of DOT", lambda fit: fit.content["held_out_loss"], 3),
        row("Held-out error of a VAR", lambda fit: fit.content["var_held_out_loss"], 3),
        row("Steps of training, mean", lambda fit: fit.steps, 0),
        [Text("Seeds"), *seeds],
    ]


def _other_metrics(columns: Sequence[Column], study: Study) -> Table:
    body = []
    for row in ROWS:
        texts = [_three(row, study, column.kind) for column in columns]
        if any(texts):
            body.append([Text(row.label), *[Text(text or MISSING) for text in texts]])
    return Table(["", *[column.name for column in columns]], body)


def _told(row: Row, study: Study, kind: Kind) -> str:
    """F1, with the number of seeds where it is not that of the fits; or why there is none."""
    found, fitted = row.figure(study, kind, "f1"), len(study.seeds(kind))
    if found is None:
        return row.absent(study, kind)
    return f"{found} ({found.seeds})" if fitted and found.seeds != fitted else str(found)


def _three(row: Row, study: Study, kind: Kind) -> str:
    found = [row.figure(study, kind, metric) for metric in ("precision", "recall", "shd")]
    precision, recall, shd = found
    if precision is None or recall is None or shd is None:
        return ""
    return f"{precision.mean:.2f} / {recall.mean:.2f} / {shd.mean:.1f}"


def _short(label: str) -> str:
    return label.split(",")[0].split(" at ")[0]


def _text(found: Summary | None) -> Text:
    return Text(str(found) if found else MISSING)
