"""Frames printed for a terminal, a notebook or a paper: Markdown, HTML and LaTeX.

Printed numbers never flatter: three decimals, halves to even, and what is not quite 1 or 0 does not
print as 1 or 0. Full precision stays in the frames, in ``report.json`` and in the Parquet files.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterable, Mapping
from math import isnan
from types import MappingProxyType
from typing import Any, NamedTuple

import polars as pl

from memlab.interval_and_p_labels import (
    find_interval_columns,
    interval_label_or_empty_of_each_row,
    smallest_p_note_or_empty,
)
from memlab.question_source_labels import COLUMN, question_sources_note_or_empty
from memlab.system_names import shorten_names_distinctly
from memlab.terminal_text import escape_markdown

MOST_ROWS = 20
BOUNDS = ("ceiling", "chance")
"""The rows of a table of systems that are no systems."""
_LATEX_HEADINGS = MappingProxyType({r"p\_holm": "p, Holm"})
"""What a paper calls a column."""
_NO_BEST: Mapping[str, str] = MappingProxyType({})


class Table(pl.DataFrame):
    """A frame that prints as a table: numbers to three decimals, and an interval in the cell of
    what it is around.

    :param best: the row, by the first column's text, that is significantly the best of a column;
        printed, it is bold. A frame derived from this one prints without bold.
    :param note: stands below the table.

    >>> from memlab.evaluate import Table
    >>> interval = {"low": [0.02], "high": [0.18], "level": [0.9]}
    >>> print(Table({"system": ["mine"], "difference": [0.1], **interval}))
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
        return to_markdown(self._with_short_system_names())

    __repr__ = __str__

    def _repr_html_(self, **_: object) -> str:
        return to_notebook_html(self._with_short_system_names())

    def to_latex(self, *, caption: str = "", label: str = "tab:memlab") -> str:
        """Write it as a LaTeX table; see :func:`to_latex`."""
        return to_latex(self, caption=caption, label=label)

    def _with_short_system_names(self) -> Table:
        if self.schema.get("system") != pl.String:
            return self
        short_by_name = shorten_names_distinctly(self["system"].to_list())
        best_systems = {column: short_by_name.get(name, name) for column, name in self.best.items()}
        shortened = self.with_columns(pl.col("system").replace(short_by_name))
        return Table(shortened, best=best_systems, note=self.note)


def to_markdown(frame: pl.DataFrame) -> str:
    """Write a frame as a Markdown table; what is significantly the best of a :class:`Table` is
    bold.

    >>> import polars as pl
    >>> from memlab.evaluate.printed_tables import to_markdown
    >>> print(to_markdown(pl.DataFrame({"system": ["a | b", "c"], "recall@10": [0.5, 0.25]})))
    | system | recall@10 |
    |:---|---:|
    | a \\| b | 0.500 |
    | c | 0.250 |
    """
    if not frame.width:
        return ""
    cells = _escape_and_format_cells(frame, "**{}**", escape_markdown)
    column_rules = _pick_text_by_alignment(cells.is_numeric, right="---:", left=":---")
    markdown_lines = [_markdown_row(cells.headings), f"|{'|'.join(column_rules)}|"]
    markdown_lines += map(_markdown_row, cells.rows)
    note_text = _note_below_table_or_empty(frame)
    if note_text:
        markdown_lines += ["", escape_markdown(note_text)]
    return "\n".join(markdown_lines)


def _markdown_row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _pick_text_by_alignment(is_numeric: list[bool], *, right: str, left: str) -> list[str]:
    """Choose one of two texts for each column: numbers stand at the right."""
    texts = {True: right, False: left}
    return [texts[is_right] for is_right in is_numeric]


def _note_below_table_or_empty(frame: pl.DataFrame) -> str:
    """Give what stands below a table: how small a p can be, and who wrote the questions."""
    note_texts = (
        smallest_p_note_or_empty(frame),
        question_sources_note_or_empty(frame),
        getattr(frame, "note", ""),
    )
    return " ".join(filter(None, note_texts))


