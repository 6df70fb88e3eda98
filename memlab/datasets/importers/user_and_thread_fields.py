"""Whose a message is and of which conversation, where each message of a file says it itself."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from functools import lru_cache
from typing import Literal, NamedTuple

from memlab.datasets.chatlog_notes import count_with_noun
from memlab.datasets.importers.loose_json import (
    JsonObject,
    JsonValue,
    first_field_text,
    first_non_empty_text,
    get_nested,
    list_record_and_its_metadata,
)
from memlab.datasets.record_sources import Source

_USER = (
    *("userid", "user", "ownerid", "accountid", "customerid", "username", "customer"),
    *("enduserid", "enduser", "fromenduserid", "requestuserid"),
)
_TENANT = ("tenant", "tenantid", "organizationid", "organisationid", "orgid")
_THREADS = (
    *("session", "sessionid", "threadid", "conversationid", "chatid", "convid", "conversationhash"),
    *("dialogueid", "dialogid", "sessionuuid", "threaduuid", "conversationuuid", "chatuuid"),
    *("roomid", "ticketid", "caseid", "thread", "conversation", "chat", "dialogue"),
    *("room", "ticket", "topicid", "messagetreeid", "heliconesessionid"),
)
_NAMES_OF_OBJECTS = ("id", "_id", "uuid", "$oid", "externalId", "external_id", "name")
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")
_OF_USERS = frozenset(
    (
        *("user", "customer", "client", "patient", "visitor", "member", "profile", "owner"),
        *("subscriber", "guest", "student", "learner", "player", "employee", "account"),
    )
)
_OF_THREADS = frozenset(
    (
        *("session", "thread", "conversation", "conv", "convo", "chat", "dialog", "dialogue"),
        *("discussion", "channel", "room", "group", "ticket", "case", "encounter", "visit"),
        *("incident", "meeting", "episode"),
    )
)
_OF_IDS = frozenset(("id", "uuid", "guid", "key", "hash", "number", "identifier"))
_OF_NAMES = frozenset(("name", "title", "label"))
_BESIDE = frozenset(("app", "end", "external", "internal", "memory", "ext", "anon", "anonymous"))
"""Words of keys that name a user or a conversation, and those that change nothing about it."""
_AROUND = ("flowid", "appid", "projectid", "workspaceid")
"""Within which a session has its name: another flow may have one of the same name."""
_AROUND_ROWS = ("conversation", "session", "thread", "config.configurable")
"""Objects in which a record says of which conversation it is, and whose that is."""


_GROUPS = {"user": _USER, "tenant": _TENANT, "thread": _THREADS, "around": _AROUND}
_GROUPS["topic"] = ("topicid",)


class _NamingObject(NamedTuple):
    """A record, or what it says about itself, with its keys that name something, by group."""

    fields: JsonObject
    keys_by_group: dict[str, list[str]]


class ScopeAndSession(NamedTuple):
    """Where a message is stored: the scope of its user, and its session; empty if not known."""

    scope: str
    session: str


class NameAndContainer(NamedTuple):
    """A name, and what it is unique in: a user and the tenant, a thread and its flow or topic."""

    name: str
    container: str


class UserAndThread(NamedTuple):
    """What a message names: its user with the tenant, its conversation with what is around."""

    user: NameAndContainer
    thread: NameAndContainer


_NOWHERE = NameAndContainer("", "")
"""The conversation of messages that name none."""


@lru_cache(1 << 12)
def _user_and_thread_keys_by_group(record_keys: tuple[str, ...]) -> dict[str, list[str]]:
    """Give the keys of a record that name something, by group, however it writes them.

    ``User ID`` and ``userId`` are one.
    """
    by_plain_key = {
        re.sub(r"[\s_.-]", "", record_key).lower(): record_key for record_key in record_keys
    }
    keys_by_group = dict[str, list[str]]()
    for group, plain_keys in _GROUPS.items():
        group_keys = [
            by_plain_key[plain_key] for plain_key in plain_keys if plain_key in by_plain_key
        ]
        if group_keys:
            keys_by_group[group] = group_keys
    for record_key in record_keys:
        group = _classify_key_as_user_or_thread(record_key)
        if group and record_key not in keys_by_group.get(group, ()):
            keys_by_group.setdefault(group, []).append(record_key)
    return keys_by_group


def _classify_key_as_user_or_thread(key: str) -> Literal["user", "thread", ""]:
    """Say by the words of a key whether it names a user or a conversation; empty for any other.

    >>> keys = "external_user_id", "chatSessionUuid", "user_message_id"
    >>> list(map(_classify_key_as_user_or_thread, keys))
    ['user', 'thread', '']
    """
    key_words = {word.lower() for word in _WORD.findall(key)} - _BESIDE
    user_words = key_words & _OF_USERS
    thread_words = key_words & _OF_THREADS
    other_words = key_words - user_words - thread_words
    if user_words and not thread_words and other_words and other_words <= _OF_IDS | {"email"}:
        return "user"
    if thread_words and not user_words and other_words and other_words <= _OF_IDS | _OF_NAMES:
        return "thread"
    return ""


def _list_objects_naming_user_or_thread(raw_record: JsonValue) -> list[_NamingObject]:
    """Give a record, and what it says about itself, where they name something."""
    naming_objects = list[_NamingObject]()
    row_objects = list_record_and_its_metadata(raw_record)
    for path in _AROUND_ROWS:
        row_object = get_nested(raw_record, path)
        if isinstance(row_object, dict):
            row_objects.append(row_object)
    context = get_nested(raw_record, "context")
    if isinstance(context, dict) and "thread" in _user_and_thread_keys_by_group(tuple(context)):
        row_objects.append(context)  # without a conversation it is what was looked up
    for row_object in row_objects:
        keys_by_group = _user_and_thread_keys_by_group(tuple(row_object))
        if keys_by_group:
            naming_objects.append(_NamingObject(row_object, keys_by_group))
    return naming_objects


def _first_name_of_group_or_empty(naming_objects: list[_NamingObject], key_group: str) -> str:
    """Give the first name of a group in a record or in what it says about itself.

    It is empty without one.
    """
    for row_object, keys_by_group in naming_objects:
        for row_key in keys_by_group.get(key_group, ()):
            name_found = row_object[row_key]
            if isinstance(name_found, dict):  # an object with its id
                name_found = first_field_text(name_found, *_NAMES_OF_OBJECTS)
            name_found = first_non_empty_text(name_found)
            if name_found:
                return name_found
    return ""


def read_user_and_tenant(raw_record: JsonValue) -> NameAndContainer:
    """Give the user that a message or a conversation names, and the tenant.

    Each is empty where it names none.

    >>> read_user_and_tenant({"User ID": 7, "text": "Hello"})
    NameAndContainer(name='7', container='')
    >>> read_user_and_tenant({"metadata": {"userId": "ann"}}).name
    'ann'
    """
    return read_user_and_thread(raw_record).user


def read_thread_and_container(raw_record: JsonValue) -> NameAndContainer:
    """Give the conversation that a message names, and what it is part of.

    Each is empty where it names none. A topic within a session is a conversation of its own.
    """
    return _find_thread_and_container(_list_objects_naming_user_or_thread(raw_record))


def _find_thread_and_container(naming_objects: list[_NamingObject]) -> NameAndContainer:
    thread = _first_name_of_group_or_empty(naming_objects, "thread")
    if not thread:
        return _NOWHERE
    around_thread = _first_name_of_group_or_empty(naming_objects, "around")
    topic = _first_name_of_group_or_empty(naming_objects, "topic")
    if topic != thread:
        around_thread = " ".join(filter(None, (around_thread, topic)))
    return NameAndContainer(thread, around_thread)


_NAMELESS = UserAndThread(_NOWHERE, _NOWHERE)


def read_user_and_thread(raw_record: JsonValue) -> UserAndThread:
    """Give what a message names.

    >>> names = read_user_and_thread({"user": "ann", "session": "s1"})
    >>> names.user.name, names.thread.name
    ('ann', 's1')
    """
    naming_objects = _list_objects_naming_user_or_thread(raw_record)
    if not naming_objects:
        return _NAMELESS
    user = NameAndContainer(
        _first_name_of_group_or_empty(naming_objects, "user"),
        _first_name_of_group_or_empty(naming_objects, "tenant"),
    )
    return UserAndThread(user, _find_thread_and_container(naming_objects))


class _ConversationsOfSessions:
    """Which sessions stand in which conversations, by one key that names conversations.

    A session and a conversation have one name for each user.
    """

    def __init__(self) -> None:
        self.conversations: dict[tuple[str, str], set[str]] = defaultdict(set)
        self.sessions: dict[tuple[str, str], set[str]] = defaultdict(set)

    def add(self, user: str, session: str, conversation: str) -> None:
        self.conversations[user, session].add(conversation)
        self.sessions[user, conversation].add(session)

    def list_sessions_of_several_conversations(self) -> list[str]:
        """Give the sessions that stand in several conversations."""
        return [session for (_, session), names in self.conversations.items() if len(names) > 1]

    def has_session_names_that_restart(self) -> bool:
        """Say whether the names of sessions begin anew with each conversation.

        They do where two conversations share the name of a session and one of them has other
        sessions beside it: a session of several conversations would hold the whole of each.
        """
        for (user, _), conversations in self.conversations.items():
            if len(conversations) == 1:
                continue
            for conversation in conversations:
                if len(self.sessions[user, conversation]) > 1:
                    return True
        return False


class OuterConversation(NamedTuple):
    """A key that names conversations beside the key that names sessions.

    :param key: the key, as the file writes it.
    :param shared_sessions: the sessions that stand in several of these conversations.
    :param is_container: whether a session is one only within its conversation.
    """

    key: str
    shared_sessions: list[str]
    is_container: bool


def find_outer_conversation(raw_rows: Iterable[JsonValue]) -> OuterConversation | None:
    """Find a second key that names conversations, where sessions stand in several of them.

    It is ``None`` where no session does.

    :param raw_rows: the messages of a file.

    >>> rows = [{"session": "1", "conversation": "a"}, {"session": "2", "conversation": "a"}]
    >>> find_outer_conversation(rows) is None
    True
    >>> find_outer_conversation([*rows, {"session": "1", "conversation": "b"}])
    OuterConversation(key='conversation', shared_sessions=['1'], is_container=True)
    """
    by_key = dict[str, _ConversationsOfSessions]()
    for raw_row in raw_rows:
        naming_objects = _list_objects_naming_user_or_thread(raw_row)
        session = _first_name_of_group_or_empty(naming_objects, "thread")
        user = _first_name_of_group_or_empty(naming_objects, "user")
        for key, conversation in _list_thread_ids(naming_objects):
            by_key.setdefault(key, _ConversationsOfSessions()).add(user, session, conversation)
    best_found = None
    for key, pairs in by_key.items():
        shared_sessions = pairs.list_sessions_of_several_conversations()
        if not shared_sessions:
            continue
        found = OuterConversation(key, shared_sessions, pairs.has_session_names_that_restart())
        if found.is_container:
            return found
        best_found = best_found or found
    return best_found


def find_and_note_outer_conversation_key_or_empty(
    source: Source, raw_rows: Iterable[JsonValue]
) -> str:
    """Give the key of conversations within which the names of sessions begin anew, and note it.

    It is empty where they do not. A session that stands in several conversations, of which none
    has another session, stays one, which is noted too.
    """
    outer = find_outer_conversation(raw_rows)
    if outer is None:
        return ""
    sessions = count_with_noun(len(outer.shared_sessions), "session")
    if outer.is_container:
        finding = f"names of sessions that begin anew with each {outer.key!r}"
        source.note("export", finding, "a session is one within it")
        return outer.key
    finding = f"several values of {outer.key!r} in {sessions}"
    source.note("export", finding, "each session is kept as one")
    return ""


def names_several_threads(raw_row: JsonValue) -> bool:
    """Say whether a message names its conversation under more than one key."""
    return len(_list_thread_ids(_list_objects_naming_user_or_thread(raw_row))) > 1


def _list_thread_ids(naming_objects: list[_NamingObject]) -> list[tuple[str, str]]:
    """Give the keys that name a conversation, with their values; titles may change, and a topic
    is looked at elsewhere.
    """
    ids = list[tuple[str, str]]()
    for row_object, keys_by_group in naming_objects:
        for key in keys_by_group.get("thread", ()):
            key_words = {word.lower() for word in _WORD.findall(key)}
            if key_words & (_OF_NAMES | {"topic"}):
                continue
            name = _first_name_of_group_or_empty(
                [_NamingObject(row_object, {"thread": [key]})], "thread"
            )
            if name:
                ids.append((key, name))
    return ids


def read_user_and_thread_within(raw_row: JsonValue, outer_key: str) -> UserAndThread:
    """Give what a message names, with its conversation around its session.

    >>> read_user_and_thread_within({"session": "1", "conversation": "a"}, "conversation").thread
    NameAndContainer(name='1', container='a')
    """
    names = read_user_and_thread(raw_row)
    naming_objects = _list_objects_naming_user_or_thread(raw_row)
    conversation = dict(_list_thread_ids(naming_objects)).get(outer_key, "")
    container = " ".join(filter(None, (names.thread.container, conversation)))
    return names._replace(thread=names.thread._replace(container=container))


class SessionFinder:
    """The scope and the session of each message of a file, by what the messages before it said.

    Two tenants' users of one name have two scopes, and two flows' sessions of one name are two. An
    answer that names no user, or one that asks nothing, is of who asked before it in its
    conversation.
    """

    def __init__(self) -> None:
        self.asking: dict[NameAndContainer, dict[str, None]] = {}
        self.last: dict[NameAndContainer, str] = {}
        self.users: dict[str, str] = {}
        self.sessions: dict[str, str] = {}

    def forget_speakers_of_unnamed_thread(self) -> None:
        """Forget who spoke where no conversation is named: in another file that is another one."""
        self.asking.pop(_NOWHERE, None)
        self.last.pop(_NOWHERE, None)

    def remember_asking_user(self, user_and_thread: UserAndThread) -> None:
        """Take up who asks in which conversation, of a message that a person says."""
        user = _find_or_add_unique_name_or_container(user_and_thread.user, self.users)
        if user:
            self.asking.setdefault(user_and_thread.thread, {})[user] = None

    def is_asking_user(self, user_and_thread: UserAndThread) -> bool:
        """Say whether the user of a message is one of those who ask in its conversation."""
        return _find_or_add_unique_name_or_container(
            user_and_thread.user, self.users
        ) in self.asking.get(user_and_thread.thread, {})

    def find_and_remember_scope_and_session(
        self, user_and_thread: UserAndThread, *, is_asking: bool
    ) -> ScopeAndSession:
        """Give the scope and the session of a message, empty where nothing names them."""
        thread = user_and_thread.thread
        user = _find_or_add_unique_name_or_container(user_and_thread.user, self.users)
        speakers = self.asking.get(thread, {})
        if not user or (not is_asking and speakers and user not in speakers):
            candidates = (self.last.get(thread), *speakers, user)
            user = next(filter(None, candidates), "")
        self.last[thread] = user
        return ScopeAndSession(user, _find_or_add_unique_name_or_container(thread, self.sessions))


def _find_or_add_unique_name_or_container(
    name_and_container: NameAndContainer, container_by_name: dict[str, str]
) -> str:
    """Give a name, with what is around it behind it where another has the name.

    Without a name, give what is around it.
    """
    wanted_name, container = name_and_container
    if not wanted_name:
        return container
    if container_by_name.setdefault(wanted_name, container) == container or not container:
        return wanted_name
    return f"{wanted_name} ({container})"
