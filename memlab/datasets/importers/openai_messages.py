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

from memlab.datasets.importers.agent_framework_messages import (
    head_holds_framework_message,
    rewrite_messages_in_common_layout,
)
from memlab.datasets.importers.batch_requests import (
    Batch,
    RequestBatches,
    ScopeAndSession,
    read_custom_id_or_key_or_empty,
)
from memlab.datasets.importers.export_messages import (
    OWNER_SCOPE,
    Message,
    MessageFields,
    find_session_of_same_messages_or_empty,
    make_session_messages_and_count_drops,
    name_conversation_by_place,
    read_message_fields_and_count_drops,
    read_role_and_name_and_count_guess,
    session_name_by_file_name,
)
from memlab.datasets.importers.logged_model_calls import (
    KnownConversations,
    ModelCall,
    SessionAndRepeats,
    count_overlapping_messages,
    find_model_call,
    with_decoded_request_and_answer,
)
from memlab.datasets.importers.loose_json import (
    JsonValue,
    RawTime,
    decode_if_json_text,
    first_field_text,
    first_possible_time,
    get_nested,
)
from memlab.datasets.importers.message_branches import contains_parent_key, find_shown_branch
from memlab.datasets.importers.newest_first_lists import TimeOrder, measure_time_order
from memlab.datasets.importers.session_records import NamedSession, SessionsByOwnId
from memlab.datasets.importers.transcripts_in_text import BEGINS, replace_transcripts_by_messages
from memlab.datasets.importers.unknown_message_layouts import (
    SPEAKERS,
    comparable_version_text_or_empty,
    find_key_where_ids_restart,
    find_message_time,
    normalise_known_column_names,
    with_known_columns_normalised,
)
from memlab.datasets.importers.user_and_thread_fields import (
    NameAndContainer,
    SessionFinder,
    UserAndThread,
    find_and_note_outer_conversation_key_or_empty,
    read_thread_and_container,
    read_user_and_tenant,
    read_user_and_thread,
    read_user_and_thread_within,
)
from memlab.datasets.importers.wrapped_conversations import (
    NestedConversation,
    find_nested_conversations,
)
from memlab.datasets.record_fields import Report, resolve_time_to_utc
from memlab.datasets.record_sources import Source
from memlab.datasets.time_keys import find_time_under_other_key
from memlab.datasets.unread_texts import count_unread_texts, join_all_texts_within

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


def is_openai_messages_file(file: Source) -> bool:
    columns = normalise_known_column_names(file.columns)
    keys = file.keys or columns
    if keys & {"agents", "run_type", "scope"}:
        return False
    first_keys = normalise_known_column_names(file.first_keys)
    if (
        "messages" in columns
        or _are_keys_of_message_row(first_keys)
        or _are_keys_of_tree_message(first_keys)
    ):
        return True
    if {"input", "output"} <= file.first_keys:
        return True
    if not keys.isdisjoint(_CALLS):
        return True
    if any(map(keys.issuperset, _PAIRS)):
        return True
    if not columns and (head_holds_framework_message(file) or BEGINS.search(file.head)):
        return True
    return _LANGCHAIN.search(file.head) is not None and not keys.isdisjoint(_OF_LANGCHAIN)


def _are_keys_of_message_row(record_keys: set[str]) -> bool:
    """Say whether a record with these keys, or a row of a table, says who wrote what."""
    if "text" in record_keys and not record_keys.isdisjoint({"speaker", "author", "from"}):
        return True
    if record_keys.isdisjoint(SPEAKERS):
        return False
    return not record_keys.isdisjoint(_TEXTS_OF_ROWS)


def _are_keys_of_tree_message(record_keys: set[str]) -> bool:
    """Say whether a record is a message with a text that names the message before it."""
    if "text" not in record_keys or record_keys.isdisjoint(SPEAKERS):
        return False
    return contains_parent_key(record_keys)


