"""Maps of an embedding: coloured, named clusters with a question's evidence on top."""

from __future__ import annotations

from typing import Any

import numpy as np
import plotly.graph_objects as go
import polars as pl
import polars.selectors as cs

from memlab.errors import DataError
from memlab.figures import style
from memlab.figures._text_measuring import (
    cut_to_width,
    drawable_text,
    escape,
    place_labels,
    printable_line,
    text_px,
    widest_px,
    wrap,
)
from memlab.figures.style import SCALE, SPEAKER_TINTS, position_colours, scale_colours

_MOST_POINTS, _FEWEST_DENSE = 6_000, 30
_MOST_NAMES = {"column": 9, "full": 20}
_LABEL_PX = {"column": 84, "full": 112}
_LABEL_RADII = {"column": (0, 6, 12, 18, 24), "full": (0, 6, 12, 18, 24, 30, 38, 46)}
_HEIGHT_PX = {"column": 230, "full": 440}
_SIDE = 8
_WIDEST_GAP = 0.06
_STAR_COST, _MOST_COVERED = 60.0, 55.0
_BETWEEN = " · "
_NO_GROUP: dict[str, Any] = {"size": 3.2, "color": "#DCDCDC"}
_OTHER_GROUP: dict[str, Any] = {"size": 3.4, "color": style.NOISE}
_BLACK = {"color": "black", "width": 1}
_STAR = {"symbol": "star", "size": 12, "color": style.EVIDENCE, "line": _BLACK}
_SECOND = "△ of the second pipeline"
_FOUND = "★ evidence, retrieved"
_KEY_TINTS = {_FOUND: style.EVIDENCE_INK}
"""Colours of marks in the key, where they are not black."""
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
    _FOUND: _STAR,
    _SECOND: {
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
    second: str = "",
) -> go.Figure:
    """Draw a map of turns with their clusters, a question, its evidence and what was retrieved.

    Evidence is a star: yellow where it was retrieved, white where it was missed. What was retrieved
    and is no evidence has a black ring, and the question is a black cross.

    Each cluster has a soft colour by where it lies, see
    :func:`memlab.figures.style.position_colours`; points in no cluster are pale. Names stand
    at their clusters: first those that hold evidence, then the largest, as many as have room; the
    key says how many. Speakers differ in shape. Sessions are coloured from the first to the last.
    Both axes have one scale, and no numbers: a projection's coordinates mean nothing, only who is
    near whom; behind the points lie lines of equal density. Empty bands are shortened, so that
    islands do not shrink to specks. Above 6,000 points a random part is drawn, evidence always; the
    map says so.

    :param points: ``x``, ``y``, ``label`` (cluster, −1 for none), ``evidence`` (bool) and ``rank``
        (null where not retrieved), a row a turn; ``text``, ``speaker``, ``turn_id`` and
        ``session_id`` are shown on hover, a triangle where ``second`` (bool) says that another
        pipeline retrieved it, and a diamond where ``selected`` does. Where there is ``shade`` (from
        0 to 1, or null), it gives the colour, from pale to dark, instead of the cluster.
    :param terms: ``label`` and ``terms`` (a text): the names of clusters.
    :param kind: what a ``label`` or ``shade`` is of, such as ``session``, ``speaker`` or ``time``;
        only what lies together, such as a cluster, is named on the map.
    :param question: where the question lies, projected with the turns.
    :param title: drawn above the map: the question.
    :param note: what else the key says: whose turns these are, and which pipeline retrieved them.
    :param second: the name of the other pipeline, for the key.
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
    marks = _marked_turns(turns, asked)
    proof = pl.col("evidence")
    drawn = turns
    if turns.height > _MOST_POINTS:
        drawn = pl.concat([turns.filter(~proof).sample(_MOST_POINTS, seed=0), turns.filter(proof)])
    shapes = _speaker_shapes(turns)
    names = {
        label: printable_line(text) for label, text in terms.select("label", "terms").iter_rows()
    }
    crowd, named = drawn.filter(~proof), list[tuple[int, str, str]]()
    if "shade" in turns.columns:
        clouds = _shaded_clouds(crowd, kind)
    elif kind in ("session", "speaker"):
        clouds = _listed_clouds(crowd, kind, names)
    else:
        named = _named_clusters(turns, names, kind)
        clouds = _cluster_clouds(crowd, kind, named)
    traces = _draw_density(drawn)
    size = _dot_size(drawn.height)
    for name, rows, look in clouds:
        if rows.height:
            sized = {"size": size, "line": {"width": 0}} | look
            traces.append(_draw_dots(name, rows, sized, shapes))
    unknown = ", no evidence"
    if turns["evidence"].any():
        unknown = ""
    written = {name: name.removesuffix(unknown) for name in marks}
    if second and _SECOND in written:
        written[_SECOND] = f"△ retrieved by {printable_line(second)}"
    for name, rows in marks.items():
        traces.append(_draw_dots(name.removesuffix(unknown)[2:], rows, _MARKS[name]))
    marked = pl.concat([turns.clear(), *marks.values()], how="diagonal")
    xy, marked_xy = _point_coordinates(drawn), _point_coordinates(marked)
    every, labels = np.vstack([xy, marked_xy]), drawn["label"].to_numpy()
    low, high = every.min(axis=0), every.max(axis=0)
    key = []
    for name, rows in marks.items():
        entry = written[name]
        if rows is not asked:
            entry += f" ({rows.height:,})"
        key.append((entry, _KEY_TINTS.get(name, "black")))
    on_map = {name for _, name, _ in named}
    key += _group_key([cloud for cloud in clouds if cloud[0] not in on_map])
    counts = dict[str, int]()
    if shapes:
        counts = dict(turns["speaker"].fill_null("").value_counts().iter_rows())
    for speaker, (shape, _) in shapes.items():
        key.append(
            (f"{shape} {printable_line(speaker) or 'nobody'} ({counts[speaker]:,})", style.GREY)
        )
    if turns.height > _MOST_POINTS:
        key.append((f"{_MOST_POINTS:,} of {turns.height:,} points drawn", style.GREY))

    def layout_for(px: int) -> dict[str, Any]:
        width = style.width_name(px)
        area = np.array([px - 2 * _SIDE, _HEIGHT_PX[width]], dtype=float)
        scale = float(((area - 24) / np.maximum(high - low, 1e-9)).min())
        corner = (low + high) / 2 - area / scale / 2
        texts = _cluster_labels(
            (xy - corner) * scale,
            labels,
            (marked_xy - corner) * scale,
            named,
            area=area,
            width=width,
        )
        entries = [*key]
        if len(texts) < len(named):
            entries.append((f"{len(texts)} of {len(named)} {kind}s are named", style.GREY))
        for text in texts:
            text["x"], text["y"] = (corner + np.array(text.pop("at")) / scale).tolist()
        lines = [
            *_legend_lines(entries, px),
            *map(escape, wrap(note, px - 2 * _SIDE, style.SMALL, lines=3)),
        ]
        texts.append(
            style.text_note(
                "<br>".join(lines),
                0,
                0,
                yshift=-3,
                align="left",
                font={"size": style.SMALL, "color": style.GREY},
            )
        )
        box = {
            "showgrid": False,
            "showticklabels": False,
            "ticks": "",
            "mirror": True,
            "linecolor": style.RULE,
        }
        return style.layout(
            px,
            title=title,
            plot_px=float(area[1]),
            left=_SIDE,
            right=_SIDE,
            bottom=12 + 12 * len(lines),
            annotations=texts,
            xaxis={**box, "range": [corner[0], corner[0] + area[0] / scale]},
            yaxis={**box, "range": [corner[1], corner[1] + area[1] / scale]},
        )

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
    >>> places = {"x": [0.0, 1, 0, 1], "y": [0.0, 1, 1, 0]}
    >>> said = {"panel": ["a", "a", "b", "b"], "speaker": ["Ana", "Mika"] * 2}
    >>> points = pl.DataFrame({**said, **places}).with_columns(evidence=False, rank=None)
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
    looks = list(zip(by_size[: len(SPEAKER_TINTS)], SPEAKER_TINTS, style.SYMBOLS, strict=False))
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
            px,
            facets,
            columns=max(len(facets), 1),
            high=float(area[1]),
            gap=(_SIDE, 0),
            left=_SIDE,
            right=_SIDE,
            title=title,
            head_px=4 + 12 * max(map(len, lines), default=0),
            bottom=12 + 12 * len(foot),
        )
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


def _marked_turns(turns: pl.DataFrame, asked: pl.DataFrame) -> dict[str, pl.DataFrame]:
    """Give the marked turns, and the question, by mark; marks without a turn are left out."""
    hit, proof = pl.col("rank").is_not_null(), pl.col("evidence")
    flagged = dict[str, pl.DataFrame]()
    for column in ("selected", "second"):
        flagged[column] = turns.clear()
        if column in turns.columns:
            flagged[column] = turns.filter(column)
    marked = [
        flagged["selected"],
        turns.filter(hit & ~proof),
        turns.filter(~hit & proof),
        turns.filter(hit & proof),
        flagged["second"],
        asked,
    ]
    return {name: rows for name, rows in zip(_MARKS, marked, strict=True) if rows.height}


def _speaker_shapes(turns: pl.DataFrame) -> dict[str, tuple[str, str]]:
    """Give each of two to four speakers a shape, as a character and as plotly names it."""
    if "speaker" not in turns.columns:
        return {}
    said = turns["speaker"].fill_null("").value_counts(name="n")
    by_size = said.sort("n", "speaker", descending=[True, False])["speaker"]
    pairs = list(zip(style.SHAPES, style.SYMBOLS, strict=True))[: len(SPEAKER_TINTS)]
    if not 2 <= len(by_size) <= len(pairs):
        return {}
    return dict(zip(by_size, pairs, strict=False))


def _dot_size(n: int) -> float:
    """Give the diameter of a point in pixels: smaller the more there are."""
    return float(np.interp(np.log10(max(n, 1)), (2.3, 3.8), (6.5, 3.0)))


def _named_clusters(
    turns: pl.DataFrame, names: dict[int, str], kind: str
) -> list[tuple[int, str, str]]:
    """Give label, name and colour of each cluster: those with evidence first, then the largest."""
    sizes = (
        turns.filter(pl.col("label") >= 0)
        .group_by("label")
        .agg(pl.col("x", "y").median(), pl.col("evidence").any(), size=pl.len())
        .sort("evidence", "size", "label", descending=[True, True, False])
    )
    tints = position_colours(_point_coordinates(sizes), _point_coordinates(turns))
    return [
        (label, names.get(label, f"{kind} {label}"), tint)
        for label, tint in zip(sizes["label"], tints, strict=True)
    ]


def _cluster_clouds(
    crowd: pl.DataFrame, kind: str, named: list[tuple[int, str, str]]
) -> list[tuple[str, pl.DataFrame, dict[str, Any]]]:
    """Divide points by cluster; those in none come first."""
    rows_of = dict(style.rows_by_value(crowd, "label"))
    loose = crowd.filter(pl.col("label") < 0)
    clouds = [(f"in no {kind}", loose, _NO_GROUP)]  # pale, and below all others
    for label, name, tint in sorted(named):
        look = {"color": tint, "opacity": 0.9}
        clouds.append((name, rows_of.get(label, crowd.clear()), look))
    return clouds


def _listed_clouds(
    crowd: pl.DataFrame, kind: str, names: dict[int, str]
) -> list[tuple[str, pl.DataFrame, dict[str, Any]]]:
    """Divide points by sessions, from the first to the last, or by speakers."""
    codes = sorted(names)
    if kind == "session":
        tints = dict(zip(codes, scale_colours(len(codes)), strict=True))
    else:
        tints = dict(zip(codes, SPEAKER_TINTS, strict=False))
    others = crowd.filter(~pl.col("label").is_in(list(tints)))
    clouds = [(f"other {kind}s", others, _OTHER_GROUP)]
    for code, tint in tints.items():
        look = {"color": tint, "opacity": 0.8}
        clouds.append((names[code], crowd.filter(label=code), look))
    return clouds


def _group_key(
    clouds: list[tuple[str, pl.DataFrame, dict[str, Any]]],
) -> list[tuple[str, str]]:
    """Name groups in the key; of many, which are in order, the first and the last."""
    named = [
        (name, rows, look["color"])
        for name, rows, look in clouds
        if name and (rows.height or look["color"] in SCALE)
    ]
    if len(named) > len(SCALE) + 2:
        return [(f"● first: {named[0][0]}", named[0][2]), (f"● last: {named[-1][0]}", named[-1][2])]
    return [(f"● {name}", tint) for name, _, tint in named]


def _shaded_clouds(
    crowd: pl.DataFrame, kind: str
) -> list[tuple[str, pl.DataFrame, dict[str, Any]]]:
    """Divide points into steps from pale to dark, whose ends are named; without a value first."""
    ends = {"time": ("earlier", "later")}.get(kind, (f"lower {kind}", f"higher {kind}"))
    names = [ends[0], *[""] * (len(SCALE) - 2), ends[1]]
    step = (pl.col("shade") * len(SCALE)).floor().clip(0, len(SCALE) - 1)
    steps = [crowd.filter(step == i) for i in range(len(SCALE))]
    looks = [{"color": tint, "opacity": 0.85} for tint in SCALE]
    return [
        (f"no {kind}", crowd.filter(pl.col("shade").is_null()), _NO_GROUP),
        *zip(names, steps, looks, strict=True),
    ]


def _point_coordinates(rows: pl.DataFrame) -> np.ndarray:
    return rows.select("x", "y").to_numpy()


def _narrow_gaps(
    turns: pl.DataFrame, question: tuple[float, float] | None
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Narrow what is empty between turns and question, along each axis, to a share of its range."""
    asked = np.empty((0, 2))
    if question is not None:
        asked = np.array([question], dtype=float)
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
    """Draw lines of equal density behind the points: Gaussian, a tenth of the spread wide."""
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
    return [
        go.Contour(
            x=x.round(4).tolist(),
            y=y.round(4).tolist(),
            z=(density / density.max()).round(3).tolist(),
            contours={"coloring": "lines", "start": 0.1, "end": 0.9, "size": 0.2},
            line={"width": 0.8},
            colorscale=[[0, style.RULE], [1, style.NOISE]],
            showscale=False,
            hoverinfo="skip",
        )
    ]


