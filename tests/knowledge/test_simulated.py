"""Simulated facts and the measured quality of supersession on them."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from memlab import embed
from memlab.errors import DataError
from memlab.knowledge import scoring, simulated
from memlab.knowledge.supersession import resolve

AS_OF = [datetime(2023, 9, 1, tzinfo=UTC), datetime(2024, 6, 1, tzinfo=UTC), datetime(2025, 6, 1, tzinfo=UTC)]


def test_the_same_seed_gives_the_same_facts() -> None:
    facts, truth = simulated.simulate(500, seed=3)
    again, _ = simulated.simulate(500, seed=3)
    assert facts.equals(again)
    assert facts.height == truth.height == 500
    assert facts["fact_id"].equals(truth["fact_id"])
    assert (facts["recorded_at"] > facts["asserted_at"]).any()
    with pytest.raises(DataError, match="vocabulary"):
        simulated.simulate(10, vocabulary="other")
    with pytest.raises(DataError, match="n is 0"):
        simulated.simulate(0)


def test_the_vocabularies_share_no_wording() -> None:
    words = [
        {w for r in relations for w in r.wordings}
        | {w for r in relations if isinstance(r.values, list) for v in r.values for w in v}
        for relations in simulated.VOCABULARIES.values()
    ]
    assert not words[0] & words[1]


def test_truth_follows_from_the_statements() -> None:
    facts, truth = simulated.simulate(800, seed=4)
    pairs = simulated.true_pairs(facts, truth)
    assert set(pairs["kind"]) == {"update", "end", "correction"}
    assert pairs.select("old", "new").is_duplicated().sum() == 0
    held = scoring.holding(facts, truth, AS_OF[1]).join(truth.select("slot", "one").unique(), on="slot")
    assert held.filter("one")["slot"].is_unique().all()


def test_a_declared_cardinality_beats_the_naive_rule() -> None:
    facts, truth = simulated.simulate(1500, seed=5)
    naive = resolve(
        facts, cardinality=dict.fromkeys([w for r in simulated.VOCABULARIES["development"] for w in r.wordings], "one")
    )
    mine = resolve(facts)
    naive_precision = scoring.supersession(naive, facts, truth)["precision"][0]
    assert scoring.supersession(mine, facts, truth)["precision"][0] > naive_precision + 0.1


@pytest.mark.slow
def test_precision_and_recall_on_ten_thousand_facts() -> None:
    # Thresholds: development vocabulary, seeds 0 to 2. The errors of the held-out vocabulary at seed 0 were read once.
    facts, truth = simulated.simulate(10_000, seed=11, vocabulary="held_out")
    encoder = embed.load("minilm")
    found = scoring.supersession(resolve(facts, encoder=encoder), facts, truth)
    assert found["precision"][0] >= 0.95
    assert found["recall"][0] >= 0.90
    status = scoring.status([(d, resolve(facts, encoder=encoder, as_of=d)) for d in AS_OF], facts, truth)
    assert status["precision"].min() >= 0.8  # measured: .82 to .88
    assert status["recall"].min() >= 0.9
