"""Units are taken from names where they are plain, and from no others."""

import pytest

from forecause.report.units import unit_of
from forecause.report.words import amount


@pytest.mark.parametrize(
    ("name", "unit"),
    [
        ("temp [degC]", "°C"),
        ("load (MW)", "MW"),
        ("flow_m3s", "m³/s"),
        ("Rain_MM", "mm"),
        ("web_latency_ms", "ms"),
        ("wind_ms", ""),  # metres per second, or milliseconds: not plain
        ("rain", ""),
        ("mm", ""),
        ("group (2)", ""),
        ("ratio [-]", ""),
        ("soil [%]", ""),  # 3 % more soil would be read as a share of it
        ("x_c", ""),
        ("a very long [remark in brackets]", ""),
    ],
)
def test_a_plain_ending_or_brackets_tell_the_unit(name, unit):
    assert unit_of(name) == unit


def test_amounts_are_told_in_units():
    edge = {"source": "rain_mm", "target": "flow [m3/s]", "lag": 1}
    change = {"change": 0.46, "change_low": 0.41, "change_high": 0.51}
    assert amount({**edge, **change}, 5.2) == (
        "by 0.46 m³/s [0.41, 0.51] per standard deviation of rain_mm (5.2 mm)"
    )
