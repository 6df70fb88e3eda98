"""Answers from what systems return: given and judged by services, or measured without one, with what they cost."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from memlab.context import answer, by_rules, holding, judge
from memlab.context.by_model import PROMPTS_VERSION, prompts, rubrics
from memlab.context.rules import RULES, contains
from memlab.errors import DataError
from memlab.evaluate import abstention
from memlab.evaluate.printing import titled
from memlab.evaluate.publish import write_files
from memlab.experiments.contexts import SystemContexts, system_contexts
from memlab.knowledge.calibration import wilson
from memlab.llm import Service, client, configured
from memlab.records import Dataset

SCHEMA_VERSION = 1
_FAILURES = ("content", "timeout", "service")


@dataclass(frozen=True, eq=False)
class Answers:
    """What systems' contexts are worth as answers.

    :param table: a row a system: shares of right answers by the judge (with ``low`` and ``high``, Wilson 95 %) and by
        the rules of :mod:`memlab.context.rules`; without a service, of contexts that hold the answer.
    :param kinds: the same by the rubric of the questions.
    :param costs: a row a system and task (answer, judge): failures by kind, tokens, price, p50 and p95.
    :param abstaining: how well each system's scores tell which questions to leave, because the conversations do not
        answer them, or the system did not; see :func:`memlab.evaluate.abstention`. Empty where nothing can be learned.
    :param per_query: a row for each system and question.
    :param curves: risk and coverage by system, kind of error and signal.
    :param about: what the contexts say, with services and prompts.
    """

    table: pl.DataFrame
    kinds: pl.DataFrame
    costs: pl.DataFrame
    abstaining: pl.DataFrame
    per_query: pl.DataFrame
    curves: pl.DataFrame
    about: Mapping[str, Any]

    def __str__(self) -> str:
        served = self.about["service"] is not None
        share = "correct" if served else "values"
        kinds = self.kinds.pivot("system", index="kind", values=share, maintain_order=True)
        tables = {
            "Answers" if served else "Contexts that hold the answer": self.table,
            f"By kind of question ({share})": kinds,
            "Cost": self.costs,
            "Which questions to leave, by the scores alone": self.abstaining,
        }
        # Of no system is any number best for being the largest.
        shown = {name: each for name, each in tables.items() if each.height}
        return titled({name: each.rename({"system": "contexts of"}, strict=False) for name, each in shown.items()})

    def _repr_html_(self) -> str:
        return self.table._repr_html_() + self.kinds._repr_html_()

    def write(self, folder: str | Path) -> Path:
        """Write ``answers.json`` (schema in ``docs/contexts.md``), ``answers.md`` and ``answers.parquet``."""
        frames = {"systems": self.table, "kinds": self.kinds, "costs": self.costs, "abstaining": self.abstaining}
        content = {"schema_version": SCHEMA_VERSION, "about": dict(self.about)}
        content |= {name: each.to_dicts() for name, each in frames.items()}
        used = "\n\n".join(f"`{name}`: {text}" for name, text in self.about["prompts"].items() if text)
        report = f"{self}\n\n**Prompts, version {self.about['prompts_version']}**\n\n{used}\n"
        files: dict[str, str | pl.DataFrame] = {
            "answers.json": json.dumps(content, indent=1, default=str, ensure_ascii=False),
            "answers.md": report if self.about["service"] else f"{self}\n",
            "answers.parquet": self.per_query,
        }
        write_files(folder, files)
        return Path(folder)


def answer_questions(
    systems: Any,
    data: Dataset,
    *,
    service: Service | str | None = None,
    judge_by: Service | str | None = None,
    seed: int = 0,
    **options: Any,
) -> Answers:
    """Have questions answered from what systems return, and the answers judged.

    Without a service, the contexts are measured: whether they hold the answer. With its cache (``Service.cache``), what
    is answered and judged once is not asked again, so that a run that stopped goes on. An answer that never fitted the
    schema counts as wrong; one that did not come (``timeout``, ``service``) is not judged, and counted in ``costs``.

    :param systems: as :func:`system_contexts` takes them, and its ``options``.
    :param service: answers; a name is one of the settings.
    :param judge_by: judges, by default the service that answers; see :func:`memlab.context.judge`.

    >>> import memlab
    >>> data = memlab.sample(turns=400)
    >>> done = memlab.answer_questions("bm25", data, encoder=None)
    >>> done.table["system"].to_list()
    ['bm25', 'evidence', 'whole history', 'nothing', "another's"]
    """
    if service is None and judge_by is not None:
        raise DataError("there is a judge, and no service whose answers it judges; name a service too")
    answerer = configured(service) if isinstance(service, str) else service
    judging = (configured(judge_by) if isinstance(judge_by, str) else judge_by) or answerer
    for each in filter(None, (answerer, judging)):
        client(each)  # what it lacks is said before contexts are made
    made = system_contexts(systems, data, seed=seed, **options)
    if answerer is not None and judging is not None:
        parts = [_answered(name, texts, made.questions, answerer, judging) for name, texts in made.texts.items()]
    else:
        parts = [_measured(name, texts, made.questions) for name, texts in made.texts.items()]
    rows = pl.concat(parts)
    abstaining, curves = _abstaining(made, rows, seed)
    about = {
        **made.about,
        "seed": seed,
        "service": None if answerer is None else _described(answerer),
        "judge": None if judging is None else _described(judging),
        "prompts_version": PROMPTS_VERSION,
        "prompts": prompts(),
        "problems": made.problems.to_dicts(),
    }
    return Answers(_table(rows), _table(rows, "kind"), _costs(rows), abstaining, rows, curves, about)


def _described(service: Service) -> dict[str, Any]:
    """Say what a service is, without its address."""
    return {name: getattr(service, name) for name in ("name", "model", "max_input", "max_output")}


def _about(name: str, texts: pl.DataFrame, questions: pl.DataFrame) -> pl.DataFrame:
    asked = questions.select(pl.lit(name).alias("system"), "query_id", rubrics(questions).alias("kind"))
    return asked.join(texts.select("query_id", context_tokens="n_tokens"), on="query_id", maintain_order="left")


def _measured(name: str, texts: pl.DataFrame, questions: pl.DataFrame) -> pl.DataFrame:
    """Measure contexts without a model: whether they contain the answer, as text and as values."""
    rows = _about(name, texts, questions)
    pairs = questions.select("query_id", "abstention", "answer").join(texts, on="query_id", maintain_order="left")
    inside = [
        None if none or gold is None else contains(text, gold)
        for text, gold, none in pairs.select("text", "answer", "abstention").iter_rows()
    ]
    held = holding({name: texts}, questions)["holds"].alias("values")
    rows = rows.with_columns(pl.Series("contains", inside, dtype=pl.Boolean), held)
    # What suits a person is described, and stands in no message.
    told = pl.col("values").is_not_null() & (pl.col("kind") != "preference")
    return rows.with_columns(pl.when(told).then(rule).alias(rule) for rule in ("contains", "values"))


def _answered(
    name: str, texts: pl.DataFrame, questions: pl.DataFrame, service: Service, judge_by: Service
) -> pl.DataFrame:
    """Have one system's contexts answered and judged: a row a question."""
    said = answer(texts, questions, service)
    verdicts = judge(questions, said, judge_by)
    cost = ["failure", "failure_kind", "seconds", "prompt_tokens", "output_tokens", "price"]
    rows = _about(name, texts, questions).join(said, on="query_id", maintain_order="left")
    judged = verdicts.select("query_id", "rubric", "correct", "score", "reason", *(pl.col(cost).name.prefix("judge_"),))
    rows = rows.join(judged, on="query_id", maintain_order="left").with_columns(kind="rubric").drop("rubric")
    rows = rows.join(by_rules(questions, said), on="query_id", maintain_order="left")
    bad = pl.col("failure_kind") == "content"
    worthless = [pl.when(bad).then(False).otherwise(each).alias(each) for each in ("correct", *RULES)]
    return rows.with_columns(*worthless, score=pl.when(bad).then(0.0).otherwise("score"))


