"""Run a memory over a dataset, scope by scope: what it returned, what that cost, and what failed."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl

from memlab.conversation.contexts import add_token_counts
from memlab.embed.turn_texts import turn_texts
from memlab.errors import DataError
from memlab.files import fix_place, open_atomically
from memlab.memories.memory import TURNS, Memory, memory
from memlab.memories.returned_rows import (
    Failure,
    Unanswered,
    call_with_timeout,
    list_returned_rows,
    select_usable_rows,
)
from memlab.records import Dataset, qrels
from memlab.terminal import shorten_line

_log = logging.getLogger("memlab")


def dated_lines(returned: ReturnedTexts) -> pl.DataFrame:
    """Write each returned text under its day, and count the tokens up to it.

    :returns: the rows with ``line``, its ``n_tokens``, and ``after``: tokens of the question's
        lines so far.
    """
    day = (
        pl.col("time")
        .str.slice(0, 10)
        .str.to_date("%Y-%m-%d", strict=False)
        .dt.strftime("%-d %B %Y")
    )
    head = pl.format("[{}]\n", pl.coalesce(day, "time")).fill_null("")
    rows = add_token_counts(returned.rows.with_columns(line=head + pl.col("text")), "line").sort(
        "query_id", "rank"
    )
    return rows.with_columns(after=pl.col("n_tokens").cum_sum().over("query_id"))


def fit_to_budget(lines: pl.DataFrame, questions: pl.DataFrame, budget: int) -> pl.DataFrame:
    """Give each question the first texts that fit into a budget: ``query_id``, ``text`` (empty for none), ``n_tokens``.

    :param lines: what :func:`dated_lines` gave.
    """
    fitting = lines.filter(pl.col("after") <= budget).group_by("query_id", maintain_order=True)
    made = fitting.agg(pl.col("line").str.join("\n").alias("text"), pl.col("n_tokens").sum())
    contexts = questions.select("query_id").join(
        made, on="query_id", how="left", maintain_order="left"
    )
    return contexts.with_columns(pl.col("text").fill_null(""), pl.col("n_tokens").fill_null(0))


USAGE_COLUMNS = ("bytes", "tokens_read", "tokens_written")
RETURNED_SCHEMA = {
    "query_id": pl.String(), "rank": pl.Int32(), "text": pl.String(), "score": pl.Float64(),
    "source_ids": pl.List(pl.String()), "time": pl.String(),
}  # fmt: skip
COSTS_SCHEMA = {
    "scope": pl.String(),
    "n_turns": pl.Int64(),
    "n_queries": pl.Int64(),
    "most_rows": pl.Int64(),
    "ingest_seconds": pl.Float64(),
    "wait_seconds": pl.Float64(),
    "query_ms": pl.List(pl.Float64()),
    **dict.fromkeys(USAGE_COLUMNS, pl.Int64()),
}
PROBLEMS_SCHEMA = {"scope": pl.String(), "query_id": pl.String(), "problem": pl.String()}
_TABLES: dict[str, Any] = {
    "rows": RETURNED_SCHEMA,
    "costs": COSTS_SCHEMA,
    "problems": PROBLEMS_SCHEMA,
}


@dataclass(frozen=True, eq=False)
class ReturnedTexts:
    """What a memory returned for the questions of a dataset.

    :param name: of the system, in tables.
    :param rows: a row for each returned text: ``query_id``, ``rank`` from 1, ``text``, ``score`` or
        null, ``source_ids`` (turns of the scope, or null where the memory gave none) and ``time``
        as it gave it.
    :param costs: a row a scope that did not fail: ``scope``, ``n_turns``, ``n_queries``,
        ``most_rows`` (of one query, usable or not; null where none was answered),
        ``ingest_seconds``, ``wait_seconds`` (until all can be found), ``query_ms``, each query's
        time, and what the memory says of itself: ``bytes``, ``tokens_read`` and ``tokens_written``
        by models, null where it does not.
    :param problems: ``scope``, ``query_id`` (null where it is of the whole scope) and ``problem``,
        in a line.
    :param provenance: the system, its settings and what it was run on.
    """

    name: str
    rows: pl.DataFrame
    costs: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=COSTS_SCHEMA))
    problems: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=PROBLEMS_SCHEMA))
    provenance: Mapping[str, Any] = field(default_factory=dict)

    def partial_answers(self, data: Dataset) -> str:
        """Say of how many questions with evidence something was returned, where not of all."""
        asked = qrels(data.questions, "turn").frame["query_id"].unique()
        n = asked.is_in(self.rows["query_id"].implode()).sum()
        return f"answers {n:,} of {len(asked):,} questions with evidence" if n < len(asked) else ""

    @property
    def failed(self) -> list[str]:
        """The scopes that failed; their questions count as not answered."""
        unasked = pl.col("query_id").is_null() & ~pl.col("scope").is_in(
            self.costs["scope"].implode()
        )
        return self.problems.filter(unasked)["scope"].to_list()


def problem_row(
    name: str, scope: str, query_id: str | None, text: Any
) -> tuple[str, str | None, str]:
    """Make a row of :data:`PROBLEMS_SCHEMA`, whose text says where it was."""
    place = (
        name + (f", scope {scope}" if scope else "") + (f", query {query_id}" if query_id else "")
    )
    return scope, query_id, f"{place}: {text}".encode("utf-8", "replace").decode()


def collect(
    system: Any,
    data: Dataset,
    *,
    name: str,
    k: int = 50,
    folder: str | Path | None = None,
    timeout: float = 600.0,
) -> ReturnedTexts:
    """Fill a memory with each scope's turns and ask it the scope's questions, one at a time.

    A row that cannot be used, an answer that is no rows, and a search that fails cost no more than
    themselves, with a line each. A scope whose ingestion fails, or three of whose searches fail one
    after the other, counts as not answered. A memory that has no list of k rows for any question,
    although some scope has more turns than it gave rows, gets a line too: it was not given k, or
    cuts by a limit of its own, and recall at k would be that of a shorter list.

    :param system: a memory, or what :func:`memlab.memories.memory` makes one of.
    :param k: rows for each question.
    :param folder: where each scope is kept when it is done, by the memory's module and state, the
        dataset and k; what is there is not run again. Failed scopes are, and a memory whose source
        or state cannot be read.
    :param timeout: seconds for one call of the memory.

    >>> import memlab
    >>> from memlab.memories import collect
    >>> data = memlab.sample()
    >>> done = collect(lambda turns, query, k: turns["text"].tail(k), data, name="latest", k=5)
    >>> done.rows["rank"].max(), done.failed
    (5, [])
    """
    from tqdm.auto import tqdm

    if k < 1 or not 0 < timeout < 1e6:
        raise DataError(
            f"k is {k}, the timeout {timeout}; ask for at least one row, and wait 0 to 1,000,000 seconds"
        )
    system = memory(system, timeout=timeout)
    about = {"system": name, "k": k, "memory": system.settings, "fingerprint": data.fingerprint()}
    done, n_read = [_make_frames({table: [] for table in _TABLES})], 0
    known = system.settings["source"] is not None
    kept_in = fix_place(folder) if folder else None  # A memory may change the working directory.
    for asked in tqdm(
        data.questions.partition_by("scope", maintain_order=True), desc=name, delay=2
    ):
        scope = asked["scope"][0]
        key = json.dumps([about, scope, [*COSTS_SCHEMA]], sort_keys=True, default=str)
        place = (
            kept_in / f"{hashlib.sha256(key.encode()).hexdigest()[:16]}.json"
            if kept_in and known
            else None
        )
        part = _read_finished_scope(place) if place else None
        n_read += part is not None
        if part is None:
            try:
                tables = _run_scope(system, scope, data, asked, k, timeout)
            except Failure as error:
                tables = {"rows": [], "costs": [], "problems": [(None, str(error))]}
            tables["problems"] = [problem_row(name, scope, *each) for each in tables["problems"]]
            if place and tables["costs"]:
                with open_atomically(place) as stream:
                    stream.write(json.dumps(tables).encode())
            part = _make_frames(tables)
        done.append(part)
    if n_read:
        _log.warning("%s: %s scopes read from %s", name, n_read, folder)
    rows, costs, problems = (pl.concat([part[table] for part in done]) for table in _TABLES)
    general = [problem_row(name, "", "", line) for line in system.notes + _short_lists(costs, k)]
    problems = pl.concat([pl.DataFrame(general, PROBLEMS_SCHEMA, orient="row"), problems])
    return ReturnedTexts(name, rows, costs, problems, {**about, "dataset": data.name})


def _short_lists(costs: pl.DataFrame, k: int) -> list[str]:
    """Say that no list had k rows, where some scope has turns for more than it got.

    :param costs: as of :class:`ReturnedTexts`.
    """
    answered = costs.drop_nulls("most_rows")
    full = answered.filter(pl.col("most_rows") >= k)
    short = answered.filter(pl.col("most_rows") < pl.col("n_turns"))
    if full.height or short.is_empty():
        return []
    most: Any = answered["most_rows"].max()
    rows = "row" if most == 1 else "rows"
    return [f"gave at most {most:,} {rows} of {k:,}"]


def _make_frames(tables: Mapping[str, Any]) -> dict[str, pl.DataFrame]:
    return {
        table: pl.DataFrame(tables[table], schema=schema, orient="row")
        for table, schema in _TABLES.items()
    }


def _read_finished_scope(place: Path) -> dict[str, pl.DataFrame] | None:
    """Read a scope that was done; one whose file is damaged is run again."""
    try:
        return _make_frames(json.loads(place.read_bytes())) if place.exists() else None
    except Exception:  # whatever stands in the file
        return None


def known_turns(turns: pl.DataFrame) -> dict[str, Any]:
    """Give the turns that a memory may name, by their ids."""
    times = turns.select(pl.col("timestamp").dt.to_string("iso:strict")).to_series()
    return dict(
        zip(
            turns["turn_id"],
            zip(turns["turn_id"], turn_texts(turns), times, strict=True),
            strict=True,
        )
    )


def _anonymise_turns(data: Dataset, scope: str) -> tuple[pl.DataFrame, dict[str, Any]]:
    """Give what a memory takes in, in order of time, and the turns that its ids stand for.

    The ids tell the place alone, since some benchmarks' own give the evidence away.
    """
    own = data.turns.filter(pl.col("scope") == scope)
    if own["timestamp"].null_count() == 0:
        own = own.sort("timestamp", maintain_order=True)
    sessions = {
        name: f"session-{n}"
        for n, name in enumerate(own["session_id"].unique(maintain_order=True), 1)
    }
    session = pl.col("session_id").replace_strict(sessions, return_dtype=pl.String)
    number = pl.format("turn-{}", pl.int_range(1, pl.len() + 1))
    turns = own.select(id=number, session=session, speaker="speaker", time="timestamp", text="text")
    known = known_turns(own)
    known |= dict(zip(turns["id"], known.values(), strict=True))
    return turns.cast(TURNS), known  # type: ignore[arg-type]


def _run_scope(
    system: Memory, scope: str, data: Dataset, asked: pl.DataFrame, k: int, timeout: float
) -> dict[str, list[Any]]:
    """Fill one scope and ask its questions."""
    turns, known = _anonymise_turns(data, scope)
    call_with_timeout(timeout, "reset", lambda: system.reset(scope))
    ingest = call_with_timeout(timeout, "ingest", lambda: system.ingest(scope, turns))[1]
    wait = call_with_timeout(timeout, "wait", system.wait)[1]
    rows, problems, spent, in_a_row = [], list[Any](), [], 0
    most_rows: int | None = None
    for query_id, text, when in asked.select("query_id", "text", "timestamp").iter_rows():
        try:
            search = partial(system.search, scope, text, k, when)
            found, seconds = call_with_timeout(
                timeout,
                "search",
                lambda search=search: list_returned_rows(search(), k),  # type: ignore[misc]
            )
        except Failure as error:
            problems.append((query_id, str(error)))
            in_a_row = in_a_row + 1 if isinstance(error, Unanswered) else 0
            if in_a_row == 3:
                raise Failure(f"{error}, and the two searches before failed too") from None
            continue
        in_a_row = 0
        spent.append(seconds * 1000)
        most_rows = max(most_rows or 0, len(found))
        read, odd = select_usable_rows(found, known, k)
        rows += [(query_id, *row) for row in read]
        problems += [(query_id, line) for line in odd]
    try:
        said = dict(call_with_timeout(timeout, "usage", lambda: system.usage(scope))[0])
        used = [None if said.get(name) is None else int(said[name]) for name in USAGE_COLUMNS]
        if not all(n is None or 0 <= n < 2**63 for n in used):
            raise ValueError("a number below 0 or beyond 2^63")
    except Exception as error:  # an answer of somebody else's code
        problems.append((None, f"usage cannot be read: {shorten_line(error)}"))
        used = [None] * len(USAGE_COLUMNS)
    costs = [(scope, turns.height, asked.height, most_rows, ingest, wait, spent, *used)]
    return {"rows": rows, "costs": costs, "problems": problems}
