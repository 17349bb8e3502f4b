# Two commands matter: `make demo` shows it, `make test` checks it. Both prepare what they need.

PYTHON ?= $(shell for p in python3.11 python3.12 python3.13 python3.14 python3; do command -v $$p >/dev/null 2>&1 && $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' && echo $$p && break; done)
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
# One more than the two cores CI has: real servers and processes are waited for a good part of the time.
WORKERS ?= 3
SEED ?= 1
# Decision 13: a few tests that failed on the real servers are rerun once, alone. 1 is "tests failed", and nothing else.
RERUN = { test $$? -eq 1 && PYTHONPATH=$(CURDIR)/tests $(CURDIR)/$(BIN)/python -m pytest -p rerun --last-failed --last-failed-no-failures none; }
LAG = -p kubewright.testing.lag --lag-seed $(SEED)
# Control planes of a few minutes: their garbage is collected less often than a server's that lives for months.
export GOGC ?= 400
# The tests start some hundred processes of ours, each of which would compile the package anew.
unexport PYTHONDONTWRITEBYTECODE
OPERATORS := $(patsubst %/pyproject.toml,%,$(wildcard operators/*/pyproject.toml))

.DEFAULT_GOAL := help
.PHONY: help demo test lint unit lag operators docs bench constraints binaries clean

help: ## Say what can be made
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

$(STAMP): pyproject.toml constraints.txt
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer is needed; install it or set PYTHON=..."; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[all]' --group test
	@touch $@

$(VENV)/.bench: $(STAMP)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --group bench
	@touch $@

$(VENV)/.docs: $(STAMP)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --group docs
	@touch $@

demo: $(STAMP) ## A tour with a reference operator on the embedded control plane; ends by itself
	$(BIN)/python demo.py

test: $(STAMP) $(VENV)/.docs ## Everything CI checks
	@$(MAKE) --no-print-directory --jobs $(WORKERS) --output-sync=target lint docs
	@$(MAKE) --no-print-directory unit
	@$(MAKE) --no-print-directory operators

lint: $(STAMP) ## Style, types, layers
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

binaries: $(STAMP) ## Get etcd, kube-apiserver, kube-controller-manager and kubectl ready
	@$(BIN)/kubewright cluster binaries --or-say-why

unit: $(STAMP) binaries ## All tests
	$(BIN)/pytest -n $(WORKERS) --dist loadgroup --no-loadscope-reorder || $(RERUN)

lag: $(STAMP) binaries ## All tests again, with watches that lag; SEED=7 for other lags
	$(BIN)/pytest $(LAG) -n $(WORKERS) --dist loadgroup --no-loadscope-reorder
	@for each in $(OPERATORS); do (cd $$each && $(CURDIR)/$(BIN)/python -m pytest $(LAG)) || exit 1; done

operators: $(STAMP) binaries ## The checks and tests of the reference operators, each in its own folder
	@$(MAKE) --no-print-directory --jobs $(WORKERS) --output-sync=target $(OPERATORS)

.PHONY: $(OPERATORS)
$(OPERATORS): $(STAMP)
	@echo "$@"
	cd $@ && $(CURDIR)/$(BIN)/kubewright generate --check
	cd $@ && $(CURDIR)/$(BIN)/mypy --cache-dir $(CURDIR)/.mypy_cache/$(notdir $@)
	cd $@ && { $(CURDIR)/$(BIN)/python -m pytest || $(RERUN); }

docs: $(VENV)/.docs ## Build the documentation into site/; fails on a broken link
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

bench: $(STAMP) $(VENV)/.bench ## Benchmarks, as ratios in one run
	$(BIN)/python -m bench

constraints: $(STAMP) $(VENV)/.bench $(VENV)/.docs ## Pin what is installed now
	@{ echo "# Versions the tests ran with. Upper bounds for development, not for users; refresh with: make constraints"; \
	  $(BIN)/python -m pip freeze --exclude-editable; } > constraints.txt

clean: ## Remove the virtual environment and caches
	rm -rf $(VENV) site .mypy_cache .ruff_cache .pytest_cache .hypothesis
