"""Options that spread work over processes or machines."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated

import typer

from forecause.cli.ending import under_torchrun

if TYPE_CHECKING:
    from forecause.discovery import Discovery
    from forecause.resources.workers import Workers

Ray = Annotated[
    str | None,
    typer.Option(
        help="Spread the work over Ray: local starts it here, auto finds one that runs, or give "
        "a cluster's address."
    ),
]
Jobs = Annotated[
    int | None, typer.Option(help="Processes.  [default: one per core]", show_default=False)
]


def asked_workers(ray: str | None, jobs: int | None) -> Workers:
    """Those asked for, or one process per core; under torchrun all is done together instead."""
    from forecause.resources.workers import LOCAL, Workers

    if under_torchrun():
        return LOCAL
    return Workers(jobs if jobs is not None else os.cpu_count() or 1, ray)


def power_workers(found: Discovery, ray: str | None, jobs: int | None = None) -> Workers:
    """Those asked for; starting processes takes longer than repeating a run that is quick."""
    return asked_workers(ray, 1 if jobs is None and found.is_quick else jobs)
