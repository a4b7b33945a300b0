"""Somebody else's forecaster as one of ours: it is fitted by its own `fit`, asked by its `predict`.

Windows reach it standardised: the past is (window, lag, variable), the oldest row first, the target
(window, variable). A regressor of scikit-learn's kind sees the past as (window, lag * variable) and
is fitted once for every target.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, ClassVar, Self

import numpy as np
from pydantic import Field, model_validator

from forecause.common.arrays import Array, Floats, Index
from forecause.config import PLAIN_READOUTS
from forecause.errors import InputError
from forecause.forecast.forecaster import PLAIN, FitData, Forecaster, ForecasterSettings, Rules

# Time and memory:
MOST_LEARNED_WINDOWS = 50_000


class Adapter:
    """How a kind of foreign model is fitted and asked."""

    can_be_refitted = True

    def fit(self, past: Floats, target: Floats, seed: int) -> Any:
        """A new fitted model; past (window, lag, variable), target (window, variable)."""
        raise NotImplementedError

    def predict(self, fitted: Any, past: Floats) -> Floats:
        """Forecasts (window, variable)."""
        raise NotImplementedError

    def importances(self, fitted: Any) -> Array | None:
        """The model's own (target, lag * variable), the oldest lag first, if it has any."""
        return None


class Functions(Adapter):
    """A pair of functions: fit(past, target) gives a model, predict(model, past) its forecasts.

    Without `fit` it is a model that cannot be fitted again, which sees the data's own units.
    """

    def __init__(self, fit: Callable[..., Any] | None, predict: Callable[..., Any]) -> None:
        self._fit, self._predict = fit, predict
        self.can_be_refitted = fit is not None

    def fit(self, past: Floats, target: Floats, seed: int) -> Any:
        return None if self._fit is None else self._fit(past, target)

    def predict(self, fitted: Any, past: Floats) -> Floats:
        given = (past,) if self._fit is None else (fitted, past)
        return np.asarray(self._predict(*given))


class Regressors(Adapter):
    """A regressor or pipeline with scikit-learn's `fit` and `predict`; a copy for every target.

    One that only takes all targets together, such as MultiOutputRegressor, is fitted once.
    """

    def __init__(self, model: Any) -> None:
        if isinstance(model, type):
            raise InputError(f"Give a model, such as {model.__name__}(), not its class.")
        kind = _kind_of_estimator(model)
        if kind not in (None, "regressor"):
            raise InputError(
                f"{type(model).__name__} is a {kind}; what forecasts numbers is a regressor."
            )
        self.model = model
        self.takes_all = type(_last(model)).__module__ == "sklearn.multioutput"

    def fit(self, past: Floats, target: Floats, seed: int) -> list[Any]:
        from sklearn.base import clone

        flat = past.reshape(len(past), -1)
        if self.takes_all:
            return [clone(self.model).fit(flat, target)]
        return [clone(self.model).fit(flat, column) for column in target.T]

    def predict(self, fitted: list[Any], past: Floats) -> Floats:
        flat = past.reshape(len(past), -1)
        if self.takes_all:
            return np.asarray(fitted[0].predict(flat))
        return np.stack([np.asarray(one.predict(flat)).ravel() for one in fitted], axis=1)

    def importances(self, fitted: list[Any]) -> Array | None:
        each = _last(fitted[0]).estimators_ if self.takes_all else fitted
        found = [_own_importances(one) for one in each]
        known = [one for one in found if one is not None]
        is_known = len(known) == len(found) and len({len(one) for one in known}) == 1
        return np.array(known, dtype=np.float64) if is_known else None


def adapter_of(model: Any, fit: Any = None, predict: Any = None) -> Adapter:
    """Who fits and asks a model, or an InputError that says what is understood."""
    if predict is not None and model is None:
        return Functions(fit, predict)
    home = type(model).__module__.split(".")[0]
    if home in ("darts", "neuralforecast", "sktime"):
        from forecause.forecast import foreign_libraries

        return foreign_libraries.ADAPTERS[home](model)
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(model, torch.nn.Module) and not hasattr(model, "predict"):
        from forecause.networks.foreign_module import Module

        return Module(model)
    if hasattr(model, "predict"):
        return Regressors(model) if hasattr(model, "fit") else Functions(None, model.predict)
    raise InputError(
        "A foreign forecaster is a regressor with fit and predict, a torch module that maps "
        "(window, lag, variable) to (window, variable), a model of darts, neuralforecast or "
        f"sktime, or fit= and predict= functions; found {type(model).__name__}."
    )


