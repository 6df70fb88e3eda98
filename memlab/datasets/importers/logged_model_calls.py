"""Calls of a model as logs and data sets for training hold them: what was asked and answered."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

from memlab.datasets.importers.export_messages import MessageFields
from memlab.datasets.importers.loose_json import (
    JsonObject,
    JsonValue,
    decode_if_json_text,
    first_field_text,
    first_filled_field,
    first_non_empty_text,
    get_nested,
    list_or_empty,
)
from memlab.datasets.importers.streamed_answers import join_answer_if_streamed
from memlab.datasets.importers.unknown_message_layouts import (
    list_stated_speaker_types,
    may_hold_words,
    read_role_from_flags_or_empty,
)

_WITHIN = (
    *("body", "request", "request.body", "params", "input", "inputs", "kwargs"),
    *("request_body", "requestBody", "input.inputBodyJson"),  # of Helicone and Bedrock
    "prompt",
)
_ASKED = (
    *("messages", "input", "contents", "chunkedPrompt.chunks", "prompt", "query"),
    *("user_message", "user_input", "user_query", "inputText", "inputs"),
)
_ANSWERED_WITHIN = (
    *("", "response", "response.body", "body", "result.message", "result", "response_body"),
    *("responseBody", "output", "outputs", "output.outputBodyJson"),
)
_WITHIN_OUTPUT = frozenset(("output", "outputs", "output.outputBodyJson"))
"""Where an answer is a message itself, unless it is one of several or has a key of its own."""
_OUTPUT = ("output", "completion", "content", "message", "output_text", "text")
_BARE = {"content": "role", "message": "messages"}
"""Keys that answer a request only beside messages and another key.

Else they are what a message says.
"""
_ANSWERED = (
    *("response", "chosen", "answer", "reply", "generation", "prediction", "generated_text"),
    *("assistant_response", "model_response", "model_output", "outputs", "responses"),
    *("completions", "generations", "answers", "predictions", "preferred_output"),
    *("bot_response", "ai_response", "bot_message", "ai_message", "assistant_message"),
    *("llm_response", "assistant_reply", "outputText"),
)
_CHOICES = {
    "choices": ("message", "text"),
    "candidates": ("content",),
    "results": ("outputText",),
    "generations": ("text",),
}
"""Where alternatives stand, and what says something in one.

