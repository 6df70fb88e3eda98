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
:mod:`memlab.datasets.other_field_names`), that one is read, and an issue says so. Other keys of a
line are not read, and an issue names them.

Readers of benchmarks yield the same records, **by place**: scope by scope, a message with its
``session`` and its place ``n``, ids as they are, and two kinds more: a session's ``summary``, and
an ``annotation`` (:class:`memlab.records.Annotation`) with ``annotation_id``, ``kind``, ``speaker``
and ``evidence``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import polars as pl

from memlab.datasets import message_identity, record_fields
from memlab.datasets.message_identity import (
    map_distinct_names,
    merge_stored_turns,
    with_session_ids,
    with_turn_ids,
)
from memlab.datasets.record_fields import (
    BadField,
    JsonObject,
    JsonValue,
    Record,
    describe_value,
    escape_surrogates,
)
from memlab.datasets.record_sources import Source
from memlab.errors import DataError
from memlab.records import (
    Annotation,
    Dataset,
    Question,
    Turn,
    concat,
    encode_id_part,
    frame,
    schema,
)
from memlab.records.dataset import digest_turns_by_scope_or_empty
from memlab.registry import formats
from memlab.sessions import count_steps_back, find_ordering_times, sessionize, sessions_of
from memlab.text.languages import LANGUAGES

if TYPE_CHECKING:
    from memlab.datasets.chatlog_messages import MessageRow
    from memlab.datasets.message_columns import MessageTable
    from memlab.datasets.unchanged_sessions import UnchangedSessions

KEYS = {"scope", "text", "sender", "memlab"}
_PACK = 50_000
_CHUNK = 4_000
"""Records of a reader that are checked together."""
_FEW = 1_000
_SHORT = 1 << 18
"""Records, and bytes of lines, below which a chunk is not worth the import of Arrow."""


@formats.register(name="chatlog", keys=KEYS)
def read_chatlog(source: Source) -> Iterator[JsonValue]:
    """Read the lines of a chat log."""
    return (record for _, record in source.stream_numbered_json_lines())


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
    def n_records(self) -> int:
        """How many lines end in it."""
        return self.lines.count(b"\n")

    def numbered_records(self) -> Iterator[tuple[int, JsonValue]]:
        """Give the records with their numbers; lines that hold none are rejected."""
        return self.source.decode_numbered_lines(self.lines, self.first)

    def tabulate_if_many_and_plain(self) -> MessageTable | None:
        """Give the messages as columns, where all are plain and there are many."""
        if len(self.lines) < _SHORT:
            return None
        from memlab.datasets import chatlog_messages, message_columns

        return message_columns.tabulate_json_lines(self.lines, chatlog_messages.MESSAGE_FIELDS)


@dataclass
class RecordChunk:
    """Records of another reader.

    :param first: the number of the first one, from 1.
    """

    first: int
    listed: list[JsonObject]
    called = "record"

    @property
    def n_records(self) -> int:
        return len(self.listed)

    def numbered_records(self) -> Iterator[tuple[int, JsonValue]]:
        """Give the records with their numbers."""
        return enumerate(self.listed, self.first)

    def tabulate_if_many_and_plain(self) -> MessageTable | None:
        """Give the messages as columns, where all are plain and there are many."""
        if len(self.listed) < _FEW:
            return None
        from memlab.datasets import chatlog_messages, message_columns

        return message_columns.tabulate_records(self.listed, chatlog_messages.MESSAGE_FIELDS)


Chunk = LineChunk | RecordChunk


def read_line_chunks_with_header_apart(source: Source) -> Iterator[Chunk]:
    """Read a chat log in chunks; a header stands alone, so that the lines behind it are plain."""
    for number, chunk_lines in source.stream_line_chunks_with_first_number():
        header, line_end, other_lines = chunk_lines.partition(b"\n")
        if number == 1 and b'"memlab"' in header:
            yield LineChunk(source, number, header + line_end)
            number = 2
            chunk_lines = other_lines
        if chunk_lines:
            yield LineChunk(source, number, chunk_lines)


