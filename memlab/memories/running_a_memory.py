"""Run a memory over a dataset: what it returned, what that cost, and what failed."""

from __future__ import annotations

import hashlib
import json
import logging
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import Any

import polars as pl

from memlab.atomic_files import make_absolute, open_atomically
from memlab.conversation.contexts import add_token_counts
from memlab.embed.turn_texts import turn_texts
from memlab.errors import DataError
from memlab.memories.memory import TURNS, Memory, SearchableSystem, memory
from memlab.memories.returned_rows import (
    Failure,
    KnownTurn,
    Unanswered,
    call_and_time_with_timeout,
    list_returned_rows,
    select_usable_rows_and_problems,
)
from memlab.progress_bars import progress_bar
from memlab.records import Dataset, qrels
from memlab.terminal_text import count_noun, shorten_line

_log = logging.getLogger("memlab")
_ROW_NUMBER = re.compile(r"^row \d+: ")


def dated_lines(returned: ReturnedTexts) -> pl.DataFrame:
    """Write each returned text under its day, and count the tokens up to it.

    :returns: the rows with ``line``, its ``n_tokens``, and ``after``: tokens of the question's
        lines so far.
    """
    text_date = pl.col("time").str.slice(0, 10).str.to_date("%Y-%m-%d", strict=False)
    text_day = text_date.dt.strftime("%-d %B %Y")
    day_heading = pl.format("[{}]\n", pl.coalesce(text_day, "time")).fill_null("")
    headed_lines = returned.rows.with_columns(line=day_heading + pl.col("text"))
    counted_lines = add_token_counts(headed_lines, "line").sort("query_id", "rank")
    return counted_lines.with_columns(after=pl.col("n_tokens").cum_sum().over("query_id"))


def fit_to_budget(lines: pl.DataFrame, questions: pl.DataFrame, budget: int) -> pl.DataFrame:
    """Give each question the first texts that fit into a budget.

    :param lines: what :func:`dated_lines` gave.
    :returns: ``query_id``, ``text`` (empty for none) and ``n_tokens``.
    """
    fitting = lines.filter(pl.col("after") <= budget).group_by("query_id", maintain_order=True)
    context_texts = fitting.agg(
        pl.col("line").str.join("\n").alias("text"), pl.col("n_tokens").sum()
    )
    question_ids = questions.select("query_id")
    contexts = question_ids.join(context_texts, on="query_id", how="left", maintain_order="left")
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
RowsByTable = dict[str, list[Any]]
"""Rows of tables of :data:`_TABLES`, by the name of the table; one that has none may be missing."""


def _empty_frame_factory(schema: Mapping[str, Any]) -> Callable[[], pl.DataFrame]:
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
    costs: pl.DataFrame = field(default_factory=_empty_frame_factory(COSTS_SCHEMA))
    problems: pl.DataFrame = field(default_factory=_empty_frame_factory(PROBLEMS_SCHEMA))
    provenance: Mapping[str, Any] = field(default_factory=dict)
    calls: pl.DataFrame = field(default_factory=_empty_frame_factory(CALLS_SCHEMA))

    def partial_answers(self, data: Dataset) -> str:
        """Say of how many questions with evidence something was returned, where not of all."""
        asked_ids = qrels(data.questions, "turn").frame["query_id"].unique()
        n_answered = asked_ids.is_in(self.rows["query_id"].implode()).sum()
        if n_answered == len(asked_ids):
            return ""
        return f"answers {n_answered:,} of {count_noun(len(asked_ids), 'questions')} with evidence"

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
        status_parts = list[str]()
        if not self.has_result:
            status_parts.append("no result")
        n_failed = len(self.failed)
        if n_failed:
            n_scopes = n_failed + self.costs.height
            status_parts.append(f"{n_failed:,} of {count_noun(n_scopes, 'scopes')} failed")
        n_prompts, n_refused = self.prompts
        if n_refused:
            status_parts.append(f"{n_refused:,} of {count_noun(n_prompts, 'prompts')} refused")
        return "; ".join(status_parts)


