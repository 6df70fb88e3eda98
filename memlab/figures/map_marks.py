"""What a map marks: the question, its evidence and what was retrieved; and the key of a map."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import polars as pl

from memlab.figures import style
from memlab.figures.text_and_glyphs import cut_to_width, escape, printable_line, text_px
from memlab.system_names import shorten_names_distinctly

SIDE_PX = 8
"""Between the plot and the sides of the picture."""
_NAME_CHARACTERS = 28
"""Of a pipeline's name in the key, where longer names lose their middle."""
_LEAST_RING_PX = 8.0
_BLACK_LINE = {"color": "black", "width": 1}
_STAR: style.MarkerLook = {
    "symbol": "star",
    "size": 10,
    "color": style.EVIDENCE,
    "line": _BLACK_LINE,
}
_QUESTION_LOOK: style.MarkerLook = {
    "symbol": "cross",
    "size": 10,
    "color": "black",
    "line": {"width": 0},
}
_RIM_PX = 4.5
"""Of the line behind a star, of which half lies outside it."""
_STAR_IN_KEY = f"{style.EVIDENCE};stroke:black;stroke-width:0.6px"
_RADII_PX = {"evidence": 9.0, "question": 6.5, "other": 5.5}
"""From the middle of a mark to its farthest corner."""
_GAP_PX = 2.5
"""Between two marks."""
_LEAST_SPREAD = 0.2
"""Of a map along each axis, in its own units: turns at one place would have no scale."""
_PUSHES = 200
_FITS = 4
"""Times that a map is fitted into its frame, which shrinks it where marks were moved outwards."""


class KeyEntry(NamedTuple):
    """A part of the key.

    :param marks: characters that look as the marks do; none for a remark.
    :param text: what they mean.
    :param colour: of the characters.
    :param starts_line: whether a line of the key begins here.
    """

    marks: str
    text: str
    colour: str = "black"
    starts_line: bool = False


_POSITIONS = "A projection: near is similar, axes mean nothing"
_RANKS = "; ranks come from full vectors or words, so a near turn need not be retrieved"
_MOVED = " Overlapping marks are moved apart."


class MapMark(NamedTuple):
    """Points that have one mark.

    :param name: of their trace.
    :param turns: the points.
    :param look: of the mark.
    :param entry: what the key says of it.
    """

    name: str
    turns: pl.DataFrame
    look: style.MarkerLook
    entry: KeyEntry


def describe_positions(turns: pl.DataFrame, *, has_moved: bool) -> str:
    """Say what positions mean, and that ranks do not come from them.

    :param turns: ``rank`` (null where not retrieved).
    :param has_moved: whether marks stand beside the place of their turn.
    """
    said = _POSITIONS
    if turns["rank"].count():
        said += _RANKS
    said += "."
    if has_moved:
        said += _MOVED
    return said


def evidence_rims(
    turn_groups: Sequence[tuple[str, pl.DataFrame, style.MarkerLook]],
    kind: str,
    *,
    scale: float = 1.0,
) -> list[MapMark]:
    """Give the rims of stars, which have the colour that the turn would have without its star.

    :param turn_groups: the name of turns of one look, the turns, of which only ``evidence`` has
        rims, and the look.
    :param kind: what the colours are of, such as ``cluster``.
    :param scale: of the size of the marks.
    """
    rimmed_turns = []
    rim_colours = list[str]()
    for _, group_turns, group_look in turn_groups:
        group_evidence = group_turns.filter("evidence")
        rimmed_turns.append(group_evidence)
        rim_colours += [group_look["color"]] * group_evidence.height
    if not rim_colours:
        return []
    rim_line = {"color": rim_colours, "width": _RIM_PX}
    rim_look = _STAR | {"size": scale * _STAR["size"], "color": rim_colours, "line": rim_line}
    rim_entry = KeyEntry("", f"rim of a star: its {kind}")
    return [MapMark("rim of evidence", pl.concat(rimmed_turns), rim_look, rim_entry)]


def question_mark(question_point: pl.DataFrame, *, scale: float = 1.0) -> MapMark:
    """Give the mark of the question: a black cross; ``scale`` makes it smaller or larger."""
    name = "the question"
    look = _QUESTION_LOOK | {"size": scale * _QUESTION_LOOK["size"]}
    return MapMark(name, question_point, look, KeyEntry("✚", name))


