"""Answers of a language model from contexts, and their judge: six rubrics, and orders of events."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Annotated, Any

import polars as pl
from pydantic import BaseModel, Field, StringConstraints

from memlab import llm
from memlab.errors import DataError, warn_user
from memlab.text.question_forms import asks_for_aggregation

SYSTEM = (
    "You answer questions about earlier conversations from the notes that you are given. Use only "
    "the notes. Answer in as few words as you can; give dates as dates, working out words like "
    "'last week' from the day in brackets above the message. If the notes do not say it, set known "
    "to false and answer: I don't know."
)
JUDGE = (
    "You compare an answer with the right answer to a question. It is correct if whoever asks is "
    "told what the right answer says, in whatever words, numbers and dates in whatever form. More "
    "detail is no fault. Wrong are: a part of what was asked for left out, an item too many, "
    "another value beside or in place of the right one, leaving open which of two values holds, "
    "and saying that it is not known. A guess or a hedge that names the right value alone is "
    "correct. A rule, where one is given, goes before these. Say why in one short sentence, then "
    "decide."
)
RUBRICS = {
    "temporal": "Dates written differently are the same. Do not punish being off by one in a "
    "number of days, weeks or months. An order of events is correct only if it is the same "
    "throughout.",
    "knowledge-update": "If the answer names an old value too, it is correct as long as the "
    "required value is given as the one that was asked for.",
    "preference": "The right answer describes what a good answer would take into account. The "
    "answer is correct if it uses what is known of the person rightly; it need not cover every "
    "point.",
    "several": "The answer needs every part, each with what belongs to it, in any order. A total "
    "or a number of things must be exact; its working may be shown.",
    "abstention": "The question cannot be answered from the conversations. The answer is correct "
    "only if it says that it is not known; it may say what else is. Naming anything as the answer, "
    "also as a guess, is wrong.",
    "single": "",
}
"""The rule that goes with the general one, by kind of question.

