# make run · make test · make lint · make bench · make measurements · make gpu · make shots · make env · make clean
SHELL := /bin/sh
.DEFAULT_GOAL := help
.PHONY: help env system run test test-all lint bench measurements gpu shots speech clean

# The first of the supported Pythons that is installed; override with `make PYTHON=…`.
PYTHON ?= $(shell for p in python3.11 python3.12 python3.13 python3; do command -v $$p && break; done)
VENV := .venv
BIN := $(VENV)/bin
BUILD := build

help:
	@echo "make run    open the window on the demo (without a display: run it headless, leave session and picture)"
	@echo "make test   run the tests        make lint   ruff, mypy, import-linter"
	@echo "make test-all  the slow tests too (real sweeps, capacities and trainings, hostile sets, simulators)"
	@echo "make bench  side-by-side benches make shots  pictures of every view"
	@echo "make gpu    everything that the first GPU can be asked"
	@echo "make measurements  the tables of docs/measurements.md anew (what takes under two minutes)"

env: system $(VENV)/.installed

# First, since what is missing there is one line to the person and not the end of a long installation.
system:
	@test -n "$(PYTHON)" || { echo "make: no python3 found; install Python 3.11, 3.12 or 3.13." >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' || \
	  { echo "make: $(PYTHON) is $$($(PYTHON) --version), and asrscope wants 3.11, 3.12 or 3.13 (make PYTHON=…)." >&2; exit 1; }
	@.ci/system-libraries $(PYTHON)

# Reinstalled when the dependencies change; otherwise costs nothing.
$(VENV)/.installed: | system
$(VENV)/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[test,bench,ctc]'
	@rm -rf asrscope.egg-info # what building left; the environment has what it needs of it
	@$(BIN)/python -P -c 'import PySide6.QtWidgets, PySide6.QtSvg' # else it says what Qt lacks
	@touch $@

run: env
	$(BIN)/asrscope demo --folder $(BUILD)/demo

# SEED=7: other random examples, and the tests in another order.
SEED ?=
PYTEST = QT_QPA_PLATFORM=offscreen $(BIN)/python -m pytest --numprocesses 2 --dist loadfile $(if $(SEED),--hypothesis-seed=$(SEED))
test: env
	$(PYTEST)

test-all: env
	$(PYTEST) -m 'slow or not slow'

lint: env
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: env
	@mkdir -p $(BUILD)/bench
	@for name in $$($(BIN)/asrscope bench --list); do \
	  echo "bench $$name"; $(BIN)/asrscope bench $$name --json > $(BUILD)/bench/$$name.json || \
	  { [ $$? -eq 2 ] && rm $(BUILD)/bench/$$name.json; } || exit 1; done # 2: what it needs is missing, and it said so
	@echo "results in $(BUILD)/bench"

# ONLY="search dnn": these tables, however long they take. Use the machine for nothing else meanwhile.
# make gpu ONLY="cuda-search lab": these steps, again.
ONLY ?=
measurements: env
	$(BIN)/python -m tests.bench.measurements $(if $(ONLY),--only $(ONLY))

# Everything that the first GPU can be asked, in eight minutes at most; called again, it takes the steps that are left.
# Without a GPU it says so and ends with 2.
gpu: env
	@mkdir -p $(BUILD)/bench
	$(BIN)/asrscope bench device --require cuda $(if $(ONLY),--only $(ONLY)) --json > $(BUILD)/bench/device.json
	@echo "rows in $(BUILD)/bench/device"

shots: env
	$(BIN)/python -m tests.bench.shots --folder $(BUILD)/shots
	$(BIN)/python -m tests.bench.shots --folder $(BUILD)/shots-2 --scale 2 --session $(BUILD)/shots/shots.asrs
	cp $(BUILD)/shots-2/desk-end-dark-1280x800.png docs/desk-dark.png

speech: env
	$(BIN)/python -m assets.speech.build

clean:
	rm -rf $(BUILD) .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
