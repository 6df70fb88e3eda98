"""The explorer as a person meets it: in JupyterLab, in a real browser, by mouse and keys."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import explored
import nbformat
import pytest
from browser import CELL, Page, wait_for
from explored import ACROSS, BENCH, DATA
from nbformat import v4

from memlab.errors import ExportError
from memlab.explorer import answer_payload, snippet
from memlab.figures import browser_rendering

ROOT = Path(__file__).parents[2]
# News and newer versions would be asked of the network; nothing may be.
SERVER = ("--no-browser", "--allow-root", "--ip=127.0.0.1", "--port=0", "--ServerApp.port_retries=0",
           "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
           "--LabApp.extension_manager=readonly")  # fmt: skip
NEWS = "JUPYTER_CONFIG_DIR/lab/user-settings/@jupyterlab/apputils-extension/notification.jupyterlab-settings"
OWN = "HOME JUPYTER_CONFIG_DIR JUPYTER_DATA_DIR JUPYTER_RUNTIME_DIR IPYTHONDIR XDG_CONFIG_HOME XDG_CACHE_HOME"


@contextmanager
def notebook(folder: Path, cells: Sequence[str]) -> Iterator[Page]:
    """Open a notebook of these cells; the server, its files and its kernel live in the folder, and end here."""
    root, news, log, token = (
        folder / "root",
        folder / NEWS,
        folder / "server.log",
        os.urandom(16).hex(),
    )
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    root.mkdir()
    nbformat.write(
        v4.new_notebook(cells=[*map(v4.new_code_cell, cells)], metadata=kernel), root / "map.ipynb"
    )
    news.parent.mkdir(parents=True)
    news.write_text('{"fetchNews": "false"}')
    paths = os.pathsep.join([str(ROOT), str(ROOT / "tests" / "helpers")])
    env = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("JUPYTER", "MEMLAB_"))
    }
    env |= {name: str(folder / name) for name in OWN.split()} | {
        "PYTHONPATH": paths,
        "JUPYTER_TOKEN": token,
    }
    command = [sys.executable, "-m", "jupyterlab", *SERVER, f"--ServerApp.root_dir={root}"]
    with (
        log.open("wb") as out,
        subprocess.Popen(command, env=env, cwd=root, stdout=out, stderr=out) as server,
    ):

        def address() -> str:
            assert server.poll() is None, (
                f"JupyterLab did not start: {log.read_text(errors='replace')[-2000:]}"
            )
            written = (
                file.read_text()
                for file in (folder / "JUPYTER_RUNTIME_DIR").glob("jpserver-*.json")
            )
            return next(
                (json.loads(text)["url"] for text in written if text.rstrip().endswith("}")), ""
            )

        try:
            with closing(
                Page(f"{wait_for(address, log.name)}lab/tree/map.ipynb?token={token}")
            ) as page:
                yield page
        finally:
            server.terminate()  # it ends its kernels, which takes a while


CELLS = (
    "from explored import *\nexplorer = memlab.explore(BENCH, ['bm25', 'dense'], scope=SCOPE, places=PLACES)\nexplorer",
    "print(explorer.colour, explorer.until)\nprint(explorer.selection)\nprint(*explorer.selection['turn_id'])",
)
TYPED = "When did I call the plumber?"
EXPLORER = "document.querySelector('.memlab-explorer')"
# Rows of the scene that the map marks as evidence, that it marks as returned, and that the table
# lists.
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
    listed = [
        row["i"] for system in expected["systems"] for row in (*system["rows"], *system["missed"])
    ]
    wanted = json.dumps([expected["evidence"], returned, listed], separators=(",", ":"))
    page.until(f"JSON.stringify({SHOWN}) === {wanted!r}")


@pytest.mark.slow
def test_ask_hover_lasso_and_read_the_frame_back(tmp_path: Path) -> None:
    pytest.importorskip("jupyterlab")
    try:
        browser_rendering.find_browser_path()
    except ExportError as error:
        pytest.skip(str(error))
    scene, systems = explored.scene(), ["bm25", "dense"]
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
        of_bench = answer_payload(
            scene, BENCH, asked["text"], systems, query_id=chosen, evidence=asked["evidence"]
        )
        assert of_bench["evidence"]
        drawn(page, of_bench)

        covered = page.js(f"{COVERED}({scene.turns.height})")
        assert covered
        assert set(covered) == {0}

        page.js(f"{EXPLORER}.querySelector('input[title*=memory]').focus()")
        page.key("Home")
        page.until(f"{SHOWN}.slice(0, 2).flat().every(i => i === 0)")
        page.key("End")
        drawn(page, of_bench)

        # Until the answer is there a sign says so, and nothing of the question before is on the map.
        page.js(f"""window.seen = [], new MutationObserver(() => window.seen.push(
            [{EXPLORER}.dataset.busy, {SHOWN}.flat().length])).observe({EXPLORER}, {{attributes: true}})""")
        page.enter(".memlab-explorer .ask", TYPED)
        drawn(page, answer_payload(scene, BENCH, TYPED, systems))
        page.until(f"{EXPLORER}.dataset.busy === ''")
        while_busy = [marks for busy, marks in page.js("window.seen") if busy]
        assert while_busy
        assert not any(while_busy)
        assert page.js(f"{EXPLORER}.querySelector('.busy').hidden")
        assert page.js(f"{select}.selectedOptions[0].textContent") == "pick a question…"

        page.enter(".memlab-explorer input[title^=second]", "hybrid")
        drawn(page, answer_payload(scene, BENCH, TYPED, ["bm25", "hybrid"]))
        assert "△ returned by hybrid" in page.js(
            "document.querySelector('.memlab-explorer .key').textContent"
        )

        left, top = page.js(
            "(b => [b.left, b.top])(document.querySelector('canvas.points').getBoundingClientRect())"
        )
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

        # What the map says to the kernel waits while the kernel is busy, and a cell would overtake it.
        idle = "document.querySelector('.jp-Notebook-ExecutionIndicator').dataset.status === 'idle'"
        page.until(idle)
        colour = "document.querySelectorAll('.memlab-explorer select')[2]"
        page.js(f"{colour}.value = 'speaker', {colour}.dispatchEvent(new Event('change'))")
        page.run_cell(1)
        printed = page.until(
            f'{CELL.format(1)}.querySelector(".jp-OutputArea-output")?.innerText.trim()'
        )
        assert printed.startswith("speaker None\n")
        assert f"shape: ({picked}, {scene.turns.width})" in printed
        assert "│ turn_id" in printed
        assert sorted(printed.split("\n")[-1].split()) == sorted(
            scene.turns["turn_id"].gather(inside)
        )

        # Names stay when the picked turns are clustered again, and so does what is picked.
        names = "[...document.querySelectorAll('.over .name')].map(node => node.textContent)"
        before = set(page.js(names))
        again = "[...document.querySelectorAll('.picked button')].find(n => n.textContent === 'cluster again')"
        painted = page.js(f"+{EXPLORER}.dataset.painted")
        page.js(f"{again}.click()")
        page.until(f"+{EXPLORER}.dataset.painted > {painted} && {EXPLORER}.dataset.busy === ''")
        assert before & set(page.js(names))
        assert page.js(f"{EXPLORER}.querySelectorAll('.chosen-turns tr[data-i]').length") == len(
            inside
        )

        # A narrow window: the map keeps its height, and the table stands below it.
        page.resize(900, 1700)
        sides = page.until(f"""(() => {{ const [map, side] = ["map", "side"].map(
            name => {EXPLORER}.querySelector("." + name).getBoundingClientRect());
            return map.width < 700 && [map.width, map.height, side.top - map.bottom]; }})()""")
        assert sides[0] > 300
        assert sides[1] > 300

        # JupyterLab says nothing of its own at this level: nothing is let pass.
        assert page.complaints == []
        assert page.hosts == {"127.0.0.1"}
