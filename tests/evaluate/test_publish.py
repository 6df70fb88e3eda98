"""What an evaluation leaves on disk."""

from __future__ import annotations

import errno
import json
from datetime import UTC, datetime

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from memlab.errors import DataError, ExportError
from memlab.evaluate import compare, evaluate, file_names, write_reports


@pytest.fixture(scope="module")
def reports(made, run_on):
    return [
        evaluate(run_on(made, level, seed=1, help_=h, name=n), made)
        for level in ("turn", "session")
        for n, h in (("dense", 0.1), ("hybrid | mmr(lambda_=0.7)", 0.4))
    ]


def test_files(tmp_path, reports):
    provenance = {"command": "memlab evaluate made", "at": datetime(2026, 1, 1, tzinfo=UTC)}
    written = write_reports(reports, tmp_path / "out", provenance=provenance)
    names = {"dense", "hybrid-mmr-lambda_-0.7"}
    expected = {f"{n}.{level}.parquet" for n in names for level in ("turn", "session")}
    assert set(written) == expected | {"report.json", "report.md", "report.tex"}
    assert {p.name for p in (tmp_path / "out").iterdir()} == set(written)
    assert_frame_equal(pl.read_parquet(written["dense.turn.parquet"]), reports[0].per_query)

    document = json.loads(written["report.json"].read_text())
    assert document["provenance"]["command"] == "memlab evaluate made"
    assert [r["level"] for r in document["reports"]] == ["turn", "turn", "session", "session"]
    held = next(
        c
        for c in document["comparisons"]
        if (c["level"], c["measure"], c["questions"]) == ("session", "recall_all@10", "all")
    )
    assert held["systems"] == compare(reports[2:], measure="recall_all@10").to_dicts()

    text = written["report.md"].read_text()
    for piece in (
        "## Turns as documents (n = ",
        "## Sessions as documents (n = ",
        "two or more sessions",
        "by question type",
        "by form",
        "≥ 2 (n = ",
        "| ceiling |",
        "| chance |",
        "compared with dense on recall_all@10",
        "made (chatlog): 180 turns",
        "memlab evaluate made",
        reports[0].provenance["fingerprint"],
    ):
        assert piece in text, piece
    latex = written["report.tex"].read_text()
    assert latex.count(r"\begin{table}") == latex.count(r"\end{table}") == text.count("\n|:---|")


def test_refusals(tmp_path, reports):
    with pytest.raises(DataError, match="no report to write"):
        write_reports([], tmp_path)
    with pytest.raises(DataError, match="two reports are called"):
        write_reports([reports[0], reports[0]], tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_full_disk(tmp_path, reports, monkeypatch):
    def full(self, *_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(pl.DataFrame, "write_parquet", full)
    with pytest.raises(ExportError, match=r"dense\.turn\.parquet: cannot be written: No space left"):
        write_reports(reports, tmp_path)
    assert not list(tmp_path.iterdir())


def test_file_names():
    names = ["hybrid | mmr", "hybrid(mmr)", "HYBRID mmr", "…", "/", "../x", "a" * 300]
    given = file_names(names)
    assert list(given) == names
    assert len(set(given.values())) == len(names)
    for name in given.values():
        assert "/" not in name
        assert not name.startswith(".")
        assert 0 < len(name) <= 90
    assert file_names(["dense", "dense"]) == {"dense": "dense"}
