"""Retrieval over a tree of summaries: nodes find the turns below them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np
import polars as pl

from memlab.errors import DataError
from memlab.records import Level, Node, Run, frame, run_from_scores
from memlab.registry import stage
from memlab.retrieve import Bench, sessions_from_turns
from memlab.retrieve.dense import cosines
from memlab.retrieve.index import Documents
from memlab.retrieve.two_stage import places_within
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
    kept, and only what is below them is looked at. Turns that are reached further down come first, by their own cosine
    with the query; those that a layer has cut off follow. So both rank every turn, and can be cut at ``k`` or by
    ``budget``.

    The trees are built once for a bench, without a model.

    :param k: places kept for each query.
    :param grouping: what puts turns together: ``clusters`` of like turns (:func:`memlab.rollup.grow`), ``weeks``
        (sessions, weeks and months: :func:`memlab.rollup.rollup`), ``mixed`` for the nodes of both, or ``none`` for no
        tree: turns alone, the control.
    :param search: ``collapsed`` or ``traversal``.
    :param turns: of a summary found by ``collapsed``, so many turns are given in its place; ``traversal`` ignores it.
    :param beam: of each layer, so many nodes are kept by ``traversal``; ``collapsed`` ignores it.
    :param given: whether sessions keep the summaries that the dataset brings with it (:class:`memlab.rollup.Given`);
        what is above them, and sessions without one, is extractive.
    :param tz: name of the time zone in which days and weeks begin.
    :param seed: of the clusters.
    :raises DataError: for a count below 1, an unknown grouping, search or time zone, or without an encoder.

    Source: Sarthi et al., "RAPTOR", ICLR 2024, section 3 (tree traversal, collapsed tree).

    >>> from memlab import datasets, retrieve
    >>> from memlab.rollup import tree
    >>> bench = retrieve.Bench.of(datasets.synthetic.generate(turns=60, seed=0), encoder="hashing")
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
    run = _run(bench, ranked, max((part[1].shape[1] for part in ranked), default=1))
    return run if level == "turn" else sessions_from_turns(run, bench, k=k)


class _Above(NamedTuple):
    """The summaries of one scope, by number, and how they stand above its turns.

    :param vectors: (m, d) of the summaries.
    :param turn: (e,) number of a turn within the scope, for each turn of each node; ascending within a node.
    :param node: (e,) number of its node, ascending.
    :param level: (m,) layer of each summary.
    :param child: (c, 2) numbers of a node and of a summary right below it.
    :param top: (m,) whether there is nothing above it.
    """

    vectors: np.ndarray
    turn: np.ndarray
    node: np.ndarray
    level: np.ndarray
    child: np.ndarray
    top: np.ndarray


class _Scope(NamedTuple):
    """One scope with its queries.

    :param rows: (q,) rows of the queries.
    :param span: place of the scope's n turns.
    :param own: (q, n) cosines of the turns.
    :param summaries: (q, m) their cosines.
    """

    rows: np.ndarray
    span: slice
    own: np.ndarray
    summaries: np.ndarray
    above: _Above


def _scopes(bench: Bench, trees: Mapping[str, Tree]) -> Iterator[_Scope]:
    documents = bench.documents("turn")
    vectors = documents.vectors()
    if bench.query_vectors is None:
        raise DataError("the queries are not embedded; make the bench with an encoder")
    for rows, span in bench.by_scope("turn"):
        summaries = trees[bench.queries["scope"][int(rows[0])]]
        above = _above(summaries.nodes, summaries.vectors, documents.ids[span])
        own = cosines(bench.query_vectors[rows], vectors[span])
        summary_cosines = cosines(bench.query_vectors[rows], above.vectors)
        yield _Scope(rows, span, own.astype(np.float64), summary_cosines.astype(np.float64), above)


def trees_of(
    bench: Bench, scopes: list[str], grouping: str, *, given: bool = False, tz: str = "UTC", seed: int = 0
) -> dict[str, Tree]:
    """Give the summaries above the turns of each scope, and their vectors; without the turns themselves.

    What is not yet built is built, and kept with the bench's documents.

    :param grouping: see :func:`tree`, as for the others.
    """
    if grouping not in GROUPINGS:
        raise DataError(f"grouping is {grouping!r}; choose from {', '.join(GROUPINGS)}")
    clusters, weeks = _Design("clusters", seed=seed), _Design("weeks", given=given, tz=tz)
    designs = {"clusters": [clusters], "weeks": [weeks], "mixed": [clusters, weeks], "none": []}[grouping]
    parts = [_built(bench, scopes, design) for design in designs]
    none = Tree(frame(Node), bench.documents("turn").vectors()[:0])
    return {scope: _joined([none, *(part[scope] for part in parts)]) for scope in scopes}


def _joined(parts: list[Tree]) -> Tree:
    return Tree(pl.concat([part.nodes for part in parts]), np.concatenate([part.vectors for part in parts]))


class _Design(NamedTuple):
    """What a tree depends on beside its turns."""

    grouping: str
    given: bool = False
    tz: str = "UTC"
    seed: int = 0


def _forest(documents: Documents, design: _Design) -> dict[str, Tree]:
    """Give where the trees of a design are kept, scope by scope."""
    return {}


def _built(bench: Bench, scopes: list[str], design: _Design) -> dict[str, Tree]:
    documents = bench.documents("turn")
    made = documents.made(_forest, design)
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


def _above(nodes: pl.DataFrame, vectors: np.ndarray, turn_ids: np.ndarray) -> _Above:
    numbers = nodes.select("node_id").with_row_index("number")
    places = pl.DataFrame({"turns": pl.Series(turn_ids, dtype=pl.String)}).with_row_index("place")
    below = nodes.select("turns").with_row_index("number").explode("turns").join(places, on="turns")
    below = below.sort("number", "place")
    child = (
        nodes.select(node_id="children")
        .with_row_index("parent")
        .explode("node_id")
        .join(numbers, on="node_id")
        .select("parent", "number")
        .sort("parent", "number")
    )
    return _Above(
        vectors,
        below["place"].to_numpy().astype(np.int64),
        below["number"].to_numpy().astype(np.int64),
        # Turns are the lowest layer of all, also where sessions are the leaves.
        nodes.select(pl.col("level") + (pl.col("kind") != "cluster"))["level"].to_numpy().astype(np.int64),
        child.to_numpy().astype(np.int64),
        nodes["parent"].is_null().to_numpy(),
    )


def _best(scope: _Scope, search: str, turns: int, beam: int, k: int | None) -> tuple[np.ndarray, ...]:
    """Rank a scope's turns for its queries: rows of the queries, places and scores (q, k) of the turns."""
    key = _collapsed(scope, turns) if search == "collapsed" else _reached(scope, beam)
    order = np.lexsort((-scope.own, -key), axis=1)[:, :k]
    # Depths are whole numbers, so that the cosine decides among turns of one depth; scores of nodes stay as they are.
    score = key if search == "collapsed" else key + (scope.own + 1) / 4
    return scope.rows, scope.span.start + order, np.take_along_axis(score, order, axis=1)


