"""Chat: against a local server that misbehaves, and against a real llama.cpp server."""

from __future__ import annotations

import json
import re
import threading
import traceback
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

import pytest
from chat_server import KEY, ChatServer, said
from llama_server import llama_server
from pydantic import BaseModel, ConfigDict

from memlab import ModelError
from memlab.llm import Service, answers, chat, configured

pytestmark = pytest.mark.skipif(not find_spec("openai"), reason="the extra memlab[llm] is not installed")


class Length(BaseModel):
    model_config = ConfigDict(extra="forbid")

    n: int


def good(request: dict) -> tuple[int, Any]:
    return said(json.dumps({"n": len(request["messages"][-1]["content"])}))


@pytest.fixture
def server() -> Iterator[ChatServer]:
    one = ChatServer(good)
    yield one
    one.close()


def service(server: ChatServer, **changes: Any) -> Service:
    return Service(**{"name": "lab", "base_url": server.url, "model": "m", "timeout": 600, "max_retries": 1, **changes})


def test_answers_come_in_the_order_of_the_prompts_and_equal_prompts_are_asked_once(server: ChatServer) -> None:
    prompts = ["x" * (n % 9) for n in range(40)]
    assert [answer.n for answer in chat(service(server), prompts, Length)] == [len(p) for p in prompts]
    assert len(server.requests) == 9
    assert chat(service(server, cache=""), ["abc"], Length) == [Length(n=3)]
    assert chat(service(server), [], Length) == []


def test_what_is_sent_holds_the_schema_and_repeats(server: ChatServer) -> None:
    chat(service(server, max_output=9, max_input=4), ["a question"], Length, system="Count.")
    (sent,) = server.requests
    assert sent["messages"] == [{"role": "system", "content": "Count."}, {"role": "user", "content": "a qu"}]
    assert (sent["temperature"], sent["seed"], sent["max_tokens"], sent["model"]) == (0, 0, 9, "m")
    assert sent["response_format"]["json_schema"]["schema"] == Length.model_json_schema()
    chat(service(server, max_output=None), ["a"], Length)
    assert "max_tokens" not in server.requests[-1]


@pytest.mark.parametrize("text", ['```json\n{"n": 3}\n```', 'Let me see {"n": 3}.', '<think>so</think>{"n": 3}'])
def test_words_around_the_json_are_left_out(server: ChatServer, text: str) -> None:
    server.answers = [lambda request: said(text)]
    assert chat(service(server), ["abc"], Length) == [Length(n=3)]


BAD = [
    (said("no idea"), "Invalid JSON"),
    (said('{"n": "many"}'), "n: Input should be a valid integer"),
    (said('{"n": 1, "m": 2}'), "m: Extra inputs"),
    (said('{"n": 1', finish_reason="length"), "cut at the longest output: raise max_output"),
    (said(None), "the message has no text"),
    ((200, {"choices": []}), "no choices with a message"),
    ((200, {"choices": [{"message": None}]}), "no choices with a message"),
    ((200, [1]), "no choices with a message"),
]


@pytest.mark.parametrize(("bad", "message"), BAD)
def test_a_bad_answer_is_asked_for_once_more_with_what_is_wrong(server: ChatServer, bad: Any, message: str) -> None:
    server.answers = [lambda request: bad, lambda request: said('{"n": 7}')]
    assert chat(service(server), ["abc"], Length) == [Length(n=7)]
    assert message in server.requests[1]["messages"][-1]["content"]


@pytest.mark.parametrize(("bad", "message"), BAD)
def test_an_answer_that_stays_bad(server: ChatServer, bad: Any, message: str) -> None:
    server.answers = [lambda request: bad]
    with pytest.raises(ModelError, match=f"service 'lab'.*does not fit Length.*{re.escape(message)}"):
        chat(service(server), ["abc"], Length)
    assert len(server.requests) == 2
    with pytest.warns(UserWarning, match=re.escape("1 of 1 prompts have no answer; the first: the answer does not")):
        assert chat(service(server), ["abc"], Length, required=False) == [None]


def test_one_bad_answer_does_not_lose_the_others(server: ChatServer) -> None:
    server.answers = [lambda r: said("?") if r["messages"][-1]["content"] == "b" or len(r["messages"]) > 1 else good(r)]
    with pytest.warns(UserWarning, match="1 of 3 prompts"):
        assert chat(service(server), ["aa", "b", "ccc"], Length, required=False) == [Length(n=2), None, Length(n=3)]


