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

HASHING = ("--encoder", "hashing")
MESSAGE = {"scope": "ann", "session": "s1", "sender": "Ann", "text": "I saw the dentist.", "id": "m1"}
QUESTION = {"scope": "ann", "question": "Whom did I see?", "evidence": ["m1"]}
LOCOMO: dict[str, Any] = {
    "sample_id": "conv-1",
    "conversation": {
        "speaker_a": "Ann",
        "speaker_b": "Bea",
        "session_1_date_time": "1:56 pm on 8 May, 2023",
        "session_1": [{"speaker": "Ann", "dia_id": "D1:1", "text": "I moved."}],
    },
    "qa": [{"question": "When?", "answer": "May", "evidence": ["D1:1"], "category": 2}],
}
HAYSTACK: dict[str, Any] = {
    "question_id": "q1",
    "question_type": "multi-session",
    "question": "How many?",
    "answer": 2,
    "question_date": "2023/05/30 (Tue) 23:40",
    "haystack_dates": ["2023/05/20 (Sat) 02:21"],
    "haystack_session_ids": ["x1"],
    "haystack_sessions": [[{"role": "user", "content": "one fact", "has_answer": True}]],
    "answer_session_ids": ["x1"],
}


def lines(*records: Any) -> str:
    return "".join((r if isinstance(r, str) else json.dumps(r)) + "\n" for r in records)


def message(done: Any) -> str:
    assert done.code == 2, (done.out, done.err)
    assert len(done.messages) == 1, done.err
    assert done.messages[0].startswith("memlab: ")
    return done.messages[0].removeprefix("memlab: ")


def without(record: dict[str, Any], *names: str) -> dict[str, Any]:
    return {key: value for key, value in record.items() if key not in names}


BROKEN = [
    ("talk.jsonl", lines(MESSAGE, '{"scope": "ann", "te'), r"line 2: found broken JSON at column \d+"),
    ("talk.jsonl", lines(MESSAGE, "[1]"), "line 2: found a list of 1, expected an object"),
    ("talk.jsonl", lines(MESSAGE | {"text": 5}), r"line 1: text: found 5 \(a number\), expected a string"),
    ("talk.jsonl", lines(MESSAGE | {"text": None}), "line 1: text: found null, expected a string"),
    ("talk.jsonl", lines(without(MESSAGE, "text")), r"line 1: text: found nothing \(the field is missing\)"),
    ("talk.jsonl", lines(MESSAGE, without(MESSAGE, "scope", "id")), r"line 2: scope: found nothing"),
    ("talk.jsonl", lines(without(MESSAGE, "sender")), "line 1: sender: found neither a sender nor a role"),
    ("talk.jsonl", lines(MESSAGE | {"timestamp": "soon"}), "line 1: timestamp: found 'soon'"),
    ("talk.jsonl", lines(MESSAGE, MESSAGE), "line 2: id: found 'm1' again in scope 'ann' .first on line 1."),
    ("talk.jsonl", lines(MESSAGE, QUESTION | {"evidence": ["m9"]}), r"line 2: evidence\[0\]: found 'm9'"),
    ("talk.jsonl", lines(MESSAGE, QUESTION | {"evidence": "m1"}), "line 2: evidence: found 'm1' .a string., expected"),
    ("talk.jsonl", lines(MESSAGE, QUESTION | {"scope": "bob"}), "line 2: scope: found 'bob', which has no messages"),
    (
        "talk.jsonl",
        lines(MESSAGE, QUESTION | {"query_id": "q"}, QUESTION | {"query_id": "q"}),
        "line 3: query_id: found 'q' again",
    ),
    ("talk.jsonl", lines(MESSAGE | {"text": "a\x00b"}), "line 1: text: found a NUL character at 1"),
    ("talk.jsonl", lines(MESSAGE | {"text": "a\ud83d"}), r"line 1: text: found a lone surrogate \\ud83d at 1"),
    ("talk.jsonl", lines(MESSAGE | {"scope": "a\udc00"}), r"line 1: scope: found a lone surrogate \\udc00"),
    ("talk.jsonl", lines(MESSAGE | {"session": "\x00"}), "line 1: session: found a NUL character"),
    ("talk.jsonl", lines(QUESTION), "holds no usable message"),
    ("conv.json", json.dumps([LOCOMO])[:-60], "broken JSON at line 1, byte"),
    ("conv.json", json.dumps([without(LOCOMO, "conversation")]), "conversation: found nothing"),
    ("conv.json", json.dumps([LOCOMO | {"qa": {}}]), "qa: found an object"),
    ("conv.json", json.dumps([LOCOMO, LOCOMO]), "'conv-1' again"),
    ("hay.json", json.dumps([HAYSTACK])[:-5], "broken JSON at line 1, byte"),
    ("hay.json", json.dumps([without(HAYSTACK, "question")]), "question: found nothing"),
    ("hay.json", json.dumps([HAYSTACK | {"haystack_dates": []}]), "1 sessions, 1 ids and 0 dates"),
    ("hay.json", json.dumps([HAYSTACK | {"answer_session_ids": ["x9"]}]), "answer_session_ids: found 'x9'"),
    ("hay.json", json.dumps([HAYSTACK, HAYSTACK]), "'q1' again"),
    ("some.json", '{"a": 1}', "is none of the formats .*locomo.*chatlog"),
    ("empty.jsonl", "", "is empty"),
]


