"""Memories, pipelines and rankings from elsewhere side by side: complete recall, answers, tokens, time, failures."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import polars.selectors as cs

from memlab.errors import DataError, check_at_least
from memlab.evaluate import Table, conclusions, misses, stale_table
from memlab.evaluate.comparison import STALE_COLUMNS
from memlab.evaluate.conclusions import Conclusions
from memlab.evaluate.confidence_intervals import Unit, clustering_scopes
from memlab.evaluate.groups import with_sources
from memlab.evaluate.measures import MeasureLike
from memlab.evaluate.misses import CAUSES
from memlab.evaluate.report_files import latex_tables, write_files
from memlab.evaluate.significance import compare_paired
from memlab.evaluate.tables import tables_to_markdown
from memlab.experiments.experiment import CELLS, Experiment
from memlab.experiments.joining import check_same_protocol, match_datasets
from memlab.experiments.run_pipelines import (
    distinct_datasets,
    unmeasurable_line,
    warn_once,
)
from memlab.experiments.system_rankings import ANSWER_BUDGET, BUDGETS, AskingOptions, measure_system
from memlab.explanation import Explanation, explain_nothing
from memlab.llm.proxy.model_proxy import phase_line
from memlab.memories import ReturnedTexts
from memlab.records import Dataset, qrels
from memlab.source_labels import COLUMN, explain_question
from memlab.terminal import count_noun, escape_markdown, shorten_line
from memlab.text.analysis import tokenize

SCHEMA_VERSION = 1
_ANSWER = f"answer@{ANSWER_BUDGET} tokens"
TESTED_MEASURES = ("recall_all@10", "recall_all@1000 tokens", _ANSWER)
_SEVERAL = "recall_all@10, ≥ 2 sessions"
_FOUND_MEASURES = ("recall_any@10", "recall_all@10", _SEVERAL, _ANSWER)
_COST_COLUMNS = (
    *("tokens returned", "named", "attributed", "ingest s", "until found s", "p50 ms", "p95 ms"),
    *("MB", "tokens read", "tokens written", "failed scopes", "problems"),
    *("prompts", "prompts refused"),
)


@dataclass(frozen=True, repr=False, kw_only=True)
class Comparison(Experiment):
    """An experiment whose systems are pipelines, memories and rankings; reports are of the turns behind their texts.

    :param systems: a row a system: means over the questions with evidence, tokens, times and
        failures.
    :param tests: each system against the baseline: measure, mean, difference with its interval, p
        and Holm's p.
    :param per_query: a row for each system and question.
    :param returned: what each system returned, attributed: ``system``, ``query_id``, ``rank``,
        ``text``, ``n_tokens``, ``how`` and ``turn_ids``.
    :param problems: what went wrong, in lines.
    :param calls: what memories asked of a model, where that was counted: ``system`` and
        :data:`memlab.memories.collecting.CALLS_SCHEMA`.
    :param about: dataset, depth, budgets, seed, and each system's settings.
    """

    systems: Table
    tests: Table
    per_query: pl.DataFrame
    returned: pl.DataFrame
    problems: pl.DataFrame
    calls: pl.DataFrame
    about: Mapping[str, Any]

    def tables(self) -> dict[str, pl.DataFrame]:
        """Give what is printed, by heading: what was found, in how many tokens, what it cost, and the tests."""
        budgets = {f"recall_all@{budget} tokens": f"{budget} tokens" for budget in BUDGETS}
        costs = self.systems.select(pl.col("system").alias("cost of"), *_COST_COLUMNS)
        by_source = [name for name in (COLUMN,) if name in self.systems.columns]
        tables = {
            "Found": self.systems.select(
                self._marked_names(), "n", *_FOUND_MEASURES, *by_source
            ).rename(self._counted()),
            "All evidence in so many tokens": self.systems.select("system", *budgets).rename(
                budgets
            ),
            "Cost": costs.select(column for column in costs if column.null_count() < costs.height),
        }
        if STALE_COLUMNS[0] in self.systems.columns:
            tables["What must not come back"] = self.systems.select("system", *STALE_COLUMNS)
        return tables | (
            {f"Against {self.about['baseline']}": self.tests} if self.tests.height else {}
        )

    def _marked_names(self) -> pl.Expr:
        """Give the names, each with what its numbers lack: 0 of a failed memory is no measurement."""
        lacks = pl.format("{} ({})", "system", "status")
        return pl.when(pl.col("status") == "").then("system").otherwise(lacks).alias("system")

    def without_result(self) -> list[str]:
        """Name the systems that have no result at all.

        Those are systems that returned nothing, and memories none of whose prompts had an answer.
        """
        lacking = self.systems.filter(pl.col("status").str.starts_with("no result"))
        return lacking["system"].to_list()

    def call_lines(self) -> list[str]:
        """Say what each memory asked of a model, a line a phase, and why it was refused first."""
        lines = list[str]()
        for (system, phase), rows in self.calls.group_by("system", "phase", maintain_order=True):
            counts = rows.select(cs.numeric().sum()).row(0, named=True)
            if rows["price"].null_count():
                counts["price"] = None
            lines.append(f"{system}, {phase}: {phase_line(counts)}")
            n_refused = counts["prompts_refused"]
            if n_refused:
                prompts = count_noun(counts["prompts"], "prompts")
                why = rows["refusal"].drop_nulls()[0]
                lines.append(f"{n_refused:,} of {prompts} refused, the first: {why}")
        return lines

    def _counted(self) -> dict[str, str]:
        """Name the measures that fewer than all questions have with their number of questions."""
        own = self.per_query.filter(system=self.systems["system"].first())
        several = own.filter(pl.col("n_sessions") >= 2).height
        answered = own[_ANSWER].count()
        return {
            _SEVERAL: f"{_SEVERAL} (n = {several:,})",
            _ANSWER: f"{_ANSWER} (n = {answered:,})",
        }

    def conclusions(
        self,
        measure: MeasureLike = "recall_all@10",
        *,
        system: str | None = None,
        left_out: Iterable[str] = (),
    ) -> Conclusions:
        """Say in sentences which systems find more than the baseline, and which fewer.

        :param measure: one of :data:`TESTED_MEASURES`.
        :param system: of which is said too what it finds in few tokens and in many, and what it
            misses.
        :param left_out: systems that could not be compared, as they are not installed.
        """
        baseline = self.about["baseline"]
        said = [
            *conclusions.memories(self.systems, self.tests, baseline=baseline, measure=str(measure))
        ]
        if system is not None:
            said += conclusions.budgets(self.per_query, system=system, unit=self.reports[0].unit)
            said += conclusions.missed_by(self.misses(system=system), system=system)
        said += conclusions.of_sources(self.reports[0].per_query)
        said += [f"Not installed, and left out: {name}." for name in sorted(left_out)]
        return Conclusions(said)

    def lost(self, *, system: str, to: str) -> pl.DataFrame:
        """List the questions that one system completes and another does not, those with most evidence first.

        :param system: the one that loses them; where there are none, all its questions are listed.
        :param to: the other.
        :returns: ``query_id`` and both values of recall_all@10.
        """
        values = self.per_query.filter(pl.col("system").is_in([system, to]))
        wide = values.pivot("system", index="query_id", values="recall_all@10", maintain_order=True)
        if wide.is_empty():
            return wide
        lost = wide.filter(pl.col(system) < 1, pl.col(to) == 1)
        rows = lost if lost.height else wide
        asked = self.data.questions.select("query_id", items=pl.col("evidence").list.n_unique())
        rows = rows.join(asked, on="query_id", maintain_order="left")
        return rows.sort("items", descending=True, maintain_order=True).drop("items")

    def join(self, other: Experiment) -> Comparison:
        """Put the systems of two comparisons on the same data side by side, this one's first.

        All are tested against this one's baseline. A system of one name that returned the same in both is one.

        :param other: a comparison, made with the same depth, encoder, unit and seed.
        :raises DataError: for other data or other options, or for one name that returned different
            things, with what differs.

        >>> import memlab
        >>> data = memlab.sample(turns=200)
        >>> first = memlab.compare("bm25", data, encoder=None)
        >>> second = memlab.compare({"own": "bm25(b=0)"}, data, encoder=None)
        >>> first.join(second).tests["system"].unique().to_list()
        ['own']
        """
        if not isinstance(other, Comparison):
            raise DataError(
                "only a comparison is joined with a comparison: make both by memlab.compare"
            )
        match_datasets(self.datasets, other.datasets)
        check_same_protocol(self.about, other.about)
        ours = self.systems["system"].to_list()
        new = list[int]()
        for row, name in enumerate(other.systems["system"]):
            if name not in ours:
                new.append(row)
                continue
            is_same = self.runs[ours.index(name)].frame.equals(other.runs[row].frame)
            if not is_same:
                raise DataError(
                    f"both comparisons have a system {name!r}, and it did not return the same; "
                    "name one of them: memlab.compare({NAME: SYSTEM}, …)"
                )
        added = [other.systems["system"][row] for row in new]
        is_new = pl.col("system").is_in(added)
        frames = {}
        for name in ("systems", "per_query", "returned", "problems", "calls"):
            both = [getattr(self, name), getattr(other, name).filter(is_new)]
            frames[name] = pl.concat(both, how="vertical_relaxed")
        tests = self.tests
        if added:
            about = self.about["unit"], self.about["seed"]
            tests = _compare_with_baseline(frames["per_query"], self._baseline_name(), *about)
        kept_cells = other.cells.filter(pl.col("pipeline").is_in(added))
        settings = {name: other.about["systems"][name] for name in added}
        return replace(
            self,
            name=" + ".join(dict.fromkeys((self.name, other.name))),
            runs=(*self.runs, *(other.runs[row] for row in new)),
            reports=(*self.reports, *(other.reports[row] for row in new)),
            cells=pl.concat([self.cells, kept_cells.with_columns(dataset=pl.lit(self.data.name))]),
            systems=Table(frames.pop("systems")),
            tests=tests,
            **frames,
            about={**self.about, "systems": {**self.about["systems"], **settings}},
        )

    def _baseline_name(self) -> str:
        """Give the name that tables have for the baseline: a pipeline's says what was left out."""
        wanted, systems = str(self.about["baseline"]), self.about["systems"]
        if wanted in systems:
            return wanted
        return next(str(name) for name in systems if systems[name].get("pipeline") == wanted)

    def _notes(self) -> list[str]:
        return []  # no value of these tables is bold; the tests have their own note

    def to_latex(self, *, baseline: str | None = None) -> str:
        """Give the tables that are printed as LaTeX, as ``systems.tex`` has them.

        :param baseline: the system that the others are tested against; that of the comparison by
            default.
        :raises DataError: when no system is called so.
        """
        return latex_tables({"turn": self._tested_against(baseline).tables()})

    def _tested_against(self, baseline: str | None) -> Comparison:
        """Give the same comparison with its tests against another system."""
        if baseline is None or baseline == self.about["baseline"]:
            return self
        name = self.cells["pipeline"][self._index(baseline)]
        tests = _compare_with_baseline(self.per_query, name, self.about["unit"], self.about["seed"])
        return replace(self, tests=tests, about={**self.about, "baseline": name})

    def _repr_html_(self) -> str:
        return self.systems._repr_html_() + self.tests._repr_html_()

    def why(
        self, query_id: str | None = None, *, system: str | None = None, k: int = 10
    ) -> Explanation | str:
        """Follow one question through a pipeline, or say what a memory returned and missed.

        :param query_id: of the question; by default that which :meth:`worst` names first.
        :param system: its name; the last by default.
        :param k: how many first texts are shown, and first turns count as found.
        :raises DataError: when there is no such question or system, or the question has no
            evidence.
        """
        name = self.cells["pipeline"][self._index(system)]
        if query_id is None:
            lowest = self.worst(1, system=name)
            if lowest.is_empty():
                return explain_nothing()
            query_id = str(lowest["query_id"][0])
        if "pipeline" in self.about["systems"][name]:
            return super().why(query_id, system=name, k=k)
        of_it = (pl.col("query_id") == query_id) & (pl.col("system") == name)
        if self.per_query.filter(of_it).is_empty():
            raise DataError(f"no question with evidence is called {query_id!r}")
        asked = self.data.questions.row(by_predicate=pl.col("query_id") == query_id, named=True)
        check_at_least(1, k=k)
        returned = self.returned.filter(of_it)
        cut = pl.col("text").map_elements(
            lambda text: shorten_line(text, 100), return_dtype=pl.String
        )
        hit = pl.col("turn_ids").list.eval(pl.element().is_in([*asked["evidence"]])).list.any()
        own = replace(
            self.data.take([asked["scope"]]),
            questions=self.data.questions.filter(query_id=query_id),
        )
        missed = misses(self.runs[self._index(system)], own, k=k).with_columns(
            pl.col("cause").replace_strict(CAUSES)
        )
        words = [
            set(each)
            for each in tokenize([*missed["text"], *returned["text"]], language=self.data.language)
        ]
        shared = [
            [len(item & text) for text in words[missed.height :]] for item in words[: missed.height]
        ]
        near = [returned.select(cut).item(int(np.argmax(n)), 0) if any(n) else None for n in shared]
        missed = missed.with_columns(nearest_text=pl.Series(near, dtype=pl.String))
        evidence = pl.when(hit).then(pl.lit("●")).otherwise(pl.lit("")).alias("evidence")
        tables = {
            f"Returned, the first {k}": returned.select("rank", evidence, "how", cut)[:k],
            "Missed": missed.select(cut.alias("missed"), "rank", "cause", "nearest_text"),
            "Problems": self._problems_of(name, query_id).select("problem"),
        }
        shown = tables_to_markdown(
            {title: table for title, table in tables.items() if table.height}
        )
        head = f"{escape_markdown(str(asked['text']))} → {escape_markdown(str(asked['answer']))}"
        said = explain_question(asked.get("source"))
        if said:
            head += f" ({said})"
        return Markdown(f"{head}\n\n{shown}")

    def _problems_of(self, system: str, query_id: str) -> pl.DataFrame:
        """Give the problems of one question, and those that are of no single question."""
        of_one = pl.col("query_id").fill_null("").is_in(["", query_id])
        return self.problems.filter(pl.col("system") == system, of_one)

    def export(self, directory: str | Path, *, baseline: str | None = None) -> Path:
        """Write ``systems.json`` (schema in ``docs/memories.md``), ``systems.md`` and ``systems.tex``.

        ``per-query.parquet`` and ``returned.parquet`` hold :attr:`per_query` and :attr:`returned`.

        :param baseline: as in :meth:`to_latex`.
        """
        if baseline not in (None, self.about["baseline"]):
            return self._tested_against(baseline).export(directory)
        frames = {
            "systems": self.systems,
            "tests": self.tests,
            "problems": self.problems,
            "calls": self.calls,
        }
        content = {"schema_version": SCHEMA_VERSION, "about": dict(self.about)}
        content |= {name: each.to_dicts() for name, each in frames.items()}
        files: dict[str, str | pl.DataFrame] = {
            "systems.json": json.dumps(content, indent=1, default=str, ensure_ascii=False),
            "systems.md": f"{self}\n",
            "systems.tex": self.to_latex(),
            "per-query.parquet": self.per_query,
            "returned.parquet": self.returned,
        }
        write_files(directory, files)
        return Path(directory)


