"""What a figure's sidecar keeps: the notebook or script that ran, its parameters and commit."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from memlab.errors import ExportError

NOTEBOOK_VARIABLE = "MEMLAB_NOTEBOOK"
"""The variable in which a kernel reads which notebook it runs, and with what."""
_KINDS = {
    "name": str,
    "caption": str,
    "files": list,
    "provenance": dict,
    "made_by": dict,
    "versions": dict,
}


def figure_origin() -> dict[str, Any]:
    """Say what makes the figures of this process: enough to make them again.

    ``notebook`` with ``source`` (the digest of its cells), ``parameters`` and ``commit`` where
    ``memlab notebooks`` runs it; ``notebook`` and ``commit`` in a Jupyter session; else the name of
    the ``script``. Paths are relative to where memlab was run, so that no folder of the machine is
    shown.

    >>> from memlab.figures.figure_provenance import figure_origin
    >>> "notebook" in figure_origin() or "script" in figure_origin()
    True
    """
    announced = os.environ.get(NOTEBOOK_VARIABLE)
    if announced:
        return dict(json.loads(announced))
    session_name = os.environ.get("JPY_SESSION_NAME")
    if session_name:
        return {"notebook": Path(session_name).name} | _read_commit_field_or_empty(Path.cwd())
    script_path = Path(getattr(sys.modules["__main__"], "__file__", None) or "interactive")
    return {"script": script_path.name} | _read_commit_field_or_empty(script_path.resolve().parent)


@contextmanager
def announce_notebook_to_kernels(notebook: Path, parameters: Mapping[str, Any]) -> Iterator[None]:
    """Tell the kernels that start meanwhile which notebook they run.

    :param parameters: what was set; paths are written relative to the working directory.
    """
    from memlab.progress_bars import LOG_VARIABLE

    shown_parameters = {
        variable_name: relative_path_if_absolute_text(variable_value)
        for variable_name, variable_value in parameters.items()
    }
    notebook_record = {
        "notebook": notebook.name,
        "source": source_digest(notebook),
        "parameters": shown_parameters,
    }
    # A bar of progress would stay in the executed notebook, a line for each of its steps; lines of
    # a log reach who waits for the notebook.
    new_variables = {
        NOTEBOOK_VARIABLE: json.dumps(
            notebook_record | _read_commit_field_or_empty(notebook.resolve().parent), default=str
        ),
        "TQDM_DISABLE": "1",
        LOG_VARIABLE: "1",
    }
    earlier_values = {
        variable_name: os.environ.get(variable_name) for variable_name in new_variables
    }
    os.environ.update(new_variables)
    try:
        yield
    finally:
        for variable_name, variable_value in earlier_values.items():
            os.environ.pop(variable_name)
            if variable_value is not None:
                os.environ[variable_name] = variable_value


def read_sidecar(path: Path) -> dict[str, Any] | None:
    """Read a sidecar of :func:`memlab.figures.export`; ``None`` for the JSON of another tool.

    ``made_by`` and ``versions`` are there, as mappings, and ``files`` are names, whatever the file
    holds.

    :raises ExportError: when it cannot be read, or holds something else where a sidecar has its
        fields.
    """
    try:
        sidecar_fields = json.loads(path.read_text(encoding="utf-8"))
        if not (
            isinstance(sidecar_fields, dict)
            and {"name", "caption", "files", "provenance"} <= sidecar_fields.keys()
        ):
            return None
        sidecar_fields = {"made_by": {}, "versions": {}, **sidecar_fields}
        for field_name, field_type in _KINDS.items():
            if not isinstance(sidecar_fields[field_name], field_type):
                raise ValueError(f"its field {field_name} is not that of a sidecar")
    except (OSError, ValueError, RecursionError) as error:
        raise ExportError(
            f"{path} is not a figure's sidecar ({error}); "
            "export the figure again or remove the file"
        ) from error
    notebook = sidecar_fields["made_by"].pop("notebook", None)
    if notebook:  # its value may be null or an empty list
        sidecar_fields["made_by"]["notebook"] = Path(str(notebook)).name
    return sidecar_fields | {
        "files": [Path(str(file_name)).name for file_name in sidecar_fields["files"]]
    }


def source_digest(notebook: Path) -> str:
    """Digest the cells of a notebook, not its outputs."""
    notebook_cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    return hashlib.sha256(
        json.dumps([notebook_cell["source"] for notebook_cell in notebook_cells]).encode()
    ).hexdigest()[:12]


def relative_path_if_absolute_text(value: Any, folder: Path | None = None) -> Any:
    """Make a path relative to a folder, or to the working directory: results may be handed on."""
    if isinstance(value, str) and os.path.isabs(value):
        return os.path.relpath(value, folder)
    return value


@cache
def _read_commit_field_or_empty(repository_folder: Path) -> dict[str, str]:
    """Name the commit of a folder, ``-dirty`` where files differ; nothing without git."""
    git_command = [
        "git",
        "-C",
        str(repository_folder),
        "describe",
        "--always",
        "--dirty",
        "--abbrev=12",
        "--exclude=*",
    ]
    try:
        return {
            "commit": subprocess.run(
                git_command, capture_output=True, text=True, check=True
            ).stdout.strip()
        }
    except (OSError, subprocess.CalledProcessError):
        return {}
