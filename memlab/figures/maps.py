"""Maps of an embedding: coloured, named clusters with a question's evidence on top."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
import plotly.graph_objects as go
import polars as pl
import polars.selectors as cs

from memlab.errors import DataError
from memlab.figures import style
from memlab.figures.label_placement import place_labels
from memlab.figures.style import SCALE, SPEAKER_TINTS, position_colours, scale_colours
from memlab.figures.text_and_glyphs import (
    cut_to_width,
    drawable_text,
    escape,
    printable_line,
    text_px,
    widest_px,
    wrap,
)

_MOST_POINTS = 6_000
_FEWEST_DENSE = 300
"""Points from which on lines of equal density are drawn. The kernel is a tenth of the spread wide
along each axis, so it covers about a hundredth of the map: with fewer than three points in a kernel
a line goes around single points and says nothing of groups.
"""
_MOST_NAMES = {"column": 9, "full": 20}
_LABEL_PX = {"column": 84, "full": 100}
_LABEL_RADII = {"column": tuple(range(0, 42, 3)), "full": tuple(range(0, 78, 4))}
_LEADER_PX = 4.0
"""From a name to the nearest point of its cluster: from here on a line joins them."""
_HEIGHT_PX = {"column": 270, "full": 440}
_SIDE = 8
_MAP_MARGIN = 16
"""Pixels between the marks of a map and its frame, both sides together."""
_WIDEST_GAP = 0.06
_STAR_COST = 60.0
_COSTS = {"none": 0.5, "cluster": 4.0}
"""Of covering a point in no cluster, and one in a cluster."""
_MOST_COVERED = 1.0
"""Costs of what a name may cover: two points in no cluster."""
_LEAST_APART = 14.0
"""Pixels in a column between marked turns, which are moved apart so that no mark hides another."""
_PUSHES = 200
_MOVED = ("marks that would hide each other are moved apart", style.GREY)
"""What the key says then."""
_BETWEEN = " · "
_NO_GROUP: dict[str, Any] = {"size": 3.2, "color": "#DCDCDC"}
_OTHER_GROUP: dict[str, Any] = {"size": 3.4, "color": style.NOISE}
_BLACK = {"color": "black", "width": 1}
_STAR = {"symbol": "star", "size": 11, "color": style.EVIDENCE, "line": _BLACK}
_LEAST_RING = 8.0
_SECOND = "△ of the second pipeline"
_FOUND = "★ evidence, retrieved"
_KEY_LOOKS = {_FOUND: f"{style.EVIDENCE};stroke:black;stroke-width:0.6px"}
"""Looks of marks in the key, where they are not black."""
_MARKS = {
    "✚ the question": {"symbol": "cross", "size": 11, "color": "black", "line": {"color": "white"}},
    "◇ selected": {
        "symbol": "diamond-open",
        "size": 8,
        "color": style.GREY,
        "line": {"width": 1.2},
    },
    "○ retrieved, no evidence": {
        "symbol": "circle-open",
        "size": _LEAST_RING,
        "color": "black",
        "line": {"width": 1.4},
    },
    _FOUND: _STAR,
    "☆ evidence, missed": _STAR | {"color": "white"},
    _SECOND: {
        "symbol": "triangle-up-open",
        "size": 13,
        "color": "black",
        "line": {"width": 1.2},
    },
}


_PointGroup = tuple[str, pl.DataFrame, style.MarkerLook]
"""The name of points of one look, the points, and the look."""
_NamedCluster = tuple[int, str, str]
"""The label, the name and the colour of a cluster."""
_KeyEntry = tuple[str, str]
"""What the key says, its first character a mark, and the colour of that mark."""


@style.sentence_if_empty
def embedding_map(
    points: pl.DataFrame,
    *,
    terms: pl.DataFrame,
    question: tuple[float, float] | None = None,
    title: str = "",
    note: str = "",
    kind: str = "cluster",
    first: str = "",
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
    near whom; behind 300 points and more lie lines of equal density. Empty bands are shortened, so
    that islands do not shrink to specks. Above 6,000 points a random part is drawn, evidence
    always; the map says so.

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
    :param first: the name of the pipeline of ``rank``, for the key; ``second`` of the other one.
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
    _check_coordinates_finite(turns, "embedding_map")
    turns, question_point = _narrow_bands_of_turns_and_question(turns, question)
    column_area = np.array([style.WIDTHS["column"] - 2 * _SIDE, _HEIGHT_PX["column"]], dtype=float)
    mapped_turns = turns
    turns = _move_marked_turns_apart(mapped_turns, question_point, column_area, margin_px=24)
    turns_by_mark = _marked_turn_rows_by_mark(turns, question_point)
    is_evidence = pl.col("evidence")
    drawn_turns = turns
    if turns.height > _MOST_POINTS:
        drawn_turns = pl.concat(
            [turns.filter(~is_evidence).sample(_MOST_POINTS, seed=0), turns.filter(is_evidence)]
        )
    shape_by_speaker = _speaker_shapes(turns)
    name_by_label = {
        cluster_label: printable_line(name_text)
        for cluster_label, name_text in terms.select("label", "terms").iter_rows()
    }
    plain_turns = drawn_turns.filter(~is_evidence)
    named_clusters = list[_NamedCluster]()
    if "shade" in turns.columns:
        turn_groups = _shade_point_groups(plain_turns, kind)
    elif kind in ("session", "speaker"):
        turn_groups = _session_or_speaker_point_groups(plain_turns, kind, name_by_label)
    else:
        named_clusters = _clusters_by_importance(turns, name_by_label, kind)
        turn_groups = _cluster_point_groups(plain_turns, kind, named_clusters)
    map_traces = _draw_density_lines(drawn_turns)
    dot_size = _point_diameter_px(drawn_turns.height)
    for group_name, group_rows, group_look in turn_groups:
        if group_rows.height:
            dot_look = {"size": dot_size, "line": {"width": 0}} | group_look
            map_traces.append(_draw_points(group_name, group_rows, dot_look, shape_by_speaker))
    unknown_ending = ", no evidence"
    if turns["evidence"].any():
        unknown_ending = ""
    key_entries = []
    for mark, mark_turns in turns_by_mark.items():
        mark_name = mark.removesuffix(unknown_ending)
        mark_look = _MARKS[mark]
        if mark_look["symbol"] == "circle-open":
            mark_look = mark_look | {"size": _ring_diameter_px(dot_size)}
        map_traces.append(_draw_points(mark_name[2:], mark_turns, mark_look))
        if first:
            by_first = f" by {printable_line(first)}"
            mark_name = re.sub("(retrieved|missed)", rf"\1{by_first}", mark_name)
        if second and mark == _SECOND:
            mark_name = f"△ retrieved by {printable_line(second)}"
        if mark_turns is not question_point:
            mark_name += f" ({mark_turns.height:,})"
        key_entries.append((mark_name, _KEY_LOOKS.get(mark, "black")))
    marked_turns = pl.concat([turns.clear(), *turns_by_mark.values()], how="diagonal")
    turn_places = _point_coordinates(drawn_turns)
    marked_places = _point_coordinates(marked_turns)
    all_places = np.vstack([turn_places, marked_places])
    turn_labels = drawn_turns["label"].to_numpy()
    low_corner = all_places.min(axis=0)
    high_corner = all_places.max(axis=0)
    named_on_map = {cluster_name for _, cluster_name, _ in named_clusters}
    key_entries += _group_key_entries(
        [group for group in turn_groups if group[0] not in named_on_map]
    )
    key_entries += _speaker_key_entries(turns, shape_by_speaker)
    if named_clusters:
        key_entries.append((f"● colour: {kind}", named_clusters[0][2]))
    if map_traces and map_traces[0].type == "contour":
        key_entries.append(("– lines: density of turns", style.NOISE))
    if not turns.equals(mapped_turns):
        key_entries.append(_MOVED)
    if turns.height > _MOST_POINTS:
        key_entries.append((f"{_MOST_POINTS:,} of {turns.height:,} points drawn", style.GREY))

    def layout_for(px: int) -> style.FigureLayout:
        width_name = style.width_name(px)
        plot_area = np.array([px - 2 * _SIDE, _HEIGHT_PX[width_name]], dtype=float)
        px_per_unit, lower_corner = _fit_scale_and_lower_corner(
            low_corner, high_corner, plot_area, margin_px=24
        )
        upper_corner = lower_corner + plot_area / px_per_unit
        map_texts, leaders = _place_cluster_names(
            (turn_places - lower_corner) * px_per_unit,
            turn_labels,
            (marked_places - lower_corner) * px_per_unit,
            named_clusters,
            plot_area=plot_area,
            width_name=width_name,
            dot_size=dot_size,
        )
        entries = [*key_entries]
        if len(map_texts) < len(named_clusters):
            entries.append(
                (f"{len(map_texts)} of {len(named_clusters)} {kind}s are named", style.GREY)
            )
        for name_text in map_texts:
            name_text["x"], name_text["y"] = (
                lower_corner + np.array(name_text.pop("at")) / px_per_unit
            ).tolist()
        name_leaders = []
        for leader_ends, leader_colour in leaders:
            (x0, y0), (x1, y1) = (lower_corner + leader_ends / px_per_unit).tolist()
            leader_line = {"color": leader_colour, "width": 0.8}
            name_leaders.append(
                {"type": "line", "x0": x0, "y0": y0, "x1": x1, "y1": y1, "line": leader_line}
                | {"layer": "below"}
            )
        key_lines = [
            *_wrap_key_entries(entries, px),
            *map(escape, wrap(note, px - 2 * _SIDE, style.SMALL, lines=3)),
        ]
        map_texts.append(
            style.text_annotation(
                "<br>".join(key_lines),
                0,
                0,
                yshift=-3,
                align="left",
                font={"size": style.SMALL, "color": style.GREY},
            )
        )
        return style.layout(
            px,
            title=title,
            plot_px=float(plot_area[1]),
            left=_SIDE,
            right=_SIDE,
            bottom=12 + 12 * len(key_lines),
            annotations=map_texts,
            shapes=name_leaders,
            xaxis=_axis_without_numbers(lower_corner[0], upper_corner[0]),
            yaxis=_axis_without_numbers(lower_corner[1], upper_corner[1]),
        )

    return style.make_figure(map_traces, layout_for)


@style.sentence_if_empty
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
    _check_coordinates_finite(turns, "speaker_maps")
    by_size = (
        turns["speaker"]
        .value_counts(sort=True)
        .sort("count", "speaker", descending=[True, False])["speaker"]
    )
    speaker_looks = list(
        zip(by_size[: len(SPEAKER_TINTS)], SPEAKER_TINTS, style.SYMBOLS, strict=False)
    )
    is_retrieved = pl.col("rank").is_not_null()
    is_evidence = pl.col("evidence")
    mark_filters = {
        "○ retrieved, no evidence": ~is_evidence & is_retrieved,
        _FOUND: is_evidence & is_retrieved,
        "☆ evidence, missed": is_evidence & ~is_retrieved,
    }
    map_traces = list[Any]()
    map_corners = list[tuple[np.ndarray, np.ndarray]]()
    map_heads = list[str]()
    has_moved = False
    n_maps = turns["panel"].n_unique()
    column_area = np.full(2, (style.WIDTHS["column"] - _SIDE * (n_maps + 1)) / n_maps)
    for panel_number, (map_head, panel_turns) in enumerate(style.rows_by_value(turns, "panel")):
        question_place = None
        if questions is not None and map_head in questions["panel"]:
            question_place = questions.filter(panel=map_head).select("x", "y").row(0)
        panel_turns, question_point = _narrow_bands_of_turns_and_question(
            panel_turns, question_place
        )
        mapped_turns = panel_turns
        panel_turns = _move_marked_turns_apart(
            mapped_turns, question_point, column_area, margin_px=_MAP_MARGIN
        )
        has_moved = has_moved or not panel_turns.equals(mapped_turns)
        plain_turns = panel_turns.filter(~is_evidence)
        other_turns = plain_turns.filter(
            ~pl.col("speaker").is_in([speaker_name for speaker_name, _, _ in speaker_looks])
        )
        drawn_groups = [("others", other_turns, _OTHER_GROUP)]
        for speaker_name, speaker_colour, speaker_symbol in speaker_looks:
            dot_look = {
                "size": 4.5,
                "color": speaker_colour,
                "symbol": speaker_symbol,
                "opacity": 0.75,
            }
            drawn_groups.append(
                (speaker_name or "nobody", plain_turns.filter(speaker=speaker_name), dot_look)
            )
        drawn_groups.append(("the question", question_point, _MARKS["✚ the question"]))
        for mark, mark_filter in mark_filters.items():
            drawn_groups.append((mark[2:], panel_turns.filter(mark_filter), _MARKS[mark]))
        for group_name, group_rows, dot_look in drawn_groups:
            if group_rows.height:
                dot_trace = _draw_points(group_name, group_rows, {"line": {"width": 0}} | dot_look)
                map_traces.append(dot_trace.update(style.panel_axes(panel_number)))
        all_places = np.vstack(
            [_point_coordinates(panel_turns), _point_coordinates(question_point)]
        )
        map_corners.append((all_places.min(axis=0), all_places.max(axis=0)))
        map_heads.append(printable_line(map_head))
    key_entries = [
        (f"{shape_mark} {printable_line(speaker_name) or 'nobody'}", speaker_colour)
        for (speaker_name, speaker_colour, _), shape_mark in zip(
            speaker_looks, style.SHAPES, strict=False
        )
    ]
    if len(by_size) > len(speaker_looks):
        key_entries.append(("● others", style.GREY))
    # Every map has the same turns.
    first_map = turns.filter(panel=turns["panel"][0])
    for mark, mark_filter in mark_filters.items():
        n_marked = first_map.filter(mark_filter).height
        if n_marked:
            key_entries.append((f"{mark} ({n_marked:,})", _KEY_LOOKS.get(mark, "black")))
    if questions is not None and questions.height:
        key_entries.append(("✚ the question", "black"))
    if has_moved:
        key_entries.append(_MOVED)

    def layout_for(px: int) -> style.FigureLayout:
        panel_width = (px - 2 * _SIDE - _SIDE * (len(map_heads) - 1)) / max(len(map_heads), 1)
        plot_area = np.array([panel_width, _map_panel_height_px(panel_width, map_corners)])
        head_lines = [
            wrap(map_head, panel_width - 4, style.SMALL, lines=4) for map_head in map_heads
        ]
        key_lines = [
            *_wrap_key_entries(key_entries, px),
            *map(escape, wrap(note, px - 2 * _SIDE, style.SMALL, lines=4)),
        ]
        map_facets = []
        for own_lines, (low_corner, high_corner) in zip(head_lines, map_corners, strict=True):
            px_per_unit, lower_corner = _fit_scale_and_lower_corner(
                low_corner, high_corner, plot_area, margin_px=_MAP_MARGIN
            )
            upper_corner = lower_corner + plot_area / px_per_unit
            map_facets.append(
                {
                    "head": style.join_lines(own_lines),
                    "xaxis": _axis_without_numbers(lower_corner[0], upper_corner[0]),
                    "yaxis": _axis_without_numbers(lower_corner[1], upper_corner[1]),
                }
            )
        panel_layout = style.panel_grid_layout(
            px,
            map_facets,
            columns=max(len(map_facets), 1),
            high=float(plot_area[1]),
            gap=(_SIDE, 0),
            left=_SIDE,
            right=_SIDE,
            title=title,
            head_px=4 + 12 * max(map(len, head_lines), default=0),
            bottom=12 + 12 * len(key_lines),
        )
        key_font = {"size": style.SMALL, "color": style.GREY}
        key_note = style.text_annotation(
            "<br>".join(key_lines), 0, 0, yshift=-3, align="left", font=key_font
        )
        return panel_layout | {"annotations": [*panel_layout["annotations"], key_note]}

    return style.make_figure(map_traces, layout_for)


def _map_panel_height_px(
    panel_width: float, map_corners: Sequence[tuple[np.ndarray, np.ndarray]]
) -> float:
    """Give the height at which the flattest maps leave no empty bands above and below.

    At most a square, since a map is read in both directions; at least half of one.
    """
    highest = min(panel_width, _HEIGHT_PX["full"])
    shares = [0.5]
    for low_corner, high_corner in map_corners:
        extent = np.maximum(high_corner - low_corner, 1e-9)
        shares.append(float(extent[1] / extent[0]))
    needed = (panel_width - _MAP_MARGIN) * max(shares) + _MAP_MARGIN
    return min(highest, needed)


def _speaker_key_entries(
    turns: pl.DataFrame, shape_by_speaker: dict[str, tuple[str, str]]
) -> list[_KeyEntry]:
    """Name the shapes of speakers in the key, with how many turns each has."""
    if not shape_by_speaker:
        return []
    n_turns = dict(turns["speaker"].fill_null("").value_counts().iter_rows())
    entries = []
    for speaker, (shape_mark, _) in shape_by_speaker.items():
        name = printable_line(speaker) or "nobody"
        entries.append((f"{shape_mark} {name} ({n_turns[speaker]:,})", style.GREY))
    return entries


def _fit_scale_and_lower_corner(
    low_corner: np.ndarray, high_corner: np.ndarray, plot_area: np.ndarray, *, margin_px: int
) -> tuple[float, np.ndarray]:
    """Fit coordinates into a plot, with one scale for both axes.

    :param margin_px: what stays free within the plot, both sides together.
    :returns: pixels of a unit, and the coordinates of the lower left corner of the plot.
    """
    spread = np.maximum(high_corner - low_corner, 1e-9)
    px_per_unit = float(((plot_area - margin_px) / spread).min())
    middle = (low_corner + high_corner) / 2
    return px_per_unit, middle - plot_area / px_per_unit / 2


def _axis_without_numbers(axis_start: float, axis_end: float) -> style.AxisLayout:
    """Give an axis without numbers: a projection's coordinates mean nothing."""
    return {
        "showgrid": False,
        "showticklabels": False,
        "ticks": "",
        "mirror": True,
        "linecolor": style.RULE,
        "range": [axis_start, axis_end],
    }


