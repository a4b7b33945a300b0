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
CausalDiscovery Config Discovery ForecauseError ForecauseWarning InputError LaggedGraph Panel
Progress Push TopK Workers __version__ datasets discover drivers forecasters load load_graph read
score_graph simulate
"""
FORECASTERS = """
Additive CNN Chronos Dictionary Forecaster ForecasterSettings Foreign Linear MLP Pretrained
Transformer Trees VectorTransformer
"""


def test_the_public_surface():
    assert set(fc.__all__) == set(SURFACE.split())
    assert dir(fc) == sorted(fc.__all__)
    assert set(fc.forecasters.__all__) == set(FORECASTERS.split())
    assert dir(fc.forecasters) == sorted(fc.forecasters.__all__)


def test_names_of_version_0_2_are_still_understood():
    for name in fc.forecasters.__all__:
        assert getattr(fc, name) is getattr(fc.forecasters, name)
    assert fc.GlobalTopK(4) == fc.TopK(4, overall=True)
    assert issubclass(fc.LoggedProgress, fc.Progress)


def test_every_public_name_can_be_had_and_no_other():
    for name in fc.__all__:
        assert getattr(fc, name) is not None
    assert callable(fc.discover)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        fc.nothing  # noqa: B018
    with pytest.raises(AttributeError, match=r"forecasters' has no attribute 'Tree'; .* 'Trees'"):
        fc.forecasters.Tree  # noqa: B018


def test_no_submodule_has_the_name_of_a_public_function():
    names = {module.name for module in pkgutil.iter_modules(fc.__path__)}
    assert names & set(fc.__all__) == {"forecasters"}  # the one public module


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


@pytest.mark.parametrize("name", sorted({*fc.__all__, *fc.forecasters.__all__} - {"__version__"}))
def test_every_public_name_has_an_example_that_runs(name):
    home = fc if name in fc.__all__ else fc.forecasters
    found = doctest.DocTestFinder(recurse=False).find(getattr(home, name), name, globs={})
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
