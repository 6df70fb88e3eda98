"""What a statement means after the ones before it: what "it's Henrik now" is, and what each new statement ends."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache

import polars as pl

from memlab.knowledge._patterns import CHANGES, P, W
from memlab.knowledge._phrase import CHANGED, IT
from memlab.knowledge._reading import kinds, relations
from memlab.language.manner import bases
from memlab.language.people import PERSONS, PLURAL_PERSONS

_MANNERS = (
    ("no longer ", "end"), ("is no longer ", "end"), ("used to ", "was"),
    ("plans to ", "plan"), ("does not ", "not"), ("is not ", "not"),
    ("cannot ", "not"),
)  # fmt: skip
_APART = ("broke up with", "separated from", "is divorced from")
_WILD = frozenset({"gave up", "has left", "is off", *_APART})
_HOME = "home"
_VALUE_ONLY = frozenset(
    f"{verb} {place}".strip()
    for verb in ("is", "are", "runs", "starts", "opens", "closes", "meets")
    for place in ("", "on", "at")
) | {"is now", "moved to", "is due on"}
_RECENT = 6


@dataclass
class _Told:
    """A statement that may still hold."""

    id: str
    subject: str
    manner: str
    relation: str
    one: str | None
    predicate: str
    object: str
    words: frozenset[str]
    speaker: str | None
    context: frozenset[str]
    row: int
    fresh: bool = False
    closed: bool = False


@dataclass
class _Memory:
    """What was told in a scope; ``of`` finds it by the words of its value and attribute, and by its group."""

    told: list[_Told] = field(default_factory=list)
    of: dict[str, list[_Told]] = field(default_factory=dict)

    def add(self, one: _Told) -> None:
        """Remember a statement."""
        self.told.append(one)
        for key in {*one.words, *bases(_attribute(one.subject) or ""), f"group {one.one}"}:
            self.of.setdefault(key, []).append(one)

    def open(self) -> Iterator[_Told]:
        """Give what may still hold, the latest first."""
        return (one for one in reversed(self.told) if not one.closed)


@cache
def _table() -> dict[str, tuple[str, str | None]]:
    """Give the base and the group of each predicate of the table of relations, in every manner."""
    table: dict[str, tuple[str, str | None]] = {}
    for relation in relations():
        table[relation.says] = (relation.base, relation.one)
        table[relation.base] = (relation.base, relation.one)
    return table


def completed(facts: pl.DataFrame) -> pl.DataFrame:
    """Complete statements by the ones before them, and say what each ends.

    "It's Henrik now" is about the latest thing of which that can be said: a role where a name is told, a code of the
    same shape where a code is, a count where a number is. What nothing completes is left out. ``closes`` lists, for
    each statement, the facts that it ends by what is in ``relations.toml``: the old home by the new, the plan by what
    came of it, the two cats by the three, and by "gave up", "has left", "broke up with" whatever has that value.
    ``lasts`` is for how many days it is taken to hold unless it is told again (plans, stays, searches), ``tension`` the
    facts with which it does not go together though neither ends the other: "does not eat meat", "loves steak".

    :param facts: rows of :class:`memlab.records.Fact` with ``said_at``.
    :returns: the facts in their order, with ``closes``, ``lasts`` and ``tension``.
    """
    order = facts.with_row_index("row").sort("scope", "said_at", maintain_order=True)
    columns = ("row", "fact_id", "scope", "subject", "predicate", "object", "speaker", "text")
    changed: dict[int, tuple[str, str, str] | None] = {}
    closes: dict[int, list[str]] = {}
    lasts: dict[int, int] = {}
    tense: dict[str, list[str]] = {}
    scope, memory = None, _Memory()
    for row, fact_id, place, subject, predicate, obj, speaker, text in order.select(columns).iter_rows():
        if place != scope:
            scope, memory = place, _Memory()
        if not _ours(subject, predicate):
            continue
        if predicate == CHANGED:
            changed[row] = None
            doubts = _doubted(memory, speaker, obj)
            if doubts:
                closes[row] = doubts
                changed[row] = (speaker or "user", "tells that it is no longer so", obj)
            continue
        if subject == IT:
            whole = _resolved(memory, predicate, obj, speaker, text or "")
            changed[row] = whole
            if whole is None:
                continue
            if whole[1] in _WILD and whole[0] == IT:
                closes[row] = _ended(memory, whole[2])
                changed[row] = (speaker or "user", "no longer counts on", obj)
                continue
            subject, predicate, obj = whole
        told = _read(fact_id, subject, predicate, obj, speaker, text or "", row)
        # "Living in the city, I miss the woods" carries out no plan.
        told.fresh = bool(P["renewed"].search(text or "") or P["begun"].search(text or ""))
        ended = _closed(memory, told, predicate)
        if ended:
            closes[row] = ended
        for one in _against(memory, told):
            tense.setdefault(told.id, []).append(one.id)
            tense.setdefault(one.id, []).append(told.id)
        if days := _days(told):
            lasts[row] = days
        if told.manner not in ("end", "was"):
            memory.add(told)
    return _with(facts, changed, closes, lasts, tense)


_PLANNED = 120
_LIKING = frozenset({"like", "love", "prefer", "eat", "drink", "smoke", "take"})


def _doubted(memory: _Memory, speaker: str | None, sentence: str) -> list[str]:
    """Find what a sentence that is not understood seems to have ended: it names the value as gone, or what the value is
    of as new, or speaks of a move, another job, a parting."""
    words = frozenset(bases(sentence)) - _PLAIN
    gone, new = bool(P["gone"].search(sentence)), bool(P["renewed"].search(sentence))
    out = []
    groups = (f"group {group}" for group, cue in CHANGES.items() if cue.search(sentence))
    near = {one.row: one for key in (*words, *groups) for one in memory.of.get(key, ()) if not one.closed}
    for _, one in sorted(near.items(), reverse=True):
        of_speaker = one.subject == speaker or one.subject.startswith(f"{speaker}'s ")
        if not of_speaker and not frozenset(bases(one.subject)) & words:
            continue
        cue = CHANGES.get(one.one or "") if of_speaker else None
        attribute = frozenset(bases(_attribute(one.subject) or "")) - _PLAIN
        value = frozenset(bases(one.object)[-1:]) if (one.one or "").startswith("number of") else one.words - _PLAIN
        named = bool(value) and value <= words
        if (cue and cue.search(sentence)) or (gone and named) or (new and attribute and attribute <= words):
            one.closed = True
            out.append(one.id)
    return out


def _days(told: _Told) -> int | None:
    """Say for how long a statement is taken to hold when it is not told again: what is planned is done or dropped."""
    if told.manner == "plan":
        return _PLANNED
    return next((r.days for r in relations() if r.days and r.says == told.predicate), None)


def _against(memory: _Memory, new: _Told) -> Iterator[_Told]:
    """Find what stands in tension with a statement: "does not eat meat", "loves steak"."""
    if new.relation not in _LIKING or new.manner not in ("is", "not"):
        return
    for one in memory.open():
        if one.subject == new.subject and one.relation in _LIKING and {one.manner, new.manner} == {"is", "not"}:
            general, particular = (one, new) if one.manner == "not" else (new, one)
            if _covers(general, particular) or (general.words & particular.words and one.relation != new.relation):
                yield one


def _covers(general: _Told, particular: _Told) -> bool:
    """Whether what one names is of the kind that the other names: steak is meat."""
    return any(kinds().get(word, frozenset()) & particular.words for word in general.words)


def _ours(subject: str, predicate: str) -> bool:
    return subject == IT or predicate in _WILD or predicate in _VALUE_ONLY or _known(predicate) is not None


def _known(predicate: str) -> tuple[str, str, str | None] | None:
    """Give manner, base and group of a predicate of the table."""
    for lead, manner in _MANNERS:
        if predicate.startswith(lead):
            rest = predicate.removeprefix(lead)
            hit = _table().get(rest) or _table().get(f"is {rest}".strip())
            return (manner, *hit) if hit else None
    hit = _table().get(predicate)
    return ("is", *hit) if hit else None


def _read(fact_id: str, subject: str, predicate: str, obj: str, speaker: str | None, text: str, row: int) -> _Told:
    words = frozenset(bases(obj))
    context = frozenset(bases(text))
    known = _known(predicate)
    if (predicate in _VALUE_ONLY and known is None) or (predicate == "is" and _attribute(subject)):
        return _Told(fact_id, subject, "is", "is", "value", predicate, obj, words, speaker, context, row)
    if predicate in _WILD:
        manner = "is" if predicate in _APART else "end"
        return _Told(fact_id, subject, manner, predicate, None, predicate, obj, words, speaker, context, row)
    manner, base, one = known or ("is", predicate, None)
    if base == "be":
        # "Is vegan" and "is married" are told by one verb, and are two kinds of thing.
        told = (r.one for r in relations() if r.says == "is" and any(p.match(f"be {obj}") for p in r.read))
        one = next(told, "job" if obj == "retired" else None)
    if base in _COUNTING:
        one = _counted(obj) or one
    return _Told(fact_id, subject, manner, base, one, predicate, obj, words, speaker, context, row)


def _attribute(subject: str) -> str | None:
    """Give what of its owner a subject is: "gym code" of "Nora's gym code"."""
    _, found, rest = subject.rpartition("'s ")
    return rest if found else None


_COUNTING = frozenset({"have", "conduct", "run", "teach", "keep", "take"})
_NUMERAL = re.compile(r"^\d+$")


def _counted(obj: str) -> str | None:
    """Name what is counted: "two grey cats" and "3 cats" count cats."""
    words = list(bases(re.split(r"\s+(?:named|called|for|with|of|in|at|from|left|on|by)\b", obj)[0]))
    if len(words) > 1 and any(_NUMERAL.match(w) for w in words[:2]):
        return f"number of {words[-1]}"
    return None


def _shape(value: str) -> str:
    """Write a value as a pattern: digits, words, names, mixtures."""
    low = value.strip()
    if re.fullmatch(r"[A-ZÀ-Þ][\w'-]+(?:\s+[A-ZÀ-Þ][\w'-]+)*", low):
        return "name"
    if re.fullmatch(r"\d{1,2}[:.]\d\d", low):
        return "clock"
    if re.fullmatch(r"[\d ()+-]{7,}", low) and sum(c.isdigit() for c in low) > 6:
        return "phone"
    if re.fullmatch(r"\d+", low):
        return f"digits{len(low)}"
    if re.search(r"\d", low):
        return "code"
    return "word"


def _resolved(memory: _Memory, predicate: str, obj: str, speaker: str | None, text: str) -> tuple[str, str, str] | None:
    """Find what "it" is."""
    if predicate in _WILD:
        return (IT, predicate, obj) if any(_shares(one, obj) for one in memory.open()) else None
    context = frozenset(bases(text))
    if predicate == "now numbers":
        number, _, noun = obj.partition(" ")
        wanted = bases(noun)[-1:] if noun else ()
        for one in memory.open():
            kind = (one.one or "").removeprefix("number of ")
            counts = (one.one or "").startswith("number of ") and one.manner == "is"
            if counts and not wanted and not _near(number, one.object):
                continue
            if counts and (wanted[0] == kind if wanted else one.speaker == speaker):
                if number[0] in "+-":
                    before = next((int(word) for word in bases(one.object) if word.isdigit()), 0)
                    number = str(before + int(number))
                name = re.sub(r"^(?:only |about )?\S+\s+", "", one.object)
                return one.subject, one.predicate, f"{number} {noun if wanted else name}"
        return None
    if predicate == "is back":
        for one in memory.open():
            if one.manner == "not" and one.speaker == speaker and _shares(one, obj):
                return one.subject, next((r.says for r in relations() if r.base == one.relation), "has"), one.object
        return None
    if predicate == "came about":
        for one in memory.open():
            if one.manner == "plan" and one.one == obj and one.subject == speaker:
                return one.subject, next(r.says for r in relations() if r.base == one.relation), one.object
        return None
    value = obj
    old = None
    if both := re.match(r"not (?P<old>.+?) but (?P<new>.+)$", obj):
        old, value = both["old"], both["new"]
    shape = _shape(value)
    best = None
    for rank, one in enumerate(memory.open()):
        if old is not None and one.manner == "is" and re.search(rf"(?<![\w.]){re.escape(old)}(?![\w.])", one.object):
            mended = re.sub(rf"(?<![\w.]){re.escape(old)}(?![\w.])", value, one.object, count=1)
            return one.subject, one.predicate, mended
        if one.manner != "is" or one.relation not in ("is", "report to"):
            continue
        if old is not None:
            if one.object.endswith(old.strip(".")):
                # ".41, not .40": the end of a longer one.
                kept = one.object[: len(one.object) - len(old.strip("."))] if "." in (value[:1], old[:1]) else ""
                return one.subject, "is", f"{kept}{value.strip('.') if kept else value}"
            continue
        if _shape(one.object) != shape:
            continue
        attribute = frozenset(bases(_attribute(one.subject) or one.subject))
        near = bool(context & (attribute | (one.context - one.words)) - _PLAIN)
        role = one.relation == "report to" or bool(attribute & _ROLES)
        if near or (one.speaker == speaker and shape == "name" and (role or rank < _RECENT)):
            best = one
            break
    return (best.subject, "reports to" if best.relation == "report to" else "is", value) if best else None


_ROLES = frozenset(bases("boss manager supervisor coach landlord head lead chief director captain dentist therapist"))
_PLAIN = frozenset(
    bases("it is now the a an to and i my you me we be been have has new not that this of in on for from so they all")
)


def _near(number: str, value: str) -> bool:
    """Whether a bare number may count the same things as before: two cats, then three, not 174."""
    before = next((int(word) for word in bases(value) if word.isdigit()), 0)
    now = next((int(word) for word in bases(number) if word.isdigit()), before)
    return abs(now - before) <= max(3, before // 4)


def _shares(one: _Told, value: str) -> bool:
    words = frozenset(bases(value)) - _PLAIN
    return bool(words) and (
        words <= one.words | frozenset(bases(one.subject)) or (bool(one.words - _PLAIN) and one.words - _PLAIN <= words)
    )


def _ended(memory: _Memory, value: str) -> list[str]:
    """Close whatever has a value: "Lisbon is off"."""
    out = []
    for one in memory.open():
        if one.manner in ("is", "plan") and _shares(one, value):
            one.closed = True
            out.append(one.id)
    return out


def _closed(memory: _Memory, new: _Told, predicate: str) -> list[str]:
    """Close what a statement ends, and give its ids."""
    out: list[str] = []

    def close(one: _Told) -> None:
        one.closed = True
        out.append(one.id)

    if predicate in _WILD:
        for one in memory.open():
            partner = predicate in _APART and one.one in ("partner", "company", _HOME)
            mine = one.subject == new.subject or (predicate in _APART and new.words <= frozenset(bases(one.subject)))
            if (
                mine
                and one.manner in ("is", "plan")
                and (predicate not in _APART or partner)
                and _shares(one, new.object)
            ):
                close(one)
        job = [one for one in memory.told if one.id in out and one.one == "job"]
        if predicate == "has left" and (job or not out):
            _close_bosses(memory, new.subject, close)
        if predicate in _APART and not out:
            # By a name that is not known here: one parts from whom one is with.
            for one in memory.open():
                if one.subject == new.subject and one.manner == "is" and one.one == "partner":
                    close(one)
        return out
    if new.manner == "end" and new.one == "job":
        _close_bosses(memory, new.subject, close)
    for one in memory.open():
        scheduled = new.predicate in _SCHEDULES and _timed(one.object) and frozenset(bases(new.subject)) <= one.words
        if scheduled and one.manner == "is" and one.words != new.words:
            close(one)
            continue
        if one.subject != new.subject and not (new.one == "value" and one.one == "value" and _same_attribute(one, new)):
            continue
        same = one.words == new.words or bool(
            one.words and new.words and (one.words <= new.words or new.words <= one.words)
        )
        if new.manner == "end":
            all_of_it = new.object == "the job" and one.one in ("job", "role", "post")
            if one.manner == "is" and (all_of_it or (one.relation == new.relation and same)):
                close(one)
        elif new.manner == "not":
            if (one.manner in ("is", "plan") and one.relation == new.relation and _shares(one, new.object)) or (
                one.manner == "is"
                and one.relation in _LIKING
                and new.relation in ("eat", "drink")
                and _covers(new, one)
            ):
                close(one)
        elif new.manner == "is":
            if (
                (one.manner == "not" and one.relation == new.relation and same)
                or (
                    one.manner == "plan"
                    and (
                        (one.one == new.one and bool(one.one) and new.fresh) or (one.relation == new.relation and same)
                    )
                )
                or (one.manner == "is" and new.one and one.one == new.one and not _also(one, new, same))
                or (new.one == _HOME and one.relation == "look for" and one.words & _HOMES)
                or (new.object == "retired" and one.manner == "is" and one.one in ("job", "post", "role"))
            ):
                close(one)
        elif (new.manner == "plan" and new.one == _HOME and one.relation == "look for" and one.words & _HOMES) or (
            new.manner == "plan" and one.manner == "plan" and one.one and one.one == new.one and not same
        ):
            close(one)
    return out


def _close_bosses(memory: _Memory, subject: str, close: Callable[[_Told], None]) -> None:
    """Who leaves a job leaves its boss."""
    for one in memory.open():
        attribute = frozenset(bases(_attribute(one.subject) or ""))
        if one.manner == "is" and (
            (one.subject == subject and one.one in ("boss", "post"))
            or (one.subject.startswith(f"{subject}'s ") and attribute & _AT_WORK)
        ):
            close(one)


_AT_WORK = frozenset(bases("boss manager supervisor lead head chief department line"))
_HOMES = frozenset(
    bases(
        "flat place house room apartment spot roommate roommates roomates flatmate flatmates housemate home somewhere"
    )
)


def _also(one: _Told, new: _Told, same: bool) -> bool:
    """Whether two values of one group stand beside each other."""
    if one.one == "value":
        attribute = (_attribute(new.subject) or "").split()
        # Of sisters one has several; of bosses one.
        return same or (bool(attribute) and attribute[-1].lower() in (PERSONS | PLURAL_PERSONS) - _SINGLE_ROLES)
    return same


_SINGLE_ROLES = W["single_roles"]


def _same_attribute(one: _Told, new: _Told) -> bool:
    """Whether "door code" and "server room door" are one thing: a word in common, and values alike."""
    a, b = _attribute(one.subject), _attribute(new.subject)
    if (a is None) != (b is None):
        return False
    owners = [frozenset(bases(told.subject.removesuffix(str(name)))) for told, name in ((one, a), (new, b))]
    if a is not None and not (owners[0] <= owners[1] or owners[1] <= owners[0]):
        return False
    first, second = _named(a or one.subject), _named(b or new.subject)
    if first <= second or second <= first:
        return _shape(one.object)[:5] == _shape(new.object)[:5]
    return (
        bool(first & second - _PLAIN)
        and _shape(one.object) == _shape(new.object)
        and _pattern(one.object) == _pattern(new.object)
    )


_SCHEDULES = frozenset(
    {"is on", "are on", "is at", "are at", "moved to", "is due on", "runs at", "runs on", "starts at", "meets on"}
)
_TIMED = re.compile(r"\b(?:mon|tues|wednes|thurs|fri|satur|sun)days?\b|\d[:.]\d\d|\b\d ?[ap]m\b", re.I)


def _timed(value: str) -> bool:
    return bool(_TIMED.search(value))


def _named(attribute: str) -> frozenset[str]:
    words = frozenset(bases(attribute))
    for alike in (_CALLS, _NETWORK):
        words = words - alike | {min(alike)} if words & alike else words
    return words


_CALLS = frozenset(bases("phone mobile cell telephone number"))
_NETWORK = frozenset(bases("wifi router network password"))


def _pattern(value: str) -> str:
    return re.sub(r"[a-z]", "a", re.sub(r"[A-Z]", "A", re.sub(r"\d", "9", value)))


def _with(
    facts: pl.DataFrame,
    changed: dict[int, tuple[str, str, str] | None],
    closes: dict[int, list[str]],
    lasts: dict[int, int],
    tense: dict[str, list[str]],
) -> pl.DataFrame:
    rows = pl.DataFrame(
        [(row, *(whole or (None, None, None))) for row, whole in changed.items()],
        schema={"row": pl.UInt32(), "s": pl.String(), "p": pl.String(), "o": pl.String()}, orient="row",
    )  # fmt: skip
    ends = pl.DataFrame(list(closes.items()), schema={"row": pl.UInt32(), "closes": pl.List(pl.String())}, orient="row")
    ends = ends.join(
        pl.DataFrame(list(lasts.items()), schema={"row": pl.UInt32(), "lasts": pl.Int32()}, orient="row"), on="row",
        how="full", coalesce=True,
    )  # fmt: skip
    against = pl.DataFrame(
        list(tense.items()), schema={"fact_id": pl.String(), "tension": pl.List(pl.String())}, orient="row"
    )
    numbered = facts.with_row_index("row").join(against, on="fact_id", how="left", maintain_order="left")
    lost = [row for row, whole in changed.items() if whole is None]
    return (
        numbered.join(rows, on="row", how="left", maintain_order="left")
        .join(ends, on="row", how="left", maintain_order="left")
        .with_columns(
            subject=pl.coalesce("s", "subject"),
            predicate=pl.coalesce("p", "predicate"),
            object=pl.coalesce("o", "object"),
        )
        .filter(~pl.col("row").is_in(lost))
        .drop("row", "s", "p", "o")
    )
