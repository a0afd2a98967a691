# make demo · make test · make test-all · make soak · make check · make coverage · make bench
# Everything is installed into .venv from the pins in constraints.txt; Python 3.11 is all that has to be there.

PYTHON ?= python3
BIN := $(CURDIR)/.venv/bin
READY := .venv/.ready
export PATH := $(BIN):$(PATH)

INTEGRATIONS := $(CURDIR)/.venv-integrations/bin
INTEGRATIONS_READY := .venv-integrations/.ready

.PHONY: help setup integrations demo test test-all soak coverage browser check format bench pins clean

help:
	@sed -n 's/^# make/make/p' Makefile
	@echo "also: make setup, format, pins, clean"

setup: $(READY)

# Compiled bytecode halves the start of every process: Prefect and LanceDB import thousands of modules.
$(READY): pyproject.toml index/pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Pegboard needs Python 3.11 or newer; give one with make PYTHON=python3.11")'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --constraint constraints.txt uv
	UV_COMPILE_BYTECODE=1 $(BIN)/uv pip install --quiet --python $(BIN)/python --constraint constraints.txt --group dev -e './index[local,litellm,eval,serve]' -e .
	$(BIN)/python -m compileall -q catalogs flows tasks index/pegboard
	@touch $(READY)

# The agent frameworks that adapters are tested with, which do not fit into .venv.
integrations: $(INTEGRATIONS_READY)

$(INTEGRATIONS_READY): $(READY) pyproject.toml index/pyproject.toml constraints-integrations.txt
	$(PYTHON) -m venv .venv-integrations
	$(BIN)/uv pip install --quiet --python $(INTEGRATIONS)/python --constraint constraints-integrations.txt --group integrations -e ./index
	@touch $(INTEGRATIONS_READY)

demo: setup
	$(BIN)/pegboard build -c demo/pegboard.toml
	@for question in "What time is it in Tokyo right now?" "Which files did I change since the last commit?" "Get me a chocolate cake for the party" "Who won the world cup in 1998?"; do \
		printf '\n%s\n' "$$question"; \
		$(BIN)/pegboard find "$$question" --board demo/board -k 3 || exit 1; \
	done
	@printf '\nThe board is demo/board. To use the command `pegboard` in this shell: . .venv/bin/activate\n'

# The tiers (CONTRIBUTING.md): what protects behaviour, in minutes; the rest, with services and small faults; faults at full size.
test: setup
	$(BIN)/python -m pytest -n auto --dist worksteal $(PYTEST)

test-all: setup browser integrations
	$(BIN)/python -m pytest -m "slow or prefect" -n auto --dist loadgroup $(PYTEST)
	$(INTEGRATIONS)/python -m pytest --confcutdir=tests/pegboard/integrations tests/pegboard/integrations $(PYTEST)

soak: setup
	PEGBOARD_TEST_SIZE=full $(BIN)/python -m pytest -m soak $(PYTEST)

# Lines and branches by room, by the tests of the first two tiers, processes that they start included.
coverage: setup browser
	rm -rf .coverage && mkdir .coverage
	$(BIN)/coverage run -m pytest -m "" -n auto --dist loadgroup $(PYTEST)
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report --skip-covered

# The tests that look at pages want a browser; without one they are skipped, and say so. Nothing is installed for who may not.
browser:
	@if ! { command -v chromium || command -v chromium-browser || command -v google-chrome; } > /dev/null && [ "$$(id -u)" = 0 ] && command -v apt-get > /dev/null; then \
		{ apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium; } > /dev/null 2>&1 \
			|| echo "Chromium could not be installed: the tests of pages in a browser are skipped." >&2; \
	fi

check: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright
	$(BIN)/pyright -p index
	$(BIN)/lint-imports
	@echo; echo "Lines of Python by room, for information:"
	@for room in flows tasks catalogs index/pegboard benchmarks tests; do \
		printf '  %-15s %7s\n' "$$room" "$$(git ls-files -- "$$room" | grep '\.py$$' | xargs cat | wc -l)"; \
	done

format: setup
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# Time and memory; what else is measured: python -m benchmarks --help.
bench: setup
	$(BIN)/python -m benchmarks scale --tools 20000
	$(BIN)/python -m benchmarks gateway

pins: setup
	$(BIN)/uv pip compile pyproject.toml index/pyproject.toml --all-extras --group dev --python-version 3.11 --upgrade \
		--no-emit-index-url --no-header --no-annotate --no-emit-package pegboard --quiet -o constraints.txt
	$(BIN)/uv pip compile --group integrations --python-version 3.11 --upgrade \
		--no-emit-index-url --no-header --no-annotate --no-emit-package pegboard --quiet -o constraints-integrations.txt

clean:
	rm -rf .venv .venv-integrations demo/board
