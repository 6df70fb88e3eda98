"""Answers from what systems return: by services, or measured without one, with their price."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
import polars.selectors as cs

from memlab import llm
from memlab.conversation import answer, answer_presence, judge
from memlab.conversation.answers_and_judge import PROMPTS, VERSION, read_orders, rubrics
from memlab.errors import DataError
from memlab.evaluate import kendall_tau
from memlab.evaluate.confidence_intervals import Unit, clustering_scopes, mean_intervals
from memlab.evaluate.report_files import write_files
from memlab.evaluate.tables import tables_to_markdown
from memlab.experiments.context_bounds import system_contexts
from memlab.experiments.costs import token_cost
from memlab.experiments.run_pipelines import distinct_datasets
from memlab.llm import Service
from memlab.records import Dataset
from memlab.records.dataset import describe_sources, source_expr
from memlab.source_labels import COLUMN

SCHEMA_VERSION = 3


@dataclass(frozen=True, eq=False)
class Answers:
    """What systems' contexts are worth as answers.

    :param table: a row a system: shares of right answers by the judge, without a service of
        contexts that hold the answer, with ``low``, ``high``, ``level``, ``unit`` and ``units``;
        and the mean Kendall's tau of orders of events.
    :param kinds: the same by the rubric of the questions.
    :param costs: a row a system and task (answer, judge, order): requests without an answer,
        tokens, price, and p50 and p95 of what was sent (null where all answers are recorded);
        where a server did not count tokens, of how many they are ``estimated``.
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
        tables = {
            "Answers" if served else "Contexts that hold the answer": self._marked_table(),
            f"By kind of question ({share})": self.kinds.pivot(
                "system", index="kind", values=share, maintain_order=True
            ),
            "Cost": self.costs,
        }
        # Of no system is any number best for being the largest.
        shown = {name: each for name, each in tables.items() if each.height}
        return tables_to_markdown(
            {
                name: each.rename({"system": "contexts of"}, strict=False)
                for name, each in shown.items()
            }
        )

    def _marked_table(self) -> pl.DataFrame:
        """Give the table, in which a name stands with what its contexts lack."""
        marks = dict[str, str]()
        for name, status in self.about.get("status", {}).items():
            if status:
                marks[name] = f"{name} ({status})"
        return self.table.with_columns(pl.col("system").replace(marks))

    def without_result(self) -> list[str]:
        """Name the systems that returned nothing at all."""
        status = self.about.get("status", {})
        return [name for name, said in status.items() if said.startswith("no result")]

    def _repr_markdown_(self) -> str:
        return str(self)

    def export(self, folder: str | Path) -> Path:
        """Write ``answers.json`` (see ``docs/conversation.md``), ``answers.md``, ``answers.parquet``."""
        frames = {"systems": self.table, "kinds": self.kinds, "costs": self.costs}
        content = {"schema_version": SCHEMA_VERSION, "about": dict(self.about)}
        content |= {name: each.to_dicts() for name, each in frames.items()}
        used = "\n\n".join(
            f"`{name}`: {text}" for name, text in self.about["prompts"].items() if text
        )
        prompts = f"\n\n**Prompts, version {self.about['prompts_version']}**\n\n{used}"
        files: dict[str, str | pl.DataFrame] = {
            "answers.json": json.dumps(content, indent=1, default=str, ensure_ascii=False),
            "answers.md": f"{self}{prompts if self.about['service'] else ''}\n",
            "answers.parquet": self.per_query,
        }
        write_files(folder, files)
        return Path(folder)


