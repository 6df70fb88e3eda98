"""What a search found: a frame that prints as lines to read, in the width of the terminal."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Mapping
from datetime import datetime
from typing import Any

import polars as pl

from memlab.terminal_text import escape_line

HIT_COLUMNS = ("rank", "score", "time", "speaker", "text", "session_id", "turn_id")
_NARROWEST, _WIDEST = 40, 120
_PIPED_WIDTH = 100
"""Characters a line where no terminal says how many it has."""
_MOST_TEXT_LINES = 3
_INDENT = " " * 5


class FoundMessages(pl.DataFrame):
    """A frame of what was found for a question, the best first, that prints as lines to read.

    A frame derived from this one without one of :data:`HIT_COLUMNS` prints as any other.

    :param question: what was searched for.
    :param pipeline: what the scores come from.

    >>> from datetime import datetime, UTC
    >>> from memlab.found_messages import FoundMessages
    >>> hit = {"rank": 1, "score": 3.2815, "time": datetime(2026, 2, 26, 21, 7, tzinfo=UTC)}
    >>> hit |= {"speaker": "Mel", "text": "Tea.", "session_id": "mel/s1", "turn_id": "mel/1.1"}
    >>> print(FoundMessages([hit], question="What does Mel drink?", pipeline="bm25"))
    question: What does Mel drink?
      1  2026-02-26 21:07  Mel  score 3.281
         Tea.
         session mel/s1  message mel/1.1
    scores of bm25: higher is better, comparable within this question only
    """

    question: str = ""
    pipeline: str = ""

    def __init__(self, data: Any, *, question: str = "", pipeline: str = "") -> None:
        super().__init__(data)
        self.question = question
        self.pipeline = pipeline

    def __str__(self) -> str:
        if not self.question or not set(HIT_COLUMNS) <= set(self.columns):
            return super().__str__()
        return "\n".join(format_hits_as_lines(self, question=self.question, pipeline=self.pipeline))

    __repr__ = __str__


def format_hits_as_lines(hits: pl.DataFrame, *, question: str, pipeline: str) -> list[str]:
    """Write what was found for a question: the question, each hit, and what its score is.

    :param hits: :data:`HIT_COLUMNS`; of sessions ``speaker`` and ``turn_id`` are null.
    :param pipeline: what the scores come from.
    :returns: lines as wide as the terminal; a long text ends in "…".
    """
    width = readable_line_width()
    lines = _wrap_and_escape(
        f"question: {question}", width, indent=" " * len("question: "), first=""
    )
    if hits.is_empty():
        return [*lines, "nothing matches"]
    for hit in hits.iter_rows(named=True):
        lines += _format_hit_as_lines(hit, width)
    score_note = f"scores of {pipeline}: higher is better, comparable within this question only"
    return lines + _wrap_and_escape(score_note, width, indent=_INDENT, first="")


def readable_line_width() -> int:
    """Give how many characters a line has: those of the terminal, within what is readable."""
    columns = shutil.get_terminal_size((_PIPED_WIDTH, 24)).columns
    return min(max(columns, _NARROWEST), _WIDEST)


def _format_hit_as_lines(hit: Mapping[str, Any], width: int) -> list[str]:
    """Write one hit: rank, time, speaker and score, below it its text and where it stands."""
    head_parts = [f"{hit['rank']:>3}", _minute_or_undated(hit["time"])]
    if hit["speaker"]:
        head_parts.append(escape_line(hit["speaker"]))
    head_parts.append(f"score {hit['score']:.4g}")
    text_lines = _wrap_and_escape(hit["text"], width, indent=_INDENT, most_lines=_MOST_TEXT_LINES)
    return ["  ".join(head_parts), *text_lines, *_id_lines_of_hit(hit, width)]


def _id_lines_of_hit(hit: Mapping[str, Any], width: int) -> list[str]:
    """Write the ids of a hit: in one line, or in one each where they are long."""
    places = [f"{_INDENT}session {escape_line(hit['session_id'])}"]
    if hit["turn_id"]:
        places.append(f"{_INDENT}message {escape_line(hit['turn_id'])}")
    joined_places = "  ".join([places[0], *(place.strip() for place in places[1:])])
    if len(joined_places) <= width:
        return [joined_places]
    return places


def _minute_or_undated(when: datetime | None) -> str:
    if when is None:
        return "undated"
    return f"{when:%Y-%m-%d %H:%M}"


def _wrap_and_escape(
    text: str, width: int, *, indent: str, first: str | None = None, most_lines: int | None = None
) -> list[str]:
    """Cut a text into lines; where only so many are wanted, "…" says that there is more."""
    if first is None:
        first = indent
    return textwrap.wrap(
        escape_line(text),
        width,
        initial_indent=first,
        subsequent_indent=indent,
        max_lines=most_lines,
        placeholder=" …",
        break_on_hyphens=False,
    )
