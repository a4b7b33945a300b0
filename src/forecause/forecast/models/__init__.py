"""The forecasters, one file each; a file says of itself what its forecaster can do."""

from forecause.forecast.forecaster import ForecasterSettings
from forecause.forecast.models.additive import Additive
from forecause.forecast.models.chronos import Chronos
from forecause.forecast.models.cnn import CNN
from forecause.forecast.models.deep_transformer import DeepTransformer
from forecause.forecast.models.dictionary import Dictionary
from forecause.forecast.models.linear import Linear
from forecause.forecast.models.mlp import MLP
from forecause.forecast.models.per_target import PerTargetChoiceSettings
from forecause.forecast.models.pretrained import Pretrained
from forecause.forecast.models.transformer import Transformer
from forecause.forecast.models.trees import Trees
from forecause.forecast.models.vector_transformer import VectorTransformer

__all__ = [
    "CLOSED_FORMS",
    "CNN",
    "LEARNERS",
    "MLP",
    "NETWORKS",
    "Additive",
    "Chronos",
    "DeepTransformer",
    "Dictionary",
    "Linear",
    "PerTargetChoiceSettings",
    "Pretrained",
    "Transformer",
    "Trees",
    "VectorTransformer",
]

# Of `auto`, simple to rich.
CLOSED_FORMS: list[type[ForecasterSettings]] = [Linear, Additive]
LEARNERS: list[type[ForecasterSettings]] = [Dictionary, Trees]
NETWORKS: list[type[ForecasterSettings]] = [MLP, Transformer]
