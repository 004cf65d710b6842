# Two commands do everything from a fresh clone: `make demo` and `make test`. Each sets itself up.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: demo test test-browser lint audit bench clean

demo: $(READY)
	@$(BIN)/expost demo

test: $(READY) lint
	@$(BIN)/python -m pytest -n 2

# The page in a real browser: the Chromium or Chrome of this machine, or one that is downloaded.
test-browser: $(READY)
	@$(BIN)/pip install -q -e ".[browser]"
	@PLAYWRIGHT_BROWSERS_PATH=$(CURDIR)/$(VENV)/browsers EXPOST_CHROMIUM="$$(PLAYWRIGHT_BROWSERS_PATH=$(CURDIR)/$(VENV)/browsers $(BIN)/python tools/chromium.py)" \
		$(BIN)/python -m pytest -m browser --override-ini "addopts=-q --strict-markers --strict-config" tests/exploring

lint: $(READY)
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy

audit: $(READY)
	@$(BIN)/python -m pytest -n 2 -m slow --override-ini "addopts=-q --strict-markers --strict-config" tests

bench: $(READY)
	@$(BIN)/pip install -q -e ".[bench]"
	@$(BIN)/python benchmarks/sampler.py
	@$(BIN)/python benchmarks/methods.py

$(READY): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python 3.11 or newer is needed: make PYTHON=python3.11 $(MAKECMDGOALS)"; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install -qq --disable-pip-version-check -e ".[dev]"
	@touch $@

clean:
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
