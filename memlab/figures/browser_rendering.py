"""One Chromium, and one page in it that holds plotly.js, for a whole session of exports.

A cold start costs seconds and so does reading plotly.js for every picture, which is what kaleido
does. Here a figure is laid out once for each width; its PNG and PDF are made from that SVG. The
browser lives on an event loop of its own thread, with a limit on every wait that stands for
"never", not for "slow".
"""

from __future__ import annotations

import asyncio
import atexit
import base64
import contextlib
import json
import os
import shutil
import tempfile
import threading
from collections.abc import Callable, Collection, Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from memlab.errors import ExportError, require_extra
from memlab.figures.text_and_glyphs import FAMILY, font_face_rules

if TYPE_CHECKING:
    import plotly.graph_objects as go

T = TypeVar("T")

_WAIT_S = 300.0
_lock = threading.RLock()
_current: _Chromium | None = None

_PAGE = """<!DOCTYPE html>
<html><head><meta charset="utf-8"><style id="fonts"></style><style id="sheet"></style>
<script src="{plotly}" charset="utf-8"></script></head>
<body><img id="picture"></body></html>
"""
_PAGE_IS_READY = "document.readyState === 'complete' && 'Plotly' in window"
# The fonts must be there before plotly measures text, and stay in the SVG, which sees no font of a
# page that shows it.
_SVG = """async function(text, faces) {
  const figure = JSON.parse(text), {width, height} = figure.layout;
  document.getElementById("fonts").textContent = faces;
  await Promise.all([...document.fonts].map(face => face.load()));
  const svg = await Plotly.toImage(figure, {format: "svg", width, height, imageDataOnly: true});
  return svg.replace(/<defs/, `<style>${faces}</style><defs`);
}"""
# The picture of the page; both others are made from it.
_LOAD = """async function(svg, width, height, title) {
  document.title = title;
  const picture = document.getElementById("picture");
  document.getElementById("sheet").textContent =
    `@page { size: ${width}px ${height}px; margin: 0 } body { margin: 0 }
     img { display: block; break-after: avoid }`;
  picture.width = width;
  picture.height = height;
  picture.src = "data:image/svg+xml;charset=utf-8," + encodeURIComponent(svg);
  await picture.decode();
  return "";
}"""
_PNG = """async function(width, height, scale) {
  const canvas = document.createElement("canvas");
  canvas.width = width * scale;
  canvas.height = height * scale;
  const picture = document.getElementById("picture");
  canvas.getContext("2d").drawImage(picture, 0, 0, canvas.width, canvas.height);
  return canvas.toDataURL("image/png").split(",")[1];
}"""

# What no installed font has is drawn as the same box as what cannot be in one: U+1FFFE is no
# character. Where a font draws nothing, the character counts as one that it lacks.
_WITHOUT_GLYPH = """async function(text, family) {
  const canvas = document.createElement("canvas");
  canvas.width = canvas.height = 48;
  const context = canvas.getContext("2d", {willReadFrequently: true});
  context.font = `32px ${family}`;
  context.textBaseline = "middle";
  const drawn = character => {
    context.clearRect(0, 0, 48, 48);
    context.fillText(character, 4, 24);
    return context.getImageData(0, 0, 48, 48).data.join();
  };
  const missing = [drawn(" "), drawn(String.fromCodePoint(0x1FFFE))];
  return [...text].filter(character => missing.includes(drawn(character))).join("");
}"""


