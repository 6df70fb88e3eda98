"""Everything that is known of a memory, in one context."""

from __future__ import annotations

from datetime import timedelta

import polars as pl

from memlab import datasets
from memlab.context import Budget, assemble, gather, recent_messages
from memlab.knowledge import confidence, resolve
from memlab.knowledge.extraction import extract
from memlab.retrieve import Bench, bm25
from memlab.summaries import rollup, summarize


def test_all_sources_stand_in_one_context() -> None:
    talk = datasets.synthetic.generate(turns=120, seed=0)
    bench = Bench.of(talk, encoder="hashing:64", progress=False)
    now = talk.turns["timestamp"].max() + timedelta(days=1)
    facts = confidence.score(resolve(extract(talk.turns).facts).facts, now=now)
    query = bench.queries["query_id"][1]  # of the first, the other sources hold each line of the rollups
    last = talk.turns.filter(scope=bench.queries["scope"][0]).tail(3)
    recent = recent_messages(last.with_columns(query_id=pl.lit(query)))
    summaries, nodes = summarize(talk.turns), rollup(talk.turns)
    sources = gather(bm25(bench), bench, summaries=summaries, facts=facts, rollups=nodes, recent=recent)
    made = assemble(sources, query_ids=bench.queries["query_id"].to_list(), budget=Budget())
    assert made.texts["n_tokens"].max() <= 1_100
    mine = made.parts.filter(query_id=query)
    assert set(mine["source"]) == {"recent", "relevant", "summaries", "facts", "rollups"}
    scope = dict(talk.questions.select("query_id", "scope").iter_rows())
    of_session = dict(summaries.select("session_id", "scope").iter_rows())
    of_node = dict(nodes.select("node_id", "scope").iter_rows())
    of_fact = dict(facts.select("fact_id", "scope").iter_rows())
    for name, known in (("summaries", of_session), ("rollups", of_node), ("facts", of_fact)):
        rows = made.parts.filter(source=name)
        assert rows.height
        assert all(known[ref] == scope[asked] for asked, ref in rows.select("query_id", "ref").iter_rows())
    # Rollups say what happened over days, not what single sessions or turns are.
    kinds = dict(nodes.select("node_id", "kind").iter_rows())
    assert not {kinds[ref] for ref in made.parts.filter(source="rollups")["ref"]} & {"turn", "session"}
