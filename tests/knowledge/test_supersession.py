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
    """Rows of (day, predicate, object) about one person; ``late``: place → days until it was recorded."""
    made = []
    for i, (day, predicate, obj, *text) in enumerate(rows):
        said = DAY0 + timedelta(days=day)
        recorded = said + timedelta(days=(late or {}).get(i, 0))
        evidence = [f"u/s/{i}"]
        made.append(
            Fact(f"f{i}", "u", "Ann", predicate, obj, "stated", evidence, said, recorded, "Ann", *(text or [None]))
        )
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
    told = _facts((0, "works at", "Acme"), (0, "is working at", "Acme"), (5, "works at", "Acme"))
    evidence = pl.Series([["u/s/0"], ["u/s/0", "u/s/1"], ["u/s/2"]])
    resolved = resolve(told.with_columns(evidence=evidence))
    assert _status(resolved) == ["active", "repeat", "repeat"]
    assert resolved.facts["n_reinforced"].to_list() == [1, 0, 0]
    assert resolved.facts["last_access"][0] == DAY0 + timedelta(days=5)


def test_unknown_predicates_invalidate_nothing() -> None:
    resolved = resolve(_facts((0, "enjoys", "chess"), (9, "enjoys", "golf"), (20, "enjoys", "tea")))
    assert _held(resolved) == ["chess", "golf", "tea"]
    assert resolved.log.is_empty()


def test_a_late_older_statement_is_superseded_from_the_start() -> None:
    facts = _facts((0, "works at", "Acme"), (50, "works at", "Bolt"), (20, "works at", "Cord"), late={2: 100})
    resolved = resolve(facts)
    assert _held(resolved) == ["Bolt"]
    assert _held(resolved, 30) == ["Cord"]
    assert "arrived late" in resolved.log.filter(pl.col("old") == "f2")["rule"][0]
    then = DAY0 + timedelta(days=30)
    assert active(resolve(facts, as_of=then), as_of=then)["object"].to_list() == ["Acme"]


@pytest.mark.parametrize(
    ("predicate", "obj"),
    [
        ("no longer works at", "Acme"),
        ("used to work at", "Acme"),
        ("does not work at", "Acme"),
    ],
)
def test_an_end_without_a_new_value(predicate: str, obj: str) -> None:
    resolved = resolve(_facts((0, "works at", "Acme"), (9, predicate, obj)))
    # A plain denial goes on to hold by itself.
    assert _status(resolved) == ["ended", "active" if predicate == "does not work at" else "closing"]
    assert _held(resolved, 5) == ["Acme"]
    assert _held(resolved) == (["Acme"] if predicate == "does not work at" else [])


def test_an_end_names_its_value() -> None:
    resolved = resolve(_facts((0, "works at", "Acme"), (9, "works at", "Bolt"), (20, "used to work at", "Acme")))
    assert _held(resolved) == ["Bolt"]
    assert resolved.log["new"].to_list() == ["f1"]


def test_used_to_something_is_no_end() -> None:
    assert _held(resolve(_facts((0, "is used to", "noise")))) == ["noise"]


def test_a_correction_holds_in_the_past_too() -> None:
    facts = _facts((0, "lives in", "Oslo"), (3, "lives in", "not Oslo, but Bergen"))
    resolved = resolve(facts)
    assert _status(resolved) == ["corrected", "active"]
    assert len(_held(resolved, 1)) == 1
    assert resolved.facts["superseded_by"][0] == "f1"
    assert active(resolved, as_of=DAY0 + timedelta(days=1))["fact_id"].to_list() == ["f1"]
    before = resolve(facts, as_of=DAY0 + timedelta(days=1))
    assert _held(before) == ["Oslo"]


def test_a_correction_of_a_correction_goes_back_to_the_first() -> None:
    facts = _facts(
        (0, "lives in", "Oslo"), (1, "lives in", "not Oslo but Bergen"), (2, "lives in", "not Bergen but Turku")
    )
    resolved = resolve(facts)
    assert _status(resolved) == ["corrected", "corrected", "active"]
    assert resolved.facts["valid_from"][2] == DAY0


def test_an_undone_closing_does_not_count() -> None:
    facts = _facts((0, "works at", "Acme"), (9, "works at", "Bolt"), (20, "works at", "Cord"))
    back = resolve(facts, undone=[("f0", "f1")])
    assert _held(back, 15) == ["Acme", "Bolt"]
    assert sorted(back.log.select("old", "new").rows()) == [("f0", "f2"), ("f1", "f2")]
    twice = _facts((0, "works at", "Acme"), (9, "works at", "Bolt"), (10, "works at", "Bolt"))
    again = resolve(twice, undone=[("f0", "f1")])
    assert _held(again) == ["Acme", "Bolt"]


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
    ],
)
def test_an_undo_counts_after_a_correction(rows: list[str], undone: tuple[str, str], held: list[str]) -> None:
    facts = _facts(*((day, "lives in", obj) for day, obj in enumerate(rows)))
    assert undone in resolve(facts).log.select("old", "new").rows()
    back = resolve(facts, undone=[undone])
    assert _held(back) == held
    assert undone not in back.log.select("old", "new").rows()


