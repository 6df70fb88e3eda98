"""The client of a memory at an address: its messages, and what a service may do wrong."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from jsonschema import Draft202012Validator
from memory_server import serving
from model_server import KEY, SLOW, UNUSABLE, ModelServer, send

from memlab.config import TOKEN_VARIABLE
from memlab.errors import DataError
from memlab.memories import TURNS, HttpMemory, collect
from memlab.records import Dataset

ROOT = Path(__file__).parents[2]


def by_shared_words(turns: pl.DataFrame, query: str, k: int) -> pl.DataFrame:
    words = query.lower().split()
    shared = [len(set(words) & set(text.lower().split())) for text in turns["text"]]
    ranked = turns.with_columns(score=pl.Series(shared, dtype=pl.Float64)).sort(
        "score", descending=True, maintain_order=True
    )
    time = pl.col("time").dt.to_string("iso:strict")
    return ranked.head(k).select("text", "score", time, source_ids=pl.concat_list("id"))


class Found:
    """Gives the turn that came last, and says what it takes on disk."""

    def add(self, text: str, id: str) -> None:
        self.row = {"memory": text, "metadata": {"id": id, "time": "2024-05-01"}}

    def search(self, query: str) -> list[Any]:
        return [self.row]

    def usage(self) -> dict[str, int]:
        return {"bytes": 12}


def test_over_http_as_here(data: Dataset) -> None:
    here = collect(by_shared_words, data, name="words", k=5)
    with serving(by_shared_words) as server:
        there = collect(server.url, data, name="words", k=5)
    assert here.rows["score"].unique().sort().to_list() == [0.0, 1.0]
    assert there.rows.equals(here.rows)
    assert there.problems.is_empty()

    with serving(Found) as server:
        done = collect(server.url, data, name="found", k=1)
    assert done.rows["source_ids"].explode().to_list() == ["ann/2.3", "ann/2.3", "bo/2.3", "bo/2.3"]
    assert done.rows["time"].unique().to_list() == ["2024-05-01"]
    assert done.costs["bytes"].to_list() == [12, 12]


def test_messages_and_answers_are_those_of_the_contract(data: Dataset) -> None:
    spec = json.loads((ROOT / "docs" / "memory-openapi.json").read_text())

    def check(body: Any, content: dict[str, Any]) -> None:
        schema = {**content["application/json"]["schema"], "components": spec["components"]}
        Draft202012Validator(schema).validate(body)

    with serving(by_shared_words) as server:
        HttpMemory(server.url).wait()
        collect(server.url, data.take(["ann"]), name="words", k=3)
        answer = HttpMemory(server.url).search("ann", "Who?", 3, None)
    paths = [path for path, _ in server.messages]
    assert paths[1:] == ["/reset", "/ingest", "/wait", "/search", "/search", "/usage", "/search"]
    assert set(paths) == set(spec["paths"])
    for path, body in server.messages:
        check(body, spec["paths"][path]["post"]["requestBody"]["content"])
    check(answer, spec["paths"]["/search"]["post"]["responses"]["200"]["content"])
    sent = dict(server.messages)["/ingest"]["turns"]
    assert set(sent[0]) == set(spec["components"]["schemas"]["Turn"]["properties"]) == set(TURNS)
    assert [turn["id"] for turn in sent] == [f"turn-{n}" for n in range(1, 7)]


def test_a_token_is_sent_and_a_bad_one_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(by_shared_words, token="sesame") as server:
        with pytest.raises(DataError, match="401"):
            HttpMemory(server.url).reset("a")
        monkeypatch.setenv(TOKEN_VARIABLE, "sesame")
        HttpMemory(server.url).reset("a")
    for wrong in ("sec\nret", "secret\n", "sec ret", "secrét"):
        with pytest.raises(DataError, match="token") as error:
            HttpMemory("http://127.0.0.1", token=wrong)
        assert "sec" not in str(error.value)


BAD = {
    "no JSON": (UNUSABLE["no JSON"], "no JSON"),
    "deep": (send(200, b"[" * 200_000), "no JSON"),
    "a large number": (send(200, b"1" * 9_000), "no JSON"),
    "gzip bomb": (UNUSABLE["gzip bomb"], "no JSON"),
    "echoed key": (
        send(500, f"it is {KEY} that broke {KEY * 90}"),
        "answers 500: .it is ••• that broke",
    ),
    "endless": (UNUSABLE["endless"], "more than 16,000,000 bytes"),
    "dropped": (UNUSABLE["dropped"], "RemoteProtocolError"),
    "no HTTP": (lambda handler, _: handler.wfile.write(b"no HTTP\r\n\r\n"), "RemoteProtocolError"),
    **{name: (mode, "within 0.5 s") for name, mode in SLOW.items()},
}


@pytest.mark.parametrize(("mode", "word"), BAD.values(), ids=BAD)
def test_a_bad_answer_is_one_line_in_time(server: ModelServer, mode: Any, word: str) -> None:
    server.modes, started = [mode], time.monotonic()
    patience = 0.5 if "within" in word else 20
    with pytest.raises(DataError, match=word) as error:
        HttpMemory(server.url, token=KEY, timeout=patience).search("a", "who?", 3, None)
    assert time.monotonic() - started < patience + 4
    assert KEY not in str(error.value)
    assert len(str(error.value)) < 400


def test_nothing_compressed_is_asked_for_and_no_redirect_is_followed(server: ModelServer) -> None:
    server.modes = [send(307, b"", Location="/elsewhere")]
    with pytest.raises(DataError, match="redirects"):
        HttpMemory(server.url, token=KEY).search("a", "who?", 3, None)
    assert [headers["accept-encoding"] for headers in server.headers] == ["identity"]
