"""Summaries by a language model: what it is asked, what it may answer, and how its numbers become turn ids."""

from __future__ import annotations

from typing import Annotated, NamedTuple

import polars as pl
from pydantic import BaseModel, Field, StringConstraints

from memlab.summarize.sentences import shared, words

PROMPTS_VERSION = 1
"""Raised with every change of what is asked: of the prompt, or of the shape of the answer."""

SYSTEM = (
    "You summarise conversations. Use only what the turns say: add nothing, guess nothing. Keep names, numbers, "
    "amounts and dates as they are written. Write short sentences in the third person, with the speaker's name instead "
    'of "I", "he", "she" or "they". With each sentence give the numbers of the turns it stands on. '
    "sentences: two to six, on what was done, what was decided, and what is open. topics: up to eight keywords. "
    "decisions: what was decided. action_items: what somebody is still to do. open_questions: what was asked and not "
    "answered. Leave a list empty if there is nothing for it."
)

_SHORTEST_TURN = 40
# Turns that a sentence without numbers may get, and the share of its telling words that a turn needs to be one.
_GUESSES = 2
_SHARE = 0.3

_Sentence = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=400)]
_Keyword = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=60)]


class Point(BaseModel, extra="forbid"):
    """One sentence and the turns that it stands on."""

    text: _Sentence
    turns: Annotated[list[int], Field(max_length=12)]


class Answer(BaseModel, extra="forbid"):
    """What a model answers about a session; every text and list is bounded."""

    sentences: Annotated[list[Point], Field(min_length=1, max_length=8)]
    topics: Annotated[list[_Keyword], Field(max_length=12)]
    decisions: Annotated[list[Point], Field(max_length=12)]
    action_items: Annotated[list[Point], Field(max_length=12)]
    open_questions: Annotated[list[Point], Field(max_length=12)]


class Supported(NamedTuple):
    """Sentences, and for each the ids of its turns."""

    texts: list[str]
    evidence: list[list[str]]


def prompts(turns: pl.DataFrame, *, max_chars: int | None = None) -> pl.DataFrame:
    """Write each session for a model: ``[1] (8 May 2023) Mel: text`` a turn; ``session_id`` and ``prompt``.

    Of a session that is too long, the longest turns are cut, all to one length, so that each turn is still seen.

    >>> import memlab
    >>> turn = memlab.Turn("u/s/1", "u", "u/s", 1, "Mel", "user", "I moved.", "a house")
    >>> prompts(memlab.records.frame(memlab.Turn, [turn]))["prompt"].to_list()
    ['[1] Mel: I moved. [image: a house]']
    """
    number = pl.int_range(1, pl.len() + 1).over("session_id").cast(pl.String)
    day = pl.col("timestamp").dt.strftime(" (%-d %B %Y)").fill_null("")
    image = pl.when(pl.col("caption").is_null()).then(pl.lit("")).otherwise(" [image: " + pl.col("caption") + "]")
    text = (pl.col("text") + image).str.replace_all(r"\s+", " ").str.strip_chars()
    lines = turns.select("session_id", head=pl.format("[{}]{} {}: ", number, day, "speaker"), text=text)
    sessions = lines.group_by("session_id", maintain_order=True).agg("head", "text")
    written = [_fitted(heads, texts, max_chars) for _, heads, texts in sessions.iter_rows()]
    return sessions.select("session_id", prompt=pl.Series(written, dtype=pl.String))


def _fitted(heads: list[str], texts: list[str], max_chars: int | None) -> str:
    """Join lines, with the longest texts cut to the one length at which all fit."""
    if max_chars is not None:
        longest = _level(sorted(map(len, texts)), max_chars - sum(map(len, heads)) - len(heads))
        texts = [text if len(text) <= longest else text[: longest - 1] + "…" for text in texts]
    return "\n".join(map("".join, zip(heads, texts, strict=True)))


def _level(lengths: list[int], room: int) -> int:
    """Find the length to which the longest are cut, so that the sum fits into the room."""
    for left, length in zip(range(len(lengths), 0, -1), lengths, strict=True):
        if length * left > room:
            return max(room // left, _SHORTEST_TURN)
        room -= length
    return lengths[-1]


def supported(points: list[Point], turns: pl.DataFrame) -> Supported:
    """Turn the numbers of turns into ids; a sentence that stands on no turn is dropped.

    Numbers that no turn of the session has are dropped. A sentence without any gets the turns that share most of its
    words.
    """
    ids = turns["turn_id"].to_list()
    sentences = Supported([], [])
    for point in points:
        numbers = sorted({number for number in point.turns if 1 <= number <= len(ids)})
        evidence = [ids[number - 1] for number in numbers] or _alike(point.text, turns)
        if evidence and point.text not in sentences.texts:
            sentences.texts.append(point.text)
            sentences.evidence.append(evidence)
    return sentences


def _alike(text: str, turns: pl.DataFrame) -> list[str]:
    """Find the turns that share most of a sentence's telling words, in their order; maybe none."""
    asked = pl.DataFrame({"scope": turns["scope"][:1], "speaker": "", "text": text})
    # Together, so that the names of those who take part are left out of the sentence as well.
    rows = pl.concat([turns.select(asked.columns), asked]).with_row_index("row")
    pairs = shared(rows.tail(1), rows.head(-1).with_columns(other="row"), words(rows), by="scope")
    likely = pairs.filter((pl.col("share") >= _SHARE) & (2 * pl.col("shared") > pl.col("shared").max()))
    best = likely.sort("shared", "other", descending=[True, False])["other"].head(_GUESSES)
    return turns["turn_id"].gather(best.sort()).to_list()
