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
from memlab.knowledge.known_facts import fact_meaning
from memlab.questions.question_kinds import KINDS, PURPOSES, SPREAD_KINDS, TIMED_KINDS, share_out

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


def gather_bundles(
    turns: pl.DataFrame, facts: pl.DataFrame, encode: Encode, n: int, *, seed: int = 0
) -> list[Bundle]:
    """Gather the bundles of one memory of which about ``n`` questions can be proposed.

    :param turns: rows of :class:`memlab.records.Turn` of one scope, in their order.
    :param facts: rows of :class:`memlab.records.Fact` of the scope, in their order; may be empty.
    :param encode: gives the unit vectors of texts: (n, d).
    :param seed: of what is drawn where there are more bundles than are needed.
    :returns: themes first, then changes, sessions and what is absent; of a memory of one session,
        sessions and what is absent alone.
    """
    scope = turns["scope"][0]
    kinds = _possible_kinds(turns)
    wanted = share_out(ceil(n * SPARE), kinds)
    place = {turn: at for at, turn in enumerate(turns["turn_id"])}
    session_of = dict(turns.select("turn_id", "session_id").iter_rows())
    stated = _stated_in(turns, facts, place)
    draw = random.Random(f"{seed}:{scope}")
    themes = _spread(_themes(stated, encode, place), session_of, draw)
    changes = _spread(_changes(facts, place), session_of, draw)
    sessions = _sessions(turns)
    draw.shuffle(sessions)
    groups = {
        "theme": themes,
        "change": _packed(changes, place),
        "session": sessions,
        "absent": [*reversed(themes)] or sessions,
    }
    # A kind that several sorts ask for counts for the first that there are bundles of.
    bundles = list[Bundle]()
    for purpose, found in groups.items():
        asked = tuple(filter(wanted.__contains__, PURPOSES[purpose]))
        number = sum(map(wanted.__getitem__, asked))
        if not found:
            continue
        prompts = min(len(found), ceil(number / PER_BUNDLE[purpose]))
        for members in _choose(found, prompts):
            bundles.append(Bundle(purpose, scope, members, asked, PER_BUNDLE[purpose]))
        if purpose != "change":
            wanted |= dict.fromkeys(asked, 0)
    return bundles


def _possible_kinds(turns: pl.DataFrame) -> list[str]:
    """Give the kinds that can be asked of a memory, by its sessions and times."""
    left_out = set[str]()
    if turns["session_id"].n_unique() < 2:
        left_out |= {"knowledge-update", *SPREAD_KINDS}
    if not turns["timestamp"].count():
        left_out |= TIMED_KINDS
    return [kind for kind in KINDS if kind not in left_out]


def _stated_in(
    turns: pl.DataFrame, facts: pl.DataFrame, place: Mapping[str, int]
) -> list[_Statement]:
    """Give the facts, or the messages of persons where there are none."""
    stated = list[_Statement]()
    for fact in facts.iter_rows(named=True):
        cited = tuple(filter(place.__contains__, fact["evidence"]))
        text = fact["sentence"] or f"{fact['about']}: {fact['slot']}: {fact['value']}"
        if cited:
            stated.append(_Statement(fact["about"].casefold(), text, cited))
    if stated:
        return _at_even_distances(stated, MOST_STATEMENTS)
    said = turns.filter(pl.col("role") != "assistant", pl.col("text").str.len_chars() > 0)
    for turn, speaker, text in said.select("turn_id", "speaker", "text").iter_rows():
        stated.append(_Statement(speaker.casefold(), f"{speaker}: {text}", (turn,)))
    return _at_even_distances(stated, MOST_STATEMENTS)


