"""What a rollup tells a colleague: whole sentences of the turns, in the right section, with their dates."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

import memlab
from memlab.errors import DataError
from memlab.rollup import highlights, letter, rollup


@pytest.mark.parametrize(
    ("said", "section"),
    [
        ("I finally finished my first screenplay last Friday.", "changed"),
        ("Last week I visited a castle in Wales with friends.", "happened"),
        ("I'm planning a hiking trip to the lakes next month.", "planned"),
        ("Nature trails always calm restless dogs.", "said"),
        ("It was the best concert of the summer tour.", None),
        ("Did I tell the landlord about the broken window?", None),
        ("You adopted a puppy from the old shelter.", None),
        ("I need to find a dog-friendly flat near the park.", None),
        ("I loved the pottery class in the old town hall.", None),
    ],
)
def test_sentences_find_their_section(talk: Any, said: str, section: str | None) -> None:
    found = highlights(talk(("a", "2024-03-05 12:00", [f"Ann: {said}"])))
    assert found["section"].to_list() == ([section] if section else [])


def test_calls_and_smileys_go_and_days_stay(talk: Any) -> None:
    turns = talk(
        ("a", "2024-03-05 12:00", ["Mel: Hi!", "Ann: Wow Mel, I won an archery contest! 🎯"]),
        ("b", "2024-03-06 12:00", ["Ann: Yesterday, I painted the kitchen wall green."]),
    )
    assert highlights(turns)["text"].to_list() == [
        "I won an archery contest!",
        "Yesterday, I painted the kitchen wall green.",
    ]
    nodes = rollup(turns)
    week = nodes.filter(pl.col("kind") == "week")["node_id"][0]
    written = letter(nodes, turns, week)
    assert "## 5 to 6 March 2024" in written
    assert "Mel and Ann talked on Tuesday 5 March and Wednesday 6 March (3 messages)." in written
    assert "- Ann, Wednesday 6 March: Yesterday (5 March 2024), I painted" in written


def test_every_line_is_of_its_turn() -> None:
    data = memlab.sample(["owen"], turns=200)
    texts = dict(data.turns.select("turn_id", "text").iter_rows())
    found = highlights(data.turns)
    assert found.height
    # Only the first letter may have been made a capital.
    assert all(line[1:] in " ".join(texts[turn].split()) for turn, line in found.select("turn_id", "text").iter_rows())
    advice = data.turns.filter(pl.col("role") == "assistant")["turn_id"].implode()
    assert not found["turn_id"].is_in(advice).any(), "an assistant's advice is no news"
    nodes = rollup(data.turns)
    letters = [letter(nodes, data.turns, node, most=2) for node in nodes["node_id"]]
    assert all(text.startswith("## ") for text in letters)
    assert max(text.count("\n- ") for text in letters) <= 9


def test_an_unknown_node_is_an_error() -> None:
    turns = memlab.sample(["owen"], turns=60).turns
    with pytest.raises(DataError, match="no node has the id 'x'"):
        letter(rollup(turns), turns, "x")
