"""What a statement means after the ones before it: what "it's Henrik now" is, and what each new statement ends."""

from __future__ import annotations

import re
from collections.abc import Iterator

import polars as pl

from memlab.knowledge._patterns import P, W
from memlab.knowledge._phrase import CHANGED, IT
from memlab.knowledge._relations import kinds, relations
from memlab.knowledge._told import (
    PARTED,
    PLAIN,
    PLANNED,
    SCHEDULES,
    WILD,
    Told,
    attribute_of,
    read,
    shape,
    shares,
    still_open,
)
from memlab.language.manner import bases
from memlab.language.people import PERSONS, PETS, PLURAL_PERSONS

_TIMED = re.compile(r"\b(?:mon|tues|wednes|thurs|fri|satur|sun)days?\b|\d[:.]\d\d|\b\d ?[ap]m\b", re.I)
_LIKING = frozenset({"like", "love", "prefer", "eat", "drink", "smoke", "take"})
_ROLES = frozenset(bases("boss manager supervisor coach landlord head lead chief director captain dentist therapist"))
_AT_WORK = frozenset(bases("boss manager supervisor lead head chief department line"))
_PLANNED_DAYS = 120
_RECENT = 6


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
    scope, memory = None, list[Told]()
    for row, fact_id, place, subject, predicate, obj, speaker, text in order.select(columns).iter_rows():
        if place != scope:
            scope, memory = place, []
        if subject == IT and predicate in (CHANGED, "is off"):
            ended = _doubted(memory, speaker, obj) if predicate == CHANGED else _called_off(memory, obj)
            over = "tells that it is no longer so" if predicate == CHANGED else "no longer counts on"
            changed[row] = (speaker or "user", over, obj) if ended else None
            closes |= {row: _close(ended)} if ended else {}
            continue
        if subject == IT and predicate in ("is now", "now numbers"):
            find = _replaced if predicate == "is now" else _recounted
            changed[row] = whole = find(memory, obj, speaker, text or "")
            if whole is None:
                continue
            subject, predicate, obj = whole
        told = read(fact_id, subject, predicate, obj, speaker, text or "")
        if told is None:
            lasts |= {row: _PLANNED_DAYS} if predicate.startswith(PLANNED) else {}
            continue
        if ended := _ended(memory, told):
            closes[row] = _close(ended)
        for one in _against(memory, told):
            tense.setdefault(told.id, []).append(one.id)
            tense.setdefault(one.id, []).append(told.id)
        if days := _days(told):
            lasts[row] = days
        if told.manner not in ("end", "was"):
            memory.append(told)
    return _with(facts, changed, closes, lasts, tense)


def _close(ended: list[Told]) -> list[str]:
    for one in ended:
        one.closed = True
    return [one.id for one in ended]


def _doubted(memory: list[Told], speaker: str | None, sentence: str) -> list[Told]:
    """Find what a sentence that is not understood seems to have ended: it names the value as gone, or what the value is
    of as new."""
    words = frozenset(bases(sentence)) - PLAIN
    gone, new = bool(P["gone"].search(sentence)), bool(P["renewed"].search(sentence))
    out = []
    for one in still_open(memory):
        of_speaker = one.subject == speaker or one.subject.startswith(f"{speaker}'s ")
        if not of_speaker and not frozenset(bases(one.subject)) & words:
            continue
        attribute, value = one.attribute - PLAIN, one.words - PLAIN
        if (gone and value and value <= words) or (new and attribute and attribute <= words):
            out.append(one)
    return out


def _called_off(memory: list[Told], value: str) -> list[Told]:
    """Find whatever has a value: "Lisbon is off"."""
    return [one for one in still_open(memory) if one.manner in ("is", "plan") and shares(one, value)]


def _days(told: Told) -> int | None:
    """Say for how long a statement is taken to hold when it is not told again: what is planned is done or dropped."""
    if told.manner == "plan":
        return _PLANNED_DAYS
    return next((r.days for r in relations() if r.days and r.says == told.predicate), None)


