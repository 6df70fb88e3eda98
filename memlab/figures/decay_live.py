"""Sliders for a decay curve, with the curve and the ranking of facts that it makes, drawn anew at every move."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

import numpy as np
import polars as pl

from memlab.errors import DataError, ModelError
from memlab.figures import style
from memlab.figures._plotly import go
from memlab.figures._text import escape, fit, plain
from memlab.knowledge.confidence import ConfidenceSettings, score
from memlab.knowledge.decay import FAMILIES, SPACE, AnyCurve, family, parameters

_DAYS, _WEIGHTS = (1.0, 3650.0), (0.4, 0.3)
_ROW_PX, _CURVE_PX, _GAP_PX = 25, 96, 46
_STAR = {"symbol": "star", "size": 11, "color": style.EVIDENCE, "line": {"color": "black", "width": 1}}


class Live:
    """Sliders, and what follows from where they stand.

    :ivar widget: what a notebook shows; so does the object itself.
    :ivar family: the drop-down list of families.
    :ivar sliders: by name: the parameters of the family, ``reinforcement_step``, ``reinforcement_limit`` and
        ``days_later``.
    :ivar settings: the settings as the sliders stand.
    :ivar ranking: the first facts: ``place`` (from 1), ``before`` (place at the start), ``statement``, ``age_days``,
        ``answers``, ``retention``, ``confidence``, ``vector`` and ``score``.
    :ivar figure: curve and ranking, for :func:`memlab.figures.export`.
    :ivar refused: why the last move was not followed; empty if it was.
    """

    def __init__(
        self, facts: pl.DataFrame, now: datetime, settings: ConfidenceSettings, top: int, question: str
    ) -> None:
        import ipywidgets

        self._question = question
        self._facts, self._now, self._first, self._top = facts, now, settings, top
        self._start = _scored(facts, now, settings)
        self.settings, self.refused = settings, ""
        self._others = {
            "reinforcement_step": _slider("reinforcement_step", settings.reinforcement_step, (0.0, 1.0), log=False),
            "reinforcement_limit": _slider("reinforcement_limit", settings.reinforcement_limit, (1.0, 5.0), log=False),
            "days_later": _slider("days_later", 0.0, (0.0, 730.0), log=False),
        }
        self.family = ipywidgets.Dropdown(options=list(FAMILIES), value=settings.decay.family, description="family")
        self._box, self._message, self._shown = ipywidgets.VBox(), ipywidgets.HTML(), ipywidgets.Output()
        for slider in self._others.values():
            slider.observe(self._moved, "value")
        self.family.observe(self._chosen, "value")
        self._fill(settings.decay)
        self.widget = ipywidgets.VBox([self.family, self._box, self._message, self._shown])
        self._moved()

    def _fill(self, curve: AnyCurve) -> None:
        space = {p.name: p for p in SPACE[curve.family]}
        own = {}
        for name, value in parameters(curve).items():
            p = space[name]
            span = _DAYS if name.endswith("_days") else (p.low, p.high)
            own[name] = _slider(name, value, span, log=p.log)
            own[name].observe(self._moved, "value")
        self.sliders = own | self._others
        self._box.children = tuple(self.sliders.values())

    def _chosen(self, _: Any) -> None:
        self._fill(family(self.family.value)())
        self._moved()

    def _moved(self, _: Any = None) -> None:
        own = {name: slider.value for name, slider in self.sliders.items() if name not in self._others}
        try:
            curve = family(self.family.value)(**own)
        except DataError as error:
            self.refused = str(error)
            self._message.value = plain(error)
            return
        self.refused = self._message.value = ""
        fixed = {name: self._others[name].value for name in ("reinforcement_step", "reinforcement_limit")}
        self.settings = self._first.model_copy(update={"decay": curve, **fixed})
        now = self._now + timedelta(days=self._others["days_later"].value)
        table = _scored(self._facts, now, self.settings).join(self._start.select("row", before="place"), on="row")
        table = table.sort("place").drop("row")
        # The first right answer is always shown, in the last row where it ranks further down.
        answer = table.filter("answers").head(1).filter(pl.col("place") > self._top)
        self.ranking = pl.concat([table.head(self._top - answer.height), answer])
        curves = {"curve at the start": self._first.decay, "curve now": curve}
        self.figure = curve_and_ranking(self.ranking, curves, title=self._question)
        # As drawn, at the width of a page: a copy for it would take as long as all the rest of a move.
        drawn = json.loads(self.figure.to_json())
        drawn["layout"].pop("meta")
        shown = {"application/vnd.plotly.v1+json": drawn}
        # Set, not captured: capturing takes messages both ways, which a notebook that is run without a screen may lose.
        self._shown.outputs = ({"output_type": "display_data", "data": shown, "metadata": {}},)

    def _repr_mimebundle_(self, **options: Any) -> Any:
        return self.widget._repr_mimebundle_(**options)


def sliders(
    facts: pl.DataFrame,
    *,
    now: datetime,
    settings: ConfidenceSettings | None = None,
    top: int = 8,
    question: str = "",
) -> Live:
    """Make sliders for every parameter of a decay family, and rank facts by where they stand.

    :param facts: what :func:`memlab.knowledge.confidence.score` takes, with ``text`` or ``subject``, ``predicate`` and
        ``object``; with ``vector`` (similarity to a question) the rank is by 0.4 · vector + 0.3 · confidence, else by
        confidence; with ``answers`` (bool) those that answer the question are starred. Superseded facts are left out.
    :param now: when the facts are read; the slider ``days_later`` is added to it.
    :param settings: where the sliders begin; those of memlab where not given.
    :param top: how many facts are shown.
    :param question: stands above the picture.
    :raises DataError: for facts that cannot be scored, or none.
    :raises ModelError: where ipywidgets is not installed.

    >>> from datetime import datetime
    >>> import polars as pl
    >>> from memlab.figures import decay_live
    >>> facts = pl.DataFrame({"text": ["Ann rows.", "Ann sings."], "source": ["stated", "observed"],
    ...     "n_reinforced": [0, 4], "last_access": [datetime(2025, 1, 1)] * 2, "superseded": [False] * 2})
    >>> live = decay_live.sliders(facts, now=datetime(2025, 1, 8))
    >>> live.ranking["statement"].to_list()
    ['Ann rows.', 'Ann sings.']
    >>> live.sliders["reinforcement_step"].value = 0.0
    >>> live.ranking["confidence"].to_list()
    [1.0, 0.7]
    """
    try:
        import ipywidgets  # noqa: F401
    except ImportError as error:
        raise ModelError('sliders need ipywidgets, which is not installed; run: pip install "memlab[lab]"') from error
    start = settings or ConfidenceSettings()
    if "superseded" in facts.columns:
        facts = facts.filter(~pl.col("superseded"))
    if facts.is_empty():
        raise DataError("there is no fact to rank: the frame has no rows that still hold")
    spoken = {"text": pl.col("text"), "subject": pl.concat_str("subject", "predicate", "object", separator=" ")}
    statements = [words for column, words in spoken.items() if column in facts.columns]
    if not statements:
        raise DataError("facts to rank need the column text, or subject, predicate and object")
    answers = [] if "answers" in facts.columns else [pl.lit(False).alias("answers")]
    facts = facts.with_columns(*answers, statement=pl.coalesce(statements)).with_row_index("row")
    return Live(facts, now, start, top, question)


def _slider(name: str, value: float, span: tuple[float, float], *, log: bool) -> Any:
    import ipywidgets

    low, high = min(span[0], value), max(span[1], value)
    look = {"description": name.replace("_", " "), "style": {"description_width": "140px"},
            "layout": ipywidgets.Layout(width="480px"), "readout_format": ".3g"}  # fmt: skip
    if not log:
        return ipywidgets.FloatSlider(value=value, min=low, max=high, step=(high - low) / 200, **look)
    return ipywidgets.FloatLogSlider(value=value, min=np.log10(max(low, 0.01)), max=np.log10(high), step=0.01, **look)


def _scored(facts: pl.DataFrame, now: datetime, settings: ConfidenceSettings) -> pl.DataFrame:
    table = score(facts, now=now, settings=settings)
    if "vector" not in facts.columns:
        table = table.with_columns(vector=pl.lit(None, pl.Float64))
    weighed = _WEIGHTS[0] * pl.col("vector") + _WEIGHTS[1] * pl.col("confidence")
    table = table.with_columns(score=pl.coalesce(weighed, "confidence"))
    table = table.sort("score", descending=True, maintain_order=True).with_row_index("place", offset=1)
    return table.select(
        "row", "place", "statement", "answers", "age_days", "retention", "confidence", "vector", "score"
    )


def curve_and_ranking(ranking: pl.DataFrame, curves: Mapping[str, AnyCurve], *, title: str = "") -> go.Figure:
    """Draw the ranking of facts that a decay curve makes, under that curve and the one at the start.

    :param ranking: ``place``, ``before``, ``statement``, ``answers``, ``age_days``, ``retention``, ``confidence``,
        ``score``, and ``vector``, null where the rank is by confidence alone; see :class:`Live`.
    :param curves: the curve at the start and the one now.
    """
    style.need(ranking, ("place", "before", "statement", "answers", "age_days", "retention", "score"), "ranking")
    dated = ranking.drop_nulls("age_days")
    oldest = max(365.0, float(dated["age_days"].max() or 0) * 1.05)  # type: ignore[arg-type]
    days = np.linspace(0, oldest, 200)
    own: dict[str, Any] = {"color": style.colour(0), "width": 1.8, "line": {"simplify": False}}
    traces: list[Any] = [
        style.line(days, curve.retention(days), name, hoverinfo="name+x+y", **look)
        for (name, curve), look in zip(curves.items(), ({"dash": "dash", "width": 1.2}, own), strict=False)
    ]
    for answers, name in ((False, "a fact, ranked"), (True, "one that answers")):
        its = dated.filter(pl.col("answers") == answers)
        if its.height:
            look = _STAR if answers else {"color": "white", "size": 6, "line": {"color": style.INK, "width": 1.2}}
            traces.append(
                go.Scatter(x=its["age_days"].to_list(), y=its["retention"].to_list(), mode="markers", name=name,
                           cliponaxis=False, marker=look, hoverinfo="text", text=list(map(plain, its["statement"])))
            )  # fmt: skip
    parts = {"confidence": ranking["score"]}
    if ranking["vector"].null_count() < ranking.height:
        similar = _WEIGHTS[0] * ranking["vector"].fill_null(0)
        parts = {f"{_WEIGHTS[0]} · similarity": similar, f"{_WEIGHTS[1]} · confidence": ranking["score"] - similar}
    rows = [float(ranking.height - place) for place in range(ranking.height)]
    for (name, share), tint in zip(parts.items(), [style.NOISE, style.colour(0)][-len(parts) :], strict=True):
        traces.append(
            go.Bar(x=share.to_list(), y=rows, name=name, marker={"color": tint}, orientation="h", width=0.28,
                   hoverinfo="x+name", **style.axes(1))
        )  # fmt: skip
    most = float(ranking["score"].max()) or 1.0  # type: ignore[arg-type]
    facets: list[dict[str, Any]] = [
        {"px": _CURVE_PX, "xaxis": {"title": {"text": "days since the last access"}, "nticks": 6, "range": [0, oldest]},
         "yaxis": {"title": {"text": "retention"}, "range": [0, 1.03]}},
        {"px": _ROW_PX * ranking.height + 8,
         "xaxis": {"title": {"text": "score"}, "range": [0, most * 1.05], "nticks": 5},
         "yaxis": {"visible": False, "range": [0.5, ranking.height + 0.75]}},
    ]  # fmt: skip

    def layout_for(px: int) -> dict[str, Any]:
        columns = 1 if px <= style.WIDTHS["column"] else 2
        shown = facets if columns == 1 else [facet | {"px": facets[1]["px"]} for facet in facets]
        return style.panels(
            px, shown, columns=columns, gap=(44, _GAP_PX), title=title, names=[trace.name for trace in traces],
            bottom=38, barmode="stack",
            annotations=_listed(ranking, (px - 42 - 12 - 44 * (columns - 1)) / columns),
        )  # fmt: skip

    return style.finish(traces, layout_for)


def _listed(ranking: pl.DataFrame, room: float) -> list[dict[str, Any]]:
    """Write each fact above its bar, with how far it has moved since the start."""
    notes = []
    for i, row in enumerate(ranking.to_dicts()):
        moved = row["before"] - row["place"]
        shift = f" {'▲' if moved > 0 else '▼'}{abs(moved)}" if moved else ""
        text = f"{'★ ' * row['answers']}{row['place']}{shift}  {row['statement']}"
        text = escape(fit(text, room - 8, style.SMALL, bold=row["answers"]))
        text = f"<b>{text}</b>" if row["answers"] else text
        notes.append(style.note(text, 0, ranking.height - i + 0.2, "left bottom", xref="x2", yref="y2"))
    return notes
