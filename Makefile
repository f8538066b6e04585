# Everything runs in .venv, which is made and filled on first use and again when a lock file has changed.

PYTHON ?= python3
# one more process than processors: some tests wait for other processes, or for a time limit
PARALLEL ?= $(shell echo $$(( $$(nproc 2> /dev/null || echo 2) + 1 )))
ARGS ?=
M ?=

BIN := .venv/bin
RUN := .venv/.installed-run
DEV := .venv/.installed-dev
PIP := $(BIN)/python -m pip --disable-pip-version-check --no-input --quiet
UV := .cache/uv/bin/uv
COMPILE := $(UV) pip compile --quiet --universal --no-strip-extras --python-version 3.11 --generate-hashes --no-header
# a worker runs whole files, in the order of tests/conftest.py
PYTEST := $(BIN)/python -m pytest -n $(PARALLEL) --dist loadfile --no-loadscope-reorder

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help install serve worker test check coverage format lint types imports migrate migration lock bench bench-quick bench-data bench-peers nightly screenshots security soak wheel clean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

install: $(RUN) ## create .venv with the service and its locked dependencies

serve: $(RUN) ## run the whole service; make serve ARGS="--host 0.0.0.0 --port 9000"
	@exec $(BIN)/project-service serve $(ARGS)

worker: $(RUN) ## run one more worker
	@exec $(BIN)/project-service worker $(ARGS)

test: $(DEV) ## run all tests; make test ARGS="-k variables"
	$(PYTEST) $(ARGS)

check: $(DEV) ## run all checks of the build: format, lint, types, imports, tests
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(PYTEST) --durations=20 $(ARGS)

coverage: $(DEV) ## run all tests and measure branch coverage, 95 % at least; takes twice as long
	$(PYTEST) --cov --cov-branch $(ARGS)

format: $(DEV) ## format the code
	$(BIN)/ruff check --fix-only --quiet .
	$(BIN)/ruff format .

lint: $(DEV) ## check format and lint rules
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: $(DEV) ## check the types
	$(BIN)/mypy

imports: $(DEV) ## check that packages import only from those below them
	$(BIN)/lint-imports

migrate: $(RUN) ## upgrade the database
	$(BIN)/project-service db upgrade

migration: $(DEV) ## generate a migration from the models; make migration M="what it does"
	@test -n "$(M)" || { echo 'say what it does: make migration M="add a colour to labels"' >&2; exit 2; }
	$(BIN)/project-service db revision --message "$(M)"

lock: $(UV) ## resolve the versions of all dependencies; ARGS=--upgrade for the newest
	$(COMPILE) --extra dev $(ARGS) --output-file requirements-dev.lock pyproject.toml
	cp requirements-dev.lock requirements.lock
	$(COMPILE) --output-file requirements.lock pyproject.toml

bench: $(DEV) ## run the benchmarks on both databases; ARGS=--all for more
	$(BIN)/python -m benchmarks $(ARGS)

bench-quick: $(DEV) ## run the main benchmarks on SQLite, in two minutes
	$(BIN)/python -m benchmarks --quick $(ARGS)

bench-data: $(DEV) ## create the data of the benchmarks in .cache/bench
	$(BIN)/python -m benchmarks.data $(ARGS)

bench-peers: $(DEV) ## compare the ingestion of alerts with Alerta, which is installed into .cache/alerta
	$(BIN)/python -m benchmarks.peers $(ARGS)

nightly: $(DEV) ## run every test on both databases with branch coverage, long forms included
	$(PYTEST) --cov --cov-branch --both-databases --timeout 3600 -m "not soak" $(ARGS)

screenshots: $(DEV) ## update the screenshots of the documentation
	$(BIN)/python -m scripts.screenshots

security: $(DEV) ## run bandit, semgrep and pip-audit; a part of nightly
	$(BIN)/python -m pytest --timeout 3600 -m nightly tests/security/test_scanners.py $(ARGS)

soak: $(DEV) ## run half an hour of load, and check memory and open files
	$(BIN)/python -m pytest --timeout 7200 -m soak $(ARGS)

wheel: $(RUN) ## build the wheel and the constraints for its dependencies in dist/
	rm -rf dist
	$(PIP) wheel --no-deps --wheel-dir dist .
	sed -nE 's/^([a-z0-9._-]+)(\[[^]]*\])?(==[^\\]*[^ \\]).*/\1\3/p' requirements.lock > dist/constraints.txt

clean: ## remove what was installed and cached; the data directory stays
	rm -rf .venv .cache dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .coverage .coverage.* htmlcov
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

.venv/bin/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed: make PYTHON=python3.11 …")'
	$(PYTHON) -m venv .venv

$(RUN): requirements.lock pyproject.toml | .venv/bin/python
	$(PIP) install --require-hashes -r requirements.lock
	$(PIP) install --no-deps -e .
	@touch $@

# The developers' lock holds everything of the other one.
$(DEV): requirements-dev.lock requirements.lock pyproject.toml | .venv/bin/python
	$(PIP) install --require-hashes -r requirements-dev.lock
	$(PIP) install --no-deps -e .
	@touch $(RUN) $@

$(UV):
	$(PYTHON) -m venv .cache/uv
	.cache/uv/bin/python -m pip --disable-pip-version-check --no-input --quiet install uv
