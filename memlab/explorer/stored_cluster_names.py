"""Names of the clusters of a map in the store, so that a model that gave one is not asked again.

A name is a row of the table of summaries, of the kind ``map``: what is deleted or edited below it
takes it away, as it does sentences of summaries.
"""

from __future__ import annotations

import polars as pl

from memlab import llm
from memlab.cluster.names_by_model import TASK, TERMS, VERSION, ClusterName, NamedClusters
from memlab.llm.token_spending import is_estimating
from memlab.retrieve import Bench
from memlab.summaries.stored_trees import content_hash_rows_of_turns
from memlab.summaries.summary_rows import node_frame, writer_model, writer_name

KIND = "map"


def stored_names_by_request_key(
    bench: Bench, scope: str, service: str | llm.Service | None
) -> dict[str, ClusterName]:
    """Read the names that the model of a service gave, by the keys of their requests.

    None of what is recorded: that is read from the recordings.
    """
    model_service = configured_service_if_named(service)
    if not isinstance(model_service, llm.Service) or not _is_dataset_stored(bench):
        return {}
    kept_rows = _stored_name_rows(bench, scope, model_service)
    same_model = (pl.col("model") == model_service.model) & ~pl.col("stale")
    model_rows = kept_rows.filter(same_model).select("node_id", "topics", "text")
    return {
        request_key: ClusterName(label=topic_names[0], sentence=sentence)
        for request_key, topic_names, sentence in model_rows.iter_rows()
    }


def store_model_names_if_possible(
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
    memory_store = bench.store
    if memory_store is None or memory_store.read_only or is_estimating() or by_model.is_empty():
        return
    if not _is_dataset_stored(bench):
        return
    model_service = configured_service_if_named(service)
    kept_rows = _stored_name_rows(bench, scope, model_service).filter(~pl.col("stale"))
    if set(by_model["key"]) <= set(kept_rows["node_id"]):
        return
    node_rows = []
    for name_row in by_model.iter_rows(named=True):
        cluster_turns = turns.filter(label=name_row["label"])
        turn_ids = cluster_turns["turn_id"].to_list()
        node_rows.append(
            {
                "node_id": name_row["key"],
                "scope": scope,
                "level": 1,
                "kind": KIND,
                "text": name_row["sentence"],
                "sentences": [name_row["sentence"]],
                "evidence": [turn_ids],
                "children": turn_ids,
                "turns": turn_ids,
                "start": cluster_turns["timestamp"].min(),
                "end": cluster_turns["timestamp"].max(),
                "method": KIND,
                "service": writer_name(model_service),
                "topics": [name_row["given"]],
                "dropped": 0,
                "reason": "",
                "model": writer_model(model_service),
                "version": f"{TASK} {VERSION}",
                "made_of": name_row["key"],
            }
        )
    map_nodes = node_frame(node_rows, bench.turns, bench.language)
    hashed_turns_now = content_hash_rows_of_turns(bench.turns.filter(scope=scope))
    with (
        memory_store.database.tolerating_cache_failure("names of clusters"),
        memory_store.alone(bench.name),
    ):
        columns = ["turn_id", "content_hash"]
        stored_turns = memory_store.turns(bench.name, scopes=[scope], columns=columns)
        if not stored_turns.sort(columns).equals(hashed_turns_now.sort(columns)):
            return
        tree_record = {
            "tree": _tree_key_of_cluster_names(model_service),
            "over": KIND,
            "asked": writer_name(model_service),
            "tz": "",
            "seed": 0,
            "indexed": False,
        }
        memory_store.nodes.replace_nodes(
            bench.name,
            tree_record,
            map_nodes,
            turns=hashed_turns_now,
            digest_by_scope={scope: ""},
            is_whole_tree=False,
        )
        bench.provenance["versions"] = memory_store.versions()


def configured_service_if_named(service: str | llm.Service | None) -> str | llm.Service | None:
    """Give a service of the settings by its name; ``recorded`` and ``None`` as they are."""
    if isinstance(service, str) and service != llm.RECORDED:
        return llm.configured_service(service)
    return service


def _is_dataset_stored(bench: Bench) -> bool:
    store = bench.store
    return store is not None and bench.name in store.datasets()["name"]


def _stored_name_rows(
    bench: Bench, scope_name: str, service: str | llm.Service | None
) -> pl.DataFrame:
    assert bench.store is not None
    return bench.store.nodes.rows(
        bench.name, scopes=[scope_name], tree=_tree_key_of_cluster_names(service)
    )


def _tree_key_of_cluster_names(service: str | llm.Service | None) -> str:
    return f"map by {writer_name(service)}"
