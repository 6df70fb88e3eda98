"""Calls of a model as logs and data sets for training hold them: what was asked and answered."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from memlab.datasets.importers.export_messages import Message
from memlab.datasets.importers.loose_json import (
    decode_json,
    first_field,
    first_filled,
    first_text,
    get_nested,
    list_or_empty,
)
from memlab.datasets.importers.streamed_answers import join_parts
from memlab.datasets.importers.unknown_message_layouts import (
    has_words,
    list_role_types,
    read_flagged_role,
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
class Call:
    """What went into a model and came out of it, as it is written.

    :param asked: the messages of the request, the history before it too; ``None`` without one.
    :param answers: the answers, which may repeat each other or the request.
    :param others: how many answers were rejected, or are alternatives of the first.
    :param system: how many instructions stand beside the messages.
    :param read: the dotted paths where all this stands.
    """

    asked: list[Any] | None
    answers: list[list[Any]]
    others: int
    system: int
    read: set[str] = field(default_factory=set)

    @property
    def history(self) -> list[Any]:
        """The messages of the request; none without one."""
        if self.asked is None:
            return []
        return self.asked


def decode_halves(raw: Any) -> Any:
    """Give a record with its request and its answer decoded, where they are JSON texts.

    An answer that came in parts is joined.
    """
    if not isinstance(raw, dict) or _HALVES.isdisjoint(raw):
        return raw
    halves = {
        half_key: join_parts(decode_json(raw[half_key])) for half_key in _HALVES.intersection(raw)
    }
    for half in halves.values():
        if isinstance(half, dict) and "body" in half:
            half["body"] = join_parts(decode_json(half["body"]))
    return raw | halves


def find_call(raw: Any) -> Call | None:
    """Find the request and the answers in a record; ``None`` where it holds neither.

    A message alone holds neither.

    >>> reply = {"role": "assistant", "content": "Line 4."}
    >>> call = find_call({"input": "Which bus?", "output": [reply]})
    >>> call.asked, [answer[0]["content"] for answer in call.answers]
    ([{'role': 'user', 'content': 'Which bus?'}], ['Line 4.'])
    """
    if not isinstance(raw, dict) or _is_message(raw):
        return None
    read_keys = set(_REJECTED)
    asked_messages = _find_request(raw, read_keys)
    answers = list[list[Any]]()
    n_others = sum(map(has_words, map(raw.get, _REJECTED)))
    for path, answer, alternatives in _find_answers(raw):
        read_keys.add(path)
        answers.append(answer)
        n_others += alternatives
    if asked_messages is None and not answers:
        return None
    system_keys = list[str]()
    for holder_prefix, holder in _list_holders(raw):
        system_keys += [
            holder_prefix + system_key
            for system_key in _SYSTEM
            if has_words(holder.get(system_key))
        ]
    return Call(asked_messages, answers, n_others, len(system_keys), read_keys.union(system_keys))


def _list_holders(raw: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """List the record and the objects in it that may hold a request.

    Each stands behind its path, which ends with a dot.
    """
    holders = [("", raw)]
    for holder_path in _WITHIN:
        holder = get_nested(raw, holder_path)
        if isinstance(holder, dict):
            holders.append((f"{holder_path}.", holder))
    return holders


def _is_message(raw: dict[str, Any]) -> bool:
    role = raw.get("role", raw.get("from", raw.get("sender")))
    return isinstance(role, str) and not isinstance(raw.get("messages"), list)


def _find_request(raw: dict[str, Any], read_keys: set[str]) -> list[Any] | None:
    """Find what was asked; where it stands is added to ``read_keys``.

    What was said before a single text stands beside it, in pairs or messages.
    """
    asked_messages = _find_asked(raw, read_keys)
    if asked_messages is not None and len(asked_messages) > 1:
        return asked_messages
    for holder_prefix, holder in _list_holders(raw):
        if asked_messages is None and _is_request_of_cohere(holder_prefix, holder):
            read_keys.add(f"{holder_prefix}message")
            asked_messages = [{"role": "user", "content": holder["message"]}]
        for history_key in _HISTORY:
            history = _read_history(decode_json(holder.get(history_key)))
            if history and asked_messages is not None:
                read_keys.add(holder_prefix + history_key)
                return history + asked_messages
    return asked_messages


def _is_request_of_cohere(holder_prefix: str, holder: dict[str, Any]) -> bool:
    """Say whether an object asks by a message that is a text.

    Only in a record itself the object must say that it is a request.
    """
    if not _is_filled_text(holder.get("message")):
        return False
    return holder_prefix != "" or not _OF_COHERE.isdisjoint(holder)


def _read_history(value: Any) -> list[Any]:
    """Give the messages of a history, of which a pair is a question and its answer.

    :returns: none of anything else.
    """
    messages = list[Any]()
    for element in list_or_empty(value):
        match element:
            case dict() if says_who(element):
                messages.append(element)
            case [str(question), str(answer)]:
                messages.append({"role": "user", "content": question})
                messages.append({"role": "assistant", "content": answer})
            case _:
                return []
    return messages


def _find_asked(raw: dict[str, Any], read_keys: set[str]) -> list[Any] | None:
    """Find the messages, or the text, of a request; where they stand is added to ``read_keys``."""
    instruction = raw.get("instruction")
    if isinstance(instruction, str):
        read_keys |= {"instruction", "input"}
        request_texts: list[Any] = [instruction, raw.get("input")]
        request = "\n".join(filter(_is_filled_text, request_texts))
        return [{"role": "user", "content": request}]
    for holder_prefix, holder in _list_holders(raw):
        for asked_key in _ASKED:
            asked_value = decode_json(get_nested(holder, asked_key))
            if isinstance(asked_value, list):
                read_keys.add(holder_prefix + asked_key)
                return [_as_message(message, "user") for message in asked_value]
            if _is_filled_text(asked_value):
                read_keys.add(holder_prefix + asked_key)
                return [{"role": "user", "content": asked_value}]
    return None


def _is_filled_text(value: Any) -> bool:
    return isinstance(value, str) and value.strip() != ""


def _as_message(value: Any, role: str) -> Any:
    """Give a text, or an object without a role, as a message of a role."""
    if isinstance(value, str):
        return {"role": role, "content": value}
    if not isinstance(value, dict) or says_who(value):
        return value
    if first_field(value, "type") in _UNTYPED:
        return {"role": role} | value
    return value


def says_who(message: dict[str, Any]) -> bool:
    """Say whether a message says itself who speaks, by whatever key."""
    if not _SPEAKERS.isdisjoint(message):
        return True
    return any([read_flagged_role(message), *list_role_types(message)])


def _find_answers(raw: dict[str, Any]) -> Iterator[tuple[str, list[Any], int]]:
    """Find the answers under every key that may hold one.

    :returns: the path of each, its messages, and how many alternatives it has.
    """
    for holder_path in _ANSWERED_WITHIN:
        holder: Any = raw
        holder_prefix = ""
        if holder_path:
            holder = get_nested(raw, holder_path)
            holder_prefix = f"{holder_path}."
        if not isinstance(holder, dict):
            continue
        for answer_key, choice_paths in _CHOICES.items():
            choices = list_or_empty(decode_json(holder.get(answer_key)))
            choice = first_filled(next(iter(choices), None), *choice_paths)
            if has_words(choice):
                yield holder_prefix + answer_key, _as_messages(choice), len(choices) - 1
        if holder_path and "role" not in holder:
            for answer_key in _ANSWERED:
                if _is_filled_text(holder.get(answer_key)):
                    yield holder_prefix + answer_key, _as_messages(holder[answer_key]), 0
        if holder_path in _WITHIN_OUTPUT:
            continue
        for answer_key in _OUTPUT:
            output = decode_json(holder.get(answer_key))
            if has_words(output) and _is_answer(raw, holder_path, answer_key, output):
                output_path, output = _open_output(output)
                opened_path = holder_prefix + answer_key + output_path
                if opened_path in _WITHIN_OUTPUT and _holds_answers(output):
                    continue  # which are found within it
                answer, alternatives = _split_alternatives(_with_role(holder, answer_key, output))
                yield opened_path, _as_messages(answer), alternatives
    for answer_key in _ANSWERED:
        output = decode_json(raw.get(answer_key))
        if answer_key in _WITHIN_OUTPUT and _holds_answers(output):
            continue
        if has_words(output) and not _is_around_answer(output):
            answer, alternatives = _split_alternatives(output)
            yield answer_key, _as_messages(answer), alternatives


def _is_answer(raw: dict[str, Any], holder_path: str, key: str, output: Any) -> bool:
    """Say whether what stands under a key answers a request.

    :param holder_path: the path of the object with the key; empty for the record itself, where
        texts are how an answer is written, or all messages once more.
    """
    if holder_path:
        return key != "text" or isinstance(output, str)
    if key == "text":
        return _is_filled_text(output) and _is_request_of_cohere(holder_path, raw)
    if key not in _BARE:
        return True
    has_messages = isinstance(decode_json(raw.get("messages")), list)
    return has_messages and bool(raw.get(_BARE[key]))


def _open_output(value: Any) -> tuple[str, Any]:
    """Give an answer out of the objects that Bedrock has around it, and its path in them."""
    opened_path = ""
    for around_key in _AROUND_OUTPUT:
        inner_output = get_nested(value, around_key)
        if isinstance(inner_output, dict) and "role" not in value:
            opened_path = f"{opened_path}.{around_key}"
            value = inner_output
    return opened_path, value


def _is_around_answer(value: Any) -> bool:
    """Say whether an object is what an API gives around an answer, and no message."""
    if not isinstance(value, dict):
        return False
    if _holds_answers(value) or "output" in value:
        return True
    if isinstance(value.get("content"), list):
        return True
    return {"role", "content"}.isdisjoint(value) and not isinstance(value.get("text"), str)


def _holds_answers(value: Any) -> bool:
    """Say whether an object has answers under keys of their own, and is no message."""
    if not isinstance(value, dict) or "role" in value:
        return False
    return not _AROUND_ANSWER.isdisjoint(value)


def _split_alternatives(value: Any) -> tuple[Any, int]:
    """Give the first of several texts that answer one request, and how many others there are."""
    if not isinstance(value, list) or len(value) < 2:
        return value, 0
    if set(map(type, value)) == {str}:
        return value[0], len(value) - 1
    return value, 0


def _with_role(holder: dict[str, Any], key: str, output: Any) -> Any:
    """Give the content of an answer of Anthropic's API as a message; anything else as it is."""
    if key != "content":
        return output
    message = {**holder, "role": first_text(holder.get("role"), "assistant")}
    message.pop("messages", None)
    return message


