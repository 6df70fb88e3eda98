"""The index: what is due, what a service that fails leaves behind, and what readers see of it."""

from __future__ import annotations

import json
import re
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from fact_answers import facts_answer, stated_fact
from model_server import KEY, ModelServer, fitting, say, send
from talk import dialogue

import memlab
from memlab.config import IndexSettings
from memlab.embed.hashing_encoder import HashingEncoder
from memlab.errors import ModelError
from memlab.indexing import empty_reason, index, report_lines, resolved_facts, session_indexing
from memlab.knowledge import active_facts, score
from memlab.llm import Service, track_spending
from memlab.records import TIMESTAMP, IndexEvent, frame
from memlab.store import MemoryStore

SAID = [
    "I moved to Lisbon last week.",
    "Lovely.",
    "I work at Acme now.",
    "Do you need a desk?",
    "I drive a van.",
]
STATED = re.compile(
    r"I (?P<said>work at|moved to|drive) (?P<value>[A-Za-z ]+?)(?: now| last week)?[.,]"
)
ASKS_FOR_FACTS = "You keep the memory of a chat. You read one session of it"
SLOTS = {"work at": "employer", "moved to": "home", "drive": "vehicle"}
START = datetime(2025, 3, 1, 9, tzinfo=UTC)
NAME = "talk"


def talk(n_sessions: int = 3, **other: str) -> memlab.Dataset:
    """Sessions of one scope, five turns each; ``other``: what is said at the third turn of a session instead."""
    lines = []
    for s in range(1, n_sessions + 1):
        said = [*SAID[:2], other.get(f"s{s}", SAID[2]), *SAID[3:]]
        lines += [f"== u 2025-03-{s:02}", *(f"Ann: {text} Day {s}." for text in said)]
    return dialogue("\n".join(lines), NAME)


@pytest.fixture(scope="module")
def stored_talk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("talk") / "store"
    MemoryStore.open(place).ingest(talk())
    return place


@pytest.fixture
def store(stored_talk: Path, tmp_path: Path) -> MemoryStore:
    return MemoryStore.open(shutil.copytree(stored_talk, tmp_path / "store"))


def states_facts(handler: Any, request: dict[str, Any]) -> None:
    """Answer with what a session states in so many words, without effects; summaries only fit."""
    system, user = (message["content"] for message in request["messages"])
    if ASKS_FOR_FACTS not in system:
        fitting(handler, request)
        return
    facts = []
    for turn in json.loads(user)["session"]:
        for found in STATED.finditer(turn["text"]):
            stated = (turn["speaker"], SLOTS[found["said"]], found["value"])
            facts.append(stated_fact(*stated, sentence=found[0], turns=[turn["id"]]))
    say(json.dumps(facts_answer(*facts)))(handler, request)


@pytest.fixture
def lab(server: ModelServer) -> Service:
    """A service that reads what is stated in so many words."""
    server.modes = [states_facts]
    return server.service(max_retries=0)


def kinds(events: pl.DataFrame) -> dict[str, int]:
    return dict(events["kind"].value_counts().iter_rows())


def values(store: MemoryStore) -> set[str]:
    return set(active_facts(resolved_facts(store, NAME))["value"])


@pytest.mark.slow
def test_each_session_is_indexed_once_and_what_changed_again(
    store: MemoryStore, lab: Service
) -> None:
    one_open = START + timedelta(days=2, minutes=9)
    assert kinds(index(store, NAME, service=lab, now=one_open)) == {"created": 2}
    assert kinds(index(store, NAME, service=lab)) == {"created": 1}
    assert index(store, NAME, service=lab).is_empty()
    store.ingest(talk(4))
    assert kinds(index(store, NAME, service=lab)) == {"created": 1}
    assert store.knowledge.rows("summaries", NAME)["session_id"].to_list() == [
        f"u/s{n}" for n in (1, 2, 3, 4)
    ]
    assert values(store) == {"Lisbon", "Acme", "a van"}
    events = index(store, NAME, service=lab, settings=IndexSettings(min_turns=9, version=2))
    assert kinds(events) == {"updated": 4}
    assert all("min_turns is 9" in reason for reason in events["reason"])
    assert store.knowledge.rows("summaries", NAME).is_empty()


