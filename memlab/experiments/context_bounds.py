"""What a model is given with each question: contexts within a budget, and their bounds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from memlab.conversation.answers_and_judge import PROMPTS, VERSION, make_answer_requests
from memlab.conversation.context_lines import write_turns_as_lines
from memlab.conversation.contexts import add_token_counts, single_line
from memlab.errors import DataError
from memlab.experiments.system_rankings import ANSWER_BUDGET, AskingOptions, SystemsLike
from memlab.memories import dated_lines, fit_to_budget
from memlab.records import Dataset
from memlab.terminal_text import count_noun

BOUNDS = ("evidence", "whole history", "nothing", "another's")
"""Contexts that need no system: what perfect retrieval gives, the ceiling, and two floors."""
_PROBLEMS = dict.fromkeys(("scope", "query_id", "problem", "system"), pl.String())


@dataclass(frozen=True, eq=False)
class SystemContexts:
    """What a model is given with each question, by system.

    :param texts: name → ``query_id``, ``text`` and ``n_tokens``; the bounds come last.
    :param problems: what went wrong in collecting them, as :class:`memlab.memories.ReturnedTexts`
        has it, by ``system``.
    :param questions: those that are asked: all with an answer, or that the conversations do not
        answer.
    :param about: dataset, budget, seed, each system's settings, and its ``status``: what its
        contexts lack.
    """

    texts: Mapping[str, pl.DataFrame]
    problems: pl.DataFrame
    questions: pl.DataFrame
    about: Mapping[str, Any]


def make_system_contexts(
    systems: SystemsLike,
    data: Dataset,
    *,
    bounds: Sequence[str] = BOUNDS,
    budget: int = ANSWER_BUDGET,
    **options: Any,
) -> SystemContexts:
    """Make the context of every question from each system: its first texts that fit into a budget.

    :param systems: as :func:`memlab.compare` takes them, with its ``options``.
    :param bounds: of :data:`BOUNDS`; ``another's`` is the first system's context of another
        question.
    :param budget: tokens; the bounds are not held to it.
    :raises DataError: for an unknown bound, two systems of one name, or nothing to make contexts
        of.

    >>> import memlab
    >>> from memlab.experiments.context_bounds import make_system_contexts
    >>> made = make_system_contexts("bm25", memlab.sample(turns=200), encoder=None, budget=200)
    >>> made.texts["bm25"]["n_tokens"].max() <= 200
    True
    """
    if not set(bounds) <= set(BOUNDS) or budget < 1:
        raise DataError(
            f"bounds are {[*bounds]}, the budget {budget}; "
            f"choose of {', '.join(BOUNDS)}, and 1 token or more"
        )
    asking_options = AskingOptions(**options)
    system_by_name = asking_options.read_systems_and_run_files_by_name(systems, data, bounds)
    questions = data.questions.filter(pl.col("abstention") | pl.col("answer").is_not_null())
    if questions.is_empty():
        raise DataError(f"no question of {data.name!r} has an answer; answers are compared with it")
    returned_by_system = [
        returned_texts
        for returned_texts, _ in asking_options.ask_systems_and_iter_texts_and_ms(
            system_by_name, asking_options.make_bench(data), data
        )
    ]
    context_texts = {
        returned.name: fit_to_budget(dated_lines(returned), questions, budget)
        for returned in returned_by_system
    }
    first_contexts = next(iter(context_texts.values()), None)
    context_texts |= {
        bound_name: _make_contexts_of_bound(bound_name, data, questions, first_contexts)
        for bound_name in bounds
    }
    problem_frames = [
        returned.problems.with_columns(system=pl.lit(returned.name))
        for returned in returned_by_system
    ]
    provenance = {
        "dataset": data.name,
        "fingerprint": data.fingerprint(),
        "budget": budget,
        "seed": asking_options.seed,
        "unit": asking_options.unit,
        "questions": questions.height,
        "status": {returned.name: returned.status() for returned in returned_by_system},
        "systems": {returned.name: dict(returned.provenance) for returned in returned_by_system},
    }
    return SystemContexts(
        context_texts,
        pl.concat([pl.DataFrame(schema=_PROBLEMS), *problem_frames]),
        questions,
        provenance,
    )


def format_prompts_and_first_example(system_contexts: SystemContexts) -> str:
    """Show every prompt, and what the first system's first question would be asked with."""
    first_contexts = next(iter(system_contexts.texts.values()))
    example = make_answer_requests(first_contexts, system_contexts.questions.head(1))[0].prompt
    prompt_lines = "\n\n".join(
        f"{entry_name}: {prompt_text}" for entry_name, prompt_text in PROMPTS.items() if prompt_text
    )
    token_counts = ", ".join(
        f"{entry_name} {context_texts['n_tokens'].sum():,}"
        for entry_name, context_texts in system_contexts.texts.items()
    )
    n_asked = count_noun(system_contexts.questions.height, "questions")
    asked_line = f"{n_asked} of each; tokens of contexts: {token_counts}"
    return (
        f"Prompts, version {VERSION}\n\n{prompt_lines}\n\nThe first "
        f"question:\n\n{example}\n\n{asked_line}"
    )