@pytest.mark.parametrize(("name", "text", "said"), BROKEN)
@pytest.mark.parametrize("verb", ["ingest", "evaluate"])
def test_one_error_names_file_record_and_field(
    memlab_cli: Any, tmp_path: Path, verb: str, name: str, text: str, said: str
) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    found = message(memlab_cli(verb, name, *HASHING, cwd=tmp_path))
    assert found.startswith(f"{name}: ")
    assert re.search(said, found), found
    assert (tmp_path / name).read_text(encoding="utf-8") == text


@pytest.mark.parametrize("verb", ["ingest", "evaluate"])
def test_what_is_no_file(memlab_cli: Any, tmp_path: Path, verb: str) -> None:
    assert "none.jsonl: cannot be read" in message(memlab_cli(verb, "none.jsonl", *HASHING, cwd=tmp_path))
    assert "is a directory, expected a file" in message(memlab_cli(verb, ".", *HASHING, cwd=tmp_path))
    odd = message(memlab_cli(verb, "a\nb\x1b[31m", *HASHING, cwd=tmp_path))
    assert odd.startswith(r"a\nb\x1b[31m: cannot be read"), "a name cannot break the line or colour the terminal"
    assert not list(tmp_path.iterdir()), "no store is made for a file that is not there"


def test_bytes_that_are_not_utf8(memlab_cli: Any, tmp_path: Path) -> None:
    (tmp_path / "talk.jsonl").write_bytes(lines(MESSAGE).encode() + b'{"scope": "ann", "text": "caf\xe9"}\n')
    found = message(memlab_cli("ingest", "talk.jsonl", *HASHING, cwd=tmp_path))
    assert "line 2: found a byte that is not UTF-8 (0xe9, byte 30 of the line)" in found


def test_a_file_name_that_is_not_utf8(memlab_cli: Any, tmp_path: Path) -> None:
    name = os.fsdecode(b"caf\xe9.jsonl")
    (tmp_path / name).write_text(lines(MESSAGE, QUESTION))
    done = memlab_cli("ingest", name, *HASHING, cwd=tmp_path)
    assert done.code == 0, done.err
    assert r"caf\udce9 (chatlog)" in done.out


def test_a_file_name_that_steers_the_terminal(memlab_cli: Any, tmp_path: Path) -> None:
    path = tmp_path / "\x1b]0;mine\x07log.jsonl"
    path.write_text(lines(MESSAGE, QUESTION, "{}"))
    for verb in (("ingest", path, *HASHING), ("convert", path, tmp_path / "out")):
        done = memlab_cli(*verb, "--on-error", "quarantine", cwd=tmp_path)
        assert r"\x1b]0;mine\x07log" in done.out, (done.out, done.err)
        assert not {"\x1b", "\x07"}.intersection(done.out + done.err)


