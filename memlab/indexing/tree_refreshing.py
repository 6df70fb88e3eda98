"""Trees of summaries that the store has whole, brought up to date after the index: only what is new
is asked for."""

from __future__ import annotations

import polars as pl

from memlab.embed import Encoder
from memlab.llm import Service
from memlab.retrieve import Bench
from memlab.store import MemoryStore
from memlab.summaries.stored_trees import StoredTree, TreeDesign, read_or_write_tree
from memlab.summaries.summary_rows import EXTRACTIVE, fallback_note, writer_name
from memlab.terminal_text import count_noun

_DESIGN = ["tree", "over", "tz", "seed", "indexed"]


def has_whole_trees(store: MemoryStore, dataset: str, service: str | Service | None) -> bool:
    """Say whether the store has whole trees of a service."""
    return _list_whole_trees(store, dataset, service).height > 0


def rewrite_outdated_trees(
    store: MemoryStore, dataset: str, *, service: str | Service | None, encoder: Encoder
) -> list[str]:
    """Write the trees of a service again where messages below them are new, changed or gone.

    Of clusters those of another encoder stay as they are, as does what was written in part, such
    as one month.

    :param service: who wrote them, and is asked for what is new.
    :returns: what was done, in lines.
    :raises ModelError: when the service cannot be asked at all.
    """
    n_written = 0
    report_lines = list[str]()
    for scope, designs in _list_whole_trees(store, dataset, service).group_by(
        "scope", maintain_order=True
    ):
        data = store.dataset(dataset, scopes=[str(scope[0])])
        bench = Bench.of(data, encoder=encoder, store=store, ingest=False, progress=False)
        for row in designs.iter_rows(named=True):
            design = TreeDesign(row["over"], service, row["tz"], row["seed"], row["indexed"])
            stored = StoredTree.of(bench, design)
            if (
                stored is None
                or design.stored_name(bench) != row["tree"]
                or stored.unchanged_whole_scopes()
            ):
                continue
            nodes = read_or_write_tree(bench, design).nodes
            n_written += 1
            note = fallback_note(nodes, "summaries")
            if service is not None and note:
                report_lines.append(f"  {scope[0]}: {row['over']}: {note}")
    if n_written:
        report_lines.insert(0, f"{dataset}: {count_noun(n_written, 'rollups')} brought up to date")
    return report_lines


def _list_whole_trees(
    store: MemoryStore, dataset: str, service: str | Service | None
) -> pl.DataFrame:
    """List the trees of a service that were written whole, by scope: ``scope`` and what makes them
    up.
    """
    rows = store.nodes.rows(dataset, emptied=True)
    # Names of the clusters of a map stand in the same table, and are written by the map.
    own_nodes = rows.filter(
        pl.col("asked") == (writer_name(service) or EXTRACTIVE), pl.col("over") != "map"
    )
    whole_trees = own_nodes.group_by("scope", *_DESIGN, maintain_order=True).agg(
        whole=(pl.col("digest") != "").any()
    )
    return whole_trees.filter("whole").drop("whole")
