"""The worker: which sessions are due, and what is made of them, batch by batch."""

from __future__ import annotations

import hashlib
import json
from datetime import UTC, datetime, timedelta
from itertools import tee

import polars as pl

from memlab.config import IndexSettings
from memlab.distributed import spread
from memlab.embed import Encoder
from memlab.indexing.batch import EXTRACTIVE, Work, commit, make, read
from memlab.indexing.known import remember
from memlab.knowledge import by_model as knowledge_prompts
from memlab.language import gazetteers
from memlab.llm import Service, client
from memlab.records import IndexEvent, frame
from memlab.sessions import GAP
from memlab.store import MemoryStore
from memlab.summaries.asking import SESSION

# Raised by whoever changes what the same turns give.
CODE_VERSION = 5


def recipe(settings: IndexSettings, service: Service | None = None) -> str:
    """Name everything besides the turns that the index of a session depends on.

    With a service the versions of its prompts stand in the name, those of knowledge and of summaries: ``1-lab-p1.1-…``.

    >>> from memlab.config import IndexSettings
    >>> from memlab.indexing import recipe
    >>> recipe(IndexSettings()) == recipe(IndexSettings(batch=5))
    True
    >>> recipe(IndexSettings()) == recipe(IndexSettings(version=2))
    False
    """
    parts = settings.model_dump(exclude={"batch", "min_turns", "service"})
    parts |= {"code": CODE_VERSION, "model": service.model if service else None, "lists": gazetteers.installed()}
    digest = hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:8]
    asked = f"{service.name}-p{knowledge_prompts.PROMPTS_VERSION}.{SESSION.version}" if service else ""
    return f"{settings.version}-{asked or EXTRACTIVE}-{digest}"


def pending(
    store: MemoryStore,
    dataset: str,
    *,
    settings: IndexSettings | None = None,
    service: Service | None = None,
    now: datetime | None = None,
    gap: timedelta = GAP,
) -> pl.DataFrame:
    """List the closed sessions that are due: never tried, tried with another recipe, changed since, or failed.

    :param now: the present; a session whose last turn lies less than ``gap`` before it is still open.
    :returns: ``session_id``, ``scope``, ``n_turns``, ``digest``, ``attempts`` (with this recipe on these turns),
        ``generation`` (of the rows that count now) and ``service`` (that made those), in the dataset's order.
    """
    version = recipe(settings or IndexSettings(), service)
    sessions = store.sessions(dataset, columns=["session_id", "scope", "end", "n_turns"])
    if now is not None:
        present = now.replace(tzinfo=UTC) if now.tzinfo is None else now.astimezone(UTC)
        sessions = sessions.filter((pl.col("end") < present - gap).fill_null(True))
    seen = store.knowledge.states(dataset).drop("scope", "reason", "at")
    due = sessions.join(store.knowledge.digests(dataset), on="session_id", maintain_order="left").join(
        seen, on="session_id", how="left", suffix="_seen", maintain_order="left"
    )
    same = (pl.col("version") == version) & (pl.col("digest") == pl.col("digest_seen"))
    done = same.fill_null(False) & (pl.col("status") != "failed")
    attempts = pl.when(same).then("attempts").otherwise(0)
    return due.filter(~done).select(
        "session_id", "scope", "n_turns", "digest", attempts.alias("attempts"), "generation", "service"
    )


def index(
    store: MemoryStore,
    dataset: str,
    *,
    settings: IndexSettings | None = None,
    service: Service | None = None,
    encoder: Encoder | None = None,
    now: datetime | None = None,
    gap: timedelta = GAP,
    progress: bool = False,
    engine: str = "local",
) -> pl.DataFrame:
    """Index the sessions that are due, once; those that failed are due again at the next call.

    A session's rows count once all of them are written: a process that dies, a model that fails or a full disk leaves
    what counted before. Turns can be ingested meanwhile. A session that fails, fails alone.

    :param settings: what is made; see :class:`memlab.config.IndexSettings`.
    :param service: the language model that makes it; ``None`` for rules and sentences of the conversation.
    :param encoder: embeds the summaries, so that they are found at once; otherwise they are when first searched.
    :param now: the present, by which sessions are open or closed; the clock where none is given.
    :param gap: the silence after which a session is closed.
    :param engine: ``ray``: the sessions are read by the workers of a cluster, see :func:`memlab.distributed.spread`.
    :returns: what happened: rows of :class:`memlab.records.IndexEvent`.
    :raises ModelError: when the service cannot be asked at all (no client, no key): nothing was done.
    :raises StoreError: when the store cannot be read or written: what was committed before stays.

    >>> import tempfile, memlab
    >>> from memlab.indexing import index
    >>> from memlab.store import MemoryStore
    >>> data = memlab.sample(turns=60)
    >>> store = MemoryStore.open(tempfile.mkdtemp())
    >>> _ = store.ingest(data)
    >>> set(index(store, data.name)["kind"]) <= {"created", "skipped"}
    True
    >>> store.knowledge.rows("summaries", data.name)["session_id"].to_list() == data.sessions["session_id"].to_list()
    True
    >>> index(store, data.name).height
    0
    """
    from tqdm import tqdm

    chosen = settings or IndexSettings()
    if service is not None:
        client(service)
    if not (chosen.summaries or chosen.facts or chosen.observations):
        return frame(IndexEvent)
    present = now or datetime.now(UTC)
    store.knowledge.sweep(dataset, now=present)
    due = pending(store, dataset, settings=chosen, service=service, now=present, gap=gap)
    language = store.datasets().filter(pl.col("name") == dataset)["language"].item()
    work = Work(dataset, language, chosen, service, recipe(chosen, service), present)
    events = [frame(IndexEvent)]
    with tqdm(total=due.height, desc="index", unit=" sessions", disable=not progress, delay=2) as bar:
        ahead, own = tee(due.iter_slices(chosen.batch))
        reads = ((batch, read(store, work, batch)) for batch in ahead)
        for batch, made in zip(own, spread(make, reads, work, engine=engine), strict=True):
            events.append(commit(store, work, batch, made))
            bar.update(batch.height)
    if encoder is not None:
        remember(store, dataset, encoder, summaries=chosen.summaries, facts=len(events) > 1, progress=progress)
    return pl.concat(events)
