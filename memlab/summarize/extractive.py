"""The best sentences of a group: a session, a week, a cluster of turns."""

from __future__ import annotations

import re
from dataclasses import astuple, dataclass, fields
from typing import Any

import numpy as np
import polars as pl

from memlab.errors import DataError
from memlab.language import cues
from memlab.summarize.sentences import spoken, words

MAX_CHARS = 220

# Content words after which more of them do not make a sentence more telling.
_ENOUGH = 8
# A summary of few sentences has at most one sentence for so many.
_ONE_OF = 4
_FEWEST = 2
# Larger than any sum of weights: a class of sentences comes wholly after another.
_LAST_RESORT, _TOO_LONG = 100.0, 10.0
# What likeness to a picked sentence costs, and the likeness of what is taken for the same.
_DIVERSITY, _SAME = 0.5, 0.95
_CLAUSES = ("; ", ", ", " - ", " – ", " — ", ": ", " and ", " but ")


@dataclass(frozen=True)
class Weights:
    """What a sentence gets for what it is; each part lies between 0 and 1.

    :param centrality: nearness to what its group is about (cosine of tf-idf with the group's sum).
    :param telling: content words, up to eight.
    :param specific: names, numbers and words of time, with less for each further one.
    :param event: something done, decided or planned.
    :param personal: "I", "my", "we".
    :param position: place within the group, 1 for its first sentence.
    :param addressed: "you", without "I": mostly praise.
    :param dangling: begins with "it" or "that", which nobody understands alone.
    :param question: asks.
    """

    centrality: float = 1.0
    telling: float = 1.5
    specific: float = 0.75
    event: float = 0.3
    personal: float = 0.3
    position: float = 0.2
    addressed: float = -0.6
    dangling: float = -0.4
    question: float = -0.6


def extract(
    sentences: pl.DataFrame,
    *,
    by: str = "session_id",
    max_sentences: int = 6,
    max_chars: int = MAX_CHARS,
    weights: Weights | None = None,
) -> pl.DataFrame:
    """Pick the best sentences of each group.

    Sentences are scored by :class:`Weights`, then picked one by one, each marked down by its likeness to those picked
    before (maximal marginal relevance). Statistics of words are per scope. Greetings, thanks and bare praise are
    picked only where a group has nothing else, and long sentences only where it has too few short ones; those are
    cut at a clause, with "…". A group gets at least two sentences if it has them, and at most a quarter of them.

    :param sentences: what :func:`memlab.summarize.split` gives, in order of time. A row without a group is left out.
    :param by: the column that names the group.
    :param max_sentences: most sentences of a group; ``max_chars``: the longest sentence.
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
    missing = [name for name in (by, "scope", "speaker", "text") if name not in sentences.columns]
    if missing:
        raise DataError(f"the sentences have no column {missing[0]!r}; they have {', '.join(sentences.columns)}")
    if max_sentences < 1 or max_chars < 1:
        raise DataError(f"max_sentences is {max_sentences} and max_chars {max_chars}; both start at 1")
    fresh = pl.struct(by, pl.col("text").str.to_lowercase()).is_first_distinct()
    table = sentences.filter(pl.col(by).is_not_null()).filter(fresh).with_columns(spoken())
    if table.is_empty():
        return table.with_columns(score=pl.lit(0.0))
    group = table.select(pl.col(by).rank("dense") - 1)[by].to_numpy().astype(np.int64)
    tokens = words(table)
    tfidf = _tfidf(tokens, table.height)
    parts = _parts(table.with_columns(group=pl.Series(group)), tokens, _centrality(tfidf, group))
    score = parts.select(f.name for f in fields(Weights)).to_numpy(order="c") @ np.array(astuple(weights or Weights()))
    # Greetings, thanks and bare praise do not have two words that tell something.
    empty = parts["content"].to_numpy() < 2
    too_long = table["spoken"].str.len_chars().to_numpy() > max_chars
    ranked = score - _LAST_RESORT * empty - _TOO_LONG * too_long
    picked = _spread(ranked, tfidf, group, _wanted(group, empty, max_sentences))
    chosen = table.with_columns(score=pl.Series(score)).filter(pl.Series(picked))
    return chosen.with_columns(pl.col("spoken").map_elements(lambda s: shorten(s, max_chars), return_dtype=pl.String))


def _tfidf(tokens: pl.DataFrame, height: int) -> Any:
    """Give the tf-idf of each sentence's content words, unit rows; sentences of the scope are the documents."""
    from scipy import sparse
    from sklearn.preprocessing import normalize

    counts = tokens.filter("content").group_by("row", "scope", "stem", maintain_order=True).len("tf")
    counts = counts.with_columns(
        df=pl.len().over("scope", "stem"),
        total=pl.col("row").n_unique().over("scope"),
        column=pl.col("stem").rank("dense").cast(pl.Int64) - 1,
    )
    idf = ((pl.col("total") + 1) / (pl.col("df") + 1)).log() + 1
    data = counts.select(weight=pl.col("tf").log1p() * idf)["weight"].to_numpy()
    width = counts["column"].n_unique() or 1
    return normalize(sparse.csr_matrix((data, (counts["row"], counts["column"])), shape=(height, width)))


