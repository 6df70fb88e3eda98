"""What retrieval finds for follow-up questions as asked, rewritten, and standing alone."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from memlab.conversation import rewrite
from memlab.evaluate.confidence_intervals import Unit, clustering_scopes
from memlab.evaluate.significance import compare_paired
from memlab.llm import RECORDED, Service
from memlab.pipelines import pipeline as read
from memlab.retrieve import DEFAULT, Bench


def compare_follow_up_forms(
    follow_ups: pl.DataFrame,
    bench: Bench,
    *,
    pipeline: str = DEFAULT,
    service: str | Service | None = RECORDED,
    k: Sequence[int] = (10,),
) -> pl.DataFrame:
    """Search for each form of each follow-up, in one batch.

    :param follow_ups: what :func:`memlab.conversation.read_follow_ups` gave; first questions are
        left out.
    :param bench: of the conversations that are asked about.
    :param service: what rewrites, see :func:`memlab.llm.ask`; where it has no answer for any
        question, or is ``None``, there is no form ``model``.
    :param k: depths, all of the same ranking.
    :returns: a row a depth, question and form: ``k``, ``query_id``, ``scope``, ``kind``, ``form``
        (``as asked``, ``fallback``, ``model`` or ``standalone``), ``question`` (the text searched
        for), ``method`` (see :func:`memlab.conversation.rewrite`) and ``complete`` (whether all
        evidence is in the first k).
    """
    rows = follow_ups.filter(pl.col("kind") != "first")
    asked, history = rows["question"].to_list(), rows["history"].to_list()
    fallback, model = (rewrite(asked, history=history, service=by) for by in (None, service))
    nothing = pl.Series([None] * rows.height, dtype=pl.String)
    texts = {
        "as asked": (rows["question"], nothing),
        "fallback": (fallback["rewritten"], fallback["method"]),
    }
    if "model" in model["method"]:
        texts["model"] = model["rewritten"], model["method"]
    texts["standalone"] = rows["standalone"], nothing
    about = rows.select("query_id", "scope", "kind", "evidence")
    each = pl.concat(
        about.with_columns(text.alias("question"), method.alias("method"), form=pl.lit(form))
        for form, (text, method) in texts.items()
    ).with_columns(asked=pl.format("{} {}", "form", "query_id"))
    run = read(pipeline).run(
        bench.with_queries(each.select("scope", query_id="asked", text="question"))
    )
    found = run.top(max(k)).frame.sort("query_id", "rank").group_by("query_id", maintain_order=True)
    each = each.join(
        found.agg(found="doc_id"),
        left_on="asked",
        right_on="query_id",
        how="left",
        maintain_order="left",
    )
    lacking = {
        n: pl.col("evidence").list.set_difference(pl.col("found").list.head(n).fill_null([]))
        for n in k
    }
    return pl.concat(
        each.select(
            pl.lit(n).alias("k"),
            "query_id",
            "scope",
            "kind",
            "form",
            "question",
            "method",
            complete=of.list.len() == 0,
        )
        for n, of in lacking.items()
    )


def follow_up_forms_table(
    compared: pl.DataFrame, *, unit: Unit = "auto", seed: int = 0
) -> pl.DataFrame:
    """Sum up forms of follow-ups by kind and over all.

    :param compared: what :func:`compare_follow_up_forms` gave.
    :param unit: what is independent: ``question``, ``scope``, or ``auto``: scopes where there are
        five or more.
    :returns: ``k``, ``kind``, ``form``, and the columns of
        :func:`memlab.evaluate.significance.compare_paired` for the share that is complete, against
        the form that stands alone.
    """
    columns = {"k": pl.Int64(), "kind": pl.String(), "form": pl.String()}
    nothing = compare_paired(np.zeros((0, 1)), np.array([0])).clear()
    parts = list[pl.DataFrame]()
    for (k,), deep in compared.group_by("k", maintain_order=True):
        whole = pl.concat([deep.with_columns(kind=pl.lit("all")), deep])
        for (kind,), rows in whole.group_by("kind", maintain_order=True):
            paired = rows.pivot(
                "form", index=["query_id", "scope"], values="complete", maintain_order=True
            )
            wide = paired.drop("query_id", "scope").cast(pl.Float64)
            reference = np.full(wide.width, wide.columns.index("standalone"))
            scopes = clustering_scopes(paired["scope"], unit)
            tested = compare_paired(wide.to_numpy(), reference, scopes=scopes, seed=seed)
            about = {"k": k, "kind": kind, "form": wide.columns}
            parts.append(pl.DataFrame(about, schema_overrides=columns).hstack(tested))
    if not parts:
        return pl.DataFrame(schema=columns).hstack(nothing)
    return pl.concat(parts)
