"""Maps of an embedding: clusters in colour, named on the picture, with a question's evidence on top."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from memlab.errors import DataError
from memlab.figures import style
from memlab.figures._plotly import go
from memlab.figures._text import clean, escape, fit, place, plain, text_px

_COLOURED = 6  # black is for the stars
_MOST_POINTS = 6_000
_LABEL_PX = {"column": 112, "full": 170}
_HEIGHT_PX = {"column": 290, "full": 430}
_SIDE = 8
_WIDEST_GAP = 0.06
_BETWEEN = " · "
_QUIET = {"in no cluster": {"size": 2.6, "color": "#DADADA"}, "other clusters": {"size": 3.4, "color": style.NOISE}}


def embedding_map(
    points: pl.DataFrame,
    *,
    terms: pl.DataFrame | None = None,
    question: tuple[float, float] | None = None,
    title: str = "",
    seed: int = 0,
) -> go.Figure:
    """Draw a two-dimensional map of turns with their clusters, a question, its evidence and what was retrieved.

    Evidence is a star: yellow where it was retrieved (or where nothing says so), white where it was missed. What was
    retrieved and is no evidence has a black ring, and the question is a black cross.

    The clusters that hold evidence and the largest others have a colour, six in all; the rest are pale grey, and
    points in no cluster paler and smaller. Both axes have one scale, and no numbers: a projection's coordinates mean
    nothing, only who is near whom. Empty bands are shortened, so that islands far apart do not shrink to specks.

    :param points: ``x``, ``y``, ``label`` (cluster, −1 for none), a row a turn; ``evidence`` (bool) marks the
        question's evidence, and ``rank`` (null where not) what was retrieved; ``text``, ``doc_id`` and ``session_id``
        are shown on hover.
    :param terms: ``label`` and ``terms`` (a list of words, or a text): the names of clusters.
    :param question: where the question lies, projected with the turns.
    :param title: drawn above the map; the question, where evidence is marked.
    :param seed: above 6,000 points a random part is drawn, evidence always; the map says so.
    :raises DataError: when a coordinate is not finite.

    >>> import polars as pl
    >>> from memlab.figures import maps
    >>> points = pl.DataFrame({"x": [0.0, 1.0, 2.0], "y": [0.0, 1.0, 0.5], "label": [0, 0, -1]})
    >>> [trace.name for trace in maps.embedding_map(points).data]
    ['in no cluster', 'cluster 0']
    """
    style.need(points, ("x", "y", "label"), "embedding_map")
    turns = points if "evidence" in points.columns else points.with_columns(evidence=pl.lit(False))
    turns = turns.with_columns(pl.col("x", "y").cast(pl.Float64), pl.col("evidence").fill_null(False))
    if not turns.select(pl.all_horizontal(pl.col("x", "y").is_finite().fill_null(False)).all()).item():
        raise DataError("embedding_map got a coordinate that is not finite; project the embeddings again")
    turns, question = _closer(turns, question)
    sizes = turns.group_by("label").agg(size=pl.len(), evidence=pl.col("evidence").any()).filter(pl.col("label") >= 0)
    coloured = sizes.sort("evidence", "size", "label", descending=[True, True, False])["label"].head(_COLOURED)
    tints, names = {label: style.colour(i) for i, label in enumerate(coloured.sort())}, _names(terms)
    named = {label: (tints[label], names.get(label, f"cluster {label}")) for label in coloured}
    note, drawn = "", turns
    if turns.height > _MOST_POINTS:
        rest = turns.filter(~pl.col("evidence")).sample(_MOST_POINTS, seed=seed)
        note = f"{_MOST_POINTS:,} of {turns.height:,} points drawn"
        drawn = pl.concat([rest, turns.filter(pl.col("evidence"))])
    marks, clouds = _marks(turns, question), _clouds(drawn.filter(~pl.col("evidence")), named)
    traces = [_dots(*cloud) for cloud in clouds] + [_dots(name[2:], *mark) for name, mark in marks.items()]
    quiet = [name for name, _, _ in clouds if name in _QUIET]
    xy, *marked = (rows.select("x", "y").to_numpy() for rows in (drawn, *(rows for rows, _ in marks.values())))
    marked_xy, labels = np.vstack([np.empty((0, 2)), *marked]), drawn["label"].to_numpy()
    every = np.vstack([xy, marked_xy])
    low, high = every.min(axis=0), every.max(axis=0)

    def layout_for(px: int) -> dict[str, Any]:
        width = "column" if px <= style.WIDTHS["column"] else "full"
        area = np.array([px - 2 * _SIDE, _HEIGHT_PX[width]], dtype=float)
        scale = float(((area - 24) / np.maximum(high - low, 1e-9)).min())
        corner = (low + high) / 2 - area / scale / 2
        to_px = (xy - corner) * scale
        marked_px = (marked_xy - corner) * scale
        texts = _cluster_labels(to_px, labels, marked_px, named, area=area, longest=_LABEL_PX[width])
        for text in texts:
            text["x"], text["y"] = (corner + np.array(text.pop("at")) / scale).tolist()
        lines = _key(quiet, {name: rows.height for name, (rows, _) in marks.items()}, note, px)
        texts.append(style.note("<br>".join(lines), 0, 0, yshift=-3, align="left",
                                font={"size": style.SMALL, "color": style.GREY}))  # fmt: skip
        box = {"showgrid": False, "showticklabels": False, "ticks": "", "mirror": True, "linecolor": style.RULE}
        return style.layout(
            px, title=title, plot_px=float(area[1]), left=_SIDE, right=_SIDE, bottom=12 + 12 * len(lines),
            annotations=texts,
            xaxis={**box, "range": [corner[0], corner[0] + area[0] / scale]},
            yaxis={**box, "range": [corner[1], corner[1] + area[1] / scale]},
        )  # fmt: skip

    return style.finish(traces, layout_for)


def _closer(
    turns: pl.DataFrame, question: tuple[float, float] | None
) -> tuple[pl.DataFrame, tuple[float, float] | None]:
    """Narrow what is empty between points, along each axis, to a share of its range."""
    asked = np.empty((0, 2)) if question is None else np.array([question], dtype=float)
    places = np.vstack([turns.select("x", "y").to_numpy(), asked])
    for axis in places.T:
        known = np.unique(axis)
        if known.size > 2:
            narrowed = np.cumsum(np.minimum(np.diff(known, prepend=known[0]), _WIDEST_GAP * np.ptp(known)))
            axis[:] = np.interp(axis, known, narrowed)
    moved = turns.with_columns(x=pl.Series(places[: turns.height, 0]), y=pl.Series(places[: turns.height, 1]))
    return moved, None if question is None else (float(places[-1, 0]), float(places[-1, 1]))


def _marks(turns: pl.DataFrame, question: tuple[float, float] | None) -> dict[str, tuple[pl.DataFrame, dict[str, Any]]]:
    """Give what is drawn on top of the clouds, by name: rows and the look of their marks."""
    black = {"color": "black", "width": 1}
    star = {"symbol": "star", "size": 12, "color": style.EVIDENCE, "line": black}
    evidence = turns.filter(pl.col("evidence"))
    if "rank" not in turns.columns:
        marks = {"★ evidence": (evidence, star)}
    else:
        ring = {"symbol": "circle-open", "size": 8, "color": "black", "line": {"width": 1.4}}
        marks = {
            "○ retrieved, no evidence": (turns.filter(pl.col("rank").is_not_null() & ~pl.col("evidence")), ring),
            "☆ evidence, missed": (evidence.filter(pl.col("rank").is_null()), star | {"color": "white"}),
            "★ evidence, retrieved": (evidence.filter(pl.col("rank").is_not_null()), star),
        }
    if question is not None:
        at = pl.DataFrame({"x": [float(question[0])], "y": [float(question[1])]})
        marks["✚ the question"] = (at, {"symbol": "cross", "size": 11, "color": "black", "line": {"color": "white"}})
    return {name: mark for name, mark in marks.items() if mark[0].height}


def _names(terms: pl.DataFrame | None) -> dict[int, str]:
    if terms is None or terms.is_empty():
        return {}
    style.need(terms, ("label", "terms"), "embedding_map (terms)")
    rows = terms.select("label", "terms").iter_rows()
    return {label: clean(t if isinstance(t, str) else _BETWEEN.join(map(str, t))) for label, t in rows}


def _clouds(drawn: pl.DataFrame, named: dict[int, tuple[str, str]]) -> list[tuple[str, pl.DataFrame, dict[str, Any]]]:
    """Give the name of each cloud, its points and the look of their marks, those without a colour first."""
    clustered, coloured = pl.col("label") >= 0, pl.col("label").is_in(list(named))
    rest = zip(_QUIET.items(), (drawn.filter(~clustered), drawn.filter(clustered & ~coloured)), strict=True)
    groups = [(name, rows, look) for (name, look), rows in rest]
    for label, (tint, name) in sorted(named.items()):
        groups.append((name, drawn.filter(pl.col("label") == label), {"size": 4, "color": tint, "opacity": 0.75}))
    return [(name, rows, {**look, "line": {"width": 0}}) for name, rows, look in groups if rows.height]


def _dots(name: str, rows: pl.DataFrame, marker: dict[str, Any]) -> go.Scatter:
    x, y = (rows[axis].round(4).to_list() for axis in "xy")
    told = rows.select(c for c in ("doc_id", "session_id", "text") if c in rows.columns)
    hover = ["<br>".join(escape(fit(v, 520, 11)) for v in row if v is not None) for row in told.iter_rows()]
    return go.Scatter(x=x, y=y, name=plain(name), mode="markers", marker=marker, text=hover, hoverinfo="text+name",
                      showlegend=False)  # fmt: skip


def _cluster_labels(
    points: np.ndarray,
    labels: np.ndarray,
    stars: np.ndarray,
    named: dict[int, tuple[str, str]],
    *,
    area: np.ndarray,
    longest: int,
) -> list[dict[str, Any]]:
    """Write the name of each coloured cluster near it, where it covers least; one without a place is left out."""
    if not named:
        return []
    size = style.SMALL
    texts = [_shorten(name, longest) for _, name in named.values()]
    sizes = np.array([(text_px(t, size, bold=True) + 4, size + 4) for t in texts])
    anchors = np.array([np.median(points[labels == label], axis=0) for label in named])
    # a star is as wide as this
    starred = (stars[:, None] + [(x, y) for x in (-7, 0, 7) for y in (-7, 0, 7)]).reshape(-1, 2)
    obstacles = np.vstack([points, starred])
    weights = np.concatenate([np.where(labels < 0, 0.3, 1.0), np.full(len(starred), 20.0)])
    radii = (0, 6, 12, 18, 24, 30, 38, 46, 56, 68, 86)
    centres = place(anchors, sizes, obstacles, area=(area[0], area[1]), radii=radii, weights=weights)
    return [
        {"at": centre, "text": f"<b>{escape(text)}</b>", "font": {"size": size, "color": style.darker(tint)},
         "bgcolor": "rgba(255,255,255,0.82)", "borderpad": 1, "showarrow": False}
        for centre, text, (tint, _) in zip(centres, texts, named.values(), strict=True) if not np.isnan(centre[0])
    ]  # fmt: skip


def _shorten(name: str, px: int) -> str:
    """Keep as many of a cluster's terms as fit."""
    terms = name.split(_BETWEEN)
    while len(terms) > 1 and text_px(_BETWEEN.join(terms), style.SMALL, bold=True) > px:
        terms.pop()
    return fit(_BETWEEN.join(terms), px, style.SMALL, bold=True)


def _key(quiet: list[str], marks: dict[str, int], note: str, px: int) -> list[str]:
    """Give the key, in as many lines as it needs."""
    parts = [(name, f"{name} ({n:,})" if n > 1 or name[0] != "✚" else name) for name, n in marks.items()]
    entries = [(whole, f"<span style='color:black'>{name[0]}</span>{escape(whole[1:])}") for name, whole in parts]
    entries += [(f"● {name}", f"<span style='color:{_QUIET[name]['color']}'>●</span> {name}") for name in quiet]
    entries += [(note, plain(note))] if note else []
    lines, taken = [""], 0.0
    for whole, text in entries:
        wide = text_px(whole, style.SMALL) + 12
        if lines[-1] and taken + wide > px - 2 * _SIDE:
            lines, taken = [*lines, ""], 0.0
        lines[-1] += "   " * bool(lines[-1]) + text
        taken += wide
    return lines
