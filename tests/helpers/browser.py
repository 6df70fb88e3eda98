"""A page in a real browser, with a person's hands, for tests of what is drawn there."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from memlab.figures import browser_rendering

NEVER_S = 240.0
KEYS = {"Enter": (13, "\r"), "End": (35, ""), "Home": (36, ""), "ArrowUp": (38, ""), "ArrowDown": (40, ""),
         "x": (88, "x"), "Shift": (16, "")}  # fmt: skip
SHIFT = 8
CELL = 'document.querySelectorAll(".jp-Notebook .jp-CodeCell")[{}]'


def wait_for(value: Callable[[], Any], what: str, about: Sequence[str] = ()) -> Any:
    """Give a value once it is true."""
    limit = time.monotonic() + NEVER_S
    while not (found := value()):
        if time.monotonic() > limit:
            raise TimeoutError(f"never came: {what}; {about}")
        time.sleep(0.05)
    return found


class Page:
    """A page of a browser of its own: what it asks for, what it complains of, and a person's hands."""

    def __init__(self, url: str, *, width: int = 1400, height: int = 1700) -> None:
        self.size = {"width": width, "height": height}
        self.hosts: set[str] = set()
        self.complaints: list[str] = []
        self._chromium = browser_rendering._Chromium(browser_rendering.find_browser_path())
        self.tab = self._chromium._wait_for_result(self._open(url))

    async def _open(self, url: str) -> Any:
        tab = await self._chromium.browser.create_tab("about:blank")

        async def asked(event: Any) -> None:
            to = urlsplit(event["params"].get("request", event["params"])["url"])
            if to.scheme not in ("data", "blob", "about", "file"):
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
            await browser_rendering._send_devtools_command(tab, f"{domain}.enable")
        size = {**self.size, "deviceScaleFactor": 1, "mobile": False}
        await browser_rendering._send_devtools_command(
            tab, "Emulation.setDeviceMetricsOverride", **size
        )
        await browser_rendering._send_devtools_command(
            tab, "Emulation.setFocusEmulationEnabled", enabled=True
        )
        await browser_rendering._send_devtools_command(tab, "Page.navigate", url=url)
        return tab

    def send(self, command: str, **parameters: Any) -> dict[str, Any]:
        return self._chromium._wait_for_result(
            browser_rendering._send_devtools_command(self.tab, command, **parameters)
        )

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
        return wait_for(lambda: self.js(expression), expression, self.complaints)

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

    def resize(self, width: int, height: int) -> None:
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.send("Emulation.setDeviceMetricsOverride", **size)

    def screenshot(self, path: Path) -> None:
        path.write_bytes(
            base64.b64decode(self.send("Page.captureScreenshot", format="png")["data"])
        )

    def close(self) -> None:
        self._chromium.close()
