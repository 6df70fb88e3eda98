"""From a ranking, and what an index of sessions knows, to the sources of contexts."""

from __future__ import annotations

from typing import Any

import polars as pl

from memlab.context.items import Sources, known_facts, relevant_messages, summary_lines
from memlab.knowledge.search import search_facts, search_summaries
from memlab.records import Run
from memlab.retrieve import Bench

_FACTS, _SUMMARIES, _ROLLUPS = 20, 3, 2


def gather(
    run: Run,
    bench: Bench,
    *,
    summaries: pl.DataFrame | None = None,
    facts: pl.DataFrame | None = None,
    rollups: pl.DataFrame | None = None,
    recent: pl.DataFrame | None = None,
    dates: bool = True,
) -> Sources:
    """Find for every question of a bench what may stand in its context.

    :param run: a ranking of turns.
    :param summaries: rows of :class:`memlab.records.Summary`; the three most like the question are taken.
    :param facts: the facts of :func:`memlab.knowledge.resolve`, scored at the time of reading by
        :func:`memlab.knowledge.confidence.score`.
    :param rollups: rows of :class:`memlab.records.Node`; of those over several sessions (days, weeks, months, clusters)
        the two most like the question are taken.
    :param recent: what :func:`recent_messages` gave.
    :param dates: see :func:`relevant_messages`.
    :raises DataError: with summaries, facts or rollups, when the bench has no encoder.

    >>> from memlab import context, datasets, retrieve, summarize
    >>> data = datasets.synthetic.generate(turns=60, seed=0)
    >>> bench = retrieve.Bench.of(data, encoder="hashing:64")
    >>> sources = context.gather(retrieve.bm25(bench), bench, summaries=summarize.summarize(data.turns).rows)
    >>> context.assemble(sources).parts["source"].unique(maintain_order=True).to_list()
    ['relevant', 'summaries']
    """
    asked = bench.queries.select("query_id", "scope", "text")
    held: dict[str, Any] = {}
    if summaries is not None:
        found = search_summaries(asked, summaries, encoder=bench.embedder(), k=_SUMMARIES)
        held["summaries"] = summary_lines(found, summaries, most=_SUMMARIES)
    if rollups is not None:
        above = rollups.filter(~pl.col("kind").is_in(["turn", "session"]))
        named = above.with_columns(session_id="node_id", summary="text", participants=pl.lit([], pl.List(pl.String)))
        found = search_summaries(asked, named, encoder=bench.embedder(), k=_ROLLUPS).rename({"session_id": "node_id"})
        held["rollups"] = summary_lines(found, above, by="node_id", most=_ROLLUPS)
    if facts is not None:
        held["facts"] = known_facts(search_facts(asked, facts, encoder=bench.embedder(), k=_FACTS), facts)
    return Sources(recent=recent, relevant=relevant_messages(run, bench, dates=dates), **held)
