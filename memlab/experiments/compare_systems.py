"""Memories, pipelines and rankings from elsewhere side by side.

Compared are complete recall, answers, tokens, time and failures.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import polars.selectors as cs

from memlab.errors import DataError, check_at_least
from memlab.evaluate import Table, conclusions, misses, stale_table
from memlab.evaluate.causes_of_misses import CAUSES
from memlab.evaluate.conclusions import Conclusions
from memlab.evaluate.confidence_intervals import Unit, scopes_if_they_are_the_unit
from memlab.evaluate.groups_of_questions import add_question_sources_column
from memlab.evaluate.printed_tables import tables_to_markdown
from memlab.evaluate.ranking_measures import MeasureLike
from memlab.evaluate.report_files import tables_to_latex, write_texts_and_frames
from memlab.evaluate.significance_tests import compare_paired
from memlab.evaluate.system_comparison import STALE_COLUMNS
from memlab.experiments.experiment import CELLS, Experiment
from memlab.experiments.joined_experiments import (
    map_their_dataset_names_to_ours,
    raise_if_protocols_differ,
)
from memlab.experiments.run_pipelines import (
    log_warning_once,
    message_of_no_evidence,
    read_distinct_datasets,
)
from memlab.experiments.system_rankings import (
    ANSWER_BUDGET,
    BUDGETS,
    AskingOptions,
    SystemOutcome,
    SystemsLike,
    measure_system,
)
from memlab.explanation import Explanation, make_empty_explanation
from memlab.llm.proxy.model_proxy import describe_phase_counts
from memlab.memories import ReturnedTexts
from memlab.question_source_labels import COLUMN, explain_question_source_or_empty
from memlab.records import Dataset, qrels
from memlab.terminal_text import count_noun, escape_markdown, shorten_line
from memlab.text.text_analyser import tokenize

SCHEMA_VERSION = 1
_ANSWER = f"answer@{ANSWER_BUDGET} tokens"
TESTED_MEASURES = ("recall_all@10", "recall_all@1000 tokens", _ANSWER)
_SEVERAL = "recall_all@10, ≥ 2 sessions"
_FOUND_MEASURES = ("recall_any@10", "recall_all@10", _SEVERAL, _ANSWER)
_COST_COLUMNS = (
    *("tokens returned", "named", "attributed", "ingest s", "until found s", "p50 ms", "p95 ms"),
    *("MB", "tokens read", "tokens written", "failed scopes", "problems"),
    *("prompts", "prompts refused"),
)
_COST_NOTE = (
    "tokens returned: of a question, on average; named: share of the texts that came with the ids "
    "of their turns; attributed: share whose turns were found by their words."
)
_TESTS_NOTE = "p_holm is corrected for the systems, of each measure by itself."
_HOW_NOTE = (
    "how a text got its turns: given, with their ids; span, it stands in a turn word for word; "
    "copy or matched, sentence by sentence by their words and vectors; none."
)


@dataclass(frozen=True, repr=False, kw_only=True)
class Comparison(Experiment):
    """An experiment whose systems are pipelines, memories and rankings.

    Reports are of the turns behind their texts.

    :param systems: a row a system: means over the questions with evidence, tokens, times and
        failures.
    :param tests: each system against the baseline: measure, mean, difference with its interval, p
        and Holm's p.
    :param per_query: a row for each system and question.
    :param returned: what each system returned, attributed: ``system``, ``query_id``, ``rank``,
        ``text``, ``n_tokens``, ``how`` and ``turn_ids``.
    :param problems: what went wrong, in lines.
    :param calls: what memories asked of a model, where that was counted: ``system`` and
        :data:`memlab.memories.running_a_memory.CALLS_SCHEMA`.
    :param about: dataset, depth, budgets, seed, and each system's settings.
    """

    systems: Table
    tests: Table
    per_query: pl.DataFrame
    returned: pl.DataFrame
    problems: pl.DataFrame
    calls: pl.DataFrame
    about: Mapping[str, Any]

    def tables(self) -> dict[str, pl.DataFrame]:
        """Give what is printed, by heading: what was found, tokens, costs, and the tests."""
        budget_titles = {
            f"recall_all@{n_tokens} tokens": f"{n_tokens} tokens" for n_tokens in BUDGETS
        }
        cost_columns = self.systems.select(pl.col("system").alias("cost of"), *_COST_COLUMNS)
        cost_columns = cost_columns.with_columns(
            pl.col("tokens returned").round().cast(pl.Int64, strict=False)
        )
        source_columns = [
            column_name for column_name in (COLUMN,) if column_name in self.systems.columns
        ]
        table_by_title = {
            "Found": self.systems.select(
                self._system_name_with_status_expr(), "n", *_FOUND_MEASURES, *source_columns
            ).rename(self._heading_with_count_by_measure()),
            "All evidence in so many tokens": self.systems.select("system", *budget_titles).rename(
                budget_titles
            ),
            "Cost": Table(
                cost_columns.select(
                    cost_column
                    for cost_column in cost_columns
                    if cost_column.null_count() < cost_columns.height
                ),
                note=_COST_NOTE,
            ),
        }
        if STALE_COLUMNS[0] in self.systems.columns:
            table_by_title["What must not come back"] = self.systems.select(
                "system", *STALE_COLUMNS
            )
        return table_by_title | (
            {f"Against {self.about['baseline']}": self.tests} if self.tests.height else {}
        )

    def _system_name_with_status_expr(self) -> pl.Expr:
        """Give the names, each with what its numbers lack: 0 of a failed memory is no value."""
        name_with_status = pl.format("{} ({})", "system", "status")
        return (
            pl.when(pl.col("status") == "")
            .then("system")
            .otherwise(name_with_status)
            .alias("system")
        )

    def without_result(self) -> list[str]:
        """Name the systems that have no result at all.

        Those are systems that returned nothing, and memories none of whose prompts had an answer.
        """
        lacking = self.systems.filter(pl.col("status").str.starts_with("no result"))
        return lacking["system"].to_list()

    def describe_model_calls(self) -> list[str]:
        """Say what each memory asked of a model, a line a phase, and why it was refused first."""
        output_lines = list[str]()
        for (system_name, phase_name), phase_rows in self.calls.group_by(
            "system", "phase", maintain_order=True
        ):
            call_counts = phase_rows.select(cs.numeric().sum()).row(0, named=True)
            if phase_rows["price"].null_count():
                call_counts["price"] = None
            output_lines.append(
                f"{system_name}, {phase_name}: {describe_phase_counts(call_counts)}"
            )
            n_refused = call_counts["prompts_refused"]
            if n_refused:
                prompt_count = count_noun(call_counts["prompts"], "prompts")
                first_refusal = phase_rows["refusal"].drop_nulls()[0]
                output_lines.append(
                    f"{n_refused:,} of {prompt_count} refused, the first: {first_refusal}"
                )
        return output_lines

    def _heading_with_count_by_measure(self) -> dict[str, str]:
        """Name the measures that fewer than all questions have with their number of questions."""
        first_system_rows = self.per_query.filter(system=self.systems["system"].first())
        n_multi_session = first_system_rows.filter(pl.col("n_sessions") >= 2).height
        n_answered = first_system_rows[_ANSWER].count()
        return {
            _SEVERAL: f"{_SEVERAL} (n = {n_multi_session:,})",
            _ANSWER: f"{_ANSWER} (n = {n_answered:,})",
        }

    def conclusions(
        self,
        measure: MeasureLike = "recall_all@10",
        *,
        baseline: str | None = None,
        system: str | None = None,
        left_out: Iterable[str] = (),
    ) -> Conclusions:
        """Say in sentences which systems find more than the baseline, and which fewer.

        :param measure: one of :data:`TESTED_MEASURES`.
        :param baseline: the system that the others are compared with; that of the comparison by
            default.
        :param system: of which is said too what it finds in few tokens and in many, and what it
            misses.
        :param left_out: systems that could not be compared, as they are not installed.
        """
        compared = self._with_tests_against(baseline)
        sentences = [
            *conclusions.on_memories(
                self.systems,
                compared.tests,
                baseline=compared.about["baseline"],
                measure=str(measure),
            )
        ]
        if system is not None:
            sentences += conclusions.on_token_budgets(
                self.per_query, system=system, unit=self.reports[0].unit
            )
            sentences += conclusions.on_texts_missed_by_system(
                self.misses(system=system), system=system
            )
        sentences += conclusions.notes_on_question_sources(self.reports[0].per_query)
        sentences += [
            f"Not installed, and left out: {missing_system}." for missing_system in sorted(left_out)
        ]
        return Conclusions(sentences)

    def lost(self, *, system: str, to: str) -> pl.DataFrame:
        """List the questions that one system completes and another does not.

        Those with most evidence come first.

        :param system: the one that loses them; where there are none, all its questions are listed.
        :param to: the other.
        :returns: ``query_id`` and both values of recall_all@10.
        """
        system_values = self.per_query.filter(pl.col("system").is_in([system, to]))
        values_by_system = system_values.pivot(
            "system", index="query_id", values="recall_all@10", maintain_order=True
        )
        if values_by_system.is_empty():
            return values_by_system
        lost_questions = values_by_system.filter(pl.col(system) < 1, pl.col(to) == 1)
        listed_questions = lost_questions if lost_questions.height else values_by_system
        evidence_counts = self.data.questions.select(
            "query_id", items=pl.col("evidence").list.n_unique()
        )
        listed_questions = listed_questions.join(
            evidence_counts, on="query_id", maintain_order="left"
        )
        return listed_questions.sort("items", descending=True, maintain_order=True).drop("items")

    def join(self, other: Experiment) -> Comparison:
        """Put the systems of two comparisons on the same data side by side, this one's first.

        All are tested against this one's baseline. A system of one name that returned the same in
        both is one.

        :param other: a comparison, made with the same depth, encoder, unit and seed.
        :raises DataError: for other data or other options, or for one name that returned different
            things, with what differs.

        >>> import memlab
        >>> data = memlab.sample(turns=200)
        >>> first = memlab.compare("bm25", data, encoder=None)
        >>> second = memlab.compare({"own": "bm25(b=0)"}, data, encoder=None)
        >>> first.join(second).tests["system"].unique().to_list()
        ['own']
        """
        if not isinstance(other, Comparison):
            raise DataError(
                "only a comparison is joined with a comparison: make both by memlab.compare"
            )
        map_their_dataset_names_to_ours(self.datasets, other.datasets)
        raise_if_protocols_differ(self.about, other.about)
        own_systems = self.systems["system"].to_list()
        new_rows = list[int]()
        for system_row, shared_name in enumerate(other.systems["system"]):
            if shared_name not in own_systems:
                new_rows.append(system_row)
                continue
            is_same = self.runs[own_systems.index(shared_name)].frame.equals(
                other.runs[system_row].frame
            )
            if not is_same:
                raise DataError(
                    f"both comparisons have a system {shared_name!r}, and it did not return the "
                    "same; "
                    "name one of them: memlab.compare({NAME: SYSTEM}, …)"
                )
        added_systems = [other.systems["system"][system_row] for system_row in new_rows]
        is_added = pl.col("system").is_in(added_systems)
        joined_frames = {}
        for shared_name in ("systems", "per_query", "returned", "problems", "calls"):
            both_frames = [getattr(self, shared_name), getattr(other, shared_name).filter(is_added)]
            joined_frames[shared_name] = pl.concat(both_frames, how="vertical_relaxed")
        joined_tests = self.tests
        if added_systems:
            test_options = self.about["unit"], self.about["seed"]
            joined_tests = _test_systems_against_baseline(
                joined_frames["per_query"], self._shown_baseline_name(), *test_options
            )
        kept_cells = other.cells.filter(pl.col("pipeline").is_in(added_systems))
        added_settings = {
            shared_name: other.about["systems"][shared_name] for shared_name in added_systems
        }
        return replace(
            self,
            name=" + ".join(dict.fromkeys((self.name, other.name))),
            runs=(*self.runs, *(other.runs[system_row] for system_row in new_rows)),
            reports=(*self.reports, *(other.reports[system_row] for system_row in new_rows)),
            cells=pl.concat([self.cells, kept_cells.with_columns(dataset=pl.lit(self.data.name))]),
            systems=Table(joined_frames.pop("systems")),
            tests=joined_tests,
            **joined_frames,
            about={**self.about, "systems": {**self.about["systems"], **added_settings}},
        )

    def _shown_baseline_name(self) -> str:
        """Give the name that tables have for the baseline: a pipeline's says what was left out."""
        baseline_wanted = str(self.about["baseline"])
        settings_by_system = self.about["systems"]
        if baseline_wanted in settings_by_system:
            return baseline_wanted
        return next(
            str(system_name)
            for system_name in settings_by_system
            if settings_by_system[system_name].get("pipeline") == baseline_wanted
        )

    def _notes_where_no_system_can_be_bold(self) -> list[str]:
        return []  # no value of these tables is bold; the tests have their own note

    def to_latex(self, *, baseline: str | None = None) -> str:
        """Give the tables that are printed as LaTeX, as ``systems.tex`` has them.

        :param baseline: the system that the others are tested against; that of the comparison by
            default.
        :raises DataError: when no system is called so.
        """
        return tables_to_latex({"turn": self._with_tests_against(baseline).tables()})

    def _with_tests_against(self, baseline: str | None) -> Comparison:
        """Give the same comparison with its tests against another system."""
        if baseline is None or baseline == self.about["baseline"]:
            return self
        baseline_name = self.cells["pipeline"][self._row_of_last_turn_ranking(baseline)]
        baseline_tests = _test_systems_against_baseline(
            self.per_query, baseline_name, self.about["unit"], self.about["seed"]
        )
        return replace(self, tests=baseline_tests, about={**self.about, "baseline": baseline_name})

    def _repr_html_(self) -> str:
        return self.systems._repr_html_() + self.tests._repr_html_()

    def why(
        self, query_id: str | None = None, *, system: str | None = None, k: int = 10
    ) -> Explanation | str:
        """Follow one question through a pipeline, or say what a memory returned and missed.

        :param query_id: of the question; by default that which :meth:`worst` names first.
        :param system: its name; the last by default.
        :param k: how many first texts are shown, and first turns count as found.
        :raises DataError: when there is no such question or system, or the question has no
            evidence.
        """
        system_name = self.cells["pipeline"][self._row_of_last_turn_ranking(system)]
        if query_id is None:
            lowest_question = self.worst(1, system=system_name)
            if lowest_question.is_empty():
                return make_empty_explanation()
            query_id = str(lowest_question["query_id"][0])
        if "pipeline" in self.about["systems"][system_name]:
            return super().why(query_id, system=system_name, k=k)
        is_of_question = (pl.col("query_id") == query_id) & (pl.col("system") == system_name)
        if self.per_query.filter(is_of_question).is_empty():
            raise DataError(f"no question with evidence is called {query_id!r}")
        question_row = self.data.questions.row(
            by_predicate=pl.col("query_id") == query_id, named=True
        )
        check_at_least(1, k=k)
        returned = self.returned.filter(is_of_question)
        short_text = pl.col("text").map_elements(_shorten_text_to_line, return_dtype=pl.String)
        has_evidence = (
            pl.col("turn_ids").list.eval(pl.element().is_in([*question_row["evidence"]])).list.any()
        )
        question_data = replace(
            self.data.take([question_row["scope"]]),
            questions=self.data.questions.filter(query_id=query_id),
        )
        missed_rows = misses(
            self.runs[self._row_of_last_turn_ranking(system)], question_data, k=k
        ).with_columns(pl.col("cause").replace_strict(CAUSES))
        nearest_texts = self._nearest_returned_texts(missed_rows["text"], returned["text"])
        missed_rows = missed_rows.with_columns(nearest_text=nearest_texts)
        evidence_mark = (
            pl.when(has_evidence).then(pl.lit("●")).otherwise(pl.lit("")).alias("evidence")
        )
        table_by_title = {
            f"Returned, the first {k}": Table(
                returned.select("rank", evidence_mark, "how", short_text)[:k], note=_HOW_NOTE
            ),
            "Missed": missed_rows.select(
                short_text.alias("missed"), "rank", "cause", "nearest_text"
            ),
            "Problems": self._problems_touching_question(system_name, query_id).select("problem"),
        }
        filled_tables = {title: table for title, table in table_by_title.items() if table.height}
        table_text = tables_to_markdown(filled_tables)
        heading = (
            f"{escape_markdown(str(question_row['text']))} → "
            f"{escape_markdown(str(question_row['answer']))}"
        )
        question_source = explain_question_source_or_empty(question_row.get("source"))
        if question_source:
            heading += f" ({question_source})"
        return Markdown(f"{heading}\n\n{table_text}")

    def _nearest_returned_texts(
        self, missed_texts: pl.Series, returned_texts: pl.Series
    ) -> pl.Series:
        """Give for each missed text the returned one with most tokens of it; null without any."""
        token_lists = tokenize([*missed_texts, *returned_texts], language=self.data.language)
        token_sets = [set(tokens) for tokens in token_lists]
        nearest: list[str | None] = []
        for missed_tokens in token_sets[: len(missed_texts)]:
            n_shared = [len(missed_tokens & tokens) for tokens in token_sets[len(missed_texts) :]]
            nearest_text = None
            if any(n_shared):
                nearest_text = _shorten_text_to_line(returned_texts[int(np.argmax(n_shared))])
            nearest.append(nearest_text)
        return pl.Series(nearest, dtype=pl.String)

    def _problems_touching_question(self, system: str, query_id: str) -> pl.DataFrame:
        """Give the problems of one question, and those that are of no single question."""
        is_of_question = pl.col("query_id").fill_null("").is_in(["", query_id])
        return self.problems.filter(pl.col("system") == system, is_of_question)

    def export(self, directory: str | Path, *, baseline: str | None = None) -> Path:
        """Write ``systems.json``, ``systems.md`` and ``systems.tex``.

        ``docs/memories.md`` has the schema of ``systems.json``;
        ``per-query.parquet`` and ``returned.parquet`` hold :attr:`per_query` and :attr:`returned`.

        :param baseline: as in :meth:`to_latex`.
        """
        if baseline not in (None, self.about["baseline"]):
            return self._with_tests_against(baseline).export(directory)
        frame_by_name = {
            "systems": self.systems,
            "tests": self.tests,
            "problems": self.problems,
            "calls": self.calls,
        }
        systems_record = {"schema_version": SCHEMA_VERSION, "about": dict(self.about)}
        systems_record |= {
            frame_name: frame.to_dicts() for frame_name, frame in frame_by_name.items()
        }
        file_contents: dict[str, str | pl.DataFrame] = {
            "systems.json": json.dumps(systems_record, indent=1, default=str, ensure_ascii=False),
            "systems.md": f"{self}\n",
            "systems.tex": self.to_latex(),
            "per-query.parquet": self.per_query,
            "returned.parquet": self.returned,
        }
        write_texts_and_frames(directory, file_contents)
        return Path(directory)


