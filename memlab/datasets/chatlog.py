"""Chat logs: one JSON object a line, UTF-8. The format for a person's own conversations.

A **message** line::

    {"scope": "ann", "sender": "Ann", "role": "user", "text": "I moved to Oslo.", "timestamp": "2026-03-01T09:00:00Z"}

=============  ======================================================================================================
``scope``      whose memory it is (a user, a chat); retrieval never crosses scopes. Required
``text``       what was said. Required, may be empty
``sender``     the name of who speaks; the role where it is left out
``role``       ``user``, ``assistant``, ``system``, ``other`` (``human``, ``ai``, ``bot`` and ``model`` are understood).
               Where it is left out it follows from the sender if that is one of these words or an assistant's name
               (``ChatGPT``, ``Claude`` …, or one named by ``assistant=``), and is ``user`` otherwise.
               One of sender and role is required
``timestamp``  ISO 8601 (a time without a zone is taken as UTC, and an issue says so, unless ``tz=`` names the zone), or
               seconds or, from 1e11 on, milliseconds since 1970, as a number or in digits. May be null or left out
``session``    the session's name; where it is left out, messages are split by silence (:mod:`memlab.sessions`)
``id``         the message's own id, unique in its scope: its turn is called by it (:mod:`memlab.datasets.identity`)
``caption``    a description of an image that came with the message
=============  ======================================================================================================

A **question** line, for evaluation; anywhere in the file::

    {"question": "Where does Ann live?", "scope": "ann", "answer": "Oslo", "evidence": ["s0001/1"]}

=====================  ==============================================================================================
``question``           the question; with this key the line is a question. Required
``scope``              the memory it is asked of. Required
``query_id``           unique in the file; ``<scope>/q<i>`` where it is left out (i from 0 among the scope's questions)
``answer``             a string, a number or null
``type``               the kind of question; ``unspecified`` where it is left out
``timestamp``          when it is asked
``evidence``           what the answer needs: message ids, ``<session>/<n>`` (n from 1; sessions without a name are
                       ``s0001``, ``s0002`` … of the file), or turn ids
``evidence_sessions``  names or ids of sessions; those of the evidence where it is left out
``abstention``         true where the conversations do not hold the answer
``rubric``             what a good answer says, point by point: a list of strings
``stale``              messages that must not come back, named as evidence is: superseded, corrected, ended
=====================  ==============================================================================================

The **first line** may be a header: ``{"memlab": {"format": "chatlog", "grouped": true, …}}``. ``language`` is the code
of the language that people speak in it, ``en`` where it is left out (:data:`memlab.language.analysis.LANGUAGES`);
``grouped`` promises that the lines of a scope stand together, so that the file streams scope by scope in bounded
memory; anything else describes how the file was made. Other keys of a line are passed over.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

import polars as pl

from memlab.datasets._fields import Bad, Record, as_flag, as_role, as_rubric, is_assistant, micros, moment, show
from memlab.datasets._json import lines
from memlab.datasets._read import Rows, Source, assemble, frame_of
from memlab.datasets.identity import joined, messages_of, with_session_ids, with_turn_ids
from memlab.errors import DataError
from memlab.language.analysis import LANGUAGES
from memlab.records import TIMESTAMP, Dataset, Question, id_part
from memlab.sessions import sessionize

_MESSAGE = {name: pl.String() for name in ("scope", "session", "speaker", "role", "text", "caption", "id")}
_SCHEMA: dict[str, Any] = {**_MESSAGE, "timestamp": pl.Int64()}
_PACK = 50_000
_ROLES = {"user", "assistant", "system", "human", "ai", "bot", "model"}


@dataclass
class _Log:
    """Messages and questions as they stand in the file, on their way into datasets.

    :param query_ids: every query id of the file so far, with its line.
    :param ids: the message ids of the gathered scopes, with their lines.
    """

    source: Source
    kind: str = "chatlog"
    query_ids: dict[str, int] = field(default_factory=dict)
    ids: dict[tuple[str, str], int] = field(default_factory=dict)
    messages: list[tuple[Any, ...]] = field(default_factory=list)
    packed: list[pl.DataFrame] = field(default_factory=list)
    questions: dict[str, list[tuple[int, Record]]] = field(default_factory=dict)
    count: int = 0
    zoneless: bool = False
    record: str = "line"

    def add(self, message: tuple[Any, ...]) -> None:
        self.messages.append(message)
        self.count += 1
        if len(self.messages) >= _PACK:
            self.pack()

    def pack(self) -> None:
        """Move messages into a frame, which takes a fraction of the memory."""
        self.packed.append(frame_of(self.messages, _SCHEMA))
        self.messages = []

    def after(self, scope: str) -> _Log:
        """Begin the log that follows this one, with the questions already read of the scope that opens it."""
        opened = self.questions.pop(scope, None)
        questions = {scope: opened} if opened else {}
        return replace(
            _Log(self.source, self.kind, self.query_ids, questions=questions),
            zoneless=self.zoneless,
            record=self.record,
        )

    def time(self, record: Record, number: int) -> int | None:
        """Read a record's time; one without a zone is of the zone that was named, else UTC, which is noted once."""
        time, zoned = record.time("timestamp")
        if zoned or (local := moment(time)) is None:
            return time
        if self.source.tz is not None:
            return micros(local.replace(tzinfo=self.source.tz))
        if not self.zoneless:
            where, action = (
                f"{self.record} {number}: timestamp",
                "times without a zone are taken as UTC; tz= names theirs",
            )
            self.source.note(where, show(record["timestamp"]), action)
            self.zoneless = True
        return time


