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

from memlab.questions.message_bundles import Bundle
from memlab.questions.proposal_prompts import ProposedQuestion
from memlab.questions.question_kinds import KINDS
from memlab.text.text_analyser import tokenize

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
    def is_unanswerable_by_memory(self) -> bool:
        """Say whether the memory does not hold the answer."""
        return self.kind == ABSENT

    def with_check_result(self, check_name: str, check_result: object) -> Proposal:
        """Copy it with what a check found."""
        return replace(self, checks={**self.checks, check_name: check_result})

    def without_evidence_item(self, turn_id: str) -> Proposal:
        """Copy it without an item of its evidence."""
        evidence_pairs = zip(self.evidence, self.reasons, strict=True)
        kept_pairs = [
            evidence_pair for evidence_pair in evidence_pairs if evidence_pair[0] != turn_id
        ]
        evidence, reasons = zip(*kept_pairs, strict=True)
        return replace(self, evidence=evidence, reasons=reasons)


class DroppedProposals:
    """Proposals that were dropped, by the reason.

    :param examples: of each reason, the questions.
    """

    def __init__(self) -> None:
        self.examples: dict[str, list[str]] = defaultdict(list)

    def add_dropped_question(self, reason: str, question_text: str) -> None:
        """Count a question that is dropped."""
        self.examples[reason].append(question_text)

    @property
    def count_by_reason_sorted(self) -> dict[str, int]:
        """How many were dropped for each reason, the most frequent first."""
        count_by_reason = Counter[str]()
        for reason in sorted(self.examples):
            count_by_reason[reason] = len(self.examples[reason])
        return dict(count_by_reason.most_common())


def proposal_from_stated_question(
    stated_question: ProposedQuestion, bundle: Bundle, asked_at: datetime | None
) -> Proposal | None:
    """Read a proposed question; ``None`` where it cites messages that its bundle has not.

    A message that is evidence is neither stale nor a distractor.
    """
    reason_by_number = dict[int, str]()
    for cited_entry in stated_question.evidence:
        reason_by_number.setdefault(cited_entry.id, cited_entry.why)
    numbers = {*reason_by_number, *stated_question.stale, *stated_question.distractors}
    if not numbers <= {*range(1, len(bundle.turns) + 1)}:
        return None
    near_numbers = [*stated_question.distractors]
    if stated_question.kind == ABSENT:
        near_numbers += reason_by_number
        reason_by_number = {}
    evidence_numbers = sorted(reason_by_number)
    stale_numbers = sorted({*stated_question.stale} - {*evidence_numbers})
    other_numbers = sorted({*near_numbers} - {*evidence_numbers} - {*stale_numbers})
    cited_turns = _turn_ids_of_message_numbers(evidence_numbers, bundle)
    identity_text = "\x1f".join((stated_question.kind, stated_question.question, *cited_turns))
    identity_digest = blake2b(
        identity_text.encode("utf-8", "surrogatepass"), digest_size=4
    ).hexdigest()
    return Proposal(
        query_id=f"{bundle.scope}/p-{identity_digest}",
        scope=bundle.scope,
        kind=stated_question.kind,
        text=stated_question.question,
        answer=stated_question.answer,
        evidence=cited_turns,
        reasons=tuple(map(reason_by_number.__getitem__, evidence_numbers)),
        stale=_turn_ids_of_message_numbers(stale_numbers, bundle),
        distractors=_turn_ids_of_message_numbers(other_numbers, bundle),
        asked_at=asked_at,
        checks={"reworded, says the model": stated_question.reworded},
    )


def _turn_ids_of_message_numbers(message_numbers: Iterable[int], bundle: Bundle) -> tuple[str, ...]:
    return tuple(bundle.turns[number - 1] for number in message_numbers)


def proposals_of_scope(proposals: Iterable[Proposal], scope: str) -> list[Proposal]:
    """Give the proposals over one memory."""
    return [proposal for proposal in proposals if proposal.scope == scope]


def drop_and_count_faulty_proposals(
    proposals: Iterable[Proposal],
    dropped: DroppedProposals,
    *,
    session_by_turn: Mapping[str, str],
    language: str,
) -> list[Proposal]:
    """Keep the proposals that have nothing wrong with them by themselves; each question once."""
    kept_proposals = list[Proposal]()
    words_by_query = dict[str, frozenset[str]]()
    for proposal in proposals:
        question_words, answer_words = tokenize(
            [proposal.text, cut_answer_at_bracket_or_colon(proposal.answer)], language=language
        )
        words_by_query[proposal.query_id] = frozenset(question_words)
        fault = _find_fault_of_proposal_or_empty(
            proposal, frozenset(question_words), frozenset(answer_words), session_by_turn
        )
        if not fault and any(
            _ask_same_question(proposal, kept_proposal, words_by_query)
            for kept_proposal in kept_proposals
        ):
            fault = REPEATED
        if fault:
            dropped.add_dropped_question(fault, proposal.text)
        else:
            kept_proposals.append(proposal)
    return kept_proposals