def dataset(records: Iterable[JsonObject], name: str) -> Dataset:
    """Make a dataset of records that are in memory.

    :raises DataError: for a record that cannot be used.

    >>> from memlab.datasets import chatlog
    >>> chatlog.dataset([{"scope": "ann", "sender": "Ann", "text": "Hello"}], "mine").describe()
    'mine (chatlog): 1 turn in 1 session of 1 scope, 0 questions'
    """
    chunks = records_in_chunks(records)
    return concat(make_dataset_batches(Source(Path(name)), chunks, batch_turns=1 << 62))


def records_in_chunks(
    records: Iterable[JsonObject], *, chunk_size: int = _CHUNK
) -> Iterator[Chunk]:
    """Divide the records that another reader yields into chunks; those before an error come before
    it.

    :param chunk_size: records of a chunk.
    :raises DataError: where one is no dict.
    """
    first_number = 1
    record_iterator = iter(records)
    while True:
        chunk_records = list[Any]()
        error = None
        try:
            chunk_records.extend(islice(record_iterator, chunk_size))
        except DataError as raised:
            error = raised  # what was read before it stays in the list
        if not {dict}.issuperset(map(type, chunk_records)):
            chunk_records, error = _records_before_non_dict_and_error(
                chunk_records, first_number, error
            )
        if chunk_records:
            yield RecordChunk(first_number, chunk_records)
        if error is not None:
            raise error
        if len(chunk_records) < chunk_size:
            return
        first_number += chunk_size


def _records_before_non_dict_and_error(
    records: list[JsonValue], first_number: int, read_error: DataError | None
) -> tuple[list[JsonValue], DataError | None]:
    """Give the records before the first that is no dict, with the error that says so."""
    for place, record in enumerate(records):
        if not isinstance(record, dict):
            record_text = f"record {first_number + place} is {type(record).__name__}"
            why = "a format yields dicts, as a chat log's lines are"
            return records[:place], DataError(f"{record_text}; {why}")
    return records, read_error


def make_dataset_batches(
    source: Source,
    chunks: Iterable[Chunk],
    *,
    batch_turns: int,
    format_name: str = "chatlog",
    is_benchmark: bool = False,
    is_ordered: bool = False,
) -> Iterator[Dataset]:
    """Make datasets of the records of a chat log, in batches of whole scopes.

    :param is_benchmark: whether they are a benchmark's, see above.
    :param is_ordered: whether the records of a session stand in the order in which they were said.
    """
    log = _GatheredLog(source, format_name, is_benchmark=is_benchmark, ordered=is_ordered)
    for chunk in chunks:
        yield from log.gather_and_yield_full_batches(chunk, batch_turns)
    log.notes.note_all_counts_as_issues()
    if not log.n_messages and not (source.into and log.asked):
        from memlab.datasets.chatlog_notes import count_with_noun

        issues = count_with_noun(len(source.report.issues), "issue")
        source.fail(
            f"holds no usable message ({issues}); expected {format_name} records "
            "(docs/conversations.md)"
        )
    yield from log.yield_batches_of_whole_scopes(batch_turns)


def _set_language_and_read_is_grouped(
    source: Source, raw_header: JsonValue, n_records_before: int
) -> bool:
    """Read the header: the language, and whether the lines of a scope stand together."""
    header = {
        "format": "chatlog",
        "grouped": False,
        "language": "en",
        **Record(raw_header, "memlab"),
    }
    if n_records_before:
        raise BadField("memlab", "a header", "it in the first line only")
    for key, known_values in (("format", ["chatlog"]), ("language", list(LANGUAGES))):
        if header[key] not in known_values:
            known_list = f"one of {', '.join(known_values)}"
            raise BadField(f"memlab.{key}", describe_value(header[key]), known_list)
    is_grouped = record_fields.check_flag(header["grouped"], "memlab.grouped")
    source.language = source.language or header["language"]
    return is_grouped


def _rows_where_scope_begins(scope_column: pl.Series, scope_before: str) -> list[int]:
    """Give the rows at which another scope begins."""
    scopes_before = scope_column.shift(1, fill_value=scope_before)
    return list((scope_column != scopes_before).arg_true())


