"""What supersedes what: the rules, one story each, and what holds for any facts."""

from __future__ import annotations

import time
from datetime import datetime, timedelta
from typing import Any

import numpy as np
import polars as pl
import pytest
from fact_stories import DAY0, story_facts

from memlab.errors import DataError
from memlab.knowledge.fact_keys import fold_text
from memlab.knowledge.supersession import Resolved, active_facts, count_undated_facts, resolve
from memlab.records import Fact, frame

A, D, U, S, E, R, C = "active", "due", "upcoming", "superseded", "ended", "repeat", "corrected"


def day(n: float) -> datetime:
    return DAY0 + timedelta(days=n)


def held(resolved: Resolved, n: float | None = None) -> list[str]:
    as_of = None if n is None else day(n)
    return active_facts(resolved, as_of=as_of)["value"].to_list()


def statuses(resolved: Resolved) -> list[str]:
    return resolved.facts["status"].to_list()


# Facts are said on 1, 11, 21, 31 January …; the last one is the present.
STORIES = {
    # Another value, and the same.
    "one value at a time": ([S, A], "employer = Acme; employer = Bolt"),
    "the same again": ([A, R, R], "employer = Acme; Employer = ACME; employer = “acme”."),
    "the same after another": ([S, S, A], "employer = Acme; employer = Bolt; employer = Acme"),
    "a word that only begins alike": ([S, A], "password = hunter; password = hunter2"),
    "an exclamation mark of a password": ([S, A], "password = hunter2; password = hunter2!"),
    "another number of a code": ([S, A], "staging: database = db-7; staging: database = db-9"),
    "several sisters": ([A, A], "sister = Bea | many; sister = Cleo | many"),
    "two in one turn": ([A, A], "housemate = Bo | turn:7; housemate = Cy | turn:7"),
    "one of two in one turn again": (
        [A, A, R],
        "housemate = Bo | turn:7; housemate = Cy | turn:7; housemate = Cy",
    ),
    "another subject": ([A, A], "Ann: home = Oslo; Bea: home = Rome"),
    "another slot": ([A, A], "home = Oslo; hotel = Rome"),
    "a German value": ([S, A], "Wohnort = München; Wohnort = Köln"),
    "a Spanish value": ([A, R], "dirección = ¿Calle Mayor 3?; Dirección = calle  mayor 3"),
    "a Japanese value": ([S, A], "住所 = 東京; 住所 = 大阪"),
    "a full-width value": ([A, R], "住所 = Ｔｏｋｙｏ; 住所 = tokyo。"),
    # Denials.
    "a denial": ([E, A], "employer = Acme; not employer = Acme"),
    "a denial of another": ([A, A], "employer = Acme; not employer = Bolt"),
    "a denial stays beside a value": ([A, A], "not home = Rome; home = Oslo"),
    "a denial is taken back": ([S, A], "not pet = dog; pet = dog"),
    "no dog, then a dog by name": ([S, A], "not pet = dog; pet = Rex | replaces:0"),
    "cannot run is over": ([E, A], "not can run = yes; event recovery = ran again | ends:0"),
    "cannot run is denied": ([S, A], "not ability = run; ability = run | many"),
    # Effects.
    "replaced in another slot": ([S, A], "job = nurse; profession = doctor | replaces:0"),
    "replaced by what it states": ([S, A], "job = nurse; profession = doctor | replaces:@0"),
    "ended by an event": ([E, A], "employer = Acme; event notice = left Acme | ends:0"),
    "another subject's fact is ended": (
        [E, A],
        "Acme: manager = Ida; event Ida: career = left Acme | ends:@0",
    ),
    "ended at a later date": (
        [A, A],
        "home = Oslo; event lease = ends | since:2025-12-31 ends:0",
    ),
    # The wording that came last stands for both.
    "repeated in other words": (
        [R, A, S, A],
        "job = nurse; job = ward nurse | repeats:0; pet = cat; pet = dog",
    ),
    "repeated in the first words again": (
        [R, A, R],
        "job = nurse; job = ward nurse | repeats:0; job = nurse",
    ),
    "a repeat is replaced": ([R, S, A], "job = nurse; job = in care | repeats:0; job = in law"),
    "a repeat in another slot stands beside it": ([A, A], "job = nurse; hours = full time | repeats:0"),
    "a repeat of a denial is none": ([A, A], "pet = dog; not pet = cat | repeats:0"),
    "an unknown effect": ([A, A], "home = Oslo; mood = good | ends:9 was_wrong:8"),
    "an effect on the future": ([A, A], "event talk = gave it | ends:1; home = Oslo"),
    "an effect on what is over": ([S, A, A], "home = Oslo; home = Rome; event move = up | ends:0"),
    "an effect on what is open again": (
        [S, S, E, A],
        "home = Oslo; home = Rome; home = Oslo; event move = left | ends:0",
    ),
    "an effect on itself": ([A], "home = Oslo | ends:0 replaces:0 was_wrong:0"),
    "two effects on one": ([S, A], "home = Oslo; address = Rome | ends:0 replaces:0"),
    "wrong before all": ([C, A], "home = Oslo; address = Rome | ends:0 replaces:0 was_wrong:0"),
    # Events.
    "a holiday moves nobody": ([A, A], "home = Oslo; event holiday = Rome"),
    "an event about the boss": ([A, A], "boss = Henrik; event boss = is on holiday"),
    "an event never ends": ([A, A], "event trip = Rome; event regret = none | ends:0"),
    "an event is not replaced": ([A, A], "event trip = Rome; event trip = Milan | replaces:0"),
    "an event may be wrong": ([C, A], "event trip = Rome; event trip = Milan | was_wrong:0"),
    "an event to come is cancelled": (
        [E, A],
        "event concert = Muse | since:2025-06-01; event refund = paid | cancelled:0",
    ),
    "an event to come is put off": (
        [S, A],
        "event concert = Muse | since:2025-06-01;"
        " event concert = Muse | since:2025-06-08 replaces:0",
    ),
    "an event that is over is not cancelled": (
        [A, A],
        "event concert = Muse | since:2024-06-01; event refund = paid | cancelled:0",
    ),
    "two events of one kind": (
        [A, A, R],
        "event run = marathon | since:2023; event run = marathon | since:2024-05;"
        " event run = marathon | since:2024",
    ),
    # Plans.
    "a plan moves nobody": ([A, A], "home = Oslo; plan home = Rome"),
    "a plan that replaces moves nobody yet": ([A, A], "home = Oslo; plan home = Rome | replaces:0"),
    "a plan and its date": (
        [A, A],
        "home = Oslo; plan home = Rome | since:2025-03 replaces:0",
    ),
    "a plan and its date that has passed": (
        [S, D, A],
        "home = Oslo; plan home = Rome | since:2025-03 replaces:0; pet = cat | day:95",
    ),
    "a plan, then a past home": (
        [A, A, E],
        "home = Oslo; plan home = Rome; home = Rome | until:2019",
    ),
    "a plan came about": ([S, A], "plan home = Rome; home = Rome | came_about:0"),
    "a plan came about as an event": (
        [S, S, A],
        "home = Oslo; plan home = Rome; event move = to Rome | came_about:1 replaces:0",
    ),
    "a state cannot come about": ([A, A], "home = Rome; event move = to Rome | came_about:0"),
    "a plan is cancelled": ([E, A], "plan trip = Rome; event trip = called off | cancelled:0"),
    "a plan is given up": ([E, A], "plan trip = Rome; not plan trip = Rome | ends:0"),
    "a plan is denied": ([E, A], "plan trip = Rome; plan not trip = Rome"),
    "a plan that is cancelled ends nothing": (
        [A, E, A],
        "home = Oslo; plan home = Rome | since:2025-03 replaces:0;"
        " event move = called off | cancelled:1 day:200",
    ),
    "a plan that came about ends it": (
        [S, S, A],
        "home = Oslo; plan home = Rome | since:2025-03 replaces:0;"
        " event move = done | came_about:1 day:200",
    ),
    "a plan that is put off": (
        [A, A, R, A],
        "home = Oslo; plan home = Rome | since:2025-03 replaces:0;"
        " plan home = Rome | since:2025-09; pet = cat | day:90",
    ),
    "another plan": ([S, A], "plan trip = Rome; plan trip = Milan | since:2025-09"),
    "a plan ends a plan": ([E, A], "plan trip = Rome; plan May = at home | since:2025-05 ends:0"),
    "a plan is due": ([D, A], "plan trip = Rome | since:2025-01-05; pet = cat"),
    "a plan is due after its month": ([A, A], "plan trip = Rome | since:2025-01; pet = cat"),
    "a plan until a date is due": (
        [D, A],
        "plan trip = Rome | since:2025-01 until:2025-02; pet = cat | day:60",
    ),
    "a plan without a date stays": ([A, A], "plan trip = Rome; pet = cat | day:900"),
    # Rules.
    "a deed refutes no rule": (
        [A, A],
        "rule not deploys = on Fridays; event deploys = on Fridays",
    ),
    "a state refutes no rule": ([A, A], "rule not deploys = on Fridays; deploys = on Fridays"),
    "a rule is lifted": ([S, A], "rule not deploys = on Fridays; rule deploys = on Fridays"),
    "a rule is ended": ([E, A], "rule deploys = not after 4; event policy = lifted | ends:0"),
    "another rule": ([S, A], "rule limit = 5 MB; rule limit = 9 MB"),
    "a rule beside a state": ([A, A], "rule limit = 5 MB; limit = 9 MB"),
    # Corrections.
    "a typo": ([C, A], "host = db-9; host = db-11 | was_wrong:0"),
    "a correction of a correction": (
        [C, C, A],
        "home = Oslo; home = Bergen | was_wrong:0; home = Turku | was_wrong:1",
    ),
    "a correction by an event": ([C, A], "home = Oslo; event mix-up = wrong person | was_wrong:0"),
    "what the wrong one had replaced": (
        [A, C, A],
        "home = Oslo; home = Rome; event mix-up = wrong person | was_wrong:1",
    ),
    "a correction back to the first": (
        [A, C, R],
        "home = Oslo; home = Rome; home = Oslo | was_wrong:1",
    ),
    "a correction of what is over": (
        [C, A, S],
        "home = Oslo; home = Rome; home = Bergen | was_wrong:0",
    ),
    "a correction of all its repeats": (
        [C, C, A],
        "home = Oslo; home = Oslo; home = Bergen | was_wrong:@1",
    ),
    "a correction with another effect": (
        [C, E, A],
        "home = Oslo; pet = cat; home = Bergen | was_wrong:0 ends:1",
    ),
    "two corrections at once": (
        [C, C, A],
        "home = Oslo; city = Oslo; home = Bergen | was_wrong:1 was_wrong:0",
    ),
    "a correction that repeats another": (
        [R, C, A],
        "home = Oslo; home = Rome; home = in Oslo | was_wrong:1 repeats:0",
    ),
    "a plan corrects what is to come": (
        [C, A],
        "meeting = Friday | since:2025-03; plan meeting = Monday | was_wrong:0",
    ),
    "a denial corrects": ([C, A], "home = Oslo; not home = Oslo | was_wrong:0"),
    "a wrong replacement of what was to come": (
        [A, U, C, A],
        "meeting = Tuesday; meeting = Wednesday | since:2025-06; meeting = Friday;"
        " event mix-up = other team | was_wrong:2",
    ),
    # Dates.
    "a past job": ([E, A], "employer = Acme | until:2020; pet = cat"),
    "a past job replaces nothing": ([A, E], "employer = Acme; employer = Bolt | until:2020"),
    "a past job, then the job": (
        [E, A],
        "employer = Acme | until:2020; employer = Acme",
    ),
    "worked there until a date": ([E, R], "employer = Acme; employer = Acme | until:2025-01-05"),
    "worked there long ago too": (
        [A, E],
        "employer = Acme; employer = Acme | until:2020",
    ),
    "a date passes": ([E, A], "visa = student | until:2025-01-05; pet = cat"),
    "a date is to come": ([A, A], "visa = student | until:2025-12; pet = cat"),
    "after a date another value": ([E, A], "visa = student | until:2025-01-05; visa = work"),
    "a future state": ([A, U], "meeting = Tuesday; meeting = Wednesday | since:2025-02"),
    "a future state has begun": (
        [S, A, A],
        "meeting = Tuesday; meeting = Wednesday | since:2025-02; pet = cat | day:40",
    ),
    "a future state is called off": (
        [A, E, A],
        "meeting = Tuesday; meeting = Wednesday | since:2025-02;"
        " event meeting = stays | cancelled:1",
    ),
    "a future state is replaced": (
        [S, S, A],
        "meeting = Tuesday; meeting = Wednesday | since:2025-02; meeting = Friday",
    ),
    "the present again before the change": (
        [A, U, R],
        "meeting = Tuesday; meeting = Wednesday | since:2025-02; meeting = Tuesday",
    ),
    "a beginning long ago": ([A, A], "employer = Acme | since:2019; pet = cat"),
    # What nobody dated, and what came late.
    "undated": ([S, A], "home = Oslo | undated; home = Rome | undated"),
    "undated among dated": ([S, S, A], "home = Oslo; home = Rome | undated; home = Bergen"),
    "undated, then dated": (
        [A, R],
        "job = Acme | undated; job = Acme | since:2019",
    ),
    "a late arrival": (
        [S, A, S],
        "home = Oslo; home = Rome | day:50; home = Bergen | day:20 late:99",
    ),
}  # fmt: skip


