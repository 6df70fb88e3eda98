"""Dates, quantities of time and months in texts, measured on a table of phrases, traps included."""

from __future__ import annotations

from datetime import date
from itertools import pairwise
from pathlib import Path

import pytest

from memlab.language.calendar import month, written
from memlab.language.dates import dates
from memlab.language.numbers import quantities

PHRASES = [line.split("\t") for line in (Path(__file__).parent / "dates.tsv").read_text().splitlines()]


@pytest.mark.parametrize(("text", "now", "expected"), PHRASES, ids=[f"{i}" for i in range(1, len(PHRASES) + 1)])
def test_phrase(text: str, now: str, expected: str) -> None:
    rows = dates(text, date.fromisoformat(now) if now else None)
    assert " ".join(row.value for row in rows) == expected
    assert all(text[row.start : row.end] == row.text for row in rows)
    assert all(one.end <= two.start for one, two in pairwise(rows))


def test_the_table_has_its_size() -> None:
    assert len(PHRASES) >= 200
    assert len({(text, now) for text, now, _ in PHRASES}) == len(PHRASES)


def test_meant_dates_keep_how_they_were_meant() -> None:
    rows = dates("two weeks ago, last weekend and the day before 9 June 2023", date(2023, 5, 8))
    assert [row.offset for row in rows] == [(-2, "week"), (-1, "weekend"), (-1, "day")]
    assert dates("9 June 2023")[0].offset is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("for three weeks", [(3.0, "week")]),
        ("2 hours and 30 minutes", [(2.0, "hour"), (30.0, "minute")]),
        ("a year and a half, took a week", [(1.5, "year"), (1.0, "week")]),
        ("a 3-year-old, an hour ago", [(3.0, "year"), (1.0, "hour")]),
        ("one and a half years", [(1.5, "year")]),
        ("a two-week trip", [(2.0, "week")]),
        ("half an hour, 5-6 days, few days", []),
    ],
)
def test_quantities(text: str, expected: list[tuple[float, str]]) -> None:
    rows = list(quantities(text))
    assert [(row.n, row.unit) for row in rows] == expected
    assert all(text[row.start : row.end] == row.text for row in rows)


def test_months_by_name() -> None:
    names = ("Jan", "SEPT.", "june", "Mayo", "")
    assert [month(name) for name in names] == [1, 9, 6, None, None]
    assert written(date(2023, 5, 7)) == "7 May 2023"
