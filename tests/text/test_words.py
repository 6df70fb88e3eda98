"""Tokens, the form in which words are compared, and the closed classes; words as retrieval reads them."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memlab.errors import DataError
from memlab.text import words as classes
from memlab.text.analysis import LANGUAGES, check_language, stop_words, tokenize
from memlab.text.tokens import compared_form, tokens, words

TEXTS = st.text(alphabet=st.sampled_from("abZé19 .,'’-_\n!%$ß漢कि") | st.characters(), max_size=60)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("I don't think so.", ["i", "don't", "think", "so"]),
        ("Mel’s well-known dog's", ["mel", "well", "known", "dog"]),
        ("$1,250.50 at 3pm, 2.5kg", ["1,250.50", "at", "3pm", "2.5kg"]),
        ("a_b 'quoted' rock'n'roll", ["a", "b", "quoted", "rock'n'roll"]),
        ("Zoë की किताब ?!", ["zoë", "की", "किताब"]),
    ],
)
def test_what_a_word_is(text: str, expected: list[str]) -> None:
    assert words(text) == expected


@settings(deadline=None)
@given(TEXTS)
def test_places_hold_the_words_and_leave_no_letter_out(text: str) -> None:
    read = tokens(text)
    assert [text[token.start : token.end] for token in read] == [token.text for token in read]
    assert [token.key for token in read] == words(text)
    ends = zip([0, *(t.end for t in read)], [*(t.start for t in read), len(text)], strict=True)
    assert not any(c.isalpha() for a, b in ends for c in text[a:b])
    assert all(compared_form(word) == word for word in words(text) if not word.endswith("'s"))


def test_words_are_written_as_they_are_compared() -> None:
    sets = {name: value for name, value in vars(classes).items() if name.isupper() and name[0] != "_"}
    assert len(sets) > 20
    for name, members in sets.items():
        assert all(compared_form(word) == word and word.strip() == word and word for word in members), name
    # The former are on scikit-learn's list of stop words.
    telling = "move bill call computer fire interest system name show keep side cry empty detail describe mill top"
    assert not set(telling.split()) & classes.STOP_WORDS
    said = "don't i'm couldn't they'll whose someone does having upon the no never every"
    assert set(said.split()) <= classes.STOP_WORDS


def test_tokens_are_the_same_for_documents_and_queries() -> None:
    texts = ["Did you call about the fire?", "doctor's DOCTOR!", "how what did", "", "?!", "naïve 漢字 x 42"]
    assert tokenize(texts) == [["call", "fire"], ["doctor", "doctor"], [], [], [], ["naïv", "漢字", "42"]]
    assert tokenize([]) == []


def test_every_language_has_a_stemmer() -> None:
    assert len(LANGUAGES) > 30
    for language in LANGUAGES:
        assert tokenize(["Oslo 2024", ""], language=language)[1] == []
    without = {language for language in LANGUAGES if not stop_words(language)}
    assert without == {"fa", "ne", "sr", "ta", "yi"}
    assert {language for language in LANGUAGES if len(stop_words(language)) < 30} - without == {"el", "fi", "hu", "id"}
    for wrong in ("klingon", "english"):
        with pytest.raises(DataError, match=r"choose from .*de \(German\)"):
            check_language(wrong)


@pytest.mark.parametrize(
    ("language", "text", "words"),
    [
        ("pl", "Kiedy byłem u lekarza?", ["byłem", "lekarza"]),
        ("lt", "Kada aš buvau prieš savaitę?", ["buvau", "savaitę"]),
        ("id", "Kapan tahun itu?", ["tahun", "itu"]),
        ("hi", "हिन्दी किताब", ["हिन्दी", "किताब"]),  # vowel signs belong to their word
        ("de", "Wann bin ich in die neuen Wohnungen gezogen?", ["neuen", "wohnungen", "gezogen"]),
    ],
)
def test_function_words_of_a_language_are_left_out(language: str, text: str, words: list[str]) -> None:
    assert tokenize([text], language=language, stem=False) == [words]
