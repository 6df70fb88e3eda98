"""Langfuse's traces and observations, as its pages download them and its API gives them.

Layout: Langfuse's pages on exports. A trace with input and output of its own is read by them, another by its
generations; traces of one session are a session.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from memlab.datasets.importers.common import ME, Export, Message, decoded, dig, items, name, time
from memlab.datasets.importers.files import Member
from memlab.datasets.importers.table import rows
from memlab.datasets.importers.traces import Step, conversations

_TRACE = {"observations", "traceId", "trace_id", "data.traceId", "traces.observations", "traces.input", "trace.id"}
_MORE = {
    "input",
    "output",
    "startTime",
    "start_time",
    "projectId",
    "data.input",
    "traces.input",
    "trace.input",
    "traces.id",
}
_MODELS = ("GENERATION", "AGENT", "CHAIN", "SPAN", "")


def matches(member: Member) -> bool:
    keys = member.keys or member.columns
    if "run_type" in keys or "mapping" in keys:
        return False
    session = {"sessionId", "input", "output"} <= keys or {"data.sessionId", "data.input"} <= keys
    return session or (bool(_TRACE & keys) and bool(_MORE & keys))


def read(source: Export) -> Iterator[Message]:
    """Read the messages that went into models and came out of them, each once."""
    traces: dict[str, dict[str, Any]] = {}
    runs: dict[str, list[dict[str, Any]]] = {}
    for member in source.members:
        for number, raw in rows(member):
            listed = items(dig(raw, "data")) or items(dig(raw, "traces")) or [raw]
            for each in listed:
                if not isinstance(each, dict):
                    source.drop("unreadable messages", ME)
                    continue
                about = each["trace"] if isinstance(each.get("trace"), dict) else each
                within = items(decoded(each.get("observations")))
                if observed := name(each.get("traceId"), each.get("trace_id")):
                    runs.setdefault(observed, []).append(each)
                else:
                    key = name(about.get("id")) or str(number)
                    traces[key] = {"sessionId": name(dig(raw, "id")) if each is not raw else None} | about
                    runs.setdefault(key, []).extend(run for run in within if isinstance(run, dict))
    steps: list[Step] = []
    for key in dict.fromkeys((*traces, *runs)):
        steps += _steps(source, key, traces.get(key, {}), runs.get(key, []))
    yield from conversations(source, steps)


def _steps(source: Export, key: str, trace: dict[str, Any], runs: list[dict[str, Any]]) -> Iterator[Step]:
    everything = [trace, *runs]
    session = name(*(run.get(each) for run in everything for each in ("sessionId", "session_id"))) or f"trace {key}"
    scope = name(*(run.get(each) for run in everything for each in ("userId", "user_id"))) or ME
    if trace.get("input") and trace.get("output"):
        kept = [trace]
    else:
        talk = [run for run in runs if name(run.get("type")).upper() in _MODELS]
        kept = [run for run in talk if name(run.get("type")).upper() == "GENERATION"] or talk
    other = [run for run in runs if name(run.get("type")).upper() == "TOOL"]
    source.drop("tool calls", scope, len(other))
    source.drop("observations of other kinds", scope, len(runs) - len(other) - (0 if kept == [trace] else len(kept)))
    for run in kept:
        begun = time(run.get("startTime") or run.get("start_time") or run.get("timestamp"))
        ended = time(run.get("endTime") or run.get("end_time"))
        yield Step(scope, session, str(begun), decoded(run.get("input")), decoded(run.get("output")), begun, ended)
