# `make demo` and `make test` are all that a newcomer needs; both install what they use.
.PHONY: setup demo test check format schema docs bench cover lock clean
.DEFAULT_GOAL := help

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
UV_VERSION := 0.13.7
export UV_PYTHON_DOWNLOADS := never
export PYTHONDONTWRITEBYTECODE :=

help:
	@grep -hE '^## ' Makefile | sed 's/^## //'

## make setup    the command at .venv/bin/sub, with every tool of the repository
setup: $(VENV)/.ready

$(VENV)/.ready: requirements/dev.txt pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "sub needs Python 3.11 or newer")'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet uv==$(UV_VERSION)
	$(BIN)/uv pip install --quiet --require-hashes -r requirements/dev.txt
	$(BIN)/uv pip install --quiet --no-deps --no-build-isolation -e .
	touch $@

## make check    ruff, mypy --strict, import-linter
check: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

## make test     everything
test: setup
	$(BIN)/pytest -n 2 --dist loadgroup

## make format   what ruff can mend
format: setup
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

## make lock     requirements/*.txt from requirements/*.in, with hashes
lock: setup
	for name in dev; do $(BIN)/uv pip compile --quiet --universal --python-version 3.11 \
	  --generate-hashes --no-header --no-emit-index-url --no-annotate \
	  requirements/$$name.in -o requirements/$$name.txt; done
