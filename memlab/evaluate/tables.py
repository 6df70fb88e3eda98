"""Tables for a write-up: systems in rows, measures or groups in columns, as Markdown, LaTeX or HTML.

Printed numbers never flatter: three decimals, halves to even, and what is not quite 1 or 0 does not print as 1 or 0.
Full precision stays in the frames, in ``report.json`` and in the Parquet files.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import polars as pl

from memlab.errors import DataError
from memlab.evaluate.comparison import comparable
from memlab.evaluate.measures import Measure
from memlab.evaluate.report import Report
from memlab.evaluate.significance import Unit

BOUNDS = ("ceiling", "chance")
_NOT_RANKED = frozenset({"difference", "low", "high", "p", "p_holm"})


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
        found = [frame.filter(pl.col(key) == cell[key]).row(0, named=True) for frame in rows.values()]
        if intervals:
            cells = [{"mean": r["mean"], "low": r["low"], "high": r["high"]} for r in found]
            columns[header(cell)] = [*cells, *({"mean": cell[b], "low": None, "high": None} for b in BOUNDS)]
        else:
            columns[header(cell)] = [*(r["mean"] for r in found), *(cell[b] for b in BOUNDS)]
    return pl.DataFrame(columns, strict=False)


def to_markdown(frame: pl.DataFrame, *, digits: int = 3) -> str:
    """Write a frame as a Markdown table.

    In a table of systems (its first column is called ``system…``) the best value of each column is bold; the rows
    ``ceiling`` and ``chance`` do not compete.

    :param digits: decimals of floating-point numbers.

    >>> import polars as pl
    >>> from memlab.evaluate import to_markdown
    >>> print(to_markdown(pl.DataFrame({"system": ["a | b", "c"], "recall@10": [0.5, 0.25]})))
    | system | recall@10 |
    |:---|---:|
    | a \\| b | **0.500** |
    | c | 0.250 |
    """
    cells = _cells(frame, digits, lambda text: f"**{text}**", _markdown_escape)
    lines = [
        [_markdown_escape(c) for c in frame.columns],
        *zip(*cells, strict=True),
    ]
    head, *body = ["| " + " | ".join(line) + " |" for line in lines]
    rule = "|" + "|".join("---:" if _is_number(t) else ":---" for t in frame.dtypes) + "|"
    return "\n".join([head, rule, *body])


def to_latex(frame: pl.DataFrame, *, caption: str, label: str, digits: int = 3) -> str:
    """Write a frame as a LaTeX table for the packages ``booktabs`` and, for accented letters, ``inputenc`` utf8.

    :param caption: plain text; escaped here.
    :param label: for ``\\ref``; kept to letters, digits, ``:``, ``.`` and ``-``.
    :param digits: decimals of floating-point numbers.

    >>> import polars as pl
    >>> from memlab.evaluate import to_latex
    >>> print(to_latex(pl.DataFrame({"form": ["how_many"], "n": [12]}), caption="≥ 2 & 5 %", label="tab:forms"))
    \\begin{table}
      \\centering
      \\caption{$\\geq$ 2 \\& 5 \\%}
      \\label{tab:forms}
      \\begin{tabular}{lr}
        \\toprule
        form & n \\\\
        \\midrule
        how\\_many & 12 \\\\
        \\bottomrule
      \\end{tabular}
    \\end{table}
    """
    cells = _cells(frame, digits, lambda text: rf"\textbf{{{text}}}", latex_escape)
    rows = [" & ".join(row) + r" \\" for row in zip(*cells, strict=True)]
    first_bound = next((i for i, v in enumerate(_names(frame)) if v in BOUNDS), None)
    if first_bound:
        rows.insert(first_bound, r"\midrule")
    lines = [
        r"\begin{table}",
        r"  \centering",
        rf"  \caption{{{latex_escape(caption)}}}",
        rf"  \label{{{re.sub(r'[^A-Za-z0-9:.-]+', '-', label)}}}",
        rf"  \begin{{tabular}}{{{''.join('r' if _is_number(t) else 'l' for t in frame.dtypes)}}}",
        r"    \toprule",
        "    " + " & ".join(latex_escape(c) for c in frame.columns) + r" \\",
        r"    \midrule",
        *("    " + row for row in rows),
        r"    \bottomrule",
        r"  \end{tabular}",
        r"\end{table}",
    ]
    return "\n".join(lines)


def to_html(frame: pl.DataFrame, *, digits: int = 3) -> str:
    """Write a frame as an HTML table with everything escaped."""
    cells = _cells(frame, digits, lambda text: f"<b>{text}</b>", html.escape)
    head = "".join(f"<th>{html.escape(c)}</th>" for c in frame.columns)
    aligned = ["right" if _is_number(t) else "left" for t in frame.dtypes]
    rows = "".join(
        "<tr>" + "".join(f"<td style='text-align:{a}'>{c}</td>" for a, c in zip(aligned, row, strict=True)) + "</tr>"
        for row in zip(*cells, strict=True)
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"


def report_html(report: Report) -> str:
    """Show a report in a notebook: its means over all questions and over those with two or more evidence sessions."""
    several = report.summary("evidence_sessions").filter(pl.col("group") == "≥ 2")
    table = pl.concat([report.summary(), several.with_columns(group=pl.lit("≥ 2 evidence sessions"))])
    title = f"{report.name}: {report.per_query.height:,} questions, {report.level}s ranked"
    dataset = report.provenance.get("dataset", "")
    return f"<p><b>{html.escape(title)}</b><br>{html.escape(str(dataset))}</p>" + to_html(table)


def number(value: float | None, digits: int = 3) -> str:
    """Print a number without flattering it.

    >>> from memlab.evaluate.tables import number
    >>> number(0.0625), number(0.9999), number(1.0), number(0.00001), number(None)
    ('0.062', '>0.999', '1.000', '<0.001', '–')
    """
    if value is None:
        return "–"
    text = f"{value:.{digits}f}"
    step = 10.0**-digits
    if value != 0 and float(text) == 0:
        return f"<{step:.{digits}f}" if value > 0 else f">-{step:.{digits}f}"
    if 0 < value < 1 and float(text) == 1:
        return f">{1 - step:.{digits}f}"
    return text


def _cells(
    frame: pl.DataFrame, digits: int, bold: Callable[[str], str], escape: Callable[[str], str]
) -> list[list[str]]:
    """Print each column, escaped, with the best of each ranked column in bold."""
    competes = [name not in BOUNDS for name in _names(frame)]
    ranked = bool(frame.width) and frame.columns[0].startswith("system") and sum(competes) > 1
    columns = []
    for series in frame:
        values = series.to_list()
        texts = [escape(_text(v, digits)) for v in values]
        if ranked and (series.dtype.is_float() or series.dtype == pl.Struct) and series.name not in _NOT_RANKED:
            means = [v["mean"] if isinstance(v, dict) else v for v in values]
            held = [m for m, c in zip(means, competes, strict=True) if c and m is not None]
            best = number(max(held), digits) if held else None
            texts = [
                bold(t) if c and m is not None and number(m, digits) == best else t
                for t, m, c in zip(texts, means, competes, strict=True)
            ]
        columns.append(texts)
    return columns


def _text(value: Any, digits: int) -> str:
    if isinstance(value, dict):
        mean = number(value["mean"], digits)
        if value["low"] is None:
            return mean
        return f"{mean} [{number(value['low'], digits)}, {number(value['high'], digits)}]"
    if value is None or isinstance(value, float):
        return number(value, digits)
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return str(value)


def _names(frame: pl.DataFrame) -> list[str]:
    return [str(v) for v in frame.to_series(0).to_list()] if frame.width else []


def _is_number(dtype: pl.DataType) -> bool:
    return dtype.is_numeric() or dtype == pl.Struct


def _markdown_escape(text: str) -> str:
    return re.sub(r"([\\|*`])", r"\\\1", re.sub(r"\s+", " ", text)).replace("<", "&lt;")


_LATEX = {
    **{c: f"\\{c}" for c in "&%$#_{}"},
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "|": r"\textbar{}",
    "<": "$<$",
    ">": "$>$",
    "≥": r"$\geq$",
    "≤": r"$\leq$",
    "≠": r"$\neq$",
    "×": r"$\times$",
    "−": "$-$",
    "±": r"$\pm$",
    "→": r"$\rightarrow$",
    "–": "--",
    "—": "---",
    "…": r"\ldots{}",
    "·": r"$\cdot$",
    "∞": r"$\infty$",
    "α": r"$\alpha$",
    "β": r"$\beta$",
    "γ": r"$\gamma$",
    "λ": r"$\lambda$",
    "μ": r"$\mu$",
    "σ": r"$\sigma$",
    "“": "``",
    "”": "''",
    "‘": "`",
    "’": "'",
    "✔": r"$\surd$",
    "\u00a0": "~",
}


def latex_escape(text: str) -> str:
    """Escape text for LaTeX; a leading minus of a number becomes a minus sign."""
    text = re.sub(r"\s+", " ", text)
    escaped = "".join(_LATEX.get(c, c) for c in text)
    return re.sub(r"^(\$>\$)?-(?=\d)", r"\1$-$", escaped)