def read_openai_messages(source: Source) -> Iterator[Message]:
    """Read every conversation as a session; single messages are one, or those that they name."""
    reader = ConversationReader(source)
    for file in source.members:
        message_rows = list[Any]()
        session_fields = dict[str, Any]()
        for number, record in _read_numbered_records_in_common_layout(source, file):
            message = _unwrap_single_message_or_none(record)
            wrapped_conversations = list[NestedConversation]()
            if isinstance(message, dict) and SPEAKERS.isdisjoint(message):
                wrapped_conversations = find_nested_conversations(record)
            if wrapped_conversations:
                yield from reader.read_nested_conversations(file, record, wrapped_conversations)
            elif message is not None:
                message_rows.append(message)
            elif first_field_text(record, "type") == "session":
                session_fields = record
            else:
                yield from reader.read_record_or_hold_answer(file, number, record)
        if message_rows:
            yield from reader.read_message_rows(file, session_fields, message_rows)
    yield from reader.read_answers_waiting_for_request()


def _read_numbered_records_in_common_layout(
    source: Source, file: Source
) -> Iterator[tuple[int, JsonValue]]:
    """Give the records of a file, with their numbers, in the layout that others share."""
    is_table = bool(file.columns)
    is_rewritten = not is_table and head_holds_framework_message(file)
    for number, record in file.values():
        records = [record]
        if is_table:
            records = [with_known_columns_normalised(record)]
        elif is_rewritten:
            records = rewrite_messages_in_common_layout(source, record)
        for rewritten_record in records:
            yield (
                number,
                replace_transcripts_by_messages(with_decoded_request_and_answer(rewritten_record)),
            )


def _unwrap_single_message_or_none(raw_record: JsonValue) -> JsonValue:
    """Give a record that is one message, out of the line around it; ``None`` for any other."""
    inner_message = decode_if_json_text(get_nested(raw_record, "message"))
    is_around = isinstance(inner_message, dict) and _OF_MESSAGES.isdisjoint(raw_record)
    if is_around and not _KINDS.isdisjoint(inner_message):
        outer_fields = dict(raw_record)
        del outer_fields["message"]
        return outer_fields | inner_message
    if isinstance(raw_record, list) or first_field_text(raw_record, "type") == "session":
        return None
    if find_model_call(raw_record) is not None:
        return None
    return raw_record


