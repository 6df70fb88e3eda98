"""Run one framework of ``frameworks.py`` on one memory of the sample, and write down what it did.

    .venv/bin/python scripts/memories.py [--input-price .15 --output-price .60]
    .venv/bin/python scripts/memories.py NAME ENV/bin/python [--service SERVICE] [--replace]

The first prints the tables of ``docs/evaluation/memories.md`` from what is written down, the same
bytes each time; prices are of a million tokens.

NAME is a system of ``frameworks.py``, ENV the framework's own environment. Its model's answers come
from ``data/memories/exchanges/NAME.jsonl``; with SERVICE, one of ``[llm.services]``, what is not
there is asked and added. Written beside it where they are not there, or with ``--replace``:
``returned/NAME.jsonl``, ``stored/NAME.jsonl`` and ``about/NAME.json``. Otherwise they are compared
with this run and kept: a framework need not return the same rows twice, hindsight does not.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import polars as pl

import memlab
from memlab.atomic_files import open_atomically
from memlab.evaluate.printed_tables import Table, to_markdown
from memlab.evaluate.system_comparison import compare_question_outcomes
from memlab.experiments.compare_systems import _test_systems_against_baseline
from memlab.experiments.recorded_memories import (
    compare_pipelines_with_recorded_memories,
    files_of_recorded_returns,
    memory_loss_table,
    read_recorded_memories,
    writing_and_searching_costs,
)
from memlab.llm.proxy import ModelProxy
from memlab.memories import ProcessMemory, ProxiedMemory, collect
from memlab.memories.running_a_memory import merge_problems_into_counted_lines

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "data" / "memories"
SCOPE, OWNER, DEPTH = "owen", "Owen", 50
PATIENCE = 6 * 3600.0
TEXTS = ("query_id", "rank", "text", "score", "source_ids", "time")


def run(
    name: str, python: str, service: str | None = None, *, is_replaced: bool = False
) -> list[str]:
    """Fill and ask one framework; gives lines about what it asked and whether it did the same.

    :param is_replaced: whether what is written down gives way to what this run did.
    """
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
    rows = done.rows.select(TEXTS).iter_rows(named=True)
    made = {
        f"about/{name}.json": json.dumps(about, indent=1, ensure_ascii=False) + "\n",
        f"stored/{name}.jsonl": _as_lines(stored),
        f"returned/{name}.jsonl": _as_lines([_without_nulls(row) for row in rows]),
    }
    kept = [_write_or_compare(FOLDER / file, text, is_replaced) for file, text in made.items()]
    return [
        *proxy.lines(),
        *merge_problems_into_counted_lines(done.problems.with_columns(system=pl.lit(name))),
        *kept,
    ]


def _write_or_compare(path: Path, text: str, is_replaced: bool) -> str:
    """Write a file that is not there or gives way; else say how it differs from this run."""
    if is_replaced or not path.exists():
        with open_atomically(path) as stream:
            stream.write(text.encode())
        return f"{path.name}: written"
    before = path.read_text(encoding="utf-8")
    if before == text:
        return f"{path.parent.name}/{path.name}: the same bytes"
    line = f"{path.parent.name}/{path.name}: kept, and this run differs"
    if path.parent.name != "returned":
        return line
    first, second = _first_ten(before), _first_ten(text)
    n_same = sum(first[query] == second.get(query) for query in first)
    return f"{line}; the same first ten for {n_same:,} of {len(first):,} questions"


def _first_ten(lines: str) -> dict[str, list[str]]:
    """Give the first ten texts of each question."""
    texts = dict[str, list[str]]()
    for line in lines.splitlines():
        row = json.loads(line)
        own = texts.setdefault(row["query_id"], [])
        if len(own) < 10:
            own.append(row["text"])
    return texts


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
    counts = proxy.counts.get_or_add_counts_of_phase(phase).describe(None, None)
    return {name: n for name, n in counts.items() if name not in ("seconds", "price")}


def _without_nulls(row: dict[str, Any]) -> dict[str, Any]:
    kept = {name: value for name, value in row.items() if value is not None}
    if "score" in kept:
        kept["score"] = round(kept["score"], 6)
    return kept


def _as_lines(rows: list[dict[str, Any]]) -> str:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def tables(input_price: float | None, output_price: float | None) -> list[str]:
    """Compare what was written down with two pipelines; no memory runs."""
    memories = read_recorded_memories()
    done = compare_pipelines_with_recorded_memories(
        ["bm25", "best"], store=memlab.config.settings()[0].store
    )
    found = done.systems.rename({"recall_all@10_low": "low", "recall_all@10_high": "high"})
    names = ["system", "n", "recall_all@10", "low", "high", "recall_all@10, ≥ 2 sessions"]
    names += ["answer@1000 tokens", "stale@10", "current@10", "tokens returned"]
    against_best = _test_systems_against_baseline(done.per_query, "best", "auto", 0)
    tests = [each.filter(measure="recall_all@10") for each in (done.tests, against_best)]
    losses = memory_loss_table(done, memories)
    costs = writing_and_searching_costs(
        memories, input_price=input_price, output_price=output_price
    )
    frames = {"found": found.select(names), "losses": losses, "costs": costs}
    frames |= {"against bm25": tests[0], "against best": tests[1]}
    shares, answers_against_best = answers()
    frames |= {"answers": shares, "answers against best": answers_against_best}
    return [f"{name}\n\n{to_markdown(Table(frame))}\n" for name, frame in frames.items()]


def answers() -> tuple[pl.DataFrame, pl.DataFrame]:
    """Give the share of right answers from 1,000 tokens of what each system returned, as recorded.

    And the paired tests of these shares against ``best``.
    """
    done = memlab.answer_questions(
        ["bm25", "best"],
        memlab.sample(scopes=[SCOPE]),
        bounds=(),
        runs=files_of_recorded_returns(),
        service="recorded",
        store=memlab.config.settings()[0].store,
    )
    shares = done.table.select("system", "n", "correct", "low", "high", "judged")
    outcomes = done.per_query.select("system", "query_id", "scope", hit="correct")
    return shares, compare_question_outcomes(outcomes, baseline="best")


def read_arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("name", nargs="?")
    parser.add_argument("python", nargs="?")
    parser.add_argument("--service")
    parser.add_argument("--replace", action="store_true")
    parser.add_argument("--input-price", type=float)
    parser.add_argument("--output-price", type=float)
    given = parser.parse_args()
    if (given.name is None) != (given.python is None):
        parser.error("name the framework and its Python, or neither")
    if (given.input_price is None) != (given.output_price is None):
        parser.error("--input-price and --output-price go together")
    return given


if __name__ == "__main__":
    given = read_arguments()
    if given.name is None:
        shown = tables(given.input_price, given.output_price)
    else:
        shown = run(given.name, given.python, given.service, is_replaced=given.replace)
    print(*shown, sep="\n")
