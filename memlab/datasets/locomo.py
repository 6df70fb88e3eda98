"""LoCoMo (Maharana et al., ACL 2024): ten long conversations between two people, with questions and annotations.

A scope is a conversation, a session what the file calls ``session_<k>``, and ``D<k>:<n>`` is its n-th turn. Both
speakers are people and get the role ``user``. A turn's time is its session's date, read as UTC. Adversarial questions
(category 5) keep their evidence and are not marked as abstention, because the reference protocol ranks for them too;
their answer is null, since the one that the file gives them is the trap.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from memlab.datasets._json import objects
from memlab.datasets._read import (
    MISSING,
    Bad,
    Rows,
    Source,
    as_answer,
    as_date,
    as_name,
    as_object,
    as_text,
    batches,
    get_list,
    micros,
    show,
)
from memlab.language.calendar import month
from memlab.records import Annotation, Dataset, Question, id_part

CATEGORIES = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop", 5: "adversarial"}
"""Category number to its name; several projects swap them, these are the paper's."""

_DATE = re.compile(r"\s*(\d{1,2}):(\d{2})\s*([ap])m\s+on\s+(\d{1,2})\s+([a-z]+),?\s+(\d{4})\s*", re.IGNORECASE)
_TURN = re.compile(r"D\s*:?\s*(\d{1,9})\s*:\s*(\d{1,9})(?!\d)")
_SESSION = re.compile(r"session_(0|[1-9]\d{0,8})")


def parse_date(value: Any, where: str = "date") -> datetime:
    """Read a LoCoMo date, as UTC.

    >>> from memlab.datasets.locomo import parse_date
    >>> parse_date("1:56 pm on 8 May, 2023").isoformat()
    '2023-05-08T13:56:00+00:00'
    """
    return as_date(value, where, _DATE, _moment, "1:56 pm on 8 May, 2023")


def _moment(hour: str, minute: str, half: str, day: str, name: str, year: str) -> datetime:
    if not 1 <= int(hour) <= 12:
        raise ValueError(hour)
    hour24 = int(hour) % 12 + 12 * (half.lower() == "p")
    return datetime(int(year), month(name) or 0, int(day), hour24, int(minute), tzinfo=UTC)


def read(source: Source, *, batch_turns: int) -> Iterator[Dataset]:
    """Stream a LoCoMo file in batches of whole conversations."""
    return batches(_conversations(source), source, "locomo", batch_turns)


def _conversations(source: Source) -> Iterator[Rows]:
    seen: set[str] = set()
    for index, raw in objects(source):
        label = f"conversation {index}"
        try:
            record = as_object(raw, "")
            name = as_name(record.get("sample_id", MISSING), "sample_id")
            label = name
            if name in seen:
                raise Bad("sample_id", f"{name!r} again", "an id of its own")
            conversation = as_object(record.get("conversation", MISSING), "conversation")
            questions = get_list(record, "qa")
        except Bad as bad:
            source.reject(label, bad, raw)
            continue
        seen.add(name)
        rows = _turns(conversation, id_part(name), source, name)
        if not rows.turns["n"]:
            source.reject(name, Bad("conversation", "no turns", "session_1, session_2 … with turns"), raw)
            continue
        _questions(rows, questions, source, name)
        _summaries(rows, record, source, name)
        _annotations(rows, record, source, name)
        yield rows


def _turns(conversation: dict[str, Any], scope: str, source: Source, name: str) -> Rows:
    rows = Rows()
    numbers = sorted(int(m[1]) for key in conversation if (m := _SESSION.fullmatch(key)))
    for k in numbers:
        key = f"session_{k}"
        try:
            turns = get_list(conversation, key)
        except Bad as bad:
            source.reject(name, bad, conversation[key])
            continue
        if not turns:
            source.note(f"{name}: {key}", "a session without turns", "dropped empty session")
            continue
        time = _session_time(conversation, key, source, name)
        seen: set[int] = set()
        for place, raw in enumerate(turns):
            try:
                _turn(rows, raw, (scope, k, time), seen)
            except Bad as bad:
                source.reject(f"{name}: {key}[{place}]", bad, raw)
    dated = [key.removesuffix("_date_time") for key in conversation if key.endswith("_date_time")]
    if idle := [key for key in dated if key not in conversation]:
        dates = f"{len(idle)} dates of sessions that are not there ({idle[0]} … {idle[-1]})"
        source.note(f"{name}: session_date_time", dates, "ignored")
    return rows


def _session_time(conversation: dict[str, Any], key: str, source: Source, name: str) -> int | None:
    field = f"{key}_date_time"
    if field not in conversation:
        source.note(f"{name}: {field}", "no date", "kept without a time")
        return None
    try:
        return micros(parse_date(conversation[field], field))
    except Bad as bad:
        source.reject(name, bad, conversation[field])
        return None


def _turn(rows: Rows, raw: Any, session: tuple[str, int, int | None], seen: set[int]) -> None:
    scope, k, time = session
    turn = as_object(raw, "")
    dia_id = as_text(turn.get("dia_id", MISSING), "dia_id")
    match = re.fullmatch(r"D(\d{1,9}):(\d{1,9})", dia_id.strip())
    if match is None or int(match[1]) != k or int(match[2]) < 1:
        raise Bad("dia_id", show(dia_id), f'"D{k}:<n>"')
    n = int(match[2])
    if n in seen:
        raise Bad("dia_id", f"{dia_id!r} again", "an id of its own")
    caption = turn.get("blip_caption")
    columns = {
        "scope": scope,
        "session_id": f"{scope}/session_{k}",
        "n": n,
        "speaker": as_name(turn.get("speaker", MISSING), "speaker"),
        "role": "user",
        "text": as_text(turn.get("text", MISSING), "text"),
        "caption": None if caption is None else as_text(caption, "blip_caption"),
        "timestamp": time,
    }
    seen.add(n)
    for column, value in columns.items():
        rows.turns[column].append(value)


