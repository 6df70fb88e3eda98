"""The times of a chat of WhatsApp.

The order of day and month follows from all dates of the file.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import lru_cache
from itertools import pairwise
from operator import itemgetter
from typing import NamedTuple

from memlab.datasets.importers.whatsapp_lines import HeadedLine
from memlab.datasets.record_sources import Source

ORDERS = {"dmy": (2, 1, 0), "mdy": (2, 0, 1), "ymd": (0, 1, 2)}
"""Order of the parts of a date: where year, month and day stand."""
DAY = timedelta(days=1)


class _DateOrderMisfits(NamedTuple):
    """What speaks against an order of day and month; compared field by field."""

    n_impossible_dates: int
    n_steps_back: int
    is_unlikely: bool


def assign_line_times_and_note_doubts(file: Source, lines: list[HeadedLine]) -> None:
    """Date the lines in the order that fits the whole file best.

    Where two fit equally, say which was taken.
    """
    date_order = _choose_date_order_and_note_doubt(file, lines)
    _note_odd_words_beside_times_as_issue(file, lines)
    undated_numbers = list[int]()
    for number, line in enumerate(lines, 1):
        line.time = _time_in_date_order(line, date_order)
        if line.time is None:
            undated_numbers.append(number)
    if len(undated_numbers) * 10 > len(lines):
        first_undated = lines[undated_numbers[0] - 1]
        remedy = "name another --date-order"
        # The Persian or the Islamic calendar.
        if any(1380 < date_part < 1500 for date_part in first_undated.date_parts):
            remedy = "set the phone to the Gregorian calendar"
        undated_text = f"message {undated_numbers[0]} and {len(undated_numbers) - 1} more"
        file.fail(
            f"{undated_text}: {first_undated.raw_line[:30]!r} is no date as {date_order}; {remedy}"
        )


def _choose_date_order_and_note_doubt(file: Source, lines: list[HeadedLine]) -> str:
    """Choose the order of day, month and year."""
    known_orders = list(ORDERS)
    if file.date_order:
        known_orders = [file.date_order]
    first_of_days = lines[:1]
    for line, following in pairwise(lines):
        if following.date_parts != line.date_parts:
            first_of_days.append(following)
    misfits_by_order = {
        date_order: _count_date_order_misfits(first_of_days, date_order)
        for date_order in known_orders
    }
    fewest_misfits = min(misfits_by_order.values())
    fitting_orders = [
        date_order for date_order in known_orders if misfits_by_order[date_order] == fewest_misfits
    ]
    date_order = fitting_orders[0]
    if "mdy" in fitting_orders and (
        "dmy" not in fitting_orders or all(map(_has_short_american_date_and_am_pm, lines))
    ):
        date_order = "mdy"
    if (
        len(fitting_orders) > 1
        and len({date_part for line in first_of_days for date_part in line.date_parts[:2]}) > 1
    ):
        finding = f"every date can be {' or '.join(fitting_orders)}"
        file.note(
            f"{file.name}: dates", finding, f"read as {date_order}; --date-order names another"
        )
    return date_order


def _has_short_american_date_and_am_pm(line: HeadedLine) -> bool:
    """Say whether a date is written as in the United States: 1/2/26, 9:41 PM."""
    if line.form.first_separator != "/":
        return False
    if line.form.has_year_last:
        return False
    return line.words_beside.endswith(("AM", "PM"))


def _note_odd_words_beside_times_as_issue(file: Source, lines: list[HeadedLine]) -> None:
    """Note words beside the times that may be a half of the day in a language that is not known."""
    words_beside = {line.words_beside for line in lines}
    unknown_words = {line.words_beside for line in lines if not line.day_half} - {""}
    if not unknown_words or len(words_beside) < 2:
        return
    if all(0 < line.clock_time[0] < 13 for line in lines):
        finding = f"words beside them: {', '.join(sorted(unknown_words))}"
        file.note(f"{file.name}: times", finding, "taken as no half of the day")


def _count_date_order_misfits(lines: list[HeadedLine], date_order: str) -> _DateOrderMisfits:
    """Count the dates that an order makes impossible, and the steps back in time.

    Some orders no locale has.

    :param lines: the first of each date.
    """
    known_times = list[datetime]()
    for line in lines:
        known_time = _time_in_date_order(line, date_order)
        if known_time is not None:
            known_times.append(known_time)
    steps_back = sum(
        known_time - following > DAY for known_time, following in pairwise(known_times)
    )
    header_form = lines[0].form
    is_unlikely = False
    if date_order == "mdy":
        is_unlikely = header_form.first_separator == "."
    elif date_order == "ymd":
        is_unlikely = not header_form.has_year_first
    return _DateOrderMisfits(len(lines) - len(known_times), steps_back, is_unlikely)


def _time_in_date_order(line: HeadedLine, date_order: str) -> datetime | None:
    """Give the time of a line; ``None`` where it is none in this order."""
    year, month, day = _gregorian_year_month_and_day(line.date_parts, date_order)
    hour, minute, second = line.clock_time
    if line.day_half and hour <= 12:
        hour %= 12
        if line.day_half == "pm":
            hour += 12
    if not 2009 <= year < 2100:
        return None
    try:
        return datetime(year, month, day, hour, minute, second)
    except ValueError:
        return None


@lru_cache(4096)
def _gregorian_year_month_and_day(
    date_parts: tuple[int, int, int], date_order: str
) -> tuple[int, int, int]:
    """Give year, month and day, the year in our calendar."""
    year, month, day = itemgetter(*ORDERS[date_order])(date_parts)
    if year < 52:
        year += 2000
    elif year < 100:  # the Buddhist calendar: no chat is of 2052
        year += 1957
    elif year < 200:  # the calendar of Taiwan
        year += 1911
    elif 2400 < year < 2700:  # the Buddhist calendar
        year -= 543
    return year, month, day
