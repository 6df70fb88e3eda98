"""A bias raises what is in play and hides nothing."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memlab.context import bias, follow_ups, rank_changes
from memlab.errors import DataError
from memlab.records import Dataset, Run, qrels, run_from_scores
from memlab.retrieve import Bench, sessions_from_turns


@given(st.data(), st.floats(1, 50))
@settings(max_examples=10, deadline=None)
def test_nothing_vanishes_and_order_holds_within_each_half(
    talk_run: Run, talk_bench: Bench, data: st.DataObject, factor: float
) -> None:
    sessions = talk_bench.sessions["session_id"].to_list()
    active = data.draw(st.lists(st.sampled_from(sessions), max_size=4))
    shift = data.draw(st.sampled_from([0.0, -30.0, 5.0]))
    frame = talk_run.frame.filter(pl.col("query_id").is_in(talk_bench.queries["query_id"].head(6).to_list()))
    run = replace(talk_run, frame=frame.with_columns(pl.col("score") + shift))
    raised = bias(run, talk_bench, active=active, factor=factor)
    keys = ["query_id", "doc_id"]
    assert raised.frame.select(keys).sort(keys).equals(run.frame.select(keys).sort(keys))
    where = dict(talk_bench.turns.select("turn_id", "session_id").iter_rows())
    for held in (True, False):
        one, two = (
            r.frame.filter(
                pl.Series([(where[d] in active) == held for d in r.frame["doc_id"]], dtype=pl.Boolean)
            ).select(keys)
            for r in (run, raised)
        )
        assert one.equals(two)


def test_scores_fall_strictly(talk_run: Run, talk_bench: Bench) -> None:
    raised = bias(talk_run, talk_bench, active=talk_bench.sessions["session_id"].to_list()[::2])
    steps = raised.frame.select(step=pl.col("score").diff().over("query_id"))["step"].drop_nulls()
    assert steps.len()
    assert steps.max() < 0


def test_a_factor_of_one_and_nothing_in_play_change_nothing(talk_run: Run, talk_bench: Bench) -> None:
    everything = talk_bench.sessions["session_id"].to_list()
    for raised in (
        bias(talk_run, talk_bench, active=everything, factor=1.0),
        bias(talk_run, talk_bench, active=[]),
    ):
        assert raised.frame["doc_id"].equals(talk_run.frame["doc_id"])


def test_what_is_in_play_passes_what_is_close(talk_bench: Bench) -> None:
    scope = talk_bench.queries["scope"][0]
    turns = talk_bench.turns.filter(scope=scope)
    first = turns.unique("session_id", keep="first", maintain_order=True)["turn_id"].to_list()[:3]
    where = dict(turns.select("turn_id", "session_id").iter_rows())
    query = np.array([talk_bench.queries["query_id"][0]] * 3)
    run = run_from_scores(query, np.array(first), np.array([10.0, 9.0, 5.0]), level="turn", k=3)
    by_session = bias(run, talk_bench, active=[where[first[1]], where[first[2]]])
    assert by_session.frame["doc_id"].to_list() == [first[1], first[0], first[2]]
    by_turn = bias(run, talk_bench, active=pl.DataFrame({"query_id": query[:1], "id": [first[1]]}), level="turn")
    assert by_turn.frame["score"].to_list() == pytest.approx([10.35, 10.0, 5.0])
    other = bias(run, talk_bench, active=pl.DataFrame({"query_id": ["another"], "id": [first[1]]}), level="turn")
    assert other.frame["doc_id"].to_list() == first


def test_gain_and_loss_are_told_apart(talk: Dataset, talk_bench: Bench, talk_run: Run) -> None:
    gold = qrels(talk.questions, "turn")
    some = gold.frame.select("query_id", id="subtopic").unique(maintain_order=True)
    own = some.filter(pl.int_range(pl.len()) % 2 == 0)
    raised = bias(talk_run, talk_bench, active=own, factor=3.0)
    moves = rank_changes(talk_run, raised, gold)
    assert moves.height == gold.frame.height
    table = follow_ups(moves, own, k=5)
    rows = {row["group"]: row for row in table.iter_rows(named=True)}
    assert sum(row["n"] for row in rows.values()) == gold.frame["query_id"].n_unique()
    assert rows["stays"]["gain"] > 0 > rows["turns away"]["gain"] or rows["turns away"]["lost"] == 0
    for row in rows.values():
        assert row["after"] - row["before"] == pytest.approx((row["won"] - row["lost"]) / row["n"])


def test_wrong_bias(talk_run: Run, talk_bench: Bench) -> None:
    with pytest.raises(DataError, match="never hides"):
        bias(talk_run, talk_bench, active=[], factor=0.5)
    with pytest.raises(DataError, match="level is 'turn' for a ranking of sessions"):
        bias(sessions_from_turns(talk_run, talk_bench), talk_bench, active=[], level="turn")
