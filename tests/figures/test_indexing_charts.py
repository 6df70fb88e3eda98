"""The chart of the index: every session is drawn, counts and medians are written, and odd events are refused."""

from __future__ import annotations

import polars as pl
import pytest

from memlab.errors import DataError
from memlab.figures import indexing, style
from memlab.records import IndexEvent, frame


def events() -> pl.DataFrame:
    rows = [IndexEvent(f"a{i}", f"u/s{i}", "u", "created", None, 0.02 * (i + 1), "lab", "1") for i in range(5)]
    rows += [IndexEvent("b", "u/<b>", "u", "failed", None, 12.0, "lab", "1", "timed <out>")]
    rows += [IndexEvent("c", "u/c", "u", "skipped", None, 0.0, None, "1", "3 turns")]
    return frame(IndexEvent, rows)


def test_every_session_is_a_mark_and_counts_are_written() -> None:
    fig = indexing.lifecycle(events())
    drawn = {line.name: list(line.x) for line in fig.data if line.mode == "markers"}
    assert sorted(drawn["created"]) == pytest.approx([0.02, 0.04, 0.06, 0.08, 0.1])
    assert drawn["failed"] == [12.0]
    assert min(drawn["skipped"]) > 0
    words = " ".join(note.text for note in fig.layout.annotations)
    assert "5 sessions, median 60 ms" in words
    assert "1 session, median 12 s" in words
    assert "<out>" not in " ".join(t for line in fig.data if line.text for t in line.text)


@pytest.mark.parametrize("width", style.WIDTHS)
def test_it_is_laid_out_for_both_widths(width: style.Width) -> None:
    fig = style.for_width(indexing.lifecycle(events(), title="Index"), width)
    low, high = fig.layout.xaxis.range
    assert all(low <= pl.Series(line.x).log10().min() <= pl.Series(line.x).log10().max() <= high for line in fig.data)


def test_nothing_to_draw_is_said() -> None:
    with pytest.raises(DataError, match="no rows"):
        indexing.lifecycle(frame(IndexEvent))
