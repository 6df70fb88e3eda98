"""Which clusters of a map have a colour and a name, and where the names stand."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import NamedTuple

import numpy as np
import polars as pl

from memlab.figures import style
from memlab.figures.label_placement import place_labels
from memlab.figures.map_marks import KeyEntry
from memlab.figures.text_and_glyphs import cut_to_width, escape, text_px, widest_px, wrap

TINTS = {
    "#0072B2": "#004A78",
    "#D55E00": "#AA4B00",
    "#009E73": "#006E50",
    "#CC79A7": "#A0457A",
    "#56B4E9": "#2878A8",
    "#882255": "#882255",
    "#E69F00": "#8F6200",
    "#332288": "#332288",
}
"""Of clusters: colours that lie far apart for colour-blind readers too, and the ink of names."""
OTHER_TINT = "#B4B4B4"
"""Of clusters without a colour of their own."""
_OTHER_INK = "#6A6A6A"
_MOST_NAMES = {"column": len(TINTS), "full": 16}
_LABEL_PX = {"column": 88, "full": 100}
_LABEL_RADII = {"column": tuple(range(0, 42, 3)), "full": tuple(range(0, 78, 4))}
_NUMBER_RADII = tuple(range(0, 40, 2))
_LEADER_PX = 4.0
"""From a name to the nearest point of its cluster: from here on a line joins them."""
_NEAR_PX = 14.0
"""The name of a coloured cluster without a line stands no farther from its points; that of a grey
one has a line from :data:`_LEADER_PX` on, since nothing else ties it to them.
"""
_OWN_NEIGHBOURS = 4
"""Of a grey cluster's points: half of the nearest ones are its own, or no name shows a group."""
_LONGEST_LEADER_PX = 45.0
"""From here on a reader has to search for the end of the line: a number stands instead."""
_MARK_PX = 9.0
"""A line keeps so far from the middle of a mark, and from points of other coloured clusters half.
"""
_COSTS = {"none": 0.3, "other": 0.8, "own": 1.0, "coloured": 4.0}
"""Of covering a point in no cluster, in one without a colour, in the named, in a coloured one."""
_MARK_COST = 60.0
_NUMBER_COST = 6.0
"""Numbers rather stand off than cover a point: by this factor."""
_OTHER_NAME_COST = 3.0
"""A name of a cluster without a colour may cover less by this factor."""
_MOST_COVERED = 2.4
"""Costs of what a name may cover."""
_WHITE_EDGE = "stroke:white;stroke-width:2.5px;paint-order:stroke"
"""Of letters: what lies behind them stays in sight around them."""
_BETWEEN = " · "


class MapCluster(NamedTuple):
    """A cluster of a map.

    :param label: its number.
    :param name: what it is called.
    :param colour: of its points.
    :param ink: of its name.
    """

    label: int
    name: str
    colour: str
    ink: str

    @property
    def has_colour(self) -> bool:
        """Whether it has a colour of its own."""
        return self.colour != OTHER_TINT


class ClusterColours(NamedTuple):
    """The clusters of a map, the most important first.

    :param clusters: those with a colour come first.
    :param meaning: which have one, in words.
    """

    clusters: list[MapCluster]
    meaning: str


class PlacedNames(NamedTuple):
    """Names on a map.

    :param notes: the names and numbers, with ``at``: where they stand, in pixels.
    :param leaders: lines to a point of their cluster: its two ends and its colour.
    :param n_others: how many clusters without a colour are named.
    :param numbered: coloured clusters whose number, from 1, stands in place of the name.
    """

    notes: list[style.Annotation]
    leaders: list[tuple[np.ndarray, str]]
    n_others: int
    numbered: list[MapCluster]


