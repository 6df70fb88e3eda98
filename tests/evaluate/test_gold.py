"""Gold annotations: whether a fact says what an entry says, judged by hand; and that those of the repository hold."""

from __future__ import annotations

from pathlib import Path

import pytest

from memlab.errors import DataError
from memlab.evaluate.gold import Entry, agrees, read_gold, same_words

ROOT = Path(__file__).parents[2] / "data" / "facts"
HALVES = {half: read_gold(ROOT / half) for half in ("dev", "heldout")}
CHATS = [gold for half in HALVES.values() for gold in half]

# subject (its other names) | mode | words of the relation | wordings of the value
JOB = "Una,Una's | is | work job employ start teach | Ferris Dairy; the dairy"
HOME = "Una | is | live home move flat based stay | Tromsø"
BOSS = "Una | is | boss manager report lead | Henrik"
KEY = "Una | is | bike shed code lock | 4417"
PHONE = "Una | is | phone number mobile | 0478 22 19 03"
CATS = "Una | is | cat pet have | three cats; 3 cats; third cat"
MEAT = "Una | not | eat meat | meat"
PARTNER = "Una | is | boyfriend partner date with | Tom"
TRIP = "Una | plan | go trip fly visit | Crete; June"
LIMA = "Una | was | live | Lima"
MUM = "Mother,Una's mum,mum | is | live home | Odda"
STEAK = "Una | is | love like eat | steak"
BUS = "Una | is | drive bus | bus"

PAIRS = [
    ("Una | works at | Ferris Dairy", JOB, True),
    ("Una | no longer works at | Ferris Dairy", JOB, False),
    ("Una | hopes to work at | Ferris Dairy", JOB, False),
    ("Una's brother | works at | Ferris Dairy", JOB, False),
    ("Una | moved | from Oslo to Tromsø", HOME, True),
    ("Una | moved | from Tromsø to Oslo", HOME, False),
    ("Una | is moving to | Tromsø", HOME, False),
    ("Una's boss | is | Henrik", BOSS, True),
    ("Henrik | is the boss of | Una", BOSS, True),
    ("bike shed code | is | 4417", KEY, True),
    ("the flat | has | 4417 bricks", KEY, False),
    ("Una's phone number | is | 0478-221903", PHONE, True),
    ("Una's phone number | is | 0478 22 19 04", PHONE, False),
    ("Una | has | three cats", CATS, True),
    ("Una | does not eat | meat", MEAT, True),
    ("Una | eats | meat", MEAT, False),
    ("Una | broke up with | Tom", PARTNER, False),
    ("Una | plans to visit | Crete in June", TRIP, True),
    ("Una | cancelled the trip to | Crete", TRIP, False),
    ("Una | lives in | Lima", LIMA, False),
    ("Una's mum | lives in | Odda", MUM, True),
    ("Una's mum's cat | lives in | Odda", MUM, False),
    ("Una | is driving | to the bus", BUS, True),  # too kind: only the words are compared
]


def _entry(line: str) -> Entry:
    names, mode, about, value = (part.strip() for part in line.split("|"))
    values = tuple(v.strip() for v in value.split(";"))
    called = tuple(names.split(","))
    return Entry("e", "fact", called[0], called, values, "m1", about=tuple(about.split()), mode=mode)


def _fact(line: str) -> dict[str, str]:
    subject, predicate, obj = (part.strip() for part in line.split("|"))
    return {"subject": subject, "predicate": predicate, "object": obj, "speaker": "Una"}


@pytest.mark.parametrize(("fact", "line", "same"), PAIRS)
def test_pairs_judged_by_hand(fact: str, line: str, same: bool) -> None:
    assert agrees(_fact(fact), _entry(line)) == same


def test_a_fact_written_from_a_line_says_what_the_line_says() -> None:
    verbs = {"is": "{}", "not": "does not {}", "plan": "plans to {}", "was": "used to {}"}
    for gold in CHATS:
        for entry in gold.entries:
            if entry.kind != "neutral":
                relation = verbs[entry.mode].format(entry.about[0])
                row = {"subject": entry.names[-1], "predicate": relation, "object": entry.value[0], "speaker": None}
                assert same_words(row, entry), (gold.scope, entry.id)
                assert agrees(row, entry) or gold.closed or entry.mode == "is", (gold.scope, entry.id)


def test_what_is_no_annotation_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no gold annotations"):
        read_gold(tmp_path)
    (tmp_path / "a.jsonl").write_text('{"scope": "a", "id": "m1", "timestamp": "2025-01-01", "text": "x"}\n')
    head = '{"is": "gold", "scope": "a", "style": "s", "dates": [], "people": []}\n'
    (tmp_path / "a.gold.jsonl").write_text(head + '{"id": "f", "is": "fact", "subject": "B", "value": ["x"]}\n')
    with pytest.raises(DataError, match="line 2"):
        read_gold(tmp_path)
