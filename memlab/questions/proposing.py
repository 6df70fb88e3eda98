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
from memlab.datasets import load
from memlab.datasets.question_files import question_line
from memlab.embed import Encoder
from memlab.errors import DataError, ModelError, check_at_least, warn_user
from memlab.files import open_atomically
from memlab.knowledge.extraction import service_name
from memlab.llm.spending import add_to_spending, is_estimating
from memlab.questions.bundles import Bundle, gather_bundles, message_entries
from memlab.questions.evidence_checks import (
    WINDOW,
    Asking,
    check_answers,
    check_further,
    check_needed,
)
from memlab.questions.proposal_prompts import propose_request
from memlab.questions.question_kinds import KINDS, share_by_weight, share_out
from memlab.questions.screening import (
    NOT_THERE,
    Dropped,
    Proposal,
    choose_by_kind,
    of_one_scope,
    read_proposal,
    screen,
    share_no_word,
)
from memlab.records import Dataset, Question, frame
from memlab.records.dataset import PROPOSED, refuse_frame
from memlab.retrieve import Bench
from memlab.store import MemoryStore
from memlab.terminal import count_noun

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
        refuse_to_replace(path)
        with open_atomically(Path(path)) as out:
            for row in self.questions.iter_rows(named=True):
                line = json.dumps(question_line(row), ensure_ascii=False)
                out.write(line.encode("utf-8", "backslashreplace") + b"\n")

    def describe(self) -> str:
        """Say in a few lines what came of it."""
        counts = self.questions["question_type"].value_counts(sort=True).iter_rows()
        kinds = ", ".join(f"{n} {kind}" for kind, n in counts)
        lines = [
            f"{self.questions.height:,} of {self.about['wanted']:,} questions: {kinds or 'none'}"
        ]
        lines += self.notes
        for reason, n, _ in self.dropped.iter_rows():
            lines.append(f"dropped: {n:,}, since {reason}")
        return "\n".join(lines)

    def __repr__(self) -> str:
        return self.describe()


