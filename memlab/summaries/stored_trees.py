"""Trees of summaries in the store: read where nothing below them changed, made and kept where
something did.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date, datetime
from itertools import product
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from memlab import llm
from memlab.embed.turn_texts import turn_text_expr
from memlab.errors import DataError, ModelError
from memlab.llm import recorded_answers
from memlab.llm.token_spending import is_estimating
from memlab.records import Summary, frame
from memlab.retrieve import Bench
from memlab.summaries.period_rollups import PeriodWriter, rollup
from memlab.summaries.raptor_trees import (
    MAX_TOP_NODES,
    Tree,
    build_raptor_tree,
    encode_summaries,
    turns_by_scope_session_and_place,
)
from memlab.summaries.summary_prompts import CLUSTER, PERIOD, SESSION
from memlab.summaries.summary_rows import (
    EXTRACTIVE,
    NODES,
    Writer,
    writer_model,
    writer_name,
)

if TYPE_CHECKING:
    from memlab.store import MemoryStore

CODE_VERSION = 1  # raised with a change of code that gives other trees for the same turns
_TURN_COLUMNS = ("turn_id", "session_id", "speaker", "role", "text", "caption", "timestamp")


@dataclass(frozen=True)
class TreeDesign:
    """What a tree is over, and who writes it; with the turns it says what the tree is.

    :param over: ``weeks`` or ``clusters``.
    :param tz: name of the time zone in which weeks begin; of clusters empty.
    :param seed: of the grouping into clusters; of weeks 0.
    :param indexed: whether the sessions are those of the index, whoever wrote them.
    """

    over: str
    service: Writer = None
    tz: str = ""
    seed: int = 0
    indexed: bool = False

    def stored_name(self, bench: Bench) -> str:
        """Give the name under which the store has the tree: ``weeks (UTC) by lab``."""
        settings_text = self.tz
        if self.over == "clusters":
            settings_text = f"{bench.embedder().identity.key}, seed {self.seed}"
        if self.indexed:
            settings_text += ", sessions of the index"
        return f"{self.over} ({settings_text}) by {writer_name(self.service) or EXTRACTIVE}"

    def stored_columns(self, bench: Bench) -> dict[str, Any]:
        """Give what the store notes of the tree."""
        return {
            "tree": self.stored_name(bench),
            "over": self.over,
            "asked": writer_name(self.service) or EXTRACTIVE,
            "tz": self.tz,
            "seed": self.seed,
            "indexed": self.indexed,
        }

    def with_configured_service(self) -> TreeDesign:
        """Give it with the service of the settings; with its name alone where there is none."""
        service = self.service
        if isinstance(service, str) and service != llm.RECORDED:
            with suppress(ModelError):
                service = llm.configured_service(service)
        return replace(self, service=service)


@dataclass(frozen=True)
class StoredTree:
    """The tree of a bench in its store.

    :param turns: of the bench, in order of scope, session and place.
    :param summaries: of sessions, of the index; see :func:`memlab.summaries.rollup`.
    :param rows: what the store has of the tree, see :meth:`memlab.store.tree_nodes.TreeNodes.rows`.
    """

    bench: Bench
    store: MemoryStore
    design: TreeDesign
    turns: pl.DataFrame
    summaries: pl.DataFrame
    rows: pl.DataFrame

    @classmethod
    def of(cls, bench: Bench, design: TreeDesign) -> StoredTree | None:
        """Give the tree of a bench; ``None`` where no store has the bench's dataset."""
        store = bench.store
        if store is None or bench.name not in store.datasets()["name"]:
            return None
        turns = turns_by_scope_session_and_place(bench)
        scopes = turns["scope"].unique(maintain_order=True).to_list()
        design = design.with_configured_service()
        summaries = frame(Summary)
        if design.over == "weeks":
            summaries = _indexed_summary_rows_for_design(store, bench.name, scopes, design)
        tree_name = design.stored_name(bench)
        node_rows = store.nodes.rows(bench.name, scopes=scopes, tree=tree_name, emptied=True)
        return cls(bench, store, design, turns, summaries, node_rows)

    @property
    def known_nodes(self) -> pl.DataFrame:
        """The rows of the store as nodes, for those who write the tree again."""
        return self.rows.select(NODES.names())

    def unchanged_whole_scopes(self) -> set[str]:
        """Give the scopes whose stored tree is whole, and made of the turns as they are now."""
        writer_of_rows = writer_model(self.design.service)
        service_setting = self.design.service
        is_named_service = isinstance(service_setting, str) and service_setting != llm.RECORDED
        if is_named_service and self.rows.height:
            # No such service is set: who wrote the rows can still be read.
            writer_of_rows = next(iter(self.rows["model"].drop_nulls()), None)
        digests = self.source_digest_by_scope(writer_of_rows)
        current_digest = pl.col("scope").replace_strict(digests, return_dtype=pl.String)
        is_whole = (pl.col("digest") == current_digest).all() & ~pl.col("stale").any()
        if service_setting != llm.RECORDED:
            # What a model left unanswered is asked again.
            is_whole &= (pl.col("reason") == "").all()
        checked_scopes = self.rows.group_by("scope").agg(whole=is_whole)
        complete_scopes = set(checked_scopes.filter("whole")["scope"])
        if self.design.over == "clusters":
            turns_by_scope = self.turns.group_by("scope").len()
            complete_scopes |= set(turns_by_scope.filter(pl.col("len") <= MAX_TOP_NODES)["scope"])
        return complete_scopes

    def source_digest_by_scope(self, model_name: str | None) -> dict[str, str]:
        """Name what the tree of each scope is made of: turns, sessions of the index, prompts,
        model, code.
        """
        digest_parts = [str(CODE_VERSION), model_name or ""]
        digest_parts += [f"{task.name} {task.version}" for task in (SESSION, PERIOD, CLUSTER)]
        if self.design.service == llm.RECORDED:
            digest_parts.append(recorded_answers.digest_recordings())
        session_summaries = self.summaries.select("scope", "session_id", "summary", "service")
        summarised = session_summaries.partition_by("scope", as_dict=True)
        digests = dict[str, str]()
        for (scope,), scope_turns in self.turns.partition_by("scope", as_dict=True).items():
            turn_lines = scope_turns.select(_TURN_COLUMNS).write_ndjson()
            summary_lines = summarised.get((scope,), session_summaries.clear()).write_ndjson()
            digests[str(scope)] = _digest_of_texts(*digest_parts, turn_lines, summary_lines)
        return digests

    def read_tree(self) -> Tree:
        """Give the stored tree as it was made, with the vectors of the bench's encoder."""
        scopes = self.turns["scope"].unique(maintain_order=True).to_list()
        scope_place = pl.col("scope").replace_strict(
            {scope_name: place_number for place_number, scope_name in enumerate(scopes)}
        )
        node_rows = self.rows.with_row_index("row").sort("level", scope_place, "row")
        encoder = self.bench.embedder()
        if (
            node_rows.height
            and (node_rows["encoder"] == encoder.identity.key).fill_null(False).all()
        ):
            vectors = np.asarray(node_rows["vector"].list.to_array(encoder.dim).to_numpy())
            return Tree(node_rows.select(NODES.names()), vectors.astype(np.float32, copy=False))
        nodes = node_rows.select(NODES.names())
        if node_rows.height == 0 or node_rows["encoder"].drop_nulls().len():
            # Those of another encoder stay; these are in the cache.
            return Tree(nodes, np.asarray(encoder.encode(nodes["text"].to_list())))
        vectors = self.store.encode(encoder, nodes["text"], remember=False)
        self.write_nodes_if_turns_are_stored(nodes, vectors)
        return Tree(nodes, vectors)

    def known_tree(self) -> Tree:
        """Give the stored nodes; those without a vector of the bench's encoder have zeros."""
        encoder = self.bench.embedder()
        vectors = np.zeros((self.rows.height, encoder.dim), np.float32)
        has_own = self.rows["encoder"].eq_missing(encoder.identity.key)
        own_vectors = self.rows.filter(has_own)["vector"]
        if len(own_vectors):
            vectors[has_own.to_numpy()] = own_vectors.list.to_array(encoder.dim).to_numpy()
        return Tree(self.known_nodes, vectors)

    def write_nodes_if_turns_are_stored(
        self, nodes: pl.DataFrame, vectors: np.ndarray | None = None, *, whole: bool = True
    ) -> bool:
        """Write nodes of the tree where the store holds the bench's turns; whether it does.

        A bench of other turns, as that of some candidates of a large scope, leaves the store as it
        is, as a store that cannot be written does, with a warning.
        """
        if self.store.read_only or is_estimating():
            return False
        turn_hashes = content_hash_rows_of_turns(self.turns)
        scopes = self.turns["scope"].unique(maintain_order=True).to_list()
        if vectors is not None and len(vectors):
            vector_column = pl.Series(
                "vector", vectors, dtype=pl.Array(pl.Float32, vectors.shape[1])
            )
            encoder_key = self.bench.embedder().identity.key
            nodes = nodes.with_columns(
                vector_column.cast(pl.List(pl.Float32)), encoder=pl.lit(encoder_key)
            )
        with (
            self.store.database.tolerating_cache_failure("summaries"),
            self.store.alone(self.bench.name),
        ):
            columns = ["turn_id", "content_hash"]
            stored_turns = self.store.turns(self.bench.name, scopes=scopes, columns=columns)
            if not stored_turns.sort(columns).equals(turn_hashes.sort(columns)):
                return False
            writing_model = writer_model(self.design.service)
            self.store.nodes.replace_nodes(
                self.bench.name,
                self.design.stored_columns(self.bench),
                nodes,
                turns=turn_hashes,
                digest_by_scope=self.source_digest_by_scope(writing_model),
                is_whole_tree=whole,
            )
            self.bench.provenance["versions"] = self.store.versions()
            return True
        return False


