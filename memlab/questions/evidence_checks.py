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
from memlab.conversation.context_lines import turn_lines
from memlab.pipelines import pipeline
from memlab.questions.proposal_prompts import Holds, holds_request
from memlab.questions.question_kinds import KINDS
from memlab.questions.screening import Dropped, Proposal, short_answer
from memlab.records import Question, frame
from memlab.rerank.llm_grades import ask_grades
from memlab.retrieve import Bench
from memlab.text.analysis import tokenize

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
class Asking:
    """What the checks ask of: a service, over the messages of a bench.

    :param failures: why requests had no answer, of those that were not answered in another shape.
    """

    service: str | llm.Service
    bench: Bench
    failures: list[str]

    def ask(self, requests: Sequence[llm.Request], progress: str) -> list[Any]:
        """Ask, and give the values; ``None`` where there is none."""
        if len(requests) <= 32:
            progress = ""
        answers = llm.ask(requests, self.service, progress=progress)
        self.note_failures(map(attrgetter("error"), answers))
        return list(map(attrgetter("value"), answers))

    def note_failures(self, errors: Iterable[str]) -> None:
        """Note why requests had no answer, but for answers of another shape; an empty text is no
        failure."""
        for error in filter(None, errors):
            if llm.MISFIT not in error:
                self.failures.append(error)

    def notes(self, turns: Sequence[str]) -> str:
        """Write messages as notes, each under its day, in their order."""
        rows = self.bench.turns.filter(pl.col("turn_id").is_in(list(turns)))
        lines = turn_lines(rows.with_columns(query_id=pl.lit("")), "relevant", dates=True)
        written, day = list[str](), None
        for head, text in lines.select("head", "text").iter_rows():
            if head and head != day:
                written.append(head)
            day = head
            written.append(text)
        return "\n".join(written)