def _against(memory: list[Told], new: Told) -> Iterator[Told]:
    """Find what stands in tension with a statement: "does not eat meat", "loves steak"."""
    if new.relation not in _LIKING or new.manner not in ("is", "not"):
        return
    for one in still_open(memory):
        if one.subject == new.subject and one.relation in _LIKING and {one.manner, new.manner} == {"is", "not"}:
            general, particular = (one, new) if one.manner == "not" else (new, one)
            if _covers(general, particular) or (general.words & particular.words and one.relation != new.relation):
                yield one


def _covers(general: Told, particular: Told) -> bool:
    """Whether what one names is of the kind that the other names: steak is meat."""
    return any(kinds().get(word, frozenset()) & particular.words for word in general.words)


def _replaced(memory: list[Told], obj: str, speaker: str | None, text: str) -> tuple[str, str, str] | None:
    """Find of what "it's Henrik now", "4417, not 4471" is the new value."""
    if both := re.match(r"not (?P<old>.+?) but (?P<new>.+)$", obj):
        old = re.compile(rf"(?<![\w.]){re.escape(both['old'])}(?![\w.])")
        for one in still_open(memory):
            if one.manner == "is" and old.search(one.object):
                return one.subject, one.predicate, old.sub(both["new"], one.object, count=1)
        return None
    wanted, context = shape(obj), frozenset(bases(text))
    for rank, one in enumerate(still_open(memory)):
        if one.manner != "is" or one.relation not in ("is", "report to") or shape(one.object) != wanted:
            continue
        boss = one.relation == "report to"
        attribute = one.attribute or frozenset(bases(one.subject))
        near = context & (attribute | (one.context - one.words)) - PLAIN
        role = boss or attribute & _ROLES or rank < _RECENT
        if near or (one.speaker == speaker and wanted == "name" and role):
            return one.subject, "reports to" if boss else "is", obj
    return None


