"""What memories lost when they wrote and searched, as ``scripts/memories.py`` found it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from memlab.atomic_files import shipped_data
from memlab.datasets.sample import sample
from memlab.embed import Encoder
from memlab.errors import DataError
from memlab.evaluate.confidence_intervals import mean_intervals
from memlab.evaluate.printed_tables import Table
from memlab.experiments.compare_systems import Comparison, compare
from memlab.memories import ReturnedTexts, attribute
from memlab.memories.running_a_memory import RETURNED_SCHEMA
from memlab.records import Dataset, qrels

DEFAULT = shipped_data("memories")
"""Of the checkout; an installed package has none."""
PER = 1_000


@dataclass(frozen=True)
class RecordedMemory:
    """What one memory did on a dataset, written down once.

    :param name: of the system, which is that of its files.
    :param returned: the file of what it returned, for ``memlab.compare(…, runs=[…])``.
    :param stored: the texts that it kept: ``text`` and, where it says so, ``session``.
    :param about: ``versions``, ``scope``, ``turns``, ``questions`` and ``phases``.
    """

    name: str
    returned: Path
    stored: Sequence[Mapping[str, Any]]
    about: Mapping[str, Any] = field(default_factory=dict)


def read_recorded_memories(folder: str | Path = DEFAULT) -> list[RecordedMemory]:
    """Read what was written down of each memory, in the order of their names.

    :param folder: has ``returned/NAME.jsonl``, ``stored/NAME.jsonl`` and ``about/NAME.json`` of
        each memory.
    :raises DataError: when there is none, or a file cannot be read.

    >>> from memlab.experiments.recorded_memories import read_recorded_memories
    >>> "langchain-mmr" in [memory.name for memory in read_recorded_memories()]
    True
    """
    memory_names = sorted(about_file.stem for about_file in (Path(folder) / "about").glob("*.json"))
    if not memory_names:
        raise DataError(f"{folder} holds no recorded memory; scripts/memories.py writes one")
    return [_read_recorded_memory(Path(folder), memory_name) for memory_name in memory_names]


def _read_recorded_memory(folder: Path, memory_name: str) -> RecordedMemory:
    returned_file = folder / "returned" / f"{memory_name}.jsonl"
    try:
        memory_record = json.loads(
            (folder / "about" / f"{memory_name}.json").read_text(encoding="utf-8")
        )
        stored_lines = (
            (folder / "stored" / f"{memory_name}.jsonl").read_text(encoding="utf-8").split("\n")
        )
        stored_texts = [json.loads(stored_line) for stored_line in stored_lines if stored_line]
        return RecordedMemory(memory_name, returned_file, stored_texts, memory_record)
    except (OSError, ValueError) as error:
        raise DataError(
            f"{folder}: {memory_name} cannot be read ({error}); run scripts/memories.py "
            f"{memory_name} again"
        ) from error


def files_of_recorded_returns(folder: str | Path = DEFAULT) -> list[Path]:
    """Give the files of what memories returned, for ``memlab.compare(…, runs=…)``."""
    return [recorded_memory.returned for recorded_memory in read_recorded_memories(folder)]


def compare_pipelines_with_recorded_memories(
    systems: Sequence[str], folder: str | Path = DEFAULT, **options: Any
) -> Comparison:
    """Compare recorded memories with pipelines on the scope of the sample that they were run on.

    :param systems: pipelines.
    :param options: of :func:`memlab.compare`, such as ``encoder`` and ``store``.
    :raises DataError: when there is no recorded memory, or they are of several scopes.
    """
    recorded_memories = read_recorded_memories(folder)
    memory_scopes = {recorded_memory.about["scope"] for recorded_memory in recorded_memories}
    if len(memory_scopes) > 1:
        raise DataError(
            f"{folder} has memories of {sorted(memory_scopes)}; compare those of one scope"
        )
    ranking_files = [recorded_memory.returned for recorded_memory in recorded_memories]
    return compare(systems, sample(scopes=[*memory_scopes]), runs=ranking_files, **options)


def memory_loss_table(
    comparison: Comparison, memories: Sequence[RecordedMemory] | None = None, *, k: int = 10
) -> Table:
    """Tell what memories lost when they wrote from what they lost when they searched.

    An evidence item of a question is found where it is among the first ``k`` turns behind the
    returned texts. One that is not is lost at writing where no stored text comes from it
    (:func:`memlab.memories.attribute`), else at searching. A pipeline searches the turns
    themselves: it loses nothing at writing.

    :param comparison: a comparison of the systems, with the files of the memories as ``runs``.
    :param memories: what :func:`read_recorded_memories` reads, which is the default.
    :returns: a row a system: ``n`` questions, ``items``, the mean shares ``found``, ``lost at
        writing`` and ``lost at searching`` of a question's items, each with its 95 % interval, how
        many texts it ``stored``, and ``same session``: of the turns that stored texts are
        attributed to, how many lie in the session that the memory names (null where it names
        none).
    """
    dataset = comparison.data
    memory_by_name = {
        recorded_memory.name: recorded_memory
        for recorded_memory in memories or read_recorded_memories()
    }
    encoder = comparison.benches[dataset.name]().encoder
    loss_rows = []
    for system_run in comparison.runs:
        recorded_memory = memory_by_name.get(system_run.name)
        if recorded_memory is None:
            sources = None
        else:
            sources = _source_turns_of_stored_texts(recorded_memory, dataset, encoder)
        question_shares = _found_and_lost_shares_by_question(system_run.frame, dataset, sources, k)
        loss_rows.append(
            {
                "system": system_run.name,
                **_mean_shares_with_intervals(question_shares),
                **_stored_count_and_same_session_share(recorded_memory, sources, dataset),
            }
        )
    return Table(pl.DataFrame(loss_rows, infer_schema_length=None))


def _source_turns_of_stored_texts(
    recorded_memory: RecordedMemory, data: Dataset, encoder: Encoder | None
) -> pl.DataFrame:
    """Attribute stored texts: ``text``, ``session`` and ``turn_ids``."""
    scope_name = recorded_memory.about["scope"]
    any_question = data.questions.filter(scope=scope_name)["query_id"].first()
    stored_texts = [stored_row["text"] for stored_row in recorded_memory.stored]
    stored_rows = pl.DataFrame(
        {"query_id": any_question, "rank": range(1, len(stored_texts) + 1), "text": stored_texts}
    ).with_columns(score=None, source_ids=None, time=None)
    returned_rows = stored_rows.cast(RETURNED_SCHEMA)  # type: ignore[arg-type]
    sources = attribute(ReturnedTexts(recorded_memory.name, returned_rows), data, encoder)
    sessions = pl.Series(
        "session", [stored_row.get("session") for stored_row in recorded_memory.stored], pl.String
    )
    return sources.with_columns(sessions)


def _found_and_lost_shares_by_question(
    ranking: pl.DataFrame, data: Dataset, stored_sources: pl.DataFrame | None, k: int
) -> pl.DataFrame:
    """Give each question's shares of items that were found, lost at writing and at searching."""
    evidence_items = qrels(data.questions, "turn").frame.select("query_id", "doc_id").unique()
    first_turns = ranking.filter(pl.col("rank") <= k).select(
        "query_id", "doc_id", found=pl.lit(True)
    )
    found_items = evidence_items.join(first_turns, on=["query_id", "doc_id"], how="left")
    is_stored = pl.lit(True)
    if stored_sources is not None:
        is_stored = pl.col("doc_id").is_in(
            stored_sources["turn_ids"].explode().drop_nulls().implode()
        )
    is_found = pl.col("found").fill_null(False)
    item_outcomes = found_items.with_columns(
        found=is_found, writing=~is_found & ~is_stored, searching=~is_found & is_stored
    )
    return item_outcomes.group_by("query_id").agg(
        pl.len().alias("items"), pl.col("found", "writing", "searching").mean()
    )


