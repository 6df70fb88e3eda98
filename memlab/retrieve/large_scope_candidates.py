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
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
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
from memlab.retrieve.late_interaction import CONTEXT, count_turns_and_turns_per_token
from memlab.retrieve.passages import distinct_vectors_and_row_of_passage
from memlab.retrieve.rank_fusion import RRF_K

if TYPE_CHECKING:
    from tqdm import tqdm

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

PART, MOST_OF_PART = 300, 2_000
"""Turns of a large scope that are encoded and counted together, about and at most."""

TokenCounts = tuple[int, np.ndarray]
"""Turns of a part of a scope, and in how many of them each token of the vocabulary stands."""

PATH = "candidates"
"""What the provenance of such a run says; see :func:`read_candidate_bench`."""

_log = logging.getLogger(__name__)


def split_bench_of_large_scopes(bench: Bench) -> Iterator[Bench] | None:
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
    scope_turns = pl.col("scope").replace_strict(sizes, default=0)
    sized_queries = bench.queries.select(
        n=scope_turns, block=pl.int_range(pl.len()).over("scope") * scope_turns // PAIRS
    )
    is_large = (sized_queries["n"] >= LARGE).to_numpy()
    block_number = sized_queries["block"].to_numpy()
    if is_large.any() and not _has_search_indexes_or_warn(bench):
        is_large = np.zeros_like(is_large)
    if not is_large.any() and not block_number.any():
        return None
    if is_large.any():
        n_large = f"{is_large.sum()} of {len(is_large)} questions"
        large_share = f"{n_large} are of scopes of {LARGE:,} turns and more"
        _log.warning(
            "%s: %s; each is compared with candidates of its scope", bench.name, large_share
        )
    blocks = (
        bench.with_query_rows(np.flatnonzero(~is_large & (block_number == chosen_block)))
        for chosen_block in np.unique(block_number[~is_large])
    )
    candidate_benches = (
        read_candidate_bench(
            store, bench.name, bench.queries[query_row], encoder=encoder, language=bench.language
        )
        for query_row in np.flatnonzero(is_large).tolist()
        if store is not None and encoder is not None
    )
    return chain(blocks, candidate_benches)


def _has_search_indexes_or_warn(bench: Bench) -> bool:
    """Say whether candidates of a bench can be looked up; a line says where indexes are missing."""
    if bench.store is None or bench.encoder is None or bench.header:
        return False
    has_indexes = bench.store.search.can_search_words_and_vectors(bench.encoder, bench.name)
    if not has_indexes:
        slow_scopes = f"scopes of {LARGE:,} turns and more are compared whole, which takes long"
        _log.warning("%s: %s; `memlab ingest` makes the indexes", bench.name, slow_scopes)
    return has_indexes


def is_scope_large_and_indexed(
    store: MemoryStore, dataset_name: str, scope: str, encoder: Encoder
) -> bool:
    """Say whether a question of a scope is compared with candidates: whether it is large, and
    indexed.
    """
    return store.search.count_turns_of_scope(
        dataset_name, scope
    ) >= LARGE and store.search.can_search_words_and_vectors(encoder, dataset_name)


