"""The explorer as a person meets it: in JupyterLab, in a real browser, by mouse and keys."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import explored
import nbformat
import pytest
from explored import ACROSS, BENCH, DATA
from nbformat import v4

from memlab.errors import ExportError
from memlab.explorer import answer_payload, snippet
from memlab.figures import _browser

NEVER_S = 240.0
ROOT = Path(__file__).parents[2]
# News and newer versions would be asked of the network; nothing may be.
SERVER = ("--no-browser", "--allow-root", "--ip=127.0.0.1", "--port=0", "--ServerApp.port_retries=0",
           "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
           "--LabApp.extension_manager=readonly")  # fmt: skip
NEWS = "JUPYTER_CONFIG_DIR/lab/user-settings/@jupyterlab/apputils-extension/notification.jupyterlab-settings"
OWN = "HOME JUPYTER_CONFIG_DIR JUPYTER_DATA_DIR JUPYTER_RUNTIME_DIR IPYTHONDIR XDG_CONFIG_HOME XDG_CACHE_HOME"
KEYS = {"Enter": (13, "\r"), "End": (35, ""), "Home": (36, ""), "ArrowUp": (38, ""), "ArrowDown": (40, ""),
         "x": (88, "x"), "Shift": (16, "")}  # fmt: skip
SHIFT = 8
CELL = 'document.querySelectorAll(".jp-Notebook .jp-CodeCell")[{}]'


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
                Page(f"{_wait_for(address, log.name)}lab/tree/map.ipynb?token={token}")
            ) as page:
                yield page
        finally:
            server.terminate()  # it ends its kernels, which takes a while


def _wait_for(value: Callable[[], Any], what: str, about: Sequence[str] = ()) -> Any:
    """Give a value once it is true."""
    limit = time.monotonic() + NEVER_S
    while not (found := value()):
        if time.monotonic() > limit:
            raise TimeoutError(f"never came: {what}; {about}")
        time.sleep(0.05)
    return found


class Page:
    """A page of a browser of its own: what it asks for, what it complains of, and a person's hands."""

    def __init__(self, url: str) -> None:
        self.hosts: set[str] = set()
        self.complaints: list[str] = []
        self._chromium = _browser._Chromium(_browser.find_browser_path())
        self.tab = self._chromium._wait(self._open(url))

    async def _open(self, url: str) -> Any:
        tab = await self._chromium.browser.create_tab("about:blank")

        async def asked(event: Any) -> None:
            to = urlsplit(event["params"].get("request", event["params"])["url"])
            if to.scheme not in ("data", "blob", "about"):
                self.hosts.add(str(to.hostname))

        async def complained(event: Any) -> None:
            given = event["params"].get("entry", event["params"])
            if "exceptionDetails" in given or given.get("level", given.get("type")) in (
                "error",
                "assert",
            ):
                self.complaints.append(json.dumps(given)[:1000])

        for name in ("Network.requestWillBeSent", "Network.webSocketCreated"):
            tab.get_session().subscribe(name, asked)
        for name in ("Log.entryAdded", "Runtime.consoleAPICalled", "Runtime.exceptionThrown"):
            tab.get_session().subscribe(name, complained)
        for domain in ("Network", "Log", "Runtime", "Page"):
            await _browser._send_command(tab, f"{domain}.enable")
        size = {"width": 1400, "height": 1700, "deviceScaleFactor": 1, "mobile": False}
        await _browser._send_command(tab, "Emulation.setDeviceMetricsOverride", **size)
        await _browser._send_command(tab, "Emulation.setFocusEmulationEnabled", enabled=True)
        await _browser._send_command(tab, "Page.navigate", url=url)
        return tab

    def send(self, command: str, **parameters: Any) -> dict[str, Any]:
        return self._chromium._wait(_browser._send_command(self.tab, command, **parameters))

    def js(self, expression: str) -> Any:
        """Give the value of an expression in the page, which may be a promise."""
        given = self.send(
            "Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True
        )
        if "exceptionDetails" in given:
            raise RuntimeError(
                f"{expression}: {given['exceptionDetails']['exception'].get('description')}"
            )
        return given["result"].get("value")

    def until(self, expression: str) -> Any:
        return _wait_for(lambda: self.js(expression), expression, self.complaints)

    def mouse(self, kind: str, x: float, y: float, **more: Any) -> None:
        self.send("Input.dispatchMouseEvent", type=f"mouse{kind}", x=x, y=y, **more)

    def click(self, x: float, y: float, count: int = 1) -> None:
        self.mouse("Moved", x, y)
        for kind in ("Pressed", "Released"):
            self.mouse(kind, x, y, button="left", clickCount=count)

    def shift_drag(self, corners: Sequence[tuple[float, float]]) -> None:
        self.key("Shift", modifiers=SHIFT, ways=["Down"])
        self.mouse("Moved", *corners[0], modifiers=SHIFT)
        self.mouse("Pressed", *corners[0], button="left", buttons=1, clickCount=1, modifiers=SHIFT)
        for (x0, y0), (x1, y1) in pairwise(corners):
            for part in (0.25, 0.5, 0.75, 1):
                at = (x0 + (x1 - x0) * part, y0 + (y1 - y0) * part)
                self.mouse("Moved", *at, button="left", buttons=1, modifiers=SHIFT)
            # A lasso takes a move at most each 10 ms, and the last of them by a timer: which comes
            # before this one.
            self.js("new Promise(done => setTimeout(done, 50))")
        self.mouse("Released", *corners[-1], button="left", clickCount=1, modifiers=SHIFT)
        self.key("Shift", ways=["Up"])

    def key(self, name: str, *, modifiers: int = 0, ways: Sequence[str] = ("Down", "Up")) -> None:
        code, text = KEYS[name]
        for way in ways:
            typed = {"text": text} if text and way == "Down" else {}
            pressed = {
                "key": name,
                "code": name,
                "windowsVirtualKeyCode": code,
                "modifiers": modifiers,
            }
            self.send("Input.dispatchKeyEvent", type=f"key{way}", **pressed, **typed)

    def centre(self, selector: str, index: int = 0) -> tuple[float, float]:
        """Scroll an element into view and give its middle."""
        node = f"[...document.querySelectorAll({json.dumps(selector)})][{index}]"
        x, y = self.until(f"""(() => {{ const node = {node}; if (!node) return null;
            node.scrollIntoView({{block: "nearest"}}); const b = node.getBoundingClientRect();
            return b.width && b.height ? [b.left + b.width / 2, b.top + b.height / 2] : null; }})()""")
        return x, y

    def enter(self, selector: str, text: str) -> None:
        """Write a text into a field, in place of what stands there."""
        self.click(*self.centre(selector), count=3)
        self.send("Input.insertText", text=text)
        self.key("Enter")

    def run_cell(self, index: int) -> None:
        """Click into a cell and run it, to its end."""
        idle = '[...document.querySelectorAll(".jp-StatusBar-TextItem")].some(n => /\\| Idle$/.test(n.textContent))'
        self.until(idle)
        self.click(*self.centre(".jp-Notebook .jp-CodeCell .cm-content", index))
        cell = CELL.format(index)
        self.until(f"{cell}.contains(document.activeElement)")
        self.key("Enter", modifiers=SHIFT)
        self.until(f'/\\d/.test({cell}.querySelector(".jp-InputPrompt").textContent)')

    def close(self) -> None:
        self._chromium.close()


CELLS = (
    "from explored import *\nexplorer = memlab.explore(BENCH, ['bm25', 'dense'], scope=SCOPE, places=PLACES)\nexplorer",
    "print(explorer.colour, explorer.until)\nprint(explorer.selection)\nprint(*explorer.selection['turn_id'])",
)
TYPED = "When did I call the plumber?"
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
        _browser.find_browser_path()
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

        # JupyterLab says nothing of its own at this level: nothing is let pass.
        assert page.complaints == []
        assert page.hosts == {"127.0.0.1"}
