"""Rankings that another system made elsewhere, read as what a memory returned."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl

from memlab.errors import DataError
from memlab.memories.returned_rows import KnownTurn, list_returned_rows, select_usable_rows
from memlab.memories.running_a_memory import (
    PROBLEMS_SCHEMA,
    RETURNED_SCHEMA,
    ReturnedTexts,
    known_turns,
    problem_row,
)
from memlab.records import Dataset, Run, decode_id_part
from memlab.terminal_text import count_noun, shorten_line


def read_ranking(path: str | Path, data: Dataset, *, k: int = 50) -> ReturnedTexts:
    """Read what a system returned for the questions of a dataset, elsewhere.

    By the end of the name: ``.json`` holds ``{query_id: [turn ids]}``, best first, or
    ``{query_id: {turn id: score}}``; ``.jsonl`` one ``{"query_id", "text"}`` a line, best first,
    with ``score``, ``source_ids`` and ``time`` where there are any. A message of a chat log may be
    called by its own id. A TREC run is read by :func:`memlab.evaluate.read_run` and comes here
    through :func:`run_to_returned_texts`. What cannot be used of it is left out, with a line in
    ``problems``.

    :raises DataError: for a file that is none of these, and one of which nothing can be used: names
        three of its ids.
    """
    ranking_path = Path(path)
    problem_texts = list[str]()
    try:
        file_text = ranking_path.read_text(encoding="utf-8-sig")
        read_dataset_rows = _read_lines if ranking_path.suffix == ".jsonl" else _read_object
        rows_by_question = read_dataset_rows(file_text, problem_texts)
    except OSError as error:
        raise DataError(f"{ranking_path}: cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError, AttributeError, TypeError) as error:
        raise DataError(
            f"{ranking_path}: {shorten_line(error)}; expected JSON, "
            f"{{query_id: [ids of turns, best "
            "first]}, or in .jsonl a line of JSON with query_id and text for each text"
        ) from None
    return _make_returned_texts(
        ranking_path.stem, rows_by_question, problem_texts, data, {"file": ranking_path.name}, k=k
    )


def _read_lines(file_text: str, problem_texts: list[str]) -> dict[str, list[Any]]:
    """Read a row a line, by its question.

    :param problem_texts: gets a line for each that cannot be read.
    """
    rows_by_question = dict[str, list[Any]]()
    for line_number, file_line in enumerate(file_text.split("\n"), 1):
        if not file_line.strip():
            continue
        try:
            parsed_row = json.loads(file_line)
            rows_by_question.setdefault(parsed_row["query_id"] + "", []).append(parsed_row)
        except (ValueError, RecursionError, TypeError, KeyError):
            problem_texts.append(f"line {line_number}: no JSON with query_id and text, left out")
    return rows_by_question


def _read_object(file_text: str, problem_texts: list[str]) -> dict[str, list[Any]]:
    """Read ids of turns by question: a list, best first, or each with its score."""
    rows_by_question = dict[str, list[Any]]()
    for query_id, turn_ids in json.loads(file_text).items():
        if not isinstance(turn_ids, dict):
            rows_by_question[query_id] = [
                {"source_ids": turn_id, "score": -list_place}
                for list_place, turn_id in enumerate(turn_ids)
            ]
            continue
        scored_rows = [
            {"source_ids": turn_id, "score": turn_score} for turn_id, turn_score in turn_ids.items()
        ]
        rows_by_question[query_id] = sorted(scored_rows, key=_falling_score)
    return rows_by_question


def _falling_score(row: dict[str, Any]) -> Any:
    return -row["score"]


def run_to_returned_texts(run: Run, data: Dataset, name: str) -> ReturnedTexts:
    """Read a ranking of turns as texts that name their turn, like :func:`read_ranking`."""
    rows_by_question: dict[str, list[Any]] = {}
    for query_id, turn_id, turn_score in run.frame.select(
        "query_id", "doc_id", "score"
    ).iter_rows():
        rows_by_question.setdefault(query_id, []).append(
            {"source_ids": turn_id, "score": turn_score}
        )
    return _make_returned_texts(
        name, rows_by_question, [], data, run.provenance, k=max(1, run.frame.height)
    )


def _make_returned_texts(
    name: str,
    rows_by_question: Mapping[str, list[Any]],
    problem_texts: list[str],
    data: Dataset,
    provenance: Mapping[str, Any],
    *,
    k: int,
) -> ReturnedTexts:
    """Take what is of the dataset's questions and of the turns of their scopes.

    :param problem_texts: what was wrong so far.
    """
    scope_by_question = dict(data.questions.select("query_id", "scope").iter_rows())
    turns_by_scope = _turns_by_their_names(data)
    strange_ids = [query_id for query_id in rows_by_question if query_id not in scope_by_question]
    if strange_ids:
        shown_ids = ", ".join(repr(shorten_line(query_id, 60)) for query_id in strange_ids[:3])
        strange_count = f"{len(strange_ids):,} of {count_noun(len(rows_by_question), 'questions')}"
        verb = "is" if len(strange_ids) == 1 else "are"
        problem_texts = [
            *problem_texts,
            f"{strange_count} {verb} not the dataset's ({shown_ids}), left out",
        ]
    problems = [problem_row(name, "", "", problem_text) for problem_text in problem_texts]
    returned_rows = list[tuple[Any, ...]]()
    for query_id, question_rows in rows_by_question.items():
        if query_id not in scope_by_question:
            continue
        question_scope = scope_by_question[query_id]
        usable_rows, row_problems = select_usable_rows(
            list_returned_rows(question_rows[:k], k), turns_by_scope.get(question_scope, {}), k
        )
        returned_rows += [(query_id, *usable_row) for usable_row in usable_rows]
        problems += [
            problem_row(name, question_scope, query_id, problem_text)
            for problem_text in row_problems
        ]
    if problems and not returned_rows:
        any_question = next(iter(scope_by_question), None)
        any_turn = data.turns["turn_id"].first()
        raise DataError(
            f"nothing is of {data.name!r}: {problems[0][2]}; its questions look like "
            f"{any_question!r}, its turns like {any_turn!r}"
        )
    returned_frame = pl.DataFrame(returned_rows, schema=RETURNED_SCHEMA, orient="row")
    return ReturnedTexts(
        name,
        returned_frame,
        problems=pl.DataFrame(problems, PROBLEMS_SCHEMA, orient="row"),
        provenance=provenance,
    )


def _turns_by_their_names(data: Dataset) -> dict[str, dict[str, KnownTurn]]:
    """Give the turns of each scope by what a file may call them: their ids, and a chat log's."""
    turn_by_id = known_turns(data.turns)
    turns_by_scope = dict[str, dict[str, KnownTurn]]()
    for scope_name, turn_ids in data.turns.group_by("scope").agg("turn_id").iter_rows():
        turn_by_name = {
            decode_id_part(turn_id.removeprefix(f"{scope_name}/")): turn_by_id[turn_id]
            for turn_id in turn_ids
        }
        turns_by_scope[scope_name] = turn_by_name | {
            turn_id: turn_by_id[turn_id] for turn_id in turn_ids
        }
    return turns_by_scope
