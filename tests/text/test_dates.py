"""Dates in texts, measured on a table of phrases, traps included, what they span, and numbers."""

from __future__ import annotations

from datetime import date
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memlab.text.dates import annotate_dates, date_range, dates
from memlab.text.numbers import numbers

PHRASES = [line.split("\t") for line in (Path(__file__).parent / "dates.tsv").read_text().splitlines()]


@pytest.mark.parametrize(("text", "now", "expected"), PHRASES, ids=[f"{i}" for i in range(1, len(PHRASES) + 1)])
def test_phrase(text: str, now: str, expected: str) -> None:
    rows = dates(text, date.fromisoformat(now) if now else None)
    assert " ".join(row.value for row in rows) == expected
    assert all(text[row.start : row.end] == row.text for row in rows)
    assert all(one.end <= two.start for one, two in pairwise(rows))


def test_what_is_written_behind_a_date() -> None:
    day, same = date(2023, 5, 8), "yesterday's news of last week of May, the day before 9 June 2023, today"
    written = "last week (the week before 8 May 2023) and next month (June 2023)"
    assert annotate_dates("last week and next month", day) == written
    assert annotate_dates(same, day) == same


@given(st.dates(date(1900, 1, 1), date(2100, 1, 1)), st.sampled_from(["day", "week", "weekend", "month", "year"]))
def test_a_step_back_and_one_ahead_lie_around_the_day(day: date, unit: str) -> None:
    both = ("yesterday", "tomorrow") if unit == "day" else (f"last {unit}", f"next {unit}")
    (first, last), (start, end) = (date_range(dates(text, day)[0].value) or () for text in both)
    assert first <= last < day < start <= end


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("two hundred and fifty cups", [250]),
        ("five thousand two hundred and one", [5201]),
        ("$1,250.50 and 5 million, 10k", [1250.5, 5e6, 1e4]),
        ("twenty twenty-three, nineteen ninety-nine", [2023, 1999]),
        ("twice, half a dozen, a dozen, a couple", [2, 6, 12, 2]),
        ("one of them, no one, the one, this one, one or more", []),
        ("at first, the second time, the 3rd one, wait a second", []),
        ("the key sk-cpf5tEn9gt7, gate ten_b, tenor, ten", [10]),
    ],
)
def test_numbers(text: str, expected: list[float]) -> None:
    rows = numbers(text)
    assert [row.value for row in rows] == expected
    assert all(text[row.start : row.end] == row.text for row in rows)