def _shorten_text_to_line(text: str) -> str:
    return shorten_line(text, 100)


class Markdown(str):
    """A text that a notebook shows as Markdown."""

    def _repr_markdown_(self) -> str:
        return str(self)


def compare(
    systems: SystemsLike, data: Dataset | str | Path, *, baseline: str | None = None, **options: Any
) -> Comparison:
    """Evaluate memories and pipelines on the same questions under one protocol.

    A system gives at most ``k`` texts a question. They are read in its order: by the turns that
    they come from (:func:`memlab.memories.attribute`), as far as they fit into each of ``BUDGETS``
    tokens, and by whether those of 1,000 tokens hold the answer
    (:func:`memlab.conversation.contains_answer`). So a memory that returns everything does not win,
    and one that words things anew is not lost. A question whose scope or search failed counts as
    answered by nothing.

    :param systems: one or several: pipelines or their texts, and what
        :func:`memlab.memories.memory` reads; by name, where it is a mapping.
    :param baseline: the name that the tests compare with; the first by default.
    :param options: of :class:`memlab.experiments.system_rankings.AskingOptions`: ``runs``,
        ``store``, ``k`` …
    :raises DataError: before anything runs: for no system, two of one name, or one that is neither.

    >>> import memlab
    >>> data = memlab.sample(turns=200)
    >>> def latest(turns, query, k):
    ...     return turns["text"].tail(k)
    >>> done = memlab.compare(["bm25", latest], data, encoder=None)
    >>> done.systems["system"].to_list()
    ['bm25', 'latest']
    """
    (data,) = read_distinct_datasets(data)
    asking_options = AskingOptions(**options)
    system_by_name = asking_options.read_systems_and_run_files_by_name(systems, data)
    baseline_wanted = next(iter(system_by_name)) if baseline is None else baseline
    if baseline_wanted not in system_by_name:
        raise DataError(
            f"no system is called {baseline_wanted!r}, the baseline; there are "
            f"{', '.join(system_by_name)}"
        )
    if qrels(data.questions, "turn").frame.is_empty():
        log_warning_once(message_of_no_evidence(data, "turn"))
    baseline_ranking = system_by_name[baseline_wanted]
    if baseline and isinstance(baseline_ranking, ReturnedTexts):
        partial_line = baseline_ranking.partial_answers(data)
        if partial_line:
            raise DataError(
                f"{baseline_wanted!r}, the baseline, {partial_line}; a comparison with it would "
                "mislead: rank them all"
            )
    dataset_bench = asking_options.make_bench(data)
    returned_texts: list[ReturnedTexts] = []
    outcomes: list[SystemOutcome] = []
    asked_systems = asking_options.ask_systems_and_iter_texts_and_ms(
        system_by_name, dataset_bench, data, with_search_times=True
    )
    for texts, search_times in [*asked_systems]:
        returned_texts.append(texts)
        outcomes.append(
            measure_system(texts, search_times, data, dataset_bench.encoder, asking_options)
        )
    shown_names = {
        name: texts.name for name, texts in zip(system_by_name, returned_texts, strict=True)
    }
    per_query = pl.concat([outcome.per_query for outcome in outcomes])
    systems_table = pl.DataFrame([outcome.row for outcome in outcomes])
    rankings = [outcome.ranking for outcome in outcomes]
    if data.questions["stale"].list.len().sum():
        systems_table = systems_table.hstack(stale_table(rankings, data).select(STALE_COLUMNS))
    baseline_tests = Table(pl.DataFrame())
    if len(system_by_name) > 1:
        baseline_tests = _test_systems_against_baseline(
            per_query, shown_names[baseline_wanted], asking_options.unit, asking_options.seed
        )
    return Comparison(
        data.name,
        (data,),
        tuple(rankings),
        tuple(outcome.report for outcome in outcomes),
        pl.DataFrame(
            [(data.name, shown_name, "turn", None, False) for shown_name in shown_names.values()],
            schema=CELLS,
            orient="row",
        ),
        {data.name: lambda: dataset_bench},
        systems=Table(systems_table),
        tests=baseline_tests,
        per_query=per_query,
        returned=pl.concat([outcome.texts for outcome in outcomes]),
        problems=pl.concat(
            [texts.problems.with_columns(system=pl.lit(texts.name)) for texts in returned_texts]
        ),
        calls=pl.concat(
            [
                texts.calls.select(pl.lit(texts.name).alias("system"), pl.all())
                for texts in returned_texts
            ]
        ),
        about={
            "dataset": data.name,
            "fingerprint": dataset_bench.provenance["fingerprint"],
            "baseline": baseline_wanted,
            "k": asking_options.k,
            "budgets": [*BUDGETS],
            "seed": asking_options.seed,
            "unit": asking_options.unit,
            "encoder": dataset_bench.provenance.get("encoder"),
            "systems": {texts.name: dict(texts.provenance) for texts in returned_texts},
        },
    )


