"""Systems side by side on the same questions: means with their bounds, paired tests, and what must
not come back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from memlab.errors import DataError
from memlab.evaluate.confidence_intervals import (
    Unit,
    scopes_if_they_are_the_unit,
    sums_and_sizes_of_units,
)
from memlab.evaluate.evaluation_report import Report, are_means_shares_of_questions
from memlab.evaluate.groups_of_questions import (
    ALL_QUESTIONS,
    SEVERAL_SESSIONS,
    add_question_sources_column,
    format_question_count_by_source,
    group_predicates_by_name,
    multi_session_by_and_group,
    split_questions_by_column,
)
from memlab.evaluate.printed_tables import BOUNDS, Table
from memlab.evaluate.ranking_measures import Measure, MeasureLike, read_measures
from memlab.evaluate.significance_tests import (
    ALPHA,
    compare_paired,
    holm,
    randomisation_test,
    verdicts,
)
from memlab.interval_and_p_labels import no_best_system_note_or_empty
from memlab.question_source_labels import COLUMN, explain_question_sources_or_empty
from memlab.records import Dataset, Run
from memlab.records.dataset import count_questions_by_source, describe_question_sources_or_empty


def compare_reports(
    reports: Sequence[Report],
    *,
    measure: MeasureLike,
    baseline: str | None = None,
    stepwise: bool = False,
    where: pl.Expr | str | None = None,
    unit: Unit | None = None,
) -> Table:
    """Compare systems with a baseline on the same questions: paired tests, intervals, wins and
    losses.

    :param measure: one that every report has.
    :param baseline: name of the report to compare with, or the text of its pipeline; the first by
        default.
    :param stepwise: compare each system with the one before it: what does each step of an ablation
        add?
    :param where: keeps some questions, as a predicate over ``per_query``:
        ``"n_evidence_sessions >= 2"`` or ``pl.col("n_evidence_sessions") >= 2``.
    :param unit: what is independent, and flipped by the test: ``question``, ``scope``, or ``auto``:
        whole scopes where there are five or more and one has several questions; that of the reports
        by default.
    :returns: a row a system: ``system`` and the columns of
        :func:`~memlab.evaluate.significance_tests.compare_paired`; what compares a baseline with
        itself is null. Where some questions were proposed by a model, ``question_sources`` says how
        many.
    :raises DataError: when reports share a name, differ in level or questions, or nothing is left
        to compare.

    >>> import memlab
    >>> data = memlab.sample(turns=200)
    >>> done = memlab.run(["bm25", "bm25(b=0)"], data, encoder=None, levels=["turn"])
    >>> memlab.evaluate.compare_reports(done.reports, measure="recall_all@10").columns[:3]
    ['system', 'n', 'mean']
    """
    system_names = _check_comparable_and_list_names(reports)
    baseline_row = 0
    if baseline is not None:
        baseline_row = index_of_report_by_name_or_pipeline(reports, baseline)
    if len(read_measures(measure)) > 1 or (stepwise and baseline is not None):
        raise DataError(
            "one measure is compared at a time, stepwise or with a baseline; call compare for each"
        )
    question_rows = _filter_questions_or_raise_if_none(reports[0].per_query, where)
    ((column,),) = {tuple(map(str, report.pick(measure))) for report in reports}
    score_matrix = _score_matrix(
        question_rows["query_id"], [report.per_query for report in reports], column
    )
    seed = reports[0].seed
    scopes = scopes_if_they_are_the_unit(question_rows["scope"], unit or reports[0].unit)
    reference = (
        np.maximum(np.arange(len(system_names)) - 1, 0)
        if stepwise
        else np.full(len(system_names), baseline_row)
    )
    # Of one measure all columns are shares, or none is.
    is_share = are_means_shares_of_questions(
        reports[0].pick(measure), score_matrix.reshape(-1, 1)
    ).repeat(len(system_names))
    comparison = compare_paired(score_matrix, reference, scopes=scopes, shares=is_share, seed=seed)
    table = pl.DataFrame({"system": system_names}).hstack(comparison)
    return Table(add_question_sources_column(table, question_rows))


def compare_reports_by_group(
    reports: Sequence[Report], *, measure: MeasureLike, **options: Any
) -> Table:
    """Compare over all questions and over those with evidence in several sessions: one family of
    tests.

    :param options: ``baseline``, ``stepwise`` and ``unit``, as in :func:`compare_reports`.
    :returns: a row a group and system: ``group`` (see
        :func:`~memlab.evaluate.groups_of_questions.group_predicates_by_name`) and the columns of
        :func:`~memlab.evaluate.significance_tests.verdicts`; without questions, rows whose ``n`` is
        0.
    """
    groups = group_predicates_by_name(reports[0].per_query)
    group_tables = []
    for group_name, where in groups.items():
        group_filter = None if group_name == ALL_QUESTIONS else where
        table = compare_reports(reports, measure=measure, where=group_filter, **options)
        group_tables.append(table.select(pl.lit(group_name).alias("group"), pl.all()))
    return verdicts(group_tables)


def judge_selectors_and_settings(
    reports_by_base: Mapping[str, Sequence[Report]],
    settings: pl.DataFrame,
    *,
    measure: MeasureLike,
    swept_base: str,
) -> Table:
    """Judge every selector with its defaults and every setting of them as one family of tests.

    :param reports_by_base: by the ranking that is chosen from: its own report, and those of the
        selectors on it.
    :param settings: what :func:`memlab.experiments.sweep` gave, of one or several parameters.
    :param swept_base: the ranking that the settings choose from.
    :returns: the columns of :func:`~memlab.evaluate.significance_tests.verdicts`, and ``group``,
        ``base`` (the ranking that is chosen from), ``system`` (the selector, with its setting) and
        ``selector``, which only the settings have.
    """
    tables = []
    for base, base_reports in reports_by_base.items():
        table = compare_reports_by_group(base_reports, measure=measure).with_columns(
            base=pl.lit(base)
        )
        selector_name = pl.col("system").str.strip_prefix(f"{base} | ")
        tables.append(table.with_columns(selector_name))
    setting_name = pl.format("{}({} = {})", "system", "parameter", "setting")
    named_settings = settings.with_columns(system=setting_name, selector="system")
    tables.append(named_settings.with_columns(base=pl.lit(swept_base)))
    return verdicts(tables)


def mean_rows_by_question_group(report: Report, *, measure: MeasureLike) -> pl.DataFrame:
    """Give the mean of a measure in every group of questions.

    :returns: a row a group: the columns of :meth:`Report.summary`, without ceiling and chance.
    """
    group_summaries = [report.summary(measures=measure).with_columns(group=pl.lit(ALL_QUESTIONS))]
    by, group = multi_session_by_and_group(report.per_query)
    if by != "all":
        several_sessions = report.summary(by, measures=measure).filter(group=group)
        group_summaries.append(several_sessions.with_columns(group=pl.lit(SEVERAL_SESSIONS)))
    return pl.concat(group_summaries).drop(*BOUNDS)


def _filter_questions_or_raise_if_none(
    questions: pl.DataFrame, where: pl.Expr | str | None
) -> pl.DataFrame:
    """Keep the questions that pass a predicate; one that none passes is refused."""
    try:
        kept_questions = (
            questions
            if where is None
            else questions.filter(pl.sql_expr(where) if isinstance(where, str) else where)
        )
    except (pl.exceptions.PolarsError, TypeError) as error:
        raise DataError(
            f"where={where!s} is no predicate over {', '.join(questions.columns)}: {error}"
        ) from None
    if kept_questions.is_empty() and where is not None:
        raise DataError(f"no question passes where={where!s}; nothing to compare: loosen it")
    return kept_questions


def index_of_report_by_name_or_pipeline(reports: Sequence[Report], system: str) -> int:
    """Find a report by its name, or else by its pipeline's text."""
    for report_row, report in enumerate(reports):
        if report.name == system:
            return report_row
    for report_row, report in enumerate(reports):
        if report.provenance.get("pipeline") == system:
            return report_row
    report_names = ", ".join(report.name for report in reports)
    raise DataError(f"no report is called {system!r}; there are {report_names}")