def test_quarantine_keeps_going_and_reports(memlab_cli: Any, tmp_path: Path) -> None:
    bad = ['{"scope": "ann", "te', MESSAGE | {"id": "m2", "text": 5}, QUESTION | {"evidence": ["m9"]}]
    text = lines(MESSAGE, *bad, MESSAGE | {"id": "m3", "text": "The florist was closed."}, QUESTION)
    (tmp_path / "talk.jsonl").write_text(text)
    for verb in ("ingest", "evaluate"):
        done = memlab_cli(verb, "talk.jsonl", *HASHING, "--on-error", "quarantine", cwd=tmp_path)
        assert (done.code, done.messages) == (0, [])
        assert "talk (chatlog): 2 turns in 1 sessions of 1 scopes, 1 questions" in done.out
        for line in (2, 3, 4):
            assert re.search(rf"^  talk\.jsonl: line {line}: .*: quarantined$", done.out, re.MULTILINE)
        side = (tmp_path / ".memlab" / "quarantine" / "talk.jsonl.quarantine.jsonl").read_text().splitlines()
        kept = [json.loads(line) for line in side]
        assert [one["record"] for one in kept] == ["line 2", "line 3", "line 4"], "set aside once, not once a load"
        assert kept[0]["raw"] == bad[0]
        assert kept[1]["raw"] == bad[1]
    found = memlab_cli("search", "florist", *HASHING, cwd=tmp_path)
    assert "ann/m3" in found.out.splitlines()[0]
    assert (tmp_path / "talk.jsonl").read_text() == text


def test_many_bad_records_are_counted_not_all_printed(memlab_cli: Any, tmp_path: Path) -> None:
    (tmp_path / "talk.jsonl").write_text(lines(MESSAGE, *["{"] * 500))
    done = memlab_cli("ingest", "talk.jsonl", *HASHING, "--on-error", "quarantine", cwd=tmp_path)
    assert done.code == 0
    assert done.out.count("quarantined") == 8
    assert "… and 492 more" in done.out


@pytest.mark.slow
def test_a_message_of_five_megabytes(memlab_cli: Any, tmp_path: Path) -> None:
    words = " ".join(f"word{n % 9000}" for n in range(600_000))
    assert len(words) > 5_000_000
    (tmp_path / "talk.jsonl").write_text(
        lines(MESSAGE | {"text": f"{words} zanzibar"}, MESSAGE | {"id": "m2", "text": "Hello."}, QUESTION)
    )
    assert memlab_cli("ingest", "talk.jsonl", *HASHING, cwd=tmp_path).code == 0
    done = memlab_cli("search", "zanzibar", "--pipeline", "bm25", *HASHING, cwd=tmp_path)
    assert done.code == 0, done.err
    assert "ann/m1" in done.out.splitlines()[0]
    assert len(done.out) < 1_000
    done = memlab_cli("evaluate", "talk.jsonl", *HASHING, "--pipeline", "hybrid", cwd=tmp_path)
    assert done.code == 0, done.err


NAMES = [
    "'; DROP TABLE turns; --",
    '"quoted"',
    "a/b\\c",
    "100 % sure",
    "%2F",
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
            {
                "scope": name,
                "question": "Where is the florist?",
                "evidence": [name],
                "query_id": f"{name} {n}",
                "type": name,
            },
        ]
    (tmp_path / "talk.jsonl").write_text(lines(*records))
    assert memlab_cli("ingest", "talk.jsonl", *HASHING, cwd=tmp_path).code == 0
    held = MemoryStore.open(tmp_path / ".memlab" / "store").dataset("talk")
    assert held.fingerprint() == datasets.load(tmp_path / "talk.jsonl").fingerprint()
    for n, name in enumerate(NAMES):
        chosen = ("--scope", name if n % 2 else encode_id_part(name), "--pipeline", "bm25")
        done = memlab_cli("search", "florist", *chosen, *HASHING, cwd=tmp_path)
        assert (done.code, done.err) == (0, ""), (name, done.err)
        assert done.out.splitlines()[0].endswith(f"  {encode_id_part(name)}/{encode_id_part(name)}")
    done = memlab_cli("evaluate", "talk.jsonl", *HASHING, "--pipeline", "bm25", "--out", "out", cwd=tmp_path)
    assert done.code == 0, done.err
    judged = list(ir_measures.read_trec_qrels(str(tmp_path / "out" / "qrels.turn.trec")))
    run = list(ir_measures.read_trec_run(str(tmp_path / "out" / "bm25.turn.trec")))
    assert len(judged) == len({q.query_id for q in judged}) == len(NAMES)
    assert {r.doc_id.partition("/")[0] for r in run} == {encode_id_part(n) for n in NAMES}
    assert ir_measures.calc_aggregate([R @ 1], judged, run)[R @ 1] == 1.0
    report = (tmp_path / "out" / "report.md").read_text(), (tmp_path / "out" / "report.json").read_text()
    assert json.loads(report[1])["reports"][0]["n"] == len(NAMES)
    assert [p.name for p in tmp_path.iterdir() if p.name not in ("talk.jsonl", ".memlab", "out")] == []


