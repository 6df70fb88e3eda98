"""A person's memory on a page: what is stable, what is recent, and what was found for a question."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta

import polars as pl

from memlab.errors import DataError
from memlab.knowledge import _phrases, _text
from memlab.knowledge.confidence import need_scored
from memlab.language.people import PERSONS, PLURAL_PERSONS
from memlab.language.statements import entries, wordlist
from memlab.records import TIMESTAMP

SECTIONS = ("stable", "recent", "found")
_LONG_NAME = 5
_STATEMENT = ("scope", "subject_key", "predicate_key", "object_key")
_SHOWN = {
    "section": pl.String(), "fact_id": pl.String(), "statement": pl.String(), "confidence": pl.Float64(),
    "since": TIMESTAMP, "last_access": TIMESTAMP, "n_heard": pl.Int32(), "evidence": pl.List(pl.String()),
}  # fmt: skip
_BEING = {"is", "are", "am", "has", "have"}
_SKIPPED = {"also", "still", "always", "often"}
# Said in the present tense too, but of a moment or of what is to come.
_PASSING = wordlist("passing")
_WHO_ONE_IS = tuple(frozenset(words.split()) for words in entries("who_one_is"))


@dataclass(frozen=True)
class Profile:
    """What is known of a person at a time.

    :param person: the name as the facts have it.
    :param frame: ``section`` (``stable``, ``recent``, ``found``), ``fact_id``, ``statement``, ``confidence``, ``since``
        (when it was first said), ``last_access`` (when last), ``n_heard`` (at how many times) and ``evidence`` (turns
        of all its statements); in the order of sections.
    """

    person: str
    now: datetime
    frame: pl.DataFrame

    def to_markdown(self) -> str:
        """Write the profile as Markdown, a section for each that has facts."""
        lines = [f"# {self.person} on {self.now:%-d %B %Y}"]
        for section in SECTIONS:
            its = self.frame.filter(section=section)
            if its.height:
                lines += ["", f"## {section.capitalize()}", ""]
            for row in its.iter_rows(named=True):
                since = f"{row['since']:%-d %b %Y}" if row["since"] else "an unknown day"
                heard = f", heard {row['n_heard']} times" if row["n_heard"] > 1 else ""
                turns = ", ".join(row["evidence"]) or "no evidence"
                lines.append(f"- {row['statement']} ({row['confidence']:.2f}, since {since}{heard}; {turns})")
        return "\n".join(lines if self.frame.height else [*lines, "", "Nothing is known."]) + "\n"

    def _repr_markdown_(self) -> str:
        return self.to_markdown()


def profile(
    facts: pl.DataFrame,
    *,
    person: str,
    now: datetime,
    found: pl.DataFrame | None = None,
    recent_days: float = 30,
    most: int = 10,
) -> Profile:
    """Gather what is known of a person and still holds, no statement twice.

    - *stable*: heard at two times or more; or older than ``recent_days`` and either of a relation with one value at a
      time, or said as a state ("is a nurse", "loves hiking", not "went", "is planning"). Who the person is comes first
      (:func:`standing`), then by confidence, then what was heard more often, then the latest;
    - *recent*: heard in the last ``recent_days``, the latest first;
    - *found*: what :func:`memlab.knowledge.search.search_facts` found, in its order, where it is about the person or
      names them.

    A fact stands in the first section that it belongs to, also when that is full.

    :param facts: ``Resolved.facts`` of one scope, scored at ``now`` by :func:`memlab.knowledge.confidence.score`.
    :param person: the name, or a part of it that only one person has.
    :param now: the present; what was said later is not known yet.
    :param found: the result of recall for one question.
    :param most: facts in each section.
    :raises DataError: for missing columns, facts of several scopes, or a person whom no fact is about.

    >>> from datetime import datetime, UTC
    >>> from memlab.knowledge import confidence, resolve
    >>> from memlab.knowledge.profile import profile
    >>> from memlab.records import Fact, frame
    >>> march, june = datetime(2026, 3, 1, tzinfo=UTC), datetime(2026, 6, 1, tzinfo=UTC)
    >>> facts = resolve(frame(Fact, [
    ...     Fact("f1", "u", "Ann", "lives in", "Oslo", "stated", ["u/s1/1"], march),
    ...     Fact("f2", "u", "Ann", "bought", "a kayak", "stated", ["u/s9/4"], june),
    ... ])).facts
    >>> page = profile(confidence.score(facts, now=june), person="Ann", now=june)
    >>> page.frame.select("section", "statement").rows()
    [('stable', 'Ann lives in Oslo'), ('recent', 'Ann bought a kayak')]
    """
    need_scored(facts, "status", "subject_key", "cardinality")
    scopes = facts["scope"].unique(maintain_order=True).to_list()
    if len(scopes) > 1:
        raise DataError(f"facts of {len(scopes)} scopes ({scopes[0]}, {scopes[1]} …); a profile is of one")
    phrases = _phrases.collect(facts, None, None)
    place = _place(phrases, facts, person)
    joined = zip(phrases.links, facts["subject"], strict=True)
    own = pl.Series([_is_about(links, place, subject, phrases) for links, subject in joined], dtype=pl.Boolean)
    names = pl.Series([any(linked == place for linked, _ in links) for links in phrases.links], dtype=pl.Boolean)
    begin = now - timedelta(days=recent_days)
    state = pl.col("predicate").map_elements(is_state, return_dtype=pl.Boolean)
    lasting = (pl.col("valid_from") < begin) & ((pl.col("cardinality") == "one") | state)
    rows = facts.with_columns(
        evidence=_evidence(facts), n_heard=pl.col("accesses").list.n_unique().cast(pl.Int32), own=own, names=names
    ).filter(pl.col("status") == "active", pl.col("valid_from") <= now)
    place_of = pl.struct("predicate", "object", "subject").map_elements(lambda f: standing(**f), return_dtype=pl.Int64)
    by = [-place_of, "confidence", "n_heard", "last_access"]
    sections = {
        "stable": rows.filter("own", (pl.col("n_heard") > 1) | lasting).sort(
            by, descending=True, nulls_last=True, maintain_order=True
        ),
        "recent": rows.filter("own", pl.col("last_access") >= begin).sort(
            "last_access", descending=True, maintain_order=True
        ),
    }
    if found is not None:
        order = found.sort("rank").select("fact_id")
        sections["found"] = order.join(rows.filter("names"), on="fact_id", maintain_order="left").select(rows.columns)
    listed = pl.concat(its.with_columns(section=pl.lit(name)) for name, its in sections.items())
    listed = listed.unique("fact_id", keep="first", maintain_order=True)
    listed = listed.unique(_STATEMENT, keep="first", maintain_order=True)
    listed = listed.filter(pl.int_range(pl.len()).over("section") < most)
    listed = listed.with_columns(statement=_phrases.statement(), since="valid_from")
    return Profile(phrases.names[place], now, listed.select(pl.col(n).cast(t) for n, t in _SHOWN.items()))


def is_state(predicate: str) -> bool:
    """Say whether a predicate tells a lasting state, by its form: the present, not progressive or perfect.

    >>> from memlab.knowledge.profile import is_state
    >>> [is_state(words) for words in ("is", "loves", "has two", "is planning to", "went to", "has visited")]
    [True, True, True, False, False, False]
    """
    words = predicate.casefold().split()
    while words and (words[0] in _SKIPPED or words[0].endswith("ly")):
        words = words[1:]
    if not words or {words[0], predicate.casefold()} & _PASSING:
        return False
    if words[0] in _BEING:
        return not re.search(r"(?:ing|ed|en)$", " ".join(words[1:2])) and words[1:2] not in (["just"], ["recently"])
    return bool(re.search(r"[^s]s$", words[0]))


def standing(predicate: str, object: str, subject: str = "") -> int:
    """Place a statement by what it tells of a person: name, age, home, work, family, studies … and the rest behind.

    >>> from memlab.knowledge.profile import standing
    >>> told = [("loves", "the spa"), ("has a sister named", "Ida"), ("works at", "Acme"), ("lives in", "Oslo")]
    >>> [obj for _, obj in sorted(told, key=lambda words: standing(*words))]
    ['Oslo', 'Acme', 'Ida', 'the spa']
    """
    own = subject.casefold().partition("'s ")[2]
    words = set(re.findall(r"[\w-]+", predicate.casefold()))
    being = words <= _BEING | _SKIPPED
    if own:
        # "Ann's boss is Bo" tells of Ann's work; what else her boss does, less.
        words = set(re.findall(r"[\w-]+", own)) if being else set()
    elif being:
        # "is single", "has a degree": the object tells the relation; "is a nurse" is what somebody is.
        words |= set(re.findall(r"[\w-]+", object.casefold())[:3])
    # "Has a sister named Ida" tells of family, not a name.
    people = words & (PERSONS | PLURAL_PERSONS)
    kinds = (n for n, kind in enumerate(_WHO_ONE_IS) if (people or words) & kind)
    return next(kinds, len(_WHO_ONE_IS) - (words & _BEING == {"is"} and bool(re.match(r"an? ", object))))


def people(facts: pl.DataFrame, most: int = 10) -> list[str]:
    """List the subjects that most facts are about, for a message or a menu; what is longer than a name is left out."""
    named = facts.filter(pl.col("subject").str.count_matches(r"\S+") < _LONG_NAME)
    owners = named.group_by("subject", maintain_order=True).len().sort("len", descending=True, maintain_order=True)
    return owners["subject"].head(most).to_list()


def about(facts: pl.DataFrame, *, person: str | None = None, predicate: str | None = None) -> pl.DataFrame:
    """Keep the facts about a person or what is theirs, and of a relation ("work" finds "works at").

    :param facts: ``Resolved.facts``.
    :raises DataError: when no fact is left.
    """
    if person is not None:
        name = _phrases.tokens(person)
        subjects = facts.select(pl.concat_str("subject", "subject_key", separator=" "))["subject"]
        its = pl.Series([bool(name) and _phrases.holds(subject, name) for subject in subjects], dtype=pl.Boolean)
        if not its.any():
            raise DataError(f"no fact is about {person!r}; there are facts about {', '.join(people(facts))}")
        facts = facts.filter(its)
    if predicate is not None:
        relation = f" {_text.relation(predicate)} "
        rows = facts.select("predicate_key", "predicate").iter_rows()
        its = pl.Series([relation in f" {key} | {_text.relation(words)} " for key, words in rows], dtype=pl.Boolean)
        if not its.any():
            common = facts["predicate"].value_counts(sort=True)["predicate"].head(10).to_list()
            raise DataError(f"no fact has the relation {predicate!r}; among those that there are: {', '.join(common)}")
        facts = facts.filter(its)
    return facts


def _place(phrases: _phrases.Phrases, facts: pl.DataFrame, person: str) -> int:
    subjects = {place for links in phrases.links for place, kind in links if kind == "subject"}
    places = [place for place in phrases.named(_phrases.tokens(person)) if place in subjects]
    if len(places) > 1:
        raise DataError(f"{person!r} may be {', '.join(phrases.names[place] for place in places)}; give the whole name")
    if not places:
        raise DataError(f"no fact is about {person!r}; there are facts about {', '.join(people(facts)) or 'nobody'}")
    return places[0]


def _is_about(links: list[tuple[int, str]], place: int, subject: str, phrases: _phrases.Phrases) -> bool:
    """Say whether a fact is about a person or what is theirs ("Ann's screenplay", not "Ann Lee")."""
    if (place, "subject") in links:
        return True
    if not re.search(r"['’]s?\s|^(?:my|our)\s", subject, re.I):
        return False
    owner = next((phrases.names[linked] for linked, kind in links if kind == "subject"), "")
    name = _phrases.tokens(phrases.names[place])
    return _phrases.tokens(owner)[: len(name)] == name


def _evidence(facts: pl.DataFrame) -> pl.Series:
    """Give each fact the evidence of all its statements."""
    head = facts.select(head=pl.coalesce(pl.col("repeats"), pl.col("fact_id")), evidence="evidence")
    turns = head.explode("evidence").drop_nulls().group_by("head", maintain_order=True)
    every = turns.agg(every=pl.col("evidence").unique(maintain_order=True))
    joined = facts.select("fact_id").join(every, left_on="fact_id", right_on="head", how="left", maintain_order="left")
    return joined.select(evidence=pl.coalesce("every", facts["evidence"]))["evidence"]
