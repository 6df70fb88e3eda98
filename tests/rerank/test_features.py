"""What the learned reranker knows: finite for any talk, of the scope alone, and nothing of ids or evidence."""

from __future__ import annotations

import warnings
from datetime import UTC, datetime

import numpy as np
import polars as pl
import pytest
from stand_in import StandIn

from memlab import DataError
from memlab.records import Dataset, Question, Session, Turn, frame
from memlab.rerank.features import best_candidate_places, describe_candidates, ranking_to_places
from memlab.retrieve import Bench, hybrid


def known(bench: Bench, n: int = 200) -> dict[str, dict[str, np.ndarray]]:
    """Give query → turn → features, by ids."""
    ids, queries = bench.documents("turn").ids, bench.queries["query_id"].to_list()
    found: dict[str, dict[str, np.ndarray]] = {}
    for part in describe_candidates(bench, *best_candidate_places(bench, n)):
        assert part.values.dtype == np.float32
        assert part.values.shape == (*part.at.shape, len(part.names))
        assert len(set(part.names)) == len(part.names)
        for row, at, held, values in zip(part.rows, part.at, part.mask, part.values, strict=True):
            found[queries[row]] = {ids[place]: value for place, value in zip(at[held], values[held], strict=True)}
    return found


def talk(
    said: dict[str, list[list[str]]],
    asked: dict[str, list[str]],
    *,
    speaker: str = "user",
    start: list[datetime | None] | None = None,
    caption: str | None = None,
) -> Bench:
    turns, sessions, questions = [], [], []
    for scope, held in said.items():
        for s, texts in enumerate(held, 1):
            session, when = f"{scope}/s{s}", start[s - 1] if start else None
            sessions.append(Session(session, scope, s, when, when, len(texts), [speaker]))
            turns += [
                Turn(f"{session}/{n}", scope, session, n, speaker, "user", text, caption)
                for n, text in enumerate(texts, 1)
            ]
        questions += [Question(f"{scope}/q{i}", scope, q, None, "t", None, [], []) for i, q in enumerate(asked[scope])]
    data = Dataset("talk", "chatlog", frame(Turn, turns), frame(Session, sessions), frame(Question, questions))
    return Bench.of(data, encoder=StandIn())


def column(bench: Bench, name: str) -> np.ndarray:
    """Give one feature of the first question's turns, in order of time."""
    part = next(describe_candidates(bench, *best_candidate_places(bench, 200)))
    order = np.argsort(part.at[0])
    return part.value(name)[0][order]


