"""Stores that an older memlab wrote: columns that came later are read as empty, and added by the first write."""

from __future__ import annotations

from pathlib import Path

import memlab
from memlab.datasets import chatlog
from memlab.store import MemoryStore
from memlab.store.schemas import TABLES


def test_turns_without_the_later_columns_are_read_and_written(tmp_path: Path) -> None:
    about = {"scope": "s", "sender": "Ann"}
    said = [about | {"id": str(n), "session": f"c{n}", "text": f"text {n}"} for n in range(3)]
    before = chatlog.dataset(said, "log")
    store = MemoryStore.open(tmp_path / "store")
    store.ingest([before])
    store.database.table("turns").drop_columns(list(TABLES["turns"].later))

    old = MemoryStore.open(tmp_path / "store")
    assert old.dataset("log").turns.equals(before.turns)
    assert old.dataset("log").fingerprint() == before.fingerprint()
    assert old.turns("log", columns=["turn_id", "quoted"])["quoted"].null_count() == 3
    assert old.knowledge.digests("log").height == 3

    said[1] |= {"forwarded_from": "Bo"}
    said[2] |= {"text": "> I sail\nno"}
    after = chatlog.dataset(said, "log")
    digests = old.knowledge.digests("log")["digest"]
    report = old.ingest([after])
    assert report.filter(table="turns").select("updated", "unchanged").row(0) == (2, 1)
    read = memlab.MemoryStore.open(tmp_path / "store").dataset("log")
    assert read.turns.equals(after.turns)
    # A session whose words are somebody else's now is read again, and no other.
    changed = old.knowledge.digests("log")["digest"] != digests
    assert changed.to_list() == [False, True, True]
