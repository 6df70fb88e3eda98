"""Small panels over a parameter, and forests of several measures."""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go
import polars as pl
import pytest

from memlab.errors import DataError
from memlab.figures import intervals, style, sweeps


def swept(panels: int = 9) -> pl.DataFrame:
    rows = [
        (f"({p}) mmr", measure, "lambda", value, m := 0.1 + i / 10 + value / 20, m - 0.05, m + 0.05, 0.15 + i / 10)
        for p in range(panels)
        for i, measure in enumerate(("recall_all@10", "recall_all@20"))
        for value in (0.3, 0.7, 0.9)
    ]
    schema = ["panel", "measure", "parameter", "value", "mean", "low", "high", "baseline"]
    return pl.DataFrame(rows, schema=schema, orient="row")


def domains(fig: go.Figure, width: style.Width, axis: str) -> list[tuple[float, float]]:
    layout = style.for_width(fig, width).layout.to_plotly_json()
    keys = sorted((key for key in layout if key.startswith(f"{axis}axis")), key=lambda key: int(key[5:] or 1))
    return [tuple(layout[key]["domain"]) for key in keys]


@pytest.mark.parametrize("panels", [1, 2, 3, 4, 5, 8, 9])
@pytest.mark.parametrize("width", style.WIDTHS)
def test_panels_lie_side_by_side_and_on_no_other(panels: int, width: style.Width) -> None:
    fig = sweeps.sweep(swept(panels), panel="panel", series="measure")
    across, up = domains(fig, width, "x"), domains(fig, width, "y")
    assert len(across) == len(up) == panels
    for i in range(panels):
        assert 0 <= across[i][0] < across[i][1] <= 1
        assert 0 <= up[i][0] < up[i][1] <= 1
        for j in range(i):
            beside = across[i][0] >= across[j][1] or across[j][0] >= across[i][1]
            below = up[i][0] >= up[j][1] or up[j][0] >= up[i][1]
            assert beside or below


def test_each_series_has_its_baseline_and_one_entry_in_the_legend() -> None:
    fig = sweeps.sweep(swept(3), panel="panel", series="measure", reference="plain")
    named = ["plain, recall_all@10", "plain, recall_all@20", "recall_all@10", "recall_all@20"]
    assert [t.name for t in fig.data if t.showlegend] == named
    plain = [t for t in fig.data if t.name in named[:2]]
    assert [t.y[0] for t in plain[:2]] == [0.15, 0.25]
    assert plain[0].line.dash != plain[1].line.dash
    assert len(plain) == 6, "two a panel"
    same = swept(1).with_columns(baseline=pl.lit(0.2))
    drawn = sweeps.sweep(same, series="measure", reference="plain").data
    assert sum(t.name == "plain" for t in drawn) == 1, "one line where both are held against the same"


def test_a_baseline_follows_the_value() -> None:
    frame = swept(1).filter(pl.col("measure") == "recall_all@10").with_columns(baseline=pl.col("value") / 2)
    grey = sweeps.sweep(frame, series="measure", log_x=True).data[0]
    assert list(grey.x) == [0.3, 0.7, 0.9]
    assert list(grey.y) == [0.15, 0.35, 0.45]


def test_panels_of_the_same_share_their_axis_and_others_do_not() -> None:
    frame = swept(3).with_columns(
        ylabel=pl.when(pl.col("panel") == "(0) mmr").then(pl.lit("sessions")).otherwise(pl.lit("share"))
    )
    most = pl.when(pl.col("ylabel") == "sessions").then(40.0).otherwise(pl.col("high"))
    layout = sweeps.sweep(frame.with_columns(high=most), panel="panel", series="measure").layout
    assert layout.yaxis.range[1] > 40
    assert layout.yaxis2.range == layout.yaxis3.range
    assert layout.yaxis2.range[1] <= 1.03
    assert layout.yaxis2.showticklabels
    shared = sweeps.sweep(swept(3), panel="panel", series="measure").layout
    assert shared.yaxis.range == shared.yaxis3.range
    assert not shared.yaxis2.showticklabels


def test_values_on_a_logarithmic_axis_are_named_and_positive() -> None:
    axis = sweeps.sweep(swept(1), series="measure", log_x=True).layout.xaxis
    assert axis.type == "log"
    assert list(axis.ticktext) == ["0.3", "0.7", "0.9"]
    assert axis.range[0] < np.log10(0.3) < np.log10(0.9) < axis.range[1]
    with pytest.raises(DataError, match=r"value 0\.0 on a logarithmic axis"):
        sweeps.sweep(swept(1).with_columns(value=pl.lit(0.0)), series="measure", log_x=True)


def test_a_forest_gives_each_measure_a_shape_and_each_system_a_row() -> None:
    rows = [
        ("mmr", "all@10", -0.05, -0.08, -0.02, 0.001),
        ("dpp", "all@10", 0.01, -0.02, 0.04, 1.0),
        ("mmr", "all@20", 0.06, 0.02, 0.1, 0.01),
        ("dpp", "all@20", 0.0, -0.01, 0.01, 1.0),
    ]
    frame = pl.DataFrame(rows, schema=["system", "measure", "difference", "low", "high", "p_holm"], orient="row")
    fig = intervals.forest(frame.with_columns(n=pl.lit(9), baseline=pl.lit("plain")), measure="all@k")
    assert [t.marker.symbol for t in fig.data] == ["circle", "circle", "square", "square"]
    assert [t.marker.color for t in fig.data] == [style.PALETTE[1], "white", style.PALETTE[0], "white"]
    height = {(t.name, t.marker.symbol): t.y[0] for t in fig.data}
    assert height["mmr", "circle"] > height["mmr", "square"] > height["dpp", "circle"] > height["dpp", "square"]
    texts = [note.text for note in fig.layout.annotations]
    assert texts.count("mmr") == texts.count("dpp") == 1
    assert "−.050 [−.080, −.020] p=.001<br>+.060 [+.020, +.100] p=.010" in texts
    assert any("● all@10, ■ all@20" in text for text in texts)
