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
from memlab.evaluate.tables import tables_to_markdown
from memlab.pipelines import Pipeline, pipeline
from memlab.records import Dataset
from memlab.retrieve import Bench
from memlab.retrieve.dense import dense_scores
from memlab.source_labels import explain_question
from memlab.terminal import escape_markdown, shorten_line
from memlab.text.analysis import snippets, tokenize

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
        ranks = self.stages.with_columns(pl.col("rank").cast(pl.String).fill_null("–"))
        wide = ranks.pivot("turn_id", index="stage", values="rank", maintain_order=True)
        question = escape_markdown(str(self.question["text"]))
        if self.stages.is_empty():
            return question
        answer = escape_markdown(str(self.question["answer"]))
        tables = tables_to_markdown(
            {
                "Rank after each stage": wide,
                "Evidence": _shorten_texts(self.evidence),
                "Above it": _shorten_texts(self.above),
            }
        )
        head = f"{question} → {answer}"
        said = explain_question(self.question.get("source"))
        if said:
            head += f" ({said})"
        return f"{head}\n\n{tables}"

    def _repr_markdown_(self) -> str:
        return str(self)


def _shorten_texts(rows: pl.DataFrame) -> pl.DataFrame:
    shorten = partial(shorten_line, most=LINE_CHARS)
    return rows.with_columns(pl.col("text").map_elements(shorten, return_dtype=pl.String))


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
    alone = _bench_of_question(bench, question["scope"], query_id)
    followed = pipeline(stages)
    runs: dict[str, pl.DataFrame] = {}
    ranks: dict[str, pl.DataFrame] = {}
    for name, traced in _traced_pipelines(followed, bench).items():
        run = traced.run(alone).frame.rename({"doc_id": "turn_id"})
        runs[name] = run
        ranks[name] = _join_turns(items, run)

    own_stages = list(runs)[-len(followed.stages) :]
    last = own_stages[-1]
    lost = []
    for place in range(items.height):
        own_ranks = [ranks[stage]["rank"][place] for stage in own_stages]
        lost.append(_losing_stage(own_ranks, own_stages, k))

    matched = _match_turns(alone, question["text"])
    named = _with_snippets(items, matched, question["text"], bench.language)
    after = []
    for name, ranked in ranks.items():
        rows = ranked.select(pl.lit(name).alias("stage"), "turn_id", "rank", "score")
        after.append(_join_turns(rows, named))
    evidence = ranks[last].with_columns(lost=pl.Series(lost, dtype=pl.String))
    evidence = _join_turns(evidence, matched)
    first_turns = runs[last].filter(pl.col("rank") <= k)
    above = first_turns.join(items, on="turn_id", how="anti", maintain_order="left")
    above = _join_turns(above, matched)
    return Explanation(
        question,
        pl.concat(after),
        evidence.select("turn_id", "text", "rank", "lost", "words", "cosine"),
        above.select("rank", "turn_id", "score", "text", "words", "cosine"),
    )


def _join_turns(rows: pl.DataFrame, turns: pl.DataFrame) -> pl.DataFrame:
    return rows.join(turns, on="turn_id", how="left", maintain_order="left")


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
