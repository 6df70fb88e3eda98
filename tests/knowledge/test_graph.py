"""The graph of facts: what it joins, what a question names in it, and PageRank against networkx."""

from __future__ import annotations

from datetime import UTC, datetime

import networkx
import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memlab.errors import DataError
from memlab.knowledge import graph
from memlab.knowledge._phrases import holds, tokens
from memlab.records import Entity, Fact, Relation, frame

WHEN = datetime(2025, 1, 1, tzinfo=UTC)
TOLD = [
    ("Ann Lee", "works at", "the New York Times"),
    ("Ann Lee", "signed up for", "a pottery class with her two best friends"),
    ("Bo", "made", "a bowl in his pottery workshop yesterday"),
    ("Bo", "lives in", "York"),
    ("Cy", "was born in", "NYC"),
    ("Cy", "admires", "Ann for her courage and her patience"),
    ("Cy", "took", "long walks out of kindness"),
]


def told(*rows: tuple[str, str, str], scope: str = "u", speaker: str | None = None) -> pl.DataFrame:
    return frame(
        Fact, [Fact(f"{scope}{i}", scope, *row, "stated", [], WHEN, None, speaker) for i, row in enumerate(rows)]
    )


def asked(*texts: str, scope: str = "u") -> pl.DataFrame:
    return pl.DataFrame({"scope": [scope] * len(texts), "text": texts}, schema={"scope": pl.String, "text": pl.String})


def named(known: graph.KnowledgeGraph, text: str) -> list[str]:
    return graph.seeds(known, asked(text))["name"].to_list()


def best(known: graph.KnowledgeGraph, text: str) -> str:
    rated = graph.relevance(known, asked(text)).sort("relevance", descending=True)
    return str(rated["fact_id"][0])


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("Where does ANN LEE'S boss work?", ["Ann Lee", "works"]),
        ("Does Lee like York?", ["Ann Lee", "York"]),
        ("Who reads the New York Times?", ["the New York Times"]),
        ("Was anybody born in New York City?", ["NYC", "born"]),
        ("Which workshops were there?", ["workshop"]),
        ("Annual yorkshire leeway?", []),
        ("What did she do?", []),
        ("How long, as of now, and what kind of kindness?", ["kindness"]),
        ("", []),
    ],
)
def test_what_a_question_names(question: str, expected: list[str]) -> None:
    assert named(graph.build(told(*TOLD)), question) == expected


def test_possessives_plurals_and_self() -> None:
    assert tokens("The Joneses’ cars") == tokens("Joneses' car")
    assert holds("I met Ann's mother", tokens("ann"))
    assert not holds("Annual report", tokens("Ann"))
    mine = told(("my API key", "is", "sk-1111"), ("my dog", "is called", "Rex"), speaker="user")
    assert best(graph.build(mine), "What is my API key?") == "u0"


def test_a_fact_is_joined_to_subject_object_mentions_and_words() -> None:
    known = graph.build(told(*TOLD))
    names = known.nodes["name"].to_list()
    edges = {(names[a], names[b], kind) for a, b, kind in known.edges.select("source", "target", "kind").iter_rows()}
    assert ("Bo", "Bo lives in York", "subject") in edges
    assert ("York", "Bo lives in York", "object") in edges
    # A first name stands for the only one who has it.
    assert ("Ann Lee", "Cy admires Ann for her courage and her patience", "mentions") in edges
    pottery = {b for a, b, kind in edges if a == "pottery" and kind == "term"}
    assert len(pottery) == 2
    assert known.edges["weight"].unique().to_list() == [1.0]
    assert known.edges.select("source", "target", "kind").is_duplicated().sum() == 0


def test_one_step_away_counts_and_what_is_not_joined_is_zero() -> None:
    known = graph.build(told(("Ann", "works at", "Acme"), ("Acme", "is based in", "Oslo"), ("Bo", "plays", "chess")))
    rated = graph.relevance(known, asked("Ann"))["relevance"].to_list()
    assert rated[0] > rated[1] > rated[2] == 0


def test_nothing_named_is_zero_for_all_and_no_seed() -> None:
    known = graph.build(told(*TOLD))
    assert graph.relevance(known, asked("Why?"))["relevance"].to_list() == [0.0] * len(TOLD)
    assert graph.seeds(known, asked("Why?")).is_empty()
    assert graph.relevance(known, asked("Ann", scope="elsewhere")).is_empty()


