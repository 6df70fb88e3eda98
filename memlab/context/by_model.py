"""Answering questions from their contexts by a language model, and judging the answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

import polars as pl
from pydantic import BaseModel, StringConstraints

from memlab.context.tokens import count
from memlab.errors import DataError
from memlab.language.questions import aggregation
from memlab.llm import Service, answers

SYSTEM = (
    "You answer questions about earlier conversations from the notes that you are given. Use only the notes. Answer in "
    "as few words as you can; give dates as dates, working out words like 'last week' from the day in brackets above "
    "the message. If the notes do not say it, set known to false and answer: I don't know."
)
JUDGE = (
    "You compare an answer with the right answer to a question. It is correct if whoever asks is told what the right "
    "answer says, in whatever words, numbers and dates in whatever form. More detail is no fault. Wrong are: a part of "
    "what was asked for left out, an item too many, another value beside or in place of the right one, leaving open "
    "which of two values holds, and saying that it is not known. A guess or a hedge that names the right value alone "
    "is correct. A rule, where one is given, goes before these. Say why in one short sentence, then decide."
)
RUBRICS = {
    "temporal": "Dates written differently are the same. Do not punish being off by one in a number of days, weeks or "
    "months. An order of events is correct only if it is the same throughout.",
    "knowledge-update": "If the answer names an old value too, it is correct as long as the required value is given as "
    "the one that was asked for.",
    "preference": "The right answer describes what a good answer would take into account. The answer is correct if it "
    "uses what is known of the person rightly; it need not cover every point.",
    "several": "The answer needs every part, each with what belongs to it, in any order. A total or a number of things "
    "must be exact; its working may be shown.",
    "abstention": "The question cannot be answered from the conversations. The answer is correct only if it says that "
    "it is not known; it may say what else is. Naming anything as the answer, also as a guess, is wrong.",
    "single": "",
}
"""What goes with the general rule, by kind of question.

