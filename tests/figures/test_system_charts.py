"""The picture of what complete recall costs: what it draws at both widths, and what it leaves out."""

from __future__ import annotations

import polars as pl
import pytest
from drawn_words import drawn

from memlab.errors import DataError
from memlab.figures import anatomy, style, systems

TABLE = pl.DataFrame(
    {
        "system": ["bm25", "<b>mine</b> & theirs", "read from a file"],
        "n": [137, 137, 137],
        "recall_all@10": [0.4, 0.0, 0.6],
        "p50 ms": [2.0, 45.0, None],
        "recall_all@200 tokens": [0.3, 0.0, 0.4],
        "recall_all@4000 tokens": [0.5, 0.1, 0.7],
    }
)


@pytest.mark.parametrize("width", ["column", "full"])
def test_every_system_has_a_line_and_every_timed_one_a_mark(width: style.Width) -> None:
    fig = style.for_width(systems.trade_off(TABLE, title="Trade-off"), width)
    words = drawn(fig, rendered=False)
    for text in ("Trade-off", "in so many tokens", "n = 137", "(no time: read from a file)", "&lt;b&gt;mine"):
        assert text in words or text.replace("&lt;", "<").replace("&gt;", ">") in words
    lines = [trace for trace in fig.data if trace.showlegend]
    assert [list(line.y) for line in lines] == [[0.3, 0.5], [0.0, 0.1], [0.4, 0.7]]
    marks = [trace for trace in fig.data if trace.mode == "markers"]
    assert [mark.x[0] for mark in marks] == [2.0, 45.0]
    # Wilson's interval at none of 137 is not empty.
    assert marks[1].error_y.array[0] > 0.02


def test_where_nothing_was_timed_the_left_alone_is_drawn() -> None:
    fig = systems.trade_off(TABLE.tail(1))
    assert [trace.mode for trace in fig.data] == ["lines+markers"]


def test_a_missing_column_is_named() -> None:
    with pytest.raises(DataError, match="p50 ms"):
        systems.trade_off(TABLE.drop("p50 ms"))


def test_the_way_of_each_piece_through_the_stages_is_drawn() -> None:
    stages = pl.DataFrame(
        {
            "stage": ["bm25", "bm25", "… | learned(model='a/very/long/path')", "… | learned(model='a/very/long/path')"],
            "text": ["I saw <b>Dr.</b> Lee.", "word " * 40] * 2,
            "rank": [40, None, 3, 12],
        }
    )
    fig = anatomy.through_stages(stages, k=10, title="Why")
    assert [trace.name.count("<br>") for trace in fig.data] == [0, 1]
    assert [list(trace.y)[1] for trace in fig.data] == [3, 12]
    assert fig.data[1].y[0] > 40
    words = drawn(fig, rendered=True)
    for text in ("Why", "not ranked", "first 10", "Lee."):
        assert text in words
    with pytest.raises(DataError, match="text"):
        anatomy.through_stages(stages.drop("text"))
