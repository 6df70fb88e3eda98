"""Systems side by side on the same questions: tables of means with what bounds them, and paired tests."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from memlab.errors import DataError
from memlab.evaluate.groups import split_by
from memlab.evaluate.measures import Measure
from memlab.evaluate.printing import BOUNDS, Table, number, styled
from memlab.evaluate.report import Report
from memlab.evaluate.significance import Unit, bootstrap_interval, by_unit, holm, randomisation_test

_WIDTH = 30


class Comparison(pl.DataFrame):
    """A frame that :func:`compare` or :func:`climb` gave; printed, it shows intervals and p in full.

    >>> import polars as pl
    >>> from memlab.evaluate import Comparison
    >>> row = {"n": 20, "mean": 0.5, "difference": 0.1, "low": 0.02, "high": 0.18, "p": 0.01, "p_holm": 0.01}
    >>> print(Comparison([{"system": "mine", **row, "win": 3, "tie": 16, "loss": 1}]))
    system   n   mean  difference [95 %]       p      p (Holm)  win/tie/loss
    mine    20  0.500  +0.100 [+0.020, +0.180]  0.010  0.010     3/16/1
    """

    def __str__(self) -> str:
        if not {"system", "n", "mean", "difference", "low", "high", "p", "p_holm", "win"} <= set(self.columns):
            return super().__str__()
        named = self.columns[: self.columns.index("n")]
        rows = [[*named, "n", "mean", "difference [95 %]", "p", "p (Holm)", "win/tie/loss"]]
        for row in self.iter_rows(named=True):
            tested = ["baseline", "", "", ""]
            if row["difference"] is not None:
                interval = "{difference:+.3f} [{low:+.3f}, {high:+.3f}]".format(**row)
                tested = [interval, number(row["p"]), number(row["p_holm"]), "{win}/{tie}/{loss}".format(**row)]
            rows.append([*(_short(str(row[name])) for name in named), str(row["n"]), number(row["mean"]), *tested])
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        align = [str.rjust if name in ("n", "mean") else str.ljust for name in rows[0]]
        lines = ("  ".join(put(t, w) for put, t, w in zip(align, row, widths, strict=True)) for row in rows)
        return "\n".join(line.rstrip() for line in lines)

    __repr__ = __str__

    def _repr_html_(self, **_: object) -> str:
        return styled(self)


def _short(name: str) -> str:
    """Cut the middle out of a long name, whose ends tell systems apart."""
    return name if len(name) <= _WIDTH else f"{name[: _WIDTH // 2 - 1]}…{name[-(_WIDTH // 2) :]}"


def compare(
    reports: Sequence[Report],
    *,
    measure: str | Measure,
    baseline: str | None = None,
    where: pl.Expr | str | None = None,
    unit: Unit = "query",
    seed: int = 0,
) -> Comparison:
    """Compare systems on the same questions with one of them.

    :param measure: one that every report has.
    :param baseline: name of the report to compare with; the first by default.
    :param where: keeps some questions, as a predicate over ``per_query``: ``"n_evidence_sessions >= 2"`` or
        ``pl.col("n_evidence_sessions") >= 2``.
    :param unit: what the bootstrap draws and the test flips: questions or whole scopes.
    :returns: a row a system: ``system``, ``n``, ``mean``, ``difference`` to the baseline with its 95 % interval
        ``low``, ``high``, ``p`` (two-sided paired randomisation test), ``p_holm`` (over all systems compared here),
        and questions won, tied and lost: ``win``, ``tie``, ``loss``. The baseline's own are null.
    :raises DataError: when reports share a name, differ in level or questions, or nothing is left to compare.
    """
    names, base = comparable(reports, baseline)
    asked, values = _values(reports, measure, where)
    return _paired(names, values, np.full(len(names), base), asked["scope"].to_numpy(), unit, seed)


def climb(
    reports: Sequence[Report],
    *,
    measure: str | Measure,
    where: pl.Expr | str | None = None,
    unit: Unit = "query",
    seed: int = 0,
) -> Comparison:
    """Compare each system with the one before it: what does each step of a ladder add?

    :param reports: in the order of the steps; the other parameters are those of :func:`compare`.
    :returns: the columns of :func:`compare`, with ``difference`` and its test against the row above, ``p_holm`` over
        all steps, and the 95 % interval of the mean, ``mean_low`` and ``mean_high``. The first row's tests are null.
    :raises DataError: as :func:`compare` does.
    """
    names, _ = comparable(reports)
    asked, values = _values(reports, measure, where)
    scopes, before = asked["scope"].to_numpy(), np.maximum(np.arange(len(names)) - 1, 0)
    low, high = bootstrap_interval(*by_unit(values, scopes, unit), seed=seed)
    return _paired(names, values, before, scopes, unit, seed, mean_low=low, mean_high=high)


def _values(
    reports: Sequence[Report], measure: str | Measure, where: pl.Expr | str | None
) -> tuple[pl.DataFrame, np.ndarray]:
    """Give the questions that are compared, and what each report reached on them: (questions, reports)."""
    wanted = reports[0].pick(measure)[0]
    asked = reports[0].per_query
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
    for report in reports:
        report.pick(wanted)
    return asked, _aligned(asked, [report.per_query for report in reports], str(wanted))


def _aligned(asked: pl.DataFrame, tables: Iterable[pl.DataFrame], column: str) -> np.ndarray:
    """Give what each table says of the questions: (questions, tables)."""
    key = asked.select("query_id")
    values = (table.select("query_id", column) for table in tables)
    rows = [key.join(each, on="query_id", how="left", maintain_order="left") for each in values]
    return np.stack([each[column].to_numpy() for each in rows], axis=1)


def _paired(
    names: list[str],
    values: np.ndarray,
    reference: np.ndarray,
    scopes: np.ndarray,
    unit: Unit,
    seed: int,
    **intervals: np.ndarray,
) -> Comparison:
    """Test each column of values against its reference column; null for a column that is its own."""
    differences = values - values[:, reference]
    differences[np.abs(differences) < 1e-12] = 0.0
    sums, sizes = by_unit(differences, scopes, unit)
    low, high = bootstrap_interval(sums, sizes, seed=seed)
    others = reference != np.arange(len(reference))
    p = np.array([randomisation_test(column, seed=seed) for column in sums.T])
    p_holm = np.full(len(p), np.nan)
    p_holm[others] = holm(p[others])
    tests = pl.DataFrame(
        {
            "difference": differences.mean(axis=0),
            "low": low,
            "high": high,
            "p": p,
            "p_holm": p_holm,
            "win": (differences > 0).sum(0),
            "tie": (differences == 0).sum(0),
            "loss": (differences < 0).sum(0),
        }
    )
    tests = tests.with_columns(pl.when(pl.Series(others)).then(pl.all()))
    means = {"system": names, "n": [len(values)] * len(names), "mean": values.mean(axis=0), **intervals}
    return Comparison(pl.DataFrame(means).hstack(tests).fill_nan(None))


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
    :returns: ``system (n = …)`` and a column a measure; full precision. Printed, a system is bold where it is shown to
        be the best: against each other one a paired randomisation test, corrected by Holm, with p < .05.
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

    :param reports: of one level and one set of questions.
    :param by: what to group by, as in :meth:`Report.summary`.
    :returns: ``system`` and a column a group, ``name (n = …)``; full precision; bold as in :func:`results_table`.
    """
    comparable(reports)
    (wanted,) = reports[0].pick(measure)
    groups = split_by(reports[0].per_query, by)
    columns = {f"{group} (n = {part.height:,})": (wanted, group) for group, part in groups.items()}
    return _wide(reports, by, "system", columns)


