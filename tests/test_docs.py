"""Documents tell the truth: the help is the command's help, and links lead somewhere.

FORECAUSE_UPDATE_DOCS=1 writes the pages of the command and of the thresholds anew.
"""

import inspect
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import typer

import forecause as fc
from forecause.cli import app
from forecause.config.thresholds import THRESHOLDS

HERE = Path(__file__).parent.parent
PAGE = HERE / "docs" / "reference" / "command.md"
NAMED = r"\bdocs/[\w./-]+\.(?:md|png|ipynb)"


def commands() -> list[str]:
    """Those that the command has, in the order of its help."""
    group = typer.main.get_command(app)
    return group.list_commands(typer.Context(group))


HELP = """
import json, sys
from contextlib import suppress
from forecause.__main__ import main

for name in json.loads(sys.argv[1]):
    sys.argv = ["forecause", *([name] if name else []), "--help"]
    with suppress(SystemExit):
        main()
    print("END", flush=True)
"""


def command_page() -> str:
    """All the help, of one process whose terminal is as wide as the page."""
    parts, names = ["# The command\n"], ["", *commands()]
    shown = subprocess.run(
        [sys.executable, "-c", HELP, json.dumps(names)],
        env=os.environ | {"COLUMNS": "100", "TERMINAL_WIDTH": "100", "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    for name, own in zip(names, shown.split("END\n")[:-1], strict=True):
        text = "\n".join(line.rstrip() for line in own.splitlines())
        parts.append(f"## forecause {name}".rstrip() + f"\n```\n{text.strip()}\n```\n")
    return "\n".join(parts)


def test_the_page_shows_the_present_help():
    page = command_page()
    if os.environ.get("FORECAUSE_UPDATE_DOCS"):
        PAGE.write_text(page, encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == page


def thresholds_page() -> str:
    parts = [
        "# Thresholds\n",
        "The numbers that decide a result, saved with every run in `run.json`. An expert sets one\n"
        "with `--set thresholds.edges.least_share=0.001` or\n"
        '`fc.Config(thresholds={"edges": {"least_share": 0.001}})`. The command beside each shows\n'
        "what it does. Numbers that only bound time or memory are not listed.\n",
    ]
    for group, numbers in THRESHOLDS:
        parts.append(f"## {group}\n\n{inspect.getdoc(type(numbers))}\n")
        rows = ["| threshold | value | bounds | shown by |", "|---|---:|---|---|"]
        for name, field in type(numbers).model_fields.items():
            value = getattr(numbers, name)
            shown = ", ".join(f"{one:g}" for one in value) if isinstance(value, tuple) else value
            command = field.json_schema_extra["measured_by"]
            rows.append(f"| `{name}` | {shown} | {field.description} | `{command}` |")
        parts.append("\n".join(rows) + "\n")
    return "\n".join(parts)


def test_the_page_of_thresholds_shows_the_present_ones():
    page = HERE / "docs" / "reference" / "thresholds.md"
    if os.environ.get("FORECAUSE_UPDATE_DOCS"):
        page.write_text(thresholds_page(), encoding="utf-8")
    assert page.read_text(encoding="utf-8") == thresholds_page()


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


def test_every_finding_has_its_meaning_and_remedy():
    code = "".join(p.read_text() for p in (HERE / "src/forecause/diagnostics").glob("*.py"))
    made = r'(?:Finding|_doubt|_remembered|_of_targets|_of_columns)\(\s*(?:run,\s*)?"([a-z-]+)"'
    raised = set(re.findall(made, code))
    assert len(raised) > 10
    page = (HERE / "docs" / "reference" / "findings.md").read_text(encoding="utf-8")
    explained = set(re.findall(r"^\| `([a-z-]+)`(?: *\|[^|]+){3}\|$", page, re.MULTILINE))
    assert explained == raised


def test_every_public_name_is_on_the_page_of_the_api():
    api = (HERE / "docs" / "reference" / "api.md").read_text(encoding="utf-8")
    shown = re.findall(r"^\.\. auto\w+:: forecause\.(?:simulation\.)?([\w.]+)$", api, re.MULTILINE)
    forecasters = {f"forecasters.{name}" for name in fc.forecasters.__all__}
    assert set(shown) == set(fc.__all__) - {"__version__", "forecasters"} | forecasters
