"""Recall: the three components, the graph, and current above stale."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import polars as pl
import pytest

from memlab.embed import load
from memlab.errors import DataError
from memlab.knowledge import ConfidenceSettings, recall, resolve, score
from memlab.knowledge.decay import Exponential, PlateauLinear
from memlab.knowledge.recall import build_graph, fact_relevance
from memlab.records import Entity, Fact, frame

DAY0 = datetime(2026, 1, 1, tzinfo=UTC)
SAID = [("Ann Lee", "works at", "Acme"), ("Acme", "is based in", "Oslo"), ("Ben", "likes", "pottery"),
        ("Cy", "teaches", "pottery classes"), ("Ann Lee", "works at", "Bolt"), ("Zoe", "likes", "pottery")]  # fmt: skip
FACTS = frame(Fact, [
    Fact(f"u{i}", "v" if said[0] == "Zoe" else "u", *said, "stated", [f"u/{i}"], DAY0 + timedelta(days=30 * i))
    for i, said in enumerate(SAID)
])  # fmt: skip


def _asked(*texts: str) -> pl.DataFrame:
    return pl.DataFrame({"scope": "u", "text": texts})


def test_the_score_is_the_weighted_sum_without_superseded_facts_and_other_scopes() -> None:
    held = score(resolve(FACTS).facts, now=DAY0 + timedelta(days=200))
    found = recall.search_facts(_asked("Who does pottery?"), held, encoder=load("hashing:64"))
    weighed = 0.4 * found["vector"] + 0.3 * found["graph"] + 0.3 * found["confidence"]
    assert found["score"].to_list() == pytest.approx(weighed.to_list(), abs=1e-5)
    assert set(found["fact_id"].head(2)) == {"u2", "u3"}
    assert set(found["fact_id"]) == {"u1", "u2", "u3", "u4"}
    every = recall.search_facts(_asked("Who does pottery?"), held, superseded=True)
    assert every.filter(fact_id="u0")["confidence"].item() == 0


def test_the_graph_reaches_what_shares_no_word() -> None:
    oslo = frame(Entity, [Entity("e", "u", "u/s", "Oslo", "place", "", [])])
    known = build_graph(FACTS.filter(scope="u"), oslo)
    near, _ = fact_relevance(known, "Where is Ann's office?")
    # Ann Lee, Acme, Oslo: two steps; nothing leads to pottery.
    assert near["u1"] > near.get("u2", 0.0)
    assert fact_relevance(known, "Who is Ann Lee?")[1] == ["Ann Lee"]
    assert fact_relevance(known, "Anything else?") == ({}, [])


def test_a_batch_is_its_questions() -> None:
    held = score(resolve(FACTS).facts, now=DAY0)
    both = recall.search_facts(_asked("pottery?", "Where does Ann work?"), held, k=3)
    alone = recall.search_facts(_asked("Where does Ann work?").with_columns(query_id=pl.lit("1")), held, k=3)
    assert both.filter(query_id="1").equals(alone)
    with pytest.raises(DataError, match="confidence"):
        recall.search_facts(_asked("x"), held.drop("confidence"))


def test_supersession_puts_the_current_value_first() -> None:
    resolved = resolve(FACTS)
    asked = _asked("Where does Ann Lee work?").with_columns(query_id=pl.lit("q"), now=DAY0 + timedelta(days=200))
    labels = pl.DataFrame({"query_id": ["q", "q"], "fact_id": ["u0", "u4"], "current": [False, True]})
    still, fading = ConfidenceSettings(decay=PlateauLinear(floor=1.0)), ConfidenceSettings(decay=Exponential(60))
    ways = {"none": (still, False), "decay": (fading, False), "closed": (still, True)}
    table = recall.current_first_shares(asked, labels, resolved, conditions=ways)
    assert dict(table.select("condition", "share").iter_rows()) == {"none": 0, "decay": 1, "closed": 1}
