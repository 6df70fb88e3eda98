"""Sessionization and the status of a session."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from random import Random

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memlab.errors import DataError
from memlab.records import Session, Turn, frame, schema
from memlab.sessions import sessionize, sessions_of

START = datetime(2026, 3, 1, 9, tzinfo=UTC)
GAP = timedelta(minutes=30)


def at(minutes: int | None) -> datetime | None:
    return None if minutes is None else START + timedelta(minutes=minutes)


def messages(rows: list[tuple[str, int | None, str | None]]) -> pl.DataFrame:
    """Build messages of (scope, minutes after the start, session name)."""
    times = [at(m) for _, m, _ in rows]
    return pl.DataFrame(
        {
            "id": [f"m{i}" for i in range(len(rows))],
            "scope": [r[0] for r in rows],
            "timestamp": pl.Series(times, dtype=pl.Datetime("us", "UTC")),
            "session": pl.Series([r[2] for r in rows], dtype=pl.String),
        }
    )


ROWS = st.lists(
    st.tuples(
        st.sampled_from(["a", "b"]),
        st.one_of(st.none(), st.integers(0, 200)),
        st.sampled_from([None, None, None, "s0001", "s0002", "trip"]),
    ),
    max_size=25,
)


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        # Scopes share neither sessions nor silence; rows need not be in order of time, and equal
        # times keep theirs.
        (
            [("a", 0, None), ("b", 10, None), ("a", 100, None)],
            [(0, "s0001", 1), (2, "s0002", 1), (1, "s0001", 1)],
        ),
        (
            [("a", 20, None), ("a", 0, None), ("a", 20, None)],
            [(1, "s0001", 1), (0, "s0001", 2), (2, "s0001", 3)],
        ),
        # A named session wins, and its name is not given again.
        (
            [("a", 0, None), ("a", 5, "s0001"), ("a", 500, "s0001"), ("a", 600, None)],
            [(0, "s0002", 1), (1, "s0001", 1), (2, "s0001", 2), (3, "s0003", 1)],
        ),
        # A message without a time stays with the one before it.
        (
            [("a", None, None), ("a", 0, None), ("a", 100, None), ("a", None, None)],
            [(0, "s0001", 1), (1, "s0001", 2), (2, "s0002", 1), (3, "s0002", 2)],
        ),
    ],
)
def test_messages_get_their_sessions(
    rows: list[tuple[str, int | None, str | None]], expected: list[tuple[int, str, int]]
) -> None:
    found = sessionize(messages(rows)).select("id", "session", "n").rows()
    assert found == [(f"m{place}", session, n) for place, session, n in expected]


def test_time_zones_become_utc_and_wrong_arguments_are_named() -> None:
    naive = pl.DataFrame({"scope": ["a"], "timestamp": [datetime(2026, 3, 1, 9)]})
    oslo = naive.with_columns(pl.col("timestamp").dt.replace_time_zone("Europe/Oslo"))
    assert sessionize(naive)["timestamp"].to_list() == [START]
    assert sessionize(oslo)["timestamp"].to_list() == [START - timedelta(hours=1)]
    for wrong, message in (
        ({}, "no column 'timestamp'"),
        ({"timestamp": ["2026"]}, "expected Datetime"),
    ):
        with pytest.raises(DataError, match=message):
            sessionize(pl.DataFrame({"scope": ["a"], **wrong}))
    with pytest.raises(DataError, match="not negative"):
        sessionize(messages([]), gap=timedelta(seconds=-1))


@given(ROWS)
def test_every_message_is_in_one_session_and_stays_in_it(
    rows: list[tuple[str, int | None, str | None]],
) -> None:
    result = sessionize(messages(rows))
    assert sorted(result["id"]) == sorted(f"m{i}" for i in range(len(rows)))
    assert result["session"].null_count() == 0
    for _, part in result.group_by("scope", "session", maintain_order=True):
        assert part["n"].to_list() == list(range(1, part.height + 1))
    named = {f"m{i}": (scope, session) for i, (scope, _, session) in enumerate(rows) if session}
    for message, *place in result.select("id", "scope", "session").iter_rows():
        assert named.get(message, tuple(place)) == tuple(place)
        assert message in named or tuple(place) not in named.values()
    assert sessionize(result).equals(result)


@given(st.lists(st.integers(0, 300), max_size=25, unique=True), st.randoms(use_true_random=False))
def test_a_gap_splits_whatever_the_order_of_rows(minutes: list[int], random: Random) -> None:
    result = sessionize(messages([("a", m, None) for m in minutes]))
    times, names = result["timestamp"].to_list(), result["session"].to_list()
    assert times == sorted(times)
    for (t, u), (r, s) in zip(pairwise(times), pairwise(names), strict=True):
        assert (r != s) == (u - t > GAP)
    random.shuffle(minutes)
    columns = ["timestamp", "session", "n"]
    assert (
        sessionize(messages([("a", m, None) for m in minutes]))
        .select(columns)
        .equals(result.select(columns))
    )


def test_sessions_are_placed_by_time_with_participants_and_summary() -> None:
    minutes = {"late": [500, 510], "early": [0, 5, 9], "untimed": [None]}
    rows = [
        Turn(f"a/{session}/{n}", "a", f"a/{session}", n, f"p{n % 2}", "user", "x", None, at(m))
        for session, times in minutes.items()
        for n, m in enumerate(times, 1)
    ]
    result = sessions_of(frame(Turn, rows), summaries={"a/late": "They talked."})
    assert result.select(
        "session_id", "n", "n_turns", "participants", "start", "status", "summary"
    ).rows() == [
        ("a/early", 1, 3, ["p1", "p0"], START, "closed", None),
        ("a/untimed", 2, 1, ["p1"], None, "closed", None),
        ("a/late", 3, 2, ["p1", "p0"], at(500), "summarized", "They talked."),
    ]
    assert result.schema == sessions_of(frame(Turn)).schema == pl.Schema(schema(Session))
    with pytest.raises(DataError, match="'a/none', which has no turns"):
        sessions_of(frame(Turn, rows), summaries={"a/none": "?"})