@pytest.mark.parametrize("story", STORIES)
def test_a_story(story: str) -> None:
    expected, text = STORIES[story]
    resolved = resolve(story_facts(text))
    assert statuses(resolved) == expected
    over = resolved.facts["status"].is_in([S, E, C])
    repeats = resolved.facts["status"] == R
    assert (resolved.facts["superseded"] | repeats).to_list() == (over | repeats).to_list()


def test_the_same_reinforces_once_a_turn_and_the_log_says_what_closed() -> None:
    resolved = resolve(
        story_facts("job = Acme; job = ACME | turn:1; job = acme | turn:1; job = Bolt | day:90")
    )
    assert statuses(resolved) == [S, R, R, A]
    assert resolved.facts["n_reinforced"].to_list() == [1, 0, 0, 0]
    assert resolved.facts["repeats"].to_list() == [None, "f0", "f0", None]
    assert resolved.facts["superseded_by"].to_list() == ["f3", "f3", "f3", None]
    assert resolved.facts["last_access"][0] == day(20)
    (row,) = resolved.log.rows(named=True)
    assert row == {
        "scope": "u", "about": "Ann", "slot": "job", "old": "f0", "new": "f3", "old_value": "Acme",
        "new_value": "Bolt", "at": day(90), "recorded_at": day(90), "rule": "another value",
        "by": "Ann", "evidence": ["u/s/3"],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("story", "rule"),
    [
        ("home = Oslo; home = Rome", "another value"),
        ("home = Oslo; not home = Oslo", "said to be over"),
        ("not home = Oslo; home = Oslo", "said to be so"),
        ("home = Oslo; event flood = bad | ends:0", "said to be over"),
        ("plan home = Oslo; home = Oslo | came_about:0", "came about"),
        ("plan home = Oslo; event flood = bad | cancelled:0", "cancelled"),
        ("home = Oslo; home = Rome | was_wrong:0", "corrected"),
    ],
)
def test_the_log_names_the_rule(story: str, rule: str) -> None:
    assert resolve(story_facts(story)).log["rule"].to_list() == [rule]


