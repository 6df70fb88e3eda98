"""The messages of a chat log: read record by record, or many at once in columns.

Both give the same: the columns of :data:`MESSAGE_SCHEMA`.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

import polars as pl

from memlab.datasets import record_fields
from memlab.datasets.chatlog_notes import OTHER_ROLES, LogNotes
from memlab.datasets.message_identity import KnownIds, map_distinct_names
from memlab.datasets.record_fields import BadField, JsonObject, JsonValue, Record, describe_value
from memlab.datasets.record_sources import Source
from memlab.datasets.sender_roles import (
    comparable_name,
    is_assistant_and_count_guess,
    is_named_as_person,
)
from memlab.records import TIMESTAMP
from memlab.text.quotations import MARKS, find_quotations

if TYPE_CHECKING:
    from memlab.datasets.message_columns import MessageTable

_TEXTS = ("scope", "session", "speaker", "role", "text", "caption", "id", "forwarded_from")
_NAMED = frozenset(_TEXTS) - {"speaker"}
MESSAGE_SCHEMA: dict[str, Any] = {
    **dict.fromkeys(_TEXTS, pl.String()),
    "quoted": pl.List(pl.String()),
    "timestamp": TIMESTAMP,
    "n": pl.Int32(),
}
MESSAGE_FIELDS = frozenset((*_NAMED, "sender", "timestamp", "quoted", "edited", "n"))
_MARKS_OF_THOUGHTS = ["<", "◁", "["]
"""What every mark of a thought begins with."""

MessageRow = tuple[Any, ...]
"""The values of a message, in the order of :data:`MESSAGE_SCHEMA`."""


class _CountEvent(NamedTuple):
    """What is counted of a message, by its row; of one row the lower order is counted first."""

    row: int
    order: int
    counted_kind: str
    n_counted: int


class MessageReader:
    """Reads messages, and what follows from those before them.

    ``ids`` are those of the messages so far; ``people`` the speakers so far, by scope; ``latest``
    the latest time of each scope; ``has_noted_zone`` says whether an issue says that a time has no
    zone.

    :param is_benchmark: whether they are a benchmark's: these stay as they are.
    """

    def __init__(self, source: Source, notes: LogNotes, *, is_benchmark: bool) -> None:
        self.source = source
        self.notes = notes
        self.is_benchmark = is_benchmark
        self.ids = KnownIds()
        self.people = dict[str, set[str]]()
        self.latest = dict[str, datetime]()
        self.has_noted_zone = False
        # Imported when a log is read: an import of memlab.datasets stays small.
        from memlab.datasets import other_field_names, role_words, thinking_tags

        self.find_key_by_usual_name = other_field_names.find_key_by_usual_name
        self.with_usual_names = other_field_names.with_usual_names
        self.turn_role_of_word = role_words.turn_role_of_word
        self.is_plain_role_word = role_words.is_plain_role_word
        self.cut_and_count_thoughts = thinking_tags.cut_and_count_thoughts

    def rename_fields_to_usual_and_count(self, record: Record) -> Record:
        """Give a message of somebody's own log its fields under their usual names."""
        if self.is_benchmark:
            return record
        usual_names = self.find_key_by_usual_name(record)
        if not usual_names:
            return record
        self.notes.count_renamed_fields(usual_names)
        return self.with_usual_names(record, usual_names)

    def read_message_row(
        self, record: Record, scope: str, record_label: str, record_number: int
    ) -> MessageRow:
        """Read a message into the columns of :data:`MESSAGE_SCHEMA`."""
        sender = record.read_field("sender", record_fields.check_name, None)
        role = record.read_field("role", record_fields.check_name, None)
        speaker = sender or role
        if speaker is None:
            raise BadField("sender", "neither a sender nor a role", "one of them")
        self.notes.remove_from_silent_names(speaker)
        if role is None:
            role = self._guess_role_and_count_guess(speaker)
        text = record.read_field("text", record_fields.check_text)
        caption = record.read_field("caption", record_fields.check_text, None)
        session = record.read_field("session", record_fields.check_name, None)
        message_id = record.read_field("id", record_fields.check_name, None)
        role = self._normalise_role_and_count_other(role)
        if role == "assistant" and not self.is_benchmark:
            text, n_thoughts = self.cut_and_count_thoughts(text)
            self.notes.unread["thought"] += n_thoughts
        if not self.is_benchmark and not record.keys() <= MESSAGE_FIELDS:
            self.notes.count_unread_keys_and_texts(record, MESSAGE_FIELDS)
        latest_time = self.latest.get(scope)
        time = self.read_time_in_utc_and_note_no_zone(record, record_label, latest_time)
        if time is not None:
            self.latest[scope] = max(time, latest_time or time)
        if message_id is not None:
            self._note_id_or_refuse_repeated(message_id, scope, record_label, record_number)
        return (
            scope,
            session,
            speaker,
            role,
            text,
            caption,
            message_id,
            record.read_field("forwarded_from", record_fields.check_name, None),
            self._take_or_find_quotes_and_add_speaker(record, scope, speaker, role),
            time,
            record["n"] if self.is_benchmark else None,
        )

    def _note_id_or_refuse_repeated(
        self, message_id: str, scope: str, record_label: str, record_number: int
    ) -> None:
        """Refuse an id that another message of the scope has, but for a newer version of it."""
        if message_id in self.source.report.newer:
            return
        first_number = self.ids.remember_and_get_first_number(scope, message_id, record_number)
        if first_number != record_number:
            first_place = f"first on {record_label.partition(' ')[0]} {first_number}"
            finding = f"{message_id!r} again in scope {scope!r} ({first_place})"
            raise BadField("id", finding, "an id of its own")

    def read_message_table_if_plain(
        self, message_table: MessageTable, first_number: int, record_noun: str
    ) -> pl.DataFrame | None:
        """Read messages in columns; ``None`` where not all are plain: nothing is kept of these.

        :param first_number: the number of the first one; ``record_noun``: what one is, ``line`` or
            ``record``.
        """
        rows = message_table.messages.with_columns(speaker=pl.coalesce("sender", "role"))
        roles = self._normalise_roles_if_known(rows["role"])
        if roles is None:
            return None
        number = pl.col("row").cast(pl.Int64) + first_number
        rows = rows.with_columns(roles.alias("role")).with_row_index("row")
        rows = rows.with_columns(number=number)
        if not self.ids.are_all_new_and_unique(self.select_ids_that_must_be_unique(rows)):
            return None
        if message_table.zoneless is not None and not self.has_noted_zone:
            row, written_time = message_table.zoneless
            self._note_missing_zone_as_issue(f"{record_noun} {first_number + row}", written_time)
        rows = self._fill_missing_roles_and_mark_speakers(rows)
        rows = self._fill_quoted_column_and_add_people(rows)
        rows = self._cut_thoughts_and_count_unread(rows, message_table)
        if self.source.tz is not None:
            latest_times = rows.group_by("scope").agg(pl.max("timestamp")).drop_nulls()
            for scope, time in latest_times.iter_rows():
                self.latest[scope] = max(time, self.latest.get(scope, time))
        return rows

    def select_ids_that_must_be_unique(self, messages: pl.DataFrame) -> pl.DataFrame:
        """Select the ids that stand once in their scope, but for those that an importer gives
        again.
        """
        named_messages = messages.select("scope", "id", "number").drop_nulls()
        newer_ids = self.source.report.newer
        if newer_ids:
            named_messages = named_messages.filter(~pl.col("id").is_in(list(newer_ids)))
        return named_messages

    def _normalise_roles_if_known(self, role_names: pl.Series) -> pl.Series | None:
        """Give the roles by their names, null where there is none.

        :returns: ``None`` where one is not known.
        """
        unread_before = self.notes.unread.copy()
        known_roles = map_distinct_names(role_names, self._normalise_role_and_count_other)
        if self.notes.unread == unread_before:
            return known_roles
        self.notes.unread = unread_before
        return None

    def _fill_missing_roles_and_mark_speakers(self, messages: pl.DataFrame) -> pl.DataFrame:
        """Give the messages that say no role that of their sender."""
        if self.notes.silent:
            for speaker in messages["speaker"].unique():
                self.notes.remove_from_silent_names(speaker)
        if not messages["role"].has_nulls():
            return messages
        unnamed_speakers = messages.select("speaker").filter(messages["role"].is_null())
        guessed_names = self.source.report.guessed
        roles_by_speaker = dict[str, str]()
        for speaker, count in (
            unnamed_speakers.group_by("speaker", maintain_order=True).len().iter_rows()
        ):
            guessed_before = guessed_names.copy()
            roles_by_speaker[speaker] = self._normalise_role_and_count_other(
                self._guess_role_and_count_guess(speaker)
            )
            for name, n_guessed in (guessed_names - guessed_before).items():
                guessed_names[name] += n_guessed * (count - 1)
        role_of_speaker = pl.col("speaker").replace_strict(
            roles_by_speaker, default=None, return_dtype=pl.String
        )
        return messages.with_columns(role=pl.coalesce("role", role_of_speaker))

    def _fill_quoted_column_and_add_people(self, messages: pl.DataFrame) -> pl.DataFrame:
        """Find the words of others in the texts of persons, each with the people who spoke before
        it.
        """
        columns = ("row", "scope", "speaker", "text")
        is_spoken = messages["quoted"].is_null() & (messages["role"] != "assistant")
        spoken_rows = messages.select(columns).filter(is_spoken)
        marked_rows = spoken_rows.filter(spoken_rows["text"].str.contains(MARKS))
        first_rows = messages.select(columns[:-1]).unique(columns[1:-1], keep="first")
        first_rows = first_rows.with_columns(text=pl.lit(None, pl.String))
        quotations_by_row = dict[int, list[str]]()
        ordered_rows = pl.concat([first_rows, marked_rows]).sort("row", maintain_order=True)
        for row, scope, speaker, text in ordered_rows.iter_rows():
            people = self.people.setdefault(scope, set())
            if text is None:
                people.add(comparable_name(speaker))
                continue
            quotations = self._find_quotations(text, speaker, people)
            if quotations:
                quotations_by_row[row] = quotations
        return _replace_cells_by_row(messages, "quoted", quotations_by_row)

    def _cut_thoughts_and_count_unread(
        self, messages: pl.DataFrame, message_table: MessageTable
    ) -> pl.DataFrame:
        """Cut thoughts out of answers, and count them and the texts that are not read, in their
        order.
        """
        is_answer = messages["role"] == "assistant"
        count_events = [_CountEvent(row, 0, "thought", 0) for row in is_answer.arg_true().head(1)]
        texts_by_row = dict[int, str]()
        answer_rows = messages.select("row", "text").filter(is_answer)
        marked_rows = answer_rows.filter(answer_rows["text"].str.contains_any(_MARKS_OF_THOUGHTS))
        for row, text in marked_rows.iter_rows():
            said_aloud, thoughts = self.cut_and_count_thoughts(text)
            if said_aloud != text:
                texts_by_row[row] = said_aloud
            count_events.append(_CountEvent(row, 0, "thought", thoughts))
        self.notes.other_keys.update(message_table.other_keys)
        if message_table.unread is not None:
            count_events += _list_unread_text_counts(messages, message_table.unread.to_pylist())
        for _, _, counted_kind, count in sorted(count_events, key=itemgetter(0, 1)):
            self.notes.unread[counted_kind] += count
        return _replace_cells_by_row(messages, "text", texts_by_row)

    def _normalise_role_and_count_other(self, role_word: str) -> str:
        """Give one of the roles; any other is a person's, but for benchmarks."""
        known_role = self.turn_role_of_word(role_word)
        if known_role is not None:
            return known_role
        if self.is_benchmark:
            return "other"
        self.notes.unread[OTHER_ROLES] += 1
        return "user"

    def _guess_role_and_count_guess(self, speaker: str) -> str:
        """Give the role of a message that has none: by an assistant's name, or a role in place of a
        name.
        """
        if is_assistant_and_count_guess(self.source, speaker):
            return "assistant"
        name = comparable_name(speaker)
        if name in ("other", "person") or is_named_as_person(self.source, speaker):
            return "user"
        role = self.turn_role_of_word(name) or "user"
        if role != "user" and not self.is_plain_role_word(speaker.strip()):
            self.source.report.guessed[speaker.strip()] += 1
        return role

    def _take_or_find_quotes_and_add_speaker(
        self, record: Record, scope: str, speaker: str, role: str
    ) -> list[str] | None:
        """Give the parts of a text that are others' words: as the record says, else as they are
        found in it.

        Benchmarks stay as they are, and so does what an assistant says.
        """
        given_quotations = record.read_field("quoted", record_fields.check_text_or_texts, None)
        people = self.people.setdefault(scope, set())
        people.add(comparable_name(speaker))
        if given_quotations is not None or self.is_benchmark or role == "assistant":
            return given_quotations
        return self._find_quotations(record["text"], speaker, people) or None

    def _find_quotations(self, text: str, speaker: str, people: set[str]) -> list[str]:
        language = self.source.language or "en"
        return find_quotations(text, speaker=speaker, people=people, language=language)

    def read_time_in_utc_and_note_no_zone(
        self, record: Record, record_label: str, latest_before: datetime | None = None
    ) -> datetime | None:
        """Read a record's time; one without a zone is of the zone that was named, else UTC, which
        is noted once.
        """
        message_time = record.read_field("timestamp", self.source.parse_time, None)
        if message_time is None:
            return None
        source_zone = self.source.tz
        if source_zone is None and message_time.tzinfo is None and not self.has_noted_zone:
            self._note_missing_zone_as_issue(record_label, record["timestamp"])
        return record_fields.resolve_time_to_utc(message_time, source_zone or UTC, latest_before)

    def _note_missing_zone_as_issue(self, record_label: str, written_time: JsonValue) -> None:
        action = "times without a zone are taken as UTC; tz= names theirs"
        self.source.note(f"{record_label}: timestamp", describe_value(written_time), action)
        self.has_noted_zone = True


