"""Retrieval over a tree of summaries: nodes find the turns below them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np
import polars as pl

from memlab.errors import DataError
from memlab.records import Level, Node, Run, frame
from memlab.registry import stage
from memlab.retrieve import Bench, sessions_from_turns
from memlab.retrieve.arrays import cosines, places_within
from memlab.retrieve.bench import once
from memlab.retrieve.ranking import placed
from memlab.rollup.given import Given
from memlab.rollup.periods import rollup
from memlab.rollup.trees import Tree, grow

GROUPINGS = ("clusters", "weeks", "mixed", "none")
SEARCHES = ("collapsed", "traversal")


@stage
def tree(
    bench: Bench,
    *,
    level: Level = "turn",
    k: int = 200,
    grouping: str = "clusters",
    search: str = "collapsed",
    turns: int = 5,
    beam: int = 10,
    given: bool = False,
    tz: str = "UTC",
    seed: int = 0,
) -> Run:
    """Rank turns by the summaries that stand above them, and by themselves.

    ``collapsed`` puts all nodes, turns too, into one pool: in order of their cosine with the query, each node gives its
    nearest turns, each turn once. ``traversal`` goes down from the top: of each layer the ``beam`` nearest nodes are
    kept, and only what is below them is looked at; turns that are reached further down come first. Both rank every
    turn. The trees are built once for a bench, without a model.

    :param grouping: ``clusters`` of like turns (:func:`memlab.rollup.grow`), ``weeks`` (sessions, weeks and months:
        :func:`memlab.rollup.rollup`), ``mixed`` for the nodes of both, or ``none``: turns alone, the control.
    :param search: ``collapsed`` or ``traversal``.
    :param turns: of a summary found by ``collapsed``, so many turns are given in its place.
    :param beam: of each layer, so many nodes are kept by ``traversal``.
    :param given: whether sessions keep the summaries that the dataset brings with it (:class:`memlab.rollup.Given`).
    :param tz: name of the time zone in which days and weeks begin.
    :param seed: of the clusters.
    :raises DataError: for a count below 1, an unknown grouping, search or time zone, or without an encoder.

    Source: Sarthi et al., "RAPTOR", ICLR 2024, section 3 (tree traversal, collapsed tree).

    >>> from memlab import retrieve, sample
    >>> from memlab.rollup import tree
    >>> bench = retrieve.Bench.of(sample(turns=60), encoder="hashing")
    >>> tree(bench, k=3, grouping="weeks").frame["rank"].max()
    3
    """
    if search not in SEARCHES:
        raise DataError(f"search is {search!r}; choose from {', '.join(SEARCHES)}")
    if min(turns, beam, k) < 1:
        raise DataError(f"k={k}, turns={turns}, beam={beam}; all start at 1")
    scopes = bench.queries["scope"].unique(maintain_order=True).to_list()
    trees = trees_of(bench, scopes, grouping, given=given, tz=tz, seed=seed)
    ranked = [_best(scope, search, turns, beam, k if level == "turn" else None) for scope in _scopes(bench, trees)]
    run = _run(bench, ranked)
    return run if level == "turn" else sessions_from_turns(run, bench, k=k)


class _Scope(NamedTuple):
    """One scope with its q queries, its n turns and the m summaries above them.

    :param rows: rows of the queries; ``span``: place of the turns.
    :param own: (q, n) cosines of the turns; ``summaries``: (q, m).
    :param turn: number of a turn for each turn of each summary, ascending within a summary; ``node``: its summary.
    :param level: (m,) layers; ``top``: (m,) whether there is nothing above.
    :param child: (c, 2) numbers of a summary and of one right below it.
    """

    rows: np.ndarray
    span: slice
    own: np.ndarray
    summaries: np.ndarray
    turn: np.ndarray
    node: np.ndarray
    level: np.ndarray
    child: np.ndarray
    top: np.ndarray


def _scopes(bench: Bench, trees: Mapping[str, Tree]) -> Iterator[_Scope]:
    documents = bench.documents("turn")
    vectors = documents.vectors()
    if bench.query_vectors is None:
        raise DataError("the queries are not embedded; make the bench with an encoder")
    for rows, span in bench.by_scope("turn"):
        summaries = trees[bench.queries["scope"][int(rows[0])]]
        nodes = summaries.nodes.with_row_index("node")
        places = pl.DataFrame({"turns": pl.Series(documents.ids[span], dtype=pl.String)}).with_row_index("turn")
        below = nodes.select("node", "turns").explode("turns").join(places, on="turns").sort("node", "turn")
        child = nodes.select(parent="node", node_id="children").explode("node_id").join(nodes, on="node_id")
        yield _Scope(
            rows,
            span,
            cosines(bench.query_vectors[rows], vectors[span]).astype(np.float64),
            cosines(bench.query_vectors[rows], summaries.vectors).astype(np.float64),
            below["turn"].to_numpy().astype(np.int64),
            below["node"].to_numpy().astype(np.int64),
            # Turns are the lowest layer of all, also where sessions are the leaves.
            nodes.select(pl.col("level") + (pl.col("kind") != "cluster"))["level"].to_numpy().astype(np.int64),
            child.select("parent", "node").sort("parent", "node").to_numpy().astype(np.int64),
            nodes["parent"].is_null().to_numpy(),
        )


class _Design(NamedTuple):
    """What a tree depends on beside its turns."""

    grouping: str
    given: bool = False
    tz: str = "UTC"
    seed: int = 0


def trees_of(
    bench: Bench, scopes: list[str], grouping: str, *, given: bool = False, tz: str = "UTC", seed: int = 0
) -> dict[str, Tree]:
    """Give the summaries above the turns of each scope, and their vectors; without the turns themselves.

    They are built once, and kept with the bench's documents. For the parameters see :func:`tree`.
    """
    if grouping not in GROUPINGS:
        raise DataError(f"grouping is {grouping!r}; choose from {', '.join(GROUPINGS)}")
    clusters, weeks = _Design("clusters", seed=seed), _Design("weeks", given=given, tz=tz)
    designs = {"clusters": [clusters], "weeks": [weeks], "mixed": [clusters, weeks], "none": []}[grouping]
    none = Tree(frame(Node), bench.documents("turn").vectors()[:0])
    forests = [_built(bench, scopes, design) for design in designs]
    joined = {}
    for scope in scopes:
        parts = [none, *(forest[scope] for forest in forests)]
        joined[scope] = Tree(pl.concat(part.nodes for part in parts), np.concatenate([part.vectors for part in parts]))
    return joined


@once
def _forest(bench: Bench, design: _Design) -> dict[str, Tree]:
    """Give where the trees of a design are kept, scope by scope."""
    return {}


def _built(bench: Bench, scopes: list[str], design: _Design) -> dict[str, Tree]:
    documents = bench.documents("turn")
    made = _forest(bench, design)
    missing = [scope for scope in scopes if scope not in made]
    if not missing:
        return made
    turns = bench.turns.filter(pl.col("scope").is_in(missing))
    at = documents.at(turns["turn_id"])
    order = np.argsort(at, kind="stable")
    turns, at = turns[order], at[order]
    if design.grouping == "clusters":
        grown = grow(turns, encoder=bench.embedder(), vectors=documents.vectors()[at], seed=design.seed)
    else:
        writer = Given(bench.sessions) if design.given else None
        nodes = rollup(turns, sessions=bench.sessions, tz=design.tz, summariser=writer)
        grown = Tree(nodes, bench.embedder().encode(nodes["text"].to_list()))
    for scope in missing:
        rows = ((grown.nodes["scope"] == scope) & (grown.nodes["kind"] != "turn")).arg_true().to_numpy()
        made[scope] = Tree(grown.nodes[rows], grown.vectors[rows])
    return made


def _best(scope: _Scope, search: str, turns: int, beam: int, k: int | None) -> tuple[np.ndarray, ...]:
    """Rank a scope's turns for its queries: rows of the queries, places and scores of the turns, each (q, k)."""
    key = _collapsed(scope, turns) if search == "collapsed" else _reached(scope, beam)
    order = np.lexsort((-scope.own, -key), axis=1)[:, :k]
    # Depths are whole numbers, so that the cosine decides among turns of one depth; scores of nodes stay as they are.
    score = key if search == "collapsed" else key + (scope.own + 1) / 4
    rows = np.broadcast_to(scope.rows[:, None], order.shape)
    return rows, scope.span.start + order, np.take_along_axis(score, order, axis=1)


