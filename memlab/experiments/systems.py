"""Memories, pipelines and rankings from elsewhere side by side: complete recall, answers, tokens, time, failures."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import polars as pl

from memlab.context import holding
from memlab.embed import Encoder, load
from memlab.errors import DataError, MemlabError, PipelineError
from memlab.evaluate import bootstrap_interval, evaluate, holm, randomisation_test, read_run, stale_table
from memlab.evaluate.misses import CAUSES, misses
from memlab.evaluate.printing import to_markdown
from memlab.evaluate.stale import plain_stale
from memlab.experiments.experiment import CELLS, Experiment
from memlab.experiments.folds import train_folds, untrained, with_models
from memlab.experiments.running import MODELS, measurable
from memlab.experiments.systems_page import page
from memlab.files import atomic
from memlab.language.analysis import tokenize
from memlab.memories import (
    Memory,
    Returned,
    as_returned,
    attribute,
    collect,
    memory,
    ranked,
    read_ranking,
    within,
    written,
)
from memlab.pipelines import Pipeline, pipeline
from memlab.records import Dataset
from memlab.retrieve import Bench
from memlab.store import MemoryStore

BUDGETS = (200, 500, 1_000, 2_000, 4_000)
ANSWER_BUDGET = 1_000
DEPTH = 50
TIMED = 20
SCHEMA_VERSION = 1
TESTED = ("recall_all@10", "recall_all@1000 tokens", "answer@1000 tokens")
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
            tables["What must not come back"] = plain_stale(self.table.select("system", *_STALE))
        return tables | ({f"Against {self.about['baseline']}": self.tests} if self.tests.height else {})

    def __str__(self) -> str:
        return "\n\n".join(f"**{title}**\n\n{to_markdown(each)}" for title, each in self.tables().items())

    def _repr_html_(self) -> str:
        return self.table._repr_html_() + self.tests._repr_html_()

    def write(self, folder: str | Path) -> Path:
        """Write tables and page: ``systems.json`` (its schema is in ``docs/memories.md``) and ``.md``, ``report.html``.

        ``per-query.parquet`` and ``returned.parquet`` hold :attr:`per_query` and :attr:`returned`.
        """
        place = Path(folder)
        content = {
            "schema_version": SCHEMA_VERSION,
            "about": dict(self.about),
            "systems": self.table.to_dicts(),
            "tests": self.tests.to_dicts(),
            "problems": self.problems.to_dicts(),
        }
        with atomic(place / "systems.json") as stream:
            stream.write(json.dumps(content, indent=1, default=str, ensure_ascii=False).encode())
        with atomic(place / "systems.md") as stream:
            stream.write(f"{self}\n".encode())
        with atomic(place / "report.html") as stream:
            stream.write(page(self).encode("utf-8", "backslashreplace"))
        with atomic(place / "per-query.parquet") as stream:
            self.per_query.write_parquet(stream)
        with atomic(place / "returned.parquet") as stream:
            self.returned.write_parquet(stream)
        return place


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
    :data:`ANSWER_BUDGET` hold the answer (:func:`memlab.context.holds`). So a memory that returns everything does not
    win, and one that words things anew is not lost. A question whose scope or search failed counts as answered by
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
    >>> data = memlab.datasets.synthetic.generate(turns=200, seed=0)
    >>> def latest(turns, query, k):
    ...     return turns["text"].tail(k)
    >>> done = memlab.compare_systems(["bm25", latest], data, encoder=None)
    >>> done.table["system"].to_list()
    ['bm25', 'latest']
    """
    named = named_systems(systems)
    from_files = [from_file(Path(path), data, k) for path in runs]
    names = [*(name for name, _ in named), *(each.name for each in from_files)]
    first = names[0] if baseline is None and names else baseline
    if not names or len(set(names)) < len(names) or first not in names:
        raise DataError(f"systems are {names}, the baseline {first!r}; give at least one, each its own name")
    if "turn" not in measurable(data):
        raise DataError(f"no question of {data.name!r} cites turns; systems are compared by the turns that they find")
    model = load(encoder) if isinstance(encoder, str) else encoder
    bench = Bench.of(data, encoder=model, store=str(store) if isinstance(store, Path) else store)
    named = trained(named, bench, data, cross_validate, models, seed)
    parts = []
    for name, system in named:
        if isinstance(system, Pipeline):
            found = as_returned(system.run(bench).top(k), data, name)
            times = _clock(system, bench, seed)
        else:
            found = collect(system, data, name=name, k=k, folder=folder, timeout=timeout)
            times = found.costs.explode("query_ms")["query_ms"].drop_nulls().to_numpy()
        parts.append((found, times))
    parts += [(found, np.array([])) for found in from_files]
    measured = [_measured(found, times, data, bench.encoder) for found, times in parts]
    per_query = pl.concat([each[0] for each in measured])
    table = pl.DataFrame([each[1] for each in measured])
    if data.questions["stale"].list.len().sum():
        rankings = [ranked(found, each[2]) for (found, _), each in zip(parts, measured, strict=True)]
        table = table.hstack(stale_table(rankings, data).select(*_STALE))
    return Systems(
        table,
        _tests(per_query, first, seed),
        per_query,
        pl.concat([each[2] for each in measured]),
        pl.concat([_missed(found, each[2], data) for (found, _), each in zip(parts, measured, strict=True)]),
        data,
        pl.concat([found.problems.with_columns(system=pl.lit(found.name)) for found, _ in parts]),
        {
            "dataset": data.name,
            "fingerprint": bench.provenance["fingerprint"],
            "baseline": first,
            "k": k,
            "budgets": [*BUDGETS],
            "seed": seed,
            "encoder": None if model is None else model.identity.describe(),
            "store MB": _on_disk(bench.store),
            "systems": {found.name: dict(found.provenance) for found, _ in parts},
        },
    )


