"""Candidates of a large scope: a small bench around each question, on which every stage works as on any other.

LanceDB's vector index and full-text index each give some turns of the scope, these their sessions,
and the best of the sessions are read as they are. Some sessions drawn at random come along, each
for many: from them stages know how rare a word is, and how well turns match on average. The
questions of a scope that is compared whole are taken some at a time, so that memory grows with
turns, not with turns × questions.

Source: candidates first: Wang, Lin and Metzler, A Cascade Ranking Model (SIGIR 2011); weights of a
sample: Horvitz and Thompson (JASA 1952); ranks of two indexes: Cormack, Clarke and Büttcher (SIGIR
2009).
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from memlab.embed.token_vectors import TokenEncoder
from memlab.records import Question, frame
from memlab.retrieve.bench import Bench
from memlab.retrieve.fusion import RRF_K
from memlab.retrieve.late_interaction import scope_tokens
from memlab.retrieve.passages import passage_vectors
from memlab.text.analysis import tokenize

if TYPE_CHECKING:
    from memlab.embed import Encoder
    from memlab.store import MemoryStore

LARGE = 50_000
"""Turns of a scope from which a question is compared with candidates alone."""

HITS, TURNS, SAMPLE = 200, 1_500, 500
"""Turns that each index gives; those of candidate sessions, and those drawn at random."""

LONG, NEAR = 200, 20
"""Of a session of more turns than ``LONG``, the bench has those that stand so many turns from a hit."""

PAIRS = 4_000_000
"""Pairs of question and turn of a scope that are scored at a time: some hundred bytes each."""

PATH = "candidates"
"""What the provenance of such a run says; see :func:`read_candidate_bench`."""

_log = logging.getLogger(__name__)


def divide_bench(bench: Bench) -> Iterator[Bench] | None:
    """Divide a bench where its scopes are large: the questions of a large indexed scope one by one, others in blocks.

    :returns: ``None`` where nothing is to be divided.
    """
    if bench.provenance.get("path") == PATH:
        return None
    sizes, store, encoder = (
        dict(bench.turns.group_by("scope").len().iter_rows()),
        bench.store,
        bench.encoder,
    )
    n = pl.col("scope").replace_strict(sizes, default=0)
    asked = bench.queries.select(n=n, block=pl.int_range(pl.len()).over("scope") * n // PAIRS)
    indexed = (
        store is not None
        and encoder is not None
        and not bench.header
        and store.search.searchable(encoder)
    )
    large, block = (asked["n"] >= LARGE).to_numpy() & indexed, asked["block"].to_numpy()
    if not large.any() and not block.any():
        return None
    if large.any():
        many = f"{large.sum()} of {len(large)} questions are of scopes of {LARGE:,} turns and more"
        _log.warning("%s: %s; each is compared with candidates of its scope", bench.name, many)
    blocks = (
        bench.with_rows(np.flatnonzero(~large & (block == number)))
        for number in np.unique(block[~large])
    )
    alone = (
        read_candidate_bench(
            store, bench.name, bench.queries[row], encoder=encoder, language=bench.language
        )
        for row in np.flatnonzero(large).tolist()
        if store is not None and encoder is not None
    )
    return chain(blocks, alone)


def uses_candidates(store: MemoryStore, dataset: str, scope: str, encoder: Encoder) -> bool:
    """Say whether a question of a scope is compared with candidates: whether it is large, and indexed."""
    return store.search.size(dataset, scope) >= LARGE and store.search.searchable(encoder)


def read_candidate_bench(
    store: MemoryStore, dataset: str, asked: pl.DataFrame, *, encoder: Encoder, language: str = "en"
) -> Bench:
    """Read the candidates of one question from a store.

    :param asked: one row: ``scope`` and ``text``; ``query_id`` and ``timestamp`` are made up where
        absent.
    :returns: a bench of that question and some 2,000 turns; ``weight`` of its sessions says how
        many each stands for.
    """
    from memlab.embed import cache_encoder

    encoder = cache_encoder(store, encoder)
    scope, text, column = asked["scope"][0], asked["text"][0], store.vectors.column(encoder)
    where: dict[str, Any] = {"dataset": dataset, "scopes": [scope], "k": HITS}
    found = [store.search.by_vector(encoder.encode([text], kind="query"), column=column, **where)]
    if words := tokenize([text], language=language, stem=False)[0]:
        found.append(store.search.by_text([" ".join(words)], **where))
    # The sessions of the hits, by the reciprocal ranks of their three best.
    gain = 1 / (RRF_K + pl.int_range(1, pl.len() + 1))
    every = pl.concat(hits.select("session_id", "doc_id", gain=gain) for hits in found)
    of_session = every.group_by("session_id", maintain_order=True).agg(
        pl.col("gain").top_k(3).sum()
    )
    hit = of_session.sort("gain", descending=True, maintain_order=True)["session_id"]
    near = store.search.sessions(dataset, scope, hit, column=column, most=TURNS)
    kept = rows_near_hits(near.turns, every["doc_id"])
    sample, total = store.search.sample(dataset, scope, column=column, most=SAMPLE)
    other = ~pl.col("session_id").is_in(near.sessions["session_id"].implode())
    rest, others = (
        sample.turns.select(other).to_series().arg_true().to_numpy(),
        sample.sessions.filter(other),
    )
    weight = (total - near.sessions.height) / max(1, others.height)
    return Bench(
        dataset,
        pl.concat([near.turns[kept], sample.turns[rest]]),
        pl.concat([near.sessions.with_columns(weight=1.0), others.with_columns(weight=weight)]),
        frame(Question).select("query_id", "scope", "text", "timestamp"),
        vectors=np.concatenate([near.vectors[kept], sample.vectors[rest]]),
        encoder=encoder,
        store=store,
        language=language,
        provenance={
            "dataset": dataset,
            "path": PATH,
            "encoder": encoder.identity.describe(),
            "header": [],
        },
    ).with_queries(asked)


def rows_near_hits(turns: pl.DataFrame, hits: pl.Series) -> np.ndarray:
    """Keep sessions whole, and of a long one what stands near a hit: rows.

    :param turns: of whole sessions, in order.
    :param hits: ids of turns.
    """
    place = pl.int_range(pl.len()).over("session_id")
    hit = pl.when(pl.col("turn_id").is_in(hits.implode())).then(place)
    since, until = (
        place - hit.forward_fill().over("session_id"),
        hit.backward_fill().over("session_id") - place,
    )
    near = (pl.len().over("session_id") <= LONG) | (pl.min_horizontal(since, until) <= NEAR)
    return turns.select(near.fill_null(False)).to_series().arg_true().to_numpy()


def encode_large_scopes(
    store: MemoryStore, dataset: str, encoder: Encoder, *, progress: bool = True
) -> int:
    """Encode tokens of large scopes, and passages of their long turns, so that no question waits for it.

    :returns: of how many turns, those of the large scopes.
    """
    from tqdm.auto import tqdm

    from memlab.embed import cache_encoder

    large = [
        scope for scope in store.scopes(dataset) if uses_candidates(store, dataset, scope, encoder)
    ]
    total, column = (
        sum(store.search.size(dataset, scope) for scope in large),
        store.vectors.column(encoder),
    )
    reader = cache_encoder(store, encoder)
    with tqdm(total=total, desc="tokens", unit=" turns", disable=not progress or not total) as bar:
        for scope in large:
            listed = store.sessions(dataset, scopes=[scope], columns=["session_id", "n_turns"])
            for _, part in listed.group_by(
                listed["n_turns"].cum_sum() // (2 * TURNS), maintain_order=True
            ):
                turns, sessions, vectors = store.search.sessions(
                    dataset, scope, part["session_id"], column=column
                )
                bench = Bench(
                    dataset,
                    turns,
                    sessions,
                    frame(Question),
                    vectors=vectors,
                    encoder=reader,
                    store=store,
                )
                passage_vectors(bench)
                if isinstance(encoder, TokenEncoder) and turns.height:
                    scope_tokens(bench, slice(0, turns.height))
                bar.update(turns.height)
    if large:
        store.tokens.arrange(encoder)
    return total
