"""Whether a context holds an answer: values as values, all items of a list, and what cannot be looked for."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memlab.conversation import holding, holds
from memlab.conversation.answers import gold
from memlab.errors import DataError
from memlab.experiments.contexts import evidence_only, of_another, whole_history
from memlab.records import Dataset


@pytest.mark.parametrize(
    ("context", "answer"),
    [
        ("Mel: I have two dogs.", "2"),
        ("Mel: It was $1,250 in all.", "1250 dollars"),
        ("Mel: We met on 7 May 2023.", "May 7, 2023"),
        ("[7 May 2023]\nMel: We met today.", "May 2023"),
        ("[7 May 2023]\nMel: We met today.", "2023"),
        ("Mel: We met on May 7.", "7 May, 2023"),
        ("[14 September 2022]\nMel: We met last Friday.", "14September, 2022"),
        ("Mel: We met last week (the week before 8 June 2023).", "The week before 9 June 2023"),
        ("Mel: We met last Friday (14 July 2023).", "The Friday before 15 July 2023"),
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
        ("Mel: I play the clarinet.", "clarinet and violin"),
        ("Mel: I sold a lamp.\nMel: Then I bought a chair.", "sold a chair"),
        ("Mel: I was at the store.", "restore"),
        ("Mel: Yes, I do.", "Yes"),
        ("", "Oslo"),
        ("Mel: Oslo", None),
    ],
)
def test_not_held(context: str, answer: str | None) -> None:
    assert not holds(context, answer)


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        ("Likely yes, she loves it", "yes/no"),
        ("November", "date"),
        ("She quit because of the noise", "open"),
        ("It's the key to making them feel welcome and coming back to the shop later", "open"),
        ("21 August, 2022", "date"),
        ("$1,250", "number"),
        ("painting, camping", "list"),
        (None, "none"),
    ],
)
def test_kinds_of_answers(answer: str | None, kind: str) -> None:
    assert gold(answer).kind == kind


@given(st.text(max_size=80), st.text(max_size=80), st.text(max_size=40))
def test_more_context_never_holds_less(context: str, more: str, answer: str) -> None:
    before = holds(f"a\n{context}", answer)
    assert not before or holds(f"{more.replace('[', '(')}\na\n{context}", answer)


def test_bounds_of_what_contexts_may_hold(talk: Dataset) -> None:
    contexts = {"whole": whole_history(talk), "evidence": evidence_only(talk)}
    contexts["other"] = of_another(contexts["evidence"], talk.questions)
    rows = holding(contexts, talk.questions).pivot("context", index="query_id", values="holds")
    assert rows["whole"].to_list() == [True, True, True, None]
    assert rows["evidence"].to_list() == [True, True, True, None]
    assert not rows["other"].any()
    assert contexts["evidence"]["text"][0] == "[1 May 2026]\nAnn: I bought the oak desk for $210 today."
    assert contexts["whole"]["text"][0].count("[") == 3


def test_a_context_that_is_missing_is_named(talk: Dataset) -> None:
    with pytest.raises(DataError, match="q1"):
        holding({"mine": pl.DataFrame({"query_id": ["q2"], "text": ["x"]})}, talk.questions)
    with pytest.raises(DataError, match="no column 'text'"):
        holding({"mine": pl.DataFrame({"query_id": ["q2"]})}, talk.questions)


def test_a_heading_ends_with_its_source() -> None:
    context = "Earlier sessions:\n[7 May 2023 | desks]\nThey met.\nKnown (how sure, from 0 to 1; when):\nAnn has a desk"
    assert holds(context, "7 May 2023")
    assert not holds(context, "Ann 7 May 2023")
    assert not holds(context, "1")
