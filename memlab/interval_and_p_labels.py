"""What is said beside an interval, in tables as in figures: its level, and over what it was taken.

A frame with ``low`` and ``high`` says in ``level`` how sure the interval is, in ``unit`` what was
taken as independent (``question`` or ``scope``), and in ``units`` of how many. ``NAME_low`` and
``NAME_high`` have ``NAME_level``, or else share the one ``level``; so do units.
"""

from __future__ import annotations

from typing import NamedTuple

import polars as pl
import polars.selectors as cs

WILSON = "Wilson"
NEWCOMBE = "Newcombe"
BOOTSTRAP = "bootstrap"
CLUSTERED = "t over scopes"
CLUSTERED_WILSON = "Wilson over scopes"
METHODS = (WILSON, NEWCOMBE, BOOTSTRAP, CLUSTERED, CLUSTERED_WILSON)
ABOUT = ("level", "unit", "units", "method")
"""Columns that say of an interval what it is."""
ALPHA = 0.05
"""Below it a corrected p is significant."""
PERMUTATIONS = 10_000
"""Random flips of signs that a test draws where they are too many to count all."""
MANY_SCOPES = 10
"""With more scopes than this p can be below .001, and nothing is said of how small it can be."""
_OTHERWISE = 'unit="question" takes questions as independent.'
_SELECTORS = {
    "level": cs.float(),
    "unit": cs.string(),
    "units": cs.integer(),
    "method": cs.string(),
}
"""A column of one of these names that holds something else, as a ranking's level does, is another
one.
"""


class IntervalColumns(NamedTuple):
    """The columns of an interval: ends, and of :data:`ABOUT` what the frame has."""

    low: str
    high: str
    about: dict[str, str]


def find_interval_columns(
    frame: pl.DataFrame, column_name: str, *, is_anywhere_allowed: bool = False
) -> IntervalColumns | None:
    """Find the interval of a column: ``low`` and ``high`` right behind it, or ``NAME_low`` and
    ``NAME_high``.

    :param is_anywhere_allowed: ``low`` and ``high`` may stand elsewhere, where the column has none
        of its own.

    >>> import polars as pl
    >>> from memlab.interval_and_p_labels import find_interval_columns
    >>> frame = pl.DataFrame({"mean": [0.5], "low": [0.4], "high": [0.6], "level": [0.9]})
    >>> find_interval_columns(frame, "mean")
    IntervalColumns(low='low', high='high', about={'level': 'level'})
    """
    next_column = frame.columns.index(column_name) + 1
    end_columns = f"{column_name}_low", f"{column_name}_high"
    is_adjacent = frame.columns[next_column : next_column + 2] == ["low", "high"]
    if is_adjacent or (is_anywhere_allowed and not {*end_columns} <= {*frame.columns}):
        end_columns = "low", "high"
    if not {*end_columns} <= {*frame.columns}:
        return None
    label_columns = {}
    for label_name in ABOUT:
        fitting = cs.expand_selector(frame, _SELECTORS[label_name])
        for column in (label_name, f"{column_name}_{label_name}"):
            is_told = column in fitting
            if is_told and label_name == "method":
                is_told = frame[column].drop_nulls().is_in(METHODS).all()
            if is_told:
                label_columns[label_name] = column
    return IntervalColumns(*end_columns, label_columns)


def format_confidence_level(level: float) -> str:
    """Write a level as a percentage that is never rounded up to 100.

    >>> from memlab.interval_and_p_labels import format_confidence_level
    >>> levels = (0.9, 1 - 0.05 / 19, 1 - 0.05 / 1000)
    >>> tuple(map(format_confidence_level, levels))
    ('90 %', '99.7 %', '99.995 %')
    """
    for digits in (1, 2, 3, 4, 5):
        percent_text = f"{100 * level:.{digits}f}"
        if float(percent_text) < 100:
            break
    return f"{percent_text.rstrip('0').rstrip('.')} %"


def format_interval_label(level: float | None, unit: str | None, n_units: int | None) -> str:
    """Say what an interval is, as it stands in a column's name.

    Questions are counted in a column of their own.

    >>> from memlab.interval_and_p_labels import format_interval_label
    >>> format_interval_label(0.95, "scope", 6), format_interval_label(0.95, "question", 40)
    ('95 %, 6 scopes', '95 %, questions')
    >>> format_interval_label(0.9, None, None), format_interval_label(None, None, None)
    ('90 %', '')
    """
    label_parts = []
    if level is not None:
        label_parts.append(format_confidence_level(level))
    if unit is not None:
        unit_text = f"{unit}s"
        if unit != "question" and n_units is not None:
            unit_text = f"{n_units:,} {unit_text}"
        if n_units == 1:
            unit_text = unit_text.removesuffix("s")
        label_parts.append(unit_text)
    return ", ".join(label_parts)