def _check_coordinates_finite(turns: pl.DataFrame, chart_name: str) -> None:
    """Refuse coordinates that are missing or not finite."""
    is_finite = pl.all_horizontal(pl.col("x", "y").is_finite().fill_null(False))
    if not turns.select(is_finite.all()).item():
        raise DataError(
            f"{chart_name} got a coordinate that is not finite; project the embeddings again"
        )


def _marked_turn_rows_by_mark(
    turns: pl.DataFrame, question_point: pl.DataFrame
) -> dict[str, pl.DataFrame]:
    """Give the marked turns, and the question, by mark; marks without a turn are left out."""
    is_retrieved = pl.col("rank").is_not_null()
    is_evidence = pl.col("evidence")
    flagged_turns = dict[str, pl.DataFrame]()
    for flag_column in ("selected", "second"):
        flagged_turns[flag_column] = turns.clear()
        if flag_column in turns.columns:
            flagged_turns[flag_column] = turns.filter(flag_column)
    turns_of_marks = [
        question_point,
        flagged_turns["selected"],
        turns.filter(is_retrieved & ~is_evidence),
        turns.filter(is_retrieved & is_evidence),
        turns.filter(~is_retrieved & is_evidence),
        flagged_turns["second"],
    ]
    return {
        mark_name: mark_turns
        for mark_name, mark_turns in zip(_MARKS, turns_of_marks, strict=True)
        if mark_turns.height
    }


