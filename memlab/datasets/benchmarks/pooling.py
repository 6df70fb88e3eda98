"""Haystacks out of an oracle file of LongMemEval: distractor sessions of other questions, drawn
with a seed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import polars as pl

from memlab.errors import DataError
from memlab.records import Dataset, Issue, Turn, frame, schema
from memlab.sessions import sessions_of


def pool_haystacks(
    data: Dataset, *, n_sessions: int, seed: int, batch_turns: int
) -> Iterator[Dataset]:
    """Pool an oracle dataset to haystacks, in batches of whole questions of at least
    ``batch_turns`` turns.

    Each question gets sessions of others as distractors. A distractor never repeats one of the
    question's own sessions and holds no exact copy of an evidence turn. The draw depends on the
    seed, the question's id and the set of sessions, not on their order in the file. Sessions keep
    their dates; equal dates are ordered by id, so that the order tells nothing. Results on such
    data are "pooled", never LongMemEval_S.

    :param n_sessions: sessions of each haystack, own ones included; 48 is the size of
        LongMemEval_S.
    :raises DataError: when a question has more sessions of its own than that, or the file too few
        for it.
    """
    if isinstance(n_sessions, bool) or n_sessions < 1:
        raise DataError(
            f"n_sessions (pool) is {n_sessions!r}, expected a number of sessions from 1"
        )
    plan = _draw_sessions(data, n_sessions, seed)
    size = dict(data.sessions.select("session_id", "n_turns").iter_rows())
    name, issues = f"{data.name}-pool{n_sessions}-seed{seed}", data.issues
    chosen: list[str] = []
    turns = 0
    for place, (scope, sessions) in enumerate(plan.items(), 1):
        chosen.append(scope)
        turns += sum(size[s] for s in sessions)
        if turns >= batch_turns or place == len(plan):
            part = _build_haystacks({s: plan[s] for s in chosen}, data)
            yield replace(part, name=name, issues=issues)
            chosen, turns, issues = [], 0, frame(Issue)


def _draw_sessions(data: Dataset, n_sessions: int, seed: int) -> dict[str, list[str]]:
    """Choose the sessions of every question: scope to session ids of the source, own ones first."""
    content = pl.format("{}\x1f{}", "role", "text").str.join("\x1e")
    library = (
        data.turns.group_by("session_id", maintain_order=True)
        .agg(
            content=content,
            scope=pl.col("scope").first(),
            start=pl.col("timestamp").min(),
            texts=pl.col("text"),
        )
        .with_columns(
            name=pl.col("session_id").str.extract(r"([^/]*)$"),
            content=pl.col("content").rank("dense"),
        )
        .sort("name", "content", "start", "scope")
    )
    distinct = library.unique(["name", "content"], keep="first", maintain_order=True)
    names, contents = distinct["name"].to_numpy(), distinct["content"].to_numpy()
    holders: dict[str, list[int]] = {}
    for place, texts in enumerate(distinct["texts"].to_list()):
        for text in texts:
            holders.setdefault(text, []).append(place)
    own = {scope: rows for (scope,), rows in library.group_by("scope", maintain_order=True)}
    text_of = dict(data.turns.select("turn_id", "text").iter_rows())
    plan: dict[str, list[str]] = {}
    for scope, evidence in data.questions.select("scope", "evidence").iter_rows():
        barred = np.isin(names, own[scope]["name"].to_numpy()) | np.isin(
            contents, own[scope]["content"].to_numpy()
        )
        barred[[place for turn in evidence for place in holders.get(text_of[turn], ())]] = True
        wanted = max(n_sessions - own[scope].height, 0)
        digest = hashlib.sha256(f"{seed} {scope}".encode()).digest()
        order = np.random.default_rng(int.from_bytes(digest[:16])).permutation(
            np.flatnonzero(~barred)
        )
        drawn = distinct.select("session_id", "name", "content")[order]
        for column in ("name", "content"):
            drawn = drawn.unique(column, keep="first", maintain_order=True)
        if n_sessions != own[scope].height + drawn.head(wanted).height:
            raise DataError(
                f"{data.name}: question {scope!r} has {own[scope].height} sessions of its own and "
                f"{drawn.head(wanted).height} others to draw (the file holds {distinct.height}), "
                "which cannot make "
                f"{n_sessions}; choose another n_sessions (pool)"
            )
        plan[scope] = [*own[scope]["session_id"], *drawn["session_id"].head(wanted)]
    return plan


def _build_haystacks(plan: dict[str, list[str]], data: Dataset) -> Dataset:
    """Build the haystacks of some questions."""
    chosen = (
        pl.DataFrame({"scope": list(plan), "source": list(plan.values())})
        .with_row_index("question")
        .explode("source")
        .with_columns(name=pl.col("source").str.extract(r"([^/]*)$"))
        .with_columns(session_id=pl.format("{}/{}", "scope", "name"))
    )
    turns = (
        chosen.join(data.turns.drop("scope"), left_on="source", right_on="session_id", how="left")
        .with_columns(turn_id=pl.format("{}/{}", "session_id", "n"))
        .sort("question", pl.col("timestamp").min().over("session_id"), "name", "n")
        .select(*schema(Turn))
    )
    questions = data.questions.filter(pl.col("scope").is_in(list(plan)))
    return Dataset(data.name, data.format, turns, sessions_of(turns), questions)