def test_a_late_older_statement_is_superseded_from_the_start() -> None:
    facts = story_facts("job = Acme; job = Bolt | day:50; job = Cord | day:20 late:100")
    resolved = resolve(facts)
    assert (held(resolved), held(resolved, 30)) == (["Bolt"], ["Cord"])
    assert "arrived late" in resolved.log.filter(old="f2")["rule"][0]
    assert held(resolve(facts, as_of=day(30)), 30) == ["Acme"]


def test_a_change_with_a_date_is_made_on_that_date() -> None:
    facts = story_facts("meeting = Tuesday; meeting = Wednesday | since:2025-02-01")
    resolved = resolve(facts)
    assert resolved.facts["valid_to"].to_list() == [day(31), None]
    assert resolved.facts["superseded_by"].to_list() == [None, None]
    assert [held(resolved, n) for n in (5, 30.9, 31)] == [["Tuesday"], ["Tuesday"], ["Wednesday"]]
    later = resolve(facts, as_of=day(40))
    assert (statuses(later), held(later)) == ([S, A], ["Wednesday"])
    assert later.log["at"].to_list() == [day(31)]


def test_a_plan_stands_beside_what_it_is_to_end_until_its_date() -> None:
    facts = story_facts("home = Oslo; plan home = Rome | since:2025-03 replaces:0")
    for n, names, states in (
        (20, ["Oslo", "Rome"], [A, A]),
        (60, ["Rome"], [S, A]),  # 2 March: the month of the plan is not over
        (95, ["Rome"], [S, D]),
    ):
        resolved = resolve(facts, as_of=day(n))
        assert (held(resolved), held(resolved, n), statuses(resolved)) == (names, names, states)
    assert resolved.facts["valid_from"].to_list() == [day(0), day(10)]
    assert not resolved.facts["superseded"][1]


