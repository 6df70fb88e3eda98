"""Maps of an embedding: clusters in colour, named on the picture, with a question's evidence on top."""

from __future__ import annotations

from typing import Any

import numpy as np
import plotly.graph_objects as go
import polars as pl

from memlab.errors import DataError
from memlab.figures import style
from memlab.figures._text_measuring import (
    cut_to_width,
    drawable_text,
    escape,
    place_labels,
    printable_line,
    text_px,
    wrap,
)

_COLOURED = 6  # black is for the stars
_MOST_POINTS, _FEWEST_DENSE = 6_000, 30
_LABEL_PX = {"column": 112, "full": 170}
_HEIGHT_PX = {"column": 290, "full": 430}
_SIDE = 8
_WIDEST_GAP = 0.06
_BETWEEN = " · "
_NO_GROUP: dict[str, Any] = {"size": 2.6, "color": "#DADADA"}
_OTHER_GROUP: dict[str, Any] = {"size": 3.4, "color": style.NOISE}
_RAMP = ("#C3DBEC", "#8CBBDC", "#4F9BC9", "#0072B2", "#004A75", "#002A45")
_SPEAKER_TINTS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7")
_BLACK = {"color": "black", "width": 1}
_STAR = {"symbol": "star", "size": 12, "color": style.EVIDENCE, "line": _BLACK}
_MARKS = {
    "◇ selected": {
        "symbol": "diamond-open",
        "size": 8,
        "color": style.GREY,
        "line": {"width": 1.2},
    },
    "○ retrieved, no evidence": {
        "symbol": "circle-open",
        "size": 8,
        "color": "black",
        "line": {"width": 1.4},
    },
    "☆ evidence, missed": _STAR | {"color": "white"},
    "★ evidence, retrieved": _STAR,
    "△ of the second pipeline": {
        "symbol": "triangle-up-open",
        "size": 13,
        "color": "black",
        "line": {"width": 1.2},
    },
    "✚ the question": {"symbol": "cross", "size": 11, "color": "black", "line": {"color": "white"}},
}


