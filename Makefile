# Two commands do everything from a fresh clone: `make demo` and `make test`. Each sets itself up, and no more than it
# needs: the demonstration what the package itself needs, the tests the tools of development as well.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
READY := $(VENV)/.ready
RELEASING := .venv-release/.ready
PIP := $(BIN)/python -m pip install --disable-pip-version-check --no-input

.PHONY: demo test test-browser lint audit audit-full assurance fuzz faults oldest audit-deps release bench reproduce clean diffprivlib docs

demo: $(INSTALLED)
	@$(BIN)/expost demo

test: $(READY) lint
	@$(BIN)/python -m pytest -n 2 --dist worksteal

# The page in a real browser: the Chromium or Chrome of this machine, or one that is downloaded.
test-browser: $(READY)
	@$(BIN)/pip install -q -e ".[browser]"
	@PLAYWRIGHT_BROWSERS_PATH=$(CURDIR)/$(VENV)/browsers EXPOST_CHROMIUM="$$(PLAYWRIGHT_BROWSERS_PATH=$(CURDIR)/$(VENV)/browsers $(BIN)/python tools/chromium.py)" \
		$(BIN)/python -m pytest -m browser --override-ini "addopts=-q --strict-markers --strict-config" tests/planning

lint: $(READY)
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy

audit: $(READY)
	@EXPOST_THOROUGH=1 $(BIN)/python -m pytest -n 2 -m "slow or repeats" --override-ini "addopts=-q --strict-markers --strict-config" --override-ini faulthandler_timeout=0 tests

# Attacks on what is claimed, as `expost audit` carries them out in a minute: 10,000,000 draws of each sampler and path,
# 100,000 searches; an hour on two processors.
audit-full: $(INSTALLED)
	@$(BIN)/expost audit --full --processes 2 $(OPTIONS)

# The same in a minute, and its table in docs/assurance.md (OPTIONS=--full takes two hours).
assurance: $(INSTALLED)
	@$(BIN)/python tools/assurance.py $(OPTIONS)

# Mutated releases, ledgers, schemas, tables and arguments: 20,000 seeded cases, a line for each kind and each finding.
fuzz: $(READY)
	@$(BIN)/python tools/fuzz.py

# Commands killed at every call that changes a file, full disks, clocks that go back: 500 cases in some minutes.
faults: $(READY)
	@$(BIN)/python tools/faults.py $(OPTIONS)

# The tests with the oldest versions that pyproject.toml says are enough (the newest: make test). Old packages may call
# what newer ones of others warn about.
oldest:
	@test -x .venv-oldest/bin/python || $(PYTHON) -m venv .venv-oldest
	@$(PYTHON) tools/oldest.py > .venv-oldest/constraints.txt
	@.venv-oldest/bin/python -m pip install --disable-pip-version-check -q -c .venv-oldest/constraints.txt -e ".[test]"
	@.venv-oldest/bin/python -m pytest -n 2 --dist worksteal -W ignore::DeprecationWarning tests src $(OPTIONS)

# dist/: an sdist and a wheel, built twice and compared, what the wheel brings, SHA256SUMS; then what audit-deps does.
release: $(READY) $(RELEASING)
	@.venv-release/bin/python tools/release.py

# Known vulnerabilities of all that `make test` installs; where no database answers it says so, and fails.
audit-deps: $(READY) $(RELEASING)
	@.venv-release/bin/python tools/release.py --advisories

bench: $(READY)
	@$(PIP) -q -e ".[bench]"
	@$(BIN)/python benchmarks/sampler.py
	@$(BIN)/python benchmarks/methods.py

# The paper's figures on its data sets (EXPOST_DATA says where they are); hours, or a minute with OPTIONS=--quick.
reproduce: $(READY)
	@for task in twitter twitter-q95 kdd99; do $(BIN)/python -m experiments reproduce $$task $(OPTIONS) || exit $$?; done

# Pages in build/site, made without the network; warnings are errors.
docs: $(INSTALLED)
	@$(PIP) -q -e ".[docs]"
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build
	@echo "build/site/index.html"

# diffprivlib needs an older scikit-learn, so its example runs in an environment of its own.
diffprivlib:
	@test -x .venv-diffprivlib/bin/python || $(PYTHON) -m venv .venv-diffprivlib
	@.venv-diffprivlib/bin/python -m pip install --disable-pip-version-check -q -e ".[diffprivlib]" pytest hypothesis
	@.venv-diffprivlib/bin/python -m pytest -q tests/test_examples.py -rs

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python 3.11 or newer is needed: make PYTHON=python3.11 $(MAKECMDGOALS)"; exit 1; }
	@echo "Making $(VENV)"
	@$(PYTHON) -m venv $(VENV)

# Byte code is compiled when a module is first used: the demonstration uses a small part of what is installed.
$(INSTALLED): pyproject.toml | $(BIN)/python
	@echo "Installing expost and what it needs into $(VENV) (once, about 110 MB to download)"
	@$(PIP) --no-compile -e .
	@touch $@

$(READY): pyproject.toml | $(BIN)/python
	@echo "Installing expost and the tools of development into $(VENV) (once, about 300 MB to download)"
	@$(PIP) -e ".[dev]"
	@touch $@ $(INSTALLED)

$(RELEASING): pyproject.toml
	@test -x .venv-release/bin/python || $(PYTHON) -m venv .venv-release
	@.venv-release/bin/python -m pip install --disable-pip-version-check -q -e ".[release]"
	@touch $@

clean:
	rm -rf $(VENV) .venv-diffprivlib .venv-oldest .venv-release build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