def test_a_correction_holds_in_the_past_too() -> None:
    facts = story_facts("home = Oslo; home = Bergen | was_wrong:0")
    resolved = resolve(facts)
    assert resolved.facts["superseded_by"][0] == "f1"
    assert resolved.facts["valid_from"].to_list() == [day(0), day(0)]
    assert held(resolved, 1) == ["Bergen"]
    assert held(resolve(facts, as_of=day(1))) == ["Oslo"]
    dated = resolve(story_facts("home = Oslo; home = Bergen | was_wrong:0 since:2025-01-05"))
    assert dated.facts["valid_from"][1] == day(4)
    over = resolve(story_facts("job = Acme; job = Cord; job = Bolt | was_wrong:0"))
    assert (held(over), held(over, 3)) == (["Cord"], ["Bolt"])
    assert over.facts["valid_to"].to_list() == [day(0), None, day(10)]


def test_the_present_is_the_time_of_asking_or_of_the_last_word() -> None:
    facts = story_facts("visa = student | until:2025-03; plan trip = Rome | since:2025-02")
    for now, states in ((None, [A, A]), (day(-9), [A, A]), (day(65), [A, D]), (day(99), [E, D])):
        assert statuses(resolve(facts, now=now)) == states
    assert statuses(resolve(facts, now=day(99), as_of=day(20))) == [A, A]


