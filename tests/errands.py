"""Work for workers; in a module, since other processes import it by name."""

import os
import signal
import time
from pathlib import Path

from forecause.errors import InputError, MissingExtra


def square(number):
    return number * number


def square_of_all_but_three(number):
    if number == 3:
        raise InputError("three")
    if number == 4:
        raise MissingExtra("four", "numbers")
    return number * number


def die_once(path):
    """Kill the worker the first time, tell who lived to say so the second."""
    if not Path(path).exists():
        Path(path).write_text("was here")
        os.kill(os.getpid(), signal.SIGKILL)
    return os.getpid()


def die_at_two(number):
    if number == 2:
        os._exit(7)
    return number


def wait_for(path):
    """Done at once without a path, otherwise when there is such a file."""
    while path and not Path(path).exists():
        time.sleep(0.01)
    return path


def threads(_):
    return os.environ.get("OMP_NUM_THREADS")