def test_a_fallback_is_due_again_when_the_service_is_there(
    store: MemoryStore, server: ModelServer
) -> None:
    server.modes, lab = [say('{"facts": 3}')], server.service(max_retries=0)
    events = index(store, NAME, service=lab)
    assert kinds(events) == {"fallback": 3}
    # Its own sentences are there meanwhile, no facts, and one line says so.
    assert store.knowledge.rows("summaries", NAME).height == 3
    assert store.knowledge.rows("facts", NAME).is_empty()
    assert all(reason.startswith("no facts: ") for reason in events["reason"])
    lines = report_lines(store, NAME, events)
    (line,) = [line for line in lines if "came from no model" in line]
    assert line.endswith("no facts, summaries of their own sentences; --service NAME asks a model")
    assert KEY not in "".join(lines)
    server.modes = [states_facts]
    assert kinds(index(store, NAME, service=lab)) == {"updated": 3}
    assert set(store.knowledge.session_states(NAME)["service"]) == {"lab"}
    assert "Acme" in values(store)


def test_without_a_model_there_are_no_facts_until_one_is_asked(
    store: MemoryStore, lab: Service
) -> None:
    events = index(store, NAME)
    assert kinds(events) == {"created": 3}
    assert store.knowledge.rows("summaries", NAME).height == 3
    assert store.knowledge.rows("facts", NAME).is_empty()
    assert sum("no facts" in line for line in report_lines(store, NAME, events)) == 1
    assert "without a model" in empty_reason(store, NAME, "u")
    assert index(store, NAME).is_empty()
    assert kinds(index(store, NAME, service=lab)) == {"updated": 3}
    assert "Acme" in values(store)


def test_a_summary_of_a_model_may_stand_without_facts(
    store: MemoryStore, server: ModelServer
) -> None:
    def half(handler: Any, request: dict[str, Any]) -> None:
        asks_for_facts = ASKS_FOR_FACTS in str(request)
        (say("no JSON") if asks_for_facts else fitting)(handler, request)

    server.modes = [half]
    events = index(store, NAME, service=server.service(max_retries=0))
    assert kinds(events) == {"fallback": 3}
    assert set(store.knowledge.rows("summaries", NAME)["service"]) == {"lab"}
    (line,) = [line for line in report_lines(store, NAME, events) if "sessions have" in line]
    assert "3 of 3 sessions have a summary of a model, and no facts (" in line
    assert "nothing was found (" in empty_reason(store, NAME, "u")


def write_earlier_facts(store: MemoryStore) -> None:
    """Leave the index as a memlab with another layout of facts did: one fact a session."""
    states = store.knowledge.session_states(NAME).with_columns(version=pl.lit("another recipe"))
    store.knowledge.commit_sessions(NAME, rows_by_kind={}, states=states, events=frame(IndexEvent))
    store.database.connection.drop_table("fact_rows")
    # A memlab without the table had not noted that it made it.
    store.database.connection.open_table("store").delete("key = 'table fact_rows'")
    stated = {"subject": "Ann", "predicate": "works at", "object": "Acme", "source": "stated"}
    for session, generation in states.select("session_id", "generation").iter_rows():
        key = f"{NAME}/{session}/f@{generation}"
        placed = {"dataset": NAME, "scope": "u", "session_id": session, "generation": generation}
        about = {"fact_id": f"{session}/f", "evidence": [f"{session}/3"]}
        store.database.upsert_row("facts", key, **placed, **about, **stated)


