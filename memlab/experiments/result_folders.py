"""Where the results and figures of a dataset go: a folder that no other dataset shares."""

from __future__ import annotations

import hashlib
import json
import os
import re
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

from memlab.files import open_atomically

MARKER = "dataset.json"
"""The file in a folder of results that says of which dataset they are."""
_LONGEST = 80
_TAKEN = ("", "index.html", "gallery", "notebooks")
"""Names within ``results`` and ``figures`` that are no dataset's."""


@dataclass(frozen=True)
class ResultFolder:
    """Where one dataset, or a part of it, has its results.

    :param results: the folder of its results.
    :param figures: the folder of its figures.
    :param about: ``name`` of the dataset, ``part`` of it that was taken, and ``source``, a digest
        of where its file lies.
    :param note: what is to be said of a folder that the name would have given; empty where there is
        nothing.
    """

    results: Path
    figures: Path
    about: Mapping[str, Any] = field(repr=False)
    note: str = ""

    def keep(self, *, notebooks: Path | None = None) -> None:
        """Say in the folders whose they are: another dataset of that name gets others.

        :param notebooks: where executed notebooks of this dataset go, which export figures.
        """
        places = dict((read_marker(self.results) or {}).get("places", {}))
        if notebooks is not None:
            places["notebooks"] = os.path.relpath(notebooks, self.results)
            places["figures"] = os.path.relpath(self.figures, self.results)
            _write_marker(self.figures, self.about)
        _write_marker(self.results, {**self.about, "places": places})


def choose_result_folder(
    name: str,
    file: str | Path,
    *,
    part: Mapping[str, Any],
    results: str | Path,
    figures: str | Path,
) -> ResultFolder:
    """Choose where a dataset has its results: a folder of its name, numbered where another has it.

    Nothing is written. A folder without a :data:`MARKER`, as a former version of memlab or somebody
    else left it, is another's.

    :param name: of the dataset.
    :param file: what it was read from, which tells datasets of one name apart.
    :param part: what was taken of it: ``scopes`` (names, or how many were drawn by ``seed``).
    :param results: where the folders of all datasets are, ``figures`` those of their figures.

    >>> from memlab.experiments.result_folders import choose_result_folder
    >>> places = {"results": "r", "figures": "f"}
    >>> found = choose_result_folder("my chats", "a.jsonl", part={"scopes": 3}, **places)
    >>> found.results.as_posix(), found.figures.as_posix()
    ('r/my-chats-3-memories', 'f/my-chats-3-memories')
    """
    where = os.path.relpath(os.path.realpath(file), os.path.realpath(results))
    # A digest: results are shared, and a path may show more of a machine than one likes.
    source = hashlib.sha256(os.fsencode(where)).hexdigest()[:16]
    about = {"name": name, "part": dict(part), "source": source}
    wanted = folder_name(name, part)
    for folder in _numbered_names(wanted):
        places = (Path(results) / folder, Path(figures) / folder)
        if all(_is_free(place, about) for place in places):
            break
    note = ""
    if folder != wanted:
        note = (
            f"{Path(results) / wanted} or {Path(figures) / wanted} is not of this dataset: another of "
            "that name, a former version of memlab, or you made it; it is left as it is, and this goes "
            f"to {folder}"
        )
    return ResultFolder(*places, about=about, note=note)


def folder_name(name: str, part: Mapping[str, Any]) -> str:
    """Give a name for a folder that every file system takes, of a dataset or a part of it.

    >>> from memlab.experiments.result_folders import folder_name
    >>> folder_name("../Chats: 2026", {"scopes": ["ann", "bo"]}), folder_name("..", {})
    ('Chats-2026-of-ann-bo', 'dataset')
    """
    scopes = part.get("scopes")
    words = name
    if isinstance(scopes, int):
        words = f"{name}-{scopes}-memories"
    elif scopes:
        words = f"{name}-of-{'-'.join(scopes)}"
    safe = re.sub(r"[^\w.]+", "-", unicodedata.normalize("NFC", words)).strip("-.")
    if len(os.fsencode(safe)) > _LONGEST:
        digest = hashlib.sha256(os.fsencode(words)).hexdigest()[:8]
        cut = os.fsencode(safe)[:_LONGEST].decode(errors="ignore").strip("-.")
        safe = f"{cut}-{digest}"
    if safe.lower() in _TAKEN:
        return f"dataset-{safe}".strip("-")
    return safe


def read_marker(folder: Path) -> dict[str, Any] | None:
    """Give what the marker of a folder says; ``None`` where there is none that can be read."""
    try:
        about = json.loads((folder / MARKER).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(about, dict) or not isinstance(about.get("name"), str):
        return None
    if not isinstance(about.get("places"), dict):
        about["places"] = {}
    return about


def _numbered_names(name: str) -> Iterator[str]:
    yield name
    for number in count(2):
        yield f"{name}-{number}"


def _is_free(place: Path, about: Mapping[str, Any]) -> bool:
    """Say whether a folder is not there, empty, or of this dataset."""
    if not os.path.lexists(place):
        return True
    if not place.is_dir():
        return False
    marked = read_marker(place)
    if marked is None:
        return not any(place.iterdir())
    return all(marked.get(name) == value for name, value in about.items())


def _write_marker(folder: Path, about: Mapping[str, Any]) -> None:
    text = json.dumps(about, indent=1, ensure_ascii=False) + "\n"
    with open_atomically(folder / MARKER) as stream:
        stream.write(text.encode("utf-8", "backslashreplace"))
