"""The worker: what is due, what failing models leave behind, and that a key is never shown."""

from __future__ import annotations

import hashlib
import json
import shutil
import threading
from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import store_data
from chat_server import FAULTS, KEY, UNANSWERED, ChatServer, fitting
from memlab.summarize import by_model as summary_prompts

import memlab
from memlab import ModelError
from memlab.config import IndexSettings
from memlab.embed.base import Kind
from memlab.embed.hashing import HashingEncoder
from memlab.indexing import attached, batch, index, nothing_made, pending, report, resolved
from memlab.knowledge import by_model as knowledge_prompts
from memlab.knowledge import score, search_facts
from memlab.language.analysis import english
from memlab.records import Turn, frame
from memlab.sessions import sessions_of
from memlab.store import CachedEncoder, MemoryStore
from memlab.store.knowledge import UNDONE
from memlab.store.registry import INDEX_TABLES

pytestmark = pytest.mark.skipif(not find_spec("openai"), reason="the extra memlab[llm] is not installed")

SAID = [
    "Hi Bo! I moved to Lisbon last week.",
    "Great! My sister Anna lives in Lisbon too.",
    "I work at Acme now. We decided to rent a flat in Alfama.",
    "I'll send you the contract tomorrow. Do you need a desk?",
    "I bought a desk for $250.",
]
START = datetime(2025, 3, 1, 9, tzinfo=UTC)
NAME = "talk"


class Counting(HashingEncoder):
    """An encoder that notes what it encodes."""

    def __init__(self) -> None:
        super().__init__(64)
        self.texts: list[str] = []

    def encode(self, texts: Iterable[str], *, kind: Kind = "document", progress: bool = True) -> np.ndarray:
        wanted = list(texts)
        self.texts += wanted
        return super().encode(wanted, kind=kind, progress=progress)


def talk(n_sessions: int = 3, n_scopes: int = 2, n_turns: int = 5) -> memlab.Dataset:
    turns = [
        Turn(
            f"u{c}/s{s}/{n + 1}", f"u{c}", f"u{c}/s{s}", n + 1, ("Ann", "Bo")[n % 2], "user",
            f"{SAID[n % 5]} That was {s + 1} of {c + 7}.", None, START + timedelta(days=s, minutes=n),
        )
        for c in range(n_scopes)
        for s in range(n_sessions)
        for n in range(n_turns)
    ]  # fmt: skip
    rows = frame(Turn, turns)
    return memlab.Dataset(NAME, "chatlog", rows, sessions_of(rows))


@pytest.fixture(scope="module")
def ingested(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("ingested") / "store"
    MemoryStore.open(place).ingest(talk())
    return place


@pytest.fixture
def store(ingested: Path, tmp_path: Path) -> MemoryStore:
    return MemoryStore.open(shutil.copytree(ingested, tmp_path / "store"))


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ChatServer]:
    monkeypatch.setenv("LAB_TEST_KEY", KEY)
    one = ChatServer()
    yield one
    one.close()


def whole(store: MemoryStore) -> None:
    """Assert that each session has all of its rows, or none."""
    states = store.knowledge.states(NAME)
    done = set(states.filter(pl.col("generation").is_not_null())["session_id"])
    assert set(store.knowledge.rows("summaries", NAME)["session_id"]) == done
    evidence = store.knowledge.rows("facts", NAME)["evidence"].explode().str.extract(r"^(.*)/")
    assert set(evidence) <= done
    assert set(store.knowledge.rows("entities", NAME)["session_id"]) <= done


def test_every_closed_session_is_indexed_once(store: MemoryStore) -> None:
    events = index(store, NAME)
    assert events["kind"].to_list() == ["created"] * 6
    assert store.knowledge.rows("summaries", NAME)["session_id"].to_list() == talk().sessions["session_id"].to_list()
    assert store.knowledge.rows("summaries", NAME)["n_turns"].to_list() == [5] * 6
    assert {"Lisbon", "Acme"} <= set(store.knowledge.rows("entities", NAME)["name"])
    assert store.knowledge.rows("facts", NAME).height >= 6
    whole(store)
    assert index(store, NAME).is_empty()
    assert store.knowledge.events(NAME)["kind"].to_list() == ["created"] * 6


