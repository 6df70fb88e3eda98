"""Charts of follow-ups: every value is drawn and written, nothing outruns its axis, and nothing to draw is said."""

from __future__ import annotations

import polars as pl
import pytest

from memlab.errors import DataError
from memlab.figures import follow_ups, style

FORMS = ("as asked", "rewritten", "stands <alone>")


def measured() -> pl.DataFrame:
    rows = [
        {"kind": kind, "form": form, "n": 1200, "mean": mean, "low": mean - 0.05, "high": mean + 0.05}
        for kind in ("pronoun", "a kind with a very long name that has to be wrapped at the width of a column")
        for form, mean in zip(FORMS, (0.25, 0.5, 0.75), strict=True)
    ]
    return pl.DataFrame(rows)


def notes(fig: object) -> str:
    return " ".join(note.text for note in fig.layout.annotations)  # type: ignore[attr-defined]


def test_recall_is_drawn_and_written_for_each_form() -> None:
    fig = follow_ups.recall(measured())
    assert [mark.x[0] for mark in fig.data] == [0.25, 0.5, 0.75] * 2
    assert len({mark.marker.symbol for mark in fig.data}) == len({mark.marker.color for mark in fig.data}) == 3
    assert "25% → 50% → 75%" in notes(fig)
    assert "n = 1,200" in notes(fig)
    assert "<alone>" not in notes(fig)


@pytest.mark.parametrize("width", style.WIDTHS)
def test_charts_are_laid_out_for_both_widths(width: style.Width) -> None:
    laid_out = style.for_width(follow_ups.recall(measured()), width)
    assert laid_out.layout.width == style.WIDTHS[width]
    low, high = laid_out.layout.xaxis.range
    drawn = [x for trace in laid_out.data for x in trace.x]
    assert low <= min(drawn)
    assert max(drawn) <= high


def test_nothing_to_draw_is_said() -> None:
    with pytest.raises(DataError, match="needs the column"):
        follow_ups.recall(pl.DataFrame({"kind": ["x"]}))
    with pytest.raises(DataError, match="no rows"):
        follow_ups.recall(measured().clear())
