"""The index: what is due, what a service that fails leaves behind, and what readers see of it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from model_server import KEY, ModelServer, fitting, say, send
from talk import dialogue

import memlab
from memlab.config import IndexSettings
from memlab.embed.hashing import HashingEncoder
from memlab.errors import ModelError
from memlab.indexing import empty_reason, index, report_lines, resolved_facts, worker
from memlab.knowledge import active_facts
from memlab.llm import track_spending
from memlab.records import TIMESTAMP
from memlab.store import MemoryStore

SAID = [
    "I moved to Lisbon last week.",
    "Lovely.",
    "I work at Acme now.",
    "Do you need a desk?",
    "I drive a van.",
]
START = datetime(2025, 3, 1, 9, tzinfo=UTC)
NAME = "talk"


def talk(n_sessions: int = 3, **other: str) -> memlab.Dataset:
    """Sessions of one scope, five turns each; ``other``: what is said at the third turn of a session instead."""
    lines = []
    for s in range(1, n_sessions + 1):
        said = [*SAID[:2], other.get(f"s{s}", SAID[2]), *SAID[3:]]
        lines += [f"== u 2025-03-{s:02}", *(f"Ann: {text} Day {s}." for text in said)]
    return dialogue("\n".join(lines), NAME)


@pytest.fixture
def store(tmp_path: Path) -> MemoryStore:
    made = MemoryStore.open(tmp_path / "store")
    made.ingest(talk())
    return made


def kinds(events: pl.DataFrame) -> dict[str, int]:
    return dict(events["kind"].value_counts().iter_rows())


def objects(store: MemoryStore) -> set[str]:
    return set(active_facts(resolved_facts(store, NAME))["object"])


def test_each_session_is_indexed_once_and_what_changed_again(store: MemoryStore) -> None:
    assert kinds(index(store, NAME, now=START + timedelta(days=2, minutes=9))) == {
        "created": 2
    }  # one is still open
    assert kinds(index(store, NAME)) == {"created": 1}
    assert index(store, NAME).is_empty()
    store.ingest(talk(4))
    assert kinds(index(store, NAME)) == {"created": 1}
    assert store.knowledge.rows("summaries", NAME)["session_id"].to_list() == [
        f"u/s{n}" for n in (1, 2, 3, 4)
    ]
    assert {"Lisbon", "Acme"} <= objects(store)
    events = index(store, NAME, settings=IndexSettings(min_turns=9, version=2))
    assert kinds(events) == {"updated": 4}
    assert all("min_turns is 9" in reason for reason in events["reason"])
    assert store.knowledge.rows("summaries", NAME).is_empty()


def test_a_fallback_is_due_again_when_the_service_is_there(
    store: MemoryStore, server: ModelServer
) -> None:
    server.modes, lab = [say('{"facts": 3}')], server.service(max_retries=0)
    events = index(store, NAME, service=lab)
    assert kinds(events) == {"fallback": 3}
    # The extractive version is there meanwhile, and one line says so.
    assert store.knowledge.rows("facts", NAME).height
    lines = report_lines(store, NAME, events)
    assert sum("came from no model" in line for line in lines) == 1
    assert KEY not in "".join(lines)
    server.modes = [fitting]
    assert "created" not in kinds(index(store, NAME, service=lab))
    assert "extractive" not in store.knowledge.states(NAME)["service"]


def test_what_a_model_made_stays_where_a_second_question_or_a_later_run_is_in_vain(
    store: MemoryStore, server: ModelServer
) -> None:
    def half(handler: Any, request: dict[str, Any]) -> None:
        asks_for_facts = "write down as JSON what an" in str(request)
        (fitting if asks_for_facts else say("no JSON"))(handler, request)

    server.modes, lab = [half], server.service(max_retries=0)
    events = index(store, NAME, service=lab)
    assert set(events.filter(kind="fallback")["service"]) == {"lab"}
    assert (
        sum("came in part from no model" in line for line in report_lines(store, NAME, events)) == 1
    )
    before = store.knowledge.rows("facts", NAME), store.knowledge.states(NAME)["generation"]
    server.modes = [send(500, {})]
    assert kinds(index(store, NAME, service=lab, settings=IndexSettings(version=2))) == {
        "failed": 3
    }
    assert store.knowledge.rows("facts", NAME).equals(before[0])
    assert store.knowledge.states(NAME)["generation"].equals(before[1])
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
    assert estimated(service=lab) == {"facts": 3, "endings": 3, "summary": 3}
    assert not server.requests
    assert store.knowledge.states(NAME).is_empty()
    assert estimated() == {}
    index(store, NAME, service=lab)
    assert estimated(service=lab) == {}, "nothing is due"
    assert estimated(service=lab, settings=IndexSettings(version=2)) == {"endings": 1}, (
        "the first was asked nothing"
    )


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
    assert len(server.requests) <= 30


def test_what_cannot_be_asked_changes_nothing_and_what_is_not_recorded_is_due_with_other_recordings(
    store: MemoryStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ModelError, match="nobody"):
        index(store, NAME, service="nobody")
    assert store.knowledge.states(NAME).is_empty()
    path = tmp_path / "recorded.jsonl"
    monkeypatch.setenv("MEMLAB_LLM__RECORDINGS", f'["{path}"]')
    assert kinds(index(store, NAME, service="recorded")) == {"fallback": 3}
    assert index(store, NAME, service="recorded").is_empty()
    path.write_text('{"task": "facts", "version": 1, "key": "k", "answer": {}, "tokens": [0, 0]}\n')
    assert kinds(index(store, NAME, service="recorded")) == {"fallback": 3}


def test_a_session_that_fails_fails_alone(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = worker.extraction.extract

    def breaks(turns: pl.DataFrame, **options: Any) -> Any:
        if "u/s2" in turns["session_id"]:
            raise ValueError("odd words")
        return whole(turns, **options)

    with monkeypatch.context() as patch:
        patch.setattr(worker.extraction, "extract", breaks)
        events = index(store, NAME)
    assert kinds(events) == {"created": 2, "failed": 1}
    assert events.filter(kind="failed")["reason"].item() == "ValueError: odd words"
    assert any("odd words" in line for line in report_lines(store, NAME, events))
    assert kinds(index(store, NAME)) == {"created": 1}


def test_a_failed_attempt_keeps_what_another_process_made_meanwhile(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    make = worker._index_sessions

    def overtaken(*args: Any) -> Any:
        monkeypatch.setattr(worker, "_index_sessions", make)
        index(
            store, NAME
        )  # as another process would, between the reading and the writing of this one
        raise ValueError("this one fails")

    monkeypatch.setattr(worker, "_index_sessions", overtaken)
    index(store, NAME)
    assert store.knowledge.rows("facts", NAME).height


def test_an_undo_lasts_and_is_named_when_its_fact_is_gone(store: MemoryStore) -> None:
    store.ingest(talk(s3="I work at Bolt now."))
    index(store, NAME)
    (row,) = resolved_facts(store, NAME).log.filter(new_object="Bolt").to_dicts()
    store.knowledge.undo(NAME, "u", row["old"], row["new"], at=START)
    assert {"Acme", "Bolt"} <= objects(store)
    assert kinds(index(store, NAME, settings=IndexSettings(version=2))) == {"updated": 3}
    assert {"Acme", "Bolt"} <= objects(store)
    # Edited, the message takes its fact with it at once.
    store.ingest(talk(s3="Nothing new."))
    assert "Bolt" not in objects(store)
    assert any("no longer said" in line for line in report_lines(store, NAME, index(store, NAME)))


def test_what_has_no_time_is_ordered_by_its_session_also_when_that_is_read_again(
    store: MemoryStore,
) -> None:
    for said in ("I work at Acme now.", "I work at Acme, you know."):
        data, never = talk(2, s1=said, s2="I work at Bolt now."), pl.lit(None, TIMESTAMP)
        turns, sessions = (
            data.turns.with_columns(timestamp=never),
            data.sessions.with_columns(start=never, end=never),
        )
        store.ingest(memlab.Dataset(NAME, "chatlog", turns, sessions))
        assert not index(store, NAME).is_empty()
    assert "Bolt" in objects(store)
    assert "Acme" not in objects(store)


def test_why_there_is_nothing(store: MemoryStore, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "not indexed" in empty_reason(store, NAME, "u")
    with monkeypatch.context() as patch:
        patch.setenv("MEMLAB_GAP_MINUTES", "5000000")
        assert (
            "still open"
            in report_lines(store, NAME, index(store, NAME, gap=timedelta(minutes=5e6)))[0]
        )
        assert "still open" in empty_reason(store, NAME, "u")
    store.ingest(dialogue("== u 2025-03-01" + "\nAnn: Hm." * 5, NAME))
    events = index(store, NAME, encoder=HashingEncoder(64))
    assert "nothing was found" in empty_reason(store, NAME, "u")
    assert "0 facts, of which 0 hold" in report_lines(store, NAME, events)[0]
