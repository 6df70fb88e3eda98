"""Services with the habits of real ones: what each request to them holds, and what is read of their answers."""

from __future__ import annotations

import base64
import gzip
import json
import threading
import time
import warnings
import zlib
from collections.abc import Callable
from email.utils import formatdate
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import numpy as np
import polars as pl
import pytest
from model_server import KEY, Handler, Mode, ModelServer, completion, say, send
from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from memlab import ModelError, embed, llm
from memlab.config import Parameter
from memlab.conversation import judge
from memlab.llm import MISFIT, Answer, Request, Service, embed_texts
from memlab.llm.answer_parsing import ONLY_THINKING
from memlab.llm.chat_completions import (
    BROKEN_OFF,
    CUT,
    EMPTY,
    FILTERED,
    KEY_REPEATED,
    NO_CHOICE,
    TOOL_CALL,
)
from memlab.llm.retry_pauses import requested_pause_seconds
from memlab.llm.service_addresses import PARAMETERS
from memlab.llm.service_capabilities import find_replacement_or_empty_by_parameter
from memlab.llm.service_faults import Fault
from memlab.llm.service_probing import probe_and_describe_service
from memlab.records import Question, frame

USAGE = {"prompt_tokens": 70, "completion_tokens": 30}
FOUR = '{"n": 4}'


class Length(BaseModel):
    model_config = ConfigDict(extra="forbid")

    n: int


def request(text: str = "abc", **changes: Any) -> Request:
    given = {"task": "length", "version": 1, "about": (text,), "prompt": text, "shape": Length}
    return Request(**{**given, **changes})


