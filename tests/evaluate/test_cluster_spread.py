"""How evidence lies in clusters beside its controls, what is said of it, and the speaker's part in similarity."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

import memlab
from memlab.cluster import pair_similarity
from memlab.cluster.evidence_spread import observed_and_chance_same_speaker
from memlab.evaluate import cluster_spread as spread
from memlab.retrieve import Bench


def lying(
    questions: int, *, together: bool = True, items: int = 2
) -> tuple[dict[str, pl.DataFrame], pl.DataFrame, pl.DataFrame]:
    """Give sets of evidence and first turns, labels of ten clusters of twelve turns, and their speakers.

    :param together: whether the items of a question lie in one cluster, or each in another.
    """
    turn = np.arange(120)
    ids = [f"t{i}" for i in turn]
    label = pl.Series("label", turn // 12)
    labels = pl.DataFrame({"scope": "u", "turn_id": ids, "draw": 0}).with_columns(label)
    turns = pl.DataFrame({"turn_id": ids, "speaker": [f"speaker {i % 2}" for i in turn]})
    step = 2 if together else 14
    rows = [
        (f"q{q}", f"t{(6 * q + step * i) % 120}") for q in range(questions) for i in range(items)
    ]
    evidence = pl.DataFrame(
        rows, schema={"query_id": pl.String, "turn_id": pl.String}, orient="row"
    )
    return {"evidence": evidence, "first 10": evidence}, labels, turns


def said(questions: int, **how: object) -> list[str]:
    sets, labels, turns = lying(questions, **how)
    ways = dict.fromkeys((spread.AS_ENCODED, spread.CENTRED), labels)
    table = spread.spread_table(sets, ways, turns)
    reached = spread.shares_of_evidence_clusters_reached(sets["evidence"], sets["first 10"], labels)
    return spread.sentences_on_cluster_spread(table, k=10, reached_shares_by_question=reached)


def test_what_can_be_said_of_no_one_five_and_twelve_questions() -> None:
    assert said(0) == ["There is no question with evidence: nothing can be said about clusters."]
    for few, named in ((1, "1 question "), (5, "5 questions ")):
        assert said(few)[0].startswith(f"With {named}nothing can be said")
        assert len(said(few)) == 1
    answer, encoded, spanned, first, reached = said(12)
    assert answer.startswith("100 % of the pairs of evidence items of a question share a ")
    assert " 8 % with labels permuted within speakers (p < .001, uncorrected)." in answer
    assert encoded.startswith(
        "As encoded, speakers' names included, 100 % of the pairs of evidence"
    )
    assert "evidence of a question spans 1.0 speaker-centred clusters" in spanned
    assert spanned.endswith("(n = 12).")
    held = (
        "Of the first 10 turns of dense retrieval the largest speaker-centred cluster holds 100 %, "
    )
    assert first.startswith(held)
    assert reached.startswith(
        "The first 10 turns of dense retrieval reach 100 % of the clusters that hold evidence"
    )
    assert reached.endswith("(mean of 12 questions).")
    assert said(12, together=False)[0].startswith("0 % of the pairs")
    assert said(12, items=1)[0].startswith("No question has two evidence items")


def test_the_table_has_both_controls_of_each_number() -> None:
    sets, labels, turns = lying(12)
    table = spread.spread_table(sets, {spread.CENTRED: labels}, turns)
    assert table.height == 2 * 3 * 3
    pairs = table.filter(of="evidence", number=spread.TOGETHER).rows_by_key("clusters", named=True)
    assert pairs[spread.MEASURED][0]["mean"] == 1.0
    assert pairs[spread.MEASURED][0]["p"] is None
    assert pairs[spread.PERMUTED][0]["mean"] == pytest.approx(11 / 119, abs=0.02)
    # Of one speaker each cluster has six turns.
    assert pairs[spread.WITHIN][0]["mean"] == pytest.approx(5 / 59, abs=0.02)
    assert pairs[spread.WITHIN][0]["p"] == pytest.approx(1 / 1001)


def test_the_most_similar_turn_by_hand_and_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    vectors, names = rng.normal(size=(300, 6)), rng.choice(["a", "b", "c"], 300)
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    similar = unit @ unit.T
    np.fill_diagonal(similar, -2)
    same = (names[similar.argmax(axis=1)] == names).mean()
    counts = np.unique(names, return_counts=True)[1]
    for block in (1024, 7):
        monkeypatch.setattr("memlab.cluster.evidence_spread._BLOCK", block)
        found = observed_and_chance_same_speaker(vectors, names.tolist())
        assert found == pytest.approx((same, (counts * (counts - 1)).sum() / (300 * 299)))
    assert np.isnan(observed_and_chance_same_speaker(vectors[:1], ["a"])).all()


@pytest.mark.nightly
def test_on_the_sample_the_speaker_no_longer_decides_who_is_near(tmp_path: Path) -> None:
    """MiniLM reads four memories: of each, nearest turns and pairs of evidence beside their control."""
    data = memlab.sample()
    bench = Bench.of(data, store=str(tmp_path / "store"), progress=False)
    shares = spread.same_speaker_shares_of_nearest_turns(bench)
    over = {way: shares[way] - shares["chance"] for way in (spread.AS_ENCODED, spread.CENTRED)}
    assert (over[spread.AS_ENCODED] > 0.25).all()
    assert (over[spread.CENTRED] < 0.3).all()
    assert (over[spread.CENTRED] < 0.6 * over[spread.AS_ENCODED]).all()
    documents = bench.documents("turn")
    pairs = pair_similarity(
        documents.vectors(), documents.ids.tolist(), data.questions,
        question_embeddings=bench.query_vectors, turns=data.turns,
    )  # fmt: skip
    scopes = data.questions.select("query_id", "scope")
    means = (
        pairs.join(scopes, on="query_id").group_by("scope", "kind").agg(pl.col("similarity").mean())
    )
    found = {(scope, kind): mean for scope, kind, mean in means.iter_rows()}
    for scope in data.scopes:
        control = found[scope, "evidence – random, same speaker"]
        assert abs(control) < 0.05
        assert found[scope, "evidence, other session"] > control + 0.1