def refuse_to_replace(path: str | Path) -> None:
    """Refuse a file of proposals that is there: a person may have accepted some of it.

    :raises DataError: when it is there.

    >>> from memlab.questions.proposing import refuse_to_replace
    >>> refuse_to_replace("no-such-folder/proposed.jsonl")
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
    together are gathered from facts (:mod:`memlab.questions.bundles`); one prompt a bundle proposes
    questions; what is wrong by itself is dropped (:mod:`memlab.questions.screening`); the rest is
    asked again, each prompt alone (:mod:`memlab.questions.evidence_checks`). What fails is dropped
    and counted. Within ``memlab.llm.track_spending(estimate=True)`` nothing is asked and nothing is
    proposed, and what would be asked is counted.

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
    sizes = dataset.turns.group_by("scope", maintain_order=True).len()
    long = sizes.filter(pl.col("len") >= 2)
    if long.is_empty():
        raise DataError(
            f"{dataset.name!r} has no memory of two messages or more; there is nothing to ask about"
        )
    notes = _notes_on_scopes(dataset, sizes)
    data = dataset.take(long["scope"].to_list())
    bench = Bench.of(data, encoder=encoder, store=store, progress=False)
    failures = list[str]()
    asking = Asking(service, bench, failures)
    known, fact_note = _known_facts(data, facts, asking)
    if fact_note:
        notes.append(fact_note)
    wanted = _share_by_size(n, long)
    bundles = _bundles(data, known, asking, wanted, seed)
    requests = list(map(partial(_request, data.turns), bundles))
    values = asking.ask(requests, "proposals")
    if is_estimating():
        _estimate_checks(n, candidates, left_out)
        return ProposedSet(frame(Question), _dropped_frame(Dropped()), {"wanted": n}, tuple(notes))
    dropped = Dropped()
    proposals = _read_proposals(bundles, values, data.turns, dropped)
    session_of = dict(data.turns.select("turn_id", "session_id").iter_rows())
    proposed = len(proposals) + sum(dropped.counts.values())
    kept = screen(proposals, dropped, session_of=session_of, language=data.language)
    kept, spare = _first_to_check(kept, wanted)
    unread = values.count(None)
    if unread:
        notes.append(f"{unread:,} of {len(values):,} prompts that propose have no answer")
    _stop_where_unanswered(asking, "proposed")
    kept = check_answers(kept, asking, dropped)
    _stop_where_unanswered(asking, "answered from the evidence")
    kept = check_further(kept, asking, dropped, candidates=candidates, seed=seed)
    _stop_where_unanswered(asking, "searched for further messages")
    kept = check_needed(kept, asking, dropped, most=left_out, session_of=session_of)
    _stop_where_unanswered(asking, "asked without an item")
    if not kept:
        raise ModelError(_nothing_left(service, len(values), unread, failures, dropped))
    chosen = list[Proposal]()
    for scope, number in wanted.items():
        chosen += choose_by_kind(of_one_scope(kept, scope), share_out(number, [*KINDS]))
    if spare:
        notes.append(f"{count_noun(spare, 'proposals')} more than were to be checked")
    texts = dict(data.turns.select("turn_id", "text").iter_rows())
    apart = _count_reworded(chosen, texts, data.language)
    notes.append(f"{apart:,} of {len(chosen):,} share no content word with half of their evidence")
    about = {
        "service": service_name(service),
        "wanted": n,
        "proposed": proposed,
        "kept": len(chosen),
        "prompts": len(requests),
        "candidates": candidates,
        "left_out": left_out,
        "seed": seed,
        "fingerprint": data.fingerprint(),
        "reworded": apart,
    }
    if len(chosen) < n:
        warn_user(
            f"{len(chosen):,} of {n:,} questions: {proposed:,} were proposed, "
            f"{sum(dropped.counts.values()):,} dropped; .dropped says why"
        )
    rows = frame(Question, map(partial(_question, session_of), chosen))
    return ProposedSet(rows, _dropped_frame(dropped), about, tuple(notes))


def _notes_on_scopes(dataset: Dataset, sizes: pl.DataFrame) -> list[str]:
    """Say what memories cannot be asked about, or not in every way."""
    notes = list[str]()
    short = sizes.filter(pl.col("len") < 2).height
    if short:
        notes.append(f"{count_noun(short, 'memories')} of one message left out")
    of_scope = dataset.turns.group_by("scope").agg(
        sessions=pl.col("session_id").n_unique(), times=pl.col("timestamp").count()
    )
    lone = of_scope.filter(pl.col("sessions") == 1).height
    if lone:
        notes.append(
            f"{count_noun(lone, 'memories')} of one session: no question needs evidence of several"
        )
    undated = of_scope.filter(pl.col("times") == 0).height
    if undated:
        notes.append(f"{count_noun(undated, 'memories')} without times: no question about dates")
    return notes


def _known_facts(
    data: Dataset, facts: pl.DataFrame | None, asking: Asking
) -> tuple[pl.DataFrame, str]:
    """Give the facts that are given or that a model reads, and a line on sessions that it did not
    read."""
    if facts is not None:
        return facts, ""
    found = knowledge.extract(data.turns, service=asking.service)
    if is_estimating() or not found.note:
        return found.facts, ""
    note = found.note
    if found.facts.is_empty():
        note += "; bundles are made of the messages there"
    return found.facts, note


def _share_by_size(n: int, sizes: pl.DataFrame) -> dict[str, int]:
    """Share the questions out to scopes by their numbers of messages; a scope without any is left
    out."""
    counts = share_by_weight(n, dict(sizes.iter_rows()))
    return {scope: number for scope, number in counts.items() if number}


def _bundles(
    data: Dataset, facts: pl.DataFrame, asking: Asking, wanted: dict[str, int], seed: int
) -> list[Bundle]:
    """Gather the bundles of all scopes."""
    encoder = asking.bench.embedder()

    def encode(texts: list[str]) -> np.ndarray:
        return encoder.encode(texts, kind="document", progress=False)

    bundles = list[Bundle]()
    for scope, number in wanted.items():
        turns = data.turns.filter(scope=scope)
        stated = facts.filter(pl.col("scope") == scope)
        bundles += gather_bundles(turns, stated, encode, number, seed=seed)
    return bundles


def _request(turns: pl.DataFrame, bundle: Bundle) -> llm.Request:
    entries = message_entries(bundle, turns.filter(scope=bundle.scope))
    return propose_request(entries, bundle.kinds, bundle.most, bundle.turns)


def _read_proposals(
    bundles: Sequence[Bundle], values: Sequence[Any], turns: pl.DataFrame, dropped: Dropped
) -> list[Proposal]:
    """Read what was proposed, the first of each bundle before the second of any."""
    last: dict[str, datetime | None] = dict(
        turns.group_by("scope").agg(pl.col("timestamp").max()).iter_rows()
    )
    listed = list[list[Proposal]]()
    for bundle, value in zip(bundles, values, strict=True):
        found = list[Proposal]()
        if value is None:
            listed.append(found)
            continue
        for stated in value.questions:
            proposal = read_proposal(stated, bundle, last[bundle.scope])
            if proposal is None:
                dropped.add(NOT_THERE, stated.question)
            else:
                found.append(proposal)
        listed.append(found)
    longest = max(map(len, listed), default=0)
    return [found[at] for at in range(longest) for found in listed if at < len(found)]


def _first_to_check(
    proposals: Sequence[Proposal], wanted: dict[str, int]
) -> tuple[list[Proposal], int]:
    """Give the proposals that are checked, by kind as they are wanted, and how many are not."""
    checked = list[Proposal]()
    for scope, number in wanted.items():
        most = share_out(ceil(number * CHECKED), [*KINDS])
        checked += choose_by_kind(of_one_scope(proposals, scope), most)
    return checked, len(proposals) - len(checked)


def _stop_where_unanswered(asking: Asking, step: str) -> None:
    """Stop where a service failed: what it answered is recorded, and nothing is written.

    :raises ModelError: with the number of requests, and what to do.
    """
    if not asking.failures or asking.service == llm.RECORDED:
        return
    advice = "run it again: what was answered is read from the service's record"
    if isinstance(asking.service, llm.Service) and not asking.service.record:
        advice = "give the service a record, so that the next run goes on where this one stopped"
    raise ModelError(
        f"{count_noun(len(asking.failures), 'requests')} have no answer when questions were "
        f"{step} ({asking.failures[0]}); {advice}"
    )


def _nothing_left(
    service: str | llm.Service, prompts: int, unread: int, failures: list[str], dropped: Dropped
) -> str:
    """Say why there is no question at all."""
    if unread == prompts:
        reason = [*failures, "no answer fits"][0]
        return (
            f"no question was proposed: {unread:,} of {prompts:,} prompts have no answer "
            f'({reason}); service="NAME" or --service NAME asks a model'
        )
    reasons = ", ".join(f"{n:,} since {reason}" for reason, n in dropped.counts.items())
    name = service_name(service)
    return (
        f"no question of {name!r} is left: dropped were {reasons or 'none, as none was proposed'}"
    )


def _estimate_checks(n: int, candidates: int, left_out: int) -> None:
    """Count about what the checks would ask; it depends on what is proposed."""
    checked = ceil(n * CHECKED)
    windows = ceil(candidates / WINDOW)
    number = {
        "answer": checked,
        "judge": ceil(0.7 * checked),
        "grades": windows * n,
        "holds": ceil(n * (0.5 * bool(windows) + 0.7 * left_out)),
    }
    guessed = dict[tuple[str, str], tuple[int, int]]()
    for task, count in number.items():
        for at in range(count):
            guessed[task, f"estimated {at}"] = _CHECKS[task]
    add_to_spending(guessed)


def _count_reworded(proposals: Sequence[Proposal], texts: dict[str, str], language: str) -> int:
    """Count the proposals that share no content word with half of their evidence or more."""
    count = 0
    for each in proposals:
        evidence = list(map(texts.__getitem__, each.evidence))
        if share_no_word(each.text, evidence, language=language) >= 0.5:
            count += 1
    return count


def _dropped_frame(dropped: Dropped) -> pl.DataFrame:
    rows = list[tuple[str, int, str]]()
    for reason, n in dropped.counts.items():
        rows.append((reason, n, dropped.examples[reason][0]))
    types = {"reason": pl.String, "n": pl.Int64, "example": pl.String}
    return pl.DataFrame(rows, schema=types, orient="row")


def _question(session_of: dict[str, str], each: Proposal) -> Question:
    sessions = dict.fromkeys(map(session_of.__getitem__, each.evidence))
    return Question(
        query_id=each.query_id,
        scope=each.scope,
        text=each.text,
        answer=each.answer,
        question_type=each.kind,
        timestamp=each.asked_at,
        evidence=[*each.evidence],
        evidence_sessions=[*sessions],
        abstention=each.is_absent,
        stale=[*each.stale] or None,
        source=PROPOSED,
        reasons=[*each.reasons] or None,
        distractors=[*each.distractors] or None,
        checks=json.dumps(dict(each.checks), ensure_ascii=False),
    )