def _speaker_shapes(turns: pl.DataFrame) -> dict[str, tuple[str, str]]:
    """Give each of two to four speakers a shape, as a character and as plotly names it."""
    if "speaker" not in turns.columns:
        return {}
    turn_counts = turns["speaker"].fill_null("").value_counts(name="n")
    by_size = turn_counts.sort("n", "speaker", descending=[True, False])["speaker"]
    shape_pairs = list(zip(style.SHAPES, style.SYMBOLS, strict=True))[: len(SPEAKER_TINTS)]
    if not 2 <= len(by_size) <= len(shape_pairs):
        return {}
    return dict(zip(by_size, shape_pairs, strict=False))


def _point_diameter_px(n_drawn_points: int) -> float:
    """Give the diameter of a point in pixels: smaller the more there are."""
    return float(np.interp(np.log10(max(n_drawn_points, 1)), (2.3, 3.8), (6.5, 3.0)))


def _ring_diameter_px(point_diameter_px: float) -> float:
    """Give the diameter of a ring around a point in pixels: the corners of a square show in it."""
    return max(_LEAST_RING, math.sqrt(2) * point_diameter_px + 3)


def _clusters_by_importance(
    turns: pl.DataFrame, name_by_label: dict[int, str], colour_kind: str
) -> list[_NamedCluster]:
    """Give label, name and colour of each cluster: those with evidence first, then the largest."""
    cluster_sizes = (
        turns.filter(pl.col("label") >= 0)
        .group_by("label")
        .agg(pl.col("x", "y").median(), pl.col("evidence").any(), size=pl.len())
        .sort("evidence", "size", "label", descending=[True, True, False])
    )
    cluster_colours = position_colours(_point_coordinates(cluster_sizes), _point_coordinates(turns))
    return [
        (
            cluster_label,
            name_by_label.get(cluster_label, f"{colour_kind} {cluster_label}"),
            cluster_colour,
        )
        for cluster_label, cluster_colour in zip(
            cluster_sizes["label"], cluster_colours, strict=True
        )
    ]


