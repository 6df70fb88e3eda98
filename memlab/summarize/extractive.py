"""The best sentences of a group: a session, a week, a cluster of turns."""

from __future__ import annotations

import re
from dataclasses import astuple
from typing import Any

import numpy as np
import polars as pl

from memlab.errors import DataError
from memlab.summarize._features import Weights, codes, features, phatic, vectors
from memlab.summarize._words import words
from memlab.summarize.sentences import spoken

MAX_CHARS = 220

# A summary of few sentences has at most one sentence for so many.
_ONE_OF = 4
_FEWEST = 2
# Larger than any sum of weights: a class of sentences comes wholly after another.
_LAST_RESORT, _TOO_LONG = 100.0, 10.0
_SAME = 0.95
_CLAUSES = ("; ", ", ", " - ", " – ", " — ", ": ", " and ", " but ")


def extract(
    sentences: pl.DataFrame,
    *,
    by: str = "session_id",
    max_sentences: int = 6,
    max_chars: int = MAX_CHARS,
    diversity: float = 0.5,
    weights: Weights | None = None,
) -> pl.DataFrame:
    """Pick the best sentences of each group.

    Sentences are scored by :class:`Weights`, then picked one by one, each marked down by its likeness to those picked
    before (maximal marginal relevance). Statistics of words are per scope. Greetings, thanks and bare praise are
    picked only where a group has nothing else, and long sentences only where it has too few short ones; those are
    cut at a clause, with "…". A group gets at least two sentences if it has them, and at most a quarter of them.

    :param sentences: what :func:`memlab.summarize.sentences.split` gives, in order of time; with ``by`` as a further
        column where groups are no sessions. A row without a group (null) is left out.
    :param by: the column that names the group.
    :param max_sentences: most sentences of a group.
    :param max_chars: longest sentence.
    :param diversity: what likeness to a picked sentence costs, from 0.
    :returns: the picked rows in their order, with ``spoken`` (the sentence with its speaker, cut where it was too
        long) and ``score``.
    :raises DataError: for a column that is not there, or a bound below 1.

    Source: Carbonell and Goldstein, "The use of MMR, diversity-based reranking", SIGIR 1998; the centrality is the
    degree form of Erkan and Radev, "LexRank", JAIR 2004.

    >>> import memlab
    >>> said = ["Hi Mel!", "Hi! I moved to Oslo in May.", "Wow, great!", "I found a flat near the harbour for $900."]
    >>> who = ["Ann", "Mel", "Ann", "Mel"]
    >>> turns = [memlab.Turn(f"u/s/{n}", "u", "u/s", n, who[n], "user", text) for n, text in enumerate(said)]
    >>> sentences = memlab.summarize.split(memlab.records.frame(memlab.Turn, turns))
    >>> memlab.summarize.extract(sentences)["spoken"].to_list()
    ['Mel: I moved to Oslo in May.', 'Mel: I found a flat near the harbour for $900.']
    """
    _check(sentences, by, max_sentences, max_chars)
    fresh = pl.struct(by, pl.col("text").str.to_lowercase()).is_first_distinct()
    table = sentences.filter(pl.col(by).is_not_null()).filter(fresh)
    if table.is_empty():
        return table.with_columns(spoken(), score=pl.lit(0.0))
    group = codes(table[by])
    tokens = words(table)
    tfidf = vectors(tokens, table.height)
    empty = phatic(tokens, table.height)
    score = features(table, tokens, tfidf, group) @ np.array(astuple(weights or Weights()))
    ranked = score - _LAST_RESORT * empty - _TOO_LONG * (_length(table) > max_chars)
    picked = _spread(ranked, tfidf, group, wanted=_wanted(group, empty, max_sentences), diversity=diversity)
    chosen = table.with_columns(spoken(), score=pl.Series(score)).filter(pl.Series(picked))
    return chosen.with_columns(pl.col("spoken").map_elements(lambda s: shorten(s, max_chars), return_dtype=pl.String))


def _check(sentences: pl.DataFrame, by: str, max_sentences: int, max_chars: int) -> None:
    missing = [name for name in (by, "scope", "speaker", "text") if name not in sentences.columns]
    if missing:
        raise DataError(f"the sentences have no column {missing[0]!r}; they have {', '.join(sentences.columns)}")
    if max_sentences < 1 or max_chars < 1:
        raise DataError(f"max_sentences is {max_sentences} and max_chars {max_chars}; both start at 1")


def _wanted(group: np.ndarray, empty: np.ndarray, most: int) -> np.ndarray:
    """Say how many sentences each group gets: of those that tell nothing, only what the fewest need."""
    share = -(-np.bincount(group) // _ONE_OF)
    telling = np.bincount(group, weights=~empty).astype(int)
    return np.minimum(np.maximum(np.minimum(share, telling), _FEWEST), most)


def _length(table: pl.DataFrame) -> np.ndarray:
    return table.select(spoken().str.len_chars())["spoken"].to_numpy()


def _spread(ranked: np.ndarray, tfidf: Any, group: np.ndarray, *, wanted: np.ndarray, diversity: float) -> np.ndarray:
    """Pick by maximal marginal relevance, one sentence of every group a round."""
    picked = np.zeros(len(ranked), dtype=bool)
    alike = np.zeros(len(ranked))
    for done in range(int(wanted.max())):
        value = ranked - diversity * alike - _LAST_RESORT * (alike > _SAME)
        value = np.where(picked | (wanted[group] <= done), -np.inf, value)
        # By group, then best first, then earliest.
        order = np.lexsort((np.arange(len(ranked)), -value, group))
        best = order[np.unique(group[order], return_index=True)[1]]
        picked[best[value[best] > -np.inf]] = True
        alike = np.maximum(alike, np.asarray(tfidf.multiply(tfidf[best][group]).sum(axis=1)).ravel())
    return picked


def shorten(text: str, max_chars: int = MAX_CHARS) -> str:
    """Cut a text at a clause, else at a word, never within a number.

    >>> shorten("We moved to Oslo in May, and then the boiler broke.", 30)
    'We moved to Oslo in May…'
    """
    if len(text) <= max_chars:
        return text
    head = text[: max_chars - 1]
    at = max(head.rfind(mark) for mark in _CLAUSES)
    at = at if at > max_chars // 2 else head.rfind(" ")
    head = head[:at] if at > 0 else re.sub(r"[\d.,]+$", "", head)
    return head.rstrip(" ,;:-–—") + "…"
