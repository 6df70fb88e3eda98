"""One look for every chart: palette, fonts, template, and layouts at the two widths of a paper.

A figure is drawn for print: 336 px are 3.5 in (a column) and 672 px are 7 in (a page), so a font of
10 px is 7.5 pt at either width. What must change with the width (where labels sit, how long a
snippet is) a chart says through :func:`make_figure`; :func:`copy_for_width` gives the figure at one
width. Nothing is registered with plotly: a notebook's own figures keep their look.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cache, wraps
from typing import Any, Literal, ParamSpec

import numpy as np
import plotly.graph_objects as go
import polars as pl

from memlab.errors import DataError
from memlab.figures.text_and_glyphs import FAMILY, escape, printable_line, widest_px, wrap
from memlab.system_names import shorten_names_distinctly

Annotation = dict[str, Any]
"""A text in a picture with its place, as plotly takes it."""
AxisLayout = dict[str, Any]
"""What plotly takes about an axis."""
FigureLayout = dict[str, Any]
"""What plotly takes about a figure at one width: its height, margins, axes, annotations."""
Panel = dict[str, Any]
"""``head``, ``xaxis`` and ``yaxis`` of one of several plots of a figure."""
MarkerLook = dict[str, Any]
"""Symbol, size, colour and line of a mark, as plotly takes them."""
_Arguments = ParamSpec("_Arguments")
Width = Literal["column", "full"]
WIDTHS: dict[Width, int] = {"column": 336, "full": 672}
TALLEST_PX = 432
"""Pixels that a picture at column width takes down the page at most: 4.5 in."""

PALETTE = (
    "#0072B2",
    "#D55E00",
    "#009E73",
    "#CC79A7",
    "#E69F00",
    "#56B4E9",
    "#000000",
    "#882255",
)
"""Okabe and Ito's colours (2008) without yellow, which a white page swallows, and Tol's wine."""
EVIDENCE = "#F0E442"
EVIDENCE_INK = "#D4B800"
"""The yellow of evidence as a mark beside text, where it has no black line around it."""
"""Okabe and Ito's yellow, always with a black edge: evidence, and nothing else, in every chart."""
SYMBOLS = ("circle", "square", "diamond", "cross", "triangle-up", "x", "triangle-down", "pentagon")
SHAPES = "●■◆✚▲✖▼⬟"
OPEN_SHAPES = "○□◇✛△✕▽⬠"
"""The same where colour and filling of a mark say something else than its series."""
DASHES = (
    "dot",
    "dashdot",
    "longdash",
    "solid",
    "dash",
    "longdashdot",
    "dashdotdot",
    "longdashdash",
    "3px,2px",
    "11px,2px,3px,2px",
    "18px,2.5px",
    "26px,2px",
    "9px,2.5px",
    "19px,2px,3px,2px",
    "11px,2px,3px,2px,3px,2px",
    "17px,2px,7px,2px",
)
"""A pattern for each colour, and longer ones of the same patterns for the second round of colours.

With the shapes of the marks they keep lines apart in grey print.
"""
DASH_LENGTHS = {
    "dash": "6px,2.5px",
    "dot": "2px,2px",
    "dashdot": "8px,2px,2px,2px",
    "longdash": "13px,2.5px",
    "longdashdot": "15px,2px,2px,2px",
    "dashdotdot": "8px,2px,2px,2px,2px,2px",
    "longdashdash": "13px,2px,5px,2px",
}
"""Pixels of each dash and gap. In plotly's own gaps, as long as the dashes, a mark of a short line
would stand alone.
"""
_USUAL_NUMBERS = {
    "bm25": 0,
    "dense": 1,
    "hybrid": 2,
    "best": 3,
    "best | learned": 4,
    "combsum": 5,
}
"""Of the pipelines that most figures show, so that they look the same in every notebook."""
_number_by_name: dict[str, int] = {}
"""The number of each series that this process has drawn, for :func:`assign_series_numbers`."""
SPEAKER_TINTS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7")
"""Colours of the four who say most; all others are grey."""
SCALE = ("#C3DBEC", "#8CBBDC", "#4F9BC9", "#0072B2", "#004A75", "#002A45")
"""From low to high, or from earlier to later."""
_LIGHTNESS = (0.63, 0.77)
_CHROMA = (0.075, 0.135)
_FROM_LAB = np.array(
    [
        [1.0, 0.3963377774, 0.2158037573],
        [1.0, -0.1055613458, -0.0638541728],
        [1.0, -0.0894841775, -1.2914855480],
    ]
)
_TO_RGB = np.array(
    [
        [4.0767416621, -3.3077115913, 0.2309699292],
        [-1.2684380046, 2.6097574011, -0.3413193965],
        [-0.0041960863, -0.7034186147, 1.7076147010],
    ]
)
INK = "#222222"
GREY = "#767676"
NOISE = "#C4C4C4"
RULE = "#E6E6E6"
FONT = f"{FAMILY}, Arial, Helvetica, DejaVu Sans, sans-serif"
TEXT = 10
SMALL = 9
NOTHING_TO_DRAW = "No picture: the table behind it has no rows."
LEGEND_ROW_PX = 19
_LEGEND_SYMBOL_PX = 61
_ROOM_ABOVE = 1.02
"""Of the highest mark and of the highest tick, as the end of an axis of shares."""
_SHARE_STEPS = (0.2, 0.1, 0.05, 0.02, 0.01)
"""From tick to tick of an axis of shares."""
_NAME_PX = 240
_REMARK_AT_END = re.compile(r"(.* \([^()]*)\)")
"""A name that ends with a remark in brackets; brackets of a call follow their name at once."""
_WIDTHS_KEY = "memlab_widths"
_PROVENANCE_KEY = "memlab_provenance"
_OF_SOURCES = "question_sources"
"""The column that says who wrote the questions, :data:`memlab.question_source_labels.COLUMN`."""