def ask(service: Service, *texts: str) -> list[Answer]:
    """Ask, and keep what is stated out of the way."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return llm.ask([request(text) for text in texts or ("abc",)], service)


def message(reason: str = "stop", usage: Any = USAGE, **fields: Any) -> Mode:
    """Answer with a message of these fields."""
    choice = {"message": {"role": "assistant", **fields}, "finish_reason": reason}
    return send(200, {"choices": [choice], "usage": usage})


def text_part(text: str) -> dict[str, str]:
    return {"type": "text", "text": text}


ANSWERS: dict[str, Mode] = {
    "reasoning apart": message(content=FOUR, reasoning_content='{"n": 9}'),
    "reasoning apart, by another name": message(content=FOUR, reasoning="hm", thinking="hm"),
    "parts": message(content=[text_part('{"n"'), text_part(": 4}")]),
    "parts of another name": message(content=[{"type": "output_text", "text": FOUR}]),
    "strings as parts": message(content=['{"n": ', "4}"]),
    "one part, not in a list": message(content=text_part(FOUR)),
    "thinking as a part": message(
        content=[{"type": "thinking", "thinking": [text_part('{"n": 9}')]}, text_part(FOUR)]
    ),
    "reasoning as a part": message(
        content=[{"type": "reasoning", "text": '{"n": 9}'}, text_part(FOUR)]
    ),
    "a text and no message": send(200, {"choices": [{"text": FOUR}], "usage": USAGE}),
    "other fields": message(content=FOUR, refusal=None, tool_calls=[], audio=None),
    "space before it": send(200, b"\n\n  \n" + json.dumps(completion(FOUR, usage=USAGE)).encode()),
    "a byte order mark": send(
        200, b"\xef\xbb\xbf" + json.dumps(completion(FOUR, usage=USAGE)).encode()
    ),
    "comments before it": send(
        200, b": WAIT\n\n: WAIT\n\n" + json.dumps(completion(FOUR, usage=USAGE)).encode()
    ),
    "an error that is none": send(200, {**completion(FOUR, usage=USAGE), "error": None}),
    "an error with nothing in it": send(
        200, {**completion(FOUR, usage=USAGE), "error": {"message": "", "code": 0}}
    ),
    "gzip": send(
        200,
        gzip.compress(json.dumps(completion(FOUR, usage=USAGE)).encode()),
        Content_Encoding="gzip",
    ),
    "gzip without a word": send(
        200, gzip.compress(json.dumps(completion(FOUR, usage=USAGE)).encode())
    ),
    "deflate": send(
        200,
        zlib.compress(json.dumps(completion(FOUR, usage=USAGE)).encode()),
        Content_Encoding="deflate",
    ),
    "gzip only by name": send(
        200, json.dumps(completion(FOUR, usage=USAGE)).encode(), Content_Encoding="gzip"
    ),
}
"""What is read as :data:`FOUR` with its usage."""


@pytest.mark.parametrize("habit", ANSWERS)
def test_an_answer_is_read_at_the_first_attempt(server: ModelServer, habit: str) -> None:
    server.modes = [ANSWERS[habit]]
    (answer,) = ask(server.service())
    assert (answer.value, answer.error, answer.tokens) == (Length(n=4), "", (70, 30))
    assert len(server.requests) == 1


NO_ANSWERS: dict[str, tuple[Mode, str, int]] = {
    "length": (message("length", content=None), CUT, 1),
    "length, empty": (message("length", content="", reasoning_content="so many"), CUT, 1),
    "length, by another name": (message("max_tokens", content=None), CUT, 1),
    "length, a whole object": (message("length", content=FOUR), CUT, 2),
    "length, within the object": (message("length", content='{"n": '), CUT, 2),
    "length, within thinking": (message("length", content="<think>so many"), CUT, 1),
    "a filter": (message("content_filter", content=None), FILTERED, 1),
    "a filter, by another name": (message("SAFETY", content=""), FILTERED, 1),
    "a refusal": (message(content=None, refusal="I can't.\nSorry."), "the model refused: I can't. Sorry.", 1),
    "a refusal as a part": (
        message(content=[{"type": "refusal", "refusal": "No."}]), "the model refused: No.", 1
    ),
    "a refusal that is none": (message(content="", refusal=""), EMPTY, 2),
    "a refusal with the key": (message(content=None, refusal=KEY), "the model refused: ***", 1),
    "a tool": (
        message("tool_calls", content=None, tool_calls=[{"function": {"arguments": FOUR}}]),
        TOOL_CALL,
        2,
    ),
    "a function": (message("function_call", content="", function_call={"name": "f"}), TOOL_CALL, 2),
    "a tool, said to have stopped": (message(content=None, tool_calls=[{"id": "c"}]), TOOL_CALL, 2),
    "reasoning": (message(content=None, reasoning_content=FOUR), ONLY_THINKING, 2),
    "reasoning, empty text": (message(content="", reasoning=FOUR), ONLY_THINKING, 2),
    "reasoning in details": (
        message(content="", reasoning_details=[{"text": FOUR}]), ONLY_THINKING, 2
    ),
    "thinking parts": (
        message(content=[{"type": "thinking", "thinking": FOUR}]), ONLY_THINKING, 2
    ),
    "thinking in the text": (message(content=f"<think>{FOUR}"), ONLY_THINKING, 2),
    "empty": (message(content=" "), EMPTY, 2),
    "broken off": (message("error", content='{"n": 1}'), BROKEN_OFF, 2),
    "no choice": (send(200, {"choices": [], "usage": USAGE}), NO_CHOICE, 2),
    "a choice that is none": (send(200, {"choices": [None], "usage": USAGE}), NO_CHOICE, 2),
}  # fmt: skip
"""Answers without an answer: what is said of each, and how often it is asked."""


@pytest.mark.parametrize("habit", NO_ANSWERS)
def test_what_is_no_answer_is_counted_and_named(server: ModelServer, habit: str) -> None:
    mode, fault, asked = NO_ANSWERS[habit]
    server.modes = [mode]
    with llm.track_spending() as spent:
        (answer,) = ask(server.service())
    assert answer.value is None
    assert answer.error == f"service 'lab' ({server.url}, model 'm'): {MISFIT} Length ({fault})"
    assert answer.tokens == (70 * asked, 30 * asked)
    assert (spent.unanswered, len(server.requests)) == (1, asked)
    assert all(sent["content"] for each in server.requests for sent in each["messages"])


def test_an_address_keeps_its_query(server: ModelServer) -> None:
    paths = list[str]()

    def mode(handler: Handler, sent: dict) -> None:
        paths.append(handler.path)
        say(FOUR, usage=USAGE)(handler, sent)

    server.modes = [mode]
    for end in ("", "/", "/a%2Fb/?version=1&x=%20"):
        ask(server.service(base_url=server.url + end), end)
    wanted = ["/v1/chat/completions"] * 2 + ["/v1/a%2Fb/chat/completions?version=1&x=%20"]
    assert paths == wanted
    for wrong in ("http://", "http://h:port/v1", "ftp://h/v1", "http://h\n/v1", "h/v1"):
        with pytest.raises(ModelError, match="base_url is no address"):
            ask(server.service(base_url=wrong))


def test_a_page_for_people_is_no_answer_of_a_model(server: ModelServer) -> None:
    server.modes = [send(200, b"<html>Please sign in</html>")]
    (answer,) = ask(server.service())
    assert answer.error.endswith(
        "the server sent no JSON: is base_url the address up to and including /v1?"
    )
    assert MISFIT not in answer.error
    assert (len(server.requests), answer.tokens) == (1, (0, 0))


def refuse(value: Any) -> Any:
    raise ValueError(f"{value!r} beside Bearer {KEY}\n" + "x" * 900)


class Tagged(BaseModel):
    """Its keys are those of the model; and what its faults say may quote the input."""

    counts: dict[str, int]
    kind: Annotated[Literal["a"] | None, AfterValidator(refuse)] = None


@pytest.mark.parametrize(
    "text",
    [
        json.dumps({"n": 1, f"{KEY}\nz": 1, "x" * 900: 2, "m": {"n": "many"}}),
        json.dumps({"n": "many", f"{KEY * 9}\nz": 1}),
    ],
)
def test_keys_of_an_answer_do_not_stand_in_its_error(server: ModelServer, text: str) -> None:
    class Lengths(BaseModel, extra="forbid"):
        lengths: list[Length]

    server.modes = [say(json.dumps({"lengths": [json.loads(text), {"other": 1}]}), usage=USAGE)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        (answer,) = llm.ask([request(shape=Lengths)], server.service())
    wanted = f"service 'lab' ({server.url}, model 'm'): {MISFIT} Lengths (lengths.0"
    assert answer.error.startswith(wanted)
    assert KEY[:12] not in answer.error
    assert "xxx" not in answer.error
    assert "\n" not in answer.error


@pytest.mark.parametrize("text", [f'{{"counts": {{"{KEY}": "a"}}}}', '{"counts": {}, "kind": "a"}'])
def test_an_error_is_one_bounded_line_without_the_key(server: ModelServer, text: str) -> None:
    server.modes = [say(text, usage=USAGE)]
    (answer,) = llm.ask([request(shape=Tagged)], server.service())
    assert KEY[:12] not in answer.error
    assert "\n" not in answer.error
    assert len(answer.error) < 500
    (described, *_) = probe_and_describe_service(server.service())
    assert KEY[:12] not in described


def test_an_answer_that_needs_the_key_says_why_it_is_none(server: ModelServer) -> None:
    class Long(BaseModel):
        text: Annotated[str, Field(min_length=10)]

    server.modes = [say(json.dumps({"text": KEY}), usage=USAGE)]
    (answer,) = llm.ask([request(shape=Long)], server.service())
    assert KEY_REPEATED in answer.error
    assert KEY_REPEATED in server.prompts[1]


@pytest.mark.parametrize("thought", ["<think>{}</think>", "[THINK]{}[/THINK]", "<think>{}"])
def test_a_draft_is_no_verdict(server: ModelServer, tmp_path: Path, thought: str) -> None:
    draft = thought.format('Draft: {"correct": true, "reason": "the same"}?')
    server.modes = [say(f"{draft} It leaves out the refund, so it is wrong.", usage=USAGE)]
    file = tmp_path / "record.jsonl"
    asked = frame(
        Question, [Question("q", "a", "Did they pay?", "Yes", "single-hop", None, [], [])]
    )
    answered = pl.DataFrame({"query_id": ["q"], "answer": ["No"]})
    with (
        llm.track_spending() as spent,
        pytest.warns(UserWarning, match="1 of 1 verdicts came from no model"),
    ):
        verdicts = judge(asked, answered, server.service(record=str(file)))
    assert verdicts["correct"].to_list() == [None]
    assert MISFIT in verdicts["error"].item()
    assert (spent.unanswered, len(server.requests)) == (1, 2)
    assert not file.exists()


def test_thinking_is_not_shown_to_the_model_again(server: ModelServer) -> None:
    server.modes = [say('<think>Draft: {"n": 9}</think>It has four.'), say(FOUR)]
    assert ask(server.service())[0].value == Length(n=4)
    assert server.requests[1]["messages"][1] == {"role": "assistant", "content": "It has four."}


def refusing(refused: Mode, *names: str) -> Mode:
    """Refuse requests that have one of these parameters, else answer."""

    def mode(handler: Handler, sent: dict) -> None:
        (refused if any(name in sent for name in names) else say(FOUR, usage=USAGE))(handler, sent)

    return mode


def error(text: str, **more: Any) -> dict[str, Any]:
    return {"error": {"message": text, **more}}


UNKNOWN_PARAMETERS: dict[str, tuple[str, Mode]] = {
    "a field": ("seed", send(400, error("Unsupported.", param="seed", code="unsupported_parameter"))),
    "in quotes": ("seed", send(400, error("Unrecognized request argument supplied: 'seed'"))),
    "as a list": ("seed", send(400, [error('Unknown name "seed": Cannot find field.')])),
    "a place": (
        "seed",
        send(422, {"detail": [{"type": "extra_forbidden", "loc": ["body", "seed"], "msg": "Extra inputs"}]}),
    ),
    "in backticks": ("seed", send(400, error("`seed` is not supported by this model"))),
    "bare words": ("temperature", send(422, {"message": "temperature is not allowed here"})),
    "a value": (
        "temperature",
        send(400, error("Unsupported value: 'temperature' does not support 0 with this model.")),
    ),
    "a value, beyond it": ("temperature", send(400, error("temperature must be greater than 0"))),
    "with its value": ("temperature", send(400, error("Invalid: temperature=0"))),
    "inside an answer": ("seed", send(200, error("unknown field seed", code=400))),
    "a longest answer": ("max_tokens", send(400, error("Unknown parameter: 'max_tokens'."))),
}  # fmt: skip
"""A parameter that a server does not know, and how it says so."""


@pytest.mark.parametrize("habit", UNKNOWN_PARAMETERS)
def test_what_a_server_names_as_unknown_is_left_out_from_then_on(
    server: ModelServer, habit: str
) -> None:
    name, refused = UNKNOWN_PARAMETERS[habit]
    server.modes = [refusing(refused, name)]
    with pytest.warns(UserWarning, match=rf"from here on {name} is left out") as stated:
        assert llm.ask([request()], server.service())[0].value == Length(n=4)
    assert len(stated) == 1
    # Another client of the same service knows it, and says nothing.
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert llm.ask([request("another")], server.service(timeout=50))[0].value == Length(n=4)
    assert [name in sent for sent in server.requests] == [True, False, False]
    others = {"temperature", "seed", "max_tokens", "response_format"} - {name}
    assert all(others <= sent.keys() for sent in server.requests)


def test_the_longest_answer_goes_by_the_name_that_the_server_asks_for(server: ModelServer) -> None:
    def mode(handler: Handler, sent: dict) -> None:
        if "max_tokens" in sent:
            text = "'max_tokens' is not supported. Use 'max_completion_tokens' instead."
            return send(400, error(text, param="max_tokens"))(handler, sent)
        if "temperature" in sent:
            text = "Unsupported value: 'temperature'. Only the default (1) value is supported."
            return send(400, error(text, param="temperature"))(handler, sent)
        return say(FOUR, usage=USAGE)(handler, sent)

    server.modes = [mode]
    assert [each.value for each in ask(server.service(max_output=9, concurrency=1), "a", "b")] == [
        Length(n=4)
    ] * 2
    assert [sent.get("max_completion_tokens") for sent in server.requests] == [None, 9, 9, 9]
    assert [sent["seed"] for sent in server.requests] == [0] * 4
    assert "temperature" not in server.requests[-1]


@pytest.mark.parametrize(
    "text",
    [
        "max_tokens is too large: 1024. This model supports at most 512 completion tokens.",
        "This model's maximum context length is 512 tokens; reduce max_tokens or the messages.",
        "The context has 512 tokens: shorten the messages, or lower max_tokens instead.",
    ],
)
def test_a_longest_answer_that_is_too_long_is_no_unknown_parameter(
    server: ModelServer, text: str
) -> None:
    server.modes = [send(400, error(text))]
    (answer,) = ask(server.service())
    assert text[:50] in answer.error
    assert [sent["max_tokens"] for sent in server.requests] == [1024] * 3
    assert [sent["seed"] for sent in server.requests] == [0] * 3


def test_a_request_that_is_repeated_in_the_error_names_nothing(server: ModelServer) -> None:
    def mode(handler: Handler, sent: dict) -> None:
        if "seed" in sent:
            text = f"Extra fields not allowed: seed. The request was {json.dumps(sent)}"
            return send(400, error(text))(handler, sent)
        return say(FOUR)(handler, sent)

    server.modes = [mode]
    assert ask(server.service())[0].value == Length(n=4)
    assert {"temperature", "max_tokens", "response_format"} <= server.requests[-1].keys()


@pytest.mark.parametrize("separators", [(",", ":"), (", ", ": "), (" , ", " : ")])
def test_a_request_is_known_again_however_it_is_written(separators: tuple[str, str]) -> None:
    body = {"seed": 0, "temperature": 0, "response_format": {"type": "json_schema", "n": [1]}}
    written = json.dumps(body, separators=separators)
    for echo in (written, json.dumps(written)):
        fault = Fault(400, f"Extra fields not allowed: seed. The request was {echo}")
        assert find_replacement_or_empty_by_parameter(fault, body) == {"seed": ""}
        assert find_replacement_or_empty_by_parameter(Fault(500, f"Failed at {echo}"), body) == {}


@pytest.mark.parametrize(
    "refused",
    [
        send(400, error("System role not supported")),
        send(500, error("Jinja Exception: System role not supported")),
        send(400, error("Developer instruction is not enabled for models/m")),
    ],
)
def test_a_system_message_that_is_refused_stands_above_the_prompt(
    server: ModelServer, refused: Mode
) -> None:
    def mode(handler: Handler, sent: dict) -> None:
        roles = [each["role"] for each in sent["messages"]]
        (refused if "system" in roles else say(FOUR, usage=USAGE))(handler, sent)

    server.modes = [mode]
    with pytest.warns(UserWarning, match="the system message stands above the prompt"):
        (answer,) = llm.ask([request(system="Count.")], server.service())
    assert answer.value == Length(n=4)
    assert server.prompts[-1] == "Count.\n\nabc"
    assert {"temperature", "seed", "response_format"} <= server.requests[-1].keys()


def test_what_is_refused_is_refused_once_however_many_are_asked(server: ModelServer) -> None:
    server.modes = [refusing(send(400, error("unknown field seed")), "seed")]
    answers = ask(server.service(concurrency=8), *"abcdefghij")
    assert [answer.value for answer in answers] == [Length(n=4)] * 10
    assert sum("seed" in sent for sent in server.requests) == 1


def test_settings_leave_out_each_parameter(server: ModelServer) -> None:
    assert get_args(Parameter) == PARAMETERS
    server.modes = [say(FOUR)]
    for name in PARAMETERS[:4]:
        ask(server.service(leave_out=(name,)), name)
        assert name not in server.requests[-1]
        assert len(server.requests[-1]) == 5
    assert "Answer with JSON of this schema" in server.prompts[-1]


SCHEMAS_REFUSED: dict[str, Mode] = {
    "by name": send(400, error("Unknown field: response_format")),
    "in other words": send(400, error("JSON schema conversion failed: Unrecognized schema: {}")),
    "a grammar": send(400, error("Failed to initialize samplers: failed to parse grammar")),
    "$defs": send(400, [error('Unknown name "$defs" at \'generation_config.response_schema\'')]),
    "no JSON made": send(400, error("Failed to generate JSON.", code="json_validate_failed")),
    "a long place": send(422, {"detail": [{"loc": ["body", "prompt"], "msg": "x" * 900}]}),
    "500": send(500, error("response_format type must be one of text, json_object")),
    "500 in other words": send(500, b"Internal Server Error"),
    "404": send(404, error("No endpoints found that can handle the requested parameters.")),
    "inside an answer": send(200, error("structured outputs are not supported", code=400)),
    "not implemented": send(501, b""),
}  # fmt: skip


@pytest.mark.parametrize("habit", SCHEMAS_REFUSED)
def test_a_schema_that_is_refused_stands_in_the_prompt_from_then_on(
    server: ModelServer, habit: str
) -> None:
    server.modes = [refusing(SCHEMAS_REFUSED[habit], "response_format")]
    with pytest.warns(UserWarning, match="the schema stands in the prompt") as stated:
        assert llm.ask([request()], server.service())[0].value == Length(n=4)
    assert len(stated) == 1
    assert ask(server.service(timeout=50), "another")[0].value == Length(n=4)
    # What is not named may be a fault that passes: it is asked once more before it counts.
    is_named = habit in ("by name", "500")
    refused = [True] if is_named else [True, True]
    assert ["response_format" in sent for sent in server.requests] == [*refused, False, False]
    assert all("Answer with JSON of this schema" in prompt for prompt in server.prompts[-2:])
    assert all(sent["seed"] == 0 for sent in server.requests)


FAILED: dict[str, Mode] = {
    "500": send(500, error("Internal server error")),
    "500, another page": send(500, b"<html>oops</html>"),
    "501": send(501, b""),
    "404": send(404, error("model 'm' not found")),
    "400": send(400, error("Bad Request")),
    "inside an answer": send(200, error("The server had an error", type="server_error")),
    "inside an answer, by another name": send(200, error("Oh.", code="internal_server_error")),
    "inside an answer, as a class": send(200, error("Oh.", type="InternalServerError")),
    "inside an answer, in words": send(200, error("Internal error")),
}
"""What a server says that fails for a moment, and does not mean the schema."""


@pytest.mark.parametrize("habit", FAILED)
def test_a_fault_that_passes_costs_no_schema(server: ModelServer, habit: str) -> None:
    server.modes = [FAILED[habit], say(FOUR, usage=USAGE)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        answers = llm.ask([request(text) for text in "abc"], server.service())
    assert [answer.value for answer in answers] == [Length(n=4)] * 3
    assert ["response_format" in sent for sent in server.requests] == [True] * 4


def test_a_schema_is_not_why_a_server_failed_without_it_too(server: ModelServer) -> None:
    failing = FAILED["500"]
    server.modes = [failing, failing, failing, say(FOUR, usage=USAGE)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        answers = llm.ask([request(text) for text in "ab"], server.service())
    assert [answer.value for answer in answers] == [Length(n=4)] * 2
    sent = ["response_format" in each for each in server.requests]
    assert sent == [True, True, False, False, True]


def test_a_failure_is_asked_again_after_the_normal_pause(server: ModelServer) -> None:
    server.modes = [send(500, b"", Retry_After="0.7"), say(FOUR, usage=USAGE)]
    (answer,) = ask(server.service(max_retries=0))
    assert answer.value == Length(n=4)
    assert answer.seconds >= 0.7


def test_what_a_failure_names_is_left_out_without_a_schema_too(server: ModelServer) -> None:
    server.modes = [refusing(send(500, error("unknown field seed")), "seed")]
    service = server.service(leave_out=("response_format",))
    assert ask(service)[0].value == Length(n=4)
    assert ["seed" in sent for sent in server.requests] == [True, False]


def test_what_a_filter_withholds_is_asked_once(server: ModelServer) -> None:
    text = "The response was filtered due to the content management policy."
    server.modes = [send(400, error(text, code="content_filter"))]
    assert text in ask(server.service())[0].error
    assert len(server.requests) == 1


@pytest.mark.parametrize(("status", "asked"), [(400, 3), (422, 3), (500, 4), (401, 1), (403, 1)])
def test_what_is_refused_without_a_schema_too_is_refused(
    server: ModelServer, status: int, asked: int
) -> None:
    server.modes = [send(status, error("Out of credit?"))]
    for text in "ab":  # nothing is remembered of what did not help
        server.requests.clear()
        (answer,) = ask(server.service(max_retries=1), text)
        assert answer.error.endswith(f"HTTP {status}: Out of credit?")
        sent = ["response_format" in each for each in server.requests]
        assert sent == [True, True, False, False][:asked]


@pytest.mark.parametrize("status", [400, 500])
def test_words_of_a_question_name_no_parameter(server: ModelServer, status: int) -> None:
    text = 'Which "seed" needs\n what temperature? Größe?'

    def mode(handler: Handler, sent: dict) -> None:
        if len(server.requests) > 1:
            return say(FOUR, usage=USAGE)(handler, sent)
        return send(status, error(f"Failed at: {text}"))(handler, sent)

    server.modes = [mode]
    assert ask(server.service(), text)[0].value == Length(n=4)
    assert all({"seed", "temperature"} <= sent.keys() for sent in server.requests)
    echoed = Fault(400, f"Unknown name seed in {json.dumps(text)}")
    body = {"seed": 0, "temperature": 0, "messages": [{"role": "user", "content": text}]}
    assert find_replacement_or_empty_by_parameter(echoed, body) == {"seed": ""}


@pytest.mark.parametrize("status", [405, 410, 413, 415])
def test_what_no_schema_explains_is_asked_once(server: ModelServer, status: int) -> None:
    server.modes = [send(status, b"no")]
    assert f"HTTP {status}: no" in ask(server.service())[0].error
    assert len(server.requests) == 1


def test_a_question_that_is_refused_does_not_keep_the_next_from_going_without_a_schema(
    server: ModelServer,
) -> None:
    def mode(handler: Handler, sent: dict) -> None:
        if "long" in sent["messages"][0]["content"]:
            return send(400, error("too long"))(handler, sent)
        return refusing(send(500, b""), "response_format")(handler, sent)

    server.modes = [mode]
    answers = ask(server.service(concurrency=1), "long", "abc")
    assert [answer.value for answer in answers] == [None, Length(n=4)]


@pytest.mark.parametrize("status", [404, 500])
def test_a_server_that_is_down_is_not_asked_twice_as_often(
    server: ModelServer, status: int
) -> None:
    server.modes = [send(status, b"")]
    answers = ask(server.service(max_retries=0), *"abcde")
    assert [answer.value for answer in answers] == [None] * 5
    sent = ["response_format" in each for each in server.requests]
    assert sent == [True, True, False] + [True] * 4


ERRORS_INSIDE: dict[str, tuple[Any, str]] = {
    "a rate limit": (error("Rate limit exceeded: per-min", code=429), "429: Rate limit exceeded"),
    "a rate limit in words": (error("Rate limit reached for m"), "429: Rate limit"),
    "a rate limit as a code": (error("Slow.", code="rate_limit_exceeded"), "429: Slow."),
    "overloaded": (error("Provider returned error: overloaded", code=502), "502: Provider"),
    "overloaded, in words": (error("Overloaded"), "503: Overloaded"),
    "text": ({"error": "too many requests"}, "429: too many requests"),
    "an object that is one": (
        {"object": "error", "message": "rate limit", "code": 429},
        "429: rate limit",
    ),
    "a message alone": ({"message": "Too many requests"}, "429: Too many requests"),
    "in a choice": (
        {"choices": [{"error": {"code": 502, "message": "upstream"}, "message": {"content": ""}}]},
        "502: upstream",
    ),
}


@pytest.mark.parametrize("habit", ERRORS_INSIDE)
def test_an_error_inside_an_answer_is_one_and_passes(server: ModelServer, habit: str) -> None:
    body, shown = ERRORS_INSIDE[habit]
    failing = send(200, body, Retry_After="0.05")
    server.modes = [failing, say(FOUR, usage=USAGE)]
    assert ask(server.service())[0].value == Length(n=4)
    server.modes = [failing]
    server.requests.clear()
    (answer,) = ask(server.service(), "another")
    assert f"HTTP 200 with error {shown}" in answer.error
    assert len(server.requests) == 2


def test_a_lasting_error_inside_an_answer_is_not_asked_again(server: ModelServer) -> None:
    server.modes = [send(200, error("No such model", code=404))]
    service = server.service(leave_out=("response_format",))
    assert "HTTP 200 with error 404: No such model" in ask(service)[0].error
    assert len(server.requests) == 1
    with pytest.raises(ModelError, match="error 404: No such model"):
        embed_texts(service, ["a"])


def events(*chunks: Any, end: str = "\n\n") -> bytes:
    lines = [f"data: {each if isinstance(each, str) else json.dumps(each)}" for each in chunks]
    return (end.join(lines) + end).encode()


def delta(content: str | None = None, **fields: Any) -> dict[str, Any]:
    part = {} if content is None else {"content": content}
    reason = fields.pop("reason", None)
    return {"choices": [{"index": 0, "delta": part | fields, "finish_reason": reason}]}


STREAMS: dict[str, bytes] = {
    "plain": events(delta('{"n"'), delta(": 4}"), delta(reason="stop"), {"choices": [], "usage": USAGE}, "[DONE]"),
    "returns": events(delta('{"n"'), delta(": 4}"), {"choices": [], "usage": USAGE}, "[DONE]", end="\r\n\r\n"),
    "comments and names": b": WAIT\n\nevent: message\n" + events(delta(FOUR), {"usage": USAGE}),
    "thinking": events(delta(reasoning_content='{"n": 9}'), delta(FOUR), {"usage": USAGE}),
    "another choice": events(
        delta('{"n": '), {"choices": [{"index": 1, "delta": {"content": "9"}}]}, delta("4}"), {"usage": USAGE}
    ),
    "whole messages": events({**completion(FOUR), "usage": USAGE}, "[DONE]"),
    "no last line": events(delta(FOUR), {"usage": USAGE}).rstrip(),
}  # fmt: skip


@pytest.mark.parametrize("habit", STREAMS)
def test_a_stream_that_nobody_asked_for_is_joined(server: ModelServer, habit: str) -> None:
    server.modes = [send(200, STREAMS[habit], Content_Type="text/event-stream")]
    (answer,) = ask(server.service())
    assert (answer.value, answer.tokens, len(server.requests)) == (Length(n=4), (70, 30), 1)


def test_a_stream_that_is_compressed_only_by_name_is_joined(server: ModelServer) -> None:
    server.modes = [send(200, STREAMS["plain"], Content_Encoding="gzip")]
    (answer,) = ask(server.service())
    assert (answer.value, len(server.requests)) == (Length(n=4), 1)


def test_a_line_separator_within_a_string_ends_no_event(server: ModelServer) -> None:
    class Words(BaseModel):
        words: str

    chunk = json.dumps(delta('{"words": "a\u2028b"}'), ensure_ascii=False)
    server.modes = [send(200, events(chunk))]
    with pytest.warns(UserWarning, match="does not count tokens"):
        (answer,) = llm.ask([request(shape=Words)], server.service())
    assert answer.value == Words(words="a\u2028b")


def test_the_end_of_a_stream_counts(server: ModelServer) -> None:
    server.modes = [send(200, events(delta('{"n": 4'), delta(reason="length")))]
    assert CUT in ask(server.service())[0].error
    server.modes = [
        send(200, events(delta('{"n'), error("overloaded", code=503)), Retry_After="0.01")
    ]
    assert "error 503: overloaded" in ask(server.service(), "another")[0].error


@pytest.mark.parametrize(
    ("body", "encoding", "fault"),
    [
        (gzip.compress(json.dumps(completion(FOUR)).encode(), mtime=0)[:-9], "gzip", "cut off"),
        (b"\x1f\x8b not gzip", "gzip", "damaged"),
        (b"\x8b\x05 some", "br", "compressed as 'br'"),
        (gzip.compress(b"x" * 2_000_000, mtime=0), "", "more than 1,000,000 bytes"),
    ],
)
def test_a_compressed_answer_is_whole_and_within_bounds(
    server: ModelServer, body: bytes, encoding: str, fault: str
) -> None:
    server.modes = [send(200, body, **({"Content_Encoding": encoding} if encoding else {}))]
    assert fault in ask(server.service())[0].error


BODY = json.dumps(completion(FOUR, usage=USAGE)).encode()
ARRIVED_BADLY: dict[str, Mode] = {
    "nothing": send(200, b""),
    "nothing, as gzip": send(200, b"", Content_Encoding="gzip"),
    "cut off": send(200, gzip.compress(BODY)[:-9], Content_Encoding="gzip"),
    "damaged": send(200, b"\x1f\x8b not gzip", Content_Encoding="gzip"),
    "502 without a body": send(502, b"", Content_Encoding="gzip"),
    "502 with a page": send(502, b"<html>bad gateway", Content_Encoding="gzip"),
    "502 in another compression": send(502, b"\x8b\x05 some", Content_Encoding="br"),
    "503 with a long page": send(503, b"<html>" + b" " * 2_000_000),
    "a bomb of an error": send(503, gzip.compress(b"x" * 2_000_000), Content_Encoding="gzip"),
}


@pytest.mark.parametrize("habit", ARRIVED_BADLY)
def test_what_arrived_badly_is_asked_for_again(server: ModelServer, habit: str) -> None:
    server.modes = [ARRIVED_BADLY[habit], say(FOUR, usage=USAGE)]
    assert ask(server.service())[0].value == Length(n=4)
    assert ["response_format" in sent for sent in server.requests] == [True, True]


MEMBERS = [gzip.compress(part, mtime=0) for part in (BODY[:30], b"", BODY[30:])]


@pytest.mark.parametrize("padding", [b"", b"\0" * 9, b"\0" * 20_000])
@pytest.mark.parametrize("empty", [1, 2_000])
def test_all_members_of_a_compressed_answer_are_read(
    server: ModelServer, padding: bytes, empty: int
) -> None:
    body = MEMBERS[0] + MEMBERS[1] * empty + MEMBERS[2] + padding
    server.modes = [send(200, body, Content_Encoding="gzip")]
    (answer,) = ask(server.service())
    assert (answer.value, answer.tokens) == (Length(n=4), (70, 30))


@pytest.mark.parametrize(
    ("body", "fault"),
    [
        (b"".join(MEMBERS)[:-9], "cut off"),
        (MEMBERS[0] + gzip.compress(b"x" * 800_000, mtime=0) * 2, "more than 1,000,000 bytes"),
    ],
)
def test_members_of_an_answer_are_whole_and_within_bounds(
    server: ModelServer, body: bytes, fault: str
) -> None:
    server.modes = [send(200, body, Content_Encoding="gzip")]
    assert fault in ask(server.service())[0].error


COUNTS: dict[str, tuple[Any, tuple[int, int], bool]] = {
    "whole": (USAGE, (70, 30), False),
    "floats": ({"prompt_tokens": 70.0, "completion_tokens": 30.0}, (70, 30), False),
    "text": ({"prompt_tokens": "70", "completion_tokens": "30"}, (70, 30), False),
    "input and output": ({"input_tokens": 70, "output_tokens": 30}, (70, 30), False),
    "other names": ({"prompt_eval_count": 70, "eval_count": 30}, (70, 30), False),
    "a sum": ({"prompt_tokens": 70, "total_tokens": 100}, (70, 30), False),
    "none": (None, (3, 2), True),
    "empty": ({}, (3, 2), True),
    "zeros": ({"prompt_tokens": 0, "completion_tokens": 0}, (3, 2), True),
    "nulls": ({"prompt_tokens": None, "completion_tokens": None}, (3, 2), True),
    "one of two": ({"prompt_tokens": 70}, (70, 2), True),
    "senseless": ({"prompt_tokens": -1, "completion_tokens": 2**63}, (3, 2), True),
    "not finite": ({"prompt_tokens": float("nan"), "completion_tokens": float("inf")}, (3, 2), True),
    "no object": ([70, 30], (3, 2), True),
    "truths": ({"prompt_tokens": True, "completion_tokens": True}, (3, 2), True),
}  # fmt: skip
"""Usages, what they count for ten characters sent and eight written, and whether that is an estimate."""


@pytest.mark.parametrize("habit", COUNTS)
def test_tokens_are_counted_or_marked_as_an_estimate(
    server: ModelServer, habit: str, tmp_path: Path
) -> None:
    usage, tokens, is_estimated = COUNTS[habit]
    server.modes = [say(FOUR, usage=usage)]
    service = server.service(record=str(tmp_path / "record.jsonl"))
    for _ in range(2):  # of the server, then of the recording
        with llm.track_spending() as spent:
            (answer,) = ask(service, "0123456789")
        assert (answer.tokens, answer.is_estimated) == (tokens, is_estimated)
        assert spent.describe()["tasks"] == {"length": [1, *tokens]}
        assert spent.describe().get("uncounted", 0) == is_estimated
    assert len(server.requests) == 1


def test_an_estimate_is_stated_once(server: ModelServer) -> None:
    server.modes = [say(FOUR)]
    with pytest.warns(UserWarning, match="does not count tokens; they are estimated") as stated:
        llm.ask([request(text) for text in "abc"], server.service())
    assert len(stated) == 1


NOW = 1_777_626_000.0
DATE = formatdate(NOW, usegmt=True)
PAUSES: dict[str, tuple[dict[str, str], float | None]] = {
    "seconds": ({"retry-after": "7"}, 7.0),
    "parts of a second": ({"retry-after": " 1.5 "}, 1.5),
    "a date": ({"retry-after": formatdate(NOW + 9, usegmt=True), "date": DATE}, 9.0),
    "a date in another zone": (
        {"retry-after": "Fri, 01 May 2026 11:00:09 +0200", "date": DATE}, 9.0
    ),
    "a date that is past": ({"retry-after": formatdate(NOW - 9, usegmt=True), "date": DATE}, None),
    "milliseconds": ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
    "a reset": ({"x-ratelimit-reset-requests": "6s"}, 6.0),
    "a reset of what is left": (
        {"x-ratelimit-reset-requests": "2h0m0s", "x-ratelimit-remaining-requests": "14000"}, None
    ),
    "a reset of what is used up": (
        {
            "x-ratelimit-reset-requests": "2h0m0s", "x-ratelimit-remaining-requests": "14000",
            "x-ratelimit-reset-tokens": "7.66s", "x-ratelimit-remaining-tokens": "0",
        },
        7.66,
    ),
    "two resets": ({"x-ratelimit-reset-requests": "120ms", "x-ratelimit-reset-tokens": "1m2s"}, 62.0),
    "a word": ({"retry-after": "soon", "date": DATE}, None),
    "not finite": ({"retry-after": "inf"}, None),
    "below zero": ({"retry-after": "-3"}, 0.0),
    "nothing": ({}, None),
}  # fmt: skip


@pytest.mark.parametrize("habit", PAUSES)
def test_a_pause_is_read_as_the_server_writes_it(habit: str) -> None:
    headers, seconds = PAUSES[habit]
    assert requested_pause_seconds(headers) == seconds


@pytest.mark.parametrize(
    ("message", "seconds"),
    [
        ("Rate limit reached. Please try again in 6.5s.", 6.5),
        ("Please retry after 20 seconds.", 20.0),
        ("Try again in 120ms", 0.12),
        ("try again in 1m2s", 62.0),
        ("Please try again in 1 minute.", 60.0),
        ("retry after 1h2m", 3720.0),
        ("Wait 5 minutes 30 s", 330.0),
        ("Please try again in 2 hours, 1 minute and 5.5 seconds", 7265.5),
        ("try again in 3 months", None),
        ("Try again later; limit of 20 s", None),
        ("limit 30 requests", None),
    ],
)
def test_a_pause_that_is_only_said_is_read(message: str, seconds: float | None) -> None:
    assert requested_pause_seconds({}, message) == seconds
    assert requested_pause_seconds({"retry-after": "1"}, message) == 1


def test_a_reset_is_a_pause_where_a_limit_is_why_it_failed(server: ModelServer) -> None:
    reset = {"x-ratelimit-reset-requests": "10m0s"}
    assert requested_pause_seconds(reset, status=503) is None
    assert requested_pause_seconds({**reset, "retry-after": "3"}, status=503) == 3
    headers = {"Retry_After": "", "x_ratelimit_reset_requests": "10m0s"}
    server.modes = [send(503, error("overloaded"), **headers), say(FOUR, usage=USAGE)]
    assert ask(server.service())[0].value == Length(n=4)


def test_a_date_is_compared_with_the_clock_where_the_server_has_none() -> None:
    pause = requested_pause_seconds({"retry-after": formatdate(time.time() + 100, usegmt=True)})
    assert pause is not None
    assert 60 < pause <= 100


def later(seconds: int) -> Mode:
    """Refuse until a date, of a server whose clock is a day ahead."""
    ahead = time.time() + 86_400
    date, after = formatdate(ahead, usegmt=True), formatdate(ahead + seconds, usegmt=True)

    def mode(handler: Handler, sent: dict) -> None:
        body = b"{}"
        handler.send_response_only(429)
        for name, value in {"Date": date, "Retry-After": after, "Content-Length": "2"}.items():
            handler.send_header(name, value)
        handler.end_headers()
        handler.wfile.write(body)

    return mode


def test_a_date_is_obeyed_within_the_deadline(server: ModelServer) -> None:
    server.modes = [later(1), say(FOUR)]
    (answer,) = ask(server.service())
    assert answer.value == Length(n=4)
    assert answer.seconds >= 0.9
    server.modes = [later(7_200)]
    (answer,) = ask(server.service(timeout=50), "another")
    assert "to be asked again after 7200 s, which is past the deadline" in answer.error
    assert answer.seconds < 30


def batches_of(most: int, refused: Callable[[int], Mode]) -> Mode:
    """Embed at most so many texts at once."""

    def mode(handler: Handler, sent: dict) -> None:
        texts = sent["input"]
        if len(texts) > most:
            return refused(len(texts))(handler, sent)
        rows = [{"index": i, "embedding": [float(len(text))]} for i, text in enumerate(texts)]
        return send(200, {"data": rows})(handler, sent)

    return mode


TOO_MANY: dict[str, tuple[int, Callable[[int], Mode], list[int]]] = {
    "a number": (
        10,
        lambda n: send(400, error("batch size is invalid, it should not be larger than 10.")),
        [32, 10, 10, 10, 10],
    ),
    "two numbers": (
        12, lambda n: send(422, {"error": f"batch size {n} > maximum allowed batch size 12"}), [32, 12, 12, 12, 4]
    ),
    "a place": (
        10,
        lambda n: send(422, {"detail": [{
            "type": "too_long", "loc": ["body", "input"],
            "msg": f"List should have at most 10 items after validation, not {n}"}]}),
        [32, 10, 10, 10, 10],
    ),
    "a range": (
        10, lambda n: send(400, error("Value error, contents length should be [1, 10]")), [32, 10, 10, 10, 10]
    ),
    "in a sentence": (
        20, lambda n: send(400, error("* at most 20 requests can be in one batch")), [32, 20, 20]
    ),
    "no number": (20, lambda n: send(400, error("Too many inputs.")), [32, 16, 16, 8]),
    "too large": (20, lambda n: send(413, b"Payload Too Large"), [32, 16, 16, 8]),
    "tokens of all": (
        9, lambda n: send(400, error("Requested 310000 tokens, max 300000 tokens per request")),
        [32, 16, 8, 8, 8, 8, 8],
    ),
    "inside an answer": (
        10, lambda n: send(200, error("batch size must be at most 10", code=400)), [32, 10, 10, 10, 10]
    ),
}  # fmt: skip


@pytest.mark.parametrize("habit", TOO_MANY)
def test_texts_are_embedded_as_many_at_once_as_the_server_takes(
    server: ModelServer, habit: str
) -> None:
    most, refused, sizes = TOO_MANY[habit]
    server.modes = [batches_of(most, refused)]
    texts = ["x" * (n + 1) for n in range(40)]
    with pytest.warns(UserWarning, match=f"from here on {sizes[1 + (sizes[1] > most)]} texts"):
        assert embed_texts(server.service(), texts)[:, 0].tolist() == [*range(1, 41)]
    sent_sizes = [len(sent["input"]) for sent in server.requests]
    assert sent_sizes[0] == sizes[0]
    assert sorted(sent_sizes) == sorted(sizes)  # those after the first are under way together
    server.requests.clear()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        embed_texts(server.service(timeout=50), texts)
    assert max(len(sent["input"]) for sent in server.requests) <= most


def test_a_deadline_holds_for_all_attempts_to_embed(server: ModelServer) -> None:
    def mode(handler: Handler, sent: dict) -> None:
        if len(server.requests) % 4:
            return send(429, {}, Retry_After="0.3")(handler, sent)
        return send(413, b"Payload Too Large")(handler, sent)

    server.modes = [mode]
    begun = time.monotonic()
    with pytest.raises(ModelError, match=r"HTTP 429|no answer within 2\.5 s"):
        embed_texts(server.service(timeout=0.5, max_retries=3), ["a"] * 2_000)
    assert time.monotonic() - begun < 10


def test_a_deadline_ends_attempts_that_are_slow(server: ModelServer) -> None:
    def mode(handler: Handler, sent: dict) -> None:
        time.sleep(0.6)
        send(413, b"Payload Too Large")(handler, sent)

    server.modes = [mode]
    with pytest.raises(ModelError, match=r"no answer within 2 s"):
        embed_texts(server.service(timeout=1, max_retries=0), ["a"] * 2_000)
    assert len(server.requests) <= 4


def test_vectors_in_base64_are_read(server: ModelServer) -> None:
    written = base64.b64encode(np.array([1.5, -2], "<f4").tobytes()).decode()
    server.modes = [send(200, {"data": [{"embedding": written}]})]
    assert embed_texts(server.service(), ["a"]).tolist() == [[1.5, -2]]
    server.modes = [send(200, {"data": [{"embedding": written[:-3]}]})]
    with pytest.raises(ModelError, match=r"data\.0\.embedding"):
        embed_texts(server.service(), ["a"])


def test_a_batch_is_as_the_settings_say(server: ModelServer) -> None:
    server.modes = [batches_of(100, lambda n: send(500, {}))]
    embed_texts(server.service(batch=50), ["a"] * 60)
    embed_texts(server.service(batch=4), ["a"] * 6)
    assert [len(sent["input"]) for sent in server.requests] == [50, 10, 4, 2]


@pytest.mark.parametrize("concurrency", [1, 3])
def test_requests_for_vectors_are_under_way_at_once_as_the_settings_say(
    server: ModelServer, concurrency: int
) -> None:
    """The first goes alone; then each waits until so many are there, which one after the other never are."""
    lock, counts = threading.Lock(), [0, 0]
    gate = threading.Barrier(concurrency)

    def mode(handler: Handler, sent: dict) -> None:
        with lock:
            counts[0] += 1
            counts[1] = max(counts)
        if len(server.requests) > 1:
            gate.wait(20)
        with lock:
            counts[0] -= 1
        batches_of(2, lambda n: send(500, {}))(handler, sent)

    server.modes = [mode]
    texts = ["x" * (n + 1) for n in range(14)]
    service = server.service(batch=2, concurrency=concurrency)
    widths = []
    found = embed_texts(service, texts, done=lambda part: widths.append(len(part)))
    assert found[:, 0].tolist() == [*range(1, 15)]
    assert (counts[1], widths) == (concurrency, [2] * 7)


def test_the_first_failure_among_requests_for_vectors_ends_the_others(server: ModelServer) -> None:
    def mode(handler: Handler, sent: dict) -> None:
        if sent["input"] == ["c"]:
            return send(400, error("no such text"))(handler, sent)
        if len(server.requests) > 1:
            time.sleep(0.3)
        return batches_of(1, lambda n: send(500, {}))(handler, sent)

    server.modes = [mode]
    begun = time.monotonic()
    with pytest.raises(ModelError, match="no such text"):
        embed_texts(server.service(batch=1, concurrency=4), ["a", "b", "c", *"d" * 60])
    assert len(server.requests) < 10
    assert time.monotonic() - begun < 5


def test_dimensions_are_asked_for_and_given_or_an_error(server: ModelServer) -> None:
    def mode(handler: Handler, sent: dict) -> None:
        rows = [{"embedding": [1.0, 2.0, 3.0][: sent.get("dimensions")]} for _ in sent["input"]]
        send(200, {"data": rows})(handler, sent)

    server.modes = [mode]
    widths = [embed_texts(server.service(dimensions=n), ["a"]).shape[1] for n in (None, 2)]
    assert widths == [3, 2]
    assert ["dimensions" in sent for sent in server.requests] == [False, True]
    server.modes = [lambda handler, sent: mode(handler, {"input": sent["input"]})]
    services = {"lab": server.service(dimensions=2)}
    with pytest.raises(ModelError, match=r"vectors of 3 numbers, and dimensions.* is 2"):
        embed.load("endpoint:lab", services=services)


def test_a_text_that_is_too_long_is_no_batch_that_is_too_large(server: ModelServer) -> None:
    server.modes = [send(400, error("This model's maximum context length is 512 tokens"))]
    with pytest.raises(ModelError, match="maximum context length"):
        embed_texts(server.service(), ["a"] * 40)
    assert len(server.requests) == 1


def test_an_encoding_that_is_unknown_is_left_out(server: ModelServer) -> None:
    refused = send(400, error("Unknown parameter: 'encoding_format'"))

    def mode(handler: Handler, sent: dict) -> None:
        if "encoding_format" in sent:
            return refused(handler, sent)
        return batches_of(32, lambda n: refused)(handler, sent)

    server.modes = [mode]
    with pytest.warns(UserWarning, match="encoding_format is left out"):
        assert embed_texts(server.service(), ["ab"]).tolist() == [[2.0]]
    embed_texts(server.service(leave_out=("encoding_format",)), ["ab"])
    assert ["encoding_format" in sent for sent in server.requests] == [True, False, False]


DRINK = '{"drink": "tea"}'
PROBES: dict[str, tuple[Mode, list[str]]] = {
    "all": (
        say(DRINK, usage=USAGE),
        ["an answer that fits", "schema: taken", "parameters: temperature, seed, max_tokens taken",
         "thinking: none is sent", "tokens: 70 read and 30 written, as it counts them"],
    ),
    "thinking": (
        say(f"<think>hm</think>{DRINK}"),
        ["an answer that fits", "schema: taken", "parameters: temperature, seed, max_tokens taken",
         "thinking: 17 characters before the answer, which are left out",
         "tokens: about 9 read and 9 written, estimated by characters, as it does not count them"],
    ),
    "no seed": (
        refusing(send(400, error("unknown field seed")), "seed"),
        ["the answer does not fit (drink: Field required)", "schema: taken, and not kept to",
         "parameters: temperature, max_tokens taken; seed is left out",
         "thinking: none is sent", "tokens: 70 read and 30 written, as it counts them"],
    ),
    "no schema": (
        refusing(send(500, b""), "response_format"),
        ["the answer does not fit (drink: Field required)",
         "schema: not taken, it stands in the prompt",
         "parameters: temperature, seed, max_tokens taken",
         "thinking: none is sent", "tokens: 70 read and 30 written, as it counts them"],
    ),
    "cut": (
        message("length", content=None, reasoning_content="hm hm"),
        [f"the answer does not fit ({CUT})", "schema: taken",
         "parameters: temperature, seed, max_tokens taken",
         "thinking: 5 characters before the answer, which are left out",
         "tokens: 70 read and 30 written, as it counts them"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("habit", PROBES)
@pytest.mark.filterwarnings("ignore:service 'lab'")
def test_a_service_is_described_in_five_lines(server: ModelServer, habit: str) -> None:
    mode, wanted = PROBES[habit]
    server.modes = [mode]
    first, *rest = probe_and_describe_service(server.service())
    assert first.startswith(f"service 'lab' ({server.url}, model 'm'): {wanted[0]}, after ")
    assert rest == wanted[1:]
    assert len(server.requests) == {"no seed": 2, "no schema": 3}.get(habit, 1)


def test_a_service_without_questions_is_described_by_its_vectors(server: ModelServer) -> None:
    def mode(handler: Handler, sent: dict) -> None:
        if "input" in sent:
            return send(200, {"data": [{"embedding": [1.0, 2.0]}]})(handler, sent)
        return send(404, error("no such path"))(handler, sent)

    server.modes = [mode]
    lines = probe_and_describe_service(server.service())
    assert lines[0].endswith("HTTP 404: no such path")
    assert lines[1:] == ["embeddings: vectors of 2 numbers"]
    server.modes = [send(401, error("no key"))]
    with pytest.raises(ModelError, match="HTTP 401: no key"):
        probe_and_describe_service(server.service())


def test_the_command_line_describes_a_service_of_the_settings(
    memlab_cli: Any, server: ModelServer, tmp_path: Path
) -> None:
    server.modes = [say(DRINK, usage=USAGE)]
    table = f'[llm.services.lab]\nbase_url = "{server.url}"\nmodel = "m"\nbatch = 8\n'
    (tmp_path / "memlab.toml").write_text(table + 'leave_out = ["seed", "max_tokens"]\n')
    done = memlab_cli("info", "--service", "lab", cwd=tmp_path)
    assert (done.code, done.err) == (0, "")
    first, *rest = done.out.splitlines()
    assert first.startswith(f"service 'lab' ({server.url}, model 'm'): an answer that fits")
    assert rest == [
        "schema: taken",
        "parameters: temperature taken; seed is left out; max_tokens is left out",
        "thinking: none is sent",
        "tokens: 70 read and 30 written, as it counts them",
    ]
    assert server.requests[0].keys() == {"model", "messages", "temperature", "response_format"}
    assert "[llm.services.other]" in memlab_cli("info", "--service", "other", cwd=tmp_path).err
    (tmp_path / "memlab.toml").write_text(table + 'leave_out = ["top_p"]\n')
    assert "llm.services.lab.leave_out" in memlab_cli("info", cwd=tmp_path).err
