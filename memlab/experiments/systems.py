"""Memories, pipelines and rankings from elsewhere side by side: complete recall, answers, tokens, time, failures."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from memlab.embed import Encoder
from memlab.errors import DataError
from memlab.evaluate import stale_table
from memlab.evaluate.misses import CAUSES
from memlab.evaluate.printing import titled
from memlab.evaluate.publish import write_files
from memlab.experiments.outcomes import ANSWER_BUDGET, BUDGETS, clock, missed_by, outcome, paired_tests
from memlab.experiments.returns import DEPTH, from_file, named_systems, returned
from memlab.experiments.running import MODELS, measurable
from memlab.experiments.systems_page import page
from memlab.pipelines import Pipeline
from memlab.records import Dataset
from memlab.retrieve import Bench
from memlab.store import MemoryStore

SCHEMA_VERSION = 1
_FOUND = ("recall_any@10", "recall_all@10", "recall_all@10, ≥ 2 sessions", f"answer@{ANSWER_BUDGET} tokens")
_COSTS = (
    *("tokens returned", "named", "attributed", "ingest s", "until found s", "p50 ms", "p95 ms"),
    *("MB", "tokens read", "tokens written", "failed scopes", "problems"),
)
_STALE = ("stale@10", "current@10", "current first")


@dataclass(frozen=True, eq=False)
class Systems:
    """What systems made of the same questions.

    :param table: a row a system: means over the questions with evidence, tokens, times and failures.
    :param tests: each system against the baseline on :data:`TESTED`: difference, interval, p and Holm's p.
    :param per_query: a row for each system and question.
    :param returned: what each system returned, attributed: ``system``, ``query_id``, ``rank``, ``text``, ``n_tokens``,
        ``how`` and ``turn_ids``.
    :param missed: each piece of evidence that a system does not have among its first ten turns, with its place or null,
        and its cause (:data:`memlab.evaluate.misses.CAUSES`): ``system``, ``query_id``, ``turn_id``, ``rank``,
        ``cause``, and ``nearest``, the rank of the returned text that shares most words with it, where one does.
    :param data: the questions and turns.
    :param problems: what went wrong, in lines.
    :param about: dataset, depth, budgets, seed, and each system's settings.
    """

    table: pl.DataFrame
    tests: pl.DataFrame
    per_query: pl.DataFrame
    returned: pl.DataFrame
    missed: pl.DataFrame
    data: Dataset
    problems: pl.DataFrame
    about: Mapping[str, Any]

    def tables(self) -> dict[str, pl.DataFrame]:
        """Give what is printed, by heading: what was found, in how many tokens, what it cost, and the tests."""
        budgets = [name for name in self.table.columns if name.startswith("recall_all@") and name.endswith("tokens")]
        costs = self.table.select(pl.col("system").alias("cost of"), *_COSTS)
        tables = {
            "Found": self.table.select("system", "n", *_FOUND),
            "All evidence in so many tokens": self.table.select("system", *budgets).rename(
                lambda name: name.removeprefix("recall_all@")
            ),
            "Cost": costs.select(column for column in costs if column.null_count() < costs.height),
        }
        if _STALE[0] in self.table.columns:
            tables["What must not come back"] = self.table.select("system", *_STALE)
        return tables | ({f"Against {self.about['baseline']}": self.tests} if self.tests.height else {})

    def __str__(self) -> str:
        return titled(self.tables())

    def _repr_html_(self) -> str:
        return self.table._repr_html_() + self.tests._repr_html_()

    def write(self, folder: str | Path) -> Path:
        """Write tables and page: ``systems.json`` (its schema is in ``docs/memories.md``) and ``.md``, ``report.html``.

        ``per-query.parquet`` and ``returned.parquet`` hold :attr:`per_query` and :attr:`returned`.
        """
        content = {
            "schema_version": SCHEMA_VERSION,
            "about": dict(self.about),
            "systems": self.table.to_dicts(),
            "tests": self.tests.to_dicts(),
            "problems": self.problems.to_dicts(),
        }
        files: dict[str, str | pl.DataFrame] = {
            "systems.json": json.dumps(content, indent=1, default=str, ensure_ascii=False),
            "systems.md": f"{self}\n",
            "report.html": page(self),
            "per-query.parquet": self.per_query,
            "returned.parquet": self.returned,
        }
        write_files(folder, files)
        return Path(folder)


def compare_systems(
    systems: Any,
    data: Dataset,
    *,
    runs: Sequence[str | Path] = (),
    baseline: str | None = None,
    encoder: Encoder | str | None = "minilm",
    store: MemoryStore | str | Path | None = None,
    folder: str | Path | None = None,
    cross_validate: str | None = None,
    models: str | Path = MODELS,
    k: int = DEPTH,
    timeout: float = 600.0,
    seed: int = 0,
) -> Systems:
    """Put any memories beside any pipelines, on the same questions under one protocol.

    A system gives at most ``k`` texts a question. They are read in its order: by the turns that they come from
    (:func:`memlab.memories.attribute`), as far as they fit into each of :data:`BUDGETS` tokens, and by whether those of
    :data:`ANSWER_BUDGET` hold the answer (:func:`memlab.conversation.holds`). So a memory that returns everything does
    not win, and one that words things anew is not lost. A question whose scope or search failed counts as answered by
    nothing.

    :param systems: one or several: pipelines or their texts, and what :func:`memlab.memories.memory` reads; by name,
        where it is a mapping.
    :param runs: files of what other systems have ranked: TREC runs of turns, or what
        :func:`memlab.memories.read_ranking` reads.
    :param baseline: the name that the tests compare with; the first by default.
    :param encoder: of the pipelines, and of the attribution.
    :param store: where the encoder's vectors are kept.
    :param folder: where what memories returned is kept, so that a comparison that was stopped goes on.
    :param cross_validate: ``"scope"``: ``learned`` without a model ranks each conversation by one that learned from the
        others, kept under ``models``.
    :raises DataError: before anything runs: for no system, two of one name, or one that is neither.

    >>> import memlab
    >>> data = memlab.sample(turns=200)
    >>> def latest(turns, query, k):
    ...     return turns["text"].tail(k)
    >>> done = memlab.compare_systems(["bm25", latest], data, encoder=None)
    >>> done.table["system"].to_list()
    ['bm25', 'latest']
    """
    named = named_systems(systems, timeout=timeout)
    from_files = [from_file(Path(path), data, k) for path in runs]
    names = [*(name for name, _ in named), *(each.name for each in from_files)]
    first = names[0] if baseline is None and names else baseline
    if not names or len(set(names)) < len(names) or first not in names:
        raise DataError(f"systems are {names}, the baseline {first!r}; give at least one, each its own name")
    if "turn" not in measurable(data):
        raise DataError(f"no question of {data.name!r} cites turns; systems are compared by the turns that they find")
    bench = Bench.of(data, encoder=encoder, store=str(store) if isinstance(store, Path) else store)
    parts = []
    for system, found in returned(
        named, bench, data, cross_validate, models, k=k, folder=folder, timeout=timeout, seed=seed
    ):
        asked = found.costs.explode("query_ms")["query_ms"].drop_nulls().to_numpy()
        parts.append((found, clock(system, bench, seed) if isinstance(system, Pipeline) else asked))
    parts += [(found, np.array([])) for found in from_files]
    measured = [outcome(found, times, data, bench.encoder) for found, times in parts]
    per_query = pl.concat([each.values for each in measured])
    table = pl.DataFrame([each.row for each in measured])
    if data.questions["stale"].list.len().sum():
        table = table.hstack(stale_table([each.ranking for each in measured], data).select(*_STALE))
    return Systems(
        table,
        paired_tests(per_query, first, seed),
        per_query,
        pl.concat([each.texts for each in measured]),
        pl.concat([missed_by(each, data) for each in measured]),
        data,
        pl.concat([found.problems.with_columns(system=pl.lit(found.name)) for found, _ in parts]),
        {
            "dataset": data.name,
            "fingerprint": bench.provenance["fingerprint"],
            "baseline": first,
            "k": k,
            "budgets": [*BUDGETS],
            "seed": seed,
            "encoder": bench.provenance.get("encoder"),
            "store MB": _on_disk(bench.store),
            "systems": {found.name: dict(found.provenance) for found, _ in parts},
        },
    )


def _on_disk(store: MemoryStore | None) -> float | None:
    """Give the megabytes of a store on this machine's disk, whatever datasets it holds; pipelines share it."""
    place = Path(str(store.uri)) if store is not None else None
    if place is None or not place.is_dir():
        return None
    return sum(path.stat().st_size for path in place.rglob("*") if path.is_file()) / 1e6


