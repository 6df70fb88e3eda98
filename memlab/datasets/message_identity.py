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

from memlab.datasets import fields
from memlab.datasets.fields import BadField, Record, describe_value
from memlab.records import Annotation, Dataset, Question, decode_id_part, encode_id_part
from memlab.sessions import order_times

_DIGEST, _BEGUN = "~", "@"
"""What the last part of an id begins with where it is a digest, or a session is named by its first
message.
"""


_MAY_BE_UNSAFE = r"[\s/%\x00-\x1f\x7f]"
"""What may be encoded in a part of an id; lone surrogates stand in no frame."""


def _encode_marked_part(raw: str, mark: str) -> str:
    part = encode_id_part(raw)
    if part.startswith(mark):
        return f"%{ord(mark):02X}{part[1:]}"
    return part


class KnownIds:
    """The ids of messages so far, each with the number of the record that first had it.

    Of those that were read in columns it holds digests, until one must be looked up.
    """

    def __init__(self, numbers: dict[str, dict[str, int]] | None = None) -> None:
        self.numbers = numbers or {}
        self._tables, self._digests = list[pl.DataFrame](), np.array([], np.uint64)

    def note(self, scope: str, name: str, number: int) -> int:
        """Note an id of a record, and give the number of the first record that has it."""
        for table in self._tables:
            by_scope = table.group_by("scope", maintain_order=True).agg("id", "number")
            for scoped, names, numbers in by_scope.iter_rows():
                self.numbers.setdefault(scoped, {}).update(zip(names, numbers, strict=True))
        if self._tables:
            self._tables, self._digests = [], np.array([], np.uint64)
        return self.numbers.setdefault(scope, {}).setdefault(name, number)

    def are_new(self, named: pl.DataFrame) -> bool:
        """Say whether no id stands twice in its scope; rarely that is denied where none does.

        :param named: ``scope``, ``id`` and ``number``.
        """
        digests = _digest_ids(named)
        places = self._digests.searchsorted(digests)
        is_known = np.append(self._digests, np.uint64(0))[places] == digests
        if is_known.any() or (digests[1:] == digests[:-1]).any():
            return False
        if not self.numbers:
            return True
        for scope, names in named.group_by("scope").agg("id").iter_rows():
            if not self.numbers.get(scope, {}).keys().isdisjoint(names):
                return False
        return True

    def add(self, named: pl.DataFrame) -> None:
        """Add ids that are new, as those that :meth:`are_new` was asked about."""
        digests = _digest_ids(named)
        places = self._digests.searchsorted(digests)
        self._digests = np.insert(self._digests, places, digests)
        self._tables.append(named)

    def take(self, scope: str) -> KnownIds:
        """Give the ids of one scope that records have."""
        return KnownIds({scope: self.numbers.get(scope, {})})


def _digest_ids(named: pl.DataFrame) -> Any:
    """Give digests of ids in their scopes, in order; they hold for this process alone."""
    return np.sort(named.select("scope", "id").hash_rows().to_numpy())


def turn_record(scope: str, session: str, n: int, role: str, text: str, **more: Any) -> Record:
    """Give a message by its place, as readers of benchmarks yield it."""
    return Record({"scope": scope, "session": session, "n": n, "role": role, "text": text, **more})


def turn_id(turn: Record) -> str:
    """Give the id of a message by its place."""
    return f"{encode_id_part(turn['scope'])}/{encode_id_part(turn['session'])}/{turn['n']}"


def question_record(scope: str, i: int, text: str, **more: Any) -> Record:
    """Make the i-th question of a scope, citing turn ids, as readers of benchmarks yield it."""
    return Record(
        {"scope": scope, "query_id": f"{encode_id_part(scope)}/q{i}", "question": text, **more}
    )


def map_names(names: pl.Series, give: Callable[[str], str]) -> pl.Series:
    """Map a column of names, each distinct one once; null stays null."""
    given = {name: give(name) for name in names.drop_nulls().unique()}
    if list(given) == list(given.values()):
        return names
    return names.replace_strict(given, default=None, return_dtype=pl.String)


