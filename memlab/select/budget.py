"""Where to cut a ranking: at a number of tokens, or at a number of documents that depends on the question."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import fsum

import numpy as np
import polars as pl

from memlab.errors import DataError, at_least
from memlab.records import Run
from memlab.registry import stage
from memlab.retrieve.bench import Bench
from memlab.retrieve.ranking import scaled
from memlab.text.analysis import tokenize
from memlab.text.questions import aggregation
from memlab.text.sentences import sentences
from memlab.text.tokens import WORD_OR_SIGN

CONTENTS = ("whole", "head", "sentences")

# A contender scores at least half of the way from the last candidate to the first; their usual number; how many times
# as many documents a question gets that counts, sums or lists.
_CONTENDS, _USUAL, _AGGREGATES = 0.5, 10, 1.5


@stage
def adaptive(run: Run, bench: Bench, *, k: int = 10) -> Run:
    """Cut each ranking at k · √(contenders / 10), and at 1.5 times that where the question counts or lists.

    A question that counts, sums or lists needs several evidence items
    (:func:`memlab.text.questions.aggregation`). Where one document stands out by its score it is likely to be the
    answer; where many score nearly the same, the evidence lies deeper. Nothing is reordered. Compare with a fixed k of
    the same mean (``n_retrieved`` in a report), by a measure as deep as what is kept, such as recall_all@100.

    :param k: documents of a plain question with ten contenders, the usual number after ``combsum`` and ``bm25``.
    :raises DataError: for a number below 1.

    >>> import memlab
    >>> bench = memlab.Bench.of("data/sample/sample.jsonl", encoder=None)
    >>> shorter = memlab.select.adaptive(memlab.retrieve.bm25(bench), bench, k=5).frame
    >>> shorter.group_by("query_id").len()["len"].n_unique() > 1
    True
    """
    at_least(1, k=k)
    wanted = k * (pl.col("contenders") / _USUAL).sqrt() * pl.when("aggregation").then(_AGGREGATES).otherwise(1.0)
    sizes = (
        run.frame.with_columns(contends=scaled("score") >= _CONTENDS)
        .group_by("query_id", maintain_order=True)
        .agg(contenders=pl.col("contends").sum())
        .join(bench.queries.select("query_id", aggregation()), on="query_id", how="left", maintain_order="left")
        .select("query_id", k=wanted.round().clip(1).cast(pl.Int32))
    )
    frame = run.frame.join(sizes, on="query_id", how="left", maintain_order="left")
    return replace(run, frame=frame.filter(pl.col("rank") <= pl.col("k")).drop("k"))


@stage
def budget(run: Run, bench: Bench, *, tokens: int = 1000, content: str = "whole", limit: int = 200) -> Run:
    """Keep the first documents of each query that together fit a number of tokens.

    The ranking is cut at the first document that does not fit. Tokens are words and punctuation marks, counted without
    a model, of what is kept of a document: more documents fit when each is shortened, but a shortened one may lose its
    answer.

    :param tokens: the budget of each query.
    :param content: ``whole`` documents, the ``head`` of each, or its best ``sentences``; see :func:`kept_text`.
    :param limit: characters kept of a document; ``whole`` ignores it.
    :raises DataError: when the budget or the limit is not positive, or for another content.

    >>> import memlab
    >>> bench = memlab.Bench.of("data/sample/sample.jsonl", encoder=None)
    >>> plain = memlab.retrieve.bm25(bench)
    >>> fitting = [memlab.select.budget(plain, bench, tokens=100, content=c, limit=40) for c in ("whole", "head")]
    >>> fitting[0].frame.height < fitting[1].frame.height < plain.frame.height
    True
    """
    at_least(1, tokens=tokens)
    documents = bench.documents(run.level)
    if content == "whole":
        counts = pl.Series(documents.n_tokens[documents.at(run.frame["doc_id"])])
    else:
        counts = kept_text(run, bench, content=content, limit=limit)["n_tokens"]
    spent = run.frame.with_columns(spent=counts).with_columns(pl.col("spent").cum_sum().over("query_id"))
    return replace(run, frame=spent.filter(pl.col("spent") <= tokens).drop("spent"))


def kept_text(run: Run, bench: Bench, *, content: str = "whole", limit: int = 200) -> pl.DataFrame:
    """Give what is kept of each ranked document's text.

    A text of at most ``limit`` characters stays as it is. Of a longer one ``head`` keeps the beginning, and
    ``sentences`` those that share most with the question, in their own order, as many as fit: each shared word, stemmed
    and without stop words, counts its inverse document frequency in the scope. One sentence is always kept, to its
    first ``limit`` characters.

    :returns: a row for each row of the run, in its order: ``query_id``, ``doc_id``, ``rank``, ``text``, ``n_tokens``.
    :raises DataError: when the limit is not positive, or for another content.

    >>> import memlab
    >>> bench = memlab.Bench.of("data/sample/sample.jsonl", encoder=None)
    >>> texts = memlab.select.kept_text(memlab.retrieve.bm25(bench), bench, content="head", limit=20)["text"]
    >>> texts.str.len_chars().max()
    20
    """
    if content not in CONTENTS:
        raise DataError(f"content is {content!r}; choose from {', '.join(CONTENTS)}")
    at_least(1, limit=limit)
    documents = bench.documents(run.level)
    texts = [documents.texts[at] for at in documents.at(run.frame["doc_id"])]
    if content == "head":
        texts = [text[:limit] for text in texts]
    elif content == "sentences":
        texts = _best_sentences(texts, run, bench, limit)
    rows = run.frame.select("query_id", "doc_id", "rank", text=pl.Series(texts, dtype=pl.String))
    return rows.with_columns(n_tokens=pl.col("text").str.count_matches(WORD_OR_SIGN))


def _best_sentences(texts: list[str], run: Run, bench: Bench, limit: int) -> list[str]:
    """Shorten each text that is too long to the sentences that share most with its question."""
    documents, of_query = bench.documents(run.level), dict[str, dict[str, float]]()
    for query_id, scope, asked in zip(
        bench.queries["query_id"], bench.queries["scope"], bench.query_words, strict=True
    ):
        known = documents.words_in(slice(*documents.spans[scope]))
        of_query[query_id] = {word: known.rarity[known.number[word]] for word in asked if word in known.number}
    split = {text: sentences(text) or [""] for text in dict.fromkeys(texts) if len(text) > limit}
    words = iter(tokenize([part for parts in split.values() for part in parts], language=bench.language))
    words_of = {text: [set(next(words)) for _ in parts] for text, parts in split.items()}
    return [
        _fitting(split[text], words_of[text], of_query.get(query, {}), limit) if text in split else text
        for text, query in zip(texts, run.frame["query_id"], strict=True)
    ]


def _fitting(parts: Sequence[str], words: Sequence[set[str]], weights: Mapping[str, float], limit: int) -> str:
    worth = np.array([fsum(weights.get(word, 0.0) for word in own) for own in words])
    order = np.argsort(-worth, kind="stable")
    used = np.cumsum([len(parts[i]) + 1 for i in order]) - 1
    n = max(1, int((used <= limit).sum()))
    return " ".join(parts[i] for i in sorted(order[:n]))[:limit]
