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
_BETWEEN = " · "


def embedding_map(
    points: pl.DataFrame, *, terms: pl.DataFrame | None = None, title: str = "", seed: int = 0
) -> go.Figure:
    """Draw a two-dimensional map of turns with their clusters, and the evidence of a question as numbered stars.

    The clusters that hold evidence and the largest others have a colour, six in all; the rest are pale grey, and
    points in no cluster paler and smaller. Both axes have one scale, and no numbers: a projection's coordinates mean
    nothing, only who is near whom.

    :param points: ``x``, ``y``, ``label`` (cluster, −1 for none), a row a turn; ``evidence`` (bool) marks the
        question's evidence, numbered in order of rows; ``text``, ``doc_id`` and ``session_id`` are shown on hover.
    :param terms: ``label`` and ``terms`` (a list of words, or a text): the names of clusters.
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
    sizes = turns.group_by("label").agg(size=pl.len(), evidence=pl.col("evidence").any()).filter(pl.col("label") >= 0)
    ranked = sizes.sort("evidence", "size", "label", descending=[True, True, False])
    coloured = {label: style.colour(i) for i, label in enumerate(ranked["label"].head(_COLOURED).sort())}
    names = _names(terms)
    note, drawn = "", turns
    if turns.height > _MOST_POINTS:
        rest = turns.filter(~pl.col("evidence")).sample(_MOST_POINTS, seed=seed)
        note = f"{_MOST_POINTS:,} of {turns.height:,} points drawn"
        drawn = pl.concat([rest, turns.filter(pl.col("evidence"))])
    stars = turns.filter(pl.col("evidence"))
    named = {k: (coloured[k], names.get(k, f"cluster {k}")) for k in ranked["label"] if k in coloured}
    return style.finish(_traces(drawn, stars, coloured, names), _layout(drawn, stars, named, title=title, note=note))


def _names(terms: pl.DataFrame | None) -> dict[int, str]:
    if terms is None or terms.is_empty():
        return {}
    style.need(terms, ("label", "terms"), "embedding_map (terms)")
    rows = terms.select("label", "terms").iter_rows()
    return {label: clean(t if isinstance(t, str) else _BETWEEN.join(map(str, t))) for label, t in rows}


def _hover(rows: pl.DataFrame) -> list[str]:
    shown = [c for c in ("doc_id", "session_id", "text") if c in rows.columns]
    return [
        "<br>".join(escape(fit(v, 520, 11)) for v in row if v is not None) for row in rows.select(shown).iter_rows()
    ]


def _traces(
    drawn: pl.DataFrame, stars: pl.DataFrame, coloured: dict[int, str], names: dict[int, str]
) -> list[go.Scatter]:
    def cloud(rows: pl.DataFrame, name: str, marker: dict[str, Any]) -> go.Scatter:
        x, y = (rows[axis].round(4).to_list() for axis in "xy")
        return go.Scatter(x=x, y=y, name=plain(name), mode="markers", marker=marker, text=_hover(rows),
                          hoverinfo="text+name", showlegend=False)  # fmt: skip

    pale = {"size": 2.6, "color": "#DADADA", "line": {"width": 0}}
    grey = {"size": 3.4, "color": style.NOISE, "line": {"width": 0}}
    groups = [(drawn.filter(pl.col("label") < 0), "in no cluster", pale)]
    others = (pl.col("label") >= 0) & ~pl.col("label").is_in(list(coloured))
    groups.append((drawn.filter(others), "other clusters", grey))
    for label, tint in coloured.items():
        groups.append((drawn.filter(pl.col("label") == label), names.get(label, f"cluster {label}"),
                       {"size": 4, "color": tint, "opacity": 0.75, "line": {"width": 0}}))  # fmt: skip
    traces = [cloud(*group) for group in groups if group[0].height]
    if stars.height:
        edge = {"color": "black", "width": 1}
        traces.append(cloud(stars, "evidence", {"symbol": "star", "size": 12, "color": style.EVIDENCE, "line": edge}))
    return traces


def _layout(
    drawn: pl.DataFrame, stars: pl.DataFrame, named: dict[int, tuple[str, str]], *, title: str, note: str
) -> Any:
    xy, star_xy = (rows.select("x", "y").to_numpy() for rows in (drawn, stars))
    labels = drawn["label"].to_numpy()
    low, high = xy.min(axis=0), xy.max(axis=0)
    keys = [("#DADADA", "in no cluster")] * bool((labels < 0).any())
    keys += [(style.NOISE, "other clusters")] * bool((~np.isin(labels, list(named)) & (labels >= 0)).any())

    def layout_for(px: int) -> dict[str, Any]:
        width = "column" if px <= style.WIDTHS["column"] else "full"
        area = np.array([px - 2 * _SIDE, _HEIGHT_PX[width]], dtype=float)
        scale = float(((area - 24) / np.maximum(high - low, 1e-9)).min())
        corner = (low + high) / 2 - area / scale / 2
        to_px = (xy - corner) * scale
        star_px = (star_xy - corner) * scale
        texts = _cluster_labels(to_px, labels, star_px, named, area=area, longest=_LABEL_PX[width])
        texts += _star_numbers(star_px, area)
        for text in texts:
            text["x"], text["y"] = (corner + np.array(text.pop("at")) / scale).tolist()
        texts.append(_key(keys, len(star_xy), note))
        box = {"showgrid": False, "showticklabels": False, "ticks": "", "mirror": True, "linecolor": style.RULE}
        return style.layout(
            px, title=title, plot_px=float(area[1]), left=_SIDE, right=_SIDE, bottom=24, annotations=texts,
            xaxis={**box, "range": [corner[0], corner[0] + area[0] / scale]},
            yaxis={**box, "range": [corner[1], corner[1] + area[1] / scale]},
        )  # fmt: skip

    return layout_for


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
    # a star and the number beside it are as wide as this
    starred = (stars[:, None] + [(x, y) for x in (-7, 0, 7, 15) for y in (-7, 0, 7)]).reshape(-1, 2)
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


def _star_numbers(stars: np.ndarray, area: np.ndarray) -> list[dict[str, Any]]:
    if not len(stars):
        return []
    texts = [str(i + 1) for i in range(len(stars))]
    sizes = np.array([(text_px(t, style.TEXT, bold=True), style.TEXT) for t in texts])
    centres = place(stars, sizes, np.repeat(stars, 3, axis=0), area=(area[0], area[1]), radii=(6, 9, 13, 18, 24))
    centres = np.where(np.isnan(centres), stars, centres)
    return [
        {"at": centre, "text": f"<b>{text}</b>", "font": {"size": style.TEXT, "color": "black"}, "showarrow": False,
         "bgcolor": "rgba(255,255,255,0.6)", "borderpad": 0}
        for centre, text in zip(centres, texts, strict=True)
    ]  # fmt: skip


def _key(keys: list[tuple[str, str]], stars: int, note: str) -> dict[str, Any]:
    parts = [f"<span style='color:black'>★</span> evidence (n = {stars})"] if stars else []
    parts += [f"<span style='color:{tint}'>●</span> {name}" for tint, name in keys]
    parts += [plain(note)] if note else []
    return style.note("   ".join(parts), 0, 0, yshift=-3, font={"size": style.SMALL, "color": style.GREY})
