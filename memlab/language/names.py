"""Names in sentences, by capitals and by the words around them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from memlab.language.gazetteers import is_common
from memlab.language.people import PERSONS, PETS
from memlab.language.statements import table, wordlist
from memlab.language.words import MONTHS, WEEKDAYS, wordset

POINTERS = wordlist("pointers")
"""Words that point elsewhere: no name, and nothing that a statement could be about."""

_TOKEN = re.compile(r"[^\W_][\w'’.&+-]*[^\W_]|[^\W_]")
_QUOTE = re.compile(r"[\"“]([A-Z0-9][^\"”“]{1,70}?)[.,!]?[\"”]|(?<![\w'])['‘]([A-Z][^'’]{2,50})['’](?!\w)")
_TITLES = wordlist("person_titles")
_INNER = {"of", "the", "de", "la", "del", "van", "von", "&", "and"}
# Written with a capital, and no names.
_NEVER = frozenset((*MONTHS, *WEEKDAYS, *(f"{day}s" for day in WEEKDAYS))) | wordlist("never_names")
_SUFFIX = {word: kind for kind, words in table("name_endings").items() for word in words.split()}
# Words that open a sentence before a name.
_LEADS = POINTERS | wordset("the a an my our and but in on at for with from if is was are do did have has let i we")
_HOLIDAYS = {"christmas", "halloween", "thanksgiving", "easter", "hanukkah", "diwali", "ramadan", "eid", "xmas"}
# Longer words in capitals are shouted.
_ACRONYM = 2
_PET = "|".join(sorted(PETS))
_ROLE = "|".join(map(re.escape, sorted(PERSONS)))


def _cues(
    *cues: tuple[str, int, str], end: str = "", flags: int = re.I
) -> tuple[tuple[str, int, re.Pattern[str]], ...]:
    return tuple((kind, weight, re.compile(cue + end, flags)) for kind, weight, cue in cues)


_BEFORE = _cues(
    ("organization", 3, r"\bwork(?:s|ed|ing)? (?:at|for) (?:the )?"),
    ("organization", 3, r"\b(?:job|internship|interview(?:ed)?|stud(?:y|ied|ying)|student) (?:at|by|with) (?:the )?"),
    ("organization", 3, r"\b(?:teach(?:es|ing)?|start(?:s|ed|ing)?|begin|began|nurse|teacher) (?:\w+ )?at (?:the )?"),
    ("organization", 3, r"\b(?:employed|hired|enrolled|sponsored) (?:at|by|in) (?:the )?"),
    ("organization", 3, r"\b(?:offer|sponsorship|deal|contract) (?:from|with) (?:the )?"),
    ("place", 3, r"\b(?:mov(?:e|ed|ing)|went|go(?:ing|es)?|trip|travel(?:l?ed|l?ing|s)?|fl(?:y|ew|ying)|drove|been|off|"
                 r"back|tour|head(?:ed|ing)?|vacation|visit) (?:(?:back|over|up|down|out) )?(?:to|in|from|of|around) "
                 r"(?:the )?"),
    ("place", 3, r"\b(?:visit(?:ed|ing|s)?|explor(?:e|ed|ing)|liv(?:e|es|ed|ing) in|born in|grew up in|based in|"
                 r"country,|(?:city|country|state) of) (?:the )?"),
    ("place", 2, r"\b(?:in|near|across|outside|around|throughout) (?:the )?"),
    ("place", 1, r"\b(?:from|to|at) (?:the )?"),
    ("work", 3, r"\b(?:read|reading|watch(?:ed|ing)?|books?|movies?|film|series|song|novel|show|album|saga|games?|"
                r"playing|played|trilogy|musical) (?:the )?"),
    ("person", 3, r"\b(?:by|friend|named|met|thanks to|told|asked|hanging out with|author|singer|artist|player),? "),
    ("person", 4, r"\b(?:living|lives?|lunch|dinner|coffee|talked|chatting|in love|moved in|reports?|married) "
                  r"(?:with|to) "),
    ("person", 3, r"^\W*(?:hey|hi|hello|dear|bye|thanks|congrats|happy birthday),? "),
    ("person", 3, r"\b(?:she|he)(?:['’]s| is| was) "),
    ("person", 4, rf"\b(?:{_ROLE})(?: is| was|['’]s|:)(?: called| named)? (?:a )?"),
    ("other", 9, rf"\b(?:{_PET}),? (?:(?:is|was) )?(?:named|called) "),
    ("person", 3, rf"\b(?:my|our|his|her|your) (?:\w+ )?(?:{_ROLE}),? "),
    ("person", 2, r"\b(?:(?:his|her|their)(?: first)? name(?: is|'s)|"
                  r"(?:woman|man|guy|girl|boy|lady|residents?)\b[^,.]*,) "),
    ("person", 1, r"\b(?:with|and|for|hey|thanks|hi|so|yeah|congrats|wow),? "),
    ("product", 3, r"\b(?:bought|got|ordered|own|drives?|driving|use|using|new|play(?:ing)? on) "
                   r"(?:(?:a|an|my|the|new|our) )+"),
    end="$",
)  # fmt: skip
_AFTER = _cues(
    ("person", 3, r"^(?:,? who| (?:said|says|told|asked|loves|likes|helped|and I|is my|was my|passed away|thinks)\b)"),
    ("other", 9, rf"^,? (?:is )?(?:my|our|his|her) (?:\w+ )?(?:{_PET})\b"),
    ("person", 4, rf"^,? (?:is )?(?:my|our|his|her) (?:\w+ )?(?:{_ROLE})\b"),
    ("person", 4, "^['’]s [\"“]"),
    ("work", 2, r"^ (?:books?|movies?|films?|series|novel|song|album|fan|saga|soundtrack)\b"),
    ("product", 2, r"^ (?:phone|laptop|car|camera|console|guitar|bike|watch|app|tablet|headphones|truck)\b"),
    ("organization", 2, r"^ (?:team|company|store|staff|office)\b"),
    ("event", 3, r"^ (?:festival|parade|conference|event|party|celebration|convention|marathon)\b"),
    ("place", 2, r"^(?:, [A-Z]\w+(?=[.,!?]|$)| (?:trip|vacation|beach|city|coast|mountains|airport)\b)"),
    flags=0,
)  # fmt: skip


SHORTEST_NICKNAME = 3
"""Letters that a short form of a name has at least."""


class Name(NamedTuple):
    """A name as it is written, and how much speaks for each type of what may be called so."""

    text: str
    votes: tuple[tuple[str, int], ...]


class Case(NamedTuple):
    """How often each word of a scope stands in lower case, and with a capital inside a sentence."""

    lower: Counter[str]
    inside: Counter[str]


def cases(texts: Sequence[str]) -> Case:
    """Count the cases of the words of a scope."""
    lower: Counter[str] = Counter()
    inside: Counter[str] = Counter()
    for text in texts:
        tokens = list(_TOKEN.finditer(text))
        for i, token in enumerate(tokens):
            word = token[0]
            if word[0].islower():
                lower[_bare(word).casefold()] += 1
            elif i and not starts(text, token.start()):
                inside[_bare(word).casefold()] += 1
    return Case(lower, inside)


def names(text: str, case: Case, speakers: set[str]) -> Iterator[Name]:
    """Find the names in one sentence; a word that its scope writes in lower case too is none.

    :param speakers: names in lower case, known to be names wherever they stand.
    """
    taken: list[tuple[int, int]] = []
    for match in _QUOTE.finditer(text):
        title = match[1] or match[2]
        words = title.split()
        capitals = sum(w[:1].isupper() or w[:1].isdigit() for w in words)
        if (
            len(words) <= 9
            and title.casefold() not in POINTERS
            and capitals * 2 >= len(words)
            and not re.search(r"\b(?:I|I'm|you|my)\b", title)
        ):
            taken.append(match.span())
            yield Name(title.strip(" ,."), (("work", 5),))
    for start, end in spans(text, case, speakers):
        if any(a <= start < b for a, b in taken):
            continue
        name = _bare(text[start:end])
        if is_title(name) or (name.isupper() and len(name) > _ACRONYM and is_common(name)):
            continue
        yield Name(name, tuple(_votes(text, start, start + len(name), name, speakers)))


def spans(text: str, case: Case, speakers: set[str]) -> Iterator[tuple[int, int]]:
    """Give where the words with capitals stand that belong together: ``text[start:end]``."""
    tokens = list(_TOKEN.finditer(text))
    if sum(t[0].isupper() and len(t[0]) > 1 for t in tokens) * 2 > len(tokens) > 2:
        return
    named = [_is_name(text, t, i, case, speakers) for i, t in enumerate(tokens)]
    # Beside a name, or beside each other, common words with capitals are part of it: "New York", "Fox Hollow".
    free = [not name and _may_join(text, t, case) for name, t in zip(named, tokens, strict=True)]
    inside = [may and not starts(text, t.start()) for may, t in zip(free, tokens, strict=True)]
    for i in (*range(len(tokens) - 2, -1, -1), *range(1, len(tokens))):
        for n in (i - 1, i + 1, i + 2):
            if not free[i] or not 0 <= n < len(tokens) or tokens[n][0].casefold() in speakers:
                continue
            over = n == i + 2 and named[n] and tokens[i + 1][0] == "of"
            if over or (
                abs(n - i) == 1 and _beside(text, tokens, min(i, n)) and (named[n] or (inside[i] and inside[n]))
            ):
                named[i] = True
    end = -1
    for i in range(len(tokens)):
        if i <= end or not named[i]:
            continue
        end = i
        while not re.search(r"['’]s?$", tokens[end][0]):
            step = next((s for s in (1, 2, 3) if _goes_on(text, tokens, named, end, s)), 0)
            if not step or tokens[end + step][0].casefold() in speakers:
                break
            end += step
        yield tokens[i].start(), tokens[end].end()


def _beside(text: str, tokens: list[re.Match[str]], a: int) -> bool:
    between = text[tokens[a].end() : tokens[a + 1].start()]
    return bool(re.fullmatch(r"\.? " if is_title(tokens[a][0]) else " ", between)) and not tokens[a][0].endswith("s'")


def _may_join(text: str, token: re.Match[str], case: Case) -> bool:
    """Say whether a word may be part of a name beside it."""
    word = token[0]
    if not word[0].isupper() or word.casefold() in _NEVER | _LEADS or re.search(r"['’]", word):
        return False
    return not (starts(text, token.start()) and case.lower[word.casefold()])


def _goes_on(text: str, tokens: list[re.Match[str]], named: list[bool], end: int, step: int) -> bool:
    """Say whether a name goes on after a step: at once, or over "of the"."""
    if end + step >= len(tokens) or not named[end + step]:
        return False
    if any(t[0] not in _INNER - {"and"} for t in tokens[end + 1 : end + step]):
        return False
    gap = r"[. &]*" if is_title(tokens[end][0]) else r"[ &]*"
    between = (text[one.end() : two.start()] for one, two in pairwise(tokens[end : end + step + 1]))
    return bool(re.fullmatch(gap, "".join(between)))


def _is_name(text: str, token: re.Match[str], i: int, case: Case, speakers: set[str]) -> bool:
    word = _bare(token[0]).replace("’", "'")
    low = word.casefold()
    if not word or not word[0].isupper() or low in _NEVER:
        return False
    if low in speakers or low in _TITLES:
        return True
    if (len(word) < 2 or case.lower[low] > case.inside[low] // 2) and not (low in _SUFFIX and i):
        return False
    if i == 0 or starts(text, token.start()):
        return case.inside[low] > 0 and not case.lower[low]
    return True


def starts(text: str, at: int) -> bool:
    """Say whether a sentence, a line or a quotation starts here."""
    before = text[:at].rstrip(" *_#>")
    if is_title(before.rpartition(" ")[2]):
        return False
    return not before or before[-1] in '.!?:;\n"“(-–—…•' or not before[-1].isascii()


def _bare(word: str) -> str:
    return re.sub(r"['’]s?$", "", word).strip(".'’&+-") if not re.fullmatch(r"(?:[A-Z]\.)+", word) else word


def _votes(text: str, start: int, end: int, name: str, speakers: set[str]) -> Iterator[tuple[str, int]]:
    words = name.casefold().split()
    if name.casefold() in speakers or words[0].strip(".") in _TITLES:
        yield "person", 9
        return
    if words[-1] in _SUFFIX and len(words) > 1:
        yield _SUFFIX[words[-1]], 6
    if words[0] in _HOLIDAYS:
        yield "event", 6
    if name.isupper() and len(name) > 1 and re.match(r"\+? [a-z]", text[end : end + 3]):
        return
    before, after = text[max(0, start - 60) : start], text[end : end + 25]
    yield from ((kind, weight) for kind, weight, cue in _BEFORE if cue.search(before))
    yield from ((kind, weight) for kind, weight, cue in _AFTER if cue.search(after))


def called(names: Iterable[str]) -> frozenset[str]:
    """Give what people are called: the words of their names in lower case, and how these begin.

    >>> from memlab.language.names import called
    >>> sorted(called(["Mel Roe-Bai"]))
    ['bai', 'mel', 'roe']
    >>> "joan" in called(["Joanna"])
    True
    """
    words = {word for name in set(names) for word in re.findall(r"[^\W\d_]+", name.lower())}
    return frozenset(words | {word[:n] for word in words for n in range(SHORTEST_NICKNAME, len(word))})


def is_title(word: str) -> bool:
    """Say whether a word is a title before a name."""
    return word.casefold().strip(".") in _TITLES
