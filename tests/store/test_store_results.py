"""Runs and the tables of the index: kept whole, with where they came from; the versions that they saw stay readable."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import polars as pl
import pytest
from store_data import NOW, FakeEncoder, build, edited

from memlab.errors import DataError, StoreError
from memlab.records import Fact, IndexEvent, IndexState, Run, Summary, frame, run_from_scores
from memlab.store import MemoryStore, version_cleaning
from memlab.store.database import Database


def a_run(store: MemoryStore, *, name: str = "dense", seed: int = 0) -> Run:
    rng = np.random.default_rng(seed)
    queries, documents = np.repeat(["b'q", "a"], 5), np.tile([f"d{i}/'" for i in range(5)], 2)
    run = run_from_scores(queries, documents, rng.random(10), level="turn", k=4)
    provenance = {
        "versions": store.versions(),
        "seed": np.int64(seed),
        "dataset": {"fingerprint": "é"},
    }
    return replace(run, name=name, provenance=provenance)


def test_a_run_comes_back_as_it_was_and_is_kept_once(store: MemoryStore) -> None:
    run = a_run(store)
    run_id = store.runs.save(run, measures={"recall_all@10": 0.5}, now=NOW)
    got = store.runs.load(run_id)
    assert got.frame.equals(run.frame)
    assert (got.name, got.level) == ("dense", "turn")
    assert got.provenance == {
        "versions": store.versions(),
        "seed": 0,
        "dataset": {"fingerprint": "é"},
    }
    assert store.runs.save(a_run(store), now=NOW + timedelta(days=1)) == run_id
    assert run_id not in (
        store.runs.save(a_run(store, seed=1)),
        store.runs.save(a_run(store, name="bm25")),
    )
    store.runs.save(a_run(store), measures={"mrr": 1.0}, now=NOW + timedelta(days=2))
    row = store.runs.listing().filter(run_id=run_id).row(0, named=True)
    assert (row["queries"], row["rows"], row["measures"], row["saved_at"]) == (
        2,
        8,
        '{"mrr": 1.0}',
        NOW,
    )
    version = store.table("runs").version
    assert store.runs.save(got, measures={"mrr": 1.0}, run_id=run_id) == run_id
    assert store.table("runs").version == version
    assert store.runs.listing().height == 3
    assert store.table("rankings").count_rows() == 6
    empty = replace(run, frame=run.frame.clear())
    assert store.runs.load(store.runs.save(empty)).frame.equals(empty.frame)
    with pytest.raises(StoreError, match="no run 'nope'; store"):
        store.runs.load("nope")


def test_a_view_is_read_only_and_stays_where_it_is(store: MemoryStore) -> None:
    data, encoder = build(), FakeEncoder()
    changed = edited(data, "scope-1/session_0/2", text="something else")
    store.ingest(data)
    view = store.at(store.versions())
    writes = {
        "ingest": lambda: view.ingest(changed),
        "backfill": lambda: view.vectors.backfill(encoder, "small"),
        "create_indexes": view.search.create_indexes,
        "optimize": view.optimize,
        "save a run": lambda: view.runs.save(a_run(store)),
        "sweep": lambda: view.knowledge.remove_orphaned_rows("small"),
    }
    for name, write in writes.items():
        with pytest.raises(
            StoreError, match=f"^{name}: this is a view on versions .* open the store itself"
        ):
            write()
    assert view.encode(encoder, ["a"]).shape == view.encode(encoder, ["a"]).shape == (1, 8)
    assert len(encoder.asked) == 2, "a view remembers nothing"
    store.ingest(changed)
    assert view.dataset("small").fingerprint() == data.fingerprint()
    for wrong, word in (({**store.versions(), "turns": 99}, "turns .* has no version 99; it has 1 to "),
                        ({"turns": 1}, "sessions .* has no version None")):  # fmt: skip
        with pytest.raises(StoreError, match=word):
            store.at(wrong)


@pytest.mark.slow
def test_optimizing_keeps_what_tags_and_runs_need(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(version_cleaning, "_MARGIN", timedelta(seconds=0.1))
    data, encoder = build(4), FakeEncoder()
    store.ingest(data.take(data.scopes[:1]))
    early = store.versions()
    time.sleep(0.3)
    store.ingest(data.take(data.scopes[1:2]))
    seen, run_id = store.dataset("small").fingerprint(), store.runs.save(a_run(store))
    for scope in data.scopes[2:]:
        store.ingest(data.take([scope]))
    store.vectors.backfill(encoder, "small", progress=False)
    report = store.optimize()
    turns = report.filter(table="turns").row(0, named=True)
    assert turns["versions_after"] < turns["versions_before"]
    assert "embeddings_fake_8" in report["table"]
    assert (
        store.at(store.runs.load(run_id).provenance["versions"]).dataset("small").fingerprint()
        == seen
    )
    with pytest.raises(StoreError, match="was cleaned up"):
        store.at(early)
    assert store.dataset("small").fingerprint() == data.fingerprint()
    assert store.vectors.read(encoder, "small").shape == (32, 8)


DATA = build(2, 2)
SESSIONS = DATA.sessions["session_id"].to_list()
SCOPES = dict(DATA.sessions.select("session_id", "scope").iter_rows())


@pytest.fixture
def indexed(store: MemoryStore) -> MemoryStore:
    store.ingest(DATA)
    return store


def commit(store: MemoryStore, sessions: list[str], generation: str, value: str) -> None:
    states = [
        IndexState(s, SCOPES[s], "indexed", "1", "d", generation, 1, None, "extractive", NOW)
        for s in sessions
    ]
    events = [
        IndexEvent(f"{s}@{generation}", s, SCOPES[s], "created", NOW, 0.1, None, "1")
        for s in sessions
    ]
    said = ("Ann", "likes", value, "stated")
    facts = [Fact(f"{s}/f", SCOPES[s], *said, [f"{s}/1"], NOW, session_id=s) for s in sessions]
    parts = {"facts": frame(Fact, facts)}
    store.knowledge.commit_sessions(
        DATA.name,
        rows_by_kind=parts,
        states=frame(IndexState, states),
        events=frame(IndexEvent, events),
    )


def test_rows_without_their_state_are_not_seen(
    indexed: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit(indexed, SESSIONS[:1], "g1", "tea")
    write = Database.upsert_rows

    def dies(database: Database, name: str, rows: pl.DataFrame) -> None:
        if name == "index_states":
            raise KeyboardInterrupt
        write(database, name, rows)

    with monkeypatch.context() as patch:
        patch.setattr(Database, "upsert_rows", dies)
        with pytest.raises(KeyboardInterrupt):
            commit(indexed, SESSIONS, "g2", "coffee")
    assert indexed.knowledge.rows("facts", DATA.name)["value"].to_list() == ["tea"]
    assert indexed.knowledge.session_states(DATA.name)["generation"].to_list() == ["g1"]
    # What another worker is still writing is not swept; what was left behind long ago is.
    assert indexed.knowledge.remove_orphaned_rows(DATA.name) == 0
    assert indexed.knowledge.remove_orphaned_rows(
        DATA.name, now=datetime.now(UTC) + timedelta(days=2)
    ) == len(SESSIONS)
    assert indexed.knowledge.rows("facts", DATA.name)["value"].to_list() == ["tea"]


def test_another_generation_replaces_the_rows_of_its_sessions_alone(indexed: MemoryStore) -> None:
    commit(indexed, SESSIONS, "g1", "tea")
    commit(indexed, SESSIONS[:1], "g2", "coffee")
    held = indexed.knowledge.rows("facts", DATA.name)
    assert held["value"].to_list() == ["coffee", *["tea"] * (len(SESSIONS) - 1)]
    assert indexed.table("fact_rows").count_rows() == held.height
    assert indexed.knowledge.events(DATA.name).height == len(SESSIONS) + 1


@pytest.mark.parametrize("change", ["edited", "deleted"])
def test_what_stands_on_a_changed_message_is_not_read(indexed: MemoryStore, change: str) -> None:
    digests = indexed.knowledge.session_digests(DATA.name)
    one, lines = digests.select("session_id", "turns").row(0)
    ids = [line.rpartition(" ")[0] for line in lines]
    rows = [Fact(f"{one}/f{i}", SCOPES[one], "Ann", "likes", "tea", "stated", [turn], NOW, session_id=one)
            for i, turn in enumerate(ids)]  # fmt: skip
    state = IndexState(
        one, SCOPES[one], "indexed", "1", "d", "g", 1, None, "extractive", NOW, lines
    )
    about = (
        "Tea.",
        ["Tea."],
        [ids[1:2]],
        [],
        ["Tea."],
        [ids[:1]],
        [],
        [],
        [],
        [],
        [],
        NOW,
        NOW,
        [],
        2,
        "x",
    )
    parts = {
        "facts": frame(Fact, rows),
        "summaries": frame(Summary, [Summary(one, SCOPES[one], *about)]),
    }
    indexed.knowledge.commit_sessions(
        DATA.name, rows_by_kind=parts, states=frame(IndexState, [state]), events=frame(IndexEvent)
    )
    assert indexed.knowledge.rows("facts", DATA.name).height == len(ids)
    assert indexed.knowledge.rows("summaries", DATA.name).height == 1
    without = replace(DATA, turns=DATA.turns.filter(pl.col("turn_id") != ids[0]))
    indexed.ingest(edited(DATA, ids[0], text="Hm") if change == "edited" else without)
    left = indexed.knowledge.rows("facts", DATA.name)
    assert left["evidence"].to_list() == [[turn] for turn in ids[1:]]
    assert indexed.knowledge.rows(
        "summaries", DATA.name
    ).is_empty()  # a decision of it stands on that message


def test_a_summary_with_a_text_and_no_list_of_its_turns_is_refused(indexed: MemoryStore) -> None:
    one = SESSIONS[0]
    about = ("Tea.", ["Tea."], [["t"]], [], ["Tea.", "Milk."], [["t"]], [], [], [], [], [])
    summary = Summary(one, SCOPES[one], *about, NOW, NOW, [], 2, "x")
    state = IndexState(one, SCOPES[one], "indexed", "1", "d", "g", 1, None, "mine", NOW)
    rows = {"states": frame(IndexState, [state]), "events": frame(IndexEvent)}
    with pytest.raises(StoreError, match="has 2 decisions and 1 decision_evidence; each text"):
        indexed.knowledge.commit_sessions(
            DATA.name, rows_by_kind={"summaries": frame(Summary, [summary])}, **rows
        )
    assert indexed.knowledge.session_states(DATA.name).is_empty()


def test_nothing_where_a_name_is_meant_does_not_read_all(store: MemoryStore) -> None:
    store.runs.save(a_run(store))
    with pytest.raises(DataError, match=r"Runs.load: run_id is None; expected str"):
        store.runs.load(None)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="dataset is None"):
        store.database.read_table("turns", ["key"], dataset=None)


def test_rows_are_read_in_one_call_of_the_database(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    from lancedb.background_loop import LOOP

    store.runs.save(a_run(store), now=NOW)
    called = []
    run_by_loop = LOOP.run
    monkeypatch.setattr(LOOP, "run", lambda future: called.append(future) or run_by_loop(future))
    rows = store.runs.database.read_table("runs", ["key", "name"], name="dense")
    assert rows["name"].to_list() == ["dense"]
    assert len(called) <= 2, "its columns, and its rows"
