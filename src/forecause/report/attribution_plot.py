"""Drawing which inputs mattered for a forecast, and when, into matplotlib axes."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap

from forecause.report.drawing import COLOURS, plain

SIGNED = LinearSegmentedColormap.from_list(
    "signed", [COLOURS["lowers"], "white", COLOURS["raises"]]
)
TICKS = 6


def attribution(axes: Axes, found: xr.Dataset, most: int = 12) -> None:
    """The strongest inputs of a target, strongest above, along time.

    `found` comes from attribute.over_time. Single rows show the signed contribution; bins, in
    which signs cancel, its mean size.
    """
    single = bool((found["windows"] == 1).all())
    values = found["contribution" if single else "magnitude"].stack(input=("source", "lag"))
    strength = found["magnitude"].mean("time").stack(input=("source", "lag"))
    shown = values.isel(input=np.argsort(-strength.values, kind="stable")[:most])
    picture = shown.transpose("input", "time").values
    top = float(np.abs(picture).max()) or 1.0
    image = axes.imshow(
        picture,
        cmap=SIGNED if single else "Blues",
        vmin=-top if single else 0.0,
        vmax=top,
        aspect="auto",
        interpolation="nearest",
    )
    readout = str(found.attrs["readout"])
    what = "contribution (sd)" if readout == "input-gradient" else readout
    label = what if single else f"mean size of {what}"
    axes.figure.colorbar(image, ax=axes, label=label, pad=0.01, fraction=0.04)
    names = [f"{plain(str(source))}, lag {lag}" for source, lag in shown["input"].values]
    axes.set_yticks(range(len(names)), names, fontsize=8)
    columns = np.unique(np.linspace(0, picture.shape[1] - 1, TICKS).astype(np.int64))
    axes.set_xticks(columns, _labels(found["time"].values[columns]), fontsize=8)
    axes.set_xlabel("time" if np.issubdtype(found["time"].dtype, np.datetime64) else "row")
    series = found["series"].values
    for border in np.flatnonzero(series[1:] != series[:-1]):
        axes.axvline(float(border) + 0.5, color="#18212c", linewidth=1)
    axes.set_title(f"what moves the forecast of {plain(str(found.attrs['target']))}", fontsize=10)


def _labels(time: npt.NDArray[np.generic]) -> list[str]:
    """Dates without a time of day where none of them has one."""
    if not np.issubdtype(time.dtype, np.datetime64):
        return [plain(str(moment)) for moment in time]
    stamps = time.astype("datetime64[m]")
    whole_days = bool((stamps == stamps.astype("datetime64[D]")).all())
    unit = "datetime64[D]" if whole_days else "datetime64[m]"
    return [str(stamp).replace("T", " ") for stamp in stamps.astype(unit)]
