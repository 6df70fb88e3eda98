"""Decomposition: a question that takes several evidence items is asked part by part, split by rules or by a model."""

from __future__ import annotations

import re
from itertools import groupby, takewhile

import polars as pl
from pydantic import BaseModel

from memlab.errors import at_least
from memlab.records import Run
from memlab.registry import stage
from memlab.retrieve.bench import Bench
from memlab.retrieve.ranking import require_turn_run, run_depth
from memlab.retrieve.subqueries import fuse_hits, search_subqueries, write_queries
from memlab.text.analysis import english_rules_apply
from memlab.text.questions import aggregation
from memlab.text.words import ARTICLES, AUXILIARIES, DEMONSTRATIVES, POSSESSIVES, QUESTION_WORDS, wordset

WINDOWS, TURNS, MOST = 8, 5, 8
"""Stretches of equally many sessions that the time of each scope is cut into, turns that a part of a question may
bring, and parts that a language model may give: more are not parts of one question."""

TASK = (
    "A question is asked of a long conversation. If its answer needs several things to be looked up, such as each of "
    "two people, each item of a list or both sides of a comparison, write one short question for each of them. If one "
    "look-up is enough, write none."
)

_TOKEN = re.compile(
    r"(?P<word>(?<!\w)(?:'.+?'|\".+?\"|“.+?”|‘.+?’)(?!\w))"
    r"|(?P<and>\b(?:and|or|nor|versus|vs\.?|compared (?:to|with)|instead of|as well as)\b|&)|(?P<comma>,)"
    r"|(?P<name>\d?[A-Z][\w'’$%.&-]*\w|[A-Z])|(?P<noun>[\w$#][\w'’$%.&-]*[\w%]|[\w$])|(?P<mark>\S)"
)
_DETERMINERS = ARTICLES | POSSESSIVES | {"some", "any"}
# What no list of nouns, names or verbs goes across.
_BOUNDARIES = (AUXILIARIES | QUESTION_WORDS | DEMONSTRATIVES).union(
    wordset("i you he she it we they there not per both each many much all together combined total"),
    wordset("of in on at for from to with by about since until during after before into over under between among"),
    wordset("through around out up as if first second third last"),
)
_GATHERING = re.compile(r"\s*\b(?:both|in common|together|combined|in total)\b", re.I)
_BETWEEN = re.compile(r"^(.*\bbetween) (.+?),? and (.+)$", re.I)
_CHOICE = re.compile(r"^(.*\b(?:what|which|who|where|when|how)\b[^,:]*)(?:: *(.+)|, *([^,]+? or [^,]+))$", re.I)
_LISTED = re.compile(r",\s*(?:and|or)\s+|[,;]\s*|\s+or\s+")


class Split(BaseModel, extra="forbid"):
    """What a language model answers."""

    questions: list[str]


@stage
def decompose(
    run: Run, bench: Bench, *, retriever: str = "hybrid", weight: float = 0.5, service: str | None = None
) -> Run:
    """Search for the parts of a question and fuse the results with the run.

    A question that joins, compares or lists several things is asked once for each (:func:`split_by_rules`), so that
    one of them cannot fill the first places alone. An aggregation also brings the best turn of each of eight stretches
    of the scope's time. A turn that several parts find gains from each. Every other question keeps its ranking.

    :param retriever: what answers the parts: ``dense``, ``bm25``, ``late``, ``hybrid`` or ``combsum``.
    :param weight: of all parts together and of all stretches together, against 1 for the run.
    :param service: a language model that splits the questions, see :func:`memlab.llm.ask`; ``None`` for the rules.
    :raises DataError: for a ranking of sessions, an unknown retriever, or a negative weight.
    :raises ModelError: when no such service is set.

    Source: Perez, Lewis, Yih, Cho and Kiela, Unsupervised Question Decomposition (EMNLP 2020), for the parts;
    Santos, Macdonald and Ounis, Exploiting Query Reformulations for Web Search Result Diversification (WWW 2010), for
    fusing what they find.

    >>> from memlab import retrieve, sample
    >>> from memlab.retrieve.decompose import decompose
    >>> bench = retrieve.Bench.of(sample(turns=60), encoder="hashing")
    >>> plain = retrieve.hybrid(bench)
    >>> decompose(plain, bench, weight=0.0).frame["doc_id"].equals(plain.frame["doc_id"])
    True
    """
    require_turn_run(run, "decompose")
    at_least(0, weight=weight)
    asked = bench.queries.join(run.frame, on="query_id", how="semi")
    facets = search_subqueries(bench, split_questions(asked, bench, service), retriever=retriever, k=TURNS)
    both = [
        facets.with_columns(lists=pl.col("part").n_unique().over("query_id")),
        _best_turn_per_window(run, bench, asked),
    ]
    columns = ["query_id", "doc_id", "rank", "score", pl.col("lists").cast(pl.Int64)]
    hits = pl.concat(each.select(columns).with_columns(weight=weight / pl.col("lists")) for each in both)
    return fuse_hits(run, bench, hits, weight=pl.col("weight"), k=run_depth(run))