def test_the_index_of_entities_and_relations_joins_what_facts_do_not() -> None:
    facts = told(("Ann", "works at", "Acme"), ("Bo", "plays", "chess"))
    entities = frame(Entity, [Entity("e1", "u", "u/s", "Dr. Cy Brand", "person", "", [])])
    relations = frame(Relation, [Relation("r1", "u", "u/s", "Dr. Cy Brand", "brother of", "Bo", [])])
    known = graph.build(facts, entities, relations)
    assert named(known, "Who is Brand?") == ["Dr. Cy Brand"]
    assert best(known, "What does the brother of Brand play?") == "u1"
    assert graph.relevance(graph.build(facts, entities), asked("Brand"))["relevance"].sum() == 0


def test_pagerank_is_that_of_networkx() -> None:
    known = graph.build(told(*TOLD))
    network = known.network("u")
    questions = ["Where does Ann work?", "Who made a bowl in York?", "NYC"]
    rated = graph.relevance(known, asked(*questions))
    place = {data["fact_id"]: node for node, data in network.nodes(data=True) if data["fact_id"]}
    for query, _ in enumerate(questions):
        origin = dict.fromkeys(graph.seeds(known, asked(*questions)).filter(query=query)["node"], 1.0)
        theirs = networkx.pagerank(network, alpha=0.85, personalization=origin, tol=1e-14, max_iter=2000)
        for fact_id, ours in rated.filter(query=query).select("fact_id", "relevance").iter_rows():
            assert ours == pytest.approx(theirs[place[fact_id]], abs=1e-7)


@settings(max_examples=20, deadline=None)
@given(st.integers(2, 12), st.integers(0, 2**32 - 1), st.floats(0.05, 0.95))
def test_any_weighted_graph_agrees_with_networkx(size: int, seed: int, alpha: float) -> None:
    from scipy.sparse import csr_array

    draw = np.random.default_rng(seed)
    weights = np.triu(draw.random((size, size)) * (draw.random((size, size)) < 0.3), 1)
    origin = np.zeros((size, 2))
    origin[draw.integers(size), 0], origin[draw.integers(size), 1] = 1.0, 2.0
    ours = graph.pagerank(csr_array(weights + weights.T), origin, alpha=alpha)
    network = networkx.from_numpy_array(weights + weights.T)
    for column in range(2):
        start = {int(i): origin[i, column] for i in np.flatnonzero(origin[:, column])}
        theirs = networkx.pagerank(network, alpha=alpha, personalization=start, tol=1e-13, max_iter=5000)
        assert ours[:, column] == pytest.approx([theirs[i] for i in range(size)], abs=2 * alpha**100 + 1e-9)
    assert ours.sum(axis=0) == pytest.approx([1.0, 1.0])


def test_scopes_are_graphs_of_their_own() -> None:
    one, other = told(*TOLD), told(("Ann Lee", "works at", "Acme"), scope="v")
    both = graph.build(pl.concat([one, other]))
    for facts, scope in ((one, "u"), (other, "v")):
        alone = graph.relevance(graph.build(facts), asked("Where does Ann Lee work?", scope=scope))
        together = graph.relevance(both, asked("Where does Ann Lee work?", scope=scope))
        assert together.equals(alone)
    ends = both.edges.join(both.nodes.select(source="node", a="scope"), on="source")
    ends = ends.join(both.nodes.select(target="node", b="scope"), on="target")
    assert ends.filter(pl.col("a") != pl.col("b")).is_empty()


def test_a_question_does_not_depend_on_the_others() -> None:
    known = graph.build(told(*TOLD))
    texts = ["Where does Ann work?", "Who made a bowl?", "Why?"]
    together = graph.relevance(known, asked(*texts))
    for query, text in enumerate(texts):
        alone = graph.relevance(known, asked(text))["relevance"]
        assert together.filter(query=query)["relevance"].to_list() == alone.to_list()


def test_what_is_refused() -> None:
    with pytest.raises(DataError, match="no column 'subject'"):
        graph.build(told(*TOLD).drop("subject"))
    known = graph.build(told(*TOLD))
    with pytest.raises(DataError, match="no scope 'x'; it has u"):
        known.network("x")
    with pytest.raises(DataError, match=r"alpha is 1\.0"):
        graph.relevance(known, asked("Ann"), alpha=1.0)


def test_no_facts_make_an_empty_graph() -> None:
    known = graph.build(frame(Fact))
    assert known.nodes.is_empty()
    assert graph.relevance(known, asked("Ann")).is_empty()
