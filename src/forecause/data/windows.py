"""Windows: L past rows and the next one, drawn from a panel without copying it.

`Windows` knows which windows there are; a `Window` holds the values of some of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from forecause.data.panel import Panel
from forecause.data.sources.stored import origin_of
from forecause.errors import InputError

NO_ROWS: npt.NDArray[np.int64] = np.empty(0, dtype=np.int64)
MIN_WINDOWS = 20  # fewer cannot be split into a training and a held-out part


@dataclass(frozen=True)
class Scale:
    """Mean and standard deviation per variable, to put every variable on one scale."""

    mean: npt.NDArray[np.float64]  # (variable,)
    sd: npt.NDArray[np.float64]  # (variable,)

    @classmethod
    def of(cls, panel: Panel) -> Scale:
        """Moments over all rows, missing values left out."""
        return cls(*panel.moments)


@dataclass(frozen=True, eq=False)
class Window:
    """The standardised values of a batch of windows: what was, what followed, and where."""

    past: Tensor  # (batch, max_lag, column), oldest step first
    target: Tensor  # (batch, column), the row to be forecast
    domain: Tensor | None = None  # (batch,) index of the target row's domain, if there are any

    @classmethod
    def of(cls, rows: Tensor, domain: Tensor | None = None) -> Window:
        """From neighbouring rows (batch, max_lag + 1, column), the last of which is the target."""
        return cls(rows[:, :-1], rows[:, -1], domain)

    def __len__(self) -> int:
        return len(self.past)

    def __getitem__(self, chosen: slice) -> Window:
        """Some windows of the batch."""
        return self._each(lambda values: values[chosen])

    @property
    def rows(self) -> Tensor:
        """Past and target as neighbouring rows, (batch, max_lag + 1, column)."""
        return torch.cat([self.past, self.target[:, None]], dim=1)

    def blank(self) -> Window:
        """One window of zeros, like these."""
        return self._each(lambda values: values.new_zeros(1, *values.shape[1:]))

    def to(self, device: torch.device) -> Window:
        """The same on a device."""
        return self._each(lambda values: values.to(device))

    def _each(self, change: Callable[[Tensor], Tensor]) -> Window:
        domain = None if self.domain is None else change(self.domain)
        return Window(change(self.past), change(self.target), domain)


@dataclass(frozen=True, eq=False)
class Windows:
    """The windows of a panel whose target rows are `rows`; values are standardised when drawn."""

    panel: Panel
    max_lag: int
    scale: Scale
    rows: npt.NDArray[np.int64]  # the row of each window that is to be predicted
    asked: npt.NDArray[np.int64] | None = None  # the columns to be predicted; None: all

    @classmethod
    def of(cls, panel: Panel, max_lag: int) -> Windows:
        """Every window that lies in one unbroken stretch and touches no missing value.

        Where the panel names the rows to be explained, only those are targets.
        """
        if max_lag < 1:
            raise InputError(f"The largest lag must be at least 1, found {max_lag}.")
        rows = _target_rows(panel, max_lag)
        if len(rows) < MIN_WINDOWS:
            longest = int(np.diff([*panel.starts, panel.rows]).max())
            raise InputError(
                f"Too few rows: with a largest lag of {max_lag} only {len(rows)} windows without "
                f"a missing value are left and at least {MIN_WINDOWS} are needed (the longest "
                f"unbroken stretch has {longest} rows); use a smaller lag, more rows, or fill "
                "short gaps."
            )
        return cls(panel, max_lag, Scale.of(panel), rows)

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
        lengths = np.bincount(self.panel.series)
        possible = int(np.maximum(lengths - self.max_lag, 0).sum())
        if self.panel.explained is not None:
            possible = int(self.panel.explained[_place_in_series(self.panel) >= self.max_lag].sum())
        return 1 - len(_target_rows(self.panel, self.max_lag)) / max(possible, 1)

    @property
    def filled_share(self) -> npt.NDArray[np.float64]:
        """Share of the windows in which the value to be forecast was filled, (column,)."""
        if self.panel.filled is None:
            return np.zeros(len(self.panel.variables))
        return np.asarray(self.panel.filled[self.rows].mean(axis=0))

    def observed(self, column: int) -> Windows:
        """The windows in which a column's value to be forecast was observed, not filled."""
        if self.panel.filled is None:
            return self
        return self.at(np.flatnonzero(~self.panel.filled[self.rows, column]))

    def at(self, chosen: npt.NDArray[np.int64]) -> Windows:
        """The windows with these indices, in this order."""
        return replace(self, rows=self.rows[chosen])

    def draw(self, chosen: npt.NDArray[np.int64]) -> Window:
        """The standardised values of the windows with these indices."""
        rows = self.rows[chosen][:, None] + np.arange(-self.max_lag, 1)
        values, domain = torch.from_numpy(self._standardised(rows)), None
        if self.panel.domain is not None:
            domain = torch.from_numpy(self.panel.domain[rows[:, -1]].astype(np.int64))
        window = Window.of(values, domain)
        if self.asked is not None:
            window = replace(window, target=window.target[:, self.asked])
        return window

    def _standardised(self, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.float32]:
        """The values of rows (window, step), (window, step, variable).

        Windows that overlap are cut from one stretch, whose rows are standardised once; either
        way in float64, whatever the data is.
        """
        table = self.panel.values
        first = int(rows[:, 0].min(initial=len(table)))
        end = int(rows[:, -1].max(initial=0)) + 1
        if end - first <= rows.size:
            return _scaled(table[first:end], self.scale).take(rows - first, axis=0)
        # take is faster, but would copy a table that is not contiguous
        quick = isinstance(table, np.ndarray) and table.flags.c_contiguous
        values = table.take(rows, axis=0) if quick else table[rows]
        return _scaled(values, self.scale)

    @property
    def in_memory(self) -> bool:
        """Whether the table is no file's, be it through views of views."""
        table: npt.NDArray[Any] | None = self.panel.values
        while table is not None and not isinstance(table, np.memmap):
            table = table.base if isinstance(table.base, np.ndarray) else None
        return table is None

    def lent(self) -> Windows:
        """What another process needs to draw windows, which are then named by their rows.

        A table that was read from large Parquet files is read there by whoever needs its rows.
        """
        panel = copy(self.panel)
        stored = origin_of(panel.values)
        less = {"series": NO_ROWS, "time": None, "explained": None, "filled": None, "course": None}
        panel.__dict__.pop("incomplete", None)  # which is worked out again if needed
        panel.__dict__.update(less, values=panel.values if stored is None else stored)
        return Windows(panel, self.max_lag, self.scale, NO_ROWS)

    def in_domain(self, domain: int) -> Windows:
        """The windows whose target row lies in the domain with this index."""
        assert self.panel.domain is not None
        return self.at(np.flatnonzero(self.panel.domain[self.rows] == domain))

    def batches(self, size: int) -> Iterator[Window]:
        """All windows in order, `size` at a time."""
        for start in range(0, len(self), size):
            yield self.draw(np.arange(start, min(start + size, len(self))))

    def targets(self) -> npt.NDArray[np.float64]:
        """What is to be forecast, standardised, (window, column)."""
        return np.concatenate([batch.target.double().numpy() for batch in self.batches(4096)])

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

    def interleaved(self, parts: int, blocks: int = 20) -> list[Windows]:
        """Disjoint parts, each of every parts-th of `blocks` stretches of time."""
        block = np.arange(len(self)) * blocks // max(len(self), 1)
        return [self.at(np.flatnonzero(block % parts == part)) for part in range(parts)]

    def sample(self, count: int, rng: np.random.Generator) -> Windows:
        """At most `count` windows, drawn evenly at random, in time order."""
        if len(self) <= count:
            return self
        return self.at(np.sort(rng.choice(len(self), count, replace=False)))

    def spread(self, count: int, pieces: int = 20) -> Windows:
        """At most `count` windows: runs of neighbours, spread evenly over time, so that both short
        and long stretches of time can be compared."""
        if len(self) <= count:
            return self
        length = count // pieces
        first = np.linspace(0, len(self) - length, pieces).astype(np.int64)
        return self.at((first[:, None] + np.arange(length)).ravel())


