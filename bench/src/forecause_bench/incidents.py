"""Who caused it: `forecause bench incidents`, simulated and, with --data, recorded incidents.

Simulated: linear systems of 12 variables; calm rows, then an incident of one of five kinds whose
root is known. The event is given as a file that continues the calm rows or does not, and cut at
several places. Recorded: Sock Shop and PetShop as they are published, from a folder. The same rules
of `run.explain` for all of them, beside naive rules and the chance level.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from forecause.discovery import Discovery
from forecause.errors import InputError
from forecause.method import discover

FIRST_SEED = 31_000  # the rules were looked at on others
ROWS = (1_000,)  # calm ones
SEEDS = 20
NODES, LAGS = 12, 2
LENGTH = 40  # rows of an event
KINDS = ("mean shift", "variance", "broken link", "new link", "two roots")
CUTS = (
    (0, 30),
    (15, 60),
    (60, 180),
    (120, 1320),
)  # minutes before and after: half an hour to a day
SHIFT, LOUDER, LINK = 3.0, 3.0, 0.6
RULES = ("Forecause", "Forecause, target known", "naive z", "own past")

Array = npt.NDArray[np.float64]


def measure(
    first_seed: int, seeds: int, rows: Sequence[int], data: Path | None
) -> Iterator[pd.DataFrame]:
    """A line for every incident and rule: whether the root is first, and among the first three."""
    if data is not None:
        yield from recorded(data)
        return
    for seed in range(first_seed, first_seed + seeds):
        for count in rows:
            yield pd.DataFrame(of_system(seed, count)).assign(seed=seed, rows=count)


def of_system(seed: int, rows: int) -> list[dict[str, Any]]:
    """All incidents of one system."""
    system = System(seed)
    calm = system.run(rows, rng=np.random.default_rng([seed, 1]))
    run = discover(table(calm, 0), LAGS, forecaster="linear", season="none", seed=seed)
    lines = []
    for place, kind in enumerate((*KINDS, "calm")):
        rng = np.random.default_rng([seed, 2, place])
        roots, changed = system.incident(kind, rng)
        for gap in (0, 500):
            start = system.run(gap, calm[-LAGS:], rng=rng) if gap else calm[-LAGS:]
            event = changed.run(LENGTH, start[-LAGS:], rng=rng)
            told = run.explain(data=table(event, rows + gap))
            about: dict[str, Any] = {"kind": kind, "history": "gap" if gap else "touches"}
            if kind == "calm":
                flagged = None if told.p_value is None else float(told.p_value <= 0.05)
                lines.append(about | {"rule": "Forecause", "flagged": flagged})
                continue
            named = told.causes["variable"].tolist()
            below = system.farthest_below(roots[0])
            aimed = run.explain(data=table(event, rows + gap), target=f"x{below}")
            ranks = {
                RULES[0]: named,
                RULES[1]: aimed.causes["variable"].tolist(),
                RULES[2]: _named(naive_z(calm, event)),
                RULES[3]: _named(own_past(calm, event, start)),
            }
            truth = {f"x{root}" for root in roots}
            lines += [{**about, "rule": r, **hits(found, truth)} for r, found in ranks.items()]
    return lines + cuts(run, system, calm, seed)


def cuts(run: Discovery, system: System, calm: Array, seed: int) -> list[dict[str, Any]]:
    """Whether the first cause is the same wherever the slice about a mean shift is cut."""
    rng = np.random.default_rng([seed, 3])
    (root,), changed = system.incident("mean shift", rng)
    before = system.run(CUTS[-1][0], calm[-LAGS:], rng=rng)
    during = changed.run(LENGTH, before[-LAGS:], rng=rng)
    later = system.run(CUTS[-1][1], during[-LAGS:], rng=rng)
    whole = table(np.concatenate([before, during, later]), len(calm))
    onset = len(before)
    firsts = [
        run.explain(data=whole.iloc[onset - early : onset + late]).causes["variable"].iloc[0]
        for early, late in CUTS
    ]
    same = {
        "same": float(len(set(firsts)) == 1),
        "first": np.mean([f == f"x{root}" for f in firsts]),
    }
    return [{"kind": "cuts", "history": "touches", "rule": "Forecause"} | same]


class System:
    """A stable linear system; `run` continues a past (lag, variable) with noise of sd 1."""

    def __init__(self, seed: int) -> None:
        rng = np.random.default_rng([seed, 0])
        self.weights = np.zeros((LAGS, NODES, NODES))  # (lag - 1, target, source)
        order = rng.permutation(NODES)
        self.weights[0, np.arange(NODES), np.arange(NODES)] = rng.uniform(0.2, 0.6, NODES)
        for place in range(1, NODES):
            for parent in rng.choice(place, min(place, int(rng.integers(1, 3))), replace=False):
                size = rng.uniform(0.25, 0.6) * rng.choice([-1, 1])
                self.weights[rng.integers(LAGS), order[place], order[parent]] = size
        self.shift, self.louder = np.zeros(NODES), np.ones(NODES)

    def incident(self, kind: str, rng: np.random.Generator) -> tuple[list[int], System]:
        """The roots, and the system while the incident lasts."""
        changed = object.__new__(System)
        changed.weights = self.weights.copy()
        changed.shift, changed.louder = self.shift.copy(), self.louder.copy()
        root = int(rng.integers(NODES))
        links = np.argwhere(self._between())  # (lag, target, source)
        if kind == "mean shift":
            changed.shift[root] = SHIFT * rng.choice([-1, 1])
        elif kind == "variance":
            changed.louder[root] = LOUDER
        elif kind == "broken link":
            lag, root, source = (int(i) for i in links[rng.integers(len(links))])
            changed.weights[lag, root, source] = 0.0
        elif kind == "new link":
            free = np.argwhere((self._between().sum(0) == 0) & ~np.eye(NODES, dtype=bool))
            root, source = (int(i) for i in free[rng.integers(len(free))])
            changed.weights[rng.integers(LAGS), root, source] = LINK * rng.choice([-1, 1])
        elif kind == "two roots":
            both = rng.choice(NODES, 2, replace=False)
            changed.shift[both] = SHIFT * rng.choice([-1, 1], 2)
            return [int(one) for one in both], changed
        return [root], changed

    def _between(self) -> npt.NDArray[np.bool_]:
        return np.asarray((self.weights != 0) & ~np.eye(NODES, dtype=bool))

    def farthest_below(self, root: int) -> int:
        """The last variable that a root reaches, itself if it reaches none: where alarms go off."""
        reached = [root]
        for one in reached:
            after = np.flatnonzero(np.asarray(self._between().any(axis=0))[:, one])
            reached += [int(i) for i in after if int(i) not in reached]
        return reached[-1]

    def run(self, rows: int, past: Array | None = None, *, rng: np.random.Generator) -> Array:
        """So many rows (row, variable) after a past, or after 200 others."""
        burn = 200 if past is None else 0
        values = np.zeros((LAGS + burn + rows, NODES))
        if past is not None:
            values[:LAGS] = past
        noise = rng.standard_normal(values.shape) * self.louder + self.shift
        with np.errstate(over="ignore", invalid="ignore"):
            for row in range(LAGS, len(values)):
                values[row] = noise[row]
                for lag in range(1, LAGS + 1):
                    values[row] += self.weights[lag - 1] @ values[row - lag]
        return np.clip(np.nan_to_num(values[LAGS + burn :]), -1e6, 1e6)


def table(values: Array, first: int) -> pd.DataFrame:
    """Rows of a minute each, `first` minutes after the first of all."""
    begin = pd.Timestamp("2026-01-01", tz="UTC") + pd.Timedelta(minutes=first)
    index = pd.date_range(begin, periods=len(values), freq="min", name="time")
    return pd.DataFrame(values, columns=[f"x{i}" for i in range(values.shape[1])], index=index)


def naive_z(calm: Array, event: Array) -> Array:
    """How far the mean moved, in calm sds, (variable,)."""
    moved = np.abs(np.nanmean(event, axis=0) - np.nanmean(calm, axis=0))
    return np.asarray(moved / np.maximum(np.nanstd(calm, axis=0), 1e-12))


def own_past(calm: Array, event: Array, start: Array | None = None) -> Array:
    """The rms of what the own last value leaves, in its calm size, (variable,)."""
    found = np.zeros(calm.shape[1])
    for column in range(calm.shape[1]):
        one, other = calm[:, column], event[:, column]
        if start is not None:
            other = np.concatenate([start[-1:, column], other])
        beta = np.polyfit(one[:-1], one[1:], 1) if one.std() > 0 else np.array([0.0, one.mean()])
        calm_size = np.std(one[1:] - np.polyval(beta, one[:-1]))
        left = other[1:] - np.polyval(beta, other[:-1])
        found[column] = np.sqrt(np.mean(left**2)) / max(float(calm_size), 1e-12)
    return found


def _named(score: Array) -> list[str]:
    return [f"x{i}" for i in np.argsort(-score, kind="stable")]


def hits(found: Sequence[str], truth: set[str]) -> dict[str, float]:
    """Whether a true root is first, and among the first three."""
    return {"first": float(found[0] in truth), "three": float(bool(truth & set(found[:3])))}


def recorded(folder: Path) -> Iterator[pd.DataFrame]:
    """The incidents of Sock Shop and PetShop below a folder."""
    sets = {"sock-shop": sock_shop, "petshop": pet_shop}
    found = [(name, folder / name) for name in sets if (folder / name).is_dir()]
    if folder.name in sets:
        found = [(folder.name, folder)]
    if not found:
        raise InputError(f"{str(folder)!r} has no folder sock-shop or petshop.")
    for name, place in found:
        for lines in sets[name](place):
            yield pd.DataFrame(lines).assign(kind=name, history="gap")


def sock_shop(folder: Path) -> Iterator[list[dict[str, Any]]]:
    """A CPU or memory fault of one service; the file of the fault does not continue the calm."""
    for case in sorted(folder.glob("*-*/*")):
        truth = case.parent.name.replace("-", "_")
        calm, event = (pd.read_csv(case / f"{name}.csv") for name in ("normal", "anomalous"))
        shared = [name for name in calm.columns if name in event.columns]
        run = _calm_run(calm[shared])
        names = list(run.graph.variables)
        told = run.explain(data=event[shared]).causes["variable"].tolist()
        arrays = [part[names].to_numpy(dtype=np.float64) for part in (calm, event)]
        rules = {
            RULES[0]: told,
            RULES[2]: _by(names, naive_z(*arrays)),
            RULES[3]: _by(names, own_past(*arrays)),
        }
        for what, shorten in (("metric", str), ("service", _service)):
            yield [
                {"rule": rule, "what": what, "chance": 1 / len({shorten(n) for n in names})}
                | hits(list(dict.fromkeys(map(shorten, found))), {shorten(truth)})
                for rule, found in rules.items()
            ]


def pet_shop(folder: Path) -> Iterator[list[dict[str, Any]]]:
    """Slow or failing parts of a shop: the metric of the alarm in every part, five-minute rows."""
    traffic = next(iter(sorted(folder.glob("*/noissue")))).parent
    calm = _pet_table(traffic / "noissue" / "metrics.csv")
    calls = pd.read_csv(traffic / "graph.csv", index_col=0)
    runs: dict[tuple[str, str], Discovery] = {}
    for case in sorted(traffic.glob("*/issue_*")):
        about = json.loads((case / "target.json").read_text(encoding="utf-8"))
        alarm, root = about["target"], about["root_cause"]["node"]
        event = _pet_table(case / "metrics.csv")
        own = (alarm["metric"], alarm["agg"])
        known, new = (_of_metric(part, own) for part in (calm, event))
        known = known.dropna(axis=1, thresh=len(known) // 2)
        known = known.interpolate().bfill().reset_index()
        shared = [name for name in known.columns if name in new.columns or name == "time"]
        new = new.reset_index()[shared]
        if own not in runs:
            runs[own] = _calm_run(known[shared])
        run, names = runs[own], [name for name in shared if name != "time"]
        pairs = [
            (callee, caller)
            for caller in names
            for callee in names
            if caller in calls.index and callee in calls.columns and calls.loc[caller, callee]
        ]
        told = run.explain(alarm["timestamp"], new["time"].max(), data=new)
        given = run.explain(
            alarm["timestamp"], new["time"].max(), alarm["node"], data=new, graph=pairs
        )
        late = new[new["time"] >= alarm["timestamp"]]
        arrays = [part[names].to_numpy(dtype=np.float64) for part in (known, late)]
        rules = {
            RULES[0]: told.causes["variable"].tolist(),
            "Forecause, call graph known": given.causes["variable"].tolist(),
            RULES[2]: _by(names, np.nan_to_num(naive_z(*arrays))),
        }
        yield [
            {"rule": rule, "what": "part", "chance": 1 / len(names)} | hits(found, {root})
            for rule, found in rules.items()
        ]


def _calm_run(calm: pd.DataFrame) -> Discovery:
    return discover(calm, LAGS, forecaster="linear", season="none", time="time")


def _by(names: Sequence[str], score: Array) -> list[str]:
    return [names[i] for i in np.argsort(-score, kind="stable")]


def _service(metric: str) -> str:
    return metric.rsplit("_", 1)[0].removesuffix("_lat")


def _pet_table(path: Path) -> pd.DataFrame:
    """Columns (part, metric, statistic), index the time in seconds."""
    table = pd.read_csv(path, header=[0, 1, 2], index_col=0, skiprows=[3])
    table.index = pd.Index(table.index.to_numpy(dtype=np.float64), name="time")
    return table


def _of_metric(part: pd.DataFrame, own: tuple[str, str]) -> pd.DataFrame:
    """One metric and statistic of every part of the shop."""
    return pd.DataFrame(part.xs(own, axis=1, level=(1, 2)))


def summary(found: pd.DataFrame) -> list[pd.DataFrame]:
    """Hits per kind and rule with the chance level, then calm stretches and cuts."""
    shown = found[~found["kind"].isin(["calm", "cuts"])]
    if "chance" in shown:
        keys = ["kind", "what", "rule"]
        table = shown.groupby(keys, sort=False)[["first", "three", "chance"]].mean()
        return [table.assign(cases=shown.groupby(keys, sort=False).size()).reset_index()]
    tables = []
    for keys in (["rule", "kind"], ["rule", "history"], ["rule"]):
        table = shown.groupby(keys, sort=False)[["first", "three"]].mean()
        cases = shown.groupby(keys, sort=False).size()
        tables.append(table.assign(chance=1 / NODES, incidents=cases).reset_index())
    calm, cut = (found[found["kind"] == kind] for kind in ("calm", "cuts"))
    beside = {
        "calm stretches": len(calm),
        "flagged at 5 %": calm["flagged"].mean(),
        "slices": len(CUTS) * len(cut),
        "same first cause": cut["same"].mean(),
        "the root": cut["first"].mean(),
    }
    return [*tables, pd.DataFrame([beside])]
