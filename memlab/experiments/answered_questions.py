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
from memlab.conversation.answers_and_judge import (
    PROMPTS,
    VERSION,
    ask_for_event_orders,
    choose_rubrics,
)
from memlab.errors import DataError
from memlab.evaluate import kendall_tau
from memlab.evaluate.confidence_intervals import Unit, mean_intervals, scopes_if_they_are_the_unit
from memlab.evaluate.printed_tables import tables_to_markdown
from memlab.evaluate.report_files import write_texts_and_frames
from memlab.experiments.context_bounds import make_system_contexts
from memlab.experiments.model_costs import price_of_tokens
from memlab.experiments.run_pipelines import read_distinct_datasets
from memlab.experiments.system_rankings import SystemsLike
from memlab.llm import Service
from memlab.question_source_labels import COLUMN
from memlab.records import Dataset
from memlab.records.dataset import describe_question_sources_or_empty, question_source_expr

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
        share_column = "holds"
        main_title = "Contexts that hold the answer"
        if self.about["service"] is not None:
            share_column = "correct"
            main_title = "Answers"
        table_by_title = {
            main_title: self._table_with_status_in_names(),
            f"By kind of question ({share_column})": self.kinds.pivot(
                "system", index="kind", values=share_column, maintain_order=True
            ),
            "Cost": self.costs,
        }
        shown_tables = {}
        for title, table in table_by_title.items():
            if table.height:
                # Of no system is any number best for being the largest.
                shown_tables[title] = table.rename({"system": "contexts of"}, strict=False)
        return tables_to_markdown(shown_tables)

    def _table_with_status_in_names(self) -> pl.DataFrame:
        """Give the table, in which a name stands with what its contexts lack."""
        marked_names = dict[str, str]()
        for system_name, status_text in self.about.get("status", {}).items():
            if status_text:
                marked_names[system_name] = f"{system_name} ({status_text})"
        return self.table.with_columns(pl.col("system").replace(marked_names))

    def without_result(self) -> list[str]:
        """Name the systems that returned nothing at all."""
        status_by_system = self.about.get("status", {})
        return [
            system_name
            for system_name, status_text in status_by_system.items()
            if status_text.startswith("no result")
        ]

    def _repr_markdown_(self) -> str:
        return str(self)

    def export(self, folder: str | Path) -> Path:
        """Write ``answers.json``, ``answers.md`` and ``answers.parquet``.

        ``docs/conversation.md`` has the schema.
        """
        frame_by_name = {"systems": self.table, "kinds": self.kinds, "costs": self.costs}
        answers_record = {"schema_version": SCHEMA_VERSION, "about": dict(self.about)}
        answers_record |= {
            entry_name: frame.to_dicts() for entry_name, frame in frame_by_name.items()
        }
        prompt_texts = "\n\n".join(
            f"`{entry_name}`: {prompt_text}"
            for entry_name, prompt_text in self.about["prompts"].items()
            if prompt_text
        )
        prompts_section = (
            f"\n\n**Prompts, version {self.about['prompts_version']}**\n\n{prompt_texts}"
        )
        file_contents: dict[str, str | pl.DataFrame] = {
            "answers.json": json.dumps(answers_record, indent=1, default=str, ensure_ascii=False),
            "answers.md": f"{self}{prompts_section if self.about['service'] else ''}\n",
            "answers.parquet": self.per_query,
        }
        write_texts_and_frames(folder, file_contents)
        return Path(folder)