def _score_matrix(
    query_ids: pl.Series, score_tables: Iterable[pl.DataFrame], column: str
) -> np.ndarray:
    """Give what each table says of the questions: (questions, tables)."""
    score_columns = [
        _align_rows_with_questions(query_ids, score_table)[column].to_numpy()
        for score_table in score_tables
    ]
    return np.stack(score_columns, axis=1)


def _align_rows_with_questions(query_ids: pl.Series, score_table: pl.DataFrame) -> pl.DataFrame:
    """Give the rows of a table in the order of the questions."""
    if query_ids.equals(score_table["query_id"]):
        return score_table
    return query_ids.to_frame().join(score_table, on="query_id", how="left", maintain_order="left")


def _summary_row_by_group_and_measure(
    mean_rows: pl.DataFrame,
) -> dict[tuple[str, str], dict[str, Any]]:
    """Give the rows of :meth:`Report.summary` by group and measure."""
    rows_by_key = {}
    for row in mean_rows.iter_rows(named=True):
        rows_by_key[row["group"], row["measure"]] = row
    return rows_by_key


def _check_comparable_and_list_names(reports: Sequence[Report]) -> list[str]:
    """Check that reports can stand in one table, and give their names."""
    report_names = [report.name for report in reports]
    if not report_names or len(set(report_names)) < len(report_names):
        raise DataError(
            f"reports are called {report_names}; give at least one, and each its own name"
        )
    first_report = reports[0]
    query_ids = set(reports[0].per_query["query_id"])
    for other_report in reports[1:]:
        if (
            other_report.level != first_report.level
            or set(other_report.per_query["query_id"]) != query_ids
        ):
            raise DataError(
                f"{first_report.name!r} ranks {first_report.level}s for {len(query_ids)} questions "
                f"and {other_report.name!r} {other_report.level}s for "
                f"{other_report.per_query.height}; compare reports of one level on the same "
                "questions"
            )
    return report_names


