"""A memory too large to compare a question with all of it: a small one, cut out around each question.

An index gives the turns that are nearest by meaning, and :mod:`memlab.retrieve.postings` looks through all of them by
words and tokens; the sessions that have most of these are the small memory, and every stage works on it as on any
other. How rare words and tokens are in the whole scope, :mod:`memlab.retrieve.counting` counted; how well turns match
on average, stages know from a sample: some sessions drawn at random come along, each for many. Where nothing was
counted or the dataset has changed since, the full-text index gives turns by words, and the sample stands for the rest.

Source: candidates first: Wang, Lin and Metzler, A Cascade Ranking Model (SIGIR 2011); weights of a sample: Horvitz and
Thompson (JASA 1952).
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from memlab.embed.tokens import TokenEncoder, TokenVectors
from memlab.language.analysis import tokenize
from memlab.records import LEVELS, Level, Session, Turn, schema
from memlab.retrieve.arrays import cosines
from memlab.retrieve.bench import Bench
from memlab.retrieve.index import Counted, ScopeWords, Whole
from memlab.retrieve.late import query_tokens
from memlab.retrieve.postings import Lookup, by_words, standard

if TYPE_CHECKING:
    from memlab.embed import Encoder
    from memlab.store import MemoryStore
    from memlab.store.search import Search

LARGE = 200_000
"""Turns of a scope from which a question is compared with some of them: below, all are compared in a second or two, and
that is what finds most."""

HITS = 200
"""Nearest turns by meaning, and as many by words, whose sessions are looked at."""

WORD_HITS = 600
"""Those by words that the index gives, of which the ``HITS`` best are taken by the scope's own BM25."""

NEAR, LONG = 10, 60
"""Of a session of more turns than ``LONG``, those that stand so many turns from a hit."""

