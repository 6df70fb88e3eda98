"""What a search prints: everything in the width of the terminal, and nothing cut without a mark."""

from __future__ import annotations

import pickle
from datetime import UTC, datetime
from typing import Any

import polars as pl
import pytest

import memlab
from memlab.found_messages import HIT_COLUMNS, FoundMessages

LONG_ID = "me/1ead7ef1-18c8-51b5-b199-0cf068fd512a"


def _found(**changes: Any) -> FoundMessages:
    hit = {
        "rank": 1,
        "score": 31.30812,
        "time": datetime(2026, 2, 26, 21, 7, tzinfo=UTC),
        "speaker": "Mel",
        "text": "tea and cake " * 40,
        "session_id": "mel/s1",
        "turn_id": "mel/1.1",
    }
    return FoundMessages([hit | changes], question="What does Mel drink?", pipeline="best")


@pytest.mark.parametrize("columns", [60, 80, 120])
def test_lines_fit_the_terminal_and_what_is_cut_says_so(
    columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    lines = str(_found()).splitlines()
    assert max(map(len, lines)) <= columns
    assert lines[0] == "question: What does Mel drink?"
    assert lines[1] == "  1  2026-02-26 21:07  Mel  score 31.31"
    assert [line[-1] for line in lines[2:5]].count("…") == 1
    assert lines[4].endswith("…")
    assert lines[5] == "     session mel/s1  message mel/1.1"


def test_long_ids_have_a_line_each_and_are_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    lines = str(_found(text="Tea.", session_id=LONG_ID, turn_id=LONG_ID)).splitlines()
    assert lines[3:5] == [f"     session {LONG_ID}", f"     message {LONG_ID}"]


def test_controls_of_a_message_are_escaped() -> None:
    shown = str(_found(text="a\x1b]0;title\x07", speaker="M\nel", session_id="a\nb"))
    assert "\x1b" not in shown
    assert len(shown.splitlines()) == 5


def test_a_search_gives_a_frame_that_prints_so_and_computes_as_any_other() -> None:
    question = "What did the bookcase cost?"
    found = memlab.search(memlab.sample(), question, scope="owen", k=2, pipeline="bm25")
    assert str(found).splitlines()[0] == f"question: {question}"
    assert "scores of bm25" in str(found)
    assert tuple(found.columns) == HIT_COLUMNS
    assert str(found.select("rank", "text")).startswith("shape: (2, 2)")
    again = pickle.loads(pickle.dumps(found))
    assert again.equals(found)
    assert str(pl.concat([found, found]).height) == "4"
