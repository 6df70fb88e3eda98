"""What a model proposed, as proposals over a memory; what is wrong with one by itself, without
asking again."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from hashlib import blake2b
from typing import Any

from memlab.questions.bundles import Bundle
from memlab.questions.proposal_prompts import ProposedQuestion
from memlab.questions.question_kinds import KINDS
from memlab.text.analysis import tokenize

ABSENT = "abstention"
_NAMES_ITS_ITEMS = frozenset({"comparing", "ordering", ABSENT})
"""Kinds whose questions name what may be the answer."""
NOT_THERE = "it cites messages that are not there"
NO_EVIDENCE = "it names no evidence"
ONE_SESSION = "its evidence lies in one session, and its kind needs several"
SEVERAL_SESSIONS = "its evidence lies in several sessions, and its kind needs one"
NO_STALE = "it names no message that no longer holds"
GIVEN_AWAY = "the question gives its answer away"
REPEATED = "another proposal asks the same"
SAME_WORDS, SIMILAR_WORDS = 0.9, 0.75
"""Shares of equal content words from which two questions are the same, on any and on equal
evidence."""


@dataclass(frozen=True)
class Proposal:
    """A question that a model proposed, and what was found when it was asked again.

    :param evidence: ids of turns; ``reasons`` says of each why it is needed.
    :param asked_at: when the question is asked: with the last message of the memory.
    :param checks: what was asked again and found.
    """

    query_id: str
    scope: str
    kind: str
    text: str
    answer: str
    evidence: tuple[str, ...]
    reasons: tuple[str, ...]
    stale: tuple[str, ...]
    distractors: tuple[str, ...]
    asked_at: datetime | None
    checks: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_absent(self) -> bool:
        """Say whether the memory does not hold the answer."""
        return self.kind == ABSENT

    def with_check(self, name: str, found: Any) -> Proposal:
        """Copy it with what a check found."""
        return replace(self, checks={**self.checks, name: found})

    def without(self, turn: str) -> Proposal:
        """Copy it without an item of its evidence."""
        pairs = zip(self.evidence, self.reasons, strict=True)
        kept = [pair for pair in pairs if pair[0] != turn]
        evidence, reasons = zip(*kept, strict=True)
        return replace(self, evidence=evidence, reasons=reasons)


class Dropped:
    """Proposals that were dropped, by the reason.

    :param examples: of each reason, the questions.
    """

    def __init__(self) -> None:
        self.examples: dict[str, list[str]] = defaultdict(list)

    def add(self, reason: str, question: str) -> None:
        """Count a question that is dropped."""
        self.examples[reason].append(question)

    @property
    def counts(self) -> dict[str, int]:
        """How many were dropped for each reason, the most frequent first."""
        found = Counter[str]()
        for reason in sorted(self.examples):
            found[reason] = len(self.examples[reason])
        return dict(found.most_common())


def read_proposal(
    stated: ProposedQuestion, bundle: Bundle, asked_at: datetime | None
) -> Proposal | None:
    """Read a proposed question; ``None`` where it cites messages that its bundle has not.

    A message that is evidence is neither stale nor a distractor.
    """
    reasons = dict[int, str]()
    for cited in stated.evidence:
        reasons.setdefault(cited.id, cited.why)
    numbers = {*reasons, *stated.stale, *stated.distractors}
    if not numbers <= {*range(1, len(bundle.turns) + 1)}:
        return None
    near = [*stated.distractors]
    if stated.kind == ABSENT:
        near += reasons
        reasons = {}
    evidence = sorted(reasons)
    stale = sorted({*stated.stale} - {*evidence})
    others = sorted({*near} - {*evidence} - {*stale})
    cited_turns = _turns_at(evidence, bundle)
    named = "\x1f".join((stated.kind, stated.question, *cited_turns))
    digest = blake2b(named.encode("utf-8", "surrogatepass"), digest_size=4).hexdigest()
    return Proposal(
        query_id=f"{bundle.scope}/p-{digest}",
        scope=bundle.scope,
        kind=stated.kind,
        text=stated.question,
        answer=stated.answer,
        evidence=cited_turns,
        reasons=tuple(map(reasons.__getitem__, evidence)),
        stale=_turns_at(stale, bundle),
        distractors=_turns_at(others, bundle),
        asked_at=asked_at,
        checks={"reworded, says the model": stated.reworded},
    )


def _turns_at(numbers: Iterable[int], bundle: Bundle) -> tuple[str, ...]:
    return tuple(bundle.turns[number - 1] for number in numbers)


def of_one_scope(proposals: Iterable[Proposal], scope: str) -> list[Proposal]:
    """Give the proposals over one memory."""
    return [each for each in proposals if each.scope == scope]


def screen(
    proposals: Iterable[Proposal],
    dropped: Dropped,
    *,
    session_of: Mapping[str, str],
    language: str,
) -> list[Proposal]:
    """Keep the proposals that have nothing wrong with them by themselves; each question once."""
    kept = list[Proposal]()
    words_of = dict[str, frozenset[str]]()
    for each in proposals:
        asked, answered = tokenize([each.text, short_answer(each.answer)], language=language)
        words_of[each.query_id] = frozenset(asked)
        fault = _find_fault(each, frozenset(asked), frozenset(answered), session_of)
        if not fault and any(_is_same(each, other, words_of) for other in kept):
            fault = REPEATED
        if fault:
            dropped.add(fault, each.text)
        else:
            kept.append(each)
    return kept


def _find_fault(
    each: Proposal,
    asked: frozenset[str],
    answered: frozenset[str],
    session_of: Mapping[str, str],
) -> str:
    """Say what is wrong with a proposal; empty where nothing is."""
    kind = KINDS[each.kind]
    sessions = {*map(session_of.__getitem__, each.evidence)}
    several = len(sessions) > 1
    if each.is_absent:
        return ""
    if not each.evidence:
        return NO_EVIDENCE
    if kind.is_spread and not several:
        return ONE_SESSION
    if several and each.kind == "single-session":
        return SEVERAL_SESSIONS
    if each.kind == "knowledge-update" and not each.stale:
        return NO_STALE
    if each.kind not in _NAMES_ITS_ITEMS and answered and answered <= asked:
        return GIVEN_AWAY
    return ""


def short_answer(answer: str) -> str:
    """Give an answer without what stands in brackets or behind a colon.

    >>> from memlab.questions.screening import short_answer
    >>> short_answer("8 May at 16:20 (a Friday)")
    '8 May at 16:20'
    """
    return re.split(r"\s*[(]|[:;]\s", answer, maxsplit=1)[0]


def _is_same(each: Proposal, other: Proposal, words_of: Mapping[str, frozenset[str]]) -> bool:
    """Say whether two proposals ask the same.

    In nearly the same words, or of the same messages in many of the same.
    """
    mine, others = words_of[each.query_id], words_of[other.query_id]
    together = max(len(mine | others), 1)
    similar = len(mine & others) / together
    least = SAME_WORDS
    if {*each.evidence} == {*other.evidence}:
        least = SIMILAR_WORDS
    return similar >= least


def share_no_word(question: str, texts: Sequence[str], *, language: str = "en") -> float:
    """Give the share of some texts that have no content word in common with a question.

    >>> from memlab.questions.screening import share_no_word
    >>> share_no_word("How often did Dad fall?", ["He slipped again", "Dad fell on the stairs"])
    0.5
    """
    asked, *others = tokenize([question, *texts], language=language)
    if not others:
        return 0.0
    apart = map({*asked}.isdisjoint, others)
    return sum(apart) / len(others)


def choose_by_kind(proposals: Sequence[Proposal], wanted: Mapping[str, int]) -> list[Proposal]:
    """Choose as many of each kind as are wanted; where one has too few, those of others take its
    place."""
    by_kind = defaultdict[str, list[Proposal]](list)
    for each in proposals:
        by_kind[each.kind].append(each)
    chosen, spare = list[Proposal](), list[Proposal]()
    for kind, listed in by_kind.items():
        most = wanted.get(kind, 0)
        chosen += listed[:most]
        spare += listed[most:]
    spare.sort(key=proposals.index)
    missing = sum(wanted.values()) - len(chosen)
    chosen += spare[: max(missing, 0)]
    chosen.sort(key=proposals.index)
    return chosen