def read(
    source: Source, *, batch_turns: int, records: Iterable[dict[str, Any]] | None = None, kind: str = "chatlog"
) -> Iterator[Dataset]:
    """Stream a chat log in batches of whole scopes.

    :param records: what stands in it, where another reader takes it from the file; times may be datetimes.
    """
    word = "line" if records is None else "record"
    log, grouped, current, last, begun = _Log(source, kind, record=word), False, None, None, set[str]()
    for place, (number, record) in enumerate(lines(source) if records is None else _numbered(records)):
        message = None
        with source.record(f"{word} {number}", record):
            if "memlab" in record:
                format, grouped, language = _header(record["memlab"], place)
                log.kind = log.kind if source.into else format
                source.language = source.language or language
                continue
            scope = record.name("scope")
            if grouped and scope != current:
                if scope in begun:
                    expected = 'its lines together, or no "grouped": true'
                    raise Bad("scope", f"{scope!r} again after another scope", expected)
                begun.add(scope)
                current = scope
            if "question" in record:
                log.questions.setdefault(scope, []).append((number, record))
                continue
            message = _message(record, scope, log, number)
        if message is None:
            continue
        if grouped and scope != last and log.count >= batch_turns:
            following = log.after(scope)
            yield from _datasets(log, batch_turns)
            log = following
        last = scope
        log.add(message)
    if not log.count and not (source.into and log.questions):
        source.fail(f"holds no usable message ({len(source.issues)} issues); memlab.datasets.chatlog tells the format")
    yield from _datasets(log, batch_turns)


def _numbered(records: Iterable[dict[str, Any]]) -> Iterator[tuple[int, Record]]:
    for number, record in enumerate(records, 1):
        if not isinstance(record, dict):
            raise DataError(
                f"record {number} is {type(record).__name__}; a format yields dicts, as a chat log's lines are"
            )
        time = record.get("timestamp")
        yield number, Record({**record, "timestamp": time.isoformat()} if isinstance(time, datetime) else record)


def _header(raw: Any, place: int) -> tuple[str, bool, str]:
    header = {"format": "chatlog", "grouped": False, "language": "en", **Record(raw, "memlab")}
    if place:
        raise Bad("memlab", "a header", "it in the first line only")
    if header["format"] != "chatlog":
        raise Bad("memlab.format", show(header["format"]), '"chatlog"')
    grouped = as_flag(header["grouped"], "memlab.grouped")
    if header["language"] not in list(LANGUAGES):
        raise Bad("memlab.language", show(header["language"]), f"one of {', '.join(LANGUAGES)}")
    return header["format"], grouped, header["language"]


