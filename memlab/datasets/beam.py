"""BEAM (Tavakoli et al., 2025): chats of 100 thousand to 10 million tokens, with probing questions of ten abilities.

What is read: ``chats/<size>/<n>``, a folder of such folders, one ``chat.json`` (with ``probing_questions/`` beside
it), or the published table as Parquet or JSON (a row a chat). A scope is a chat, a session a batch (``batch_3``; in the
largest chats ``plan-2.batch_3``), a turn a message. A time anchor stands for the messages from it to the next one of
its batch. Messages of the user end in a marker of the plan, ``->-> 1,2``, which is cut: the plan is what questions are
made from. ``source_chat_ids``, in whatever lists and objects, are the evidence; those of a knowledge update include the
value before. Abilities are the kinds of questions, with hyphens; the rubric is kept.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import polars as pl

from memlab.datasets._fields import (
    Bad,
    Record,
    as_answers,
    as_list,
    as_name,
    as_number,
    as_role,
    as_rubric,
    date_check,
    micros,
    sessions_of_turns,
    show,
)
from memlab.datasets._json import objects
from memlab.datasets._read import Rows, Source
from memlab.records import Question, id_part

FILES = ("chat.json", "*/chat.json", "*/*/chat.json", "*.parquet")
"""Where the chats of a folder are."""
ANSWERS = ("answer", "ideal_response", "ideal_answer", "ideal_summary", "expected_compliance")
"""What the answer is called, by ability."""

_MARKER = re.compile(r"\s*->->[ \t]*(?:\d+(?:\s*,\s*(?:\d+|N/A))*)?")
parse_date = date_check(r"(?P<month>[a-z]+)-(?P<day>\d{1,2})-(?P<year>\d{4})", "March-15-2024")


def read(source: Source) -> Iterator[Rows]:
    """Stream BEAM's chats: the rows of each chat."""
    seen: set[str] = set()
    for file in source.files(*FILES):
        chat: list[Any] = []
        for index, raw in _values(file):
            if not (isinstance(raw, dict) and "probing_questions" in raw):
                chat.append(raw)
                continue
            with file.record(f"chat {index}", raw):
                row = Record(raw)
                read = _Chat(file, row.name("conversation_id"))
                if read.name in seen:
                    raise Bad("conversation_id", f"{read.name!r} again", "an id of its own")
                seen.add(read.name)
                read.turns(_plans(row))
                read.questions(_literal(row["probing_questions"]))
                yield read.rows
        if chat:
            inside = file.path.parent != source.path and source.path.is_dir()
            read = _Chat(file, source.named(file).removesuffix("/chat") if inside else file.path.resolve().parent.name)
            with file.record(read.name, None):
                read.turns(chat)
                read.questions(_probing(file))
                yield read.rows


def _values(file: Source) -> Iterator[tuple[int, Any]]:
    """Give the values of a JSON file, or the rows of the published table."""
    if file.path.suffix == ".parquet":
        return enumerate(file.parquet(pl.read_parquet).iter_rows(named=True))
    return objects(file)


def _plans(row: Record) -> list[Any]:
    """Give the chat of a row of the published table; the largest chats stand in their plans."""
    plans = [Record(plan, f"plans[{k}]") for k, plan in enumerate(row.listed("plans", ()))]
    return [{f"plan-{k}": plan.listed("chat")} for k, plan in enumerate(plans, 1)] or row.listed("chat")


def _literal(value: Any) -> Any:
    """Read the questions of a row of the published table, which writes them as Python does."""
    try:
        return ast.literal_eval(value) if isinstance(value, str) else value
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        raise Bad("probing_questions", show(value), "an object of abilities, or a Python literal of it") from None


def _probing(file: Source) -> Any:
    path = file.path.parent / "probing_questions" / "probing_questions.json"
    if not path.is_file():
        file.note("probing_questions", f"no {path.parent.name}/{path.name} beside it", "kept without questions")
        return {}
    return next((value for _, value in objects(Source(path, file.on_error, file.quarantine_dir))), {})