def _wide(reports: Sequence[Report], by: str, label: str, columns: Mapping[str, tuple[Measure, str]]) -> Table:
    """Give a column a measure and group of questions, and note which system is shown to be best in it."""
    parts = [split_by(report.per_query, by) for report in reports]
    shown: dict[str, str] = {}
    cells: dict[str, list[Any]] = {label: [*(report.name for report in reports), *BOUNDS]}
    for name, (measure, group) in columns.items():
        of_group = pl.col("group") == group
        rows = [r.summary(by, measures=measure).row(by_predicate=of_group, named=True) for r in reports]
        cells[name] = [*(row["mean"] for row in rows), *(rows[0][bound] for bound in BOUNDS)]
        best = _shown_best(reports, [part[group] for part in parts], str(measure))
        if best is not None:
            shown[name] = best
    return Table(cells, shown=shown, strict=False)


def _shown_best(reports: Sequence[Report], parts: Sequence[pl.DataFrame], measure: str) -> str | None:
    """Name the system that tests show to be better than every other on these questions, if one is."""
    values = _aligned(parts[0], parts, measure)
    first, *others = np.argsort(-values.mean(axis=0), kind="stable")
    p: list[float] = []
    for other in others:  # the nearest first: most columns are a tie with it, which is all that need be tested
        p.append(randomisation_test(values[:, first] - values[:, other], seed=reports[0].seed))
        if p[-1] >= 0.05:
            return None
    return reports[first].name if p and holm(np.array(p)).max() < 0.05 else None
