"""Evaluations as they were printed and written, kept beside the runs that they are of.

An evaluation of a file whose runs are all saved follows from the bytes of the file, the options and
settings, the code, and the saved runs. Where none of these changed, it is given back, and nothing
is read, ranked or measured again. There is one place, the folder :data:`FOLDER` of a store; one
key, a digest of all that an evaluation depends on; and one bound, :data:`MAX_BYTES`.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from memlab.atomic_files import open_atomically, remove
from memlab.errors import ExportError, MemlabError
from memlab.experiments.experiment import Experiment
from memlab.experiments.run_replay import package_digest
from memlab.registry import formats
from memlab.store import MemoryStore
from memlab.store.store_opening import absolute_store_place
from memlab.store.table_states import list_files_of_local_tables

FOLDER = "kept_evaluations"
"""The folder of a store that holds them, a ZIP archive each."""
MAX_BYTES = 1 << 26
"""Of all archives of a store; those that were used longest ago go first."""
MAX_ROWS = 2_000_000
"""Of the rankings of an evaluation: longer ones take minutes, and more memory than they are worth.
"""
READ_ALONE = ("chatlog", "locomo", "longmemeval")
"""Formats whose readers look at the file itself and at nothing beside it."""
_STATED = "evaluation.json"
_FILES = "files/"
_TABLES = ("runs", "rankings", "grids")


@dataclass(frozen=True)
class KeptEvaluation:
    """What an evaluation of one dataset printed and wrote.

    :param dataset: its name; ``name`` that of the experiment, ``n_runs`` how many runs it has.
    :param loaded: the lines that say what was loaded.
    :param measured: the texts that say what was measured.
    :param files: what was written, by the name of the file.
    """

    dataset: str
    name: str
    n_runs: int
    loaded: tuple[str, ...]
    measured: tuple[str, ...]
    files: Mapping[str, bytes]


@dataclass(frozen=True)
class EvaluationCache:
    """The evaluations of a store, asked for one.

    :param store_folder: the folder of the store.
    :param dependencies: all that the evaluation depends on, but for what the store holds.

    >>> import tempfile
    >>> from pathlib import Path
    >>> from memlab.experiments.kept_evaluations import EvaluationCache
    >>> EvaluationCache(Path(tempfile.mkdtemp()), "{}").find() is None
    True
    """

    store_folder: Path
    dependencies: str

    @classmethod
    def of_store(cls, store_uri: str, dependencies: Mapping[str, Any]) -> EvaluationCache | None:
        """Give the evaluations of a store of this machine; ``None`` for one elsewhere.

        :param dependencies: what the caller knows, to which the code is added: of memlab and of the
            packages that bring formats.
        """
        store_place = absolute_store_place(store_uri)
        if "://" in store_place:
            return None
        format_packages = [
            (entry.name, entry.value, entry.dist and entry.dist.version)
            for entry in entry_points(group=formats.group)
        ]
        all_dependencies = {
            **dependencies,
            "code": package_digest(),
            "formats": format_packages,
        }
        return cls(
            Path(store_place),
            json.dumps(all_dependencies, sort_keys=True, ensure_ascii=True, default=str),
        )

    def find(self) -> KeptEvaluation | None:
        """Give the evaluation that is asked for, where it is kept."""
        archive_path = self._archive_path()
        try:
            with zipfile.ZipFile(archive_path) as archive:
                stated = json.loads(archive.read(_STATED))
                files = {
                    name.removeprefix(_FILES): archive.read(name)
                    for name in archive.namelist()
                    if name.startswith(_FILES)
                }
            os.utime(archive_path)
        except (OSError, ValueError, KeyError, zipfile.BadZipFile, EOFError):
            return None  # none is there, or it is damaged: it is made again
        for name in ("loaded", "measured"):
            stated[name] = tuple(stated[name])
        return KeptEvaluation(**stated, files=files)

    def keep_if_saved(
        self,
        experiment: Experiment,
        loaded_lines: Sequence[str],
        measured_texts: Sequence[str],
        files: Mapping[str, bytes],
    ) -> None:
        """Keep an evaluation, where the store has its runs, and the comparison under its name.

        What was read from a format of several files is not kept; a place that cannot be written
        keeps nothing.

        :param experiment: of one dataset; the other parameters are as in :class:`KeptEvaluation`.
        """
        # First the state: after what another process writes from here on, it is another one.
        archive_path = self._archive_path()
        if experiment.data.format not in READ_ALONE:
            return
        if not _is_saved(experiment, MemoryStore.open(self.store_folder, create=False)):
            return
        stated = {
            "dataset": experiment.data.name,
            "name": experiment.name,
            "n_runs": experiment.cells.height,
            "loaded": [*loaded_lines],
            "measured": [*measured_texts],
        }
        with (
            suppress(ExportError),
            open_atomically(archive_path) as stream,
            zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive,
        ):
            archive.writestr(_STATED, json.dumps(stated))
            for file_name, content in files.items():
                archive.writestr(f"{_FILES}{file_name}", content)
        self._remove_oldest_beyond_bound()

    def _archive_path(self) -> Path:
        """Give the path of the archive of the evaluation, as the store is at this moment."""
        table_states = list_files_of_local_tables(self.store_folder, *_TABLES)
        key_text = json.dumps([self.dependencies, table_states])
        key = hashlib.sha256(key_text.encode()).hexdigest()[:32]
        return self.store_folder / FOLDER / f"{key}.zip"

    def _remove_oldest_beyond_bound(self) -> None:
        archives = []
        with suppress(OSError):  # another process may be removing some too
            for archive_path in (self.store_folder / FOLDER).glob("*.zip"):
                status = archive_path.stat()
                archives.append((status.st_mtime_ns, status.st_size, archive_path))
        archives.sort(reverse=True)
        n_bytes = 0
        for _, size, archive_path in archives:
            n_bytes += size
            if n_bytes > MAX_BYTES:
                remove(archive_path)


def _is_saved(experiment: Experiment, store: MemoryStore) -> bool:
    """Say whether a store has the runs of an experiment, and the experiment under its name."""
    run_ids = store.runs.listing()["run_id"]
    if not experiment.cells["run_id"].is_in(run_ids.implode()).all():
        return False
    try:
        content = store.grids.load(experiment.name)
    except MemlabError:
        return False
    return bool(content["cells"] == experiment.cells.drop("read").to_dicts())


def collect_exported_files(
    experiment: Experiment, export: Callable[[Path], object]
) -> dict[str, bytes] | None:
    """Collect what an export writes, by the name of the file.

    :param export: writes to a folder.
    :returns: ``None`` where the rankings are too long to be held, or there is no room for
        temporary files.
    """
    n_rows = sum(ranking.frame.height for ranking in experiment.runs)
    if n_rows > MAX_ROWS:
        return None
    try:
        with TemporaryDirectory() as scratch_folder:
            export(Path(scratch_folder))
            paths = sorted(Path(scratch_folder).iterdir(), key=_place_in_export)
            return {path.name: path.read_bytes() for path in paths}
    except (OSError, ExportError):
        return None


def _place_in_export(path: Path) -> tuple[bool, bool, str]:
    """Sort rankings first, those of turns before those of sessions, as an export writes them."""
    return path.suffix != ".trec", ".turn." not in path.name, path.name


def write_collected_files(files: Mapping[str, bytes], folder: Path) -> None:
    """Write files to a folder, each whole or not at all.

    :raises ExportError: when one cannot be written.
    """
    for file_name, content in files.items():
        with open_atomically(folder / file_name) as stream:
            stream.write(content)


class _WarningCounter(logging.Handler):
    """Counts what is logged as a warning or worse."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.n_warnings = 0

    def emit(self, record: logging.LogRecord) -> None:
        self.n_warnings += 1


@contextmanager
def counting_warnings() -> Iterator[_WarningCounter]:
    """Count the warnings that memlab logs, which an evaluation that is given back would not repeat.

    >>> from memlab.experiments.kept_evaluations import counting_warnings
    >>> with counting_warnings() as counter:
    ...     pass
    >>> counter.n_warnings
    0
    """
    counter = _WarningCounter()
    logger = logging.getLogger("memlab")
    logger.addHandler(counter)
    try:
        yield counter
    finally:
        logger.removeHandler(counter)