@pytest.mark.parametrize("table", ["index_events", "index_states"])
def test_a_batch_that_was_cut_off_is_made_again_with_one_event_a_session(
    store: MemoryStore, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = type(store.knowledge)._write

    def cut_off(self: Any, name: str, *rest: Any) -> None:
        if name == table:
            raise KeyboardInterrupt
        write(self, name, *rest)

    with monkeypatch.context() as patched:
        patched.setattr(type(store.knowledge), "_write", cut_off)
        with pytest.raises(KeyboardInterrupt):
            index(store, NAME)
    index(store, NAME)
    assert store.knowledge.events(NAME)["kind"].to_list() == ["created"] * 6
    whole(store)


@pytest.mark.slow
def test_the_same_turns_give_the_same_rows(store: MemoryStore, tmp_path: Path) -> None:
    other = MemoryStore.open(tmp_path / "other")
    other.ingest(talk())
    index(store, NAME, now=START + timedelta(days=9), settings=IndexSettings(batch=1))
    index(other, NAME, now=START + timedelta(days=9))
    for table in INDEX_TABLES:
        assert store.knowledge.rows(table, NAME).equals(other.knowledge.rows(table, NAME)), table


def test_open_sessions_wait_and_of_small_ones_only_the_facts_are_read(tmp_path: Path) -> None:
    store = MemoryStore.open(tmp_path / "store")
    store.ingest(talk(n_turns=3))
    last = START + timedelta(days=2)
    events = index(store, NAME, now=last + timedelta(minutes=20))
    assert events["kind"].to_list() == ["created"] * 4
    assert events["reason"][0] == "3 turns; min_turns is 4, so no summary"
    assert store.knowledge.rows("summaries", NAME).is_empty()
    assert store.knowledge.rows("facts", NAME)["session_id"].n_unique() > 0
    assert index(store, NAME, now=last + timedelta(minutes=20)).is_empty()
    assert index(store, NAME, now=last + timedelta(minutes=33)).height == 2
    # A session that has grown is looked at again.
    store.ingest(talk(n_turns=4))
    assert index(store, NAME, now=last + timedelta(days=1))["kind"].to_list() == ["updated"] * 6


def test_another_version_and_changed_turns_are_done_anew(store: MemoryStore) -> None:
    index(store, NAME)
    assert pending(store, NAME, settings=IndexSettings(version=2)).height == 6
    assert index(store, NAME, settings=IndexSettings(version=2))["kind"].to_list() == ["updated"] * 6
    assert pending(store, NAME, settings=IndexSettings(version=2)).is_empty()
    changed = talk()
    said = pl.when(pl.col("turn_id") == "u0/s1/2").then(pl.lit("I moved to Porto.")).otherwise("text")
    turns = changed.turns.with_columns(text=said)
    store.ingest(replace(changed, turns=turns))
    assert pending(store, NAME, settings=IndexSettings(version=2))["session_id"].to_list() == ["u0/s1"]
    index(store, NAME, settings=IndexSettings(version=2))
    assert "Porto" in set(store.knowledge.rows("entities", NAME)["name"])
    whole(store)


def test_flags_turn_each_part_off(store: MemoryStore) -> None:
    index(store, NAME, settings=IndexSettings(facts=False))
    assert store.knowledge.rows("facts", NAME).is_empty()
    assert store.knowledge.rows("summaries", NAME).height == 6
    index(store, NAME, settings=IndexSettings(summaries=False))
    assert store.knowledge.rows("summaries", NAME).is_empty()
    assert store.knowledge.rows("facts", NAME).height >= 6
    off = IndexSettings(summaries=False, facts=False, observations=False)
    assert index(store, NAME, settings=off).is_empty()
    assert store.knowledge.rows("facts", NAME).height >= 6


def test_long_sessions_are_cut_at_whole_turns(store: MemoryStore) -> None:
    events = index(store, NAME, settings=IndexSettings(max_input=200))
    assert set(events["reason"]) == {"the first 3 of 5 turns were read: max_input is 200"}
    assert store.knowledge.rows("summaries", NAME)["n_turns"].to_list() == [5] * 6
    cited = store.knowledge.rows("summaries", NAME)["evidence"].explode().explode()
    assert set(cited.str.extract(r"/(\d+)$").cast(pl.Int64)) <= {1, 2, 3}


def test_one_poisoned_session_fails_alone(store: MemoryStore, monkeypatch: pytest.MonkeyPatch) -> None:
    made = batch.summarize

    def choking(turns: pl.DataFrame, **given: object) -> object:
        if "u1/s0" in set(turns["session_id"]):
            raise ZeroDivisionError("odd words")
        return made(turns, **given)

    monkeypatch.setattr(batch, "summarize", choking)
    events = index(store, NAME)
    assert dict(events.select("session_id", "kind").iter_rows())["u1/s0"] == "failed"
    assert events.filter(kind="failed")["reason"].to_list() == ["ZeroDivisionError: odd words"]
    assert events.filter(kind="created").height == 5
    whole(store)
    monkeypatch.undo()
    assert index(store, NAME)["session_id"].to_list() == ["u1/s0"]
    assert store.knowledge.states(NAME).filter(session_id="u1/s0")["attempts"].item() == 2
    whole(store)


@pytest.fixture(scope="module")
def two_sessions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("two") / "store"
    MemoryStore.open(place).ingest(talk(n_sessions=2, n_scopes=1))
    return place


# What llm makes of each fault, tests/llm tells: here one of each kind, and all of them with the slow tests.
TELLING = ("time-out", "echoed key", "dropped connection", "truncated JSON", "wrong schema", "10 MB")


@pytest.mark.parametrize(
    "fault", [pytest.param(fault, marks=() if fault in TELLING else pytest.mark.slow) for fault in FAULTS]
)
def test_no_fault_of_a_service_leaves_a_session_half_done(
    server: ChatServer, two_sessions: Path, tmp_path: Path, fault: str, caplog: pytest.LogCaptureFixture
) -> None:
    store = MemoryStore.open(shutil.copytree(two_sessions, tmp_path / "small"))
    given = {"max_retries": 0, "cache": str(tmp_path / "answers.jsonl")}
    server.answers = [FAULTS[fault]]
    service = server.service(**given)
    settings = IndexSettings(service="lab", batch=1)
    events = index(store, NAME, settings=settings, service=service)
    assert events.height == 2
    assert set(events["kind"]) == {"failed" if fault in UNANSWERED else "fallback"}
    assert events["reason"].null_count() == 0
    assert all(reason and len(reason) < 2_000 for reason in events["reason"])
    whole(store)
    assert {"1-lab-p2.1"} == set(store.knowledge.states(NAME)["version"].str.slice(0, 10))
    if fault in UNANSWERED:
        told = str(nothing_made(NAME, events))
        assert told.startswith("talk: nothing was made: 2 of 2 sessions failed, the first (u0/s0): ")
        assert pending(store, NAME, settings=settings, service=service).height == 2
        server.answers = [fitting]
        again = index(store, NAME, settings=settings, service=server.service(**given))
        assert again["kind"].to_list() == ["created"] * 2, again["reason"].to_list()
        assert set(store.knowledge.rows("summaries", NAME)["service"]) == {"lab"}
        assert set(store.knowledge.states(NAME)["attempts"]) == {2}
        whole(store)
    else:
        assert set(store.knowledge.rows("summaries", NAME)["service"]) == {"extractive"}
        assert set(store.knowledge.states(NAME)["service"]) == {"extractive"}
    assert server.keys == {f"Bearer {KEY}"}
    told = "\n".join([caplog.text, *report(store, NAME, events), str(store.knowledge.states(NAME).to_dicts())])
    assert KEY not in told
    assert [file for file in tmp_path.rglob("*") if file.is_file() and KEY.encode() in file.read_bytes()] == []


def test_the_command_ends_with_what_failed(server: ChatServer, tmp_path: Path, memlab_cli: Any) -> None:
    MemoryStore.open(tmp_path / "store").ingest(talk(n_scopes=1))
    server.answers = [FAULTS["500"]]
    (tmp_path / "memlab.toml").write_text(
        f'store = "store"\nencoder = "hashing:64"\n[llm.services.lab]\nbase_url = "{server.url}"\nmodel = "m"\n'
        "max_retries = 0\n"
    )
    done = memlab_cli("index", "--service", "lab", cwd=tmp_path)
    assert done.code == 2
    assert "talk: nothing was made: 3 of 3 sessions failed, the first (u0/s0): " in done.messages[-1]


@pytest.mark.parametrize("batch", [32, 1])
def test_a_model_sees_the_turns_and_the_statements_before_a_session(
    store: MemoryStore, server: ChatServer, batch: int
) -> None:
    server.answers = [fitting]
    settings = IndexSettings(service="lab", summaries=False, batch=batch)
    index(store, NAME, settings=settings, service=server.service())
    sent = [request["messages"][-1]["content"] for request in server.requests]
    first = f"Ann: {SAID[0]} That was 2 of 7."
    [read] = [text for text in sent if text.startswith("Earlier turns:") and f"[1] (2025-03-02) {first}" in text]
    assert f"{SAID[4]} That was 1 of 7.\n\nThe session:\n" in read
    [ends] = [text for text in sent if text.startswith("Statements:") and text.endswith(read)]
    assert "\n(1) 2025-03-01: Anna bought tea. Anna bought tea. " in ends
    assert not any(text.startswith("Statements:") and "Earlier turns:" not in text for text in sent)


def test_a_changed_prompt_has_a_new_version() -> None:
    for version, asked, answer, pinned in (
        (
            knowledge_prompts.PROMPTS_VERSION,
            knowledge_prompts.SYSTEM,
            knowledge_prompts.Knowledge,
            (2, "c49fa62e59daad11"),
        ),
        (
            knowledge_prompts.PROMPTS_VERSION,
            knowledge_prompts.SYSTEM_ENDED,
            knowledge_prompts.Ended,
            (2, "08ad2d8234374f01"),
        ),
        (summary_prompts.PROMPTS_VERSION, summary_prompts.SYSTEM, summary_prompts.Answer, (1, "9eaf5c859b98e599")),
    ):
        whole_prompt = asked + json.dumps(answer.model_json_schema(), sort_keys=True)
        digest = hashlib.sha256(whole_prompt.encode()).hexdigest()[:16]
        assert (version, digest) == pinned, "raise PROMPTS_VERSION with every change"


def test_what_a_failing_service_cannot_redo_stays_as_it_was(store: MemoryStore, server: ChatServer) -> None:
    index(store, NAME)
    before = store.knowledge.rows("summaries", NAME)
    server.answers = [FAULTS["500"]]
    events = index(store, NAME, settings=IndexSettings(service="lab"), service=server.service(max_retries=0))
    assert set(events["kind"]) == {"failed"}
    assert store.knowledge.rows("summaries", NAME).equals(before)
    assert set(store.knowledge.states(NAME)["service"]) == {"extractive"}
    whole(store)


def test_a_service_that_is_down_is_not_asked_for_every_session(tmp_path: Path, server: ChatServer) -> None:
    store = MemoryStore.open(tmp_path / "store")
    store.ingest(talk(n_sessions=40, n_scopes=1))
    server.answers = [FAULTS["500"]]
    index(store, NAME, settings=IndexSettings(service="lab", batch=40), service=server.service(max_retries=0))
    assert len(server.requests) < 30


def test_a_service_that_cannot_be_asked_is_one_error_and_nothing_is_done(
    store: MemoryStore, server: ChatServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("LAB_TEST_KEY")
    with pytest.raises(ModelError, match="LAB_TEST_KEY, which is not set"):
        index(store, NAME, settings=IndexSettings(service="lab"), service=server.service())
    assert store.knowledge.states(NAME).is_empty()


def test_sessions_can_be_ingested_while_others_are_indexed(store: MemoryStore, server: ChatServer) -> None:
    more = talk(n_sessions=5)
    released, asked = threading.Event(), threading.Event()

    def waits(request: dict) -> object:
        asked.set()
        released.wait(600)
        return fitting(request)

    server.answers = [waits]
    service = server.service()
    worker = threading.Thread(target=index, args=(MemoryStore.open(store.uri), NAME), kwargs={"service": service})
    worker.start()
    assert asked.wait(600)
    store.ingest(more)
    assert store.dataset(NAME).sessions.height == 10
    released.set()
    worker.join(60)
    assert store.knowledge.states(NAME).height == 6
    whole(store)
    assert index(store, NAME, service=service).height == 4
    whole(store)


def test_facts_resolve_and_undone_supersessions_stay_undone(tmp_path: Path) -> None:
    said = ["Hello there!", "I live in Oslo.", "Nice weather.", "Good to hear."]
    later = ["Hello again!", "I live in Bergen now.", "Rain.", "As ever."]
    turns = [
        Turn(f"u/s{s}/{n}", "u", f"u/s{s}", n, "Ann", "user", text, None, START + timedelta(days=s))
        for s, texts in enumerate((said, later))
        for n, text in enumerate(texts, 1)
    ]
    rows = frame(Turn, turns)
    store = MemoryStore.open(tmp_path / "store")
    store.ingest(memlab.Dataset(NAME, "chatlog", rows, sessions_of(rows)))
    index(store, NAME)
    found = resolved(store, NAME)
    old, new = found.log.select("old", "new").row(0)
    assert found.log.select("old_object", "new_object").row(0) == ("Oslo", "Bergen")
    undone = pl.DataFrame([("u", old, new, START, "both")], schema=UNDONE, orient="row")
    store.knowledge.write_undone(NAME, "u", undone)
    again = resolved(store, NAME)
    assert set(again.facts.filter(pl.col("object").is_in(["Oslo", "Bergen"]))["status"]) == {"active"}
    assert resolved(store, NAME, as_of=START).facts["object"].to_list() == ["Oslo"]


def test_messages_without_times_are_heard_when_they_are_indexed(tmp_path: Path) -> None:
    data = talk(n_sessions=1, n_scopes=1)
    turns = data.turns.with_columns(timestamp=pl.lit(None, data.turns.schema["timestamp"]))
    store = MemoryStore.open(tmp_path / "store")
    store.ingest(memlab.Dataset(NAME, "chatlog", turns, sessions_of(turns)))
    index(store, NAME, now=START)
    found = resolved(store, NAME)
    assert set(found.facts["last_access"]) == {START}


def test_summaries_stand_beside_their_sessions(store: MemoryStore) -> None:
    index(store, NAME, encoder=memlab.embed.load("hashing:64"))
    data = attached(store, store.dataset(NAME))
    assert data.sessions["summary"].null_count() == 0
    bench = memlab.Bench.of(data, encoder="hashing:64")
    asked = bench.with_queries(pl.DataFrame({"scope": ["u0"], "text": ["Who moved to Lisbon?"]}))
    assert memlab.pipeline("two_stage(by='summary')").run(asked, level="session").frame.height


def test_observations_of_the_source_become_facts(tmp_path: Path) -> None:
    data = store_data.build(1, 1)
    from memlab.records import Annotation

    session = data.sessions["session_id"][0]
    told = Annotation("a1", "scope-0", session, "observation", "Ann", "Ann works at Acme.", [f"{session}/1"])
    store = MemoryStore.open(tmp_path / "store")
    store.ingest(replace(data, annotations=frame(Annotation, [told])))
    index(store, data.name, settings=IndexSettings(facts=False))
    facts = store.knowledge.rows("facts", data.name)
    assert facts.select("subject", "predicate", "object", "source").rows() == [("Ann", "works at", "Acme", "observed")]
    assert facts["evidence"].to_list() == [[f"{session}/1"]]


def test_rules_read_no_facts_in_another_language(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    english.cache_clear()
    german = MemoryStore.open(tmp_path)
    german.ingest(replace(talk(), language="de"))
    assert set(index(german, NAME)["kind"]) == {"created"}
    assert german.knowledge.rows("facts", NAME).is_empty()
    assert german.knowledge.rows("summaries", NAME).height
    assert "the reading of facts knows English alone" in caplog.text


def test_the_first_question_finds_the_vectors_of_facts(store: MemoryStore) -> None:
    encoder = Counting()
    index(store, NAME, encoder=encoder)
    encoder.texts.clear()
    facts = score(resolved(store, NAME, encoder=encoder).facts, now=START)
    asked = pl.DataFrame({"scope": ["u0"], "text": ["Who lives in Lisbon?"]})
    assert search_facts(asked, facts, encoder=CachedEncoder(store, encoder)).height
    assert encoder.texts == ["Who lives in Lisbon?"]
