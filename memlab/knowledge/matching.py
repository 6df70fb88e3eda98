"""Which statements speak of the same subject, the same relation and the same value."""

from __future__ import annotations

import numpy as np
import polars as pl

from memlab.embed import Encoder
from memlab.errors import DataError
from memlab.knowledge import _text
from memlab.knowledge.discourse import completed
from memlab.language.manner import manner
from memlab.records import Fact, schema

SAME_TEXT, SAME_IF_INITIALS = 0.85, 0.5
SAME_PREDICATE = 0.88
RELATED, SHARED = 0.5, 3
RELATED_AND_SHARING = 0.95
_CLAUSE = "She {} it"
SOURCES = ("stated", "system", "observed", "inferred")
KEYS = ("scope", "subject_key", "predicate_key")
_BLOCK, _INITIALS = 1024, r"^(?:[A-Z]\.?){2,6}$"


def match(facts: pl.DataFrame, *, encoder: Encoder | None = None) -> pl.DataFrame:
    """Give each statement the keys of what it speaks of, and say what it does.

    Three steps, each within a scope. *Normal forms*: case, articles, auxiliaries, tense and plurals are dropped; "my"
    and "the user" are the speaker; numbers, dates, amounts and codes are values. *Texts* whose cosine reaches 0.85
    are one object or one subject, unless a number, a name or a closed series (weekdays, relatives …) sets them apart.
    *Predicates*, embedded within a clause, are one at a cosine of 0.88, or when cosine + half the share of objects that
    they have in common for the same subjects (of the rarer one's, at least three) reaches 0.95: what two phrases
    connect says as much as their words.

    Thresholds were measured on word lists of our own with all-MiniLM-L6-v2 and on the ``development`` vocabulary of
    :mod:`memlab.knowledge.simulated`; for another encoder measure them again.

    :param facts: rows of :class:`memlab.records.Fact`.
    :param encoder: for near-equal texts; ``None`` compares normal forms only.
    :returns: the facts with ``subject_key``, ``predicate_key``, ``object_key``, ``kind`` (``assert``, ``end``,
        ``correct``, ``hint``, ``update``), ``instead_of_key`` (the value that is named as replaced) and ``said_at``.
    :raises DataError: for missing columns, ids that repeat, unknown sources, or a fact without any time.

    Source: shared arguments as evidence of paraphrase: Lin and Pantel, DIRT (KDD 2001).
    """
    read = _read(completed(checked(facts)))
    if encoder is None or not read.height:
        return _keyed(read, "subject_text", "relation", "object_text", "instead_of_text")
    subjects = read.select("scope", text="subject_text", raw="subject_raw")
    read = _join(read, _merge(subjects, encoder, ["scope"], nested=False), ["scope"], "subject_text", "subject_merged")
    told = pl.concat(
        [
            read.select("scope", "subject_merged", text="object_text", raw="object_raw"),
            read.select("scope", "subject_merged", text="instead_of_text", raw="instead_of_raw").drop_nulls("text"),
        ]
    )
    within = ["scope", "subject_merged"]
    objects = _merge(told, encoder, within)
    read = _join(read, objects, within, "object_text", "object_merged")
    read = _join(read, objects, within, "instead_of_text", "instead_of_merged")
    read = _join(read, _predicates(read, encoder), ["scope"], "relation", "predicate_merged")
    return _keyed(read, "subject_merged", "predicate_merged", "object_merged", "instead_of_merged")


