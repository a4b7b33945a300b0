"""The paper's study at half size, and its second figure."""

import numpy as np
import pytest

from forecause_bench.jobs import Store, jobs_of
from forecause_bench.overview import LABELS, PANELS, PUBLISHED, overview
from forecause_bench.run import command, narrowed, run_suite
from forecause_bench.suites import SUITES, find_suite
from made_results import answer


def test_half_a_suite_has_half_of_every_size_under_the_same_names():
    whole, half = SUITES["latent"], SUITES["latent"].halved()
    assert [cell.name for cell in half.cells] == [cell.name for cell in whole.cells]
    sizes = [(c.system["nodes"], c.system["max_lag"], c.system.get("latents")) for c in half.cells]
    assert sizes == [(5, 3, None), (5, 3, 1), (5, 3, 2), (5, 3, 5)]
    small = SUITES["uncertainty"].halved().cells[0].system
    assert (small["nodes"], small["max_lag"]) == (5, 2)  # the paper's own small systems stay
    assert half.note.startswith("Half size")
    assert command(half) == "forecause bench latent --half"


def test_a_page_can_be_written_of_what_is_finished(tmp_path):
    made = run_suite(
        "noise", rows=[100], methods=["var-fdr"], half=True, finished=True, out=tmp_path
    )
    assert made.ran == 0
    assert "not run" in made.table.read_text()


def test_the_overview_shows_what_is_finished_beside_the_paper(tmp_path):
    store = Store(tmp_path)
    suite = narrowed(
        find_suite("latent").halved(), rows=[10_000], seeds=1, methods=["dot"], columns=["5 Latent"]
    )
    store.save(jobs_of(suite)[0], {"status": "done", "answers": [answer(0.5)]})
    figure = overview(store)
    panel = dict(zip((p.title for p in PANELS), figure.axes, strict=True))["Hidden causes (linear)"]
    lines = {line.get_label(): line.get_xydata() for line in panel.lines}
    ((x, f1),) = [point for point in lines[LABELS["dot"]] if not np.isnan(point[1])]
    assert (x, f1) == (pytest.approx(2, abs=0.2), 0.5)
    assert lines[PUBLISHED][:, 1].tolist() == [0.95, 0.86, 0.80, 0.60]
    assert np.isnan(lines[LABELS["forecause"]][:, 1]).all()
