# Three commands matter: `make demo` shows it, `make quick` checks a change in minutes, `make test` checks everything.
# Each prepares what it needs. Another Python beside: make quick PYTHON=python3.12 VENV=.venv-3.12

PYTHON ?= $(shell for p in python3.11 python3.12 python3.13 python3.14 python3; do command -v $$p >/dev/null 2>&1 && $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' && echo $$p && break; done)
VENV ?= .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
# Nothing is installed that is not in constraints.txt, by version and by hash. That needs the pip which is locked there: older ones take a
# hash of a constraint only for what is pinned where it is asked for, too, as pip is here.
PIP = sed -n '/^pip==/,/[^\\]$$/p' constraints.txt > $(1)/pip.txt && $(1)/bin/python -m pip install --quiet --require-hashes --requirement $(1)/pip.txt
INSTALL = $(BIN)/python -m pip install --quiet --require-hashes --constraint constraints.txt
# One more than the two cores CI has: real servers and processes are waited for a good part of the time.
WORKERS ?= 3
# Decision 13: a few tests that failed on the real servers are rerun once, alone. 1 is "tests failed", and nothing else.
RERUN = { test $$? -eq 1 && PYTHONPATH=$(CURDIR)/tests $(abspath $(BIN))/python -m pytest -p rerun --last-failed --last-failed-no-failures none; }
LAG = -p kubewright.testing.lag --lag-seed $(or $(SEED),1)
# Tests that run make in a project of their own are not to inherit what this one was told.
unexport VENV PYTHON
PYTEST = env -u MAKEFLAGS -u MAKELEVEL $(BIN)/pytest -n $(WORKERS) --dist loadgroup --no-loadscope-reorder
# Where the real control plane can be had (binaries given or cached, or a Go to build them with) its tests must run: KUBEWRIGHT_REAL=1 fails
# where they would be skipped. KUBEWRIGHT_REAL=0 leaves them out. Unset, they are skipped, and the end of the run says how many and why.
CACHE = $(or $(KUBEWRIGHT_CACHE),$(or $(XDG_CACHE_HOME),$(HOME)/.cache)/kubewright)
ifeq ($(KUBEWRIGHT_REAL),)
export KUBEWRIGHT_REAL := $(if $(or $(KUBEBUILDER_ASSETS),$(wildcard $(CACHE)/control-plane/*/*),$(shell command -v go)),1)
endif
# Control planes of a few minutes: their garbage is collected less often than a server's that lives for months.
export GOGC ?= 400
# The tests start some hundred processes of ours, each of which would compile the package anew.
unexport PYTHONDONTWRITEBYTECODE
# What `make nightly` tries with examples of a new seed; drawn once per run, unless said.
SEARCHED := tests/property tests/scenarios/embedded/test_random_requests.py
DRAWN := $(or $(SEED),$(shell od -An -N4 -tu4 /dev/urandom | tr -d ' '))
OPERATORS := $(patsubst %/pyproject.toml,%,$(wildcard operators/*/pyproject.toml))

.DEFAULT_GOAL := help
.PHONY: help demo quick test lint public-api unit lag nightly hostile coverage operators docs translations bench changelog dist hooks constraints binaries wheels clean

help: ## Say what can be made
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

$(STAMP): pyproject.toml constraints.txt
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer is needed; install it or set PYTHON=..."; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(call PIP,$(VENV))
	$(BIN)/python tests/requirements.py > $(VENV)/requirements.txt
	$(INSTALL) --requirement $(VENV)/requirements.txt --group build --group test
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	@touch $@

# .venv/.docs and its like: a dependency group of pyproject.toml, installed when a target first needs it.
GROUPS := bench coverage docs fuzz hooks release
$(GROUPS:%=$(VENV)/.%): $(VENV)/.%: $(STAMP)
	$(INSTALL) --group $*
	@touch $@

demo: $(STAMP) ## A tour with a reference operator on the embedded control plane; ends by itself
	$(BIN)/python demo.py

quick: lint ## Lint, and the tests that need no real control plane and little time
	KUBEWRIGHT_REAL=0 $(PYTEST) -m 'not real and not slow'

test: $(STAMP) $(VENV)/.docs ## Everything CI checks
	@$(MAKE) --no-print-directory --jobs $(WORKERS) --output-sync=target lint docs
	@$(MAKE) --no-print-directory operators
	@$(MAKE) --no-print-directory unit

lint: $(STAMP) ## Style, types, layers
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python tests/rooms.py > /dev/null
	$(BIN)/python tests/public_api.py --check

public-api: ## Refresh docs/public-api.txt after a change of the public API
	$(PYTHON) tests/public_api.py --write

# What takes minutes and a network is got ready by these two, before the tests: none of those compiles or downloads anything itself.
binaries: $(STAMP) ## Get etcd, kube-apiserver, kube-controller-manager and kubectl ready, and compile the Go operator that tests run
	@test "$(KUBEWRIGHT_REAL)" = 0 || $(BIN)/kubewright cluster binaries $(if $(KUBEWRIGHT_REAL),,--or-say-why)
	@test "$(KUBEWRIGHT_REAL)" = 0 || ! command -v go > /dev/null || $(BIN)/python -m bench.peers go

WHEELS := build/wheels
wheels: $(WHEELS)/.complete ## Download what a scaffolded project installs in a test
$(WHEELS)/.complete: $(STAMP)
	$(BIN)/python -m pip download --quiet --require-hashes --constraint constraints.txt --requirement $(VENV)/requirements.txt \
	  --group build --group lock --group test --dest $(WHEELS)
	@touch $@

unit: $(STAMP) binaries wheels ## All tests
	$(PYTEST) || $(RERUN)

lag: $(STAMP) binaries wheels ## All tests again, with watches that lag; SEED=7 for other lags
	$(PYTEST) $(LAG)
	@for each in $(OPERATORS); do (cd $$each && $(abspath $(BIN))/python -m pytest $(LAG)) || exit 1; done

hostile: $(STAMP) $(VENV)/.fuzz ## What one hostile request costs the servers: a catalogue, schemathesis, 100,000 at random; SEED=7 draws others
	nice $(BIN)/python -m tests.security.harness --seed $(DRAWN) --page $(if $(REQUESTS),--requests $(REQUESTS))

nightly: $(STAMP) $(VENV)/.fuzz ## The property tests with examples of a new seed, which is printed; SEED=7 tries that one again
	@echo "make nightly SEED=$(DRAWN)"
	KUBEWRIGHT_REAL=0 KUBEWRIGHT_SEARCH=1 $(PYTEST) --hypothesis-seed=$(DRAWN) $(SEARCHED) \
	  || { echo "Some examples fail; to try the same again: make nightly SEED=$(DRAWN)"; exit 1; }
	$(BIN)/python -m tests.security.harness --seed $(DRAWN)

coverage: $(STAMP) $(VENV)/.coverage ## Branch coverage without the real control plane; fails where a module is below the floor without a reason
	KUBEWRIGHT_REAL=0 $(PYTEST) -m 'not real' --deselect tests/scaffold/test_fresh_environment.py --cov --cov-report=
	$(BIN)/python tests/coverage_report.py

operators: $(STAMP) binaries ## The checks and tests of the reference operators, each in its own folder
	@$(MAKE) --no-print-directory --jobs $(WORKERS) --output-sync=target $(OPERATORS)

.PHONY: $(OPERATORS)
$(OPERATORS): $(STAMP)
	@echo "$@"
	cd $@ && $(abspath $(BIN))/kubewright generate --check
	cd $@ && $(abspath $(BIN))/mypy --cache-dir $(CURDIR)/.mypy_cache/$(notdir $@)
	@test -n "$(KUBEWRIGHT_REAL)" || echo "$@: SKIPPED on the real control plane: its binaries are not here and there is no Go to build them with"
	cd $@ && export KUBEWRIGHT_REAL=$(or $(KUBEWRIGHT_REAL),0) && { $(abspath $(BIN))/python -m pytest || $(RERUN); }

docs: $(VENV)/.docs ## Build the documentation into site/; fails on a broken link, and on a page that loads something from elsewhere
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	$(BIN)/python -m tests.docs.offline site
	$(BIN)/python -m tests.docs.built site

translations: $(STAMP) ## Copy code into the Chinese pages and list what is to be translated; SEEN=docs/zh/faq.md says that this page is done
	$(BIN)/python -m tests.docs.translations $(SEEN)

bench: $(STAMP) $(VENV)/.bench ## Benchmarks, as ratios in one run
	$(BIN)/python -m bench

changelog: $(VENV)/.release ## The release notes to come; VERSION=0.1.0 writes them into CHANGELOG.md and removes the fragments
	$(BIN)/towncrier build $(if $(VERSION),--version $(VERSION) --yes,--draft --version unreleased)

dist: $(VENV)/.release ## Build sdist and wheel into dist/, check them, and install the wheel where nothing else is
	rm -rf dist build/installed
	$(BIN)/python -m build --no-isolation --outdir dist
	$(BIN)/twine check --strict dist/*
	$(BIN)/python -m venv --without-pip build/installed
	$(BIN)/python -m pip --python build/installed install --quiet --require-hashes --constraint constraints.txt --requirement $(VENV)/requirements.txt
	$(BIN)/python -m pip --python build/installed install --quiet --no-deps dist/*.whl
	cd build/installed && bin/kubewright --version && bin/python -c 'import kubewright'
	rm -rf build/installed

hooks: $(VENV)/.hooks ## Check style and files before each commit, with what is in .venv
	$(BIN)/pre-commit install

constraints: ## Lock what pyproject.toml needs, with hashes; what is locked keeps its version, UPGRADE=1 takes the newest
	$(PYTHON) -m venv build/lock
	$(call PIP,build/lock)
	build/lock/bin/python -m pip install --quiet --require-hashes --constraint constraints.txt --group lock
	build/lock/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-annotate \
	  --custom-compile-command 'make constraints' $(if $(UPGRADE),--upgrade) --all-extras $(patsubst %,--group %,build lock test $(GROUPS)) \
	  --output-file constraints.txt pyproject.toml

clean: ## Remove the virtual environment and caches
	rm -rf $(VENV) site build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .coverage .coverage.*
