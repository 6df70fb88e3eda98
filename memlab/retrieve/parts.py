"""The parts of a question: what it lists, joins or compares, read from its words where no model splits it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import groupby, takewhile

import polars as pl

from memlab.text.words import ARTICLES, AUXILIARIES, DEMONSTRATIVES, POSSESSIVES, QUESTION_WORDS, wordset

_TOKEN = re.compile(
    r"(?P<word>(?<!\w)(?:'.+?'|\".+?\"|“.+?”|‘.+?’)(?!\w))"
    r"|(?P<and>\b(?:and|or|nor|versus|vs\.?|compared (?:to|with)|instead of|as well as)\b|&)|(?P<comma>,)"
    r"|(?P<name>\d?[A-Z][\w'’$%.&-]*\w|[A-Z])|(?P<noun>[\w$#][\w'’$%.&-]*[\w%]|[\w$])|(?P<mark>\S)"
)
_Tokens = list[re.Match[str]]
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


def question_parts(queries: pl.DataFrame) -> pl.DataFrame:
    """Ask once for each thing that a question compares, lists or joins, by rules over its words.

    A list or a pair ("gifts for my coworker and brother", "the bike or the car", "between X and Y", several questions)
    gives one question for each member.

    :param queries: ``query_id`` and ``text``.
    :returns: ``query_id`` and ``text``, in the order of the questions; one that asks for one thing has no rows.

    >>> import polars as pl
    >>> from memlab.retrieve.parts import question_parts
    >>> asked = pl.DataFrame({"query_id": ["q"], "text": ["What do Ann and Bob both like?"]})
    >>> question_parts(asked)["text"].to_list()
    ['What do Ann like', 'What do Bob like']
    """
    asked = [" ".join(text.split()) for text in queries["text"]]
    found = [[part for part in dict.fromkeys(_parts(text)) if part != text] for text in asked]
    texts = pl.Series("text", found, dtype=pl.List(pl.String))
    return queries.select("query_id", texts).explode("text").drop_nulls("text")


def _parts(asked: str) -> list[str]:
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
    return [part for run in _runs(asked) for part in _coordinated(asked, run)]


def _runs(asked: str) -> Iterator[_Tokens]:
    """Find the stretches that no boundary word breaks."""
    tokens = _TOKEN.finditer(asked)
    ends = groupby(tokens, lambda token: token.lastgroup == "mark" or token.group().lower() in _BOUNDARIES)
    return (list(run) for ends_run, run in ends if not ends_run)


def _coordinated(asked: str, run: _Tokens) -> list[str]:
    """Ask once for each member of "a, b and c": the text with that member in place of the list."""
    listed = groupby(run, lambda token: token.lastgroup in ("and", "comma"))
    members = [list(tokens) for joins, tokens in listed if not joins]
    if len(members) < 2 or not any(token.lastgroup == "and" for token in run):
        return []
    first, last = members[0], members[-1]
    if first[-1].lastgroup == last[0].lastgroup == "name":
        begin, last = len(first) - len(list(takewhile(_is_name, reversed(first)))), list(takewhile(_is_name, last))
    else:
        # "sold the ring and the vanity" lists from its article on, "choose the sofa and decor" behind it.
        articles = [i for i, token in enumerate(first) if token.group().lower() in _DETERMINERS]
        both = last[0].group().lower() in _DETERMINERS
        begin = articles[-1] + (not both) if articles else len(first) - 1
    begin = min(begin, len(first) - 1)
    before, after = asked[: first[begin].start()], asked[last[-1].end() :]
    spans = [(first[begin].start(), first[-1].end()), *((m[0].start(), m[-1].end()) for m in members[1:-1])]
    spans.append((last[0].start(), last[-1].end()))
    return [" ".join(_GATHERING.sub("", f"{before}{asked[start:end]}{after}").split()) for start, end in spans]


def _is_name(token: re.Match[str]) -> bool:
    return token.lastgroup == "name"
