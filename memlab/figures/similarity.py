"""How similar the evidence items of one question are to each other and to what outranks them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl

from memlab.errors import DataError
from memlab.figures import style
from memlab.figures._plotly import go
from memlab.figures._text import clean, escape, fit, from_what_matters, plain, text_px, wrap

_ROW_PX, _SECOND_LINE_PX = 48, 12
_RIDGE_SHARE = 0.55
_MATRIX_MAX = 60


def evidence_similarity(frame: pl.DataFrame, *, title: str = "") -> go.Figure:
    """Draw the distribution of similarities of each kind of pair, as ridges with their medians and quartiles.

    The ridges are Gaussian kernel densities, each scaled to the same height and cut at its least and greatest value;
    their bandwidth is Silverman's rule for each kind, and at least the median of the kinds. The bar under a ridge runs
    from the first to the third quartile and the dot is the median.

    :param frame: ``kind`` (such as "evidence–evidence, same question") and ``similarity``, a row a pair.

    >>> import polars as pl
    >>> from memlab.figures import similarity
    >>> pairs = pl.DataFrame({"kind": ["a", "a", "b", "b"], "similarity": [0.1, 0.3, 0.6, 0.7]})
    >>> len(similarity.evidence_similarity(pairs).data)
    6
    """
    style.need(frame, ("kind", "similarity"), "evidence_similarity")
    samples = {kind: _finite(rows["similarity"], kind) for kind, rows in style.parts(frame, "kind")}
    widths = {kind: _silverman(values) for kind, values in samples.items()}
    # A kind of few pairs would be drawn as needles: none is finer than the median kind.
    finest = float(np.median(list(widths.values())))
    traces, labels = list[Any](), list[dict[str, Any]]()
    for i, (kind, values) in enumerate(samples.items()):
        base, colour = float(len(samples) - 1 - i), style.colour(i)
        low, middle, high = (float(q) for q in np.quantile(values, (0.25, 0.5, 0.75)))
        x, density = _density(values, max(widths[kind], finest))
        heights = base + _RIDGE_SHARE * density / density.max()
        traces += [
            style.line([x[0], *x, x[-1]], [base, *heights, base], plain(kind), colour, width=1,
                       line={"simplify": False}, fill="toself", fillcolor=style.faded(colour, 0.3), hoverinfo="skip"),
            style.line([low, high], [base] * 2, plain(kind), colour, width=3.5, hoverinfo="x"),
            go.Scatter(x=[middle], y=[base], mode="markers", hoverinfo="x", name=plain(kind),
                       marker={"color": "white", "size": 6, "line": {"color": style.INK, "width": 1.2}}),
        ]  # fmt: skip
        labels.append(
            {"kind": clean(kind), "numbers": f"median {middle:.2f}, n = {len(values):,}", "y": base, "colour": colour}
        )
    every = np.concatenate(list(samples.values()))
    left, right = float(every.min()), float(every.max())
    pad = (right - left or 0.1) * 0.04

    def layout_for(px: int) -> dict[str, Any]:
        rooms = [px - 34 - text_px(label["numbers"], style.SMALL) for label in labels]
        names = [wrap(label["kind"], room, style.SMALL, bold=True) for label, room in zip(labels, rooms, strict=True)]
        row = _ROW_PX + _SECOND_LINE_PX * (max(map(len, names)) > 1)
        texts = []
        for label, lines in zip(labels, names, strict=True):
            at = {"y": label["y"] + 1 - 6 / row, "yref": "y"}
            heading = "<br>".join(f"<b>{escape(line)}</b>" for line in lines)
            tint, grey = {"color": style.darker(label["colour"])}, {"color": style.GREY}
            texts.append(style.note(heading, 0, align="left", font=tint, **at))
            texts.append(style.note(label["numbers"], 1, anchor="right top", font=grey, **at))
        return style.layout(
            px, title=title, plot_px=row * len(labels) + 8, left=12, bottom=34, annotations=texts,
            xaxis={"title": {"text": "cosine similarity"}, "range": [left - pad, right + pad]},
            yaxis={"visible": False, "range": [-8 / row, len(labels)]},
        )  # fmt: skip

    return style.finish(traces, layout_for)


def _finite(values: pl.Series, kind: object) -> np.ndarray:
    array = values.cast(pl.Float64).drop_nulls().to_numpy()
    if not len(array) or not np.isfinite(array).all():
        raise DataError(f"kind {kind!r} has {'no similarity' if not len(array) else 'a similarity that is not finite'}")
    return array


def _silverman(values: np.ndarray) -> float:
    deviation = float(values.std())
    spread = min(deviation, float(np.subtract(*np.quantile(values, (0.75, 0.25)))) / 1.34) or deviation
    return max(0.9 * spread * len(values) ** -0.2, 0.005)


def _density(values: np.ndarray, width: float) -> tuple[np.ndarray, np.ndarray]:
    """Give a Gaussian kernel density over a binned sample (256 bins), within the range of the sample."""
    low, high = float(values.min()), float(values.max())
    if high - low < width:
        low, high = low - 2 * width, high + 2 * width
    counts, edges = np.histogram(values, bins=256, range=(low, high))
    centres = (edges[:-1] + edges[1:]) / 2
    x = np.linspace(low, high, 120)
    kernel = np.exp(-0.5 * ((x[:, None] - centres) / width) ** 2)
    return x, kernel @ counts


def evidence_matrix(
    matrix: np.ndarray, names: Sequence[str], *, evidence: Sequence[bool] | None = None, title: str = ""
) -> go.Figure:
    """Draw the similarities among one question's evidence and its hardest distractors, each pair once.

    Cells are drawn as squares, since a heat map would be a raster inside an SVG. Rows are named, and their numbers
    stand on the diagonal. Beside the cells stands the mean of each kind of pair.

    :param matrix: (n, n) similarities, n ≤ 60; written into the cells up to n = 12.
    :param names: n texts, in the order of the matrix; each begins at the sentence that tells most of the title.
    :param evidence: which rows are evidence: marked ★ and set off by a line where the kind changes.
    :param title: the question.
    :raises DataError: when the shapes differ or the matrix is too large to read.
    """
    values = np.asarray(matrix, dtype=float)
    n = len(names)
    if values.shape != (n, n) or not 0 < n <= _MATRIX_MAX or (evidence is not None and len(evidence) != n):
        raise DataError(
            f"evidence_matrix got a {values.shape} matrix and {n} names; give n × n with n names, n ≤ {_MATRIX_MAX}"
        )
    marks = list(evidence) if evidence is not None else [False] * n
    off_diagonal = values[~np.eye(n, dtype=bool)] if n > 1 else values.ravel()
    low, high = float(np.nanmin(off_diagonal)), float(np.nanmax(off_diagonal))
    pairs = [(i, j) for i in range(n) for j in range(i)]
    points = go.Scatter(
        x=[j for _, j in pairs], y=[i for i, _ in pairs], mode="markers", marker={"opacity": 0, "size": 8},
        text=[f"{i + 1} and {j + 1}: {values[i, j]:.3f}" for i, j in pairs], hoverinfo="text", showlegend=False,
    )  # fmt: skip
    white = {"color": "white", "width": 0.8}
    shapes = [
        {"type": "rect", "x0": j - 0.5, "x1": j + 0.5, "y0": i - 0.5, "y1": i + 0.5, "layer": "below", "line": white,
         "fillcolor": _shade(values[i, j], low, high)} for i, j in pairs
    ]  # fmt: skip
    line = {"type": "line", "line": {"color": style.INK, "width": 1.2}, "layer": "above"}
    for edge in (i - 0.5 for i in range(1, n) if marks[i] != marks[i - 1]):
        shapes.append({**line, "x0": -0.5, "x1": edge, "y0": edge, "y1": edge})
        shapes.append({**line, "x0": edge, "x1": edge, "y0": edge, "y1": n - 0.5})
    shown = [(i, j) for i, j in pairs if n <= 12 and np.isfinite(values[i, j])]
    means = _means(values, pairs, marks) if any(marks) else []

    def layout_for(px: int) -> dict[str, Any]:
        left = int(px * (0.38 if px <= style.WIDTHS["column"] else 0.5))
        side = min((px - left - 8) / n, 26)
        size, letters = min(style.SMALL - 1, side * 0.42), min(style.SMALL, max(side * 0.8, 5))
        texts = [
            {"text": f"{values[i, j]:.2f}".replace("0.", ".", 1), "x": j, "y": i,
             "font": {"size": size, "color": "white" if values[i, j] > low + 0.66 * (high - low) else style.INK}}
            for i, j in shown
        ]  # fmt: skip
        texts += [{"text": f"<b>{i + 1}</b>", "x": i, "y": i, "font": {"size": letters}} for i in range(n)]
        texts += [
            style.note(text, 1, 1, "right top", align="right", yshift=-2 - 12 * row, font={"size": style.SMALL})
            for row, text in enumerate(means) if text_px(text, style.SMALL) < side * (n - 2 - 12 * row / side) - 4
        ]  # fmt: skip
        rows = [
            escape(fit(f"{'★ ' if m else ''}{i + 1} {from_what_matters(t, title)}", left - 14, letters))
            for i, (t, m) in enumerate(zip(names, marks, strict=True))
        ]
        ticks = {"showgrid": False, "showline": False, "ticks": ""}
        return style.layout(
            px, title=title, plot_px=side * n, head_px=4, left=left, right=int(px - left - side * n), bottom=6,
            annotations=texts, shapes=shapes,
            xaxis={**ticks, "showticklabels": False, "range": [-0.5, n - 0.5]},
            yaxis={**ticks, "tickvals": list(range(n)), "tickfont": {"size": letters}, "ticktext": rows,
                   "range": [n - 0.5, -0.5]},
        )  # fmt: skip

    return style.finish([points], layout_for)


def _means(values: np.ndarray, pairs: list[tuple[int, int]], marks: list[bool]) -> list[str]:
    kinds: dict[int, list[float]] = {2: [], 1: [], 0: []}
    for i, j in pairs:
        kinds[marks[i] + marks[j]].append(values[i, j])
    names = {2: "★ with ★", 1: "★ with others", 0: "others"}
    return [
        f"{names[kind]}: mean {np.nanmean(of):.2f}, n = {len(of):,}".replace("0.", ".")
        for kind, of in kinds.items() if of
    ]  # fmt: skip


def _shade(value: float, low: float, high: float) -> str:
    if not np.isfinite(value):
        return "#F2F2F2"
    share = float(np.clip((value - low) / (high - low or 1), 0, 1))
    white, ink = np.array([247, 251, 255]), np.array([0, 90, 150])
    red, green, blue = np.round(white + share * (ink - white)).astype(int)
    return f"rgb({red},{green},{blue})"
