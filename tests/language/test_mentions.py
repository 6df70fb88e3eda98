from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memlab.language.mentions import mentions
from memlab.language.tokens import plain, without


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("on May 3rd Mel paid $1,250 for twenty-five cups in Oslo", ["05-03", "1250", "25"]),
        ("May I go?", []),
        ("two hundred and fifty of them", ["250"]),
        ("We ran 12 marathons, 2023 was good", ["12", "2023"]),
        ("Ann’s on the 3rd floor", ["3"]),
        ("7/5/2023", ["2023-07-05"]),
        ("", []),
    ],
)
def test_values_of_a_text(text, values):
    assert [mention.value for mention in mentions(text)] == values


_PIECES = ["May", "3rd,", "2023", "two", "hundred", "Mel’s", "$1,250.50", "½", ".", "last", "Friday"]


@settings(deadline=None, max_examples=60)
@given(st.lists(st.sampled_from(_PIECES)))
def test_places_hold_the_values_and_no_two_overlap(words):
    text = " ".join(words)
    rows = mentions(text)
    assert all(plain(text)[row.start : row.end] == row.text for row in rows)
    assert len(without(plain(text), rows)) == len(plain(text))
    ordered = sorted(rows, key=lambda row: row.start)
    assert all(a.end <= b.start for a, b in itertools.pairwise(ordered))