@dataclass
class _Chat:
    """Reads one chat into rows.

    :param places: the turns of each message id; a few ids of BEAM stand twice.
    """

    source: Source
    name: str
    rows: Rows = field(default_factory=Rows)
    places: dict[int, list[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.scope = id_part(self.name)

    def turns(self, chat: list[Any]) -> None:
        plan, shift, last = "", 0, -1
        for part, batch, anchors, messages in _batches(chat):
            session = f"{self.scope}/{id_part(part + batch)}"
            label = f"{self.name}: {part}{batch}"
            time = None
            with self.source.record(label, anchors):
                time = next(
                    (micros(parse_date(anchor, "time_anchor")) for anchor in anchors if anchor is not None), None
                )
            if time is None:
                self.source.note(label, "no time anchor", "kept without a time")
            for n, raw in enumerate(messages, 1):
                with self.source.record(f"{label}[{n - 1}]", raw):
                    message = Record(raw)
                    number, role = message.read("id", as_number), message.name("role")
                    text = _MARKER.sub("", message.text("content"))
                    anchor = message.read("time_anchor", parse_date, None)
                    time = time if anchor is None else micros(anchor)
                    if part != plan:  # BEAM's own script numbers a plan on from the one before
                        plan, shift = part, last + 1 if number <= last else 0
                    last = number + shift
                    self.places.setdefault(last, []).append(f"{session}/{n}")
                    self.rows.turns.append((self.scope, session, n, role, as_role(role), text, None, time))
        if not self.rows.turns:
            raise Bad("", "no messages", "batches with turns")

    def questions(self, probing: Any) -> None:
        place = count()
        abilities = Record(probing, "probing_questions")
        for ability in abilities:
            as_name(ability, "ability")
            for i, (raw, q) in enumerate(zip(abilities.listed(ability), place, strict=False)):
                where = f"{self.name}: {ability}[{i}]"
                with self.source.record(where, raw):
                    record, abstention = Record(raw), ability == "abstention"
                    answers = [key for key in ANSWERS if record.get(key) is not None]
                    evidence = [] if abstention else self.evidence(record.get("source_chat_ids"), where)
                    self.rows.questions.append(
                        Question(
                            query_id=f"{self.scope}/q{q}",
                            scope=self.scope,
                            text=record.name("question"),
                            answer=record.read(answers[0], as_answers) if answers else None,
                            question_type=ability.replace("_", "-"),
                            timestamp=None,
                            evidence=evidence,
                            evidence_sessions=sessions_of_turns(evidence),
                            abstention=abstention,
                            rubric=record.read("rubric", as_rubric, None),
                        )
                    )

    def evidence(self, cited: Any, where: str) -> list[str]:
        """Give the turns that a question cites; an id that no message has, or several have, is no evidence."""
        turns = []
        for number in dict.fromkeys(_numbers(cited, "source_chat_ids")):
            holders = self.places.get(number, [])
            if len(holders) == 1:
                turns += holders
            else:
                what = f"{number}, the id of {len(holders) or 'no'} message{'s' * (len(holders) > 1)}"
                self.source.note(f"{where}: source_chat_ids", what, "dropped evidence")
        if not turns:
            self.source.note(f"{where}: source_chat_ids", "no evidence", "kept without evidence")
        return turns


def _numbers(value: Any, where: str) -> Iterator[int]:
    """Give the numbers in lists and objects of whatever depth."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _numbers(inner, f"{where}.{key}")
    elif isinstance(value, list):
        for i, inner in enumerate(value):
            yield from _numbers(inner, f"{where}[{i}]")
    elif value is not None:
        yield int(value) if isinstance(value, str) and value.strip().isdecimal() else as_number(value, where)


def _batches(chat: list[Any], part: str = "") -> Iterator[tuple[str, str, list[Any], list[Any]]]:
    """Give plan, name, time anchors and messages of each batch, in whichever of its forms."""
    for number, raw in enumerate(chat, 1):
        if isinstance(raw, dict) and "turns" not in raw:
            for plan, inner in raw.items():
                if inner is not None:  # a table gives every row the columns of all
                    yield from _batches(as_list(inner, plan), f"{as_name(plan, 'plan')}.")
            continue
        batch = raw if isinstance(raw, dict) else {"turns": as_list(raw, f"batch {number}")}
        messages = [
            message
            for turn in Record(batch).listed("turns")
            for message in (turn if isinstance(turn, list) else [turn])
        ]
        named = as_name(batch.get("batch_number", number), "batch_number")
        anchors = [*(m.get("time_anchor") for m in messages if isinstance(m, dict)), batch.get("time_anchor")]
        yield part, f"batch_{named}", anchors, messages