def _test_systems_against_baseline(
    per_query: pl.DataFrame, baseline: str, unit: Unit, seed: int
) -> Table:
    """Compare every system with one, on each of :data:`TESTED_MEASURES`.

    Holm's correction is within a measure.
    """
    dropped_columns = ("mean_low", "mean_high", "mean_level")
    no_tests = compare_paired(np.zeros((0, 1)), np.array([0])).clear().drop(dropped_columns)
    key_columns = {"measure": pl.String(), "system": pl.String()}
    test_rows: list[pl.DataFrame] = []
    for measure in TESTED_MEASURES:
        index_columns = [
            column_name
            for column_name in ("query_id", "scope", "source")
            if column_name in per_query.columns
        ]
        values_by_system = per_query.pivot(
            "system", index=index_columns, values=measure, maintain_order=True
        )
        values_by_system = values_by_system.drop_nulls()
        system_names = values_by_system.columns[len(index_columns) :]
        if values_by_system.height and len(system_names) > 1:
            reference = np.full(len(system_names), system_names.index(baseline))
            value_scopes = scopes_if_they_are_the_unit(values_by_system["scope"], unit)
            value_matrix = values_by_system.drop(index_columns).to_numpy()
            paired_tests = compare_paired(value_matrix, reference, scopes=value_scopes, seed=seed)
            measure_tests = pl.DataFrame({"measure": measure, "system": system_names}).hstack(
                paired_tests
            )
            measure_tests = add_question_sources_column(measure_tests, values_by_system)
            test_rows.append(
                measure_tests.drop(dropped_columns).filter(pl.col("system") != baseline)
            )
    if not test_rows:
        return Table(pl.DataFrame(schema=key_columns).hstack(no_tests))
    return Table(pl.concat(test_rows), note=_TESTS_NOTE)
