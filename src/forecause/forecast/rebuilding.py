"""A forecaster built again as a saved run describes it, no larger than its saved weights."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from forecause.errors import InputError
from forecause.forecast.forecaster import Forecaster
from forecause.forecast.selection import build_saved

CALLS, CALLS_PER_TENSOR = 2_000, 100  # of torch while a network is built, at most
SPARE = 2**24  # bytes that may be built beyond those of the file


def rebuilt(
    kind: str, shape: tuple[int, int], settings: dict[str, Any], weights: Mapping[str, Tensor]
) -> Forecaster:
    """The forecaster with its weights, in the mode that is asked and not trained.

    Settings can describe a network of any size. It is built without memory first, where tensors
    have shapes alone, and for good only if the weights of the file fill it.
    """
    if kind != "chronos":  # whose size is that of weights which are there already
        with torch.device("meta"), _Counted(CALLS + CALLS_PER_TENSOR * len(weights)):
            outline = build_saved(kind, shape, settings)
        if _bytes(outline.state_dict().values()) > 2 * _bytes(weights.values()) + SPARE:
            raise InputError("the settings describe a larger network than the saved weights fill")
    forecaster = build_saved(kind, shape, settings)
    forecaster.load_state_dict(weights)
    return forecaster.eval().requires_grad_(False)


def _bytes(tensors: Iterable[Tensor]) -> int:
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors)


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
