"""What is wrong with an answer, in one line; and what a server that refuses a request says about it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from memlab.errors import ModelError
from memlab.llm.bodies import parse_json

RATE_LIMITED, UNAVAILABLE, BAD_REQUEST = 429, 503, 400
FINAL_REFUSALS = (401, 402, 403, 408, 409, 429)
"""Statuses of 4xx after which no other request of the kind helps, or the same one later."""

_LATER = re.compile(
    r"rate.?limit|too many requests|overload|unavailable|try again|capacity|timed? ?out|temporar",
    re.IGNORECASE,
)
_UNKNOWN = re.compile(
    r"un(?:supported|known|recogni[sz]ed|expected)|extra|no such|cannot find|not implemented"
    r"|not (?:\w+ )?(?:supported|permitted|allowed|recogni[sz]ed|valid|available)"
    r"|(?:does|do)(?:n't| not) (?:support|accept|allow|take|have|recogni[sz]e)"
    r"|invalid (?:name|field|param|arg|key)|instead|deprecated|forbidden|removed|additional propert",
    re.IGNORECASE,
)
_SHOWN_BYTES, _READ_CHARS = 4_000, 20_000


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
    def is_passing(self) -> bool:
        """Whether the same request may be answered later."""
        return self.status in (408, 409, RATE_LIMITED) or self.status >= 500

    def is_refusal_of(self, body: Mapping[str, Any]) -> bool:
        """Whether another request in its place may be answered; 500 is how some refuse a schema."""
        if self.status in (500, 501):
            return "response_format" in body
        return 400 <= self.status < 500 and self.status not in FINAL_REFUSALS


class RefusedError(ModelError):
    """A server refused a request as it stands."""

    def __init__(self, message: str, fault: Fault) -> None:
        super().__init__(message)
        self.fault = fault


def describe_first_fault(error: ValidationError) -> str:
    """Say what the first fault is and where, never the input itself: it may echo the request with its key."""
    first = error.errors(include_input=False, include_url=False, include_context=False)[0]
    return ": ".join(filter(None, (".".join(map(str, first["loc"])), first["msg"])))


def read_fault(status: int, body: bytes) -> Fault | None:
    """Read what a server says instead of an answer; nothing where it answers.

    >>> from memlab.llm.faults import read_fault
    >>> read_fault(200, b'{"error": {"message": "Rate limit exceeded", "code": 429}}')
    Fault(status=429, message='Rate limit exceeded', parameters=())
    >>> read_fault(200, b'{"choices": []}')
    """
    answered = 200 <= status < 300
    if answered and b'"error"' not in body:
        return None
    try:
        said = parse_json(body)
    except ValueError:
        said = None
    if isinstance(said, list) and len(said) == 1:  # Google's
        said = said[0]
    if answered:
        error = _error_inside(said)
        if error is None:
            return None
        message = _message(error) or "no reason is given"
        return Fault(_inner_status(error, message), message, _named_fields(error))
    error = said.get("error", said) if isinstance(said, dict) else said
    message = _message(error) or body[:_SHOWN_BYTES].decode("utf-8", "replace")
    return Fault(status, message, _named_fields(said))


def _error_inside(said: Any) -> Any:
    """Give the error of an answer whose status says that all is well, or of its choice."""
    if not isinstance(said, dict):
        return None
    error = said.get("error")
    if not error and isinstance(said.get("choices"), list):
        for choice in said["choices"][:1]:
            error = choice.get("error") if isinstance(choice, dict) else None
    return error or None


def _message(error: Any) -> str:
    """Give the words of an error, which stand in various places and depths."""
    for _ in range(4):
        if isinstance(error, str):
            return error
        if isinstance(error, list):
            return json.dumps(error, ensure_ascii=False)[:_SHOWN_BYTES] if error else ""
        if not isinstance(error, dict):
            return ""
        inner = [error.get(name) for name in ("message", "error", "detail", "msg")]
        error = next((each for each in inner if each), None)
    return ""


def _inner_status(error: Any, message: str) -> int:
    """Give the status that an error inside an answer stands for."""
    codes = list[str]()
    if isinstance(error, dict):
        codes = [str(error.get(name)) for name in ("code", "status", "status_code", "type")]
    for code in codes:
        if re.fullmatch("[45][0-9]{2}", code):
            return int(code)
    said = " ".join([*codes, message]).replace("_", " ")
    if re.search(r"rate.?limit|too many requests|quota", said, re.IGNORECASE):
        return RATE_LIMITED
    return UNAVAILABLE if _LATER.search(said) else BAD_REQUEST


def _named_fields(said: Any) -> tuple[str, ...]:
    """Give the parameters that stand in fields of their own: ``param``, or the place of a fault."""
    names = list[str]()
    for each in _walk(said):
        place = each.get("loc")
        if isinstance(each.get("param"), str):
            names.append(re.split(r"[.\[]", each["param"])[0])
        elif isinstance(place, list):
            inner = [str(step) for step in place if step != "body"]
            names += inner[:1]
    return tuple(dict.fromkeys(names))


def _walk(said: Any, depth: int = 6) -> Iterator[dict[str, Any]]:
    """Give the objects within what a server said, the outer ones first."""
    if depth and isinstance(said, dict):
        yield said
        said = [*said.values()]
    if depth and isinstance(said, list):
        for inner in said[:100]:
            yield from _walk(inner, depth - 1)


def refused_parameters(fault: Fault, body: Mapping[str, Any], names: Iterable[str]) -> list[str]:
    """Give the parameters of a request that the server names as what it does not take.

    A longest answer that is too long is no unknown parameter: without it, an answer might cost
    anything.

    :param names: of the parameters that can be left out.

    >>> from memlab.llm.faults import Fault, refused_parameters
    >>> refused_parameters(Fault(400, "Unknown name 'seed'"), {"seed": 0}, ["seed"])
    ['seed']
    >>> refused_parameters(Fault(400, "max_tokens must be at most 512"), {"max_tokens": 1024}, ["max_tokens"])
    []
    """
    message = fault.message[:_READ_CHARS]
    sent = [name for name in names if name in body]
    found = [name for name in sent if name in fault.parameters]
    if not found:
        found = [name for name in sent if _is_named(name, message)]
        echoed = [name for name in found if _is_echoed(name, body[name], message)]
        if len(echoed) < len(found) or len(echoed) > 1:
            found = [name for name in found if name not in echoed]
    if _UNKNOWN.search(message):
        return found
    return [name for name in found if name not in ("max_tokens", "max_completion_tokens")]


def _is_named(name: str, message: str) -> bool:
    return re.search(rf"(?<!\w){name}(?!\w)", message) is not None


def _is_echoed(name: str, value: Any, message: str) -> bool:
    """Say whether the message names a parameter only with its value, as where it repeats the request."""
    written = re.escape(json.dumps(value))
    rest = re.sub(rf"(?<!\w){name}[\"']?\s*[:=]\s*{written}", "", message)
    return not _is_named(name, rest)
