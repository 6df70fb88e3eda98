"""Which words of a question match where: against loops, and questions in the first person."""

from __future__ import annotations

import numpy as np
import pytest
from remembering import minilm

from memlab.embed.token_vectors import token_cosines
from memlab.records import Dataset, Question, Session, Turn, frame
from memlab.rerank._matches import MARGIN, rephrase_in_first_person, token_match_features
from memlab.retrieve import Bench
from memlab.retrieve.late_interaction import late_scores, query_tokens, scope_tokens


@pytest.mark.slow
def test_matches_are_those_of_a_loop(minilm_bench: Bench) -> None:
    bench = minilm_bench
    asked, seen = query_tokens(bench), 0
    late = dict(zip(bench.documents("turn").spans, [s for _, _, s in late_scores(bench, level="turn")], strict=True))
    for rows, turns in bench.by_scope("turn"):
        tokens, part = scope_tokens(bench, turns), asked.take(rows)
        session = bench.documents("turn").session[turns]
        found = token_match_features(tokens, part, session)
        np.testing.assert_allclose(found["late"], late[bench.queries["scope"][int(rows[0])]], atol=1e-6)
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
                for name, value in expected.items():
                    assert found[name][q, n] == pytest.approx(value, abs=1e-4), name
                seen += 1
    assert seen > 50


def talk(speakers: list[str], asked: list[str]) -> Bench:
    turns = [Turn(f"u/s/{n}", "u", "u/s", n, who, "user", "hello there") for n, who in enumerate(speakers, 1)]
    questions = [Question(f"u/q{i}", "u", text, None, "t", None, [], []) for i, text in enumerate(asked)]
    sessions = [Session("u/s", "u", 1, None, None, len(turns), speakers)]
    return Bench.of(
        Dataset("talk", "chatlog", frame(Turn, turns), frame(Session, sessions), frame(Question, questions)),
        encoder=minilm(),
    )


@pytest.mark.parametrize(
    ("speakers", "asked", "expected"),
    [
        (["Ann", "Bob"], "What did Ann buy for Bob's dog?", "What did I buy for my dog?"),
        (
            ["Ann", "Anna Lee", "Anna"],
            "Did anna lee meet Annabel, Anna’s aunt, or Ann?",
            "Did I meet Annabel, my aunt, or I?",
        ),
        (["C++ (x", "[a-"], "What do C++ (x and [a- like?", "What do I and I like?"),
        (["user", "assistant"], "What does the user like?", "What does the user like?"),
        (["", " "], "What does Ann like?", "What does Ann like?"),
        (["医生"], "医生 said what?", "I said what?"),
    ],
)
def test_questions_in_the_first_person(speakers: list[str], asked: str, expected: str) -> None:
    bench = talk(speakers, [asked])
    other = rephrase_in_first_person(bench)
    assert other.queries["text"].to_list() == [expected]
    assert (other is bench) == (asked == expected)
    assert other.queries.drop("text").equals(bench.queries.drop("text"))
