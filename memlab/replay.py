"""A saved run made again, on exactly the table versions that it saw."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memlab.errors import StoreError
from memlab.pipelines import Pipeline, pipeline
from memlab.records import Dataset, Run
from memlab.retrieve import Bench
from memlab.store import MemoryStore

if TYPE_CHECKING:
    from memlab.embed import Encoder

_ENCODER = re.compile(r"(?P<kind>\w+) (?P<model>.+?)(?: \([^()]*\))?, (?P<dim>\d+)-d, ")


def replay(store: MemoryStore, run_id: str, *, encoder: Encoder | str | None = None) -> Run:
    """Make a saved run again from the store alone, and see that it ranks the same.

    The tables are read at the versions that the run saw, whatever was written since.

    :param encoder: only for a run whose encoder was a directory or an endpoint, which a name in a store cannot give.
    :returns: the run, with the documents' texts.
    :raises StoreError: when there is no such run, its provenance does not say how it was made, the dataset, the
        encoder or a model file is not the one that it saw, or the ranks differ, as they may after a change of code.

    >>> import tempfile, memlab
    >>> from memlab.replay import replay
    >>> store = memlab.MemoryStore.open(tempfile.mkdtemp())
    >>> data = memlab.datasets.synthetic.generate(turns=60, seed=0)
    >>> bench = memlab.Bench.of(data, encoder="hashing:64", store=store)
    >>> run = memlab.pipeline("hybrid | mmr").run(bench)
    >>> replay(store, store.save_run(run)).frame.equals(run.frame)
    True
    """
    saved = store.run(run_id)
    about = saved.provenance
    lacking = [name for name in ("pipeline", "dataset", "fingerprint", "versions") if name not in about]
    if lacking:
        raise StoreError(
            f"run {run_id!r} does not say its {lacking[0]}; only what a pipeline made of a bench with a store can be "
            "made again"
        )
    data = seen_dataset(store, about)
    stages = pipeline(about["pipeline"])
    changed = [name for name, digest in about.get("files", {}).items() if model_files(stages).get(name) != digest]
    if changed:
        raise StoreError(f"run {run_id!r}: model {changed[0]!r} is gone or is not the one that the run used")
    bench = Bench.of(
        data,
        encoder=_encoder(about, encoder),
        store=store.at(about["versions"]),
        header=about.get("header", ()),
        progress=False,
    )
    run = stages.run(bench, level=saved.level)
    if not run.frame.drop("score").equals(saved.frame.drop("score")):
        raise StoreError(
            f"run {run_id!r} ({saved.name}) ranks otherwise now, on the same data: the code or a library has changed "
            f"since it was made by {about.get('code', 'an unknown version of memlab')}"
        )
    return run


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


def model_files(stages: Pipeline) -> dict[str, str]:
    """Give the files that stages read as ``model``, a path, with a hash of what is in them; a name is no path.

    >>> from memlab import pipeline
    >>> from memlab.replay import model_files
    >>> model_files(pipeline("hybrid | mmr"))
    {}
    """
    paths = {str(stage.parameters["model"]) for stage in stages.stages if "model" in stage.parameters}
    return {path: _digest(Path(path)) for path in sorted(paths) if Path(path).exists()}


def _digest(path: Path) -> str:
    digest = hashlib.sha256()
    for file in sorted(p for p in path.rglob("*") if p.is_file()) if path.is_dir() else [path]:
        digest.update(str(file.relative_to(path)).encode())
        with file.open("rb") as stream:
            digest.update(hashlib.file_digest(stream, "sha256").digest())
    return digest.hexdigest()[:16]


def _encoder(provenance: Mapping[str, Any], given: Encoder | str | None) -> Encoder | None:
    """Load the encoder that a run names, and see that it is the same.

    :raises StoreError: when it cannot be told from its description, or its files have changed.
    """
    from memlab.embed import load

    described = provenance.get("encoder")
    if described is None:
        return None
    wanted = given if given is not None else _name(described)
    if wanted is None:
        raise StoreError(f"encoder {described!r} cannot be loaded by a name; give it: replay(…, encoder=…)")
    model = load(wanted) if isinstance(wanted, str) else wanted
    if model.identity.describe() != described:
        raise StoreError(f"the run saw encoder {described!r}; this is {model.identity.describe()!r}: give that one")
    return model


def _name(described: str) -> str | None:
    """Give what :func:`memlab.embed.load` takes for an encoder's description, where there is such a name."""
    found = _ENCODER.match(described)
    if found is None or found["kind"] not in ("hashing", "transformer"):
        return None
    if found["kind"] == "hashing":
        return f"hashing:{found['dim']}"
    return found["model"] if found["model"] == "minilm" or "/" in found["model"] else None
