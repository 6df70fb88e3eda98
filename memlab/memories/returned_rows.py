"""What somebody else's code gives back: in time, and as rows."""

from __future__ import annotations

import inspect
import math
import threading
import time
from collections.abc import Callable, Mapping
from itertools import islice
from typing import Any, NamedTuple

import polars as pl

from memlab.errors import DataError
from memlab.terminal import shorten_line

LONGEST_TEXT = 100_000
"""Characters of one text; ``LONGEST_ANSWER`` of all texts of one question."""
LONGEST_ANSWER = 1_000_000
KnownTurn = tuple[str, str, str | None]
"""Id, text and time of a turn: the latter stand where a row that names it has none."""


class Failure(DataError):
    """What a memory did that ends its scope or its question."""


class Unanswered(Failure):
    """A call that failed, or gave nothing in time."""


def call_with_timeout(seconds: float, verb: str, call: Callable[[], Any]) -> tuple[Any, float]:
    """Call somebody else's code and time it; give up waiting after a while.

    :raises Failure: as the call does, and Unanswered for any other error and for none in time.
    :raises KeyboardInterrupt: as the call does.
    """
    given = list[Any]()
    errors = list[BaseException]([Unanswered(f"{verb} gave nothing within {seconds:g} s")])

    def run() -> None:
        try:
            given.append(call())
        except (Failure, KeyboardInterrupt) as error:  # Ctrl-C ends all
            errors.append(error)
        except BaseException as error:  # whatever it raises
            errors.append(Unanswered(f"{verb} failed: {error_line(error)}"))

    started = time.perf_counter()
    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(seconds)
    if not given:
        raise errors[-1]
    return given[0], time.perf_counter() - started


def error_line(error: BaseException) -> str:
    """Say what somebody else's code raised, in a line."""
    return shorten_line(f"{type(error).__name__}: {error}", 300)


def list_returned_rows(answer: Any, k: int) -> list[dict[str, Any]]:
    """List what a search gave.

    A score of LangChain's ``similarity_search_with_score`` is a distance in some stores and a
    similarity in others, and the pair does not say which. The order of the list does: it is best
    first, so scores that rise along it are distances, and are negated. All others stay as they are
    given, also that of a single pair, which has no order.

    :param answer: texts, mappings, documents of LangChain or nodes of LlamaIndex, or pairs of one
        of these and its score; a frame, or a mapping with these under ``rows`` or ``results``.
        ``text`` may be called ``memory``; ``time`` and the turn's ``id`` (or ``turn``) may stand in
        ``metadata``.
    :returns: at most one row more than k: ``text``, ``score``, ``source_ids``, ``time``, ``query``
        and ``id``, or None for each; a row that cannot be read has its ``problem`` instead.
    :raises Failure: when it is none of these.

    >>> from memlab.memories import list_returned_rows
    >>> found = {"memory": "Ann moved.", "metadata": {"id": "turn-1"}}
    >>> list_returned_rows({"results": [found]}, 3)[0]["id"]
    'turn-1'
    """
    if inspect.iscoroutine(answer):
        answer.close()
        raise Failure("search is async; give a function that waits: return asyncio.run(...)")
    rows = answer
    if isinstance(answer, Mapping):
        rows = answer.get("rows", answer.get("results"))
    if isinstance(rows, pl.DataFrame):
        rows = rows.head(k + 1).to_dicts()
    if isinstance(rows, (str, bytes)) or not hasattr(rows, "__iter__"):
        raise Failure(
            f"search gave {type(answer).__name__}; expected rows, each a text or with text"
        )
    given = [*islice(rows, k + 1)]
    read = [_read_row(row) for row in given]
    if all(isinstance(row, (tuple, list)) for row in given):
        _negate_distances(read)
    return read


def _negate_distances(rows: list[dict[str, Any]]) -> None:
    """Negate the scores of pairs where they rise along the list: the best stands first."""
    readable = [row for row in rows if _finite_number(row.get("score")) is not None]
    scores = [row["score"] for row in readable]
    if not scores or scores[0] == scores[-1] or scores != sorted(scores):
        return
    for row in readable:
        row["score"] = -row["score"]


def _read_row(row: Any) -> dict[str, Any]:
    try:
        if isinstance(row, (tuple, list)):  # a document of LangChain and its score
            document, score = row
            return _read_row(document) | {"score": _read_pair_score(score)}
        row = _as_mapping(row)
        about = row.get("metadata")
        if not isinstance(about, Mapping):
            about = {}
        read = {name: row.get(name) for name in ("score", "source_ids", "query")}
        read["text"] = row.get("text", row.get("memory"))
        read["time"] = row.get("time", about.get("time"))
        read["id"] = about.get("turn", about.get("id", row.get("id")))
    except Exception as error:  # whatever a row does
        return {"problem": f"{type(row).__name__} is no row ({type(error).__name__})"}
    return read


