# make demo       set up and run the main job
# make test       set up and run lint, types, import contracts and tests
# make test-all   the same with the slow tests, as before a release
# make check      lint, types, contracts, and for at most 40 s the tests of what changed since BASE
# make docs       set up and build the documentation in site/
# make clean      remove what the above made

PYTHON ?= python3
# What `make check` compares with.
BASE ?= main
VENV := .venv
BIN := $(VENV)/bin
# One process more than cores, for some tests wait; one that has none left takes from the others.
IN_PARALLEL := -n 3 --dist worksteal
# Threads of a linear algebra that share cores with other tests wait for each other.
test test-all check: export OPENBLAS_NUM_THREADS = 1
# Tests start many processes, each of which would otherwise compile all of the sources again.
unexport PYTHONDONTWRITEBYTECODE
PIP := $(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt

.PHONY: demo test test-all check tests slow-tests compiled lint docs clean

demo: $(VENV)/demo-ready
	$(BIN)/countleak demo

# What Numba compiles is made once, while the other core installs; lint runs beside the tests.
test:
	$(MAKE) -j 2 $(VENV)/test-ready compiled
	$(MAKE) -j 2 lint tests

test-all:
	$(MAKE) -j 2 $(VENV)/test-ready compiled
	$(MAKE) -j 2 lint slow-tests

check: lint
	files=$$($(BIN)/python -m tests.affected $(BASE)) && \
	if [ -n "$$files" ]; then $(BIN)/pytest $(IN_PARALLEL) --within 40 $$files; \
	else echo "no test concerns what changed since $(BASE)"; fi

tests:
	$(BIN)/pytest $(IN_PARALLEL)

slow-tests:
	$(BIN)/pytest $(IN_PARALLEL) -m "slow or not slow"

compiled: $(VENV)/core-ready
	$(BIN)/python -m tests.compiled

lint: $(VENV)/test-ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# The benchmarks whose figures the README names; bench-decoders takes DATA, bench-scale takes GPU.
.PHONY: bench-solvers bench-decoders bench-budget bench-tables bench-scale bench-honesty
DATA ?= $(or $(COUNTLEAK_SHARED),../shared)/data/cohen-nissim

bench-solvers: $(VENV)/test-ready
	$(BIN)/python -m benchmarks.solvers
	$(BIN)/python -m benchmarks.solvers --sizes 1000x10000 --repeats 3

bench-decoders: $(VENV)/test-ready
	$(BIN)/python -m benchmarks.decoders --suite recorded --trials 50 --data $(DATA)

bench-budget: $(VENV)/test-ready
	$(BIN)/python -m benchmarks.budget --whole-grid

bench-tables: $(VENV)/test-ready
	$(BIN)/python -m benchmarks.tables

bench-scale: $(VENV)/test-ready
	$(BIN)/python -m benchmarks.scale $(if $(GPU),--gpu $(GPU))

bench-honesty: $(VENV)/test-ready
	$(BIN)/python -m benchmarks.honesty

docs: $(VENV)/docs-ready
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/core-ready: $(VENV)/bin/python pyproject.toml constraints.txt
	$(PIP) -e .
	touch $@

$(VENV)/demo-ready: $(VENV)/bin/python pyproject.toml constraints.txt
	$(PIP) -e ".[live,report,server]"
	touch $@

$(VENV)/docs-ready: $(VENV)/bin/python pyproject.toml constraints.txt
	$(PIP) -e ".[docs]"
	touch $@

# Of the many packages that tests need, Python compiles what is imported.
$(VENV)/test-ready: $(VENV)/core-ready
	$(PIP) --no-compile -e ".[dev]"
	touch $@ $(VENV)/demo-ready $(VENV)/docs-ready

clean:
	rm -rf $(VENV) adapters/.envs demo runs dist site .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
