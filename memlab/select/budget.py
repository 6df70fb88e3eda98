"""A token budget instead of a number of documents, spent on whole documents or on a part of each."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain

import numpy as np
import polars as pl

from memlab.errors import DataError, at_least
from memlab.language.analysis import tokenize
from memlab.language.sentences import sentences
from memlab.language.tokens import PIECE
from memlab.records import Run
from memlab.registry import stage
from memlab.retrieve.bench import Bench
from memlab.retrieve.index import Documents

CONTENTS = ("whole", "head", "sentences")


@stage
def budget(run: Run, bench: Bench, *, tokens: int = 1000, content: str = "whole", limit: int = 200) -> Run:
    """Keep the first documents of each query that together fit a number of tokens.

    The ranking is cut at the first document that does not fit: a shorter one further down does not jump the queue.
    Tokens are words and punctuation marks, counted without a model. A document costs what is kept of it, so that
    more fit when each is shortened; a shortened one may no longer hold its answer, which
    :func:`memlab.evaluate.kept.kept` measures. :func:`kept_text` gives the texts.

    :param tokens: the budget of each query.
    :param content: ``whole`` documents, the ``head`` of each, or its best ``sentences``; see :func:`kept_text`.
    :param limit: characters kept of a document; ``whole`` ignores it.
    :raises DataError: when the budget or the limit is not positive, or for another content.

    >>> from memlab import retrieve, sample, select
    >>> bench = retrieve.Bench.of(sample(turns=200), encoder=None)
    >>> full = retrieve.bm25(bench)
    >>> fitting = [select.budget(full, bench, tokens=200, content=c, limit=40) for c in ("whole", "head")]
    >>> fitting[0].frame.height < fitting[1].frame.height < full.frame.height
    True
    """
    at_least(1, tokens=tokens)
    _check(content, limit)
    if content == "whole":
        documents = bench.documents(run.level)
        counts = pl.Series("n_tokens", documents.n_tokens[documents.at(run.frame["doc_id"])])
    else:
        counts = kept_text(run, bench, content=content, limit=limit)["n_tokens"]
    spent = run.frame.with_columns(counts).with_columns(spent=pl.col("n_tokens").cum_sum().over("query_id"))
    return replace(run, frame=spent.filter(pl.col("spent") <= tokens).drop("n_tokens", "spent"))


def kept_text(run: Run, bench: Bench, *, content: str = "whole", limit: int = 200) -> pl.DataFrame:
    """Give what is kept of each ranked document's text.

    A text of at most ``limit`` characters stays as it is. Of a longer one ``head`` keeps the beginning, and
    ``sentences`` those that share most with the question, in their own order, as many as fit: each word in common,
    stemmed and without stop words, counts its inverse document frequency in the scope. Equal sentences come as they
    stand; one sentence is always kept, to its first ``limit`` characters.

    :param content: ``whole``, ``head`` or ``sentences``.
    :param limit: characters kept of a document; ``whole`` ignores it.
    :returns: a row for each row of the run, in its order: ``query_id``, ``doc_id``, ``rank``, ``text``, ``n_tokens``.
    :raises DataError: when the limit is not positive, or for another content.

    >>> from memlab import retrieve, sample
    >>> from memlab.select.budget import kept_text
    >>> bench = retrieve.Bench.of(sample(turns=60), encoder=None)
    >>> texts = kept_text(retrieve.bm25(bench), bench, content="head", limit=20)["text"]
    >>> texts.str.len_chars().max()
    20
    """
    _check(content, limit)
    documents = bench.documents(run.level)
    at = documents.at(run.frame["doc_id"])
    text = pl.Series([documents.texts[place] for place in at], dtype=pl.String)
    rows = run.frame.select("query_id", "doc_id", "rank", text=text)
    if content == "head":
        rows = rows.with_columns(pl.col("text").str.slice(0, limit))
    elif content == "sentences":
        rows = rows.with_columns(pl.Series("at", at, dtype=pl.UInt32)).with_row_index("row")
        long = rows.filter(pl.col("text").str.len_chars() > limit).select("row", "query_id", "at")
        short = _best_sentences(long, bench, documents, limit)
        rows = rows.join(short, on="row", how="left", maintain_order="left").with_columns(
            text=pl.coalesce("best", "text")
        )
    return rows.select("query_id", "doc_id", "rank", "text", n_tokens=pl.col("text").str.count_matches(PIECE))


def _check(content: str, limit: int) -> None:
    if content not in CONTENTS:
        raise DataError(f"content is {content!r}; choose from {', '.join(CONTENTS)}")
    at_least(1, limit=limit)


def _best_sentences(long: pl.DataFrame, bench: Bench, documents: Documents, limit: int) -> pl.DataFrame:
    """Shorten documents to their best sentences: ``row``, ``best``."""
    at = long["at"].unique().to_list()
    parts = {text: sentences(text) or [""] for text in dict.fromkeys(documents.texts[i] for i in at)}
    shown = _flat("row", "sentence", [parts[documents.texts[i]] for i in at])
    shown = shown.select("sentence", at=pl.Series("at", at, dtype=pl.UInt32).gather(shown["row"])).with_columns(
        place=pl.int_range(pl.len()).over("at"), length=pl.col("sentence").str.len_chars()
    )
    words = _flat("row", "word", tokenize(shown["sentence"].to_list(), language=documents.language)).unique()
    words = shown.select("at", "place").with_row_index("row").join(words, on="row").drop("row")
    asked = _flat("row", "word", bench.query_words).unique()
    asked = bench.queries.select("query_id", "scope").with_row_index("row").join(asked, on="row")
    asked = asked.join(long, on="query_id", how="semi")
    asked = asked.join(documents.rarities(asked), on=["scope", "word"])
    overlap = (
        long.join(asked.select("query_id", "word", "rarity"), on="query_id")
        .join(words, on=["at", "word"])
        .group_by("row", "place")
        # Sums of floats depend on their order, and that of a join is not promised.
        .agg(score=pl.col("rarity").sort().sum())
    )
    return (
        long.join(shown, on="at")
        .join(overlap, on=["row", "place"], how="left")
        .sort("row", pl.col("score").fill_null(0.0), "place", descending=[False, True, False])
        .with_columns(used=(pl.col("length") + 1).cum_sum().over("row") - 1, nth=pl.int_range(pl.len()).over("row"))
        .filter((pl.col("used") <= limit) | (pl.col("nth") == 0))
        .sort("row", "place")
        .group_by("row", maintain_order=True)
        .agg(best=pl.col("sentence").str.join(" ").str.slice(0, limit))
    )


def _flat(at: str, value: str, lists: list[list[str]]) -> pl.DataFrame:
    """Give lists as rows: the number of the list, and the text."""
    numbers = np.repeat(np.arange(len(lists), dtype=np.uint32), [len(inner) for inner in lists])
    return pl.DataFrame({at: numbers, value: pl.Series(list(chain.from_iterable(lists)), dtype=pl.String)})