def _recounted(memory: list[Told], obj: str, speaker: str | None, _: str) -> tuple[str, str, str] | None:
    """Find of what "so three", "three cats", "+1 cat" is the new number."""
    number, _, noun = obj.partition(" ")
    wanted = bases(noun)[-1:]
    for one in still_open(memory):
        _, counts, kind = (one.one or "").partition("number of ")
        if one.manner != "is" or not counts:
            continue
        before = _number(one.object)
        now = before + int(number) if number[0] in "+-" else _number(number)
        # A bare number counts the same things where it is near: two cats, then three, not 174.
        bare = not wanted and one.speaker == speaker and abs(now - before) <= max(3, before // 4)
        if bare or kind in wanted:
            name = noun or re.sub(r"^(?:only |about )?\S+\s+", "", one.object)
            return one.subject, one.predicate, f"{now if number[0] in '+-' else number} {name}"
    return None


def _number(text: str) -> int:
    return next((int(word) for word in bases(text) if word.isdigit()), 0)


def _ended(memory: list[Told], new: Told) -> list[Told]:
    """Find what a statement ends."""
    if new.predicate in WILD:
        of = [one for one in still_open(memory) if one.subject == new.subject and one.manner in ("is", "plan")]
        if new.predicate == PARTED:
            # By a name that is not known here too: one parts from whom one is with.
            known = [one for one in of if one.one in ("partner", "company", "home") and shares(one, new.object)]
            return known or [one for one in of if one.one == "partner" and one.manner == "is"]
        out = [one for one in of if shares(one, new.object)]
    else:
        out = [one for one in still_open(memory) if _ends(new, one)]
    left = new.predicate == "has left" and any(one.one == "job" for one in out)
    if left or (new.manner == "end" and new.one == "job"):
        # Who leaves a job leaves its boss.
        out += [one for one in still_open(memory) if one.manner == "is" and one not in out and _boss(one, new.subject)]
    return out


def _boss(one: Told, subject: str) -> bool:
    return (one.subject == subject and one.one == "boss") or (
        one.subject.startswith(f"{subject}'s ") and bool(one.attribute & _AT_WORK)
    )


def _ends(new: Told, one: Told) -> bool:
    """Whether a statement ends one before it."""
    if new.predicate in SCHEDULES and _TIMED.search(one.object) and frozenset(bases(new.subject)) <= one.words:
        return one.manner == "is" and one.words != new.words
    if one.subject != new.subject and not (new.one == one.one == "value" and _same_attribute(one, new)):
        return False
    same, alike = new.same(one), one.relation == new.relation
    if new.manner == "end":
        all_of_it = new.object == "the job" and one.one in ("job", "role")
        return one.manner == "is" and (all_of_it or (alike and same))
    if new.manner == "not":
        liked = one.relation in _LIKING and new.relation in ("eat", "drink") and _covers(new, one)
        return (one.manner in ("is", "plan") and alike and shares(one, new.object)) or (one.manner == "is" and liked)
    if new.manner == "plan":
        return one.manner == "plan" and bool(one.one) and one.one == new.one and not same
    if new.manner != "is" or one.manner == "not":
        return new.manner == "is" and alike and same
    group = bool(new.one) and one.one == new.one
    if one.manner == "plan":
        return (group and new.fresh) or (alike and same)
    retired = new.object == "retired" and one.one in ("job", "role")
    return one.manner == "is" and (retired or (group and not _beside(one, new, same)))


def _beside(one: Told, new: Told, same: bool) -> bool:
    """Whether two values of one group stand beside each other: of sisters one has several, of bosses one."""
    last = attribute_of(new.subject).rpartition(" ")[2].lower()
    several = (PERSONS | PLURAL_PERSONS | PETS) - W["single_roles"]
    return same or (one.one == "value" and last in several)


def _same_attribute(one: Told, new: Told) -> bool:
    """Whether "code" and "door code" are one thing: one names the other, and values are alike."""
    first, second = one.attribute, new.attribute
    if bool(first) != bool(second):
        return False
    if first:
        owners = [frozenset(bases(told.subject.removesuffix(attribute_of(told.subject)))) for told in (one, new)]
        if not (owners[0] <= owners[1] or owners[1] <= owners[0]):
            return False
    else:
        first, second = frozenset(bases(one.subject)), frozenset(bases(new.subject))
    return (first <= second or second <= first) and shape(one.object)[:5] == shape(new.object)[:5]


def _with(
    facts: pl.DataFrame,
    changed: dict[int, tuple[str, str, str] | None],
    closes: dict[int, list[str]],
    lasts: dict[int, int],
    tense: dict[str, list[str]],
) -> pl.DataFrame:
    """Write what was found beside the facts, and leave out what nothing completed."""

    def column(name: str, values: dict, key: str, kind: pl.DataType) -> pl.DataFrame:
        dtype = pl.String() if key == "fact_id" else pl.UInt32()
        return pl.DataFrame({key: list(values), name: list(values.values())}, schema={key: dtype, name: kind})

    numbered = facts.with_row_index("row")
    for name, values, key, kind in (
        ("tension", tense, "fact_id", pl.List(pl.String())),
        ("whole", {row: whole for row, whole in changed.items() if whole}, "row", pl.List(pl.String())),
        ("closes", closes, "row", pl.List(pl.String())),
        ("lasts", lasts, "row", pl.Int32()),
    ):
        numbered = numbered.join(column(name, values, key, kind), on=key, how="left", maintain_order="left")
    told = {
        name: pl.coalesce(pl.col("whole").list.get(n), name)
        for n, name in enumerate(("subject", "predicate", "object"))
    }
    lost = [row for row, whole in changed.items() if whole is None]
    return numbered.with_columns(**told).filter(~pl.col("row").is_in(lost)).drop("row", "whole")
