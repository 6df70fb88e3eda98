"""What a message says of its speaker and of others, as statements of known relations; anything else gives none."""

from __future__ import annotations

import re
from collections.abc import Iterator

from memlab.knowledge import _attributes
from memlab.knowledge._attributes import Talk
from memlab.knowledge._patterns import KIN, P, W
from memlab.knowledge._phrase import IT, Statement, lemma, verb_phrase
from memlab.knowledge._relations import told
from memlab.language.casual import written
from memlab.language.clauses import normal
from memlab.language.lexicon import lexicon
from memlab.language.people import PETS, PLURAL_PERSONS
from memlab.language.sentences import sentences
from memlab.language.words import MONTHS, WEEKDAYS

_NO_NAME = W["no_name"] | set(MONTHS) | set(WEEKDAYS)
_SOMEBODY = KIN | PETS | PLURAL_PERSONS
_LONGEST_CHANGE = 16


def split(text: str) -> Iterator[str]:
    """Cut a message into sentences, also where a new one begins in lower case."""
    text = re.sub(r"\b(Mr|Mrs|Ms|Dr|Prof|St)\.(?=\s[A-ZÀ-Þ])", r"\1", P["fenced"].sub(" … ", text))
    for sentence in sentences(text):
        for piece in re.split(r"(?<=[!?])\s+|(?<=[a-z0-9)\]'][.])\s+(?=[a-z])|\n+", sentence):
            if piece.strip():
                yield piece.strip()


def tells_of_change(sentence: str) -> bool:
    """Say whether a short sentence tells that something is over or new, whatever it is."""
    if len(sentence.split()) > _LONGEST_CHANGE or P["undecided"].search(sentence):
        return False
    return bool(P["gone"].search(sentence) or P["renewed"].search(sentence))


def asked(sentence: str) -> bool:
    """Say whether a sentence asks."""
    return sentence.rstrip("\"”') !").endswith("?") or bool(P["asking"].match(_led(written(sentence))))


def read(sentence: str, talk: Talk) -> Iterator[Statement]:
    """Read what a sentence says.

    >>> from memlab.knowledge._reading import Talk, read
    >>> [s[:2] for s in read("im workin at the cafe now, n my sister moved to Rome", Talk("Mel"))]
    [('Mel', 'works at'), ("Mel's sister", 'lives in')]
    """
    plain = _led(" ".join(written(sentence).split()))
    quoted = P["quoted"].search(plain)
    plain = P["quoted"].sub(" … ", plain)
    report = P["reported"].search(plain)
    if asked(sentence) or P["sarcasm"].search(sentence) or report or (quoted and ":" in plain):
        _mention(plain, talk)
        if not report or asked(sentence):
            return
        plain = plain[: report.start()]
    # What a condition governs is not so; what stands before "…, if you need it" is.
    plain = P["later_if"].sub("", plain)
    if P["supposed"].search(plain):
        return
    ago = bool(P["long_ago"].search(plain))
    plain = normal(_led(plain))
    if not ago and (whole := _attributes.attributed(plain, talk) or _attributes.sentence(plain, talk)):
        yield whole
    yield from _clauses(plain, talk, ago)


def _led(text: str) -> str:
    """Leave out the words that only lead into what is said."""
    return P["lead"].sub("", text)


def _clauses(plain: str, talk: Talk, ago: bool) -> Iterator[Statement]:
    before: str | None = None
    for hinge, piece in _pieces(plain, talk):
        rest = P["no_subject"].sub("I am not ", P["be_after_s"].sub(r"\1 is", _led(piece)))
        if whole := None if ago else _attributes.clause(rest, talk):
            yield whole
            continue
        subject, tail = _subject(rest, talk)
        if subject is None:
            subject = _left_out(tail, hinge, before, talk)
            if subject is None:
                before = before if hinge else None
                continue
        before = subject
        if subject not in ("?", IT, talk.speaker):
            kin = subject.rsplit(" ", 1)[-1].lower()
            talk.he, talk.she = (talk.he if kin in W["she"] else subject), (talk.she if kin in W["he"] else subject)
        if verb := verb_phrase(tail):
            yield from told(subject, verb, ago or hinge in ("when", "while", "where"), me=talk.speaker)
    _mention(plain, talk)


