"""Recall: what the score is made of, what is left out, and laws that hold for any facts."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memlab import embed
from memlab.config import RecallSettings
from memlab.errors import DataError
from memlab.knowledge import graph, resolve, score
from memlab.knowledge.search import candidates, search_facts, search_summaries, summary_texts
from memlab.records import Fact, Summary, frame

DAY0 = datetime(2025, 1, 1, tzinfo=UTC)
NOW = datetime(2025, 3, 1, tzinfo=UTC)
ENCODER = embed.load("hashing:64")
ONE = {"works at": "one"}


def told(*rows: tuple[int, str, str, str], scope: str = "u", prefix: str = "f") -> pl.DataFrame:
    """Rows of (day, subject, predicate, object)."""
    return frame(
        Fact,
        [
            Fact(f"{prefix}{i}", scope, *row, "stated", [f"{scope}/s/{i}"], DAY0 + timedelta(days=day))
            for i, (day, *row) in enumerate(rows)
        ],
    )


def scored(facts: pl.DataFrame) -> pl.DataFrame:
    return score(resolve(facts, cardinality=ONE).facts, now=NOW)


def asked(*texts: str, scope: str = "u") -> pl.DataFrame:
    return pl.DataFrame({"scope": [scope] * len(texts), "text": texts})


STORY = scored(
    told(
        (0, "Ann", "works at", "Acme"),
        (5, "Ann", "likes", "green tea"),
        (9, "Ann", "likes", "the green tea"),
        (20, "Ann", "works at", "Bolt"),
        (30, "Bo", "plays", "chess in the park"),
        (40, "Bo", "no longer plays", "chess in the park"),
    )
)


def test_the_score_is_the_weighted_sum_of_its_components() -> None:
    weights = RecallSettings(vector=0.5, graph=0.2, confidence=0.1)
    ranking = search_facts(asked("Where does Ann work?"), STORY, encoder=ENCODER, settings=weights)
    total = 0.5 * ranking["vector"] + 0.2 * ranking["graph"] + 0.1 * ranking["confidence"]
    assert ranking["score"].to_list() == pytest.approx(total.to_list(), abs=1e-6)
    confidence = dict(STORY.select("fact_id", "confidence").iter_rows())
    assert ranking["confidence"].to_list() == [confidence[fact] for fact in ranking["fact_id"]]
    cosine = ENCODER.encode(["Where does Ann work?"], kind="query") @ ENCODER.encode(["Ann works at Bolt"]).T
    assert ranking.filter(fact_id="f3")["vector"][0] == pytest.approx(max(float(cosine[0, 0]), 0.0), abs=1e-6)
    assert ranking["graph"].max() == 1.0
    assert ranking["entities"][0].to_list() == ["Ann", "works"]


def test_what_no_longer_holds_is_left_out_and_repeats_are_folded() -> None:
    ranking = search_facts(asked("Ann works, Bo plays chess, green tea"), STORY, encoder=ENCODER)
    assert set(ranking["fact_id"]) == {"f1", "f3"}
    every = search_facts(asked("Ann works, Bo plays chess, green tea"), STORY, encoder=ENCODER, superseded=True)
    assert set(every["fact_id"]) == {"f0", "f1", "f3", "f4", "f5"}
    assert every.filter(pl.col("fact_id").is_in(["f0", "f4", "f5"]))["confidence"].to_list() == [0.0] * 3


def test_a_repeat_lends_its_words_to_the_first() -> None:
    facts = scored(
        told((0, "Ann", "likes", "green tea"), (9, "Ann", "is loving", "music"), (10, "Ann", "hates", "rain"))
    )
    facts = facts.with_columns(
        status=pl.Series(["active", "repeat", "active"]), repeats=pl.Series([None, "f0", None], dtype=pl.String)
    )
    only = RecallSettings(vector=0, graph=1, confidence=0)
    assert search_facts(asked("music?"), facts, settings=only).row(0, named=True)["fact_id"] == "f0"


def test_nothing_named_says_so() -> None:
    ranking = search_facts(asked("Why?"), STORY, encoder=ENCODER)
    assert ranking["graph"].to_list() == [0.0] * ranking.height
    assert ranking["entities"].to_list() == [[]] * ranking.height


def test_ties_the_newest_first_then_the_text() -> None:
    facts = scored(told((0, "Ann", "saw", "b"), (0, "Ann", "saw", "a"), (3, "Ann", "saw", "c")))
    ranking = search_facts(asked("Why?"), facts, settings=RecallSettings(vector=0, graph=0, confidence=0))
    assert ranking["fact_id"].to_list() == ["f2", "f1", "f0"]
    assert ranking["rank"].to_list() == [1, 2, 3]


def test_weight_zero_is_not_computed() -> None:
    class Never:
        def encode(self, *_: object, **__: object) -> np.ndarray:
            raise AssertionError

    ranking = search_facts(asked("Ann?"), STORY, encoder=Never(), settings=RecallSettings(vector=0, graph=0))
    assert ranking.select("vector", "graph").sum().row(0) == (0.0, 0.0)


def test_k_and_ids_of_questions() -> None:
    questions = pl.DataFrame({"query_id": ["b", "a"], "scope": ["u", "u"], "text": ["Ann?", "Bo?"]})
    ranking = search_facts(questions, STORY, encoder=ENCODER, k=1)
    assert ranking.select("query_id", "rank").rows() == [("b", 1), ("a", 1)]
    assert search_facts(questions.clear(), STORY, encoder=ENCODER).is_empty()
    assert search_facts(questions, STORY.clear(), encoder=ENCODER).is_empty()
    assert search_facts(asked("Ann?", scope="elsewhere"), STORY, encoder=ENCODER).is_empty()


def test_what_is_refused() -> None:
    with pytest.raises(DataError, match="k is 0"):
        search_facts(asked("Ann?"), STORY, k=0)
    with pytest.raises(DataError, match="no column 'confidence'; give the facts"):
        search_facts(asked("Ann?"), STORY.drop("confidence"))
    with pytest.raises(DataError, match="no column 'text'"):
        search_facts(asked("Ann?").drop("text"), STORY)
    with pytest.raises(DataError, match="query id 'q' stands twice"):
        search_facts(asked("Ann?", "Bo?").with_columns(query_id=pl.lit("q")), STORY)


WORDS = ("Ann", "Bo", "tea", "Acme", "chess", "Oslo")
ROWS = st.lists(
    st.tuples(
        st.integers(0, 50),
        st.sampled_from(WORDS[:2]),
        st.sampled_from(("works at", "likes", "no longer likes", "is now at")),
        st.sampled_from(WORDS[2:]),
    ),
    min_size=1,
    max_size=12,
)
QUESTION = st.lists(st.sampled_from((*WORDS, "work", "what", "why")), max_size=4).map(" ".join)


@settings(max_examples=8, deadline=None)
@given(ROWS, QUESTION, st.tuples(*[st.floats(0, 2)] * 3))
def test_superseded_never_appears_and_scores_are_bounded(rows: list, text: str, weights: tuple) -> None:
    facts = scored(told(*rows))
    chosen = RecallSettings(vector=weights[0], graph=weights[1], confidence=weights[2])
    ranking = search_facts(asked(text), facts, encoder=ENCODER, settings=chosen, k=50)
    assert set(ranking["fact_id"]) == set(facts.filter(pl.col("status") == "active")["fact_id"])
    assert ranking["score"].is_between(0, sum(weights) + 1e-6).all()
    for name in ("vector", "graph", "confidence"):
        assert ranking[name].is_between(0, 1).all()
    assert ranking["rank"].to_list() == list(range(1, ranking.height + 1))
    assert ranking["score"].is_sorted(descending=True)


@settings(max_examples=8, deadline=None)
@given(ROWS, QUESTION, st.randoms(use_true_random=False))
def test_ids_are_opaque(rows: list, text: str, random: object) -> None:
    facts = told(*rows)
    names = [f"{n:03}" for n in range(facts.height)]
    random.shuffle(names)  # type: ignore[attr-defined]
    renamed = facts.with_columns(fact_id=pl.Series(names))
    back = dict(zip(names, facts["fact_id"], strict=True))
    first = search_facts(asked(text), scored(facts), encoder=ENCODER)
    second = search_facts(asked(text), scored(renamed), encoder=ENCODER)
    assert first.equals(second.with_columns(pl.col("fact_id").replace_strict(back, return_dtype=pl.String)))


@settings(max_examples=6, deadline=None)
@given(ROWS, ROWS, QUESTION)
def test_scopes_never_mix(rows: list, others: list, text: str) -> None:
    mine = told(*rows)
    both = scored(pl.concat([mine, told(*others, scope="v", prefix="g")]))
    questions = pl.concat([asked(text, scope="v"), asked(text), asked("Ann tea")])
    together = search_facts(questions, both, encoder=ENCODER, graph=graph.build(candidates(both)))
    alone = search_facts(asked(text), scored(mine), encoder=ENCODER)
    its = together.filter(query_id="1").drop("query_id")
    assert its.select("rank", "fact_id", "entities").equals(alone.select("rank", "fact_id", "entities"))
    assert its["score"].to_list() == pytest.approx(alone["score"].to_list(), abs=2e-6)
    assert together.filter(query_id="0")["fact_id"].str.starts_with("g").all()


def summary(session: str, text: str, day: int, *, scope: str = "u") -> Summary:
    start = DAY0 + timedelta(days=day)
    return Summary(
        session, scope, text, [text], [[]], ["tea", "rain"], [], [], [], [], [], [], [], start, start, ["Ann", "Bo"], 4,
        "extractive",
    )  # fmt: skip


def test_summaries_have_the_header_of_turns() -> None:
    texts = summary_texts(frame(Summary, [summary("u/s1", "Ann bought tea.", 0)]))
    assert texts == ["[time: 1 January 2025 | participants: Ann, Bo | topics: tea, rain] Ann bought tea."]


def test_summaries_are_ranked_within_their_scope() -> None:
    rows = [
        summary("u/s1", "Ann bought a kayak.", 0),
        summary("u/s2", "Bo fixed the roof.", 5),
        summary("v/s1", "A kayak, a kayak!", 5, scope="v"),
    ]
    ranking = search_summaries(asked("kayak bought", "roof fixed"), frame(Summary, rows), encoder=ENCODER, k=1)
    assert ranking.select("query_id", "rank", "session_id").rows() == [("0", 1, "u/s1"), ("1", 1, "u/s2")]
    assert ranking["score"].is_between(0, 1).all()
    same = [summary("u/s1", "The same.", 0), summary("u/s2", "The same.", 0), summary("u/s3", "", 9)]
    assert search_summaries(asked("zzz"), frame(Summary, same), encoder=ENCODER)["rank"].to_list() == [1, 2, 3]
    assert search_summaries(asked("kayak"), frame(Summary), encoder=ENCODER).is_empty()
    with pytest.raises(DataError, match="k is 0"):
        search_summaries(asked("kayak"), frame(Summary, rows), encoder=ENCODER, k=0)