def _clock(stages: Pipeline, bench: Bench, seed: int) -> np.ndarray:
    """Time single questions, in milliseconds, each encoded anew unless the ranking is the same without its vector.

    The first warms models and indexes, and is asked twice.
    """
    rows = np.random.default_rng(seed).permutation(bench.queries.height)[:TIMED]
    if bench.encoder is not None and len(rows):
        first = bench.with_rows(rows[:1], stored=False)
        wordless = replace(bench, encoder=None, query_vectors=None, _shown={})
        with suppress(MemlabError):
            if stages.run(wordless.with_rows(rows[:1])).frame.equals(stages.run(first).frame):
                bench = wordless
    spent = []
    for row in (*rows[:1], *rows):
        alone = bench.with_rows(np.array([row]), stored=False)
        started = perf_counter()
        stages.run(alone.with_queries(alone.queries))
        spent.append(1000 * (perf_counter() - started))
    return np.array(spent[1:])


def trained(
    named: list[tuple[str, Pipeline | Memory]],
    bench: Bench,
    data: Dataset,
    cross_validate: str | None,
    models: str | Path,
    seed: int,
) -> list[tuple[str, Pipeline | Memory]]:
    """Give each ``learned`` without a model the models of the other conversations."""
    learning = [name for name, system in named if isinstance(system, Pipeline) and untrained([system])]
    if not learning:
        return named
    if cross_validate != "scope":
        raise DataError(
            f"{learning[0]!r} has no model: name one as learned(model='FILE'), or train by conversation with "
            "cross_validate='scope' (memlab compare --cross-validate scope)"
        )
    train_folds(bench, data, models, seed=seed)
    return [
        (name, with_models([system], models)[0] if isinstance(system, Pipeline) else system) for name, system in named
    ]


def _on_disk(store: MemoryStore | None) -> float | None:
    """Give the megabytes of a store on this machine's disk, whatever datasets it holds; pipelines share it."""
    place = Path(str(store.uri)) if store is not None else None
    if place is None or not place.is_dir():
        return None
    return sum(path.stat().st_size for path in place.rglob("*") if path.is_file()) / 1e6


def _total(found: Returned, column: str, unit: float = 1) -> float | None:
    values = found.costs[column].drop_nulls()
    return float(values.sum()) / unit if len(values) else None


