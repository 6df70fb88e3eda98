"""Download a published benchmark file: resumable, verified, and never half there under its final name."""

from __future__ import annotations

import hashlib
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from memlab.errors import DataError

if TYPE_CHECKING:
    import httpx
    import polars as pl

_LOCOMO = "https://raw.githubusercontent.com/snap-research/locomo/3eb6f2c585f5e1699204e3c3bdf7adc5c28cb376/data/"
_LONGMEMEVAL = (
    "https://huggingface.co/datasets/xiaowu0162/longmemeval-cleaned/resolve/98d7416c24c778c2fee6e6f3006e7a073259d48f/"
)

ATTEMPTS = 5
BACKOFF_SECONDS = 0.5
_LONGEST_PAUSE_SECONDS = 30.0
_BUFFER_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Published:
    """A file as its publisher offers it.

    :param url: at a fixed revision, so that the bytes never change; of what memlab does not download, its home.
    :param sha256: as recorded by independent users of that revision; ``None`` where memlab does not download it.
    :param size: in bytes.
    :param splits: what parts there are, or which of them this file is.
    """

    url: str
    sha256: str | None
    size: int | None
    license: str
    splits: str = ""

    @property
    def filename(self) -> str:
        return self.url.rsplit("/", 1)[-1]


SOURCES: dict[str, Published] = {
    name: Published(address, sha256, size, license, splits)
    for name, address, sha256, size, license, splits in (
        ("locomo", _LOCOMO + "locomo10.json",
         "79fa87e90f04081343b8c8debecb80a9a6842b76a7aa537dc9fdf651ea698ff4", None, "CC BY-NC 4.0", "10 conversations"),
        ("longmemeval", _LONGMEMEVAL + "longmemeval_oracle.json",
         "821a2034d219ab45846873dd14c14f12cfe7776e73527a483f9dac095d38620c", 15_388_478, "MIT", "oracle"),
        ("longmemeval-s", _LONGMEMEVAL + "longmemeval_s_cleaned.json",
         "d6f21ea9d60a0d56f34a05b609c79c88a451d2ae03597821ea3d5a9678c3a442", 277_383_467, "MIT", "S"),
        ("longmemeval-m", _LONGMEMEVAL + "longmemeval_m_cleaned.json",
         "9d79e5524794a2e6900a3aa9cb7d9152c5a3e8319c9a87c25494ba1eacee495f", 2_737_100_077, "MIT", "M"),
    )
}  # fmt: skip
SOURCES["longmemeval-oracle"] = SOURCES["longmemeval"]
SOURCES |= {
    name: Published(address, None, None, license, splits)
    for name, address, license, splits in (
        ("beam", "https://github.com/mohammadtavakoli78/BEAM", "CC BY-SA 4.0", "100K, 500K, 1M, 10M tokens"),
        ("realtalk", "https://github.com/danny911kr/REALTALK", "not stated", "10 chats"),
        ("convomem", "https://huggingface.co/datasets/Salesforce/ConvoMem", "CC BY-NC 4.0", "six kinds, 1 to 6 pieces"),
        ("membench", "https://github.com/import-myself/Membench", "not stated", "First/ThirdAgent, Low/HighLevel"),
        ("lmeb", "https://huggingface.co/datasets/KaLM-Embedding/LMEB", "of each data set", "22 data sets"),
    )
}
"""Every benchmark that memlab reads by name, and what is known of its files."""


