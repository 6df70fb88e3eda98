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

from memlab.llm.response_bodies import JsonValue, list_or_empty
from memlab.llm.service_faults import describe_first_fault

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

ValueAndNote = tuple[BaseModel | None, str]
"""A value of the shape and what was left out of it, or ``None`` and why there is none."""

_DECODER = json.JSONDecoder(strict=False)  # a line break within a string is read as one


class _FoundJson(NamedTuple):
    """A complete object or list of a text, and where it stands."""

    value: Any
    start: int
    end: int


class _UnreadableError(ValueError):
    """No object can be taken from a text; says why."""


def read_answer(answer_text: str, shape: type[BaseModel]) -> ValueAndNote:
    """Read the last complete object that fits the shape, or say why there is none.

    Objects may stand in prose, in code fences and in one wrapper, such as
    ``{"name": …, "arguments": …}``. Keys that the shape forbids are left out. A text that ends
    within an object has no answer: what stands before may be a draft.

    :returns: the value, with what was left out of it, such as :data:`EXTRA_KEYS`; or ``None`` and
        the reason in one line, which quotes nothing of the text.

    >>> from pydantic import BaseModel
    >>> from memlab.llm.answer_parsing import read_answer
    >>> class Colour(BaseModel):
    ...     name: str
    >>> read_answer('<think>{"name": "red"}? No.</think>It is {"name": "blue"}.', Colour)
    (Colour(name='blue'), '')
    >>> read_answer('<think>{"name": "red"}', Colour)
    (None, 'only thinking, and no answer after it')
    """
    whole_value = _parse_whole_json_or_none(answer_text)
    if whole_value is None:
        return _read_last_fitting_object(answer_text, shape)
    if isinstance(whole_value, str):  # the object as a JSON string
        return _read_last_fitting_object(whole_value, shape)
    return _fit_or_unwrap(whole_value, shape)


def fitting_items(most: int) -> WrapValidator:
    """Read of a list what fits, up to a bound that not every model keeps.

    One without any is refused.

    Of an item that has more keys than its shape allows, the others are read. What is left out is
    noted in the set that is the context of the validation.
    """

    def read_fitting_items(items: Any, read: Callable[[Any], Any], info: ValidationInfo) -> Any:
        fitting_values = list[Any]()
        fault_notes = set[str]()
        for item in list_or_empty(items):
            try:
                fitting_values += read([item])
            except ValidationError as error:
                reduced_items = _copy_without_extra_keys_or_none([item], error)
                with suppress(ValidationError):
                    if reduced_items is not None and reduced_items != [{}]:
                        fitting_values += read(reduced_items)
                        fault_notes.add(EXTRA_KEYS)
                        continue
                fault_notes.add(MISFITTING_ITEMS)
        if not fitting_values:
            return read(items)
        if len(fitting_values) > most:
            fault_notes.add(FURTHER_ITEMS)
        if isinstance(info.context, set):
            info.context.update(fault_notes)
        return fitting_values[:most]

    return WrapValidator(read_fitting_items)


def strip_thinking(text: str) -> str:
    """Give a text without what the model thought before it answered.

    Thinking that is not closed goes to the end; what closes thinking that was opened in the prompt
    ends it. A tag inside a JSON string is no tag.

    >>> from memlab.llm.answer_parsing import strip_thinking
    >>> strip_thinking("<think>a, b?</think>b")
    'b'
    >>> strip_thinking("a, b?</think>b")
    'b'
    >>> strip_thinking("b <think>or a")
    'b '
    """
    if isinstance(_parse_whole_json_or_none(text), dict | list):
        return text
    text = _final_channel_or_whole_text(text)
    answer_parts = list[str]()
    part_start = 0
    is_thinking = False
    for thinking_tag in _matches_outside_json(_TAG, text):
        if not _is_thinking_tag(thinking_tag):
            continue
        if not _is_closing_tag(thinking_tag):
            if not is_thinking:
                answer_parts.append(text[part_start : thinking_tag.start()])
            is_thinking = True
        else:
            if not is_thinking:
                answer_parts.clear()  # it was opened before the text begins
            is_thinking = False
        part_start = thinking_tag.end()
    if not is_thinking:
        answer_parts.append(text[part_start:])
    return "".join(answer_parts)


