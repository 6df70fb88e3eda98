"""Texts that a memory returned are traced to their turns, or to none."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

import memlab
from memlab.embed import load
from memlab.memories import Embeddings, ReturnedTexts, attribute, rank_source_turns
from memlab.memories.running_a_memory import RETURNED_SCHEMA
from memlab.records import Dataset


def returned(texts: list[str], sources: list[list[str]] | None = None) -> ReturnedTexts:
    rows = [
        ("ann/q0", n, text, None, sources[n - 1] if sources else None, None)
        for n, text in enumerate(texts, 1)
    ]
    return ReturnedTexts("mine", pl.DataFrame(rows, schema=RETURNED_SCHEMA, orient="row"))


def test_how_each_text_is_traced(data: Dataset) -> None:
    cat, lighthouse = data.turns["text"][:2]
    cases = [
        (cat, "span", ["ann/1.1"]),
        (cat.upper() + "!!", "span", ["ann/1.1"]),
        (f"They said: {cat}", "span", ["ann/1.1"]),
        ("Ida adopted a grey cat named", "span", ["ann/1.1"]),
        (f"{cat}\n{lighthouse}", "span", ["ann/1.1", "ann/1.2"]),
        (
            "Ann's sister Ida has a cat called Muri. The dentist: ninety euros invoice.",
            "matched",
            ["ann/1.1", "ann/1.3"],
        ),
        ("Ida adopted named Muri my grey cat sister.", "copy", ["ann/1.1"]),
        ("quantum chromodynamics", "none", []),
        ("", "none", []),
        ("🦷", "none", []),
    ]
    done = attribute(returned([text for text, *_ in cases]), data, load("hashing"))
    assert done.select("how", "turn_ids").rows() == [(how, turns) for _, how, turns in cases]
    spans = attribute(returned([text for text, *_ in cases[:5]]), data, None)
    assert spans.equals(done.head(5))
    thanks = replace(data, turns=data.turns.with_columns(text=pl.lit("Thanks!")))
    assert attribute(returned(["thanks"]), thanks, None)["turn_ids"].to_list() == [["ann/1.1"]], (
        "no text is six turns"
    )


def test_what_the_memory_names_is_taken_and_ranked_in_its_order(data: Dataset) -> None:
    done = returned(["a", "b", "c", "d"], [["ann/2.2"], ["ann/1.1", "ann/2.2"], [], ["ann/1.2"]])
    sources = attribute(done, data, None)
    assert sources["how"].to_list() == ["given", "given", "none", "given"]
    run = rank_source_turns(done, sources)
    assert run.frame["doc_id"].to_list() == ["ann/2.2", "ann/1.1", "ann/1.2"]
    assert run.frame["rank"].to_list() == [1, 2, 3]


def test_an_encoder_is_lent_as_mem0_calls_one() -> None:
    vectors = Embeddings(load("hashing:64"))
    assert vectors.embed_batch(["tea", "coffee"], "add") == vectors.embed_documents(
        ["tea", "coffee"]
    )
    assert vectors.embed("tea", memory_action="search") == vectors.embed_query("tea")


@pytest.mark.shared_data
@pytest.mark.nightly
def test_observations_of_locomo_are_traced_as_the_docs_say(locomo_path: Path) -> None:
    data = memlab.datasets.load(locomo_path)
    page = (Path(__file__).parents[2] / "docs" / "memories.md").read_text(encoding="utf-8")
    for scopes in (data.scopes[:3], data.scopes[3:]):
        cited = data.annotations.filter(
            (pl.col("kind") == "observation")
            & (pl.col("evidence").list.len() > 0)
            & pl.col("scope").is_in(scopes)
        )
        asked = replace(
            data.take(scopes), questions=cited.select("scope", query_id="annotation_id")
        )
        blank = {
            "rank": pl.lit(1),
            "score": None,
            "source_ids": pl.lit(None, pl.List(pl.String)),
            "time": None,
        }
        rows = cited.select(pl.col("text"), query_id="annotation_id", **blank).select(
            *RETURNED_SCHEMA
        )
        done = attribute(ReturnedTexts("observations", rows), asked, load("minilm"))
        both = done.join(
            cited.select(query_id="annotation_id", gold="evidence"),
            on="query_id",
            maintain_order="left",
        )
        right = both.select(
            pl.col("turn_ids").list.set_intersection("gold").list.len().sum()
        ).item()
        sizes = both.select(pl.col("turn_ids", "gold").list.len().sum()).row(0)
        values = ((done["how"] != "none").mean(), right / sizes[0], right / sizes[1])
        numbers = (f"{cited.height:,}", *(f"{value:.3f}".lstrip("0") for value in values))
        assert f"| {' | '.join(numbers)} |" in page
