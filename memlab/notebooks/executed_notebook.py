"""What an executed notebook says of itself: its question, what it read, and what it found."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nbformat import NotebookNode

ANSWER = "answer"
"""The tag of the cell whose output is what a notebook found."""
_OF_THE_SAMPLE = re.compile(
    r"^On the committed sample\b.*?^!\[[^\]]*\]\([^)]*\)\n?", re.MULTILINE | re.DOTALL
)


GALLERY_PICTURE = re.compile(r"!\[[^\]]*\]\([^)]*/figures/gallery/sample-([\w-]+)\.png\)")
"""The picture of an opening: of the sample's figure whose name it holds."""


@dataclass(frozen=True)
class Opening:
    """The first cell of a notebook.

    :param title: its heading.
    :param sample: what it says of the committed sample, with its picture; "" where it says nothing.
    :param words: the rest, which is true of any data.
    """

    title: str
    sample: str
    words: str


def read_notebook(path: Path) -> NotebookNode:
    """Read a notebook of the present format."""
    import nbformat

    return nbformat.read(path, as_version=4)


def split_opening(notebook: NotebookNode) -> Opening:
    """Tell apart what the first cell of a notebook says of the sample and of any data."""
    heading, _, other_text = notebook.cells[0].source.partition("\n")
    sample_part = _OF_THE_SAMPLE.search(other_text)
    sample_text = ""
    if sample_part:
        sample_text = sample_part[0].strip()
        other_text = other_text[: sample_part.start()] + other_text[sample_part.end() :]
    return Opening(heading.removeprefix("# "), sample_text, other_text.strip())


def opening_figure_or_empty(notebook: NotebookNode) -> str:
    """Name the figure that the opening of a notebook shows; "" where it shows none."""
    picture_link = GALLERY_PICTURE.search(split_opening(notebook).sample)
    if picture_link is None:
        return ""
    return picture_link[1]


def answer_text(notebook: NotebookNode) -> str:
    """Give what an executed notebook found: what the cell tagged :data:`ANSWER` shows."""
    if not notebook.cells:
        return ""
    answering = notebook.cells[-1]
    for notebook_cell in notebook.cells:
        if ANSWER in notebook_cell.metadata.get("tags", []):
            answering = notebook_cell
    answer_texts = []
    for cell_output in answering.get("outputs", []):
        output_text = cell_output.get("data", {}).get("text/markdown", "")
        if output_text:
            answer_texts.append(output_text)
    return "\n".join(answer_texts)


def answer_bullet_points(notebook: NotebookNode) -> list[str]:
    """Give the points of what an executed notebook found."""
    return re.findall(r"^- (.*)", answer_text(notebook), re.MULTILINE)


def findings(path: Path) -> list[str]:
    """Give the findings of an executed notebook: the points of its answer."""
    return answer_bullet_points(read_notebook(path))


def notebook_dataset(path: Path) -> str:
    """Name the file that an executed notebook read, with the memories that it took of it."""
    return dataset_of_metadata_or_empty(read_notebook(path).metadata)


def dataset_of_metadata_or_empty(metadata: Mapping[str, Any]) -> str:
    """Give what a notebook was given to read, or "" where its sentences say it."""
    parameters = metadata.get("papermill", {}).get("parameters", {})
    dataset_file = parameters.get("dataset") or parameters.get("conversations") or ""
    return describe_dataset_part(Path(dataset_file).stem, parameters.get("part"))


def describe_dataset_part(name: str, part: Mapping[str, Any] | None) -> str:
    """Name a dataset, with the memories where it is some of them.

    >>> from memlab.notebooks.executed_notebook import describe_dataset_part
    >>> describe_dataset_part("mine", {"scopes": 3})
    'mine, 3 memories drawn'
    >>> describe_dataset_part("mine", {"scopes": ["ann", "bo"]})
    'mine, of ann and bo'
    """
    if part is None:
        return name
    if part.get("questions"):
        name += f" with {Path(part['questions']).name}"
    scope_choice = part.get("scopes")
    if isinstance(scope_choice, int):
        return f"{name}, {scope_choice:,} memories drawn"
    if scope_choice:
        return f"{name}, of {' and '.join(scope_choice)}"
    return name
