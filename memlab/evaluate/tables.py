"""Frames printed for a terminal, a notebook or a paper: Markdown, HTML and LaTeX.

Printed numbers never flatter: three decimals, halves to even, and what is not quite 1 or 0 does not
print as 1 or 0. Full precision stays in the frames, in ``report.json`` and in the Parquet files.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Mapping
from math import isnan
from types import MappingProxyType
from typing import Any

import polars as pl

from memlab.interval_labels import interval_columns, interval_labels, scope_note
from memlab.source_labels import COLUMN, source_note
from memlab.system_names import short_names
from memlab.terminal import escape_markdown

MOST_ROWS = 20
BOUNDS = ("ceiling", "chance")
"""The rows of a table of systems that are no systems."""
_NO_BEST: Mapping[str, str] = MappingProxyType({})


class Table(pl.DataFrame):
    """A frame that prints as a table: numbers to three decimals, and an interval in the cell of what it is around.

    :param best: the row, by the first column's text, that is significantly the best of a column;
        printed, it is bold. A frame derived from this one prints without bold.
    :param note: stands below the table.

    >>> from memlab.evaluate import Table
    >>> print(Table({"system": ["mine"], "difference": [0.1], "low": [0.02], "high": [0.18], "level": [0.9]}))
    | system | difference [90 %] |
    |:---|---:|
    | mine | 0.100 [0.020, 0.180] |
    """

    best: Mapping[str, str] = _NO_BEST
    note: str = ""

    def __init__(
        self, data: Any, *, best: Mapping[str, str] = _NO_BEST, note: str = "", **options: Any
    ) -> None:
        super().__init__(data, **options)
        self.best = best
        self.note = note

    def __str__(self) -> str:
        return to_markdown(self._short())

    __repr__ = __str__

    def _repr_html_(self, **_: object) -> str:
        return to_notebook_html(self._short())

    def to_latex(self, *, caption: str = "", label: str = "tab:memlab") -> str:
        """Write it as a LaTeX table; see :func:`to_latex`."""
        return to_latex(self, caption=caption, label=label)

    def _short(self) -> Table:
        if self.schema.get("system") != pl.String:
            return self
        short = short_names(self["system"].to_list())
        best = {column: short.get(name, name) for column, name in self.best.items()}
        shown = self.with_columns(pl.col("system").replace(short))
        return Table(shown, best=best, note=self.note)


def to_markdown(frame: pl.DataFrame) -> str:
    """Write a frame as a Markdown table; what is significantly the best of a :class:`Table` is bold.

    >>> import polars as pl
    >>> from memlab.evaluate.tables import to_markdown
    >>> print(to_markdown(pl.DataFrame({"system": ["a | b", "c"], "recall@10": [0.5, 0.25]})))
    | system | recall@10 |
    |:---|---:|
    | a \\| b | 0.500 |
    | c | 0.250 |
    """
    if not frame.width:
        return ""
    names, numeric, rows = _format_cells(frame, "**{}**", escape_markdown)
    head, *lines = ["| " + " | ".join(row) + " |" for row in [names, *rows]]
    rule = "|" + "|".join("---:" if right else ":---" for right in numeric) + "|"
    note = _notes_below(frame)
    below = ["", escape_markdown(note)] if note else []
    return "\n".join([head, rule, *lines, *below])


def _notes_below(frame: pl.DataFrame) -> str:
    """Give what stands below a table: how small a p can be, and who wrote the questions."""
    notes = (scope_note(frame), source_note(frame), getattr(frame, "note", ""))
    return " ".join(filter(None, notes))


def tables_to_markdown(tables: Mapping[str, pl.DataFrame]) -> str:
    """Write frames as Markdown tables, each under its title."""
    return "\n\n".join(f"**{title}**\n\n{to_markdown(table)}" for title, table in tables.items())


def to_html(frame: pl.DataFrame) -> str:
    """Write a frame as an HTML table with everything escaped."""
    names, numeric, rows = _format_cells(frame, "<b>{}</b>", html.escape)
    tags = "".join(
        f"<td style='text-align:{'right' if right else 'left'}'>{{}}</td>" for right in numeric
    )
    body = "".join(f"<tr>{tags.format(*row)}</tr>" for row in rows)
    head = "".join(f"<th>{name}</th>" for name in names)
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    note = _notes_below(frame)
    return f"{table}<p>{html.escape(note)}</p>" if note else table


def to_notebook_html(frame: pl.DataFrame) -> str:
    """Write the first rows of a frame as HTML for a notebook, names of columns without underscores."""
    best = {name.replace("_", " "): row for name, row in getattr(frame, "best", _NO_BEST).items()}
    shown = Table(
        _fold_intervals(frame.head(MOST_ROWS)).rename(lambda name: name.replace("_", " ")),
        best=best,
    )
    rest = (
        f"<p>… and {frame.height - MOST_ROWS:,} more rows</p>" if frame.height > MOST_ROWS else ""
    )
    if note := _notes_below(frame):
        rest += f"<p>{html.escape(note)}</p>"
    return to_html(shown) + rest


def show_tables() -> None:
    """From here on, show every frame of this notebook as a :class:`Table` is; outside of one, do nothing."""
    from IPython import get_ipython

    if (shell := get_ipython()) is not None:
        shell.display_formatter.formatters["text/html"].for_type(pl.DataFrame, to_notebook_html)


def to_latex(frame: pl.DataFrame, *, caption: str, label: str) -> str:
    """Write a frame as a LaTeX table for ``booktabs`` and, for accented letters, ``inputenc`` utf8 (others: XeLaTeX).

    :param caption: plain text; escaped here.
    :param label: for ``\\ref``; kept to letters, digits, ``:``, ``.`` and ``-``.

    >>> import polars as pl
    >>> from memlab.evaluate.tables import to_latex
    >>> text = to_latex(pl.DataFrame({"form": ["how_many"], "n": [12]}), caption="≥ 2 & 5 %", label="tab:forms")
    >>> print(text.splitlines()[2], text.splitlines()[8])
      \\caption{$\\geq$ 2 \\& 5 \\%}     how\\_many & 12 \\\\
    """
    names, numeric, cells = _format_cells(frame, r"\textbf{{{}}}", latex_escape)
    caption = f"{caption} {_notes_below(frame)}".rstrip()
    # An empty group, lest what begins with [ or * be read as the argument of the command of the
    # line before.
    head, *rows = [re.sub(r"^(?=[\[*])", "{}", " & ".join(row)) for row in [names, *cells]]
    rows = [f"    {row} \\\\" for row in rows]
    first_bound = next((i for i, name in enumerate(frame.to_series(0)) if name in BOUNDS), None)
    if first_bound:
        rows.insert(first_bound, r"    \midrule")
    lines = [
        r"\begin{table}[t]",
        r"  \centering\small",
        rf"  \caption{{{latex_escape(caption)}}}",
        rf"  \label{{{re.sub(r'[^A-Za-z0-9:.-]+', '-', label)}}}",
        rf"  \begin{{tabular}}{{{''.join('r' if right else 'l' for right in numeric)}}}",
        r"    \toprule",
        rf"    {head} \\",
        r"    \midrule",
        *rows,
        r"    \bottomrule",
        r"  \end{tabular}",
        r"\end{table}",
    ]
    return "\n".join(lines)


def format_number(value: float | None) -> str:
    """Print a number without flattering it.

    >>> from memlab.evaluate.tables import format_number
    >>> format_number(0.0625), format_number(0.9999), format_number(1.0), format_number(0.00001), format_number(None)
    ('0.062', '>0.999', '1.000', '<0.001', '–')
    """
    if value is None or isnan(value):
        return "–"
    value = (
        0.0 if -1e-30 < value <= 0 else value
    )  # the step below 0 that keeps the order of a tie is no number
    text = f"{value:.3f}"
    if value != 0 and float(text) == 0:
        return "<0.001" if value > 0 else ">-0.001"
    return ">0.999" if 0 < value < 1 and float(text) == 1 else text


def _fold_intervals(frame: pl.DataFrame) -> pl.DataFrame:
    """Put an interval, ``low`` and ``high`` or ``NAME_low`` and ``NAME_high``, into the cell of its column.

    Its level and unit stand in the name of the column, or in the cells where rows differ. A p
    beside an interval or a corrected one is called what it is.
    """
    folded, skipped = list[pl.Expr | pl.Series](), set[str]()
    if "n" in frame.columns:
        skipped.add(COLUMN)  # It stands below the table.
    for name in frame.columns:
        if found := interval_columns(frame, name):
            skipped |= {found.low, found.high, *found.about.values()}
            folded.append(_fold_column(frame, name, found.low, found.high))
        elif name not in skipped:
            folded.append(pl.col(name))
    uncorrected = frame.schema.get("p") == pl.Float64 and (
        skipped - {COLUMN} or "p_holm" in frame.columns
    )
    shown = frame.select(folded).drop(skipped, strict=False)
    return shown.rename({"p": "p, uncorrected"} if uncorrected else {})


def _fold_column(frame: pl.DataFrame, name: str, low: str, high: str) -> pl.Expr:
    labels = interval_labels(frame, name)
    different = dict.fromkeys(filter(None, labels))
    shared = next(iter(different), "low, high") if len(different) < 2 else "level in the row"
    own = [f"; {label}" if label and len(different) > 1 else "" for label in labels]
    about = pl.lit(pl.Series(own, dtype=pl.String))
    return pl.struct(mean=name, low=low, high=high, about=about).alias(f"{name} [{shared}]")


def _format_cells(
    frame: pl.DataFrame, bold: str, escape: Callable[[str], str]
) -> tuple[list[str], list[bool], list[tuple[str, ...]]]:
    """Give the names of the columns, which of them hold numbers, and the rows, all escaped."""
    best, folded = getattr(frame, "best", _NO_BEST), _fold_intervals(frame)
    first, columns = folded.to_series(0) if folded.width else (), list[Any]()
    for series in folded:
        winner, texts = (
            best.get(series.name),
            [escape(_format_value(value)) for value in series.to_list()],
        )
        columns.append(
            [
                bold.format(text) if row == winner else text
                for row, text in zip(first, texts, strict=True)
            ]
        )
    numeric = [dtype.is_numeric() or dtype == pl.Struct for dtype in folded.dtypes]
    return [escape(name) for name in folded.columns], numeric, list(zip(*columns, strict=True))


def _format_value(value: Any) -> str:
    if isinstance(value, dict):
        return _format_interval(**value)
    if isinstance(value, list):
        return ", ".join(map(_format_value, value))
    if value is None or isinstance(value, float):
        return format_number(value)
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def _format_interval(mean: float | None, low: float | None, high: float | None, about: str) -> str:
    """Write a number with its interval, and a dash where it has none: of one unit nothing can be said."""
    if mean is None or isnan(mean):
        return format_number(mean)
    if low is None or high is None or isnan(low):
        return f"{format_number(mean)} [–]"
    return f"{format_number(mean)} [{format_number(low)}, {format_number(high)}{about}]"


_MATHS = {
    "<": "<", ">": ">", "≥": r"\geq", "≤": r"\leq", "≠": r"\neq", "×": r"\times", "−": "-", "±": r"\pm",
    "→": r"\rightarrow", "·": r"\cdot", "α": r"\alpha", "β": r"\beta", "γ": r"\gamma", "λ": r"\lambda",
}  # fmt: skip
_LATEX = {
    **{c: f"\\{c}" for c in "&%$#_{}"}, **{c: f"${text}$" for c, text in _MATHS.items()},
    "\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "|": r"\textbar{}",
    "–": "--", "—": "---", "…": r"\ldots{}", "“": "``", "”": "''", "‘": "`", "’": "'", "\u00a0": "~",
}  # fmt: skip


def latex_escape(text: str) -> str:
    """Escape text for LaTeX; the minus of a number, at the start or in an interval, becomes a minus sign."""
    escaped = "".join(_LATEX.get(c, c) for c in re.sub(r"\s+", " ", text))
    return re.sub(r"(^|\[|, |\$>\$)-(?=\d)", r"\1$-$", escaped)
