"""What is wrong with a proposal by itself."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from memlab.questions.proposal_screening import (
    GIVEN_AWAY,
    DroppedProposals,
    Proposal,
    drop_and_count_faulty_proposals,
)

ASKED_AT = datetime(2026, 4, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("language", "question", "answer", "is_given"),
    [
        ("en", "Since which day in September 2025 was the ceiling wet?", "7 September 2025", False),
        ("de", "Seit welchem Tag im September 2025 war es nass?", "7. September 2025", False),
        ("en", "Was it on 7 September 2025 that the ceiling was wet?", "7 September 2025", True),
        ("en", "Was tea out on 1 May?", "tea out", True),
        ("en", "How many of the 12 chairs were left?", "9 chairs", False),
    ],
)
def test_a_question_gives_its_answer_away_where_it_has_all_its_words_and_numbers(
    language: str, question: str, answer: str, is_given: bool
) -> None:
    about = ("p-1", "ann", "temporal", question, answer)
    proposal = Proposal(*about, ("ann/1",), ("says it",), (), (), ASKED_AT)
    dropped = DroppedProposals()
    kept = drop_and_count_faulty_proposals(
        [proposal], dropped, session_by_turn={"ann/1": "s1"}, language=language
    )
    assert dict(dropped.count_by_reason_sorted) == ({GIVEN_AWAY: 1} if is_given else {})
    assert kept == ([] if is_given else [proposal])
