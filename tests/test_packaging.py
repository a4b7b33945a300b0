"""What is said about the package in several places is the same everywhere."""

import re
import tomllib
from pathlib import Path

import forecause as fc

HERE = Path(__file__).parent.parent
NAMES = {"torch": "pytorch", "matplotlib": "matplotlib-base"}  # elsewhere


def test_the_conda_recipe_asks_for_what_the_package_asks_for():
    project = tomllib.loads((HERE / "pyproject.toml").read_text("utf-8"))["project"]
    asked = [re.fullmatch(r"([\w-]+)(.*)", text).groups() for text in project["dependencies"]]
    expected = {f"{NAMES.get(name, name)} {bounds}" for name, bounds in asked}
    recipe = (HERE / "conda" / "meta.yaml").read_text("utf-8")
    listed = re.search(r"^  run:\n((?:    - .*\n)+)", recipe, re.MULTILINE)[1]
    found = set(re.findall(r"- (.*)", listed))
    assert found == expected | {f"python {project['requires-python']}"}


def test_the_version_to_cite_is_the_present_one():
    cited = (HERE / "CITATION.cff").read_text("utf-8")
    assert f"\nversion: {fc.__version__}\n" in cited


def test_the_readme_is_read_in_a_minute():
    text = (HERE / "README.md").read_text("utf-8")
    assert len(text.split()) < 450
    assert len(text.split("```sh")[0].split()) < 60  # words before the first command