TURNS, SAMPLE = 2_000, 500
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
    :returns: a bench of that question and at most some 2,500 turns; ``weight`` of its sessions says how many each
        stands for.
    """
    from memlab.store import cached

    encoder = cached(store, encoder)
    scope, text = asked["scope"][0], asked["text"][0]
    search, vector = store.search, encoder.encode([text], kind="query")
    column = store.vectors.column(encoder)
    whole, listed = _whole(store, dataset, scope, encoder, language), search.sessions_of(dataset, scope)
    sample, of_sample = search.sample_of(dataset, scope, _sample(listed).to_list(), column=column)
    with ThreadPoolExecutor(1) as beside:  # the database answers on the other core
        nearest = beside.submit(search.by_vector, vector, column=column, dataset=dataset, scopes=[scope], k=HITS)
        tokens = encoder.encode_tokens([text], kind="query") if isinstance(encoder, TokenEncoder) else None
        looked = None if whole is None else _looked(store, dataset, asked, encoder, language, whole, tokens)
        by_words = _by_words(search, dataset, scope, text, language, whole) if looked is None else None
    usual, n = cosines(vector, sample[column].to_numpy()), listed["n_turns"].to_numpy().sum()
    by_meaning = nearest.result().with_columns(score=(pl.col("score") - usual.mean()) / max(usual.std(), 1e-9))
    hits = _ranked(by_meaning, by_words, n) if looked is None else _first(by_meaning, looked, listed)
    read, around_hits = search.turns_of(dataset, scope, _room(hits, listed), column=column)
    near = _cut(read, hits)
    taken = near["session_id"].unique().implode()
    others = ~pl.col("session_id").is_in(taken)
    turns = pl.concat([near, sample.filter(others)])
    sessions = pl.concat([around_hits.filter(~others), of_sample.filter(others)])
    n_near = len(taken[0])
    each = (listed.height - n_near) / max(1, sessions.height - n_near)
    weight = pl.when(others).then(each).otherwise(1.0)
    small = Bench(
        dataset,
        turns.select(*schema(Turn)),
        sessions.select(*schema(Session), weight=weight),
        NO_QUESTIONS,
        turn_vectors=np.ascontiguousarray(turns[column].to_numpy(), np.float32),
        provenance={"dataset": dataset, "path": PATH, "encoder": encoder.identity.describe(), "header": []},
        store=store,
        encoder=encoder,
        language=language,
        whole=whole,
    ).with_queries(asked)
    if tokens is not None:
        query_tokens(small, known=tokens)
    return small


def _sample(listed: pl.DataFrame) -> pl.Series:
    """Draw sessions at random, the same ones for every question."""
    order = np.random.default_rng(0).permutation(listed.height)
    before = np.cumsum(listed["n_turns"].to_numpy()[order]) - listed["n_turns"].to_numpy()[order]
    return listed["session_id"].gather(order[before < SAMPLE])


def _by_words(
    search: Search, dataset: str, scope: str, text: str, language: str, whole: Whole | None
) -> pl.DataFrame | None:
    """Find turns by the words of a question; ``None`` where it has none."""
    words = tokenize([text], language=language, stem=False)[0]
    if not words:
        return None
    k = HITS if whole is None else WORD_HITS
    found = search.by_text([" ".join(words)], dataset=dataset, scopes=[scope], k=k, content=True)
    if whole is None or found.is_empty():
        return found
    of = ScopeWords.of(tokenize(found["content"].to_list(), language=language), whole=whole.words["turn"])
    scores = of.scores(tokenize([text], language=language), *of.normalisation)[0]
    return found.with_columns(score=pl.Series(scores, dtype=pl.Float64)).top_k(HITS, by="score")


def _looked(
    store: MemoryStore, dataset: str, asked: pl.DataFrame, encoder: Encoder, language: str, whole: Whole,
    tokens: TokenVectors | None,
) -> tuple[pl.Series, np.ndarray, np.ndarray] | None:  # fmt: skip
    """Look through all turns of a scope for the words and tokens of a question; ``None`` where they are not kept.

    :returns: the turns' ids, how well each matches and how well each session: roughly what ``best`` adds up but for
        meaning.
    """
    scope = asked["scope"][0]
    shared = store.postings.shared(encoder, dataset, scope)
    if shared is None:
        return None
    ids, of_turns, of_sessions, means = shared
    words = tokenize([asked["text"][0]], language=language)[0]
    near = None if tokens is None or not len(means) else Lookup(tokens, means, whole)
    terms = {level: [f"{level}:{word}" for word in words] for level in LEVELS}
    found = store.postings.read(encoder, dataset, scope, [*chain(*terms.values()), *(near.terms() if near else ())])
    size = store.search.sessions_of(dataset, scope)["n_turns"].to_numpy()
    turn = standard(by_words("turn", terms["turn"], found, of_turns, whole))
    session = standard(by_words("session", terms["session"], found, of_sessions, whole))[size > 0]
    first = (np.cumsum(size) - size)[size > 0]
    if near is not None:
        scores = near.scores(found, len(ids))
        turn += 2 * standard(scores)
        session += 2 * standard(np.maximum.reduceat(scores, first))
    return ids, turn, session


def _first(
    by_meaning: pl.DataFrame, looked: tuple[pl.Series, np.ndarray, np.ndarray], listed: pl.DataFrame
) -> pl.DataFrame:
    """Rank the sessions of a scope by what was looked through and by what was found by meaning, standardised.

    :returns: as :func:`_ranked`: of the first sessions the turns that were found by meaning, and the one that matches
        best.
    """
    ids, turn, session = looked
    listed = listed.filter(pl.col("n_turns") > 0).select("session_id", size="n_turns").with_row_index("of")
    first = (listed["size"].cum_sum() - listed["size"]).to_numpy()
    near = by_meaning.join(listed, on="session_id", maintain_order="left")
    meaning = np.zeros(len(session))
    np.maximum.at(meaning, near["of"].to_numpy(), near["score"].to_numpy())
    total = np.maximum.reduceat(turn, first) + session + 2 * meaning
    at = np.argsort(-total, kind="stable")[:HITS]
    best = [int(first[i] + np.argmax(turn[first[i] : first[i] + listed["size"][int(i)]])) for i in at]
    ranked = pl.DataFrame({"session_id": listed["session_id"].gather(at), "rank": np.arange(len(at))})
    turns = [near.select("session_id", turn_id="doc_id"), ranked.select("session_id", turn_id=ids.gather(best))]
    return pl.concat(turns).unique(maintain_order=True).join(ranked, on="session_id", maintain_order="left")


def _ranked(by_meaning: pl.DataFrame, by_words: pl.DataFrame | None, n: int) -> pl.DataFrame:
    """Rank the sessions of what was found, by their best turn and what they have of both kinds: roughly ``combsum``.

    :param by_meaning: ``score`` standardised.
    :param n: turns of the scope, most of which hold no word of the question.
    :returns: ``turn_id``, ``session_id``, and ``rank``, that of the session.
    """
    parts = [by_meaning.select("session_id", turn_id="doc_id", meaning="score", words=0.0)]
    if by_words is not None:
        scores = by_words["score"].to_numpy()
        words = pl.col("score") / max(float(np.sqrt(scores @ scores / n)), 1e-9)
        parts.append(by_words.select("session_id", turn_id="doc_id", meaning=0.0, words=words))
    turns = pl.concat(parts).group_by("session_id", "turn_id", maintain_order=True).sum()
    best = (pl.col("meaning") + pl.col("words")).max() + pl.col("meaning").max() + pl.col("words").max()
    rank = best.over("session_id").rank("dense", descending=True)
    return turns.select("turn_id", "session_id", rank=rank)


def _room(hits: pl.DataFrame, listed: pl.DataFrame) -> list[str]:
    """Give the first sessions that there is room for, as many turns as :func:`_cut` may keep of each."""
    sessions = hits.group_by("session_id").agg(pl.len(), pl.col("rank").first())
    sessions = sessions.join(listed, on="session_id").sort("rank", "n")
    of_long = pl.min_horizontal("n_turns", pl.col("len") * (2 * NEAR + 1))
    kept = pl.when(pl.col("n_turns") > LONG).then(of_long).otherwise("n_turns").cum_sum()
    return sessions.filter(kept.shift(1, fill_value=0) < TURNS)["session_id"].to_list()


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
