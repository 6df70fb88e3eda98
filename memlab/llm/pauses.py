"""How long a server asks to wait before the next request."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime

from memlab.llm.faults import RATE_LIMITED

_SECONDS = {"d": 86_400.0, "h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
_AMOUNT = (
    r"(?:\d+(?:\.\d+)?) ?(?:ms|milliseconds?|d(?:ays?)?|h(?:ours?|rs?)?|m(?:in(?:ute)?s?)?"
    r"|s(?:ec(?:ond)?s?)?)(?![a-z])"
)
_DURATION = re.compile(rf"{_AMOUNT}(?:(?:, | and | |){_AMOUNT})*", re.IGNORECASE)
_PART = re.compile(r"(\d+(?:\.\d+)?) ?(ms|milli|[dhms])", re.IGNORECASE)
_WORDS = re.compile(
    rf"(?:again|retry|wait)(?: for| in| after| at least)* ({_DURATION.pattern})",
    re.IGNORECASE,
)
_LIMITS = ("requests", "tokens")


def requested_pause(
    headers: Mapping[str, str], message: str = "", *, status: int = RATE_LIMITED
) -> float | None:
    """Give the seconds that an answer asks to wait; ``None`` where it does not say.

    ``Retry-After`` holds seconds, or a date, which is compared with the server's own clock where it
    states one. Some servers send ``retry-after-ms``, or durations such as ``1m3.5s`` until a limit
    is reset, or say it in words only. Durations stand in any answer; they count where a limit is
    why it failed, and of those limits that are used up.

    :param headers: with lower-case names.
    :param message: of the error.
    :param status: of the answer.

    >>> from memlab.llm.pauses import requested_pause
    >>> requested_pause({"retry-after": "2"})
    2.0
    >>> requested_pause({"x-ratelimit-reset-requests": "1m3.5s"})
    63.5
    >>> requested_pause({"x-ratelimit-reset-requests": "1m3.5s"}, status=503)
    >>> requested_pause({}, "Please try again in 1 minute 20 seconds.")
    80.0
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
    longest = 0.0
    if status == RATE_LIMITED:
        longest = max(_reset(headers, limit) for limit in _LIMITS)
    if longest > 0:
        return longest
    words = _WORDS.search(message)
    if words is None:
        return None
    return _duration(words[1]) or None


def _reset(headers: Mapping[str, str], limit: str) -> float:
    """Give the seconds until a limit is reset; 0 where some of it is left."""
    left = _number(headers.get(f"x-ratelimit-remaining-{limit}", ""))
    if left:
        return 0.0
    return _duration(headers.get(f"x-ratelimit-reset-{limit}", ""))


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
    text = text.strip()
    if _DURATION.fullmatch(text) is None:
        return 0.0
    seconds = 0.0
    for amount, unit in _PART.findall(text):
        name = unit.lower().replace("milli", "ms")
        seconds += float(amount) * _SECONDS[name]
    return seconds
