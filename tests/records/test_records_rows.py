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

DAY = datetime(2024, 2, 29, 23, 59, tzinfo=UTC)
ROWS = [
    Turn("u/s/1", "u", "u/s", 1, "Mel", "user", "Hi\n\t'\"<b>🙂\u2028", "a dog", DAY),
    Turn("u/s/2", "u", "u/s", 2, "bot", "assistant", ""),
    Session("u/s", "u", 1, None, None, 2, ["Mel", "bot"]),
    Session("u/t", "u", 2, datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, tzinfo=UTC), 0, [], "open", "short"),
    Question("q", "u", "Who?", None, "multi-session", None, [], []),
    Question("q2", "u", "Who?", "Mel", "t", DAY, ["u/s/1", "u/s/2"], ["u/s"], True),
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
    assert [astuple(row_type(**row)) for row in held.iter_rows(named=True)] == [astuple(row) for row in rows]
    empty = frame(row_type)
    assert pl.concat([empty, held]).equals(held)


@given(ANYTHING, ANYTHING)
@example("\ud83d\ude00", "😀")
@example("a b", "a%20b")
@example("%2F", "..")
@example("\x00\x7f\x85\u00a0\u3000", "\ud800")
def test_id_parts_are_reversible_and_fit_an_id_and_a_trec_line(one: str, other: str) -> None:
    part = encode_id_part(one)
    assert decode_id_part(part) == one
    assert part
    assert "/" not in part
    assert part.split() == [part]
    part.encode()  # no lone surrogate is left
    assert (part == encode_id_part(other)) == (one == other)
    with pytest.raises(DataError, match="an id is empty"):
        encode_id_part("")