def _make_contexts_of_bound(
    bound_name: str, data: Dataset, questions: pl.DataFrame, first_contexts: pl.DataFrame | None
) -> pl.DataFrame:
    """Make a bound; dates stand as they were said, as in what systems return."""
    question_ids = questions.select("query_id")
    if bound_name == "nothing":
        return question_ids.with_columns(text=pl.lit(""), n_tokens=pl.lit(0, pl.Int64))
    if bound_name == "whole history":
        bound_contexts = whole_history_contexts(data)
    else:
        bound_contexts = evidence_contexts(data)
    if bound_name == "another's":
        bound_contexts = swap_contexts_between_questions(
            bound_contexts if first_contexts is None else first_contexts, questions
        )
    return question_ids.join(bound_contexts, on="query_id", how="left", maintain_order="left")


def whole_history_contexts(data: Dataset) -> pl.DataFrame:
    """Give every question all turns of its scope: no part of them can hold more of an answer.

    :returns: ``query_id``, ``text`` and ``n_tokens``.
    """
    question_scopes = data.questions.select("query_id", "scope")
    asked_turns = (
        question_scopes.select("scope")
        .unique(maintain_order=True)
        .join(data.turns, on="scope", maintain_order="left")
    )
    scope_contexts = _join_turn_lines_by_question(
        asked_turns.with_columns(query_id="scope")
    ).rename({"query_id": "scope"})
    return question_scopes.join(scope_contexts, on="scope", how="left", maintain_order="left").drop(
        "scope"
    )


def evidence_contexts(data: Dataset) -> pl.DataFrame:
    """Give every question its evidence alone, as perfect retrieval would; without any, no text."""
    evidence_turns = data.questions.select("query_id", turn_id="evidence").explode("turn_id")
    evidence_texts = _join_turn_lines_by_question(
        evidence_turns.join(data.turns, on="turn_id", maintain_order="left")
    )
    contexts = data.questions.select("query_id").join(
        evidence_texts, on="query_id", how="left", maintain_order="left"
    )
    return contexts.with_columns(pl.col("text").fill_null(""), pl.col("n_tokens").fill_null(0))


def _join_turn_lines_by_question(turns: pl.DataFrame) -> pl.DataFrame:
    """Write turns down for each question, each new day in a line above them."""
    cleaned_text = pl.col("text").map_elements(single_line, return_dtype=pl.String)
    written_turns = write_turns_as_lines(turns, "relevant", dates=False).with_columns(cleaned_text)
    is_new_day = pl.col("head").ne_missing(pl.col("head").shift(1).over("query_id")) & (
        pl.col("head") != ""
    )
    shown_text = pl.when(is_new_day).then(pl.col("head") + "\n").otherwise(pl.lit("")) + pl.col(
        "text"
    )
    return add_token_counts(
        written_turns.group_by("query_id", maintain_order=True).agg(text=shown_text.str.join("\n"))
    )


def swap_contexts_between_questions(
    contexts: pl.DataFrame, questions: pl.DataFrame
) -> pl.DataFrame:
    """Give every question the context of another one, which holds its answer by accident only.

    The other one is of the same scope, or of another where the scope has no second question; half
    the questions away, so that it is no neighbour on the same session.
    """
    distant_question = pl.col("query_id").gather(
        (pl.int_range(pl.len()) + pl.len() // 2) % pl.len()
    )
    is_only_question = pl.len().over("scope") == 1
    swapped_questions = questions.select(
        "query_id",
        other=pl.when(is_only_question)
        .then(distant_question)
        .otherwise(distant_question.over("scope")),
    )
    contexts = contexts.rename({"query_id": "other"})
    return swapped_questions.join(contexts, on="other", how="left", maintain_order="left").drop(
        "other"
    )