def results_table(
    reports: Sequence[Report],
    *,
    measures: MeasureLike | Iterable[MeasureLike] | None = None,
    by: str = "all",
    group: str = "all",
) -> Table:
    """Give systems × measures over one group of questions, with rows for the ceiling and chance.

    :param reports: of one level and one set of questions.
    :param by: what the group is a group of, as in :meth:`Report.summary`.
    :param group: which group, such as ``"≥ 2"`` by ``evidence_sessions``; not needed for ``all``.
    :returns: ``system (n = …)`` and a column a measure; full precision. Printed, a system is bold
        where it is significantly the best: against each other one a paired randomisation test over
        questions, or scopes where there are five or more, corrected by Holm, with p < .05.
    :raises DataError: when there is no such group, or the reports do not belong in one table.
    """
    _check_comparable_and_list_names(reports)
    groups = split_questions_by_column(reports[0].per_query, by)
    if group not in groups:
        raise DataError(f"no group {group!r} by {by!r}; there are {', '.join(groups)}")
    columns = {str(measure): (measure, group) for measure in reports[0].pick(measures)}
    return _systems_by_columns_table(
        reports, by, f"system (n = {format_question_count_by_source(groups[group])})", columns
    )


def results_by_group_table(reports: Sequence[Report], measure: MeasureLike, *, by: str) -> Table:
    """Give systems × groups of questions on one measure, with rows for the ceiling and chance.

    :returns: ``system`` and a column a group, ``name (n = …)``; otherwise as :func:`results_table`.
    """
    _check_comparable_and_list_names(reports)
    (single_measure,) = reports[0].pick(measure)
    groups = split_questions_by_column(reports[0].per_query, by)
    columns = {}
    is_mixed = len(count_questions_by_source(reports[0].per_query)) > 1
    for group, group_rows in groups.items():
        question_count = f"{group_rows.height:,}"
        if is_mixed:
            question_count = format_question_count_by_source(group_rows)
        columns[f"{group} (n = {question_count})"] = (single_measure, group)
    return _systems_by_columns_table(reports, by, "system", columns)


def no_bold_system_note_or_empty(reports: Sequence[Report]) -> str:
    """Say where the tests over all questions are over too few scopes for any system to be bold;
    empty elsewhere."""
    scopes = scopes_if_they_are_the_unit(reports[0].per_query["scope"], reports[0].unit)
    if scopes is None or len(reports) < 2:
        return ""
    return no_best_system_note_or_empty(len(np.unique(scopes)), len(reports))


def cutoff_curve(
    reports: Sequence[Report], *, name: str = "recall_all", by: str = "all", group: str = "all"
) -> pl.DataFrame:
    """Give a measure over its cut-offs, for :func:`memlab.figures.curves.recall_curves`.

    :param reports: measured at several k.
    :param name: the measure's, without a cut-off.
    :param by: how questions are grouped, and which ``group`` is wanted.
    :returns: ``system``, ``k``, ``mean``, ``low``, ``high``, ``level``, ``unit``, ``units``,
        ``ceiling``, ``chance``, ``n``, and ``question_sources`` as :meth:`Report.summary` has it.
    :raises DataError: when the measure was not taken at any k, or the group is empty.
    """
    curve_parts = []
    for report in reports:
        cutoff_measures = [
            measure for measure in report.measures if measure.name == name and measure.k is not None
        ]
        curve_rows = report.summary(by, measures=cutoff_measures).filter(pl.col("group") == group)
        if curve_rows.is_empty():
            raise DataError(
                f"report {report.name!r} has no {name}@k for group {group!r} of {by!r}; "
                "evaluate with measures such as "
                f"{name}@10"
            )
        cutoff = pl.col("measure").str.extract(r"@(\d+)$").cast(pl.Int64)
        curve_parts.append(curve_rows.with_columns(system=pl.lit(report.name), k=cutoff))
    interval = ("mean", "low", "high", "level", "unit", "units")
    curve = pl.concat(curve_parts)
    columns = ["system", "k", *interval, "ceiling", "chance", "n"]
    if COLUMN in curve.columns:
        columns.append(COLUMN)
    return curve.select(columns)


