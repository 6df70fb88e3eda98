"""What the index of sessions did: how often, and how long it took."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from memlab.figures import style
from memlab.figures._text import plain
from memlab.figures.selection import rows_layout

if TYPE_CHECKING:
    import plotly.graph_objects as go

_KINDS = ("created", "updated", "fallback", "failed", "skipped")
_MARKS = {"created": 2, "updated": 5, "fallback": 4, "failed": 1, "skipped": 6}
_FASTEST = 1e-4


def lifecycle(events: pl.DataFrame, *, title: str = "") -> go.Figure:
    """Draw what happened to sessions in the index: a row a kind of event, a mark a session at the time that it took.

    The bar stands at the median; how many there are and their median are written out.

    :param events: rows of :class:`memlab.records.IndexEvent`, from :func:`memlab.indexing.index` or the store.

    >>> from memlab.figures import indexing
    >>> from memlab.records import IndexEvent, frame
    >>> events = [IndexEvent(f"e{i}", f"s{i}", "u", "created", None, 0.1 * (i + 1), "lab", "1") for i in range(3)]
    >>> indexing.lifecycle(frame(IndexEvent, events)).data[0].name
    'created'
    """
    import plotly.graph_objects as go

    style.need(events, ("kind", "seconds", "session_id", "reason"), "lifecycle")
    kinds = [kind for kind in _KINDS if kind in set(events["kind"])]
    traces, labels = [], []
    for y, kind in enumerate(reversed(kinds)):
        rows = events.filter(pl.col("kind") == kind)
        seconds = np.maximum(rows["seconds"].to_numpy(), _FASTEST)
        # Spread by place, never at random: the same events give the same picture.
        spread = y + 0.16 + 0.22 * ((np.arange(len(seconds)) * 0.618) % 1 - 0.5)
        colour, symbol = style.colour(_MARKS[kind]), style.SYMBOLS[_KINDS.index(kind)]
        hover = [f"{plain(s)}<br>{plain(r or '')}" for s, r in rows.select("session_id", "reason").iter_rows()]
        traces.append(
            go.Scatter(
                x=seconds.tolist(), y=spread.tolist(), mode="markers", name=kind, text=hover, hoverinfo="text",
                marker={"color": style.faded(colour, 0.55), "size": 5, "symbol": symbol},
            )
        )  # fmt: skip
        middle = float(np.median(seconds))
        traces.append(
            go.Scatter(
                x=[middle, middle], y=[y - 0.02, y + 0.34], mode="lines", hoverinfo="skip", showlegend=False,
                line={"color": style.INK, "width": 1.4},
            )
        )  # fmt: skip
        labels.append({"name": kind, "said": [f"{_sessions(rows.height)}, median {_time(middle)}"], "y": y + 1.0})
    least, most = events["seconds"].clip(_FASTEST).min(), events["seconds"].clip(_FASTEST).max()
    span = (math.floor(math.log10(least) * 2) / 2, math.ceil(math.log10(most) * 2 + 0.01) / 2)  # type: ignore[arg-type]
    inner = rows_layout(
        labels, span=span, deep=1, xlabel="seconds per session, its share of its batch (logarithmic)", key="",
        title=title,
    )  # fmt: skip

    def layout_for(px: int) -> dict[str, Any]:
        layout = inner(px)
        ticks = [10.0**e for e in range(math.floor(span[0]), math.ceil(span[1]) + 1)]
        layout["xaxis"] |= {
            "type": "log", "zeroline": False, "tickvals": ticks, "ticktext": [_time(t) for t in ticks],
        }  # fmt: skip
        return layout

    return style.finish(traces, layout_for)


def _time(seconds: float) -> str:
    if seconds >= 1:
        return f"{seconds:.3g} s"
    return f"{1000 * seconds:.0f} ms" if seconds >= 0.01 else f"{1000 * seconds:.2g} ms"


def _sessions(n: int) -> str:
    return f"{n:,} session{'s' * (n != 1)}"