def make_problem_row(
    system_name: str, scope: str, query_id: str | None, problem_text: str
) -> tuple[str, str | None, str]:
    """Make a row of :data:`PROBLEMS_SCHEMA`, whose text says where it was."""
    problem_line = f"{_system_scope_and_query_text(system_name, scope, query_id)}: {problem_text}"
    return scope, query_id, problem_line.encode("utf-8", "replace").decode()


def _system_scope_and_query_text(system_name: str, scope: str, query_id: str | None) -> str:
    place_text = system_name
    if scope:
        place_text += f", scope {scope}"
    if query_id:
        place_text += f", query {query_id}"
    return place_text


def merge_problems_into_counted_lines(problems: pl.DataFrame) -> list[str]:
    """Give problems in lines; what happened several times is said once, with its number.

    :param problems: :data:`PROBLEMS_SCHEMA` and ``system``.

    >>> import polars as pl
    >>> rows = [make_problem_row("mine", "ann", query, "search gave int") for query in ("q0", "q1")]
    >>> problems = pl.DataFrame(rows, PROBLEMS_SCHEMA, orient="row")
    >>> merge_problems_into_counted_lines(problems.with_columns(system=pl.lit("mine")))
    ['mine, scope ann, query q0: search gave int, 2 times']
    """
    count_by_kind = dict[tuple[str, str], int]()
    first_texts = dict[tuple[str, str], str]()
    problem_rows = problems.select("system", *PROBLEMS_SCHEMA).iter_rows()
    for system_name, scope_name, query_id, problem_text in problem_rows:
        bare_text = problem_text.removeprefix(
            f"{_system_scope_and_query_text(system_name, scope_name, query_id)}: "
        )
        problem_kind = system_name, _ROW_NUMBER.sub("", bare_text)
        count_by_kind[problem_kind] = count_by_kind.get(problem_kind, 0) + 1
        first_texts.setdefault(problem_kind, problem_text)
    counted_lines = list[str]()
    for problem_kind, n_times in count_by_kind.items():
        times_note = "" if n_times == 1 else f", {n_times:,} times"
        counted_lines.append(first_texts[problem_kind] + times_note)
    return counted_lines