def answer_questions(
    systems: SystemsLike,
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

    :param systems: as :func:`memlab.experiments.context_bounds.make_system_contexts` takes them,
        and its ``options``.
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
    for checked_service in (service, judging):
        llm.check_service(checked_service)  # what it lacks is said before contexts are made
    (dataset,) = read_distinct_datasets(data)
    contexts = make_system_contexts(systems, dataset, **options)
    source_columns = []
    if describe_question_sources_or_empty(contexts.questions):
        source_columns.append(question_source_expr())
    kind_column = choose_rubrics(contexts.questions).alias("kind")
    question_kinds = contexts.questions.select("query_id", "scope", kind_column, *source_columns)
    system_parts = []
    for system_name, context_texts in contexts.texts.items():
        system_rows = question_kinds.select(pl.lit(system_name).alias("system"), pl.all())
        system_rows = system_rows.join(
            context_texts.select("query_id", context_tokens="n_tokens"),
            on="query_id",
            maintain_order="left",
        )
        if service is None or judging is None:
            # What suits a person is described, and stands in no message.
            holds_answer = pl.when(pl.col("kind") != "preference").then(
                answer_presence({system_name: context_texts}, contexts.questions)["holds"]
            )
            system_parts.append(system_rows.with_columns(holds=holds_answer))
        else:
            system_parts.append(
                _answer_and_judge_contexts(
                    system_rows, context_texts, contexts.questions, service, judging
                )
            )
    answer_rows = pl.concat(system_parts)
    provenance = {
        **contexts.about,
        "service": _describe_service_without_address(service),
        "judge": _describe_service_without_address(judging),
        "prompts_version": VERSION,
        "prompts": PROMPTS,
        "problems": contexts.problems.to_dicts(),
    }
    if service is None:
        costs_table = pl.DataFrame()
    else:
        costs_table = _model_costs_table(answer_rows, {"answer": service, "judge": judging})
    interval_unit = contexts.about["unit"]
    accuracy_table = _share_table_by_system(answer_rows, unit=interval_unit)
    question_kinds = _share_table_by_system(answer_rows, "kind", unit=interval_unit)
    return Answers(accuracy_table, question_kinds, costs_table, answer_rows, provenance)


def _resolve_configured_service(service: Service | str | None) -> Service | str | None:
    """Give the settings of a service that was named; ``recorded`` has none."""
    if isinstance(service, str) and service != llm.RECORDED:
        return llm.configured_service(service)
    return service


def _describe_service_without_address(service: Service | str | None) -> dict[str, Any] | str | None:
    """Say what a service is, without its address."""
    settings = _resolve_configured_service(service)
    if not isinstance(settings, Service):
        return settings
    return {
        field_name: getattr(settings, field_name)
        for field_name in ("name", "model", "max_input", "max_output")
    }


def _answer_and_judge_contexts(
    answer_rows: pl.DataFrame,
    context_texts: pl.DataFrame,
    questions: pl.DataFrame,
    service: Service | str,
    judge_by: Service | str,
) -> pl.DataFrame:
    """Have one system's contexts answered and judged: a row a question."""
    answers = answer(context_texts, questions, service)
    verdicts = judge(questions, answers, judge_by)
    cost_columns = pl.col("error", "seconds", "tokens_read", "tokens_written", "tokens_estimated")
    answer_rows = answer_rows.join(answers, on="query_id", maintain_order="left")
    verdicts = verdicts.select("query_id", "correct", "reason", cost_columns.name.prefix("judge_"))
    answer_rows = answer_rows.join(verdicts, on="query_id", maintain_order="left")
    event_orders = ask_for_event_orders(questions, answers, judge_by)
    events_and_stated = zip(event_orders["events"], event_orders["named"], strict=True)
    rank_correlations: list[float | None] = []
    for gold_events, stated_events in events_and_stated:
        correlation = None
        if gold_events is not None:
            stated_order = [*dict.fromkeys(stated_events)]
            correlation = kendall_tau(stated_order, range(1, len(gold_events) + 1))
        rank_correlations.append(correlation)
    event_orders = event_orders.select(
        "query_id",
        cost_columns.name.prefix("order_"),
        kendall_tau=pl.Series(rank_correlations, dtype=pl.Float64),
    )
    answer_rows = answer_rows.join(event_orders, on="query_id", how="left", maintain_order="left")
    # An answer that came and is of no use; the others did not come, whatever the server said
    # instead.
    is_misfit = pl.col("error").str.starts_with(
        f"{_resolve_configured_service(service)}: {llm.MISFIT}"
    )
    return answer_rows.with_columns(correct=pl.when(is_misfit).then(False).otherwise("correct"))


def _share_table_by_system(
    answer_rows: pl.DataFrame, *group_columns: str, unit: Unit
) -> pl.DataFrame:
    """Give shares with their intervals by system, and by what else is named."""
    # Yes or no, and what is told in one's own words, cannot be looked for; nor what is not there.
    share_column = "holds" if "holds" in answer_rows.columns else "correct"
    table_rows = []
    for group_key, group_rows in answer_rows.group_by(
        "system", *group_columns, maintain_order=True
    ):
        judged_rows = group_rows.drop_nulls(share_column)
        n_counted = judged_rows.height if share_column == "holds" else group_rows.height
        table_row = dict(zip(("system", *group_columns), group_key, strict=True)) | {"n": n_counted}
        table_row |= _share_and_interval_columns(judged_rows, share_column, unit)
        if "source" in group_rows.columns:
            table_row[COLUMN] = describe_question_sources_or_empty(
                judged_rows if share_column == "holds" else group_rows
            )
        if (
            not group_columns
            and "kendall_tau" in answer_rows.columns
            and not answer_rows["kendall_tau"].is_null().all()
        ):
            table_row["kendall_tau"] = group_rows["kendall_tau"].mean()
        if not group_columns:
            table_row["context tokens"] = group_rows["context_tokens"].mean()
        if share_column == "correct":
            table_row["judged"] = judged_rows.height
        table_rows.append(table_row)
    float_columns = dict.fromkeys((share_column, "low", "high"), pl.Float64)
    return pl.DataFrame(table_rows, schema_overrides=float_columns, infer_schema_length=None)


def _share_and_interval_columns(
    judged_rows: pl.DataFrame, share_column: str, unit: Unit
) -> dict[str, Any]:
    share_values = judged_rows[share_column].cast(pl.Float64).to_numpy()[:, None]
    intervals = mean_intervals(
        share_values, scopes=scopes_if_they_are_the_unit(judged_rows["scope"], unit)
    )
    interval = intervals.select("low", "high", "level", "unit", "units").row(0, named=True)
    return {share_column: judged_rows[share_column].mean(), **interval}


def _model_costs_table(
    answer_rows: pl.DataFrame, service_by_role: Mapping[str, Service | str | None]
) -> pl.DataFrame:
    cost_rows = []
    has_estimates = answer_rows.select(
        pl.any_horizontal(cs.ends_with("tokens_estimated")).any()
    ).item()
    for task_name, prefix, service_role in (
        ("answer", "", "answer"),
        ("judge", "judge_", "judge"),
        ("order", "order_", "judge"),
    ):
        settings = _resolve_configured_service(service_by_role[service_role])
        input_price = None
        output_price = None
        if isinstance(settings, Service):
            input_price, output_price = settings.input_price, settings.output_price
        asked_rows = answer_rows.filter(pl.col(f"{prefix}error").is_not_null())
        for (system_name,), system_rows in asked_rows.group_by("system", maintain_order=True):
            request_seconds = system_rows[f"{prefix}seconds"]
            # The seconds are 0 for what was recorded or never sent.
            sent_milliseconds = 1000 * request_seconds.filter(request_seconds > 0)
            tokens_read = int(system_rows[f"{prefix}tokens_read"].sum())
            tokens_written = int(system_rows[f"{prefix}tokens_written"].sum())
            cost_row = {
                "system": system_name,
                "task": task_name,
                "asked": system_rows.height,
                "failed": system_rows.filter(pl.col(f"{prefix}error") != "").height,
                "tokens in": tokens_read,
                "tokens out": tokens_written,
            }
            if has_estimates:
                cost_row["estimated"] = system_rows[f"{prefix}tokens_estimated"].sum()
            cost_row["price"] = None
            if input_price is not None and output_price is not None:
                prices = (input_price, output_price)
                cost_row["price"] = price_of_tokens(tokens_read, tokens_written, prices)
            cost_row["p50 ms"] = sent_milliseconds.quantile(0.5, "linear")
            cost_row["p95 ms"] = sent_milliseconds.quantile(0.95, "linear")
            cost_rows.append(cost_row)
    time_columns = {"p50 ms": pl.Float64, "p95 ms": pl.Float64}
    return pl.DataFrame(cost_rows, schema_overrides=time_columns, infer_schema_length=None)
