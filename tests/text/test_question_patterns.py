"""What questions and messages of three languages are read as."""

from __future__ import annotations

import polars as pl
import pytest

import memlab
from memlab.rerank.word_features import rephrase_in_first_person
from memlab.retrieve.rank_fusion import assistant_penalty_in_deviations
from memlab.text.question_patterns import QUESTIONS, TURNS, question_patterns, turn_patterns

ASKED = {
    "en": ["How many plants have I got?", "What did you suggest?", "When was it?", "Is Bo well?"],
    "de": [
        "Wie viele Pflanzen habe ich?",
        "Was hast du mir dazu vorgeschlagen?",
        "Wann war das?",
        "Ist Bo gesund?",
    ],
    "es": ["¿Cuántas plantas tengo?", "¿Qué me sugeriste?", "¿Cuándo fue?", "¿Está bien Bo?"],
}


@pytest.mark.parametrize("language", ASKED)
def test_a_question_means_the_same_in_each_language(language: str) -> None:
    asked = pl.Series(ASKED[language])
    found = {name: asked.str.contains(p) for name, p in question_patterns(language).items()}
    assert found["asks_how_many"].to_list() == [True, False, False, False]
    assert found["asks_of_assistant"].to_list() == [False, True, False, False]
    assert found["asks_what"].to_list() == [False, True, False, False]
    assert found["asks_time"].to_list() == [False, False, True, False]
    assert found["asks_when"].to_list() == [False, False, True, False]
    assert found["asks_yes_no"].to_list() == [False, False, False, True]


def test_every_language_has_the_same_patterns_in_one_order() -> None:
    for patterns in (TURNS, QUESTIONS):
        assert len({tuple(each) for each in patterns.values()}) == 1
    assert turn_patterns("ja") is TURNS["en"]


def test_german_nouns_are_no_names_and_its_writer_is_the_first_person() -> None:
    said = pl.Series(["Gestern war ich mit meiner Schwester im Garten, Anna kam auch."])
    counted = {name: said.str.count_matches(p)[0] for name, p in turn_patterns("de").items()}
    assert (counted["first_person"], counted["time_words"], counted["capitalised"]) == (2, 1, 0)


def test_a_german_question_for_what_an_assistant_said_leaves_its_turns_as_they_are() -> None:
    data = memlab.load("data/languages/owen.de.jsonl")
    bench = memlab.Bench.of(data, encoder=None)
    texts = {"a": "Was hast du mir vorgeschlagen?", "b": "Was habe ich gekauft?"}
    queries = pl.DataFrame({"query_id": [*texts], "text": [*texts.values()], "scope": "owen"})
    asked = bench.with_queries(queries)
    (rows, turns), *_ = asked.by_scope("turn")
    penalty = assistant_penalty_in_deviations(asked, rows, turns)
    assert penalty is not None
    assert penalty.any(axis=1).tolist() == [False, True]


def test_who_speaks_says_ich_in_german() -> None:
    data = memlab.load("data/languages/owen.de.jsonl")
    bench = memlab.Bench.of(data, encoder=None)
    text = "Was sagt Owen, und was macht Owens Knie?"
    asked = bench.with_queries(pl.DataFrame({"query_id": ["a"], "text": [text], "scope": "owen"}))
    assert (
        rephrase_in_first_person(asked).queries["text"][0]
        == "Was sagt ich, und was macht mein Knie?"
    )
