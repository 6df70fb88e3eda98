"""Stores that an older memlab wrote: columns that came later are read as empty, and added by the first write."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from store_data import NOW
from tiny_store import DATA, SESSIONS, read_session

import memlab
from memlab.datasets import chatlog
from memlab.records import Entity, IndexEvent, IndexState, frame
from memlab.store import MemoryStore
from memlab.store.table_schemas import TABLES


def test_turns_without_the_later_columns_are_read_and_written(tmp_path: Path) -> None:
    about = {"scope": "s", "sender": "Ann"}
    said = [about | {"id": str(n), "session": f"c{n}", "text": f"text {n}"} for n in range(3)]
    before = chatlog.dataset(said, "log")
    store = MemoryStore.open(tmp_path / "store")
    store.ingest([before])
    store.database.open_or_create_table("turns").drop_columns(list(TABLES["turns"].later))

    old = MemoryStore.open(tmp_path / "store")
    assert old.dataset("log").turns.equals(before.turns)
    assert old.dataset("log").fingerprint() == before.fingerprint()
    assert old.turns("log", columns=["turn_id", "quoted"])["quoted"].null_count() == 3
    assert old.knowledge.session_digests("log").height == 3

    said[1] |= {"forwarded_from": "Bo"}
    said[2] |= {"text": "> I sail\nno"}
    after = chatlog.dataset(said, "log")
    digests = old.knowledge.session_digests("log")["digest"]
    report = old.ingest([after])
    assert report.filter(table="turns").select("updated", "unchanged").row(0) == (2, 1)
    read = memlab.MemoryStore.open(tmp_path / "store").dataset("log")
    assert read.turns.equals(after.turns)
    # A session whose words are somebody else's now is read again, and no other.
    changed = old.knowledge.session_digests("log")["digest"] != digests
    assert changed.to_list() == [False, True, True]


def test_questions_without_their_source_are_read_and_written(tmp_path: Path) -> None:
    said = [{"scope": "s", "sender": "Ann", "id": str(n), "text": f"text {n}"} for n in range(3)]
    asked: dict[str, Any] = {"scope": "s", "question": "What?", "evidence": ["0", "1"]}
    before = chatlog.dataset([*said, asked], "log")
    store = MemoryStore.open(tmp_path / "store")
    store.ingest([before])
    store.database.open_or_create_table("questions").drop_columns(list(TABLES["questions"].later))

    old = MemoryStore.open(tmp_path / "store")
    assert old.dataset("log").questions.equals(before.questions)
    assert old.dataset("log").fingerprint() == before.fingerprint()
    asked |= {"source": "proposed", "reasons": ["a", "b"], "distractors": ["2"], "checks": {"é": 1}}
    after = chatlog.dataset([*said, asked], "log")
    old.ingest([after])
    read = MemoryStore.open(tmp_path / "store").dataset("log").questions
    assert read.equals(after.questions)
    assert read.select("source", "reasons", "distractors", "checks").row(0) == (
        "proposed",
        ["a", "b"],
        ["s/2"],
        '{"é": 1}',
    )


def test_entities_without_their_relations_are_read_and_written(tmp_path: Path) -> None:
    session = SESSIONS[0]
    ann = Entity("e1", "scope-0", session, "Ann", "person", "", ["t"])
    related = replace(ann, relations=["sister of"], related=["Bo"])

    def commit(store: MemoryStore, entity: Entity, generation: str) -> None:
        state = IndexState(session, "scope-0", "indexed", "1", "d", generation, 1, None, "x", NOW)
        rows = {"states": frame(IndexState, [state]), "events": frame(IndexEvent)}
        store.knowledge.commit_sessions(
            "tiny", rows_by_kind={"entities": frame(Entity, [entity])}, **rows
        )

    store = MemoryStore.open(tmp_path / "store")
    store.ingest(DATA)
    commit(store, ann, "g1")
    store.database.open_or_create_table("entities").drop_columns(list(TABLES["entities"].later))

    old = MemoryStore.open(tmp_path / "store")
    assert old.knowledge.rows("entities", "tiny").equals(frame(Entity, [ann]))
    commit(old, related, "g2")
    assert old.knowledge.rows("entities", "tiny").equals(frame(Entity, [related]))


def test_facts_of_today_are_there_in_a_view_of_earlier_versions(tmp_path: Path) -> None:
    store = MemoryStore.open(tmp_path / "store")
    store.ingest(DATA)
    versions = store.versions()
    read_session(store, "g")
    assert store.at(versions).knowledge.rows("facts", "tiny").height == 1
