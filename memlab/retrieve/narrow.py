"""A memory too large to compare a question with all of it: a small one, cut out around each question.

The sessions that match best, see :mod:`memlab.retrieve.hits`, are the small memory, and every stage works on it as on
any other. How rare words and tokens are in the whole scope, :mod:`memlab.retrieve.counting` counted; how well turns
match on average, stages know from a sample: some sessions drawn at random come along, each for many.

Source: candidates first: Wang, Lin and Metzler, A Cascade Ranking Model (SIGIR 2011); weights of a sample: Horvitz and
Thompson (JASA 1952).
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from memlab.embed.tokens import TokenEncoder
from memlab.records import LEVELS, Level, Session, Turn, schema
from memlab.retrieve.arrays import cosines
from memlab.retrieve.bench import Bench
from memlab.retrieve.hits import Asked, by_indexes, by_postings
from memlab.retrieve.index import Counted, Whole
from memlab.retrieve.late import query_tokens
from memlab.retrieve.postings import words_at

if TYPE_CHECKING:
    from memlab.embed import Encoder
    from memlab.store import MemoryStore

LARGE = 200_000
"""Turns of a scope from which a question is compared with some of them: below, all are compared in a second or two, and
that is what finds most."""

NEAR, LONG = 10, 60
"""Of a session of more turns than ``LONG``, those that stand so many turns from a hit."""

TURNS, SAMPLE = 2_000, 800
"""Turns around the hits, and of the sample."""

PATH = "narrowed"
"""What the provenance of such a run says; see :func:`around`."""

_log = logging.getLogger(__name__)


def narrowed(bench: Bench) -> Iterator[Bench] | None:
    """Cut a bench into one small bench for each question of a large scope, and one of all other questions.

    :returns: ``None`` where no scope is large, or nothing is indexed: everything is then compared.
    """
    store = bench.store
    if store is None or bench.encoder is None or "weight" in bench.sessions.columns:
        return None
    if bench.turns.height < LARGE or bench.header or not store.search.searchable(bench.encoder):
        return None
    sizes = dict(bench.turns.group_by("scope").len().iter_rows())
    large = bench.queries["scope"].replace_strict(sizes, default=0) >= LARGE
    if not large.any():
        return None
    _log.warning(
        "%s: %d of %d questions are of scopes of %s turns and more; each is compared with the sessions that match it "
        "best", bench.name, large.sum(), len(large), f"{LARGE:,}",
    )  # fmt: skip
    return _parts(bench, store, bench.encoder, large.to_numpy())


def _parts(bench: Bench, store: MemoryStore, encoder: Encoder, large: np.ndarray) -> Iterator[Bench]:
    if not large.all():
        yield bench.with_rows(np.flatnonzero(~large))
    for row in np.flatnonzero(large):
        asked = bench.queries[int(row)]
        yield around(store, bench.name, asked, encoder=encoder, language=bench.language)


def applies(store: MemoryStore, dataset: str, scope: str, encoder: Encoder) -> bool:
    """Say whether a scope of a store is so large that a question is compared with some of it, and is indexed."""
    return store.search.size(dataset, scope) >= LARGE and store.search.searchable(encoder)


def around(
    store: MemoryStore,
    dataset: str,
    asked: pl.DataFrame,
    *,
    encoder: Encoder,
    language: str = "en",
) -> Bench:
    """Cut a small bench out of a store's scope, around one question.

    :param asked: one row: ``scope`` and ``text``; ``query_id`` and ``timestamp`` are made up where absent.
    :returns: a bench of that question and at most some 2,800 turns; ``weight`` of its sessions says how many each
        stands for.
    """
    from memlab.store import cached

    encoder = cached(store, encoder)
    scope, text = asked["scope"][0], asked["text"][0]
    search, vector = store.search, encoder.encode([text], kind="query")
    column = store.vectors.column(encoder)
    whole, listed = _whole(store, dataset, scope, encoder, language), search.sessions_of(dataset, scope)
    sample = search.sample_of(dataset, scope, _sample(listed), column=column)
    tokens = encoder.encode_tokens([text], kind="query") if isinstance(encoder, TokenEncoder) else None
    cosine = cosines(vector, sample.vectors)
    usual = float(cosine.mean()), float(cosine.std())
    question = Asked(store, dataset, scope, text, language, encoder, listed, vector, tokens, usual, whole)
    shared, postings = None if whole is None else store.postings.shared(encoder, dataset, scope), None
    if shared is None or whole is None:
        hits = by_indexes(question, column)
    else:
        hits, postings = by_postings(question, shared, whole)
    read = search.turns_of(dataset, scope, _room(hits).to_list(), column=column)
    kept = _cut(read.turns, hits)
    of = read.turns["session_id"].gather(kept).unique().implode()
    rest = (~sample.turns["session_id"].is_in(of)).arg_true()
    turns = pl.concat([read.turns[kept], sample.turns[rest]])
    near_sessions, others = pl.col("session_id").is_in(of), ~pl.col("session_id").is_in(of)
    sessions = pl.concat([read.sessions.filter(near_sessions), sample.sessions.filter(others)])
    n_near = len(of[0])
    each = (listed.height - n_near) / max(1, sessions.height - n_near)
    small = Bench(
        dataset,
        turns.select(*schema(Turn)),
        sessions.select(*schema(Session), weight=pl.when(others).then(each).otherwise(1.0)),
        NO_QUESTIONS,
        turn_vectors=np.concatenate([read.vectors[kept.to_numpy()], sample.vectors[rest.to_numpy()]]),
        provenance={"dataset": dataset, "path": PATH, "encoder": encoder.identity.describe(), "header": []},
        store=store,
        encoder=encoder,
        language=language,
        whole=whole,
    ).with_queries(asked)
    if tokens is not None:
        query_tokens(small, known=tokens)
    if shared is not None and whole is not None and postings is not None:
        # Both are in order of time, as the documents are.
        at = {"turn": turns["at"].sort(), "session": sessions["place"].sort()}
        for level, lengths in zip(LEVELS, (shared.turns, shared.sessions), strict=True):
            known = words_at(level, small.query_words[0], postings, at[level].to_numpy(), lengths, whole)
            small.documents(level).known.append(known)
    return small


def _sample(listed: pl.DataFrame) -> list[int]:
    """Draw sessions at random, the same ones for every question: their places."""
    order = np.random.default_rng(0).permutation(listed.height)
    before = np.cumsum(listed["n_turns"].to_numpy()[order]) - listed["n_turns"].to_numpy()[order]
    places: list[int] = order[before < SAMPLE].tolist()
    return places


def _room(hits: pl.DataFrame) -> pl.Series:
    """Give the places of the first sessions that there is room for, as many turns as :func:`_cut` may keep of each."""
    sessions = hits.group_by("place").agg(pl.len(), pl.col("rank", "n", "n_turns").first()).sort("rank", "n")
    of_long = pl.min_horizontal("n_turns", pl.col("len") * (2 * NEAR + 1))
    kept = pl.when(pl.col("n_turns") > LONG).then(of_long).otherwise("n_turns").cum_sum()
    return sessions.filter(kept.shift(1, fill_value=0) < TURNS)["place"]


def _cut(turns: pl.DataFrame, hits: pl.DataFrame) -> pl.Series:
    """Keep the sessions of the first hits, as many as there is room for; of a long one, what stands near a hit.

    :param turns: of whole sessions, in order.
    :returns: the rows that are kept.
    """
    ranks = hits.group_by("turn_id").agg(pl.col("rank").min())
    placed = turns.select("turn_id", "session_id").with_row_index("row")
    ranked = placed.join(ranks, on="turn_id", how="left", maintain_order="left")
    place = pl.int_range(pl.len()).over("session_id")
    hit = pl.when(pl.col("rank").is_not_null()).then(place)
    since, until = place - hit.forward_fill().over("session_id"), hit.backward_fill().over("session_id") - place
    close = ranked.filter((pl.len().over("session_id") <= LONG) | (pl.min_horizontal(since, until) <= NEAR))
    best = pl.col("rank").min().over("session_id")
    ordered = close.with_columns(best=best).filter(pl.col("best").is_not_null()).sort("best", maintain_order=True)
    first = pl.col("at").min().over("session_id")
    return ordered.with_row_index("at").filter(first < TURNS)["row"]


def _whole(store: MemoryStore, dataset: str, scope: str, encoder: Encoder, language: str) -> Whole | None:
    """Give what :func:`memlab.retrieve.counting.fill` counted in a scope."""

    def whole(counts: dict[str, Any]) -> Whole:
        def counted(level: Level) -> Counted:
            n, length, squares = counts[f"{level}s"].tolist()
            frequency = dict(zip(counts["words"], counts[f"of_{level}s"].tolist(), strict=True))
            return Counted(n, length, squares, frequency)

        return Whole({level: counted(level) for level in LEVELS}, counts["tokens"])

    return store.search.counts(encoder, dataset, scope, language, whole)


NO_QUESTIONS = pl.DataFrame(
    schema={"query_id": pl.String, "scope": pl.String, "text": pl.String, "timestamp": pl.Datetime("us", "UTC")}
)