def _as_messages(value: Any) -> list[Any]:
    if not isinstance(value, list):
        return [_as_message(value, "assistant")]
    block_types = set[str]()
    for block in value:
        if isinstance(block, dict) and "role" not in block:
            block_types.add(first_field(block, "type"))
    if block_types == {"text"}:
        return [{"role": "assistant", "content": value}]
    return [_as_message(message, "assistant") for message in value]


def find_earlier_answer(raw: Any) -> str:
    """Give the id of the answer that a call goes on from; empty where it names none."""
    return first_field(raw, *_BEFORE)


def list_answer_ids(raw: Any) -> list[str]:
    """List the ids of the answer of a call, by one of which later calls name it."""
    return list(filter(None, map(partial(first_field, raw), _ANSWER_IDS)))


def count_overlap(said: list[Message], heard: list[Message]) -> int:
    """Count the first messages of a list that a conversation so far ends with.

    Source: the prefix function of Knuth, Morris and Pratt (1977), linear in the length of the list.

    >>> one, two = ({"role": "user", "text": text} for text in ("Hi", "So?"))
    >>> count_overlap([one], [one, two])
    1
    """
    if not heard:
        return 0
    last_words = map(words_of, said[-len(heard) :])
    joined_words = [*map(words_of, heard), None, *last_words]
    border_sizes = [0]
    for spoken_words in joined_words[1:]:
        overlap = border_sizes[-1]
        while overlap and joined_words[overlap] != spoken_words:
            overlap = border_sizes[overlap - 1]
        if joined_words[overlap] == spoken_words:
            overlap += 1
        border_sizes.append(overlap)
    return border_sizes[-1]


