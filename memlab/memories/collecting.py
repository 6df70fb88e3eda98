"""Run a memory over a dataset, scope by scope: what it returned, what that cost, and what failed."""

from __future__ import annotations

import hashlib
import json
import math
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from memlab.errors import DataError
from memlab.files import atomic
from memlab.memories.contract import TURNS, USAGE, Memory, Rows
from memlab.memories.loading import described
from memlab.records import Dataset
from memlab.terminal import short

LONGEST_TEXT = 100_000
RETURNED = {
    "query_id": pl.String(),
    "rank": pl.Int32(),
    "text": pl.String(),
    "score": pl.Float64(),
    "source_ids": pl.List(pl.String()),
    "time": pl.String(),
}
COSTS = {
    "scope": pl.String(),
    "n_turns": pl.Int64(),
    "n_queries": pl.Int64(),
    "ingest_seconds": pl.Float64(),
    "wait_seconds": pl.Float64(),
    "query_ms": pl.List(pl.Float64()),
    **dict.fromkeys(USAGE, pl.Int64()),
}
PROBLEMS = {"scope": pl.String(), "query_id": pl.String(), "problem": pl.String()}


@dataclass(frozen=True, eq=False)
class Returned:
    """What a memory returned for the questions of a dataset.

    :param name: of the system, in tables.
    :param rows: a row for each returned text: ``query_id``, ``rank`` from 1, ``text``, ``score`` or null,
        ``source_ids`` (turns of the scope, or null where the memory gave none) and ``time`` as it gave it.
    :param costs: a row a scope that did not fail: ``scope``, ``n_turns``, ``n_queries``, ``ingest_seconds``,
        ``wait_seconds`` (until all can be found), ``query_ms``, each query's time, and what the memory says of itself:
        ``bytes``, ``tokens_read`` and ``tokens_written`` by models, null where it does not.
    :param problems: ``scope``, ``query_id`` (null where it is of the whole scope) and ``problem``, in a line.
    :param provenance: the system, its settings and what it was run on.
    """

    name: str
    rows: pl.DataFrame
    costs: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=COSTS))
    problems: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=PROBLEMS))
    provenance: Mapping[str, Any] = field(default_factory=dict)

    @property
    def failed(self) -> list[str]:
        """The scopes that failed; their questions count as not answered."""
        unasked = pl.col("query_id").is_null() & ~pl.col("scope").is_in(self.costs["scope"].implode())
        return self.problems.filter(unasked)["scope"].to_list()


class Failure(Exception):
    """What a memory did that ends its scope or its query."""


def problem(name: str, scope: str, query_id: str | None, text: object) -> tuple[str, str | None, str]:
    """Make a row of :data:`PROBLEMS`, whose text says where it was."""
    place = f"{name}, scope {scope}" + (f", query {query_id}" if query_id else "")
    return scope, query_id, f"{place}: {text}"


def collect(
    memory: Memory,
    data: Dataset,
    *,
    name: str,
    k: int = 50,
    folder: str | Path | None = None,
    timeout: float = 600.0,
) -> Returned:
    """Fill a memory with each scope's turns and ask it the scope's questions, one at a time.

    A scope whose ingestion fails, or three of whose searches fail one after the other, is reported with its reason,
    counts as not answered, and costs no other scope. What a search should not return (ids of another scope, repeated
    ids, scores that are no numbers, texts beyond :data:`LONGEST_TEXT` characters, more than k rows) is cut, with a line
    of its own.

    :param k: rows for each question.
    :param folder: where each scope is kept when it is done, by the memory's code as far as it can be read, the dataset
        and k; what is there is not run again. Failed scopes are.
    :param timeout: seconds for one call of the memory.

    >>> import memlab
    >>> from memlab.memories import collect, memory
    >>> data = memlab.sample(turns=200)
    >>> done = collect(memory(lambda turns, query, k: turns["text"].tail(k)), data, name="latest", k=5)
    >>> done.rows["rank"].max(), done.failed
    (5, [])
    """
    from tqdm.auto import tqdm

    if k < 1:
        raise DataError(f"k is {k}; ask for at least one row")
    about = {"system": name, "k": k, "memory": described(memory), "fingerprint": data.fingerprint()}
    asked = data.questions.group_by("scope", maintain_order=True).agg("query_id", "text", "timestamp")
    done: list[dict[str, Any]] = []
    for scope, *questions in tqdm(asked.iter_rows(), total=asked.height, desc=name, delay=2):
        place = _place(folder, about, scope)
        part = json.loads(place.read_text()) if place and place.exists() else None
        if part is None:
            try:
                part = _scope(memory, scope, *_turns(data, scope), questions, k, timeout)
            except Failure as error:
                part = {"problems": [problem(name, scope, None, error)], "rows": [], "costs": []}
            else:
                part["problems"] = [problem(name, scope, *each) for each in part["problems"]]
                if place:
                    with atomic(place) as stream:
                        stream.write(json.dumps(part).encode())
        done.append(part)
    rows, costs, problems = (
        pl.DataFrame([row for part in done for row in part[what]], schema=schema, orient="row")
        for what, schema in (("rows", RETURNED), ("costs", COSTS), ("problems", PROBLEMS))
    )
    return Returned(name, rows, costs, problems, {**about, "dataset": data.name})


def _place(folder: str | Path | None, about: Mapping[str, Any], scope: str) -> Path | None:
    if folder is None:
        return None
    key = json.dumps([about, scope, [*COSTS]], sort_keys=True, default=str)
    return Path(folder) / f"{hashlib.sha256(key.encode()).hexdigest()[:16]}.json"


