"""A token budget instead of a number of documents."""

from __future__ import annotations

from dataclasses import replace

import polars as pl

from memlab.errors import DataError
from memlab.records import Run
from memlab.retrieve.bench import Bench


def budget(run: Run, bench: Bench, *, tokens: int = 1000) -> Run:
    """Keep the first documents of each query that together fit a number of tokens.

    The ranking is cut at the first document that does not fit: a shorter one further down does not jump the queue.
    Tokens are words and punctuation marks, counted without a model.

    :param tokens: the budget of each query.
    :raises DataError: when the budget is not positive.

    >>> from memlab import datasets, retrieve, select
    >>> bench = retrieve.Bench.of(datasets.synthetic.generate(turns=60, seed=0), encoder=None)
    >>> full = retrieve.bm25(bench)
    >>> select.budget(full, bench, tokens=200).frame.height < full.frame.height
    True
    """
    if tokens < 1:
        raise DataError(f"tokens is {tokens}; a budget is at least one token")
    documents = bench.documents(run.level)
    counts = pl.Series("n_tokens", documents.n_tokens[documents.at(run.frame["doc_id"])])
    spent = run.frame.with_columns(counts).with_columns(spent=pl.col("n_tokens").cum_sum().over("query_id"))
    return replace(run, frame=spent.filter(pl.col("spent") <= tokens).drop("n_tokens", "spent"))
