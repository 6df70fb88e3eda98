"""Rows of summaries, written by a model, or of picked sentences where it gives no answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import zip_longest
from typing import Any

import numpy as np
import polars as pl

from memlab import llm
from memlab.cluster import cluster_terms
from memlab.records import Node, schema
from memlab.summaries import summary_prompts
from memlab.summaries.extractive import extract_sentences, find_continued_sentences
from memlab.summaries.summary_prompts import (
    Group,
    Item,
    Supported,
    Task,
    deduplicate_texts,
    evidence_column,
)
from memlab.text.tokens import sentences

NODES = pl.Schema(schema(Node))
EXTRACTIVE = "extractive"
_MAX_TOPICS = 6
Row = dict[str, Any]
Writer = str | llm.Service | Callable[[Sequence[llm.Request]], list[llm.Answer]] | None
"""Who writes summaries: a service or its name, ``recorded``, a function that answers, or ``None`` for no model."""


def turn_rows(turns: pl.DataFrame) -> list[Row]:
    """Give turns as rows that a summary can be written of: each is one sentence, with the caption of its image."""
    image = ("\n[image: " + pl.col("caption") + "]").fill_null("")
    rows = turns.select(
        "scope", "speaker", node_id="turn_id", start="timestamp", end="timestamp", level=pl.lit(0),
        turns=pl.concat_list("turn_id"), sentences=pl.concat_list((pl.col("text") + image).str.strip_chars()),
    )  # fmt: skip
    return rows.with_columns(
        evidence=pl.concat_list("turns").list.eval(pl.concat_list(pl.element()))
    ).to_dicts()


def write_summaries(
    task: Task,
    parts: Sequence[Sequence[Row]],
    service: Writer,
    *,
    before: Sequence[Sequence[Row]] = (),
    known: pl.DataFrame | None = None,
) -> list[Row]:
    """Write a summary of each group of rows; where the model gives none, pick sentences of the group.

    :param before: of each group the rows of the period before, where there are periods.
    :param known: rows of :class:`memlab.records.Node`; what the same model wrote of the same entries
        is taken from there, and not asked for.
    :returns: for each group ``node_id`` (the key of the request), ``text``, ``sentences`` and
        ``evidence``, the other lists of the task with theirs, ``topics`` (``None`` where no model
        gave them), ``entities``, ``service``, ``model``, ``version``, ``made_of``, ``dropped`` and
        ``reason``; and what it stands on: ``scope``, ``level``, ``children``, ``turns``, ``start``
        and ``end``.
    :raises ModelError: when the service cannot be asked at all.
    """
    if isinstance(service, str) and service != llm.RECORDED:
        service = llm.configured_service(service)
    pairs = zip_longest(parts, before, fillvalue=())
    groups = [Group(summary_items(part), summary_items(last)) for part, last in pairs]
    requests = [summary_prompts.summary_request(task, group) for group in groups]
    made_of = [summary_prompts.source_digest(*pair) for pair in zip(requests, groups, strict=True)]
    taken = reusable_rows(known, service)
    missing = [at for at, source in enumerate(made_of) if source not in taken]
    asked = [requests[at] for at in missing]
    answers = service(asked) if callable(service) else llm.ask(asked, service)
    answered = dict(zip(missing, answers, strict=True))
    rows = []
    for at, (part, request, group) in enumerate(zip(parts, requests, groups, strict=True)):
        row = dict(taken.get(made_of[at], {}))
        if at in answered:
            row = _written_row(task, group, answered[at], service)
        row |= {"node_id": request.key, "made_of": made_of[at]}
        row |= {"version": f"{task.name} {task.version}"}
        rows.append(row | _parent_fields(part) | {"text": " ".join(row["sentences"])})
    return rows


def writer_name(service: Writer) -> str | None:
    """Give the name that summaries of a service stand under; ``None`` for no model."""
    if service is None or isinstance(service, str):
        return service
    named = getattr(service, "name", None) or getattr(service, "__name__", None)
    return str(named or service)


def writer_model(service: Writer) -> str | None:
    """Give the model of a service; ``None`` where it names none."""
    return getattr(service, "model", None)


def reusable_rows(known: pl.DataFrame | None, service: Writer) -> dict[str, Row]:
    """Give what a model wrote before, by what it was made of; what is recorded is read from the recordings."""
    if known is None or service is None or service == llm.RECORDED:
        return {}
    own = known.filter(
        pl.col("service") == writer_name(service),
        pl.col("model").eq_missing(pl.lit(writer_model(service), pl.String)),
        pl.col("made_of") != "",
    )
    rows = own.select(*_WRITTEN).unique("made_of", maintain_order=True).to_dicts()
    return {row["made_of"]: row for row in rows}


_WRITTEN = (
    "sentences", "evidence", "carried_on", "carried_on_evidence", "decisions", "decision_evidence",
    "open_questions", "open_question_evidence", "topics", "service", "model", "dropped", "reason",
    "made_of",
)  # fmt: skip
"""The columns of a node that its writer gave."""


def _written_row(task: Task, group: Group, answer: llm.Answer, service: Writer) -> Row:
    """Give what a model wrote of a group, or picked sentences where it gave no sentence that counts."""
    value: Any = answer.value
    points, dropped = summary_prompts.supported_points(value, group) if value else ({}, 0)
    reason = ""
    if not points:
        reason = answer.error
    elif not points["sentences"]:
        reason = "no sentence stands on what it names"
    row: Row = {"service": EXTRACTIVE, "model": None, "topics": None, "entities": []}
    if points and not reason:
        row = {"service": writer_name(service), "model": writer_model(service)}
        row |= {
            name: deduplicate_texts(getattr(value, name, ())) for name in ("topics", "entities")
        }
    else:
        points = _extractive_points(task, group)
    for name, each in points.items():
        row |= {
            name: [text for text, _ in each],
            evidence_column(name): [turns for _, turns in each],
        }
    return row | {"dropped": dropped, "reason": reason if service else ""}


def summary_items(rows: Sequence[Row]) -> list[Item]:
    """Give the items that a summary of some rows may cite."""
    return [
        Item(
            row["node_id"],
            text,
            turns,
            row["start"],
            row.get("speaker", ""),
            "" if name == "sentences" else name,
        )
        for row in rows
        for name in ("sentences", "decisions", "open_questions")
        for text, turns in zip(
            row.get(name) or (), row.get(evidence_column(name)) or (), strict=True
        )
    ]


def _parent_fields(part: Sequence[Row]) -> Row:
    """Give the fields of a summary that follow from its rows: children, turns and times."""
    return {
        "scope": part[0]["scope"], "level": part[0]["level"] + 1, "children": [row["node_id"] for row in part],
        "turns": deduplicate_texts(turn for row in part for turn in row["turns"]),
        "start": min((row["start"] for row in part if row["start"]), default=None),
        "end": max((row["end"] for row in part if row["end"]), default=None),
    }  # fmt: skip


def _extractive_points(task: Task, group: Group) -> dict[str, list[Supported]]:
    """Pick sentences without a model; decisions and open questions are kept as they are."""
    points = {
        name: [(i.text, i.turns) for i in group.items if i.kind == name]
        for name in task.shape.sentence_lists()
    }
    points["sentences"] = extract_sentences([item for item in group.items if not item.kind])
    if group.before:
        points["carried_on"] = find_continued_sentences(
            [(item.text, item.turns) for item in group.before], points["sentences"]
        )
    return points


def fallback_note(rows: pl.DataFrame, what: str) -> str:
    """Give a note on how many summaries no model answered though it was asked.

    :param rows: ``reason``, as :func:`write_summaries` gives it.
    """
    return llm.describe_unanswered(
        [llm.Answer(None if reason else True, reason) for reason in rows["reason"]], what
    )


def node_frame(rows: Sequence[Row], turns: pl.DataFrame, language: str) -> pl.DataFrame:
    """Give rows as a frame of nodes, with topics."""
    lists = pl.col(pl.List(pl.String), pl.List(pl.List(pl.String)))
    nodes = fill_missing_topics(pl.DataFrame(rows, schema=NODES), turns, language)
    filled = {
        "made_of": pl.col("made_of").fill_null(""),
        "version": pl.col("version").fill_null(""),
    }
    return nodes.with_columns(lists.fill_null([]), pl.col("added").fill_null(0), **filled)


def fill_missing_topics(rows: pl.DataFrame, turns: pl.DataFrame, language: str) -> pl.DataFrame:
    """Fill in topics that no model gave: phrases that set a row's turns apart from those of the scope's others.

    What an assistant says is left out, unless nobody else speaks. See
    :func:`memlab.cluster.cluster_terms`.

    :param rows: ``scope``, ``turns`` (ids) and ``topics``, null where they are to be found.
    """
    person = pl.col("role") != "assistant"
    without_topics = rows.with_row_index("row").filter(
        pl.col("topics").is_null().any().over("scope")
    )
    # Splitting takes long: only turns of scopes where topics are missing.
    stated = (
        without_topics.select("row", "scope", turn_id="turns")
        .explode("turn_id")
        .join(
            turns.select("turn_id", "speaker", "role", "text"), on="turn_id", maintain_order="left"
        )
        .filter(person | ~person.any().over("row"))
    )
    split = pl.Series(map(sentences, stated["text"]), dtype=pl.List(pl.String))
    topics = dict[int, list[str]]()
    for part in (
        stated.with_columns(text=split).explode("text").drop_nulls("text").partition_by("scope")
    ):
        labels, speakers = part["row"].to_numpy().astype(np.int64), part["speaker"].to_list()
        terms = cluster_terms(
            part["text"].to_list(),
            labels,
            n_terms=_MAX_TOPICS,
            speakers=speakers,
            language=language,
        )
        topics |= dict(terms.select("label", "terms").iter_rows())
    own = pl.Series(
        "topics", [topics.get(row, []) for row in range(rows.height)], dtype=pl.List(pl.String)
    )
    return rows.with_columns(pl.coalesce("topics", own))
