"""Documents tell the truth: the help is the command's help, and links lead somewhere.

FORECAUSE_UPDATE_DOCS=1 writes the page of the command anew.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import typer

import forecause as fc
from forecause.cli import app

HERE = Path(__file__).parent.parent
PAGE = HERE / "docs" / "reference" / "command.md"
NAMED = r"\bdocs/[\w./-]+\.(?:md|png|ipynb)"


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


def documents() -> list[Path]:
    return [*HERE.glob("*.md"), HERE / "bench" / "README.md", *(HERE / "docs").glob("*/*.md")]


def test_links_to_files_lead_somewhere():
    dead = []
    for page in documents():
        text = page.read_text(encoding="utf-8")
        links = [page.parent / link for link in re.findall(r"\]\(([\w./-]+)(?:#[\w-]*)?\)", text)]
        links += [HERE / name for name in re.findall(NAMED, text)]
        dead += [f"{page.name}: {link}" for link in links if not link.exists()]
    assert not dead


def test_the_help_of_discover_has_a_panel_for_every_group_of_the_configuration():
    help_text = PAGE.read_text(encoding="utf-8").split("## forecause discover\n")[1].split("## ")[0]
    panels = re.findall(r"^(\w+):$", help_text, flags=re.M)
    assert panels == ["Arguments", "Data", "Model", "Edges", "Run"]
    parts = dict(zip(panels, re.split(r"^\w+:$", help_text, flags=re.M)[1:], strict=True))
    for panel, options in {
        "Data": ("--time", "--season"),
        "Model": ("--max-lag", "--preset"),
        "Edges": ("--fdr", "--knowledge"),
        "Run": ("--out", "--seed"),
    }.items():
        assert all(f"  {option} " in parts[panel] for option in options)


def test_every_alert_has_its_meaning_and_remedy():
    code = "".join(p.read_text() for p in (HERE / "src/forecause/diagnostics").glob("*.py"))
    raised = set(re.findall(r'(?:Alert|Doubt)\(\s*"([a-z-]+)"', code))
    raised |= {f"changing-{what}" for what in re.findall(r'_change\(\s*"([a-z]+)"', code)}
    assert len(raised) > 10
    page = (HERE / "docs" / "reference" / "alerts.md").read_text(encoding="utf-8")
    explained = set(re.findall(r"^\| `([a-z-]+)`[^|]*\|[^|]+\|[^|]+\|$", page, re.MULTILINE))
    assert explained == raised


def test_every_public_name_is_on_the_page_of_the_api():
    api = (HERE / "docs" / "reference" / "api.md").read_text(encoding="utf-8")
    shown = re.findall(r"^\.\. auto\w+:: forecause\.(?:simulation\.)?(\w+)$", api, re.MULTILINE)
    assert set(shown) == set(fc.__all__) - {"__version__"}
