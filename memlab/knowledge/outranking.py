"""How often the current value of something outranks those that it replaced: what decay and supersession buy."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

import numpy as np
import polars as pl

from memlab.config import RecallSettings
from memlab.embed import Encoder
from memlab.errors import DataError
from memlab.knowledge.calibration import wilson
from memlab.knowledge.confidence import ConfidenceSettings, score
from memlab.knowledge.decay import PlateauLinear
from memlab.knowledge.search import search_facts
from memlab.knowledge.supersession import Resolved
from memlab.records import Dataset, Fact, schema

NO_DECAY = ConfidenceSettings(decay=PlateauLinear(floor=1.0))
WEIGHTS = RecallSettings(graph=0)
_DRAWS, _CONFIDENCE = 2_000, 0.9


class Condition(NamedTuple):
    """A way to rank facts, called ``name`` in tables and figures.

    :param settings: the constants of confidence.
    :param supersession: whether what was superseded is left out; otherwise it ranks as if it still held.
    """

    name: str
    settings: ConfidenceSettings
    supersession: bool


class Updates(NamedTuple):
    """Questions about what has changed.

    :param questions: ``query_id``, ``scope``, ``text`` and ``now``, the time at which it is asked.
    :param labels: ``query_id``, ``fact_id`` and ``current``: true of statements of the current value, false of those
        of a value before it; each question has both.
    """

    questions: pl.DataFrame
    labels: pl.DataFrame

    def only(self, where: pl.Expr) -> Updates:
        """Keep the questions for which an expression of their columns is true, with their labels."""
        questions = self.questions.filter(where)
        return Updates(questions, self.labels.join(questions, on="query_id", how="semi", maintain_order="left"))


def conditions(fitted: ConfidenceSettings | None = None) -> list[Condition]:
    """Give no decay, the default curve and a fitted one, each without supersession and with it."""
    curves = {"no decay": NO_DECAY, "default curve": ConfidenceSettings()}
    curves |= {} if fitted is None else {"fitted curve": fitted}
    return [
        Condition(name + " + supersession" * closed, settings, closed)
        for closed in (False, True)
        for name, settings in curves.items()
    ]


def simulated_updates(facts: pl.DataFrame, truth: pl.DataFrame, *, now: datetime) -> Updates:
    """Ask for every value that has changed by ``now`` and whose present value was stated by then.

    :param facts: what :func:`memlab.knowledge.simulated.simulate` gives, with its ``truth``.
    """
    columns = facts.select("fact_id", "scope", "subject", "predicate", "asserted_at")
    stated = truth.join(columns, on="fact_id", maintain_order="left").filter(pl.col("asserted_at") <= now)
    stated = stated.with_columns(query_id="slot", current=pl.col("until") > now).filter(_both("slot"))
    text = pl.format("{} {} what?", "subject", "predicate")
    questions = stated.select("query_id", "scope", text=text, now=pl.lit(now)).unique(maintain_order=True)
    return Updates(questions, stated.select("query_id", "fact_id", "current"))


def _both(key: str) -> pl.Expr:
    """Keep the questions that have statements of the current value and of one before."""
    return pl.col("current").any().over(key) & ~pl.col("current").all().over(key)


def turn_facts(turns: pl.DataFrame) -> pl.DataFrame:
    """Take each turn of a person as one stated fact, "speaker said text": what ranks where nothing is extracted."""
    spoken = turns.filter(pl.col("role").is_in(["user", "other"]), pl.col("text").str.strip_chars() != "")
    rows = spoken.select(
        "scope", "session_id", "speaker", "text",
        fact_id="turn_id", subject="speaker", predicate=pl.lit("said"), object="text", source=pl.lit("stated"),
        evidence=pl.concat_list("turn_id"), asserted_at="timestamp", recorded_at="timestamp",
    )  # fmt: skip
    return rows.select(pl.col(name).cast(kind) for name, kind in schema(Fact).items())


def dataset_updates(data: Dataset, facts: pl.DataFrame) -> Updates:
    """Ask a dataset's questions about updates: current is the value of the latest evidence session.

    Sessions of one time stand in the order of the dataset. It is for questions that ask what holds now; those that ask
    for the value before must be left out by whoever reads the questions.

    :param facts: rows of :class:`memlab.records.Fact` from the dataset's turns; a fact belongs to the value of its
        evidence. Questions without a fact of both kinds are left out.
    """
    asked = data.questions.filter(
        pl.col("question_type") == "knowledge-update", pl.col("evidence_sessions").list.len() > 1
    )
    turns = data.turns.select("turn_id", "session_id").join(data.sessions.select("session_id", at="n"), on="session_id")
    pieces = asked.select("query_id", "scope", turn_id="evidence").explode("turn_id").join(turns, on="turn_id")
    pieces = pieces.with_columns(current=pl.col("at") == pl.col("at").max().over("query_id"))
    read = facts.select("fact_id", "scope", turn_id="evidence").explode("turn_id")
    labels = pieces.join(read, on=["scope", "turn_id"]).select("query_id", "fact_id", "current")
    labels = labels.unique(maintain_order=True)
    # A fact that stands on turns of both values says nothing about which of them it holds.
    labels = labels.filter(~pl.struct("query_id", "fact_id").is_duplicated()).filter(_both("query_id"))
    questions = asked.join(labels, on="query_id", how="semi").select("query_id", "scope", "text", now="timestamp")
    return Updates(questions, labels)


def ranked(
    updates: Updates,
    resolved: Resolved,
    *,
    conditions: Sequence[Condition],
    encoder: Encoder | None = None,
    weights: RecallSettings | None = None,
) -> pl.DataFrame:
    """Score the labelled statements under each condition, by :func:`memlab.knowledge.search.search_facts`.

    :param resolved: the facts as they were known when the questions are asked.
    :param weights: of similarity, graph and confidence; those of memlab without the graph where not given.
    :returns: ``condition``, ``query_id``, ``fact_id``, ``current`` and ``score``; null where the condition leaves the
        statement out. Repeats have the score of their fact.
    :raises DataError: for a question without a time, or no condition.
    """
    if not conditions:
        raise DataError("there is no condition to rank under; give those of outranking.conditions()")
    if updates.questions["now"].null_count():
        raise DataError("a question has no time; confidence is read at a time, so give now for each question")
    weights = weights or WEIGHTS
    head = pl.when(pl.col("status") == "repeat").then("repeats").otherwise("fact_id")
    labels = updates.labels.join(resolved.facts.select("fact_id", head=head), on="fact_id", how="left")
    statements = resolved.facts
    if not weights.graph:
        # Without the graph a score does not depend on the other facts.
        statements = statements.filter(head.is_in(labels["head"].unique().to_list()))
    # As if nothing had ever been superseded; repeats still reinforce.
    status = pl.when(pl.col("status") == "repeat").then("status").otherwise(pl.lit("active"))
    open_ = statements.with_columns(status=status, superseded=pl.lit(False))
    # A scope has one time in each round, so that one call ranks all scopes.
    rounds = updates.questions.with_columns(round=pl.col("now").rank("dense").over("scope"))
    parts = []
    for condition in conditions:
        facts = statements if condition.supersession else open_
        ranking = []
        for _, asked in rounds.group_by("round", maintain_order=True):
            times = asked.group_by("now", maintain_order=True).agg(pl.col("scope").unique())
            pool = pl.concat(
                score(facts.filter(pl.col("scope").is_in(scopes)), now=now, settings=condition.settings)
                for now, scopes in times.iter_rows()
            )
            ranking.append(search_facts(asked, pool, encoder=encoder, settings=weights, k=max(pool.height, 1)))
        scores = pl.concat(ranking).select("query_id", "score", head="fact_id")
        rows = labels.join(scores, on=["query_id", "head"], how="left", maintain_order="left")
        parts.append(rows.select(pl.lit(condition.name).alias("condition"), "query_id", "fact_id", "current", "score"))
    return pl.concat(parts)


def outranked(scores: pl.DataFrame) -> pl.DataFrame:
    """Say for each question and condition whether the current value stands above every value before it.

    :param scores: what :func:`ranked` gives.
    :returns: ``condition``, ``query_id``, ``current`` and ``stale`` (best scores; null where none is ranked) and
        ``outranked``. A tie counts as not, and so does a current value that is not ranked.

    >>> import polars as pl
    >>> from memlab.knowledge import outranking
    >>> scores = pl.DataFrame({"condition": "a", "query_id": ["q", "q", "r", "r"], "fact_id": list("wxyz"),
    ...     "current": [True, False, True, False], "score": [0.5, 0.4, 0.5, 0.5]})
    >>> outranking.outranked(scores)["outranked"].to_list()
    [True, False]
    """
    best = pl.col("score").filter("current").max()
    stale = pl.col("score").filter(~pl.col("current")).max()
    table = scores.group_by("condition", "query_id", maintain_order=True).agg(current=best, stale=stale)
    above = pl.col("stale").is_null() | (pl.col("current") > pl.col("stale"))
    return table.with_columns(outranked=pl.col("current").is_not_null() & above.fill_null(False))


def summary(table: pl.DataFrame, *, baseline: str | None = None, seed: int = 0) -> pl.DataFrame:
    """Count how often the current value outranks the stale ones, and compare the conditions in pairs.

    :param table: what :func:`outranked` gives, with the same questions in every condition.
    :param baseline: the condition that the others are compared with; the first where not given.
    :returns: ``condition``, ``n``, ``hits``, ``share`` with Wilson's 90 % interval ``low``, ``high``; against the
        baseline ``wins`` (questions where only this condition is right), ``losses`` (only the baseline),
        ``difference`` with its 90 % bootstrap interval ``difference_low``, ``difference_high``, and ``p`` (McNemar's
        exact test). It takes questions as independent.
    :raises DataError: for a condition that is not there, or other questions than the baseline's.

    >>> import polars as pl
    >>> from memlab.knowledge import outranking
    >>> table = pl.DataFrame({"condition": ["a"] * 3 + ["b"] * 3, "query_id": list("qrs") * 2,
    ...     "outranked": [True, False, False, True, True, True]})
    >>> outranking.summary(table).select("condition", "hits", "wins", "losses").rows()
    [('a', 1, 0, 0), ('b', 3, 2, 0)]
    """
    from scipy.stats import binomtest

    each = {str(name): part for (name,), part in table.group_by("condition", maintain_order=True)}
    baseline = baseline if baseline is not None else next(iter(each), "")
    if baseline not in each:
        raise DataError(f"no condition is called {baseline!r}; there are: {', '.join(each) or 'none'}")
    first = each[baseline].select("query_id", base="outranked")
    rows = []
    for name, part in each.items():
        pairs = part.join(first, on="query_id")
        if not pairs.height == part.height == first.height:
            raise DataError(f"condition {name!r} has other questions than {baseline!r}; rank the same ones under both")
        n, hits = pairs.height, int(pairs["outranked"].sum())
        wins = pairs.filter(pl.col("outranked") & ~pl.col("base")).height
        losses = pairs.filter(~pl.col("outranked") & pl.col("base")).height
        (low,), (high,) = wilson(np.array([hits]), np.array([n]), confidence=_CONFIDENCE)
        # To draw questions anew is to draw how many are won and lost.
        drawn = np.random.default_rng(seed).multinomial(n, np.array([wins, losses, n - wins - losses]) / n, size=_DRAWS)
        below, above = np.quantile((drawn[:, 0] - drawn[:, 1]) / n, [(1 - _CONFIDENCE) / 2, (1 + _CONFIDENCE) / 2])
        p = float(binomtest(wins, wins + losses).pvalue) if wins + losses else 1.0
        rows.append(
            {"condition": name, "n": n, "hits": hits, "share": hits / n, "low": float(low), "high": float(high),
             "wins": wins, "losses": losses, "difference": (wins - losses) / n,
             "difference_low": float(below), "difference_high": float(above), "p": p}
        )  # fmt: skip
    return pl.DataFrame(rows)