@pytest.mark.slow
def test_facts_of_an_earlier_layout_are_counted_and_go_when_their_session_is_read_again(
    store: MemoryStore, lab: Service, server: ModelServer, tmp_path: Path
) -> None:
    index(store, NAME, service=lab)
    write_earlier_facts(store)
    store = MemoryStore.open(tmp_path / "store")
    assert store.knowledge.rows("facts", NAME).is_empty()
    assert store.knowledge.rows("summaries", NAME).height == 3
    assert store.knowledge.count_facts_of_earlier_layout(NAME) == 3
    assert store.knowledge.count_facts_of_earlier_layout(NAME, scopes=["v"]) == 0
    waiting = "3 facts of an earlier layout await memlab index"
    assert waiting in empty_reason(store, NAME, "u")

    server.modes = [send(500, {})]
    events = index(store, NAME, service=lab)
    assert kinds(events) == {"failed": 3}
    assert f"  {waiting}" in report_lines(store, NAME, events)
    store.ingest(talk(2))
    server.modes = [states_facts]
    assert kinds(index(store, NAME, service=lab)) == {"updated": 2}
    assert store.knowledge.count_facts_of_earlier_layout(NAME) == 0
    assert store.table("facts").count_rows() == 0
    assert "Acme" in values(store)
    assert not any("earlier layout" in line for line in report_lines(store, NAME, events))


@pytest.mark.slow
def test_what_a_model_made_stays_where_a_second_question_or_a_later_run_is_in_vain(
    store: MemoryStore, server: ModelServer
) -> None:
    def half(handler: Any, request: dict[str, Any]) -> None:
        asks_for_facts = ASKS_FOR_FACTS in str(request)
        (fitting if asks_for_facts else say("no JSON"))(handler, request)

    server.modes, lab = [half], server.service(max_retries=0)
    events = index(store, NAME, service=lab)
    assert set(events.filter(kind="fallback")["service"]) == {"lab"}
    assert (
        sum("came in part from no model" in line for line in report_lines(store, NAME, events)) == 1
    )
    before = store.knowledge.rows("facts", NAME), store.knowledge.session_states(NAME)["generation"]
    server.modes = [send(500, {})]
    assert kinds(index(store, NAME, service=lab, settings=IndexSettings(version=2))) == {
        "failed": 3
    }
    assert store.knowledge.rows("facts", NAME).equals(before[0])
    assert store.knowledge.session_states(NAME)["generation"].equals(before[1])
    # What the recordings lack is no failure where a model made it, and the model is not asked again
    # for it.
    server.modes = [fitting]
    index(store, NAME, service=lab)
    assert kinds(index(store, NAME, service="recorded")) == {"kept": 3}
    assert index(store, NAME, service=lab).is_empty()


def test_an_estimate_asks_and_writes_nothing_and_leaves_out_what_is_recorded(
    store: MemoryStore, server: ModelServer, tmp_path: Path
) -> None:
    def estimated(**options: Any) -> dict[str, int]:
        with track_spending(estimate=True) as spent:
            assert index(store, NAME, encoder=HashingEncoder(64), **options).is_empty()
        return {task: n for task, (n, _, _) in spent.describe()["tasks"].items()}

    lab = server.service(record=str(tmp_path / "record.jsonl"), max_retries=0)
    assert estimated(service=lab) == {"facts": 3, "summary": 3}
    assert not server.requests
    assert store.knowledge.session_states(NAME).is_empty()
    assert estimated() == {}
    index(store, NAME, service=lab)
    assert estimated(service=lab) == {}, "nothing is due"
    assert estimated(service=lab, settings=IndexSettings(version=2)) == {}, "all is recorded"


def test_a_service_that_fails_again_and_again_is_left_alone(
    store: MemoryStore, server: ModelServer
) -> None:
    server.modes = [send(500, {})]
    store.ingest(talk(28))
    assert (
        index(
            store, NAME, service=server.service(max_retries=0), settings=IndexSettings(batch=14)
        ).height
        == 28
    )
    # Of 56; each that fails is asked again with less.
    assert len(server.requests) <= 40


