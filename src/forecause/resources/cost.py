"""What a discovery will take: seconds by stage and memory, estimated before it starts; and how to
keep to a budget of time.

Work is counted in operations and divided by this machine's measured speed; a network that is asked
for by name is timed for a few steps.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np

from forecause.data.windows import FIT_WORK, MOST_SAMPLED_WINDOWS, Windows
from forecause.edges.reading import READ_WINDOWS
from forecause.errors import InputError
from forecause.forecast.dictionary import Dictionary
from forecause.forecast.forecaster import ENOUGH_WINDOWS, MANY_INPUTS, ForecasterSettings
from forecause.forecast.selection import LEARNERS, Plan, Share, learners
from forecause.networks.settings import SeparateSettings, TrainedSettings
from forecause.regression.screen import ROUNDS, is_wide

TESTS, PRODUCTS, LEARNED = "the tests", "tests of products", "the learners' tests"
READING = "reading the network"

# Time and memory:
WORK = {  # operations per target, per input of it, per window of it, and per window and input
    TESTS: (6e8, 3e7, 5e5, 1.5e3),  # with seasons, alerts and the sizes of effects
    PRODUCTS: (0.0, 0.0, 4e5, 0.0),
    "dictionary": (2.5e8, 1.8e7, 0.0, 1.5e4),
    "trees": (0.0, 3e7, 0.0, 1.3e4),
    LEARNED: (8.8e9, 0.0, 0.0, 3.8e5),  # with their fits to causes, and the page
}
MOST_TESTED = 50_000  # windows that count in the tests
COUNTED_STEPS = {"mlp": (5e-4, 9.0), "transformer": (4e-3, 14.0)}  # seconds, times `work`
TIMED_STEPS = 3
PASSES, PASSES_PER_TARGET = 10.0, 0.8  # of READ_WINDOWS, after training: relevance, causes, page
PROBE = 0.1  # processor seconds, in which is seen how busy the machine is
BUSY = 1.5  # slowdown, from which it is said that others are at work
OTHERS = 1.5  # times as much or as little they may do until the run is done
STEP, OPTIMISER = 4e-4, 1.2  # seconds of a step besides, and times its gradient
SOLUTIONS = 25  # of the normal equations, to choose a penalty on left-out time
SCREEN_SHARE = 0.3  # of the speed of products that the screen for very many inputs reaches
STARTUP = 2.0  # seconds at most, of what is imported on the way
FEW_TAKE_LESS, FEW_TAKE_MORE = 0.4, 1.8  # times what is counted: 9 of 10 runs lie between
LONG = 60.0  # seconds, from which it is said what they are for
BASE_GB = 0.5  # of the interpreter and its libraries
STATISTICS = 15  # numbers about every candidate
HOPELESS = 1.5  # times the machine's memory, beyond which no run is begun
USEFUL_STEPS = 600  # with fewer a network is halved, and if that is not enough left out
RESERVE = 0.1  # of a budget, for what estimates miss
LEAST_EFFORT = 0.05  # of the tests and the readout


@dataclass(frozen=True)
class Cost:
    """Processor seconds by stage, of networks if none stops early, and gigabytes."""

    seconds: Mapping[str, float]
    memory_gb: float
    steps: Mapping[str, int] = field(default_factory=dict)  # at most, of every network
    indivisible: frozenset[str] = frozenset()  # networks that have no half of their width
    unsure: frozenset[str] = frozenset()  # stages that wait for a sign of joint functions
    earliest: Mapping[str, float] = field(default_factory=dict)  # share of a network's steps
    # after which it may end
    fits: int = 1  # how often every network is trained
    slowdown: float = 1.0  # seconds that pass for every one of these

    @property
    def least(self) -> float:
        """Few runs take less: nothing is found that is joint, networks stop early."""
        sure = (name for name in self.seconds if name not in self.unsure)
        own = sum(self._all_fits(name) * self.earliest.get(name, 1.0) for name in sure)
        return self.slowdown / self._others * FEW_TAKE_LESS * own

    @property
    def most(self) -> float:
        """Few runs take more."""
        own = STARTUP + FEW_TAKE_MORE * sum(map(self._all_fits, self.seconds))
        return self.slowdown * self._others * own

    @property
    def most_of_plain(self) -> float:
        """Few runs take more in which nothing joint is found."""
        joint = FEW_TAKE_MORE * sum(map(self._all_fits, self.unsure))
        return self.most - self.slowdown * self._others * joint

    @property
    def _others(self) -> float:
        """Times by which the slowdown may change on the way."""
        return OTHERS if self.slowdown > BUSY else 1.0

    def _all_fits(self, stage: str) -> float:
        return self.seconds[stage] * (self.fits if stage in self.steps else 1)

    @property
    def sentence(self) -> str:
        """The range, what most of it is for if that is long, and the memory."""
        others = " (other programs keep this machine busy)" if self._others > 1 else ""
        memory = f"and {self.memory_gb:.1f} GB{others}."
        if self.most < LONG:
            return f"Expecting about {_range(self.least, self.most)} {memory}"
        is_plain = self.most == self.most_of_plain
        joint = "" if is_plain else f", up to {in_words(self.most)} where effects are joint"
        stage = max(self.seconds, key=self._all_fits)
        name = stage if stage in (TESTS, PRODUCTS, LEARNED) else f"the forecaster {stage}"
        has_most = 2 * self._all_fits(stage) > sum(map(self._all_fits, self.seconds))
        mostly = f", mostly for {name}," if has_most else ""
        span = _range(self.least, self.most_of_plain)
        return f"Expecting about {span}{joint}{mostly} {memory}"


def _range(least: float, most: float) -> str:
    """1 to 5 s; 40 s to 3 min."""
    low, high = in_words(least), in_words(most)
    if low == high:
        return low
    return f"{low.split()[0] if low.split()[1] == high.split()[1] else low} to {high}"


def in_words(seconds: float) -> str:
    """A duration as people say it: 8 s, 3 min, 1.5 h."""
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    return f"{round(seconds / 60)} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def expected_cost(
    windows: Windows,
    tried: Sequence[ForecasterSettings],
    always: bool | None = None,
    fits: int = 1,
) -> Cost:
    """What fitting these forecasters to the windows, reading and testing them will take.

    Unless `always` is true, of several those that are no closed form are only fitted where there
    is a sign that they could win. Every network is trained `fits` times.
    """
    seconds = {stage: stage_seconds(windows, stage) for stage in (TESTS, PRODUCTS)}
    steps, earliest, indivisible, unsure = {}, {}, set(), {PRODUCTS}
    for spec in tried:
        settings = spec.sized(windows.inputs)
        kind = settings.kind
        if isinstance(settings, TrainedSettings):
            most = settings.training.most_steps(len(windows))
            batches = READ_WINDOWS / settings.training.batch_size
            each = step_seconds(settings, windows, timed=len(tried) == 1)
            seconds[kind] = each * max(1, len(settings.sparsity)) * most
            if len(tried) == 1:  # one of several is seldom kept, and then read as quickly as MLPs
                own = 1 if isinstance(settings, SeparateSettings) else windows.shape[1]
                seconds[READING] = each * batches * (PASSES + PASSES_PER_TARGET * own)
            if most:  # a network that is used as it is has no steps to cut
                steps[kind] = most
                least = settings.training.least_steps(rivals=len(tried) > 1)
                earliest[kind] = min(1.0, least / most)
            if settings.halved() == settings:
                indivisible.add(kind)
        elif type(settings) in LEARNERS:
            seconds[kind] = stage_seconds(windows, kind)
        else:
            seconds[kind] = fit_seconds(windows, settings.features(windows.inputs))
        if len(tried) > 1 and not always and not settings.closed_form and kind != Dictionary.kind:
            unsure.add(kind)
    if unsure > {PRODUCTS} and learners(windows):
        seconds[LEARNED] = stage_seconds(windows, LEARNED)
        unsure.add(LEARNED)
    memory = memory_gb(windows, tried)
    halfless, waiting = frozenset(indivisible), frozenset(unsure)
    return Cost(seconds, memory, steps, halfless, waiting, earliest, fits)


def stage_seconds(windows: Windows, stage: str) -> float:
    """Of a stage whose work grows with targets, inputs and windows."""
    own, of_input, of_window, of_both = WORK[stage]
    count = min(len(windows), MOST_TESTED if stage == TESTS else ENOUGH_WINDOWS)
    inputs = windows.inputs
    if stage == TESTS and inputs > MANY_INPUTS:
        inputs = 0  # of many, few are tested together
    each = own + of_input * inputs + (of_window + of_both * inputs) * count
    return windows.shape[1] * each / matmul_speed()


def fit_seconds(windows: Windows, features: int) -> float:
    """Of a closed form: its Gram matrix, and solutions for every penalty and left-out block; of
    very many inputs a screen, every input with every target, in rounds."""
    if is_wide(windows.inputs, len(windows)):
        pairs = windows.inputs * windows.shape[1]
        return 2.0 * len(ROUNDS) * len(windows) * pairs / (SCREEN_SHARE * matmul_speed())
    count = min(len(windows), FIT_WORK / features**2)
    return (2 * count * features**2 + SOLUTIONS * features**3 / 3) / matmul_speed()


def step_seconds(settings: TrainedSettings, windows: Windows, timed: bool = True) -> float:
    """Of one training step of a network: timed on windows of the data, or else counted, for which
    torch need not be imported."""
    size = min(settings.training.batch_size, len(windows))
    if not timed and settings.kind in COUNTED_STEPS:
        fixed, factor = COUNTED_STEPS[settings.kind]
        counted = fixed + factor * settings.work(windows.shape) * size / matmul_speed()
        return STEP + OPTIMISER * counted
    from forecause.networks.network import Network

    model, batch = settings.seeded_build(windows.shape, seed=0), windows.draw(np.arange(size))
    assert isinstance(model, Network)
    return STEP + OPTIMISER * best_of(lambda: model.backward_pass(batch), TIMED_STEPS)


@cache
def matmul_speed(size: int = 512, dtype: type[np.floating[Any]] = np.float64) -> float:
    """Floating-point operations per second of a product of square matrices."""
    a = np.random.default_rng(0).random((size, size)).astype(dtype)
    return 2 * size**3 / best_of(lambda: a @ a, 5)


def slowdown() -> float:
    """Seconds that pass for what this machine does in one at its best: more than 1 where others are
    at work too, who take processors, and of those that are left their caches."""
    speed, size = matmul_speed(), 512
    a = np.random.default_rng(0).random((size, size))
    began, used, done = time.perf_counter(), time.process_time(), 0
    while time.process_time() - used < PROBE:
        a @ a
        done += 1
    return max(1.0, (time.perf_counter() - began) * speed / (done * 2 * size**3))


def best_of(call: Callable[[], object], times: int) -> float:
    """The least processor seconds of several calls: what others do on the machine counts little."""
    taken = []
    for _ in range(times):
        start = time.process_time()
        call()
        taken.append(time.process_time() - start)
    return max(min(taken), 1e-9)


def memory_gb(windows: Windows, tried: Iterable[ForecasterSettings]) -> float:
    """The table unless it stays on disk, the sample that is tested, what is known of every
    candidate, and the largest Gram matrix with its parts."""
    held = windows.panel.values.nbytes if windows.in_memory else 0
    steps, columns = windows.shape
    sample = min(len(windows), MOST_SAMPLED_WINDOWS) * (steps + 1) * columns * 4
    features = max([windows.inputs, *(spec.features(windows.inputs) for spec in tried)])
    if is_wide(windows.inputs, len(windows)):
        features = 0  # no two inputs are multiplied
    statistics = STATISTICS * windows.inputs * columns
    return BASE_GB + (held + 2 * sample + 8 * (10 * features**2 + statistics)) / 1e9


def check_memory(cost: Cost) -> None:
    """Refuse before any work what this machine cannot hold, whatever estimates miss."""
    there = machine_gb()
    if cost.memory_gb > HOPELESS * there:
        raise InputError(
            f"This would take about {cost.memory_gb:,.0f} GB of memory, and this machine has "
            f"{there:,.0f}; use fewer columns, a smaller max_lag, or another forecaster."
        )


def machine_gb() -> float:
    """Gigabytes of memory; without end where the system does not say."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9
    except (ValueError, OSError, AttributeError):
        return float("inf")