def _left_out(tail: str, hinge: str, before: str | None, talk: Talk) -> str | None:
    """Say who does what a clause without a subject tells: who was spoken of before "and", else who speaks."""
    tenses = lemma(_verb(tail))[1]
    if before and hinge in ("and", "then", "but", "and then", ","):
        return before if tenses - {"present"} or (tenses and before == talk.speaker) else None
    # "Looking for a flat is hard" is about looking, and what follows a word about somebody may be about them.
    about = "ing" in tenses and P["predicated"].search(tail)
    others = talk.he or talk.she or hinge in ("who", "which")
    return talk.speaker if tenses & {"past", "ing", "participle"} and not about and not others else None


def _verb(text: str) -> str:
    """Give the first word after adverbs, in lower case."""
    return P["skipped"].sub("", text).split(" ", 1)[0].lower().strip(",.")


def _pieces(plain: str, talk: Talk) -> list[tuple[str, str]]:
    """Cut at commas and conjunctions where a clause begins; what begins none belongs to the clause before."""
    pieces: list[tuple[str, str]] = []
    at, joint = 0, ""
    for cut in (*P["split"].finditer(plain), None):
        piece = plain[at : cut.start() if cut else len(plain)].strip()
        if piece:
            hinge = P["hinge"].match(f"{piece} ")
            word = " ".join(hinge[0].split()).lower() if hinge else ""
            body = piece[len(word) :].strip() if word else piece
            if pieces and not _begins(
                body, talk, joined=word == "and" or (not word and joint == ","), both=word == "and"
            ):
                glue = joint if joint in (",", ";", ":") else " –" if joint else ""
                pieces[-1] = (pieces[-1][0], f"{pieces[-1][1]}{glue} {piece}")
            else:
                pieces.append((word or ("," if joint == "," else ""), body))
        if cut:
            joint = "," if "," in cut[0] else cut[0].strip()
            at = cut.end()
    return [(hinge, body.strip(" .!,;:")) for hinge, body in pieces]


def _begins(text: str, talk: Talk, *, joined: bool, both: bool) -> bool:
    rest = _led(text)
    if _attributes.clause(rest, talk):
        return True
    subject, tail = _subject(rest, talk)
    word = _verb(tail)
    tenses = lemma(word)[1]
    if subject is not None:
        return bool(tenses) or word in W["auxiliary"]
    # "dinner and drinks": a noun, unless its form is a verb's alone.
    if both and tenses == {"ing"}:
        return False
    return bool(tenses & {"past", "ing", "participle"}) or (joined and bool(tenses) and word in W["plain_verbs"])


def _subject(text: str, talk: Talk) -> tuple[str | None, str]:
    """Give who a clause is about, and the rest; nobody where it leaves that out, "?" for things and for the unknown."""
    subject, rest = _spoken_of(text, talk)
    if subject is None or subject in (IT, talk.speaker) or subject.casefold() in talk.names:
        return subject, rest
    named = subject.isalpha() and subject[1:].islower() and subject.lower() not in lexicon()
    return subject if named or set(re.split(r"[ -]", subject.lower())) & _SOMEBODY else "?", rest


