"""Whose a message is and of which conversation, where each message of a file says it itself."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

from memlab.datasets.importers.loose_json import first_field, first_text, list_with_metadata

_USER = (
    *("userid", "user", "ownerid", "accountid", "customerid", "username"),
    *("enduserid", "enduser", "fromenduserid", "requestuserid"),
)
_TENANT = ("tenant", "tenantid", "organizationid", "organisationid", "orgid")
_THREADS = (
    *("sessionid", "threadid", "conversationid", "chatid", "convid", "conversationhash"),
    *("dialogueid", "dialogid", "sessionuuid", "threaduuid", "conversationuuid", "chatuuid"),
    *("roomid", "ticketid", "caseid", "session", "thread", "conversation", "chat", "dialogue"),
    *("room", "ticket", "topicid", "messagetreeid", "heliconesessionid"),
)
_AROUND = ("flowid", "appid", "projectid", "workspaceid")
"""Within which a session has its name: another flow may have one of the same name."""
_NOWHERE = ("", "")
"""The conversation of messages that name none."""


@lru_cache(1 << 12)
def _find_keys(there: tuple[str, ...], wanted: tuple[str, ...]) -> tuple[str, ...]:
    """Give the keys of a record that are wanted, however it writes them.

    ``User ID`` and ``userId`` are one.
    """
    by_plain_key = {re.sub(r"[\s_.-]", "", key).lower(): key for key in there}
    return tuple(by_plain_key[plain_key] for plain_key in wanted if plain_key in by_plain_key)


def _read_first(raw: Any, wanted: tuple[str, ...]) -> str:
    """Give the first of some keys in a record or in what it says about itself.

    It is empty without one.
    """
    for about in list_with_metadata(raw):
        for key in _find_keys(tuple(about), wanted):
            called = about[key]
            if isinstance(called, dict):  # an object with its id
                called = first_field(called, "id", "_id", "uuid", "name")
            called = first_text(called)
            if called:
                return called
    return ""


def read_user(raw: Any) -> tuple[str, str]:
    """Give the user that a message or a conversation names, and the tenant.

    Each is empty where it names none.

    >>> read_user({"User ID": 7, "text": "Hello"}), read_user({"metadata": {"userId": "ann"}})
    (('7', ''), ('ann', ''))
    """
    return _read_first(raw, _USER), _read_first(raw, _TENANT)


def read_thread(raw: Any) -> tuple[str, str]:
    """Give the conversation that a message names, and what it is part of.

    Each is empty where it names none. A topic within a session is a conversation of its own.
    """
    thread = _read_first(raw, _THREADS)
    if not thread:
        return "", ""
    around = _read_first(raw, _AROUND)
    topic = _read_first(raw, ("topicid",))
    if topic != thread:
        around = " ".join(filter(None, (around, topic)))
    return thread, around


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

    def learn(self, raw: Any) -> None:
        """Take up who asks in which conversation, of a message that a person says."""
        user = _name_within(read_user(raw), self.users)
        if user:
            self.asking.setdefault(read_thread(raw), {})[user] = None

    def asks(self, raw: Any) -> bool:
        """Say whether the user of a message is one of those who ask in its conversation."""
        return _name_within(read_user(raw), self.users) in self.asking.get(read_thread(raw), {})

    def place(self, raw: Any, *, asks: bool) -> tuple[str, str]:
        """Give the scope and the session of a message, empty where nothing names them."""
        thread = read_thread(raw)
        user = _name_within(read_user(raw), self.users)
        speakers = self.asking.get(thread, {})
        if not user or (not asks and speakers and user not in speakers):
            candidates = (self.last.get(thread), *speakers, user)
            user = next(filter(None, candidates), "")
        self.last[thread] = user
        return user, _name_within(thread, self.sessions)


def _name_within(called_and_around: tuple[str, str], names: dict[str, str]) -> str:
    """Give a name, with what is around it behind it where another has the name.

    Without a name, give what is around it.
    """
    called, around = called_and_around
    if not called:
        return around
    if names.setdefault(called, around) == around or not around:
        return called
    return f"{called} ({around})"
