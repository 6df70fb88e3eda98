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

from memlab.atomic_files import open_atomically

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

    def write_owner_markers(self, *, notebooks: Path | None = None) -> None:
        """Say in the folders whose they are: another dataset of that name gets others.

        :param notebooks: where executed notebooks of this dataset go, which export figures.
        """
        result_places = dict((read_folder_marker(self.results) or {}).get("places", {}))
        if notebooks is not None:
            result_places["notebooks"] = os.path.relpath(notebooks, self.results)
            result_places["figures"] = os.path.relpath(self.figures, self.results)
            _write_folder_marker(self.figures, self.about)
        _write_folder_marker(self.results, {**self.about, "places": result_places})


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
    relative_file = os.path.relpath(os.path.realpath(file), os.path.realpath(results))
    # A digest: results are shared, and a path may show more of a machine than one likes.
    source_digest = hashlib.sha256(os.fsencode(relative_file)).hexdigest()[:16]
    marker_content = {"name": name, "part": dict(part), "source": source_digest}
    wanted_name = safe_folder_name(name, part)
    for folder_chosen in _iter_endless_numbered_names(wanted_name):
        folder_places = (Path(results) / folder_chosen, Path(figures) / folder_chosen)
        if all(
            _is_missing_empty_or_of_dataset(folder_place, marker_content)
            for folder_place in folder_places
        ):
            break
    folder_note = ""
    if folder_chosen != wanted_name:
        folder_note = (
            f"{Path(results) / wanted_name} or {Path(figures) / wanted_name} is not of this "
            "dataset: another of "
            "that name, a former version of memlab, or you made it; it is left as it is, and this "
            "goes "
            f"to {folder_chosen}"
        )
    return ResultFolder(*folder_places, about=marker_content, note=folder_note)


def safe_folder_name(dataset_name: str, part: Mapping[str, Any]) -> str:
    """Give a name for a folder that every file system takes, of a dataset or a part of it.

    >>> from memlab.experiments.result_folders import safe_folder_name
    >>> safe_folder_name("../Chats: 2026", {"scopes": ["ann", "bo"]}), safe_folder_name("..", {})
    ('Chats-2026-of-ann-bo', 'dataset')
    """
    scope_choice = part.get("scopes")
    name_words = dataset_name
    if isinstance(scope_choice, int):
        name_words = f"{dataset_name}-{scope_choice}-memories"
    elif scope_choice:
        name_words = f"{dataset_name}-of-{'-'.join(scope_choice)}"
    safe_name = re.sub(r"[^\w.]+", "-", unicodedata.normalize("NFC", name_words)).strip("-.")
    if len(os.fsencode(safe_name)) > _LONGEST:
        name_digest = hashlib.sha256(os.fsencode(name_words)).hexdigest()[:8]
        shortened_name = os.fsencode(safe_name)[:_LONGEST].decode(errors="ignore").strip("-.")
        safe_name = f"{shortened_name}-{name_digest}"
    if safe_name.lower() in _TAKEN:
        return f"dataset-{safe_name}".strip("-")
    return safe_name


def read_folder_marker(folder: Path) -> dict[str, Any] | None:
    """Give what the marker of a folder says; ``None`` where there is none that can be read."""
    try:
        marker_content = json.loads((folder / MARKER).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(marker_content, dict) or not isinstance(marker_content.get("name"), str):
        return None
    if not isinstance(marker_content.get("places"), dict):
        marker_content["places"] = {}
    return marker_content


def _iter_endless_numbered_names(folder_name: str) -> Iterator[str]:
    yield folder_name
    for number in count(2):
        yield f"{folder_name}-{number}"


def _is_missing_empty_or_of_dataset(folder_place: Path, wanted_content: Mapping[str, Any]) -> bool:
    """Say whether a folder is not there, empty, or of this dataset."""
    if not os.path.lexists(folder_place):
        return True
    if not folder_place.is_dir():
        return False
    marker_content = read_folder_marker(folder_place)
    if marker_content is None:
        return not any(folder_place.iterdir())
    return all(
        marker_content.get(field_name) == field_value
        for field_name, field_value in wanted_content.items()
    )


def _write_folder_marker(folder: Path, marker_content: Mapping[str, Any]) -> None:
    marker_text = json.dumps(marker_content, indent=1, ensure_ascii=False) + "\n"
    with open_atomically(folder / MARKER) as marker_file:
        marker_file.write(marker_text.encode("utf-8", "backslashreplace"))
