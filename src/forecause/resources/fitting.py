"""Fits as a configuration asks for them: of all windows, and of parts of time by many workers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Protocol

from forecause.common.arrays import Index
from forecause.common.work_sharing import helped, parallel_map
from forecause.config import Config
from forecause.config.thresholds import thresholds
from forecause.data.windows import Windows
from forecause.edges.knowledge import Candidates
from forecause.edges.reading import allowed_inputs
from forecause.errors import InputError
from forecause.forecast.forecaster import Forecaster
from forecause.forecast.input_tests.refits import Refits, refit_folds
from forecause.forecast.selection import UNLIMITED, FitContext, Fitted, Plan, fit_best
from forecause.networks.settings import (
    MLP,
    TARGETS_TOGETHER,
    TrainedSettings,
    check_device,
)
from forecause.progress import QUIET, Progress
from forecause.resources.workers import LOCAL, Workers, gather


class Fit(Protocol):
    """How a part is fitted; to reach other processes, importable by name."""

    def __call__(self, windows: Windows, *, progress: Progress) -> Fitted: ...


def fit_all(
    fit: Fit,
    windows: Windows,
    config: Config,
    workers: Workers = LOCAL,
    progress: Progress = QUIET,
) -> tuple[Fitted, list[Forecaster], Refits | None]:
    """The forecaster, those of the parts of a cross-fit, and its refits if these are its tests."""
    folds = refit_folds(windows) if is_tested_by_refits(config) else []
    learned = [windows.at(fold.train) for fold in folds]
    count, spec = config.forecasting.cross_fit, config.spec
    if can_run_remotely(config, windows) and count + len(folds):
        pieces = [*parts_of(windows, count), *learned]
        fitted, others = fit_together(fit, windows, pieces, config.forecasting.held_out)
    else:
        fitted = fit(windows, progress=progress)
        if spec is not None and spec.instant and workers.ray is None:
            workers = LOCAL  # the fit is over before a process has started
        parts = fit_parts(fit, windows, count, progress, workers)
        # other processes hand their parts back on the processor
        others = [part.to(config.run.device) for part in parts]
        others += [fit(part, progress=progress).forecaster for part in learned]
    parts, own = others[:count], others[count:]
    return fitted, parts, Refits.of(windows, folds, own) if folds else None


def is_tested_by_refits(config: Config) -> bool:
    """Whether edges are chosen by tests of a forecaster on rows that it did not learn from.

    So it is with every forecaster that is asked for by name and is no closed form, whether it is
    trained here or starts from weights.
    """
    return config.spec is not None and not config.spec.adds_up and config.edges.tested


def fit_parts(
    fit: Fit, windows: Windows, count: int, progress: Progress = QUIET, workers: Workers = LOCAL
) -> list[Forecaster]:
    """The forecasters of `count` interleaved parts of the windows."""
    parts = parts_of(windows, count)
    if workers.here or not parts:
        return [fit(part, progress=progress).forecaster for part in parts]

    def done(number: int) -> None:
        progress.step("fitting parts of the data", number / count)

    done(0)
    # The windows of the parts differ in their rows alone, so the data need not travel with each.
    return gather(partial(_fit_rows, fit, windows), [part.rows for part in parts], workers, done)


def parts_of(windows: Windows, count: int) -> list[Windows]:
    """The parts of a cross-fit."""
    least = thresholds().choice.windows_per_part
    if count and len(windows) < least * count:
        raise InputError(
            f"{len(windows)} windows are too few for a cross-fit of {count} parts; use at most "
            f"{len(windows) // least}, or 0 for none."
        )
    return windows.interleaved(count)


def can_run_remotely(config: Config, windows: Windows) -> bool:
    """Whether whole fits are pieces for the helpers of this run, if it has any.

    So it is with networks. Other forecasters, and networks with very many targets, are cut finer.
    """
    spec = config.spec
    if not helped() or spec is None or not issubclass(spec, TrainedSettings):
        return False
    fine = issubclass(spec, MLP) and windows.shape[1] > TARGETS_TOGETHER
    at_hand = spec.weights_use == "none" and windows.in_memory
    if not at_hand or fine:
        return False
    from forecause.networks.network import pick_device

    return pick_device(config.run.device) == "cpu"


def fit_together(
    fit: Fit, windows: Windows, parts: Sequence[Windows], held_out: float
) -> tuple[Fitted, list[Forecaster]]:
    """The fit of all windows and the forecasters of parts of them, each by a helper."""
    rows = [windows.rows, *(part.rows for part in parts)]
    forecasters, losses, nlls, joints = zip(
        *parallel_map(_remote_fit, (fit, windows), rows), strict=True
    )
    fitted = Fitted(forecasters[0], losses[0], *windows.split(held_out), nlls[0], joints[0])
    return fitted, list(forecasters[1:])


def _remote_fit(common: tuple[Fit, Windows], rows: Index) -> tuple[Any, ...]:
    """What is fitted, without the windows, which the caller has."""
    fit, windows = common
    found = fit(replace(windows, rows=rows), progress=QUIET)
    return found.forecaster.picklable(), found.losses, found.nll, found.joint


def _fit_rows(fit: Fit, windows: Windows, rows: Index) -> Forecaster:
    return fit(replace(windows, rows=rows), progress=QUIET).forecaster.picklable()


def fit_as_asked(
    windows: Windows,
    config: Config,
    candidates: Candidates,
    plan: Plan = UNLIMITED,
    progress: Progress = QUIET,
) -> Fitted:
    """Fit the forecaster that the configuration asks for, forbidden inputs kept out."""
    context = fit_context(windows, config, candidates, plan, progress)
    return fit_best(windows, config.forecasting, context)


def fit_context(
    windows: Windows, config: Config, candidates: Candidates, plan: Plan, progress: Progress
) -> FitContext:
    """What a fit needs besides the windows and the options."""
    check_device(config.run.device)
    coding = windows.panel.coding
    allowed = allowed_inputs(candidates.allowed, coding) if candidates.some_forbidden else None
    return FitContext(config.run.seed, config.run.device, allowed, plan, progress)