class ConversationReader:
    """What is known of the files read so far.

    That is whose the messages are, and which conversations stand in them.

    :param spoken: the sessions that several records name.
    :param numbers: how many conversations each file has had that stand within objects.
    :param waiting: answers that a file holds without their requests, which another file may hold.
    """

    def __init__(self, source: Source) -> None:
        self.source = source
        self.places = SessionFinder()
        self.histories = KnownConversations()
        self.spoken: dict[ScopeAndSession, NamedSession] = {}
        self.own_sessions = SessionsByOwnId()
        self.batches = RequestBatches()
        self.waiting: list[tuple[Source, int, JsonValue, ModelCall, Batch]] = []
        self.files = session_name_by_file_name(source)
        self.numbers = Counter[str]()
        self.newest = _newest_version_by_copy_key(source)

    def read_record_or_hold_answer(
        self, file: Source, record_number: int, raw_record: JsonValue
    ) -> Iterator[Message]:
        """Read a record: a list of messages, a conversation, or a logged call."""
        copy_key, version = _copy_key_and_version_or_empty(raw_record)
        if version < self.newest.get(copy_key, version):
            self.source.drop(
                "older versions of conversations", self.find_scope_of_record_or_owner(raw_record)
            )
            return
        call = find_model_call(raw_record)
        if isinstance(raw_record, list):
            call = ModelCall(raw_record, [], 0, 0)
        custom_id = read_custom_id_or_key_or_empty(raw_record)
        if call is None:
            self.source.drop("unreadable messages", OWNER_SCOPE)
        elif call.asked is None and custom_id:
            answers = self.batches.add_answer_to_batch(file.name, custom_id)
            self.waiting.append((file, record_number, raw_record, call, answers))
        elif call.answers:
            yield from self.read_model_call(file, record_number, raw_record, call)
        else:
            self.source.drop(
                "system messages", self.find_scope_of_record_or_owner(raw_record), call.system
            )
            self.source.drop(
                "other answers", self.find_scope_of_record_or_owner(raw_record), call.others
            )
            session = self.own_or_made_up_session_name(file, record_number, raw_record)
            place = yield from self.read_conversation(
                file, raw_record, call.request_messages, session
            )
            if custom_id:
                self.batches.add_request_to_batch(file.name, custom_id, place)
            self.count_unread_texts_beside_call(raw_record, call)

    def read_nested_conversations(
        self, file: Source, raw_record: JsonValue, conversations: list[NestedConversation]
    ) -> Iterator[Message]:
        """Read the conversations within an object, and count the texts beside them."""
        for conversation in conversations:
            self.numbers[file.name] += 1
            yield from self.read_record_or_hold_answer(
                file, self.numbers[file.name], conversation.record
            )
        read_paths = {conversation.path for conversation in conversations}
        joined_texts = join_all_texts_within(
            [conversation.record["messages"] for conversation in conversations]
        )
        count_unread_texts(
            self.source, OWNER_SCOPE, raw_record, read_paths, joined_texts, is_around_messages=True
        )

    def count_unread_texts_beside_call(self, raw_record: JsonValue, call: ModelCall) -> None:
        """Count the texts that stand beside a request and its answer."""
        if isinstance(raw_record, dict):
            joined_texts = join_all_texts_within(
                [call.asked, call.answers, str(_written_time_of_conversation(raw_record))]
            )
            scope = self.find_scope_of_record_or_owner(raw_record)
            count_unread_texts(
                self.source, scope, raw_record, call.read, joined_texts, is_around_messages=True
            )

    def read_answers_waiting_for_request(self) -> Iterator[Message]:
        """Read the answers whose requests stand in another file, or nowhere."""
        for file, number, record, call, answers in self.waiting:
            session_place = self.batches.take_scope_and_session_of_request(
                read_custom_id_or_key_or_empty(record), answers
            )
            yield from self.read_model_call(file, number, record, call, request_place=session_place)

    def find_scope_of_record_or_owner(
        self, raw_record: JsonValue, raw_messages: Iterable[JsonValue] = ()
    ) -> str:
        """Give the scope of the user that a conversation names.

        Else it is that of the answer that the conversation goes on from.

        :param raw_messages: its messages: else the first of them that names a user says whose it
            is.
        """
        scope = self.find_scope_of_named_user_or_empty(
            [raw_record, *_list_possible_requests(raw_record)]
        )
        if not scope:
            scope = self.histories.scope_of_previous_answer_or_empty(raw_record)
        if not scope:
            scope = self.find_scope_of_named_user_or_empty(raw_messages)
        if not scope:
            scope = OWNER_SCOPE
        return scope

    def find_scope_of_named_user_or_empty(self, raw_records: Iterable[JsonValue]) -> str:
        """Give the scope of the user that one of some records names; empty where none does."""
        for raw_record in raw_records:
            if any(read_user_and_tenant(raw_record)):
                return self.places.find_and_remember_scope_and_session(
                    read_user_and_thread(raw_record), is_asking=True
                )[0]
        return ""

    def own_or_made_up_session_name(
        self, file: Source, record_number: int, raw_record: JsonValue
    ) -> str:
        """Name a conversation as it does itself, else by its place."""
        session, _ = _find_named_thread_or_empty(raw_record)
        if not session:
            session = _read_own_id_or_empty(raw_record)
        if not session:
            session = name_conversation_by_place(self.source, file, record_number)
        return session

    def read_conversation(
        self, file: Source, raw_record: JsonValue, raw_messages: list[JsonValue], session: str
    ) -> Generator[Message, None, ScopeAndSession]:
        """Read the messages of a conversation.

        Those that name conversations of their own are several.

        :returns: the scope and the session of the conversation.
        """
        message_by_thread = dict[NameAndContainer, Any]()
        for message in raw_messages:
            thread = read_thread_and_container(message)
            if any(thread):
                message_by_thread.setdefault(thread, message)
        if len(message_by_thread) > 1:
            yield from self.read_message_rows(file, raw_record, raw_messages, session)
            return ScopeAndSession(self.find_scope_of_record_or_owner(raw_record), session)
        if not self.names_its_conversation(raw_record):
            for message in message_by_thread.values():
                session = self.places.find_and_remember_scope_and_session(
                    read_user_and_thread(message), is_asking=True
                )[1]
        scope = self.find_scope_of_record_or_owner(raw_record, raw_messages)
        messages = self.read_shown_branch_and_count_others(scope, file, raw_record, raw_messages)
        n_repeated = 0
        if _read_own_id_or_empty(raw_record) == session and not any(
            _find_named_thread_or_empty(raw_record)
        ):
            session, n_repeated = self.find_or_begin_session_by_own_id(
                scope, raw_record, session, messages
            )
        yield from self.make_new_messages_and_count_repeated(
            scope, session, raw_record, messages[n_repeated:]
        )
        return ScopeAndSession(scope, session)

    def names_its_conversation(self, raw_record: JsonValue) -> bool:
        """Say whether a conversation has a name of its own."""
        return any([*_find_named_thread_or_empty(raw_record), _read_own_id_or_empty(raw_record)])

    def find_or_begin_session_by_own_id(
        self, scope: str, raw_record: JsonValue, own_id: str, messages: list[MessageFields]
    ) -> SessionAndRepeats:
        """Give the session of a conversation by its id, and how much of it was read already.

        A request of a batch is one of its own: the ids begin anew in each batch.
        """
        if read_custom_id_or_key_or_empty(raw_record):
            own_session = self.own_sessions.begin_session_with_unique_name(scope, own_id, messages)
            return SessionAndRepeats(own_session, 0)
        known_session = find_session_of_same_messages_or_empty(self.source, scope, messages)
        if self.own_sessions.was_begun_with_own_id(scope, known_session, own_id):
            return SessionAndRepeats(known_session, 0)  # which are dropped one by one
        return self.own_sessions.find_continued_or_begin_session(scope, own_id, messages)

    def read_message_rows(
        self,
        file: Source,
        outer_record: JsonValue,
        raw_messages: list[JsonValue],
        default_session: str = "",
    ) -> Iterator[Message]:
        """Read messages that each may name their user and their conversation.

        Those of a file that name none are one conversation.
        """
        # What is counted here is counted again when they are read.
        silent_source = Source(self.source.path, people=self.source.people)
        self.places.forget_speakers_of_unnamed_thread()
        row_names = list(map(read_user_and_thread, raw_messages))
        row_names = self.name_threads_and_note_where_ids_restart(raw_messages, row_names)
        learned_names = set[UserAndThread]()
        for message, names in zip(raw_messages, row_names, strict=True):
            # Who is known to ask is not looked at again: to read a role takes long.
            if names in learned_names or not isinstance(message, dict) or not any(names.user):
                continue
            if (
                read_role_and_name_and_count_guess(silent_source, "", message, message)[0]
                != "assistant"
            ):
                self.places.remember_asking_user(names)
                learned_names.add(names)
        for (user, named_session), session_rows in self.group_messages_by_scope_and_session(
            raw_messages, row_names
        ).items():
            scope = user
            if not scope:
                scope = self.find_scope_of_record_or_owner(outer_record)
            possible_names = (
                named_session,
                default_session,
                _read_own_id_or_empty(outer_record),
                self.files[file.name],
            )
            session_name = next(filter(None, possible_names))
            messages = self.read_shown_branch_and_count_others(
                scope, file, outer_record, session_rows
            )
            yield from make_session_messages_and_count_drops(
                self.source, scope, session_name, messages
            )

    def name_threads_and_note_where_ids_restart(
        self, raw_messages: list[JsonValue], users_and_threads: list[UserAndThread]
    ) -> list[UserAndThread]:
        """Give each message the conversation within which its id counts, where none names one.

        Where ids begin anew, another id tells the conversations apart.
        """
        if any(any(names.thread) for names in users_and_threads):
            outer_key = find_and_note_outer_conversation_key_or_empty(self.source, raw_messages)
            if not outer_key:
                return users_and_threads
            return [read_user_and_thread_within(message, outer_key) for message in raw_messages]
        dividing_key = find_key_where_ids_restart(raw_messages)
        if not dividing_key:
            return users_and_threads
        self.source.note(
            "export",
            f"ids that begin anew with each {dividing_key!r}",
            "each is read as a conversation",
        )
        divided_names = list[UserAndThread]()
        for message, names in zip(raw_messages, users_and_threads, strict=True):
            divided_names.append(
                names._replace(thread=NameAndContainer(first_field_text(message, dividing_key), ""))
            )
        return divided_names

    def group_messages_by_scope_and_session(
        self, raw_messages: list[JsonValue], users_and_threads: list[UserAndThread]
    ) -> dict[ScopeAndSession, list[JsonValue]]:
        """Group messages by scope and session, in the order in which these appear."""
        rows_by_place: dict[ScopeAndSession, list[Any]] = {}
        for message, names in zip(raw_messages, users_and_threads, strict=True):
            place = self.places.find_and_remember_scope_and_session(
                names, is_asking=self.places.is_asking_user(names)
            )
            rows_by_place.setdefault(place, []).append(message)
        return rows_by_place

    def read_shown_branch_and_count_others(
        self, scope: str, file: Source, outer_record: JsonValue, raw_messages: list[JsonValue]
    ) -> list[MessageFields]:
        """Give the messages of the branch that is shown, the oldest first."""
        current_id = first_field_text(outer_record, *_CURRENT)
        found_branch = find_shown_branch(raw_messages, current_id)
        if found_branch is not None:
            left_messages = list(
                read_message_fields_and_count_drops(
                    Source(file.path), scope, found_branch.other_messages
                )
            )
            self.source.drop("messages of other branches", scope, len(left_messages))
            self.source.drop("repeated messages", scope, found_branch.n_older_versions)
            raw_messages = found_branch.messages
        else:
            raw_messages = _reverse_if_newest_first_and_note_doubt(self.source, file, raw_messages)
        return list(read_message_fields_and_count_drops(self.source, scope, raw_messages))

    def make_new_messages_and_count_repeated(
        self, scope: str, session: str, raw_record: JsonValue, messages: list[MessageFields]
    ) -> Iterator[Message]:
        """Give the messages of a session, but for those of a record before that named it too."""
        created_at = _written_time_of_conversation(raw_record)
        thread = _find_named_thread_or_empty(raw_record)
        if any(thread):
            session_mark: Any = _read_own_id_or_empty(raw_record)
            if session_mark in ("", thread.name):
                session_mark = created_at
            session_key = ScopeAndSession(scope, session)
            named_session = self.spoken.setdefault(session_key, NamedSession())
            n_repeated, n_counted = named_session.add_record_and_count_repeated(
                messages, session_mark
            )
            self.source.drop("repeated messages", scope, n_counted)
            messages = messages[n_repeated:]
        yield from make_session_messages_and_count_drops(
            self.source, scope, session, messages, created_at
        )

    def read_model_call(
        self,
        file: Source,
        record_number: int,
        raw_record: JsonValue,
        call: ModelCall,
        *,
        request_place: ScopeAndSession | None = None,
    ) -> Iterator[Message]:
        """Read a request and its answer; a call that repeats a conversation goes on in it.

        :param request_place: where the request is stored of an answer that stands apart from it.
        """
        scope = self.find_scope_of_record_or_owner(raw_record, call.request_messages)
        if request_place is not None:
            scope = request_place.scope
        self.count_unread_texts_beside_call(raw_record, call)
        self.source.drop("system messages", scope, call.system)
        self.source.drop("other answers", scope, call.others)
        messages = self.read_shown_branch_and_count_others(
            scope, file, raw_record, call.request_messages
        )
        n_asked = len(messages)
        for answer in call.answers:
            answer_messages = list(read_message_fields_and_count_drops(self.source, scope, answer))
            answer_messages = answer_messages[
                count_overlapping_messages(messages, answer_messages) :
            ]
            earlier_texts = {message["text"].strip() for message in messages[n_asked:]}
            for message in answer_messages:
                if message["text"].strip() not in earlier_texts:
                    messages.append(message)
        session, n_repeated = self.histories.find_continued_session_or_empty(
            scope, raw_record, messages[:n_asked]
        )
        if request_place is not None:
            session = request_place.session
        elif any(_find_named_thread_or_empty(raw_record)) or not session:
            session = self.own_or_made_up_session_name(file, record_number, raw_record)
            n_repeated = 0
            if not any(_find_named_thread_or_empty(raw_record)):
                session, n_repeated = self.find_or_begin_session_by_own_id(
                    scope, raw_record, session, messages
                )
        self.histories.remember_call_and_its_messages(scope, raw_record, session, messages)
        yield from self.make_new_messages_and_count_repeated(
            scope, session, raw_record, messages[n_repeated:]
        )


