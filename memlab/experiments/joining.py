"""Two experiments on the same data: whose runs are one, and what refuses to stand side by side."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from memlab.errors import DataError
from memlab.evaluate import Report, evaluate
from memlab.evaluate.measures import Measure
from memlab.experiments.replaying import KEY_FIELDS, run_key
from memlab.records import Dataset, Level, Run

_log = logging.getLogger("memlab")
_KEYS = {"turns": "turn_id", "sessions": "session_id", "questions": "query_id"}


def match_datasets(ours: Sequence[Dataset], theirs: Sequence[Dataset]) -> dict[str, str]:
    """Give the name that each of their datasets has among ours, by its content.

    :raises DataError: where one side has a dataset that the other has not, with what differs.

    >>> import memlab
    >>> from dataclasses import replace
    >>> from memlab.experiments.joining import match_datasets
    >>> data = memlab.sample(turns=60)
    >>> match_datasets([data], [replace(data, name="theirs")])
    {'theirs': 'sample'}
    """
    known = {data.fingerprint(): data.name for data in ours}
    names = dict[str, str]()
    for data in theirs:
        fingerprint = data.fingerprint()
        if fingerprint not in known:
            raise DataError(f"the experiments are of different data: {_say_difference(data, ours)}")
        names[data.name] = known[fingerprint]
    for data in ours:
        if data.name not in names.values():
            raise DataError(
                f"the experiments are of different data: {_say_difference(data, theirs)}"
            )
    return names


def _say_difference(data: Dataset, others: Sequence[Dataset]) -> str:
    """Say in which tables a dataset differs from that of its name, or from the only other."""
    near = [other for other in others if other.name == data.name]
    if not near:
        near = [*others]
    if len(near) > 1:
        names = [other.name for other in near]
        listed = ", ".join(names)
        return (
            f"only one has {data.name!r}, the other has {listed}; choose those of both: done[NAME]"
        )
    other = near[0]
    said = []
    for table, key in _KEYS.items():
        here, there = getattr(data, table), getattr(other, table)
        line = _table_difference(table, key, here, there)
        if line:
            said.append(line)
    found = "; ".join(said) or "annotations, quotations or the language differ"
    return f"{data.name!r} and {other.name!r}: {found}; run both on one file"


def _table_difference(table: str, key: str, one: pl.DataFrame, other: pl.DataFrame) -> str:
    """Say how two tables differ; empty where they do not."""
    if one.height != other.height:
        return f"{one.height:,} and {other.height:,} {table}"
    alone = one.join(other, on=key, how="anti").height
    if alone:
        return f"{alone:,} of {one.height:,} {table} have another {key}"
    aligned = one.select(key).join(other, on=key, how="left", maintain_order="left")
    shared = _columns_of_both(one, other)
    changed = [name for name in shared if not one[name].equals(aligned[name])]
    if changed:
        return f"{table} differ in {', '.join(changed)}"
    if not one[key].equals(other[key]):
        return f"{table} stand in another order"
    return ""


def _columns_of_both(one: pl.DataFrame, other: pl.DataFrame) -> list[str]:
    """List what a fingerprint may depend on: the status of a session is not of it."""
    there = {*other.columns} - {"status"}
    return [name for name in one.columns if name in there]


def list_new_runs(
    ours: pl.DataFrame,
    our_runs: Sequence[Run],
    theirs: pl.DataFrame,
    their_runs: Sequence[Run],
) -> list[int]:
    """List which of their runs, by row, are not among ours; says where one run has two names.

    :param ours: ``cells`` of an experiment, in the order of its runs; ``theirs`` as well, with the
        names that we have for the datasets.
    :raises DataError: where two different runs have one name, with what differs.
    """
    place = ("dataset", "level", "pipeline")
    our_cells, their_cells = ours.select(place).rows(), theirs.select(place).rows()
    known: dict[tuple[str, str], str] = {}
    named: dict[tuple[str, str, str], Run] = {}
    for cell, run in zip(our_cells, our_runs, strict=True):
        dataset, _, name = cell
        identity = _identity(run)
        known[dataset, identity] = name
        named[cell] = run
    new = []
    for row, cell in enumerate(their_cells):
        dataset, level, name = cell
        run = their_runs[row]
        identity = _identity(run)
        our_name = known.get((dataset, identity))
        if our_name is None:
            if cell in named:
                raise DataError(_say_other_run(name, named[cell], run))
            new.append(row)
        elif our_name != name:
            line = "%r and %r are one run of %ss; it is called %r"
            _log.warning(line, our_name, name, level, our_name)
    return new


def _identity(run: Run) -> str:
    """Give what a run depends on, whatever its dataset, whose content is the same, is called."""
    return run_key({**run.provenance, "dataset": ""})


def _say_other_run(name: str, one: Run, other: Run) -> str:
    """Say in what two runs of one name differ."""
    differing = []
    for field in KEY_FIELDS[1:]:  # whatever the dataset is called
        here, there = one.provenance.get(field), other.provenance.get(field)
        if here != there:
            differing.append(f"{field} {here} and {there}")
    return (
        f"both experiments have a system {name!r}, and they differ: {'; '.join(differing)}; "
        "name one of them: memlab.run({NAME: PIPELINE}, …)"
    )


def measure_alike(
    runs: Sequence[Run], reports: Sequence[Report], data: Sequence[Dataset]
) -> list[Report]:
    """Measure runs by all that was taken of any of their level, with the first one's seed and unit.

    A report that is so already is kept.
    """
    taken: dict[Level, dict[Measure, None]] = {}
    for report in reports:
        of_level = taken.setdefault(report.level, {})
        of_level.update(dict.fromkeys(report.measures))
    how: dict[str, Any] = {"seed": reports[0].seed, "unit": reports[0].unit}
    measured = []
    for run, report, asked in zip(runs, reports, data, strict=True):
        wanted = tuple(taken[report.level])
        is_alike = (report.seed, report.unit) == (how["seed"], how["unit"])
        if is_alike and report.measures == wanted:
            measured.append(report)
        else:
            measured.append(evaluate(run, asked, measures=wanted, **how))
        if not is_alike:
            _log.warning(
                "%r was measured with seed %s and unit %s, and is measured again with %s and %s",
                *(report.name, report.seed, report.unit, how["seed"], how["unit"]),
            )
    return measured


def check_same_protocol(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> None:
    """Refuse to join comparisons whose systems were asked or read differently.

    :raises DataError: with what differs.

    >>> from memlab.experiments.joining import check_same_protocol
    >>> check_same_protocol({"k": 10}, {"k": 50})
    Traceback (most recent call last):
        ...
    memlab.errors.DataError: the comparisons were made differently: k is 10 and 50; ...
    """
    for field in ("k", "budgets", "encoder", "unit", "seed"):
        if ours.get(field) != theirs.get(field):
            raise DataError(
                f"the comparisons were made differently: {field} is {ours.get(field)} and "
                f"{theirs.get(field)}; compare again with one of them"
            )
