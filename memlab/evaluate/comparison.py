"""Systems side by side on the same questions: means with their bounds, paired tests, and what must
not come back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from memlab.errors import DataError
from memlab.evaluate.confidence_intervals import Unit, clustering_scopes, sum_units
from memlab.evaluate.groups import (
    ALL_QUESTIONS,
    SEVERAL_SESSIONS,
    count_questions,
    multi_session_group,
    question_groups,
    split_by,
    with_sources,
)
from memlab.evaluate.measures import Measure, MeasureLike, read_measures
from memlab.evaluate.report import Report, are_shares
from memlab.evaluate.significance import (
    ALPHA,
    compare_paired,
    holm,
    randomisation_test,
    verdicts,
)
from memlab.evaluate.tables import BOUNDS, Table
from memlab.interval_labels import bold_note
from memlab.records import Dataset, Run
from memlab.records.dataset import count_by_source, describe_sources
from memlab.source_labels import COLUMN, explain_sources


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
        :func:`~memlab.evaluate.significance.compare_paired`; what compares a baseline with itself
        is null. Where some questions were proposed by a model, ``question_sources`` says how many.
    :raises DataError: when reports share a name, differ in level or questions, or nothing is left
        to compare.

    >>> import memlab
    >>> data = memlab.sample(turns=200)
    >>> done = memlab.run(["bm25", "bm25(b=0)"], data, encoder=None, levels=["turn"])
    >>> memlab.evaluate.compare_reports(done.reports, measure="recall_all@10").columns[:3]
    ['system', 'n', 'mean']
    """
    names = _check_comparable(reports)
    base = 0
    if baseline is not None:
        base = find_report(reports, baseline)
    if len(read_measures(measure)) > 1 or (stepwise and baseline is not None):
        raise DataError(
            "one measure is compared at a time, stepwise or with a baseline; call compare for each"
        )
    asked = _filter_questions(reports[0].per_query, where)
    ((column,),) = {tuple(map(str, report.pick(measure))) for report in reports}
    values = _align_values(asked["query_id"], [report.per_query for report in reports], column)
    seed, scopes = reports[0].seed, clustering_scopes(asked["scope"], unit or reports[0].unit)
    reference = np.maximum(np.arange(len(names)) - 1, 0) if stepwise else np.full(len(names), base)
    # Of one measure all columns are shares, or none is.
    shares = are_shares(reports[0].pick(measure), values.reshape(-1, 1)).repeat(len(names))
    compared = compare_paired(values, reference, scopes=scopes, shares=shares, seed=seed)
    table = pl.DataFrame({"system": names}).hstack(compared)
    return Table(with_sources(table, asked))


def compare_by_group(reports: Sequence[Report], *, measure: MeasureLike, **options: Any) -> Table:
    """Compare over all questions and over those with evidence in several sessions: one family of
    tests.

    :param options: ``baseline``, ``stepwise`` and ``unit``, as in :func:`compare_reports`.
    :returns: a row a group and system: ``group`` (see
        :func:`~memlab.evaluate.groups.question_groups`) and the columns of
        :func:`~memlab.evaluate.significance.verdicts`; without questions, rows whose ``n`` is 0.
    """
    groups = question_groups(reports[0].per_query)
    parts = []
    for name, where in groups.items():
        kept = None if name == ALL_QUESTIONS else where
        table = compare_reports(reports, measure=measure, where=kept, **options)
        parts.append(table.select(pl.lit(name).alias("group"), pl.all()))
    return verdicts(parts)


def group_means(report: Report, *, measure: MeasureLike) -> pl.DataFrame:
    """Give the mean of a measure in each of :func:`~memlab.evaluate.groups.question_groups`.

    :returns: a row a group: the columns of :meth:`Report.summary`, without ceiling and chance.
    """
    parts = [report.summary(measures=measure).with_columns(group=pl.lit(ALL_QUESTIONS))]
    by, group = multi_session_group(report.per_query)
    if by != "all":
        several = report.summary(by, measures=measure).filter(group=group)
        parts.append(several.with_columns(group=pl.lit(SEVERAL_SESSIONS)))
    return pl.concat(parts).drop(*BOUNDS)


def _filter_questions(asked: pl.DataFrame, where: pl.Expr | str | None) -> pl.DataFrame:
    """Keep the questions that pass a predicate; one that none passes is refused."""
    try:
        kept = (
            asked
            if where is None
            else asked.filter(pl.sql_expr(where) if isinstance(where, str) else where)
        )
    except (pl.exceptions.PolarsError, TypeError) as error:
        raise DataError(
            f"where={where!s} is no predicate over {', '.join(asked.columns)}: {error}"
        ) from None
    if kept.is_empty() and where is not None:
        raise DataError(f"no question passes where={where!s}; nothing to compare: loosen it")
    return kept


