"""The proxy between a memory and its model: what is recorded, read back, refused and counted."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

import memlab
from memlab.errors import DataError, ModelError, install_command
from memlab.llm import Service
from memlab.llm.proxy import Exchange, Exchanges, ModelProxy
from memlab.llm.proxy.call_counts import Counts
from memlab.llm.proxy.http_server import InvalidRequestError, http_status_and_error_type
from memlab.llm.proxy.openai_replies import (
    asks_for_usage,
    completion_of_exchange,
    read_exchange,
    stream_events,
)
from memlab.llm.proxy.prompt_rules import read_rules
from memlab.llm.service_faults import Fault, RefusedError

UUIDS = [f"{n}2345678-1234-1234-1234-123456789abc" for n in range(1, 5)]


def chat(text: str, **more: Any) -> dict[str, Any]:
    return {"model": "m", "messages": [{"role": "user", "content": text}], **more}


def said(text: str, tokens: tuple[int, int] = (3, 2)) -> tuple[dict[str, Any], tuple[int, int]]:
    message = {"role": "assistant", "content": text}
    return {"message": message, "finish_reason": "stop"}, tokens


def post(proxy: ModelProxy, body: Any, path: str = "/chat/completions", **more: Any) -> Any:
    with httpx.Client(trust_env=False, timeout=30) as client:
        return client.post(proxy.url + path, json=body, **more)


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    kept = Exchanges(tmp_path / "calls.jsonl")
    for question, answer in (("Say ok", "ok"), ("Who moved?", "Ann moved.")):
        kept.add(Exchange(chat(question), *said(answer)))
    return tmp_path / "calls.jsonl"


def as_service(proxy: ModelProxy, **more: Any) -> Service:
    return Service("upstream", proxy.url, "m", max_retries=0, **more)


def test_a_service_is_asked_once_and_then_the_file(recording: Path, tmp_path: Path) -> None:
    place = tmp_path / "own.jsonl"
    with ModelProxy(recording) as upstream:
        with ModelProxy(place, service=as_service(upstream)) as proxy:
            with ThreadPoolExecutor(4) as pool:
                asked = [pool.submit(post, proxy, chat("Who moved?")) for _ in range(4)]
            answers = {each.result().text for each in asked}
            assert len(answers) == 1
            assert json.loads(answers.pop())["choices"][0]["message"]["content"] == "Ann moved."
        assert upstream.counts.get_or_add_counts_of_phase("writing").calls == 1
    assert len(place.read_text().splitlines()) == 1
    with ModelProxy(place) as alone:
        whole = post(alone, chat("Who moved?")).json()
        assert whole["usage"] == {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}
        assert "1 of 1 recorded prompt was asked for" in alone.lines()


def test_what_is_not_recorded_is_refused_with_the_first_difference(recording: Path) -> None:
    with ModelProxy(recording) as proxy:
        refused = post(proxy, chat("Who moved away?"))
        assert refused.status_code == 404
        message = refused.json()["error"]["message"]
        assert message.startswith("not recorded: asked 'user: Who moved away?")
        assert "the nearest of 2 prompts has 'user: Who moved?" in message
        post(proxy, chat("Who moved away?"))
        post(proxy, chat("Say ok"))
        assert proxy.counts.get_or_add_counts_of_phase("writing").refused == 2
        assert "1 of 2 recorded prompts were asked for" in proxy.lines()


def test_order_of_keys_ids_and_the_day_do_not_matter() -> None:
    kept = Exchanges(None)
    day = "## Current Date\n2026-11-{}\n<session_{}> {}"
    kept.add(Exchange(chat(day.format(28, *UUIDS[:2])), *said(f"update {UUIDS[1]}")))
    again = dict(reversed([*chat(day.format(29, *UUIDS[2:])).items()]))
    found = kept.find(again)
    assert found is not None
    assert found.answer["message"]["content"] == f"update {UUIDS[3]}"
    assert kept.find(chat(day.format(29, UUIDS[2], UUIDS[2]))) is None
    assert kept.find(chat("on 2026-11-28")) is None


def test_tools_and_schema_are_part_of_the_question() -> None:
    kept = Exchanges(None)
    tool = {"type": "function", "function": {"name": "add", "parameters": {}}}
    kept.add(Exchange(chat("Hi", tools=[tool]), *said("a")))
    assert kept.find(chat("Hi", tools=[tool], temperature=0.3)) is not None
    assert kept.find(chat("Hi")) is None
    assert kept.find(chat("Hi", tools=[tool], response_format={"type": "json_object"})) is None


def test_two_writers_and_a_line_that_broke_off(tmp_path: Path) -> None:
    place = tmp_path / "calls.jsonl"
    writers = [Exchanges(place), Exchanges(place)]

    def write(number: int) -> None:
        for n in range(20):
            writers[number].add(Exchange(chat(f"{number} {n}\u2028"), *said("x" * 5000)))

    threads = [threading.Thread(target=write, args=(n,)) for n in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(Exchanges(place)), Exchanges(place).damaged) == (40, 0)
    with place.open("ab") as out:
        out.write(b'{"asked": {"model"')
    broken = Exchanges(place)
    assert (len(broken), broken.damaged) == (40, 1)
    broken.add(Exchange(chat("last"), *said("kept")))
    assert len(Exchanges(place)) == 41


def test_no_key_is_written(
    recording: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UPSTREAM_KEY", "sk-secret-0123456789")
    kept = Exchanges(recording)
    kept.add(Exchange(chat("Which key?"), *said("it is sk-secret-0123456789")))
    place = tmp_path / "own.jsonl"
    with ModelProxy(recording) as upstream:
        service = as_service(upstream, api_key_env="UPSTREAM_KEY")
        with ModelProxy(place, service=service) as proxy:
            answer = post(proxy, chat("Which key?"), headers={"Authorization": "Bearer sk-other"})
    assert answer.json()["choices"][0]["message"]["content"] == "it is ***"
    assert "sk-" not in place.read_text()


def test_variables_are_set_and_set_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://before/v1")
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with ModelProxy(None) as proxy:
        assert os.environ["OPENAI_BASE_URL"] == proxy.url
        assert os.environ["OPENAI_API_KEY"]
        with pytest.raises(httpx.ProxyError):
            httpx.get("https://models.example/v1")
        assert proxy.wanted == {"models.example": 1}
    assert os.environ["OPENAI_BASE_URL"] == "http://before/v1"
    assert "OPENAI_API_KEY" not in os.environ


def test_only_loopback_and_its_own_paths_are_served(recording: Path) -> None:
    with ModelProxy(recording) as proxy:
        assert post(proxy, chat("Say ok"), headers={"Host": "evil.example"}).status_code == 403
        refused = post(proxy, {"input": "hi"}, "/responses")
        assert refused.status_code == 404
        assert "POST /v1/responses is not served" in refused.json()["error"]["message"]
        assert proxy.wanted == {"evil.example": 1, "POST /v1/responses": 1}
        assert post(proxy, [1]).status_code == 400
        assert post(proxy, {"messages": "Hi"}).status_code == 400


def test_a_stream_holds_the_same_answer(recording: Path) -> None:
    with ModelProxy(recording) as proxy:
        events = post(proxy, chat("Say ok", stream=True)).text.split("\n\n")
    chunks = [json.loads(event.removeprefix("data: ")) for event in events[:-2]]
    assert chunks[0]["choices"][0]["delta"]["content"] == "ok"
    assert chunks[1]["choices"][0]["finish_reason"] == "stop"
    assert events[-2] == "data: [DONE]"
    assert [len(chunk["choices"]) for chunk in chunks] == [1, 1]


def test_a_stream_ends_in_its_tokens_where_they_are_asked_for() -> None:
    whole = completion_of_exchange(Exchange(chat("Say ok"), *said("ok")), "m")
    asked = chat("Say ok", stream=True, stream_options={"include_usage": True})
    assert asks_for_usage(asked)
    assert not asks_for_usage(chat("Say ok", stream_options=7))
    *_, last, done = stream_events(whole, with_usage=True)
    chunk = json.loads(last.removeprefix(b"data: "))
    assert (chunk["choices"], chunk["usage"]["total_tokens"]) == ([], 5)
    assert done == b"data: [DONE]\n\n"


@pytest.mark.parametrize("tokens", [(-1, 2), (3, 10**12), ("3", "2"), (True, 2), (3, 2.5), (3,)])
def test_tokens_that_are_no_counts_are_estimated(tmp_path: Path, tokens: Any) -> None:
    place = tmp_path / "calls.jsonl"
    Exchanges(place).add(Exchange(chat("Say ok"), *said("ok", tokens)))
    found = Exchanges(place).find(chat("Say ok"))
    assert found is not None
    assert (found.tokens[0] > 10, found.is_estimated) == (True, True)
    usage = dict(zip(("prompt_tokens", "completion_tokens"), tokens, strict=False))
    body = {"choices": [said("ok")[0]], "usage": usage}
    assert read_exchange(json.dumps(body).encode(), chat("Say ok")).is_estimated


def test_a_byte_order_mark_and_lines_that_are_none(recording: Path, tmp_path: Path) -> None:
    marked = tmp_path / "marked.jsonl"
    marked.write_bytes(b"\xef\xbb\xbf" + recording.read_bytes())
    assert (len(Exchanges(marked)), Exchanges(marked).damaged) == (2, 0)
    first, second = recording.read_text().splitlines()
    marked.write_text(f"{first}\n\n7\n{second}\n")
    assert Exchanges(marked).describe_damage() == f"{marked}: 1 damaged line (line 3) is left out"
    with pytest.warns(UserWarning, match="1 damaged line"):
        ModelProxy(marked)
    marked.write_bytes(bytes(range(256)) * 3)
    with pytest.raises(DataError, match="is no recording: none of its"):
        ModelProxy(marked)
    marked.write_text(first[:40])  # the first exchange was broken off
    assert Exchanges(marked).damaged_lines == [1]


def test_the_digest_names_what_is_recorded_in_whatever_order(
    recording: Path, tmp_path: Path
) -> None:
    turned = tmp_path / "turned.jsonl"
    turned.write_text("\n".join(reversed(recording.read_text().splitlines())))
    before = Exchanges(recording).digest()
    assert Exchanges(turned).digest() == before
    Exchanges(turned).add(Exchange(chat("Hi"), *said("Hello")))
    assert Exchanges(turned).digest() != before


@pytest.mark.parametrize(
    ("answer", "kind"),
    [(b"", "service"), (b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n[1]", "service_answer")],
)
def test_a_service_that_drops_the_connection_or_gives_no_completion(
    tmp_path: Path, answer: bytes, kind: str
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            connection, _ = listening.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        url = f"http://127.0.0.1:{listening.getsockname()[1]}/v1"
        service = Service("upstream", url, "m", max_retries=0)
        with ModelProxy(tmp_path / "own.jsonl", service=service) as proxy:
            failed = post(proxy, chat("Say ok"))
            unread = httpx.Client(trust_env=False).post(
                proxy.url + "/chat/completions", content=b"{"
            )
        thread.join()
    assert (failed.status_code, failed.json()["error"]["type"]) == (502, kind)
    assert (unread.status_code, unread.json()["error"]["type"]) == (400, "invalid_request_error")


def test_who_made_an_error_stands_in_its_status_and_type() -> None:
    refused = RefusedError("too long", Fault(413, "too long"), {}, 0.0)
    errors = {
        InvalidRequestError("no JSON"): (400, "invalid_request_error"),
        ModelError("ReadError: the connection was dropped"): (502, "service"),
        DataError("the disk is full"): (500, "recording"),
        refused: (413, "service"),
    }
    assert {error: http_status_and_error_type(error) for error in errors} == errors


def test_refusals_of_one_memory_are_counted_by_prompt(recording: Path) -> None:
    own = Counts()
    proxy = ModelProxy(recording)
    with proxy.counting("writing", own):
        for question in ("Say ok", "Who moved away?", "Who moved away?"):
            with suppress(ModelError):
                proxy.answer(chat(question))
    counts = own.get_or_add_counts_of_phase("writing")
    assert (counts.calls, counts.refused, len(counts.asked)) == (1, 2, 2)
    (why,) = counts.unanswered().values()
    assert why.startswith("not recorded: asked")
    assert proxy.counts.get_or_add_counts_of_phase("writing").refused == 2


def test_texts_are_embedded_by_the_local_encoder() -> None:
    encoder = memlab.embed.load("hashing")
    with ModelProxy(None, encoder=encoder) as proxy:
        with proxy.counting("searching"):
            rows = post(proxy, {"input": ["Ann moved", "Bo"], "model": "any"}, "/embeddings").json()
        expected = encoder.encode(["Ann moved", "Bo"], progress=False)
        given = np.array([row["embedding"] for row in rows["data"]], dtype=np.float32)
        np.testing.assert_array_equal(given, expected)
        assert proxy.counts.get_or_add_counts_of_phase("searching").embedded == 2
        refused = post(proxy, {"input": [[1, 2]]}, "/embeddings").json()["error"]["message"]
        assert "check_embedding_ctx_length=False" in refused
    with ModelProxy(None) as proxy:
        refused = post(proxy, {"input": "Ann"}, "/embeddings").json()["error"]["message"]
        assert "has no encoder" in refused


def test_a_service_that_fails_costs_its_question(recording: Path, tmp_path: Path) -> None:
    place = tmp_path / "own.jsonl"
    with ModelProxy(recording) as upstream:
        proxy = ModelProxy(place, service=as_service(upstream))
        with proxy:
            failed = post(proxy, chat("Not there"))
            # What the service says of the request goes on to who asked.
            assert (failed.status_code, failed.json()["error"]["type"]) == (404, "service")
            assert "not recorded" in failed.json()["error"]["message"]
            assert post(proxy, chat("Say ok")).status_code == 200
    assert len(Exchanges(place)) == 1


def test_what_is_missing_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with ModelProxy(None) as taken:
        port = int(taken.url.split(":")[2].removesuffix("/v1"))
        with pytest.raises(ModelError, match="cannot be listened on"):
            ModelProxy(None, port=port).start()
    monkeypatch.setitem(sys.modules, "aiohttp", None)
    with pytest.raises(ModelError, match=re.escape(install_command("proxy"))):
        ModelProxy(None).start()
    (tmp_path / "rules.toml").write_text("[any]\nname = ['(']\n")
    with pytest.raises(ModelError, match="no rules"):
        read_rules(tmp_path / "rules.toml")
    with pytest.raises(DataError, match="cannot be read"):
        Exchanges(tmp_path)


def test_counts_have_a_price_where_the_service_has(recording: Path, tmp_path: Path) -> None:
    with ModelProxy(recording) as upstream:
        service = as_service(upstream, input_price=1e6, output_price=2e6)
        with ModelProxy(tmp_path / "own.jsonl", service=service) as proxy:
            post(proxy, chat("Say ok"))
            phases = proxy.describe()["phases"]
    assert phases["writing"]["price"] == 7.0
    assert phases["writing"]["estimated"] == 0


@pytest.mark.slow
def test_ctrl_c_ends_the_command_and_prints_what_was_asked(recording: Path) -> None:
    """Not in this process: libraries that it imports have handlers of their own."""
    line = ["memlab", "proxy", "--recorded", str(recording), "--port", "0"]
    code = "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler); "
    code += f"sys.argv = {[*line, '--encoder', 'hashing']!r}; "
    code += "from memlab.cli import main; main()"
    started = subprocess.Popen(
        [sys.executable, "-u", "-c", code], stdout=subprocess.PIPE, text=True
    )
    assert started.stdout is not None
    assert "2 exchanges recorded" in started.stdout.readline()
    started.send_signal(signal.SIGINT)
    said, _ = started.communicate(timeout=120)
    assert "0 of 2 recorded prompts were asked for" in said
    assert started.returncode == 0
