"""What retrieval finds for follow-up questions as they are asked, rewritten, and in the form that stands alone."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
import polars as pl

from memlab.conversation import rewrite
from memlab.evaluate import bootstrap_interval, randomisation_test
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
    texts: dict[str, Any] = {"as asked": (rows["question"], None), "standalone": (rows["standalone"], None)}
    for form, by in (("fallback", None), ("model", service)):
        made = rewrite(asked, history=history, service=by)
        if form == "fallback" or "model" in made["method"]:
            texts[form] = made["rewritten"], made["method"]
    parts = [
        rows.select("query_id", "scope", "kind", "evidence").with_columns(
            form=pl.lit(form),
            question=texts[form][0],
            method=pl.lit(None, pl.String) if texts[form][1] is None else texts[form][1],
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
    :returns: ``k``, ``kind``, ``form``, ``n``, ``mean`` (share complete) with its bootstrap interval ``low`` and
        ``high``, and of all kinds the ``p`` of a paired randomisation test against the form that stands alone.
    """
    out = []
    kinds = ("all", *compared["kind"].unique(maintain_order=True))
    for k, kind in product(compared["k"].unique(maintain_order=True), kinds):
        rows = compared.filter(pl.lit(kind == "all") | (pl.col("kind") == kind), k=k)
        forms = {form: part["complete"].cast(pl.Float64).to_numpy() for (form,), part in rows.group_by("form")}
        for form in (form for form in FORMS if form in forms):
            values = forms[form]
            low, high = bootstrap_interval(values[:, None], np.ones(len(values)), seed=seed)
            paired = kind == "all" and form != "standalone"
            p = randomisation_test(values - forms["standalone"], seed=seed) if paired else None
            out.append((k, kind, form, len(values), values.mean(), low[0], high[0], p))
    names = ("k", "kind", "form", "n", "mean", "low", "high", "p")
    return pl.DataFrame(out, schema=names, orient="row")
