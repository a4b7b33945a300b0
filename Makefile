# Every target sets up what it needs; a second call is instant when nothing changed.
PYTHON ?= python3
BIN := .venv/bin
PLAIN := .venv/.plain
READY := .venv/.ready
CODE := src tests bench tools conftest.py docs/conf.py

BROWSER := .venv/.browser

.PHONY: setup demo test lint types tests docs screenshots soak mutants bench paper paper-half release clean

setup: $(READY)

# What a user needs; `compileall` halves the start where Python writes no byte code itself.
$(PLAIN): pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[files]'
	$(BIN)/python -m compileall -q src
	touch $(PLAIN)

# What work on the project needs: the extras, the study, the tests' tools.
$(READY): $(PLAIN) bench/pyproject.toml
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]' --editable ./bench
	$(BIN)/python -m compileall -q bench/src
	touch $(READY)

# The report is tested in a real browser and by an accessibility checker; without them those tests
# are skipped and say so.
$(BROWSER): $(READY)
	command -v chromium >/dev/null || (apt-get update -qq && apt-get install -y -qq chromium) >/dev/null 2>&1 \
		|| echo "no chromium could be installed: the browser tests will be skipped"
	npm install --silent --no-fund --no-audit --prefix .venv/axe axe-core@4 >/dev/null 2>&1 \
		|| echo "no axe-core could be installed: the accessibility tests will be skipped"
	touch $(BROWSER)

demo: $(PLAIN)
	$(BIN)/forecause demo

test: lint types tests docs

lint: $(READY)
	$(BIN)/ruff check $(CODE)
	$(BIN)/ruff format --check $(CODE)
	$(BIN)/lint-imports

types: $(READY)
	$(BIN)/mypy

tests: $(BROWSER)
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest

# The site, in docs/_build/html: examples are run, links checked, a warning is an error. Offline.
docs: $(READY)
	OMP_NUM_THREADS=1 $(BIN)/python -m sphinx -W --keep-going -q -j 2 -d docs/_build/pages docs docs/_build/html

# The pictures of the report in docs/img.
screenshots: $(BROWSER)
	OMP_NUM_THREADS=1 $(BIN)/python tools/screenshots.py

# Malformed inputs and interruptions by the thousand; a short form is part of `tests`.
soak: $(READY)
	OMP_NUM_THREADS=1 PYTHONPATH=tests nice $(BIN)/python -m soak

# Changes one place of the code at a time and lists the changes that no test notices; hours.
mutants: $(READY)
	nice $(BIN)/python tools/mutants.py

bench: $(READY)
	$(BIN)/forecause bench linear
	$(BIN)/forecause bench quick

# The paper at its own size: every table and figure from what lies in bench/paper-fits, in a minute;
# then what is missing: rivals, refined graphs, and fits, some ten minutes each. A stopped run goes
# on; call it again for the tables.
STUDY_OF_PAPER := $(BIN)/python -m forecause_bench.paper_study
paper: $(READY)
	$(STUDY_OF_PAPER).page
	$(STUDY_OF_PAPER).theorem --only-page
	$(STUDY_OF_PAPER).refinement --only-page
	$(STUDY_OF_PAPER).causaltime
	$(STUDY_OF_PAPER).isolate
	OMP_NUM_THREADS=1 nice -n 19 $(STUDY_OF_PAPER).rivals
	OMP_NUM_THREADS=1 nice -n 19 $(STUDY_OF_PAPER).refinement
	OMP_NUM_THREADS=1 nice -n 19 $(STUDY_OF_PAPER).run

# The paper's tables at half its size for two cores: 10,000 rows, the axes as far as the published
# transformer gets in minutes. An estimated 70 minutes on one idle core; a stopped run goes on.
PAPER := --half --rows 10000 --seeds 1 --limit 1800 --jobs 1 --results bench-paper/results --quiet
RIVALS := var-fdr,pcmci+,granger,granger-pairwise,dynotears,var-lingam,random-oracle
STUDY = $(BIN)/forecause bench $(1) $(PAPER) --out docs/benchmarks/$(or $(2),$(1))
paper-half: $(READY)
	$(call STUDY,nonlinearity) --methods forecause,dot,$(RIVALS)
	$(call STUDY,highdim-linear) --methods forecause,dot,$(RIVALS) --columns Base,n=25
	$(call STUDY,longrange-linear) --methods forecause,dot,$(RIVALS) --columns Base,k=10,k=25
	$(call STUDY,latent) --methods forecause,dot,$(RIVALS)
	$(call STUDY,noise) --methods forecause,dot,$(RIVALS)
	$(call STUDY,ns-regular) --methods forecause,dot,$(RIVALS) --columns 'Base,2 segments,5 segments'
	$(call STUDY,ns-extreme) --methods forecause,dot,$(RIVALS) --columns 'Base,2 segments,5 segments'
	$(call STUDY,low-drift) --methods forecause,dot,$(RIVALS)
	$(call STUDY,variants) --columns 'k=5,k=10,monotonic,MLP-concat,2 segments,5 segments'
	$(call STUDY,top-k)
	$(call STUDY,interventions)
	$(call STUDY,uncertainty)
	$(call STUDY,cnn) --columns Linear,CAM-M,CAM-PL+M,MLP-Add,MLP-Cat,k=10
	$(call STUDY,rows) --rows 2000,10000,50000
	$(call STUDY,domain-index,paper-domain-index) --methods forecause,dot-index,dot --columns regular,extreme
	$(call STUDY,post-processing,paper-post-processing)
	$(BIN)/python -m forecause_bench.overview
	$(BIN)/python -m forecause_bench.paper_curve

# Builds what would be published, checks it, and uses the wheel in a clean environment.
release: $(READY)
	$(BIN)/python -m pip install --quiet build twine
	rm -rf dist
	$(BIN)/python -m build --outdir dist
	$(BIN)/python -m twine check --strict dist/*
	$(BIN)/python tools/try_wheel.py

clean:
	rm -rf .venv forecause-demo docs/_build
