"""Words as retrieval reads them, in many languages."""

from __future__ import annotations

import pytest

from memlab.errors import DataError
from memlab.text.analysis import LANGUAGES, check_language, stop_words, tokenize


def test_words_that_may_be_what_is_asked_for_stay() -> None:
    asked = ["When did I move?", "Whose bill was it?", "Did you call about the fire, the computer or the interest?"]
    assert tokenize(asked) == [["move"], ["bill"], ["call", "fire", "comput", "interest"]]


def test_tokens_are_the_same_for_documents_and_queries() -> None:
    assert tokenize(["Doctors", "doctor's DOCTOR!", "how what did", "", "?!", "naïve 漢字 x 42"]) == [
        ["doctor"],
        ["doctor", "doctor"],
        [],
        [],
        [],
        ["naïv", "漢字", "42"],
    ]
    assert tokenize([]) == []
    assert tokenize(["Doctors moved"], stem=False) == [["doctors", "moved"]]


def test_every_language_has_a_stemmer() -> None:
    assert len(LANGUAGES) > 30
    for language in LANGUAGES:
        assert tokenize(["Oslo 2024", ""], language=language)[1] == []
    without = {language for language in LANGUAGES if not stop_words(language)}
    assert without == {"fa", "ne", "sr", "ta", "yi"}
    assert {language for language in LANGUAGES if len(stop_words(language)) < 30} - without == {"el", "fi", "hu", "id"}


@pytest.mark.parametrize(
    ("language", "text", "words"),
    [
        ("pl", "Kiedy byłem u lekarza?", ["byłem", "lekarza"]),
        ("cs", "Kde je moje kniha?", ["kniha"]),
        ("ro", "Unde am fost în vacanță?", ["vacanță"]),
        ("ca", "Quan vaig anar al metge?", ["metge"]),
        ("lt", "Kada aš buvau prieš savaitę?", ["buvau", "savaitę"]),
        ("ga", "An raibh mé ag an dochtúir?", ["raibh", "dochtúir"]),
        ("id", "Kapan tahun itu?", ["tahun", "itu"]),
        ("hi", "हिन्दी किताब", ["हिन्दी", "किताब"]),  # vowel signs belong to their word
    ],
)
def test_function_words_of_a_language_are_left_out(language: str, text: str, words: list[str]) -> None:
    assert tokenize([text], language=language, stem=False) == [words]


def test_german_and_norwegian() -> None:
    assert tokenize(["Wann bin ich in die neuen Wohnungen gezogen?"], language="de") == [["neu", "wohnung", "gezog"]]
    assert tokenize(["Hvor mange ganger har jeg vært hos legen?"], language="no") == [["gang", "hos", "leg"]]


def test_an_unknown_language_is_refused_with_those_that_are_known() -> None:
    with pytest.raises(DataError, match=r"'klingon'; choose from .*de \(German\)"):
        check_language("klingon")
    with pytest.raises(DataError, match="choose from"):
        tokenize(["x"], language="english")
