"""A small panel of a notebook: unfold a rollup down to the turns that its sentences stand on.

A control redraws its table; where no screen is (a saved notebook, its HTML) the table stands alone.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from html import escape
from typing import Any

import polars as pl

from memlab.errors import DataError, require_extra
from memlab.figures.provenance import NOTEBOOK_VARIABLE

_INDENT = "\u2003"


class Panel:
    """A list of nodes, and the table of the chosen one; see :func:`rollup_panel`.

    :ivar node: the list, an ipywidget: read and set its ``value``.
    """

    def __init__(self, nodes: pl.DataFrame, turns: pl.DataFrame) -> None:
        with require_extra("lab", "a panel"):
            import ipywidgets
        if nodes.is_empty():
            raise DataError("there is no node to unfold: the frame has no rows")
        self._nodes = {row["node_id"]: row for row in nodes.iter_rows(named=True)}
        self._turns = {
            row[0]: row[1:]
            for row in turns.select("turn_id", "speaker", "timestamp", "text").iter_rows()
        }
        options: list[tuple[str, str]] = []
        stack = [
            (0, node)
            for node, row in reversed(self._nodes.items())
            if row["parent"] not in self._nodes
        ]
        while stack:
            depth, node = stack.pop()
            options.append((_INDENT * depth + _node_title(self._nodes[node]), node))
            below = [one for one in self._below(node) if one["parent"] == node]
            stack += [(depth + 1, one["node_id"]) for one in reversed(below)]
        look = {"description": "node", "layout": {"width": "640px"}}
        self.node = ipywidgets.Dropdown(options=options, value=options[0][1], **look)
        self._shown = ipywidgets.HTML(self.html)
        self.node.observe(lambda _: setattr(self._shown, "value", self.html), "value")
        self.widget = ipywidgets.VBox([self.node, self._shown])

    @property
    def html(self) -> str:
        """The table as it stands."""
        row = self._nodes[self.node.value]
        said = [[escape(sentence), "<br>".join(map(self._turn, ids))]
                for sentence, ids in zip(row["sentences"], row["evidence"], strict=True)]  # fmt: skip
        head = _html_table(["sentence", "stands on"], said)
        if below := self._below(self.node.value):
            rows = [
                [escape(_node_title(one)), str(len(one["turns"])), escape(one["text"][:240])]
                for one in below
            ]
            return head + _html_table(["below", "turns", "says"], rows)
        return head + _html_table(["its turns"], [[self._turn(one)] for one in row["turns"]])

    def _below(self, node: str) -> list[dict[str, Any]]:
        return [self._nodes[one] for one in self._nodes[node]["children"] if one in self._nodes]

    def _turn(self, turn_id: str) -> str:
        speaker, when, text = self._turns.get(turn_id, ("", None, turn_id))
        date = f" · {when:%-d %b %Y}" if when else ""
        return f'<span style="color:#666">{escape(speaker or "")}{date}</span> {escape((text or "")[:300])}'

    def _repr_mimebundle_(self, **options: Any) -> Any:
        still = {
            "text/html": self.html,
            "text/plain": "a panel; open the notebook in JupyterLab to use it",
        }
        if (
            NOTEBOOK_VARIABLE in os.environ
        ):  # no screen: a widget would leave nothing in the saved notebook
            return still
        return still | self.widget._repr_mimebundle_(**options)


def rollup_panel(nodes: pl.DataFrame, turns: pl.DataFrame) -> Panel:
    """Walk a rollup: a node, the nodes below it and the turns that its sentences stand on.

    A node's own children stand right below it in the list, indented.

    :param nodes: rows of :class:`memlab.records.Node`.
    :param turns: rows of :class:`memlab.records.Turn`.
    :raises DataError: without nodes.
    :raises ModelError: where ipywidgets is not installed.

    >>> import memlab
    >>> from memlab.explorer.panels import rollup_panel
    >>> from memlab.summaries import rollup
    >>> turns = memlab.sample(turns=60).turns
    >>> "<table" in rollup_panel(rollup(turns), turns).html
    True
    """
    return Panel(nodes, turns)


def _node_title(row: dict[str, Any]) -> str:
    when = f"{row['start']:%-d %b %Y}" if row["start"] else "undated"
    topics = f": {', '.join(row['topics'][:4])}" if row["topics"] else ""
    return f"{row['kind']} of {when}{topics}"


def _html_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    cell = 'style="text-align:left;vertical-align:top;padding:2px 8px"'
    body = "".join(f"<tr>{''.join(f'<td {cell}>{one}</td>' for one in row)}</tr>" for row in rows)
    return (
        f"<table><tr>{''.join(f'<th {cell}>{escape(one)}</th>' for one in head)}</tr>{body}</table>"
    )
