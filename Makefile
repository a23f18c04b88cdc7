# Two commands do everything: `make run` and `make test`. Both set up what they need in .venv first.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
# More than four processes of tests are no faster, and each may need 2 GB. Of all tests those that start programs wait
# a third of their time, so that two cores take three processes; each imports all tests, which takes half a minute.
PARALLEL := -n auto --maxprocesses 4 --dist worksteal
ALL_PARALLEL := -n 3 --dist worksteal --durations 40 --durations-min 10

.PHONY: run test test-all test-nightly ui check docs check-docs pictures bench bench-all setup setup-dev chromium postgres redis harnesses clean

run: setup
	@$(BIN)/memory run

# Without files of bytecode, as images of containers ask for, each process of the tests compiles all that it imports.
test test-all test-nightly: export PYTHONDONTWRITEBYTECODE =

# The fast tests; no browsers, kills, three weeks, real sessions or real coding agents.
test: setup-dev
	@$(BIN)/python -m pytest $(PARALLEL) -m "not (slow or nightly)"

# What CI runs: of kills, power cuts, Postgres, Celery and real agents a short trial each.
test-all: setup-dev chromium postgres redis harnesses
	@$(BIN)/python -m pytest $(ALL_PARALLEL) -m "not nightly"

# Every test at length, for an hour or so.
test-nightly: setup-dev chromium postgres redis harnesses
	@$(BIN)/python -m pytest $(ALL_PARALLEL) --hypothesis-profile=thorough

ui: setup
	@$(BIN)/memory ui

check: setup-dev
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-cache
	@$(MAKE) -s --no-print-directory check-docs
	@home=$$(mktemp -d) && cp dagster.yaml $$home && DAGSTER_HOME=$$home MEMORY_WORKSPACE=$$home/workspace $(BIN)/dg check defs

# Tables and lists of the documentation are made from the code: `make docs` writes them, `make check` compares them.
COG := $(BIN)/python -m cogapp --verbosity=1 -I docs -p 'import generate'
DOCS := README.md $(wildcard docs/*.md)

docs: setup-dev
	@$(COG) -r $(DOCS)

check-docs:
	@$(COG) --check --diff $(DOCS) || { echo "The documentation is not what the code says; \`make docs\` writes it anew." >&2; exit 1; }

# The pictures of README.md, from the bundled examples.
pictures: setup-dev chromium
	@PYTHONPATH=. $(BIN)/python docs/pictures.py

# Figures beside their baselines, those that take minutes in all; see benchmarks/README.md.
bench: setup-dev
	@$(BIN)/python -m benchmarks

bench-all: setup-dev
	@$(BIN)/python -m benchmarks --all

setup: $(VENV)/.run

setup-dev: $(VENV)/.dev

$(VENV)/.run: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Python 3.11 or newer is needed and $(PYTHON) is older; call make with PYTHON=/path/to/python3.11." >&2; exit 1; }
	@echo "Setting up $(VENV) from constraints.txt; the first time takes a minute or so."
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python deploy/install.py '.[all]'
	@touch $@

$(VENV)/.dev: $(VENV)/.run
	@$(BIN)/python deploy/install.py '.[dev]'
	@touch $@

# One at a time, since apt-get does not wait for another that fetches its lists.
of_debian = { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && flock /run/lock \
	    sh -c 'apt-get update -qq && apt-get install -y -qq --no-install-recommends $(1)' >/dev/null 2>&1; } || true

# The browser test runs where Chromium is there or can be installed; elsewhere it skips and says so.
chromium:
	@command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null || \
	  $(call of_debian,chromium)

# The tests with Dagster's record in Postgres run where its programs are there or can be installed; elsewhere they skip.
postgres:
	@command -v initdb >/dev/null || ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || \
	  $(call of_debian,postgresql)

# Likewise the tests of runs on several workers, with a broker on loopback. Only the program: no service is started.
redis:
	@command -v redis-server >/dev/null || \
	  $(call of_debian,redis-server)

# The tests that run real coding agents need them in .harnesses; without npm or network they skip, but fail in CI.
harnesses:
	@command -v npm >/dev/null || { echo "No npm, so the tests with real coding agents skip." >&2; exit 0; }; \
	  $(MAKE) -s --no-print-directory .harnesses/.installed || \
	  { [ -z "$$CI" ] && echo "Not installed, so the tests with real coding agents skip." >&2; }

# No scripts of packages are run but OpenCode's own, which puts the program for this machine in its place.
.harnesses/.installed: memory_pipeline_tests/real_agents/package.json
	@echo "Installing pi, Codex, OpenCode and Azurite in .harnesses, 1.2 GB; this takes a minute."
	@rm -rf .harnesses && mkdir .harnesses && cp $< .harnesses
	@cd .harnesses && npm install --ignore-scripts --no-package-lock --no-audit --no-fund --loglevel=error
	@cd .harnesses && node node_modules/opencode-ai/postinstall.mjs
	@touch $@

clean:
	rm -rf $(VENV) .harnesses test-output
