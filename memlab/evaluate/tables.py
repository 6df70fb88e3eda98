"""Tables of reports: systems in rows, measures or groups of questions in columns, with what bounds them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import polars as pl

from memlab.errors import DataError
from memlab.evaluate.comparison import comparable
from memlab.evaluate.measures import Measure
from memlab.evaluate.printing import BOUNDS
from memlab.evaluate.report import Report
from memlab.evaluate.significance import Unit


def results_table(
    reports: Sequence[Report],
    *,
    measures: str | Measure | Iterable[str | Measure] | None = None,
    by: str = "all",
    group: str | None = None,
    intervals: bool = False,
    unit: Unit = "query",
) -> pl.DataFrame:
    """Give systems × measures over one group of questions, with rows for the ceiling and chance.

    :param reports: of one level and one set of questions.
    :param by: what the group is a group of, as in :meth:`Report.summary`.
    :param group: which group, such as ``"≥ 2"`` by ``evidence_sessions``; not needed for ``all``.
    :param intervals: cells become ``{mean, low, high}``.
    :returns: ``system (n = …)`` and a column a measure; full precision.
    :raises DataError: when there is no such group, or the reports do not belong in one table.
    """
    comparable(reports)
    wanted = group if group is not None else "all"
    rows = {}
    for report in reports:
        rows[report.name] = report.summary(by, measures=measures, unit=unit).filter(pl.col("group") == wanted)
        if not rows[report.name].height:
            groups = report.summary(by)["group"].unique(maintain_order=True).to_list()
            raise DataError(f"no group {wanted!r} by {by!r}; there are {', '.join(groups)}")
    return _wide(rows, "measure", lambda row: row["measure"], intervals, n_in_first=True)


def groups_table(
    reports: Sequence[Report],
    measure: str | Measure,
    *,
    by: str = "question_type",
    intervals: bool = False,
    unit: Unit = "query",
) -> pl.DataFrame:
    """Give systems × groups of questions on one measure, with rows for the ceiling and chance.

    :param reports: of one level and one set of questions.
    :param by: what to group by, as in :meth:`Report.summary`.
    :returns: ``system`` and a column a group, ``name (n = …)``; full precision.
    """
    comparable(reports)
    rows = {r.name: r.summary(by, measures=measure, unit=unit) for r in reports}
    return _wide(rows, "group", lambda row: f"{row['group']} (n = {row['n']:,})", intervals, n_in_first=False)


def _wide(
    rows: dict[str, pl.DataFrame],
    key: str,
    header: Callable[[dict[str, Any]], str],
    intervals: bool,
    n_in_first: bool,
) -> pl.DataFrame:
    first = next(iter(rows.values()))
    label = f"system (n = {first['n'][0]:,})" if n_in_first else "system"
    columns: dict[str, Any] = {label: [*rows, *BOUNDS]}
    for cell in first.iter_rows(named=True):
        system_rows = [frame.filter(pl.col(key) == cell[key]).row(0, named=True) for frame in rows.values()]
        if intervals:
            cells = [{"mean": r["mean"], "low": r["low"], "high": r["high"]} for r in system_rows]
            columns[header(cell)] = [*cells, *({"mean": cell[b], "low": None, "high": None} for b in BOUNDS)]
        else:
            columns[header(cell)] = [*(r["mean"] for r in system_rows), *(cell[b] for b in BOUNDS)]
    return pl.DataFrame(columns, strict=False)
