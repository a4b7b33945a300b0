"""Files and folders that are whole or not there, whatever happens while they are written.

What is new is written beside what is old, reaches the disk, and takes its place in one step of the
file system. Where a folder cannot be exchanged (a mount point, or the working directory), its
files are replaced one by one from a complete copy inside it; `current` finds each file at any time
of that, and `finish_interrupted_write` finishes it after an interruption.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import ModuleType
from typing import BinaryIO

from forecause.errors import InputError

fcntl: ModuleType | None
try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

PREFIX = ".forecause-"  # of everything that is not finished yet
COMPLETE = f"{PREFIX}complete"  # in a folder: all files of its new content
GONE = ".gone"  # there: marks a file that the new content does not have

# Time and memory:
PATIENCE = 30.0  # seconds to wait for another writer
STALE_AFTER = 24 * 3600.0  # seconds; older unfinished work is removed where locks are unknown
ROOM = 4 * 2**20  # bytes that must be free before anything is begun

# Formats:
EXCHANGE = 2  # renameat2's flag on Linux, and renamex_np's on macOS
HERE = -100  # renameat2's name for the working directory


def write_whole(path: Path, content: bytes) -> None:
    """Write a file so that its old or its new content is there, never a part of it."""
    with whole_file(path) as file:
        file.write(content)


def save_text(text: str, path: str | Path | None) -> str:
    """Write `text` to `path` if one is given, whole or not at all; it is returned either way."""
    if path is None:
        return text
    try:
        write_whole(Path(path), text.encode("utf-8"))
    except UnicodeEncodeError as error:
        raise InputError(
            f"A name holds {text[error.start]!r}, half of a character pair, which no file can "
            "hold; rename it."
        ) from error
    except (OSError, ValueError) as error:
        raise InputError(f"Cannot write {str(path)[:200]!r}: {_reason(error)}.") from error
    return text


@contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """The same for content that is written piece by piece."""
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():  # /dev/stdout, a pipe: nothing to be replaced
        with target.open("wb") as file:
            yield file
        return
    beside = target.parent / f"{PREFIX}{uuid.uuid4().hex[:12]}"
    try:
        with beside.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if target.exists():
            shutil.copymode(target, beside)
        beside.replace(target)
    finally:
        with suppress(OSError):
            beside.unlink(missing_ok=True)


def write_folder(
    folder: Path,
    fill: Callable[[Path], None],
    names: tuple[str, ...],
    may_replace: Callable[[Path], None],
) -> None:
    """Let `fill` write files into an empty folder, and put them into `folder` all at once.

    `names` are the files that belong to this writer: those of an older content go away, and all
    others stay. `may_replace` raises when what is there must be left alone.
    """
    folder = Path(os.path.realpath(folder))
    folder.parent.mkdir(parents=True, exist_ok=True)
    inside = not _can_exchange(folder)
    place = folder if inside else folder.parent
    clean_up(place)
    with _unfinished(place) as made:
        fill(made)
        _same_permissions(made, folder)
        for file in (*made.iterdir(), made):
            _sync(file)
        with locked(folder.parent):
            may_replace(folder)
            if folder.is_dir():
                finish_interrupted_write(folder, names)
            if inside or not _swap(made, folder, names):
                _move_in(made, folder, names)
    _sync(folder.parent)


def finish_interrupted_write(folder: Path, names: tuple[str, ...]) -> None:
    """Finish replacing the files of a folder, if that was interrupted.

    Only `names` are replaced or removed: a folder that was received may hold anything.
    """
    complete = folder / COMPLETE
    if complete.is_symlink():
        complete.unlink()
    if not complete.is_dir():
        return
    for name in names:
        if _is_own_file(gone := complete / f"{name}{GONE}"):
            (folder / name).unlink(missing_ok=True)
            gone.unlink()
        elif _is_own_file(new := complete / name):
            new.replace(folder / name)
    shutil.rmtree(complete)


def current(folder: Path, name: str) -> Path:
    """Where a file of a folder is, even if replacing its files was interrupted."""
    new = folder / COMPLETE / name
    try:
        unfinished = _is_own_folder(new.parent) and (
            _is_own_file(new) or _is_own_file(new.with_name(f"{name}{GONE}"))
        )
    except (OSError, ValueError):  # no such folder can be
        return folder / name
    return new if unfinished else folder / name


def _is_own_folder(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()


def _is_own_file(path: Path) -> bool:
    return path.is_file() and not path.is_symlink()


def clean_up(place: Path) -> None:
    """Remove what interrupted writers left in a folder; those still at work are left alone."""
    with suppress(OSError):
        for left in list(place.glob(f"{PREFIX}*")):
            if left.name == COMPLETE or left.is_symlink() or not _is_dead(left):
                continue
            if left.is_dir():
                shutil.rmtree(left, ignore_errors=True)
            else:
                left.unlink()


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Keep other writers out; the system lifts the lock of a process that died."""
    handle = _lock_of(folder)
    try:
        yield
    finally:
        if handle is not None:
            os.close(handle)


