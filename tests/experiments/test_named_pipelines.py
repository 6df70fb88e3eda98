"""Pipelines under names of their own: in tables, figures, files and the store."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from talk import excerpt

import memlab
from memlab import DataError, Dataset, MemoryStore
from memlab.evaluate.system_comparison import cutoff_curve

NAMED = {"lexical": "bm25", "MMR": "hybrid | mmr(lambda_=0.7)"}
ENCODER = "hashing:32"


@pytest.fixture(scope="module")
def talk() -> Dataset:
    return excerpt(200)


def test_tables_tests_latex_and_files_show_the_names(talk: Dataset, tmp_path: Path) -> None:
    done = memlab.run(NAMED, talk, encoder=ENCODER)
    plain = memlab.run([*NAMED.values()], talk, encoder=ENCODER)
    assert done.cells["pipeline"].unique(maintain_order=True).to_list() == [*NAMED]
    assert done.table().to_series(0).to_list()[:2] == [*NAMED]
    label = done.table().columns[0]
    assert done.table().drop(label).equals(plain.table().drop(label))
    assert done.compare()["system"].to_list() == [*NAMED]
    assert done.compare(baseline="MMR").equals(done.compare(baseline=NAMED["MMR"]))
    assert cutoff_curve(done.at("turn"))["system"].unique(maintain_order=True).to_list() == [*NAMED]
    for text in (str(done), done.to_latex(), done.compare().to_latex()):
        assert "MMR" in text
        assert "hybrid" not in text
    assert str(done.why(system="MMR")) == str(plain.why())
    done.export(tmp_path)
    assert (tmp_path / "mmr.turn.trec").is_file()
    assert "hybrid | mmr(lambda_=0.7)" in (tmp_path / "report.json").read_text(), "how it was made"


def test_a_run_is_read_back_whatever_it_was_called(talk: Dataset, tmp_path: Path) -> None:
    store = MemoryStore.open(tmp_path)
    options: dict[str, Any] = {"encoder": ENCODER, "store": store, "levels": "turn"}
    memlab.run([*NAMED.values()], talk, **options, name="plain")
    named = memlab.run(NAMED, talk, **options, name="named")
    assert named.cells["read"].all()
    assert named.compare()["system"].to_list() == [*NAMED]
    again = memlab.reopen(store, "named")
    assert [run.name for run in again.runs] == [*NAMED]
    assert str(again) == str(named)
    plain = memlab.reopen(store, "plain")
    assert plain.compare()["system"].to_list() == [*NAMED.values()], "its own names stay"


def test_a_name_is_found_before_the_text_of_another_pipeline(talk: Dataset) -> None:
    swapped = {"dense": "bm25", "bm25": "dense"}
    done = memlab.run(swapped, talk, encoder=ENCODER, levels="turn")
    lexical = memlab.run("bm25", talk, encoder=ENCODER, levels="turn")
    assert done.misses(system="dense").equals(lexical.misses(system="bm25"))
    compared = done.compare(baseline="bm25").row(1, named=True)
    assert compared["system"] == "bm25"
    assert compared["difference"] is None, "it is the baseline itself"


@pytest.mark.parametrize(
    ("named", "reason"),
    [
        ({"chance": "bm25"}, "a row of the tables is called 'chance'"),
        ({" ": "bm25"}, "a system is called ' '; its name is a text of one line"),
        ({7: "bm25"}, "a system is called 7"),
        ({"a\nb": "bm25"}, "one line"),
        ({"one": "bm25", "two": " bm25 "}, "none twice"),
        ({}, "at least one"),
    ],
)
@pytest.mark.parametrize("jobs", [1, 2])
def test_names_that_tables_cannot_show_are_one_error(
    talk: Dataset, named: Any, reason: str, jobs: int
) -> None:
    with pytest.raises(DataError, match=reason):
        memlab.run(named, talk, encoder=None, jobs=jobs)


def test_memories_are_named_by_the_same_rule(talk: Dataset) -> None:
    with pytest.raises(DataError, match="a row of the tables is called 'ceiling'"):
        memlab.compare({"ceiling": "bm25"}, talk, encoder=None)
    with pytest.raises(DataError, match="a system is called ''"):
        memlab.compare({"": "bm25"}, talk, encoder=None)
