from __future__ import annotations

from memlab.summarize import split, spoken


def test_rows_belong_to_their_turns(chat):
    turns = chat("Mel: One. Two!", "user: ", "user: Three.")
    rows = split(turns)
    assert rows.select("turn_id", "position", "text").rows() == [
        ("u/s/1", 1, "One."), ("u/s/1", 2, "Two!"), ("u/s/3", 1, "Three."),
    ]  # fmt: skip
    assert rows.select(spoken())["spoken"].to_list() == ["Mel: One.", "Mel: Two!", "Three."]
    assert split(turns.clear()).schema == rows.schema
