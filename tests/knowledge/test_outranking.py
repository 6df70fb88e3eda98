"""Current against stale: what is asked, what counts as current, ties, and what each condition changes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memlab import datasets, embed
from memlab.config import RecallSettings
from memlab.errors import DataError
from memlab.knowledge import outranking, resolve, simulated
from memlab.knowledge.confidence import ConfidenceSettings
from memlab.knowledge.decay import Exponential
from memlab.records import Dataset, Fact, Question, Session, Turn, frame

NOW = datetime(2025, 3, 1, tzinfo=UTC)
FITTED = ConfidenceSettings(decay=Exponential(150))
ONLY_CONFIDENCE = RecallSettings(vector=0, graph=0, confidence=1)


def fact(name: str, value: str, days_ago: float, predicate: str = "lives in") -> Fact:
    return Fact(name, "u", "Ann", predicate, value, "stated", [], NOW - timedelta(days=days_ago))


def updates(labels: dict[str, bool]) -> outranking.Updates:
    questions = pl.DataFrame({"query_id": ["q"], "scope": ["u"], "text": ["Where does Ann live?"], "now": [NOW]})
    rows = pl.DataFrame({"query_id": ["q"] * len(labels), "fact_id": list(labels), "current": list(labels.values())})
    return outranking.Updates(questions, rows)


def right(facts: list[Fact], labels: dict[str, bool]) -> dict[str, bool]:
    """Say under which conditions the current value is above, by confidence alone."""
    resolved = resolve(frame(Fact, facts))
    scores = outranking.ranked(
        updates(labels), resolved, conditions=outranking.conditions(FITTED), weights=ONLY_CONFIDENCE
    )
    return dict(outranking.outranked(scores).select("condition", "outranked").iter_rows())


def test_decay_and_supersession_each_lift_the_current_value_and_a_tie_does_not_count() -> None:
    found = right([fact("old", "Oslo", 300), fact("new", "Bergen", 100)], {"old": False, "new": True})
    assert found == {name: name != "no decay" for name in found}
    assert len(found) == 6
    recent = right([fact("old", "Oslo", 20), fact("new", "Bergen", 10)], {"old": False, "new": True})
    # The default keeps everything for 30 days.
    assert [name for name, good in recent.items() if not good] == ["no decay", "default curve"]


def test_a_stale_value_that_nothing_closes_stays_in_the_ranking() -> None:
    # Nobody says how many things one may like.
    facts = [fact("old", "tea", 20, "likes"), fact("new", "coffee", 10, "likes")]
    found = right(facts, {"old": False, "new": True})
    assert [name for name, good in found.items() if good] == ["fitted curve", "fitted curve + supersession"]


def test_a_repeat_has_the_score_of_its_fact_and_a_current_value_that_is_left_out_is_not_above() -> None:
    facts = [fact("a", "Oslo", 300), fact("b", "Oslo", 200), fact("c", "Bergen", 100)]
    resolved = resolve(frame(Fact, facts))
    way = [outranking.Condition("x", FITTED, False)]
    scores = outranking.ranked(
        updates({"a": False, "b": False, "c": True}), resolved, conditions=way, weights=ONLY_CONFIDENCE
    )
    by = dict(scores.select("fact_id", "score").iter_rows())
    assert by["a"] == by["b"] == pytest.approx(2 ** (-200 / 150) * 1.1, abs=1e-5)
    wrong_way = right(facts, {"a": True, "b": True, "c": False})
    assert not wrong_way["no decay + supersession"]


def test_other_facts_change_nothing_without_the_graph_and_are_ranked_with_it() -> None:
    facts = [fact("old", "Oslo", 300), fact("new", "Bergen", 100), fact("else", "chess", 5, "plays")]
    way, asked = [outranking.Condition("x", FITTED, False)], updates({"old": False, "new": True})
    encoder = embed.load("hashing:64")
    few, all_of_them = (
        outranking.ranked(asked, resolve(frame(Fact, some)), conditions=way, encoder=encoder)
        for some in (facts[:2], facts)
    )
    assert few.equals(all_of_them)
    near = outranking.ranked(
        asked, resolve(frame(Fact, facts)), conditions=way, weights=RecallSettings(vector=0, graph=1, confidence=0)
    )
    assert near["score"].null_count() == 0


def test_questions_of_one_scope_at_two_times_are_read_each_at_its_own() -> None:
    resolved = resolve(frame(Fact, [fact("old", "tea", 300, "likes"), fact("new", "coffee", 100, "likes")]))
    both = [updates({"old": False, "new": True}) for _ in range(2)]
    later = both[1].questions.with_columns(query_id=pl.lit("later"), now=pl.lit(NOW + timedelta(days=150)))
    asked = outranking.Updates(
        pl.concat([both[0].questions, later]),
        pl.concat([both[0].labels, both[1].labels.with_columns(query_id=pl.lit("later"))]),
    )
    way = [outranking.Condition("x", FITTED, False)]
    scores = outranking.ranked(asked, resolved, conditions=way, weights=ONLY_CONFIDENCE).sort("query_id", "fact_id")
    values = dict(scores.select(pl.concat_str("query_id", "fact_id"), "score").iter_rows())
    assert values["laternew"] == pytest.approx(values["qnew"] / 2, abs=1e-5)
    assert scores["score"].null_count() == 0


def test_simulated_questions_have_both_kinds_and_only_what_is_known_by_then() -> None:
    facts, truth = simulated.simulate(900, seed=2)
    asked = outranking.simulated_updates(facts, truth, now=NOW)
    kinds = asked.labels.group_by("query_id").agg(pl.col("current").any(), every=pl.col("current").all())
    assert kinds["current"].all()
    assert not kinds["every"].any()
    assert set(kinds["query_id"]) == set(asked.questions["query_id"])
    told = asked.labels.join(facts, on="fact_id").join(truth, on="fact_id")
    assert (told["recorded_at"] <= NOW).all()
    assert (told["query_id"] == told["slot"]).all()
    # One value is current, no value before it is the same, and it is the last thing said.
    values = told.group_by("slot", "current").agg(pl.col("value").unique())
    assert values.filter("current")["value"].list.len().max() == 1
    overlap = told.filter("current").join(told.filter(~pl.col("current")), on=["slot", "value"], how="semi")
    assert overlap.is_empty()
    assert told.sort("asserted_at").group_by("slot").last()["current"].all()


def test_supersession_wins_on_simulated_people() -> None:
    facts, truth = simulated.simulate(900, seed=2)
    asked = outranking.simulated_updates(facts, truth, now=NOW)
    held = resolve(facts, as_of=NOW)
    scores = outranking.ranked(asked, held, conditions=outranking.conditions(FITTED), encoder=embed.load("hashing:64"))
    table = outranking.summary(outranking.outranked(scores))
    share = dict(table.select("condition", "share").iter_rows())
    assert table["n"].unique().to_list() == [asked.questions.height]
    assert share["no decay"] < share["default curve"] < share["fitted curve"] < share["fitted curve + supersession"]
    for curve in ("no decay", "default curve", "fitted curve"):
        assert share[curve] < share[f"{curve} + supersession"]


@pytest.mark.slow
def test_current_outranks_stale_in_most_simulated_updates() -> None:
    facts, truth = simulated.simulate(3000, seed=2)
    encoder = embed.load("minilm")
    asked = outranking.simulated_updates(facts, truth, now=NOW)
    held = resolve(facts, encoder=encoder, as_of=NOW)
    way = [outranking.Condition("best", ConfidenceSettings(decay=Exponential(245)), True)]
    table = outranking.summary(outranking.outranked(outranking.ranked(asked, held, conditions=way, encoder=encoder)))
    assert table["n"][0] > 100
    assert table["share"][0] >= 0.95


def conversation() -> Dataset:
    """Two sessions at one time and one later; a question for each kind of evidence."""
    said = ["I have two cats.", "Now three cats.", "Four cats by now."]
    times = [NOW, NOW, NOW + timedelta(days=9)]
    turns = [
        Turn(f"u/s{i}/1", "u", f"u/s{i}", 1, "Ann", "user", text, None, time)
        for i, (text, time) in enumerate(zip(said, times, strict=True))
    ]
    turns.append(Turn("u/s2/2", "u", "u/s2", 2, "assistant", "assistant", "Four cats!", None, times[2]))
    sessions = [Session(f"u/s{i}", "u", i + 1, time, time, 1 + (i == 2), ["Ann"]) for i, time in enumerate(times)]
    asked = {"ab": (0, 1), "abc": (0, 1, 2), "a": (0,), "ca": (2, 0)}
    questions = [
        Question(name, "u", f"How many cats ({name})?", "", "knowledge-update", NOW + timedelta(days=20),
                 [f"u/s{i}/1" for i in which], [f"u/s{i}" for i in which], False)
        for name, which in asked.items()
    ]  # fmt: skip
    return Dataset("cats", "chatlog", frame(Turn, turns), frame(Session, sessions), frame(Question, questions))


def test_the_latest_evidence_is_current_and_equal_times_keep_their_order() -> None:
    data = conversation()
    facts = outranking.turn_facts(data.turns)
    assert facts["fact_id"].to_list() == ["u/s0/1", "u/s1/1", "u/s2/1"]
    found = outranking.dataset_updates(data, facts)
    assert found.questions["query_id"].to_list() == ["ab", "abc", "ca"]
    current = found.labels.filter("current").select("query_id", "fact_id").rows()
    assert sorted(current) == [("ab", "u/s1/1"), ("abc", "u/s2/1"), ("ca", "u/s2/1")]
    assert found.labels.height == 7
    only = found.only(pl.col("query_id") == "ca")
    assert (only.questions.height, only.labels.height) == (1, 2)
    unread = outranking.dataset_updates(data, facts.filter(pl.col("fact_id") != "u/s2/1"))
    # Without a fact of the current session, one of an earlier session does not take its place.
    assert unread.questions["query_id"].to_list() == ["ab"]
    both = facts.with_columns(evidence=pl.lit(["u/s0/1", "u/s1/1"]))
    assert "ab" not in outranking.dataset_updates(data, both).questions["query_id"]


SCORES = st.lists(st.tuples(st.booleans(), st.sampled_from([None, 0.1, 0.2, 0.3])), min_size=1, max_size=6)


@given(SCORES)
@settings(max_examples=60, deadline=None)
def test_outranked_says_what_a_sort_says(rows: list[tuple[bool, float | None]]) -> None:
    scores = pl.DataFrame(
        {"condition": "x", "query_id": "q", "fact_id": [str(i) for i in range(len(rows))],
         "current": [kind for kind, _ in rows], "score": [value for _, value in rows]},
        schema_overrides={"score": pl.Float64},
    )  # fmt: skip
    stale = max([-1.0, *(value for kind, value in rows if not kind and value is not None)])
    expected = any(kind and value is not None and value > stale for kind, value in rows)
    assert outranking.outranked(scores)["outranked"].to_list() == [expected]


def test_summary_pairs_the_questions() -> None:
    from scipy.stats import binomtest

    hits = {"a": [True] * 3 + [False] * 7, "b": [True] * 2 + [False] + [True] * 6 + [False]}
    table = pl.concat(
        pl.DataFrame({"condition": name, "query_id": [str(i) for i in range(10)], "outranked": each})
        for name, each in hits.items()
    )
    row = outranking.summary(table).row(1, named=True)
    assert (row["hits"], row["wins"], row["losses"], row["difference"]) == (8, 6, 1, 0.5)
    assert row["p"] == pytest.approx(binomtest(6, 7).pvalue)
    assert row["low"] < 0.8 < row["high"]
    assert row["difference_low"] < 0.5 < row["difference_high"]
    assert outranking.summary(table).equals(outranking.summary(table))
    turned = outranking.summary(table, baseline="b").row(0, named=True)
    assert (turned["wins"], turned["losses"]) == (1, 6)
    with pytest.raises(DataError, match="no condition is called 'c'; there are: a, b"):
        outranking.summary(table, baseline="c")
    with pytest.raises(DataError, match="'b' has other questions than 'a'"):
        outranking.summary(table.filter((pl.col("condition") == "a") | (pl.col("query_id") != "3")))


def test_what_cannot_be_ranked_is_named() -> None:
    resolved = resolve(frame(Fact, [fact("old", "Oslo", 300)]))
    with pytest.raises(DataError, match="there is no condition"):
        outranking.ranked(updates({"old": False}), resolved, conditions=[])
    timeless = updates({"old": False})
    timeless = timeless._replace(questions=timeless.questions.with_columns(now=pl.lit(None, pl.Datetime("us", "UTC"))))
    with pytest.raises(DataError, match="a question has no time"):
        outranking.ranked(timeless, resolved, conditions=outranking.conditions())


@pytest.mark.shared_data
def test_longmemeval_updates_are_read(longmemeval_path: Path) -> None:
    data = datasets.load(longmemeval_path)
    found = outranking.dataset_updates(data, outranking.turn_facts(data.turns))
    updated = data.questions.filter(pl.col("question_type") == "knowledge-update")
    assert found.questions.height == updated.height
    assert found.labels.filter("current").height >= updated.height
