"""The reader of answers: what is taken of a text, case by case, and that nothing makes it fail."""

from __future__ import annotations

import json
import time
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from memlab.llm import fitting_items
from memlab.llm.answer_parsing import (
    EXTRA_KEYS,
    FURTHER_ITEMS,
    MISFITTING_ITEMS,
    NO_FIELD,
    NO_OBJECT,
    ONLY_THINKING,
    TOO_DEEP,
    UNFINISHED,
    read_answer,
    strip_thinking,
)


class Verdict(BaseModel, extra="forbid"):
    verdict: Literal["right", "wrong"]
    why: str


class Relaxed(BaseModel):
    """All of it has defaults, and other keys are ignored."""

    n: int = 0
    inner: dict[str, int] = Field(default_factory=dict)


RIGHT = '{"verdict": "right", "why": "both say Turku"}'
WRONG = '{"verdict": "wrong", "why": "a draft"}'
VALUE = Verdict(verdict="right", why="both say Turku")

TAKEN = {
    "nothing else": RIGHT,
    "space around": f"\n\n \ufeff{RIGHT}\n",
    "a fence": f"```json\n{RIGHT}\n```",
    "a fence in capitals, and words": f"Sure!\n```JSON\n{RIGHT}\n```\nAnything else?",
    "a fence and a remark with braces": f"```\n{RIGHT}\n```\nNote: replace {{city}} if you like.",
    "prose with braces before": f"The set {{a, b}} comes to mind, or {{}}. {RIGHT}",
    "an ellipsis in an object before": f'An object like {{"verdict": …}}, so: {RIGHT}',
    "an ellipsis in an object after": f'{RIGHT}\nIts form is {{"verdict": ..., "why": ...}}.',
    "an open brace in prose": f"A brace {{ opens it. {RIGHT}",
    "a footnote": f"As in [1] and [a]: {RIGHT} [2]",
    "twice": f"{RIGHT}\n{RIGHT}",
    "a draft in prose, then another": f"First: {WRONG}. On reflection: {RIGHT}",
    "another object after it": f'{RIGHT}\n{{"confidence": 0.9}}',
    "thinking": f"<think>\nEasy.\n</think>\n\n{RIGHT}",
    "thinking with a draft": f"<think>Draft: {WRONG} hmm</think>{RIGHT}",
    "thinking with a broken draft": f'<think>{{"verdict": "wro</think>{RIGHT}',
    "thinking with a lone quote": f'<think>5" or {{"x</think>\n{RIGHT}',
    "thinking opened by the template": f"{WRONG}? No: {{a, b}}.\n</think>\n\n{RIGHT}",
    "thinking with an attribute": f'<think time="3">{WRONG}</think>{RIGHT}',
    "thinking within thinking": f"<think>a<think>b</think>{WRONG}</think>{RIGHT}",
    "thinking again": f"<think>{WRONG}</think>hm<think>{WRONG}</think>{RIGHT}",
    "thinking after it": f"{RIGHT}\n<think>Was that {WRONG}?</think>",
    "thinking after it, unclosed": f"{RIGHT}\n<think>Or {WRONG}",
    "capitals": f"<THINK>{WRONG}</THINK>{RIGHT}",
    "brackets": f"[THINK]{WRONG}[/THINK]{RIGHT}",
    "thinking in full": f"<thinking>{WRONG}</thinking>{RIGHT}",
    "a thought": f"<thought>{WRONG}</thought> {RIGHT}",
    "reasoning": f"<reasoning>{WRONG}</reasoning>\n<answer>{RIGHT}</answer>",
    "a draft": f"<draft>{WRONG}</draft>{RIGHT}",
    "a name space": f"<seed:think>{WRONG}</seed:think>{RIGHT}",
    "bars": f"<|START_THINKING|>{WRONG}<|END_THINKING|><|START_RESPONSE|>{RIGHT}<|END_RESPONSE|>",
    "begin and end": f"<|begin_of_thought|>{WRONG}<|end_of_thought|>{RIGHT}",
    "triangles": f"◁think▷{WRONG}◁/think▷{RIGHT}",
    "tokens without names": f"<unused94>thought\n{WRONG}<unused95>{RIGHT}",
    "channels": (
        f"<|channel|>analysis<|message|>need {WRONG}<|end|>"
        f"<|start|>assistant<|channel|>final<|message|>{RIGHT}<|return|>"
    ),
    "channels with a constraint": (
        f"<|channel|>analysis<|message|>{WRONG}<|end|><|start|>assistant"
        f"<|channel|>final <|constrain|>json<|message|>{RIGHT}"
    ),
    "channels whose marks are lost": f"analysisWe need {WRONG}.assistantfinal{RIGHT}",
    "a channel that is closed": f"<|channel>thought\n{WRONG}<channel|>{RIGHT}",
    "a channel that ends, then the answer": f"<|channel|>analysis<|message|>{WRONG}<|end|>{RIGHT}",
    "a call": json.dumps({"name": "Verdict", "arguments": json.loads(RIGHT)}),
    "a call whose arguments are text": json.dumps({"name": "Verdict", "arguments": RIGHT}),
    "properties": json.dumps({"type": "object", "properties": json.loads(RIGHT)}),
    "an answer in a fence, wrapped": f'```json\n{{"Verdict": {RIGHT}}}\n```',
    "the same twice in a wrapper": f'{{"first": {RIGHT}, "final": {RIGHT}}}',
    "a wrapper with a draft": f'{{"draft": {WRONG}, "final": {RIGHT}}}',
    "a list of one": f"[{RIGHT}]",
    "as a string": json.dumps(RIGHT),
    "as a string within a fence": json.dumps(f"```json\n{RIGHT}\n```"),
}
"""Each is read as :data:`VALUE`."""


