"""A notebook in JupyterLab in a headless Chromium, worked by mouse and keys."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from memlab.figures import _browser

NEVER_S = 240.0
_ROOT = Path(__file__).parents[2]
# News and newer versions would be asked of the network; nothing may be.
_SERVER = ("--no-browser", "--allow-root", "--ip=127.0.0.1", "--port=0", "--ServerApp.port_retries=0",
           "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
           "--LabApp.extension_manager=readonly")  # fmt: skip
_KEYS = {
    "Enter": (13, "\r"),
    "End": (35, ""),
    "Home": (36, ""),
    "ArrowUp": (38, ""),
    "ArrowDown": (40, ""),
    "x": (88, "x"),
}
_SHIFT = 8


@contextmanager
def notebook(folder: Path, cells: Sequence[str]) -> Iterator[Page]:
    """Open a notebook of these cells; the server, its files and its kernel live in the folder, and end here."""
    root = folder / "root"
    root.mkdir()
    empty = {"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": []}
    book = {
        "cells": [empty | {"id": f"cell-{i}", "source": cell} for i, cell in enumerate(cells)],
        "metadata": {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}},
        "nbformat": 4, "nbformat_minor": 5,
    }  # fmt: skip
    (root / "map.ipynb").write_text(json.dumps(book))
    news = (
        folder / "JUPYTER_CONFIG_DIR/lab/user-settings/@jupyterlab/apputils-extension/notification.jupyterlab-settings"
    )
    news.parent.mkdir(parents=True)
    news.write_text('{"fetchNews": "false"}')
    token = os.urandom(16).hex()
    names = "HOME JUPYTER_CONFIG_DIR JUPYTER_DATA_DIR JUPYTER_RUNTIME_DIR IPYTHONDIR XDG_CONFIG_HOME XDG_CACHE_HOME"
    own = {name: str(folder / name) for name in names.split()}
    paths = os.pathsep.join([str(_ROOT), str(_ROOT / "tests" / "helpers")])
    env = {name: value for name, value in os.environ.items() if not name.startswith(("JUPYTER", "MEMLAB_"))}
    env |= own | {"PYTHONPATH": paths, "JUPYTER_TOKEN": token}
    log = folder / "server.log"
    with log.open("wb") as out:
        command = [sys.executable, "-m", "jupyterlab", *_SERVER, f"--ServerApp.root_dir={root}"]
        server = subprocess.Popen(command, env=env, cwd=root, stdout=out, stderr=out)
    try:
        url = _url(server, Path(own["JUPYTER_RUNTIME_DIR"]), log)
        page = Page(f"{url}lab/tree/map.ipynb?token={token}")
        try:
            yield page
        except BaseException:
            page.screenshot(folder / "failed.png")
            raise
        finally:
            page.close()
    finally:
        server.terminate()  # it ends its kernels, which takes a while
        try:
            server.wait(30)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()


def _url(server: subprocess.Popen[bytes], runtime: Path, log: Path) -> str:
    limit = time.monotonic() + NEVER_S
    while server.poll() is None and time.monotonic() < limit:
        for file in runtime.glob("jpserver-*.json"):
            try:
                return str(json.loads(file.read_text())["url"])
            except (ValueError, KeyError):
                pass  # half written
        time.sleep(0.05)
    raise RuntimeError(f"JupyterLab did not start: {log.read_text(errors='replace')[-2000:]}")


class Page:
    """A page of a browser of its own: what it asks for, what it complains of, and a person's hands."""

    def __init__(self, url: str) -> None:
        self.hosts: set[str] = set()
        self.complaints: list[str] = []
        self._chromium = _browser._Chromium(_browser.find_browser_path())
        self.tab = self._chromium._wait(self._open(url))

    async def _open(self, url: str) -> Any:
        tab = await self._chromium.browser.create_tab("about:blank")
        session = tab.get_session()

        async def asked(event: Any) -> None:
            told = urlsplit(event["params"].get("request", event["params"])["url"])
            if told.scheme not in ("data", "blob", "about"):
                self.hosts.add(str(told.hostname))

        async def logged(event: Any) -> None:
            told = event["params"]["entry"]
            if told["level"] == "error":
                self.complaints.append(f"{told['text']} ({told.get('url', '')})")

        async def said(event: Any) -> None:
            told = event["params"]
            if told["type"] in ("error", "assert"):
                words = [str(a.get("value", a.get("description", ""))) for a in told["args"]]
                self.complaints.append(" ".join(words))

        async def thrown(event: Any) -> None:
            told = event["params"]["exceptionDetails"]
            self.complaints.append(told.get("exception", {}).get("description", told["text"]))

        session.subscribe("Network.requestWillBeSent", asked)
        session.subscribe("Network.webSocketCreated", asked)
        session.subscribe("Log.entryAdded", logged)
        session.subscribe("Runtime.consoleAPICalled", said)
        session.subscribe("Runtime.exceptionThrown", thrown)
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
        told = self.send("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in told:
            raise RuntimeError(f"{expression}: {told['exceptionDetails']['exception'].get('description')}")
        return told["result"].get("value")

    def until(self, expression: str) -> Any:
        """Give the value of an expression once it is true."""
        limit = time.monotonic() + NEVER_S
        while (value := self.js(expression)) in (None, False, 0, ""):
            if time.monotonic() > limit:
                raise TimeoutError(f"never came: {expression}; complaints: {self.complaints}")
            time.sleep(0.05)
        return value

    def mouse(self, kind: str, x: float, y: float, **more: Any) -> None:
        self.send("Input.dispatchMouseEvent", type=f"mouse{kind}", x=x, y=y, **more)

    def click(self, x: float, y: float, count: int = 1) -> None:
        self.mouse("Moved", x, y)
        for kind in ("Pressed", "Released"):
            self.mouse(kind, x, y, button="left", clickCount=count)

    def drag(self, corners: Sequence[tuple[float, float]], *, shift: bool = False) -> None:
        held = {"modifiers": _SHIFT if shift else 0}
        if shift:
            self.send("Input.dispatchKeyEvent", type="keyDown", key="Shift", windowsVirtualKeyCode=16, **held)
        self.mouse("Moved", *corners[0], **held)
        self.mouse("Pressed", *corners[0], button="left", buttons=1, clickCount=1, **held)
        for (x0, y0), (x1, y1) in pairwise(corners):
            for part in (0.25, 0.5, 0.75, 1):
                at = (x0 + (x1 - x0) * part, y0 + (y1 - y0) * part)
                self.mouse("Moved", *at, button="left", buttons=1, **held)
            # A lasso takes a move at most each 10 ms, and the last of them by a timer: which comes before this one.
            self.js("new Promise(done => setTimeout(done, 50))")
        self.mouse("Released", *corners[-1], button="left", clickCount=1, **held)
        if shift:
            self.send("Input.dispatchKeyEvent", type="keyUp", key="Shift", windowsVirtualKeyCode=16)

    def key(self, name: str, *, shift: bool = False) -> None:
        code, text = _KEYS[name]
        pressed = {"key": name, "code": name, "windowsVirtualKeyCode": code, "modifiers": _SHIFT if shift else 0}
        self.send("Input.dispatchKeyEvent", type="keyDown", **pressed, **({"text": text} if text else {}))
        self.send("Input.dispatchKeyEvent", type="keyUp", **pressed)

    def type(self, text: str) -> None:
        self.send("Input.insertText", text=text)

    def centre(self, selector: str, index: int = 0) -> tuple[float, float]:
        """Scroll an element into view and give its middle."""
        node = f"[...document.querySelectorAll({json.dumps(selector)})][{index}]"
        x, y = self.until(f"""(() => {{ const node = {node}; if (!node) return null;
            node.scrollIntoView({{block: "nearest"}}); const b = node.getBoundingClientRect();
            return b.width && b.height ? [b.left + b.width / 2, b.top + b.height / 2] : null; }})()""")
        return x, y

    def run_cell(self, index: int) -> None:
        """Click into a cell and run it, to its end."""
        self.until(
            '[...document.querySelectorAll(".jp-StatusBar-TextItem")].some(n => /\\| Idle$/.test(n.textContent))'
        )
        self.click(*self.centre(".jp-Notebook .jp-CodeCell .cm-content", index))
        cell = f'document.querySelectorAll(".jp-Notebook .jp-CodeCell")[{index}]'
        self.until(f"{cell}.contains(document.activeElement)")
        self.key("Enter", shift=True)
        self.until(f'/\\d/.test({cell}.querySelector(".jp-InputPrompt").textContent)')

    def printed(self, index: int) -> str:
        """Give what a cell that ran shows as text."""
        cell = f'document.querySelectorAll(".jp-Notebook .jp-CodeCell")[{index}]'
        return str(self.until(f'{cell}.querySelector(".jp-OutputArea-output")?.innerText.trim()'))

    def screenshot(self, path: Path) -> None:
        path.write_bytes(base64.b64decode(self.send("Page.captureScreenshot", format="png")["data"]))

    def close(self) -> None:
        self._chromium.close()
