"""How well resolved facts agree with a known truth."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import polars as pl

from memlab.knowledge.simulated import true_pairs
from memlab.knowledge.supersession import Resolved, believed


def claimed_pairs(resolved: Resolved, truth: pl.DataFrame) -> pl.DataFrame:
    """Write the log in the truth's terms: ``old`` and ``new`` states, with the trap of the old one's slot."""
    ends = pl.when(pl.col("role") == "end").then(pl.col("state") + "/end").otherwise("state")
    old = truth.select("trap", "one", old="fact_id", old_state="state")
    new = truth.select(new="fact_id", new_state=ends)
    log = resolved.log.join(old, on="old", how="left").join(new, on="new", how="left")
    return log.select("trap", "one", "rule", old="old_state", new="new_state", old_id="old", new_id="new")


def supersession(
    resolved: Resolved, facts: pl.DataFrame, truth: pl.DataFrame, *, by: str | None = None
) -> pl.DataFrame:
    """Measure precision (share of logged closings that are true) and recall (share of true ones that are logged).

    :param by: ``trap`` for a row each, ``None`` for one row.
    """
    claimed, true = claimed_pairs(resolved, truth), true_pairs(facts, truth)
    claimed = claimed.join(true.select("old", "new", hit=True), on=["old", "new"], how="left")
    true = true.join(claimed.select("old", "new", found=True).unique(), on=["old", "new"], how="left")
    group = pl.lit("all").alias("group") if by is None else pl.col(by).alias("group")
    left = claimed.group_by(group).agg(claimed=pl.len(), right=pl.col("hit").sum())
    right = true.group_by(group).agg(true=pl.len(), found=pl.col("found").sum())
    return (
        right.join(left, on="group", how="full", coalesce=True)
        .with_columns(precision=pl.col("right") / pl.col("claimed"), recall=pl.col("found") / pl.col("true"))
        .sort("group")
    )


def told(facts: pl.DataFrame, truth: pl.DataFrame, date: datetime) -> pl.DataFrame:
    """Give the truth of what had been said and had reached the memory by a date, with ``predicate`` and times."""
    columns = facts.select("fact_id", "predicate", "asserted_at", "recorded_at")
    rows = truth.join(columns, on="fact_id", maintain_order="left")
    return rows.filter(pl.col("recorded_at") <= date, pl.col("asserted_at") <= date)


def holding(facts: pl.DataFrame, truth: pl.DataFrame, as_of: datetime) -> pl.DataFrame:
    """List what a reader who understands everything believes on a date: ``slot`` and ``value``.

    With one value, the latest statement counts; with many, each value's latest; a value said wrongly only until it is
    corrected.
    """
    rows = told(facts, truth, as_of).sort("asserted_at")
    rows = rows.filter(~pl.col("fact_id").is_in(rows["fixes"].drop_nulls().to_list()))
    last_of = pl.when("one").then(pl.lit("")).otherwise("value")
    last = rows.group_by("slot", last_of.alias("part")).last()
    return last.filter(pl.col("role") != "end").select("slot", "value")


def status(resolved: Sequence[tuple[datetime, Resolved]], facts: pl.DataFrame, truth: pl.DataFrame) -> pl.DataFrame:
    """Measure precision and recall of what is believed on each date.

    :param resolved: dates, and the facts resolved ``as_of`` each.
    """
    rows = []
    for date, result in resolved:
        true = holding(facts, truth, date)
        claimed = believed(result, as_of=date).select("fact_id").join(truth, on="fact_id").select("slot", "value")
        hits = claimed.unique().join(true, on=["slot", "value"], how="semi").height
        rows.append((date, true.height, claimed.height, hits / max(claimed.height, 1), hits / max(true.height, 1)))
    return pl.DataFrame(rows, schema=["date", "true", "believed", "precision", "recall"], orient="row")
