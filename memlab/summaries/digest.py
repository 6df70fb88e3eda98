"""The digest of a week or month as Markdown."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any
from zoneinfo import ZoneInfo

from memlab.summaries.prompts import evidence_column
from memlab.terminal import escape_markdown

_HEADINGS = {"carried_on": "Carried on from before", "decisions": "Decided", "open_questions": "Still open"}


def to_markdown(node: Mapping[str, Any], *, tz: str = "UTC") -> str:
    """Write a row of :class:`memlab.records.Node` as Markdown, each sentence with the turns that it stands on.

    :param tz: as the node was made with.

    >>> import memlab
    >>> turn = memlab.Turn("u/s/1", "u", "u/s", 1, "Mel", "user", "I moved to *Oslo*.")
    >>> nodes = memlab.summaries.rollup(memlab.records.frame(memlab.Turn, [turn]))
    >>> print(memlab.summaries.to_markdown(nodes.row(1, named=True)))
    # u: week, undated
    <BLANKLINE>
    1 turns in 1 sessions; written by: extractive; topics: Oslo
    <BLANKLINE>
    - Mel: I moved to \\*Oslo\\*. (u/s/1)
    """
    lines = [f"# {escape_markdown(node['scope'])}: {period_name(node, tz=tz)}", ""]
    below = {"week": "sessions", "month": "weeks"}.get(node["kind"], "parts")
    counted = f"{len(node['turns']):,} turns in {len(node['children']):,} {below}; written by: {node['service']}"
    topics = escape_markdown(", ".join(node["topics"]))
    lines += [
        counted + (f"; topics: {topics}" if topics else ""),
        "",
        *_bullet_lines(node["sentences"], node["evidence"]),
    ]
    for name, head in _HEADINGS.items():
        if node[name]:
            lines += ["", f"## {head}", "", *_bullet_lines(node[name], node[evidence_column(name)])]
    return "\n".join(lines)


def period_name(node: Mapping[str, Any], *, tz: str = "UTC") -> str:
    """Give the name of a node's period: ``week of 2 March 2026``, ``March 2026``, ``session of 4 March 2026``."""
    if node["start"] is None:
        return f"{node['kind']}, undated"
    day = node["start"].astimezone(ZoneInfo(tz)).date()
    monday = day - timedelta(days=day.weekday())
    if node["kind"] == "month":
        return f"{monday + timedelta(days=3):%B %Y}"
    return f"{node['kind']} of {monday if node['kind'] == 'week' else day:%-d %B %Y}"


def _bullet_lines(texts: list[str], evidence: list[list[str]]) -> list[str]:
    return [
        f"- {escape_markdown(text)} ({escape_markdown(', '.join(ids))})"
        for text, ids in zip(texts, evidence, strict=True)
    ]
