"""The settings of all networks, which can be asked for, checked and saved without torch."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

from pydantic import Field, field_validator

from forecause.config import (
    EVERY_HEAD,
    EVERY_READOUT,
    PLAIN_READOUTS,
    ForecasterSpec,
    HeadName,
    Settings,
)
from forecause.forecast.forecaster import MANY_INPUTS, Forecaster, ForecasterSettings

if TYPE_CHECKING:  # torch takes seconds to import
    from forecause.networks.network import NetworkModule

# Time and memory:
QUICK_STEPS = 1000  # of training, at most, under the preset quick
MOST_INPUTS = 40  # that each target of a network reads, where there are many
TARGETS_TOGETHER = 100  # at most, that are trained together where targets share no parameter

# Shape of the model:
SPARSITIES = (0.0, 0.03, 0.1, 0.2)  # weights of the penalty on gradients that are tried


def check_device(asked: str) -> None:
    """Refuse a device that is unknown or not there."""
    if asked not in ("auto", "cpu"):
        from forecause.networks.network import pick_device

        pick_device(asked)


class TrainingSettings(Settings):
    """Adam with warm-up; the rate falls when the held-out loss stalls, then training stops."""

    learning_rate: float = 3e-3
    batch_size: int = 64
    max_steps: int = 6000
    warmup_steps: int = 100
    look_every: int = 100  # steps between looks at the held-out loss
    patience: int = 4  # looks without progress before the rate falls
    rate_drops: int = 2  # how often the rate falls to a third before training stops
    cooldown: int = 0  # steps at the end in which the rate falls to zero; instead of drops
    rounds: int = 0  # over all windows that the cap of steps leaves room for, however many
    clip: float = 1.0  # largest norm of a gradient

    def most_steps(self, windows: int) -> int:
        """The cap for so many windows to learn from."""
        return max(self.max_steps, self.rounds * windows // self.batch_size)

    def least_steps(self, rivals: bool) -> int:
        """Those after which training can end at the earliest; `rivals` make it give up sooner."""
        stalls = 1 if rivals else self.rate_drops + 1
        return self.patience * stalls * self.look_every + self.cooldown

    @classmethod
    def paper(cls) -> TrainingSettings:
        """Adam at the published rate and batch size; how it ends is not published."""
        return cls(
            learning_rate=1e-3,
            batch_size=256,
            warmup_steps=0,
            patience=8,
            rate_drops=0,
            cooldown=300,
            rounds=10,
            clip=1e9,  # that is, not at all
        )


class TrainedSettings(ForecasterSettings):
    """What the settings of every forecaster that learns by gradient descent hold.

    A subclass says in `module` which torch module it is built from, ours in `home` alone.
    """

    home: ClassVar[str] = ""  # file of this folder and class in it

    training: TrainingSettings = TrainingSettings()
    sparsity: tuple[float, ...] = ()  # weights of the gradients' penalty, smallest first

    def module(self, shape: tuple[int, int]) -> NetworkModule:
        """The unfitted torch module of windows (max_lag, columns)."""
        if not self.home:
            raise NotImplementedError(f"the settings of {self.kind!r} say nothing of a module")
        file, name = self.home.split(".")
        home = import_module(f"forecause.networks.{file}")
        made: NetworkModule = getattr(home, name)(shape, self)
        return made

    def build(self, shape: tuple[int, int]) -> Forecaster:
        from forecause.networks.network import Network

        return Network(self.module(shape))

    def seeded_build(self, shape: tuple[int, int], seed: int) -> Forecaster:
        from forecause.networks.network import seeded

        with seeded(seed):
            return self.build(shape)

    def work(self, shape: tuple[int, int]) -> int:
        """Roughly the multiplications of a forecast of one window; 0: not known."""
        return 0

    @classmethod
    def of_preset(cls, preset: str) -> ForecasterSpec:
        settings = cls()
        if preset == "quick":
            return settings.trained_with(max_steps=QUICK_STEPS, rate_drops=1)
        return settings

    def trained_with(self, **changes: Any) -> Self:
        """The same with other fields of `training`."""
        training = self.training.model_copy(update=changes)
        return self.model_copy(update={"training": training})


class NetworkSettings(TrainedSettings):
    """What the settings of our own networks hold: any head, and sparse gradients if asked for."""

    head_names: ClassVar[tuple[str, ...]] = EVERY_HEAD
    can_be_sparse: ClassVar[bool] = True

    head: HeadName = "mse"

    @classmethod
    def of_preset(cls, preset: str) -> ForecasterSpec:
        if preset != "sparse":
            return super().of_preset(preset)
        # one fit for each weight, meant for few rows
        brief = cls().trained_with(max_steps=1000, look_every=50, patience=3, rate_drops=1)
        return brief.model_copy(update={"sparsity": SPARSITIES})


class SeparateSettings(NetworkSettings):
    """Of networks in which every target reads its own copy of its inputs."""

    inputs: int = 0  # how many each target reads, those of `read_only`; 0: all

    def sized(self, inputs: int) -> Self:
        """Where there are many inputs, each target reads the strongest alone."""
        return self.model_copy(update={"inputs": MOST_INPUTS}) if inputs > MANY_INPUTS else self


class MLP(SeparateSettings):
    """Two hidden layers per target; the linear path starts at the closed-form fit.

    Examples
    --------
    >>> import forecause as fc
    >>> fc.forecasters.MLP(hidden=64).halved().hidden
    32
    """

    kind: ClassVar[str] = "mlp"
    home: ClassVar[str] = "mlp_and_cnn.MLPModel"

    hidden: int = Field(default=32, ge=2)

    def halved(self) -> Self:
        return self.model_copy(update={"hidden": self.hidden // 2})

    def work(self, shape: tuple[int, int]) -> int:
        inputs = self.inputs or shape[0] * shape[1]
        return shape[1] * (inputs * (self.hidden + 1) + self.hidden**2 + self.hidden)


class CNN(NetworkSettings):
    """Two convolutions along time, then one linear layer from all positions to all targets.

    Examples
    --------
    >>> import forecause as fc
    >>> fc.forecasters.CNN(channels=32).kind
    'cnn'
    """

    kind: ClassVar[str] = "cnn"
    home: ClassVar[str] = "mlp_and_cnn.CNNModel"

    channels: int = 64
    kernel: int = 3
    training: TrainingSettings = TrainingSettings(learning_rate=1e-3, batch_size=128)


class DeepTransformer(NetworkSettings):
    """Exactly as published: deep with 4 layers, shallow with 1."""

    kind: ClassVar[str] = "deep-transformer"
    home: ClassVar[str] = "paper_transformers.DeepTransformerModel"
    readouts: ClassVar[tuple[str, ...]] = EVERY_READOUT

    width: int = 64  # d, the size of a token
    heads: int = 4
    layers: int = 4
    static_bias: bool = False  # a learnable logit per head, query token and key token
    teacher_forcing: bool = True  # learn from the forecast at every position, not only the last
    training: TrainingSettings = TrainingSettings.paper()

    @classmethod
    def of_preset(cls, preset: str) -> ForecasterSpec:
        return cls(layers=1) if preset == "paper-shallow" else super().of_preset(preset)


class Transformer(SeparateSettings):
    """The best found on a 2-core CPU; for the published model see DeepTransformer.

    Examples
    --------
    >>> import forecause as fc
    >>> fc.forecasters.Transformer(width=16).kind
    'transformer'
    """

    kind: ClassVar[str] = "transformer"
    home: ClassVar[str] = "transformer.TransformerModel"
    readouts: ClassVar[tuple[str, ...]] = EVERY_READOUT
    token_per_input: ClassVar[bool] = True

    width: int = 32  # d, the size of a token
    heads: int = 4

    @classmethod
    def of_preset(cls, preset: str) -> ForecasterSpec:
        """The presets of the paper are the published model, another one."""
        if preset in ("paper", "paper-shallow"):
            return DeepTransformer.of_preset(preset)
        return super().of_preset(preset)

    def halved(self) -> Self:
        return self.model_copy(update={"width": self.width // 2, "heads": self.heads // 2})

    def work(self, shape: tuple[int, int]) -> int:
        inputs = self.inputs or shape[0] * shape[1]
        return shape[1] * (40 * self.heads * inputs + 12 * self.width**2)


class VectorTransformer(NetworkSettings):
    """One layer and one head, as the paper has it for small recorded data.

    Examples
    --------
    >>> import forecause as fc
    >>> fc.forecasters.VectorTransformer(layers=2).kind
    'vector'
    """

    kind: ClassVar[str] = "vector"
    home: ClassVar[str] = "paper_transformers.VectorTransformerModel"

    width: int = 64  # d, the size of a token
    heads: int = 1
    layers: int = 1

    @property
    def block(self) -> DeepTransformer:
        """What a block is built from; the static bias lets attention start from a lag."""
        return DeepTransformer(
            width=self.width, heads=self.heads, domains=self.domains, static_bias=True
        )


class ContextSettings(Settings):
    """The size of the transformer behind `pretrained`; saved with its weights."""

    width: int = Field(default=32, ge=1)
    heads: int = Field(default=4, ge=1)
    layers: int = Field(default=3, ge=1)
    node_width: int = Field(default=8, ge=1)  # of the vector that tells a variable apart


class Pretrained(TrainedSettings):
    """These fine-tune norm layers and node vectors; `zero_shot`, the default, trains nothing.

    Examples
    --------
    >>> import forecause as fc
    >>> fc.forecasters.Pretrained.zero_shot().training.max_steps
    0
    """

    kind: ClassVar[str] = "pretrained"
    home: ClassVar[str] = "pretrained.PretrainedModel"
    instant: ClassVar[bool] = True
    weights_use: ClassVar[Literal["none", "optional", "required"]] = "optional"

    weights: str | None = None  # what `forecause pretrain` wrote; None: those that come with it
    network: ContextSettings | None = None  # None: as in the weights, which are then loaded
    node_scale: float = 1.0  # sd of the random node vectors; 0: variables are not told apart
    tuned: Literal["norms", "everything"] = "norms"
    training: TrainingSettings = TrainingSettings(
        learning_rate=1e-3,
        batch_size=1024,
        max_steps=100,
        warmup_steps=10,
        look_every=10,
        patience=2,
        rate_drops=1,
    )

    @field_validator("weights")
    @classmethod
    def _full_path(cls, weights: str | None) -> str | None:
        """The full path, so that a saved run finds it from anywhere."""
        return weights if weights is None else str(Path(weights).expanduser().resolve())

    @classmethod
    def of_preset(cls, preset: str) -> ForecasterSpec:
        return cls() if preset == "paper" else cls.zero_shot()

    @classmethod
    def zero_shot(cls) -> Pretrained:
        """The pretrained weights as they are, with random node vectors."""
        return cls(training=TrainingSettings(max_steps=0))


class Chronos(TrainedSettings):
    """The default fine-tunes the norm layers and the node embedding; `zero_shot` trains nothing.

    Examples
    --------
    >>> import forecause as fc
    >>> fc.forecasters.Chronos.zero_shot("a/folder").weights_use
    'required'
    """

    kind: ClassVar[str] = "chronos"
    home: ClassVar[str] = "chronos.ChronosModel"
    readouts: ClassVar[tuple[str, ...]] = PLAIN_READOUTS
    weights_use: ClassVar[Literal["none", "optional", "required"]] = "required"

    weights: str = "amazon/chronos-2"  # a hub id, or a folder with config and safetensors
    patches: int = Field(default=20, ge=1)  # the longest context; the paper's 20 in and 1 out
    node_scale: float = Field(default=1.0, ge=0)  # sd of the random node embedding; 0: none
    training: TrainingSettings = TrainingSettings(
        learning_rate=1e-3, batch_size=32, max_steps=1000, warmup_steps=20, look_every=50
    )

    @field_validator("weights")
    @classmethod
    def _full_path(cls, weights: str) -> str:
        """A folder's full path, so that a saved run finds it from anywhere."""
        folder = Path(weights).expanduser()
        return str(folder.resolve()) if folder.is_dir() else weights

    @classmethod
    def of_preset(cls, preset: str) -> ForecasterSpec:
        return cls.zero_shot(cls().weights) if preset == "quick" else cls()

    @classmethod
    def zero_shot(cls, weights: str, patches: int = 20) -> Chronos:
        """The pretrained weights as they are, with a random node embedding."""
        training = TrainingSettings(max_steps=0)
        return cls(weights=weights, patches=patches, training=training)