def interval_label_or_empty_of_each_row(frame: pl.DataFrame, column_name: str) -> list[str]:
    """Give the label of each row's interval around a column; empty where there is none."""
    interval = find_interval_columns(frame, column_name, is_anywhere_allowed=True)
    if interval is None:
        return [""] * frame.height
    label_columns = []
    for label_name in ("level", "unit", "units"):
        label_values = pl.Series([None] * frame.height)
        if label_name in interval.about:
            label_values = frame[interval.about[label_name]]
        label_columns.append(label_values)
    labels = []
    for low, value, *row_label_parts in zip(
        frame[interval.low], frame[column_name], *label_columns, strict=True
    ):
        label = ""
        if low is not None or value is not None:
            label = format_interval_label(*row_label_parts)
        labels.append(label)
    return labels


def describe_intervals_for_caption(frame: pl.DataFrame, column_name: str = "mean") -> str:
    """Say what the intervals around a column are, for a caption or a key.

    >>> import polars as pl
    >>> from memlab.interval_and_p_labels import describe_intervals_for_caption
    >>> interval = {"mean": [0.5], "low": [0.4], "high": [0.6], "level": [0.95]}
    >>> frame = pl.DataFrame({**interval, "unit": ["question"]})
    >>> describe_intervals_for_caption(frame)
    '95 % intervals over questions'
    >>> describe_intervals_for_caption(frame.drop("level", "unit"))
    'intervals'
    """
    labels = interval_label_or_empty_of_each_row(frame, column_name)
    interval_texts = []
    for label in dict.fromkeys(labels):
        level_text, separator, unit = label.partition(", ")
        interval_text = f"{level_text} intervals"
        if separator:
            interval_text += f" over {unit}"
        if label:
            interval_texts.append(interval_text)
    if not interval_texts:
        return "intervals"
    return " and ".join(interval_texts)


def smallest_p_of_sign_flips(n_units: int) -> float:
    """Give the smallest p of a test that flips the signs of so many units: both ways in which all
    agree.

    >>> from memlab.interval_and_p_labels import smallest_p_of_sign_flips
    >>> smallest_p_of_sign_flips(6)
    0.03125
    """
    return 2.0 ** (1 - n_units)


def is_smallest_p_of_drawn_flips(p: float | None) -> bool:
    """Say whether an uncorrected p is the smallest that a test with drawn flips can give.

    None of the flips went as far as what was observed, so that p is at most this. A p of counted
    flips is exact, and larger.

    >>> from memlab.interval_and_p_labels import is_smallest_p_of_drawn_flips
    >>> is_smallest_p_of_drawn_flips(1 / 10_001), is_smallest_p_of_drawn_flips(2.0**-13)
    (True, False)
    """
    return p is not None and p <= 1.000001 / (PERMUTATIONS + 1)


def smallest_p_note_or_empty(frame: pl.DataFrame) -> str:
    """Say of tests whose units are few scopes how small their p can be.

    Empty where that binds nobody.

    >>> import polars as pl
    >>> from memlab.interval_and_p_labels import smallest_p_note_or_empty
    >>> smallest_p_note_or_empty(pl.DataFrame({"p": [0.5], "unit": ["scope"], "units": [6]}))
    '6 scopes: no p below .031; unit="question" takes questions as independent.'
    """
    if not {"p", "unit", "units"} <= {*frame.columns}:
        return ""
    tested_rows = frame.filter(pl.col("p").is_not_null(), unit="scope")
    few_scopes = tested_rows.filter(pl.col("units") <= MANY_SCOPES)["units"]
    if few_scopes.is_empty():
        return ""
    notes = [
        f"{units:,} scopes: no p below {_format_smallest_p(units)}"
        for units in few_scopes.unique().sort()
    ]
    return f"{'; '.join(notes)}; {_OTHERWISE}"


def _format_smallest_p(n_units: int) -> str:
    return f"{smallest_p_of_sign_flips(n_units):.3f}".removeprefix("0")


def no_best_system_note_or_empty(n_units: int, n_systems: int, *, alpha: float = 0.05) -> str:
    """Say of a table of systems tested over scopes that none can be the best of all.

    Empty where one can.

    >>> from memlab.interval_and_p_labels import no_best_system_note_or_empty
    >>> no_best_system_note_or_empty(6, 3), no_best_system_note_or_empty(10, 3)
    ('6 scopes: no p below .031, so none of 3 systems can be bold; unit="question" takes questions
    as independent.', '')
    """
    if smallest_p_of_sign_flips(n_units) * (n_systems - 1) < alpha:
        return ""
    limit_text = (
        f"{n_units:,} scopes: no p below {_format_smallest_p(n_units)}, so none of {n_systems} "
        "systems can be bold"
    )
    return f"{limit_text}; {_OTHERWISE}"
