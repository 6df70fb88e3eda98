"""Frames printed for a write-up, as Markdown, LaTeX or HTML.

Printed numbers never flatter: three decimals, halves to even, and what is not quite 1 or 0 does not print as 1 or 0.
Full precision stays in the frames, in ``report.json`` and in the Parquet files.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import polars as pl

MOST_ROWS = 20
BOUNDS = ("ceiling", "chance")
"""The rows of a table of systems that are no systems."""


class Table(pl.DataFrame):
    """A frame of systems that knows which of them a test shows to be the best of a column; printed, that is bold.

    :param shown: the row, by the first column's text, that is shown to be best in a column; what is a tie, or rests on
        too few questions, is in no column. A frame derived from this one prints without bold.
    """

    shown: Mapping[str, str] = MappingProxyType({})

    def __init__(self, data: Any, *, shown: Mapping[str, str], **options: Any) -> None:
        super().__init__(data, **options)
        self.shown = shown


def to_markdown(frame: pl.DataFrame) -> str:
    """Write a frame as a Markdown table; what a :class:`Table` shows to be best is bold.

    >>> import polars as pl
    >>> from memlab.evaluate import to_markdown
    >>> print(to_markdown(pl.DataFrame({"system": ["a | b", "c"], "recall@10": [0.5, 0.25]})))
    | system | recall@10 |
    |:---|---:|
    | a \\| b | 0.500 |
    | c | 0.250 |
    """
    head, *rows = ("| " + " | ".join(row) + " |" for row in _rows(frame, "**{}**".format, _markdown_escape))
    rule = "|" + "|".join("---:" if _is_number(t) else ":---" for t in frame.dtypes) + "|"
    return "\n".join([head, rule, *rows])


def titled(tables: Mapping[str, pl.DataFrame]) -> str:
    """Write frames as Markdown tables, each under its title."""
    return "\n\n".join(f"**{title}**\n\n{to_markdown(table)}" for title, table in tables.items())


def to_latex(frame: pl.DataFrame, *, caption: str, label: str, wide: bool = False) -> str:
    """Write a frame as a LaTeX table for the packages ``booktabs`` and, for accented letters, ``inputenc`` utf8.

    :param caption: plain text; escaped here.
    :param label: for ``\\ref``; kept to letters, digits, ``:``, ``.`` and ``-``.
    :param wide: over both columns of a page (``table*``) rather than in one.

    >>> import polars as pl
    >>> from memlab.evaluate import to_latex
    >>> print(to_latex(pl.DataFrame({"form": ["how_many"], "n": [12]}), caption="≥ 2 & 5 %", label="tab:forms"))
    \\begin{table}[t]
      \\centering\\small\\setlength{\\tabcolsep}{4pt}
      \\caption{$\\geq$ 2 \\& 5 \\%}
      \\label{tab:forms}
      \\begin{tabular}{p{.34\\columnwidth}r}
        \\toprule
        form & n \\\\
        \\midrule
        \\raggedright how\\_\\allowbreak{}many & 12 \\\\
        \\bottomrule
      \\end{tabular}
    \\end{table}
    """
    _, *body = _rows(frame, r"\textbf{{{}}}".format, latex_escape)
    # A pipeline's name breaks nowhere by itself.
    body = [(r"\raggedright " + re.sub(r"(\\_|[(,=/])", r"\1\\allowbreak{}", first), *rest) for first, *rest in body]
    head = [latex_escape(frame.columns[0]), *map(_stacked, frame.columns[1:])]
    rows = [" & ".join(row) + r" \\" for row in body]
    first_bound = next((i for i, name in enumerate(frame.to_series(0)) if name in BOUNDS), None)
    if first_bound:
        rows.insert(first_bound, r"\midrule")
    kind = "table*" if wide else "table"
    columns = "".join("r" if _is_number(t) else "l" for t in frame.dtypes[1:])
    names_width = r"p{.25\textwidth}" if wide else r"p{.34\columnwidth}"
    lines = [
        rf"\begin{{{kind}}}[t]",
        r"  \centering\small\setlength{\tabcolsep}{4pt}",
        rf"  \caption{{{latex_escape(caption)}}}",
        rf"  \label{{{re.sub(r'[^A-Za-z0-9:.-]+', '-', label)}}}",
        rf"  \begin{{tabular}}{{{names_width}{columns}}}",
        r"    \toprule",
        "    " + " & ".join(head) + r" \\",
        r"    \midrule",
        *("    " + row for row in rows),
        r"    \bottomrule",
        r"  \end{tabular}",
        rf"\end{{{kind}}}",
    ]
    return "\n".join(lines)


def to_html(frame: pl.DataFrame) -> str:
    """Write a frame as an HTML table with everything escaped."""
    head, *body = _rows(frame, "<b>{}</b>".format, html.escape)
    tags = [f"<td style='text-align:{'right' if _is_number(t) else 'left'}'>{{}}</td>" for t in frame.dtypes]
    rows = "".join(f"<tr>{''.join(tags).format(*row)}</tr>" for row in body)
    return f"<table><thead><tr>{''.join(f'<th>{c}</th>' for c in head)}</tr></thead><tbody>{rows}</tbody></table>"


def styled(frame: pl.DataFrame) -> str:
    """Write a frame as HTML for a notebook: no types, no quotes, and an interval in the cell of what it is around.

    An interval is ``low`` and ``high`` right behind a column, or its name with ``_low`` and ``_high``.

    >>> import polars as pl
    >>> from memlab.evaluate.printing import styled
    >>> "0.500 [0.400, 0.600]" in styled(pl.DataFrame({"mean": [0.5], "low": [0.4], "high": [0.6]}))
    True
    """
    shown, names = pl.DataFrame(frame.head(MOST_ROWS)), frame.columns
    for i, name in enumerate(names):
        ends = [f"{name}_low", f"{name}_high"]
        ends = ["low", "high"] if names[i + 1 : i + 3] == ["low", "high"] else ends
        if set(ends) <= set(names):
            cell = pl.struct(mean=name, low=ends[0], high=ends[1]).alias(f"{name} [low, high]")
            shown = shown.with_columns(cell).select(
                cell.meta.output_name() if c == name else c for c in shown.columns if c not in ends
            )
    lists = [name for name, dtype in shown.schema.items() if dtype == pl.List]
    shown = shown.with_columns(pl.col(lists).list.eval(pl.element().cast(pl.String)).list.join(", "))
    rest = f"<p>… and {frame.height - MOST_ROWS:,} more rows</p>" if frame.height > MOST_ROWS else ""
    return to_html(shown.rename({name: name.replace("_", " ") for name in shown.columns})) + rest


def show_tables() -> None:
    """From here on, show every frame of this notebook as :func:`styled` writes it; outside of one, do nothing."""
    from IPython import get_ipython

    if (shell := get_ipython()) is not None:
        shell.display_formatter.formatters["text/html"].for_type(pl.DataFrame, styled)


def number(value: float | None) -> str:
    """Print a number without flattering it.

    >>> from memlab.evaluate.printing import number
    >>> number(0.0625), number(0.9999), number(1.0), number(0.00001), number(None)
    ('0.062', '>0.999', '1.000', '<0.001', '–')
    """
    if value is None:
        return "–"
    text = f"{value:.3f}"
    if value != 0 and float(text) == 0:
        return "<0.001" if value > 0 else ">-0.001"
    return ">0.999" if 0 < value < 1 and float(text) == 1 else text


def _rows(frame: pl.DataFrame, bold: Callable[[str], str], escape: Callable[[str], str]) -> list[tuple[str, ...]]:
    """Print the names of the columns and each row, escaped; what a :class:`Table` shows to be best in bold."""
    shown = frame.shown if isinstance(frame, Table) else {}
    columns = []
    for series in frame:
        best = shown.get(series.name)
        texts = [escape(_text(v)) for v in series.to_list()]
        texts = [bold(text) if name == best else text for name, text in zip(frame.to_series(0), texts, strict=True)]
        columns.append([escape(series.name), *texts])
    return list(zip(*columns, strict=True))


def _text(value: Any) -> str:
    if isinstance(value, dict):
        mean = number(value["mean"])
        if value["mean"] is None or value["low"] is None:
            return mean
        return f"{mean} [{number(value['low'])}, {number(value['high'])}]"
    if value is None or isinstance(value, float):
        return number(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return str(value)


def _is_number(dtype: pl.DataType) -> bool:
    return dtype.is_numeric() or dtype == pl.Struct


def _markdown_escape(text: str) -> str:
    plain = re.sub(r"([\\|*`])", r"\\\1", re.sub(r"\s+", " ", text))
    return re.sub(r"<(?=[A-Za-z/!?])", "&lt;", plain)  # where it could begin a tag; <0.001 is a number


_MATHS = {
    "<": "<", ">": ">", "≥": r"\geq", "≤": r"\leq", "≠": r"\neq", "×": r"\times", "−": "-", "±": r"\pm",
    "→": r"\rightarrow", "·": r"\cdot", "∞": r"\infty", "α": r"\alpha", "β": r"\beta", "γ": r"\gamma", "λ": r"\lambda",
    "μ": r"\mu", "σ": r"\sigma", "✔": r"\surd", "★": r"\star", "ⁿ": "^n",
}  # fmt: skip
_LATEX = {
    **{c: f"\\{c}" for c in "&%$#_{}"}, **{c: f"${text}$" for c, text in _MATHS.items()},
    "\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "|": r"\textbar{}",
    "–": "--", "—": "---", "…": r"\ldots{}", "“": "``", "”": "''", "‘": "`", "’": "'", "\u00a0": "~",
}  # fmt: skip


def _stacked(name: str, width: int = 10) -> str:
    """Break the name of a column into lines, where words end."""
    lines = [""]
    for part in re.findall(r"[^\s_-]*[\s_-]*", name):
        lines = [*lines[:-1], lines[-1] + part] if len((lines[-1] + part).strip()) <= width else [*lines, part]
    escaped = [latex_escape(line.strip()) for line in lines if line.strip()]
    return r"\shortstack[r]{" + r" \\ ".join(escaped) + "}" if len(escaped) > 1 else "".join(escaped)


def latex_escape(text: str) -> str:
    """Escape text for LaTeX; a leading minus of a number becomes a minus sign."""
    text = re.sub(r"\s+", " ", text)
    escaped = "".join(_LATEX.get(c, c) for c in text)
    return re.sub(r"^(\$>\$)?-(?=\d)", r"\1$-$", escaped)
