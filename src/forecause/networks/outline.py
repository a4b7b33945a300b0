"""How large a network would be, before it is built."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy.typing as npt
import torch
from torch.overrides import TorchFunctionMode

from forecause.errors import InputError
from forecause.forecast.forecaster import Forecaster, ForecasterSettings
from forecause.networks.network import Network

CALLS, CALLS_PER_TENSOR = 2_000, 100  # of torch while a network is built, at most
SPARE = 2**24  # bytes that may be built beyond those of the file
OF_KNOWN_SIZE = ("chronos",)  # whose size is that of weights which are there already


def check_size(
    spec: ForecasterSettings, shape: tuple[int, int], weights: Mapping[str, npt.NDArray[Any]]
) -> None:
    """Refuse settings of a larger network than the weights fill.

    It is built without memory, where tensors have shapes alone.
    """
    if spec.kind in OF_KNOWN_SIZE:
        return
    with torch.device("meta"), _Counted(CALLS + CALLS_PER_TENSOR * len(weights)):
        outline = spec.build(shape)
    if _bytes(outline) > 2 * sum(values.nbytes for values in weights.values()) + SPARE:
        raise InputError("the settings describe a larger network than the saved weights fill")


def _bytes(outline: Forecaster) -> int:
    """Of the networks in a forecaster."""
    return sum(
        tensor.numel() * tensor.element_size()
        for network in _networks(outline)
        for tensor in network.module.state_dict().values()
    )


def _networks(forecaster: Forecaster) -> Iterator[Network]:
    if isinstance(forecaster, Network):
        yield forecaster
    for member in forecaster.members.values():
        yield from _networks(member)


class _Counted(TorchFunctionMode):
    """Refuses a network of so many parts that it would never be built."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self.left = most

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        self.left -= 1
        if self.left < 0:
            raise InputError("the settings describe a network of endless parts")
        return func(*args, **(kwargs or {}))