def _collapsed(scope: _Scope, turns: int) -> np.ndarray:
    """Give each turn the cosine of the best node that brings it, itself among them: (q, n)."""
    best = scope.own.copy()
    nearest = places_within(scope.own[:, scope.turn], scope.node) < turns
    np.maximum.at(best.T, scope.turn, np.where(nearest, scope.summaries[:, scope.node], -np.inf).T)
    return best


def _reached(scope: _Scope, beam: int) -> np.ndarray:
    """Say for each turn how many layers the beam comes down to it: (q, n)."""
    depth = np.zeros(scope.own.shape)
    open_nodes = np.broadcast_to(scope.top, scope.summaries.shape).copy()
    parent, child = scope.child.T
    for layers, level in enumerate(sorted(set(scope.level.tolist()), reverse=True), 1):
        here = np.flatnonzero(scope.level == level)
        value = np.where(open_nodes[:, here], scope.summaries[:, here], -np.inf)
        place = np.argsort(np.argsort(-value, axis=1, kind="stable"), axis=1, kind="stable")
        near = np.zeros(scope.summaries.shape, bool)
        near[:, here] = (place < beam) & (value > -np.inf)
        inside = scope.level[parent] == level
        np.logical_or.at(open_nodes.T, child[inside], near[:, parent[inside]].T)
        of_turns = np.isin(scope.node, here)
        np.maximum.at(depth.T, scope.turn[of_turns], layers * near.T[scope.node[of_turns]])
    return depth


def _run(bench: Bench, ranked: list[tuple[np.ndarray, ...]]) -> Run:
    k = max((part.shape[1] for _, part, _ in ranked), default=1)
    return placed(bench, [(rows.ravel(), at.ravel(), scores.ravel()) for rows, at, scores in ranked], level="turn", k=k)