def tables_to_markdown(tables: Mapping[str, pl.DataFrame]) -> str:
    """Write frames as Markdown tables, each under its title."""
    return "\n\n".join(f"**{title}**\n\n{to_markdown(table)}" for title, table in tables.items())


def to_html(frame: pl.DataFrame) -> str:
    """Write a frame as an HTML table with everything escaped."""
    cells = _escape_and_format_cells(frame, "<b>{}</b>", html.escape)
    sides = _pick_text_by_alignment(cells.is_numeric, right="right", left="left")
    row_template = "".join(f"<td style='text-align:{side}'>{{}}</td>" for side in sides)
    body_html = "".join(f"<tr>{row_template.format(*row)}</tr>" for row in cells.rows)
    head_html = "".join(f"<th>{name}</th>" for name in cells.headings)
    table_html = f"<table><thead><tr>{head_html}</tr></thead><tbody>{body_html}</tbody></table>"
    note_text = _note_below_table_or_empty(frame)
    if not note_text:
        return table_html
    return f"{table_html}<p>{html.escape(note_text)}</p>"


def to_notebook_html(frame: pl.DataFrame) -> str:
    """Write the first rows of a frame as HTML for a notebook, names of columns without
    underscores.
    """
    best_systems = {}
    for column, system in getattr(frame, "best", _NO_BEST).items():
        best_systems[_underscores_to_spaces(column)] = system
    first_rows = _fold_intervals_into_cells(frame.head(MOST_ROWS)).rename(_underscores_to_spaces)
    notebook_html = to_html(Table(first_rows, best=best_systems))
    if frame.height > MOST_ROWS:
        notebook_html += f"<p>… and {frame.height - MOST_ROWS:,} more rows</p>"
    note_text = _note_below_table_or_empty(frame)
    if note_text:
        notebook_html += f"<p>{html.escape(note_text)}</p>"
    return notebook_html


def _underscores_to_spaces(column_name: str) -> str:
    return column_name.replace("_", " ")


def select_columns_with_sources(frame: pl.DataFrame, *names: str) -> pl.DataFrame:
    """Take some columns of a table, and with them who wrote its questions.

    >>> import polars as pl
    >>> from memlab.evaluate.printed_tables import select_columns_with_sources
    >>> frame = pl.DataFrame({"n": [3], "p": [0.2], "question_sources": ["all proposed"]})
    >>> select_columns_with_sources(frame, "n").columns
    ['n', 'question_sources']
    """
    kept_columns = list(names)
    if COLUMN in frame.columns and COLUMN not in names:
        kept_columns.append(COLUMN)
    return frame.select(kept_columns)


def show_tables() -> None:
    """From here on, show every frame of this notebook as a :class:`Table` is; outside of one, do
    nothing.
    """
    from IPython import get_ipython

    shell = get_ipython()
    if shell is not None:
        shell.display_formatter.formatters["text/html"].for_type(pl.DataFrame, to_notebook_html)


def to_latex(frame: pl.DataFrame, *, caption: str, label: str) -> str:
    """Write a frame as a LaTeX table for ``booktabs`` and, for accented letters, ``inputenc`` utf8
    (others: XeLaTeX).

    :param caption: plain text; escaped here.
    :param label: for ``\\ref``; kept to letters, digits, ``:``, ``.`` and ``-``.

    >>> import polars as pl
    >>> from memlab.evaluate.printed_tables import to_latex
    >>> frame = pl.DataFrame({"form": ["how_many"], "n": [12]})
    >>> text = to_latex(frame, caption="≥ 2 & 5 %", label="tab:forms")
    >>> print(text.splitlines()[2], text.splitlines()[8])
      \\caption{$\\geq$ 2 \\& 5 \\%}     how\\_many & 12 \\\\
    """
    caption = _join_sentences(caption, _note_below_table_or_empty(frame))
    dataset_names = _distinct_dataset_names(frame)
    if len(dataset_names) == 1:
        best = getattr(frame, "best", _NO_BEST)
        frame = Table(frame.drop("dataset"), best=best)
        caption = _join_sentences(caption, f"Dataset: {dataset_names[0]}.")
    cells = _escape_and_format_cells(frame, r"\textbf{{{}}}", escape_latex)
    headings = [_LATEX_HEADINGS.get(heading, heading) for heading in cells.headings]
    heading_row = _latex_row(headings)
    body_rows = list(map(_latex_row, cells.rows))
    first_bound = _row_number_of_first_bound_or_zero(frame)
    if first_bound:
        body_rows.insert(first_bound, r"    \midrule")
    column_letters = "".join(_pick_text_by_alignment(cells.is_numeric, right="r", left="l"))
    latex_lines = [
        r"\begin{table}[t]",
        r"  \centering\small",
        rf"  \caption{{{escape_latex(caption)}}}",
        rf"  \label{{{re.sub(r'[^A-Za-z0-9:.-]+', '-', label)}}}",
        rf"  \begin{{tabular}}{{{column_letters}}}",
        r"    \toprule",
        heading_row,
        r"    \midrule",
        *body_rows,
        r"    \bottomrule",
        r"  \end{tabular}",
        r"\end{table}",
    ]
    return "\n".join(latex_lines)


