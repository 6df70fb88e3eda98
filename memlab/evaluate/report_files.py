"""The files of an evaluation: report.json, report.md, report.tex and per-query Parquet."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Any

import polars as pl

from memlab.evaluate.comparison import (
    best_note,
    compare_reports,
    find_report,
    groups_table,
    results_table,
)
from memlab.evaluate.groups import HAS_SEVERAL_SESSIONS, MULTI_SESSION, count_questions
from memlab.evaluate.measures import Measure
from memlab.evaluate.report import Report
from memlab.evaluate.tables import Table, tables_to_markdown, to_latex
from memlab.files import open_atomically
from memlab.records import LEVELS, Level
from memlab.records.dataset import count_by_source, describe_sources
from memlab.source_labels import format_count
from memlab.terminal import escape_markdown

_NOTE = (
    "Bold is significantly the best: better than each other system by a paired randomisation test with Holm's "
    "correction, p < .05. The ceiling is what a perfect ranking reaches, chance what a blind one is expected to; – "
    "where no closed form exists. Beside an interval stand its level and what was taken as independent: questions, or "
    "scopes where there are five or more. Intervals of shares are Wilson's, of differences of shares Newcombe's, "
    "others bootstraps; over scopes they are t intervals. Those of differences hold together: beside m tests each has "
    "the level 1 − .05 / m."
)
_LATEX_NOTE = (
    r"% \usepackage{booktabs}; letters beyond Latin need xelatex; full precision is in the JSON. Bold is the"
    "\n% significantly best: against each other system a paired randomisation test with Holm's correction, p < .05."
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
    ``report.md`` all tables of each level; ``report.tex`` those of :func:`paper_tables`, of turns
    where turns were ranked; ``NAME.LEVEL.parquet`` the per-query results of each report, where NAME
    is :func:`file_names`'s.

    :param reports: any number of systems at one or both levels.
    :param provenance: what all reports share.
    :param baseline: the system that the others are tested against, by its name or the text of its
        pipeline; the first of a level by default.
    :raises DataError: when two reports of one level do not belong in one table, or none is called
        ``baseline``.
    :raises ExportError: when a file cannot be written.
    """
    names = file_names([report.name for report in reports])
    levels = {
        level: systems for level in LEVELS if (systems := [r for r in reports if r.level == level])
    }
    tables = {level: report_tables(systems, baseline) for level, systems in levels.items()}
    paper = dict[Level, dict[str, Table]]()
    for level, systems in [*levels.items()][:1]:
        paper[level] = paper_tables(systems, baseline)
    files: dict[str, str | pl.DataFrame] = {
        **{f"{names[report.name]}.{report.level}.parquet": report.per_query for report in reports},
        "report.json": _report_json(reports, levels, provenance, baseline),
        "report.md": _report_markdown(levels, tables, provenance),
        "report.tex": latex_tables(paper),
    }
    write_files(directory, files)


def write_files(directory: str | Path, contents: Mapping[str, str | pl.DataFrame]) -> None:
    """Write texts, and frames as Parquet, each file whole or not at all."""
    for name, content in contents.items():
        with open_atomically(Path(directory) / name) as stream:
            if isinstance(content, str):
                stream.write(content.encode("utf-8", "backslashreplace"))
            else:
                content.write_parquet(stream)


def file_names(names: Sequence[str]) -> dict[str, str]:
    """Give each pipeline a short name that every file system takes, in the same order; equal ones are numbered.

    >>> from memlab.evaluate.report_files import file_names
    >>> file_names(["hybrid(k=200) | mmr(lambda_=0.7)", "bm25", "BM25"])
    {'hybrid(k=200) | mmr(lambda_=0.7)': 'hybrid-k-200-mmr-lambda_-0.7', 'bm25': 'bm25', 'BM25': 'bm25-2'}
    """
    files: dict[str, str] = {}
    for name in dict.fromkeys(names):
        stem = re.sub(r"[^a-z0-9_.]+", "-", name.lower()).strip("-.")[:80] or "run"
        numbered = (f"{stem}-{n}" if n > 1 else stem for n in count(1))
        files[name] = next(free for free in numbered if free not in files.values())
    return files


def _main_measure(measures: Sequence[Measure]) -> Measure:
    """Give the measure that systems are compared on: recall_all@10, else any recall_all, else the first."""
    ranked = [m for m in measures if m.name == "recall_all"]
    return next((m for m in ranked if m.k == 10), ranked[0] if ranked else measures[0])


def _compared_subsets(reports: Sequence[Report]) -> dict[str, pl.Expr | None]:
    """Give the questions that are compared apart: all, and those of several sessions where there are any."""
    several = {f"{MULTI_SESSION} evidence sessions": HAS_SEVERAL_SESSIONS}
    return {"all": None} | (
        several if reports[0].per_query.filter(HAS_SEVERAL_SESSIONS).height else {}
    )


def _groupings(report: Report) -> dict[str, str]:
    """Give what questions are grouped by; by their source where more than one measured it."""
    if len(count_by_source(report.per_query)) < 2:
        return _GROUPED
    return {**_GROUPED, "source": "source of the question"}


