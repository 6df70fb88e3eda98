"""How long a server asks to wait before the next request."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime

from memlab.llm.service_faults import RATE_LIMITED

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


def requested_pause_seconds(
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

    >>> from memlab.llm.retry_pauses import requested_pause_seconds
    >>> requested_pause_seconds({"retry-after": "2"})
    2.0
    >>> requested_pause_seconds({"x-ratelimit-reset-requests": "1m3.5s"})
    63.5
    >>> requested_pause_seconds({"x-ratelimit-reset-requests": "1m3.5s"}, status=503)
    >>> requested_pause_seconds({}, "Please try again in 1 minute 20 seconds.")
    80.0
    >>> date, later = "Fri, 01 May 2026 09:00:00 GMT", "Fri, 01 May 2026 09:00:06 GMT"
    >>> requested_pause_seconds({"date": date, "retry-after": later})
    6.0
    """
    milliseconds = _parse_number_and_clip_at_zero(headers.get("retry-after-ms", ""))
    if milliseconds is not None:
        return milliseconds / 1000
    retry_after = headers.get("retry-after", "")
    if retry_after:
        seconds = _parse_number_and_clip_at_zero(retry_after)
        if seconds is None:
            return _seconds_until_future_date(retry_after, headers.get("date", ""))
        return seconds
    longest_reset = 0.0
    if status == RATE_LIMITED:
        longest_reset = max(
            _seconds_until_used_up_limit_resets(headers, limit) for limit in _LIMITS
        )
    if longest_reset > 0:
        return longest_reset
    pause_words = _WORDS.search(message)
    if pause_words is None:
        return None
    return _seconds_of_duration_or_zero(pause_words[1]) or None


def _seconds_until_used_up_limit_resets(headers: Mapping[str, str], limit_name: str) -> float:
    """Give the seconds until a limit is reset; 0 where some of it is left."""
    n_remaining = _parse_number_and_clip_at_zero(
        headers.get(f"x-ratelimit-remaining-{limit_name}", "")
    )
    if n_remaining:
        return 0.0
    return _seconds_of_duration_or_zero(headers.get(f"x-ratelimit-reset-{limit_name}", ""))


def _parse_number_and_clip_at_zero(number_text: str) -> float | None:
    try:
        number = float(number_text)
    except ValueError:
        return None
    if math.isfinite(number):
        return max(0.0, number)
    return None


def _seconds_until_future_date(http_date: str, server_date: str) -> float | None:
    target_time = _unix_time_of_http_date(http_date)
    server_time = _unix_time_of_http_date(server_date)
    if target_time is None:
        return None
    if server_time is None:
        server_time = time.time()
    if target_time > server_time:
        return target_time - server_time
    return None


def _unix_time_of_http_date(http_date: str) -> float | None:
    try:
        return parsedate_to_datetime(http_date).timestamp()
    except (ValueError, TypeError, OverflowError, IndexError):
        return None


def _seconds_of_duration_or_zero(duration_text: str) -> float:
    """Read the seconds of a duration; 0 for what is none."""
    duration_text = duration_text.strip()
    if _DURATION.fullmatch(duration_text) is None:
        return 0.0
    seconds = 0.0
    for amount, unit in _PART.findall(duration_text):
        unit_name = unit.lower().replace("milli", "ms")
        seconds += float(amount) * _SECONDS[unit_name]
    return seconds