@style.said_where_empty
def embedding_map(
    points: pl.DataFrame,
    *,
    terms: pl.DataFrame,
    question: tuple[float, float] | None = None,
    title: str = "",
    note: str = "",
    kind: str = "cluster",
) -> go.Figure:
    """Draw a two-dimensional map of turns with their clusters, a question, its evidence and what was retrieved.

    Evidence is a star: yellow where it was retrieved, white where it was missed. What was retrieved
    and is no evidence has a black ring, and the question is a black cross.

    The clusters that hold evidence and the largest others have a colour, six in all; the rest are
    pale grey, and points in no cluster paler and smaller. Both axes have one scale, and no numbers:
    a projection's coordinates mean nothing, only who is near whom; behind the points lie lines of
    equal density. Empty bands are shortened, so that islands do not shrink to specks. Above 6,000
    points a random part is drawn, evidence always; the map says so.

    :param points: ``x``, ``y``, ``label`` (cluster, −1 for none), ``evidence`` (bool) and ``rank``
        (null where not retrieved), a row a turn; ``text``, ``turn_id`` and ``session_id`` are shown
        on hover, a triangle where ``second`` (bool) says that another pipeline retrieved it, and a
        diamond where ``selected`` does. Where there is ``shade`` (from 0 to 1, or null), it gives
        the colour, from pale to dark, instead of the cluster.
    :param terms: ``label`` and ``terms`` (a text): the names of clusters.
    :param kind: what a ``label`` or ``shade`` is of, such as ``session`` or ``time``.
    :param question: where the question lies, projected with the turns.
    :param title: drawn above the map: the question.
    :param note: what else the key says: whose turns these are, and which pipeline retrieved them.
    :raises DataError: when a coordinate is not finite.

    >>> import polars as pl
    >>> from memlab.figures import maps
    >>> points = pl.DataFrame({"x": [0.0, 1.0, 2.0], "y": [0.0, 1.0, 0.5], "label": [0, 0, -1]})
    >>> points = points.with_columns(evidence=pl.col("label") < 0, rank=pl.lit(None, pl.Int32))
    >>> names = pl.DataFrame({"label": [0], "terms": ["garden · seeds"]})
    >>> [trace.name for trace in maps.embedding_map(points, terms=names).data]
    ['garden · seeds', 'evidence, missed']
    """
    style.check_columns(points, ("x", "y", "label", "evidence", "rank"), "embedding_map")
    turns = points.with_columns(pl.col("x", "y").cast(pl.Float64))
    _check_finite(turns, "embedding_map")
    turns, asked = _narrow_gaps(turns, question)
    sizes = (
        turns.group_by("label")
        .agg(size=pl.len(), evidence=pl.col("evidence").any())
        .filter(pl.col("label") >= 0)
    )
    coloured = sizes.sort("evidence", "size", "label", descending=[True, True, False])[
        "label"
    ].head(_COLOURED)
    names = {
        label: printable_line(text) for label, text in terms.select("label", "terms").iter_rows()
    }
    tints = {label: style.colour(i) for i, label in enumerate(coloured.sort())}
    named = {label: (tints[label], names.get(label, f"cluster {label}")) for label in coloured}
    hit, proof = pl.col("rank").is_not_null(), pl.col("evidence")
    selected, second = (
        turns.filter(c) if c in turns.columns else turns.clear() for c in ("selected", "second")
    )
    marked = [
        selected,
        turns.filter(hit & ~proof),
        turns.filter(~hit & proof),
        turns.filter(hit & proof),
        second,
        asked,
    ]
    marks = {name: rows for name, rows in zip(_MARKS, marked, strict=True) if rows.height}
    drawn, clustered = turns, pl.col("label") >= 0
    if turns.height > _MOST_POINTS:
        drawn = pl.concat([turns.filter(~proof).sample(_MOST_POINTS, seed=0), turns.filter(proof)])
    crowd = drawn.filter(~proof)
    if "shade" in turns.columns:
        named, clouds = {}, _shaded_clouds(crowd, kind)
    else:
        other = clustered & ~pl.col("label").is_in(list(named))
        clouds = [
            (f"in no {kind}", crowd.filter(~clustered), _NO_GROUP),
            (f"other {kind}s", crowd.filter(other), _OTHER_GROUP),
            *((name, crowd.filter(pl.col("label") == label), {"size": 4, "color": tint, "opacity": 0.75})
              for label, (tint, name) in sorted(named.items())),
        ]  # fmt: skip
    traces = _draw_density(drawn)
    traces += [
        _draw_dots(name, rows, look | {"line": {"width": 0}})
        for name, rows, look in clouds
        if rows.height
    ]
    unknown = ", no evidence" * (not turns["evidence"].any())
    written = {name: name.removesuffix(unknown) for name in marks}
    traces += [_draw_dots(written[name][2:], rows, _MARKS[name]) for name, rows in marks.items()]
    xy, marked_xy = (
        _point_coordinates(rows)
        for rows in (drawn, pl.concat([turns.clear(), *marks.values()], how="diagonal"))
    )
    every, labels = np.vstack([xy, marked_xy]), drawn["label"].to_numpy()
    low, high = every.min(axis=0), every.max(axis=0)
    key = [
        (written[name] + f" ({rows.height:,})" * (rows is not asked), "black")
        for name, rows in marks.items()
    ]
    on_map = {name for _, name in named.values()}
    for name, rows, look in clouds:
        if (
            name and name not in on_map and (rows.height or look["color"] in _RAMP)
        ):  # both ends of a scale
            key.append((f"● {name}", look["color"]))
    key += [(f"{_MOST_POINTS:,} of {turns.height:,} points drawn", style.GREY)] * (
        turns.height > _MOST_POINTS
    )

    def layout_for(px: int) -> dict[str, Any]:
        width = "column" if px <= style.WIDTHS["column"] else "full"
        area = np.array([px - 2 * _SIDE, _HEIGHT_PX[width]], dtype=float)
        scale = float(((area - 24) / np.maximum(high - low, 1e-9)).min())
        corner = (low + high) / 2 - area / scale / 2
        texts = _cluster_labels((xy - corner) * scale, labels, (marked_xy - corner) * scale, named, area=area,
                                longest=_LABEL_PX[width])  # fmt: skip
        for text in texts:
            text["x"], text["y"] = (corner + np.array(text.pop("at")) / scale).tolist()
        lines = [
            *_legend_lines(key, px),
            *map(escape, wrap(note, px - 2 * _SIDE, style.SMALL, lines=3)),
        ]
        texts.append(style.text_note("<br>".join(lines), 0, 0, yshift=-3, align="left",
                                font={"size": style.SMALL, "color": style.GREY}))  # fmt: skip
        box = {
            "showgrid": False,
            "showticklabels": False,
            "ticks": "",
            "mirror": True,
            "linecolor": style.RULE,
        }
        return style.layout(
            px, title=title, plot_px=float(area[1]), left=_SIDE, right=_SIDE, bottom=12 + 12 * len(lines),
            annotations=texts,
            xaxis={**box, "range": [corner[0], corner[0] + area[0] / scale]},
            yaxis={**box, "range": [corner[1], corner[1] + area[1] / scale]},
        )  # fmt: skip

    return style.make_figure(traces, layout_for)


