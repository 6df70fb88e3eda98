"""What a question lists, joins or compares, read from its words."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memlab.language.parts import question_parts


def split(text: str) -> list[str]:
    return question_parts(pl.DataFrame({"query_id": ["q"], "text": [text]}))["text"].to_list()


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


@given(
    st.lists(st.text(max_size=60) | st.sampled_from(["Ann and Bob", "the a, the b, and", "'x' and 'y'?"]), max_size=5)
)
def test_parts_are_texts_of_their_own(texts: list[str]) -> None:
    queries = pl.DataFrame({"query_id": [str(i) for i in range(len(texts))], "text": pl.Series(texts, dtype=pl.String)})
    parts = question_parts(queries)
    assert not parts.is_duplicated().any()
    assert not parts.join(queries, on=["query_id", "text"], how="semi").height
    assert not parts.filter(pl.col("text").str.strip_chars() == "").height
    for row in queries.iter_slices(1):
        assert question_parts(row).equals(parts.filter(pl.col("query_id") == row["query_id"][0]))
