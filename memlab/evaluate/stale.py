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

    def places(run: Run, column: str) -> pl.DataFrame:
        """Give the best and the worst rank of each question's turns; what is not ranked stands behind all."""
        pairs = asked.select("query_id", doc_id=pl.col(column).list.unique()).explode("doc_id").drop_nulls()
        ranks = pairs.join(run.frame, on=["query_id", "doc_id"], how="left").group_by("query_id")
        rank = pl.col("rank").fill_null(2**31 - 1)
        found = ranks.agg(first=rank.min(), last=rank.max())
        return asked.select("query_id").join(found, on="query_id", how="left", maintain_order="left")

    rows = []
    for run in runs:
        stale, current = places(run, "stale"), places(run, "evidence")
        above = (current["first"] < stale["first"]).fill_null(False)
        shares = (stale["first"] <= 10).mean(), (current["last"] <= 10).mean(), above.mean()
        rows.append({"system": run.name, "n": asked.height} | dict(zip(COLUMNS, shares, strict=True)))
    return pl.DataFrame(rows)