@cache
def template() -> go.layout.Template:
    """Give the plotly template of memlab: white ground, hairline axes, small type.

    >>> from memlab.figures import style
    >>> style.template().layout.colorway[0]
    '#0072B2'
    """
    axis_style = {
        "showgrid": True,
        "gridcolor": RULE,
        "gridwidth": 0.6,
        "zeroline": False,
        "linecolor": GREY,
        "linewidth": 0.8,
        "showline": True,
        "ticks": "outside",
        "ticklen": 3,
        "tickwidth": 0.8,
        "tickcolor": GREY,
        "tickfont": {"size": SMALL},
        "title": {"font": {"size": TEXT}, "standoff": 4},
        "automargin": False,
    }
    return go.layout.Template(
        layout={
            "font": {"family": FONT, "size": TEXT, "color": INK},
            "colorway": list(PALETTE),
            "paper_bgcolor": "white",
            "plot_bgcolor": "white",
            "xaxis": axis_style,
            "yaxis": axis_style,
            "margin": {"l": 44, "r": 12, "t": 12, "b": 36, "pad": 0, "autoexpand": False},
            "legend": {
                "font": {"size": SMALL},
                "bgcolor": "rgba(0,0,0,0)",
                "itemwidth": 45,  # three dashes of the longest sort with the gaps between
                "tracegroupgap": 0,
            },
            "hoverlabel": {"font": {"family": FONT, "size": 11}, "align": "left"},
            "annotationdefaults": {"font": {"size": SMALL}, "showarrow": False},
            "bargap": 0.25,
        }
    )


def colour(series_number: int) -> str:
    """Give the colour of the i-th series; the order is fixed and repeats after eight."""
    return PALETTE[series_number % len(PALETTE)]


def symbol(series_number: int) -> str:
    """Give the shape of the i-th series: that of its colour, another one from the third round on.

    The first round is that of the usual systems, the second that of all others.
    """
    round_number, place = divmod(series_number, len(PALETTE))
    return SYMBOLS[(place + max(round_number - 1, 0)) % len(SYMBOLS)]


def dash(series_number: int) -> str:
    """Give the dash of the line of the i-th series: that of its colour, like its shape.

    Different numbers of the first two rounds have different dashes: those of the usual systems and
    of the others beside them.
    """
    round_number, place = divmod(series_number, len(PALETTE))
    pattern_number = (place - 2 * max(round_number - 1, 0)) % len(PALETTE)
    return DASHES[pattern_number + len(PALETTE) * min(round_number, 1)]


