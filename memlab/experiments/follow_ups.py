"""What retrieval finds for follow-up questions as asked, rewritten, and standing alone."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from memlab.conversation import rewrite
from memlab.evaluate.confidence_intervals import Unit, scopes_if_they_are_the_unit
from memlab.evaluate.significance_tests import compare_paired
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
    asked_follow_ups = follow_ups.filter(pl.col("kind") != "first")
    question_texts = asked_follow_ups["question"].to_list()
    question_histories = asked_follow_ups["history"].to_list()
    fallback_rewrites, model_rewrites = (
        rewrite(question_texts, history=question_histories, service=rewriting_service)
        for rewriting_service in (None, service)
    )
    no_method = pl.Series([None] * asked_follow_ups.height, dtype=pl.String)
    text_by_form = {
        "as asked": (asked_follow_ups["question"], no_method),
        "fallback": (fallback_rewrites["rewritten"], fallback_rewrites["method"]),
    }
    if "model" in model_rewrites["method"]:
        text_by_form["model"] = model_rewrites["rewritten"], model_rewrites["method"]
    text_by_form["standalone"] = asked_follow_ups["standalone"], no_method
    question_columns = asked_follow_ups.select("query_id", "scope", "kind", "evidence")
    form_rows = pl.concat(
        question_columns.with_columns(
            form_text.alias("question"), form_method.alias("method"), form=pl.lit(form_name)
        )
        for form_name, (form_text, form_method) in text_by_form.items()
    ).with_columns(asked=pl.format("{} {}", "form", "query_id"))
    form_run = read(pipeline).run(
        bench.with_queries(form_rows.select("scope", query_id="asked", text="question"))
    )
    found_turns = (
        form_run.top(max(k))
        .frame.sort("query_id", "rank")
        .group_by("query_id", maintain_order=True)
    )
    form_rows = form_rows.join(
        found_turns.agg(found="doc_id"),
        left_on="asked",
        right_on="query_id",
        how="left",
        maintain_order="left",
    )
    missing_by_depth = {
        n_first: pl.col("evidence").list.set_difference(
            pl.col("found").list.head(n_first).fill_null([])
        )
        for n_first in k
    }
    return pl.concat(
        form_rows.select(
            pl.lit(n_first).alias("k"),
            "query_id",
            "scope",
            "kind",
            "form",
            "question",
            "method",
            complete=missing_evidence.list.len() == 0,
        )
        for n_first, missing_evidence in missing_by_depth.items()
    )


def follow_up_forms_table(
    compared: pl.DataFrame, *, unit: Unit = "auto", seed: int = 0
) -> pl.DataFrame:
    """Sum up forms of follow-ups by kind and over all.

    :param compared: what :func:`compare_follow_up_forms` gave.
    :param unit: what is independent: ``question``, ``scope``, or ``auto``: scopes where there are
        five or more.
    :returns: ``k``, ``kind``, ``form``, and the columns of
        :func:`memlab.evaluate.significance_tests.compare_paired` for the share that is complete,
        against the form that stands alone.
    """
    key_columns = {"k": pl.Int64(), "kind": pl.String(), "form": pl.String()}
    no_tests = compare_paired(np.zeros((0, 1)), np.array([0])).clear()
    test_tables = list[pl.DataFrame]()
    for (n_first,), depth_rows in compared.group_by("k", maintain_order=True):
        all_and_kinds = pl.concat([depth_rows.with_columns(kind=pl.lit("all")), depth_rows])
        for (kind_name,), kind_rows in all_and_kinds.group_by("kind", maintain_order=True):
            values_by_question = kind_rows.pivot(
                "form", index=["query_id", "scope"], values="complete", maintain_order=True
            )
            values_by_form = values_by_question.drop("query_id", "scope").cast(pl.Float64)
            reference = np.full(values_by_form.width, values_by_form.columns.index("standalone"))
            value_scopes = scopes_if_they_are_the_unit(values_by_question["scope"], unit)
            paired_tests = compare_paired(
                values_by_form.to_numpy(), reference, scopes=value_scopes, seed=seed
            )
            test_keys = {"k": n_first, "kind": kind_name, "form": values_by_form.columns}
            test_tables.append(
                pl.DataFrame(test_keys, schema_overrides=key_columns).hstack(paired_tests)
            )
    if not test_tables:
        return pl.DataFrame(schema=key_columns).hstack(no_tests)
    return pl.concat(test_tables)