def choose_cluster_colours(
    turns: pl.DataFrame, name_by_label: dict[int, str], kind: str
) -> ClusterColours:
    """Give the clusters that hold evidence or retrieved turns a colour, and the others none.

    First those with most evidence, then those with most retrieved turns, as many as there are
    colours that nobody confuses. Where nothing is marked, the largest clusters have one.

    :param turns: ``label`` (below 0 for none), ``evidence``, ``rank`` and, where there is one,
        ``second``.
    :param kind: what a label is of, such as ``cluster``.
    """
    is_retrieved = pl.col("rank").is_not_null()
    if "second" in turns.columns:
        is_retrieved = is_retrieved | pl.col("second")
    by_label = turns.filter(pl.col("label") >= 0).group_by("label")
    counts = by_label.agg(
        pl.col("evidence").sum(), retrieved=is_retrieved.sum(), size=pl.len()
    ).sort("evidence", "retrieved", "size", "label", descending=[True, True, True, False])
    n_marked = counts.filter(pl.col("evidence") + pl.col("retrieved") > 0).height
    n_coloured = min(n_marked or counts.height, len(TINTS))
    clusters = []
    for place, label in enumerate(counts["label"]):
        colour, ink = OTHER_TINT, _OTHER_INK
        if place < n_coloured:
            colour, ink = list(TINTS.items())[place]
        name = name_by_label.get(label, f"{kind} {label}")
        clusters.append(MapCluster(label, name, colour, ink))
    meaning = f"the {n_coloured} largest {kind}s"
    if n_coloured == counts.height:
        meaning = f"{kind}s"
    elif n_marked:
        what_is_marked = "retrieved turns"
        if turns["evidence"].any():
            what_is_marked = "evidence or retrieved turns"
        number = f"the {n_marked}"
        if n_marked > n_coloured:
            number = f"{n_coloured} of the {n_marked}"
        meaning = f"{number} {kind}s with {what_is_marked}"
    return ClusterColours(clusters, meaning)


class DrawnPoints(NamedTuple):
    """What names must not hide, in pixels.

    :param places: (n, 2) of the points; ``labels`` (n,) are their clusters.
    :param mark_centres: (m, 2).
    :param dot_px: the diameter of a point.
    """

    places: np.ndarray
    labels: np.ndarray
    mark_centres: np.ndarray
    dot_px: float


def place_cluster_names(
    drawn: DrawnPoints,
    clusters: Sequence[MapCluster],
    *,
    plot_area: np.ndarray,
    width_name: style.Width,
) -> PlacedNames:
    """Write names beside their clusters, in the order given, where they cover nothing that counts.

    A coloured cluster whose name finds no room has a number, which the key explains; in a column
    all coloured clusters have numbers where one of their names finds no room, and no others are
    named.
    """
    wanted = [
        cluster
        for cluster in clusters
        if (drawn.labels == cluster.label).any()
        and (cluster.has_colour or _is_visible_group(drawn, cluster))
    ]
    if width_name == "column":
        wanted = [cluster for cluster in wanted if cluster.has_colour]
    label_blocks = [
        _wrap_cluster_name(cluster.name, _LABEL_PX[width_name], bold=cluster.has_colour)
        for cluster in wanted
    ]
    label_boxes = _place_boxes(
        drawn,
        wanted,
        _label_sizes(label_blocks, wanted),
        plot_area=plot_area,
        radii=_LABEL_RADII[width_name],
    )
    leaders = list[np.ndarray | None]()
    n_named = 0
    for number, cluster in enumerate(wanted):
        leader = None
        if not np.isnan(label_boxes[number]).any() and n_named < _MOST_NAMES[width_name]:
            other_boxes = np.delete(label_boxes, number, axis=0)
            near_px = _LEADER_PX
            if cluster.has_colour:
                near_px = _NEAR_PX
            leader = _leader_to_cluster(
                label_boxes[number], drawn, cluster, clusters, other_boxes, near_px=near_px
            )
        n_named += int(leader is not None)
        leaders.append(leader)
    has_room = [leader is not None for leader in leaders]
    if width_name == "column" and not all(has_room):
        has_room = [False] * len(wanted)
    notes = []
    lines = []
    numbered = []
    n_others = 0
    for number, cluster in enumerate(wanted):
        leader = leaders[number]
        if not has_room[number] or leader is None:
            if cluster.has_colour:
                numbered.append(cluster)
            continue
        n_others += int(not cluster.has_colour)
        notes.append(_name_note(label_boxes[number, 0], label_blocks[number], cluster))
        if np.linalg.norm(leader[1] - leader[0]) - drawn.dot_px / 2 > _LEADER_PX:
            lines.append((leader, cluster.ink))
    named_boxes = label_boxes[np.array(has_room, dtype=bool)]
    number_boxes = _place_numbers(drawn, numbered, named_boxes, plot_area)
    for number, (box, cluster) in enumerate(zip(number_boxes, numbered, strict=True), start=1):
        if np.isnan(box).any():
            continue
        notes.append(_name_note(box[0], [str(number)], cluster))
        # A number tells nothing by itself: where every way passes a mark, its line does too.
        for marks_in_way in (drawn, drawn._replace(mark_centres=np.empty((0, 2)))):
            leader = _leader_to_cluster(
                box, marks_in_way, cluster, clusters, label_boxes[:0], near_px=_LEADER_PX
            )
            if leader is not None:
                break
        if leader is not None and (leader[0] != leader[1]).any():
            lines.append((leader, cluster.ink))
    return PlacedNames(notes, lines, n_others, numbered)