def read_or_write_tree(bench: Bench, design: TreeDesign) -> Tree:
    """Give the summaries of a bench's conversations with their vectors: of its store, or made now,
    and kept there.

    :raises DataError: for an unknown time zone, or without an encoder.
    :raises ModelError: when the service cannot be asked at all.
    """
    bench.embedder()
    stored_tree = StoredTree.of(bench, design)
    if stored_tree is None:
        return _build_tree_by_design(bench, design, frame(Summary), None)
    if len(stored_tree.unchanged_whole_scopes()) == len(stored_tree.turns["scope"].unique()):
        return stored_tree.read_tree()
    written_tree = _build_tree_by_design(
        bench, stored_tree.design, stored_tree.summaries, stored_tree.known_tree()
    )
    stored_tree.write_nodes_if_turns_are_stored(written_tree.nodes, written_tree.vectors)
    return written_tree


def _build_tree_by_design(
    bench: Bench, design: TreeDesign, summaries: pl.DataFrame, known: Tree | None
) -> Tree:
    """Write a tree of a bench.

    What a model wrote of the same before, and its vector, is taken from a known one.
    """
    if design.over == "clusters":
        return build_raptor_tree(bench, service=design.service, seed=design.seed, known=known)
    node_rows = rollup(
        turns_by_scope_session_and_place(bench),
        summaries=summaries,
        tz=design.tz,
        service=design.service,
        language=bench.language,
        known=None if known is None else known.nodes,
    )
    return Tree(node_rows, encode_summaries(bench, node_rows["text"].to_list(), known))


