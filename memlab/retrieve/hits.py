"""The sessions of a large scope that a question is compared with.

Where the postings of the scope are kept, all of its turns are looked through by meaning, words and tokens; where its
dataset has changed since, or nothing was kept, the database's indexes give turns by meaning and by words.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from memlab.embed.tokens import TokenVectors
from memlab.language.analysis import tokenize
from memlab.records import LEVELS
from memlab.retrieve.index import ScopeWords, Whole
from memlab.retrieve.postings import Lookup, by_words, nearest, standard

if TYPE_CHECKING:
    from memlab.embed import Encoder
    from memlab.store import MemoryStore
    from memlab.store.postings import Posting, Shared

NEAREST = 1_000
"""Nearest turns by meaning that count for their sessions, of all that are looked through."""

HITS = 200
"""Sessions that are found; nearest turns by meaning, and as many by words, where the indexes give them."""

WORD_HITS = 600
"""Those by words that the index gives, of which the ``HITS`` best are taken by the scope's own BM25."""


@dataclass(frozen=True, eq=False)
class Asked:
    """A question of a large scope.

    :param listed: the sessions of the scope, see :meth:`memlab.store.search.Search.sessions_of`.
    :param vector: (1, d) of the question; ``tokens`` its tokens, ``None`` without an encoder that gives any.
    :param usual: mean and standard deviation of its cosines with turns.
    :param whole: what was counted in the scope.
    """

    store: MemoryStore
    dataset: str
    scope: str
    text: str
    language: str
    encoder: Encoder
    listed: pl.DataFrame
    vector: np.ndarray
    tokens: TokenVectors | None
    usual: tuple[float, float]
    whole: Whole | None

    def standard(self, cosines: np.ndarray) -> np.ndarray:
        """Standardise cosines with turns."""
        made: np.ndarray = (cosines - self.usual[0]) / max(self.usual[1], 1e-9)
        return made


def by_postings(asked: Asked, shared: Shared, whole: Whole) -> tuple[pl.DataFrame, dict[str, Posting]]:
    """Look through all turns.

    :returns: ``turn_id`` and ``rank``, that of its session, of the turns of the first sessions that are near by meaning
        and the one that matches best, beside what is listed of the session; and the postings.
    """
    words = tokenize([asked.text], language=asked.language)[0]
    similar = None if asked.tokens is None or not len(shared.tokens) else Lookup(asked.tokens, shared, whole)
    terms = [*(f"{level}:{word}" for level in LEVELS for word in words), *(similar.terms() if similar else ())]
    with ThreadPoolExecutor(1) as beside:  # the database reads meanwhile
        reading = beside.submit(asked.store.postings.read, asked.encoder, asked.dataset, asked.scope, terms)
        places, cosines = nearest(asked.vector, shared.codes, NEAREST)
        postings = reading.result()
    turns, sessions = (
        standard(by_words(level, words, postings, lengths, whole))
        for level, lengths in zip(LEVELS, (shared.turns, shared.sessions), strict=True)
    )
    size = asked.listed["n_turns"].to_numpy()
    sessions = sessions[size > 0]
    if similar is not None:
        scores = similar.scores(postings, len(shared.ids))
        turns += 2 * standard(scores)
        sessions += 2 * standard(np.maximum.reduceat(scores, (np.cumsum(size) - size)[size > 0]))
    return first_sessions(asked.listed, shared.ids, (turns, sessions), (places, asked.standard(cosines))), postings


def first_sessions(
    listed: pl.DataFrame, ids: pl.Series, scores: tuple[np.ndarray, np.ndarray], near: tuple[np.ndarray, np.ndarray]
) -> pl.DataFrame:
    """Rank the sessions of a scope by how well they match, roughly as ``best`` does.

    :param ids: of all turns.
    :param scores: of turns, and of sessions that have turns, but for meaning.
    :param near: the places of the turns that are nearest by meaning, and how near they are.
    :returns: see :func:`by_postings`.
    """
    (turns, sessions), (places, meaning) = scores, near
    listed = listed.filter(pl.col("n_turns") > 0)
    ends = np.r_[0, listed["n_turns"].cum_sum().to_numpy()]
    of = np.searchsorted(ends, places, side="right") - 1
    np.maximum.at(nearest_of := np.zeros(len(sessions)), of, meaning)
    total = np.maximum.reduceat(turns, ends[:-1]) + sessions + 2 * nearest_of
    some = np.argpartition(-total, min(HITS, len(total)) - 1)[:HITS]
    at = some[np.lexsort((some, -total[some]))]
    best = [int(ends[i] + np.argmax(turns[ends[i] : ends[i + 1]])) for i in at]
    rank = pl.DataFrame({"of": at, "rank": np.arange(len(at))})
    found = pl.DataFrame({"at": np.r_[places, best], "of": np.r_[of, at]}).unique().join(rank, on="of")
    return listed[found["of"]].with_columns(turn_id=ids.gather(found["at"]), rank=found["rank"])


def by_indexes(asked: Asked, column: str) -> pl.DataFrame:
    """Ask the database's indexes for turns.

    :param column: of the vectors.
    :returns: the turns that are found, as :func:`by_postings` gives them.
    """
    near = asked.store.search.by_vector(
        asked.vector, column=column, dataset=asked.dataset, scopes=[asked.scope], k=HITS
    )
    near = near.with_columns(score=pl.Series(asked.standard(near["score"].to_numpy())))
    return ranked(near, _with_words(asked), int(asked.listed["n_turns"].sum())).join(asked.listed, on="session_id")


def _with_words(asked: Asked) -> pl.DataFrame | None:
    """Find turns by the words of a question; ``None`` where it has none."""
    words = tokenize([asked.text], language=asked.language, stem=False)[0]
    if not words:
        return None
    search, k = asked.store.search, HITS if asked.whole is None else WORD_HITS
    found = search.by_text([" ".join(words)], dataset=asked.dataset, scopes=[asked.scope], k=k, content=True)
    if asked.whole is None or found.is_empty():
        return found
    split = tokenize([asked.text, *found["content"]], language=asked.language)
    of = ScopeWords.of(split[1:], whole=asked.whole.words["turn"])
    scores = of.scores(split[:1], *of.normalisation)[0]
    return found.with_columns(score=pl.Series(scores, dtype=pl.Float64)).top_k(HITS, by="score")


def ranked(by_meaning: pl.DataFrame, by_words: pl.DataFrame | None, n: int) -> pl.DataFrame:
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