def _is_visible_group(drawn: DrawnPoints, cluster: MapCluster) -> bool:
    """Tell whether the points of a cluster lie together, not among those of others."""
    is_own = drawn.labels == cluster.label
    own_places = drawn.places[is_own]
    distances = np.linalg.norm(own_places[:, None] - drawn.places, axis=2)
    # The nearest of each point is itself.
    nearest = np.argsort(distances, axis=1, kind="stable")[:, 1 : _OWN_NEIGHBOURS + 1]
    return bool(is_own[nearest].mean() >= 0.5)


def _label_sizes(
    label_blocks: Sequence[Sequence[str]], clusters: Sequence[MapCluster]
) -> np.ndarray:
    """Give the width and height of names in pixels: (n, 2)."""
    sizes = []
    for label_lines, cluster in zip(label_blocks, clusters, strict=True):
        text_width = widest_px(label_lines, style.SMALL, bold=cluster.has_colour)
        sizes.append((text_width + 4, 11 * len(label_lines) + 2))
    return np.array(sizes, dtype=float).reshape(-1, 2)


def _place_boxes(
    drawn: DrawnPoints,
    clusters: Sequence[MapCluster],
    box_sizes: np.ndarray,
    *,
    plot_area: np.ndarray,
    radii: Sequence[float],
    kept_free: np.ndarray | None = None,
    is_number: bool = False,
) -> np.ndarray:
    """Find places for names or numbers of clusters.

    :param kept_free: (m, 2) pixels that they do not cover, beside the marks.
    :param is_number: whether they are numbers, which stand somewhere in any case.
    :returns: (n, 2, 2) the centre and the size of each; the centre is NaN where there is none.
    """
    anchors = [
        np.median(drawn.places[drawn.labels == cluster.label], axis=0) for cluster in clusters
    ]
    # A mark is as wide as this.
    mark_places = (drawn.mark_centres[:, None] + [*product((-7, 0, 7), repeat=2)]).reshape(-1, 2)
    if kept_free is not None:
        mark_places = np.vstack([mark_places, kept_free])
    weights = _covering_costs(drawn.labels, len(mark_places), clusters)
    most_covered = _MOST_COVERED
    if is_number:
        weights *= _NUMBER_COST
        most_covered = np.inf
    centres = place_labels(
        np.array(anchors).reshape(-1, 2),
        # No point is cut at the edge of a name.
        box_sizes + drawn.dot_px,
        np.vstack([drawn.places, mark_places]),
        area=(plot_area[0], plot_area[1]),
        radii=radii,
        weights=weights,
        most_covered=most_covered,
    )
    return np.stack([centres, box_sizes], axis=1)


def _place_numbers(
    drawn: DrawnPoints,
    numbered: Sequence[MapCluster],
    named_boxes: np.ndarray,
    plot_area: np.ndarray,
) -> np.ndarray:
    """Find a place for the number of each cluster, beside its points: as :func:`_place_boxes`."""
    number_sizes = np.tile([8.0, 11.0], (len(numbered), 1))
    steps = np.linspace(-0.5, 0.5, 7)
    within_box = np.stack(np.meshgrid(steps, steps), axis=-1).reshape(-1, 2)
    free_places = (named_boxes[:, None, 0] + within_box * named_boxes[:, None, 1]).reshape(-1, 2)
    return _place_boxes(
        drawn,
        numbered,
        number_sizes,
        plot_area=plot_area,
        radii=_NUMBER_RADII,
        kept_free=free_places,
        is_number=True,
    )


