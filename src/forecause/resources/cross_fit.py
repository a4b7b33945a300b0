"""Cross-fits: a forecaster for each disjoint part of the windows, fitted by as many workers."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Protocol

import numpy as np
import numpy.typing as npt

from forecause.data.windows import Windows
from forecause.forecast.forecaster import Forecaster
from forecause.forecast.selection import Fitted
from forecause.progress import QUIET, Progress
from forecause.resources.workers import LOCAL, Workers, gather


class Fit(Protocol):
    """How a part is fitted; to reach other processes, importable by name."""

    def __call__(self, windows: Windows, *, progress: Progress) -> Fitted: ...


def fit_parts(
    fit: Fit, windows: Windows, count: int, progress: Progress = QUIET, workers: Workers = LOCAL
) -> list[Forecaster]:
    """The forecasters of `count` interleaved parts of the windows.

    Those that other processes fitted are on the processor, wherever they were fitted.
    """
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
