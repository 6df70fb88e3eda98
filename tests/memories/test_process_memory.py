"""Memories in processes of their own, and memories that ask their model through a proxy."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from talk import excerpt, write

import memlab
from memlab.errors import DataError
from memlab.llm.proxy import Exchange, Exchanges, ModelProxy
from memlab.memories import ProcessMemory, ProxiedMemory, collect, memory_identity

WORDS = """
import json, sys
kept = []
print("a library says hello")
for line in sys.stdin:
    request = json.loads(line)
    answer = {"id": request["id"], "rows": []}
    if request["do"] == "add":
        kept += request["turns"]
    elif "!" in request["query"]:
        sys.exit("out of memory")
    elif "raise" in request["query"]:
        answer = {"id": request["id"], "error": "ValueError: no"}
    else:
        answer["rows"] = [{"text": t["text"], "id": t["id"]} for t in kept[: request["k"]]]
        answer["rows"] += [{"text": t["role"]} for t in kept[:2]]
    print(json.dumps(answer), flush=True)
"""


@pytest.fixture
def words(tmp_path: Path) -> type[ProcessMemory]:
    place = tmp_path / "words.py"
    place.write_text(WORDS)

    class Words(ProcessMemory):
        command = (sys.executable, str(place))

    return Words


def test_a_process_is_filled_session_by_session_and_asked(words: type[ProcessMemory]) -> None:
    data = excerpt(12, scopes=["owen"])
    done = collect(words, data, name="words", k=3)
    first = done.rows.filter(query_id=data.questions["query_id"].first())
    assert first["source_ids"].to_list() == [[turn] for turn in data.turns["turn_id"].head(3)]
    assert done.failed == []


def test_what_a_process_does_wrong_costs_its_question(words: type[ProcessMemory]) -> None:
    system = words()
    system.ingest(
        memlab.memories.running_a_memory._anonymous_turns_and_known_turn_by_id(excerpt(4), "owen")[
            0
        ]
    )
    assert [row["text"] for row in system.search("q", 0)] == ["user", "assistant"]
    with pytest.raises(memlab.DataError, match="ValueError: no"):
        system.search("raise", 1)
    with pytest.raises(memlab.DataError, match="ended with 1: out of memory"):
        system.search("!", 1)
    with pytest.raises(memlab.DataError, match="no/such/python cannot be started"):
        ProcessMemory(["no/such/python"]).search("q", 1)
    with pytest.raises(memlab.DataError, match="has no command"):
        ProcessMemory()


class Asking:
    """A memory that asks its model when it writes and when it searches."""

    def __init__(self) -> None:
        self.facts = list[str]()

    def ask(self, text: str) -> str:
        import os

        import httpx

        body = {"model": "m", "messages": [{"role": "user", "content": text}]}
        url = os.environ["OPENAI_BASE_URL"] + "/chat/completions"
        answer = httpx.post(url, json=body, trust_env=False, verify=False, timeout=30)
        answer.raise_for_status()
        return answer.json()["choices"][0]["message"]["content"]

    def add(self, text: str) -> None:
        self.facts.append(self.ask("note"))

    def search(self, query: str, k: int) -> list[str]:
        return [*self.facts, self.ask(query)][:k]


def recording(place: Path, *questions: str) -> Path:
    kept = Exchanges(place)
    for question in questions:
        message = {"role": "assistant", "content": f"answer to {question}"}
        asked: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": question}]}
        kept.add(Exchange(asked, {"message": message, "finish_reason": "stop"}, (10, 4)))
    return place


def test_calls_are_counted_while_it_writes_and_while_it_searches(tmp_path: Path) -> None:
    data = excerpt(6, scopes=["owen"])
    asked = data.questions["text"].to_list()
    assert len(asked) > 1
    with ModelProxy(recording(tmp_path / "calls.jsonl", "note", *asked[1:])) as proxy:
        done = collect(ProxiedMemory(Asking, proxy), data, name="asking", k=50)
    writing, searching = (
        proxy.counts.get_or_add_counts_of_phase("writing"),
        proxy.counts.get_or_add_counts_of_phase("searching"),
    )
    n = data.turns.height
    assert (writing.calls, writing.read) == (n, 10 * n)
    assert (searching.calls, searching.refused) == (len(asked) - 1, 1)
    assert done.costs["tokens_read"].to_list() == [10 * (n + len(asked) - 1)]
    (problem,) = done.problems["problem"].to_list()
    assert "404" in problem


@pytest.mark.slow
def test_compare_reads_calls_back_and_says_how_many_matched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from memlab.cli import main

    monkeypatch.setattr("memlab.figures.export", lambda *_, **__: None)
    data = excerpt(6, scopes=["owen"])
    write(tmp_path / "talk.jsonl", data)
    recording(tmp_path / "calls.jsonl", "note", "never asked", *data.questions["text"])
    (tmp_path / "asking_memory.py").write_text(Path(__file__).read_text(encoding="utf-8"))
    monkeypatch.chdir(tmp_path)
    line = ["compare", "talk.jsonl", "--system", "bm25", "--system", "asking_memory:Asking"]
    line += ["--record", "calls.jsonl", "--encoder", "hashing", "--store", "store", "--out", "out"]
    monkeypatch.setattr(sys, "argv", ["memlab", *line])
    with pytest.raises(SystemExit) as end:
        main()
    assert not end.value.code
    said = capsys.readouterr().out
    n, turns = data.questions.height, data.turns.height
    assert f"{n + 1} of {n + 2} recorded prompts were asked for" in said
    assert f"asking_memory:Asking, writing: {turns} calls" in said
    assert f"asking_memory:Asking, searching: {n} calls" in said
    written = json.loads((tmp_path / "out" / "systems.json").read_text())
    assert written["systems"][1]["tokens read"] == 10 * (turns + n)
    assert (written["systems"][1]["status"], len(written["calls"])) == ("", 2)
    # Results that are read back are no replay.
    with pytest.raises(SystemExit):
        main()
    said = capsys.readouterr().out
    assert "nothing was replayed; --out FOLDER replays them" in said
    assert f"asking_memory:Asking, writing: {turns} calls" in said
    # Another recording is another memory, and what it refuses is in the table.
    recording(tmp_path / "other.jsonl", "another note")
    line[line.index("calls.jsonl")] = "other.jsonl"
    monkeypatch.setattr(sys, "argv", ["memlab", *line])
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 1
    out, err = capsys.readouterr()
    assert "asking_memory:Asking (no result; 1 of 1 scope failed; 1 of 1 prompt refused)" in out
    assert "1 of 1 prompt refused, the first: not recorded: asked 'user: note" in out
    assert "asking_memory:Asking has no result at all" in err


class Swallowing(Asking):
    """A memory that goes on without its model."""

    def ask(self, text: str) -> str:
        import httpx

        try:
            return super().ask(text)
        except httpx.HTTPStatusError:
            return text


def test_refusals_that_a_memory_swallows_are_in_the_table(tmp_path: Path) -> None:
    data = excerpt(6, scopes=["owen"])
    asked = data.questions["text"].to_list()
    with ModelProxy(recording(tmp_path / "calls.jsonl", "note", *asked[1:])) as proxy:
        done = memlab.compare({"own": ProxiedMemory(Swallowing, proxy)}, data, encoder=None)
    row = done.systems.row(0, named=True)
    n = len(asked) + 1
    assert (row["prompts"], row["prompts refused"]) == (n, 1)
    assert row["status"] == f"1 of {n} prompts refused"
    assert done.without_result() == []
    first, second, refused = done.describe_model_calls()
    assert first.startswith("own, writing: ")
    assert second.endswith("1 refused")
    assert refused.startswith(f"1 of {len(asked)} prompts refused, the first: not recorded: asked")


def test_a_result_is_of_its_recording_its_environment_and_the_versions_it_imports(
    tmp_path: Path,
) -> None:
    digests = list[str]()
    for question in ("one", "two"):
        proxy = ModelProxy(recording(tmp_path / f"{question}.jsonl", question))
        digests.append(ProxiedMemory(Asking, proxy).settings["recording"])
    assert digests[0] != digests[1]
    assert memory_identity.versions_of_imported_packages(Asking).keys() >= {"httpx", "pytest"}
    assert "memlab" not in memory_identity.versions_of_imported_packages(Asking)
    packages = tmp_path / "env" / "lib" / "python3.12" / "site-packages"
    packages.mkdir(parents=True)
    script = tmp_path / "serve.py"
    script.write_text("one")
    command = [str(tmp_path / "env" / "bin" / "python"), str(script)]
    seen = {memory_identity.digest_of_command_environment(command)}
    (packages / "mem0ai-2.2.1.dist-info").mkdir()
    seen.add(ProcessMemory(command).settings["environment"])
    script.write_text("two")
    seen.add(memory_identity.digest_of_command_environment(command))
    assert len(seen) == 3


def test_a_process_that_is_silent_is_one_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from memlab.memories import process_memory

    monkeypatch.setattr(process_memory, "_PATIENCE", 0.2)
    path = tmp_path / "silent.py"
    path.write_text("import sys\nfor line in sys.stdin: pass\n")
    memory = ProcessMemory([sys.executable, str(path)])
    with pytest.raises(DataError, match="gave no answer within"):
        memory.search("tea", 3)
    memory.close()
