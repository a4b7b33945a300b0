"""Fixtures of the study's tests."""

import pytest

from forecause_bench import runner


@pytest.fixture(autouse=True, scope="session")
def _small_products():
    """How fast the machine is takes longer to measure than the small jobs of the tests take."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runner, "PRODUCT", 64)
        yield
