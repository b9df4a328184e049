# make book   builds the book     make test   runs the tests     make   lists the rest
SHELL := /bin/bash
.DEFAULT_GOAL := help
.PHONY: help book models test slow lint bench bench-gpu lab edit pins clean browser screens student slides

PYTHON ?= $(shell for p in python3.11 python3.12 python3.13 python3; do \
  command -v $$p >/dev/null 2>&1 && $$p -c 'import sys, venv; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' \
  2>/dev/null && echo $$p && break; done)
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
PIP = $(BIN)/python -m pip --disable-pip-version-check
# Any Jupyter of this environment saves a chapter's notebook in its .md, too.
SERVER = $(VENV)/etc/jupyter/jupyter_server_config.d
# Every file that is installed has one of the hashes in requirements.txt. torch comes first: where a build without CUDA
# (2.x+cpu) is at hand pip takes that one, and the CUDA libraries that PyPI's build needs are left out.
HASHED = $(PIP) install --quiet --progress-bar off --require-hashes --no-deps
TORCH = $(shell sed -n 's/^torch==\([0-9.]*\).*/\1/p' requirements.txt)
TORCH_HERE = $(BIN)/python -c 'from importlib.metadata import version; print(version("torch"))' 2>/dev/null
pins_of = awk '/^[a-zA-Z]/ {wanted = $(1)} wanted' requirements.txt
# One BLAS thread a process: chapters and tests run side by side, and the result does not depend on the core count.
ONE_THREAD := OMP_NUM_THREADS=1 MKL_NUM_THREADS=1 TOKENIZERS_PARALLELISM=false
# Nothing is fetched from a model or data hub while building or testing.
OFFLINE := HF_HUB_OFFLINE=1 HF_DATASETS_OFFLINE=1

help:  ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):[^#]*## ?/  make \1|/' | column -t -s '|'

$(STAMP): requirements.txt pyproject.toml
	@test -n "$(PYTHON)" || { echo "isonb needs Python 3.11, 3.12 or 3.13 with venv; say which: make PYTHON=/path/to/python"; exit 1; }
	@$(BIN)/python -m pip --version >/dev/null 2>&1 || $(PYTHON) -m venv $(VENV)
	@echo "Installing the pinned packages into $(VENV) (a few minutes the first time)"
	@case "$$($(TORCH_HERE))" in $(TORCH)*) ;; *) rm -rf _build/torch \
	  && $(PIP) download --quiet --no-deps --dest _build/torch torch==$(TORCH) \
	  && $(HASHED) --no-index --find-links _build/torch -r <($(call pins_of,/^torch==/));; esac
	@case "$$($(TORCH_HERE))" in *+cpu) $(HASHED) -r <($(call pins_of,!/^(cuda|nvidia|triton)/));; \
	  *) $(HASHED) -r requirements.txt;; esac
	@rm -rf _build/torch
	@$(PIP) install --quiet --no-deps --no-build-isolation -e . && $(PIP) check
	@mkdir -p $(SERVER) && echo '{"ServerApp": {"jpserver_extensions": {"isonb.pages.notebooks.server": true}}}' > $(SERVER)/isonb.json
	@touch $@

book: $(STAMP)  ## run every chapter and build the HTML into _build/html
	@$(ONE_THREAD) $(OFFLINE) $(BIN)/python -m isonb.pages build
	@echo "The book is in _build/html/index.html: open it in a browser. Next: 'make lab' to run chapters, 'make test' to test."

models: $(STAMP)  ## fetch the language model smollm2 (93 MB) into the cache, for the dial on a model of one's own
	@$(BIN)/python -m isonb.lab.encoders.fetched

test: $(STAMP)  ## run the tests (under 10 minutes on two cores)
	@$(ONE_THREAD) $(OFFLINE) $(BIN)/python -m pytest -n auto --dist worksteal -m "not browser and not slow"
	@echo "All tests passed. Next: 'make book' to build the book, 'make slow' for the tests over ten seconds each."

slow: $(STAMP)  ## run the tests that take over ten seconds each: every chapter, two processes, whole sweeps
	@$(ONE_THREAD) $(OFFLINE) $(BIN)/python -m pytest -n auto --dist worksteal -m "slow and not browser" tests

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

bench-gpu: $(STAMP)  ## the same on a CUDA card
	@$(OFFLINE) $(BIN)/python -m tests.benchmarks --card

student: $(STAMP)  ## notebooks of the chapters with empty solutions, in _build/student
	@$(BIN)/python -m isonb.pages student

slides: $(STAMP)  ## slides of the pictures of each chapter, in _build/slides (after make book)
	@$(BIN)/python -m isonb.pages slides

lab: $(STAMP)  ## open copies of the chapters in JupyterLab, to play with (ARGS="--no-browser --port 8889")
	@$(ONE_THREAD) $(OFFLINE) $(BIN)/python -m isonb.pages play
	@$(ONE_THREAD) $(OFFLINE) $(BIN)/jupyter lab _build/lab/start.ipynb $(ARGS)

edit: $(STAMP)  ## open the chapters themselves: what is saved in a notebook is saved in its .md (ARGS="...")
	@$(ONE_THREAD) $(OFFLINE) $(BIN)/python -m isonb.pages pair
	@$(ONE_THREAD) $(OFFLINE) $(BIN)/jupyter lab book --ServerApp.jpserver_extensions=isonb.pages.notebooks.server=True $(ARGS)

# download.pytorch.org's builds of torch without CUDA, Python 3.11 to 3.13 on x86_64 and aarch64: PyPI doesn't list them.
TORCH_CPU = \
  6746dbcbeb526eb61330b76b41ff1b4eb848951103a892eeb080dfa2b264667b \
  84453b69508ec79902f899c5ed9495acb9e2bbe9fda5f1d5d6f19e3c3842e1a7 \
  4ca4a9394b0c771238a4f73590fdbbc4debad85ed0fa63d026ae1b085da7d6e2 \
  6f307c2c32d764ffc6ff6893b801fad6d4752f3e67966cb8abf1843427c02604 \
  3fbf9c9d1f3c10c2d59d04aca426dee9ccc6ceb32d255c61e93acc3b4f75fae6 \
  0b8f7d0423027ae8b90c7977c627f3379f325363a08224dffad9b4b2d684a83d

pins:  ## write requirements.txt anew: the newest versions, with the hashes of their files
	@rm -rf _build/pins && $(PYTHON) -m venv _build/pins && _build/pins/bin/python -m pip install --quiet uv
	@set -o pipefail; { sed -n '/^#/p' requirements.txt; echo torch==$(TORCH) | _build/pins/bin/uv pip compile --quiet \
	  --universal --python-version 3.11.5 --extra dev --generate-hashes --no-annotate --no-header --no-strip-extras \
	  -c - pyproject.toml \
	  | awk '{print} /^torch==/ {n = split("$(TORCH_CPU)", h); for (i = 1; i <= n; i++) print "    --hash=sha256:" h[i] " \\"}'; \
	  } > requirements.new
	@mv requirements.new requirements.txt && rm -rf _build/pins && echo "requirements.txt is new; run make test and make book."

clean:  ## remove what was built (the environment and the sources stay)
	@rm -rf _build build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
	@find book -name '*.ipynb' -delete; find . -name __pycache__ -not -path './.venv/*' -prune -exec rm -rf {} +
	@echo "Clean. 'make book' builds again; 'rm -rf $(VENV)' removes the environment too."
