"""What must not come back: superseded, corrected and ended statements in a ranking, which recall does not see."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from memlab.errors import DataError
from memlab.records import Dataset, Run

COLUMNS = ("stale@10", "current@10", "current first")


def stale_table(runs: Sequence[Run], data: Dataset) -> pl.DataFrame:
    """Say of rankings whether must-exclude turns come back, and whether what holds stands above them.

    :param runs: rankings of turns.
    :returns: ``system``, ``n`` (questions with ``stale`` turns), and shares of these questions: ``stale@10`` (a stale
        turn is among the first ten), ``current@10`` (all evidence is) and ``current first`` (the first turn of evidence
        was retrieved and stands above every stale one).
    :raises DataError: when a run ranks sessions, or no question has such turns.

    >>> import memlab
    >>> from memlab.evaluate import stale_table
    >>> data = memlab.load("data/facts/updates.jsonl")
    >>> run = memlab.pipeline("bm25").run(memlab.Bench.of(data, encoder=None))
    >>> stale_table([run], data)["n"].item()
    60
    """
    asked = data.questions.filter(pl.col("stale").list.len() > 0)
    if asked.is_empty() or any(run.level != "turn" for run in runs):
        raise DataError(
            f"{asked.height} questions of {data.name!r} name stale turns; give rankings of turns, and questions with "
            "the key stale"
        )

    def best(run: Run, column: str) -> pl.Expr:
        """Give the ranks of a question's turns, from the best; null at the end for those that are not ranked."""
        rank = run.frame.select("query_id", "doc_id", "rank")
        pairs = asked.select("query_id", doc_id=pl.col(column).list.unique()).explode("doc_id").drop_nulls()
        places = pairs.join(rank, on=["query_id", "doc_id"], how="left").group_by("query_id").agg("rank")
        ranks = asked.select("query_id").join(places, on="query_id", how="left", maintain_order="left")["rank"]
        return pl.lit(ranks).alias(column)

    rows = []
    for run in runs:
        ranks = asked.select(best(run, "stale"), best(run, "evidence"))
        first, current = pl.col("stale").list.min(), pl.col("evidence").list.min()
        within = pl.col("evidence").list.eval(pl.element().fill_null(2**31 - 1)).list.max() <= 10
        shares = ((first <= 10).fill_null(False), within, (current < first.fill_null(2**31 - 1)).fill_null(False))
        means = [share.mean().alias(name) for name, share in zip(COLUMNS, shares, strict=True)]
        rows.append(ranks.select(pl.lit(run.name).alias("system"), pl.len().alias("n"), *means))
    return pl.concat(rows)
