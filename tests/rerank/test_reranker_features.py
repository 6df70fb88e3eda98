"""What the learned reranker knows: finite for any talk, of the scope alone, and nothing of ids or evidence."""

from __future__ import annotations

import warnings
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pytest
from stand_in import StandIn
from talk import world

from memlab import DataError
from memlab.embed.token_vectors import TokenVectors
from memlab.records import Dataset
from memlab.rerank.reranker_features import (
    best_candidate_places,
    candidate_features,
    padded_turn_places_by_question,
)
from memlab.rerank.word_features import (
    TOKEN_MATCHES,
    rephrase_in_first_person,
    token_match_values_by_name,
)
from memlab.retrieve import Bench, hybrid


def talk(said: dict[str, list[list[str]]], asked: dict[str, list[str]], **options: Any) -> Bench:
    return Bench.of(world(said, asked, **options), encoder=StandIn())


def column(bench: Bench, name: str) -> np.ndarray:
    """Give one feature of the first question's turns, in order of time."""
    part = next(candidate_features(bench, *best_candidate_places(bench, 200)))
    return part.feature_values(name)[0][np.argsort(part.at[0])]


ODD = [
    "What did C++ (the [cat]) say?",
    "",
    "?!",
    "When was 31 February 2023?",
    "x" * 3000,
    "医生 👩‍⚕️",
    "\\d+ $^",
]


@pytest.mark.parametrize("speaker", ["user", "", "C++ (x", "[a-", "医生", "\\d+ $^", "the"])
def test_odd_talk_gives_finite_numbers(speaker: str) -> None:
    said = {
        "one": [["only one turn"]],
        "silent": [["", " ", "\n"], [""]],
        "gaps": [[], ["hello there", "", "?"], [], ["hello there"] * 3, []],
        "odd": [ODD, ["C++ (the [cat]) said no"]],
    }
    bench = talk(
        said, {scope: [*ODD, "hello"] for scope in said}, speakers=(speaker,), caption="a (photo"
    )
    seen = []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for part in candidate_features(bench, *best_candidate_places(bench, 200)):
            assert (part.values.dtype, part.values.shape) == (
                np.float32,
                (*part.at.shape, len(set(part.names))),
            )
            assert np.isfinite(part.values[part.mask]).all()
            seen += part.mask.sum(axis=1).tolist()
    assert len(seen) == bench.queries.height
    assert set(seen) == {1, 4, 6, 8}


JULY = datetime(2023, 7, 15, 20, 30, tzinfo=UTC)
STARTS = [
    JULY,
    datetime(2023, 7, 22, tzinfo=UTC),
    datetime(2022, 7, 15, tzinfo=UTC),
    datetime(2023, 8, 5, tzinfo=UTC),
]
WEEK, LONG, NONE = np.exp(-1), np.exp(-3), [0, 0, 0, 0]


@pytest.mark.parametrize(
    ("question", "month", "near", "before"),
    [
        ("What did we do on 15 July 2023?", [1, 1, 0, 0], [1, WEEK, 0, LONG], [0, 7 / 30, -1, 0.7]),
        ("And on the 15th of July?", [1, 1, 1, 0], [1, WEEK, 1, LONG], [0, 7 / 30, 0, 0.7]),
        ("What happened in July 2023?", [1, 1, 0, 0], NONE, NONE),
        ("What happened in July?", [1, 1, 1, 0], NONE, NONE),
        ("What happened in August 2022?", NONE, NONE, NONE),
        ("What happened in 2023?", NONE, NONE, NONE),
        ("What may I do?", NONE, NONE, NONE),
    ],
)
@pytest.mark.parametrize("empty", [0, 2], ids=["", "after empty sessions"])
def test_a_date_that_the_question_names(
    question: str, month: list[float], near: list[float], before: list[float], empty: int
) -> None:
    """The first sessions of a scope may hold no turn; the dates are those of the sessions that the turns stand in."""
    starts = [*([datetime(2020, 7, 15, tzinfo=UTC)] * empty), *STARTS]
    said = {"a": [["x"]], "u": [*([[]] * empty), *([f"a{i}", "b"] for i in range(4))]}
    bench = talk(said, {"a": [], "u": [question]}, starts=starts)
    for name, expected in (("month_named", month), ("date_near", near), ("date_before", before)):
        np.testing.assert_allclose(
            column(bench, name), np.repeat(expected, 2), atol=1e-5, err_msg=name
        )