def test_what_is_taken_out_was_never_said() -> None:
    """Deleted facts leave no trace, and what they had closed goes on."""
    facts = story_facts("home = Oslo; home = Rome; plan home = Turku | since:2025-03 replaces:1")
    assert held(resolve(facts.filter(pl.col("fact_id") != "f1"))) == ["Oslo", "Turku"]
    assert held(resolve(facts, as_of=day(70))) == ["Turku"]
    assert held(resolve(facts.head(2), as_of=day(70))) == ["Rome"]


def test_dates_that_were_said_are_the_dates() -> None:
    resolved = resolve(
        story_facts(
            "job = Acme | since:2019-05 until:2021; job = Bolt | until:2022; job = Cord;"
            " job = Cord | since:2023; job = Dorn | since:2024-06"
        )
    )
    dates = resolved.facts.select("valid_from", "valid_to").rows()
    year = [datetime(n, 1, 1, tzinfo=DAY0.tzinfo) for n in range(2022, 2025)]
    june = year[2].replace(month=6)
    assert dates == [
        (year[0].replace(year=2019, month=5), year[0]),
        (None, year[1]),  # nobody said since when
        (year[1], june),
        (year[1], june),
        (june, None),
    ]


@pytest.mark.parametrize(
    ("story", "undone", "names"),
    [
        ("Acme; Bolt; Cord", ("f1", "f2"), ["Bolt", "Cord"]),
        # An undo is about values, in whatever words they are said, and however often.
        ("“ACME”; Acme; Bolt; Bolt", ("f0", "f2"), ["“ACME”", "Bolt"]),
        ("Acme; Bolt; not Acme; Acme; Bolt", ("f0", "f1"), ["Acme", "Bolt"]),
        ("Oslo; Bergen | was_wrong:0", ("f0", "f1"), ["Oslo", "Bergen"]),
        ("Oslo; not Oslo | ends:0", ("f0", "f1"), ["Oslo", "Oslo"]),
        # The correction is closed by what had closed the wrong value.
        ("Oslo; Bergen; Turku | was_wrong:0", ("f2", "f1"), ["Bergen", "Turku"]),
        # The value from before the wrong one goes on, and is closed by what had closed the wrong
        # one.
        ("Oslo; Bergen; Turku; Oslo | was_wrong:1", ("f0", "f2"), ["Oslo", "Turku"]),
    ],
)
def test_an_undone_closing_does_not_count(
    story: str, undone: tuple[str, str], names: list[str]
) -> None:
    said = []
    for value in story.split("; "):
        denied = value.startswith("not ")
        said.append(f"{'not ' if denied else ''}job = {value.removeprefix('not ')}")
    facts = story_facts("; ".join(said))
    back = resolve(facts, undone=[undone])
    positive = active_facts(back)
    if "Acme; Acme" in story or "not Acme" in story:
        positive = positive.filter("holds")
    assert positive["value"].to_list() == names
    assert undone not in back.log.select("old", "new").rows()
    # Another scope's values are its own, and the order of rows does not matter.
    other = facts.with_columns(
        scope=pl.lit("v"),
        fact_id="v" + pl.col("fact_id"),
        affected=pl.col("affected").list.eval("v" + pl.element()),
    )
    both = resolve(pl.concat([other, facts.reverse()]), undone=[undone])
    of_scope = active_facts(both).filter(pl.col("fact_id").is_in(positive["fact_id"].to_list()))
    assert of_scope.height == len(names)
    assert both.log.filter(scope="v").height == resolve(facts).log.height


