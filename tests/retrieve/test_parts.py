"""What a question asks for at once, and whether it asks the assistant, read from its words."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memlab.retrieve.parts import question_parts
from memlab.retrieve.speakers import OF_ASSISTANT

PARTS = [
    ("What do Ann and Bob both like?", "What do {} like", "Ann; Bob"),
    ("What will Al do with Scout, Toby, and Buddy?", "What will Al do with {}", "Scout; Toby; Buddy"),
    ("How much did I spend on my coworker and brother?", "How much did I spend on my {}", "coworker; brother"),
    ("How many kitchen items did I replace or fix?", "How many kitchen items did I {}", "replace; fix"),
    ("What if I sold the old ring and the clay vase?", "What if I sold the {}", "old ring; clay vase"),
    ("How much more did I spend in Hawaii compared to Tokyo?", "How much more did I spend in {}", "Hawaii; Tokyo"),
    ("Which did I wash first, the bike or the car?", "Which did I wash first {}", "the bike; the car"),
    ("What passed between my trip and the show?", "What passed between {}", "my trip; the show"),
    ("How often did I play before? How often do I play now?", "How often {}", "did I play before; do I play now"),
    ("How many tops have I bought from H&M so far?", "", ""),
    ('What does "Salt and Pepper" mean to Tim?', "", ""),
    ("Where did I go and why?", "", ""),
    ("and, or", "", ""),
    ("?", "", ""),
]


@pytest.mark.parametrize(("text", "pattern", "members"), PARTS)
def test_parts(text: str, pattern: str, members: str) -> None:
    parts = question_parts(pl.DataFrame({"query_id": ["q"], "text": [text]}))["text"].to_list()
    assert parts == [pattern.format(member) for member in members.split("; ") if member]


@given(
    st.lists(st.text(max_size=60) | st.sampled_from(["Ann and Bob", "the a, the b, and", "'x' and 'y'?"]), max_size=5)
)
def test_parts_are_texts_of_their_own(texts: list[str]) -> None:
    queries = pl.DataFrame({"query_id": [str(i) for i in range(len(texts))], "text": pl.Series(texts, dtype=pl.String)})
    parts = question_parts(queries)
    assert not parts.is_duplicated().any()
    assert not parts.join(queries, on=["query_id", "text"], how="semi").height
    assert not parts.filter(pl.col("text").str.strip_chars() == "").height


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Which hotel did you recommend?", True),
        ("What was the third title on the list you gave me?", True),
        ("Can you tell me where I live?", False),
        ("Which hotel did I book?", False),
    ],
)
def test_what_is_asked_of_the_assistant(text: str, expected: bool) -> None:
    assert pl.Series([text]).str.contains(OF_ASSISTANT).item() is expected