def _parse_whole_json_or_none(text: str) -> JsonValue:
    """Give the value of a text that is JSON and nothing else; ``None`` for any other."""
    with suppress(ValueError, RecursionError):
        return _DECODER.decode(text.strip().removeprefix("\ufeff"))
    return None


def _matches_outside_json(pattern: re.Pattern[str], text: str) -> Iterator[re.Match[str]]:
    """Find a mark where it is one; inside a complete object it can only stand in a string."""
    complete_values = _find_outermost_json(text, raises_if_cut=False)
    current_value = _FoundJson(None, 0, 0)
    for pattern_match in pattern.finditer(text):
        while current_value.end <= pattern_match.start():
            current_value = next(complete_values, _FoundJson(None, len(text), len(text) + 1))
        if pattern_match.start() < current_value.start:
            yield pattern_match


def _is_thinking_tag(tag: re.Match[str]) -> bool:
    """Say whether a tag stands around thinking, by its name and its form."""
    tag_name = tag["name"].lower()
    if tag[0][-1] != _PAIRS[tag[0][0]]:
        return False
    if tag[0][0] == "[":
        return tag_name in _BRACKETED and "|" not in tag["slash"]
    return tag_name in _WITHOUT_NAMES or _is_thinking_name(tag_name)


def _is_thinking_name(tag_or_key_name: str) -> bool:
    return tag_or_key_name.lower() == "cot" or _THINKING.search(tag_or_key_name) is not None


def _is_closing_tag(tag: re.Match[str]) -> bool:
    tag_name = tag["name"].lower()
    if tag_name in _WITHOUT_NAMES:
        return _WITHOUT_NAMES[tag_name]
    if tag_name.startswith(("end_", "end-")):
        return True
    return "/" in tag["slash"] or tag_name.endswith(("_end", "-end"))


def _final_channel_or_whole_text(text: str) -> str:
    """Give the text of the last channel called ``final``; all of it where there are no channels."""
    if _BARE_THINKING.match(text):
        return _text_after_last_mark_or_empty(text, [*_matches_outside_json(_BARE_FINAL, text)])
    if next(_matches_outside_json(_CHANNEL, text), None) is None:
        return text
    final_marks = [*_matches_outside_json(_FINAL, text)]
    return _text_after_last_mark_or_empty(
        text, final_marks or [*_matches_outside_json(_THINKING_ENDS, text)]
    )


def _text_after_last_mark_or_empty(text: str, marks: list[re.Match[str]]) -> str:
    """Read what follows the last of some marks, up to the end of its channel, if there is one."""
    if not marks:
        return ""
    following_text = text[marks[-1].end() :]
    end_mark = next(_matches_outside_json(_CHANNEL_ENDS, following_text), None)
    if end_mark is None:
        return following_text
    return following_text[: end_mark.start()]


def _read_last_fitting_object(text: str, shape: type[BaseModel]) -> ValueAndNote:
    answer_text = strip_thinking(text)
    if text.strip() and not answer_text.strip():
        return None, ONLY_THINKING
    try:
        complete_values = [*_find_outermost_json(answer_text, raises_if_cut=True)]
    except _UnreadableError as error:
        return None, str(error)
    # An empty object may fit where all fields have defaults, and is mostly one of prose.
    complete_values = [
        candidate for candidate in complete_values if candidate.value
    ] or complete_values
    first_fault = NO_OBJECT
    for candidate in complete_values[
        : -MOST_OBJECTS - 1 : -1
    ]:  # the last ones, the last of them first
        fitting_value, fault = _fit_or_unwrap(candidate.value, shape)
        if fitting_value is not None:
            return fitting_value, fault
        if first_fault == NO_OBJECT:
            first_fault = fault
    return None, first_fault


