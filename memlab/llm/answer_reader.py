"""Reading the answer of a model: a text in, a value of the shape or the reason for none out.

Thinking is cut off first, so that no draft is taken for the answer. Of what is left, the last
complete object that fits the shape is the answer.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from copy import deepcopy
from functools import lru_cache
from typing import Any, NamedTuple

from pydantic import BaseModel, ValidationError, ValidationInfo, WrapValidator

from memlab.llm.bodies import as_list
from memlab.llm.faults import describe_first_fault

ONLY_THINKING = "only thinking, and no answer after it"
NO_OBJECT = "Invalid JSON: no object is in it"
UNFINISHED = "Invalid JSON: it ends within an object"
TOO_DEEP = "Invalid JSON: it is nested too deeply, or broken too often"
EXTRA_KEYS = "keys that were not asked for are left out of its answers"
MISFITTING_ITEMS = "items that do not fit are left out of its answers"
FURTHER_ITEMS = "items beyond the number that was asked for are left out of its answers"
NO_FIELD = "none of the keys that were asked for is in it"

_THINKING = re.compile(
    "think|thought|reason|reflect|scratch_?pad|analysis|monologue|deliberat|draft|brainstorm"
    "|planning|rationale",
    re.IGNORECASE,
)
"""Within the names of tags and keys that hold thinking."""
_BRACKETED = ("think", "thinking", "thought", "thoughts", "reasoning")
"""Names in brackets; what stands there is more often prose."""
_PAIRS = {"<": ">", "◁": "▷", "[": "]"}
_TAG = re.compile(
    # <think>, </thinking>, <|START_THINKING|>, <seed:think>, ◁/think▷, with attributes or without.
    # Any name: to look for some within it takes the square of its length.
    r"(?:(?P<angle><)|[◁\[])(?P<slash>[|/]{0,2}+)(?P<name>[\w:-]++)"
    r"(?(angle)(?:\s[^<>]*+)?\|?>|[▷\]])"
)
_WITHOUT_NAMES = {"unused94": False, "unused95": True}
"""Tags of MedGemma, whose template has no words for them, and whether each closes."""
_CHANNEL = re.compile(r"<\|channel\|?>|<channel\|>", re.IGNORECASE)
_FINAL = re.compile(
    rf"(?:{_CHANNEL.pattern})\s*final\b(?:[^{{}}<]|<\|constrain)*(?:<\|message\|>)?",
    re.IGNORECASE,
)
_CHANNEL_ENDS = re.compile(rf"<\|(?:end|return|call|start)\|>|{_CHANNEL.pattern}", re.IGNORECASE)
_THINKING_ENDS = re.compile(r"<\|end\|>(?:\s*<\|start\|>\w*)?|<channel\|>", re.IGNORECASE)
_BARE_THINKING = re.compile(r"\s*analysis(?=[A-Z])")
_BARE_FINAL = re.compile(r"assistant\s*final")
"""Channels where the server has left out what stands around their names."""
_CALLED = ("name", "type", "function", "tool")
_ARGUMENTS = ("arguments", "parameters", "args", "input", "properties")
"""Keys of a call, and of what it is called with."""

MOST_RETRIED = 10_000_000
"""Characters that are read again after beginnings of objects that are none."""

MOST_OBJECTS, MOST_WRAPPED = 1_000, 50
"""Objects of a text that are tried, the last ones; and values of what may be a wrapper around one.
"""

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

    :returns: the value, with what was left out of it, such as :data:`EXTRA_KEYS`; or ``None`` and
        the reason in one line, which quotes nothing of the text.

    >>> from pydantic import BaseModel
    >>> from memlab.llm.answer_reader import read_answer
    >>> class Colour(BaseModel):
    ...     name: str
    >>> read_answer('<think>{"name": "red"}? No.</think>It is {"name": "blue"}.', Colour)
    (Colour(name='blue'), '')
    >>> read_answer('<think>{"name": "red"}', Colour)
    (None, 'only thinking, and no answer after it')
    """
    whole = _whole_value(text)
    if whole is None:
        return _read_from_prose(text, shape)
    if isinstance(whole, str):  # the object as a JSON string
        return _read_from_prose(whole, shape)
    return _fit_one(whole, shape)


