"""The parts of a question, read from its words alone: what it lists, joins or compares, and its phrases."""

from __future__ import annotations

import re
from collections.abc import Iterator

import polars as pl

from memlab.retrieve.bm25 import tokenize

_PLURAL = r"(?:[a-z'’-]+ ){0,3}[a-z]*[a-hj-rtv-z]s"
_AGGREGATION = (
    r"\bhow (?:many|much|often)\b|\b(?:in total|total|altogether|combined|all|each|every|different|various|both"
    r"|in common|average|sum|number of|order of|earliest to latest|in the order)\b|^(?:list|name|enumerate)\b"
    rf"|\b(?:what|which) (?:{_PLURAL} (?:has|have|had|are|were|do|does|did|would|can|could)|[a-z ]*kinds|types|sorts)\b"
    r"|\b(?:what|which|who) (?:are|were) (?:the |some )?(?:two|three|four|five|six|seven|eight|nine|ten|some)\b"
)
_UNITS = "(?:days|weeks|months|years)"
# However much there is to count, one or two dates answer these.
_SPAN = rf"\bhow (?:long|old)\b|\bhow many {_UNITS} (?:ago|passed|ha(?:ve|d|s) passed|older|younger)\b"

_QUOTED = r"(?<!\w)(?:'.+?'|\".+?\"|“.+?”|‘.+?’)(?!\w)"
_TOKEN = re.compile(
    rf"(?P<word>{_QUOTED})|(?P<and>\b(?:and|or|nor|versus|vs\.?|compared (?:to|with)|instead of|as well as)\b|&)"
    r"|(?P<comma>,)|(?P<name>\d?[A-Z][\w'’$%.&-]*\w|[A-Z])|(?P<noun>[\w$#][\w'’$%.&-]*[\w%]|[\w$])|(?P<mark>\S)"
)
_DETERMINER = re.compile(r"an?|the|my|your|his|her|its|our|their|some|any", re.I)
_AUXILIARIES = (
    r"am|is|are|was|were|be|been|being|do|does|did|have|has|had|can|could|will|would|shall|should|may|might|must"
)
_AUXILIARY = re.compile(_AUXILIARIES, re.I)
# What no list of nouns, names or verbs goes across.
_BOUNDARY = re.compile(
    rf"{_AUXILIARIES}|who|whom|whose|what|which|when|where|why|how|i|you|he|she|it|we|they|that|this|these|those|there"
    r"|of|in|on|at|for|from|to|with|by|about|since|until|during|after|before|into|over|under|between|among|through"
    r"|around|out|up|as|if|not|per|both|each|many|much|all|together|combined|total|first|second|third|last",
    re.I,
)
_GATHERING = re.compile(r"\s*\b(?:both|in common|together|combined|in total)\b", re.I)
_BETWEEN = re.compile(r"^(.*\bbetween) (.+?),? and (.+)$", re.I)
_CHOICE = re.compile(r"^(.*\b(?:what|which|who|where|when|how)\b[^,:]*)(?:: *(.+)|, *([^,]+? or [^,]+))$", re.I)
_LISTED = re.compile(r",\s*(?:and|or)\s+|[,;]\s*|\s+or\s+")

_SCHEMA = {"query_id": pl.String, "part": pl.UInt32, "text": pl.String, "kind": pl.String}


def is_aggregation(text: str | pl.Expr = "text") -> pl.Expr:
    """Tell whether questions ask for something counted, summed, listed or shared, as an expression over their texts.

    :param text: name of the column, or an expression.

    >>> import polars as pl
    >>> from memlab.retrieve.facets import is_aggregation
    >>> asked = pl.DataFrame({"text": ["How many doctors did I see?", "Where do I live?", "Which cities have I seen?"]})
    >>> asked.select(is_aggregation())["aggregation"].to_list()
    [True, False, True]
    """
    expr = (pl.col(text) if isinstance(text, str) else text).str.to_lowercase().str.strip_chars()
    return (expr.str.contains(_AGGREGATION) & ~expr.str.contains(_SPAN)).alias("aggregation")


def question_parts(queries: pl.DataFrame) -> pl.DataFrame:
    """Split questions by rules over their words: into what they compare, list or join, and into their phrases.

    A list or a pair ("gifts for my coworker and brother", "the bike or the car", "between X and Y", several quoted
    titles, several questions) gives one question for each member: kind ``name`` where all members are names, else
    ``facet``. Runs of words between prepositions, verbs of no content and articles are of kind ``phrase``.

    :param queries: ``query_id`` and ``text``.
    :returns: ``query_id``, ``part`` (0 for the question itself), ``text``, ``kind``: ``question``, ``name``, ``facet``
        or ``phrase``.

    >>> import polars as pl
    >>> from memlab.retrieve.facets import question_parts
    >>> asked = pl.DataFrame({"query_id": ["q"], "text": ["What do Ann and Bob both like?"]})
    >>> question_parts(asked)["text"].to_list()
    ['What do Ann and Bob both like?', 'What do Ann like', 'What do Bob like', 'Ann', 'Bob', 'like']
    """
    rows = [
        (query, part, text, kind)
        for query, asked in queries.select("query_id", "text").iter_rows()
        for part, (text, kind) in enumerate(_parts(asked).items())
    ]
    return pl.DataFrame(rows, schema=_SCHEMA, orient="row")