@pytest.mark.parametrize("case", TAKEN)
def test_the_answer_is_taken(case: str) -> None:
    assert read_answer(TAKEN[case], Verdict) == (VALUE, "")


NOT_TAKEN = {
    "nothing": ("", NO_OBJECT),
    "words": ("I would rather not.", NO_OBJECT),
    "thinking alone": (f"<think>{WRONG}</think>", ONLY_THINKING),
    "thinking that is not closed": (f"<think>Draft: {WRONG}. But then", ONLY_THINKING),
    "thinking that is not closed, in brackets": (f"[THINK]{WRONG}", ONLY_THINKING),
    "thinking without its end, other words": (f"<thinking>\n{WRONG}\n", ONLY_THINKING),
    "a draft, and an answer in words": (f"<think>{WRONG}</think>\nIt is right.", NO_OBJECT),
    "a draft, opened by the template, and words": (f"{WRONG}\n</think>\nIt is right.", NO_OBJECT),
    "a draft, its end, nothing": (f"{WRONG}</think>", ONLY_THINKING),
    "an open thought in prose": (f"Let me <think> about {WRONG}", NO_OBJECT),
    "channels without a final one": (
        f"<|channel|>analysis<|message|>Draft {WRONG}",
        ONLY_THINKING,
    ),
    "channels without marks or a final one": (f"analysisWe need {WRONG}", ONLY_THINKING),
    "a draft, and the answer cut": (f'{WRONG}\nNo: {{"verdict": "ri', UNFINISHED),
    "a draft, and the answer cut within a word": (f'{WRONG}\nNo: {{"verdict": ri', UNFINISHED),
    "cut within a list of what would fit": (f'{{"all": [{WRONG}, {WRONG}', UNFINISHED),
    "cut within its last string": (RIGHT[:-4], UNFINISHED),
    "a draft in an object": (
        f'{{"thinking": {WRONG}, "answer": "right"}}',
        "verdict: Field required",
    ),
    "two in a wrapper": (f'{{"a": {RIGHT}, "b": {WRONG}}}', "verdict: Field required"),
    "two in a list": (f"[{RIGHT}, {WRONG}]", "Input should be an object"),
    "two wrappers": (f'{{"a": {{"b": {RIGHT}}}}}', "verdict: Field required"),
    "the schema": (
        json.dumps(Verdict.model_json_schema()),
        "verdict: Field required",
    ),
    "another word": (
        '{"verdict": "perhaps", "why": ""}',
        "verdict: Input should be 'right' or 'wrong'",
    ),
    "too deep": ("[" * 200_000, TOO_DEEP),
    "too deep, in objects": ('{"a":' * 100_000, TOO_DEEP),
    "a large number": ('{"verdict": ' + "9" * 5_000 + "}", NO_OBJECT),
}
"""Texts, and why they have no answer."""


