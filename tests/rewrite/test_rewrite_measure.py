"""The measure of rewrites against counts made by hand."""

from __future__ import annotations

import math

import pytest

from memlab.errors import DataError
from memlab.rewrite import content_words, score
from memlab.rewrite.measure import rouge1


def test_hand_counted_example() -> None:
    questions = ["When did he play?", "What about it?", "Who was Ada?"]
    rewritten = ["When did Jason Kidd play?", "What about it?", "Who was Ada Lovelace?"]
    references = ["When did Kidd play for the Suns?", "What about Lake Tahoe?", "Who was Ada?"]
    row = score(questions, rewritten, references).row(0, named=True)
    # One of two lacking words came, and one of two added was lacking; to the second question nothing was added.
    assert row["recall"] == pytest.approx((1 / 2 + 0) / 2)
    assert row["precision"] == pytest.approx(1 / 2)
    assert row["recall_micro"] == pytest.approx(1 / 4)
    assert row["precision_micro"] == pytest.approx(1 / 2)
    assert row["added"] == pytest.approx(1 / 2)
    # 4 of 5 and 7 words are shared, then 2 of 3 and 4.
    assert row["rouge1_f"] == pytest.approx((8 / 12 + 4 / 7) / 2)
    assert (row["n"], row["needed"], row["self_contained"], row["damaged"]) == (3, 2, 1, 1.0)


def test_a_question_left_alone_is_not_damaged_by_case_or_marks() -> None:
    row = score(["who was Ada"], ["Who was Ada?"], ["Who was Ada?"]).row(0, named=True)
    assert (row["needed"], row["self_contained"], row["damaged"]) == (0, 1, 0.0)
    assert math.isnan(row["recall"])


def test_a_lost_content_word_is_damage() -> None:
    assert score(["Was Ada rich?"], ["Was Ada?"], ["Was Ada rich?"])["damaged"].item() == 1.0


def test_words_are_compared_without_case_accents_and_possessives() -> None:
    assert content_words("Dalí’s KINGS' and don't") == ["dali", "kings"]
    row = score(["Was he rich?"], ["Was Dalí rich?"], ["Was DALI rich?"]).row(0, named=True)
    assert (row["recall"], row["precision"]) == (1.0, 1.0)


def test_rouge_counts_a_word_as_often_as_both_have_it() -> None:
    assert rouge1("the the cat", "the cat sat") == pytest.approx(2 * 2 / 6)
    assert rouge1("", "a") == 0.0


def test_lengths_must_agree() -> None:
    with pytest.raises(DataError, match="2 questions, 1 rewritten, 2 references"):
        score(["a", "b"], ["a"], ["a", "b"])


def test_no_items() -> None:
    assert score([], [], [])["n"].item() == 0