def _parts(asked: str) -> dict[str, str]:
    """Give the parts of a question and what each is; what is there twice stays what it was first."""
    clean = " ".join(asked.split())
    found = [(asked, "question"), *_facets(clean), *_phrases(clean)]
    kinds: dict[str, str] = {}
    for text, kind in found:
        kinds.setdefault(text, kind)
    return kinds


def _facets(asked: str) -> list[tuple[str, str]]:
    """Split a question into the questions, titles, sides or choices that it names, else into its coordinations."""
    questions = [question.strip(" ?") for question in re.findall(r"[^?]*\?", asked)]
    if len(questions) > 1:
        return [(question, "facet") for question in questions]
    asked = (questions or [asked])[0].rstrip("!. ")
    quoted = list(re.finditer(_QUOTED, asked))
    if len(quoted) > 1:
        before, after = asked[: quoted[0].start()], asked[quoted[-1].end() :]
        return [(_sentence(before, title.group(), after), "facet") for title in quoted]
    sides = _BETWEEN.match(asked)
    if sides and not (sides[2].split()[-1][0].isupper() and sides[3][0].isupper()):
        return [(_sentence(sides[1], side), "facet") for side in (sides[2], sides[3])]
    if choice := _CHOICE.match(asked):
        items = [item for item in _LISTED.split(choice[2] or choice[3]) if item]
        if len(items) > 1:
            return [(_sentence(choice[1], item), "facet") for item in items]
    return [part for run, after in _runs(asked) for part in _coordinated(asked, run, after)]


def _runs(asked: str) -> Iterator[tuple[list[re.Match[str]], str]]:
    """Find the stretches that no boundary word breaks, each with the word that ends it."""
    run: list[re.Match[str]] = []
    for token in _TOKEN.finditer(asked):
        if token.lastgroup == "mark" or _BOUNDARY.fullmatch(token.group()):
            yield run, token.group()
            run = []
        else:
            run.append(token)
    yield run, ""


def _coordinated(asked: str, run: list[re.Match[str]], after: str) -> list[tuple[str, str]]:
    """Ask once for each member of "a, b and c": the text with that member in place of the list."""
    members: list[list[re.Match[str]]] = [[]]
    for token in run:
        if token.lastgroup in ("and", "comma"):
            members.append([])
        else:
            members[-1].append(token)
    members = [member for member in members if member]
    if len(members) < 2 or not any(token.lastgroup == "and" for token in run):
        return []
    members[0], members[-1], named = _trimmed(members[0], members[-1])
    first, last = members[0][0].start(), members[-1][-1].end()
    # "did Mel and her kids make": the verb behind the last member belongs to every one of them.
    opens = asked[:first].split()[-1:]
    shares = opens and _AUXILIARY.fullmatch(opens[0]) and not _AUXILIARY.fullmatch(after) and not named
    verb = members[-1][-1].group() if shares and len(members[-1]) > 1 else ""
    owner = (re.search("['’]s$", members[-1][-1].group()) or [""])[0] if named else ""
    kind = "name" if all(token.lastgroup == "name" for member in members for token in member) else "facet"
    found = []
    for member in members:
        words = asked[member[0].start() : member[-1].end()]
        ending = "" if member is members[-1] else verb
        owned = words if words.endswith(owner) else words + owner
        found.append((_GATHERING.sub("", _sentence(asked[:first], owned, ending, asked[last:])), kind))
    return found


def _trimmed(
    first: list[re.Match[str]], last: list[re.Match[str]]
) -> tuple[list[re.Match[str]], list[re.Match[str]], bool]:
    """Find where the first member of a list begins, and whether names are listed: then also where the last ends."""
    if first[-1].lastgroup == last[0].lastgroup == "name":
        begin = next((i for i in range(len(first), 0, -1) if first[i - 1].lastgroup != "name"), 0)
        end = next((i for i, token in enumerate(last) if token.lastgroup != "name"), len(last))
        return first[begin:], last[:end], True
    articles = [i for i, token in enumerate(first) if _DETERMINER.fullmatch(token.group())]
    alike = bool(_DETERMINER.fullmatch(last[0].group()))
    # "sold the ring and the vanity" lists from its article on, "choose the sofa and decor" behind it.
    begin = len(first) - 1 if not articles else articles[-1] + (not alike)
    return first[min(begin, len(first) - 1) :], last, False


def _sentence(*pieces: str) -> str:
    return re.sub(r" (?=[,;])", "", " ".join(" ".join(pieces).split()))


def _phrases(asked: str) -> list[tuple[str, str]]:
    """Find the runs of words that say something, such as "model kits"."""
    phrases: list[list[str]] = [[]]
    for run, _ in _runs(asked):
        phrases.append([])
        for token in run:
            if token.lastgroup in ("and", "comma") or _DETERMINER.fullmatch(token.group()):
                phrases.append([])
            else:
                phrases[-1].append(token.group())
    texts = [" ".join(words) for words in phrases if words]
    return [(text, "phrase") for text, tokens in zip(texts, tokenize(texts), strict=True) if tokens] if texts else []