def _spoken_of(text: str, talk: Talk) -> tuple[str | None, str]:
    text = P["be_after_s"].sub(r"\1 is", text)
    if match := P["first"].match(text):
        return talk.speaker, text[match.end() :]
    if match := P["third"].match(text):
        who = {"he": talk.he, "she": talk.she, "it": IT, "that": IT}.get(match[1].lower())
        return who or "?", text[match.end() :]
    if match := P["own"].match(text):
        noun, rest = _noun(text[match.end() :])
        return (_possessed(talk.speaker, noun), rest) if noun else ("?", text)
    words = text.split()
    if len(words) < 2:
        return None, text
    first = words[0].strip(",").lower()
    owner = first.removesuffix("'s")
    if owner != first:
        noun, rest = _noun(" ".join(words[1:]))
        if noun and owner in KIN:
            return f"{talk.speaker}'s {owner}'s {noun}", rest
        if noun and (owner in talk.names or words[0][0].isupper()):
            return f"{talk.names.get(owner, words[0][:-2])}'s {noun}", rest
    if first in KIN:
        return f"{talk.speaker}'s {first}", " ".join(words[1:])
    for length in (2, 1):
        name = " ".join(words[:length]).strip(",")
        if len(words) > length and name.lower() in talk.names and name.lower() not in _NO_NAME:
            return talk.names[name.lower()], " ".join(words[length:])
    if first in W["others"]:
        return "?", _noun(text)[1]
    return _named(text, first, talk)


def _named(text: str, first: str, talk: Talk) -> tuple[str | None, str]:
    """Read a clause that begins with the name of somebody who was not named before: "Anna moved to Oslo"."""
    named = P["named_first"].match(text)
    if not named or first in _NO_NAME or lemma(first)[0]:
        return None, text
    name = named[1]
    if lemma(name.split()[-1])[0]:
        name = name.split()[0]
    rest = text[len(name) :].strip()
    word = _verb(rest)
    finite = lemma(word)[1] & {"third", "past"} or word in W["finite"]
    known = name.lower() in talk.names or name.split()[0].lower() not in lexicon()
    return (name, rest) if finite and known else (None, text)


def _noun(text: str) -> tuple[str, str]:
    """Cut "older sister Anna works …" before its verb: what is spoken of, and the rest."""
    words = text.split()
    for at in range(1, min(len(words), 6)):
        word, last = words[at].lower().strip(","), words[at - 1]
        tenses = lemma(word)[1]
        finite = tenses & {"third", "past"} or ("present" in tenses and last.endswith("s")) or word in W["finite"]
        if (last.lower() in KIN and "ing" in tenses) or (finite and not last.endswith(",")):
            return " ".join(word.strip(",") for word in words[:at]), " ".join(words[at:])
    return "", text


def _possessed(owner: str, noun: str) -> str:
    """Name "my sister Anna" Anna, and "my sister" by her owner."""
    words = noun.split()
    for at, word in enumerate(words[:-1]):
        if word.lower() in KIN | PETS and words[at + 1][:1].isupper():
            return " ".join(words[at + 1 :])
    return f"{owner}'s {noun.lower() if words[-1].lower() in KIN else noun}"


def _mention(plain: str, talk: Talk) -> None:
    """Remember whom "he" and "she" would mean next."""
    for match in P["kinsfolk"].finditer(plain):
        kin, name = match["kin"].lower(), match["name"]
        known = name and name[0].isupper() and name.split()[0].lower() not in _NO_NAME
        who = name if known else f"{talk.speaker}'s {kin}"
        talk.he, talk.she = (who, talk.she) if kin in W["he"] else (talk.he, who)
    for match in P["named"].finditer(plain):
        name, following = match["name"], (match["next"] or "").strip().lower()
        first = name.split()[0].lower()
        if " " in name and first not in talk.names and first in lexicon():
            name = name.split(maxsplit=1)[1]
        low, lead = name.lower(), match["lead"].strip()
        # Who is only addressed is not spoken of.
        addressed = ("," in lead and not following) or (not lead and plain[match.end("name") :][:1] in ",!")
        unknown = low not in talk.names and low.split()[0] in lexicon()
        if addressed or unknown or low in _NO_NAME | KIN or low == talk.speaker.lower():
            continue
        placed = lead.lower().split()[-1:] and lead.lower().split()[-1] in W["places"]
        verb = "third" in lemma(following)[1] or following in W["finite"]
        if not placed and (verb or lead):
            talk.he = talk.she = talk.names.get(low, name)