def _as_mapping(row: Any) -> Any:
    """Give a text, a document of LangChain or a node of LlamaIndex as a mapping."""
    if isinstance(row, str):
        return {"text": row}
    if hasattr(row, "page_content"):
        return {"text": row.page_content, "metadata": {"id": row.id, **row.metadata}}
    if hasattr(row, "node"):
        about = {"score": row.score, "metadata": row.node.metadata}
        return {"text": row.node.get_content(), **about}
    return row


def _read_pair_score(score: Any) -> float | None:
    """Read the second of a pair.

    :raises TypeError: when it is no number: two texts in a list are no pair.
    """
    if isinstance(score, (str, bytes)):
        raise TypeError("the second of a pair is a text, not a score")
    return None if score is None else float(score)


def select_usable_rows(
    given: list[dict[str, Any]], known: Mapping[str, KnownTurn], k: int
) -> tuple[list[tuple[Any, ...]], list[str]]:
    """Take the rows of one question that can be used, and a line for what is wrong with another.

    :param given: as :func:`list_returned_rows` lists them.
    :param known: the ids that it may name, or be instead of a text, and the turns that they stand
        for.
    :returns: rows of rank, text, score, turns (or None) and time; and the lines.
    """
    odd = list[str]()
    if len(given) > k:
        odd.append(f"more than {k} rows, the rest is left out")
    rows = list[tuple[Any, ...]]()
    n_left = LONGEST_ANSWER
    seen = set[str]()
    for place, row in enumerate(given[:k], 1):
        lines = list[str]()
        try:
            used = _read_usable_row(row, known, seen, min(n_left, LONGEST_TEXT), lines)
        except Exception as error:  # whatever a value does
            odd.append(f"row {place}: {shorten_line(error, 200)}, left out")
            continue
        odd += [f"row {place}: {line}" for line in lines]
        if used.stands_for:
            seen.add(used.stands_for)
        n_left -= len(used.text)
        rows.append((len(rows) + 1, *used))
    return rows, odd


class _UsableRow(NamedTuple):
    """What is kept of a row.

    :param turns: that it names; None where it names none.
    """

    text: str
    score: float | None
    turns: list[str] | None
    time: str | None

    @property
    def stands_for(self) -> str | None:
        """The one turn that it is; None where it is none or several."""
        if self.turns is None or len(self.turns) != 1:
            return None
        return self.turns[0]


def _read_usable_row(
    row: dict[str, Any],
    known: Mapping[str, KnownTurn],
    seen: set[str],
    most: int,
    lines: list[str],
) -> _UsableRow:
    """Read a row.

    :param seen: turns that other rows are, alone.
    :param most: characters of its text.
    :param lines: gets one for each thing that is left out of the row.
    :raises Exception: when it cannot be used.
    """
    if "problem" in row:
        raise ValueError(row["problem"])
    text = row["text"]
    when = row["time"]
    if row["source_ids"] is None and isinstance(text, str) and text in known:
        row = {**row, "source_ids": text}
        text = None
    turns = _named_turns(row, known, lines)
    if row["query"] not in (None, 0):
        raise ValueError("it is of another query than the one asked")
    if text is None and turns:
        text = "\n".join(known[turn][1] for turn in turns)
        when = when or known[turns[0]][2]
    if not isinstance(text, str):
        lines.append(f"its text is {type(text).__name__}")
        raise ValueError(lines[0])
    if len(text) > most:
        lines.append(f"a text of {len(text):,} characters, cut to {most:,}")
    score = _finite_number(row["score"])
    if when is not None:
        when = _replace_surrogates(shorten_line(when, 40))
    if score is None and row["score"] is not None:
        lines.append("a score that is no finite number, left out")
    used = _UsableRow(_replace_surrogates(text[:most]), score, turns, when)
    if used.stands_for in seen:
        raise ValueError(f"turn {used.stands_for!r} again")
    return used


def _named_turns(
    row: Mapping[str, Any], known: Mapping[str, KnownTurn], lines: list[str]
) -> list[str] | None:
    """Give the turns that a row names by ``source_ids`` or its ``id``; None where it names none.

    :param lines: gets one for an id that is no turn.
    """
    ids = row["source_ids"]
    if ids is None:
        own = row["id"]
        if isinstance(own, str) and own in known:
            return [known[own][0]]
        return None
    if isinstance(ids, (str, int)):
        ids = [ids]
    turns = dict[str, None]()
    strange = list[str]()
    for each in ids:
        if isinstance(each, float):
            raise ValueError("a number stands among its ids")
        if str(each) in known:
            turns[known[str(each)][0]] = None
        else:
            strange.append(str(each))
    if strange:
        lines.append(f"id {shorten_line(strange[0], 80)!r} is no turn of this scope")
    return [*turns]


def _replace_surrogates(text: str) -> str:
    """Replace what UTF-8 cannot hold."""
    return text.encode("utf-8", "replace").decode()


def _finite_number(score: Any) -> float | None:
    if isinstance(score, (str, bytes)):
        return None
    try:
        value = float(score)
    except (TypeError, ValueError, OverflowError):
        return None
    return value if math.isfinite(value) else None