def test_facts_without_a_date_stand_in_the_order_of_the_rows_and_get_none() -> None:
    said = story_facts("home = Oslo; home = Bodø; home = Narvik")
    for column in ("asserted_at", "recorded_at"):
        imported = said.with_columns(asserted_at=None, recorded_at=said["asserted_at"].reverse())
        undated = imported.with_columns(pl.lit(None).alias(column))
        resolved = resolve(undated)
        assert held(resolved) == ["Narvik"]
        rows = resolved.facts.select("said_at", "valid_from", "valid_to", "last_access")
        assert rows.null_count().row(0) == (3, 3, 3, 3)
        assert resolved.log["at"].null_count() == 2
        assert resolve(undated, as_of=said["asserted_at"].max()).facts.is_empty()
        assert count_undated_facts(undated) == 3
    # One of them between two that are dated takes its place there, and ends nothing later.
    is_bodo = pl.col("value") == "Bodø"
    mixed = said.with_columns(asserted_at=pl.when(~is_bodo).then("asserted_at"), recorded_at=None)
    resolved = resolve(mixed)
    assert held(resolved) == ["Narvik"]
    assert resolved.log["new_value"].to_list() == ["Bodø", "Narvik"]
    assert held(resolve(mixed.head(2))) == ["Bodø"]
    # A date that was said is one, whoever said it when.
    resolved = resolve(story_facts("job = Acme | undated since:2019 until:2025-03"))
    assert resolved.facts.select("valid_from", "valid_to", "status").row(0) == (
        datetime(2019, 1, 1, tzinfo=DAY0.tzinfo),
        datetime(2025, 4, 1, tzinfo=DAY0.tzinfo),
        A,
    )


