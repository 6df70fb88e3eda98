"""Download a published benchmark file: resumed, verified, and never half there under its final
name.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memlab.errors import DataError

if TYPE_CHECKING:
    import polars as pl

_LOCOMO = (
    "https://raw.githubusercontent.com/snap-research/locomo/"
    "3eb6f2c585f5e1699204e3c3bdf7adc5c28cb376/data/"
)
_HUB = "https://huggingface.co/datasets/"
_LONGMEMEVAL = (
    f"{_HUB}xiaowu0162/longmemeval-cleaned/resolve/"
    "98d7416c24c778c2fee6e6f3006e7a073259d48f/longmemeval_"
)


@dataclass(frozen=True, slots=True)
class Published:
    """A benchmark as its publisher offers it.

    :param url: at a fixed revision, so that the bytes never change; of what memlab does not
        download, its home.
    :param splits: what parts there are, or which of them this file is.
    :param sha256: as recorded by independent users of that revision; ``None`` where memlab does not
        download it.
    :param size: in bytes.
    """

    url: str
    license: str
    splits: str
    sha256: str | None = None
    size: int | None = None


_LOCOMO_SHA = "79fa87e90f04081343b8c8debecb80a9a6842b76a7aa537dc9fdf651ea698ff4"
_ORACLE_SHA = "821a2034d219ab45846873dd14c14f12cfe7776e73527a483f9dac095d38620c"
_S_SHA = "d6f21ea9d60a0d56f34a05b609c79c88a451d2ae03597821ea3d5a9678c3a442"
_M_SHA = "9d79e5524794a2e6900a3aa9cb7d9152c5a3e8319c9a87c25494ba1eacee495f"
_ORACLE = Published(f"{_LONGMEMEVAL}oracle.json", "MIT", "oracle", _ORACLE_SHA, 15_388_478)
SOURCES: dict[str, Published] = {
    "locomo": Published(f"{_LOCOMO}locomo10.json", "CC BY-NC 4.0", "10 conversations", _LOCOMO_SHA),
    "longmemeval": _ORACLE,
    "longmemeval-s": Published(f"{_LONGMEMEVAL}s_cleaned.json", "MIT", "S", _S_SHA, 277_383_467),
    "longmemeval-m": Published(f"{_LONGMEMEVAL}m_cleaned.json", "MIT", "M", _M_SHA, 2_737_100_077),
    "longmemeval-oracle": _ORACLE,
    "beam": Published(
        "https://github.com/mohammadtavakoli78/BEAM", "CC BY-SA 4.0", "100K, 500K, 1M, 10M tokens"
    ),
    "realtalk": Published("https://github.com/danny911kr/REALTALK", "not stated", "10 chats"),
    "convomem": Published(
        f"{_HUB}Salesforce/ConvoMem", "CC BY-NC 4.0", "six kinds, 1 to 6 evidence items"
    ),
    "membench": Published(
        "https://github.com/import-myself/Membench", "not stated", "First/ThirdAgent, Low/HighLevel"
    ),
    "lmeb": Published(f"{_HUB}KaLM-Embedding/LMEB", "of each data set", "22 data sets"),
}
"""Every benchmark that memlab reads by name, and what is known of its files."""
SAMPLE = "sample"
"""The name by which the sample is read wherever a file is named."""


def fetch(name: str, *, directory: str | Path = "data") -> Path:
    """Download a benchmark's published file and give its path.

    What is already there and right is not loaded again.

    Bytes go to ``NAME.part``, and the next call goes on where an interrupted one stopped. Only a
    file whose SHA-256 is the published one gets its final name.

    :param name: ``locomo``, ``longmemeval`` (the oracle file, 15 MB), ``longmemeval-s`` (277 MB) or
        ``longmemeval-m`` (2.7 GB); :func:`list_published_benchmarks` lists them.
    :raises DataError: when the name is unknown, the server cannot be reached or refuses, the file
        cannot be written, or what came has another SHA-256.

    >>> from memlab.datasets.fetch import fetch
    >>> fetch("locomo11")
    Traceback (most recent call last):
        ...
    memlab.errors.DataError: no published data set 'locomo11'; choose one of locomo, longmemeval,
    ...
    """
    from memlab.atomic_files import lock_path

    source, target = _find_published_and_target_or_refuse(name, directory)
    partial_file = target.with_name(f"{target.name}.part")
    download_hint = (
        f"Or download {source.url} by hand and put it at {target} (SHA-256 {source.sha256})"
    )
    try:
        if target.exists():
            if _file_sha256(target) == source.sha256:
                return target
            raise DataError(
                f"{target} is there and not the published file (SHA-256 {source.sha256}); move it "
                "away"
            )
        target.parent.mkdir(parents=True, exist_ok=True)
        # Two that add to one part would mix their bytes.
        with lock_path(
            _download_lock_path(target), alone=True, wait_for=f"the download of {target}"
        ):
            if not target.exists():
                _download_and_verify(source, partial_file, target, download_hint)
    except OSError as error:
        raise DataError(
            f"cannot write {target} ({error}); what came so far is kept, run it again. "
            f"{download_hint}"
        ) from error
    return target


def _download_lock_path(target_file: Path) -> Path:
    """Name the file that is locked during a download, the same for every spelling of the path."""
    name = hashlib.sha256(os.fsencode(target_file.resolve())).hexdigest()[:16]
    return Path(tempfile.gettempdir()) / f"memlab-fetch-{name}.lock"


def _download_and_verify(
    published: Published, partial_file: Path, target_file: Path, download_hint: str
) -> None:
    """Download to a part file, which gets its name where its digest is the published one."""
    _resume_download(published, partial_file, download_hint)
    digest = _file_sha256(partial_file)
    if digest != published.sha256:
        partial_file.unlink()
        fault_text = f"{published.url} gave a file with SHA-256 {digest}, not the published one"
        raise DataError(f"{fault_text}; run it again. {download_hint}")
    os.replace(partial_file, target_file)


def _file_sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _resume_download(published: Published, partial_file: Path, download_hint: str) -> None:
    """Append to a part file what it lacks.

    Begin again where the server knows no ranges, or it is too long.
    """
    import httpx

    from memlab.progress_bars import progress_bar

    n_begun = partial_file.stat().st_size if partial_file.exists() else 0
    # Compressed bytes could not be continued at an offset of the plain file.
    headers = {"Accept-Encoding": "identity"} | ({"Range": f"bytes={n_begun}-"} if n_begun else {})
    client = httpx.Client(
        follow_redirects=True, timeout=30.0, transport=httpx.HTTPTransport(retries=3)
    )
    try:
        with client, client.stream("GET", published.url, headers=headers) as response:
            if response.status_code == 416:  # nothing is left to come
                return
            response.raise_for_status()
            n_begun = n_begun if response.status_code == 206 else 0
            bar_options: dict[str, Any] = {
                "total": published.size,
                "initial": n_begun,
                "unit": "B",
                "unit_scale": True,
                "what": partial_file.stem,
            }
            with (
                partial_file.open("ab" if n_begun else "wb") as partial_stream,
                progress_bar(**bar_options) as byte_bar,
            ):
                for byte_chunk in (
                    response.iter_bytes()
                ):  # of a size, it would lose the last one when the connection drops
                    byte_bar.update(partial_stream.write(byte_chunk))
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        error_text = f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"
        kept_text = f"what came so far is kept in {partial_file}, run it again"
        raise DataError(
            f"could not download {published.url} ({error_text}); {kept_text}. {download_hint}"
        ) from error


def _find_published_and_target_or_refuse(
    benchmark_name: str, directory: str | Path
) -> tuple[Published, Path]:
    if benchmark_name not in SOURCES:
        offered = ", ".join(known_name for known_name, source in SOURCES.items() if source.sha256)
        raise DataError(f"no published data set {benchmark_name!r}; choose one of {offered}")
    source = SOURCES[benchmark_name]
    if source.sha256 is None:
        refusal = (
            f"{benchmark_name} is not downloaded by memlab, since its publisher names no checksum"
        )
        raise DataError(
            f"{refusal}: get it from {source.url} and give the path of its folder or file"
        )
    return source, Path(directory) / source.url.rpartition("/")[2]


def resolve_path_or_benchmark_name(path: str | Path, *, directory: str | Path = "data") -> Path:
    """Give the path itself, where the sample lies, or where :func:`fetch` puts the file of that
    name.

    ``sample``, and what is named as in a checkout (``data/sample/sample.jsonl``, and
    ``../data/sample/sample.jsonl`` as in its notebooks), is the sample that comes with memlab where
    the working directory has no such file.

    :raises DataError: when there is neither a file of that name nor the fetched one.
    """
    from memlab.atomic_files import shipped_data

    if os.path.exists(path):
        return Path(path)
    if str(path) == SAMPLE:
        return shipped_data(SAMPLE, "sample.jsonl")
    path_parts = Path(path).parts
    if path_parts[:1] == ("..",):
        path_parts = path_parts[1:]
    if path_parts[:2] == ("data", SAMPLE) and shipped_data(*path_parts[1:]).exists():
        return shipped_data(*path_parts[1:])
    if str(path) not in SOURCES:
        return Path(path)
    _, target = _find_published_and_target_or_refuse(str(path), directory)
    if not target.exists():
        raise DataError(
            f"{path} is not at {target}; `memlab fetch {path}` downloads it, or give the path of "
            "the file"
        )
    return target


def list_published_benchmarks() -> pl.DataFrame:
    """List the benchmarks that memlab knows by name.

    :returns: ``name``, ``license``, ``splits``, ``size`` (bytes), ``sha256`` (null where
        :func:`fetch` does not download it) and ``url``.
    """
    import polars as pl

    rows = [{"name": name, **asdict(source)} for name, source in SOURCES.items()]
    return pl.DataFrame(rows).select("name", "license", "splits", "size", "sha256", "url")
