"""The folder that the command writes a run to, chosen and checked before the run begins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from forecause.cli.ending import signals_held, was_written

if TYPE_CHECKING:
    import pandas as pd

    from forecause.config import Config
    from forecause.discovery import Discovery

MOST_NAMES = 10_000  # tried for a folder that nobody chose


def _path(text: str | Path) -> Path:
    if not str(text):
        raise typer.BadParameter("expected a name, found nothing.")
    return Path(text)


Out = Annotated[
    Path | None,
    typer.Option(
        parser=_path,
        metavar="PATH",
        help="Folder for the results.  [default: DATA-forecause]",
        rich_help_panel="Run",
    ),
]
Force = Annotated[
    bool,
    typer.Option(
        "--force",
        help="Replace whatever the folder for the results holds.",
        rich_help_panel="Run",
    ),
]


@dataclass(frozen=True)
class Output:
    """A folder that can be written, and whether it may be whatever is there."""

    folder: Path
    force: bool = False

    @classmethod
    def examined(
        cls, out: Path | None, data: Sequence[Path], config: Config, force: bool = False
    ) -> Output:
        """The folder asked for, or one named after the data that is free or holds the same run."""
        from forecause.common.files import examine_output
        from forecause.errors import InputError

        if out is not None:
            examine_output(out)
            held = None if force else _held(out, config, data)
            if held:
                raise InputError(f"{_shown(out)} {held}; give another folder, or --force.")
            return cls(out, force)
        usual = Path(f"{data[0].stem}-forecause")
        examine_output(usual)
        return cls(usual if force else _free_name(usual, config, data), force)

    def save(self, found: Discovery) -> Path:
        """Write the run; if somebody took the folder meanwhile, beside it: work is never lost."""
        from forecause.store.run_folder import FolderTaken

        with signals_held():
            try:
                written = found.save(self.folder, overwrite=self.force)
            except FolderTaken:
                written = found.save(_unused(self.folder))
            was_written(written)
        return written


def write_table(table: pd.DataFrame, path: Path) -> None:
    """A table as CSV, whole or not at all; text that a spreadsheet would run is marked as text."""
    from forecause.common.files import save_text
    from forecause.graph.export import no_formula

    def marked(cell: Any) -> Any:
        return no_formula(cell) if isinstance(cell, str) else cell

    safe = table.rename(columns=marked)
    for name in safe.select_dtypes(exclude=["number", "bool", "datetime", "datetimetz"]):
        safe[name] = safe[name].map(marked)
    save_text(safe.to_csv(index=False, lineterminator="\n"), path)


def _free_name(usual: Path, config: Config, data: Sequence[Path]) -> Path:
    """The usual name, or the first with a number whose folder holds no other run."""
    for number in range(1, MOST_NAMES):
        name = usual if number == 1 else usual.with_name(f"{usual.name}-{number}")
        if not name.is_symlink() and name.exists() and not name.is_dir():
            continue
        if _held(name, config, data) is None:
            return name
    return _unused(usual)


def _unused(folder: Path) -> Path:
    for number in range(2, MOST_NAMES):
        name = folder.with_name(f"{folder.name}-{number}")
        if not name.exists() and not name.is_symlink():
            return name
    raise AssertionError("ten thousand runs of one name")


def _held(folder: Path, config: Config, data: Sequence[Path]) -> str | None:
    """What the folder holds besides the same run; the data is read if all else is the same."""
    from forecause.cli.options import one_or_all
    from forecause.data.panel import Panel
    from forecause.store.run_folder import held_by_other

    held = held_by_other(folder, config)
    if held or not folder.is_dir() or not any(folder.iterdir()):
        return held
    panel = Panel.of(one_or_all(list(data)), **config.data.reading)
    return held_by_other(folder, config, panel.fingerprint())


def _shown(path: Path) -> str:
    text = repr(str(path))
    return text if len(text) <= 120 else f"{text[:60]}...{text[-50:]}"