After the judge prompts of LongMemEval (``src/evaluation/evaluate_qa.py`` of its repository: subsets are wrong, days off
by one and an old value beside the new are not, a preference is a rubric) and BEAM's rubric (``src/prompts.py``: meaning
before words, values compared as values, every part of a compound).
"""
POINT = (
    "You check an answer to a question against one point that a good answer meets: something that it says, or "
    "something that it does not. Judge by meaning, not by wording, length or tone, and numbers and dates by value. "
    "An answer to another question meets no point. Say why in one short sentence, then whether the point is met fully, "
    "partly (some of it, or with a slight fault) or not."
)
PROMPTS_VERSION = 2
"""Raised with every change of a prompt."""

_MET = {"fully": 1.0, "partly": 0.5, "not": 0.0}
_KINDS = {
    "temporal": ("temporal", "ordering"),
    "knowledge-update": ("knowledge-update",),
    "preference": ("preference",),
    "several": ("multi-session", "multi-hop", "summarization"),
}
_COLUMNS: dict[str, Any] = {
    "query_id": pl.String, "answer": pl.String, "known": pl.Boolean, "correct": pl.Boolean, "met": pl.String,
    "reason": pl.String,
    "failure": pl.String, "failure_kind": pl.String, "seconds": pl.Float64, "prompt_tokens": pl.Int64,
    "output_tokens": pl.Int64, "price": pl.Float64,
}  # fmt: skip

_Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=600)]
_Reason = Annotated[str, StringConstraints(strip_whitespace=True, max_length=300)]


class Reply(BaseModel, extra="forbid"):
    """An answer, and whether the notes gave it."""

    answer: _Text
    known: bool


class Met(BaseModel, extra="forbid"):
    """How far an answer meets a point, and why."""

    reason: _Reason
    met: Literal["fully", "partly", "not"]


class Verdict(BaseModel, extra="forbid"):
    """Whether an answer is right, and why."""

    reason: _Reason
    correct: bool


def answer(contexts: pl.DataFrame, questions: pl.DataFrame, service: Service) -> pl.DataFrame:
    """Answer questions from their contexts.

    With ``service.cache`` an interrupted run goes on where it was: answers that are there are not asked again.

    :param contexts: ``query_id`` and ``text``.
    :param questions: rows of :class:`memlab.records.Question`; ``text`` and ``timestamp`` are read, not the answer.
    :returns: ``query_id``, ``answer`` and ``known`` (null after a failure), ``failure``, ``failure_kind`` (see
        :class:`memlab.llm.Outcome`), ``seconds`` until it came, ``prompt_tokens``, ``output_tokens`` (counted here
        where the service does not say them) and ``price`` (null where the service has none). What was kept has the cost
        of the time when it was asked.
    :raises DataError: for a question without a context.
    """
    prompts = answer_prompts(contexts, questions)
    return _asked(questions["query_id"], prompts, Reply, service, SYSTEM)


def answer_prompts(contexts: pl.DataFrame, questions: pl.DataFrame) -> list[str]:
    """Give what :func:`answer` asks, a prompt a question; the parameters are its own."""
    rows = questions.select("query_id", "timestamp", question="text").join(
        contexts.select("query_id", "text"), on="query_id", how="left", maintain_order="left"
    )
    if rows["text"].null_count():
        raise DataError(f"question {rows.filter(pl.col('text').is_null())[0, 0]!r} has no context; assemble one first")
    day = rows["timestamp"].dt.strftime(" (asked on %-d %B %Y)").fill_null("")
    return [
        f"Notes:\n{text or '(nothing)'}\n\nQuestion{when}: {question}"
        for text, when, question in zip(rows["text"], day, rows["question"], strict=True)
    ]


def prompts() -> dict[str, str]:
    """Give every prompt by name: what a result depends on, with :data:`PROMPTS_VERSION`.

    >>> from memlab.context.by_model import prompts
    >>> list(prompts())[:3]
    ['answer', 'judge', 'judge, temporal']
    """
    return {
        "answer": SYSTEM,
        "judge": JUDGE,
        **{f"judge, {name}": text for name, text in RUBRICS.items()},
        "point": POINT,
    }


def judge(questions: pl.DataFrame, answered: pl.DataFrame, service: Service) -> pl.DataFrame:
    """Judge answers against the gold answers, by the rubric of each question's kind.

    A question whose answer the conversations do not hold is judged by whether the answer says so. A question with
    points (``rubric``, as BEAM has them) is judged point by point, and is correct where all are met. An answer that is
    missing after a failure is not judged, and no question without a gold answer or points is.

    :param answered: what :func:`answer` gave.
    :returns: ``query_id``, ``question_type``, ``rubric`` (a key of :data:`RUBRICS`, or ``points``), ``score`` from 0 to
        1, ``correct`` and ``reason`` (null where not judged), and the columns of cost that :func:`answer` gives.
    """
    points = "rubric" if "rubric" in questions.columns else pl.lit(None, pl.List(pl.String)).alias("rubric")
    about = questions.select(
        "query_id", "question_type", "abstention", points, gold="answer", question="text", kind=rubrics(questions)
    ).rename({"rubric": "points", "kind": "rubric"})
    rows = answered.select("query_id", "answer").join(about, on="query_id", how="left", maintain_order="left")
    pointed = pl.col("points").list.len().fill_null(0) > 0
    rows = rows.with_columns(rubric=pl.when(pointed).then(pl.lit("points")).otherwise("rubric"))
    there = rows.filter(pl.col("answer").is_not_null())
    whole = there.filter(~pointed & (pl.col("gold").is_not_null() | pl.col("abstention")))
    cases = [_case(row) for row in whole.iter_rows(named=True)]
    verdicts = _asked(whole["query_id"], cases, Verdict, service, JUDGE)
    verdicts = verdicts.with_columns(score=pl.col("correct").cast(pl.Float64))
    each = there.filter(pointed).explode("points").drop_nulls("points")
    if each.height:
        cases = [_point(row) for row in each.iter_rows(named=True)]
        scored = _asked(each["query_id"], cases, Met, service, POINT)
        verdicts = pl.concat([verdicts, _together(scored)], how="diagonal")
    asked = rows.select("query_id", "question_type", "rubric")
    return asked.join(verdicts, on="query_id", how="left", maintain_order="left")


def _together(scored: pl.DataFrame) -> pl.DataFrame:
    """Make one row a question of its points; one that failed leaves it without a score."""
    met = pl.col("met").replace_strict(_MET, return_dtype=pl.Float64)
    rows = scored.group_by("query_id", maintain_order=True).agg(
        pl.when(pl.col("met").null_count() == 0).then(met.mean()).alias("score"),
        pl.col("reason").str.join(" | "),
        pl.col("failure").filter(pl.col("failure") != "").first().fill_null(""),
        pl.col("failure_kind").filter(pl.col("failure_kind") != "").first().fill_null(""),
        pl.col("seconds", "prompt_tokens", "output_tokens").sum(),
        pl.when(pl.col("price").null_count() == 0).then(pl.col("price").sum()),
    )
    return rows.with_columns(correct=pl.col("score") == 1)


def rubrics(questions: pl.DataFrame) -> pl.Series:
    """Name the rubric of each question: a key of :data:`RUBRICS`.

    By its ``question_type`` where that tells; else ``several`` where it asks for something counted or listed.

    >>> import polars as pl
    >>> from memlab.context.by_model import rubrics
    >>> asked = {"question_type": ["temporal-reasoning", "temporal", "multi-hop", "single-hop"], "text": "Where is it?"}
    >>> rubrics(pl.DataFrame(asked).with_columns(abstention=pl.Series([False, True, False, False]))).to_list()
    ['temporal', 'abstention', 'several', 'single']
    """
    kind = pl.col("question_type").fill_null("").str.replace_all("_", "-")
    named: Any = pl.when("abstention").then(pl.lit("abstention"))
    for name, parts in _KINDS.items():
        named = named.when(pl.any_horizontal(kind.str.contains(part, literal=True) for part in parts)).then(
            pl.lit(name)
        )
    named = named.when(aggregation()).then(pl.lit("several"))
    return questions.select(named.otherwise(pl.lit("single")).alias("rubric"))["rubric"]


def _case(row: dict[str, Any]) -> str:
    gold = "that it is not known" if row["rubric"] == "abstention" else row["gold"]
    lines = [f"Question: {row['question']}", f"Right answer: {gold}", f"Answer: {row['answer']}"]
    note = RUBRICS[row["rubric"]]
    return "\n".join([*lines, f"Rule: {note}"] if note else lines)


def _point(row: dict[str, Any]) -> str:
    return f"Question: {row['question']}\nPoint: {row['points']}\nAnswer: {row['answer']}"


def _asked(
    ids: pl.Series, prompts: Sequence[str], schema: type[BaseModel], service: Service, system: str
) -> pl.DataFrame:
    """Ask, and give the fields of the answers, or why there is none, with what each cost."""
    outcomes = answers(service, prompts, schema, system=system)
    replies = [outcome.answer.model_dump() if outcome.answer else {} for outcome in outcomes]
    texts = [outcome.answer.model_dump_json() if outcome.answer else "" for outcome in outcomes]
    sent = count([f"{system}\n{prompt[: service.max_input]}" for prompt in prompts])
    counted = {"prompt_tokens": sent, "output_tokens": count(texts)}
    columns = {
        "query_id": ids,
        **{name: [reply.get(name) for reply in replies] for name in _COLUMNS if name in schema.model_fields},
        "failure": [outcome.failure for outcome in outcomes],
        "failure_kind": [outcome.kind for outcome in outcomes],
        **{name: [getattr(outcome.cost, name) for outcome in outcomes] for name in ("seconds", *counted)},
    }
    rows = pl.DataFrame(columns, {name: _COLUMNS[name] for name in columns})
    rows = rows.with_columns(pl.col(name).fill_null(pl.Series(n, dtype=pl.Int64)) for name, n in counted.items())
    # Null where the service has no price.
    asked = pl.col("prompt_tokens") * pl.lit(service.input_price, pl.Float64)
    answered = pl.col("output_tokens") * pl.lit(service.output_price, pl.Float64)
    return rows.with_columns(price=(asked + answered) / 1e6)
