"""What is known from finished sessions: what an index writes.

Ids are unique and opaque; ``evidence`` names turns.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Fact:
    """One statement about the world, as it was made.

    What it did to other facts is computed, never stored here.

    :param about: whom or what it is about: ``Caroline``, ``Caroline's sister``, ``staging
        database``.
    :param slot: a short name of what is stated of it, the same each time: ``employer``, ``door
        code``.
    :param value: the value, as it was written: ``Acme``, ``12u34``.
    :param source: how it was established: ``stated``, ``observed``, ``inferred``, ``system``, or
        ``reported`` for what stands on words of others, forwarded or quoted.
    :param asserted_at: when it was said or observed, in UTC; ``None`` where nobody dated it.
    :param recorded_at: when it reached the memory; ``None`` for at once. Later than ``asserted_at``
        for a late arrival.
    :param said_by: who said it.
    :param sentence: the statement as a sentence that stands alone; ``None`` where nobody wrote one.
    :param session_id: in which it was said; ``None`` where its source knows no sessions.
    :param kind: ``state`` (is so for a time), ``event`` (happened; never ends), ``plan`` (is meant
        to come about) or ``rule`` (is to be obeyed; deeds refute none).
    :param holds: false for what is said not to be so: a denial.
    :param values: ``one`` where the slot has one value at a time, so that another one replaces it;
        ``many`` where values stand side by side.
    :param since: from when it holds, or when it happened or is planned, as precisely as it was
        said: ``2026``, ``2026-03`` or ``2026-03-14``. ``None``: nobody said.
    :param until: the last day, month or year in which it holds, likewise.
    :param effects: what it does to earlier facts, each one of :data:`EFFECTS`; ``affected`` names
        beside each the earlier fact: its ``fact_id``, or the id of what it states
        (:func:`meaning_id`).
    """

    fact_id: str
    scope: str
    about: str
    slot: str
    value: str
    source: str
    evidence: list[str]
    asserted_at: datetime | None
    recorded_at: datetime | None = None
    said_by: str | None = None
    sentence: str | None = None
    session_id: str | None = None
    kind: str = "state"
    holds: bool = True
    values: str = "one"
    since: str | None = None
    until: str | None = None
    effects: list[str] = field(default_factory=list)
    affected: list[str] = field(default_factory=list)


KINDS = ("state", "event", "plan", "rule")
VALUES = ("one", "many")
EFFECTS = ("replaces", "ends", "came_about", "cancelled", "was_wrong", "repeats")


def meaning_id(
    about: str,
    slot: str,
    value: str,
    *,
    kind: str = "state",
    holds: bool = True,
    size: int = 8,
) -> str:
    """Give the id of what a fact states, whoever said it and whenever: "f" and hex digits.

    :param size: bytes of the digest, each two digits.

    >>> from memlab.records.facts import meaning_id
    >>> meaning_id("Mel", "employer", "Acme") == meaning_id("Mel", "Employer", "ACME")
    True
    """
    key_parts = [" ".join(key_part.split()).casefold() for key_part in (about, slot, value)]
    key_parts += [kind, str(holds)]
    digest = hashlib.blake2b("\x1f".join(key_parts).encode(), digest_size=size)
    return f"f{digest.hexdigest()}"


@dataclass(frozen=True, slots=True)
class Entity:
    """Somebody or something that a session names.

    :param name: as it is written where it is written best: ``Dr. Lee``.
    :param type: ``person``, ``organization``, ``place``, ``date``, ``event``, ``product``, ``work``
        or ``other`` (a pet); empty where nothing tells.
    :param context: the sentence of its first mention.
    :param relations: how it is related to other entities of its session, as short phrases
        (``sister of``); ``related`` names beside each the other entity.
    """

    entity_id: str
    scope: str
    session_id: str
    name: str
    type: str
    context: str
    evidence: list[str]
    relations: list[str] = field(default_factory=list)
    related: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Summary:
    """What a session was about.

    Each list of texts has beside it the ids of the turns that each text stands on.

    :param summary: the sentences, joined.
    :param sentences: 2 to 6 short sentences: what was done, decided and left open.
    :param topics: keywords, most telling first.
    :param open_questions: what was asked and not answered.
    :param entities: names of who and what came up, most mentioned first.
    :param service: what made it: ``extractive``, or the name of a language-model service.
    :param model: the model at that service; ``None`` for ``extractive``.
    :param version: the recipe that it was made with; see :mod:`memlab.indexing`.
    """

    session_id: str
    scope: str
    summary: str
    sentences: list[str]
    evidence: list[list[str]]
    topics: list[str]
    decisions: list[str]
    decision_evidence: list[list[str]]
    action_items: list[str]
    action_item_evidence: list[list[str]]
    open_questions: list[str]
    open_question_evidence: list[list[str]]
    entities: list[str]
    start: datetime | None
    end: datetime | None
    participants: list[str]
    n_turns: int
    service: str
    model: str | None = None
    version: str = ""
    created_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class IndexState:
    """Where a session stands with the index: what the last attempt came to.

    :param status: ``indexed``; ``fallback`` where a model was asked in vain, so that it is due
        again; ``failed``.
    :param version: the recipe of the last attempt; ``digest`` is the hash of the turns that it
        read.
    :param generation: names the rows that count for this session; those of an attempt that was cut
        off never do.
    :param attempts: number of attempts with this recipe on these turns.
    :param reason: why it failed or was skipped, or why another service than the one asked made it.
    :param service: what made the rows of ``generation``.
    :param turns: the turns that those rows were made of: id, a space, and the hash of the text.
    """

    session_id: str
    scope: str
    status: str
    version: str
    digest: str
    generation: str | None
    attempts: int
    reason: str | None
    service: str | None
    at: datetime | None
    turns: list[str] | None = None


@dataclass(frozen=True, slots=True)
class IndexEvent:
    """Something that happened to a session in the index.

    :param kind: ``created``, ``updated``, ``failed``, ``fallback``, or ``kept``: what stays as a
        model made it, since no better answer is there or recorded.
    :param seconds: how long the session took, its share of its batch.
    :param reason: for a failure or a fallback, why; otherwise what was left out, and why.
    """

    event_id: str
    session_id: str
    scope: str
    kind: str
    at: datetime | None
    seconds: float
    service: str | None
    version: str
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Node:
    """A summary that stands on other summaries: of a session, a week, a month, or a cluster.

    :param node_id: unique; opaque; of a session its own id, else the key of what it was written of,
        so that equal inputs give equal ids.
    :param level: 0 for sessions, 1 for weeks and for clusters of turns; else one more than its
        children.
    :param kind: ``session``, ``week``, ``month`` or ``cluster``.
    :param text: the sentences, joined; ``evidence`` has for each the ids of the turns that it
        stands on.
    :param parent: the node above; of several in a soft grouping, the one it belongs to most.
        ``None`` at the top.
    :param children: the nodes below in order of time, also those that belong to another parent
        more; of the lowest clusters turns.
    :param turns: ids of all turns below, in order of time.
    :param start: of the first of them, in UTC; ``end`` of the last.
    :param method: how its children were put together: ``mixture``, ``chunks``,
        ``weeks (Europe/Oslo)`` …
    :param service: what wrote the sentences: ``extractive``, or the name of a language-model
        service.
    :param topics: keywords, most telling first.
    :param carried_on: what goes on from the period before; as ``decisions`` and ``open_questions``,
        not of clusters.
    :param dropped: sentences of the model that were left out: they name entries that are not there.
    :param reason: why it is extractive though a model was asked; empty otherwise.
    :param model: the model at that service; ``None`` for ``extractive``.
    :param version: the task and version of the prompt, as ``rollup 1``.
    :param made_of: digest of the entries that it was written of: their ids, texts and turns.
    :param added: of a cluster, how many entries joined it after the clusters were formed.
    """

    node_id: str
    scope: str
    level: int
    kind: str
    text: str
    sentences: list[str]
    evidence: list[list[str]]
    parent: str | None
    children: list[str]
    turns: list[str]
    start: datetime | None
    end: datetime | None
    method: str
    service: str
    topics: list[str]
    carried_on: list[str]
    carried_on_evidence: list[list[str]]
    decisions: list[str]
    decision_evidence: list[list[str]]
    open_questions: list[str]
    open_question_evidence: list[list[str]]
    dropped: int = 0
    reason: str = ""
    model: str | None = None
    version: str = ""
    made_of: str = ""
    added: int = 0
