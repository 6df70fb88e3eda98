"""What supersedes what: the rules, one story each, and laws that hold for any facts."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import polars as pl
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from memlab.errors import DataError
from memlab.knowledge.supersession import Resolved, active, resolve
from memlab.records import Fact, frame

DAY0 = datetime(2025, 1, 1, tzinfo=UTC)


def _facts(*rows: tuple, late: dict[int, int] | None = None) -> pl.DataFrame:
    """Rows of (day, predicate, object) or (day, predicate, object, subject); ``late``: place → days until recorded."""
    made = []
    for i, (day, predicate, obj, *subject) in enumerate(rows):
        said = DAY0 + timedelta(days=day)
        recorded = said + timedelta(days=(late or {}).get(i, 0))
        who = subject[0] if subject else "Ann"
        made.append(Fact(f"f{i}", "u", who, predicate, obj, "stated", [f"u/s/{i}"], said, recorded, "Ann"))
    return frame(Fact, made)


def _held(resolved: Resolved, day: float | None = None) -> list[str]:
    as_of = None if day is None else DAY0 + timedelta(days=day)
    return active(resolved, as_of=as_of)["object"].to_list()


def _status(resolved: Resolved) -> list[str]:
    return resolved.facts["status"].to_list()


def test_one_value_supersedes_and_the_same_reinforces() -> None:
    resolved = resolve(_facts((0, "works at", "Acme"), (9, "is working at", "the ACME"), (20, "works at", "Bolt")))
    assert _status(resolved) == ["superseded", "repeat", "active"]
    assert resolved.facts["n_reinforced"].to_list() == [1, 0, 0]
    assert resolved.facts["last_access"][0] == DAY0 + timedelta(days=9)
    assert resolved.log.select("old", "new", "at", "evidence", "by").row(0) == (
        "f0", "f2", DAY0 + timedelta(days=20), ["u/s/2"], "Ann",
    )  # fmt: skip


def test_two_readings_of_one_turn_are_heard_once() -> None:
    stated = _facts((0, "works at", "Acme"), (0, "is working at", "Acme"), (5, "works at", "Acme"))
    evidence = pl.Series([["u/s/0"], ["u/s/0", "u/s/1"], ["u/s/2"]])
    resolved = resolve(stated.with_columns(evidence=evidence))
    assert _status(resolved) == ["active", "repeat", "repeat"]
    assert resolved.facts["n_reinforced"].to_list() == [1, 0, 0]


def test_a_late_older_statement_is_superseded_from_the_start() -> None:
    facts = _facts((0, "works at", "Acme"), (50, "works at", "Bolt"), (20, "works at", "Cord"), late={2: 100})
    resolved = resolve(facts)
    assert _held(resolved) == ["Bolt"]
    assert _held(resolved, 30) == ["Cord"]
    assert "arrived late" in resolved.log.filter(pl.col("old") == "f2")["rule"][0]
    then = DAY0 + timedelta(days=30)
    assert active(resolve(facts, as_of=then), as_of=then)["object"].to_list() == ["Acme"]


A, S, E, X, R, C = "active", "superseded", "ended", "closing", "repeat", "corrected"
STORIES: dict[str, tuple[list[tuple], list[str]]] = {
    "of an unknown relation there are several": ([(0, "enjoys", "chess"), (9, "enjoys", "golf")], [A, A]),
    "an end": ([(0, "works at", "Acme"), (9, "no longer works at", "Acme")], [E, X]),
    "an end in the past": ([(0, "works at", "Acme"), (9, "used to work at", "Acme")], [E, X]),
    # A plain denial goes on to hold by itself.
    "a denial": ([(0, "works at", "Acme"), (9, "does not work at", "Acme")], [E, A]),
    "an end names its value": (
        [(0, "works at", "Acme"), (9, "works at", "Bolt"), (20, "used to work at", "Acme")], [S, A, X],
    ),
    "used to something is no end": ([(0, "is used to", "noise")], [A]),
    "numbers are values": (
        [(0, "earns", "$1,250"), (5, "earns", "1250.00 dollars"), (9, "earns", "$1,260")], [S, R, A],
    ),
    "who is together again has not broken up": (
        [(0, "is dating", "Sam"), (1, "broke up with", "Sam"), (2, "lives with", "Sam")], [S, S, A],
    ),
    "who leaves a job leaves its boss": (
        [(0, "works at", "Acme"), (1, "reports to", "Ida"), (2, "no longer works at", "Acme")], [E, E, X],
    ),
    "one boss": ([(0, "is", "Ida", "Mel's boss"), (1, "is", "Ruth", "Mel's boss")], [S, A]),
    "one day of the week": ([(0, "is on", "Tuesdays", "choir"), (1, "is on", "Wednesdays", "choir")], [S, A]),
    "one count": ([(0, "has", "two cats"), (1, "has", "three cats")], [S, A]),
    "one code": ([(0, "is", "12u34", "Mel's door code"), (1, "is", "44bc12", "Mel's door code")], [S, A]),
    "several sisters": ([(0, "is", "Ann", "Mel's sister"), (1, "is", "Bea", "Mel's sister")], [A, A]),
    "several plans": ([(0, "plans to move to", "Oslo"), (1, "plans to move to", "Bergen")], [A, A]),
    "one value that says more": ([(0, "lives in", "Leeds"), (1, "lives in", "the centre of Leeds")], [A, A]),
    "a plan that has come about": ([(0, "plans to move to", "Oslo"), (1, "moved to", "Oslo")], [S, A]),
    "a plan that nobody names again": ([(0, "plans to buy", "a van"), (200, "enjoys", "chess")], ["expired", A]),
    "a correction of a correction": (
        [(0, "lives in", "Oslo"), (1, "lives in", "not Oslo but Bergen"), (2, "lives in", "not Bergen but Turku")],
        [C, C, A],
    ),
    # The correction holds from when the wrong value was said, so that the denial comes after it.
    "a correction and a denial": (
        [(0, "works at", "Acme"), (1, "works at", "Bolt"), (2, "does not work at", "Acme"),
         (3, "works at", "not Bolt but Acme")],
        [E, C, A, R],
    ),
}  # fmt: skip


@pytest.mark.parametrize("story", STORIES)
def test_a_story(story: str) -> None:
    rows, statuses = STORIES[story]
    assert _status(resolve(_facts(*rows))) == statuses


def test_a_correction_holds_in_the_past_too() -> None:
    facts = _facts((0, "lives in", "Oslo"), (3, "lives in", "not Oslo, but Bergen"))
    resolved = resolve(facts)
    assert resolved.facts["superseded_by"][0] == "f1"
    assert resolved.facts["valid_from"][1] == DAY0
    assert active(resolved, as_of=DAY0 + timedelta(days=1))["fact_id"].to_list() == ["f1"]
    assert _held(resolve(facts, as_of=DAY0 + timedelta(days=1))) == ["Oslo"]
    ended = resolve(_facts((0, "works at", "Acme"), (5, "works at", "Cord"), (6, "works at", "not Acme but Bolt")))
    assert (_held(ended), _held(ended, 3)) == (["Cord"], ["not Acme but Bolt"])


def test_an_undone_closing_does_not_count() -> None:
    facts = _facts((0, "works at", "Acme"), (9, "works at", "Bolt"), (20, "works at", "Cord"))
    back = resolve(facts, undone=[("f0", "f1")])
    assert _held(back, 15) == ["Acme", "Bolt"]
    assert sorted(back.log.select("old", "new").rows()) == [("f0", "f2"), ("f1", "f2")]
    ended = _facts((0, "works at", "Acme"), (9, "no longer works at", "Acme"), (20, "works at", "Acme"))
    assert _status(resolve(ended, undone=[("f0", "f1")])) == [A, X, R]
    wrong = _facts((0, "lives in", "Oslo"), (1, "lives in", "not Oslo but Bergen"))
    assert len(_held(resolve(wrong, undone=[("f0", "f1")]))) == 2


def test_an_undo_is_about_values_in_whatever_words_they_are_said() -> None:
    rows = [
        (0, "works at", "the ACME"),
        (3, "works at", "Acme"),
        (9, "is working at", "Bolt"),
        (20, "works at", "Bolt"),
    ]
    for old, new in (("f0", "f2"), ("f1", "f3")):
        assert _held(resolve(_facts(*rows), undone=[(old, new)])) == ["the ACME", "Bolt"]
    left = [*rows, (30, "no longer works at", "Acme"), (40, "works at", "Acme"), (50, "works at", "Bolt")]
    assert _held(resolve(_facts(*left), undone=[("f0", "f2")])) == ["Acme", "Bolt"]
    # Another scope's values are its own.
    other = _facts(*rows).with_columns(scope=pl.lit("v"), fact_id="v" + pl.col("fact_id"))
    both = resolve(pl.concat([_facts(*rows), other]), undone=[("f0", "f2")])
    assert both.log["scope"].to_list() == ["v"]


@pytest.mark.parametrize(
    ("rows", "undone", "held"),
    [
        # The correction is closed by what had closed the wrong value.
        (["Oslo", "Bergen", "not Oslo but Turku"], ("f2", "f1"), ["Bergen", "not Oslo but Turku"]),
        # What the wrong value had closed is closed by the correction.
        (["Oslo", "Bergen", "not Bergen but Turku"], ("f0", "f2"), ["Oslo", "not Bergen but Turku"]),
        # The value from before the wrong one goes on, and is closed by what had closed the wrong one.
        (["Oslo", "Bergen", "Turku", "not Bergen but Oslo"], ("f0", "f2"), ["Oslo", "Turku"]),
        (["Oslo", "Bergen", "Oslo", "not Bergen but Turku"], ("f0", "f3"), ["Oslo"]),
    ],
)
def test_an_undo_counts_after_a_correction(rows: list[str], undone: tuple[str, str], held: list[str]) -> None:
    back = resolve(_facts(*((day, "lives in", obj) for day, obj in enumerate(rows))), undone=[undone])
    assert _held(back) == held
    assert undone not in back.log.select("old", "new").rows()


def test_scopes_and_order_of_rows_do_not_matter() -> None:
    facts = _facts((0, "works at", "Acme"), (9, "works at", "Bolt"), (12, "no longer works at", "Bolt"))
    other = facts.with_columns(scope=pl.lit("v"), fact_id="v" + pl.col("fact_id"))
    state = ["fact_id", "status", "superseded_by", "valid_to"]
    alone = resolve(facts).facts.select(state).sort("fact_id")
    both = resolve(pl.concat([other, facts.reverse()])).facts.filter(scope="u")
    assert both.select(state).sort("fact_id").equals(alone)


def test_no_facts_resolve_and_bad_facts_are_refused() -> None:
    empty, facts = resolve(frame(Fact)), _facts((0, "works at", "Acme"))
    assert empty.facts.is_empty()
    assert empty.log.is_empty()
    with pytest.raises(DataError, match="no column 'object'"):
        resolve(facts.drop("object"))
    with pytest.raises(DataError, match="stands twice"):
        resolve(pl.concat([facts, facts]))
    with pytest.raises(DataError, match="has no time"):
        resolve(facts.with_columns(asserted_at=None, recorded_at=None))


_ROW = st.tuples(
    st.integers(0, 60),
    st.sampled_from(["works at", "no longer works at", "now works at", "enjoys", "used to enjoy"]),
    st.sampled_from(["Acme", "Bolt", "Cord", "not Acme but Bolt", "not Bolt but Cord"]),
)


@settings(max_examples=12, deadline=None)
@given(rows=st.lists(_ROW, min_size=1, max_size=12), day=st.integers(0, 60))
@example([(0, "works at", obj) for obj in ("Bolt", "Acme", "Cord", "not Acme but Bolt")], 0)
@example([(0, "works at", obj) for obj in ("Bolt", "Acme", "Bolt", "not Acme but Bolt")], 0)
def test_laws(rows: list[tuple], day: int) -> None:
    resolved = resolve(_facts(*rows))
    facts = resolved.facts
    assert facts["fact_id"].to_list() == [f"f{i}" for i in range(len(rows))]
    # Nothing holds before it began, one employer holds at a time, each closing is logged once and closes something
    # earlier.
    assert facts.filter(pl.col("valid_to") < pl.col("valid_from")).is_empty()
    held = active(resolved, as_of=DAY0 + timedelta(days=day, hours=1))
    assert held.filter(pl.col("predicate").str.contains("works at")).height <= 1
    closed = facts.filter(pl.col("status").is_in(["superseded", "ended"]))["fact_id"].to_list()
    assert set(closed) <= set(resolved.log["old"])
    assert resolved.log.filter(pl.col("rule") != "corrected")["old"].is_unique().all()
    assert sum(facts["n_reinforced"]) == facts.filter(pl.col("status") == "repeat").height