@pytest.mark.parametrize(
    ("questions", "said"),
    [
        ([], "has 0 questions"),
        ([without(QUESTION, "evidence") | {"abstention": True}], "has 1 questions and none with evidence"),
        ([without(QUESTION, "evidence")], "has 1 questions and none with evidence"),
    ],
)
def test_nothing_to_measure_is_said_before_anything_is_encoded(
    memlab_cli: Any, tmp_path: Path, questions: list[Any], said: str
) -> None:
    (tmp_path / "talk.jsonl").write_text(lines(MESSAGE, *questions))
    assert said in message(memlab_cli("evaluate", "talk.jsonl", *HASHING, cwd=tmp_path))
    assert not (tmp_path / ".memlab" / "store").exists()
    assert memlab_cli("ingest", "talk.jsonl", *HASHING, cwd=tmp_path).code == 0, "it can still be searched"


def test_questions_without_evidence_are_left_out_and_the_rest_is_measured(memlab_cli: Any, tmp_path: Path) -> None:
    without_any = without(QUESTION, "evidence")
    (tmp_path / "talk.jsonl").write_text(lines(MESSAGE, without_any, without_any | {"abstention": True}, QUESTION))
    done = memlab_cli("evaluate", "talk.jsonl", *HASHING, "--out", "out", cwd=tmp_path)
    assert done.code == 0, done.err
    assert "turns, all questions with evidence (n = 1)" in done.out
    assert (tmp_path / "out" / "qrels.turn.trec").read_text() == "ann/q2 0 ann/m1 1\n"


def test_evidence_of_sessions_alone_is_measured_at_that_level(memlab_cli: Any, tmp_path: Path) -> None:
    asked = without(QUESTION, "evidence") | {"evidence_sessions": ["s1"]}
    (tmp_path / "talk.jsonl").write_text(lines(MESSAGE, asked))
    done = memlab_cli("evaluate", "talk.jsonl", *HASHING, "--out", "out", "--pipeline", "bm25", cwd=tmp_path)
    assert done.code == 0, done.err
    assert "no question cites turns: sessions alone are measured" in done.out
    assert (tmp_path / "out" / "qrels.session.trec").read_text() == "ann/q0 0 ann/s1 1\n"
    assert (tmp_path / "out" / "bm25.session.trec").is_file()
    assert json.loads((tmp_path / "out" / "report.json").read_text())["reports"][0]["level"] == "session"


@pytest.mark.parametrize(
    ("name", "record", "shape", "query"),
    [
        ("conv.json", LOCOMO, "conv-1/session_1/1", "conv-1/q0"),
        ("hay.json", HAYSTACK, "q1/x1/1", "q1"),
    ],
)
def test_benchmark_ids(memlab_cli: Any, tmp_path: Path, name: str, record: Any, shape: str, query: str) -> None:
    (tmp_path / name).write_text(json.dumps([record]))
    done = memlab_cli("evaluate", name, *HASHING, "--pipeline", "bm25", "--out", "out", cwd=tmp_path)
    assert done.code == 0, done.err
    assert (tmp_path / "out" / "qrels.turn.trec").read_text() == f"{query} 0 {shape} 1\n"
    assert (tmp_path / "out" / "qrels.session.trec").read_text() == f"{query} 0 {shape.rpartition('/')[0]} 1\n"
    assert (tmp_path / "out" / "bm25.turn.trec").read_text().startswith(f"{query} Q0 {shape} 1 ")


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
    assert "sealed/store" in store
    assert re.search("cannot be written|Operation not permitted", store)
    out = message(memlab_cli("evaluate", "talk.jsonl", *HASHING, "--out", sealed / "out", cwd=tmp_path))
    assert "sealed/out" in out
    assert "cannot be written" in out
    assert "cannot be written" in message(memlab_cli("figures", sealed, cwd=tmp_path))


