"""Pipelines on parts of a dataset, each ranked in a process of its own; the rankings are the same, to the last bit.

A part is some whole scopes: a question is compared with nothing of another scope.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from memlab.distributed import map_in_processes
from memlab.embed import Encoder
from memlab.embed import load as load_encoder
from memlab.embed.ray_workers import NamedEncoder, load_worker_model
from memlab.errors import MemlabError, PipelineError
from memlab.pipelines import Pipeline
from memlab.records import LEVELS, Dataset, Level, Run
from memlab.retrieve import Bench
from memlab.store import MemoryStore

Cell = tuple[Pipeline, Level]

_PARTS_PER_PROCESS = 4
"""So many parts for each process: none waits long for the last one."""

_LEAST_TURNS, _LEAST_QUESTIONS = 17, 2
"""Of a part: fewer texts are read by another program, whose vectors differ in their last digits."""


class Part(NamedTuple):
    """Some scopes of a dataset.

    :param data: the scopes.
    :param lots: by level ``doc_id`` and ``lot``, the order of documents that tie in the dataset.
    """

    data: Dataset
    lots: Mapping[Level, pl.DataFrame]


class _Work(NamedTuple):
    """What is done with each part.

    :param cells: pipelines and the levels at which they rank.
    :param folder: where paths of models and of the store start.
    :param uri: of the store; ``None`` without one.
    :param encoder: what a process loads the encoder by.
    """

    cells: Sequence[Cell]
    folder: str
    uri: str | None
    encoder: NamedEncoder | None


def rank_in_processes(
    bench: Bench, data: Dataset, cells: Sequence[Cell], *, encoder: NamedEncoder | None, jobs: int
) -> list[Run] | None:
    """Run pipelines on parts of a dataset in several processes, and join what they rank.

    :param bench: of the dataset, whose questions give the order of the rankings.
    :param encoder: what a process loads the encoder by.
    :returns: a run for each cell, or ``None`` where there is nothing to divide.
    :raises MemlabError: as a pipeline does, whose text stands in front.
    :raises PipelineError: for another fault of a pipeline.
    :raises ModelError: when a process ends before its work is done.
    """
    from tqdm.auto import tqdm

    parts = divide_dataset(data, bench, jobs)
    if len(parts) < 2:
        return None
    uri = None
    if bench.store is not None:
        uri = bench.store.uri
    work = _Work(cells, os.getcwd(), uri, encoder)
    total = sum(len(part.data.scopes) for part in parts)
    done = []
    with tqdm(total=total, desc="scopes", delay=2) as bar:
        results = map_in_processes(_rank_part, parts, work, jobs=jobs)
        for part, runs in zip(parts, results, strict=True):
            done.append(runs)
            bar.update(len(part.data.scopes))
    return [_join_runs(bench, runs) for runs in zip(*done, strict=True)]


def asks_service(stages: Pipeline) -> bool:
    """Say whether a pipeline asks a language model, whose spending is counted in one process."""
    for each in stages.stages:
        for inner in each.nested():
            if inner.value("service") is not None:
                return True
    return False


def divide_dataset(data: Dataset, bench: Bench, jobs: int) -> list[Part]:
    """Divide the scopes that have questions into parts of about as many turns, the largest first."""
    turns = dict(data.turns.group_by("scope").len().iter_rows())
    asked = dict(data.questions.group_by("scope").agg(pl.col("text").unique()).iter_rows())
    lots = {level: _lots(bench, level) for level in LEVELS}
    return [_take_part(data, scopes, lots) for scopes in _group_scopes(turns, asked, jobs)]


def _group_scopes(
    turns: Mapping[str, int], questions: Mapping[str, list[str]], jobs: int
) -> list[list[str]]:
    """Put scopes into groups, each into the smallest so far, the largest scopes first."""
    n_groups = min(len(questions), jobs * _PARTS_PER_PROCESS)
    groups: list[list[str]] = [[] for _ in range(n_groups)]
    sizes = [0] * n_groups
    by_name = sorted(questions)
    for scope in sorted(by_name, key=lambda name: -turns.get(name, 0)):
        smallest = sizes.index(min(sizes))
        groups[smallest].append(scope)
        sizes[smallest] += turns.get(scope, 0)
    order = np.argsort(-np.array(sizes, np.int64), kind="stable")
    return _join_small([groups[place] for place in order], turns, questions)


def _join_small(
    groups: list[list[str]], turns: Mapping[str, int], questions: Mapping[str, list[str]]
) -> list[list[str]]:
    """Put groups of too few texts together with the group before or behind them."""
    joined: list[list[str]] = []
    for group in groups:
        if not joined:
            joined.append(group)
        elif _is_small(group, turns, questions) or _is_small(joined[-1], turns, questions):
            joined[-1] = [*joined[-1], *group]
        else:
            joined.append(group)
    return joined


def _is_small(
    group: list[str], turns: Mapping[str, int], questions: Mapping[str, list[str]]
) -> bool:
    """Say whether a group has too few texts to be read as those of all scopes are."""
    n_turns, texts = 0, set[str]()
    for scope in group:
        n_turns += turns.get(scope, 0)
        texts.update(questions[scope])
    return n_turns < _LEAST_TURNS or len(texts) < _LEAST_QUESTIONS


def _lots(bench: Bench, level: Level) -> pl.DataFrame:
    """Give the order of the documents of a level that tie: it follows from copies in all scopes."""
    documents = bench.documents(level)
    return documents.place.select("doc_id").with_columns(lot=pl.Series(documents.lot))


def _take_part(data: Dataset, scopes: list[str], lots: Mapping[Level, pl.DataFrame]) -> Part:
    part = data.take(scopes)
    ids = {"turn": part.turns["turn_id"], "session": part.sessions["session_id"]}
    own = {}
    for level, all_lots in lots.items():
        own[level] = all_lots.filter(pl.col("doc_id").is_in(ids[level].implode()))
    return Part(part, own)


def _rank_part(part: Part, work: _Work) -> list[Run]:
    """Run all pipelines on a part, in a process of its own."""
    if os.path.isdir(work.folder):
        os.chdir(work.folder)
    bench = _part_bench(part, work)
    ranked = []
    for stages, level in work.cells:
        try:
            run = stages.run(bench, level=level)
        except MemlabError as error:
            raise type(error)(f"pipeline {str(stages)!r}: {error}") from error
        except Exception as error:  # whatever the code of a stage raises
            raise PipelineError(
                f"pipeline {str(stages)!r}: {type(error).__name__}: {error}; without jobs= its traceback is shown"
            ) from error
        ranked.append(replace(run, text_of=None, evidence=None))
    return ranked


def _part_bench(part: Part, work: _Work) -> Bench:
    """Make the bench of a part, whose documents tie as they do in the dataset."""
    encoder = None
    if work.encoder is not None:
        encoder = load_named_encoder(work.encoder)
    store = None
    if work.uri is not None:
        store = MemoryStore.open(work.uri, create=False)
    bench = Bench.of(part.data, encoder=encoder, store=store, ingest=False, progress=False)
    for level, lots in part.lots.items():
        documents = bench.documents(level)
        own = documents.place.join(lots, on="doc_id", maintain_order="left")["lot"].to_numpy()
        vars(documents)["lot"] = np.argsort(np.argsort(own))
    return bench


def load_named_encoder(named: NamedEncoder) -> Encoder:
    """Load an encoder in another process, with its header and the encoder of its tokens."""
    tokens: str | Encoder = ""
    if named.tokens is not None:
        tokens = load_worker_model(named.tokens)
    model = load_worker_model(named)
    return load_encoder(model, header=named.header, token_encoder=tokens)


def _join_runs(bench: Bench, runs: Sequence[Run]) -> Run:
    """Join what a pipeline ranked of each part, in the order of the questions."""
    order = bench.queries.select("query_id").with_row_index("row")
    frame = pl.concat([run.frame for run in runs])
    ordered = frame.join(order, on="query_id", maintain_order="left").sort("row", "rank")
    about: dict[str, Any] = {}
    for run in runs:
        about |= run.provenance
    left_out = list(dict.fromkeys(_left_out(runs)))
    if left_out:
        about["left_out"] = left_out
    about |= bench.provenance
    if "scopes" not in bench.provenance:
        about.pop("scopes", None)
    longest = max(runs, key=lambda run: len(run.name))  # with what a stage left out
    return bench.show(Run(ordered.drop("row"), runs[0].level, longest.name, about))


def _left_out(runs: Sequence[Run]) -> Iterator[str]:
    for run in runs:
        yield from run.provenance.get("left_out", [])
