"""Multi-hop retrieval: retrieve, read, ask for what is missing, again."""

from __future__ import annotations

import polars as pl
from pydantic import BaseModel

from memlab.errors import at_least
from memlab.records import Run
from memlab.registry import stage
from memlab.retrieve.bench import Bench
from memlab.retrieve.ranking import depth, of_turns
from memlab.retrieve.subqueries import ask, joined, written
from memlab.text.analysis import tokenize

# Turns that are read before each follow-up, and names and words that are added to the question; a name leads to other
# turns more surely than a word as rare.
READS, MENTIONS, NAME = 5, 10, 1.5

_WORD = r"[\p{L}][\p{L}\p{N}'’-]+"
# A capital after the first word of a sentence; "Mel: " before a turn opens one too.
_NAMES = r"[^.!?:\s][\s\"'“‘(]+\p{Lu}[\p{L}\p{N}'’-]+"

_TASK = (
    "You search the turns of a long conversation for every piece of the answer to a question. Read the turns found so "
    "far. If something that the answer needs is not in them, write one short search query for it, with the names and "
    "words that its turn would hold. If nothing is missing, leave the query empty."
)


class Hop(BaseModel, extra="forbid"):
    """What a language model answers."""

    query: str


@stage
def multi_hop(
    run: Run,
    bench: Bench,
    *,
    hops: int = 1,
    weight: float = 0.25,
    retriever: str = "hybrid",
    service: str | None = None,
) -> Run:
    """Search for what the first results mention and fuse the results; once for each hop.

    Offline, the follow-up is the question with the ten names and rare words that the first five turns hold and the
    question does not (:func:`mentions`); a later hop leaves out what was asked before. A language model reads the
    same turns and writes the follow-up itself, or says that nothing is missing, which ends the hops of that question.

    :param hops: follow-ups a question, at most.
    :param weight: of the list of each follow-up; the run's own list weighs 1, and its first three places are guarded.
    :param retriever: what answers them: ``dense``, ``bm25``, ``late``, ``hybrid`` or ``combsum``.
    :param service: a language model, see :func:`memlab.llm.ask`; ``None`` for the follow-ups built offline.
    :raises DataError: for a ranking of sessions, an unknown retriever, or a count or weight that cannot be used.
    :raises ModelError: when no such service is set.

    Source: Trivedi, Balasubramanian, Khot and Sabharwal, Interleaving Retrieval with Chain-of-Thought Reasoning
    (ACL 2023); Qi, Lin, Mehr, Wang and Manning, Answering Complex Open-domain Questions Through Iterative Query
    Generation (EMNLP 2019), for follow-ups from what the hits say.

    >>> from memlab import retrieve, sample
    >>> from memlab.retrieve.multi_hop import multi_hop
    >>> bench = retrieve.Bench.of(sample(turns=60), encoder=None)
    >>> plain = retrieve.bm25(bench)
    >>> multi_hop(plain, bench, weight=0.0, retriever="bm25").frame["doc_id"].equals(plain.frame["doc_id"])
    True
    """
    of_turns(run, "multi_hop")
    at_least(1, hops=hops)
    at_least(0, weight=weight)
    asked, lists, fused = bench.queries.select("query_id", "text"), [], run
    read = run.frame
    for _ in range(hops):
        turns = _texts(read, bench)
        follow = _built(turns, bench, asked) if service is None else _written(turns, service, asked)
        if not follow.height:
            break
        lists.append(ask(bench, follow, retriever=retriever, k=depth(run)))
        asked = pl.concat([asked, follow])
        fused = joined(run, bench, pl.concat(lists), weight=weight, k=depth(run))
        # Only what was asked for again is read again.
        read = fused.frame.join(follow, on="query_id", how="semi", maintain_order="left")
    return fused


def _texts(ranked: pl.DataFrame, bench: Bench) -> pl.DataFrame:
    """Give the first turns of each question: ``query_id``, ``rank``, ``text``."""
    first, documents = ranked.filter(pl.col("rank") <= READS), bench.documents("turn")
    texts = [documents.texts[at] for at in documents.at(first["doc_id"])]
    return first.select("query_id", "rank", text=pl.Series(texts, dtype=pl.String))


