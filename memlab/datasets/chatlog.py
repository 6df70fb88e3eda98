"""Chat logs: one JSON object a line, UTF-8. The format for a person's own conversations.

A **message** line::

    {"scope": "ann", "sender": "Ann", "role": "user", "text": "I moved to Oslo.",
     "timestamp": "2026-03-01T09:00:00Z"}

==================  ================================================================================
``scope``           whose memory it is (a user, a chat); retrieval never crosses scopes. Required
``text``            what was said. Required, may be empty
``sender``          the name of who speaks; the role where it is left out
``role``            ``user``, ``assistant``, ``system``, ``other``, or another word for one of them
                    (``human``, ``ai``, ``llm``, ``gpt-4o``, ``tool`` …,
                    :mod:`memlab.datasets.role_words`); any other is a person's. Where it is left
                    out it follows from the sender if that is one of these words or an assistant's
                    name (``ChatGPT``, ``Claude`` …, or one named by ``assistant=``), and is
                    ``user`` otherwise. One of sender and role is required
``timestamp``       ISO 8601 (a time without a zone is taken as UTC, and an issue says so, unless
                    ``tz=`` names the zone), or seconds or, from 1e11 on, milliseconds since 1970,
                    as a number or in digits. May be null or left out
``session``         the session's name; where it is left out, messages are split by silence
                    (:mod:`memlab.sessions`)
``id``              the message's own id, unique in its scope: it names the turn
                    (:mod:`memlab.datasets.message_identity`)
``caption``         a description of an image that came with the message
``forwarded_from``  whose words the text is, where the sender passed on somebody else's
``quoted``          the parts of the text that are somebody else's words: a list of texts, or one.
                    Where it is left out, they are found (:mod:`memlab.text.quotations`)
==================  ================================================================================

A **question** line, for evaluation; anywhere in the file::

    {"question": "Where does Ann live?", "scope": "ann", "answer": "Oslo", "evidence": ["s0001/1"]}

=====================  =============================================================================
``question``           the question; with this key the line is a question. Required
``scope``              the memory it is asked of. Required
``query_id``           unique in the file; ``<scope>/<id>`` where the line has an ``id`` instead,
                       and without either ``<scope>/q<i>`` (i from 0 among the scope's questions)
``answer``             a string, a number or null
``type``               the kind of question; ``unspecified`` where it is left out
``timestamp``          when it is asked
``evidence``           what the answer needs: message ids, ``<session>/<n>`` (n from 1; sessions
                       without a name are ``s0001``, ``s0002`` … of the file), or turn ids. One with
                       a grade is written ``{"id": "s0001/1", "grade": 2}``; grade 0 or less is
                       judged and not relevant
``evidence_sessions``  names or ids of sessions; those of the evidence where it is left out
``abstention``         true where the conversations do not hold the answer
``rubric``             what a good answer says, point by point: a list of strings
``stale``              messages that must not come back, named as evidence is: superseded,
                       corrected, ended
``source``             who wrote it: ``proposed`` by a language model, ``accepted`` by a person
                       after that; a person or a benchmark where it is left out (or ``written``)
``reasons``            why each message of evidence is needed: a text for each, in the order of
                       ``evidence``
``distractors``        messages that seem to answer it and do not, named as evidence is
``checks``             what was checked before it was proposed: any JSON, kept as it is
=====================  =============================================================================

The **first line** may be a header: ``{"memlab": {"format": "chatlog", "grouped": true, …}}``.
``language`` is the code of the language that people speak in it, ``en`` where it is left out
(:data:`memlab.text.languages.LANGUAGES`); ``grouped`` promises that the lines of a scope stand
together, so that the file streams scope by scope in bounded memory; anything else describes how the
file was made.

Where a message lacks ``timestamp``, ``sender`` or ``session`` and has it under another name that is
usual (``time``, ``created_at``, ``speaker``, ``author``, ``session_id`` …,
:mod:`memlab.datasets.other_names`), that one is read, and an issue says so. Other keys of a line
are not read, and an issue names them.

Readers of benchmarks yield the same records, **by place**: scope by scope, a message with its
``session`` and its place ``n``, ids as they are, and two kinds more: a session's ``summary``, and
an ``annotation`` (:class:`memlab.records.Annotation`) with ``annotation_id``, ``kind``, ``speaker``
and ``evidence``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from itertools import islice
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from memlab.datasets import fields, message_identity
from memlab.datasets.fields import BadField, Record, describe_value, escape_surrogates
from memlab.datasets.message_identity import (
    KnownIds,
    map_names,
    merge_stored_turns,
    with_session_ids,
    with_turn_ids,
)
from memlab.datasets.source import Source
from memlab.errors import DataError
from memlab.records import (
    TIMESTAMP,
    Annotation,
    Dataset,
    Question,
    Turn,
    concat,
    encode_id_part,
    frame,
    schema,
)
from memlab.records.dataset import digest_turns
from memlab.registry import formats
from memlab.sessions import count_steps_back, order_times, sessionize, sessions_of
from memlab.text.languages import LANGUAGES
from memlab.text.quotations import MARKS, find_quotations

if TYPE_CHECKING:
    from memlab.datasets.message_columns import MessageTable

KEYS = {"scope", "text", "sender", "memlab"}
_TEXTS = ("scope", "session", "speaker", "role", "text", "caption", "id", "forwarded_from")
_NAMED = frozenset(_TEXTS) - {"speaker"}
_SCHEMA: dict[str, Any] = {
    **dict.fromkeys(_TEXTS, pl.String()),
    "quoted": pl.List(pl.String()),
    "timestamp": TIMESTAMP,
    "n": pl.Int32(),
}
_MARKS_OF_THOUGHTS = ["<", "◁", "["]
"""What every mark of a thought begins with."""
_PACK = 50_000
_CHUNK = 4_000
"""Records of a reader that are checked together."""
_FEW = 1_000
_SHORT = 1 << 18
"""Records, and bytes of lines, below which a chunk is not worth the import of Arrow."""
_MESSAGE_FIELDS = frozenset((*_NAMED, "sender", "timestamp", "quoted", "edited", "n"))
_OTHER_ROLES = "message of other roles"
_KEPT_AS_PERSONS = "kept as those of persons"
TAKEN_BY_NAME = "taken for the assistant by the name; --person NAME says that somebody is called so"
"""What is done with a sender whose name alone says that they are an assistant."""
_TAKEN_FOR = {
    None: "the assistant",
    "assistant": "the assistant",
    "system": "the system",
    "other": "a tool",
}


@formats.register(name="chatlog", keys=KEYS)
def read_chatlog(source: Source) -> Iterator[Any]:
    """Read the lines of a chat log."""
    return (record for _, record in source.stream_json_lines())


@dataclass
class LineChunk:
    """Lines of a chat log.

    :param first: the number of the first line, from 1.
    """

    source: Source
    first: int
    lines: bytes
    called = "line"

    @cached_property
    def size(self) -> int:
        """How many lines end in it."""
        return self.lines.count(b"\n")

    def records(self) -> Iterator[tuple[int, Any]]:
        """Give the records with their numbers; lines that hold none are rejected."""
        return self.source.decode_lines(self.lines, self.first)

    def tabulate(self) -> MessageTable | None:
        """Give the messages as columns, where all are plain and there are many."""
        if len(self.lines) < _SHORT:
            return None
        from memlab.datasets import message_columns

        return message_columns.tabulate_lines(self.lines, _MESSAGE_FIELDS)


@dataclass
class RecordChunk:
    """Records of another reader.

    :param first: the number of the first one, from 1.
    """

    first: int
    listed: list[dict[str, Any]]
    called = "record"

    @property
    def size(self) -> int:
        return len(self.listed)

    def records(self) -> Iterator[tuple[int, Any]]:
        """Give the records with their numbers."""
        return enumerate(self.listed, self.first)

    def tabulate(self) -> MessageTable | None:
        """Give the messages as columns, where all are plain and there are many."""
        if len(self.listed) < _FEW:
            return None
        from memlab.datasets import message_columns

        return message_columns.tabulate_records(self.listed, _MESSAGE_FIELDS)


Chunk = LineChunk | RecordChunk


def read_chunks(source: Source) -> Iterator[Chunk]:
    """Read a chat log in chunks; a header stands alone, so that the lines behind it are plain."""
    for number, chunk_lines in source.read_line_chunks():
        header, line_end, other_lines = chunk_lines.partition(b"\n")
        if number == 1 and b'"memlab"' in header:
            yield LineChunk(source, number, header + line_end)
            number = 2
            chunk_lines = other_lines
        if chunk_lines:
            yield LineChunk(source, number, chunk_lines)


def dataset(records: Iterable[dict[str, Any]], name: str) -> Dataset:
    """Make a dataset of records that are in memory.

    :raises DataError: for a record that cannot be used.

    >>> from memlab.datasets import chatlog
    >>> chatlog.dataset([{"scope": "ann", "sender": "Ann", "text": "Hello"}], "mine").describe()
    'mine (chatlog): 1 turn in 1 session of 1 scope, 0 questions'
    """
    chunks = divide_records(records)
    return concat(make_datasets(Source(Path(name)), chunks, batch_turns=1 << 62))


def divide_records(records: Iterable[Any], *, size: int = _CHUNK) -> Iterator[Chunk]:
    """Divide the records that another reader yields into chunks; those before an error come before
    it.

    :param size: records of a chunk.
    :raises DataError: where one is no dict.
    """
    first_number = 1
    record_iterator = iter(records)
    while True:
        chunk_records = list[Any]()
        error = None
        try:
            chunk_records.extend(islice(record_iterator, size))
        except DataError as raised:
            error = raised  # what was read before it stays in the list
        if not {dict}.issuperset(map(type, chunk_records)):
            chunk_records, error = _cut_at_other_kind(chunk_records, first_number, error)
        if chunk_records:
            yield RecordChunk(first_number, chunk_records)
        if error is not None:
            raise error
        if len(chunk_records) < size:
            return
        first_number += size


def _cut_at_other_kind(
    listed: list[Any], first: int, error: DataError | None
) -> tuple[list[Any], DataError | None]:
    """Give the records before the first that is no dict, with the error that says so."""
    for place, record in enumerate(listed):
        if not isinstance(record, dict):
            what = f"record {first + place} is {type(record).__name__}"
            why = "a format yields dicts, as a chat log's lines are"
            return listed[:place], DataError(f"{what}; {why}")
    return listed, error


def is_assistant(source: Source, sender: str, *, in_messenger: bool = False) -> bool:
    """Say whether a sender is an assistant: one that was named, or one whose name says so, which is
    counted.

    One of the names that the load says are people's is none.

    :param in_messenger: people talk to each other there, and Claude may be one of them: only the
        names of products say so.

    >>> from pathlib import Path
    >>> from memlab.datasets.chatlog import is_assistant
    >>> source = Source(Path("log.jsonl"), assistants=("ann",))
    >>> [is_assistant(source, sender) for sender in ("ChatGPT", "Claude", "Bo", "Ann")]
    [True, True, False, True]
    >>> is_assistant(source, "Claude", in_messenger=True)
    False
    """
    # Imported when it is needed: an import of memlab.datasets stays small.
    from memlab.datasets.role_words import ASSISTANTS, PRODUCTS, is_plain_role_word

    plain_name = _plain_name(sender)
    if plain_name in map(_plain_name, source.assistants):
        return True
    assistant_names = PRODUCTS if in_messenger else ASSISTANTS
    if plain_name not in assistant_names or is_person(source, sender):
        return False
    if not is_plain_role_word(sender.strip()):
        source.report.guessed[sender.strip()] += 1
    return True


def is_person(source: Source, sender: str) -> bool:
    """Say whether the load names a sender as a person, whatever their name says."""
    return _plain_name(sender) in map(_plain_name, source.people)


def messenger_role(source: Source, sender: str, *, is_bot: bool | None = None) -> str:
    """Give the role of a sender of a messenger: ``user``, ``assistant``, or ``other`` for any other
    bot.

    :param is_bot: what the export says; ``None`` where it says nothing.
    """
    if is_bot is False and _plain_name(sender) not in map(_plain_name, source.assistants):
        return "user"
    if is_assistant(source, sender, in_messenger=not is_bot):
        return "assistant"
    return "other" if is_bot else "user"


def _plain_name(name: str) -> str:
    return name.strip().casefold()


def make_datasets(
    source: Source,
    chunks: Iterable[Chunk],
    *,
    batch_turns: int,
    kind: str = "chatlog",
    by_place: bool = False,
    ordered: bool = False,
) -> Iterator[Dataset]:
    """Make datasets of the records of a chat log, in batches of whole scopes.

    :param by_place: whether they are a benchmark's, see above.
    :param ordered: whether the records of a session stand in the order in which they were said.
    """
    log = _Log(source, kind, by_place)
    log.ordered = ordered
    for chunk in chunks:
        tables = log.read_table(chunk, batch_turns)
        if tables is None:
            yield from log.read_records(chunk, batch_turns)
            continue
        for table_number, table in enumerate(tables):
            if table_number:
                yield from log.give_out(table["scope"][0], batch_turns)
            log.add_table(table)
    log.note_guesses()
    if not log.count and not (source.into and log.asked):
        issues = f"{len(source.report.issues)} issues"
        source.fail(
            f"holds no usable message ({issues}); expected {kind} records (docs/conversations.md)"
        )
    yield from log.make_datasets(batch_turns)


def _read_header(source: Source, raw: Any, place: int) -> bool:
    """Read the header: the language, and whether the lines of a scope stand together."""
    header = {"format": "chatlog", "grouped": False, "language": "en", **Record(raw, "memlab")}
    if place:
        raise BadField("memlab", "a header", "it in the first line only")
    for key, known_values in (("format", ["chatlog"]), ("language", list(LANGUAGES))):
        if header[key] not in known_values:
            known_list = f"one of {', '.join(known_values)}"
            raise BadField(f"memlab.{key}", describe_value(header[key]), known_list)
    is_grouped = fields.check_flag(header["grouped"], "memlab.grouped")
    source.language = source.language or header["language"]
    return is_grouped


def _count_in_words(count: int, what: str) -> str:
    """Write a count, with the first word in the plural where it is not one."""
    if count == 1:
        return f"1 {what}"
    first_word, *other_words = what.split(" ", 1)
    return " ".join((f"{count:,}", f"{first_word}s", *other_words))


def _find_scope_starts(scopes: pl.Series, last: str) -> list[int]:
    """Give the rows at which another scope begins."""
    scopes_before = scopes.shift(1, fill_value=last)
    return list((scopes != scopes_before).arg_true())


def _replace_cells(rows: pl.DataFrame, column: str, values: dict[int, Any]) -> pl.DataFrame:
    """Put values into a column, by their rows."""
    if not values:
        return rows
    value_schema = {"row": rows.schema["row"], "_value": rows.schema[column]}
    new_values = pl.DataFrame(
        {"row": list(values), "_value": list(values.values())}, schema=value_schema
    )
    joined_rows = rows.join(new_values, on="row", how="left", maintain_order="left")
    return joined_rows.with_columns(pl.coalesce("_value", column).alias(column)).drop("_value")


class _Log:
    """What is gathered of some scopes, on its way into datasets.

    ``asked`` holds the questions, summaries and annotations of each scope, with where they stand;
    ``ids`` the ids of the messages, ``query_ids`` those of the questions of the whole file;
    ``people`` are the speakers so far, by scope; ``scope`` is that of the last record, ``begun``
    are all so far, ``place`` is how many records were read.
    """

    def __init__(self, source: Source, kind: str, by_place: bool) -> None:
        self.source = source
        self.kind = kind
        self.by_place = by_place
        self.ordered = False
        self.query_ids = dict[str, str]()
        self.zoneless = False
        self.latest = dict[str, datetime]()
        self.people = dict[str, set[str]]()
        self.grouped = by_place
        self.scope = ""
        self.begun = set[str]()
        self.place = 0
        # Imported when a log is read: an import of memlab.datasets stays small.
        from memlab.datasets import other_names, role_words, thoughts, unread_texts

        self.turn_role = role_words.turn_role
        self.is_plain = role_words.is_plain_role_word
        self.cut_thoughts = thoughts.cut_thoughts
        self.list_unread = unread_texts.list_unread_keys
        self.unread = Counter[str]()
        self.passed_over = Counter[str]()
        self.renamed = dict[tuple[str, str], int]()
        self.find_other_names = other_names.find_other_names
        self.with_usual_names = other_names.with_usual_names
        self.silent = {_plain_name(name): name for name in (*source.assistants, *source.people)}
        self.begin({}, KnownIds())

    def begin(self, asked: dict[str, list[tuple[str, Record]]], ids: KnownIds) -> None:
        """Begin with the questions and ids already read of the scope that comes first."""
        self.asked = asked
        self.ids = ids
        self.count = 0
        self.messages = list[tuple[Any, ...]]()
        self.packed = list[pl.DataFrame]()

    def give_out(self, scope: str, batch_turns: int) -> Iterator[Dataset]:
        """Make datasets of what was gathered, and begin anew with a scope."""
        opened_questions = {}
        if scope in self.asked:
            opened_questions[scope] = self.asked.pop(scope)
        yield from self.make_datasets(batch_turns)
        self.begin(opened_questions, self.ids.take(scope))

    def note_guesses(self) -> None:
        """Note who was named and said nothing, whose name made them an assistant, and what was left
        out.
        """
        source = self.source
        if self.silent:
            silent_names = ", ".join(map(repr, self.silent.values()))
            source.note("sender", f"{silent_names}, whom no message is from", "nobody is called so")
        for name, count in source.report.guessed.items():
            action_text = TAKEN_BY_NAME.replace("the assistant", _TAKEN_FOR[self.turn_role(name)])
            source.note("assistant", f"{name!r}, {_count_in_words(count, 'message')}", action_text)
        for (name, key), count in self.renamed.items():
            renamed_text = f"none in {_count_in_words(count, 'message')}, which have {key!r}"
            source.note(name, renamed_text, f"read as the {name}")
        if self.passed_over:
            key_list = ", ".join(map(repr, self.passed_over))
            count = max(self.passed_over.values())
            source.note(
                "keys", f"{key_list}, in up to {_count_in_words(count, 'message')}", "not read"
            )
        for unread_kind, count in (+self.unread).items():
            action = "left out"
            if unread_kind == _OTHER_ROLES:
                action = _KEPT_AS_PERSONS
            source.note("messages", _count_in_words(count, unread_kind), action)

    def read_records(self, chunk: Chunk, batch_turns: int) -> Iterator[Dataset]:
        """Read the records of a chunk one by one."""
        source = self.source
        last_scope = self.scope
        for number, raw_record in chunk.records():
            record_place = f"{chunk.called} {number}"
            message = None
            with source.record(record_place, raw_record):
                self.place += 1
                record = raw_record if isinstance(raw_record, Record) else Record(raw_record)
                if "memlab" in record:
                    self.grouped = _read_header(source, record["memlab"], self.place - 1)
                    continue
                scope = self._read_scope(record)
                if self._is_about_messages(record):
                    self.asked.setdefault(scope, []).append((record_place, record))
                else:
                    record = self._rename(record)
                    message = self.read_message(record, scope, record_place, number)
            if message is None:
                continue
            is_full = self.grouped and self.count >= batch_turns
            if is_full and last_scope != message[0]:
                yield from self.give_out(message[0], batch_turns)
            last_scope = message[0]
            self.add(message)

    def _rename(self, record: Record) -> Record:
        """Give a message of somebody's own log its fields under their usual names."""
        if self.by_place:
            return record
        usual_names = self.find_other_names(record)
        if not usual_names:
            return record
        for name_and_key in usual_names.items():
            self.renamed[name_and_key] = self.renamed.get(name_and_key, 0) + 1
        return self.with_usual_names(record, usual_names)

    def _is_about_messages(self, record: Record) -> bool:
        """Say whether a record is a question, or what else a benchmark says of messages."""
        if self.by_place and "text" not in record:
            return True
        return "question" in record

    def _read_scope(self, record: Record) -> str:
        scope = record.take("scope", fields.check_name)
        is_again = scope != self.scope and scope in self.begun
        if is_again and self.grouped and not self.by_place:
            fault_text = f"{scope!r} again after another scope"
            raise BadField("scope", fault_text, 'its lines together, or no "grouped"')
        self.begun.add(scope)
        self.scope = scope
        return scope

    def add(self, message: tuple[Any, ...]) -> None:
        """Add a message; many are moved into a frame, which takes a fraction of the memory."""
        if len(self.messages) >= _PACK:
            self._pack()
        self.messages.append(message)
        self.count += 1

    def _pack(self) -> None:
        columns = dict(zip(_SCHEMA, zip(*self.messages, strict=True), strict=False))
        self.packed.append(pl.DataFrame(columns, schema=_SCHEMA))
        self.messages = []

    def read_message(self, record: Record, scope: str, where: str, number: int) -> tuple[Any, ...]:
        """Read a message into the columns of :data:`_SCHEMA`."""
        sender = record.take("sender", fields.check_name, None)
        role = record.take("role", fields.check_name, None)
        speaker = sender or role
        if speaker is None:
            raise BadField("sender", "neither a sender nor a role", "one of them")
        self.silent.pop(_plain_name(speaker), None)
        if role is None:
            role = self._role_of_sender(speaker)
        text = record.take("text", fields.check_text)
        caption = record.take("caption", fields.check_text, None)
        session = record.take("session", fields.check_name, None)
        message_id = record.take("id", fields.check_name, None)
        role = self._known_role(role)
        latest_time = self.latest.get(scope)
        if role == "assistant" and not self.by_place:
            text, thoughts = self.cut_thoughts(text)
            self.unread["thought"] += thoughts
        if not record.keys() <= _MESSAGE_FIELDS:
            self._count_unread(record)
        time = self._read_time(record, where, latest_time)
        if time is not None:
            self.latest[scope] = max(time, latest_time or time)
        if message_id is not None and message_id not in self.source.report.newer:
            first_number = self.ids.note(scope, message_id, number)
            if first_number != number:
                first_place = f"first on {where.partition(' ')[0]} {first_number}"
                fault_text = f"{message_id!r} again in scope {scope!r} ({first_place})"
                raise BadField("id", fault_text, "an id of its own")
        return (
            scope,
            session,
            speaker,
            role,
            text,
            caption,
            message_id,
            record.take("forwarded_from", fields.check_name, None),
            self._read_quotations(record, scope, speaker, role),
            time,
            record["n"] if self.by_place else None,
        )

    def read_table(self, chunk: Chunk, batch_turns: int) -> list[pl.DataFrame] | None:
        """Read the messages of a chunk in columns, divided where a batch ends.

        ``None`` where not all are plain; nothing is kept of such a chunk.
        """
        if self.by_place:
            return None
        table = chunk.tabulate()
        if table is None or not self._fits(table):
            return None
        rows = table.messages.with_columns(speaker=pl.coalesce("sender", "role"))
        roles = self._map_roles(rows["role"])
        if roles is None:
            return None
        number = pl.col("row").cast(pl.Int64) + chunk.first
        rows = rows.with_columns(roles.alias("role")).with_row_index("row")
        rows = rows.with_columns(number=number)
        if not self.ids.are_new(self._select_ids(rows)):
            return None
        self._note_zoneless(chunk, table)
        self.place += rows.height
        rows = self._name_roles(rows)
        rows = self._mark_quotations(rows)
        rows = self._cut_thoughts(rows, table)
        if self.source.tz is not None:
            for scope, time in rows.group_by("scope").agg(pl.max("timestamp")).drop_nulls().rows():
                self.latest[scope] = max(time, self.latest.get(scope, time))
        return self._divide(rows, batch_turns)

    def _fits(self, table: MessageTable) -> bool:
        """Say whether the times of a table have zones where one is named, and its scopes their
        order.
        """
        if table.zoneless is not None and self.source.tz is not None:
            return False
        if not self.grouped:
            return True
        scopes = table.messages["scope"]
        begun_scopes = [scopes[row] for row in _find_scope_starts(scopes, self.scope)]
        return len(set(begun_scopes)) == len(begun_scopes) and self.begun.isdisjoint(begun_scopes)

    def _divide(self, rows: pl.DataFrame, batch_turns: int) -> list[pl.DataFrame]:
        """Divide rows where a batch is full and another scope begins."""
        if not self.grouped:
            return [rows]
        table_parts = list[pl.DataFrame]()
        part_start = 0
        n_turns = self.count
        for scope_start in _find_scope_starts(rows["scope"], self.scope):
            if n_turns + scope_start - part_start >= batch_turns:
                table_parts.append(rows[part_start:scope_start])
                part_start = scope_start
                n_turns = 0
        return [*table_parts, rows[part_start:]]

    def add_table(self, rows: pl.DataFrame) -> None:
        """Add the messages that :meth:`read_table` gave."""
        if rows.is_empty():
            return
        self.ids.add(self._select_ids(rows))
        if self.messages:
            self._pack()
        without_place = pl.lit(None, pl.Int32).alias("n")
        self.packed.append(rows.with_columns(without_place).select(list(_SCHEMA)))
        self.begun.update(rows["scope"].unique())
        self.scope = rows["scope"][-1]
        self.count += rows.height

    def _select_ids(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Select the ids that stand once in their scope, but for those that an importer gives
        again.
        """
        named_messages = rows.select("scope", "id", "number").drop_nulls()
        newer_ids = self.source.report.newer
        if newer_ids:
            named_messages = named_messages.filter(~pl.col("id").is_in(list(newer_ids)))
        return named_messages

    def _map_roles(self, given: pl.Series) -> pl.Series | None:
        """Give the roles by their names, null where there is none.

        :returns: ``None`` where one is not known.
        """
        unread_before = self.unread.copy()
        known_roles = map_names(given, self._known_role)
        if self.unread == unread_before:
            return known_roles
        self.unread = unread_before
        return None

    def _note_zoneless(self, chunk: Chunk, table: MessageTable) -> None:
        if table.zoneless is not None and not self.zoneless:
            row, written_time = table.zoneless
            self._note_time(f"{chunk.called} {chunk.first + row}", written_time)

    def _name_roles(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Give the messages that say no role that of their sender."""
        if self.silent:
            for speaker in rows["speaker"].unique():
                self.silent.pop(_plain_name(speaker), None)
        if not rows["role"].has_nulls():
            return rows
        unnamed_speakers = rows.select("speaker").filter(rows["role"].is_null())
        guessed_names = self.source.report.guessed
        roles_by_speaker = dict[str, str]()
        for speaker, count in (
            unnamed_speakers.group_by("speaker", maintain_order=True).len().iter_rows()
        ):
            guessed_before = guessed_names.copy()
            roles_by_speaker[speaker] = self._known_role(self._role_of_sender(speaker))
            for name, n_guessed in (guessed_names - guessed_before).items():
                guessed_names[name] += n_guessed * (count - 1)
        role_of_speaker = pl.col("speaker").replace_strict(
            roles_by_speaker, default=None, return_dtype=pl.String
        )
        return rows.with_columns(role=pl.coalesce("role", role_of_speaker))

    def _mark_quotations(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Find the words of others in the texts of persons, each with the people who spoke before
        it.
        """
        columns = ("row", "scope", "speaker", "text")
        is_spoken = rows["quoted"].is_null() & (rows["role"] != "assistant")
        spoken_rows = rows.select(columns).filter(is_spoken)
        marked_rows = spoken_rows.filter(spoken_rows["text"].str.contains(MARKS))
        first_rows = rows.select(columns[:-1]).unique(columns[1:-1], keep="first")
        first_rows = first_rows.with_columns(text=pl.lit(None, pl.String))
        quotations_by_row = dict[int, list[str]]()
        ordered_rows = pl.concat([first_rows, marked_rows]).sort("row", maintain_order=True)
        for row, scope, speaker, text in ordered_rows.iter_rows():
            people = self.people.setdefault(scope, set())
            if text is None:
                people.add(_plain_name(speaker))
                continue
            quotations = self._find_quotations(text, speaker, people)
            if quotations:
                quotations_by_row[row] = quotations
        return _replace_cells(rows, "quoted", quotations_by_row)

    def _cut_thoughts(self, rows: pl.DataFrame, table: MessageTable) -> pl.DataFrame:
        """Cut thoughts out of answers, and count them and the texts that are not read, in their
        order.
        """
        is_answer = rows["role"] == "assistant"
        count_events = [(row, 0, "thought", 0) for row in is_answer.arg_true().head(1)]
        texts_by_row = dict[int, str]()
        answer_rows = rows.select("row", "text").filter(is_answer)
        marked_rows = answer_rows.filter(answer_rows["text"].str.contains_any(_MARKS_OF_THOUGHTS))
        for row, text in marked_rows.iter_rows():
            said_aloud, thoughts = self.cut_thoughts(text)
            if said_aloud != text:
                texts_by_row[row] = said_aloud
            count_events.append((row, 0, "thought", thoughts))
        self.passed_over.update(table.other_keys)
        if table.unread is not None:
            texts_and_captions = rows.select("text", "caption").iter_rows()
            for row, (record, (text, caption)) in enumerate(
                zip(table.unread.to_pylist(), texts_and_captions, strict=True)
            ):
                unread_keys = self.list_unread(record, _MESSAGE_FIELDS, f"{text}\n{caption or ''}")
                count_events += [(row, 1, f"text under the key {key!r}", 1) for key in unread_keys]
        for _, _, counted_kind, count in sorted(count_events, key=itemgetter(0, 1)):
            self.unread[counted_kind] += count
        return _replace_cells(rows, "text", texts_by_row)

    def _known_role(self, role: str) -> str:
        """Give one of the roles; any other is a person's, but for benchmarks."""
        known = self.turn_role(role)
        if known is not None:
            return known
        if self.by_place:
            return "other"
        self.unread[_OTHER_ROLES] += 1
        return "user"

    def _count_unread(self, record: Record) -> None:
        """Count the texts of a message that stand in fields that a chat log has not."""
        if self.by_place:
            return
        for key, value in record.items():
            if value is not None and key not in _MESSAGE_FIELDS:
                self.passed_over[key] += 1
        read_text = f"{record['text']}\n{record.get('caption') or ''}"
        for key in self.list_unread(record, _MESSAGE_FIELDS, read_text):
            self.unread[f"text under the key {key!r}"] += 1

    def _role_of_sender(self, speaker: str) -> str:
        """Give the role of a message that has none: by an assistant's name, or a role in place of a
        name.
        """
        if is_assistant(self.source, speaker):
            return "assistant"
        plain_name = _plain_name(speaker)
        if plain_name in ("other", "person") or is_person(self.source, speaker):
            return "user"
        role = self.turn_role(plain_name) or "user"
        if role != "user" and not self.is_plain(speaker.strip()):
            self.source.report.guessed[speaker.strip()] += 1
        return role

    def _read_quotations(
        self, record: Record, scope: str, speaker: str, role: str
    ) -> list[str] | None:
        """Give the parts of a text that are others' words: as the record says, else as they are
        found in it.

        Benchmarks stay as they are, and so does what an assistant says.
        """
        given_quotations = record.take("quoted", fields.check_rubric, None)
        people = self.people.setdefault(scope, set())
        people.add(_plain_name(speaker))
        if given_quotations is not None or self.by_place or role == "assistant":
            return given_quotations
        return self._find_quotations(record["text"], speaker, people) or None

    def _find_quotations(self, text: str, speaker: str, people: set[str]) -> list[str]:
        language = self.source.language or "en"
        return find_quotations(text, speaker=speaker, people=people, language=language)

    def _read_time(
        self, record: Record, where: str, latest: datetime | None = None
    ) -> datetime | None:
        """Read a record's time; one without a zone is of the zone that was named, else UTC, which
        is noted once.
        """
        message_time = record.take("timestamp", self.source.parse_time, None)
        if message_time is None:
            return None
        source_zone = self.source.tz
        if source_zone is None and message_time.tzinfo is None and not self.zoneless:
            self._note_time(where, record["timestamp"])
        return fields.place_in_zone(message_time, source_zone or UTC, latest)

    def _note_time(self, where: str, written: Any) -> None:
        action = "times without a zone are taken as UTC; tz= names theirs"
        self.source.note(f"{where}: timestamp", describe_value(written), action)
        self.zoneless = True

    def make_datasets(self, batch_turns: int) -> Iterator[Dataset]:
        """Cut what was gathered into batches of whole scopes, in the order in which they appear."""
        if self.messages or not self.packed:
            self._pack()
        messages = pl.concat(self.packed)
        self.packed = []
        sizes = dict(messages.group_by("scope", maintain_order=True).len().iter_rows())
        self._reject_questions(sizes)
        run = list[str]()
        total = 0
        for place, (scope, size) in enumerate(sizes.items(), 1):
            run.append(scope)
            total += size
            if total >= batch_turns or place == len(sizes):
                part = messages
                if len(run) < len(sizes):
                    part = messages.filter(pl.col("scope").is_in(run))
                yield self._make_dataset(part, run)
                run = []
                total = 0

    def _reject_questions(self, sizes: dict[str, int]) -> None:
        """Reject the questions of scopes that have no messages; one that has some where the file
        goes has 0 here.
        """
        for scope in list(self.asked):
            if scope in sizes:
                continue
            if self.source.into and self.source.into([encode_id_part(scope)]).turns.height:
                sizes[scope] = 0
                continue
            for question_place, record in self.asked.pop(scope):
                with self.source.record(question_place, record):
                    fault_text = f"{scope!r}, which has no messages"
                    raise BadField("scope", fault_text, "a scope that messages are of")

    def _make_dataset(self, messages: pl.DataFrame, scopes: list[str]) -> Dataset:
        """Give messages their ids and places, and questions the ids of what they cite."""
        source = self.source
        stored_dataset = None
        encoded_scopes = map_names(messages["scope"], encode_id_part)
        messages = messages.with_columns(raw_scope="scope", scope=encoded_scopes)
        if source.into:
            stored_dataset = source.into(list(map(encode_id_part, scopes)))
        placed_messages = all_messages = self._give_ids(messages)
        if stored_dataset is not None and not self.by_place:
            # Places are counted in the file, ids are looked up in all that is there.
            all_messages = self._merge(stored_dataset, placed_messages)
        asked_records = []
        for scope in scopes:
            for question_number, (question_place, record) in enumerate(self.asked.get(scope, ())):
                asked_records.append((scope, question_number, question_place, record))
        questions, annotations, summaries = self._read_asked(
            asked_records, placed_messages, all_messages, stored_dataset
        )
        sessions = sessions_of(all_messages, summaries=summaries)
        turns = _sort_by_session(all_messages, sessions).select(*schema(Turn))
        merged_onto = dict[str, str]()
        if stored_dataset is not None:
            merged_onto = digest_turns(stored_dataset.turns, map(encode_id_part, scopes))
        return Dataset(
            escape_surrogates(source.path.stem),
            self.kind,
            turns,
            sessions,
            frame(Question, questions),
            frame(Annotation, annotations),
            source.report.take_issues(),
            language=source.language or "en",
            merged_onto=merged_onto,
        )

    def _give_ids(self, messages: pl.DataFrame) -> pl.DataFrame:
        """Give messages their ``turn_id`` and ``session_id``, and their places where they have
        none.
        """
        if not self.by_place:
            return self._assign_places(
                self._put_in_order(with_turn_ids(messages.rename({"session": "named"})))
            )
        session = map_names(messages["session"], encode_id_part)
        placed_messages = messages.with_columns(session_id=pl.format("{}/{}", "scope", session))
        turn_id = pl.coalesce("id", pl.format("{}/{}", "session_id", "n"))
        return placed_messages.with_columns(turn_id=turn_id)

    def _merge(self, there: Dataset, placed: pl.DataFrame) -> pl.DataFrame:
        """Put messages to those that are there.

        :raises DataError: where these were stored by a memlab that named turns otherwise.
        """
        old_turns = there.turns.filter(pl.col("turn_id").str.count_matches("/") > 1)
        if old_turns.height:
            fault_text = (
                f"dataset {there.name!r} has ids of an older memlab ({old_turns['turn_id'][0]!r})"
            )
            self.source.fail(
                f"{fault_text}; ingest its whole file once more, then this one goes into it"
            )
        return self._assign_places(merge_stored_turns(there.turns, placed))

    def _read_asked(
        self,
        asked: list[tuple[str, int, str, Record]],
        placed_messages: pl.DataFrame,
        all_messages: pl.DataFrame,
        stored_dataset: Dataset | None,
    ) -> tuple[list[Question], list[Annotation], dict[str, str]]:
        """Read the questions of some scopes, and what a benchmark says of sessions.

        :param asked: the scope, the place among those of the scope, where it stands, and the
            record.
        :param placed_messages: the messages of the file, ``all_messages`` all that there are.
        """
        questions = list[Question]()
        annotations = list[Annotation]()
        summaries = dict[str, str]()
        citation_index = message_identity.build_citation_index(
            placed_messages, all_messages, [record for *_, record in asked]
        )
        taken_ids = message_identity.TakenQuestionIds(
            stored_dataset, self.query_ids, as_they_are=self.by_place
        )
        for scope, question_number, question_place, record in asked:
            encoded_scope = encode_id_part(scope)
            with self.source.record(question_place, record):
                if self.by_place and "summary" in record:
                    session = encode_id_part(record["session"])
                    summaries[f"{encoded_scope}/{session}"] = record["summary"]
                elif self.by_place and "annotation" in record:
                    annotations.append(message_identity.read_annotation(record, encoded_scope))
                else:
                    time = self._read_time(record, question_place)
                    question = message_identity.read_question(record, scope, citation_index, time)
                    questions.append(taken_ids.named(question, question_number, question_place))
        return questions, annotations, summaries

    def _put_in_order(self, messages: pl.DataFrame) -> pl.DataFrame:
        """Give messages the times that put them into order, and say how many clocks disagree."""
        placed_messages = messages.with_columns(placed=order_times(messages, ordered=self.ordered))
        n_steps_back = count_steps_back(placed_messages)
        if n_steps_back:
            plural_verb = "lies" if n_steps_back == 1 else "lie"
            steps_back_text = (
                f"{_count_in_words(n_steps_back, 'time')} that {plural_verb} before that of the "
                "message above"
            )
            self.source.note("timestamp", steps_back_text, "the order of the file is kept")
        return placed_messages

    def _assign_places(self, messages: pl.DataFrame) -> pl.DataFrame:
        """Give messages their sessions and places, and the ids of both."""
        return with_session_ids(
            sessionize(messages.with_columns(session="named"), gap=self.source.gap)
        )


def _sort_by_session(messages: pl.DataFrame, sessions: pl.DataFrame) -> pl.DataFrame:
    """Sort messages by session and place."""
    # Most are in order, which takes a part of the time to see.
    is_in_order = messages["session_id"].rle().struct["value"].equals(sessions["session_id"])
    if is_in_order:
        goes_on = pl.col("n") > pl.col("n").shift()
        starts_session = pl.col("session_id") != pl.col("session_id").shift()
        is_in_order = messages.select((goes_on | starts_session).slice(1).all()).item()
    if is_in_order:
        return messages
    session_order = sessions.select("session_id").with_row_index("place")
    return messages.join(session_order, on="session_id", how="left").sort("place", "n")
