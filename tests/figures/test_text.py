"""Text on pictures."""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go
import pytest
from clipped import read, svg
from hypothesis import given, settings
from hypothesis import strategies as st

from memlab.figures import style
from memlab.figures.label_placement import place_labels, spread_labels
from memlab.figures.text_and_glyphs import (
    character_widths,
    cut_to_width,
    drawable_text,
    font_face_rules,
    printable_line,
    text_px,
    wrap,
)


@given(st.text())
def test_plain_text_holds_no_markup_and_nothing_unprintable(text: str) -> None:
    drawn = drawable_text(text)
    assert "<" not in drawn
    assert ">" not in drawn
    assert all(ord(c) >= 32 for c in drawn)
    drawn.encode("utf-8")
    assert printable_line("a\x00b\ud800 c\n d") == "a�b� c d"


@given(st.text(max_size=200), st.integers(30, 400))
def test_fit_never_exceeds_its_width_and_keeps_what_fits(text: str, px: int) -> None:
    cut = cut_to_width(text, px, 9)
    assert text_px(cut, 9) <= px
    if text_px(printable_line(text), 9) <= px:
        assert cut == printable_line(text)


@given(
    st.lists(st.text("abcdefgh", min_size=1, max_size=12), min_size=1, max_size=30),
    st.integers(1, 4),
)
def test_wrap_gives_at_most_so_many_lines_and_loses_words_only_at_the_end(
    words: list[str], lines: int
) -> None:
    sentence = " ".join(words)
    block = wrap(sentence, 120, 10, lines=lines)
    assert len(block) <= lines
    assert all(text_px(line, 10) <= 120 for line in block)
    if not block[-1].endswith("…"):
        assert " ".join(block) == sentence


@given(st.lists(st.floats(0, 300), min_size=1, max_size=12))
def test_spread_labels_keep_their_order_and_distance(positions: list[float]) -> None:
    placed = spread_labels(positions, 12, low=0, high=300)
    ordered = placed[np.argsort(positions, kind="stable")]
    assert (np.diff(ordered) >= 12 - 1e-6).all()
    assert placed.min() >= -1e-9
    assert placed.max() <= 300 + 1e-6


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 14))
def test_placed_labels_lie_in_the_area_and_never_overlap(seed: int, n: int) -> None:
    rng = np.random.default_rng(seed)
    area = (320.0, 260.0)
    anchors, sizes = (
        rng.uniform(0, 260, (n, 2)),
        np.column_stack([rng.uniform(20, 110, n), np.full(n, 13.0)]),
    )
    centres = place_labels(
        anchors, sizes, rng.uniform(0, 260, (50, 2)), area=area, radii=(0, 10, 30, 60)
    )
    done = np.flatnonzero(~np.isnan(centres[:, 0]))
    assert (centres[done] - sizes[done] / 2 >= 0).all()
    assert (centres[done] + sizes[done] / 2 <= area).all()
    for i in done:
        for j in done[done > i]:
            assert (np.abs(centres[i] - centres[j]) >= (sizes[i] + sizes[j]) / 2 - 1e-9).any()


def test_a_label_avoids_points_where_it_can() -> None:
    crowd = np.random.default_rng(0).normal((150, 150), 12, (300, 2))
    sizes = np.array([[60.0, 12.0]])
    centre = place_labels(
        np.array([[150.0, 150.0]]), sizes, crowd, area=(300, 300), radii=(0, 15, 30, 45)
    )[0]
    covered = (np.abs(crowd - centre) < sizes[0] / 2).all(axis=1).sum()
    assert covered < 10


@pytest.mark.parametrize(
    ("text", "blocks"),
    [("a − b ≥ ½ é", 1), ("λ", 2), ("Привет, Ελλάς", 3), ("Łódź אב", 3), ("漢字 🎉", 1)],
)
def test_a_picture_holds_the_blocks_of_the_font_that_it_uses(text: str, blocks: int) -> None:
    """Both weights of each; of what the font lacks nothing."""
    rules = font_face_rules(text)
    assert rules.count("@font-face") == 2 * blocks
    assert rules.count("font-weight:700") == blocks


def test_the_font_has_the_widths_of_liberation_sans() -> None:
    """As its table "hmtx" has them, of 2,048 units an em."""
    regular, bold = character_widths(400), character_widths(700)
    assert len(regular) == len(bold) == 2327
    expected = {"a": (1139, 1139), "i": (455, 569), "M": (1706, 1706), "…": (2048, 2048)}
    for character, widths in expected.items():
        code = ord(character)
        assert (regular[code] * 2048, bold[code] * 2048) == widths, character


def test_text_is_as_wide_as_it_was_measured() -> None:
    words = [
        "How many doctors did I see?",
        "AVATAR To. fi",
        "≥ 2 sessions → α·λ",
        "Привет, Ελλάς",
        "|||lll…",
    ]
    fig = go.Figure(layout={"template": style.template(), "width": 336, "height": 200})
    for i, text in enumerate(words):
        bold = {"size": 10, "weight": 700} if i == 0 else {"size": 10}
        fig.add_annotation(
            x=0, y=i / 5, xref="paper", yref="paper", text=text, font=bold, xanchor="left"
        )
    widths = {text["words"]: text["width"] for text in read(svg(fig))["texts"]}
    for i, text in enumerate(words):
        assert widths[text] == pytest.approx(text_px(text, 10, bold=i == 0), abs=0.6), text
