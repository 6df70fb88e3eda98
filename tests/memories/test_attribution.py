"""Texts that a memory returns are traced to their turns, or to none."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from talk import excerpt

import memlab
from memlab.embed import load
from memlab.memories import Returned, attribute, ranked
from memlab.memories.attribution import shared_words
from memlab.memories.collecting import RETURNED
from memlab.records import Dataset

DATA = excerpt(120, scopes=("nadia", "owen"))


def returned(texts: list[str], data: Dataset = DATA, sources: list[list[str]] | None = None) -> Returned:
    query = data.questions["query_id"][0]
    rows = [(query, n, text, None, sources[n - 1] if sources else None, None) for n, text in enumerate(texts, 1)]
    return Returned("mine", pl.DataFrame(rows, schema=RETURNED, orient="row"))


OWN = DATA.turns.filter(pl.col("scope") == DATA.scopes[0])
LONG = OWN.filter(pl.col("text").str.count_matches(r"[\p{L}\p{N}]+") >= 8)


@given(st.sampled_from(range(LONG.height)), st.data())
def test_a_turn_and_a_part_of_one_come_from_it(row: int, draw: st.DataObject) -> None:
    turn, text = LONG["turn_id"][row], LONG["text"][row]
    words = re.findall(r"[^\W_]+", text)
    first = draw.draw(st.integers(0, len(words) - 6))
    part = " ".join(words[first : first + 6])
    for written in (text, text.upper() + "!!", f"They said: {text}", part):
        how, ids = attribute(returned([written]), DATA, None).select("how", "turn_ids").row(0)
        assert how == "span"
        assert turn in ids


def test_several_turns_in_one_text_are_all_its_sources() -> None:
    chosen = LONG.unique("text", maintain_order=True).head(3)
    _, ids = attribute(returned(["\n".join(chosen["text"])]), DATA, None).select("how", "turn_ids").row(0)
    assert set(chosen["turn_id"]) <= set(ids)


def test_what_the_memory_names_is_taken() -> None:
    ids = OWN["turn_id"].to_list()
    done = attribute(returned(["anything", "else"], sources=[[ids[2], ids[0]], []]), DATA, None)
    assert done.select("how", "turn_ids").rows() == [("given", [ids[2], ids[0]]), ("none", [])]


def test_other_words_are_matched_and_nothing_like_it_is_none() -> None:
    said = ("My sister Ida adopted a grey cat named Muri.", "We walked along the harbour.", "The invoice was 90 euros.")
    turns = OWN.head(3).with_columns(text=pl.Series(said), speaker=pl.lit("Ann"))
    data = replace(DATA, turns=turns)
    texts = ["Ann's sister Ida has a cat called Muri. The invoice: 90 euros.", "quantum chromodynamics", "", "🦷"]
    done = attribute(returned(texts), data, load("hashing"))
    assert done["how"].to_list() == ["matched", "none", "none", "none"]
    assert done["turn_ids"][0].to_list() == [turns["turn_id"][0], turns["turn_id"][2]]


def test_shares_of_words_lie_between_none_and_all() -> None:
    shares = shared_words(["grey cat", "Grey cats!", "no such word", ""], ["The grey cat sleeps.", "A dog."], "en")
    assert shares.shape == (4, 2)
    assert shares[:2, 0].tolist() == pytest.approx([1.0, 1.0])
    assert shares[2:].sum() == 0
    assert not shared_words([""], ["…"], "en").any()


def test_the_ranking_is_the_order_of_the_sources() -> None:
    ids = OWN["turn_id"].to_list()
    done = returned(["a", "b", "c"], sources=[[ids[1]], [ids[0], ids[1]], [ids[2]]])
    run = ranked(done, attribute(done, DATA, None))
    assert run.frame["doc_id"].to_list() == [ids[1], ids[0], ids[2]]
    assert run.frame["rank"].to_list() == [1, 2, 3]
    sessions = ranked(done, attribute(done, DATA, None), "session").frame["doc_id"].to_list()
    assert sessions == list(dict.fromkeys(i.rpartition("/")[0] for i in (ids[1], ids[0], ids[2])))


@pytest.mark.shared_data
@pytest.mark.slow
def test_observations_of_locomo_are_traced_as_the_docs_say(locomo_path: Path) -> None:
    data = memlab.datasets.load(locomo_path)
    page = (Path(__file__).parents[2] / "docs" / "memories.md").read_text(encoding="utf-8")
    for scopes in (data.scopes[:3], data.scopes[3:]):
        cited = data.annotations.filter(
            (pl.col("kind") == "observation") & (pl.col("evidence").list.len() > 0) & pl.col("scope").is_in(scopes)
        )
        asked = replace(data.take(scopes), questions=cited.select("scope", query_id="annotation_id"))
        blank = {"rank": pl.lit(1), "score": None, "source_ids": pl.lit(None, pl.List(pl.String)), "time": None}
        rows = cited.select(pl.col("text"), query_id="annotation_id", **blank).select(*RETURNED)
        done = attribute(Returned("observations", rows), asked, load("minilm"))
        both = done.join(cited.select(query_id="annotation_id", gold="evidence"), on="query_id", maintain_order="left")
        right = both.select(pl.col("turn_ids").list.set_intersection("gold").list.len().sum()).item()
        numbers = (
            f"{cited.height:,}",
            *(
                f"{value:.3f}".lstrip("0")
                for value in (
                    (done["how"] != "none").mean(),
                    right / both["turn_ids"].list.len().sum(),
                    right / both["gold"].list.len().sum(),
                )
            ),
        )
        assert f"| {' | '.join(numbers)} |" in page
