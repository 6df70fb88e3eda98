"""Small panels over parameters."""

from __future__ import annotations

import plotly.graph_objects as go
import polars as pl
import pytest

from memlab.figures import style, sweeps


def swept(panels: int = 9) -> pl.DataFrame:
    rows = [
        (f"({p}) mmr", "lambda", value, m := 0.1 + value / 20, m - 0.05, m + 0.05, 0.15)
        for p in range(panels)
        for value in (0.7, 0.3, 0.9)
    ]
    schema = ["system", "parameter", "value", "mean", "low", "high", "baseline"]
    return pl.DataFrame(rows, schema=schema, orient="row")


def domains(fig: go.Figure, width: style.Width, axis: str) -> list[tuple[float, float]]:
    layout = style.for_width(fig, width).layout.to_plotly_json()
    keys = sorted((key for key in layout if key.startswith(f"{axis}axis")), key=lambda key: int(key[5:] or 1))
    return [tuple(layout[key]["domain"]) for key in keys]


@pytest.mark.parametrize("panels", [1, 2, 3, 4, 6, 9])
@pytest.mark.parametrize("width", style.WIDTHS)
def test_panels_lie_side_by_side_and_on_no_other(panels: int, width: style.Width) -> None:
    fig = sweeps.sweep(swept(panels))
    across, up = domains(fig, width, "x"), domains(fig, width, "y")
    assert len(across) == len(up) == panels
    for i in range(panels):
        assert 0 <= across[i][0] < across[i][1] <= 1
        assert 0 <= up[i][0] < up[i][1] <= 1
        for j in range(i):
            beside = across[i][0] >= across[j][1] or across[j][0] >= across[i][1]
            below = up[i][0] >= up[j][1] or up[j][0] >= up[i][1]
            assert beside or below


def test_panels_share_their_axis_and_the_legend_names_each_line_once() -> None:
    fig = sweeps.sweep(swept(3), reference="plain")
    assert [t.name for t in fig.data if t.showlegend] == ["plain", "with the parameter"]
    assert list(fig.data[1].x) == [0.3, 0.7, 0.9], "in the order of the values"
    assert fig.layout.yaxis.range == fig.layout.yaxis3.range
    assert fig.layout.yaxis.showticklabels
    assert not fig.layout.yaxis2.showticklabels
