# make book   builds the book     make test   runs the tests     make   lists the rest
SHELL := /bin/bash
.DEFAULT_GOAL := help
.PHONY: help book models test slow long lint bench bench-gpu lab edit pins clean browser screens student slides

PYTHON ?= $(shell for p in python3.11 python3.12 python3.13 python3; do \
  command -v $$p >/dev/null 2>&1 && $$p -c 'import sys, venv; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' \
  2>/dev/null && echo $$p && break; done)
VENV := .venv
BIN := $(VENV)/bin
# The packages of the book, and those with what tests and lint add.
STAMP := $(VENV)/.installed
TOOLS := $(VENV)/.installed-dev
PIP = $(BIN)/python -m pip --disable-pip-version-check
# Every file that is installed has one of the hashes in the locks. torch comes first: where pip sees a build without CUDA
# (2.x+cpu) and the lock names it, that one is taken, and the CUDA libraries that PyPI's build needs are left out.
HASHED = $(PIP) install --quiet --progress-bar off --require-hashes --no-deps --no-compile
# pip compiles on one core, this on all: warnings of other people's modules are their own, and nobody imports their tests.
COMPILE = PYTHONWARNINGS=ignore $(BIN)/python -m compileall -q -j 0 -x /tests/ $(VENV)/lib >/dev/null || true
TORCH = $(shell sed -n 's/^torch==\([0-9.]*\).*/\1/p' requirements.txt)
TORCH_HERE = $(BIN)/python -c 'from importlib.metadata import version; print(version("torch"))' 2>/dev/null
pins_of = awk '/^[a-zA-Z]/ {wanted = $(1)} wanted' requirements.txt
# One BLAS thread a process: chapters and tests run side by side, and the result does not depend on the core count.
ONE_THREAD := OMP_NUM_THREADS=1 MKL_NUM_THREADS=1 TOKENIZERS_PARALLELISM=false
# Nothing is fetched from a model or data hub while building or testing.
OFFLINE := HF_HUB_OFFLINE=1 HF_DATASETS_OFFLINE=1

help:  ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):[^#]*## ?/  make \1|/' | column -t -s '|'

$(STAMP): requirements.txt pyproject.toml book/pyproject.toml
	@test -n "$(PYTHON)" || { echo "isonb needs Python 3.11, 3.12 or 3.13 with venv; say which: make PYTHON=/path/to/python"; exit 1; }
	@$(BIN)/python -m pip --version >/dev/null 2>&1 || $(PYTHON) -m venv $(VENV)
	@echo "Installing the pinned packages of the book into $(VENV) (a few minutes the first time)"
	@case "$$($(TORCH_HERE))" in $(TORCH)*) ;; *) rm -rf _build/torch \
	  && $(PIP) download --quiet --no-deps --dest _build/torch torch==$(TORCH) \
	  && { $(HASHED) --no-index --find-links _build/torch -r <($(call pins_of,/^torch==/)) 2>/dev/null \
	  || $(HASHED) -r <($(call pins_of,/^torch==/)); };; esac
	@case "$$($(TORCH_HERE))" in *+cpu) $(HASHED) -r <($(call pins_of,!/^(cuda|nvidia|triton)/));; \
	  *) $(HASHED) -r requirements.txt;; esac
	@rm -rf _build/torch
	@$(PIP) install --quiet --no-deps --no-build-isolation -e . -e book && $(PIP) check
	@$(COMPILE)
	@touch $@

$(TOOLS): $(STAMP) requirements-dev.txt
	@echo "Installing the pinned packages of the tests and of lint"
	@$(HASHED) -r requirements-dev.txt && $(PIP) check
	@$(COMPILE)
	@touch $@

book: $(STAMP)  ## run every chapter and build the HTML into _build/html (SOLUTIONS=no: without solutions, into _build/handout)
	@ISONB_SOLUTIONS=$(SOLUTIONS) $(ONE_THREAD) $(OFFLINE) $(BIN)/python -m isonb_lab.pages build
	@echo "The book is in _build/$(if $(filter no,$(SOLUTIONS)),handout,html)/index.html: open it in a browser. Next: 'make lab' to run chapters, 'make test' to test."

