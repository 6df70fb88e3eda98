"""Retrieval folders of MTEB, BEIR and LMEB out of a dataset; :mod:`memlab.datasets.benchmarks.retrieval` reads them."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from memlab.datasets.identity import map_names
from memlab.errors import DataError
from memlab.files import open_atomically
from memlab.records import Dataset, decode_id_part, qrels


def write(data: Dataset, folder: str | Path) -> Path:
    """Write a dataset as a retrieval folder that MTEB, BEIR and LMEB read, and :func:`memlab.load` too.

    The documents are its turns; questions without evidence are left out, since there is nothing to
    measure. Ids stay as they are, so that a ranking of these files is one of the dataset. Qrels are
    written for LMEB (``qrels.tsv``, no names) and for MTEB (``qrels/test.tsv``). Where there are
    several scopes, ``candidates.jsonl`` names each question's documents under the first two parts
    of its id, or under all of it where two scopes share these.

    :raises DataError: when no question has evidence.
    :raises ExportError: when a file cannot be written.

    >>> import tempfile
    >>> from pathlib import Path
    >>> from memlab import datasets, sample
    >>> data = sample(["owen"])
    >>> folder = datasets.folders.write(data, Path(tempfile.mkdtemp(), "mine"))
    >>> sorted(path.name for path in folder.iterdir())
    ['corpus.jsonl', 'qrels', 'qrels.tsv', 'queries.jsonl']
    >>> datasets.load(folder).turns.equals(data.turns)
    True
    """
    folder, judged = Path(folder), qrels(data.questions, "turn").frame
    asked = data.questions.join(judged, on="query_id", how="semi", maintain_order="left")
    if not asked.height:
        raise DataError(
            f"{data.name}: no question has evidence among the turns; a retrieval folder needs qrels"
        )
    turns, time = data.turns, pl.col("timestamp").dt.strftime("%Y-%m-%dT%H:%M:%S%.f%:z")
    caption = (
        pl.when(pl.col("caption").str.len_bytes() > 0)
        .then(pl.format(" ({})", "caption"))
        .otherwise(pl.lit(""))
    )
    corpus = turns.select(
        _id="turn_id",
        id="turn_id",
        title=pl.when(pl.col("speaker") == pl.col("role")).then(pl.lit("")).otherwise("speaker"),
        text=pl.col("text") + caption,
        scope=map_names(turns["scope"], decode_id_part),
        session=map_names(turns["session_id"].str.split("/").list.last(), decode_id_part),
        speaker="speaker",
        role="role",
        timestamp=time,
        caption="caption",
    )
    queries = asked.select(
        _id="query_id",
        id="query_id",
        text="text",
        scope=map_names(asked["scope"], decode_id_part),
        answer="answer",
        type="question_type",
        timestamp=time,
        rubric="rubric",
    )
    tables = {"corpus.jsonl": corpus, "queries.jsonl": queries}
    if len(data.scopes) > 1:
        # Under the first two parts of a question's id, or under all of it where two scopes share
        # these.
        scene = pl.col("query_id").str.split("_").list.head(2).list.join("_")
        first = (
            pl.when(pl.col("scope") == pl.col("scope").first().over("scene"))
            .then("scene")
            .otherwise("query_id")
        )
        scenes = asked.select("query_id", "scope", scene=scene).select("scope", scene_id=first)
        documents = turns.group_by("scope", maintain_order=True).agg(candidate_doc_ids="turn_id")
        named = scenes.unique("scene_id", keep="first", maintain_order=True).join(
            documents, on="scope", how="left"
        )
        tables["candidates.jsonl"] = named.select("scene_id", "candidate_doc_ids")
    for name, table in tables.items():
        with open_atomically(folder / name) as stream:
            table.write_ndjson(stream)
    table = judged.select(
        pl.col("query_id").alias("query-id"), pl.col("doc_id").alias("corpus-id"), score="relevance"
    )
    for name, header in (("qrels.tsv", False), ("qrels/test.tsv", True)):
        with open_atomically(folder / name) as stream:
            table.write_csv(stream, separator="\t", include_header=header, quote_style="never")
    return folder
