"""Run one framework of ``frameworks.py`` on one memory of the sample, and write down what it did.

    .venv/bin/python scripts/memories.py
    .venv/bin/python scripts/memories.py NAME ENV/bin/python [SERVICE]

The first prints the tables of ``docs/evaluation/memories.md`` from what is written down.

NAME is a system of ``frameworks.py``, ENV the framework's own environment. Its model's answers come
from ``data/memories/exchanges/NAME.jsonl``; with SERVICE, one of ``[llm.services]``, what is not
there is asked and added. Written beside it: ``returned/NAME.jsonl``, ``stored/NAME.jsonl`` and
``about/NAME.json``, the same bytes each time.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import polars as pl

import memlab
from memlab.evaluate.tables import Table, to_markdown
from memlab.experiments.compare_systems import _compare_with_baseline
from memlab.experiments.recorded_memories import (
    compare_recorded,
    memory_losses,
    read_memories,
    writing_costs,
)
from memlab.files import open_atomically
from memlab.llm.proxy import ModelProxy
from memlab.memories import ProcessMemory, ProxiedMemory, collect

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "data" / "memories"
SCOPE, OWNER, DEPTH = "owen", "Owen", 50
PATIENCE = 6 * 3600.0
TEXTS = ("query_id", "rank", "text", "score", "source_ids", "time")


def run(name: str, python: str, service: str | None = None) -> list[str]:
    """Fill and ask one framework; gives lines about what it asked."""
    data = memlab.sample().take([SCOPE])
    filled = list[ProcessMemory]()

    class Framework(ProcessMemory):
        command = (python, str(ROOT / "scripts" / "frameworks.py"), name)
        owner = OWNER

        def ingest(self, turns: pl.DataFrame) -> None:
            filled.append(self)
            super().ingest(turns)

    encoder = memlab.embed.load("minilm")
    with ModelProxy(
        FOLDER / "exchanges" / f"{name}.jsonl", service=service, encoder=encoder
    ) as proxy:
        memory = ProxiedMemory(Framework, proxy)
        done = collect(memory, data, name=name, k=DEPTH, timeout=PATIENCE)
        if done.failed:
            raise SystemExit("\n".join([*done.problems["problem"], *proxy.lines()]))
        system = filled[-1]
        stored = [_stored_row(row, data) for row in system.stored()]
        versions = system.request("versions")
        system.close()
    problems = done.problems["problem"].to_list()
    about: dict[str, Any] = {
        "system": name,
        "versions": versions,
        "scope": SCOPE,
        "turns": data.turns.height,
        "questions": data.questions.height,
        "phases": {phase: _counted(proxy, phase) for phase in proxy.counts.phases},
        "wanted": sorted(proxy.wanted),
        "problems": len(problems),
    }
    _write(
        FOLDER / "about" / f"{name}.json", json.dumps(about, indent=1, ensure_ascii=False) + "\n"
    )
    _write_lines(FOLDER / "stored" / f"{name}.jsonl", stored)
    rows = done.rows.select(TEXTS).iter_rows(named=True)
    _write_lines(FOLDER / "returned" / f"{name}.jsonl", [_without_nulls(row) for row in rows])
    return [*proxy.lines(), *problems[:10]]


def _stored_row(row: Any, data: memlab.Dataset) -> dict[str, Any]:
    """Give a stored text, and the dataset's own id of its session where the memory names one."""
    if isinstance(row, str):
        return {"text": row}
    sessions = data.turns.sort("timestamp", maintain_order=True)["session_id"]
    own = sessions.unique(maintain_order=True)
    number = int(row["session"].removeprefix("session-"))
    return {"text": row["text"], "session": own[number - 1]}


def _counted(proxy: ModelProxy, phase: str) -> dict[str, Any]:
    """Give what does not depend on the machine: no seconds."""
    counts = proxy.counts.of(phase).describe(None, None)
    return {name: n for name, n in counts.items() if name not in ("seconds", "price")}


def _without_nulls(row: dict[str, Any]) -> dict[str, Any]:
    kept = {name: value for name, value in row.items() if value is not None}
    if "score" in kept:
        kept["score"] = round(kept["score"], 6)
    return kept


def _write_lines(path: Path, rows: list[dict[str, Any]]) -> None:
    _write(path, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))


def _write(path: Path, text: str) -> None:
    with open_atomically(path) as stream:
        stream.write(text.encode())


def tables() -> list[str]:
    """Compare what was written down with two pipelines; no memory runs."""
    memories = read_memories()
    done = compare_recorded(["bm25", "best"], store=memlab.config.settings()[0].store)
    found = done.systems.rename({"recall_all@10_low": "low", "recall_all@10_high": "high"})
    names = ["system", "n", "recall_all@10", "low", "high", "recall_all@10, ≥ 2 sessions"]
    names += ["answer@1000 tokens", "stale@10", "current@10", "tokens returned"]
    against_best = _compare_with_baseline(done.per_query, "best", "auto", 0)
    tests = [each.filter(measure="recall_all@10") for each in (done.tests, against_best)]
    losses, costs = memory_losses(done, memories), writing_costs(memories)
    frames = {"found": found.select(names), "losses": losses, "costs": costs}
    frames |= {"against bm25": tests[0], "against best": tests[1]}
    return [f"{name}\n\n{to_markdown(Table(frame))}\n" for name, frame in frames.items()]


if __name__ == "__main__":
    print(*(run(*sys.argv[1:]) if sys.argv[1:] else tables()), sep="\n")