After the judge prompts of LongMemEval (``src/evaluation/evaluate_qa.py`` of its repository).
"""
ORDER = (
    "You compare the order of events in an answer with the right order. First list the events of "
    "the right answer in the order in which they happened, each in a few words. Then give the "
    "numbers of those that the answer names (1 is the first of your list) in the order in which "
    "the answer says that they happened; none if it names none."
)
VERSION = 3
PROMPTS = {
    "answer": SYSTEM,
    "judge": JUDGE,
    "order": ORDER,
    **{f"judge, {name}": text for name, text in RUBRICS.items()},
}

_QUESTION_TYPES = {
    "temporal": ("temporal", "ordering"),
    "knowledge-update": ("knowledge-update", "changes"),
    "preference": ("preference", "instruction"),
    "several": ("multi", "summar", "counting", "totals", "listing", "comparing"),
}
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


class Order(BaseModel, extra="forbid"):
    """The events of a right answer, and the numbers of those that an answer names, in its order."""

    events: Annotated[list[str], Field(min_length=2, max_length=50)]
    named: Annotated[list[int], Field(max_length=50)]


_ANSWERS = {Reply: "answers", Verdict: "verdicts", Order: "orders of events"}
# More than these are worth a line of progress.
_FEW_REQUESTS = 32
_COST_SCHEMA = {
    "error": pl.String(),
    "seconds": pl.Float64(),
    "tokens_read": pl.Int64(),
    "tokens_written": pl.Int64(),
    "tokens_estimated": pl.Boolean(),
}


def answer(
    contexts: pl.DataFrame, questions: pl.DataFrame, service: str | llm.Service | None
) -> pl.DataFrame:
    """Answer questions from their contexts.

    :param contexts: ``query_id`` and ``text``.
    :param questions: rows of :class:`memlab.records.Question`; ``text`` and ``timestamp`` are read,
        not the answer.
    :param service: see :func:`memlab.llm.ask`.
    :returns: ``query_id``, ``answer`` and ``known`` (null where there is none), ``error``,
        ``seconds``, ``tokens_read``, ``tokens_written`` and ``tokens_estimated`` (where the server
        did not count them).
    :raises DataError: for a question without a context.
    """
    return _ask_warn_and_tabulate_answers(
        questions["query_id"], make_answer_requests(contexts, questions), service
    )


def make_answer_requests(contexts: pl.DataFrame, questions: pl.DataFrame) -> list[llm.Request]:
    """Write the requests of :func:`answer`; their answers are :class:`Reply`."""
    asked_on = pl.col("timestamp").dt.strftime("%-d %B %Y").fill_null("")
    context_notes = contexts.select("query_id", notes="text")
    question_rows = questions.select("query_id", asked_on=asked_on, question="text").join(
        context_notes, on="query_id", how="left", maintain_order="left"
    )
    without_context = question_rows.filter(pl.col("notes").is_null())
    if without_context.height:
        raise DataError(
            f"question {without_context['query_id'][0]!r} has no context; assemble one first"
        )
    # The order of the columns is that of the prompt.
    prompt_rows = question_rows.select("notes", "asked_on", "question").iter_rows(named=True)
    return [
        _make_request("answer", Reply, SYSTEM, **prompt_fields) for prompt_fields in prompt_rows
    ]


def judge(
    questions: pl.DataFrame, answered: pl.DataFrame, service: str | llm.Service | None
) -> pl.DataFrame:
    """Judge answers against the gold answers, by the rubric of each question's kind.

    A question whose answer the conversations do not hold is judged by whether the answer says so.
    An answer that is missing is not judged, nor is a question without a gold answer.

    :param answered: what :func:`answer` gave.
    :returns: ``query_id``, ``rubric`` (a key of :data:`RUBRICS`), ``correct`` and ``reason`` (null
        where not judged), and ``error``, ``seconds`` and tokens as :func:`answer` gives them.
    """
    question_details = questions.select(
        "query_id", "abstention", choose_rubrics(questions), gold="answer", question="text"
    )
    answer_rows = answered.select("query_id", "answer").join(
        question_details, on="query_id", how="left", maintain_order="left"
    )
    judged_rows = answer_rows.filter(
        pl.col("answer").is_not_null() & (pl.col("gold").is_not_null() | pl.col("abstention"))
    )
    requests = [_make_judge_request(row) for row in judged_rows.iter_rows(named=True)]
    verdicts = _ask_warn_and_tabulate_answers(judged_rows["query_id"], requests, service, Verdict)
    return answer_rows.select("query_id", "rubric").join(
        verdicts, on="query_id", how="left", maintain_order="left"
    )


def ask_for_event_orders(
    questions: pl.DataFrame, answered: pl.DataFrame, service: str | llm.Service | None
) -> pl.DataFrame:
    """Read the order of events off answers, for questions whose type says ``ordering``.

    A model lists the events of the right answer, and says which of them an answer names, in its
    order.

    :param answered: what :func:`answer` gave.
    :returns: a row for each of these questions with an answer and a gold answer: ``query_id``,
        ``events`` and ``named`` (their numbers from 1; null where there is no answer of the model),
        and ``error``, ``seconds`` and tokens as :func:`answer` gives them.
    """
    ordering_questions = questions.filter(
        pl.col("question_type").str.contains("ordering"), ~pl.col("abstention")
    )
    question_details = ordering_questions.select("query_id", gold="answer", question="text")
    answer_rows = question_details.join(
        answered.select("query_id", "answer"), on="query_id", maintain_order="left"
    ).drop_nulls()
    requests = [
        _make_request(
            "order", Order, ORDER, question=question, right_answer=gold_answer, answer=answer_text
        )
        for _, gold_answer, question, answer_text in answer_rows.iter_rows()
    ]
    return _ask_warn_and_tabulate_answers(answer_rows["query_id"], requests, service, Order)


def choose_rubrics(questions: pl.DataFrame) -> pl.Series:
    """Choose the rubric of each question, a key of :data:`RUBRICS`, by its type, else by its words.

    >>> import polars as pl
    >>> from memlab.conversation.answers_and_judge import choose_rubrics
    >>> types = ["temporal-reasoning", "temporal", "multi-hop", "single-hop"]
    >>> questions = pl.DataFrame({"question_type": types, "text": "Where is it?"})
    >>> abstention = pl.Series([False, True, False, False])
    >>> choose_rubrics(questions.with_columns(abstention=abstention)).to_list()
    ['temporal', 'abstention', 'several', 'single']
    """
    question_type = pl.col("question_type").fill_null("").str.replace_all("_", "-")
    rubric: Any = pl.when("abstention").then(pl.lit("abstention"))
    for rubric_name, type_parts in _QUESTION_TYPES.items():
        type_fits = pl.any_horizontal(
            question_type.str.contains(type_part, literal=True) for type_part in type_parts
        )
        rubric = rubric.when(type_fits).then(pl.lit(rubric_name))
    rubric = rubric.when(asks_for_aggregation()).then(pl.lit("several"))
    return questions.select(rubric.otherwise(pl.lit("single")).alias("rubric"))["rubric"]


def _make_judge_request(answer_row: dict[str, Any]) -> llm.Request:
    rubric = answer_row["rubric"]
    right_answer = answer_row["gold"]
    if rubric == "abstention":
        right_answer = "that it is not known"
    return _make_request(
        "judge",
        Verdict,
        JUDGE,
        question=answer_row["question"],
        right_answer=right_answer,
        answer=answer_row["answer"],
        rule=RUBRICS[rubric],
    )


def _make_request(
    task: str, answer_model: type[BaseModel], system_prompt: str, **prompt_texts: str
) -> llm.Request:
    prompt_fields = {
        field_name.replace("_", " "): field_text
        for field_name, field_text in prompt_texts.items()
        if field_text
    }
    asked_about = tuple(prompt_texts.values())
    return llm.Request(
        task,
        VERSION,
        asked_about,
        json.dumps(prompt_fields, ensure_ascii=False),
        answer_model,
        system_prompt,
    )


def _ask_warn_and_tabulate_answers(
    query_ids: pl.Series,
    requests: Sequence[llm.Request],
    service: str | llm.Service | None,
    answer_model: type[BaseModel] = Reply,
) -> pl.DataFrame:
    """Ask a model, and give the fields of each answer with its error, seconds and tokens."""
    progress_title = ""
    if len(requests) > _FEW_REQUESTS:
        progress_title = requests[0].task
    answers = llm.ask(requests, service, progress=progress_title)
    unanswered = llm.describe_unanswered(answers, _ANSWERS[answer_model])
    if unanswered:
        warn_user(unanswered)
    schema: dict[str, Any] = {}
    for field_name, field_info in answer_model.model_fields.items():
        python_type: Any = field_info.annotation
        schema[field_name] = pl.DataType.from_python(python_type)
    answer_rows = []
    for answer in answers:
        values = [getattr(answer.value, field_name, None) for field_name in schema]
        answer_rows.append(
            (*values, answer.error, answer.seconds, *answer.tokens, answer.is_estimated)
        )
    answer_table = pl.DataFrame(answer_rows, schema | _COST_SCHEMA, orient="row")
    return answer_table.select(query_ids.alias("query_id"), pl.all())
