"""Numbers in texts, in digits and in words."""

from __future__ import annotations

import pytest

from memlab.language.numbers import numbers


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
def test_values(text: str, expected: list[float]) -> None:
    rows = numbers(text)
    assert [row.value for row in rows] == expected
    assert all(text[row.start : row.end] == row.text for row in rows)


def test_ordinals_on_request() -> None:
    rows = numbers("first, 2nd and twenty-third of five", ordinals=True)
    assert [(row.value, row.ordinal) for row in rows] == [(1, True), (2, True), (23, True), (5, False)]
