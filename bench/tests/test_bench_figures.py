"""Figures show what the tables say."""

import pytest

from forecause_bench.aggregate import Results
from forecause_bench.figures import along_columns, draw_figures, mean_bars
from made_results import made_results


@pytest.fixture(scope="module")
def results():
    return made_results()


def test_lines_go_through_the_means_of_complete_entries(results):
    axes = along_columns(results, results.columns(), "f1").axes[0]
    lines = {
        container.get_label(): container[0].get_ydata().tolist() for container in axes.containers
    }
    assert lines["Forecause"] == pytest.approx([0.93, 0.60])
    assert lines["VAR (FDR)"] == pytest.approx([0.65])  # its other column has a timeout
    assert not any("oracle" in label for label in lines)
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["n=25", "plain"]


def test_the_papers_transformer_is_drawn_where_the_paper_has_it(results):
    axes = along_columns(results, results.columns(), "f1").axes[0]
    paper = next(line for line in axes.lines if line.get_label() == "DOT in the paper")
    assert (list(paper.get_xdata()), list(paper.get_ydata())) == ([0], [0.91])


def test_bars_say_on_how_many_columns_they_rest(results):
    axes = mean_bars(results, "f1").axes[0]
    texts = [text.get_text().strip() for text in axes.texts]
    assert texts[::-1] == ["0.76, 2 of 2", "0.82, 1 of 2", "0.65, 2 of 2", "0.65, 1 of 2"]
    nothing = mean_bars(Results(results.suite, []), "f1").axes[0]
    assert {text.get_text().strip() for text in nothing.texts} == {"no result"}


def test_every_figure_is_written_as_png_and_svg(results, tmp_path):
    pictures = draw_figures(results, tmp_path / "figures")
    assert len(pictures) == 2
    for picture in pictures:
        assert (tmp_path / f"{picture.path}.png").read_bytes().startswith(b"\x89PNG")
        assert "<svg" in (tmp_path / f"{picture.path}.svg").read_text()
