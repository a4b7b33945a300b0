"""What can be seen in the data itself: too few rows, odd values, near copies, a drifting cycle."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from forecause.common.arrays import Array
from forecause.config.advice import Advice, hint
from forecause.config.thresholds import DiagnosisThresholds
from forecause.diagnostics.examined import MOST_WINDOWS, Examined, by_size, named, of_variables
from forecause.diagnostics.finding import Finding, Links, into, listed, strongest
from forecause.regression.screen import inputs_at_once

# Time and memory:
BAND_STEP = 1.1  # from the centre of a band to the next


def few_rows(run: Examined) -> Iterator[Finding]:
    """Fewer windows than the numbers that are fitted need."""
    count, inputs = len(run.windows), run.windows.inputs
    at_once = inputs_at_once(inputs, count)
    terms = run.bounds.numbers_of_curve
    curved = bool((run.fitted.losses["chosen"] != "linear").any())
    numbers = at_once * (terms if curved else 1)
    far_too_few = count < run.bounds.windows_per_input * at_once
    if far_too_few or count < run.bounds.windows_per_number * numbers:
        effects = f"curved effects of {terms} numbers each" if curved else "one number each"
        advice = [hint("use more rows"), Advice("max_lag", words="a smaller lag window")]
        advice += [hint("fewer variables")]
        advice += [Advice("forecaster", "linear")] if curved else []
        yield Finding(
            "few-rows",
            f"There are {'only ' if far_too_few else ''}{count:,} windows for {inputs} inputs "
            f"({effects}), fewer than {run.bounds.windows_per_number:g} for every number to be "
            "fitted, so edges will be missed",
            gravity="doubt" if far_too_few else "alert",
            evidence={"windows": count, "inputs": inputs, "numbers fitted at once": numbers},
            advice=tuple(advice),
        )


def few_rows_in_domains(run: Examined) -> Iterator[Finding]:
    """Domains that were too short to be given a graph."""
    names = run.windows.panel.domain_names
    short = [name for name in names if name not in run.graph.domains] if len(names) > 1 else []
    if short:
        counts = {name: len(run.windows.in_domain(names.index(name))) for name in short}
        shown = listed([f"{name} ({count})" for name, count in counts.items()])
        yield Finding(
            "few-rows-in-domain",
            f"Too few windows for a graph of their own have the domains {shown}",
            evidence={name: float(count) for name, count in counts.items()},
            advice=(
                hint("join them with others"),
                Advice("max_lag", words="use a smaller lag window"),
            ),
        )


def odd_values(run: Examined) -> Iterator[Finding]:
    """Values that look like a code for missing or like an error, as the reader noticed them."""
    for change in run.windows.panel.changes:
        if change.kind == "doubtful":
            variables = (change.column,) if change.column else ()
            yield Finding(
                "odd-values",
                change.seen.removesuffix("."),
                about=into(*variables),
                variables=variables,
                evidence={"values": change.count},
                advice=change.advice,
            )


def near_duplicates(run: Examined) -> Iterator[Finding]:
    """Variables that agree in levels and in steps: levels that wander agree by chance."""
    now = run.batch.target.astype(np.float64)
    before = run.batch.past[:, -1].astype(np.float64)
    levels, steps = (np.abs(_correlation(values)) for values in (now, now - before))
    levels = np.where(steps > run.bounds.same_steps, levels, 0.0)
    correlation, _ = of_variables(levels, np.ones_like(levels), run.coding)
    correlation = np.triu(correlation, 1)
    pairs = by_size(correlation, correlation > run.bounds.same_variable)
    if pairs:
        names = run.names
        shown = [f"{names[i]} and {names[j]} ({correlation[i, j]:.3f})" for i, j in pairs]
        copies = named(names, [place for pair in pairs for place in pair])
        yield Finding(
            "near-duplicates",
            f"Some variables are nearly the same (correlation): {listed(shown)}; which of them is "
            f"the cause cannot be told{run.sampled}",
            gravity="doubt",
            about=tuple(Links(source=name) for name in copies),
            variables=copies,
            evidence=strongest(
                (f"{names[i]} and {names[j]}", float(correlation[i, j])) for i, j in pairs
            ),
            advice=(hint("keep one of each"),),
        )


def _correlation(values: Array) -> Array:
    centred = values - values.mean(0)
    size = np.sqrt((centred**2).sum(0))
    return np.asarray(centred.T @ centred / np.maximum(np.outer(size, size), 1e-300))


def drifting_cycle(run: Examined) -> Iterator[Finding]:
    """A hump of a number's spectrum: a cycle whose length or shape drifts.

    A cycle of fixed length was taken out before; one that drifts spreads over a band of
    frequencies, which stands out from the bands beside it as no ordinary memory does. Shared by
    several variables it is a common cause that is not among the columns.
    """
    humps: dict[str, tuple[float, float, float]] = {}  # height, share, period
    rows = _longest_stretch(run)
    for column in run.coding.numeric_columns.tolist():
        own = np.asarray(run.windows.panel.values[rows, column], dtype=np.float64)
        known = np.isfinite(own)
        if known.mean() >= run.bounds.known_for_spectrum:
            own = np.where(known, own - own[known].mean(), 0.0)
            power = np.abs(np.fft.rfft(own)) ** 2
            highest = max(_humps(power, len(own), run.bounds), default=(0.0, 0.0, 0.0))
            if highest[0] >= run.bounds.least_hump:
                humps[run.column_names[column]] = highest
    if humps:
        name = max(humps, key=lambda one: humps[one])
        _, share, period = humps[name]
        others = f" ({len(humps) - 1} more such)" if len(humps) > 1 else ""
        yield Finding(
            "cycle",
            f"A cycle of about {period:.0f} rows is left and makes up {share:.0%} of "
            f"{name}{others}",
            gravity="doubt",
            about=into(name) if len(humps) == 1 else (),
            variables=tuple(humps),
            evidence={name: share for name, (_, share, _) in humps.items()},
            advice=(
                Advice("season", "auto", "let {} take it out"),
                Advice("season", words="name its period with {}"),
                hint("if its length varies, add what drives it (daylight, the calendar) as a "
                     "variable"),
            ),
        )  # fmt: skip


def _longest_stretch(run: Examined) -> slice:
    """The last rows of the longest unbroken stretch."""
    panel = run.windows.panel
    edges = np.append(panel.starts, panel.rows)
    longest = int(np.diff(edges).argmax())
    end = int(edges[longest + 1])
    return slice(max(int(edges[longest]), end - MOST_WINDOWS), end)


def _humps(
    power: Array, rows: int, bounds: DiagnosisThresholds
) -> Iterator[tuple[float, float, float]]:
    """Of every band that holds enough power: height over the higher of the bands beside it, share
    of all power, and period in rows. `power` (frequency,) is that of so many rows."""
    cumulated = np.concatenate([[0.0], np.cumsum(power[1:])])  # from frequency 1 / rows on
    total = max(float(cumulated[-1]), 1e-300)
    inner, outer = bounds.band, bounds.band * bounds.flank
    centre = bounds.least_cycles / rows * bounds.band * bounds.flank
    while centre * bounds.band * bounds.flank < 0.5:
        edges = np.array([1 / outer, 1 / inner, inner, outer]) * centre * rows
        places = np.clip(np.round(edges).astype(int), 0, len(cumulated) - 1)
        counts = np.maximum(np.diff(places), 1)
        below, inside, above = np.diff(cumulated[places]) / counts
        share = float(inside * counts[1] / total)
        if counts.min() >= bounds.least_frequencies and share > bounds.least_band_share:
            yield float(inside / max(below, above, 1e-300)), share, 1 / centre
        centre *= BAND_STEP
