"""How good forecasts are: simulated systems, the same driven from outside, and recorded tables.

    forecause bench forecasts --out bench-forecasts --seeds 1 --data FOLDER

Simulated: a run learns from the first rows; squared errors one and 12 steps ahead on later rows, as
per cent over the oracle's, which is the causal forecaster fitted on the true parents. Driven from
outside: the same models on rows in which three variables follow a slow wave of their own. Recorded:
mean absolute errors over that of the last value, one step and all steps ahead, from several
origins, each forecaster fitted anew at every one. Tables are those that statsmodels brings; with
--data, ETTh1.csv and fredmd.csv of a folder as well. The folder keeps results and `table.md`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from forecause.config import Config
from forecause.data.panel import Panel
from forecause.discovery import Discovery
from forecause.evaluate import rolling_origin, run_forecasts
from forecause.forecast.forecaster import roll
from forecause.method import discover, run_on
from forecause.progress import QUIET, Progress
from forecause.regression.autoregression import Autoregression
from forecause.result import Result
from forecause.simulation import simulate
from forecause.simulation.simulator import Simulated
from forecause_bench.calibration import MECHANISMS
from forecause_bench.causal import causal_on_truth
from forecause_bench.run import describe_machine

FIRST_SEED = 7000  # the thresholds were chosen on others
ROWS = (300, 1_000)
LATER, APART, STEPS = 600, 15, 12
DRIVEN = 3  # variables that are driven from outside
ORIGINS = 4  # of a recorded table
MOST_SEASON = 24  # rows: AutoETS takes none that is longer
SIMULATED = ("dense", "causal", "forecast", "lasso", "trees", "var", "var in differences")
GAUSS_80, GAUSS_95 = "covered by 80 %", "covered by 95 %"

Array = npt.NDArray[np.float64]
Index = npt.NDArray[np.int64]
Model = Callable[[Array, Index], Array]
"""Values (row, column) and the first rows to forecast to forecasts (origin, step, column)."""


def simulated(first: int, seeds: int, rows: Sequence[int]) -> Iterator[dict[str, Any]]:
    """A line for every system, number of rows, and way its later rows come about."""
    for seed in range(first, first + seeds):
        for count in rows:
            for cell in MECHANISMS:
                made = simulate(rows=count + LATER, seed=seed, **cell.system)
                yield from _of_system(made, count, int(cell.system["max_lag"]), seed, cell.name)


def _of_system(
    made: Simulated, rows: int, max_lag: int, seed: int, name: str
) -> Iterator[dict[str, Any]]:
    began = time.monotonic()
    known = Panel.from_arrays([made.values[:rows]], list(made.variables))
    run = discover(known, max_lag, seed=seed, season="none", device="cpu")
    seconds = time.monotonic() - began
    models = _models(run, made)
    bands = run.forecast(STEPS, bands=True)
    came = made.values[rows : rows + STEPS].ravel()
    held = {
        told: float(((bands[f"low_{k}"] <= came) & (came <= bands[f"high_{k}"])).mean())
        for told, k in ((GAUSS_80, 80), (GAUSS_95, 95))
    }
    outside, chosen = driven(made, rows, seed)
    inside = np.setdiff1d(np.arange(made.values.shape[1]), chosen)
    every = np.arange(made.values.shape[1])
    for way, values, judged in (("same", made.values, every), ("driven", outside, inside)):
        origins = np.arange(rows, len(values) - STEPS, APART)
        actual = np.stack([values[row : row + STEPS] for row in origins])
        sd = made.values[:rows].std(0)
        squares = {
            n: (((model(values, origins) - actual) / sd) ** 2)[..., judged]
            for n, model in models.items()
        }
        best = {steps: squares["oracle"][:, :steps].mean() for steps in (1, STEPS)}
        line = {"system": name, "rows": rows, "seed": seed, "later rows": way, "seconds": seconds}
        for method in SIMULATED:
            for steps, oracle in best.items():
                excess = 100 * (squares[method][:, :steps].mean() / oracle - 1)
                line[f"{method}, {steps}"] = float(excess)
        yield line | (held if way == "same" else {})


def driven(made: Simulated, rows: int, seed: int) -> tuple[Array, Index]:
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


def _models(run: Discovery, made: Simulated) -> dict[str, Model]:
    """Forecasters by name; all learned from the same rows."""
    from sklearn.ensemble import HistGradientBoostingRegressor
    from sklearn.linear_model import LassoCV

    assert run.causal is not None
    assert run.windows is not None
    scale, window, lags = run.windows.scale, run.windows.whole(), run.windows.max_lag
    known = np.asarray(run.windows.panel.values, dtype=np.float64)
    names = list(made.variables)

    def rolled(step: Any) -> Model:
        def forecast(values: Array, origins: Index) -> Array:
            past = values[origins[:, None] + np.arange(-lags, 0)]
            scaled = ((past - scale.mean) / scale.sd).astype(np.float32)
            return np.asarray(roll(step, scaled, STEPS) * scale.sd + scale.mean)

        return forecast

    def asked(found: Result) -> Model:
        def forecast(values: Array, origins: Index) -> Array:
            return run_forecasts(found, Panel.from_arrays([values], names), origins, STEPS)

        return forecast

    def regressors(make: Callable[[], Any]) -> Model:
        flat = window.past.reshape(len(window.past), -1)
        fitted = [make().fit(flat, column) for column in window.target.T]

        def step(past: Array, domain: Any = None) -> Array:
            return np.stack([m.predict(past.reshape(len(past), -1)) for m in fitted], axis=1)

        return rolled(step)

    def autoregression(is_change: bool) -> Model:
        model = Autoregression.fitted([np.diff(known, axis=0) if is_change else known], 12)

        def path(before: Array) -> Array:
            if not is_change:
                return model.path(before, STEPS)
            return np.asarray(before[-1] + model.path(np.diff(before, axis=0), STEPS).cumsum(0))

        return lambda values, origins: np.stack([path(values[:row]) for row in origins])

    on_truth = causal_on_truth(run, made.graph)
    plain = replace(run.causal, guarded=run.causal.forecaster, outlook=None)
    return {
        "dense": rolled(run.forecaster),
        "causal": asked(replace(run, causal=plain)),
        "forecast": asked(run),
        "lasso": regressors(lambda: LassoCV(alphas=20, cv=5)),
        "trees": regressors(lambda: HistGradientBoostingRegressor(max_iter=100)),
        "var": autoregression(False),
        "var in differences": autoregression(True),
        "oracle": asked(replace(run, causal=replace(on_truth, guarded=on_truth.forecaster))),
    }


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


def recorded(data: Path | None) -> Iterator[dict[str, Any]]:
    """A line for every table: errors over those of the last value, and coverage."""
    for name, values in tables(data).items():
        began, runs = time.monotonic(), []

        def keep(panel: Panel, config: Config, progress: Progress) -> Result:
            runs.append(run_on(panel, config, progress))  # noqa: B023
            return runs[-1]  # noqa: B023

        names = [f"x{i}" for i in range(values.shape[1])]
        panel = Panel.from_arrays([values], names)
        steps = STEPS if len(values) > 150 else 8
        found = rolling_origin(
            panel, 5, discover=keep, steps=steps, origins=ORIGINS, refit="every", progress=QUIET
        )
        told = found.forecasts
        seasons = [season for season in found.seasons.values() if 1 < season <= MOST_SEASON]
        season = int(np.median(seasons)) if seasons else 1
        more = smoothed(values, told["row"].unique().tolist(), steps, season)
        if more is not None:
            template = told[told["method"] == "mean"]
            told = pd.concat([told, template.assign(method="AutoETS", forecast=more)])
        line: dict[str, Any] = {"table": name, "rows": len(values), "columns": values.shape[1]}
        error = (told["forecast"] - told["actual"]).abs()
        for title, part in (("1", told["step"] == 1), ("all", told["step"] > 0)):
            table = told[part].assign(error=error[part]).pivot_table("error", "variable", "method")
            ratio = table.div(table["last value"].clip(lower=1e-12), axis=0).clip(1e-3, 1e3)
            means = np.exp(np.log(ratio).mean())
            line |= {f"{method}, {title}": float(value) for method, value in means.items()}
        line |= _coverage(runs, values, steps)
        yield line | {"seconds": time.monotonic() - began}


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


def smoothed(values: Array, rows: Sequence[int], steps: int, season: int) -> Array | None:
    """AutoETS of statsforecast, where that is installed, in the order of `Evaluation.forecasts`."""
    try:
        from statsforecast.models import AutoETS
    except ImportError:
        return None
    found = []
    for row in rows:
        for column in values.T:
            told = AutoETS(season_length=season if season <= 24 else 1).forecast(
                column[:row], steps
            )
            found.append(told["mean"])
    return np.concatenate(found)


def run(folder: Path, seeds: int, rows: Sequence[int], data: Path | None) -> Path:
    """Both studies; the page."""
    folder.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    on_tables = _kept(recorded(data), folder / "recorded.csv")
    on_systems = _kept(simulated(FIRST_SEED, seeds, rows), folder / "simulated.csv")
    text = page(on_systems, on_tables, seeds, data is not None, time.monotonic() - began)
    (folder / "table.md").write_text(text, encoding="utf-8")
    return folder / "table.md"


def _kept(lines: Iterator[dict[str, Any]], path: Path) -> pd.DataFrame:
    found: list[dict[str, Any]] = []
    for line in lines:
        found.append(line)
        pd.DataFrame(found).to_csv(path, index=False)
    return pd.DataFrame(found)


def page(
    systems: pd.DataFrame, recorded: pd.DataFrame, seeds: int, has_data: bool, seconds: float
) -> str:
    """What was found, as Markdown."""
    command = f"forecause bench forecasts --seeds {seeds}" + (" --data FOLDER" if has_data else "")
    parts = [
        "# Forecasts",
        "",
        f"- Command: `{command}`",
        f"- Machine: {describe_machine()}; {seconds:,.0f} s beside other work",
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
            columns = [f"{method}, {steps}" for method in SIMULATED]
            parts += [f"## Simulated: squared error {steps} step(s) ahead, % over the oracle's", ""]
            parts += [*_table(means, keys, columns, list(SIMULATED), 1), ""]
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
