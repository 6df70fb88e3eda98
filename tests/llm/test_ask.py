"""llm.ask and llm.embed_texts: recordings, order, bounds, and a server that misbehaves."""

from __future__ import annotations

import json
import re
import resource
import sys
import traceback
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from model_server import KEY, KEY_ENV, SLOW, UNUSABLE, ModelServer, completion, fitting, say, send
from pydantic import BaseModel, ConfigDict

from memlab import DataError, ModelError, llm
from memlab.llm import Answer, Request, Service, embed_texts

BATCH = Service.batch


class Length(BaseModel):
    model_config = ConfigDict(extra="forbid")

    n: int


class Gist(BaseModel):
    points: list[str]


def request(text: str = "abc", **changes: Any) -> Request:
    return Request(
        **{
            "task": "length",
            "version": 1,
            "about": (text,),
            "prompt": text,
            "shape": Length,
            **changes,
        }
    )


def measured(handler: Any, sent: dict) -> None:
    say(json.dumps({"n": len(sent["messages"][-1]["content"])}))(handler, sent)


def test_answers_come_in_the_order_of_the_requests_and_equal_ones_are_asked_once(
    server: ModelServer,
) -> None:
    server.modes = [measured]
    texts = ["x" * (i % 9 + 1) for i in range(40)]
    answers = llm.ask([request(text) for text in texts], server.service(concurrency=3))
    assert [answer.value.n for answer in answers] == [len(text) for text in texts]
    assert len(server.requests) == 9


