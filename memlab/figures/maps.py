"""Maps of an embedding: coloured, named clusters with a question's evidence on top."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go
import polars as pl
import polars.selectors as cs

from memlab.errors import DataError
from memlab.figures import style
from memlab.figures.map_marks import (
    SIDE_PX,
    KeyEntry,
    MapMark,
    coordinates_of,
    describe_positions,
    describe_retrieved_evidence,
    evidence_marks,
    evidence_rims,
    fit_scale_and_lower_corner,
    mark_key_entries,
    move_marked_turns_apart,
    other_marks,
    question_mark,
    speaker_key_entries,
    wrap_key_entries,
)
from memlab.figures.map_names import (
    OTHER_TINT,
    ClusterColours,
    DrawnPoints,
    MapCluster,
    PlacedNames,
    choose_cluster_colours,
    number_key_entries,
    place_cluster_names,
)
from memlab.figures.style import SCALE, SPEAKER_TINTS, scale_colours
from memlab.figures.text_and_glyphs import (
    cut_to_width,
    drawable_text,
    escape,
    printable_line,
    wrap,
)

_MOST_POINTS = 6_000
_FEWEST_DENSE = 300
"""Points from which on lines of equal density are drawn. The kernel is a tenth of the spread wide
along each axis, so it covers about a hundredth of the map: with fewer than three points in a kernel
a line goes around single points and says nothing of groups.
"""
_HEIGHT_PX = {"column": 270, "full": 440}
_LEFT_BY_KEY = (1.0, 0.9)
"""Of the width and height of a map in a column: a long key takes some of its height."""
_MAP_MARGIN = 24
"""Pixels between the marks of a map and its frame, both sides together."""
_WIDEST_GAP = 0.06
_NO_GROUP: dict[str, Any] = {"size": 3.2, "color": "#D8D8D8"}
_OTHER_GROUP: dict[str, Any] = {"size": 3.4, "color": style.NOISE}
_SPEAKER_DOT_PX = 3.2
_DOT_EDGE = {"color": "white", "width": 0.5}
"""Tells dots apart that overlap."""
_MOST_REMARK_LINES = 8
_SPEAKER_MARK_SCALE = 0.8
"""Of marks where two maps stand in a column."""


_PointGroup = tuple[str, pl.DataFrame, style.MarkerLook]
"""The name of points of one look, the points, and the look."""


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

    Evidence is a star: yellow where it was retrieved, white where it was missed, with a rim in the
    colour of its cluster. What was retrieved and is no evidence has a black ring, and the question
    is a black cross. With a second pipeline, a triangle is what that alone retrieved, a square what
    both did, and a black triangle stands on the stars that it retrieved.

    Clusters that hold evidence or retrieved turns have a colour, see
    :func:`memlab.figures.map_names.choose_cluster_colours`; the others are grey, and points in no
    cluster small and pale. Names stand at their clusters as far as there is room; the key names the
    coloured ones that have none. In a column only coloured clusters are named. Speakers differ in
    shape. Sessions are coloured from the first to the last. Both axes have one scale, and no
    numbers: a projection's coordinates mean nothing, only who is near whom; behind 300 points and
    more lie lines of equal density. Empty bands are shortened, so that islands do not shrink to
    specks, and marks that would overlap are moved apart. Above 6,000 points a random part is drawn,
    evidence always; the map says so.

    :param points: ``x``, ``y``, ``label`` (cluster, −1 for none), ``evidence`` (bool) and ``rank``
        (null where not retrieved), a row a turn; ``text``, ``speaker``, ``turn_id`` and
        ``session_id`` are shown on hover; ``second`` (bool) says that another pipeline retrieved
        it, and a diamond stands where ``selected`` does. Where there is ``shade`` (from 0 to 1, or
        null), it gives the colour, from pale to dark, instead of the cluster.
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
    ['garden · seeds', 'rim of evidence', 'evidence, missed']
    """
    style.check_columns(points, ("x", "y", "label", "evidence", "rank"), "embedding_map")
    turns = points.with_columns(pl.col("x", "y").cast(pl.Float64))
    _check_coordinates_finite(turns, "embedding_map")
    turns, question_point = _narrow_bands_of_turns_and_question(turns, question)
    mapped_turns = turns
    first_extent = np.ptp(np.vstack([*map(coordinates_of, (turns, question_point))]), axis=0)
    column_area = _plot_area_of_map(style.WIDTHS["column"], first_extent) * _LEFT_BY_KEY
    turns = move_marked_turns_apart(
        mapped_turns, question_point, column_area, margin_px=_MAP_MARGIN
    )
    drawn_turns = _sample_of_many(turns)
    shape_by_speaker = _speaker_shapes(turns)
    dot_size = _point_diameter_px(drawn_turns.height)
    name_by_label = {
        cluster_label: printable_line(name_text)
        for cluster_label, name_text in terms.select("label", "terms").iter_rows()
    }
    coloured = None
    if "shade" in turns.columns:
        all_groups = _shade_point_groups(drawn_turns, kind)
    elif kind in ("session", "speaker"):
        all_groups = _session_or_speaker_point_groups(drawn_turns, kind, name_by_label)
    else:
        coloured = choose_cluster_colours(turns, name_by_label, kind)
        all_groups = _cluster_point_groups(drawn_turns, kind, coloured.clusters)
    turn_groups = _without_evidence(all_groups)
    map_traces = _draw_density_lines(drawn_turns)
    has_density_lines = bool(map_traces)
    for group_name, group_rows, group_look in turn_groups:
        if group_rows.height:
            dot_look = {"size": dot_size, "line": {"width": 0}} | group_look
            map_traces.append(_draw_points(group_name, group_rows, dot_look, shape_by_speaker))
    question_marks = [question_mark(question_point)][: question_point.height]
    evidence = evidence_marks(turns, first=first, second=second)
    others = other_marks(turns, first=first, second=second, dot_px=dot_size)
    rims = evidence_rims(all_groups, kind)
    all_marks = [*rims, *others, *question_marks, *evidence]
    map_traces += [_draw_points(mark.name, mark.turns, mark.look) for mark in all_marks]
    rims_in_key = list(rims)
    if coloured is not None:
        rims_in_key = []  # the heading of the clusters says it
    mark_entries = mark_key_entries(question_marks, evidence, others, rims_in_key)
    group_entries = list[KeyEntry]()
    clusters = list[MapCluster]()
    if coloured is None:
        group_entries += _group_key_entries(turn_groups)
    else:
        clusters = coloured.clusters
    group_entries += speaker_key_entries(turns, shape_by_speaker)
    if has_density_lines:
        group_entries.append(KeyEntry("–", "density of turns", style.NOISE))
    about_positions = describe_positions(turns, has_moved=not turns.equals(mapped_turns))
    remarks = f"{about_positions} {note}"
    if turns.height > _MOST_POINTS:
        group_entries.append(KeyEntry("", f"{_MOST_POINTS:,} of {turns.height:,} points drawn"))
    turn_places = coordinates_of(drawn_turns)
    marked_places = np.vstack(
        [np.empty((0, 2)), *(coordinates_of(mark.turns) for mark in all_marks)]
    )
    all_places = np.vstack([turn_places, marked_places])
    extent = np.ptp(all_places, axis=0)
    turn_labels = drawn_turns["label"].to_numpy()
    found_text = describe_retrieved_evidence(turns, first=first, second=second)

    def layout_with_plot(px: int, plot_area: np.ndarray) -> style.FigureLayout:
        px_per_unit, lower_corner = fit_scale_and_lower_corner(
            all_places.min(axis=0), all_places.max(axis=0), plot_area, margin_px=_MAP_MARGIN
        )
        upper_corner = lower_corner + plot_area / px_per_unit
        names = place_cluster_names(
            DrawnPoints(
                (turn_places - lower_corner) * px_per_unit,
                turn_labels,
                (marked_places - lower_corner) * px_per_unit,
                dot_size,
            ),
            clusters,
            plot_area=plot_area,
            width_name=style.width_name(px),
        )
        for name_note in names.notes:
            name_note["x"], name_note["y"] = (
                lower_corner + np.array(name_note.pop("at")) / px_per_unit
            ).tolist()
        name_leaders = []
        for leader_ends, leader_colour in names.leaders:
            (x0, y0), (x1, y1) = (lower_corner + leader_ends / px_per_unit).tolist()
            leader_line = {"color": leader_colour, "width": 0.8}
            name_leaders.append(
                {"type": "line", "x0": x0, "y0": y0, "x1": x1, "y1": y1, "line": leader_line}
                | {"layer": "below"}
            )
        entries = [*mark_entries]
        if coloured is not None:
            entries += _colour_key_entries(turns, coloured, kind, names, shape_by_speaker)
        entries += group_entries
        if style.width_name(px) == "column":
            entries = [_in_line(entry) for entry in entries]
        key_lines = [
            *wrap_key_entries(entries, px),
            *map(escape, wrap(remarks, px - 2 * SIDE_PX, style.SMALL, lines=_MOST_REMARK_LINES)),
        ]
        head_lines = wrap(found_text, px - 2 * SIDE_PX, style.TEXT)
        map_texts = [*names.notes, _key_note(key_lines)]
        if head_lines:
            head_text = style.join_lines(head_lines)
            map_texts.insert(
                0, style.text_annotation(head_text, 0, 1, "left bottom", yshift=2, align="left")
            )
        return style.layout(
            px,
            title=title,
            plot_px=float(plot_area[1]),
            head_px=12 * len(head_lines),
            left=SIDE_PX,
            right=SIDE_PX,
            bottom=12 + 12 * len(key_lines),
            annotations=map_texts,
            shapes=name_leaders,
            xaxis=_axis_without_numbers(lower_corner[0], upper_corner[0]),
            yaxis=_axis_without_numbers(lower_corner[1], upper_corner[1]),
        )

    def layout_for(px: int) -> style.FigureLayout:
        plot_area = _plot_area_of_map(px, extent)
        own_layout = layout_with_plot(px, plot_area)
        too_tall = own_layout["height"] - style.TALLEST_PX
        if style.width_name(px) == "full" or too_tall <= 0:
            return own_layout
        lower = max(plot_area[1] - too_tall, plot_area[0] / 2)
        return layout_with_plot(px, np.array([plot_area[0], lower]))

    return style.make_figure(map_traces, layout_for)