def _cluster_point_groups(
    plain_turns: pl.DataFrame, colour_kind: str, named_clusters: list[_NamedCluster]
) -> list[_PointGroup]:
    """Divide points by cluster; those in none come first."""
    turns_by_label = dict(style.rows_by_value(plain_turns, "label"))
    loose_turns = plain_turns.filter(pl.col("label") < 0)
    turn_groups = [(f"in no {colour_kind}", loose_turns, _NO_GROUP)]  # pale, and below all others
    for cluster_label, cluster_name, cluster_colour in sorted(named_clusters):
        group_look = {"color": cluster_colour, "opacity": 0.9}
        turn_groups.append(
            (cluster_name, turns_by_label.get(cluster_label, plain_turns.clear()), group_look)
        )
    return turn_groups


def _session_or_speaker_point_groups(
    plain_turns: pl.DataFrame, colour_kind: str, name_by_code: dict[int, str]
) -> list[_PointGroup]:
    """Divide points by sessions, from the first to the last, or by speakers."""
    group_codes = sorted(name_by_code)
    if colour_kind == "session":
        colour_by_code = dict(zip(group_codes, scale_colours(len(group_codes)), strict=True))
    else:
        colour_by_code = dict(zip(group_codes, SPEAKER_TINTS, strict=False))
    other_turns = plain_turns.filter(~pl.col("label").is_in(list(colour_by_code)))
    turn_groups = [(f"other {colour_kind}s", other_turns, _OTHER_GROUP)]
    for group_code, group_colour in colour_by_code.items():
        group_look = {"color": group_colour, "opacity": 0.8}
        turn_groups.append(
            (name_by_code[group_code], plain_turns.filter(label=group_code), group_look)
        )
    return turn_groups


