"""Where to cut a ranking: at a number of tokens."""

from __future__ import annotations

from dataclasses import replace

import polars as pl

from memlab.errors import check_at_least
from memlab.records import Run
from memlab.registry import stage
from memlab.retrieve.bench import Bench


@stage
def budget(run: Run, bench: Bench, *, tokens: int = 1000) -> Run:
    """Keep the first documents of each query that together fit a number of tokens.

    The ranking is cut at the first document that does not fit. Tokens are words and punctuation marks, counted without
    a model.

    :raises DataError: when the budget is not positive.

    >>> import memlab
    >>> bench = memlab.Bench.of("data/sample/sample.jsonl", encoder=None)
    >>> plain = memlab.retrieve.bm25(bench)
    >>> memlab.select.budget(plain, bench, tokens=100).frame.height < plain.frame.height
    True
    """
    check_at_least(1, tokens=tokens)
    documents = bench.documents(run.level)
    counts = pl.Series("spent", documents.n_tokens[documents.at(run.frame["doc_id"])])
    fits = run.frame.with_columns(counts).select(pl.col("spent").cum_sum().over("query_id") <= tokens).to_series()
    return replace(run, frame=run.frame.filter(fits))