def _draw_dots(
    name: str,
    rows: pl.DataFrame,
    marker: dict[str, Any],
    shapes: dict[str, tuple[str, str]] | None = None,
) -> go.Scatter:
    """Draw points, each with the shape of its speaker where there are shapes."""
    x, y = rows["x"].round(4).to_list(), rows["y"].round(4).to_list()
    hover_columns = ("turn_id", "session_id", "speaker", "text")
    shown = rows.select(cs.by_name(*hover_columns, require_all=False))
    hover = [
        "<br>".join(escape(cut_to_width(v, 520, 11)) for v in row if v is not None)
        for row in shown.iter_rows()
    ]
    look = dict(marker)
    if shapes:
        look["symbol"] = [shapes[speaker][1] for speaker in rows["speaker"].fill_null("")]
    return go.Scatter(
        x=x,
        y=y,
        name=drawable_text(name),
        mode="markers",
        marker=look,
        text=hover,
        hoverinfo="text+name",
        showlegend=False,
    )


def _cluster_labels(
    points: np.ndarray,
    labels: np.ndarray,
    stars: np.ndarray,
    named: list[tuple[int, str, str]],
    *,
    area: np.ndarray,
    width: str,
) -> list[dict[str, Any]]:
    """Write names at their clusters, in the order given, where each covers little."""
    drawn = [cluster for cluster in named if (labels == cluster[0]).any()]
    drawn = drawn[: _MOST_NAMES[width]]
    blocks = [_label_lines(name, _LABEL_PX[width]) for _, name, _ in drawn]
    sizes = np.array(
        [(widest_px(lines, style.SMALL, bold=True) + 4, 11 * len(lines) + 2) for lines in blocks]
    ).reshape(-1, 2)
    anchors = [np.median(points[labels == label], axis=0) for label, _, _ in drawn]
    # a star is as wide as this
    starred = (stars[:, None] + [(x, y) for x in (-7, 0, 7) for y in (-7, 0, 7)]).reshape(-1, 2)
    obstacles = np.vstack([points, starred])
    weights = np.concatenate([np.where(labels < 0, 0.3, 1.0), np.full(len(starred), _STAR_COST)])
    centres = place_labels(
        np.array(anchors).reshape(-1, 2),
        sizes,
        obstacles,
        area=(area[0], area[1]),
        radii=_LABEL_RADII[width],
        weights=weights,
        most_covered=_MOST_COVERED,
    )
    return [
        {
            "at": centre,
            "text": "<br>".join(f"<b>{escape(line)}</b>" for line in lines),
            "font": {"size": style.SMALL, "color": style.darken_colour(tint, 0.5)},
            "bgcolor": "rgba(255,255,255,0.72)",
            "borderpad": 1,
            "showarrow": False,
        }
        for centre, lines, (_, _, tint) in zip(centres, blocks, drawn, strict=True)
        if not np.isnan(centre[0])
    ]


def _label_lines(name: str, px: int) -> list[str]:
    """Write a cluster's name: as many terms as fit on two lines, or one long term on three."""
    terms = name.split(_BETWEEN)
    lines = [""]
    for term in terms:
        longer = _BETWEEN.join(filter(None, (lines[-1], term)))
        if text_px(longer, style.SMALL, bold=True) <= px:
            lines[-1] = longer
        elif len(lines) == 1 and lines[0]:
            lines.append(cut_to_width(term, px, style.SMALL, bold=True))
        elif not lines[0]:
            lines = wrap(term, px, style.SMALL, lines=3, bold=True)
        else:
            break
    return lines


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