def _message(record: Record, scope: str, log: _Log, number: int) -> tuple[Any, ...]:
    sender, role = record.name("sender", None), record.name("role", None)
    speaker = sender or role
    if speaker is None:
        raise Bad("sender", "neither a sender nor a role", "one of them")
    if role is None and is_assistant(speaker, log.source.assistants):
        role = "assistant"
    elif role is None:
        role = speaker if speaker.strip().lower() in _ROLES else "user"
    text, caption = record.text("text"), record.text("caption", None)
    session, name = record.name("session", None), record.name("id", None)
    time = log.time(record, number)
    if name is not None and log.ids.setdefault((scope, name), number) != number:
        first = log.ids[scope, name]
        raise Bad("id", f"{name!r} again in scope {scope!r} (first on {log.record} {first})", "an id of its own")
    return scope, session, speaker, as_role(role), text, caption, name, time


def _datasets(log: _Log, batch_turns: int) -> Iterator[Dataset]:
    """Cut what was gathered into batches of whole scopes, in order of their first appearance."""
    log.pack()
    messages = pl.concat(log.packed)
    sizes = dict(messages.group_by("scope", maintain_order=True).len().iter_rows())
    for scope in [s for s in log.questions if s not in sizes]:
        if log.source.into and log.source.into([id_part(scope)]).turns.height:
            sizes[scope] = 0
            continue
        for number, record in log.questions.pop(scope):
            with log.source.record(f"{log.record} {number}", record):
                raise Bad("scope", f"{scope!r}, which has no messages", "a scope that messages are of")
    run: list[str] = []
    total = 0
    for place, (scope, size) in enumerate(sizes.items(), 1):
        run.append(scope)
        total += size
        if total >= batch_turns or place == len(sizes):
            whole = len(run) == len(sizes)
            yield _dataset(messages if whole else messages.filter(pl.col("scope").is_in(run)), run, log)
            run, total = [], 0


def _dataset(messages: pl.DataFrame, scopes: list[str], log: _Log) -> Dataset:
    encoded = {scope: id_part(scope) for scope in scopes}
    stamped = messages.with_columns(
        timestamp=pl.col("timestamp").cast(TIMESTAMP),
        raw_scope="scope",
        scope=pl.col("scope").replace_strict(encoded, return_dtype=pl.String),
        named="session",
    )
    own = with_turn_ids(stamped)
    there = log.source.into([*encoded.values()]) if log.source.into else None
    # Places are counted in the file, ids are looked up in all that is there.
    placed = _placed(own, log)
    if there is not None and (old := there.turns.filter(pl.col("turn_id").str.count_matches("/") > 1)).height:
        older = f"dataset {there.name!r} has ids of an older memlab ({old['turn_id'][0]!r})"
        log.source.fail(f"{older}; ingest its whole file once more, then this one goes into it")
    whole = placed if there is None else _placed(joined(messages_of(there.turns), own), log)
    rows = Rows()
    asked = [(scope, i, *q) for scope in scopes for i, q in enumerate(log.questions.get(scope, ()))]
    turns = _turn_names(placed, whole, [q[3] for q in asked])
    sessions = _session_names(placed, whole, {q[0] for q in asked})
    default = _QueryIds(there)
    for scope, i, number, record in asked:
        with log.source.record(f"{log.record} {number}", record):
            question = _question(record, scope, (turns, sessions), log.time(record, number))
            if not question.query_id:
                question = replace(question, query_id=default.give(question, i))
            first = log.query_ids.setdefault(question.query_id, number)
            if first != number:
                raise Bad("query_id", f"{question.query_id!r} again (first on line {first})", "an id of its own")
            rows.questions.append(question)
    return assemble(whole, rows, log.source, log.kind)


def _placed(messages: pl.DataFrame, log: _Log) -> pl.DataFrame:
    """Give messages their sessions and places, and the ids of both."""
    return with_session_ids(sessionize(messages.with_columns(session="named"), gap=log.source.gap))


