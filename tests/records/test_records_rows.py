"""Row types, their frames, and ids."""

from __future__ import annotations

from dataclasses import astuple, fields
from datetime import UTC, datetime

import polars as pl
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from memlab.errors import DataError
from memlab.records import Annotation, Issue, Question, Session, Turn, decode_id_part, encode_id_part, frame, schema

ROWS = [
    Turn(
        "u/s/1",
        "u",
        "u/s",
        1,
        "Mel",
        "user",
        "Hi\n\t'\"<b>🙂\u2028",
        "a dog",
        datetime(2024, 2, 29, 23, 59, tzinfo=UTC),
    ),
    Turn("u/s/2", "u", "u/s", 2, "bot", "assistant", ""),
    Session("u/s", "u", 1, None, None, 2, ["Mel", "bot"]),
    Session("u/t", "u", 2, datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, tzinfo=UTC), 0, [], "open", "short"),
    Question("q", "u", "Who?", None, "multi-session", None, [], []),
    Question("q2", "u", "Who?", "Mel", "t", datetime(2024, 1, 1, tzinfo=UTC), ["u/s/1", "u/s/2"], ["u/s"], True),
    Annotation("a", "u", "u/s", "observation", "Mel", "Mel has a dog", ["u/s/1"]),
    Issue("f.json", "null", "dropped"),
]
ANYTHING = st.text(st.characters(), min_size=1)  # st.characters() includes lone surrogates


@pytest.mark.parametrize("row_type", [Turn, Session, Question, Annotation, Issue])
def test_frames_round_trip(row_type: type) -> None:
    rows = [row for row in ROWS if type(row) is row_type]
    held = frame(row_type, rows)
    assert dict(held.schema) == schema(row_type)
    assert held.columns == [f.name for f in fields(row_type)]
    assert [row_type(*row) for row in held.iter_rows()] == rows
    assert [astuple(row_type(**row)) for row in held.iter_rows(named=True)] == [astuple(row) for row in rows]
    empty = frame(row_type)
    assert empty.schema == held.schema
    assert empty.height == 0
    assert pl.concat([empty, held]).equals(held)


@given(ANYTHING)
@example("\ud83d\ude00")
@example("\ud800")
@example("%2F")
@example("..")
@example("\x00\x7f\x85\u00a0\u3000")
def test_id_parts_are_reversible_and_fit_an_id_and_a_trec_line(raw: str) -> None:
    part = encode_id_part(raw)
    assert decode_id_part(part) == raw
    assert part
    assert "/" not in part
    assert part.split() == [part]
    part.encode()  # no lone surrogate is left
    pl.Series([part])


@given(ANYTHING, ANYTHING)
@example("a b", "a%20b")
@example("\ud83d\ude00", "😀")
@example("é", "e\u0301")
def test_id_parts_are_injective(one: str, other: str) -> None:
    assert (encode_id_part(one) == encode_id_part(other)) == (one == other)


def test_an_empty_name_is_an_error() -> None:
    with pytest.raises(DataError, match="an id is empty"):
        encode_id_part("")
