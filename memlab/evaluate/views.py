"""Reports as the frames that charts read: curves over k, independent hits, the ranking of one question."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from memlab.errors import DataError
from memlab.evaluate.groups import HAS_SEVERAL_SESSIONS
from memlab.evaluate.report import Report
from memlab.evaluate.significance import PERMUTATIONS, compare_with_null, split_draws, wilson_interval
from memlab.records import Dataset, Run


def curve(reports: Sequence[Report], *, name: str = "recall_all", by: str = "all", group: str = "all") -> pl.DataFrame:
    """Give a measure over its cut-offs, for :func:`memlab.figures.curves.recall_curves`.

    :param reports: measured at several k.
    :param name: the measure's, without a cut-off.
    :param by: how questions are grouped, and which ``group`` is wanted.
    :returns: ``system``, ``k``, ``mean``, ``low``, ``high``, ``ceiling``, ``chance``, ``n``.
    :raises DataError: when the measure was not taken at any k, or the group is empty.
    """
    parts = []
    for report in reports:
        wanted = [measure for measure in report.measures if measure.name == name and measure.k is not None]
        rows = report.summary(by, measures=wanted).filter(pl.col("group") == group)
        if rows.is_empty():
            raise DataError(
                f"report {report.name!r} has no {name}@k for group {group!r} of {by!r}; evaluate with measures such as "
                f"{name}@10"
            )
        cutoff = pl.col("measure").str.extract(r"@(\d+)$").cast(pl.Int64)
        parts.append(rows.with_columns(system=pl.lit(report.name), k=cutoff))
    return pl.concat(parts).select("system", "k", "mean", "low", "high", "ceiling", "chance", "n")


def independent_hits(report: Report, *, k: int = 10, most: int = 5) -> pl.DataFrame:
    """Set complete recall beside what it would be were the items of one answer found independently of each other.

    Hits are permuted among the items of the questions of a kind: with as many items, in one session or in several.
    That keeps how often such items are found and breaks only whether those of one answer are found together.

    :param report: with ``recall@k`` and ``recall_all@k``.
    :param most: questions with more items share a row.
    :returns: a row a number of items and, last, one of all questions with several: ``n_evidence`` (a text, last
        ``≥ 2``), ``n``, ``found`` (share of their items in the first ``k``), ``measured`` with Wilson's 95 %
        interval ``low``, ``high``; mean and middle 95 % of the permutations ``predicted``, ``predicted_low``,
        ``predicted_high``, their two-sided ``p`` (null for single items, where there is nothing to permute), and
        ``as_single``: independent, and as often found as single items are (null where no question has one item).
    :raises DataError: when the report lacks one of the two measures.
    """
    fraction, complete = map(str, report.pick([f"recall@{k}", f"recall_all@{k}"]))
    rows = report.per_query.select(
        "n_relevant", HAS_SEVERAL_SESSIONS.alias("several"), found=fraction, complete=complete
    )
    single = rows.filter(pl.col("n_relevant") == 1)["found"].mean()
    rng = np.random.default_rng(report.seed)
    parts: dict[str, list[tuple[pl.DataFrame, np.ndarray]]] = {}
    for (n, _), part in sorted(rows.partition_by("n_relevant", "several", as_dict=True).items()):
        case = (part, _permute_hits(part["found"].to_numpy(), n, rng))
        for label in [str(n) if n < most else f"{most}+", *(["≥ 2"] if n > 1 else [])]:
            parts.setdefault(label, []).append(case)
    table = []
    for label in sorted(parts, key=lambda label: label == "≥ 2"):
        part = pl.concat(rows for rows, _ in parts[label])
        items, n, hits = part["n_relevant"].to_numpy(), part.height, float(part["complete"].sum())
        beside = compare_with_null(hits, np.sum([counts for _, counts in parts[label]], axis=0))
        (low,), (high,) = wilson_interval(np.array([hits]), np.array([n]))
        row = {"n_evidence": label, "n": n, "found": float(part["found"].to_numpy() @ items / items.sum())}
        row |= {"measured": hits / n, "low": low, "high": high}
        row |= {f"predicted{end}": beside[f"chance{end}"] / n for end in ("", "_low", "_high")}
        row["p"] = None if label == "1" else beside["p"]
        table.append(row | {"as_single": None if single is None else float((single**items).mean())})
    return pl.DataFrame(table)


def _permute_hits(found: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
    """Count the questions of ``n`` items that are complete after each permutation of their hits: (draws,)."""
    hits = np.round(found * n).astype(int)
    if n == 1 or len(hits) == 1:
        return np.full(PERMUTATIONS, float((hits == n).sum()))
    flags = np.arange(len(hits) * n) < hits.sum()
    drawn = (rng.permuted(np.tile(flags, (size, 1)), axis=1) for size in split_draws(PERMUTATIONS, len(flags)))
    return np.concatenate([each.reshape(-1, len(hits), n).all(2).sum(1) for each in drawn]).astype(float)


def dissect(run: Run, dataset: Dataset, query_id: str, *, k: int = 10) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Take one question's ranking apart, for :func:`memlab.figures.anatomy.question_anatomy`.

    :param run: a ranking of turns.
    :returns: the first ``k`` (``rank``, ``score``, ``session``, ``evidence``, ``text``) and the evidence that is not
        among them (``session``, ``text``, ``rank``, null where it was not retrieved).
    :raises DataError: when the dataset has no such question, or the run ranks sessions.
    """
    question = dataset.questions.filter(pl.col("query_id") == query_id)
    if question.is_empty() or run.level != "turn":
        raise DataError(f"no question {query_id!r} in {dataset.name!r}, or a run of sessions; give a ranking of turns")
    turns = dataset.turns.select(
        "text",
        doc_id="turn_id",
        session=pl.col("session_id").str.replace(r"^.*/", "").str.replace("session_", "s"),
        evidence=pl.col("turn_id").is_in(question["evidence"].explode().implode()),
    )
    ranked = run.frame.filter(pl.col("query_id") == query_id)
    hits = ranked.filter(pl.col("rank") <= k).join(turns, on="doc_id", how="left", maintain_order="left")
    missed = turns.filter("evidence").join(hits, on="doc_id", how="anti", maintain_order="left")
    missed = missed.join(ranked, on="doc_id", how="left", maintain_order="left")
    missed = missed.sort("rank", nulls_last=True, maintain_order=True)
    return hits.select("rank", "score", "session", "evidence", "text"), missed.select("session", "text", "rank")