def test_a_value_that_goes_on_after_a_correction_is_listed_once_and_a_denial_stays_apart() -> None:
    again = ["Oslo", "Bergen", "Oslo", "not Bergen but Turku"]
    facts = _facts(*((day, "lives in", obj) for day, obj in enumerate(again)))
    assert _held(resolve(facts, undone=[("f0", "f3")])) == ["Oslo"]
    said = [("works at", "Acme"), ("works at", "Bolt"), ("does not work at", "Acme"), ("works at", "not Bolt but Acme")]
    denied = _facts(*((day, *each) for day, each in enumerate(said)))
    # The correction holds from when the wrong value was said, so that the denial comes after it.
    assert _status(resolve(denied)) == ["ended", "corrected", "active", "repeat"]


def test_undoing_an_end_or_a_correction_keeps_the_fact() -> None:
    ended = _facts((0, "works at", "Acme"), (9, "no longer works at", "Acme"), (20, "works at", "Acme"))
    back = resolve(ended, undone=[("f0", "f1")])
    assert _held(back, 15) == ["Acme"]
    assert _status(back) == ["active", "closing", "repeat"]
    wrong = _facts((0, "lives in", "Oslo"), (1, "lives in", "not Oslo but Bergen"))
    assert len(_held(resolve(wrong, undone=[("f0", "f1")]))) == 2


def test_numbers_are_values() -> None:
    resolved = resolve(_facts((0, "earns", "$1,250"), (5, "earns", "1250.00 dollars"), (9, "earns", "$1,260")))
    assert _status(resolved) == ["superseded", "repeat", "active"]


def test_scopes_and_order_of_rows_do_not_matter() -> None:
    facts = _facts((0, "works at", "Acme"), (9, "works at", "Bolt"), (12, "no longer works at", "Bolt"))
    other = facts.with_columns(scope=pl.lit("v"), fact_id="v" + pl.col("fact_id"))
    alone = resolve(facts)
    both = resolve(pl.concat([other, facts.reverse()]))
    state = ["fact_id", "status", "superseded_by", "valid_to"]
    assert (
        both.facts.filter(pl.col("scope") == "u")
        .select(state)
        .sort("fact_id")
        .equals(alone.facts.select(state).sort("fact_id"))
    )


def test_an_empty_frame_resolves() -> None:
    resolved = resolve(frame(Fact))
    assert resolved.facts.is_empty()
    assert resolved.log.is_empty()


def test_bad_facts_are_refused() -> None:
    facts = _facts((0, "works at", "Acme"))
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


def _active(*triples: tuple[str, str, str]) -> list[tuple[str, str]]:
    facts = [
        Fact(f"f{i}", "u", *triple, "stated", [f"u/{i}"], DAY0 + timedelta(days=i), speaker="Mel")
        for i, triple in enumerate(triples)
    ]
    return active(resolve(frame(Fact, facts))).select("predicate", "object").rows()


def test_who_is_together_again_has_not_broken_up() -> None:
    apart = (("Mel", "is dating", "Sam"), ("Mel", "broke up with", "Sam"))
    assert _active(*apart) == [("broke up with", "Sam")]
    assert _active(*apart, ("Mel", "lives with", "Sam")) == [("lives with", "Sam")]


@pytest.mark.parametrize(
    ("subject", "predicate", "old", "new"),
    [
        ("Mel's boss", "is", "Ida", "Ruth"),
        ("Mel", "reports to", "Ida", "Ruth"),
        ("Mel's choir", "is on", "Tuesdays", "Wednesdays"),
        ("Mel", "has", "two cats", "three cats"),
        ("Mel's door code", "is", "12u34", "44bc12"),
        ("Mel", "plans to move to", "Oslo", "Bergen"),
    ],
)
def test_one_value_at_a_time(subject: str, predicate: str, old: str, new: str) -> None:
    held = _active((subject, predicate, old), (subject, predicate, new))
    # Of plans one may have several.
    assert held == ([(predicate, old)] if "plans" in predicate else []) + [(predicate, new)]


def test_values_stand_beside_each_other_where_there_are_several() -> None:
    assert len(_active(("Mel's sister", "is", "Ann"), ("Mel's sister", "is", "Bea"))) == 2
    assert len(_active(("Mel", "lives in", "Leeds"), ("Mel", "lives in", "the centre of Leeds"))) == 2


def test_a_plan_ends_when_it_has_come_about() -> None:
    assert _active(("Mel", "plans to move to", "Oslo"), ("Mel", "moved to", "Oslo")) == [("moved to", "Oslo")]


def test_a_correction_of_what_has_ended_stays_in_the_past() -> None:
    resolved = resolve(_facts((0, "works at", "Acme"), (5, "works at", "Cord"), (6, "works at", "not Acme but Bolt")))
    assert _held(resolved) == ["Cord"]
    assert _held(resolved, 3) == ["not Acme but Bolt"]
