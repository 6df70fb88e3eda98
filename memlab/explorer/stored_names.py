"""Names of the clusters of a map in the store, so that a model that gave one is not asked again.

A name is a row of the table of summaries, of the kind ``map``: what is deleted or edited below it
takes it away, as it does sentences of summaries.
"""

from __future__ import annotations

import polars as pl

from memlab import llm
from memlab.cluster.model_names import TASK, TERMS, VERSION, ClusterName, NamedClusters
from memlab.llm.spending import is_estimating
from memlab.retrieve import Bench
from memlab.summaries.stored_trees import hashed_turns
from memlab.summaries.summary_rows import node_frame, writer_model, writer_name

KIND = "map"


def stored_names(
    bench: Bench, scope: str, service: str | llm.Service | None
) -> dict[str, ClusterName]:
    """Read the names that the model of a service gave, by the keys of their requests.

    None of what is recorded: that is read from the recordings.
    """
    model = resolved(service)
    if not isinstance(model, llm.Service) or not _is_stored(bench):
        return {}
    rows = _rows_of(bench, scope, model)
    same_model = (pl.col("model") == model.model) & ~pl.col("stale")
    found = rows.filter(same_model).select("node_id", "topics", "text")
    return {
        key: ClusterName(label=topics[0], sentence=text) for key, topics, text in found.iter_rows()
    }


def keep_names(
    bench: Bench,
    scope: str,
    named: NamedClusters,
    turns: pl.DataFrame,
    service: str | llm.Service | None,
) -> None:
    """Keep the names that a model gave in the store of a bench, where it has the bench's turns.

    They replace what the same service called these turns before. A store that cannot be written
    stays as it is, with a warning.

    :param turns: of the scope: ``turn_id``, ``timestamp`` and ``label``.
    """
    by_model = named.frame.filter(pl.col("writer") != TERMS)
    store = bench.store
    if store is None or store.read_only or is_estimating() or by_model.is_empty():
        return
    if not _is_stored(bench):
        return
    model = resolved(service)
    there = _rows_of(bench, scope, model).filter(~pl.col("stale"))
    if set(by_model["key"]) <= set(there["node_id"]):
        return
    rows = []
    for row in by_model.iter_rows(named=True):
        own = turns.filter(label=row["label"])
        ids = own["turn_id"].to_list()
        rows.append(
            {
                "node_id": row["key"],
                "scope": scope,
                "level": 1,
                "kind": KIND,
                "text": row["sentence"],
                "sentences": [row["sentence"]],
                "evidence": [ids],
                "children": ids,
                "turns": ids,
                "start": own["timestamp"].min(),
                "end": own["timestamp"].max(),
                "method": KIND,
                "service": writer_name(model),
                "topics": [row["given"]],
                "dropped": 0,
                "reason": "",
                "model": writer_model(model),
                "version": f"{TASK} {VERSION}",
                "made_of": row["key"],
            }
        )
    nodes = node_frame(rows, bench.turns, bench.language)
    hashed = hashed_turns(bench.turns.filter(scope=scope))
    with store.database.remembering("names of clusters"), store.alone(bench.name):
        columns = ["turn_id", "content_hash"]
        stored = store.turns(bench.name, scopes=[scope], columns=columns)
        if not stored.sort(columns).equals(hashed.sort(columns)):
            return
        tree = {
            "tree": _tree_name(model),
            "over": KIND,
            "asked": writer_name(model),
            "tz": "",
            "seed": 0,
            "indexed": False,
        }
        store.nodes.keep(bench.name, tree, nodes, turns=hashed, digests={scope: ""}, whole=False)
        bench.provenance["versions"] = store.versions()


def resolved(service: str | llm.Service | None) -> str | llm.Service | None:
    """Give a service of the settings by its name; ``recorded`` and ``None`` as they are."""
    if isinstance(service, str) and service != llm.RECORDED:
        return llm.configured_service(service)
    return service


def _is_stored(bench: Bench) -> bool:
    store = bench.store
    return store is not None and bench.name in store.datasets()["name"]


def _rows_of(bench: Bench, scope: str, service: str | llm.Service | None) -> pl.DataFrame:
    assert bench.store is not None
    return bench.store.nodes.rows(bench.name, scopes=[scope], tree=_tree_name(service))


def _tree_name(service: str | llm.Service | None) -> str:
    return f"map by {writer_name(service)}"