def words_of(turn: Message) -> tuple[Any, str]:
    """Give who said what."""
    return turn["role"], turn["text"].strip()


def digest_beginnings(said: list[Message]) -> list[int]:
    """Give a digest of the first 0, 1, 2 … messages of a list, each made of the one before it."""
    digests = [0]
    for message in said:
        digests.append(hash((digests[-1], words_of(message))))
    return digests


class ToldHistories:
    """The conversations of the calls so far, so that a call that repeats one goes on there.

    Two users may begin with the same words, and their answers may have the same numbers.
    """

    def __init__(self) -> None:
        self.by_answer: dict[tuple[str, str], str] = {}
        self.by_history: dict[tuple[str, int], str] = {}
        self.scopes: dict[str, str] = {}

    def find_scope(self, raw: Any) -> str:
        """Give the scope of the answer that a call goes on from; empty where it names none."""
        return self.scopes.get(find_earlier_answer(raw), "")

    def find_session(self, scope: str, raw: Any, asked: list[Message]) -> tuple[str, int]:
        """Give the session that a call goes on in, and how much of it is repeated.

        The session is empty for a call that begins one of its own. A call goes on where it names
        the answer before it, or begins with all that was asked and answered before in its scope,
        two messages or more.
        """
        digests = digest_beginnings(asked)
        for history_size in range(len(asked), 1, -1):
            session = self.by_history.get((scope, digests[history_size]))
            if session:
                return session, history_size
        return self.by_answer.get((scope, find_earlier_answer(raw)), ""), 0

    def add(self, scope: str, raw: Any, session: str, said: list[Message]) -> None:
        """Take up a call with all that was said up to its answer."""
        for answer_id in list_answer_ids(raw):
            self.by_answer[scope, answer_id] = session
            self.scopes[answer_id] = scope
        if len(said) > 1:
            self.by_history[scope, digest_beginnings(said)[-1]] = session
