# All tasks of the project; `make` alone lists them. Paths are relative, so that the folder's path
# may contain spaces.
PORT ?= 3000
PYTHON ?=
ARGS ?=

VENV := .venv/bin/python
PYTEST := $(VENV) -m pytest --numprocesses 3 --dist worksteal
STAMP := .venv/installed
BROWSER_STAMP := .venv/browser-installed
DAGSTER_FILE := .dagster_home/dagster.yaml

# These would let Python import other modules, or another Spark, than the locked ones.
unexport PYTHONPATH PYTHONHOME SPARK_HOME
# Without compiled files every process, Spark's workers too, would compile all packages again.
unexport PYTHONDONTWRITEBYTECODE
export GX_ANALYTICS_ENABLED := false

.DEFAULT_GOAL := help
.PHONY: help install demo ui test test-unit test-long browser conformance bench check format lock clean distclean
.PHONY: java chromium

help: ## List these commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-11s %s\n", $$1, $$2 }' Makefile

install: java $(STAMP) $(DAGSTER_FILE) ## Install every locked package into .venv

demo: java $(STAMP) $(DAGSTER_FILE) ## Run the whole pipeline on a year of real flights
	@DAGSTER_HOME="$(CURDIR)/.dagster_home" $(VENV) -m demo

ui: java $(STAMP) $(DAGSTER_FILE) ## Start the Dagster UI on this machine, port PORT (3000)
	@tools/require.sh free_port $(PORT)
	@DAGSTER_HOME="$(CURDIR)/.dagster_home" exec $(VENV) -m tools.ui $(PORT)

test: java $(STAMP) ## Run a test of every rule, or the tests that ARGS selects (pytest)
	@$(PYTEST) $(or $(ARGS),-m 'not long')

test-unit: $(STAMP) ## Run the tests that need no Spark, in minutes; ARGS go to pytest
	@$(PYTEST) -m 'not spark and not long' tests/unit $(ARGS)

test-long: java $(STAMP) ## Run the slow tests, which `make test` leaves out
	@$(PYTEST) -m long $(ARGS)

browser: java chromium $(STAMP) $(BROWSER_STAMP) ## Test the Dagster UI in a real browser; ARGS go to pytest
	@$(VENV) -m pytest tests/browser $(ARGS)

conformance: java $(STAMP) ## Compare results with those of real engines (golden cases)
	@mkdir -p .cache
	@$(VENV) -m tests.conformance tests/golden/contract/*.jsonl \
		tests/golden/kafka/*.jsonl tests/golden/flink/group_time.jsonl \
		tests/golden/flink/group_count.jsonl \
		tests/golden/flink/over_rows.jsonl tests/golden/flink/following_rows.jsonl \
		tests/golden/flink/grouped_rows.jsonl \
		tests/golden/flink/firings.jsonl \
		$(foreach file,$(wildcard tests/golden/contract/*.jsonl),--agreed-with $(file)) \
		2> .cache/conformance.log || { tail -n 3 .cache/conformance.log >&2; exit 1; }

bench: java $(STAMP) ## Compare the speed with other engines (an hour or more); ARGS: --help
	@mkdir -p .cache
	@$(VENV) -m benchmarks $(ARGS) 2> .cache/bench.log || { tail -n 3 .cache/bench.log >&2; exit 1; }

check: $(STAMP) ## Check lint rules, format, types and the order of packages
	@$(VENV) -m ruff check .
	@$(VENV) -m ruff format --check .
	@$(VENV) -m mypy
	@.venv/bin/lint-imports --no-logo --cache-dir .cache/import-linter

format: $(STAMP) ## Format the code, and apply the fixes of the linter
	@$(VENV) -m ruff check --fix-only --quiet .
	@$(VENV) -m ruff format .

lock: $(STAMP) ## Update the lock files from pyproject.toml
	@$(VENV) -m venv .cache/uv
	@.cache/uv/bin/python -m pip install --quiet --disable-pip-version-check uv
	@.cache/uv/bin/uv pip compile pyproject.toml --quiet --upgrade \
		--extra dagster --extra demo --extra kafka --group dev \
		--python-version 3.11 --no-emit-index-url --generate-hashes --no-annotate \
		--no-header --strip-extras --output-file requirements.lock
	@.cache/uv/bin/uv pip compile --group browser --quiet --upgrade \
		--python-version 3.11 --no-emit-index-url --generate-hashes --no-annotate \
		--no-header --output-file tests/browser/requirements.lock

clean: ## Remove the demo's data, tables, run history and caches; .venv stays
	@rm -rf data warehouse .dagster_home .cache spark-warehouse metastore_db derby.log \
		dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
	@find . -name __pycache__ -not -path './.venv/*' -prune -exec rm -rf {} +

distclean: clean ## Remove all that clean removes, and .venv
	@rm -rf .venv

java:
	@tools/require.sh java

chromium:
	@tools/require.sh browser >/dev/null

$(STAMP): requirements.lock pyproject.toml
	@PYTHON='$(PYTHON)' tools/install.sh

$(BROWSER_STAMP): tests/browser/requirements.lock $(STAMP)
	@$(VENV) -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes \
		-r tests/browser/requirements.lock
	@touch $@

$(DAGSTER_FILE): windows_pipeline/dagster/dagster.yaml
	@mkdir -p .dagster_home
	@cp windows_pipeline/dagster/dagster.yaml $@
