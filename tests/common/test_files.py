"""Files and folders are the old ones or the new ones, whatever happens while they are written."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from forecause.common import files
from forecause.errors import InputError
from soak.injury import DONE, FOREIGN, full_disk, injured, interrupt, kill

NAMES = ("run.json", "graph.json", "model", "power.json")


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch):
    """Reaching the disk takes its time, and cannot be tested without cutting the power."""
    monkeypatch.setattr(os, "fsync", lambda _: None)


def write(folder, content, names=NAMES[:3]):
    def fill(made):
        for name in names:
            (made / name).write_text(content)

    files.write_folder(folder, fill, NAMES, lambda _: None)


def content(folder):
    """What the files hold; a set of several contents is a mixture."""
    found = {name: files.current(folder, name) for name in NAMES}
    return {name: path.read_text() for name, path in found.items() if path.exists()}


OLD = dict.fromkeys(NAMES, "old")
NEW = dict.fromkeys(NAMES[:3], "new")


@pytest.mark.parametrize("how", [kill, interrupt, full_disk])
@pytest.mark.parametrize("exchanged", [True, False], ids=["exchanged", "inside"])
def test_a_folder_is_old_or_new_whichever_operation_fails(tmp_path, how, exchanged, monkeypatch):
    folder = tmp_path / "run"
    # What killed writers left is old enough to be removed, however quickly they follow each other:
    # the number of file operations does not depend on the clock.
    monkeypatch.setattr(files.time, "time", lambda: 4e9)
    if not exchanged:
        monkeypatch.setattr(files, "_can_exchange", lambda folder: not folder.exists())
    seen, done = [], 0
    for at in range(1, 200, 1 if how is kill and exchanged else 4):
        write(folder, "old", NAMES)
        (folder / "notes.txt").write_text("mine")
        (folder / "deeper").mkdir(exist_ok=True)
        (folder / "deeper" / "kept.txt").write_text("mine too")
        ended = injured(lambda: write(folder, "new"), at, how, (OSError, InputError))
        assert ended != FOREIGN
        assert content(folder) in (OLD, NEW)
        assert (folder / "notes.txt").read_text() == "mine"
        assert (folder / "deeper" / "kept.txt").read_text() == "mine too"
        seen.append(content(folder))
        done = done + 1 if ended == DONE else 0
        if done == 4:  # behind the last operation: before it, a failure or two are harmless
            break
    assert OLD in seen
    assert NEW in seen


def test_nothing_unfinished_stays_after_the_next_writing(tmp_path, monkeypatch):
    monkeypatch.setattr(files.time, "time", lambda: 4e9)  # everything is old enough
    write(tmp_path / "run", "old")
    for at in range(1, 30):
        injured(lambda: write(tmp_path / "run", "new"), at, kill)
    write(tmp_path / "run", "newest")
    assert [file.name for file in tmp_path.iterdir()] == ["run"]
    assert set(content(tmp_path / "run").values()) == {"newest"}


def test_unfinished_work_of_a_living_writer_is_left_alone(tmp_path, monkeypatch):
    monkeypatch.setattr(files.time, "time", lambda: 4e9)
    with files._unfinished(tmp_path) as made:
        write(tmp_path / "run", "new")
        assert made.exists()


def test_many_writers_and_readers_never_see_a_mixture(tmp_path):
    script = (
        "import sys; from pathlib import Path; import test_files as t\n"
        "for turn in range(40): t.write(Path(sys.argv[1]), sys.argv[2] + str(turn))"
    )
    command = [sys.executable, "-c", script, str(tmp_path / "run")]
    where = os.pathsep.join(sys.path)
    writers = [
        subprocess.Popen([*command, name], env=os.environ | {"PYTHONPATH": where}) for name in "abc"
    ]
    while any(writer.poll() is None for writer in writers):
        with_handle = tmp_path / "run"
        if with_handle.exists():
            handle = os.open(with_handle, os.O_RDONLY)  # a folder that is replaced stays readable
            found = set()
            for name in NAMES[:3]:
                try:
                    with open(os.open(name, os.O_RDONLY, dir_fd=handle)) as file:
                        found.add(file.read())
                except FileNotFoundError:
                    found.clear()  # it was replaced and removed while it was read
                    break
            os.close(handle)
            assert len(found) <= 1
    assert [writer.returncode for writer in writers] == [0, 0, 0]
    assert len(set(content(tmp_path / "run").values())) == 1
    assert [file.name for file in tmp_path.iterdir()] == ["run"]


def test_a_folder_somebody_stands_in_is_still_theirs(tmp_path, monkeypatch):
    write(tmp_path / "run", "old", NAMES)
    monkeypatch.chdir(tmp_path / "run")
    write(Path(), "new")
    assert Path("run.json").read_text() == "new"
    assert sorted(os.listdir()) == sorted(NAMES[:3])


def test_a_link_to_a_folder_stays_a_link(tmp_path):
    write(tmp_path / "real", "old")
    (tmp_path / "link").symlink_to("real")
    write(tmp_path / "link", "new")
    assert (tmp_path / "link").is_symlink()
    assert set(content(tmp_path / "real").values()) == {"new"}


def test_all_files_have_the_permissions_of_the_users_mask(tmp_path):
    before = os.umask(0o027)
    try:
        write(tmp_path / "run", "new")
    finally:
        os.umask(before)
    modes = {stat.S_IMODE(file.stat().st_mode) for file in (tmp_path / "run").iterdir()}
    assert modes == {0o640}
    assert stat.S_IMODE((tmp_path / "run").stat().st_mode) == 0o750


@pytest.mark.parametrize("how", [kill, interrupt, full_disk])
def test_a_file_is_old_or_new_whichever_operation_fails(tmp_path, how):
    page = tmp_path / "page.html"
    for at in range(1, 12):
        page.write_text("old")
        ended = injured(lambda: files.write_whole(page, b"new"), at, how, OSError)
        assert ended != FOREIGN
        assert page.read_text() in ("old", "new")
    assert page.read_text() == "new"


def test_a_file_keeps_its_permissions_and_its_link(tmp_path):
    (tmp_path / "page").write_text("old")
    (tmp_path / "page").chmod(0o604)
    (tmp_path / "link").symlink_to("page")
    files.write_whole(tmp_path / "link", b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "page").read_text() == "new"
    assert stat.S_IMODE((tmp_path / "page").stat().st_mode) == 0o604


@pytest.mark.parametrize("exchanged", [True, False], ids=["exchanged", "inside"])
def test_an_unfinished_copy_in_a_received_folder_touches_nothing_of_others(
    tmp_path, exchanged, monkeypatch
):
    folder, complete = tmp_path / "run", tmp_path / "run" / files.COMPLETE
    write(folder, "old", NAMES)
    for name in ("notes.txt", "kept.txt"):
        (folder / name).write_text("mine")
    complete.mkdir()
    (complete / "notes.txt").write_text("theirs")
    (complete / "kept.txt.gone").touch()
    (tmp_path / "elsewhere").write_text("mine")
    (complete / "model").symlink_to(tmp_path / "elsewhere")
    assert content(folder) == OLD
    if not exchanged:
        monkeypatch.setattr(files, "_can_exchange", lambda folder: not folder.exists())
    write(folder, "new")
    assert content(folder) == NEW
    kept = [folder / "notes.txt", folder / "kept.txt", tmp_path / "elsewhere"]
    assert [path.read_text() for path in kept] == ["mine"] * 3
    assert not complete.exists()


@pytest.mark.parametrize("exchanged", [True, False], ids=["exchanged", "inside"])
def test_a_link_in_place_of_an_unfinished_copy_leads_nowhere(tmp_path, exchanged, monkeypatch):
    write(tmp_path / "run", "old", NAMES)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    for name in ("run.json", "notes.txt"):
        (elsewhere / name).write_text("mine")
    (tmp_path / "run" / files.COMPLETE).symlink_to(elsewhere)
    assert content(tmp_path / "run") == OLD
    if not exchanged:
        monkeypatch.setattr(files, "_can_exchange", lambda folder: not folder.exists())
    write(tmp_path / "run", "new")
    assert content(tmp_path / "run") == NEW
    assert {path.read_text() for path in elsewhere.iterdir()} == {"mine"}
    assert len(list(elsewhere.iterdir())) == 2
