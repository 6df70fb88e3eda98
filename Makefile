# The two commands of the README are `make demo` and `make test`.
DATASET ?= data/sample/sample.jsonl
POOL ?=
PYTEST_ARGS ?=
BIN := .venv/bin

.PHONY: setup demo test slow bench lint lab clean

setup:
	@scripts/setup.sh

demo: setup
	$(BIN)/memlab notebooks "$(DATASET)" $(if $(POOL),--pool $(POOL))
	$(BIN)/memlab figures
	$(BIN)/memlab evaluate "$(DATASET)" $(if $(POOL),--pool $(POOL))
	@echo "executed notebooks: results/notebooks   figures: figures/index.html   store: .memlab/store"

test: setup
	$(BIN)/python -m pytest -n 2 --dist worksteal -m "not slow" $(PYTEST_ARGS)

slow: setup
	$(BIN)/python -m pytest -m slow $(PYTEST_ARGS)

bench: setup
	$(BIN)/python -m pytest tests/bench -o addopts="" -q --benchmark-columns=min,median,ops --benchmark-sort=name

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

lab: setup
	$(BIN)/jupyter lab notebooks

clean:
	rm -rf results .memlab build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find figures -mindepth 1 -maxdepth 1 ! -name gallery -exec rm -rf {} + 2>/dev/null || true
	find . -name __pycache__ -not -path './.venv/*' -prune -exec rm -rf {} +
