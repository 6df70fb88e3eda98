"""Days that are only meant, written out: "yesterday (7 May 2023)"."""

from __future__ import annotations

import re
from datetime import date

from memlab.language.calendar import stepped, written
from memlab.language.dates import Date
from memlab.language.dates import dates as read_dates
from memlab.language.words import MONTHS

# "Yesterday's", "last week of May".
_GOES_ON = re.compile(r"['’]s\b| of\b", re.I)


def dated(text: str, day: date) -> str:
    """Write the date behind words that only mean it, seen from the day on which they were said.

    Only what the calendar decides is written: days (yesterday, tomorrow, two days ago, last Friday) as days, months and
    years (last month, three years ago) as such, and of weeks the one that they are before or after. "Recently" or "the
    other day" stay as they are. "Last Friday" is the latest before the day, "next Friday" the first after it, which
    people do not always mean.

    >>> from datetime import date
    >>> from memlab.language.dating import dated
    >>> dated("We met yesterday and moved last month.", date(2023, 1, 1))
    'We met yesterday (31 December 2022) and moved last month (December 2022).'
    >>> dated("She left two weeks ago, not last Friday.", date(2023, 5, 8))
    'She left two weeks ago (2 weeks before 8 May 2023), not last Friday (5 May 2023).'
    """
    for read in reversed(read_dates(text, day)):
        if not read.offset or not read.offset[0] or _GOES_ON.match(text, read.end):
            continue
        # Others are counted from a date that the text names.
        if stepped(day, *read.offset) == read.value:
            text = f"{text[: read.end]} ({_meant(read, *read.offset, day)}){text[read.end :]}"
    return text


def _meant(read: Date, n: int, unit: str, day: date) -> str:
    if unit in ("week", "weekend"):
        way = "before" if n < 0 else "after"
        counted = "the" if read.text.lower().startswith(("last", "next", "this", "coming")) else str(abs(n))
        return f"{counted} {unit}{'s' * (abs(n) > 1)} {way} {written(day)}"
    if unit == "day":
        return written(date.fromisoformat(read.value))
    year, _, month = read.value.partition("-")
    return f"{MONTHS[int(month) - 1].title()} {int(year)}" if month else str(int(year))
