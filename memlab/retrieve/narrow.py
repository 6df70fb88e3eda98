"""A memory too large to compare a question with all of it: a small one, cut out around each question.

The store's indexes give the turns that are nearest by meaning and by words; their sessions are the small memory,
and every stage works on it as on any other. What the stages know of the whole scope, such as how rare a word is and how
well turns match on average, they know from a sample: some sessions drawn at random come along, each for many.

Source: candidates first: Wang, Lin and Metzler, A Cascade Ranking Model (SIGIR 2011); weights of a sample: Horvitz and
Thompson (JASA 1952).
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from memlab.embed.tokens import TokenEncoder
from memlab.language.analysis import tokenize
from memlab.records import Session, Turn, schema
from memlab.retrieve.bench import Bench
from memlab.retrieve.late import scope_tokens

if TYPE_CHECKING:
    from memlab.embed import Encoder
    from memlab.store import MemoryStore

LARGE = 200_000
"""Turns of a scope from which a question is compared with some of them: below, all are compared in a second or two, and
that is what finds most."""

HITS = 200
"""Nearest turns by meaning, and as many by words, whose sessions are looked at."""

NEAR, LONG = 10, 60
"""Of a session of more turns than ``LONG``, those that stand so many turns from a hit."""

TURNS, SAMPLE = 1_500, 2_000
"""Turns around the hits, and of the sample."""

BLOCK = 3_000
"""Turns whose tokens are looked up together."""

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
        "%s: %d of %d questions are of scopes of %s turns and more; each is compared with the sessions around what the "
        "indexes find", bench.name, large.sum(), len(large), f"{LARGE:,}",
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
    :returns: a bench of that question and at most some 3,500 turns; ``weight`` of its sessions says how many each
        stands for.
    """
    from memlab.store import cached

    encoder = cached(store, encoder)
    scope, text = asked["scope"][0], asked["text"][0]
    search, vector = store.search, encoder.encode([text], kind="query")
    column = store.vectors.column(encoder)
    parts = [search.by_vector(vector, column=column, dataset=dataset, scopes=[scope], k=HITS)]
    if words := tokenize([text], language=language, stem=False)[0]:
        parts.append(search.by_text([" ".join(words)], dataset=dataset, scopes=[scope], k=HITS))
    ranked = pl.concat(part.select("session_id", turn_id="doc_id", rank=pl.int_range(pl.len())) for part in parts)
    hits = ranked.sort("rank", maintain_order=True).with_columns(rank=pl.int_range(pl.len()))
    listed = search.sessions_of(dataset, scope)
    read, around_hits = search.turns_of(dataset, scope, hits["session_id"].unique().to_list(), column=column)
    near = _cut(read, hits)
    taken = near["session_id"].unique().implode()
    sample, of_sample = search.sample_of(dataset, scope, _sample(listed).to_list(), column=column)
    others = ~pl.col("session_id").is_in(taken)
    turns = pl.concat([near, sample.filter(others)])
    sessions = pl.concat([around_hits.filter(~others), of_sample.filter(others)])
    n_near = len(taken[0])
    each = (listed.height - n_near) / max(1, sessions.height - n_near)
    weight = pl.when(others).then(each).otherwise(1.0)
    return Bench(
        dataset,
        turns.select(*schema(Turn)),
        sessions.select(*schema(Session), weight=weight),
        _NONE,
        turn_vectors=np.ascontiguousarray(turns[column].to_numpy(), np.float32),
        provenance={"dataset": dataset, "path": PATH, "encoder": encoder.identity.describe(), "header": []},
        store=store,
        encoder=encoder,
        language=language,
    ).with_queries(asked)


def _sample(listed: pl.DataFrame) -> pl.Series:
    """Draw sessions at random, the same ones for every question."""
    order = np.random.default_rng(0).permutation(listed.height)
    before = np.cumsum(listed["n_turns"].to_numpy()[order]) - listed["n_turns"].to_numpy()[order]
    return listed["session_id"].gather(order[before < SAMPLE])


def _cut(turns: pl.DataFrame, hits: pl.DataFrame) -> pl.DataFrame:
    """Keep the sessions of the first hits, as many as there is room for; of a long one, what stands near a hit."""
    ranks = hits.group_by("turn_id").agg(pl.col("rank").min())
    ranked = turns.sort("session_id", "n").join(ranks, on="turn_id", how="left", maintain_order="left")
    place = pl.int_range(pl.len()).over("session_id")
    hit = pl.when(pl.col("rank").is_not_null()).then(place)
    since, until = place - hit.forward_fill().over("session_id"), hit.backward_fill().over("session_id") - place
    close = ranked.filter((pl.len().over("session_id") <= LONG) | (pl.min_horizontal(since, until) <= NEAR))
    best = pl.col("rank").min().over("session_id")
    ordered = close.with_columns(best=best).filter(pl.col("best").is_not_null()).sort("best", maintain_order=True)
    first = pl.col("at").min().over("session_id")
    return ordered.with_row_index("at").filter(first < TURNS).drop("rank", "best", "at")


def fill(store: MemoryStore, dataset: str, encoder: Encoder, *, progress: bool = True) -> int:
    """Embed the tokens of large scopes, so that no question waits for it; what is there already is not embedded again.

    :returns: how many turns the large scopes have.
    """
    from tqdm.auto import tqdm

    from memlab.store import cached

    if not isinstance(encoder, TokenEncoder):
        return 0
    large = [scope for scope in store.scopes(dataset) if store.search.size(dataset, scope) >= LARGE]
    total = sum(store.search.size(dataset, scope) for scope in large)
    with tqdm(total=total, desc="tokens for late interaction", unit=" turns", disable=not progress or not total) as bar:
        for scope in large:
            listed = store.search.sessions_of(dataset, scope)
            block = listed["n_turns"].cum_sum() // BLOCK
            for (_,), part in listed.group_by(block, maintain_order=True):
                turns, sessions = store.search.turns_of(dataset, scope, part["session_id"].to_list())
                bench = Bench(dataset, turns, sessions, _NONE, store=store, encoder=cached(store, encoder))
                scope_tokens(bench, slice(0, turns.height))
                bar.update(turns.height)
    if large:
        store.tokens.arrange(encoder)
    return total


_NONE = pl.DataFrame(
    schema={"query_id": pl.String, "scope": pl.String, "text": pl.String, "timestamp": pl.Datetime("us", "UTC")}
)