def _systems_by_columns_table(
    reports: Sequence[Report],
    by: str,
    first_heading: str,
    measure_and_group_by_heading: Mapping[str, tuple[Measure, str]],
) -> Table:
    """Give a column a measure and group of questions, and note which system is significantly the
    best in it."""
    groups = split_questions_by_column(reports[0].per_query.with_row_index("_row"), by)
    query_ids = reports[0].per_query["query_id"]
    tables = [_align_rows_with_questions(query_ids, report.per_query) for report in reports]
    summaries = [_summary_row_by_group_and_measure(report.summary(by)) for report in reports]
    best_systems: dict[str, str] = {}
    cells: dict[str, list[Any]] = {first_heading: [*(report.name for report in reports), *BOUNDS]}
    for column_name, (measure, group) in measure_and_group_by_heading.items():
        group_rows = [summary[group, str(measure)] for summary in summaries]
        cells[column_name] = [
            *(row["mean"] for row in group_rows),
            *(group_rows[0][bound] for bound in BOUNDS),
        ]
        group_questions = groups[group]
        group_places = group_questions["_row"].to_numpy()
        group_values = np.stack(
            [table[str(measure)].to_numpy()[group_places] for table in tables], axis=1
        )
        scopes = scopes_if_they_are_the_unit(group_questions["scope"], reports[0].unit)
        winner = _column_of_significant_best(
            sums_and_sizes_of_units(group_values, scopes)[0], reports[0].seed
        )
        if winner is not None:
            best_systems[column_name] = reports[winner].name
    note = explain_question_sources_or_empty(
        *(describe_question_sources_or_empty(group_part) for group_part in groups.values())
    )
    return Table(cells, best=best_systems, note=note, strict=False)


def _column_of_significant_best(unit_values: np.ndarray, seed: int) -> int | None:
    """Find the system (a column) that tests find better than every other one, if one is; each row
    is a unit."""
    if not len(unit_values):
        return None
    best_column, *other_columns = np.argsort(-unit_values.mean(axis=0), kind="stable")
    p_values: list[float] = []
    for other_column in (
        other_columns
    ):  # the nearest first: most columns are a tie with it, which is all that need be tested
        p_values.append(
            randomisation_test(
                unit_values[:, best_column] - unit_values[:, other_column], seed=seed
            )
        )
        if p_values[-1] >= ALPHA:
            return None
    return best_column if p_values and holm(np.array(p_values)).max() < ALPHA else None


STALE_COLUMNS = ("stale@10", "current@10", "current first")
"""What :func:`stale_table` says of each system."""


def stale_table(runs: Sequence[Run], data: Dataset) -> pl.DataFrame:
    """Say of rankings whether must-exclude turns come back, and whether what holds stands above
    them.

    :param runs: rankings of turns.
    :returns: ``system``, ``n`` (questions with ``stale`` turns), and shares of these questions:
        ``stale@10`` (a stale turn is among the first ten), ``current@10`` (all evidence is) and
        ``current first`` (the first turn of evidence was retrieved and stands above every stale
        one).
    :raises DataError: when a run ranks sessions, or no question has such turns.

    >>> import memlab
    >>> from memlab.evaluate import stale_table
    >>> data = memlab.load("data/facts/updates.jsonl")
    >>> run = memlab.pipeline("bm25").run(memlab.Bench.of(data, encoder=None))
    >>> stale_table([run], data)["n"].item()
    60
    """
    stale_questions = data.questions.filter(pl.col("stale").list.len() > 0)
    if stale_questions.is_empty() or any(run.level != "turn" for run in runs):
        raise DataError(
            f"{stale_questions.height} questions of {data.name!r} name stale turns; give rankings "
            "of turns, and questions with the key stale"
        )

    system_rows = []
    for run in runs:
        mean_outcomes = (
            stale_outcomes_by_question(run, data)
            .select(pl.col(STALE_COLUMNS).mean())
            .row(0, named=True)
        )
        system_rows.append({"system": run.name, "n": stale_questions.height} | mean_outcomes)
    source_text = describe_question_sources_or_empty(stale_questions)
    table = pl.DataFrame(system_rows)
    if source_text:
        table = table.with_columns(pl.lit(source_text).alias(COLUMN))
    return table


