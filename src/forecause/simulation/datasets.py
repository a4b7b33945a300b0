"""Small data sets of named systems whose true graph is known: for guides, lessons and trials.

Every function simulates its system and gives a `Dataset`: a table with time stamps and units, and
the graph that made it.

>>> import forecause as fc
>>> basin = fc.datasets.river_basin(rows=400)
>>> list(basin.table.columns)
['date', 'rain_mm', 'temperature_c', 'snow_cm', 'soil_pct', 'river_m3s', 'reservoir_hm3']
>>> ("rain_mm", "river_m3s", 2) in basin.edges
True
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pandas as pd

from forecause.errors import InputError
from forecause.graph.lagged import LaggedGraph

__all__ = [
    "Dataset",
    "brain_regions",
    "monthly_economy",
    "power_grid",
    "river_basin",
    "service_metrics",
]

Array = npt.NDArray[np.float64]
Response = float | Callable[[float], float]  # what a source adds to its target
Links = Mapping[tuple[str, str, int], Response]  # by (source, target, lag)

BURN_IN = 300  # rows left out at the start


def __dir__() -> list[str]:
    """What completion offers: the data sets."""
    return __all__


@dataclass(frozen=True, eq=False)
class Dataset:
    """A table, and what is true about it."""

    table: pd.DataFrame  # the time first, then the variables
    graph: LaggedGraph  # what drives what; one graph per state in `domains` where it changes
    about: str  # one sentence: what it is and what is difficult about it

    @property
    def edges(self) -> set[tuple[str, str, int]]:
        """The true links as (source, target, lag)."""
        table = self.graph.edges
        return set(zip(table["source"], table["target"], table["lag"], strict=True))


def river_basin(rows: int = 1461, seed: int = 0) -> Dataset:
    """A mountain river, daily: rain and melting snow fill the soil, the river and a reservoir."""
    rng = _checked_rng(rows, seed)
    names = ["rain_mm", "temperature_c", "snow_cm", "soil_pct", "river_m3s", "reservoir_hm3"]
    links: Links = {
        ("temperature_c", "temperature_c", 1): 0.7,
        ("temperature_c", "snow_cm", 1): -0.5,
        ("snow_cm", "snow_cm", 1): 0.9,
        ("rain_mm", "soil_pct", 1): 0.8,
        ("soil_pct", "soil_pct", 1): 0.8,
        ("rain_mm", "river_m3s", 2): 1.2,
        ("soil_pct", "river_m3s", 1): 1.2,
        ("temperature_c", "river_m3s", 3): 0.8,
        ("river_m3s", "river_m3s", 1): 0.5,
        ("river_m3s", "reservoir_hm3", 1): 0.25,
        ("reservoir_hm3", "reservoir_hm3", 1): 0.9,
    }
    drive = np.tile([0.0, 2.4, 17.0, 5.0, -25.0, 5.0], (rows + BURN_IN, 1))
    year = np.sin(2 * np.pi * (np.arange(len(drive)) - BURN_IN - 110) / 365.25)
    drive[:, 1] += 2.7 * year
    noise = rng.normal(size=drive.shape) * [0.0, 2.0, 1.5, 1.5, 3.0, 2.0]
    noise[:, 0] = rng.gamma(0.7, 5.0, len(drive)) * (1 - 0.3 * year)  # few days are very wet
    return _dataset(
        names,
        links,
        _run(names, links, drive + noise),
        pd.date_range("2019-01-01", periods=rows, freq="D", name="date"),
        "Daily; every variable follows the year, and water takes two ways to the river.",
    )


def power_grid(rows: int = 24 * 84, seed: int = 0) -> Dataset:
    """A power system, hourly: weather drives demand and wind power, both drive gas and price."""
    rng = _checked_rng(rows, seed)
    names = ["temperature_c", "wind_ms", "demand_mw", "wind_power_mw", "gas_power_mw", "price_eur"]
    links: Links = {
        ("temperature_c", "temperature_c", 1): 0.9,
        ("wind_ms", "wind_ms", 1): 0.85,
        ("temperature_c", "demand_mw", 2): -12.0,
        ("demand_mw", "demand_mw", 1): 0.6,
        ("wind_ms", "wind_power_mw", 1): lambda wind: 60 * float(np.clip(wind - 3, 0, 10)),
        ("demand_mw", "gas_power_mw", 1): 0.5,
        ("wind_power_mw", "gas_power_mw", 1): -0.6,
        ("gas_power_mw", "gas_power_mw", 1): 0.3,
        ("gas_power_mw", "price_eur", 1): 0.03,
        ("price_eur", "price_eur", 1): 0.5,
    }
    hour = np.arange(rows + BURN_IN) - BURN_IN
    day, week = np.sin(2 * np.pi * (hour - 9) / 24), hour // 24 % 7 < 5
    drive = np.tile([0.6, 1.2, 480.0, 80.0, 150.0, 15.0], (len(hour), 1))
    drive[:, 0] += 0.5 * day
    drive[:, 2] += 70 * day + 60 * week
    drive[:, 5] += 3.0 * day
    noise = rng.normal(size=drive.shape) * [0.8, 1.0, 25.0, 25.0, 25.0, 3.0]
    return _dataset(
        names,
        links,
        _run(names, links, drive + noise),
        pd.date_range("2024-01-01", periods=rows, freq="h", name="time"),
        "Hourly; demand and price follow the hour and the day of the week.",
    )


def monthly_economy(rows: int = 240, seed: int = 0) -> Dataset:
    """An economy, monthly: few rows, and levels that wander; what drives is in the changes."""
    rng = _checked_rng(rows, seed)
    names = ["oil_usd", "inflation_pct", "policy_rate_pct", "output_index", "unemployment_pct"]
    links: Links = {
        ("oil_usd", "inflation_pct", 1): 0.04,
        ("inflation_pct", "policy_rate_pct", 2): 0.5,
        ("policy_rate_pct", "policy_rate_pct", 1): 0.3,
        ("policy_rate_pct", "output_index", 3): -2.0,
        ("output_index", "unemployment_pct", 1): -0.15,
        ("unemployment_pct", "inflation_pct", 3): -0.8,
    }
    drive = np.tile([0.0, 0.0, 0.0, 0.12, 0.01], (rows + BURN_IN, 1))  # drifts
    noise = rng.normal(size=drive.shape) * [2.0, 0.09, 0.09, 0.4, 0.07]
    changes = _run(names, links, drive + noise)
    levels = np.array([70.0, 3.0, 3.0, 100.0, 6.0]) + changes.cumsum(0)
    return _dataset(
        names,
        links,
        levels,
        pd.date_range("2004-01-01", periods=rows, freq="MS", name="month"),
        "Monthly; every level is a random walk, so look at changes (difference=True).",
    )


def service_metrics(rows: int = 288 * 8, seed: int = 0) -> Dataset:
    """A web shop, every five minutes, with an incident: its disk is slow for three hours.

    The column `incident` says when. Nothing but the disk is disturbed; the rest follows.
    """
    rng = _checked_rng(rows, seed)
    names = [
        *("visitors", "web_cpu_pct", "web_latency_ms", "cache_hits_pct", "orders_cpu_pct"),
        *("orders_queue", "disk_wait_ms", "db_latency_ms", "db_connections", "errors_per_min"),
    ]
    links: Links = {
        ("visitors", "visitors", 1): 0.8,
        ("visitors", "web_cpu_pct", 1): 0.06,
        ("visitors", "orders_cpu_pct", 1): 0.05,
        ("visitors", "cache_hits_pct", 1): 0.02,
        ("web_cpu_pct", "web_cpu_pct", 1): 0.4,
        ("orders_cpu_pct", "orders_queue", 1): 0.4,
        ("orders_queue", "orders_queue", 1): 0.5,
        ("disk_wait_ms", "disk_wait_ms", 1): 0.6,
        ("disk_wait_ms", "db_latency_ms", 1): 2.0,
        ("cache_hits_pct", "db_latency_ms", 1): -0.8,
        ("db_latency_ms", "db_connections", 1): 0.5,
        ("db_connections", "db_connections", 1): 0.4,
        ("db_connections", "orders_queue", 2): 0.5,
        ("db_latency_ms", "web_latency_ms", 1): 0.9,
        ("web_cpu_pct", "web_latency_ms", 1): 0.8,
        ("orders_queue", "errors_per_min", 1): lambda queue: 0.3 * max(queue - 60, 0),
    }
    slot = np.arange(rows + BURN_IN) - BURN_IN
    drive = np.tile([100.0, 8.0, 20.0, 60.0, 10.0, 0.0, 2.0, 100.0, 5.0, 1.0], (len(slot), 1))
    drive[:, 0] += 25 * np.sin(2 * np.pi * (slot - 108) / 288)
    start = rows - min(rows // 4, 150)
    incident = (slot >= start) & (slot < start + 36)
    drive[incident, names.index("disk_wait_ms")] += 12
    sizes = [12.0, 2.0, 6.0, 1.5, 2.0, 2.5, 0.6, 3.0, 2.0, 0.6]
    dataset = _dataset(
        names,
        links,
        _run(names, links, drive + rng.normal(size=drive.shape) * sizes),
        pd.date_range("2024-03-04", periods=rows, freq="5min", name="time"),
        "Every five minutes; visitors follow the day, and the disk fails near the end.",
    )
    dataset.table["incident"] = incident[BURN_IN:]
    return dataset


def brain_regions(rows: int = 600, subjects: int = 3, seed: int = 0) -> Dataset:
    """Six brain regions of several subjects, one row a second, that rest and then do a task.

    The columns `subject` and `state` say who and what. Each state has a graph of its own.
    """
    _checked_rng(min(rows, subjects), seed)
    names = ["V1", "V4", "IT", "PFC", "PMC", "M1"]
    own: Links = {(name, name, 1): 0.5 for name in names}
    rest: Links = {**own, ("V1", "V4", 1): 0.4, ("PFC", "IT", 2): 0.3, ("M1", "PMC", 1): 0.4}
    task: Links = {
        **own,
        ("V1", "V4", 1): 0.6,
        ("V4", "IT", 1): 0.5,
        ("IT", "PFC", 2): 0.5,
        ("PFC", "PMC", 1): 0.5,
        ("PMC", "M1", 1): 0.6,
    }
    half = rows // 2
    tables = []
    for subject in range(subjects):
        rng = np.random.default_rng([seed, subject])
        shocks = rng.normal(size=(rows + BURN_IN, len(names)))
        resting = _run(names, rest, shocks[: BURN_IN + half])
        doing = _run(names, task, shocks[BURN_IN + half :], before=resting)
        table = pd.DataFrame(np.vstack([resting, doing]), columns=names).round(4)
        table.insert(0, "subject", f"S{subject + 1}")
        table.insert(1, "second", np.arange(rows))
        table["state"] = np.where(np.arange(rows) < half, "rest", "task")
        tables.append(table)
    whole = _graph(names, {**rest, **task})
    domains = {"rest": _graph(names, rest), "task": _graph(names, task)}
    return Dataset(
        pd.concat(tables, ignore_index=True),
        replace(whole, domains=domains),
        "Several series of one second a row; the graph changes between rest and task.",
    )


def _checked_rng(rows: int, seed: int) -> np.random.Generator:
    if rows < 1 or seed < 0:
        raise InputError(
            f"rows and subjects must be at least 1 and seed at least 0, found {rows} and {seed}."
        )
    return np.random.default_rng(seed)


def _run(names: Sequence[str], links: Links, pushes: Array, before: Array | None = None) -> Array:
    """(row, variable): each row its push and what the links add.

    Goes on after the rows `before`; without them, starts at rest and drops the first BURN_IN rows.
    """
    place = {name: column for column, name in enumerate(names)}
    terms = [(place[s], place[t], lag, response) for (s, t, lag), response in links.items()]
    longest = max(lag for _, _, lag in links)
    past = np.zeros((longest, len(names))) if before is None else before[-longest:]
    values = np.vstack([past, pushes])
    for row in range(longest, len(values)):
        for source, target, lag, response in terms:
            value = float(values[row - lag, source])
            values[row, target] += response(value) if callable(response) else response * value
    return values[longest + (BURN_IN if before is None else 0) :]


def _graph(names: Sequence[str], links: Links) -> LaggedGraph:
    return LaggedGraph.from_edges(names, max(lag for _, _, lag in links), list(links))


def _dataset(
    names: Sequence[str], links: Links, values: Array, time: pd.DatetimeIndex, about: str
) -> Dataset:
    table = pd.DataFrame(values, columns=list(names)).round(4)
    table.insert(0, str(time.name), time)
    return Dataset(table, _graph(names, links), about)
