"""What answers cost is counted wherever they are used, and what was not answered is asked for again."""

from __future__ import annotations

from typing import Any

from memlab.llm import ModelSpending, add_to_spending, track_spending
from memlab.llm.token_spending import get_or_make_result_with_spending

TOKENS = {("summary", "a"): (30, 2)}


def test_a_kept_result_counts_again_without_its_seconds() -> None:
    kept: dict[Any, Any] = {}
    made: list[str] = []

    def make() -> str:
        made.append("once")
        add_to_spending(TOKENS, seconds=1.5)
        return "gist"

    for seconds in (1.5, 0.0):
        with track_spending() as spent:
            assert get_or_make_result_with_spending(kept, "place", make) == "gist"
        assert spent == ModelSpending(TOKENS, seconds=seconds)
    assert made == ["once"]


def test_what_was_left_unanswered_is_made_again() -> None:
    kept: dict[Any, Any] = {}
    for _ in range(2):
        with track_spending() as spent:
            get_or_make_result_with_spending(
                kept, "place", lambda: add_to_spending({}, unanswered=1)
            )
        assert spent.unanswered == 1
    assert kept == {}
