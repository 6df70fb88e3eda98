"""A context never goes over its budget, says nothing twice, and accounts for every line."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import Any

import polars as pl
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from memlab.conversation import Budget, assemble_contexts, gather_lines, minilm_tokens
from memlab.conversation.context_lines import LINE_SCHEMA
from memlab.conversation.contexts import TITLES
from memlab.errors import DataError
from memlab.knowledge import confidence, resolve
from memlab.records import Fact, Node, Summary, frame, schema
from memlab.retrieve import Bench, bm25

DAY = datetime(2026, 5, 8, tzinfo=UTC)


def lines(*rows: tuple[Any, ...]) -> pl.DataFrame:
    """Make lines of the question ``q``: source, text, turns, and where they are given heading and hour."""
    made: list[Any] = []
    for n, (source, text, turns, *rest) in enumerate(rows):
        head, hour = rest or ("", 0)
        made.append(("q", source, str(n), head, text, turns, DAY + timedelta(hours=hour), None))
    return pl.DataFrame(made, LINE_SCHEMA, orient="row")


awkward = st.text(st.characters(exclude_categories=["Cs"]), max_size=60) | st.sampled_from(
    ["", " ", "🙂" * 50, "x" * 3_000, "word " * 2_000, "\n\n", "[PAD] [SEP]", "a\u0301\u0000b"]
)
turns = st.lists(st.sampled_from("abcd"), max_size=2)
row = st.tuples(st.sampled_from([*TITLES]), awkward, turns, awkward, st.integers(0, 3))
BETWEEN = [
    ("relevant", text, [], head, n) for n, (text, head) in enumerate(zip("abc", "ABA", strict=True))
]


@given(
    st.lists(row, max_size=12),
    st.builds(Budget, **dict.fromkeys(asdict(Budget()), st.integers(0, 60))),
)
@settings(max_examples=15)
@example(BETWEEN, Budget())
def test_the_whole_text_is_within_budget(rows: list[Any], budget: Budget) -> None:
    made = assemble_contexts(lines(*rows), query_ids=["q"], budget=budget)
    assert made.texts["n_tokens"][0] == minilm_tokens([made.texts["text"][0]])[0] <= budget.total
    assert made.parts["n_tokens"].sum() == made.texts["n_tokens"][0]
    assert made.parts.height + made.left_out.height == len(rows)


def test_a_turn_comes_once_and_a_summary_does_not_repeat_it() -> None:
    paid = "Mel: I paid $1,250 for two lamps in Oslo"
    made = assemble_contexts(
        lines(
            ("recent", paid, ["t1"]),
            ("relevant", paid, ["t1"]),
            ("relevant", "Ann: The boiler broke in May", ["t2"]),
            ("summaries", "Mel bought lamps.", ["t1"]),
            ("summaries", "Mel and Ann talked of repairs.", ["t1", "t9"]),
            ("rollups", "Mel and Ann talked of repairs!", ["t8", "t9"]),
        )
    )
    assert made.parts["ref"].to_list() == ["0", "2", "4"]
    reasons = dict(made.left_out.select("ref", "reason").iter_rows())
    assert reasons == {"1": "its turn is there", "3": "its turn is there", "5": "the same words"}


def test_room_that_a_source_does_not_need_goes_on_and_a_message_is_cut() -> None:
    many = [
        ("relevant", f"Mel: the number {n} is {n * 7}, as I said", [f"t{n}"]) for n in range(40)
    ]
    budget = Budget(recent=100, relevant=20, summaries=100, facts=0, rollups=0)
    assert assemble_contexts(lines(*many), budget=budget).texts["n_tokens"][0] > 200
    long = assemble_contexts(lines(("relevant", "Mel: " + "word " * 400, ["t"])), budget=budget)
    assert long.parts["cut"].to_list() == [True]
    assert 180 < long.texts["n_tokens"][0] <= 220


def test_every_source_is_gathered_and_stands_in_order(bench: Bench) -> None:
    about = {
        "scope": "ann",
        "topics": ["desk"],
        "start": DAY,
        "end": DAY,
        "evidence": [["elsewhere"]],
    }
    summary = about | {"session_id": "ann/s1", "sentences": ["Ann furnished her room."]}
    node = about | {"node_id": "n1", "kind": "week", "sentences": ["A week of rain and repairs."]}
    known = frame(Fact, [Fact("f1", "ann", "Ann", "bought", "oak desk", "stated", ["x"], DAY)])
    found = gather_lines(
        bm25(bench), bench,
        recent=bench.turns.filter(scope="bo").with_columns(query_id=pl.lit("ann/q0")),
        summaries=pl.DataFrame([summary], schema=schema(Summary)),
        rollups=pl.DataFrame([node], schema=schema(Node)),
        facts=confidence.score(resolve(known).facts, now=DAY),
    )  # fmt: skip
    text = assemble_contexts(found).texts.filter(query_id="ann/q0")["text"][0]
    assert [line for line in text.split("\n") if line.endswith(":")] == list(TITLES.values())
    assert "[1 May 2026]\nAnn: I bought the oak desk for $210 today" in text
    assert "Ann bought oak desk (1.00, 8 May 2026)" in text


def test_dates_are_written_out(bench: Bench) -> None:
    run = bm25(
        bench.with_queries(
            pl.DataFrame({"query_id": ["q"], "scope": ["bo"], "text": ["When was the vet?"]})
        )
    )
    texts = [
        assemble_contexts(gather_lines(run, bench, dates=dates)).texts["text"][0]
        for dates in (True, False)
    ]
    assert ["yesterday (1 May 2026)" in text for text in texts] == [True, False]


def test_bad_input(bench: Bench) -> None:
    with pytest.raises(DataError, match="sessions"):
        gather_lines(bm25(bench, level="session"), bench)
    with pytest.raises(DataError, match="ref"):
        assemble_contexts(lines().drop("ref"))
    with pytest.raises(DataError, match="below 0"):
        Budget(facts=-1)
