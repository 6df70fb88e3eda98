"""The sliders of decay: a move changes the curve and the ranking, and a move that makes no curve is refused."""

from __future__ import annotations

import re
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import polars as pl
import pytest

from memlab.errors import DataError, ModelError
from memlab.figures import decay_live
from memlab.figures.origin import running
from memlab.knowledge import confidence
from memlab.knowledge.confidence import ConfidenceSettings
from memlab.knowledge.decay import FAMILIES, Exponential, PlateauLinear

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def facts(**more: object) -> pl.DataFrame:
    ages = [10.0, 100.0, 200.0, 300.0]
    return pl.DataFrame(
        {
            "text": ["Ann <b>rows</b>.", "Ann sings.", None, "Ann was here."],
            "subject": "Ann",
            "predicate": "plays",
            "object": "chess",
            "source": ["inferred", "observed", "stated", "stated"],
            "n_reinforced": [0, 0, 3, 0],
            "last_access": [NOW - timedelta(days=age) for age in ages],
            "superseded": [False, False, False, True],
            **more,
        }
    )


def line(live: decay_live.Live, curve: int = 1) -> np.ndarray:
    """Days and retention of a curve as it is drawn; each is followed by its mark in the legend."""
    paths = [path.get("d", "") for path in ElementTree.fromstring(live.svg).iter() if path.get("fill") == "none"]
    places = np.array(re.findall(r"[\d.]+", paths[2 * curve]), float).reshape(-1, 2)
    return np.column_stack([(places[:, 0] - 40) / 250 * 365, (150 - places[:, 1]) / 120])


def test_a_move_changes_curve_and_ranking() -> None:
    live = decay_live.sliders(facts(), now=NOW)
    start = line(live).copy()
    assert set(live.sliders) == {
        "plateau_days", "end_days", "floor", "reinforcement_step", "reinforcement_limit", "days_later",
    }  # fmt: skip
    assert live.ranking["statement"].to_list() == ["Ann plays chess", "Ann sings.", "Ann <b>rows</b>."]
    live.sliders["floor"].value = 0.0
    live.sliders["end_days"].value = 150.0
    assert not np.allclose(line(live), start)
    assert live.ranking["statement"].to_list() == ["Ann <b>rows</b>.", "Ann sings.", "Ann plays chess"]
    assert live.ranking["before"].to_list() == [3, 2, 1]
    assert live.settings.decay == PlateauLinear(30, 150.0, 0.0)
    # What is drawn is what the package computes.
    scored = confidence.score(facts().filter(~pl.col("superseded")), now=NOW, settings=live.settings)
    assert live.ranking["confidence"].to_list() == sorted(scored["confidence"], reverse=True)
    days, retention = line(live).T
    np.testing.assert_allclose(retention, live.settings.decay.retention(days), atol=2e-3)
    np.testing.assert_array_equal(line(live, 0), start)


@pytest.mark.parametrize("name", FAMILIES)
def test_every_family_has_a_slider_for_every_parameter_and_each_moves_something(name: str) -> None:
    live = decay_live.sliders(facts(), now=NOW)
    live.family.value = name
    assert live.settings.decay == FAMILIES[name]()
    for parameter, slider in live.sliders.items():
        before = (line(live).copy(), live.ranking)
        moved = slider.value * 0.7 or 100.0
        slider.value = moved
        if parameter == "decay":  # of base-level activation: it needs a second access
            continue
        changed = not np.array_equal(before[0], line(live)) or not before[1].equals(live.ranking)
        # The limit binds only where repetition reaches it.
        assert changed or parameter == "reinforcement_limit", parameter


def test_similarity_weighs_in_and_time_goes_on() -> None:
    live = decay_live.sliders(facts(vector=[0.9, 0.2, 0.1, 0.0]), now=NOW, settings=ConfidenceSettings(), top=2)
    assert live.ranking.height == 2
    row = live.ranking.row(0, named=True)
    assert row["statement"] == "Ann <b>rows</b>."
    assert row["score"] == pytest.approx(0.4 * 0.9 + 0.3 * row["confidence"])
    live.sliders["days_later"].value = 100.0
    assert live.ranking["age_days"][0] == pytest.approx(110)


def test_a_move_that_makes_no_curve_is_refused_and_the_last_one_stays() -> None:
    live = decay_live.sliders(facts(), now=NOW)
    svg, settings = live.svg, live.settings
    live.sliders["plateau_days"].value = 3000.0
    assert "it must come after plateau_days" in live.refused
    assert live.svg is svg
    assert live.settings == settings
    live.sliders["plateau_days"].value = 20.0
    assert live.refused == ""
    assert live.settings.decay == PlateauLinear(20.0)


def test_its_picture_has_its_words_in_well_formed_svg() -> None:
    live = decay_live.sliders(facts(vector=0.5), now=NOW, settings=ConfidenceSettings(decay=Exponential(90)))
    live.sliders["half_life_days"].value = 10.0
    shown = [element.text for element in ElementTree.fromstring(live.svg).iter()]
    for text in ("1 Ann <b>rows</b>.", "curve now", "curve at the start", "0.4 · similarity", "retention"):
        assert text in shown, f"{text!r} not drawn; drawn: {shown}"


def test_a_notebook_shows_the_widget() -> None:
    live = decay_live.sliders(facts(), now=NOW)
    assert "application/vnd.jupyter.widget-view+json" in live._repr_mimebundle_()
    book = Path(__file__).parents[2] / "notebooks" / "04_confidence_decay.ipynb"
    with running(book, {}):  # without a screen a widget would leave nothing
        assert live._repr_mimebundle_()["text/html"] == live.svg
        assert len(live._repr_mimebundle_()) == 2
    assert len(live.widget.children[1].children) == len(live.sliders)


def test_facts_without_times_are_ranked_too() -> None:
    undated = facts(last_access=pl.Series([None] * 4, dtype=pl.Datetime("us", "UTC")))
    live = decay_live.sliders(undated, now=NOW)
    assert live.ranking["confidence"].to_list() == [1.0, 0.7, 0.5]


def test_what_cannot_be_ranked_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DataError, match="no rows that still hold"):
        decay_live.sliders(facts(superseded=True), now=NOW)
    with pytest.raises(DataError, match="need the column text, or subject, predicate and object"):
        decay_live.sliders(facts().drop("text", "subject"), now=NOW)
    with pytest.raises(DataError, match="confidence needs the column"):
        decay_live.sliders(facts().drop("n_reinforced"), now=NOW)
    monkeypatch.setitem(sys.modules, "ipywidgets", None)
    with pytest.raises(ModelError, match=r"memlab\[lab\]"):
        decay_live.sliders(facts(), now=NOW)