def _themes(
    stated: Sequence[_Statement], encode: Encode, place: Mapping[str, int]
) -> list[tuple[str, ...]]:
    """Give branches of the tree, each filled up with what is the nearest to it, and what is stated
    of one subject."""
    if len(stated) < 2:
        return []
    found = list[tuple[str, ...]]()
    vectors = _without_subjects(encode([each.text for each in stated]), stated)
    for members in _branches(vectors, stated):
        turns = _cited_by(members, stated)
        near = np.argsort(-vectors @ vectors[members].mean(axis=0), kind="stable")
        for row in near.tolist():
            both = turns.union(stated[row].turns)
            if len(both) > MOST_MESSAGES:
                break
            turns = both
        found.append(_in_order(turns, place))
    subjects = dict[str, list[_Statement]]()
    for each in stated:
        if each.about:
            subjects.setdefault(each.about, []).append(each)
    for listed in subjects.values():
        turns_of = _turns_of(listed, place)
        if len(turns_of) <= 2 * MOST_MESSAGES:
            found.append(_thinned(turns_of))
    enough = [turns for turns in found if len(turns) >= FEWEST]
    return [*dict.fromkeys(enough)]


def _without_subjects(vectors: np.ndarray, stated: Sequence[_Statement]) -> np.ndarray:
    """Subtract from each statement the mean of those of its subject, so that the matter is
    compared: unit rows."""
    centred = np.array(vectors, dtype=np.float64)
    rows_of = dict[str, list[int]]()
    for row, each in enumerate(stated):
        rows_of.setdefault(each.about, []).append(row)
    for rows in rows_of.values():
        if len(rows) >= FEWEST:
            centred[rows] -= centred[rows].mean(axis=0)
    lengths = np.linalg.norm(centred, axis=1, keepdims=True)
    return centred / np.maximum(lengths, 1e-9)


def _branches(vectors: np.ndarray, stated: Sequence[_Statement]) -> list[list[int]]:
    """Give the rows of the largest branches of the tree whose messages fill half of a prompt at
    most."""
    tree = merge_tree(vectors)
    leaves = tree.n_leaves
    members: list[list[int]] = [[] for _ in range(leaves)]
    for row, leaf in enumerate(tree.leaf_of.tolist()):
        members[leaf].append(row)
    for left, right in tree.children.tolist():
        members.append(members[left] + members[right])
    found, waiting = list[list[int]](), [len(members) - 1]
    while waiting:
        node = waiting.pop()
        turns = _cited_by(members[node], stated)
        if len(turns) <= MOST_MESSAGES // 2:
            found.append(members[node])
        elif node >= leaves:
            waiting += tree.children[node - leaves].tolist()
    return [rows for rows in found if len(rows) > 1]


def _changes(facts: pl.DataFrame, place: Mapping[str, int]) -> list[tuple[str, ...]]:
    """Give the messages of facts that later facts replaced, ended or corrected, a group for each
    chain."""
    rows = facts.to_dicts()
    first = list(range(len(rows)))

    def chain_of(at: int) -> int:
        while first[at] != at:
            at = first[at]
        return at

    last_with = dict[str, int]()
    for at, fact in enumerate(rows):
        for effect, target in zip(fact["effects"], fact["affected"], strict=True):
            if effect in UPDATING and target in last_with:
                first[chain_of(at)] = chain_of(last_with[target])
        last_with[fact_meaning(fact)] = at
        last_with[fact["fact_id"]] = at
    chains = dict[int, list[_Statement]]()
    for at, fact in enumerate(rows):
        cited = tuple(filter(place.__contains__, fact["evidence"]))
        chains.setdefault(chain_of(at), []).append(_Statement("", "", cited))
    found = list[tuple[str, ...]]()
    for chain in chains.values():
        turns = _turns_of(chain, place)
        if len(chain) > 1 and 1 < len(turns) <= MOST_MESSAGES:
            found.append(turns)
    return found


def _packed(groups: Sequence[tuple[str, ...]], place: Mapping[str, int]) -> list[tuple[str, ...]]:
    """Put small groups together, as many as fit a prompt, in their order."""
    packed = list[set[str]]()
    for turns in groups:
        if packed and len(packed[-1] | {*turns}) <= MOST_MESSAGES:
            packed[-1] |= {*turns}
        else:
            packed.append({*turns})
    return [_in_order(turns, place) for turns in packed]


