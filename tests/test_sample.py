"""The sample that the project ships, whole and in parts."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

import memlab
from memlab import datasets
from memlab.datasets import sample as module  # type: ignore[attr-defined]
from memlab.errors import DataError
from memlab.records import Dataset

FILE = Path(__file__).parents[1] / "data" / "sample" / "sample.jsonl"
KINDS = {
    *("counting", "totals", "listing", "comparing", "ordering", "changes", "knowledge-update", "temporal"),
    *("single-session", "preference", "instruction", "abstention"),
}


def cited(data: Dataset) -> set[str]:
    return set(data.questions["evidence"].explode().drop_nulls()) | set(data.questions["stale"].explode().drop_nulls())


def test_it_loads_without_an_issue_and_has_questions_of_every_kind() -> None:
    data = memlab.sample()
    assert (data.name, data.issues.height, len(data.scopes)) == ("sample", 0, 4)
    assert data.fingerprint() == datasets.load(FILE).fingerprint()
    assert set(data.questions["question_type"]) == KINDS
    assert (data.questions["abstention"] == (data.questions["evidence"].list.len() == 0)).all()
    assert (data.questions["evidence_sessions"].list.len() >= 2).sum() >= 50, "enough for an interval worth drawing"
    assert cited(data) <= set(data.turns["turn_id"])


@pytest.mark.parametrize("turns", [1, 100, 700, 10**6])
def test_a_part_is_whole_sessions_from_the_first_on_and_what_can_be_asked_of_them(turns: int) -> None:
    whole, data = memlab.sample(), memlab.sample(turns=turns)
    assert data.scopes == whole.scopes
    assert abs(data.turns.height - min(turns, whole.turns.height)) <= 4 * whole.sessions["n_turns"].max()
    for scope in whole.scopes:
        kept, every = (each.sessions.filter(pl.col("scope") == scope) for each in (data, whole))
        assert kept.equals(every.head(kept.height))
        assert kept.height >= 1
    assert data.turns.equals(whole.turns.filter(pl.col("session_id").is_in(data.sessions["session_id"].implode())))
    assert cited(data) <= set(data.turns["turn_id"])
    left_out = whole.questions.join(data.questions, on="query_id", how="anti")
    for row in left_out.iter_rows(named=True):
        assert not {*row["evidence"], *(row["stale"] or [])} <= set(data.turns["turn_id"])


def test_scopes_stand_in_the_order_of_the_file() -> None:
    names = memlab.sample().scopes
    data = memlab.sample([names[2], names[0]])
    assert data.scopes == [names[0], names[2]]
    assert data.fingerprint() == memlab.sample().take([names[0], names[2]]).fingerprint()
    assert memlab.sample(names[1]).scopes == [names[1]]
    with pytest.raises(DataError, match="no scope 'nobody'"):
        memlab.sample(["nobody"])
    with pytest.raises(DataError, match="turns is 0"):
        memlab.sample(turns=0)


def test_where_the_file_is_not_there_it_says_where_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_FILE", tmp_path / "sample.jsonl")
    with pytest.raises(DataError, match="work in a clone"):
        memlab.sample()