def _collapsed(scope: _Scope, turns: int) -> np.ndarray:
    """Give each turn the cosine of the best node that brings it, itself among them: (q, n)."""
    best = scope.own.copy()
    turn, node = scope.above.turn, scope.above.node
    if not len(turn):
        return best
    nearest = places_within(scope.own[:, turn], node) < turns
    brought = np.where(nearest, scope.summaries[:, node], -np.inf)
    order = np.argsort(turn, kind="stable")
    starts = np.flatnonzero(np.r_[True, turn[order][1:] != turn[order][:-1]])
    top = np.maximum.reduceat(brought[:, order], starts, axis=1)
    with_node = turn[order][starts]
    best[:, with_node] = np.maximum(best[:, with_node], top)
    return best


def _reached(scope: _Scope, beam: int) -> np.ndarray:
    """Say for each turn how many layers the beam comes down to it: (q, n)."""
    above, depth = scope.above, np.zeros(scope.own.shape)
    open_nodes = np.broadcast_to(above.top, scope.summaries.shape).copy()
    parent, child = above.child.T
    for layers, level in enumerate(sorted(set(above.level.tolist()), reverse=True), 1):
        here = np.flatnonzero(above.level == level)
        value = np.where(open_nodes[:, here], scope.summaries[:, here], -np.inf)
        place = np.argsort(np.argsort(-value, axis=1, kind="stable"), axis=1, kind="stable")
        kept = np.zeros(scope.summaries.shape, bool)
        kept[:, here] = (place < beam) & (value > -np.inf)
        inside = above.level[parent] == level
        for_child = kept[:, parent[inside]]
        np.logical_or.at(open_nodes.T, child[inside], for_child.T)
        of_turns = np.isin(above.node, here)
        np.maximum.at(depth.T, above.turn[of_turns], layers * kept.T[above.node[of_turns]])
    return depth


def _run(bench: Bench, ranked: list[tuple[np.ndarray, ...]], k: int) -> Run:
    ids, query_ids = bench.documents("turn").ids, bench.queries["query_id"].to_numpy()
    rows = [np.repeat(rows, places.shape[1]) for rows, places, _ in ranked]
    row = np.concatenate([*rows, np.zeros(0, np.int64)])
    order = np.argsort(row, kind="stable")
    places = np.concatenate([*(places.ravel() for _, places, _ in ranked), np.zeros(0, np.int64)])[order]
    scores = np.concatenate([*(scores.ravel() for *_, scores in ranked), np.zeros(0)])[order]
    run = run_from_scores(query_ids[row[order]], ids[places], scores, level="turn", k=max(k, 1))
    return bench.show(run)
