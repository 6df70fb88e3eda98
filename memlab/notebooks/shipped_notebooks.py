"""The notebooks that come with memlab, put where somebody works."""

from __future__ import annotations

import os
from pathlib import Path

from memlab.atomic_files import shipped_notebooks
from memlab.errors import require_extra
from memlab.figures.figure_export import write_files_atomically_and_remove_stale


def copy_shipped_notebooks(folder: str | os.PathLike[str]) -> list[Path]:
    """Copy the notebooks that come with memlab into a folder that does not exist.

    A notebook runs in its own folder, with the settings of that place, and people change it: so
    they are copied and not run where the package lies.

    :param folder: is made; where there is one already, nothing is copied, whatever it holds.
    :returns: the copies; none where nothing was copied.
    :raises ModelError: when the packages that run notebooks are not installed.
    :raises ExportError: when the folder cannot be written.

    >>> import tempfile
    >>> from memlab.notebooks.shipped_notebooks import copy_shipped_notebooks
    >>> with tempfile.TemporaryDirectory() as place:
    ...     copies = copy_shipped_notebooks(f"{place}/notebooks")
    >>> copies[0].name, len(copies)
    ('00_tour.ipynb', 8)
    """
    with require_extra("lab", "running notebooks"):
        import papermill  # noqa: F401
    target_folder = Path(folder)
    if os.path.lexists(target_folder):
        return []
    shipped_paths = sorted(shipped_notebooks().glob("[0-9]*.ipynb"))
    if not shipped_paths:
        return []
    content_by_name = {path.name: path.read_bytes() for path in shipped_paths}
    write_files_atomically_and_remove_stale(target_folder, content_by_name)
    return [target_folder / name for name in content_by_name]