@pytest.mark.parametrize("case", NOT_TAKEN)
def test_the_reason_is_given(case: str) -> None:
    text, reason = NOT_TAKEN[case]
    assert read_answer(text, Verdict) == (None, reason)


def test_keys_that_were_not_asked_for_are_left_out_and_mentioned() -> None:
    more = json.loads(RIGHT) | {"confidence": 0.9, "thoughts": {"a": 1}}
    assert read_answer(json.dumps(more), Verdict) == (VALUE, EXTRA_KEYS)
    assert read_answer(json.dumps({"result": more}), Verdict) == (VALUE, EXTRA_KEYS)

    class Verdicts(BaseModel, extra="forbid"):
        verdicts: list[Verdict]

    listed = json.dumps({"verdicts": [more, json.loads(RIGHT)]})
    assert read_answer(listed, Verdicts) == (Verdicts(verdicts=[VALUE, VALUE]), EXTRA_KEYS)


def test_where_all_has_defaults_not_anything_is_the_answer() -> None:
    assert read_answer('{"n": 3}', Relaxed) == (Relaxed(n=3), "")
    assert read_answer('{"result": {"n": 3}}', Relaxed) == (Relaxed(n=3), "")
    assert read_answer('{"n": 3} and {"confidence": 1}', Relaxed) == (Relaxed(n=3), "")
    assert read_answer('{"confidence": 1}', Relaxed) == (None, NO_FIELD)
    assert read_answer("{}", Relaxed) == (Relaxed(), "")
    assert read_answer("None: {}", Relaxed) == (Relaxed(), "")
    assert read_answer('{"n": 3}. Had there been none: {}', Relaxed) == (Relaxed(n=3), "")
    assert read_answer('{"result": {"n": 3}, "meta": {}}', Relaxed) == (Relaxed(n=3), "")


def test_half_a_character_and_a_tag_within_a_string_are_text() -> None:
    odd = r'{"verdict": "right", "why": "cut \ud83d here, </think> and <think> there' + '\n"}'
    wanted = Verdict(verdict="right", why="cut ? here, </think> and <think> there\n")
    assert read_answer(odd, Verdict) == (wanted, "")
    assert read_answer(f"<think>{WRONG}</think>Here: {odd} [1]", Verdict) == (wanted, "")


def test_items_that_do_not_fit_are_left_out_up_to_a_bound() -> None:
    class Few(BaseModel):
        points: Annotated[list[int], fitting_items(2)]

    assert read_answer('{"points": [1, 2]}', Few) == (Few(points=[1, 2]), "")
    assert read_answer('{"points": [1, "x", 2]}', Few) == (Few(points=[1, 2]), MISFITTING_ITEMS)
    value, note = read_answer('{"points": [1, "x", 2, 3]}', Few)
    assert value == Few(points=[1, 2])
    assert note == f"{FURTHER_ITEMS}; {MISFITTING_ITEMS}"
    assert Few.model_validate_json('{"points": [1, "x", 2, 3]}') == value


