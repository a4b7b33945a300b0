"""The small pictures of docs/img/gallery, made anew: python tools/gallery.py [name ...].

Each page of docs/gallery has one cell; it is run, and its last figure is kept.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from warnings import simplefilter

import matplotlib as mpl

import forecause as fc

DOCS = Path(__file__).parent.parent / "docs"
CELL = re.compile(r"```\{code-cell\} python\n(?::[^\n]*\n)*(.*?)```", re.DOTALL)
WIDTH = 560  # pixels


def pages() -> dict[str, Path]:
    """The pages by name, without their list."""
    found = sorted((DOCS / "gallery").glob("*.md"))
    return {page.stem: page for page in found if page.stem != "index"}


def cell_of(page: Path) -> str:
    """The lines of the page's one cell."""
    (code,) = CELL.findall(page.read_text(encoding="utf-8"))
    return str(code)


def main(names: list[str]) -> None:
    """Make the pictures of these names, or all."""
    mpl.use("agg")
    from matplotlib import pyplot as plt

    simplefilter("ignore", fc.ForecauseWarning)
    for name, page in pages().items():
        if not names or name in names:
            exec(compile(cell_of(page), page.name, "exec"), {})
            figure = plt.gcf()
            path = DOCS / "img" / "gallery" / f"{name}.png"
            figure.savefig(path, dpi=WIDTH / figure.get_figwidth(), facecolor="white")
            plt.close("all")
            sys.stdout.write(f"{path} {path.stat().st_size:,} bytes\n")


if __name__ == "__main__":
    main(sys.argv[1:])
