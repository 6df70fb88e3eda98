"""Messages with roles and contents, as the OpenAI API takes and gives them: conversations, logged calls, rows."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from itertools import groupby, pairwise
from typing import Any

from memlab.datasets import fields
from memlab.datasets.fields import BadField
from memlab.datasets.importers.branches import find_branch
from memlab.datasets.importers.conversation_rows import (
    RowPlaces,
    read_thread,
    read_user,
)
from memlab.datasets.importers.export_messages import (
    OWNER_SCOPE,
    Message,
    holds_same_messages,
    make_session_messages,
    name_conversation,
    name_files,
    read_role,
    read_turns,
)
from memlab.datasets.importers.logged_calls import (
    Call,
    ToldHistories,
    count_overlap,
    digest_turns_of,
    find_call,
)
from memlab.datasets.importers.loose_json import decode_json, first_field, first_time, get_nested
from memlab.datasets.importers.message_fields import read_time_value
from memlab.datasets.source import Source
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
]
_PAIRS += [{"prompt", "response"}, {"instruction", "output"}, {"chosen.role", "rejected.role"}]
_PAIRS += [{"session_id", "message.type"}, {"sessionId", "message.type"}]  # of LangChain and n8n
_CALLS = {"body.messages.role", "request.messages.role", "response.body.choices", "body.input"}
_CALLS |= {"response.body.output", "request.input", "request.contents", "response.body.content"}
_CALLS |= {"result.message.content"}  # of Anthropic's batches
_CALLS |= {"kwargs.messages.role", "input.messages.role", "params.messages.role"}
_MADE = (
    *("created_at", "created", "timestamp", "createdAt", "response.created_at"),
    *("response.created", "response.body.created_at", "response.body.created", "ts", "time"),
    *("create_time", "started_at", "startedAt", "date", "sent_at", "sentAt", "datetime"),
    *("start_time", "startTime", "inserted_at", "request.created_at", "request.timestamp"),
)
_SESSION = ("id", "conv.id", "uuid", "custom_id")
_CURRENT = ("currNode", "conv.currNode", "currentId", "current_node", "currentNode", "head")


def is_openai_list(file: Source) -> bool:
    keys = file.keys or file.columns
    if keys & {"agents", "run_type", "scope"}:
        return False
    if keys & _CALLS or "messages" in file.columns or {"input", "output"} <= file.first_keys:
        return True
    return any(pair <= keys for pair in _PAIRS)


def read_openai_messages(source: Source) -> Iterator[Message]:
    """Read every conversation as a session; single messages are one, or those that they name."""
    reader = ConversationReader(source)
    for _, values in groupby(source.member_values(), lambda value: value[0].name):
        rows, about = list[Any](), dict[str, Any]()
        for file, number, raw in values:
            message = _unpack_message(raw)
            if message is not None:
                rows.append(message)
            elif first_field(raw, "type") == "session":
                about = raw
            else:
                yield from reader.read(file, number, raw)
        if rows:
            yield from reader.read_rows(file, about, rows)
    yield from reader.read_waiting()


def _unpack_message(raw: Any) -> Any:
    """Give a record that is one message, out of the line around it; ``None`` for any other."""
    inner = decode_json(get_nested(raw, "message"))
    is_around = isinstance(inner, dict) and not {"role", "sender", "messages"} & raw.keys()
    if is_around and {"role", "type"} & inner.keys():
        return {key: value for key, value in raw.items() if key != "message"} | inner
    listed = isinstance(raw, list) or first_field(raw, "type") == "session"
    return None if listed or find_call(raw) is not None else raw


class ConversationReader:
    """What is known of the files read so far: whose the messages are, and which conversations stand in them.

    :param spoken: what was said so far in sessions that several records name; ``names`` is how many
        messages a conversation has that names itself alone, with a digest of them.
    :param waiting: answers that a file holds without their requests, which another file may hold.
    """

    def __init__(self, source: Source) -> None:
        self.source, self.places, self.histories = source, RowPlaces(), ToldHistories()
        self.spoken: dict[tuple[str, str], list[Message]] = {}
        self.waiting: list[tuple[Source, int, Any, Call]] = []
        self.names: dict[tuple[str, str], tuple[int, int]] = {}
        self.files = name_files(source)

    def read(self, file: Source, number: int, raw: Any) -> Iterator[Message]:
        """Read a record: a list of messages, a conversation, or a logged call."""
        call = Call(raw, [], 0, 0) if isinstance(raw, list) else find_call(raw)
        if call is None:
            self.source.drop("unreadable messages", OWNER_SCOPE)
        elif call.asked is None and first_field(raw, "custom_id"):
            self.waiting.append((file, number, raw, call))
        elif call.answers:
            yield from self.read_call(file, number, raw, call)
        else:
            self.source.drop("system messages", self.find_scope(raw), call.system)
            session = self.name_session(file, number, raw)
            yield from self.read_list(file, raw, call.asked or [], session)
            self.count_unread(raw, call)

    def count_unread(self, raw: Any, call: Call) -> None:
        """Count the texts that stand beside a request and its answer."""
        if isinstance(raw, dict):
            spoken = join_texts([call.asked, call.answers])
            scope = self.find_scope(raw)
            count_unread_texts(self.source, scope, raw, call.read, spoken, around=True)

    def read_waiting(self) -> Iterator[Message]:
        """Read the answers whose requests stand in another file, or nowhere."""
        for file, number, raw, call in self.waiting:
            yield from self.read_call(file, number, raw, call)

    def find_scope(self, raw: Any) -> str:
        for each in (raw, get_nested(raw, "body"), get_nested(raw, "request")):
            if any(read_user(each)):
                return self.places.place(each, asks=True)[0]
        return OWNER_SCOPE

    def name_session(self, file: Source, number: int, raw: Any) -> str:
        """Name a conversation as it does itself, else by its place."""
        if not isinstance(raw, dict):
            return name_conversation(self.source, file, number)
        called = read_thread(raw)[0] or first_field(raw, *_SESSION)
        return called or name_conversation(self.source, file, number)

    def read_list(
        self, file: Source, raw: Any, listed: list[Any], session: str
    ) -> Iterator[Message]:
        """Read the messages of a conversation; those that name conversations of their own are several."""
        threads, users = dict[tuple[str, str], Any](), list[str]()
        for each in listed:
            if any(read_thread(each)):
                threads.setdefault(read_thread(each), each)
            if any(read_user(each)):
                users.append(self.places.place(each, asks=True)[0])
        if len(threads) > 1:
            yield from self.read_rows(file, raw, listed, session)
            return
        if not self.is_named(raw):
            for each in threads.values():
                session = self.places.place(each, asks=True)[1]
        scope = self.find_scope(raw)
        if scope == OWNER_SCOPE and users:
            scope = users[0]
        turns = self.sort(scope, file, raw, listed)
        if first_field(raw, *_SESSION) == session and not any(read_thread(raw)):
            session, repeated = self.find_own_session(scope, session, turns)
            turns = turns[repeated:]
        yield from self.give(scope, session, raw, turns)

    def is_named(self, raw: Any) -> bool:
        """Say whether a conversation has a name of its own."""
        return any(read_thread(raw)) or first_field(raw, *_SESSION) != ""

    def find_own_session(self, scope: str, session: str, turns: list[Message]) -> tuple[str, int]:
        """Give the session of a conversation by its id, and how much of it was read already.

        One that begins with all that another of this id said, and goes on, is the same; any other
        is one of its own, since ids may begin anew in each file.
        """
        wanted, copies = session, 1
        while (scope, session) in self.names:
            size, digest = self.names[scope, session]
            if holds_same_messages(self.source, scope, session, turns):
                return session, 0  # which are dropped one by one
            if size < len(turns) and digest_turns_of(turns[:size]) == digest:
                break
            copies += 1
            session = f"{wanted} ({copies})"
        repeated = self.names.get((scope, session), (0, 0))[0]
        self.names[scope, session] = len(turns), digest_turns_of(turns)
        return session, repeated

    def read_rows(
        self, file: Source, raw: Any, listed: list[Any], session: str = ""
    ) -> Iterator[Message]:
        """Read messages that each may name their user and their conversation; else the file is one."""
        # What is counted here is counted again when they are read.
        quiet = Source(self.source.path, people=self.source.people)
        self.places.begin_file()
        for each in listed:
            if isinstance(each, dict) and read_role(quiet, "", each, each)[0] != "assistant":
                self.places.learn(each)
        for (user, named), rows in self.group_rows(listed).items():
            scope = user or self.find_scope(raw)
            name = named or session or first_field(raw, *_SESSION) or self.files[file.name]
            turns = self.sort(scope, file, raw, rows)
            yield from make_session_messages(self.source, scope, name, turns)

    def group_rows(self, listed: list[Any]) -> dict[tuple[str, str], list[Any]]:
        """Group messages by scope and session, in the order in which these appear."""
        groups: dict[tuple[str, str], list[Any]] = {}
        for raw in listed:
            groups.setdefault(self.places.place(raw, asks=self.places.asks(raw)), []).append(raw)
        return groups

    def sort(self, scope: str, file: Source, raw: Any, listed: list[Any]) -> list[Message]:
        """Give the messages of the branch that is shown, the oldest first."""
        current = first_field(raw, *_CURRENT)
        kept = find_branch(listed, current)
        if kept is not None:
            left = list(read_turns(Source(file.path), scope, kept.left))
            self.source.drop("messages of other branches", scope, len(left))
            self.source.drop("repeated messages", scope, kept.older)
            listed = kept.branch
        else:
            listed = _put_oldest_first(self.source, file, listed)
        return list(read_turns(self.source, scope, listed))

    def give(self, scope: str, session: str, raw: Any, turns: list[Message]) -> Iterator[Message]:
        """Give the messages of a session, but for those of a record before that named it too."""
        if any(read_thread(raw)):
            said = self.spoken.setdefault((scope, session), [])
            turns = turns[count_overlap(said, turns) :]
            said += [dict(turn) for turn in turns]
        when = first_time(*(get_nested(raw, path) for path in _MADE))
        yield from make_session_messages(self.source, scope, session, turns, when)

    def read_call(self, file: Source, number: int, raw: Any, call: Call) -> Iterator[Message]:
        """Read a request and its answer; a call that repeats a conversation goes on in it."""
        scope = self.find_scope(raw)
        self.count_unread(raw, call)
        self.source.drop("system messages", scope, call.system)
        self.source.drop("other answers", scope, call.others)
        turns = self.sort(scope, file, raw, call.asked or [])
        asked = len(turns)
        for answer in call.answers:
            heard = list(read_turns(self.source, scope, answer))
            heard = heard[count_overlap(turns, heard) :]
            known = {turn["text"].strip() for turn in turns[asked:]}
            turns += [turn for turn in heard if turn["text"].strip() not in known]
        session, repeated = self.histories.find_session(raw, turns[:asked])
        if any(read_thread(raw)) or not session:
            session, repeated = self.name_session(file, number, raw), 0
            if not any(read_thread(raw)) and call.asked is not None:
                session, repeated = self.find_own_session(scope, session, turns)
        self.histories.add(raw, session, turns)
        yield from self.give(scope, session, raw, turns[repeated:])


def _put_oldest_first(source: Source, file: Source, listed: list[Any]) -> list[Any]:
    """Give messages in the order in which they were said, where the page of an API has the newest first."""
    order = _order_of_times(listed)
    roles = [
        read_role(Source(file.path), "", raw, raw)[0] for raw in listed if isinstance(raw, dict)
    ]
    reads_backwards = bool(roles) and roles[0] == "assistant" and roles[-1] != "assistant"
    if not file.is_api_list or order:
        # A clock that steps back once is no list that has the newest first.
        steps_back = order == "newest" and (len(listed) > 2 or file.is_api_list or reads_backwards)
        return listed[::-1] if steps_back else listed
    if len(roles) < 2:
        return listed
    reads_forwards = roles[0] != "assistant" and roles[-1] == "assistant"
    way = "the oldest first" if reads_forwards else "the newest first"
    source.note("export", "a list of an API without times", f"read as one with {way}")
    return listed if reads_forwards else listed[::-1]


def _order_of_times(listed: list[Any]) -> str:
    """Say whether the times of messages fall (``newest``), or do not (``oldest``); empty without times for all."""
    with suppress(TypeError, BadField):
        times = [fields.parse_time(read_time_value(each), "timestamp") for each in listed]
        falling = all(newer >= older for newer, older in pairwise(times))
        if times:
            return "newest" if falling and times[0] > times[-1] else "oldest"
    return ""
