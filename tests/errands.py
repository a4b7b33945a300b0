"""Work for workers; in a module, since other processes import it by name."""

import os
import signal
import subprocess
import sys
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


class DieFirst:
    """A function of two things that kills its worker the first time any is asked for."""

    def __init__(self, function, path):
        self.function, self.path = function, path

    def __call__(self, common, item):
        die_once(self.path)
        return self.function(common, item)


def kill(_common, _number):
    os.kill(os.getpid(), signal.SIGKILL)


def plus(common, number):
    if number == 3:
        raise InputError("three")
    return common + number


def die_at_two(number):
    if number == 2:
        os._exit(7)
    return number


def wait_for(path):
    """Done at once without a path, otherwise when there is such a file."""
    while path and not Path(path).exists():
        time.sleep(0.01)
    return path


def process(_):
    return os.getpid()


def speak(words):
    os.write(1, words.encode())


def threads(_):
    return os.environ.get("OMP_NUM_THREADS")


def start_a_child_and_wait(path):
    """Leave the child's process id in a file and never end."""
    child = subprocess.Popen(["sleep", "600"])
    Path(path).write_text(str(child.pid))
    child.wait()


def is_alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):  # it may end between opening and reading
        return False


def wait_until(reached, seconds=600.0):
    """The time bounds a failure alone: on a busy machine starting a process takes a minute."""
    end = time.monotonic() + seconds
    while not reached():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.01)


def count(to: int = 2) -> None:
    """Count from one."""
    sys.stdout.write("".join(f"{number}\n" for number in range(1, to + 1)))
