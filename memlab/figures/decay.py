"""Decay of confidence: curves over time, families compared on facts held out, and whether stated chances are true."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl

from memlab.figures import style
from memlab.figures._plotly import go
from memlab.figures._rows import marked_rows
from memlab.figures._text import clean, escape, fit, plain, signed, text_px
from memlab.figures.curves import end_labels

_STRIP, _HEAD_PX, _FOOT_PX, _GAP_PX, _WIDEST_PX = 0.22, 28, 38, 14, 280
_DASHES = ("solid", "dash", "dot", "dashdot", "longdash")
_DIAGONAL, _SHARE, _COUNT = "chance = share", "share still true, with interval", "facts per bin"


def decay_curves(
    frame: pl.DataFrame, *, measure: str = "confidence", events: Sequence[float] = (), title: str = ""
) -> go.Figure:
    """Draw confidence over time, one line a family, with repetitions as jumps.

    At column width the families are named in a legend under the plot, at page width beside their lines.

    :param frame: what :func:`memlab.knowledge.confidence.trajectory` gives: ``family``, ``day`` and the column named by
        ``measure``.
    :param measure: the column to draw: ``confidence`` or ``retention``.
    :param events: the days on which the fact was heard again, marked under the plot.

    >>> from memlab.figures import decay
    >>> from memlab.knowledge import confidence
    >>> from memlab.knowledge.decay import Exponential, PlateauLinear
    >>> curves = {"plateau_linear": PlateauLinear(), "exponential": Exponential()}
    >>> [line.name for line in decay.decay_curves(confidence.trajectory(curves)).data]
    ['plateau_linear', 'exponential']
    """
    style.need(frame, ("family", "day", measure), "decay_curves")
    lines, ends = [], []
    for i, (name, of_family) in enumerate(style.parts(frame, "family")):
        rows = of_family.sort("day", maintain_order=True)
        hover = [f"{plain(name)}<br>day {d:g}: {v:.3f}" for d, v in rows.select("day", measure).iter_rows()]
        lines.append(
            style.line(rows["day"], rows[measure], style.named(name), style.colour(i), width=1.6,
                       dash=_DASHES[i % len(_DASHES)], line={"simplify": False}, text=hover, hoverinfo="text")
        )  # fmt: skip
        ends.append((clean(name), float(rows[measure][-1]), style.colour(i)))
    names = [clean(line.name) for line in lines] + ["heard again"] * bool(events)
    if events:
        lines.append(
            go.Scatter(x=[*events], y=[0.0] * len(events), mode="markers", name="heard again", hoverinfo="name+x",
                       cliponaxis=False, marker={"symbol": "triangle-up", "size": 8, "color": style.INK})
        )  # fmt: skip
    widest, days = max(text_px(name, style.SMALL) for name, _, _ in ends), [frame["day"].min(), frame["day"].max()]

    def layout_for(px: int) -> dict[str, Any]:
        beside = px > style.WIDTHS["column"] and widest < 0.3 * px
        plot_px, right = 200, int(widest) + 16 if beside else 12
        notes = end_labels(ends, plot_px=plot_px, y_top=1.03, room=right - 10) if beside else []
        # Beside the lines only the marks still need a legend, and a legend of one is a note.
        notes += [style.note("▲ heard again", 1, 0, "right top", yshift=-19)] * (beside and bool(events))
        return style.layout(
            px, title=title, names=[] if beside else names, plot_px=plot_px, right=right, bottom=38, annotations=notes,
            xaxis={"title": {"text": "days"}, "range": days, "nticks": 9},
            yaxis={"title": {"text": plain(measure)}, "range": [0, 1.03]},
        )  # fmt: skip

    return style.finish(lines, layout_for)


def reliability(frame: pl.DataFrame, *, title: str = "") -> go.Figure:
    """Draw the share still true over the stated chance, a panel a curve, with the number of facts in each bin.

    A curve is calibrated where its marks lie on the diagonal; above it, facts last longer than it says. Bars under a
    panel are the bins' sizes, on a scale of its own.

    :param frame: chances in bins beside what happened: ``bin``, ``n``, ``chance``, ``share``,
        ``low``, ``high``; a panel for each ``family`` and ``fit`` where there are those.
    """
    style.need(frame, ("bin", "n", "chance", "share", "low", "high"), "reliability")
    keys = [c for c in ("family", "fit") if c in frame.columns]
    several = "fit" in keys and frame["fit"].n_unique() > 1
    parts = frame.partition_by(keys, maintain_order=True) if keys else [frame]
    traces, heads = list[Any](), list[tuple[str, str]]()
    for p, rows in enumerate(parts):
        name = f"{rows['family'][0]}, {rows['fit'][0]}" if several else rows["family"][0] if keys else ""
        most = max(rows["n"])
        heads.append((clean(name), f"n = {rows['n'].sum():,}, fullest bin {most:,}"))
        axes: dict[str, Any] = {**style.axes(p), "showlegend": p == 0}
        hover = [
            f"{n:,} facts: said {c:.2f}, true {s:.2f}" for n, c, s in rows.select("n", "chance", "share").iter_rows()
        ]
        traces += [
            style.line([0, 1], [0, 1], _DIAGONAL, width=1, dash="dash", legendgroup="d", hoverinfo="skip", **axes),
            go.Bar(x=rows["chance"].to_list(), y=[n / most * (_STRIP - 0.04) for n in rows["n"]], base=-_STRIP,
                   width=0.05, name=_COUNT, legendgroup="n", marker={"color": style.NOISE}, text=hover,
                   textposition="none", hoverinfo="text", **axes),
            go.Scatter(x=rows["chance"].to_list(), y=rows["share"].to_list(), mode="markers", name=_SHARE,
                       legendgroup="s", marker={"color": style.colour(0), "size": 5}, text=hover, hoverinfo="text",
                       error_y=style.interval(rows["share"], rows["low"], rows["high"], thickness=1), **axes),
        ]  # fmt: skip

    def layout_for(px: int) -> dict[str, Any]:
        columns = min(len(heads), 2 if px <= style.WIDTHS["column"] else 4)
        wide = min((px - 44 - 12 - _GAP_PX * (columns - 1)) / columns, _WIDEST_PX)
        facets = [
            {"px": wide * (1 + _STRIP), "look": {"align": "left", "font": {"size": 8}},
             "head": f"<b>{escape(fit(name, wide, style.SMALL, bold=True))}</b><br>{n}" if name else n,
             "xaxis": {"range": [-0.02, 1.02], "tickvals": [0, 0.5, 1],
                       "title": {"text": "stated chance" if p + columns >= len(heads) else ""}},
             "yaxis": {"range": [-_STRIP, 1.03], "tickvals": [0, 0.25, 0.5, 0.75, 1],
                       "showticklabels": p % columns == 0,
                       "title": {"text": "share still true" if p % columns == 0 else ""}}}
            for p, (name, n) in enumerate(heads)
        ]  # fmt: skip
        return style.panels(
            px, facets, columns=columns, gap=(_GAP_PX, _HEAD_PX + 22), widest=_WIDEST_PX, left=44, title=title,
            names=[_DIAGONAL, _COUNT, _SHARE], head_px=_HEAD_PX, bottom=_FOOT_PX, barmode="overlay",
        )  # fmt: skip

    return style.finish(traces, layout_for)


def families(frame: pl.DataFrame, *, confidence: float = 0.9, title: str = "") -> go.Figure:
    """Draw the held-out log-loss of decay families with intervals, and say how far each is behind the best.

    Open: surely worse than the best, since the interval of the paired difference lies above 0. The intervals on the
    plot are much wider than those of the differences: all candidates share the same hard facts.

    :param frame: what :func:`memlab.knowledge.tuning.compare` gives:
        ``family``, ``n``, ``log_loss``, ``low``, ``high``, ``difference``, ``difference_low``,
        ``difference_high``; rows of one family may have a ``fit`` that tells them apart; where there is ``predicate``,
        the rows over all (null) are drawn if there are some.
    :param confidence: of the intervals, named under the plot.
    """
    columns = ("family", "n", "log_loss", "low", "high", "difference", "difference_low", "difference_high")
    style.need(frame, columns, "families")
    if "predicate" in frame.columns and frame["predicate"].null_count():
        frame = frame.filter(pl.col("predicate").is_null())
    several = "fit" in frame.columns and frame["fit"].n_unique() > 1
    frame = frame.sort("log_loss", maintain_order=True).with_columns(
        pl.col("low", "high").fill_null(pl.col("log_loss"))
    )
    marks = []
    for row in frame.iter_rows(named=True):
        name = f"{row['family']}, {row['fit']}" if several and row["family"] not in _NOT_FITTED else row["family"]
        tint = style.GREY if row["family"] in _NOT_FITTED else style.colour(0)
        difference, *interval = (row[end] for end in ("difference", "difference_low", "difference_high"))
        between = "" if None in interval else " [{}, {}]".format(*map(signed, interval))
        behind = signed(difference) + between if difference else "best"
        marks.append({**row, "name": name, "x": row["log_loss"], "tint": tint,
                      "fill": "white" if (row["difference_low"] or 0) > 0 else tint,
                      "symbol": "diamond" if row.get("fit") == "per predicate" else "circle",
                      "numbers": f"{row['log_loss']:.3f}  {behind}",
                      "hover": "{log_loss:.4f} [{low:.4f}, {high:.4f}]".format(**row)})  # fmt: skip
    span = (min(frame["low"]), max(frame["high"]))
    xlabel = f"held-out log-loss in nats, {confidence:.0%} intervals (n = {frame['n'][0]:,}; less is better)"
    key = "right: difference to the best, paired; open: surely worse; grey: not fitted"
    key += "; ◆ a curve for each predicate" * several
    axis = {"zeroline": False, "nticks": 6}
    return marked_rows(marks, span=span, xlabel=xlabel, key=key, title=title, xaxis=axis)


_NOT_FITTED = ("constant", "default")