def _covering_costs(
    turn_labels: np.ndarray, n_mark_places: int, named: Sequence[MapCluster]
) -> np.ndarray:
    """Give what it costs each name to cover each point and each place of a mark."""
    coloured_labels = [cluster.label for cluster in named if cluster.has_colour]
    point_costs = np.where(turn_labels < 0, _COSTS["none"], _COSTS["other"])
    point_costs[np.isin(turn_labels, coloured_labels)] = _COSTS["coloured"]
    costs = np.tile(np.hstack([point_costs, np.full(n_mark_places, _MARK_COST)]), (len(named), 1))
    for number, cluster in enumerate(named):
        costs[number, : len(turn_labels)][turn_labels == cluster.label] = _COSTS["own"]
        if not cluster.has_colour:
            costs[number] *= _OTHER_NAME_COST
    return costs


def _leader_to_cluster(
    label_box: np.ndarray,
    drawn: DrawnPoints,
    cluster: MapCluster,
    clusters: Sequence[MapCluster],
    other_boxes: np.ndarray,
    *,
    near_px: float,
) -> np.ndarray | None:
    """Find a line from a name to a point of its cluster that passes no mark and no other name.

    :param label_box: (2, 2) centre and size of the name; ``other_boxes`` (n, 2, 2) of the others.
    :param near_px: from its cluster to where the name needs no line.
    :returns: (2, 2) the ends of the line, at one place where the name is near its cluster; ``None``
        where there is none and the name is too far from its cluster to stand without.
    """
    label_centre, label_size = label_box
    is_own = drawn.labels == cluster.label
    own_places = drawn.places[is_own]
    edge_places = np.clip(own_places, label_centre - label_size / 2, label_centre + label_size / 2)
    distances = np.linalg.norm(own_places - edge_places, axis=1)
    order = np.argsort(distances, kind="stable")
    if distances[order[0]] <= near_px:
        return np.array([edge_places[order[0]]] * 2)
    coloured_labels = [other.label for other in clusters if other.has_colour]
    is_foreign = ~is_own & np.isin(drawn.labels, coloured_labels)
    keep_away = ((drawn.mark_centres, _MARK_PX), (drawn.places[is_foreign], _MARK_PX / 2))
    for row in order[distances[order] <= _LONGEST_LEADER_PX]:
        line_ends = np.array([edge_places[row], own_places[row]])
        line_places = line_ends[0] + np.linspace(0, 1, 24)[:, None] * (line_ends[1] - line_ends[0])
        from_boxes = np.abs(line_places[:, None] - other_boxes[:, 0])
        is_in_box = (from_boxes < other_boxes[:, 1] / 2).all(axis=2)
        is_near = [
            (np.linalg.norm(line_places[:, None] - places, axis=2) < least_px).any()
            for places, least_px in keep_away
        ]
        if not is_in_box.any() and not any(is_near):
            return line_ends
    return None


def _name_note(
    label_centre: np.ndarray, label_lines: Sequence[str], cluster: MapCluster
) -> style.Annotation:
    """Write a name or a number in the ink of its cluster, with a white edge."""
    edged_lines = []
    for label_line in label_lines:
        line_text = escape(label_line)
        if cluster.has_colour:
            line_text = f"<b>{line_text}</b>"
        edged_lines.append(f"<span style='{_WHITE_EDGE}'>{line_text}</span>")
    return {
        "at": label_centre,
        "text": "<br>".join(edged_lines),
        "font": {"size": style.SMALL, "color": cluster.ink},
        "borderpad": 0,
        "showarrow": False,
    }


def _wrap_cluster_name(cluster_name: str, max_px: int, *, bold: bool) -> list[str]:
    """Write a cluster's name: as many terms as fit on two lines, or one long term on three."""
    name_terms = cluster_name.split(_BETWEEN)
    label_lines = [""]
    for name_term in name_terms:
        longer_line = _BETWEEN.join(filter(None, (label_lines[-1], name_term)))
        if text_px(longer_line, style.SMALL, bold=bold) <= max_px:
            label_lines[-1] = longer_line
        elif len(label_lines) == 1 and label_lines[0]:
            label_lines.append(cut_to_width(name_term, max_px, style.SMALL, bold=bold))
        elif not label_lines[0]:
            label_lines = wrap(name_term, max_px, style.SMALL, lines=3, bold=bold)
        else:
            break
    return label_lines


def number_key_entries(numbered: Sequence[MapCluster]) -> list[KeyEntry]:
    """Give the names of clusters whose number stands on the map."""
    return [
        KeyEntry("●", f"{number} {cluster.name}", cluster.colour)
        for number, cluster in enumerate(numbered, start=1)
    ]