@pytest.mark.slow
def test_what_cannot_be_asked_changes_nothing_and_what_is_not_recorded_is_due_with_other_recordings(
    store: MemoryStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ModelError, match="nobody"):
        index(store, NAME, service="nobody")
    assert store.knowledge.session_states(NAME).is_empty()
    path = tmp_path / "recorded.jsonl"
    monkeypatch.setenv("MEMLAB_LLM__RECORDINGS", f'["{path}"]')
    assert kinds(index(store, NAME, service="recorded")) == {"fallback": 3}
    assert index(store, NAME, service="recorded").is_empty()
    path.write_text('{"task": "facts", "version": 1, "key": "k", "answer": {}, "tokens": [0, 0]}\n')
    assert kinds(index(store, NAME, service="recorded")) == {"fallback": 3}


def test_batches_hold_so_many_sessions_or_whole_scopes() -> None:
    due = pl.DataFrame({"scope": [*"aabcccd"], "session_id": [*"1234567"]})
    cut = session_indexing._split_sessions_into_batches(due, 2, keeps_scopes_whole=False)
    assert ["".join(batch["session_id"]) for batch in cut] == ["12", "34", "56", "7"]
    whole = session_indexing._split_sessions_into_batches(due, 2, keeps_scopes_whole=True)
    assert ["".join(batch["session_id"]) for batch in whole] == ["12", "3456", "7"]


