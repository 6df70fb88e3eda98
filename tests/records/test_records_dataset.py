"""Datasets: fingerprints, parts and sums."""

from __future__ import annotations

import html
from dataclasses import replace
from datetime import UTC, datetime

import polars as pl
import pytest

import memlab
from memlab.errors import DataError
from memlab.records import Annotation, Dataset, Issue, Question, Session, Turn, concat, frame, schema

DAY = datetime(2024, 1, 1, tzinfo=UTC)
TABLES = {"turns": Turn, "sessions": Session, "questions": Question, "annotations": Annotation}
OTHER = {pl.String: "changed", pl.Int32: 77, pl.Boolean: True, pl.Datetime: datetime(2025, 5, 5, tzinfo=UTC)}


@pytest.fixture(scope="module")
def small() -> Dataset:
    return Dataset(
        "d",
        "chatlog",
        frame(Turn, [Turn(f"u/s/{n}", "u", "u/s", n, "Mel", "user", "hi", "cap", DAY) for n in (1, 2)]),
        frame(Session, [Session("u/s", "u", 1, DAY, DAY, 2, ["Mel"], "closed", "sum")]),
        frame(
            Question,
            [Question("q", "u", "Who?", "Mel", "t", DAY, ["u/s/1", "u/s/2"], ["u/s"], rubric=["Mel"], stale=["u/s/3"])],
        ),
        frame(Annotation, [Annotation("a", "u", "u/s", "event", "Mel", "x", ["u/s/1"])]),
    )


def with_value(data: Dataset, table: str, column: str, value: object) -> Dataset:
    rows = getattr(data, table)
    held = pl.Series(column, [value, *rows[column].to_list()[1:]], dtype=rows.schema[column])
    return replace(data, **{table: rows.with_columns(held)})


CASES = [(t, c) for t, row in TABLES.items() for c in schema(row) if (t, c) != ("sessions", "status")]


@pytest.mark.parametrize(("table", "column"), CASES)
def test_any_change_changes_the_fingerprint(small: Dataset, table: str, column: str) -> None:
    dtype = getattr(small, table).schema[column]
    values = [None, OTHER[dtype.base_type()]] if dtype != pl.List(pl.String) else [None, [], [""], ["u/s/1\x1fu/s/2"]]
    prints = {with_value(small, table, column, value).fingerprint() for value in values}
    assert len(prints | {small.fingerprint()}) == len(values) + 1


def test_the_fingerprint_is_of_the_content_alone(small: Dataset) -> None:
    same = small.fingerprint()
    assert len(same) == 16
    assert int(same, 16) >= 0
    assert replace(small, name="other", issues=frame(Issue, [Issue("f", "x", "y")])).fingerprint() == same
    assert with_value(small, "sessions", "status", "summarized").fingerprint() == same
    assert replace(small, turns=small.turns.reverse()).fingerprint() != same
    assert replace(small, turns=small.turns.head(1)).fingerprint() != same


def test_parts_join_to_the_whole() -> None:
    data = memlab.sample(turns=300)
    assert len(data.scopes) == 4
    joined = concat(data.take([scope]) for scope in data.scopes)
    assert joined.fingerprint() == data.fingerprint()
    assert joined.turns.n_chunks() == 1
    assert (joined.name, joined.format) == (data.name, data.format)
    backwards = data.take(reversed(data.scopes))
    assert backwards.fingerprint() == data.fingerprint()
    assert data.take([]).turns.height == 0
    assert data.take([]).turns.schema == data.turns.schema


def test_a_part_holds_its_scopes_and_nothing_else() -> None:
    data = memlab.sample(turns=300)
    some = data.take(data.scopes[1:])
    for table in TABLES:
        rows = getattr(some, table)
        whole = getattr(data, table)
        assert rows.equals(whole.filter(pl.col("scope") != data.scopes[0]))
    with pytest.raises(DataError, match=r"no scope 'nobody' in dataset 'sample'; it has \['nadia'"):
        data.take([data.scopes[0], "nobody"])


def test_the_view_in_a_notebook_is_escaped(small: Dataset) -> None:
    bad = "<script>alert(1)</script>"
    shown = with_value(replace(small, name=bad), "questions", "text", bad)._repr_html_()
    assert "<script" not in shown
    assert shown.count(html.escape("<script>")) == 2
    assert replace(small, questions=frame(Question))._repr_html_()
