"""Writing summaries of groups: by a model where it answers, else by their own sentences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import polars as pl

from memlab import llm
from memlab.summaries.asking import Group, Item, Supported, Task, checked, lists_of, request
from memlab.summaries.extractive import carried_on, extract
from memlab.summaries.nodes import Row

EXTRACTIVE = "extractive"
Writer = str | llm.Service | Callable[[Sequence[llm.Request]], list[llm.Answer]] | None
"""Who writes: the name of a service, ``recorded``, a service, or a function that answers; ``None`` for no model."""


def write(task: Task, groups: Sequence[Group], service: Writer, *, progress: str = "") -> list[Row]:
    """Write a summary of each group; where the model gives none, of sentences of the group.

    :returns: for each group ``node_id`` (the key of the request), ``text``, ``sentences`` and ``evidence``, the other
        lists of the task with theirs, ``topics`` (``None`` where no model gave them), ``entities``, ``service``,
        ``model``, ``dropped`` and ``reason``.
    :raises ModelError: when the service cannot be asked at all.
    """
    requests = [request(task, group) for group in groups]
    answers = service(requests) if callable(service) else llm.ask(requests, service, progress=progress)
    by, rows = _who(service), []
    for asked, group, answer in zip(requests, groups, answers, strict=True):
        value: Any = answer.value
        points, dropped = checked(value, group) if value else ({}, 0)
        good = bool(points and points["sentences"].texts)
        reason = "" if good else "no sentence of the answer stands on what it names" if points else answer.error
        name, model = by if good else (EXTRACTIVE, None)
        rows.append({
            "node_id": asked.key, **_columns(points if good else _without_model(task, group)),
            "topics": list(dict.fromkeys(value.topics)) if good else None,
            "entities": list(dict.fromkeys(getattr(value, "entities", ()))) if good else [],
            "service": name, "model": model, "dropped": dropped, "reason": reason if service else "",
        })  # fmt: skip
    return rows


def unwritten(rows: pl.DataFrame, what: str) -> str:
    """Say in one line how many summaries came from no model though one was asked; see :func:`memlab.llm.unanswered`.

    :param rows: ``reason``, as :func:`write` gives it.
    """
    return llm.unanswered([llm.Answer(None if reason else True, reason) for reason in rows["reason"]], what)


def _who(service: Writer) -> tuple[str, str | None]:
    """Name a service and its model."""
    if isinstance(service, str) and service != llm.RECORDED:
        service = llm.configured(service)
    if isinstance(service, llm.Service):
        return service.name, service.model
    return (
        (service, None)
        if isinstance(service, str)
        else (getattr(service, "__name__", "model") if service else EXTRACTIVE, None)
    )


def _without_model(task: Task, group: Group) -> dict[str, Supported]:
    """Pick sentences; what sessions decided and left open goes up as it is."""
    points = {name: _supported([item for item in group.items if item.kind == name]) for name in lists_of(task.shape)}
    points["sentences"] = extract([item for item in group.items if not item.kind])
    if group.before:
        points["carried_on"] = carried_on(_supported(group.before), points["sentences"])
    return points


def _supported(items: Sequence[Item]) -> Supported:
    return Supported([item.text for item in items], [list(item.turns) for item in items])


def _columns(points: dict[str, Supported]) -> Row:
    texts, evidence = points["sentences"]
    columns: Row = {"text": " ".join(texts), "sentences": texts, "evidence": evidence}
    for name in points.keys() - {"sentences"}:
        columns |= {name: points[name].texts, f"{name.removesuffix('s')}_evidence": points[name].evidence}
    return columns
