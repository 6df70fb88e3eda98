"""Facts read from statements that a source carries, by rule."""

from __future__ import annotations

import hashlib
import re

import polars as pl

from memlab.errors import DataError
from memlab.language.statements import wordlist
from memlab.language.words import BE, FINITE_AUXILIARIES, PREPOSITIONS
from memlab.records import Dataset, Fact, frame

_ADVERBS = re.compile(
    r"^(?:\w+ly|also|just|now|still|always|never|often|not|no|longer|already|even|currently|very|really)$", re.I
)
_CONTRACTED = re.compile(r"^(?:is|are|was|were|has|have|had|do|does|did|wo|ca|could|would|should)n['’]t$", re.I)
# After these words the verb group goes on: "is planning to", "has been looking for".
_HELPERS = FINITE_AUXILIARIES | BE
_AFTER_VERB = PREPOSITIONS | {"as", "after", "over", "through"}
_LINKING, _DETERMINERS = wordlist("linking"), wordlist("determiners")
_REPORTING = re.compile(
    r"^(?P<verb>mentions?|mentioned|says?|said|shares?|shared|states?|stated|tells?|told|expresses|expressed)"
    r" that (?P<rest>.+)$",
    re.I,
)


def fact_id(turn_id: str, subject: str, predicate: str, object: str) -> str:
    """Name a fact by the turn that says it first and by what it says: other turns and other facts change no id.

    >>> from memlab.knowledge.facts import fact_id
    >>> fact_id("ann/m1", "Ann", "lives in", "Oslo")
    'ann/m1/f80c5bc2cc648'
    """
    said = "\x1f".join((subject, predicate, object.casefold()))
    return f"{turn_id}/f{hashlib.blake2b(said.encode(), digest_size=6).hexdigest()}"


def from_observations(data: Dataset, *, source: str = "observed") -> pl.DataFrame:
    """Read a dataset's observations ("Caroline is planning to adopt children") as facts.

    The subject is the speaker whom the observation is about (with a possessed noun: "Joanna's new screenplay"), the
    predicate the first verb group with its preposition, the object the rest; the whole text is kept. It is a crude
    reading: clauses joined by "and" stay in the object, relative clauses too, and a sentence in which the speaker is
    not the subject becomes "speaker | is described by | sentence". The time is that of the latest turn of the
    evidence, else of the session.

    :param source: how such facts are said to be established (see :class:`memlab.records.Fact`).
    :returns: rows of :class:`memlab.records.Fact`, in the order of the annotations.
    :raises DataError: when the dataset has no observations.
    """
    told = data.annotations.filter(pl.col("kind") == "observation")
    if told.is_empty():
        raise DataError("the dataset has no observations; LoCoMo files carry them beside their sessions")
    turns = dict(data.turns.select("turn_id", "timestamp").iter_rows())
    starts = dict(data.sessions.select("session_id", "start").iter_rows())
    facts = []
    for row in told.iter_rows(named=True):
        times = [turns[turn] for turn in row["evidence"] if turns.get(turn) is not None]
        subject, predicate, obj = read_sentence(row["text"], row["speaker"])
        when = max(times, default=starts.get(row["session_id"]))
        facts.append(
            Fact(row["annotation_id"], row["scope"], subject, predicate, obj, source, row["evidence"], when, None,
                 row["speaker"], row["text"], row["session_id"])
        )  # fmt: skip
    return frame(Fact, facts)


def read_sentence(text: str, speaker: str) -> tuple[str, str, str]:
    """Read one sentence about a speaker as subject, predicate and object.

    >>> from memlab.knowledge.facts import read_sentence
    >>> read_sentence("Caroline is planning to adopt children.", "Caroline")
    ('Caroline', 'is planning to adopt', 'children')
    >>> read_sentence("Joanna's new screenplay is about a woman.", "Joanna")
    ("Joanna's new screenplay", 'is about', 'a woman')
    >>> read_sentence("Tim no longer works at the cafe.", "Tim")
    ('Tim', 'no longer works at', 'the cafe')
    """
    sentence = " ".join(text.split()).rstrip(".!")
    lead = re.match(rf"(?P<subject>{re.escape(speaker)}(?P<own>['’]s?)?)\s+(?P<rest>.+)$", sentence, re.I)
    if not lead:
        return speaker, "is described by", sentence
    subject, words = lead["subject"], lead["rest"].split()
    if words[0].lower() in {"and", "or"}:
        return speaker, "is described by", sentence
    if lead["own"]:
        at = next((i for i, w in enumerate(words) if w.lower() in _HELPERS), None)
        if not at:
            return speaker, "is described by", sentence
        subject, words = f"{subject} {' '.join(words[:at])}", words[at:]
    else:
        said = _REPORTING.match(" ".join(words))
        about = re.match(r"(?:she|he|they|" + re.escape(speaker) + r")\s+(.+)$", said["rest"], re.I) if said else None
        words = about[1].split() if about else words
    end = _verb_group(words)
    rest = " ".join(words[end:])
    return subject, " ".join(words[:end]), rest or sentence


def _verb_group(words: list[str]) -> int:
    """Count the words of the first verb group: adverbs, helpers, a main verb, "to" and its verb, a preposition."""
    at, verbs = 0, 0
    while at < len(words):
        word = words[at].lower().strip(",")
        helper = word in _HELPERS or _CONTRACTED.match(word)
        if not verbs and (helper or _ADVERBS.match(word)):
            at += 1
        elif word in _DETERMINERS:
            break
        elif not verbs:
            # After "is" a noun or an adjective is the object: "is a member of".
            if at and words[at - 1].lower() in {"is", "are", "was", "were"} and not re.search(r"(?:ing|ed)$", word):
                return at + (word in _AFTER_VERB)
            at, verbs = at + 1, 1
        elif word == "to" and at + 1 < len(words) and words[at - 1].lower() in _LINKING:
            at += 2
        elif word in _AFTER_VERB:
            return at + 1
        else:
            break
    return max(at, 1)
