"""A context never goes over its budget, says nothing twice, and accounts for every line."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from datetime import UTC, datetime

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memlab.context import ITEM, Budget, Sources, assemble, count, recent_messages, relevant_messages
from memlab.context.filling import shares
from memlab.errors import DataError
from memlab.records import Dataset, Run, Turn, frame
from memlab.retrieve import Bench, sessions_from_turns

Items = Callable[..., pl.DataFrame]
NAMES = ("recent", "relevant", "summaries", "facts", "rollups")


def n_words(texts: Sequence[str]) -> list[int]:
    return [len(text.split()) for text in texts]


def n_characters(texts: Sequence[str]) -> list[int]:
    return [len(text) for text in texts]


def n_across_lines(texts: Sequence[str]) -> list[int]:
    """A whole that costs more than its parts."""
    return [len(text.split()) + 3 * text.strip("\n").count("\n") for text in texts]


awkward = st.one_of(
    st.text(max_size=60),
    st.sampled_from(
        ["", " ", "🙂" * 50, "x" * 3_000, "word " * 2_000, "\n\n", "[PAD] [SEP]", "\ud800", "a\u0301\u0000b"]
    ),
)
rows = st.lists(
    st.tuples(awkward, awkward, st.lists(st.sampled_from("abcd"), max_size=2), st.integers(-2, 5)), max_size=6
)
budgets = st.builds(Budget, **{name: st.integers(0, 60) for name in NAMES})


@given(st.fixed_dictionaries(dict.fromkeys(NAMES, rows)), budgets)
@settings(max_examples=15, deadline=None)
@pytest.mark.parametrize("counter", [count, n_characters, n_across_lines])
def test_the_whole_text_is_within_budget(counter, given: dict, budget: Budget) -> None:
    frames = {
        name: pl.DataFrame(
            [
                ("q", str(n), place, _storable(head), _storable(text), turns)
                for n, (head, text, turns, place) in enumerate(lines)
            ],
            schema=pl.Schema(list(ITEM.items())[:6]),
            orient="row",
        )
        for name, lines in given.items()
    }
    made = assemble(Sources(**frames), query_ids=["q"], budget=budget, count=counter)
    text, n_tokens = made.text("q"), made.texts["n_tokens"][0]
    assert n_tokens == counter([text])[0] <= budget.total
    offered = sum(map(len, given.values()))
    assert made.parts.height + made.left_out.height == offered == made.account["n_offered"].sum()
    assert made.account["given"].sum() <= budget.total


def _storable(text: str) -> str:
    """Frames cannot hold half of a surrogate pair."""
    return text.encode("utf-8", "replace").decode()


def test_a_turn_comes_once_and_a_summary_does_not_repeat_it(items: Items) -> None:
    said = "Mel: I paid $1,250 for two lamps in Oslo"
    made = assemble(
        Sources(
            recent=items((said, ["t1"])),
            relevant=items((said, ["t1"]), ("Ann: The boiler broke in May", ["t2"])),
            summaries=items(("Mel bought lamps.", ["t1"]), ("Mel and Ann talked of repairs.", ["t1", "t9"])),
            rollups=items(("Mel and Ann talked of repairs!", ["t8", "t9"])),
        )
    )
    assert made.parts.select("source", "ref").rows() == [("recent", "0"), ("relevant", "1"), ("summaries", "1")]
    assert made.left_out.rows() == [
        ("q", "relevant", "0", "its turn is there"),
        ("q", "summaries", "0", "its turn is there"),
        ("q", "rollups", "0", "near-identical"),
    ]


def test_a_fact_stays_unless_its_turn_says_the_same_words(items: Items) -> None:
    made = assemble(
        Sources(
            relevant=items(("Mel: I work at Acme", ["t1"])),
            facts=items(("Mel work at Acme", ["t1"]), ("Mel works at Acme", ["t1"])).with_columns(
                confidence=pl.lit(0.9), at=pl.lit(datetime(2023, 5, 8, tzinfo=UTC))
            ),
        )
    )
    assert made.parts.filter(source="facts")["ref"].to_list() == ["1"]


@pytest.mark.parametrize(
    ("one", "two", "same"),
    [
        ("I really like the blue lamp in the hall", "I really like the blue lamp in the hall!!", True),
        ("I paid 50 dollars for the old lamp there today", "I paid 60 dollars for the old lamp there today", False),
        ("I will go to the big lake with all of you", "I will not go to the big lake with all of you", False),
        ("Yes", "No", False),
    ],
)
def test_near_identical_spares_numbers_and_negations(items: Items, one: str, two: str, same: bool) -> None:
    made = assemble(Sources(relevant=items((one, ["a"]), (two, ["b"]))))
    assert made.parts.height == (1 if same else 2)


def test_unused_shares_flow_on_in_order(items: Items) -> None:
    lines = [(f"Mel: message {n} about something else entirely {n * 7}", [f"t{n}"]) for n in range(300)]
    alone = assemble(Sources(relevant=items(*lines)), budget=Budget())
    given = dict(alone.account.select("source", "given").iter_rows())
    assert given == {"recent": 0, "relevant": 1_100, "summaries": 0, "facts": 0, "rollups": 0}
    assert alone.texts["n_tokens"][0] > 1_000
    both = assemble(Sources(relevant=items(*lines), facts=items(*[(f"{text} (0.5)", []) for text, _ in lines])))
    assert dict(both.account.select("source", "given").iter_rows())["facts"] == 100


@given(st.tuples(*[st.integers(0, 50)] * 3), st.tuples(*[st.integers(0, 80)] * 3))
def test_shares_waste_nothing(wanted: tuple[int, ...], needed: tuple[int, ...]) -> None:
    wants, needs = dict(zip("abc", wanted, strict=True)), dict(zip("abc", needed, strict=True))
    given = shares(wants, needs, "abc")
    assert sum(given.values()) == min(sum(wanted), sum(needed))
    assert all(min(wants[s], needs[s]) <= given[s] <= needs[s] for s in "abc")


def test_a_long_message_is_cut_and_a_summary_is_not(items: Items) -> None:
    long = "Mel: " + "the harbour was full of boats and " * 400
    made = assemble(
        Sources(
            relevant=items((long, ["t1"]), ("Ann: short", ["t2"])),
            summaries=items((long.replace("boats", "ships 7"), ["t3"])),
        )
    )
    (part,) = made.parts.iter_rows(named=True)
    assert part["cut"]
    assert part["text"].endswith("…")
    assert part["source"] == "relevant"
    assert made.texts["n_tokens"][0] > 400
    assert set(made.left_out["reason"]) == {"no room"}


def test_a_cut_message_does_not_hide_the_summary_of_its_end(items: Items) -> None:
    long = "Mel: " + "the harbour was full of boats and " * 400 + "I moved to Oslo"
    summary = items(("Mel moved to Oslo.", ["t1"]))
    made = assemble(Sources(relevant=items((long, ["t1"])), summaries=summary))
    assert made.parts["source"].to_list() == ["relevant", "summaries"]


def test_lines_stand_in_order_of_time_under_their_day() -> None:
    rows = [("q", "2", 2, "[9 May]", "later", ["b"]), ("q", "1", 1, "[8 May]", "first", ["a"])]
    rows.append(("q", "3", 3, "[9 May]", "last", ["c"]))
    made = assemble(Sources(relevant=pl.DataFrame(rows, schema=pl.Schema(list(ITEM.items())[:6]), orient="row")))
    assert made.text("q").split("\n")[1:] == ["[8 May]", "first", "[9 May]", "later", "last"]


def test_questions_do_not_depend_on_each_other(talk_run: Run, talk_bench: Bench) -> None:
    relevant = relevant_messages(talk_run, talk_bench, k=40)
    together = assemble(Sources(relevant=relevant), budget=Budget().to(300))
    for query in talk_bench.queries["query_id"][:5]:
        alone = assemble(Sources(relevant=relevant.filter(query_id=query)), budget=Budget().to(300))
        assert alone.text(query) == together.text(query)
    assert together.texts["n_tokens"].max() <= 300


def test_the_account_adds_up_to_the_text(talk_run: Run, talk_bench: Bench) -> None:
    made = assemble(Sources(relevant=relevant_messages(talk_run, talk_bench, k=40)), budget=Budget().to(500))
    spent = made.account.group_by("query_id", maintain_order=True).agg(pl.col("n_tokens", "n_used", "n_no_room").sum())
    assert spent["n_tokens"].equals(made.texts["n_tokens"])
    assert spent["n_used"].sum() == made.parts.height
    assert spent["n_no_room"].sum() == made.left_out.filter(reason="no room").height > 0


def test_recent_messages_are_the_last_and_the_newest_count_most(talk: Dataset) -> None:
    turns = talk.turns.head(10).with_columns(query_id=pl.lit("q"))
    recent = recent_messages(turns, most=4)
    assert recent["ref"].to_list() == turns["turn_id"][-4:].to_list()[::-1]
    made = assemble(Sources(recent=recent), budget=Budget(recent=60, relevant=0, summaries=0, facts=0, rollups=0))
    assert made.parts["ref"][0] == turns["turn_id"][-1]


def test_a_question_without_sources_has_an_empty_context() -> None:
    made = assemble(Sources(), query_ids=["q"])
    assert made.text("q") == ""
    assert made.account["n_tokens"].sum() == 0
    with pytest.raises(DataError, match="no context was made for question 'p'"):
        made.text("p")


def test_budgets_keep_their_total() -> None:
    assert Budget().total == 1_100
    assert all(Budget().to(total).total == total for total in (0, 1, 7, 300, 4_001))
    assert asdict(Budget().to(2_200)) == {name: 2 * share for name, share in asdict(Budget()).items()}
    with pytest.raises(DataError, match="budget facts is -1"):
        Budget(facts=-1)


def test_wrong_sources_are_named(talk_run: Run, talk_bench: Bench) -> None:
    with pytest.raises(DataError, match="source 'facts' has no column 'query_id'"):
        assemble(Sources(facts=frame(Turn)))
    with pytest.raises(DataError, match="ranks sessions"):
        relevant_messages(sessions_from_turns(talk_run, talk_bench), talk_bench)
