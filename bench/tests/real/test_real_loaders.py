"""Recorded data is read as it was published: series apart, the right end of every arrow."""

import pickle

import numpy as np
import pytest
from recorded import (
    GENE_EDGES,
    GENES,
    write_causaltime,
    write_cdml,
    write_dream3,
    write_netsim,
    write_rivers,
)

from forecause.data import Windows
from forecause.errors import InputError
from forecause_bench.real.loaders import causaltime, cdml, dream3, lorenz96, netsim, rivers


def pairs(dataset):
    """(source, target) of the true edges."""
    return set(zip(dataset.truth.edges["source"], dataset.truth.edges["target"], strict=True))


def test_dream3_has_one_panel_of_series_that_no_window_crosses(tmp_path):
    write_dream3(tmp_path)
    (found,) = dream3(tmp_path, "dream3_10_0")
    assert found.name == "dream3_10_0"
    assert found.panel.variables == GENES
    assert found.panel.starts.tolist() == [0, 21, 42, 63]
    assert len(Windows.of(found.panel, 2)) == 4 * (21 - 2)
    assert pairs(found) == GENE_EDGES


def test_netsim_has_a_system_per_subject_and_arrows_from_row_to_column(tmp_path):
    write_netsim(tmp_path)
    found = netsim(tmp_path, "fMRI_15")
    assert [dataset.name for dataset in found][:2] == ["fMRI_15, subject 1", "fMRI_15, subject 2"]
    assert [dataset.panel.rows for dataset in found] == [60, 60, 60]
    selves = {(f"R{i}", f"R{i}") for i in (1, 2, 3)}
    assert pairs(found[0]) == {("R1", "R2"), *selves}
    assert pairs(found[1]) == {("R1", "R2"), ("R2", "R3"), *selves}
    assert not np.array_equal(found[0].panel.values, found[1].panel.values)


def test_causaltime_uses_the_first_half_of_the_columns_and_effect_by_cause(tmp_path):
    write_causaltime(tmp_path)
    (found,) = causaltime(tmp_path, "pm25")
    assert found.panel.values.shape == (5 * 30, 3)
    assert np.abs(found.panel.values).max() < 100  # the residuals are 1e6
    assert len(found.panel.starts) == 5
    assert pairs(found) == {("X1", "X2"), ("X1", "X1")}


def test_lorenz_is_driven_by_its_neighbours_and_itself():
    found = lorenz96(50, 3, nodes=6, forcing=10.0)
    assert found.panel.rows == 50
    assert {s for s, t in pairs(found) if t == "X3"} == {"X1", "X2", "X3", "X4"}


def test_a_fingerprint_tells_data_and_truth_apart(tmp_path):
    for place, seed in (("a", 0), ("b", 0), ("c", 9)):
        write_dream3(tmp_path / place, seed=seed)
    first, same, other = (
        dream3(tmp_path / place, "dream3_10_0")[0].fingerprint() for place in "abc"
    )
    truth = tmp_path / "b" / "dream3_10_0_true.txt"
    truth.write_text(truth.read_text().replace("G3\tG1\t0", "G3\tG1\t1"))
    changed = dream3(tmp_path / "b", "dream3_10_0")[0].fingerprint()
    assert first == same
    assert len({first, other, changed}) == 3


def break_dream3_table(folder):
    (folder / "dream3_10_0.tsv").write_text("G1\tG2\n1\t2\n")


def break_dream3_truth(folder):
    (folder / "dream3_10_0_true.txt").write_text("G1\tG9\t1\n")


def break_netsim(folder):
    (folder / "fMRI_15.mat").write_bytes(b"not a matrix")


def break_causaltime(folder):
    np.save(folder / "pm25" / "graph.npy", np.zeros((4, 4)))


def pickle_causaltime(folder):
    with (folder / "pm25" / "graph.npy").open("wb") as file:
        pickle.dump(np.zeros((3, 3)), file)


@pytest.mark.parametrize(
    ("write", "spoil", "load", "item", "sentence"),
    [
        (write_dream3, break_dream3_table, dream3, "dream3_10_0", "Expected the columns Time"),
        (write_dream3, break_dream3_truth, dream3, "dream3_10_0", r"in line 1 of .*'G1\\tG9\\t1'"),
        (write_netsim, break_netsim, netsim, "fMRI_15", "as a MATLAB file"),
        (write_causaltime, break_causaltime, causaltime, "pm25", r"found \(4, 4\) and \(5, 30, 6"),
        (write_causaltime, pickle_causaltime, causaltime, "pm25", "as an array"),
        (
            write_dream3,
            lambda _: None,
            dream3,
            "dream3_10_7",
            "Expected the file 'dream3_10_7.tsv'",
        ),
    ],
)
def test_a_file_of_another_shape_is_refused(tmp_path, write, spoil, load, item, sentence):
    write(tmp_path)
    spoil(tmp_path)
    with pytest.raises(InputError, match=sentence):
        load(tmp_path, item)


def test_cdml_matches_columns_by_name_and_reads_causes_from_rows(tmp_path):
    write_cdml(tmp_path)
    (found,) = cdml(tmp_path, "30")
    assert found.panel.variables == ("X1", "Y1")
    assert pairs(found) == {("X1", "Y1")}
    with pytest.raises(InputError, match="cplx=10"):
        cdml(tmp_path, "10")


def test_rivers_keep_their_gaps_and_run_down(tmp_path):
    write_rivers(tmp_path)
    (found,) = rivers(tmp_path, "flood")
    assert pairs(found) == {("59", "77")}
    assert np.isnan(found.panel.values).sum() == 1
    np.save(tmp_path / "summary_matrix.npy", np.zeros((3, 3)))
    with pytest.raises(InputError, match=r"shape \(2, 2\)"):
        rivers(tmp_path, "flood")
