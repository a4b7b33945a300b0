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


BASE = ("linear", "linear", "Base")
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
        (
            *[
                Column(f"{name}, {rows // 1000:,}k", Kind(system, rows))
                for system, name in (("linear", "linear"), ("mlp-concat", "MLP-concat"))
                for rows in (50_000, 100_000, 1_000_000)
            ],
        ),
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

Cell = Callable[[Study, Kind, str], Summary | None]


def _read(readout: str) -> Cell:
    return lambda study, kind, metric: study.read(kind, readout, metric)


def _rival(method: str) -> Cell:
    return lambda study, kind, metric: study.rival(kind, method, metric)


def _every_lag(method: str) -> Cell:
    return lambda study, kind, metric: study.rival(kind, method, metric, every_lag)


ROWS: tuple[tuple[str, Cell, str | None], ...] = (
    # label, figure, our name of the paper's row
    ("DOT, LRP, as published", _read("lrp"), "dot"),
    ("DOT, LRP with a balanced residual", _read("balanced-lrp"), None),
    ("DOT, CP-LRP", _read("cp-lrp"), None),
    ("DOT, input x gradient", _read("input-gradient"), None),
    ("DOT, gradient energy", _read("gradient"), None),
    ("DOT, interventions", _read("intervention"), None),
    ("DOT, attention", _read("attention"), None),
    ("VAR coefficients, top 3: the control", _read("var"), None),
    ("VAR coefficients of each segment, top 3", _read("var by segment"), None),
    ("Forecause, default", _rival("forecause"), None),
    ("VAR, tests with FDR", _rival("var-fdr"), None),
    ("PCMCI at 5 %, as published", _rival("pcmci"), "pcmci"),
    ("PCMCI with FDR", _rival("pcmci-fdr"), None),
    ("PCMCI+", _rival("pcmci+"), None),
    ("VAR-LiNGAM", _rival("var-lingam"), "var-lingam"),
    ("DYNOTEARS", _rival("dynotears"), "dynotears"),
    ("TCDF", _rival("tcdf"), "tcdf"),
    ("NTS-NOTEARS", _rival("nts-notears"), "nts-notears"),
    ("Granger, all lags of a pair", _every_lag("granger"), "granger"),
    ("Granger, lag by lag", _rival("granger"), None),
    ("Pairwise Granger, all lags of a pair", _every_lag("granger-pairwise"), "granger-pairwise"),
    ("Pairwise Granger, lag by lag", _rival("granger-pairwise"), None),
    ("Random guess at the true density", _rival("random-oracle"), "random-oracle"),
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
    for label, figure, published in ROWS:
        found = [figure(study, column.kind, "f1") for column in columns]
        if any(found):
            body.append([Text(label), *[_text(one) for one in found]])
        quoted = [_published(column, published) for column in columns] if published else []
        if any(quoted):
            cells = [Text(text, "quoted") if text else Text("") for text in quoted]
            body.append([Text(f"{_short(label)}, in the paper", "quoted"), *cells])
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


def state_table(study: Study) -> Table:
    """Every table with the number of its fits."""
    rows = []
    for section in SECTIONS:
        seeds = [len(study.seeds(column.kind)) for column in section.columns]
        full = sum(count >= 3 for count in seeds)
        state = f"{full} of {len(seeds)} columns with three seeds"
        rows.append([Text(section.title), Text(str(sum(seeds))), Text(state)])
    return Table(["table", "fits that it uses", "state"], rows)


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
    for label, figure, _ in ROWS:
        texts = [_three(figure, study, column.kind) for column in columns]
        if any(texts):
            body.append([Text(label), *[Text(text or MISSING) for text in texts]])
    return Table(["", *[column.name for column in columns]], body)


def _three(figure: Cell, study: Study, kind: Kind) -> str:
    found = [figure(study, kind, metric) for metric in ("precision", "recall", "shd")]
    precision, recall, shd = found
    if precision is None or recall is None or shd is None:
        return ""
    return f"{precision.mean:.2f} / {recall.mean:.2f} / {shd.mean:.1f}"


def _published(column: Column, method: str) -> str:
    found = paper_figure(*column.paper, method, "f1") if column.paper else None
    if found is None:
        return ""
    return f"{found.mean:.2f}" if found.sd is None else f"{found.mean:.2f} ± {found.sd:.2f}"


def _short(label: str) -> str:
    return label.split(",")[0].split(" at ")[0]


def _text(found: Summary | None) -> Text:
    return Text(str(found) if found else MISSING)
