"""Every number that decides a result: what it bounds, and the command that measures it.

A run keeps its thresholds in `run.json`. An expert sets some with `fc.Config(thresholds={"edges":
{"least_share": 0.001}})` or `--set thresholds.edges.least_share=0.001`. Numbers that only bound
time or memory stay where they are used.

Functions read the thresholds of the run that is at work: `thresholds().edges.least_share`. The run
sets them once, `with using(config.thresholds)`, around all of its work; threads and processes that
help it are given the same ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Annotated, Any

from pydantic import Field

from forecause.config.spec import Settings, check_names
from forecause.errors import InputError

Share = Annotated[float, Field(ge=0, le=1)]
Positive = Annotated[float, Field(gt=0)]
Count = Annotated[int, Field(ge=1)]

CALIBRATION = "forecause bench calibration"
WEAK_LINKS = "python -m forecause_bench.weak_links"
CERTAINTY = "python -m forecause_bench.certainty"
NULLS = "forecause bench nulls"
ALERTS = "forecause bench alerts"


def _number(default: Any, bounds: str, measured_by: str) -> Any:
    """A threshold: its value, what it bounds, and the command that measures what it does."""
    return Field(
        default=default, description=bounds, json_schema_extra={"measured_by": measured_by}
    )


class EdgeThresholds(Settings):
    """Which tested candidates become edges, and in which order they are ranked."""

    usual_fdr: Share = _number(0.02, "accepted share of false edges", CALIBRATION)
    usual_fdr_few: Share = _number(0.05, "the same below `few_windows`", WEAK_LINKS)
    usual_fdr_weak: Share = _number(
        0.1, "the same below `few_windows` where the links are weak", WEAK_LINKS
    )
    few_windows: Count = _number(1500, "windows below which a run is short", WEAK_LINKS)
    firm_q: Share = _number(0.001, "largest q-value of a link that is not weak", WEAK_LINKS)
    firm_share: Share = _number(
        0.75, "share of links that are not weak, below which the links are weak", WEAK_LINKS
    )
    least_share: Share = _number(
        0.003, "least share of a target's variation that a cause moves", WEAK_LINKS
    )


class DiagnosisThresholds(Settings):
    """When a check of the diagnosis finds something: how significant, and how large at least.

    The significance and the gain were chosen on seeds 100 to 115 of `forecause bench alerts`: a
    level of 0.001 misses 5 of 16 changes of regime in 500 rows where 0.005 misses 2, for 1 instead
    of 2 doubts about 128 sound systems; a gain of 0.03 instead of 0.05 finds no change more.
    """

    level: Share = _number(
        0.005, "significance of each check, shared by all that it compares", ALERTS
    )
    least_correlation: Share = _number(
        0.1, "correlation of residuals below which it does not matter", ALERTS
    )
    least_gain: Share = _number(
        0.05, "share of the noise that models of each part explain, else effects are one", ALERTS
    )
    same_variable: Share = _number(
        0.98, "correlation, of levels and of steps, from which two variables are one", ALERTS
    )
    windows_per_number: Positive = _number(
        5.0, "windows per number to be fitted, below which edges will be missed", ALERTS
    )
    windows_per_input: Positive = _number(
        3.0, "windows per input, below which no error rate can be promised", ALERTS
    )
    least_hump: Positive = _number(
        5.0, "power of a drifting cycle's band over that of the bands beside it", ALERTS
    )
    least_band_share: Share = _number(0.25, "share of a variable's variance in that band", ALERTS)
    least_cycles: Positive = _number(
        3.0, "times that the slowest cycle which is looked for passes in the data", ALERTS
    )
    near_unit_root: Share = _number(
        0.95, "sum of a variable's autoregressive coefficients from which it wanders", NULLS
    )
    least_level_change: Positive = _number(
        0.5, "difference of the means of two halves, in standard deviations", NULLS
    )
    least_noise_ratio: Positive = _number(
        2.0, "ratio of the unexplained variances of two halves", NULLS
    )
    hardly_forecast: Share = _number(
        0.98, "held-out loss over the mean's from which hardly anything is forecast", NULLS
    )


class Thresholds(Settings):
    """All numbers that decide a result, in groups.

    Examples
    --------
    >>> import forecause as fc
    >>> fc.Config(thresholds={"edges": {"least_share": 0.001}}).thresholds.edges.least_share
    0.001
    """

    edges: EdgeThresholds = EdgeThresholds()
    diagnosis: DiagnosisThresholds = DiagnosisThresholds()

    @classmethod
    def of(cls, asked: Thresholds | Mapping[str, Any]) -> Thresholds:
        """The usual thresholds with those replaced that are asked for, by group and name."""
        if isinstance(asked, Thresholds):
            return asked
        if not isinstance(asked, Mapping):
            raise InputError(
                f"thresholds must be numbers by group and name, such as {{'edges': "
                f"{{'least_share': 0.001}}}}, found {asked!r}."
            )
        check_names(asked, cls.model_fields, "group of thresholds")
        groups = {}
        for group, numbers in asked.items():
            kind = type(getattr(THRESHOLDS, group))
            if not isinstance(numbers, kind | Mapping):
                raise InputError(f"thresholds.{group} must be numbers by name, found {numbers!r}.")
            if isinstance(numbers, Mapping):
                check_names(numbers, kind.model_fields, f"threshold of the group {group}:")
                numbers = kind.checked(**numbers)
            groups[group] = numbers
        return cls(**groups)

    @classmethod
    def from_json(cls, saved: Mapping[str, Mapping[str, Any]]) -> Thresholds:
        """Those that a run was saved with; what no longer exists is left out."""
        known = {}
        for group in cls.model_fields.keys() & saved.keys():
            names = type(getattr(THRESHOLDS, group)).model_fields
            known[group] = {name: v for name, v in saved[group].items() if name in names}
        return cls.of(known)

    def changed(self) -> dict[str, dict[str, Any]]:
        """Those that differ from the usual ones, by group and name."""
        found: dict[str, dict[str, Any]] = {}
        for group in type(self).model_fields:
            own, usual = getattr(self, group), getattr(THRESHOLDS, group)
            other = {n: v for n, v in own if v != getattr(usual, n)}
            if other:
                found[group] = other
        return found


THRESHOLDS = Thresholds()
_of_the_run: ContextVar[Thresholds] = ContextVar("thresholds", default=THRESHOLDS)


def thresholds() -> Thresholds:
    """Those of the run that is at work, or the usual ones."""
    return _of_the_run.get()


@contextmanager
def using(chosen: Thresholds) -> Iterator[None]:
    """Inside, `thresholds()` are these."""
    before = _of_the_run.set(chosen)
    try:
        yield
    finally:
        _of_the_run.reset(before)
