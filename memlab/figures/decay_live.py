"""Sliders for a decay curve, with the curve and the ranking of facts that it makes, drawn anew at every move."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

import numpy as np
import polars as pl

from memlab.errors import DataError, ModelError
from memlab.figures import style
from memlab.figures._text import escape, fit, plain
from memlab.figures.origin import RUNNING
from memlab.knowledge.confidence import ConfidenceSettings, score
from memlab.knowledge.decay import FAMILIES, SPACE, AnyCurve, family, parameters

_DAYS, _WEIGHTS = (1.0, 3650.0), (0.4, 0.3)
_ROW_PX, _WIDE_PX, _MIDDLE = 27, 676, 'text-anchor="middle"'


class Live:
    """Sliders, and what follows from where they stand.

    :ivar widget: what a notebook shows; so does the object itself.
    :ivar family: the drop-down list of families.
    :ivar sliders: by name: the parameters of the family, ``reinforcement_step``, ``reinforcement_limit`` and
        ``days_later``.
    :ivar settings: the settings as the sliders stand.
    :ivar ranking: the first facts: ``place`` (from 1), ``before`` (place at the start), ``statement``, ``age_days``,
        ``answers``, ``retention``, ``confidence``, ``vector`` and ``score``.
    :ivar svg: curve and ranking; where no screen is (a saved notebook, its HTML) it stands alone.
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
        self._box, self._message, self._shown = ipywidgets.VBox(), ipywidgets.HTML(), ipywidgets.HTML()
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
        self.svg = self._shown.value = _svg(self.ranking, curves, self._question)

    def _repr_mimebundle_(self, **options: Any) -> Any:
        still = {"text/html": self.svg, "text/plain": "sliders; open the notebook in JupyterLab to move them"}
        if RUNNING in os.environ:  # no screen: a widget would leave nothing in the saved notebook
            return still
        return still | self.widget._repr_mimebundle_(**options)


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


def _svg(ranking: pl.DataFrame, curves: Mapping[str, AnyCurve], title: str) -> str:
    """Draw the curves with the facts on them, and beside them the ranking with its scores.

    By hand: plotly takes a few hundred milliseconds for each new picture in JupyterLab.
    """
    tall = max(206, 34 + _ROW_PX * ranking.height + 16)
    head = _text(0, 14, fit(title, _WIDE_PX, 11, bold=True), 'font-weight="bold"')
    parts = [head, *_plotted(ranking, curves), *_listed(ranking, tall)]
    look = f"background:white;font:{style.TEXT}px {escape(style.FONT)}"
    size = f'width="{_WIDE_PX}" height="{tall}"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size} fill="{style.INK}" style="{look}">{"".join(parts)}</svg>'


def _text(x: float, y: float, said: str, more: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" {more}>{escape(said)}</text>'


def _plotted(ranking: pl.DataFrame, curves: Mapping[str, AnyCurve]) -> Iterator[str]:
    oldest = max(365.0, float(ranking["age_days"].max() or 0) * 1.05)  # type: ignore[arg-type]
    step = next((step for step in (60, 120, 365, 730, 1825) if oldest / step < 8), 3650)

    def at(days: float, share: float) -> tuple[float, float]:
        return 40 + 250 * days / oldest, 150 - 120 * share

    for share in (0, 0.5, 1):
        yield f'<path d="M40 {at(0, share)[1]}h250" stroke="{style.RULE}"/>'
        yield _text(36, at(0, share)[1] + 3, f"{share:g}", 'text-anchor="end"')
    for day in range(0, int(oldest) + 1, step):
        yield _text(at(day, 0)[0], 164, f"{day:,}", _MIDDLE)
    yield _text(165, 178, "days since the last access", _MIDDLE)
    yield _text(10, 90, "retention", f'{_MIDDLE} transform="rotate(-90 10 90)"')
    days = np.linspace(0, oldest, 80)
    looks = ((style.GREY, "5 4"), (style.colour(0), ""))
    for i, ((name, curve), (tint, dash)) in enumerate(zip(curves.items(), looks, strict=True)):
        points = "L".join(
            "{:.1f} {:.1f}".format(*at(*point)) for point in zip(days, curve.retention(days), strict=True)
        )
        for path in (points, f"{40 + 130 * i} 196h24"):
            yield f'<path d="M{path}" fill="none" stroke="{tint}" stroke-width="1.8" stroke-dasharray="{dash}"/>'
        yield _text(68 + 130 * i, 199, name)
    for row in ranking.drop_nulls("age_days").iter_rows(named=True):
        x, y = at(row["age_days"], row["retention"])
        mark, tint, size = ("★", style.EVIDENCE, 17) if row["answers"] else ("●", "white", 12)
        look = f'font-size="{size}" fill="{tint}" stroke="{style.INK}" {_MIDDLE} dominant-baseline="central"'
        yield f'<text x="{x:.1f}" y="{y:.1f}" {look}>{mark}<title>{plain(row["statement"])}</title></text>'


def _listed(ranking: pl.DataFrame, tall: int) -> Iterator[str]:
    """Write each fact above its bar, with how far it has moved since the start."""
    left, room, tints = 316, 330, (style.NOISE, style.colour(0))
    most = float(ranking["score"].max()) or 1.0  # type: ignore[arg-type]
    for i, row in enumerate(ranking.iter_rows(named=True)):
        y, moved = 34 + _ROW_PX * i, row["before"] - row["place"]
        shift = f" {'▲' if moved > 0 else '▼'}{abs(moved)}" if moved else ""
        said = f"{'★ ' * row['answers']}{row['place']}{shift}  {row['statement']}"
        # A browser may draw a wider font than the one that is measured here.
        yield _text(left, y, fit(said, 285, style.TEXT, bold=row["answers"]), 'font-weight="bold"' * row["answers"])
        similar = _WEIGHTS[0] * (row["vector"] or 0.0)
        for start, width, tint in ((0.0, similar, tints[0]), (similar, row["score"] - similar, tints[1])):
            x, wide = left + room * start / most, room * max(width, 0) / most
            yield f'<rect x="{x:.1f}" y="{y + 4}" width="{wide:.1f}" height="6" fill="{tint}"/>'
        yield _text(_WIDE_PX - 4, y + 11, f"{row['score']:.2f}", 'text-anchor="end"')
    if ranking["vector"].null_count() < ranking.height:
        for i, (weight, name) in enumerate(zip(_WEIGHTS, ("similarity", "confidence"), strict=True)):
            yield f'<rect x="{left + 130 * i}" y="{tall - 16}" width="8" height="8" fill="{tints[i]}"/>'
            yield _text(left + 12 + 130 * i, tall - 8, f"{weight} · {name}")
