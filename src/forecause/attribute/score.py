"""The score: how the likelihood of what followed changes when an input moves a little."""

from __future__ import annotations

from torch import Tensor

from forecause.forecast.forecaster import Forecaster


def score(forecaster: Forecaster, window: Tensor) -> Tensor:
    """d log p(X_t | past) / d input; its mean square is the score gradient energy.

    It sees whatever an input does to the distribution, a change of variance too if the
    forecaster's head has learned it.
    """
    return forecaster.score(window)
