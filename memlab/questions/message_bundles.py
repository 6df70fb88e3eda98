"""Bundles: messages of one memory that belong together, of which one prompt proposes questions.

Four sorts. A ``theme`` is a branch of the tree of facts, or all that is stated of one person or
thing, in two sessions or more. A ``change`` is what facts replaced, ended or corrected. A
``session`` is consecutive messages of one session. ``absent`` is a theme again, of which is asked
what nobody said. Where no model read facts, the tree is one of messages, and there are no changes.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any, TypeVar

import numpy as np
import polars as pl

from memlab.cluster import merge_tree
from memlab.knowledge.known_facts import meaning_id_of_fact
from memlab.questions.question_kinds import (
    KINDS,
    PURPOSES,
    SPREAD_KINDS,
    TIMED_KINDS,
    share_questions_by_kind,
)

MOST_MESSAGES, FEWEST = 20, 4
"""Messages of a prompt, and of a theme at least."""
SPARE = 1.5
"""So many times the wanted questions are asked for: models give fewer, and checks drop some."""
PER_BUNDLE: Mapping[str, int] = {"theme": 4, "change": 4, "session": 3, "absent": 4}
"""Questions that a prompt asks for at most."""
UPDATING = frozenset({"replaces", "ends", "came_about", "cancelled", "was_wrong"})
MOST_STATEMENTS = 5_000
"""Facts or messages of a tree; of a longer memory as many are taken at even distances."""
T = TypeVar("T")
Encode = Callable[[list[str]], np.ndarray]


@dataclass(frozen=True)
class Bundle:
    """Messages that belong together.

    :param purpose: ``theme``, ``change``, ``session`` or ``absent``.
    :param turns: ids of the messages, in their order.
    :param kinds: that are asked for.
    :param most: questions that are asked for at most.
    """

    purpose: str
    scope: str
    turns: tuple[str, ...]
    kinds: tuple[str, ...]
    most: int


@dataclass(frozen=True)
class _Statement:
    """A fact or a message, to be put beside others."""

    about: str
    text: str
    turns: tuple[str, ...]


def gather_message_bundles(
    turns: pl.DataFrame, facts: pl.DataFrame, encode: Encode, n_questions: int, *, seed: int = 0
) -> list[Bundle]:
    """Gather the bundles of one memory of which about ``n_questions`` questions can be proposed.

    :param turns: rows of :class:`memlab.records.Turn` of one scope, in their order.
    :param facts: rows of :class:`memlab.records.Fact` of the scope, in their order; may be empty.
    :param encode: gives the unit vectors of texts: (n, d).
    :param seed: of what is drawn where there are more bundles than are needed.
    :returns: themes first, then changes, sessions and what is absent; of a memory of one session,
        sessions and what is absent alone.
    """
    scope = turns["scope"][0]
    possible_kinds = _question_kinds_possible_for(turns)
    wanted_by_kind = share_questions_by_kind(ceil(n_questions * SPARE), possible_kinds)
    place_by_turn = {turn_id: turn_place for turn_place, turn_id in enumerate(turns["turn_id"])}
    session_of = dict(turns.select("turn_id", "session_id").iter_rows())
    statements = _facts_or_messages_as_statements(turns, facts, place_by_turn)
    random_draw = random.Random(f"{seed}:{scope}")
    theme_groups = _keep_spread_groups_in_drawn_order(
        _turn_groups_of_themes_and_subjects(statements, encode, place_by_turn),
        session_of,
        random_draw,
    )
    change_groups = _keep_spread_groups_in_drawn_order(
        _turn_groups_of_changed_fact_chains(facts, place_by_turn), session_of, random_draw
    )
    session_groups = _first_turn_ids_of_each_long_session(turns)
    random_draw.shuffle(session_groups)
    groups_by_purpose = {
        "theme": theme_groups,
        "change": _merge_groups_up_to_prompt_size(change_groups, place_by_turn),
        "session": session_groups,
        "absent": [*reversed(theme_groups)] or session_groups,
    }
    # A kind that several sorts ask for counts for the first that there are bundles of.
    bundles = list[Bundle]()
    for purpose, purpose_groups in groups_by_purpose.items():
        asked_kinds = tuple(filter(wanted_by_kind.__contains__, PURPOSES[purpose]))
        n_wanted = sum(map(wanted_by_kind.__getitem__, asked_kinds))
        if not purpose_groups:
            continue
        n_prompts = min(len(purpose_groups), ceil(n_wanted / PER_BUNDLE[purpose]))
        for member_turns in _choose_groups_sharing_few_turns(purpose_groups, n_prompts):
            bundles.append(Bundle(purpose, scope, member_turns, asked_kinds, PER_BUNDLE[purpose]))
        if purpose != "change":
            wanted_by_kind |= dict.fromkeys(asked_kinds, 0)
    return bundles


def _question_kinds_possible_for(turns: pl.DataFrame) -> list[str]:
    """Give the kinds that can be asked of a memory, by its sessions and times."""
    excluded_kinds = set[str]()
    if turns["session_id"].n_unique() < 2:
        excluded_kinds |= {"knowledge-update", *SPREAD_KINDS}
    if not turns["timestamp"].count():
        excluded_kinds |= TIMED_KINDS
    return [kind for kind in KINDS if kind not in excluded_kinds]


def _facts_or_messages_as_statements(
    turns: pl.DataFrame, facts: pl.DataFrame, place_by_turn: Mapping[str, int]
) -> list[_Statement]:
    """Give the facts, or the messages of persons where there are none."""
    statements = list[_Statement]()
    for fact in facts.iter_rows(named=True):
        cited_turns = tuple(filter(place_by_turn.__contains__, fact["evidence"]))
        statement_text = fact["sentence"] or f"{fact['about']}: {fact['slot']}: {fact['value']}"
        if cited_turns:
            statements.append(_Statement(fact["about"].casefold(), statement_text, cited_turns))
    if statements:
        return _pick_at_even_distances(statements, MOST_STATEMENTS)
    spoken_turns = turns.filter(pl.col("role") != "assistant", pl.col("text").str.len_chars() > 0)
    for turn_id, speaker, statement_text in spoken_turns.select(
        "turn_id", "speaker", "text"
    ).iter_rows():
        statements.append(
            _Statement(speaker.casefold(), f"{speaker}: {statement_text}", (turn_id,))
        )
    return _pick_at_even_distances(statements, MOST_STATEMENTS)


def _turn_groups_of_themes_and_subjects(
    statements: Sequence[_Statement], encode: Encode, place_by_turn: Mapping[str, int]
) -> list[tuple[str, ...]]:
    """Give branches of the tree, each filled up with what is the nearest to it, and what is stated
    of one subject."""
    if len(statements) < 2:
        return []
    found_groups = list[tuple[str, ...]]()
    vectors = _subtract_subject_means(
        encode([statement.text for statement in statements]), statements
    )
    for members in _statement_rows_of_small_branches(vectors, statements):
        group_turns = _turns_cited_by_statement_rows(members, statements)
        nearest_rows = np.argsort(-vectors @ vectors[members].mean(axis=0), kind="stable")
        for row in nearest_rows.tolist():
            joined_turns = group_turns.union(statements[row].turns)
            if len(joined_turns) > MOST_MESSAGES:
                break
            group_turns = joined_turns
        found_groups.append(_sort_turns_by_place(group_turns, place_by_turn))
    statements_by_subject = dict[str, list[_Statement]]()
    for statement in statements:
        if statement.about:
            statements_by_subject.setdefault(statement.about, []).append(statement)
    for subject_statements in statements_by_subject.values():
        turns_of = _cited_turns_in_order(subject_statements, place_by_turn)
        if len(turns_of) <= 2 * MOST_MESSAGES:
            found_groups.append(_thin_turns_to_prompt_size(turns_of))
    large_groups = [group_turns for group_turns in found_groups if len(group_turns) >= FEWEST]
    return [*dict.fromkeys(large_groups)]


def _subtract_subject_means(vectors: np.ndarray, statements: Sequence[_Statement]) -> np.ndarray:
    """Subtract from each statement the mean of those of its subject, so that the matter is
    compared: unit rows."""
    centred = np.array(vectors, dtype=np.float64)
    rows_by_subject = dict[str, list[int]]()
    for row, statement in enumerate(statements):
        rows_by_subject.setdefault(statement.about, []).append(row)
    for subject_rows in rows_by_subject.values():
        if len(subject_rows) >= FEWEST:
            centred[subject_rows] -= centred[subject_rows].mean(axis=0)
    lengths = np.linalg.norm(centred, axis=1, keepdims=True)
    return centred / np.maximum(lengths, 1e-9)


def _statement_rows_of_small_branches(
    vectors: np.ndarray, statements: Sequence[_Statement]
) -> list[list[int]]:
    """Give the rows of the largest branches of the tree whose messages fill half of a prompt at
    most."""
    statement_tree = merge_tree(vectors)
    n_leaves = statement_tree.n_leaves
    rows_of_node: list[list[int]] = [[] for _ in range(n_leaves)]
    for row, leaf in enumerate(statement_tree.leaf_of.tolist()):
        rows_of_node[leaf].append(row)
    for left, right in statement_tree.children.tolist():
        rows_of_node.append(rows_of_node[left] + rows_of_node[right])
    found_branches = list[list[int]]()
    waiting_nodes = [len(rows_of_node) - 1]
    while waiting_nodes:
        node = waiting_nodes.pop()
        cited_turns = _turns_cited_by_statement_rows(rows_of_node[node], statements)
        if len(cited_turns) <= MOST_MESSAGES // 2:
            found_branches.append(rows_of_node[node])
        elif node >= n_leaves:
            waiting_nodes += statement_tree.children[node - n_leaves].tolist()
    return [rows for rows in found_branches if len(rows) > 1]


def _turn_groups_of_changed_fact_chains(
    facts: pl.DataFrame, place_by_turn: Mapping[str, int]
) -> list[tuple[str, ...]]:
    """Give the messages of facts that later facts replaced, ended or corrected, a group for each
    chain."""
    fact_rows = facts.to_dicts()
    earlier_place = list(range(len(fact_rows)))

    def first_place_of_chain(fact_place: int) -> int:
        while earlier_place[fact_place] != fact_place:
            fact_place = earlier_place[fact_place]
        return fact_place

    last_place = dict[str, int]()
    for fact_place, fact in enumerate(fact_rows):
        for effect, target in zip(fact["effects"], fact["affected"], strict=True):
            if effect in UPDATING and target in last_place:
                earlier_place[first_place_of_chain(fact_place)] = first_place_of_chain(
                    last_place[target]
                )
        last_place[meaning_id_of_fact(fact)] = fact_place
        last_place[fact["fact_id"]] = fact_place
    statements_by_chain = dict[int, list[_Statement]]()
    for fact_place, fact in enumerate(fact_rows):
        cited_turns = tuple(filter(place_by_turn.__contains__, fact["evidence"]))
        statements_by_chain.setdefault(first_place_of_chain(fact_place), []).append(
            _Statement("", "", cited_turns)
        )
    found_groups = list[tuple[str, ...]]()
    for chain in statements_by_chain.values():
        chain_turns = _cited_turns_in_order(chain, place_by_turn)
        if len(chain) > 1 and 1 < len(chain_turns) <= MOST_MESSAGES:
            found_groups.append(chain_turns)
    return found_groups


def _merge_groups_up_to_prompt_size(
    turn_groups: Sequence[tuple[str, ...]], place_by_turn: Mapping[str, int]
) -> list[tuple[str, ...]]:
    """Put small groups together, as many as fit a prompt, in their order."""
    packed_groups = list[set[str]]()
    for group_turns in turn_groups:
        if packed_groups and len(packed_groups[-1] | {*group_turns}) <= MOST_MESSAGES:
            packed_groups[-1] |= {*group_turns}
        else:
            packed_groups.append({*group_turns})
    return [_sort_turns_by_place(group_turns, place_by_turn) for group_turns in packed_groups]


def _first_turn_ids_of_each_long_session(turns: pl.DataFrame) -> list[tuple[str, ...]]:
    """Give the first messages of each session, as many as fit a prompt."""
    found_groups = list[tuple[str, ...]]()
    for _, session_turns in turns.group_by("session_id", maintain_order=True):
        found_groups.append(tuple(session_turns["turn_id"].head(MOST_MESSAGES)))
    largest_size = max(map(len, found_groups))
    return [
        member_turns
        for member_turns in found_groups
        if len(member_turns) >= min(FEWEST, largest_size)
    ]


def _cited_turns_in_order(
    statements: Sequence[_Statement], place_by_turn: Mapping[str, int]
) -> tuple[str, ...]:
    return _sort_turns_by_place(
        _turns_cited_by_statement_rows(range(len(statements)), statements), place_by_turn
    )


def _turns_cited_by_statement_rows(
    statement_rows: Iterable[int], statements: Sequence[_Statement]
) -> set[str]:
    cited_turns = set[str]()
    for row in statement_rows:
        cited_turns.update(statements[row].turns)
    return cited_turns


def _sort_turns_by_place(
    turn_ids: Iterable[str], place_by_turn: Mapping[str, int]
) -> tuple[str, ...]:
    return tuple(sorted(turn_ids, key=place_by_turn.__getitem__))


def _thin_turns_to_prompt_size(turn_ids: tuple[str, ...]) -> tuple[str, ...]:
    """Keep as many messages as fit a prompt, at even distances."""
    return tuple(_pick_at_even_distances(turn_ids, MOST_MESSAGES))


def _pick_at_even_distances(items: Sequence[T], max_items: int) -> list[T]:
    if len(items) <= max_items:
        return [*items]
    kept_places = np.linspace(0, len(items) - 1, max_items).round().astype(int)
    return [items[item_place] for item_place in kept_places.tolist()]


def _keep_spread_groups_in_drawn_order(
    turn_groups: Sequence[tuple[str, ...]],
    session_by_turn: Mapping[str, str],
    random_draw: random.Random,
) -> list[tuple[str, ...]]:
    """Keep the groups of two sessions or more, in an order that is drawn; those of three or more
    first.

    Not those of the most first: what lies in the most sessions has the least in common.
    """
    n_sessions = dict[tuple[str, ...], int]()
    for group_turns in turn_groups:
        n_sessions[group_turns] = len({*map(session_by_turn.__getitem__, group_turns)})
    spread_groups = [group_turns for group_turns in turn_groups if n_sessions[group_turns] > 1]
    random_draw.shuffle(spread_groups)
    in_two_sessions = [group_turns for group_turns in spread_groups if n_sessions[group_turns] == 2]
    return [
        group_turns for group_turns in spread_groups if n_sessions[group_turns] > 2
    ] + in_two_sessions


def _choose_groups_sharing_few_turns(
    turn_groups: Sequence[tuple[str, ...]], n_groups: int
) -> list[tuple[str, ...]]:
    """Choose groups that share few messages, the first ones of the list preferred."""
    chosen_groups = list[tuple[str, ...]]()
    seen_turns = set[str]()
    for most_shared in (0.34, 0.67, 1.0):
        for group_turns in turn_groups:
            if len(chosen_groups) == n_groups:
                return chosen_groups
            shared_part = len(seen_turns.intersection(group_turns)) / len(group_turns)
            if group_turns not in chosen_groups and shared_part <= most_shared:
                chosen_groups.append(group_turns)
                seen_turns.update(group_turns)
    return chosen_groups


def numbered_prompt_messages(bundle: Bundle, scope_turns: pl.DataFrame) -> list[dict[str, Any]]:
    """Give the messages of a bundle as a prompt shows them, numbered from 1.

    :param scope_turns: of the scope, in their order; the end of the message before one stands with
        it.
    """
    rows_with_earlier = scope_turns.with_columns(
        before=pl.col("text").shift().over("session_id"),
        asker=pl.col("speaker").shift().over("session_id"),
        earlier=pl.col("turn_id").shift().over("session_id"),
    )
    shown_turns = {*bundle.turns}
    entries = list[dict[str, Any]]()
    for row in rows_with_earlier.filter(pl.col("turn_id").is_in(list(shown_turns))).iter_rows(
        named=True
    ):
        entry: dict[str, Any] = {"id": len(entries) + 1}
        if row["timestamp"] is not None:
            entry["day"] = f"{row['timestamp']:%a %Y-%m-%d}"
        if row["earlier"] is not None and row["earlier"] not in shown_turns:
            entry["before"] = f"{row['asker']}: {_shorten_to_end(row['before'])}"
        entry["speaker"] = row["speaker"]
        entry["text"] = _shorten_to_beginning(row["text"] or row["caption"] or "")
        entries.append(entry)
    return entries


HEAD, TAIL = 420, 110
"""Characters of a message, and of the end of what was said before it."""


def _shorten_to_beginning(text: str) -> str:
    single_line = " ".join(text.split())
    if len(single_line) <= HEAD:
        return single_line
    return f"{single_line[:HEAD]} …"


def _shorten_to_end(text: str) -> str:
    single_line = " ".join(text.split())
    if len(single_line) <= TAIL:
        return single_line
    return f"… {single_line[-TAIL:]}"
