"""The map as one file: what it holds, and what a person does with it in a browser, from disk."""

from __future__ import annotations

import base64
import gzip
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from browser import Page
from explored import DATA, PLACES, SCOPE

import memlab
from memlab.errors import DataError, ExportError
from memlab.figures import browser_rendering

HOSTILE = '</script><img src="x" onerror="window.broken = 1"><!-- & \ud800'
MAP = "document.querySelector('.memlab-explorer')"
SHOWN = f"+{MAP}.dataset.shown"


def hostile_data() -> memlab.Dataset:
    """Give the conversation with mark-up as a text, a speaker and a question."""
    first = pl.int_range(pl.len()) == 0
    turns = DATA.turns.with_columns(
        text=pl.when(first).then(pl.lit(HOSTILE[:-2])).otherwise("text"),
        speaker=pl.when(first).then(pl.lit("<b>Eve</b>")).otherwise("speaker"),
    )
    questions = DATA.questions.with_columns(text=pl.concat_str("text", pl.lit(" </script>")))
    return replace(DATA, turns=turns, questions=questions)


def written_page(folder: Path, data: memlab.Dataset = DATA) -> tuple[Any, Path]:
    bench = memlab.Bench.of(data, encoder="hashing")
    explorer = memlab.explore(bench, ["bm25", "dense"], scope=SCOPE, places=PLACES)
    return explorer, explorer.save_html(folder / "map.html", title="<i>a map</i>")


def packed(page: str, name: str) -> Any:
    text = re.search(f'id="{name}">([^<]*)<', page)
    assert text is not None
    return json.loads(gzip.decompress(base64.b64decode(text[1])))


def test_a_page_holds_texts_and_answers_and_reaches_for_nothing(tmp_path: Path) -> None:
    explorer, path = written_page(tmp_path, hostile_data())
    page = path.read_text("utf-8")
    assert packed(page, "memlab-texts") == explorer.scene.turns["text"].to_list()
    state = packed(page, "memlab-map")
    asked = DATA.questions.filter(scope=SCOPE)["query_id"].to_list()
    assert sorted(state["views"]) == sorted(asked)
    assert state["question"] == explorer.question
    for system, own in zip(state["_view"]["systems"], explorer.answer["systems"], strict=True):
        assert system["name"] == own["name"]
        assert system["rows"] == own["rows"]
        assert system["missed"] == own["missed"]
    assert 'onerror="window' not in page
    assert "<i>" not in page
    assert "connect-src" not in page
    assert "default-src &#x27;none&#x27;" in page
    outside = re.findall(r'(?:src|href)="[^"]*"|url\([^)]*\)|@import', page.split("<script")[0])
    assert outside == []
    assert f"{len(asked)} of {len(asked)} questions answered" in page
    assert explorer.save_html(path) == path, "it is replaced"
    typed = "When did I call the plumber?"
    explorer.question = typed
    state = packed(explorer.save_html(path, questions=2).read_text("utf-8"), "memlab-map")
    assert state["question"] == typed
    assert len(state["views"]) == 3
    assert state["_view"]["text"] == typed


def test_a_page_that_cannot_be_written_leaves_nothing(tmp_path: Path) -> None:
    explorer, path = written_page(tmp_path)
    before = path.read_bytes()
    with pytest.raises(DataError, match="a folder that exists"):
        explorer.save_html(tmp_path / "nowhere" / "map.html")
    with pytest.raises(DataError, match="a folder that exists"):
        explorer.save_html(tmp_path)
    explorer.systems = ["nosuchstage"]
    with pytest.raises(memlab.errors.MemlabError, match="nosuchstage"):
        explorer.save_html(path)
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["map.html"]


def test_a_conversation_without_questions_dates_or_speakers_is_a_page(tmp_path: Path) -> None:
    bare = DATA.turns.with_columns(
        timestamp=pl.lit(None, DATA.turns.schema["timestamp"]), speaker=pl.lit("")
    )
    _, path = written_page(tmp_path, replace(DATA, turns=bare, questions=DATA.questions.clear()))
    state = packed(path.read_text("utf-8"), "memlab-map")
    assert state["_scene"]["times"] is None
    assert state["_scene"]["colours"]["speaker"]["names"] == ["nobody"]
    assert (state["views"], state["_view"], state["question"]) == ({}, {}, "")