class Markdown(str):
    """A text that a notebook shows as Markdown."""

    def _repr_markdown_(self) -> str:
        return str(self)


def compare(
    systems: Any, data: Dataset | str | Path, *, baseline: str | None = None, **options: Any
) -> Comparison:
    """Evaluate memories and pipelines on the same questions under one protocol.

    A system gives at most ``k`` texts a question. They are read in its order: by the turns that
    they come from (:func:`memlab.memories.attribute`), as far as they fit into each of ``BUDGETS``
    tokens, and by whether those of 1,000 tokens hold the answer
    (:func:`memlab.conversation.contains_answer`). So a memory that returns everything does not win,
    and one that words things anew is not lost. A question whose scope or search failed counts as
    answered by nothing.

    :param systems: one or several: pipelines or their texts, and what
        :func:`memlab.memories.memory` reads; by name, where it is a mapping.
    :param baseline: the name that the tests compare with; the first by default.
    :param options: of :class:`memlab.experiments.system_rankings.AskingOptions`: ``runs``,
        ``store``, ``k`` …
    :raises DataError: before anything runs: for no system, two of one name, or one that is neither.

    >>> import memlab
    >>> data = memlab.sample(turns=200)
    >>> def latest(turns, query, k):
    ...     return turns["text"].tail(k)
    >>> done = memlab.compare(["bm25", latest], data, encoder=None)
    >>> done.systems["system"].to_list()
    ['bm25', 'latest']
    """
    (data,) = distinct_datasets(data)
    asked = AskingOptions(**options)
    named = asked.read(systems, data)
    first = next(iter(named)) if baseline is None else baseline
    if first not in named:
        raise DataError(
            f"no system is called {first!r}, the baseline; there are {', '.join(named)}"
        )
    if qrels(data.questions, "turn").frame.is_empty():
        warn_once(unmeasurable_line(data, "turn"))
    if (
        baseline
        and isinstance(file := named[first], ReturnedTexts)
        and (line := file.partial_answers(data))
    ):
        raise DataError(
            f"{first!r}, the baseline, {line}; a comparison with it would mislead: rank them all"
        )
    bench = asked.bench(data)
    found = [*asked.returned(named, bench, data, timed=True)]
    names = dict(zip(named, (each.name for each, _ in found), strict=True))
    measured = [measure_system(*each, data, bench.encoder, asked) for each in found]
    per_query = pl.concat([each.per_query for each in measured])
    table = pl.DataFrame([each.row for each in measured])
    rankings = [each.ranking for each in measured]
    if data.questions["stale"].list.len().sum():
        table = table.hstack(stale_table(rankings, data).select(STALE_COLUMNS))
    tests = Table(pl.DataFrame())
    if len(named) > 1:
        tests = _compare_with_baseline(per_query, names[first], asked.unit, asked.seed)
    return Comparison(
        data.name,
        (data,),
        tuple(rankings),
        tuple(each.report for each in measured),
        pl.DataFrame(
            [(data.name, name, "turn", None, False) for name in names.values()],
            schema=CELLS,
            orient="row",
        ),
        {data.name: lambda: bench},
        systems=Table(table),
        tests=tests,
        per_query=per_query,
        returned=pl.concat([each.texts for each in measured]),
        problems=pl.concat(
            [each.problems.with_columns(system=pl.lit(each.name)) for each, _ in found]
        ),
        calls=pl.concat(
            [each.calls.select(pl.lit(each.name).alias("system"), pl.all()) for each, _ in found]
        ),
        about={
            "dataset": data.name,
            "fingerprint": bench.provenance["fingerprint"],
            "baseline": first,
            "k": asked.k,
            "budgets": [*BUDGETS],
            "seed": asked.seed,
            "unit": asked.unit,
            "encoder": bench.provenance.get("encoder"),
            "systems": {each.name: dict(each.provenance) for each, _ in found},
        },
    )