def _turns(data: Dataset, scope: str) -> tuple[pl.DataFrame, dict[str, str]]:
    """Give what a memory takes in, and the turns that its ids stand for.

    Ids are told by place alone, since some benchmarks' own give the evidence away.
    """
    own = data.turns.filter(pl.col("scope") == scope)
    if own["timestamp"].null_count() == 0:
        own = own.sort("timestamp", maintain_order=True)
    told = own.select(
        id=pl.format("turn-{}", pl.int_range(1, pl.len() + 1)),
        session="session_id",
        speaker="speaker",
        time="timestamp",
        text="text",
    )
    order = told["session"].unique(maintain_order=True)
    sessions = {name: f"session-{n}" for n, name in enumerate(order, 1)}
    told = told.with_columns(pl.col("session").replace_strict(sessions))
    return told.cast(TURNS), dict(zip(told["id"], own["turn_id"], strict=True))  # type: ignore[arg-type]


def _scope(
    memory: Memory,
    scope: str,
    turns: pl.DataFrame,
    names: Mapping[str, str],
    questions: Sequence[Any],
    k: int,
    timeout: float,
) -> dict[str, Any]:
    """Fill one scope and ask its questions."""
    ids, texts, times = questions
    _within(timeout, "reset", memory.reset, scope)
    ingest = _within(timeout, "ingest", memory.ingest, scope, turns)[1]
    wait = _within(timeout, "wait", memory.wait)[1]
    rows, problems, spent, in_a_row = [], [], [], 0
    for query_id, text, asked in zip(ids, texts, times, strict=True):
        try:
            answer, seconds = _within(timeout, "search", memory.search, scope, [text], k, [asked])
            read, odd = read_rows(answer, names, k)
        except Failure as error:
            problems.append((query_id, str(error)))
            in_a_row += 1
            if in_a_row == 3:
                raise Failure(f"{error}, and the two searches before failed too") from None
            continue
        in_a_row = 0
        spent.append(seconds * 1000)
        rows += [(query_id, *row) for row in read]
        problems += [(query_id, problem) for problem in odd]
    used: dict[str, int] = {}
    if callable(getattr(memory, "usage", None)):
        try:
            answer = dict(_within(timeout, "usage", memory.usage, scope)[0])  # type: ignore[attr-defined]
            used = {name: int(answer[name]) for name in USAGE if answer.get(name) is not None}
        except (Failure, TypeError, ValueError, OverflowError) as error:
            problems.append((None, f"usage cannot be read: {error}"))
    costs = [(scope, turns.height, len(ids), ingest, wait, spent, *(used.get(name) for name in USAGE))]
    return {"rows": rows, "costs": costs, "problems": problems}


def _within(seconds: float, verb: str, call: Callable[..., Any], *arguments: Any) -> tuple[Any, float]:
    """Call a memory's verb and time it; give up waiting after a while, whatever it goes on doing."""
    outcome: list[Any] = []

    def run() -> None:
        try:
            outcome.append(call(*arguments))
        except BaseException as error:  # whatever somebody else's code raises
            outcome.append(Failure(short(f"{verb} failed: {type(error).__name__}: {error}", 300)))

    started = time.perf_counter()
    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(seconds)
    if not outcome:
        raise Failure(f"{verb} gave nothing within {seconds:g} s")
    if isinstance(outcome[0], Failure):
        raise outcome[0]
    return outcome[0], time.perf_counter() - started


def read_rows(answer: Rows, known: Mapping[str, str], k: int) -> tuple[list[tuple[Any, ...]], list[str]]:
    """Read the rows of one query: what can be used of them, and what was wrong with the rest.

    :param known: the ids that it may name, and the turns that they stand for.
    """
    try:
        items = answer.to_dicts() if isinstance(answer, pl.DataFrame) else [dict(item) for item in answer]
        texts = [item["text"] for item in items]
    except (TypeError, ValueError, KeyError, AttributeError) as error:
        raise Failure(
            f"search gave {type(answer).__name__} that is no rows with text ({type(error).__name__}: {error})"
        ) from None
    wrong = next((text for text in texts if not isinstance(text, str)), None)
    if wrong is not None:
        raise Failure(f"search gave a text that is {type(wrong).__name__}, not text")
    odd: list[str] = []
    if any(item.get("query", 0) != 0 for item in items):
        odd.append("rows for another query than the one asked, left out")
        items = [item for item in items if item.get("query", 0) == 0]
    if len(items) > k:
        odd.append(f"{len(items)} rows, {k} were asked for; the rest is left out")
    rows: list[tuple[Any, ...]] = []
    taken: set[str] = set()
    for rank, item in enumerate(items[:k], 1):
        sources = item.get("source_ids")
        if sources is not None:
            sources = [str(source) for source in ([sources] if isinstance(sources, str) else sources)]
            strange = [source for source in sources if source not in known]
            if strange:
                odd.append(f"row {rank}: id {short(strange[0], 80)!r} is no turn of this scope, left out")
            if len(sources) == 1 and sources[0] in taken:
                odd.append(f"row {rank}: id {sources[0]!r} again, left out")
                continue
            taken.update(sources[:1] if len(sources) == 1 else ())
            sources = list(dict.fromkeys(known[source] for source in sources if source in known))
        score = item.get("score")
        if score is not None and not (isinstance(score, (int, float, np.number)) and math.isfinite(score)):
            odd.append(f"row {rank}: score {short(str(score), 40)} is no finite number, left out")
            score = None
        text = item["text"].encode("utf-8", "replace").decode()
        if len(text) > LONGEST_TEXT:
            odd.append(f"row {rank}: a text of {len(text):,} characters, cut to {LONGEST_TEXT:,}")
        when = item.get("time")
        rows.append(
            (len(rows) + 1, text[:LONGEST_TEXT], None if score is None else float(score), sources, when and str(when))
        )
    return rows, odd
