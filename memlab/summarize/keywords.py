"""What groups of sentences are about, in keywords."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

import polars as pl

from memlab.language.tokens import stem, words
from memlab.summarize import sentences as of_sentences

_CANDIDATES = 60
_LONGEST = 60
# More text hardly changes the keywords of a group, and costs time.
_MAX_CHARS = 10_000
# Sentences with fewer telling words are left out: praise is repetitive, so that it would win.
_TELLING = 3
# What each further word of a phrase is worth, and a word that every group has; a phrase of several words that is said
# again gains with the root of its count.
_PER_WORD, _COMMON = 0.5, 0.5

_Worth = dict[str, float]


def topics(sentences: pl.DataFrame, *, by: str = "session_id", n_topics: int = 6) -> pl.DataFrame:
    """Name what each group is about: phrases of up to three words, most telling first.

    YAKE proposes phrases from the group's own text; they are ranked by how often the group says their words and how
    few groups of the scope do (tf-idf). Of phrases that share a word, the best stays. Words of courtesy and of time,
    and the names of those who take part, are no topics.

    :param sentences: what :func:`memlab.summarize.split` gives; ``by`` is the column that names the group.
    :returns: the group and ``topics``, a list that may be empty.

    Source: Campos et al., "YAKE! Keyword extraction from single documents using multiple local features", Information
    Sciences 509, 2020.

    >>> import polars as pl
    >>> said = ["I joined a pottery class in Oslo.", "The pottery class is on Mondays.", "Pottery calms my nerves."]
    >>> rows = pl.DataFrame({"session_id": "u/s", "scope": "u", "speaker": "Mel", "text": said})
    >>> topics(rows)["topics"].to_list()[0][0]
    'pottery class'
    """
    known = sentences.filter(pl.col(by).is_not_null())
    tokens = of_sentences.words(known).filter(pl.col("content") & ~pl.col("time"))
    worth = _worth(tokens.join(known.select(by).with_row_index("row"), on="row"), by)
    telling = tokens.group_by("row").len().filter(pl.col("len") >= _TELLING)
    texts = (
        known.with_row_index("row")
        .join(telling, on="row", how="left", maintain_order="left")
        .group_by(by, maintain_order=True)
        .agg(text=pl.col("text").filter(pl.col("len").is_not_null()).str.join("\n").str.slice(0, _MAX_CHARS))
    )
    phrases = [
        [_cased(phrase, text) for phrase in _distinct(_ranked(text, worth.get(group, {})), n_topics)]
        for group, text in texts.iter_rows()
    ]
    return texts.select(by, topics=pl.Series(phrases, dtype=pl.List(pl.String)))


def _worth(tokens: pl.DataFrame, by: str) -> dict[Any, _Worth]:
    """Give each group's stems their tf-idf; the groups of the scope are the documents."""
    total = pl.col(by).n_unique().over("scope")
    counts = (
        tokens.with_columns(total=total)
        .group_by("scope", by, "stem")
        .agg(pl.len().alias("tf"), pl.col("total").first())
        .with_columns(df=pl.len().over("scope", "stem"))
        .with_columns(
            worth=(pl.col("tf") - 0.5).sqrt() * (((pl.col("total") + 1) / (pl.col("df") + 0.5)).log() + _COMMON)
        )
    )
    worth: dict[Any, _Worth] = {}
    for group, word, value in counts.select(by, "stem", "worth").iter_rows():
        worth.setdefault(group, {})[word] = value
    return worth


def _ranked(text: str, worth: _Worth) -> list[str]:
    """Give the phrases that YAKE proposes for a text, best first; each word of a phrase has to be worth something."""
    scored, lower = [], text.lower()
    for phrase, score in _extractor().extract_keywords(text):
        values = [worth.get(word, 0.0) for word in _stems(phrase)]
        if len(phrase) <= _LONGEST and values and min(values[0], values[-1]) > 0:
            value = sum(values) / len(values) * (1 + _PER_WORD * (len(values) - 1))
            value *= max(lower.count(phrase), 1) ** 0.5 if len(values) > 1 else 1
            scored.append((-value, float(score), phrase))
    return [phrase for *_, phrase in sorted(scored)]


def _distinct(phrases: Iterable[str], most: int) -> list[str]:
    """Keep the first of the phrases that share a word."""
    chosen: dict[str, set[str]] = {}
    for phrase in phrases:
        stems = set(_stems(phrase))
        if not any(stems & others for others in chosen.values()):
            chosen[phrase] = stems
        if len(chosen) == most:
            break
    return list(chosen)


def _cased(phrase: str, text: str) -> str:
    """Write a phrase as the text mostly does; YAKE gives it in lower case."""
    written = Counter(re.findall(rf"\b{re.escape(phrase)}\b", text, re.I)).most_common(1)
    return written[0][0] if written else phrase


def _stems(phrase: str) -> list[str]:
    return stem(words(phrase))


@lru_cache(maxsize=1)
def _extractor() -> Any:
    import yake

    # Its own removal of near-equal phrases takes most of the time; _distinct does it.
    return yake.KeywordExtractor(lan="en", n=3, dedup_lim=1.0, top=_CANDIDATES)
