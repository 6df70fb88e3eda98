"""What must not come back: superseded, corrected and ended statements in a ranking, which recall does not see."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from memlab.errors import DataError
from memlab.records import Dataset, Run


def stale(run: Run, data: Dataset, *, k: int = 10) -> pl.DataFrame:
    """Say of each question with must-exclude turns whether they come back, and whether what holds stands above them.

    :param run: a ranking of turns.
    :returns: a row a question with ``stale`` turns: ``query_id``, ``question_type``, ``stale`` (one of them is among
        the first k), ``stale_share`` (of them, how many are), ``current`` (all evidence is) and ``current_first``:
        the first turn of evidence stands above every stale one, and is there.
    :raises DataError: when the run ranks sessions, or no question has such turns.
    """
    asked = data.questions.filter(pl.col("stale").list.len() > 0)
    if run.level != "turn" or asked.is_empty():
        raise DataError(
            f"the run ranks {run.level}s, and {asked.height} questions of {data.name!r} name stale turns; give a "
            "ranking of turns, and questions with the key stale"
        )
    rank, within = run.frame.select("query_id", "doc_id", "rank"), (pl.col("rank") <= k).fill_null(False)

    def placed(column: str) -> pl.DataFrame:
        pairs = asked.select("query_id", doc_id=pl.col(column).list.unique()).explode("doc_id").drop_nulls()
        places = pairs.join(rank, on=["query_id", "doc_id"], how="left").group_by("query_id")
        return places.agg(first=pl.col("rank").min(), some=within.any(), every=within.all(), share=within.mean())

    return (
        asked.select("query_id", "question_type")
        .join(placed("stale"), on="query_id", how="left", maintain_order="left")
        .join(placed("evidence"), on="query_id", how="left", maintain_order="left", suffix="_current")
        .with_columns(before=pl.col("first_current") < pl.col("first").fill_null(2**31 - 1))
        .select(
            "query_id",
            "question_type",
            stale="some",
            stale_share="share",
            current="every_current",
            current_first=pl.col("before").fill_null(False),
        )
    )


def stale_table(runs: Sequence[Run], data: Dataset, *, k: int = 10) -> pl.DataFrame:
    """Put rankings side by side: ``system``, ``n``, ``stale@k``, ``current@k`` and ``current first``, as shares.

    >>> import memlab
    >>> from memlab.evaluate import stale_table
    >>> data = memlab.load("data/facts/updates.jsonl")
    >>> run = memlab.pipeline("bm25").run(memlab.Bench.of(data, encoder=None))
    >>> stale_table([run], data)["n"].item()
    60
    """
    shares = {f"stale@{k}": "stale", f"current@{k}": "current", "current first": "current_first"}
    means = [pl.col(column).mean().alias(name) for name, column in shares.items()]
    rows = [stale(run, data, k=k).select(pl.lit(run.name).alias("system"), pl.len().alias("n"), *means) for run in runs]
    return pl.concat(rows)
