"""Sessions, weeks, months."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import memlab
from memlab.datasets import load
from memlab.errors import DataError
from memlab.records import Node, Session, Turn, frame, schema
from memlab.rollup import rollup

SETTINGS = settings(max_examples=5, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
WORDS = ["I moved to Oslo in May.", "Which garden tools did you buy?", "We decided to go with the blue tent.", "Hi!"]


def weeks(nodes: pl.DataFrame, kind: str = "week") -> list[list[str]]:
    """Give the sessions of each period by their bare names."""
    rows = nodes.filter(pl.col("kind") == kind)
    return [list(dict.fromkeys(turn.split("/")[1] for turn in turns)) for turns in rows["turns"]]


def test_weeks_begin_on_monday_where_the_owner_lives(talk: Any, laws: Any) -> None:
    turns = talk(
        ("sat", "2024-03-02 12:00", ["Ann: I sold my car."]),
        ("late", "2024-03-03 23:30", ["Ann: I bought a bike."]),
        ("mon", "2024-03-04 12:00", ["Ann: I rode to work."]),
    )
    assert weeks(rollup(turns)) == [["sat", "late"], ["mon"]]
    assert weeks(rollup(turns, tz="Europe/Oslo")) == [["sat"], ["late", "mon"]], "it is Monday in Oslo by then"
    assert weeks(rollup(turns, tz="America/New_York")) == [["sat", "late"], ["mon"]]
    assert weeks(rollup(turns, period="day", tz="Europe/Oslo"), "day") == [["sat"], ["late", "mon"]]
    nodes = rollup(turns, tz="Europe/Oslo")
    laws(nodes, turns)
    assert set(nodes.filter(pl.col("kind") == "week")["method"]) == {"weeks (Europe/Oslo)"}


def test_a_week_belongs_to_the_month_of_its_thursday(talk: Any) -> None:
    turns = talk(
        ("a", "2024-01-30 12:00", ["Ann: I sold my car."]),  # Tuesday; Thursday is 1 February
        ("b", "2024-02-14 12:00", ["Ann: I bought a bike."]),
        ("c", "2024-12-31 12:00", ["Ann: I rode to work."]),  # Thursday is 2 January 2025
        ("d", "2025-01-20 12:00", ["Ann: I fell off."]),
    )
    assert weeks(rollup(turns), "month") == [["a", "b"], ["c", "d"]]
    assert weeks(rollup(turns, period="day"), "month") == [["a"], ["b"], ["c"], ["d"]]


def test_sessions_without_dates_go_with_their_neighbours(talk: Any, laws: Any) -> None:
    turns = talk(
        ("first", None, ["Ann: I sold my car."]),
        ("a", "2024-03-05 12:00", ["Ann: I bought a bike."]),
        ("between", None, ["Ann: I rode to work."]),
        ("b", "2024-03-20 12:00", ["Ann: I fell off."]),
        ("last", None, ["Ann: I walk now."]),
    )
    nodes = rollup(turns)
    laws(nodes, turns)
    assert weeks(nodes) == [["first", "a", "between"], ["b", "last"]]
    undated = turns.with_columns(timestamp=pl.lit(None, turns.schema["timestamp"]))
    nodes = rollup(undated)
    assert weeks(nodes) == [["first", "a", "between", "b", "last"]]
    assert nodes.filter(pl.col("kind") != "session")["method"].to_list() == ["undated", "undated"]
    day = datetime(2024, 3, 5, tzinfo=UTC)
    known = frame(Session, [Session("u/b", "u", 4, day, None, 1, ["Ann"])])
    dated = rollup(undated, sessions=known).filter(pl.col("kind") == "session")
    assert dated["start"].to_list()[3] == day, "the session's own date stands where turns have none"


def test_sessions_out_of_order_are_put_in_order(talk: Any, laws: Any) -> None:
    turns = talk(
        ("b", "2024-03-12 12:00", ["Ann: I sold my car."]),
        ("a", "2024-03-05 12:00", ["Ann: I bought a bike."]),
    )
    nodes = rollup(turns)
    assert weeks(nodes) == [["a"], ["b"]]
    assert nodes.filter(pl.col("kind") == "month")["turns"].to_list() == [["u/a/1", "u/b/1"]]


def test_questions_are_carried_until_something_answers_them(talk: Any) -> None:
    turns = talk(
        ("a", "2024-03-05 12:00", ["Ann: Which adoption agency will you pick?"]),
        ("b", "2024-03-12 12:00", ["Mel: I baked bread with walnuts today."]),
        ("c", "2024-03-19 12:00", ["Mel: I picked the adoption agency in Bergen."]),
        ("d", "2024-04-09 12:00", ["Ann: That sounds lovely."]),
    )
    nodes = rollup(turns)
    open_in = nodes.filter(pl.col("kind") == "week").select("open_questions", "open_question_evidence").rows()
    asked = (["Ann: Which adoption agency will you pick?"], [["u/a/1"]])
    assert open_in == [asked, asked, ([], []), ([], [])]
    of_sessions = nodes.filter(pl.col("kind") == "session")["open_questions"].list.len().to_list()
    assert of_sessions == [1, 0, 0, 0], "a session has its own alone"
    assert nodes.filter(pl.col("kind") == "month")["open_questions"].list.len().to_list() == [0, 0]


def test_decisions_and_topics_stand_beside_the_text(talk: Any) -> None:
    turns = talk(
        (
            "a",
            "2024-03-05 12:00",
            ["Ann: We decided to go with the blue tent.", "Mel: The blue tent holds four people."],
        ),
        ("b", "2024-03-06 12:00", ["Ann: I finally decided to sell the old boat."]),
    )
    week = rollup(turns).filter(pl.col("kind") == "week").row(0, named=True)
    assert week["decisions"] == [
        "Ann: We decided to go with the blue tent.",
        "Ann: I finally decided to sell the old boat.",
    ]
    assert week["decision_evidence"] == [["u/a/1"], ["u/b/1"]]
    assert any("tent" in topic for topic in week["topics"])
    assert any("boat" in text for text in week["sentences"])


def test_a_quiet_week_keeps_the_whole_summary_of_its_session(talk: Any) -> None:
    lines = [f"Ann: I bought {n} blue lamps for room {n} in Oslo." for n in range(2, 40)]
    nodes = rollup(talk(("a", "2024-03-05 12:00", lines)))
    of = dict(nodes.select("kind", "sentences").iter_rows())
    assert of["session"] == of["week"] == of["month"]
    assert len(of["session"]) == 6


def test_a_new_session_writes_itself_its_week_and_its_month(counting: Any) -> None:
    data = memlab.sample(["owen"], turns=120)
    before = data.turns.filter(pl.col("session_id") != data.sessions["session_id"][-1])
    kept = rollup(before, summariser=counting)
    assert len(counting.calls) == 3, "one call a level"
    counting.calls.clear()
    nodes = rollup(data.turns, summariser=counting, previous=kept)
    assert sorted(counting.groups) == ["month", "session", "week"]
    counting.calls.clear()
    assert rollup(data.turns, summariser=counting, previous=nodes).equals(nodes)
    assert counting.calls == [], "nothing is new"
    assert rollup(data.turns, summariser=type(counting)()).equals(nodes)


def test_another_recipe_writes_everything_anew(counting: Any, talk: Any) -> None:
    turns = talk(("a", "2024-03-05 12:00", ["Ann: I sold my car."]))
    kept = rollup(turns, summariser=counting)
    counting.recipe = "another"
    counting.calls.clear()
    rollup(turns, summariser=counting, previous=kept)
    assert len(counting.groups) == 3


def test_what_was_written_in_anothers_place_is_tried_again(counting: Any, talk: Any) -> None:
    turns = talk(("a", "2024-03-05 12:00", ["Ann: I sold my car."]))
    kept = rollup(turns, summariser=counting)
    fallen = kept.with_columns(
        service=pl.when(pl.col("kind") == "week").then(pl.lit("extractive instead of x")).otherwise("service")
    )
    counting.calls.clear()
    assert rollup(turns, summariser=counting, previous=fallen).equals(kept)
    assert counting.groups == ["week"]


DAYS = st.one_of(st.none(), st.integers(0, 80))
SESSIONS = st.lists(st.tuples(DAYS, st.lists(st.integers(0, 3), min_size=1, max_size=3)), min_size=1, max_size=5)


@SETTINGS
@given(SESSIONS, st.integers(0, 4), st.sampled_from(["day", "week"]), st.sampled_from(["UTC", "Asia/Tokyo"]))
def test_incremental_equals_from_scratch(
    counting: Any, laws: Any, talk: Any, sessions: list[Any], known: int, period: str, tz: str
) -> None:
    start = datetime(2024, 1, 1, 20).timestamp()
    rows = [
        (
            f"s{i}",
            None if day is None else datetime.fromtimestamp(start + day * 86_400).isoformat(),
            [f"{'Ann' if n % 2 else 'Mel'}: {WORDS[word]} ({i})" for n, word in enumerate(words)],
        )
        for i, (day, words) in enumerate(sessions)
    ]
    turns = talk(*rows)
    whole = rollup(turns, period=period, tz=tz, summariser=counting)
    laws(whole, whole.filter(pl.col("level") == 0).select(turn_id="turns", scope="scope").explode("turn_id"))
    earlier = rollup(talk(*rows[:known]), period=period, tz=tz, summariser=counting)
    assert rollup(turns, period=period, tz=tz, summariser=counting, previous=earlier).equals(whole)
    for kind in (period, "month"):
        at = {turn: i for i, turn in enumerate(whole.filter(pl.col("level") == 0)["turns"].explode())}
        held = [[at[turn] for turn in turns] for turns in whole.filter(pl.col("kind") == kind)["turns"]]
        assert [place for part in held for place in part] == list(range(turns.height)), "contiguous in time"


def test_no_turns_and_no_words(talk: Any) -> None:
    assert dict(rollup(frame(Turn)).schema) == schema(Node)
    nodes = rollup(talk(("a", "2024-03-05 12:00", ["Ann: "])))
    assert nodes["text"].to_list() == ["", "", ""]


@pytest.mark.parametrize("bad", ["Mars/Olympus", "", "../etc/passwd"])
def test_time_zones_that_are_none(talk: Any, bad: str) -> None:
    with pytest.raises(DataError, match="is no time zone"):
        rollup(talk(("a", None, ["Ann: Hi."])), tz=bad)


def test_other_periods(talk: Any) -> None:
    with pytest.raises(DataError, match="period is 'year'; choose from day, week"):
        rollup(talk(("a", None, ["Ann: Hi."])), period="year")


@pytest.mark.slow
@pytest.mark.shared_data
def test_weeks_of_real_conversations(locomo_path: Path, laws: Any) -> None:
    data = load(locomo_path)
    nodes = rollup(data.turns, tz="America/Chicago")
    laws(nodes, data.turns)
    assert nodes.filter(pl.col("kind") == "session").height == data.sessions.height
    assert nodes["text"].str.len_chars().min() > 0
