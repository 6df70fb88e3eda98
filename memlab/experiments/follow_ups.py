"""What retrieval finds for follow-up questions as they are asked, rewritten, and in the form that stands alone."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np
import polars as pl

from memlab.conversation import rewrite
from memlab.evaluate import bootstrap_interval, paired
from memlab.llm import RECORDED, Service
from memlab.pipelines import pipeline as read
from memlab.retrieve import DEFAULT, Bench

FORMS = ("as asked", "fallback", "model", "standalone")


def compare_forms(
    follow_ups: pl.DataFrame,
    bench: Bench,
    *,
    pipeline: str = DEFAULT,
    service: str | Service | None = RECORDED,
    k: int | Sequence[int] = 10,
) -> pl.DataFrame:
    """Search for each form of each follow-up, in one batch.

    :param follow_ups: what :func:`memlab.conversation.follow_ups` gave; first questions are left out.
    :param bench: of the conversations that are asked about.
    :param service: what rewrites, see :func:`memlab.llm.ask`; where it has no answer for any question, or is ``None``,
        there is no form ``model``.
    :param k: a depth, or several; all are of the same ranking.
    :returns: a row a depth, question and form: ``k``, ``query_id``, ``kind``, ``form``, ``question`` (the text searched
        for), ``method`` (see :func:`memlab.conversation.rewrite`) and ``complete`` (whether all evidence is in the
        first k).
    """
    rows = follow_ups.filter(pl.col("kind") != "first")
    asked, history = rows["question"].to_list(), rows["history"].to_list()
    nothing = pl.Series([None] * rows.height, dtype=pl.String)
    texts = {"as asked": (rows["question"], nothing), "standalone": (rows["standalone"], nothing)}
    for form, by in (("fallback", None), ("model", service)):
        made = rewrite(asked, history=history, service=by)
        if form == "fallback" or "model" in made["method"]:
            texts[form] = made["rewritten"], made["method"]
    parts = [
        rows.select("query_id", "scope", "kind", "evidence").with_columns(
            texts[form][0].alias("question"), texts[form][1].alias("method"), form=pl.lit(form)
        )
        for form in FORMS
        if form in texts
    ]
    each = pl.concat(parts).with_columns(asked=pl.format("{} {}", "form", "query_id"))
    queries = each.select("scope", query_id="asked", text="question")
    run = read(pipeline).run(bench.with_queries(queries))
    depths = [k] if isinstance(k, int) else [*k]
    found = run.top(max(depths)).frame.sort("query_id", "rank").group_by("query_id", maintain_order=True)
    each = each.join(found.agg(found="doc_id"), left_on="asked", right_on="query_id", how="left", maintain_order="left")
    lacking = [pl.col("evidence").list.set_difference(pl.col("found").list.head(n).fill_null([])) for n in depths]
    return pl.concat(
        each.select(pl.lit(n).alias("k"), "query_id", "kind", "form", "question", "method", complete=of.list.len() == 0)
        for n, of in zip(depths, lacking, strict=True)
    )


def forms_table(compared: pl.DataFrame, *, seed: int = 0) -> pl.DataFrame:
    """Sum up forms of follow-ups by kind and over all.

    :param compared: what :func:`compare_forms` gave.
    :returns: ``k``, ``kind``, ``form``, ``n``, ``mean`` (share complete) with its bootstrap interval ``mean_low`` and
        ``mean_high``, and the columns of :func:`memlab.evaluate.paired` against the form that stands alone.
    """
    parts = []
    kinds = ("all", *compared["kind"].unique(maintain_order=True))
    for k, kind in product(compared["k"].unique(maintain_order=True), kinds):
        rows = compared.filter(pl.lit(kind == "all") | (pl.col("kind") == kind), k=k)
        wide = rows.pivot("form", index="query_id", values="complete", maintain_order=True).drop("query_id")
        wide = wide.cast(pl.Float64)
        low, high = bootstrap_interval(wide.to_numpy(), seed=seed)
        means = {"mean": wide.mean().row(0), "mean_low": low, "mean_high": high}
        about = pl.DataFrame({"k": k, "kind": kind, "form": wide.columns, "n": wide.height, **means}).fill_nan(None)
        reference = np.full(wide.width, wide.columns.index("standalone"))
        parts.append(about.hstack(paired(wide.to_numpy(), reference, seed=seed)))
    return pl.concat(parts)
