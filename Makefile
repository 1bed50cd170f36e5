# Everything a fresh machine needs is Python >= 3.11 and make.
#   make reproduce   set up, then check the paper
#   make test        set up, then check everything
PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.ready

.PHONY: help setup test test-all lint types layers pytest docs mutants reproduce bench bench-paper adversary torture package clean
help:
	@echo "make reproduce   check the paper (sets up .venv first)"
	@echo "make test        lint, types, layers, docs and tests (sets up .venv first)"
	@echo "make test-all    the same, with the slow tests, every rule where make test takes one of each kind, and make package"
	@echo "make docs        build the site into site/, links checked, warnings as errors"
	@echo "make mutants     plant errors in the source and count how many the tests catch"
	@echo "make adversary   25,000 odd inputs with a fresh seed: our own error in one sentence, or success"
	@echo "make torture     200 killed programs and 500 flipped bytes: nothing lost, no wrong number read"
	@echo "make package     build the wheel, and try it in empty environments: no extras, all, lowest versions"
	@echo "make bench       the lane engine against hand-written C and a NumPy loop, on one core"
	@echo "make bench-paper the studies of the paper against hand-written C, on one core"
	@echo "make setup       only make .venv with the package and its development tools"
	@echo "make clean       remove .venv and caches; results are kept"
	@echo
	@echo "What backs the numbers of the docs, after make setup, as .venv/bin/python -m NAME:"
	@$(PYTHON) tools/programs.py

setup: $(STAMP)

# Made anew whenever the declared or the tested versions change.
$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; v = sys.version_info; sys.exit(0 if v >= (3, 11) else f"gradient-dd must have Python 3.11 or newer. Got {v[0]}.{v[1]}. Try: make PYTHON=python3.12 setup")'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	@touch $@

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: setup
	$(BIN)/mypy

layers: setup
	$(BIN)/lint-imports

pytest: setup
	$(BIN)/pytest

# Without --quiet, which would also hide the warnings from --strict.
docs: setup
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

test: lint types layers docs pytest

test-all: lint types layers docs
	GRADIENT_DD_ALL_RULES=1 $(BIN)/pytest -m "slow or not slow"
	$(BIN)/python -m tools.package

mutants: setup
	$(BIN)/python -m tools.mutants

bench: setup
	$(BIN)/python -m benchmarks.engine

bench-paper: setup
	$(BIN)/python -m benchmarks.paper

adversary: setup
	$(BIN)/python -m tests.adversary

torture: setup
	$(BIN)/python -m tests.adversary.torture

# Needs an index of packages: each environment is empty, so that nothing of .venv is used.
package: setup
	$(BIN)/python -m tools.package

reproduce: setup
	$(BIN)/gradient-dd reproduce

clean:
	rm -rf .venv site .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis
