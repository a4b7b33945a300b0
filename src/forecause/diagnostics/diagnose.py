"""One pass of diagnosis: every check that a run goes through, and what they found.

Each check needs both significance and a size that matters, so that neither few nor many rows raise
an alarm by themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from forecause.config import Config
from forecause.data.windows import Windows
from forecause.diagnostics.data_checks import (
    drifting_cycle,
    few_rows,
    few_rows_in_domains,
    near_duplicates,
    odd_values,
)
from forecause.diagnostics.driver_checks import (
    common_driver,
    common_outages,
    common_shocks,
    dependent_columns,
    within_a_row,
)
from forecause.diagnostics.examined import Examined
from forecause.diagnostics.finding import GRAVITIES, Finding
from forecause.diagnostics.forecast_checks import (
    forecast_skill,
    misfit,
    missing_causes,
    own_past_wins,
    residual_memory,
)
from forecause.diagnostics.link_checks import echoed, only_in_events, shocks_ahead
from forecause.diagnostics.stability_checks import changing_effects, level_and_noise
from forecause.forecast.causal import Causal
from forecause.forecast.selection import Fitted
from forecause.graph.lagged import LaggedGraph

Check = Callable[[Examined], Iterator[Finding]]

CHECKS: tuple[Check, ...] = (
    few_rows,
    near_duplicates,
    dependent_columns,
    common_outages,
    common_driver,
    common_shocks,
    only_in_events,
    within_a_row,
    shocks_ahead,
    echoed,
    drifting_cycle,
    residual_memory,
    changing_effects,
    misfit,
    own_past_wins,
    missing_causes,
    forecast_skill,
    few_rows_in_domains,
    odd_values,
    level_and_noise,
)


def diagnose(
    windows: Windows,
    fitted: Fitted,
    graph: LaggedGraph,
    config: Config,
    causal: Causal | None = None,
) -> tuple[Finding, ...]:
    """All findings about a run, the gravest first.

    The bounds are those of `config.thresholds.diagnosis`. Advice that the run has already followed
    is not given again.
    """
    run = Examined(windows, fitted, graph, config.thresholds.diagnosis, causal)
    followed = config.flat()
    findings = [_without(followed, finding) for check in CHECKS for finding in check(run)]
    return tuple(sorted(findings, key=lambda one: -GRAVITIES.index(one.gravity)))


def _without(followed: dict[str, Any], finding: Finding) -> Finding:
    """The finding without advice to set options as they are."""
    new = [
        advice
        for advice in finding.advice
        if advice.value is None or followed.get(advice.option) != advice.value
    ]
    return replace(finding, advice=tuple(new))
