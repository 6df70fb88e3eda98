"""Systems side by side on the same questions: tables of means with what bounds them, and paired tests."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from memlab.errors import DataError
from memlab.evaluate.groups import split_by
from memlab.evaluate.measures import Measure
from memlab.evaluate.printing import BOUNDS, Table
from memlab.evaluate.report import Report, of_unit
from memlab.evaluate.significance import ALPHA, Unit, bootstrap_interval, holm, paired, randomisation_test


def compare(
    reports: Sequence[Report],
    *,
    measure: str | Measure,
    baseline: str | None = None,
    stepwise: bool = False,
    where: pl.Expr | str | None = None,
    unit: Unit = "query",
) -> Table:
    """Compare systems with a baseline on the same questions: paired tests, intervals, wins and losses.

    :param measure: one that every report has.
    :param baseline: name of the report to compare with; the first by default.
    :param stepwise: compare each system with the one before it: what does each step of an ablation add?
    :param where: keeps some questions, as a predicate over ``per_query``: ``"n_evidence_sessions >= 2"`` or
        ``pl.col("n_evidence_sessions") >= 2``.
    :param unit: what the bootstrap draws and the test flips: questions or whole scopes.
    :returns: a row a system: ``system``, ``n``, ``mean`` with its 95 % interval ``mean_low``, ``mean_high``, and the
        columns of :func:`paired`; those of the baseline itself are null.
    :raises DataError: when reports share a name, differ in level or questions, or nothing is left to compare.
    """
    names, base = comparable(reports, baseline)
    wanted = reports[0].pick(measure)[0]
    asked = where_kept(reports[0].per_query, where)
    for report in reports:
        report.pick(wanted)
    values = aligned(asked, [report.per_query for report in reports], str(wanted))
    seed, scopes = reports[0].seed, of_unit(asked, unit)
    low, high = bootstrap_interval(values, scopes=scopes, seed=seed)
    means = {"system": names, "n": [len(values)] * len(names), "mean": values.mean(axis=0)}
    reference = np.maximum(np.arange(len(names)) - 1, 0) if stepwise else np.full(len(names), base)
    intervals = pl.DataFrame({**means, "mean_low": low, "mean_high": high}).fill_nan(None)
    return Table(intervals.hstack(paired(values, reference, scopes=scopes, seed=seed)))


def where_kept(asked: pl.DataFrame, where: pl.Expr | str | None) -> pl.DataFrame:
    """Keep the questions that pass a predicate.

    :raises DataError: when it is none over these columns, or keeps no question.
    """
    if where is not None:
        try:
            asked = asked.filter(pl.sql_expr(where) if isinstance(where, str) else where)
        except (pl.exceptions.PolarsError, TypeError) as error:
            reason = str(error).splitlines()[0].split(";")[0]
            raise DataError(
                f"where={where!s} keeps no questions ({reason}); write a predicate such as 'n_evidence_sessions >= 2' "
                f"over {', '.join(asked.columns)}"
            ) from None
    if not asked.height:
        raise DataError("no question passes `where`; nothing to compare: loosen it")
    return asked


def aligned(asked: pl.DataFrame, tables: Iterable[pl.DataFrame], column: str) -> np.ndarray:
    """Give what each table says of the questions: (questions, tables)."""
    key = asked.select("query_id")
    values = (table.select("query_id", column) for table in tables)
    rows = [key.join(each, on="query_id", how="left", maintain_order="left") for each in values]
    return np.stack([each[column].to_numpy() for each in rows], axis=1)


def comparable(reports: Sequence[Report], baseline: str | None = None) -> tuple[list[str], int]:
    """Check that reports can stand in one table; give their names and the place of the baseline."""
    if not reports:
        raise DataError("no report to compare; give at least one")
    names = [r.name for r in reports]
    if len(set(names)) < len(names):
        twice = next(n for n in names if names.count(n) > 1)
        raise DataError(f"two reports are called {twice!r}; give each run its own name")
    if baseline is not None and baseline not in names:
        raise DataError(f"no report is called {baseline!r}; there are {', '.join(names)}")
    first = reports[0]
    asked = first.per_query["query_id"].sort()
    for report in reports[1:]:
        if report.level != first.level:
            raise DataError(
                f"{first.name!r} ranks {first.level}s and {report.name!r} {report.level}s; compare level by level"
            )
        if not report.per_query["query_id"].sort().equals(asked):
            raise DataError(
                f"{first.name!r} ({asked.len()} questions) and {report.name!r} ({report.per_query.height}) were not "
                "measured on the same questions; evaluate both on one dataset"
            )
    return names, names.index(baseline) if baseline is not None else 0


def results_table(
    reports: Sequence[Report],
    *,
    measures: str | Measure | Iterable[str | Measure] | None = None,
    by: str = "all",
    group: str = "all",
) -> Table:
    """Give systems × measures over one group of questions, with rows for the ceiling and chance.

    :param reports: of one level and one set of questions.
    :param by: what the group is a group of, as in :meth:`Report.summary`.
    :param group: which group, such as ``"≥ 2"`` by ``evidence_sessions``; not needed for ``all``.
    :returns: ``system (n = …)`` and a column a measure; full precision. Printed, a system is bold where it is
        significantly the best: against each other one a paired randomisation test, corrected by Holm, with p < .05.
    :raises DataError: when there is no such group, or the reports do not belong in one table.
    """
    comparable(reports)
    groups = split_by(reports[0].per_query, by)
    if group not in groups:
        raise DataError(f"no group {group!r} by {by!r}; there are {', '.join(groups)}")
    columns = {str(measure): (measure, group) for measure in reports[0].pick(measures)}
    return _wide(reports, by, f"system (n = {groups[group].height:,})", columns)


def groups_table(reports: Sequence[Report], measure: str | Measure, *, by: str = "question_type") -> Table:
    """Give systems × groups of questions on one measure, with rows for the ceiling and chance.

    :returns: ``system`` and a column a group, ``name (n = …)``; otherwise as :func:`results_table`.
    """
    comparable(reports)
    (wanted,) = reports[0].pick(measure)
    groups = split_by(reports[0].per_query, by)
    columns = {f"{group} (n = {part.height:,})": (wanted, group) for group, part in groups.items()}
    return _wide(reports, by, "system", columns)


def _wide(reports: Sequence[Report], by: str, label: str, columns: Mapping[str, tuple[Measure, str]]) -> Table:
    """Give a column a measure and group of questions, and note which system is significantly the best in it."""
    parts = [split_by(report.per_query, by) for report in reports]
    best: dict[str, str] = {}
    cells: dict[str, list[Any]] = {label: [*(report.name for report in reports), *BOUNDS]}
    for name, (measure, group) in columns.items():
        of_group = pl.col("group") == group
        rows = [r.summary(by, measures=measure).row(by_predicate=of_group, named=True) for r in reports]
        cells[name] = [*(row["mean"] for row in rows), *(rows[0][bound] for bound in BOUNDS)]
        winner = _significantly_best(reports, [part[group] for part in parts], str(measure))
        if winner is not None:
            best[name] = winner
    return Table(cells, best=best, strict=False)


def _significantly_best(reports: Sequence[Report], parts: Sequence[pl.DataFrame], measure: str) -> str | None:
    """Name the system that tests find better than every other on these questions, if one is."""
    values = aligned(parts[0], parts, measure)
    first, *others = np.argsort(-values.mean(axis=0), kind="stable")
    p: list[float] = []
    for other in others:  # the nearest first: most columns are a tie with it, which is all that need be tested
        p.append(randomisation_test(values[:, first] - values[:, other], seed=reports[0].seed))
        if p[-1] >= ALPHA:
            return None
    return reports[first].name if p and holm(np.array(p)).max() < ALPHA else None