def find_report(reports: Sequence[Report], system: str) -> int:
    """Find a report by its name, or else by its pipeline's text."""
    for row, report in enumerate(reports):
        if report.name == system:
            return row
    for row, report in enumerate(reports):
        if report.provenance.get("pipeline") == system:
            return row
    names = ", ".join(report.name for report in reports)
    raise DataError(f"no report is called {system!r}; there are {names}")


def _align_values(key: pl.Series, tables: Iterable[pl.DataFrame], column: str) -> np.ndarray:
    """Give what each table says of the questions: (questions, tables)."""
    rows = [_align_questions(key, each)[column].to_numpy() for each in tables]
    return np.stack(rows, axis=1)


def _align_questions(key: pl.Series, table: pl.DataFrame) -> pl.DataFrame:
    """Give the rows of a table in the order of the questions."""
    if key.equals(table["query_id"]):
        return table
    return key.to_frame().join(table, on="query_id", how="left", maintain_order="left")


def _rows_by_group(summary: pl.DataFrame) -> dict[tuple[str, str], dict[str, Any]]:
    """Give the rows of :meth:`Report.summary` by group and measure."""
    found = {}
    for row in summary.iter_rows(named=True):
        found[row["group"], row["measure"]] = row
    return found


def _check_comparable(reports: Sequence[Report]) -> list[str]:
    """Check that reports can stand in one table, and give their names."""
    names = [report.name for report in reports]
    if not names or len(set(names)) < len(names):
        raise DataError(f"reports are called {names}; give at least one, and each its own name")
    first, asked = reports[0], set(reports[0].per_query["query_id"])
    for other in reports[1:]:
        if other.level != first.level or set(other.per_query["query_id"]) != asked:
            raise DataError(
                f"{first.name!r} ranks {first.level}s for {len(asked)} questions and "
                f"{other.name!r} {other.level}s for "
                f"{other.per_query.height}; compare reports of one level on the same questions"
            )
    return names


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
    _check_comparable(reports)
    groups = split_by(reports[0].per_query, by)
    if group not in groups:
        raise DataError(f"no group {group!r} by {by!r}; there are {', '.join(groups)}")
    columns = {str(measure): (measure, group) for measure in reports[0].pick(measures)}
    return _wide_table(reports, by, f"system (n = {count_questions(groups[group])})", columns)


def groups_table(reports: Sequence[Report], measure: MeasureLike, *, by: str) -> Table:
    """Give systems × groups of questions on one measure, with rows for the ceiling and chance.

    :returns: ``system`` and a column a group, ``name (n = …)``; otherwise as :func:`results_table`.
    """
    _check_comparable(reports)
    (wanted,) = reports[0].pick(measure)
    groups = split_by(reports[0].per_query, by)
    columns = {}
    is_mixed = len(count_by_source(reports[0].per_query)) > 1
    for group, part in groups.items():
        n = f"{part.height:,}"
        if is_mixed:
            n = count_questions(part)
        columns[f"{group} (n = {n})"] = (wanted, group)
    return _wide_table(reports, by, "system", columns)


def best_note(reports: Sequence[Report]) -> str:
    """Say where the tests over all questions are over too few scopes for any system to be bold;
    empty elsewhere."""
    scopes = clustering_scopes(reports[0].per_query["scope"], reports[0].unit)
    if scopes is None or len(reports) < 2:
        return ""
    return bold_note(len(np.unique(scopes)), len(reports))


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
    parts = []
    for report in reports:
        wanted = [
            measure for measure in report.measures if measure.name == name and measure.k is not None
        ]
        rows = report.summary(by, measures=wanted).filter(pl.col("group") == group)
        if rows.is_empty():
            raise DataError(
                f"report {report.name!r} has no {name}@k for group {group!r} of {by!r}; "
                "evaluate with measures such as "
                f"{name}@10"
            )
        cutoff = pl.col("measure").str.extract(r"@(\d+)$").cast(pl.Int64)
        parts.append(rows.with_columns(system=pl.lit(report.name), k=cutoff))
    interval = ("mean", "low", "high", "level", "unit", "units")
    curve = pl.concat(parts)
    columns = ["system", "k", *interval, "ceiling", "chance", "n"]
    if COLUMN in curve.columns:
        columns.append(COLUMN)
    return curve.select(columns)


def _wide_table(
    reports: Sequence[Report], by: str, label: str, columns: Mapping[str, tuple[Measure, str]]
) -> Table:
    """Give a column a measure and group of questions, and note which system is significantly the
    best in it."""
    groups = split_by(reports[0].per_query.with_row_index("_row"), by)
    asked = reports[0].per_query["query_id"]
    tables = [_align_questions(asked, report.per_query) for report in reports]
    summaries = [_rows_by_group(report.summary(by)) for report in reports]
    best: dict[str, str] = {}
    cells: dict[str, list[Any]] = {label: [*(report.name for report in reports), *BOUNDS]}
    for name, (measure, group) in columns.items():
        rows = [summary[group, str(measure)] for summary in summaries]
        cells[name] = [*(row["mean"] for row in rows), *(rows[0][bound] for bound in BOUNDS)]
        of_group = groups[group]
        places = of_group["_row"].to_numpy()
        values = np.stack([table[str(measure)].to_numpy()[places] for table in tables], axis=1)
        scopes = clustering_scopes(of_group["scope"], reports[0].unit)
        winner = _find_significant_best(sum_units(values, scopes)[0], reports[0].seed)
        if winner is not None:
            best[name] = reports[winner].name
    note = explain_sources(*(describe_sources(part) for part in groups.values()))
    return Table(cells, best=best, note=note, strict=False)