def test_sessions_that_are_read_alone_know_what_those_before_them_state(
    store: MemoryStore, server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.modes = [states_facts]
    whole = session_indexing._make_index_rows

    def breaks(batch: Any, job: Any) -> Any:
        if batch.due.height > 1 or "u/s2" in batch.due["session_id"]:
            raise ValueError("odd words")
        return whole(batch, job)

    monkeypatch.setattr(session_indexing, "_make_index_rows", breaks)
    events = index(store, NAME, service=server.service(max_retries=0))
    assert kinds(events) == {"created": 2, "failed": 1}
    shown = [json.loads(prompt) for prompt in server.prompts if "known" in prompt]
    known = [{entry["value"] for entry in prompt["known"]} for prompt in shown]
    assert known == [set(), {"Lisbon", "Acme", "a van"}]


def test_a_session_that_fails_fails_alone(
    store: MemoryStore, lab: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = session_indexing.fact_extraction.extract

    def breaks(turns: pl.DataFrame, **options: Any) -> Any:
        if "u/s2" in turns["session_id"]:
            raise ValueError("odd words")
        return whole(turns, **options)

    with monkeypatch.context() as patch:
        patch.setattr(session_indexing.fact_extraction, "extract", breaks)
        events = index(store, NAME, service=lab)
    assert kinds(events) == {"created": 2, "failed": 1}
    assert events.filter(kind="failed")["reason"].item() == "ValueError: odd words"
    assert any("odd words" in line for line in report_lines(store, NAME, events))
    assert kinds(index(store, NAME, service=lab)) == {"created": 1}


def test_a_failed_attempt_keeps_what_another_process_made_meanwhile(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    make = session_indexing._make_index_rows

    def overtaken(*args: Any) -> Any:
        monkeypatch.setattr(session_indexing, "_make_index_rows", make)
        index(
            store, NAME
        )  # as another process would, between the reading and the writing of this one
        raise ValueError("this one fails")

    monkeypatch.setattr(session_indexing, "_make_index_rows", overtaken)
    index(store, NAME)
    assert store.knowledge.rows("summaries", NAME).height == 3


@pytest.mark.slow
def test_an_undo_lasts_and_is_named_when_its_fact_is_gone(store: MemoryStore, lab: Service) -> None:
    store.ingest(talk(s3="I work at Bolt now."))
    index(store, NAME, service=lab)
    (row,) = resolved_facts(store, NAME).log.filter(new_value="Bolt").to_dicts()
    store.knowledge.undo_supersession(NAME, "u", row["old"], row["new"], at=START)
    assert {"Acme", "Bolt"} <= values(store)
    again = index(store, NAME, service=lab, settings=IndexSettings(version=2))
    assert kinds(again) == {"updated": 3}
    assert {"Acme", "Bolt"} <= values(store)
    # Edited, the message takes its fact with it at once.
    store.ingest(talk(s3="Nothing new."))
    assert "Bolt" not in values(store)
    events = index(store, NAME, service=lab)
    assert any("no longer said" in line for line in report_lines(store, NAME, events))


def test_what_has_no_time_is_ordered_by_its_session_also_when_that_is_read_again(
    store: MemoryStore, lab: Service
) -> None:
    for said in ("I work at Acme now.", "I work at Acme, you know."):
        data, never = talk(2, s1=said, s2="I work at Bolt now."), pl.lit(None, TIMESTAMP)
        turns, sessions = (
            data.turns.with_columns(timestamp=never),
            data.sessions.with_columns(start=never, end=never),
        )
        store.ingest(memlab.Dataset(NAME, "chatlog", turns, sessions))
        assert not index(store, NAME, service=lab).is_empty()
    assert "Bolt" in values(store)
    assert "Acme" not in values(store)


def test_why_there_is_nothing(
    store: MemoryStore, lab: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "not indexed" in empty_reason(store, NAME, "u")
    with monkeypatch.context() as patch:
        patch.setenv("MEMLAB_GAP_MINUTES", "5000000")
        assert (
            "still open"
            in report_lines(store, NAME, index(store, NAME, gap=timedelta(minutes=5e6)))[0]
        )
        assert "still open" in empty_reason(store, NAME, "u")
    store.ingest(dialogue("== u 2025-03-01" + "\nAnn: Hm." * 5, NAME))
    events = index(store, NAME, service=lab, encoder=HashingEncoder(64))
    assert "nothing was found" in empty_reason(store, NAME, "u")
    assert "0 facts, of which 0 hold" in report_lines(store, NAME, events)[0]


def test_facts_of_chats_without_times_have_no_date_and_stand_in_the_order_of_the_file(
    tmp_path: Path, lab: Service
) -> None:
    chats = [
        {"id": f"c{n}", "messages": [{"role": "user", "content": text}]}
        for n, text in enumerate(("I work at Acme.", "I drive a van.", "I work at Bolt."), 1)
    ]
    path = tmp_path / "chats.jsonl"
    path.write_text("\n".join(map(json.dumps, chats)))
    store = MemoryStore.open(tmp_path / "store")
    store.ingest(memlab.datasets.stream(path, name=NAME))
    index(store, NAME, service=lab)
    rows = resolved_facts(store, NAME).facts
    assert rows.select("value", "status").rows() == [
        ("Acme", "superseded"),
        ("a van", "active"),
        ("Bolt", "active"),
    ]
    assert rows.select("valid_from", "valid_to", "last_access").null_count().row(0) == (3, 3, 3)
    now = datetime.now(UTC)
    assert set(score(rows.filter(status="active"), now=now)["confidence"]) == {0.5}
    assert resolved_facts(store, NAME, as_of=now + timedelta(days=1)).facts.is_empty()


def test_words_that_somebody_passes_on_are_no_facts_of_theirs(tmp_path: Path, lab: Service) -> None:
    about = {"type": "message", "date_unixtime": "1775210400", "from": "Claude", "from_id": "user1"}
    said = [
        about | {"id": 1, "text": "I work at Acme."},
        about | {"id": 2, "text": "I work at Bolt.", "forwarded_from": "Bo"},
        about | {"id": 3, "text": "> I drive a bus.\nHa!"},
        about | {"id": 4, "text": "I drive a van."},
    ]
    path = tmp_path / "result.json"
    path.write_text(
        json.dumps({"name": "Trip", "type": "private_group", "id": 5, "messages": said})
    )
    store = MemoryStore.open(tmp_path / "store")
    store.ingest(memlab.datasets.stream(path, name=NAME))
    (reason,) = index(store, NAME, service=lab)["reason"]
    assert values(store) == {"Acme", "a van"}
    assert "1 fact about a speaker left out" in reason
