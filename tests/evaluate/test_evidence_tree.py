"""Where evidence meets in trees and where questions lie: tables by construction, and what is said of them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from talk import world

from memlab.cluster import merge_tree
from memlab.errors import DataError
from memlab.evaluate import cluster_spread as spread
from memlab.evaluate import evidence_tree as tree
from memlab.evaluate.branch_names import NAMED, add_end_branch_names_and_warn
from memlab.retrieve import Bench

SUBJECTS, TURNS = 6, 120


def spoken(questions: int, *, together: bool = True) -> tuple[Bench, pl.DataFrame]:
    """Give turns of two people about six subjects, encoded with a name that outweighs the subject, and evidence.

    :param together: whether the three evidence items of a question are of one subject, or each of
        another.
    """
    rng = np.random.default_rng(0)
    at = np.arange(TURNS)
    subject, name = at % SUBJECTS, at // SUBJECTS % 2
    vectors = 2 * np.eye(24)[name] + np.eye(24)[2 + subject]
    vectors += 0.05 * rng.normal(size=vectors.shape)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    sessions = [[f"word {i}" for i in range(s, s + 10)] for s in range(0, TURNS, 10)]
    data = world({"u": sessions}, {"u": [f"question {q}?" for q in range(max(questions, 1))]})
    speaker = pl.Series("speaker", np.array(["Ana", "Mika"])[name])
    bench = Bench.of(replace(data, turns=data.turns.with_columns(speaker)), encoder="hashing")
    bench = replace(bench, vectors=vectors.astype(np.float32))
    step = SUBJECTS if together else SUBJECTS + 1
    ids = bench.documents("turn").ids
    names = bench.queries["query_id"]
    rows = [(names[q], ids[(7 * q + step * i) % TURNS]) for q in range(questions) for i in range(3)]
    schema = {"query_id": pl.String, "turn_id": pl.String}
    evidence = pl.DataFrame(rows, schema=schema, orient="row")
    if questions:
        # A question is about the subject of its evidence, and nobody's.
        asked = np.eye(24)[2 + np.array([7 * q % SUBJECTS for q in range(questions)])]
        vars(bench)["query_vectors"] = (asked + 0.4 * np.eye(24)[:2].sum(axis=0)).astype(np.float32)
    return bench, evidence


def rows_of(table: pl.DataFrame, *columns: str) -> dict[tuple[str, ...], dict[str, object]]:
    return {tuple(row[name] for name in columns): row for row in table.iter_rows(named=True)}


def test_evidence_of_one_subject_meets_in_a_branch_of_it() -> None:
    bench, evidence = spoken(12)
    table = tree.evidence_merge_table(evidence, bench, draws=200)
    assert table.height == 2 * 2 * 2 * 4
    found = rows_of(table, "vectors", "linkage", "number", "turns")
    branch = found[spread.CENTRED, "average", tree.BRANCH, spread.MEASURED]
    assert branch["n"] == 12
    assert branch["mean"] <= 1 / SUBJECTS + 1e-9
    assert branch["p"] is None
    for control in tree.CONTROLS:
        row = found[spread.CENTRED, "average", tree.BRANCH, control]
        assert row["mean"] > 0.6
        assert row["p"] == pytest.approx(1 / 201)
        assert row["median"] > 0.6
    encoded = found[spread.AS_ENCODED, "average", tree.BRANCH, spread.MEASURED]
    assert encoded["mean"] >= 0.5, "both speakers say something about a subject"
    first, second = tree.sentences_on_merges(table)
    assert first.startswith("To have all evidence of a question in one branch of the average-li")
    assert "of the memory must be taken (mean of 12 questions; median" in first
    assert "for random turns of the same speakers (p = .005, uncorrected)" in first
    assert second.startswith("Other trees, HDBSCAN's kind being single linkage: single linkage, ")


def test_evidence_of_several_subjects_meets_where_random_turns_do() -> None:
    bench, evidence = spoken(12, together=False)
    found = rows_of(
        tree.evidence_merge_table(evidence, bench, draws=100),
        "vectors",
        "linkage",
        "number",
        "turns",
    )
    own, random = (
        found[spread.CENTRED, "average", tree.BRANCH, name]
        for name in (spread.MEASURED, spread.WITHIN)
    )
    assert own["mean"] == pytest.approx(random["mean"], abs=0.25)
    small = found[spread.CENTRED, "average", tree.TENTH, spread.MEASURED]
    assert small["mean"] == 0
    assert small["median"] is None


def test_a_question_lies_in_the_cluster_of_its_evidence_and_missed_evidence_further_out() -> None:
    bench, evidence = spoken(12)
    clusters = tree.density_clusters_by_seed_and_scope(bench, seeds=(0, 1))
    labels = tree.cluster_label_table(bench, clusters, (0, 1))
    assert labels.columns == ["scope", "turn_id", "label", "draw"]
    assert labels.height == 2 * TURNS
    found = rows_of(
        tree.question_placement_table(evidence, bench, clusters, draws=100), "number", "turns"
    )
    assert set(found) == {
        (tree.CLUSTERED, spread.MEASURED),
        *(
            (name, who)
            for name in (tree.SHARED, tree.SOFT)
            for who in (spread.MEASURED, spread.WITHIN)
        ),
    }
    soft, random = (found[tree.SOFT, who] for who in (spread.MEASURED, spread.WITHIN))
    assert soft["mean"] > random["mean"]
    assert (
        found[tree.SHARED, spread.MEASURED]["mean"]
        <= found[tree.CLUSTERED, spread.MEASURED]["mean"]
    )
    retrieved = evidence.group_by("query_id", maintain_order=True).head(1)
    outliers = tree.evidence_outlier_table(evidence, retrieved, bench, clusters)
    assert outliers.select("evidence", "items", "n").rows() == [
        (tree.RETRIEVED, 12, 12),
        (tree.MISSED, 24, 12),
    ]
    scores = np.mean([each["u"].outlier_scores for each in clusters], axis=0)
    place = {turn: i for i, turn in enumerate(bench.documents("turn").ids)}
    hits = [scores[place[turn]] for turn in retrieved["turn_id"]]
    assert outliers["mean"][0] == pytest.approx(np.mean(hits))
    said = tree.sentences_on_placements_and_outliers(
        tree.question_placement_table(evidence, bench, clusters, draws=20), outliers
    )
    assert "of the questions fall into a cluster" in said[0]
    assert said[1].startswith("Missed evidence has an outlier score (GLOSH) of 0.")


@pytest.mark.parametrize("questions", [0, 1, 5])
def test_of_few_questions_nothing_is_said_and_nothing_fails(questions: int) -> None:
    bench, evidence = spoken(questions)
    merges = tree.evidence_merge_table(evidence, bench, draws=10)
    clusters = tree.density_clusters_by_seed_and_scope(bench)
    places = tree.question_placement_table(evidence, bench, clusters, draws=10)
    for retrieved in (evidence, evidence.clear()):
        outliers = tree.evidence_outlier_table(evidence, retrieved, bench, clusters)
        assert outliers.is_empty(), "none has both retrieved and missed evidence"
        assert tree.sentences_on_placements_and_outliers(places, outliers) == []
    assert tree.sentences_on_merges(merges) == []
    assert merges.is_empty() == (questions == 0)
    assert places.is_empty() == (questions == 0)
    single = evidence.group_by("query_id", maintain_order=True).head(1)
    assert tree.evidence_merge_table(single, bench, draws=10).is_empty(), (
        "of one item nothing can meet"
    )


def test_a_question_is_drawn_in_both_trees_with_its_branch() -> None:
    bench, evidence = spoken(12)
    own = evidence.filter(query_id=evidence["query_id"][0])["turn_id"].to_list()
    boxes, leaves = tree.boxes_and_leaves_of_trees(bench, "u", own, retrieved=own[:1], draws=50)
    average, single = boxes["panel"].unique(maintain_order=True)
    assert average.startswith("average linkage: the branch with all evidence holds ")
    assert single.startswith("single linkage: ")
    for panel in (average, single):
        held = boxes.filter("holds", panel=panel)
        feet = leaves.filter(panel=panel)
        assert sorted(feet["x"]) == [i + 0.5 for i in range(TURNS)]
        widest = held.sort(pl.col("end") - pl.col("first")).row(-1, named=True)
        places = feet.filter("evidence")["x"]
        assert (places.is_between(widest["first"], widest["end"])).all()
        assert feet.filter(pl.col("rank").is_not_null())["turn_id"].to_list() == own[:1]
    drawn = boxes.filter(panel=average)
    top = drawn.row(0, named=True)
    assert (top["first"], top["end"], top["branch"], top["level"]) == (0, TURNS, 0, 0)
    assert (drawn["end"] - drawn["first"]).min() >= tree.LEAST_LEAVES
    assert (drawn["high"] >= drawn["low"]).all()
    without, feet = tree.boxes_and_leaves_of_trees(bench, "u", [], draws=5)
    assert without["panel"].unique().sort().to_list() == ["average linkage", "single linkage"]
    assert not without["holds"].any()
    assert not feet["evidence"].any()
    with pytest.raises(DataError, match="no scope 'v' on this bench; there are u"):
        tree.boxes_and_leaves_of_trees(bench, "v", own)


def test_the_largest_branches_that_part_no_further_are_named_by_what_is_said_there() -> None:
    things = ["boat", "piano", "lease", "tulips", "marathon", "dentist"]
    sizes = [5, 6, 7, 8, 9, 10]
    said = np.repeat(np.arange(len(things)), sizes)
    vectors = np.eye(8)[said] + np.random.default_rng(0).normal(scale=0.05, size=(len(said), 8))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    texts = [f"the {things[number]} again" for number in said]
    ids = [f"u/{place}" for place in range(len(said))]
    turns = pl.DataFrame({"turn_id": ids, "speaker": "Mel", "text": texts})
    joined = merge_tree(vectors)
    places = joined.spans[joined.leaf_of, 0]
    boxes = add_end_branch_names_and_warn(joined.branches(5), turns, vectors, places)
    named = boxes.filter(pl.col("name") != "")
    assert sorted(named["name"]) == sorted(things[-NAMED:]), "the largest"
    for branch, first, end in named.select("branch", "first", "end").iter_rows():
        inside = boxes.filter(pl.col("first") >= first, pl.col("end") <= end)
        assert inside["branch"].to_list() == [branch], "its lowest box, and none below it"


def test_a_typical_question_is_the_nearest_to_the_mean_of_those_that_can_be_drawn() -> None:
    bench, evidence = spoken(12)
    lists = evidence.group_by("query_id", maintain_order=True).agg(evidence="turn_id")
    ids = bench.documents("turn").ids.tolist()
    wide = pl.DataFrame({"query_id": ["w"], "evidence": [ids[:7]]})
    one = pl.DataFrame({"query_id": ["o"], "evidence": [ids[:1]]})
    chosen = tree.choose_typical_question(pl.concat([one, wide, lists]), bench)
    assert chosen["query_id"].item() not in ("o", "w"), "twelve of thirteen have small branches"
    assert tree.choose_typical_question(one, bench)["query_id"].item() == "o"
    assert tree.choose_typical_question(one.clear(), bench).is_empty()