def _compare_with_baseline(per_query: pl.DataFrame, baseline: str, unit: Unit, seed: int) -> Table:
    """Compare every system with one, on each of :data:`TESTED_MEASURES`; Holm's correction within a measure."""
    left_out = ("mean_low", "mean_high", "mean_level")
    nothing = compare_paired(np.zeros((0, 1)), np.array([0])).clear().drop(left_out)
    named, parts = {"measure": pl.String(), "system": pl.String()}, list[pl.DataFrame]()
    for measure in TESTED_MEASURES:
        keys = [name for name in ("query_id", "scope", "source") if name in per_query.columns]
        wide = per_query.pivot("system", index=keys, values=measure, maintain_order=True)
        wide = wide.drop_nulls()
        names = wide.columns[len(keys) :]
        if wide.height and len(names) > 1:
            reference = np.full(len(names), names.index(baseline))
            scopes = clustering_scopes(wide["scope"], unit)
            values = wide.drop(keys).to_numpy()
            tested = compare_paired(values, reference, scopes=scopes, seed=seed)
            rows = pl.DataFrame({"measure": measure, "system": names}).hstack(tested)
            rows = with_sources(rows, wide)
            parts.append(rows.drop(left_out).filter(pl.col("system") != baseline))
    return Table(pl.concat(parts) if parts else pl.DataFrame(schema=named).hstack(nothing))