def _distinct_dataset_names(frame: pl.DataFrame) -> list[str]:
    """Name the datasets of a table whose rows say of which they are."""
    if "dataset" not in frame.columns:
        return []
    return frame["dataset"].unique(maintain_order=True).to_list()


def _row_number_of_first_bound_or_zero(frame: pl.DataFrame) -> int:
    """Find the row of the first bound; 0 where there is none, or nothing above it."""
    for row_number, row_name in enumerate(frame.to_series(0)):
        if row_name in BOUNDS:
            return row_number
    return 0


def _join_sentences(first: str, second: str) -> str:
    """Join two texts by a space, and by a full stop where the first has none."""
    first = first.rstrip()
    if first and second and first[-1] not in ".!?:;":
        first += "."
    return f"{first} {second}".strip()


def _latex_row(cells: Iterable[str]) -> str:
    # An empty group, lest what begins with [ or * be read as the argument of the command of the
    # line before.
    row = re.sub(r"^(?=[\[*])", "{}", " & ".join(cells))
    return f"    {row} \\\\"


def format_number(value: float | None) -> str:
    """Print a number without flattering it.

    >>> from memlab.evaluate.printed_tables import format_number
    >>> list(map(format_number, [0.0625, 0.9999, 1.0, 0.00001, None]))
    ['0.062', '>0.999', '1.000', '<0.001', '–']
    """
    if value is None or isnan(value):
        return "–"
    # The step below 0 that keeps the order of a tie is no number.
    if -1e-30 < value <= 0:
        value = 0.0
    rounded_value = f"{value:.3f}"
    if 0 < value < 1 and float(rounded_value) == 1:
        return ">0.999"
    if value == 0 or float(rounded_value) != 0:
        return rounded_value
    if value > 0:
        return "<0.001"
    return ">-0.001"


def _fold_intervals_into_cells(frame: pl.DataFrame) -> pl.DataFrame:
    """Put an interval, ``low`` and ``high`` or ``NAME_low`` and ``NAME_high``, into the cell of its
    column.

    Its level and unit stand in the name of the column, or in the cells where rows differ. A p
    beside an interval or a corrected one is called what it is.
    """
    folded_columns = list[pl.Expr | pl.Series]()
    skipped_columns = set[str]()
    if "n" in frame.columns:
        skipped_columns.add(COLUMN)  # It stands below the table.
    for name in frame.columns:
        interval = find_interval_columns(frame, name)
        if interval:
            skipped_columns |= {interval.low, interval.high, *interval.about.values()}
            folded_columns.append(
                _fold_interval_into_column(frame, name, interval.low, interval.high)
            )
        elif name not in skipped_columns:
            folded_columns.append(pl.col(name))
    shown_frame = frame.select(folded_columns).drop(skipped_columns, strict=False)
    has_p = frame.schema.get("p") == pl.Float64
    if has_p and (skipped_columns - {COLUMN} or "p_holm" in frame.columns):
        return shown_frame.rename({"p": "p, uncorrected"})
    return shown_frame