def main_tables(reports: Sequence[Report]) -> dict[str, Table]:
    """Give the tables of means over all questions, and over those of several sessions where there are any."""
    documents, asked = f"{reports[0].level}s", reports[0].per_query
    n, several = count_questions(asked), asked.filter(HAS_SEVERAL_SESSIONS)
    tables = {f"{documents}, all questions with evidence (n = {n})": results_table(reports)}
    if several.height:
        table = results_table(reports, by="evidence_sessions", group=MULTI_SESSION)
        n = count_questions(several)
        tables[f"{documents}, evidence in two or more sessions (n = {n})"] = table
    return tables


def report_tables(reports: Sequence[Report], baseline: str | None = None) -> dict[str, Table]:
    """Give all tables of one level by their captions.

    :param baseline: as in :func:`write_reports`.
    """
    main, documents = _main_measure(reports[0].measures), f"{reports[0].level}s"
    tables = main_tables(reports)
    for by, words in _groupings(reports[0]).items():
        tables[f"{documents}, {main} by {words}"] = groups_table(reports, main, by=by)
    return tables | _test_tables(reports, baseline)


def paper_tables(reports: Sequence[Report], baseline: str | None = None) -> dict[str, Table]:
    """Give the tables of one level that a paper prints, by their captions: four at most.

    Over all questions, and over those of several sessions where there are any: the means of every
    measure, and the tests of one measure against a baseline.

    :param baseline: as in :func:`write_reports`.
    """
    return main_tables(reports) | _test_tables(reports, baseline)


def _test_tables(reports: Sequence[Report], baseline: str | None) -> dict[str, Table]:
    """Give the tests of each group of questions by their captions; none of a single system."""
    if len(reports) < 2:
        return {}
    main, documents = _main_measure(reports[0].measures), f"{reports[0].level}s"
    name = _baseline_name(reports, baseline)
    tables = dict[str, Table]()
    for questions, where in _compared_subsets(reports).items():
        caption = f"{documents}, {questions}: compared with {name} on {main}"
        tables[caption] = compare_reports(reports, measure=main, where=where, baseline=name)
    return tables


def _baseline_name(reports: Sequence[Report], baseline: str | None) -> str:
    """Give the name of the report that the others are tested against."""
    if baseline is None:
        return reports[0].name
    return reports[find_report(reports, baseline)].name


def latex_tables(tables: Mapping[Level, Mapping[str, pl.DataFrame]]) -> str:
    """Write the tables of each level as LaTeX; one of more than nine columns is turned, so that it fits a page."""
    parts = [_LATEX_NOTE]
    for level, of_level in tables.items():
        for n, (caption, table) in enumerate(of_level.items(), 1):
            wide = table.width > 9 and "p" not in table.columns
            if wide:
                table = table.transpose(
                    include_header=True, header_name="group", column_names=table.columns[0]
                )
            named = f"{caption[0].upper()}{caption[1:]}."
            parts.append(to_latex(table, caption=named, label=f"tab:memlab-{level}-{n}"))
    return "\n\n".join(parts) + "\n"


def _report_json(
    reports: Sequence[Report],
    levels: Mapping[Level, list[Report]],
    provenance: Mapping[str, Any],
    baseline: str | None,
) -> str:
    names = {level: _baseline_name(systems, baseline) for level, systems in levels.items()}
    comparisons = [
        {
            "level": level,
            "measure": str(measure),
            "baseline": names[level],
            "questions": questions,
            "systems": compare_reports(
                systems, measure=measure, where=where, baseline=names[level]
            ).to_dicts(),
        }
        for level, systems in levels.items()
        if len(systems) > 1
        for measure in systems[0].measures
        if measure.name == "recall_all" or measure == _main_measure(systems[0].measures)
        for questions, where in _compared_subsets(systems).items()
    ]
    measured = [
        {
            "name": report.name,
            "level": report.level,
            "n": report.per_query.height,
            "measures": [str(m) for m in report.measures],
            "seed": report.seed,
            "provenance": dict(report.provenance),
            "summary": {by: report.summary(by).to_dicts() for by in ("all", *_groupings(report))},
        }
        for report in reports
    ]
    document = {"provenance": dict(provenance), "reports": measured, "comparisons": comparisons}
    return json.dumps(document, ensure_ascii=False, indent=1, default=str, allow_nan=False) + "\n"


def _report_markdown(
    levels: Mapping[Level, list[Report]],
    tables: Mapping[Level, Mapping[str, pl.DataFrame]],
    provenance: Mapping[str, Any],
) -> str:
    def line(key: str, value: Any) -> str:
        plain = (
            value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
        )
        return f"- {key}: {escape_markdown(plain)}"

    parts = ["# Evaluation"]
    for level, systems in levels.items():
        asked = systems[0].per_query
        counted = f"{asked.height:,} questions with evidence"
        n = format_count(counted, describe_sources(asked))
        parts.append(f"## {level.title()}s as documents (n = {n})")
        parts += [" ".join([_NOTE, best_note(systems)]).rstrip(), tables_to_markdown(tables[level])]
    parts.append("## Where this comes from")
    reports = [r for systems in levels.values() for r in systems]
    common = {
        k: v
        for k, v in reports[0].provenance.items()
        if all(r.provenance.get(k) == v for r in reports)
    }
    lines = [line(*each) for each in {**common, **provenance}.items()]
    for report in reports:
        lines.append(f"- {escape_markdown(report.name)}, {report.level}s")
        lines += [f"  {line(k, v)}" for k, v in report.provenance.items() if k not in common]
    return "\n\n".join([*parts, "\n".join(lines)]) + "\n"
