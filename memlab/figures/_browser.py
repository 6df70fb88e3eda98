"""One Chromium for a whole session of exports.

A cold start costs seconds, a picture a tenth. kaleido's own server waits for ever when the browser cannot start, so
the browser lives here, on an event loop of its own thread, with a limit on every wait.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import os
import shutil
import threading
from collections.abc import Coroutine, Iterator
from pathlib import Path
from typing import Any, TypeVar

from memlab.errors import ExportError

T = TypeVar("T")

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "microsoft-edge", "brave")
_START_S, _RENDER_S = 60.0, 120.0
_lock = threading.RLock()
_held: _Chromium | None = None


class _Chromium:
    """A running browser that turns figures into bytes."""

    def __init__(self, path: str) -> None:
        from kaleido import Kaleido

        self.pid, self.path = os.getpid(), path
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, name="memlab-chromium", daemon=True).start()

        async def start() -> Kaleido:
            # MathJax would come from a CDN, and memlab's pictures hold no TeX.
            return await Kaleido(path=path, n=1, mathjax=False, timeout=_RENDER_S)

        try:
            self._kaleido: Any = self._wait(start(), _START_S)
        except BaseException:
            self._loop.call_soon_threadsafe(self._loop.stop)
            raise

    def _wait(self, task: Coroutine[Any, Any, T], seconds: float) -> T:
        future = asyncio.run_coroutine_threadsafe(task, self._loop)
        try:
            return future.result(seconds)
        except BaseException:
            future.cancel()
            raise

    def render(self, fig: dict[str, Any], options: dict[str, Any]) -> bytes:
        return self._wait(self._kaleido.calc_fig(fig, opts=options), _RENDER_S)

    def close(self) -> None:
        with contextlib.suppress(Exception):
            self._wait(self._kaleido.close(), 15.0)
        self._loop.call_soon_threadsafe(self._loop.stop)


class NoBrowser(ExportError):
    """No browser is installed; nothing is wrong with the figure."""


def find() -> str:
    """Give the path of the browser: ``BROWSER_PATH`` where set, else the first of the usual names on the PATH.

    :raises ExportError: when there is none; the message names what was tried.
    """
    how = "install one with `apt-get install chromium`, or set BROWSER_PATH to a Chrome or Chromium that is installed"
    named = os.environ.get("BROWSER_PATH")
    if named:
        if path := shutil.which(named):
            return path
        raise ExportError(f"no browser at BROWSER_PATH={named!r} (not an executable file); unset it, or {how}")
    for name in NAMES:
        if path := shutil.which(name):
            return path
    from choreographer.browsers.chromium import Chromium

    path = Chromium.find_browser(skip_local=False)
    if path and Path(path).is_file():
        return str(path)
    raise NoBrowser(
        f"no browser to draw with: BROWSER_PATH is not set and the PATH has none of {', '.join(NAMES)}; {how}"
    )


def render(fig: dict[str, Any], *, format: str, width: int, height: int, scale: float = 1.0) -> bytes:
    """Draw a figure.

    A browser that died since the last picture is started once more.

    :raises ExportError: when no browser is found or starts, or the figure cannot be drawn.
    """
    options = {"format": format, "width": width, "height": height, "scale": scale}
    with _lock:
        for attempt in (1, 2):
            browser = _running()
            try:
                return browser.render(fig, options)
            except Exception as error:
                stop()
                if attempt == 2:
                    said = f"{type(error).__name__}: {error}"[:300]
                    raise ExportError(f"{browser.path} could not draw the figure as {format} ({said})") from error
    raise AssertionError("unreachable")


def _running() -> _Chromium:
    global _held
    if _held is not None and _held.pid != os.getpid():
        _held = None  # a fork owns none of its parent's threads
    if _held is None:
        path = find()
        try:
            _held = _Chromium(path)
        except Exception as error:
            said = f"{type(error).__name__}: {error}"[:300]
            raise ExportError(
                f"the browser at {path} did not start ({said}); run it by hand with --headless --version, "
                "or set BROWSER_PATH to another Chrome or Chromium"
            ) from error
    return _held


def stop() -> None:
    """Stop the browser, if one runs."""
    global _held
    with _lock:
        if _held is not None and _held.pid == os.getpid():
            _held.close()
        _held = None


atexit.register(stop)


@contextlib.contextmanager
def exporting() -> Iterator[None]:
    """Keep one browser for the exports inside, and stop it at the end.

    Without it the first export starts a browser that lives until the program ends.

    >>> from memlab.figures import exporting
    >>> with exporting():
    ...     pass
    """
    try:
        yield
    finally:
        stop()