The candidates are of Gemini's API, the results of Amazon's models, the generations of Cohere's.
"""
_UNTYPED = ("", "message", "text")
_SPEAKERS = frozenset(("role", "from", "sender", "author", "speaker", "kwargs", "data"))
_HALVES = frozenset(
    ("request", "response", "request_body", "response_body", "requestBody", "responseBody", "body")
)
_HISTORY = ("history", "chat_history", "chatHistory")
_OF_COHERE = frozenset((*_HISTORY, "generation_id"))
"""Beside one of these, ``message`` is what was asked and ``text`` what was answered."""
_AROUND_OUTPUT = ("outputBodyJson", "output", "message")
"""Keys of what Bedrock has around an answer, from the outside in."""
_AROUND_ANSWER = frozenset((*_CHOICES, *_ANSWERED))
_REJECTED = ("rejected", "non_preferred_output")
_SYSTEM = (*("system", "instructions", "system_prompt", "systemInstruction", "system_instruction"),)
_ANSWER_IDS = ("id", "response.id", "response.body.id")
_BEFORE = ("previous_response_id", "body.previous_response_id", "request.previous_response_id")


@dataclass
class ModelCall:
    """What went into a model and came out of it, as it is written.

    :param asked: the messages of the request, the history before it too; ``None`` without one.
    :param answers: the answers, which may repeat each other or the request.
    :param others: how many answers were rejected, or are alternatives of the first.
    :param system: how many instructions stand beside the messages.
    :param read: the dotted paths where all this stands.
    """

    asked: list[JsonValue] | None
    answers: list[list[JsonValue]]
    others: int
    system: int
    read: set[str] = field(default_factory=set)

    @property
    def request_messages(self) -> list[JsonValue]:
        """The messages of the request; none without one."""
        if self.asked is None:
            return []
        return self.asked


class _FoundAnswer(NamedTuple):
    """An answer in a record: its path, its messages, and how many alternatives it has."""

    path: str
    messages: list[JsonValue]
    n_alternatives: int


class _RequestHolder(NamedTuple):
    """An object that may hold a request; its path ends with a dot, or is empty."""

    path_prefix: str
    fields: JsonObject


class SessionAndRepeats(NamedTuple):
    """A session, and how many of the first messages of a list are there already."""

    session: str
    n_repeated: int


def with_decoded_request_and_answer(raw_record: JsonValue) -> JsonValue:
    """Give a record with its request and its answer decoded, where they are JSON texts.

    An answer that came in parts is joined.
    """
    if not isinstance(raw_record, dict) or _HALVES.isdisjoint(raw_record):
        return raw_record
    halves = {
        half_key: join_answer_if_streamed(decode_if_json_text(raw_record[half_key]))
        for half_key in _HALVES.intersection(raw_record)
    }
    for half in halves.values():
        if isinstance(half, dict) and "body" in half:
            half["body"] = join_answer_if_streamed(decode_if_json_text(half["body"]))
    return raw_record | halves


def find_model_call(raw_record: JsonValue) -> ModelCall | None:
    """Find the request and the answers in a record; ``None`` where it holds neither.

    A message alone holds neither.

    >>> reply = {"role": "assistant", "content": "Line 4."}
    >>> call = find_model_call({"input": "Which bus?", "output": [reply]})
    >>> call.asked, [answer[0]["content"] for answer in call.answers]
    ([{'role': 'user', 'content': 'Which bus?'}], ['Line 4.'])
    """
    if not isinstance(raw_record, dict) or _is_single_message(raw_record):
        return None
    paths_read = set(_REJECTED)
    asked_messages = _find_request_with_history_and_add_paths(raw_record, paths_read)
    answers = list[list[Any]]()
    n_others = sum(map(may_hold_words, map(raw_record.get, _REJECTED)))
    for answer in _find_answers(raw_record):
        paths_read.add(answer.path)
        answers.append(answer.messages)
        n_others += answer.n_alternatives
    if asked_messages is None and not answers:
        return None
    system_keys = list[str]()
    for holder_prefix, holder in _list_request_holders(raw_record):
        system_keys += [
            holder_prefix + system_key
            for system_key in _SYSTEM
            if may_hold_words(holder.get(system_key))
        ]
    return ModelCall(
        asked_messages, answers, n_others, len(system_keys), paths_read.union(system_keys)
    )


def _list_request_holders(raw_record: JsonObject) -> list[_RequestHolder]:
    """List the record and the objects in it that may hold a request.

    Each stands behind its path, which ends with a dot.
    """
    holders = [_RequestHolder("", raw_record)]
    for holder_path in _WITHIN:
        holder = get_nested(raw_record, holder_path)
        if isinstance(holder, dict):
            holders.append(_RequestHolder(f"{holder_path}.", holder))
    return holders


def _is_single_message(raw_record: JsonObject) -> bool:
    role = raw_record.get("role", raw_record.get("from", raw_record.get("sender")))
    return isinstance(role, str) and not isinstance(raw_record.get("messages"), list)


def _find_request_with_history_and_add_paths(
    raw_record: JsonObject, paths_read: set[str]
) -> list[JsonValue] | None:
    """Find what was asked; where it stands is added to ``paths_read``.

    What was said before a single text stands beside it, in pairs or messages.
    """
    asked_messages = _find_request_messages_and_add_path(raw_record, paths_read)
    if asked_messages is not None and len(asked_messages) > 1:
        return asked_messages
    for holder_prefix, holder in _list_request_holders(raw_record):
        if asked_messages is None and _is_cohere_request(holder_prefix, holder):
            paths_read.add(f"{holder_prefix}message")
            asked_messages = [{"role": "user", "content": holder["message"]}]
        for history_key in _HISTORY:
            history = _messages_of_history_or_empty(decode_if_json_text(holder.get(history_key)))
            if history and asked_messages is not None:
                paths_read.add(holder_prefix + history_key)
                return history + asked_messages
    return asked_messages


def _is_cohere_request(path_prefix: str, raw_object: JsonObject) -> bool:
    """Say whether an object asks by a message that is a text.

    Only in a record itself the object must say that it is a request.
    """
    if not _is_non_blank_string(raw_object.get("message")):
        return False
    return path_prefix != "" or not _OF_COHERE.isdisjoint(raw_object)


def _messages_of_history_or_empty(raw_history: JsonValue) -> list[JsonValue]:
    """Give the messages of a history, of which a pair is a question and its answer.

    :returns: none of anything else.
    """
    messages = list[Any]()
    for element in list_or_empty(raw_history):
        match element:
            case dict() if names_its_speaker(element):
                messages.append(element)
            case [str(question), str(answer)]:
                messages.append({"role": "user", "content": question})
                messages.append({"role": "assistant", "content": answer})
            case _:
                return []
    return messages


def _find_request_messages_and_add_path(
    raw_record: JsonObject, paths_read: set[str]
) -> list[JsonValue] | None:
    """Find the messages, or the text, of a request; their place is added to ``paths_read``."""
    instruction = raw_record.get("instruction")
    if isinstance(instruction, str):
        paths_read |= {"instruction", "input"}
        request_texts: list[Any] = [instruction, raw_record.get("input")]
        request = "\n".join(filter(_is_non_blank_string, request_texts))
        return [{"role": "user", "content": request}]
    for holder_prefix, holder in _list_request_holders(raw_record):
        for asked_key in _ASKED:
            asked_value = decode_if_json_text(get_nested(holder, asked_key))
            if isinstance(asked_value, list):
                paths_read.add(holder_prefix + asked_key)
                return [_as_message_of_role(message, "user") for message in asked_value]
            if _is_non_blank_string(asked_value):
                paths_read.add(holder_prefix + asked_key)
                return [{"role": "user", "content": asked_value}]
    return None


def _is_non_blank_string(json_value: JsonValue) -> bool:
    return isinstance(json_value, str) and json_value.strip() != ""


def _as_message_of_role(raw_value: JsonValue, role: str) -> JsonValue:
    """Give a text, or an object without a role, as a message of a role."""
    if isinstance(raw_value, str):
        return {"role": role, "content": raw_value}
    if not isinstance(raw_value, dict) or names_its_speaker(raw_value):
        return raw_value
    if first_field_text(raw_value, "type") in _UNTYPED:
        return {"role": role} | raw_value
    return raw_value


def names_its_speaker(raw_message: JsonObject) -> bool:
    """Say whether a message says itself who speaks, by whatever key."""
    if not _SPEAKERS.isdisjoint(raw_message):
        return True
    return any(
        [read_role_from_flags_or_empty(raw_message), *list_stated_speaker_types(raw_message)]
    )


def _find_answers(raw_record: JsonObject) -> Iterator[_FoundAnswer]:
    """Find the answers under every key that may hold one."""
    for holder_path in _ANSWERED_WITHIN:
        holder: Any = raw_record
        holder_prefix = ""
        if holder_path:
            holder = get_nested(raw_record, holder_path)
            holder_prefix = f"{holder_path}."
        if not isinstance(holder, dict):
            continue
        for answer_key, choice_paths in _CHOICES.items():
            choices = list_or_empty(decode_if_json_text(holder.get(answer_key)))
            choice = first_filled_field(next(iter(choices), None), *choice_paths)
            if may_hold_words(choice):
                yield _FoundAnswer(
                    holder_prefix + answer_key, _as_assistant_messages(choice), len(choices) - 1
                )
        if holder_path and "role" not in holder:
            for answer_key in _ANSWERED:
                if _is_non_blank_string(holder.get(answer_key)):
                    answer_messages = _as_assistant_messages(holder[answer_key])
                    yield _FoundAnswer(holder_prefix + answer_key, answer_messages, 0)
        if holder_path in _WITHIN_OUTPUT:
            continue
        for answer_key in _OUTPUT:
            output = decode_if_json_text(holder.get(answer_key))
            if may_hold_words(output) and _is_answer_to_request(
                raw_record, holder_path, answer_key, output
            ):
                output_path, output = _unwrap_bedrock_answer_and_give_path(output)
                opened_path = holder_prefix + answer_key + output_path
                if opened_path in _WITHIN_OUTPUT and _has_answer_keys(output):
                    continue  # which are found within it
                answer, alternatives = _first_answer_and_n_alternatives(
                    _anthropic_answer_as_message(holder, answer_key, output)
                )
                yield _FoundAnswer(opened_path, _as_assistant_messages(answer), alternatives)
    for answer_key in _ANSWERED:
        output = decode_if_json_text(raw_record.get(answer_key))
        if answer_key in _WITHIN_OUTPUT and _has_answer_keys(output):
            continue
        if may_hold_words(output) and not _is_wrapper_of_answer(output):
            answer, alternatives = _first_answer_and_n_alternatives(output)
            yield _FoundAnswer(answer_key, _as_assistant_messages(answer), alternatives)


def _is_answer_to_request(
    raw_record: JsonObject, holder_path: str, answer_key: str, answer_value: JsonValue
) -> bool:
    """Say whether what stands under a key answers a request.

    :param holder_path: the path of the object with the key; empty for the record itself, where
        texts are how an answer is written, or all messages once more.
    """
    if holder_path:
        return answer_key != "text" or isinstance(answer_value, str)
    if answer_key == "text":
        return _is_non_blank_string(answer_value) and _is_cohere_request(holder_path, raw_record)
    if answer_key not in _BARE:
        return True
    has_messages = isinstance(decode_if_json_text(raw_record.get("messages")), list)
    return has_messages and bool(raw_record.get(_BARE[answer_key]))


def _unwrap_bedrock_answer_and_give_path(answer_value: JsonValue) -> tuple[str, JsonValue]:
    """Give an answer out of the objects that Bedrock has around it, and its path in them."""
    opened_path = ""
    for around_key in _AROUND_OUTPUT:
        inner_output = get_nested(answer_value, around_key)
        if isinstance(inner_output, dict) and "role" not in answer_value:
            opened_path = f"{opened_path}.{around_key}"
            answer_value = inner_output
    return opened_path, answer_value


def _is_wrapper_of_answer(answer_value: JsonValue) -> bool:
    """Say whether an object is what an API gives around an answer, and no message."""
    if not isinstance(answer_value, dict):
        return False
    if _has_answer_keys(answer_value) or "output" in answer_value:
        return True
    if isinstance(answer_value.get("content"), list):
        return True
    return {"role", "content"}.isdisjoint(answer_value) and not isinstance(
        answer_value.get("text"), str
    )


def _has_answer_keys(answer_value: JsonValue) -> bool:
    """Say whether an object has answers under keys of their own, and is no message."""
    if not isinstance(answer_value, dict) or "role" in answer_value:
        return False
    return not _AROUND_ANSWER.isdisjoint(answer_value)


def _first_answer_and_n_alternatives(answer_value: JsonValue) -> tuple[JsonValue, int]:
    """Give the first of several texts that answer one request, and how many others there are."""
    if not isinstance(answer_value, list) or len(answer_value) < 2:
        return answer_value, 0
    if set(map(type, answer_value)) == {str}:
        return answer_value[0], len(answer_value) - 1
    return answer_value, 0


def _anthropic_answer_as_message(
    answer_holder: JsonObject, answer_key: str, answer_value: JsonValue
) -> JsonValue:
    """Give the content of an answer of Anthropic's API as a message; anything else as it is."""
    if answer_key != "content":
        return answer_value
    message = {
        **answer_holder,
        "role": first_non_empty_text(answer_holder.get("role"), "assistant"),
    }
    message.pop("messages", None)
    return message