class _AskedRecord(NamedTuple):
    """A question, summary or annotation: its scope, its place among those, and where it stands."""

    scope: str
    place_in_scope: int
    record_label: str
    record: Record


class _GatheredLog:
    """What is gathered of some scopes, on its way into datasets.

    ``asked`` holds the questions, summaries and annotations of each scope, with where they stand;
    ``query_ids`` are those of the questions of the whole file; ``scope`` is that of the last
    record, ``begun_scopes`` are all so far, ``n_records`` is how many records were read;
    ``n_messages`` and the messages, in rows and in frames, are those since the last batch.
    """

    def __init__(self, source: Source, kind: str, *, is_benchmark: bool, ordered: bool) -> None:
        # Imported when a log is read: an import of memlab.datasets stays small.
        from memlab.datasets import chatlog_messages, chatlog_notes

        self.source = source
        self.kind = kind
        self.is_benchmark = is_benchmark
        self.ordered = ordered
        self.notes = chatlog_notes.LogNotes(source)
        self.reader = chatlog_messages.MessageReader(source, self.notes, is_benchmark=is_benchmark)
        self.message_schema = chatlog_messages.MESSAGE_SCHEMA
        self.query_ids = dict[str, str]()
        self.grouped = is_benchmark
        self.scope = ""
        self.begun_scopes = set[str]()
        self.n_records = 0
        self._clear_rows_and_keep_questions({})

    def _clear_rows_and_keep_questions(
        self, questions_by_scope: dict[str, list[tuple[str, Record]]]
    ) -> None:
        """Begin with the questions that were read already of the scope that comes first."""
        self.asked = questions_by_scope
        self.n_messages = 0
        self.rows: list[MessageRow] = []
        self.frames = list[pl.DataFrame]()

    def gather_and_yield_full_batches(self, chunk: Chunk, batch_turns: int) -> Iterator[Dataset]:
        """Read a chunk; the batches before it are given out where they are full."""
        tables = self._read_plain_chunk_in_batch_parts(chunk, batch_turns)
        if tables is None:
            yield from self._gather_one_by_one_and_yield_batches(chunk, batch_turns)
            return
        for table_number, table in enumerate(tables):
            if table_number:
                yield from self._yield_batches_and_restart(table["scope"][0], batch_turns)
            self._add_message_frame(table)

    def _yield_batches_and_restart(self, next_scope: str, batch_turns: int) -> Iterator[Dataset]:
        """Make datasets of what was gathered, and begin anew with a scope."""
        opened_questions = {}
        if next_scope in self.asked:
            opened_questions[next_scope] = self.asked.pop(next_scope)
        yield from self.yield_batches_of_whole_scopes(batch_turns)
        self.reader.ids = self.reader.ids.copy_of_scope_alone(next_scope)
        self._clear_rows_and_keep_questions(opened_questions)

    def _gather_one_by_one_and_yield_batches(
        self, chunk: Chunk, batch_turns: int
    ) -> Iterator[Dataset]:
        """Read the records of a chunk one by one."""
        last_scope = self.scope
        for number, raw_record in chunk.numbered_records():
            message = self._read_message_or_keep_other_record(
                raw_record, f"{chunk.called} {number}", number
            )
            if message is None:
                continue
            is_full = self.grouped and self.n_messages >= batch_turns
            if is_full and last_scope != message[0]:
                yield from self._yield_batches_and_restart(message[0], batch_turns)
            last_scope = message[0]
            self._add_message_row(message)

    def _read_message_or_keep_other_record(
        self, raw_record: JsonValue, record_label: str, record_number: int
    ) -> MessageRow | None:
        """Read a record; ``None`` for one that is no message, or is rejected."""
        with self.source.record(record_label, raw_record):
            self.n_records += 1
            record = raw_record if isinstance(raw_record, Record) else Record(raw_record)
            if "memlab" in record:
                self.grouped = _set_language_and_read_is_grouped(
                    self.source, record["memlab"], self.n_records - 1
                )
                return None
            scope = self._check_and_begin_scope_of_record(record)
            if self._is_question_or_annotation(record):
                self.asked.setdefault(scope, []).append((record_label, record))
                return None
            return self.reader.read_message_row(
                self.reader.rename_fields_to_usual_and_count(record),
                scope,
                record_label,
                record_number,
            )
        return None

    def _is_question_or_annotation(self, record: Record) -> bool:
        """Say whether a record is a question, or what else a benchmark says of messages."""
        if self.is_benchmark and "text" not in record:
            return True
        return "question" in record

    def _check_and_begin_scope_of_record(self, record: Record) -> str:
        scope = record.read_field("scope", record_fields.check_name)
        is_again = scope != self.scope and scope in self.begun_scopes
        if is_again and self.grouped and not self.is_benchmark:
            fault_text = f"{scope!r} again after another scope"
            raise BadField("scope", fault_text, 'its lines together, or no "grouped"')
        self.begun_scopes.add(scope)
        self.scope = scope
        return scope

    def _add_message_row(self, message_row: MessageRow) -> None:
        """Add a message; many are moved into a frame, which takes a fraction of the memory."""
        if len(self.rows) >= _PACK:
            self._move_rows_to_frame()
        self.rows.append(message_row)
        self.n_messages += 1

    def _move_rows_to_frame(self) -> None:
        columns = dict(zip(self.message_schema, zip(*self.rows, strict=True), strict=False))
        self.frames.append(pl.DataFrame(columns, schema=self.message_schema))
        self.rows = []

    def _read_plain_chunk_in_batch_parts(
        self, chunk: Chunk, batch_turns: int
    ) -> list[pl.DataFrame] | None:
        """Read the messages of a chunk in columns, divided where a batch ends.

        ``None`` where not all are plain; nothing is kept of such a chunk.
        """
        if self.is_benchmark:
            return None
        table = chunk.tabulate_if_many_and_plain()
        if table is None or not self._has_zones_and_grouped_scopes(table):
            return None
        rows = self.reader.read_message_table_if_plain(table, chunk.first, chunk.called)
        if rows is None:
            return None
        self.n_records += rows.height
        return self._split_at_batch_ends(rows, batch_turns)

    def _has_zones_and_grouped_scopes(self, message_table: MessageTable) -> bool:
        """Say whether the times of a table have zones where one is named, and its scopes their
        order.
        """
        if message_table.zoneless is not None and self.source.tz is not None:
            return False
        if not self.grouped:
            return True
        scopes = message_table.messages["scope"]
        begun_scopes = [scopes[row] for row in _rows_where_scope_begins(scopes, self.scope)]
        return len(set(begun_scopes)) == len(begun_scopes) and self.begun_scopes.isdisjoint(
            begun_scopes
        )

    def _split_at_batch_ends(self, messages: pl.DataFrame, batch_turns: int) -> list[pl.DataFrame]:
        """Divide rows where a batch is full and another scope begins."""
        if not self.grouped:
            return [messages]
        table_parts = list[pl.DataFrame]()
        part_start = 0
        n_turns = self.n_messages
        for scope_start in _rows_where_scope_begins(messages["scope"], self.scope):
            if n_turns + scope_start - part_start >= batch_turns:
                table_parts.append(messages[part_start:scope_start])
                part_start = scope_start
                n_turns = 0
        return [*table_parts, messages[part_start:]]

    def _add_message_frame(self, messages: pl.DataFrame) -> None:
        """Add messages in columns, as ``read_message_table_if_plain`` of the reader gives them."""
        if messages.is_empty():
            return
        self.reader.ids.add_new_ids(self.reader.select_ids_that_must_be_unique(messages))
        if self.rows:
            self._move_rows_to_frame()
        without_place = pl.lit(None, pl.Int32).alias("n")
        self.frames.append(messages.with_columns(without_place).select(list(self.message_schema)))
        self.begun_scopes.update(messages["scope"].unique())
        self.scope = messages["scope"][-1]
        self.n_messages += messages.height

    def yield_batches_of_whole_scopes(self, batch_turns: int) -> Iterator[Dataset]:
        """Cut what was gathered into batches of whole scopes, in the order in which they appear."""
        if self.rows or not self.frames:
            self._move_rows_to_frame()
        messages = pl.concat(self.frames)
        self.frames = []
        sizes = dict(messages.group_by("scope", maintain_order=True).len().iter_rows())
        self._reject_questions_or_add_stored_scopes(sizes)
        batch_scopes = list[str]()
        n_messages = 0
        for scope_number, (scope, size) in enumerate(sizes.items(), 1):
            batch_scopes.append(scope)
            n_messages += size
            if n_messages >= batch_turns or scope_number == len(sizes):
                batch = messages
                if len(batch_scopes) < len(sizes):
                    batch = messages.filter(pl.col("scope").is_in(batch_scopes))
                yield self._make_dataset_of_scopes(batch, batch_scopes)
                batch_scopes = []
                n_messages = 0

    def _reject_questions_or_add_stored_scopes(self, n_messages_by_scope: dict[str, int]) -> None:
        """Reject the questions of scopes that have no messages; one that has some where the file
        goes has 0 here.
        """
        for scope in list(self.asked):
            if scope in n_messages_by_scope:
                continue
            if self.source.into and self.source.into([encode_id_part(scope)]).turns.height:
                n_messages_by_scope[scope] = 0
                continue
            for question_place, record in self.asked.pop(scope):
                with self.source.record(question_place, record):
                    fault_text = f"{scope!r}, which has no messages"
                    raise BadField("scope", fault_text, "a scope that messages are of")

    def _make_dataset_of_scopes(self, messages: pl.DataFrame, scopes: list[str]) -> Dataset:
        """Give messages their ids and places, and questions the ids of what they cite."""
        source = self.source
        stored_dataset = None
        encoded_scopes = map_distinct_names(messages["scope"], encode_id_part)
        messages = messages.with_columns(raw_scope="scope", scope=encoded_scopes)
        if source.into:
            stored_dataset = source.into(list(map(encode_id_part, scopes)))
        placed_messages = all_messages = self._assign_ids_and_places(messages)
        unchanged = None
        if stored_dataset is not None and not self.is_benchmark:
            self._refuse_ids_of_older_memlab(stored_dataset)
            unchanged = self._find_unchanged_sessions(stored_dataset, placed_messages, scopes)
            # Places are counted in the file, ids are looked up in all that is there.
            all_messages = self._assign_sessions_and_places(
                merge_stored_turns(stored_dataset.turns[unchanged.turns.height :], placed_messages)
            )
        asked_records = []
        for scope in scopes:
            for question_number, (question_place, record) in enumerate(self.asked.get(scope, ())):
                asked_records.append(_AskedRecord(scope, question_number, question_place, record))
        questions, annotations, summaries = self._read_questions_annotations_summaries(
            asked_records, placed_messages, all_messages, stored_dataset
        )
        sessions = sessions_of(all_messages, summaries=summaries)
        turns = _sort_by_session_and_place(all_messages, sessions).select(*schema(Turn))
        if unchanged is not None and unchanged.sessions.height:
            turns = pl.concat([unchanged.turns.select(turns.columns), turns])
            later_number = pl.col("n") + unchanged.sessions.height
            sessions = pl.concat([unchanged.sessions, sessions.with_columns(later_number)])
        merged_onto = dict[str, str]()
        if stored_dataset is not None:
            merged_onto = digest_turns_by_scope_or_empty(
                stored_dataset.turns, map(encode_id_part, scopes)
            )
        return Dataset(
            escape_surrogates(source.path.stem),
            self.kind,
            turns,
            sessions,
            frame(Question, questions),
            frame(Annotation, annotations),
            source.report.take_and_clear_issues(),
            language=source.language or "en",
            merged_onto=merged_onto,
        )

    def _assign_ids_and_places(self, messages: pl.DataFrame) -> pl.DataFrame:
        """Give messages their ``turn_id`` and ``session_id``, and their places where they have
        none.
        """
        if not self.is_benchmark:
            return self._assign_sessions_and_places(
                self._add_order_times_and_note_steps_back(
                    with_turn_ids(messages.rename({"session": "named"}))
                )
            )
        session = map_distinct_names(messages["session"], encode_id_part)
        placed_messages = messages.with_columns(session_id=pl.format("{}/{}", "scope", session))
        turn_id = pl.coalesce("id", pl.format("{}/{}", "session_id", "n"))
        return placed_messages.with_columns(turn_id=turn_id)

    def _find_unchanged_sessions(
        self, stored_dataset: Dataset, placed_messages: pl.DataFrame, scopes: list[str]
    ) -> UnchangedSessions:
        """Find the stored sessions that messages leave as they are; none where something is asked,
        since that may cite any message.
        """
        from memlab.datasets.unchanged_sessions import UnchangedSessions, find_unchanged_sessions

        if not self.asked.keys().isdisjoint(scopes):
            return UnchangedSessions(stored_dataset.turns.clear(), stored_dataset.sessions.clear())
        return find_unchanged_sessions(stored_dataset, placed_messages, gap=self.source.gap)

    def _refuse_ids_of_older_memlab(self, stored_dataset: Dataset) -> None:
        """Refuse to add messages to those that were stored by a memlab that named turns otherwise.

        :raises DataError: for such a dataset.
        """
        n_slashes = pl.col("turn_id").str.count_matches("/", literal=True)
        old_turns = stored_dataset.turns.filter(n_slashes > 1)
        if old_turns.height:
            fault_text = (
                f"dataset {stored_dataset.name!r} has ids of an older memlab "
                f"({old_turns['turn_id'][0]!r})"
            )
            self.source.fail(
                f"{fault_text}; ingest its whole file once more, then this one goes into it"
            )

    def _read_questions_annotations_summaries(
        self,
        asked_records: list[_AskedRecord],
        placed_messages: pl.DataFrame,
        all_messages: pl.DataFrame,
        stored_dataset: Dataset | None,
    ) -> tuple[list[Question], list[Annotation], dict[str, str]]:
        """Read the questions of some scopes, and what a benchmark says of sessions: annotations,
        and summaries by session.

        :param placed_messages: the messages of the file, ``all_messages`` all that there are.
        """
        questions = list[Question]()
        annotations = list[Annotation]()
        summaries = dict[str, str]()
        citation_index = message_identity.build_citation_index_by_field(
            placed_messages, all_messages, [asked_record.record for asked_record in asked_records]
        )
        taken_ids = message_identity.TakenQuestionIds(
            stored_dataset, self.query_ids, as_they_are=self.is_benchmark
        )
        for scope, question_number, question_place, record in asked_records:
            encoded_scope = encode_id_part(scope)
            with self.source.record(question_place, record):
                if self.is_benchmark and "summary" in record:
                    session = encode_id_part(record["session"])
                    summaries[f"{encoded_scope}/{session}"] = record["summary"]
                elif self.is_benchmark and "annotation" in record:
                    annotations.append(message_identity.read_annotation(record, encoded_scope))
                else:
                    time = self.reader.read_time_in_utc_and_note_no_zone(record, question_place)
                    question = message_identity.read_question(record, scope, citation_index, time)
                    questions.append(
                        taken_ids.check_and_take_question_id(
                            question, question_number, question_place
                        )
                    )
        return questions, annotations, summaries

    def _add_order_times_and_note_steps_back(self, messages: pl.DataFrame) -> pl.DataFrame:
        """Give messages the times that put them into order, and say how many clocks disagree."""
        from memlab.datasets.chatlog_notes import count_with_noun

        placed_messages = messages.with_columns(
            placed=find_ordering_times(messages, is_ordered=self.ordered)
        )
        n_steps_back = count_steps_back(placed_messages)
        if n_steps_back:
            plural_verb = "lies" if n_steps_back == 1 else "lie"
            steps_back_text = (
                f"{count_with_noun(n_steps_back, 'time')} that {plural_verb} before that of the "
                "message above"
            )
            self.source.note("timestamp", steps_back_text, "the order of the file is kept")
        return placed_messages

    def _assign_sessions_and_places(self, messages: pl.DataFrame) -> pl.DataFrame:
        """Give messages their sessions and places, and the ids of both."""
        return with_session_ids(
            sessionize(messages.with_columns(session="named"), gap=self.source.gap)
        )


def _sort_by_session_and_place(messages: pl.DataFrame, sessions: pl.DataFrame) -> pl.DataFrame:
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
