"""What somebody else's code gives back: in time, and as rows."""

from __future__ import annotations

import inspect
import math
import threading
import time
from collections.abc import Callable, Mapping
from itertools import islice
from typing import Any

import polars as pl

from memlab.errors import DataError
from memlab.terminal import shorten_line

LONGEST_TEXT, LONGEST_ANSWER = 100_000, 1_000_000
"""Characters of one text, and of all texts of one question."""
KnownTurn = tuple[str, str, str | None]
"""Id, text and time of a turn: the latter stand where a row that names it has none."""


class Failure(DataError):
    """What a memory did that ends its scope or its question."""


class Unanswered(Failure):
    """A call that failed, or gave nothing in time."""


def call_with_timeout(seconds: float, verb: str, call: Callable[[], Any]) -> tuple[Any, float]:
    """Call somebody else's code and time it; give up waiting after a while, whatever it goes on doing.

    :raises Failure: as the call does, and Unanswered for any other error and for none in time.
    :raises KeyboardInterrupt: as the call does.
    """
    given, errors = (
        list[Any](),
        list[BaseException]([Unanswered(f"{verb} gave nothing within {seconds:g} s")]),
    )

    def run() -> None:
        try:
            given.append(call())
        except BaseException as error:  # whatever it raises
            is_known = isinstance(error, Failure | KeyboardInterrupt)  # Ctrl-C ends all
            errors.append(error if is_known else Unanswered(f"{verb} failed: {error_line(error)}"))

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
    """List what a search gave: ``text``, ``score``, ``source_ids``, ``time``, ``query`` and ``id``, or None for each.

    A score of LangChain's ``similarity_search_with_score`` is a distance in some stores and a
    similarity in others, and the pair does not say which. The order of the list does: it is best
    first, so scores that rise along it are distances, and are negated. All others stay as they are
    given, also that of a single pair, which has no order.

    :param answer: texts, mappings, documents of LangChain or nodes of LlamaIndex, or pairs of one
        of these and its score; a frame, or a mapping with these under ``rows`` or ``results``.
        ``text`` may be called ``memory``; ``time`` and the turn's ``id`` (or ``turn``) may stand in
        ``metadata``.
    :returns: at most one row more than k; a row that cannot be read has its ``problem`` instead.
    :raises Failure: when it is none of these.

    >>> from memlab.memories import list_returned_rows
    >>> list_returned_rows({"results": [{"memory": "Ann moved.", "metadata": {"id": "turn-1"}}]}, 3)[0]["id"]
    'turn-1'
    """
    if inspect.iscoroutine(answer):
        answer.close()
        raise Failure("search is async; give a function that waits: return asyncio.run(...)")
    rows = answer.get("rows", answer.get("results")) if isinstance(answer, Mapping) else answer
    rows = rows.head(k + 1).to_dicts() if isinstance(rows, pl.DataFrame) else rows
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
        if isinstance(row, str):
            row = {"text": row}
        elif hasattr(row, "page_content"):  # a document of LangChain
            row = {"text": row.page_content, "metadata": {"id": row.id, **row.metadata}}
        elif hasattr(row, "node"):  # a node of LlamaIndex
            row = {
                "text": row.node.get_content(),
                "score": row.score,
                "metadata": row.node.metadata,
            }
        about = row.get("metadata")
        about = about if isinstance(about, Mapping) else {}
        text = row.get("text", row.get("memory"))
        own = {name: row.get(name) for name in ("score", "source_ids", "query")}
        return own | {
            "text": text,
            "time": row.get("time", about.get("time")),
            "id": about.get("turn", about.get("id", row.get("id"))),
        }
    except Exception as error:  # whatever a row does
        return {"problem": f"{type(row).__name__} is no row ({type(error).__name__})"}


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
    """Take the rows of one question that can be used, and a line for what was wrong with each other.

    :param given: as :func:`list_returned_rows` lists them.
    :param known: the ids that it may name, or be instead of a text, and the turns that they stand
        for.
    :returns: rows of rank, text, score, turns (or None) and time; and the lines.
    """
    odd = [f"more than {k} rows, the rest is left out"] if len(given) > k else []
    rows: list[tuple[Any, ...]] = []
    left, seen = LONGEST_ANSWER, set[str]()
    for place, row in enumerate(given[:k], 1):
        try:
            text, score, turns, when, lines = _read_usable_row(
                row, known, seen, min(left, LONGEST_TEXT)
            )
        except Exception as error:  # whatever a value does
            odd.append(f"row {place}: {shorten_line(error, 200)}, left out")
            continue
        odd += [f"row {place}: {line}" for line in lines]
        seen.update(turns if turns is not None and len(turns) == 1 else ())
        left -= len(text)
        rows.append((len(rows) + 1, text, score, turns, when))
    return rows, odd


def _read_usable_row(
    row: dict[str, Any], known: Mapping[str, KnownTurn], seen: set[str], most: int
) -> tuple[Any, ...]:
    """Give text, score, turns (None where it names none) and time of a row, and a line for each thing left out."""
    if "problem" in row:
        raise ValueError(row["problem"])
    text, ids, lines, turns = row["text"], row["source_ids"], list[str](), None
    if ids is None and isinstance(text, str) and text in known:
        ids, text = text, None
    if ids is not None:
        listed = [ids] if isinstance(ids, (str, int)) else [*ids]
        if any(isinstance(each, float) for each in listed):
            raise ValueError("a number stands among its ids")
        ids = [str(each) for each in listed]
        turns = list(dict.fromkeys(known[each][0] for each in ids if each in known))
        strange = [each for each in ids if each not in known]
        lines += (
            [f"id {shorten_line(strange[0], 80)!r} is no turn of this scope"] if strange else []
        )
    elif isinstance(row["id"], str) and row["id"] in known:
        turns = [known[row["id"]][0]]
    if row["query"] not in (None, 0):
        raise ValueError("it is of another query than the one asked")
    if text is None and turns:
        text, row["time"] = (
            "\n".join(known[turn][1] for turn in turns),
            row["time"] or known[turns[0]][2],
        )
    if not isinstance(text, str):
        raise ValueError(lines[0] if lines else f"its text is {type(text).__name__}")
    if turns is not None and len(turns) == 1 and turns[0] in seen:
        raise ValueError(f"turn {turns[0]!r} again")
    if len(text) > most:
        lines.append(f"a text of {len(text):,} characters, cut to {most:,}")
    score, when = _finite_number(row["score"]), row["time"]
    when = None if when is None else _replace_surrogates(shorten_line(when, 40))
    if score is None and row["score"] is not None:
        lines.append("a score that is no finite number, left out")
    return _replace_surrogates(text[:most]), score, turns, when, lines


def _replace_surrogates(text: str) -> str:
    """Replace what UTF-8 cannot hold."""
    return text.encode("utf-8", "replace").decode()


def _finite_number(score: Any) -> float | None:
    try:
        value = math.nan if isinstance(score, (str, bytes)) else float(score)
    except (TypeError, ValueError, OverflowError):
        return None
    return value if math.isfinite(value) else None
