from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memlab.language.tokens import WORD, key, keyed, stem, stems, tokens, words

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


@settings(deadline=None)
@given(st.text(alphabet=st.sampled_from("abZé19 .,'’-_\n!%$ß漢कि"), max_size=60))
def test_a_column_is_read_in_the_same_way(text):
    column = pl.DataFrame({"text": [text]}).select(word=pl.col("text").str.extract_all(WORD)).explode("word")
    assert column.drop_nulls().select(keyed(pl.col("word")))["word"].to_list() == words(text)


@settings(deadline=None)
@given(TEXTS)
def test_comparing_forms_are_their_own(text):
    assert all(key(word) == word for word in words(text) if not word.endswith("'s"))


def test_stems():
    assert stem(["doctors", "visited", "moving"]) == ["doctor", "visit", "move"]
    assert stem(["Ärzte".lower()], "de") == ["arzt"]
    assert stems(pl.Series(["dogs", "dog", "dogs"])).to_list() == ["dog"] * 3
    assert stems(pl.Series([], dtype=pl.String)).to_list() == []


@settings(deadline=None)
@given(st.lists(st.text(alphabet="abcdefgs'ingedly", min_size=1), max_size=8))
def test_a_column_is_stemmed_as_a_list(words):
    assert stems(pl.Series(words, dtype=pl.String)).to_list() == stem(words)
