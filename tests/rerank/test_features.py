"""What the learned reranker knows: finite for any talk, of the scope alone, and nothing of ids or evidence."""

from __future__ import annotations

import warnings
from datetime import UTC, datetime

import numpy as np
import polars as pl
import pytest
from stand_in import StandIn

from memlab import DataError
from memlab.embed.token_vectors import token_cosines
from memlab.records import Dataset, Question, Session, Turn, frame
from memlab.rerank._words import MARGIN, rephrase_in_first_person, token_match_features
from memlab.rerank.features import best_candidate_places, candidate_features, ranking_to_places
from memlab.retrieve import Bench, hybrid
from memlab.retrieve.late_interaction import late_scores, query_tokens, scope_tokens

Said = dict[str, list[list[str]]]


def talk(
    said: Said, asked: dict[str, list[str]], *, speakers: tuple[str, ...] = ("user",),
    start: list[datetime | None] | None = None, caption: str | None = None,
) -> Bench:  # fmt: skip
    """Give scopes of sessions of texts, spoken by the speakers in turn, and their questions."""
    turns, sessions, questions = [], [], []
    for scope, held in said.items():
        for s, texts in enumerate(held, 1):
            session, when = f"{scope}/s{s}", start[s - 1] if start else None
            sessions.append(Session(session, scope, s, when, when, len(texts), list(speakers)))
            for n, text in enumerate(texts):
                who = speakers[n % len(speakers)]
                turns.append(Turn(f"{session}/{n}", scope, session, n + 1, who, "user", text, caption))
        questions += [Question(f"{scope}/q{i}", scope, q, None, "t", None, [], []) for i, q in enumerate(asked[scope])]
    data = Dataset("talk", "chatlog", frame(Turn, turns), frame(Session, sessions), frame(Question, questions))
    return Bench.of(data, encoder=StandIn())


def column(bench: Bench, name: str) -> np.ndarray:
    """Give one feature of the first question's turns, in order of time."""
    part = next(candidate_features(bench, *best_candidate_places(bench, 200)))
    return part.value(name)[0][np.argsort(part.at[0])]


ODD = ["What did C++ (the [cat]) say?", "", "?!", "When was 31 February 2023?", "x" * 3000, "医生 👩‍⚕️", "\\d+ $^"]


@pytest.mark.parametrize("speaker", ["user", "", "C++ (x", "[a-", "医生", "\\d+ $^", "the"])
def test_odd_talk_gives_finite_numbers(speaker: str) -> None:
    said = {
        "one": [["only one turn"]],
        "silent": [["", " ", "\n"], [""]],
        "gaps": [[], ["hello there", "", "?"], [], ["hello there"] * 3, []],
        "odd": [ODD, ["C++ (the [cat]) said no"]],
    }
    bench = talk(said, {scope: [*ODD, "hello"] for scope in said}, speakers=(speaker,), caption="a (photo")
    seen = []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for part in candidate_features(bench, *best_candidate_places(bench, 200)):
            assert (part.values.dtype, part.values.shape) == (np.float32, (*part.at.shape, len(set(part.names))))
            assert np.isfinite(part.values[part.mask]).all()
            seen += part.mask.sum(axis=1).tolist()
    assert len(seen) == bench.queries.height
    assert set(seen) == {1, 4, 6, 8}


JULY = datetime(2023, 7, 15, 20, 30, tzinfo=UTC)
STARTS = [JULY, datetime(2023, 7, 22, tzinfo=UTC), datetime(2022, 7, 15, tzinfo=UTC), datetime(2023, 8, 5, tzinfo=UTC)]
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
    start: list[datetime | None] = [*([datetime(2020, 7, 15, tzinfo=UTC)] * empty), *STARTS]
    said: Said = {"a": [["x"]], "u": [*([[]] * empty), *([f"a{i}", "b"] for i in range(4))]}
    bench = talk(said, {"a": [], "u": [question]}, start=start)
    for name, expected in (("month_named", month), ("date_near", near), ("date_before", before)):
        np.testing.assert_allclose(column(bench, name), np.repeat(expected, 2), atol=1e-5, err_msg=name)


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
    named = talk({"u": [["hello", "hello"]]}, {"u": ["What did c++ (X say?"]}, speakers=("Ann", "C++ (x"))
    for name, expected in (("speaker_named", [0, 1]), ("other_named", [1, 0]), ("n_named", [1, 1])):
        assert column(named, name).tolist() == expected
    for scorer in ("dense", "bm25", "late"):
        own = column(bench, f"{scorer}_z")
        np.testing.assert_allclose(own.mean(), 0, atol=1e-5)
        np.testing.assert_allclose(column(bench, f"{scorer}_at-1"), [-3, own[0], own[1], -3, own[3]], atol=1e-6)
        np.testing.assert_allclose(column(bench, f"{scorer}_at+2"), [own[2], -3, -3, -3, -3], atol=1e-6)


