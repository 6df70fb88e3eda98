"""Typed expansions and hypothetical turns with a language model that is played; weakness of first results."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from memlab import DataError, ModelError, llm
from memlab.records import Dataset, Run
from memlab.retrieve import Bench, bm25, combsum, dense, expand, hybrid, hyde, sessions_from_turns, weakness
from memlab.retrieve.expansion import INSTRUCTION, KINDS, Expansion
from memlab.retrieve.subqueries import by_vectors

Ranking = Callable[[Run], dict[str, list[str]]]


@pytest.fixture(scope="module")
def odd(world: Dataset) -> Bench:
    return Bench.of(world, encoder="hashing:32")


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """A language model that answers what is put in ``say``; what it is asked is in ``asked``."""
    played: dict[str, Any] = {"say": lambda text: Expansion(lex=text, vec=text, hyde="rain again"), "asked": []}

    def ask(requests: list[llm.Request], service: str) -> list[llm.Answer]:
        assert service == "recorded"
        assert {request.shape for request in requests} <= {Expansion}
        texts = [json.loads(request.prompt)["question"] for request in requests]
        played["asked"] += texts
        return [llm.Answer(played["say"](text), "" if played["say"](text) else "not recorded") for text in texts]

    monkeypatch.setattr(llm, "ask", ask)
    return played


def test_each_kind_has_its_own_search(odd: Bench, played: dict[str, Any], ranking: Ranking) -> None:
    alone = odd.with_queries(odd.queries[1:2])
    played["say"] = lambda text: Expansion(lex="dentist tooth", vec="rain again", hyde="the doctor")
    found = {kind: ranking(expand(bm25(alone, k=1), alone, kinds=(kind,), k=50)) for kind in KINDS}
    (query,) = alone.queries["query_id"]
    for kind, search, text in (("lex", bm25, "dentist tooth"), ("vec", dense, "rain again")):
        asked = alone.with_queries(pl.DataFrame({"query_id": [query], "scope": ["ann"], "text": [text]}))
        best = ranking(search(asked, k=2))[query]
        assert [d for d in found[kind][query] if d in best] == best
        assert found[kind][query].index(best[0]) <= 1
    mean = alone.query_vectors + alone.embedder().encode(["the doctor"], kind="document")
    best = ranking(by_vectors(alone, mean / np.linalg.norm(mean), k=2))[query]
    assert found["hyde"][query].index(best[0]) <= 1


def test_the_model_is_asked_for_the_questions_of_the_run(odd: Bench, played: dict[str, Any]) -> None:
    run = hybrid(odd)
    assert expand(replace(run, frame=run.frame.clear()), odd).frame.height == 0
    assert played["asked"] == []
    some = replace(run, frame=run.frame.filter(pl.col("query_id").is_in(["ann/q1", "cyd/q0"])))
    assert set(expand(some, odd).frame["query_id"]) == {"ann/q1", "cyd/q0"}
    assert played["asked"] == ["roses tulips water", "roses roses doctor"]


def test_a_question_without_an_answer_keeps_its_ranking(odd: Bench, played: dict[str, Any], ranking: Ranking) -> None:
    played["say"] = lambda text: None if "doctor" in text else Expansion(lex="water", vec="water", hyde="water")
    run = hybrid(odd, k=5)
    with pytest.warns(UserWarning, match="expansions came from no model"):
        after = ranking(expand(run, odd, weight=5.0, k=5))
    before = ranking(run)
    silent = [q for q, text in odd.queries.select("query_id", "text").iter_rows() if "doctor" in text]
    assert {q: after[q] for q in silent} == {q: before[q] for q in silent}
    assert after != before


def test_the_first_places_are_guarded(odd: Bench, played: dict[str, Any], ranking: Ranking) -> None:
    played["say"] = lambda text: Expansion(lex="rain again", vec="rain again", hyde="rain again")
    run = hybrid(odd, k=5)
    first = {q: ids[0] for q, ids in ranking(run).items()}
    assert {q: ids[0] for q, ids in ranking(expand(run, odd)).items()} == first
    assert ranking(expand(run, odd, weight=50.0))["ann/q1"][0] != first["ann/q1"]


def test_what_expand_cannot_use(odd: Bench, world: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = bm25(odd)
    monkeypatch.chdir(tmp_path)
    for stage in (expand, hyde):
        with pytest.raises(ModelError, match=r"no language model 'lab' is set.*memlab.toml: \[llm.services.lab\]"):
            stage(run, odd, service="lab")
        with pytest.raises(DataError, match="takes a ranking of turns"):
            stage(sessions_from_turns(run, odd), odd)
    for wrong, message in (({"kinds": ("lex", "rm3")}, "choose from lex, vec, hyde"), ({"weight": -1.0}, "weight is")):
        with pytest.raises(DataError, match=message):
            expand(run, odd, **wrong)
    plain = Bench.of(world, encoder=None)
    with pytest.raises(DataError, match="make the bench with an encoder, or use 'lex'"):
        expand(bm25(plain), plain)
    with pytest.raises(DataError, match="needs embeddings"):
        weakness(bm25(plain), plain)


def test_with_a_store_and_without_an_encoder(
    world: Dataset, tmp_path: Path, played: dict[str, Any], odd: Bench
) -> None:
    stored = Bench.of(world, encoder="hashing:32", store=str(tmp_path / "store"))
    plain, kept = (expand(hybrid(b), b) for b in (odd, stored))
    assert kept.frame.equals(plain.frame)
    words = Bench.of(world, encoder=None)
    assert expand(bm25(words), words, kinds=("lex",)).frame.height


def test_the_schema_suits_strict_servers() -> None:
    schema = Expansion.model_json_schema()
    assert schema["additionalProperties"] is False
    assert set(schema["required"]) == set(schema["properties"]) == {"lex", "vec", "hyde"}
    assert all(kind in json.dumps(INSTRUCTION) for kind in KINDS)


def test_weakness_is_how_little_the_first_turns_stand_out(talk: Dataset) -> None:
    bench = Bench.of(talk, encoder="hashing:32")
    run = combsum(bench)
    mean = run.frame.filter(pl.col("rank") <= 3).group_by("query_id", maintain_order=True).agg(pl.col("score").mean())
    value = weakness(run, bench)
    assert value["query_id"].to_list() == mean["query_id"].to_list()
    np.testing.assert_allclose(value["value"], -mean["score"] / 4)
    turned = run.frame.select("query_id", pl.col("doc_id").reverse().over("query_id"), "rank", "score")
    assert (weakness(Run(turned, "turn"), bench)["value"] > value["value"]).all()


def test_only_weak_questions_are_asked_and_changed(odd: Bench, played: dict[str, Any], ranking: Ranking) -> None:
    run = hybrid(odd)
    value = weakness(run, odd)
    assert dict(value.iter_rows())["bob/q0"] == 0  # the only turn of its scope stands out from nothing
    threshold = float(value["value"].median())
    weak = value.filter(pl.col("value") > threshold)["query_id"].to_list()
    before, got = ranking(run), hyde(run, odd, threshold=threshold, weight=5.0)
    after, texts = ranking(got), dict(odd.queries.select("query_id", "text").iter_rows())
    assert 0 < len(weak) < len(texts)
    assert sorted(played["asked"]) == sorted(texts[q] for q in weak)
    assert list(after) == list(before)
    assert {q: ids for q, ids in after.items() if q not in weak} == {q: i for q, i in before.items() if q not in weak}
    assert any(after[q] != before[q] for q in weak)
    assert got.frame["rank"].to_list() == [rank for ids in after.values() for rank in range(1, len(ids) + 1)]
    assert hyde(run, odd, threshold=-1e9).frame.equals(expand(run, odd, kinds=("hyde",)).frame)
    assert hyde(run, odd, threshold=1e9) is run
