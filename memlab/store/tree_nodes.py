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
from memlab.store.cleaning import clean_when_due
from memlab.store.database import TableGroup
from memlab.store.dataset_rows import read_dataset_entry, read_rows
from memlab.store.schemas import TABLES, build_row_filter, primary_keys, text_hashes

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
        :returns: the columns of :class:`memlab.records.Node`, with those that :meth:`keep` says of
            the tree, ``digest`` (empty where the tree was written in part), ``encoder`` and
            ``vector`` (null where none was made), ``written_at``, and ``stale``: whether a turn
            below is gone or changed.
        """
        rows = self._clean(dataset, self._read(dataset, scopes, tree))
        if not emptied:
            rows = rows.filter(pl.col("sentences").list.len() > 0)
        names = list(self._scopes(dataset))
        order = dict(zip(names, range(len(names)), strict=True))
        place = pl.col("scope").replace_strict(order, default=len(order), return_dtype=pl.Int64)
        ordered = rows.sort("tree", "level", place, "position", maintain_order=True)
        return ordered.drop("key", "dataset", "position", "turn_hashes")

    def keep(
        self,
        dataset: str,
        tree: Mapping[str, Any],
        nodes: pl.DataFrame,
        *,
        turns: pl.DataFrame,
        digests: dict[str, str],
        whole: bool,
    ) -> None:
        """Write nodes of a tree, and take away what they replace, as one version of the table.

        :param tree: ``tree``, its name, and what makes it up: ``over``, ``asked`` (who writes it),
            ``tz``, ``seed`` and ``indexed``; see
            :class:`memlab.summaries.stored_trees.TreeDesign`.
        :param nodes: rows of :class:`memlab.records.Node`, with ``encoder`` and ``vector`` where
            these are known.
        :param turns: ``turn_id`` and ``content_hash`` of the turns that they were made of.
        :param digests: of each scope what its tree was made of; the trees of these scopes are
            replaced.
        :param whole: whether the nodes are the whole trees; else those of a kind whose turns they
            have are replaced, and the tree does not count as whole.
        """
        placed = nodes.with_columns(
            **dict(zip(tree, map(pl.lit, tree.values()), strict=True)),
            position=_places(nodes, whole=whole),
            digest=pl.lit("", pl.String),
            written_at=pl.lit(datetime.now(UTC)).cast(TIMESTAMP),
        )
        if whole:
            made_of = pl.col("scope").replace_strict(digests, return_dtype=pl.String)
            placed = placed.with_columns(digest=made_of)
        for name in ("encoder", "vector"):
            if name not in placed.columns:
                placed = placed.with_columns(pl.lit(None, _COLUMNS[name]).alias(name))
        placed = placed.with_columns(turn_hashes=_hashes_of(placed["turns"], turns))
        rows = _keyed(dataset, placed)
        with self.database.alone(dataset):
            there = self._read(dataset, list(digests), tree["tree"])
            if not whole:
                there = _replaced_rows(there, placed)
            self._write(rows, gone=there["key"])
        clean_when_due(self.database, ["nodes"])

    def clear_deleted(self, dataset: str) -> int:
        """Take from the stored nodes what stands on turns that are gone or changed; say from how
        many.

        :meth:`rows` never gives it; this takes it from the table itself.
        """
        with (
            self.database.alone(dataset),
            self.database.guarded(f"clearing nodes of {dataset!r}", writes="clear_deleted"),
        ):
            stored = self._read(dataset)
            clean = self._clean(dataset, stored)
            stale = clean.filter("stale").drop("stale")
            gone = stored.join(clean, on="key", how="anti")["key"]
            if stale.height or len(gone):
                self._write(stale, gone=gone)
        return stale.height + len(gone)

    def _write(self, rows: pl.DataFrame, *, gone: pl.Series) -> None:
        """Upsert rows and delete those of keys that are gone, in one commit."""
        table = self.database.table("nodes")
        source = rows.select(*_COLUMNS).to_arrow().cast(TABLES["nodes"].arrow())
        builder = table.merge_insert("key").use_index(False).when_matched_update_all()
        builder = builder.when_not_matched_insert_all()
        if len(gone):
            builder = builder.when_not_matched_by_source_delete(build_row_filter(key=gone))
        if len(source) or len(gone):
            self.database.retried(lambda: builder.execute(source, on_bad_vectors="null"))

    def _read(
        self, dataset: str, scopes: Sequence[str] | None = None, tree: str | None = None
    ) -> pl.DataFrame:
        read_dataset_entry(self.database, dataset)
        return self.database.read("nodes", list(_COLUMNS), dataset=dataset, scope=scopes, tree=tree)

    def _scopes(self, dataset: str) -> Iterable[str]:
        sessions = read_rows(self.database, "sessions", dataset, columns=["scope"])
        return sessions["scope"].unique(maintain_order=True)

    def _clean(self, dataset: str, rows: pl.DataFrame) -> pl.DataFrame:
        """Take away what stands on turns that are gone or changed, and say which rows had such:
        ``stale``.
        """
        if rows.is_empty():
            return rows.with_columns(stale=pl.lit(False))
        scopes = rows["scope"].unique().to_list()
        columns = ["turn_id", "content_hash"]
        there = read_rows(self.database, "turns", dataset, columns=columns, scopes=scopes)
        below = rows.select("key", turn_id="turns", content_hash="turn_hashes")
        below = below.explode("turn_id", "content_hash").drop_nulls("turn_id")
        gone = below.join(there, on=columns, how="anti").group_by("key").agg("turn_id")
        lost = dict(gone.iter_rows())
        is_stale = pl.col("key").is_in(list(lost))
        # A row that was cleared before has no topics to lose: it is stale until it is made again.
        marked = rows.with_columns(stale=is_stale | (pl.col("digest") == _CLEARED))
        clean = [
            _without_turns(row, set(lost[row["key"]])) for row in rows.filter(is_stale).to_dicts()
        ]
        left = [row for row in clean if row["turns"]]
        changed = pl.DataFrame(left, schema=_COLUMNS).with_columns(stale=pl.lit(True))
        fresh = marked.filter(~is_stale)
        return pl.concat([fresh, changed.select(fresh.columns)])


_CLEARED = "cleared"
"""The digest of a row that stood on a turn that is gone: it is no part of a current tree."""


def _without_turns(row: dict[str, Any], gone: set[str]) -> dict[str, Any]:
    """Give a row without what cites some turns or says nothing of what it stands on."""
    for name, evidence in _LISTS.items():
        texts, cited = list[str](), list[list[str]]()
        for text, ids in zip(row[name], row[evidence], strict=True):
            if not gone.intersection(ids):
                texts.append(text)
                cited.append(ids)
        row[name], row[evidence] = texts, cited
    turns, hashes = list[str](), list[str]()
    for turn, its_hash in zip(row["turns"], row["turn_hashes"], strict=True):
        if turn not in gone:
            turns.append(turn)
            hashes.append(its_hash)
    return row | {
        "text": " ".join(row["sentences"]),
        "children": [child for child in row["children"] if child not in gone],
        "turns": turns,
        "turn_hashes": hashes,
        "topics": [],
        "made_of": "",
        "digest": _CLEARED,
        "encoder": None,
        "vector": None,
    }


def _places(nodes: pl.DataFrame, *, whole: bool) -> pl.Series:
    """Give nodes their places: of a whole tree those that they have, of a part those in time."""
    places = pl.Series(range(nodes.height), dtype=pl.Int64)
    if whole:
        return places
    return nodes["start"].dt.epoch("s").fill_null(places)


def _hashes_of(lists: pl.Series, turns: pl.DataFrame) -> pl.Series:
    """Give for each list of turns the hashes of their texts."""
    hashes = dict(turns.select("turn_id", "content_hash").iter_rows())
    each = [[hashes.get(turn, "") for turn in listed] for listed in lists]
    return pl.Series("turn_hashes", each, dtype=pl.List(pl.String))


def _keyed(dataset: str, rows: pl.DataFrame) -> pl.DataFrame:
    """Give rows their primary keys: one node may stand in several trees."""
    trees = {name: text_hashes([name])[0][:12] for name in rows["tree"].unique()}
    tree = pl.col("tree").replace_strict(trees, return_dtype=pl.String)
    key = primary_keys(dataset, pl.concat_str(tree, pl.lit("/"), "node_id"))
    keyed = rows.with_columns(key=key, dataset=pl.lit(dataset))
    return keyed.select(pl.col(name).cast(dtype) for name, dtype in _COLUMNS.items())


def _replaced_rows(there: pl.DataFrame, new: pl.DataFrame) -> pl.DataFrame:
    """Give the stored rows that new ones of their kind take the place of: those that share a turn
    with them.
    """
    pairs = new.select("kind", turn="turns").explode("turn").unique()
    old = there.select("key", "kind", turn="turns").explode("turn")
    return there.join(old.join(pairs, on=["kind", "turn"]), on="key", how="semi")
