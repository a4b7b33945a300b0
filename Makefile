# Every target sets up what it needs; a second call is instant when nothing changed.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready
CODE := src tests bench tools conftest.py

BROWSER := .venv/.browser

.PHONY: setup demo test lint types tests soak bench clean

setup: $(READY)

$(READY): pyproject.toml bench/pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]' --editable ./bench
	touch $(READY)

# The report is tested in a real browser; without one those tests are skipped and say so.
$(BROWSER): $(READY)
	command -v chromium >/dev/null || (apt-get update -qq && apt-get install -y -qq chromium) >/dev/null 2>&1 \
		|| echo "no chromium could be installed: the browser tests will be skipped"
	touch $(BROWSER)

demo: $(READY)
	$(BIN)/forecause demo

test: lint types tests

lint: $(READY)
	$(BIN)/ruff check $(CODE)
	$(BIN)/ruff format --check $(CODE)
	$(BIN)/lint-imports

types: $(READY)
	$(BIN)/mypy

tests: $(BROWSER)
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest

# Malformed inputs and interruptions by the thousand; a short form is part of `tests`.
soak: $(READY)
	OMP_NUM_THREADS=1 PYTHONPATH=tests nice $(BIN)/python -m soak

bench: $(READY)
	$(BIN)/forecause bench linear
	$(BIN)/forecause bench quick

clean:
	rm -rf .venv forecause-demo
