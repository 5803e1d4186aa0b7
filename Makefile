# One task file for people and for CI. On a fresh machine `make demo` and `make test`
# need nothing before them: they make .venv and install everything themselves.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed

.PHONY: help setup system demo test quick lint map bench docs pictures clean

help:  ## list the targets
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 10

$(STAMP): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
	  || { echo "dpregions needs Python 3.11 or later: make PYTHON=/path/to/python3.11 $(MAKECMDGOALS)"; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
	  if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	    apt-get update -qq && apt-get install -y -qq python3-venv; \
	  else echo "Python's venv module is missing: install it (Debian: apt-get install python3-venv)"; exit 1; fi; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q --disable-pip-version-check --upgrade "pip>=25.1"
	$(BIN)/python -m pip install -q --disable-pip-version-check -e ".[all]" --group dev
	@touch $@

setup: $(STAMP)  ## make .venv and install dpregions with everything for development

# PostgreSQL is for tests alone: they start a server of their own and stop it. So the package is
# told to start none, unless it was there before and its owner has decided.
CLUSTERS := /etc/postgresql-common/createcluster.conf
system:  ## PostgreSQL with PostGIS, Java for Spark, chromium, for the tests: installed where root may
	@ls /usr/share/postgresql/*/extension/postgis.control >/dev/null 2>&1 || { \
	  if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	    echo "installing PostgreSQL with PostGIS for the tests"; \
	    export DEBIAN_FRONTEND=noninteractive; \
	    { apt-get update -qq \
	      && { [ -e $(CLUSTERS) ] || { apt-get install -y -qq --no-install-recommends postgresql-common \
	             && echo "create_main_cluster = false" >> $(CLUSTERS); }; } \
	      && apt-get install -y -qq --no-install-recommends postgresql postgresql-postgis; \
	    } >/dev/null 2>&1 \
	      || echo "PostgreSQL with PostGIS could not be installed: its tests are skipped. To see why:" \
	              "apt-get update && apt-get install postgresql postgresql-postgis"; \
	  else echo "tests of PostGIS are skipped: as root, apt-get install postgresql postgresql-postgis"; fi; }
	@command -v java >/dev/null 2>&1 || { \
	  if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	    echo "installing Java for the tests of Spark"; \
	    { apt-get update -qq \
	      && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
	           default-jre-headless; \
	    } >/dev/null 2>&1 \
	      || echo "Java could not be installed: tests of Spark are skipped. To see why:" \
	              "apt-get update && apt-get install default-jre-headless"; \
	  else echo "tests of Spark are skipped: as root, apt-get install default-jre-headless"; fi; }
	@command -v chromium >/dev/null 2>&1 || { \
	  if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	    echo "installing chromium for the tests of the explorer"; \
	    { apt-get update -qq \
	      && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
	           chromium fonts-dejavu-core; \
	    } >/dev/null 2>&1 \
	      || echo "chromium could not be installed: tests of the explorer are skipped. To see why:" \
	              "apt-get update && apt-get install chromium"; \
	  else echo "tests of the explorer are skipped: as root, apt-get install chromium"; fi; }

demo: $(STAMP)  ## a synthetic city, its exact histogram, a few queries, a picture
	$(BIN)/dpregions demo --out demo_output

lint: $(STAMP)  ## ruff (lint and format), mypy, and who may import whom
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

map: $(STAMP)  ## draw who imports whom from the code, list the names that cross, refuse circles
	$(BIN)/python -m docs.pictures.house

test: lint system  ## everything: lint, all tests, the documentation's code blocks
	$(BIN)/python -m pytest -n 2 --dist loadfile

quick: $(STAMP)  ## the core tests only
	$(BIN)/python -m pytest -n 2 --dist loadfile -m "not slow and not docs"

bench: $(STAMP)  ## speed, as ratios to named peers in the same run
	$(BIN)/python -m benchmarks

docs: $(STAMP)  ## the documentation as a static site in site/
	$(BIN)/mkdocs build --strict

pictures: $(STAMP)  ## the pictures of the documentation, drawn again in docs/images
	$(BIN)/python -m docs.pictures

clean:  ## remove what the targets above made
	rm -rf $(VENV) site demo_output bench_output .pytest_cache .mypy_cache .ruff_cache .hypothesis
