"""Judgements: asked for in lists, kept one by one, so that a changed list asks only for what is new."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

from memlab.llm import asking, recording
from memlab.llm.asking import Request
from memlab.llm.reply import token_counts
from memlab.llm.service import Service, resolve_service
from memlab.llm.spending import add_to_spending, is_estimating


def collect_judgements(
    items: Sequence[tuple[str, int, tuple[str, ...]]],
    lists: Callable[[list[int]], Iterable[tuple[list[int], Request]]],
    read: Callable[[Any, int], list[Any]],
    service: str | Service,
) -> tuple[list[Any | None], str]:
    """Read recorded judgements, and ask a model for those that are missing.

    :param items: task, version and what is asked about of each judgement, as of :class:`memlab.llm.Request`.
    :param lists: given the items that are missing, gives the lists in which to ask for them: the items of each list
        and its request.
    :param read: given a list's answer and its length, gives the judgement of each of its items, as JSON values.
    :param service: see :func:`memlab.llm.ask`; each judgement is recorded for itself.
    :returns: a judgement for each item, ``None`` where there is none; and why the first of those has none.
    """
    model, rows = resolve_service(service), recording.recorded_rows(service)
    keys = [recording.recording_key(*item) for item in items]
    known = {(item[0], key): rows[key] for item, key in zip(items, keys, strict=True) if key in rows}
    found = {key: row["answer"] for (_, key), row in known.items()}
    missing = [at for at, key in enumerate(keys) if key not in found]
    if not is_estimating():
        lacking = len(missing) if model is None else 0  # lists are counted where they are asked
        add_to_spending({name: token_counts(row["tokens"]) for name, row in known.items()}, unanswered=lacking)
    error = "not recorded"
    if missing and model is not None:
        asked = list(lists(missing))
        # The lists themselves are not recorded: another ranking would make others.
        answers = asking.ask([request for _, request in asked], replace(model, record=None), progress="judgements")
        for (members, _), answer in zip(asked, answers, strict=True):
            if answer.value is None:
                error = answer.error
                continue
            share = (answer.tokens[0] // len(members), answer.tokens[1] // len(members))
            for at, judgement in zip(members, read(answer.value, len(members)), strict=True):
                found[keys[at]] = judgement
                recording.record(model, (*items[at][:2], keys[at]), judgement, share)
    return [found.get(key) for key in keys], error