def _plot_area_of_map(picture_px: int, extent: np.ndarray) -> np.ndarray:
    """Give width and height of the plot of a map, which a flat map leaves no empty bands in.

    At least half as high as wide, so that names and marks have room.

    :param extent: (2,) of what is drawn, along each axis.
    """
    plot_width = picture_px - 2 * SIDE_PX
    share = float(extent[1] / max(extent[0], 1e-9))
    needed = (plot_width - _MAP_MARGIN) * share + _MAP_MARGIN
    highest = _HEIGHT_PX[style.width_name(picture_px)]
    return np.array([plot_width, np.clip(needed, plot_width / 2, highest)])


def _key_note(key_lines: Sequence[str]) -> style.Annotation:
    """Write the key below the plot."""
    key_font = {"size": style.SMALL, "color": style.GREY}
    return style.text_annotation(
        "<br>".join(key_lines), 0, 0, yshift=-3, align="left", font=key_font
    )


def _sample_of_many(turns: pl.DataFrame) -> pl.DataFrame:
    """Give the turns, of very many a random part and all evidence."""
    if turns.height <= _MOST_POINTS:
        return turns
    is_evidence = pl.col("evidence")
    return pl.concat(
        [turns.filter(~is_evidence).sample(_MOST_POINTS, seed=0), turns.filter(is_evidence)]
    )


