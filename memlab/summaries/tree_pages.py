"""A whole tree of summaries as a page, each sentence with its messages: Markdown, in which it
links to them, or HTML that opens and closes.
"""

from __future__ import annotations

import html
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

import polars as pl

from memlab.summaries.period_rollups import HEADINGS, describe_node, period_name
from memlab.summaries.summary_prompts import evidence_column
from memlab.terminal_text import count_noun, escape_line, escape_markdown

Node = Mapping[str, Any]
_MAX_HEADING = 6
_STYLE = """
body{font:15px/1.5 "Liberation Sans",Arial,Helvetica,sans-serif;color:#222}
body{max-width:54rem;margin:2rem auto;padding:0 1rem}
details{margin:.3rem 0 .3rem 1rem}summary{cursor:pointer}.node>summary{font-weight:600}
.about,.message{color:#555;font-size:.9rem}\
.message{margin:.2rem 0 .2rem 1.2rem;white-space:pre-wrap}
h4{margin:.6rem 0 .2rem 1rem;font-size:.95rem}
"""


class _Sentence(NamedTuple):
    """A sentence with the ids of its messages, and the heading of its list, empty for what
    happened.
    """

    heading: str
    text: str
    turn_ids: list[str]


class _PlacedNode(NamedTuple):
    """A node of a tree, how many nodes are above it, and its sentences."""

    node: Node
    depth: int
    sentences: list[_Sentence]


def tree_markdown(nodes: pl.DataFrame, turns: pl.DataFrame, *, tz: str = "UTC") -> str:
    """Write a tree of summaries of one scope as Markdown, from the top down, in order of time.

    Each message that a sentence stands on is written once, at the end, in order of time; the
    sentences link to it by its number.

    :param nodes: rows of :class:`memlab.records.Node` of one scope.
    :param turns: rows of :class:`memlab.records.Turn`, whose messages stand at the end.
    :param tz: name of the time zone of the days.

    >>> import memlab
    >>> from memlab.summaries.tree_pages import tree_markdown
    >>> turn = memlab.Turn("u/s/1", "u", "u/s", 1, "Mel", "user", "I moved to Oslo.")
    >>> turns = memlab.records.frame(memlab.Turn, [turn])
    >>> print(tree_markdown(memlab.summaries.rollup(turns), turns).splitlines()[6])
    - Mel: I moved to Oslo. [1](#m1)
    """
    page_lines = [f"# {escape_markdown(_page_title(nodes))}"]
    placed_nodes = list(_nodes_top_down(nodes))
    messages = _messages_cited_by_nodes(placed_nodes, _message_lines_by_turn_id(turns, tz))
    number_by_turn = {turn_id: number for number, turn_id in enumerate(messages, start=1)}
    for node, depth, sentences in placed_nodes:
        heading_marks = "#" * min(depth + 2, _MAX_HEADING)
        page_lines += [
            "",
            f"{heading_marks} {_node_heading(node, tz)}",
            "",
            escape_markdown(describe_node(node)),
            "",
        ]
        last_heading = ""
        for heading, sentence_text, turn_ids in sentences:
            if heading != last_heading:
                page_lines += ["", f"**{heading}**", ""]
            last_heading = heading
            links = [f"[{number_by_turn[turn]}](#m{number_by_turn[turn]})" for turn in turn_ids]
            page_lines.append(" ".join(["-", escape_markdown(sentence_text), *links]))
    if messages:
        page_lines += ["", "## Messages", ""]
    for turn_id, message in messages.items():
        number = number_by_turn[turn_id]
        page_lines.append(f'- <a id="m{number}"></a>{number}: {escape_markdown(message)}')
    return "\n".join(page_lines)


def tree_html(nodes: pl.DataFrame, turns: pl.DataFrame, *, tz: str = "UTC") -> str:
    """Write a tree of summaries of one scope as one HTML page, whose nodes and sentences open and
    close.

    It has no script and loads nothing; parameters as for :func:`tree_markdown`.
    """
    title = html.escape(_page_title(nodes))
    body_parts = list[str]()
    open_depths = list[int]()
    messages = _message_lines_by_turn_id(turns, tz)
    for node, depth, sentences in _nodes_top_down(nodes):
        while open_depths and open_depths[-1] >= depth:
            body_parts.append("</details>")
            open_depths.pop()
        open_depths.append(depth)
        body_parts.append(
            f'<details class="node"><summary>{html.escape(_node_heading(node, tz))}</summary>'
        )
        body_parts.append(f'<p class="about">{html.escape(describe_node(node))}</p>')
        last_heading = ""
        for heading, sentence_text, turn_ids in sentences:
            if heading != last_heading:
                body_parts.append(f"<h4>{heading}</h4>")
            last_heading = heading
            body_parts.append(f"<details><summary>{_escape_html_line(sentence_text)}</summary>")
            for turn_id in turn_ids:
                message = messages.get(turn_id, _missing_message(turn_id))
                body_parts.append(f'<p class="message">{_escape_html_line(message)}</p>')
            body_parts.append("</details>")
    body_parts += ["</details>"] * len(open_depths)
    head_html = f'<meta charset="utf-8"><title>{title}</title><style>{_STYLE}</style>'
    page_parts = [
        f'<!DOCTYPE html>\n<html lang="en"><head>{head_html}</head><body><h1>{title}</h1>'
    ]
    return "\n".join([*page_parts, *body_parts, "</body></html>", ""])


