"""Calls of a model as logs and data sets for training hold them: what was asked, and what was answered."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from memlab.datasets.importers.export_messages import Message, normalise_role
from memlab.datasets.importers.loose_json import decode_json, first_field, get_nested
from memlab.datasets.importers.message_fields import (
    has_words,
    list_role_types,
    read_flagged_role,
)

_WITHIN = ("", "body.", "request.", "request.body.", "params.", "input.", "inputs.", "kwargs.")
_ASKED = ("messages", "input", "contents", "prompt")
_ANSWERED_WITHIN = ("", "response.", "response.body.", "body.", "result.message.", "result.")
_CHOICES, _OUTPUT = "choices", ("output", "completion", "content", "message", "output_text", "text")
_BARE = {"content": "role", "message": "messages"}
"""Keys that answer a request only beside messages and another key: else they are what a message says."""
_ANSWERED = (
    *("response", "completion", "chosen", "answer", "reply", "generation", "prediction"),
    *("generated_text", "assistant_response", "model_response", "model_output", "outputs"),
    *("responses", "completions", "generations", "answers", "predictions"),
)
_CANDIDATES = "candidates"  # of Gemini's API
_SPEAKERS = frozenset(("role", "from", "sender", "author", "speaker", "kwargs", "data"))
_SYSTEM = ("system", "instructions", "system_prompt")
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


def find_call(raw: Any) -> Call | None:
    """Find the request and the answers in a record; ``None`` where it holds neither, as a message alone.

    >>> call = find_call({"input": "Which bus?", "output": [{"role": "assistant", "content": "Line 4."}]})
    >>> call.asked, [answer[0]["content"] for answer in call.answers]
    ([{'role': 'user', 'content': 'Which bus?'}], ['Line 4.'])
    """
    if not isinstance(raw, dict) or _is_message(raw):
        return None
    read = {"rejected"}
    asked = _find_request(raw, read)
    answers, others = list[list[Any]](), 0
    for path, said, alternatives in _find_answers(raw):
        read.add(path)
        answers.append(said)
        others += alternatives
    if asked is None and not answers:
        return None
    others += has_words(raw.get("rejected"))
    paths = [around + key for around in _WITHIN for key in _SYSTEM]
    system = [path for path in paths if has_words(get_nested(raw, path))]
    return Call(asked, answers, others, len(system), read.union(system))


def _is_message(raw: dict[str, Any]) -> bool:
    role = raw.get("role", raw.get("from", raw.get("sender")))
    return isinstance(role, str) and not isinstance(raw.get("messages"), list)


def _find_request(raw: dict[str, Any], read: set[str]) -> list[Any] | None:
    """Find what was asked; where it stands is added to ``read``."""
    instruction, given = raw.get("instruction"), raw.get("input")
    if isinstance(instruction, str):
        texts = [text for text in (instruction, given) if isinstance(text, str) and text.strip()]
        read |= {"instruction", "input"}
        return [{"role": "user", "content": "\n".join(texts)}]
    for around in _WITHIN:
        for key in _ASKED:
            value = decode_json(get_nested(raw, around + key))
            if isinstance(value, str) and value.strip():
                read.add(around + key)
                return [{"role": "user", "content": value}]
            if isinstance(value, list):
                read.add(around + key)
                return [_as_message(each, "user") for each in value]
    return None


def _as_message(value: Any, role: str) -> Any:
    """Give a text, or an object without a role, as a message of a role."""
    if isinstance(value, str):
        return {"role": role, "content": value}
    if isinstance(value, dict) and not _says_who(value):
        kind = first_field(value, "type")
        if kind in ("", "message") or not normalise_role(kind):
            return {"role": role} | value if kind in ("", "message", "text") else value
    return value


def _says_who(message: dict[str, Any]) -> bool:
    """Say whether a message says itself who speaks, by whatever key."""
    if not _SPEAKERS.isdisjoint(message):
        return True
    return bool(read_flagged_role(message) or list_role_types(message))


def _find_answers(raw: dict[str, Any]) -> Iterator[tuple[str, list[Any], int]]:
    """Find the answers under every key that may hold one, each with its path and how many alternatives it has."""
    has_messages = isinstance(decode_json(raw.get("messages")), list)
    for around in _ANSWERED_WITHIN:
        for key, *inside in ((_CHOICES, "message", "text"), (_CANDIDATES, "content")):
            choices = decode_json(get_nested(raw, around + key))
            if isinstance(choices, list) and choices:
                first = next((choices[0][k] for k in inside if get_nested(choices[0], k)), None)
                if has_words(first):
                    yield around + key, _as_messages(first), len(choices) - 1
        for key in _OUTPUT:
            value = decode_json(get_nested(raw, around + key))
            if key == "text" and not (around and isinstance(value, str)):
                continue  # how an answer is written, or all messages once more
            is_beside = has_messages and bool(raw.get(_BARE.get(key, "")))
            if has_words(value) and (around or is_beside or key not in _BARE):
                said, others = _split_alternatives(_with_role(raw, around, key, value))
                yield around + key, _as_messages(said), others
    for key in _ANSWERED:
        value = decode_json(raw.get(key))
        if isinstance(value, dict) and not _is_said(value):
            continue  # an answer of an API, which is read above
        if has_words(value) and key not in _OUTPUT and not _is_api_answer(value):
            said, others = _split_alternatives(value)
            yield key, _as_messages(said), others


def _is_said(value: dict[str, Any]) -> bool:
    """Say whether an object is a message, not what an API answers around one."""
    if "output" in value:
        return False
    return not {"role", "content"}.isdisjoint(value) or isinstance(value.get("text"), str)


def _split_alternatives(value: Any) -> tuple[Any, int]:
    """Give the first of several texts that answer one request, and how many others there are."""
    if isinstance(value, list) and len(value) > 1 and all(isinstance(each, str) for each in value):
        return value[0], len(value) - 1
    return value, 0


def _is_api_answer(value: Any) -> bool:
    return isinstance(value, dict) and isinstance(value.get("content"), list)


def _with_role(raw: dict[str, Any], around: str, key: str, value: Any) -> Any:
    """Give the content of an answer of Anthropic's API as a message; anything else as it is."""
    if key != "content":
        return value
    about = raw
    if around:
        about = get_nested(raw, around.rstrip("."))
    about = {key: value for key, value in about.items() if key != "messages"}
    return {**about, "role": first_field(about, "role") or "assistant"}


