# Every target with a help line; `make` alone lists them.
# PYTHON picks the interpreter, PIP_FLAGS reaches pip, THREADS bounds what the tests use.

.DEFAULT_GOAL := help
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c

PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
THREADS ?= 2
BIN := .venv/bin
PIP_INSTALL = $(BIN)/python -m pip install --quiet --disable-pip-version-check \
	--root-user-action=ignore --constraint constraints.txt $(PIP_FLAGS)
PYTEST = OMP_WAIT_POLICY=PASSIVE OMP_NUM_THREADS=$(THREADS) $(BIN)/python -m pytest -q

# A stamp tells that an extra was installed for this pyproject.toml and these constraints.
STAMPS := .venv/.stamps
METADATA := pyproject.toml constraints.txt

.PHONY: help setup demo test test-all test-gpu check fmt bench wheel clean

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-10s %s\n", $$1, $$2}' Makefile

setup: $(STAMPS)/run ## Make .venv and install ocria into it

demo: setup ## Read a PDF from examples/ with the shipped model and print its Markdown
	@$(BIN)/ocria parse examples/report.pdf

test: $(STAMPS)/test ## The fast CPU tests
	$(PYTEST)

test-all: $(STAMPS)/test ## The CPU tests with the slow ones
	$(PYTEST) -m "not gpu"

test-gpu: $(STAMPS)/test ## The tests that need a CUDA device
	$(PYTEST) -m gpu

check: $(STAMPS)/dev ## Lint, format, types and layer rules; writes nothing
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(PYTEST) tests/test_layers.py

fmt: $(STAMPS)/dev ## Format, and mend what the linter can mend
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: setup ## Speed on this machine, stage by stage (two minutes; `ocria bench` measures longer)
	$(BIN)/ocria bench --quick

wheel: $(STAMPS)/dev ## Build sdist and wheel, install the wheel in a clean environment, try it
	rm -rf dist
	$(BIN)/python -m build --outdir dist .
	$(BIN)/python tests/packaging/try_wheel.py dist constraints.txt examples/report.pdf

clean: ## Remove what the build and the tools left, .venv too
	rm -rf .venv dist build .pytest_cache .mypy_cache .ruff_cache .hypothesis

$(BIN)/python:
	@test -n "$(PYTHON)" || { echo "error: no Python >= 3.11 found; set PYTHON=/path/to/python" >&2; exit 1; }
	@echo "making .venv with $$($(PYTHON) --version)" >&2
	@$(PYTHON) -m venv .venv || { echo "error: cannot make .venv; is the venv module installed?" >&2; rm -rf .venv; exit 1; }

$(STAMPS)/run: $(METADATA) | $(BIN)/python
	@echo "installing ocria into .venv" >&2
	@$(PIP_INSTALL) --editable .
	@mkdir -p $(STAMPS) && touch $@

$(STAMPS)/test: $(METADATA) | $(BIN)/python
	@echo "installing ocria and what its tests need into .venv" >&2
	@$(PIP_INSTALL) --editable '.[test]'
	@mkdir -p $(STAMPS) && touch $(STAMPS)/run $@

$(STAMPS)/dev: $(METADATA) | $(BIN)/python
	@echo "installing ocria and the development tools into .venv" >&2
	@$(PIP_INSTALL) --editable '.[dev]'
	@mkdir -p $(STAMPS) && touch $(STAMPS)/run $(STAMPS)/test $@
