"""Answers from what systems return: given and judged by services, or measured without one, with what they cost."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from memlab import llm
from memlab.conversation import answer, answer_presence, judge
from memlab.conversation.answering import PROMPTS, VERSION, rubrics
from memlab.errors import DataError
from memlab.evaluate import Table, titled, wilson, write_files
from memlab.experiments.contexts import system_contexts
from memlab.llm import Service
from memlab.records import Dataset

SCHEMA_VERSION = 3


@dataclass(frozen=True, eq=False)
class Answers:
    """What systems' contexts are worth as answers.

    :param table: a row a system: shares of right answers by the judge (with ``low`` and ``high``, Wilson 95 %);
        without a service, of contexts that hold the answer.
    :param kinds: the same by the rubric of the questions.
    :param costs: a row a system and task (answer, judge): requests without an answer, tokens, price, and p50 and p95
        of what was sent (null where all answers are recorded).
    :param per_query: a row for each system and question.
    :param about: what the contexts say, with services and prompts.
    """

    table: pl.DataFrame
    kinds: pl.DataFrame
    costs: pl.DataFrame
    per_query: pl.DataFrame
    about: Mapping[str, Any]

    def __str__(self) -> str:
        served = self.about["service"] is not None
        share = "correct" if served else "holds"
        kinds = self.kinds.pivot("system", index="kind", values=share, maintain_order=True)
        tables = {
            "Answers" if served else "Contexts that hold the answer": self.table,
            f"By kind of question ({share})": kinds,
            "Cost": self.costs,
        }
        # Of no system is any number best for being the largest.
        shown = {name: each for name, each in tables.items() if each.height}
        return titled({name: each.rename({"system": "contexts of"}, strict=False) for name, each in shown.items()})

    def _repr_html_(self) -> str:
        return Table(self.table)._repr_html_() + Table(self.kinds)._repr_html_()

    def export(self, folder: str | Path) -> Path:
        """Write ``answers.json`` (schema in ``docs/conversation.md``), ``answers.md`` and ``answers.parquet``."""
        frames = {"systems": self.table, "kinds": self.kinds, "costs": self.costs}
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
    **options: Any,
) -> Answers:
    """Answer questions from what systems return, and judge the answers.

    Without a service, the contexts are measured: whether they hold the answer. With a recording (``Service.record``),
    what is answered and judged once is not asked again, so that a run that stopped goes on. An answer that does not
    fit the schema counts as wrong; one that did not come is not judged, and counted in ``costs``.

    :param systems: as :func:`system_contexts` takes them, and its ``options``.
    :param service: answers; see :func:`memlab.llm.ask`.
    :param judge_by: judges, by default the service that answers; see :func:`memlab.conversation.judge`.

    >>> import memlab
    >>> data = memlab.sample(turns=400)
    >>> done = memlab.answer_questions("bm25", data, encoder=None)
    >>> done.table["system"].to_list()
    ['bm25', 'evidence', 'whole history', 'nothing', "another's"]
    """
    if service is None and judge_by is not None:
        raise DataError("there is a judge, and no service whose answers it judges; name a service too")
    judging = judge_by or service
    for each in (service, judging):
        llm.check(each)  # what it lacks is said before contexts are made
    made = system_contexts(systems, data, **options)
    if service is not None and judging is not None:
        parts = [_answered(name, texts, made.questions, service, judging) for name, texts in made.texts.items()]
    else:
        parts = [_measured(name, texts, made.questions) for name, texts in made.texts.items()]
    rows = pl.concat(parts)
    about = {
        **made.about,
        "service": _described(service),
        "judge": _described(judging),
        "prompts_version": VERSION,
        "prompts": PROMPTS,
        "problems": made.problems.to_dicts(),
    }
    costs = _costs(rows, {"answer": service, "judge": judging})
    return Answers(_table(rows), _table(rows, "kind"), costs, rows, about)


def _described(service: Service | str | None) -> Any:
    """Say what a service is, without its address."""
    if service is None or service == llm.RECORDED:
        return service
    service = llm.configured(service) if isinstance(service, str) else service
    return {name: getattr(service, name) for name in ("name", "model", "max_input", "max_output")}


def _about(name: str, texts: pl.DataFrame, questions: pl.DataFrame) -> pl.DataFrame:
    asked = questions.select(pl.lit(name).alias("system"), "query_id", rubrics(questions).alias("kind"))
    return asked.join(texts.select("query_id", context_tokens="n_tokens"), on="query_id", maintain_order="left")


def _measured(name: str, texts: pl.DataFrame, questions: pl.DataFrame) -> pl.DataFrame:
    """Measure contexts without a model: whether they hold the answer."""
    held = answer_presence({name: texts}, questions)["holds"]
    # What suits a person is described, and stands in no message.
    stated = pl.when(pl.col("kind") != "preference").then(held)
    return _about(name, texts, questions).with_columns(holds=stated)


def _answered(
    name: str, texts: pl.DataFrame, questions: pl.DataFrame, service: Service | str, judge_by: Service | str
) -> pl.DataFrame:
    """Have one system's contexts answered and judged: a row a question."""
    given = answer(texts, questions, service)
    verdicts = judge(questions, given, judge_by).rename({"rubric": "kind"})
    cost = ["error", "seconds", "tokens_read", "tokens_written"]
    rows = _about(name, texts, questions).drop("kind").join(given, on="query_id", maintain_order="left")
    judged = verdicts.select("query_id", "kind", "correct", "score", "reason", *(pl.col(cost).name.prefix("judge_"),))
    rows = rows.join(judged, on="query_id", maintain_order="left")
    named = llm.configured(service) if isinstance(service, str) and service != llm.RECORDED else service
    # An answer that came and is of no use; the others did not come, whatever the server said instead.
    misfit = pl.col("error").str.starts_with(f"{named}: {llm.MISFIT}")
    return rows.with_columns(
        correct=pl.when(misfit).then(False).otherwise("correct"), score=pl.when(misfit).then(0.0).otherwise("score")
    )


