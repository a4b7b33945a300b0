"""The long form of what `make test` tries shortly: `python -m soak --minutes 30`.

Prints counts: malformed inputs by kind, interruptions of saving, loads beside writers, what was
foreign, mixed, lost or hung, and the peak of memory. Ends with 1 if anything was.
"""

import argparse
import io
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from collections import Counter
from contextlib import redirect_stdout
from functools import partial
from pathlib import Path

import torch

import forecause as fc
from soak.injury import DONE, FOREIGN, full_disk, injured, interrupt, kill
from soak.inputs import ORDER, Inputs, verdict
from systems import chain

HANG = 60  # seconds


class Hung(BaseException):
    """A trial that did not end."""


def malformed(inputs, count, until=float("inf")):
    """Counts of verdicts, and the trials that went wrong."""
    counts, wrong = Counter(), []
    for number in range(count):
        if time.monotonic() > until:
            break
        kind = ORDER[number % len(ORDER)]
        name, call = inputs.trial(number)
        signal.alarm(HANG)
        try:
            with redirect_stdout(io.StringIO()):
                found = verdict(call)
        except Hung:
            found = f"hung for {HANG} s"
        finally:
            signal.alarm(0)
        counts[kind, found if found in ("ok", "refused") else "wrong"] += 1
        if found not in ("ok", "refused"):
            wrong.append(f"input {number}, {name}: {found}")
    return counts, wrong


def interruptions(folder, count, until=float("inf"), step=1):
    """Save a run over another one, stopped at every file operation in turn, in three ways.

    Every second time the process stands in the folder, which then cannot be exchanged.
    """
    table = chain(120)
    old = fc.discover(table, max_lag=1, forecaster="linear", seed=1)
    new = fc.discover(table, max_lag=1, forecaster="linear", seed=2)
    ways, counts, wrong = (kill, interrupt, full_disk), Counter(), []
    target = folder / "run"

    def replaced(inside):
        if inside:
            os.chdir(target)
        new.save(target, overwrite=True)

    for number in range(count):
        way, inside, at = ways[number % 3], number // 3 % 2, 1 + step * (number // 6)
        if time.monotonic() > until:
            break
        old.save(target, overwrite=True)
        refusals = (OSError, fc.InputError)
        ended = injured(partial(replaced, inside), at, way, refusals)
        try:
            state = {1: "old", 2: "new"}[fc.load(target).config.run.seed]
        except fc.InputError as error:
            state = "lost"
            wrong.append(f"{way.__name__} at {at}, inside {inside}: {error}")
        if ended == FOREIGN:
            wrong.append(f"{way.__name__} at {at}: another exception")
        if ended == DONE and state != "new":
            wrong.append(f"{way.__name__} at {at}: done, but {state}")
        counts[way.__name__, state] += 1
    return counts, wrong


WRITER = """
import sys, warnings; warnings.simplefilter("ignore")
import forecause as fc
from systems import chain
folder, seed = sys.argv[1], int(sys.argv[2])
run = fc.discover(chain(150, seed), max_lag=1, forecaster="linear", seed=seed)
run.save(folder + f"-{seed}", overwrite=True)
print("ready", flush=True)
while True:
    run.save(folder, overwrite=True)
"""


def loads_beside_writers(folder, count, until=float("inf")):
    """Load a run that two processes replace all the time; each load must be one of theirs."""
    target = folder / "shared"
    command = [sys.executable, "-c", WRITER, str(target)]
    there = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    writers = [
        subprocess.Popen([*command, seed], stdout=subprocess.PIPE, env=there) for seed in "12"
    ]
    counts, wrong = Counter(), []
    try:
        for writer in writers:
            writer.stdout.readline()
        whole = {seed: fc.load(folder / f"shared-{seed}") for seed in (1, 2)}
        while not target.exists():
            time.sleep(0.1)
        for _ in range(count):
            if time.monotonic() > until:
                break
            try:
                found = fc.load(target)
            except fc.InputError as error:
                counts["load", "refused"] += 1
                if "being replaced all the time" not in str(error):
                    wrong.append(f"load beside writers: {error}")
                continue
            own = whole[found.config.run.seed]
            same = found.graph == own.graph and found.relevance.equals(own.relevance)
            same = same and found.forecast(1).equals(own.forecast(1))
            counts["load", "whole" if same else "mixed"] += 1
            if not same:
                wrong.append("load beside writers: a mixture")
    finally:
        for writer in writers:
            writer.kill()
            writer.communicate()
    return counts, wrong


def main():
    parser = argparse.ArgumentParser(prog="soak")
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--inputs", type=int, default=30_000)
    parser.add_argument("--interruptions", type=int, default=600)
    parser.add_argument("--loads", type=int, default=1_000)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    signal.signal(signal.SIGALRM, _hung)
    until = time.monotonic() + 60 * asked.minutes
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # no waiting for a disk
    with tempfile.TemporaryDirectory(prefix="soak-", dir=memory) as name:
        folder = Path(name)
        saved, lost = interruptions(folder, asked.interruptions, until)
        _print("interruptions of saving", saved)
        loaded, mixed = loads_beside_writers(folder, asked.loads, until)
        _print("loads beside writers", loaded)
        counts, wrong = malformed(Inputs(folder, asked.seed), asked.inputs, until)
        _print("malformed inputs", counts)
    users = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    peak = max(resource.getrusage(user).ru_maxrss for user in users) / 2**20
    say(f"peak memory {peak:.2f} GB")
    say(
        f"lost, mixed or foreign while saving: {len(lost)}; mixed or foreign beside writers: "
        f"{len(mixed)}; foreign, hung or odd: {len(wrong)}"
    )
    for line in (lost + mixed + wrong)[:60]:
        say("  " + line.encode("ascii", "backslashreplace").decode()[:600])
    sys.exit(bool(lost or mixed or wrong))


def say(line):
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def _hung(*_):
    raise Hung


def _print(title, counts):
    say(f"{title}: {sum(counts.values()):,}")
    for (kind, found), number in sorted(counts.items()):
        say(f"  {kind:12} {found:8} {number:>7,}")


if __name__ == "__main__":
    main()
