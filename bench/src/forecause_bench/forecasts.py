"""How good forecasts are: simulated systems, the same driven from outside, and recorded tables.

    forecause bench forecasts --out bench-forecasts --seeds 5 --data FOLDER

Simulated: a run learns from the first rows; squared errors on later rows, of the next row and of 12
steps, as per cent over the oracle's, which is the causal forecaster fitted on the true parents.
Driven from outside: the same models on rows in which three variables follow a slow wave of their
own. Recorded: mean absolute errors over that of the last value, one step and all steps ahead, from
several origins, each forecaster fitted anew at every one. Tables are those that statsmodels brings;
with --data, ETTh1.csv and fredmd.csv of a folder as well. AutoETS and AutoARIMA are those of
statsforecast, where that is installed. The folder keeps results, from which a second call goes on,
and `table.md`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from forecause.config import Config
from forecause.data.panel import Panel
from forecause.discovery import Discovery
from forecause.effects.evaluate import rolling_origin, run_forecasts
from forecause.forecast.follower import Follower
from forecause.forecast.forecaster import roll
from forecause.method import discover, run_on
from forecause.progress import QUIET, Progress
from forecause.regression.autoregression import Autoregression
from forecause.result import Result
from forecause.simulation import simulate
from forecause.simulation.simulator import Simulated
from forecause_bench.calibration import MECHANISMS
from forecause_bench.causal import causal_on_truth
from forecause_bench.product_systems import Made, products
from forecause_bench.run import describe_machine

FIRST_SEED = 7000  # the thresholds were chosen on others
ROWS = (300, 1_000, 3_000)
LATER, STEPS = 900, 12
APART = {1: 6, STEPS: 45}  # rows between origins, for one step and for 12
DRIVEN = 3  # variables that are driven from outside
ORIGINS = 4  # of a recorded table
MOST_SEASON = 24  # rows: AutoETS takes none that is longer
MOST_ARIMA_SEASON = 4  # of AutoARIMA, which takes minutes with longer ones
SIMULATED = (
    "dense",
    "causal",
    "forecast",
    "lasso",
    "trees",
    "AutoETS",
    "var",
    "var in differences",
    "last value",
)
IN_ALL = "seconds with rivals"
GAUSS_80, GAUSS_95 = "covered by 80 %", "covered by 95 %"

Array = npt.NDArray[np.float64]
Index = npt.NDArray[np.int64]
Model = Callable[[Array, Index, int], Array]
"""Values (row, column), first rows to forecast, and steps to forecasts (origin, step, column)."""
Cell = tuple[dict[str, Any], Callable[[], list[dict[str, Any]]]]
"""What a result is about, and what measures it."""


def simulated(first: int, seeds: int, rows: Sequence[int]) -> Iterator[Cell]:
    """Every system and number of rows; two lines each, for the ways that later rows come about."""
    shape = {"nodes": MECHANISMS[0].system["nodes"], "max_lag": MECHANISMS[0].system["max_lag"]}
    makers: dict[str, Callable[[int, int], Simulated | Made]] = {
        cell.name: partial(_simulated, cell.system) for cell in MECHANISMS
    }
    makers["products"] = lambda count, seed: products(count, seed, **shape)
    for seed in range(first, first + seeds):
        for count in rows:
            for name, make in makers.items():
                about = {"system": name, "rows": count, "seed": seed}
                yield about, partial(_of_system, make, about, shape["max_lag"])


def _simulated(system: Mapping[str, Any], rows: int, seed: int) -> Simulated:
    return simulate(rows=rows, seed=seed, **system)


def _of_system(
    make: Callable[[int, int], Simulated | Made], about: dict[str, Any], max_lag: int
) -> list[dict[str, Any]]:
    rows, seed = about["rows"], about["seed"]
    made = make(rows + LATER, seed)
    began = time.process_time()
    known = Panel.from_arrays([made.values[:rows]], list(made.variables))
    run = discover(known, max_lag, seed=seed, season="none", device="cpu")
    seconds = time.process_time() - began
    models = _models(run, made)
    outside, chosen = driven(made, rows, seed)
    every = np.arange(made.values.shape[1])
    lines = []
    for way, values, judged in (
        ("same", made.values, every),
        ("driven", outside, np.setdiff1d(every, chosen)),
    ):
        line = about | {"later rows": way, "seconds": seconds}
        for steps, apart in APART.items():
            origins = np.arange(rows, len(values) - STEPS, apart)
            actual = np.stack([values[row : row + steps] for row in origins])
            sd = made.values[:rows].std(0)
            errors = {
                name: float(
                    (((model(values, origins, steps) - actual) / sd)[..., judged] ** 2).mean()
                )
                for name, model in models.items()
            }
            for method in errors.keys() - {"oracle"}:
                line[f"{method}, {steps}"] = 100 * (errors[method] / errors["oracle"] - 1)
        lines.append(line | (_held(run, made.values[rows:]) if way == "same" else {}))
    return lines


def _held(run: Discovery, later: Array) -> dict[str, float]:
    """The share of the next values within the bands."""
    bands = run.forecast(STEPS, bands=True)
    came = later[:STEPS].ravel()
    return {
        told: float(((bands[f"low_{k}"] <= came) & (came <= bands[f"high_{k}"])).mean())
        for told, k in ((GAUSS_80, 80), (GAUSS_95, 95))
    }


def driven(made: Simulated | Made, rows: int, seed: int) -> tuple[Array, Index]:
    """The system's later rows, with three variables on a slow course that nothing in it drives.

    The values (row, column), and which columns these are: their own errors do not count.
    """
    (system,) = made.systems
    rng = np.random.default_rng([seed, rows])
    values, sd = made.values.copy(), made.values[:rows].std(0)
    chosen = rng.choice(len(sd), DRIVEN, replace=False)
    level = np.zeros(DRIVEN)
    for row in range(rows, len(values)):
        level = 0.9 * level + rng.normal(size=DRIVEN)
        noise = made.noise_sd * rng.normal(size=len(sd))
        values[row] = system.step(values[row - system.max_lag : row], noise)
        values[row, chosen] = made.values[:rows].mean(0)[chosen] + level * sd[chosen]
    return values, np.sort(chosen)


def _models(run: Discovery, made: Simulated | Made) -> dict[str, Model]:
    """Forecasters by name; all learned from the same rows."""
    from sklearn.ensemble import HistGradientBoostingRegressor
    from sklearn.linear_model import LassoCV

    assert run.causal is not None
    assert run.windows is not None
    scale, window, lags = run.windows.scale, run.windows.whole(), run.windows.max_lag
    known = np.asarray(run.windows.panel.values, dtype=np.float64)
    names = list(made.variables)

    def rolled(step: Any) -> Model:
        def forecast(values: Array, origins: Index, steps: int) -> Array:
            past = values[origins[:, None] + np.arange(-lags, 0)]
            scaled = ((past - scale.mean) / scale.sd).astype(np.float32)
            return np.asarray(roll(step, scaled, steps) * scale.sd + scale.mean)

        return forecast

    follower = Follower.fitted(known, 1)

    def asked(found: Result) -> Model:
        def forecast(values: Array, origins: Index, steps: int) -> Array:
            panel = Panel.from_arrays([values], names)
            return run_forecasts(found, panel, origins, steps, follower)

        return forecast

    def regressors(make: Callable[[], Any]) -> Model:
        flat = window.past.reshape(len(window.past), -1)
        fitted = [make().fit(flat, column) for column in window.target.T]

        def step(past: Array, domain: Any = None) -> Array:
            return np.stack([m.predict(past.reshape(len(past), -1)) for m in fitted], axis=1)

        return rolled(step)

    def autoregression(is_change: bool) -> Model:
        model = Autoregression.fitted([np.diff(known, axis=0) if is_change else known], 12)

        def path(before: Array, steps: int) -> Array:
            if not is_change:
                return model.path(before, steps)
            return np.asarray(before[-1] + model.path(np.diff(before, axis=0), steps).cumsum(0))

        return lambda values, origins, steps: np.stack(
            [path(values[:row], steps) for row in origins]
        )

    def last_value(values: Array, origins: Index, steps: int) -> Array:
        return np.repeat(values[origins - 1][:, None], steps, axis=1)

    on_truth = causal_on_truth(run, made.graph)
    plain = replace(run.causal, guarded=run.causal.forecaster, outlook=None)
    return {
        "dense": rolled(run.forecaster),
        "causal": asked(replace(run, causal=plain)),
        "forecast": asked(run),
        "lasso": regressors(lambda: LassoCV(alphas=20, cv=5)),
        "trees": regressors(lambda: HistGradientBoostingRegressor(max_iter=60)),
        "var": autoregression(False),
        "var in differences": autoregression(True),
        "last value": last_value,
        "oracle": asked(replace(run, causal=replace(on_truth, guarded=on_truth.forecaster))),
    } | _exponential(known)


def _exponential(known: Array) -> dict[str, Model]:
    """AutoETS of statsforecast, chosen on the known rows, where that is installed."""
    try:
        from statsforecast.models import AutoETS
    except ImportError:
        return {}
    fitted = [AutoETS(season_length=1).fit(column) for column in known.T]

    def forecast(values: Array, origins: Index, steps: int) -> Array:
        told = [
            [
                one.forward(column[:row], steps)["mean"]
                for one, column in zip(fitted, values.T, strict=True)
            ]
            for row in origins
        ]
        return np.asarray(told).transpose(0, 2, 1)

    return {"AutoETS": forecast}


def tables(data: Path | None) -> dict[str, Array]:
    """Recorded tables (row, column) by name."""
    from statsmodels import datasets

    macro = datasets.macrodata.load_pandas().data.drop(columns=["year", "quarter"])
    rates = datasets.interest_inflation.load_pandas().data[["Dp", "R"]]
    found = {
        "macro": macro.to_numpy(dtype=float),
        "interest and inflation": rates.to_numpy(dtype=float),
    }
    if data is not None and (data / "ETTh1.csv").exists():
        hourly = pd.read_csv(data / "ETTh1.csv").iloc[:, 1:].to_numpy(dtype=float)
        found |= {"ETTh1, autumn": hourly[10_000:10_700], "ETTh1, spring": hourly[14_000:15_000]}
    if data is not None and (data / "fredmd.csv").exists():
        monthly = pd.read_csv(data / "fredmd.csv").iloc[1:, 1:]
        monthly = monthly.apply(pd.to_numeric, errors="coerce").iloc[-420:-12].dropna(axis=1)
        values = monthly.to_numpy(dtype=float)
        found |= {"FRED-MD, one": values[:, 1:40:5], "FRED-MD, other": values[:, 45::9]}
    return found


def recorded(data: Path | None) -> Iterator[Cell]:
    """Every table; a line each."""
    for name, values in tables(data).items():
        about = {"table": name, "rows": len(values), "columns": values.shape[1]}
        yield about, partial(_of_table, about, values)


def _of_table(about: dict[str, Any], values: Array) -> list[dict[str, Any]]:
    """Errors over those of the last value, and coverage."""
    began, runs = time.process_time(), []

    def keep(panel: Panel, config: Config, progress: Progress) -> Result:
        runs.append(run_on(panel, config, progress))
        return runs[-1]

    names = [f"x{i}" for i in range(values.shape[1])]
    panel = Panel.from_arrays([values], names)
    steps = STEPS if len(values) > 150 else 8
    found = rolling_origin(
        panel, 5, discover=keep, steps=steps, origins=ORIGINS, refit="every", progress=QUIET
    )
    told = found.forecasts
    seconds = time.process_time() - began
    seasons = [season for season in found.seasons.values() if 1 < season <= MOST_SEASON]
    season = int(np.median(seasons)) if seasons else 1
    template = told[told["method"] == "mean"]
    for method, more in _univariate(values, told["row"].unique().tolist(), steps, season).items():
        told = pd.concat([told, template.assign(method=method, forecast=more)])
    line: dict[str, Any] = dict(about)
    error = (told["forecast"] - told["actual"]).abs()
    for title, part in (("1", told["step"] == 1), ("all", told["step"] > 0)):
        table = told[part].assign(error=error[part]).pivot_table("error", "variable", "method")
        ratio = table.div(table["last value"].clip(lower=1e-12), axis=0).clip(1e-3, 1e3)
        means = np.exp(np.log(ratio).mean())
        line |= {f"{method}, {title}": float(value) for method, value in means.items()}
    return [line | _coverage(runs, values, steps) | {"seconds": seconds}]


def _coverage(runs: Sequence[Result], values: Array, steps: int) -> dict[str, float]:
    """The share of values within the bands of 80 %, at all steps and at the last."""
    held = []
    for run in runs:
        assert isinstance(run, Discovery)
        row = run.data.rows
        bands = run.forecast(steps, bands=True)
        low, high = (bands[name].to_numpy().reshape(steps, -1) for name in ("low_80", "high_80"))
        came = values[row : row + steps]
        held.append((low[: len(came)] <= came) & (came <= high[: len(came)]))
    whole = [one for one in held if len(one) == steps]
    return {
        "80 % bands, all": float(np.mean([one.mean() for one in held])),
        "80 % bands, last": float(np.mean([one[-1].mean() for one in whole])),
    }


def _univariate(values: Array, rows: Sequence[int], steps: int, season: int) -> dict[str, Array]:
    """AutoETS and AutoARIMA, where statsforecast is installed; as in `Evaluation.forecasts`."""
    try:
        from statsforecast.models import AutoARIMA, AutoETS
    except ImportError:
        return {}
    short = season if season <= MOST_ARIMA_SEASON else 1
    found: dict[str, list[Array]] = {"AutoETS": [], "AutoARIMA": []}
    for row in rows:
        for column in values.T:
            for method, one in (
                ("AutoETS", AutoETS(season_length=season)),
                ("AutoARIMA", AutoARIMA(season_length=short)),
            ):
                found[method].append(one.forecast(column[:row], steps)["mean"])
    return {method: np.concatenate(each) for method, each in found.items()}


def run(folder: Path, seeds: int, rows: Sequence[int], data: Path | None) -> Path:
    """Both studies; the page."""
    folder.mkdir(parents=True, exist_ok=True)
    on_tables = _kept(recorded(data), folder / "recorded.csv")
    on_systems = _kept(simulated(FIRST_SEED, seeds, rows), folder / "simulated.csv")
    seconds = sum(float(part[IN_ALL].sum()) for part in (on_tables, on_systems))
    text = page(on_systems, on_tables, seeds, data is not None, seconds)
    (folder / "table.md").write_text(text, encoding="utf-8")
    return folder / "table.md"


def _kept(cells: Iterator[Cell], path: Path) -> pd.DataFrame:
    """The lines of all cells; those that the file has are not measured again."""
    found = pd.read_csv(path) if path.exists() else pd.DataFrame()
    for about, measure in cells:
        if len(found) and (found[list(about)] == pd.Series(about)).all(axis=1).any():
            continue
        began = time.process_time()
        lines = measure()
        lines[0][IN_ALL] = time.process_time() - began
        found = pd.concat([found, pd.DataFrame(lines)], ignore_index=True)
        found.to_csv(path, index=False)
    return found


def page(
    systems: pd.DataFrame, recorded: pd.DataFrame, seeds: int, has_data: bool, seconds: float
) -> str:
    """What was found, as Markdown."""
    command = f"forecause bench forecasts --seeds {seeds}" + (" --data FOLDER" if has_data else "")
    parts = [
        "# Forecasts",
        "",
        f"- Command: `{command}`",
        f"- Machine: {describe_machine()}; {seconds:,.0f} s of one core in all",
        f"- Simulated systems: {seeds} seed(s) from {FIRST_SEED}; recorded tables: {ORIGINS} "
        "origins each, everything fitted anew at each",
        "",
    ]
    if len(recorded):
        numbers = recorded.select_dtypes("number")
        numbers.columns = [str(name) for name in numbers.columns]
        names = [str(name) for name in numbers if "%" not in str(name)]
        ratios = numbers[[c for c in names if c.endswith((", 1", ", all"))]]
        overall = pd.concat([np.exp(np.log(ratios).mean()), numbers.filter(like="%").mean()])
        shown = pd.concat([recorded, overall.to_frame().T.assign(table="all")])
        for title, end in (("One step", ", 1"), ("All steps", ", all")):
            columns = [c for c in names if c.endswith(end)]
            heads = [c.removesuffix(end) for c in columns]
            parts += [f"## Recorded tables: {title.lower()}, error over the last value's", ""]
            parts += [*_table(shown, ["table"], columns, heads, 2), ""]
        bands = [str(c) for c in numbers if "%" in str(c)]
        parts += ["## Recorded tables: coverage of bands of 80 %", ""]
        parts += [*_table(shown, ["table"], bands, bands, 2), ""]
    if len(systems):
        keys = ["later rows", "system", "rows"]
        means = systems.drop(columns="seed").groupby(keys, sort=False).mean().reset_index()
        total = systems.groupby(["later rows", "rows"], sort=False).mean(numeric_only=True)
        means = pd.concat([means, total.reset_index().assign(system="all")])
        for steps in (1, STEPS):
            methods = [m for m in SIMULATED if f"{m}, {steps}" in means]
            columns = [f"{method}, {steps}" for method in methods]
            parts += [f"## Simulated: squared error {steps} step(s) ahead, % over the oracle's", ""]
            parts += [*_table(means, keys, columns, methods, 1), ""]
        same = means[(means["later rows"] == "same") & (means["system"] == "all")]
        parts += ["## Simulated: coverage of bands over the next 12 rows", ""]
        parts += _table(same, ["rows"], [GAUSS_80, GAUSS_95], [GAUSS_80, GAUSS_95], 2)
    return "\n".join(parts) + "\n"


def _table(
    data: pd.DataFrame, keys: list[str], columns: list[str], heads: list[str], digits: int
) -> list[str]:
    lines = [
        "| " + " | ".join([*keys, *heads]) + " |",
        "|" + "---|" * len(keys) + "---:|" * len(heads),
    ]
    for _, row in data.iterrows():
        cells = [str(row[key]) for key in keys] + [f"{row[c]:.{digits}f}" for c in columns]
        lines.append("| " + " | ".join(cells) + " |")
    return lines