def evidence_marks(
    turns: pl.DataFrame, *, first: str = "", second: str = "", scale: float = 1.0
) -> list[MapMark]:
    """Give the marks of evidence: a star, yellow where it was retrieved, white where it was missed.

    What a second pipeline retrieved has a black triangle on its star.

    :param turns: ``evidence`` (bool), ``rank`` (null where not retrieved) and, where there is a
        second pipeline, ``second`` (bool).
    :param first: the name of the pipeline of ``rank``; ``second`` of the other one.
    :param scale: of the size of the marks.
    """
    first_name, second_name = _pipeline_names(turns, first, second)
    star = _STAR | {"size": scale * _STAR["size"]}
    by_first = ""
    if first_name:
        by_first = f" by {first_name}"
    evidence = turns.filter("evidence")
    is_retrieved = pl.col("rank").is_not_null()
    white_star = star | {"color": "white"}
    badge = {"symbol": "triangle-up", "size": 4.5, "color": "black", "line": {"width": 0}}
    of_second = evidence.clear()
    if second_name:
        of_second = evidence.filter("second")
    return _marks_with_points(
        MapMark(
            "evidence, retrieved",
            evidence.filter(is_retrieved),
            star,
            KeyEntry("★", f"retrieved{by_first}", _STAR_IN_KEY),
        ),
        MapMark(
            "evidence, missed",
            evidence.filter(~is_retrieved),
            white_star,
            KeyEntry("☆", f"missed{by_first}"),
        ),
        MapMark(
            "evidence, retrieved by the second pipeline",
            of_second,
            badge,
            KeyEntry("▲", f"on a star: by {second_name}"),
        ),
    )


def other_marks(
    turns: pl.DataFrame,
    *,
    first: str = "",
    second: str = "",
    dot_px: float = 0.0,
    scale: float = 1.0,
) -> list[MapMark]:
    """Give the marks of what was retrieved and is no evidence, and of what is selected.

    A ring is of the first pipeline; with a second one, a triangle is of that alone, and a square of
    both.

    :param turns: as for :func:`evidence_marks`; ``selected`` (bool) where turns are selected.
    :param dot_px: the diameter of the points that rings go around.
    :param scale: of the size of the marks.
    """
    first_name, second_name = _pipeline_names(turns, first, second)
    no_evidence = ", no evidence"
    if not turns["evidence"].any():
        no_evidence = ""
    ring_px = scale * ring_diameter_px(dot_px)
    black_line = {"width": 1.4}
    ring = {"symbol": "circle-open", "size": ring_px, "color": "black", "line": black_line}
    selected_turns = turns.clear()
    if "selected" in turns.columns:
        selected_turns = turns.filter("selected")
    diamond = {"symbol": "diamond-open", "size": 8, "color": style.GREY, "line": {"width": 1.2}}
    selected = MapMark("selected", selected_turns, diamond, KeyEntry("◇", "selected"))
    others = turns.filter(~pl.col("evidence"))
    by_first = pl.col("rank").is_not_null()
    if not second_name:
        said_by = ""
        if first_name:
            said_by = f" by {first_name}"
        ring_entry = KeyEntry("○", f"retrieved{said_by}{no_evidence}")
        ring_mark = MapMark(f"retrieved{no_evidence}", others.filter(by_first), ring, ring_entry)
        return _marks_with_points(ring_mark, selected)
    triangle = {
        "symbol": "triangle-up-open",
        "size": ring_px + 2,
        "color": "black",
        "line": black_line,
    }
    square = ring | {"symbol": "square-open"}
    by_second = pl.col("second")
    return _marks_with_points(
        MapMark(
            f"retrieved by the first pipeline alone{no_evidence}",
            others.filter(by_first & ~by_second),
            ring,
            KeyEntry("○", f"{first_name} alone"),
        ),
        MapMark(
            f"retrieved by both{no_evidence}",
            others.filter(by_first & by_second),
            square,
            KeyEntry("□", "both"),
        ),
        MapMark(
            f"retrieved by the second pipeline alone{no_evidence}",
            others.filter(~by_first & by_second),
            triangle,
            KeyEntry("△", f"{second_name} alone"),
        ),
        selected,
    )


