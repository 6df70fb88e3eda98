"""Texts for a terminal or a page: short, on one line, without control characters and secrets."""

from __future__ import annotations

import re
from difflib import get_close_matches
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING

from memlab.errors import DataError
from memlab.progress_bars import say_progress

if TYPE_CHECKING:
    from memlab.records import Dataset

_MOST_ISSUES = 8
_MOST_NAMES = 10
_BIDI_CONTROLS = "\u202a-\u202e\u2066-\u2069"
"""Characters that change the direction of the text behind them."""


def choose_name_or_only_one(
    names: list[str], given_name: str | None, option_name: str, hint_if_none: str
) -> str:
    """Take the chosen name, or the only one.

    :raises DataError: for a name that is not there, or none where there are several.
    """
    if given_name is not None and given_name in names:
        return given_name
    if given_name is None and len(names) == 1:
        return names[0]
    fault_text = f"--{option_name} is needed"
    if given_name is not None:
        fault_text = f"no {option_name} {given_name!r}{did_you_mean_or_empty(given_name, names)}"
    known_names = ", ".join(names[:_MOST_NAMES])
    if len(names) > _MOST_NAMES:
        known_names += " …"
    raise DataError(f"{fault_text}; the store has {known_names or f'none: {hint_if_none}'}")


def did_you_mean_or_empty(given: str, known_names: list[str]) -> str:
    """Ask in brackets whether a name that is known was meant; empty where none is near.

    >>> from memlab.terminal_text import did_you_mean_or_empty
    >>> did_you_mean_or_empty("nadja", ["owen", "nadia"])
    " (did you mean 'nadia'?)"
    >>> did_you_mean_or_empty("x", ["owen", "nadia"])
    ''
    """
    for name in get_close_matches(given, known_names, n=1):
        return f" (did you mean {name!r}?)"
    return ""


def summarise_issues_as_lines(data: Dataset) -> list[str]:
    """List the issues of a dataset, one a line, the first few.

    The counts of an import stand in one line.
    """
    found_by_action: dict[str, list[str]] = {}
    issue_texts = []
    for issue_place, finding, action in data.issues.iter_rows():
        if issue_place.endswith(": export"):
            found_by_action.setdefault(action, []).append(finding)
        else:
            issue_texts.append(f"  {issue_place}: {shorten_line(finding)}: {action}")
    shown_lines = issue_texts[:_MOST_ISSUES]
    if len(issue_texts) > _MOST_ISSUES:
        shown_lines.append(f"  … and {len(issue_texts) - _MOST_ISSUES:,} more")
    count_texts = [
        f"{action}: {', '.join(found_by_action[action])}"
        for action in sorted(found_by_action, reverse=True)
    ]
    if count_texts:
        shown_lines.insert(0, f"  {escape_line('; '.join(count_texts))}")
    return shown_lines


LONG_STEP = 20.0
"""Seconds from which a step is announced."""


def say_if_step_takes_long(step_text: str, expected_seconds: float) -> None:
    """Say what will take long, and how long; steps of less than :data:`LONG_STEP` are not
    announced.

    The line goes to the log ``memlab``, which is stderr where nobody set it up otherwise.

    >>> from memlab.terminal_text import say_if_step_takes_long
    >>> say_if_step_takes_long("encoding 12 texts", 0.5)
    """
    if expected_seconds < LONG_STEP:
        return
    duration = f"{round(expected_seconds, -1):.0f} s"
    if expected_seconds >= 100:
        duration = f"{expected_seconds / 60:.0f} min"
    say_progress(f"{step_text} takes about {duration}")


def count_noun(n: int, plural: str) -> str:
    """Write a number with its noun: ``1 fact``, ``2 facts``, ``1 summary``.

    >>> count_noun(1, "summaries"), count_noun(1_200, "facts")
    ('1 summary', '1,200 facts')
    """
    if n != 1:
        return f"{n:,} {plural}"
    singular = re.sub("ies$", "y", plural).removesuffix("s")
    return f"1 {singular}"


def escape_line(text: str) -> str:
    """Escape line breaks and control characters of a text from outside.

    Such as a file name or an id.
    """
    return re.sub(rf"[\x00-\x1f\x7f-\x9f\u2028\u2029{_BIDI_CONTROLS}]", _escape_character, text)


def _escape_character(character_match: re.Match[str]) -> str:
    return repr(character_match[0])[1:-1]


def escape_controls(text: str) -> str:
    """Escape control characters in a text of several lines, but those of a progress bar.

    >>> from memlab.terminal_text import escape_controls
    >>> escape_controls("one\\n\\x1b]0;title\\x07")
    'one\\n\\\\x1b]0;title\\\\x07'
    """
    return re.sub(
        rf"(?!\x1b\[A)[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f{_BIDI_CONTROLS}]",
        _escape_character,
        text,
    )


def shorten_line(text: object, max_length: int = 160) -> str:
    """Cut a text to one short line."""
    plain_line = escape_line(" ".join(str(text).split()))
    if len(plain_line) <= max_length:
        return plain_line
    return plain_line[: max_length - 1] + "…"


def escape_markdown(text: str) -> str:
    """Escape a text from outside for one line of Markdown.

    It then cannot mark up, link or load anything.

    >>> from memlab.terminal_text import escape_markdown
    >>> print(escape_markdown("a | <img src=x> ![b](http://c) <0.001"))
    a \\| &lt;img src=x> ![b]\\(http://c) <0.001
    """
    plain_text = re.sub(r"(?<=\])(?=[(:\[])|(?=[\\|*`$])", r"\\", " ".join(text.split()))
    plain_text = re.sub(r"^(?=[#>~])", r"\\", re.sub(r"&(?=#?\w+;)", "&amp;", plain_text))
    # Where it could begin a tag; <0.001 is a number.
    return re.sub(r"<(?=[A-Za-z/!?])", "&lt;", plain_text)


def mask_url_credentials(text: str) -> str:
    """Mask user and password in the URLs of a text."""
    return re.sub(r"://[^/@\s]*@", "://…@", text)


def installed_version_or_note(package: str) -> str:
    """Look up the version of an installed package."""
    try:
        return version(package)
    except PackageNotFoundError:
        return "(not installed)"
