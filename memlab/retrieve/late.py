"""Late interaction: every word of the question looks for its best match among the words of a turn."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import polars as pl

from memlab.embed.base import Kind
from memlab.embed.tokens import TokenEncoder, TokenVectors
from memlab.errors import DataError
from memlab.records import Level, Run
from memlab.retrieve._rank import rank
from memlab.retrieve.bench import Bench
from memlab.retrieve.dense import best_of

BLOCK = 256
"""Tokens of queries that are compared at a time, so that the matrix of similarities stays small."""


def late(bench: Bench, *, level: Level = "turn", k: int = 200, context: int = 2) -> Run:
    """Rank by late interaction: the mean, over the question's tokens, of each one's best cosine with a turn's token.

    One vector for a whole turn blurs what it says; a vector for each token keeps "three turtles" apart from "three
    books". Tokens of a turn are embedded after the turns before it, so that "they" and "it" mean something, and
    tokens of the question weigh as much as they are rare in the scope. A session ranks by its best turn.

    :param context: how many turns of the session the model reads before each turn.
    :raises DataError: without an encoder that gives token embeddings, or for a negative ``context``.

    Source: MaxSim: Khattab and Zaharia, ColBERT (SIGIR 2020), section 3.2; tokens read in context: Günther et al.,
    Late Chunking (2024); weights by rarity: Zhang et al., BERTScore (ICLR 2020), section 3.

    >>> from memlab import datasets, retrieve
    >>> bench = retrieve.Bench.of(datasets.synthetic.generate(turns=60, seed=0), encoder="minilm", progress=False)
    >>> retrieve.late(bench, k=3).frame["rank"].max()
    3
    """
    return rank(bench, late_scores(bench, level=level, context=context), level=level, k=k)


def late_scores(bench: Bench, *, level: Level, context: int = 2) -> Iterator[tuple[np.ndarray, slice, np.ndarray]]:
    """Give the scores of each scope: rows of the queries, place of the documents, scores (q, n) float32."""
    documents, of = _document_tokens(bench, context)
    queries = _query_tokens(bench)
    session = bench.documents("turn").session
    for (rows, span), (_, turns) in zip(bench.by_scope(level), bench.by_scope("turn"), strict=True):
        distinct, inverse = np.unique(of[turns], return_inverse=True)
        held = documents.take(distinct)
        counts = np.bincount(inverse, minlength=len(distinct))
        asked = queries.take(rows)
        size = 1 + max(int(asked.ids.max(initial=0)), int(held.ids.max(initial=0)))
        scores = _max_sim(asked, held, _rarity(held, counts, size))[:, inverse]
        if level == "session":
            scores = best_of(scores, session[turns] - span.start, span.stop - span.start)
        yield rows, span, scores


def _max_sim(queries: TokenVectors, documents: TokenVectors, rarity: np.ndarray) -> np.ndarray:
    """Compare every query with every document: (q, n) float32.

    :param rarity: weight of each token of the vocabulary.
    """
    filled = np.flatnonzero(np.diff(documents.start))
    scores = np.zeros((len(queries), len(documents)), np.float32)
    if not len(filled) or not len(queries.ids):
        return scores
    tokens = documents.vectors.astype(np.float32).T
    best = np.empty((len(queries.ids), len(filled)), np.float32)
    for start in range(0, len(queries.ids), BLOCK):
        block = queries.vectors[start : start + BLOCK].astype(np.float32)
        best[start : start + BLOCK] = np.maximum.reduceat(block @ tokens, documents.start[filled], axis=1)
    weights = rarity[queries.ids]
    asked = np.flatnonzero(np.diff(queries.start))
    total = np.add.reduceat(weights[:, None] * best, queries.start[asked], axis=0)
    weight = np.add.reduceat(weights, queries.start[asked])
    scores[np.ix_(asked, filled)] = total / weight[:, None]
    return scores


def _rarity(documents: TokenVectors, counts: np.ndarray, size: int) -> np.ndarray:
    """Weigh each token of the vocabulary by its inverse document frequency, as BM25 does.

    :param counts: how many documents each text stands for.
    :param size: of the vocabulary.
    """
    text = np.repeat(np.arange(len(documents)), np.diff(documents.start))
    pairs = np.unique(np.stack([text, documents.ids]), axis=1)
    frequency = np.bincount(pairs[1], weights=counts[pairs[0]], minlength=size)
    n = counts.sum()
    return np.log1p((n - frequency + 0.5) / (frequency + 0.5)).astype(np.float32)


def _document_tokens(bench: Bench, context: int) -> tuple[TokenVectors, np.ndarray]:
    """Embed the tokens of all turns, once: of the distinct texts, and which of them each turn is."""
    if context < 0:
        raise DataError(f"context is {context}; a turn is read after no other turn or after some")
    documents = bench.documents("turn")
    key = ("tokens", context)
    if key not in documents.indexes:
        earlier = [pl.col("text").shift(i).over("session").fill_null("") for i in range(context, 0, -1)]
        pairs = pl.DataFrame({"text": documents.texts, "session": documents.session}).select(
            "text", before=pl.concat_str(earlier, separator=" ").str.strip_chars_start() if earlier else pl.lit("")
        )
        distinct = pairs.unique(maintain_order=True).with_row_index("at")
        of = pairs.join(distinct, on=["text", "before"], how="left", maintain_order="left")["at"].to_numpy()
        tokens = _encode(bench, distinct["text"].to_list(), distinct["before"].to_list(), "document")
        documents.indexes[key] = tokens, of.astype(np.int64)
    return documents.indexes[key]


def _query_tokens(bench: Bench) -> TokenVectors:
    """Embed the tokens of the questions; those of the last questions asked are remembered."""
    texts, held = bench.queries["text"].to_list(), bench.documents("turn").indexes
    if held.get("asked") != texts:
        held["asked tokens"], held["asked"] = _encode(bench, texts, None, "query"), texts
    return held["asked tokens"]


def _encode(bench: Bench, texts: list[str], before: list[str] | None, kind: Kind) -> TokenVectors:
    encoder = bench.encoder
    if not isinstance(encoder, TokenEncoder):
        found = "none" if encoder is None else f"{encoder.identity.key}, which gives one vector a text"
        raise DataError(
            f"late interaction needs token embeddings and the bench's encoder is {found}; use encoder='minilm'"
        )
    if bench.store is None:
        return encoder.encode_tokens(texts, before=before, kind=kind)
    from memlab.store.tokens import encode_tokens

    return encode_tokens(bench.store, encoder, texts, before=before, kind=kind)
