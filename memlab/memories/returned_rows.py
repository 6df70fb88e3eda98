"""What somebody else's code gives back: in time, and as rows."""

from __future__ import annotations

import inspect
import math
import threading
import time
from collections.abc import Callable, Mapping
from itertools import islice
from typing import Any, NamedTuple, TypeVar

import polars as pl

from memlab.errors import DataError
from memlab.terminal_text import shorten_line

LONGEST_TEXT = 100_000
"""Characters of one text; ``LONGEST_ANSWER`` of all texts of one question."""
LONGEST_ANSWER = 1_000_000
T = TypeVar("T")
JsonValue = Any
"""A value of JSON: a mapping, a list, a text, a number, a truth value or ``None``."""
SearchAnswer = Any
"""What somebody else's search gave, before :func:`list_returned_rows` has read it."""
RankedRow = tuple[int, str, float | None, list[str] | None, str | None]
"""Rank, text, score, ids of turns and time of a row that can be used."""


class KnownTurn(NamedTuple):
    """A turn that a row may name: its text and time stand where the row has none."""

    turn_id: str
    text: str
    time: str | None


class Failure(DataError):
    """What a memory did that ends its scope or its question."""


class Unanswered(Failure):
    """A call that failed, or gave nothing in time."""


def call_and_time_with_timeout(
    timeout_seconds: float, verb: str, call: Callable[[], T]
) -> tuple[T, float]:
    """Call somebody else's code and time it; give up waiting after a while.

    :raises Failure: as the call does, and Unanswered for any other error and for none in time.
    :raises KeyboardInterrupt: as the call does.
    """
    call_results = list[T]()
    call_errors = list[BaseException](
        [Unanswered(f"{verb} gave nothing within {timeout_seconds:g} s")]
    )

    def call_and_keep_result() -> None:
        try:
            call_results.append(call())
        except (Failure, KeyboardInterrupt) as error:  # Ctrl-C ends all
            call_errors.append(error)
        except BaseException as error:  # whatever it raises
            call_errors.append(Unanswered(f"{verb} failed: {format_error_line(error)}"))

    start_time = time.perf_counter()
    call_thread = threading.Thread(target=call_and_keep_result, daemon=True)
    call_thread.start()
    call_thread.join(timeout_seconds)
    if not call_results:
        raise call_errors[-1]
    return call_results[0], time.perf_counter() - start_time


def format_error_line(error: BaseException) -> str:
    """Say what somebody else's code raised, in a line."""
    return shorten_line(f"{type(error).__name__}: {error}", 300)


def list_returned_rows(answer: SearchAnswer, k: int) -> list[dict[str, Any]]:
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
    answer_rows = answer
    if isinstance(answer, Mapping):
        answer_rows = answer.get("rows", answer.get("results"))
    if isinstance(answer_rows, pl.DataFrame):
        answer_rows = answer_rows.head(k + 1).to_dicts()
    if isinstance(answer_rows, (str, bytes)) or not hasattr(answer_rows, "__iter__"):
        raise Failure(
            f"search gave {type(answer).__name__}; expected rows, each a text or with text"
        )
    listed_rows = [*islice(answer_rows, k + 1)]
    rows_read = [_read_answer_row_or_problem(listed_row) for listed_row in listed_rows]
    if all(isinstance(listed_row, (tuple, list)) for listed_row in listed_rows):
        _negate_rising_scores_in_place(rows_read)
    return rows_read


def _negate_rising_scores_in_place(pair_rows: list[dict[str, Any]]) -> None:
    """Negate the scores of pairs where they rise along the list: the best stands first."""
    scored_rows = [
        scored_row
        for scored_row in pair_rows
        if _finite_number_or_none(scored_row.get("score")) is not None
    ]
    row_scores = [scored_row["score"] for scored_row in scored_rows]
    if not row_scores or row_scores[0] == row_scores[-1] or row_scores != sorted(row_scores):
        return
    for scored_row in scored_rows:
        scored_row["score"] = -scored_row["score"]


def _read_answer_row_or_problem(raw_row: Any) -> dict[str, Any]:
    try:
        if isinstance(raw_row, (tuple, list)):  # a document of LangChain and its score
            document, pair_score = raw_row
            return _read_answer_row_or_problem(document) | {
                "score": _read_score_of_pair(pair_score)
            }
        raw_row = _raw_row_to_mapping_where_known(raw_row)
        metadata = raw_row.get("metadata")
        if not isinstance(metadata, Mapping):
            metadata = {}
        fields_read = {
            field_name: raw_row.get(field_name) for field_name in ("score", "source_ids", "query")
        }
        fields_read["text"] = raw_row.get("text", raw_row.get("memory"))
        fields_read["time"] = raw_row.get("time", metadata.get("time"))
        fields_read["id"] = metadata.get("turn", metadata.get("id", raw_row.get("id")))
    except Exception as error:  # whatever a row does
        return {"problem": f"{type(raw_row).__name__} is no row ({type(error).__name__})"}
    return fields_read


def _raw_row_to_mapping_where_known(raw_row: Any) -> Any:
    """Give a text, a document of LangChain or a node of LlamaIndex as a mapping."""
    if isinstance(raw_row, str):
        return {"text": raw_row}
    if hasattr(raw_row, "page_content"):
        return {"text": raw_row.page_content, "metadata": {"id": raw_row.id, **raw_row.metadata}}
    if hasattr(raw_row, "node"):
        node_fields = {"score": raw_row.score, "metadata": raw_row.node.metadata}
        return {"text": raw_row.node.get_content(), **node_fields}
    return raw_row


