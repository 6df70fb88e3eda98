"""Frames printed for a write-up, as Markdown, LaTeX or HTML.

Printed numbers never flatter: three decimals, halves to even, and what is not quite 1 or 0 does not print as 1 or 0.
Full precision stays in the frames, in ``report.json`` and in the Parquet files.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable
from typing import Any

import polars as pl

BOUNDS = ("ceiling", "chance")
"""The rows of a table of systems that are no systems."""
_NOT_RANKED = re.compile(r"difference|low|high|p|p_holm|stale@.*")
"""Columns in which more is not better."""


def to_markdown(frame: pl.DataFrame, *, digits: int = 3) -> str:
    """Write a frame as a Markdown table.

    In a table of systems (its first column is called ``system…``) the best value of each column is bold; the rows
    ``ceiling`` and ``chance`` do not compete.

    >>> import polars as pl
    >>> from memlab.evaluate import to_markdown
    >>> print(to_markdown(pl.DataFrame({"system": ["a | b", "c"], "recall@10": [0.5, 0.25]})))
    | system | recall@10 |
    |:---|---:|
    | a \\| b | **0.500** |
    | c | 0.250 |
    """
    head, *rows = ("| " + " | ".join(row) + " |" for row in _rows(frame, digits, "**{}**".format, _markdown_escape))
    rule = "|" + "|".join("---:" if _is_number(t) else ":---" for t in frame.dtypes) + "|"
    return "\n".join([head, rule, *rows])


def to_latex(frame: pl.DataFrame, *, caption: str, label: str, digits: int = 3) -> str:
    """Write a frame as a LaTeX table for the packages ``booktabs`` and, for accented letters, ``inputenc`` utf8.

    :param caption: plain text; escaped here.
    :param label: for ``\\ref``; kept to letters, digits, ``:``, ``.`` and ``-``.

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
    rows = [" & ".join(row) + r" \\" for row in _rows(frame, digits, r"\textbf{{{}}}".format, latex_escape)]
    first_bound = next((i for i, name in enumerate(_names(frame)) if name in BOUNDS), None)
    if first_bound:
        rows.insert(first_bound + 1, r"\midrule")
    head, *body = ("    " + row for row in rows)
    lines = [
        r"\begin{table}",
        r"  \centering",
        rf"  \caption{{{latex_escape(caption)}}}",
        rf"  \label{{{re.sub(r'[^A-Za-z0-9:.-]+', '-', label)}}}",
        rf"  \begin{{tabular}}{{{''.join('r' if _is_number(t) else 'l' for t in frame.dtypes)}}}",
        r"    \toprule",
        head,
        r"    \midrule",
        *body,
        r"    \bottomrule",
        r"  \end{tabular}",
        r"\end{table}",
    ]
    return "\n".join(lines)


def to_html(frame: pl.DataFrame, *, digits: int = 3) -> str:
    """Write a frame as an HTML table with everything escaped."""
    head, *body = _rows(frame, digits, "<b>{}</b>".format, html.escape)
    tags = [f"<td style='text-align:{'right' if _is_number(t) else 'left'}'>{{}}</td>" for t in frame.dtypes]
    rows = "".join(f"<tr>{''.join(tags).format(*row)}</tr>" for row in body)
    return f"<table><thead><tr>{''.join(f'<th>{c}</th>' for c in head)}</tr></thead><tbody>{rows}</tbody></table>"


def number(value: float | None, digits: int = 3) -> str:
    """Print a number without flattering it.

    >>> from memlab.evaluate.printing import number
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


def _rows(
    frame: pl.DataFrame, digits: int, bold: Callable[[str], str], escape: Callable[[str], str]
) -> list[tuple[str, ...]]:
    """Print the names of the columns and each row, escaped, with the best of each ranked column in bold."""
    competes = [name not in BOUNDS for name in _names(frame)]
    ranked = bool(frame.width) and frame.columns[0].startswith("system") and sum(competes) > 1
    columns = []
    for series in frame:
        values = series.to_list()
        texts = [escape(_text(v, digits)) for v in values]
        if ranked and (series.dtype.is_float() or series.dtype == pl.Struct) and not _NOT_RANKED.fullmatch(series.name):
            means = [v["mean"] if isinstance(v, dict) else v for v in values]
            means = [mean if competing else None for mean, competing in zip(means, competes, strict=True)]
            best = number(max((m for m in means if m is not None), default=None), digits)
            texts = [
                bold(text) if mean is not None and number(mean, digits) == best else text
                for text, mean in zip(texts, means, strict=True)
            ]
        columns.append([escape(series.name), *texts])
    return list(zip(*columns, strict=True))


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


def latex_escape(text: str) -> str:
    """Escape text for LaTeX; a leading minus of a number becomes a minus sign."""
    text = re.sub(r"\s+", " ", text)
    escaped = "".join(_LATEX.get(c, c) for c in text)
    return re.sub(r"^(\$>\$)?-(?=\d)", r"\1$-$", escaped)
