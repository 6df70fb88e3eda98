"""Pipelines on parts of a dataset, each ranked in a process of its own.

The rankings are the same, to the last bit.
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
from memlab.embed.ray_workers import NamedEncoder, load_model_once_per_worker
from memlab.errors import MemlabError, PipelineError
from memlab.pipelines import Pipeline
from memlab.progress_bars import progress_bar
from memlab.records import LEVELS, Dataset, Level, Run
from memlab.retrieve import Bench
from memlab.store import MemoryStore

Cell = tuple[Pipeline, Level]

_PARTS_PER_PROCESS = 4
"""So many parts for each process: none waits long for the last one."""

_LEAST_TURNS = 17
_LEAST_QUESTIONS = 2
"""Of a part, as turns are: fewer texts are read by another program, with other last digits."""


class DatasetPart(NamedTuple):
    """Some scopes of a dataset.

    :param data: the scopes.
    :param tie_order_by_level: by level ``doc_id`` and ``lot``, the order of documents that tie in
        the dataset.
    """

    data: Dataset
    tie_order_by_level: Mapping[Level, pl.DataFrame]


class _PartWork(NamedTuple):
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


def rank_scopes_in_processes_if_divisible(
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

    dataset_parts = divide_dataset_into_parts(data, bench, jobs)
    if len(dataset_parts) < 2:
        return None
    store_uri = None
    if bench.store is not None:
        store_uri = bench.store.uri
    part_work = _PartWork(cells, os.getcwd(), store_uri, encoder)
    n_scopes = sum(len(finished_part.data.scopes) for finished_part in dataset_parts)
    runs_by_part = []
    with progress_bar(what="ranking", total=n_scopes, unit="scopes", delay=2) as scope_bar:
        part_results = map_in_processes(
            _chdir_and_rank_cells_on_part, dataset_parts, part_work, jobs=jobs
        )
        for finished_part, part_runs in zip(dataset_parts, part_results, strict=True):
            runs_by_part.append(part_runs)
            scope_bar.update(len(finished_part.data.scopes))
    return [
        _join_part_runs_in_question_order(bench, part_runs)
        for part_runs in zip(*runs_by_part, strict=True)
    ]


def pipeline_asks_service(stages: Pipeline) -> bool:
    """Say whether a pipeline asks a language model, whose spending is counted in one process."""
    for outer_stage in stages.stages:
        for nested_stage in outer_stage.with_nested_stages():
            if nested_stage.parameter_value("service") is not None:
                return True
    return False


def divide_dataset_into_parts(data: Dataset, bench: Bench, jobs: int) -> list[DatasetPart]:
    """Divide scopes that have questions into parts of about as many turns, the largest first."""
    n_turns_by_scope = dict(data.turns.group_by("scope").len().iter_rows())
    question_texts_by_scope = dict(
        data.questions.group_by("scope").agg(pl.col("text").unique()).iter_rows()
    )
    lots_by_level = {
        level_name: _tie_order_of_documents(bench, level_name) for level_name in LEVELS
    }
    return [
        _make_dataset_part(data, scope_group, lots_by_level)
        for scope_group in _group_scopes_into_even_sizes(
            n_turns_by_scope, question_texts_by_scope, jobs
        )
    ]


def _group_scopes_into_even_sizes(
    n_turns_by_scope: Mapping[str, int], question_texts_by_scope: Mapping[str, list[str]], jobs: int
) -> list[list[str]]:
    """Put scopes into groups, each into the smallest so far, the largest scopes first."""
    n_groups = min(len(question_texts_by_scope), jobs * _PARTS_PER_PROCESS)
    scope_groups: list[list[str]] = [[] for _ in range(n_groups)]
    group_sizes = [0] * n_groups
    sorted_scopes = sorted(question_texts_by_scope)
    for scope_name in sorted(sorted_scopes, key=lambda name: -n_turns_by_scope.get(name, 0)):
        smallest_group = group_sizes.index(min(group_sizes))
        scope_groups[smallest_group].append(scope_name)
        group_sizes[smallest_group] += n_turns_by_scope.get(scope_name, 0)
    size_order = np.argsort(-np.array(group_sizes, np.int64), kind="stable")
    return _merge_small_scope_groups(
        [scope_groups[group_index] for group_index in size_order],
        n_turns_by_scope,
        question_texts_by_scope,
    )


def _merge_small_scope_groups(
    scope_groups: list[list[str]],
    n_turns_by_scope: Mapping[str, int],
    question_texts_by_scope: Mapping[str, list[str]],
) -> list[list[str]]:
    """Put groups of too few texts together with the group before or behind them."""
    joined_groups: list[list[str]] = []
    for scope_group in scope_groups:
        if not joined_groups:
            joined_groups.append(scope_group)
        elif _has_too_few_texts(
            scope_group, n_turns_by_scope, question_texts_by_scope
        ) or _has_too_few_texts(joined_groups[-1], n_turns_by_scope, question_texts_by_scope):
            joined_groups[-1] = [*joined_groups[-1], *scope_group]
        else:
            joined_groups.append(scope_group)
    return joined_groups


def _has_too_few_texts(
    scope_group: list[str],
    n_turns_by_scope: Mapping[str, int],
    question_texts_by_scope: Mapping[str, list[str]],
) -> bool:
    """Say whether a group has too few texts to be read as those of all scopes are."""
    n_turns = 0
    question_texts = set[str]()
    for scope_name in scope_group:
        n_turns += n_turns_by_scope.get(scope_name, 0)
        question_texts.update(question_texts_by_scope[scope_name])
    return n_turns < _LEAST_TURNS or len(question_texts) < _LEAST_QUESTIONS


def _tie_order_of_documents(bench: Bench, level: Level) -> pl.DataFrame:
    """Give the order of the documents of a level that tie: it follows from copies in all scopes."""
    documents = bench.documents(level)
    return documents.place_of_id.select("doc_id").with_columns(lot=pl.Series(documents.tie_order))


def _make_dataset_part(
    data: Dataset, scope_names: list[str], tie_order_by_level: Mapping[Level, pl.DataFrame]
) -> DatasetPart:
    part_data = data.take(scope_names)
    documents_by_level = {
        "turn": part_data.turns["turn_id"],
        "session": part_data.sessions["session_id"],
    }
    part_lots = {}
    for level_name, all_lots in tie_order_by_level.items():
        part_lots[level_name] = all_lots.filter(
            pl.col("doc_id").is_in(documents_by_level[level_name].implode())
        )
    return DatasetPart(part_data, part_lots)


def _chdir_and_rank_cells_on_part(dataset_part: DatasetPart, part_work: _PartWork) -> list[Run]:
    """Run all pipelines on a part, in a process of its own."""
    if os.path.isdir(part_work.folder):
        os.chdir(part_work.folder)
    part_bench = _make_bench_of_part(dataset_part, part_work)
    part_rankings = []
    for cell_pipeline, cell_level in part_work.cells:
        try:
            ranking = cell_pipeline.run(part_bench, level=cell_level)
        except MemlabError as error:
            raise type(error)(f"pipeline {str(cell_pipeline)!r}: {error}") from error
        except Exception as error:  # whatever the code of a stage raises
            raise PipelineError(
                f"pipeline {str(cell_pipeline)!r}: {type(error).__name__}: {error}; without jobs= "
                "its traceback is shown"
            ) from error
        part_rankings.append(replace(ranking, text_of=None, evidence=None))
    return part_rankings


def _make_bench_of_part(dataset_part: DatasetPart, part_work: _PartWork) -> Bench:
    """Make the bench of a part, whose documents tie as they do in the dataset."""
    part_encoder = None
    if part_work.encoder is not None:
        part_encoder = load_named_encoder(part_work.encoder)
    part_store = None
    if part_work.uri is not None:
        part_store = MemoryStore.open(part_work.uri, create=False)
    made_bench = Bench.of(
        dataset_part.data, encoder=part_encoder, store=part_store, ingest=False, progress=False
    )
    for level_name, level_lots in dataset_part.tie_order_by_level.items():
        documents = made_bench.documents(level_name)
        part_lots = documents.place_of_id.join(level_lots, on="doc_id", maintain_order="left")[
            "lot"
        ].to_numpy()
        vars(documents)["tie_order"] = np.argsort(np.argsort(part_lots))
    return made_bench


def load_named_encoder(named_encoder: NamedEncoder) -> Encoder:
    """Load an encoder in another process, with its header and the encoder of its tokens."""
    token_encoder: str | Encoder = ""
    if named_encoder.tokens is not None:
        token_encoder = load_model_once_per_worker(named_encoder.tokens)
    text_model = load_model_once_per_worker(named_encoder)
    return load_encoder(text_model, header=named_encoder.header, token_encoder=token_encoder)


def _join_part_runs_in_question_order(bench: Bench, part_runs: Sequence[Run]) -> Run:
    """Join what a pipeline ranked of each part, in the order of the questions."""
    question_order = bench.queries.select("query_id").with_row_index("row")
    joined_frame = pl.concat([part_run.frame for part_run in part_runs])
    ordered_frame = joined_frame.join(question_order, on="query_id", maintain_order="left").sort(
        "row", "rank"
    )
    provenance: dict[str, Any] = {}
    for part_run in part_runs:
        provenance |= part_run.provenance
    left_out_names = list(dict.fromkeys(_iter_left_out_stage_names(part_runs)))
    if left_out_names:
        provenance["left_out"] = left_out_names
    provenance |= bench.provenance
    if "scopes" not in bench.provenance:
        provenance.pop("scopes", None)
    longest_named = max(
        part_runs, key=lambda part_run: len(part_run.name)
    )  # with what a stage left out
    return bench.show(
        Run(ordered_frame.drop("row"), part_runs[0].level, longest_named.name, provenance)
    )


def _iter_left_out_stage_names(part_runs: Sequence[Run]) -> Iterator[str]:
    for part_run in part_runs:
        yield from part_run.provenance.get("left_out", [])
