"""The forecasters, one file each; a file says of itself what its forecaster can do."""

from forecause.forecast.forecaster import ForecasterSettings
from forecause.forecast.models.additive import AdditiveSettings
from forecause.forecast.models.choice import ChoiceSettings
from forecause.forecast.models.chronos import ChronosSettings
from forecause.forecast.models.cnn import CNNSettings
from forecause.forecast.models.deep_transformer import DeepTransformerSettings
from forecause.forecast.models.linear import LinearSettings
from forecause.forecast.models.mlp import MLPSettings
from forecause.forecast.models.pretrained import PretrainedSettings
from forecause.forecast.models.transformer import TransformerSettings
from forecause.forecast.models.vector_transformer import VectorTransformerSettings

__all__ = [
    "CLOSED_FORMS",
    "NETWORKS",
    "AdditiveSettings",
    "CNNSettings",
    "ChoiceSettings",
    "ChronosSettings",
    "DeepTransformerSettings",
    "LinearSettings",
    "MLPSettings",
    "PretrainedSettings",
    "TransformerSettings",
    "VectorTransformerSettings",
]

# Of `auto`, simple to rich.
CLOSED_FORMS: list[type[ForecasterSettings]] = [LinearSettings, AdditiveSettings]
NETWORKS: list[type[ForecasterSettings]] = [MLPSettings, TransformerSettings]
