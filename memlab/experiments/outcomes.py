"""What a system's returns are worth: evidence, answers, tokens, time, and how it compares with another."""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np
import polars as pl

from memlab.conversation import answer_presence
from memlab.embed import Encoder
from memlab.evaluate import Table, misses, paired
from memlab.memories import Returned, attribute, ranked, within, written
from memlab.pipelines import Pipeline
from memlab.records import Dataset, Run
from memlab.retrieve import Bench
from memlab.text.analysis import tokenize

BUDGETS = (200, 500, 1_000, 2_000, 4_000)
ANSWER_BUDGET = 1_000
TIMED = 20
TESTED = ("recall_all@10", "recall_all@1000 tokens", "answer@1000 tokens")


@dataclass(frozen=True, eq=False)
class Outcome:
    """What one system made of the questions.

    :param values: a row a question with evidence, as :attr:`memlab.experiments.Comparison.per_query` has them.
    :param row: of the table.
    :param texts: what it returned, attributed.
    :param ranking: the turns in the order in which its texts bring them.
    """

    values: pl.DataFrame
    row: dict[str, Any]
    texts: pl.DataFrame
    ranking: Run


def outcome(found: Returned, times: np.ndarray, data: Dataset, encoder: Encoder | None) -> Outcome:
    """Measure one system: its values by question, its row of the table, and the sources of its texts.

    :param times: of single searches, in milliseconds.
    """
    sources = attribute(found, data, encoder)
    rows = written(found).join(sources, on=["query_id", "rank"], how="left", maintain_order="left")
    values = _values(rows, data, found.name)
    means = values.select(pl.col(r"^.*@.*$").mean()).row(0, named=True)
    several = values.filter(pl.col("n_sessions") >= 2)["recall_all@10"].mean()
    ways = {how: n / max(1, rows.height) for how, n in rows["how"].value_counts().iter_rows()}
    row = {
        "system": found.name,
        "n": values.height,
        **{name: means[name] for name in ("recall_any@10", "recall_all@10")},
        "recall_all@10, ≥ 2 sessions": several,
        **{name: mean for name, mean in means.items() if "tokens" in name and "any" not in name},
        "tokens returned": rows["n_tokens"].sum() / data.questions.height,
        "named": ways.get("given", 0.0),
        "attributed": sum(ways.get(how, 0.0) for how in ("span", "copy", "matched")),
        "ingest s": found.costs["ingest_seconds"].sum() if found.costs.height else None,
        "until found s": found.costs["wait_seconds"].sum() if found.costs.height else None,
        "p50 ms": float(np.percentile(times, 50)) if len(times) else None,
        "p95 ms": float(np.percentile(times, 95)) if len(times) else None,
        "MB": _total(found, "bytes", 1e6),
        "tokens read": _total(found, "tokens_read"),
        "tokens written": _total(found, "tokens_written"),
        "failed scopes": len(found.failed),
        "problems": found.problems.height,
    }
    system = pl.lit(found.name).alias("system")
    texts = rows.select(system, "query_id", "rank", "text", "n_tokens", "how", "turn_ids")
    return Outcome(values, row, texts, ranked(found, sources))


def _values(rows: pl.DataFrame, data: Dataset, name: str) -> pl.DataFrame:
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
    for cut, within_cut in cuts.items():
        hit = within_cut.fill_null(False)
        measured += [hit.all().cast(pl.Float64).alias(f"recall_all{cut}")]
        measured += [hit.any().cast(pl.Float64).alias(f"recall_any{cut}")]
    evidence = asked.select("query_id", turn_ids="evidence").explode("turn_ids")
    hits = evidence.join(turns, on=["query_id", "turn_ids"], how="left").group_by("query_id").agg(measured)
    values = asked.drop("evidence").join(hits, on="query_id", how="left", maintain_order="left")
    holds = answer_presence({name: within(rows, asked, ANSWER_BUDGET)}, questions)["holds"].cast(pl.Float64)
    return values.select(pl.lit(name).alias("system"), pl.all(), holds.alias(f"answer@{ANSWER_BUDGET} tokens"))


def _total(found: Returned, column: str, unit: float = 1) -> float | None:
    values = found.costs[column].drop_nulls()
    return float(values.sum()) / unit if len(values) else None


def missed_by(done: Outcome, data: Dataset) -> pl.DataFrame:
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


def clock(stages: Pipeline, bench: Bench, seed: int) -> np.ndarray:
    """Time single questions, in milliseconds, each encoded anew where a stage reads its vector.

    The first warms models and indexes, and is asked twice.
    """
    rows = np.random.default_rng(seed).permutation(bench.queries.height)[:TIMED]
    spent = []
    for row in (*rows[:1], *rows):
        alone = bench.with_rows(np.array([row]), stored=False)
        started = perf_counter()
        stages.run(alone.with_queries(alone.queries))
        spent.append(1000 * (perf_counter() - started))
    return np.array(spent[1:])


def tests(per_query: pl.DataFrame, baseline: str, seed: int) -> Table:
    """Compare every system with one, on each of :data:`TESTED`; Holm's correction within a measure."""
    parts = []
    for measure in (each for each in TESTED if each in per_query.columns):
        wide = per_query.pivot("system", index="query_id", values=measure, maintain_order=True).drop_nulls()
        names = wide.columns[1:]
        if wide.height and len(names) > 1:
            table = paired(wide.drop("query_id").to_numpy(), np.full(len(names), names.index(baseline)), seed=seed)
            about = pl.DataFrame({"measure": measure, "system": names, "n": wide.height})
            parts.append(about.hstack(table).filter(pl.col("system") != baseline))
    return Table(pl.concat(parts) if parts else pl.DataFrame())
