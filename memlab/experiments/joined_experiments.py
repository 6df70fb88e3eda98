"""Two experiments on the same data: whose runs are one, and what refuses to stand side by side."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from memlab.errors import DataError
from memlab.evaluate import Report, evaluate
from memlab.evaluate.ranking_measures import Measure
from memlab.experiments.run_replay import KEY_FIELDS, run_key_of_provenance
from memlab.records import Dataset, Level, Run

_log = logging.getLogger("memlab")
_KEYS = {"turns": "turn_id", "sessions": "session_id", "questions": "query_id"}


def map_their_dataset_names_to_ours(
    our_datasets: Sequence[Dataset], their_datasets: Sequence[Dataset]
) -> dict[str, str]:
    """Give the name that each of their datasets has among ours, by its content.

    :raises DataError: where one side has a dataset that the other has not, with what differs.

    >>> import memlab
    >>> from dataclasses import replace
    >>> from memlab.experiments.joined_experiments import map_their_dataset_names_to_ours
    >>> data = memlab.sample(turns=60)
    >>> map_their_dataset_names_to_ours([data], [replace(data, name="theirs")])
    {'theirs': 'sample'}
    """
    name_by_fingerprint = {dataset.fingerprint(): dataset.name for dataset in our_datasets}
    our_name_by_theirs = dict[str, str]()
    for dataset in their_datasets:
        fingerprint = dataset.fingerprint()
        if fingerprint not in name_by_fingerprint:
            raise DataError(
                "the experiments are of different data: "
                f"{_describe_dataset_difference(dataset, our_datasets)}"
            )
        our_name_by_theirs[dataset.name] = name_by_fingerprint[fingerprint]
    for dataset in our_datasets:
        if dataset.name not in our_name_by_theirs.values():
            raise DataError(
                "the experiments are of different data: "
                f"{_describe_dataset_difference(dataset, their_datasets)}"
            )
    return our_name_by_theirs


def _describe_dataset_difference(dataset: Dataset, other_datasets: Sequence[Dataset]) -> str:
    """Say in which tables a dataset differs from that of its name, or from the only other."""
    counterparts = [
        counterpart for counterpart in other_datasets if counterpart.name == dataset.name
    ]
    if not counterparts:
        counterparts = [*other_datasets]
    if len(counterparts) > 1:
        other_names = [counterpart.name for counterpart in counterparts]
        listed_names = ", ".join(other_names)
        return (
            f"only one has {dataset.name!r}, the other has {listed_names}; choose those of "
            "both: done[NAME]"
        )
    counterpart = counterparts[0]
    differences = []
    for table_name, key_column in _KEYS.items():
        own_table = getattr(dataset, table_name)
        other_table = getattr(counterpart, table_name)
        difference = _describe_table_difference_or_empty(
            table_name, key_column, own_table, other_table
        )
        if difference:
            differences.append(difference)
    difference_text = "; ".join(differences) or "annotations, quotations or the language differ"
    return f"{dataset.name!r} and {counterpart.name!r}: {difference_text}; run both on one file"


def _describe_table_difference_or_empty(
    table_name: str, key_column: str, own_table: pl.DataFrame, other_table: pl.DataFrame
) -> str:
    """Say how two tables differ; empty where they do not."""
    if own_table.height != other_table.height:
        return f"{own_table.height:,} and {other_table.height:,} {table_name}"
    n_unmatched = own_table.join(other_table, on=key_column, how="anti").height
    if n_unmatched:
        return f"{n_unmatched:,} of {own_table.height:,} {table_name} have another {key_column}"
    aligned_table = own_table.select(key_column).join(
        other_table, on=key_column, how="left", maintain_order="left"
    )
    shared_columns = _shared_fingerprinted_columns(own_table, other_table)
    changed_columns = [
        column_name
        for column_name in shared_columns
        if not own_table[column_name].equals(aligned_table[column_name])
    ]
    if changed_columns:
        return f"{table_name} differ in {', '.join(changed_columns)}"
    if not own_table[key_column].equals(other_table[key_column]):
        return f"{table_name} stand in another order"
    return ""


def _shared_fingerprinted_columns(own_table: pl.DataFrame, other_table: pl.DataFrame) -> list[str]:
    """List what a fingerprint may depend on: the status of a session is not of it."""
    other_columns = {*other_table.columns} - {"status"}
    return [column_name for column_name in own_table.columns if column_name in other_columns]


def list_rows_of_new_runs_and_warn(
    our_cell_table: pl.DataFrame,
    our_runs: Sequence[Run],
    their_cell_table: pl.DataFrame,
    their_runs: Sequence[Run],
) -> list[int]:
    """List which of their runs, by row, are not among ours; says where one run has two names.

    :param our_cell_table: ``cells`` of an experiment, in the order of its runs;
        ``their_cell_table`` as well, with the names that we have for the datasets.
    :raises DataError: where two different runs have one name, with what differs.
    """
    cell_columns = ("dataset", "level", "pipeline")
    our_cells = our_cell_table.select(cell_columns).rows()
    their_cells = their_cell_table.select(cell_columns).rows()
    name_by_identity: dict[tuple[str, str], str] = {}
    run_by_cell: dict[tuple[str, str, str], Run] = {}
    for cell_key, cell_run in zip(our_cells, our_runs, strict=True):
        dataset_name, _, system_name = cell_key
        identity = _run_key_without_dataset_name(cell_run)
        name_by_identity[dataset_name, identity] = system_name
        run_by_cell[cell_key] = cell_run
    new_rows = []
    for row_number, cell_key in enumerate(their_cells):
        dataset_name, level_name, system_name = cell_key
        cell_run = their_runs[row_number]
        identity = _run_key_without_dataset_name(cell_run)
        our_name = name_by_identity.get((dataset_name, identity))
        if our_name is None:
            if cell_key in run_by_cell:
                raise DataError(
                    _describe_run_conflict(system_name, run_by_cell[cell_key], cell_run)
                )
            new_rows.append(row_number)
        elif our_name != system_name:
            warning_line = "%r and %r are one run of %ss; it is called %r"
            _log.warning(warning_line, our_name, system_name, level_name, our_name)
    new_cells = [their_cells[row_number] for row_number in new_rows]
    new_runs = [their_runs[row_number] for row_number in new_rows]
    system_names = [system_name for _, _, system_name in [*our_cells, *new_cells]]
    _warn_of_different_encoders(system_names, [*our_runs, *new_runs])
    return new_rows


def _warn_of_different_encoders(system_names: Sequence[str], runs: Sequence[Run]) -> None:
    """Warn where joined runs saw different encoders, which their names do not say."""
    names_by_encoder: dict[str, list[str]] = {}
    for system_name, run in zip(system_names, runs, strict=True):
        encoder = run.provenance.get("encoder")
        if encoder is not None:
            names_by_encoder.setdefault(encoder, []).append(system_name)
    if len(names_by_encoder) < 2:
        return
    encoder_texts = [
        f"{', '.join(dict.fromkeys(names))}: {encoder}"
        for encoder, names in names_by_encoder.items()
    ]
    _log.warning("the joined runs saw different encoders: %s", "; ".join(encoder_texts))


def _run_key_without_dataset_name(run: Run) -> str:
    """Give what a run depends on, whatever its dataset, whose content is the same, is called."""
    return run_key_of_provenance({**run.provenance, "dataset": ""})


def _describe_run_conflict(system_name: str, own_run: Run, other_run: Run) -> str:
    """Say in what two runs of one name differ."""
    differing = []
    for field_name in KEY_FIELDS[1:]:  # whatever the dataset is called
        own_value = own_run.provenance.get(field_name)
        other_value = other_run.provenance.get(field_name)
        if own_value != other_value:
            differing.append(f"{field_name} {own_value} and {other_value}")
    return (
        f"both experiments have a system {system_name!r}, and they differ: {'; '.join(differing)}; "
        "name one of them: memlab.run({NAME: PIPELINE}, …)"
    )


def remeasure_under_one_protocol_and_warn(
    runs: Sequence[Run], reports: Sequence[Report], datasets: Sequence[Dataset]
) -> list[Report]:
    """Measure runs by all that was taken of any of their level, with the first one's seed and unit.

    A report that is so already is kept.
    """
    measures_by_level: dict[Level, dict[Measure, None]] = {}
    for report in reports:
        level_measures = measures_by_level.setdefault(report.level, {})
        level_measures.update(dict.fromkeys(report.measures))
    evaluation_options: dict[str, Any] = {"seed": reports[0].seed, "unit": reports[0].unit}
    measured = []
    for ranking, report, dataset in zip(runs, reports, datasets, strict=True):
        wanted_measures = tuple(measures_by_level[report.level])
        is_same_protocol = (report.seed, report.unit) == (
            evaluation_options["seed"],
            evaluation_options["unit"],
        )
        if is_same_protocol and report.measures == wanted_measures:
            measured.append(report)
        else:
            measured.append(
                evaluate(ranking, dataset, measures=wanted_measures, **evaluation_options)
            )
        if not is_same_protocol:
            _log.warning(
                "%r was measured with seed %s and unit %s, and is measured again with %s and %s",
                *(
                    report.name,
                    report.seed,
                    report.unit,
                    evaluation_options["seed"],
                    evaluation_options["unit"],
                ),
            )
    return measured


def raise_if_protocols_differ(
    our_options: Mapping[str, Any], their_options: Mapping[str, Any]
) -> None:
    """Refuse to join comparisons whose systems were asked or read differently.

    :raises DataError: with what differs.

    >>> from memlab.experiments.joined_experiments import raise_if_protocols_differ
    >>> raise_if_protocols_differ({"k": 10}, {"k": 50})
    Traceback (most recent call last):
        ...
    memlab.errors.DataError: the comparisons were made differently: k is 10 and 50; ...
    """
    for field_name in ("k", "budgets", "encoder", "unit", "seed"):
        if our_options.get(field_name) != their_options.get(field_name):
            raise DataError(
                f"the comparisons were made differently: {field_name} is "
                f"{our_options.get(field_name)} "
                "and "
                f"{their_options.get(field_name)}; compare again with one of them"
            )