def test_items_with_keys_that_were_not_asked_for_are_kept_without_them() -> None:
    class Verdicts(BaseModel, extra="forbid"):
        verdicts: Annotated[list[Verdict], Field(max_length=5), fitting_items(5)]

    right, more = json.loads(RIGHT), json.loads(RIGHT) | {"confidence": 0.9}
    for listed in ([right, more, right], [more, more, more]):
        value, note = read_answer(json.dumps({"verdicts": listed}), Verdicts)
        assert value == Verdicts(verdicts=[VALUE] * 3)
        assert note == EXTRA_KEYS
    value, note = read_answer(json.dumps({"verdicts": [more, {"confidence": 1}]}), Verdicts)
    assert value == Verdicts(verdicts=[VALUE])
    assert note == f"{MISFITTING_ITEMS}; {EXTRA_KEYS}"

    class Outer(BaseModel, extra="forbid"):
        parts: Annotated[list[Verdicts], fitting_items(2)]

    value, note = read_answer(json.dumps({"parts": [{"verdicts": [more], "n": 1}]}), Outer)
    assert value == Outer(parts=[Verdicts(verdicts=[VALUE])])
    assert note == EXTRA_KEYS


class Named(BaseModel, extra="forbid"):
    name: str


class NamedLoosely(BaseModel):
    name: str


BLUE = {"name": "blue"}
CALLS = {
    "arguments": {"name": "Named", "arguments": BLUE},
    "parameters": {"name": "Named", "parameters": BLUE},
    "arguments as text": {"name": "Named", "arguments": json.dumps(BLUE)},
    "input": {"type": "tool_use", "name": "Named", "input": BLUE},
    "arguments first": {"arguments": BLUE, "name": "Named"},
}
"""Calls whose name would fit too."""


@pytest.mark.parametrize("case", CALLS)
@pytest.mark.parametrize("shape", [Named, NamedLoosely])
def test_a_call_is_no_answer_of_its_own(case: str, shape: type[BaseModel]) -> None:
    assert read_answer(json.dumps(CALLS[case]), shape) == (shape(**BLUE), "")


def test_a_shape_with_the_keys_of_a_call_is_read_as_it_is() -> None:
    class Call(BaseModel):
        name: str
        arguments: dict[str, str]

    called = {"name": "f", "arguments": {"name": "g", "arguments": {}}}
    wanted = Call(name="f", arguments={})
    assert read_answer(json.dumps({**called, "arguments": {}}), Call) == (wanted, "")


def test_extra_keys_are_left_out_after_all_else_and_of_one_value_only() -> None:
    more = json.loads(RIGHT) | {"x": {"n": 1}}
    assert read_answer(json.dumps(more), Verdict) == (VALUE, EXTRA_KEYS)
    rival = json.loads(RIGHT) | {"alternative": json.loads(WRONG)}
    assert read_answer(json.dumps(rival), Verdict) == (None, "Extra inputs are not permitted")
    same = json.loads(RIGHT) | {"copy": json.loads(RIGHT)}
    assert read_answer(json.dumps(same), Verdict) == (VALUE, EXTRA_KEYS)
    draft = json.loads(RIGHT) | {"draft": json.loads(WRONG)}
    assert read_answer(json.dumps(draft), Verdict) == (VALUE, EXTRA_KEYS)


MARKS = ("<channel>", "<|channel|>", "<|channel|>final", "<|end|>", "<|return|>", "<channel|>",
         "assistantfinal", "</think>", "<think>", "[THINK]", "<unused95>")  # fmt: skip


@pytest.mark.parametrize("mark", MARKS)
def test_a_mark_within_a_string_is_text(mark: str) -> None:
    written = json.dumps({"verdict": "right", "why": f"the {mark} of it"})
    wanted = Verdict(verdict="right", why=f"the {mark} of it")
    assert strip_thinking(written) == written
    analysis = f"<|channel|>analysis<|message|>need {{x}} {WRONG}<|end|>"
    for text in (
        written,
        f"\n {written}\n",
        f"```json\n{written}\n```",
        f"Here: {written} [1]",
        f"<think>{WRONG}</think>{written}",
        f"{analysis}<|start|>assistant<|channel|>final<|message|>{written}<|return|>",
        f"<|channel>thought\n{WRONG}<channel|>{written}",
        f"analysisWe need {WRONG}.assistantfinal{written}",
    ):
        assert read_answer(text, Verdict) == (wanted, "")