def _table(rows: pl.DataFrame, *by: str) -> pl.DataFrame:
    """Give shares by system, and by what else is named."""
    served = "correct" in rows.columns
    # Yes or no, and what is told in one's own words, cannot be looked for; nor what is not there.
    n = pl.len() if served else pl.col("values").count()
    tokens = [] if by else [pl.col("context_tokens").mean().alias("context tokens")]
    counts = {"hits": pl.col("correct").sum(), "judged": pl.col("correct").count()} if served else {}
    shares = ["correct", "score", *RULES] if served else ["contains", "values"]
    table = rows.group_by("system", *by, maintain_order=True).agg(
        n.alias("n"), pl.col(shares).mean(), *tokens, **counts
    )
    if not served:
        return table
    ends = wilson(table["hits"].to_numpy(), np.maximum(table["judged"].to_numpy(), 1), confidence=0.95)
    for place, (name, end) in enumerate(zip(("low", "high"), ends, strict=True), table.columns.index("score")):
        table.insert_column(place, pl.when(pl.col("judged") > 0).then(pl.Series(name, end)).alias(name))
    same = table["score"].equals(table["correct"])
    return table.drop("hits", "score") if same else table.drop("hits")


def _costs(rows: pl.DataFrame) -> pl.DataFrame:
    if "failure_kind" not in rows.columns:
        return pl.DataFrame()
    parts = []
    for task, prefix in (("answer", ""), ("judge", "judge_")):
        kind, ms = pl.col(f"{prefix}failure_kind"), 1000 * pl.col(f"{prefix}seconds")
        asked = rows.filter(kind.is_not_null())
        part = asked.group_by("system", maintain_order=True).agg(
            pl.lit(task).alias("task"),
            pl.len().alias("asked"),
            *((kind == each).sum().alias(f"failed: {each}") for each in _FAILURES),
            pl.col(f"{prefix}prompt_tokens").sum().alias("tokens in"),
            pl.col(f"{prefix}output_tokens").sum().alias("tokens out"),
            price=pl.when(pl.col(f"{prefix}price").count() > 0).then(pl.col(f"{prefix}price").sum()),
            p50=ms.quantile(0.5, "linear").round().cast(pl.Int64),
            p95=ms.quantile(0.95, "linear").round().cast(pl.Int64),
        )
        parts.append(part.rename({"p50": "p50 ms", "p95": "p95 ms"}))
    return pl.concat(parts)


def _abstaining(made: SystemContexts, rows: pl.DataFrame, seed: int) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Say of each system that scores how well its scores tell what cannot be answered, and what it got wrong."""
    unanswerable = made.questions.select("query_id", error="abstention")
    served = "correct" in rows.columns
    wrong = ~pl.col("correct") if served else pl.col("error") | ~pl.col("values")
    tables, curves = [], []
    for (name,), scored in made.scores.group_by("system", maintain_order=True):
        own = rows.filter(pl.col("system") == name).join(unanswerable, on="query_id", maintain_order="left")
        failed = "answered wrongly" if served else "answer not in the context"
        for title, errors in (("unanswerable", unanswerable), (failed, own.select("query_id", error=wrong))):
            try:
                done = abstention(scored, made.questions, errors=errors, seed=seed)
            except DataError:  # nothing to learn from: no scores, one scope, or no question of the kind
                continue
            named = pl.lit(name).alias("system"), pl.lit(title).alias("errors are")
            tables.append(done.table.select(*named, pl.all()))
            curves.append(done.curves.select(*named, pl.all()))
    return (pl.concat(tables), pl.concat(curves)) if tables else (pl.DataFrame(), pl.DataFrame())