def check_answers(
    proposals: Sequence[Proposal], asking: Asking, dropped: Dropped
) -> list[Proposal]:
    """Keep the proposals whose answer a model gives from the evidence alone; it does not see the
    answer.

    What is not word for word the same answer, a judge compares. What no message answers is kept.
    """
    asked = [each for each in proposals if not each.is_absent]
    questions = question_frame(asked)
    contexts = pl.DataFrame(
        [(each.query_id, asking.notes(each.evidence)) for each in asked],
        schema={"query_id": pl.String, "text": pl.String},
        orient="row",
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # counted by reason instead
        answered = answer(contexts, questions, asking.service)
        given = dict(answered.select("query_id", "answer").iter_rows())
        open_ids = list[str]()
        for each in asked:
            if not _is_equal(each, given[each.query_id]):
                open_ids.append(each.query_id)
        unclear = questions.filter(pl.col("query_id").is_in(open_ids))
        to_judge = answered.filter(pl.col("query_id").is_in(open_ids))
        judged = judge(unclear, to_judge, asking.service)
    asking.note_failures([*answered["error"], *judged["error"].drop_nulls()])
    verdicts = dict(judged.select("query_id", "correct").iter_rows())
    reasons = dict(judged.select("query_id", "reason").iter_rows())
    kept = list[Proposal]()
    for each in proposals:
        query = each.query_id
        if each.is_absent:
            kept.append(each)
        elif given[query] is None or (query in verdicts and verdicts[query] is None):
            dropped.add(UNCHECKED, each.text)
        elif verdicts.get(query, True):
            found = {"answer": given[query]}
            if query in reasons:
                found["verdict"] = reasons[query]
            kept.append(each.with_check("from the evidence alone", found))
        else:
            dropped.add(WRONG, each.text)
    return kept


_GROUPED = re.compile(r"(?<=\d),(?=\d{3}\b)")
"""The comma of 3,800."""


def _is_equal(each: Proposal, given: str | None) -> bool:
    """Say whether two answers are word for word the same; of numbers and dates, what stands before
    a bracket."""
    if given is None:
        return True  # there is nothing to compare
    right = each.answer
    if each.kind in _PLAIN_ANSWERS:
        right = short_answer(right)
        given = short_answer(given)
    return _plain_words(right) == _plain_words(given)


def _plain_words(text: str) -> list[str]:
    return re.findall(r"\w+", _GROUPED.sub("", text.casefold()))


def question_frame(proposals: Sequence[Proposal]) -> pl.DataFrame:
    """Give proposals as rows of :class:`memlab.records.Question`, without what was checked."""
    rows = []
    for each in proposals:
        answer_text: str | None = each.answer
        if each.is_absent:
            answer_text = None
        rows.append(
            Question(
                query_id=each.query_id,
                scope=each.scope,
                text=each.text,
                answer=answer_text,
                question_type=each.kind,
                timestamp=each.asked_at,
                evidence=[*each.evidence],
                evidence_sessions=[],
                abstention=each.is_absent,
            )
        )
    return frame(Question, rows)


def check_further(
    proposals: Sequence[Proposal],
    asking: Asking,
    dropped: Dropped,
    *,
    candidates: int,
    seed: int = 0,
) -> list[Proposal]:
    """Search for further messages that belong to each answer, have them graded, and see what they
    change.

    A message that the search finds and a model grades as a part of the answer either repeats what
    the evidence says, so that the answer holds by both together, or the proposal is dropped. A
    question that no message answers is dropped where a message that is graded so answers it.

    :param candidates: messages beside the evidence that are graded for each proposal.
    """
    if not proposals or not candidates:
        return [*proposals]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        found = find_candidates(proposals, asking.bench, candidates)
        bench = asking.bench.with_queries(question_frame(proposals))
        graded, error = ask_grades(found, bench, asking.service, window=WINDOW, seed=seed)
    if graded["grade"].null_count():
        asking.note_failures([error])
    further = _further_turns(proposals, graded)
    unread = graded.filter(pl.col("grade").is_null()).group_by("query_id").len()
    ungraded = dict(unread.iter_rows())
    counted = dict(graded.group_by("query_id").len().iter_rows())
    again = [each for each in proposals if further[each.query_id]]
    requests, answers = list[llm.Request](), dict[str, Any]()
    for each in again:
        shown = [*each.evidence, *further[each.query_id][:MOST_SHOWN]]
        requests.append(_holds_by(each, asking, shown))
    for each, value in zip(again, asking.ask(requests, "further messages"), strict=True):
        answers[each.query_id] = value
    kept = list[Proposal]()
    for each in proposals:
        query = each.query_id
        if ungraded.get(query) or (query in answers and answers[query] is None):
            dropped.add(UNCHECKED, each.text)
            continue
        if query in answers and not answers[query].holds:
            dropped.add(ANSWERED if each.is_absent else ADDED, each.text)
            continue
        looked = {"graded": counted.get(query, 0), "further, which repeat": further[query]}
        kept.append(each.with_check("further messages", looked))
    return kept


def _further_turns(proposals: Sequence[Proposal], graded: pl.DataFrame) -> dict[str, list[str]]:
    """Give the messages graded as a part of each answer, beside what the proposal names."""
    grades = dict[str, dict[str, int]]()
    for query, turn, grade in graded.drop_nulls().iter_rows():
        grades.setdefault(query, {})[turn] = grade
    further = dict[str, list[str]]()
    for each in proposals:
        of_query = grades.get(each.query_id, {})
        listed = further.setdefault(each.query_id, [])
        for wanted in (CERTAIN, LIKELY):
            if wanted == CERTAIN or each.is_absent:
                listed += [turn for turn, grade in of_query.items() if grade == wanted]
    return further


def find_candidates(proposals: Sequence[Proposal], bench: Bench, number: int) -> pl.DataFrame:
    """Search for the messages that may belong to each answer, beside its evidence.

    By ``best | learned`` with the question, by ``best`` with the question and its answer, which is
    what a made-up answer stands for elsewhere, and by ``dense`` with each message of the evidence;
    their first places are taken in turn.

    :returns: ``query_id`` and ``doc_id``, at most ``number`` of each question.
    """
    texts = dict(bench.turns.select("turn_id", "text").iter_rows())
    searched = {name: list[dict[str, Any]]() for name in SEARCHES}
    for each in proposals:
        about = {"scope": each.scope, "timestamp": each.asked_at}
        asked = {"query_id": each.query_id, "text": each.text}
        searched[SEARCHES[0]].append(about | asked)
        answered = {"query_id": each.query_id, "text": f"{each.text} {each.answer}"}
        searched[SEARCHES[1]].append(about | answered)
        near = each.evidence or each.distractors
        for at, turn in enumerate(near):
            said = {"query_id": f"{each.query_id}#{at}", "text": texts[turn] or each.text}
            searched[SEARCHES[2]].append(about | said)
    rankings = dict[str, list[list[str]]]()
    for name, rows in searched.items():
        if not rows:
            continue
        queries = pl.DataFrame(
            rows, schema_overrides={"timestamp": bench.queries["timestamp"].dtype}
        )
        run = pipeline(name).run(bench.with_queries(queries)).top(number + 50).frame
        for (query,), part in run.group_by("query_id", maintain_order=True):
            rankings.setdefault(str(query).split("#")[0], []).append(part["doc_id"].to_list())
    rows_found = list[tuple[str, str]]()
    for each in proposals:
        skip = {*each.evidence, *each.stale}
        merged = _take_in_turn(rankings.get(each.query_id, []), skip)
        rows_found += [(each.query_id, turn) for turn in islice(merged, number)]
    return pl.DataFrame(
        rows_found, schema={"query_id": pl.String, "doc_id": pl.String}, orient="row"
    )


def _take_in_turn(rankings: Sequence[Sequence[str]], skip: set[str]) -> Iterator[str]:
    """Give the first of each ranking, then the second of each, each document once."""
    seen = {None, *skip}
    for at_one_place in zip_longest(*rankings):
        for turn in at_one_place:
            if turn not in seen:
                seen.add(turn)
                yield turn


def check_needed(
    proposals: Sequence[Proposal],
    asking: Asking,
    dropped: Dropped,
    *,
    most: int,
    session_of: Mapping[str, str],
) -> list[Proposal]:
    """Leave out items of the evidence, one at a time, and see whether the answer still holds.

    Those that share the most words with another item are left out first: they are the likeliest to
    repeat it. An item that is not needed is removed, where it is the only one; a proposal with
    several such items is dropped, and so is one that is left with one session where it needs two.

    :param most: items of a proposal that are left out at most.
    """
    texts = dict(asking.bench.turns.select("turn_id", "text").iter_rows())
    tried = list[tuple[Proposal, str]]()
    requests = list[llm.Request]()
    for each in proposals:
        if len(each.evidence) < 2:
            continue
        for turn in _likeliest_repeats(each.evidence, texts, asking.bench.language)[:most]:
            rest = [other for other in each.evidence if other != turn]
            tried.append((each, turn))
            requests.append(_holds_by(each, asking, rest))
    found = dict[str, dict[str, Holds | None]]()
    for (each, turn), value in zip(tried, asking.ask(requests, "items left out"), strict=True):
        found.setdefault(each.query_id, {})[turn] = value
    kept = list[Proposal]()
    for each in proposals:
        seen = found.get(each.query_id, {})
        fault, mended = _read_left_out(each, seen, session_of)
        if fault:
            dropped.add(fault, each.text)
        else:
            kept.append(mended)
    return kept


def _read_left_out(
    each: Proposal, seen: Mapping[str, Holds | None], session_of: Mapping[str, str]
) -> tuple[str, Proposal]:
    """Say what is wrong with a proposal whose items were left out, and give it without what is not
    needed."""
    if None in seen.values():
        return UNCHECKED, each
    idle = [turn for turn, value in seen.items() if getattr(value, "holds", False)]
    if len(idle) > 1:
        return NOT_NEEDED, each
    about: dict[str, Any] = {"left out": [*seen], "of": len(each.evidence)}
    mended = each
    for turn in idle:
        mended = each.without(turn)
        about["not needed, removed"] = turn
    sessions = {*map(session_of.__getitem__, mended.evidence)}
    if KINDS[each.kind].is_spread and len(sessions) < 2:
        return LEFT_ONE_SESSION, each
    return "", mended.with_check("each item needed", about)


def _likeliest_repeats(
    evidence: Sequence[str], texts: Mapping[str, str], language: str
) -> list[str]:
    """Give the items of evidence, the most like another one by their words first."""
    listed = tokenize(list(map(texts.__getitem__, evidence)), language=language)
    words = dict(zip(evidence, map(frozenset, listed), strict=True))
    shared = dict.fromkeys(evidence, 0.0)
    for turn, other in permutations(evidence, 2):
        share = len(words[turn] & words[other]) / max(len(words[turn]), 1)
        shared[turn] = max(shared[turn], share)
    return sorted(evidence, key=shared.__getitem__, reverse=True)


def _holds_by(each: Proposal, asking: Asking, turns: Sequence[str]) -> llm.Request:
    """Ask whether the answer of a proposal holds by some messages."""
    day = ""
    if each.asked_at:
        day = f"{each.asked_at:%-d %B %Y}"
    return holds_request(each.text, day, each.answer, asking.notes(turns))
