"""How fast a shared map of many turns is: the sample's turns repeated, in a headless browser without a graphics card.

    python scripts/map_page.py [--turns 100000] [--page FILE]

Prints the size of the page, how long it takes from opening it to its first picture, and the pictures
a second while the map is dragged. The places of the repeated turns are scattered around those of the
sample, for it is drawing that is measured, and not the layout.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl

import memlab
from memlab.datasets import Dataset
from memlab.explorer.map_layout import stretch_layout_to_frame
from memlab.figures import browser_rendering

WINDOW = {"width": 1300, "height": 900, "deviceScaleFactor": 1, "mobile": False}
READY = "document.querySelector('.memlab-explorer')?.dataset.ms !== undefined"
# The clock of the page starts when it is opened.
FIRST_PICTURE = "new Promise(done => requestAnimationFrame(() => done(performance.now())))"
# A drag by script, a move for each picture that the browser asks for.
DRAG = """new Promise(done => {
  const canvas = document.querySelector("canvas.points"), box = canvas.getBoundingClientRect();
  const fire = (target, kind, x, y) => target.dispatchEvent(new MouseEvent(kind,
    { clientX: box.left + x, clientY: box.top + y, bubbles: true, button: 0, buttons: 1, view: window }));
  const map = document.querySelector(".memlab-explorer"), before = map.pictures;
  let step = 0;
  fire(canvas, "mousedown", 200, 200);
  const start = performance.now();
  const move = () => {
    step++;
    fire(window, "mousemove", 200 + 150 * Math.sin(step / 10), 200 + 80 * Math.cos(step / 10));
    if (performance.now() - start < SECONDS * 1000) { requestAnimationFrame(move); return; }
    const past = (performance.now() - start) / 1000;
    fire(window, "mouseup", 200, 200);
    done([map.pictures - before, past]);
  };
  requestAnimationFrame(move);
})"""


def main() -> None:
    """Write the page, open it, drag it, and print what was measured."""
    asked = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    asked.add_argument("--turns", type=int, default=100_000)
    asked.add_argument("--seconds", type=float, default=5.0, help="how long the map is dragged")
    asked.add_argument("--page", type=Path, help="where the page is kept")
    given = asked.parse_args()
    with tempfile.TemporaryDirectory(prefix="memlab-map-") as folder:
        path = given.page or Path(folder) / "map.html"
        data, places = repeated_sample(given.turns)
        bench = memlab.Bench.of(data, encoder="hashing")
        explorer = memlab.explore(bench, "bm25", scope=data.scopes[0], places=places)
        explorer.save_html(path, questions=20)
        print(f"{data.turns.height:,} turns, {path.stat().st_size / 1e6:.1f} MB")
        print("load of the machine:", *(f"{load:.1f}" for load in os.getloadavg()))
        done = measure(path, given.seconds)
    print(f"first picture after {done.first_s:.2f} s, {done.first_busy_s:.2f} s of processor time")
    print(f"{done.pictures / done.drag_s:.1f} pictures a second,", end=" ")
    print(f"{done.pictures} in {done.drag_s:.1f} s of dragging")
    each_ms = 1000 * done.drag_busy_s / max(done.pictures, 1)
    print(f"{each_ms:.0f} ms of processor time a picture, of all browser processes")


def repeated_sample(turns: int) -> tuple[Dataset, pl.DataFrame]:
    """Give the sample as one scope, its turns repeated, and a place and cluster for each."""
    data = memlab.sample()
    n = data.turns.height
    rng = np.random.default_rng(0)
    middles = rng.normal(size=(60, 2)) * (3, 2)
    label = rng.integers(0, 60, n)
    times = -(-turns // n)
    copies = [
        data.turns.with_columns(
            scope=pl.lit("sample"),
            turn_id=pl.concat_str(pl.lit(f"{copy}/"), "turn_id"),
        )
        for copy in range(times)
    ]
    repeated = pl.concat(copies).head(turns)
    labels = np.tile(label, times)[:turns]
    xy = stretch_layout_to_frame(middles[labels] + rng.normal(scale=0.25, size=(turns, 2)))
    first = pl.concat_list(pl.lit("0/") + pl.col("evidence").list.first())
    questions = data.questions.with_columns(scope=pl.lit("sample"), evidence=first)
    places = repeated.select("turn_id").with_columns(
        x=pl.Series(xy[:, 0]), y=pl.Series(xy[:, 1]), label=pl.Series(labels)
    )
    sessions = data.sessions.with_columns(scope=pl.lit("sample"))
    return replace(data, turns=repeated, questions=questions, sessions=sessions), places


class Measured(NamedTuple):
    """Seconds by the clock, and those that the browser's processes worked meanwhile."""

    first_s: float
    first_busy_s: float
    pictures: int
    drag_s: float
    drag_busy_s: float


def measure(path: Path, seconds: float) -> Measured:
    """Open a page, and drag its map for so many seconds."""
    chromium = browser_rendering._Chromium(browser_rendering.find_browser_path())
    try:
        return chromium._wait_for_result(_measured(chromium, path, seconds))
    finally:
        chromium.close()


def browser_seconds() -> float:
    """Give the processor time that all processes below this one have taken, in seconds."""
    parents, spent = dict[int, int](), dict[int, float]()
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
        except OSError:  # it has ended
            continue
        parents[int(entry.name)] = int(fields[1])
        spent[int(entry.name)] = int(fields[11]) + int(fields[12])
    ours = {os.getpid()}
    while more := {pid for pid, parent in parents.items() if parent in ours} - ours:
        ours |= more
    ticks = sum(spent[pid] for pid in ours - {os.getpid()})
    return ticks / os.sysconf("SC_CLK_TCK")


async def _measured(chromium: Any, path: Path, seconds: float) -> Measured:
    tab = await chromium.browser.create_tab("about:blank")

    async def value(expression: str) -> Any:
        asked = {"expression": expression, "awaitPromise": True, "returnByValue": True}
        given = await browser_rendering._send_devtools_command(tab, "Runtime.evaluate", **asked)
        return given["result"].get("value")

    await browser_rendering._send_devtools_command(
        tab, "Emulation.setDeviceMetricsOverride", **WINDOW
    )
    opened = browser_seconds()
    await browser_rendering._send_devtools_command(tab, "Page.navigate", url=path.as_uri())
    limit = time.monotonic() + 120
    while not await value(READY):
        if time.monotonic() > limit:
            raise TimeoutError("the page showed no picture in two minutes")
        await asyncio.sleep(0.05)
    first = await value(FIRST_PICTURE)
    first_busy = browser_seconds() - opened
    await asyncio.sleep(3)  # the texts are unpacked
    before = browser_seconds()
    drawn, past = await value(DRAG.replace("SECONDS", str(seconds)))
    dragged_busy = browser_seconds() - before
    return Measured(float(first) / 1000, first_busy, int(drawn), float(past), dragged_busy)


if __name__ == "__main__":
    main()
