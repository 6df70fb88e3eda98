"""The charts of trees of summaries: what they draw, at both widths, and what they refuse."""

from __future__ import annotations

from collections.abc import Callable

import plotly.graph_objects as go
import polars as pl
import pytest
from drawn_words import drawn
from hypothesis import given, settings
from hypothesis import strategies as st

from memlab.errors import DataError
from memlab.figures import rollup, style

NASTY = "<b>a trip</b> & a piano that nobody has room for, in no flat of the town, whatever is tried"


def months() -> pl.DataFrame:
    rows = [
        ("m1", None, "month", "May: garden", 30, ["w1", "w2"]),
        ("m2", None, "month", "June: piano", 5, ["w3"]),
        ("w1", "m1", "week", "6 – 12 May: seeds", 10, ["s1"]),
        ("w2", "m1", "week", NASTY, 20, ["s2", "s3"]),
        ("w3", "m2", "week", "3 – 9 June: keys", 5, ["s4", "s3"]),
        *((f"s{i}", w, "session", f"day {i}", 5, []) for i, w in ((1, "w1"), (2, "w2"), (3, "w2"), (4, "w3"))),
    ]
    names = ["node_id", "parent", "kind", "label", "n_turns", "children"]
    return pl.DataFrame(rows, schema=names, orient="row")


CHARTS: dict[str, tuple[Callable[[], go.Figure], list[str]]] = {
    "icicle": (lambda: rollup.icicle(months(), title="In time"), ["In time", "month", "May: garden", "day 4"]),
}


# One of each family goes through the browser, and what has a layout of its own.
RENDERED = ("icicle",)


@pytest.mark.parametrize("name", CHARTS)
def test_it_is_drawn_with_its_words_on_it(name: str) -> None:
    make, expected = CHARTS[name]
    shown = drawn(make(), rendered=name in RENDERED)
    for text in expected:
        assert text in shown, f"{text!r} not drawn; drawn: {shown}"


@pytest.mark.parametrize("name", CHARTS)
@pytest.mark.parametrize("width", list(style.WIDTHS))
def test_it_leaves_room_for_the_plot(name: str, width: style.Width) -> None:
    layout = style.for_width(CHARTS[name][0](), width).layout
    px, margin = style.WIDTHS[width], layout.margin
    assert layout.width == px
    assert px - margin.l - margin.r > px / 2
    assert layout.height - margin.t - margin.b > 40


def test_a_box_is_as_high_as_its_leaves_and_inside_its_parent() -> None:
    boxes = {}
    for bars in rollup.icicle(months()).data:
        for name, left, wide, middle, high in zip(bars.hovertext, bars.base, bars.x, bars.y, bars.width, strict=True):
            boxes[name.split("<br>")[0]] = (left, left + wide, middle - high / 2, middle + high / 2)
    assert boxes["May: garden"][2:] == (0, 3)
    assert boxes["June: piano"][2:] == (3, 4)
    assert boxes["6 – 12 May: seeds"][2:] == boxes["day 1"][2:] == (0, 1)
    assert boxes["May: garden"][1] == boxes["6 – 12 May: seeds"][0]
    assert boxes["day 4"][1] == pytest.approx(1)


def test_branches_take_turns_in_tint() -> None:
    first, second = rollup.icicle(months()).data
    assert first.marker.color != second.marker.color
    assert (len(first.y), len(second.y)) == (6, 3)
    depths = rollup.icicle(months().filter(pl.col("node_id") != "m2", pl.col("parent").fill_null("") != "m2")).data
    assert all(len(bars.y) for bars in depths)


def test_a_label_holds_what_has_room_and_no_broken_topic() -> None:
    fig = rollup.icicle(months())
    page, column = (
        next(note.text for note in style.for_width(fig, width).layout.annotations if "trip" in note.text)
        for width in ("full", "column")
    )
    assert page.startswith("&lt;b&gt;a trip&lt;/b&gt; &amp;")
    assert column.replace("<br>", " ") == "&lt;b&gt;a trip&lt;/b&gt; &amp; a piano that nobody has room for"
    assert len(column) < len(page)


def test_boxes_too_low_for_a_label_have_none() -> None:
    ids = ["top", *map(str, range(400))]
    frame = pl.DataFrame({"node_id": ids, "parent": ["", *["top"] * 400], "label": ["all", *["x"] * 400], "n_turns": 1})
    layout = rollup.icicle(frame).layout
    assert [note.text for note in layout.annotations] == ["all"]
    assert layout.height < 800


@settings(deadline=None, max_examples=30)
@given(st.lists(st.integers(-1, 11), min_size=1, max_size=12))
def test_every_node_of_any_forest_is_drawn_once(above: list[int]) -> None:
    parents = [str(a) if 0 <= a < i else None for i, a in enumerate(above)]
    frame = pl.DataFrame(
        {"node_id": [str(i) for i in range(len(above))], "parent": parents, "label": "x", "n_turns": 1},
        schema_overrides={"parent": pl.String},
    )
    assert sum(len(bars.y) for bars in rollup.icicle(frame).data) == len(above)


@pytest.mark.parametrize(
    ("chart", "frame"),
    [(rollup.icicle, months())],
)
def test_missing_columns_and_no_rows_are_named(chart: Callable[[pl.DataFrame], go.Figure], frame: pl.DataFrame) -> None:
    with pytest.raises(DataError, match=rf"needs the column\(s\) {frame.columns[0]}"):
        chart(frame.drop(frame.columns[0]))
    with pytest.raises(DataError, match="nothing to draw"):
        chart(frame.clear())