class _Chromium:
    """A running browser that turns figures into bytes."""

    def __init__(self, path: str) -> None:
        self.pid = os.getpid()
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._run_event_loop, name="memlab-chromium", daemon=True).start()
        try:
            self._wait_for_result(self._start_browser(path))
        except BaseException:
            self._loop.call_soon_threadsafe(self._loop.stop)
            raise

    def _run_event_loop(self) -> None:
        """Run until the loop is stopped, and end it: what is left would be reported elsewhere."""
        self._loop.run_forever()
        open_tasks = asyncio.all_tasks(self._loop)
        for open_task in open_tasks:
            open_task.cancel()
        if open_tasks:
            self._loop.run_until_complete(asyncio.wait(open_tasks))
        self._loop.close()

    async def _start_browser(self, browser_path: str) -> None:
        import plotly

        with require_extra("figures", "the export of a figure"):
            from choreographer import Browser

        self.browser = await Browser(path=browser_path)
        self._tab = self.browser.get_tab() or await self.browser.create_tab("")
        plotly_js = Path(plotly.__file__).parent / "package_data" / "plotly.min.js"
        with tempfile.TemporaryDirectory(prefix="memlab-page-") as page_folder:
            page_file = Path(page_folder) / "page.html"
            page_file.write_text(_PAGE.format(plotly=plotly_js.as_uri()), encoding="utf-8")
            await _send_devtools_command(self._tab, "Page.navigate", url=page_file.as_uri())
            # A load event may still be that of the page the tab was opened with.
            while not (
                await _send_devtools_command(
                    self._tab, "Runtime.evaluate", expression=_PAGE_IS_READY
                )
            )["result"].get("value"):
                await asyncio.sleep(0.01)
        window_answer = await _send_devtools_command(
            self._tab, "Runtime.evaluate", expression="window"
        )
        self._window = window_answer["result"]["objectId"]

    def _wait_for_result(self, coroutine: Coroutine[Any, Any, T]) -> T:
        future = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        try:
            return future.result(_WAIT_S)
        except BaseException:
            future.cancel()
            raise

    async def _call_page_function(self, javascript_function: str, *arguments: Any) -> str:
        call_options = {
            "functionDeclaration": javascript_function,
            "awaitPromise": True,
            "returnByValue": True,
            "arguments": [{"value": argument} for argument in arguments],
            "objectId": self._window,
        }
        tab_answer = await _send_devtools_command(
            self._tab, "Runtime.callFunctionOn", **call_options
        )
        if "exceptionDetails" in tab_answer:
            raise RuntimeError(
                tab_answer["exceptionDetails"]
                .get("exception", {})
                .get("description", "no reason given")
            )
        return str(tab_answer["result"]["value"])

    async def _draw_in_formats(
        self, fig: go.Figure, formats: Collection[str], scale: float, title: str
    ) -> dict[str, bytes]:
        width, height = int(fig.layout.width), int(fig.layout.height)
        figure_json = fig.to_json(remove_uids=False, engine="json")
        # As text, for JSON escapes what is not ASCII in its own way.
        svg_text = await self._call_page_function(
            _SVG,
            figure_json,
            font_face_rules(json.dumps(json.loads(figure_json), ensure_ascii=False)),
        )
        picture_bytes = {"svg": svg_text.encode()}
        if picture_bytes.keys() != set(formats):
            await self._call_page_function(_LOAD, svg_text, width, height, title)
        if "png" in formats:
            picture_bytes["png"] = base64.b64decode(
                await self._call_page_function(_PNG, width, height, scale)
            )
        if "pdf" in formats:
            paper_options = {"printBackground": True, "preferCSSPageSize": True, "pageRanges": "1"}
            picture_bytes["pdf"] = base64.b64decode(
                (await _send_devtools_command(self._tab, "Page.printToPDF", **paper_options))[
                    "data"
                ]
            )
        return {picture_format: picture_bytes[picture_format] for picture_format in formats}

    async def _find_missing_glyphs(self, characters: str) -> str:
        return await self._call_page_function(_WITHOUT_GLYPH, characters, FAMILY)

    def close(self) -> None:
        with contextlib.suppress(Exception):
            self._wait_for_result(self.browser.close())
        self._loop.call_soon_threadsafe(self._loop.stop)


async def _send_devtools_command(tab: Any, command: str, **parameters: Any) -> Any:
    tab_answer: Any = await tab.send_command(command, params=parameters)
    if "error" in tab_answer:
        raise RuntimeError(f"{command}: {tab_answer['error'].get('message', tab_answer['error'])}")
    return tab_answer["result"]


