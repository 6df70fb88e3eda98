"""Which questions lean on what was said."""

from __future__ import annotations

import pytest

from memlab.rewrite._context import Context
from memlab.rewrite.signals import signals

HISTORY = ["When did Marie Curie move to Paris?", "Marie Curie moved to Paris in 1891 with Pierre."]


def of(question: str) -> list[str]:
    return signals(Context.of(question, HISTORY))


@pytest.mark.parametrize(
    ("question", "signal"),
    [
        ("Where did she study?", "pronoun"),
        ("What's HIS sister's name?", "pronoun"),
        ("Where's it kept, and who's paying for the guards there all year long?", "pronoun"),
        ("Why did Marie Curie leave him in 1903?", "pronoun"),
        ("Was that expensive for a student of those days in France?", "demonstrative"),
        ("Does the same rule apply to visitors who arrive by train from abroad?", "same"),
        ("Who else applied for a place at the university of the city in 1891?", "other"),
        ("Did the professors and the students of the university in Warsaw sign too?", "other"),
        ("Which one is cheaper for a family of five with two small dogs?", "choice"),
        ("How much would the other one cost for a year of daily use?", "choice"),
        ("What about the second?", "choice"),
        ("What did the professors and the students live from there?", "there"),
        ("What did the newspapers of France write about Marie Curie then?", "then"),
        ("And in 2019?", "ellipsis"),
        ("What about the price of hotels near Lyon in the summer months?", "ellipsis"),
        ("Why?", "ellipsis"),
        ("How did the band pay for rooms, food and strings?", "definite"),
        ("What happened next?", "short"),
    ],
)
def test_signs(question: str, signal: str) -> None:
    assert signal in of(question)


@pytest.mark.parametrize(
    "question",
    [
        "When did Marie Curie win the Nobel Prize in Chemistry?",
        "What did Marie Curie write about her time in Warsaw as a young student?",
        "Is it true that Marie Curie discovered radium together with Pierre?",
        "How many people live in the city of Warsaw today according to the census?",
        "Is there a train from Berlin to Warsaw on Sunday evening in winter?",
        "Did Marie Curie say that heavy rain delayed trains in Paris?",
        "Do more people live in Warsaw than in Paris according to the census?",
        "Was the ticket from Warsaw to Paris too expensive for students in 1891?",
        "Who wrote the opera Otherello about Italy and Thessaly?",
    ],
)
def test_questions_that_stand_alone_have_none(question: str) -> None:
    assert of(question) == []


def test_signs_are_whole_words() -> None:
    assert of("Which Shepherd made Thatcher's Itinerary for Sheffield and Thisted?") == []