def explain_memory(
    query_id: str,
    system: Any,
    data: Dataset,
    *,
    encoder: Encoder | str | None = "minilm",
    store: MemoryStore | str | Path | None = None,
) -> str:
    """Say of one question what a memory from outside returned, what it missed, and the nearest thing that it returned.

    :param system: what :func:`memlab.memories.memory` reads.
    :returns: Markdown.
    :raises DataError: when there is no such question, or it has no evidence.

    >>> import memlab
    >>> from memlab.experiments import explain_memory
    >>> data = memlab.sample(turns=200)
    >>> asked = data.questions.filter(data.questions["evidence"].list.len() > 0)["query_id"][0]
    >>> told = explain_memory(asked, lambda turns, query, k: turns["text"].tail(1), data, encoder=None)
    >>> "**Missed**" in told
    True
    """
    asked = data.questions.filter(pl.col("query_id") == query_id)
    if asked.is_empty():
        raise DataError(f"no question {query_id!r}; the ids look like {data.questions['query_id'].head(3).to_list()}")
    own = replace(data.take(asked["scope"]), questions=asked)
    done = compare_systems({"memory": system}, own, encoder=encoder, store=store)
    spoken = own.turns.select("turn_id", missed=pl.col("text").str.slice(0, 100))
    texts = done.returned.select("rank", text=pl.col("text").str.slice(0, 100))
    missed = done.missed.join(spoken, on="turn_id", maintain_order="left")
    missed = missed.with_columns(cause=pl.col("cause").replace_strict(CAUSES)).join(
        texts.select(nearest="rank", nearest_text="text"), on="nearest", how="left", maintain_order="left"
    )
    tables = {
        "Returned, the first ten": done.returned.select(
            "rank", evidence=_evidence(asked["evidence"][0]), how="how"
        ).hstack(texts.select("text"))[:10],
        "Missed": missed.select("missed", "rank", "cause", "nearest_text"),
        "Problems": done.problems.select("problem"),
    }
    told = titled({title: table for title, table in tables.items() if table.height})
    return f"{asked['text'][0]} → {asked['answer'][0]}\n\n{told}"


def _evidence(turns: Sequence[str]) -> pl.Expr:
    hit = pl.col("turn_ids").list.eval(pl.element().is_in([*turns])).list.any()
    return pl.when(hit).then(pl.lit("●")).otherwise(pl.lit(""))
