"""The trees of summaries: weeks, months and clusters, whole or in part, as they stand on the turns.

A row names the *tree* that it belongs to (what it is over, by whom, in which time zone) and the
*digest* of everything that the tree of its scope was made of. It also has the hash of each turn
below it, so that a sentence is never read once a turn that it stands on was deleted or edited.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import polars as pl

from memlab.records import TIMESTAMP
from memlab.store.database import TableGroup
from memlab.store.dataset_rows import read_dataset_entry, read_dataset_rows
from memlab.store.table_schemas import (
    TABLES,
    build_required_row_filter,
    hash_texts,
    primary_key_expr,
)
from memlab.store.version_cleaning import clean_due_tables_or_warn

_LISTS = {
    "sentences": "evidence",
    "carried_on": "carried_on_evidence",
    "decisions": "decision_evidence",
    "open_questions": "open_question_evidence",
}
_COLUMNS = dict(TABLES["nodes"].columns)


class TreeNodes(TableGroup):
    """The summaries above sessions, and of sessions in their trees: ``store.nodes``."""

    def rows(
        self,
        dataset: str,
        *,
        scopes: Sequence[str] | None = None,
        tree: str | None = None,
        emptied: bool = False,
    ) -> pl.DataFrame:
        """Read nodes by level, scope and time, without what stands on a turn that is gone or says
        something else.

        Of a node with such a turn below it, the sentences that do not cite it are left; what cites
        nothing, its topics and its vector, is not. One without a sentence left is not read.

        :param tree: only the nodes of this tree.
        :param emptied: read also those without a sentence left, which say what stood together.
        :returns: the columns of :class:`memlab.records.Node`, with those that
            :meth:`replace_nodes` says of the tree, ``digest`` (empty where the tree was written in
                part), ``encoder`` and
            ``vector`` (null where none was made), ``written_at``, and ``stale``: whether a turn
            below is gone or changed.
        """
        node_rows = self._drop_stale_sentences_and_mark_nodes(
            dataset, self._read_stored_nodes(dataset, scopes, tree)
        )
        if not emptied:
            node_rows = node_rows.filter(pl.col("sentences").list.len() > 0)
        scope_names = list(self._scopes_in_dataset_order(dataset))
        place_by_scope = dict(zip(scope_names, range(len(scope_names)), strict=True))
        scope_place = pl.col("scope").replace_strict(
            place_by_scope, default=len(place_by_scope), return_dtype=pl.Int64
        )
        ordered_nodes = node_rows.sort(
            "tree", "level", scope_place, "position", maintain_order=True
        )
        return ordered_nodes.drop("key", "dataset", "position", "turn_hashes")

    def replace_nodes(
        self,
        dataset: str,
        tree_columns: Mapping[str, Any],
        nodes: pl.DataFrame,
        *,
        turns: pl.DataFrame,
        digest_by_scope: dict[str, str],
        is_whole_tree: bool,
    ) -> None:
        """Write nodes of a tree, and take away what they replace, as one version of the table.

        :param tree_columns: ``tree_columns``, its name, and what makes it up: ``over``, ``asked``
            (who writes it), ``tz``, ``seed`` and ``indexed``; see
            :class:`memlab.summaries.stored_trees.TreeDesign`.
        :param nodes: rows of :class:`memlab.records.Node`, with ``encoder`` and ``vector`` where
            these are known.
        :param turns: ``turn_id`` and ``content_hash`` of the turns that they were made of.
        :param digest_by_scope: of each scope what its tree was made of; the trees of these scopes
            are replaced.
        :param is_whole_tree: whether the nodes are the whole trees; else those of a kind whose
            turns they have are replaced, and the tree does not count as whole.
        """
        placed_nodes = nodes.with_columns(
            **dict(zip(tree_columns, map(pl.lit, tree_columns.values()), strict=True)),
            position=_positions_by_row_or_start_second(nodes, is_whole_tree=is_whole_tree),
            digest=pl.lit("", pl.String),
            written_at=pl.lit(datetime.now(UTC)).cast(TIMESTAMP),
        )
        if is_whole_tree:
            scope_digest = pl.col("scope").replace_strict(digest_by_scope, return_dtype=pl.String)
            placed_nodes = placed_nodes.with_columns(digest=scope_digest)
        for name in ("encoder", "vector"):
            if name not in placed_nodes.columns:
                placed_nodes = placed_nodes.with_columns(pl.lit(None, _COLUMNS[name]).alias(name))
        placed_nodes = placed_nodes.with_columns(
            turn_hashes=_text_hashes_or_empty_of_turn_lists(placed_nodes["turns"], turns)
        )
        keyed_nodes = _with_primary_keys(dataset, placed_nodes)
        with self.database.locking_dataset_or_noting_versions(dataset):
            stored_nodes = self._read_stored_nodes(
                dataset, list(digest_by_scope), tree_columns["tree"]
            )
            if not is_whole_tree:
                stored_nodes = _stored_nodes_sharing_kind_and_turn(stored_nodes, placed_nodes)
            self._upsert_and_delete_nodes(keyed_nodes, gone_keys=stored_nodes["key"])
        clean_due_tables_or_warn(self.database, ["nodes"])

    def remove_text_on_changed_turns(self, dataset: str) -> int:
        """Take from the stored nodes what stands on turns that are gone or changed; say from how
        many.

        :meth:`rows` never gives it; this takes it from the table itself.
        """
        with (
            self.database.locking_dataset_or_noting_versions(dataset),
            self.database.translating_errors(
                f"clearing nodes of {dataset!r}", refused_write="clear_deleted"
            ),
        ):
            stored_nodes = self._read_stored_nodes(dataset)
            clean_nodes = self._drop_stale_sentences_and_mark_nodes(dataset, stored_nodes)
            stale_nodes = clean_nodes.filter("stale").drop("stale")
            gone_keys = stored_nodes.join(clean_nodes, on="key", how="anti")["key"]
            if stale_nodes.height or len(gone_keys):
                self._upsert_and_delete_nodes(stale_nodes, gone_keys=gone_keys)
        return stale_nodes.height + len(gone_keys)

    def _upsert_and_delete_nodes(self, node_rows: pl.DataFrame, *, gone_keys: pl.Series) -> None:
        """Upsert rows and delete those of keys that are gone, in one commit."""
        table = self.database.open_or_create_table("nodes")
        source = node_rows.select(*_COLUMNS).to_arrow().cast(TABLES["nodes"].arrow_schema())
        builder = table.merge_insert("key").use_index(False).when_matched_update_all()
        builder = builder.when_not_matched_insert_all()
        if len(gone_keys):
            builder = builder.when_not_matched_by_source_delete(
                build_required_row_filter(key=gone_keys)
            )
        if len(source) or len(gone_keys):
            self.database.retry_on_conflict(lambda: builder.execute(source, on_bad_vectors="null"))

    def _read_stored_nodes(
        self, dataset: str, scopes: Sequence[str] | None = None, tree: str | None = None
    ) -> pl.DataFrame:
        read_dataset_entry(self.database, dataset)
        return self.database.read_table(
            "nodes", list(_COLUMNS), dataset=dataset, scope=scopes, tree=tree
        )

    def _scopes_in_dataset_order(self, dataset: str) -> Iterable[str]:
        sessions = read_dataset_rows(self.database, "sessions", dataset, columns=["scope"])
        return sessions["scope"].unique(maintain_order=True)

    def _drop_stale_sentences_and_mark_nodes(
        self, dataset: str, node_rows: pl.DataFrame
    ) -> pl.DataFrame:
        """Take away what stands on turns that are gone or changed, and say which rows had such:
        ``stale``.
        """
        if node_rows.is_empty():
            return node_rows.with_columns(stale=pl.lit(False))
        scopes = node_rows["scope"].unique().to_list()
        columns = ["turn_id", "content_hash"]
        known_turns = read_dataset_rows(
            self.database, "turns", dataset, columns=columns, scopes=scopes
        )
        turns_below = node_rows.select("key", turn_id="turns", content_hash="turn_hashes")
        turns_below = turns_below.explode("turn_id", "content_hash").drop_nulls("turn_id")
        gone_turns = (
            turns_below.join(known_turns, on=columns, how="anti").group_by("key").agg("turn_id")
        )
        lost_by_key = dict(gone_turns.iter_rows())
        is_stale = pl.col("key").is_in(list(lost_by_key))
        # A row that was cleared before has no topics to lose: it is stale until it is made again.
        marked_rows = node_rows.with_columns(stale=is_stale | (pl.col("digest") == _CLEARED))
        cleaned_rows = [
            _drop_gone_turns_and_clear_node(row, set(lost_by_key[row["key"]]))
            for row in node_rows.filter(is_stale).to_dicts()
        ]
        rows_left = [row for row in cleaned_rows if row["turns"]]
        changed_rows = pl.DataFrame(rows_left, schema=_COLUMNS).with_columns(stale=pl.lit(True))
        fresh_rows = marked_rows.filter(~is_stale)
        return pl.concat([fresh_rows, changed_rows.select(fresh_rows.columns)])


_CLEARED = "cleared"
"""The digest of a row that stood on a turn that is gone: it is no part of a current tree."""


def _drop_gone_turns_and_clear_node(
    node_row: dict[str, Any], gone_turn_ids: set[str]
) -> dict[str, Any]:
    """Give a row without what cites some turns or says nothing of what it stands on."""
    for name, evidence in _LISTS.items():
        texts_left = list[str]()
        cited_lists = list[list[str]]()
        for text, cited_ids in zip(node_row[name], node_row[evidence], strict=True):
            if not gone_turn_ids.intersection(cited_ids):
                texts_left.append(text)
                cited_lists.append(cited_ids)
        node_row[name], node_row[evidence] = texts_left, cited_lists
    turns = list[str]()
    hashes = list[str]()
    for turn, turn_hash in zip(node_row["turns"], node_row["turn_hashes"], strict=True):
        if turn not in gone_turn_ids:
            turns.append(turn)
            hashes.append(turn_hash)
    return node_row | {
        "text": " ".join(node_row["sentences"]),
        "children": [child for child in node_row["children"] if child not in gone_turn_ids],
        "turns": turns,
        "turn_hashes": hashes,
        "topics": [],
        "made_of": "",
        "digest": _CLEARED,
        "encoder": None,
        "vector": None,
    }


def _positions_by_row_or_start_second(nodes: pl.DataFrame, *, is_whole_tree: bool) -> pl.Series:
    """Give nodes their places: of a whole tree those that they have, of a part those in time."""
    places = pl.Series(range(nodes.height), dtype=pl.Int64)
    if is_whole_tree:
        return places
    return nodes["start"].dt.epoch("s").fill_null(places)


def _text_hashes_or_empty_of_turn_lists(turn_id_lists: pl.Series, turns: pl.DataFrame) -> pl.Series:
    """Give for each list of turns the hashes of their texts."""
    hash_by_turn = dict(turns.select("turn_id", "content_hash").iter_rows())
    hash_lists = [[hash_by_turn.get(turn, "") for turn in turn_list] for turn_list in turn_id_lists]
    return pl.Series("turn_hashes", hash_lists, dtype=pl.List(pl.String))


def _with_primary_keys(dataset: str, node_rows: pl.DataFrame) -> pl.DataFrame:
    """Give rows their primary keys: one node may stand in several trees."""
    tree_hashes = {name: hash_texts([name])[0][:12] for name in node_rows["tree"].unique()}
    tree_hash = pl.col("tree").replace_strict(tree_hashes, return_dtype=pl.String)
    key = primary_key_expr(dataset, pl.concat_str(tree_hash, pl.lit("/"), "node_id"))
    keyed_rows = node_rows.with_columns(key=key, dataset=pl.lit(dataset))
    return keyed_rows.select(pl.col(name).cast(dtype) for name, dtype in _COLUMNS.items())


def _stored_nodes_sharing_kind_and_turn(
    stored_nodes: pl.DataFrame, new_nodes: pl.DataFrame
) -> pl.DataFrame:
    """Give the stored rows that new ones of their kind take the place of: those that share a turn
    with them.
    """
    new_pairs = new_nodes.select("kind", turn="turns").explode("turn").unique()
    old_pairs = stored_nodes.select("key", "kind", turn="turns").explode("turn")
    return stored_nodes.join(old_pairs.join(new_pairs, on=["kind", "turn"]), on="key", how="semi")