def plan_for(budget: float, cost: Cost, asked: str | None) -> Plan:
    """How to keep to `budget` seconds; the kind that is `asked` for by name is never left out."""
    networks = [kind for kind in cost.seconds if kind in cost.steps]
    fixed = sum(cost.seconds[stage] for stage in cost.seconds if stage not in networks)
    left = budget / cost.slowdown * (1 - RESERVE)
    effort = max(LEAST_EFFORT, min(1.0, left / 2 / fixed))
    left = max(0.0, left - fixed * effort)
    shares: dict[str, Share | None] = {}
    notes = []
    for number, kind in enumerate(networks):
        own = left / (len(networks) - number) / cost.fits
        if cost.seconds[kind] <= own:
            left -= cost.seconds[kind] * cost.fits
            continue
        shares[kind] = share = _share(own, cost, kind, kind == asked)
        if share is None:
            notes.append(f"no {kind}")
            continue
        left -= own * cost.fits
        half = " of half the width" if share.halved else ""
        notes.append(f"{share.steps:,} of {cost.steps[kind]:,} steps of the {kind}{half}")
    if effort < 1:
        notes.append(f"{effort:.0%} of the windows are read and tested")
    kept = f"To keep to {in_words(budget)}: {', '.join(notes)}." if notes else ""
    return Plan(shares, effort, (kept,) if kept else ())


def _share(seconds: float, cost: Cost, kind: str, needed: bool) -> Share | None:
    """The steps that fit, of half the width if they are few; None where that is not enough."""
    most = cost.steps[kind]
    steps = int(most * seconds / cost.seconds[kind])
    seconds *= cost.slowdown
    if steps >= USEFUL_STEPS:
        return Share(seconds, min(steps, most))
    if needed and kind in cost.indivisible:
        return Share(seconds, max(1, steps))
    if needed or 2 * steps >= USEFUL_STEPS:  # half the width takes about half the time
        return Share(seconds, max(1, min(2 * steps, most)), halved=True)
    return None