def rgba_colour(hex_colour: str, alpha: float) -> str:
    """Give a colour with an opacity.

    >>> from memlab.figures.style import rgba_colour
    >>> rgba_colour("#0072B2", 0.2)
    'rgba(0,114,178,0.2)'
    """
    red, green, blue = (
        int(hex_colour[channel_start : channel_start + 2], 16) for channel_start in (1, 3, 5)
    )
    return f"rgba({red},{green},{blue},{alpha:g})"


def darken_colour(hex_colour: str, share: float = 0.3) -> str:
    """Mix a colour with black, so that it can carry text on white."""
    channels = (
        round(int(hex_colour[channel_start : channel_start + 2], 16) * (1 - share))
        for channel_start in (1, 3, 5)
    )
    return "#" + "".join(f"{channel:02X}" for channel in channels)


def position_colours(places: np.ndarray, all_places: np.ndarray) -> list[str]:
    """Give each place of a map a soft colour, so that neighbours look similar and islands differ.

    The hue is the direction from the middle of the frame; a colour is paler and stronger the
    farther out it lies. A place keeps its colour whatever else is on the map. The colours are
    Oklab's, where equal steps look equal.

    :param places: (n, 2) coordinates, such as the middles of clusters.
    :param all_places: (m, 2) coordinates of all that is on the map.
    :returns: n colours as ``#RRGGBB``.

    Ottosson, "A perceptual color space for image processing", 2020.

    >>> import numpy as np
    >>> from memlab.figures.style import position_colours
    >>> corners = np.array([[-1.0, -1.0], [1.0, 1.0], [0.99, 1.0]])
    >>> left, right, near = position_colours(corners, corners)
    >>> left == right
    False
    """
    low_corner = all_places.min(axis=0)
    high_corner = all_places.max(axis=0)
    outward = (places - (low_corner + high_corner) / 2) / np.maximum(
        (high_corner - low_corner) / 2, 1e-9
    )
    angles = np.arctan2(outward[:, 1], outward[:, 0])
    distances = np.minimum(np.linalg.norm(outward, axis=1), 1.0)
    lightness = np.interp(distances, (0, 1), _LIGHTNESS)
    chroma = np.interp(distances, (0, 1), _CHROMA)
    lab_colours = np.column_stack([lightness, chroma * np.cos(angles), chroma * np.sin(angles)])
    linear_rgb = np.clip((lab_colours @ _FROM_LAB.T) ** 3 @ _TO_RGB.T, 0.0, 1.0)
    curved_rgb = np.where(
        linear_rgb > 0.0031308, 1.055 * linear_rgb ** (1 / 2.4) - 0.055, 12.92 * linear_rgb
    )
    return [
        "#" + bytes(rgb_row).hex().upper()
        for rgb_row in np.round(curved_rgb * 255).astype(np.uint8)
    ]


def scale_colours(n: int) -> list[str]:
    """Give n colours from the pale to the dark end of :data:`SCALE`.

    >>> from memlab.figures.style import scale_colours
    >>> scale_colours(2)
    ['#C3DBEC', '#002A45']
    """
    scale_stops = np.array(
        [
            [int(scale_tint[channel_start : channel_start + 2], 16) for channel_start in (1, 3, 5)]
            for scale_tint in SCALE
        ]
    )
    stop_places = np.linspace(0, len(SCALE) - 1, n)
    mixed_channels = [
        np.interp(stop_places, range(len(SCALE)), channel) for channel in scale_stops.T
    ]
    rgb_rows = np.round(np.column_stack(mixed_channels)).astype(np.uint8)
    return ["#" + bytes(rgb_row).hex().upper() for rgb_row in rgb_rows]


def check_columns(frame: pl.DataFrame, columns: Iterable[str], chart: str) -> None:
    """Check that a frame has what a chart draws.

    :raises DataError: when a column is missing.
    :raises NothingToDrawError: when there are no rows; a chart that is :func:`sentence_if_empty`
        gives a sentence then.
    """
    missing_columns = [column for column in columns if column not in frame.columns]
    if missing_columns:
        raise DataError(
            f"{chart} needs the column(s) {', '.join(missing_columns)}; "
            f"the frame has {', '.join(frame.columns)}"
        )
    if frame.is_empty():
        raise NothingToDrawError(
            f"{chart} has nothing to draw: the frame has no rows; check the filter that made it"
        )


