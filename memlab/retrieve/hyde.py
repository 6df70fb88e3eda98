"""Hypothetical documents, only where the first results are weak."""

from __future__ import annotations

from dataclasses import replace

import polars as pl

from memlab.errors import DataError
from memlab.records import Run
from memlab.registry import stage
from memlab.retrieve.bench import Bench
from memlab.retrieve.expansion import expand
from memlab.retrieve.fusion import combsum

N_SIGNALS = 4


def weakness(run: Run, bench: Bench, *, depth: int = 3) -> pl.DataFrame:
    """Say how little the first results of each question stand out from the rest of the scope.

    A question that the memory can answer has a few turns that score far above all others. The value is minus the mean
    :func:`memlab.retrieve.combsum` score of the run's first turns, over its four signals: −3 says that they lie three
    standard deviations above the scope's average turn, 0 that they are no better than any. So it means the same after
    any stage and in any scope, whatever the run's own scores are; a threshold on the cosine would not.

    :param run: a ranking of turns.
    :param depth: how many first turns are looked at.
    :returns: ``query_id`` and ``value``, larger for a weaker result, in the run's order of questions.
    :raises DataError: when depth is not positive, the run ranks sessions, or the bench has no embeddings.

    Source: weighted information gain, Zhou and Croft, Query Performance Prediction in Web Search Environments (SIGIR
    2007), with standardised scores.

    >>> from memlab import datasets, retrieve
    >>> from memlab.retrieve.hyde import weakness
    >>> bench = retrieve.Bench.of(datasets.synthetic.generate(turns=60, seed=0), encoder="hashing")
    >>> weakness(retrieve.bm25(bench), bench)["value"].max() < 0
    True
    """
    if depth < 1:
        raise DataError(f"depth is {depth}; look at one turn at least")
    if run.level != "turn":
        raise DataError("the run ranks sessions; weakness is measured on a ranking of turns")
    scored = combsum(bench).frame.select("query_id", "doc_id", signal="score")
    lowest = scored.group_by("query_id").agg(lowest=pl.col("signal").min())
    return (
        run.top(depth)
        .frame.join(scored, on=["query_id", "doc_id"], how="left", maintain_order="left")
        .join(lowest, on="query_id", how="left", maintain_order="left")
        .group_by("query_id", maintain_order=True)
        .agg(value=-pl.coalesce("signal", "lowest").mean() / N_SIGNALS)
    )


@stage
def hyde(
    run: Run,
    bench: Bench,
    *,
    service: str | None = None,
    threshold: float = -3.0,
    weight: float = 0.5,
    guard: bool = True,
    k: int = 200,
) -> Run:
    """Let a language model write a turn that would answer the question, and search for turns like it, if the first
    results are weak.

    Where they are strong, a made-up answer can only lead away from them, and asking the model costs time. There is no
    offline form: questions turned into statements by rules found less than the questions themselves.

    :param service: name of a service of the settings, ``[llm.services.NAME]``; may be left out where there is one.
    :param threshold: the model is asked for questions whose :func:`weakness` is larger.
    :param weight: of the list of the hypothetical turn; the run's own list weighs 1.
    :param guard: protect the first three places of the run, see :func:`memlab.retrieve.rrf`.
    :raises DataError: without an encoder, or for a negative weight.
    :raises ModelError: when the model is needed, and no such service is set or it fails.

    Source: Gao et al., Precise Zero-Shot Dense Retrieval without Relevance Labels (ACL 2023).

    >>> from memlab import datasets, retrieve
    >>> from memlab.retrieve.hyde import hyde
    >>> bench = retrieve.Bench.of(datasets.synthetic.generate(turns=60, seed=0), encoder="hashing")
    >>> plain = retrieve.bm25(bench)
    >>> hyde(plain, bench, threshold=0.0).frame["doc_id"].equals(plain.frame["doc_id"])  # none is so weak
    True
    """
    weak = weakness(run, bench).filter(pl.col("value") > threshold)
    asked = run.frame.join(weak, on="query_id", how="semi", maintain_order="left")
    if not asked.height:
        return run
    found = expand(
        replace(run, frame=asked), bench, service=service, kinds=("hyde",), weight=weight, guard=guard, k=k
    ).frame
    kept = run.frame.join(weak, on="query_id", how="anti", maintain_order="left").filter(pl.col("rank") <= k)
    place = run.frame.select("query_id").unique(maintain_order=True).with_row_index("place")
    both = pl.concat([kept, found]).join(place, on="query_id", how="left").sort("place", "rank").drop("place")
    return bench.show(replace(run, frame=both))
