"""Windows as regressions read them: streamed moments, samples held in memory, and knots."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from forecause.data.variables import Inputs
from forecause.data.windows import Windows
from forecause.regression.moments import BATCH, Batch, Moments
from forecause.regression.sample import BLOCKS, Sample
from forecause.work_sharing import parallel_map

Array = npt.NDArray[np.float64]
Index = npt.NDArray[np.int64]
Single = npt.NDArray[np.float32]

# Time and memory:
FIT_WORK = 2e11  # windows times squared features of one fit: more add time, hardly precision
MOST_SAMPLED_WINDOWS = 100_000  # of a sample: more add time, hardly edges
MOST_NUMBERS = 100_000_000  # held at once: 400 MB
WINDOWS_AT_ONCE = 1 << 20  # whose moments are one piece of work
ENOUGH_FOR_KNOTS = 100_000  # windows; from twice as many on, every second or more are left out


def flat(past: Array) -> Array:
    """The linear design: past (batch, step, column) -> (batch, step * column)."""
    return past.reshape(len(past), -1)


def batches_of(
    windows: Windows,
    design: Callable[[Array], Array] = flat,
    response: Callable[[Array, Array], Array] | None = None,
) -> Iterator[Batch]:
    """Features and responses of all windows, in float64.

    `design` maps the past of a batch to features, `response` past and target to what is explained,
    which is otherwise the target itself.
    """
    for window in windows.batches(BATCH):
        past, target = window.past.astype(np.float64), window.target.astype(np.float64)
        yield design(past), response(past, target) if response else target


def moments_of(
    windows: Windows,
    design: Callable[[Array], Array] = flat,
    response: Callable[[Array, Array], Array] | None = None,
) -> Moments:
    """Stream the windows once; see `batches_of`."""
    return Moments.summed(batches_of(windows, design, response))


def moments_by_block(
    windows: Windows, design: Callable[[Array], Array], features: int
) -> list[Moments]:
    """The moments of BLOCKS consecutive stretches of the windows, or of a sample of them."""
    windows = windows.sample(int(FIT_WORK / features**2), np.random.default_rng(0))
    pieces = [
        (block, rows)
        for block, stretch in enumerate(np.array_split(windows.rows, BLOCKS))
        for rows in np.array_split(stretch, -(-len(stretch) // WINDOWS_AT_ONCE) or 1)
        if len(rows)
    ]
    # each piece is shared by threads of its own, batch by batch
    common = windows.for_pickling(), design
    summed = parallel_map(_moments_of_rows, common, [rows for _, rows in pieces], 0.0)
    by_block: dict[int, list[Moments]] = {}
    for (block, _), part in zip(pieces, summed, strict=True):
        by_block.setdefault(block, []).append(part)
    return [Moments.added(parts) for parts in by_block.values()]


def _moments_of_rows(common: tuple[Windows, Callable[[Array], Array]], rows: Index) -> Moments:
    """The moments of the windows with these rows."""
    windows, design = common
    return moments_of(replace(windows, rows=rows), design)


def past_and_targets(windows: Windows) -> tuple[Single, Single]:
    """All inputs (window, step * column) and targets (window, column), of at most as many windows
    as can be held."""
    steps, columns = windows.shape
    most = MOST_NUMBERS // ((steps + 1) * columns)
    (rows,) = sample_of(windows.sample(most, np.random.default_rng(0))).rows
    return rows[:, :-columns], rows[:, -columns:]


def sample_of(windows: Windows) -> Sample:
    """All of these windows, held in memory."""
    steps, columns = windows.shape
    rows = np.empty((len(windows), (steps + 1) * columns), dtype=np.float32)
    filled = 0
    for batch in windows.batches(BATCH):
        rows[filled : filled + len(batch)] = batch.rows.reshape(len(batch), -1)
        filled += len(batch)
    return Sample((rows,), columns)


def early_and_late(windows: Windows, late: float) -> tuple[Sample, Sample]:
    """At most as many windows as are worth their time, the last in time apart."""
    steps, columns = windows.shape
    most = min(MOST_SAMPLED_WINDOWS, MOST_NUMBERS // ((steps + 1) * columns))
    early, rest = windows.sample(most, np.random.default_rng(0)).split(late)
    return sample_of(early), sample_of(rest)


def place_knots(windows: Windows, count: int) -> Array:
    """Quantiles of each variable, (variable, knot).

    A variable with too few distinct values gets one knot repeated, which bends nowhere.
    """
    step = max(1, len(windows) // ENOUGH_FOR_KNOTS)
    latest = (windows if step == 1 else windows.at(np.arange(0, len(windows), step))).targets()
    # one variable at a time: quantiles of all would hold several times the sample
    shares = np.linspace(0.05, 0.95, count)
    knots = np.stack([np.quantile(values, shares) for values in latest.T])
    tied = (np.diff(knots, axis=1) <= 1e-6).any(1)
    knots[tied] = knots[tied][:, :1]
    return knots


def inputs_of(windows: Windows) -> Inputs:
    """The inputs that these windows can tell about."""
    panel = windows.panel
    return Inputs.of(panel.coding, windows.max_lag, panel.values[windows.rows])