@pytest.mark.parametrize(
    ("speakers", "asked", "expected"),
    [
        (("Ann", "Bob"), "What did Ann buy for Bob's dog?", "What did I buy for my dog?"),
        (("Ann", "Anna Lee"), "Did anna lee meet Annabel, Ann’s aunt, or Ann?", "Did I meet Annabel, my aunt, or I?"),
        (("C++ (x", "[a-"), "What do C++ (x and [a- like?", "What do I and I like?"),
        (("user", "assistant"), "What does the user like?", "What does the user like?"),
        (("", " "), "What does Ann like?", "What does Ann like?"),
        (("医生",), "医生 said what?", "I said what?"),
    ],
)
def test_questions_in_the_first_person(speakers: tuple[str, ...], asked: str, expected: str) -> None:
    bench = talk({"u": [["hello there", "hello there"]]}, {"u": [asked]}, speakers=speakers)
    other = rephrase_in_first_person(bench)
    assert other.queries["text"].to_list() == [expected]
    assert (other is bench) == (asked == expected)
    assert other.queries.drop("text").equals(bench.queries.drop("text"))


def test_token_matches_are_those_of_a_loop(bench: Bench) -> None:
    asked, ((rows, turns), *_) = query_tokens(bench), bench.by_scope("turn")
    tokens, part, session = scope_tokens(bench, turns), asked.take(rows), bench.documents("turn").session[turns]
    found = token_match_features(tokens, part, session)
    np.testing.assert_allclose(found["late"], next(late_scores(bench, level="turn"))[2], atol=1e-6)
    texts = [tokens.texts.take(np.array([i])).vectors for i in tokens.inverse]
    for q in range(0, len(rows), 7):
        one = part.take(np.array([q]))
        weight = tokens.idf[one.ids].astype(np.float64)
        weight /= weight.sum()
        best = np.array([[max(token_cosines(v[None], t)[0]) for t in texts] for v in one.vectors])
        rare = np.argsort(-weight, kind="stable")[: max(2, len(weight) // 3)]
        for n in range(len(session)):
            same = np.flatnonzero(session == session[n])
            near = {d: n + d for d in (-2, -1, 1) if n + d in same}

            def widest(*steps: int, n: int = n, near: dict[int, int] = near, best: np.ndarray = best) -> np.ndarray:
                widened = best[:, [n, *(near[d] for d in steps if d in near)]].max(axis=1)
                return widened if near.keys() >= set(steps) else np.maximum(widened, 0)  # no neighbour, no match

            whole = best[:, same].max(axis=1)
            expected = {
                "late_with_previous": weight @ widest(-1),
                "late_with_next": weight @ widest(1),
                "late_within_one": weight @ widest(-1, 1),
                "late_with_two_before": weight @ widest(-1, -2),
                "late_of_session_words": weight @ whole,
                "late_rarest": best[rare, n].mean(),
                "late_rarest_least": best[rare, n].min(),
                "late_equal": best[:, n].mean(),
                "late_share_60": weight @ (best[:, n] > 0.6),
                "late_share_75": weight @ (best[:, n] > 0.75),
                "late_near_best_of_session": weight @ np.maximum(best[:, n] - whole + MARGIN, 0),
            }
            assert {name: found[name][q, n] for name in expected} == pytest.approx(expected, abs=1e-4)


def test_candidates_of_another_bench_are_refused(small: Dataset, bench: Bench) -> None:
    frame, part = hybrid(bench, k=5).frame, Bench.of(small.take(small.scopes[:1]), encoder=StandIn())
    for rows, where in ((frame, part), (frame.with_columns(query_id=pl.lit("nobody")), bench)):
        with pytest.raises(DataError, match="is not in this bench"):
            ranking_to_places(rows, where)
