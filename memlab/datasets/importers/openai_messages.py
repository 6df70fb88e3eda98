"""Messages with roles and contents, as the OpenAI API takes and gives them.

They stand in conversations, logged calls and rows.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Generator, Iterable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from memlab.datasets.importers.agent_framework_messages import is_of_framework, rewrite_messages
from memlab.datasets.importers.batch_requests import Batch, Batches, Place, read_custom_id
from memlab.datasets.importers.export_messages import (
    OWNER_SCOPE,
    Message,
    find_same_messages,
    make_session_messages,
    name_conversation,
    name_files,
    read_role,
    read_turns,
)
from memlab.datasets.importers.logged_model_calls import (
    Call,
    ToldHistories,
    count_overlap,
    decode_halves,
    find_call,
)
from memlab.datasets.importers.loose_json import decode_json, first_field, first_time, get_nested
from memlab.datasets.importers.message_branches import find_branch, holds_parent_key
from memlab.datasets.importers.newest_first_lists import Order, find_order
from memlab.datasets.importers.session_records import NamedSession, OwnSessions
from memlab.datasets.importers.transcripts_in_text import BEGINS, decode_transcripts
from memlab.datasets.importers.unknown_message_layouts import (
    SPEAKERS,
    describe_version,
    find_dividing_key,
    list_plain_columns,
    read_time_value,
    with_plain_columns,
)
from memlab.datasets.importers.user_and_thread_fields import (
    RowNames,
    RowPlaces,
    read_row_names,
    read_thread,
    read_user,
)
from memlab.datasets.importers.wrapped_conversations import (
    Wrapped,
    find_conversations,
)
from memlab.datasets.record_fields import Report, place_in_zone
from memlab.datasets.record_sources import Source
from memlab.datasets.time_keys import find_other_time
from memlab.datasets.unread_texts import count_unread_texts, join_texts

_PAIRS = [{"object", "output.role"}, {"messages.role", "messages.content"}, {"role", "content"}]
_PAIRS += [{"messages.role", "messages.parts"}, {"role", "parts"}]  # of the AI SDK
_PAIRS += [{"messages.role", "messages.contentParts"}, {"message.role", "message.content"}]
_PAIRS += [{"messages.role", "messages.text"}, {"messages.sender", "messages.text"}]
_PAIRS += [{"messages.author.role", "messages.content"}]
_PAIRS += [
    {"prompt", "choices"},
    {"prompt.role", "chosen"},
    {"prompt", "completion"},
    {"prompt", "chosen"},
    {"chosen", "rejected"},
]
_PAIRS += [{"prompt", "response"}, {"instruction", "output"}, {"chosen.role", "rejected.role"}]
_PAIRS += [{"contents.role", "contents.parts"}, {"query", "answer"}, {"request_body"}]
_PAIRS += [
    {"message", "chat_history"},
    {"message", "generation_id"},
    {"chunkedPrompt.chunks"},
    {"requestBody"},
]
_PAIRS += [{"session_id", "message.type"}, {"sessionId", "message.type"}]  # of LangChain and n8n
_PAIRS += [{"type", "data.content"}, {"request", "response"}]
_PAIRS += [{"user_message", "bot_response"}, {"user_message", "ai_response"}]
_PAIRS += [{"user_message", "assistant_message"}, {"user_input", "response"}]
_PAIRS += [{"messages", "response"}, {"inputs", "outputs"}, {"inputs", "generated_text"}]
_PAIRS += [{"query", "response"}, {"query", "output"}, {"input", "response"}]
_LANGCHAIN = re.compile(r'"type"\s*:\s*"(?:human|ai)"|"(?:Human|AI)Message(?:Chunk)?"\s*\]')
_OF_LANGCHAIN = frozenset(
    (
        *("content", "kwargs.content", "messages.content", "messages.kwargs", "messages.data"),
        *("values.messages", "values.messages.content"),
    )
)
"""Where LangChain and LangGraph have what a message says, whose type says who speaks."""
_CALLS = {"body.messages.role", "request.messages.role", "response.body.choices", "body.input"}
_CALLS |= {
    "response.candidates",
    "response.body.output",
    "request.input",
    "request.contents",
    "response.body.content",
    "input.inputBodyJson",
}
_CALLS |= {"result.message.content"}  # of Anthropic's batches
_CALLS |= {"kwargs.messages.role", "input.messages.role", "params.messages.role"}
_MADE = (
    *("created_at", "created", "timestamp", "createdAt", "response.created_at"),
    *("response.created", "response.body.created_at", "response.body.created", "ts", "time"),
    *("create_time", "started_at", "startedAt", "date", "sent_at", "sentAt", "datetime"),
    *("start_time", "startTime", "inserted_at", "request.created_at", "request.timestamp"),
)
_SESSION = ("id", "conv.id", "uuid")
_REQUESTS = (
    *("body", "request", "request.body", "params", "input", "inputs", "kwargs"),
    *("request_body", "requestBody", "input.inputBodyJson"),
)
_LISTS = frozenset(("messages", "input", "contents"))
_OF_MESSAGES = frozenset(("role", "sender", "messages"))
_KINDS = frozenset(("role", "type"))
_TEXTS_OF_ROWS = frozenset(("content", "message", "body"))
_CHANGED = frozenset(("updated_at", "updatedAt", "update_time", "edited_at", "modified_at"))
_DAY = timedelta(days=1)
_CURRENT = (
    *("currNode", "conv.currNode", "currentId", "current_node", "currentNode", "head"),
    *("current_leaf_message_uuid", "currentLeaf", "activeLeaf", "activeLeafId", "leafId"),
    *("currentMessageId", "current_message_id", "currentNodeId", "current_node_id"),
)


def is_openai_list(file: Source) -> bool:
    columns = list_plain_columns(file.columns)
    keys = file.keys or columns
    if keys & {"agents", "run_type", "scope"}:
        return False
    first_keys = list_plain_columns(file.first_keys)
    if "messages" in columns or _is_row(first_keys) or _is_node(first_keys):
        return True
    if {"input", "output"} <= file.first_keys:
        return True
    if not keys.isdisjoint(_CALLS):
        return True
    if any(map(keys.issuperset, _PAIRS)):
        return True
    if not columns and (is_of_framework(file) or BEGINS.search(file.head)):
        return True
    return _LANGCHAIN.search(file.head) is not None and not keys.isdisjoint(_OF_LANGCHAIN)


def _is_row(keys: set[str]) -> bool:
    """Say whether a record with these keys, or a row of a table, says who wrote what."""
    if "text" in keys and not keys.isdisjoint({"speaker", "author", "from"}):
        return True
    if keys.isdisjoint(SPEAKERS):
        return False
    return not keys.isdisjoint(_TEXTS_OF_ROWS)


def _is_node(keys: set[str]) -> bool:
    """Say whether a record is a message with a text that names the message before it."""
    if "text" not in keys or keys.isdisjoint(SPEAKERS):
        return False
    return holds_parent_key(keys)


def read_openai_messages(source: Source) -> Iterator[Message]:
    """Read every conversation as a session; single messages are one, or those that they name."""
    reader = ConversationReader(source)
    for file in source.members:
        message_rows = list[Any]()
        session_fields = dict[str, Any]()
        for number, record in _read_records(source, file):
            message = _unpack_message(record)
            wrapped_conversations = list[Wrapped]()
            if isinstance(message, dict) and SPEAKERS.isdisjoint(message):
                wrapped_conversations = find_conversations(record)
            if wrapped_conversations:
                yield from reader.read_wrapped(file, record, wrapped_conversations)
            elif message is not None:
                message_rows.append(message)
            elif first_field(record, "type") == "session":
                session_fields = record
            else:
                yield from reader.read(file, number, record)
        if message_rows:
            yield from reader.read_dataset_rows(file, session_fields, message_rows)
    yield from reader.read_waiting()


def _read_records(source: Source, file: Source) -> Iterator[tuple[int, Any]]:
    """Give the records of a file, with their numbers, in the layout that others share."""
    is_table = bool(file.columns)
    is_rewritten = not is_table and is_of_framework(file)
    for number, record in file.values():
        records = [record]
        if is_table:
            records = [with_plain_columns(record)]
        elif is_rewritten:
            records = rewrite_messages(source, record)
        for rewritten_record in records:
            yield number, decode_transcripts(decode_halves(rewritten_record))


def _unpack_message(raw: Any) -> Any:
    """Give a record that is one message, out of the line around it; ``None`` for any other."""
    inner_message = decode_json(get_nested(raw, "message"))
    is_around = isinstance(inner_message, dict) and _OF_MESSAGES.isdisjoint(raw)
    if is_around and not _KINDS.isdisjoint(inner_message):
        outer_fields = dict(raw)
        del outer_fields["message"]
        return outer_fields | inner_message
    if isinstance(raw, list) or first_field(raw, "type") == "session":
        return None
    if find_call(raw) is not None:
        return None
    return raw


class ConversationReader:
    """What is known of the files read so far.

    That is whose the messages are, and which conversations stand in them.

    :param spoken: the sessions that several records name.
    :param numbers: how many conversations each file has had that stand within objects.
    :param waiting: answers that a file holds without their requests, which another file may hold.
    """

    def __init__(self, source: Source) -> None:
        self.source = source
        self.places = RowPlaces()
        self.histories = ToldHistories()
        self.spoken: dict[Place, NamedSession] = {}
        self.own_sessions = OwnSessions()
        self.batches = Batches()
        self.waiting: list[tuple[Source, int, Any, Call, Batch]] = []
        self.files = name_files(source)
        self.numbers = Counter[str]()
        self.newest = _find_newest_copies(source)

    def read(self, file: Source, number: int, raw: Any) -> Iterator[Message]:
        """Read a record: a list of messages, a conversation, or a logged call."""
        copy_key, version = _describe_copy(raw)
        if version < self.newest.get(copy_key, version):
            self.source.drop("older versions of conversations", self.find_scope(raw))
            return
        call = find_call(raw)
        if isinstance(raw, list):
            call = Call(raw, [], 0, 0)
        custom_id = read_custom_id(raw)
        if call is None:
            self.source.drop("unreadable messages", OWNER_SCOPE)
        elif call.asked is None and custom_id:
            answers = self.batches.add_answer(file.name, custom_id)
            self.waiting.append((file, number, raw, call, answers))
        elif call.answers:
            yield from self.read_call(file, number, raw, call)
        else:
            self.source.drop("system messages", self.find_scope(raw), call.system)
            self.source.drop("other answers", self.find_scope(raw), call.others)
            session = self.name_session(file, number, raw)
            place = yield from self.read_list(file, raw, call.history, session)
            if custom_id:
                self.batches.add_request(file.name, custom_id, place)
            self.count_unread(raw, call)

    def read_wrapped(self, file: Source, raw: Any, wrapped: list[Wrapped]) -> Iterator[Message]:
        """Read the conversations within an object, and count the texts beside them."""
        for conversation in wrapped:
            self.numbers[file.name] += 1
            yield from self.read(file, self.numbers[file.name], conversation.record)
        read_paths = {conversation.path for conversation in wrapped}
        joined_texts = join_texts([conversation.record["messages"] for conversation in wrapped])
        count_unread_texts(self.source, OWNER_SCOPE, raw, read_paths, joined_texts, around=True)

    def count_unread(self, raw: Any, call: Call) -> None:
        """Count the texts that stand beside a request and its answer."""
        if isinstance(raw, dict):
            joined_texts = join_texts([call.asked, call.answers, str(_read_created(raw))])
            scope = self.find_scope(raw)
            count_unread_texts(self.source, scope, raw, call.read, joined_texts, around=True)

    def read_waiting(self) -> Iterator[Message]:
        """Read the answers whose requests stand in another file, or nowhere."""
        for file, number, record, call, answers in self.waiting:
            session_place = self.batches.take_request(read_custom_id(record), answers)
            yield from self.read_call(file, number, record, call, place=session_place)

    def find_scope(self, raw: Any, listed: Iterable[Any] = ()) -> str:
        """Give the scope of the user that a conversation names.

        Else it is that of the answer that the conversation goes on from.

        :param listed: its messages, the first of which that names a user says whose it is else.
        """
        scope = self.find_named_scope([raw, *_list_requests(raw)])
        if not scope:
            scope = self.histories.find_scope(raw)
        if not scope:
            scope = self.find_named_scope(listed)
        if not scope:
            scope = OWNER_SCOPE
        return scope

    def find_named_scope(self, records: Iterable[Any]) -> str:
        """Give the scope of the user that one of some records names; empty where none does."""
        for record in records:
            if any(read_user(record)):
                return self.places.place(read_row_names(record), asks=True)[0]
        return ""

    def name_session(self, file: Source, number: int, raw: Any) -> str:
        """Name a conversation as it does itself, else by its place."""
        session, _ = _find_thread(raw)
        if not session:
            session = _name_itself(raw)
        if not session:
            session = name_conversation(self.source, file, number)
        return session

    def read_list(
        self, file: Source, raw: Any, raw_messages: list[Any], session: str
    ) -> Generator[Message, None, Place]:
        """Read the messages of a conversation.

        Those that name conversations of their own are several.

        :returns: the scope and the session of the conversation.
        """
        message_by_thread = dict[tuple[str, str], Any]()
        for message in raw_messages:
            thread = read_thread(message)
            if any(thread):
                message_by_thread.setdefault(thread, message)
        if len(message_by_thread) > 1:
            yield from self.read_dataset_rows(file, raw, raw_messages, session)
            return self.find_scope(raw), session
        if not self.is_named(raw):
            for message in message_by_thread.values():
                session = self.places.place(read_row_names(message), asks=True)[1]
        scope = self.find_scope(raw, raw_messages)
        messages = self.sort(scope, file, raw, raw_messages)
        n_repeated = 0
        if _name_itself(raw) == session and not any(_find_thread(raw)):
            session, n_repeated = self.find_own_session(scope, raw, session, messages)
        yield from self.give(scope, session, raw, messages[n_repeated:])
        return scope, session

    def is_named(self, raw: Any) -> bool:
        """Say whether a conversation has a name of its own."""
        return any([*_find_thread(raw), _name_itself(raw)])

    def find_own_session(
        self, scope: str, raw: Any, session: str, turns: list[Message]
    ) -> tuple[str, int]:
        """Give the session of a conversation by its id, and how much of it was read already.

        A request of a batch is one of its own: the ids begin anew in each batch.
        """
        if read_custom_id(raw):
            return self.own_sessions.begin(scope, session, turns), 0
        known_session = find_same_messages(self.source, scope, turns)
        if self.own_sessions.is_of(scope, known_session, session):
            return known_session, 0  # which are dropped one by one
        return self.own_sessions.find(scope, session, turns)

    def read_dataset_rows(
        self, file: Source, record: Any, raw_messages: list[Any], session: str = ""
    ) -> Iterator[Message]:
        """Read messages that each may name their user and their conversation.

        Those of a file that name none are one conversation.
        """
        # What is counted here is counted again when they are read.
        silent_source = Source(self.source.path, people=self.source.people)
        self.places.begin_file()
        row_names = list(map(read_row_names, raw_messages))
        row_names = self.divide_by_ids(raw_messages, row_names)
        learned_names = set[RowNames]()
        for message, names in zip(raw_messages, row_names, strict=True):
            # Who is known to ask is not looked at again: to read a role takes long.
            if names in learned_names or not isinstance(message, dict) or not any(names.user):
                continue
            if read_role(silent_source, "", message, message)[0] != "assistant":
                self.places.learn(names)
                learned_names.add(names)
        for (user, named_session), session_rows in self.group_rows(raw_messages, row_names).items():
            scope = user
            if not scope:
                scope = self.find_scope(record)
            possible_names = (named_session, session, _name_itself(record), self.files[file.name])
            session_name = next(filter(None, possible_names))
            turns = self.sort(scope, file, record, session_rows)
            yield from make_session_messages(self.source, scope, session_name, turns)

    def divide_by_ids(self, raw_messages: list[Any], row_names: list[RowNames]) -> list[RowNames]:
        """Give each message the conversation within which its id counts, where none names one.

        Where ids begin anew, another id tells the conversations apart.
        """
        if any(any(names.thread) for names in row_names):
            return row_names
        dividing_key = find_dividing_key(raw_messages)
        if not dividing_key:
            return row_names
        self.source.note(
            "export",
            f"ids that begin anew with each {dividing_key!r}",
            "each is read as a conversation",
        )
        divided_names = list[RowNames]()
        for message, names in zip(raw_messages, row_names, strict=True):
            divided_names.append(names._replace(thread=(first_field(message, dividing_key), "")))
        return divided_names

    def group_rows(
        self, raw_messages: list[Any], row_names: list[RowNames]
    ) -> dict[tuple[str, str], list[Any]]:
        """Group messages by scope and session, in the order in which these appear."""
        rows_by_place: dict[tuple[str, str], list[Any]] = {}
        for message, names in zip(raw_messages, row_names, strict=True):
            place = self.places.place(names, asks=self.places.asks(names))
            rows_by_place.setdefault(place, []).append(message)
        return rows_by_place

    def sort(self, scope: str, file: Source, record: Any, raw_messages: list[Any]) -> list[Message]:
        """Give the messages of the branch that is shown, the oldest first."""
        current_id = first_field(record, *_CURRENT)
        found_branch = find_branch(raw_messages, current_id)
        if found_branch is not None:
            left_messages = list(read_turns(Source(file.path), scope, found_branch.left))
            self.source.drop("messages of other branches", scope, len(left_messages))
            self.source.drop("repeated messages", scope, found_branch.older)
            raw_messages = found_branch.branch
        else:
            raw_messages = _put_oldest_first(self.source, file, raw_messages)
        return list(read_turns(self.source, scope, raw_messages))

    def give(self, scope: str, session: str, raw: Any, turns: list[Message]) -> Iterator[Message]:
        """Give the messages of a session, but for those of a record before that named it too."""
        created_at = _read_created(raw)
        thread = _find_thread(raw)
        if any(thread):
            session_mark: Any = _name_itself(raw)
            if session_mark in ("", thread[0]):
                session_mark = created_at
            named_session = self.spoken.setdefault((scope, session), NamedSession())
            n_repeated, n_counted = named_session.add(turns, session_mark)
            self.source.drop("repeated messages", scope, n_counted)
            turns = turns[n_repeated:]
        yield from make_session_messages(self.source, scope, session, turns, created_at)

    def read_call(
        self, file: Source, number: int, raw: Any, call: Call, *, place: Place | None = None
    ) -> Iterator[Message]:
        """Read a request and its answer; a call that repeats a conversation goes on in it.

        :param place: the scope and the session of the request of an answer that stands apart.
        """
        scope = self.find_scope(raw, call.history)
        if place is not None:
            scope = place[0]
        self.count_unread(raw, call)
        self.source.drop("system messages", scope, call.system)
        self.source.drop("other answers", scope, call.others)
        messages = self.sort(scope, file, raw, call.history)
        n_asked = len(messages)
        for answer in call.answers:
            answer_messages = list(read_turns(self.source, scope, answer))
            answer_messages = answer_messages[count_overlap(messages, answer_messages) :]
            earlier_texts = {message["text"].strip() for message in messages[n_asked:]}
            for message in answer_messages:
                if message["text"].strip() not in earlier_texts:
                    messages.append(message)
        session, n_repeated = self.histories.find_session(scope, raw, messages[:n_asked])
        if place is not None:
            session = place[1]
        elif any(_find_thread(raw)) or not session:
            session = self.name_session(file, number, raw)
            n_repeated = 0
            if not any(_find_thread(raw)):
                session, n_repeated = self.find_own_session(scope, raw, session, messages)
        self.histories.add(scope, raw, session, messages)
        yield from self.give(scope, session, raw, messages[n_repeated:])


def _find_newest_copies(source: Source) -> dict[tuple[str, ...], str]:
    """Give the newest version of each conversation that says when it was changed.

    Only of several files, and of lines, is one conversation given more than once.
    """
    newest_by_copy = dict[tuple[str, ...], str]()
    for file in source.members:
        if _CHANGED.isdisjoint(file.keys):
            continue
        for _, record in replace(file, report=Report()).values():
            copy_key, version = _describe_copy(record)
            newest_by_copy[copy_key] = max(version, newest_by_copy.get(copy_key, version))
    return newest_by_copy


def _describe_copy(raw: Any) -> tuple[tuple[str, ...], str]:
    """Give what copies of a conversation share, and which version this one is; empty without one.

    They share their id, their user and their first message: ids may begin anew in another file.
    """
    version = describe_version(raw)
    if not version or not isinstance(raw.get("messages"), list):
        return (), ""
    beginning = join_texts(raw["messages"][:1])
    return (_name_itself(raw), *read_user(raw), beginning), version


def _read_created(raw: Any) -> Any:
    """Give the time of a conversation as it is written; ``None`` without one."""
    created_at = first_time(*map(partial(get_nested, raw), _MADE))
    if created_at is None and isinstance(raw, dict):
        created_at = find_other_time(raw)
    return created_at


def _find_thread(raw: Any) -> tuple[str, str]:
    """Give the conversation that a record names, or the request in it, and what that is part of."""
    thread = read_thread(raw)
    if any(thread):
        return thread
    for request in _list_requests(raw):
        if not isinstance(request, dict) or _LISTS.isdisjoint(request):
            continue
        thread = read_thread(request)
        if any(thread):
            return thread
    return "", ""


def _list_requests(raw: Any) -> list[Any]:
    """List what may hold the request of a record."""
    if not isinstance(raw, dict):
        return []
    return list(map(partial(get_nested, raw), _REQUESTS))


def _name_itself(raw: Any) -> str:
    """Give the id by which a conversation or a call names itself; empty without one."""
    return read_custom_id(raw) or first_field(raw, *_SESSION)


def _put_oldest_first(source: Source, file: Source, raw_messages: list[Any]) -> list[Any]:
    """Give messages in the order in which they were said, where the newest stands first."""
    known_order = find_order(raw_messages, partial(_parse_time, source))
    falls = known_order.fall > timedelta()
    if not falls and not file.is_api_list:
        return raw_messages
    silent_source = Source(file.path)
    messages = [message for message in raw_messages if isinstance(message, dict)]
    roles = [read_role(silent_source, "", message, message)[0] for message in messages]
    if falls and (file.is_api_list or _is_clear(known_order, roles)):
        return raw_messages[::-1]
    if known_order.fall or len(roles) < 2:
        return raw_messages
    list_text = "a list of an API without times"
    if known_order.known:
        list_text = "a list of an API whose times do not say in which order"
    if roles[0] != "assistant" and roles[-1] == "assistant":
        source.note("export", list_text, "read as one with the oldest first")
        return raw_messages
    source.note("export", list_text, "read as one with the newest first")
    return raw_messages[::-1]


def _parse_time(source: Source, raw: Any) -> datetime | None:
    """Give the time of a message in UTC; ``None`` without one."""
    written_time = read_time_value(raw)
    if written_time is None:
        return None
    return place_in_zone(source.parse_time(written_time, "timestamp"), source.tz or UTC, None)


def _is_clear(order: Order, roles: list[str | None]) -> bool:
    """Say whether times that fall are more than the work of a clock that steps back.

    Each has a time that is no later than the one before it, or they fall by a day. Of two messages
    the second may be an answer that has another clock.
    """
    always_falls = order.known == len(roles) and not order.forth
    if len(roles) > 2:
        return always_falls or (order.is_newest_first and order.fall >= _DAY)
    return always_falls and roles[:1] == ["assistant"] and roles[-1:] != ["assistant"]
