"""What answers of language models cost: counted while a ``with`` block runs, and again where a
result is used again.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, TypeVar

from memlab.llm.response_bodies import JsonValue

T = TypeVar("T")
CHARS, WRITTEN = (
    4,
    {
        "facts": 1400,
        "summary": 500,
        "rollup": 550,
        "cluster": 350,
        "cluster_name": 45,
        "map": 0,
        "propose": 700,
    },
)
"""Of an estimate: characters a token, and tokens of an answer by task, as in the recordings.

100 for other tasks.
"""


TaskAndKey = tuple[str, str]
"""The task of a request and the key of its answer."""
TokensReadAndWritten = tuple[int, int]
"""How many tokens a model read and wrote."""


@dataclass
class ModelSpending:
    """Answers that were read or asked for.

    :param tokens: read and written, by task and key of the answer; one that two stages use counts
        once.
    :param unanswered: how many requests have no answer.
    :param seconds: until the answers were there, summed; 0 for recorded ones.
    :param estimate: whether no service is asked, and answers count as what they would about cost.
    :param uncounted: task and key of answers whose tokens the server did not count, so that they
        are an estimate by characters.
    """

    tokens: dict[TaskAndKey, TokensReadAndWritten] = field(default_factory=dict)
    unanswered: int = 0
    seconds: float = 0.0
    estimate: bool = False
    uncounted: set[TaskAndKey] = field(default_factory=set)

    def add(
        self,
        tokens: Mapping[TaskAndKey, TokensReadAndWritten],
        unanswered: int = 0,
        seconds: float = 0.0,
        *,
        uncounted: Iterable[TaskAndKey] = (),
    ) -> None:
        """Count answers, each once."""
        self.tokens |= tokens
        self.uncounted |= {*uncounted}
        self.unanswered += unanswered
        self.seconds += seconds

    def describe(self) -> dict[str, JsonValue]:
        """Give it for a provenance.

        :returns: ``tasks``: of each task how many answers there were, and the tokens read and
            written for them; ``unanswered`` and ``seconds``; where there are any, how many answers
            are ``uncounted``.

        >>> from memlab.llm import ModelSpending
        >>> spent = {("summary", "a"): (30, 2), ("summary", "b"): (40, 3)}
        >>> ModelSpending(spent).describe()["tasks"]
        {'summary': [2, 70, 5]}
        """
        counts_by_task: dict[str, list[int]] = {}
        for (task, _), (tokens_read, tokens_written) in self.tokens.items():
            task_counts = counts_by_task.get(task, [0, 0, 0])
            counts_by_task[task] = [
                task_counts[0] + 1,
                task_counts[1] + tokens_read,
                task_counts[2] + tokens_written,
            ]
        description = {
            "tasks": counts_by_task,
            "unanswered": self.unanswered,
            "seconds": round(self.seconds, 3),
        }
        if self.uncounted:
            description["uncounted"] = len(self.uncounted)
        return description


_OPEN: ContextVar[tuple[ModelSpending, ...]] = ContextVar("_OPEN", default=())


@contextmanager
def track_spending(*, estimate: bool = False) -> Iterator[ModelSpending]:
    """Count what is asked of language models inside a ``with`` block, recorded answers too.

    :param estimate: ask no service; what is not recorded counts as it would about cost, and has no
        answer.

    >>> from memlab import llm
    >>> with llm.track_spending() as spent:
    ...     _ = llm.ask([], None)
    >>> spent.tokens
    {}
    """
    spending = ModelSpending(estimate=estimate)
    context_token = _OPEN.set((*_OPEN.get(), spending))
    try:
        yield spending
    finally:
        _OPEN.reset(context_token)


def is_estimating() -> bool:
    """Say whether services are not to be asked."""
    return any(spending.estimate for spending in _OPEN.get())


def add_to_spending(
    tokens: Mapping[TaskAndKey, TokensReadAndWritten],
    unanswered: int = 0,
    seconds: float = 0,
    *,
    uncounted: Iterable[TaskAndKey] = (),
) -> None:
    """Add answers to every count that is open; see :class:`ModelSpending`."""
    uncounted_keys = {*uncounted}
    for spending in _OPEN.get():
        spending.add(tokens, unanswered, seconds, uncounted=uncounted_keys)


def get_or_make_result_with_spending(
    cache: MutableMapping[Hashable, tuple[Any, ModelSpending]],
    cache_key: Hashable,
    make_result: Callable[[], T],
) -> T:
    """Give the result at a place of a cache, or make it.

    What a model read and wrote for it counts either way.

    What a model left unanswered is not kept, so that it is made again.

    :param cache: where results are kept, each with its :class:`ModelSpending`.

    >>> from memlab.llm.token_spending import get_or_make_result_with_spending
    >>> kept = {}
    >>> get_or_make_result_with_spending(kept, "sum", lambda: 1 + 1), list(kept)
    (2, ['sum'])
    """
    if cache_key in cache:
        result, spending = cache[cache_key]
        add_to_spending(spending.tokens, uncounted=spending.uncounted)
        return result
    with track_spending() as spending:
        result = make_result()
    if not spending.unanswered:
        cache[cache_key] = result, spending
    return result