def _newest_version_by_copy_key(source: Source) -> dict[tuple[str, ...], str]:
    """Give the newest version of each conversation that says when it was changed.

    Only of several files, and of lines, is one conversation given more than once.
    """
    newest_by_copy = dict[tuple[str, ...], str]()
    for file in source.members:
        if _CHANGED.isdisjoint(file.keys):
            continue
        for _, record in replace(file, report=Report()).values():
            copy_key, version = _copy_key_and_version_or_empty(record)
            newest_by_copy[copy_key] = max(version, newest_by_copy.get(copy_key, version))
    return newest_by_copy


def _copy_key_and_version_or_empty(raw_conversation: JsonValue) -> tuple[tuple[str, ...], str]:
    """Give what copies of a conversation share, and which version this one is; empty without one.

    They share their id, their user and their first message: ids may begin anew in another file.
    """
    version = comparable_version_text_or_empty(raw_conversation)
    if not version or not isinstance(raw_conversation.get("messages"), list):
        return (), ""
    beginning = join_all_texts_within(raw_conversation["messages"][:1])
    return (
        _read_own_id_or_empty(raw_conversation),
        *read_user_and_tenant(raw_conversation),
        beginning,
    ), version


def _written_time_of_conversation(raw_conversation: JsonValue) -> RawTime | None:
    """Give the time of a conversation as it is written; ``None`` without one."""
    created_at = first_possible_time(*map(partial(get_nested, raw_conversation), _MADE))
    if created_at is None and isinstance(raw_conversation, dict):
        created_at = find_time_under_other_key(raw_conversation)
    return created_at


