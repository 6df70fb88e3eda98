"""Asking again, each prompt alone: whether the answer follows from the evidence, all of it and
nothing else.

In this order, since what fails is not asked any more: the answer from the evidence alone; further
messages that a search finds and a model grades as a part of the answer; the answer without an item
of the evidence.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, permutations, zip_longest
from operator import attrgetter
from typing import Any

import polars as pl

from memlab import llm
from memlab.conversation import answer, judge
from memlab.conversation.context_lines import write_turns_as_lines
from memlab.pipelines import pipeline
from memlab.questions.proposal_prompts import Holds, make_holds_request
from memlab.questions.proposal_screening import (
    DroppedProposals,
    Proposal,
    cut_answer_at_bracket_or_colon,
)
from memlab.questions.question_kinds import KINDS
from memlab.records import Question, frame
from memlab.rerank.llm_grades import ask_grades_and_first_error_or_empty
from memlab.retrieve import Bench
from memlab.text.text_analyser import tokenize

WRONG = "the answer does not follow from the evidence alone"
ADDED = "further messages change the answer"
ANSWERED = "messages answer it, and it was proposed as one that none answers"
NOT_NEEDED = "several items of its evidence are not needed"
LEFT_ONE_SESSION = "without an item that is not needed, its evidence lies in one session"
UNCHECKED = "a model gave no answer that fits when it was checked"
SEARCHES = ("best | learned", "best", "dense")
"""For the question; the question and its answer; each message of the evidence."""
LIKELY, CERTAIN = 2, 3
"""Grades: a message that is probably a part of an answer, and one that states a part."""
MOST_SHOWN = 8
"""Further messages that a prompt shows."""
WINDOW = 60
"""Messages of a prompt that grades."""
_PLAIN_ANSWERS = frozenset({"counting", "totals", "temporal"})
"""Kinds whose answers are compared up to the first bracket."""


@dataclass(frozen=True)
class CheckContext:
    """What the checks ask of: a service, over the messages of a bench.

    :param failures: why requests had no answer, of those that were not answered in another shape.
    """

    service: str | llm.Service
    bench: Bench
    failures: list[str]

    def ask_for_values_and_note_failures(
        self, requests: Sequence[llm.Request], progress: str
    ) -> list[Any]:
        """Ask, and give the values; ``None`` where there is none."""
        if len(requests) <= 32:
            progress = ""
        answers = llm.ask(requests, self.service, progress=progress)
        self.note_request_failures(map(attrgetter("error"), answers))
        return list(map(attrgetter("value"), answers))

    def note_request_failures(self, errors: Iterable[str]) -> None:
        """Note why requests had no answer, but for answers of another shape; an empty text is no
        failure."""
        for error in filter(None, errors):
            if llm.MISFIT not in error:
                self.failures.append(error)

    def format_turns_as_notes(self, turn_ids: Sequence[str]) -> str:
        """Write messages as notes, each under its day, in their order."""
        evidence_rows = self.bench.turns.filter(pl.col("turn_id").is_in(list(turn_ids)))
        line_rows = write_turns_as_lines(
            evidence_rows.with_columns(query_id=pl.lit("")), "relevant", dates=True
        )
        note_lines = list[str]()
        current_day = None
        for line_head, line_text in line_rows.select("head", "text").iter_rows():
            if line_head and line_head != current_day:
                note_lines.append(line_head)
            current_day = line_head
            note_lines.append(line_text)
        return "\n".join(note_lines)


def keep_answerable_and_count_dropped(
    proposals: Sequence[Proposal], check_context: CheckContext, dropped: DroppedProposals
) -> list[Proposal]:
    """Keep the proposals whose answer a model gives from the evidence alone; it does not see the
    answer.

    What is not word for word the same answer, a judge compares. What no message answers is kept.
    """
    answerable = [proposal for proposal in proposals if not proposal.is_unanswerable_by_memory]
    questions = proposals_to_question_frame(answerable)
    contexts = pl.DataFrame(
        [
            (proposal.query_id, check_context.format_turns_as_notes(proposal.evidence))
            for proposal in answerable
        ],
        schema={"query_id": pl.String, "text": pl.String},
        orient="row",
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # counted by reason instead
        model_answers = answer(contexts, questions, check_context.service)
        answer_by_query = dict(model_answers.select("query_id", "answer").iter_rows())
        open_ids = list[str]()
        for proposal in answerable:
            if not _is_same_or_no_answer(proposal, answer_by_query[proposal.query_id]):
                open_ids.append(proposal.query_id)
        unclear_questions = questions.filter(pl.col("query_id").is_in(open_ids))
        to_judge = model_answers.filter(pl.col("query_id").is_in(open_ids))
        judgements = judge(unclear_questions, to_judge, check_context.service)
    check_context.note_request_failures(
        [*model_answers["error"], *judgements["error"].drop_nulls()]
    )
    verdicts = dict(judgements.select("query_id", "correct").iter_rows())
    reasons = dict(judgements.select("query_id", "reason").iter_rows())
    kept_proposals = list[Proposal]()
    for proposal in proposals:
        query_id = proposal.query_id
        if proposal.is_unanswerable_by_memory:
            kept_proposals.append(proposal)
        elif answer_by_query[query_id] is None or (
            query_id in verdicts and verdicts[query_id] is None
        ):
            dropped.add_dropped_question(UNCHECKED, proposal.text)
        elif verdicts.get(query_id, True):
            check_record = {"answer": answer_by_query[query_id]}
            if query_id in reasons:
                check_record["verdict"] = reasons[query_id]
            kept_proposals.append(
                proposal.with_check_result("from the evidence alone", check_record)
            )
        else:
            dropped.add_dropped_question(WRONG, proposal.text)
    return kept_proposals


_GROUPED = re.compile(r"(?<=\d),(?=\d{3}\b)")
"""The comma of 3,800."""


def _is_same_or_no_answer(proposal: Proposal, given_answer: str | None) -> bool:
    """Say whether two answers are word for word the same; of numbers and dates, what stands before
    a bracket."""
    if given_answer is None:
        return True  # there is nothing to compare
    right_answer = proposal.answer
    if proposal.kind in _PLAIN_ANSWERS:
        right_answer = cut_answer_at_bracket_or_colon(right_answer)
        given_answer = cut_answer_at_bracket_or_colon(given_answer)
    return _casefolded_words(right_answer) == _casefolded_words(given_answer)


def _casefolded_words(text: str) -> list[str]:
    return re.findall(r"\w+", _GROUPED.sub("", text.casefold()))


def proposals_to_question_frame(proposals: Sequence[Proposal]) -> pl.DataFrame:
    """Give proposals as rows of :class:`memlab.records.Question`, without what was checked."""
    question_rows = []
    for proposal in proposals:
        answer_text: str | None = proposal.answer
        if proposal.is_unanswerable_by_memory:
            answer_text = None
        question_rows.append(
            Question(
                query_id=proposal.query_id,
                scope=proposal.scope,
                text=proposal.text,
                answer=answer_text,
                question_type=proposal.kind,
                timestamp=proposal.asked_at,
                evidence=[*proposal.evidence],
                evidence_sessions=[],
                abstention=proposal.is_unanswerable_by_memory,
            )
        )
    return frame(Question, question_rows)


def drop_and_count_if_further_turns_matter(
    proposals: Sequence[Proposal],
    check_context: CheckContext,
    dropped: DroppedProposals,
    *,
    n_candidates: int,
    seed: int = 0,
) -> list[Proposal]:
    """Search for further messages that belong to each answer, have them graded, and see what they
    change.

    A message that the search finds and a model grades as a part of the answer either repeats what
    the evidence says, so that the answer holds by both together, or the proposal is dropped. A
    question that no message answers is dropped where a message that is graded so answers it.

    :param n_candidates: messages beside the evidence that are graded for each proposal.
    """
    if not proposals or not n_candidates:
        return [*proposals]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        candidate_pairs = search_candidate_turns(proposals, check_context.bench, n_candidates)
        question_bench = check_context.bench.with_queries(proposals_to_question_frame(proposals))
        graded_pairs, error = ask_grades_and_first_error_or_empty(
            candidate_pairs, question_bench, check_context.service, window=WINDOW, seed=seed
        )
    if graded_pairs["grade"].null_count():
        check_context.note_request_failures([error])
    further_by_query = _further_turn_ids_by_query(proposals, graded_pairs)
    ungraded_pairs = graded_pairs.filter(pl.col("grade").is_null()).group_by("query_id").len()
    ungraded_by_query = dict(ungraded_pairs.iter_rows())
    graded_by_query = dict(graded_pairs.group_by("query_id").len().iter_rows())
    asked_again = [proposal for proposal in proposals if further_by_query[proposal.query_id]]
    requests = list[llm.Request]()
    holds_by_query = dict[str, Any]()
    for proposal in asked_again:
        shown_turns = [*proposal.evidence, *further_by_query[proposal.query_id][:MOST_SHOWN]]
        requests.append(_make_request_whether_answer_holds(proposal, check_context, shown_turns))
    for proposal, holds_value in zip(
        asked_again,
        check_context.ask_for_values_and_note_failures(requests, "further messages"),
        strict=True,
    ):
        holds_by_query[proposal.query_id] = holds_value
    kept_proposals = list[Proposal]()
    for proposal in proposals:
        query_id = proposal.query_id
        if ungraded_by_query.get(query_id) or (
            query_id in holds_by_query and holds_by_query[query_id] is None
        ):
            dropped.add_dropped_question(UNCHECKED, proposal.text)
            continue
        if query_id in holds_by_query and not holds_by_query[query_id].holds:
            dropped.add_dropped_question(
                ANSWERED if proposal.is_unanswerable_by_memory else ADDED, proposal.text
            )
            continue
        check_record = {
            "graded": graded_by_query.get(query_id, 0),
            "further, which repeat": further_by_query[query_id],
        }
        kept_proposals.append(proposal.with_check_result("further messages", check_record))
    return kept_proposals


def _further_turn_ids_by_query(
    proposals: Sequence[Proposal], graded_pairs: pl.DataFrame
) -> dict[str, list[str]]:
    """Give the messages graded as a part of each answer, beside what the proposal names."""
    grades_by_query = dict[str, dict[str, int]]()
    for query_id, turn_id, grade in graded_pairs.drop_nulls().iter_rows():
        grades_by_query.setdefault(query_id, {})[turn_id] = grade
    further_by_query = dict[str, list[str]]()
    for proposal in proposals:
        query_grades = grades_by_query.get(proposal.query_id, {})
        query_turns = further_by_query.setdefault(proposal.query_id, [])
        for wanted_grade in (CERTAIN, LIKELY):
            if wanted_grade == CERTAIN or proposal.is_unanswerable_by_memory:
                query_turns += [
                    turn_id for turn_id, grade in query_grades.items() if grade == wanted_grade
                ]
    return further_by_query


def search_candidate_turns(
    proposals: Sequence[Proposal], bench: Bench, n_candidates: int
) -> pl.DataFrame:
    """Search for the messages that may belong to each answer, beside its evidence.

    By ``best | learned`` with the question, by ``best`` with the question and its answer, which is
    what a made-up answer stands for elsewhere, and by ``dense`` with each message of the evidence;
    their first places are taken in turn.

    :returns: ``query_id`` and ``doc_id``, at most ``n_candidates`` of each question.
    """
    text_by_turn = dict(bench.turns.select("turn_id", "text").iter_rows())
    queries_by_search = {search_name: list[dict[str, Any]]() for search_name in SEARCHES}
    for proposal in proposals:
        shared_fields = {"scope": proposal.scope, "timestamp": proposal.asked_at}
        question_query = {"query_id": proposal.query_id, "text": proposal.text}
        queries_by_search[SEARCHES[0]].append(shared_fields | question_query)
        answered_query = {
            "query_id": proposal.query_id,
            "text": f"{proposal.text} {proposal.answer}",
        }
        queries_by_search[SEARCHES[1]].append(shared_fields | answered_query)
        near_turns = proposal.evidence or proposal.distractors
        for near_place, turn_id in enumerate(near_turns):
            turn_query = {
                "query_id": f"{proposal.query_id}#{near_place}",
                "text": text_by_turn[turn_id] or proposal.text,
            }
            queries_by_search[SEARCHES[2]].append(shared_fields | turn_query)
    rankings = dict[str, list[list[str]]]()
    for search_name, query_rows in queries_by_search.items():
        if not query_rows:
            continue
        queries = pl.DataFrame(
            query_rows, schema_overrides={"timestamp": bench.queries["timestamp"].dtype}
        )
        search_run = (
            pipeline(search_name).run(bench.with_queries(queries)).top(n_candidates + 50).frame
        )
        for (query_id,), query_ranking in search_run.group_by("query_id", maintain_order=True):
            rankings.setdefault(str(query_id).split("#")[0], []).append(
                query_ranking["doc_id"].to_list()
            )
    rows_found = list[tuple[str, str]]()
    for proposal in proposals:
        known_turns = {*proposal.evidence, *proposal.stale}
        merged_turns = _interleave_rankings(rankings.get(proposal.query_id, []), known_turns)
        rows_found += [
            (proposal.query_id, turn_id) for turn_id in islice(merged_turns, n_candidates)
        ]
    return pl.DataFrame(
        rows_found, schema={"query_id": pl.String, "doc_id": pl.String}, orient="row"
    )


def _interleave_rankings(
    rankings: Sequence[Sequence[str]], turns_to_skip: set[str]
) -> Iterator[str]:
    """Give the first of each ranking, then the second of each, each document once."""
    seen_turns = {None, *turns_to_skip}
    for at_one_place in zip_longest(*rankings):
        for turn_id in at_one_place:
            if turn_id not in seen_turns:
                seen_turns.add(turn_id)
                yield turn_id


def mend_or_drop_for_unneeded_evidence(
    proposals: Sequence[Proposal],
    check_context: CheckContext,
    dropped: DroppedProposals,
    *,
    max_left_out: int,
    session_by_turn: Mapping[str, str],
) -> list[Proposal]:
    """Leave out items of the evidence, one at a time, and see whether the answer still holds.

    Those that share the most words with another item are left out first: they are the likeliest to
    repeat it. An item that is not needed is removed, where it is the only one; a proposal with
    several such items is dropped, and so is one that is left with one session where it needs two.

    :param max_left_out: items of a proposal that are left out at most.
    """
    text_by_turn = dict(check_context.bench.turns.select("turn_id", "text").iter_rows())
    left_out_items = list[tuple[Proposal, str]]()
    requests = list[llm.Request]()
    for proposal in proposals:
        if len(proposal.evidence) < 2:
            continue
        for turn_id in _evidence_most_similar_words_first(
            proposal.evidence, text_by_turn, check_context.bench.language
        )[:max_left_out]:
            other_evidence = [
                other_turn for other_turn in proposal.evidence if other_turn != turn_id
            ]
            left_out_items.append((proposal, turn_id))
            requests.append(
                _make_request_whether_answer_holds(proposal, check_context, other_evidence)
            )
    values_by_query = dict[str, dict[str, Holds | None]]()
    for (proposal, turn_id), holds_value in zip(
        left_out_items,
        check_context.ask_for_values_and_note_failures(requests, "items left out"),
        strict=True,
    ):
        values_by_query.setdefault(proposal.query_id, {})[turn_id] = holds_value
    kept_proposals = list[Proposal]()
    for proposal in proposals:
        value_by_turn = values_by_query.get(proposal.query_id, {})
        fault, mended_proposal = _fault_or_empty_and_mended_proposal(
            proposal, value_by_turn, session_by_turn
        )
        if fault:
            dropped.add_dropped_question(fault, proposal.text)
        else:
            kept_proposals.append(mended_proposal)
    return kept_proposals


def _fault_or_empty_and_mended_proposal(
    proposal: Proposal,
    holds_by_left_out_turn: Mapping[str, Holds | None],
    session_by_turn: Mapping[str, str],
) -> tuple[str, Proposal]:
    """Say what is wrong with a proposal whose items were left out, and give it without what is not
    needed."""
    if None in holds_by_left_out_turn.values():
        return UNCHECKED, proposal
    idle_turns = [
        turn_id
        for turn_id, holds_value in holds_by_left_out_turn.items()
        if getattr(holds_value, "holds", False)
    ]
    if len(idle_turns) > 1:
        return NOT_NEEDED, proposal
    check_record: dict[str, Any] = {
        "left out": [*holds_by_left_out_turn],
        "of": len(proposal.evidence),
    }
    mended_proposal = proposal
    for turn_id in idle_turns:
        mended_proposal = proposal.without_evidence_item(turn_id)
        check_record["not needed, removed"] = turn_id
    sessions = {*map(session_by_turn.__getitem__, mended_proposal.evidence)}
    if KINDS[proposal.kind].is_spread and len(sessions) < 2:
        return LEFT_ONE_SESSION, proposal
    return "", mended_proposal.with_check_result("each item needed", check_record)


def _evidence_most_similar_words_first(
    evidence: Sequence[str], text_by_turn: Mapping[str, str], language: str
) -> list[str]:
    """Give the items of evidence, the most like another one by their words first."""
    words_of_items = tokenize(list(map(text_by_turn.__getitem__, evidence)), language=language)
    words_by_turn = dict(zip(evidence, map(frozenset, words_of_items), strict=True))
    highest_shares = dict.fromkeys(evidence, 0.0)
    for turn_id, other_turn in permutations(evidence, 2):
        shared_part = len(words_by_turn[turn_id] & words_by_turn[other_turn]) / max(
            len(words_by_turn[turn_id]), 1
        )
        highest_shares[turn_id] = max(highest_shares[turn_id], shared_part)
    return sorted(evidence, key=highest_shares.__getitem__, reverse=True)


def _make_request_whether_answer_holds(
    proposal: Proposal, check_context: CheckContext, turn_ids: Sequence[str]
) -> llm.Request:
    """Ask whether the answer of a proposal holds by some messages."""
    day = ""
    if proposal.asked_at:
        day = f"{proposal.asked_at:%-d %B %Y}"
    return make_holds_request(
        proposal.text, day, proposal.answer, check_context.format_turns_as_notes(turn_ids)
    )
