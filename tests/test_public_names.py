import ast
import doctest
import inspect
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import pytest

import forecause as fc

SURFACE = """
Additive CausalDiscovery CNN Chronos Config Dictionary Discovery Forecaster
ForecasterSettings Foreign
ForecauseError ForecauseWarning GlobalTopK InputError LaggedGraph Linear LoggedProgress MLP Panel
Pretrained Progress Push TopK Transformer Trees VectorTransformer Workers __version__ datasets
discover drivers load load_graph read score_graph simulate
"""


def test_the_public_surface():
    assert set(fc.__all__) == set(SURFACE.split())
    assert dir(fc) == sorted(fc.__all__)


def test_every_public_name_can_be_had_and_no_other():
    for name in fc.__all__:
        assert getattr(fc, name) is not None
    assert callable(fc.discover)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        fc.nothing  # noqa: B018


def test_no_submodule_has_the_name_of_a_public_function():
    names = {module.name for module in pkgutil.iter_modules(fc.__path__)}
    assert not names & set(fc.__all__)


def test_importing_the_package_and_its_command_imports_nothing_heavy():
    code = (
        "import sys, forecause.cli; "
        "heavy = {'torch', 'pandas', 'numpy', 'xarray', 'matplotlib'} & set(sys.modules); "
        "sys.exit(str(heavy) if heavy else 0)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_product_never_imports_the_study():
    for path in Path(fc.__file__).parent.rglob("*.py"):
        names = [
            name
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
            for name in (
                [node.module or ""]
                if isinstance(node, ast.ImportFrom)
                else [alias.name for alias in node.names]
                if isinstance(node, ast.Import)
                else []
            )
        ]
        assert not [name for name in names if name.startswith("forecause_bench")], path


@pytest.mark.parametrize("name", sorted(set(fc.__all__) - {"__version__"}))
def test_every_public_name_has_an_example_that_runs(name):
    found = doctest.DocTestFinder(recurse=False).find(getattr(fc, name), name, globs={})
    examples = [example for one in found for example in one.examples]
    assert examples, f"{name} has no example"
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    for one in found:
        runner.run(one)
    assert runner.failures == 0


def test_every_argument_of_discover_is_typed_and_documented():
    signature = inspect.signature(fc.discover)
    documented = inspect.getdoc(fc.discover)
    for name, parameter in signature.parameters.items():
        assert parameter.annotation is not inspect.Parameter.empty, name
        assert re.search(rf"^(.*, )?{name}(,.*)?$", documented, re.MULTILINE), name
        assert parameter.kind is not inspect.Parameter.VAR_KEYWORD
