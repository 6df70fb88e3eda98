"""Why evidence is missed: every missed turn with one cause, by rules that a program can check."""

from __future__ import annotations

import polars as pl

from memlab.errors import DataError
from memlab.records import Dataset, Run, qrels
from memlab.text.analysis import tokenize
from memlab.text.tokens import stem
from memlab.text.words import STOP_WORDS

CAUSES = {
    "budget": "the answer needs more turns than k",
    "caption": "what it shares with question or answer stands only in its image caption",
    "pronouns": "it has no high-idf term of its own",
    "label": "it shares nothing with either, and an unlabelled turn among the first k holds the answer's words",
    "follow-on": "it shares nothing with the question, and a turn within two of it is among the first k",
    "implied": "it has no word of question or answer: to be inferred, or labelled by mistake",
    "common words": "it has only words of question or answer that the whole chat uses",
    "other words": "it shares words with the answer, none with the question",
    "near miss": "it shares words with the question, and ranks up to 2k",
    "outranked": "it shares words with the question, and ranks below 2k",
}
"""Causes in the order in which they are tried, and their rules; the first that holds is taken."""
REACH = 2
COMMON, FEW = 0.05, 5


def misses(run: Run, dataset: Dataset, *, k: int = 10) -> pl.DataFrame:
    """List the evidence that is not among the first k, each item with the first of :data:`CAUSES` that fits it.

    The rules compare stems, without stop words and names of speakers. What is shared must be a high-idf term: in at
    most one turn in twenty of the scope (or five turns).

    :param run: a ranking of turns.
    :returns: a row a missed item: ``query_id``, ``n_evidence_sessions``, ``question``, ``answer``, ``doc_id``,
        ``text`` (with its caption), ``rank`` (null where it was not ranked) and ``cause``.
    :raises DataError: when the run ranks sessions, ``k`` is not positive, or no question has evidence turns.

    The causes were chosen after reading some sixty misses of ``best | learned`` on LoCoMo. Of 30 then drawn at random,
    25 fitted the cause that they got; two of the others were labels that point at the wrong turn, which no rule sees.

    >>> import memlab
    >>> from memlab.evaluate import by_cause, misses
    >>> data = memlab.sample(turns=200)
    >>> missed = misses(memlab.pipeline("bm25").run(memlab.Bench.of(data, encoder=None)), data, k=10)
    >>> by_cause(missed)["n"].sum() == missed.height
    True
    """
    if run.level != "turn" or k < 1:
        raise DataError(f"the run ranks {run.level}s and k is {k}; give a ranking of turns, and k from 1")
    evidence = qrels(dataset.questions, "turn").frame.select("query_id", "doc_id")
    if not evidence.height:
        raise DataError(f"no question of dataset {dataset.name!r} has evidence turns; nothing can be missed")
    ranked = run.frame.select("query_id", "doc_id", "rank")
    first = ranked.filter(pl.col("rank") <= k)
    turns = dataset.turns.select("session_id", "n", "text", "caption", doc_id="turn_id")
    asked = dataset.questions.select(
        "query_id", "answer", question="text", n_evidence_sessions=pl.col("evidence_sessions").list.n_unique()
    )
    missed = (
        evidence.with_columns(needed=pl.len().over("query_id"))
        .join(first, on=["query_id", "doc_id"], how="anti", maintain_order="left")
        .join(ranked, on=["query_id", "doc_id"], how="left", maintain_order="left")
        .join(turns, on="doc_id", how="left", maintain_order="left")
        .join(asked, on="query_id", how="left", maintain_order="left")
    )
    shown = pl.concat_str("text", pl.format("[image: {}]", "caption"), separator=" ", ignore_nulls=True)
    return _described(missed, evidence, first, dataset).select(
        *("query_id", "n_evidence_sessions", "question", "answer", "doc_id"),
        *(shown.alias("text"), "rank", _cause(k).alias("cause")),
    )


def by_cause(missed: pl.DataFrame) -> pl.DataFrame:
    """Count missed evidence and lost questions by cause.

    :param missed: what :func:`misses` gave, or a part of it that holds whole questions.
    :returns: a row a cause of :data:`CAUSES`, in their order: ``cause``, ``n`` (missed items), ``share`` (of them),
        ``solved`` and ``alone``, number and share of the incomplete questions that miss items for this cause only.
    """
    only = pl.when(pl.col("cause").n_unique().over("query_id") == 1).then("query_id")
    counted = (
        missed.with_columns(only=only).group_by("cause").agg(n=pl.len(), solved=pl.col("only").drop_nulls().n_unique())
    )
    items, questions = max(missed.height, 1), max(missed["query_id"].n_unique(), 1)
    return (
        pl.DataFrame({"cause": list(CAUSES)})
        .join(counted, on="cause", how="left", maintain_order="left")
        .with_columns(pl.col("n", "solved").fill_null(0))
        .with_columns(share=pl.col("n") / items, alone=pl.col("solved") / questions)
    )


