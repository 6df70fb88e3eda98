"""Who a message of a chat log is, whatever stands around it, and which messages its questions cite.

A message has its own id, else a digest of time, speaker and text. A session that the log names
keeps that name; another is named by its first message. Places are columns, not ids: a message that
comes late, is edited or deleted changes no other's id.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any

import numpy as np
import polars as pl

from memlab.datasets import record_fields
from memlab.datasets.record_fields import BadField, JsonValue, Record, describe_value
from memlab.records import Annotation, Dataset, Question, decode_id_part, encode_id_part
from memlab.sessions import find_ordering_times

_DIGEST = "~"
_BEGUN = "@"
"""What the last part of an id begins with where it is a digest, or a session is named by its first
message.
"""


_MAY_BE_UNSAFE = r"[\s/%\x00-\x1f\x7f]"
"""What may be encoded in a part of an id; lone surrogates stand in no frame."""


def _encode_id_part_avoiding_mark(raw_name: str, reserved_mark: str) -> str:
    encoded_part = encode_id_part(raw_name)
    if encoded_part.startswith(reserved_mark):
        return f"%{ord(reserved_mark):02X}{encoded_part[1:]}"
    return encoded_part


class KnownIds:
    """The ids of messages so far, each with the number of the record that first had it.

    Of those that were read in columns it holds digests, until one must be looked up.
    """

    def __init__(self, numbers: dict[str, dict[str, int]] | None = None) -> None:
        self.numbers = numbers or {}
        self._tables = list[pl.DataFrame]()
        self._digests = np.array([], np.uint64)

    def remember_and_get_first_number(self, scope: str, message_id: str, record_number: int) -> int:
        """Note an id of a record, and give the number of the first record that has it."""
        for table in self._tables:
            rows_by_scope = table.group_by("scope", maintain_order=True).agg("id", "number")
            for scoped, message_ids, numbers in rows_by_scope.iter_rows():
                self.numbers.setdefault(scoped, {}).update(zip(message_ids, numbers, strict=True))
        if self._tables:
            self._tables = []
            self._digests = np.array([], np.uint64)
        return self.numbers.setdefault(scope, {}).setdefault(message_id, record_number)

    def are_all_new_and_unique(self, scoped_ids: pl.DataFrame) -> bool:
        """Say whether no id stands twice in its scope; rarely that is denied where none does.

        :param scoped_ids: ``scope``, ``id`` and ``number``.
        """
        digests = _sorted_id_digests(scoped_ids)
        digest_places = self._digests.searchsorted(digests)
        is_known = np.append(self._digests, np.uint64(0))[digest_places] == digests
        if is_known.any() or (digests[1:] == digests[:-1]).any():
            return False
        if not self.numbers:
            return True
        for scope, message_ids in scoped_ids.group_by("scope").agg("id").iter_rows():
            if not self.numbers.get(scope, {}).keys().isdisjoint(message_ids):
                return False
        return True

    def add_new_ids(self, scoped_ids: pl.DataFrame) -> None:
        """Add ids that are new, as those that :meth:`are_all_new_and_unique` was asked about."""
        digests = _sorted_id_digests(scoped_ids)
        digest_places = self._digests.searchsorted(digests)
        self._digests = np.insert(self._digests, digest_places, digests)
        self._tables.append(scoped_ids)

    def copy_of_scope_alone(self, scope: str) -> KnownIds:
        """Give the ids of one scope that records have."""
        return KnownIds({scope: self.numbers.get(scope, {})})


def _sorted_id_digests(scoped_ids: pl.DataFrame) -> np.ndarray:
    """Give digests of ids in their scopes, in order; they hold for this process alone."""
    return np.sort(scoped_ids.select("scope", "id").hash_rows().to_numpy())


def make_turn_record(
    scope: str, session: str, turn_number: int, role: str, text: str, **other_fields: Any
) -> Record:
    """Give a message by its place, as readers of benchmarks yield it."""
    return Record(
        {
            "scope": scope,
            "session": session,
            "n": turn_number,
            "role": role,
            "text": text,
            **other_fields,
        }
    )


def turn_id_of_record(turn: Record) -> str:
    """Give the id of a message by its place."""
    return f"{encode_id_part(turn['scope'])}/{encode_id_part(turn['session'])}/{turn['n']}"


def make_benchmark_question(
    scope: str, question_number: int, text: str, **other_fields: Any
) -> Record:
    """Make the i-th question of a scope, citing turn ids, as readers of benchmarks yield it."""
    return Record(
        {
            "scope": scope,
            "query_id": f"{encode_id_part(scope)}/q{question_number}",
            "question": text,
            **other_fields,
        }
    )


def map_distinct_names(names: pl.Series, rename: Callable[[str], str]) -> pl.Series:
    """Map a column of names, each distinct one once; null stays null."""
    given_names = {old_name: rename(old_name) for old_name in names.drop_nulls().unique()}
    if list(given_names) == list(given_names.values()):
        return names
    return names.replace_strict(given_names, default=None, return_dtype=pl.String)


def with_turn_ids(messages: pl.DataFrame) -> pl.DataFrame:
    """Give messages their ``turn_id``.

    Exact doubles without an id are numbered in the order of the rows, and of those with one, which
    an edit between two exports makes, the last takes the place of the first.

    :param messages: ``scope`` (encoded), ``id`` (null where there is none), ``timestamp``,
        ``speaker`` and ``text``.
    """
    encoded_ids = _encode_id_parts(messages["id"], _DIGEST)
    own_parts = encoded_ids.zip_with(
        encoded_ids.is_not_null(), _digests_of_messages_without_id(messages)
    )
    messages = messages.with_columns(turn_id=pl.format("{}/{}", "scope", own_parts.alias("_own")))
    if messages["turn_id"].n_unique() == messages.height:
        return messages
    is_kept = pl.col("id").is_null() | pl.struct("scope", "id").is_last_distinct()
    first_row = (
        pl.when(pl.col("id").is_null())
        .then("_row")
        .otherwise(pl.col("_row").min().over("scope", "id"))
    )
    numbered_messages = messages.with_row_index("_row").with_columns(_first=first_row)
    messages = numbered_messages.filter(is_kept).sort("_first").drop("_first", "_row")
    copy_number = pl.int_range(1, pl.len() + 1).over("turn_id")
    marked_id = (
        pl.when(copy_number > 1)
        .then(pl.format("{}-{}", "turn_id", copy_number))
        .otherwise("turn_id")
    )
    return messages.with_columns(turn_id=marked_id)


def _digests_of_messages_without_id(messages: pl.DataFrame) -> pl.Series:
    """Give the digests of the messages without an id; null for the others."""
    identifying_columns = messages.select(
        "id", pl.col("timestamp").cast(pl.Int64), "speaker", "text"
    )
    digests: list[str | None] = [None] * messages.height
    unnamed_messages = (
        identifying_columns.with_row_index("_row").filter(pl.col("id").is_null()).drop("id")
    )
    for row, sent_at, speaker, text in unnamed_messages.iter_rows():
        digest = hashlib.blake2b(f"{sent_at}\x1f{speaker}\x1f{text}".encode(), digest_size=8)
        digests[row] = _DIGEST + digest.hexdigest()
    return pl.Series(digests, dtype=pl.String)


def _encode_id_parts(names: pl.Series, reserved_mark: str) -> pl.Series:
    """Encode names as parts of ids, those that are odd one by one; null stays null."""
    is_unsafe = names.str.contains(_MAY_BE_UNSAFE) | names.str.starts_with(reserved_mark)
    if not is_unsafe.any():
        return names
    encoded_names = map_distinct_names(
        names.filter(is_unsafe), partial(_encode_id_part_avoiding_mark, reserved_mark=reserved_mark)
    )
    return names.scatter(is_unsafe.arg_true(), encoded_names)


def _decode_id_parts(id_parts: pl.Series) -> pl.Series:
    """Undo :func:`_encode_id_parts`, of those that are encoded one by one; null stays null."""
    is_encoded = id_parts.str.contains("%", literal=True)
    if not is_encoded.any():
        return id_parts
    return id_parts.scatter(
        is_encoded.arg_true(), map_distinct_names(id_parts.filter(is_encoded), decode_id_part)
    )


def with_session_ids(placed_messages: pl.DataFrame) -> pl.DataFrame:
    """Give messages their ``session_id``.

    :param placed_messages: ``scope`` (encoded), ``named`` (as the log calls the session, null where
        it does not), ``n`` and ``turn_id``, session by session in order of ``n``.
    """
    begins_session = placed_messages["n"] == 1
    first_turns = placed_messages.select("scope", "named", "turn_id").filter(begins_session)
    encoded_names = _encode_id_parts(first_turns["named"], _BEGUN)
    name_of_beginning = _BEGUN + pl.col("turn_id").str.split("/").list.last()
    session_ids = first_turns.select(
        session_id=pl.format("{}/{}", "scope", pl.coalesce(encoded_names, name_of_beginning))
    )
    return placed_messages.with_columns(
        session_ids["session_id"].gather(begins_session.cum_sum() - 1)
    )


def merge_stored_turns(stored_turns: pl.DataFrame, new_messages: pl.DataFrame) -> pl.DataFrame:
    """Put messages to the stored turns of a chat log: one with the same ``turn_id`` takes the place
    of the other.

    :param stored_turns: turns, which become the messages that they were: ``raw_scope``, ``named``
        and ``id`` beside, in the order in which they are stored.
    """
    last_part = pl.col("scope", "session_id", "turn_id").str.split("/").list.last()
    last_parts = stored_turns.select(last_part)
    session = pl.col("session_id")
    turn = pl.col("turn_id")
    stored_parts = last_parts.select(
        raw_scope="scope",
        named=pl.when(~session.str.starts_with(_BEGUN)).then(session),
        id=pl.when(~turn.str.starts_with(_DIGEST)).then(turn),
    )
    old_turns = stored_turns.with_columns(map(_decode_id_parts, stored_parts))
    old_turns = old_turns.with_columns(placed=find_ordering_times(old_turns, is_ordered=True))
    columns = [
        "raw_scope",
        "scope",
        "named",
        "speaker",
        "role",
        "text",
        "caption",
        "id",
        "forwarded_from",
        "quoted",
        "timestamp",
        "placed",
        "turn_id",
    ]
    all_turns = pl.concat([old_turns.select(columns), new_messages.select(columns)]).with_row_index(
        "_at"
    )
    first_rows = all_turns.group_by("turn_id").agg(
        _first=pl.col("_at").min(),
        _time=pl.col("timestamp").first(),
        _placed=pl.col("placed").first(),
    )
    # A message that was there keeps its place unless it has another time.
    same_time = pl.col("timestamp").eq_missing(pl.col("_time"))
    return (
        all_turns.unique("turn_id", keep="last")
        .join(first_rows, on="turn_id")
        .sort("_first")
        .with_columns(placed=pl.when(same_time).then("_placed").otherwise("placed"))
        .drop("_at", "_first", "_time", "_placed")
    )


CitationIndex = dict[tuple[str, str], tuple[str, str]]
"""(scope, what a question may call a turn or a session) to the turn's id and its session's."""
_CITED = ("evidence", "stale", "distractors", "evidence_sessions")


class TakenQuestionIds:
    """The ids of questions that are taken, in the dataset that is there and in the file.

    :param seen: the ids of the file, with where they stand.
    :param as_they_are: whether ids are parts of ids already, as those of benchmarks.
    """

    def __init__(self, there: Dataset | None, seen: dict[str, str], *, as_they_are: bool) -> None:
        self.same = dict[tuple[str, str], str]()
        self.ids = set[str]()
        self.seen = seen
        self.as_they_are = as_they_are
        if there is not None:
            self.ids.update(there.questions["query_id"])
            scopes_and_texts = there.questions.select("scope", "text").iter_rows()
            self.same.update(zip(scopes_and_texts, there.questions["query_id"], strict=True))

    def check_and_take_question_id(
        self, question: Question, question_number: int, question_label: str
    ) -> Question:
        """Name a question by its id, as the same question where it is there, else by the next
        number that is free.
        """
        question_id = question.query_id
        if question_id and not self.as_they_are:
            question_id = "/".join(map(_encode_id_part_or_empty, question_id.split("/")))
        if not question_id:
            question_id = self.same.get((question.scope, question.text), "")
        if not question_id:
            question_id = self._find_free_question_id(question.scope, question_number)
        self.ids.add(question_id)
        first_place = self.seen.setdefault(question_id, question_label)
        if first_place != question_label:
            raise BadField(
                "query_id", f"{question_id!r} again (first on {first_place})", "an id of its own"
            )
        return replace(question, query_id=question_id)

    def _find_free_question_id(self, scope: str, first_number: int) -> str:
        while f"{scope}/q{first_number}" in self.ids:
            first_number += 1
        return f"{scope}/q{first_number}"


def _encode_id_part_or_empty(id_part: str) -> str:
    return encode_id_part(id_part) if id_part else ""


def build_citation_index_by_field(
    placed_messages: pl.DataFrame, all_messages: pl.DataFrame, question_records: list[Record]
) -> dict[str, CitationIndex]:
    """Find what questions cite: turns by place, turn id or message id, sessions by name or id.

    The last win.
    """
    index_by_field = {field: CitationIndex() for field in _CITED}
    names_by_field = {
        field: _list_cited_names_without_surrogates(question_records, field) for field in _CITED
    }
    if not any(names_by_field.values()):
        return index_by_field
    encoded_places = placed_messages.with_columns(
        map_distinct_names(placed_messages["session"], encode_id_part).alias("part")
    )
    first_turns = encoded_places.filter(pl.col("n") == 1)
    turn_forms = [
        (encoded_places, ("session", "n")),
        (encoded_places, ("part", "n")),
        (encoded_places, ("scope", "part", "n")),
    ]
    forms_of_turns = [*turn_forms, (all_messages, ("turn_id",)), (all_messages, ("id",))]
    forms_of_sessions = [
        (all_messages, ("session_id",)),
        (first_turns, ("scope", "part")),
        (first_turns, ("part",)),
        (first_turns, ("session",)),
    ]
    forms_by_field = dict.fromkeys(("evidence", "stale", "distractors"), forms_of_turns)
    forms_by_field["evidence_sessions"] = forms_of_sessions
    current_sessions = all_messages.select("turn_id", "session_id")
    for field, cited_names in names_by_field.items():
        if not cited_names:
            continue
        for table, name_columns in forms_by_field[field]:
            named_turns = table.select(
                "raw_scope", "turn_id", name=pl.concat_str(name_columns, separator="/")
            )
            cited_turns = named_turns.filter(pl.col("name").is_in(cited_names))
            for scope, turn, name, session in cited_turns.join(
                current_sessions, on="turn_id", maintain_order="left"
            ).iter_rows():
                index_by_field[field][scope, name] = (turn, session)
    return index_by_field


def _list_cited_names_without_surrogates(question_records: list[Record], field: str) -> set[str]:
    """List what questions cite in a field, but for what names no turn: no frame takes a lone
    surrogate.
    """
    cited_names = set[str]()
    for record in question_records:
        cited_values = record.get(field)
        if not isinstance(cited_values, list):
            continue
        for cited_value in map(_name_of_citation, cited_values):
            if isinstance(cited_value, (str, int)):
                cited_names.add(str(cited_value))
    return set(filter(_has_no_lone_surrogate, cited_names))


def _has_no_lone_surrogate(name: str) -> bool:
    return name.encode(errors="ignore").decode() == name


def _name_of_citation(raw_citation: JsonValue) -> JsonValue:
    """Give what a citation names: itself, or the ``id`` that stands beside a grade."""
    if isinstance(raw_citation, dict):
        return raw_citation.get("id")
    return raw_citation


def _read_question_id_or_empty(record: Record, scope: str) -> str:
    """Read the id of a question, empty where it has none: an ``id`` is one within its scope."""
    query_id = record.read_field("query_id", record_fields.check_name, "")
    if query_id:
        return query_id
    own_id = record.read_field("id", record_fields.check_name, "")
    if not own_id or own_id.startswith(f"{scope}/"):
        return own_id
    return f"{scope}/{own_id}"


def read_question(
    record: Record,
    scope: str,
    citation_index_by_field: dict[str, CitationIndex],
    asked_at: datetime | None,
) -> Question:
    """Read a question; one without an id has an empty one.

    :param asked_at: when it is asked, in UTC.
    """
    session_and_grade_by_turn = _session_and_grade_by_judged_turn(
        record, scope, citation_index_by_field["evidence"]
    )
    stale_turns = _check_and_map_cited_turns_to_sessions(
        record, "stale", scope, citation_index_by_field
    )
    cited_sessions = _check_and_map_cited_turns_to_sessions(
        record, "evidence_sessions", scope, citation_index_by_field
    )
    evidence_sessions = {
        turn: session for turn, (session, grade) in session_and_grade_by_turn.items() if grade > 0
    }
    grades_by_turn = _grade_by_turn_or_empty_if_all_are_1(session_and_grade_by_turn)
    distractors = _check_and_map_cited_turns_to_sessions(
        record, "distractors", scope, citation_index_by_field
    )
    for field, other_turns in (("stale", stale_turns), ("distractors", distractors)):
        shared_turns = other_turns.keys() & evidence_sessions.keys()
        if shared_turns:
            raise BadField(field, describe_value(min(shared_turns)), "no turn that is evidence too")
    return Question(
        query_id=_read_question_id_or_empty(record, scope),
        scope=encode_id_part(scope),
        text=record.read_field("question", record_fields.check_name),
        answer=record.read_field("answer", record_fields.check_and_join_answer, None),
        question_type=record.read_field("type", record_fields.check_name, "unspecified"),
        timestamp=asked_at,
        evidence=[*evidence_sessions],
        evidence_sessions=[*dict.fromkeys((cited_sessions or evidence_sessions).values())],
        abstention=record.read_field("abstention", record_fields.check_flag, False),
        rubric=record.read_field("rubric", record_fields.check_text_or_texts, None),
        stale=[*stale_turns] or None,
        judged=[*grades_by_turn] or None,
        grades=[*grades_by_turn.values()] or None,
        source=record.read_field("source", record_fields.check_question_source, None),
        reasons=_read_reasons(record, len(evidence_sessions)),
        distractors=[*distractors] or None,
        checks=record.read_field("checks", record_fields.dump_as_json_text, None),
    )


def _read_reasons(record: Record, n_evidence_turns: int) -> list[str] | None:
    """Read why each turn of evidence is needed: as many texts as there are turns of evidence."""
    reasons = record.read_field("reasons", record_fields.check_text_or_texts, None)
    if reasons and len(reasons) != n_evidence_turns:
        count_text = f"{len(reasons)} for {n_evidence_turns} messages of evidence"
        raise BadField("reasons", count_text, "a text for each message of evidence")
    return reasons or None


def _session_and_grade_by_judged_turn(
    record: Record, scope: str, citation_index: CitationIndex
) -> dict[str, tuple[str, int]]:
    """Give the ids of the turns that a question grades, each with its session's and its grade.

    :raises BadField: when a turn is not there, or is graded twice, differently.
    """
    session_and_grade_by_turn: dict[str, tuple[str, int]] = {}
    for item_number, raw_item in enumerate(
        record.read_field("evidence", record_fields.check_list, [])
    ):
        item_place = f"evidence[{item_number}]"
        name, grade = record_fields.check_name_and_grade(raw_item, item_place)
        if (scope, name) not in citation_index:
            raise BadField(item_place, describe_value(name), f"{_A_MESSAGE} of scope {scope!r}")
        turn, session = citation_index[scope, name]
        _, known_grade = session_and_grade_by_turn.setdefault(turn, (session, grade))
        if grade != known_grade:
            raise BadField(
                item_place, f"{turn!r} graded {grade} and {known_grade}", "one grade a message"
            )
    return session_and_grade_by_turn


def _grade_by_turn_or_empty_if_all_are_1(
    session_and_grade_by_turn: dict[str, tuple[str, int]],
) -> dict[str, int]:
    """Give the grades of turns, those of evidence first.

    None where each is 1, which goes without saying.
    """
    grades_by_turn = {turn: grade for turn, (_, grade) in session_and_grade_by_turn.items()}
    if set(grades_by_turn.values()) <= {1}:
        return {}
    relevant_turns = dict.fromkeys(filter(lambda turn: grades_by_turn[turn] > 0, grades_by_turn))
    return {turn: grades_by_turn[turn] for turn in relevant_turns | grades_by_turn}


_A_MESSAGE = "a message id, <session>/<n> or a turn id"


def _check_and_map_cited_turns_to_sessions(
    record: Record, field: str, scope: str, citation_index_by_field: dict[str, CitationIndex]
) -> dict[str, str]:
    """Give the ids of what a question cites, each with its session's."""
    cited_names = record.read_field(field, record_fields.check_names, [])
    for name_number, cited_name in enumerate(cited_names):
        if (scope, cited_name) not in citation_index_by_field[field]:
            cited_thing = "a session" if field == "evidence_sessions" else _A_MESSAGE
            raise BadField(
                f"{field}[{name_number}]",
                describe_value(cited_name),
                f"{cited_thing} of scope {scope!r}",
            )
    return dict(citation_index_by_field[field][scope, cited_name] for cited_name in cited_names)


def read_annotation(record: Record, encoded_scope: str) -> Annotation:
    session = f"{encoded_scope}/{encode_id_part(record['session'])}"
    annotation_fields = (
        record["annotation_id"],
        encoded_scope,
        session,
        record["kind"],
        record["speaker"],
        record["annotation"],
    )
    return Annotation(*annotation_fields, record["evidence"])
