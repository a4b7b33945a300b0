"""Fits as a configuration asks for them: of all windows, and of disjoint parts by many workers."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Protocol

import numpy as np
import numpy.typing as npt
import torch

from forecause.config import Config
from forecause.data.windows import Windows
from forecause.edges.knowledge import Candidates
from forecause.edges.reading import allowed_inputs
from forecause.errors import InputError
from forecause.forecast.forecaster import Forecaster
from forecause.forecast.selection import UNLIMITED, FitContext, Fitted, Plan, fit_best
from forecause.progress import QUIET, Progress
from forecause.resources.workers import LOCAL, Workers, gather

LEAST_OF_PART = 20  # windows of each part of a cross-fit


class Fit(Protocol):
    """How a part is fitted; to reach other processes, importable by name."""

    def __call__(self, windows: Windows, *, progress: Progress) -> Fitted: ...


def fit_parts(
    fit: Fit, windows: Windows, count: int, progress: Progress = QUIET, workers: Workers = LOCAL
) -> list[Forecaster]:
    """The forecasters of `count` interleaved parts of the windows.

    Those that other processes fitted are on the processor, wherever they were fitted.
    """
    if count and len(windows) < LEAST_OF_PART * count:
        raise InputError(
            f"{len(windows)} windows are too few for a cross-fit of {count} parts; use at most "
            f"{len(windows) // LEAST_OF_PART}, or 0 for none."
        )
    parts = windows.interleaved(count)
    if workers.here or not parts:
        return [fit(part, progress=progress).forecaster for part in parts]

    def done(number: int) -> None:
        progress.step("fitting parts of the data", number / count)

    done(0)
    # The windows of the parts differ in their rows alone, so the data need not travel with each.
    return gather(partial(_fit_rows, fit, windows), [part.rows for part in parts], workers, done)


def _fit_rows(fit: Fit, windows: Windows, rows: npt.NDArray[np.int64]) -> Forecaster:
    return fit(replace(windows, rows=rows), progress=QUIET).forecaster.cpu()


def fit_as_asked(
    windows: Windows,
    config: Config,
    candidates: Candidates,
    plan: Plan = UNLIMITED,
    progress: Progress = QUIET,
) -> Fitted:
    """Fit the forecaster that the configuration asks for, forbidden inputs kept out."""
    coding = windows.panel.coding
    allowed = allowed_inputs(candidates.allowed, coding) if candidates.some_forbidden else None
    device = pick_device(config.run.device)
    context = FitContext(config.run.seed, device, allowed, plan, progress)
    return fit_best(windows, config.forecasting, context)


def pick_device(asked: str) -> str:
    """`auto` takes CUDA or Apple's GPU when there is one."""
    if asked != "auto":
        try:
            if torch.device(asked).type == "meta":
                raise NotImplementedError  # tensors without values
            return str(torch.empty(0, device=torch.device(asked)).device)
        except (RuntimeError, AssertionError, NotImplementedError, ImportError):
            raise InputError(
                f"The device {asked!r} is unknown or not there; try auto, cpu, cuda or mps."
            ) from None
    if torch.cuda.is_available():
        return "cuda"
    return "mps" if torch.backends.mps.is_available() else "cpu"
