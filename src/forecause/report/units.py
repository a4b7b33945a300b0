"""The unit of a variable, where its name says it plainly: temp [degC], rain_mm, flow_m3s."""

from __future__ import annotations

import re

ENDINGS = {
    "mm": "mm",
    "cm": "cm",
    "km": "km",
    "ms": "ms",
    "kg": "kg",
    "mg": "mg",
    "kw": "kW",
    "mw": "MW",
    "gw": "GW",
    "kwh": "kWh",
    "mwh": "MWh",
    "hz": "Hz",
    "hpa": "hPa",
    "kpa": "kPa",
    "bar": "bar",
    "hm3": "hm³",
    "m3": "m³",
    "m3s": "m³/s",
    "kmh": "km/h",
    "degc": "°C",
    "usd": "USD",
    "eur": "EUR",
    "mb": "MB",
    "gb": "GB",
}  # what follows the last underscore; single letters and words with other meanings are left out
BRACKETS = re.compile(r"\[([^\[\]]{1,12})\]$|\(([^()\d][^()]{0,11})\)$")
SPELLED = {"degC": "°C", "degF": "°F", "m3/s": "m³/s", "-": "", "1": "", "%": ""}


def unit_of(name: str) -> str:
    """The unit in brackets at the end of a name, or a known ending; empty if it is not plain.

    `wind_ms` is the exception that is not guessed at: after wind and speed it means metres.
    """
    found = BRACKETS.search(name.strip())
    if found:
        unit = (found[1] or found[2]).strip()
        return SPELLED.get(unit, unit)
    start, underscore, ending = name.rpartition("_")
    unit = ENDINGS.get(ending.lower(), "") if underscore else ""
    return "" if unit == "ms" and re.search("wind|speed|velocity", start.lower()) else unit


def with_unit(figure: str, name: str) -> str:
    """3.8 mm; the figure alone where the unit is not known."""
    unit = unit_of(name)
    return f"{figure} {unit}" if unit else figure
