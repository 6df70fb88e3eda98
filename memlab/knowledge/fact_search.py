"""Ranking of facts for a question by similarity, relevance in the graph and confidence."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import polars as pl

from memlab.config import RecallSettings
from memlab.embed import Encoder
from memlab.errors import DataError
from memlab.knowledge.confidence import ConfidenceSettings, score
from memlab.knowledge.fact_graph import build_graph, score_facts_and_find_names
from memlab.knowledge.supersession import Resolved

_RESULT_SCHEMA = {
    "query_id": pl.String(),
    "rank": pl.UInt32(),
    "fact_id": pl.String(),
    "score": pl.Float64(),
    "vector": pl.Float64(),
    "graph": pl.Float64(),
    "confidence": pl.Float64(),
    "entities": pl.List(pl.String()),
}
_DECIMALS = 6  # what a product of float32 gives beyond these depends on the size of the batch
_CURRENT = ("active", "due")


def search_facts(
    questions: pl.DataFrame,
    facts: pl.DataFrame,
    *,
    encoder: Encoder | None = None,
    entities: pl.DataFrame | None = None,
    settings: RecallSettings | None = None,
    k: int = 10,
    superseded: bool = False,
) -> pl.DataFrame:
    """Rank the facts of each question's scope by three components, each in [0, 1].

    - ``vector``: cosine of question and "about slot value", below 0 taken as 0;
    - ``graph``: personalised PageRank from what the question names, divided by the greatest; 0
      where it names nothing known, and then ``entities`` is empty;
    - ``confidence``: as :func:`memlab.knowledge.confidence.score` gave it.

    Calibrated, the default::

        score = .4 · vector + .3 · calibrated graph + .3 · confidence · vector

    The similarities of one question lie close together and far below 1, while the graph gives its
    first fact 1, and confidence is near 1 for all that is fresh. So the graph is brought to the
    scale of the question's similarities (:func:`map_relevance_to_similarities`), and confidence
    takes its share of the similarity rather than a share of its own. What is near in the graph and
    sure, but not asked for, then stays below what resembles the question. Where no fact resembles
    the question, or nothing is compared (no encoder, or the weight 0), there is no scale, and the
    score is the plain sum.

    Plain (``settings.calibrated`` false)::

        score = .4 · vector + .3 · graph + .3 · confidence

    Of equal scores the fact heard last comes first.

    :param questions: ``scope`` and ``text``; ``query_id``, or the row number stands for it.
    :param facts: ``Resolved.facts``, scored by :func:`memlab.knowledge.confidence.score`;
        repeats are not ranked.
    :param encoder: for the similarity; ``None``: 0 for all.
    :param entities: rows of :class:`memlab.records.Entity`: names of the graph beside those of the
        facts, and edges between those that are related.
    :param settings: the weights; a component of weight 0 is not computed and given as 0.
    :param superseded: rank what no longer holds too (its confidence is 0).
    :returns: ``query_id``, ``rank`` (from 1), ``fact_id``, ``score``, the components as they were
        weighed (``graph`` on the scale of the similarities where it was calibrated), and
        ``entities``: what of the question stands in the graph.
    :raises DataError: for missing columns or ``k`` below 1.

    >>> from datetime import datetime, UTC
    >>> import polars as pl
    >>> from memlab.knowledge import confidence, fact_search, resolve
    >>> from memlab.records import Fact, frame
    >>> when = datetime(2026, 3, 1, tzinfo=UTC)
    >>> facts = resolve(frame(Fact, [
    ...     Fact("f1", "u", "Ann", "employer", "Acme", "stated", [], when),
    ...     Fact("f2", "u", "Ben", "home", "Rome", "stated", [], when),
    ... ])).facts
    >>> asked = pl.DataFrame({"scope": ["u"], "text": ["Where does Ben live?"]})
    >>> fact_search.search_facts(asked, confidence.score(facts, now=when))["fact_id"].to_list()
    ['f2', 'f1']
    """
    weights = settings or RecallSettings()
    _refuse_missing_columns_or_low_k(questions, facts, k)
    if "query_id" not in questions.columns:
        questions = questions.with_columns(query_id=pl.int_range(pl.len()).cast(pl.String))
    candidate_facts = facts.filter(pl.col("status") != "repeat")
    if not superseded:
        candidate_facts = candidate_facts.filter(pl.col("status").is_in(_CURRENT))
    numbered_questions = questions.with_row_index("_place")
    ranked_parts = [pl.DataFrame(schema={"_place": pl.UInt32(), **_RESULT_SCHEMA})]
    for (scope,), scope_questions in numbered_questions.group_by("scope", maintain_order=True):
        scope_facts = candidate_facts.filter(scope=scope)
        scope_entities = None if entities is None else entities.filter(scope=scope)
        scope_rankings = _rank_scope_facts_for_each_question(
            scope_questions, scope_facts, encoder=encoder, entities=scope_entities, weights=weights
        )
        ranked_parts.extend(question_ranking.head(k) for question_ranking in scope_rankings)
    return pl.concat(ranked_parts).sort("_place", "rank").drop("_place")


def map_relevance_to_similarities(relevance: np.ndarray, similarity: np.ndarray) -> np.ndarray:
    """Bring the relevance in the graph to the scale of a question's similarities, place by place.

    The i-th greatest relevance becomes the i-th greatest similarity (quantile mapping); equal ones
    become the greatest of their places, and 0 stays 0.

    :param relevance: in the graph, one for each fact: (n,).
    :param similarity: to the question, of the same facts: (n,).
    :returns: (n,).

    >>> import numpy as np
    >>> from memlab.knowledge.fact_search import map_relevance_to_similarities
    >>> relevance, similarity = np.array([1.0, 0.2, 0.0]), np.array([0.31, 0.72, 0.10])
    >>> map_relevance_to_similarities(relevance, similarity).tolist()
    [0.72, 0.31, 0.0]
    """
    falling_similarity = np.sort(similarity)[::-1]
    rising_negatives = np.sort(-relevance)
    # The place of each: how many are greater.
    relevance_places = np.searchsorted(rising_negatives, -relevance, side="left")
    return np.where(relevance > 0, falling_similarity[relevance_places], 0.0)


def _refuse_missing_columns_or_low_k(questions: pl.DataFrame, facts: pl.DataFrame, k: int) -> None:
    table_by_column = {
        "scope": questions,
        "text": questions,
        "fact_id": facts,
        "status": facts,
        "confidence": facts,
    }
    for name, table in table_by_column.items():
        if name not in table.columns:
            raise DataError(f"no column {name!r} to rank facts by")
    if k < 1:
        raise DataError(f"k is {k}; give at least 1")


def _rank_scope_facts_for_each_question(
    questions: pl.DataFrame,
    facts: pl.DataFrame,
    *,
    encoder: Encoder | None,
    entities: pl.DataFrame | None,
    weights: RecallSettings,
) -> Iterator[pl.DataFrame]:
    """Rank all facts of a scope for each of its questions."""
    cosines = np.zeros((questions.height, facts.height))
    if encoder is not None and weights.vector and facts.height:
        cosines = clipped_cosines(questions["text"], write_fact_statements(facts), encoder)
    fact_graph = None
    if weights.graph:
        fact_graph = build_graph(facts, entities)
    if not weights.confidence:
        facts = facts.with_columns(confidence=pl.lit(0.0))
    question_rows = questions.select("_place", "query_id", "text").iter_rows()
    for (place, query_id, text), question_cosines in zip(question_rows, cosines, strict=True):
        relevance: dict[str, float] = {}
        named_entities: list[str] = []
        if fact_graph is not None:
            relevance, named_entities = score_facts_and_find_names(fact_graph, text)
        graph_scores = np.array(
            [relevance.get(fact, 0.0) for fact in facts["fact_id"]], dtype=float
        )
        confidences = facts["confidence"].to_numpy()
        total_scores, graph_scores = _weighted_scores_and_relevance(
            question_cosines, graph_scores, confidences, weights
        )
        scored_facts = facts.select(
            "fact_id",
            "last_access",
            "confidence",
            _place=pl.lit(place, pl.UInt32),
            query_id=pl.lit(query_id),
            score=pl.Series(total_scores).round(_DECIMALS),
            vector=pl.Series(question_cosines),
            graph=pl.Series(graph_scores),
            entities=pl.lit(named_entities, pl.List(pl.String)),
        )
        ranked_facts = scored_facts.sort(
            "score", "last_access", descending=True, nulls_last=True, maintain_order=True
        )
        yield ranked_facts.with_row_index("rank", offset=1).select("_place", *_RESULT_SCHEMA)


def _weighted_scores_and_relevance(
    similarity: np.ndarray, relevance: np.ndarray, confidence: np.ndarray, weights: RecallSettings
) -> tuple[np.ndarray, np.ndarray]:
    """Give the scores, and the relevance in the graph as it was weighed: two of (n,)."""
    confidence_part = confidence
    if weights.calibrated and similarity.any():
        relevance = map_relevance_to_similarities(relevance, similarity)
        confidence_part = confidence * similarity
    total_scores = (
        weights.vector * similarity
        + weights.graph * relevance
        + weights.confidence * confidence_part
    )
    return total_scores, relevance


def current_first_share_by_condition(
    questions: pl.DataFrame,
    labels: pl.DataFrame,
    resolved: Resolved,
    *,
    conditions: Mapping[str, tuple[ConfidenceSettings, bool]],
    encoder: Encoder | None = None,
) -> pl.DataFrame:
    """Measure how often the current value of a fact ranks above every value that it replaced.

    Facts are ranked as :func:`search_facts` does without the graph; a tie counts as not.

    :param questions: ``query_id``, ``scope``, ``text`` and ``now``, the time at which it is asked.
    :param labels: ``query_id``, ``fact_id`` and ``current``: whether it states the current value or
        one before.
    :param conditions: by name: the constants of confidence, and whether what was superseded is left
        out.
    :returns: ``condition``, ``n`` and ``share``.
    :raises DataError: for no questions.
    """
    if questions.is_empty():
        raise DataError(
            "there is no question whose current value is to be ranked; "
            "give some that name stale messages"
        )
    head_of_fact = resolved.facts.select("fact_id", head=pl.coalesce("repeats", "fact_id"))
    labelled_heads = labels.join(head_of_fact, on="fact_id")
    condition_rows = []
    for condition_name, (settings, without_superseded) in conditions.items():
        facts = resolved.facts
        if not without_superseded:
            facts = _mark_all_but_repeats_as_active(facts)
        ranked_parts = []
        for (now,), dated_questions in questions.group_by("now", maintain_order=True):
            scored_facts = score(facts, now=now, settings=settings)
            ranked_parts.append(_rank_without_graph(dated_questions, scored_facts, encoder))
        ranked_facts = pl.concat(ranked_parts).select("query_id", "score", head="fact_id")
        labelled_scores = labelled_heads.join(ranked_facts, on=["query_id", "head"], how="left")
        is_current_first = _is_current_above_stale_by_question(labelled_scores)
        condition_rows.append(
            (condition_name, is_current_first.len(), is_current_first.mean() or 0.0)
        )
    return pl.DataFrame(condition_rows, schema=["condition", "n", "share"], orient="row")


def _mark_all_but_repeats_as_active(facts: pl.DataFrame) -> pl.DataFrame:
    """Take every fact but a repeat as one that nothing has closed."""
    is_repeat = pl.col("status") == "repeat"
    status = pl.when(is_repeat).then("status").otherwise(pl.lit("active"))
    return facts.with_columns(status, superseded=pl.lit(False))


def _rank_without_graph(
    questions: pl.DataFrame, facts: pl.DataFrame, encoder: Encoder | None
) -> pl.DataFrame:
    """Rank all facts, by similarity and confidence alone."""
    settings = RecallSettings(graph=0)
    n_facts = max(facts.height, 1)
    return search_facts(questions, facts, encoder=encoder, settings=settings, k=n_facts)


def _is_current_above_stale_by_question(labelled_scores: pl.DataFrame) -> pl.Series:
    """Say of each question whether its best current fact scores above its best stale one."""
    current_score = pl.col("score").filter(pl.col("current")).max()
    stale_score = pl.col("score").filter(~pl.col("current")).max()
    is_current_above = labelled_scores.group_by("query_id").agg(
        above=current_score > pl.coalesce(stale_score, -1.0)
    )
    return is_current_above["above"].fill_null(False)


def write_fact_statements(facts: pl.DataFrame) -> pl.Series:
    """Write facts as "about slot value", the text that a question is compared with.

    Their sentences say more (whose, when), but rank the current value below a stale one more often.
    """
    statement_text = pl.concat_str("about", "slot", "value", separator=" ")
    return facts.select(statement=statement_text).to_series()


def write_fact_sentences_or_statements(facts: pl.DataFrame) -> pl.Series:
    """Give the sentence of each fact, or about, slot and value where it has none."""
    statement_text = write_fact_statements(facts).alias("said")
    return facts.select(pl.coalesce("sentence", statement_text)).to_series()


def clipped_cosines(questions: pl.Series, texts: pl.Series, encoder: Encoder) -> np.ndarray:
    """Give the cosines of questions and texts, clipped to [0, 1]: (q, n)."""
    question_vectors = encoder.encode(questions.to_list(), kind="query", progress=False)
    text_vectors = encoder.encode(texts.to_list(), kind="document", progress=False)
    return np.clip((question_vectors @ text_vectors.T).astype(np.float64), 0.0, 1.0)