def _parts(table: pl.DataFrame, tokens: pl.DataFrame, centrality: np.ndarray) -> pl.DataFrame:
    """Give each sentence's parts of the score, as in :class:`Weights`, and the number of its ``content`` words."""
    specific = (pl.col("name") | pl.col("number") | pl.col("time")).sum().alias("specific")
    counted = tokens.group_by("row").agg(pl.col("content", "own", "other").sum(), specific)
    text, own = pl.col("text"), pl.col("own") > 0
    rows = (
        table.select("text", "group").with_row_index("row").join(counted, on="row", how="left", maintain_order="left")
    )
    return rows.with_columns(pl.col("content", "own", "other", "specific").fill_null(0)).select(
        "content",
        centrality=pl.Series(centrality),
        telling=(pl.col("content") / _ENOUGH).clip(upper_bound=1),
        specific=1 - 0.5 ** pl.col("specific"),
        event=text.str.contains(cues.EVENT).cast(pl.Float64),
        personal=own.cast(pl.Float64),
        position=1 - pl.int_range(pl.len()).over("group") / pl.len().over("group"),
        addressed=(~own & (pl.col("other") > 0)).cast(pl.Float64),
        dangling=text.str.contains(cues.DANGLING).cast(pl.Float64),
        question=text.str.contains(cues.ASKS).cast(pl.Float64),
    )


def _centrality(tfidf: Any, group: np.ndarray) -> np.ndarray:
    """Give each sentence's product with its group's sum, over the group's highest."""
    # Only words that a sentence has are looked up: the sum of a large group is dense.
    cells = tfidf.tocoo()
    _, place = np.unique(group[cells.row] * cells.shape[1] + cells.col, return_inverse=True)
    sums = np.bincount(place, weights=cells.data)
    central = np.bincount(cells.row, weights=cells.data * sums[place] if cells.nnz else None, minlength=len(group))
    highest = np.zeros(int(group.max()) + 1)
    np.maximum.at(highest, group, central)
    return central / np.maximum(highest[group], 1e-12)


def _wanted(group: np.ndarray, empty: np.ndarray, most: int) -> np.ndarray:
    """Say how many sentences each group gets: of those that tell nothing, only what the fewest need."""
    share = -(-np.bincount(group) // _ONE_OF)
    telling = np.bincount(group, weights=~empty).astype(int)
    return np.minimum(np.maximum(np.minimum(share, telling), _FEWEST), most)


def _spread(ranked: np.ndarray, tfidf: Any, group: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Pick by maximal marginal relevance, one sentence of every group a round."""
    picked = np.zeros(len(ranked), dtype=bool)
    alike = np.zeros(len(ranked))
    for done in range(int(wanted.max())):
        value = ranked - _DIVERSITY * alike - _LAST_RESORT * (alike > _SAME)
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
