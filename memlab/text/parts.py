"""The parts of a question: what it lists, joins or compares, read from its words alone."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import groupby, takewhile

import polars as pl

from memlab.text.words import ARTICLES, AUXILIARIES, DEMONSTRATIVES, POSSESSIVES, QUESTION_WORDS, lists, wordset

_QUOTED = r"(?<!\w)(?:'.+?'|\".+?\"|“.+?”|‘.+?’)(?!\w)"
_TOKEN = re.compile(
    rf"(?P<word>{_QUOTED})|(?P<and>\b(?:and|or|nor|versus|vs\.?|compared (?:to|with)|instead of|as well as)\b|&)"
    r"|(?P<comma>,)|(?P<name>\d?[A-Z][\w'’$%.&-]*\w|[A-Z])|(?P<noun>[\w$#][\w'’$%.&-]*[\w%]|[\w$])|(?P<mark>\S)"
)
_Tokens = list[re.Match[str]]
_DETERMINERS = ARTICLES | POSSESSIVES | {"some", "any"}
# What no list of nouns, names or verbs goes across.
_BOUNDARIES = AUXILIARIES | QUESTION_WORDS | DEMONSTRATIVES | wordset(lists()["boundaries"])
_GATHERING = re.compile(r"\s*\b(?:both|in common|together|combined|in total)\b", re.I)
_BETWEEN = re.compile(r"^(.*\bbetween) (.+?),? and (.+)$", re.I)
_CHOICE = re.compile(r"^(.*\b(?:what|which|who|where|when|how)\b[^,:]*)(?:: *(.+)|, *([^,]+? or [^,]+))$", re.I)
_LISTED = re.compile(r",\s*(?:and|or)\s+|[,;]\s*|\s+or\s+")


def question_parts(queries: pl.DataFrame) -> pl.DataFrame:
    """Ask once for each thing that a question compares, lists or joins, by rules over its words.

    A list or a pair ("gifts for my coworker and brother", "the bike or the car", "between X and Y", several quoted
    titles, several questions) gives one question for each member.

    :param queries: ``query_id`` and ``text``.
    :returns: ``query_id`` and ``text``, in the order of the questions; one that asks for one thing has no rows.

    >>> import polars as pl
    >>> from memlab.text.parts import question_parts
    >>> asked = pl.DataFrame({"query_id": ["q"], "text": ["What do Ann and Bob both like?"]})
    >>> question_parts(asked)["text"].to_list()
    ['What do Ann like', 'What do Bob like']
    """
    asked = [" ".join(text.split()) for text in queries["text"]]
    found = [[part for part in dict.fromkeys(_parts(text)) if part != text] for text in asked]
    texts = pl.Series("text", found, dtype=pl.List(pl.String))
    return queries.select("query_id", texts).explode("text").drop_nulls("text")


def _parts(asked: str) -> list[str]:
    """Split a question into the questions, titles, sides or choices that it names, else into its coordinations."""
    questions = [question for found in re.findall(r"[^?]*\?", asked) if (question := found.strip(" ?"))]
    if len(questions) > 1:
        return questions
    asked = (questions or [asked])[0].rstrip("!. ")
    quoted = list(re.finditer(_QUOTED, asked))
    if len(quoted) > 1:
        before, after = asked[: quoted[0].start()], asked[quoted[-1].end() :]
        return [_sentence(before, title.group(), after) for title in quoted]
    sides = _BETWEEN.match(asked)
    if sides and not (sides[2].split()[-1][0].isupper() and sides[3][0].isupper()):
        return [_sentence(sides[1], side) for side in (sides[2], sides[3])]
    if choice := _CHOICE.match(asked):
        items = [item for item in _LISTED.split(choice[2] or choice[3]) if item]
        if len(items) > 1:
            return [_sentence(choice[1], item) for item in items]
    return [part for run, after in _runs(asked) for part in _coordinated(asked, run, after)]


def _runs(asked: str) -> Iterator[tuple[_Tokens, str]]:
    """Find the stretches that no boundary word breaks, each with the word that ends it."""
    run = _Tokens()
    for token in _TOKEN.finditer(asked):
        if token.lastgroup == "mark" or token.group().lower() in _BOUNDARIES:
            yield run, token.group()
            run = []
        else:
            run.append(token)
    yield run, ""


def _coordinated(asked: str, run: _Tokens, after: str) -> list[str]:
    """Ask once for each member of "a, b and c": the text with that member in place of the list."""
    listed = groupby(run, lambda token: token.lastgroup in ("and", "comma"))
    members = [list(tokens) for joins, tokens in listed if not joins]
    if len(members) < 2 or not any(token.lastgroup == "and" for token in run):
        return []
    members[0], members[-1], named = _trimmed(members[0], members[-1])
    first, last = members[0][0].start(), members[-1][-1].end()
    # "did Mel and her kids make": the verb behind the last member belongs to every one of them.
    opens = asked[:first].split()[-1:]
    shares = opens and opens[0].lower() in AUXILIARIES and after.lower() not in AUXILIARIES and not named
    verb = members[-1][-1].group() if shares and len(members[-1]) > 1 else ""
    owner = (re.search("['’]s$", members[-1][-1].group()) or [""])[0] if named else ""
    parts = []
    for member in members:
        words = asked[member[0].start() : member[-1].end()]
        ending = "" if member is members[-1] else verb
        owned = words if words.endswith(owner) else words + owner
        parts.append(_GATHERING.sub("", _sentence(asked[:first], owned, ending, asked[last:])))
    return parts


def _trimmed(first: _Tokens, last: _Tokens) -> tuple[_Tokens, _Tokens, bool]:
    """Find where the first member of a list begins, and whether names are listed: then also where the last ends."""
    if first[-1].lastgroup == last[0].lastgroup == "name":
        ends = list(takewhile(_is_name, reversed(first)))
        return ends[::-1], list(takewhile(_is_name, last)), True
    articles = [i for i, token in enumerate(first) if token.group().lower() in _DETERMINERS]
    similar = last[0].group().lower() in _DETERMINERS
    # "sold the ring and the vanity" lists from its article on, "choose the sofa and decor" behind it.
    begin = len(first) - 1 if not articles else articles[-1] + (not similar)
    return first[min(begin, len(first) - 1) :], last, False


def _is_name(token: re.Match[str]) -> bool:
    return token.lastgroup == "name"


def _sentence(*pieces: str) -> str:
    return re.sub(r" (?=[,;])", "", " ".join(" ".join(pieces).split()))
