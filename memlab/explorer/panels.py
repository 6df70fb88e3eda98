"""Small panels of a notebook: weigh facts for a question, unfold a rollup, play a conversation.

Each shows one table that its controls redraw; where no screen is (a saved notebook, its HTML) the table stands alone.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import cache
from html import escape
from pathlib import Path
from typing import Any

import polars as pl

from memlab.config import RecallSettings, write_settings
from memlab.embed.base import Encoder
from memlab.errors import DataError, MemlabError, needs
from memlab.figures.origin import RUNNING
from memlab.knowledge import recall

_BLUE, _ORANGE, _INDENT = "#0072B2", "#D55E00", "\u2003"


class Panel:
    """Controls, and the table that follows from where they stand.

    :ivar controls: by name, as ipywidgets: read and set their ``value``.
    :ivar html: the table as it stands.
    :ivar problem: why the last move was not followed; empty if it was.
    """

    def __init__(self, controls: dict[str, Any], draw: Callable[[], str]) -> None:
        import ipywidgets

        self.controls, self._draw, self._shown = controls, draw, ipywidgets.HTML()
        row = ipywidgets.HBox(list(controls.values()), layout={"flex_flow": "row wrap"})
        self.widget = ipywidgets.VBox([row, self._shown])
        for control in controls.values():
            if not isinstance(control, ipywidgets.Button):
                control.observe(self.redraw, "value")
        self.redraw()

    def redraw(self, _: Any = None) -> None:
        """Draw the table again."""
        try:
            self.html = self._draw()
            self.tell("")
        except MemlabError as error:
            self.tell(str(error))

    def tell(self, problem: str) -> None:
        """Say above the table what went wrong; an empty text takes it away."""
        self.problem = problem
        note = f'<p style="color:{_ORANGE}">{escape(problem)}</p>' if problem else ""
        self._shown.value = note + self.html

    def _repr_mimebundle_(self, **options: Any) -> Any:
        still = {"text/html": self.html, "text/plain": "a panel; open the notebook in JupyterLab to use it"}
        if RUNNING in os.environ:  # no screen: a widget would leave nothing in the saved notebook
            return still
        return still | self.widget._repr_mimebundle_(**options)


def weigh(
    questions: pl.DataFrame,
    facts: pl.DataFrame,
    *,
    encoder: Encoder | None = None,
    settings: RecallSettings | None = None,
    path: str | os.PathLike[str] = "memlab.toml",
    k: int = 10,
) -> Panel:
    """Choose a question and the weights of a fact's rank; stale facts are marked, and a button writes the setting.

    Controls: ``question`` (row), ``vector``, ``graph``, ``confidence`` (weights, 0 to 1) and ``write``, which puts the
    weights under ``[recall]`` of a settings file and leaves the rest of it alone.

    :param questions: ``scope`` and ``text``.
    :param facts: ``Resolved.facts``, scored by :func:`memlab.knowledge.confidence.score`.
    :raises DataError: without questions.
    :raises ModelError: where ipywidgets is not installed.

    >>> from datetime import datetime, UTC
    >>> import polars as pl
    >>> from memlab.explorer.panels import weigh
    >>> from memlab.knowledge import confidence, resolve
    >>> from memlab.records import Fact, frame
    >>> when = datetime(2026, 3, 1, tzinfo=UTC)
    >>> facts = resolve(frame(Fact, [Fact("f1", "u", "Ann", "works at", "Acme", "stated", [], when)])).facts
    >>> panel = weigh(pl.DataFrame({"scope": ["u"], "text": ["Who?"]}), confidence.score(facts, now=when))
    >>> panel.controls["vector"].value = 0.1
    >>> "Acme" in panel.html
    True
    """
    widgets = _widgets()
    if questions.is_empty():
        raise DataError("there is no question to weigh facts for: the frame has no rows")
    start, names = settings or RecallSettings(), ("vector", "graph", "confidence")
    every = RecallSettings(vector=1, graph=1, confidence=1)
    columns = facts.select("fact_id", "subject", "predicate", "object", "status", "age_days")

    @cache
    def parts(row: int) -> pl.DataFrame:
        ranked = recall.search_facts(
            questions[row], facts, encoder=encoder, settings=every, k=max(facts.height, 1), superseded=True
        )
        return ranked.select("fact_id", *names).join(columns, on="fact_id", how="left", maintain_order="left")

    # Weights that are not sliders' own would otherwise be clipped without a word.
    values = {name: getattr(start, name) for name in names}
    sliders = {
        name: widgets.FloatSlider(value=value, min=0, max=max(1.0, value), step=0.05, description=name)
        for name, value in values.items()
    }
    options = [(text, row) for row, text in enumerate(questions["text"])]
    question = widgets.Dropdown(options=options, value=0, description="question", layout={"width": "640px"})
    button = widgets.Button(description=f"write to {Path(path).name}")

    def draw() -> str:
        weights = {name: slider.value for name, slider in sliders.items()}
        score = pl.sum_horizontal(pl.col(name) * weight for name, weight in weights.items())
        table = parts(question.value).with_columns(score=score).sort("score", descending=True, maintain_order=True)
        rows = []
        for place, row in enumerate(table.head(k).iter_rows(named=True), start=1):
            stale = row["status"] != "active"
            said = escape(" ".join(str(row[part]) for part in ("subject", "predicate", "object")))
            mark = (f"□ {row['status']}", _ORANGE) if stale else ("● current", _BLUE)
            rows.append([
                str(place), _tint(*mark), f"<s>{said}</s>" if stale else said,
                *(f"{row[name]:.2f}" for name in names), f"{row['score']:.3f}", f"{row['age_days']:.0f}",
            ])  # fmt: skip
        return _table(["", "", "fact", *names, "score", "days old"], rows)

    panel = Panel({"question": question, **sliders, "write": button}, draw)

    def write(_: Any = None) -> None:
        weights = {name: round(slider.value, 4) for name, slider in sliders.items()}
        try:
            write_settings(Path(path), "recall", weights)
            panel.tell("")
            button.description = f"written to {Path(path).name}"
        except MemlabError as error:
            panel.tell(str(error))

    button.on_click(write)
    return panel


def unfold(nodes: pl.DataFrame, turns: pl.DataFrame) -> Panel:
    """Walk a rollup: a node, the nodes below it and the turns that its sentences stand on.

    Controls: ``node``; a node's own children stand right below it in the list, indented.

    :param nodes: rows of :class:`memlab.records.Node`.
    :param turns: rows of :class:`memlab.records.Turn`.
    :raises DataError: without nodes.
    :raises ModelError: where ipywidgets is not installed.

    >>> import memlab
    >>> from memlab.explorer.panels import unfold
    >>> from memlab.summaries import rollup
    >>> turns = memlab.sample(turns=60).turns
    >>> "<table" in unfold(rollup(turns), turns).html
    True
    """
    widgets = _widgets()
    if nodes.is_empty():
        raise DataError("there is no node to unfold: the frame has no rows")
    rows = {row["node_id"]: row for row in nodes.iter_rows(named=True)}
    said = {row[0]: row[1:] for row in turns.select("turn_id", "speaker", "timestamp", "text").iter_rows()}
    options: list[tuple[str, str]] = []
    stack = [(0, node) for node, row in reversed(rows.items()) if row["parent"] not in rows]
    while stack:
        depth, node = stack.pop()
        options.append((_INDENT * depth + _named(rows[node]), node))
        own = [one for one in rows[node]["children"] if one in rows and rows[one]["parent"] == node]
        stack += [(depth + 1, one) for one in reversed(own)]
    node = widgets.Dropdown(options=options, value=options[0][1], description="node", layout={"width": "640px"})

    def draw() -> str:
        row = rows[node.value]
        below = [rows[one] for one in row["children"] if one in rows]
        head = _table(["sentence", "stands on"], [
            [escape(sentence), "<br>".join(_turn(one, said) for one in ids)]
            for sentence, ids in zip(row["sentences"], row["evidence"], strict=True)
        ])  # fmt: skip
        if not below:
            return head + _table(["its turns"], [[_turn(one, said)] for one in row["turns"]])
        return head + _table(["below", "turns", "says"], [
            [escape(_named(one)), str(len(one["turns"])), escape(one["text"][:240])] for one in below
        ])  # fmt: skip

    return Panel({"node": node}, draw)


def play(conversation: pl.DataFrame, *, columns: Sequence[str] = ("asked", "rewritten", "found")) -> Panel:
    """Play a conversation: each step adds a question with what it became and what it found.

    Controls: ``turn`` (from 1) and ``play``, which moves it on every second.

    :param conversation: a row a question, in order; ``columns`` of it are shown.
    :raises DataError: without rows, or where a column is missing.
    :raises ModelError: where ipywidgets is not installed.

    >>> import polars as pl
    >>> from memlab.explorer.panels import play
    >>> panel = play(pl.DataFrame({"asked": ["Who?", "When?"]}), columns=["asked"])
    >>> panel.controls["turn"].value = 1
    >>> "When?" in panel.html
    False
    """
    widgets = _widgets()
    if missing := [name for name in columns if name not in conversation.columns]:
        raise DataError(
            f"the conversation has no column {', '.join(missing)}; it has {', '.join(conversation.columns)}"
        )
    if conversation.is_empty():
        raise DataError("there is no conversation to play: the frame has no rows")
    n = conversation.height
    turn = widgets.IntSlider(value=n, min=1, max=n, description="turn")
    player = widgets.Play(value=n, min=1, max=n, interval=1000)
    widgets.jslink((player, "value"), (turn, "value"))
    shown = conversation.select(pl.col(columns).cast(pl.String).fill_null(""))

    def draw() -> str:
        rows = shown.head(turn.value).rows()
        return _table(["", *(name.replace("_", " ") for name in columns)], [
            [str(i), *(escape(cell[:400]) for cell in row)] for i, row in enumerate(rows, start=1)
        ], lit=turn.value - 1)  # fmt: skip

    return Panel({"play": player, "turn": turn}, draw)


def _widgets() -> Any:
    with needs("lab", "a panel"):
        import ipywidgets
    return ipywidgets


def _tint(text: str, colour: str) -> str:
    return f'<span style="color:{colour};white-space:nowrap">{text}</span>'


def _named(row: dict[str, Any]) -> str:
    when = f"{row['start']:%-d %b %Y}" if row["start"] else "undated"
    topics = f": {', '.join(row['topics'][:4])}" if row["topics"] else ""
    return f"{row['kind']} of {when}{topics}"


def _turn(turn_id: str, said: dict[str, tuple[Any, ...]]) -> str:
    speaker, when, text = said.get(turn_id, ("", None, turn_id))
    date = f" · {when:%-d %b %Y}" if when else ""
    return f'<span style="color:#666">{escape(speaker or "")}{date}</span> {escape((text or "")[:300])}'


def _table(head: Sequence[str], rows: Sequence[Sequence[str]], lit: int = -1) -> str:
    cell = 'style="text-align:left;vertical-align:top;padding:2px 8px"'
    tint = {lit: ' style="background:#eef5fa"'}
    body = "".join(
        f"<tr{tint.get(i, '')}>{''.join(f'<td {cell}>{one}</td>' for one in row)}</tr>" for i, row in enumerate(rows)
    )
    return f"<table><tr>{''.join(f'<th {cell}>{escape(one)}</th>' for one in head)}</tr>{body}</table>"
