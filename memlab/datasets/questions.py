"""Questions of a chat log: their names, and the turns and sessions that they cite."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import polars as pl

from memlab.datasets import fields
from memlab.datasets.fields import Bad, Record, moment, show
from memlab.datasets.identity import encoded
from memlab.records import Annotation, Question, id_part


def named(question: Question, i: int, same: dict[tuple[str, str], str], taken: set[str]) -> Question:
    """Name a question without an id: as the same question where it is there, else by the next number that is free."""
    name = question.query_id or same.get((question.scope, question.text), "")
    while not name:
        name = f"{question.scope}/q{i}" if f"{question.scope}/q{i}" not in taken else ""
        i += 1
    taken.add(name)
    return replace(question, query_id=name)


_Form = tuple[pl.DataFrame, tuple[str, ...]]
Names = dict[tuple[str, str], tuple[str, str]]
"""(scope, what a question may call a turn or a session) to the turn's id and its session's."""


def names_of(placed: pl.DataFrame, whole: pl.DataFrame, questions: list[Record]) -> dict[str, Names]:
    """Find what questions cite: turns by place, turn id or message id, sessions by name or id; the last win."""
    places = placed.with_columns(encoded(placed["session"]).alias("part"))
    first = places.filter(pl.col("n") == 1)
    turns: list[_Form] = [(places, (*form, "n")) for form in (("session",), ("part",), ("scope", "part"))]
    turns += [(whole, ("turn_id",)), (whole, ("id",))]
    sessions: list[_Form] = [(whole, ("session_id",))]
    sessions += [(first, form) for form in (("scope", "part"), ("part",), ("session",))]
    now, found = whole.select("turn_id", "session_id"), dict[str, Names]()
    for field_, forms in (("evidence", turns), ("stale", turns), ("evidence_sessions", sessions)):
        cited = [value for record in questions for value in _listed(record.get(field_))]
        wanted = {str(name) for name in cited if isinstance(name, (str, int))}
        # A lone surrogate names no turn, and no frame can take it.
        wanted = {name for name in wanted if name.encode(errors="ignore").decode() == name}
        if not wanted:
            found[field_] = {}
            continue
        hits = [
            table.select("raw_scope", "turn_id", name=pl.concat_str(form, separator="/")).filter(
                pl.col("name").is_in(wanted)
            )
            for table, form in forms
        ]
        rows = pl.concat(hits).join(now, on="turn_id", maintain_order="left").select("raw_scope", "name", *now.columns)
        found[field_] = {(scope, name): (turn, session) for scope, name, turn, session in rows.iter_rows()}
    return found


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def read_question(record: Record, scope: str, names: dict[str, Names] | None, time: int | None) -> Question:
    """Read a question; one without an id has an empty one.

    :param names: of what it may cite; ``None`` where it cites ids, as a benchmark's does.
    """
    called = record.take("query_id", fields.name, "")
    cited = _resolve(record, "evidence", scope, names)
    named = _resolve(record, "evidence_sessions", scope, names)
    stale = _resolve(record, "stale", scope, names)
    if both := stale.keys() & cited.keys():
        raise Bad("stale", show(min(both)), "no turn that is evidence too")
    return Question(
        query_id="/".join(part and id_part(part) for part in called.split("/")) if names is not None else called,
        scope=id_part(scope),
        text=record.take("question", fields.name),
        answer=record.take("answer", fields.answer, None),
        question_type=record.take("type", fields.name, "unspecified"),
        timestamp=moment(time),
        evidence=[*cited],
        evidence_sessions=[*dict.fromkeys((named or cited).values())],
        abstention=record.take("abstention", fields.flag, False),
        rubric=record.take("rubric", fields.points, None),
        stale=[*stale] or None,
    )


def _resolve(record: Record, field_: str, scope: str, names: dict[str, Names] | None) -> dict[str, str]:
    """Give the ids of what a question cites, each with its session's."""
    cited = record.take(field_, fields.names, [])
    if names is None:
        sessions = cited if field_ == "evidence_sessions" else [turn.rpartition("/")[0] for turn in cited]
        return dict(zip(cited, sessions, strict=True))
    for i, value in enumerate(cited):
        if (scope, value) not in names[field_]:
            what = "a session" if field_ == "evidence_sessions" else "a message id, <session>/<n> or a turn id"
            raise Bad(f"{field_}[{i}]", show(value), f"{what} of scope {scope!r}")
    return dict(names[field_][scope, value] for value in cited)


def read_annotation(record: Record, scope: str) -> Annotation:
    session = f"{scope}/{id_part(record['session'])}"
    about = record["annotation_id"], scope, session, record["kind"], record["speaker"], record["annotation"]
    return Annotation(*about, record["evidence"])
