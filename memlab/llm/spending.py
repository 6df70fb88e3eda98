"""What answers cost: counted over everything that is asked while something runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

CHARS, WRITTEN = 4, 100
"""Of an estimate: characters a token, and tokens of an answer."""


@dataclass
class ModelSpending:
    """Answers that were read or asked for.

    :param tokens: read and written, by task and key of the answer; one that two stages use counts once.
    :param unanswered: how many requests have no answer.
    :param seconds: until the answers were there, summed; 0 for recorded ones.
    """

    tokens: dict[tuple[str, str], tuple[int, int]] = field(default_factory=dict)
    unanswered: int = 0
    seconds: float = 0.0

    def add(self, tokens: Mapping[tuple[str, str], tuple[int, int]], unanswered: int = 0, seconds: float = 0.0) -> None:
        """Count answers, each once."""
        self.tokens |= tokens
        self.unanswered += unanswered
        self.seconds += seconds

    def by_task(self) -> dict[str, list[int]]:
        """Give of each task how many answers there were, and the tokens that were read and written for them.

        >>> from memlab.llm import ModelSpending
        >>> ModelSpending({("summary", "a"): (30, 2), ("summary", "b"): (40, 3)}).by_task()
        {'summary': [2, 70, 5]}
        """
        sums: dict[str, list[int]] = {}
        for (task, _), (read, written) in self.tokens.items():
            counted = sums.setdefault(task, [0, 0, 0])
            counted[:] = counted[0] + 1, counted[1] + read, counted[2] + written
        return sums

    def describe(self) -> dict[str, object]:
        """Give it for a provenance: ``tasks`` (see :meth:`by_task`), ``unanswered``, ``seconds``."""
        return {"tasks": self.by_task(), "unanswered": self.unanswered, "seconds": round(self.seconds, 3)}


_OPEN: ContextVar[tuple[ModelSpending, ...]] = ContextVar("_OPEN", default=())
_ESTIMATED: ContextVar[bool] = ContextVar("_ESTIMATED", default=False)


@contextmanager
def track_spending(*, estimate: bool = False) -> Iterator[ModelSpending]:
    """Count what is asked of language models inside a ``with`` block, recorded answers too.

    :param estimate: ask no service; what is not recorded counts as it would about cost, and has no answer.

    >>> from memlab import llm
    >>> with llm.track_spending() as spent:
    ...     _ = llm.ask([], None)
    >>> spent.by_task()
    {}
    """
    spent = ModelSpending()
    tokens = _OPEN.set((*_OPEN.get(), spent)), _ESTIMATED.set(estimate or _ESTIMATED.get())
    try:
        yield spent
    finally:
        _OPEN.reset(tokens[0])
        _ESTIMATED.reset(tokens[1])


def is_estimating() -> bool:
    """Say whether services are not to be asked."""
    return _ESTIMATED.get()


def add_to_spending(
    tokens: Mapping[tuple[str, str], tuple[int, int]], *, unanswered: int = 0, seconds: float = 0.0
) -> None:
    """Add answers to every count that is open."""
    for spent in _OPEN.get():
        spent.add(tokens, unanswered, seconds)