@pytest.mark.parametrize("required", [True, False])
@pytest.mark.parametrize(
    ("fault", "message", "attempts"),
    [
        ((401, {"error": {"message": "bad key"}}), "AuthenticationError", 1),
        ((404, {"error": {"message": "no model m"}}), "no model m", 1),
        ((400, {"error": {"message": "no json_schema here"}}), "no json_schema here", 1),
        ((503, b"busy"), "InternalServerError", 2),
        ((200, b"{not json"), "no JSON", 1),
    ],
)
def test_a_service_that_fails_is_an_error_whatever_is_required(
    server: ChatServer, fault: Any, message: str, attempts: int, required: bool
) -> None:
    server.answers = [lambda request: fault]
    with pytest.raises(ModelError, match=f"service 'lab'.*{message}"):
        chat(service(server), ["abc"], Length, required=required)
    assert len(server.requests) == attempts


@pytest.mark.parametrize("fault", [(401, {"error": {"message": "bad key"}}), said("?")])
def test_the_first_error_stops_the_batch(server: ChatServer, fault: Any) -> None:
    server.answers = [lambda request: fault]
    with pytest.raises(ModelError):
        chat(service(server), [str(n) for n in range(300)], Length)
    assert len(server.requests) < 100


def test_a_prompt_that_takes_too_long_has_no_answer(server: ChatServer) -> None:
    wake = threading.Event()
    server.answers = [lambda request: (wake.wait(600), good(request))[1]]
    with pytest.warns(UserWarning, match="APITimeoutError"):
        assert chat(service(server, timeout=0.2, max_retries=0), ["a"], Length, required=False) == [None]
    with pytest.raises(ModelError, match="APITimeoutError"):
        chat(service(server, timeout=0.2, max_retries=0), ["a"], Length)
    wake.set()


def test_nobody_listens() -> None:
    with pytest.raises(ModelError, match="APIConnectionError"):
        chat(Service("off", "http://127.0.0.1:9/v1", "m", timeout=600, max_retries=0), ["a"], Length, required=False)


@pytest.mark.parametrize("status", [200, 401, 500])
def test_the_key_is_never_shown(
    server: ChatServer,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    tmp_path: Path,
    status: int,
) -> None:
    monkeypatch.setenv("LAB_KEY", KEY)
    answer = said(f"Bearer {KEY}")[1] if status == 200 else {"error": {"message": f"Incorrect API key: {KEY}"}}
    server.answers = [lambda request: (status, answer)]
    one = service(server, api_key_env="LAB_KEY", max_retries=0, cache=str(tmp_path / "answers.jsonl"))
    with caplog.at_level("DEBUG"), pytest.raises(ModelError) as caught:
        chat(one, ["a"], Length)
    assert KEY not in "".join(traceback.format_exception(caught.value)) + caplog.text


class Gist(BaseModel):
    gist: str
    points: list[str]


@pytest.mark.parametrize(("key", "kept"), [(KEY, False), ('sk-"quoted"\\-1234567890', False), ("ollama", True)])
def test_a_key_inside_a_good_answer_is_taken_out(
    server: ChatServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, key: str, kept: bool
) -> None:
    monkeypatch.setenv("LAB_KEY", key)
    server.answers = [lambda request: said(json.dumps({"gist": f"Bearer {key}", "points": [key]}))]
    file = tmp_path / "answers.jsonl"
    wanted = Gist(gist=f"Bearer {key}", points=[key]) if kept else Gist(gist="Bearer ***", points=["***"])
    one = service(server, cache=str(file), api_key_env="LAB_KEY")
    assert chat(one, ["a"], Gist) == [wanted] == chat(one, ["a"], Gist)
    assert kept or "1234567890" not in file.read_text()


def test_answers_are_kept_as_they_come(server: ChatServer, tmp_path: Path) -> None:
    one = service(server, cache=str(tmp_path / "new" / "answers.jsonl"))
    broken = 500, {"error": {"message": "it broke"}}
    server.answers = [lambda request: broken if request["messages"][0]["content"] == "bb" else good(request)]
    with pytest.raises(ModelError, match="it broke"):
        chat(one, ["a", "bb", "ccc"], Length)
    server.answers, server.requests = [good], []
    assert [answer.n for answer in chat(one, ["a", "bb", "ccc"], Length)] == [1, 2, 3]
    assert [request["messages"][0]["content"] for request in server.requests] == ["bb"]
    assert [answer.n for answer in chat(one, ["ccc", "a", "bb"], Length)] == [3, 1, 2]
    assert len(server.requests) == 1


def test_what_an_answer_depends_on_is_in_its_key(server: ChatServer, tmp_path: Path) -> None:
    class Other(BaseModel):
        n: int

    one = service(server, cache=str(tmp_path / "answers.jsonl"))
    chat(one, ["a"], Length)
    for changed, prompt, schema, system in [
        (one, "b", Length, ""),
        (one, "a", Other, ""),
        (one, "a", Length, "Count."),
        (service(server, cache=one.cache, model="m2"), "a", Length, ""),
        (service(server, cache=one.cache, name="lab2"), "a", Length, ""),
    ]:
        before = len(server.requests)
        chat(changed, [prompt], schema, system=system)
        assert len(server.requests) == before + 1