@style.said_where_empty
def speaker_maps(
    points: pl.DataFrame, *, questions: pl.DataFrame | None = None, title: str = "", note: str = ""
) -> go.Figure:
    """Draw maps of the same turns side by side, with a colour and a shape for each speaker.

    Where turns lie by who says them, a map falls into islands of one colour. Evidence is a star:
    yellow where it was retrieved, white where it was missed; what else was retrieved is ringed; the
    question is a black cross. The four who say most have a colour, the others are grey.

    :param points: ``panel`` (what stands above a map), ``x``, ``y``, ``speaker``, ``evidence``
        (bool) and ``rank`` (null where not retrieved): a row a turn and map.
    :param questions: ``panel``, ``x``, ``y``: where the question lies on each map.
    :param title: drawn above the maps: the question.
    :param note: what else the key says.
    :raises DataError: when a coordinate is not finite.

    >>> import polars as pl
    >>> from memlab.figures import maps
    >>> points = pl.DataFrame({"panel": ["a", "a", "b", "b"], "x": [0.0, 1, 0, 1], "y": [0.0, 1, 1, 0]})
    >>> points = points.with_columns(speaker=pl.Series(["Ana", "Mika"] * 2), evidence=False, rank=None)
    >>> [trace.name for trace in maps.speaker_maps(points).data]
    ['Ana', 'Mika', 'Ana', 'Mika']
    """
    style.check_columns(points, ("panel", "x", "y", "speaker", "evidence", "rank"), "speaker_maps")
    turns = points.with_columns(pl.col("x", "y").cast(pl.Float64), pl.col("speaker").fill_null(""))
    _check_finite(turns, "speaker_maps")
    by_size = (
        turns["speaker"]
        .value_counts(sort=True)
        .sort("count", "speaker", descending=[True, False])["speaker"]
    )
    looks = list(zip(by_size[: len(_SPEAKER_TINTS)], _SPEAKER_TINTS, style.SYMBOLS, strict=False))
    hit, proof = pl.col("rank").is_not_null(), pl.col("evidence")
    marks = {
        "○ retrieved, no evidence": ~proof & hit,
        "☆ evidence, missed": proof & ~hit,
        "★ evidence, retrieved": proof & hit,
    }
    traces, ends, heads = list[Any](), list[tuple[np.ndarray, np.ndarray]](), list[str]()
    for panel, (head, rows) in enumerate(style.rows_by_value(turns, "panel")):
        asked = None
        if questions is not None and head in questions["panel"]:
            asked = questions.filter(panel=head).select("x", "y").row(0)
        rows, cross = _narrow_gaps(rows, asked)
        crowd = rows.filter(~proof)
        others = crowd.filter(~pl.col("speaker").is_in([name for name, _, _ in looks]))
        drawn = [("others", others, _OTHER_GROUP)]
        for name, tint, symbol in looks:
            look = {"size": 4.5, "color": tint, "symbol": symbol, "opacity": 0.75}
            drawn.append((name or "nobody", crowd.filter(speaker=name), look))
        drawn += [(mark[2:], rows.filter(which), _MARKS[mark]) for mark, which in marks.items()]
        drawn.append(("the question", cross, _MARKS["✚ the question"]))
        for name, part, look in drawn:
            if part.height:
                dots = _draw_dots(name, part, {"line": {"width": 0}} | look)
                traces.append(dots.update(style.panel_axes(panel)))
        every = np.vstack([_point_coordinates(rows), _point_coordinates(cross)])
        ends.append((every.min(axis=0), every.max(axis=0)))
        heads.append(printable_line(head))
    key = [
        (f"{shape} {printable_line(name) or 'nobody'}", tint)
        for (name, tint, _), shape in zip(looks, style.SHAPES, strict=False)
    ]
    if len(by_size) > len(looks):
        key.append(("● others", style.GREY))
    key += [(mark, "black") for mark, which in marks.items() if turns.filter(which).height]
    if questions is not None and questions.height:
        key.append(("✚ the question", "black"))

    def layout_for(px: int) -> dict[str, Any]:
        wide = (px - 2 * _SIDE - _SIDE * (len(heads) - 1)) / max(len(heads), 1)
        area = np.array([wide, min(wide, _HEIGHT_PX["full"])])
        lines = [wrap(head, wide - 4, style.SMALL, lines=4) for head in heads]
        foot = [*_legend_lines(key, px), *map(escape, wrap(note, px - 2 * _SIDE, style.SMALL))]
        box = {"showgrid": False, "showticklabels": False, "ticks": "", "mirror": True}
        facets = []
        for own, (low, high) in zip(lines, ends, strict=True):
            scale = float(((area - 16) / np.maximum(high - low, 1e-9)).min())
            corner = (low + high) / 2 - area / scale / 2
            axes = {
                axis: {**box, "linecolor": style.RULE, "range": [at, at + length / scale]}
                for axis, at, length in zip(("xaxis", "yaxis"), corner, area, strict=True)
            }
            facets.append({"head": "<br>".join(map(escape, own)), **axes})
        placed = style.panels_layout(
            px, facets, columns=max(len(facets), 1), high=float(area[1]), gap=(_SIDE, 0), left=_SIDE,
            right=_SIDE, title=title, head_px=4 + 12 * max(map(len, lines), default=0),
            bottom=12 + 12 * len(foot),
        )  # fmt: skip
        look = {"size": style.SMALL, "color": style.GREY}
        below = style.text_note("<br>".join(foot), 0, 0, yshift=-3, align="left", font=look)
        return placed | {"annotations": [*placed["annotations"], below]}

    return style.make_figure(traces, layout_for)


