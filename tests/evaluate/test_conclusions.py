"""Sentences made from tables: right answers, intervals beside numbers, and what cannot be said."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest

from memlab.evaluate import conclusions, verdicts
from memlab.evaluate.groups_of_questions import ALL_QUESTIONS, SEVERAL_SESSIONS
from memlab.evaluate.significance_tests import compare_paired
from memlab.evaluate.system_comparison import compare_question_outcomes

MEASURE = "recall_all@10"


def compared(
    n: int, hits: dict[str, int], *, group: str = ALL_QUESTIONS, scopes: int = 1
) -> pl.DataFrame:
    """Compare systems of which each completes the first so many of n questions with the first of them."""
    values = np.stack([(np.arange(n) < count).astype(float) for count in hits.values()], axis=1)
    of = np.arange(n) % scopes if scopes > 1 else None
    rows = compare_paired(values, np.zeros(len(hits), dtype=int), scopes=of)
    names = pl.DataFrame({"group": group, "system": [*hits]})
    return names.hstack(rows)


def judged(*tables: pl.DataFrame) -> pl.DataFrame:
    return verdicts([*tables])


def test_a_better_system_is_named_with_both_shares_the_difference_and_p() -> None:
    table = judged(compared(100, {"bm25": 20, "best": 60}))
    said = conclusions.on_recall(table, measure=MEASURE)
    assert said[0] == (
        "`best` finds all evidence among the first 10 for significantly more of all 100 questions with evidence "
        "than `bm25`: 60 % [95 %: 50 to 69] against 20 % [95 %: 13 to 29], +40 points [95 %: +30 to +49], p < .001."
    )
    assert said[1].startswith("No question has evidence in two or more sessions")


def test_no_better_system_is_said_and_a_harmful_one_is_named() -> None:
    table = judged(compared(100, {"bm25": 60, "other": 61, "worse": 30}))
    said = conclusions.on_recall(table, measure=MEASURE)
    assert said[0].startswith(
        "No system finds all evidence among the first 10 for significantly more of all 100 questions with evidence "
        "than `bm25`, which does for 60 % ["
    )
    assert "the highest, `other`: +1 point [97.5 %:" in said[0]
    assert said[1].startswith("`worse` (−30 points [")
    assert said[1].endswith(
        "finds all evidence among the first 10 for significantly fewer of all 100 questions with evidence than `bm25`."
    )


def test_where_no_system_is_above_the_baseline_none_is_called_the_highest() -> None:
    table = judged(compared(100, {"bm25": 60, "mmr": 59, "other": 55}))
    said = conclusions.on_recall(table, measure=MEASURE)
    assert "; no other is above it, the nearest is `mmr`: −1 point [97.5 %:" in said[0]
    assert "highest" not in said[0]


@pytest.mark.parametrize(
    ("n", "tests", "enough"), [(5, 1, False), (6, 1, True), (8, 3, True), (6, 3, False)]
)
def test_a_verdict_needs_as_many_questions_as_a_test_can_be_significant_with(
    n: int, tests: int, enough: bool
) -> None:
    systems = {"bm25": 0} | {f"s{i}": n for i in range(tests)}
    said = conclusions.on_recall(judged(compared(n, systems)), measure=MEASURE)
    assert said[0].startswith("`s0` finds all" if enough else f"These {n} questions cannot say")
    assert ("%" in said[0]) == enough


def test_no_question_one_question_and_one_memory_are_said() -> None:
    nothing = judged(compared(0, {"bm25": 0, "best": 0}))
    assert conclusions.on_recall(nothing, measure=MEASURE)[0].startswith(
        "Nothing can be said: no question"
    )
    one = judged(compared(1, {"bm25": 0, "best": 1}))
    assert conclusions.on_recall(one, measure=MEASURE)[0].startswith("This one question cannot say")
    assert conclusions.notes_if_single_memory(1)[0].startswith("All questions are about one memory")
    assert conclusions.notes_if_single_memory(2) == []


def test_few_multi_session_questions_are_said_beside_an_answer_of_all() -> None:
    table = judged(
        compared(40, {"bm25": 0, "best": 40}),
        compared(1, {"bm25": 0, "best": 1}, group=SEVERAL_SESSIONS),
    )
    said = conclusions.on_recall(table, measure=MEASURE)
    assert said[0].startswith("The one question with evidence in two or more sessions cannot say")
    assert said[1].startswith("`best` finds all evidence")
    assert "over 99 %" not in said[1]
    assert "100 % [95 %: 91 to 100]" in said[1]


def test_over_memories_their_number_is_what_must_be_enough() -> None:
    few = judged(compared(100, {"bm25": 10, "best": 90}, scopes=5))
    said = conclusions.on_recall(few, measure=MEASURE)
    assert said[0].startswith("These 100 questions, about 5 memories, cannot say")
    assert said[0].endswith("below 6 memories.")
    more = judged(compared(100, {"bm25": 10, "best": 90}, scopes=10))
    assert "[95 % over 10 memories: " in conclusions.on_recall(more, measure=MEASURE)[0]


def chosen(base: str, group: str, n: int, hits: dict[str, int]) -> pl.DataFrame:
    return compared(n, hits, group=group).with_columns(base=pl.lit(base))


def test_selection_answers_in_one_sentence_and_names_what_does_harm() -> None:
    table = judged(
        chosen("combsum", ALL_QUESTIONS, 200, {"combsum": 100, "mmr": 99, "by_cluster": 60}),
        chosen("best", SEVERAL_SESSIONS, 100, {"best": 50, "mmr": 51, "by_cluster": 49}),
    )
    said = conclusions.on_selection(table, measure=MEASURE)
    assert said[0].startswith(
        "Of 4 comparisons of a selector with the plain `combsum` and `best`, "
        "none completes significantly more, 1 significantly less (`by_cluster`), "
    )
    counts = table["verdict"].drop_nulls()
    assert f"{(counts == 'equivalent').sum()} are equivalent" in said[0]
    assert said[1].startswith(
        "The largest loss by choosing differently is that of `by_cluster` on `combsum` over all 200 questions with evidence, −20 points [98.8 %:"
    )
    assert said[2].startswith(
        "The largest gain by choosing differently, not a significant one, is that of `mmr` on `best` over the 100 questions with evidence in two"
    )
    losing = judged(chosen("best", ALL_QUESTIONS, 200, {"best": 100, "mmr": 99, "dpp": 98}))
    assert conclusions.on_selection(losing, measure=MEASURE)[1].startswith(
        "No way of choosing differently gains anything; the smallest loss is that of `mmr` on `best`"
    )


def test_steps_name_those_that_are_significant_and_what_all_bring() -> None:
    table = judged(compared(100, {"a": 20, "b": 50}))
    said = conclusions.on_ablation_steps(table, table, measure=MEASURE)
    assert said[0].startswith(
        "Of 1 test of single steps 1 is significant after correction: `b` over all"
    )
    assert said[1].startswith("From `a` to `b`, all evidence among the first 10 goes from 20 % [")
    none = judged(compared(100, {"a": 20, "b": 21}))
    assert conclusions.on_ablation_steps(none, none, measure=MEASURE)[0].startswith(
        "No single step adds"
    )


def outcomes(scopes: int = 1, **hits: list[bool]) -> pl.DataFrame:
    rows = [
        {"system": name, "query_id": f"q{n}", "scope": f"s{n % scopes}", "hit": hit}
        for name, each in hits.items()
        for n, hit in enumerate(each)
    ]
    return pl.DataFrame(rows)


def test_conditions_are_compared_question_by_question() -> None:
    table = compare_question_outcomes(
        outcomes(neither=[False] * 20, decay=[True] * 15 + [False] * 5)
    )
    about: dict[str, Any] = {"question_noun": "questions about a change", "claim": "it is current"}
    (said,) = conclusions.on_conditions(table, **about, source_name="facts")
    assert said.startswith(
        "Among facts, with neither it is current for 0 % [95 %: 0 to 16] of 20 questions"
    )
    assert "with decay for significantly more, 75 % [95 %: 53 to 89] (+75 points [" in said
    few = compare_question_outcomes(outcomes(neither=[False] * 4, decay=[True] * 4))
    assert conclusions.on_conditions(few, **about)[0].startswith(
        "These 4 questions cannot say whether"
    )
    none = compare_question_outcomes(
        pl.DataFrame(
            schema={
                "system": pl.String,
                "query_id": pl.String,
                "scope": pl.String,
                "hit": pl.Boolean,
            }
        )
    )
    assert conclusions.on_conditions(none, **about)[0].endswith(
        "there are no questions about a change."
    )


def test_conditions_of_many_memories_are_compared_memory_by_memory() -> None:
    table = compare_question_outcomes(outcomes(6, neither=[False] * 24, decay=[True, False] * 12))
    assert table.row(1, named=True)["units"] == 6
    hits = [n % 6 < 5 or n < 12 for n in range(24)]
    more = {"decay": hits, "both": [True] * 24}
    table = compare_question_outcomes(outcomes(8, neither=[n % 8 == 0 for n in range(24)], **more))
    (said,) = conclusions.on_conditions(table, question_noun="questions", claim="it is current")
    assert "With neither it is current for 12 % [95 % over 8 memories: " in said
    assert said.count(", corrected for 2 tests)") == 2


def test_a_fused_search_says_in_three_lines_what_changed_however_many_there_were() -> None:
    found = {"best": 100, "best + weeks": 102, "best + days": 99, "weeks": 20, "months": 10}
    said = conclusions.on_fused_rankings(judged(compared(200, found)), measure="recall_all@10")
    assert len(said) == 3
    assert said[0].startswith("Not one of 4 rankings through summaries finds all evidence")
    assert said[1].split(": ", 1)[1].startswith("`weeks` −40 points [")
    assert "; `months` −45 points" in said[1]
    assert said[2].split(": ", 1)[1].startswith("`best + weeks` +1 point [")
    assert said[2].endswith("; p is corrected for 4 tests.")


def test_what_a_memory_finds_in_tokens_has_the_unit_of_the_comparison() -> None:
    columns = {"recall_all@200 tokens": [1.0] * 6 + [0.0] * 18, "recall_all@4000 tokens": 1.0}
    asked = pl.DataFrame({"scope": [f"s{n % 6}" for n in range(24)], **columns}, strict=False)
    asked = asked.with_columns(system=pl.lit("mine"))
    (said,) = conclusions.on_token_budgets(asked, system="mine")
    assert said.startswith("`mine` finds all evidence in 200 tokens for 25 % [95 % over 6 memories")
    (said,) = conclusions.on_token_budgets(asked, system="mine", unit="question")
    assert "in 200 tokens for 25 % [95 %: 12 to 45] of the 24 questions, in 4,000 tokens" in said


def test_memories_that_differ_in_nothing_significant_are_said_to_do_so() -> None:
    row = {"recall_all@10_low": 0.4, "recall_all@10_high": 0.6, "recall_all@10_level": 0.95}
    systems = pl.DataFrame([{"system": "best", "n": 100, MEASURE: 0.5, **row}])
    values = np.stack([np.arange(100) < 50, np.arange(100) < 51], axis=1).astype(float)
    tests = pl.DataFrame({"system": ["best", "mem0"], "measure": MEASURE})
    tests = tests.hstack(compare_paired(values, np.array([0, 0]))).drop_nulls("p")
    said = conclusions.on_memories(systems, tests, baseline="best", measure=MEASURE)
    assert said[1].startswith(
        "Systems without a significant difference to `best`: `mem0` (+1 point ["
    )


def test_a_level_is_written_as_the_frame_has_it() -> None:
    losses = pl.DataFrame(
        {
            "family": ["exponential", "constant"],
            "n": 400,
            "log_loss": [0.5, 0.6],
            "difference_low": [0.0, 0.05],
            "level": 0.9,
        }
    )
    half = pl.DataFrame({"estimate": [257.0], "low": [223.0], "high": [299.0], "level": [0.9]})
    said = conclusions.on_decay_curves(losses, half)
    assert (
        said[-1]
        == "The half-life of the exponential fit is 260 days [90 %: 220 to 300]: a parameter, which may "
        "lie beyond the oldest fact."
    )
    assert said[1] == (
        "It predicts better than `constant`, which is not fitted to age (the 90 % interval excludes 0, not "
        "corrected)."
    )
    worse = pl.DataFrame([{**losses.row(1, named=True), "family": "default", "log_loss": 0.625}])
    said = conclusions.on_decay_curves(pl.concat([losses, worse], how="vertical_relaxed"), half)
    assert said[2].startswith(
        "The default curve predicts worse than one chance at every age (log-loss .625 against .600"
    )
    better = worse.with_columns(log_loss=0.55)
    mended = pl.concat([losses, better], how="vertical_relaxed")
    assert len(conclusions.on_decay_curves(mended, half)) == len(said) - 1


def test_similarity_needs_two_items_in_enough_questions_and_names_its_controls() -> None:
    kinds = ["evidence, other session", "evidence – random", "evidence – random, same speaker"]
    frame = pl.DataFrame(
        {
            "kind": kinds,
            "n": 30,
            "mean": [0.4, 0.1, 0.2],
            "low": [0.3, 0.0, 0.1],
            "high": [0.5, 0.2, 0.3],
        }
    )
    (said,) = conclusions.on_evidence_similarity(frame)
    assert said.startswith("Evidence items of different sessions resemble each other more")
    assert "0.20 (evidence – random, same speaker" in said
    assert (
        "cannot be said: 3 questions"
        in conclusions.on_evidence_similarity(frame.with_columns(n=3))[0]
    )
