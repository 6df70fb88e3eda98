"""A saved run made again, on exactly the table versions that it saw."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from memlab.embed import Encoder, load
from memlab.errors import PipelineError, StoreError
from memlab.pipelines import pipeline
from memlab.records import Dataset, Run
from memlab.retrieve import Bench
from memlab.store import MemoryStore

_ENCODER = re.compile(r"(?P<kind>\w+) (?P<model>.+?)(?: \([^()]*\))?, (?P<dim>\d+)-d, ")


def replay(store: MemoryStore, run_id: str, *, encoder: Encoder | str | None = None) -> Run:
    """Rank a saved run again from the store alone, and check that the ranking is the same.

    The tables are read at the versions that the run saw, whatever was written since.

    :param encoder: only for a run whose encoder was a directory or an endpoint, which a name in a store cannot give.
    :returns: the run, with the documents' texts.
    :raises StoreError: when there is no such run, its provenance does not say how it was made, the dataset, the
        encoder, a model file or the code of an added stage is not the one that it saw, or the ranks differ, as they
        may after a change of code.

    >>> import tempfile, memlab
    >>> store = memlab.MemoryStore.open(tempfile.mkdtemp())
    >>> data = memlab.sample(turns=60)
    >>> bench = memlab.Bench.of(data, encoder="hashing:64", store=store)
    >>> run = memlab.pipeline("hybrid | mmr").run(bench)
    >>> memlab.replay(store, store.runs.save(run)).frame.equals(run.frame)
    True
    """
    saved = store.runs.load(run_id)
    about = saved.provenance
    lacking = [name for name in ("pipeline", "dataset", "fingerprint", "versions") if name not in about]
    if lacking:
        raise StoreError(
            f"run {run_id!r} does not say its {lacking[0]}; only what a pipeline made of a bench with a store can be "
            "made again"
        )
    bench = seen_bench(store, about, encoder=encoder)
    try:
        stages = pipeline(about["pipeline"])
    except PipelineError as error:
        raise StoreError(f"run {run_id!r} cannot be made again: {error}") from None
    for kind, reads in stages.dependencies().items():
        changed = [name for name, digest in about.get(kind, {}).items() if reads.get(name) != digest]
        if changed:
            what = f"model {changed[0]!r}" if kind == "files" else f"the code of stage {changed[0]!r}"
            what = "the file of recorded answers" if changed[0] == "recorded answers" else what
            raise StoreError(f"run {run_id!r}: {what} is gone or is not the one that the run used")
    run = stages.run(bench, level=saved.level)
    if not run.frame.drop("score").equals(saved.frame.drop("score")):
        raise StoreError(
            f"run {run_id!r} ({saved.name}) ranks otherwise now, on the same data: the code or a library has changed "
            f"since it was made by {about.get('code', 'an unknown version of memlab')}"
        )
    return run


def seen_bench(store: MemoryStore, provenance: Mapping[str, Any], *, encoder: Encoder | str | None = None) -> Bench:
    """Make the bench that a run saw, on the table versions that it saw.

    :raises StoreError: as :func:`seen_dataset`, or when the encoder is not the one that it saw.
    """
    return Bench.of(
        seen_dataset(store, provenance),
        encoder=_encoder(provenance, encoder),
        store=store.at(provenance["versions"]),
        header=provenance.get("header", ()),
        progress=False,
    )


def seen_dataset(store: MemoryStore, provenance: Mapping[str, Any]) -> Dataset:
    """Read the dataset that a run saw.

    :param provenance: with ``dataset``, ``fingerprint`` and ``versions``; ``scopes`` where the run saw some of them.
    :raises StoreError: when the versions are gone, or hold something else than the run saw.
    """
    data = store.at(provenance["versions"]).dataset(provenance["dataset"])
    data = data.take(provenance["scopes"]) if "scopes" in provenance else data
    if data.fingerprint() != provenance["fingerprint"]:
        raise StoreError(
            f"store {store.uri}, dataset {data.name!r}: the run saw fingerprint {provenance['fingerprint']}, the store "
            f"holds {data.fingerprint()} at its versions, perhaps with rows of an earlier file of that name: give each "
            "file its own name or store, and evaluate again"
        )
    return data


def _encoder(provenance: Mapping[str, Any], named: Encoder | str | None) -> Encoder | None:
    """Load the encoder that a run names, and see that it is the same.

    :raises StoreError: when its description does not say which it is, or its files have changed.
    """
    described = provenance.get("encoder")
    if described is None:
        return None
    wanted = _name(described) if named is None else named
    if wanted is None:
        raise StoreError(f"encoder {described!r} cannot be loaded by a name; give it: replay(…, encoder=…)")
    model = load(wanted) if isinstance(wanted, str) else wanted
    if model.identity.describe() != described:
        raise StoreError(f"the run saw encoder {described!r}; this is {model.identity.describe()!r}: give that one")
    return model


def _name(described: str) -> str | None:
    """Give what :func:`memlab.embed.load` takes for an encoder's description, where there is such a name."""
    parts = _ENCODER.match(described)
    if parts is None or parts["kind"] not in ("function", "hashing", "transformer"):
        return None
    if parts["kind"] == "hashing":
        return f"hashing:{parts['dim']}"
    if parts["kind"] == "function":
        return parts["model"]
    return parts["model"] if parts["model"] == "minilm" or "/" in parts["model"] else None
