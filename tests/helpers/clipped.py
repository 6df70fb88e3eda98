"""What a reader of a picture would not see: texts cut off or covered, and marks under a text, in a real browser."""

from __future__ import annotations

import json
from typing import Any

from memlab.figures import _browser

# Boxes of texts hold their font's height; ink fills less of it, so boxes shrink a little before they are compared.
_READ = r"""async function(svg) {
  const host = document.createElement("div");
  host.style.cssText = "position:absolute;left:0;top:0";
  host.innerHTML = svg;
  document.body.append(host);
  const root = host.querySelector("svg"), page = root.getBoundingClientRect();
  await Promise.all([...document.fonts].map(face => face.load()));
  const box = r => ({left: r.left - page.left, top: r.top - page.top, right: r.right - page.left,
                     bottom: r.bottom - page.top});
  const shown = e => { for (let n = e; n !== root; n = n.parentNode) {
    const s = getComputedStyle(n);
    if (s.display === "none" || s.visibility === "hidden" || +s.opacity === 0) return false;
  } return true; };
  const texts = [...root.querySelectorAll("text")].filter(t => t.textContent.trim() && shown(t)).flatMap((t, owner) => {
    const lines = [...t.querySelectorAll("tspan.line")];
    let clip = null;
    for (let n = t; n !== root && !clip; n = n.parentNode) {
      const id = /#([\w-]+)/.exec(n.getAttribute("clip-path") || "");
      const rect = id && root.querySelector(`[id="${id[1]}"] rect`);
      if (rect) {
        const m = n.getScreenCTM(), g = rect.getBBox();
        const at = (x, y) => new DOMPoint(x, y).matrixTransform(m);
        const a = at(g.x, g.y), b = at(g.x + g.width, g.y + g.height);
        clip = {left: a.x - page.left, top: a.y - page.top, right: b.x - page.left, bottom: b.y - page.top};
      }
    }
    return (lines.length ? lines : [t]).map(line => ({owner, clip, words: line.textContent.trim(),
      ...box(line.getBoundingClientRect())})).filter(line => line.words);
  });
  const filled = e => { const f = getComputedStyle(e).fill, o = +getComputedStyle(e).fillOpacity;
    return f !== "none" && o > 0 && !/rgb\(255, 255, 255\)|rgba\(.*, 0\)/.test(f); };
  const cells = [...root.querySelectorAll(".bars path, .shapelayer path, .barlayer path, .treemaplayer path")]
    .filter(e => shown(e) && filled(e)).map(e => box(e.getBoundingClientRect()));
  const grounds = [...root.querySelectorAll(".annotation rect.bg")]
    .filter(e => shown(e) && +getComputedStyle(e).fillOpacity === 1 && e.getBBox().width)
    .map(e => ({words: e.parentNode.textContent.trim(), ...box(e.getBoundingClientRect())}));
  const marks = [...root.querySelectorAll(".points path, .errorbars path")].filter(shown).map(e => {
    const s = getComputedStyle(e), edge = s.stroke === "none" ? 0 : parseFloat(s.strokeWidth) / 2;
    const r = box(e.getBoundingClientRect());
    return {left: r.left - edge, top: r.top - edge, right: r.right + edge, bottom: r.bottom + edge};
  });
  const found = {width: page.width, height: page.height, texts, cells, grounds, marks};
  host.remove();
  return JSON.stringify(found);
}"""
_SLACK = 1.0
_COLUMN_PX, _TALLEST_PX = 336, 432


def read(svg: str) -> dict[str, Any]:
    """Give the size of a picture, its lines of text, the grounds of texts, marks and filled cells, all in pixels."""
    browser = _browser._running_browser()
    found: dict[str, Any] = json.loads(browser._wait(browser._call(_READ, svg)))
    return found


def clipped(svg: str) -> list[str]:
    """Name each text that leaves the page, its plot or its cell, or lies on another or a mark; and a tall column."""
    seen = read(svg)
    page = {"left": 0, "top": 0, "right": seen["width"], "bottom": seen["height"]}
    texts = [text | _ink(text) for text in seen["texts"]]
    problems = []
    if seen["width"] <= _COLUMN_PX and seen["height"] > _TALLEST_PX:
        problems.append(f"the column is {seen['height'] / 96:.2f} in tall")
    for ground in seen["grounds"]:
        hidden = sum(_lies_on(mark, ground) is not None for mark in seen["marks"])
        if hidden:
            problems.append(f"{ground['words']!r} hides {hidden} mark(s)")
    for i, text in enumerate(texts):
        words = text["words"]
        if out := _outside(text, page):
            problems.append(f"{words!r} leaves the page by {out:.1f} px")
        if text["clip"] and (out := _outside(text, text["clip"])):
            problems.append(f"{words!r} is cut at its plot by {out:.1f} px")
        holding = [cell for cell in seen["cells"] if _holds_centre(cell, text)]
        if holding:
            cell = min(holding, key=lambda c: (c["right"] - c["left"]) * (c["bottom"] - c["top"]))
            if out := _outside(text, cell):
                problems.append(f"{words!r} leaves its cell by {out:.1f} px")
        problems += [
            f"{words!r} lies on {other['words']!r} ({shared[0]:.1f} × {shared[1]:.1f} px)"
            for other in texts[:i] if (shared := _lies_on(text, other))
        ]  # fmt: skip
    return problems


def _lies_on(one: dict[str, Any], other: dict[str, Any]) -> tuple[float, float] | None:
    across = min(one["right"], other["right"]) - max(one["left"], other["left"])
    down = min(one["bottom"], other["bottom"]) - max(one["top"], other["top"])
    return (across, down) if across > _SLACK and down > _SLACK else None


def _ink(text: dict[str, Any]) -> dict[str, float]:
    """Take off what a line of text leaves free above its capitals and below its baseline."""
    across, down = text["right"] - text["left"], text["bottom"] - text["top"]
    x, y = (0.0, 0.22 * down) if across >= down or len(text["words"]) < 3 else (0.22 * across, 0.0)
    return {"left": text["left"] + x, "right": text["right"] - x, "top": text["top"] + y, "bottom": text["bottom"] - y}


def _outside(text: dict[str, Any], area: dict[str, float]) -> float:
    before = max(area[side] - text[side] for side in ("left", "top"))
    out = max(before, *(text[side] - area[side] for side in ("right", "bottom")))
    return out if out > _SLACK else 0.0


def _holds_centre(cell: dict[str, float], text: dict[str, Any]) -> bool:
    x, y = (text["left"] + text["right"]) / 2, (text["top"] + text["bottom"]) / 2
    return cell["left"] < x < cell["right"] and cell["top"] < y < cell["bottom"]
