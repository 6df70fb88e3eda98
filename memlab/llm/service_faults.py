"""What is wrong with an answer, in one line; and what a server says that refuses a request."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

from pydantic import BaseModel, ValidationError

from memlab.errors import ModelError
from memlab.llm.response_bodies import (
    JsonObject,
    JsonValue,
    first_object_or_empty,
    object_or_empty,
    parse_json_body,
)

RATE_LIMITED, UNAVAILABLE, FAILED, BAD_REQUEST, NOT_FOUND = 429, 503, 500, 400, 404
UNPROCESSABLE = 422
PASSING = (408, 409, RATE_LIMITED)
ADAPTABLE = frozenset(range(400, 500)) - {401, 402, 403, *PASSING}
"""Statuses of 4xx after which the same request may help later; and, at once, another one."""
FAILURES = (FAILED, 501)
"""Statuses of a server that fails, or refuses something so."""
LASTING = (NOT_FOUND, *FAILURES)
"""Statuses of a server that may fail whatever it is asked."""
SCHEMA_REFUSED = (BAD_REQUEST, UNPROCESSABLE, *LASTING)
"""Statuses with which some servers refuse a schema without naming it."""

_LIMITED = re.compile(r"rate.?limit|too many requests|quota|resource.?exhausted", re.IGNORECASE)
_LATER = re.compile(
    r"overload|unavailable|try again|capacity|timed? ?out|temporar|deadline.?exceeded",
    re.IGNORECASE,
)
_FAILED = re.compile(
    r"(?:internal|server)[ _]?(?:server[ _]?)?error|server had an error|api error|internal$",
    re.IGNORECASE,
)
_TOO_LARGE = re.compile(
    r"too (?:large|long|many|high|big)|at most|exceed|maximum|context|greater than|less than",
    re.IGNORECASE,
)
_FILTERED = re.compile(
    r"content.?(?:filter|management|policy)|(?:was|were|been) (?:filtered|flagged)|moderation",
    re.IGNORECASE,
)
_UNKNOWN = re.compile(
    r"un(?:supported|known|recogni[sz]ed|expected)|extra|no such|cannot find|not implemented"
    r"|not (?:\w+ )?(?:supported|permitted|allowed|recogni[sz]ed|valid|available)"
    r"|(?:does|do)(?:n't| not) (?:support|accept|allow|take|have|recogni[sz]e)"
    r"|invalid (?:name|field|param|arg|key)|instead|deprecated|forbidden|removed"
    r"|additional propert",
    re.IGNORECASE,
)
_ANSWERING = ("choices", "data")
"""What an answer has, of a question and of texts to embed."""

_SHOWN_CHARS, _READ_CHARS = 4_000, 20_000


@dataclass(frozen=True)
class Fault:
    """What a server says instead of an answer.

    :param status: of HTTP, or the code inside an answer whose status says that all is well.
    :param message: the server's, or all that it sent.
    :param parameters: of the request, where the server names them in a field of their own.
    """

    status: int
    message: str
    parameters: tuple[str, ...] = ()

    @property
    def may_be_answered_later(self) -> bool:
        """Whether the same request may be answered later."""
        return self.status >= 500 or self.status in PASSING

    @property
    def may_be_answered_if_changed(self) -> bool:
        """Whether another request in its place may be answered.

        Not where a filter withholds what was asked.
        """
        return self.status in ADAPTABLE and not _FILTERED.search(self.message)


class RefusedError(ModelError):
    """A server refused a request as it stands.

    :param replaced: what it names as not taken; see
        :func:`memlab.llm.service_capabilities.find_replacement_or_empty_by_parameter`.
    :param pause: seconds after which the same request may be answered; 0 where it may be at once.
    """

    def __init__(
        self, message: str, fault: Fault, replaced: Mapping[str, str], pause: float
    ) -> None:
        super().__init__(message)
        self.fault = fault
        self.replaced = replaced
        self.pause = pause


def describe_first_fault(error: ValidationError, shape: type[BaseModel]) -> str:
    """Say what the first fault is and where, never the input itself: it may echo the request with
    its key.

    Keys that the shape does not name are input too, and left out.
    """
    first_fault = error.errors(include_input=False, include_url=False, include_context=False)[0]
    known_keys = _keys_of_shape_and_inner_shapes(shape)
    known_path = [
        str(path_step)
        for path_step in first_fault["loc"]
        if isinstance(path_step, int) or path_step in known_keys
    ]
    return ": ".join(filter(None, (".".join(known_path), first_fault["msg"])))


@lru_cache(maxsize=64)
def _keys_of_shape_and_inner_shapes(shape: type[BaseModel]) -> frozenset[str]:
    """Give the keys of a shape and of all shapes within it."""
    schema = shape.model_json_schema()
    key_names = set(schema.get("properties", ()))
    for inner_schema in schema.get("$defs", {}).values():
        key_names.update(inner_schema.get("properties", ()))
    return frozenset(key_names)


def mask_key_and_shorten_to_one_line(text: str, max_chars: int, *, api_key: str = "") -> str:
    """Write a text in one line of at most so many characters, a key taken out first.

    >>> from memlab.llm.service_faults import mask_key_and_shorten_to_one_line
    >>> mask_key_and_shorten_to_one_line("sk-1 is\\nno key of ours", 12, api_key="sk-1")
    '*** is no k…'
    """
    for secret_form in {api_key, json.dumps(api_key)[1:-1]} - {""}:
        text = text.replace(secret_form, "***")
    shown_text = " ".join(text.split())
    if len(shown_text) > max_chars:
        return shown_text[: max_chars - 1] + "…"
    return shown_text


def read_fault(http_status: int, response_body: bytes) -> Fault | None:
    """Read what a server says instead of an answer; nothing where it answers.

    >>> from memlab.llm.service_faults import read_fault
    >>> read_fault(200, b'{"error": {"message": "Rate limit exceeded", "code": 429}}')
    Fault(status=429, message='Rate limit exceeded', parameters=())
    >>> read_fault(200, b'{"choices": []}')
    """
    is_success = 200 <= http_status < 300
    if is_success and _looks_like_answer(response_body):
        return None
    if is_success and not response_body.strip():
        return Fault(UNAVAILABLE, "the body is empty")
    try:
        json_answer = parse_json_body(response_body)
    except ValueError:
        json_answer = None
    json_answer = first_object_or_empty(json_answer) or json_answer  # Google's stands in a list
    if is_success:
        error = _find_error_in_answer(json_answer)
        if not error:
            return None
        message = _find_error_message_or_empty(error) or "no reason is given"
        return Fault(
            _status_of_inner_error_or_bad_request(error, message),
            message,
            _parameters_in_error_fields(error),
        )
    error = object_or_empty(json_answer).get("error", json_answer)
    message = (
        _find_error_message_or_empty(error)
        or _single_spaced(response_body.decode("utf-8", "replace"))[:_SHOWN_CHARS]
    )
    return Fault(http_status, message, _parameters_in_error_fields(json_answer))


def _looks_like_answer(response_body: bytes) -> bool:
    """Say whether a body holds an answer and no error, before it is parsed: vectors are long."""
    if b'"error"' in response_body:
        return False
    return any(b'"%s"' % name.encode() in response_body for name in _ANSWERING)


def _find_error_in_answer(json_answer: JsonValue) -> JsonValue:
    """Give the error of an answer whose status says that all is well, or of its first choice."""
    answer_object = object_or_empty(json_answer)
    error = answer_object.get("error") or first_object_or_empty(answer_object.get("choices")).get(
        "error"
    )
    if isinstance(error, dict) and not any(error.values()):
        error = None  # some write one without anything in it beside an answer
    if not error and answer_object.keys().isdisjoint(_ANSWERING):
        return _find_error_message_or_empty(answer_object)
    return error


def _find_error_message_or_empty(error: JsonValue) -> str:
    """Give the words of an error, which stand in various places and depths."""
    for _ in range(4):
        if isinstance(error, str):
            return _single_spaced(error)[:_READ_CHARS]
        if isinstance(error, list):
            return _single_spaced(json.dumps(error, ensure_ascii=False))[:_SHOWN_CHARS]
        error_object = object_or_empty(error)
        error = ""
        for field_name in ("msg", "detail", "error", "message"):
            error = error_object.get(field_name) or error
    return ""


def _single_spaced(text: str) -> str:
    """Write a text in one line before it is cut, so that no cut falls within what is shown: it may
    be a key.
    """
    return " ".join(text.split())


def _status_of_inner_error_or_bad_request(error: JsonValue, message: str) -> int:
    """Give the status that an error inside an answer stands for."""
    searched_text = message
    for field_name in ("code", "status", "status_code", "type"):
        status_code = str(object_or_empty(error).get(field_name, ""))
        if re.fullmatch("[45][0-9]{2}", status_code):
            return int(status_code)
        searched_text = f"{searched_text} {status_code.replace('_', ' ')}".rstrip()
    if _LIMITED.search(searched_text):
        return RATE_LIMITED
    if _LATER.search(searched_text):
        return UNAVAILABLE
    if _FAILED.search(searched_text):
        return FAILED
    return BAD_REQUEST


def _parameters_in_error_fields(json_answer: JsonValue) -> tuple[str, ...]:
    """Give the parameters that stand in fields of their own: ``param``, or the place of a fault."""
    parameter_names = list[str]()
    for error_object in _iterate_json_objects(json_answer):
        parameter_name = error_object.get("param")
        parameter_path = error_object.get("loc")
        if isinstance(parameter_name, str):
            parameter_names.append(re.split(r"[.\[]", parameter_name)[0])
        elif isinstance(parameter_path, list):
            inner_path = [str(path_step) for path_step in parameter_path if path_step != "body"]
            parameter_names += inner_path[:1]
    return tuple(dict.fromkeys(parameter_names))


def _iterate_json_objects(json_value: JsonValue, max_depth: int = 6) -> Iterator[JsonObject]:
    """Give the objects within what a server said, the outer ones first."""
    if max_depth == 0:
        return
    if isinstance(json_value, dict):
        yield json_value
        json_value = [*json_value.values()]
    if isinstance(json_value, list):
        for inner_value in json_value[:100]:
            yield from _iterate_json_objects(inner_value, max_depth - 1)


def refused_parameters(
    fault: Fault, request_body: Mapping[str, JsonValue], parameter_names: Iterable[str]
) -> list[str]:
    """Give the parameters of a request that the server names as what it does not take.

    A longest answer that is too long is no unknown parameter: without it, an answer might cost
    anything.

    :param parameter_names: of the parameters that can be left out.

    >>> from memlab.llm.service_faults import Fault, refused_parameters
    >>> refused_parameters(Fault(400, "Unknown name 'seed'"), {"seed": 0}, ["seed"])
    ['seed']
    >>> longest = {"max_tokens": 1024}
    >>> refused_parameters(Fault(400, "max_tokens is at most 512"), longest, longest)
    []
    """
    message = fault.message
    in_fields = list[str]()
    in_words = list[str]()
    in_echoes = list[str]()
    for name in parameter_names:
        if name not in request_body:
            continue
        if name in fault.parameters:
            in_fields.append(name)
        elif _is_only_echoed_in_message(name, request_body[name], message):
            in_echoes.append(name)
        elif _is_named_in_message(name, message):
            in_words.append(name)
    refused_names = in_fields or in_words
    if not refused_names and len(in_echoes) == 1:
        refused_names = in_echoes
    if _UNKNOWN.search(message) and not _TOO_LARGE.search(message):
        return refused_names
    return [name for name in refused_names if name not in ("max_tokens", "max_completion_tokens")]


def _is_named_in_message(parameter_name: str, message: str) -> bool:
    return re.search(rf"(?<!\w){parameter_name}(?!\w)", message) is not None


def _is_only_echoed_in_message(parameter_name: str, sent_value: JsonValue, message: str) -> bool:
    """Say whether a parameter stands in a message only with its value, as in a repeated request."""
    escaped_value = re.escape(json.dumps(sent_value))
    # An object may be written in many ways: how it begins is enough.
    message_without_echo = re.sub(
        rf"(?<!\w){parameter_name}\\*[\"']?\s*[:=]\s*(?:{escaped_value}|[{{\[])", "", message
    )
    return message_without_echo != message and not _is_named_in_message(
        parameter_name, message_without_echo
    )
