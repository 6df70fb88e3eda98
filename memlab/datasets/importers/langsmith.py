"""LangSmith's runs, as its API and its bulk export give them: JSON, JSON lines, CSV or Parquet.

Layout: LangSmith's page on the run data format. A trace whose root run holds messages is read by it, another by the
runs of its models; traces of one thread are a session.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from memlab.datasets.importers.common import ME, Message, any_of, decoded, dig, items, time
from memlab.datasets.importers.traces import Step, conversations
from memlab.datasets.reading import Source

_KINDS = ("llm", "chain", "prompt", "parser", "", "agent")
_THREAD = ("session_id", "thread_id", "conversation_id")


def detect(file: Source) -> bool:
    keys = file.keys or file.columns
    return bool({"run_type", "runs.run_type"} & keys) and bool({"inputs", "outputs", "runs.inputs"} & keys)


def records(source: Source) -> Iterator[Message]:
    """Read the messages that went into models and came out of them, each once."""
    traces: dict[str, list[tuple[bool, Step]]] = {}
    for file in source.members:
        for number, raw in file.values():
            for run in items(dig(raw, "runs")) or [raw]:
                kind = any_of(run, "run_type")
                if not isinstance(run, dict) or kind not in _KINDS:
                    source.drop("tool calls" if kind == "tool" else "runs of other kinds", ME)
                    continue
                trace = any_of(run, "trace_id", "id") or str(number)
                traces.setdefault(trace, []).append((not run.get("parent_run_id"), _step(run)))
    yield from conversations(source, [step for trace, runs in traces.items() for step in _kept(runs, trace)])


def _kept(runs: list[tuple[bool, Step]], trace: str) -> list[Step]:
    """Give the root of a trace where it holds what was asked and answered, else all its runs, in the thread of any."""
    thread = next((step.session for _, step in runs if step.session), f"trace {trace}")
    scope = next((step.scope for _, step in runs if step.scope != ME), ME)
    kept = [step for root, step in runs if root and step.asked and step.answered] or [step for _, step in runs]
    for step in kept:
        step.session, step.scope = thread, scope
    return kept


def _step(run: dict[str, Any]) -> Step:
    about = dig(decoded(run.get("extra")), "metadata") or decoded(run.get("metadata")) or {}
    thread = any_of(about, *_THREAD) or any_of(run, "thread_id")
    scope = any_of(about, "user_id", "user", "ls_user_id") or ME
    begun, ended = _utc(run.get("start_time")), _utc(run.get("end_time"))
    asked, answered = decoded(run.get("inputs")), decoded(run.get("outputs"))
    return Step(scope, thread, f"{begun} {any_of(run, 'dotted_order')}", asked, answered, begun, ended)


def _utc(value: Any) -> Any:
    """Give a time of a run, which is in UTC where it names no zone."""
    if isinstance(value, str) and "T" in value:
        with suppress(ValueError):
            value = datetime.fromisoformat(value)
    return value.replace(tzinfo=UTC) if isinstance(value, datetime) and value.tzinfo is None else time(value)
