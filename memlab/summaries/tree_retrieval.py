"""Retrieval through summaries of weeks or clusters, which give their turns, or are results
themselves.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
import polars as pl

from memlab.errors import DataError, check_at_least, warn_user
from memlab.llm.token_spending import get_or_make_result_with_spending
from memlab.records import Level, Run
from memlab.registry import Count, Seed, stage
from memlab.retrieve import Bench
from memlab.retrieve.bench import cache_per_bench_with
from memlab.retrieve.cosine import cosines
from memlab.retrieve.documents import first_row_of_each_group
from memlab.retrieve.rankings_from_scores import ScoredPairs, rank_scored_pairs
from memlab.summaries.raptor_trees import Tree
from memlab.summaries.stored_trees import TreeDesign, read_or_write_tree
from memlab.summaries.summary_rows import NODES, fallback_note

TreeKind = Literal["weeks", "clusters", "both"]
TREE_KINDS = get_args(TreeKind)


@stage
def tree(
    bench: Bench,
    *,
    level: Level = "turn",
    k: Count = 200,
    over: TreeKind = "clusters",
    turns: Count = 5,
    service: str | None = None,
    tz: str = "UTC",
    seed: Seed = 0,
) -> Run:
    """Rank turns by themselves and by the summaries above them: the collapsed tree of RAPTOR.

    Turns and summaries are one pool in order of their cosine with the question; a summary gives its
    turns that are nearest to the question, each turn once. Summaries are written once for a bench,
    and kept in its store; one question is ranked at a time.

    :param over: ``weeks`` (sessions, weeks and months, see :func:`memlab.summaries.rollup`),
        ``clusters`` (:func:`memlab.summaries.build_raptor_tree`), or ``both``.
    :param turns: how many turns a summary gives.
    :param service: who writes them, see :func:`memlab.summaries.summarize_sessions`; ``recorded``
        reads answers.
    :param tz: name of the time zone in which weeks begin.
    :param seed: of the grouping into clusters; recorded groups have none.
    :raises DataError: for a count below 1, another ``over``, an unknown time zone, or without an
        encoder.
    :raises ModelError: when the service cannot be asked at all.

    Source: Sarthi et al., "RAPTOR", ICLR 2024, section 3 (collapsed tree).

    >>> import memlab
    >>> from memlab.sessions import sessions_of
    >>> said = [f"On day {n} we saw hill {n}." for n in range(9)]
    >>> rows = []
    >>> for n, text in enumerate(said):
    ...     rows.append(memlab.Turn(f"u/s/{n}", "u", "u/s", n, "Mel", "user", text))
    >>> turns = memlab.records.frame(memlab.Turn, rows)
    >>> data = memlab.Dataset("trip", "example", turns, sessions_of(turns))
    >>> bench = memlab.Bench.of(data, encoder="hashing:64")
    >>> question = {"scope": ["u"], "text": ["When did we see hill 3?"]}
    >>> bench = bench.with_queries(pl.DataFrame(question))
    >>> memlab.summaries.tree(bench, over="weeks", k=3).frame["doc_id"][0]
    'u/s/3'
    """
    check_at_least(1, k=k, turns=turns)
    rankings = []
    documents = bench.documents("turn")
    for question_rows, turn_span, scope_tree in _trees_of_scopes_with_questions(
        bench, over=over, service=service, tz=tz, seed=seed
    ):
        turn_sessions = documents.session[turn_span]
        result_places = turn_span.start + np.arange(turn_span.stop - turn_span.start)
        turns_per_node = scope_tree.nodes["turns"].list.len().to_numpy()
        node_of_turn = np.repeat(np.arange(len(turns_per_node)), turns_per_node)
        turn_places = documents.at(scope_tree.nodes["turns"].explode()) - turn_span.start
        place_in_node = np.arange(len(turn_places)) - np.repeat(
            turns_per_node.cumsum() - turns_per_node, turns_per_node
        )
        for question_row in question_rows:
            turn_scores = _cosines_with_question(
                bench, question_row, documents.vectors()[turn_span]
            )
            node_scores = _cosines_with_question(bench, question_row, scope_tree.vectors)
            nearest_turns = np.lexsort((turn_places, -turn_scores[turn_places], node_of_turn))[
                place_in_node < turns
            ]
            best_scores = turn_scores.copy()
            np.maximum.at(
                best_scores, turn_places[nearest_turns], node_scores[node_of_turn[nearest_turns]]
            )
            if level == "session":
                first_turns = first_row_of_each_group(turn_sessions)
                turn_scores, best_scores = (
                    np.maximum.reduceat(level_scores, first_turns)
                    for level_scores in (turn_scores, best_scores)
                )
                result_places = turn_sessions[first_turns]
            score_order = np.lexsort((-turn_scores, -best_scores))[:k]
            rankings.append(
                ScoredPairs(
                    np.full(len(score_order), question_row),
                    result_places[score_order],
                    best_scores[score_order],
                )
            )
    return rank_scored_pairs(bench, rankings, level=level, k=k)


def nearest_summaries(
    bench: Bench, *, k: int = 3, over: str = "weeks", **design: Any
) -> pl.DataFrame:
    """Give the summaries that are most similar to each question.

    :param over: as for :func:`tree`, like ``service``, ``tz`` and ``seed``.
    :returns: ``query_id``, ``rank``, ``score`` (cosine) and the columns of
        :class:`memlab.records.Node`.
    """
    check_at_least(1, k=k)
    summary_parts = [
        pl.DataFrame(
            schema={"query_id": pl.String(), "rank": pl.Int64(), "score": pl.Float64(), **NODES}
        )
    ]
    for question_rows, _, scope_tree in _trees_of_scopes_with_questions(bench, over=over, **design):
        for question_row in question_rows.tolist():
            node_scores = _cosines_with_question(bench, question_row, scope_tree.vectors)
            score_order = np.argsort(-node_scores, kind="stable")[:k]
            key_columns = {
                "query_id": [bench.queries["query_id"][question_row]] * len(score_order),
                "rank": range(1, len(score_order) + 1),
            }
            summary_parts.append(
                pl.DataFrame(key_columns | {"score": node_scores[score_order]}).hstack(
                    scope_tree.nodes[score_order]
                )
            )
    return pl.concat(summary_parts)


def summary_tree(
    bench: Bench, over: str, *, service: str | None = None, tz: str = "UTC", seed: int = 0
) -> Tree:
    """Give the summaries of a bench's conversations with their vectors, made once for the bench.

    With a store they are read from it where nothing changed below them, and else made and kept
    there; a model is asked only for what changed.

    :raises DataError: for another ``over``, an unknown time zone, or without an encoder.
    """
    if over not in TREE_KINDS:
        raise DataError(f"over is {over!r}; choose from {', '.join(TREE_KINDS)}")
    # What a kind does not depend on is left out, so that it is not written again.
    design_by_kind = {"weeks": (service, tz, 0), "clusters": (service, "", seed)}
    built_trees = [
        _read_or_write_tree_once(bench, tree_kind, *kind_design)
        for tree_kind, kind_design in design_by_kind.items()
        if over in (tree_kind, "both")
    ]
    return Tree(
        pl.concat(built_tree.nodes for built_tree in built_trees),
        np.concatenate([built_tree.vectors for built_tree in built_trees]),
    )


@cache_per_bench_with(get_or_make_result_with_spending)
def _read_or_write_tree_once(
    bench: Bench, over: str, service: str | None, tz: str, seed: int
) -> Tree:
    built_tree = read_or_write_tree(bench, TreeDesign(over, service, tz, seed))
    if service and (fallback_line := fallback_note(built_tree.nodes, "summaries")):
        warn_user(fallback_line)
    return built_tree


class _ScopeTree(NamedTuple):
    """The rows of the questions of a scope, the span of its turns, and its summaries."""

    question_rows: np.ndarray
    turn_span: slice
    tree: Tree


def _trees_of_scopes_with_questions(bench: Bench, **tree_design: Any) -> Iterator[_ScopeTree]:
    """Go through the scopes that have questions."""
    if bench.query_vectors is None:
        raise DataError("the queries are not embedded; make the bench with an encoder")
    all_scopes = summary_tree(bench, **tree_design)
    for question_rows, turn_span in bench.by_scope("turn"):
        scope_nodes = (
            (all_scopes.nodes["scope"] == bench.queries["scope"][int(question_rows[0])])
            .arg_true()
            .to_numpy()
        )
        yield _ScopeTree(
            question_rows,
            turn_span,
            Tree(all_scopes.nodes[scope_nodes], all_scopes.vectors[scope_nodes]),
        )


def _cosines_with_question(bench: Bench, question_row: int, vectors: np.ndarray) -> np.ndarray:
    return cosines(bench.require_query_vectors()[question_row : question_row + 1], vectors)[
        0
    ].astype(np.float64)
