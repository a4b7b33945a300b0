"""The forecasters that `auto` tries, simple to rich. Importing this makes every kind known."""

from forecause.forecast.additive import Additive
from forecause.forecast.choice import PerTargetChoiceSettings as PerTargetChoiceSettings
from forecause.forecast.dictionary import Dictionary
from forecause.forecast.forecaster import ForecasterSettings
from forecause.forecast.linear import Linear
from forecause.forecast.products import Products as Products
from forecause.forecast.stack import StackSettings as StackSettings
from forecause.forecast.trees import Trees
from forecause.networks.settings import MLP, Transformer

CLOSED_FORMS: list[type[ForecasterSettings]] = [Linear, Additive]
LEARNERS: list[type[ForecasterSettings]] = [Dictionary, Trees]
NETWORKS: list[type[ForecasterSettings]] = [MLP, Transformer]
