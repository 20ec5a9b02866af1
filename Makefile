# Needs Python 3.11 or later, make and git; everything else goes into .venv.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
# each worker begins with half of the files, so that both rarely compile the same functions at once
PYTEST_ARGS ?= -n 2 --dist worksteal
# set in many images: each of some hundred processes of the tests would compile all sources again
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help setup test fuzz coverage mutants reproduce lint format types compare bench bench-compare dist-check docs sbom clean

help: ## list the targets
	@awk -F':.*## ' '/^[a-z-]+:.*## / {printf "%-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(STAMP) ## make .venv with the package, editable, and the developers' tools

$(STAMP): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "optgap needs Python 3.11 or later, $(PYTHON) is $$($(PYTHON) -V)"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	@# two thirds of it are never imported: compiling all of it takes half a minute, one core
	$(BIN)/python -m pip install --quiet --no-compile --editable '.[dev]'
	@touch $@

test: $(STAMP) ## lint, types, layers and the whole test suite
	@mkdir -p out; $(MAKE) --no-print-directory lint > out/lint.txt 2>&1 & lint=$$!; \
	  $(BIN)/python -m pytest $(PYTEST_ARGS); tests=$$?; \
	  wait $$lint; linted=$$?; cat out/lint.txt; exit $$((tests ? tests : linted))

fuzz: $(STAMP) ## thousands of random problems and broken files per family; over an hour
	HYPOTHESIS_PROFILE=fuzz $(BIN)/python -m pytest $(PYTEST_ARGS) tests/trust tests/transcriptions
	HYPOTHESIS_PROFILE=fuzz $(BIN)/python -m pytest $(PYTEST_ARGS) -m hypothesis \
	  tests/models tests/fitting tests/heuristics tests/solvers tests/audit

coverage: $(STAMP) ## lines that tests run, of compiled functions too; fails below 92 %; half an hour
	@rm -rf out/coverage && mkdir -p out/coverage
	$(BIN)/python -m coverage run -m pytest $(PYTEST_ARGS)
	@# proofs that take too long uncompiled may fail here: the run above holds their results
	NUMBA_DISABLE_JIT=1 $(BIN)/python -m coverage run -m pytest $(PYTEST_ARGS) -m 'not slow' \
	  tests/models tests/heuristics tests/solvers || test $$? -eq 1
	$(BIN)/python -m coverage combine --quiet
	$(BIN)/python -m coverage report --skip-covered --sort=cover

mutants: $(STAMP) ## mutation testing of the referees and the bounds, MUTANTS=part of a path; hours
	$(BIN)/python -m pip install --quiet 'cosmic-ray==8.7.*'
	$(BIN)/python mutation/mutants.py $(MUTANTS)

lint: $(STAMP) ## ruff, mypy and import-linter
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(STAMP) ## format the code
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

compare: $(STAMP) ## every policy of five families against a proven bound; then 1,213 nodes, four loads
	@mkdir -p out
	$(BIN)/optgap compare --json out/overview.json --plot out/overview.png
	$(BIN)/optgap compare placement --preset alibaba --sweep load=0.3,0.5,0.7,0.85 --methods 'patterns(rounds=6)' \
	  --json out/compare.json --plot out/compare.png

reproduce: $(STAMP) ## the papers' figures and tables again, PAPER=cats; page and results; an hour or two for all
	$(BIN)/python -m reproduction $(PAPER)

bench: $(STAMP) ## every family beside its rivals, 1x to 16x: out/bench.json and a table
	@mkdir -p out
	$(BIN)/python benchmarks/suite.py --output out/bench.json

bench-compare: $(STAMP) ## changes of ratios between two files, BEFORE=... AFTER=...
	@$(BIN)/python benchmarks/suite.py --compare $(BEFORE) $(AFTER)

dist-check: $(STAMP) ## wheel, source archive and README in clean environments; PYTHONS="python3.11 …"
	@$(BIN)/python tests/release/built.py $(or $(PYTHONS),$(PYTHON))

sbom: $(STAMP) ## what an installation consists of: out/sbom.json, CycloneDX
	@mkdir -p out
	$(PYTHON) -m venv --clear out/plain && out/plain/bin/python -m pip install --quiet .
	$(BIN)/python -m pip install --quiet 'cyclonedx-bom>=7'
	$(BIN)/cyclonedx-py environment --output-file out/sbom.json out/plain

docs: $(STAMP) ## the site in out/site, warnings as errors
	$(BIN)/python -m pip install --quiet --editable '.[docs]'
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

clean: ## remove everything that is made
	rm -rf $(VENV) build dist ./*.egg-info .mypy_cache .ruff_cache .pytest_cache \
	  .hypothesis .import_linter_cache .coverage out
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