@style.sentence_if_empty
def speaker_maps(
    points: pl.DataFrame, *, questions: pl.DataFrame | None = None, title: str = "", note: str = ""
) -> go.Figure:
    """Draw maps of the same turns side by side, with a colour and a shape for each speaker.

    Where turns lie by who says them, a map falls into islands of one colour. Evidence is a star
    with a rim in the colour of its speaker: yellow where it was retrieved, white where it was
    missed; what else was retrieved is ringed; the question is a black cross. The four who say most
    have a colour, the others are grey.

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
    map_traces = list[Any]()
    map_corners = list[tuple[np.ndarray, np.ndarray]]()
    map_heads = list[str]()
    has_moved = False
    n_maps = turns["panel"].n_unique()
    column_area = np.full(2, (style.WIDTHS["column"] - SIDE_PX * (n_maps + 1)) / n_maps)
    for panel_number, (map_head, panel_turns) in enumerate(style.rows_by_value(turns, "panel")):
        question_place = None
        if questions is not None and map_head in questions["panel"]:
            question_place = questions.filter(panel=map_head).select("x", "y").row(0)
        panel_turns, question_point = _narrow_bands_of_turns_and_question(
            panel_turns, question_place
        )
        mapped_turns = panel_turns
        panel_turns = move_marked_turns_apart(
            mapped_turns,
            question_point,
            column_area,
            margin_px=_MAP_MARGIN,
            scale=_SPEAKER_MARK_SCALE,
        )
        has_moved = has_moved or not panel_turns.equals(mapped_turns)
        other_turns = panel_turns.filter(
            ~pl.col("speaker").is_in([speaker_name for speaker_name, _, _ in speaker_looks])
        )
        all_groups: list[_PointGroup] = [("others", other_turns, _OTHER_GROUP)]
        for speaker_name, speaker_colour, speaker_symbol in speaker_looks:
            dot_look = {
                "size": _SPEAKER_DOT_PX,
                "color": speaker_colour,
                "symbol": speaker_symbol,
                "line": _DOT_EDGE,
            }
            speaker_turns = panel_turns.filter(speaker=speaker_name)
            all_groups.append((speaker_name or "nobody", speaker_turns, dot_look))
        drawn_groups = _without_evidence(all_groups)
        panel_marks = [
            *evidence_rims(all_groups, "speaker", scale=_SPEAKER_MARK_SCALE),
            question_mark(question_point, scale=_SPEAKER_MARK_SCALE),
            *other_marks(panel_turns, scale=_SPEAKER_MARK_SCALE),
            *evidence_marks(panel_turns, scale=_SPEAKER_MARK_SCALE),
        ]
        drawn_groups += [mark[:3] for mark in panel_marks]
        for group_name, group_rows, dot_look in drawn_groups:
            if group_rows.height:
                dot_trace = _draw_points(group_name, group_rows, {"line": {"width": 0}} | dot_look)
                map_traces.append(dot_trace.update(style.panel_axes(panel_number)))
        all_places = np.vstack([coordinates_of(panel_turns), coordinates_of(question_point)])
        map_corners.append((all_places.min(axis=0), all_places.max(axis=0)))
        map_heads.append(printable_line(map_head))
    # Every map has the same turns.
    first_map = turns.filter(panel=turns["panel"][0])
    question_marks = list[MapMark]()
    if questions is not None and questions.height:
        question_marks.append(question_mark(questions))
    key_entries = mark_key_entries(
        question_marks,
        evidence_marks(first_map),
        other_marks(first_map),
        evidence_rims([("", first_map, _OTHER_GROUP)], "speaker"),
    )
    starts_line = True
    for (speaker_name, speaker_colour, _), shape_mark in zip(
        speaker_looks, style.SHAPES, strict=False
    ):
        shown_name = printable_line(speaker_name) or "nobody"
        key_entries.append(KeyEntry(shape_mark, shown_name, speaker_colour, starts_line))
        starts_line = False
    if len(by_size) > len(speaker_looks):
        key_entries.append(KeyEntry("●", "others", style.GREY))
    remarks = f"{describe_positions(first_map, has_moved=has_moved)} {note}"

    def layout_for(px: int) -> style.FigureLayout:
        panel_width = (px - 2 * SIDE_PX - SIDE_PX * (len(map_heads) - 1)) / max(len(map_heads), 1)
        plot_area = np.array([panel_width, _map_panel_height_px(panel_width, map_corners)])
        head_lines = [
            wrap(map_head, panel_width - 4, style.SMALL, lines=4) for map_head in map_heads
        ]
        key_lines = [
            *wrap_key_entries(key_entries, px),
            *map(escape, wrap(remarks, px - 2 * SIDE_PX, style.SMALL, lines=_MOST_REMARK_LINES)),
        ]
        map_facets = []
        for own_lines, (low_corner, high_corner) in zip(head_lines, map_corners, strict=True):
            px_per_unit, lower_corner = fit_scale_and_lower_corner(
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
            gap=(SIDE_PX, 0),
            left=SIDE_PX,
            right=SIDE_PX,
            title=title,
            head_px=4 + 12 * max(map(len, head_lines), default=0),
            bottom=12 + 12 * len(key_lines),
        )
        annotations = [*panel_layout["annotations"], _key_note(key_lines)]
        return panel_layout | {"annotations": annotations}

    return style.make_figure(map_traces, layout_for)


def _in_line(entry: KeyEntry) -> KeyEntry:
    """Let an entry follow the one before it; a heading, which has no marks, stays at the start."""
    if not entry.marks:
        return entry
    return entry._replace(starts_line=False)


def _without_evidence(turn_groups: Sequence[_PointGroup]) -> list[_PointGroup]:
    """Leave out evidence, which has marks of its own."""
    return [
        (name, group_turns.filter(~pl.col("evidence")), look)
        for name, group_turns, look in turn_groups
    ]


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
    return float(np.interp(np.log10(max(n_drawn_points, 1)), (2.3, 3.8), (5.2, 2.8)))


def _cluster_point_groups(
    plain_turns: pl.DataFrame, colour_kind: str, clusters: Sequence[MapCluster]
) -> list[_PointGroup]:
    """Divide points by cluster; those in none come first, then those without a colour."""
    turns_by_label = dict(style.rows_by_value(plain_turns, "label"))
    loose_turns = plain_turns.filter(pl.col("label") < 0)
    loose_look: style.MarkerLook = {"color": OTHER_TINT}
    if clusters:
        loose_look = _NO_GROUP  # pale, and below all others
    turn_groups = [(f"in no {colour_kind}", loose_turns, loose_look)]
    for cluster in sorted(clusters, key=_colour_then_label):
        group_look = {"color": cluster.colour, "opacity": 0.9}
        cluster_turns = turns_by_label.get(cluster.label, plain_turns.clear())
        turn_groups.append((cluster.name, cluster_turns, group_look))
    return turn_groups


def _colour_then_label(cluster: MapCluster) -> tuple[bool, int]:
    return cluster.has_colour, cluster.label


def _colour_key_entries(
    turns: pl.DataFrame,
    coloured: ClusterColours,
    kind: str,
    names: PlacedNames,
    shape_by_speaker: dict[str, tuple[str, str]],
) -> list[KeyEntry]:
    """Say in the key which clusters have a colour, and what the grey points are."""
    shapes = "".join(shape_mark for shape_mark, _ in shape_by_speaker.values()) or "●"
    n_coloured = [cluster.has_colour for cluster in coloured.clusters].count(True)
    n_others = len(coloured.clusters) - n_coloured
    entries = list[KeyEntry]()
    if n_coloured:
        heading = "in colour"
        if turns["evidence"].any():
            heading = "in colour (stars: the rim)"
        entries.append(KeyEntry("", f"{heading}: {coloured.meaning}", starts_line=True))
    entries += number_key_entries(names.numbered)
    if n_others:
        others_text = f"{n_others:,} other {kind}s"
        if names.n_others:
            others_text += f", {names.n_others:,} of them named"
        entries.append(KeyEntry(shapes, others_text, OTHER_TINT, starts_line=True))
    n_loose = turns.filter(pl.col("label") < 0).height
    if n_loose:
        loose_entry = KeyEntry(shapes, f"in no {kind} ({n_loose:,})", OTHER_TINT, True)
        if coloured.clusters:
            loose_text = f"small: {loose_entry.text}"
            loose_entry = KeyEntry(shapes, loose_text, _NO_GROUP["color"])
        entries.append(loose_entry)
    return entries


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
) -> list[KeyEntry]:
    """Name groups in the key; of many, which are in order, the first and the last."""
    named_groups = [
        KeyEntry("●", group_name, group_look["color"])
        for group_name, group_rows, group_look in turn_groups
        if group_name and (group_rows.height or group_look["color"] in SCALE)
    ]
    if len(named_groups) > len(SCALE) + 2:
        first_group, last_group = named_groups[0], named_groups[-1]
        return [
            first_group._replace(text=f"first: {first_group.text}"),
            last_group._replace(text=f"last: {last_group.text}"),
        ]
    return named_groups


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


def _narrow_bands_of_turns_and_question(
    turns: pl.DataFrame, question: tuple[float, float] | None
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Narrow what is empty between turns and question, along each axis, to a share of its range."""
    question_place = np.empty((0, 2))
    if question is not None:
        question_place = np.array([question], dtype=float)
    all_places = np.vstack([coordinates_of(turns), question_place])
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

    point_places = coordinates_of(drawn_turns).T
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
            contours={"coloring": "lines", "start": 0.1, "end": 0.9, "size": 0.4},
            line={"width": 0.8},
            colorscale=[[0, "#ECECEC"], [1, "#D0D0D0"]],
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