def _marks_with_points(*marks: MapMark) -> list[MapMark]:
    """Give marks that have points, whose number the key says."""
    counted_marks = []
    for mark in marks:
        if mark.turns.height:
            counted_text = f"{mark.entry.text} ({mark.turns.height:,})"
            counted_marks.append(mark._replace(entry=mark.entry._replace(text=counted_text)))
    return counted_marks


def mark_key_entries(
    question: Sequence[MapMark],
    evidence: Sequence[MapMark],
    others: Sequence[MapMark],
    rims: Sequence[MapMark] = (),
) -> list[KeyEntry]:
    """Say in the key what marks mean: of the question, of evidence, and :func:`other_marks`."""
    entries = [mark.entry for mark in question]
    if evidence:
        entries += [KeyEntry("", "evidence:"), *(mark.entry for mark in [*evidence, *rims])]
    if any(mark.name.startswith("retrieved by ") for mark in others):
        heading = "retrieved:"
        if evidence:
            heading = "retrieved, no evidence:"
        entries.append(KeyEntry("", heading, starts_line=True))
    return entries + [mark.entry for mark in others]


def describe_retrieved_evidence(turns: pl.DataFrame, *, first: str = "", second: str = "") -> str:
    """Say how much of the evidence each pipeline retrieved; nothing without evidence or names."""
    first_name, second_name = _pipeline_names(turns, first, second)
    evidence = turns.filter("evidence")
    if not first or evidence.is_empty():
        return ""
    n_first = evidence["rank"].count()
    found = f"Evidence retrieved: {first_name} {n_first:,} of {evidence.height:,}"
    if second_name:
        found += f", {second_name} {evidence['second'].sum():,} of {evidence.height:,}"
    return found


def has_second_pipeline(turns: pl.DataFrame) -> bool:
    """Tell whether a second pipeline retrieved any turn."""
    return "second" in turns.columns and bool(turns["second"].any())


def _pipeline_names(turns: pl.DataFrame, first: str, second: str) -> tuple[str, str]:
    """Give the names of two pipelines for the key; that of the second is empty without one."""
    if not has_second_pipeline(turns):
        return _short_names(first)[0], ""
    first_name, second_name = _short_names(
        first or "the first pipeline", second or "the second pipeline"
    )
    return first_name, second_name


def _short_names(*pipeline_names: str) -> list[str]:
    lines = list(map(printable_line, pipeline_names))
    short_by_name = shorten_names_distinctly(lines, width=_NAME_CHARACTERS)
    return [short_by_name[line] for line in lines]


def ring_diameter_px(dot_px: float) -> float:
    """Give the diameter of a ring around a point in pixels: the corners of a square show in it."""
    return max(_LEAST_RING_PX, math.sqrt(2) * dot_px + 3)


def coordinates_of(turns: pl.DataFrame) -> np.ndarray:
    """Give where turns lie: (n, 2)."""
    return turns.select("x", "y").to_numpy()


def fit_scale_and_lower_corner(
    low_corner: np.ndarray, high_corner: np.ndarray, plot_area: np.ndarray, *, margin_px: int
) -> tuple[float, np.ndarray]:
    """Fit coordinates into a plot, with one scale for both axes.

    :param margin_px: what stays free within the plot, both sides together.
    :returns: pixels of a unit, and the coordinates of the lower left corner of the plot.
    """
    spread = np.maximum(high_corner - low_corner, _LEAST_SPREAD)
    px_per_unit = float(((plot_area - margin_px) / spread).min())
    middle = (low_corner + high_corner) / 2
    return px_per_unit, middle - plot_area / px_per_unit / 2


