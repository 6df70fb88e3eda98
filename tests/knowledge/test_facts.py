"""Observations read as facts."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from memlab.errors import DataError
from memlab.knowledge._phrases import _stem
from memlab.knowledge._text import relation, value
from memlab.knowledge.facts import from_observations, read_sentence
from memlab.records import Annotation, Dataset, Fact, Session, Turn, frame, schema

WHEN = datetime(2025, 5, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Ann is planning to adopt children.", ("Ann", "is planning to adopt", "children")),
        ("Ann has a third turtle.", ("Ann", "has", "a third turtle")),
        ("Ann mentioned that she works at Acme.", ("Ann", "works at", "Acme")),
        ("Ann doesn't work at Acme anymore.", ("Ann", "doesn't work at", "Acme anymore")),
        ("Ann's new car is a Honda.", ("Ann's new car", "is", "a Honda")),
        ("Dancing keeps Ann going.", ("Ann", "is described by", "Dancing keeps Ann going")),
        ("Ann and Bo met.", ("Ann", "is described by", "Ann and Bo met")),
    ],
)
def test_sentences(text: str, expected: tuple[str, str, str]) -> None:
    assert read_sentence(text, "Ann") == expected


def test_facts_keep_text_evidence_and_time() -> None:
    turns = frame(Turn, [Turn("u/s/1", "u", "u/s", 1, "Ann", "user", "I work at Acme", None, WHEN)])
    sessions = frame(Session, [Session("u/s", "u", 1, WHEN, WHEN, 1, ["Ann"])])
    told = frame(Annotation, [Annotation("a1", "u", "u/s", "observation", "Ann", "Ann works at Acme.", ["u/s/1"])])
    data = Dataset("d", "chatlog", turns, sessions, annotations=told)
    facts = from_observations(data)
    assert facts.schema == schema(Fact)
    assert facts.select("object", "source", "evidence", "asserted_at", "text").row(0) == (
        "Acme", "observed", ["u/s/1"], WHEN, "Ann works at Acme.",
    )  # fmt: skip
    with pytest.raises(DataError, match="no observations"):
        from_observations(replace(data, annotations=frame(Annotation)))


def test_normal_forms() -> None:
    assert relation("worked for") == relation("is working for")
    assert value("the red cars") == value("red car")
    assert value("555-0134").exact == value("(555) 0134").exact
    assert value("May 3rd, 1990") == value("1990-05-03")
    assert value("sk-aB3").exact != value("sk-ab3").exact


def test_what_is_remembered_of_texts_is_bounded() -> None:
    assert all(0 < cached.cache_info().maxsize < 1_000_000 for cached in (relation, value, _stem))


def test_values_are_compared_in_one_form() -> None:
    assert value("two hundred and fifty cups") == value("250 cups")
    assert value("7/5/2023").exact == value("July 5th, 2023").exact
    assert value("12 marathons, 2023").exact == ("12", "2023")
    assert value("sk-cpf5tEn9gt7").exact == ("sk-cpf5tEn9gt7",)
