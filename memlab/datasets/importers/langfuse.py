"""Langfuse's traces and observations, as its pages download them and its API gives them.

Layout: Langfuse's pages on exports. A trace with input and output of its own is read by them, another by its
generations; traces of one session are a session.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from memlab.datasets.importers.common import ME, Message, any_of, decoded, dig, items, name, time
from memlab.datasets.importers.traces import Step, conversations
from memlab.datasets.reading import Source

_TRACE = {"observations", "traceId", "trace_id", "data.traceId", "traces.observations", "traces.input", "trace.id"}
_MORE = {"input", "output", "startTime", "start_time", "projectId", "data.input", "traces.input", "trace.input"}
_MORE |= {"traces.id"}
_MODELS = ("GENERATION", "AGENT", "CHAIN", "SPAN", "")


def detect(file: Source) -> bool:
    keys = file.keys or file.columns
    if "run_type" in keys or "mapping" in keys:
        return False
    session = {"sessionId", "input", "output"} <= keys or {"data.sessionId", "data.input"} <= keys
    return session or (bool(_TRACE & keys) and bool(_MORE & keys))


def records(source: Source) -> Iterator[Message]:
    """Read the messages that went into models and came out of them, each once."""
    traces: dict[str, dict[str, Any]] = {}
    runs: dict[str, list[dict[str, Any]]] = {}
    for file in source.members:
        for number, raw in file.values():
            for each in items(dig(raw, "data")) or items(dig(raw, "traces")) or [raw]:
                if not isinstance(each, dict):
                    source.drop("unreadable messages", ME)
                elif observed := any_of(each, "traceId", "trace_id"):
                    runs.setdefault(observed, []).append(each)
                else:
                    about = each["trace"] if isinstance(each.get("trace"), dict) else each
                    key, session = any_of(about, "id") or str(number), any_of(raw, "id") if each is not raw else None
                    traces[key] = {"sessionId": session} | about
                    within = items(decoded(each.get("observations")))
                    runs.setdefault(key, []).extend(run for run in within if isinstance(run, dict))
    keys = dict.fromkeys((*traces, *runs))
    steps = [step for key in keys for step in _steps(source, key, traces.get(key, {}), runs.get(key, []))]
    yield from conversations(source, steps)


def _steps(source: Source, key: str, trace: dict[str, Any], runs: list[dict[str, Any]]) -> Iterator[Step]:
    everything = [trace, *runs]
    session = name(*(run.get(each) for run in everything for each in ("sessionId", "session_id"))) or f"trace {key}"
    scope = name(*(run.get(each) for run in everything for each in ("userId", "user_id"))) or ME
    kinds = [any_of(run, "type").upper() for run in runs]
    talk = [run for run, kind in zip(runs, kinds, strict=True) if kind in _MODELS]
    models = [run for run, kind in zip(runs, kinds, strict=True) if kind == "GENERATION"] or talk
    whole = bool(trace.get("input") and trace.get("output"))
    source.drop("tool calls", scope, kinds.count("TOOL"))
    source.drop("observations of other kinds", scope, len(runs) - kinds.count("TOOL") - (0 if whole else len(models)))
    for run in [trace] if whole else models:
        begun = time(run.get("startTime") or run.get("start_time") or run.get("timestamp"))
        ended = time(run.get("endTime") or run.get("end_time"))
        yield Step(scope, session, str(begun), decoded(run.get("input")), decoded(run.get("output")), begun, ended)
