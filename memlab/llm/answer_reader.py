"""Reading the answer of a model: a text in, a value of the shape or the reason for none out.

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

from memlab.llm.bodies import as_list
from memlab.llm.faults import describe_first_fault

ONLY_THINKING = "only thinking, and no answer after it"
NO_OBJECT = "Invalid JSON: no object is in it"
UNFINISHED = "Invalid JSON: it ends within an object"
TOO_DEEP = "Invalid JSON: it is nested too deeply, or broken too often"
EXTRA_KEYS = "keys that were not asked for are left out of its answers"
NO_FIELD = "none of the keys that were asked for is in it"

_NAME = (
    r"(?:[\w:-]*(?:think|thought|reason|reflect|scratch_?pad|analysis|monologue|deliberat|draft"
    r"|brainstorm|planning|rationale)[\w:-]*|cot)"
)
_THINKING_KEY = re.compile(_NAME, re.IGNORECASE)
_TAG = re.compile(
    # <think>, </thinking>, <|START_THINKING|>, <seed:think>, ◁/think▷, with attributes or without;
    # [THINK] without; and of MedGemma, whose template has no words for them.
    r"(?P<mark>[<◁][|/]{0,2}|\[/?(?=(?:think|thinking|thoughts?|reasoning)\]))"
    rf"(?P<name>{_NAME})(?:\s[^<>]*)?\|?[>▷\]]|<unused9(?P<number>[45])>",
    re.IGNORECASE,
)
_CHANNEL = re.compile(r"<\|?channel\|?>", re.IGNORECASE)
_FINAL = re.compile(
    r"<\|?channel\|?>\s*final\b(?:[^{}<]|<\|constrain)*(?:<\|message\|>)?", re.IGNORECASE
)
_CHANNEL_ENDS = re.compile(r"<\|(?:end|return|call|start)\|>|<\|?channel\|?>", re.IGNORECASE)
_THINKING_ENDS = re.compile(r"<\|end\|>(?:\s*<\|start\|>\w*)?|<channel\|>", re.IGNORECASE)
_BARE_THINKING = re.compile(r"\s*analysis(?=[A-Z])")
_BARE_FINAL = re.compile(r"assistant\s*final")
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
    """Read of a list what fits, up to a bound that not every model keeps; one without any is refused."""

    def read_items(items: Any, read: Callable[[Any], Any]) -> Any:
        good: list[Any] = []
        for item in as_list(items):
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
    kept, begun, opened = list[str](), 0, False
    for tag in _tags_outside_strings(text):
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


def _tags_outside_strings(text: str) -> Iterator[re.Match[str]]:
    """Find the tags around thinking; inside a complete object they can only stand in a string."""
    inside, last = _complete_values(text, cut_is_error=False), _Found(None, 0, 0)
    for tag in _TAG.finditer(text):
        while last.end <= tag.start():
            last = next(inside, _Found(None, len(text), len(text) + 1))
        if tag.start() < last.start:
            yield tag


def _closes(tag: re.Match[str]) -> bool:
    if tag["number"]:
        return tag["number"] == "5"
    name = tag["name"].lower()
    if name.startswith(("end_", "end-")):
        return True
    return "/" in tag["mark"] or name.endswith(("_end", "-end"))


def _final_channel(text: str) -> str:
    """Give the text of the last channel called ``final``; all of it where there are no channels."""
    if _BARE_THINKING.match(text):
        return _after_last(text, [*_BARE_FINAL.finditer(text)])
    if not _CHANNEL.search(text):
        return text
    final = [*_FINAL.finditer(text)]
    return _after_last(text, final or [*_THINKING_ENDS.finditer(text)])


def _after_last(text: str, marks: list[re.Match[str]]) -> str:
    """Give what follows the last of some marks, up to the end of its channel; nothing without one."""
    if not marks:
        return ""
    begun = marks[-1].end()
    end = _CHANNEL_ENDS.search(text, begun)
    if end is None:
        return text[begun:]
    return text[begun : end.start()]


def _read_from_prose(text: str, shape: type[BaseModel]) -> tuple[BaseModel | None, str]:
    answer = strip_thinking(text)
    if text.strip() and not answer.strip():
        return None, ONLY_THINKING
    try:
        found = [*_complete_values(answer, cut_is_error=True)]
    except _UnreadableError as error:
        return None, str(error)
    first_fault = NO_OBJECT
    for each in reversed(found):
        value, fault = _fit_one(each.value, shape)
        if value is not None:
            return value, fault
        if first_fault == NO_OBJECT:
            first_fault = fault
    return None, first_fault


def _complete_values(text: str, *, cut_is_error: bool) -> Iterator[_Found]:
    """Find complete objects and lists, the outermost ones, in their order.

    :raises _UnreadableError: when the text ends within an object, or cannot be read within bounds.
    """
    at, retried, last_brace = 0, 0, text.rfind("}")
    for start in _BEGINNING.finditer(text):
        begun = start.start()
        if begun < at:
            continue
        try:
            value, at = _DECODER.raw_decode(text, begun)
        except json.JSONDecodeError as error:
            broken = error.pos
            if error.msg.startswith("Unterminated string"):
                broken = len(text)
            is_cut = broken > last_brace and _OBJECT_BEGINNING.match(text, begun)
            if cut_is_error and is_cut:
                raise _UnreadableError(UNFINISHED) from None
        except (RecursionError, ValueError):  # or a number of thousands of digits
            broken = len(text)
        else:
            yield _Found(value, begun, at)
            continue
        # An error counts the lines before it, fifty characters and more in the time of one.
        retried += broken - begun + broken // 50
        if retried > MOST_RETRIED:
            break
    if cut_is_error and retried > MOST_RETRIED:
        raise _UnreadableError(TOO_DEEP)


def _fit_one(value: Any, shape: type[BaseModel]) -> tuple[BaseModel | None, str]:
    """Fit a value, or the one that a wrapper around it holds."""
    fitting, fault = _fit(value, shape)
    if fitting is not None:
        return fitting, fault
    opened, note = None, ""
    for inner in _wrapped_values(value):
        within, extra = _fit(inner, shape)
        if within is None or within == opened:
            continue
        if opened is not None:
            return None, fault  # which of them is the answer?
        opened, note = within, extra
    if opened is None:
        return None, fault
    return opened, note


def _wrapped_values(value: Any) -> Iterator[Any]:
    """Give the objects and lists inside a value; those written as a string are read.

    Of a list, only the one that is alone in it: of several, none is the answer. What a key calls
    thinking or a draft is none.
    """
    if isinstance(value, dict):
        for name, inner in value.items():
            if not _THINKING_KEY.fullmatch(name):
                yield _object_in_string(inner)
    elif isinstance(value, list) and len(value) == 1:
        yield value[0]


def _object_in_string(value: Any) -> Any:
    """Read what is written as a string; anything else is given as it is."""
    if isinstance(value, str):
        with suppress(ValueError, RecursionError):
            return _DECODER.decode(value.strip())
    return value


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
        if value and not _has_field(value, shape):
            return None, NO_FIELD
        return fitting, ""
    kinds = {each["type"] for each in faults}
    if kinds != {"extra_forbidden"} or not _has_field(value, shape):
        return None, fault
    for each in faults:
        _remove(value, each["loc"])
    with suppress(ValidationError):
        return _validate(value, shape), EXTRA_KEYS
    return None, fault


def _validate(value: Any, shape: type[BaseModel]) -> BaseModel:
    # As JSON, whose rules differ from those for Python's values; half of a character pair becomes
    # a question mark, as in what is sent.
    written = json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")
    return shape.model_validate_json(written)


def _has_field(value: Any, shape: type[BaseModel]) -> bool:
    """Say whether an object has a key of the shape; where the shape is no object, any value has."""
    fields = shape.model_json_schema().get("properties")
    if fields is None:
        return True
    return isinstance(value, dict) and not fields.keys().isdisjoint(value)


def _remove(value: Any, place: tuple[int | str, ...]) -> None:
    """Remove a key; a place that names more than keys and positions is left as it is."""
    for step in place[:-1]:
        try:
            value = value[step]
        except (KeyError, IndexError, TypeError):
            return
    if isinstance(value, dict):
        value.pop(place[-1], None)
