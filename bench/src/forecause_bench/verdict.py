"""Where Forecause wins and where it loses, computed from the results."""

from __future__ import annotations

from collections.abc import Sequence

from forecause_bench.aggregate import LOWER_IS_BETTER, Column, Entry, Results, Row, lead_metric
from forecause_bench.methods import METHODS
from forecause_bench.promises import promises

LEAD = Row("forecause")
LEVEL = 0.005  # a smaller difference is none


def verdict(results: Results) -> list[str]:
    """One line per column against its best truth-free rival, then one per rival over all columns.

    Only rivals with a result for every seed are compared; a rival without one is not a win.
    """
    if LEAD.method not in results.suite.methods:
        nothing = "Forecause's default is not part of this suite, so there is nothing to win here."
        return [nothing, *_not_installed(results)]
    if lead_metric(results.suite) == "silent":  # which rivals, who never doubt, cannot be asked
        return promises(results) + _not_installed(results)
    rivals = [row for row in results.rows(oracle=False) if not METHODS[row.method].ours]
    by_column = [_against_best(results, rivals, column) for column in results.columns()]
    order = {"loses": 0, "wins": 1, "is level": 2, "has no result": 3, "has no rival": 4}
    by_column.sort(key=lambda found: order[found[0]])
    tally = ", ".join(
        f"{outcome} {sum(o == outcome for o, _ in by_column)}"
        for outcome in order
        if any(o == outcome for o, _ in by_column)
    )
    lines = [f"Of {len(by_column)} columns, Forecause against the best rival of each: {tally}."]
    lines.extend(line for _, line in by_column)
    lines.extend(_over_columns(results, rival) for rival in rivals)
    return lines + _own_settings(results) + _aims(results) + _not_installed(results)


def _against_best(results: Results, rivals: Sequence[Row], column: Column) -> tuple[str, str]:
    metric = lead_metric(results.suite)
    own = results.entry(LEAD, column, metric)
    entries = {row: results.entry(row, column, metric) for row in rivals}
    compared = {row: entry for row, entry in entries.items() if entry.complete}
    if not own.complete:
        state = ", ".join(dict.fromkeys(own.troubles)) or "not run"
        return "has no result", f"has no result on {column.heading}: {state}"
    if not compared:
        return "has no rival", f"has no rival on {column.heading}"
    sign = _sign(metric)
    best = max(compared, key=lambda row: sign * compared[row].mean)
    outcome = _outcome(own, compared[best], sign)
    name = metric.rpartition("/")[2].upper()
    line = f"{outcome} on {column.heading}: {name} {own.mean:.2f} against "
    rival = f"{compared[best].mean:.2f} of {best.label}"
    return outcome, f"{line}{rival}{_how_sure(own, compared[best], outcome)}"


def _sign(metric: str) -> int:
    return -1 if metric in LOWER_IS_BETTER else 1


def _outcome(own: Entry, other: Entry, sign: int) -> str:
    difference = sign * (own.mean - other.mean)
    if abs(difference) < LEVEL:
        return "is level"
    return "wins" if difference > 0 else "loses"


def _how_sure(own: Entry, other: Entry, outcome: str) -> str:
    """Whether every seed, that is every system, says the same."""
    if outcome == "is level" or own.asked < 2:
        return ""
    ahead = [own.values[seed] > other.values[seed] for seed in own.values]
    behind = [own.values[seed] < other.values[seed] for seed in own.values]
    return " (in every seed)" if all(ahead) or all(behind) else " (not in every seed)"


def _over_columns(results: Results, rival: Row) -> str:
    metric = lead_metric(results.suite)
    counts = {"wins": 0, "is level": 0, "loses": 0}
    without = 0
    for column in results.columns():
        own, other = (results.entry(row, column, metric) for row in (LEAD, rival))
        if own.complete and other.complete:
            counts[_outcome(own, other, _sign(metric))] += 1
        else:
            without += 1
    line = (
        f"against {rival.label}: wins {counts['wins']}, level {counts['is level']}, "
        f"loses {counts['loses']}"
    )
    return line + (f", not comparable {without}" if without else "")


def _own_settings(results: Results) -> list[str]:
    """Columns on which another setting of Forecause would have done better."""
    lines = []
    metric = lead_metric(results.suite)
    own_rows = [row for row in results.rows(oracle=False) if METHODS[row.method].ours]
    for row in own_rows:
        if row == LEAD:
            continue
        better = []
        for column in results.columns():
            default, other = (results.entry(r, column, metric) for r in (LEAD, row))
            if not (default.complete and other.complete):
                continue
            if _outcome(default, other, _sign(metric)) == "loses":
                better.append(f"{column.heading} ({other.mean:.2f} against {default.mean:.2f})")
        if better:
            lines.append(f"the default is behind {row.label} on {', '.join(better)}")
    return lines


def _aims(results: Results) -> list[str]:
    """How often the time of another method each aim's method took, and whether that is too much."""
    columns = {column.cell.name: column for column in results.columns()}
    lines = []
    for aim in results.suite.aims:
        if aim.column not in columns:
            continue
        times = [
            results.entry(Row(method), columns[aim.column], "seconds")
            for method in (aim.method, aim.than)
        ]
        if not all(entry.complete for entry in times):
            continue
        ratio = times[0].mean / times[1].mean
        outcome = "keeps" if ratio <= aim.most else "misses"
        lines.append(
            f"{outcome} the aim on {aim.column}: {METHODS[aim.method].label} takes {ratio:.2f} "
            f"times as long as {METHODS[aim.than].label}, at most {aim.most:g} are wanted"
        )
    return lines


def _not_installed(results: Results) -> list[str]:
    """Methods that could not run, by the package that they lack."""
    lacking: dict[str, list[str]] = {}
    for name in results.suite.methods:
        errors = {r["error"] for r in results.of_method(name) if r["status"] == "missing"}
        for error in errors:
            lacking.setdefault(error, []).append(METHODS[name].label)
    return [f"not run: {', '.join(labels)}. {error}" for error, labels in lacking.items()]