def test_words_neighbours_and_places() -> None:
    said = {"u": [["we saw roses", "tulips grow", "nothing else"], ["roses and tulips", "water"]]}
    bench = talk(said, {"u": ["roses tulips zyzzyva"]}, speakers=("Ann",))
    of_known = np.log1p(3.5 / 2.5)  # roses, and tulips, stand in two of five turns
    total = 2 * of_known + np.log1p(5.5 / 0.5)
    one, two = of_known / total, 2 * of_known / total
    for name, expected in {
        "n_words": [1, 1, 0, 2, 0],
        "words": [one, one, 0, two, 0],
        "words_with_previous": [one, two, one, two, two],
        "words_within_two": [two, two, two, two, two],
        "words_of_session": [two] * 5,
        "words_of_known": [0.5, 0.5, 0, 1, 0],
        "question_weight": [total] * 5,
        "question_known": [two] * 5,
        "age": [0, 0, 0, 1, 1],
        "place_in_session": np.log1p([0, 1, 2, 0, 1]),
        "share_of_session": [0, 1 / 3, 2 / 3, 0, 1 / 2],
        "turns_of_session": np.log1p([3, 3, 3, 2, 2]),
        "speaker_named": [0] * 5,
    }.items():
        np.testing.assert_allclose(column(bench, name), expected, atol=1e-6, err_msg=name)
    named = talk(
        {"u": [["hello", "hello"]]}, {"u": ["What did c++ (X say?"]}, speakers=("Ann", "C++ (x")
    )
    for name, expected in (("speaker_named", [0, 1]), ("other_named", [1, 0]), ("n_named", [1, 1])):
        assert column(named, name).tolist() == expected
    for scorer in ("dense", "bm25", "late"):
        own = column(bench, f"{scorer}_z")
        np.testing.assert_allclose(own.mean(), 0, atol=1e-5)
        np.testing.assert_allclose(
            column(bench, f"{scorer}_at-1"), [-3, own[0], own[1], -3, own[3]], atol=1e-6
        )
        np.testing.assert_allclose(
            column(bench, f"{scorer}_at+2"), [own[2], -3, -3, -3, -3], atol=1e-6
        )


@pytest.mark.parametrize(
    ("speakers", "asked", "expected"),
    [
        (("Ann", "Bob"), "What did Ann buy for Bob's dog?", "What did I buy for my dog?"),
        (
            ("Ann", "Anna Lee"),
            "Did anna lee meet Annabel, Ann’s aunt, or Ann?",
            "Did I meet Annabel, my aunt, or I?",
        ),
        (("C++ (x", "[a-"), "What do C++ (x and [a- like?", "What do I and I like?"),
        (("user", "assistant"), "What does the user like?", "What does the user like?"),
        (("", " "), "What does Ann like?", "What does Ann like?"),
        (("医生",), "医生 said what?", "I said what?"),
    ],
)
def test_questions_in_the_first_person(
    speakers: tuple[str, ...], asked: str, expected: str
) -> None:
    bench = talk({"u": [["hello there", "hello there"]]}, {"u": [asked]}, speakers=speakers)
    other = rephrase_in_first_person(bench)
    assert other.queries["text"].to_list() == [expected]
    assert (other is bench) == (asked == expected)
    assert other.queries.drop("text").equals(bench.queries.drop("text"))


def test_token_matches_by_hand() -> None:
    """Three tokens of one question, the rarest first, and four turns, the last of them alone in its session."""
    best = np.array(
        [[0.8, 0.1, 0.0, 0.7], [0.2, 0.9, 0.0, 0.1], [0.0, 0.0, 0.65, -0.2]], np.float32
    )
    weights = np.array([0.5, 0.3, 0.2], np.float32)
    tokens: Any = SimpleNamespace(
        best_cosine_per_turn=lambda asked: best, token_weights=lambda asked: weights
    )
    asked = TokenVectors(np.arange(3), best, np.array([0, 3]))
    found = token_match_values_by_name(tokens, asked, np.array([0, 0, 0, 1]))
    expected = {
        "late": [0.46, 0.32, 0.13, 0.34],
        "late_with_previous": [
            0.46,
            0.67,
            0.45,
            0.38,
        ],  # without a neighbour a token matches at least 0
        "late_with_next": [0.67, 0.45, 0.13, 0.38],
        "late_within_one": [0.67, 0.8, 0.45, 0.38],
        "late_with_two_before": [0.46, 0.67, 0.8, 0.38],
        "late_of_session_words": [0.8, 0.8, 0.8, 0.34],
        "late_rarest": [0.5, 0.5, 0.0, 0.4],
        "late_rarest_least": [0.2, 0.1, 0.0, 0.1],
        "late_equal": [1 / 3, 1 / 3, 0.65 / 3, 0.2],
    }
    assert found.keys() == expected.keys() == {"late", *TOKEN_MATCHES}
    for name, values in expected.items():
        np.testing.assert_allclose(found[name][0], values, atol=1e-6, err_msg=name)


def test_candidates_of_another_bench_are_refused(small: Dataset, bench: Bench) -> None:
    frame, part = (
        hybrid(bench, k=5).frame,
        Bench.of(small.take(small.scopes[:1]), encoder=StandIn()),
    )
    for rows, where in ((frame, part), (frame.with_columns(query_id=pl.lit("nobody")), bench)):
        with pytest.raises(DataError, match="is not in this bench"):
            padded_turn_places_by_question(rows, where)