def _mean_shares_with_intervals(question_shares: pl.DataFrame) -> dict[str, Any]:
    """Give means with their 95 % intervals."""
    name_by_column = {
        "found": "found",
        "writing": "lost at writing",
        "searching": "lost at searching",
    }
    ordered_shares = question_shares.sort("query_id").select([*name_by_column])
    intervals = mean_intervals(ordered_shares.to_numpy().astype(np.float64), scopes=None)
    summary_row: dict[str, Any] = {
        "n": question_shares.height,
        "items": question_shares["items"].sum(),
    }
    for column_index, (column_name, shown_name) in enumerate(name_by_column.items()):
        summary_row[shown_name] = ordered_shares[column_name].mean()
        summary_row[f"{shown_name}_low"], summary_row[f"{shown_name}_high"] = (
            intervals["low"][column_index],
            intervals["high"][column_index],
        )
    return summary_row


def _stored_count_and_same_session_share(
    recorded_memory: RecordedMemory | None, stored_sources: pl.DataFrame | None, data: Dataset
) -> dict[str, Any]:
    if recorded_memory is None or stored_sources is None:
        return {"stored": None, "same session": None}
    stored_with_session = (
        stored_sources.drop_nulls("session").explode("turn_ids").drop_nulls("turn_ids")
    )
    same_session_share = None
    if stored_with_session.height:
        turn_sessions = data.turns.select("session_id", turn_ids="turn_id")
        same_session_share = (
            stored_with_session.join(turn_sessions, on="turn_ids")
            .select((pl.col("session_id") == pl.col("session")).mean())
            .item()
        )
    return {"stored": len(recorded_memory.stored), "same session": same_session_share}