def answer_questions(
    systems: Any,
    data: Dataset | str | Path,
    *,
    service: Service | str | None = None,
    judge_by: Service | str | None = None,
    **options: Any,
) -> Answers:
    """Answer questions from what systems return, and judge the answers.

    Without a service, the contexts are measured: whether they hold the answer. With a recording
    (``Service.record``), what is answered and judged once is not asked again, so that a run that
    stopped goes on. An answer that does not fit the schema counts as wrong; one that did not come
    is not judged, and counted in ``costs``.

    :param systems: as :func:`memlab.experiments.context_bounds.system_contexts` takes them, and its
        ``options``.
    :param data: a dataset, or the path of its file.
    :param service: answers; see :func:`memlab.llm.ask`.
    :param judge_by: judges, by default the service that answers; see
        :func:`memlab.conversation.judge`.

    >>> import memlab
    >>> data = memlab.sample(turns=400)
    >>> done = memlab.answer_questions("bm25", data, encoder=None)
    >>> done.table["system"].to_list()
    ['bm25', 'evidence', 'whole history', 'nothing', "another's"]
    """
    if service is None and judge_by is not None:
        raise DataError(
            "there is a judge, and no service whose answers it judges; name a service too"
        )
    judging = judge_by or service
    for each in (service, judging):
        llm.check_service(each)  # what it lacks is said before contexts are made
    (asked,) = distinct_datasets(data)
    made = system_contexts(systems, asked, **options)
    by_source = []
    if describe_sources(made.questions):
        by_source.append(source_expr())
    kind = rubrics(made.questions).alias("kind")
    kinds = made.questions.select("query_id", "scope", kind, *by_source)
    parts = []
    for name, texts in made.texts.items():
        own = kinds.select(pl.lit(name).alias("system"), pl.all())
        own = own.join(
            texts.select("query_id", context_tokens="n_tokens"),
            on="query_id",
            maintain_order="left",
        )
        if service is None or judging is None:
            # What suits a person is described, and stands in no message.
            holds = pl.when(pl.col("kind") != "preference").then(
                answer_presence({name: texts}, made.questions)["holds"]
            )
            parts.append(own.with_columns(holds=holds))
        else:
            parts.append(_answer_and_judge(own, texts, made.questions, service, judging))
    rows = pl.concat(parts)
    about = {
        **made.about,
        "service": _describe_service(service),
        "judge": _describe_service(judging),
        "prompts_version": VERSION,
        "prompts": PROMPTS,
        "problems": made.problems.to_dicts(),
    }
    costs = (
        pl.DataFrame()
        if service is None
        else _costs_table(rows, {"answer": service, "judge": judging})
    )
    unit = made.about["unit"]
    whole, kinds = _accuracy_table(rows, unit=unit), _accuracy_table(rows, "kind", unit=unit)
    return Answers(whole, kinds, costs, rows, about)


def _configured_service(service: Service | str | None) -> Service | str | None:
    """Give the settings of a service that was named; ``recorded`` has none."""
    return (
        llm.configured_service(service)
        if isinstance(service, str) and service != llm.RECORDED
        else service
    )


def _describe_service(service: Service | str | None) -> Any:
    """Say what a service is, without its address."""
    chosen = _configured_service(service)
    if not isinstance(chosen, Service):
        return chosen
    return {name: getattr(chosen, name) for name in ("name", "model", "max_input", "max_output")}


def _answer_and_judge(
    rows: pl.DataFrame,
    texts: pl.DataFrame,
    questions: pl.DataFrame,
    service: Service | str,
    judge_by: Service | str,
) -> pl.DataFrame:
    """Have one system's contexts answered and judged: a row a question."""
    given = answer(texts, questions, service)
    verdicts = judge(questions, given, judge_by)
    cost = pl.col("error", "seconds", "tokens_read", "tokens_written", "tokens_estimated")
    rows = rows.join(given, on="query_id", maintain_order="left")
    verdicts = verdicts.select("query_id", "correct", "reason", cost.name.prefix("judge_"))
    rows = rows.join(verdicts, on="query_id", maintain_order="left")
    orders = read_orders(questions, given, judge_by)
    stated = zip(orders["events"], orders["named"], strict=True)
    taus = [
        None if events is None else kendall_tau([*dict.fromkeys(named)], range(1, len(events) + 1))
        for events, named in stated
    ]
    orders = orders.select(
        "query_id", cost.name.prefix("order_"), kendall_tau=pl.Series(taus, dtype=pl.Float64)
    )
    rows = rows.join(orders, on="query_id", how="left", maintain_order="left")
    # An answer that came and is of no use; the others did not come, whatever the server said
    # instead.
    misfit = pl.col("error").str.starts_with(f"{_configured_service(service)}: {llm.MISFIT}")
    return rows.with_columns(correct=pl.when(misfit).then(False).otherwise("correct"))


