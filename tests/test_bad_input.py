"""Bad files, odd names and places that cannot be written, through the command line: one clear error, nothing lost."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ir_measures
import pytest
from ir_measures import R

from memlab import datasets
from memlab.records import encode_id_part
from memlab.store import MemoryStore

HASHING = ("--encoder", "hashing:64")
MESSAGE = {"scope": "ann", "session": "s1", "sender": "Ann", "text": "I saw the dentist.", "id": "m1"}
QUESTION = {"scope": "ann", "question": "Whom did I see?", "evidence": ["m1"]}


def lines(*records: Any) -> str:
    return "".join((r if isinstance(r, str) else json.dumps(r)) + "\n" for r in records)


def message(done: Any) -> str:
    assert done.code == 2, (done.out, done.err)
    assert len(done.messages) == 1, done.err
    assert done.messages[0].startswith("memlab: ")
    return done.messages[0].removeprefix("memlab: ")


def without(record: dict[str, Any], *names: str) -> dict[str, Any]:
    return {key: value for key, value in record.items() if key not in names}


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("talk.jsonl", lines(MESSAGE, '{"scope": "ann", "te'), r"line 2: found broken JSON at column \d+"),
        ("talk.jsonl", lines(MESSAGE | {"text": "a\ud83d"}), r"line 1: text: found a lone surrogate \\ud83d at 1"),
        ("conv.json", '[{"sample_id": "conv-1", "qa": [{"question": "W', "broken JSON at line 1, byte"),
        ("some.json", '{"a": 1}', "is none of the formats .*locomo.*chatlog"),
        ("a\nb\x1b[31m", None, "cannot be read"),
    ],
)
def test_one_error_names_file_record_and_field(
    memlab_cli: Any, tmp_path: Path, name: str, text: Any, said: str
) -> None:
    if text is not None:
        (tmp_path / name).write_text(text, encoding="utf-8")
    found = message(memlab_cli("ingest", name, *HASHING, cwd=tmp_path))
    assert found.startswith(f"{name.encode('unicode_escape').decode()}: "), "a name cannot break the line"
    assert re.search(said, found), found
    assert text is not None or not list(tmp_path.iterdir()), "no store is made for a file that is not there"


def test_names_of_files_that_are_not_utf8_or_steer_the_terminal(memlab_cli: Any, tmp_path: Path) -> None:
    name, steering = os.fsdecode(b"caf\xe9.jsonl"), tmp_path / "\x1b]0;mine\x07log\u202e.jsonl"
    for path in (tmp_path / name, steering):
        path.write_text(lines(MESSAGE, QUESTION, "{}"))
    aside = "--on-error", "quarantine"
    assert r"caf\udce9 (chatlog)" in memlab_cli("ingest", name, *HASHING, *aside, cwd=tmp_path).out
    for verb in (("ingest", steering, *HASHING), ("convert", steering, tmp_path / "out")):
        done = memlab_cli(*verb, *aside, cwd=tmp_path)
        assert r"\x1b]0;mine\x07log" in done.out, (done.out, done.err)
        assert not {"\x1b", "\x07", "\u202e"}.intersection(done.out + done.err)


def test_quarantine_keeps_going_and_reports(memlab_cli: Any, tmp_path: Path) -> None:
    bad = ['{"scope": "ann", "te', MESSAGE | {"id": "m2", "text": 5}, QUESTION | {"evidence": ["m9"]}, *["{"] * 20]
    text = lines(MESSAGE, *bad, MESSAGE | {"id": "m3", "text": "The florist was closed."}, QUESTION)
    (tmp_path / "talk.jsonl").write_text(text)
    for _ in range(2):
        done = memlab_cli("ingest", "talk.jsonl", *HASHING, "--on-error", "quarantine", cwd=tmp_path)
        assert (done.code, done.messages) == (0, [])
        assert "talk (chatlog): 2 turns in 1 session of 1 scope, 1 question" in done.out
        assert re.search(r"^  talk\.jsonl: line 3: .*: quarantined$", done.out, re.MULTILINE)
        assert done.out.count("quarantined") == 8, "many are counted, not all printed"
        assert "… and 15 more" in done.out
    side = (tmp_path / ".memlab" / "quarantine" / "talk.jsonl.quarantine.jsonl").read_text().splitlines()
    assert sorted(json.loads(line)["record"] for line in side) == sorted(f"line {n}" for n in range(2, 25)), "once"
    assert "ann/m3" in memlab_cli("search", "florist", *HASHING, cwd=tmp_path).out.splitlines()[0]
    assert (tmp_path / "talk.jsonl").read_text() == text


NAMES = ["'; DROP TABLE turns; --", "a/b", "a%2Fb", "100 % sure", "../../etc", "日本 🦷", "new\nline", "x" * 500]


def test_any_name_goes_in_and_comes_out(memlab_cli: Any, tmp_path: Path) -> None:
    records: list[Any] = []
    for n, name in enumerate(NAMES):
        said = {"scope": name, "session": name, "sender": name}
        records += [said | {"text": f"The florist of street {n}.", "id": name}, said | {"text": "Nothing else."}]
        asked = {"scope": name, "question": "Where is the florist?", "evidence": [name]}
        records += [asked | {"query_id": f"{name} {n}", "type": name}]
    (tmp_path / "talk.jsonl").write_text(lines(*records))
    assert memlab_cli("ingest", "talk.jsonl", *HASHING, cwd=tmp_path).code == 0
    held = MemoryStore.open(tmp_path / ".memlab" / "store").dataset("talk")
    assert held.fingerprint() == datasets.load(tmp_path / "talk.jsonl").fingerprint()
    # A memory is found by its name as it was given, else as memlab prints it.
    for given, name in ((NAMES[0], NAMES[0]), ("a/b", "a/b"), ("a%2Fb", "a%2Fb"), ("a%252Fb", "a%2Fb")):
        done = memlab_cli("search", "florist", "--scope", given, "--pipeline", "bm25", *HASHING, cwd=tmp_path)
        assert (done.code, done.err) == (0, ""), (name, done.err)
        assert done.out.splitlines()[0].endswith(f"  {encode_id_part(name)}/{encode_id_part(name)}")
    done = memlab_cli("evaluate", "talk.jsonl", *HASHING, "--pipeline", "bm25", "--out", "out", cwd=tmp_path)
    assert done.code == 0, done.err
    judged = list(ir_measures.read_trec_qrels(str(tmp_path / "out" / "qrels.turn.trec")))
    run = list(ir_measures.read_trec_run(str(tmp_path / "out" / "bm25.turn.trec")))
    assert len(judged) == len({q.query_id for q in judged}) == len(NAMES)
    assert {r.doc_id.partition("/")[0] for r in run} == {encode_id_part(n) for n in NAMES}
    assert ir_measures.calc_aggregate([R @ 1], judged, run)[R @ 1] == 1.0
    assert json.loads((tmp_path / "out" / "report.json").read_text())["reports"][0]["n"] == len(NAMES)
    assert {path.name for path in tmp_path.iterdir()} == {"talk.jsonl", ".memlab", "out"}


def test_what_cannot_be_measured_is_said_before_anything_is_encoded(memlab_cli: Any, tmp_path: Path) -> None:
    unmeasured, sessions = without(QUESTION, "evidence"), {"evidence_sessions": ["s1"]}
    for questions, said in (
        ([], "has 0 questions"),
        ([unmeasured, unmeasured | {"abstention": True}], "has 2 questions and none with evidence"),
    ):
        (tmp_path / "talk.jsonl").write_text(lines(MESSAGE, *questions))
        assert said in message(memlab_cli("evaluate", "talk.jsonl", *HASHING, cwd=tmp_path))
        assert not (tmp_path / ".memlab" / "store").exists()
    evaluate = ("evaluate", "talk.jsonl", *HASHING, "--pipeline", "bm25", "--out", "out")
    (tmp_path / "talk.jsonl").write_text(lines(MESSAGE, unmeasured, QUESTION))
    assert "turns, all questions with evidence (n = 1)" in memlab_cli(*evaluate, cwd=tmp_path).out
    assert (tmp_path / "out" / "qrels.turn.trec").read_text() == "ann/q1 0 ann/m1 1\n"
    (tmp_path / "talk.jsonl").write_text(lines(MESSAGE, unmeasured | sessions))
    assert "no question cites turns: sessions alone are measured" in memlab_cli(*evaluate, cwd=tmp_path).out
    assert (tmp_path / "out" / "qrels.session.trec").read_text() == "ann/q0 0 ann/s1 1\n"


@pytest.fixture
def sealed(tmp_path: Path) -> Iterator[Path]:
    """A folder that nobody can write to, root neither where the file system knows the immutable mark."""
    place = tmp_path / "sealed"
    place.mkdir()
    if os.geteuid() != 0:
        place.chmod(0o500)
        yield place
        place.chmod(0o700)
        return
    if subprocess.run(["chattr", "+i", str(place)], capture_output=True, check=False).returncode:
        pytest.skip("root writes everywhere, and this file system has no immutable mark (chattr +i)")
    yield place
    subprocess.run(["chattr", "-i", str(place)], check=True)


def test_places_that_cannot_be_written(memlab_cli: Any, tmp_path: Path, sealed: Path) -> None:
    (tmp_path / "talk.jsonl").write_text(lines(MESSAGE, QUESTION))
    store = message(memlab_cli("ingest", "talk.jsonl", *HASHING, "--store", sealed / "store", cwd=tmp_path))
    assert re.search("sealed/store.*(cannot be written|Operation not permitted)", store)
    out = message(memlab_cli("evaluate", "talk.jsonl", *HASHING, "--out", sealed / "out", cwd=tmp_path))
    assert re.search("sealed/out.*cannot be written", out)
    assert "cannot be written" in message(memlab_cli("figures", sealed, cwd=tmp_path))
    for verb in (("ingest", "talk.jsonl"), ("evaluate", "talk.jsonl"), ("search", "x")):
        found = message(memlab_cli(*verb, *HASHING, "--store", "talk.jsonl", cwd=tmp_path))
        assert "store talk.jsonl is a file; expected a directory" in found


STORED = (*HASHING, "--store", "store")
EXTREMES = ("0001-01-01T00:00+14:00", "9999-12-31T23:59-14:00", "", "2026-13-01", "\ud800")
HUGE = "9" * 30


def test_odd_options_and_names_are_one_line(memlab_cli: Any, tmp_path: Path) -> None:
    said = MESSAGE | {"text": "I live in Oslo. My door code is 12u34.", "timestamp": "2026-03-01T09:00:00Z"}
    (tmp_path / "log.jsonl").write_text(lines(said, QUESTION))
    for verb in (("ingest", "log.jsonl"), ("index",)):
        assert memlab_cli(*verb, *STORED, cwd=tmp_path).code == 0
    for command in (
        *((*verb, at) for verb in (("index", "--now"), ("facts", "--as-of"), ("facts", "--since")) for at in EXTREMES),
        *((*verb, HUGE) for verb in (("recall", "Where?", "--k"), ("search", "Where?", "--k"), ("facts", "--k"))),
        ("facts", "--undo", "\ud800", "\x00"),
        *((verb, "x" * 5_000) for verb in ("ingest", "evaluate", "compare")),
        ("evaluate", "log.jsonl", "--pipeline", f"bm25 | learned(model='{'x' * 5_000}')"),
        ("evaluate", "log.jsonl", "--pipeline", "@\x00"),
    ):
        done = memlab_cli(*command, *STORED, cwd=tmp_path)
        assert done.code in (0, 2), command
        assert len(done.messages) == (done.code == 2) or "Usage" in done.err, (command, done.err)
    assert "door code is 12u34" in memlab_cli("facts", *STORED, cwd=tmp_path).out
    for verb in (("figures",), ("notebooks", "--source"), ("info", "--encoder"), ("info", "--store")):
        done = memlab_cli(*verb, "x" * 5_000, cwd=tmp_path)
        assert (done.code in (0, 2), len(done.messages)) == (True, done.code == 2), verb
