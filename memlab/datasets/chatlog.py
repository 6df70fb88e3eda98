"""Chat logs: one JSON object a line, UTF-8. The format for a person's own conversations.

A **message** line::

    {"scope": "ann", "sender": "Ann", "role": "user", "text": "I moved to Oslo.", "timestamp": "2026-03-01T09:00:00Z"}

=============  ======================================================================================================
``scope``      whose memory it is (a user, a chat); retrieval never crosses scopes. Required
``text``       what was said. Required, may be empty
``sender``     the name of who speaks; the role where it is left out
``role``       ``user``, ``assistant``, ``system``, ``other``, or another word for one of them (``human``, ``ai``,
               ``llm``, ``gpt-4o``, ``tool`` …, :mod:`memlab.datasets.role_words`); any other is a person's.
               Where it is left out it follows from the sender if that is one of these words or an
               assistant's name (``ChatGPT``, ``Claude`` …, or one named by ``assistant=``), and is
               ``user`` otherwise. One of sender and role is required
``timestamp``  ISO 8601 (a time without a zone is taken as UTC, and an issue says so, unless ``tz=`` names the zone), or
               seconds or, from 1e11 on, milliseconds since 1970, as a number or in digits. May be
               null or left out
``session``    the session's name; where it is left out, messages are split by silence (:mod:`memlab.sessions`)
``id``         the message's own id, unique in its scope: it names the turn (:mod:`memlab.datasets.message_identity`)
``caption``    a description of an image that came with the message
``forwarded_from``  whose words the text is, where the sender passed on somebody else's
``quoted``     the parts of the text that are somebody else's words: a list of texts, or one. Where it is left out,
               they are found (:mod:`memlab.text.quotations`)
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
                       ``s0001``, ``s0002`` … of the file), or turn ids. One with a grade is written
                       ``{"id": "s0001/1", "grade": 2}``; grade 0 or less is judged and not relevant
``evidence_sessions``  names or ids of sessions; those of the evidence where it is left out
``abstention``         true where the conversations do not hold the answer
``rubric``             what a good answer says, point by point: a list of strings
``stale``              messages that must not come back, named as evidence is: superseded, corrected, ended
=====================  ==============================================================================================

The **first line** may be a header: ``{"memlab": {"format": "chatlog", "grouped": true, …}}``.
``language`` is the code of the language that people speak in it, ``en`` where it is left out
(:data:`memlab.text.languages.LANGUAGES`); ``grouped`` promises that the lines of a scope stand
together, so that the file streams scope by scope in bounded memory; anything else describes how the
file was made. Other keys of a line are passed over.

Readers of benchmarks yield the same records, **by place**: scope by scope, a message with its
``session`` and its place ``n``, ids as they are, and two kinds more: a session's ``summary``, and
an ``annotation`` (:class:`memlab.records.Annotation`) with ``annotation_id``, ``kind``, ``speaker``
and ``evidence``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl

from memlab.datasets import fields, message_identity
from memlab.datasets.fields import BadField, Record, describe_value, escape_surrogates
from memlab.datasets.message_identity import (
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
from memlab.text.quotations import find_quotations

KEYS = {"scope", "text", "sender", "memlab"}
_TEXTS = ("scope", "session", "speaker", "role", "text", "caption", "id", "forwarded_from")
_SCHEMA: dict[str, Any] = {
    **dict.fromkeys(_TEXTS, pl.String()),
    "quoted": pl.List(pl.String()),
    "timestamp": TIMESTAMP,
    "n": pl.Int32(),
}
_PACK = 50_000
_MESSAGE_FIELDS = frozenset((*_TEXTS, "sender", "timestamp", "quoted", "edited", "n"))
_OTHER_ROLES, _KEPT_AS_PERSONS = "message of other roles", "kept as those of persons"
TAKEN_BY_NAME = "taken for the assistant by the name; --person NAME says that somebody is called so"
"""What is done with a sender whose name alone says that they are an assistant."""
_TAKEN_FOR = {
    "": "the assistant",
    "assistant": "the assistant",
    "system": "the system",
    "other": "a tool",
}


@formats.register(name="chatlog", keys=KEYS)
def read_chatlog(source: Source) -> Iterator[Any]:
    """Read the lines of a chat log."""
    return (record for _, record in source.stream_json_lines())


def number_lines(source: Source) -> Iterator[tuple[str, Any]]:
    """Give the lines of a chat log with what messages call them."""
    return ((f"line {number}", record) for number, record in source.stream_json_lines())


def dataset(records: Iterable[dict[str, Any]], name: str) -> Dataset:
    """Make a dataset of records that are in memory.

    :raises DataError: for a record that cannot be used.

    >>> from memlab.datasets import chatlog
    >>> chatlog.dataset([{"scope": "ann", "sender": "Ann", "text": "Hello"}], "mine").describe()
    'mine (chatlog): 1 turn in 1 session of 1 scope, 0 questions'
    """
    numbered = number_records(records)
    return concat(make_datasets(Source(Path(name)), numbered, batch_turns=1 << 62))


def number_records(records: Iterable[Any]) -> Iterator[tuple[str, Any]]:
    """Give records that another reader yields with what messages call them.

    :raises DataError: where one is no dict.
    """
    for number, record in enumerate(records, 1):
        if not isinstance(record, dict):
            kind = type(record).__name__
            raise DataError(
                f"record {number} is {kind}; a format yields dicts, as a chat log's lines are"
            )
        yield f"record {number}", record


def is_assistant(source: Source, sender: str, *, in_messenger: bool = False) -> bool:
    """Say whether a sender is an assistant: one that was named, or one whose name says so, which is counted.

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

    name = _plain_name(sender)
    if name in map(_plain_name, source.assistants):
        return True
    known = PRODUCTS if in_messenger else ASSISTANTS
    if name not in known or is_person(source, sender):
        return False
    if not is_plain_role_word(sender.strip()):
        source.report.guessed[sender.strip()] += 1
    return True