def stale_outcomes_by_question(run: Run, data: Dataset) -> pl.DataFrame:
    """Say of each question with must-exclude turns what :func:`stale_table` counts.

    :returns: ``query_id``, ``scope`` and a Boolean column for each of :data:`STALE_COLUMNS`.
    """
    stale_questions = data.questions.filter(pl.col("stale").list.len() > 0)
    stale_places = _first_and_last_rank_of_each_question(run, stale_questions, "stale")
    current_places = _first_and_last_rank_of_each_question(run, stale_questions, "evidence")
    is_current_above = (current_places["first"] < stale_places["first"]).fill_null(False)
    columns = [stale_places["first"] <= 10, current_places["last"] <= 10, is_current_above]
    named_columns = dict(zip(STALE_COLUMNS, columns, strict=True))
    return stale_questions.select("query_id", "scope").with_columns(**named_columns)


def _first_and_last_rank_of_each_question(
    run: Run, questions: pl.DataFrame, turns_column: str
) -> pl.DataFrame:
    """Give the best and the worst rank of each question's turns; what is not ranked stands behind
    all."""
    evidence_pairs = (
        questions.select("query_id", doc_id=pl.col(turns_column).list.unique())
        .explode("doc_id")
        .drop_nulls()
    )
    # Few questions name such turns: to match the ranks of all takes ten times as long.
    ranked_rows = run.frame.filter(pl.col("query_id").is_in(questions["query_id"].implode()))
    ranks = evidence_pairs.join(ranked_rows, on=["query_id", "doc_id"], how="left").group_by(
        "query_id"
    )
    filled_rank = pl.col("rank").fill_null(2**31 - 1)
    rank_ends = ranks.agg(first=filled_rank.min(), last=filled_rank.max())
    return questions.select("query_id").join(
        rank_ends, on="query_id", how="left", maintain_order="left"
    )


def compare_question_outcomes(
    outcomes: pl.DataFrame,
    *,
    baseline: str | None = None,
    unit: Unit = "auto",
    seed: int = 0,
) -> Table:
    """Compare conditions by what came out for each question: paired tests against one of them.

    :param outcomes: ``system`` (a condition), ``query_id``, ``scope`` and ``hit``, a truth value
        or a number; questions that some condition lacks are left out. Of those with ``source`` the
        table says who wrote them.
    :param baseline: the condition to compare with; the first by default.
    :param unit: what is independent, as in :func:`compare_reports`.
    :returns: a row a condition: ``system`` and the columns of
        :func:`~memlab.evaluate.significance_tests.compare_paired`; none where no question is left.

    >>> import polars as pl
    >>> from memlab.evaluate.system_comparison import compare_question_outcomes
    >>> both = {"system": ["a", "b"] * 2, "query_id": ["p", "p", "q", "q"]}
    >>> both["hit"] = [True, True, False, True]
    >>> table = compare_question_outcomes(pl.DataFrame({**both, "scope": "ann"}))
    >>> table.select("system", "mean", "difference").rows()
    [('a', 0.5, None), ('b', 1.0, 0.5)]
    """
    key_columns = ["query_id", "scope"]
    hits_by_system = outcomes.pivot(
        "system", index=key_columns, values="hit", maintain_order=True
    ).drop_nulls()
    system_hits = hits_by_system.drop(key_columns)
    system_names = system_hits.columns
    baseline_column = system_names.index(baseline) if baseline in system_names else 0
    hit_matrix = (
        system_hits.cast(pl.Float64).to_numpy().reshape(system_hits.height, len(system_names))
    )
    reference = np.full(len(system_names), baseline_column, dtype=np.int64)
    scopes = scopes_if_they_are_the_unit(hits_by_system["scope"], unit)
    comparison = compare_paired(hit_matrix, reference, scopes=scopes, seed=seed)
    system_rows = pl.DataFrame({"system": system_names}, schema={"system": pl.String}).hstack(
        comparison
    )
    compared_questions = outcomes.join(hits_by_system, on=key_columns, how="semi")
    return Table(
        add_question_sources_column(system_rows.filter(pl.col("n") > 0), compared_questions)
    )