def _group_key_entries(
    turn_groups: list[_PointGroup],
) -> list[_KeyEntry]:
    """Name groups in the key; of many, which are in order, the first and the last."""
    named_groups = [
        (group_name, group_rows, group_look["color"])
        for group_name, group_rows, group_look in turn_groups
        if group_name and (group_rows.height or group_look["color"] in SCALE)
    ]
    if len(named_groups) > len(SCALE) + 2:
        return [
            (f"● first: {named_groups[0][0]}", named_groups[0][2]),
            (f"● last: {named_groups[-1][0]}", named_groups[-1][2]),
        ]
    return [(f"● {group_name}", group_colour) for group_name, _, group_colour in named_groups]


def _shade_point_groups(plain_turns: pl.DataFrame, colour_kind: str) -> list[_PointGroup]:
    """Divide points into steps from pale to dark, whose ends are named; without a value first."""
    end_names = {"time": ("earlier", "later")}.get(
        colour_kind, (f"lower {colour_kind}", f"higher {colour_kind}")
    )
    step_names = [end_names[0], *[""] * (len(SCALE) - 2), end_names[1]]
    shade_step = (pl.col("shade") * len(SCALE)).floor().clip(0, len(SCALE) - 1)
    step_turns = [
        plain_turns.filter(shade_step == step_number) for step_number in range(len(SCALE))
    ]
    step_looks = [{"color": step_colour, "opacity": 0.85} for step_colour in SCALE]
    return [
        (f"no {colour_kind}", plain_turns.filter(pl.col("shade").is_null()), _NO_GROUP),
        *zip(step_names, step_turns, step_looks, strict=True),
    ]


