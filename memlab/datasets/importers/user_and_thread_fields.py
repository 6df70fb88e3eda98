"""Whose a message is and of which conversation, where each message of a file says it itself."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, NamedTuple

from memlab.datasets.importers.loose_json import (
    first_field,
    first_text,
    get_nested,
    list_with_metadata,
)

_USER = (
    *("userid", "user", "ownerid", "accountid", "customerid", "username", "customer"),
    *("enduserid", "enduser", "fromenduserid", "requestuserid"),
)
_TENANT = ("tenant", "tenantid", "organizationid", "organisationid", "orgid")
_THREADS = (
    *("sessionid", "threadid", "conversationid", "chatid", "convid", "conversationhash"),
    *("dialogueid", "dialogid", "sessionuuid", "threaduuid", "conversationuuid", "chatuuid"),
    *("roomid", "ticketid", "caseid", "session", "thread", "conversation", "chat", "dialogue"),
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
_NOWHERE = ("", "")
"""The conversation of messages that name none."""


_GROUPS = {"user": _USER, "tenant": _TENANT, "thread": _THREADS, "around": _AROUND}
_GROUPS["topic"] = ("topicid",)
_Named = list[tuple[dict[str, Any], dict[str, list[str]]]]
"""A record and what it says about itself, each with its keys that name something, by group."""


@lru_cache(1 << 12)
def _find_keys(row_keys: tuple[str, ...]) -> dict[str, list[str]]:
    """Give the keys of a record that name something, by group, however it writes them.

    ``User ID`` and ``userId`` are one.
    """
    by_plain_key = {re.sub(r"[\s_.-]", "", row_key).lower(): row_key for row_key in row_keys}
    keys_by_group = dict[str, list[str]]()
    for group, plain_keys in _GROUPS.items():
        group_keys = [
            by_plain_key[plain_key] for plain_key in plain_keys if plain_key in by_plain_key
        ]
        if group_keys:
            keys_by_group[group] = group_keys
    for row_key in row_keys:
        group = _find_group(row_key)
        if group and row_key not in keys_by_group.get(group, ()):
            keys_by_group.setdefault(group, []).append(row_key)
    return keys_by_group


def _find_group(key: str) -> str:
    """Say by the words of a key whether it names a user or a conversation; empty for any other.

    >>> list(map(_find_group, ("external_user_id", "chatSessionUuid", "user_message_id")))
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


def _find_named(raw: Any) -> _Named:
    """Give a record, and what it says about itself, where they name something."""
    named_objects: _Named = []
    row_objects = list_with_metadata(raw)
    for path in _AROUND_ROWS:
        row_object = get_nested(raw, path)
        if isinstance(row_object, dict):
            row_objects.append(row_object)
    context = get_nested(raw, "context")
    if isinstance(context, dict) and "thread" in _find_keys(tuple(context)):
        row_objects.append(context)  # without a conversation it is what was looked up
    for row_object in row_objects:
        keys_by_group = _find_keys(tuple(row_object))
        if keys_by_group:
            named_objects.append((row_object, keys_by_group))
    return named_objects


def _read_first(named_objects: _Named, group: str) -> str:
    """Give the first name of a group in a record or in what it says about itself.

    It is empty without one.
    """
    for row_object, keys_by_group in named_objects:
        for row_key in keys_by_group.get(group, ()):
            name_found = row_object[row_key]
            if isinstance(name_found, dict):  # an object with its id
                name_found = first_field(name_found, *_NAMES_OF_OBJECTS)
            name_found = first_text(name_found)
            if name_found:
                return name_found
    return ""


def read_user(raw: Any) -> tuple[str, str]:
    """Give the user that a message or a conversation names, and the tenant.

    Each is empty where it names none.

    >>> read_user({"User ID": 7, "text": "Hello"}), read_user({"metadata": {"userId": "ann"}})
    (('7', ''), ('ann', ''))
    """
    return read_row_names(raw).user


def read_thread(raw: Any) -> tuple[str, str]:
    """Give the conversation that a message names, and what it is part of.

    Each is empty where it names none. A topic within a session is a conversation of its own.
    """
    return _find_thread(_find_named(raw))


def _find_thread(named_objects: _Named) -> tuple[str, str]:
    thread = _read_first(named_objects, "thread")
    if not thread:
        return _NOWHERE
    around_thread = _read_first(named_objects, "around")
    topic = _read_first(named_objects, "topic")
    if topic != thread:
        around_thread = " ".join(filter(None, (around_thread, topic)))
    return thread, around_thread


class RowNames(NamedTuple):
    """What a message names: its user with the tenant, its conversation with what is around."""

    user: tuple[str, str]
    thread: tuple[str, str]


_NAMELESS = RowNames(("", ""), _NOWHERE)


def read_row_names(raw: Any) -> RowNames:
    """Give what a message names.

    >>> read_row_names({"user": "ann", "session": "s1"})
    RowNames(user=('ann', ''), thread=('s1', ''))
    """
    named_objects = _find_named(raw)
    if not named_objects:
        return _NAMELESS
    user = _read_first(named_objects, "user"), _read_first(named_objects, "tenant")
    return RowNames(user, _find_thread(named_objects))


class RowPlaces:
    """The scope and the session of each message of a file, by what the messages before it said.

    Two tenants' users of one name have two scopes, and two flows' sessions of one name are two. An
    answer that names no user, or one that asks nothing, is of who asked before it in its
    conversation.
    """

    def __init__(self) -> None:
        self.asking: dict[tuple[str, str], dict[str, None]] = {}
        self.last: dict[tuple[str, str], str] = {}
        self.users: dict[str, str] = {}
        self.sessions: dict[str, str] = {}

    def begin_file(self) -> None:
        """Forget who spoke where no conversation is named: in another file that is another one."""
        self.asking.pop(_NOWHERE, None)
        self.last.pop(_NOWHERE, None)

    def learn(self, names: RowNames) -> None:
        """Take up who asks in which conversation, of a message that a person says."""
        user = _name_within(names.user, self.users)
        if user:
            self.asking.setdefault(names.thread, {})[user] = None

    def asks(self, names: RowNames) -> bool:
        """Say whether the user of a message is one of those who ask in its conversation."""
        return _name_within(names.user, self.users) in self.asking.get(names.thread, {})

    def place(self, names: RowNames, *, asks: bool) -> tuple[str, str]:
        """Give the scope and the session of a message, empty where nothing names them."""
        thread = names.thread
        user = _name_within(names.user, self.users)
        speakers = self.asking.get(thread, {})
        if not user or (not asks and speakers and user not in speakers):
            candidates = (self.last.get(thread), *speakers, user)
            user = next(filter(None, candidates), "")
        self.last[thread] = user
        return user, _name_within(thread, self.sessions)


def _name_within(name_and_around: tuple[str, str], names: dict[str, str]) -> str:
    """Give a name, with what is around it behind it where another has the name.

    Without a name, give what is around it.
    """
    wanted_name, name_around = name_and_around
    if not wanted_name:
        return name_around
    if names.setdefault(wanted_name, name_around) == name_around or not name_around:
        return wanted_name
    return f"{wanted_name} ({name_around})"
