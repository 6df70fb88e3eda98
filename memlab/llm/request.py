"""What is asked of a language model, and what comes of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from memlab.llm import recording


@dataclass(frozen=True)
class Request:
    """What is asked, once.

    :param task: such as ``summary``, ``facts``, ``rewrite``, ``answer``, ``judge``.
    :param version: raised when what is asked changes, not when its wording does.
    :param about: ids and texts of what is asked about; with task and version the key of a recorded answer.
    :param prompt: the user message; text of conversations stands in it as JSON.
    :param shape: the answer's shape; ``extra="forbid"`` and no defaults suit servers that are strict.
    :param system: the system message.
    """

    task: str
    version: int
    about: tuple[str, ...]
    prompt: str
    shape: type[BaseModel]
    system: str = ""

    @property
    def key(self) -> str:
        """The key of its recorded answer."""
        return recording.key(self.task, self.version, self.about)

    @property
    def messages(self) -> list[dict[str, str]]:
        """The chat messages."""
        texts = {"system": self.system, "user": self.prompt}
        return [{"role": role, "content": text} for role, text in texts.items() if text]


@dataclass(frozen=True)
class Answer:
    """What came of a request.

    :param value: an instance of its shape, or ``None``.
    :param error: why there is none, in one line.
    :param tokens: read and written over all attempts, as the server counts them; 0 where it does not.
    :param seconds: until the answer was there; 0 for a recorded one.
    """

    value: Any | None
    error: str = ""
    tokens: tuple[int, int] = (0, 0)
    seconds: float = 0.0


def unanswered(answers: Sequence[Answer], what: str) -> str:
    """Say in one line how many requests have no answer, why the first has none, and what to do; nothing if all have.

    :param what: what was asked for, in the plural, such as ``rewrites``.

    >>> from memlab.llm import Answer, unanswered
    >>> unanswered([Answer("yes"), Answer(None, "not recorded")], "rewrites")
    '1 of 2 rewrites came from no model (not recorded); service="NAME" or --service NAME asks one'
    """
    errors = [answer.error for answer in answers if answer.value is None]
    if not errors:
        return ""
    counted = f"{len(errors):,} of {len(answers):,} {what} came from no model ({errors[0]})"
    advice = "" if errors[0].startswith(("service", "not asked")) else '; service="NAME" or --service NAME asks one'
    return counted + advice