def _point_coordinates(turns: pl.DataFrame) -> np.ndarray:
    return turns.select("x", "y").to_numpy()


def _narrow_bands_of_turns_and_question(
    turns: pl.DataFrame, question: tuple[float, float] | None
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Narrow what is empty between turns and question, along each axis, to a share of its range."""
    question_place = np.empty((0, 2))
    if question is not None:
        question_place = np.array([question], dtype=float)
    all_places = np.vstack([_point_coordinates(turns), question_place])
    for axis_places in all_places.T:
        distinct_places = np.unique(axis_places)
        if distinct_places.size > 2:
            narrowed = np.cumsum(
                np.minimum(
                    np.diff(distinct_places, prepend=distinct_places[0]),
                    _WIDEST_GAP * np.ptp(distinct_places),
                )
            )
            axis_places[:] = np.interp(axis_places, distinct_places, narrowed)
    moved_places = pl.DataFrame(all_places, schema=["x", "y"])
    return turns.with_columns(moved_places.head(turns.height)), moved_places.tail(
        len(question_place)
    )


def _draw_density_lines(drawn_turns: pl.DataFrame) -> list[go.Contour]:
    """Draw lines of equal density behind the points: Gaussian, a tenth of the spread wide."""
    from scipy.stats import gaussian_kde

    point_places = _point_coordinates(drawn_turns).T
    if point_places.shape[1] < _FEWEST_DENSE:
        return []
    centred_places = point_places - point_places.mean(axis=1, keepdims=True)
    if np.linalg.matrix_rank(centred_places) < 2:
        return []
    edge_pad = np.ptp(point_places, axis=1) * 0.05
    grid_x, grid_y = np.linspace(
        point_places.min(axis=1) - edge_pad, point_places.max(axis=1) + edge_pad, 60
    ).T
    grid = np.stack(np.meshgrid(grid_x, grid_y)).reshape(2, -1)
    density = gaussian_kde(point_places, bw_method=0.1)(grid).reshape(60, 60)
    return [
        go.Contour(
            x=grid_x.round(4).tolist(),
            y=grid_y.round(4).tolist(),
            z=(density / density.max()).round(3).tolist(),
            contours={"coloring": "lines", "start": 0.1, "end": 0.9, "size": 0.2},
            line={"width": 0.8},
            colorscale=[[0, style.RULE], [1, style.NOISE]],
            showscale=False,
            hoverinfo="skip",
        )
    ]


def _draw_points(
    group_name: str,
    drawn_turns: pl.DataFrame,
    marker: style.MarkerLook,
    shape_by_speaker: dict[str, tuple[str, str]] | None = None,
) -> go.Scatter:
    """Draw points, each with the shape of its speaker where there are shapes."""
    x_values = drawn_turns["x"].round(4).to_list()
    y_values = drawn_turns["y"].round(4).to_list()
    hover_columns = ("turn_id", "session_id", "speaker", "text")
    hover_rows = drawn_turns.select(cs.by_name(*hover_columns, require_all=False))
    hover_texts = [
        "<br>".join(
            escape(cut_to_width(hover_value, 520, 11))
            for hover_value in hover_row
            if hover_value is not None
        )
        for hover_row in hover_rows.iter_rows()
    ]
    dot_look = dict(marker)
    if shape_by_speaker:
        dot_look["symbol"] = [
            shape_by_speaker[speaker][1] for speaker in drawn_turns["speaker"].fill_null("")
        ]
    return go.Scatter(
        x=x_values,
        y=y_values,
        name=drawable_text(group_name),
        mode="markers",
        marker=dot_look,
        text=hover_texts,
        hoverinfo="text+name",
        showlegend=False,
    )


def _place_cluster_names(
    point_places: np.ndarray,
    turn_labels: np.ndarray,
    star_centres: np.ndarray,
    named_clusters: list[_NamedCluster],
    *,
    plot_area: np.ndarray,
    width_name: str,
    dot_size: float,
) -> tuple[list[style.Annotation], list[tuple[np.ndarray, str]]]:
    """Write names beside their clusters, in the order given, where they cover nothing that counts.

    :returns: the names, and for those that do not touch their cluster a line to its nearest point,
        as its two ends and its colour.
    """
    drawn_clusters = [cluster for cluster in named_clusters if (turn_labels == cluster[0]).any()]
    label_blocks = [
        _wrap_cluster_name(cluster_name, _LABEL_PX[width_name])
        for _, cluster_name, _ in drawn_clusters
    ]
    label_sizes = np.array(
        [
            (widest_px(label_lines, style.SMALL, bold=True) + 4, 11 * len(label_lines) + 2)
            for label_lines in label_blocks
        ]
    ).reshape(-1, 2)
    own_places = [
        point_places[turn_labels == cluster_label] for cluster_label, _, _ in drawn_clusters
    ]
    label_anchors = [np.median(cluster_places, axis=0) for cluster_places in own_places]
    # A star is as wide as this.
    star_offsets = [*product((-7, 0, 7), repeat=2)]
    star_places = (star_centres[:, None] + star_offsets).reshape(-1, 2)
    obstacles = np.vstack([point_places, star_places])
    point_costs = np.where(turn_labels < 0, _COSTS["none"], _COSTS["cluster"])
    obstacle_costs = np.hstack([point_costs, np.full(len(star_places), _STAR_COST)])
    label_centres = place_labels(
        np.array(label_anchors).reshape(-1, 2),
        # No point is cut at the edge of a name.
        label_sizes + dot_size,
        obstacles,
        area=(plot_area[0], plot_area[1]),
        radii=_LABEL_RADII[width_name],
        weights=np.tile(obstacle_costs, (len(drawn_clusters), 1)),
        most_covered=_MOST_COVERED,
    )
    label_notes = []
    leaders = []
    placed_labels = np.flatnonzero(~np.isnan(label_centres[:, 0]))
    for label_number in placed_labels[: _MOST_NAMES[width_name]]:
        label_centre = label_centres[label_number]
        half_label = label_sizes[label_number] / 2
        edge_places = np.clip(
            own_places[label_number], label_centre - half_label, label_centre + half_label
        )
        distances = np.linalg.norm(own_places[label_number] - edge_places, axis=1)
        nearest = int(distances.argmin())
        leader_ends = np.array([edge_places[nearest], own_places[label_number][nearest]])
        other_labels = placed_labels[placed_labels != label_number]
        if _crosses_boxes(leader_ends, label_centres[other_labels], label_sizes[other_labels]):
            continue
        label_ink = style.darken_colour(drawn_clusters[label_number][2], 0.5)
        label_notes.append(
            {
                "at": label_centre,
                "text": "<br>".join(
                    f"<b>{escape(label_line)}</b>" for label_line in label_blocks[label_number]
                ),
                "font": {"size": style.SMALL, "color": label_ink},
                "bgcolor": "rgba(255,255,255,0.72)",
                "borderpad": 0,
                "showarrow": False,
            }
        )
        if distances[nearest] - dot_size / 2 > _LEADER_PX:
            leaders.append((leader_ends, label_ink))
    return label_notes, leaders


def _crosses_boxes(line_ends: np.ndarray, centres: np.ndarray, sizes: np.ndarray) -> bool:
    """Tell whether a line runs through one of some boxes."""
    shares = np.linspace(0, 1, 24)[:, None]
    line_places = line_ends[0] + shares * (line_ends[1] - line_ends[0])
    is_within = np.abs(line_places[:, None] - centres) < sizes / 2
    return bool(is_within.all(axis=2).any())


def _move_marked_turns_apart(
    turns: pl.DataFrame, question_point: pl.DataFrame, plot_area: np.ndarray, *, margin_px: int
) -> pl.DataFrame:
    """Move evidence and what was retrieved away from each other and from the question.

    Turns move with their marks, by no more than is needed to tell the marks apart.

    :param plot_area: of a map in a column, where marks are nearest to each other.
    """
    is_marked = pl.col("evidence") | pl.col("rank").is_not_null()
    if "second" in turns.columns:
        is_marked = is_marked | pl.col("second")
    marked_rows = turns.select(is_marked.arg_true()).to_series().to_numpy()
    turn_places = _point_coordinates(turns).copy()
    all_places = np.vstack([turn_places, _point_coordinates(question_point)])
    px_per_unit, lower_corner = _fit_scale_and_lower_corner(
        all_places.min(axis=0), all_places.max(axis=0), plot_area, margin_px=margin_px
    )
    fixed_places = (_point_coordinates(question_point) - lower_corner) * px_per_unit
    marked_places = (turn_places[marked_rows] - lower_corner) * px_per_unit
    has_moved = False
    for _ in range(_PUSHES):
        others = np.vstack([marked_places, fixed_places])
        between = marked_places[:, None] - others
        distances = np.linalg.norm(between, axis=2)
        # Two at one place leave it in a direction of their own.
        turned_by = np.arange(len(marked_places)) * 2.4
        own_ways = np.column_stack([np.cos(turned_by), np.sin(turned_by)])
        ways = np.where(
            distances[:, :, None] > 1e-6,
            between / np.maximum(distances, 1e-6)[:, :, None],
            own_ways[:, None],
        )
        lacking = np.maximum(_LEAST_APART - distances, 0)
        np.fill_diagonal(lacking, 0)
        if not lacking.any():
            break
        has_moved = True
        marked_places = marked_places + (ways * lacking[:, :, None]).sum(axis=1) / 2
    if not has_moved:
        return turns
    turn_places[marked_rows] = marked_places / px_per_unit + lower_corner
    return turns.with_columns(x=pl.Series(turn_places[:, 0]), y=pl.Series(turn_places[:, 1]))


def _wrap_cluster_name(cluster_name: str, max_px: int) -> list[str]:
    """Write a cluster's name: as many terms as fit on two lines, or one long term on three."""
    name_terms = cluster_name.split(_BETWEEN)
    label_lines = [""]
    for name_term in name_terms:
        longer_line = _BETWEEN.join(filter(None, (label_lines[-1], name_term)))
        if text_px(longer_line, style.SMALL, bold=True) <= max_px:
            label_lines[-1] = longer_line
        elif len(label_lines) == 1 and label_lines[0]:
            label_lines.append(cut_to_width(name_term, max_px, style.SMALL, bold=True))
        elif not label_lines[0]:
            label_lines = wrap(name_term, max_px, style.SMALL, lines=3, bold=True)
        else:
            break
    return label_lines


def _wrap_key_entries(entries: list[_KeyEntry], picture_px: int) -> list[str]:
    """Give the key, whose marks have their colours, in as many lines as it needs."""
    key_lines = [""]
    taken_px = 0.0
    for entry_text, entry_colour in entries:
        entry_px = text_px(entry_text, style.SMALL) + 12
        if key_lines[-1] and taken_px + entry_px > picture_px - 2 * _SIDE:
            key_lines.append("")
            taken_px = 0.0
        entry_markup = (
            f"<span style='color:{entry_colour}'>{entry_text[0]}</span>{escape(entry_text[1:])}"
        )
        if key_lines[-1]:
            entry_markup = f"   {entry_markup}"
        key_lines[-1] += entry_markup
        taken_px += entry_px
    return key_lines
