"""The learning curve of the published transformer beside a VAR."""

import csv

import pytest

from forecause.networks.settings import DeepTransformer
from forecause_bench import paper_curve
from forecause_bench.paper_curve import Point, measure, write


def _point(step, above_var):
    return Point(step, 0.36 * step, 1.5 * step, 0.86 * (1 + above_var), above_var)


@pytest.mark.parametrize(
    ("last", "sentence"),
    [
        (0.008, "first within 1 % of it after 1,000 steps, 6.0 minutes of processor time"),
        (0.02, "did not come within 1 %: 2.0 % above after 6.0 minutes"),
    ],
)
def test_the_page_says_whether_and_when_it_came_near(tmp_path, last, sentence):
    points = [_point(500, 0.05), _point(1000, last)]
    write(points, 0.86, tmp_path, "the command")
    assert sentence in (tmp_path / "table.md").read_text()
    with (tmp_path / "curve.csv").open() as file:
        kept = [float(row["above_var"]) for row in csv.DictReader(file)]
    assert kept == pytest.approx([0.05, last])
    assert (tmp_path / "curve.png").exists()


def test_every_look_is_compared_with_the_same_var(monkeypatch):
    tiny = DeepTransformer(width=8, heads=1, layers=1).trained_with(batch_size=16)
    monkeypatch.setattr(paper_curve, "DeepTransformer", lambda: tiny)
    points, best = measure(200, rows=600)
    assert [point.step for point in points] == [100, 200]
    assert [p.loss for p in points] == pytest.approx([best * (1 + p.above_var) for p in points])
    spent = [point.cpu_seconds for point in points]
    assert 0 < spent[0] < spent[1]
