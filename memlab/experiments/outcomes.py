"""What a system's returns are worth: evidence, answers, tokens, time, and what it misses."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import polars as pl

from memlab.conversation import answer_presence
from memlab.embed import Encoder
from memlab.evaluate import misses
from memlab.memories import ReturnedTexts, attribute, dated_lines, fit_to_budget, rank_source_turns
from memlab.records import Dataset, Run
from memlab.text.analysis import tokenize

BUDGETS = (200, 500, 1_000, 2_000, 4_000)
ANSWER_BUDGET = 1_000


class SystemOutcome(NamedTuple):
    """What one system made of the questions.

    :param per_query: a row a question with evidence, as :attr:`memlab.experiments.systems.Comparison.per_query`.
    :param row: of the table.
    :param texts: what it returned, attributed.
    :param ranking: the turns in the order in which its texts bring them.
    """

    per_query: pl.DataFrame
    row: dict[str, Any]
    texts: pl.DataFrame
    ranking: Run


def measure_system(found: ReturnedTexts, times: np.ndarray, data: Dataset, encoder: Encoder | None) -> SystemOutcome:
    """Measure one system: its values by question, its row of the table, and the sources of its texts.

    :param times: of single searches, in milliseconds.
    """
    sources = attribute(found, data, encoder)
    rows = dated_lines(found).join(sources, on=["query_id", "rank"], how="left", maintain_order="left")
    values = _measure_questions(rows, data, found.name)
    means = values.select(pl.col(r"^.*@.*$").mean()).row(0, named=True)
    ways = {how: n / max(1, rows.height) for how, n in rows["how"].value_counts().iter_rows()}
    row = {
        "system": found.name,
        "n": values.height,
        **{name: means[name] for name in ("recall_any@10", "recall_all@10")},
        "recall_all@10, ≥ 2 sessions": values.filter(pl.col("n_sessions") >= 2)["recall_all@10"].mean(),
        **{name: mean for name, mean in means.items() if "tokens" in name and "any" not in name},
        "tokens returned": rows["n_tokens"].sum() / data.questions.height,
        "named": ways.get("given", 0.0),
        "attributed": sum(ways.get(how, 0.0) for how in ("span", "copy", "matched")),
        "ingest s": _total_cost(found, "ingest_seconds"),
        "until found s": _total_cost(found, "wait_seconds"),
        "p50 ms": float(np.percentile(times, 50)) if len(times) else None,
        "p95 ms": float(np.percentile(times, 95)) if len(times) else None,
        "MB": _total_cost(found, "bytes", 1e6),
        "tokens read": _total_cost(found, "tokens_read"),
        "tokens written": _total_cost(found, "tokens_written"),
        "failed scopes": len(found.failed),
        "problems": found.problems.height,
    }
    system = pl.lit(found.name).alias("system")
    texts = rows.select(system, "query_id", "rank", "text", "n_tokens", "how", "turn_ids")
    return SystemOutcome(values, row, texts, rank_source_turns(found, sources))


def _total_cost(found: ReturnedTexts, column: str, unit: float = 1) -> float | None:
    values = found.costs[column].drop_nulls()
    return float(values.sum()) / unit if len(values) else None


def _measure_questions(rows: pl.DataFrame, data: Dataset, name: str) -> pl.DataFrame:
    """Measure each question with evidence: what is among the first ten turns, and in so many tokens."""
    questions = data.questions.filter(~pl.col("abstention") & (pl.col("evidence").list.len() > 0))
    asked = questions.select(
        "query_id", "scope", pl.col("evidence").list.unique(), n_sessions=pl.col("evidence_sessions").list.n_unique()
    )
    turns = rows.explode("turn_ids").drop_nulls("turn_ids")
    turns = turns.unique(["query_id", "turn_ids"], keep="first", maintain_order=True)
    turns = turns.with_columns(place=pl.int_range(1, pl.len() + 1).over("query_id"))
    cuts = {"@10": pl.col("place") <= 10, **{f"@{budget} tokens": pl.col("after") <= budget for budget in BUDGETS}}
    measured = []
    for cut, inside in cuts.items():
        hit = inside.fill_null(False)
        measured += [hit.all().cast(pl.Float64).alias(f"recall_all{cut}")]
        measured += [hit.any().cast(pl.Float64).alias(f"recall_any{cut}")]
    evidence = asked.select("query_id", turn_ids="evidence").explode("turn_ids")
    hits = evidence.join(turns, on=["query_id", "turn_ids"], how="left").group_by("query_id").agg(measured)
    values = asked.drop("evidence").join(hits, on="query_id", how="left", maintain_order="left")
    holds = answer_presence({name: fit_to_budget(rows, asked, ANSWER_BUDGET)}, questions)["holds"].cast(pl.Float64)
    return values.select(pl.lit(name).alias("system"), pl.all(), holds.alias(f"answer@{ANSWER_BUDGET} tokens"))


def missed_evidence(done: SystemOutcome, data: Dataset) -> pl.DataFrame:
    """List the evidence that a system misses, why, and what it returned that is nearest."""

    def words(texts: pl.Series) -> pl.Series:
        return pl.Series(tokenize(texts.to_list(), language=data.language), dtype=pl.List(pl.String))

    items = misses(done.ranking, data, k=10).rename({"doc_id": "turn_id"})
    items = items.select(pl.lit(done.row["system"]).alias("system"), "query_id", "turn_id", "rank", "cause")
    turns = data.turns.filter(pl.col("turn_id").is_in(items["turn_id"].implode()))
    of_turns = turns.select("turn_id", word=words(turns["text"]))
    of_texts = done.texts.select("query_id", "rank", word=words(done.texts["text"]))
    shared = (
        items.select("query_id", "turn_id")
        .join(of_turns, on="turn_id")
        .join(of_texts, on="query_id", suffix="_of_text")
        .with_columns(n=pl.col("word").list.set_intersection("word_of_text").list.len())
        .filter(pl.col("n") > 0)
        .sort("n", "rank", descending=[True, False])
        .group_by("query_id", "turn_id", maintain_order=True)
        .agg(nearest=pl.col("rank").first())
    )
    return items.join(shared, on=["query_id", "turn_id"], how="left", maintain_order="left")