def split_questions(queries: pl.DataFrame, bench: Bench, service: str | None = None) -> pl.DataFrame:
    """Split questions by rules, or let a language model split them: ``query_id``, ``text``.

    A question that asks for one thing has no rows, nor has one that the model gives no answer to.
    """
    if not service:
        return split_by_rules(
            queries if english_rules_apply(bench.language, "the splitting of questions") else queries.clear()
        )
    questions = queries.select(question="text")
    values = write_queries(questions, service, task="decompose", shape=Split, system=TASK, what="decompositions")
    split = [[] if value is None else value.questions[:MOST] for value in values]
    texts = pl.Series("text", split, dtype=pl.List(pl.String))
    return queries.select("query_id", texts).explode("text").filter(pl.col("text") != "")


def _best_turn_per_window(run: Run, bench: Bench, asked: pl.DataFrame) -> pl.DataFrame:
    """Take the run's best turn of each stretch of time, as first of a list of its own, where a question aggregates.

    :returns: a run's columns and ``lists``, how many the question has.
    """
    wanted = asked.filter(aggregation() if bench.language == "en" else pl.lit(False)).select("query_id", "scope")
    sessions, turns = bench.documents("session"), bench.documents("turn")
    spans = [(scope, first, end - first) for scope, (first, end) in sessions.spans.items()]
    scopes = pl.DataFrame(spans, schema={"scope": pl.String, "first": pl.Int64, "n": pl.Int64}, orient="row")
    session = pl.Series("session", turns.session[turns.at(run.frame["doc_id"])], dtype=pl.Int64)
    listed = run.frame.with_columns(session).join(wanted, on="query_id", maintain_order="left")
    stretch = (pl.col("session") - pl.col("first")) * pl.min_horizontal("n", pl.lit(WINDOWS)) // pl.col("n")
    placed = listed.join(scopes, on="scope", maintain_order="left").with_columns(window=stretch)
    first = placed.unique(["query_id", "window"], keep="first", maintain_order=True)
    return first.with_columns(rank=pl.lit(1, pl.Int32), lists=pl.len().over("query_id"))


def split_by_rules(queries: pl.DataFrame) -> pl.DataFrame:
    """Ask once for each thing that a question compares, lists or joins, by rules over its words.

    A list or a pair ("gifts for my coworker and brother", "the bike or the car", "between X and Y", several questions)
    gives one question for each member.

    :param queries: ``query_id`` and ``text``.
    :returns: ``query_id`` and ``text``, in the order of the questions; one that asks for one thing has no rows.

    >>> import polars as pl
    >>> from memlab.retrieve.decompose import split_by_rules
    >>> asked = pl.DataFrame({"query_id": ["q"], "text": ["What do Ann and Bob both like?"]})
    >>> split_by_rules(asked)["text"].to_list()
    ['What do Ann like', 'What do Bob like']
    """
    asked = [" ".join(text.split()) for text in queries["text"]]
    found = [[part for part in dict.fromkeys(_split_question(text)) if part != text] for text in asked]
    texts = pl.Series("text", found, dtype=pl.List(pl.String))
    return queries.select("query_id", texts).explode("text").drop_nulls("text")


def _split_question(asked: str) -> list[str]:
    """Split a question into the questions, sides or choices that it names, else into its coordinations."""
    questions = [question for found in re.findall(r"[^?]*\?", asked) if (question := found.strip(" ?"))]
    if len(questions) > 1:
        return questions
    asked = (questions or [asked])[0].rstrip("!. ")
    sides = _BETWEEN.match(asked)
    if sides and not (sides[2].split()[-1][0].isupper() and sides[3][0].isupper()):
        return [f"{sides[1]} {side}" for side in (sides[2], sides[3])]
    if choice := _CHOICE.match(asked):
        items = [item for item in _LISTED.split(choice[2] or choice[3]) if item]
        if len(items) > 1:
            return [f"{choice[1]} {item}" for item in items]
    # Between boundary words, each list is one of its own.
    tokens = _TOKEN.finditer(asked)
    ends = groupby(tokens, lambda token: token.lastgroup == "mark" or token.group().lower() in _BOUNDARIES)
    return [part for ends_list, run in ends if not ends_list for part in _split_coordination(asked, list(run))]


def _split_coordination(asked: str, run: list[re.Match[str]]) -> list[str]:
    """Ask once for each member of "a, b and c": the text with that member in place of the list."""
    listed = groupby(run, lambda token: token.lastgroup in ("and", "comma"))
    members = [list(tokens) for joins, tokens in listed if not joins]
    if len(members) < 2 or not any(token.lastgroup == "and" for token in run):
        return []
    first, last = members[0], members[-1]
    if first[-1].lastgroup == last[0].lastgroup == "name":
        names = [list(takewhile(lambda token: token.lastgroup == "name", each)) for each in (reversed(first), last)]
        begin, last = len(first) - len(names[0]), names[1]
    else:
        # "sold the ring and the vanity" lists from its article on, "choose the sofa and decor" behind it.
        articles = [i for i, token in enumerate(first) if token.group().lower() in _DETERMINERS]
        both = last[0].group().lower() in _DETERMINERS
        begin = articles[-1] + (not both) if articles else len(first) - 1
    begin = min(begin, len(first) - 1)
    before, after = asked[: first[begin].start()], asked[last[-1].end() :]
    spans = [(each[0].start(), each[-1].end()) for each in (first[begin:], *members[1:-1], last)]
    return [" ".join(_GATHERING.sub("", f"{before}{asked[start:end]}{after}").split()) for start, end in spans]