def _known(rows: Rows) -> set[str]:
    return {f"{s}/{n}" for s, n in zip(rows.turns["session_id"], rows.turns["n"], strict=True)}


def _questions(rows: Rows, questions: list[Any], source: Source, name: str) -> None:
    known, scope = _known(rows), rows.turns["scope"][0]
    for i, raw in enumerate(questions):
        label, noted = f"{name}: qa[{i}]", len(source.issues)
        try:
            record = as_object(raw, "")
            category = record.get("category", MISSING)
            if isinstance(category, bool) or not isinstance(category, int) or category not in CATEGORIES:
                raise Bad("category", show(category), f"a number from {min(CATEGORIES)} to {max(CATEGORIES)}")
            text = as_name(record.get("question", MISSING), "question")
            answer = as_answer(record.get("answer"), "answer")
            if answer is None and category != 5:
                source.note(f"{label}: answer", "nothing", "kept without an answer")
            evidence = _evidence(record.get("evidence", []), known, scope, source, label)
        except Bad as bad:
            del source.issues[noted:]
            source.reject(label, bad, raw)
            continue
        sessions = list(dict.fromkeys(turn.rpartition("/")[0] for turn in evidence))
        rows.questions.append(
            Question(f"{scope}/q{i}", scope, text, answer, CATEGORIES[category], None, evidence, sessions)
        )


def _evidence(raw: Any, known: set[str], scope: str, source: Source, label: str) -> list[str]:
    """Read turn ids out of evidence, repair what is clearly meant, and drop what cites no turn, with an issue each."""
    if not isinstance(raw, (str, list)):
        raise Bad("evidence", show(raw), 'a list of turn ids such as "D1:3"')
    kept: list[str] = []
    for i, entry in enumerate([raw] if isinstance(raw, str) else raw):
        text, where = as_text(entry, f"evidence[{i}]"), f"{label}: evidence[{i}]"
        cited = [(int(k), int(n)) for k, n in _TURN.findall(text)]
        if not cited:
            source.note(where, show(text), "dropped evidence")
        elif text != f"D{cited[0][0]}:{cited[0][1]}":
            source.note(where, show(text), "repaired")
        for k, n in cited:
            turn = f"{scope}/session_{k}/{n}"
            if turn in known:
                kept.append(turn)
            else:
                source.note(where, f"D{k}:{n}, which is no turn of the conversation", "dropped evidence")
    return list(dict.fromkeys(kept))


def _summaries(rows: Rows, record: dict[str, Any], source: Source, name: str) -> None:
    scope, sessions = rows.turns["scope"][0], set(rows.turns["session_id"])
    for key, raw in _part(record, "session_summary", source, name).items():
        try:
            text = as_text(raw, f"session_summary.{key}")
        except Bad as bad:
            source.reject(name, bad, raw)
            continue
        session_id = f"{scope}/{key.removesuffix('_summary')}"
        if session_id not in sessions:
            source.note(f"{name}: session_summary.{key}", "a summary of no session", "ignored")
        elif text.strip():
            rows.summaries[session_id] = text


def _annotations(rows: Rows, record: dict[str, Any], source: Source, name: str) -> None:
    """Read observations and event summaries; an annotation's number is its place in its session, never renumbered."""
    known, scope, sessions = _known(rows), rows.turns["scope"][0], set(rows.turns["session_id"])
    for part, kind in (("observation", "observation"), ("event_summary", "event")):
        for key, raw in _part(record, part, source, name).items():
            match = _SESSION.search(key)
            session_id = f"{scope}/{match[0]}" if match else ""
            if session_id not in sessions:
                source.note(f"{name}: {part}.{key}", "statements about no session", "ignored")
                continue
            for i, (field, speaker, statement) in enumerate(_statements(raw, f"{part}.{key}", source, name)):
                label = f"{name}: {field}"
                try:
                    text, cited = _statement(statement, kind)
                    evidence = _evidence(cited, known, scope, source, label)
                except Bad as bad:
                    source.reject(label, bad, statement)
                    continue
                if not text.strip():
                    source.note(label, "an empty text", "ignored")
                    continue
                rows.annotations.append(
                    Annotation(f"{session_id}/{kind}{i}", scope, session_id, kind, speaker, text, evidence)
                )


def _statement(raw: Any, kind: str) -> tuple[str, Any]:
    """Give text and evidence: an event is a text alone, an observation a pair."""
    if kind == "event":
        return as_text(raw, ""), []
    if not isinstance(raw, list) or len(raw) != 2:
        raise Bad("", show(raw), "a list of a text and its evidence")
    return as_text(raw[0], "text"), raw[1]


def _part(record: dict[str, Any], part: str, source: Source, name: str) -> dict[str, Any]:
    try:
        return as_object(record.get(part, {}), part)
    except Bad as bad:
        source.reject(name, bad, record[part])
        return {}


def _statements(raw: Any, where: str, source: Source, name: str) -> Iterator[tuple[str, str, Any]]:
    """Give field, speaker and statement of everything said about a session; its date is the session's own."""
    try:
        speakers = as_object(raw, where)
    except Bad as bad:
        source.reject(name, bad, raw)
        return
    for speaker, statements in speakers.items():
        if speaker == "date":
            continue
        try:
            as_name(speaker, f"{where}: speaker")
            spoken = get_list(speakers, speaker, f"{where}.{speaker}")
        except Bad as bad:
            source.reject(name, bad, statements)
            continue
        yield from ((f"{where}.{speaker}[{i}]", speaker, statement) for i, statement in enumerate(spoken))
