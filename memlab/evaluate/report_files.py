"""The files of an evaluation: report.json, report.md, report.tex and per-query Parquet."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Any

import polars as pl

from memlab.atomic_files import open_atomically
from memlab.evaluate.evaluation_report import Report
from memlab.evaluate.groups_of_questions import (
    HAS_SEVERAL_SESSIONS,
    MULTI_SESSION,
    format_question_count_by_source,
)
from memlab.evaluate.printed_tables import Table, tables_to_markdown, to_latex
from memlab.evaluate.ranking_measures import Measure
from memlab.evaluate.system_comparison import (
    compare_reports,
    index_of_report_by_name_or_pipeline,
    no_bold_system_note_or_empty,
    results_by_group_table,
    results_table,
)
from memlab.question_source_labels import format_question_count
from memlab.records import LEVELS, Level
from memlab.records.dataset import count_questions_by_source, describe_question_sources_or_empty
from memlab.terminal_text import escape_markdown

_NOTE = (
    "Bold is significantly the best: better than each other system by a paired randomisation test "
    "with Holm's correction, p < .05. The ceiling is what a perfect ranking reaches, chance what a "
    "blind one is expected to; – where no closed form exists. Beside an interval stand its level "
    "and what was taken as independent: questions, or scopes where there are five or more. "
    "Intervals of shares are Wilson's, of differences of shares Newcombe's, others bootstraps; "
    "over scopes they are t intervals. Those of differences hold together: beside m tests each has "
    "the level 1 − .05 / m."
)
_LATEX_NOTE = (
    r"% \usepackage{booktabs}; letters beyond Latin need xelatex; full precision is in the JSON. "
    "Bold is the\n% significantly best: against each other system a paired randomisation test with "
    "Holm's correction, p < .05."
)
_GROUPED = {
    "question_type": "question type",
    "evidence_sessions": "number of evidence sessions",
    "form": "form",
}


def write_reports(
    reports: Sequence[Report],
    directory: str | Path,
    *,
    provenance: Mapping[str, Any],
    baseline: str | None = None,
) -> None:
    """Write what was measured, each file whole or not at all.

    ``report.json`` holds every mean at full precision, the paired comparisons and the provenance;
    ``report.md`` all tables of each level; ``report.tex`` those of :func:`paper_tables_by_caption`,
    of turns where turns were ranked; ``NAME.LEVEL.parquet`` the per-query results of each report,
    where NAME is :func:`file_stem_by_system_name`'s.

    :param reports: any number of systems at one or both levels.
    :param provenance: what all reports share.
    :param baseline: the system that the others are tested against, by its name or the text of its
        pipeline; the first of a level by default.
    :raises DataError: when two reports of one level do not belong in one table, or none is called
        ``baseline``.
    :raises ExportError: when a file cannot be written.
    """
    stems_by_name = file_stem_by_system_name([report.name for report in reports])
    reports_by_level = _reports_by_level(reports)
    tables_by_level = {
        level: all_tables_by_caption(systems, baseline)
        for level, systems in reports_by_level.items()
    }
    paper_by_level = dict[Level, dict[str, Table]]()
    for level, systems in [*reports_by_level.items()][:1]:
        paper_by_level[level] = paper_tables_by_caption(systems, baseline)
    file_contents: dict[str, str | pl.DataFrame] = {
        **{
            f"{stems_by_name[report.name]}.{report.level}.parquet": report.per_query
            for report in reports
        },
        "report.json": _format_report_json(reports, reports_by_level, provenance, baseline),
        "report.md": _format_report_markdown(reports_by_level, tables_by_level, provenance),
        "report.tex": tables_to_latex(paper_by_level),
    }
    write_texts_and_frames(directory, file_contents)


def _reports_by_level(reports: Sequence[Report]) -> dict[Level, list[Report]]:
    """Give the reports of each level that has any, in the order of ``LEVELS``."""
    reports_by_level = dict[Level, list[Report]]()
    for level in LEVELS:
        of_level = [report for report in reports if report.level == level]
        if of_level:
            reports_by_level[level] = of_level
    return reports_by_level


def write_texts_and_frames(
    directory: str | Path, content_by_file_name: Mapping[str, str | pl.DataFrame]
) -> None:
    """Write texts, and frames as Parquet, each file whole or not at all."""
    for file_name, content in content_by_file_name.items():
        with open_atomically(Path(directory) / file_name) as stream:
            if isinstance(content, str):
                stream.write(content.encode("utf-8", "backslashreplace"))
            else:
                content.write_parquet(stream)


def file_stem_by_system_name(system_names: Sequence[str]) -> dict[str, str]:
    """Give each pipeline a short name that every file system takes, in the same order; equal ones
    are numbered.

    >>> from memlab.evaluate.report_files import file_stem_by_system_name
    >>> file_stem_by_system_name(["hybrid(k=200) | mmr(lambda_=0.7)", "bm25", "BM25"])
    {'hybrid(k=200) | mmr(lambda_=0.7)': 'hybrid-k-200-mmr-lambda_-0.7', 'bm25': 'bm25', 'BM25':
    'bm25-2'}
    """
    stems_by_name: dict[str, str] = {}
    for system_name in dict.fromkeys(system_names):
        stem = re.sub(r"[^a-z0-9_.]+", "-", system_name.lower()).strip("-.")[:80] or "run"
        numbered_stems = (
            f"{stem}-{stem_number}" if stem_number > 1 else stem for stem_number in count(1)
        )
        stems_by_name[system_name] = next(
            candidate for candidate in numbered_stems if candidate not in stems_by_name.values()
        )
    return stems_by_name


def _choose_main_measure(measures: Sequence[Measure]) -> Measure:
    """Give the measure that systems are compared on: recall_all@10, else any recall_all, else the
    first.
    """
    complete_recalls = [own_measure for own_measure in measures if own_measure.name == "recall_all"]
    return next(
        (own_measure for own_measure in complete_recalls if own_measure.k == 10),
        complete_recalls[0] if complete_recalls else measures[0],
    )


def _predicate_by_compared_subset(reports: Sequence[Report]) -> dict[str, pl.Expr | None]:
    """Give the questions that are compared apart: all, and those of several sessions where there
    are any.
    """
    several = {f"{MULTI_SESSION} evidence sessions": HAS_SEVERAL_SESSIONS}
    return {"all": None} | (
        several if reports[0].per_query.filter(HAS_SEVERAL_SESSIONS).height else {}
    )


def _grouping_titles_by_column(report: Report) -> dict[str, str]:
    """Give what questions are grouped by; by their source where more than one measured it."""
    if len(count_questions_by_source(report.per_query)) < 2:
        return _GROUPED
    return {**_GROUPED, "source": "source of the question"}


def mean_tables_by_caption(reports: Sequence[Report]) -> dict[str, Table]:
    """Give the tables of means over all questions, and over those of several sessions where there
    are any.
    """
    document_noun = f"{reports[0].level}s"
    question_rows = reports[0].per_query
    question_count = format_question_count_by_source(question_rows)
    several_sessions = question_rows.filter(HAS_SEVERAL_SESSIONS)
    tables = {
        f"{document_noun}, all questions with evidence (n = {question_count})": results_table(
            reports
        )
    }
    if several_sessions.height:
        table = results_table(reports, by="evidence_sessions", group=MULTI_SESSION)
        question_count = format_question_count_by_source(several_sessions)
        tables[f"{document_noun}, evidence in two or more sessions (n = {question_count})"] = table
    return tables


def all_tables_by_caption(
    reports: Sequence[Report], baseline: str | None = None
) -> dict[str, Table]:
    """Give all tables of one level by their captions.

    :param baseline: as in :func:`write_reports`.
    """
    main_measure = _choose_main_measure(reports[0].measures)
    document_noun = f"{reports[0].level}s"
    tables = mean_tables_by_caption(reports)
    for grouping, group_words in _grouping_titles_by_column(reports[0]).items():
        tables[f"{document_noun}, {main_measure} by {group_words}"] = results_by_group_table(
            reports, main_measure, by=grouping
        )
    return tables | _test_tables_by_caption(reports, baseline)


def paper_tables_by_caption(
    reports: Sequence[Report], baseline: str | None = None
) -> dict[str, Table]:
    """Give the tables of one level that a paper prints, by their captions: four at most.

    Over all questions, and over those of several sessions where there are any: the means of every
    measure, and the tests of one measure against a baseline.

    :param baseline: as in :func:`write_reports`.
    """
    return mean_tables_by_caption(reports) | _test_tables_by_caption(reports, baseline)


def _test_tables_by_caption(reports: Sequence[Report], baseline: str | None) -> dict[str, Table]:
    """Give the tests of each group of questions by their captions; none of a single system."""
    if len(reports) < 2:
        return {}
    main_measure = _choose_main_measure(reports[0].measures)
    document_noun = f"{reports[0].level}s"
    baseline_name = _baseline_name_or_first(reports, baseline)
    tables = dict[str, Table]()
    for subset_name, subset_filter in _predicate_by_compared_subset(reports).items():
        caption = f"{document_noun}, {subset_name}: compared with {baseline_name} on {main_measure}"
        tables[caption] = compare_reports(
            reports, measure=main_measure, where=subset_filter, baseline=baseline_name
        )
    return tables


def _baseline_name_or_first(reports: Sequence[Report], baseline: str | None) -> str:
    """Give the name of the report that the others are tested against."""
    if baseline is None:
        return reports[0].name
    return reports[index_of_report_by_name_or_pipeline(reports, baseline)].name


def tables_to_latex(tables_by_level: Mapping[Level, Mapping[str, pl.DataFrame]]) -> str:
    """Write the tables of each level as LaTeX; one of more than nine columns is turned, so that it
    fits a page.
    """
    latex_parts = [_LATEX_NOTE]
    for level, of_level in tables_by_level.items():
        for table_number, (caption, table) in enumerate(of_level.items(), 1):
            is_wide = table.width > 9 and "p" not in table.columns
            if is_wide:
                table = table.transpose(
                    include_header=True, header_name="group", column_names=table.columns[0]
                )
            full_caption = f"{caption[0].upper()}{caption[1:]}."
            latex_parts.append(
                to_latex(table, caption=full_caption, label=f"tab:memlab-{level}-{table_number}")
            )
    return "\n\n".join(latex_parts) + "\n"


def _format_report_json(
    reports: Sequence[Report],
    reports_by_level: Mapping[Level, list[Report]],
    provenance: Mapping[str, Any],
    baseline: str | None,
) -> str:
    comparisons = list[dict[str, Any]]()
    for level, systems in reports_by_level.items():
        baseline_name = _baseline_name_or_first(systems, baseline)
        if len(systems) > 1:
            comparisons += _iter_comparison_records(level, systems, baseline_name)
    report_rows = [
        {
            "name": report.name,
            "level": report.level,
            "n": report.per_query.height,
            "measures": [str(own_measure) for own_measure in report.measures],
            "seed": report.seed,
            "provenance": dict(report.provenance),
            "summary": {
                grouping: report.summary(grouping).to_dicts()
                for grouping in ("all", *_grouping_titles_by_column(report))
            },
        }
        for report in reports
    ]
    document = {"provenance": dict(provenance), "reports": report_rows, "comparisons": comparisons}
    return json.dumps(document, ensure_ascii=False, indent=1, default=str, allow_nan=False) + "\n"


def _iter_comparison_records(
    level: Level, systems: Sequence[Report], baseline_name: str
) -> Iterator[dict[str, Any]]:
    """Give the tests of the systems of one level, of each measure that is compared and each group
    of questions.
    """
    measures = systems[0].measures
    main_measure = _choose_main_measure(measures)
    compared_measures = [
        measure for measure in measures if measure.name == "recall_all" or measure == main_measure
    ]
    for measure in compared_measures:
        for subset_name, subset_filter in _predicate_by_compared_subset(systems).items():
            tests = compare_reports(
                systems, measure=measure, where=subset_filter, baseline=baseline_name
            )
            yield {
                "level": level,
                "measure": str(measure),
                "baseline": baseline_name,
                "questions": subset_name,
                "systems": tests.to_dicts(),
            }


def _format_report_markdown(
    reports_by_level: Mapping[Level, list[Report]],
    tables_by_level: Mapping[Level, Mapping[str, pl.DataFrame]],
    provenance: Mapping[str, Any],
) -> str:
    def format_provenance_line(key: str, value: Any) -> str:
        plain = (
            value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
        )
        return f"- {key}: {escape_markdown(plain)}"

    markdown_parts = ["# Evaluation"]
    for level, systems in reports_by_level.items():
        question_rows = systems[0].per_query
        count_text = f"{question_rows.height:,} questions with evidence"
        counted_sources = format_question_count(
            count_text, describe_question_sources_or_empty(question_rows)
        )
        markdown_parts.append(f"## {level.title()}s as documents (n = {counted_sources})")
        markdown_parts += [
            " ".join([_NOTE, no_bold_system_note_or_empty(systems)]).rstrip(),
            tables_to_markdown(tables_by_level[level]),
        ]
    markdown_parts.append("## Where this comes from")
    all_reports = [
        level_report for systems in reports_by_level.values() for level_report in systems
    ]
    common_provenance = {
        entry_key: entry_value
        for entry_key, entry_value in all_reports[0].provenance.items()
        if all(
            level_report.provenance.get(entry_key) == entry_value for level_report in all_reports
        )
    }
    provenance_lines = [
        format_provenance_line(*entry) for entry in {**common_provenance, **provenance}.items()
    ]
    for report in all_reports:
        provenance_lines.append(f"- {escape_markdown(report.name)}, {report.level}s")
        provenance_lines += [
            f"  {format_provenance_line(entry_key, entry_value)}"
            for entry_key, entry_value in report.provenance.items()
            if entry_key not in common_provenance
        ]
    return "\n\n".join([*markdown_parts, "\n".join(provenance_lines)]) + "\n"
