from __future__ import annotations

import polars as pl
import pytest

from memlab.summarize import split, topics


def test_topics_tell_groups_apart(chat):
    pottery = chat(
        "Mel: I joined a pottery class in town last week.",
        "Ann: Wow, a pottery class sounds great!",
        "Mel: The pottery class taught me how glazes work.",
    )
    sailing = chat(
        "Ann: I bought a sailing boat with my brother Tom.",
        "Mel: Great! Where is the sailing boat now?",
        "Ann: The sailing boat lies in the old harbour of Kiel.",
        session="u/t",
    )
    found = dict(topics(split(pl.concat([pottery, sailing]))).iter_rows())
    assert list(found) == ["u/s", "u/t"]
    assert found["u/s"][0] == "pottery class"
    assert found["u/t"][0] == "sailing boat"


def test_topics_share_no_word_and_no_name(chat):
    turns = chat(
        *["Melanie: Mel Melanie Ann likes modern dance, modern art and modern dance shows in Berlin."] * 3, "Ann: Yes."
    )
    (found,) = topics(split(turns), n_topics=4)["topics"].to_list()
    words = [word for topic in found for word in topic.lower().split()]
    assert len(words) == len(set(words))
    assert not {"melanie", "mel", "ann"} & set(words)
    assert "Berlin" in " ".join(found)
    assert len(found) <= 4


def test_what_an_assistant_says_is_no_topic_unless_nobody_else_speaks(chat):
    advice = "assistant: Cook double grains once, and charred cauliflower too."
    both = chat("Ann: I raised two lambs in my garden.", advice)
    alone = chat(advice, session="u/t")
    found = dict(topics(split(pl.concat([both, alone]))).iter_rows())
    assert set(found["u/s"]) == {"lambs", "garden"}
    assert "charred cauliflower" in found["u/t"]


def test_an_assistant_of_another_name_is_one(chat):
    bot = pl.col("speaker") == "Bot"
    turns = chat("Ann: I raised two lambs in my garden.", "Bot: Cook charred cauliflower too.")
    turns = turns.with_columns(role=pl.when(bot).then(pl.lit("assistant")).otherwise("role"))
    assert set(topics(split(turns))["topics"].item()) == {"lambs", "garden"}


def test_topics_hold_no_date_and_no_capital_that_begins_a_sentence(chat):
    (found,) = topics(split(chat("Ann: Garlic went in on the 12th.", "Ann: I like garlic and Oslo.")))["topics"]
    assert set(found) == {"garlic", "Oslo"}


@pytest.mark.parametrize(
    "text", ["Hi!", "😂", "a a a", "今日は東京へ行きました。", "Я купил дом в Москве на прошлой неделе", "x" * 4_000]
)
def test_short_and_foreign_texts_have_some_or_none(chat, text):
    (found,) = topics(split(chat(f"Mel: {text}")))["topics"].to_list()
    assert all(0 < len(topic) <= 60 for topic in found)


def test_no_sentences(chat):
    assert topics(split(chat("A: x").clear())).shape == (0, 2)