def test_what_is_sent_is_the_prompt_the_shape_and_nothing_that_was_not_named(
    server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID"):
        monkeypatch.setenv(name, "leak-0123456789")
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    (answer,) = llm.ask([request("a \ud800", system="Count.")], server.service(max_output=9))
    assert (answer.value, answer.tokens) == (Length(n=1), (7, 3))
    assert answer.seconds > 0
    (sent,), (headers,) = server.requests, server.headers
    assert [message["content"] for message in sent["messages"]] == ["Count.", "a ?"]
    assert (sent["temperature"], sent["seed"], sent["max_tokens"]) == (0, 0, 9)
    assert sent["response_format"]["json_schema"]["schema"] == Length.model_json_schema()
    assert (headers["authorization"], headers["accept-encoding"]) == (f"Bearer {KEY}", "identity")
    server.modes = [send(200, completion('{"n": 1}'), Set_Cookie="leak=1; Path=/")]
    llm.ask(
        [request("b"), request("c")],
        server.service(api_key_env=None, max_output=None, concurrency=1),
    )
    assert "leak" not in str(server.headers)
    assert "max_tokens" not in server.requests[1]


def test_a_server_that_takes_no_schema_reads_it_below_the_prompt(server: ModelServer) -> None:
    refused = send(400, {"error": {"message": "Unknown field: response_format"}})
    server.modes = [refused, say('{"n": "many"}'), say('{"n": 4}')]
    assert llm.ask([request()], server.service())[0].value == Length(n=4)
    assert ["response_format" in sent for sent in server.requests] == [True, False, False]
    assert server.prompts[1].startswith("abc\n\nAnswer with JSON of this schema")


def test_an_answer_that_does_not_fit_is_asked_for_once_more_with_what_is_wrong(
    server: ModelServer,
) -> None:
    usage = {"prompt_tokens": 5, "completion_tokens": 2}
    # Words and fences around the JSON are left out.
    server.modes = [
        say('{"n": "many"}', usage=usage),
        say('<think>so</think>```json\n{"n": 4}\n```', usage=usage),
    ]
    (answer,) = llm.ask([request()], server.service())
    assert (answer.value, answer.tokens) == (Length(n=4), (10, 4))
    asked, shown, again = server.requests[1]["messages"]
    assert (asked["content"], shown["content"]) == ("abc", '{"n": "many"}')
    assert "n: Input should be a valid integer" in again["content"]


def test_passing_faults_are_retried_when_the_service_says(server: ModelServer) -> None:
    server.modes = [
        UNUSABLE["dropped"],
        send(429, {}, Retry_After="1.1"),
        send(503, b"busy"),
        fitting,
    ]
    (answer,) = llm.ask([request()], server.service(max_retries=3))
    assert (answer.value, answer.tokens) == (Length(n=1), (7, 3))
    assert answer.seconds >= 1.6, (
        "half a second after the lost connection, then as the service says"
    )


def test_a_service_that_fails_over_and_over_is_left_alone(server: ModelServer) -> None:
    server.modes = [say("no JSON", usage={"prompt_tokens": 7, "completion_tokens": 3})]
    answers = llm.ask([request(str(i)) for i in range(9)], server.service(concurrency=1))
    assert [answer.tokens for answer in answers] == [(14, 6)] * 8 + [(0, 0)]
    assert answers[-1].error.startswith(
        "not asked after 8 failures in a row; the last: service 'lab'"
    )
    assert "--service" not in llm.describe_unanswered(answers[-1:], "answers")


@pytest.mark.parametrize("fault", UNUSABLE)
def test_a_fault_costs_its_request_and_one_line(
    server: ModelServer, caplog: Any, fault: str
) -> None:
    server.modes = [UNUSABLE[fault]]
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with caplog.at_level("DEBUG"):
        (answer,) = llm.ask([request()], server.service())
    assert answer.value is None
    assert re.fullmatch(r"service 'lab'.{,600}", answer.error)
    assert KEY[:12] not in answer.error + caplog.text
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < 300_000 * (1 if sys.platform == "linux" else 1024)


@pytest.mark.parametrize("fault", SLOW)
def test_a_deadline_ends_what_is_slow(server: ModelServer, fault: str) -> None:
    server.modes = [SLOW[fault]]
    (answer,) = llm.ask([request()], server.service(timeout=0.5, max_retries=0))
    assert answer.value is None
    assert "0.5 s" in answer.error
    assert answer.seconds < 5


def test_a_redirect_takes_no_conversation_elsewhere(server: ModelServer) -> None:
    other = ModelServer()
    server.modes = [send(307, b"", Location=f"{other.url}/chat/completions")]
    (answer,) = llm.ask([request()], server.service())
    other.close()
    assert "redirect" in answer.error
    assert other.requests == []


@pytest.mark.parametrize("key", [KEY, 'sk-"quoted"\\-1234567890'])
def test_a_key_inside_an_answer_is_taken_out(
    server: ModelServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, key: str
) -> None:
    monkeypatch.setenv(KEY_ENV, key)
    # A senseless usage is none: the tokens are estimated by characters.
    server.modes = [say(json.dumps({"points": [f"Bearer {key}"]}), usage={"prompt_tokens": 2**63})]
    file = tmp_path / "record.jsonl"
    with pytest.warns(UserWarning, match=r"the key that its answers repeat stands as \*\*\*"):
        (answer,) = llm.ask([request(shape=Gist)], server.service(record=str(file)))
    written = json.dumps({"points": [f"Bearer {key}"]})
    assert answer.value == Gist(points=["Bearer ***"])
    assert answer.tokens == (1, -(-len(written) // 4))
    assert answer.is_estimated
    assert "1234567890" not in file.read_text()


def test_a_service_that_cannot_be_asked_is_an_error(
    server: ModelServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("BROKEN_KEY", f"{KEY}\nX: y")
    monkeypatch.chdir(tmp_path)
    Path("memlab.toml").write_text(
        '[llm.services.lab]\nbase_url = "http://127.0.0.1:1/v1"\nmodel = "m"\n'
    )
    assert llm.configured_service("lab") == Service("lab", "http://127.0.0.1:1/v1", "m")
    for service, word in (
        ("nobody", r"have lab\).*\[llm.services.nobody\]"),
        (server.service(base_url="file:///x"), "base_url"),
        *((server.service(api_key_env=name), name) for name in ("UNSET_KEY", "BROKEN_KEY")),
    ):
        with pytest.raises(ModelError, match=word) as caught:
            llm.ask([request()], service)
        assert KEY not in "".join(traceback.format_exception(caught.value))
    # A prompt that is too long costs its request.
    assert "max_input" in llm.ask([request("x" * 50)], server.service(max_input=40))[0].error
    assert server.requests == []


def test_answers_are_recorded_as_they_come_and_read_before_anything_is_asked(
    server: ModelServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "new" / "record.jsonl"
    service = server.service(record=str(file), max_retries=0, concurrency=1)
    server.modes = [measured, send(503, {}), measured]
    first = llm.ask([request("a"), request("bb"), request("ccc")], service)
    assert [answer.value and answer.value.n for answer in first] == [1, None, 3]
    again = llm.ask([request("a"), request("bb", prompt="in other words"), request("ccc")], service)
    assert [(answer.value.n, answer.seconds == 0) for answer in again] == [
        (1, True),
        (14, False),
        (3, True),
    ]
    row = json.loads(file.read_text().splitlines()[0])
    assert row == {
        "task": "length",
        "version": 1,
        "key": request("a").key,
        "answer": {"n": 1},
        "tokens": [1, 2],
        "estimated": True,
    }
    # Without the network, by the settings; one that does not fit the shape any more is not
    # recorded.
    monkeypatch.chdir(tmp_path)
    Path("memlab.toml").write_text(f'[llm]\nrecordings = ["{file}"]\n')
    server.requests.clear()
    others = [request("dddd"), request("a", version=2), request("a", task="t")]
    offline = [
        *llm.ask([request("a"), *others], "recorded"),
        *llm.ask([request("a", shape=Gist)], "recorded"),
    ]
    assert offline[0].value == Length(n=1)
    assert offline[1:] == [Answer(None, "not recorded")] * 4
    assert server.requests == []


def test_a_damaged_recording_costs_its_lines_and_a_full_disk_the_recording(
    server: ModelServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.modes = [measured]
    file, three = tmp_path / "record.jsonl", [request("a"), request("bb"), request("ccc")]
    service = server.service(record=str(file), concurrency=1)
    llm.ask(three, service)
    first, second, third = file.read_text().splitlines()
    odd = [
        f'{{"key": "{request("bb").key}", "answer": ' + "[" * 100_000,
        "[1]",
        "{}",
        "\udcff",
        "9" * 5_000,
    ]
    file.write_bytes(
        "\n".join([first, *odd, third, second[:40]]).encode("utf-8", "surrogateescape")
    )
    server.requests.clear()
    assert [answer.value.n for answer in llm.ask(three, service)] == [1, 2, 3]
    assert server.prompts == ["bb"]
    assert file.read_text(errors="replace").splitlines()[-1] == second
    with pytest.raises(DataError, match="cannot be read"):
        llm.ask([request()], server.service(record=str(tmp_path)))

    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "mkdir", full)
    with pytest.warns(UserWarning, match="No space left"):
        assert llm.ask([request("new")], service)[0].value == Length(n=3)


def rows(*vectors: Any, index: bool = True) -> Any:
    """Answer with these vectors, in reverse where they have an index."""
    listed = [
        {"embedding": vector, **({"index": i} if index else {})} for i, vector in enumerate(vectors)
    ]
    return send(200, {"data": listed[::-1] if index else listed})


def test_vectors_come_in_the_order_of_the_texts_by_bounded_requests(server: ModelServer) -> None:
    server.modes = [rows([1.0], [3.0], [2.0]), rows([2.0], [1.0], index=False), fitting]
    assert embed_texts(server.service(), ["a", "bbb", "cc"]).tolist() == [[1], [3], [2]]
    found = embed_texts(server.service(), ["aa", "b"])
    assert (found.tolist(), found.dtype) == ([[2], [1]], np.float32)
    assert server.requests[0]["encoding_format"] == "float"
    assert embed_texts(server.service(), []).shape == (0, 0)
    texts = ["x" * n for n in range(1, 3 * BATCH)]
    assert embed_texts(server.service(), texts)[:, 0].tolist() == [*range(1, 3 * BATCH)]
    sizes = sorted(len(request["input"]) for request in server.requests[2:])
    assert sizes == [BATCH - 1, BATCH, BATCH]


FAULTS: dict[str, Any] = {
    **{name: UNUSABLE[name] for name in ("429", "deep body", "a list", "gzip bomb")},
    "too few": rows([1.0]),
    "too many": rows([1.0], [1.0], [1.0]),
    "one twice": send(200, {"data": [{"index": 0, "embedding": [1.0]}] * 2}),
    "a word for a place": send(200, {"data": [{"index": "a", "embedding": [1.0]}] * 2}),
    "two widths": rows([1.0], [1.0, 2.0]),
    "base64": rows("AAAA", "AAAA"),
    "NaN": send(200, b'{"data": [{"embedding": [NaN]}, {"embedding": [1]}]}'),
    "infinity": rows([1e99], [1.0]),
    "a million rows": send(200, b'{"data": [' + b"{}," * 1_000_000 + b"{}]}"),
    "a million numbers": rows([1.0] * 1_000_000, [1.0]),
    "echoed key": send(200, {"data": [{"embedding": f"Bearer {KEY}"}], KEY: KEY}),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_lasting_fault_is_one_clear_error(server: ModelServer, caplog: Any, fault: str) -> None:
    server.modes = [FAULTS[fault]]
    with (
        caplog.at_level("DEBUG"),
        pytest.raises(ModelError, match=r"service 'lab'.*model 'm'") as caught,
    ):
        embed_texts(server.service(), ["abc", "d"])
    assert KEY[:12] not in "".join(traceback.format_exception(caught.value)) + caplog.text


def test_a_width_that_changes_is_noticed_and_what_an_address_may_hide_is_not_shown(
    server: ModelServer,
) -> None:
    server.modes = [fitting, rows([1.0, 2.0, 3.0])]
    with pytest.raises(ModelError, match="widths"):
        embed_texts(server.service(), ["a"] * (BATCH + 1))
    hidden = Service(
        "off", f"http://me:{KEY}@127.0.0.1:9/v1?token={KEY}", "m", timeout=60, max_retries=0
    )
    with pytest.raises(ModelError, match=r"\(http://127\.0\.0\.1:9/v1, model 'm'\)") as caught:
        embed_texts(hidden, ["a"])
    assert KEY not in str(caught.value)
