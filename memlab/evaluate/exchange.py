"""What a selection throws out of the first k, and what it brings in instead."""

from __future__ import annotations

import numpy as np
import polars as pl

from memlab.errors import DataError
from memlab.evaluate.significance import bootstrap_interval
from memlab.records import Level, Run
from memlab.retrieve import Bench

SIDES = ("out", "in")


def exchanged(before: Run, after: Run, questions: pl.DataFrame, bench: Bench, *, k: int = 10) -> pl.DataFrame:
    """List the documents in which the first ``k`` of two rankings of the same candidates differ.

    A selection can only gain by bringing in more evidence than it throws out. Deeper ranks hold less of it, so that an
    exchange by chance already loses: ``expected`` is the share of evidence that the questions have at the rank where
    the document stood before. What the selection knows is how far it does better than that.

    :param questions: rows of :class:`memlab.records.Question` to look at; those without evidence are left out.
    :returns: a row a document: ``query_id``, ``doc_id``, ``side`` (``out`` or ``in``), ``rank`` (from 1, before; null
        where the ranking did not hold it), ``evidence``, ``expected`` (null without a rank) and ``likeness``, the
        cosine to the nearest of the documents that stay (null where none does, or without embeddings).
    :raises DataError: when the rankings differ in level, or ``k`` is not positive.

    >>> import memlab
    >>> from memlab.evaluate.exchange import exchanged
    >>> data = memlab.sample(turns=200)
    >>> bench = memlab.Bench.of(data, encoder="hashing")
    >>> plain, chosen = (memlab.pipeline(text).run(bench) for text in ("bm25", "bm25 | mmr(lambda_=0.3)"))
    >>> table = exchanged(plain, chosen, data.questions, bench, k=5)
    >>> table["side"].value_counts()["count"].n_unique()  # as many go as come
    1
    """
    if before.level != after.level:
        raise DataError(f"one run ranks {before.level}s and the other {after.level}s; compare level by level")
    if k < 1:
        raise DataError(f"k is {k}; look at the first one at least")
    column = "evidence" if before.level == "turn" else "evidence_sessions"
    asked = questions.filter(pl.col(column).list.len() > 0)
    key = ["query_id", "doc_id"]
    evidence = asked.select("query_id", doc_id=column).explode("doc_id").unique().with_columns(evidence=True)
    earlier, later = (
        run.frame.join(asked, on="query_id", how="semi", maintain_order="left").select(*key, "rank")
        for run in (before, after)
    )
    first, second = (frame.filter(pl.col("rank") <= k).select(key) for frame in (earlier, later))
    moved = pl.concat(
        frame.join(opposite, on=key, how="anti", maintain_order="left").with_columns(side=pl.lit(side))
        for side, frame, opposite in zip(SIDES, (first, second), (second, first), strict=True)
    )
    by_rank = (
        earlier.join(evidence, on=key, how="left", maintain_order="left")
        .group_by("rank")
        .agg(expected=pl.col("evidence").fill_null(False).mean())
    )
    table = (
        moved.join(earlier, on=key, how="left", maintain_order="left")
        .join(by_rank, on="rank", how="left", maintain_order="left")
        .join(evidence, on=key, how="left", maintain_order="left")
        .with_columns(pl.col("evidence").fill_null(False))
    )
    stay = first.join(second, on=key, how="semi", maintain_order="left")
    return table.with_columns(likeness=_likeness(table, stay, bench, before.level)).select(
        *key, "side", "rank", "evidence", "expected", "likeness"
    )


def exchange(table: pl.DataFrame, *, seed: int = 0) -> pl.DataFrame:
    """Sum up what :func:`exchanged` lists, for :func:`memlab.figures.selection.exchange`.

    :param seed: of the bootstrap over questions.
    :returns: a row a side: ``side``, ``n`` (documents), ``share`` of evidence with its 95 % interval ``low``, ``high``,
        ``expected`` and ``likeness`` (means); a side without documents has n = 0 and nulls.
    """
    rows = []
    for side in SIDES:
        part = table.filter(pl.col("side") == side)
        units = part.group_by("query_id", maintain_order=True).agg(pl.col("evidence").sum(), n=pl.len())
        sums, sizes = (units[column].to_numpy().astype(np.float64) for column in ("evidence", "n"))
        low, high = bootstrap_interval(sums[:, None], sizes, seed=seed)
        means = [part[column].mean() for column in ("expected", "likeness")]
        rows.append((side, part.height, part["evidence"].mean(), float(low[0]), float(high[0]), *means))
    schema = {"side": pl.String, "n": pl.Int64} | dict.fromkeys(
        ("share", "low", "high", "expected", "likeness"), pl.Float64
    )
    return pl.DataFrame(rows, schema=schema, orient="row").fill_nan(None)


def _likeness(table: pl.DataFrame, stay: pl.DataFrame, bench: Bench, level: Level) -> pl.Series:
    documents = bench.documents(level)
    if documents.embeddings is None:
        return pl.Series("likeness", [None] * table.height, dtype=pl.Float64)
    rows = table.select("query_id", "doc_id").with_row_index("row")
    pairs = rows.join(stay.select("query_id", stays="doc_id"), on="query_id")
    vectors = documents.vectors()
    left, right = (vectors[documents.at(pairs[column])] for column in ("doc_id", "stays"))
    cosine = pl.Series("likeness", np.einsum("ij,ij->i", left, right, dtype=np.float64))
    nearest = pairs.select("row", cosine).group_by("row").agg(pl.col("likeness").max())
    return rows.join(nearest, on="row", how="left", maintain_order="left")["likeness"]
