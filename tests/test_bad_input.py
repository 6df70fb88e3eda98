"""Bad files and odd names and options, through the command line: one clear error, nothing lost."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import ir_measures
import pytest
from fact_answers import facts_answer, stated_fact
from ir_measures import R

from memlab import datasets
from memlab.knowledge.fact_prompts import VERSION as FACTS_VERSION
from memlab.llm.recorded_answers import recording_key
from memlab.records import encode_id_part
from memlab.store import MemoryStore

HASHING = ("--encoder", "hashing:64")
ASIDE = (*HASHING, "--on-error", "quarantine")
MESSAGE = {
    "scope": "ann",
    "session": "s1",
    "sender": "Ann",
    "text": "I saw the dentist.",
    "id": "m1",
}
UNMEASURED = {"scope": "ann", "question": "Whom did I see?"}
QUESTION = UNMEASURED | {"evidence": ["m1"]}


def lines(*records: Any) -> str:
    return "".join((r if isinstance(r, str) else json.dumps(r)) + "\n" for r in records)


def message(done: Any) -> str:
    assert done.code == 2, (done.out, done.err)
    assert len(done.messages) == 1, done.err
    assert done.messages[0].startswith("memlab: ")
    return str(done.messages[0].removeprefix("memlab: "))


def test_names_of_files_that_are_missing_not_utf8_or_steer_the_terminal(
    memlab_cli: Any, tmp_path: Path
) -> None:
    missing = message(memlab_cli("ingest", "a\nb\x1b[31m", *HASHING, cwd=tmp_path))
    assert missing.startswith(r"a\nb\x1b[31m: cannot be read")
    assert not list(tmp_path.iterdir()), "no store is made for a file that is not there"
    name, steering = os.fsdecode(b"caf\xe9.jsonl"), tmp_path / "\x1b]0;mine\x07log\u202e.jsonl"
    for path in (tmp_path / name, steering):
        path.write_text(lines(MESSAGE, QUESTION, "{}"))
    assert r"caf\udce9 (chatlog)" in memlab_cli("ingest", name, *ASIDE, cwd=tmp_path).out
    done = memlab_cli("ingest", steering, *ASIDE, cwd=tmp_path)
    assert r"\x1b]0;mine\x07log" in done.out, (done.out, done.err)
    assert not {"\x1b", "\x07", "\u202e"}.intersection(done.out + done.err)


def test_quarantine_keeps_going_and_reports(memlab_cli: Any, tmp_path: Path) -> None:
    bad = [
        '{"scope": "ann", "te',
        MESSAGE | {"id": "m2", "text": 5},
        QUESTION | {"evidence": ["m9"]},
        *["{"] * 20,
    ]
    text = lines(MESSAGE, *bad, MESSAGE | {"id": "m3", "text": "The florist was closed."}, QUESTION)
    (tmp_path / "talk.jsonl").write_text(text)
    for _ in range(2):
        done = memlab_cli("ingest", "talk.jsonl", *ASIDE, cwd=tmp_path)
        assert (done.code, done.messages) == (0, [])
        assert "talk (chatlog): 2 turns in 1 session of 1 scope, 1 question" in done.out
        assert re.search(r"^  talk\.jsonl: line 3: .*: quarantined$", done.out, re.MULTILINE)
        assert "… and 15 more" in done.out, "many are counted, not all printed"
    side = (
        (tmp_path / ".memlab" / "quarantine" / "talk.jsonl.quarantine.jsonl")
        .read_text()
        .splitlines()
    )
    assert sorted(json.loads(line)["record"] for line in side) == sorted(
        f"line {n}" for n in range(2, 25)
    ), "once"
    found = memlab_cli("search", "florist", *HASHING, cwd=tmp_path).out.splitlines()
    assert found[3].endswith("message ann/m3")
    assert (tmp_path / "talk.jsonl").read_text() == text


NAMES = [
    "'; DROP TABLE turns; --",
    "a/b",
    "a%2Fb",
    "100 % sure",
    "../../etc",
    "日本 🦷",
    "new\nline",
    "x" * 500,
]


@pytest.mark.slow
def test_any_name_goes_in_and_comes_out(memlab_cli: Any, tmp_path: Path) -> None:
    records: list[Any] = []
    for n, name in enumerate(NAMES):
        said = {"scope": name, "session": name, "sender": name}
        records += [
            said | {"text": f"The florist of street {n}.", "id": name},
            said | {"text": "Nothing else."},
        ]
        asked = {"scope": name, "question": "Where is the florist?", "evidence": [name]}
        records += [asked | {"query_id": f"{name} {n}", "type": name}]
    (tmp_path / "talk.jsonl").write_text(lines(*records))
    assert memlab_cli("ingest", "talk.jsonl", *HASHING, cwd=tmp_path).code == 0
    held = MemoryStore.open(tmp_path / ".memlab" / "store").dataset("talk")
    assert held.fingerprint() == datasets.load(tmp_path / "talk.jsonl").fingerprint()
    # A memory is found by its name as it was given, else as memlab prints it.
    for given, name in ((NAMES[0], NAMES[0]), ("a%2Fb", "a%2Fb"), ("a%252Fb", "a%2Fb")):
        done = memlab_cli(
            "search", "florist", "--scope", given, "--pipeline", "bm25", *HASHING, cwd=tmp_path
        )
        assert f"message {encode_id_part(name)}/{encode_id_part(name)}" in done.out, done.err
    done = memlab_cli(
        "evaluate", "talk.jsonl", *HASHING, "--pipeline", "bm25", "--out", "out", cwd=tmp_path
    )
    assert done.code == 0, done.err
    judged = list(ir_measures.read_trec_qrels(str(tmp_path / "out" / "qrels.turn.trec")))
    run = list(ir_measures.read_trec_run(str(tmp_path / "out" / "bm25.turn.trec")))
    assert len(judged) == len({q.query_id for q in judged}) == len(NAMES)
    assert {r.doc_id.partition("/")[0] for r in run} == {encode_id_part(n) for n in NAMES}
    assert ir_measures.calc_aggregate([R @ 1], judged, run)[R @ 1] == 1.0
    assert {path.name for path in tmp_path.iterdir()} == {"talk.jsonl", ".memlab", "out"}


def test_what_cannot_be_measured_is_said_before_anything_is_encoded(
    memlab_cli: Any, tmp_path: Path
) -> None:
    evaluate = ("evaluate", "talk.jsonl", *HASHING, "--pipeline", "bm25", "--out", "out")
    for questions, said in (
        ([], "has 0 questions"),
        ([UNMEASURED, UNMEASURED | {"abstention": True}], "has 2 questions and none with evidence"),
    ):
        (tmp_path / "talk.jsonl").write_text(lines(MESSAGE, *questions))
        assert said in message(memlab_cli(*evaluate, cwd=tmp_path))
        assert not (tmp_path / ".memlab" / "store").exists()
    for level, question, said, qrels in (
        ("turn", QUESTION, "turns, all questions with evidence (n = 1)", "ann/q1 0 ann/m1 1\n"),
        (
            "session",
            UNMEASURED | {"evidence_sessions": ["s1"]},
            "sessions alone are measured",
            "ann/q1 0 ann/s1 1\n",
        ),
    ):
        (tmp_path / "talk.jsonl").write_text(lines(MESSAGE, UNMEASURED, question))
        assert said in memlab_cli(*evaluate, cwd=tmp_path).out
        assert (tmp_path / "out" / f"qrels.{level}.trec").read_text() == qrels


EXTREMES = ("0001-01-01T00:00+14:00", "9999-12-31T23:59-14:00", "", "2026-13-01", "\ud800")
HUGE, LONG = "9" * 30, "x" * 5_000


@pytest.mark.slow
def test_odd_options_and_names_are_one_line(memlab_cli: Any, tmp_path: Path) -> None:
    said = MESSAGE | {
        "text": "I live in Oslo. My door code is 12u34.",
        "timestamp": "2026-03-01T09:00:00Z",
    }
    (tmp_path / "log.jsonl").write_text(lines(said, QUESTION))
    sentence = "Ann's door code is 12u34."
    fact = stated_fact("Ann", "door code", "12u34", sentence=sentence, turns=[1])
    named = {"task": "facts", "version": FACTS_VERSION}
    key = recording_key("facts", FACTS_VERSION, ("ann/m1", said["text"]))
    row = named | {"key": key, "answer": facts_answer(fact), "tokens": [50, 5]}
    (tmp_path / "recorded.jsonl").write_text(lines(row))
    recordings = json.dumps([str(tmp_path / "recorded.jsonl")])
    for verb in (("ingest", "log.jsonl"), ("index",)):
        command = (*verb, *HASHING, "--store", "store")
        assert memlab_cli(*command, cwd=tmp_path, MEMLAB_LLM__RECORDINGS=recordings).code == 0
    for command in (
        *(
            (*verb, at)
            for verb in (("index", "--now"), ("facts", "--as-of"), ("facts", "--since"))
            for at in EXTREMES
        ),
        *(
            (*verb, HUGE)
            for verb in (("recall", "Where?", "--k"), ("search", "Where?", "--k"), ("facts", "--k"))
        ),
        ("facts", "--undo", "\ud800", "\x00"),
        *((verb, LONG) for verb in ("ingest", "evaluate", "compare", "figures", "notebooks")),
        ("evaluate", "log.jsonl", "--pipeline", f"bm25 | learned(model='{LONG}')"),
        ("evaluate", "log.jsonl", "--pipeline", "@\x00"),
        ("evaluate", "log.jsonl", "--pipeline", "bm25", "--out", LONG),
    ):
        options = () if command[0] in ("figures", "notebooks") else (*HASHING, "--store", "store")
        done = memlab_cli(*command, *options, cwd=tmp_path)
        assert done.code in (0, 2), command
        assert len(done.messages) == (done.code == 2) or "Usage" in done.err, (command, done.err)
    assert (
        "door code is 12u34" in memlab_cli("facts", *HASHING, "--store", "store", cwd=tmp_path).out
    )
    for option in ("--encoder", "--store"):
        assert memlab_cli("info", option, LONG, cwd=tmp_path).code in (0, 2)


def test_numbers_that_are_none_or_endless_are_refused(memlab_cli: Any, tmp_path: Path) -> None:
    (tmp_path / "log.jsonl").write_text(lines(MESSAGE, QUESTION))
    for command in (
        ("index", "--store", "store", "--watch"),
        ("compare", "log.jsonl", "--system", "bm25", "--timeout"),
        ("compare", "log.jsonl", "--system", "bm25", "--fail-below"),
    ):
        for number in ("inf", "nan", "1e300"):
            done = memlab_cli(*command, number, *HASHING, cwd=tmp_path)
            assert done.code == 2, (command, number, done.err)
            assert "Traceback" not in done.err
    assert [path.name for path in tmp_path.iterdir()] == ["log.jsonl"]


ODD_COMMANDS = [
    (("facts", "--scope", "anna"), "did you mean 'ann'?"),
    (("search", "florist", "--pipeline", ""), "the pipeline is empty; name a stage"),
    (("search", "florist", "--pipeline", "best |"), "is not a pipeline (invalid syntax)"),
    (("why", "talk.jsonl", "q1"), "the conversations: memlab why q1 talk.jsonl"),
    (("evaluate", "talk.jsonl", "--pipeline", "bm25"), "memlab questions proposes them"),
]


@pytest.mark.parametrize(("command", "said"), ODD_COMMANDS)
def test_odd_commands_end_in_one_line_that_says_what_to_do(
    memlab_cli: Any, tmp_path: Path, command: tuple[str, ...], said: str
) -> None:
    messages = [
        {"scope": name, "sender": name, "text": f"The florist knows {name}."}
        for name in ("ann", "bo")
    ]
    (tmp_path / "talk.jsonl").write_text(lines(*messages))
    assert memlab_cli("ingest", "talk.jsonl", *HASHING, cwd=tmp_path).code == 0
    done = memlab_cli(*command, *HASHING, cwd=tmp_path)
    assert done.code == 2
    assert len(done.messages) == 1
    assert said in done.messages[0]


def test_a_file_of_the_same_name_says_what_stays_of_the_other(
    memlab_cli: Any, tmp_path: Path
) -> None:
    for folder, scope in (("one", "ann"), ("two", "bo")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "talk.jsonl").write_text(
            lines({"scope": scope, "sender": scope, "text": "Hello."})
        )
    said = "talk: the store had a dataset of this name; it keeps 1 other scope: ann"
    assert "had a dataset" not in memlab_cli("ingest", "one/talk.jsonl", *HASHING, cwd=tmp_path).out
    assert said in memlab_cli("ingest", "two/talk.jsonl", *HASHING, cwd=tmp_path).out