def _check_finite(turns: pl.DataFrame, chart: str) -> None:
    """Refuse coordinates that are missing or not finite."""
    known = pl.all_horizontal(pl.col("x", "y").is_finite().fill_null(False))
    if not turns.select(known.all()).item():
        raise DataError(
            f"{chart} got a coordinate that is not finite; project the embeddings again"
        )


def _shaded_clouds(
    crowd: pl.DataFrame, kind: str
) -> list[tuple[str, pl.DataFrame, dict[str, Any]]]:
    """Divide points into steps from pale to dark, of which the ends are named; those without a value come first."""
    ends = {"time": ("earlier", "later")}.get(kind, (f"lower {kind}", f"higher {kind}"))
    names = [ends[0], *[""] * (len(_RAMP) - 2), ends[1]]
    step = (pl.col("shade") * len(_RAMP)).floor().clip(0, len(_RAMP) - 1)
    steps = [crowd.filter(step == i) for i in range(len(_RAMP))]
    looks = [{"size": 4, "color": tint, "opacity": 0.75} for tint in _RAMP]
    return [
        (f"no {kind}", crowd.filter(pl.col("shade").is_null()), _NO_GROUP),
        *zip(names, steps, looks, strict=True),
    ]


def _point_coordinates(rows: pl.DataFrame) -> np.ndarray:
    return rows.select("x", "y").to_numpy()


