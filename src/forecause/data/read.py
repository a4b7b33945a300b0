"""fc.read: any table as a checked Panel, with the options that `discover` leaves to it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from forecause.config import GapsName, HowName
from forecause.config.spelling import with_known_names
from forecause.data.panel import Panel


@with_known_names
def read(
    data: Any,
    *,
    time: str | None = None,
    series: str | None = None,
    domain: str | None = None,
    labels: Sequence[str] | str = (),
    missing: Sequence[float | str] | float | str = (),
    every: str | float | None = None,
    every_how: HowName = "mean",
    rows: str | None = None,
    interpolate: int = 0,
    gaps: GapsName = "fill",
) -> Panel:
    """Read a table as `discover` takes it, with more to say about its columns, rows and gaps.

    Parameters
    ----------
    data
        A table (pandas, polars, pyarrow, xarray, numpy), a path, or a list of them for several
        series. Time runs down the rows.
    time, series, domain
        Names of the columns with the time, with the series a row belongs to, and with a known
        regime.
    labels
        Columns that hold labels, not numbers.
    missing
        Cells that mean a missing value, such as -9999 or "bad".
    every, every_how
        Put the rows on a regular grid, such as "1h", by their mean, sum or last value.
    rows
        Explain only these rows: a column of truth values, or a condition such as
        "season == 'winter'". Their past may lie outside.
    interpolate, gaps
        Fill gaps of at most `interpolate` missing values by straight lines. Other short gaps are
        filled by what is expected from their neighbours, unless `gaps` is "drop".

    Returns
    -------
    Panel
        The checked table, which remembers how it was read: a run saves it, and reads new data the
        same way.

    Examples
    --------
    >>> import pandas as pd
    >>> import forecause as fc
    >>> flow, weather = [1.0, 2.5, -9999, 4.2] * 10, ["dry", "wet"] * 20
    >>> table = pd.DataFrame({"flow": flow, "weather": weather})
    >>> fc.read(table, labels="weather", missing=-9999).coding.variables
    ('flow', 'weather')
    """
    return Panel.of(
        data,
        time=time,
        series=series,
        domain=domain,
        labels=(labels,) if isinstance(labels, str) else tuple(labels),
        missing=missing,
        every=every,
        every_how=every_how,
        rows=rows,
        interpolate=interpolate,
        gaps=gaps,
    )
