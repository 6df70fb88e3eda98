from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import memlab
from memlab.errors import DataError
from memlab.summarize import extract, split
from memlab.summarize.extractive import shorten


@pytest.fixture(scope="module")
def made() -> pl.DataFrame:
    return split(memlab.sample(["owen"], turns=200).turns)


def _table(texts: list[str], group: str = "u/s") -> pl.DataFrame:
    rows = pl.DataFrame({"text": texts}, schema={"text": pl.String})
    return rows.select(
        turn_id=pl.format("t{}", pl.int_range(pl.len())),
        session_id=pl.lit(group),
        scope=pl.lit("u"),
        speaker=pl.lit("Mel"),
        text="text",
    )


def test_news_before_courtesy(chat):
    turns = chat(
        "Ann: Hey Mel! Great to see you!",
        "Mel: Hi Ann! I moved to Oslo in May and started at the harbour museum.",
        "Ann: Wow, that's awesome! Congrats!",
        "Mel: Thanks! How are you?",
        "Ann: I adopted two cats from the shelter on Pine Street.",
        "Mel: So cute! You're so kind!",
    )
    assert extract(split(turns), max_sentences=2)["spoken"].to_list() == [
        "Mel: I moved to Oslo in May and started at the harbour museum.",
        "Ann: I adopted two cats from the shelter on Pine Street.",
    ]


def test_bounds_order_and_evidence(made):
    chosen = extract(made, max_sentences=4)
    sizes = dict(chosen.group_by("session_id").len().iter_rows())
    assert set(sizes) == set(made["session_id"])
    assert all(2 <= n <= 4 for n in sizes.values())
    places = {row: i for i, row in enumerate(made.select("turn_id", "position").iter_rows())}
    order = [places[row] for row in chosen.select("turn_id", "position").iter_rows()]
    assert order == sorted(order)
    texts = dict(zip(made.select("turn_id", "position").rows(), made["text"], strict=True))
    for turn, position, said in chosen.select("turn_id", "position", "spoken").iter_rows():
        assert said.endswith((texts[turn, position], "…"))


def test_the_same_again_and_whatever_the_ids(made):
    chosen = extract(made)
    assert extract(made).equals(chosen)
    renamed = made.with_columns(session_id="x" + pl.col("session_id").str.reverse())
    assert extract(renamed)["spoken"].to_list() == chosen["spoken"].to_list()


def test_scopes_do_not_meet(made):
    (first, *_rest) = made["scope"].unique(maintain_order=True)
    part = made.filter(pl.col("scope") == first)
    assert extract(part)["spoken"].equals(extract(made).filter(pl.col("scope") == first)["spoken"])


def test_any_grouping(made):
    grouped = made.with_columns(week=pl.when(pl.int_range(pl.len()) % 7 < 5).then(pl.int_range(pl.len()) % 3))
    chosen = extract(grouped, by="week", max_sentences=3)
    assert chosen["week"].value_counts().sort("week").rows() == [(0, 3), (1, 3), (2, 3)]


def test_repetition_is_left_out():
    once = ["I bought a red bicycle in Bergen.", "My sister Clara teaches physics at Lund."]
    texts = [once[0]] * 5 + [once[0].upper(), "I bought a red bicycle in Bergen, yes."] + once[1:]
    assert len(extract(_table(texts), max_sentences=2)) == 2
    assert once[1] in extract(_table(texts), max_sentences=2)["text"].to_list()


@pytest.mark.parametrize(
    "texts", [["😂"], ["!!", "?"], ["Hi!"], ["Hi!", "Hello!", "Bye!"], ["один два"], ["a" * 3_000]]
)
def test_poor_groups_still_have_a_summary(texts):
    chosen = extract(_table(texts), max_chars=100)
    assert 1 <= len(chosen) <= 2
    assert chosen["spoken"].str.len_chars().max() <= 100


def test_long_sentences_only_for_want_of_short_ones():
    long = "I visited Rome, Paris, Madrid and Lisbon with Tom in 2019, " * 6
    short = ["I planted forty tulips in March.", "Our boiler broke on Monday night.", "Clara won the chess cup."]
    assert set(extract(_table([long, *short]))["text"]) < set(short)
    (cut,) = extract(_table([long]))["spoken"]
    assert len(cut) <= 220
    assert cut.endswith("…")


def test_a_large_group_in_one_piece():
    words = [f"w{n % 997}a q{n % 89}b {n}" for n in range(5_000)]
    assert len(extract(_table(words))) == 6


def test_nothing_and_nonsense():
    assert extract(_table([])).columns[-2:] == ["spoken", "score"]
    with pytest.raises(DataError, match="'week'"):
        extract(_table(["a"]), by="week")
    with pytest.raises(DataError, match="max_sentences is 0"):
        extract(_table(["a"]), max_sentences=0)


@given(st.text(max_size=300), st.integers(1, 80))
@settings(max_examples=100, deadline=None)
def test_shortened_texts_fit(text, most):
    cut = shorten(text, most)
    assert len(cut) <= most
    assert cut == text or (cut.endswith("…") and text.startswith(cut[:-1]))
