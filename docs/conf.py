"""How the site is built: `make docs`. Nothing here, and nothing in the pages, needs a network."""

import logging
import os
import re
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

import forecause

project = "Forecause"
author = "the authors of Forecause"
project_copyright = author
version = release = forecause.__version__

extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_copybutton"]
exclude_patterns = ["_build", "**/figures"]
default_role = "code"  # in docstrings, as in Markdown
nitpicky = True
nitpick_ignore_regex = [("py:.*", ".*")]  # types of other packages; our own pages link by hand

myst_heading_anchors = 3
nb_execution_mode = "cache"  # a page runs again when its code has changed
nb_execution_raise_on_error = True
nb_execution_timeout = 600  # seconds per cell; a busy machine is no error
nb_execution_show_tb = True
nb_merge_streams = True
nb_execution_in_temp = True

# Figures are drawn as vectors, and kernels keep their remarks to themselves.
PROFILE = Path(__file__).parent / "_build" / "ipython" / "profile_default"
PROFILE.mkdir(parents=True, exist_ok=True)
(PROFILE / "ipython_kernel_config.py").write_text(
    'c.InlineBackend.figure_formats = {"svg"}\nc.IPKernelApp.log_level = 40\n'
)
os.environ["IPYTHONDIR"] = str(PROFILE.parent)
os.environ["FORECAUSE_VIEW"] = "static"  # pictures: a widget needs a kernel behind it
logging.getLogger("traitlets").setLevel(logging.WARNING)

autodoc_typehints = "none"  # they stand in the signature
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
napoleon_google_docstring = False
napoleon_use_param = False  # arguments that are described together stay together
copybutton_exclude = ".linenos, .gp, .go"

html_theme = "furo"
html_title = f"Forecause {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sphinx = False
html_copy_source = False
html_theme_options = {"navigation_with_keys": True}

FETCHED = re.compile(
    r"""<(?:script|img|iframe)[^>]+src="(https?:[^"]+)|<link[^>]+href="(https?:[^"]+)"""
)


def refuse_foreign_files(app: Sphinx, error: Exception | None) -> None:
    """A page that fetches anything when it is looked at is an error."""
    if error is not None or app.builder.format != "html":
        return
    fetched = [
        f"{page.name} fetches {found[1] or found[2]}"
        for page in Path(app.outdir).rglob("*.html")
        for found in FETCHED.finditer(page.read_text(encoding="utf-8"))
    ]
    if fetched:
        raise ExtensionError("The site must work offline: " + "; ".join(sorted(fetched)[:5]))


def drop_empty_outputs(app: Sphinx, page: nodes.document) -> None:
    """What a progress bar leaves behind when it is done is not shown."""
    for output in page.findall(nodes.container):
        if "cell_output" in output["classes"]:
            parts = [*output.findall(nodes.literal_block), *output.findall(nodes.raw)]
            for part in parts:
                if not part.astext().strip():
                    part.parent.remove(part)


def setup(app: Sphinx) -> None:
    app.connect("doctree-read", drop_empty_outputs)
    app.connect("build-finished", refuse_foreign_files)