def _as_assistant_messages(answer_value: JsonValue) -> list[JsonValue]:
    if not isinstance(answer_value, list):
        return [_as_message_of_role(answer_value, "assistant")]
    block_types = set[str]()
    for block in answer_value:
        if isinstance(block, dict) and "role" not in block:
            block_types.add(first_field_text(block, "type"))
    if block_types == {"text"}:
        return [{"role": "assistant", "content": answer_value}]
    return [_as_message_of_role(message, "assistant") for message in answer_value]


def read_previous_answer_id_or_empty(raw_call: JsonValue) -> str:
    """Give the id of the answer that a call goes on from; empty where it names none."""
    return first_field_text(raw_call, *_BEFORE)


def list_answer_ids(raw_call: JsonValue) -> list[str]:
    """List the ids of the answer of a call, by one of which later calls name it."""
    return list(filter(None, map(partial(first_field_text, raw_call), _ANSWER_IDS)))


def count_overlapping_messages(
    earlier_messages: list[MessageFields], new_messages: list[MessageFields]
) -> int:
    """Count the first messages of a list that a conversation so far ends with.

    Source: the prefix function of Knuth, Morris and Pratt (1977), linear in the length of the list.

    >>> one, two = ({"role": "user", "text": text} for text in ("Hi", "So?"))
    >>> count_overlapping_messages([one], [one, two])
    1
    """
    if not new_messages:
        return 0
    last_words = map(role_and_stripped_text_of, earlier_messages[-len(new_messages) :])
    joined_words = [*map(role_and_stripped_text_of, new_messages), None, *last_words]
    border_sizes = [0]
    for spoken_words in joined_words[1:]:
        overlap = border_sizes[-1]
        while overlap and joined_words[overlap] != spoken_words:
            overlap = border_sizes[overlap - 1]
        if joined_words[overlap] == spoken_words:
            overlap += 1
        border_sizes.append(overlap)
    return border_sizes[-1]


