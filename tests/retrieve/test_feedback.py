"""Searching for what is like what is found, and for what is not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import polars as pl
import pytest

from memlab import retrieve
from memlab.records import Dataset, Run
from memlab.retrieve import Bench, bm25, negative_feedback, prf
from memlab.retrieve.feedback import FEEDBACK

Ranking = Callable[[Run], dict[str, list[str]]]


@pytest.fixture(scope="module")
def chat(talk: Dataset) -> Bench:
    return Bench.of(talk, encoder="hashing:32")


@pytest.fixture(scope="module")
def odd(world: Dataset) -> Bench:
    return Bench.of(world, encoder="hashing:32")


def test_prf_finds_what_shares_words_with_the_first_results(world: Dataset) -> None:
    asked = Bench.of(world, encoder=None).with_queries(pl.DataFrame({"scope": ["ann"], "text": ["planted roses"]}))
    documents = asked.documents("turn")
    run = bm25(asked, k=1)
    assert documents.texts[documents.at(run.frame["doc_id"])[0]] == "we planted roses and tulips"
    texts = [documents.texts[i] for i in documents.at(prf(run, asked).frame["doc_id"])]
    assert "tulips need water" in texts[:3]


def test_what_repeats_is_pushed_back(world: Dataset) -> None:
    """The same sentence five times: after them, something else comes before a sixth copy."""
    said = ["I saw the doctor today"] * 6 + ["the dentist pulled a tooth", "rain again", "no", "tea", "so", "well"]
    turns = world.turns.filter(scope="cyd").head(1)
    rows = turns.select(pl.all().repeat_by(len(said)).explode()).with_columns(
        text=pl.Series(said), n=pl.int_range(1, len(said) + 1, dtype=pl.Int32), turn_id=pl.format("t{}", pl.row_index())
    )
    asked = pl.DataFrame({"scope": ["cyd"], "text": ["doctor today dentist tooth saw"]})
    bench = Bench.of(replace(world, turns=rows), encoder="minilm").with_queries(asked)
    run = retrieve.combsum(bench, turn=(1, 1, 0), session=(0, 0, 0))
    away, towards = (negative_feedback(run, bench, beta=beta).frame["doc_id"][FEEDBACK] for beta in (1.0, -1.0))
    texts = dict(zip(rows["turn_id"], said, strict=True))
    assert (texts[away] == said[0], texts[towards] == said[0]) == (False, True)
