# The targets of this project; `make` lists them.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
DONE := $(VENV)/.installed
PAIR := fixtures/cases/clock-at-head-of-system

.DEFAULT_GOAL := help
.PHONY: help demo test check lint types layers docs bench format prices clean

help: ## List the targets
	@awk -F':.*## ' '/^[a-z]+:.*## / {printf "  make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(DONE): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade "pip>=25.1"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --group dev --editable .
	$(BIN)/python -m compileall -q ctxdoc
	@touch $(DONE)

demo: $(DONE) ## Set everything up, then diagnose a dead cache, replay a log, simulate strategies
	@echo '$$ ctxdoc diagnose $(PAIR)/a.json $(PAIR)/b.json'
	@$(BIN)/ctxdoc diagnose $(PAIR)/a.json $(PAIR)/b.json
	@echo '$$ ctxdoc replay fixtures/logs/session.jsonl'
	@$(BIN)/ctxdoc replay fixtures/logs/session.jsonl
	@echo '$$ ctxdoc simulate fixtures/logs/session.jsonl'
	@$(BIN)/ctxdoc simulate fixtures/logs/session.jsonl

test: $(DONE) ## Run every test
	@$(BIN)/coverage run -m pytest --numprocesses=auto
	@$(BIN)/coverage combine --quiet
	@$(BIN)/coverage report --fail-under=90 --format=total

check: lint types layers docs ## Lint, types, layers, and whether the README is in step

lint: $(DONE)
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

types: $(DONE)
	@$(BIN)/mypy

layers: $(DONE)
	@$(BIN)/lint-imports --no-cache

docs: $(DONE)
	@$(BIN)/python -m tests.readme --check

format: $(DONE) ## Format the code and bring the README's examples up to date
	@$(BIN)/ruff check --fix --quiet .
	@$(BIN)/ruff format .
	@$(BIN)/python -m tests.readme --write

bench: $(DONE) ## Measure speed and memory as ratios against a reference in the same run
	@$(BIN)/python -m tests.bench

prices: $(DONE) ## Make the price table anew from the installed genai-prices
	@$(BIN)/python -m ctxdoc.pricing.table

clean: ## Remove what the targets made
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage* build *.egg-info
