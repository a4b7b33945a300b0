"""The schema of everything a run saves as JSON, checked when it is loaded.

Each model knows what its file must hold for the rest of the program not to stumble over it later;
`agree` checks what must hold between the files. A field that a later version adds is let through.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeVar

import numpy as np
import numpy.typing as npt
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    FiniteFloat,
    StrictStr,
    ValidationError,
    model_validator,
)

from forecause.common.bounded import MOST_COUNTED, Count, parse_json
from forecause.config.advice import Advice
from forecause.config.options import DataOptions
from forecause.data.variables import Label
from forecause.errors import InputError
from forecause.graph.lagged import LaggedGraph
from forecause.seasons.terms import TimeTerms

FORMAT = "forecause.run/1"

# Time and memory:
LONGEST_STEP = 1e100  # between rows, as of any value
MOST_ROWS = 10**9  # of data with regimes, which tell of every row
NUMBERS = (  # columns of a run's edges; others may hold anything
    *("effect", "sign", "share", "confidence", "p_value", "q_value", "certainty", "stability"),
    *("mean_rank", "sd_rank", "sign_consistency", "change", "change_low", "change_high"),
)
TEXTS = ("grade", "mark", "domains")

Lag = Annotated[int, Field(ge=1, le=MOST_COUNTED)]
Share = Annotated[float, Field(ge=0, le=1)]
Number = FiniteFloat | None  # None where there is none
Array = npt.NDArray[Any]


class Saved(BaseModel):
    """Base of all: values as written, unknown names let through."""

    model_config = ConfigDict(extra="allow", frozen=True, allow_inf_nan=False)


Model = TypeVar("Model", bound=Saved)


class SavedTimeCourse(Saved):
    """What time explained of every column and was taken out."""

    terms: tuple[TimeTerms, ...] = Field(min_length=1)
    weights: list[list[list[FiniteFloat]]]
    ends: list[Count]
    levels: list[list[FiniteFloat]] | None
    labels: list[bool]


class SavedSource(Saved):
    """Where the data was read from; all else are the options of reading it."""

    paths: list[StrictStr] = Field(min_length=1)

    @model_validator(mode="after")
    def _can_be_read_again(self) -> SavedSource:
        DataOptions.checked(**(self.model_extra or {}))
        return self


class SavedData(Saved):
    """What is remembered of the data, but for its arrays."""

    variables: tuple[StrictStr, ...] = Field(min_length=1)
    rows: Count
    windows: Count
    missing_share: Share
    lost_share: Share
    series_names: tuple[StrictStr, ...] = Field(min_length=1)
    notes: tuple[StrictStr, ...]
    fingerprint: StrictStr
    domain_windows: dict[str, Count] = {}
    latest_domain: tuple[Count, ...] = ()
    sample_domain: tuple[Count, ...] = ()
    source: SavedSource | None = None
    labels: tuple[Label, ...] = ()
    course: SavedTimeCourse | None = None


class SavedForecaster(Saved):
    """Which forecaster, and its settings; those are checked by its own spec."""

    kind: StrictStr
    settings: dict[str, Any]
    module: StrictStr = ""  # where its settings are defined, since 0.3


class SavedOutlook(Saved):
    """Who forecasts several steps ahead; see forecast.outlook."""

    season: int = Field(ge=1, le=MOST_COUNTED)
    errors: dict[str, list[Any]]

    @model_validator(mode="after")
    def _holds_numbers(self) -> SavedOutlook:
        _check_numbers("errors", self.errors, "variable")
        return self


class SavedCausal(Saved):
    """The causal forecaster and the one of forecasts, if another; see forecast.causal."""

    forecaster: SavedForecaster
    guarded: SavedForecaster | None
    losses: dict[str, list[Any]]
    missing_causes: list[StrictStr]
    outlook: SavedOutlook | None = None

    @model_validator(mode="after")
    def _holds_numbers(self) -> SavedCausal:
        _check_numbers("losses", self.losses, "variable", "forecast_by")
        return self


class SavedFinding(Saved):
    """What a diagnosis saw; of versions before 0.3 only the first four fields."""

    code: StrictStr
    sentence: StrictStr
    variables: list[StrictStr]
    grave: bool = False
    seen: StrictStr = ""
    gravity: Literal["note", "alert", "doubt"] = "alert"
    about: list[tuple[StrictStr | None, StrictStr | None, Lag | None]] = []
    evidence: dict[StrictStr, FiniteFloat] = {}
    advice: list[Advice] = []

    @model_validator(mode="after")
    def _is_whole(self) -> SavedFinding:
        later = {"seen", "gravity", "about", "evidence", "advice"} & self.model_fields_set
        if later and len(later) < 5:
            raise ValueError(f"the finding {self.code!r} is not whole")
        return self


class SavedRelevance(Saved):
    """The statistics whose arrays are kept with the weights."""

    names: list[StrictStr]
    attributes: dict[str, Any]

    @model_validator(mode="after")
    def _has_scores(self) -> SavedRelevance:
        if "relevance" not in self.names:
            raise ValueError("the statistic 'relevance' is missing")
        return self


class SavedChanges(Saved):
    """Where the mechanism changes, as columns of a table."""

    row: list[Count]
    earliest: list[Count]
    latest: list[Count]
    before: list[StrictStr]
    after: list[StrictStr]
    certainty: list[Number]

    @model_validator(mode="after")
    def _as_long(self) -> SavedChanges:
        columns = (self.earliest, self.latest, self.before, self.after, self.certainty)
        if any(len(column) != len(self.row) for column in columns):
            raise ValueError("the columns of changes differ in length")
        return self


class SavedRegimes(Saved):
    """Which stretches of rows follow which mechanism."""

    names: list[StrictStr] = Field(min_length=1)
    stretches: list[tuple[Count, StrictStr]] = Field(min_length=1)
    changes: SavedChanges

    @model_validator(mode="after")
    def _in_order(self) -> SavedRegimes:
        first = [row for row, _ in self.stretches]
        if first[0] != 0 or first != sorted(set(first)):
            raise ValueError("the stretches do not follow each other")
        if not {name for _, name in self.stretches} <= set(self.names):
            raise ValueError("a stretch has an unknown regime")
        return self


class SavedRun(Saved):
    """run.json"""

    format: Literal["forecause.run/1"]
    version: StrictStr
    id: StrictStr | None = None  # runs of version 0.1 have none
    files: dict[str, StrictStr] = {}  # SHA-256 of the files that belong to this run
    settings: dict[str, Any]
    data: SavedData
    forecaster: SavedForecaster
    causal: SavedCausal | None = None  # runs before 0.3 have none
    losses: dict[str, list[Any]]
    nll: dict[str, list[Any]] | None = None
    alerts: list[SavedFinding] = []
    regimes: SavedRegimes | None = None
    relevance: SavedRelevance

    @model_validator(mode="after")
    def _tables_are_whole(self) -> SavedRun:
        _check_losses("losses", self.losses, self.data.variables)
        if self.nll is not None:
            _check_losses("nll", self.nll, self.data.variables)
        names = [*self.data.variables]
        if self.causal is not None and self.causal.losses.get("variable") != names:
            raise ValueError("the losses of the causal forecaster are of other variables")
        if self.regimes and self.regimes.stretches[-1][0] > self.data.rows:
            raise ValueError("regimes begin after the last row")
        if self.regimes and self.data.rows > MOST_ROWS:
            raise ValueError(f"there are more than {MOST_ROWS:,} rows")
        return self


class SavedResponse(Saved):
    """A response curve."""

    x: list[Number]
    y: list[Number]
    level: StrictStr | None = None

    @model_validator(mode="after")
    def _as_long(self) -> SavedResponse:
        if len(self.x) != len(self.y):
            raise ValueError("a response curve has more x than y, or fewer")
        return self


class SavedEdge(Saved):
    """What the page shows of an edge."""

    edge: tuple[Count, Count, Count]
    response: SavedResponse
    influence: list[Number]
    lost: Number


class SavedTime(Saved):
    """How the data was sampled."""

    kind: Literal["rows", "dates", "numbers"] = "rows"
    step: Annotated[FiniteFloat, Field(ge=0, le=LONGEST_STEP)] | None = None
    freq: StrictStr | None = None  # pandas' code of the calendar
    months: Count | None = None
    ends: list[StrictStr | Number] = []  # the last stamp of every series

    @model_validator(mode="after")
    def _of_one_kind(self) -> SavedTime:
        wanted = (str, type(None)) if self.kind == "dates" else (int, float, type(None))
        if not all(isinstance(end, wanted) for end in self.ends):
            raise ValueError(f"the ends are no {self.kind}")
        return self


class SavedCourse(Saved):
    """All rows, as drawn."""

    rows: Count
    values: list[list[Number]]
    explained: list[list[Number]] | None = None  # by time alone
    left: list[list[Number]] | None = None
    ticks: list[tuple[FiniteFloat, StrictStr]]
    breaks: list[Number]


class SavedStretch(Saved):
    """A close look at held-out rows."""

    values: list[list[Number]]
    forecast: list[list[Number]]
    error_sd: list[Number]
    ticks: list[tuple[FiniteFloat, StrictStr]]


class SavedOrigin(Saved):
    """Where a run came from."""

    versions: dict[str, StrictStr] = {}
    machine: StrictStr = ""
    command: StrictStr | None = None


class SavedEvidence(Saved):
    """report.json; a run without it has a shorter page."""

    format: Literal["forecause.evidence/1"] = "forecause.evidence/1"
    time: SavedTime = SavedTime()
    course: SavedCourse | None = None
    stretch: SavedStretch | None = None
    edges: list[SavedEdge] = []
    domains: list[tuple[StrictStr, FiniteFloat, FiniteFloat]] = []
    origin: SavedOrigin = SavedOrigin()
    levels: dict[str, StrictStr] = {}


class SavedStrength(Saved):
    """One range of strengths."""

    low: FiniteFloat = Field(alias="from")
    to: Number
    edges: Count
    recovered: Share | None
    found: Count
    false: Share | None


class SavedPower(Saved):
    """power.json"""

    windows: Count
    repeats: int = Field(ge=1, le=MOST_COUNTED)
    seed: int
    recovered: Share | None
    false: Share | None
    clipped: Share
    strengths: list[SavedStrength] = Field(min_length=1)


def read(model: type[Model], name: str, content: bytes) -> tuple[Model, dict[str, Any]]:
    """The content of a file checked against its schema, and as it is."""
    try:
        plain = parse_json(content.decode("utf-8"))
    except RecursionError:
        raise InputError(f"{name} is nested too deeply") from None
    except ValueError as error:
        raise InputError(f"{name} is not valid JSON ({error})") from None
    try:
        return model.model_validate_json(content, strict=True), plain  # a "1" is no number
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        message = str(first["msg"]).removeprefix("Value error, ")
        raise InputError(
            f"{name}{': ' + where if where else ''}: {message[0].lower()}{message[1:]}"
        ) from None


def agree(
    run: SavedRun, graph: LaggedGraph, tensors: Mapping[str, Array], evidence: SavedEvidence
) -> None:
    """Refuse files that are whole by themselves but do not belong together."""
    names = run.data.variables
    if graph.variables != names:
        raise InputError("graph.json and run.json name other variables")
    lags, series = graph.max_lag, len(run.data.series_names)
    levels = {label.name: len(label.levels) for label in run.data.labels}
    columns = sum(levels.get(name, 1) for name in names)
    wanted = {"mean": (columns,), "sd": (columns,), "latest": (series, lags, columns)}
    shapes = {f"data.{name}": shape for name, shape in wanted.items()}
    shapes |= {f"relevance.{one}": (len(names), len(names), lags) for one in run.relevance.names}
    for name, shape in shapes.items():
        _check_shape(tensors, name, shape)
    sample = tensors.get("data.sample")
    if sample is None or sample.ndim != 3 or sample.shape[1] != lags + 1:
        raise InputError("model.safetensors: data.sample is missing or has another shape")
    if sample.shape[2] not in (columns, columns + 1):  # 0.1 kept the domain as a last column
        raise InputError("model.safetensors: data.sample has another number of columns")
    scale = np.concatenate([tensors["data.mean"], tensors["data.sd"]])
    if not np.isfinite(scale).all() or not (tensors["data.sd"] > 0).all():
        raise InputError("model.safetensors: data.mean or data.sd holds what is no number")
    if sample.shape[2] > columns:
        run = run.model_copy(update={"data": _with_codes(run.data, sample[:, -1, -1])})
    if run.causal is not None and run.causal.outlook is not None:
        _check_outlook(tensors, series, columns)
    _check_domains(run.data, series, len(sample))
    _check_labels(run.data)
    _check_evidence(evidence, len(names), lags)
    if evidence.time.ends and len(evidence.time.ends) != series:
        raise InputError("report.json: time.ends has not one entry per series")
    for part in (graph, *graph.domains.values()):
        _check_edges(part)


def check_forecaster(forecaster: Any, data: SavedData) -> None:
    """Refuse a forecaster of other labels or domains than the data has."""
    labels = [(label.first, len(label.shares)) for label in forecaster.labels]
    if labels and labels != [(label.first, len(label.levels)) for label in data.labels]:
        raise InputError("run.json: the forecaster has other labels than the data")
    if forecaster.domains not in (0, len(data.domain_windows)):
        raise InputError("run.json: the forecaster has another number of domains than the data")


def _with_codes(data: SavedData, codes: Array) -> SavedData:
    """The domains of the sample as version 0.1 wrote them."""
    if not ((codes >= 0) & (codes < 2**31) & (codes == np.floor(codes))).all():
        raise InputError("model.safetensors: data.sample holds domains that are no whole numbers")
    return data.model_copy(update={"sample_domain": tuple(codes.astype(np.int64).tolist())})


def _check_labels(data: SavedData) -> None:
    """Labels are variables, and their columns lie where the variables before them end."""
    levels = {label.name: label for label in data.labels}
    place = 0
    for name in data.variables:
        if name in levels and levels[name].first != place:
            raise InputError(f"run.json: the columns of the label {name[:40]!r} lie elsewhere")
        place += len(levels[name].levels) if name in levels else 1
    if len(levels) != len(data.labels) or not set(levels) <= set(data.variables):
        raise InputError("run.json: data.labels names what is no variable")


def _check_edges(graph: LaggedGraph) -> None:
    for name in graph.edges:
        column = graph.edges[name]
        if name in NUMBERS and column.dtype.kind not in "fib":
            raise InputError(f"graph.json: {name} of an edge must be a number")
        if name in TEXTS and not all(cell is None or isinstance(cell, str) for cell in column):
            raise InputError(f"graph.json: {name} of an edge must be text")


def _check_shape(tensors: Mapping[str, Array], name: str, shape: tuple[int, ...]) -> None:
    if name not in tensors:
        raise InputError(f"model.safetensors: {name} is missing")
    if tensors[name].shape != shape or tensors[name].dtype.kind != "f":
        raise InputError(
            f"model.safetensors: {name} must have the shape {shape}, found {tensors[name].shape}"
        )


def _check_outlook(tensors: Mapping[str, Array], series: int, columns: int) -> None:
    """Refuse an outlook of other data, or one whose numbers are no forecast."""
    names = ("share", "paths", "spread", "origins")
    if any(f"outlook.{name}" not in tensors for name in names):
        raise InputError("model.safetensors: the outlook is not whole")
    share, paths, spread, origins = (tensors[f"outlook.{name}"] for name in names)
    shapes = {"share": (columns,), "paths": (series, *paths.shape[1:2], columns)}
    shapes |= {"spread": (*spread.shape[:1], columns), "origins": spread.shape[:1]}
    for name, shape in shapes.items():
        _check_shape(tensors, f"outlook.{name}", shape)
    followed = paths[:, :, share > 0]
    if not paths.size or not np.isfinite(followed).all() or not np.isin(share, (0, 0.5, 1)).all():
        raise InputError("model.safetensors: outlook.share or outlook.paths is no forecast")
    if not (origins >= 0).all():
        raise InputError("model.safetensors: outlook.origins must not be negative")


def _check_domains(data: SavedData, series: int, sample: int) -> None:
    domains = len(data.domain_windows)
    for name, codes, length in (
        ("latest_domain", data.latest_domain, series),
        ("sample_domain", data.sample_domain, sample),
    ):
        wrong = codes and (len(codes) != length or max(codes) >= max(domains, 1))
        if wrong or (domains and len(codes) != length):
            raise InputError(f"run.json: data.{name} names domains that are not there")


def _check_evidence(evidence: SavedEvidence, variables: int, lags: int) -> None:
    for one in evidence.edges:
        source, target, lag = one.edge
        if source >= variables or target >= variables or not 1 <= lag <= lags:
            raise InputError(f"report.json: there is no edge {list(one.edge)}")
    drawn = [evidence.course.values] if evidence.course else []
    if evidence.course:
        drawn += [some for some in (evidence.course.explained, evidence.course.left) if some]
    if evidence.stretch:
        drawn += [evidence.stretch.values, evidence.stretch.forecast]
        drawn.append([[one] for one in evidence.stretch.error_sd])
    if any(len(rows) != variables for rows in drawn):
        raise InputError("report.json: a curve per variable was expected")


def _check_numbers(name: str, table: Mapping[str, list[Any]], *but: str) -> list[str]:
    """The columns of a table that hold numbers: all but some."""
    columns = [column for column in table if column not in but]
    for column in columns:
        if not all(value is None or type(value) in (int, float) for value in table[column]):
            raise ValueError(f"{name}.{column} must hold numbers")
    return columns


def _check_losses(name: str, table: Mapping[str, list[Any]], variables: tuple[str, ...]) -> None:
    """A table of losses has a row per variable, numbers, and a chosen column that exists."""
    reference = "mean" if name == "nll" else "naive"
    missing = [column for column in ("variable", reference, "chosen") if column not in table]
    if missing:
        raise ValueError(f"{name} has no column {missing[0]!r}")
    if table["variable"] != [*variables] or any(len(c) != len(variables) for c in table.values()):
        raise ValueError(f"{name} has not one row per variable")
    models = _check_numbers(name, table, "variable", "chosen")
    for chosen, row in zip(table["chosen"], range(len(variables)), strict=True):
        if chosen not in models or table[chosen][row] is None:
            raise ValueError(f"{name}.chosen is {str(chosen)[:40]!r}, which has no loss")
