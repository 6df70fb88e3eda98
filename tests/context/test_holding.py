"""Whether a context holds an answer: values as values, all items of a list, and what cannot be looked for."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memlab.context import (
    Sources,
    assemble,
    evidence_only,
    holding,
    holding_table,
    holds,
    of_another,
    whole_history,
)
from memlab.context.answers import answer_content
from memlab.errors import DataError
from memlab.records import Dataset


@pytest.mark.parametrize(
    ("context", "answer"),
    [
        ("Mel: I have two dogs.", "2"),
        ("Mel: I have 2 dogs.", "two"),
        ("Mel: It was $1,250 in all.", "1250 dollars"),
        ("Mel: about 1250 dollars", "$1,250"),
        ("Mel: We met on 7 May 2023.", "May 7, 2023"),
        ("Mel: We met on May 7th, 2023.", "7 May 2023"),
        ("[7 May 2023]\nMel: We met today.", "May 2023"),
        ("[7 May 2023]\nMel: We met today.", "2023"),
        ("Mel: We met on May 7.", "7 May, 2023"),
        ("[14 September 2022]\nMel: We met last Friday.", "14September, 2022"),
        ("Mel: We met last week (the week before 8 June 2023).", "The week before 9 June 2023"),
        ("Mel: We met last Friday (14 July 2023).", "The Friday before 15 July 2023"),
        ("[3 June 2022]\nMel: We meet next weekend.", "The weekend after 3June, 2022."),
        ("Mel: We moved in April 2023.", "April.2023"),
        ("Mel: I play the clarinet.\nAnn: And the violin?", "clarinet and violin"),
        ("Mel: I went running with Zoë’s dogs", "run with Zoë's dog"),
        ("Mel: they said so twice", "2 times (in June)"),
        ("Mel: 18 days ago", "17 days ago. 18 days (including the last day) is also acceptable."),
    ],
)
def test_held_in_other_writing(context: str, answer: str) -> None:
    assert holds(context, answer)


@pytest.mark.parametrize(
    ("context", "answer"),
    [
        ("Mel: I have three dogs.", "2"),
        ("[8 May 2023]\nMel: We met last week.", "1 May 2023"),
        ("Mel: We met in May 2023.", "7 May 2023"),
        ("Mel: We met last Friday (7 July 2023).", "The Friday before 15 July 2023"),
        ("[7 May 2023]\nMel: We met.", "June 2023"),
        ("Mel: We met on 7 May 2022.", "7 May 2023"),
        ("Mel: I play the clarinet.", "clarinet and violin"),
        ("Mel: I sold a lamp.\nMel: Then I bought a chair.", "sold a chair"),
        ("Mel: I was at the store.", "restore"),
        ("Mel: Yes, I do.", "Yes"),
        ("", "Oslo"),
        ("Mel: Oslo", None),
        ("Mel: Oslo", ""),
    ],
)
def test_not_held(context: str, answer: str | None) -> None:
    assert not holds(context, answer)


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        ("No", "yes/no"),
        ("Likely yes, she loves it", "yes/no"),
        ("November", "date"),
        ("Nowhere", "text"),
        ("She quit because of the noise", "open"),
        ("It's the key to making them feel welcome and coming back to the shop later", "open"),
        ("21 August, 2022", "date"),
        ("$1,250", "number"),
        ("painting, camping", "list"),
        (None, "none"),
    ],
)
def test_kinds_of_answers(answer: str | None, kind: str) -> None:
    assert answer_content(answer).kind == kind


@given(st.text(max_size=80), st.text(max_size=80), st.text(max_size=40))
def test_more_context_never_holds_less(context: str, more: str, answer: str) -> None:
    before = holds(f"a\n{context}", answer)
    assert not before or holds(f"{more.replace('[', '(')}\na\n{context}", answer)


def test_whole_history_is_a_ceiling(talk: Dataset) -> None:
    contexts = {
        name: made.with_columns(n_tokens=pl.col("text").str.len_chars())
        for name, made in (("whole", whole_history(talk)), ("evidence", evidence_only(talk)))
    }
    contexts["other"] = of_another(contexts["evidence"], talk.questions)
    rows = holding(contexts, talk.questions)
    wide = rows.pivot("context", index="query_id", values="holds").drop_nulls()
    assert wide.height > 10
    assert not wide.filter(pl.col("evidence") & ~pl.col("whole")).height
    table = holding_table(rows).filter(group="all")
    shares = dict(table.select("context", "holds").iter_rows())
    assert shares["whole"] >= shares["evidence"] > shares["other"]
    n = talk.questions.height
    assert table["n"].to_list() == [wide.height] * 3
    assert table["n_unmeasurable"].to_list() == [n - wide.height] * 3
    assert holding_table(rows, by="answer_kind").filter(group="none")["holds"].to_list() in ([], [None] * 3)


def test_dates_written_out_are_held_where_they_are_only_meant(talk: Dataset) -> None:
    row = talk.turns.row(0, named=True)
    day = row["timestamp"]
    turns = talk.turns.with_columns(text=pl.when(turn_id=row["turn_id"]).then(pl.lit("Yesterday!")).otherwise("text"))
    one = replace(
        talk,
        turns=turns.filter(turn_id=row["turn_id"]),
        questions=talk.questions.filter(scope=row["scope"]).head(1).with_columns(evidence=pl.lit([row["turn_id"]])),
    )
    before = f"{day - timedelta(days=1):%-d %B %Y}"
    for make in (whole_history, evidence_only):
        assert [holds(make(one, dates=dates)["text"][0], before) for dates in (False, True)] == [False, True]


def test_another_context_is_of_another_question_and_of_the_scope_where_it_can(talk: Dataset) -> None:
    scopes = talk.questions["scope"].unique(maintain_order=True)
    single = talk.questions.filter(scope=scopes[0]).head(1)
    asked = pl.concat([single, talk.questions.filter(pl.col("scope") != scopes[0]), _moved(single, "alone")])
    other = dict(of_another(asked.select("query_id", text="query_id"), asked).iter_rows())
    scope = dict(asked.select("query_id", "scope").iter_rows())
    counts = dict(asked["scope"].value_counts().iter_rows())
    assert list(other) == asked["query_id"].to_list()
    for query, text in other.items():
        assert query != text
        assert counts[scope[query]] == 1 or scope[query] == scope[text]


def _moved(questions: pl.DataFrame, scope: str) -> pl.DataFrame:
    return questions.with_columns(scope=pl.lit(scope), query_id=pl.lit(f"{scope}/q"))


def test_tokens_are_counted_where_a_context_does_not_say_them(talk: Dataset) -> None:
    whole = whole_history(talk)
    counted = holding({"whole": whole.drop("n_tokens")}, talk.questions)
    assert counted.equals(holding({"whole": whole}, talk.questions))
    with pytest.raises(DataError, match="context 'whole' has no column 'text'"):
        holding({"whole": whole.drop("text")}, talk.questions)


def test_a_missing_context_is_named(talk: Dataset) -> None:
    whole = whole_history(talk).with_columns(n_tokens=0)
    with pytest.raises(DataError, match="context 'whole' has none for question"):
        holding({"whole": whole.tail(-1)}, talk.questions)


def test_a_message_in_brackets_is_a_line_and_how_sure_a_fact_is_answers_nothing(talk: Dataset, items) -> None:
    turn = talk.turns.head(1).with_columns(text=pl.lit("[I saw 7 boats]"), speaker=pl.lit("user"))
    asked = talk.questions.filter(scope=turn["scope"][0]).head(1)
    asked = asked.with_columns(answer=pl.lit("7 boats"), abstention=False, evidence=pl.concat_list(turn["turn_id"]))
    one = replace(talk, turns=turn, questions=asked)
    fact = items(("Mel saw boats", []), query=asked["query_id"][0]).with_columns(confidence=pl.lit(0.7))
    contexts = {"whole": whole_history(one), "evidence": evidence_only(one)}
    contexts["fact"] = assemble(Sources(facts=fact)).texts
    assert "(0.7)" in contexts["fact"]["text"][0]
    assert holding(contexts, asked)["holds"].to_list() == [True, True, False]
    number = asked.with_columns(answer=pl.lit("0.7"))
    assert holding(contexts, number)["holds"].to_list() == [False] * 3