def writing_and_searching_costs(
    memories: Sequence[RecordedMemory],
    *,
    input_price: float | None = None,
    output_price: float | None = None,
) -> Table:
    """Give what memories asked of a model to write 1,000 turns and to answer 1,000 questions.

    :param input_price: of a million tokens read; ``output_price``: of a million written.
    :returns: a row a memory and phase: ``system``, ``versions``, ``phase``, ``calls``, ``tokens
        read``, ``tokens written`` and, where both prices are given, ``price``; all per 1,000 turns
        or questions. Tokens are an estimate by characters for ``estimated`` of the calls.

    >>> from memlab.experiments.recorded_memories import read_recorded_memories
    >>> from memlab.experiments.recorded_memories import writing_and_searching_costs
    >>> writing_and_searching_costs(read_recorded_memories()).columns[:4]
    ['system', 'versions', 'phase', 'calls']
    """
    prices = (input_price, output_price)
    cost_rows = []
    for recorded_memory in memories:
        cost_rows.append(
            _cost_row_of_phase_per_thousand(recorded_memory, "writing", "turns", prices)
        )
        cost_rows.append(
            _cost_row_of_phase_per_thousand(recorded_memory, "searching", "questions", prices)
        )
    return Table(pl.DataFrame(cost_rows, infer_schema_length=None))


def _cost_row_of_phase_per_thousand(
    recorded_memory: RecordedMemory,
    phase_name: str,
    counted_noun: str,
    input_and_output_price: tuple[float | None, float | None],
) -> dict[str, Any]:
    phase_counts = recorded_memory.about["phases"].get(phase_name, {})
    per_counted = PER / recorded_memory.about[counted_noun]
    tokens_read = phase_counts.get("read", 0) * per_counted
    tokens_written = phase_counts.get("written", 0) * per_counted
    cost_row: dict[str, Any] = {
        "system": recorded_memory.name,
        "versions": ", ".join(recorded_memory.about["versions"]),
        "phase": f"{phase_name} {PER:,} {counted_noun}",
        "calls": phase_counts.get("calls", 0) * per_counted,
        "tokens read": tokens_read,
        "tokens written": tokens_written,
    }
    if input_and_output_price[0] is not None and input_and_output_price[1] is not None:
        cost_row["price"] = (
            tokens_read * input_and_output_price[0] + tokens_written * input_and_output_price[1]
        ) / 1e6
    n_calls = phase_counts.get("calls", 0)
    cost_row["estimated"] = phase_counts.get("estimated", 0) / n_calls if n_calls else 0.0
    return cost_row