def mentions(turns: pl.DataFrame, bench: Bench, asked: pl.DataFrame) -> pl.DataFrame:
    """List what the first turns of each question mention and the question does not.

    A word is worth its inverse document frequency in the scope, summed over the turns that hold it, each divided by
    its rank; half as much again for a name, told by its capital. Words of one turn alone lead nowhere and are left out.

    :param turns: ``query_id``, ``rank``, ``text``.
    :param asked: ``query_id`` and ``text``: what was asked already, the questions themselves among it.
    :returns: ``query_id``, ``mention``, ``worth``; best first.
    """
    said = _words(bench.asked(turns, "scope"), bench.language)
    before = _words(asked, bench.language).select("query_id", "word")
    once = ["query_id", "scope", "word"]
    new = (
        said.join(before, on=["query_id", "word"], how="anti", maintain_order="left")
        .group_by(*once, "rank", maintain_order=True)
        .agg(pl.col("written").first(), pl.col("name").any())
        .group_by(once, maintain_order=True)
        .agg(pl.col("written").first(), pl.col("name").any(), near=(1 / pl.col("rank")).sum())
    )
    documents, rarity = bench.documents("turn"), list[float]()
    for scope, word in new.select("scope", "word").iter_rows():
        words = documents.words_in(slice(*documents.spans[scope]))
        number = words.number.get(word)
        rarity.append(0.0 if number is None or words.frequency[number] < 2 else float(words.rarity[number]))
    worth = pl.Series(rarity, dtype=pl.Float64) * pl.col("near") * pl.when("name").then(NAME).otherwise(1.0)
    valued = new.with_columns(worth=worth).filter(pl.col("worth") > 0)
    best = valued.sort(pl.col("query_id").rle_id(), "worth", descending=[False, True], maintain_order=True)
    return best.select("query_id", "worth", mention="written").group_by("query_id", maintain_order=True).head(MENTIONS)


def _words(texts: pl.DataFrame, language: str) -> pl.DataFrame:
    """Split texts into words: as ``written``, the ``word`` of BM25, whether a ``name``; stop words are left out."""
    names = pl.col("text").str.extract_all(_NAMES).list.eval(pl.element().str.extract(f"({_WORD})$"))
    words = (
        texts.with_columns(names=names, written=pl.col("text").str.extract_all(_WORD))
        .explode("written")
        .drop_nulls("written")
        .with_columns(pl.col("written").str.replace("['’]s?$", ""), name=pl.col("written").is_in("names"))
        # Contractions, which no list of stop words has whole.
        .filter(~pl.col("written").str.contains("['’]"))
        .drop("names", "text")
    )
    distinct = words["written"].unique(maintain_order=True)
    split = pl.Series("word", tokenize(distinct.to_list(), language=language), dtype=pl.List(pl.String))
    return words.join(pl.DataFrame([distinct, split.list.first()]).drop_nulls(), on="written", maintain_order="left")


def _built(turns: pl.DataFrame, bench: Bench, asked: pl.DataFrame) -> pl.DataFrame:
    """Put what the first turns mention behind each question."""
    by_query = mentions(turns, bench, asked).group_by("query_id", maintain_order=True)
    listed = by_query.agg(pl.col("mention").str.join(" "))
    return bench.asked(listed, "text").select("query_id", text=pl.concat_str("text", "mention", separator=" "))


def _written(turns: pl.DataFrame, service: str, asked: pl.DataFrame) -> pl.DataFrame:
    """Let a language model read the first turns and write each follow-up, or none where nothing is missing."""
    read = turns.group_by("query_id", maintain_order=True).agg(turns="text")
    past = asked.group_by("query_id").agg(question=pl.first("text"), searched=pl.col("text").slice(1))
    shown = read.join(past, on="query_id", how="left", maintain_order="left")
    questions = shown.select("question", "searched", "turns")
    values = written(questions, service, task="hop", shape=Hop, system=_TASK, what="follow-ups")
    text = pl.Series("text", ["" if value is None else value.query.strip() for value in values], dtype=pl.String)
    return shown.select("query_id", text).filter(pl.col("text") != "")
