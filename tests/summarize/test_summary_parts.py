from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from memlab.summarize import action_items, decisions, open_questions, split


def _said(*texts: str) -> pl.DataFrame:
    return pl.DataFrame({"speaker": "Mel", "text": texts})


def test_decisions():
    made = [
        "We decided to paint the kitchen green.", "I've finally chosen the oak table.",
        "I'll go with the second offer.",
        "Let's book the cabin for June.", "We’re going with the cheaper one.", "I made up my mind.",
    ]  # fmt: skip
    open_ = [
        "I haven't decided yet.", "Let's see.", "Have you decided?", "I can't decide between the two.",
        "If we decide, we pay.",
        "I went with my sister.", "Let me know once you have decided.",
    ]  # fmt: skip
    assert decisions(_said(*made, *open_))["text"].to_list() == made


def test_action_items():
    tasks = [
        "I need to renew my passport.", "I’ll send you the recipe.",
        "Remind me to call Joe.", "TODO: update the slides.",
        "Don't forget to water the plants.", "I have to talk to my boss by Friday.", "Can you please book a table?",
    ]  # fmt: skip
    others = [
        "I'll always love it.", "I'll do my best.", "I'm going to be fine.", "I needed to rest.", "See you soon!",
        "Should I call him?", "I'll never forget.", "I went there last month.", "Keep going!",
        "We're going to Rome next month.", "Can you remind me what it cost?",
    ]  # fmt: skip
    assert action_items(_said(*tasks, *others))["text"].to_list() == tasks


@pytest.mark.parametrize("half", ["dev", "held"])
@pytest.mark.parametrize(("kind", "find"), [("decision", decisions), ("action", action_items)])
def test_what_is_shown_is_right(half: str, kind: str, find: Callable[[pl.DataFrame], pl.DataFrame]) -> None:
    """Sentences judged by hand before the rules were written; the rules were made on the first half."""
    lines = (Path(__file__).parent / "parts.tsv").read_text(encoding="utf-8").splitlines()
    cases = [line.split("\t") for line in lines if line.startswith(f"{half}\t")]
    right = {text for _, of, text in cases if of == kind}
    claimed = set(find(_said(*(text for _, _, text in cases)))["text"])
    assert len(cases) > 60
    assert len(claimed & right) >= 0.9 * len(claimed), claimed - right
    assert len(claimed & right) >= 0.7 * len(right), right - claimed


@pytest.mark.parametrize(
    ("lines", "asked"),
    [
        (["A: Which paint dries fastest?", "B: The acrylic one, within an hour."], []),
        (["A: Any plans for the summer?", "B: Researching adoption agencies in town."], []),
        (["A: I saw Joe.", "B: Which train did Joe take?"], ["B: Which train did Joe take?"]),
        (["A: Which hotel has parking?", "B: Not sure yet, let me check."], ["A: Which hotel has parking?"]),
        (["A: Which hotel has parking?", "B: Good question!"], ["A: Which hotel has parking?"]),
        (
            ["A: Which hotel has parking?", "B: Not sure.", "A: Fine.", "B: The Grand hotel has free parking."],
            [],
        ),
        (["A: I ran ten miles.", "B: Wow! How are you?"], []),
        (["A: I ran ten miles.", "B: Great weather for running, right?"], []),
        (["A: Which hotel has parking?", "A: And which museum opens Mondays?", "B: The Grand hotel, I read."], []),
    ],
)
def test_open_questions(chat, lines, asked):
    assert open_questions(split(chat(*lines)))["spoken"].to_list() == asked


def test_answers_of_another_group_do_not_count(chat):
    first = chat("A: Which hotel has parking?", "B: Not sure.")
    second = chat("B: The Grand hotel has parking.", session="u/t", day=9)
    sentences = split(pl.concat([first, second]))
    assert len(open_questions(sentences)) == 1
    assert open_questions(sentences, by="scope").is_empty()


def test_no_sentences(chat):
    none = split(chat("A: hi").clear())
    for find in (decisions, action_items, open_questions):
        assert "spoken" in find(none).columns
