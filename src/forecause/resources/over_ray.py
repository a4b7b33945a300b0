"""Pieces of work as Ray tasks, on this machine or on a cluster; see forecause.resources.workers."""

from __future__ import annotations

import logging
import os
import secrets
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from forecause.common.work_sharing import one_thread
from forecause.config.thresholds import THRESHOLDS, call_with, thresholds
from forecause.errors import InputError, MissingExtra
from forecause.resources.workers import (
    RETRIES,
    Answer,
    Workers,
    died,
    portable,
)

# Time and memory:
TURN = 0.5  # seconds between two looks at running tasks
CONNECT_TIMEOUT = 5.0  # seconds

MARK = "FORECAUSE_RAY_OF"  # in the environment of processes that Ray starts here
WATCHER = """
import os, pathlib, signal, sys, time
sys.stdin.buffer.read()  # until the process that holds the other end is gone
mark = sys.argv[1].encode()
for ending in [signal.SIGTERM] * 3 + [signal.SIGKILL] * 3:
    time.sleep(2)
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if mark in (process / "environ").read_bytes().split(b"\\0"):
                os.kill(int(process.name), ending)
        except OSError:
            pass
"""
_WATCHERS: list[Any] = []
LOCAL = {
    "RAY_USAGE_STATS_ENABLED": "0",  # nothing is sent to anyone
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",  # listens on the loopback interface alone
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",  # a task that asks for no GPU still sees them
    "RAY_AUTH_MODE": "token",
}


class RayHelpers:
    """Does pieces of work as Ray tasks of one processor each; see forecause.common.work_sharing."""

    def __init__(self, workers: Workers, retries: int = RETRIES) -> None:
        self.workers, self.retries = workers, retries

    def each(
        self, function: Callable[[Any, Any], Any], common: Any, items: Sequence[Any]
    ) -> Iterator[Any]:
        """`function(common, item)` of every item, in order; raises the first error."""
        if thresholds() != THRESHOLDS:
            function = partial(call_with, thresholds(), function)
        early: dict[int, Answer[Any]] = {}
        following = 0
        for answer in self.answers(function, common, items):
            early[answer.number] = answer
            while following in early:
                yield early.pop(following).value
                following += 1

    def answers(
        self, function: Callable[[Any, Any], Any], common: Any, items: Sequence[Any]
    ) -> Iterator[Answer[Any]]:
        """The same, each answer as soon as it is there.

        `common` is put where every machine fetches it once, and every worker unpacks it once. Ray
        itself tries a piece again whose worker died.
        """
        ray = connect(self.workers)
        task = ray.remote(max_retries=self.retries, num_cpus=1)(_piece)
        kept = ray.put(common)
        running = {task.remote(function, [kept], item): n for n, item in enumerate(items)}
        try:
            while running:
                ready = _first_ready(ray, list(running))
                number = running.pop(ready)
                try:
                    answer = Answer(number, *ray.get(ready))
                except ray.exceptions.RayTaskError as error:  # of the way there
                    answer = Answer(number, error=RuntimeError(str(error).strip().splitlines()[-1]))
                except ray.exceptions.RayError as error:
                    answer = died(number, self.retries + 1, f"as {type(error).__name__}")
                yield answer
        finally:
            for left in running:
                ray.cancel(left, force=True)


_UNPACKED: dict[str, Any] = {}  # the common part that this worker had last


def _piece(function: Callable[[Any, Any], Any], kept: list[Any], item: Any) -> Any:
    """What a worker does: the result, or the error that the function raised."""
    import ray

    (reference,) = kept
    if reference.hex() not in _UNPACKED:
        _UNPACKED.clear()
        _UNPACKED[reference.hex()] = ray.get(reference)
    try:
        with one_thread():
            return function(_UNPACKED[reference.hex()], item), None
    except Exception as error:
        return None, portable(error)


def _first_ready(ray: Any, running: list[Any]) -> Any:
    """Wait in short turns, between which Ctrl-C is heard."""
    while True:
        try:
            ready, _ = ray.wait(running, timeout=TURN)
        except SystemError as broken:  # how Ray's compiled part passes on what a signal raised
            raise (broken.__cause__ or broken) from None
        if ready:
            return ready[0]


def connect(workers: Workers) -> Any:
    """The package ray, connected; once started it runs until this process ends, as Ray does."""
    local = workers.ray == "local"
    if local and "ray" not in sys.modules:  # Ray reads them when it is imported, and only then
        for name, value in LOCAL.items():
            os.environ.setdefault(name, value)
        os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))
    try:
        import ray
    except ImportError:
        raise MissingExtra("ray", "ray") from None
    if ray.is_initialized():
        return ray
    if local:
        with _ended_with_this_process():
            ray.init(
                address="local",
                num_cpus=workers.processes if workers.processes > 1 else None,  # one per core
                include_dashboard=False,
                log_to_driver=False,
                logging_level=logging.ERROR,
            )
        return ray
    try:
        _check_port(str(workers.ray))
        ray.init(address=workers.ray, log_to_driver=False, logging_level=logging.ERROR)
    except (OSError, RuntimeError, ValueError) as error:
        raise InputError(
            f"No Ray cluster answers at {workers.ray!r} ({_first_line(error)}); start one with "
            "'ray start --head', or ask for 'local'."
        ) from None
    return ray


@contextmanager
def _ended_with_this_process() -> Iterator[None]:
    """Processes that Ray starts meanwhile end with this one, even if it is killed.

    Ray's own agents would stay. A watcher holds the other end of a pipe that closes when this
    process is gone, and then ends those that bear its mark in their environment.
    """
    if sys.platform != "linux":
        yield
        return
    mark = f"{os.getpid()}-{secrets.token_hex(16)}"
    command = [sys.executable, "-I", "-S", "-c", WATCHER, f"{MARK}={mark}"]
    _WATCHERS.append(subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True))
    os.environ[MARK] = mark
    try:
        yield
    finally:
        del os.environ[MARK]


def _check_port(address: str) -> None:
    """Fail at once where nothing listens; Ray itself would try for minutes."""
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    if colon:
        socket.create_connection((host, int(port)), CONNECT_TIMEOUT).close()


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0].rstrip(".") if str(error).strip() else repr(error)