def fitting_items(most: int) -> WrapValidator:
    """Read of a list what fits, up to a bound that not every model keeps.

    One without any is refused.

    Of an item that has more keys than its shape allows, the others are read. What is left out is
    noted in the set that is the context of the validation.
    """

    def read_items(items: Any, read: Callable[[Any], Any], info: ValidationInfo) -> Any:
        good, notes = list[Any](), set[str]()
        for item in as_list(items):
            try:
                good += read([item])
            except ValidationError as error:
                reduced = _without_extras([item], error)
                with suppress(ValidationError):
                    if reduced is not None and reduced != [{}]:
                        good += read(reduced)
                        notes.add(EXTRA_KEYS)
                        continue
                notes.add(MISFITTING_ITEMS)
        if not good:
            return read(items)
        if len(good) > most:
            notes.add(FURTHER_ITEMS)
        if isinstance(info.context, set):
            info.context.update(notes)
        return good[:most]

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
    if isinstance(_whole_value(text), dict | list):
        return text
    text = _final_channel(text)
    kept, begun, opened = list[str](), 0, False
    for tag in _outside_values(_TAG, text):
        if not _is_thinking_tag(tag):
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


def _whole_value(text: str) -> Any:
    """Give the value of a text that is JSON and nothing else; ``None`` for any other."""
    with suppress(ValueError, RecursionError):
        return _DECODER.decode(text.strip().removeprefix("\ufeff"))
    return None


def _outside_values(mark: re.Pattern[str], text: str) -> Iterator[re.Match[str]]:
    """Find a mark where it is one; inside a complete object it can only stand in a string."""
    inside, last = _complete_values(text, cut_is_error=False), _Found(None, 0, 0)
    for found in mark.finditer(text):
        while last.end <= found.start():
            last = next(inside, _Found(None, len(text), len(text) + 1))
        if found.start() < last.start:
            yield found


def _is_thinking_tag(tag: re.Match[str]) -> bool:
    """Say whether a tag stands around thinking, by its name and its form."""
    name = tag["name"].lower()
    if tag[0][-1] != _PAIRS[tag[0][0]]:
        return False
    if tag[0][0] == "[":
        return name in _BRACKETED and "|" not in tag["slash"]
    return name in _WITHOUT_NAMES or _is_thinking_name(name)


def _is_thinking_name(name: str) -> bool:
    return name.lower() == "cot" or _THINKING.search(name) is not None


def _closes(tag: re.Match[str]) -> bool:
    name = tag["name"].lower()
    if name in _WITHOUT_NAMES:
        return _WITHOUT_NAMES[name]
    if name.startswith(("end_", "end-")):
        return True
    return "/" in tag["slash"] or name.endswith(("_end", "-end"))


def _final_channel(text: str) -> str:
    """Give the text of the last channel called ``final``; all of it where there are no channels."""
    if _BARE_THINKING.match(text):
        return _after_last(text, [*_outside_values(_BARE_FINAL, text)])
    if next(_outside_values(_CHANNEL, text), None) is None:
        return text
    final = [*_outside_values(_FINAL, text)]
    return _after_last(text, final or [*_outside_values(_THINKING_ENDS, text)])


def _after_last(text: str, marks: list[re.Match[str]]) -> str:
    """Read what follows the last of some marks, up to the end of its channel, if there is one."""
    if not marks:
        return ""
    rest = text[marks[-1].end() :]
    end = next(_outside_values(_CHANNEL_ENDS, rest), None)
    if end is None:
        return rest
    return rest[: end.start()]


def _read_from_prose(text: str, shape: type[BaseModel]) -> tuple[BaseModel | None, str]:
    answer = strip_thinking(text)
    if text.strip() and not answer.strip():
        return None, ONLY_THINKING
    try:
        found = [*_complete_values(answer, cut_is_error=True)]
    except _UnreadableError as error:
        return None, str(error)
    # An empty object may fit where all fields have defaults, and is mostly one of prose.
    found = [each for each in found if each.value] or found
    first_fault = NO_OBJECT
    for each in found[: -MOST_OBJECTS - 1 : -1]:  # the last ones, the last of them first
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
    """Fit a value as it stands, else the one that a wrapper around it holds, else without extra
    keys.

    What a call is called with comes first. Where a value without its extra keys fits, and another
    one inside it too, neither is the answer.
    """
    for inner in _call_arguments(value, shape):
        within, note = _fit_with_or_without_extras(inner, shape)
        if within is not None:
            return within, note
    fitting, fault = _fit(value, shape)
    if fitting is not None:
        return fitting, fault
    wrapped = [*_wrapped_values(value)]
    candidates = [_fit(inner, shape) for inner in wrapped]
    opened = _only_fitting(candidates)
    if opened is None and not _any_fitting(candidates):
        candidates = [_fit_without_extras(inner, shape) for inner in wrapped]
        opened = _only_fitting(candidates)
    reduced = _fit_without_extras(value, shape)
    if reduced[0] is None:
        return opened or (None, fault)
    if _any_fitting(candidates) and (opened is None or opened[0] != reduced[0]):
        return None, fault
    return reduced