def fetch(name: str, *, directory: str | Path = "data", url: str | None = None, progress: bool = True) -> Path:
    """Download a benchmark's published file and give its path; what is already there and right is not loaded again.

    Bytes go to ``NAME.part`` and an interrupted download goes on where it stopped. Only a file whose SHA-256 is the
    published one gets its final name.

    :param name: ``locomo``, ``longmemeval`` (the oracle file, 15 MB), ``longmemeval-s`` (277 MB) or
        ``longmemeval-m`` (2.7 GB); :func:`published` lists them.
    :param url: another place that serves the same file, such as a mirror inside a laboratory.
    :raises DataError: when the name is unknown, the server cannot be reached or refuses, the file cannot be written,
        or what came has another SHA-256.

    >>> from memlab.datasets.fetch import SOURCES, fetch
    >>> sorted(name for name, source in SOURCES.items() if source.sha256)
    ['locomo', 'longmemeval', 'longmemeval-m', 'longmemeval-oracle', 'longmemeval-s']
    >>> fetch("locomo11")
    Traceback (most recent call last):
        ...
    memlab.errors.DataError: no published data set 'locomo11'; choose one of locomo, longmemeval, ...
    """
    if name not in SOURCES:
        offered = sorted(known for known, source in SOURCES.items() if source.sha256)
        raise DataError(f"no published data set {name!r}; choose one of {', '.join(offered)}")
    source = SOURCES[name]
    if source.sha256 is None:
        raise DataError(_elsewhere(name))
    target = Path(directory) / source.filename
    with _file_errors(target):
        if target.exists():
            digest = _sha256(target)
            if digest == source.sha256:
                return target
            raise DataError(
                f"{target} exists with SHA-256 {digest}, but the published file has {source.sha256}; it was left as it "
                "is. Move it away, or choose another directory, to download the published file"
            )
        target.parent.mkdir(parents=True, exist_ok=True)
        download = _Download(url or source.url, source, target.with_name(target.name + ".part"), progress)
        begun = download.size()
        if begun != source.size:
            download.run()
        digest = _sha256(download.part)
        if begun and digest != source.sha256:  # what stood there was of another file
            download.part.unlink()
            download.run()
            digest = _sha256(download.part)
        if digest != source.sha256:
            download.part.unlink()
            raise DataError(
                f"{download.url} gave a file with SHA-256 {digest}, but the published one is {source.sha256}; "
                f"{download.part} was removed. Run the command again; if this repeats, the server or a proxy serves "
                "another file"
            )
        os.replace(download.part, target)
    return target


def place(path: str | Path, *, directory: str | Path = "data") -> Path:
    """Give the path itself, or where :func:`fetch` puts the file of that name.

    :raises DataError: when there is neither a file of that name nor the fetched one.
    """
    name = str(path)
    if name not in SOURCES or Path(path).exists():
        return Path(path)
    source = SOURCES[name]
    target = Path(directory) / source.filename
    if source.sha256 is None:
        raise DataError(_elsewhere(name))
    if not target.exists():
        raise DataError(f"{name} is not at {target}; `memlab fetch {name}` downloads it, or give the path of the file")
    return target


def published() -> pl.DataFrame:
    """List the benchmarks that memlab knows by name.

    :returns: ``name``, ``license``, ``splits``, ``size`` (bytes), ``sha256`` (null where :func:`fetch` does not
        download it) and ``url``.

    >>> from memlab.datasets.fetch import published
    >>> published().filter(name="longmemeval-s")["size"].item()
    277383467
    """
    import polars as pl

    columns = ("license", "splits", "size", "sha256", "url")
    rows = [(name, *(getattr(source, column) for column in columns)) for name, source in SOURCES.items()]
    return pl.DataFrame(rows, schema=["name", *columns], orient="row")


def _elsewhere(name: str) -> str:
    return (
        f"{name} is not downloaded by memlab, since its publisher names no checksum: get it from "
        f"{SOURCES[name].url} and give the path of its folder or file"
    )


class _TryAgain(Exception):
    """The server cannot serve now, or not from where the part file ends."""

    def __init__(self, response: httpx.Response) -> None:
        super().__init__(f"HTTP status {response.status_code} {response.reason_phrase}")
        pause = response.headers.get("Retry-After", "")
        self.retry_after = float(pause) if pause.isdigit() else 0.0


