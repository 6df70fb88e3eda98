"""Whether a context holds an answer: values as values, all items of a list, and what cannot be looked for."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memlab.conversation import answer_presence, contains_answer
from memlab.conversation.containment import parse_gold
from memlab.errors import DataError
from memlab.experiments.contexts import evidence_contexts, swap_contexts, whole_history_contexts
from memlab.records import Dataset


@pytest.mark.parametrize(
    ("context", "answer", "expected"),
    [
        ("Mel: I have two dogs.", "2", True),
        ("Mel: It was $1,250 in all.", "1250 dollars", True),
        ("[7 May 2023]\nMel: We met today.", "May 2023", True),
        ("[14 September 2022]\nMel: We met last Friday.", "14September, 2022", True),
        ("Mel: We met last Friday (14 July 2023).", "The Friday before 15 July 2023", True),
        ("Mel: I play the clarinet.\nAnn: And the violin?", "clarinet and violin", True),
        ("Mel: I went running with Zoë’s dogs twice", "run with Zoë's dog 2 times (in June)", True),
        ("Mel: 18 days ago", "17 days ago. 18 days (including the last day) is also acceptable.", True),
        ("[8 May 2023]\nMel: We met last week.", "1 May 2023", False),
        ("Mel: We met in May 2023.", "7 May 2023", False),
        ("Mel: I sold a lamp.\nMel: Then I bought a chair.", "sold a chair", False),
        # A heading ends with its source.
        ("Earlier sessions:\n[7 May 2023]\nThey met.\nThis conversation:\nAnn has a desk", "Ann 7 May 2023", False),
    ],
)
def test_what_a_context_holds(context: str, answer: str, expected: bool) -> None:
    assert contains_answer(context, answer) is expected


def test_what_cannot_be_looked_for_is_never_held() -> None:
    explanation = "It's the key to making them feel welcome and coming back to the shop later"
    for answer in ("Likely yes, she loves it", "She quit because of the noise", explanation, None):
        assert parse_gold(answer) == ()
        assert not contains_answer(f"Mel: {answer}", answer)


@settings(max_examples=15)
@given(st.text(max_size=80), st.text(max_size=80), st.text(max_size=40))
def test_more_context_never_holds_less(context: str, more: str, answer: str) -> None:
    before = contains_answer(f"a\n{context}", answer)
    assert not before or contains_answer(f"{more.replace('[', '(')}\na\n{context}", answer)


def test_bounds_of_what_contexts_may_hold(talk: Dataset) -> None:
    contexts = {"whole": whole_history_contexts(talk), "evidence": evidence_contexts(talk)}
    contexts["other"] = swap_contexts(contexts["evidence"], talk.questions)
    rows = answer_presence(contexts, talk.questions).pivot("context", index="query_id", values="holds")
    assert rows["whole"].to_list() == rows["evidence"].to_list() == [True, True, True, None]
    assert not rows["other"].any()
    assert contexts["evidence"]["text"][0] == "[1 May 2026]\nAnn: I bought the oak desk for $210 today."
    with pytest.raises(DataError, match="ann/q0"):
        answer_presence({"mine": contexts["whole"][1:]}, talk.questions)
