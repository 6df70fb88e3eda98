"""Why a question lost its evidence: where each item ranks after every stage, what it shares, what
stands above it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import polars as pl

from memlab.embed.token_vectors import TokenEncoder
from memlab.errors import DataError, check_at_least
from memlab.evaluate.tables import tables_to_markdown
from memlab.pipelines import Pipeline, pipeline
from memlab.records import Dataset
from memlab.retrieve import Bench
from memlab.retrieve.dense import dense_scores
from memlab.terminal import escape_markdown, shorten_line
from memlab.text.analysis import snippets, tokenize

SNIPPET_CHARS = 90


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
        ranks = self.stages.with_columns(pl.col("rank").cast(pl.String).fill_null("–"))
        wide = ranks.pivot("turn_id", index="stage", values="rank", maintain_order=True)
        cut = pl.col("text").map_elements(
            lambda text: shorten_line(text, 100), return_dtype=pl.String
        )
        parts = {
            "Evidence": self.evidence.with_columns(cut),
            "Above it": self.above.with_columns(cut),
        }
        if self.stages.is_empty():
            return escape_markdown(str(self.question["text"]))
        tables = tables_to_markdown({"Rank after each stage": wide, **parts})
        question, answer = (
            escape_markdown(str(self.question[name])) for name in ("text", "answer")
        )
        return f"{question} → {answer}\n\n{tables}"

    def _repr_markdown_(self) -> str:
        return str(self)


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
    items = pl.DataFrame(
        {"turn_id": list(dict.fromkeys(question["evidence"]))}, schema={"turn_id": pl.String}
    )
    if items.is_empty():
        raise DataError(
            f"question {query_id!r} has no evidence among the turns; there is nothing to follow"
        )
    check_at_least(1, k=k)
    alone, read = _bench_of_question(bench, question["scope"], query_id), pipeline(stages)
    traced = _traced_pipelines(read, bench)
    runs = {
        name: each.run(alone).frame.rename({"doc_id": "turn_id"}) for name, each in traced.items()
    }
    ranks = {
        name: items.join(run, on="turn_id", how="left", maintain_order="left")
        for name, run in runs.items()
    }
    own = list(runs)[-len(read.stages) :]
    lost = [
        _losing_stage([ranks[stage]["rank"][n] for stage in own], own, k)
        for n in range(items.height)
    ]
    evidence = ranks[own[-1]].with_columns(lost=pl.Series(lost, dtype=pl.String))
    above = (
        runs[own[-1]]
        .filter(pl.col("rank") <= k)
        .join(items, on="turn_id", how="anti", maintain_order="left")
    )
    matched = _match_turns(alone, question["text"])
    named = _with_snippets(items, matched, question["text"], bench.language)
    after = [
        each.select(pl.lit(name).alias("stage"), "turn_id", "rank", "score").join(
            named, on="turn_id", how="left", maintain_order="left"
        )
        for name, each in ranks.items()
    ]
    evidence, above = (
        each.join(matched, on="turn_id", how="left", maintain_order="left")
        for each in (evidence, above)
    )
    evidence = evidence.select("turn_id", "text", "rank", "lost", "words", "cosine")
    above = above.select("rank", "turn_id", "score", "text", "words", "cosine")
    return Explanation(question, pl.concat(after), evidence, above)


def explain_nothing() -> Explanation:
    """Give the explanation of no question: no rows, and a sentence for its text."""
    texts = dict.fromkeys(("turn_id", "text", "words", "stage", "snippet", "lost"), pl.String())
    columns: dict[str, Any] = {**texts, "rank": pl.Int64(), "score": pl.Float64()}
    nothing = pl.DataFrame(schema=columns | {"cosine": pl.Float64()})
    stages = nothing.select("stage", "turn_id", "rank", "score", "text", "snippet")
    evidence = nothing.select("turn_id", "text", "rank", "lost", "words", "cosine")
    above = nothing.select("rank", "turn_id", "score", "text", "words", "cosine")
    question: dict[str, object] = {"text": "No question with evidence is left to explain."}
    return Explanation(question | {"answer": None}, stages, evidence, above)


def _bench_of_question(bench: Bench, scope: str, query_id: str) -> Bench:
    """Keep one question and its scope, so that no tokens of another are encoded."""
    turns, documents = bench.turns.filter(scope=scope), bench.documents("turn")
    vectors = (
        bench.turn_vectors
        if bench.turn_vectors is None
        else bench.turn_vectors[documents.at(turns["turn_id"])]
    )
    asked, sessions = bench.queries.filter(query_id=query_id), bench.sessions.filter(scope=scope)
    return bench.but(turns=turns, sessions=sessions, queries=asked, vectors=vectors)


def _traced_pipelines(read: Pipeline, bench: Bench) -> dict[str, Pipeline]:
    """Give the simple rankings, and the pipeline up to each of its stages, by the names that they
    have in tables.
    """
    tokens = isinstance(bench.encoder, TokenEncoder)
    simple = ["bm25", *(["dense"] if bench.encoder else []), *(["late"] if tokens else [])]
    steps = {name: pipeline(name) for name in simple if str(read.stages[0]) != name}
    for n, each in enumerate(read.stages, 1):
        steps[str(each) if n == 1 else f"… | {each}"] = Pipeline(read.stages[:n])
    return steps


def _with_snippets(
    items: pl.DataFrame, turns: pl.DataFrame, question: str, language: str
) -> pl.DataFrame:
    """Give the text of each item, and the part of it that shares most words with the question."""
    texts = items.join(turns.select("turn_id", "text"), on="turn_id", maintain_order="left")
    cut = snippets(texts["text"].to_list(), question, length=SNIPPET_CHARS, language=language)
    return texts.with_columns(snippet=pl.Series(cut, dtype=pl.String))


def _losing_stage(ranks: list[int | None], stages: list[str], k: int) -> str | None:
    """Name the stage after which an item was no longer among the first k, the last where it came
    back between.
    """
    within = [rank is not None and rank <= k for rank in ranks]
    if within[-1]:
        return None
    return stages[max((n for n, inside in enumerate(within) if inside), default=-1) + 1]


def _match_turns(bench: Bench, question: str) -> pl.DataFrame:
    """Give for each turn of the question's scope its text, the words that it shares, and its
    cosine.
    """
    documents = bench.documents("turn")
    ((_, span),) = bench.by_scope("turn")
    texts = documents.texts[span]
    stems, *words = tokenize([question, *texts], language=bench.language)
    plain = dict(
        zip(stems, tokenize([question], language=bench.language, stem=False)[0], strict=True)
    )
    shared = [", ".join(word for stem, word in plain.items() if stem in each) for each in words]
    cosines = (
        None
        if bench.query_vectors is None
        else next(each[0] for _, _, each in dense_scores(bench, level="turn"))
    )
    schema = {**dict.fromkeys(("turn_id", "text", "words"), pl.String()), "cosine": pl.Float64()}
    return pl.DataFrame(
        {"turn_id": documents.ids[span], "text": texts, "words": shared, "cosine": cosines},
        schema_overrides=schema,
    )
