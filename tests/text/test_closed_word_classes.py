"""Tokens and the form in which words are compared; forms of questions; sentences; what dates span; and numbers."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from itertools import pairwise
from pathlib import Path

import polars as pl
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from memlab.errors import DataError
from memlab.text import closed_word_classes as classes
from memlab.text.date_expressions import annotate_dates, date_range, dates
from memlab.text.languages import LANGUAGES, check_language
from memlab.text.number_expressions import numbers
from memlab.text.question_forms import FORMS, asks_for_aggregation, question_form
from memlab.text.text_analyser import OWN_LETTERS, fold_accents, stop_words, tokenize
from memlab.text.tokens_and_sentences import (
    normalize_word,
    sentence_spans,
    sentences,
    stem,
    tokens,
    words,
)

TEXTS = st.text(alphabet=st.sampled_from("abZé19 .,'’-_\n!%$ß漢कि") | st.characters(), max_size=60)


SPLIT = [
    (
        words,
        "I don't think so, Mel’s well-known dog's",
        ["i", "don't", "think", "so", "mel", "well", "known", "dog"],
    ),
    (words, "$1,250.50 at 3pm, a_b 'quoted'", ["1,250.50", "at", "3pm", "a", "b", "quoted"]),
    (words, "Zoë की किताब ?!", ["zoë", "की", "किताब"]),
    (
        sentences,
        "I met Dr. Lee at 3 p.m. today. Fine!",
        ["I met Dr. Lee at 3 p.m. today.", "Fine!"],
    ),
    (
        sentences,
        "See https://a.b/c?d=1.5&e=2 now... Bye.",
        ["See https://a.b/c?d=1.5&e=2 now...", "Bye."],
    ),
    (sentences, "Buy:\n- Milk\n- Two eggs", ["Buy:", "- Milk", "- Two eggs"]),
    (
        sentences,
        "```\nx = 1. \nY. Z\n``` Done. Next.",
        ["```\nx = 1. \nY. Z\n```", "Done.", "Next."],
    ),
    (sentences, "今日は。元気ですか？はい！", ["今日は。", "元気ですか？", "はい！"]),
    (sentences, " \n ", []),
]


@pytest.mark.parametrize(("split", "text", "expected"), SPLIT)
def test_what_a_word_and_what_a_sentence_is(
    split: Callable[[str], list[str]], text: str, expected: list[str]
) -> None:
    assert split(text) == expected


@given(TEXTS)
def test_places_hold_the_words_and_leave_no_letter_out(text: str) -> None:
    read = tokens(text)
    assert [text[token.start : token.end] for token in read] == [token.text for token in read]
    assert [token.key for token in read] == words(text)
    ends = zip([0, *(t.end for t in read)], [*(t.start for t in read), len(text)], strict=True)
    assert not any(c.isalpha() for a, b in ends for c in text[a:b])
    assert all(normalize_word(word) == word for word in words(text) if not word.endswith("'s"))


def test_words_are_written_as_they_are_compared() -> None:
    sets = {
        name: value for name, value in vars(classes).items() if name.isupper() and name[0] != "_"
    }
    assert len(sets) > 20
    for name, members in sets.items():
        assert all(
            normalize_word(word) == word and word.strip() == word and word for word in members
        ), name


@pytest.mark.parametrize(
    ("language", "one", "other", "meet"),
    [
        ("en", "résumé", "resume", True),
        ("en", "clichés", "cliche", True),
        ("en", "Søren", "soren", True),
        ("en", "naïve", "nai\u0308ve", True),  # composed, and letter by letter
        ("fr", "élèves", "eleve", True),
        ("fr", "garçon", "garcons", True),
        ("es", "canciones", "cancion", True),
        ("es", "año", "ano", False),
        ("pt", "coração", "coracao", True),
        ("it", "città", "citta", True),
        ("de", "Ärzte", "Arzt", True),
        ("de", "Café", "Cafe", True),
        ("sv", "får", "far", False),
        ("fi", "näin", "nain", False),
        ("tr", "ön", "on", False),
        ("ru", "мой", "мои", False),
        ("hi", "हिन्दी", "हिनदी", False),
    ],
)
def test_spellings_meet_where_an_accent_makes_no_other_word(
    language: str, one: str, other: str, meet: bool
) -> None:
    first, second = tokenize([f"Oslo {one}", f"Oslo {other}"], language=language)
    assert (first == second) == meet


def test_letters_of_an_alphabet_reach_its_stemmer() -> None:
    for language, letters in OWN_LETTERS.items():
        for letter in letters:
            word = f"b{letter}lk"
            stemmed = fold_accents(stem([word], language)[0], "ñ")
            got = fold_accents(tokenize([word], language=language)[0][0], "ñ")
            assert got == stemmed


def test_every_language_has_a_stemmer() -> None:
    texts = [
        "Did you call about the fire?",
        "doctor's DOCTOR!",
        "how what did",
        "",
        "?!",
        "naïve 漢字 x 42",
    ]
    assert tokenize(texts) == [
        ["call", "fire"],
        ["doctor", "doctor"],
        [],
        [],
        [],
        ["naiv", "漢字", "42"],
    ]
    assert len(LANGUAGES) > 30
    assert all(tokenize(["Oslo 2024", ""], language=language)[1] == [] for language in LANGUAGES)
    without = {language for language in LANGUAGES if not stop_words(language)}
    assert without == {"fa", "ne", "sr", "ta", "yi"}
    assert {language for language in LANGUAGES if len(stop_words(language)) < 30} - without == {
        "el",
        "fi",
        "hu",
        "id",
    }
    with pytest.raises(DataError, match=r"choose from .*de \(German\)"):
        check_language("klingon")


def test_function_words_of_a_language_are_left_out() -> None:
    for language, text, left in (
        ("pl", "Kiedy byłem u lekarza?", "byłem lekarza"),
        ("lt", "Kada aš buvau prieš savaitę?", "buvau savaitę"),
        ("id", "Kapan tahun itu?", "tahun itu"),
        ("hi", "हिन्दी किताब", "हिन्दी किताब"),  # vowel signs belong to their word
        ("de", "Wann bin ich in die neuen Wohnungen gezogen?", "neuen wohnungen gezogen"),
    ):
        assert tokenize([text], language=language, stem=False) == [left.split()]


EXAMPLES = [
    ("How many different doctors did I visit?", "how many", True),
    ("How many days passed between the race and the party?", "how long", False),
    ("What is the order of the three trips, from earliest to latest?", "list", True),
    ("Which  classical musicians does Melanie enjoy?", "list", True),
    ("Which popular composer's tunes does Tim play?", "which", False),
    (
        "You gave me a list of 100 jobs. Can you remind me what was the 7th job in that list?",
        "what",
        False,
    ),
    ("WHEN did she move?", "when", False),
    ("I mentioned an event two weeks ago. Where was that event held at?", "where", False),
    ("For the ratio, did I switch to more water, or less?", "yes-no", False),
    ("Who gave me the mixer?", "who", False),
    ("Why did he quit?", "why", False),
    ("Tell me more.", "other", False),
    ("Sum up how my training went.", "other", True),
    ("How did the novel develop?", "how", True),
    ("", "other", False),
]


@pytest.mark.parametrize(("text", "form", "counted"), EXAMPLES)
def test_forms_of_questions(text: str, form: str, counted: bool) -> None:
    row = pl.DataFrame({"text": [text]}).select(question_form(), asks_for_aggregation()).row(0)
    assert row == (form, counted)
    assert {form for _, form, _ in EXAMPLES} == set(FORMS)


@given(st.text(alphabet=st.sampled_from("aB1 .!?…\n,;:()\"'`-😂。é\u00a0\u200b"), max_size=80))
@example("```" * 3)
@example("a (b. c " * 300)
@example("x" * 5_000)
def test_sentences_tile_the_text(text: str) -> None:
    """Between them, before and after, stands nothing but white space."""
    at = 0
    for start, end in sentence_spans(text):
        assert not text[at:start].strip()
        assert start < end
        assert not text[start].isspace()
        at = end
    assert not text[at:].strip()


CHAT = (Path(__file__).parent / "sentences.tsv").read_text(encoding="utf-8").splitlines()


@pytest.mark.parametrize("line", CHAT)
def test_where_a_sentence_of_a_chat_ends(line: str) -> None:
    """The sentences of a line of the table are split by tabs; in the text stand blanks."""
    assert sentences(line.replace("\t", " ")) == line.split("\t")


PHRASES = [
    line.split("\t") for line in (Path(__file__).parent / "dates.tsv").read_text().splitlines()
]


@pytest.mark.parametrize(
    ("text", "now", "expected"), PHRASES, ids=[f"{i}" for i in range(1, len(PHRASES) + 1)]
)
def test_phrase(text: str, now: str, expected: str) -> None:
    rows = dates(text, date.fromisoformat(now) if now else None)
    assert " ".join(row.value for row in rows) == expected
    assert all(text[row.start : row.end] == row.text for row in rows)
    assert all(one.end <= two.start for one, two in pairwise(rows))


def test_what_is_written_behind_a_date() -> None:
    day, same = (
        date(2023, 5, 8),
        "yesterday's news of last week of May, the day before 9 June 2023, today",
    )
    written = "last week (the week before 8 May 2023) and next month (June 2023)"
    assert annotate_dates("last week and next month", day) == written
    assert annotate_dates(same, day) == same


@given(
    st.dates(date(1900, 1, 1), date(2100, 1, 1)),
    st.sampled_from(["day", "week", "weekend", "month", "year"]),
)
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