def test_no_facts_resolve_and_bad_facts_are_refused() -> None:
    empty = resolve(frame(Fact))
    facts = story_facts("home = Oslo")
    assert empty.facts.is_empty()
    assert empty.log.is_empty()
    assert empty.facts.columns == resolve(facts).facts.columns
    assert resolve(facts.drop("kind", "effects", "values", "holds")).facts["status"][0] == A
    for wrong, message in (
        (facts.drop("value"), "value"),
        (pl.concat([facts, facts]), "twice"),
        (facts.with_columns(since=pl.lit("last May")), "'f0'.*'last May' is no date"),
        (facts.with_columns(until=pl.lit("2025-02-30")), "'2025-02-30' is no date"),
        (facts.with_columns(effects=pl.lit(["ends"])), "'f0' has effects"),
    ):
        with pytest.raises(DataError, match=message):
            resolve(wrong)


def test_effects_that_reach_nothing_are_counted() -> None:
    story = "home = Oslo; home = Rome | replaces:0 ends:7 was_wrong:8; event move = left | ends:0"
    resolved = resolve(story_facts(story))
    assert (resolved.n_idle_effects, resolved.log.height) == (3, 1)


class _Vectors:
    """An encoder in which texts are equal that have equal first letters; it counts its calls."""

    def __init__(self) -> None:
        self.calls = 0

    def encode(self, texts: list[str], **_: object) -> np.ndarray:
        self.calls += 1
        vectors = np.zeros((len(texts), 256), np.float32)
        for row, text in enumerate(texts):
            vectors[row, ord(text[0].casefold()) % 256] = 1
        return vectors


def test_an_encoder_joins_near_slots_and_values_but_no_codes_and_no_names() -> None:
    encoder = _Vectors()
    story = (
        "employer = Acme Ltd; employers = Acme Ltd in Oslo; favorite color = pale blue;"
        " favourite colour = pale blue or so"
    )
    resolved = resolve(story_facts(story), encoder=encoder)  # type: ignore[arg-type]
    assert statuses(resolved) == [A, R, A, R]
    assert encoder.calls == 2
    for apart in (
        "host = db 7; host = db 9",
        "host = server; host = servers",
        "host = server; host = server two",
        "meeting = every Monday; meeting = every Tuesday",
        "flat 1 = big one; flat 2 = big one",
        "older sister = Bea; other sister = Bea",
        "phone = new one; phone at work = new one",
    ):
        resolved = resolve(story_facts(apart), encoder=_Vectors())  # type: ignore[arg-type]
        assert R not in statuses(resolved), apart


def test_folding_keeps_what_tells_codes_apart() -> None:
    assert fold_text("«Köln»") == fold_text("ＫÖLN.") == "köln"
    assert len({fold_text(text) for text in ("C", "C#", "C++", "-5", "5", "50%", "$50", "?")}) == 8


def test_many_facts_resolve_in_a_moment() -> None:
    """Five thousand facts take well under a second; the limit leaves room for a busy machine."""
    n = 5000
    rows = []
    for i in range(n):
        said = day(i / 24)
        effects = (["was_wrong"], [f"f{i - 25}"]) if i % 50 == 49 else ([], [])
        rows.append(
            Fact(
                f"f{i}", "u", "Ann", f"slot {i % 25}", f"value {i % 7}", "stated", [f"t{i}"], said,
                values="one" if i % 2 else "many", effects=effects[0], affected=effects[1],
            )
        )  # fmt: skip
    facts = frame(Fact, rows)
    start = time.process_time()
    resolved = resolve(facts)
    assert time.process_time() - start < 3
    assert resolved.facts.filter(status=C).height > 50


@pytest.mark.parametrize(
    ("parts", "says"),
    [
        ({"kind": "fact"}, "kind 'fact' is none of state, event, plan, rule"),
        ({"values": "few"}, "values 'few' is none of one, many"),
        ({"effects": ["kills"], "affected": ["f0"]}, "effects 'kills' is none of replaces"),
    ],
)
def test_words_that_name_nothing_are_refused(parts: dict[str, Any], says: str) -> None:
    fact = Fact("f1", "u", "Ann", "home", "Oslo", "stated", [], None, **parts)
    with pytest.raises(DataError, match=says):
        resolve(frame(Fact, [fact]))
