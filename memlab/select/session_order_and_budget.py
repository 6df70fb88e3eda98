"""New sessions first, and where to cut a ranking: at a number of tokens."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl

from memlab.errors import check_at_least
from memlab.records import Run
from memlab.registry import Count, stage
from memlab.retrieve.bench import Bench
from memlab.select.selection_candidates import (
    candidates_by_query,
    put_chosen_first,
)


@stage
def budget(run: Run, bench: Bench, *, tokens: Count = 1000) -> Run:
    """Keep the first documents of each query that together fit a number of tokens.

    The ranking is cut at the first document that does not fit. Tokens are words and punctuation
    marks, counted without a model.

    :raises DataError: when the budget is not positive.

    >>> import memlab
    >>> bench = memlab.Bench.of("data/sample/sample.jsonl", encoder=None)
    >>> plain = memlab.retrieve.bm25(bench)
    >>> memlab.select.budget(plain, bench, tokens=100).frame.height < plain.frame.height
    True
    """
    check_at_least(1, tokens=tokens)
    documents = bench.documents(run.level)
    token_counts = pl.Series("spent", documents.n_tokens[documents.at(run.frame["doc_id"])])
    is_within_budget = (
        run.frame.with_columns(token_counts)
        .select(pl.col("spent").cum_sum().over("query_id") <= tokens)
        .to_series()
    )
    return replace(run, frame=run.frame.filter(is_within_budget))


@stage
def fill_sessions(run: Run, bench: Bench, *, sessions: Count = 5, candidates: Count = 50) -> Run:
    """Put the first hit of each session in front, until enough sessions are there.

    A question whose evidence lies in several sessions needs a turn of each, and one long
    conversation about the subject can fill every place. The rest follows in its old order. A run of
    sessions stays as it is.

    :param sessions: how many distinct sessions come in front.
    :param candidates: how many of the run's first documents to look at.
    :raises DataError: for a count below 1.

    >>> import memlab
    >>> bench = memlab.Bench.of("data/sample/sample.jsonl", encoder=None)
    >>> run = memlab.retrieve.bm25(bench)
    >>> filled = memlab.select.fill_sessions(run, bench, sessions=3)
    >>> documents = bench.documents("turn")
    >>> len(set(documents.session[documents.at(filled.frame["doc_id"].head(3))]))
    3
    """
    check_at_least(1, sessions=sessions)
    session_numbers = bench.documents(run.level).session
    first_of_sessions = (
        np.unique(session_numbers[places], return_index=True)[1]
        for places, _ in candidates_by_query(run, bench, candidates)
    )
    return put_chosen_first(
        run, bench, [np.sort(first_rows)[:sessions] for first_rows in first_of_sessions]
    )
