"""What memories lost when they wrote and when they searched, as ``scripts/memories.py`` found it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from memlab.datasets.sample import sample
from memlab.errors import DataError
from memlab.evaluate.confidence_intervals import mean_intervals
from memlab.evaluate.tables import Table
from memlab.experiments.compare_systems import Comparison, compare
from memlab.files import shipped_data
from memlab.memories import ReturnedTexts, attribute
from memlab.memories.collecting import RETURNED_SCHEMA
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


def read_memories(folder: str | Path = DEFAULT) -> list[RecordedMemory]:
    """Read what was written down of each memory, in the order of their names.

    :param folder: has ``returned/NAME.jsonl``, ``stored/NAME.jsonl`` and ``about/NAME.json`` of
        each memory.
    :raises DataError: when there is none, or a file cannot be read.

    >>> from memlab.experiments.recorded_memories import read_memories
    >>> "langchain-mmr" in [memory.name for memory in read_memories()]
    True
    """
    names = sorted(path.stem for path in (Path(folder) / "about").glob("*.json"))
    if not names:
        raise DataError(f"{folder} holds no recorded memory; scripts/memories.py writes one")
    return [_read_memory(Path(folder), name) for name in names]


def _read_memory(folder: Path, name: str) -> RecordedMemory:
    returned = folder / "returned" / f"{name}.jsonl"
    try:
        about = json.loads((folder / "about" / f"{name}.json").read_text(encoding="utf-8"))
        lines = (folder / "stored" / f"{name}.jsonl").read_text(encoding="utf-8").split("\n")
        stored = [json.loads(line) for line in lines if line]
        return RecordedMemory(name, returned, stored, about)
    except (OSError, ValueError) as error:
        raise DataError(
            f"{folder}: {name} cannot be read ({error}); run scripts/memories.py {name} again"
        ) from error


def returned_files(folder: str | Path = DEFAULT) -> list[Path]:
    """Give the files of what memories returned, for ``memlab.compare(…, runs=…)``."""
    return [memory.returned for memory in read_memories(folder)]


def compare_recorded(
    systems: Sequence[str], folder: str | Path = DEFAULT, **options: Any
) -> Comparison:
    """Compare recorded memories with pipelines on the scope of the sample that they were run on.

    :param systems: pipelines.
    :param options: of :func:`memlab.compare`, such as ``encoder`` and ``store``.
    :raises DataError: when there is no recorded memory, or they are of several scopes.
    """
    recorded = read_memories(folder)
    scopes = {memory.about["scope"] for memory in recorded}
    if len(scopes) > 1:
        raise DataError(f"{folder} has memories of {sorted(scopes)}; compare those of one scope")
    files = [memory.returned for memory in recorded]
    return compare(systems, sample(scopes=[*scopes]), runs=files, **options)


def memory_losses(
    done: Comparison, memories: Sequence[RecordedMemory] | None = None, *, k: int = 10
) -> Table:
    """Tell what memories lost when they wrote from what they lost when they searched.

    An evidence item of a question is found where it is among the first ``k`` turns behind the
    returned texts. One that is not is lost at writing where no stored text comes from it
    (:func:`memlab.memories.attribute`), else at searching. A pipeline searches the turns
    themselves: it loses nothing at writing.

    :param done: a comparison of the systems, with the files of the memories as ``runs``.
    :param memories: what :func:`read_memories` reads, which is the default.
    :returns: a row a system: ``n`` questions, ``items``, the mean shares ``found``, ``lost at
        writing`` and ``lost at searching`` of a question's items, each with its 95 % interval, how
        many texts it ``stored``, and ``same session``: of the turns that stored texts are
        attributed to, how many lie in the session that the memory names (null where it names
        none).
    """
    data = done.data
    kept = {memory.name: memory for memory in memories or read_memories()}
    encoder = done.benches[data.name]().encoder
    rows = []
    for run in done.runs:
        memory = kept.get(run.name)
        sources = None if memory is None else _stored_sources(memory, data, encoder)
        shares = _question_shares(run.frame, data, sources, k)
        rows.append(
            {"system": run.name, **_summary(shares), **_stored_summary(memory, sources, data)}
        )
    return Table(pl.DataFrame(rows, infer_schema_length=None))


def _stored_sources(memory: RecordedMemory, data: Dataset, encoder: Any) -> pl.DataFrame:
    """Attribute stored texts: ``text``, ``session`` and ``turn_ids``."""
    scope = memory.about["scope"]
    asked = data.questions.filter(scope=scope)["query_id"].first()
    texts = [row["text"] for row in memory.stored]
    rows = pl.DataFrame(
        {"query_id": asked, "rank": range(1, len(texts) + 1), "text": texts}
    ).with_columns(score=None, source_ids=None, time=None)
    found = ReturnedTexts(memory.name, rows.cast(RETURNED_SCHEMA))  # type: ignore[arg-type]
    sources = attribute(found, data, encoder)
    sessions = pl.Series("session", [row.get("session") for row in memory.stored], pl.String)
    return sources.with_columns(sessions)


def _question_shares(
    ranking: pl.DataFrame, data: Dataset, sources: pl.DataFrame | None, k: int
) -> pl.DataFrame:
    """Give each question's shares of items that were found, lost at writing and at searching."""
    items = qrels(data.questions, "turn").frame.select("query_id", "doc_id").unique()
    first = ranking.filter(pl.col("rank") <= k).select("query_id", "doc_id", found=pl.lit(True))
    joined = items.join(first, on=["query_id", "doc_id"], how="left")
    held = pl.lit(True)
    if sources is not None:
        held = pl.col("doc_id").is_in(sources["turn_ids"].explode().drop_nulls().implode())
    found = pl.col("found").fill_null(False)
    each = joined.with_columns(found=found, writing=~found & ~held, searching=~found & held)
    return each.group_by("query_id").agg(
        pl.len().alias("items"), pl.col("found", "writing", "searching").mean()
    )


