"""The documented help is the command's help. FORECAUSE_UPDATE_DOCS=1 writes it anew."""

import os
import subprocess
import sys
from pathlib import Path

import typer

from forecause.cli import app

PAGE = Path(__file__).parent.parent / "docs" / "command.md"


def commands() -> list[str]:
    """Those that the command has, in the order of its help."""
    group = typer.main.get_command(app)
    return group.list_commands(typer.Context(group))


def command_page() -> str:
    parts = ["# The command\n"]
    for name in ["", *commands()]:
        called = [name, "--help"] if name else ["--help"]
        shown = subprocess.run(
            [sys.executable, "-m", "forecause", *called],
            env=os.environ | {"COLUMNS": "100", "TERMINAL_WIDTH": "100", "NO_COLOR": "1"},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        text = "\n".join(line.rstrip() for line in shown.replace("python -m ", "").splitlines())
        parts.append(f"## forecause {name}".rstrip() + f"\n```\n{text.strip()}\n```\n")
    return "\n".join(parts)


def test_the_page_shows_the_present_help():
    page = command_page()
    if os.environ.get("FORECAUSE_UPDATE_DOCS"):
        PAGE.write_text(page, encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == page
