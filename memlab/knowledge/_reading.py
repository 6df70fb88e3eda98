"""What a message says of its speaker and of others, as statements of known relations; anything else gives none."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

from memlab.knowledge import _attributes
from memlab.knowledge._attributes import Talk
from memlab.knowledge._patterns import CHANGES, KIN, P, W
from memlab.knowledge._phrase import (
    FORMER,
    IT,
    PAST,
    PERFECT,
    PLAN,
    PRESENT,
    PROGRESSIVE,
    Statement,
    Verb,
    lemmas,
    nominal,
    proper,
    trimmed,
    verb_phrase,
)  # fmt: skip
from memlab.language.casual import written
from memlab.language.clauses import normal
from memlab.language.lexicon import lexicon
from memlab.language.manner import bases
from memlab.language.people import PERSONS, PETS
from memlab.language.sentences import sentences
from memlab.language.words import MONTHS, WEEKDAYS

SHARED = W["shared"]
_HE = W["he"]
_SHE = W["she"]


class Relation(NamedTuple):
    """A row of ``relations.toml``."""

    says: str
    base: str
    kind: str
    told: str
    one: str | None
    days: int | None
    now: bool
    read: tuple[re.Pattern[str], ...]


@cache
def _table() -> dict[str, Any]:
    return tomllib.loads(files("memlab.knowledge").joinpath("relations.toml").read_text(encoding="utf-8"))


@cache
def kinds() -> dict[str, frozenset[str]]:
    """Give what each general word covers, as base forms."""
    return {bases(word)[0]: frozenset(bases(listed)) for word, listed in _table()["kinds"].items()}


@cache
def relations() -> tuple[Relation, ...]:
    """Read the table of relations."""
    rows = _table()["relation"]
    return tuple(
        Relation(
            row["is"], row["base"], row["kind"], row.get("told", "state"), row.get("one"), row.get("days"),
            row.get("now", False),
            tuple(re.compile(rf"{pattern}$") for pattern in row["read"]),
        )
        for row in rows
    )  # fmt: skip


_NO_NAME = W["no_name"] | set(MONTHS) | set(WEEKDAYS)


def split(text: str) -> Iterator[str]:
    """Cut a message into sentences, also where a new one begins in lower case."""
    text = re.sub(r"\b(Mr|Mrs|Ms|Dr|Prof|St)\.(?=\s[A-ZÀ-Þ])", r"\1", P["fenced"].sub(" … ", text))
    for sentence in sentences(text):
        for piece in re.split(r"(?<=[!?])\s+|(?<=[a-z0-9)\]'][.])\s+(?=[a-z])|\n+", sentence):
            if piece.strip():
                yield piece.strip()


def tells_of_change(sentence: str) -> bool:
    """Say whether a short sentence tells that something is over or new, whatever it is."""
    if len(sentence.split()) > _SHORT or P["undecided"].search(sentence):
        return False
    cues = (P["gone"], P["renewed"], *CHANGES.values())
    return any(cue.search(sentence) for cue in cues)


_SHORT = 16


def asked(sentence: str) -> bool:
    """Say whether a sentence asks."""
    plain = P["lead"].sub("", written(sentence))
    return sentence.rstrip("\"”') !").endswith("?") or bool(P["asking"].match(plain) or P["whats"].search(plain))


def read(sentence: str, talk: Talk) -> Iterator[Statement]:
    """Read what a sentence says.

    >>> from memlab.knowledge._reading import Talk, read
    >>> [s[:2] for s in read("im workin at the cafe now, n my sister moved to Rome", Talk("Mel"))]
    [('Mel', 'works at'), ("Mel's sister", 'lives in')]
    """
    plain = P["lead"].sub("", " ".join(written(sentence).split()))
    quoted = P["quoted"].search(plain)
    plain = P["quoted"].sub(" … ", plain)
    if asked(sentence):
        _mention(plain, talk)
        return
    if P["sarcasm"].search(sentence) or (quoted and ":" in plain):
        _mention(plain, talk)
        return
    if report := P["reported"].search(plain):
        _mention(plain, talk)
        plain = (
            re.sub(r"[,;]?\s*(?:\w+\s+)?$", "", plain[: report.start()])
            if report[0].split()[0] in ("says", "said", "say")
            else plain[: report.start()]
        )
        if len(plain.split()) < 2:
            return
    plain = P["later_if"].sub("", plain)
    called = P["called"].search(plain)
    if called and called[1].lower() in talk.names:
        plain = plain[: called.start()] + plain[called.end() :]
    # What a condition governs is not so; what stands before "…, if you need it" is.
    if P["supposed"].search(plain):
        return
    ago = bool(P["long_ago"].search(plain))
    plain = normal(P["lead"].sub("", plain))
    if topic := P["topic"].match(plain):
        talk.topic = topic[1].lower()
    if not ago:
        whole = _attributes.address(plain, talk) or _attributes.attributed(plain, talk, talk.about)
        if whole:
            yield whole
            return
        yield from _attributes.read(plain, talk)
    yield from _clauses(plain, talk, ago)


def _clauses(plain: str, talk: Talk, ago: bool) -> Iterator[Statement]:
    before: str | None = None
    latest: Statement | None = None
    for hinge, piece in _pieces(plain, talk):
        rest = P["be_after_s"].sub(r"\1 is", P["lead"].sub("", piece))
        if talk.ended and (new := P["instead"].match(rest)) and nominal(new["value"]):
            yield Statement(*talk.ended, nominal(new["value"]))
            continue
        nouns = [] if ago else list(_attributes.fragment(rest, before or talk.about or talk.speaker, talk))
        if nouns:
            yield from nouns
            _ending(nouns[-1], talk)
            holder = nouns[-1].subject
            if holder not in (IT, talk.speaker) and not holder.startswith(f"{talk.speaker}'s"):
                talk.about = holder.split("'s ")[0]
            continue
        subject, tail = _subject(rest, talk)
        if subject is None:
            start = tail.split(" ", 1)[0].lower().strip(",")
            known = lemmas().get(_skip(tail).split(" ", 1)[0].lower()) if tail else None
            if not known and start not in ("might", "may", "will", "not"):
                before = before if hinge else None
                continue
            known = known or ("", frozenset())
            if start == "not" and re.match(
                r"not (?:a (?:big |huge )?fan|into|keen|really into|vegan|vegetarian)\b", tail, re.I
            ):
                subject, tail = talk.speaker, f"am {tail}"
            elif start in ("might", "may", "will", "planning", "going", "thinking") and not hinge:
                subject = talk.speaker
            elif before and hinge in ("and", "then", "but", "and then", ","):
                subject = before
            elif (
                known[1] & {"present", "third"}
                and start not in ("report", "start", "starting", "begin")
                and not known[1] & {"past"}
            ):
                continue
            elif "ing" in known[1] and re.search(
                r"\s(?:is|was|are|were|has|have|makes?|made|can|feels?|felt)\b|'s (?:a|an|the|so|not|been)\b", tail
            ):
                # "Looking for a flat is hard" is about looking.
                continue
            else:
                subject = talk.topic or talk.speaker
        before = subject
        if subject not in ("?", IT, talk.speaker):
            talk.about = subject
            kin = subject.rsplit(" ", 1)[-1].lower()
            talk.he, talk.she = (talk.he if kin in _SHE else subject), (talk.she if kin in _HE else subject)
        verb = verb_phrase(tail)
        if verb is None:
            continue
        if re.match(r"we are in\b", rest, re.I):
            verb = verb._replace(now=True)
        if (
            latest
            and subject != latest.subject
            and re.fullmatch(r"(?:am|is|are|do|does) not", normal(tail).strip(" .!"), re.I)
        ):
            # "My husband is a vegetarian, I'm not."
            yield Statement(subject, re.sub(r"^is\b", "is not", latest.predicate), latest.object)
            continue
        for statement in told(subject, verb, ago or hinge in ("when", "while", "where"), me=talk.speaker):
            latest = statement
            _ending(statement, talk)
            yield statement
    _mention(plain, talk)


def _ending(statement: Statement, talk: Talk) -> None:
    """Remember what was given up, for what comes instead."""
    if "no longer " in statement.predicate:
        talk.ended = statement.subject, statement.predicate.replace("no longer ", "")
    elif statement.predicate == "gave up":
        talk.ended = statement.subject, "does"


def _skip(text: str) -> str:
    return re.sub(
        r"^(?:(?:just|also|finally|still|now|recently|already|officially|currently|not|never|no longer)\s+)+",
        "",
        text,
        flags=re.I,
    )


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
                pieces[-1] = (
                    pieces[-1][0],
                    f"{pieces[-1][1]}{joint if joint in (',', ';', ':') else ' –' if joint else ''} {piece}",
                )
            else:
                pieces.append((word or ("," if joint == "," else ""), body))
        if cut is None:
            break
        joint = "," if "," in cut[0] else cut[0].strip()
        at = cut.end()
    return [(hinge, body.strip(" .!,;:")) for hinge, body in pieces]


def _begins(text: str, talk: Talk, *, joined: bool, both: bool) -> bool:
    rest = P["lead"].sub("", text)
    if next(iter(_attributes.fragment(rest, talk.speaker, talk)), None):
        return True
    subject, tail = _subject(rest, talk)
    word = _skip(tail).split(" ", 1)[0].lower().strip(",.") if tail else ""
    known = lemmas().get(word)
    if subject is not None:
        return bool(known) or word in W["auxiliary"]
    if both and known and known[1] == {"ing"}:
        return False
    # "dinner and drinks": a noun, unless its form is a verb's alone.
    if known is None:
        return False
    return bool(known[1] & {"past", "ing", "participle"}) or (joined and word in W["plain_verbs"])


def _subject(text: str, talk: Talk) -> tuple[str | None, str]:
    """Give who or what a clause is about, and the rest; nobody where it leaves that out."""
    text = P["be_after_s"].sub(r"\1 is", text)
    if match := P["first"].match(text):
        return talk.speaker, text[match.end() :]
    if match := P["third"].match(text):
        word = match[1].lower()
        who = talk.he if word == "he" else talk.she if word == "she" else IT if word in ("it", "that") else None
        return who or "?", text[match.end() :]
    if match := P["own"].match(text):
        noun, rest = _noun(text[match.end() :])
        if noun:
            return _possessed(talk.speaker, noun, talk), rest
        return "?", text
    words = text.split()
    if not words:
        return None, text
    first = words[0].strip(",").lower()
    if first.endswith("'s") and len(words) > 1:
        owner = words[0][:-2]
        noun, rest = _noun(" ".join(words[1:]))
        if noun and (owner.lower() in talk.names or owner.lower() in KIN or owner[:1].isupper()):
            own = f"{talk.speaker}'s {owner.lower()}" if owner.lower() in KIN - SHARED else owner.capitalize()
            holder = own if owner.lower() in KIN else talk.names.get(owner.lower(), owner)
            return f"{holder}'s {noun}", rest
    if first in KIN and len(words) > 1:
        # A family calls her Gran, whosever mother she is.
        return (first.capitalize() if first in SHARED else f"{talk.speaker}'s {first}"), " ".join(words[1:])
    for length in (2, 1):
        name = " ".join(words[:length]).strip(",")
        if len(words) > length and name.lower() in talk.names and name.lower() not in _NO_NAME:
            return talk.names[name.lower()], " ".join(words[length:])
    if first in (
        "the",
        "a",
        "an",
        "his",
        "her",
        "their",
        "this",
        "these",
        "all",
        "everyone",
        "nobody",
        "people",
        "someone",
        "there",
        "you",
        "one",
    ):
        noun, rest = (
            _noun(" ".join(words[1:]))
            if first == "the" and len(words) > 1 and not words[1][:1].isdigit()
            else ("", text)
        )
        return ((noun or "?"), rest if noun else text)
    named = P["named_first"].match(text)
    if named and first not in _NO_NAME and first not in lemmas():
        name = named[1]
        if name.split()[-1].lower() in lemmas() and len(name.split()) > 1:
            name = name.split()[0]
        rest = text[len(name) :].strip()
        following = _skip(rest).split(" ", 1)[0].lower().strip(",.")
        finite = lemmas().get(following, ("", frozenset()))[1] & {"third", "past"} or following in (
            "will",
            "used",
            "might",
            "may",
            "no",
            "never",
            "is",
        )
        if finite and (name.lower() in talk.names or name.split()[0].lower() not in lexicon()):
            return name, rest
    return None, text


def _noun(text: str) -> tuple[str, str]:
    """Cut "older sister Anna works …" before its verb: what is spoken of, and the rest."""
    words = text.split()
    for at in range(1, min(len(words), 6)):
        low = words[at].lower().strip(",")
        known = lemmas().get(low)
        if words[at - 1].lower() in KIN and known and "ing" in known[1]:
            return " ".join(words[:at]), " ".join(words[at:])
        sure = low in (
            "is",
            "are",
            "was",
            "were",
            "has",
            "will",
            "can",
            "used",
            "no",
            "never",
            "just",
            "now",
            "still",
        ) or (known and (known[1] & {"third", "past"} or (known[1] & {"present"} and words[at - 1].endswith("s"))))
        if sure and not words[at - 1].endswith(","):
            return " ".join(w.strip(",") for w in words[:at]), " ".join(words[at:])
    return "", text


def _possessed(owner: str, noun: str, talk: Talk) -> str:
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
        if name and (not name[:1].isupper() or name.split()[0].lower() in _NO_NAME):
            name = None
        who = name or f"{talk.speaker}'s {kin}"
        if kin in _HE:
            talk.he = who
        else:
            talk.she = who
    for match in P["named"].finditer(plain):
        name, following = match["name"], (match["next"] or "").strip().lower()
        if " " in name and name.split()[0].lower() not in talk.names and name.split()[0].lower() in lexicon():
            name = name.split(maxsplit=1)[1]
        low = name.lower()
        # Who is only addressed is not spoken of.
        vocative = ("," in match["lead"] and not following) or (
            not match["lead"].strip() and plain[match.end("name") :][:1] in ",!"
        )
        verb = "third" in lemmas().get(following, ("", frozenset()))[1] or following in (
            "is",
            "was",
            "has",
            "moved",
            "left",
            "quit",
            "got",
            "says",
            "said",
        )
        inside = match["lead"].split()[-1].lower() if match["lead"].split() else ""
        if (
            low in _NO_NAME
            or (low not in talk.names and low.split()[0] in lexicon())
            or low in KIN
            or vocative
            or low == talk.speaker.lower()
            or inside in ("in", "at", "to", "from", "on", "of", "the", "near")
        ):
            continue
        if verb or match["lead"].strip():
            talk.he = talk.she = talk.names.get(low, name)


_HOLDS = {
    "once": {PAST, PERFECT},
    "state": {PRESENT, PROGRESSIVE, PERFECT},
    "event": {PAST, PERFECT},
    "end": {PAST, PERFECT},
    "trip": set(),
}
_ONCE = W["once"]
"""What one may be doing at the moment: "I am eating soup" is no habit."""


def told(subject: str, verb: Verb, past: bool, *, me: str = "") -> Iterator[Statement]:
    """Give the statement that a verb phrase makes of a subject, if it is one of the table of relations."""
    if subject == "?":
        return
    cut = P["cut"].search(f"{verb.text} ")
    texts = dict.fromkeys((verb.text, trimmed(verb.text), trimmed(verb.text[: cut.start()] if cut else verb.text)))
    for relation in relations():
        if relation.now and not (verb.now or verb.negated == "no longer" or verb.tense == PERFECT):
            continue
        for pattern in relation.read:
            match = next((m for text in texts if (m := pattern.match(text))), None)
            if not match:
                continue
            rest = match.groupdict().get("o")
            first, denied, rest_place = _parted(rest, relation)
            if me and relation.kind == "who" and re.fullmatch(r"(?:me|us)\b.*", first or "", re.I):
                first = me
            statement = _statement(subject, relation, verb, first, past)
            if statement:
                yield statement
                if "no longer " in statement.predicate and relation.kind == "food":
                    yield Statement(subject, _denied(relation), statement.object)
                if denied and statement.predicate == relation.says:
                    yield Statement(subject, _denied(relation), denied)
                if rest_place and statement.predicate == relation.says:
                    yield Statement(subject, *rest_place)
                return
            break


def _parted(text: str | None, relation: Relation) -> tuple[str | None, str | None, tuple[str, str] | None]:
    """Take "two choirs and no orchestra", "law at Uppsala", "Priti on Mansel Rd" apart."""
    if text is None:
        return None, None, None
    denied = place = None
    if no := re.search(r",?\s+(?:and|but) no (?P<o>[\w-]+(?: [\w-]+)?)$", text):
        text, denied = text[: no.start()], nominal(no["o"])
    if relation.base in ("study", "teach") and (
        at := re.search(r"\s+(?:at|in) (?P<o>(?:the )?[A-ZÀ-Þ].*|the .+)$", text)
    ):
        where = nominal(at["o"])
        text, place = (
            text[: at.start()],
            ("studies at" if relation.base == "study" else "works at", where) if where else None,
        )
    elif relation.base == "live with" and (at := re.search(r"\s+(?:at|in|on) (?P<o>(?:the )?[A-ZÀ-Þ].*)$", text)):
        where = nominal(at["o"])
        text, place = text[: at.start()], ("lives in", where) if where else None
    return text, denied, place


def _statement(subject: str, relation: Relation, verb: Verb, rest: str | None, past: bool) -> Statement | None:
    obj = _value(rest, relation, verb) if relation.kind not in ("retired", "pregnant") else relation.kind
    # Whose it is, said by somebody else.
    obj = re.sub(r"^(?:my|our)\b", f"{subject}'s" if relation.kind == "who" else "the", obj)
    if not obj or (subject == IT and relation.kind != "place"):
        return None
    base = verb.text.split(" ", 1)[0]
    tense = verb.tense
    if past and tense == PRESENT:
        return None
    if (
        tense in (PRESENT, PROGRESSIVE)
        and relation.base == "work at"
        and relation.told == "event"
        and base in ("start", "begin", "join")
        and not verb.negated
    ):
        return Statement(subject, "starts at", obj)
    if tense == PRESENT and relation.told in ("event", "once", "trip"):
        tense = PLAN
    if tense == PROGRESSIVE and (relation.told in ("event", "once", "end", "trip") or (base in _ONCE and not verb.now)):
        tense = PLAN
        if relation.told == "state":
            return None
    third = relation.says
    if tense == FORMER or (relation.told == "state" and tense == PAST):
        # One dinner is no habit, and "I had a dog" says that it is over only where it is told of long ago.
        if tense == PAST and not past and base in _ONCE | {"like", "love", "enjoy", "hate", "be", "have"}:
            return None
        return None if verb.negated else Statement(subject, f"used to {relation.base}", obj)
    if tense == PLAN:
        if verb.text.startswith("stay in") and relation.told == "state":
            return None
        if verb.negated or relation.kind in ("liked", "state", "age", "role", "none") or relation.told == "end":
            return None
        return Statement(subject, f"plans to {'go to' if relation.told == 'trip' else relation.base}", obj)
    if past and tense != PERFECT and relation.told != "once":
        return (
            Statement(subject, f"used to {relation.base}", obj) if tense == PAST and relation.told == "event" else None
        )
    if tense not in _HOLDS[relation.told]:
        return None
    if relation.told == "end":
        return None if verb.negated else Statement(subject, _over(third), obj)
    if verb.negated == "no longer":
        return Statement(subject, _over(third), obj)
    if verb.negated:
        if relation.told == "event":
            return None
        return Statement(subject, _denied(relation), obj)
    return Statement(subject, third, obj)


def _over(third: str) -> str:
    return re.sub(r"^is\b", "is no longer", third) if third.startswith("is") else f"no longer {third}"


def _denied(relation: Relation) -> str:
    first, _, tail = relation.says.partition(" ")
    if first == "is":
        return f"is not {tail}".strip()
    if first in ("can", "does"):
        return f"{first} not {tail}".replace("not not ", "")
    return f"does not {relation.base}"


_VAGUE_PLACES = W["vague_places"]
_PETTY = W["petty"]
_NOT_LIKED = W["not_liked"]
_FILLER_GERUNDS = W["filler_gerunds"]
_VEHICLES = W["vehicles"]


def _value(text: str | None, relation: Relation, verb: Verb) -> str:
    """Cut the object of a relation, and refuse what does not fit it."""
    kind = relation.kind
    if text is None:
        return "the job" if kind == "job" else ""
    obj = nominal(text, most=5 if kind in ("liked", "food") else 7)
    low = obj.lower()
    bare = P["article"].sub("", low)
    words = bare.split()
    if not words or low in ("the", "a", "an", "my", "our", "some"):
        return ""
    if kind == "place":
        if words[-1] in _VAGUE_PLACES or words[0] in _VAGUE_PLACES or re.match(r"^(?:\d|chicken|like)", bare):
            return ""
        if relation.told == "trip" and not proper(P["article"].sub("", obj)):
            return ""
        if (
            words[0] in ("finance", "sales", "marketing", "next", "another", "new", "other", "different")
            and len(words) < 3
        ):
            return obj if words[0] in ("finance", "sales", "marketing") else ""
        return obj
    if kind == "org":
        if words[0] in (
            "home",
            "moment",
            "time",
            "once",
            "night",
            "least",
            "all",
            "work",
            "school",
            "it",
            "progress",
        ) or re.match(r"^(?:\d|my own|myself|something)", bare):
            return obj if words[0] == "home" else ""
        if words[-1] in (
            "project",
            "projects",
            "skills",
            "art",
            "book",
            "novel",
            "song",
            "songs",
            "time",
            "day",
            "week",
            "year",
            "weekend",
        ):
            return ""
        return obj
    if kind == "who":
        return (
            obj
            if re.search(r"[A-Z]", obj)
            or words[0] in KIN
            or any(w in KIN for w in words)
            or re.search(r"parents|family|flatmate|roommate|cousin|home", low)
            else ""
        )
    if kind in ("name",):
        return obj if re.search(r"[A-Z]", obj) else ""
    if kind == "owned":
        if relation.told == "end":
            return obj if set(words) & (_ESTATE | PETS) else ""
        return _owned(obj, words, verb)
    if kind == "liked":
        if re.match(r"^\w+ing\b", low) and words[0] in _FILLER_GERUNDS:
            return ""
        if low.startswith("the ") and not P["liked_the"].match(obj):
            return ""
        if words[0] in (
            "all",
            "home",
            "stories",
            "things",
            "more",
            "most",
            "every",
            "together",
            "just",
            "people",
            "kids",
        ) or words[-1] in ("together", "new", "different", "forever"):
            return ""
        if (
            not P["liked"].match(obj)
            or words[-1] in _NOT_LIKED
            or words[0] in _NOT_LIKED
            or re.match(
                r"^(?:to|the way|how|when|what|my|your|his|her|their|our|doing|being|having|seeing|hearing)\b", low
            )
        ):
            return ""
        return obj
    if relation.base == "smoke" and words[0] in ("smoke", "again"):
        return "cigarettes"
    if kind == "food":
        if re.match(r"^(?:my|our|your|his|her|their|like|for|at|in|with|on|out|the)\b", low) or words[0] in (
            "lunch",
            "dinner",
            "breakfast",
            "time",
            "place",
            "care",
            "part",
        ):
            return ""
        return obj
    if kind == "play":
        return (
            obj
            if not re.match(
                r"^(?:\w+ly\b|ever|together|hard|an? (?:part|role|game)|games?|with|for|in|at|around|the part|some)\b",
                low,
            )
            else ""
        )
    if kind == "vehicle":
        return (
            obj
            if set(words) & _VEHICLES
            or (
                re.search(r"[A-Z]", P["article"].sub("", obj))
                and not re.match(r"^(?:to|from|me|home|up|down|for)\b", low)
            )
            else ""
        )
    if kind == "tool":
        return obj if re.search(r"[A-Z]", P["article"].sub("", obj)) and len(words) < 4 else ""
    if kind == "born":
        return "" if re.search(r"day\b|today|yesterday|week", low) else obj
    if kind in ("dose", "hours", "any"):
        return obj
    if kind == "job":
        return "the job"
    if kind == "club":
        return (
            obj
            if re.search(
                r"\b(?:choir|band|club|team|gym|orchestra|class|group|league|union|church|society|co-op|cooperative|squad|association|board|committee)\b",
                low,
            )
            else ""
        )
    if kind == "condition":
        return obj if len(words) < 4 else ""
    if kind == "medicine":
        return (
            obj
            if words[0]
            in ("statins", "antidepressants", "insulin", "pill", "beta", "blood", "painkillers", "antibiotics")
            or not lexicon().get(words[0])
            else ""
        )
    if kind == "project":
        if words[-1] == "project" and len(words) < 2:
            return ""
        return (
            obj
            if re.search(
                r"(?:novel|book|script|screenplay|album|song|paper|thesis|dissertation|app|game|website|film|movie|documentary|comic|painting|sculpture|quilt|garden|house|car|business|startup|portfolio|degree|project|series|story|play|poem|blog|podcast|memoir|cookbook|collection|research)\b",
                low,
            )
            else ""
        )
    if kind == "prize":
        return (
            obj
            if re.search(
                r"(?:tournament|competition|contest|award|prize|medal|championship|match|race|title|scholarship|grant|trophy|election|final|place|marathon|cup)\b",
                low,
            )
            else ""
        )
    if kind == "role":
        return (
            obj
            if not re.match(r"(?:no|his|her|their|your)\b", low)
            and not re.search(r"\b(?:bit|best|big|great|good|real|true|such|huge|fan|better|little)\b", low)
            else ""
        )
    if relation.base == "look for":
        obj = re.split(r"\s+to\s+", obj)[0]
        if words[-1] in ("ideas", "inspiration", "tips", "ways", "something", "advice", "feedback", "answers") or words[
            0
        ] in ("some", "more"):
            return ""
    if kind == "thing" and (words[-1] in _PETTY or not P["article"].sub("", low)):
        return ""
    if (
        relation.base == "study"
        and words[-1].endswith("s")
        and not words[-1].endswith(("ics", "ss"))
        and words[-1] not in ("maths", "comp sci", "languages", "arts", "studies", "humanities", "classics")
    ):
        return ""
    return obj


_ESTATE = PETS | PERSONS | _VEHICLES | W["estate"]  # fmt: skip


def _owned(obj: str, words: list[str], verb: Verb) -> str:
    obj = re.split(r"\s+(?:at|in|on) (?:the|my|our|this)\b", obj)[0]
    head = re.split(r"\s+(?:named|called|for|with|of|in|at|from|who|that|to|on|by|left)\b", " ".join(words))[0].split()
    if not head:
        return ""
    noun = head[-1]
    singular = noun[:-1] if noun.endswith("s") and noun[:-1] in _ESTATE else noun
    if noun in _PETTY and noun not in _ESTATE:
        return ""
    if verb.tense == PLAN and len(head) == 1 and (noun in _ESTATE or singular in _ESTATE):
        return obj
    known = noun in _ESTATE or singular in _ESTATE or re.search(r"(?:named|called) [A-Z]", obj)
    # A thing bought may be told by its make: "a Skoda".
    if not known and not (verb.tense == PAST and re.match(r"^an? [A-Z]", obj) and len(head) < 3):
        return ""
    if verb.negated:
        return re.sub(r"^(?:any|no)\s+", "", obj)
    return obj if P["counted"].match(obj) or obj[:1].isupper() or noun in ("bees", "heating") else ""
