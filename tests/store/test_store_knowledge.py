"""The tables of the index: whole or not at all, whoever dies or writes meanwhile."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import polars as pl
import pytest
import store_data

from memlab.records import Fact, IndexEvent, IndexState, Summary, frame
from memlab.store import MemoryStore
from memlab.store.database import Database

NOW = datetime(2026, 1, 1, tzinfo=UTC)
DATA = store_data.build(2, 2)
SESSIONS = DATA.sessions["session_id"].to_list()
SCOPES = dict(DATA.sessions.select("session_id", "scope").iter_rows())


@pytest.fixture
def store(store: MemoryStore) -> MemoryStore:
    store.ingest(DATA)
    return store


def facts(sessions: list[str], value: str) -> pl.DataFrame:
    at = [(f"{s}/f", SCOPES[s], "Ann", "likes", value, "stated", [f"{s}/1"], NOW) for s in sessions]
    rows = frame(Fact, [Fact(*about) for about in at])
    return rows.with_columns(session_id=pl.Series(sessions, dtype=pl.String))


def commit(store: MemoryStore, sessions: list[str], generation: str, value: str) -> None:
    states = [IndexState(s, SCOPES[s], "indexed", "1", "d", generation, 1, None, "extractive", NOW) for s in sessions]
    events = [IndexEvent(f"{s}@{generation}", s, SCOPES[s], "created", NOW, 0.1, None, "1") for s in sessions]
    parts = {"facts": facts(sessions, value)}
    store.knowledge.commit(DATA.name, parts=parts, states=frame(IndexState, states), events=frame(IndexEvent, events))


def test_rows_without_their_state_are_not_seen(store: MemoryStore, monkeypatch: pytest.MonkeyPatch) -> None:
    commit(store, SESSIONS[:1], "g1", "tea")
    write = Database.write

    def dies(database: Database, name: str, rows: pl.DataFrame) -> None:
        if name == "index_states":
            raise KeyboardInterrupt
        write(database, name, rows)

    with monkeypatch.context() as patch:
        patch.setattr(Database, "write", dies)
        with pytest.raises(KeyboardInterrupt):
            commit(store, SESSIONS, "g2", "coffee")
    assert store.knowledge.rows("facts", DATA.name)["object"].to_list() == ["tea"]
    assert store.knowledge.states(DATA.name)["generation"].to_list() == ["g1"]
    # What another worker is still writing is not swept; what was left behind long ago is.
    assert store.knowledge.sweep(DATA.name) == 0
    assert store.knowledge.sweep(DATA.name, now=datetime.now(UTC) + timedelta(days=2)) == len(SESSIONS)
    assert store.knowledge.rows("facts", DATA.name)["object"].to_list() == ["tea"]


def test_another_generation_replaces_the_rows_of_its_sessions_alone(store: MemoryStore) -> None:
    commit(store, SESSIONS, "g1", "tea")
    commit(store, SESSIONS[:1], "g2", "coffee")
    held = store.knowledge.rows("facts", DATA.name)
    assert held["object"].to_list() == ["coffee", *["tea"] * (len(SESSIONS) - 1)]
    assert store.table("facts").count_rows() == held.height
    assert store.knowledge.events(DATA.name).height == len(SESSIONS) + 1


@pytest.mark.parametrize("change", ["edited", "deleted"])
def test_what_stands_on_a_changed_message_is_not_read(store: MemoryStore, change: str) -> None:
    digests = store.knowledge.digests(DATA.name)
    one, lines = digests.select("session_id", "turns").row(0)
    ids = [line.rpartition(" ")[0] for line in lines]
    rows = [Fact(f"{one}/f{i}", SCOPES[one], "Ann", "likes", "tea", "stated", [turn], NOW, session_id=one)
            for i, turn in enumerate(ids)]  # fmt: skip
    state = IndexState(one, SCOPES[one], "indexed", "1", "d", "g", 1, None, "extractive", NOW, lines)
    about = ("Tea.", ["Tea."], [ids[1:2]], [], ["Tea."], [ids[:1]], [], [], [], [], [], NOW, NOW, [], 2, "x")
    parts = {"facts": frame(Fact, rows), "summaries": frame(Summary, [Summary(one, SCOPES[one], *about)])}
    store.knowledge.commit(DATA.name, parts=parts, states=frame(IndexState, [state]), events=frame(IndexEvent))
    assert store.knowledge.rows("facts", DATA.name).height == len(ids)
    assert store.knowledge.rows("summaries", DATA.name).height == 1
    without = replace(DATA, turns=DATA.turns.filter(pl.col("turn_id") != ids[0]))
    store.ingest(store_data.edited(DATA, ids[0], text="Hm") if change == "edited" else without)
    left = store.knowledge.rows("facts", DATA.name)
    assert left["evidence"].to_list() == [[turn] for turn in ids[1:]]
    assert store.knowledge.rows("summaries", DATA.name).is_empty()  # a decision of it stands on that message