def _target_rows(panel: Panel, max_lag: int) -> npt.NDArray[np.int64]:
    """The last rows of all windows that can be used."""
    rows = _complete_rows(panel, max_lag)
    return rows if panel.explained is None else rows[panel.explained[rows]]


def _place_in_series(panel: Panel) -> npt.NDArray[np.int64]:
    """The number of each row within its series, from 0; a series' rows stand together."""
    first = np.flatnonzero(np.diff(panel.series, prepend=-1))
    lengths = np.diff(np.append(first, panel.rows))
    return np.arange(panel.rows) - np.repeat(first, lengths)


def _complete_rows(panel: Panel, max_lag: int) -> npt.NDArray[np.int64]:
    """Rows t whose rows t - max_lag .. t are unbroken and complete."""
    complete = np.ones(panel.rows, dtype=bool)
    incomplete = np.flatnonzero(panel.incomplete)
    for lag in range(max_lag + 1):
        if lag < max_lag:
            complete[(panel.starts + lag)[panel.starts + lag < panel.rows]] = False
        complete[(incomplete + lag)[incomplete + lag < panel.rows]] = False
    return np.flatnonzero(complete).astype(np.int64)


def _scaled(values: npt.NDArray[Any], scale: Scale) -> npt.NDArray[np.float32]:
    """Values (..., variable) in standard deviations from the mean."""
    scaled = values - scale.mean
    scaled /= scale.sd
    return scaled.astype(np.float32)
