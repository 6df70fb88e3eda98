"""Gold facts: whether a fact says what an entry says, judged by hand; and what is known of a chat, measured by them."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from remembering import minilm

from memlab.errors import DataError
from memlab.evaluate.gold_entries import GoldEntry
from memlab.evaluate.gold_facts import ChatAnnotations, read_gold_annotations
from memlab.evaluate.knowledge_scores import (
    MEASURES,
    format_fact_outcomes,
    list_unannotated_facts,
    score_annotated_chat,
    score_annotated_chats,
    summarise_fact_outcomes,
)
from memlab.evaluate.reader_verdicts import AS_READ
from memlab.knowledge import resolve
from memlab.knowledge.fact_prompts import VERSION
from memlab.llm.recorded_answers import recording_key
from memlab.records import Fact, frame
from memlab.records.facts import meaning_id

ROOT = Path(__file__).parents[2]
FACTS = ROOT / "data" / "facts"

# subject (its other names) | mode | words of the relation | wordings of the value
JOB = "Una,Una's | is | work job employ start teach | Ferris Dairy; the dairy"
HOME = "Una | is | live home move flat based stay | Tromsø"
BOSS = "Una | is | boss manager report lead | Henrik"
KEY = "Una | is | bike shed code lock | 4417"
PHONE = "Una | is | phone number mobile | 0478 22 19 03"
CATS = "Una | is | cat pet have | three cats; 3 cats; third cat"
HENS = "Una | is | hen chicken keep | six hens; six"
MEAT = "Una | not | eat meat | meat"
FASTS = "Una | is | breakfast eat | nothing"
PHYSIO = "Ingrid | is | job profession is | physio; physiotherapist"
DOSE = "Una | is | medicine takes dose | 10 mg"
DAYS = "Una | is | days hours work | Monday Wednesday Friday"
CHILD = "Hidde | is | baby child | Lieke"
AGE = "Hidde | is | age old | 3"
GOATS = "Una | is | goat have | 2; two"
RENT = "Rent | is | due go day | 5th"
DORM = "Una | is | hollis door code | 6613"
HALL = "Una | is | dorm live room | Hollis Hall"
NAPS = "Ivy | not | nap have | nap; naps"
TRIP = "Una | plan | go trip fly visit | Crete; June"
LIMA = "Una | was | live | Lima"
MUM = "Mother,Una's mum,mum | is | live home | Odda"
ROOM = "Gran | is | room in | room 11; 11"
MAIL = "Una | is | mail rule format wants | no bullet points; without bullet points"
TEACHES = "Una | is | teach teacher | chemistry"
SHIFT = "Una | is | station officer work shift | day shift"
TEST = "Una | plan | driving test drive | 2 June; driving test"

MOVED = "Una moved from Oslo to Tromsø."
OSLO = "Una | is | live home move | Oslo"

# about | slot | value | sentence | further parts of the row; an entry; whether it states this
PAIRS = [
    ("Una | employer | Ferris Dairy | Una works at Ferris Dairy.", JOB, True),
    ("Una | job | accountant at the dairy", JOB, True),
    ("Una | employer | Ferris Dairy | Una does not work at Ferris Dairy. | holds=", JOB, False),
    ("Una | employer | Ferris Dairy | Una hopes to work there. | kind=plan", JOB, False),
    ("Una | employer | Ferris Dairy | Una used to work there. | until=2026-02", JOB, False),
    ("Una | employer | Ferris Dairy | It is until summer. | until=2026-08", JOB, True),
    ("Una's brother | employer | Ferris Dairy", JOB, False),
    ("Una's brother's job | employer | Ferris Dairy", JOB, False),
    ("Ben | employer | Ferris Dairy | Una's brother Ben works at Ferris Dairy.", JOB, False),
    ("Una and Ben | employer | Ferris Dairy", JOB, True),
    ("I | employer | Ferris Dairy", JOB, True),
    ("Una | favourite cheese | Brunost | Una works at Ferris Dairy and eats Brunost.", JOB, False),
    ("Una | end | meat | Una gave up meat in 2026. | kind=event effects=ends", MEAT, True),
    ("Una | end | the dairy | Una left the dairy. | kind=event effects=ends", JOB, False),
    # An event bears out what is so; one that ends something tells what was so.
    (f"Una | home | Tromsø | {MOVED} | kind=event", HOME, True),
    (f"Una | home | Tromsø | {MOVED}", OSLO, False),
    (f"Una | home | from Oslo to Tromsø | {MOVED}", HOME, True),
    (f"Una | home | from Oslo to Tromsø | {MOVED}", OSLO, False),
    ("Una | home | not Oslo but Tromsø", OSLO, False),
    ("Una | moved out of | Oslo | Una moved out of Oslo. | kind=event effects=ends", OSLO, False),
    ("Una | move | 2026-03 | Una moved from Oslo to Tromsø in March 2026. | kind=event", HOME, True),
    ("Una | move | 2026-03 | Una moved from Oslo to Tromsø in March 2026. | kind=event", OSLO, False),
    ("Una's boss | name | Henrik", BOSS, True),
    ("Henrik | role | boss of Una", BOSS, True),
    ("Una | physio | Ingrid", PHYSIO, True),
    ("Una's physio | name | Ingrid", PHYSIO, True),
    ("Una's physio | friend | Ingrid", PHYSIO, False),
    ("Una | climbing partner | Ingrid | Ingrid climbs with Una's physio.", PHYSIO, False),
    ("Henrik | role | boss | Henrik is Una's boss.", BOSS, True),
    ("Henrik | home | Ghent | Una's boss Henrik lives in Ghent.", BOSS, False),
    ("Henrik | role | boss | Henrik is Ben's boss.", BOSS, False),
    ("bike shed | code | 4417 | The code of Una's bike shed is 4417.", KEY, True),
    ("Una's bike shed | number of bricks | 44170", KEY, False),
    ("the flat | bricks | 4417", KEY, False),
    ("Una's phone | number | 0478-221903", PHONE, True),
    ("Una's phone | number | 0478 22 19 04", PHONE, False),
    ("Una | pets | three cats", CATS, True),
    ("Una | hens | 6 | Una keeps six hens and four goats.", HENS, True),
    ("Una | goats | 4 | Una keeps six hens and four goats.", HENS, False),
    ("Una | eats | meat | Una does not eat meat. | holds=", MEAT, True),
    ("Una | eats | no meat", MEAT, True),
    ("Una | medicine | 5 mg | Una's dose went from 5 mg to 10 mg in May.", DOSE, False),
    ("Una | medicine | 10 mg | Una takes 10 mg.", DOSE, True),
    ("Una | days | Mondays | Una works on Mondays, Ben on Wednesday and Friday.", DAYS, False),
    ("Hidde and Lot's baby | name | Lieke | Hidde and Lot had a baby, Lieke.", CHILD, True),
    ("Hidde and Lot's dog | age | 3 | The dog of Hidde and Lot is 3.", AGE, False),
    ("Hidde and Lot's baby | age | 3", AGE, False),
    ("Una | breakfast | nothing | Una has nothing for breakfast.", FASTS, True),
    ("Una | breakfast | porridge", FASTS, False),
    ("Una | eats | meat | Una eats meat.", MEAT, False),
    ("Una | eats | meat | Una ate meat until 2020. | until=2020", MEAT, True),
    ("Ivy | naps | none | Ivy has no naps any more.", NAPS, True),
    ("Una | trip | Crete | Una plans a trip to Crete in June 2026. | kind=plan", TRIP, True),
    ("Crete trip | month | June | Una plans a trip to Crete in June. | kind=plan", TRIP, True),
    ("Una | trip | Crete | Una cancelled it. | kind=event effects=cancelled", TRIP, False),
    ("Una | trip | Crete | Una has been to Crete. | kind=event", TRIP, True),
    ("Una | trip | Crete | Una does not go to Crete. | kind=plan holds=", TRIP, False),
    ("driving test | date | 2026-06-02 | Una's driving test is on 2 June 2026. | kind=plan", TEST, True),
    ("Una | home | Lima | Una lives in Lima.", LIMA, False),
    ("Una | home | Lima | Una lived in Lima until 2019. | until=2019", LIMA, True),
    ("Una | childhood home | Lima | Una lived in Lima as a child. | kind=event", LIMA, True),
    ("Una's mum | home | Odda", MUM, True),
    ("Una's mum's cat | home | Odda", MUM, False),
    ("Fairlawns room | number | 11 | Gran's room at Fairlawns is room 11.", ROOM, True),
    ("Ben's room | number | 11 | Gran says that Ben's room is room 11.", ROOM, False),
    ("Una | mail format | no bullet points | Una wants no bullet points. | kind=rule", MAIL, True),
    ("Una | mail format | bullet points | Una wants none. | kind=rule holds=", MAIL, True),
    ("Una | mail format | bullet points | Una wants bullet points. | kind=rule", MAIL, False),
    ("Una | subject | chemistry | Una teaches chemistry at Hill School.", TEACHES, True),
    ("Una | employer | Hill School | Una teaches chemistry at Hill School.", TEACHES, False),
    ("Una | home | second floor | Una has a room on the second floor.", GOATS, False),
    ("Una | goats | two", GOATS, True),
    ("flat 9 | rent day | the 5th", RENT, True),
    ("Una's flat | city | Tromsø | Una's flat is in Tromsø, her home.", HOME, True),
    ("Hollis Hall | door code | 6613", DORM, True),
    ("Garvey Hall | door code | 6613", DORM, False),
    ("Una | dorm | Garvey Hall | Una lives in Garvey Hall since Hollis Hall was flooded.", HALL, False),
    ("Una | shift | days | Una works the day shift.", SHIFT, True),
]  # fmt: skip


def _entry(line: str) -> GoldEntry:
    names, mode, about, value = (part.strip() for part in line.split("|"))
    called = tuple(names.split(","))
    values = tuple(one.strip() for one in value.split(";"))
    return GoldEntry(
        "e", "fact", called[0], called, values, "m1", about=tuple(about.split()), mode=mode
    )


def _row(fact: str) -> dict[str, Any]:
    about, slot, value, *more = (part.strip() for part in fact.split("|"))
    row: dict[str, Any] = {"about": about, "slot": slot, "value": value, "said_by": "Una"}
    row["asserted_at"] = datetime(2026, 3, 1, tzinfo=UTC)
    row["sentence"] = more[0] if more else None
    for part in " ".join(more[1:]).split():
        name, said = part.split("=")
        row[name] = {"effects": [said], "holds": False}.get(name, said)
    return row


@pytest.mark.parametrize(("fact", "line", "same"), PAIRS)
def test_pairs_judged_by_hand(fact: str, line: str, same: bool) -> None:
    assert _entry(line).matches_with_polarity(_row(fact)) == same


def test_an_event_that_ends_something_states_what_its_message_begins() -> None:
    row = _row("Una | break-up | Ben | Una broke up with Ben. | kind=event effects=ends")
    row["evidence"] = ["m4"]
    together = replace(_entry("Una | is | partner broke with | Ben"), since="m1", until="m4")
    apart = replace(together, since="m4", until=None)
    assert (together.matches_with_polarity(row), apart.matches_with_polarity(row)) == (False, True)
    assert not replace(apart, kind="trap").matches_with_polarity(row)


def test_a_fact_written_from_a_line_says_what_the_line_says() -> None:
    ways: dict[str, dict[str, Any]] = {
        "is": {},
        "not": {"holds": False},
        "plan": {"kind": "plan"},
        "was": {"until": "2001"},
    }
    for gold in [*read_gold_annotations(FACTS / "dev"), *read_gold_annotations(FACTS / "heldout")]:
        for entry in gold.entries:
            if entry.kind != "neutral":
                row = {
                    "about": entry.names[-1],
                    "slot": entry.about[0],
                    "value": entry.value[0],
                    "asserted_at": gold.times[entry.since],
                }
                what = "one of a closed chat" if gold.closed else (gold.scope, entry.id)
                stated = entry.matches_with_polarity(row | ways[entry.mode])
                assert stated, what


def test_what_is_no_annotation_or_no_fact_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no gold annotations"):
        read_gold_annotations(tmp_path)
    (tmp_path / "a.jsonl").write_text(
        '{"scope": "a", "id": "m1", "timestamp": "2025-01-01", "sender": "B", "text": "x"}\n'
    )
    head = '{"is": "gold", "scope": "a", "style": "s", "dates": [], "people": []}\n'
    (tmp_path / "a.gold.jsonl").write_text(
        head + '{"id": "f", "is": "fact", "subject": "B", "value": ["x"]}\n'
    )
    with pytest.raises(DataError, match="line 2"):
        read_gold_annotations(tmp_path)
    for text, word in ((None, "frozen"), ("{", "line 1"), ('{"scope": "nora"}', "row 1")):
        if text is not None:
            (tmp_path / "frozen.jsonl").write_text(text)
        with pytest.raises(DataError, match=word):
            score_annotated_chats(FACTS / "dev", facts=tmp_path / "frozen.jsonl")


MESSAGES = [
    ("2025-01-01T10:00:00Z", "i work at the mill. boss is ada"),
    ("2025-02-01T10:00:00Z", "hands are cold"),
    ("2025-03-01T10:00:00Z", "left the mill, i work at the harbour now"),
    ("2025-04-01T10:00:00Z", "my brother has a boat"),
    ("2025-05-01T10:00:00Z", "bye"),
]
LINES = [
    {"is": "gold", "scope": "mo", "style": "terse", "dates": ["2025-01-20", "2025-02-20", "2025-03-20"],
     "people": [{"name": "Mo", "names": []}, {"name": "Mo's brother", "names": ["brother"]}]},
    {"id": "f1", "is": "fact", "subject": "Mo", "about": ["work"], "value": ["mill"], "since": "m1", "until": "m3"},
    {"id": "f2", "is": "fact", "subject": "Mo", "about": ["work"], "value": ["harbour"], "since": "m3"},
    {"id": "f3", "is": "fact", "subject": "Mo", "about": ["boss"], "value": ["ada"], "since": "m1"},
    {"id": "f4", "is": "fact", "subject": "Mo's brother", "about": ["have"], "value": ["boat"], "since": "m4"},
    {"id": "t1", "is": "trap", "kind": "moment", "message": "m2", "subject": "Mo", "about": ["hand"],
     "value": ["cold"]},
    {"id": "t2", "is": "trap", "kind": "other", "message": "m4", "subject": "Mo", "about": ["have"],
     "value": ["boat"]},
    {"id": "t3", "is": "trap", "kind": "plan", "message": "m5", "subject": "Mo", "about": ["home"],
     "value": ["Rome"]},
    {"id": "n1", "is": "neutral", "message": "m3", "subject": "Mo", "value": ["left"]},
]  # fmt: skip
CHAT = [
    {"scope": "mo", "id": f"m{n}", "timestamp": when, "sender": "Mo", "text": text}
    for n, (when, text) in enumerate(MESSAGES, 1)
]
# The message; about, slot, value; further columns.
Stated = tuple[int, str, str, str, dict[str, Any]]
MILL: Stated = (1, "Mo", "employer", "the mill", {"sentence": "Mo works at the mill."})
BOSS_ADA: Stated = (1, "Mo's boss", "name", "Ada", {})
HARBOUR: Stated = (3, "Mo", "employer", "the harbour", {"sentence": "Mo works at the harbour now."})
BOAT: Stated = (4, "Mo's brother", "boat", "one", {"sentence": "Mo's brother has a boat."})
LEFT: Stated = (
    3,
    "Mo",
    "job end",
    "the mill",
    {"kind": "event", "effects": ["ends"], "affected": ["f0"]},
)
RIGHT = [MILL, BOSS_ADA, HARBOUR, BOAT]


def _write_lines(place: Path, lines: list[dict[str, Any]]) -> Path:
    place.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return place


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("mo")
    _write_lines(place / "mo.jsonl", CHAT)
    _write_lines(place / "mo.gold.jsonl", LINES)
    return place


@pytest.fixture(scope="module")
def chat(folder: Path) -> ChatAnnotations:
    return read_gold_annotations(folder)[0]


def _facts(stated: list[Stated]) -> pl.DataFrame:
    facts = []
    for i, (n, about, slot, value, further) in enumerate(stated):
        when = datetime.fromisoformat(MESSAGES[n - 1][0])
        columns = {"source": "stated", **further}
        fact = Fact(
            f"f{i}", "mo", about, slot, value, evidence=[f"mo/m{n}"], asserted_at=when, **columns
        )
        facts.append(fact)
    return frame(Fact, facts)


def _measured(chat: ChatAnnotations, stated: list[Stated]) -> pl.DataFrame:
    return score_annotated_chat(chat, partial(resolve, _facts(stated)))


def test_full_marks_and_none(chat: ChatAnnotations) -> None:
    table = summarise_fact_outcomes(_measured(chat, RIGHT))
    assert table["measure"].to_list() == list(MEASURES)
    assert table["share"].to_list() == [1.0] * len(MEASURES)
    # At the end three facts; on three dates two each; one invalidation; three traps.
    assert table["n"].to_list() == [3, 3, 6, 6, 1, 1, 3]
    nothing = summarise_fact_outcomes(_measured(chat, []))
    assert nothing["share"].to_list() == [None, 0.0, None, 0.0, None, 0.0, 1.0]
    wrong = _measured(chat, [*RIGHT, (5, "Mo", "employer", "the zoo", {})])
    assert wrong.filter(measure="invalidation precision")["hit"].to_list() == [True, False]


def _further(fact: Stated, **columns: Any) -> Stated:
    return (*fact[:4], {**fact[4], **columns})


@pytest.mark.parametrize(
    ("stated", "verdict"),
    [
        (MILL, "stale"),
        ((2, "Mo's hands", "state", "cold", {}), "trap"),
        ((4, "Mo", "boat", "one", {"sentence": "Mo has a boat."}), "trap"),
        ((5, "Mo", "hobby", "birds", {}), "unlisted"),
        ((3, "Mo", "works at", "the mill and the harbour", {}), "stale"),
        ((5, "Mo", "works at", "the harbour", {"holds": False}), "wrong"),
        # What counts neither way.
        (LEFT, None),
        (_further(MILL, kind="event"), None),
        (_further(MILL, kind="event", effects=["ends"], affected=["f0"]), None),
        ((3, "Mo", "works at", "the mill", {"holds": False}), None),
        ((4, "Mo", "brother", "Mo's brother", {}), None),
        ((3, "Mo", "hope to work", "the harbour", {"kind": "plan"}), None),
        # A trap of a plan, and of a rumour.
        ((5, "Mo", "home", "Rome", {}), "trap"),
        ((5, "Mo", "home", "Rome", {"kind": "plan"}), None),
        ((5, "Mo", "home", "Rome", {"since": "2025-04"}), "trap"),
    ],
)
def test_what_is_wrong_and_why(chat: ChatAnnotations, stated: Stated, verdict: str | None) -> None:
    outcomes = _measured(chat, [stated])
    wrong = [(False, verdict)] if verdict else []
    assert outcomes.filter(measure="current precision").select("hit", "kind").rows() == wrong
    assert outcomes.filter(~pl.col("hit"), measure="traps avoided").height == (verdict == "trap")
    text = format_fact_outcomes(outcomes)
    assert verdict is None or f"{verdict}: mo: {stated[1]} | " in text
    closed = format_fact_outcomes(
        outcomes.with_columns(closed=pl.lit(True), what=pl.lit(None, pl.String))
    )
    assert text.startswith(closed), "of closed annotations only totals are written"
    assert "Mo" not in closed


@pytest.mark.parametrize(
    ("kind", "further", "broken"),
    [
        ("rumour", {}, True),
        ("rumour", {"source": "reported"}, False),
        ("other", {"source": "reported"}, True),
        ("plan", {}, True),
        ("plan", {"since": "2025-06"}, False),
        ("plan", {"kind": "plan"}, False),
        ("past", {}, True),
        ("past", {"kind": "event"}, False),
        ("other", {"slot": "home of Rome's mayor", "value": "Ben"}, False),
    ],
)
def test_what_falls_into_a_trap(
    tmp_path: Path, kind: str, further: dict[str, Any], broken: bool
) -> None:
    trap = {"id": "t", "is": "trap", "kind": kind, "message": "m5", "subject": "Mo",
            "about": ["home"], "value": ["Rome"]}  # fmt: skip
    _write_lines(tmp_path / "mo.jsonl", CHAT)
    _write_lines(tmp_path / "mo.gold.jsonl", [LINES[0], trap])
    columns = dict(further)
    said: Stated = (5, "Mo", columns.pop("slot", "home"), columns.pop("value", "Rome"), columns)
    outcomes = _measured(read_gold_annotations(tmp_path)[0], [said])
    assert outcomes.filter(measure="traps avoided")["hit"].to_list() == [not broken]


def _invalidated(chat: ChatAnnotations, *stated: Stated) -> tuple[list[bool], list[bool]]:
    outcomes = _measured(chat, list(stated))
    shares = [
        outcomes.filter(measure=f"invalidation {side}")["hit"] for side in ("precision", "recall")
    ]
    return shares[0].to_list(), shares[1].to_list()


def test_what_counts_as_invalidated(chat: ChatAnnotations) -> None:
    """The mill is over from the third message on."""
    LEFT: Stated = (
        3,
        "Mo",
        "job end",
        "the mill",
        {"kind": "event", "effects": ["ends"], "affected": ["f0"]},
    )
    assert _invalidated(chat, MILL, LEFT) == ([True], [True])
    # Nothing was known of it before it was over.
    assert _invalidated(chat, _further(MILL, until="2024")) == ([], [False])
    # By its own date, which was said with it.
    assert _invalidated(chat, _further(MILL, until="2025-02"), BOAT) == ([True], [True])
    # A month before the chat says so.
    early: Stated = (2, *LEFT[1:])
    assert _invalidated(chat, MILL, early) == ([False], [False])
    # Told in time, however long ago it ended.
    ago = _further(LEFT, since="2025-01-15")
    assert _invalidated(chat, MILL, ago) == ([True], [True])


def test_a_plan_that_came_about_is_over(tmp_path: Path) -> None:
    plan = {"id": "p", "is": "fact", "subject": "Mo", "about": ["move"], "value": ["Rome"],
            "mode": "plan", "since": "m2", "until": "m4"}  # fmt: skip
    _write_lines(tmp_path / "mo.jsonl", CHAT)
    _write_lines(tmp_path / "mo.gold.jsonl", [LINES[0], plan])
    chat = read_gold_annotations(tmp_path)[0]
    told: Stated = (2, "Mo", "move", "Rome", {"kind": "plan", "since": "2025-03"})
    moved: Stated = (4, "Mo", "home", "Rome", {"effects": ["came_about"], "affected": ["f0"]})
    assert _invalidated(chat, told, moved) == ([True], [True])
    # Due, and said to be active still.
    due = _measured(chat, [told])
    assert due.filter(measure="current precision")["kind"].to_list() == ["stale"]
    assert due.filter(measure="invalidation recall")["hit"].to_list() == [False]
    as_of = due.filter(measure="as-of recall")["hit"].to_list()
    assert as_of == [True, True], "on two of the three dates it was planned"


FROZEN = [
    {"scope": "mo", "messages": ["m1"], "about": "Mo", "slot": "employer", "value": "the mill",
     "source": "stated", "sentence": "Mo works at the mill.", "kind": "state", "holds": True,
     "values": "one", "since": None, "until": None, "effects": [], "said_by": "Mo"},
    {"scope": "mo", "messages": ["m3"], "about": "Mo", "slot": "job end", "value": "the mill",
     "source": "stated", "sentence": "Mo left the mill.", "kind": "event", "holds": True,
     "values": "many", "since": "2025-03", "until": None, "said_by": "Mo",
     "effects": [{"id": meaning_id("Mo", "employer", "the mill"), "how": "ends"}]},
    {"scope": "mo", "messages": ["m5"], "about": "Mo", "slot": "hobby", "value": "birds",
     "source": "stated"},
    {"scope": "mo", "messages": ["m5"], "about": "Mo", "slot": "hobby", "value": "chess",
     "source": "stated", "values": "many"},
]  # fmt: skip


def test_stated_rows_are_measured_and_read(folder: Path, tmp_path: Path) -> None:
    frozen = _write_lines(tmp_path / "frozen.jsonl", FROZEN)
    measured = score_annotated_chats(folder, facts=frozen)
    assert measured.filter(measure="invalidation recall")["hit"].to_list() == [True]
    assert AS_READ not in measured["measure"]
    found = list_unannotated_facts(folder, facts=frozen)
    assert found.select("scope", "value", "turns").rows() == [
        ("mo", "birds", ["Mo: bye"]),
        ("mo", "chess", ["Mo: bye"]),
    ]
    birds, chess = found["meaning"]
    assert birds == meaning_id("Mo", "hobby", "birds")
    # Two readers; of chess one of them is not sure.
    said = [(birds, True), (chess, True), (birds, True), (chess, False)]
    lines = [{"scope": "mo", "meaning": meaning, "true": true} for meaning, true in said]
    verdicts = _write_lines(tmp_path / "verdicts.jsonl", lines)
    read = score_annotated_chats(folder, facts=frozen, verdicts=verdicts)
    shares = summarise_fact_outcomes(read).select("measure", "n", "share").rows()
    assert shares[0] == ("current precision", 2, 0.0)
    assert shares[-1] == (AS_READ, 2, 0.5)
    assert AS_READ in format_fact_outcomes(read)


@pytest.mark.parametrize("line", ['{"scope": "mo"}', '{"scope": "mo", "meaning": "f1", "true": 1}'])
def test_what_is_no_verdict_is_refused(folder: Path, tmp_path: Path, line: str) -> None:
    (tmp_path / "verdicts.jsonl").write_text(line)
    with pytest.raises(DataError, match=r"verdicts\.jsonl, row 1"):
        score_annotated_chats(
            folder, facts=tmp_path / "no.jsonl", verdicts=tmp_path / "verdicts.jsonl"
        )


@pytest.mark.slow
def test_what_no_model_read_is_not_measured_and_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(DataError, match=r"no facts: only a model reads them .*--service NAME"):
        score_annotated_chats(FACTS / "dev")
    _write_lines(tmp_path / "mo.jsonl", CHAT)
    _write_lines(tmp_path / "mo.gold.jsonl", LINES)
    with pytest.raises(DataError, match="no facts: not recorded, for 5 of 5 sessions; --service"):
        score_annotated_chats(tmp_path, service="recorded")
    # A recorded answer for the first session alone.
    fact = {
        "about": "Mo",
        "slot": "employer",
        "value": "the mill",
        "sentence": "Mo works at the mill.",
        "kind": "state",
        "holds": True,
        "values": "one",
        "since": "",
        "until": "",
        "effects": [],
        "said_by": "Mo",
        "source": "stated",
        "turns": [1],
    }
    key = recording_key("facts", VERSION, ("mo/m1", MESSAGES[0][1]))
    answer = {"facts": [fact], "entities": [], "relations": []}
    row = {"task": "facts", "version": VERSION, "key": key, "answer": answer, "tokens": [50, 5]}
    recorded = tmp_path / "answers.json"
    recorded.write_text(json.dumps(row) + "\n")
    monkeypatch.setenv("MEMLAB_LLM__RECORDINGS", json.dumps([str(recorded)]))
    with pytest.warns(UserWarning, match="no facts: not recorded, for 4 of 5 sessions"):
        outcomes = score_annotated_chats(tmp_path, service="recorded")
    right = outcomes.filter(measure="as-of precision")["hit"].to_list()
    assert right == [True, True, False], "known on all three dates, and over before the third"


@pytest.mark.slow
@pytest.mark.parametrize(("half", "column"), [("dev", 2), ("heldout", 3)])
def test_the_table_of_the_docs_is_what_its_command_prints(half: str, column: int) -> None:
    """What a large language model stated once, resolved again."""
    measured = summarise_fact_outcomes(
        score_annotated_chats(FACTS / half, facts=FACTS / "frozen.jsonl", encoder=minilm())
    )
    page = (ROOT / "docs" / "evaluation" / "knowledge.md").read_text(encoding="utf-8").splitlines()
    cells = (line.split("|") for line in page)
    rows = {row[1].strip(): row[column] for row in cells if len(row) == 6}
    for measure, n, share in measured.select("measure", "n", "share").iter_rows():
        printed, *_, of = re.findall(r"[\d.]+", rows[measure])
        # What an encoder merges may differ by a fact or two between machines.
        assert abs(share - float(printed)) < 0.02, (measure, share, printed)
        assert abs(n - int(of)) <= 4, (measure, n, of)
