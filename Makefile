# Two commands on a machine that has Python 3.11, pip and make: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
INSTALL := $(PIP) --constraint constraints.txt
DEV := --editable ".[dev,text,rl,service,ray,export]" --editable ./benchmarks

.PHONY: demo serve test check reference bench fuzz hashes browser postgres clean

demo: $(VENV)/.runtime
	$(BIN)/offmap demo

# The review page on handwritten digits; the world is kept in digits.world.
serve: $(VENV)/.service
	$(BIN)/offmap serve --demo

test: $(VENV)/.dev
	$(BIN)/python -m pytest --numprocesses auto --dist loadfile

check: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# After a change of docstrings: writes docs/reference, which a test compares with them.
reference: $(VENV)/.dev
	$(BIN)/python docs/write_reference.py

# `make bench` lists the tables and figures; `make bench TABLE=open-intents`, or several names in quotes, runs them.
bench: $(VENV)/.dev
	$(BIN)/python -m offmap_bench $(TABLE)

# Hours of damaged model files and odd inputs; `make fuzz FILES=2000 INPUTS=2000 SEED=7` is a shorter run.
FILES ?= 20000
INPUTS ?= 20000
SEED ?= 0
fuzz: $(VENV)/.dev
	$(BIN)/python -m tests.fuzz.campaign --files $(FILES) --inputs $(INPUTS) --seed $(SEED)

# What tests of the review page and of the database need, from Debian's packages, where it is missing. Without it they skip.
APT := $(if $(filter 0,$(shell id -u)),,sudo )apt-get
browser:
	command -v chromium || command -v chromium-browser || command -v google-chrome || \
		{ $(APT) update && $(APT) install --yes --no-install-recommends chromium; }

postgres:
	command -v initdb || ls /usr/lib/postgresql/*/bin/initdb || \
		{ $(APT) update && $(APT) install --yes --no-install-recommends postgresql; }

clean:
	rm -rf $(VENV) build *.egg-info src/*.egg-info benchmarks/build benchmarks/src/*.egg-info

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

# torch goes first and alone: its pinned wheel then satisfies every later range, and nothing pulls another build.
$(VENV)/.torch: constraints.txt | $(BIN)/python
	$(INSTALL) torch
	touch $@

$(VENV)/.runtime: pyproject.toml $(VENV)/.torch
	$(INSTALL) --editable .
	touch $@

$(VENV)/.service: pyproject.toml $(VENV)/.torch
	$(INSTALL) --editable ".[service]"
	touch $@ $(VENV)/.runtime

# CI sets HASHES=1: then only files whose hash is in .ci/hashes.txt are installed (Linux, x86-64, Python 3.11).
ifdef HASHES
$(VENV)/.dev: pyproject.toml benchmarks/pyproject.toml .ci/hashes.txt | $(BIN)/python
	$(PIP) --require-hashes --no-deps --requirement .ci/hashes.txt
	$(PIP) --no-deps --no-build-isolation --editable . --editable ./benchmarks
	touch $(VENV)/.torch $(VENV)/.runtime $@
else
$(VENV)/.dev: pyproject.toml benchmarks/pyproject.toml $(VENV)/.torch
	$(INSTALL) $(DEV)
	touch $@ $(VENV)/.runtime
endif

# After a change of constraints.txt or of dependencies.
hashes: | $(BIN)/python
	$(INSTALL) --dry-run --ignore-installed --report - $(DEV) | $(BIN)/python .ci/hashes.py
