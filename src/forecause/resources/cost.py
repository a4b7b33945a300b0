"""What a discovery will take: seconds by stage and memory, estimated before it starts.

Closed forms, and networks that `auto` may try, are counted in floating-point operations and divided
by this machine's measured speed; a network that is asked for by name is timed for a few steps.
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
from forecause.forecast.additive import Additive
from forecause.forecast.dictionary import Dictionary
from forecause.forecast.forecaster import ENOUGH_WINDOWS, MANY_INPUTS, ForecasterSettings
from forecause.forecast.input_tests.closed_form import (
    MOST_PAIRED,
    MOST_PLAUSIBLE,
    WORK_OF_TARGETS,
    WORK_PER_TARGET,
)
from forecause.forecast.input_tests.closed_form import WORK as TEST_WORK
from forecause.forecast.selection import LEARNERS, Plan, Share, learners
from forecause.networks.settings import TrainedSettings
from forecause.regression.screen import ROUNDS, is_wide

# Time and memory:
TIMED_STEPS = 3
OPTIMISER = 1.2  # a step over its gradient; making an optimiser imports for seconds
STEP = 4e-4  # second of a step besides, at least: the optimiser's calls and looks
COUNTED_STEPS = {"mlp": (5e-4, 9.0), "transformer": (4e-3, 14.0)}  # seconds, times `work`
SOLUTIONS = 25  # of the normal equations, to choose a penalty on left-out time
TEST_SHARE = 0.5  # of the speed of products that the tests reach
BASE_GB = 0.5  # of the interpreter and its libraries
HOPELESS = 1.5  # times the machine's memory, beyond which no run is begun
STATISTICS = 15  # numbers about every candidate
START, STARTUP = 0.1, 1.0  # seconds of whatever is not counted: at least, and with imports
FEW_TAKE_LESS, FEW_TAKE_MORE = 0.45, 1.6  # times what is counted: 9 of 10 runs lie between
STEP_TAKES_LESS, STEP_TAKES_MORE = 0.8, 1.4  # and of a network's steps
LONG = 60.0  # seconds, from which it is said what they are for
LEARNED, PRODUCTS = "learners' tests", "products"
STAGES = {  # in words; the others are forecasters
    "start": "starting",
    "time": "seasons and alerts",
    "tests": "the tests",
    PRODUCTS: "tests of products",
    "pairs": "the tests of pairs",
    "effects": "the sizes of effects",
    LEARNED: "the learners' tests",
}
# Operations, measured in small systems: what a stage takes besides products of matrices.
CELL_WORK, MOST_ROWS = 1.2e5, 50_000  # seasons and alerts, per cell
PAIR_WORK, JOINT_WORK = 4e7, 3.5e8  # tests of pairs: per pair and per target
EFFECT_WORK = (6e7, 2.5e5, 20_000)  # per target, and per window of it up to so many
LEARNER_WORK = {  # per target, per input of it, and per window of that
    "dictionary": (2.5e8, 1.8e7, 1.5e4),
    "trees": (0.0, 3e7, 1.3e4),
    LEARNED: (4.4e9, 0.0, 1.9e5),
}
STEPWISE_BELOW = 100  # windows per input, where parents are found step by step
STEPWISE_WORK = (2e8, 1.1e7, 2.5e5)  # per target, per input of it, per window of it
TEST_WORK_OF_FEW = (400.0, 8.5e4)  # per window and pair of inputs, per window and target
SCREEN_SHARE = 0.3  # of the speed of products that the screen for very many inputs reaches


@dataclass(frozen=True)
class Cost:
    """Seconds by stage on an idle machine, of networks if none stops early, and gigabytes."""

    seconds: Mapping[str, float]
    memory_gb: float
    steps: Mapping[str, int] = field(default_factory=dict)  # at most, of every network
    indivisible: frozenset[str] = frozenset()  # networks that have no half of their width
    unsure: frozenset[str] = frozenset()  # stages that wait for a sign of joint functions
    earliest: Mapping[str, float] = field(default_factory=dict)  # share of its steps after which
    # a network may end
    fits: int = 1  # how often every network is trained

    @property
    def total(self) -> float:
        """Of all stages, whatever is found."""
        return sum(self.seconds.values())

    @property
    def least(self) -> float:
        """Few runs take less: nothing is found that is joint, networks stop early."""
        sure = {name: s for name, s in self.seconds.items() if name not in self.unsure}
        start = START if sure.pop("start", None) else 0.0
        trained = sum(sure.pop(name, 0.0) * self.earliest[name] for name in self.steps)
        steps = STEP_TAKES_LESS * self.fits * trained
        return start + FEW_TAKE_LESS * sum(sure.values()) + steps

    @property
    def most(self) -> float:
        """Few runs take more."""
        return self._most_of(self.seconds)

    @property
    def most_of_plain(self) -> float:
        """Few runs take more in which nothing joint is found."""
        return self._most_of([name for name in self.seconds if name not in self.unsure])

    def _most_of(self, stages: Iterable[str]) -> float:
        own = {name: self.seconds[name] for name in stages}
        start = own.pop("start", 0.0)
        steps = STEP_TAKES_MORE * self.fits * sum(own.pop(name, 0.0) for name in self.steps)
        return start + FEW_TAKE_MORE * sum(own.values()) + steps

    @property
    def sentence(self) -> str:
        """The range on an idle machine, what most of it is for if that is long, and the memory."""
        return self._sentence()

    @property
    def announcement(self) -> str:
        """The sentence, with the times of a machine that others use too."""
        tasks, cores = busy_tasks(), os.cpu_count() or 1
        if tasks < cores:
            return self.sentence
        return self._sentence((tasks + 1) / cores, " (the machine is busy)")

    def _sentence(self, longer: float = 1.0, why: str = "") -> str:
        least, plain, most = self.least * longer, self.most_of_plain * longer, self.most * longer
        if self.most < LONG:
            return f"Expecting about {_range(least, most)}{why} and {self.memory_gb:.1f} GB."
        joint = f", up to {in_words(most)} where effects are joint" if most > plain else ""
        stage = max(self.seconds, key=lambda name: self.seconds[name])
        what = STAGES.get(stage, f"the forecaster {stage}")
        mostly = f", mostly for {what}," if 2 * self.seconds[stage] > self.total else ""
        time = f"{_range(least, plain)}{why}{joint}{mostly}"
        return f"Expecting about {time} and {self.memory_gb:.1f} GB."


def _range(least: float, most: float) -> str:
    """1 to 5 s; 40 s to 3 min."""
    low, high = in_words(least), in_words(most)
    if low == high:
        return low
    return f"{low.split()[0] if low.split()[1] == high.split()[1] else low} to {high}"


def busy_tasks() -> float:
    """Tasks that have run or waited for a core in the last minute; 0 where that is not known."""
    try:
        return os.getloadavg()[0]
    except (OSError, AttributeError):
        return 0.0


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
    seconds = {
        "start": STARTUP,
        "time": cell_seconds(windows),
        "tests": test_seconds(windows),
        PRODUCTS: product_seconds(windows),
        "pairs": pair_seconds(windows),
        "effects": effect_seconds(windows),
    }
    steps, earliest, indivisible, unsure = {}, {}, set(), {PRODUCTS}
    for spec in tried:
        settings = spec.sized(windows.inputs)
        kind = settings.kind
        if isinstance(settings, TrainedSettings):
            most = settings.training.most_steps(len(windows))
            weights = max(1, len(settings.sparsity))
            batches = READ_WINDOWS / settings.training.batch_size
            each = step_seconds(settings, windows, timed=len(tried) == 1)
            seconds[kind] = each * (weights * most + 2 * batches)
            if most:  # a network that is used as it is has no steps to cut
                steps[kind] = most
                least = settings.training.least_steps(rivals=len(tried) > 1)
                earliest[kind] = min(1.0, least / most)
            if settings.halved() == settings:
                indivisible.add(kind)
        elif type(settings) in LEARNERS:
            seconds[kind] = learner_seconds(windows, settings.kind)
        else:
            seconds[kind] = fit_seconds(windows, settings.features(windows.inputs))
        if len(tried) > 1 and not always and not settings.closed_form and kind != Dictionary.kind:
            unsure.add(kind)
    if unsure > {PRODUCTS} and learners(windows):
        seconds[LEARNED] = learner_seconds(windows, LEARNED)
        unsure.add(LEARNED)
    return Cost(
        seconds,
        memory_gb(windows, tried),
        steps,
        frozenset(indivisible),
        frozenset(unsure),
        earliest,
        fits,
    )


def learner_seconds(windows: Windows, kind: str) -> float:
    """Of dictionaries, of trees, or of both on two parts of time with their tests: all of these
    grow with windows, inputs and targets."""
    count = min(len(windows), ENOUGH_WINDOWS)
    own, of_input, of_window = LEARNER_WORK[kind]
    each = own + windows.inputs * (of_input + of_window * count)
    return windows.shape[1] * each / matmul_speed()


def cell_seconds(windows: Windows) -> float:
    """Of the look for seasons and of the alerts, which see the table cell by cell."""
    return CELL_WORK * min(len(windows), MOST_ROWS) * windows.shape[1] / matmul_speed()


def pair_seconds(windows: Windows) -> float:
    """Of the tests of all lags of a pair together."""
    if windows.inputs > MANY_INPUTS:
        return 0.0
    targets = windows.shape[1]
    return targets * (JOINT_WORK + PAIR_WORK * targets) / matmul_speed()


def effect_seconds(windows: Windows) -> float:
    """Of the intervals of all edges: a regression of each target, and a look for products."""
    own, of_window, most = EFFECT_WORK
    each = own + of_window * min(len(windows), most)
    return windows.shape[1] * each / matmul_speed()


def fit_seconds(windows: Windows, features: int) -> float:
    """Of a closed form: its Gram matrix, and solutions for every penalty and left-out block."""
    if is_wide(windows.inputs, len(windows)):
        return screen_work(windows) / (SCREEN_SHARE * matmul_speed())
    count = min(len(windows), FIT_WORK / features**2)
    return (2 * count * features**2 + SOLUTIONS * features**3 / 3) / matmul_speed()


def screen_work(windows: Windows) -> float:
    """Operations of the screen for very many inputs: every input with every target, in rounds."""
    return 2.0 * len(ROUNDS) * len(windows) * windows.inputs * windows.shape[1]


def test_seconds(windows: Windows) -> float:
    """Of the tests: lines and curves of all inputs, and for each target those of the plausible."""
    if windows.inputs <= MANY_INPUTS:
        return _test_work_of_few(windows) / matmul_speed()
    count, terms = min(len(windows), MOST_SAMPLED_WINDOWS), Additive().knots - 1
    if is_wide(windows.inputs, len(windows)):
        work = screen_work(windows)
    else:
        widths = (windows.inputs, terms * windows.inputs)
        work = sum(4 * min(count * features**2, TEST_WORK) for features in widths)
    each = 4 * min(count * (terms * MOST_PLAUSIBLE) ** 2, _most_per_target(windows))
    return (work + windows.shape[1] * each) / (TEST_SHARE * matmul_speed())


def _test_work_of_few(windows: Windows) -> float:
    """Operations where inputs are few, and calls take as long as products of matrices."""
    count, inputs = min(len(windows), MOST_SAMPLED_WINDOWS), windows.inputs
    of_pair, of_target = TEST_WORK_OF_FEW
    work = count * (of_pair * inputs**2 + of_target * windows.shape[1])
    if count < STEPWISE_BELOW * inputs:
        own, of_input, of_window = STEPWISE_WORK
        work += windows.shape[1] * (own + of_input * inputs + of_window * count)
    return work


def product_seconds(windows: Windows) -> float:
    """Of products in the tests, which are fitted for some targets."""
    count = min(len(windows), MOST_SAMPLED_WINDOWS)
    terms = 2 * min(MOST_PAIRED, windows.inputs) ** 2
    each = 4 * min(count * terms**2, _most_per_target(windows)) / 3
    return windows.shape[1] * each / (TEST_SHARE * matmul_speed())


def _most_per_target(windows: Windows) -> float:
    return min(WORK_PER_TARGET, WORK_OF_TARGETS / windows.shape[1])


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


def memory_gb(windows: Windows, tried: Sequence[ForecasterSettings]) -> float:
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


def in_words(seconds: float) -> str:
    """A duration as people say it: 8 s, 3 min, 1.5 h."""
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    return f"{round(seconds / 60)} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


@cache
def matmul_speed(size: int = 512, dtype: type[np.floating[Any]] = np.float64) -> float:
    """Floating-point operations per second of a product of square matrices."""
    a = np.random.default_rng(0).random((size, size)).astype(dtype)
    return 2 * size**3 / best_of(lambda: a @ a, 5)


def best_of(call: Callable[[], object], times: int) -> float:
    """The least processor seconds of several calls: what others do on the machine counts little."""
    taken = []
    for _ in range(times):
        start = time.process_time()
        call()
        taken.append(time.process_time() - start)
    return max(min(taken), 1e-9)


# Time and memory:
USEFUL_STEPS = 600  # with fewer a network is halved, and if that is not enough left out
RESERVE = 0.1  # of the time, for what estimates miss
LEAST_EFFORT = 0.05  # of the tests and the readout


def plan_for(budget: float, cost: Cost, asked: str | None) -> Plan:
    """How to keep to `budget` seconds; the kind that is `asked` for by name is never left out."""
    networks = [kind for kind in cost.seconds if kind in cost.steps]
    fixed = sum(cost.seconds[stage] for stage in cost.seconds if stage not in networks)
    left = budget * (1 - RESERVE)
    effort = max(LEAST_EFFORT, min(1.0, left / 2 / fixed))
    left = max(0.0, left - fixed * effort)
    shares: dict[str, Share | None] = {}
    notes = []
    for number, kind in enumerate(networks):
        own = left / (len(networks) - number) / cost.fits
        if cost.seconds[kind] <= own:
            left -= cost.seconds[kind] * cost.fits
            continue
        shares[kind] = _share(own, cost, kind, needed=kind == asked)
        notes.append(_note(kind, shares[kind], cost))
        left -= own * cost.fits if shares[kind] else 0.0
    if effort < 1:
        notes.append(f"{effort:.0%} of the windows are read and tested")
    kept = f"To keep to {in_words(budget)}: {', '.join(notes)}." if notes else ""
    return Plan(shares, effort, (kept,) if kept else ())


def _share(seconds: float, cost: Cost, kind: str, needed: bool) -> Share | None:
    most = cost.steps[kind]
    steps = int(most * seconds / cost.seconds[kind])
    if steps >= USEFUL_STEPS:
        return Share(seconds, min(steps, most))
    if needed and kind in cost.indivisible:
        return Share(seconds, max(1, steps))
    if needed or 2 * steps >= USEFUL_STEPS:  # half the width takes about half the time
        return Share(seconds, max(1, min(2 * steps, most)), halved=True)
    return None


def _note(kind: str, share: Share | None, cost: Cost) -> str:
    if share is None:
        return f"no {kind}"
    half = " of half the width" if share.halved else ""
    return f"{share.steps:,} of {cost.steps[kind]:,} steps of the {kind}{half}"
