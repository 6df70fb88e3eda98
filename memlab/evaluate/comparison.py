"""Systems side by side on the same questions: tables of means with what bounds them, and paired tests."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
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
    tested = _paired(values, np.full(len(names), base), asked["scope"].to_numpy(), unit, seed)
    return Comparison({**_means(names, values), **tested})


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
    scopes = asked["scope"].to_numpy()
    tested = _paired(values, np.maximum(np.arange(len(names)) - 1, 0), scopes, unit, seed)
    bounds = bootstrap_interval(*by_unit(values, scopes, unit), seed=seed)
    intervals = pl.DataFrame(dict(zip(("mean_low", "mean_high"), bounds, strict=True))).fill_nan(None)
    return Comparison({**_means(names, values), **intervals.to_dict(), **tested})


def _means(names: list[str], values: np.ndarray) -> dict[str, Any]:
    return {"system": names, "n": [len(values)] * len(names), "mean": values.mean(axis=0)}


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
    columns = []
    for report in reports:
        report.pick(wanted)
        values = report.per_query.select("query_id", value=str(wanted))
        columns.append(asked.select("query_id").join(values, on="query_id", how="left", maintain_order="left")["value"])
    return asked, np.stack([column.to_numpy() for column in columns], axis=1)


def _paired(
    values: np.ndarray, reference: np.ndarray, scopes: np.ndarray, unit: Unit, seed: int
) -> dict[str, pl.Series]:
    """Test each column against its reference column; null for a column that is its own."""
    differences = values - values[:, reference]
    differences[np.abs(differences) < 1e-12] = 0.0
    sums, sizes = by_unit(differences, scopes, unit)
    low, high = bootstrap_interval(sums, sizes, seed=seed)
    others = reference != np.arange(len(reference))
    p = np.array([randomisation_test(column, seed=seed) for column in sums.T])
    p_holm = np.full(len(p), np.nan)
    p_holm[others] = holm(p[others])
    table = pl.DataFrame(
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
    return table.with_columns(pl.when(pl.Series(others)).then(pl.all())).fill_nan(None).to_dict()


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
    group: str | None = None,
    intervals: bool = False,
    unit: Unit = "query",
) -> Table:
    """Give systems × measures over one group of questions, with rows for the ceiling and chance.

    :param reports: of one level and one set of questions.
    :param by: what the group is a group of, as in :meth:`Report.summary`.
    :param group: which group, such as ``"≥ 2"`` by ``evidence_sessions``; not needed for ``all``.
    :param intervals: cells become ``{mean, low, high}``.
    :returns: ``system (n = …)`` and a column a measure; full precision. Printed, a system is bold where it is shown to
        be the best: against each other one a paired randomisation test, corrected by Holm, with p < .05.
    :raises DataError: when there is no such group, or the reports do not belong in one table.
    """
    comparable(reports)
    wanted = "all" if group is None else group
    rows = {r.name: r.summary(by, measures=measures, unit=unit).filter(pl.col("group") == wanted) for r in reports}
    for report in reports:
        if not rows[report.name].height:
            groups = report.summary(by)["group"].unique(maintain_order=True).to_list()
            raise DataError(f"no group {wanted!r} by {by!r}; there are {', '.join(groups)}")
    n = rows[reports[0].name]["n"][0]
    parts = [split_by(report.per_query, by)[wanted] for report in reports]
    shown = {measure: _shown_best(reports, parts, measure, unit) for measure in rows[reports[0].name]["measure"]}
    return _wide(rows, f"system (n = {n:,})", "measure", "{measure}", intervals, shown)


def groups_table(
    reports: Sequence[Report],
    measure: str | Measure,
    *,
    by: str = "question_type",
    intervals: bool = False,
    unit: Unit = "query",
) -> Table:
    """Give systems × groups of questions on one measure, with rows for the ceiling and chance.

    :param reports: of one level and one set of questions.
    :param by: what to group by, as in :meth:`Report.summary`.
    :returns: ``system`` and a column a group, ``name (n = …)``; full precision; bold as in :func:`results_table`.
    """
    comparable(reports)
    rows = {r.name: r.summary(by, measures=measure, unit=unit) for r in reports}
    split = [split_by(report.per_query, by) for report in reports]
    named = str(reports[0].pick(measure)[0])
    shown = {group: _shown_best(reports, [parts[group] for parts in split], named, unit) for group in split[0]}
    return _wide(rows, "system", "group", "{group} (n = {n:,})", intervals, shown)


def _shown_best(reports: Sequence[Report], parts: Sequence[pl.DataFrame], measure: str, unit: Unit) -> str | None:
    """Name the system that tests show to be better than every other on these questions, if one is."""
    asked = parts[0].select("query_id")
    same = [part.select("query_id", measure).join(asked, on="query_id", maintain_order="right") for part in parts]
    values = np.stack([part[measure].to_numpy() for part in same], axis=1)
    first, *others = np.argsort(-values.mean(axis=0), kind="stable")
    p: list[float] = []
    for other in others:  # the nearest first: most columns are a tie with it, which is all that need be tested
        sums, _ = by_unit(values[:, [first]] - values[:, [other]], parts[0]["scope"].to_numpy(), unit)
        p.append(randomisation_test(sums[:, 0], seed=reports[0].seed))
        if p[-1] >= 0.05:
            return None
    return reports[first].name if p and holm(np.array(p)).max() < 0.05 else None


def _wide(
    rows: dict[str, pl.DataFrame], label: str, key: str, header: str, intervals: bool, shown: dict[str, str | None]
) -> Table:
    best: dict[str, str] = {}
    columns: dict[str, Any] = {label: [*rows, *BOUNDS]}
    for first in next(iter(rows.values())).iter_rows(named=True):
        cells = [frame.row(by_predicate=pl.col(key) == first[key], named=True) for frame in rows.values()]
        cells += [{"mean": first[bound], "low": None, "high": None} for bound in BOUNDS]
        name = header.format(**first)
        columns[name] = [{k: cell[k] for k in ("mean", "low", "high")} if intervals else cell["mean"] for cell in cells]
        if (system := shown[first[key]]) is not None:
            best[name] = system
    return Table(columns, shown=best, strict=False)