class NothingToDrawError(DataError):
    """A chart was given a frame without rows."""


def sentence_if_empty(chart: Callable[_Arguments, go.Figure]) -> Callable[_Arguments, go.Figure]:
    """Let a chart function give a sentence in place of its picture where it has nothing to draw.

    Data with few questions leave some of the figures of a notebook without rows, and the others are
    still wanted. Where the questions of the frame were proposed by a model, a line below says so.
    """

    @wraps(chart)
    def drawn(*given: _Arguments.args, **options: _Arguments.kwargs) -> go.Figure:
        try:
            chart_figure = chart(*given, **options)
        except NothingToDrawError:
            return sentence_figure(NOTHING_TO_DRAW)
        first_argument = next(iter((*given, *options.values())), None)
        if isinstance(first_argument, pl.DataFrame) and _OF_SOURCES in first_argument.columns:
            # Imported where it is needed: an import of the figures stays small.
            from memlab.question_source_labels import question_sources_note_or_empty

            write_note_below(chart_figure, question_sources_note_or_empty(first_argument))
        return chart_figure

    return drawn


def write_note_below(figure: go.Figure, note: str) -> None:
    """Write a note below all else of a figure that :func:`make_figure` made, at each width."""
    if not note:
        return
    layouts = {
        paper_width: add_note_to_layout(
            figure.layout.meta[_WIDTHS_KEY][paper_width], note, picture_px=width_px
        )
        for paper_width, width_px in WIDTHS.items()
    }
    figure.layout.meta = {**figure.layout.meta, _WIDTHS_KEY: layouts}
    figure.layout.annotations = ()
    figure.update_layout(layouts["full"])


def add_note_to_layout(own_layout: FigureLayout, note: str, *, picture_px: int) -> FigureLayout:
    """Give a layout with a note below all else, or as it is where there is none."""
    if not note:
        return own_layout
    note_lines = wrap(note, picture_px - 20, SMALL, lines=4)
    note_height = 12 * len(note_lines) + 4
    new_margin = dict(own_layout["margin"])
    new_margin["b"] += note_height
    note_text = text_annotation(
        join_lines(note_lines),
        0,
        0,
        "left bottom",
        align="left",
        xshift=8 - new_margin["l"],
        yshift=4 - new_margin["b"],
        font={"size": SMALL, "color": GREY},
    )
    return {
        **own_layout,
        "height": own_layout["height"] + note_height,
        "margin": new_margin,
        "annotations": [*own_layout["annotations"], note_text],
    }


def sentence_figure(sentence: str) -> go.Figure:
    """Give a figure that is a sentence, at both widths of a paper."""

    def layout_for(px: int) -> FigureLayout:
        sentence_lines = wrap(sentence, px - 20, TEXT)
        sentence_note = text_annotation(
            join_lines(sentence_lines), 0, 0.5, "left middle", align="left"
        )
        hidden_axis = {"visible": False}
        return layout(
            px,
            plot_px=14 * len(sentence_lines),
            left=10,
            right=10,
            bottom=10,
            annotations=[sentence_note],
            xaxis=hidden_axis,
            yaxis=hidden_axis,
        )

    return make_figure([go.Scatter(x=[None], y=[None], showlegend=False)], layout_for)


def distinct_values(frame: pl.DataFrame, column: str) -> list[Any]:
    """Give the distinct values of a column in order of first appearance: that of the colours."""
    return frame[column].unique(maintain_order=True).to_list()


def rows_by_value(frame: pl.DataFrame, column: str) -> list[tuple[Any, pl.DataFrame]]:
    """Give each distinct value of a column with its rows, ordered as :func:`distinct_values`."""
    return [
        (column_value, value_rows)
        for (column_value,), value_rows in frame.group_by(column, maintain_order=True)
    ]


def shorten_names(frame: pl.DataFrame, column: str) -> pl.DataFrame:
    """Cut the middle out of long names of systems, which mostly differ at their ends."""
    return frame.with_columns(
        pl.col(column).replace(shorten_names_distinctly(frame[column].to_list(), width=48))
    )


