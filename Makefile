# `make demo` and `make test` are all that a newcomer needs; both install what they use.
.PHONY: help setup demo test test-posix mutate e2e container check check-source frameworks frameworks-types format schema docs \
  ci-files bench torture cover matrix lock clean
.DEFAULT_GOAL := help

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Packages that decide: every branch of them is tested by their own tests.
PURE := canonical contracts kernel policy
PURE_FILES := src/subluminal/canonical/*,src/subluminal/contracts/*,src/subluminal/kernel/*,src/subluminal/policy/*
# Tests of processes, files and locks also run with SUB_PLAIN_POSIX=1, as if on macOS; the rest of
# their packages does in `make torture`.
POSIX_ALL := shim supervise state journal system hooks
POSIX := supervise state journal system \
  $(addprefix hooks/test_,acting.py client_process.py failures.py races.py session.py two_doors.py) \
  $(addprefix shim/test_,agents.py bugs.py control_with_ledgerd.py damaged_homes.py disks.py entry.py \
    handovers.py kill_switch.py lost_calls.py run_status.py shared_runs.py supervision.py)
POSIX_BOUND := 600
export UV_PYTHON_DOWNLOADS := never
# A machine behind an inspecting proxy has its authority in the system's store only.
export UV_SYSTEM_CERTS := true
export PYTHONDONTWRITEBYTECODE :=

help:
	@grep -hE '^## ' Makefile | sed 's/^## //'

## make setup    the command at .venv/bin/sub, with every tool of the repository
setup: $(VENV)/.ready

$(VENV)/.ready: requirements/bootstrap.txt requirements/dev.txt pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "sub needs Python 3.11 or newer")'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/bootstrap.txt
	$(BIN)/uv pip install --quiet --python $(BIN)/python --require-hashes -r requirements/dev.txt
	$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation -e .
	sh tools/setup_system.sh
	touch $@

## make demo     the whole loop in a minute: a server, an agent, a policy
demo: setup
	$(BIN)/sub demo

## make check    ruff, mypy --strict, import-linter
check: setup
	$(MAKE) -j2 check-source frameworks-types

check-source: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

## make test     everything
test: cover frameworks
	$(BIN)/pytest -n 2 --dist loadgroup --ignore=tests/e2e --ignore=tests/container $(PURE:%=--ignore=tests/%)
	$(MAKE) test-posix
	$(BIN)/python -m tools.mutate --sample 8 --jobs 2

## make test-posix  the tests that touch the system, without the calls that only Linux has
test-posix: setup
	SUB_PLAIN_POSIX=1 timeout $(POSIX_BOUND) $(BIN)/pytest -n 2 --dist loadgroup $(POSIX:%=tests/%)

## make mutate   breaks the product once for every requirement; its tests must notice (minutes)
mutate: setup
	$(BIN)/python -m tools.mutate

## make e2e      the real clients, headless, against a model of our own (installs them)
e2e: setup
	$(BIN)/pytest -n 2 tests/e2e

## make container  the image of ci/Containerfile, built and run (installs a builder, as root)
container: setup
	sh tools/setup_system.sh container
	if command -v buildah >/dev/null && command -v mmdebstrap >/dev/null && [ "$$(id -u)" -eq 0 ]; then \
	  $(BIN)/pytest tests/container; else echo "no builder is at hand"; fi

## make cover    the tests of the deciding packages, which must reach every branch
cover: setup
	$(BIN)/coverage erase
	$(BIN)/coverage run -m pytest -n 2 $(PURE:%=tests/%)
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report --fail-under=100 --include='$(PURE_FILES)'

## make matrix   make test on every supported Python that is on the PATH
matrix:
	@for version in 3.11 3.12 3.13; do \
	  if python$$version -c pass 2>/dev/null; then \
	    $(MAKE) VENV=.venv-$$version PYTHON=python$$version test || exit 1; \
	  else echo "python$$version is not here"; fi; done

## make bench    ratios against their bars; NAME=args_hash for one
bench: setup
	$(BIN)/python -m bench $(NAME)

## make torture  kill -9 at random points and a hundred runs at once, at full length (minutes)
torture: setup
	TORTURE=1 $(BIN)/pytest tests/ledger/test_torture.py tests/torture \
	  tests/adapters/test_payloads.py tests/sdk/test_processes.py
	TORTURE=1 $(BIN)/pytest -s tests/load
	DIFFERENTIAL_EXAMPLES=4000 $(BIN)/pytest -n 2 tests/differential
	TORTURE=1 $(BIN)/pytest -n 2 tests/replay/test_own_runs.py
	$(MAKE) test-posix POSIX='$(POSIX_ALL)' POSIX_BOUND=1800

## make schema   schema/*.json from the contracts
schema: setup
	$(BIN)/python -m tools.generated schema

## make docs     docs/reference from the code
docs: setup
	$(BIN)/python -m tools.generated docs

## make ci-files  GitLab's template from ci/sub-ci.sh
ci-files: setup
	$(BIN)/python -m tools.generated ci-files

## make format   what ruff can mend
format: setup
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

## make frameworks-types   mypy --strict over integrations and examples, with the types of the frameworks
frameworks-types: frameworks
	$(BIN)/mypy --config-file examples/agents/mypy.ini --python-executable .work/realservers/frameworks/bin/python \
	  --cache-dir .mypy_cache/frameworks src/subluminal/integrations examples/agents/with_*.py

# Installed here, because a test would count the time against its own bound.
frameworks: setup
	$(BIN)/python -m tools.realservers frameworks mcp1

## make lock     requirements/*.txt from requirements/*.in, with hashes
lock: setup
	for name in bootstrap dev container container-build mcp1 mcp2 frameworks; do $(BIN)/uv pip compile --quiet --universal --python-version 3.11 \
	  --generate-hashes --no-header --no-emit-index-url --no-annotate \
	  requirements/$$name.in -o requirements/$$name.txt; done

## make clean    what make setup made
clean:
	rm -rf $(VENV) .venv-3.* .work .coverage* .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
