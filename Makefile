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

# All combinations take hours: they are run in so many parts.
PARTS ?= 16

# Site and examples have an environment of their own: they need much that nothing else does.
DOCS := .venv-docs

# Random programs: how long, and from which seed; PROGRAMS="--device intel" and the like says more.
MINUTES ?= 10
SEED ?=

.PHONY: help demo test test-full fuzz mutants lint docs examples dist clean

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## /make \1: /p' Makefile

demo: $(VENV)/demo ## multiply real matrices on the best device present; ARGS="a.mtx b.mtx.gz" adds your own
	$(IN_VENV)/clsparse demo $(ARGS)

test: lint ## lint, then the tests on PoCL and Intel's runtime, and the lanes whose tools are installed
	OCL_ICD_VENDORS="$(OCL_ICD_VENDORS)" $(IN_VENV)/pytest --numprocesses $(WORKERS) --dist worksteal $(ARGS)

# Every kernel is built as it ships. What passed of these very sources is not run again, so that a run that was cut short goes on.
test-full: export CLSPARSE_FULL := 1
test-full: lint ## the same with every combination of what is covered pairwise, in PARTS=16 that continue
	@passed=build/full/$$({ git rev-parse HEAD; git diff HEAD; echo "$(ARGS)"; } | sha256sum | cut -c 1-16)-of-$(PARTS); mkdir -p $$passed; \
	for part in $$(seq $(PARTS)); do \
	    if [ -e $$passed/$$part ]; then continue; fi; \
	    echo "part $$part of $(PARTS)"; \
	    OCL_ICD_VENDORS="$(OCL_ICD_VENDORS)" $(IN_VENV)/pytest --numprocesses $(WORKERS) --dist worksteal --part $$part/$(PARTS) $(ARGS) \
	        && touch $$passed/$$part || failed="$$failed $$part"; \
	done; \
	[ -z "$$failed" ] || { echo "these parts did not pass:$$failed"; exit 1; }

fuzz: $(VENV)/test ## random programs beside SciPy for MINUTES=10, from SEED=...; what they find is printed as a script
	OCL_ICD_VENDORS="$(OCL_ICD_VENDORS)" $(IN_VENV)/python -m tests.programs --minutes $(MINUTES) \
	    $(if $(SEED),--seed $(SEED)) --keep build/fuzz $(PROGRAMS)

mutants: $(VENV)/test ## faults planted in copies of the package, each of which random programs have to find; ARGS="SpMV SpMM" chooses
	OCL_ICD_VENDORS="$(OCL_ICD_VENDORS)" $(IN_VENV)/python -m tests.programs.mutants $(ARGS)

lint: $(VENV)/test ## ruff, mypy and the layers of modules
	$(IN_VENV)/ruff check .
	$(IN_VENV)/mypy
	$(IN_VENV)/lint-imports

docs: $(DOCS)/made ## build the site into build/site; the gallery's programs run for their pictures
	$(DOCS)/bin/sphinx-build -W --keep-going --quiet --builder html --doctree-dir build/doctrees docs build/site
	$(DOCS)/bin/python tests/built_site.py build/site
	@echo "build/site/index.html is the site"

examples: $(DOCS)/made ## run each program of examples/ and each code block of the pages; pictures go to build/examples
	$(DOCS)/bin/python tests/run_examples.py
	$(DOCS)/bin/pytest --noconftest tests/test_code_blocks.py

dist: $(VENV)/dist ## build and check the distributions, install the wheel into a fresh environment and try it there
	rm -rf build/dist
	$(IN_VENV)/python -m build --outdir build/dist .
	$(IN_VENV)/twine check --strict build/dist/*
	$(IN_VENV)/python tests/smoke.py build/dist

clean: ## remove the virtual environments, what was built and what the tools keep
	rm -rf $(VENV) $(DOCS) build .mypy_cache .pytest_cache .ruff_cache .hypothesis

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

$(VENV)/dist: $(VENV)/made
	$(PIP) '.[dist]'
	touch $@

$(DOCS)/made: pyproject.toml
	$(PYTHON) -m venv --clear $(DOCS)
	$(DOCS)/bin/pip install --quiet --disable-pip-version-check --editable '.[pocl,docs,examples]'
	@$(DOCS)/bin/clsparse devices >/dev/null 2>&1 || \
	    $(DOCS)/bin/pip install --quiet --disable-pip-version-check --editable '.[intel]'
	touch $@