@dataclass
class _Download:
    """Fills a part file. Whether all of its bytes are of one file is for its SHA-256 to tell."""

    url: str
    source: Published
    part: Path
    progress: bool

    def size(self) -> int:
        return self.part.stat().st_size if self.part.exists() else 0

    def run(self) -> None:
        """Go on after dropped connections as long as they bring anything new."""
        import httpx

        timeout = httpx.Timeout(30.0, connect=10.0)
        failures, furthest = 0, -1
        # Compressed bytes could not be continued at an offset of the plain file.
        with httpx.Client(follow_redirects=True, timeout=timeout, headers={"Accept-Encoding": "identity"}) as client:
            while True:
                try:
                    return self.receive(client)
                except httpx.InvalidURL as error:
                    raise DataError(f"{self.url!r} is no web address ({error}); expected https://…") from error
                except (httpx.HTTPError, _TryAgain) as error:
                    reached = self.size()
                    failures = 1 if reached > furthest >= 0 else failures + 1
                    furthest = max(furthest, reached)
                    if failures == ATTEMPTS or isinstance(error, httpx.UnsupportedProtocol | httpx.TooManyRedirects):
                        raise DataError(self.unreachable(failures, error)) from error
                    pause = max(BACKOFF_SECONDS * 2 ** (failures - 1), getattr(error, "retry_after", 0.0))
                    time.sleep(min(pause, _LONGEST_PAUSE_SECONDS))

    def receive(self, client: httpx.Client) -> None:
        """Append what the part file lacks; begin again where the server knows no ranges."""
        from tqdm import tqdm

        begun = self.size()
        with client.stream("GET", self.url, headers={"Range": f"bytes={begun}-"} if begun else {}) as response:
            self.check(response)
            begun = begun if response.status_code == 206 else 0
            length = response.headers.get("Content-Length", "")
            total = begun + int(length) if length.isdigit() else self.source.size
            needed, free = (total or 0) - begun, shutil.disk_usage(self.part.parent).free
            if needed > free:
                raise DataError(
                    f"{self.part.parent} has {free / 1e6:,.0f} MB free and {needed / 1e6:,.0f} MB are still to come; "
                    "free some space or choose another directory"
                )
            shown = {"unit": "B", "unit_scale": True, "desc": self.source.filename, "disable": not self.progress}
            with (
                self.part.open("ab" if begun else "wb", buffering=_BUFFER_BYTES) as out,
                tqdm(total=total, initial=begun, **shown) as bar,
            ):
                # Without a chunk size: httpx would gather chunks and lose the last one when the connection drops.
                for chunk in response.iter_bytes():
                    out.write(chunk)
                    bar.update(len(chunk))

    def check(self, response: httpx.Response) -> None:
        status = response.status_code
        if status in (200, 206):
            return
        if status == 416:  # the part file is longer than the file
            self.part.unlink(missing_ok=True)
        if status in (408, 416, 429) or status >= 500:
            raise _TryAgain(response)
        raise DataError(
            f"{self.url} answered HTTP status {status} {response.reason_phrase}; expected 200. The address may have "
            f"moved: download the file by hand and put it at {self.part.with_suffix('')}"
        )

    def unreachable(self, failures: int, error: Exception) -> str:
        size = f", {self.source.size:,} bytes" if self.source.size else ""
        begun = f" What came so far is kept in {self.part}; run the command again to go on."
        return (
            f"could not download {self.url}: tried {failures} times in a row, last {type(error).__name__}: {error}."
            f"{begun if self.part.exists() else ''} Without network, download that address on another machine and put "
            f"the file at {self.part.with_suffix('')} (SHA-256 {self.source.sha256}{size})"
        )


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def _file_errors(target: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise DataError(
            f"cannot write {error.filename or target}: {error.strerror or error}; free some space or choose a "
            "directory that can be written. What came so far is kept, and the command goes on from there"
        ) from error
