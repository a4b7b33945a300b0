"""Settings: everything that can be chosen about a simulated system, checked in one place."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral

from forecause.errors import InputError
from forecause.simulation.mechanisms import MECHANISMS, NOISE_KINDS
from forecause.simulation.structure import largest_in_degree

MOST_CELLS = 4_000_000_000  # of a table: 32 GB
MOST_CANDIDATES = 500_000_000  # edges of a graph, whose scores are held


@dataclass(frozen=True)
class Settings:
    """What `simulate` was asked for; see there for the meaning of each field."""

    nodes: int
    max_lag: int
    rows: int
    mechanism: str
    seed: int
    in_degree: float
    max_in_degree: int | None
    autoregression: float
    long_self_lags: bool
    noise: str
    noise_variance: float | tuple[float, float]
    latents: int
    latent_autoregression: float
    instantaneous: float
    segments: int
    drift: float | None
    vary_lag: bool
    variance_edges: int

    def __post_init__(self) -> None:
        _check_sizes(self)
        _check_names(self)
        _check_in_degree(self)
        _check_noise_variance(self)
        _check_segments(self)
        _check_extras(self)

    @property
    def mechanisms(self) -> tuple[str, ...]:
        """The forms an edge or target is drawn from."""
        return tuple(name.strip() for name in self.mechanism.split("+"))

    @property
    def variance_range(self) -> tuple[float, float]:
        """Lowest and highest noise variance."""
        if isinstance(self.noise_variance, int | float):
            return self.noise_variance, self.noise_variance
        low, high = self.noise_variance
        return low, high


def _check_sizes(asked: Settings) -> None:
    smallest = {"nodes": 1, "max_lag": 1, "rows": 1, "segments": 1, "seed": 0, "latents": 0}
    for name, low in smallest.items():
        found = getattr(asked, name)
        if not isinstance(found, Integral):
            raise InputError(f"{name} must be a whole number, found {found!r}.")
        if found < low:
            raise InputError(f"{name} must be at least {low}, found {found}.")
    if asked.rows * (asked.nodes + asked.latents) > MOST_CELLS:
        raise InputError(
            f"{asked.rows:,} rows of {asked.nodes:,} nodes are more than this simulator makes "
            f"({MOST_CELLS:,} numbers); use fewer."
        )
    if asked.nodes**2 * asked.max_lag > MOST_CANDIDATES:
        raise InputError(
            f"{asked.nodes:,} nodes and {asked.max_lag:,} lags are more than this simulator makes "
            f"({MOST_CANDIDATES:,} possible edges); use fewer."
        )
    for name in ("autoregression", "latent_autoregression"):
        share = getattr(asked, name)
        if not 0 <= share <= 1:
            raise InputError(f"{name} must be within 0 and 1, found {share}.")
    if asked.latent_autoregression == 1:
        raise InputError(
            "latent_autoregression must be below 1: a latent that keeps all of its past grows "
            "without bound; try 0.8."
        )


def _check_names(asked: Settings) -> None:
    for name in asked.mechanisms:
        if name not in MECHANISMS:
            raise InputError(
                f"Unknown mechanism {name!r}; choose from {', '.join(MECHANISMS)}, or join "
                "several by + for a mixture."
            )
    if asked.noise not in NOISE_KINDS:
        raise InputError(f"Unknown noise {asked.noise!r}; choose from {', '.join(NOISE_KINDS)}.")


def _check_in_degree(asked: Settings) -> None:
    cap = asked.max_in_degree
    if cap is not None and cap < 1:
        raise InputError(f"max_in_degree must be at least 1, found {cap}.")
    if not asked.in_degree >= asked.autoregression:
        raise InputError(
            f"in_degree ({asked.in_degree:g}) counts self edges, so it cannot be below "
            f"autoregression ({asked.autoregression:g}), which alone gives that many parents; "
            "raise the one or lower the other."
        )
    lag = 1 if asked.vary_lag else asked.max_lag
    largest = largest_in_degree(asked, lag)
    if asked.in_degree > largest:
        raise InputError(
            f"in_degree ({asked.in_degree:g}) is above {largest:g}, the most that {asked.nodes} "
            f"nodes, a largest lag of {lag} and max_in_degree={cap} allow; lower it, or allow "
            "more nodes, lags or parents."
        )


def _check_noise_variance(asked: Settings) -> None:
    low, high = asked.variance_range
    positive = low > 0 if low == high else low >= 0
    if not (positive and low <= high < float("inf")):
        raise InputError(
            "noise_variance must be a positive number or a range (low, high) with "
            f"0 <= low < high, found {asked.noise_variance}."
        )


def _check_segments(asked: Settings) -> None:
    if asked.rows < asked.segments * (asked.max_lag + 1):
        raise InputError(
            f"{asked.rows} rows are too few for {asked.segments} segment(s) with a largest lag "
            f"of {asked.max_lag}; at least {asked.segments * (asked.max_lag + 1)} are needed."
        )
    if asked.drift is not None and not 0 < asked.drift <= 1:
        raise InputError(
            f"drift is the share of edges rewired per segment and must be above 0 and at most 1, "
            f"found {asked.drift}; leave it out for a fresh graph in every segment."
        )
    if asked.segments == 1 and (asked.drift is not None or asked.vary_lag):
        raise InputError("drift and vary_lag describe several segments, but segments is 1.")


def _check_extras(asked: Settings) -> None:
    if asked.latents and asked.nodes < 2:
        raise InputError("A latent needs two observed children to confound; use 2 nodes or more.")
    if not 0 <= asked.instantaneous <= (asked.nodes - 1) / 2:
        raise InputError(
            "instantaneous is the mean number of lag-0 parents; an acyclic graph of "
            f"{asked.nodes} nodes allows 0 to {(asked.nodes - 1) / 2:g}, found "
            f"{asked.instantaneous}."
        )
    most = asked.nodes if asked.nodes > 1 else 0
    if not 0 <= asked.variance_edges <= most:
        raise InputError(
            f"variance_edges must be within 0 and {most} (one per variable, driven by another "
            f"one), found {asked.variance_edges}."
        )
    if asked.variance_edges and "mlp-concat" in asked.mechanisms:
        raise InputError(
            "variance_edges scale additive noise, which mlp-concat does not have; use another "
            "mechanism or no variance edges."
        )
