"""Simulated facts: known hazards that a fit finds again, and what held on a date."""

from __future__ import annotations

from datetime import UTC, datetime
from math import log

import polars as pl

from memlab.knowledge import simulated, tuning
from memlab.knowledge.supersession import active, resolve

DATES = [datetime(2023, 9, 1, tzinfo=UTC), datetime(2024, 9, 1, tzinfo=UTC)]


def test_the_same_seed_gives_the_same_facts() -> None:
    facts, truth = simulated.simulate(500, seed=3)
    assert facts.equals(simulated.simulate(500, seed=3)[0])
    assert not facts.equals(simulated.simulate(500, seed=4)[0])
    assert facts.height == truth.height == 500
    assert facts["fact_id"].equals(truth["fact_id"])


def test_a_statement_is_true_when_it_is_made_and_one_value_holds_at_a_time() -> None:
    facts, truth = simulated.simulate(800, seed=4)
    stated = truth.join(facts.select("fact_id", "asserted_at"), on="fact_id")
    assert (
        stated.select((pl.col("from") <= pl.col("asserted_at")) & (pl.col("asserted_at") < pl.col("until")))
        .to_series()
        .all()
    )
    held = stated.filter(pl.col("asserted_at") <= DATES[1], pl.col("until") > DATES[1]).unique(["slot", "value"])
    assert held.height > 30
    assert held["slot"].is_unique().all()


def test_a_fit_finds_the_hazard_again() -> None:
    covered = 0
    for seed in range(10):
        facts, truth = simulated.simulate(3_000, seed=seed, hazards={"lives in": 2.0})
        seen = simulated.observations(facts, truth, dates=DATES[1:])
        found = tuning.fit(seen, "exponential").intervals
        covered += found.select((pl.col("low") <= 365 * log(2) / 2) & (pl.col("high") >= 365 * log(2) / 2)).item()
    assert covered >= 7  # of ten intervals of 90 %: fewer in one run of a hundred


def test_observations_are_labels_by_date() -> None:
    facts, truth = simulated.simulate(800, seed=4)
    found = simulated.observations(facts, truth, dates=DATES)
    assert found.schema == pl.Schema(tuning.LABELS)
    assert found["accesses_days"].list.min().equals(found["age_days"].alias("accesses_days"))
    assert (found["age_days"] >= 0).all()
    first = simulated.observations(facts, truth, dates=DATES[:1])
    assert found.head(first.height).equals(first)
    assert first["fact_id"].is_unique().all()
    assert 0 < first["still_true"].sum() < first.height


def test_resolved_facts_miss_only_what_nobody_stated() -> None:
    facts, truth = simulated.simulate(1_500, seed=5)
    many = dict.fromkeys(simulated.HAZARDS, "many")
    for date in DATES:
        one, naive = (
            active(resolve(facts, as_of=date, cardinality=given)).join(truth, on="fact_id") for given in ({}, many)
        )
        # Every active value is the one that was stated last; those that are wrong ended without a word.
        last = simulated.observations(facts, truth, dates=[date])
        assert set(one.select(pl.format("{}/{}", "slot", "value")).to_series()) == set(last["fact_id"])
        assert (naive["until"] > date).mean() < last["still_true"].mean() - 0.1
