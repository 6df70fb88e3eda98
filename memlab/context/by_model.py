"""Answering questions from their contexts by a language model, and judging the answers."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Annotated, Any

import polars as pl
from pydantic import BaseModel, StringConstraints

from memlab.context import tokens
from memlab.context.tokens import Count
from memlab.errors import DataError
from memlab.llm import Service, answers

SYSTEM = (
    "You answer questions about earlier conversations from the notes that you are given. Use only the notes. Answer in "
    "as few words as you can; give dates as dates, working out words like 'last week' from the day in brackets above "
    "the message. If the notes do not say it, set known to false and answer: I don't know."
)
JUDGE = (
    "You compare an answer with the right answer to a question. The answer is correct if it says the same, in whatever "
    "words; more detail is no fault, a part left out or another value is. Say why in one short sentence, then decide. "
)
RUBRICS = {
    "temporal": "Dates written differently are the same. Do not punish being off by one in a number of days, weeks or "
    "months.",
    "knowledge-update": "If the answer names an old value too, it is correct as long as the newest value is given as "
    "the one that holds.",
    "preference": "The right answer describes what a good answer would take into account. The answer is correct if it "
    "uses what is known of the person rightly; it need not cover every point.",
    "abstention": "The question cannot be answered from the conversations. The answer is correct only if it says that "
    "it is not known; naming anything as the answer is wrong.",
    "": "",
}
"""What goes with the general rule, by kind of question: the first whose name the kind contains."""

# Questions that are asked together; their seconds are shared, so that a wait is known to so many.
BATCH = 16
_COLUMNS: dict[str, Any] = {
    "query_id": pl.String, "answer": pl.String, "known": pl.Boolean, "correct": pl.Boolean, "reason": pl.String,
    "failure": pl.String, "failure_kind": pl.String, "seconds": pl.Float64, "prompt_tokens": pl.Int64,
    "output_tokens": pl.Int64,
}  # fmt: skip

_Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=600)]
_Reason = Annotated[str, StringConstraints(strip_whitespace=True, max_length=300)]


class Reply(BaseModel, extra="forbid"):
    """An answer, and whether the notes gave it."""

    answer: _Text
    known: bool


class Verdict(BaseModel, extra="forbid"):
    """Whether an answer is right, and why."""

    reason: _Reason
    correct: bool


def answer(
    contexts: pl.DataFrame, questions: pl.DataFrame, service: Service, *, count: Count = tokens.count
) -> pl.DataFrame:
    """Answer questions from their contexts.

    With ``service.cache`` an interrupted run goes on where it was: answers that are there are not asked again.

    :param contexts: ``query_id`` and ``text``.
    :param questions: rows of :class:`memlab.records.Question`; ``text`` and ``timestamp`` are read, not the answer.
    :param count: the tokenizer that costs are counted with; the service's own may count otherwise.
    :returns: ``query_id``, ``answer`` and ``known`` (null after a failure), ``failure``, ``failure_kind`` (see
        :class:`memlab.llm.Outcome`), ``seconds`` (wall clock, shared by the questions of a batch), ``prompt_tokens``
        and ``output_tokens``.
    :raises DataError: for a question without a context.
    """
    rows = questions.select("query_id", "timestamp", question="text").join(
        contexts.select("query_id", "text"), on="query_id", how="left", maintain_order="left"
    )
    if rows["text"].null_count():
        raise DataError(f"question {rows.filter(pl.col('text').is_null())[0, 0]!r} has no context; assemble one first")
    day = rows["timestamp"].dt.strftime(" (asked on %-d %B %Y)").fill_null("")
    prompts = [
        f"Notes:\n{text or '(nothing)'}\n\nQuestion{when}: {question}"
        for text, when, question in zip(rows["text"], day, rows["question"], strict=True)
    ]
    return _asked(rows["query_id"], prompts, Reply, service=service, system=SYSTEM, count=count)


def judge(
    questions: pl.DataFrame, answered: pl.DataFrame, service: Service, *, count: Count = tokens.count
) -> pl.DataFrame:
    """Judge answers against the gold answers, by the rubric of each question's kind.

    A question whose answer the conversations do not hold is judged by whether the answer says so. An answer that is
    missing after a failure is not judged, and no question without a gold answer is.

    :param answered: what :func:`answer` gave.
    :returns: ``query_id``, ``question_type``, ``rubric``, ``correct`` and ``reason`` (null where not judged), and the
        columns of cost that :func:`answer` gives.
    """
    about = questions.select("query_id", "question_type", "abstention", gold="answer", question="text")
    rows = answered.select("query_id", "answer").join(about, on="query_id", how="left", maintain_order="left")
    rubrics = [rubric(kind, none) for kind, none in rows.select("question_type", "abstention").iter_rows()]
    rows = rows.with_columns(pl.Series("rubric", rubrics, dtype=pl.String))
    judged = rows.filter(pl.col("answer").is_not_null() & (pl.col("gold").is_not_null() | pl.col("abstention")))
    prompts = [_case(row) for row in judged.iter_rows(named=True)]
    verdicts = _asked(judged["query_id"], prompts, Verdict, service=service, system=JUDGE, count=count)
    asked = rows.select("query_id", "question_type", "rubric")
    return asked.join(verdicts, on="query_id", how="left", maintain_order="left")


def rubric(question_type: str | None, abstention: bool) -> str:
    """Name the rubric of a question.

    >>> from memlab.context.by_model import rubric
    >>> rubric("temporal-reasoning", False), rubric("temporal-reasoning", True), rubric("multi-hop", False)
    ('temporal', 'abstention', '')
    """
    if abstention:
        return "abstention"
    return next(name for name in RUBRICS if name in (question_type or ""))


def _case(row: dict[str, Any]) -> str:
    gold = "that it is not known" if row["rubric"] == "abstention" else row["gold"]
    lines = [f"Question: {row['question']}", f"Right answer: {gold}", f"Answer: {row['answer']}"]
    note = RUBRICS[row["rubric"]]
    return "\n".join([*lines, f"Rule: {note}"] if note else lines)


def _asked(
    ids: pl.Series, prompts: Sequence[str], schema: type[BaseModel], *, service: Service, system: str, count: Count
) -> pl.DataFrame:
    """Ask in batches, and give the fields of the answers, or why there is none, with what each cost."""
    outcomes, seconds = [], []
    for start in range(0, len(prompts), BATCH):
        batch = prompts[start : start + BATCH]
        begun = time.perf_counter()
        outcomes += answers(service, batch, schema, system=system)
        seconds += [(time.perf_counter() - begun) / len(batch)] * len(batch)
    replies = [outcome.answer.model_dump() if outcome.answer else {} for outcome in outcomes]
    texts = [outcome.answer.model_dump_json() if outcome.answer else "" for outcome in outcomes]
    columns = {
        "query_id": ids,
        **{name: [reply.get(name) for reply in replies] for name in _COLUMNS if name in schema.model_fields},
        "failure": [outcome.failure for outcome in outcomes],
        "failure_kind": [outcome.kind for outcome in outcomes],
        "seconds": seconds,
        "prompt_tokens": [int(n) for n in count([f"{system}\n{prompt[: service.max_input]}" for prompt in prompts])],
        "output_tokens": [int(n) for n in count(texts)],
    }
    return pl.DataFrame(columns, {name: _COLUMNS[name] for name in columns})