def _any_fitting(candidates: list[tuple[BaseModel | None, str]]) -> bool:
    return any(fitting is not None for fitting, _ in candidates)


def _only_fitting(
    candidates: list[tuple[BaseModel | None, str]],
) -> tuple[BaseModel, str] | None:
    """Give what fits, where it is one value: of several, which is the answer?"""
    only: tuple[BaseModel, str] | None = None
    for fitting, note in candidates:
        if fitting is None:
            continue
        if only is not None and only[0] != fitting:
            return None
        only = only or (fitting, note)
    return only


def _call_arguments(value: Any, shape: type[BaseModel]) -> Iterator[Any]:
    """Give what a call is called with, where the shape has no such key itself."""
    if not isinstance(value, dict) or value.keys().isdisjoint(_CALLED):
        return
    for name in _ARGUMENTS:
        if name in value and name not in (_field_names(shape) or ()):
            yield _object_in_string(value[name])


def _wrapped_values(value: Any) -> Iterator[Any]:
    """Give the objects and lists inside a value; those written as a string are read.

    Of a list, only the one that is alone in it: of several, none is the answer. What a key calls
    thinking or a draft is none, nor is what is empty.
    """
    if isinstance(value, dict) and len(value) <= MOST_WRAPPED:
        for name, inner in value.items():
            read = _object_in_string(inner)
            if read and not _is_thinking_name(name):
                yield read
    elif isinstance(value, list) and len(value) == 1:
        yield value[0]


def _object_in_string(value: Any) -> Any:
    """Read what is written as a string; anything else is given as it is."""
    if isinstance(value, str):
        with suppress(ValueError, RecursionError):
            return _DECODER.decode(value.strip())
    return value


def _fit(value: Any, shape: type[BaseModel]) -> tuple[BaseModel | None, str]:
    """Fit a value as it stands."""
    notes = set[str]()
    try:
        fitting = _validate(value, shape, notes)
    except RecursionError:
        return None, TOO_DEEP
    except ValidationError as error:
        return None, describe_first_fault(error, shape)
    # Where all fields have defaults, anything would fit.
    if value and not _has_field(value, shape):
        return None, NO_FIELD
    return fitting, "; ".join(sorted(notes))


def _fit_without_extras(value: Any, shape: type[BaseModel]) -> tuple[BaseModel | None, str]:
    """Fit a value without the keys that the shape forbids.

    One that has none of them does not fit so.
    """
    reduced, notes = None, {EXTRA_KEYS}
    try:
        _validate(value, shape, set())
    except RecursionError:
        return None, TOO_DEEP
    except ValidationError as error:
        if _has_field(value, shape):
            reduced = _without_extras(value, error)
    if reduced is not None:
        with suppress(ValidationError):
            return _validate(reduced, shape, notes), "; ".join(sorted(notes))
    return None, ""


def _fit_with_or_without_extras(value: Any, shape: type[BaseModel]) -> tuple[BaseModel | None, str]:
    fitting, note = _fit(value, shape)
    if fitting is None:
        return _fit_without_extras(value, shape)
    return fitting, note


def _validate(value: Any, shape: type[BaseModel], notes: set[str]) -> BaseModel:
    """Fit a value; what is left out of its lists is noted."""
    # As JSON, whose rules differ from those for Python's values; half of a character pair becomes
    # a question mark, as in what is sent.
    written = json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")
    return shape.model_validate_json(written, context=notes)


def _has_field(value: Any, shape: type[BaseModel]) -> bool:
    """Say whether an object has a key of the shape; where the shape is no object, any value has."""
    fields = _field_names(shape)
    if fields is None:
        return True
    return isinstance(value, dict) and not fields.isdisjoint(value)


@lru_cache(maxsize=64)
def _field_names(shape: type[BaseModel]) -> frozenset[str] | None:
    """Give the keys of a shape; ``None`` where it is no object."""
    fields = shape.model_json_schema().get("properties")
    if fields is None:
        return None
    return frozenset(fields)


def _without_extras(value: Any, error: ValidationError) -> Any:
    """Give a value without the keys that a shape forbids.

    ``None`` where that is not all that is wrong.
    """
    faults = error.errors(include_input=False, include_url=False, include_context=False)
    if {each["type"] for each in faults} != {"extra_forbidden"}:
        return None
    reduced = deepcopy(value)
    for each in faults:
        _remove(reduced, each["loc"])
    return reduced


def _remove(value: Any, place: tuple[int | str, ...]) -> None:
    """Remove a key; a place that names more than keys and positions is left as it is."""
    for step in place[:-1]:
        try:
            value = value[step]
        except (KeyError, IndexError, TypeError):
            return
    if isinstance(value, dict):
        value.pop(place[-1], None)
