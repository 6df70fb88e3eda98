"""What a run depends on, and a saved run made again on exactly the table versions that it saw."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import Any

import memlab
from memlab.embed import Encoder, describe_encoder, load
from memlab.errors import PipelineError, StoreError
from memlab.pipelines import pipeline
from memlab.records import Dataset, Run
from memlab.retrieve import Bench
from memlab.store import MemoryStore

KEY_FIELDS = (
    "dataset",
    "fingerprint",
    "encoder",
    "token_encoder",
    "header",
    "pipeline",
    "level",
    "code",
    "files",
    "stages",
)
"""What :func:`run_key` joins: runs that agree in these are one run."""
RANKING_MODULES = (
    "cluster",
    "embed",
    "knowledge",
    "llm",
    "pipelines",
    "records",
    "registry",
    "rerank",
    "retrieve",
    "select",
    "sessions",
    "store",
    "summaries",
    "text",
)
"""The packages and modules of memlab that a ranking depends on; an edit of any other invalidates no run."""
_DIGESTED_SUFFIXES = {".py", ".safetensors", ".toml"}
_BUNDLED = ("minilm", "multilingual")
_ENCODER = re.compile(r"(function|hashing|transformer) (.+?)(?: \([^()]*\))?, (\d+)-d, ")


def run_key(provenance: Mapping[str, Any]) -> str:
    """Join what a run depends on, of its provenance: equal keys, equal runs."""
    return json.dumps([provenance.get(name) for name in KEY_FIELDS], sort_keys=True)


@cache
def code_version() -> str:
    """Name the code that rankings depend on: memlab's version, and a hash of what ranks and of what it needs.

    What ranks is not Python alone, but the tables and the weights that come with memlab too.

    >>> from memlab.experiments.replaying import code_version
    >>> code_version()
    'memlab ... (...)'
    """
    root = Path(memlab.__file__).parent
    digest = hashlib.sha256()
    for path in sorted(path for path in root.rglob("*") if path.suffix in _DIGESTED_SUFFIXES):
        place = path.relative_to(root)
        if place.parts[0].removesuffix(".py") in RANKING_MODULES:
            digest.update(place.as_posix().encode() + b"\0" + path.read_bytes())
    with suppress(PackageNotFoundError):
        needed = sorted(line for line in requires("memlab") or () if "extra ==" not in line)
        for package in (re.split(r"[^\w.-]", line)[0] for line in needed):
            digest.update(f"{package}=={version(package)}\n".encode())
    return f"memlab {memlab.__version__} ({digest.hexdigest()[:8]})"


def replay(
    store: MemoryStore | str | Path, run_id: str, *, encoder: Encoder | str | None = None
) -> Run:
    """Rank a saved run again from the store alone, and check that the ranking is the same.

    The tables are read at the versions that the run saw, whatever was written since.

    :param encoder: only for a run whose encoder was a directory or an endpoint, which a name in a
        store cannot give.
    :returns: the run, with the documents' texts.
    :raises StoreError: when there is no such run, its provenance does not say how it was made, the
        dataset, the encoder, a model file or the code of an added stage is not the one that it saw,
        or the ranks differ, as they may after a change of code.

    >>> import tempfile, memlab
    >>> store = memlab.MemoryStore.open(tempfile.mkdtemp())
    >>> data = memlab.sample(turns=60)
    >>> bench = memlab.Bench.of(data, encoder="hashing:64", store=store)
    >>> run = memlab.pipeline("hybrid | mmr").run(bench)
    >>> memlab.replay(store, store.runs.save(run)).frame.equals(run.frame)
    True
    """
    store = store if isinstance(store, MemoryStore) else MemoryStore.open(store, create=False)
    saved = store.runs.load(run_id)
    about = saved.provenance
    lacking = {"pipeline", "dataset", "fingerprint", "versions"} - about.keys()
    if lacking:
        raise StoreError(
            f"run {run_id!r} does not say its {', '.join(sorted(lacking))}; only what a pipeline made of a bench with "
            "a store can be made again"
        )
    bench = load_run_bench(store, about, encoder=encoder)
    try:
        stages = pipeline(about["pipeline"])
    except PipelineError as error:
        raise StoreError(f"run {run_id!r} cannot be made again: {error}") from None
    for kind, reads in stages.dependencies().items():
        changed = [
            name for name, digest in about.get(kind, {}).items() if reads.get(name) != digest
        ]
        if changed:
            raise StoreError(
                f"run {run_id!r}: of its {kind}, {changed[0]!r} is gone or is not the one that it used"
            )
    run = stages.run(bench, level=saved.level)
    if not run.frame.drop("score").equals(saved.frame.drop("score")):
        raise StoreError(
            f"run {run_id!r} ({saved.name}) ranks otherwise now, on the same data: the code or a library has changed "
            f"since it was made by {about.get('code', 'an unknown version of memlab')}"
        )
    return run


def load_run_bench(
    store: MemoryStore, provenance: Mapping[str, Any], *, encoder: Encoder | str | None = None
) -> Bench:
    """Make the bench that a run saw, on the table versions that it saw.

    :raises StoreError: as :func:`load_run_dataset`, or when the encoder is not the one that it saw.
    """
    return Bench.of(
        load_run_dataset(store, provenance),
        encoder=_load_run_encoder(provenance, encoder),
        store=store.at(provenance["versions"]),
        progress=False,
    )


def load_run_dataset(store: MemoryStore, provenance: Mapping[str, Any]) -> Dataset:
    """Read the dataset that a run saw.

    :param provenance: with ``dataset``, ``fingerprint`` and ``versions``; ``scopes`` where the run
        saw some of them.
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


def _load_run_encoder(provenance: Mapping[str, Any], named: Encoder | str | None) -> Encoder | None:
    """Load the encoder that a run describes, with its header and token encoder, and see that it is the same."""
    described = provenance.get("encoder")
    if described is None:
        return None
    header = provenance.get("header", ())
    tokens = provenance.get("token_encoder", "")
    if named is None:
        tokens = tokens and _name_described(tokens)
        own = load(_name_described(described), header=header, token_encoder=tokens)
    else:
        own = load(named, header=header)
    about = describe_encoder(own)
    for field in ("encoder", "token_encoder"):
        seen = provenance.get(field)
        if about.get(field) != seen:
            raise StoreError(
                f"the run saw {field.replace('_', ' ')} {seen!r}; this is {about.get(field)!r}: give that one"
            )
    return own


def _name_described(described: str) -> str:
    """Give the name by which an encoder is loaded that a run describes.

    :raises StoreError: for a folder and an endpoint, which a name does not say enough of.
    """
    parts = _ENCODER.match(described)
    if parts is not None:
        kind, model, dim = parts.groups()
        if kind == "hashing":
            return f"hashing:{dim}"
        if kind == "function" or model in _BUNDLED or "/" in model:
            return str(model)
    raise StoreError(
        f"encoder {described!r} cannot be loaded by a name; give it: replay(…, encoder=…)"
    )