def test_a_damaged_line_is_asked_again(server: ChatServer, tmp_path: Path) -> None:
    file = tmp_path / "answers.jsonl"
    one = service(server, cache=str(file))
    chat(one, ["a", "bb"], Length)
    first, second = file.read_text().splitlines()
    file.write_text(f"{first}\n{second[:30]}\n[1]\n")
    assert [answer.n for answer in chat(one, ["a", "bb"], Length)] == [1, 2]
    assert len(server.requests) == 3


def test_bad_answers_are_not_kept(server: ChatServer, tmp_path: Path) -> None:
    one = service(server, cache=str(tmp_path / "answers.jsonl"))
    server.answers = [lambda request: said("?")]
    with pytest.warns(UserWarning, match="no answer"):
        chat(one, ["a"], Length, required=False)
    server.answers = [good]
    assert chat(one, ["a"], Length) == [Length(n=1)]


def test_a_service_is_found_by_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ModelError, match=r"no language model 'lab' is set \(the settings have none\).*memlab.toml: \["):
        configured("lab")
    with pytest.raises(ModelError, match=r"write in memlab.toml: \[llm.services.NAME\]"):
        configured()
    table = '[llm.services.{0}]\nbase_url = "http://127.0.0.1:1/v1"\nmodel = "m-{0}"\n'
    Path("memlab.toml").write_text(table.format("lab"))
    assert configured() == configured("lab")
    assert configured().model == "m-lab"
    assert configured().cache == ".memlab/answers.jsonl"
    Path("memlab.toml").write_text(table.format("lab") + table.format("two") + 'max_output = 9\ncache = ""\n')
    assert configured("two").max_output == 9
    assert not configured("two").cache
    with pytest.raises(ModelError, match="the settings have lab, two"):
        configured()


@pytest.fixture(scope="module")
def llama() -> Iterator[str]:
    with llama_server() as address:
        yield address


class Verdict(BaseModel):
    """Few tokens, so that a small model on a busy machine is quick; only what a server that keeps the schema says."""

    model_config = ConfigDict(extra="forbid")

    verdict: Literal["zebra", "quokka"]


@pytest.mark.slow
def test_a_real_llama_cpp_server_keeps_to_the_schema(llama: str, tmp_path: Path) -> None:
    cache = str(tmp_path / "answers.jsonl")
    smol = Service("smol", llama, "smollm2", timeout=1800, max_retries=0, max_output=32, cache=cache)
    found = chat(smol, ["Is it blue?", "Is it Ann's?"], Verdict)
    assert {answer.verdict for answer in found} <= {"zebra", "quokka"}
    silent = Service("smol", "http://127.0.0.1:9/v1", "smollm2", max_output=32, cache=cache, max_retries=0)
    assert chat(silent, ["Is it Ann's?", "Is it blue?"], Verdict) == found[::-1]


@pytest.mark.slow
def test_a_real_answer_that_is_cut(llama: str) -> None:
    smol = Service("smol", llama, "smollm2", timeout=1800, max_retries=0, max_output=2)
    with pytest.raises(ModelError, match="cut at the longest output: raise max_output"):
        chat(smol, ["Is it blue?"], Verdict)


def test_outcomes_tell_bad_answers_from_a_service_that_fails(server: ChatServer) -> None:
    faults = {"bad": lambda: said("?"), "down": lambda: (500, {}), "ok": lambda: said('{"n": 1}')}
    server.answers = [
        lambda request: faults[request["messages"][1 if len(request["messages"]) > 1 else 0]["content"]]()
    ]
    found = answers(service(server, max_retries=0), ["ok", "bad", "down", "ok"], Length, system="Count.")
    assert [one.kind for one in found] == ["", "content", "service", ""]
    assert found[0].answer == Length(n=1)
    assert "does not fit Length" in found[1].failure
    assert "500" in found[2].failure


def test_a_service_that_fails_over_and_over_is_left_alone(server: ChatServer) -> None:
    server.answers = [lambda request: (500, {})]
    found = answers(service(server, max_retries=0), [str(n) for n in range(200)], Length)
    assert {one.kind for one in found} == {"service"}
    assert len(server.requests) < 20


def test_an_endless_answer_is_of_no_use(server: ChatServer) -> None:
    server.answers = [lambda request: said('{"n": 1}' + " " * 300_000)]
    assert "300,008 characters" in answers(service(server), ["a"], Length)[0].failure
