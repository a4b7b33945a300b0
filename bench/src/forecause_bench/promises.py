"""What a study of broken promises says in a few lines: sums over the families of a group."""

from __future__ import annotations

from collections.abc import Sequence

from forecause_bench.aggregate import Column, Results, Row

LEAD = Row("forecause")
MOST_SILENT = 0.08  # share of a family's runs that break their promise without a doubt
MOST_FIRM_FALSE = 0.02  # share of the firm links of a group


def promises(results: Results) -> list[str]:
    """For every group of columns how many runs broke their promise in silence, how many firm links
    were false and how many runs were doubted; then the families that did worse than aimed at."""
    groups: dict[str, list[Column]] = {}
    for column in results.columns():
        groups.setdefault(column.cell.group, []).append(column)
    return [line for name, columns in groups.items() for line in _of_group(results, name, columns)]


def _of_group(results: Results, name: str, columns: Sequence[Column]) -> list[str]:
    silent = [one for column in columns for one in _values(results, column, "silent")]
    false, firm, doubted = (
        sum(sum(_values(results, column, metric)) for column in columns)
        for metric in ("firm_false", "firm_links", "doubted")
    )
    lines = [
        f"{name}: {sum(silent):.0f} of {len(silent)} runs break their promise in silence (aim: "
        f"{MOST_SILENT:.0%} of a family), {false:.0f} of {firm:.0f} firm links are false (aim: "
        f"{MOST_FIRM_FALSE:.0%}), {doubted:.0f} of {len(silent)} runs are doubted"
    ]
    above = [
        f"{column.heading} ({sum(values):.0f} of {len(values)})"
        for column in columns
        if (values := _values(results, column, "silent"))
        and sum(values) > MOST_SILENT * len(values)
    ]
    firm_above = [
        f"{column.heading} ({wrong:.0f} of {sum(_values(results, column, 'firm_links')):.0f})"
        for column in columns
        if (wrong := sum(_values(results, column, "firm_false")))
    ]
    if above:
        lines.append(f"{name}: silent more often than aimed at in {', '.join(above)}")
    if firm_above:
        lines.append(f"{name}: firm links that are false in {', '.join(firm_above)}")
    return lines


def _values(results: Results, column: Column, metric: str) -> list[float]:
    return list(results.entry(LEAD, column, metric).values.values())