def with_turn_ids(messages: pl.DataFrame) -> pl.DataFrame:
    """Give messages their ``turn_id``.

    Exact doubles without an id are numbered in the order of the rows, and of those with one, which
    an edit between two exports makes, the last takes the place of the first.

    :param messages: ``scope`` (encoded), ``id`` (null where there is none), ``timestamp``,
        ``speaker`` and ``text``.
    """
    named = _encode_parts(messages["id"], _DIGEST)
    own = named.zip_with(named.is_not_null(), _digest_messages(messages))
    messages = messages.with_columns(turn_id=pl.format("{}/{}", "scope", own.alias("_own")))
    if messages["turn_id"].n_unique() == messages.height:
        return messages
    kept = pl.col("id").is_null() | pl.struct("scope", "id").is_last_distinct()
    first = (
        pl.when(pl.col("id").is_null())
        .then("_row")
        .otherwise(pl.col("_row").min().over("scope", "id"))
    )
    numbered = messages.with_row_index("_row").with_columns(_first=first)
    messages = numbered.filter(kept).sort("_first").drop("_first", "_row")
    double = pl.int_range(1, pl.len() + 1).over("turn_id")
    marked = pl.when(double > 1).then(pl.format("{}-{}", "turn_id", double)).otherwise("turn_id")
    return messages.with_columns(turn_id=marked)


def _digest_messages(messages: pl.DataFrame) -> pl.Series:
    """Give the digests of the messages without an id; null for the others."""
    said = messages.select("id", pl.col("timestamp").cast(pl.Int64), "speaker", "text")
    digests: list[str | None] = [None] * messages.height
    unnamed = said.with_row_index("_row").filter(pl.col("id").is_null()).drop("id")
    for row, time, speaker, text in unnamed.iter_rows():
        digest = hashlib.blake2b(f"{time}\x1f{speaker}\x1f{text}".encode(), digest_size=8)
        digests[row] = _DIGEST + digest.hexdigest()
    return pl.Series(digests, dtype=pl.String)


def _encode_parts(names: pl.Series, mark: str) -> pl.Series:
    """Encode names as parts of ids, those that are odd one by one; null stays null."""
    odd = names.str.contains(_MAY_BE_UNSAFE) | names.str.starts_with(mark)
    if not odd.any():
        return names
    encoded = map_names(names.filter(odd), partial(_encode_marked_part, mark=mark))
    return names.scatter(odd.arg_true(), encoded)


def _decode_parts(parts: pl.Series) -> pl.Series:
    """Undo :func:`_encode_parts`, of those that are encoded one by one; null stays null."""
    odd = parts.str.contains("%", literal=True)
    if not odd.any():
        return parts
    return parts.scatter(odd.arg_true(), map_names(parts.filter(odd), decode_id_part))


def with_session_ids(placed: pl.DataFrame) -> pl.DataFrame:
    """Give messages their ``session_id``.

    :param placed: ``scope`` (encoded), ``named`` (as the log calls the session, null where it does
        not), ``n`` and ``turn_id``, session by session in order of ``n``.
    """
    begins = placed["n"] == 1
    firsts = placed.select("scope", "named", "turn_id").filter(begins)
    named = _encode_parts(firsts["named"], _BEGUN)
    begun = _BEGUN + pl.col("turn_id").str.split("/").list.last()
    ids = firsts.select(session_id=pl.format("{}/{}", "scope", pl.coalesce(named, begun)))
    return placed.with_columns(ids["session_id"].gather(begins.cum_sum() - 1))