ODD = [
    "What did C++ (the [cat]) say?",
    "",
    "?!",
    "When was 31 February 2023?",
    "x" * 3000,
    "医生 👩‍⚕️",
    "on 99 May",
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
    bench = talk(said, {scope: [*ODD, "hello"] for scope in said}, speaker=speaker, caption="a (photo")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = known(bench)
    assert len(found) == bench.queries.height
    assert all(np.isfinite(values).all() for row in found.values() for values in row.values())
    assert {len(row) for row in found.values()} == {1, 4, 6, 9}


MONTHS = [
    datetime(2023, 7, 15, 20, 30, tzinfo=UTC),
    datetime(2023, 7, 22, tzinfo=UTC),
    datetime(2022, 7, 15, tzinfo=UTC),
]
MONTHS.append(datetime(2023, 8, 5, tzinfo=UTC))
WEEK, LONG = np.exp(-1), np.exp(-3)


@pytest.mark.parametrize(
    ("question", "month", "near", "before"),
    [
        ("What did we do on 15 July 2023?", [1, 1, 0, 0], [1, WEEK, 0, LONG], [0, 7 / 30, -1, 0.7]),
        ("What did we do on July 15th, 2023?", [1, 1, 0, 0], [1, WEEK, 0, LONG], [0, 7 / 30, -1, 0.7]),
        ("And on the 15th of July?", [1, 1, 1, 0], [1, WEEK, 1, LONG], [0, 7 / 30, 0, 0.7]),
        ("What happened in July 2023?", [1, 1, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]),
        ("What happened in July?", [1, 1, 1, 0], [0, 0, 0, 0], [0, 0, 0, 0]),
        ("What happened in August 2022?", [0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]),
        ("What happened in 2023?", [0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]),
        ("What may I do?", [0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]),
    ],
)
@pytest.mark.parametrize("empty", [0, 2], ids=["", "after empty sessions"])
def test_a_date_that_the_question_names(
    question: str, month: list[float], near: list[float], before: list[float], empty: int
) -> None:
    """The first sessions of a scope may hold no turn; the dates are those of the sessions that the turns stand in."""
    start: list[datetime | None] = [*([datetime(2020, 7, 15, tzinfo=UTC)] * empty), *MONTHS]
    bench = talk(
        {"a": [["x"]], "u": [*([[]] * empty), *([f"a{i}", "b"] for i in range(4))]},
        {"a": [], "u": [question]},
        start=start,
    )
    for name, expected in (("month_named", month), ("date_near", near), ("date_before", before)):
        np.testing.assert_allclose(column(bench, name), np.repeat(expected, 2), atol=1e-5, err_msg=name)


def test_words_neighbours_and_places() -> None:
    said = {"u": [["we saw roses", "tulips grow", "nothing else"], ["roses and tulips", "water"]]}
    bench = talk(said, {"u": ["roses tulips zyzzyva"]}, speaker="Ann")
    assert column(bench, "n_words").tolist() == [1, 1, 0, 2, 0]
    of_known = np.log1p(3.5 / 2.5)  # roses, and tulips, stand in two of five turns
    total = 2 * of_known + np.log1p(5.5 / 0.5)
    one, two = of_known / total, 2 * of_known / total
    for name, expected in {
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
    for scorer in ("dense", "bm25", "late"):
        own = column(bench, f"{scorer}_z")
        np.testing.assert_allclose(own.mean(), 0, atol=1e-5)
        np.testing.assert_allclose(column(bench, f"{scorer}_at-1"), [-3, own[0], own[1], -3, own[3]], atol=1e-6)
        np.testing.assert_allclose(column(bench, f"{scorer}_at+2"), [own[2], -3, -3, -3, -3], atol=1e-6)


def test_who_is_named() -> None:
    start = datetime(2023, 1, 1, tzinfo=UTC)
    turns = [
        Turn(f"u/s/{i}", "u", "u/s", i, who, "user", "hello", None, start) for i, who in enumerate(("Ann", "C++ (x"), 1)
    ]
    session = Session("u/s", "u", 1, start, start, 2, ["Ann", "C++ (x"])
    question = Question("q", "u", "What did c++ (X say?", None, "t", None, [], [])
    data = Dataset("two", "chatlog", frame(Turn, turns), frame(Session, [session]), frame(Question, [question]))
    bench = Bench.of(data, encoder=StandIn())
    assert column(bench, "speaker_named").tolist() == [0, 1]
    assert column(bench, "other_named").tolist() == [1, 0]
    assert column(bench, "n_named").tolist() == [1, 1]


def test_candidates_of_another_bench_and_encoders_without_tokens(small: Dataset, bench: Bench) -> None:
    run = hybrid(bench, k=5)
    other = Bench.of(small.take(small.scopes[:1]), encoder=StandIn())
    with pytest.raises(DataError, match="is not in this bench"):
        ranking_to_places(run.frame, other)
    unknown = run.frame.with_columns(query_id=pl.lit("nobody"))
    with pytest.raises(DataError, match="question 'nobody' is not in this bench"):
        ranking_to_places(unknown, bench)
    with pytest.raises(DataError, match="late interaction needs token embeddings"):
        next(describe_candidates(Bench.of(small, encoder="hashing:32"), *ranking_to_places(run.frame, bench)))
