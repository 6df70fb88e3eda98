"""Proposing questions over conversations: bundles, one prompt each, and the checks of what comes
back."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from math import ceil
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from memlab import knowledge, llm
from memlab.atomic_files import open_atomically
from memlab.datasets import load
from memlab.datasets.question_files import question_as_log_line
from memlab.embed import Encoder
from memlab.errors import DataError, ModelError, check_at_least, warn_user
from memlab.knowledge.fact_extraction import service_name
from memlab.llm.token_spending import add_to_spending, is_estimating
from memlab.questions.evidence_checks import (
    WINDOW,
    CheckContext,
    drop_and_count_if_further_turns_matter,
    keep_answerable_and_count_dropped,
    mend_or_drop_for_unneeded_evidence,
)
from memlab.questions.message_bundles import (
    Bundle,
    gather_message_bundles,
    numbered_prompt_messages,
)
from memlab.questions.proposal_prompts import make_proposal_request
from memlab.questions.proposal_screening import (
    NOT_THERE,
    DroppedProposals,
    Proposal,
    choose_proposals_by_kind,
    drop_and_count_faulty_proposals,
    proposal_from_stated_question,
    proposals_of_scope,
    share_of_texts_sharing_no_word_or_zero,
)
from memlab.questions.question_kinds import KINDS, share_by_weight, share_questions_by_kind
from memlab.records import Dataset, Question, frame
from memlab.records.dataset import PROPOSED, refuse_frame
from memlab.retrieve import Bench
from memlab.store import MemoryStore
from memlab.terminal_text import count_noun

CANDIDATES, LEFT_OUT = 60, 2
CHECKED = 1.25
"""So many times the wanted questions are checked."""
_CHECKS = {"answer": (300, 25), "judge": (330, 45), "grades": (3000, 60), "holds": (420, 25)}
"""Of an estimate: tokens that a prompt of each check reads and writes."""


@dataclass(frozen=True, eq=False)
class ProposedSet:
    """Questions that a language model proposed over conversations, and what became of the others.

    :param questions: rows of :class:`memlab.records.Question`, whose source is ``proposed``; with
        reasons, distractors and checks.
    :param dropped: ``reason``, ``n`` and an ``example`` for each reason to drop a proposal.
    :param about: how it was made: service, number wanted, seed, bounds, prompts, how many were
        proposed, and the share in other words than their evidence.
    :param notes: what is to be known about the set, a line each.
    """

    questions: pl.DataFrame
    dropped: pl.DataFrame
    about: dict[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def attach(self, dataset: Dataset) -> Dataset:
        """Give the conversations with these questions in place of those that they had."""
        return replace(dataset, questions=self.questions)

    def write(self, path: str | Path) -> None:
        """Write the questions as lines of a chat log; a file appears when it is complete.

        :raises DataError: when the file is there, since a person may have accepted some of it.
        :raises ExportError: when it cannot be written.
        """
        raise_if_proposals_file_exists(path)
        with open_atomically(Path(path)) as question_file:
            for row in self.questions.iter_rows(named=True):
                line = json.dumps(question_as_log_line(row), ensure_ascii=False)
                question_file.write(line.encode("utf-8", "backslashreplace") + b"\n")

    def describe(self) -> str:
        """Say in a few lines what came of it."""
        kind_counts = self.questions["question_type"].value_counts(sort=True).iter_rows()
        kinds_text = ", ".join(f"{n_questions} {kind}" for kind, n_questions in kind_counts)
        summary_lines = [
            f"{self.questions.height:,} of {self.about['wanted']:,} questions: "
            f"{kinds_text or 'none'}"
        ]
        summary_lines += self.notes
        for reason, n_questions, _ in self.dropped.iter_rows():
            summary_lines.append(f"dropped: {n_questions:,}, since {reason}")
        return "\n".join(summary_lines)

    def __repr__(self) -> str:
        return self.describe()


def raise_if_proposals_file_exists(path: str | Path) -> None:
    """Refuse a file of proposals that is there: a person may have accepted some of it.

    :raises DataError: when it is there.

    >>> from memlab.questions.proposing import raise_if_proposals_file_exists
    >>> raise_if_proposals_file_exists("no-such-folder/proposed.jsonl")
    """
    if Path(path).exists():
        raise DataError(
            f"{path} is there, and a person may have accepted some of its questions; "
            "write to another folder, or remove it"
        )


def propose_questions(
    dataset: Dataset | str | Path,
    *,
    service: str | llm.Service,
    n: int = 60,
    facts: pl.DataFrame | None = None,
    encoder: Encoder | str = "settings",
    store: MemoryStore | str | None = None,
    candidates: int = CANDIDATES,
    left_out: int = LEFT_OUT,
    seed: int = 0,
) -> ProposedSet:
    """Let a language model propose questions over conversations, with their evidence, and ask
    again about each.

    The questions that the dataset has are not looked at. Of each scope: messages that belong
    together are gathered from facts (:mod:`memlab.questions.message_bundles`); one prompt a bundle
    proposes questions; what is wrong by itself is dropped
    (:mod:`memlab.questions.proposal_screening`); the rest is asked again, each prompt alone
    (:mod:`memlab.questions.evidence_checks`). What fails is dropped and counted. Within
    ``memlab.llm.track_spending(estimate=True)`` nothing is asked and nothing is proposed, and what
    would be asked is counted.

    :param dataset: a dataset, or the path of a file that :func:`memlab.datasets.load` reads.
    :param service: see :func:`memlab.llm.ask`; with a ``record`` an interrupted call goes on where
        it was stopped.
    :param n: how many questions are wanted over all scopes, which share them by their messages.
    :param facts: rows of :class:`memlab.records.Fact`, such as ``store.facts(name)``; read by the
        service where they are not given.
    :param encoder: what puts facts into a tree and searches, see :func:`memlab.embed.load`.
    :param store: what keeps vectors, see :meth:`memlab.Bench.of`.
    :param candidates: messages beside the evidence that are graded for each proposal; 0 for none.
    :param left_out: items of the evidence of a proposal without which its answer is asked for.
    :raises DataError: for a dataset with no scope of two messages, or a number below its least.
    :raises ModelError: when the service cannot be asked, stops answering, or proposes nothing.

    >>> import memlab
    >>> from memlab.datasets import propose_questions
    >>> data = memlab.sample(scopes=["owen"], turns=60)
    >>> with memlab.llm.track_spending(estimate=True) as spent:
    ...     _ = propose_questions(data, service="recorded", n=10, encoder="hashing")
    >>> spent.describe()["tasks"]["propose"][0] > 0
    True
    """
    refuse_frame(dataset, "propose_questions: dataset")
    if not isinstance(dataset, Dataset):
        dataset = load(dataset)
    check_at_least(1, n=n)
    check_at_least(0, candidates=candidates, left_out=left_out)
    llm.check_service(service)
    scope_sizes = dataset.turns.group_by("scope", maintain_order=True).len()
    askable_scopes = scope_sizes.filter(pl.col("len") >= 2)
    if askable_scopes.is_empty():
        raise DataError(
            f"{dataset.name!r} has no memory of two messages or more; there is nothing to ask about"
        )
    notes = _notes_on_unaskable_scopes(dataset, scope_sizes)
    askable_data = dataset.take(askable_scopes["scope"].to_list())
    bench = Bench.of(askable_data, encoder=encoder, store=store, progress=False)
    failures = list[str]()
    check_context = CheckContext(service, bench, failures)
    fact_rows, fact_note = _given_facts_or_extract_and_note_or_empty(
        askable_data, facts, check_context
    )
    if fact_note:
        notes.append(fact_note)
    wanted_by_scope = _share_questions_by_scope_size(n, askable_scopes)
    bundles = _gather_bundles_of_all_scopes(
        askable_data, fact_rows, check_context, wanted_by_scope, seed
    )
    requests = list(map(partial(_make_request_of_bundle, askable_data.turns), bundles))
    model_values = check_context.ask_for_values_and_note_failures(requests, "proposals")
    if is_estimating():
        _add_estimated_checks_to_spending(n, candidates, left_out)
        return ProposedSet(
            frame(Question),
            _dropped_proposals_to_frame(DroppedProposals()),
            {"wanted": n},
            tuple(notes),
        )
    dropped = DroppedProposals()
    proposals = _read_proposals_and_count_dropped(
        bundles, model_values, askable_data.turns, dropped
    )
    session_of = dict(askable_data.turns.select("turn_id", "session_id").iter_rows())
    n_proposed = len(proposals) + sum(dropped.count_by_reason_sorted.values())
    kept_proposals = drop_and_count_faulty_proposals(
        proposals, dropped, session_by_turn=session_of, language=askable_data.language
    )
    kept_proposals, n_spare = _proposals_to_check_and_spare_count(kept_proposals, wanted_by_scope)
    n_unanswered = model_values.count(None)
    if n_unanswered:
        notes.append(
            f"{n_unanswered:,} of {len(model_values):,} prompts that propose have no answer"
        )
    _raise_if_service_requests_failed(check_context, "proposed")
    kept_proposals = keep_answerable_and_count_dropped(kept_proposals, check_context, dropped)
    _raise_if_service_requests_failed(check_context, "answered from the evidence")
    kept_proposals = drop_and_count_if_further_turns_matter(
        kept_proposals, check_context, dropped, n_candidates=candidates, seed=seed
    )
    _raise_if_service_requests_failed(check_context, "searched for further messages")
    kept_proposals = mend_or_drop_for_unneeded_evidence(
        kept_proposals, check_context, dropped, max_left_out=left_out, session_by_turn=session_of
    )
    _raise_if_service_requests_failed(check_context, "asked without an item")
    if not kept_proposals:
        raise ModelError(
            _explain_why_nothing_is_left(
                service, len(model_values), n_unanswered, failures, dropped
            )
        )
    chosen_proposals = list[Proposal]()
    for scope, n_of_scope in wanted_by_scope.items():
        chosen_proposals += choose_proposals_by_kind(
            proposals_of_scope(kept_proposals, scope), share_questions_by_kind(n_of_scope, [*KINDS])
        )
    if n_spare:
        notes.append(f"{count_noun(n_spare, 'proposals')} more than were to be checked")
    text_by_turn = dict(askable_data.turns.select("turn_id", "text").iter_rows())
    n_reworded = _count_reworded_proposals(chosen_proposals, text_by_turn, askable_data.language)
    notes.append(
        f"{n_reworded:,} of {len(chosen_proposals):,} share no content word with half of their "
        "evidence"
    )
    provenance = {
        "service": service_name(service),
        "wanted": n,
        "proposed": n_proposed,
        "kept": len(chosen_proposals),
        "prompts": len(requests),
        "candidates": candidates,
        "left_out": left_out,
        "seed": seed,
        "fingerprint": askable_data.fingerprint(),
        "reworded": n_reworded,
    }
    if len(chosen_proposals) < n:
        warn_user(
            f"{len(chosen_proposals):,} of {n:,} questions: {n_proposed:,} were proposed, "
            f"{sum(dropped.count_by_reason_sorted.values()):,} dropped; .dropped says why"
        )
    question_rows = frame(
        Question, map(partial(_proposal_to_question, session_of), chosen_proposals)
    )
    return ProposedSet(
        question_rows, _dropped_proposals_to_frame(dropped), provenance, tuple(notes)
    )


def _notes_on_unaskable_scopes(dataset: Dataset, scope_sizes: pl.DataFrame) -> list[str]:
    """Say what memories cannot be asked about, or not in every way."""
    notes = list[str]()
    n_short = scope_sizes.filter(pl.col("len") < 2).height
    if n_short:
        notes.append(f"{count_noun(n_short, 'memories')} of one message left out")
    scope_counts = dataset.turns.group_by("scope").agg(
        sessions=pl.col("session_id").n_unique(), times=pl.col("timestamp").count()
    )
    n_of_one_session = scope_counts.filter(pl.col("sessions") == 1).height
    if n_of_one_session:
        notes.append(
            f"{count_noun(n_of_one_session, 'memories')} of one session: no question needs "
            "evidence of several"
        )
    n_undated = scope_counts.filter(pl.col("times") == 0).height
    if n_undated:
        notes.append(f"{count_noun(n_undated, 'memories')} without times: no question about dates")
    return notes


def _given_facts_or_extract_and_note_or_empty(
    data: Dataset, given_facts: pl.DataFrame | None, check_context: CheckContext
) -> tuple[pl.DataFrame, str]:
    """Give the facts that are given or that a model reads, and a line on sessions that it did not
    read."""
    if given_facts is not None:
        return given_facts, ""
    extraction = knowledge.extract(data.turns, service=check_context.service)
    if is_estimating() or not extraction.note:
        return extraction.facts, ""
    note = extraction.note
    if extraction.facts.is_empty():
        note += "; bundles are made of the messages there"
    return extraction.facts, note


def _share_questions_by_scope_size(n_wanted: int, scope_sizes: pl.DataFrame) -> dict[str, int]:
    """Share the questions out to scopes by their numbers of messages; a scope without any is left
    out."""
    count_by_scope = share_by_weight(n_wanted, dict(scope_sizes.iter_rows()))
    return {scope: n_of_scope for scope, n_of_scope in count_by_scope.items() if n_of_scope}


def _gather_bundles_of_all_scopes(
    data: Dataset,
    facts: pl.DataFrame,
    check_context: CheckContext,
    wanted_by_scope: dict[str, int],
    seed: int,
) -> list[Bundle]:
    """Gather the bundles of all scopes."""
    encoder = check_context.bench.embedder()

    def encode_documents(texts: list[str]) -> np.ndarray:
        return encoder.encode(texts, kind="document", progress=False)

    bundles = list[Bundle]()
    for scope, n_of_scope in wanted_by_scope.items():
        scope_turns = data.turns.filter(scope=scope)
        scope_facts = facts.filter(pl.col("scope") == scope)
        bundles += gather_message_bundles(
            scope_turns, scope_facts, encode_documents, n_of_scope, seed=seed
        )
    return bundles


def _make_request_of_bundle(turns: pl.DataFrame, bundle: Bundle) -> llm.Request:
    entries = numbered_prompt_messages(bundle, turns.filter(scope=bundle.scope))
    return make_proposal_request(entries, bundle.kinds, bundle.most, bundle.turns)


def _read_proposals_and_count_dropped(
    bundles: Sequence[Bundle],
    model_values: Sequence[Any],
    turns: pl.DataFrame,
    dropped: DroppedProposals,
) -> list[Proposal]:
    """Read what was proposed, the first of each bundle before the second of any."""
    last_time_by_scope: dict[str, datetime | None] = dict(
        turns.group_by("scope").agg(pl.col("timestamp").max()).iter_rows()
    )
    proposals_by_bundle = list[list[Proposal]]()
    for bundle, model_value in zip(bundles, model_values, strict=True):
        bundle_proposals = list[Proposal]()
        if model_value is None:
            proposals_by_bundle.append(bundle_proposals)
            continue
        for proposed_question in model_value.questions:
            proposal = proposal_from_stated_question(
                proposed_question, bundle, last_time_by_scope[bundle.scope]
            )
            if proposal is None:
                dropped.add_dropped_question(NOT_THERE, proposed_question.question)
            else:
                bundle_proposals.append(proposal)
        proposals_by_bundle.append(bundle_proposals)
    most_of_a_bundle = max(map(len, proposals_by_bundle), default=0)
    return [
        bundle_proposals[proposal_place]
        for proposal_place in range(most_of_a_bundle)
        for bundle_proposals in proposals_by_bundle
        if proposal_place < len(bundle_proposals)
    ]


def _proposals_to_check_and_spare_count(
    proposals: Sequence[Proposal], wanted_by_scope: dict[str, int]
) -> tuple[list[Proposal], int]:
    """Give the proposals that are checked, by kind as they are wanted, and how many are not."""
    checked_proposals = list[Proposal]()
    for scope, n_of_scope in wanted_by_scope.items():
        most_by_kind = share_questions_by_kind(ceil(n_of_scope * CHECKED), [*KINDS])
        checked_proposals += choose_proposals_by_kind(
            proposals_of_scope(proposals, scope), most_by_kind
        )
    return checked_proposals, len(proposals) - len(checked_proposals)


def _raise_if_service_requests_failed(check_context: CheckContext, step_text: str) -> None:
    """Stop where a service failed: what it answered is recorded, and nothing is written.

    :raises ModelError: with the number of requests, and what to do.
    """
    if not check_context.failures or check_context.service == llm.RECORDED:
        return
    advice = "run it again: what was answered is read from the service's record"
    if isinstance(check_context.service, llm.Service) and not check_context.service.record:
        advice = "give the service a record, so that the next run goes on where this one stopped"
    raise ModelError(
        f"{count_noun(len(check_context.failures), 'requests')} have no answer when questions were "
        f"{step_text} ({check_context.failures[0]}); {advice}"
    )


def _explain_why_nothing_is_left(
    service: str | llm.Service,
    n_prompts: int,
    n_unanswered: int,
    failures: list[str],
    dropped: DroppedProposals,
) -> str:
    """Say why there is no question at all."""
    if n_unanswered == n_prompts:
        reason = [*failures, "no answer fits"][0]
        return (
            f"no question was proposed: {n_unanswered:,} of {n_prompts:,} prompts have no answer "
            f'({reason}); service="NAME" or --service NAME asks a model'
        )
    reasons_text = ", ".join(
        f"{n_dropped:,} since {reason}"
        for reason, n_dropped in dropped.count_by_reason_sorted.items()
    )
    writing_service = service_name(service)
    return (
        f"no question of {writing_service!r} is left: dropped were "
        f"{reasons_text or 'none, as none was proposed'}"
    )


def _add_estimated_checks_to_spending(n_wanted: int, candidates: int, left_out: int) -> None:
    """Count about what the checks would ask; it depends on what is proposed."""
    n_checked = ceil(n_wanted * CHECKED)
    n_windows = ceil(candidates / WINDOW)
    count_by_task = {
        "answer": n_checked,
        "judge": ceil(0.7 * n_checked),
        "grades": n_windows * n_wanted,
        "holds": ceil(n_wanted * (0.5 * bool(n_windows) + 0.7 * left_out)),
    }
    guessed_tokens = dict[tuple[str, str], tuple[int, int]]()
    for task, count in count_by_task.items():
        for request_number in range(count):
            guessed_tokens[task, f"estimated {request_number}"] = _CHECKS[task]
    add_to_spending(guessed_tokens)


def _count_reworded_proposals(
    proposals: Sequence[Proposal], text_by_turn: dict[str, str], language: str
) -> int:
    """Count the proposals that share no content word with half of their evidence or more."""
    n_reworded = 0
    for proposal in proposals:
        evidence = list(map(text_by_turn.__getitem__, proposal.evidence))
        if (
            share_of_texts_sharing_no_word_or_zero(proposal.text, evidence, language=language)
            >= 0.5
        ):
            n_reworded += 1
    return n_reworded


def _dropped_proposals_to_frame(dropped: DroppedProposals) -> pl.DataFrame:
    reason_rows = list[tuple[str, int, str]]()
    for reason, n_dropped in dropped.count_by_reason_sorted.items():
        reason_rows.append((reason, n_dropped, dropped.examples[reason][0]))
    column_types = {"reason": pl.String, "n": pl.Int64, "example": pl.String}
    return pl.DataFrame(reason_rows, schema=column_types, orient="row")


def _proposal_to_question(session_by_turn: dict[str, str], proposal: Proposal) -> Question:
    sessions = dict.fromkeys(map(session_by_turn.__getitem__, proposal.evidence))
    return Question(
        query_id=proposal.query_id,
        scope=proposal.scope,
        text=proposal.text,
        answer=proposal.answer,
        question_type=proposal.kind,
        timestamp=proposal.asked_at,
        evidence=[*proposal.evidence],
        evidence_sessions=[*sessions],
        abstention=proposal.is_unanswerable_by_memory,
        stale=[*proposal.stale] or None,
        source=PROPOSED,
        reasons=[*proposal.reasons] or None,
        distractors=[*proposal.distractors] or None,
        checks=json.dumps(dict(proposal.checks), ensure_ascii=False),
    )