def _table(rows: pl.DataFrame, *by: str) -> pl.DataFrame:
    """Give shares by system, and by what else is named."""
    served = "correct" in rows.columns
    # Yes or no, and what is told in one's own words, cannot be looked for; nor what is not there.
    n = pl.len() if served else pl.col("holds").count()
    tokens = [] if by else [pl.col("context_tokens").mean().alias("context tokens")]
    counts = {"hits": pl.col("correct").sum(), "judged": pl.col("correct").count()} if served else {}
    shares = ["correct", "score"] if served else ["holds"]
    table = rows.group_by("system", *by, maintain_order=True).agg(
        n.alias("n"), pl.col(shares).mean(), *tokens, **counts
    )
    if not served:
        return table
    ends = wilson(table["hits"].to_numpy(), np.maximum(table["judged"].to_numpy(), 1))
    for place, (name, end) in enumerate(zip(("low", "high"), ends, strict=True), table.columns.index("score")):
        table.insert_column(place, pl.when(pl.col("judged") > 0).then(pl.Series(name, end)).alias(name))
    same = table["score"].equals(table["correct"])
    return table.drop("hits", "score") if same else table.drop("hits")


def _costs(rows: pl.DataFrame, services: Mapping[str, Service | str | None]) -> pl.DataFrame:
    if "error" not in rows.columns:
        return pl.DataFrame()
    parts = []
    for task, prefix in (("answer", ""), ("judge", "judge_")):
        asked = rows.filter(pl.col(f"{prefix}error").is_not_null())
        for (system,), own in asked.group_by("system", maintain_order=True):
            tokens = zip(own[f"{prefix}tokens_read"], own[f"{prefix}tokens_written"], strict=True)
            total = llm.cost([llm.Answer(None, tokens=pair) for pair in tokens], services[task])
            seconds = own[f"{prefix}seconds"]
            ms = 1000 * seconds.filter(seconds > 0)  # 0 for what was recorded or never sent
            parts.append(
                {
                    "system": system,
                    "task": task,
                    "asked": own.height,
                    "failed": own.filter(pl.col(f"{prefix}error") != "").height,
                    "tokens in": total["tokens_read"],
                    "tokens out": total["tokens_written"],
                    "price": total["price"],
                    "p50 ms": ms.quantile(0.5, "linear"),
                    "p95 ms": ms.quantile(0.95, "linear"),
                }
            )
    times = {"p50 ms": pl.Float64, "p95 ms": pl.Float64}
    return pl.DataFrame(parts, schema_overrides=times, infer_schema_length=None)