def read_candidate_bench(
    store: MemoryStore,
    dataset_name: str,
    question_row: pl.DataFrame,
    *,
    encoder: Encoder,
    language: str = "en",
) -> Bench:
    """Read the candidates of one question from a store.

    :param question_row: one row: ``scope`` and ``text``; ``query_id`` and ``timestamp`` are made up
        where absent.
    :returns: a bench of that question and some 1,500 turns, with the statistics of the scope.
    """
    from memlab.embed import cache_encoder

    encoder = cache_encoder(store, encoder)
    scope = question_row["scope"][0]
    question_text = question_row["text"][0]
    vector_column = store.vectors.column(encoder)
    search_options: dict[str, Any] = {"dataset": dataset_name, "scopes": [scope], "k": HITS}
    hits_by_index = [store.search.by_text([question_text], **search_options)]
    question_vector = encoder.encode([question_text], kind="query")
    if question_vector.any():  # else the encoder knows no word of the question
        hits_by_index.insert(
            0, store.search.by_vector(question_vector, column=vector_column, **search_options)
        )
    # The sessions of the hits, by the reciprocal ranks of their three best.
    gain = 1 / (RRF_K + pl.int_range(1, pl.len() + 1))
    all_hits = pl.concat(
        index_hits.select("session_id", "doc_id", gain=gain) for index_hits in hits_by_index
    )
    session_gains = all_hits.group_by("session_id", maintain_order=True).agg(
        pl.col("gain").top_k(3).sum()
    )
    best_sessions = session_gains.sort("gain", descending=True, maintain_order=True)["session_id"]
    if all_hits.is_empty():  # nothing matches, which any turns show as well as others
        best_sessions = store.sessions(dataset_name, scopes=[scope], columns=["session_id"])[
            "session_id"
        ]
    session_turns = store.search.read_sessions_with_vectors(
        dataset_name, scope, best_sessions, vector_column=vector_column, max_turns=TURNS
    )
    kept_rows = rows_of_short_sessions_or_near_hits(session_turns.turns, all_hits["doc_id"])
    if all_hits.is_empty():
        kept_rows = np.arange(session_turns.turns.height)
    statistics = store.search.statistics.read_or_count_scope_statistics(
        dataset_name,
        scope,
        language=language,
        encoder=token_encoder_of(encoder),
    )
    return Bench(
        dataset_name,
        session_turns.turns[kept_rows],
        session_turns.sessions,
        frame(Question).select("query_id", "scope", "text", "timestamp"),
        vectors=session_turns.vectors[kept_rows],
        encoder=encoder,
        store=store,
        language=language,
        statistics=statistics,
        speaker_sums=partial(
            store.search.sum_vectors_by_speaker, dataset_name, scope, vector_column=vector_column
        ),
        provenance={
            "dataset": dataset_name,
            "path": PATH,
            **describe_encoder(encoder),
            "header": [],
        },
    ).with_queries(question_row)


def rows_of_short_sessions_or_near_hits(
    session_turns: pl.DataFrame, hit_ids: pl.Series
) -> np.ndarray:
    """Keep sessions whole, and of a long one what stands near a hit: rows.

    :param session_turns: of whole sessions, in order.
    :param hit_ids: ids of turns.
    """
    place_in_session = pl.int_range(pl.len()).over("session_id")
    hit_place = pl.when(pl.col("turn_id").is_in(hit_ids.implode())).then(place_in_session)
    turns_since_hit = place_in_session - hit_place.forward_fill().over("session_id")
    turns_until_hit = hit_place.backward_fill().over("session_id") - place_in_session
    is_near = (pl.len().over("session_id") <= LONG) | (
        pl.min_horizontal(turns_since_hit, turns_until_hit) <= NEAR
    )
    return session_turns.select(is_near.fill_null(False)).to_series().arg_true().to_numpy()


def encode_large_scopes_and_count_turns(
    store: MemoryStore, dataset_name: str, encoder: Encoder, *, progress: bool = True
) -> int:
    """Encode and count tokens of large scopes, and encode passages, so that no question waits.

    :returns: of how many turns, those of the large scopes.
    """

    large_scopes = [
        scope
        for scope in store.scopes(dataset_name)
        if is_scope_large_and_indexed(store, dataset_name, scope, encoder)
    ]
    n_turns = sum(store.search.count_turns_of_scope(dataset_name, scope) for scope in large_scopes)
    is_hidden = not progress or not n_turns
    with progress_bar(what="tokens", total=n_turns, unit="turns", hidden=is_hidden) as tokens_bar:
        for scope in large_scopes:
            _encode_and_count_tokens_by_part(store, dataset_name, scope, encoder, tokens_bar)
    if large_scopes:
        store.tokens.compact_and_index_caches(encoder)
    return n_turns