def merge_stored_turns(stored: pl.DataFrame, new: pl.DataFrame) -> pl.DataFrame:
    """Put messages to the stored turns of a chat log: one with the same ``turn_id`` takes the place
    of the other.

    :param stored: turns, which become the messages that they were: ``raw_scope``, ``named`` and
        ``id`` beside, in the order in which they are stored.
    """
    last_part = pl.col("scope", "session_id", "turn_id").str.split("/").list.last()
    last_parts = stored.select(last_part)
    session, turn = pl.col("session_id"), pl.col("turn_id")
    parts = last_parts.select(
        raw_scope="scope",
        named=pl.when(~session.str.starts_with(_BEGUN)).then(session),
        id=pl.when(~turn.str.starts_with(_DIGEST)).then(turn),
    )
    old = stored.with_columns(map(_decode_parts, parts))
    old = old.with_columns(placed=order_times(old, ordered=True))
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
    both = pl.concat([old.select(columns), new.select(columns)]).with_row_index("_at")
    first = both.group_by("turn_id").agg(
        _first=pl.col("_at").min(),
        _time=pl.col("timestamp").first(),
        _placed=pl.col("placed").first(),
    )
    # A message that was there keeps its place unless it has another time.
    same_time = pl.col("timestamp").eq_missing(pl.col("_time"))
    return (
        both.unique("turn_id", keep="last")
        .join(first, on="turn_id")
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
        self.same, self.ids = dict[tuple[str, str], str](), set[str]()
        self.seen, self.as_they_are = seen, as_they_are
        if there is not None:
            self.ids.update(there.questions["query_id"])
            texts = there.questions.select("scope", "text").iter_rows()
            self.same.update(zip(texts, there.questions["query_id"], strict=True))

    def named(self, question: Question, i: int, where: str) -> Question:
        """Name a question by its id, as the same question where it is there, else by the next
        number that is free.
        """
        name = question.query_id
        if name and not self.as_they_are:
            name = "/".join(map(_encode_if_any, name.split("/")))
        if not name:
            name = self.same.get((question.scope, question.text), "")
        if not name:
            name = self._find_free_id(question.scope, i)
        self.ids.add(name)
        first = self.seen.setdefault(name, where)
        if first != where:
            raise BadField("query_id", f"{name!r} again (first on {first})", "an id of its own")
        return replace(question, query_id=name)

    def _find_free_id(self, scope: str, i: int) -> str:
        while f"{scope}/q{i}" in self.ids:
            i += 1
        return f"{scope}/q{i}"


def _encode_if_any(part: str) -> str:
    return encode_id_part(part) if part else ""


def build_citation_index(
    placed: pl.DataFrame, whole: pl.DataFrame, asked: list[Record]
) -> dict[str, CitationIndex]:
    """Find what questions cite: turns by place, turn id or message id, sessions by name or id.

    The last win.
    """
    found = {field: CitationIndex() for field in _CITED}
    wanted = {field: _list_cited(asked, field) for field in _CITED}
    if not any(wanted.values()):
        return found
    places = placed.with_columns(map_names(placed["session"], encode_id_part).alias("part"))
    first = places.filter(pl.col("n") == 1)
    forms = [(places, ("session", "n")), (places, ("part", "n")), (places, ("scope", "part", "n"))]
    of_turns = [*forms, (whole, ("turn_id",)), (whole, ("id",))]
    of_sessions = [
        (whole, ("session_id",)),
        (first, ("scope", "part")),
        (first, ("part",)),
        (first, ("session",)),
    ]
    looked_up = dict.fromkeys(("evidence", "stale", "distractors"), of_turns)
    looked_up["evidence_sessions"] = of_sessions
    now = whole.select("turn_id", "session_id")
    for field, names in wanted.items():
        if not names:
            continue
        for table, form in looked_up[field]:
            named = table.select("raw_scope", "turn_id", name=pl.concat_str(form, separator="/"))
            hits = named.filter(pl.col("name").is_in(names))
            for scope, turn, name, session in hits.join(
                now, on="turn_id", maintain_order="left"
            ).iter_rows():
                found[field][scope, name] = (turn, session)
    return found


def _list_cited(asked: list[Record], field: str) -> set[str]:
    """List what questions cite in a field, but for what names no turn: no frame takes a lone
    surrogate.
    """
    names = set[str]()
    for record in asked:
        cited = record.get(field)
        if not isinstance(cited, list):
            continue
        for value in map(_cited_name, cited):
            if isinstance(value, (str, int)):
                names.add(str(value))
    return set(filter(_is_encodable, names))


def _is_encodable(name: str) -> bool:
    return name.encode(errors="ignore").decode() == name


def _cited_name(value: Any) -> Any:
    """Give what a citation names: itself, or the ``id`` that stands beside a grade."""
    if isinstance(value, dict):
        return value.get("id")
    return value


def _read_question_id(record: Record, scope: str) -> str:
    """Read the id of a question, empty where it has none: an ``id`` is one within its scope."""
    query_id = record.take("query_id", fields.check_name, "")
    if query_id:
        return query_id
    own_id = record.take("id", fields.check_name, "")
    if not own_id or own_id.startswith(f"{scope}/"):
        return own_id
    return f"{scope}/{own_id}"


def read_question(
    record: Record, scope: str, names: dict[str, CitationIndex], time: datetime | None
) -> Question:
    """Read a question; one without an id has an empty one.

    :param time: when it is asked, in UTC.
    """
    judged = _resolve_judgements(record, scope, names["evidence"])
    stale = _resolve_citations(record, "stale", scope, names)
    sessions = _resolve_citations(record, "evidence_sessions", scope, names)
    cited = {turn: session for turn, (session, grade) in judged.items() if grade > 0}
    grades = _list_grades(judged)
    distractors = _resolve_citations(record, "distractors", scope, names)
    for field, others in (("stale", stale), ("distractors", distractors)):
        both = others.keys() & cited.keys()
        if both:
            raise BadField(field, describe_value(min(both)), "no turn that is evidence too")
    return Question(
        query_id=_read_question_id(record, scope),
        scope=encode_id_part(scope),
        text=record.take("question", fields.check_name),
        answer=record.take("answer", fields.check_answer, None),
        question_type=record.take("type", fields.check_name, "unspecified"),
        timestamp=time,
        evidence=[*cited],
        evidence_sessions=[*dict.fromkeys((sessions or cited).values())],
        abstention=record.take("abstention", fields.check_flag, False),
        rubric=record.take("rubric", fields.check_rubric, None),
        stale=[*stale] or None,
        judged=[*grades] or None,
        grades=[*grades.values()] or None,
        source=record.take("source", fields.check_source, None),
        reasons=_read_reasons(record, cited),
        distractors=[*distractors] or None,
        checks=record.take("checks", fields.check_json, None),
    )


def _read_reasons(record: Record, cited: dict[str, str]) -> list[str] | None:
    """Read why each turn of evidence is needed: as many texts as there are turns of evidence."""
    reasons = record.take("reasons", fields.check_rubric, None)
    if reasons and len(reasons) != len(cited):
        found = f"{len(reasons)} for {len(cited)} messages of evidence"
        raise BadField("reasons", found, "a text for each message of evidence")
    return reasons or None


def _resolve_judgements(
    record: Record, scope: str, names: CitationIndex
) -> dict[str, tuple[str, int]]:
    """Give the ids of the turns that a question grades, each with its session's and its grade.

    :raises BadField: when a turn is not there, or is graded twice, differently.
    """
    judged: dict[str, tuple[str, int]] = {}
    for i, value in enumerate(record.take("evidence", fields.check_list, [])):
        where = f"evidence[{i}]"
        name, grade = fields.check_judgement(value, where)
        if (scope, name) not in names:
            raise BadField(where, describe_value(name), f"{_A_MESSAGE} of scope {scope!r}")
        turn, session = names[scope, name]
        _, before = judged.setdefault(turn, (session, grade))
        if grade != before:
            raise BadField(where, f"{turn!r} graded {grade} and {before}", "one grade a message")
    return judged


def _list_grades(judged: dict[str, tuple[str, int]]) -> dict[str, int]:
    """Give the grades of turns, those of evidence first.

    None where each is 1, which goes without saying.
    """
    grades = {turn: grade for turn, (_, grade) in judged.items()}
    if set(grades.values()) <= {1}:
        return {}
    relevant = dict.fromkeys(filter(lambda turn: grades[turn] > 0, grades))
    return {turn: grades[turn] for turn in relevant | grades}


_A_MESSAGE = "a message id, <session>/<n> or a turn id"


def _resolve_citations(
    record: Record, field: str, scope: str, names: dict[str, CitationIndex]
) -> dict[str, str]:
    """Give the ids of what a question cites, each with its session's."""
    cited = record.take(field, fields.check_names, [])
    for i, value in enumerate(cited):
        if (scope, value) not in names[field]:
            what = "a session" if field == "evidence_sessions" else _A_MESSAGE
            raise BadField(f"{field}[{i}]", describe_value(value), f"{what} of scope {scope!r}")
    return dict(names[field][scope, value] for value in cited)


def read_annotation(record: Record, scope: str) -> Annotation:
    session = f"{scope}/{encode_id_part(record['session'])}"
    about = (
        record["annotation_id"],
        scope,
        session,
        record["kind"],
        record["speaker"],
        record["annotation"],
    )
    return Annotation(*about, record["evidence"])
