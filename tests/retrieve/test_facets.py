"""What a question lists, joins or compares, read from its words."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memlab.retrieve.facets import is_aggregation, question_parts


def split(text: str, *kinds: str) -> list[str]:
    parts = question_parts(pl.DataFrame({"query_id": ["q"], "text": [text]}))
    return parts.filter(pl.col("kind").is_in(kinds or ("facet", "name")))["text"].to_list()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("How many doctors did I visit?", True),
        ("How much did I spend on gifts?", True),
        ("What is the total cost of the car cover?", True),
        ("Which cities has Jon visited?", True),
        ("What do both Joanna and Nate appreciate?", True),
        ("How many different cuisines have I tried?", True),
        ("List the books I read.", True),
        ("What are the two hobbies that led me here?", True),
        ("How much did I spend on each mug?", True),
        ("Where do I live?", False),
        ("What is the name of my cat?", False),
        ("Which car did I buy?", False),
        ("How long did the trip take?", False),
        ("How many days ago did I launch my website?", False),
        ("", False),
    ],
)
def test_aggregation(text: str, expected: bool) -> None:
    assert pl.DataFrame({"text": [text]}).select(is_aggregation()).item() is expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("What do Ann and Bob both like?", ["What do Ann like", "What do Bob like"]),
        ("What movies have both Joanna and Nate seen?", ["What movies have Joanna seen", "What movies have Nate seen"]),
        (
            "Who is Tim and John's favorite player?",
            ["Who is Tim's favorite player", "Who is John's favorite player"],
        ),
        (
            "What is Andrew planning to do with Scout, Toby, and Buddy?",
            [f"What is Andrew planning to do with {dog}" for dog in ("Scout", "Toby", "Buddy")],
        ),
        (
            "How much did I spend on gifts for my coworker and brother?",
            ["How much did I spend on gifts for my coworker", "How much did I spend on gifts for my brother"],
        ),
        (
            "How many kitchen items did I replace or fix?",
            [f"How many kitchen items did I {v}" for v in ("replace", "fix")],
        ),
        (
            "What did Mel and her kids make with clay?",
            ["What did Mel make with clay", "What did her kids make with clay"],
        ),
        (
            "What could I get if I sold the diamond necklace and the antique vanity?",
            [f"What could I get if I sold the {thing}" for thing in ("diamond necklace", "antique vanity")],
        ),
        (
            "How much more did I spend per night in Hawaii compared to Tokyo?",
            [f"How much more did I spend per night in {place}" for place in ("Hawaii", "Tokyo")],
        ),
        (
            "Which vehicle did I wash first, the bike or the car?",
            ["Which vehicle did I wash first the bike", "Which vehicle did I wash first the car"],
        ),
        (
            "How many days passed between my visit to the MoMA and the opening at the Met?",
            [f"How many days passed between {event}" for event in ("my visit to the MoMA", "the opening at the Met")],
        ),
        (
            "Which show did I start first, 'The Crown' or 'Game of Thrones'?",
            ["Which show did I start first, 'The Crown'", "Which show did I start first, 'Game of Thrones'"],
        ),
        (
            "How often did I play tennis before? How often do I play now?",
            ["How often did I play tennis before", "How often do I play now"],
        ),
        ("How many tops have I bought from H&M so far?", []),
        ('What does "Salt and Pepper" mean to Tim?', []),
        ("Where did I go and why?", []),
        ("How many doctors did I see?", []),
        ("", []),
        ("and, or", []),
        ("?", []),
    ],
)
def test_facets(text: str, expected: list[str]) -> None:
    assert split(text) == expected


def test_names_are_told_from_other_facets() -> None:
    assert len(split("What do Ann and Bob like?", "name")) == 2
    assert len(split("What did I pay for the sofa and the lamp?", "facet")) == 2


def test_phrases_are_the_words_that_say_something() -> None:
    assert split("How many model kits have I worked on or bought?", "phrase") == ["model kits", "worked", "bought"]


@given(
    st.lists(st.text(max_size=60) | st.sampled_from(["Ann and Bob", "the a, the b, and", "'x' and 'y'?"]), max_size=5)
)
def test_every_question_keeps_its_own_text_first(texts: list[str]) -> None:
    queries = pl.DataFrame({"query_id": [str(i) for i in range(len(texts))], "text": pl.Series(texts, dtype=pl.String)})
    parts = question_parts(queries)
    assert parts.filter(pl.col("part") == 0)["text"].to_list() == texts
    assert not parts.select(pl.struct("query_id", "text").is_duplicated().any()).item()
    assert not parts.filter((pl.col("part") > 0) & (pl.col("text").str.strip_chars() == "")).height
    for query, text in queries.iter_rows():
        alone = question_parts(pl.DataFrame({"query_id": [query], "text": [text]}))
        assert alone.equals(parts.filter(pl.col("query_id") == query))
