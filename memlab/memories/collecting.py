"""Run a memory over a dataset: what it returned, what that cost, and what failed."""

from __future__ import annotations

import hashlib
import json
import logging
import re
from collections.abc import Callable, Mapping
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
    KnownTurn,
    Unanswered,
    call_with_timeout,
    list_returned_rows,
    select_usable_rows,
)
from memlab.records import Dataset, qrels
from memlab.terminal import count_noun, shorten_line

_log = logging.getLogger("memlab")
_ROW_NUMBER = re.compile(r"^row \d+: ")


def dated_lines(returned: ReturnedTexts) -> pl.DataFrame:
    """Write each returned text under its day, and count the tokens up to it.

    :returns: the rows with ``line``, its ``n_tokens``, and ``after``: tokens of the question's
        lines so far.
    """
    date = pl.col("time").str.slice(0, 10).str.to_date("%Y-%m-%d", strict=False)
    day = date.dt.strftime("%-d %B %Y")
    head = pl.format("[{}]\n", pl.coalesce(day, "time")).fill_null("")
    lines = returned.rows.with_columns(line=head + pl.col("text"))
    rows = add_token_counts(lines, "line").sort("query_id", "rank")
    return rows.with_columns(after=pl.col("n_tokens").cum_sum().over("query_id"))


def fit_to_budget(lines: pl.DataFrame, questions: pl.DataFrame, budget: int) -> pl.DataFrame:
    """Give each question the first texts that fit into a budget.

    :param lines: what :func:`dated_lines` gave.
    :returns: ``query_id``, ``text`` (empty for none) and ``n_tokens``.
    """
    fitting = lines.filter(pl.col("after") <= budget).group_by("query_id", maintain_order=True)
    made = fitting.agg(pl.col("line").str.join("\n").alias("text"), pl.col("n_tokens").sum())
    asked = questions.select("query_id")
    contexts = asked.join(made, on="query_id", how="left", maintain_order="left")
    return contexts.with_columns(pl.col("text").fill_null(""), pl.col("n_tokens").fill_null(0))


USAGE_COLUMNS = ("bytes", "tokens_read", "tokens_written")
RETURNED_SCHEMA = {
    "query_id": pl.String(),
    "rank": pl.Int32(),
    "text": pl.String(),
    "score": pl.Float64(),
    "source_ids": pl.List(pl.String()),
    "time": pl.String(),
}
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
_COUNTED = ("calls", "read", "written", "estimated", "refused", "embedded", "texts")
CALLS_SCHEMA = {
    "scope": pl.String(),
    "phase": pl.String(),
    **dict.fromkeys(_COUNTED, pl.Int64()),
    "seconds": pl.Float64(),
    "price": pl.Float64(),
    "prompts": pl.Int64(),
    "prompts_refused": pl.Int64(),
    "refusal": pl.String(),
}
"""What a scope asked of a model, a row a phase: counts as of
:class:`memlab.llm.proxy.PhaseCounts`, distinct ``prompts``, how many of them never had an answer,
and why the first had none."""
_TABLES: dict[str, Any] = {
    "rows": RETURNED_SCHEMA,
    "costs": COSTS_SCHEMA,
    "problems": PROBLEMS_SCHEMA,
    "calls": CALLS_SCHEMA,
}