def _as_messages(value: Any) -> list[Any]:
    if not isinstance(value, list):
        return [_as_message(value, "assistant")]
    blocks = [each for each in value if isinstance(each, dict) and "role" not in each]
    if blocks and all(first_field(each, "type") == "text" for each in blocks):
        return [{"role": "assistant", "content": value}]
    return [_as_message(each, "assistant") for each in value]


def find_earlier_answer(raw: Any) -> str:
    """Give the id of the answer that a call goes on from; empty where it names none."""
    return first_field(raw, *_BEFORE)


def list_answer_ids(raw: Any) -> list[str]:
    """List the ids of the answer of a call, by one of which later calls name it."""
    return [own for path in _ANSWER_IDS if (own := first_field(raw, path))]


def count_overlap(said: list[Message], heard: list[Message]) -> int:
    """Count the first messages of a list that a conversation so far ends with.

    Source: the prefix function of Knuth, Morris and Pratt (1977), linear in the length of the list.

    >>> one, two = ({"role": "user", "text": text} for text in ("Hi", "So?"))
    >>> count_overlap([one], [one, two])
    1
    """
    if not heard:
        return 0
    words = [words_of(turn) for turn in heard]
    joined = [*words, None, *(words_of(turn) for turn in said[-len(heard) :])]
    sizes = [0]
    for each in joined[1:]:
        size = sizes[-1]
        while size and joined[size] != each:
            size = sizes[size - 1]
        if joined[size] == each:
            size += 1
        sizes.append(size)
    return sizes[-1]


def words_of(turn: Message) -> tuple[Any, str]:
    """Give who said what."""
    return turn["role"], turn["text"].strip()


def digest_beginnings(said: list[Message]) -> list[int]:
    """Give a digest of the first 0, 1, 2 … messages of a list, each made of the one before it."""
    digests = [0]
    for turn in said:
        digests.append(hash((digests[-1], words_of(turn))))
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
        """Give the session that a call goes on in, empty for one of its own, and how much of it is repeated.

        A call goes on where it names the answer before it, or begins with all that was asked and
        answered before in its scope, two messages or more.
        """
        digests = digest_beginnings(asked)
        for size in range(len(asked), 1, -1):
            session = self.by_history.get((scope, digests[size]))
            if session:
                return session, size
        return self.by_answer.get((scope, find_earlier_answer(raw)), ""), 0

    def add(self, scope: str, raw: Any, session: str, said: list[Message]) -> None:
        """Take up a call with all that was said up to its answer."""
        for answer in list_answer_ids(raw):
            self.by_answer[scope, answer] = session
            self.scopes[answer] = scope
        if len(said) > 1:
            self.by_history[scope, digest_beginnings(said)[-1]] = session
