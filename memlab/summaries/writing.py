"""Writing summaries of groups: by a model where it answers, else by their own sentences."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import polars as pl

from memlab import llm
from memlab.summaries.asking import Group, Supported, Task, checked, evidence_of, request
from memlab.summaries.extractive import carried_on, extract

EXTRACTIVE = "extractive"
Row = dict[str, Any]
Writer = str | llm.Service | Callable[[Sequence[llm.Request]], list[llm.Answer]] | None
"""Who writes: the name of a service, ``recorded``, a service, or a function that answers; ``None`` for no model."""


def write(task: Task, groups: Sequence[Group], service: Writer) -> list[Row]:
    """Write a summary of each group; where the model gives none, of sentences of the group.

    :returns: for each group ``node_id`` (the key of the request), ``text``, ``sentences`` and ``evidence``, the other
        lists of the task with theirs, ``topics`` (``None`` where no model gave them), ``entities``, ``service``,
        ``model``, ``dropped`` and ``reason``.
    :raises ModelError: when the service cannot be asked at all.
    """
    if isinstance(service, str) and service != llm.RECORDED:
        service = llm.configured(service)
    requests = [request(task, group) for group in groups]
    answers = service(requests) if callable(service) else llm.ask(requests, service)
    by = getattr(service, "name", None) or getattr(service, "__name__", service)
    rows = []
    for asked, group, answer in zip(requests, groups, answers, strict=True):
        value: Any = answer.value
        points, dropped = checked(value, group) if value else ({}, 0)
        why = answer.error if not points else "" if points["sentences"] else "no sentence stands on what it names"
        row: Row = {"node_id": asked.key, "dropped": dropped, "reason": why if service else ""}
        if points and not why:
            model = getattr(service, "model", None)
            row |= {"topics": [*dict.fromkeys(value.topics)], "service": by, "model": model}
            row |= {"entities": [*dict.fromkeys(getattr(value, "entities", ()))]}
        else:
            points = _without_model(task, group)
            row |= {"topics": None, "service": EXTRACTIVE, "model": None, "entities": []}
        rows.append(row | {"text": " ".join(text for text, _ in points["sentences"])} | _columns(points))
    return rows


def unwritten(rows: pl.DataFrame, what: str) -> str:
    """Say in one line how many summaries came from no model though one was asked; see :func:`memlab.llm.unanswered`.

    :param rows: ``reason``, as :func:`write` gives it.
    """
    return llm.unanswered([llm.Answer(None if reason else True, reason) for reason in rows["reason"]], what)


def _without_model(task: Task, group: Group) -> dict[str, list[Supported]]:
    """Pick sentences; what sessions decided and left open goes up as it is."""
    points = {name: [(i.text, i.turns) for i in group.items if i.kind == name] for name in task.shape.lists()}
    points["sentences"] = extract([item for item in group.items if not item.kind])
    if group.before:
        points["carried_on"] = carried_on([(item.text, item.turns) for item in group.before], points["sentences"])
    return points


def _columns(points: Mapping[str, Sequence[Supported]]) -> Row:
    """Give each list of sentences as a column of texts and one of the turns that these stand on."""
    texts: Row = {name: [text for text, _ in each] for name, each in points.items()}
    return texts | {evidence_of(name): [turns for _, turns in each] for name, each in points.items()}
