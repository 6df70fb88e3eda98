"""How much of the evidence a set of summaries still cites, beside how much of all turns."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from memlab.evaluate.confidence_intervals import Unit, clustering_scopes, mean_intervals
from memlab.records import Dataset, qrels


def cited_shares(nodes: pl.DataFrame, dataset: Dataset, *, unit: Unit = "auto") -> pl.DataFrame:
    """Give the share of questions whose every evidence item is cited, and of turns that are.

    A summary that cites every turn keeps all evidence and condenses nothing, so the two stand beside
    each other. The turns are all there are, so their share has no interval.

    :param nodes: summaries with ``evidence``, the turns that each sentence stands on.
    :returns: two rows, ``form`` is ``questions`` and ``turns``: ``n``, ``mean`` (null where there is
        nothing), ``low``, ``high``, ``level``, ``unit`` and ``units``.

    >>> import memlab, polars as pl
    >>> from memlab.evaluate.cited_evidence import cited_shares
    >>> data = memlab.sample(turns=200)
    >>> everything = pl.DataFrame({"evidence": [[data.turns["turn_id"].to_list()]]})
    >>> cited_shares(everything, data)["mean"].to_list()
    [1.0, 1.0]
    """
    cited = nodes.select(pl.col("evidence").explode().explode().drop_nulls().unique())["evidence"]
    evidence = qrels(dataset.questions, "turn").frame.select("query_id", "doc_id")
    whole = evidence.group_by("query_id", maintain_order=True).agg(
        hit=pl.col("doc_id").is_in(cited.implode()).all()
    )
    asked = whole.join(dataset.questions, on="query_id", maintain_order="left")
    values = asked["hit"].cast(pl.Float64).to_numpy().reshape(-1, 1)
    scopes = clustering_scopes(asked["scope"], unit)
    span = mean_intervals(values, scopes=scopes, shares=np.array([True])).row(0, named=True)
    turns = dataset.turns["turn_id"].is_in(cited.implode())
    rows: list[dict[str, Any]] = [
        {"form": "questions", "n": asked.height, "mean": asked["hit"].mean(), **span},
        {"form": "turns", "n": dataset.turns.height, "mean": turns.mean()},
    ]
    return pl.DataFrame(rows).drop("method")
