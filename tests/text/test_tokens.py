from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memlab.text import words as classes
from memlab.text.tokens import key, stem, tokens, words

TEXTS = st.text(alphabet=st.sampled_from("abZé19 .,'’-_\n!%$ß漢कि") | st.characters(), max_size=60)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("I don't think so.", ["i", "don't", "think", "so"]),
        ("Mel’s well-known dog's", ["mel", "well", "known", "dog"]),
        ("$1,250.50 at 3pm, 2.5kg", ["1,250.50", "at", "3pm", "2.5kg"]),
        ("in Oslo,Paris or Rome.Then", ["in", "oslo", "paris", "or", "rome", "then"]),
        ("a_b 'quoted' rock'n'roll", ["a", "b", "quoted", "rock'n'roll"]),
        ("Zoë की किताब", ["zoë", "की", "किताब"]),
        ("?!", []),
    ],
)
def test_what_a_word_is(text, expected):
    assert words(text) == expected


@settings(deadline=None)
@given(TEXTS)
def test_places_hold_the_words_and_leave_no_letter_out(text):
    read = tokens(text)
    assert [text[token.start : token.end] for token in read] == [token.text for token in read]
    assert [token.key for token in read] == words(text)
    left = "".join(
        text[a:b] for a, b in zip([0, *(t.end for t in read)], [*(t.start for t in read), len(text)], strict=True)
    )
    assert not any(c.isalpha() for c in left)
    assert all(key(word) == word for word in words(text) if not word.endswith("'s"))


def test_stems():
    assert stem(["doctors", "visited", "moving"]) == ["doctor", "visit", "move"]
    assert stem(["Ärzte".lower()], "de") == ["arzt"]


def test_words_are_written_as_they_are_compared():
    sets = {name: value for name, value in vars(classes).items() if name.isupper() and name[0] != "_"}
    assert len(sets) > 20
    for name, members in sets.items():
        assert all(key(word) == word and word.strip() == word and word for word in members), name


def test_stop_words_are_what_tells_nothing():
    # The former are on scikit-learn's list.
    telling = "move bill call computer fire interest system name show keep side cry empty detail describe mill top"
    assert not set(telling.split()) & classes.STOP_WORDS
    said = "don't i'm couldn't they'll whose someone does having upon the no never every"
    assert set(said.split()) <= classes.STOP_WORDS
