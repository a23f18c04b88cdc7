# Two commands do everything: `make run` and `make test`. Both set up what they need in .venv first.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin

.PHONY: run test ui check setup setup-dev chromium clean

run: setup
	@$(BIN)/memory run

test: setup-dev chromium
	@$(BIN)/python -m pytest

ui: setup
	@$(BIN)/memory ui

check: setup-dev
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@MEMORY_WORKSPACE=$$(mktemp -d) $(BIN)/dagster definitions validate -m memory_pipeline.definitions --log-level warning

setup: $(VENV)/.run

setup-dev: $(VENV)/.dev

$(VENV)/.run: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Python 3.11 or newer is needed and $(PYTHON) is older; call make with PYTHON=/path/to/python3.11." >&2; exit 1; }
	@echo "Setting up $(VENV) from constraints.txt; the first time takes a minute or two."
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e .
	@touch $@

$(VENV)/.dev: $(VENV)/.run
	@$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@

# The browser test runs where Chromium is there or can be installed; elsewhere it skips and says so.
chromium:
	@command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null || \
	  { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && \
	    apt-get update -qq >/dev/null && apt-get install -y -qq --no-install-recommends chromium >/dev/null 2>&1; } || true

clean:
	rm -rf $(VENV) test-output