def move_marked_turns_apart(
    turns: pl.DataFrame,
    question_point: pl.DataFrame,
    plot_area: np.ndarray,
    *,
    margin_px: int,
    scale: float = 1.0,
) -> pl.DataFrame:
    """Move evidence and what was retrieved away from each other and from the question.

    Turns move with their marks, by no more than is needed to tell the marks apart.

    :param plot_area: of a map in a column, where marks are nearest to each other.
    :param scale: of the size of the marks.
    """
    is_marked = pl.col("evidence") | pl.col("rank").is_not_null()
    if "second" in turns.columns:
        is_marked = is_marked | pl.col("second")
    marked_rows = turns.select(is_marked.arg_true()).to_series().to_numpy()
    mark_kind = pl.when("evidence").then(pl.lit("evidence")).otherwise(pl.lit("other"))
    kinds = turns.select(mark_kind.alias("kind"))["kind"].gather(marked_rows).to_list()
    kinds += ["question"] * question_point.height
    radii = scale * np.array([_RADII_PX[kind] + _GAP_PX / 2 for kind in kinds])
    turn_places = coordinates_of(turns).copy()
    question_places = coordinates_of(question_point)
    has_moved = False
    for _ in range(_FITS):
        all_places = np.vstack([turn_places, question_places])
        px_per_unit, lower_corner = fit_scale_and_lower_corner(
            all_places.min(axis=0), all_places.max(axis=0), plot_area, margin_px=margin_px
        )
        marked_places = (turn_places[marked_rows] - lower_corner) * px_per_unit
        pushed_places = _push_apart(
            marked_places, (question_places - lower_corner) * px_per_unit, radii
        )
        if np.array_equal(pushed_places, marked_places):
            break
        has_moved = True
        turn_places[marked_rows] = pushed_places / px_per_unit + lower_corner
    if not has_moved:
        return turns
    return turns.with_columns(x=pl.Series(turn_places[:, 0]), y=pl.Series(turn_places[:, 1]))


def _push_apart(
    marked_places: np.ndarray, fixed_places: np.ndarray, radii: np.ndarray
) -> np.ndarray:
    """Push places in pixels apart until nothing of their marks overlaps.

    :param fixed_places: what stays where it is.
    :param radii: of the marks and the room around them, then of what stays.
    """
    least_apart = radii[: len(marked_places), None] + radii
    # Two at one place leave it in a direction of their own.
    turned_by = np.arange(len(marked_places)) * 2.4
    own_ways = np.column_stack([np.cos(turned_by), np.sin(turned_by)])
    pushed_places = marked_places
    for _ in range(_PUSHES):
        between = pushed_places[:, None] - np.vstack([pushed_places, fixed_places])
        distances = np.linalg.norm(between, axis=2)
        ways = np.where(
            distances[:, :, None] > 1e-6,
            between / np.maximum(distances, 1e-6)[:, :, None],
            own_ways[:, None],
        )
        lacking = least_apart - distances
        # Less than this is not seen, and pushing a crowd apart would never end.
        lacking[lacking < 0.25] = 0.0
        np.fill_diagonal(lacking, 0)
        if not lacking.any():
            break
        pushed_places = pushed_places + (ways * lacking[:, :, None]).sum(axis=1) / 2
    return pushed_places


def speaker_key_entries(
    turns: pl.DataFrame, shape_by_speaker: dict[str, tuple[str, str]]
) -> list[KeyEntry]:
    """Name the shapes of speakers in the key, with how many turns each has."""
    if not shape_by_speaker:
        return []
    n_turns = dict(turns["speaker"].fill_null("").value_counts().iter_rows())
    entries = []
    for speaker, (shape_mark, _) in shape_by_speaker.items():
        name = printable_line(speaker) or "nobody"
        entries.append(KeyEntry(shape_mark, f"{name} ({n_turns[speaker]:,})", style.GREY))
    entries[0] = entries[0]._replace(starts_line=True)
    return entries


def wrap_key_entries(entries: Sequence[KeyEntry], picture_px: int) -> list[str]:
    """Give the key, whose marks have their colours, in as many lines as it needs."""
    line_px = picture_px - 2 * SIDE_PX
    key_lines = [""]
    taken_px = 0.0
    for entry in entries:
        marks_px = text_px(f"{entry.marks} ", style.SMALL)
        entry_text = cut_to_width(entry.text, line_px - marks_px, style.SMALL)
        entry_px = marks_px + text_px(entry_text, style.SMALL) + 12
        if key_lines[-1] and (entry.starts_line or taken_px + entry_px > line_px + 12):
            key_lines.append("")
            taken_px = 0.0
        entry_markup = escape(entry_text)
        if entry.marks:
            entry_markup = f"<span style='color:{entry.colour}'>{entry.marks}</span> {entry_markup}"
        if key_lines[-1]:
            entry_markup = f"   {entry_markup}"
        key_lines[-1] += entry_markup
        taken_px += entry_px
    return key_lines
