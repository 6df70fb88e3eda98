"""The sample that the project ships, whole and in parts."""

from __future__ import annotations

import hashlib
from pathlib import Path

import polars as pl
import pytest

import memlab
from memlab import datasets
from memlab.datasets import sample as module  # type: ignore[attr-defined]
from memlab.errors import DataError
from memlab.records import Dataset

FILE = Path(__file__).parents[1] / "data" / "sample" / "sample.jsonl"


def cited(data: Dataset) -> set[str]:
    return {
        turn
        for row in data.questions.select("evidence", "stale").rows()
        for turns in row
        for turn in turns or ()
    }


def test_it_loads_without_an_issue_and_has_questions_of_every_kind() -> None:
    data = memlab.sample()
    assert (data.name, data.issues.height, len(data.scopes)) == ("sample", 0, 4)
    assert data.fingerprint() == datasets.load(FILE).fingerprint()
    assert data.questions["question_type"].n_unique() == 12
    assert (data.questions["evidence_sessions"].list.len() >= 2).sum() >= 50, (
        "enough for an interval worth drawing"
    )
    assert cited(data) <= set(data.turns["turn_id"])
    about = (FILE.parents[1] / "README.md").read_text(encoding="utf-8")
    for name in ("sample.jsonl", "follow-ups.jsonl"):  # the measured numbers stand on these labels
        assert hashlib.sha256(FILE.with_name(name).read_bytes()).hexdigest() in about


@pytest.mark.parametrize("turns", [1, 700, 10**6])
def test_a_part_is_whole_sessions_from_the_first_on_and_what_can_be_asked_of_them(
    turns: int,
) -> None:
    whole, data = memlab.sample(), memlab.sample(turns=turns)
    assert data.scopes == whole.scopes
    assert (
        abs(data.turns.height - min(turns, whole.turns.height))
        <= 4 * whole.sessions["n_turns"].max()
    )
    for scope in whole.scopes:
        kept, every = (each.sessions.filter(scope=scope) for each in (data, whole))
        assert kept.equals(every.head(max(kept.height, 1)))
    assert data.turns.equals(
        whole.turns.filter(pl.col("session_id").is_in(data.sessions["session_id"].implode()))
    )
    there, left_out = (
        set(data.turns["turn_id"]),
        whole.questions.join(data.questions, on="query_id", how="anti"),
    )
    assert cited(data) <= there
    assert not any(
        {*row["evidence"], *(row["stale"] or [])} <= there for row in left_out.iter_rows(named=True)
    )


def test_scopes_stand_in_the_order_of_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert memlab.sample(["family", "nadia"]).scopes == ["nadia", "family"]
    for wrong in ({"scopes": ["nobody"]}, {"turns": 0}):
        with pytest.raises(DataError, match=r"no scope 'nobody'|turns is 0"):
            memlab.sample(**wrong)  # type: ignore[arg-type]
    monkeypatch.setattr(module, "_FILE", tmp_path / "sample.jsonl")
    with pytest.raises(DataError, match="comes with memlab: install memlab again"):
        memlab.sample()