def read_or_write_period(
    bench: Bench, design: TreeDesign, period_kind: str, day: date
) -> pl.DataFrame:
    """Give the week or month that a day lies in, with what stands below it: of the store, or
    written now and kept.

    :param bench: of one scope, with a store that has it; an encoder is not needed.
    :param period_kind: ``week`` or ``month``.
    :returns: rows of :class:`memlab.records.Node`, among them those asked for.
    :raises DataError: when the scope has no session in it.
    """
    stored_tree = StoredTree.of(bench, design)
    if stored_tree is None:
        raise DataError(f"the store of the bench has no dataset {bench.name!r}")
    writer = PeriodWriter(
        stored_tree.turns,
        stored_tree.summaries,
        design.tz,
        stored_tree.design.service,
        bench.language,
        stored_tree.known_nodes,
    )
    first_day = writer.first_day_with_sessions(period_kind, day)
    if stored_tree.unchanged_whole_scopes():
        period_nodes = stored_tree.known_nodes
    else:
        period_nodes = writer.write_period(period_kind, day)
        stored_tree.write_nodes_if_turns_are_stored(period_nodes, whole=False)
    sessions = writer.dated_sessions.filter(pl.col(period_kind) == first_day)["session_id"]
    return nodes_of_period(period_nodes, period_kind, sessions.to_list())