@pytest.mark.parametrize("arguments", [("ingest", "talk.jsonl"), ("evaluate", "talk.jsonl"), ("search", "x")])
def test_a_store_that_is_a_file_or_something_else(memlab_cli: Any, tmp_path: Path, arguments: tuple[str, ...]) -> None:
    (tmp_path / "talk.jsonl").write_text(lines(MESSAGE, QUESTION))
    found = message(memlab_cli(*arguments, *HASHING, "--store", "talk.jsonl", cwd=tmp_path))
    assert "store talk.jsonl is a file; expected a directory" in found
    assert "hosted service" in message(memlab_cli(*arguments, *HASHING, "--store", "db://x", cwd=tmp_path))


def test_a_store_made_by_another_encoder_is_filled_not_mixed(memlab_cli: Any, tmp_path: Path) -> None:
    (tmp_path / "talk.jsonl").write_text(lines(MESSAGE, QUESTION))
    for width in (64, 128):
        done = memlab_cli("ingest", "talk.jsonl", "--encoder", f"hashing:{width}", cwd=tmp_path)
        assert f"talk: 1 turns newly encoded by hashing:{width}" in done.out, "each encoder has a column of its own"
    for width in (64, 128):
        done = memlab_cli("search", "dentist", "--pipeline", "dense", "--encoder", f"hashing:{width}", cwd=tmp_path)
        assert (done.code, done.err) == (0, "")
        assert done.out.splitlines()[0].endswith("ann/m1")


@pytest.fixture(scope="module")
def indexed(memlab_cli: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a folder with a store of one memory, whose facts are read."""
    folder = tmp_path_factory.mktemp("indexed")
    said = MESSAGE | {"text": "I live in Oslo. My door code is 12u34.", "timestamp": "2026-03-01T09:00:00Z"}
    (folder / "log.jsonl").write_text(lines(said, QUESTION))
    for verb in (("ingest", "log.jsonl"), ("index",)):
        assert memlab_cli(*verb, *STORED, cwd=folder).code == 0
    return folder


STORED = ("--encoder", "hashing:64", "--store", "store")
EXTREMES = ("0001-01-01", "0001-01-01T00:00+14:00", "9999-12-31", "9999-12-31T23:59-14:00", "", "2026-13-01", "\ud800")
HUGE = "9" * 30


@pytest.mark.parametrize(
    "command",
    [
        *((verb, "--now", at) for verb in ("index", "facts") for at in EXTREMES),
        *(("facts", option, at) for option in ("--as-of", "--since") for at in EXTREMES),
        ("recall", "Where?", "--k", HUGE),
        ("recall", "Where?", "--sessions", HUGE),
        ("search", "Where?", "--k", HUGE),
        ("facts", "--most", HUGE),
        ("facts", "--undo", "\ud800", "\x00"),
        *((verb, "x" * 5_000) for verb in ("ingest", "evaluate", "compare")),
        ("evaluate", "log.jsonl", "--pipeline", f"bm25 | learned(model='{'x' * 5_000}')"),
        ("evaluate", "log.jsonl", "--pipeline", "@\x00"),
    ],
    ids=lambda command: ascii(command)[:60],
)
def test_odd_options_and_names_are_one_line(memlab_cli: Any, indexed: Path, command: tuple[str, ...]) -> None:
    done = memlab_cli(*command, *STORED, cwd=indexed)
    assert done.code in (0, 2)
    assert len(done.messages) == (done.code == 2) or "Usage" in done.err, done.err
    assert "door code is 12u34" in memlab_cli("facts", *STORED, cwd=indexed).out


@pytest.mark.parametrize(
    "command", [("figures",), ("notebooks", "--source"), ("info", "--encoder"), ("info", "--store")]
)
def test_names_that_no_file_can_have_are_one_line(memlab_cli: Any, tmp_path: Path, command: tuple[str, ...]) -> None:
    done = memlab_cli(*command, "x" * 5_000, cwd=tmp_path)
    assert done.code in (0, 2)
    assert len(done.messages) == (done.code == 2)