def series_symbols(frame: pl.DataFrame, column: str) -> dict[Any, str]:
    """Give each value of a column its shape, in order of first appearance.

    :raises DataError: when there are more values than shapes.
    """
    series_names = distinct_values(frame, column)
    if len(series_names) > len(SYMBOLS):
        raise DataError(
            f"{len(series_names)} series, and {len(SYMBOLS)} shapes to tell them apart: "
            "draw fewer at a time"
        )
    return dict(zip(series_names, SYMBOLS, strict=False))


def assign_series_numbers(names: Iterable[object]) -> dict[Any, int]:
    """Give each series of a figure the number of its colour, shape and dash, the same in all.

    A name keeps its number for as long as the process lives, so that a system looks the same in
    every figure of a notebook. A new name takes a number whose colour and shape no other series of
    the figure has, as far as there is one, or else a colour with another shape. Where names that
    are known from different figures share a colour, the later one has another in this figure.

    >>> from memlab.figures.style import assign_series_numbers
    >>> first_figure = assign_series_numbers(["bm25", "dense"])
    >>> next_figure = assign_series_numbers(["dense", "theirs"])
    >>> next_figure["dense"] == first_figure["dense"]
    True
    """
    distinct_names = list(dict.fromkeys(names))
    number_by_name = dict[Any, int]()
    for name in distinct_names:
        known_number = _number_by_name.get(str(name))
        if known_number is None:
            continue
        used_colours = {colour(number) for number in number_by_name.values()}
        if colour(known_number) not in used_colours or (
            len(distinct_names) > len(PALETTE) and known_number not in number_by_name.values()
        ):
            number_by_name[name] = known_number
    for name in distinct_names:
        if name not in number_by_name:
            number_by_name[name] = _choose_series_number(str(name), number_by_name.values())
            _number_by_name.setdefault(str(name), number_by_name[name])
    return {name: number_by_name[name] for name in distinct_names}


def _choose_series_number(series_name: str, figure_numbers: Collection[int]) -> int:
    """Choose the number of a new series, beside those that its figure has."""
    taken_numbers = {*_number_by_name.values(), *figure_numbers}
    used_colours = {colour(number) for number in figure_numbers}
    used_symbols = {symbol(number) for number in figure_numbers}
    used_looks = {(colour(number), symbol(number)) for number in figure_numbers}
    # So many differ in colour or shape, those of the first two rounds in colour alone; the looks of
    # the usual systems are the last to be given away.
    n_looks = len(PALETTE) * (len(SYMBOLS) + 1)
    all_numbers = [*range(len(PALETTE), n_looks), *range(len(PALETTE))]
    free_numbers = [number for number in all_numbers if number not in taken_numbers]
    if _USUAL_NUMBERS.get(series_name) in free_numbers:
        return _USUAL_NUMBERS[series_name]
    unused_here = [number for number in all_numbers if number not in figure_numbers]
    used_in_grey = {(symbol(number), dash(number)) for number in figure_numbers}
    for number in free_numbers:
        if colour(number) not in used_colours and symbol(number) not in used_symbols:
            return number
    for number in (*free_numbers, *unused_here):
        in_grey = (symbol(number), dash(number))
        if colour(number) not in used_colours and in_grey not in used_in_grey:
            return number
    for number in (*free_numbers, *unused_here):
        if colour(number) not in used_colours:
            return number
    for number in (*free_numbers, *unused_here):
        if (colour(number), symbol(number)) not in used_looks:
            return number
    return max(figure_numbers) + 1


def legend_name(name: object) -> str:
    """Give the name of a series as the legend draws it: a long one on two lines."""
    return join_lines(wrap(name, _NAME_PX, SMALL))


def join_lines(lines: Iterable[str]) -> str:
    """Escape lines of text and put them under each other."""
    return "<br>".join(map(escape, lines))


def format_count_range(counts: pl.Series) -> str:
    """Write a number of questions, or the range of several."""
    return "–".join(dict.fromkeys(f"{count:,}" for count in counts.sort().gather([0, -1])))


