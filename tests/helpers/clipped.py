"""What a reader of a picture would not see: texts cut off or covered, in a real browser."""

from __future__ import annotations

import json
from typing import Any

import plotly.graph_objects as go

from memlab.figures import browser_rendering, style
from memlab.figures.figure_export import pictures

_READ = r"""async function(svg) {
  const host = document.createElement("div");
  host.style.cssText = "position:absolute;left:0;top:0";
  host.innerHTML = svg;
  document.body.append(host);
  await Promise.all([...document.fonts].map(face => face.load()));
  const root = host.querySelector("svg");
  const shown = e => e.checkVisibility({checkOpacity: true, checkVisibilityCSS: true});
  const clip = n => {
    for (; n !== root; n = n.parentNode) {
      const id = /#([\w-]+)/.exec(n.getAttribute("clip-path") || "");
      const rect = id && root.querySelector(`[id="${id[1]}"] rect`);
      if (rect) {
        const m = n.getScreenCTM(), g = rect.getBBox(), at = (x, y) => new DOMPoint(x, y).matrixTransform(m);
        const a = at(g.x, g.y), b = at(g.x + g.width, g.y + g.height);
        return new DOMRect(a.x, a.y, b.x - a.x, b.y - a.y);
      }
    }
    return null;
  };
  const texts = [...root.querySelectorAll("text")].filter(shown).flatMap(text => {
    const lines = [...text.querySelectorAll("tspan.line")];
    return (lines.length ? lines : [text]).map(line => ({clip: clip(text), ...line.getBoundingClientRect().toJSON(),
      words: line.textContent.trim().replace(/\s+/g, " ")}));
  });
  const filled = e => { const {fill, fillOpacity} = getComputedStyle(e);
    return fill !== "none" && +fillOpacity && !/rgb\(255, 255, 255\)|rgba\(.*, 0\)/.test(fill); };
  const cells = [...root.querySelectorAll(".bars path, .shapelayer path")].filter(e => shown(e) && filled(e));
  const visible = cell => {  // what the plot leaves of it
    const box = cell.getBoundingClientRect(), area = clip(cell) || box;
    const left = Math.max(box.left, area.left), top = Math.max(box.top, area.top);
    return new DOMRect(left, top, Math.min(box.right, area.right) - left, Math.min(box.bottom, area.bottom) - top);
  };
  const found = {page: root.getBoundingClientRect(), texts: texts.filter(text => text.words),
                 cells: cells.map(visible).filter(box => box.width > 0 && box.height > 0)};
  host.remove();
  return JSON.stringify(found);
}"""
_SLACK = 1.0


def svg(fig: go.Figure, width: style.Width = "column") -> str:
    """Draw a figure as it is exported."""
    return pictures(fig, ["svg"], width)["svg"].decode()


def read(svg: str) -> dict[str, Any]:
    """Give the page, the lines of text with their words, and the filled cells of a picture: boxes in pixels."""
    browser = browser_rendering._start_or_reuse_browser()
    found: dict[str, Any] = json.loads(
        browser._wait_for_result(browser._call_page_function(_READ, svg))
    )
    return found


def clipped(seen: dict[str, Any]) -> list[str]:
    """Name each text that leaves the page, its plot or its cell, or lies on another; and a column that is too tall."""
    page, texts = seen["page"], [text | _ink(text) for text in seen["texts"]]
    tall = page["width"] <= style.WIDTHS["column"] and page["height"] > style.TALLEST_PX
    problems = [f"the column is {page['height'] / 96:.2f} in tall"] if tall else []
    for i, text in enumerate(texts):
        holding = (cell for cell in seen["cells"] if _holds_centre(cell, text))
        cell = min(holding, key=lambda each: each["width"] * each["height"], default=None)
        for what, area in {"the page": page, "its plot": text["clip"], "its cell": cell}.items():
            if area and (out := _outside(text, area)) > _SLACK:
                problems.append(f"{text['words']!r} leaves {what} by {out:.1f} px")
        problems += [
            f"{text['words']!r} lies on {other['words']!r}"
            for other in texts[:i]
            if _overlap(text, other)
        ]
    return problems


def _overlap(one: dict[str, Any], other: dict[str, Any]) -> bool:
    sides = (("left", "right"), ("top", "bottom"))
    return all(
        min(one[high], other[high]) - max(one[low], other[low]) > _SLACK for low, high in sides
    )


def _ink(text: dict[str, Any]) -> dict[str, float]:
    """Take off what a line of text leaves free above its capitals and below its baseline."""
    level = text["width"] >= text["height"] or len(text["words"]) < 3
    x, y = (0.0, 0.22 * text["height"]) if level else (0.22 * text["width"], 0.0)
    return {
        "left": text["left"] + x,
        "right": text["right"] - x,
        "top": text["top"] + y,
        "bottom": text["bottom"] - y,
    }


def _outside(text: dict[str, Any], area: dict[str, float]) -> float:
    before = max(area[side] - text[side] for side in ("left", "top"))
    return max(before, *(text[side] - area[side] for side in ("right", "bottom")))


def _holds_centre(cell: dict[str, float], text: dict[str, Any]) -> bool:
    x, y = (text["left"] + text["right"]) / 2, (text["top"] + text["bottom"]) / 2
    return cell["left"] < x < cell["right"] and cell["top"] < y < cell["bottom"]