def test_a_channel_needs_its_bars() -> None:
    assert read_answer(f"The <channel> of it: {RIGHT}", Verdict) == (VALUE, "")
    assert read_answer(f"<channel>final {RIGHT}", Verdict) == (VALUE, "")


def test_a_fault_names_no_key_that_the_model_wrote() -> None:
    class Counts(BaseModel):
        counts: dict[str, int]

    assert read_answer('{"counts": {"sk-secret": "many"}}', Counts)[1].startswith("counts: Input")


PIECES = st.one_of(
    st.sampled_from(
        [
            "<think>",
            "</think>",
            "[THINK]",
            "[/THINK]",
            "<|channel|>final<|message|>",
            "<|end|>",
            "<|channel|>analysis<|message|>",
            "```json\n",
            "```",
            "{",
            "}",
            "[",
            "]",
            '"',
            "\\",
            ",",
            ":",
            "\ud83d",
            "null",
            "NaN",
            "1e999",
            '{"verdict": ',
            "analysisWe",
            "assistantfinal",
        ]
    ),
    st.text(max_size=8),
    st.just(WRONG),
)


@given(st.lists(PIECES, max_size=12).map("".join))
def test_no_text_makes_it_fail(text: str) -> None:
    value, reason = read_answer(text, Verdict)
    assert (value is None) == (reason not in ("", EXTRA_KEYS))
    assert "\n" not in reason
    assert value in (None, Verdict(verdict="wrong", why="a draft"))


@given(st.lists(PIECES, max_size=8).map("".join))
def test_what_stands_in_closed_thinking_is_never_the_answer(thought: str) -> None:
    inner = thought.replace("think", "hm").replace("THINK", "hm").replace("channel", "c")
    value, _ = read_answer(f"<think>{inner}</think>{RIGHT}", Verdict)
    assert value in (VALUE, None)
    value, _ = read_answer(f"<think>{inner}</think>In words.", Verdict)
    assert value is None


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=9),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(why=st.text(max_size=30), other=JSON)
def test_an_object_is_read_whatever_its_strings_hold(why: str, other: Any) -> None:
    written = json.dumps({"verdict": "right", "why": why})
    wanted = Verdict(verdict="right", why=why.encode("utf-8", "replace").decode())
    assert read_answer(written, Verdict) == (wanted, "")
    assert read_answer(f"<think>{json.dumps(other)}</think>\n{written}\n", Verdict) == (wanted, "")


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        '{"' * 400_000 + "}",
        '{"a":[' * 150_000 + "}",
        "{[" * 400_000 + "}",
        '{"\\' * 300_000 + '"}',
        "<think>" * 140_000,
        "</think>" * 120_000,
        "<" * 900_000 + "think>",
        "<|channel|>" * 90_000,
        "analysisW" + "assistant" * 100_000,
        ('{"a": ' + "9" * 5_000 + "} ") * 190,
        "{" + "\t" * 900_000,
        ("{" + " " * 900) * 1_000,
        ("<" + "a" * 900) * 1_000,
        "analysisW" + ("assistant" + " " * 900) * 1_000,
        "<" + "think" * 180_000,
        '{"' + "think" * 180_000 + '!": 1}',
        "<think" * 160_000,
        "[think" * 160_000,
        "◁a " * 300_000,
        "<a " * 300_000,
        "{} " * 300_000,
        '{"all": [{"verdict": "x"}]} ' * 35_000,
        "{" + ", ".join(f'"{n}": {WRONG}' for n in range(17_000)) + "}",
        '<|channel|>{"a": "<|end|>"}' * 35_000,
    ],
    ids=range(24),
)
def test_a_long_text_takes_bounded_work(text: str) -> None:
    begun = time.process_time()
    assert read_answer(text, Verdict)[0] is None
    assert strip_thinking(text) is not None
    assert time.process_time() - begun < 30
