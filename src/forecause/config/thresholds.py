"""Every number that decides a result: what it bounds, and the command that shows what it does.

A run keeps its thresholds in `run.json`. An expert sets some with `fc.Config(thresholds={"edges":
{"least_share": 0.001}})` or `--set thresholds.edges.least_share=0.001`. Numbers that only bound
time or memory stay where they are used.

Functions read the thresholds of the run that is at work: `thresholds().edges.least_share`. The run
sets them once, `with using(config.thresholds)`, around all of its work; threads and processes that
help it are given the same ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Annotated, Any, ClassVar, TypeVar

from pydantic import Field

from forecause.config.spec import Settings, check_names
from forecause.errors import InputError

Share = Annotated[float, Field(ge=0, le=1)]
Positive = Annotated[float, Field(gt=0)]
Count = Annotated[int, Field(ge=1)]

Answer = TypeVar("Answer")

CALIBRATION = "forecause bench calibration"
WEAK_LINKS = "python -m forecause_bench.weak_links"
CERTAINTY = "python -m forecause_bench.certainty"
NULLS = "forecause bench nulls"
ALERTS = "forecause bench alerts"
HARD = "forecause bench hard"
RANKING = "forecause bench ranking"
REGIMES = "forecause bench regimes"
HOURLY = "forecause bench hourly"
LATENT = "forecause bench latent"
EFFECTS = "forecause bench effects"
FORECASTS = "forecause bench forecasts"
WIDE = "forecause bench wide"
OWN_TESTS = "forecause bench own-tests"
INCIDENTS = "forecause bench incidents"
CHANGES = "forecause bench changes"
DRIVERS = "forecause bench drivers"
FEW_ROWS = "forecause bench few-rows"
GAPS = "forecause bench gaps"
OUTLIERS = "forecause bench nulls-linked"
READING = "python -m pytest tests/data"
SEASONS = "python -m pytest tests/seasons"


def _number(default: Any, bounds: str, measured_by: str) -> Any:
    """A threshold: its value, what it bounds, and the command whose figures show what it does."""
    return Field(
        default=default, description=bounds, json_schema_extra={"measured_by": measured_by}
    )


class ReadingThresholds(Settings):
    """What a table's cells, columns and rows are taken for.

    They hold for a table that the run reads itself; `fc.read` takes the usual ones.
    """

    least_windows: Count = _number(
        20, "windows, fewer cannot be split into a training and a held-out part", CALIBRATION
    )
    short_gap: Count = _number(
        5, "rows of a gap that is filled whatever else of its row or column is missing", GAPS
    )
    longest_gap: Count = _number(50, "rows of a gap, a longer one stays missing", GAPS)
    least_known: Share = _number(
        0.5, "share of row and column that is known where a gap that is not short is filled", GAPS
    )
    rows_before: Count = _number(5, "rows before it that a filled value is expected from", GAPS)
    least_complete: Count = _number(30, "complete rows, with fewer nothing is filled", GAPS)
    gap_in_time: Positive = _number(
        1.5, "usual steps of time, beyond which one is a gap that no window crosses", READING
    )
    most_repeated: Share = _number(
        0.1, "share of rows whose time was there already, up to which they are averaged", READING
    )
    most_labels: Count = _number(12, "labels of a variable, with more it is refused", READING)
    least_of_label: Count = _number(
        10, "rows of a label, with fewer it is pooled with others and not tested", READING
    )
    most_no_dates: Share = _number(
        0.1, "share of cells that are no dates in a column which is said to hold dates", READING
    )
    wild: Positive = _number(
        20.0,
        "robust standard deviations from the median of a cell that seems an error",
        READING,
    )
    apart: Positive = _number(
        3.0, "how many times as far as all other cells such cells are", READING
    )
    most_wild: Count = _number(3, "such cells of a column, more are its own nature", READING)
    outlier: Positive = _number(
        4.5, "robust standard deviations from what its last rows let expect of an outlier", OUTLIERS
    )
    least_outliers: Count = _number(
        5, "outliers of a column, with fewer nothing tells whether the system feels them", OUTLIERS
    )
    most_outliers: Share = _number(
        0.1, "share of a column's rows, above which such values are its own nature", OUTLIERS
    )
    nearly_outlier: Share = _number(
        2 / 3, "share of `outlier` from which a cell counts as nearly so far off", OUTLIERS
    )
    outliers_apart: Positive = _number(
        2.0,
        "outliers for each such cell, with fewer they are the column's own tail",
        OUTLIERS,
    )
    felt: Share = _number(0.05, "level of the test whether the system feels outliers", OUTLIERS)
    outlier_gain: Positive = _number(
        3.0, "standard errors by which rows after outliers are forecast better without", OUTLIERS
    )
    counted_rows: Count = _number(
        100, "rows in which never going back is no accident, so that a column counts", READING
    )
    most_resets: Share = _number(0.01, "share of rows in which a counter starts again", READING)
    reset_below: Share = _number(
        0.5, "share of its value before, which a counter that starts again falls below", READING
    )
    often: Share = _number(
        0.5, "share of rows in which a counter grows that its name does not tell", READING
    )
    same_steps: Share = _number(0.99, "share of equal steps of a clock", READING)
    least_changes: Count = _number(
        10, "changes of a column that only grows, fewer are those of a running number", READING
    )


class EdgeThresholds(Settings):
    """Which tested candidates become edges, and in which order they are ranked."""

    usual_fdr: Share = _number(0.02, "accepted share of false edges", CALIBRATION)
    usual_fdr_few: Share = _number(0.05, "the same below `few_windows`", WEAK_LINKS)
    usual_fdr_weak: Share = _number(
        0.1, "the same below `few_windows` where the links are weak", WEAK_LINKS
    )
    few_windows: Count = _number(1500, "windows below which a run is short", WEAK_LINKS)
    firm_q: Share = _number(0.001, "largest q-value of a link that is not weak", WEAK_LINKS)
    firm_share: Share = _number(
        0.75, "share of links that are not weak, below which the links are weak", WEAK_LINKS
    )
    least_share: Share = _number(
        0.003, "least share of a target's relevance that a cause has", WEAK_LINKS
    )
    least_share_beside_own: Share = _number(
        0.2,
        "share of what others have of a target which its own past nearly tells, to be a cause",
        DRIVERS,
    )
    nearly_known: Share = _number(
        0.9, "share of a target's variance that is forecast, from which more is asked", HARD
    )
    least_share_nearly_known: Share = _number(
        0.03, "`least_share` of such a target: the faintest influence is beyond chance there", HARD
    )
    own_past_weight: Positive = _number(
        6.0, "how much likelier a variable's own last value is a cause than its older ones", NULLS
    )
    clear_powers: Positive = _number(
        6.0, "powers of ten from which on a p-value does not lower the score", RANKING
    )
    discount: Positive = _number(
        4.0, "exponent of the share of those powers that a p-value has", RANKING
    )
    joint_share: Share = _number(
        0.5, "weight of the joint test of all lags of a pair beside those of single lags", NULLS
    )
    windows_per_input: Positive = _number(
        2.0, "windows per input of a domain, with fewer it has no graph of its own", REGIMES
    )


class TestThresholds(Settings):
    """How an input is tested given the others, and which tests are tried at all."""

    __test__: ClassVar[bool] = False  # no tests of ours, whatever pytest thinks of the name

    entry_level: Share = _number(
        0.005, "p-value below which an input joins a target's plausible parents", CALIBRATION
    )
    spline_level: Share = _number(
        0.01, "p-value of its bends below which a parent enters as a spline", CALIBRATION
    )
    line_share: Share = _number(
        0.9, "weight of the line's test beside the spline's while parents are looked for", NULLS
    )
    most_spline_share: Share = _number(
        0.5, "weight of the spline's test where most parents are bent", NULLS
    )
    prior_parents: Positive = _number(
        5.0, "parents, half a bent one among them, assumed before any is seen", NULLS
    )
    confirm_level: Share = _number(
        0.05, "p-value below which an input is tested again given all lines", NULLS
    )
    max_p_given_all_lines: Share = _number(
        0.2, "p-value given all lines above which an input is no cause", NULLS
    )
    enough_per_input: Positive = _number(
        100.0, "windows per input from which the test given all others decides alone", DRIVERS
    )
    allowance_below: Positive = _number(
        50.0, "windows per input below which that test is allowed for the power it lost", DRIVERS
    )
    most_allowance: Positive = _number(
        200.0, "factor by which a p-value given all lines may exceed that given parents", FEW_ROWS
    )
    parents_suffice_level: Share = _number(
        0.01,
        "p-value of all other lines below which a target's few parents do not suffice",
        DRIVERS,
    )
    unequal_spread: float = _number(
        2.0, "z-value of the squared errors' rise with an input's leverage, to use HC3", NULLS
    )
    plausible_p: Share = _number(
        0.05, "p-value of the inputs that richer models are tried on", CALIBRATION
    )
    product_t: Positive = _number(
        3.5, "t-value of a product from which models with products are fitted", HARD
    )
    suspect_share: Share = _number(
        0.02, "share of a target's relevance from which an input's products are tested", HARD
    )
    wave_p: Share = _number(
        0.01, "p-value of the best wave of all inputs, from which waves count", HARD
    )
    clear_gain: Positive = _number(
        1.0, "standard errors by which a learner must win to decide alone", CALIBRATION
    )
    largest_p: Share = _number(
        0.95, "p-value in a combination, where 1 would outweigh any small one", CALIBRATION
    )
    least_learner_gain: Share = _number(
        0.01, "gain of a learner over lines and splines, to look for what it misses", HARD
    )
    promising_t: Positive = _number(
        1.5, "t-value from which a refitted test is checked by a second projection", OWN_TESTS
    )
    most_filled: Share = _number(
        0.01,
        "share of a target's filled cells, with more only observed ones are tested",
        GAPS,
    )
    learned_nothing: Share = _number(
        0.05,
        "p-value, over the number of targets, up to which a refitted forecaster beats the mean of "
        "some target and so has learned something",
        OWN_TESTS,
    )
    windows_per_term: Count = _number(
        5, "windows per term of a richer model, with fewer it is not fitted", FEW_ROWS
    )
    windows_per_line: Count = _number(
        2, "windows per input, with fewer nothing is asked given the lines of all others", FEW_ROWS
    )
    held_out: Share = _number(
        0.2, "share of the windows on which closed forms are compared", CALIBRATION
    )
    windows_per_refitted: Count = _number(
        6, "windows per input that a forecaster without a closed form is tested on", OWN_TESTS
    )
    rows_per_projected: Count = _number(
        6, "rows per term of what other inputs explain, with fewer it has fewer terms", OWN_TESTS
    )
    rows_per_stretch: Count = _number(
        50, "rows of the stretches of time that are learned from and tested on in turn", OWN_TESTS
    )
    most_stretches: Count = _number(20, "such stretches, at most", OWN_TESTS)
    largest_leverage: Share = _number(0.9, "leverage of a row in that test, at most", OWN_TESTS)
    least_weight: Share = _number(
        0.15, "weight of dictionary or trees in their stack, below it the other stands alone", HARD
    )
    least_known: Share = _number(
        0.01, "share of a target's variance that its relevance adds up to, at least", RANKING
    )


class MisfitThresholds(Settings):
    """When a dictionary or trees are said to miss a function that the data holds."""

    least_correlation: Share = _number(
        0.16, "correlation of a search's forecast with what the learner leaves", HARD
    )
    least_z: Positive = _number(3.5, "standard errors of that correlation", HARD)
    repaired: Share = _number(
        0.08, "correlation after more scans up to which a misfit is repaired", HARD
    )
    least_shared_z: Positive = _number(
        3.0, "standard errors with which another target's errors share the missed function", HARD
    )


class GradeThresholds(Settings):
    """The certainty of an edge, a logistic function of its evidence, and the words for it.

    Evidence is the square root of minus the logarithm of a p-value to base ten.
    """

    firm: Share = _number(0.95, "least certainty of a firm edge", CERTAINTY)
    likely: Share = _number(0.8, "least certainty of a likely edge", CERTAINTY)
    intercept: float = _number(-6.1, "log odds without any evidence", CERTAINTY)
    own_weight: float = _number(2.0, "weight of the edge's own evidence", CERTAINTY)
    half_weight: float = _number(0.5, "weight of that in the weaker half of time", CERTAINTY)
    longer_weight: float = _number(1.6, "weight of that with a longer window", CERTAINTY)
    model_weight: float = _number(0.9, "weight of that by the weaker of two models", CERTAINTY)
    most_powers: Positive = _number(12.0, "powers of ten of a p-value, at most", CERTAINTY)
    firm_beside_slow: Share = _number(
        0.001, "p-value of a firm edge beside older lags and slow averages, at most", DRIVERS
    )
    firm_in_calm: Share = _number(
        0.01, "p-value of a firm edge in windows without the largest inputs, at most", DRIVERS
    )
    firm_together: Share = _number(
        0.01, "p-value that no residuals move together, below which no link is firm", DRIVERS
    )
    firm_surprise: Share = _number(
        0.01,
        "p-value of a source's surprise where its value tells nothing, of no firm link",
        DRIVERS,
    )
    firm_value: Share = _number(
        0.001, "p-value of a source's value beside its surprise up to which it may be firm", DRIVERS
    )
    plausible_q: Share = _number(
        0.1, "q-value of a link up to which it is asked what else it may be", DRIVERS
    )
    windows_per_input: Positive = _number(
        3.0, "windows per input, with fewer it is not asked", DRIVERS
    )
    windows_per_feature: Positive = _number(
        4.0, "windows per number of a curve, with fewer a link is tested again by lines", CERTAINTY
    )
    firm_echo: Share = _number(
        0.2, "p-value of own older lags below which a possible echo is not firm", DRIVERS
    )


class ChoiceThresholds(Settings):
    """Which forecasters are tried for a target, and which of them it keeps."""

    neural_from: Count = _number(500, "windows from which networks are tried", CALIBRATION)
    neural_beside_learners_from: Count = _number(
        20_000, "windows from which they are tried beside dictionary and trees", CALIBRATION
    )
    windows_per_curve: Positive = _number(
        8.0, "windows per input from which curves are tried", CALIBRATION
    )
    least_to_learn: Count = _number(
        400, "windows from which dictionary and trees are tried", CALIBRATION
    )
    windows_per_learned: Positive = _number(
        8.0, "windows per input from which dictionary and trees are tried", CALIBRATION
    )
    joint_level: Share = _number(
        0.0005, "chance to look for joint functions of a target that has none", CALIBRATION
    )
    blocks_of_time: Count = _number(
        10, "blocks of held-out time over which a richer forecaster must be better", CALIBRATION
    )
    windows_per_block: Count = _number(
        5, "windows of such a block, with fewer each window counts for itself", CALIBRATION
    )
    few_judged: Count = _number(
        100, "held-out windows below which the mean over all targets decides too", CALIBRATION
    )
    least_gain_of_level: Share = _number(
        0.03, "gain over the model from which what follows the level forecasts", FORECASTS
    )
    prior_origins: Positive = _number(
        10.0,
        "independent origins at which a model's own bands count as much as its errors",
        FORECASTS,
    )
    least_share: Share = _number(0.05, "share of a forecast, a smaller one is none", FORECASTS)
    least_history: Count = _number(
        40, "unbroken rows at a series' end, with fewer nothing follows its level", FORECASTS
    )
    sd_of_shares: Positive = _number(
        0.25,
        "standard deviation of the shares of a forecast about a half causal, a half lasso",
        FORECASTS,
    )
    tie: Share = _number(
        0.005, "share of the error by which a rival must at least be better", EFFECTS
    )
    clearly: Positive = _number(
        1.0,
        "standard errors by which the dense forecast must be better to hint at missing causes",
        EFFECTS,
    )
    learned_by: Positive = _number(
        2.0, "standard errors by which a joint function of the causes must be better", EFFECTS
    )
    least_share_missing: Share = _number(
        0.01, "share of the variance by which it must be better to hint at missing causes", EFFECTS
    )
    windows_per_part: Count = _number(20, "windows of each part of a cross-fit", CALIBRATION)
    windows_per_domain_input: Count = _number(
        3, "windows per input of a domain, with fewer it learns from all domains", REGIMES
    )
    more_windows_of_domain: Count = _number(
        20, "windows that it needs beyond those to be fitted again on its causes", REGIMES
    )
    network_wins: Positive = _number(
        3.0, "standard errors by which a network must lead for some target to train on", CALIBRATION
    )
    network_progress: Positive = _number(
        1e-4, "fall of a network's held-out loss that counts as progress", CALIBRATION
    )


class SearchThresholds(Settings):
    """Which functions of inputs the dictionary keeps, and which inputs of a wide table are read."""

    level: Share = _number(
        0.005, "chance of a scan as a whole to propose a function where there is none", HARD
    )
    least_t: Positive = _number(3.5, "heteroscedastic t-value of a kept function", HARD)
    least_z: Positive = _number(3.0, "z-value of a proposed function", HARD)
    own_level: Positive = _number(
        10.0, "factor on a scan's level for one function alone that it has found", HARD
    )
    relaxed_level: Positive = _number(
        1.0, "level of a scan for a target that has a function already", HARD
    )
    cost_of_reading_few: Share = _number(
        0.02, "rise of the loss from which a target reads twice as many inputs", HARD
    )
    short_and_wide: Count = _number(1000, "inputs from which a short table is screened too", WIDE)
    windows_per_input: Positive = _number(2.0, "windows per input of such a table", WIDE)
    screen_margin: Positive = _number(
        0.7, "standard errors below the best input without effect that pass the screen", WIDE
    )


class SeasonThresholds(Settings):
    """Which cycles, trends, level shifts and odd days time alone explains.

    F values are those of a piece beside a variable's own past. `straight_f`, `trend_f` and
    `shift_f` are exceeded by one in a thousand pure random walks (1,000 to 2,000 walks of 300 to
    2,000 rows); `wave_f` by one in a hundred tables of 2 to 8 walks; the shared trends by 5 of 900
    tables of 2, 5 and 8 walks, the shared shift by none of 360.
    """

    level: Share = _number(
        0.01, "chance that a table without cycles is given one from its spectrum", NULLS
    )
    stamp_level: Share = _number(0.02, "the same of a period that time stamps suggest", NULLS)
    least_cycles: Positive = _number(3.0, "times that a period must pass in the data", HOURLY)
    least_cycles_of_spectrum: Positive = _number(
        5.0, "the same of a period that no time stamp suggests", HOURLY
    )
    short_cycles: Positive = _number(
        1.5, "times that a period which all variables share must pass", HOURLY
    )
    short_f: Positive = _number(6.5, "mean F value of such a short period", HOURLY)
    same_f: Positive = _number(3.0, "F value lost to a rounder period that fits as well", HOURLY)
    straight_f: Positive = _number(19.0, "F value of a straight trend", NULLS)
    trend_f: Positive = _number(9.0, "F value of a bent trend", NULLS)
    shift_f: Positive = _number(28.0, "F value of a level shift", NULLS)
    wave_f: Positive = _number(5.5, "mean F value of a slow wave that all variables share", NULLS)
    shared_straight_f: tuple[float, float] = _number(
        (5.0, 8.0), "mean F of a shared straight trend: a + b / sqrt(variables)", NULLS
    )
    shared_trend_f: tuple[float, float] = _number(
        (3.6, 5.4), "mean F of a shared bent trend: a + b / sqrt(variables)", NULLS
    )
    shared_shift_f: tuple[float, float] = _number(
        (4.0, 18.0), "mean F of a shared level shift: a + b / sqrt(variables)", NULLS
    )
    odd_day_level: Share = _number(
        0.001, "chance that a table without odd days is given one", NULLS
    )
    most_odd_days: Share = _number(0.25, "share of all days that can be odd", HOURLY)
    usual_day: Positive = _number(
        3.0, "t value of a day, beyond which it says nothing of the usual ones", HOURLY
    )
    rows_of_day: Positive = _number(4.0, "rows of a day, with fewer none is odd", HOURLY)
    least_rows: Count = _number(60, "rows, with fewer nothing is looked for", NULLS)
    own_lags: Count = _number(6, "own past values beside a piece that is tested", NULLS)
    shared_own_lags: Count = _number(
        2, "own past values beside a piece that all variables share", NULLS
    )
    rows_per_knot: Positive = _number(30.0, "rows per knot of a shared slow wave", NULLS)
    rows_of_level: Count = _number(10, "rows that a level lasts at least", NULLS)
    rows_per_harmonic: Positive = _number(
        30.0, "rows per harmonic beyond the first few of a cycle with steps", HOURLY
    )
    same_rounds: Share = _number(0.03, "share by which a part of a week may miss it", HOURLY)
    same_period: Share = _number(
        0.01, "share by which a period may differ from that of the calendar", SEASONS
    )
    more_waves: Count = _number(
        2, "further waves of a multiple of a period, to be taken in its place", HOURLY
    )
    most_empty: Positive = _number(
        2.0, "steps of time per row, with more only the longest stretch is searched", SEASONS
    )
    naive_correlation: Share = _number(
        0.3, "correlation of rows one season apart, for a naive forecast to repeat it", FORECASTS
    )


class RegimeThresholds(Settings):
    """Where the system is said to change."""

    price: Positive = _number(
        4.0, "price of a cut, times the logarithm of the windows, in noise variances", REGIMES
    )
    sure: Positive = _number(3.0, "standard errors by which a cut must pay", REGIMES)
    likely_rise: Positive = _number(
        6.0, "rise of the loss, in noise variances, of a row that is as good a cut", REGIMES
    )
    windows_per_block: Count = _number(
        20, "windows between two places where a cut is looked for", REGIMES
    )


class HiddenThresholds(Settings):
    """Hidden common causes and effects within a row, which `refine` looks for."""

    lpcmci_level: Share = _number(0.001, "level of LPCMCI's tests", LATENT)
    instrument_level: Share = _number(
        0.05, "p-value of an instrument, above which an edge may be confounded", LATENT
    )
    weak_score: Share = _number(
        0.25, "share of the target's best score (an energy) below which an edge is weak", LATENT
    )
    within_row_fdr: Share = _number(0.05, "accepted share of false pairs at lag 0", LATENT)
    pcmci_plus_level: Share = _number(0.01, "level of PCMCI+'s tests, tigramite's own", LATENT)
    dynotears_penalty: Positive = _number(
        0.1, "price of a weight in DYNOTEARS, its published default", LATENT
    )


class EffectThresholds(Settings):
    """What effects and forecasts of several steps allow for."""

    least_noise: Count = _number(
        40, "windows of a domain, with fewer the noise of all domains stands for its own", FORECASTS
    )
    product_t: Positive = _number(
        3.0, "t-value of a product of two causes from which products are fitted", EFFECTS
    )
    windows_per_input: Positive = _number(
        1.5, "windows per input, with fewer a fit on all inputs says nothing", EFFECTS
    )
    rows_per_term: Positive = _number(
        5.0, "rows per term of the regression that tells an effect", EFFECTS
    )
    rows_per_product: Positive = _number(15.0, "rows per product of causes in it", EFFECTS)


class EventThresholds(Settings):
    """How the causes of an event are ranked, and when it counts as one."""

    least_rows_to_test: Count = _number(
        10, "rows of an event below which causes are ranked by size alone", INCIDENTS
    )
    scale_floor: Share = _number(
        0.01, "of its median: the least spread of a column that is never negative", INCIDENTS
    )
    no_path: Share = _number(
        0.5, "share of its score that a variable keeps without a path to the target", INCIDENTS
    )
    least_calm_blocks: Count = _number(
        19, "calm blocks as long as the event, for a p-value of 5 %", INCIDENTS
    )
    first_surprise: Positive = _number(
        4.0, "calm sds from which a row is the first surprise", INCIDENTS
    )
    loud: Positive = _number(
        4.0,
        "calm sds from which a cause in a user's own graph accounts for what follows it",
        INCIDENTS,
    )
    level: Share = _number(0.05, "p-value up to which it is called an event", INCIDENTS)
    least_calm: Count = _number(
        40, "calm windows, with fewer it is not known what is normal", INCIDENTS
    )
    enough_before: Count = _number(
        200, "calm windows before an event, from which on later ones are not needed", INCIDENTS
    )
    enough_per_input: Positive = _number(3.0, "the same, per lagged input", INCIDENTS)
    trend_goes_on: Positive = _number(
        0.25, "of the calm rows: for how long after them a trend goes on", INCIDENTS
    )
    rows_per_lag: Count = _number(
        4,
        "rows per lag of an event without rows before it, whose first rows are then its past",
        INCIDENTS,
    )
    calm_parts: Count = _number(5, "parts of calm time, each left out once", INCIDENTS)


class ChangeThresholds(Settings):
    """Which links count as changed between two periods."""

    fdr: Share = _number(
        0.05, "accepted share of false changes, half among links and half elsewhere", CHANGES
    )
    noise_fdr: Share = _number(0.05, "the same among changes of the noise", CHANGES)
    clear: Positive = _number(
        1.96, "standard errors from 0 with which a link counts as there in one period", CHANGES
    )
    other_units: Positive = _number(
        30.0, "ratio of standard deviations from which units may differ", CHANGES
    )


class DiagnosisThresholds(Settings):
    """When a check of the diagnosis finds something: how significant, and how large at least.

    The significance and the gain were chosen on seeds 100 to 115 of `forecause bench alerts`: a
    level of 0.001 misses 5 of 16 changes of regime in 500 rows where 0.005 misses 2, for 1 instead
    of 2 doubts about 128 sound systems; a gain of 0.03 instead of 0.05 finds no change more. On
    seeds 200 to 219, with 500 and 1,000 rows, none of 160 sound systems was doubted, and all broken
    ones were but 2 of 40 changes of regime.
    """

    level: Share = _number(
        0.005, "significance of each check, shared by all that it compares", ALERTS
    )
    least_correlation: Share = _number(
        0.1, "correlation of residuals below which it does not matter", ALERTS
    )
    least_pairs: Count = _number(50, "pairs of rows to correlate residuals over", ALERTS)
    least_gain: Share = _number(
        0.05, "share of the noise that models of each part explain, else effects are one", ALERTS
    )
    least_together: Share = _number(
        0.04, "correlation of the residuals of all pairs taken as one that matters", DRIVERS
    )
    value_tells: Share = _number(
        0.05,
        "p-value of a source's value beside its surprise up to which it may be a cause",
        DRIVERS,
    )
    same_variable: Share = _number(
        0.9, "correlation of levels from which two variables are nearly one", DRIVERS
    )
    same_steps: Share = _number(
        0.5, "correlation of the steps of two such variables, at least", DRIVERS
    )
    single_lags_p: Share = _number(
        0.001,
        "p-value of single lags beside an average, above which the average tells all",
        DRIVERS,
    )
    two_averages_ahead: Share = _number(
        0.1, "p-value of two averages over that of the best single variable, at most", DRIVERS
    )
    least_driven: Count = _number(
        2, "targets that an average forecasts, from which a common driver is suspected", DRIVERS
    )
    least_driven_by_two: Count = _number(
        3, "the same where some of them need two averages", DRIVERS
    )
    least_shocked: Count = _number(
        3, "variables whose large residuals come together, for a doubt", DRIVERS
    )
    clear_with_events: Share = _number(
        0.001, "p-value of a link in all windows, below which its loss in calm ones counts", DRIVERS
    )
    gone_in_calm: Share = _number(
        0.2, "p-value in windows without the largest inputs, above which a link is gone", DRIVERS
    )
    least_gone: Count = _number(2, "links that are gone there, for a doubt about them", DRIVERS)
    least_outages: Count = _number(3, "rows in which all columns show their usual value", DRIVERS)
    outages_over_chance: Positive = _number(
        5.0, "how many times more such rows there are than by chance", DRIVERS
    )
    short_for_walks: Count = _number(300, "windows below which several walks are doubted", NULLS)
    windows_per_number: Positive = _number(
        5.0, "windows per number to be fitted, below which edges will be missed", ALERTS
    )
    windows_per_input: Positive = _number(
        3.0, "windows per input, below which no error rate can be promised", ALERTS
    )
    least_hump: Positive = _number(
        5.0, "power of a drifting cycle's band over that of the bands beside it", ALERTS
    )
    least_band_share: Share = _number(0.25, "share of a variable's variance in that band", ALERTS)
    least_cycles: Positive = _number(
        3.0, "times that the slowest cycle which is looked for passes in the data", ALERTS
    )
    near_unit_root: Share = _number(
        0.95, "sum of a variable's autoregressive coefficients from which it wanders", NULLS
    )
    least_level_change: Positive = _number(
        0.5, "difference of the means of two halves, in standard deviations", NULLS
    )
    least_noise_ratio: Positive = _number(
        2.0, "ratio of the unexplained variances of two halves", NULLS
    )
    hardly_forecast: Share = _number(
        0.98, "held-out loss over the mean's from which hardly anything is forecast", NULLS
    )
    variables_for_two_averages: Count = _number(
        6, "variables from which a common driver may have several states", DRIVERS
    )
    numbers_of_curve: Count = _number(4, "numbers that a curved effect takes, per input", ALERTS)
    band: Positive = _number(
        1.25, "factor from the middle of a band of frequencies to its ends", ALERTS
    )
    flank: Positive = _number(1.6, "factor from there to the ends of the bands beside it", ALERTS)
    least_frequencies: Count = _number(4, "frequencies in each of these bands", ALERTS)
    known_for_spectrum: Share = _number(
        0.8, "share of the rows without a gap, for a spectrum", ALERTS
    )
    least_loading: Share = _number(
        0.01, "of a column in a combination that is nearly constant", DRIVERS
    )
    moves_with_none: Share = _number(
        0.05, "p-value that a variable moves with no other, below which it is named", DRIVERS
    )
    largest_shock: Positive = _number(
        9.0,
        "usual sizes of a residual, larger ones count as this: six standard deviations",
        DRIVERS,
    )
    shock_memory: Count = _number(
        60, "rows over which the size of residuals may have a memory of its own", DRIVERS
    )
    least_shock_rows: Count = _number(
        100, "rows, with fewer nothing is said of large residuals", DRIVERS
    )
    furthest_back: Count = _number(
        30, "rows back that residuals are compared, or twice the lag window", ALERTS
    )
    weakest_simulated: Share = _number(
        0.03,
        "of its strength, to which an edge is weakened at most to see what is found",
        CALIBRATION,
    )
    blocks_of_half: Count = _number(
        10, "blocks of each half of time, whose differences say what is chance", NULLS
    )
    rows_per_block: Count = _number(10, "rows of such a block", NULLS)
    rows_per_input_of_quarters: Count = _number(
        40, "rows per input, from which quarters are compared as well", ALERTS
    )
    unit_root_t: float = _number(
        -2.86, "t-value of Dickey and Fuller at 5 %, above which a variable may wander", NULLS
    )


class Thresholds(Settings):
    """All numbers that decide a result, in groups.

    Examples
    --------
    >>> import forecause as fc
    >>> fc.Config(thresholds={"edges": {"least_share": 0.001}}).thresholds.edges.least_share
    0.001
    """

    reading: ReadingThresholds = ReadingThresholds()
    edges: EdgeThresholds = EdgeThresholds()
    tests: TestThresholds = TestThresholds()
    misfit: MisfitThresholds = MisfitThresholds()
    grades: GradeThresholds = GradeThresholds()
    choice: ChoiceThresholds = ChoiceThresholds()
    search: SearchThresholds = SearchThresholds()
    seasons: SeasonThresholds = SeasonThresholds()
    regimes: RegimeThresholds = RegimeThresholds()
    diagnosis: DiagnosisThresholds = DiagnosisThresholds()
    effects: EffectThresholds = EffectThresholds()
    events: EventThresholds = EventThresholds()
    changes: ChangeThresholds = ChangeThresholds()
    hidden: HiddenThresholds = HiddenThresholds()

    @classmethod
    def of(cls, asked: Thresholds | Mapping[str, Any]) -> Thresholds:
        """The usual thresholds with those replaced that are asked for, by group and name."""
        if isinstance(asked, Thresholds):
            return asked
        if not isinstance(asked, Mapping):
            raise InputError(
                f"thresholds must be numbers by group and name, such as {{'edges': "
                f"{{'least_share': 0.001}}}}, found {asked!r}."
            )
        check_names(asked, cls.model_fields, "group of thresholds")
        groups = {}
        for group, numbers in asked.items():
            kind = type(getattr(THRESHOLDS, group))
            if not isinstance(numbers, kind | Mapping):
                raise InputError(f"thresholds.{group} must be numbers by name, found {numbers!r}.")
            if isinstance(numbers, Mapping):
                check_names(numbers, kind.model_fields, f"threshold of the group {group}:")
                numbers = kind.checked(**numbers)
            groups[group] = numbers
        return cls(**groups)

    @classmethod
    def from_json(cls, saved: Mapping[str, Mapping[str, Any]]) -> Thresholds:
        """Those that a run was saved with; what no longer exists is left out."""
        known = {}
        for group in cls.model_fields.keys() & saved.keys():
            names = type(getattr(THRESHOLDS, group)).model_fields
            known[group] = {name: v for name, v in saved[group].items() if name in names}
        return cls.of(known)

    def changed(self) -> dict[str, dict[str, Any]]:
        """Those that differ from the usual ones, by group and name."""
        differing: dict[str, dict[str, Any]] = {}
        for group in type(self).model_fields:
            own, usual = getattr(self, group), getattr(THRESHOLDS, group)
            other = {n: v for n, v in own if v != getattr(usual, n)}
            if other:
                differing[group] = other
        return differing


THRESHOLDS = Thresholds()
_of_the_run: ContextVar[Thresholds] = ContextVar("thresholds", default=THRESHOLDS)


def thresholds() -> Thresholds:
    """Those of the run that is at work, or the usual ones."""
    return _of_the_run.get()


@contextmanager
def using(chosen: Thresholds) -> Iterator[None]:
    """Inside, `thresholds()` are these."""
    before = _of_the_run.set(chosen)
    try:
        yield
    finally:
        _of_the_run.reset(before)


def call_with(chosen: Thresholds, function: Callable[..., Answer], *arguments: Any) -> Answer:
    """Call a function that does a part of a run elsewhere, with the run's thresholds."""
    with using(chosen):
        return function(*arguments)
