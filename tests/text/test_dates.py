"""Dates in texts, measured on a table of phrases, traps included, what they span, and numbers."""

from __future__ import annotations

from datetime import date
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memlab.text.calendar import days, month, says, stepped
from memlab.text.dates import dates
from memlab.text.numbers import numbers

PHRASES = [line.split("\t") for line in (Path(__file__).parent / "dates.tsv").read_text().splitlines()]


@pytest.mark.parametrize(("text", "now", "expected"), PHRASES, ids=[f"{i}" for i in range(1, len(PHRASES) + 1)])
def test_phrase(text: str, now: str, expected: str) -> None:
    rows = dates(text, date.fromisoformat(now) if now else None)
    assert " ".join(row.value for row in rows) == expected
    assert all(text[row.start : row.end] == row.text for row in rows)
    assert all(one.end <= two.start for one, two in pairwise(rows))


def test_relative_dates_keep_their_offset() -> None:
    rows = dates("two weeks ago, last weekend and the day before 9 June 2023", date(2023, 5, 8))
    assert [row.offset for row in rows] == [(-2, "week"), (-1, "weekend"), (-1, "day")]
    assert dates("9 June 2023")[0].offset is None


def test_months_by_name() -> None:
    names = ("Jan", "SEPT.", "june", "Mayo", "")
    assert [month(name) for name in names] == [1, 9, 6, 0, 0]


@pytest.mark.parametrize(
    ("read", "wanted", "expected"),
    [
        ("2023-05-07", "2023-05", True),
        ("2023-05", "2023-05-07", False),
        ("05-07", "2023-05-07", True),
        ("05", "2023-05-07", False),
        ("2023-05-07", "05-07", True),
        ("2023-05-07", "05", True),
        ("2023-05-06/2023-05-07", "2023-W18", True),
        ("2023-W18", "2023-05-06/2023-05-07", False),
        ("2023-05-07", "sun", True),
        ("2023-05-07", "mon", False),
        ("2023", "05", False),
        ("sun", "sun", True),
    ],
)
def test_what_a_date_says(read, wanted, expected):
    assert says(read, wanted) is expected


@given(st.dates(date(1900, 1, 1), date(2100, 1, 1)), st.sampled_from(["day", "week", "weekend", "month", "year"]))
def test_a_date_lies_within_what_it_is_a_part_of(day, unit):
    value = stepped(day, 0, unit)
    first, last = days(value)
    assert first <= last
    assert says(value, value)
    assert all(says(each.isoformat(), value) for each in (first, last))
    assert says(value, f"{first.year}") or first.year < last.year


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("two hundred and fifty cups", [250]),
        ("twenty-five, thirty", [25, 30]),
        ("five thousand two hundred and one", [5201]),
        ("one hundred and one dalmatians", [101]),
        ("$1,250.50 and 5 million, 10k", [1250.5, 5e6, 1e4]),
        ("twenty twenty-three, nineteen ninety-nine", [2023, 1999]),
        ("twice, half a dozen, a dozen, a couple", [2, 6, 12, 2]),
        ("I have one dog", [1]),
        ("one", [1]),
        ("One.", [1]),
        ("one of them, no one, the one, this one, one or more", []),
        ("at first, the second time, the 3rd one, wait a second", []),
        ("thousands, two-thirds", [2]),
        ("the key sk-cpf5tEn9gt7, gate ten_b, tenor, ten", [10]),
        ("", []),
    ],
)
def test_numbers(text: str, expected: list[float]) -> None:
    rows = numbers(text)
    assert [row.value for row in rows] == expected
    assert all(text[row.start : row.end] == row.text for row in rows)


def test_ordinals_on_request() -> None:
    rows = numbers("first, 2nd and twenty-third of five", ordinals=True)
    assert [(row.value, row.ordinal) for row in rows] == [(1, True), (2, True), (23, True), (5, False)]