@pytest.mark.slow
def test_hover_search_narrow_isolate_and_go_back(tmp_path: Path) -> None:
    try:
        browser_rendering.find_browser_path()
    except ExportError as error:
        pytest.skip(str(error))
    explorer, path = written_page(tmp_path, hostile_data())
    turns = explorer.scene.turns
    page = Page(path.as_uri(), width=1300, height=1000)
    try:
        page.until(f"{MAP}?.dataset.ms")
        assert page.js(SHOWN) == turns.height
        left, top = page.js(
            "(b => [b.left, b.top])(document.querySelector('canvas.points').getBoundingClientRect())"
        )

        def at(i: int) -> tuple[float, float]:
            x, y = page.js(f"{MAP}.plot.getScreenPosition({i})")
            return left + x, top + y

        # The default view fills the frame.
        corners = [at(0), at(turns.height - 1)]
        wide, high = page.js(
            "(b => [b.width, b.height])(document.querySelector('canvas.points').getBoundingClientRect())"
        )
        filled = (
            abs(corners[0][0] - corners[1][0]) / wide,
            abs(corners[0][1] - corners[1][1]) / high,
        )
        assert max(filled) > 0.85

        first = turns.with_row_index("i").filter(speaker="<b>Eve</b>")["i"].item()
        page.mouse("Moved", *at(first))
        page.until(f"!{MAP}.querySelector('.tip').hidden")
        tip = page.js(f"{MAP}.querySelector('.tip').textContent")
        assert tip.startswith("<b>Eve</b> · ")
        assert tip.endswith(HOSTILE[:-2])

        word = "the"
        page.enter(".memlab-explorer .find", word)
        has = turns.filter(pl.col("text").str.to_lowercase().str.contains(word, literal=True))
        assert 0 < has.height < turns.height
        page.until(f"{SHOWN} === {has.height}")
        assert explorer.find(word).len() == has.height
        page.js(f"{MAP}.querySelector('.find').value = ''")
        page.click(*page.centre(".memlab-explorer .find"))
        page.key("Enter")
        page.until(f"{SHOWN} === {turns.height}")

        def choose(title: str, value: str) -> None:
            node = f"{MAP}.querySelector('select[title^=\"{title}\"]')"
            page.js(f"{node}.value = {value!r}, {node}.dispatchEvent(new Event('change'))")

        speaker = turns["speaker"].value_counts(sort=True).row(0)
        choose("show one speaker", "0")
        page.until(f"{SHOWN} === {speaker[1]}")
        choose("show one cluster", "1")
        both = turns.filter(pl.col("label") == 1, speaker=speaker[0]).height
        page.until(f"{SHOWN} === {both}")
        choose("show one speaker", "")
        choose("show one cluster", "")
        page.until(f"{SHOWN} === {turns.height}")

        own = f"{MAP}.querySelector('input[title^=\"show what the question\"]')"
        page.js(f"{own}.click()")
        view = explorer.answer
        rows = {row["i"] for system in view["systems"] for row in system["rows"]}
        page.until(f"{SHOWN} === {len(rows | set(view['evidence']))}")
        page.js(f"{own}.click()")
        page.until(f"{SHOWN} === {turns.height}")

        page.click(*page.centre(".memlab-explorer .entry[data-code='2']"))
        page.until(f"{SHOWN} === {turns.filter(pl.col('label') == 2).height}")
        page.click(*page.centre(".memlab-explorer .entry[data-code='2']"))
        page.until(f"{SHOWN} === {turns.height}")

        page.js(f"{MAP}.querySelector('input[title=\"hide what is earlier\"]').value = 500")
        page.js(
            f"{MAP}.querySelector('input[title=\"hide what is earlier\"]')"
            ".dispatchEvent(new Event('input'))"
        )
        middle = turns["timestamp"].sort()[turns.height // 2]
        later = turns.filter(pl.col("timestamp") >= middle).height
        page.until(f"{SHOWN} === {later}")
        page.js(f"{MAP}.querySelector('input[title=\"hide what is earlier\"]').value = 0")
        page.js(
            f"{MAP}.querySelector('input[title=\"hide what is earlier\"]')"
            ".dispatchEvent(new Event('input'))"
        )

        # A question of the page, and a zoom to one of its rows, from which there is a way back.
        others = [question for question in view_ids(path) if question != explorer.question]
        choose("the conversation", others[0])
        shown = packed(path.read_text("utf-8"), "memlab-map")["views"][others[0]]
        listed = f"[...{MAP}.querySelectorAll('.side tr[data-i]')].map(row => +row.dataset.i)"
        wanted = [
            row["i"] for system in shown["systems"] for row in (*system["rows"], *system["missed"])
        ]
        page.until(f"JSON.stringify({listed}) === {json.dumps(wanted, separators=(',', ':'))!r}")
        about = page.js(f"{MAP}.querySelector('.side td.about').textContent")
        turn = turns.row(wanted[0], named=True)
        assert about == f"{turn['speaker']}{turn['timestamp']:%Y-%m-%d}"
        eye = f"[...{MAP}.plot.get('cameraView')].map(v => v.toFixed(4)).join()"
        before = page.js(eye)
        page.click(*page.centre(".memlab-explorer .side tr[data-i]"))
        page.until(f"{eye} !== {before!r}")
        page.until(f"!{MAP}.querySelector('button[title=\"the view before\"]').disabled")
        page.until(
            f"{MAP}.querySelector('.chosen-turns').textContent.includes({turn['text'][:12]!r})"
        )
        # The way there is animated: its end is one of the views that "back" passes over.
        page.until(
            f"({MAP}.querySelector('button[title=\"the view before\"]').click(), {eye} === {before!r})"
        )
        assert page.js("window.broken") is None
        assert page.complaints == []
        assert page.hosts == set()
    finally:
        page.close()


@pytest.mark.slow
def test_a_large_map_is_dragged_and_zoomed_as_pixels_and_lands_where_they_were(
    tmp_path: Path,
) -> None:
    try:
        browser_rendering.find_browser_path()
    except ExportError as error:
        pytest.skip(str(error))
    explorer, path = written_page(tmp_path)
    text = path.read_text("utf-8")
    path.write_text(text.replace("MANY = 20000", "MANY = 100"), "utf-8")
    assert explorer.scene.turns.height > 100
    page = Page(path.as_uri(), width=1300, height=1000)
    points = f"[0, 7, 30].map(i => {MAP}.plot.getScreenPosition(i))"
    eye = f"[...{MAP}.plot.get('cameraView')].join()"
    try:
        page.until(f"{MAP}?.dataset.ms")
        left, top = page.js(
            "(b => [b.left, b.top])(document.querySelector('canvas.points').getBoundingClientRect())"
        )
        before, seen = page.js(points), page.js(eye)
        page.mouse("Moved", left + 200, top + 200)
        page.mouse("Pressed", left + 200, top + 200, button="left", buttons=1, clickCount=1)
        page.mouse("Moved", left + 240, top + 215, button="left", buttons=1)
        page.mouse("Moved", left + 290, top + 225, button="left", buttons=1)
        page.until(f"!{MAP}.querySelector('canvas.moving').hidden")
        assert page.js(eye) == seen, "the plot waits"
        page.mouse("Released", left + 290, top + 225, button="left", clickCount=1)
        page.until(f"{MAP}.querySelector('canvas.moving').hidden")
        dragged = page.js(points)
        for (x, y), (was_x, was_y) in zip(dragged, before, strict=True):
            assert (x - was_x, y - was_y) == pytest.approx((90, 25), abs=0.5)
        assert page.js(f"{MAP}.querySelector('.chosen-turns').textContent") == "", "no click"

        page.mouse("Wheel", left + 300, top + 150, deltaX=0, deltaY=-200)
        page.until(f"{eye} !== {page.js(eye)!r}")
        page.until(f"{MAP}.querySelector('canvas.moving').hidden")
        zoomed = page.js(points)
        factors = []
        for place, old in zip(zoomed, dragged, strict=True):
            for now, was, centre in zip(place, old, (300, 150), strict=True):
                if abs(was - centre) > 40:
                    factors.append((now - centre) / (was - centre))
        assert factors[0] > 1.1
        assert factors == pytest.approx([factors[0]] * len(factors), abs=0.02)
        assert page.complaints == []
    finally:
        page.close()


def view_ids(path: Path) -> list[str]:
    return list(packed(path.read_text("utf-8"), "memlab-map")["views"])
