# The two commands of the README are `make demo` and `make test`.
DATASET ?= data/sample/sample.jsonl
POOL ?=
# Anything: notebooks run again though nothing of them changed.
AGAIN ?=
PYTEST_ARGS ?=
# What `make bench` measures on: the sample where the file is not there.
LOCOMO ?= $(or $(wildcard ../shared/data/locomo/locomo_dev.json),data/sample/sample.jsonl)
BENCH_ARGS ?=
BIN := .venv/bin
TIMED := @scripts/timed
MEMLAB = $(BIN)/memlab $(1) "$(DATASET)" $(if $(POOL),--pool $(POOL))
# A notebook takes up to 2 GB.
JOBS ?= $(shell awk '/MemAvailable/ {n = int($$2 / 3e6)} END {print (n < 1 ? 1 : (n > 2 ? 2 : n))}' /proc/meminfo 2>/dev/null || echo 1)
# Else every process compiles torch and all else that it imports anew: 12 s of a run of 22.
export PYTHONDONTWRITEBYTECODE :=
PYTEST := $(BIN)/python -m pytest -n 3 $(PYTEST_ARGS)

.PHONY: setup demo test slow nightly bench gallery lint docs lab clean

# Extras beside what the demo and the tests need; lint, slow, nightly and docs install those of their name.
EXTRAS ?=
setup:
	$(TIMED) "make setup" scripts/setup.sh $(EXTRAS)

# The first table is there before anything is encoded; then results and all notebooks, which read the runs from the store.
demo: setup
	$(TIMED) "first results" $(call MEMLAB,evaluate) --pipeline bm25
	$(TIMED) "results" $(call MEMLAB,evaluate)
	@$(if $(filter-out 1,$(JOBS)),OMP_NUM_THREADS=1) $(call MEMLAB,notebooks) --jobs $(JOBS) $(if $(AGAIN),--again)
	@echo 'next:  source .venv/bin/activate && $(if $(findstring /sample,$(DATASET)),memlab search "what did the bookcase cost?" --scope owen,memlab info)'

# Notebooks run two at a time, each with a core: threads of their own would only wait for each other. Tests run three at a
# time, since a quarter of their time is spent on waiting for files, browsers and other processes.
test slow nightly: export POLARS_MAX_THREADS := 1

# A file runs in one process: what its tests share is made once.
test: setup
	$(TIMED) "make test" $(PYTEST) --dist loadfile -m "not slow and not nightly"

slow: setup
	@scripts/setup.sh slow
	$(TIMED) "make slow" $(PYTEST) --dist loadfile -m "slow and not nightly"

nightly: setup
	@scripts/setup.sh nightly
	$(TIMED) "make nightly" $(PYTEST) -m nightly
	$(TIMED) "laws at length" $(PYTEST) --hypothesis-profile nightly -m hypothesis

bench: setup
	$(TIMED) "make bench" $(BIN)/python scripts/bench.py "$(LOCOMO)" $(BENCH_ARGS)

# The pictures of README, docs and notebooks, of the sample; notebooks that are up to date are not run again.
gallery: setup
	@$(if $(filter-out 1,$(JOBS)),OMP_NUM_THREADS=1) $(BIN)/memlab notebooks --jobs $(JOBS)
	$(TIMED) "make gallery" $(BIN)/python scripts/gallery.py

lint: setup
	@scripts/setup.sh lint
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(TIMED) "make lint" $(BIN)/mypy

docs: setup
	@scripts/setup.sh docs
	$(TIMED) "make docs" $(BIN)/python scripts/site.py
	@echo "documentation: docs/site/index.html"

lab: setup
	$(BIN)/jupyter lab notebooks

clean:
	rm -rf results .memlab build dist docs/site *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find figures -mindepth 1 -maxdepth 1 ! -name gallery -exec rm -rf {} + 2>/dev/null || true
	find . -name __pycache__ -not -path './.venv/*' -prune -exec rm -rf {} +