models: $(STAMP)  ## fetch a language model and a sentence encoder (500 MB) into the cache (MODELS=mpnet: one)
	@$(BIN)/python book/recipes/models/fetch_models.py $(MODELS)

test: $(TOOLS)  ## run the tests (under 10 minutes on two cores)
	@$(ONE_THREAD) $(OFFLINE) $(BIN)/python -m pytest -n auto --dist worksteal -m "not browser and not slow and not timed"
	@echo "All tests passed. Next: 'make book' to build the book, 'make slow' for the tests over ten seconds each."

slow: $(TOOLS)  ## run the tests that take over ten seconds each: every chapter, two processes, whole sweeps
	@$(ONE_THREAD) $(OFFLINE) $(BIN)/python -m pytest -n auto --dist worksteal -m "slow and not browser" tests

browser: $(TOOLS)  ## test the built book in headless Chromium, network off (after make book)
	@$(ONE_THREAD) $(OFFLINE) $(BIN)/python -m pytest -n auto --dist worksteal -m browser tests

long: $(TOOLS)  ## both in one run, in which no core waits for the last test of the first (after make book)
	@$(ONE_THREAD) $(OFFLINE) $(BIN)/python -m pytest -n auto --dist worksteal -m "slow or browser" tests

screens: $(TOOLS)  ## pictures of every page, light, dark, wide and phone, in _build/screens
	@$(OFFLINE) $(BIN)/python tests/book/screens.py

lint: $(TOOLS)  ## style, types and the chapters' own lint
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-cache
	@$(BIN)/python -m isonb_lab.pages lint

bench: $(TOOLS)  ## ratios against the other libraries, correctness beside each; each way that is chosen against the other
	@$(ONE_THREAD) $(OFFLINE) $(BIN)/python -m pytest -q -m timed tests
	@$(ONE_THREAD) $(OFFLINE) $(BIN)/python -m tests.benchmarks

bench-gpu: $(TOOLS)  ## the same on a CUDA card
	@$(OFFLINE) $(BIN)/python -m tests.benchmarks --card

student: $(STAMP)  ## notebooks of the chapters with empty solutions, in _build/student
	@$(BIN)/python -m isonb_lab.pages student

slides: $(STAMP)  ## slides of the two lessons, in _build/slides (after make book)
	@$(BIN)/python -m isonb_lab.pages slides

lab: $(STAMP)  ## open copies of the chapters in JupyterLab, to play with (ARGS="--no-browser --port 8889")
	@$(ONE_THREAD) $(OFFLINE) $(BIN)/python -m isonb_lab.pages play
	@$(ONE_THREAD) $(OFFLINE) $(BIN)/jupyter lab _build/lab/start.ipynb $(ARGS)

edit: $(STAMP)  ## open the chapters themselves: what is saved in a notebook is saved in its .md (ARGS="...")
	@$(BIN)/jupytext --quiet --sync $$(grep -rl --include='*.md' '^jupytext:' book)
	@$(ONE_THREAD) $(OFFLINE) $(BIN)/jupyter lab --ServerApp.root_dir=. --LabApp.default_url=/lab/tree/_build/edit $(ARGS)

pins:  ## write both requirements files anew: the newest versions, with their hashes (TORCH=2.14.1 for another torch)
	@rm -rf _build/pins && $(PYTHON) -m venv _build/pins && _build/pins/bin/python -m pip install --quiet uv
	@_build/pins/bin/python .ci/pins.py $(TORCH)
	@rm -rf _build/pins && echo "requirements.txt and requirements-dev.txt are new; run make test and make book."

clean:  ## remove what was built (the environment and the sources stay)
	@rm -rf _build build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
	@find book -name '*.ipynb' -delete; find . -name __pycache__ -not -path './.venv/*' -prune -exec rm -rf {} +
	@echo "Clean. 'make book' builds again; 'rm -rf $(VENV)' removes the environment too."
