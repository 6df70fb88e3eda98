from __future__ import annotations

from memlab.language import words
from memlab.language.tokens import key


def test_words_are_written_as_they_are_compared():
    classes = {name: value for name, value in vars(words).items() if name.isupper() and name[0] != "_"}
    assert len(classes) > 20
    for name, members in classes.items():
        assert all(key(word) == word and word.strip() == word and word for word in members), name


def test_what_tells_something_is_no_stop_word():
    """They are on scikit-learn's list."""
    telling = "move bill call computer fire interest system name show keep side cry empty detail describe mill top"
    assert not set(telling.split()) & words.STOP_WORDS


def test_what_tells_nothing_is_one():
    said = "don't i'm couldn't they'll whose someone does having upon the no never every"
    assert set(said.split()) <= words.STOP_WORDS