def _list_unread_text_counts(
    messages: pl.DataFrame, unread_fields: list[JsonObject]
) -> list[_CountEvent]:
    """List the texts of messages that stand in fields that a chat log has not.

    :param unread_fields: what each message has beside the fields that are read.
    """
    from memlab.datasets.unread_texts import list_paths_of_unread_texts

    unread = list[_CountEvent]()
    for row, (text, caption) in enumerate(messages.select("text", "caption").iter_rows()):
        read_text = f"{text}\n{caption or ''}"
        unread_keys = list_paths_of_unread_texts(unread_fields[row], MESSAGE_FIELDS, read_text)
        unread += [_CountEvent(row, 1, f"text under the key {key!r}", 1) for key in unread_keys]
    return unread


def _replace_cells_by_row(
    message_rows: pl.DataFrame, column_name: str, value_by_row: Mapping[int, object]
) -> pl.DataFrame:
    """Put values into a column, by their rows."""
    if not value_by_row:
        return message_rows
    value_schema = {"row": message_rows.schema["row"], "_value": message_rows.schema[column_name]}
    new_values = pl.DataFrame(
        {"row": list(value_by_row), "_value": list(value_by_row.values())}, schema=value_schema
    )
    joined_rows = message_rows.join(new_values, on="row", how="left", maintain_order="left")
    return joined_rows.with_columns(pl.coalesce("_value", column_name).alias(column_name)).drop(
        "_value"
    )