class NoBrowser(ExportError):
    """No browser is installed; nothing is wrong with the figure."""


def find_browser_path() -> str:
    """Give the path of the browser: ``BROWSER_PATH``, else the first that choreographer finds.

    :raises ExportError: when there is none; the message names the places searched.
    """
    advice = (
        "install one with `apt-get install chromium`, or set BROWSER_PATH to a Chrome or Chromium "
        "that is installed"
    )
    named_browser = os.environ.get("BROWSER_PATH")
    if named_browser:
        browser_path = shutil.which(named_browser)
        if browser_path:
            return browser_path
        raise ExportError(
            f"no browser at BROWSER_PATH={named_browser!r} (not an executable file); unset it, or "
            f"{advice}"
        )
    with require_extra("figures", "the export of a figure"):
        from choreographer.browsers.chromium import Chromium

    browser_path = shutil.which("chromium") or Chromium.find_browser(skip_local=False)
    if browser_path and Path(browser_path).is_file():
        return str(browser_path)
    raise NoBrowser(f"no browser to draw with: {_describe_searched_browser_places()}; {advice}")


def _describe_searched_browser_places() -> str:
    """Name every place where choreographer looks for a browser."""
    from choreographer.browsers.chromium import chromium_based_browsers
    from choreographer.cli.defaults import default_download_path, old_download_path

    searched_paths = [str(default_download_path), str(old_download_path)]
    for browser in chromium_based_browsers.values():
        searched_paths.extend(browser.typical_paths)
    return (
        f"BROWSER_PATH is not set, the PATH has none of {', '.join(chromium_based_browsers)}, "
        f"and none is at {', '.join(searched_paths)}"
    )


def draw(
    fig: go.Figure, formats: Collection[str], *, scale: float = 1.0, title: str = ""
) -> dict[str, bytes]:
    """Draw a figure, whose layout has a width and a height, as ``svg``, ``png`` or ``pdf``.

    A browser that died since the last picture is started once more.

    :param scale: pixels of the PNG for one of the layout.
    :param title: of the PDF.
    :raises ExportError: when no browser is found or starts, or the figure cannot be drawn.
    """
    return _run_in_browser(
        lambda browser: browser._draw_in_formats(fig, formats, scale, title),
        f"draw the figure as {', '.join(formats)}",
    )


def _run_in_browser(
    start_task: Callable[[_Chromium], Coroutine[Any, Any, T]], task_description: str
) -> T:
    """Ask something of the browser, of a new one where the last has died."""
    browser_path = find_browser_path()
    with _lock:
        for attempt in (1, 2):
            try:
                browser = _start_or_reuse_browser()
                return browser._wait_for_result(start_task(browser))
            except Exception as error:
                stop_browser()
                if attempt == 2:
                    raise ExportError(
                        f"{browser_path} could not {task_description} "
                        f"({f'{type(error).__name__}: {error}'[:300]}); "
                        "run it by hand with --headless --version, or "
                        "set BROWSER_PATH to another Chrome or Chromium"
                    ) from error
    raise AssertionError("unreachable")


def characters_without_glyph(characters: str) -> str:
    """Give those of some characters that no font of this machine has: boxes in pictures.

    What the font of a picture lacks, the browser draws with another one that is installed.
    """
    if not characters:
        return ""
    return _run_in_browser(
        lambda browser: browser._find_missing_glyphs(characters),
        "say which characters its fonts have",
    )


def _start_or_reuse_browser() -> _Chromium:
    global _current
    if _current is None or _current.pid != os.getpid():  # a fork owns none of its parent's threads
        _current = _Chromium(find_browser_path())
    return _current


def stop_browser() -> None:
    """Stop the browser, if one runs."""
    global _current
    with _lock:
        if _current is not None and _current.pid == os.getpid():
            _current.close()
        _current = None


atexit.register(stop_browser)
