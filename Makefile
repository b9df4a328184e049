# make book   builds the book     make test   runs every test     make   lists the rest
SHELL := /bin/bash
.DEFAULT_GOAL := help
.PHONY: help book test lint bench lab pins clean browser screens

PYTHON ?= $(shell for p in python3.11 python3.12 python3.13 python3; do \
  command -v $$p >/dev/null 2>&1 && $$p -c 'import sys, venv; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' \
  2>/dev/null && echo $$p && break; done)
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
# One BLAS thread a process: chapters and tests run side by side, and the result does not depend on the core count.
ONE_THREAD := OMP_NUM_THREADS=1 MKL_NUM_THREADS=1 TOKENIZERS_PARALLELISM=false
# Nothing is fetched from a model or data hub while building or testing.
OFFLINE := HF_HUB_OFFLINE=1 HF_DATASETS_OFFLINE=1

help:  ## list the targets
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):[^#]*## ?/  make \1|/' | column -t -s '|'

$(STAMP): requirements.txt pyproject.toml
	@test -n "$(PYTHON)" || { echo "isonb needs Python 3.11, 3.12 or 3.13 with venv; say which: make PYTHON=/path/to/python"; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "Installing the pinned packages into $(VENV) (a few minutes the first time)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --progress-bar off -r requirements.txt
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

book: $(STAMP)  ## run every chapter and build the HTML into _build/html
	@$(ONE_THREAD) $(OFFLINE) $(BIN)/python -m isonb.pages build
	@echo "The book is in _build/html/index.html: open it in a browser. Next: 'make lab' to run chapters, 'make test' to test."

test: $(STAMP)  ## run every test (under 15 minutes on two cores)
	@$(ONE_THREAD) $(OFFLINE) $(BIN)/python -m pytest -n auto --dist worksteal -m "not browser"
	@echo "All tests passed. Next: 'make book' to build the book, 'make bench' for the speed tables."

browser: $(STAMP)  ## test the built book in headless Chromium, network off (after make book)
	@$(ONE_THREAD) $(OFFLINE) $(BIN)/python -m pytest -n auto --dist worksteal -m browser tests/book

screens: $(STAMP)  ## pictures of every page, light, dark, wide and phone, in _build/screens
	@$(OFFLINE) $(BIN)/python tests/book/screens.py

lint: $(STAMP)  ## style, types and the chapters' own lint
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/python -m isonb.pages lint

bench: $(STAMP)  ## ratios against the other libraries, correctness beside each
	@$(ONE_THREAD) $(OFFLINE) $(BIN)/python -m tests.benchmarks

lab: $(STAMP)  ## open the chapters in JupyterLab
	@$(OFFLINE) $(BIN)/python -m isonb.pages pair
	@$(OFFLINE) $(BIN)/jupyter lab book

pins:  ## write requirements.txt anew from a fresh environment
	@rm -rf _build/pins && $(PYTHON) -m venv _build/pins
	@_build/pins/bin/python -m pip install --quiet torch==2.13.0 setuptools wheel '.[dev]'
	@{ sed -n '/^#/p' requirements.txt; _build/pins/bin/python -m pip freeze --all --exclude isonb --exclude pip \
	  | sed -E -e 's/^torch==([0-9.]+).*/torch==\1/' -e 's/^(giotto-ph|torch_topological)==(.*)/\1==\2; python_version < "3.13"/'; } > requirements.new
	@mv requirements.new requirements.txt && rm -rf _build/pins build && echo "requirements.txt is new; run make test and make book."

clean:  ## remove what was built (the environment and the sources stay)
	@rm -rf _build build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
	@find book -name '*.ipynb' -delete; find . -name __pycache__ -not -path './.venv/*' -prune -exec rm -rf {} +
	@echo "Clean. 'make book' builds again; 'rm -rf $(VENV)' removes the environment too."