def examine_output(folder: Path) -> None:
    """Refuse a folder that could not be written, before any work; leaves nothing behind."""
    shown = _shown(folder)
    _refuse_dash(folder, "folder")
    try:
        for part in (folder, *folder.parents):
            if part.is_symlink() and not part.exists():
                part.stat()  # says whether it leads nowhere or in a circle
        real = Path(os.path.realpath(folder))
    except FileNotFoundError:
        raise InputError(f"{shown} is a link to nothing; give a folder to write to.") from None
    except (OSError, ValueError) as error:
        raise InputError(f"Cannot write to {shown}: {_reason(error)}.") from None
    try:
        if real.exists() and not real.is_dir():
            raise InputError(f"{shown} is a file; give a folder to save the run in.")
        if real.is_dir() and not os.access(real, os.W_OK | os.X_OK):
            raise InputError(f"Cannot write to {shown}: the folder is read-only.")
        there = real
        while not there.exists():
            _check_length(there, shown)
            there = there.parent
        if not there.is_dir():
            raise InputError(f"Cannot write to {shown}: {_shown(there)} is a file, not a folder.")
        if real.exists() and _can_exchange(real):
            there = real.parent
        probe = there / f"{PREFIX}{uuid.uuid4().hex[:12]}"
        probe.mkdir()
        probe.rmdir()
        free = shutil.disk_usage(there).free
    except (OSError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"Cannot write to {shown}: {_reason(error)}.") from None
    if free < ROOM:
        raise InputError(
            f"Cannot write to {shown}: {free / 2**20:.1f} MB are free, and a run needs "
            f"{ROOM / 2**20:.0f} MB or more."
        )


def examine_file(path: Path) -> None:
    """Refuse a file that could not be written, before any work; leaves nothing behind."""
    shown = _shown(path)
    _refuse_dash(path, "file")
    try:
        real = Path(os.path.realpath(path))
        if real.is_dir():
            raise InputError(f"{shown} is a folder; give a file to write to.")
        _check_length(real, shown)
        if not real.exists() or real.is_file():
            probe = real.parent / f"{PREFIX}{uuid.uuid4().hex[:12]}"
            probe.touch(exist_ok=False)
            probe.unlink()
    except (OSError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"Cannot write {shown}: {_reason(error)}.") from None


def _refuse_dash(path: Path, kind: str) -> None:
    """Elsewhere a dash means standard output; nobody wants a file of that name."""
    if str(path) == "-":
        raise InputError(f"Expected the name of a {kind} to write to, found '-'.")


def _check_length(path: Path, shown: str) -> None:
    if len(os.fsencode(path.name)) > 255 or len(os.fsencode(path)) > 3800:
        raise InputError(f"Cannot write to {shown}: the name is too long.")


def _shown(path: Path) -> str:
    text = repr(str(path))
    return text if len(text) <= 120 else f"{text[:60]}...{text[-50:]}"


def _reason(error: Exception) -> str:
    return str(getattr(error, "strerror", None) or error)[:200]


@contextmanager
def _unfinished(place: Path) -> Iterator[Path]:
    """A new folder that is locked while its writer lives, and removed unless it was moved."""
    made = place / f"{PREFIX}{uuid.uuid4().hex[:12]}"
    made.mkdir()
    handle = _lock_of(made)
    try:
        yield made
    finally:
        shutil.rmtree(made, ignore_errors=True)
        if handle is not None:
            os.close(handle)


def _swap(made: Path, folder: Path, names: tuple[str, ...]) -> bool:
    """Put the new folder where the old one is; False where the file system cannot do that.

    `made` holds the old one afterwards.
    """
    if not folder.exists():
        made.rename(folder)
        return True
    others = [file for file in folder.iterdir() if file.name not in names]
    others = [file for file in others if not file.name.startswith(PREFIX)]
    for file in others:
        _carry_over(file, made / file.name)
    exchange = _exchanger()
    if exchange is not None and exchange(os.fsencode(made), os.fsencode(folder)) == 0:
        return True
    for file in others:
        carried = made / file.name
        shutil.rmtree(carried) if carried.is_dir() else carried.unlink()
    return False


def _move_in(made: Path, folder: Path, names: tuple[str, ...]) -> None:
    """Replace the files one by one; `finish_interrupted_write` goes on where that was cut off."""
    for name in names:
        if not (made / name).exists():
            (made / f"{name}{GONE}").touch()
    _sync(made)
    made.rename(folder / COMPLETE)
    finish_interrupted_write(folder, names)


def _carry_over(old: Path, new: Path) -> None:
    """The same file under a second name, or a copy where that cannot be."""

    def link(source: str, target: str) -> str:
        try:
            os.link(source, target, follow_symlinks=False)
        except OSError:
            shutil.copy2(source, target, follow_symlinks=False)
        return target

    if old.is_dir() and not old.is_symlink():
        shutil.copytree(old, new, symlinks=True, copy_function=link)
    else:
        link(str(old), str(new))


def _can_exchange(folder: Path) -> bool:
    if not folder.exists():
        return True
    if not os.access(folder.parent, os.W_OK | os.X_OK) or os.path.ismount(folder):
        return False
    with suppress(OSError):
        # the working directory would keep pointing at the replaced folder
        if Path.cwd().is_relative_to(folder):
            return False
    return _exchanger() is not None


def _exchanger() -> Callable[[bytes, bytes], int] | None:
    """The system's call that exchanges two names in one step, where it has one."""
    try:
        library = ctypes.CDLL(None, use_errno=True)
        if sys.platform == "linux":
            on_linux = library.renameat2
            return lambda a, b: on_linux(HERE, a, HERE, b, EXCHANGE)
        if sys.platform == "darwin":
            on_mac = library.renamex_np
            return lambda a, b: on_mac(a, b, EXCHANGE)
    except (OSError, AttributeError, TypeError):
        pass
    return None


def _lock_of(folder: Path) -> int | None:
    """An open, locked handle of a folder; None where folders cannot be locked."""
    if fcntl is None:
        return None
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:
        return None
    until = time.monotonic() + PATIENCE
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return handle
        except BlockingIOError:
            if time.monotonic() > until:
                os.close(handle)
                raise InputError(
                    f"Another process has been writing into {_shown(folder)} for {PATIENCE:.0f} "
                    "seconds; wait for it or give another folder."
                ) from None
            time.sleep(0.02)
        except OSError:  # a file system without locks
            os.close(handle)
            return None


def _is_dead(left: Path) -> bool:
    """Whether the writer of an unfinished folder is gone."""
    age = time.time() - left.stat().st_mtime
    if fcntl is None or not left.is_dir():
        return age > STALE_AFTER
    handle = os.open(left, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return age > STALE_AFTER
    finally:
        os.close(handle)
    return age > 1  # one that was made this second may not be locked yet


def _same_permissions(made: Path, folder: Path) -> None:
    """Files as the user's mask wants them, whoever wrote them; the folder as it was."""
    mask = os.umask(0)
    os.umask(mask)
    for file in made.iterdir():
        file.chmod(0o666 & ~mask)
    if folder.is_dir():
        shutil.copymode(folder, made)


def _sync(path: Path) -> None:
    with suppress(OSError):
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