class _QueryIds:
    """Names for questions without one: that of the same question where it is there, else the next that is free."""

    def __init__(self, there: Dataset | None) -> None:
        asked = [] if there is None else there.questions.select("scope", "text", "query_id").rows()
        self.same: dict[tuple[str, str], str] = {(scope, text): name for scope, text, name in asked}
        self.taken = {name for _, _, name in asked}

    def give(self, question: Question, i: int) -> str:
        if (same := self.same.get((question.scope, question.text))) is not None:
            return same
        while (name := f"{question.scope}/q{i}") in self.taken:
            i += 1
        self.taken.add(name)
        return name


_Names = dict[tuple[str, str], tuple[str, str]]
"""(scope, what a question may call a turn or a session) → id and session id."""


def _turn_names(placed: pl.DataFrame, whole: pl.DataFrame, questions: list[Record]) -> _Names:
    """Find the turns that questions cite by place, turn id or message id; the last win."""
    cited = [q[key] for q in questions for key in ("evidence", "stale") if isinstance(q.get(key), list)]
    wanted = {str(name) for names in cited for name in names if isinstance(name, (str, int))}
    # A lone surrogate names no turn, and no frame can take it.
    wanted = {name for name in wanted if name.encode(errors="ignore").decode() == name}
    names: _Names = {}
    if wanted:
        parts = {name: id_part(name) for name in placed["session"].unique()}
        part = pl.col("session").replace_strict(parts, return_dtype=pl.String)
        places = placed.with_columns(
            a=pl.format("{}/{}", "session", "n"),
            b=pl.format("{}/{}", part, "n"),
            c=pl.format("{}/{}/{}", "scope", part, "n"),
        )
        sessions = whole.select("turn_id", now="session_id")
        for table, column in ((places, "a"), (places, "b"), (places, "c"), (whole, "turn_id"), (whole, "id")):
            hits = table.filter(pl.col(column).is_in(wanted)).join(sessions, on="turn_id", maintain_order="left")
            names |= {
                (s, name): (t, at)
                for s, name, t, at in hits.select("raw_scope", a=column, b="turn_id", c="now").iter_rows()
            }
    return names


def _session_names(placed: pl.DataFrame, whole: pl.DataFrame, scopes: set[str]) -> _Names:
    sessions = whole.select("turn_id", now="session_id")
    asked = [table.filter(pl.col("raw_scope").is_in(scopes)) for table in (whole, placed)]
    called = (
        asked[1].filter(pl.col("n") == 1).join(sessions, on="turn_id").select("raw_scope", "scope", "session", "now")
    )
    names: _Names = {
        (row[0], row[1]): (row[1], row[1]) for row in asked[0].select("raw_scope", "session_id").unique().iter_rows()
    }
    for raw, scope, session, now in called.iter_rows():
        part = id_part(session)
        names |= {(raw, name): (now, now) for name in (f"{scope}/{part}", part, session)}
    return names


def _question(record: Record, scope: str, names: tuple[_Names, _Names], time: int | None) -> Question:
    """Read a question; one without an id has an empty one."""
    parts = record.name("query_id", "").split("/")
    abstention = as_flag(record.get("abstention", False), "abstention")
    cited = _resolve(record, "evidence", scope, names[0])
    named = [*_resolve(record, "evidence_sessions", scope, names[1])]
    stale, evidence = [*_resolve(record, "stale", scope, names[0])], [*cited]
    if both := set(stale).intersection(evidence):
        raise Bad("stale", show(min(both)), "no turn that is evidence too")
    return Question(
        query_id="/".join(part and id_part(part) for part in parts),
        scope=id_part(scope),
        text=record.name("question"),
        answer=record.answer("answer", None),
        question_type=record.name("type", "unspecified"),
        timestamp=moment(time),
        evidence=evidence,
        evidence_sessions=named or list(dict.fromkeys(cited.values())),
        abstention=abstention,
        rubric=record.read("rubric", as_rubric, None),
        stale=stale or None,
    )


def _resolve(record: Record, name: str, scope: str, names: _Names) -> dict[str, str]:
    """Give the ids of what a question cites, each with its session."""
    cited = record.names(name, [])
    for i, value in enumerate(cited):
        if (scope, value) not in names:
            what = "a session" if name == "evidence_sessions" else "a message id, <session>/<n> or a turn id"
            raise Bad(f"{name}[{i}]", show(value), f"{what} of scope {scope!r}")
    return dict(names[scope, value] for value in cited)
