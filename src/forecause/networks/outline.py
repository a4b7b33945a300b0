"""How large a network would be, before it is built."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy.typing as npt
import torch
from torch.overrides import TorchFunctionMode

from forecause.errors import InputError
from forecause.networks.network import NetworkModule
from forecause.networks.settings import TrainedSettings

# Time and memory:
CALLS, CALLS_PER_TENSOR = 2_000, 100  # of torch while a network is built, at most
SPARE = 2**24  # bytes that may be built beyond those of the file

OF_KNOWN_SIZE = ("chronos",)  # whose size is that of weights which are there already


def check_size(
    networks: Iterable[TrainedSettings],
    shape: tuple[int, int],
    weights: Mapping[str, npt.NDArray[Any]],
) -> None:
    """Refuse settings of larger networks than the weights fill.

    They are built without memory, where tensors have shapes alone.
    """
    with torch.device("meta"), _Counted(CALLS + CALLS_PER_TENSOR * len(weights)):
        size = sum(_bytes(one.module(shape)) for one in networks if one.kind not in OF_KNOWN_SIZE)
    if size > 2 * sum(values.nbytes for values in weights.values()) + SPARE:
        raise InputError("the settings describe a larger network than the saved weights fill")


def _bytes(outline: NetworkModule) -> int:
    return sum(tensor.numel() * tensor.element_size() for tensor in outline.state_dict().values())


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