def _read_score_of_pair(raw_score: Any) -> float | None:
    """Read the second of a pair.

    :raises TypeError: when it is no number: two texts in a list are no pair.
    """
    if isinstance(raw_score, (str, bytes)):
        raise TypeError("the second of a pair is a text, not a score")
    return None if raw_score is None else float(raw_score)


def select_usable_rows_and_problems(
    listed_rows: list[dict[str, Any]], turn_by_id: Mapping[str, KnownTurn], k: int
) -> tuple[list[RankedRow], list[str]]:
    """Take the rows of one question that can be used, and a line for what is wrong with another.

    :param listed_rows: as :func:`list_returned_rows` lists them.
    :param turn_by_id: the ids that it may name, or be instead of a text, and the turns that they
        stand for.
    :returns: rows of rank, text, score, turns (or None) and time; and the lines.
    """
    problem_texts = list[str]()
    if len(listed_rows) > k:
        problem_texts.append(f"more than {k} rows, the rest is left out")
    usable_rows = list[RankedRow]()
    characters_left = LONGEST_ANSWER
    turns_seen = set[str]()
    for row_number, listed_row in enumerate(listed_rows[:k], 1):
        row_problems = list[str]()
        try:
            usable_row = _read_usable_row_and_note_problems(
                listed_row, turn_by_id, turns_seen, min(characters_left, LONGEST_TEXT), row_problems
            )
        except Exception as error:  # whatever a value does
            problem_texts.append(f"row {row_number}: {shorten_line(error, 200)}, left out")
            continue
        problem_texts += [f"row {row_number}: {row_problem}" for row_problem in row_problems]
        if usable_row.id_of_only_named_turn:
            turns_seen.add(usable_row.id_of_only_named_turn)
        characters_left -= len(usable_row.text)
        usable_rows.append((len(usable_rows) + 1, *usable_row))
    return usable_rows, problem_texts


class _UsableRow(NamedTuple):
    """What is kept of a row.

    :param turns: that it names; None where it names none.
    """

    text: str
    score: float | None
    turns: list[str] | None
    time: str | None

    @property
    def id_of_only_named_turn(self) -> str | None:
        """The one turn that it is; None where it is none or several."""
        if self.turns is None or len(self.turns) != 1:
            return None
        return self.turns[0]


def _read_usable_row_and_note_problems(
    listed_row: dict[str, Any],
    turn_by_id: Mapping[str, KnownTurn],
    turns_seen: set[str],
    max_characters: int,
    row_problems: list[str],
) -> _UsableRow:
    """Read a row.

    :param turns_seen: turns that other rows are, alone.
    :param max_characters: characters of its text.
    :param row_problems: gets one for each thing that is left out of the row.
    :raises Exception: when it cannot be used.
    """
    if "problem" in listed_row:
        raise ValueError(listed_row["problem"])
    row_text = listed_row["text"]
    row_time = listed_row["time"]
    if listed_row["source_ids"] is None and isinstance(row_text, str) and row_text in turn_by_id:
        listed_row = {**listed_row, "source_ids": row_text}
        row_text = None
    named_turns = _turn_ids_of_row_and_note_strange_ids(listed_row, turn_by_id, row_problems)
    if listed_row["query"] not in (None, 0):
        raise ValueError("it is of another query than the one asked")
    if row_text is None and named_turns:
        row_text = "\n".join(turn_by_id[named_turn].text for named_turn in named_turns)
        row_time = row_time or turn_by_id[named_turns[0]].time
    if not isinstance(row_text, str):
        row_problems.append(f"its text is {type(row_text).__name__}")
        raise ValueError(row_problems[0])
    if len(row_text) > max_characters:
        row_problems.append(f"a text of {len(row_text):,} characters, cut to {max_characters:,}")
    row_score = _finite_number_or_none(listed_row["score"])
    if row_time is not None:
        row_time = _replace_surrogates(shorten_line(row_time, 40))
    if row_score is None and listed_row["score"] is not None:
        row_problems.append("a score that is no finite number, left out")
    usable_row = _UsableRow(
        _replace_surrogates(row_text[:max_characters]), row_score, named_turns, row_time
    )
    if usable_row.id_of_only_named_turn in turns_seen:
        raise ValueError(f"turn {usable_row.id_of_only_named_turn!r} again")
    return usable_row


def _turn_ids_of_row_and_note_strange_ids(
    listed_row: Mapping[str, Any], turn_by_id: Mapping[str, KnownTurn], row_problems: list[str]
) -> list[str] | None:
    """Give the turns that a row names by ``source_ids`` or its ``id``; None where it names none.

    :param row_problems: gets one for an id that is no turn.
    """
    named_ids = listed_row["source_ids"]
    if named_ids is None:
        row_id = listed_row["id"]
        if isinstance(row_id, str) and row_id in turn_by_id:
            return [turn_by_id[row_id].turn_id]
        return None
    if isinstance(named_ids, (str, int)):
        named_ids = [named_ids]
    turn_ids = dict[str, None]()
    strange_ids = list[str]()
    for named_id in named_ids:
        if isinstance(named_id, float):
            raise ValueError("a number stands among its ids")
        if str(named_id) in turn_by_id:
            turn_ids[turn_by_id[str(named_id)].turn_id] = None
        else:
            strange_ids.append(str(named_id))
    if strange_ids:
        row_problems.append(f"id {shorten_line(strange_ids[0], 80)!r} is no turn of this scope")
    return [*turn_ids]


def _replace_surrogates(text: str) -> str:
    """Replace what UTF-8 cannot hold."""
    return text.encode("utf-8", "replace").decode()


def _finite_number_or_none(raw_score: Any) -> float | None:
    if isinstance(raw_score, (str, bytes)):
        return None
    try:
        number = float(raw_score)
    except (TypeError, ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None
