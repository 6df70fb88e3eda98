"""Texts that a memory returned are traced to their turns, or to none."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

import memlab
from memlab.embed import load
from memlab.memories import ReturnedTexts, attribute, rank_source_turns
from memlab.memories.attribution import shared_word_shares
from memlab.memories.collecting import RETURNED_SCHEMA
from memlab.records import Dataset


def returned(texts: list[str], sources: list[list[str]] | None = None) -> ReturnedTexts:
    rows = [("ann/q0", n, text, None, sources[n - 1] if sources else None, None) for n, text in enumerate(texts, 1)]
    return ReturnedTexts("mine", pl.DataFrame(rows, schema=RETURNED_SCHEMA, orient="row"))


def test_a_turn_a_part_of_one_and_several_are_its_sources(data: Dataset) -> None:
    cat, lighthouse = data.turns["text"][:2]
    for text, turns in (
        (cat, ["ann/m1"]),
        (cat.upper() + "!!", ["ann/m1"]),
        (f"They said: {cat}", ["ann/m1"]),
        ("Ida adopted a grey cat named", ["ann/m1"]),
        (f"{cat}\n{lighthouse}", ["ann/m1", "ann/m2"]),
    ):
        done = attribute(returned([text]), data, None)
        assert done.select("how", "turn_ids").rows() == [("span", turns)]


def test_what_the_memory_names_is_taken(data: Dataset) -> None:
    done = attribute(returned(["anything", "else"], [["ann/m3", "ann/m1"], []]), data, None)
    assert done.select("how", "turn_ids").rows() == [("given", ["ann/m3", "ann/m1"]), ("none", [])]


def test_other_words_are_matched_and_what_nothing_resembles_is_none(data: Dataset) -> None:
    texts = [
        "Ann's sister Ida has a cat called Muri. The dentist: ninety euros invoice.",
        "Ida adopted named Muri my grey cat sister.",
        "quantum chromodynamics",
        "",
        "🦷",
    ]
    done = attribute(returned(texts), data, load("hashing"))
    assert done["how"].to_list() == ["matched", "copy", "none", "none", "none"]
    assert done["turn_ids"][0].to_list() == ["ann/m1", "ann/m3"]


def test_shares_of_words_lie_between_none_and_all() -> None:
    shares = shared_word_shares(
        ["grey cat", "Grey cats!", "no such word", ""], ["The grey cat sleeps.", "A dog."], "en"
    )
    assert shares.shape == (4, 2)
    assert shares[:2, 0].tolist() == pytest.approx([1.0, 1.0])
    assert shares[2:].sum() == 0
    assert not shared_word_shares([""], ["…"], "en").any()


def test_the_ranking_is_the_order_of_the_sources(data: Dataset) -> None:
    done = returned(["a", "b", "c"], [["ann/m5"], ["ann/m1", "ann/m5"], ["ann/m2"]])
    run = rank_source_turns(done, attribute(done, data, None))
    assert run.frame["doc_id"].to_list() == ["ann/m5", "ann/m1", "ann/m2"]
    assert run.frame["rank"].to_list() == [1, 2, 3]


@pytest.mark.shared_data
@pytest.mark.nightly
def test_observations_of_locomo_are_traced_as_the_docs_say(locomo_path: Path) -> None:
    data = memlab.datasets.load(locomo_path)
    page = (Path(__file__).parents[2] / "docs" / "memories.md").read_text(encoding="utf-8")
    for scopes in (data.scopes[:3], data.scopes[3:]):
        cited = data.annotations.filter(
            (pl.col("kind") == "observation") & (pl.col("evidence").list.len() > 0) & pl.col("scope").is_in(scopes)
        )
        asked = replace(data.take(scopes), questions=cited.select("scope", query_id="annotation_id"))
        blank = {"rank": pl.lit(1), "score": None, "source_ids": pl.lit(None, pl.List(pl.String)), "time": None}
        rows = cited.select(pl.col("text"), query_id="annotation_id", **blank).select(*RETURNED_SCHEMA)
        done = attribute(ReturnedTexts("observations", rows), asked, load("minilm"))
        both = done.join(cited.select(query_id="annotation_id", gold="evidence"), on="query_id", maintain_order="left")
        right = both.select(pl.col("turn_ids").list.set_intersection("gold").list.len().sum()).item()
        sizes = both.select(pl.col("turn_ids", "gold").list.len().sum()).row(0)
        values = ((done["how"] != "none").mean(), right / sizes[0], right / sizes[1])
        numbers = (f"{cited.height:,}", *(f"{value:.3f}".lstrip("0") for value in values))
        assert f"| {' | '.join(numbers)} |" in page