def collect(
    system: SearchableSystem,
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
    if k < 1 or not 0 < timeout < 1e6:
        raise DataError(
            f"k is {k}, the timeout {timeout}; ask for at least one row, "
            "and wait 0 to 1,000,000 seconds"
        )
    system = memory(system, timeout=timeout)
    collected_record = {
        "system": name,
        "k": k,
        "memory": system.settings,
        "fingerprint": data.fingerprint(),
    }
    finished_scopes = _FinishedScopes(folder, collected_record)
    scope_asking = _ScopeRunner(system, name, data, k, timeout)
    scope_frames = [_result_frame_by_table({})]
    n_read_back = 0
    scope_questions = data.questions.partition_by("scope", maintain_order=True)
    for asked_questions in progress_bar(scope_questions, what=name, unit="scopes", delay=2):
        scope_name = asked_questions["scope"][0]
        frames_of_scope = finished_scopes.read_scope_if_finished(scope_name)
        if frames_of_scope is None:
            scope_tables = scope_asking.run_scope_and_keep_failure(scope_name, asked_questions)
            finished_scopes.write_scope_unless_failed(scope_name, scope_tables)
            frames_of_scope = _result_frame_by_table(scope_tables)
        else:
            n_read_back += 1
        scope_frames.append(frames_of_scope)
    if n_read_back:
        count_text = count_noun(n_read_back, "scopes")
        _log.warning("%s: %s read from %s, not run again", name, count_text, folder)
    all_frames = {}
    for table_name in _TABLES:
        all_frames[table_name] = pl.concat([frames[table_name] for frames in scope_frames])
    general_lines = system.notes + _notes_if_all_lists_shorter_than_k(all_frames["costs"], k)
    problem_rows = [make_problem_row(name, "", "", general_line) for general_line in general_lines]
    general_problems = pl.DataFrame(problem_rows, PROBLEMS_SCHEMA, orient="row")
    all_frames["problems"] = pl.concat([general_problems, all_frames["problems"]])
    return ReturnedTexts(name, **all_frames, provenance={**collected_record, "dataset": data.name})


def _notes_if_all_lists_shorter_than_k(costs: pl.DataFrame, k: int) -> list[str]:
    """Say that no list had k rows, where some scope has turns for more than it got.

    :param costs: as of :class:`ReturnedTexts`.
    """
    answered_scopes = costs.drop_nulls("most_rows")
    full_lists = answered_scopes.filter(pl.col("most_rows") >= k)
    short_lists = answered_scopes.filter(pl.col("most_rows") < pl.col("n_turns"))
    if full_lists.height or short_lists.is_empty():
        return []
    most_rows: Any = answered_scopes["most_rows"].max()
    return [f"gave at most {count_noun(most_rows, 'rows')} of {k:,}"]


def _result_frame_by_table(rows_by_table: RowsByTable) -> dict[str, pl.DataFrame]:
    """Make the frames of :data:`_TABLES`; rows are tuples."""
    frame_by_table = dict[str, pl.DataFrame]()
    for table_name, table_schema in _TABLES.items():
        frame_by_table[table_name] = pl.DataFrame(
            rows_by_table.get(table_name, []), schema=table_schema, orient="row"
        )
    return frame_by_table


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
            self._folder = make_absolute(folder)  # A memory may change the working directory.

    def _path_of_scope_file(self, scope: str) -> Path | None:
        if self._folder is None:
            return None
        column_names = [[*COSTS_SCHEMA], [*CALLS_SCHEMA]]
        scope_key = json.dumps([self._about, scope, column_names], sort_keys=True, default=str)
        return self._folder / f"{hashlib.sha256(scope_key.encode()).hexdigest()[:16]}.json"

    def read_scope_if_finished(self, scope: str) -> dict[str, pl.DataFrame] | None:
        """Read a scope that was done; one whose file is damaged is run again."""
        scope_file = self._path_of_scope_file(scope)
        if scope_file is None or not scope_file.exists():
            return None
        try:
            return _result_frame_by_table(json.loads(scope_file.read_bytes()))
        except Exception:  # whatever stands in the file
            return None

    def write_scope_unless_failed(self, scope: str, rows_by_table: RowsByTable) -> None:
        """Keep a scope that did not fail."""
        scope_file = self._path_of_scope_file(scope)
        if scope_file is None or not rows_by_table["costs"]:
            return
        with open_atomically(scope_file) as written_file:
            written_file.write(json.dumps(rows_by_table).encode())


def known_turns_by_id(turns: pl.DataFrame) -> dict[str, KnownTurn]:
    """Give the turns that a memory may name, by their ids."""
    turn_times = turns.select(pl.col("timestamp").dt.to_string("iso:strict")).to_series()
    turn_rows = zip(turns["turn_id"], turn_texts(turns), turn_times, strict=True)
    return {turn_row[0]: KnownTurn(*turn_row) for turn_row in turn_rows}


def _anonymous_turns_and_known_turn_by_id(
    data: Dataset, scope: str
) -> tuple[pl.DataFrame, dict[str, KnownTurn]]:
    """Give what a memory takes in, in order of time, and the turns that its ids stand for.

    The ids tell the place alone, since some benchmarks' own give the evidence away.
    """
    scope_turns = data.turns.filter(pl.col("scope") == scope)
    if scope_turns["timestamp"].null_count() == 0:
        scope_turns = scope_turns.sort("timestamp", maintain_order=True)
    session_names = scope_turns["session_id"].unique(maintain_order=True)
    session_by_name = {
        session_name: f"session-{session_number}"
        for session_number, session_name in enumerate(session_names, 1)
    }
    anonymous_session = pl.col("session_id").replace_strict(session_by_name, return_dtype=pl.String)
    anonymous_id = pl.format("turn-{}", pl.int_range(1, pl.len() + 1))
    anonymous = scope_turns.select(
        id=anonymous_id, session=anonymous_session, speaker="speaker", time="timestamp", text="text"
    )
    turn_by_id = known_turns_by_id(scope_turns)
    turn_by_id |= dict(zip(anonymous["id"], turn_by_id.values(), strict=True))
    return anonymous.cast(TURNS), turn_by_id  # type: ignore[arg-type]


@dataclass(frozen=True)
class _ScopeRunner:
    """How a memory is asked the questions of a dataset."""

    system: Memory
    name: str
    data: Dataset
    k: int
    timeout: float

    def run_scope_and_keep_failure(self, scope: str, scope_questions: pl.DataFrame) -> RowsByTable:
        """Fill one scope and ask its questions; gives the rows of :data:`_TABLES`."""
        try:
            scope_tables = self._reset_ingest_and_ask_questions(scope, scope_questions)
        except Failure as error:
            scope_tables = {"rows": [], "costs": [], "problems": [(None, str(error))]}
        scope_tables["problems"] = [
            make_problem_row(self.name, scope, *problem) for problem in scope_tables["problems"]
        ]
        in_order = itemgetter(*CALLS_SCHEMA)
        scope_tables["calls"] = [[*in_order(call)] for call in self.system.model_calls(scope)]
        return scope_tables

    def _reset_ingest_and_ask_questions(
        self, scope: str, scope_questions: pl.DataFrame
    ) -> dict[str, list[Any]]:
        anonymous_turns, turn_by_id = _anonymous_turns_and_known_turn_by_id(self.data, scope)
        asked_memory = self.system
        call_timeout = self.timeout
        call_and_time_with_timeout(call_timeout, "reset", lambda: asked_memory.reset(scope))
        _, ingest_seconds = call_and_time_with_timeout(
            call_timeout, "ingest", lambda: asked_memory.ingest(scope, anonymous_turns)
        )
        _, wait_seconds = call_and_time_with_timeout(call_timeout, "wait", asked_memory.wait)
        returned_rows = list[Any]()
        problems = list[Any]()
        search_times = list[float]()
        n_in_a_row = 0
        most_rows: int | None = None
        for query_id, question, asked_at in scope_questions.select(
            "query_id", "text", "timestamp"
        ).iter_rows():
            ask_memory = partial(self._search_and_list_rows, scope, question, asked_at)
            try:
                answer_rows, search_seconds = call_and_time_with_timeout(
                    call_timeout, "search", ask_memory
                )
            except Failure as error:
                problems.append((query_id, str(error)))
                n_in_a_row = n_in_a_row + 1 if isinstance(error, Unanswered) else 0
                if n_in_a_row == 3:
                    raise Failure(f"{error}, and the two searches before failed too") from None
                continue
            n_in_a_row = 0
            search_times.append(search_seconds * 1000)
            most_rows = max(most_rows or 0, len(answer_rows))
            usable_rows, row_problems = select_usable_rows_and_problems(
                answer_rows, turn_by_id, self.k
            )
            returned_rows += [(query_id, *usable_row) for usable_row in usable_rows]
            problems += [(query_id, problem_text) for problem_text in row_problems]
        usage_counts, usage_problems = self._read_usage_and_problems(scope)
        problems += [(None, problem_text) for problem_text in usage_problems]
        scope_costs = [
            (
                scope,
                anonymous_turns.height,
                scope_questions.height,
                most_rows,
                ingest_seconds,
                wait_seconds,
                search_times,
                *usage_counts,
            )
        ]
        return {"rows": returned_rows, "costs": scope_costs, "problems": problems}

    def _search_and_list_rows(
        self, scope: str, question: str, asked_at: datetime | None
    ) -> list[dict[str, Any]]:
        return list_returned_rows(self.system.search(scope, question, self.k, asked_at), self.k)

    def _read_usage_and_problems(self, scope: str) -> tuple[list[int | None], list[str]]:
        """Read what the memory says of its use, and a line where it cannot be read.

        :returns: numbers in the order of :data:`USAGE_COLUMNS`.
        """
        usage_counts = list[int | None]()
        try:
            memory_usage, _ = call_and_time_with_timeout(
                self.timeout, "usage", lambda: self.system.usage(scope)
            )
            usage_by_name = dict(memory_usage)
            for column in USAGE_COLUMNS:
                stated_count = usage_by_name.get(column)
                usage_counts.append(
                    None if stated_count is None else _checked_usage_count(int(stated_count))
                )
        except Exception as error:  # an answer of somebody else's code
            nothing: list[int | None] = [None] * len(USAGE_COLUMNS)
            return nothing, [f"usage cannot be read: {shorten_line(error)}"]
        return usage_counts, []


def _checked_usage_count(usage_count: int) -> int:
    if not 0 <= usage_count < 2**63:
        raise ValueError("a number below 0 or beyond 2^63")
    return usage_count
