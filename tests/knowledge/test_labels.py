"""Labels for tuning: files of one's own."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from memlab.errors import DataError
from memlab.knowledge import labels, tuning
from memlab.knowledge.decay import Exponential


def observations() -> pl.DataFrame:
    return tuning.simulate(Exponential(100), n=30, seed=0)


@pytest.mark.parametrize("suffix", ["parquet", "jsonl", "csv"])
def test_what_is_written_is_read(tmp_path: Path, suffix: str) -> None:
    path, frame = tmp_path / f"labels.{suffix}", observations().with_columns(note=pl.lit("mine"))
    if suffix == "parquet":
        frame.write_parquet(path)
    elif suffix == "jsonl":
        frame.write_ndjson(path)
    else:
        joined = pl.col("accesses_days").cast(pl.List(pl.String)).list.join(";")
        frame.with_columns(joined).write_csv(path)
    assert labels.read(path).equals(observations())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("fact_id,predicate,age_days,still_true\n1,p,3,true\n", [None]),
        ("fact_id,predicate,age_days,accesses_days,still_true\n1,p,3,,true\n1,p,4,4;5,false\n", [None, [4.0, 5.0]]),
        ("fact_id,predicate,age_days,accesses_days,still_true\n1,p,3,3,true\n", [[3.0]]),
    ],
)
def test_accesses_may_be_missing_or_one_number(tmp_path: Path, text: str, expected: list[list[float] | None]) -> None:
    path = tmp_path / "labels.csv"
    path.write_text(text)
    found = labels.read(path)
    assert found["accesses_days"].to_list() == expected
    assert found.schema == pl.Schema(labels.COLUMNS)


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("a.txt", "", "labels are read from .csv, .jsonl or .parquet; found '.txt'"),
        ("a.csv", "", "a.csv: cannot be read"),
        ("a.csv", "fact_id,age_days,still_true\n1,3,true\n", "has no column 'predicate'; it has fact_id, age_days"),
        ("a.csv", "fact_id,predicate,age_days,still_true\n1,p,-3,true\n", r"a.csv: age_days is -3.0 in row 0"),
        ("a.csv", "fact_id,predicate,age_days,still_true\n1,p,3,maybe\n", "a.csv: "),
        ("a.csv", "fact_id,predicate,age_days,accesses_days,still_true\n1,p,3,3;x,true\n", "a.csv: "),
    ],
)
def test_bad_files_are_named(tmp_path: Path, name: str, text: str, said: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(DataError, match=said):
        labels.read(tmp_path / name)
    with pytest.raises(DataError, match="cannot be read"):
        labels.read(tmp_path / "nowhere.parquet")
