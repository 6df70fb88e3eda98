"""Finding the format, arguments, broken JSON, and what would take minutes or gigabytes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memlab.datasets import detect, json_streaming, load, stream
from memlab.datasets.record_sources import Source
from memlab.errors import DataError


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('[{"qa": [{"question": "[{", "answer": "}"}], "conversation": {}}]', "locomo"),
        ('\ufeff \n[{"sample_id": "conv-1"', "locomo"),
        ('[{"haystack_sessions": [[{"role": "user", "content": "scope", "text": 1', "longmemeval"),
        ('{"scope": "a", "text": "x"}\n{"scope": "b"}', "chatlog"),
        ('{"question": "x", "scope": "a"}', "chatlog"),
        *(
            (text, None)
            for text in ('{"a": 1}', "[]", "hello", '{"data": {"scope": 1, "text": 2}}')
        ),
    ],
)
def test_detect(tmp_path: Path, text: str, expected: str | None) -> None:
    path = tmp_path / "x"
    path.write_text(text, encoding="utf-8")
    if expected:
        assert detect(path) == expected
    else:
        with pytest.raises(DataError, match=r"x: is none of the formats .*, chatlog: it begins"):
            detect(path)


def test_a_binary_file_is_called_one(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"\x00\x01")
    with pytest.raises(DataError, match="x: is a binary file"):
        detect(tmp_path / "x")


def test_only_the_beginning_of_a_file_is_looked_at(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    with path.open("wb") as file:
        file.write(b'[{"question_id": "q1", ')
        file.truncate(1 << 33)
    assert detect(path) == "longmemeval"


def test_a_missing_file_a_directory_and_an_empty_file(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"none.json: cannot be read \(No such file"):
        load(tmp_path / "none.json")
    with pytest.raises(DataError, match="is a directory, expected a file"):
        load(tmp_path)
    for name, content in (("empty", b""), ("mark", b"\xef\xbb\xbf")):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(DataError, match=f"{name}: is empty"):
            load(tmp_path / name)


@pytest.mark.parametrize(
    "option",
    [
        {"format": "csv"},
        {"on_error": "ignore"},
        {"batch_turns": 0},
        {"pool": 48},
        {"date_order": "xyz"},
    ],
)
def test_wrong_arguments_are_named_at_the_call(tmp_path: Path, option: dict[str, Any]) -> None:
    (tmp_path / "log.jsonl").write_text('{"scope": "a", "sender": "A", "text": "x"}')
    with pytest.raises(DataError, match=next(iter(option))):
        stream(tmp_path / "log.jsonl", **option)


def test_what_took_minutes_or_gigabytes_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """None measures time: each took 30 to 84 s, or more memory than there is, and would be noticed here."""
    path, side = tmp_path / "x.json", tmp_path / "side"
    path.write_text('["' + '\\"' * 500_000)  # a string that the first piece cuts
    with pytest.raises(DataError, match="none of the formats"):
        detect(path)
    monkeypatch.setattr("memlab.datasets.record_sources._MOST_BAD", 500)
    path.write_text("[" + "0," * 1_000 + "0]")
    with pytest.raises(DataError, match="500 records before it are bad too"):
        load(path, format="locomo", on_error="quarantine", quarantine_dir=side)
    record = json.loads((Path(__file__).parent / "golden/locomo/talk/talk.json").read_text())
    record[0]["qa"][0]["evidence"] = ["D1:2-99;" * 200_000]
    path.write_text(json.dumps(record))
    with pytest.raises(
        DataError, match=r"evidence\[0\]: found 1,600,000 characters, expected at most 10,000"
    ):
        load(path)
    monkeypatch.setattr(json_streaming, "LONGEST", 1 << 20)
    for text, kind, word in (
        ('[{"sample_id": "', "locomo", "more than 1,048"),
        ('{"scope": "', "chatlog", "1,048,576"),
    ):
        path.write_text(text + "a" * (3 << 20))
        with pytest.raises(DataError, match=word):
            load(path, format=kind)


@pytest.mark.parametrize("depth", [990, 30_000])
def test_deep_nesting_is_an_error_of_ours(tmp_path: Path, depth: int) -> None:
    path, deep = tmp_path / "x.jsonl", "[" * depth + "]" * depth
    for text in (
        '{"memlab": {"format": %s}}',
        '{"scope": "a", "sender": %s, "text": "x"}',
        '[{"sample_id": %s}]',
    ):
        path.write_text(text % deep)
        for kind in (None, "chatlog", "locomo"):
            with pytest.raises(DataError):
                load(path, format=kind, on_error="quarantine", quarantine_dir=tmp_path / "side")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text('ab\\"é𝄞', max_size=3), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(st.lists(JSON, min_size=1, max_size=5), st.integers(1, 9), st.booleans())
def test_streamed_values_are_the_parsed_ones_wherever_the_chunks_end(
    tmp_path_factory: pytest.TempPathFactory, values: list[Any], chunk: int, plain: bool
) -> None:
    path = tmp_path_factory.getbasetemp() / "values.json"
    path.write_text(
        json.dumps(values, ensure_ascii=plain, indent=2 if plain else None), encoding="utf-8"
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_streaming, "_CHUNK", chunk)
        assert [value for _, value in Source(path).values()] == values


RECORDS = b'[\n{"a": "\xc3\xa4b"},\n{"a": [1, true, null]}\n]'


@pytest.mark.parametrize("chunk", [1, 1 << 20])
def test_a_truncated_file_is_said_with_its_place_and_its_whole_records_are_kept(
    tmp_path: Path, chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(json_streaming, "_CHUNK", chunk)
    path = tmp_path / "cut.json"
    broken = r"record \d: found broken JSON at line \d, byte \d+: (the file ends here|a byte)"
    for end in range(1, len(RECORDS), 3):
        path.write_bytes(RECORDS[:end])
        with pytest.raises(DataError, match=broken):
            list(Source(path).values())
        source = Source(path, "quarantine", tmp_path / "side")
        whole = [{"a": "äb"}, {"a": [1, True, None]}][: (end >= 14) + (end >= 38)]
        assert [value for _, value in source.values()] == whole
        assert [issue.action for issue in source.report.issues] == ["quarantined"]


@pytest.mark.parametrize(
    ("text", "place"),
    [
        (
            b'[{"a": 1} {"a": 2}]',
            "record 1: found broken JSON at line 1, byte 10: no comma between two values",
        ),
        (
            b'[{"a": 1}]\nmore',
            "record 1: found broken JSON at line 2, byte 11: something after the end of the list",
        ),
        (
            b'[{"a": 1},\n {a: 2}]' + b" " * 40,
            "record 1: found broken JSON at line 2, byte 13: Expecting property",
        ),
        (
            b'[{"a": 1},\n {"a": "\xff"}]',
            "record 1: found broken JSON at line 2, byte 19: a byte that is not UTF-8",
        ),
        (
            b'[{"a": 1}, NaN, 3]',
            "record 1: found broken JSON at line 1, byte 11: NaN is no JSON value",
        ),
        (b"[" * 100_000, "record 0: found broken JSON at line 1, byte 1: "),
    ],
)
def test_broken_json_is_said_with_its_place(tmp_path: Path, text: bytes, place: str) -> None:
    path = tmp_path / "broken.json"
    path.write_bytes(text)
    with pytest.raises(DataError) as error:
        list(Source(path).values())
    assert str(error.value).startswith(f"{path}: {place}")


def test_some_memories_are_taken_by_name_or_drawn_by_the_seed(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    rows = [{"scope": f"a/{i}", "sender": "A", "text": f"message {i}"} for i in range(9)]
    log.write_text("\n".join(map(json.dumps, rows)))
    assert load(log, scopes=["a/3", "a%2F1"]).scopes == ["a%2F1", "a%2F3"]
    assert load(log, scopes="a/2").scopes == ["a%2F2"]
    drawn = [load(log, scopes=4, seed=seed).scopes for seed in (0, 0, 1)]
    assert drawn[0] == drawn[1] != drawn[2]
    assert [len(each) for each in drawn] == [4, 4, 4]
    assert load(log, scopes=9).scopes == load(log).scopes
    with pytest.raises(DataError, match="no scope 'nobody'"):
        load(log, scopes=["nobody"])
    for wrong in (0, 10):
        with pytest.raises(DataError, match=rf"^{wrong} scopes of 'log' are asked for, it has 9"):
            load(log, scopes=wrong)