class Foreign(ForecasterSettings):
    """A forecaster of another library; its own tests decide the links of every target.

    Give the model, or `fit(past, target)` and `predict(model, past)`, where past is (window, lag,
    variable), standardised, and target (window, variable). A saved run keeps its name alone.

    Examples
    --------
    >>> import forecause as fc
    >>> from sklearn.linear_model import Ridge
    >>> fc.forecasters.Foreign(Ridge()).name
    'Ridge'
    """

    kind: ClassVar[str] = "foreign"
    has_gradient: ClassVar[bool] = False
    is_saved: ClassVar[bool] = False
    readouts: ClassVar[tuple[str, ...]] = PLAIN_READOUTS

    model: Any = Field(default=None, exclude=True, repr=False)
    fit: Any = Field(default=None, exclude=True, repr=False)
    predict: Any = Field(default=None, exclude=True, repr=False)
    name: str = ""

    def __init__(self, model: Any = None, **more: Any) -> None:
        super().__init__(**{"model": model, **more})

    @model_validator(mode="after")
    def _named(self) -> Self:
        given = self.predict if self.model is None else self.model
        if not self.name and given is not None:
            own = getattr(given, "__name__", type(given).__name__)
            object.__setattr__(self, "name", str(own).strip("<>"))
        return self

    def adapter(self) -> Adapter:
        """Who fits and asks it."""
        if self.model is None and self.predict is None:
            raise InputError(
                f"The foreign forecaster {self.name or ''!r} is not kept with a saved run; ask the "
                "model itself, or run discover again."
            )
        return adapter_of(self.model, self.fit, self.predict)

    def build(self, shape: tuple[int, int]) -> ForeignModel:
        return ForeignModel(shape, self)


class ForeignModel(Forecaster):
    """What the adapter fitted, behind our windows."""

    settings: Foreign
    read_windows = 300
    fitted: Any = None
    mean: Floats | float = 0.0  # of the data's units, for what cannot be refitted
    sd: Floats | float = 1.0

    def fit(self, fit_data: FitData) -> None:
        if not self.allowed.all():
            raise InputError("A foreign forecaster reads all inputs: forbid does not go with it.")
        adapter = self.settings.adapter()
        windows = fit_data.windows.sample(MOST_LEARNED_WINDOWS, np.random.default_rng(0))
        drawn = windows.draw(np.arange(len(windows)))
        if not adapter.can_be_refitted:
            self.mean, self.sd = windows.scale.mean, windows.scale.sd
        fit_data.progress.step(f"fitting {self.settings.name}", 0.0)
        try:
            self.fitted = adapter.fit(drawn.past.copy(), drawn.target.copy(), fit_data.seed)
            first = self.forward(drawn.past[:2])
        except InputError:
            raise
        except Exception as problem:  # whatever somebody else's code does
            raise InputError(
                f"{self.settings.name} failed on windows of the shape {drawn.past.shape} "
                f"(window, lag, variable): {type(problem).__name__}: {problem}"
            ) from problem
        self._checked(first, min(len(drawn.past), 2))
        self.estimate_noise(fit_data.held_out)

    def forward(self, past: Floats, rules: Rules = PLAIN, domain: Index | None = None) -> Floats:
        own = np.asarray(past) * self.sd + self.mean
        found = self.settings.adapter().predict(self.fitted, own)
        return np.asarray((found - self.mean) / self.sd, dtype=np.float32)

    @property
    def importances(self) -> Array | None:
        """The model's own (target, source, lag), those of a target adding up to one."""
        flat = self.settings.adapter().importances(self.fitted)
        if flat is None or flat.shape[1] != self.max_lag * self.n_variables:
            return None
        by_step = np.abs(flat).reshape(len(flat), self.max_lag, self.n_variables)
        total = np.maximum(by_step.sum((1, 2), keepdims=True), 1e-300)
        return np.asarray((by_step / total)[:, ::-1].transpose(0, 2, 1))

    def _checked(self, forecast: Floats, windows: int) -> None:
        expected = (windows, self.n_variables)
        if forecast.shape == expected and not np.isfinite(forecast).all():
            raise InputError(f"{self.settings.name} forecast what is no finite number.")
        if forecast.shape != expected:
            raise InputError(
                f"{self.settings.name} must forecast numbers of the shape (window, variable), here "
                f"{expected}; found {forecast.shape}."
            )


def _own_importances(model: Any) -> Array | None:
    """`feature_importances_`, or the size of `coef_`, of a regressor or of a pipeline's last."""
    for name in ("feature_importances_", "coef_"):
        values = getattr(_last(model), name, None)
        if values is not None:
            return np.abs(np.asarray(values, dtype=np.float64)).ravel()
    return None


def _last(model: Any) -> Any:
    """The last part of a pipeline, or the model itself."""
    return model[-1] if hasattr(model, "steps") else model


def _kind_of_estimator(model: Any) -> str | None:
    """What scikit-learn calls it: a regressor, a classifier, ...; None where that is not told."""
    tags = getattr(model, "__sklearn_tags__", None)
    kind = tags().estimator_type if callable(tags) else getattr(model, "_estimator_type", None)
    return None if kind is None else str(kind).replace("_", " ")
