"""What a reader of a picture would see cut off: texts in a real browser, against page, cells and each other."""

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
  const found = {width: page.width, height: page.height, texts, cells};
  host.remove();
  return JSON.stringify(found);
}"""
_SLACK = 1.0


def read(svg: str) -> dict[str, Any]:
    """Give the size of a picture, its lines of text with their boxes, and its filled cells, in pixels."""
    browser = _browser._running()
    found: dict[str, Any] = json.loads(browser._wait(browser._call(_READ, svg)))
    return found


def clipped(svg: str) -> list[str]:
    """Name each text that leaves the page, its plot or its cell, or lies on another text."""
    seen = read(svg)
    page = {"left": 0, "top": 0, "right": seen["width"], "bottom": seen["height"]}
    texts = [text | _ink(text) for text in seen["texts"]]
    problems = []
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
        for other in texts[:i]:
            across = min(text["right"], other["right"]) - max(text["left"], other["left"])
            down = min(text["bottom"], other["bottom"]) - max(text["top"], other["top"])
            if across > _SLACK and down > _SLACK:
                problems.append(f"{words!r} lies on {other['words']!r} ({across:.1f} × {down:.1f} px)")
    return problems


def _ink(text: dict[str, Any]) -> dict[str, float]:
    """Take off what a line of text leaves free above its capitals and below its baseline."""
    across, down = text["right"] - text["left"], text["bottom"] - text["top"]
    flat, upright = (0.22, 0.0) if across >= down or len(text["words"]) < 3 else (0.0, 0.22)
    return {
        "left": text["left"] + upright * across, "right": text["right"] - upright * across,
        "top": text["top"] + flat * down, "bottom": text["bottom"] - flat * down,
    }  # fmt: skip


def _outside(text: dict[str, Any], area: dict[str, float]) -> float:
    out = max(
        area["left"] - text["left"], text["right"] - area["right"], area["top"] - text["top"],
        text["bottom"] - area["bottom"],
    )  # fmt: skip
    return out if out > _SLACK else 0.0


def _holds_centre(cell: dict[str, float], text: dict[str, Any]) -> bool:
    x, y = (text["left"] + text["right"]) / 2, (text["top"] + text["bottom"]) / 2
    return cell["left"] < x < cell["right"] and cell["top"] < y < cell["bottom"]
