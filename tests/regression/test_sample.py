"""Windows held in memory as rows."""

import numpy as np

from forecause.data.windows import early_and_late, sample_of
from forecause.regression.sample import Design, Sample, pieces, stretches


def test_rows_are_the_windows_in_order(chain_windows):
    sample = sample_of(chain_windows)
    drawn = chain_windows.draw(np.arange(len(chain_windows))).rows
    np.testing.assert_array_equal(sample.rows[0], drawn.reshape(len(drawn), -1))
    np.testing.assert_array_equal(sample.following(sample.rows[0], [2, 0]), drawn[:, -1, [2, 0]])


def test_early_and_late_are_apart_and_together_all(chain_windows):
    early, late = early_and_late(chain_windows, 0.2)
    both = early + late
    assert len(both) == len(early) + len(late) == len(chain_windows)
    assert len(late) == len(chain_windows.split(0.2)[1])
    batches = np.concatenate(list(both.batches(100)))
    np.testing.assert_array_equal(batches, sample_of(chain_windows).rows[0])


def test_fewer_windows_keep_their_order(chain_windows):
    sample = sample_of(chain_windows)
    few = sample.at_most(50)
    assert len(few) == 50
    places = [int((sample.rows[0] == row).all(1).argmax()) for row in few.rows[0]]
    assert places == sorted(set(places))
    assert sample.at_most(10**9) is sample


def test_blocks_cover_everything_once(chain_windows):
    sample = sum(early_and_late(chain_windows, 0.3)[1:], sample_of(chain_windows))
    blocks = sample.blocks(7)
    assert 7 <= len(blocks) <= 9
    np.testing.assert_array_equal(
        np.concatenate([block.rows[0] for block in blocks]), np.concatenate(list(sample.rows))
    )


def test_fewer_windows_are_always_the_same_ones(chain_windows):
    sample = sample_of(chain_windows)
    once, again = (next(sample.at_most(100).batches(10_000)) for _ in range(2))
    np.testing.assert_array_equal(np.asarray(once), np.asarray(again))


def test_pieces_and_stretches_follow_each_other_and_leave_nothing_out():
    rows = np.arange(11)
    assert [piece.tolist() for piece in pieces(rows, 4)] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10]]
    assert [rows[part].size for part in stretches(11)] == [2, 2, 2, 2, 3]
    assert np.concatenate([rows[part] for part in stretches(11, 3)]).tolist() == rows.tolist()


def test_of_every_piece_at_least_one_window_is_drawn_and_none_twice():
    parts = tuple(np.arange(n, dtype=np.float32)[:, None] for n in (1, 100))
    few = Sample(parts, 1).at_most(10)
    assert [len(part) for part in few.rows] == [1, 10]
    assert len(np.unique(few.rows[1])) == 10
    assert len(Sample(parts, 1).at_most(101)) == 101


def test_a_design_takes_its_places_and_is_as_wide_as_its_last_feature():
    groups = [np.array([0, 4]), np.array([], dtype=int), np.array([2])]
    looked = Design(np.array([2, 0]), lambda values: values * 10, groups, np.arange(3))
    rows = np.arange(8, dtype=np.float32).reshape(2, 4)
    assert looked.features(rows).tolist() == [[20, 0], [60, 40]]
    assert looked.width == 5
