"""Ranking of facts: three components on one scale, the graph and its entities, current above stale."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np
import polars as pl
import pytest

from memlab.config import RecallSettings
from memlab.embed import load
from memlab.errors import DataError
from memlab.knowledge import ConfidenceSettings, fact_graph, fact_search, score
from memlab.knowledge.decay_curves import Exponential, PlateauLinear
from memlab.knowledge.fact_graph import build_graph, score_facts_and_find_names
from memlab.knowledge.supersession import Resolved
from memlab.records import Entity, Fact, frame

DAY0 = datetime(2026, 1, 1, tzinfo=UTC)
SAID = [
    ("u0", "u", "Ann Lee", "employer", "Brio", "superseded"),
    ("u1", "u", "Acme", "city", "Oslo", "active"),
    ("u2", "u", "Ben", "hobby", "pottery", "active"),
    ("u3", "u", "Cleo", "weekly class", "pottery on Mondays", "due"),
    ("u4", "u", "Ann Lee", "employer", "Acme", "active"),
    ("u5", "u", "Ann Lee", "employer", "Acme", "repeat"),
    ("u6", "v", "Zoe", "hobby", "pottery", "active"),
]


def _resolved() -> pl.DataFrame:
    """Facts as the resolver gives them, one said every thirty days."""
    rows = []
    for i, (fact, scope, about, slot, value, _) in enumerate(SAID):
        when = DAY0 + timedelta(days=30 * i)
        rows.append(Fact(fact, scope, about, slot, value, "stated", [f"{scope}/{i}"], when))
    status = pl.Series("status", [said[-1] for said in SAID])
    return frame(Fact, rows).with_columns(
        status,
        superseded=status == "superseded",
        repeats=pl.when(status == "repeat").then(pl.lit("u4")),
        n_reinforced=pl.lit(0),
        last_access="asserted_at",
    )


def _scored() -> pl.DataFrame:
    return score(_resolved(), now=DAY0 + timedelta(days=250))


def _asked(*texts: str) -> pl.DataFrame:
    return pl.DataFrame({"scope": "u", "text": texts})


def test_which_facts_are_ranked() -> None:
    asked = _asked("Who does pottery?")
    encoder = load("hashing:64")
    found = fact_search.search_facts(asked, _scored(), encoder=encoder)
    assert set(found["fact_id"].head(2)) == {"u2", "u3"}
    assert set(found["fact_id"]) == {"u1", "u2", "u3", "u4"}, "a plan that is due, no repeat"
    every = fact_search.search_facts(asked, _scored(), superseded=True)
    assert every.filter(fact_id="u0")["confidence"].item() == 0


@pytest.mark.parametrize("calibrated", [True, False])
def test_the_score_is_what_the_docstring_says(calibrated: bool) -> None:
    settings = RecallSettings(calibrated=calibrated)
    found = fact_search.search_facts(
        _asked("Who does pottery?"), _scored(), encoder=load("hashing:64"), settings=settings
    )
    sure = found["confidence"]
    if calibrated:
        sure = sure * found["vector"]
        assert found["graph"].max() == found["vector"].max()
    else:
        assert found["graph"].max() == 1.0
    weighed = 0.4 * found["vector"] + 0.3 * found["graph"] + 0.3 * sure
    assert found["score"].to_list() == pytest.approx(weighed.to_list(), abs=1e-5)


class Angles:
    """An encoder by which a text that begins with a key has its cosine to every question."""

    def __init__(self, **cosines: float) -> None:
        self.cosines = cosines

    def encode(self, texts: list[str], *, kind: str, progress: bool) -> np.ndarray:
        if kind == "query":
            return np.tile([1.0, 0.0], (len(texts), 1))
        cosines = np.array([self.cosines[text.split()[0]] for text in texts])
        return np.stack([cosines, np.sqrt(1 - cosines**2)], axis=1)


@pytest.mark.parametrize(
    ("question", "plain_first"),
    [("What does Mel drive?", "car"), ("What does the one from the dentist drive?", "dentist")],
)
def test_what_is_near_in_the_graph_does_not_stand_above_what_was_asked_for(
    question: str, plain_first: str
) -> None:
    """A dentist with similarity .31 and the greatest relevance, and the car with .72.

    The first question leads to both, by the name; the second to the dentist alone.
    """
    facts = frame(Fact, [
        Fact("dentist", "u", "Dentist of Mel", "name", "Dr. Lee", "stated", [], DAY0),
        Fact("car", "u", "Car of Mel", "make", "a red Volvo estate from 2019", "stated", [], DAY0),
        Fact("bike", "u", "Bike", "make", "Gazelle", "stated", [], DAY0),
    ])  # fmt: skip
    facts = facts.with_columns(
        status=pl.lit("active"), confidence=pl.lit(1.0), last_access="asserted_at"
    )
    encoder = Angles(Dentist=0.31, Car=0.72, Bike=0.2)
    plain = RecallSettings(calibrated=False)
    first = {}
    for settings in (RecallSettings(), plain):
        found = fact_search.search_facts(
            _asked(question), facts, encoder=encoder, settings=settings
        )
        first[settings.calibrated] = found["fact_id"][0]
        of_dentist = found.filter(fact_id="dentist")["graph"].item()
        assert of_dentist == pytest.approx(0.72 if settings.calibrated else 1.0)
    assert first == {True: "car", False: plain_first}


def test_relevance_takes_the_scale_of_the_similarities_by_its_place() -> None:
    similarity = np.array([0.1, 0.7, 0.5, 0.3])
    calibrated = fact_search.map_relevance_to_similarities(
        np.array([0.9, 0.2, 0.2, 0.0]), similarity
    )
    assert calibrated.tolist() == [0.7, 0.5, 0.5, 0.0], "equal ones stand in one place"
    assert fact_search.map_relevance_to_similarities(np.zeros(0), np.zeros(0)).shape == (0,)


@pytest.mark.parametrize("settings", [RecallSettings(), RecallSettings(calibrated=False)])
def test_without_similarity_there_is_no_scale(settings: RecallSettings) -> None:
    found = fact_search.search_facts(_asked("Who does pottery?"), _scored(), settings=settings)
    assert found["graph"][0] == 1.0
    weighed = 0.3 * found["graph"] + 0.3 * found["confidence"]
    assert found["score"].to_list() == pytest.approx(weighed.to_list(), abs=1e-5)


def test_the_graph_reaches_what_shares_no_word() -> None:
    oslo = frame(Entity, [Entity("e", "u", "u/s", "Oslo", "place", "", [])])
    known = build_graph(_resolved().filter(pl.col("status") != "repeat", scope="u"), oslo)
    near, _ = score_facts_and_find_names(known, "Where is Ann's office?")
    # Ann Lee, Acme, Oslo: two steps; nothing leads to pottery.
    assert near["u1"] > 0.0
    assert near.get("u2", 0.0) == 0.0
    assert score_facts_and_find_names(known, "Who is Ann Lee?")[1] == ["Ann Lee"]
    assert score_facts_and_find_names(known, "Anything else?") == ({}, [])


def test_relevance_is_the_pagerank_of_networkx_to_the_last_bit() -> None:
    networkx = pytest.importorskip("networkx")  # comes with torch
    alone = frame(Entity, [Entity("e", "u", "u/s", "Nobody", "person", "", [])])
    known = build_graph(_resolved().filter(scope="u"), alone)
    graph = networkx.Graph()
    graph.add_nodes_from(known.places)
    for node in known.places:
        graph.add_edges_from((node, other) for other in known.neighbours(node))
    for question, seeds in (
        ("Where is Ann Lee?", [("ann", "lee")]),
        ("Does Nobody know Ann Lee?", [("nobodi",), ("ann", "lee")]),
    ):
        begin = dict.fromkeys(seeds, 1.0)
        given = {"personalization": begin, "nstart": begin, "tol": 1e-9, "max_iter": 300}
        shares = networkx.pagerank(graph, alpha=fact_graph.ALPHA, **given)
        of_facts = {node: share for node, share in shares.items() if isinstance(node, str)}
        most = max(of_facts.values())
        expected = {fact: share / most for fact, share in of_facts.items()}
        assert score_facts_and_find_names(known, question)[0] == expected


def test_relations_of_entities_join_what_no_fact_joins() -> None:
    facts = _resolved().filter(scope="u")
    alone = frame(Entity, [Entity("e", "u", "u/s", "Ben", "person", "", [])])
    related = frame(
        Entity,
        [Entity("e", "u", "u/s", "Ben", "person", "", [], ["brother of"], ["Ann Lee"])],
    )
    for entities, reached in ((alone, False), (related, True)):
        near, names = score_facts_and_find_names(build_graph(facts, entities), "How is Ben?")
        assert names == ["Ben"]
        assert (near.get("u4", 0.0) > 0.0) == reached


def test_a_batch_is_its_questions() -> None:
    both = fact_search.search_facts(_asked("pottery?", "Where does Ann work?"), _scored(), k=3)
    second = _asked("Where does Ann work?").with_columns(query_id=pl.lit("1"))
    alone = fact_search.search_facts(second, _scored(), k=3)
    assert both.filter(query_id="1").equals(alone)


def test_what_cannot_be_ranked_is_refused() -> None:
    with pytest.raises(DataError, match="confidence"):
        fact_search.search_facts(_asked("x"), _scored().drop("confidence"))
    with pytest.raises(DataError, match="k is 0"):
        fact_search.search_facts(_asked("x"), _scored(), k=0)


def test_supersession_puts_the_current_value_first() -> None:
    empty = pl.DataFrame()
    resolved = Resolved(_resolved(), empty)
    asked = _asked("Where does Ann Lee work?").with_columns(
        query_id=pl.lit("q"), now=DAY0 + timedelta(days=200)
    )
    # The repeat stands for the fact that it repeats.
    labels = pl.DataFrame(
        {"query_id": ["q", "q"], "fact_id": ["u0", "u5"], "current": [False, True]}
    )
    still = ConfidenceSettings(decay=PlateauLinear(floor=1.0))
    fading = ConfidenceSettings(decay=Exponential(60))
    ways = {"none": (still, False), "decay": (fading, False), "closed": (still, True)}
    table = fact_search.current_first_share_by_condition(asked, labels, resolved, conditions=ways)
    shares = dict(table.select("condition", "share").iter_rows())
    assert shares == {"none": 0, "decay": 1, "closed": 1}


def test_the_sentence_is_shown_and_the_row_compared() -> None:
    facts = frame(Fact, [
        Fact("f1", "u", "Ann", "employer", "Acme", "stated", [], DAY0, sentence="Ann is at Acme."),
        Fact("f2", "u", "Ben", "home", "Rome", "stated", [], DAY0),
    ])  # fmt: skip
    assert fact_search.write_fact_sentences_or_statements(facts).to_list() == [
        "Ann is at Acme.",
        "Ben home Rome",
    ]
    assert fact_search.write_fact_statements(facts).to_list() == [
        "Ann employer Acme",
        "Ben home Rome",
    ]
