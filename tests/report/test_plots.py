import numpy as np
import pytest
from matplotlib import pyplot as plt
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch

import forecause as fc
from report_runs import NASTY, many_variables, three_variables

NAMES = (
    "graph",
    "timegraph",
    "heatmap",
    "uncertainty",
    "strengths",
    "interventions",
    "forecast",
)


@pytest.fixture(scope="module")
def found():
    return three_variables()


@pytest.fixture
def axes():
    return Figure(figsize=(5, 4)).add_subplot()


def arrows(axes):
    return [patch for patch in axes.patches if isinstance(patch, FancyArrowPatch)]


def marks(axes):
    return {part.get_label(): part for part in axes.collections if isinstance(part, PolyCollection)}


@pytest.mark.parametrize("name", NAMES)
def test_axes_in_axes_out_as_png_and_svg(found, axes, name, tmp_path):
    assert getattr(found.plot, name)(axes=axes) is axes
    for kind in ("png", "svg"):
        axes.figure.savefig(tmp_path / f"plot.{kind}")
        assert (tmp_path / f"plot.{kind}").stat().st_size > 2000


@pytest.mark.parametrize("name", NAMES)
def test_without_axes_a_figure_is_made_for_notebooks(found, name):
    made = getattr(found.plot, name)()
    assert plt.fignum_exists(made.figure.number)
    plt.close(made.figure)


@pytest.mark.parametrize("name", NAMES)
def test_any_name_can_be_drawn(name, axes, tmp_path):
    odd = three_variables(("$x^2$ & $", NASTY[1], "n" * 80))
    getattr(odd.plot, name)(axes=axes)
    axes.figure.savefig(tmp_path / "plot.png")


def test_the_graph_has_one_arrow_per_pair_labelled_with_its_lags(found, axes):
    found.plot.graph(axes)
    assert len(arrows(axes)) == 3
    texts = [text.get_text() for text in axes.texts]
    assert sorted(texts) == ["1", "1, 2", "2", "a", "b", "c"]
    fewer = found.plot.graph(Figure().add_subplot(), self_links=False)
    assert len(arrows(fewer)) == 2


def test_the_time_graph_has_one_arrow_per_edge_from_its_past(found, axes):
    found.plot.timegraph(axes)
    assert len(arrows(axes)) == len(found.graph)
    starts = sorted(arrow._posA_posB[0][0] for arrow in arrows(axes))
    assert starts == [-2, -2, -1, -1]
    assert all(arrow._posA_posB[1][0] == 0 for arrow in arrows(axes))


def test_the_heatmap_marks_predicted_and_true_edges_in_their_cells(found, axes):
    truth = fc.LaggedGraph.from_edges("abc", 2, [("a", "b", 1), ("c", "a", 2)])
    found.plot.heatmap(axes, truth=truth)
    shown = axes.images[0].get_array()
    assert shown.shape == (3, 6)
    assert shown[1, 0] == pytest.approx(0.64)  # a -> b at lag 1
    assert shown[2, 4] == pytest.approx(0.25)  # b -> c at lag 2
    assert len(marks(axes)["predicted"].get_paths()) == 4
    true = [path.vertices[0] for path in marks(axes)["true"].get_paths()]
    # top right corners of (b, a, lag 1) and (a, c, lag 2)
    assert sorted(map(tuple, true)) == [(0.5, 0.5), (5.5, -0.5)]


def test_the_heatmap_of_one_lag_or_of_another_statistic(found, axes):
    found.plot.heatmap(axes, values="mean_rank", lag=2)
    expected = found.relevance["mean_rank"].sel(lag=2)
    np.testing.assert_allclose(axes.images[0].get_array(), expected)
    assert len(marks(axes)["predicted"].get_paths()) == 2
    with pytest.raises(fc.InputError, match=r"one of 1..2, found 9"):
        found.plot.heatmap(lag=9)
    with pytest.raises(fc.InputError, match="Unknown statistic 'magic'"):
        found.plot.heatmap(values="magic")


def test_uncertainty_has_a_point_per_candidate(found, axes):
    found.plot.uncertainty(axes, truth=found.graph)
    others, predicted, true = (part.get_offsets() for part in axes.collections)
    assert (len(others), len(predicted), len(true)) == (14, 4, 4)
    np.testing.assert_allclose(sorted(predicted[:, 0]), sorted(found.graph.edges["mean_rank"]))
    np.testing.assert_allclose(sorted(true[:, 1]), sorted(found.graph.edges["sd_rank"]))


def test_strengths_count_every_candidate_once(axes):
    found = many_variables(10, max_lag=3, edges=20)
    found.plot.strengths(axes, bins=10)
    assert sum(bar.get_height() for bar in axes.patches) == pytest.approx(300)
    assert [text.get_text() for text in axes.get_legend().get_texts()] == [
        "lag 1",
        "lag 2",
        "lag 3",
    ]
    assert sum(len(line.get_xdata()) for line in axes.lines) == 20


def test_many_lags_share_a_histogram(axes):
    many_variables(3, max_lag=8, edges=5).plot.strengths(axes)
    labels = [text.get_text() for text in axes.get_legend().get_texts()]
    assert labels == ["lag 1", "lags 2 to 8"]


def test_interventions_on_a_linear_forecaster_are_its_coefficients(found, axes):
    found.plot.interventions(axes)
    points = axes.collections[1].get_offsets()  # predicted: (score, effect)
    np.testing.assert_allclose(points[:, 1], np.sqrt(points[:, 0]), rtol=1e-3)
    assert axes.get_title() == "rank correlation 1.00"


def test_the_forecast_shows_what_happened_inside_an_interval(found, axes):
    found.plot.forecast("b", axes)
    happened, ahead = (line.get_ydata() for line in axes.lines)
    near = found.evidence["stretch"]
    np.testing.assert_allclose(happened, near["values"][1][2:])
    np.testing.assert_allclose(ahead, near["forecast"][1])
    inside = np.abs(happened - ahead) < 1.64 * near["error_sd"][1]
    assert inside.mean() == pytest.approx(0.9, abs=0.08)
    with pytest.raises(fc.InputError, match="Unknown variable 'z'"):
        found.plot.forecast("z")
