"""Why evidence is missed: every missed turn with one cause, by rules that a program can check."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import polars as pl

from memlab.errors import DataError
from memlab.evaluate.groups_of_questions import (
    ALL_QUESTIONS,
    add_question_sources_column,
    add_source_of_each_unless_all_written,
)
from memlab.evaluate.printed_tables import Table
from memlab.records import Dataset, Run, qrels
from memlab.text.closed_word_classes import STOP_WORDS
from memlab.text.text_analyser import tokenize
from memlab.text.tokens_and_sentences import stem

CAUSES = {
    "budget": "the answer needs more turns than k",
    "caption": "what it shares with question or answer stands only in its image caption",
    "pronouns": "it has no high-idf term of its own",
    "label": "it shares nothing with either, and an unlabelled turn among the first k holds the "
    "answer's words",
    "follow-on": "it shares nothing with the question, and a turn within two of it is among the "
    "first k",
    "implied": "it has no word of question or answer: to be inferred, or labelled by mistake",
    "common words": "it has only words of question or answer that the whole chat uses",
    "other words": "it shares words with the answer, none with the question",
    "near miss": "it shares words with the question, and ranks up to 2k",
    "outranked": "it shares words with the question, and is not among the first 2k",
}
"""Causes in the order in which they are tried, and their rules; the first that holds is taken."""
FOLLOW_ON_REACH = 2
COMMON = 0.05
FEW = 5


def misses(run: Run, dataset: Dataset, *, k: int = 10) -> pl.DataFrame:
    """List the evidence that is not among the first k, each item with the first of :data:`CAUSES`
    that fits it.

    The rules compare stems, without stop words and names of speakers. What is shared must be a
    high-idf term: in at most one turn in twenty of the scope (or five turns). The causes were
    chosen after reading some sixty misses of ``best | learned`` on LoCoMo. Of 30 then drawn at
    random, 25 fitted the cause that they got; two of the others were labels that point at the wrong
    turn, which no rule sees.

    :param run: a ranking of turns.
    :returns: a row a missed item: ``query_id``, ``n_evidence_sessions``, ``question``, ``answer``,
        ``doc_id``, ``text`` (with its caption), ``rank`` (null where it was not ranked) and
        ``cause``; and ``source`` where some questions were proposed by a model.
    :raises DataError: when the run ranks sessions, or ``k`` is not positive.

    >>> import memlab
    >>> from memlab.evaluate import count_by_cause, misses
    >>> data = memlab.sample(turns=200)
    >>> run = memlab.pipeline("bm25").run(memlab.Bench.of(data, encoder=None))
    >>> missed = misses(run, data, k=10)
    >>> count_by_cause(missed)["n"].sum() == missed.height
    True
    """
    evidence = qrels(dataset.questions, "turn").frame.select("query_id", "doc_id")
    if run.level != "turn" or k < 1:
        raise DataError(
            f"the run ranks {run.level}s and k is {k}; give a ranking of turns, and k from 1"
        )
    ranked_turns = run.frame.select("query_id", "doc_id", "rank")
    numbered_turns = dataset.turns.select(
        "session_id", "n", "text", "caption", doc_id="turn_id"
    ).with_row_index("at")
    question_rows = dataset.questions.select(
        "query_id",
        "scope",
        "answer",
        question="text",
        n_evidence_sessions=pl.col("evidence_sessions").list.n_unique(),
    )
    evidence_items = (
        evidence.with_columns(needed=pl.len().over("query_id"))
        .join(ranked_turns, on=["query_id", "doc_id"], how="left", maintain_order="left")
        .join(numbered_turns, on="doc_id", how="left", maintain_order="left")
        .join(
            question_rows.with_row_index("asked"), on="query_id", how="left", maintain_order="left"
        )
    )
    first_turns = ranked_turns.filter(pl.col("rank") <= k).join(
        numbered_turns.select("doc_id", "at", "session_id", "n"), on="doc_id", maintain_order="left"
    )
    places_by_session = first_turns.group_by("query_id", "session_id").agg(places="n")
    other_turns = (
        first_turns.join(evidence, on=["query_id", "doc_id"], how="anti")
        .group_by("query_id")
        .agg(others="at")
    )
    missed_items = (
        evidence_items.filter((pl.col("rank") > k).fill_null(True))
        .join(places_by_session, on=["query_id", "session_id"], how="left", maintain_order="left")
        .join(other_turns, on="query_id", how="left", maintain_order="left")
        .with_columns(pl.col("places", "others").fill_null([]))
    )
    scope_words = _ScopeStems(dataset)
    cause_names = [
        scope_words.first_fitting_cause_of_miss(item, k)
        for item in missed_items.iter_rows(named=True)
    ]
    shown_text = pl.concat_str(
        "text", pl.format("[image: {}]", "caption"), separator=" ", ignore_nulls=True
    )
    question_columns = (
        "query_id",
        "n_evidence_sessions",
        "question",
        "answer",
        "doc_id",
        shown_text.alias("text"),
        "rank",
    )
    causes = missed_items.select(*question_columns).with_columns(
        cause=pl.Series(cause_names, dtype=pl.String)
    )
    return add_source_of_each_unless_all_written(causes, dataset.questions)


class _ScopeStems:
    """The stems of turns, captions, questions and answers, and those that each scope uses."""

    def __init__(self, dataset: Dataset) -> None:
        turns = dataset.turns
        questions = dataset.questions
        self.texts = _content_stems_of_each_text(turns["text"])
        self.captions = _content_stems_of_each_text(turns["caption"])
        self.questions = _content_stems_of_each_text(questions["text"])
        self.answers = _content_stems_of_each_text(questions["answer"])
        self.names = dict[str, set[str]]()
        self.common = dict[str, set[str]]()
        speakers = _content_stems_of_each_text(turns["speaker"])
        for scope, rows in (
            turns.select("scope", at=pl.int_range(pl.len())).group_by("scope").agg("at").iter_rows()
        ):
            turn_counts = Counter(
                content_word
                for turn_row in rows
                for content_word in self.texts[turn_row] | self.captions[turn_row]
            )
            self.names[scope] = set[str]().union(*(speakers[turn_row] for turn_row in rows))
            self.common[scope] = {
                content_word
                for content_word, n_turns in turn_counts.items()
                if n_turns > max(COMMON * len(rows), FEW)
            }

    def first_fitting_cause_of_miss(self, missed_item: Mapping[str, Any], k: int) -> str:
        """Name the first cause that fits a missed item.

        :param missed_item: with ``others``, turns among the first k that are no evidence, and
            ``places``, those of its session, by number.
        """
        turn_row = missed_item["at"]
        question_row = missed_item["asked"]
        scope_names = self.names[missed_item["scope"]]
        common_words = self.common[missed_item["scope"]]
        question_words = self.questions[question_row] - scope_names
        answer_stems = self.answers[question_row] - scope_names
        text_words = self.texts[turn_row] - scope_names
        caption_words = self.captions[turn_row] - scope_names
        question_or_answer = question_words | answer_stems
        turn_words = (text_words | caption_words) - common_words
        answer_words = answer_stems - common_words
        rank_or_last = missed_item["rank"] or 2 * k + 1
        shares_question_word = bool(turn_words & question_words)
        shares_nothing = not turn_words & question_or_answer
        rules = {
            "budget": missed_item["needed"] > k,
            "caption": bool((caption_words - common_words) & question_or_answer)
            and not (text_words - common_words) & question_or_answer,
            "pronouns": not text_words - common_words,
            "label": shares_nothing
            and answer_words
            and any(
                answer_words <= self.texts[other_place] | self.captions[other_place]
                for other_place in missed_item["others"]
            ),
            "follow-on": not shares_question_word
            and any(
                abs(missed_item["n"] - other_place) <= FOLLOW_ON_REACH
                for other_place in missed_item["places"]
            ),
            "implied": not (text_words | caption_words) & question_or_answer,
            "common words": shares_nothing,
            "other words": not shares_question_word,
            "near miss": rank_or_last <= 2 * k,
        }
        return next((name for name, is_cause in rules.items() if is_cause), "outranked")


def _content_stems_of_each_text(texts: pl.Series) -> list[set[str]]:
    """Give the distinct stems of each text that are no stop words."""
    stop_stems = set(stem(STOP_WORDS))
    return (
        [set(words) - stop_stems for words in tokenize(texts.fill_null("").to_list())]
        if len(texts)
        else []
    )


def count_by_cause(missed: pl.DataFrame) -> Table:
    """Count missed evidence and lost questions by cause.

    :param missed: what :func:`misses` gave, or a part of it that holds whole questions.
    :returns: a row a cause of :data:`CAUSES`, in their order: ``cause``, ``n`` (missed items),
        ``share`` (of them), ``solved`` and ``alone``, number and share of the incomplete questions
        that miss items for this cause only, and ``rule``, what the cause is; and
        ``question_sources`` where some questions were proposed by a model. Printed, it is whole.
    """
    only_cause = pl.when(pl.col("cause").n_unique().over("query_id") == 1).then("query_id")
    count_columns = {"n": pl.len(), "solved": pl.col("only").drop_nulls().n_unique()}
    cause_counts = missed.with_columns(only=only_cause).group_by("cause").agg(**count_columns)
    n_items = max(missed.height, 1)
    n_questions = max(missed["query_id"].n_unique(), 1)
    causes = (
        pl.DataFrame({"cause": list(CAUSES)})
        .join(cause_counts, on="cause", how="left", maintain_order="left")
        .with_columns(pl.col("n", "solved").fill_null(0))
        .with_columns(share=pl.col("n") / n_items, alone=pl.col("solved") / n_questions)
        .with_columns(rule=pl.Series(list(CAUSES.values())))
    )
    return Table(add_question_sources_column(causes, missed))


HOW_CAUSES_ARE_FOUND = (
    "From the top, the first rule that holds is the cause. Shared words: high-idf terms alone, in "
    "at most one turn in twenty."
)
"""What a figure of causes says below."""


def count_by_cause_in_the_order_tried(missed: pl.DataFrame) -> pl.DataFrame:
    """Count by cause as :func:`count_by_cause` does, of all questions: for
    :func:`memlab.figures.bars.share_bars`, which draws the rules in the order they are tried.
    """
    return count_by_cause(missed).with_columns(group=pl.lit(ALL_QUESTIONS))