def share_axis(highest_share: float) -> AxisLayout:
    """Give an axis of shares from 0 to the first tick above the highest.

    >>> from memlab.figures import style
    >>> style.share_axis(0.9)
    {'range': [0, 1.02], 'dtick': 0.2}
    """
    tick_step = _SHARE_STEPS[0]
    for finer_step in _SHARE_STEPS:
        if highest_share <= 5 * finer_step:
            tick_step = finer_step
    highest_tick = min(1.0, math.ceil(highest_share * _ROOM_ABOVE / tick_step) * tick_step)
    return {"range": [0, highest_tick * _ROOM_ABOVE], "dtick": tick_step}


def name_with_count(name: str, count_text: str) -> str:
    """Write the n of a series or row behind its name, in the bracket that the name ends with.

    >>> from memlab.figures import style
    >>> style.name_with_count("best + weeks (4 memories)", "291")
    'best + weeks (4 memories, n = 291)'
    >>> style.name_with_count("best", "291")
    'best (n = 291)'
    """
    bracketed = _REMARK_AT_END.fullmatch(name)
    if bracketed:
        return f"{bracketed[1]}, n = {count_text})"
    return f"{name} (n = {count_text})"


def text_annotation(
    text: str, x: float, y: float, anchor: str = "left top", **own: Any
) -> Annotation:
    """Give a text in the plot, at shares of its width and height; ``own`` may name other axes.

    :param anchor: which corner of the text stands there.
    """
    xanchor, yanchor = anchor.split()
    note_place = {
        "x": x,
        "xref": "paper",
        "xanchor": xanchor,
        "y": y,
        "yref": "paper",
        "yanchor": yanchor,
    }
    return {"text": text, "showarrow": False, "borderpad": 0, **note_place, **own}