def _encode_and_count_tokens_by_part(
    store: MemoryStore, dataset_name: str, scope: str, encoder: Encoder, turns_bar: tqdm[Any]
) -> None:
    """Encode the passages of a scope and count its tokens, some hundred turns at a time.

    Parts that say what was encoded and counted before are not read again, nor are their counts.
    """
    from memlab.store.table_schemas import hash_texts

    statistics = store.search.statistics
    parts_key = _cache_key_of_passages_and_tokens(encoder)
    kept_digests = statistics.read_counted_part_digests(dataset_name, scope, parts_key)
    parts = _split_sessions_into_parts(store, dataset_name, scope)
    part_digests = hash_texts("".join(sessions["digest"]) for sessions in parts)
    changes = _read_changes_of_parts(store, dataset_name, scope, encoder, part_digests)
    unread_digests = {*part_digests} - kept_digests | changes.unknown_digests()
    new_counts: dict[str, TokenCounts] = {}
    is_whole = True
    for digest, sessions in zip(part_digests, parts, strict=True):
        n_turns = sessions["n_turns"].sum()
        if digest in unread_digests:
            unread_digests.remove(digest)
            part_counts = _encode_passages_and_count_tokens(
                store, dataset_name, scope, sessions["session_id"], encoder
            )
            changes.counts[digest] = part_counts
            # Of turns that another process ingested a moment ago, some may have been left out.
            if part_counts[0] == n_turns:
                new_counts[digest] = part_counts
            else:
                is_whole = False
        turns_bar.update(n_turns)
    statistics.keep_token_counts_by_part(dataset_name, scope, parts_key, new_counts)
    token_encoder = token_encoder_of(encoder)
    counts_to_add = changes.counts_to_add()
    if token_encoder is not None and any(n_counted for n_counted, _ in counts_to_add):
        summed_digests = [parts_key, *part_digests] if is_whole else []
        statistics.sum_and_keep_token_counts(
            dataset_name, scope, token_encoder, counts_to_add, part_digests=summed_digests
        )
    # Last: what the sum was of brings it up to date where this was interrupted before.
    gone_digests = kept_digests.difference(part_digests)
    statistics.remove_token_counts_of_parts(dataset_name, scope, parts_key, gone_digests)


@dataclass
class _ChangesOfParts:
    """What is to be added to the token counts that are kept of a scope.

    :param summed: what is kept; of no turns where that cannot be brought up to date.
    :param n_added: how often the counts of each part are added, or taken away.
    :param counts: of these parts, as far as they are known.
    """

    summed: TokenCounts
    n_added: Counter[str]
    counts: dict[str, TokenCounts]

    def unknown_digests(self) -> set[str]:
        """Give the digests of the parts whose counts are needed and not known."""
        return {digest for digest, n_times in self.n_added.items() if n_times} - self.counts.keys()

    def counts_to_add(self) -> list[TokenCounts]:
        """Give the counts that add up to those of the scope."""
        counts = [self.summed]
        for digest, n_times in self.n_added.items():
            if n_times:
                n_turns, frequency = self.counts[digest]
                counts.append((n_times * n_turns, n_times * frequency))
        return counts


def _read_changes_of_parts(
    store: MemoryStore, dataset_name: str, scope: str, encoder: Encoder, part_digests: list[str]
) -> _ChangesOfParts:
    """Read the kept token counts of a scope, and those of the parts that came or went since."""
    statistics = store.search.statistics
    parts_key = _cache_key_of_passages_and_tokens(encoder)
    nothing = (0, np.zeros(1, np.int64))
    kept_sum = None
    if (token_encoder := token_encoder_of(encoder)) is not None:
        kept_sum = statistics.read_summed_token_counts(dataset_name, scope, token_encoder)
    summed, summed_digests = kept_sum or (nothing, [parts_key])
    n_added = Counter(part_digests)
    n_added.subtract(summed_digests[1:])
    changed = [digest for digest, n_times in n_added.items() if n_times]
    counts = statistics.read_token_counts_by_part_digest(
        dataset_name, scope, parts_key, digests=changed
    )
    gone_digests = {digest for digest, n_times in n_added.items() if n_times < 0}
    if summed_digests[0] == parts_key and gone_digests <= counts.keys():
        return _ChangesOfParts(summed, n_added, counts)
    counts = statistics.read_token_counts_by_part_digest(
        dataset_name, scope, parts_key, digests=set(part_digests)
    )
    return _ChangesOfParts(nothing, Counter(part_digests), counts)


