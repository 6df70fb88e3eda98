"""What a summary says that its turns do not: numbers, dates and names without a source."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from itertools import chain
from typing import NamedTuple

import polars as pl

from memlab.embed.text import turn_text
from memlab.errors import DataError
from memlab.language.calendar import says
from memlab.language.mentions import LOOSE, Mention, mentions
from memlab.language.names import SHORTEST_NICKNAME
from memlab.language.tokens import plain, words

SCHEMA = {"row": pl.UInt32, "kind": pl.String, "found": pl.String}


def unsupported(texts: Sequence[str], sources: Sequence[Sequence[str]]) -> pl.DataFrame:
    """Find the numbers, dates and names of texts that stand in none of their sources.

    Numbers and dates are compared as values ("two", "2"; "3 May", "May 3rd"), names in any case and also by how they
    begin ("Mel", "Melanie"). A capital at the beginning of a sentence is a name only where the word has one elsewhere
    too, and nowhere a small letter. What is not seen: a right name in a wrong statement, and dates that are right but
    were only said by "last Friday".

    :param sources: for each text, those that it stands on; with speakers and dates, if sentences may use them.
    :returns: ``row`` (which text, from 0), ``kind`` (``number``, ``date``, ``name``) and ``found``, as it is written.
    :raises DataError: when there are not as many sources as texts.

    >>> from memlab.summarize import unsupported
    >>> unsupported(["Mel paid two dollars to Joe on May 3rd."], [["Melanie: It was $2, on 3 May."]]).rows()
    [(0, 'name', 'Joe')]
    """
    if len(texts) != len(sources):
        raise DataError(f"there are {len(texts)} texts and {len(sources)} lists of sources; give each text its list")
    read = {text: _read(text) for text in {*texts, *chain.from_iterable(sources)}}
    names = _sure_names(read.values())
    rows = []
    for row, (text, own) in enumerate(zip(texts, sources, strict=True)):
        for mention in read[text].mentions:
            doubtful = mention.value in LOOSE or (mention.opens and mention.value not in names)
            # The last word of a sentence that was cut may be part of a longer value.
            cut = read[text].text[mention.end :] in {"…", "..."}
            if not doubtful and not any(_says(read[source], mention, cut=cut) for source in own):
                rows.append((row, mention.kind, mention.text))
    return pl.DataFrame(rows, schema=SCHEMA, orient="row").unique(maintain_order=True)


def share(summaries: pl.DataFrame, turns: pl.DataFrame) -> pl.DataFrame:
    """Say of each summariser which share of its sentences holds something that stands in none of their turns.

    :param summaries: rows of :class:`memlab.records.Summary` or :class:`memlab.records.Node`.
    :param turns: rows of :class:`memlab.records.Turn`; a turn's speaker, caption and date count as said.
    :returns: ``service``, ``n_sentences``, ``n_unsupported`` and ``share``.

    >>> import memlab
    >>> turns = memlab.sample(turns=60).turns
    >>> memlab.summarize.share(memlab.summarize.summarize(turns).rows, turns)["share"].to_list()
    [0.0]
    """
    day = pl.col("timestamp").dt.strftime("%-d %B %Y, %A. ").fill_null("")
    told = dict(turns.select("turn_id", day + turn_text()).iter_rows())
    rows = summaries.select("service", "sentences", "evidence").explode("sentences", "evidence").drop_nulls("sentences")
    missing = set(rows["evidence"].explode().drop_nulls()) - told.keys()
    if missing:
        raise DataError(f"turn {min(missing)!r} is evidence of a summary and not among the turns; pass all of them")
    sources = [[told[turn] for turn in ids or ()] for ids in rows["evidence"].to_list()]
    wrong = unsupported(rows["sentences"].to_list(), sources)["row"].unique()
    return (
        rows.with_row_index("row")
        .group_by("service", maintain_order=True)
        .agg(n_sentences=pl.len(), n_unsupported=pl.col("row").is_in(wrong.implode()).sum())
        .with_columns(share=pl.col("n_unsupported") / pl.col("n_sentences"))
    )


class _Read(NamedTuple):
    """What a text says."""

    text: str
    mentions: list[Mention]
    numbers: frozenset[str]
    dates: frozenset[str]
    words: frozenset[str]


def _read(text: str) -> _Read:
    text, values = plain(text), mentions(text)
    numbers = {mention.value for mention in values if mention.kind == "number"}
    dates = {mention.value for mention in values if mention.kind == "date"}
    # A date also says each of its numbers.
    numbers |= {str(int(part)) for value in dates for part in re.findall(r"\b\d+\b", value)}
    return _Read(text, values, frozenset(numbers), frozenset(dates), frozenset(words(text)))


def _sure_names(read: Collection[_Read]) -> set[str]:
    """List the words that have a capital within a sentence somewhere, and nowhere a small letter."""
    inside = {name.value for one in read for name in one.mentions if name.kind == "name" and not name.opens}
    return inside - {word for one in read for word in re.findall(r"(?<!\w)[^\W\d_A-Z][^\W\d_]*", one.text)}


def _says(source: _Read, mention: Mention, *, cut: bool) -> bool:
    if cut and mention.text in source.text:
        return True
    if mention.kind == "number":
        return mention.value in source.numbers
    if mention.kind == "date":
        # "See you Fri!" is a date for people.
        written = mention.value in source.numbers or mention.value in source.words
        return written or any(says(date, mention.value) for date in source.dates)
    return mention.value in source.words or any(_same_name(mention.value, word) for word in source.words)


def _same_name(a: str, b: str) -> bool:
    """Compare names as they begin: "Mel", "Melanie"; "American", "America"."""
    return min(len(a), len(b)) >= SHORTEST_NICKNAME and (a.startswith(b) or b.startswith(a))
