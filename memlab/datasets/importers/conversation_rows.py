"""Whose a message is and of which conversation, where each message of a file says it itself."""

from __future__ import annotations

from typing import Any

from memlab.datasets.importers.loose_json import first_field

_USER = ("user_id", "userId", "user", "user.id", "owner_id", "metadata.user_id", "account_id")
_TENANT = ("tenant", "tenant_id", "tenantId", "organization_id", "org_id")
_THREADS = (
    *("session_id", "sessionId", "thread_id", "threadId", "conversation_id", "conversationId"),
    *("chat_id", "chatId", "convId", "conv_id", "conversation_hash", "dialogue_id", "dialog_id"),
    *("metadata.session_id", "metadata.thread_id", "metadata.conversation_id"),
    *("session", "thread", "conversation", "session.id", "thread.id", "conversation.id"),
)
_AROUND = ("flow_id", "flowId", "app_id", "appId", "project_id", "projectId", "workspace_id")
"""Within which a session has its name: another flow may have one of the same name."""
_NOWHERE = ("", "")
"""The conversation of messages that name none."""


def read_user(raw: Any) -> tuple[str, str]:
    """Give the user that a message or a conversation names, and the tenant; empty where it names none."""
    return first_field(raw, *_USER), first_field(raw, *_TENANT)


def read_thread(raw: Any) -> tuple[str, str]:
    """Give the conversation that a message names, and what it is part of; empty where it names none."""
    thread = first_field(raw, *_THREADS)
    return thread, first_field(raw, *_AROUND) if thread else ""


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
        people = self.asking.get(thread, {})
        if not user or (not asks and people and user not in people):
            user = self.last.get(thread) or next(iter(people), user)
        self.last[thread] = user
        return user, _name_within(thread, self.sessions)


def _name_within(called_and_around: tuple[str, str], names: dict[str, str]) -> str:
    """Give a name, with what is around it behind it where another has the name; without a name, what is around it."""
    called, around = called_and_around
    if not called:
        return around
    if names.setdefault(called, around) == around or not around:
        return called
    return f"{called} ({around})"
