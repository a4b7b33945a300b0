"""Windows: L past rows and the next one, drawn from a panel without copying it.

`Windows` knows which windows there are; a `Window` holds the values of some of them. Regressions
read them as streamed moments, or as samples that are held in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeVar, cast

import numpy as np
import numpy.typing as npt

from forecause.common.work_sharing import parallel_map
from forecause.config.thresholds import thresholds
from forecause.data.panel import Panel, Scale, StandardTable, follow, is_mapped
from forecause.data.sources.parquet import origin_of
from forecause.data.variables import Inputs
from forecause.errors import InputError
from forecause.regression.moments import BATCH, Batch, Moments
from forecause.regression.sample import BLOCKS, Sample

Array = npt.NDArray[np.float64]
Index = npt.NDArray[np.int64]
Single = npt.NDArray[np.float32]

Answer = TypeVar("Answer")

NO_ROWS: Index = np.empty(0, dtype=np.int64)

# Shape of the model:
STRETCHES = 20  # of time, that parts and samples are cut from
CALM_SHARE = 0.8  # of the windows, those with the smallest largest input

# Time and memory:
MOST_HELD = 2_000_000  # values of windows that are kept once drawn: 8 MB
FIT_WORK = 2e11  # windows times squared features of one fit: more add time, hardly precision
MOST_SAMPLED_WINDOWS = 100_000  # of a sample: more add time, hardly edges
MOST_NUMBERS = 100_000_000  # held at once: 400 MB
WINDOWS_AT_ONCE = 1 << 20  # whose moments are one piece of work
ENOUGH_FOR_KNOTS = 100_000  # windows; from twice as many on, every second or more are left out


@dataclass(frozen=True, eq=False)
class Window:
    """The standardised values of a batch of windows: what was, what followed, and where."""

    past: Single  # (batch, max_lag, column), oldest step first
    target: Single  # (batch, column), the row to be forecast
    domain: Index | None = None  # (batch,) index of the target row's domain, if there are any

    @classmethod
    def of(cls, rows: Single, domain: Index | None = None) -> Window:
        """From neighbouring rows (batch, max_lag + 1, column), the last of which is the target."""
        return cls(rows[:, :-1], rows[:, -1], domain)

    def __len__(self) -> int:
        return len(self.past)

    def __getitem__(self, chosen: slice | Index) -> Window:
        """Some windows of the batch."""
        domain = None if self.domain is None else self.domain[chosen]
        return Window(self.past[chosen], self.target[chosen], domain)

    @property
    def rows(self) -> Single:
        """Past and target as neighbouring rows, (batch, max_lag + 1, column)."""
        return np.concatenate([self.past, self.target[:, None]], axis=1)


@dataclass(frozen=True, eq=False)
class Windows:
    """The windows of a panel whose target rows are `rows`; values are standardised when drawn."""

    panel: Panel
    max_lag: int
    scale: Scale
    rows: Index  # the row of each window that is to be predicted
    target_columns: Index | None = None  # the columns to be predicted; None: all
    table: StandardTable | None = None  # shared by all windows that are made from each other

    @classmethod
    def of(cls, panel: Panel, max_lag: int) -> Windows:
        """Every window that lies in one unbroken stretch and touches no missing value.

        Where the panel names the rows to be explained, only those are targets.
        """
        if max_lag < 1:
            raise InputError(f"The largest lag must be at least 1, found {max_lag}.")
        rows = _target_rows(panel, max_lag)
        least = thresholds().reading.least_windows
        if len(rows) < least:
            longest = int(np.diff([*panel.starts, panel.rows]).max())
            raise InputError(
                f"Too few rows: with a largest lag of {max_lag} only {len(rows)} windows without "
                f"a missing value are left and at least {least} are needed (the longest "
                f"unbroken stretch has {longest} rows); use a smaller lag, more rows, or fill "
                "short gaps."
            )
        table = panel.standardised
        return cls(panel, max_lag, table.scale, rows, table=table)

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def shape(self) -> tuple[int, int]:
        """(max_lag, number of variables): the shape of one window's past."""
        return self.max_lag, len(self.panel.variables)

    @property
    def inputs(self) -> int:
        """How many numbers a window's past holds."""
        return self.max_lag * len(self.panel.variables)

    @property
    def lost_share(self) -> float:
        """Share of the panel's possible windows that missing values or gaps took away."""
        late = [slice(first + self.max_lag, end) for first, end in self.panel.spans]
        explained = self.panel.explained
        if explained is None:
            possible = sum(max(0, rows.stop - rows.start) for rows in late)
        else:
            possible = sum(int(explained[rows].sum()) for rows in late)
        return 1 - len(_target_rows(self.panel, self.max_lag)) / max(possible, 1)

    @property
    def filled_share(self) -> Array:
        """Share of the windows in which the value to be forecast was filled, (column,)."""
        if self.panel.filled is None:
            return np.zeros(len(self.panel.variables))
        return np.asarray(self.panel.filled[self.rows].mean(axis=0))

    def observed(self, column: int) -> Windows:
        """The windows in which a column's value to be forecast was observed, not filled."""
        if self.panel.filled is None:
            return self
        return self.at(np.flatnonzero(~self.panel.filled[self.rows, column]))

    def at(self, chosen: Index) -> Windows:
        """The windows with these indices, in this order."""
        some = replace(self, rows=self.rows[chosen])
        if self._is_held and follow(chosen):  # neighbours are a part of what is cut already
            some.__dict__["_held"] = self._held[int(chosen[0]) : int(chosen[-1]) + 1]
        return some

    def draw(self, chosen: Index) -> Window:
        """The standardised values of the windows with these indices; see StandardTable."""
        return self._cut(self.rows[chosen])

    def _cut(self, last: Index) -> Window:
        """The windows that end with these rows of the panel."""
        domain = None if self.panel.domain is None else self.panel.domain[last].astype(np.int64)
        window = Window.of(self._standard.windows(last, self.max_lag), domain)
        if self.target_columns is not None:
            window = replace(window, target=window.target[:, self.target_columns])
        return window

    @cached_property
    def _standard(self) -> StandardTable:
        """The table that is shared, unless it is of other values or another scale."""
        table, values = self.table, self.panel.values
        if table is None or table.scale is not self.scale or table.values is not values:
            return StandardTable(values, self.scale)
        return table

    @property
    def in_memory(self) -> bool:
        """True unless the values are memory-mapped."""
        return not is_mapped(self.panel.values)

    def for_pickling(self) -> Windows:
        """What another process needs to draw windows, which are then named by their rows.

        A table that was read from large Parquet files is read there by whoever needs its rows.
        """
        panel = copy(self.panel)
        stored = origin_of(panel.values)
        less = {"series": NO_ROWS, "time": None, "explained": None, "filled": None, "course": None}
        for known in ("incomplete", "standardised"):  # which are worked out again if needed
            panel.__dict__.pop(known, None)
        panel.__dict__.update(less, values=panel.values if stored is None else stored)
        table = self._standard if stored is None else StandardTable(stored, self.scale)
        return Windows(panel, self.max_lag, self.scale, NO_ROWS, table=table)

    def in_domain(self, domain: int) -> Windows:
        """The windows whose target row lies in the domain with this index."""
        assert self.panel.domain is not None
        return self.at(np.flatnonzero(self.panel.domain[self.rows] == domain))

    def whole(self) -> Window:
        """All windows at once, not to be written to; cut once where they are not too many."""
        return self._held if self._is_held else self._cut(self.rows)

    @cached_property
    def _held(self) -> Window:
        return self._cut(self.rows)

    @cached_property
    def _is_held(self) -> bool:
        """Whether all windows are views of the shared table, or few enough to be kept."""
        if len(self) * (self.inputs + self.shape[1]) <= MOST_HELD:
            return True
        return self._standard.whole is not None and follow(self.rows)

    def batches(self, size: int) -> Iterator[Window]:
        """All windows in order, `size` at a time, not to be written to."""
        for start in range(0, len(self), size):
            part = slice(start, start + size)
            yield self._held[part] if self._is_held else self._cut(self.rows[part])

    def targets(self) -> Array:
        """What is to be forecast, standardised, (window, column)."""
        return np.concatenate([batch.target.astype(np.float64) for batch in self.batches(4096)])

    def remembered(self, what: str, work_out: Callable[[], Answer]) -> Answer:
        """What is worked out of these windows once, however many stages ask for it."""
        if what not in self._known:
            self._known[what] = work_out()
        return cast(Answer, self._known[what])

    @cached_property
    def _known(self) -> dict[str, Any]:
        return {}

    @cached_property
    def calm(self) -> Windows:
        """Those without the largest inputs, in units of what is usual for each column."""
        past = self.whole().past
        usual = np.maximum(np.median(np.abs(past), axis=(0, 1)), 1e-12)
        largest = (np.abs(past) / usual).max((1, 2))
        return self.at(np.flatnonzero(largest <= np.quantile(largest, CALM_SHARE)))

    def split(self, held_out: float) -> tuple[Windows, Windows]:
        """Training windows, and the last `held_out` share in time of every series and domain.

        Worked out once for every share: fits, tests and diagnostics ask for the same ones.
        """
        if held_out not in self._splits:
            self._splits[held_out] = self._split(held_out)
        return self._splits[held_out]

    @cached_property
    def _splits(self) -> dict[float, tuple[Windows, Windows]]:
        return {}

    def _split(self, held_out: float) -> tuple[Windows, Windows]:
        panel = self.panel
        group = panel.series[self.rows]
        if panel.domain is not None:
            group = group * len(panel.domain_names) + panel.domain[self.rows]
        order = np.argsort(group, kind="stable")
        sizes = np.bincount(group)
        place = np.arange(len(group)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        late = np.empty(len(group), dtype=bool)
        late[order] = place >= np.repeat(np.ceil(sizes * (1 - held_out)), sizes)
        if not late.any():  # many series of a few windows each: hold out the last of all
            late[int(np.ceil(len(late) * (1 - held_out))) :] = True
        return self.at(np.flatnonzero(~late)), self.at(np.flatnonzero(late))

    def interleaved(self, parts: int, blocks: int = STRETCHES) -> list[Windows]:
        """Disjoint parts, each of every parts-th of `blocks` stretches of time."""
        block = np.arange(len(self)) * blocks // max(len(self), 1)
        return [self.at(np.flatnonzero(block % parts == part)) for part in range(parts)]

    def sample(self, count: int, rng: np.random.Generator) -> Windows:
        """At most `count` windows, drawn evenly at random, in time order."""
        if len(self) <= count:
            return self
        return self.at(np.sort(rng.choice(len(self), count, replace=False)))

    def thin(self, count: int) -> Windows:
        """At most `count` windows: runs of neighbours, spread evenly over time, so that both short
        and long stretches of time can be compared."""
        if len(self) <= count:
            return self
        length = count // STRETCHES
        first = np.linspace(0, len(self) - length, STRETCHES).astype(np.int64)
        return self.at((first[:, None] + np.arange(length)).ravel())


def _target_rows(panel: Panel, max_lag: int) -> Index:
    """The last rows of all windows that can be used."""
    rows = _complete_rows(panel, max_lag)
    return rows if panel.explained is None else rows[panel.explained[rows]]


def _complete_rows(panel: Panel, max_lag: int) -> Index:
    """Rows t whose rows t - max_lag .. t are unbroken and complete."""
    complete = np.ones(panel.rows, dtype=bool)
    incomplete = np.flatnonzero(panel.incomplete)
    for lag in range(max_lag + 1):
        if lag < max_lag:
            complete[(panel.starts + lag)[panel.starts + lag < panel.rows]] = False
        complete[(incomplete + lag)[incomplete + lag < panel.rows]] = False
    return np.flatnonzero(complete).astype(np.int64)


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
