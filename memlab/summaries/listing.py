"""What a model would be asked for all summaries of some conversations, without asking."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import suppress
from functools import partial

import polars as pl

from memlab import llm
from memlab.embed import Encoder
from memlab.summaries.periods import rollup
from memlab.summaries.raptor import GROUPS, grow


class _Unanswered(Exception):
    """Ends a round: what follows stands on answers that are not there yet."""


def requests(
    turns: pl.DataFrame,
    *,
    clusters: Collection[str] = (),
    encoder: Encoder | str = "minilm",
    tz: str = "UTC",
    seed: int = 0,
) -> list[llm.Request]:
    """List what has to be asked next so that all summaries are recorded; nothing is asked.

    Weeks are written of sessions, months of weeks, and a layer of clusters of the one below. So answers come in
    rounds: record what is listed, list again, and so on until nothing is. In a round are all sessions, all weeks or all
    months, and one layer of clusters. Of a request whose task is ``groups`` the prompt is the answer: it says which
    entries were put together.

    :param turns: rows of :class:`memlab.records.Turn`, in order of scope, session and place.
    :param clusters: scopes that a tree of clusters is grown of; the other parameters are those of
        :func:`memlab.summaries.rollup` and :func:`memlab.summaries.grow`.

    >>> import memlab
    >>> turn = memlab.Turn("u/s/1", "u", "u/s", 1, "Mel", "user", "I moved to Oslo.")
    >>> [each.task for each in memlab.summaries.requests(memlab.records.frame(memlab.Turn, [turn]))]
    ['summary']
    """
    found = list[llm.Request]()
    wanted = turns.filter(pl.col("scope").is_in(list(clusters)))
    for make in (partial(rollup, turns, tz=tz), partial(grow, wanted, encoder=encoder, seed=seed)):
        with suppress(_Unanswered):
            make(service=partial(_recorded, found))
    return found


def _recorded(found: list[llm.Request], asked: Sequence[llm.Request]) -> list[llm.Answer]:
    """Read answers, and note the requests that have none; all but groups end the round."""
    answers = llm.ask(asked, llm.RECORDED)
    missing = [each for each, answer in zip(asked, answers, strict=True) if answer.value is None]
    found += missing
    if any(each.task != GROUPS for each in missing):
        raise _Unanswered
    return answers