def _find_outermost_json(text: str, *, raises_if_cut: bool) -> Iterator[_FoundJson]:
    """Find complete objects and lists, the outermost ones, in their order.

    :raises _UnreadableError: when the text ends within an object, or cannot be read within bounds.
    """
    value_end = 0
    n_retried_chars = 0
    last_brace = text.rfind("}")
    for opening_match in _BEGINNING.finditer(text):
        value_start = opening_match.start()
        if value_start < value_end:
            continue
        try:
            decoded_value, value_end = _DECODER.raw_decode(text, value_start)
        except json.JSONDecodeError as error:
            error_place = error.pos
            if error.msg.startswith("Unterminated string"):
                error_place = len(text)
            is_cut = error_place > last_brace and _OBJECT_BEGINNING.match(text, value_start)
            if raises_if_cut and is_cut:
                raise _UnreadableError(UNFINISHED) from None
        except (RecursionError, ValueError):  # or a number of thousands of digits
            error_place = len(text)
        else:
            yield _FoundJson(decoded_value, value_start, value_end)
            continue
        # An error counts the lines before it, fifty characters and more in the time of one.
        n_retried_chars += error_place - value_start + error_place // 50
        if n_retried_chars > MOST_RETRIED:
            break
    if raises_if_cut and n_retried_chars > MOST_RETRIED:
        raise _UnreadableError(TOO_DEEP)


def _fit_or_unwrap(json_value: JsonValue, shape: type[BaseModel]) -> ValueAndNote:
    """Fit a value as it stands, else the one that a wrapper around it holds, else without extra
    keys.

    What a call is called with comes first. Where a value without its extra keys fits, and another
    one inside it too, neither is the answer.
    """
    for inner_value in _arguments_of_tool_call(json_value, shape):
        inner_fitting, note = _fit_with_or_without_extra_keys(inner_value, shape)
        if inner_fitting is not None:
            return inner_fitting, note
    fitting, fault = _fit_as_it_stands(json_value, shape)
    if fitting is not None:
        return fitting, fault
    wrapped_values = [*_values_inside_wrapper(json_value)]
    candidates = [_fit_as_it_stands(inner_value, shape) for inner_value in wrapped_values]
    unwrapped_fitting = _single_fitting_value(candidates)
    if unwrapped_fitting is None and not _has_any_fitting(candidates):
        candidates = [_fit_without_extra_keys(inner_value, shape) for inner_value in wrapped_values]
        unwrapped_fitting = _single_fitting_value(candidates)
    reduced_fitting = _fit_without_extra_keys(json_value, shape)
    if reduced_fitting[0] is None:
        return unwrapped_fitting or (None, fault)
    if _has_any_fitting(candidates) and (
        unwrapped_fitting is None or unwrapped_fitting[0] != reduced_fitting[0]
    ):
        return None, fault
    return reduced_fitting


def _has_any_fitting(candidates: list[ValueAndNote]) -> bool:
    return any(fitting is not None for fitting, _ in candidates)


def _single_fitting_value(
    candidates: list[ValueAndNote],
) -> tuple[BaseModel, str] | None:
    """Give what fits, where it is one value: of several, which is the answer?"""
    only_candidate: tuple[BaseModel, str] | None = None
    for fitting, note in candidates:
        if fitting is None:
            continue
        if only_candidate is not None and only_candidate[0] != fitting:
            return None
        only_candidate = only_candidate or (fitting, note)
    return only_candidate


def _arguments_of_tool_call(json_value: JsonValue, shape: type[BaseModel]) -> Iterator[JsonValue]:
    """Give what a call is called with, where the shape has no such key itself."""
    if not isinstance(json_value, dict) or json_value.keys().isdisjoint(_CALLED):
        return
    for argument_name in _ARGUMENTS:
        if argument_name in json_value and argument_name not in (
            _top_level_keys_of_shape(shape) or ()
        ):
            yield _parse_if_string(json_value[argument_name])


def _values_inside_wrapper(json_value: JsonValue) -> Iterator[JsonValue]:
    """Give the objects and lists inside a value; those written as a string are read.

    Of a list, only the one that is alone in it: of several, none is the answer. What a key calls
    thinking or a draft is none, nor is what is empty.
    """
    if isinstance(json_value, dict) and len(json_value) <= MOST_WRAPPED:
        for field_name, inner_value in json_value.items():
            inner_object = _parse_if_string(inner_value)
            if inner_object and not _is_thinking_name(field_name):
                yield inner_object
    elif isinstance(json_value, list) and len(json_value) == 1:
        yield json_value[0]


