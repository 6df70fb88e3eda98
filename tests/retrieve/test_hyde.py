"""Weakness of first results, and hypothetical turns where they are weak."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import polars as pl
import pytest

from memlab import DataError, ModelError, llm
from memlab.records import Dataset, Run, run_from_scores
from memlab.retrieve import Bench, bm25, combsum, hybrid, sessions_from_turns
from memlab.retrieve.expansion import Expansion, expand, hyde, weakness

Ranking = Callable[[Run], dict[str, list[str]]]
Renamed = Callable[[Dataset, int], tuple[Dataset, dict[str, str]]]
NOTHING = run_from_scores(np.array([], object), np.array([], object), np.array([]), level="turn", k=1)


@pytest.fixture(scope="module")
def bench(talk: Dataset) -> Bench:
    return Bench.of(talk, encoder="hashing:32")


@pytest.fixture(scope="module")
def odd(world: Dataset) -> Bench:
    return Bench.of(world, encoder="hashing:32")


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What a language model, which is played, was asked."""
    heard: list[str] = []

    def ask(requests: list[llm.Request], service: str) -> list[llm.Answer]:
        heard.extend(request.about[0] for request in requests)
        return [llm.Answer(Expansion(lex="", vec="", hyde="rain again")) for _ in requests]

    monkeypatch.setattr(llm, "ask", ask)
    return heard


def test_weakness_is_how_little_the_first_turns_stand_out(bench: Bench) -> None:
    run = combsum(bench)
    mean = run.frame.filter(pl.col("rank") <= 3).group_by("query_id", maintain_order=True).agg(pl.col("score").mean())
    value = weakness(run, bench)
    assert value["query_id"].to_list() == mean["query_id"].to_list()
    np.testing.assert_allclose(value["value"], -mean["score"] / 4)
    assert weakness(run, bench, depth=1)["value"].to_numpy().max() < value["value"].to_numpy().max()


def test_only_which_turns_are_first_matters(bench: Bench) -> None:
    run = hybrid(bench)
    frame = run.frame.with_columns(score=1.0 / pl.col("rank"))
    assert weakness(Run(frame, "turn"), bench).equals(weakness(run, bench))


def test_a_run_that_puts_the_wrong_turns_first_is_weaker(bench: Bench) -> None:
    run = combsum(bench)
    turned = run.frame.select("query_id", pl.col("doc_id").reverse().over("query_id"), "rank", "score")
    worse = weakness(Run(turned, "turn"), bench)["value"]
    assert (worse > weakness(run, bench)["value"]).all()


def test_a_question_that_matches_nothing_is_weaker_than_one_that_repeats_a_turn(odd: Bench) -> None:
    value = dict(weakness(hybrid(odd), odd, depth=1).iter_rows())
    assert value["ann/q2"] > value["ann/q4"]


def test_weakness_of_odd_runs(odd: Bench, world: Dataset) -> None:
    assert weakness(NOTHING, odd).schema == {"query_id": pl.String(), "value": pl.Float64()}
    assert weakness(NOTHING, odd).height == 0
    value = dict(weakness(hybrid(odd), odd).iter_rows())
    assert value["bob/q0"] == 0  # the only turn of its scope stands out from nothing
    assert all(np.isfinite(v) for v in value.values())
    with pytest.raises(DataError, match="depth is 0"):
        weakness(hybrid(odd), odd, depth=0)
    with pytest.raises(DataError, match="takes a ranking of turns"):
        weakness(sessions_from_turns(hybrid(odd), odd), odd)
    plain = Bench.of(world, encoder=None)
    with pytest.raises(DataError, match="needs embeddings"):
        weakness(bm25(plain), plain)


def test_only_weak_questions_are_asked_and_changed(odd: Bench, asked: list[str], ranking: Ranking) -> None:
    run = hybrid(odd)
    value = weakness(run, odd)
    threshold = float(value["value"].median())
    weak = value.filter(pl.col("value") > threshold)["query_id"].to_list()
    got = hyde(run, odd, threshold=threshold, weight=5.0, guard=False)
    texts = dict(odd.queries.select("query_id", "text").iter_rows())
    assert 0 < len(weak) < len(texts)
    assert sorted(asked) == sorted(texts[q] for q in weak)
    before, after = ranking(run), ranking(got)
    assert list(after) == list(before)
    assert {q: ids for q, ids in after.items() if q not in weak} == {q: i for q, i in before.items() if q not in weak}
    assert any(after[q] != before[q] for q in weak)
    assert got.frame["rank"].to_list() == [rank for ids in after.values() for rank in range(1, len(ids) + 1)]


def test_with_the_lowest_threshold_it_is_an_expansion(odd: Bench, asked: list[str]) -> None:
    run = hybrid(odd)
    assert hyde(run, odd, threshold=-1e9).frame.equals(expand(run, odd, kinds=("hyde",)).frame)


def test_with_strong_results_no_service_is_needed(odd: Bench) -> None:
    run = hybrid(odd)
    assert hyde(run, odd, threshold=1e9) is run
    assert hyde(NOTHING, odd).frame.height == 0
    with pytest.raises(ModelError, match=r"\[llm.services.lab\]"):
        hyde(run, odd, service="lab", threshold=-1e9)


def test_a_question_has_the_same_ranking_alone_as_in_the_batch(odd: Bench, asked: list[str], ranking: Ranking) -> None:
    whole = ranking(hyde(hybrid(odd), odd, threshold=-1.0))
    for row in range(odd.queries.height):
        alone = odd.with_queries(odd.queries[row : row + 1])
        (query,) = alone.queries["query_id"]
        assert ranking(hyde(hybrid(alone), alone, threshold=-1.0))[query] == whole[query]


def test_renaming_every_id_renames_the_ranking(
    world: Dataset, odd: Bench, renamed: Renamed, ranking: Ranking, asked: list[str]
) -> None:
    data, names = renamed(world, 1)
    other = Bench.of(data, encoder="hashing:32")
    one, two = (ranking(hyde(hybrid(b, k=6), b, threshold=-1.0)) for b in (odd, other))
    assert two == {names[q]: [names[d] for d in ids] for q, ids in one.items()}