def _narrow_gaps(
    turns: pl.DataFrame, question: tuple[float, float] | None
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Narrow what is empty between points, along each axis, to a share of its range; of the turns and the question."""
    asked = np.empty((0, 2)) if question is None else np.array([question], dtype=float)
    places = np.vstack([_point_coordinates(turns), asked])
    for axis in places.T:
        known = np.unique(axis)
        if known.size > 2:
            narrowed = np.cumsum(
                np.minimum(np.diff(known, prepend=known[0]), _WIDEST_GAP * np.ptp(known))
            )
            axis[:] = np.interp(axis, known, narrowed)
    moved = pl.DataFrame(places, schema=["x", "y"])
    return turns.with_columns(moved.head(turns.height)), moved.tail(len(asked))


def _draw_density(rows: pl.DataFrame) -> list[Any]:
    """Draw lines of equal density behind the points: Gaussian kernels, a tenth of the spread wide."""
    from scipy.stats import gaussian_kde

    xy = _point_coordinates(rows).T
    if (
        xy.shape[1] < _FEWEST_DENSE
        or np.linalg.matrix_rank(xy - xy.mean(axis=1, keepdims=True)) < 2
    ):
        return []
    pad = np.ptp(xy, axis=1) * 0.05
    x, y = np.linspace(xy.min(axis=1) - pad, xy.max(axis=1) + pad, 60).T
    density = gaussian_kde(xy, bw_method=0.1)(np.stack(np.meshgrid(x, y)).reshape(2, -1)).reshape(
        60, 60
    )
    return [go.Contour(x=x.round(4).tolist(), y=y.round(4).tolist(), z=(density / density.max()).round(3).tolist(),
                       contours={"coloring": "lines", "start": 0.1, "end": 0.9, "size": 0.2}, line={"width": 0.8},
                       colorscale=[[0, style.RULE], [1, style.NOISE]], showscale=False, hoverinfo="skip")]  # fmt: skip


def _draw_dots(name: str, rows: pl.DataFrame, marker: dict[str, Any]) -> go.Scatter:
    x, y = (rows[axis].round(4).to_list() for axis in "xy")
    told = rows.select(c for c in ("turn_id", "session_id", "text") if c in rows.columns)
    hover = [
        "<br>".join(escape(cut_to_width(v, 520, 11)) for v in row if v is not None)
        for row in told.iter_rows()
    ]
    return go.Scatter(x=x, y=y, name=drawable_text(name), mode="markers", marker=marker, text=hover,
                      hoverinfo="text+name", showlegend=False)  # fmt: skip


def _cluster_labels(
    points: np.ndarray, labels: np.ndarray, stars: np.ndarray, named: dict[int, tuple[str, str]], *, area: np.ndarray,
    longest: int,
) -> list[dict[str, Any]]:  # fmt: skip
    """Write the name of each coloured cluster near it, where it covers least; one without a place is left out."""
    texts = [_shorten(name, longest) for _, name in named.values()]
    sizes = np.array(
        [(text_px(t, style.SMALL, bold=True) + 4, style.SMALL + 4) for t in texts]
    ).reshape(-1, 2)
    anchors = np.array([np.median(points[labels == label], axis=0) for label in named]).reshape(
        -1, 2
    )
    # a star is as wide as this
    starred = (stars[:, None] + [(x, y) for x in (-7, 0, 7) for y in (-7, 0, 7)]).reshape(-1, 2)
    obstacles = np.vstack([points, starred])
    weights = np.concatenate([np.where(labels < 0, 0.3, 1.0), np.full(len(starred), 20.0)])
    radii = (0, 6, 12, 18, 24, 30, 38, 46, 56, 68, 86)
    centres = place_labels(
        anchors, sizes, obstacles, area=(area[0], area[1]), radii=radii, weights=weights
    )
    return [
        {"at": centre, "text": f"<b>{escape(text)}</b>",
         "font": {"size": style.SMALL, "color": style.darken_colour(tint)},
         "bgcolor": "rgba(255,255,255,0.82)", "borderpad": 1, "showarrow": False}
        for centre, text, (tint, _) in zip(centres, texts, named.values(), strict=True) if not np.isnan(centre[0])
    ]  # fmt: skip


def _shorten(name: str, px: int) -> str:
    """Keep as many of a cluster's terms as fit."""
    terms = name.split(_BETWEEN)
    while len(terms) > 1 and text_px(_BETWEEN.join(terms), style.SMALL, bold=True) > px:
        terms.pop()
    return cut_to_width(_BETWEEN.join(terms), px, style.SMALL, bold=True)


def _legend_lines(entries: list[tuple[str, str]], px: int) -> list[str]:
    """Give the key, whose marks have their colours, in as many lines as it needs."""
    lines, taken = [""], 0.0
    for whole, tint in entries:
        wide = text_px(whole, style.SMALL) + 12
        if lines[-1] and taken + wide > px - 2 * _SIDE:
            lines, taken = [*lines, ""], 0.0
        mark = f"<span style='color:{tint}'>{whole[0]}</span>{escape(whole[1:])}"
        lines[-1] += "   " * bool(lines[-1]) + mark
        taken += wide
    return lines