def _sessions(turns: pl.DataFrame) -> list[tuple[str, ...]]:
    """Give the first messages of each session, as many as fit a prompt."""
    found = list[tuple[str, ...]]()
    for _, part in turns.group_by("session_id", maintain_order=True):
        found.append(tuple(part["turn_id"].head(MOST_MESSAGES)))
    most = max(map(len, found))
    return [members for members in found if len(members) >= min(FEWEST, most)]


def _turns_of(stated: Sequence[_Statement], place: Mapping[str, int]) -> tuple[str, ...]:
    return _in_order(_cited_by(range(len(stated)), stated), place)


def _cited_by(rows: Iterable[int], stated: Sequence[_Statement]) -> set[str]:
    cited = set[str]()
    for row in rows:
        cited.update(stated[row].turns)
    return cited


def _in_order(turns: Iterable[str], place: Mapping[str, int]) -> tuple[str, ...]:
    return tuple(sorted(turns, key=place.__getitem__))


def _thinned(turns: tuple[str, ...]) -> tuple[str, ...]:
    """Keep as many messages as fit a prompt, at even distances."""
    return tuple(_at_even_distances(turns, MOST_MESSAGES))


def _at_even_distances(items: Sequence[T], most: int) -> list[T]:
    if len(items) <= most:
        return [*items]
    kept = np.linspace(0, len(items) - 1, most).round().astype(int)
    return [items[at] for at in kept.tolist()]


def _spread(
    groups: Sequence[tuple[str, ...]], session_of: Mapping[str, str], draw: random.Random
) -> list[tuple[str, ...]]:
    """Keep the groups of two sessions or more, in an order that is drawn; those of three or more
    first.

    Not those of the most first: what lies in the most sessions has the least in common.
    """
    sessions = dict[tuple[str, ...], int]()
    for turns in groups:
        sessions[turns] = len({*map(session_of.__getitem__, turns)})
    several = [turns for turns in groups if sessions[turns] > 1]
    draw.shuffle(several)
    of_two = [turns for turns in several if sessions[turns] == 2]
    return [turns for turns in several if sessions[turns] > 2] + of_two


def _choose(groups: Sequence[tuple[str, ...]], number: int) -> list[tuple[str, ...]]:
    """Choose groups that share few messages, the first ones of the list preferred."""
    chosen, seen = list[tuple[str, ...]](), set[str]()
    for most_shared in (0.34, 0.67, 1.0):
        for turns in groups:
            if len(chosen) == number:
                return chosen
            shared = len(seen.intersection(turns)) / len(turns)
            if turns not in chosen and shared <= most_shared:
                chosen.append(turns)
                seen.update(turns)
    return chosen


def message_entries(bundle: Bundle, turns: pl.DataFrame) -> list[dict[str, Any]]:
    """Give the messages of a bundle as a prompt shows them, numbered from 1.

    :param turns: of the scope, in their order; the end of the message before one stands with it.
    """
    rows = turns.with_columns(
        before=pl.col("text").shift().over("session_id"),
        asker=pl.col("speaker").shift().over("session_id"),
        earlier=pl.col("turn_id").shift().over("session_id"),
    )
    shown = {*bundle.turns}
    entries = list[dict[str, Any]]()
    for row in rows.filter(pl.col("turn_id").is_in(list(shown))).iter_rows(named=True):
        entry: dict[str, Any] = {"id": len(entries) + 1}
        if row["timestamp"] is not None:
            entry["day"] = f"{row['timestamp']:%a %Y-%m-%d}"
        if row["earlier"] is not None and row["earlier"] not in shown:
            entry["before"] = f"{row['asker']}: {_tail(row['before'])}"
        entry["speaker"] = row["speaker"]
        entry["text"] = _head(row["text"] or row["caption"] or "")
        entries.append(entry)
    return entries


HEAD, TAIL = 420, 110
"""Characters of a message, and of the end of what was said before it."""


def _head(text: str) -> str:
    line = " ".join(text.split())
    if len(line) <= HEAD:
        return line
    return f"{line[:HEAD]} …"


def _tail(text: str) -> str:
    line = " ".join(text.split())
    if len(line) <= TAIL:
        return line
    return f"… {line[-TAIL:]}"
