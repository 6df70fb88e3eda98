"""Retrieval through summaries: weeks or clusters find the turns below them, or are given themselves."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import polars as pl

from memlab.errors import DataError, at_least
from memlab.records import Level, Run
from memlab.registry import stage
from memlab.retrieve import Bench
from memlab.retrieve.arrays import cosines, starts
from memlab.retrieve.bench import once
from memlab.retrieve.ranking import placed
from memlab.summaries.nodes import NODES
from memlab.summaries.periods import rollup
from memlab.summaries.raptor import Tree, grow
from memlab.summaries.writing import unwritten

OVER = ("weeks", "clusters", "both")


@stage
def tree(
    bench: Bench,
    *,
    level: Level = "turn",
    k: int = 200,
    over: str = "clusters",
    turns: int = 5,
    service: str | None = None,
    tz: str = "UTC",
    seed: int = 0,
) -> Run:
    """Rank turns by the summaries that stand on them, and by themselves: the collapsed tree of RAPTOR.

    Turns and summaries are one pool in order of their cosine with the question; a summary gives its turns that are
    nearest to the question, each turn once. Summaries are written once for a bench; one question is ranked at a time.

    :param over: ``weeks`` (sessions, weeks and months, see :func:`memlab.summaries.rollup`), ``clusters``
        (:func:`memlab.summaries.grow`), or ``both``.
    :param turns: how many turns a summary gives.
    :param service: who writes the summaries, see :func:`memlab.summaries.summarize`; ``recorded`` reads answers.
    :param tz: name of the time zone in which weeks begin.
    :param seed: of the clusters.
    :raises DataError: for a count below 1, another ``over``, an unknown time zone, or without an encoder.
    :raises ModelError: when the service cannot be asked at all.

    Source: Sarthi et al., "RAPTOR", ICLR 2024, section 3 (collapsed tree).

    >>> import memlab
    >>> from memlab.sessions import sessions_of
    >>> said = [f"On day {n} we climbed hill {n}." for n in range(9)]
    >>> rows = [memlab.Turn(f"u/s/{n}", "u", "u/s", n, "Mel", "user", text) for n, text in enumerate(said)]
    >>> turns = memlab.records.frame(memlab.Turn, rows)
    >>> bench = memlab.Bench.of(memlab.Dataset("trip", "example", turns, sessions_of(turns)), encoder="hashing:64")
    >>> bench = bench.with_queries(pl.DataFrame({"scope": ["u"], "text": ["When did we climb hill 3?"]}))
    >>> memlab.summaries.tree(bench, over="weeks", k=3).frame["doc_id"][0]
    'u/s/3'
    """
    at_least(1, k=k, turns=turns)
    found = []
    documents = bench.documents("turn")
    for rows, span, made, members in _scopes(bench, over, service, tz, seed):
        session, first = documents.session[span], starts(documents.session[span])
        for row in rows:
            own, theirs = _cosines(bench, row, documents.vectors()[span]), _cosines(bench, row, made.vectors)
            best = _raised(own, theirs, members, turns, k if level == "turn" else len(own))
            at = span.start + np.arange(len(own))
            if level == "session":
                own, best = np.maximum.reduceat(own, first), np.maximum.reduceat(best, first)
                at = session[first]
            order = np.lexsort((-own, -best))[:k]
            found.append((np.full(len(order), row), at[order], best[order]))
    return placed(bench, found, level=level, k=k)


def nearest_summaries(
    bench: Bench, *, over: str = "weeks", k: int = 3, service: str | None = None, tz: str = "UTC", seed: int = 0
) -> pl.DataFrame:
    """Give the summaries themselves that are nearest to each question; parameters as for :func:`tree`.

    :returns: ``query_id``, ``rank``, ``score`` (cosine) and the columns of :class:`memlab.records.Node`.
    """
    at_least(1, k=k)
    parts = [pl.DataFrame(schema={"query_id": pl.String(), "rank": pl.Int64(), "score": pl.Float64(), **NODES})]
    for rows, _, made, _ in _scopes(bench, over, service, tz, seed):
        for row in rows:
            score = _cosines(bench, row, made.vectors)
            order = np.argsort(-score, kind="stable")[:k]
            head = {"query_id": [bench.queries["query_id"][int(row)]] * len(order), "rank": range(1, len(order) + 1)}
            parts.append(pl.DataFrame(head | {"score": score[order]}).hstack(made.nodes[order]))
    return pl.concat(parts)


def trees_of(bench: Bench, over: str, *, service: str | None = None, tz: str = "UTC", seed: int = 0) -> dict[str, Tree]:
    """Give the summaries of each scope of a bench and their vectors; they are written once, and kept with the bench.

    :raises DataError: for another ``over``, an unknown time zone, or without an encoder.
    """
    if over not in OVER:
        raise DataError(f"over is {over!r}; choose from {', '.join(OVER)}")
    if over != "both":
        return _made(bench, over, service, tz if over == "weeks" else "", seed if over == "clusters" else 0)
    weeks, clusters = (trees_of(bench, each, service=service, tz=tz, seed=seed) for each in ("weeks", "clusters"))
    both = {scope: (weeks[scope], clusters[scope]) for scope in weeks}
    return {
        scope: Tree(pl.concat([a.nodes, b.nodes]), np.concatenate([a.vectors, b.vectors]))
        for scope, (a, b) in both.items()
    }


@once
def _made(bench: Bench, over: str, service: str | None, tz: str, seed: int) -> dict[str, Tree]:
    documents = bench.documents("turn")
    at = documents.at(bench.turns["turn_id"])
    order = np.argsort(at, kind="stable")
    turns, embedder = bench.turns[order], bench.embedder()
    if over == "clusters":
        made = grow(turns, encoder=embedder, vectors=documents.vectors()[at[order]], service=service, seed=seed)
    else:
        nodes = rollup(turns, service=service, tz=tz)
        made = Tree(nodes, np.asarray(embedder.encode(nodes["text"].to_list())))
    if service and (line := unwritten(made.nodes, "summaries")):
        warnings.warn(line, stacklevel=4)
    rows = {scope: (made.nodes["scope"] == scope).arg_true().to_numpy() for scope in documents.spans}
    return {scope: Tree(made.nodes[at], made.vectors[at]) for scope, at in rows.items()}


def _scopes(bench: Bench, *design: Any) -> Iterator[tuple[np.ndarray, slice, Tree, list[np.ndarray]]]:
    """Go through the scopes with questions: rows of these, place of the turns, summaries, and the turns of each."""
    if bench.query_vectors is None:
        raise DataError("the queries are not embedded; make the bench with an encoder")
    over, service, tz, seed = design
    trees, documents = trees_of(bench, over, service=service, tz=tz, seed=seed), bench.documents("turn")
    for rows, span in bench.by_scope("turn"):
        made = trees[bench.queries["scope"][int(rows[0])]]
        yield rows, span, made, [np.sort(documents.at(ids)) - span.start for ids in made.nodes["turns"]]


def _cosines(bench: Bench, row: int, vectors: np.ndarray) -> np.ndarray:
    return cosines(bench.query_vectors[row : row + 1], vectors)[0].astype(np.float64)


def _raised(own: np.ndarray, summaries: np.ndarray, members: list[np.ndarray], turns: int, k: int) -> np.ndarray:
    """Give each turn the cosine of the best node that gives it, itself among them; exact for the first ``k``: (n,)."""
    best = own.copy()
    # A summary that is further than the k-th turn changes nothing among the first k.
    least = np.partition(own, len(own) - k)[len(own) - k] if k < len(own) else -np.inf
    for node in np.flatnonzero(summaries >= least):
        within = members[node]
        nearest = within[np.argsort(-own[within], kind="stable")[:turns]]
        best[nearest] = np.maximum(best[nearest], summaries[node])
    return best
