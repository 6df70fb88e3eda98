from __future__ import annotations

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memlab.language.calendar import days, says, stepped


@pytest.mark.parametrize(
    ("read", "wanted", "expected"),
    [
        ("2023-05-07", "2023-05", True),
        ("2023-05-07", "2023", True),
        ("2023-05", "2023-05-07", False),
        ("05-07", "2023-05-07", True),
        ("05", "2023-05-07", False),
        ("2023-05-07", "05-07", True),
        ("2023-05-07", "05", True),
        ("05-07", "05", True),
        ("2023-05-06/2023-05-07", "2023-W18", True),
        ("2023-05-06/2023-05-07", "05", True),
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