def _empty(schema: Mapping[str, Any]) -> Callable[[], pl.DataFrame]:
    return partial(pl.DataFrame, schema=schema)


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
    :param calls: what scopes asked of a model, :data:`CALLS_SCHEMA`, where that was counted.
    """

    name: str
    rows: pl.DataFrame
    costs: pl.DataFrame = field(default_factory=_empty(COSTS_SCHEMA))
    problems: pl.DataFrame = field(default_factory=_empty(PROBLEMS_SCHEMA))
    provenance: Mapping[str, Any] = field(default_factory=dict)
    calls: pl.DataFrame = field(default_factory=_empty(CALLS_SCHEMA))

    def partial_answers(self, data: Dataset) -> str:
        """Say of how many questions with evidence something was returned, where not of all."""
        asked = qrels(data.questions, "turn").frame["query_id"].unique()
        n = asked.is_in(self.rows["query_id"].implode()).sum()
        if n == len(asked):
            return ""
        return f"answers {n:,} of {count_noun(len(asked), 'questions')} with evidence"

    @property
    def failed(self) -> list[str]:
        """The scopes that failed; their questions count as not answered."""
        is_done = pl.col("scope").is_in(self.costs["scope"].implode())
        unasked = pl.col("query_id").is_null() & ~is_done
        return self.problems.filter(unasked)["scope"].to_list()

    @property
    def prompts(self) -> tuple[int, int]:
        """How many distinct prompts a model was asked, and how many of them had no answer."""
        return int(self.calls["prompts"].sum()), int(self.calls["prompts_refused"].sum())

    @property
    def has_result(self) -> bool:
        """Whether there is anything to measure: a text, and an answer to a prompt, if any."""
        n_prompts, n_refused = self.prompts
        if n_prompts and n_refused == n_prompts:
            return False
        return not self.rows.is_empty()

    def status(self) -> str:
        """Say what its numbers lack; an empty text where nothing.

        >>> import polars as pl
        >>> ReturnedTexts("mine", pl.DataFrame(schema=RETURNED_SCHEMA)).status()
        'no result'
        """
        said = list[str]()
        if not self.has_result:
            said.append("no result")
        n_failed = len(self.failed)
        if n_failed:
            n_scopes = n_failed + self.costs.height
            said.append(f"{n_failed:,} of {count_noun(n_scopes, 'scopes')} failed")
        n_prompts, n_refused = self.prompts
        if n_refused:
            said.append(f"{n_refused:,} of {count_noun(n_prompts, 'prompts')} refused")
        return "; ".join(said)


def problem_row(
    name: str, scope: str, query_id: str | None, text: Any
) -> tuple[str, str | None, str]:
    """Make a row of :data:`PROBLEMS_SCHEMA`, whose text says where it was."""
    line = f"{_place(name, scope, query_id)}: {text}"
    return scope, query_id, line.encode("utf-8", "replace").decode()


def _place(name: str, scope: str, query_id: str | None) -> str:
    place = name
    if scope:
        place += f", scope {scope}"
    if query_id:
        place += f", query {query_id}"
    return place


def problem_lines(problems: pl.DataFrame) -> list[str]:
    """Give problems in lines; what happened several times is said once, with its number.

    :param problems: :data:`PROBLEMS_SCHEMA` and ``system``.

    >>> import polars as pl
    >>> rows = [problem_row("mine", "ann", query, "search gave int") for query in ("q0", "q1")]
    >>> problems = pl.DataFrame(rows, PROBLEMS_SCHEMA, orient="row")
    >>> problem_lines(problems.with_columns(system=pl.lit("mine")))
    ['mine, scope ann, query q0: search gave int, 2 times']
    """
    counted = dict[tuple[str, str], int]()
    shown = dict[tuple[str, str], str]()
    rows = problems.select("system", *PROBLEMS_SCHEMA).iter_rows()
    for system, scope, query_id, text in rows:
        line = text.removeprefix(f"{_place(system, scope, query_id)}: ")
        kind = system, _ROW_NUMBER.sub("", line)
        counted[kind] = counted.get(kind, 0) + 1
        shown.setdefault(kind, text)
    lines = list[str]()
    for kind, n in counted.items():
        times = "" if n == 1 else f", {n:,} times"
        lines.append(shown[kind] + times)
    return lines


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
    :param folder: where each scope is kept when it is done, by the memory's module, the versions
        that it imports, its state and recording, the dataset and k; what is there is not run again.
        Failed scopes are, and a memory whose source or state cannot be read.
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
            f"k is {k}, the timeout {timeout}; ask for at least one row, "
            "and wait 0 to 1,000,000 seconds"
        )
    system = memory(system, timeout=timeout)
    about = {"system": name, "k": k, "memory": system.settings, "fingerprint": data.fingerprint()}
    kept = _FinishedScopes(folder, about)
    asking = _Asking(system, name, data, k, timeout)
    parts = [_make_frames({})]
    n_read = 0
    scopes = data.questions.partition_by("scope", maintain_order=True)
    for asked in tqdm(scopes, desc=name, delay=2):
        scope = asked["scope"][0]
        part = kept.read(scope)
        if part is None:
            tables = asking.run(scope, asked)
            kept.write(scope, tables)
            part = _make_frames(tables)
        else:
            n_read += 1
        parts.append(part)
    if n_read:
        count = count_noun(n_read, "scopes")
        _log.warning("%s: %s read from %s, not run again", name, count, folder)
    whole = {table: pl.concat([part[table] for part in parts]) for table in _TABLES}
    lines = system.notes + _short_lists(whole["costs"], k)
    general = [problem_row(name, "", "", line) for line in lines]
    first = pl.DataFrame(general, PROBLEMS_SCHEMA, orient="row")
    whole["problems"] = pl.concat([first, whole["problems"]])
    return ReturnedTexts(name, **whole, provenance={**about, "dataset": data.name})


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
    return [f"gave at most {count_noun(most, 'rows')} of {k:,}"]


def _make_frames(tables: Mapping[str, Any]) -> dict[str, pl.DataFrame]:
    """Make the frames of :data:`_TABLES`; rows are tuples."""
    made = dict[str, pl.DataFrame]()
    for table, schema in _TABLES.items():
        made[table] = pl.DataFrame(tables.get(table, []), schema=schema, orient="row")
    return made


class _FinishedScopes:
    """The scopes of a memory that are done, each in a file.

    :param folder: of the files; with ``None`` nothing is kept.
    :param about: what the memory is and was asked, which names the files; one whose code cannot be
        read is not kept.
    """

    def __init__(self, folder: str | Path | None, about: Mapping[str, Any]) -> None:
        self._about = about
        self._folder: Path | None = None
        is_known = about["memory"]["source"] is not None
        if folder and is_known:
            self._folder = fix_place(folder)  # A memory may change the working directory.

    def _file(self, scope: str) -> Path | None:
        if self._folder is None:
            return None
        columns = [[*COSTS_SCHEMA], [*CALLS_SCHEMA]]
        key = json.dumps([self._about, scope, columns], sort_keys=True, default=str)
        return self._folder / f"{hashlib.sha256(key.encode()).hexdigest()[:16]}.json"

    def read(self, scope: str) -> dict[str, pl.DataFrame] | None:
        """Read a scope that was done; one whose file is damaged is run again."""
        file = self._file(scope)
        if file is None or not file.exists():
            return None
        try:
            return _make_frames(json.loads(file.read_bytes()))
        except Exception:  # whatever stands in the file
            return None

    def write(self, scope: str, tables: Mapping[str, Any]) -> None:
        """Keep a scope that did not fail."""
        file = self._file(scope)
        if file is None or not tables["costs"]:
            return
        with open_atomically(file) as stream:
            stream.write(json.dumps(tables).encode())


def known_turns(turns: pl.DataFrame) -> dict[str, KnownTurn]:
    """Give the turns that a memory may name, by their ids."""
    times = turns.select(pl.col("timestamp").dt.to_string("iso:strict")).to_series()
    rows = zip(turns["turn_id"], turn_texts(turns), times, strict=True)
    return {row[0]: row for row in rows}


def _anonymise_turns(data: Dataset, scope: str) -> tuple[pl.DataFrame, dict[str, Any]]:
    """Give what a memory takes in, in order of time, and the turns that its ids stand for.

    The ids tell the place alone, since some benchmarks' own give the evidence away.
    """
    own = data.turns.filter(pl.col("scope") == scope)
    if own["timestamp"].null_count() == 0:
        own = own.sort("timestamp", maintain_order=True)
    names = own["session_id"].unique(maintain_order=True)
    sessions = {name: f"session-{n}" for n, name in enumerate(names, 1)}
    session = pl.col("session_id").replace_strict(sessions, return_dtype=pl.String)
    number = pl.format("turn-{}", pl.int_range(1, pl.len() + 1))
    turns = own.select(id=number, session=session, speaker="speaker", time="timestamp", text="text")
    known = known_turns(own)
    known |= dict(zip(turns["id"], known.values(), strict=True))
    return turns.cast(TURNS), known  # type: ignore[arg-type]


@dataclass(frozen=True)
class _Asking:
    """How a memory is asked the questions of a dataset."""

    system: Memory
    name: str
    data: Dataset
    k: int
    timeout: float

    def run(self, scope: str, asked: pl.DataFrame) -> dict[str, list[Any]]:
        """Fill one scope and ask its questions; gives the rows of :data:`_TABLES`."""
        try:
            tables = self._fill_and_ask(scope, asked)
        except Failure as error:
            tables = {"rows": [], "costs": [], "problems": [(None, str(error))]}
        tables["problems"] = [problem_row(self.name, scope, *each) for each in tables["problems"]]
        calls = self.system.model_calls(scope)
        tables["calls"] = [[row[name] for name in CALLS_SCHEMA] for row in calls]
        return tables

    def _fill_and_ask(self, scope: str, asked: pl.DataFrame) -> dict[str, list[Any]]:
        turns, known = _anonymise_turns(self.data, scope)
        system, timeout = self.system, self.timeout
        call_with_timeout(timeout, "reset", lambda: system.reset(scope))
        _, ingest = call_with_timeout(timeout, "ingest", lambda: system.ingest(scope, turns))
        _, wait = call_with_timeout(timeout, "wait", system.wait)
        rows = list[Any]()
        problems = list[Any]()
        spent = list[float]()
        n_in_a_row = 0
        most_rows: int | None = None
        for query_id, text, when in asked.select("query_id", "text", "timestamp").iter_rows():
            search = partial(self._search, scope, text, when)
            try:
                found, seconds = call_with_timeout(timeout, "search", search)
            except Failure as error:
                problems.append((query_id, str(error)))
                n_in_a_row = n_in_a_row + 1 if isinstance(error, Unanswered) else 0
                if n_in_a_row == 3:
                    raise Failure(f"{error}, and the two searches before failed too") from None
                continue
            n_in_a_row = 0
            spent.append(seconds * 1000)
            most_rows = max(most_rows or 0, len(found))
            read, odd = select_usable_rows(found, known, self.k)
            rows += [(query_id, *row) for row in read]
            problems += [(query_id, line) for line in odd]
        used, lines = self._usage(scope)
        problems += [(None, line) for line in lines]
        costs = [(scope, turns.height, asked.height, most_rows, ingest, wait, spent, *used)]
        return {"rows": rows, "costs": costs, "problems": problems}

    def _search(self, scope: str, text: str, when: Any) -> list[dict[str, Any]]:
        return list_returned_rows(self.system.search(scope, text, self.k, when), self.k)

    def _usage(self, scope: str) -> tuple[list[int | None], list[str]]:
        """Read what the memory says of its use, and a line where it cannot be read.

        :returns: numbers in the order of :data:`USAGE_COLUMNS`.
        """
        used = list[int | None]()
        try:
            usage, _ = call_with_timeout(self.timeout, "usage", lambda: self.system.usage(scope))
            said = dict(usage)
            for name in USAGE_COLUMNS:
                number = said.get(name)
                used.append(None if number is None else _check_use(int(number)))
        except Exception as error:  # an answer of somebody else's code
            nothing: list[int | None] = [None] * len(USAGE_COLUMNS)
            return nothing, [f"usage cannot be read: {shorten_line(error)}"]
        return used, []


def _check_use(number: int) -> int:
    if not 0 <= number < 2**63:
        raise ValueError("a number below 0 or beyond 2^63")
    return number
