"""Shorter training of rivals."""

import pytest


@pytest.fixture
def quick(monkeypatch):
    """Shorter training where a test does not depend on it."""
    monkeypatch.setattr("forecause_bench.rivals.tcdf.EPOCHS", 300)
    monkeypatch.setattr("forecause_bench.rivals.cmlp.STEPS", 50)
