"""Build the site of the documentation: README, docs and the API reference, searchable without a network.

``python scripts/site.py`` stages the pages in ``build/pages``, where their links lead to copies of
what they name, adds a page of reference for each package, and calls mkdocs. Warnings of mkdocs are
errors, so that no link is broken.
"""

from __future__ import annotations

import html
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import griffe

ROOT = Path(__file__).parents[1]
PAGES = ROOT / "build" / "pages"
STYLE = """.md-grid { max-width: 75rem }
.md-typeset table:not([class]) :is(td, th) { min-width: 0; padding: 0.4em 0.7em }
.md-typeset table:not([class]) code { word-break: normal }
"""
LINK = re.compile(r"\]\((?!https?:)([^)#\s]+)")
BAR = re.compile(r"`([^`]*\\\|[^`]*)`")
ROLE = re.compile(r":(?:func|class|mod|meth|attr|data|class|exc):`(?:[^`<]*<)?~?([\w.]+)>?`")


class Markdown(griffe.Extension):
    """Gives the docstrings to mkdocstrings as Markdown with fields."""

    def on_instance(self, *, obj: griffe.Object, **_: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = as_markdown(obj.docstring.value)


def as_markdown(docstring: str) -> str:
    """Write roles and double backticks as code, examples and tables as blocks, and fields such as ``:param`` last."""
    parts = re.split(r"\n\s*\n", ROLE.sub(r"`\1`", docstring).replace("``", "`"))
    fields = [part for part in parts if part.startswith(":")]
    text = [part for part in parts if not part.startswith(":")]
    kinds = [
        ("pycon" if part[:3] == ">>>" else "text" if part[:3] == "===" else "", part)
        for part in text
    ]
    return "\n\n".join(
        [f"```{kind}\n{part}\n```" if kind else part for kind, part in kinds] + fields
    )


def as_html(code: re.Match[str]) -> str:
    """Write code with a bar in a cell of a table, which Python-Markdown would show with its backslash."""
    return f"<code>{html.escape(code[1]).replace(chr(92) + '|', '&#124;')}</code>"


def stage() -> None:
    """Copy the pages and what their links name, each to the same place under ``build/pages``."""
    shutil.rmtree(PAGES, ignore_errors=True)
    waiting, done = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))], set[Path]()
    while waiting:
        path = waiting.pop()
        if path in done or not path.is_file() or "site" in path.relative_to(ROOT).parts:
            continue
        done.add(path)
        copy = PAGES / path.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, copy)
        if path.suffix == ".md":
            lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
            shown = [BAR.sub(as_html, line) if line.startswith("|") else line for line in lines]
            copy.write_text("".join(shown), encoding="utf-8")
            waiting += [
                (path.parent / target).resolve()
                for target in LINK.findall(path.read_text(encoding="utf-8"))
            ]


def reference() -> None:
    """Write a page for each package and each module beside them, which mkdocstrings fills."""
    package = griffe.load("memlab", search_paths=[ROOT])
    (PAGES / "api").mkdir(parents=True)
    rows = ["# API reference\n", "| module | |", "|---|---|"]
    for name, module in [("memlab", package), *sorted(package.modules.items())]:
        if name.startswith("_") or name == "cli":
            continue
        path = "memlab" if name == "memlab" else f"memlab.{name}"
        first = (
            (module.docstring.value if module.docstring else "").split("\n\n")[0].replace("\n", " ")
        )
        (PAGES / "api" / f"{path}.md").write_text(f"# {path}\n\n::: {path}\n", encoding="utf-8")
        rows.append(f"| [`{path}`]({path}.md) | {first} |")
    (PAGES / "api" / "index.md").write_text("\n".join(rows) + "\n", encoding="utf-8")


if __name__ == "__main__":
    stage()
    reference()
    (PAGES / "assets").mkdir()
    shutil.copy(ROOT / "scripts" / "iframe-worker.js", PAGES / "assets")
    (PAGES / "assets" / "wide.css").write_text(STYLE, encoding="utf-8")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict"]
    built = subprocess.run(
        command, cwd=ROOT, env=os.environ | {"NO_MKDOCS_2_WARNING": "1"}, stderr=subprocess.PIPE
    )
    said = built.stderr.decode().splitlines()
    print(
        "\n".join(line for line in said if built.returncode and not line.startswith("INFO")),
        file=sys.stderr,
    )
    sys.exit(built.returncode)
