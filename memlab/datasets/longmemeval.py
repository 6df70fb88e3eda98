"""LongMemEval (Wu et al., ICLR 2025): oracle, S and M layouts, and pooling of an oracle file into haystacks.

A file is a list of questions; each brings its own haystack of sessions, so a scope is a question. The three layouts
differ only in how many sessions that is. A turn's time is its session's date.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from memlab.datasets._fields import Bad, Record, as_list, as_name, as_role, date_check, micros, show
from memlab.datasets._json import objects
from memlab.datasets._read import Rows, Source, batches
from memlab.errors import DataError
from memlab.records import Dataset, Issue, Question, Turn, concat, frame, id_part, schema
from memlab.sessions import sessions_of

parse_date = date_check(
    r"(?P<year>\d{4})/(?P<month>\d{1,2})/(?P<day>\d{1,2})(?:\s*\([a-z]+\))?\s+(?P<hour>\d{1,2}):(?P<minute>\d{2})",
    "2023/05/20 (Sat) 02:21",
)


def read(source: Source) -> Iterator[Rows]:
    """Stream a LongMemEval file: the rows of each question."""
    seen: dict[str, int] = {}
    for index, raw in objects(source):
        with source.record(f"question {index}", raw) as reading:
            record = Record(raw)
            name = record.name("question_id")
            reading.label = f"question {index} ({name!r})"
            if name in seen:
                raise Bad("question_id", f"{name!r} again (first in question {seen[name]})", "an id of its own")
            rows = _question(record, id_part(name), source, reading.label)
            seen[name] = index
            yield rows


def _question(record: Record, scope: str, source: Source, label: str) -> Rows:
    answers = record.names("answer_session_ids")
    haystack = _haystack(record, source, label)
    if unknown := [s for s in answers if s not in haystack]:
        raise Bad("answer_session_ids", f"{unknown[0]!r}, which the haystack does not hold", "haystack_session_ids")
    rows, evidence = Rows(), []
    for name, (date, turns, where) in haystack.items():
        session_id = f"{scope}/{id_part(name)}"
        marked = _turns(rows, turns, where, scope=scope, session_id=session_id, time=micros(date))
        evidence += [f"{session_id}/{n}" for n in marked]
    rows.questions.append(
        Question(
            query_id=scope,
            scope=scope,
            text=record.text("question"),
            answer=record.answer("answer"),
            question_type=record.text("question_type"),
            timestamp=record.read("question_date", parse_date),
            evidence=evidence,
            evidence_sessions=[f"{scope}/{id_part(name)}" for name in dict.fromkeys(answers)],
            abstention=str(record["question_id"]).endswith("_abs"),
        )
    )
    return rows


def _haystack(record: Record, source: Source, label: str) -> dict[str, tuple[datetime, list[Any], str]]:
    """Give the sessions of a question by name, in order of date: date, turns, and where they stood."""
    names, dates, sessions = (record.listed(f"haystack_{k}") for k in ("session_ids", "dates", "sessions"))
    if not len(names) == len(dates) == len(sessions):
        counts = f"{len(sessions)} sessions, {len(names)} ids and {len(dates)} dates"
        raise Bad("haystack_sessions", counts, "as many of each")
    haystack: dict[str, tuple[datetime, list[Any], str]] = {}
    for i, (raw_name, raw_date, raw_turns) in enumerate(zip(names, dates, sessions, strict=True)):
        where, place = f"haystack_sessions[{i}]", f"haystack_session_ids[{i}]"
        name, turns = as_name(raw_name, place), as_list(raw_turns, where)
        date = parse_date(raw_date, f"haystack_dates[{i}]")
        if not turns:
            source.note(f"{label}: {where}", f"session {name!r} without turns", "dropped empty session")
        elif name not in haystack:
            haystack[name] = (date, turns, where)
        elif haystack[name][1] != turns:
            raise Bad(place, f"{name!r} again with other turns", "one session for each id")
        else:
            source.note(f"{label}: {place}", f"{name!r} again, the same turns", "dropped copy")
    if not haystack:
        raise Bad("haystack_sessions", "no turn at all", "at least one session with turns")
    return dict(sorted(haystack.items(), key=lambda item: item[1][0]))


def _turns(rows: Rows, turns: list[Any], where: str, *, scope: str, session_id: str, time: int) -> list[int]:
    """Add the turns of a session to the rows; give the places of those that are evidence."""
    marked = []
    for n, raw in enumerate(turns, 1):
        at = f"{where}[{n - 1}]"
        turn = Record(raw, at)
        role, text = turn.text("role"), turn.text("content")
        has_answer = turn.get("has_answer")
        if has_answer is not None and not isinstance(has_answer, bool):
            raise Bad(f"{at}.has_answer", show(has_answer), "true, false or nothing")
        if has_answer:
            marked.append(n)
        rows.turns.append((scope, session_id, n, role, as_role(role), text, None, time))
    return marked


def pool(source: str | Path | Dataset, *, n_sessions: int = 48, seed: int = 0) -> Dataset:
    """Make haystacks of an oracle file: every question keeps its own sessions and gets others' as distractors.

    A distractor never repeats one of the question's own sessions and holds no exact copy of an evidence turn. The
    draw depends on the seed, the question's id and the set of sessions, not on their order in the file. Sessions keep
    their dates; equal dates are ordered by id, so that the order tells nothing. Results on such data are "pooled",
    never LongMemEval_S.

    :param n_sessions: sessions of each haystack, own ones included; 48 is the size of LongMemEval_S.
    :raises DataError: when a question has more sessions of its own than that, or the file too few for it.

    >>> from memlab.datasets import pool
    >>> pool("longmemeval_oracle.json", n_sessions=48, seed=0).describe()  # doctest: +SKIP
    'longmemeval_oracle-pool48-seed0 (longmemeval): ...'
    """
    if not isinstance(source, Dataset):
        file = Source(Path(source))
        source = concat(batches(read(file), file, "longmemeval", 1 << 62))
    return concat(pooled_batches(source, n_sessions=n_sessions, seed=seed, batch_turns=1 << 62))


def pooled_batches(data: Dataset, *, n_sessions: int, seed: int, batch_turns: int) -> Iterator[Dataset]:
    """Give what :func:`pool` does in batches of whole questions of at least ``batch_turns`` turns."""
    if data.format != "longmemeval":
        raise DataError(f"{data.name} is {data.format}; only LongMemEval data, one question a scope, can be pooled")
    if isinstance(n_sessions, bool) or n_sessions < 1:
        raise DataError(f"n_sessions (pool) is {n_sessions!r}, expected a number of sessions from 1")
    plan = _draw(data, n_sessions, seed)
    size = dict(data.sessions.select("session_id", "n_turns").iter_rows())
    name, issues = f"{data.name}-pool{n_sessions}-seed{seed}", data.issues
    chosen: list[str] = []
    turns = 0
    for place, (scope, sessions) in enumerate(plan.items(), 1):
        chosen.append(scope)
        turns += sum(size[s] for s in sessions)
        if turns >= batch_turns or place == len(plan):
            part = _pooled({s: plan[s] for s in chosen}, data)
            yield replace(part, name=name, issues=issues)
            chosen, turns, issues = [], 0, frame(Issue)


def _draw(data: Dataset, n_sessions: int, seed: int) -> dict[str, list[str]]:
    """Choose the sessions of every question: scope to session ids of the source, own ones first."""
    content = pl.format("{}\x1f{}", "role", "text").str.join("\x1e")
    library = (
        data.turns.group_by("session_id", maintain_order=True)
        .agg(content=content, scope=pl.col("scope").first(), start=pl.col("timestamp").min(), texts=pl.col("text"))
        .with_columns(name=pl.col("session_id").str.extract(r"([^/]*)$"), content=pl.col("content").rank("dense"))
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
        barred = np.isin(names, own[scope]["name"].to_numpy()) | np.isin(contents, own[scope]["content"].to_numpy())
        barred[[place for turn in evidence for place in holders.get(text_of[turn], ())]] = True
        wanted = max(n_sessions - own[scope].height, 0)
        digest = hashlib.sha256(f"{seed} {scope}".encode()).digest()
        order = np.random.default_rng(int.from_bytes(digest[:16])).permutation(np.flatnonzero(~barred))
        drawn = distinct.select("session_id", "name", "content")[order]
        for column in ("name", "content"):
            drawn = drawn.unique(column, keep="first", maintain_order=True)
        if n_sessions != own[scope].height + drawn.head(wanted).height:
            raise DataError(
                f"{data.name}: question {scope!r} has {own[scope].height} sessions of its own and "
                f"{drawn.head(wanted).height} others to draw (the file holds {distinct.height}), which cannot make "
                f"{n_sessions}; choose another n_sessions (pool)"
            )
        plan[scope] = [*own[scope]["session_id"], *drawn["session_id"].head(wanted)]
    return plan


def _pooled(plan: dict[str, list[str]], data: Dataset) -> Dataset:
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