def _page_title(nodes: pl.DataFrame) -> str:
    scope_name = next(iter(nodes["scope"]), "no summaries")
    counts_by_kind = nodes.group_by("kind").agg(n=pl.len(), level=pl.max("level"))
    ordered_counts = (
        counts_by_kind.sort("level", "kind", descending=True).select("kind", "n").iter_rows()
    )
    count_texts = [count_noun(n_nodes, f"{kind}s") for kind, n_nodes in ordered_counts]
    return escape_line(f"{scope_name}: {', '.join(count_texts)}")


def _node_heading(tree_node: Node, tz: str) -> str:
    node_name = period_name(tree_node, tz=tz)
    if tree_node["kind"] == "cluster":
        node_name += f", layer {tree_node['level']}"
    return node_name


def _escape_html_line(text: str) -> str:
    return html.escape(escape_line(" ".join(text.split())))


def _nodes_top_down(nodes: pl.DataFrame) -> Iterator[_PlacedNode]:
    """Iterate over the nodes from the top down, in order of time, each behind the one above it."""
    node_ids = set(nodes["node_id"])
    # Nodes without a time stand last.
    ordered = nodes.sort("start", nulls_last=True, maintain_order=True).to_dicts()
    children: dict[str | None, list[dict[str, Any]]] = {}
    for node in ordered:
        parent = node["parent"]
        if parent not in node_ids:
            parent = None
        children.setdefault(parent, []).append(node)
    waiting_nodes = [(node, 0) for node in reversed(children.get(None, []))]
    while waiting_nodes:
        node, depth = waiting_nodes.pop()
        yield _PlacedNode(node, depth, _sentences_with_headings_and_turn_ids(node))
        child_nodes = children.get(node["node_id"], [])
        waiting_nodes += [(child, depth + 1) for child in reversed(child_nodes)]


def _sentences_with_headings_and_turn_ids(node: Node) -> list[_Sentence]:
    """Give the sentences of a node with the ids of the messages that they stand on."""
    cited_sentences = list[_Sentence]()
    for column_name, heading in HEADINGS.items():
        for sentence_text, turn_ids in zip(
            node[column_name], node[evidence_column(column_name)], strict=True
        ):
            cited_sentences.append(_Sentence(heading, sentence_text, list(turn_ids)))
    return cited_sentences


def _messages_cited_by_nodes(
    placed_nodes: list[_PlacedNode], messages: Mapping[str, str]
) -> dict[str, str]:
    """Give the messages that any sentence cites by turn id, in order of time, then the missing."""
    cited_ids: dict[str, None] = {}
    for placed_node in placed_nodes:
        for sentence in placed_node.sentences:
            cited_ids.update(dict.fromkeys(sentence.turn_ids))
    cited = {turn_id: message for turn_id, message in messages.items() if turn_id in cited_ids}
    for turn_id in cited_ids:
        cited.setdefault(turn_id, _missing_message(turn_id))
    return cited


def _missing_message(turn_id: str) -> str:
    return f"{turn_id}: no such message"


def _message_lines_by_turn_id(turns: pl.DataFrame, tz: str) -> dict[str, str]:
    """Write the messages of turns, by turn id, in order of time; undated ones stand last."""
    time_zone = ZoneInfo(tz)
    ordered_turns = turns.sort("timestamp", nulls_last=True, maintain_order=True)
    return {
        turn["turn_id"]: _message_line(turn, time_zone)
        for turn in ordered_turns.iter_rows(named=True)
    }


def _message_line(turn: Mapping[str, Any], zone: ZoneInfo) -> str:
    """Write a message with its id, time and speaker."""
    author_and_time = turn["speaker"]
    if turn["timestamp"] is not None:
        author_and_time = f"{turn['timestamp'].astimezone(zone):%Y-%m-%d %H:%M}, {author_and_time}"
    text_parts = [turn["text"]]
    if turn["caption"]:
        text_parts.append(f"[image: {turn['caption']}]")
    return f"{turn['turn_id']} ({author_and_time}): {' '.join(text_parts).strip()}"