def role_and_stripped_text_of(message: MessageFields) -> tuple[str | None, str]:
    """Give who said what."""
    return message["role"], message["text"].strip()


def hash_message_prefixes(messages: list[MessageFields]) -> list[int]:
    """Give a digest of the first 0, 1, 2 … messages of a list, each made of the one before it."""
    digests = [0]
    for message in messages:
        digests.append(hash((digests[-1], role_and_stripped_text_of(message))))
    return digests


class KnownConversations:
    """The conversations of the calls so far, so that a call that repeats one goes on there.

    Two users may begin with the same words, and their answers may have the same numbers.
    """

    def __init__(self) -> None:
        self.by_answer: dict[tuple[str, str], str] = {}
        self.by_history: dict[tuple[str, int], str] = {}
        self.scopes: dict[str, str] = {}

    def scope_of_previous_answer_or_empty(self, raw_call: JsonValue) -> str:
        """Give the scope of the answer that a call goes on from; empty where it names none."""
        return self.scopes.get(read_previous_answer_id_or_empty(raw_call), "")

    def find_continued_session_or_empty(
        self, scope: str, raw_call: JsonValue, request_messages: list[MessageFields]
    ) -> SessionAndRepeats:
        """Give the session that a call goes on in, and how much of it is repeated.

        The session is empty for a call that begins one of its own. A call goes on where it names
        the answer before it, or begins with all that was asked and answered before in its scope,
        two messages or more.
        """
        digests = hash_message_prefixes(request_messages)
        for history_size in range(len(request_messages), 1, -1):
            session = self.by_history.get((scope, digests[history_size]))
            if session:
                return SessionAndRepeats(session, history_size)
        answered_session = self.by_answer.get(
            (scope, read_previous_answer_id_or_empty(raw_call)), ""
        )
        return SessionAndRepeats(answered_session, 0)

    def remember_call_and_its_messages(
        self, scope: str, raw_call: JsonValue, session: str, all_messages: list[MessageFields]
    ) -> None:
        """Take up a call with all that was said up to its answer."""
        for answer_id in list_answer_ids(raw_call):
            self.by_answer[scope, answer_id] = session
            self.scopes[answer_id] = scope
        if len(all_messages) > 1:
            self.by_history[scope, hash_message_prefixes(all_messages)[-1]] = session
