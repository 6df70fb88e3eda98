"""Reading the answer of a model: a text comes in, a value of the shape or the reason for none goes out.

Thinking is cut off first, so that no draft is taken for the answer. Of what is left, the last
complete object that fits the shape is the answer.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, NamedTuple

from pydantic import BaseModel, ValidationError, WrapValidator

from memlab.llm.faults import describe_first_fault

ONLY_THINKING = "only thinking, and no answer after it"
NO_OBJECT = "Invalid JSON: no object is in it"
UNFINISHED = "Invalid JSON: it ends within an object"
TOO_DEEP = "Invalid JSON: it is nested too deeply, or broken too often"
EXTRA_KEYS = "keys that were not asked for are left out of its answers"
NO_FIELD = "none of the keys that were asked for is in it"

_NAME = r"[\w:-]*(?:think|thought|reason|reflect|scratch_?pad|analysis|monologue)[\w:-]*"
_TAG = re.compile(
    # <think>, </thinking>, <|START_THINKING|>, <seed:think>, ◁/think▷, with attributes or without.
    rf"[<◁]\|?(?P<slash>/?)\|?(?P<name>{_NAME})(?:\s[^<>]*)?\|?[>▷]"
    r"|\[(?P<slash2>/?)(?P<name2>think|thinking|thought|thoughts|reasoning)\]"
    # Of MedGemma, whose template has no words for them.
    r"|<unused9(?P<number>[45])>",
    re.IGNORECASE,
)
_CHANNEL = re.compile(r"<\|?channel\|?>\s*(?P<name>\w*)", re.IGNORECASE)
_CHANNEL_MESSAGE = re.compile(r"[^{}]*?<\|message\|>", re.IGNORECASE)
_CHANNEL_ENDS = re.compile(r"<\|(?:end|return|call|start)\|>|<\|?channel\|?>", re.IGNORECASE)
_THINKING_ENDS = re.compile(r"<\|end\|>(?:\s*<\|start\|>\w*)?|<channel\|>", re.IGNORECASE)
_BARE_THINKING = re.compile(r"\s*analysis(?=[A-Z])")
_BARE_FINAL = re.compile(r".*assistant\s*final", re.DOTALL)
"""Channels where the server has left out what stands around their names."""

MOST_RETRIED = 10_000_000
"""Characters that are read again after beginnings of objects that are none."""

_BEGINNING = re.compile(r"[{\[]")
_OBJECT_BEGINNING = re.compile(r'\{\s*"|\[\s*[{\[]')
"""Of any object or list; and of what is hardly prose in braces."""

_DECODER = json.JSONDecoder(strict=False)  # a line break within a string is read as one


class _Found(NamedTuple):
    """A complete object or list of a text, and where it stands."""

    value: Any
    start: int
    end: int


class _UnreadableError(ValueError):
    """No object can be taken from a text; says why."""


def read_answer(text: str, shape: type[BaseModel]) -> tuple[BaseModel | None, str]:
    """Read the last complete object that fits the shape, or say why there is none.

    Objects may stand in prose, in code fences and in one wrapper, such as
    ``{"name": …, "arguments": …}``. Keys that the shape forbids are left out. A text that ends
    within an object has no answer: what stands before may be a draft.

    :returns: the value, with :data:`EXTRA_KEYS` where some were left out; or ``None`` and the
        reason in one line, which quotes nothing of the text.

    >>> from pydantic import BaseModel
    >>> from memlab.llm.answer_reader import read_answer
    >>> class Colour(BaseModel):
    ...     name: str
    >>> read_answer('<think>{"name": "red"}? No.</think>It is {"name": "blue"}.', Colour)
    (Colour(name='blue'), '')
    >>> read_answer('<think>{"name": "red"}', Colour)
    (None, 'only thinking, and no answer after it')
    """
    try:
        whole = _DECODER.decode(text.strip().removeprefix("\ufeff"))
    except (ValueError, RecursionError):
        return _read_from_prose(text, shape)
    if isinstance(whole, str):  # the object as a JSON string
        return _read_from_prose(whole, shape)
    return _fit_one(whole, shape)


def fitting_items(most: int) -> WrapValidator:
    """Read of a list what fits, up to a bound, which not every model keeps; one in which nothing fits is refused."""

    def read_items(items: Any, read: Callable[[Any], Any]) -> Any:
        good: list[Any] = []
        for item in items if isinstance(items, list) else ():
            with suppress(ValidationError):
                good += read([item])
        return good[:most] or read(items)

    return WrapValidator(read_items)


def strip_thinking(text: str) -> str:
    """Give a text without what the model thought before it answered.

    Thinking that is not closed goes to the end; what closes thinking that was opened in the prompt
    ends it. A tag inside a JSON string is no tag.

    >>> from memlab.llm.answer_reader import strip_thinking
    >>> strip_thinking("<think>a, b?</think>b")
    'b'
    >>> strip_thinking("a, b?</think>b")
    'b'
    >>> strip_thinking("b <think>or a")
    'b '
    """
    text = _final_channel(text)
    spans = [(found.start, found.end) for found in _complete_values(text, cut_is_error=False)]
    kept, begun, opened = list[str](), 0, False
    for tag in _TAG.finditer(text):
        if any(start < tag.start() < end for start, end in spans):
            continue
        if not _closes(tag):
            if not opened:
                kept.append(text[begun : tag.start()])
            opened = True
        else:
            if not opened:
                kept.clear()  # it was opened before the text begins
            opened = False
        begun = tag.end()
    if not opened:
        kept.append(text[begun:])
    return "".join(kept)


def _closes(tag: re.Match[str]) -> bool:
    if tag["number"]:
        return tag["number"] == "5"
    if tag["slash"] or tag["slash2"]:
        return True
    name = (tag["name"] or tag["name2"]).lower()
    return name.startswith(("end_", "end-")) or name.endswith(("_end", "-end"))


def _final_channel(text: str) -> str:
    """Give the text of the last channel called ``final``; all of it where there are no channels."""
    if _BARE_THINKING.match(text):
        bare = _BARE_FINAL.match(text)
        return text[bare.end() :] if bare else ""
    channels = [*_CHANNEL.finditer(text)]
    if not channels:
        return text
    final = [channel for channel in channels if channel["name"].lower() == "final"]
    if not final:
        ends = [*_THINKING_ENDS.finditer(text)]
        return text[ends[-1].end() :] if ends else ""
    begun = final[-1].end()
    message = _CHANNEL_MESSAGE.match(text, begun)
    if message:
        begun = message.end()
    end = _CHANNEL_ENDS.search(text, begun)
    return text[begun : end.start()] if end else text[begun:]


def _read_from_prose(text: str, shape: type[BaseModel]) -> tuple[BaseModel | None, str]:
    answer = strip_thinking(text)
    if text.strip() and not answer.strip():
        return None, ONLY_THINKING
    try:
        found = [*_complete_values(answer, cut_is_error=True)]
    except _UnreadableError as error:
        return None, str(error)
    first_fault = ""
    for each in reversed(found):
        value, fault = _fit_one(each.value, shape)
        if value is not None:
            return value, fault
        first_fault = first_fault or fault
    return None, first_fault or NO_OBJECT


def _complete_values(text: str, *, cut_is_error: bool) -> Iterator[_Found]:
    """Find complete objects and lists, the outermost ones, in their order.

    :raises _UnreadableError: when the text ends within an object, or cannot be read within bounds.
    """
    at, retried, last_brace = 0, 0, text.rfind("}")
    while start := _BEGINNING.search(text, at):
        at = start.start() + 1
        try:
            value, end = _DECODER.raw_decode(text, start.start())
        except json.JSONDecodeError as error:
            broken = error.pos
            if error.msg.startswith("Unterminated string"):
                broken = len(text)
            if (
                cut_is_error
                and broken > last_brace
                and _OBJECT_BEGINNING.match(text, start.start())
            ):
                raise _UnreadableError(UNFINISHED) from None
        except (RecursionError, ValueError):  # or a number of thousands of digits
            broken = len(text)
        else:
            yield _Found(value, start.start(), end)
            at = end
            continue
        # An error counts the lines before it, fifty characters and more in the time of one.
        retried += broken - start.start() + broken // 50
        if retried > MOST_RETRIED:
            if cut_is_error:
                raise _UnreadableError(TOO_DEEP)
            return


def _fit_one(value: Any, shape: type[BaseModel]) -> tuple[BaseModel | None, str]:
    """Fit a value, or the one that a wrapper around it holds."""
    fitting, fault = _fit(value, shape)
    if fitting is not None:
        return fitting, fault
    opened = list[tuple[BaseModel, str]]()
    for inner in _wrapped_values(value):
        within, note = _fit(inner, shape)
        if within is not None and all(within != other for other, _ in opened):
            opened.append((within, note))
    return opened[0] if len(opened) == 1 else (None, fault)


def _wrapped_values(value: Any) -> Iterator[Any]:
    """Give the objects and lists inside a value; those written as a string are read."""
    if isinstance(value, list):
        # Of a list, only the one that is alone in it: of several, none is the answer.
        yield from value[:1] if len(value) == 1 else ()
        return
    if not isinstance(value, dict):
        return
    for inner in value.values():
        if isinstance(inner, str) and inner.lstrip().startswith(("{", "[")):
            try:
                inner = _DECODER.decode(inner.strip())
            except (ValueError, RecursionError):
                continue
        if isinstance(inner, dict | list):
            yield inner


def _fit(value: Any, shape: type[BaseModel]) -> tuple[BaseModel | None, str]:
    """Fit a value as it stands, or without the keys that the shape forbids."""
    try:
        fitting = _validate(value, shape)
    except RecursionError:
        return None, TOO_DEEP
    except ValidationError as error:
        fault = describe_first_fault(error)
        faults = error.errors(include_input=False, include_url=False, include_context=False)
    else:
        # Where all fields have defaults, anything would fit.
        known = not value or _has_field(value, shape)
        return (fitting, "") if known else (None, NO_FIELD)
    only_extra = all(each["type"] == "extra_forbidden" for each in faults)
    if only_extra and _has_field(value, shape):
        for each in faults:
            _remove(value, each["loc"])
        try:
            return _validate(value, shape), EXTRA_KEYS
        except ValidationError:
            pass
    return None, fault


def _validate(value: Any, shape: type[BaseModel]) -> BaseModel:
    # As JSON, whose rules differ from those for Python's values; half of a character pair becomes
    # a question mark, as in what is sent.
    written = json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")
    return shape.model_validate_json(written)


def _has_field(value: Any, shape: type[BaseModel]) -> bool:
    """Say whether an object has a key of the shape; a shape that is no object has none to look for."""
    fields = shape.model_json_schema().get("properties")
    return fields is None or (isinstance(value, dict) and not fields.keys().isdisjoint(value))


def _remove(value: Any, place: tuple[int | str, ...]) -> None:
    """Remove a key; a place that names more than keys and positions, as of a union, is left as it is."""
    for step in place[:-1]:
        try:
            value = value[step]
        except (KeyError, IndexError, TypeError):
            return
    if isinstance(value, dict):
        value.pop(place[-1], None)
