"""Questions that ask for several things, split into one question for each, by rules over their words."""

from __future__ import annotations

import re
from itertools import groupby, takewhile

from memlab.text.words import ARTICLES, AUXILIARIES, DEMONSTRATIVES, POSSESSIVES, QUESTION_WORDS, wordset

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


def split_question(text: str) -> list[str]:
    """Ask once for each thing that a question compares, lists or joins; one that asks for one thing gives none.

    A list or a pair ("gifts for my coworker and brother", "the bike or the car", "between X and Y", several questions)
    gives one question for each member.

    >>> from memlab.text.coordination import split_question
    >>> split_question("What do Ann and Bob both like?")
    ['What do Ann like', 'What do Bob like']
    """
    text = " ".join(text.split())
    return [part for part in dict.fromkeys(_split_at_structure(text)) if part != text]


def _split_at_structure(asked: str) -> list[str]:
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