def _parse_if_string(json_value: JsonValue) -> JsonValue:
    """Read what is written as a string; anything else is given as it is."""
    if isinstance(json_value, str):
        with suppress(ValueError, RecursionError):
            return _DECODER.decode(json_value.strip())
    return json_value


def _fit_as_it_stands(json_value: JsonValue, shape: type[BaseModel]) -> ValueAndNote:
    """Fit a value as it stands."""
    fault_notes = set[str]()
    try:
        fitting = _validate_and_note_left_out(json_value, shape, fault_notes)
    except RecursionError:
        return None, TOO_DEEP
    except ValidationError as error:
        return None, describe_first_fault(error, shape)
    # Where all fields have defaults, anything would fit.
    if json_value and not _has_key_of_shape(json_value, shape):
        return None, NO_FIELD
    return fitting, "; ".join(sorted(fault_notes))


def _fit_without_extra_keys(json_value: JsonValue, shape: type[BaseModel]) -> ValueAndNote:
    """Fit a value without the keys that the shape forbids.

    One that has none of them does not fit so.
    """
    reduced_value = None
    fault_notes = {EXTRA_KEYS}
    try:
        _validate_and_note_left_out(json_value, shape, set())
    except RecursionError:
        return None, TOO_DEEP
    except ValidationError as error:
        if _has_key_of_shape(json_value, shape):
            reduced_value = _copy_without_extra_keys_or_none(json_value, error)
    if reduced_value is not None:
        with suppress(ValidationError):
            return _validate_and_note_left_out(reduced_value, shape, fault_notes), "; ".join(
                sorted(fault_notes)
            )
    return None, ""


def _fit_with_or_without_extra_keys(json_value: JsonValue, shape: type[BaseModel]) -> ValueAndNote:
    fitting, note = _fit_as_it_stands(json_value, shape)
    if fitting is None:
        return _fit_without_extra_keys(json_value, shape)
    return fitting, note


def _validate_and_note_left_out(
    json_value: JsonValue, shape: type[BaseModel], left_out_notes: set[str]
) -> BaseModel:
    """Fit a value; what is left out of its lists is noted."""
    # As JSON, whose rules differ from those for Python's values; half of a character pair becomes
    # a question mark, as in what is sent.
    written = json.dumps(json_value, ensure_ascii=False).encode("utf-8", "replace")
    return shape.model_validate_json(written, context=left_out_notes)


def _has_key_of_shape(json_value: JsonValue, shape: type[BaseModel]) -> bool:
    """Say whether an object has a key of the shape; where the shape is no object, any value has."""
    field_names = _top_level_keys_of_shape(shape)
    if field_names is None:
        return True
    return isinstance(json_value, dict) and not field_names.isdisjoint(json_value)


@lru_cache(maxsize=64)
def _top_level_keys_of_shape(shape: type[BaseModel]) -> frozenset[str] | None:
    """Give the keys of a shape; ``None`` where it is no object."""
    schema_fields = shape.model_json_schema().get("properties")
    if schema_fields is None:
        return None
    return frozenset(schema_fields)


def _copy_without_extra_keys_or_none(json_value: JsonValue, error: ValidationError) -> JsonValue:
    """Give a value without the keys that a shape forbids.

    ``None`` where that is not all that is wrong.
    """
    faults = error.errors(include_input=False, include_url=False, include_context=False)
    if {fault["type"] for fault in faults} != {"extra_forbidden"}:
        return None
    reduced_value = deepcopy(json_value)
    for fault in faults:
        _delete_at_key_path(reduced_value, fault["loc"])
    return reduced_value


def _delete_at_key_path(json_value: JsonValue, key_path: tuple[int | str, ...]) -> None:
    """Remove a key; a place that names more than keys and positions is left as it is."""
    for path_step in key_path[:-1]:
        try:
            json_value = json_value[path_step]
        except (KeyError, IndexError, TypeError):
            return
    if isinstance(json_value, dict):
        json_value.pop(key_path[-1], None)