def choose_service_of_design(
    bench: Bench, design: TreeDesign, named_service: str | None, default_service: str
) -> TreeDesign:
    """Say who writes a tree.

    It is the service that is named, else whose whole tree the store has, else the default. A tree
    that a model wrote is preferred, then that of the default, then the latest. Where the index has
    sessions of another model than the one that was not named, weeks are made of those.

    :param bench: with a store that has it.
    :param named_service: a name, ``recorded``, ``extractive``, or ``None`` where none was named.
    :param default_service: as ``named_service``.
    """
    asked_service = named_service or default_service
    own_service = None if asked_service == EXTRACTIVE else asked_service
    store = bench.store
    scopes = bench.turns["scope"].unique().to_list()
    assert store is not None
    if named_service is None:
        stored_services = store.nodes.rows(bench.name, scopes=scopes)["service"].unique().sort()
        service_names = dict.fromkeys(
            [own_service, *stored_services.filter(stored_services != EXTRACTIVE), None]
        )
        may_be_indexed = [False, True] if design.over == "weeks" else [False]
        ranked_designs = []
        for service_name, indexed in product(service_names, may_be_indexed):
            candidate = replace(design, service=service_name, indexed=indexed)
            rank = _preference_key_of_whole_tree(bench, candidate, own_service)
            if rank is not None:
                ranked_designs.append((rank, candidate))
        if ranked_designs:
            _, best_design = max(ranked_designs, key=itemgetter(0))
            return best_design
    indexed = False
    if design.over == "weeks" and (named_service is None or own_service is None):
        sessions = store.knowledge.rows("summaries", bench.name, scopes=scopes)
        indexed = not set(sessions["service"]) <= {EXTRACTIVE, asked_service}
    return replace(design, service=own_service, indexed=indexed)


def rows_of_preferred_tree(stored_rows: pl.DataFrame) -> pl.DataFrame:
    """Give the rows of one tree of several: one that a model wrote, else the one that was written
    last.

    :param stored_rows: of :meth:`memlab.store.tree_nodes.TreeNodes.rows`, of one scope.
    """
    by_model = (pl.col("service") != EXTRACTIVE).any()
    tree_rows = stored_rows.group_by("tree").agg(by_model=by_model, at=pl.col("written_at").max())
    best_tree = tree_rows.sort("by_model", "at", "tree", descending=True).head(1)
    return stored_rows.join(best_tree, on="tree", how="semi", maintain_order="left")


def _preference_key_of_whole_tree(
    bench: Bench, design: TreeDesign, own_service: str | None
) -> tuple[bool, bool, datetime] | None:
    """Rank a whole tree of the store: whether a model wrote of it, whether it is the default's, and
    when.
    """
    stored_tree = StoredTree.of(bench, design)
    if (
        stored_tree is None
        or stored_tree.rows.is_empty()
        or not stored_tree.unchanged_whole_scopes()
    ):
        return None
    by_model = bool((stored_tree.rows["service"] != EXTRACTIVE).any())
    written_at: Any = stored_tree.rows["written_at"].max()
    return by_model, design.service == own_service, written_at


def nodes_of_period(
    nodes: pl.DataFrame, period_kind: str, session_ids: Sequence[str]
) -> pl.DataFrame:
    """Give the nodes of a week or month, with those below it.

    :param session_ids: ids of the sessions in it.
    """
    week_nodes = nodes.filter(pl.col("kind") == "week", _shares_a_child_expr(session_ids))
    kept_nodes = [nodes.filter(pl.col("node_id").is_in(list(session_ids))), week_nodes]
    if period_kind == "month":
        kept_nodes.append(
            nodes.filter(
                pl.col("kind") == "month", _shares_a_child_expr(week_nodes["node_id"].to_list())
            )
        )
    return pl.concat(kept_nodes)


def _shares_a_child_expr(node_ids: Sequence[str]) -> pl.Expr:
    return pl.col("children").list.set_intersection(list(node_ids)).list.len() > 0


def _indexed_summary_rows_for_design(
    store: MemoryStore, dataset_name: str, scopes: Sequence[str], design: TreeDesign
) -> pl.DataFrame:
    """Give the summaries of sessions that the index has and the tree takes: a model's, by default
    those of its own.
    """
    if design.service is None and not design.indexed:
        return frame(Summary)
    summary_rows = store.knowledge.rows("summaries", dataset_name, scopes=scopes)
    if design.indexed:
        return summary_rows.filter(pl.col("service") != EXTRACTIVE)
    return summary_rows.filter(
        pl.col("service") == writer_name(design.service),
        pl.col("model").eq_missing(pl.lit(writer_model(design.service), pl.String)),
    )


def content_hash_rows_of_turns(turns: pl.DataFrame) -> pl.DataFrame:
    """Give ``turn_id`` and ``content_hash`` of turns, as the store has them."""
    # Imported here: whoever reads a stored tree has the store loaded, others need not.
    from memlab.store.table_schemas import hash_texts

    turn_texts = turns.select(turn_text_expr().alias("content")).to_series()
    content_hashes = pl.Series("content_hash", hash_texts(turn_texts), dtype=pl.String)
    return turns.select("turn_id", content_hashes)


def _digest_of_texts(*texts: str) -> str:
    return hashlib.sha256("\x1e".join(texts).encode("utf-8", "surrogatepass")).hexdigest()[:24]
