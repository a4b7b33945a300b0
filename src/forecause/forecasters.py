"""What predicts, as objects with settings, and what a forecaster of your own is made of.

>>> import forecause as fc
>>> fc.forecasters.MLP(hidden=64).kind
'mlp'
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from forecause.common.public import looked_up

if TYPE_CHECKING:
    from forecause.forecast.additive import Additive as Additive
    from forecause.forecast.dictionary import Dictionary as Dictionary
    from forecause.forecast.forecaster import Forecaster as Forecaster
    from forecause.forecast.forecaster import ForecasterSettings as ForecasterSettings
    from forecause.forecast.foreign import Foreign as Foreign
    from forecause.forecast.linear import Linear as Linear
    from forecause.forecast.trees import Trees as Trees
    from forecause.networks.settings import CNN as CNN
    from forecause.networks.settings import MLP as MLP
    from forecause.networks.settings import Chronos as Chronos
    from forecause.networks.settings import Pretrained as Pretrained
    from forecause.networks.settings import Transformer as Transformer
    from forecause.networks.settings import VectorTransformer as VectorTransformer

_CLOSED_FORMS_AND_LEARNERS = "forecause.forecast.selection"
_NETWORKS = "forecause.networks.settings"
_HOMES = {
    "Additive": _CLOSED_FORMS_AND_LEARNERS,
    "CNN": _NETWORKS,
    "Chronos": _NETWORKS,
    "Dictionary": _CLOSED_FORMS_AND_LEARNERS,
    "Forecaster": "forecause.forecast.forecaster",
    "ForecasterSettings": "forecause.forecast.forecaster",
    "Foreign": "forecause.forecast.foreign",
    "Linear": _CLOSED_FORMS_AND_LEARNERS,
    "MLP": _NETWORKS,
    "Pretrained": _NETWORKS,
    "Transformer": _NETWORKS,
    "Trees": _CLOSED_FORMS_AND_LEARNERS,
    "VectorTransformer": _NETWORKS,
}

__all__ = list(_HOMES)


def __getattr__(name: str) -> Any:
    return looked_up(__name__, name, _HOMES)


def __dir__() -> list[str]:
    return sorted(__all__)