def _cause(k: int) -> pl.Expr:
    asks, nothing = pl.col("asks"), ~pl.col("asks") & ~pl.col("answers")
    rules = {
        "budget": pl.col("needed") > k,
        "caption": pl.col("shows") & ~pl.col("says"),
        "pronouns": ~pl.col("tells"),
        "label": nothing & pl.col("elsewhere"),
        "follow-on": ~asks & pl.col("beside"),
        "implied": ~pl.col("touches"),
        "common words": nothing,
        "other words": ~asks,
        "near miss": pl.col("rank").fill_null(2 * k + 1) <= 2 * k,
        "outranked": pl.lit(True),
    }
    return pl.coalesce(pl.when(rules[name]).then(pl.lit(name)) for name in CAUSES)


def _described(missed: pl.DataFrame, evidence: pl.DataFrame, first: pl.DataFrame, dataset: Dataset) -> pl.DataFrame:
    """Say of each missed turn what it shares with question and answer, and what was found instead."""
    place = ["query_id", "doc_id"]
    of_turns, of_questions, of_answers = _stems(dataset)
    either, telling, shown = pl.col("asks") | pl.col("answers"), ~pl.col("common"), pl.col("shown")
    shared = (
        missed.select(place)
        .join(of_turns, on="doc_id")
        .join(of_questions.select("query_id", "word", asks=True), on=["query_id", "word"], how="left")
        .join(of_answers.select("query_id", "word", answers=True), on=["query_id", "word"], how="left")
        .with_columns(pl.col("asks", "answers").fill_null(False))
        .group_by(place)
        .agg(
            touches=either.any(),
            asks=(pl.col("asks") & telling).any(),
            answers=(pl.col("answers") & telling).any(),
            tells=(telling & ~shown).any(),
            says=(either & telling & ~shown).any(),
            shows=(either & telling & shown).any(),
        )
    )
    wanted = of_answers.filter(telling).with_columns(wanted=pl.len().over("query_id"))
    elsewhere = (
        first.join(evidence, on=place, how="anti")
        .join(of_turns.select("doc_id", "word").unique(), on="doc_id")
        .join(wanted, on=["query_id", "word"])
        .filter(pl.len().over(place) == pl.col("wanted"))["query_id"]
    )
    near = first.join(dataset.turns.select("session_id", at="n", doc_id="turn_id"), on="doc_id")
    beside = (
        missed.select(*place, "session_id", "n")
        .join(near.select("query_id", "session_id", "at"), on=["query_id", "session_id"])
        .filter((pl.col("n") - pl.col("at")).abs() <= REACH)
        .select(*place, beside=True)
        .unique()
    )
    return (
        missed.join(shared, on=place, how="left", maintain_order="left")
        .join(beside, on=place, how="left", maintain_order="left")
        .with_columns(pl.col(*shared.columns[2:], "beside").fill_null(False))
        .with_columns(elsewhere=pl.col("query_id").is_in(elsewhere.implode()))
    )


def _stems(dataset: Dataset) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]:
    """Give the stems of turns (``doc_id``, ``word``, ``shown``: in the caption), of questions and of answers.

    Each with ``common``: whether the whole scope uses it. Names of speakers are left out.
    """
    turns, questions = dataset.turns, dataset.questions
    of_turn, of_question = turns.select("scope", doc_id="turn_id"), questions.select("scope", "query_id")
    of_turns = pl.concat(
        _words(of_turn, turns[column]).with_columns(shown=pl.lit(column == "caption")) for column in ("text", "caption")
    )
    size = turns.group_by("scope").agg(size=pl.len())
    common = (
        of_turns.group_by("scope", "word")
        .agg(df=pl.col("doc_id").n_unique())
        .join(size, on="scope")
        .select("scope", "word", common=pl.col("df") > pl.max_horizontal(COMMON * pl.col("size"), FEW))
    )
    people = turns.select("scope", "speaker").unique()
    names = _words(people.select("scope"), people["speaker"])
    return tuple(  # type: ignore[return-value]
        words.join(names, on=["scope", "word"], how="anti")
        .join(common, on=["scope", "word"], how="left")
        .with_columns(pl.col("common").fill_null(False))
        .drop("scope")
        for words in (of_turns, _words(of_question, questions["text"]), _words(of_question, questions["answer"]))
    )


def _words(keys: pl.DataFrame, texts: pl.Series) -> pl.DataFrame:
    """Give the distinct words of texts that are no stop words, a row each, with the keys of their text."""
    empty = pl.Series(sorted(set(stem(STOP_WORDS))), dtype=pl.String)
    words = pl.Series("word", tokenize(texts.fill_null("").to_list()) if len(texts) else [], dtype=pl.List(pl.String))
    distinct = keys.with_columns(words.list.unique(maintain_order=True)).explode("word").drop_nulls("word")
    return distinct.filter(~pl.col("word").is_in(empty.implode()))