def checked(facts: pl.DataFrame) -> pl.DataFrame:
    """Fill optional columns and refuse what cannot be resolved."""
    expected = schema(Fact)
    missing = [name for name in list(expected)[:8] if name not in facts.columns]
    if missing:
        raise DataError(f"facts have no column {missing[0]!r}; expected {', '.join(expected)}")
    filled = facts.with_columns(pl.lit(None, expected[n]).alias(n) for n in expected if n not in facts.columns)
    filled = filled.with_columns(pl.col(name).cast(dtype) for name, dtype in expected.items())
    repeated = filled.filter(pl.col("fact_id").is_duplicated())["fact_id"]
    if len(repeated):
        raise DataError(f"fact id {repeated[0]!r} stands twice; ids are unique")
    unknown = filled.filter(~pl.col("source").is_in(SOURCES))["source"]
    if len(unknown):
        raise DataError(f"source {unknown[0]!r} is not known; choose from {', '.join(SOURCES)}")
    timeless = filled.filter(pl.col("asserted_at").is_null() & pl.col("recorded_at").is_null())["fact_id"]
    if len(timeless):
        raise DataError(f"fact {timeless[0]!r} has no time; give asserted_at or recorded_at")
    return filled.with_columns(
        said_at=pl.coalesce("asserted_at", "recorded_at"), recorded_at=pl.coalesce("recorded_at", "asserted_at")
    )


def _read(facts: pl.DataFrame) -> pl.DataFrame:
    columns = {name: facts[name].to_list() for name in ("subject", "predicate", "object", "speaker", "text")}
    rows = []
    for subject, predicate, obj, speaker, text in zip(*columns.values(), strict=True):
        reading = _text.read(predicate, obj, text)
        holder, predicate = _text.owner(subject, reading.predicate, speaker)
        instead = reading.instead_of
        row = (reading.kind, holder, _norm(holder), predicate, _text.relation(predicate), reading.object)
        rows.append((*row, _norm(reading.object), instead, None if instead is None else _norm(instead)))
    names = ["kind", "subject_raw", "subject_text", "predicate_raw", "relation", "object_raw", "object_text"]
    names += ["instead_of_raw", "instead_of_text"]
    return facts.hstack(pl.DataFrame(rows, schema=dict.fromkeys(names, pl.String()), orient="row"))


def _norm(text: str) -> str:
    value = _text.value(text)
    return " ".join([*value.exact, "|", *value.words]) if value.exact else " ".join(value.words)


def _keyed(read: pl.DataFrame, subject: str, predicate: str, obj: str, instead: str) -> pl.DataFrame:
    keyed = read.with_columns(
        subject_key=pl.col(subject),
        predicate_key=pl.col(predicate),
        object_key=pl.col(obj),
        instead_of_key=pl.col(instead),
    )
    return keyed.drop(c for c in keyed.columns if c.endswith(("_raw", "_text", "_merged")))


def _join(read: pl.DataFrame, merged: pl.DataFrame, within: list[str], text: str, name: str) -> pl.DataFrame:
    return read.join(
        merged.rename({"text": text, "merged": name}), on=[*within, text], how="left", maintain_order="left"
    )


def _merge(told: pl.DataFrame, encoder: Encoder, within: list[str], *, nested: bool = True) -> pl.DataFrame:
    """Join texts of one group that mean the same: frame of the group, ``text`` and ``merged``.

    :param nested: whether one text may hold all the words of the other: not for subjects ("Ann", "Ann's neighbour").
    """
    nodes = told.unique([*within, "text"], keep="first", maintain_order=True)
    crowded = nodes.group_by(within).len().filter(pl.col("len") > 1)
    worded = nodes.join(crowded, on=within, how="semi").filter(pl.col("text").str.contains(r"\p{L}"))
    texts = worded["raw"].unique(maintain_order=True)
    initials = texts.str.contains(_INITIALS).to_numpy()
    pairs = _near(texts, encoder, np.where(initials, SAME_IF_INITIALS, SAME_TEXT))
    same = [_same(a, b, cosine, nested) for a, b, cosine in pairs.iter_rows()]
    pairs = pairs.filter(pl.Series(same, dtype=pl.Boolean))
    numbered = nodes.with_row_index("i")
    left = numbered.select(*within, "raw", "i").join(pairs, left_on="raw", right_on="a")
    edges = left.join(
        numbered.select(*within, "raw", j="i"), left_on=[*within, "b"], right_on=[*within, "raw"], how="inner"
    ).select("i", "j")
    return _components(nodes.select(*within, "text"), edges)


