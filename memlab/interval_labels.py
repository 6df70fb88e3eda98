"""What is said beside an interval, in tables as in figures: its level, and over what it was taken.

A frame with ``low`` and ``high`` says in ``level`` how sure the interval is, in ``unit`` what was
taken as independent (``question`` or ``scope``), and in ``units`` of how many. ``NAME_low`` and
``NAME_high`` have ``NAME_level``, or else share the one ``level``; so do units.
"""

from __future__ import annotations

from typing import NamedTuple

import polars as pl
import polars.selectors as cs

WILSON, NEWCOMBE, BOOTSTRAP = "Wilson", "Newcombe", "bootstrap"
CLUSTERED, CLUSTERED_WILSON = "t over scopes", "Wilson over scopes"
METHODS = (WILSON, NEWCOMBE, BOOTSTRAP, CLUSTERED, CLUSTERED_WILSON)
ABOUT = ("level", "unit", "units", "method")
"""Columns that say of an interval what it is."""
ALPHA = 0.05
"""Below it a corrected p is significant."""
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


def interval_columns(
    frame: pl.DataFrame, name: str, *, anywhere: bool = False
) -> IntervalColumns | None:
    """Find the interval of a column: ``low`` and ``high`` right behind it, or ``NAME_low`` and
    ``NAME_high``.

    :param anywhere: ``low`` and ``high`` may stand elsewhere, where the column has none of its own.

    >>> import polars as pl
    >>> from memlab.interval_labels import interval_columns
    >>> frame = pl.DataFrame({"mean": [0.5], "low": [0.4], "high": [0.6], "level": [0.9]})
    >>> interval_columns(frame, "mean")
    IntervalColumns(low='low', high='high', about={'level': 'level'})
    """
    behind = frame.columns.index(name) + 1
    ends = f"{name}_low", f"{name}_high"
    adjacent = frame.columns[behind : behind + 2] == ["low", "high"]
    if adjacent or (anywhere and not {*ends} <= {*frame.columns}):
        ends = "low", "high"
    if not {*ends} <= {*frame.columns}:
        return None
    about = {}
    for what in ABOUT:
        fitting = cs.expand_selector(frame, _SELECTORS[what])
        for column in (what, f"{name}_{what}"):
            told = column in fitting
            if told and what == "method":
                told = frame[column].drop_nulls().is_in(METHODS).all()
            if told:
                about[what] = column
    return IntervalColumns(*ends, about)


def format_level(level: float) -> str:
    """Write a level as a percentage that is never rounded up to 100.

    >>> from memlab.interval_labels import format_level
    >>> format_level(0.9), format_level(1 - 0.05 / 19), format_level(1 - 0.05 / 1000)
    ('90 %', '99.7 %', '99.995 %')
    """
    for digits in (1, 2, 3, 4, 5):
        text = f"{100 * level:.{digits}f}"
        if float(text) < 100:
            break
    return f"{text.rstrip('0').rstrip('.')} %"


def format_interval_label(level: float | None, unit: str | None, units: int | None) -> str:
    """Say what an interval is, as it stands in a column's name.

    Questions are counted in a column of their own.

    >>> from memlab.interval_labels import format_interval_label
    >>> format_interval_label(0.95, "scope", 6), format_interval_label(0.95, "question", 40)
    ('95 %, 6 scopes', '95 %, questions')
    >>> format_interval_label(0.9, None, None), format_interval_label(None, None, None)
    ('90 %', '')
    """
    parts = []
    if level is not None:
        parts.append(format_level(level))
    if unit is not None:
        counted = f"{unit}s"
        if unit != "question" and units is not None:
            counted = f"{units:,} {counted}"
        if units == 1:
            counted = counted.removesuffix("s")
        parts.append(counted)
    return ", ".join(parts)


def interval_labels(frame: pl.DataFrame, name: str) -> list[str]:
    """Give the label of each row's interval around a column; empty where there is none."""
    found = interval_columns(frame, name, anywhere=True)
    if found is None:
        return [""] * frame.height
    columns = []
    for what in ("level", "unit", "units"):
        values = pl.Series([None] * frame.height)
        if what in found.about:
            values = frame[found.about[what]]
        columns.append(values)
    labels = []
    for low, value, *about in zip(frame[found.low], frame[name], *columns, strict=True):
        label = ""
        if low is not None or value is not None:
            label = format_interval_label(*about)
        labels.append(label)
    return labels


def describe_intervals(frame: pl.DataFrame, name: str = "mean") -> str:
    """Say what the intervals around a column are, for a caption or a key.

    >>> import polars as pl
    >>> from memlab.interval_labels import describe_intervals
    >>> interval = {"mean": [0.5], "low": [0.4], "high": [0.6], "level": [0.95]}
    >>> frame = pl.DataFrame({**interval, "unit": ["question"]})
    >>> describe_intervals(frame), describe_intervals(frame.drop("level", "unit"))
    ('95 % intervals over questions', 'intervals')
    """
    labels = interval_labels(frame, name)
    said = []
    for label in dict.fromkeys(labels):
        level, comma, unit = label.partition(", ")
        text = f"{level} intervals"
        if comma:
            text += f" over {unit}"
        if label:
            said.append(text)
    if not said:
        return "intervals"
    return " and ".join(said)


def smallest_p(units: int) -> float:
    """Give the smallest p of a test that flips the signs of so many units: both ways in which all
    agree.

    >>> from memlab.interval_labels import smallest_p
    >>> smallest_p(6)
    0.03125
    """
    return 2.0 ** (1 - units)


def scope_note(frame: pl.DataFrame) -> str:
    """Say of tests whose units are few scopes how small their p can be.

    Empty where that binds nobody.

    >>> import polars as pl
    >>> from memlab.interval_labels import scope_note
    >>> scope_note(pl.DataFrame({"p": [0.5], "unit": ["scope"], "units": [6]}))
    '6 scopes: no p below .031; unit="question" takes questions as independent.'
    """
    if not {"p", "unit", "units"} <= {*frame.columns}:
        return ""
    tested = frame.filter(pl.col("p").is_not_null(), unit="scope")
    few = tested.filter(pl.col("units") <= MANY_SCOPES)["units"]
    if few.is_empty():
        return ""
    notes = [f"{units:,} scopes: no p below {_short_p(units)}" for units in few.unique().sort()]
    return f"{'; '.join(notes)}; {_OTHERWISE}"


def _short_p(units: int) -> str:
    return f"{smallest_p(units):.3f}".removeprefix("0")


def bold_note(units: int, systems: int, *, alpha: float = 0.05) -> str:
    """Say of a table of systems tested over scopes that none can be the best of all.

    Empty where one can.

    >>> from memlab.interval_labels import bold_note
    >>> bold_note(6, 3), bold_note(10, 3)
    ('6 scopes: no p below .031, so none of 3 systems can be bold; unit="question" takes questions
    as independent.', '')
    """
    if smallest_p(units) * (systems - 1) < alpha:
        return ""
    able = (
        f"{units:,} scopes: no p below {_short_p(units)}, so none of {systems} systems can be bold"
    )
    return f"{able}; {_OTHERWISE}"