def _fold_interval_into_column(
    frame: pl.DataFrame, column_name: str, low_column: str, high_column: str
) -> pl.Expr:
    row_labels = interval_label_or_empty_of_each_row(frame, column_name)
    distinct_labels = dict.fromkeys(filter(None, row_labels))
    if len(distinct_labels) < 2:
        heading_label = next(iter(distinct_labels), "low, high")
        label_suffixes = [""] * len(row_labels)
    else:
        heading_label = "level in the row"
        label_suffixes = [_interval_label_suffix_or_empty(label) for label in row_labels]
    suffix_column = pl.lit(pl.Series(label_suffixes, dtype=pl.String))
    folded_column = pl.struct(
        mean=column_name, low=low_column, high=high_column, about=suffix_column
    )
    return folded_column.alias(f"{column_name} [{heading_label}]")


def _interval_label_suffix_or_empty(label: str | None) -> str:
    if not label:
        return ""
    return f"; {label}"


class _TableCells(NamedTuple):
    """Escaped names of columns, which columns hold numbers, and the escaped cells of each row."""

    headings: list[str]
    is_numeric: list[bool]
    rows: list[tuple[str, ...]]


def _escape_and_format_cells(
    frame: pl.DataFrame, bold_template: str, escape: Callable[[str], str]
) -> _TableCells:
    """Format the cells of a frame, intervals folded, what is significantly the best in bold."""
    best_systems = getattr(frame, "best", _NO_BEST)
    folded_frame = _fold_intervals_into_cells(frame)
    cell_columns = []
    is_numeric = []
    for series in folded_frame:
        cells = [escape(_format_cell_value(value)) for value in series.to_list()]
        best_system = best_systems.get(series.name)
        for row_number, system in enumerate(folded_frame.to_series(0)):
            if system == best_system:
                cells[row_number] = bold_template.format(cells[row_number])
        cell_columns.append(cells)
        is_numeric.append(series.dtype.is_numeric() or series.dtype == pl.Struct)
    headings = list(map(escape, folded_frame.columns))
    return _TableCells(headings, is_numeric, list(zip(*cell_columns, strict=True)))


def _format_cell_value(cell_value: Any) -> str:
    if isinstance(cell_value, dict):
        return _format_number_with_interval(**cell_value)
    if isinstance(cell_value, list):
        return ", ".join(map(_format_cell_value, cell_value))
    if cell_value is None or isinstance(cell_value, float):
        return format_number(cell_value)
    if isinstance(cell_value, int) and not isinstance(cell_value, bool):
        return f"{cell_value:,}"
    return str(cell_value)


def _format_number_with_interval(
    mean: float | None, low: float | None, high: float | None, about: str
) -> str:
    """Write a number with its interval, and a dash where it has none: of one unit nothing can be
    said.
    """
    if mean is None or isnan(mean):
        return format_number(mean)
    if low is None or high is None or isnan(low):
        return f"{format_number(mean)} [–]"
    return f"{format_number(mean)} [{format_number(low)}, {format_number(high)}{about}]"


_MATHS = {
    "<": "<",
    ">": ">",
    "≥": r"\geq",
    "≤": r"\leq",
    "≠": r"\neq",
    "×": r"\times",
    "−": "-",
    "±": r"\pm",
    "→": r"\rightarrow",
    "·": r"\cdot",
    "α": r"\alpha",
    "β": r"\beta",
    "γ": r"\gamma",
    "λ": r"\lambda",
}
_LATEX = {
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
    **{sign: f"${command}$" for sign, command in _MATHS.items()},
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "|": r"\textbar{}",
    "–": "--",
    "—": "---",
    "…": r"\ldots{}",
    "“": "``",
    "”": "''",
    "‘": "`",
    "’": "'",
    "\u00a0": "~",
}


def escape_latex(text: str) -> str:
    """Escape text for LaTeX; the minus of a number, at the start or in an interval, becomes a minus
    sign.
    """
    escaped_text = "".join(
        _LATEX.get(character, character) for character in re.sub(r"\s+", " ", text)
    )
    return re.sub(r"(^|\[|, |\$>\$)-(?=\d)", r"\1$-$", escaped_text)
