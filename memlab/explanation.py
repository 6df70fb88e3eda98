"""Why a question lost its evidence: where each item ranks after every stage, what it shares, what
stands above it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import polars as pl

from memlab.embed.token_vectors import TokenEncoder
from memlab.errors import DataError, check_at_least
from memlab.evaluate.printed_tables import tables_to_markdown
from memlab.pipelines import Pipeline, pipeline
from memlab.question_source_labels import explain_question_source_or_empty
from memlab.records import Dataset
from memlab.retrieve import Bench
from memlab.retrieve.dense import dense_scores
from memlab.terminal_text import escape_markdown, shorten_line
from memlab.text.text_analyser import snippets, tokenize

SNIPPET_CHARS = 90
LINE_CHARS = 100


@dataclass(frozen=True)
class Explanation:
    """Ranks of one question's evidence after every stage of a pipeline.

    :param question: its row of the dataset.
    :param stages: a row a stage and evidence item: ``stage``, ``turn_id``, ``rank`` and ``score``
        after it, null where it is not ranked, ``text`` and ``snippet``, the part of it that shares
        most words with the question. Before the stages stand ``bm25``, ``dense`` and ``late``
        alone, which most put together.
    :param evidence: a row an item: ``turn_id``, ``text``, ``rank`` in the end, ``lost`` (the stage
        after which it was no longer among the first k, null where it is), ``words`` that it shares
        with the question and ``cosine``, of a long turn that of its best passage.
    :param above: what stands among the first k and is no evidence: ``rank``, ``turn_id``,
        ``score``, ``text``, ``words``, ``cosine``.
    """

    question: dict[str, object]
    stages: pl.DataFrame
    evidence: pl.DataFrame
    above: pl.DataFrame

    def __str__(self) -> str:
        rank_texts = self.stages.with_columns(pl.col("rank").cast(pl.String).fill_null("–"))
        ranks_by_stage = rank_texts.pivot(
            "turn_id", index="stage", values="rank", maintain_order=True
        )
        question = escape_markdown(str(self.question["text"]))
        if self.stages.is_empty():
            return question
        answer = escape_markdown(str(self.question["answer"]))
        tables_text = tables_to_markdown(
            {
                "Rank by each score alone, then after each stage": ranks_by_stage,
                "Evidence": _shorten_text_column(self.evidence),
                "Above it": _shorten_text_column(self.above),
            }
        )
        heading = f"{question} → {answer}"
        source_text = explain_question_source_or_empty(self.question.get("source"))
        if source_text:
            heading += f" ({source_text})"
        return f"{heading}\n\n{tables_text}"

    def _repr_markdown_(self) -> str:
        return str(self)


def _shorten_text_column(rows_with_text: pl.DataFrame) -> pl.DataFrame:
    shorten = partial(shorten_line, max_length=LINE_CHARS)
    return rows_with_text.with_columns(pl.col("text").map_elements(shorten, return_dtype=pl.String))


def explain(
    query_id: str, stages: str | Pipeline, bench: Bench, data: Dataset, *, k: int = 10
) -> Explanation:
    """Explain one question: the rank of each evidence item after every stage, and what ranks above.

    :param bench: of the dataset.
    :param k: how many first turns count as found.
    :raises DataError: when there is no such question, or it has no evidence.

    >>> import memlab
    >>> from memlab.explanation import explain
    >>> data = memlab.sample(turns=200)
    >>> bench = memlab.Bench.of(data, encoder="hashing")
    >>> asked = data.questions.filter(data.questions["evidence"].list.len() > 0)
    >>> why = explain(asked["query_id"][0], "hybrid | mmr", bench, data)
    >>> why.stages["stage"].unique(maintain_order=True).to_list()
    ['bm25', 'dense', 'hybrid', '… | mmr']
    """
    if query_id not in bench.queries["query_id"]:
        raise DataError(
            f"no question {query_id!r}; the ids look like "
            f"{bench.queries['query_id'].head(3).to_list()}"
        )
    question = data.questions.row(by_predicate=pl.col("query_id") == query_id, named=True)
    evidence_items = pl.DataFrame(
        {"turn_id": list(dict.fromkeys(question["evidence"]))}, schema={"turn_id": pl.String}
    )
    if evidence_items.is_empty():
        raise DataError(
            f"question {query_id!r} has no evidence among the turns; there is nothing to follow"
        )
    check_at_least(1, k=k)
    question_bench = _narrow_bench_to_question(bench, question["scope"], query_id)
    followed_pipeline = pipeline(stages)
    run_by_stage: dict[str, pl.DataFrame] = {}
    ranks_by_stage: dict[str, pl.DataFrame] = {}
    for stage_name, traced_pipeline in _simple_and_partial_pipelines_by_name(
        followed_pipeline, bench
    ).items():
        run = traced_pipeline.run(question_bench).frame.rename({"doc_id": "turn_id"})
        run_by_stage[stage_name] = run
        ranks_by_stage[stage_name] = _left_join_on_turn_id(evidence_items, run)

    own_stages = list(run_by_stage)[-len(followed_pipeline.stages) :]
    last_stage = own_stages[-1]
    losing_stages = []
    for item_number in range(evidence_items.height):
        own_ranks = [ranks_by_stage[stage]["rank"][item_number] for stage in own_stages]
        losing_stages.append(_stage_that_lost_item(own_ranks, own_stages, k))

    matched_turns = _text_words_and_cosine_of_turns(question_bench, question["text"])
    named_items = _add_text_and_snippet(
        evidence_items, matched_turns, question["text"], bench.language
    )
    stage_rows = []
    for stage_name, ranked_items in ranks_by_stage.items():
        rank_rows = ranked_items.select(
            pl.lit(stage_name).alias("stage"), "turn_id", "rank", "score"
        )
        stage_rows.append(_left_join_on_turn_id(rank_rows, named_items))
    evidence = ranks_by_stage[last_stage].with_columns(
        lost=pl.Series(losing_stages, dtype=pl.String)
    )
    evidence = _left_join_on_turn_id(evidence, matched_turns)
    first_turns = run_by_stage[last_stage].filter(pl.col("rank") <= k)
    turns_above = first_turns.join(evidence_items, on="turn_id", how="anti", maintain_order="left")
    turns_above = _left_join_on_turn_id(turns_above, matched_turns)
    return Explanation(
        question,
        pl.concat(stage_rows),
        evidence.select("turn_id", "text", "rank", "lost", "words", "cosine"),
        turns_above.select("rank", "turn_id", "score", "text", "words", "cosine"),
    )


def _left_join_on_turn_id(rows: pl.DataFrame, turn_rows: pl.DataFrame) -> pl.DataFrame:
    return rows.join(turn_rows, on="turn_id", how="left", maintain_order="left")


def make_empty_explanation() -> Explanation:
    """Give the explanation of no question: no rows, and a sentence for its text."""
    text_columns = dict.fromkeys(
        ("turn_id", "text", "words", "stage", "snippet", "lost"), pl.String()
    )
    columns: dict[str, Any] = {**text_columns, "rank": pl.Int64(), "score": pl.Float64()}
    empty_rows = pl.DataFrame(schema=columns | {"cosine": pl.Float64()})
    stages = empty_rows.select("stage", "turn_id", "rank", "score", "text", "snippet")
    evidence = empty_rows.select("turn_id", "text", "rank", "lost", "words", "cosine")
    turns_above = empty_rows.select("rank", "turn_id", "score", "text", "words", "cosine")
    question: dict[str, object] = {"text": "No question with evidence is left to explain."}
    return Explanation(question | {"answer": None}, stages, evidence, turns_above)


def _narrow_bench_to_question(bench: Bench, scope: str, query_id: str) -> Bench:
    """Keep one question and its scope, so that no tokens of another are encoded."""
    turns = bench.turns.filter(scope=scope)
    documents = bench.documents("turn")
    turn_vectors = (
        bench.turn_vectors
        if bench.turn_vectors is None
        else bench.turn_vectors[documents.at(turns["turn_id"])]
    )
    question_rows = bench.queries.filter(query_id=query_id)
    sessions = bench.sessions.filter(scope=scope)
    return bench.with_changes(
        turns=turns, sessions=sessions, queries=question_rows, vectors=turn_vectors
    )


def _simple_and_partial_pipelines_by_name(
    full_pipeline: Pipeline, bench: Bench
) -> dict[str, Pipeline]:
    """Give the simple rankings, and the pipeline up to each of its stages, by the names that they
    have in tables.
    """
    has_tokens = isinstance(bench.encoder, TokenEncoder)
    simple_names = [
        "bm25",
        *(["dense"] if bench.encoder else []),
        *(["late"] if has_tokens else []),
    ]
    pipeline_by_name = {
        name: pipeline(name) for name in simple_names if str(full_pipeline.stages[0]) != name
    }
    for stage_number, read_stage in enumerate(full_pipeline.stages, 1):
        pipeline_by_name[str(read_stage) if stage_number == 1 else f"… | {read_stage}"] = Pipeline(
            full_pipeline.stages[:stage_number]
        )
    return pipeline_by_name


def _add_text_and_snippet(
    evidence_items: pl.DataFrame, turns: pl.DataFrame, question: str, language: str
) -> pl.DataFrame:
    """Give the text of each item, and the part of it that shares most words with the question."""
    turn_texts = evidence_items.join(
        turns.select("turn_id", "text"), on="turn_id", maintain_order="left"
    )
    snippet_texts = snippets(
        turn_texts["text"].to_list(), question, length=SNIPPET_CHARS, language=language
    )
    return turn_texts.with_columns(snippet=pl.Series(snippet_texts, dtype=pl.String))


def _stage_that_lost_item(
    ranks_after_stages: list[int | None], stage_names: list[str], k: int
) -> str | None:
    """Name the stage after which an item was no longer among the first k, the last where it came
    back between.
    """
    is_within = [rank is not None and rank <= k for rank in ranks_after_stages]
    if is_within[-1]:
        return None
    return stage_names[
        max((stage_number for stage_number, inside in enumerate(is_within) if inside), default=-1)
        + 1
    ]


def _text_words_and_cosine_of_turns(question_bench: Bench, question_text: str) -> pl.DataFrame:
    """Give for each turn of the question's scope its text, the words that it shares, and its
    cosine.
    """
    documents = question_bench.documents("turn")
    ((_, turn_span),) = question_bench.by_scope("turn")
    turn_texts = documents.texts[turn_span]
    stems, *words_of_turns = tokenize(
        [question_text, *turn_texts], language=question_bench.language
    )
    word_by_stem = dict(
        zip(
            stems,
            tokenize([question_text], language=question_bench.language, stem=False)[0],
            strict=True,
        )
    )
    shared_words = [
        ", ".join(word for stem, word in word_by_stem.items() if stem in turn_words)
        for turn_words in words_of_turns
    ]
    cosines = (
        None
        if question_bench.query_vectors is None
        else next(turn_words[0] for _, _, turn_words in dense_scores(question_bench, level="turn"))
    )
    column_types = {
        **dict.fromkeys(("turn_id", "text", "words"), pl.String()),
        "cosine": pl.Float64(),
    }
    return pl.DataFrame(
        {
            "turn_id": documents.ids[turn_span],
            "text": turn_texts,
            "words": shared_words,
            "cosine": cosines,
        },
        schema_overrides=column_types,
    )