def _find_significant_best(values: np.ndarray, seed: int) -> int | None:
    """Find the system (a column) that tests find better than every other one, if one is; each row
    is a unit."""
    if not len(values):
        return None
    first, *others = np.argsort(-values.mean(axis=0), kind="stable")
    p: list[float] = []
    for other in (
        others
    ):  # the nearest first: most columns are a tie with it, which is all that need be tested
        p.append(randomisation_test(values[:, first] - values[:, other], seed=seed))
        if p[-1] >= ALPHA:
            return None
    return first if p and holm(np.array(p)).max() < ALPHA else None


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
    asked = data.questions.filter(pl.col("stale").list.len() > 0)
    if asked.is_empty() or any(run.level != "turn" for run in runs):
        raise DataError(
            f"{asked.height} questions of {data.name!r} name stale turns; give rankings of turns, "
            "and questions with "
            "the key stale"
        )

    rows = []
    for run in runs:
        found = stale_outcomes(run, data).select(pl.col(STALE_COLUMNS).mean()).row(0, named=True)
        rows.append({"system": run.name, "n": asked.height} | found)
    described = describe_sources(asked)
    table = pl.DataFrame(rows)
    if described:
        table = table.with_columns(pl.lit(described).alias(COLUMN))
    return table


def stale_outcomes(run: Run, data: Dataset) -> pl.DataFrame:
    """Say of each question with must-exclude turns what :func:`stale_table` counts.

    :returns: ``query_id``, ``scope`` and a Boolean column for each of :data:`STALE_COLUMNS`.
    """
    asked = data.questions.filter(pl.col("stale").list.len() > 0)
    stale, current = (_evidence_places(run, asked, of) for of in ("stale", "evidence"))
    above = (current["first"] < stale["first"]).fill_null(False)
    columns = stale["first"] <= 10, current["last"] <= 10, above
    return asked.select("query_id", "scope").with_columns(
        [each.alias(name) for each, name in zip(columns, STALE_COLUMNS, strict=True)]
    )


def _evidence_places(run: Run, asked: pl.DataFrame, column: str) -> pl.DataFrame:
    """Give the best and the worst rank of each question's turns; what is not ranked stands behind
    all."""
    pairs = (
        asked.select("query_id", doc_id=pl.col(column).list.unique()).explode("doc_id").drop_nulls()
    )
    ranks = pairs.join(run.frame, on=["query_id", "doc_id"], how="left").group_by("query_id")
    rank = pl.col("rank").fill_null(2**31 - 1)
    found = ranks.agg(first=rank.min(), last=rank.max())
    return asked.select("query_id").join(found, on="query_id", how="left", maintain_order="left")


def compare_outcomes(
    outcomes: pl.DataFrame,
    *,
    baseline: str | None = None,
    unit: Unit = "auto",
    seed: int = 0,
) -> Table:
    """Compare conditions by what came out for each question: paired tests against one of them.

    :param outcomes: ``system`` (a condition), ``query_id``, ``scope`` and ``hit``, a truth value
        or a number; questions that some condition lacks are left out.
    :param baseline: the condition to compare with; the first by default.
    :param unit: what is independent, as in :func:`compare_reports`.
    :returns: a row a condition: ``system`` and the columns of
        :func:`~memlab.evaluate.significance.compare_paired`; none where no question is left.

    >>> import polars as pl
    >>> from memlab.evaluate.comparison import compare_outcomes
    >>> both = {"system": ["a", "b"] * 2, "query_id": ["p", "p", "q", "q"]}
    >>> both["hit"] = [True, True, False, True]
    >>> table = compare_outcomes(pl.DataFrame({**both, "scope": "ann"}))
    >>> table.select("system", "mean", "difference").rows()
    [('a', 0.5, None), ('b', 1.0, 0.5)]
    """
    keys = ["query_id", "scope"]
    wide = outcomes.pivot("system", index=keys, values="hit", maintain_order=True).drop_nulls()
    values = wide.drop(keys)
    names = values.columns
    base = names.index(baseline) if baseline in names else 0
    numbers = values.cast(pl.Float64).to_numpy().reshape(values.height, len(names))
    reference = np.full(len(names), base, dtype=np.int64)
    scopes = clustering_scopes(wide["scope"], unit)
    tested = compare_paired(numbers, reference, scopes=scopes, seed=seed)
    rows = pl.DataFrame({"system": names}, schema={"system": pl.String}).hstack(tested)
    return Table(rows.filter(pl.col("n") > 0))
