# make demo       set up and run the main job
# make test       set up and run lint, types, import contracts and tests
# make test-all   the same with the slow tests
# make docs       set up and build the documentation in site/
# make clean      remove what the above made

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Two processes; the tests of a file stay together, for they share servers.
IN_PARALLEL := -n 2 --dist loadfile
PIP := $(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt

.PHONY: demo test test-all lint docs clean

demo: $(VENV)/demo-ready
	$(BIN)/countleak demo

test: lint
	$(BIN)/pytest $(IN_PARALLEL)

test-all: lint
	$(BIN)/pytest $(IN_PARALLEL) -m "slow or not slow"

lint: $(VENV)/test-ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

docs: $(VENV)/docs-ready
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/demo-ready: $(VENV)/bin/python pyproject.toml constraints.txt
	$(PIP) -e ".[live,report,server]"
	touch $@

$(VENV)/docs-ready: $(VENV)/bin/python pyproject.toml constraints.txt
	$(PIP) -e ".[docs]"
	touch $@

$(VENV)/test-ready: $(VENV)/bin/python pyproject.toml constraints.txt
	$(PIP) -e ".[dev]"
	touch $@ $(VENV)/demo-ready $(VENV)/docs-ready

clean:
	rm -rf $(VENV) adapters/.envs demo runs dist site .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
