"""Follow-up questions with known answers: conversations made from the questions of a dataset.

Each conversation opens with a question that names its subject; those after it leave the subject out. The form that
stands alone is kept beside them, as a reference for what a rewriter reaches (no bound: a rewrite can retrieve more). It
is never part of a history, so a rewriter cannot see it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any, NamedTuple

import polars as pl

from memlab.errors import DataError
from memlab.records import TIMESTAMP, Dataset, Question, Turn, schema

FOLLOW_UP: dict[str, Any] = {
    **dict.fromkeys(("query_id", "thread", "scope"), pl.String()), "turn": pl.Int32(),
    **dict.fromkeys(("kind", "asked", "self_contained", "answer"), pl.String()),
    "history": pl.List(pl.String()), "evidence": pl.List(pl.String()), "timestamp": TIMESTAMP,
}  # fmt: skip
OPENING = "opening"
_LONGEST_THREAD = 3
_FORMS = {"he": ("he", "him", "his"), "she": ("she", "her", "her"), "they": ("they", "them", "their")}
_PLURAL = {"is": "are", "was": "were", "does": "do", "has": "have"}
_BEFORE_OBJECT = r"(?:about|at|behind|by|for|from|of|on|than|to|with|like|near|around)"


class Asked(NamedTuple):
    """A question of a conversation, the form of it that stands alone, and what answers it."""

    kind: str
    asked: str
    self_contained: str
    answer: str
    evidence: list[str]


def _table(dataset: Dataset, threads: Mapping[str, Sequence[Sequence[Asked]]]) -> pl.DataFrame:
    """List the questions of each scope, a minute apart from a day after its last session on."""
    ends = dict(dataset.sessions.group_by("scope").agg(pl.col("end").max()).iter_rows())
    rows: list[tuple[Any, ...]] = []
    for scope, of_scope in threads.items():
        first, end = len(rows), ends.get(scope)
        for number, asks in enumerate(of_scope):
            thread, history = f"{scope}/t{number}", list[str]()
            for turn, ask in enumerate(asks, start=1):
                when = None if end is None else end + timedelta(days=1, minutes=len(rows) - first)
                evidence = list(dict.fromkeys(ask.evidence))
                rows.append((f"{thread}/{turn}", thread, scope, turn, *ask[:4], list(history), evidence, when))
                history += [ask.asked, ask.answer]
    return pl.DataFrame(rows, schema=FOLLOW_UP, orient="row")


def from_names(dataset: Dataset) -> pl.DataFrame:
    """Make conversations of a dataset's own questions: a speaker's name gives way to a pronoun where it comes again.

    Neighbouring questions with one and the same speaker's name, three at most, make a conversation; all but the first
    have *he*, *she* or *they* in place of the name. Which of these is read off the dataset: what stands in sentences
    with that name alone. Questions without an answer are left out: what they cite does not answer them. Nobody asked
    these questions one after the other.

    :returns: a row for each question: ``query_id``, ``thread``, ``scope``, ``turn`` (from 1), ``kind``, ``asked``,
        ``self_contained``, ``answer``, ``history`` (messages before it, of both sides), ``evidence``, ``timestamp``.
        No rows where speakers have no names or no neighbours share one.
    """
    spoken = dataset.turns.filter(pl.col("speaker") != pl.col("role"))
    threads: dict[str, list[list[Asked]]] = {}
    for (scope,), its in spoken.group_by("scope", maintain_order=True):
        names = its["speaker"].unique(maintain_order=True).to_list()
        asked = dataset.questions.filter(
            (pl.col("scope") == scope) & (pl.col("evidence").list.len() > 0) & pl.col("answer").is_not_null()
        )
        texts = [f"{text} {answer or ''}" for text, answer in asked.select("text", "answer").iter_rows()]
        texts += dataset.annotations.filter(pl.col("scope") == scope)["text"].to_list()
        pronouns = {name: gender([text for text in texts if only(names, text) == name]) for name in names}
        runs: list[list[Asked]] = []
        before = None
        for text, answer, evidence in asked.select("text", "answer", "evidence").iter_rows():
            name = only(names, text)
            if name is None or name != before or len(runs[-1]) == _LONGEST_THREAD:
                runs.append([])
            kind = "name" if runs[-1] else OPENING
            short = replaced(text, name, pronouns[name]) if name and runs[-1] else text
            runs[-1].append(Asked(kind, short, text, answer, evidence))
            before = name
        threads[scope] = [run for run in runs if len(run) > 1]
    return _table(dataset, threads)


def only(names: Sequence[str], text: str) -> str | None:
    """Give the one name in a text."""
    found = [name for name in names if re.search(rf"\b{re.escape(name)}\b", text)]
    return found[0] if len(found) == 1 else None


def gender(texts: Sequence[str]) -> str:
    """Say which pronoun stands in sentences about a name; *they* where that is not clear."""
    words = re.findall(r"[a-z]+", " ".join(texts).lower())
    he, she = (sum(word in _FORMS[form] for word in words) for form in ("he", "she"))
    return "he" if he > 2 * she else "she" if she > 2 * he else "they"


def replaced(text: str, name: str, pronoun: str) -> str:
    """Put a pronoun in the place of a name.

    >>> from memlab.rewrite.follow_ups import replaced
    >>> replaced("What is Kim's plan for Kim when Kim moves?", "Kim", "she")
    'What is her plan for her when she moves?'
    """
    subject, object_, possessive = _FORMS[pronoun]
    name = re.escape(name)
    text = re.sub(rf"\b{name}['’]s?(?!\w)", possessive, text)
    text = re.sub(rf"\b({_BEFORE_OBJECT}) {name}\b", rf"\1 {object_}", text)
    text = re.sub(rf"^(Who|What) (\w+ed) {name}\b", rf"\1 \2 {object_}", text)
    text = re.sub(rf"\b{name}(?=\W*$)", object_, text)
    if pronoun == "they":
        for one, many in _PLURAL.items():
            text = re.sub(rf"\b{one} {name}\b", f"{many} {subject}", text)
            text = re.sub(rf"^{one.title()} {name}\b", f"{many.title()} {subject}", text)
    return re.sub(rf"\b{name}\b", subject, text)


def posed(dataset: Dataset, rows: pl.DataFrame, texts: pl.Series | Sequence[str] | None = None) -> Dataset:
    """Give a dataset whose questions are follow-ups, to retrieve and evaluate with.

    :param rows: as :func:`from_names` gives them.
    :param texts: what is asked: rewritten questions, or the form that stands alone; as it was asked by default.
    """
    if texts is not None and len(texts) != rows.height:
        raise DataError(f"there are {rows.height} follow-ups and {len(texts)} texts; give one for each")
    text = rows["asked"] if texts is None else pl.Series(list(texts), dtype=pl.String)
    session = dict(dataset.turns.select("turn_id", "session_id").iter_rows())
    sessions = [list(dict.fromkeys(session[turn] for turn in turns)) for turns in rows["evidence"]]
    questions = rows.with_columns(
        text=text,
        question_type="kind",
        evidence_sessions=pl.Series(sessions, dtype=pl.List(pl.String)),
        abstention=pl.lit(False),
        rubric=pl.lit(None),
        stale=pl.lit(None),
    ).select(pl.col(name).cast(kind) for name, kind in schema(Question).items())
    return replace(dataset, questions=questions)


def said_before(rows: pl.DataFrame, *, most: int | None = None) -> pl.DataFrame:
    """Give for every question the messages before it, when the conversations of a scope are one long session.

    :param rows: follow-ups, in the order in which they are asked.
    :param most: messages of a question, the last ones; all by default.
    :returns: ``query_id`` and the columns of :class:`memlab.records.Turn`, in order of time.
    """
    messages: list[tuple[Any, ...]] = []
    for (scope,), its in rows.group_by("scope", maintain_order=True):
        session, said = f"{scope}/now", list[tuple[Any, ...]]()
        for query, asked, answer, when in its.select("query_id", "asked", "answer", "timestamp").iter_rows():
            messages += [(query, *one) for one in (said if most is None else said[-most:])]
            for role, text in (("user", asked), ("assistant", answer)):
                n = len(said) + 1
                said.append((f"{session}/{n}", scope, session, n, role, role, text, None, when))
    return pl.DataFrame(messages, schema={"query_id": pl.String(), **schema(Turn)}, orient="row")