def _summary(shares: pl.DataFrame) -> dict[str, Any]:
    """Give means with their 95 % intervals."""
    named = {"found": "found", "writing": "lost at writing", "searching": "lost at searching"}
    ordered = shares.sort("query_id").select([*named])
    spans = mean_intervals(ordered.to_numpy().astype(np.float64), scopes=None)
    row: dict[str, Any] = {"n": shares.height, "items": shares["items"].sum()}
    for place, (column, name) in enumerate(named.items()):
        row[name] = ordered[column].mean()
        row[f"{name}_low"], row[f"{name}_high"] = spans["low"][place], spans["high"][place]
    return row


def _stored_summary(
    memory: RecordedMemory | None, sources: pl.DataFrame | None, data: Dataset
) -> dict[str, Any]:
    if memory is None or sources is None:
        return {"stored": None, "same session": None}
    named = sources.drop_nulls("session").explode("turn_ids").drop_nulls("turn_ids")
    share = None
    if named.height:
        turns = data.turns.select("session_id", turn_ids="turn_id")
        share = (
            named.join(turns, on="turn_ids")
            .select((pl.col("session_id") == pl.col("session")).mean())
            .item()
        )
    return {"stored": len(memory.stored), "same session": share}


def writing_costs(
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

    >>> from memlab.experiments.recorded_memories import read_memories, writing_costs
    >>> writing_costs(read_memories()).columns[:4]
    ['system', 'versions', 'phase', 'calls']
    """
    rows = [
        _cost_row(memory, phase, of, (input_price, output_price))
        for memory in memories
        for phase, of in (("writing", "turns"), ("searching", "questions"))
    ]
    return Table(pl.DataFrame(rows, infer_schema_length=None))


def _cost_row(
    memory: RecordedMemory, phase: str, of: str, prices: tuple[float | None, float | None]
) -> dict[str, Any]:
    counts = memory.about["phases"].get(phase, {})
    scale = PER / memory.about[of]
    read, written = counts.get("read", 0) * scale, counts.get("written", 0) * scale
    row: dict[str, Any] = {
        "system": memory.name,
        "versions": ", ".join(memory.about["versions"]),
        "phase": f"{phase} {PER:,} {of}",
        "calls": counts.get("calls", 0) * scale,
        "tokens read": read,
        "tokens written": written,
    }
    if prices[0] is not None and prices[1] is not None:
        row["price"] = (read * prices[0] + written * prices[1]) / 1e6
    calls = counts.get("calls", 0)
    row["estimated"] = counts.get("estimated", 0) / calls if calls else 0.0
    return row