def _missed(found: Returned, texts: pl.DataFrame, data: Dataset) -> pl.DataFrame:
    """List the evidence that a system misses, why, and what it returned that is nearest."""
    pieces = misses(ranked(found, texts.select("query_id", "rank", "how", "turn_ids")), data, k=10)
    pieces = pieces.select(system=pl.lit(found.name), query_id="query_id", turn_id="doc_id", rank="rank", cause="cause")
    spoken = data.turns.filter(pl.col("turn_id").is_in(pieces["turn_id"].implode())).select("turn_id", "text")
    told = texts.select("query_id", "rank", word=pl.Series(tokenize(texts["text"].to_list()), dtype=pl.List(pl.String)))
    said = spoken.select("turn_id", word=pl.Series(tokenize(spoken["text"].to_list()), dtype=pl.List(pl.String)))
    shared = (
        pieces.select("query_id", "turn_id")
        .join(said, on="turn_id")
        .join(told, on="query_id", suffix="_told")
        .with_columns(n=pl.col("word").list.set_intersection("word_told").list.len())
        .filter(pl.col("n") > 0)
        .sort("n", "rank", descending=[True, False])
        .group_by("query_id", "turn_id", maintain_order=True)
        .agg(nearest=pl.col("rank").first())
    )
    return pieces.join(shared, on=["query_id", "turn_id"], how="left", maintain_order="left")


def from_file(path: Path, data: Dataset, k: int) -> Returned:
    if path.suffix in (".json", ".jsonl"):
        return read_ranking(path, data, k=k)
    return as_returned(read_run(path, "turn").top(k), data, path.stem)


def named_systems(systems: Any) -> list[tuple[str, Pipeline | Memory]]:
    """Read the systems, each with the name that it has in tables."""
    if isinstance(systems, Mapping):
        return [(name, _system(system)) for name, system in systems.items()]
    alone = isinstance(systems, (str, Pipeline, Memory)) or callable(systems)
    listed = [systems] if alone else systems
    return [(_name(system), _system(system)) for system in listed]


def _name(system: Any) -> str:
    if isinstance(system, (str, Pipeline)):
        return str(system)
    return str(getattr(system, "__name__", type(system).__name__))


def _system(system: Any) -> Pipeline | Memory:
    if isinstance(system, Pipeline):
        return system
    if isinstance(system, str) and "://" not in system and ":" not in system.partition("(")[0]:
        try:
            return pipeline(system)
        except PipelineError as error:
            raise PipelineError(f"{error}; a memory is written module:name or http://HOST:PORT") from None
    return memory(system)


def _measured(
    found: Returned, times: np.ndarray, data: Dataset, encoder: Encoder | None
) -> tuple[pl.DataFrame, dict[str, Any], pl.DataFrame]:
    """Give one system's values by question, its row of the table, and its attributed texts."""
    sources = attribute(found, data, encoder)
    rows = written(found).join(sources, on=["query_id", "rank"], how="left", maintain_order="left")
    questions = data.questions.filter(~pl.col("abstention") & (pl.col("evidence").list.len() > 0))
    asked = questions.select("query_id", "scope", "evidence", n_sessions=pl.col("evidence_sessions").list.n_unique())
    turns = rows.explode("turn_ids").drop_nulls("turn_ids")
    unique = turns.unique(["query_id", "turn_ids"], keep="first", maintain_order=True).with_columns(
        place=pl.int_range(1, pl.len() + 1).over("query_id")
    )
    values = asked
    cuts = {"@10": unique.filter(pl.col("place") <= 10)}
    cuts |= {f"@{budget} tokens": unique.filter(pl.col("after") <= budget) for budget in BUDGETS}
    evidence = asked.select("query_id", turn_ids=pl.col("evidence").list.unique()).explode("turn_ids")
    for cut, part in cuts.items():
        hits = evidence.join(part.select("query_id", "turn_ids", hit=True), on=["query_id", "turn_ids"], how="left")
        shares = hits.group_by("query_id").agg(share=pl.col("hit").fill_null(False).mean())
        values = values.join(shares, on="query_id", how="left", maintain_order="left").with_columns(
            (pl.col("share") == 1).cast(pl.Float64).alias(f"recall_all{cut}"),
            (pl.col("share") > 0).cast(pl.Float64).alias(f"recall_any{cut}"),
        )
        values = values.drop("share")
    there = holding({found.name: within(rows, asked, ANSWER_BUDGET)}, questions)["holds"]
    values = values.with_columns(there.cast(pl.Float64).alias(f"answer@{ANSWER_BUDGET} tokens"))
    measures = [column for column in values.columns if "@" in column]
    means = values.select(pl.col(measures).mean()).row(0, named=True)
    several = values.filter(pl.col("n_sessions") >= 2)["recall_all@10"].mean()
    hows = {how: n / max(1, rows.height) for how, n in rows["how"].value_counts().iter_rows()}
    row = {
        "system": found.name,
        "n": values.height,
        **{name: means[name] for name in ("recall_any@10", "recall_all@10")},
        "recall_all@10, ≥ 2 sessions": several,
        **{name: mean for name, mean in means.items() if "tokens" in name and "any" not in name},
        "tokens returned": rows["n_tokens"].sum() / data.questions.height,
        "named": hows.get("given", 0.0),
        "attributed": sum(hows.get(how, 0.0) for how in ("span", "copy", "matched")),
        "ingest s": found.costs["ingest_seconds"].sum() if found.costs.height else None,
        "until found s": found.costs["wait_seconds"].sum() if found.costs.height else None,
        "p50 ms": float(np.percentile(times, 50)) if len(times) else None,
        "p95 ms": float(np.percentile(times, 95)) if len(times) else None,
        "MB": _total(found, "bytes", 1e6),
        "tokens read": _total(found, "tokens_read"),
        "tokens written": _total(found, "tokens_written"),
        "failed scopes": len(found.failed),
        "problems": found.problems.height,
    }
    system = pl.lit(found.name).alias("system")
    texts_of = rows.select(system, "query_id", "rank", "text", "n_tokens", "how", "turn_ids")
    return values.select(system, pl.exclude("evidence")), row, texts_of