def _find_fault_of_proposal_or_empty(
    proposal: Proposal,
    question_words: frozenset[str],
    answer_words: frozenset[str],
    session_by_turn: Mapping[str, str],
) -> str:
    """Say what is wrong with a proposal; empty where nothing is."""
    kind = KINDS[proposal.kind]
    sessions = {*map(session_by_turn.__getitem__, proposal.evidence)}
    has_several_sessions = len(sessions) > 1
    if proposal.is_unanswerable_by_memory:
        return ""
    if not proposal.evidence:
        return NO_EVIDENCE
    if kind.is_spread and not has_several_sessions:
        return ONE_SESSION
    if has_several_sessions and proposal.kind == "single-session":
        return SEVERAL_SESSIONS
    if proposal.kind == "knowledge-update" and not proposal.stale:
        return NO_STALE
    if proposal.kind in _NAMES_ITS_ITEMS or not answer_words:
        return ""
    # A content word has two characters: the 7 of "7 September" is none.
    are_numbers_given = _numbers_in_text(
        cut_answer_at_bracket_or_colon(proposal.answer)
    ) <= _numbers_in_text(proposal.text)
    if answer_words <= question_words and are_numbers_given:
        return GIVEN_AWAY
    return ""


def _numbers_in_text(text: str) -> frozenset[str]:
    """Give the numbers that stand in a text, in figures."""
    return frozenset(re.findall(r"\d+", text))


def cut_answer_at_bracket_or_colon(answer: str) -> str:
    """Give an answer without what stands in brackets or behind a colon.

    >>> from memlab.questions.proposal_screening import cut_answer_at_bracket_or_colon
    >>> cut_answer_at_bracket_or_colon("8 May at 16:20 (a Friday)")
    '8 May at 16:20'
    """
    return re.split(r"\s*[(]|[:;]\s", answer, maxsplit=1)[0]


def _ask_same_question(
    proposal: Proposal, kept_proposal: Proposal, words_by_query: Mapping[str, frozenset[str]]
) -> bool:
    """Say whether two proposals ask the same.

    In nearly the same words, or of the same messages in many of the same.
    """
    own_words = words_by_query[proposal.query_id]
    kept_words = words_by_query[kept_proposal.query_id]
    n_distinct_words = max(len(own_words | kept_words), 1)
    similarity = len(own_words & kept_words) / n_distinct_words
    lowest_similarity = SAME_WORDS
    if {*proposal.evidence} == {*kept_proposal.evidence}:
        lowest_similarity = SIMILAR_WORDS
    return similarity >= lowest_similarity


def share_of_texts_sharing_no_word_or_zero(
    question: str, texts: Sequence[str], *, language: str = "en"
) -> float:
    """Give the share of some texts that have no content word in common with a question.

    >>> from memlab.questions.proposal_screening import share_of_texts_sharing_no_word_or_zero
    >>> texts = ["He slipped again", "Dad fell on the stairs"]
    >>> share_of_texts_sharing_no_word_or_zero("How often did Dad fall?", texts)
    0.5
    """
    question_words, *text_words = tokenize([question, *texts], language=language)
    if not text_words:
        return 0.0
    is_apart = map({*question_words}.isdisjoint, text_words)
    return sum(is_apart) / len(text_words)


def choose_proposals_by_kind(
    proposals: Sequence[Proposal], wanted_by_kind: Mapping[str, int]
) -> list[Proposal]:
    """Choose as many of each kind as are wanted; where one has too few, those of others take its
    place."""
    by_kind = defaultdict[str, list[Proposal]](list)
    for proposal in proposals:
        by_kind[proposal.kind].append(proposal)
    chosen_proposals = list[Proposal]()
    spare_proposals = list[Proposal]()
    for kind, kind_proposals in by_kind.items():
        most_of_kind = wanted_by_kind.get(kind, 0)
        chosen_proposals += kind_proposals[:most_of_kind]
        spare_proposals += kind_proposals[most_of_kind:]
    spare_proposals.sort(key=proposals.index)
    n_missing = sum(wanted_by_kind.values()) - len(chosen_proposals)
    chosen_proposals += spare_proposals[: max(n_missing, 0)]
    chosen_proposals.sort(key=proposals.index)
    return chosen_proposals