def is_person(source: Source, sender: str) -> bool:
    """Say whether the load names a sender as a person, whatever their name says."""
    return _plain_name(sender) in map(_plain_name, source.people)


def messenger_role(source: Source, sender: str, *, is_bot: bool | None = None) -> str:
    """Give the role of a sender of a messenger: ``user``, ``assistant``, or ``other`` for any other bot.

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
    records: Iterable[tuple[str, Any]],
    *,
    batch_turns: int,
    kind: str = "chatlog",
    by_place: bool = False,
    ordered: bool = False,
) -> Iterator[Dataset]:
    """Make datasets of the records of a chat log, in batches of whole scopes.

    :param records: where each stands, and the record.
    :param by_place: whether they are a benchmark's, see above.
    :param ordered: whether the records of a session stand in the order in which they were said.
    """
    log, grouped, current, begun = _Log(source, kind, by_place), by_place, None, set[str]()
    log.ordered = ordered
    for place, (where, raw) in enumerate(records):
        message = None
        with source.record(where, raw):
            record = raw if isinstance(raw, Record) else Record(raw)
            if "memlab" in record:
                grouped = _read_header(source, record["memlab"], place)
                continue
            scope = record.take("scope", fields.check_name)
            if grouped and not by_place and scope != current and scope in begun:
                raise BadField(
                    "scope",
                    f"{scope!r} again after another scope",
                    'its lines together, or no "grouped"',
                )
            begun.add(scope)
            current = scope
            if "question" in record or (by_place and "text" not in record):
                log.asked.setdefault(scope, []).append((where, record))
            else:
                message = log.read_message(record, scope, where)
        if message is not None:
            if grouped and log.count >= batch_turns and log.messages[-1][0] != message[0]:
                opened, ids = (
                    log.asked.pop(scope, []),
                    {key: at for key, at in log.ids.items() if key[0] == scope},
                )
                yield from log.make_datasets(batch_turns)
                log.begin({scope: opened} if opened else {}, ids)
            log.add(message)
    if log.silent:
        names = ", ".join(map(repr, log.silent.values()))
        source.note("sender", f"{names}, whom no message is from", "nobody is called so")
    for name, count in source.report.guessed.items():
        messages = "1 message" if count == 1 else f"{count:,} messages"
        taken = TAKEN_BY_NAME.replace("the assistant", _TAKEN_FOR[log.turn_role(name) or ""])
        source.note("assistant", f"{name!r}, {messages}", taken)
    for what, count in (+log.unread).items():
        first, *rest = what.split(" ", 1)
        counted = f"1 {what}" if count == 1 else " ".join((f"{count:,}", f"{first}s", *rest))
        action = _KEPT_AS_PERSONS if what == _OTHER_ROLES else "left out"
        source.note("messages", counted, action)
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
    for key, known in (("format", ["chatlog"]), ("language", list(LANGUAGES))):
        if header[key] not in known:
            raise BadField(
                f"memlab.{key}", describe_value(header[key]), f"one of {', '.join(known)}"
            )
    grouped = fields.check_flag(header["grouped"], "memlab.grouped")
    source.language = source.language or header["language"]
    return grouped


class _Log:
    """What is gathered of some scopes, on its way into datasets.

    ``asked`` holds the questions, summaries and annotations of each scope, with where they stand;
    ``ids`` where the message ids of the scopes stand, ``query_ids`` those of the whole file;
    ``people`` are the speakers so far, by scope.
    """

    def __init__(self, source: Source, kind: str, by_place: bool) -> None:
        self.source, self.kind, self.by_place = source, kind, by_place
        self.ordered = False
        self.query_ids, self.zoneless, self.latest = dict[str, str](), False, dict[str, datetime]()
        self.people = dict[str, set[str]]()
        # Imported when a log is read: an import of memlab.datasets stays small.
        from memlab.datasets import role_words, thoughts, unread_texts

        self.turn_role, self.is_plain = role_words.turn_role, role_words.is_plain_role_word
        self.cut_thoughts, self.list_unread = thoughts.cut_thoughts, unread_texts.list_unread_keys
        self.unread = Counter[str]()
        self.silent = {_plain_name(name): name for name in (*source.assistants, *source.people)}
        self.begin({}, {})

    def begin(
        self, asked: dict[str, list[tuple[str, Record]]], ids: dict[tuple[str, str], str]
    ) -> None:
        """Begin with the questions and ids already read of the scope that comes first."""
        self.asked, self.ids, self.count = asked, ids, 0
        self.messages, self.packed = list[tuple[Any, ...]](), list[pl.DataFrame]()

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

    def read_message(self, record: Record, scope: str, where: str) -> tuple[Any, ...]:
        """Read a message into the columns of :data:`_SCHEMA`."""
        sender, role = (
            record.take("sender", fields.check_name, None),
            record.take("role", fields.check_name, None),
        )
        speaker = sender or role
        if speaker is None:
            raise BadField("sender", "neither a sender nor a role", "one of them")
        self.silent.pop(_plain_name(speaker), None)
        if role is None:
            role = self._role_of_sender(speaker)
        text, caption = (
            record.take("text", fields.check_text),
            record.take("caption", fields.check_text, None),
        )
        session, name = (
            record.take("session", fields.check_name, None),
            record.take("id", fields.check_name, None),
        )
        role, latest = self._known_role(role), self.latest.get(scope)
        if role == "assistant" and not self.by_place:
            text, thoughts = self.cut_thoughts(text)
            self.unread["thought"] += thoughts
        if not record.keys() <= _MESSAGE_FIELDS:
            self._count_unread(record)
        if time := self._read_time(record, where, latest):
            self.latest[scope] = max(time, latest or time)
        first = (
            where
            if name in self.source.report.newer or name is None
            else self.ids.setdefault((scope, name), where)
        )
        if first != where:
            raise BadField(
                "id", f"{name!r} again in scope {scope!r} (first on {first})", "an id of its own"
            )
        return (
            scope,
            session,
            speaker,
            role,
            text,
            caption,
            name,
            record.take("forwarded_from", fields.check_name, None),
            self._read_quotations(record, scope, speaker, role),
            time,
            record["n"] if self.by_place else None,
        )

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
        spoken = f"{record['text']}\n{record.get('caption') or ''}"
        for key in self.list_unread(record, _MESSAGE_FIELDS, spoken):
            self.unread[f"text under the key {key!r}"] += 1

    def _role_of_sender(self, speaker: str) -> str:
        """Give the role of a message that has none: by an assistant's name, or a role in place of a name."""
        if is_assistant(self.source, speaker):
            return "assistant"
        name = _plain_name(speaker)
        if name in ("other", "person") or is_person(self.source, speaker):
            return "user"
        role = self.turn_role(name) or "user"
        if role != "user" and not self.is_plain(speaker.strip()):
            self.source.report.guessed[speaker.strip()] += 1
        return role

    def _read_quotations(
        self, record: Record, scope: str, speaker: str, role: str
    ) -> list[str] | None:
        """Give the parts of a text that are others' words: as the record says, else as they are found in it.

        Benchmarks stay as they are, and so does what an assistant says.
        """
        given = record.take("quoted", fields.check_rubric, None)
        people = self.people.setdefault(scope, set())
        people.add(speaker.strip().casefold())
        if given is not None or self.by_place or role == "assistant":
            return given
        language = self.source.language or "en"
        found = find_quotations(record["text"], speaker=speaker, people=people, language=language)
        return found or None

    def _read_time(
        self, record: Record, where: str, latest: datetime | None = None
    ) -> datetime | None:
        """Read a record's time; one without a zone is of the zone that was named, else UTC, which is noted once."""
        time = record.take("timestamp", self.source.parse_time, None)
        if time and time.tzinfo is None and self.source.tz is None and not self.zoneless:
            action = "times without a zone are taken as UTC; tz= names theirs"
            self.source.note(f"{where}: timestamp", describe_value(record["timestamp"]), action)
            self.zoneless = True
        return time and fields.place_in_zone(time, self.source.tz or UTC, latest)

    def make_datasets(self, batch_turns: int) -> Iterator[Dataset]:
        """Cut what was gathered into batches of whole scopes, in order of their first appearance."""
        self._pack()
        messages = pl.concat(self.packed)
        sizes = dict(messages.group_by("scope", maintain_order=True).len().iter_rows())
        for scope in [scope for scope in self.asked if scope not in sizes]:
            if self.source.into and self.source.into([encode_id_part(scope)]).turns.height:
                sizes[scope] = 0
                continue
            for where, record in self.asked.pop(scope):
                with self.source.record(where, record):
                    raise BadField(
                        "scope", f"{scope!r}, which has no messages", "a scope that messages are of"
                    )
        run, total = list[str](), 0
        for place, (scope, size) in enumerate(sizes.items(), 1):
            run.append(scope)
            total += size
            if total >= batch_turns or place == len(sizes):
                whole = len(run) == len(sizes)
                yield self._make_dataset(
                    messages if whole else messages.filter(pl.col("scope").is_in(run)), run
                )
                run, total = [], 0

    def _make_dataset(self, messages: pl.DataFrame, scopes: list[str]) -> Dataset:
        """Give messages their ids and places, and questions the ids of what they cite."""
        source, there = self.source, None
        messages = messages.with_columns(
            raw_scope="scope", scope=map_names(messages["scope"], encode_id_part)
        )
        if source.into:
            there = source.into([encode_id_part(scope) for scope in scopes])
        if self.by_place:
            session = pl.format("{}/{}", "scope", map_names(messages["session"], encode_id_part))
            turn = pl.coalesce("id", pl.format("{}/{}", "session_id", "n"))
            placed = whole = messages.with_columns(session_id=session).with_columns(turn_id=turn)
        else:
            own = self._put_in_order(with_turn_ids(messages.rename({"session": "named"})))
            # Places are counted in the file, ids are looked up in all that is there.
            placed = whole = self._assign_places(own)
            if there is not None:
                if (old := there.turns.filter(pl.col("turn_id").str.count_matches("/") > 1)).height:
                    older = (
                        f"dataset {there.name!r} has ids of an older memlab ({old['turn_id'][0]!r})"
                    )
                    source.fail(
                        f"{older}; ingest its whole file once more, then this one goes into it"
                    )
                whole = self._assign_places(merge_stored_turns(there.turns, own))
        asked = [
            (scope, i, *each)
            for scope in scopes
            for i, each in enumerate(self.asked.get(scope, ()))
        ]
        names = message_identity.build_citation_index(
            placed, whole, [record for *_, record in asked]
        )
        taken = message_identity.TakenQuestionIds(there, self.query_ids, as_they_are=self.by_place)
        said, annotations, summaries = list[Question](), list[Annotation](), dict[str, str]()
        for scope, i, where, record in asked:
            with source.record(where, record):
                if self.by_place and "summary" in record:
                    summaries[f"{encode_id_part(scope)}/{encode_id_part(record['session'])}"] = (
                        record["summary"]
                    )
                elif self.by_place and "annotation" in record:
                    annotations.append(
                        message_identity.read_annotation(record, encode_id_part(scope))
                    )
                else:
                    question = message_identity.read_question(
                        record, scope, names, self._read_time(record, where)
                    )
                    said.append(taken.named(question, i, where))
        sessions = sessions_of(whole, summaries=summaries)
        order = sessions.select("session_id").with_row_index("place")
        turns = (
            whole.join(order, on="session_id", how="left").sort("place", "n").select(*schema(Turn))
        )
        tables = (
            turns,
            sessions,
            frame(Question, said),
            frame(Annotation, annotations),
            source.report.take_issues(),
        )
        merged_onto = dict[str, str]()
        if there is not None:
            merged_onto = digest_turns(there.turns, map(encode_id_part, scopes))
        return Dataset(
            escape_surrogates(source.path.stem),
            self.kind,
            *tables,
            language=source.language or "en",
            merged_onto=merged_onto,
        )

    def _put_in_order(self, messages: pl.DataFrame) -> pl.DataFrame:
        """Give messages the times that put them into order, and say how many clocks disagree."""
        placed = messages.with_columns(placed=order_times(messages, ordered=self.ordered))
        back = count_steps_back(placed)
        if back:
            what = "1 time that lies" if back == 1 else f"{back:,} times that lie"
            self.source.note(
                "timestamp",
                f"{what} before that of the message above",
                "the order of the file is kept",
            )
        return placed

    def _assign_places(self, messages: pl.DataFrame) -> pl.DataFrame:
        """Give messages their sessions and places, and the ids of both."""
        return with_session_ids(
            sessionize(messages.with_columns(session="named"), gap=self.source.gap)
        )
