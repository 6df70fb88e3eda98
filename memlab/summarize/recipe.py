"""From the turns of sessions to rows of summaries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

import polars as pl

from memlab.llm import Service, answers
from memlab.records import Summary, frame
from memlab.summarize import by_model
from memlab.summarize.by_model import Supported
from memlab.summarize.extractive import extract, shorten
from memlab.summarize.keywords import topics
from memlab.summarize.parts import action_items, decisions, open_questions
from memlab.summarize.sentences import split

EXTRACTIVE = "extractive"
OUTCOMES = {"session_id": pl.String, "status": pl.String, "reason": pl.String, "service": pl.String}

# Of a kind of parts, so many are kept of a session: a bound, not a choice.
_MOST_PARTS = 12
_PARTS = {"decision": decisions, "action_item": action_items, "open_question": open_questions}


@dataclass(frozen=True, eq=False)
class Summaries:
    """Summaries, and what came of each session.

    :param rows: rows of :class:`memlab.records.Summary`.
    :param outcomes: ``session_id``, ``status`` (``ok``; ``fallback`` where the model answered badly and the summary is
        extractive; ``failed`` where the service gave no answer, so that there is no summary), ``reason`` and
        ``service``, what made the row.
    """

    rows: pl.DataFrame
    outcomes: pl.DataFrame


def summarize(
    turns: pl.DataFrame,
    *,
    service: Service | None = None,
    entities: Mapping[str, Sequence[str]] | None = None,
    version: str = "",
    now: datetime | None = None,
) -> Summaries:
    """Summarise sessions: short sentences, topics, decisions, action items and open questions, each with its turns.

    Without a service every sentence is one of the conversation. With one, a session whose answer is bad (also after
    it was asked again) is summarised so too; where the service itself fails, the session is left for later.

    :param turns: rows of :class:`memlab.records.Turn`, whole sessions, in order.
    :param entities: names of who and what came up, for each session.
    :param version: the recipe's version, written into each row, as ``now`` is.

    >>> import memlab
    >>> turns = memlab.sample(turns=60).turns
    >>> made = memlab.summarize.summarize(turns)
    >>> made.rows["service"].unique().to_list(), made.outcomes["status"].unique().to_list()
    (['extractive'], ['ok'])
    """
    meta = _meta(turns).with_columns(version=pl.lit(version), created_at=pl.lit(now))
    made = {session: _Made() for session in meta["session_id"]} | (_asked(turns, service) if service else {})
    rest = [session for session, result in made.items() if result.body is None and result.status != "failed"]
    bodies = _extracted(turns.filter(pl.col("session_id").is_in(rest)))
    rows = []
    for about in meta.iter_rows(named=True):
        session = about["session_id"]
        result = made[session]
        if body := result.body or bodies.get(session):
            names = list(entities.get(session, ())) if entities else []
            rows.append(Summary(**about, **body, entities=names, service=result.service, model=result.model))
    outcomes = [(session, result.status, result.reason, result.service) for session, result in made.items()]
    return Summaries(frame(Summary, rows), pl.DataFrame(outcomes, schema=OUTCOMES, orient="row"))


def _meta(turns: pl.DataFrame) -> pl.DataFrame:
    return turns.group_by("session_id", maintain_order=True).agg(
        pl.col("scope").first(),
        start=pl.col("timestamp").min(),
        end=pl.col("timestamp").max(),
        participants=pl.col("speaker").unique(maintain_order=True),
        n_turns=pl.len(),
    )


class _Made(NamedTuple):
    """What came of a session, and the body of its row where a model wrote it."""

    status: str = "ok"
    reason: str | None = None
    service: str | None = EXTRACTIVE
    model: str | None = None
    body: dict[str, Any] | None = None


def _extracted(turns: pl.DataFrame) -> dict[str, dict[str, Any]]:
    """Summarise sessions by their own sentences; one without any sentence has an empty summary."""
    sentences = split(turns)
    named = dict(topics(sentences).iter_rows())
    picked = _by_session(extract(sentences))
    parts = {name: _by_session(find(sentences)) for name, find in _PARTS.items()}
    none = Supported([], [])
    return {
        session: _body(
            picked.get(session, none),
            named.get(session, []),
            {name: of_sessions.get(session, none) for name, of_sessions in parts.items()},
        )
        for session in turns["session_id"].unique(maintain_order=True)
    }


def _by_session(chosen: pl.DataFrame) -> dict[str, Supported]:
    grouped = chosen.group_by("session_id", maintain_order=True).agg("spoken", pl.concat_list("turn_id"))
    return {session: Supported([shorten(text) for text in texts], ids) for session, texts, ids in grouped.iter_rows()}


def _asked(turns: pl.DataFrame, service: Service) -> dict[str, _Made]:
    prompts = by_model.prompts(turns, max_chars=service.max_input)
    outcomes = answers(service, prompts["prompt"].to_list(), by_model.Answer, system=by_model.SYSTEM)
    parts = turns.partition_by("session_id", as_dict=True)
    made = {}
    for session, outcome in zip(prompts["session_id"].to_list(), outcomes, strict=True):
        body = None if outcome.answer is None else _answered(outcome.answer, parts[(session,)])
        if body is not None:
            made[session] = _Made("ok", None, service.name, service.model, body)
        elif outcome.answer is not None:
            made[session] = _Made("fallback", "no sentence of the answer stands on a turn of the session")
        elif outcome.kind == "content":
            made[session] = _Made("fallback", outcome.failure)
        else:
            made[session] = _Made("failed", outcome.failure, None)
    return made


def _answered(answer: by_model.Answer, turns: pl.DataFrame) -> dict[str, Any] | None:
    """Read an answer; ``None`` where none of its sentences stands on a turn."""
    picked = by_model.supported(answer.sentences, turns)
    if not picked.texts:
        return None
    parts = {name: by_model.supported(getattr(answer, f"{name}s"), turns) for name in _PARTS}
    return _body(picked, list(dict.fromkeys(answer.topics)), parts)


def _body(picked: Supported, named: list[str], parts: Mapping[str, Supported]) -> dict[str, Any]:
    body: dict[str, Any] = {"summary": " ".join(picked.texts), "sentences": picked.texts, "evidence": picked.evidence}
    for name, (texts, ids) in parts.items():
        body |= {f"{name}s": texts[:_MOST_PARTS], f"{name}_evidence": ids[:_MOST_PARTS]}
    return body | {"topics": named}