def _same(a: str, b: str, cosine: float, nested: bool) -> bool:
    first, second = _text.value(a), _text.value(b)
    if cosine < SAME_TEXT:
        return _text.abbreviated(first, second)
    within = set(first.words) < set(second.words) or set(second.words) < set(first.words)
    return not _text.apart(first, second) and (nested or not within)


def _predicates(read: pl.DataFrame, encoder: Encoder) -> pl.DataFrame:
    nodes = read.select("scope", text="relation", raw="predicate_raw").unique(
        ["scope", "text"], keep="first", maintain_order=True
    )
    planned = pl.Series([manner(predicate, "") == "plan" for predicate in nodes["raw"]], dtype=pl.Boolean)
    nodes = nodes.with_columns(planned=planned, raw=pl.format(_CLAUSE, "raw"))
    texts = nodes["raw"].unique(maintain_order=True)
    pairs = _near(texts, encoder, np.full(len(texts), RELATED))
    numbered = nodes.with_row_index("i")
    left = numbered.select("scope", "planned", "raw", "i").join(pairs, left_on="raw", right_on="a")
    # To plan something is not to do it.
    within = ["scope", "planned"]
    near = left.join(numbered.select(*within, "raw", j="i"), left_on=[*within, "b"], right_on=[*within, "raw"])
    told = read.select("scope", "subject_merged", "object_merged", text="relation").unique()
    told = told.join(numbered.select("scope", "text", "i"), on=["scope", "text"])
    both = told.join(
        told.select("scope", "subject_merged", "object_merged", j="i"), on=["scope", "subject_merged", "object_merged"]
    )
    shared = both.filter(pl.col("i") != pl.col("j")).group_by("i", "j").len("shared")
    size = told.group_by("i").len("size")
    near = (
        near.join(shared, on=["i", "j"], how="left")
        .join(size, on="i")
        .join(size.rename({"i": "j", "size": "other"}), on="j")
        .with_columns(pl.col("shared").fill_null(0))
    )
    overlap = pl.col("shared") / pl.min_horizontal("size", "other")
    sharing = (pl.col("shared") >= SHARED) & (pl.col("cosine") + overlap / 2 >= RELATED_AND_SHARING)
    same = (pl.col("cosine") >= SAME_PREDICATE) | sharing
    return _components(nodes.select("scope", "text"), near.filter(same).select("i", "j"))


def _near(texts: pl.Series, encoder: Encoder, threshold: np.ndarray) -> pl.DataFrame:
    """List ordered pairs of different texts whose cosine reaches the first one's threshold, in blocks of rows."""
    empty = pl.DataFrame(schema={"a": pl.String, "b": pl.String, "cosine": pl.Float32})
    if len(texts) < 2:
        return empty
    vectors = encoder.encode(texts.to_list(), progress=False)
    pairs = [empty]
    for start in range(0, len(vectors), _BLOCK):
        cosine = vectors[start : start + _BLOCK] @ vectors.T
        rows, columns = np.nonzero(cosine >= threshold[start : start + _BLOCK, None])
        values = cosine[rows, columns]
        rows = rows + start
        other = rows != columns
        pairs.append(
            pl.DataFrame({"a": texts.gather(rows[other]), "b": texts.gather(columns[other]), "cosine": values[other]})
        )
    return pl.concat(pairs)


def _components(nodes: pl.DataFrame, edges: pl.DataFrame) -> pl.DataFrame:
    """Name each connected component by its first text."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    shape = (nodes.height, nodes.height)
    graph = coo_array((np.ones(edges.height), (edges["i"].to_numpy(), edges["j"].to_numpy())), shape=shape)
    _, labels = connected_components(graph, directed=False)
    return (
        nodes.with_columns(label=pl.Series(labels))
        .with_columns(merged=pl.col("text").first().over("label"))
        .drop("label")
    )