def _find_named_thread_or_empty(raw_record: JsonValue) -> NameAndContainer:
    """Give the conversation that a record names, or the request in it, and what that is part of."""
    thread = read_thread_and_container(raw_record)
    if any(thread):
        return thread
    for request in _list_possible_requests(raw_record):
        if not isinstance(request, dict) or _LISTS.isdisjoint(request):
            continue
        thread = read_thread_and_container(request)
        if any(thread):
            return thread
    return NameAndContainer("", "")


def _list_possible_requests(raw_record: JsonValue) -> list[JsonValue]:
    """List what may hold the request of a record."""
    if not isinstance(raw_record, dict):
        return []
    return list(map(partial(get_nested, raw_record), _REQUESTS))


def _read_own_id_or_empty(raw_record: JsonValue) -> str:
    """Give the id by which a conversation or a call names itself; empty without one."""
    return read_custom_id_or_key_or_empty(raw_record) or first_field_text(raw_record, *_SESSION)


def _reverse_if_newest_first_and_note_doubt(
    source: Source, file: Source, raw_messages: list[JsonValue]
) -> list[JsonValue]:
    """Give messages in the order in which they were said, where the newest stands first."""
    time_order = measure_time_order(raw_messages, partial(_parse_message_time_in_utc, source))
    falls = time_order.fall > timedelta()
    if not falls and not file.is_api_page:
        return raw_messages
    silent_source = Source(file.path)
    messages = [message for message in raw_messages if isinstance(message, dict)]
    roles = [
        read_role_and_name_and_count_guess(silent_source, "", message, message)[0]
        for message in messages
    ]
    if falls and (file.is_api_page or _is_surely_newest_first(time_order, roles)):
        return raw_messages[::-1]
    if time_order.fall or len(roles) < 2:
        return raw_messages
    list_text = "a list of an API without times"
    if time_order.known:
        list_text = "a list of an API whose times do not say in which order"
    if roles[0] != "assistant" and roles[-1] == "assistant":
        source.note("export", list_text, "read as one with the oldest first")
        return raw_messages
    source.note("export", list_text, "read as one with the newest first")
    return raw_messages[::-1]


def _parse_message_time_in_utc(source: Source, raw_message: JsonValue) -> datetime | None:
    """Give the time of a message in UTC; ``None`` without one."""
    written_time = find_message_time(raw_message)
    if written_time is None:
        return None
    return resolve_time_to_utc(source.parse_time(written_time, "timestamp"), source.tz or UTC, None)


def _is_surely_newest_first(time_order: TimeOrder, roles: list[str | None]) -> bool:
    """Say whether times that fall are more than the work of a clock that steps back.

    Each has a time that is no later than the one before it, or they fall by a day. Of two messages
    the second may be an answer that has another clock.
    """
    always_falls = time_order.known == len(roles) and not time_order.forth
    if len(roles) > 2:
        return always_falls or (time_order.is_newest_first and time_order.fall >= _DAY)
    return always_falls and roles[:1] == ["assistant"] and roles[-1:] != ["assistant"]
