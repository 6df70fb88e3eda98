"""Dates that are only meant are written out by the calendar, and nothing else is touched."""

from __future__ import annotations

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memlab.context import dated, relevant_messages
from memlab.records import Run
from memlab.retrieve import Bench

MONDAY = date(2023, 5, 8)


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("the day before yesterday", "6 May 2023"),
        ("Yesterday", "7 May 2023"),
        ("last night", "7 May 2023"),
        ("tomorrow", "9 May 2023"),
        ("10 days ago", "28 April 2023"),
        ("a week ago", "1 week before 8 May 2023"),
        ("five months ago", "December 2022"),
        ("three years ago", "2020"),
        ("last Monday", "1 May 2023"),
        ("last Tues", "2 May 2023"),
        ("this past Sunday", "7 May 2023"),
        ("next Monday", "15 May 2023"),
        ("next tuesday", "9 May 2023"),
        ("last week", "the week before 8 May 2023"),
        ("next weekend", "the weekend after 8 May 2023"),
        ("next month", "June 2023"),
        ("last year", "2022"),
    ],
)
def test_what_the_calendar_decides(said: str, meant: str) -> None:
    assert dated(f"We met {said}, you know.", MONDAY) == f"We met {said} ({meant}), you know."


@pytest.mark.parametrize("text", ["the other day", "recently", "yesterday's news", "for two weeks", "last week of May"])
def test_what_it_does_not_decide(text: str) -> None:
    assert dated(text, MONDAY) == text


def test_across_a_year_and_before_the_first() -> None:
    assert dated("last month", date(2023, 1, 31)) == "last month (December 2022)"
    assert dated("twelve years ago", date(3, 1, 1)) == "twelve years ago"


@given(st.text(max_size=60), st.dates())
def test_words_stay_in_their_order(text: str, day: date) -> None:
    assert dated(text, day) == text or len(dated(text, day)) > len(text)


def test_messages_can_stand_as_said(talk_run: Run, talk_bench: Bench) -> None:
    plain = relevant_messages(talk_run, talk_bench, k=20, dates=False)
    marked = relevant_messages(talk_run, talk_bench, k=20)
    texts = dict(zip(talk_bench.documents("turn").ids, talk_bench.documents("turn").texts, strict=True))
    assert plain["text"].to_list() == [texts[ref] for ref in plain["ref"]]
    assert plain.drop("text").equals(marked.drop("text"))
    assert (plain["text"] != marked["text"]).any()
