# Everything here needs Python 3.10 or later and make; each target makes the virtual environment that it needs, once.

PYTHON ?= python3
VENV := .venv
IN_VENV := $(VENV)/bin
PIP := $(IN_VENV)/pip install --quiet --disable-pip-version-check --editable

# Tests see the runtimes that pip installs, and the lanes choose their own: set OCL_ICD_VENDORS to test on other platforms
# (a folder of .icd files, with a trailing slash).
OCL_ICD_VENDORS ?= $(CURDIR)/$(VENV)/icd/

# Compilers take most of the tests' time, and use one core each.
WORKERS ?= 2

.PHONY: help demo test test-full lint clean

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## /make \1: /p' Makefile

demo: $(VENV)/demo ## multiply real matrices on the best device present; ARGS="a.mtx b.mtx.gz" adds your own
	$(IN_VENV)/clsparse demo $(ARGS)

test: lint ## lint, then the tests on PoCL and Intel's runtime, and the lanes whose tools are installed
	OCL_ICD_VENDORS="$(OCL_ICD_VENDORS)" $(IN_VENV)/pytest --numprocesses $(WORKERS) --dist worksteal $(ARGS)

test-full: export CLSPARSE_FULL := 1
test-full: test ## the same with every combination of what is covered pairwise

lint: $(VENV)/test ## ruff, mypy and the layers of modules
	$(IN_VENV)/ruff check .
	$(IN_VENV)/mypy
	$(IN_VENV)/lint-imports

clean: ## remove the virtual environment and what the tools keep
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis

$(VENV)/made: pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10) and "Python 3.10 or later is needed")'
	$(PYTHON) -m venv --clear $(VENV)
	touch $@

# PyPI's PoCL builds nothing for newer processors (quirk 1). Intel's runtime takes all of x86-64, and is larger.
$(VENV)/demo: $(VENV)/made
	$(PIP) '.[pocl]'
	@$(IN_VENV)/clsparse devices >/dev/null 2>&1 || { \
	    echo "No device can be used with PyPI's PoCL: installing Intel's runtime for CPUs, too"; $(PIP) '.[intel]'; }
	touch $@

$(VENV)/test: $(VENV)/made tests/lanes/runtimes.py
	$(PIP) '.[pocl,intel,test,bench,tune]'
	$(IN_VENV)/python tests/lanes/runtimes.py $(VENV)/icd
	touch $@
