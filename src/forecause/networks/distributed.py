"""Several processes that train one model together, as torchrun starts them.

Every process (a rank) runs the same program on the same data with the same seed, so that closed
forms, choices and readouts come out the same everywhere without a word being exchanged. Only
training shares the work: each rank takes its part of every batch and of every held-out look.
Rank 0 alone writes and speaks.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from itertools import count
from typing import TYPE_CHECKING, Any, TypeVar

from forecause.common.arrays import Index
from forecause.errors import ForecauseError, InputError, TrainingError

if TYPE_CHECKING:  # a process that trains alone does not wait for torch
    from torch import Tensor

# Time and memory:
MEETING = 1800.0  # seconds to wait for the others where all must come by
FAILURE_TIMEOUT = 10.0  # seconds to wait after a failure of ours, when others may be busy

Value = TypeVar("Value")
KNOWN = {"InputError": InputError, "TrainingError": TrainingError}


@dataclass
class Ranks:
    """This process among those that train together; alone unless `joined` says otherwise."""

    rank: int = 0
    size: int = 1
    store: Any = None  # the key-value store that torchrun keeps for its processes
    meetings: int = 0
    failed: bool = False  # all know that one has failed

    @property
    def alone(self) -> bool:
        """Whether there is no other process."""
        return self.size == 1

    @property
    def first(self) -> bool:
        """Whether this process writes and speaks."""
        return self.rank == 0

    def share(self, chosen: Index) -> Index:
        """This process's part of the windows of a batch; parts differ by one window at most."""
        return chosen[self.rank :: self.size]

    def total(self, values: Tensor) -> Tensor:
        """The sum over all processes, bit for bit the same in each."""
        if not self.alone:
            from torch import distributed as dist

            dist.all_reduce(values)
        return values

    def of_first(self, values: Tensor) -> Tensor:
        """What rank 0 has, for decisions that must not hang on another processor's rounding."""
        if not self.alone:
            from torch import distributed as dist

            dist.broadcast(values, src=0)
        return values

    def agree(self, answer: bool) -> bool:
        """What rank 0 answers: clocks differ."""
        if self.alone:
            return answer
        import torch

        return bool(self.of_first(torch.tensor(float(answer))))

    def same(self, value: Value, doing: str) -> Value:
        """Rank 0's value, where the others may have measured another; all meet for it."""
        if self.alone:
            return value
        import torch
        from torch import distributed as dist

        self.meet(doing)
        told = [value]
        dist.broadcast_object_list(told, src=0, device=torch.device("cpu"))
        return told[0]

    def meet(
        self, doing: str = "", error: Exception | None = None, patience: float = MEETING
    ) -> None:
        """Wait until all are here; the error of one is raised by all others.

        All must be `doing` the same, as far as none has failed.
        """
        if self.alone:
            return
        self.meetings += 1
        told = None if error is None else (type(error).__name__, str(error))
        keys = [f"meeting {self.meetings} of {rank}" for rank in range(self.size)]
        self.store.set(keys[self.rank], json.dumps([doing, told]))
        self.store.wait(keys, timedelta(seconds=patience))
        heard = [json.loads(self.store.get(key)) for key in keys]
        failures = [failure for _, failure in heard if failure]
        differ = len({what for what, _ in heard}) > 1
        self.failed = bool(failures) or differ
        if failures and error is None:
            raise _error(*failures[0])
        if differ and error is None:
            raise InputError(
                "The processes do not do the same: "
                + "; ".join(f"rank {rank}: {what}" for rank, (what, _) in enumerate(heard))
                + "; start all with the same command on the same data."
            )


_current = Ranks()
_groups = count()


def current() -> Ranks:
    """The processes that train together now."""
    return _current


def one_of_several() -> bool:
    """Whether torchrun started this process beside others."""
    return "TORCHELASTIC_RUN_ID" in os.environ and int(os.environ.get("WORLD_SIZE", "1")) > 1


@contextmanager
def joined() -> Iterator[Ranks]:
    """Train together with the other processes of torchrun, if it started this one.

    An error of one process ends the block in all of them with the same sentence.
    """
    global _current
    if not one_of_several() or not _current.alone:
        yield _current
        return
    _current = ranks = _start()
    try:
        yield ranks
        ranks.meet("the end")
    except Exception as error:
        _tell(ranks, error)
        raise
    finally:
        _current = Ranks()
        from torch import distributed as dist

        dist.destroy_process_group()


@contextmanager
def last_word() -> Iterator[bool]:
    """Whether this process is to say, in the block, why the command fails.

    torchrun ends all processes as soon as one has failed, so the other ranks wait for rank 0's
    message. If none comes in time, they give their own.
    """
    store, rank, _ = _store()
    speaks = rank == 0
    if not speaks:
        try:
            store.wait(["said"], timedelta(seconds=FAILURE_TIMEOUT))
        except RuntimeError:
            speaks = True
    yield speaks
    store.set("said", "")


def _start() -> Ranks:
    """The process group: gloo between processors, nccl where every process has a GPU."""
    import torch
    from torch import distributed as dist
    from torch.distributed import PrefixStore  # type: ignore[attr-defined]  # public

    local, together = int(os.environ["LOCAL_RANK"]), int(os.environ["LOCAL_WORLD_SIZE"])
    backend = "gloo"
    if torch.cuda.is_available():
        torch.cuda.set_device(local % torch.cuda.device_count())
        if together <= torch.cuda.device_count():
            backend = "cpu:gloo,cuda:nccl"
    if together == int(os.environ["WORLD_SIZE"]) and sys.platform == "linux":
        os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")  # one machine needs no network
    store, rank, size = _store()
    own = PrefixStore(f"group {next(_groups)}", store)
    dist.init_process_group(backend, store=own, rank=rank, world_size=size)
    return Ranks(rank, size, own)


@cache
def _store() -> tuple[Any, int, int]:
    """torchrun's store, this process's rank and the number of processes."""
    from torch.distributed import PrefixStore  # type: ignore[attr-defined]  # public
    from torch.distributed.rendezvous import rendezvous

    store, rank, size = next(iter(rendezvous("env://")))
    return PrefixStore("forecause", store), rank, size


def _tell(ranks: Ranks, error: Exception) -> None:
    """Let the others know; if they do not come by, torchrun will end them."""
    if ranks.failed:
        return
    expected = isinstance(error, ForecauseError)  # raised where all meet, or by all at once
    with suppress(RuntimeError):
        ranks.meet(error=error, patience=MEETING if expected else FAILURE_TIMEOUT)


def _error(name: str, sentence: str) -> ForecauseError:
    if name in KNOWN:
        return KNOWN[name](sentence)
    return ForecauseError(f"{name}: {sentence}")