def _accuracy_table(rows: pl.DataFrame, *by: str, unit: Unit) -> pl.DataFrame:
    """Give shares with their intervals by system, and by what else is named."""
    # Yes or no, and what is told in one's own words, cannot be looked for; nor what is not there.
    share = "holds" if "holds" in rows.columns else "correct"
    table = []
    for key, own in rows.group_by("system", *by, maintain_order=True):
        judged = own.drop_nulls(share)
        n = judged.height if share == "holds" else own.height
        row = dict(zip(("system", *by), key, strict=True)) | {"n": n}
        row |= _share_with_interval(judged, share, unit)
        if "source" in own.columns:
            row[COLUMN] = describe_sources(judged if share == "holds" else own)
        if not by and "kendall_tau" in rows.columns and not rows["kendall_tau"].is_null().all():
            row["kendall_tau"] = own["kendall_tau"].mean()
        if not by:
            row["context tokens"] = own["context_tokens"].mean()
        if share == "correct":
            row["judged"] = judged.height
        table.append(row)
    floats = dict.fromkeys((share, "low", "high"), pl.Float64)
    return pl.DataFrame(table, schema_overrides=floats, infer_schema_length=None)


def _share_with_interval(judged: pl.DataFrame, share: str, unit: Unit) -> dict[str, Any]:
    values = judged[share].cast(pl.Float64).to_numpy()[:, None]
    spans = mean_intervals(values, scopes=clustering_scopes(judged["scope"], unit))
    span = spans.select("low", "high", "level", "unit", "units").row(0, named=True)
    return {share: judged[share].mean(), **span}


def _costs_table(rows: pl.DataFrame, services: Mapping[str, Service | str | None]) -> pl.DataFrame:
    parts = []
    has_estimates = rows.select(pl.any_horizontal(cs.ends_with("tokens_estimated")).any()).item()
    for task, prefix, by in (
        ("answer", "", "answer"),
        ("judge", "judge_", "judge"),
        ("order", "order_", "judge"),
    ):
        chosen = _configured_service(services[by])
        rates = (
            (chosen.input_price, chosen.output_price)
            if isinstance(chosen, Service)
            else (None, None)
        )
        asked = rows.filter(pl.col(f"{prefix}error").is_not_null())
        for (system,), own in asked.group_by("system", maintain_order=True):
            seconds = own[f"{prefix}seconds"]
            ms = 1000 * seconds.filter(seconds > 0)  # 0 for what was recorded or never sent
            read, written = own[f"{prefix}tokens_read"].sum(), own[f"{prefix}tokens_written"].sum()
            row = {"system": system, "task": task, "asked": own.height}
            row |= {"failed": own.filter(pl.col(f"{prefix}error") != "").height}
            row |= {"tokens in": read, "tokens out": written}
            if has_estimates:
                row["estimated"] = own[f"{prefix}tokens_estimated"].sum()
            row["price"] = None
            if None not in rates:
                row["price"] = token_cost(read, written, rates)  # type: ignore[arg-type]
            parts.append(row | {f"p{q} ms": ms.quantile(q / 100, "linear") for q in (50, 95)})
    times = {"p50 ms": pl.Float64, "p95 ms": pl.Float64}
    return pl.DataFrame(parts, schema_overrides=times, infer_schema_length=None)
