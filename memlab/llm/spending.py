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
    :param estimate: whether no service is asked, and answers count as what they would about cost.
    """

    tokens: dict[tuple[str, str], tuple[int, int]] = field(default_factory=dict)
    unanswered: int = 0
    seconds: float = 0.0
    estimate: bool = False

    def add(self, tokens: Mapping[tuple[str, str], tuple[int, int]], unanswered: int = 0, seconds: float = 0.0) -> None:
        """Count answers, each once."""
        self.tokens |= tokens
        self.unanswered += unanswered
        self.seconds += seconds

    def describe(self) -> dict[str, object]:
        """Give it for a provenance.

        :returns: ``tasks``: of each task how many answers there were, and the tokens read and written for them;
            ``unanswered`` and ``seconds``.

        >>> from memlab.llm import ModelSpending
        >>> ModelSpending({("summary", "a"): (30, 2), ("summary", "b"): (40, 3)}).describe()["tasks"]
        {'summary': [2, 70, 5]}
        """
        tasks: dict[str, list[int]] = {}
        for (task, _), (read, written) in self.tokens.items():
            count = tasks.get(task, [0, 0, 0])
            tasks[task] = [count[0] + 1, count[1] + read, count[2] + written]
        return {"tasks": tasks, "unanswered": self.unanswered, "seconds": round(self.seconds, 3)}


_OPEN: ContextVar[tuple[ModelSpending, ...]] = ContextVar("_OPEN", default=())


@contextmanager
def track_spending(*, estimate: bool = False) -> Iterator[ModelSpending]:
    """Count what is asked of language models inside a ``with`` block, recorded answers too.

    :param estimate: ask no service; what is not recorded counts as it would about cost, and has no answer.

    >>> from memlab import llm
    >>> with llm.track_spending() as spent:
    ...     _ = llm.ask([], None)
    >>> spent.tokens
    {}
    """
    spent = ModelSpending(estimate=estimate)
    token = _OPEN.set((*_OPEN.get(), spent))
    try:
        yield spent
    finally:
        _OPEN.reset(token)


def is_estimating() -> bool:
    """Say whether services are not to be asked."""
    return any(spent.estimate for spent in _OPEN.get())


def add_to_spending(tokens: Mapping[tuple[str, str], tuple[int, int]], unanswered: int = 0, seconds: float = 0) -> None:
    """Add answers to every count that is open."""
    for spent in _OPEN.get():
        spent.add(tokens, unanswered, seconds)
