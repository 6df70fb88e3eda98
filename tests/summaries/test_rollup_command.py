"""``memlab rollup``: a week or a month as Markdown, from what the index stores."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

STORE = ("--store", "store", "--encoder", "hashing:64")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, memlab_cli: Callable[..., Any]) -> Path:
    """A store with one indexed memory of two weeks; the second has a session that is too short for the index."""
    path = tmp_path_factory.mktemp("rollup")
    said = ["I signed the lease for the flat in Oslo.", "Great, congratulations!", "It costs $1,250.", "Not bad."]
    days = {"2026-02-24": said, "2026-03-03": said, "2026-03-05": ["The door code is 4417."]}
    rows = [
        {"scope": "ann", "session": day, "sender": "Ann", "text": text, "timestamp": f"{day}T10:0{n}:00Z"}
        for day, texts in days.items()
        for n, text in enumerate(texts)
    ]
    (path / "log.jsonl").write_text("\n".join(map(json.dumps, rows)))
    done = [memlab_cli(*verb, *STORE, cwd=path).code for verb in (("ingest", "log.jsonl"), ("index",))]
    assert done == [0, 0]
    return path


def test_a_week_and_a_month(folder: Path, memlab_cli: Callable[..., Any]) -> None:
    week = memlab_cli("rollup", "ann", "--week", "2026-03-04", *STORE[:2], cwd=folder)
    assert week.out.startswith("# ann: week of 2 March 2026\n"), week.err
    assert all(part in week.out for part in ("5 turns in 2 sessions", "## Carried on from before", "4417"))
    assert "no model" in week.err
    month = memlab_cli("rollup", "ann", "--month", "2026-03", *STORE[:2], cwd=folder)
    assert month.out.startswith("# ann: March 2026\n")


@pytest.mark.parametrize(
    ("arguments", "word"),
    [("ann", "--week"), ("ann --week 2031-01-01", "no session"), ("bob --month 2026-03", "scope")],
)
def test_what_it_cannot_do_is_one_line(folder: Path, memlab_cli: Callable[..., Any], arguments: str, word: str) -> None:
    done = memlab_cli("rollup", *arguments.split(), *STORE[:2], cwd=folder)
    assert (done.code, done.out) == (2, "")
    [line] = done.messages
    assert word in line
