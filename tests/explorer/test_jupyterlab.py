"""The explorer as a person meets it: in JupyterLab, in a real browser, by mouse and keys."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from explored import BENCH, DATA, SCOPE
from lab_page import Page, notebook

from memlab.errors import ExportError
from memlab.explorer import answer_payload, build_scene, snippet
from memlab.figures import _browser

# Turns lie on a grid, so that a lasso is known to hold some and no others; the middle of a cluster lies in a row of it.
ACROSS = 12
GRID = f"""
import polars as pl
from explored import BENCH, DATA, SCOPE
at = pl.int_range(pl.len()).over("scope")
places = DATA.turns.select("turn_id", x=at % {ACROSS}, y=at // {ACROSS}, label=at // {ACROSS} % 3)
"""
CELLS = (
    f"{GRID}\nimport memlab\nexplorer = memlab.explore(BENCH, ['bm25', 'dense'], scope=SCOPE, places=places)\nexplorer",
    "print(explorer.selection)\nprint(*explorer.selection['turn_id'])",
)
TYPED = "When did I call the plumber?"
# Rows of the scene that the map marks as evidence, that it marks as returned, and that the table lists.
SHOWN = """[".over .evidence, .over .missed", ".over .hit, .over .false", "tr[data-i]"].map(kind =>
    [...document.querySelectorAll(`.memlab-explorer :is(${kind})`)].map(node => +node.dataset.i))"""

# How many turns lie under each name of a cluster.
COVERED = """(n => { const at = document.querySelector("canvas.points").getBoundingClientRect();
    const turns = [...Array(n).keys()].map(i => document.querySelector(".memlab-explorer").plot.getScreenPosition(i));
    return [...document.querySelectorAll(".over .name")].map(name => { const b = name.getBoundingClientRect();
        return turns.filter(([x, y]) => b.left < at.left + x && at.left + x < b.right
            && b.top < at.top + y && at.top + y < b.bottom).length; }); })"""


def drawn(page: Page, expected: dict[str, Any]) -> None:
    """Wait for an answer, its marks on the map and its rows in the table."""
    returned = [row["i"] for system in expected["systems"] for row in system["rows"]]
    listed = [row["i"] for system in expected["systems"] for row in (*system["rows"], *system["missed"])]
    wanted = json.dumps([expected["evidence"], returned, listed], separators=(",", ":"))
    page.until(f"JSON.stringify({SHOWN}) === {wanted!r}")


@pytest.mark.slow
def test_ask_hover_lasso_and_read_the_frame_back(tmp_path: Path) -> None:
    pytest.importorskip("jupyterlab")
    pytest.importorskip("anywidget")
    try:
        _browser.find_browser_path()
    except ExportError as error:
        pytest.skip(str(error))
    known: dict[str, Any] = {}
    exec(GRID, known)
    scene = build_scene(BENCH, SCOPE, places=known["places"])
    systems = ["bm25", "dense"]

    with notebook(tmp_path, CELLS) as page:
        page.run_cell(0)
        page.until(f"{SHOWN}[2].length")

        select = "document.querySelectorAll('.memlab-explorer select')[1]"
        first = page.js(f"{select}.value")
        page.js(f"{select}.focus()")
        page.key("ArrowUp" if page.js(f"{select}.selectedIndex > 1") else "ArrowDown")
        page.key("x")  # JupyterLab's key to cut the cell
        chosen = page.js(f"{select}.value")
        assert chosen != first
        (asked,) = DATA.questions.filter(query_id=chosen).iter_rows(named=True)
        of_bench = answer_payload(scene, BENCH, asked["text"], systems, query_id=chosen, evidence=asked["evidence"])
        assert of_bench["evidence"]
        drawn(page, of_bench)

        covered = page.js(f"{COVERED}({scene.turns.height})")
        assert covered
        assert set(covered) == {0}

        page.js("document.querySelector('.memlab-explorer input[type=range]').focus()")
        page.key("Home")
        page.until(f"{SHOWN}.slice(0, 2).flat().every(i => i === 0)")
        page.key("End")
        drawn(page, of_bench)

        page.enter(".memlab-explorer .ask", TYPED)
        drawn(page, answer_payload(scene, BENCH, TYPED, systems))
        assert page.js(f"{select}.selectedOptions[0].textContent") == "pick a question…"

        page.enter(".memlab-explorer input[title^=second]", "hybrid")
        drawn(page, answer_payload(scene, BENCH, TYPED, ["bm25", "hybrid"]))
        assert "△ returned by hybrid" in page.js("document.querySelector('.memlab-explorer .key').textContent")

        left, top = page.js("(b => [b.left, b.top])(document.querySelector('canvas.points').getBoundingClientRect())")
        plot = "document.querySelector('.memlab-explorer').plot"

        def at(i: int) -> tuple[float, float]:
            x, y = page.js(f"{plot}.getScreenPosition({i})")
            return left + x, top + y

        turn = scene.turns.row(17, named=True)
        page.mouse("Moved", *at(17))
        page.until("!document.querySelector('.memlab-explorer .tip').hidden")
        tip = page.js("document.querySelector('.memlab-explorer .tip').textContent")
        assert tip.startswith(turn["speaker"])
        assert tip.endswith(snippet(turn["text"], TYPED))

        inside = [row * ACROSS + column for row in (1, 2, 3) for column in (2, 3, 4, 5)]
        (x0, y0), (x1, y1) = at(inside[0]), at(inside[-1])
        dx, dy = (x1 - x0) / 6, (y1 - y0) / 4  # half of what lies between two turns
        x0, x1, y0, y1 = x0 - dx, x1 + dx, y0 - dy, y1 + dy
        page.shift_drag([(x0, y0), (x1, y0), (x1, y1), (x0, y1), (x0, y0 + dy / 4)])
        picked = page.until(
            "/\\d+(?= picked)/.exec(document.querySelector('.memlab-explorer .picked').textContent)?.[0]"
        )
        assert int(picked) == len(inside)

        page.run_cell(1)
        printed = page.printed(1)
        assert f"shape: ({picked}, {scene.turns.width})" in printed
        assert "│ turn_id" in printed
        assert sorted(printed.split("\n")[-1].split()) == sorted(scene.turns["turn_id"].gather(inside))

        # JupyterLab says nothing of its own at this level: nothing is let pass.
        assert page.complaints == []
        assert page.hosts == {"127.0.0.1"}