def legend_below_plot(series_names: Sequence[str], picture_px: int) -> tuple[FigureLayout, int]:
    """Give a legend under the plot, and the height that it takes.

    It has as many columns as its longest name allows, or none where names of different lengths take
    fewer rows so.
    """
    room_px = picture_px - 40
    name_blocks = [wrap(series_name, _NAME_PX, SMALL) for series_name in series_names]
    entry_widths = [
        widest_px(name_block, SMALL) + _LEGEND_SYMBOL_PX + 4 for name_block in name_blocks
    ]
    columns = max(1, min(len(series_names), int(room_px // max(entry_widths))))
    legend_rows = [
        name_blocks[first_entry : first_entry + columns]
        for first_entry in range(0, len(name_blocks), columns)
    ]
    legend_width = {
        "entrywidth": room_px / columns - _LEGEND_SYMBOL_PX,
        "entrywidthmode": "pixels",
        "traceorder": "normal",
    }
    flowing_rows = list[list[list[str]]]()
    left_px = 0.0
    for entry_px, name_block in zip(entry_widths, name_blocks, strict=True):
        if entry_px > left_px:
            flowing_rows.append([])
            left_px = room_px
        flowing_rows[-1].append(name_block)
        left_px -= entry_px
    if len(flowing_rows) < len(legend_rows):
        # plotly gives groups, and nothing else, the width of their own names.
        legend_rows = flowing_rows
        legend_width = {"entrywidth": 0, "traceorder": "grouped"}
    legend_px = 10
    for legend_row in legend_rows:
        legend_px += LEGEND_ROW_PX
        if max(map(len, legend_row)) > 1:
            legend_px += 8
    return {**legend_width, "orientation": "h"}, legend_px


def layout(
    px: int,
    *,
    plot_px: float,
    title: str = "",
    names: Sequence[str] = (),
    head_px: int = 0,
    left: float = 42,
    right: float = 12,
    bottom: int = 36,
    **own: Any,
) -> FigureLayout:
    """Give the layout of a picture: a title, a plot, its axis, and below the names of its series.

    :param px: width of the picture.
    :param plot_px: height of the plot.
    :param names: of the series, where there is a legend.
    :param head_px: room between title and plot.
    :param bottom: room for the axis; the legend stands below it.
    :param own: what else plotly takes; ``annotations`` are added to those made here.
    """
    title_lines = wrap(title, px - 16, 11, lines=3, bold=True)
    top_px = 10 + 14 * len(title_lines) + head_px
    title_notes = []
    if title_lines:
        # plotly cuts off the first line of a title that has two; an annotation keeps both.
        title_notes.append(
            text_annotation(
                "<br>".join(f"<b>{escape(title_line)}</b>" for title_line in title_lines),
                0,
                1,
                xshift=8 - left,
                yshift=top_px - 4,
                align="left",
                font={"size": 11},
            )
        )
    legend_layout: dict[str, Any] = {}
    legend_px = 0
    if names:
        legend_layout, legend_px = legend_below_plot(names, px)
    # plotly lets a legend be as wide as the picture only when it lies below and left of the plot in
    # plot units.
    legend_layout |= {
        "x": (4 - left) / (px - left - right),
        "xanchor": "left",
        "y": -bottom / plot_px,
        "yanchor": "top",
    }
    return {
        "showlegend": bool(names),
        "height": int(top_px + plot_px + bottom + legend_px),
        **own,
        "margin": {"t": top_px, "l": left, "r": right, "b": bottom + legend_px},
        "legend": legend_layout,
        "annotations": [*title_notes, *own.get("annotations", ())],
    }


def width_name(picture_px: int) -> Width:
    """Name the paper width of a picture of so many pixels."""
    if picture_px <= WIDTHS["column"]:
        return "column"
    return "full"


def panel_axes(panel_number: int) -> dict[str, Any]:
    """Name the axes of the i-th panel, for its traces."""
    axis_number = ""
    if panel_number:
        axis_number = str(panel_number + 1)
    return {"xaxis": f"x{axis_number}", "yaxis": f"y{axis_number}"}


def panel_grid_layout(
    px: int,
    facets: Sequence[Panel],
    *,
    columns: int,
    high: float,
    gap: tuple[float, float],
    left: float = 42,
    right: float = 12,
    **own: Any,
) -> FigureLayout:
    """Give the layout of panels in rows, each under its head.

    :param facets: of each panel ``head``, ``xaxis`` and ``yaxis``.
    :param columns: how many stand beside each other.
    :param high: pixels of each panel.
    :param gap: pixels between panels beside and under each other, heads and axes included.
    :param own: see :func:`layout`.
    """
    n_rows = math.ceil(len(facets) / columns)
    across_px = px - left - right
    plot_px = high * n_rows + gap[1] * (n_rows - 1)
    panel_px = (across_px - gap[0] * (columns - 1)) / columns
    placed_axes = dict[str, Any]()
    head_notes = list[dict[str, Any]]()
    for panel_number, panel_facet in enumerate(facets):
        row_number, column_number = divmod(panel_number, columns)
        left_share = column_number * (panel_px + gap[0]) / across_px
        upper_share = 1 - (high + gap[1]) * row_number / plot_px
        x_axis, y_axis = panel_axes(panel_number).values()
        axis_domains = (
            [left_share, min(1.0, left_share + panel_px / across_px)],
            [max(0.0, upper_share - high / plot_px), upper_share],
        )
        placed_axes[f"xaxis{x_axis[1:]}"] = {
            "domain": axis_domains[0],
            "anchor": y_axis,
            **panel_facet["xaxis"],
        }
        placed_axes[f"yaxis{y_axis[1:]}"] = {
            "domain": axis_domains[1],
            "anchor": x_axis,
            **panel_facet["yaxis"],
        }
        head_notes.append(
            text_annotation(
                panel_facet["head"], left_share, upper_share, "left bottom", yshift=2, align="left"
            )
        )
    return layout(
        px, plot_px=plot_px, left=left, right=right, annotations=head_notes, **placed_axes, **own
    )


def line(
    x: Any,
    y: Any,
    name: str,
    color: str = GREY,
    *,
    width: float = 1.5,
    dash: str = "solid",
    **own: Any,
) -> Any:
    """Draw a line, grey where no colour is named; ``own`` is what plotly takes besides.

    >>> from memlab.figures import style
    >>> style.line([0, 1], [0, 1], "best", dash="dot").line.dash
    '2px,2px'
    """
    line_look = {"color": color, "width": width, "dash": dash} | own.pop("line", {})
    line_look["dash"] = DASH_LENGTHS.get(line_look["dash"], line_look["dash"])
    return go.Scatter(
        x=list(x), y=list(y), name=name, **{"mode": "lines", "line": line_look, **own}
    )


def marked_line(x: Any, y: Any, name: object, series_number: int, **own: Any) -> Any:
    """Draw the line of the i-th series, with marks of its shape."""
    marker_look = {"symbol": symbol(series_number), "size": 5}
    return line(
        x,
        y,
        legend_name(name),
        colour(series_number),
        dash=dash(series_number),
        **{"mode": "lines+markers", "marker": marker_look, **own},
    )


def shape_of(series_symbol: str, shapes: str = SHAPES) -> str:
    """Give the shape of text that looks like a mark of plotly's."""
    return shapes[SYMBOLS.index(series_symbol)]


def shape_legend(symbol_by_name: Mapping[Any, str], shapes: str = SHAPES) -> str:
    """Say which drawn shape stands for which of several names."""
    return ", ".join(
        f"{shape_of(series_symbol, shapes)} {printable_line(series_name)}"
        for series_name, series_symbol in symbol_by_name.items()
        if series_name
    )


def error_bar(x: Any, low: Any, high: Any, **look: Any) -> dict[str, Any]:
    """Give the bar of an interval around a value, or around a column of them."""
    values, lows, highs = map(_as_float_column, (x, low, high))
    upper_parts = (highs - values).to_list()
    lower_parts = (values - lows).to_list()
    return {"array": upper_parts, "arrayminus": lower_parts, "thickness": 1.5, "width": 0, **look}


def _as_float_column(value_or_column: Any) -> pl.Series:
    """Give a column as it is, and a single value as a column of one."""
    if isinstance(value_or_column, pl.Series):
        return value_or_column
    return pl.Series([value_or_column], dtype=pl.Float64)


def make_figure(traces: Sequence[Any], layout_for: Callable[[int], FigureLayout]) -> go.Figure:
    """Make a figure of traces and a layout that depends on the width in pixels.

    :param layout_for: gives the layout, with ``height`` and ``margin``, at a width; it is asked for
        each paper width.
    """
    for figure_trace in traces:
        if "legendgroup" in figure_trace and not figure_trace.legendgroup:
            # In the legend, and when it is clicked on, a name is one thing.
            figure_trace.legendgroup = figure_trace.name
    width_layouts = {
        paper_width: {**layout_for(width_px), "width": width_px}
        for paper_width, width_px in WIDTHS.items()
    }
    shared_layout = {"template": template(), "meta": {_WIDTHS_KEY: width_layouts}}
    return go.Figure(data=list(traces), layout=shared_layout | width_layouts["full"])


def attach_provenance(fig: go.Figure, provenance: Mapping[str, Any]) -> None:
    """Note in a figure what it shows, for an export that is given none."""
    fig.layout.meta = {**(fig.layout.meta or {}), _PROVENANCE_KEY: dict(provenance)}


def attached_provenance(fig: go.Figure) -> dict[str, Any]:
    """Give what :func:`attach_provenance` noted in a figure; nothing where it noted nothing."""
    if not isinstance(fig.layout.meta, dict):
        return {}
    return dict(fig.layout.meta.get(_PROVENANCE_KEY, {}))


def copy_for_width(fig: go.Figure, width: Width) -> go.Figure:
    """Give a copy of a figure laid out for a paper width.

    A figure that no chart function of memlab made gets the template and keeps its shape.

    >>> import polars as pl
    >>> from memlab.figures import bars, style
    >>> counted = {"n": [1, 3], "share": [0.25, 0.75]}
    >>> fig = bars.share_bars(pl.DataFrame({"cause": ["a", "b"], "group": "all", **counted}))
    >>> style.copy_for_width(fig, "column").layout.width
    336
    """
    figure_copy = go.Figure(fig)
    own_layout = figure_copy.layout
    width_layouts = None
    if isinstance(own_layout.meta, dict):
        width_layouts = own_layout.meta.get(_WIDTHS_KEY)
    if width_layouts is None:
        width_px = WIDTHS[width]
        height_share = 0.7
        if own_layout.height and own_layout.width:
            height_share = own_layout.height / own_layout.width
        return figure_copy.update_layout(
            template=template(), width=width_px, height=round(width_px * height_share)
        )
    figure_copy.layout.meta = None
    for list_name in ("annotations", "shapes"):
        if list_name in width_layouts[width]:
            figure_copy.layout[list_name] = ()
    return figure_copy.update_layout(width_layouts[width])
