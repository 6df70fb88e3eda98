"""What supersedes what: the rules, one story each, and laws that hold for any facts."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import polars as pl
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from memlab.errors import DataError
from memlab.knowledge.supersession import Resolved, active_facts, count_undated_facts, resolve
from memlab.records import Fact, frame

DAY0 = datetime(2025, 1, 1, tzinfo=UTC)
A, S, E, X, R, C = "active", "superseded", "ended", "closing", "repeat", "corrected"


def _facts(*rows: tuple, late: dict[int, int] | None = None) -> pl.DataFrame:
    """Rows of (day, predicate, object) or (day, predicate, object, subject); ``late``: place → days until recorded."""
    made = []
    for i, (day, predicate, obj, *subject) in enumerate(rows):
        said = DAY0 + timedelta(days=day)
        recorded = said + timedelta(days=(late or {}).get(i, 0))
        who = subject[0] if subject else "Ann"
        made.append(
            Fact(f"f{i}", "u", who, predicate, obj, "stated", [f"u/s/{i}"], said, recorded, "Ann")
        )
    return frame(Fact, made)


def _held(resolved: Resolved, day: float | None = None) -> list[str]:
    as_of = None if day is None else DAY0 + timedelta(days=day)
    return active_facts(resolved, as_of=as_of)["object"].to_list()


def _status(resolved: Resolved) -> list[str]:
    return resolved.facts["status"].to_list()


def test_one_value_supersedes_and_the_same_reinforces_once_a_turn() -> None:
    facts = _facts(
        (0, "works at", "Acme"),
        (9, "is working at", "the ACME"),
        (9, "works at", "Acme"),
        (20, "works at", "Bolt"),
    )
    # The third was read from the turn of the second, too.
    facts = facts.with_columns(
        evidence=pl.Series([["u/s/0"], ["u/s/1"], ["u/s/1", "u/s/2"], ["u/s/3"]])
    )
    resolved = resolve(facts)
    assert _status(resolved) == [S, R, R, A]
    assert resolved.facts["n_reinforced"].to_list() == [1, 0, 0, 0]
    assert resolved.facts["last_access"][0] == DAY0 + timedelta(days=9)
    (closing,) = resolved.log.select("old", "new", "at", "evidence", "by").rows()
    assert closing == ("f0", "f3", DAY0 + timedelta(days=20), ["u/s/3"], "Ann")
    both = _facts((0, "lives with", "Ann"), (0, "lives with", "Bo")).with_columns(
        evidence=pl.lit(["u/s/0"])
    )
    assert _status(resolve(both)) == [A, A]
    jobs = _facts(
        *(
            (day, "works at", name)
            for day, name in ((0, "Acme"), (0, "Bolt"), (9, "Bolt"), (20, "Cord"))
        )
    )
    jobs = jobs.with_columns(session_id=pl.Series(["u/s", "u/s", "u/t", "u/u"]))
    assert (_held(resolve(jobs), 10), _status(resolve(jobs))) == (["Acme", "Bolt"], [S, S, R, A])
    homes = jobs.with_columns(predicate=pl.lit("lives in"))
    assert _held(resolve(homes), 10) == ["Bolt"]
    leaves = _facts(
        (0, "works at", "Acme"), (9, "reports to", "Uma"), (9, "no longer works at", "Acme")
    )
    leaves = leaves.with_columns(session_id=pl.Series(["u/s", "u/t", "u/t"]))
    assert _status(resolve(leaves)) == [E, A, X]


def test_a_late_older_statement_is_superseded_from_the_start() -> None:
    facts = _facts(
        (0, "works at", "Acme"), (50, "works at", "Bolt"), (20, "works at", "Cord"), late={2: 100}
    )
    resolved = resolve(facts)
    assert (_held(resolved), _held(resolved, 30)) == (["Bolt"], ["Cord"])
    assert "arrived late" in resolved.log.filter(pl.col("old") == "f2")["rule"][0]
    then = DAY0 + timedelta(days=30)
    assert active_facts(resolve(facts, as_of=then), as_of=then)["object"].to_list() == ["Acme"]


STORIES = {
    "an end": ([E, X], "works at = Acme; no longer works at = Acme"),
    "an end in the past": ([E, X], "works at = Acme; used to work at = Acme"),
    # A plain denial goes on to hold by itself.
    "a denial": ([E, A], "works at = Acme; does not work at = Acme"),
    "an end names its value": ([S, A, X], "works at = Acme; works at = Bolt; used to work at = Acme"),
    "used to something is no end": ([A], "is used to = noise"),
    "numbers are values": ([S, R, A], "earns = $1,250; earns = 1250.00 dollars; earns = $1,260"),
    "who is together again has not broken up": ([S, S, A], "is dating = Sam; broke up with = Sam; lives with = Sam"),
    "who leaves a job leaves its boss": ([E, E, X], "works at = Acme; reports to = Ida; no longer works at = Acme"),
    "one count": ([S, A], "has = two cats; has = three cats"),
    "one code": ([S, A], "Mel's door code: is = 12u34; Mel's door code: is = 44bc12"),
    "several sisters": ([A, A], "Mel's sister: is = Ann; Mel's sister: is = Bea"),
    "one value that says more": ([A, A], "lives in = Leeds; lives in = the centre of Leeds"),
    "an end of one of several": ([A, X], "plays = guitar; no longer plays = guitar in the Ravens"),
    "an end of the whole": ([E, X], "plays = guitar in the Ravens; no longer plays = guitar"),
    "an end in more words": ([E, X], "works at = Acme; no longer works at = Acme in Oslo"),
    "an end of one debt": ([E, X], "owes = Jos 118; no longer owes = Jos 118 for the ticket"),
    "a plan that has come about": ([S, A], "plans to move to = Oslo; moved to = Oslo"),
    "a plan that nobody names again": (["expired", A, A], "plans to buy = a van; enjoys = chess; enjoys = golf"),
    "a correction of a correction": (
        [C, C, A], "lives in = Oslo; lives in = not Oslo but Bergen; lives in = not Bergen but Turku",
    ),
    "a new boss is no second one": ([S, A], "Mel's manager: is = Ida; Mel's new boss: is = Uma"),
    "a holiday moves nobody": ([A, A], "lives in = Oslo; stays at = a hotel in Rome"),
    "a denial of a part": ([A, A], "likes = wine; does not like = red wine"),
    # The correction holds from when the wrong value was said, so that the denial comes after it.
    "a correction and a denial": (
        [E, C, A, R], "works at = Acme; works at = Bolt; does not work at = Acme; works at = not Bolt but Acme",
    ),
}  # fmt: skip


@pytest.mark.parametrize("story", STORIES)
def test_a_story(story: str) -> None:
    statuses, text = STORIES[story]
    said = [re.fullmatch(r"(?:(.*): )?(.*) = (.*)", each).groups() for each in text.split("; ")]
    facts = _facts(
        *((60 * n, predicate, obj, who or "Ann") for n, (who, predicate, obj) in enumerate(said))
    )
    assert _status(resolve(facts)) == statuses


def test_a_correction_holds_in_the_past_too() -> None:
    facts = _facts((0, "lives in", "Oslo"), (3, "lives in", "not Oslo, but Bergen"))
    resolved = resolve(facts)
    assert resolved.facts["superseded_by"][0] == "f1"
    assert resolved.facts["valid_from"][1] == DAY0
    assert active_facts(resolved, as_of=DAY0 + timedelta(days=1))["fact_id"].to_list() == ["f1"]
    assert _held(resolve(facts, as_of=DAY0 + timedelta(days=1))) == ["Oslo"]
    ended = resolve(
        _facts(
            (0, "works at", "Acme"), (5, "works at", "Cord"), (6, "works at", "not Acme but Bolt")
        )
    )
    assert (_held(ended), _held(ended, 3)) == (["Cord"], ["not Acme but Bolt"])


@pytest.mark.parametrize(
    ("values", "undone", "held"),
    [
        (["Acme", "Bolt", "Cord"], ("f1", "f2"), ["Bolt", "Cord"]),
        # An undo is about values, in whatever words they are said, and however often.
        (["the ACME", "Acme", "Bolt", "Bolt"], ("f0", "f2"), ["the ACME", "Bolt"]),
        (["Acme", "Bolt", "no longer Acme", "Acme", "Bolt"], ("f0", "f1"), ["Acme", "Bolt"]),
        (["Oslo", "not Oslo but Bergen"], ("f0", "f1"), ["Oslo", "not Oslo but Bergen"]),
        # The correction is closed by what had closed the wrong value.
        (["Oslo", "Bergen", "not Oslo but Turku"], ("f2", "f1"), ["Bergen", "not Oslo but Turku"]),
        # The value from before the wrong one goes on, and is closed by what had closed the wrong
        # one.
        (["Oslo", "Bergen", "Turku", "not Bergen but Oslo"], ("f0", "f2"), ["Oslo", "Turku"]),
    ],
)
def test_an_undone_closing_does_not_count(
    values: list[str], undone: tuple[str, str], held: list[str]
) -> None:
    said = [
        ("no longer works at", v[10:]) if v.startswith("no longer") else ("works at", v)
        for v in values
    ]
    facts = _facts(*((day, *each) for day, each in enumerate(said)))
    back = resolve(facts, undone=[undone])
    assert _held(back) == held
    assert undone not in back.log.select("old", "new").rows()
    # Another scope's values are its own, and the order of rows does not matter.
    other = facts.with_columns(scope=pl.lit("v"), fact_id="v" + pl.col("fact_id"))
    both = resolve(pl.concat([other, facts.reverse()]), undone=[undone])
    assert sorted(active_facts(both).filter(scope="u")["object"]) == sorted(held)
    assert both.log.filter(scope="v").height == resolve(facts).log.height


def test_no_facts_resolve_and_bad_facts_are_refused() -> None:
    empty, facts = resolve(frame(Fact)), _facts((0, "works at", "Acme"))
    assert empty.facts.is_empty()
    assert empty.log.is_empty()
    for wrong, word in (
        (facts.drop("object"), "object"),
        (pl.concat([facts, facts]), "twice"),
    ):
        with pytest.raises(DataError, match=word):
            resolve(wrong)


def test_facts_without_a_date_stand_in_the_order_of_the_rows_and_get_none() -> None:
    said = _facts((0, "lives in", "Oslo"), (1, "lives in", "Bodø"), (2, "lives in", "Narvik"))
    for column in ("asserted_at", "recorded_at"):
        imported = said.with_columns(asserted_at=None, recorded_at=said["asserted_at"].reverse())
        undated = imported.with_columns(pl.lit(None).alias(column))
        resolved = resolve(undated)
        assert _held(resolved) == ["Narvik"]
        rows = resolved.facts.select("said_at", "valid_from", "valid_to", "last_access")
        assert rows.null_count().row(0) == (3, 3, 3, 3)
        assert resolved.log["at"].null_count() == 2
        assert resolve(undated, as_of=said["asserted_at"].max()).facts.is_empty()
        assert count_undated_facts(undated) == 3
    # One of them between two that are dated takes its place there, and does not end what came later.
    mixed = said.with_columns(
        asserted_at=pl.when(pl.col("object") != "Bodø").then("asserted_at"), recorded_at=None
    )
    resolved = resolve(mixed)
    assert _held(resolved) == ["Narvik"]
    assert resolved.log["new_object"].to_list() == ["Bodø", "Narvik"]
    assert resolve(mixed.head(2)).facts.filter(status="active")["object"].to_list() == ["Bodø"]


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
    # Nothing holds before it began, one employer holds at a time, each closing is logged once and
    # closes something earlier.
    assert facts.filter(pl.col("valid_to") < pl.col("valid_from")).is_empty()
    held = active_facts(resolved, as_of=DAY0 + timedelta(days=day, hours=1))
    assert held.filter(pl.col("predicate").str.contains("works at")).height <= 1
    closed = facts.filter(pl.col("status").is_in(["superseded", "ended"]))["fact_id"].to_list()
    assert set(closed) <= set(resolved.log["old"])
    assert resolved.log.filter(pl.col("rule") != "corrected")["old"].is_unique().all()
    assert sum(facts["n_reinforced"]) == facts.filter(pl.col("status") == "repeat").height
