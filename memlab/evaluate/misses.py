"""Why evidence is missed: every missed turn with one cause, by rules that a program can check."""

from __future__ import annotations

import polars as pl

from memlab.errors import DataError
from memlab.language.analysis import tokenize
from memlab.language.tokens import stem
from memlab.language.words import STOP_WORDS
from memlab.records import Dataset, Run, qrels

CAUSES = {
    "budget": "the answer needs more turns than k",
    "caption": "what it shares with question or answer stands only in its image caption",
    "pronouns": "it has no telling word of its own",
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
    """List the evidence that is not among the first k, each piece with the first of :data:`CAUSES` that fits it.

    The rules compare stems, without stop words and names of speakers. What is shared must be *telling*: in at most one
    turn in twenty of the scope (or five turns); a word that the whole chat uses tells no turn from another.

    :param run: a ranking of turns.
    :returns: a row a missed piece: ``query_id``, ``n_evidence_sessions``, ``question``, ``answer``, ``doc_id``,
        ``text`` (with its caption), ``rank`` (null where it was not ranked) and ``cause``.
    :raises DataError: when the run ranks sessions, ``k`` is not positive, or no question has evidence turns.

    The causes were chosen after reading some sixty misses of ``combsum(turn=(1, 1, 2), session=(1, 1, 2)) | learned``
    on LoCoMo. Of 30 then drawn at random, a few of them read before, 25 fitted the cause that they got. Of the other
    five, two were labels that point at the wrong turn, which no rule here sees: they count as implied.

    >>> import memlab
    >>> from memlab.evaluate.misses import by_cause, misses
    >>> data = memlab.datasets.synthetic.generate(turns=200, seed=0)
    >>> run = memlab.pipeline("bm25").run(memlab.Bench.of(data, encoder=None))
    >>> by_cause(misses(run, data, k=10))["n"].sum() == misses(run, data, k=10).height
    True
    """
    if run.level != "turn" or k < 1:
        raise DataError(f"the run ranks {run.level}s and k is {k}; give a ranking of turns, and k from 1")
    evidence = qrels(dataset.questions, "turn").frame.select("query_id", "doc_id")
    if not evidence.height:
        raise DataError(f"no question of dataset {dataset.name!r} has evidence turns; nothing can be missed")
    ranked = run.frame.select("query_id", "doc_id", "rank")
    first = ranked.filter(pl.col("rank") <= k)
    turns = dataset.turns.select("scope", "session_id", "n", "text", "caption", doc_id="turn_id")
    missed = (
        evidence.with_columns(needed=pl.len().over("query_id"))
        .join(first, on=["query_id", "doc_id"], how="anti", maintain_order="left")
        .join(ranked, on=["query_id", "doc_id"], how="left", maintain_order="left")
        .join(turns, on="doc_id", how="left", maintain_order="left")
        .join(_asked(dataset), on="query_id", how="left", maintain_order="left")
    )
    described = _described(missed, evidence, first, dataset)
    shown = pl.concat_str("text", pl.format("[image: {}]", "caption"), separator=" ", ignore_nulls=True)
    return described.with_columns(cause=_cause(k), text=shown).select(
        "query_id", "n_evidence_sessions", "question", "answer", "doc_id", "text", "rank", "cause"
    )


def by_cause(missed: pl.DataFrame) -> pl.DataFrame:
    """Count what each cause costs.

    A lost answer is a question with a missed piece. ``alone`` is the share of lost answers that would be complete if
    the cause were solved and all others stayed: those that miss pieces for this cause only.

    :param missed: what :func:`misses` gave, or a part of it that holds whole questions.
    :returns: a row a cause of :data:`CAUSES`, in their order: ``cause``, ``n`` (missed pieces), ``share`` (of them),
        ``solved`` (answers) and ``alone``; nothing missed gives noughts.
    """
    only = pl.col("cause").n_unique().over("query_id") == 1
    counted = missed.group_by("cause").agg(n=pl.len())
    solved = missed.filter(only).group_by("cause").agg(solved=pl.col("query_id").n_unique())
    pieces, lost = max(missed.height, 1), max(missed["query_id"].n_unique(), 1)
    return (
        pl.DataFrame({"cause": list(CAUSES)})
        .join(counted, on="cause", how="left", maintain_order="left")
        .join(solved, on="cause", how="left", maintain_order="left")
        .with_columns(pl.col("n", "solved").fill_null(0))
        .select("cause", "n", "solved", share=pl.col("n") / pieces, alone=pl.col("solved") / lost)
    )


def _asked(dataset: Dataset) -> pl.DataFrame:
    return dataset.questions.select(
        "query_id", "answer", question="text", n_evidence_sessions=pl.col("evidence_sessions").list.n_unique()
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
    turn_words, asked, answer = _stems(dataset)
    either, telling = pl.col("asks") | pl.col("answers"), ~pl.col("common")
    shared = (
        missed.select(place)
        .join(turn_words, on="doc_id")
        .join(asked.select("query_id", "word", asks=True), on=["query_id", "word"], how="left")
        .join(answer.select("query_id", "word", answers=True), on=["query_id", "word"], how="left")
        .with_columns(pl.col("asks", "answers").fill_null(False))
        .group_by(place)
        .agg(
            touches=either.any(),
            asks=(pl.col("asks") & telling).any(),
            answers=(pl.col("answers") & telling).any(),
            tells=(telling & ~pl.col("shown")).any(),
            says=(either & telling & ~pl.col("shown")).any(),
            shows=(either & telling & pl.col("shown")).any(),
        )
    )
    answer = answer.filter(telling)
    n_words = answer.group_by("query_id").agg(wanted=pl.len())
    elsewhere = (
        first.join(evidence, on=place, how="anti")
        .join(turn_words.select("doc_id", "word").unique(), on="doc_id")
        .join(answer, on=["query_id", "word"])
        .group_by(place)
        .len()
        .join(n_words, on="query_id")
        .filter(pl.col("len") == pl.col("wanted"))
        .select(pl.col("query_id").unique(), elsewhere=True)
    )
    near = first.join(dataset.turns.select("session_id", at="n", doc_id="turn_id"), on="doc_id")
    beside = (
        missed.select(*place, "session_id", "n")
        .join(near.select("query_id", "session_id", "at"), on=["query_id", "session_id"])
        .filter((pl.col("n") - pl.col("at")).abs() <= REACH)
        .select(place)
        .unique()
        .with_columns(beside=True)
    )
    flags = ("touches", "asks", "answers", "tells", "says", "shows", "elsewhere", "beside")
    return (
        missed.join(shared, on=place, how="left", maintain_order="left")
        .join(elsewhere, on="query_id", how="left", maintain_order="left")
        .join(beside, on=place, how="left", maintain_order="left")
        .with_columns(pl.col(flags).fill_null(False))
    )


def _stems(dataset: Dataset) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]:
    """Give the stems of turns (``doc_id``, ``word``, ``shown``: in the caption), of questions and of answers.

    Each with ``common``: whether the whole scope uses it. Names of speakers are left out.
    """
    turns, questions = dataset.turns, dataset.questions
    of_turn, of_question = turns.select("scope", doc_id="turn_id"), questions.select("scope", "query_id")
    turn_words = pl.concat(
        [
            _words(of_turn, turns[column]).with_columns(shown=pl.lit(column == "caption"))
            for column in ("text", "caption")
        ]
    )
    size = turns.group_by("scope").agg(size=pl.len())
    common = (
        turn_words.group_by("scope", "word")
        .agg(held=pl.col("doc_id").n_unique())
        .join(size, on="scope")
        .filter(pl.col("held") > pl.max_horizontal(COMMON * pl.col("size"), FEW))
        .select("scope", "word", common=True)
    )
    people = turns.select("scope", "speaker").unique()
    names = _words(people.select("scope"), people["speaker"])
    texts = (turn_words, _words(of_question, questions["text"]), _words(of_question, questions["answer"]))
    turn_words, asked, answer = (
        words.join(names, on=["scope", "word"], how="anti")
        .join(common, on=["scope", "word"], how="left")
        .with_columns(pl.col("common").fill_null(False))
        .drop("scope")
        for words in texts
    )
    return turn_words, asked, answer


def _words(keys: pl.DataFrame, texts: pl.Series) -> pl.DataFrame:
    """Give the distinct words of texts that may tell something, a row each, with the keys of their text."""
    empty = pl.Series(sorted(set(stem(STOP_WORDS))), dtype=pl.String)
    split = tokenize(texts.fill_null("").to_list()) if len(texts) else []
    words = pl.Series("word", split, dtype=pl.List(pl.String))
    distinct = keys.with_columns(words.list.unique(maintain_order=True)).explode("word").drop_nulls("word")
    return distinct.filter(~pl.col("word").is_in(empty.implode()))
