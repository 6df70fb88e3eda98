"""Words as retrieval reads them, in many languages."""

from __future__ import annotations

import pytest

from memlab.errors import DataError
from memlab.language.analysis import LANGUAGES, check_language, stop_words, tokenize


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
    assert sum(bool(stop_words(language)) for language in LANGUAGES) >= 20


def test_german_and_norwegian() -> None:
    assert tokenize(["Wann bin ich in die neuen Wohnungen gezogen?"], language="de") == [["neu", "wohnung", "gezog"]]
    assert tokenize(["Hvor mange ganger har jeg vært hos legen?"], language="no") == [["gang", "hos", "leg"]]
    assert tokenize(["Hvor er legene?"], language="no") == [["leg"]]


def test_vowel_signs_belong_to_their_word() -> None:
    assert tokenize(["हिन्दी किताब"], language="hi", stem=False) == [["हिन्दी", "किताब"]]


def test_an_unknown_language_is_refused_with_those_that_are_known() -> None:
    with pytest.raises(DataError, match=r"'klingon'; choose from .*de \(German\)"):
        check_language("klingon")
    with pytest.raises(DataError, match="choose from"):
        tokenize(["x"], language="english")