def _tests(per_query: pl.DataFrame, baseline: str, seed: int) -> pl.DataFrame:
    """Compare every system with one, on each of the tested measures; Holm's correction within a measure."""
    rows = []
    others = [name for name in per_query["system"].unique(maintain_order=True) if name != baseline]
    for name in (each for each in TESTED if each in per_query.columns):
        wide = per_query.pivot("system", index="query_id", values=name, maintain_order=True).drop_nulls()
        part = []
        for other in others:
            differences = (wide[other] - wide[baseline]).to_numpy()
            low, high = bootstrap_interval(differences[:, None], np.ones(len(differences)), seed=seed)
            part.append(
                {
                    "measure": name,
                    "system": other,
                    "n": len(differences),
                    "difference": float(differences.mean()) if len(differences) else None,
                    "low": float(low[0]),
                    "high": float(high[0]),
                    "p": float(randomisation_test(differences, seed=seed)),
                }
            )
        corrected = holm(np.array([row["p"] for row in part]))
        rows += [row | {"p_holm": float(p)} for row, p in zip(part, corrected, strict=True)]
    return pl.DataFrame(rows)


def with_rankings(done: Experiment, paths: Sequence[str | Path], *, encoder: Encoder | None = None) -> Experiment:
    """Put rankings from elsewhere beside the pipelines of an experiment on one dataset, at the levels that it has.

    :param paths: TREC runs of turns, or what :func:`memlab.memories.read_ranking` reads; each is named by its file.
    :param encoder: for texts without ids, see :func:`memlab.memories.attribute`.
    :raises DataError: for several datasets, two of one name, or ids that the dataset does not hold.
    """
    if not paths:
        return done
    if len(done.datasets) > 1:
        raise DataError("rankings are of one dataset; evaluate it alone")
    (data,) = done.datasets
    names = [*(report.name for report in done.reports), *(Path(path).stem for path in paths)]
    taken = [name for name in names[len(done.reports) :] if names.count(name) > 1]
    if taken:
        raise DataError(f"two rankings are called {taken[0]!r}; rename a file")
    runs, reports, cells = [*done.runs], [*done.reports], [done.cells]
    levels = list(dict.fromkeys(report.level for report in done.reports))
    for path in map(Path, paths):
        found = from_file(path, data, 200)
        sources = attribute(found, data, encoder)
        for level in levels:
            runs.append(ranked(found, sources, level))
            reports.append(evaluate(runs[-1], data, measures=done.of(level)[0].measures, seed=done.reports[0].seed))
            row = {"dataset": data.name, "pipeline": path.stem, "level": level, "run_id": None, "read": False}
            cells.append(pl.DataFrame([row], schema=CELLS))
    return replace(done, runs=tuple(runs), reports=tuple(reports), cells=pl.concat(cells))


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
    >>> data = memlab.datasets.synthetic.generate(turns=200, seed=0)
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
    parts = [f"**{title}**\n\n{to_markdown(table)}" for title, table in tables.items() if table.height]
    return "\n\n".join([f"{asked['text'][0]} → {asked['answer'][0]}", *parts])


def _evidence(turns: Sequence[str]) -> pl.Expr:
    hit = pl.col("turn_ids").list.eval(pl.element().is_in([*turns])).list.any()
    return pl.when(hit).then(pl.lit("●")).otherwise(pl.lit(""))