def _cache_key_of_passages_and_tokens(encoder: Encoder) -> str:
    """Say what passages and tokens depend on beside the texts: part of the key of what is kept."""
    token_encoder = token_encoder_of(encoder)
    encoder_keys = [encoder.identity.key, token_encoder and token_encoder.identity.key]
    return "/".join(map(str, ["parts", *encoder_keys, passages.LONG, passages.SIZE, CONTEXT]))


def _encode_passages_and_count_tokens(
    store: MemoryStore, dataset_name: str, scope: str, session_ids: pl.Series, encoder: Encoder
) -> TokenCounts:
    """Encode the passages of sessions, and count their tokens, where the encoder has some."""
    bench = _read_sessions_as_bench(store, dataset_name, scope, session_ids, encoder)
    distinct_vectors_and_row_of_passage(bench)
    if token_encoder_of(encoder) is None or not bench.turns.height:
        return bench.turns.height, np.zeros(1, np.int64)
    return count_turns_and_turns_per_token(bench)


def _split_sessions_into_parts(
    store: MemoryStore, dataset_name: str, scope_name: str
) -> list[pl.DataFrame]:
    """Divide the sessions of a scope into parts of some thousand turns.

    Where a part ends is said by the digest of its last session, so that a turn that comes late
    changes the part that it is in and leaves those behind it.

    :returns: ``session_id``, ``n_turns`` and ``digest`` of what its turns say, of each part.
    """
    scope_sessions = store.sessions(
        dataset_name, scopes=[scope_name], columns=["session_id", "n_turns"]
    )
    digests = store.search.digest_sessions_of_scope(dataset_name, scope_name)
    scope_sessions = scope_sessions.join(
        digests, on="session_id", how="left", maintain_order="left"
    )
    scope_sessions = scope_sessions.with_columns(pl.col("digest").fill_null(""))
    part_numbers = []
    part_number = part_turns = 0
    for n_turns, digest in scope_sessions.select("n_turns", "digest").iter_rows():
        part_numbers.append(part_number)
        part_turns += n_turns
        if part_turns >= MOST_OF_PART or _is_last_session_of_part(digest, n_turns):
            part_number += 1
            part_turns = 0
    parts = scope_sessions.with_columns(part=pl.Series(part_numbers, dtype=pl.Int64))
    return parts.partition_by("part", include_key=False, maintain_order=True)


def _is_last_session_of_part(session_digest: str, n_turns: int) -> bool:
    """Say whether a part ends with a session: by chance, of every ``PART`` turns once."""
    drawn_share = int(session_digest[:8] or "0", 16) / 2**32
    return drawn_share < n_turns / PART


def _read_sessions_as_bench(
    store: MemoryStore, dataset_name: str, scope: str, session_ids: pl.Series, encoder: Encoder
) -> Bench:
    """Read sessions of a scope as a bench without questions."""
    from memlab.embed import cache_encoder

    vector_column = store.vectors.column(encoder)
    session_turns = store.search.read_sessions_with_vectors(
        dataset_name, scope, session_ids, vector_column=vector_column
    )
    return Bench(
        dataset_name,
        session_turns.turns,
        session_turns.sessions,
        frame(Question),
        vectors=session_turns.vectors,
        encoder=cache_encoder(store, encoder),
        store=store,
    )
