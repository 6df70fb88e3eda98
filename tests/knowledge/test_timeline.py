"""The timeline: order, kinds, and what is left out."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import polars as pl
import pytest

from memlab.errors import DataError
from memlab.knowledge import resolve
from memlab.knowledge.timeline import TYPES, UNDATED, timeline
from memlab.records import Annotation, Dataset, Fact, Session, Turn, frame

DAY0 = datetime(2025, 1, 1, 9, tzinfo=UTC)


def day(n: float) -> datetime:
    return DAY0 + timedelta(days=n)


TURNS = frame(
    Turn,
    [
        Turn("u/s1/1", "u", "u/s1", 1, "Ann", "user", "I live in Oslo.", None, day(0)),
        Turn("u/s1/2", "u", "u/s1", 2, "Bo", "user", "Nice.", None, day(0) + timedelta(hours=1)),
        Turn("u/s2/1", "u", "u/s2", 1, "Ann", "user", "I moved to Bergen.", None, day(9)),
        Turn("u/s3/1", "u", "u/s3", 1, "Cy", "user", "Hello.", None, None),
    ],
)
SESSIONS = frame(
    Session,
    [
        Session("u/s1", "u", 1, day(0), day(0) + timedelta(hours=1), 2, ["Ann", "Bo"], summary="Ann told of Oslo."),
        Session("u/s2", "u", 2, day(9), day(9), 1, ["Ann"]),
        Session("u/s3", "u", 3, None, None, 1, ["Cy"]),
    ],
)
TOLD = frame(
    Annotation,
    [
        Annotation("a1", "u", "u/s1", "observation", "Ann", "Ann lives in Oslo.", ["u/s1/1"]),
        Annotation("a2", "u", "u/s1", "event", "Bo", "Bo visits.", []),
        Annotation("a3", "u", "u/s2", "observation", "Ann", "Ann is happy.", ["u/s2/1"]),
    ],
)
DATA = Dataset("d", "chatlog", TURNS, SESSIONS, annotations=TOLD)
RESOLVED = resolve(
    frame(
        Fact,
        [
            Fact(
                *("f1", "u", "Ann", "lives in", "Oslo", "stated", ["u/s1/1"], day(0)),
                text="Ann lives in Oslo.",
                session_id="u/s1",
            ),
            Fact("f2", "u", "Ann", "lives in", "Bergen", "stated", ["u/s2/1"], day(9), session_id="u/s2"),
        ],
    )
)


def test_everything_in_order_the_undated_last() -> None:
    rows = timeline(DATA, RESOLVED)
    assert rows.select("type", "text").rows() == [
        ("session", "2 turns of Ann, Bo"),
        ("event", "Bo visits."),
        ("fact", "Ann lives in Oslo"),
        ("summary", "Ann told of Oslo."),
        ("session", "1 turns of Ann"),
        ("observation", "Ann is happy."),
        ("fact", "Ann lives in Bergen"),
        ("supersession", "Ann lives in: Oslo → Bergen (another value)"),
        ("session", "1 turns of Cy"),
    ]
    assert rows["note"].to_list() == [None] * 8 + [UNDATED]
    assert rows["session_id"].to_list() == ["u/s1"] * 4 + ["u/s2"] * 4 + ["u/s3"]
    assert rows.filter(type="supersession")["evidence"].to_list() == [["u/s2/1"]]
    assert rows.filter(type="supersession")["at"].to_list() == [day(9)]


@pytest.mark.parametrize("kind", TYPES)
def test_one_kind(kind: str) -> None:
    rows = timeline(DATA, RESOLVED, types=[kind])
    assert rows["type"].unique().to_list() == [kind]
    # Alone, an observation is listed although a fact says the same.
    assert kind != "observation" or rows.height == 2


def test_without_knowledge_the_observations_remain() -> None:
    rows = timeline(DATA, types=["observation", "fact"])
    assert rows["text"].to_list() == ["Ann lives in Oslo.", "Ann is happy."]


def test_since_and_until_are_inclusive_and_leave_the_undated_out() -> None:
    assert timeline(DATA, RESOLVED, types=["session"], since=day(9))["session_id"].to_list() == ["u/s2"]
    assert timeline(DATA, RESOLVED, types=["session"], until=day(0))["session_id"].to_list() == ["u/s1"]
    assert timeline(DATA, RESOLVED, since=day(1), until=day(8)).is_empty()


def test_a_person_word_for_word() -> None:
    assert timeline(DATA, RESOLVED, person="bo")["type"].to_list() == ["session", "event", "summary"]
    with pytest.raises(DataError, match="nothing names 'An'"):
        timeline(DATA, RESOLVED, person="An")


def test_scopes_stay_together() -> None:
    parts = {name: getattr(DATA, name) for name in ("turns", "sessions", "annotations")}
    other = {
        name: part.with_columns(
            pl.lit("t").alias("scope"),
            *(pl.col(c).str.replace("^u/", "t/") for c in ("session_id", "turn_id") if c in part.columns),
        )
        for name, part in parts.items()
    }
    both = replace(DATA, **{name: pl.concat([parts[name], other[name]]) for name in parts})
    scopes = timeline(both, RESOLVED)["scope"].to_list()
    assert scopes == sorted(scopes, reverse=True)


def test_what_is_refused() -> None:
    with pytest.raises(DataError, match="type 'dream' is not known; choose from session, event"):
        timeline(DATA, types=["dream"])
    with pytest.raises(DataError, match="is later than until"):
        timeline(DATA, since=day(2), until=day(1))


def test_an_empty_dataset() -> None:
    assert timeline(Dataset("d", "chatlog", frame(Turn), frame(Session))).is_empty()
