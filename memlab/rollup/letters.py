"""A day, week or month as one would tell a colleague: what changed, what happened, what is planned, who and when."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import date
from zoneinfo import ZoneInfo

import polars as pl

from memlab.embed.text import ROLES
from memlab.errors import DataError
from memlab.language import cues
from memlab.language.calendar import written
from memlab.language.clauses import led
from memlab.language.dating import dated
from memlab.language.nouns import noun_phrases, telling
from memlab.language.tokens import tokens, words
from memlab.language.words import COURTESY, TIMES, wordset
from memlab.rollup.nodes import sentences_of
from memlab.summarize import extract

SECTIONS = {
    "changed": "What changed",
    "happened": "What happened",
    "planned": "Under way and planned",
    "said": "Also said",
}
_SIGNS = re.compile(r"[\U0001F000-\U0001FFFF\u2600-\u27BF\u200D\uFE0F]+")
_POINTING, _FEWEST, _MOST, _TELLING = re.compile(cues.POINTING), 5, 40, 2
_MOST_TOPICS = 3
# With fewer lines than so many, what else was said fills up.
_ENOUGH = 3


def highlights(turns: pl.DataFrame) -> pl.DataFrame:
    """Find the sentences in which somebody tells what they did, what changed, or what they are at or plan.

    A sentence has to be whole and be understood alone: no question, nothing said about "you", no "it" or "she" before
    a noun that it could mean. What else can stand alone so is ``said``.

    :param turns: rows of :class:`memlab.records.Turn`.
    :returns: ``section`` (``changed``, ``happened``, ``planned``, ``said``), ``session_id``, ``turn_id``, ``scope``,
        ``speaker``, ``timestamp`` and ``text``, the turn's words without what only leads in, in order of the turns.

    >>> import memlab
    >>> from memlab.rollup import highlights
    >>> said = "Well, I adopted a puppy on Monday! It is cute. I'm planning to build a kennel."
    >>> turns = memlab.records.frame(memlab.Turn, [memlab.Turn("u/s/1", "u", "u/s", 1, "Mel", "user", said)])
    >>> highlights(turns).select("section", "text").rows()
    [('changed', 'I adopted a puppy on Monday!'), ('planned', "I'm planning to build a kennel.")]
    """
    # What an assistant advises is no news of anybody's.
    sentences = sentences_of(turns.filter(pl.col("role") != "assistant"))
    names = wordset(" ".join(turns["speaker"].unique()).lower())
    plain = pl.Series("text", [_plain(text, names) for text in sentences["text"]], dtype=pl.String)
    whole = sentences.with_columns(plain).filter(pl.Series(map(_stands_alone, plain), dtype=pl.Boolean))
    text = pl.col("text")
    done = text.str.contains(cues.DONE) & ~text.str.contains(cues.INWARD)
    plans = text.str.contains(cues.UNDER_WAY) & ~text.str.contains(cues.VAGUE)
    inward = text.str.contains(cues.INWARD)
    section = (
        pl.when(text.str.contains(cues.CHANGED)).then(pl.lit("changed"))
        .when(done).then(pl.lit("happened"))
        .when(plans & (~inward | text.str.contains(cues.LATER))).then(pl.lit("planned"))
        .when(~inward).then(pl.lit("said"))
    )  # fmt: skip
    told = whole.with_columns(section=section).drop_nulls("section")
    return told.select("section", "session_id", "turn_id", "scope", "speaker", "timestamp", "text")


def _best(lines: pl.DataFrame, most: int) -> pl.DataFrame:
    """Keep the best lines where there are too many."""
    if lines.height <= most:
        return lines
    # All of one scope, and a quarter of them at most.
    return extract(lines, by="section", max_sentences=most).select(lines.columns)


def letter(nodes: pl.DataFrame, turns: pl.DataFrame, node_id: str, *, tz: str = "UTC", most: int = 6) -> str:
    """Write a node of a rollup as Markdown that one would send: who, when, about what, then :func:`highlights`.

    Every line is a sentence of the turn that it names; in brackets stands the date that its words mean.

    :param nodes: what :func:`memlab.rollup.rollup` gives.
    :param turns: the turns below them.
    :param tz: name of the time zone in which days begin.
    :param most: most lines of a section.
    :raises DataError: when no node has that id.

    >>> import memlab
    >>> from memlab.rollup import letter, rollup
    >>> turns = memlab.sample(turns=60).turns
    >>> nodes = rollup(turns)
    >>> letter(nodes, turns, nodes["node_id"][-1]).startswith("## ")
    True
    """
    row = nodes.filter(pl.col("node_id") == node_id)
    if row.is_empty():
        raise DataError(f"no node has the id {node_id!r}; take one of the rollup's node_id")
    node = row.row(0, named=True)
    local = pl.col("timestamp").dt.convert_time_zone(tz)
    mine = turns.filter(pl.col("turn_id").is_in(node["turns"]))
    days = mine.select(day=local.dt.date()).drop_nulls().unique()["day"].sort().to_list()
    who = [name for name in mine["speaker"].unique(maintain_order=True) if name not in ROLES]
    sessions = nodes.filter(pl.col("kind") == "session", pl.col("turns").list.first().is_in(node["turns"]))
    head = f"## {_span(days) or 'Undated'}"
    them = " with the assistant" if "assistant" in mine["role"] else ""
    met = f"{_joined(who) or 'The user'} talked{them} {_on(days)}" + f" ({mine.height:,} messages)."
    named = [
        (at, _joined(names[:_MOST_TOPICS])) for at, names in sessions.select("start", "topics").iter_rows() if names
    ]
    about = [f"{_day(at, tz)}{names}" if len(named) > 1 else names for at, names in named]
    parts = [head, met + (f" It was about {'; '.join(about)}." if about else "")]
    lines, told = highlights(mine), 0
    for section, title in SECTIONS.items():
        room = _ENOUGH - told if section == "said" else most
        chosen = _best(lines.filter(pl.col("section") == section), room) if room > 0 else lines.clear()
        told += chosen.height
        rows = [_line(row, tz) for row in chosen.iter_rows(named=True)]
        parts += [f"**{title}**\n\n" + "\n".join(rows)] if rows else []
    return "\n\n".join(parts)


def _plain(text: str, names: frozenset[str]) -> str:
    """Leave out smileys, brackets around, and the calls ("Wow, Joanna,") and words that only lead into a sentence."""
    text = " ".join(_SIGNS.sub(" ", text).split())
    text = text[1:-1] if text.startswith("(") and text.endswith(")") else text
    lead = text[: len(text) - len(led(text))]
    text = text if TIMES & set(words(lead)) else led(text)
    head, comma, rest = text.partition(", ")
    called = {re.sub(r"\W", "", word).lower() for word in head.split()}
    return (led(rest) if comma and called and called <= names | COURTESY else text).lstrip(" -–—,.;:")


def _stands_alone(text: str) -> bool:
    said = text.split()
    if not _FEWEST <= len(said) <= _MOST or not text.rstrip("\"”'’)").endswith((".", "!")):
        return False
    if re.search(r"\byou(?:r|rs|['’]\w+)?\b", text, re.I) or said[0].strip(".,!").lower() in COURTESY:
        return False
    meant = [phrase for phrase in noun_phrases(text) if not phrase[-1].key.endswith("ing")]
    pointing = _POINTING.search(text)
    tells = sum(map(telling, tokens(text))) >= _TELLING
    return tells and bool(meant) and (pointing is None or meant[0][-1].end < pointing.start())


def _line(row: dict[str, object], tz: str) -> str:
    at, text = row["timestamp"], str(row["text"])
    day = at.astimezone(ZoneInfo(tz)).date() if at is not None else None  # type: ignore[attr-defined]
    said = dated(text, day) if day else text
    name = "" if row["speaker"] in ROLES else f"{row['speaker']}"
    lead = ", ".join(part for part in (name, f"{day:%A} {day.day} {day:%B}" if day else "") if part)
    return f"- {lead}: {said} `{row['turn_id']}`" if lead else f"- {said} `{row['turn_id']}`"


def _day(start: object, tz: str) -> str:
    return "" if start is None else f"{start.astimezone(ZoneInfo(tz)):%A}: "  # type: ignore[attr-defined]


def _span(days: Sequence[date]) -> str:
    if not days or len(days) == 1:
        return "".join(map(written, days))
    first, last = days[0], days[-1]
    same = first.replace(day=1) == last.replace(day=1)
    return f"{first.day if same else written(first)} to {written(last)}"


def _on(days: Sequence[date]) -> str:
    return "without dates" if not days else "on " + _joined(f"{day:%A} {day.day} {day:%B}" for day in days)


def _joined(parts: Iterable[str]) -> str:
    *most, last = list(parts) or [""]
    return f"{', '.join(most)} and {last}" if most else last
