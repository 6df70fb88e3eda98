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
from memlab.knowledge import scoring, search
from memlab.knowledge.calibration import wilson
from memlab.knowledge.confidence import ConfidenceSettings, score
from memlab.knowledge.decay import PlateauLinear
from memlab.knowledge.supersession import Resolved
from memlab.records import Dataset, Fact, schema

NO_DECAY = ConfidenceSettings(decay=PlateauLinear(floor=1.0))
WEIGHTS = RecallSettings(graph=0)
_DRAWS = 2_000


class Condition(NamedTuple):
    """A way to rank facts.

    :param name: how tables and figures call it.
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
        """Keep some of the questions, with their labels.

        :param where: of the columns of ``questions``.
        """
        kept = self.questions.filter(where)
        return Updates(kept, self.labels.join(kept, on="query_id", how="semi", maintain_order="left"))


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
    """Ask for every relation with one value at a time whose value has changed by ``now``.

    A question names the person, and the relation in the words that are the most frequent for it. What was said
    wrongly and corrected counts as a value before; statements that only end something are neither. A slot that holds
    nothing at ``now`` is not asked.

    :param facts: what :func:`memlab.knowledge.simulated.simulate` gives, with its ``truth``.
    """
    told = truth.filter("one", pl.col("role") != "end").join(
        facts.select("fact_id", "predicate", "asserted_at", "recorded_at"),
        on="fact_id", maintain_order="left",
    )  # fmt: skip
    told = told.filter(pl.col("asserted_at") <= now, pl.col("recorded_at") <= now)
    held = scoring.holding(facts, truth, now).rename({"value": "held"})
    told = told.join(held, on="slot", maintain_order="left").with_columns(current=pl.col("value") == pl.col("held"))
    both = pl.col("current").any().over("slot") & ~pl.col("current").all().over("slot")
    told = told.filter(both)
    words = pl.col("predicate").mode().sort().first().str.replace(r"^now | now$", "")
    asked = told.group_by("slot", "scope", maintain_order=True).agg(words)
    person = pl.col("slot").str.split("/").list.get(1)
    text = pl.format("{} {} what?", person, "predicate")
    questions = asked.select(query_id="slot", scope="scope", text=text, now=pl.lit(now))
    return Updates(
        questions, told.select("fact_id", "current", query_id="slot").select("query_id", "fact_id", "current")
    )


def turn_facts(turns: pl.DataFrame) -> pl.DataFrame:
    """Take each turn of a person as one stated fact, "speaker said text": what ranks where nothing is extracted."""
    said = turns.filter(pl.col("role").is_in(["user", "other"]), pl.col("text").str.strip_chars() != "")
    rows = said.select(
        "scope", "session_id", "speaker", "text",
        fact_id="turn_id", subject="speaker", predicate=pl.lit("said"), object="text", source=pl.lit("stated"),
        evidence=pl.concat_list("turn_id"), asserted_at="timestamp", recorded_at="timestamp",
    )  # fmt: skip
    return rows.select(pl.col(name).cast(kind) for name, kind in schema(Fact).items())


def dataset_updates(data: Dataset, facts: pl.DataFrame, *, question_type: str = "knowledge-update") -> Updates:
    """Ask a dataset's questions about updates: current is the value of the latest evidence session.

    Sessions of one time stand in the order of the dataset. It is for questions that ask what holds now; those that ask
    for the value before must be left out by whoever reads the questions.

    :param facts: rows of :class:`memlab.records.Fact` from the dataset's turns; a fact belongs to the value of its
        evidence. Questions without a fact of both kinds are left out.
    """
    asked = data.questions.filter(pl.col("question_type") == question_type, pl.col("evidence_sessions").list.len() > 1)
    turns = data.turns.select("turn_id", "session_id").join(data.sessions.select("session_id", at="n"), on="session_id")
    pieces = asked.select("query_id", "scope", turn_id="evidence").explode("turn_id").join(turns, on="turn_id")
    pieces = pieces.with_columns(current=pl.col("at") == pl.col("at").max().over("query_id"))
    read = facts.select("fact_id", "scope", turn_id="evidence").explode("turn_id")
    labels = (
        pieces.join(read, on=["scope", "turn_id"]).select("query_id", "fact_id", "current").unique(maintain_order=True)
    )
    # A fact that stands on turns of both values says nothing about which of them it holds.
    labels = labels.filter(~pl.struct("query_id", "fact_id").is_duplicated())
    labels = labels.filter(pl.col("current").any().over("query_id"), ~pl.col("current").all().over("query_id"))
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
    head = pl.when(pl.col("status") == "repeat").then("repeats").otherwise("fact_id")
    labelled = updates.labels.join(resolved.facts.select("fact_id", head=head), on="fact_id", how="left")
    statements = resolved.facts
    if not (weights or WEIGHTS).graph:
        # Without the graph a score does not depend on the other facts.
        statements = statements.filter(head.is_in(labelled["head"].unique().to_list()))
    # A scope has one time in each round, so that one call ranks all scopes.
    asked = updates.questions.with_columns(round=pl.col("now").rank("dense").over("scope"))
    parts = []
    for one in conditions:
        facts = statements if one.supersession else _open(statements)
        found = [
            _recalled(its, facts, one, encoder, weights) for _, its in asked.group_by("round", maintain_order=True)
        ]
        rows = labelled.join(pl.concat(found), on=["query_id", "head"], how="left", maintain_order="left")
        parts.append(rows.select(pl.lit(one.name).alias("condition"), "query_id", "fact_id", "current", "score"))
    return pl.concat(parts)


def _recalled(
    asked: pl.DataFrame,
    facts: pl.DataFrame,
    condition: Condition,
    encoder: Encoder | None,
    weights: RecallSettings | None,
) -> pl.DataFrame:
    nows = asked.group_by("now", maintain_order=True).agg(pl.col("scope").unique())
    scored = [
        score(facts.filter(pl.col("scope").is_in(scopes)), now=now, settings=condition.settings)
        for now, scopes in nows.iter_rows()
    ]
    pool = pl.concat(scored)
    found = search.search_facts(asked, pool, encoder=encoder, settings=weights or WEIGHTS, k=max(pool.height, 1))
    return found.select("query_id", "score", head="fact_id")


def _open(facts: pl.DataFrame) -> pl.DataFrame:
    """Let everything hold, as if nothing had ever been superseded; repeats still reinforce."""
    kept = pl.when(pl.col("status") == "repeat").then("status").otherwise(pl.lit("active"))
    return facts.with_columns(status=kept, superseded=pl.lit(False))


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
    best = {
        name: pl.col("score").filter(pl.col("current") == kind).max()
        for name, kind in (("current", True), ("stale", False))
    }
    table = scores.group_by("condition", "query_id", maintain_order=True).agg(**best)
    above = pl.col("stale").is_null() | (pl.col("current") > pl.col("stale"))
    return table.with_columns(outranked=pl.col("current").is_not_null() & above.fill_null(False))


def summary(
    table: pl.DataFrame, *, baseline: str | None = None, confidence: float = 0.9, seed: int = 0
) -> pl.DataFrame:
    """Count how often the current value outranks the stale ones, and compare the conditions in pairs.

    :param table: what :func:`outranked` gives, with the same questions in every condition.
    :param baseline: the condition that the others are compared with; the first where not given.
    :param confidence: of Wilson's intervals of the shares and of the bootstrap intervals of the differences.
    :returns: ``condition``, ``n``, ``hits``, ``share``, ``low``, ``high``; against the baseline ``wins`` (questions
        where only this condition is right), ``losses`` (only the baseline), ``difference``, ``difference_low``,
        ``difference_high`` and ``p`` (McNemar's exact test). It takes questions as independent.
    :raises DataError: for a condition that is not there, or other questions than the baseline's.

    >>> import polars as pl
    >>> from memlab.knowledge import outranking
    >>> table = pl.DataFrame({"condition": ["a"] * 3 + ["b"] * 3, "query_id": list("qrs") * 2,
    ...     "outranked": [True, False, False, True, True, True]})
    >>> outranking.summary(table).select("condition", "hits", "wins", "losses").rows()
    [('a', 1, 0, 0), ('b', 3, 2, 0)]
    """
    from scipy.stats import binomtest

    each = {
        str(key[0]): part for key, part in table.partition_by("condition", as_dict=True, maintain_order=True).items()
    }
    base = baseline if baseline is not None else next(iter(each), "")
    if base not in each:
        raise DataError(f"no condition is called {base!r}; there are: {', '.join(each) or 'none'}")
    first = each[base].select("query_id", base="outranked")
    rows = []
    for name, part in each.items():
        pairs = part.join(first, on="query_id")
        if not pairs.height == part.height == first.height:
            raise DataError(f"condition {name!r} has other questions than {base!r}; rank the same ones under both")
        wins = pairs.filter(pl.col("outranked") & ~pl.col("base")).height
        losses = pairs.filter(~pl.col("outranked") & pl.col("base")).height
        n, hits = pairs.height, int(pairs["outranked"].sum())
        low, high = wilson(np.array([hits]), np.array([n]), confidence=confidence)
        ends = _bootstrap(wins, losses, n, confidence, seed)
        p = float(binomtest(wins, wins + losses).pvalue) if wins + losses else 1.0
        rows.append(
            (name, n, hits, hits / n, float(low[0]), float(high[0]), wins, losses, (wins - losses) / n, *ends, p)
        )
    names = ["condition", "n", "hits", "share", "low", "high", "wins", "losses"]
    names += ["difference", "difference_low", "difference_high", "p"]
    return pl.DataFrame(rows, schema=names, orient="row")


def _bootstrap(wins: int, losses: int, n: int, confidence: float, seed: int) -> tuple[float, float]:
    """Draw questions anew; only how many are won and lost matters, so that a multinomial does."""
    drawn = np.random.default_rng(seed).multinomial(n, np.array([wins, losses, n - wins - losses]) / n, size=_DRAWS)
    low, high = np.quantile((drawn[:, 0] - drawn[:, 1]) / n, [(1 - confidence) / 2, (1 + confidence) / 2])
    return float(low), float(high)
