"""Summaries, facts and messages as lines of a context."""

from __future__ import annotations

from datetime import UTC, datetime

import polars as pl
import pytest

from memlab.context import ITEM, Sources, assemble, known_facts, summary_lines
from memlab.errors import DataError
from memlab.knowledge import confidence, recall, resolve
from memlab.records import Dataset, Fact, frame
from memlab.summaries import summarize


def test_summaries_are_three_and_short(talk: Dataset) -> None:
    made = summarize(talk.turns)
    scope = made["scope"][0]
    sessions = made.filter(scope=scope)["session_id"].to_list()
    found = pl.DataFrame({"query_id": "q", "rank": range(1, len(sessions) + 1), "session_id": sessions})
    lines = summary_lines(found, made)
    assert lines.schema == ITEM
    assert lines["ref"].unique(maintain_order=True).to_list() == sessions[:3]
    for (_, head), part in lines.group_by("ref", "head"):
        assert len("\n".join([head, *part["text"]])) <= 420
        assert "topics: " in head
        assert str(made["start"][0].year) in head
    assert lines.select(pl.col("turns").list.len().min()).item() >= 1


@pytest.mark.parametrize("max_chars", [30, 60, 150, 420])
def test_a_long_summary_is_cut(max_chars: int) -> None:
    sentences = ["Mel moved to a small flat in Oslo, near the harbour and the old library, in early May."] * 9
    when = datetime(2026, 5, 1, tzinfo=UTC)
    row = {"session_id": "s", "sentences": [sentences], "evidence": [[["t"]] * 9], "topics": [["flat"]]}
    summaries = pl.DataFrame({**row, "start": when, "end": when})
    found = pl.DataFrame({"query_id": ["q"], "rank": [1], "session_id": ["s"]})
    lines = summary_lines(found, summaries, max_chars=max_chars)
    assert len("\n".join([*lines["head"][:1], *lines["text"]])) <= max_chars
    with pytest.raises(DataError, match="no column 'node_id'"):
        summary_lines(found, summaries, by="node_id")


def test_facts_say_how_sure_and_when() -> None:
    when = datetime(2026, 3, 1, tzinfo=UTC)
    facts = frame(Fact, [Fact("f1", "u", "Ann", "works at", "Acme", "stated", ["t1"], when)])
    scored = confidence.score(resolve(facts).facts, now=when)
    asked = pl.DataFrame({"query_id": ["q"], "scope": ["u"], "text": ["Where does Ann work?"]})
    (line,) = known_facts(recall.search_facts(asked, scored), scored).iter_rows(named=True)
    assert (line["text"], line["turns"], line["at"]) == ("Ann works at Acme", ["t1"], when)
    assert line["confidence"] == scored["confidence"][0]
    made = assemble(Sources(facts=known_facts(recall.search_facts(asked, scored), scored)))
    assert made.text("q").endswith(f"\nAnn works at Acme ({scored['confidence'][0]:.1f}, 1 March 2026)")
    assert made.parts.select("turns", "at", "confidence").row(0) == (["t1"], when, scored["confidence"][0])


def test_a_fact_that_ends_in_brackets_is_compared_whole() -> None:
    rows = [("q", "f1", 1, "", "Mel owns a cat (called Max)", ["t1"], None, None)]
    said = [("q", "t1", 1, "", "Mel owns a cat", ["t1"], None, None)]
    relevant, facts = (pl.DataFrame(each, schema=ITEM, orient="row") for each in (said, rows))
    made = assemble(Sources(relevant=relevant, facts=facts))
    assert made.parts["source"].to_list() == ["relevant", "facts"]
