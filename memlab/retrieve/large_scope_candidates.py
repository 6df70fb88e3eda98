"""Candidates of a large scope: a small bench around each question, on which every stage works as on
any other.

LanceDB's vector index and full-text index each give some turns of the scope, these their sessions,
and the best of the sessions are read as they are. How rare words and tokens are in the whole scope
was counted when it was ingested, see :mod:`memlab.store.scope_statistics`. The questions of a scope
that is compared whole are taken some at a time, so that memory grows with turns, not with turns ×
questions.

Source: candidates first: Wang, Lin and Metzler, A Cascade Ranking Model (SIGIR 2011); ranks of two
indexes: Cormack, Clarke and Büttcher (SIGIR 2009).
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from memlab.embed.encoder_wrapper import describe_encoder, token_encoder_of
from memlab.progress_bars import progress_bar
from memlab.records import Question, frame
from memlab.retrieve import passages
from memlab.retrieve.bench import Bench
from memlab.retrieve.late_interaction import CONTEXT, count_tokens
from memlab.retrieve.passages import passage_vectors
from memlab.retrieve.rank_fusion import RRF_K

if TYPE_CHECKING:
    from memlab.embed import Encoder
    from memlab.store import MemoryStore

LARGE = 50_000
"""Turns of a scope from which a question is compared with candidates alone."""

HITS, TURNS = 200, 1_500
"""Turns that each index gives, and turns of candidate sessions."""

LONG, NEAR = 200, 20
"""Of a session of more turns than ``LONG``, the bench has those that stand so many turns from a
hit.
"""

PAIRS = 4_000_000
"""Pairs of question and turn of a scope that are scored at a time: some hundred bytes each."""

PART, MOST_OF_PART = 1_000, 6_000
"""Turns of a large scope that are encoded and counted together, about and at most."""

TokenCounts = tuple[int, np.ndarray]
"""Turns of a part of a scope, and in how many of them each token of the vocabulary stands."""

PATH = "candidates"
"""What the provenance of such a run says; see :func:`read_candidate_bench`."""

_log = logging.getLogger(__name__)


def divide_bench(bench: Bench) -> Iterator[Bench] | None:
    """Divide a bench where its scopes are large: the questions of a large indexed scope one by one,
    others in blocks.

    :returns: ``None`` where nothing is to be divided.
    """
    if bench.provenance.get("path") == PATH:
        return None
    if bench.turns.height < min(LARGE, PAIRS // max(1, bench.queries.height)):
        return None
    store, encoder = bench.store, bench.encoder
    sizes = dict(bench.turns.group_by("scope").len().iter_rows())
    n = pl.col("scope").replace_strict(sizes, default=0)
    asked = bench.queries.select(n=n, block=pl.int_range(pl.len()).over("scope") * n // PAIRS)
    large, block = (asked["n"] >= LARGE).to_numpy(), asked["block"].to_numpy()
    if large.any() and not _is_indexed(bench):
        large = np.zeros_like(large)
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


def _is_indexed(bench: Bench) -> bool:
    """Say whether candidates of a bench can be looked up; a line says where indexes are missing."""
    if bench.store is None or bench.encoder is None or bench.header:
        return False
    indexed = bench.store.search.searchable(bench.encoder, bench.name)
    if not indexed:
        whole = f"scopes of {LARGE:,} turns and more are compared whole, which takes long"
        _log.warning("%s: %s; `memlab ingest` makes the indexes", bench.name, whole)
    return indexed


def uses_candidates(store: MemoryStore, dataset: str, scope: str, encoder: Encoder) -> bool:
    """Say whether a question of a scope is compared with candidates: whether it is large, and
    indexed.
    """
    return store.search.size(dataset, scope) >= LARGE and store.search.searchable(encoder, dataset)


def read_candidate_bench(
    store: MemoryStore, dataset: str, asked: pl.DataFrame, *, encoder: Encoder, language: str = "en"
) -> Bench:
    """Read the candidates of one question from a store.

    :param asked: one row: ``scope`` and ``text``; ``query_id`` and ``timestamp`` are made up where
        absent.
    :returns: a bench of that question and some 1,500 turns, with the statistics of the scope.
    """
    from memlab.embed import cache_encoder

    encoder = cache_encoder(store, encoder)
    scope, text, column = asked["scope"][0], asked["text"][0], store.vectors.column(encoder)
    where: dict[str, Any] = {"dataset": dataset, "scopes": [scope], "k": HITS}
    found, vector = [store.search.by_text([text], **where)], encoder.encode([text], kind="query")
    if vector.any():  # else the encoder knows no word of the question
        found.insert(0, store.search.by_vector(vector, column=column, **where))
    # The sessions of the hits, by the reciprocal ranks of their three best.
    gain = 1 / (RRF_K + pl.int_range(1, pl.len() + 1))
    every = pl.concat(hits.select("session_id", "doc_id", gain=gain) for hits in found)
    of_session = every.group_by("session_id", maintain_order=True).agg(
        pl.col("gain").top_k(3).sum()
    )
    hit = of_session.sort("gain", descending=True, maintain_order=True)["session_id"]
    if every.is_empty():  # nothing matches, which any turns show as well as others
        hit = store.sessions(dataset, scopes=[scope], columns=["session_id"])["session_id"]
    near = store.search.sessions(dataset, scope, hit, column=column, most=TURNS)
    kept = rows_near_hits(near.turns, every["doc_id"])
    if every.is_empty():
        kept = np.arange(near.turns.height)
    statistics = store.search.statistics.read(
        dataset,
        scope,
        language=language,
        encoder=token_encoder_of(encoder),
    )
    return Bench(
        dataset,
        near.turns[kept],
        near.sessions,
        frame(Question).select("query_id", "scope", "text", "timestamp"),
        vectors=near.vectors[kept],
        encoder=encoder,
        store=store,
        language=language,
        statistics=statistics,
        speaker_sums=partial(store.search.speaker_sums, dataset, scope, column=column),
        provenance={
            "dataset": dataset,
            "path": PATH,
            **describe_encoder(encoder),
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
    """Encode and count tokens of large scopes, and encode passages, so that no question waits.

    :returns: of how many turns, those of the large scopes.
    """
    large = [
        scope for scope in store.scopes(dataset) if uses_candidates(store, dataset, scope, encoder)
    ]
    tokens_by = token_encoder_of(encoder)
    total = sum(store.search.size(dataset, scope) for scope in large)
    is_hidden = not progress or not total
    with progress_bar(what="tokens", total=total, unit="turns", hidden=is_hidden) as bar:
        for scope in large:
            counts = _count_parts(store, dataset, scope, encoder, bar)
            if tokens_by is not None and any(n for n, _ in counts):
                store.search.statistics.keep_tokens(dataset, scope, tokens_by, counts)
    if large:
        store.tokens.arrange(encoder)
    return total


def _count_parts(
    store: MemoryStore, dataset: str, scope: str, encoder: Encoder, bar: Any
) -> list[TokenCounts]:
    """Encode the passages of a scope and count its tokens, some thousand turns at a time.

    Parts that say what was encoded and counted before are not read again.
    """
    from memlab.store.table_schemas import text_hashes

    statistics, made_by = store.search.statistics, _describe_parts(encoder)
    known = statistics.kept_parts(dataset, scope, made_by)
    # What is kept for the next time, and the counts of every part, in order.
    kept: dict[str, TokenCounts] = {}
    every: list[TokenCounts] = []
    for sessions in _divide_sessions(store, dataset, scope):
        (digest,) = text_hashes(["".join(sessions["digest"])])
        n_turns = sessions["n_turns"].sum()
        counts = known.get(digest)
        if counts is None:
            counts = _count_part(store, dataset, scope, sessions["session_id"], encoder)
        # Of turns that another process ingested a moment ago, some may have been left out.
        if digest in known or counts[0] == n_turns:
            kept[digest] = counts
        every.append(counts)
        bar.update(n_turns)
    statistics.keep_parts(dataset, scope, made_by, kept)
    return every


def _describe_parts(encoder: Encoder) -> str:
    """Say what passages and tokens depend on beside the texts: part of the key of what is kept."""
    tokens_by = token_encoder_of(encoder)
    names = [encoder.identity.key, tokens_by and tokens_by.identity.key]
    return "/".join(map(str, ["parts", *names, passages.LONG, passages.SIZE, CONTEXT]))


def _count_part(
    store: MemoryStore, dataset: str, scope: str, session_ids: pl.Series, encoder: Encoder
) -> TokenCounts:
    """Encode the passages of sessions, and count their tokens, where the encoder has some."""
    bench = _read_part(store, dataset, scope, session_ids, encoder)
    passage_vectors(bench)
    if token_encoder_of(encoder) is None or not bench.turns.height:
        return bench.turns.height, np.zeros(1, np.int64)
    return count_tokens(bench)


def _divide_sessions(store: MemoryStore, dataset: str, scope: str) -> list[pl.DataFrame]:
    """Divide the sessions of a scope into parts of some thousand turns.

    Where a part ends is said by the digest of its last session, so that a turn that comes late
    changes the part that it is in and leaves those behind it.

    :returns: ``session_id``, ``n_turns`` and ``digest`` of what its turns say, of each part.
    """
    listed = store.sessions(dataset, scopes=[scope], columns=["session_id", "n_turns"])
    digests = store.search.session_digests(dataset, scope)
    listed = listed.join(digests, on="session_id", how="left", maintain_order="left")
    listed = listed.with_columns(pl.col("digest").fill_null(""))
    numbers = []
    number = size = 0
    for n_turns, digest in listed.select("n_turns", "digest").iter_rows():
        numbers.append(number)
        size += n_turns
        if size >= MOST_OF_PART or _ends_part(digest, n_turns):
            number += 1
            size = 0
    parts = listed.with_columns(part=pl.Series(numbers, dtype=pl.Int64))
    return parts.partition_by("part", include_key=False, maintain_order=True)


def _ends_part(digest: str, n_turns: int) -> bool:
    """Say whether a part ends with a session: by chance, of every ``PART`` turns once."""
    drawn = int(digest[:8] or "0", 16) / 2**32
    return drawn < n_turns / PART


def _read_part(
    store: MemoryStore, dataset: str, scope: str, session_ids: pl.Series, encoder: Encoder
) -> Bench:
    """Read sessions of a scope as a bench without questions."""
    from memlab.embed import cache_encoder

    column = store.vectors.column(encoder)
    near = store.search.sessions(dataset, scope, session_ids, column=column)
    return Bench(
        dataset,
        near.turns,
        near.sessions,
        frame(Question),
        vectors=near.vectors,
        encoder=cache_encoder(store, encoder),
        store=store,
    )
