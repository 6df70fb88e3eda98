"""What a run depends on, and a saved run made again on exactly the table versions that it saw."""

from __future__ import annotations

import hashlib
import json
import re
import sys
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
"""What :func:`run_key_of_provenance` joins: runs that agree in these are one run."""
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
"""What of memlab a ranking depends on; an edit of another module invalidates no run."""
_DIGESTED_SUFFIXES = {".py", ".safetensors", ".toml"}
_BUNDLED = ("minilm", "multilingual")
_ENCODER = re.compile(r"(function|hashing|transformer) (.+?)(?: \([^()]*\))?, (\d+)-d, ")


def run_key_of_provenance(provenance: Mapping[str, Any]) -> str:
    """Join what a run depends on, of its provenance: equal keys, equal runs."""
    return json.dumps([provenance.get(field_name) for field_name in KEY_FIELDS], sort_keys=True)


@cache
def code_version() -> str:
    """Name the code that rankings depend on: memlab's version, and a hash of what ranks.

    What ranks is not Python alone, but the tables and the weights that come with memlab too.

    >>> from memlab.experiments.run_replay import code_version
    >>> code_version()
    'memlab ... (...)'
    """
    return f"memlab {memlab.__version__} ({_digest_code(RANKING_MODULES)[:8]})"


@cache
def package_digest() -> str:
    """Give a hash of all code of memlab, of the interpreter and of the packages that it requires.

    >>> from memlab.experiments.run_replay import package_digest
    >>> len(package_digest())
    64
    """
    return hashlib.sha256(f"{sys.version} {_digest_code(None)}".encode()).hexdigest()


def _digest_code(module_names: tuple[str, ...] | None) -> str:
    """Give a hash of some modules of memlab, or of all, and of the versions of what it requires."""
    package_folder = Path(memlab.__file__).parent
    code_digest = hashlib.sha256()
    for code_file in sorted(
        code_file
        for code_file in package_folder.rglob("*")
        if code_file.suffix in _DIGESTED_SUFFIXES
    ):
        relative_path = code_file.relative_to(package_folder)
        module_name = relative_path.parts[0].removesuffix(".py")
        if module_names is None or module_name in module_names:
            code_digest.update(relative_path.as_posix().encode() + b"\0" + code_file.read_bytes())
    with suppress(PackageNotFoundError):
        requirement_lines = sorted(
            requirement for requirement in requires("memlab") or () if "extra ==" not in requirement
        )
        for package in (re.split(r"[^\w.-]", requirement)[0] for requirement in requirement_lines):
            code_digest.update(f"{package}=={version(package)}\n".encode())
    return code_digest.hexdigest()


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
    saved_run = store.runs.load(run_id)
    provenance = saved_run.provenance
    lacking_fields = {"pipeline", "dataset", "fingerprint", "versions"} - provenance.keys()
    if lacking_fields:
        raise StoreError(
            f"run {run_id!r} does not say its {', '.join(sorted(lacking_fields))}; only what a "
            "pipeline made of a bench with "
            "a store can be made again"
        )
    saved_bench = load_run_bench(store, provenance, encoder=encoder)
    try:
        run_pipeline = pipeline(provenance["pipeline"])
    except PipelineError as error:
        raise StoreError(f"run {run_id!r} cannot be made again: {error}") from None
    for dependency_kind, digest_by_name in run_pipeline.dependencies().items():
        changed_names = [
            dependency_name
            for dependency_name, saved_digest in provenance.get(dependency_kind, {}).items()
            if digest_by_name.get(dependency_name) != saved_digest
        ]
        if changed_names:
            raise StoreError(
                f"run {run_id!r}: of its {dependency_kind}, {changed_names[0]!r} is gone or is "
                "not the one that it used"
            )
    replayed_run = run_pipeline.run(saved_bench, level=saved_run.level)
    if not replayed_run.frame.drop("score").equals(saved_run.frame.drop("score")):
        raise StoreError(
            f"run {run_id!r} ({saved_run.name}) ranks otherwise now, on the same data: the code "
            "or a library has changed "
            f"since it was made by {provenance.get('code', 'an unknown version of memlab')}"
        )
    return replayed_run


def load_run_bench(
    store: MemoryStore, provenance: Mapping[str, Any], *, encoder: Encoder | str | None = None
) -> Bench:
    """Make the bench that a run saw, on the table versions that it saw.

    :raises StoreError: as :func:`load_and_check_run_dataset`, or when the encoder is not the one
        that it saw.
    """
    return Bench.of(
        load_and_check_run_dataset(store, provenance),
        encoder=_load_and_check_encoder_of_run(provenance, encoder),
        store=store.at(provenance["versions"]),
        progress=False,
    )


def load_and_check_run_dataset(store: MemoryStore, provenance: Mapping[str, Any]) -> Dataset:
    """Read the dataset that a run saw.

    :param provenance: with ``dataset``, ``fingerprint`` and ``versions``; ``scopes`` where the run
        saw some of them.
    :raises StoreError: when the versions are gone, or hold something else than the run saw.
    """
    dataset = store.at(provenance["versions"]).dataset(provenance["dataset"])
    dataset = dataset.take(provenance["scopes"]) if "scopes" in provenance else dataset
    if dataset.fingerprint() != provenance["fingerprint"]:
        raise StoreError(
            f"store {store.uri}, dataset {dataset.name!r}: the run saw fingerprint "
            f"{provenance['fingerprint']}, the store "
            f"holds {dataset.fingerprint()} at its versions, perhaps with rows of an earlier file "
            "of that name: give each "
            "file its own name or store, and evaluate again"
        )
    return dataset


def _load_and_check_encoder_of_run(
    provenance: Mapping[str, Any], given_encoder: Encoder | str | None
) -> Encoder | None:
    """Load the encoder that a run describes, with its header and token encoder.

    :raises StoreError: where it is another than the run saw.
    """
    recorded_encoder = provenance.get("encoder")
    if recorded_encoder is None:
        return None
    header_fields = provenance.get("header", ())
    token_encoder = provenance.get("token_encoder", "")
    if given_encoder is None:
        token_encoder = token_encoder and _loadable_encoder_name(token_encoder)
        loaded_encoder = load(
            _loadable_encoder_name(recorded_encoder),
            header=header_fields,
            token_encoder=token_encoder,
        )
    else:
        loaded_encoder = load(given_encoder, header=header_fields)
    encoder_record = describe_encoder(loaded_encoder)
    for field_name in ("encoder", "token_encoder"):
        recorded_value = provenance.get(field_name)
        if encoder_record.get(field_name) != recorded_value:
            raise StoreError(
                f"the run saw {field_name.replace('_', ' ')} {recorded_value!r}; this is "
                f"{encoder_record.get(field_name)!r}: give that one"
            )
    return loaded_encoder


def _loadable_encoder_name(recorded_encoder: str) -> str:
    """Give the name by which an encoder is loaded that a run describes.

    :raises StoreError: for a folder and an endpoint, which a name does not say enough of.
    """
    encoder_parts = _ENCODER.match(recorded_encoder)
    if encoder_parts is not None:
        encoder_kind, model_name, dimensions = encoder_parts.groups()
        if encoder_kind == "hashing":
            return f"hashing:{dimensions}"
        if encoder_kind == "function" or model_name in _BUNDLED or "/" in model_name:
            return str(model_name)
    raise StoreError(
        f"encoder {recorded_encoder!r} cannot be loaded by a name; give it: replay(…, encoder=…)"
    )
