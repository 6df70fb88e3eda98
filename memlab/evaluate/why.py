"""Why a question lost its evidence: where each piece ranks after every stage, what matches it, what stands above it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from memlab.embed.tokens import TokenEncoder, token_cosines
from memlab.errors import DataError
from memlab.evaluate.printing import titled
from memlab.language.analysis import tokenize
from memlab.pipelines import Pipeline, pipeline
from memlab.records import Dataset
from memlab.rerank.ablation import ablate
from memlab.retrieve import Bench
from memlab.retrieve.dense import dense_scores
from memlab.retrieve.late import query_tokens, scope_tokens
from memlab.terminal import short

_PAIRS = 5


@dataclass(frozen=True)
class Explanation:
    """One question's way through a pipeline.

    :param question: its row of the dataset.
    :param stages: a row a stage and piece of evidence: ``stage``, ``turn_id``, ``rank`` and ``score`` after it, null
        where it is not ranked. Before the stages stand ``bm25``, ``dense`` and ``late`` alone, which most put together.
    :param evidence: a row a piece: ``turn_id``, ``text``, ``rank`` in the end, ``lost`` (the stage after which it was
        no longer among the first k, null where it is), ``words`` that it shares with the question and ``cosine``,
        of a long turn that of its best passage.
    :param above: what stands among the first k and is no evidence: ``rank``, ``turn_id``, ``score``, ``text``,
        ``words``, ``cosine``.
    :param tokens: the token pairs that late interaction weighs most for each piece of evidence: ``turn_id``, ``asked``,
        ``matched``, ``cosine`` and ``weight``; no row where the encoder embeds no tokens.
    :param features: where the last stage is ``learned``, the rank of each piece with one group of features silent:
        ``turn_id``, ``rank``, ``group``, ``without``, the largest change first (:func:`memlab.rerank.ablate`).
    """

    question: dict[str, object]
    stages: pl.DataFrame
    evidence: pl.DataFrame
    above: pl.DataFrame
    tokens: pl.DataFrame
    features: pl.DataFrame

    def __str__(self) -> str:
        ranks = self.stages.with_columns(pl.col("rank").cast(pl.String).fill_null("–"))
        wide = ranks.pivot("turn_id", index="stage", values="rank", maintain_order=True)
        parts = {"Rank after each stage": wide, "Evidence": self.evidence, "Above it": self.above}
        parts |= {"Best token pairs": self.tokens} if self.tokens.height else {}
        parts |= {"Rank with a group of features silent": self.features} if self.features.height else {}
        tables = titled({title: _cut(table) for title, table in parts.items()})
        return f"{self.question['text']} → {self.question['answer']}\n\n{tables}"

    def _repr_markdown_(self) -> str:
        return str(self)


def _cut(table: pl.DataFrame) -> pl.DataFrame:
    if "text" not in table.columns:
        return table
    return table.with_columns(pl.col("text").map_elements(lambda text: short(text, 100), return_dtype=pl.String))


def explain(query_id: str, stages: str | Pipeline, bench: Bench, data: Dataset, *, k: int = 10) -> Explanation:
    """Follow a question's evidence through a pipeline, stage by stage.

    :param bench: of the dataset.
    :param k: how many first turns count as found.
    :raises DataError: when there is no such question, or it has no evidence.

    >>> import memlab
    >>> from memlab.evaluate import explain
    >>> data = memlab.sample(turns=200)
    >>> bench = memlab.Bench.of(data, encoder="hashing")
    >>> asked = data.questions.filter(data.questions["evidence"].list.len() > 0)
    >>> why = explain(asked["query_id"][0], "hybrid | mmr", bench, data)
    >>> why.stages["stage"].unique(maintain_order=True).to_list()
    ['bm25', 'dense', 'hybrid', '… | mmr']
    """
    rows = np.flatnonzero((bench.queries["query_id"] == query_id).to_numpy())
    if not len(rows):
        raise DataError(f"no question {query_id!r}; the ids look like {bench.queries['query_id'].head(3).to_list()}")
    question = data.questions.row(by_predicate=pl.col("query_id") == query_id, named=True)
    wanted = list(dict.fromkeys(question["evidence"]))
    if not wanted:
        raise DataError(f"question {query_id!r} has no evidence among the turns; there is nothing to follow")
    alone, read = bench.with_rows(rows), pipeline(stages)
    tokens = isinstance(getattr(bench.encoder, "encoder", bench.encoder), TokenEncoder)
    simple = ["bm25", *(["dense"] if bench.encoder else []), *(["late"] if tokens else [])]
    steps = [(name, pipeline(name)) for name in simple if str(read.stages[0]) != name]
    for n, each in enumerate(read.stages, 1):
        steps.append((str(each) if n == 1 else f"… | {each}", Pipeline(read.stages[:n])))
    runs = {name: each.run(alone).frame for name, each in steps}
    pieces = pl.DataFrame({"turn_id": wanted})
    ranks = [
        pieces.join(
            run.select(turn_id="doc_id", rank="rank", score="score"), on="turn_id", how="left", maintain_order="left"
        )
        .with_columns(stage=pl.lit(name))
        .select("stage", "turn_id", "rank", "score")
        for name, run in runs.items()
    ]
    after = pl.concat(ranks)
    own = list(runs)[-len(read.stages) :]
    final = runs[own[-1]]
    lost = [_lost(after.filter(pl.col("turn_id") == turn), own, k) for turn in wanted]
    matched = _matched(alone, question["text"])
    evidence = pieces.join(matched, on="turn_id", how="left", maintain_order="left")
    evidence = evidence.join(ranks[-1].select("turn_id", "rank"), on="turn_id", maintain_order="left")
    others = final.filter((pl.col("rank") <= k) & ~pl.col("doc_id").is_in(wanted)).rename({"doc_id": "turn_id"})
    return Explanation(
        question,
        after,
        evidence.with_columns(lost=pl.Series(lost, dtype=pl.String)).select(
            "turn_id", "text", "rank", "lost", "words", "cosine"
        ),
        others.join(matched, on="turn_id", how="left", maintain_order="left").select(
            "rank", "turn_id", "score", "text", "words", "cosine"
        ),
        _token_pairs(alone, wanted) if tokens else pl.DataFrame(),
        _moved(read, alone, wanted),
    )


def _token_pairs(bench: Bench, turns: list[str]) -> pl.DataFrame:
    """Give the pairs that a late score is mostly made of, for each turn."""
    documents, encoder = bench.documents("turn"), getattr(bench.encoder, "encoder", bench.encoder)
    ((_, span),) = bench.by_scope("turn")
    asked, scope = query_tokens(bench), scope_tokens(bench, span)
    cosines, weights = token_cosines(asked.vectors, scope.texts.vectors), scope.weights(asked)
    ends, rows = np.append(scope.start, len(scope.inverse)), []
    name = getattr(encoder, "token_texts", lambda ids: [str(number) for number in ids])
    for turn, place in zip(turns, documents.at(pl.Series(turns)) - span.start, strict=True):
        texts = [slice(*scope.texts.start[text : text + 2]) for text in scope.inverse[ends[place] : ends[place + 1]]]
        read = [text for text in texts if text.stop > text.start]
        if not read:
            continue
        # Of a long turn the passage that matches best, as late interaction scores it.
        text = max(read, key=lambda text: float(weights @ cosines[:, text].max(1)))
        best, value = cosines[:, text].argmax(1) + text.start, cosines[:, text].max(1)
        top = np.argsort(-value * weights, kind="stable")[:_PAIRS]
        words = name(asked.ids[top]), name(scope.texts.ids[best[top]])
        rows += list(zip([turn] * len(top), *words, value[top].tolist(), weights[top].tolist(), strict=True))
    return pl.DataFrame(rows, schema=["turn_id", "asked", "matched", "cosine", "weight"], orient="row")


def _moved(stages: Pipeline, bench: Bench, turns: list[str]) -> pl.DataFrame:
    """Give what moved a learned score, where the last stage is one."""
    *before, last = stages.stages
    if last.name != "learned":
        return pl.DataFrame()
    candidates = {name: value for name, value in last.parameters.items() if name == "candidates"}
    ranks = ablate(Pipeline(tuple(before)).run(bench), bench, model=last.parameters.get("model", ""), **candidates)
    own = ranks.filter(pl.col("doc_id").is_in(turns) & (pl.col("rank") != pl.col("without")))
    change = (pl.col("without").cast(pl.Int64) - pl.col("rank").cast(pl.Int64)).abs()
    return own.sort(change, descending=True, maintain_order=True).select("rank", "group", "without", turn_id="doc_id")


def _lost(ranks: pl.DataFrame, stages: list[str], k: int) -> str | None:
    """Name the stage after which a piece was no longer among the first k, the last where it came back between."""
    rank = dict(ranks.select("stage", "rank").iter_rows())
    within = [rank[stage] is not None and rank[stage] <= k for stage in stages]
    if within[-1]:
        return None
    return stages[max((n for n, inside in enumerate(within) if inside), default=-1) + 1]


def _matched(bench: Bench, question: str) -> pl.DataFrame:
    """Give for each turn of the question's scope its text, the words that it shares, and its cosine."""
    documents = bench.documents("turn")
    ((_, span),) = bench.by_scope("turn")
    texts = documents.texts[span]
    asked, *words = tokenize([question, *texts], language=bench.language)
    shared = [", ".join(word for word in dict.fromkeys(asked) if word in each) for each in words]
    schema = dict.fromkeys(("turn_id", "text", "words"), pl.String())
    table = pl.DataFrame({"turn_id": documents.ids[span], "text": texts, "words": shared}, schema_overrides=schema)
    if bench.query_vectors is None:
        return table.with_columns(cosine=pl.lit(None, pl.Float64))
    ((_, _, cosines),) = dense_scores(bench, level="turn")
    return table.with_columns(cosine=pl.Series(cosines[0], dtype=pl.Float64))
