"""Who trains no network does not wait for torch."""

import subprocess
import sys

LINEAR = """
import sys
import forecause as fc

table = fc.simulate(nodes=5, max_lag=2, rows=600, seed=0).frame()
run = fc.discover(table, max_lag=3)
run.forecast(2)
"""
ASKED = """
import sys
import forecause as fc
from forecause.config import ForecasterSpec

for kind in ("mlp", "cnn", "vector", "transformer", "deep-transformer", "pretrained", "chronos"):
    assert ForecasterSpec.named(kind).kind == kind
assert fc.forecasters.MLP(hidden=8).halved().hidden == 4
assert fc.forecasters.Transformer().trained_with(max_steps=7).training.max_steps == 7
"""


def test_torch_is_imported_neither_by_settings_alone_nor_by_a_linear_table():
    check = "assert 'torch' not in sys.modules, 'torch was imported'"
    code = "\n".join([ASKED, check, LINEAR, check])
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
