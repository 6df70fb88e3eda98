"""How long a server asks to wait before the next request."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime

_DURATION = re.compile(r"(?:(\d+)h)?(?:(\d+)m(?!s))?(?:(\d+(?:\.\d+)?)s)?(?:(\d+(?:\.\d+)?)ms)?")
_WORDS = re.compile(
    r"(?:again|retry|wait)(?: for| in| after| at least)*"
    r" ((?:\d+m)?\d+(?:\.\d+)?) ?(ms|s)(?:ec(?:ond)?s?)?\b",
    re.IGNORECASE,
)
_UNITS = (3600.0, 60.0, 1.0, 0.001)
_RESETS = ("x-ratelimit-reset-requests", "x-ratelimit-reset-tokens")


def requested_pause(headers: Mapping[str, str], message: str = "") -> float | None:
    """Give the seconds that an answer asks to wait; ``None`` where it does not say.

    ``Retry-After`` holds seconds, or a date, which is compared with the server's own clock where it
    states one. Some servers send ``retry-after-ms``, or durations such as ``1m3.5s`` until a limit
    is reset, or say it in words only.

    :param headers: with lower-case names.
    :param message: of the error.

    >>> from memlab.llm.pauses import requested_pause
    >>> requested_pause({"retry-after": "2"})
    2.0
    >>> requested_pause({"x-ratelimit-reset-requests": "1m3.5s"})
    63.5
    >>> date, later = "Fri, 01 May 2026 09:00:00 GMT", "Fri, 01 May 2026 09:00:06 GMT"
    >>> requested_pause({"date": date, "retry-after": later})
    6.0
    """
    milliseconds = _number(headers.get("retry-after-ms", ""))
    if milliseconds is not None:
        return milliseconds / 1000
    after = headers.get("retry-after", "")
    if after:
        seconds = _number(after)
        if seconds is None:
            return _seconds_until(after, headers.get("date", ""))
        return seconds
    longest = max(_duration(headers.get(name, "")) for name in _RESETS)
    if longest > 0:
        return longest
    words = _WORDS.search(message)
    if words is None:
        return None
    return _duration(words[1] + words[2].lower()) or None


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    if math.isfinite(number):
        return max(0.0, number)
    return None


def _seconds_until(date: str, clock: str) -> float | None:
    then, now = _timestamp(date), _timestamp(clock)
    if then is None:
        return None
    if now is None:
        now = time.time()
    if then > now:
        return then - now
    return None


def _timestamp(date: str) -> float | None:
    try:
        return parsedate_to_datetime(date).timestamp()
    except (ValueError, TypeError, OverflowError, IndexError):
        return None


def _duration(text: str) -> float:
    """Read the seconds of a duration; 0 for what is none."""
    found = _DURATION.fullmatch(text.strip().lower())
    if found is None:
        return 0.0
    seconds = 0.0
    for amount, unit in zip(found.groups("0"), _UNITS, strict=True):
        seconds += float(amount) * unit
    return seconds
