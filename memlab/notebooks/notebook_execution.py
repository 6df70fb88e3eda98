"""Execution of notebooks with parameters."""

from __future__ import annotations

import hashlib
import json
import logging
import multiprocessing
import multiprocessing.connection
import os
import re
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import suppress
from difflib import get_close_matches
from fnmatch import fnmatch
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import memlab
from memlab.atomic_files import let_ctrl_c_end_waits, sha256
from memlab.config import settings
from memlab.errors import DataError, ExportError, require_extra
from memlab.figures.figure_provenance import (
    announce_notebook_to_kernels,
    relative_path_if_absolute_text,
    source_digest,
)
from memlab.notebooks.notebook_pages import write_notebook_page
from memlab.progress_bars import LOG_MARK, say_progress

if TYPE_CHECKING:
    from nbformat import NotebookNode

_log = logging.getLogger("memlab")


def run_notebooks(
    source: str | Path,
    out: str | Path,
    parameters: Mapping[str, Any],
    *,
    only: str = "",
    chosen: Mapping[str, Any] | None = None,
    jobs: int = 1,
    again: bool = True,
) -> Iterator[tuple[Path, float]]:
    """Execute notebooks with papermill, in order of name; each becomes a page of HTML too.

    Several at a time begin with the last. What can be refused is refused at the call; notebooks run
    as the results are asked for.

    :param source: where the ``NN_name.ipynb`` are.
    :param out: where the executed ones go.
    :param parameters: values for the cell tagged ``parameters``: ``None``, truth values, numbers
        (numpy's too), texts, paths, and lists, tuples, arrays and mappings of these.
    :param only: run only notebooks whose name holds this; ``*``, ``?`` and ``[…]`` stand for what
        they do in a shell.
    :param chosen: more values, each of which one of these notebooks must know.
    :param jobs: how many run at a time, each in a kernel of its own of up to 2 GB.
    :param again: run also those that were executed with the same cells, parameters, settings, files
        and code of memlab, and whose figures are there as they left them.
    :returns: the executed notebook and its seconds, 0 where it was kept, each as it is done.
    :raises DataError: when there is no such notebook or parameter, a parameter is something that
        no notebook can be given, or ``out`` is where they are.
    :raises ExportError: when a notebook fails; says which cell of which, and where the executed
        part lies.
    """
    chosen = dict(chosen or {})
    notebook_paths = _find_notebooks(Path(source), only)
    if Path(out).resolve() == Path(source).resolve():
        raise DataError(
            f"{out} holds the notebooks themselves, which stay without outputs; name another folder"
        )
    _refuse_unknown_parameters(chosen, notebook_paths)
    all_parameters = {**parameters, **chosen}
    literal_values = {
        parameter: _to_notebook_literal(parameter_value, parameter)
        for parameter, parameter_value in all_parameters.items()
    }
    try:
        Path(out).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ExportError(
            f"{out}: cannot be made ({error.strerror}); name another folder"
        ) from error
    return _run_changed_notebooks(notebook_paths, Path(out), literal_values, jobs=jobs, again=again)


def _find_notebooks(source: Path, only: str) -> list[Path]:
    """Give the notebooks of a folder whose names hold a text, in order."""
    with require_extra("lab", "running notebooks"):
        import papermill  # noqa: F401
    notebook_paths: list[Path] = []
    if os.path.isdir(source):
        notebook_paths = [
            notebook_path
            for notebook_path in source.glob("[0-9]*.ipynb")
            if fnmatch(notebook_path.stem, f"*{only}*")
        ]
    if not notebook_paths:
        name_note = ""
        if only:
            name_note = f" whose name holds {only!r}"
        known_names = sorted(notebook_path.stem for notebook_path in source.glob("[0-9]*.ipynb"))
        if known_names:
            raise DataError(
                f"{source} holds no notebook{name_note}; it has {', '.join(known_names)}"
            )
        raise DataError(
            f"{source} holds no notebook{name_note}; run memlab where the folder 'notebooks' is, "
            "or give --source"
        )
    return sorted(notebook_paths)


def _refuse_unknown_parameters(
    chosen_values: Mapping[str, Any], notebook_paths: list[Path]
) -> None:
    """Refuse a value for a parameter that none of these notebooks has."""
    if not chosen_values:
        return
    import papermill

    known_parameters: set[str] = set()
    for notebook_path in notebook_paths:
        known_parameters.update(papermill.inspect_notebook(str(notebook_path)))
    for parameter in chosen_values:
        if parameter in known_parameters:
            continue
        suggestion = "they"
        for near_name in get_close_matches(parameter, known_parameters, n=1):
            suggestion = f"did you mean {near_name!r}? They"
        raise DataError(
            f"no notebook that would run has a parameter {parameter!r}; {suggestion} have "
            f"{', '.join(sorted(known_parameters))}"
        )


def _run_changed_notebooks(
    notebook_paths: list[Path],
    executed_folder: Path,
    parameter_values: Mapping[str, Any],
    *,
    jobs: int,
    again: bool,
) -> Iterator[tuple[Path, float]]:
    """Run notebooks, several at a time where that is wanted; those that are up to date are kept."""
    waiting_paths = []
    for notebook_path in notebook_paths:
        executed_path = executed_folder / notebook_path.name
        is_kept = False
        if not again:
            is_kept = _is_up_to_date(notebook_path, executed_path, parameter_values)
        if is_kept:
            yield executed_path, 0.0
        else:
            waiting_paths.append(notebook_path)
    if jobs < 2:
        for notebook_path in waiting_paths:
            yield _execute_and_write_notebook(
                notebook_path, executed_folder / notebook_path.name, parameter_values
            )
        return
    # Processes, since papermill changes the working directory while it runs.
    spawn_context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(
        jobs, mp_context=spawn_context, initializer=_end_worker_with_parent
    ) as process_pool:
        # The last ones take longest: begun last, one of them would run alone at the end.
        running_tasks = [
            process_pool.submit(
                _execute_and_write_notebook,
                notebook_path,
                executed_folder / notebook_path.name,
                parameter_values,
            )
            for notebook_path in reversed(waiting_paths)
        ]
        let_ctrl_c_end_waits()
        try:
            for finished_task in as_completed(running_tasks):
                yield finished_task.result()
        finally:
            process_pool.shutdown(wait=True, cancel_futures=True)


def _end_worker_with_parent() -> None:
    """Let this worker end as soon as its parent has ended, also where that was killed.

    The kernels that it started end with it, and a browser when its kernel does: nothing goes on
    writing.
    """
    parent_process = multiprocessing.parent_process()
    if parent_process is None:
        return

    def kill_children_after_parent_ends() -> None:
        multiprocessing.connection.wait([parent_process.sentinel])
        _kill_child_processes()
        os._exit(1)

    threading.Thread(
        target=kill_children_after_parent_ends, name="memlab-parent", daemon=True
    ).start()


def _kill_child_processes() -> None:
    """Kill what this process started, and what that started."""
    import psutil

    for child_process in psutil.Process().children(recursive=True):
        with suppress(psutil.Error):
            child_process.kill()


def _to_notebook_literal(parameter_value: Any, parameter: str) -> Any:
    """Give a parameter as papermill writes it into a notebook without changing it.

    papermill 2.7 writes what is not ``None``, a truth value, a number of Python, a text, a list or
    a dict as a text in quotes, without a word: a tuple becomes ``"(5, 10)"``, the number
    ``np.int64(5)`` becomes ``"5"``, and so does each key of a dict.

    :raises DataError: for a set, a date, bytes, a key that is no text, or any other object.
    """
    if isinstance(parameter_value, np.ndarray | np.generic):
        parameter_value = parameter_value.tolist()
    if isinstance(parameter_value, os.PathLike):
        parameter_value = os.fspath(parameter_value)
    if parameter_value is None or isinstance(parameter_value, str | int | float):
        return parameter_value
    if isinstance(parameter_value, list | tuple):
        return [_to_notebook_literal(entry, parameter) for entry in parameter_value]
    if isinstance(parameter_value, Mapping):
        wrong_keys = [entry_key for entry_key in parameter_value if not isinstance(entry_key, str)]
        if wrong_keys:
            raise DataError(
                f"parameter {parameter}: the key {wrong_keys[0]!r} would arrive as text; use "
                "texts as keys"
            )
        return {
            entry_key: _to_notebook_literal(entry, parameter)
            for entry_key, entry in parameter_value.items()
        }
    shown_value = f"{type(parameter_value).__name__} ({str(parameter_value)[:40]!r})"
    raise DataError(
        f"parameter {parameter}: a {shown_value} would arrive in the "
        "notebook as text; give None, a truth value, a number, a text, a list, or a dict of these"
    )


def _input_digest(notebook_path: Path, parameter_values: Mapping[str, Any]) -> str:
    """Digest the inputs of a notebook: cells, parameters, settings, dataset and code of memlab."""
    parameter_texts = [
        parameter_value
        for parameter_value in parameter_values.values()
        if isinstance(parameter_value, str)
    ]
    input_files = [
        Path(parameter_text) for parameter_text in parameter_texts if "\0" not in parameter_text
    ]
    if "dataset" in parameter_values:
        input_files += sorted(Path(str(parameter_values["dataset"])).rglob("*"))
    questions_file = (parameter_values.get("part") or {}).get("questions")
    if questions_file:
        input_files.append(notebook_path.parent / questions_file)
    package_files = Path(memlab.__file__).parent.rglob("*")
    input_files += sorted(
        input_file for input_file in package_files if "__pycache__" not in input_file.parts
    )
    settings_in_force = settings(directory=notebook_path.parent)[0].model_dump()
    file_digests = [
        (input_file.name, sha256(input_file)) for input_file in input_files if input_file.is_file()
    ]
    digested_inputs = [
        notebook_path.name,
        source_digest(notebook_path),
        dict(sorted(parameter_values.items())),
        settings_in_force,
        file_digests,
    ]
    return hashlib.sha256(repr(digested_inputs).encode()).hexdigest()


def _digest_by_exported_sidecar(figures: str | None, notebook_name: str) -> dict[str, str]:
    """Digest the sidecars of the figures that a notebook has exported to a folder, by name."""
    digest_by_name = {}
    for sidecar_path in sorted(Path(figures or "").glob("*.json")):
        sidecar_text = sidecar_path.read_text(encoding="utf-8")
        if f'"{notebook_name}"' in sidecar_text:
            digest_by_name[sidecar_path.name] = hashlib.sha256(sidecar_text.encode()).hexdigest()
    return digest_by_name


def _is_up_to_date(
    notebook_path: Path, executed_path: Path, parameter_values: Mapping[str, Any]
) -> bool:
    try:
        recorded_inputs = json.loads(executed_path.read_text(encoding="utf-8"))["metadata"][
            "memlab"
        ]
    except (OSError, ValueError, KeyError):
        return False
    figure_digests = _digest_by_exported_sidecar(
        parameter_values.get("figures"), notebook_path.name
    )
    return bool(
        recorded_inputs
        == {"inputs": _input_digest(notebook_path, parameter_values), "figures": figure_digests}
    )


def _strip_machine_folders_in_place(notebook: NotebookNode) -> None:
    """Remove folders of this machine from the record and the outputs of an executed notebook."""
    run_record = notebook.metadata.get("papermill", {})
    for path_key in ("input_path", "output_path"):
        if isinstance(run_record.get(path_key), str):
            run_record[path_key] = Path(run_record[path_key]).name
    machine_folders = [
        Path(memlab.__file__).parent.parent,
        Path.cwd(),
        Path(sys.prefix),
        Path(sys.base_prefix),
        Path.home(),
    ]
    folder_pattern = "|".join(
        re.escape(str(machine_folder))
        for machine_folder in machine_folders
        if machine_folder != machine_folder.parent
    )
    folder_names = re.compile(rf"(?:{folder_pattern})/|(?<![\w/.])(?:{folder_pattern})(?![\w.-])")
    for notebook_cell in notebook.cells:
        for cell_output in notebook_cell.get("outputs", ()):
            cell_output.update(_strip_folders_of_output(cell_output, folder_names))


def _strip_folders_of_output(output_value: Any, folders: re.Pattern[str]) -> Any:
    """Remove folders from all texts of an output, but not from encoded pictures."""
    if isinstance(output_value, str):
        return folders.sub("", output_value)
    if isinstance(output_value, list):
        return [_strip_folders_of_output(entry, folders) for entry in output_value]
    if not isinstance(output_value, dict):
        return output_value
    stripped_contents = {}
    for content_kind, kind_content in output_value.items():
        stripped_contents[content_kind] = kind_content
        if content_kind not in ("image/png", "image/jpeg"):
            stripped_contents[content_kind] = _strip_folders_of_output(kind_content, folders)
    return stripped_contents


def _execute_and_write_notebook(
    notebook_path: Path, executed_path: Path, parameter_values: Mapping[str, Any]
) -> tuple[Path, float]:
    """Execute one notebook, and write it and its page; gives the executed one and its seconds."""
    import papermill
    from jupyter_client.kernelspec import NoSuchKernel

    # It warns of every parameter whose text holds "=", as a pipeline's does.
    parameter_log = logging.getLogger("papermill.translators")
    say_progress(f"{notebook_path.stem}: begun{_last_duration_note_or_empty(executed_path)}")
    start_time = time.perf_counter()
    log_level = parameter_log.level
    parameter_log.setLevel(logging.ERROR)
    try:
        input_digest = _input_digest(notebook_path, parameter_values)
        executed_notebook = _execute_in_kernel(notebook_path, executed_path, parameter_values)
        _adjust_relative_links_in_place(executed_notebook, notebook_path, executed_path)
        _strip_machine_folders_in_place(executed_notebook)
        figures_folder = parameter_values.get("figures")
        run_record = {
            "inputs": input_digest,
            "figures": _digest_by_exported_sidecar(figures_folder, notebook_path.name),
        }
        executed_notebook.metadata["memlab"] = run_record
        papermill.iorw.write_ipynb(executed_notebook, str(executed_path))
        write_notebook_page(executed_notebook, executed_path, figures=figures_folder)
    except papermill.PapermillExecutionError as error:
        partial_notebook = papermill.iorw.load_notebook_node(str(executed_path))
        _strip_machine_folders_in_place(partial_notebook)
        papermill.iorw.write_ipynb(partial_notebook, str(executed_path))
        raise ExportError(
            f"{notebook_path}: cell {error.cell_index} failed: {error.ename}: {error.evalue}; "
            f"as far as it came: {executed_path}"
        ) from error
    except (NoSuchKernel, OSError, ValueError, RuntimeError) as error:
        raise ExportError(
            f"{notebook_path}: could not be run: {error}; see that it is whole and its kernel is "
            "there"
        ) from error
    finally:
        parameter_log.setLevel(log_level)
    return executed_path, time.perf_counter() - start_time


def _last_duration_note_or_empty(executed_path: Path) -> str:
    """Say how long a notebook took when it was last executed to where it will be again."""
    try:
        run_record = json.loads(executed_path.read_text(encoding="utf-8"))["metadata"]["papermill"]
        seconds = float(run_record["duration"])
    except (OSError, ValueError, KeyError, TypeError):
        return ""
    if run_record.get("exception"):
        return ""  # that of a run which failed says nothing
    return f"; the last time it took {seconds:.0f} s"


class _KernelProgressStream:
    """A file for what a kernel writes to stderr: says what is for who waits for the notebook."""

    def __init__(self, notebook_name: str) -> None:
        self._notebook_name = notebook_name

    def write(self, stderr_text: str) -> None:
        for stderr_line in stderr_text.splitlines():
            if stderr_line.startswith(LOG_MARK):
                # Not by say_progress, which marks lines while a kernel is told to.
                _log.warning("%s: %s", self._notebook_name, stderr_line.removeprefix(LOG_MARK))

    def flush(self) -> None:
        """Do nothing: a line was said when it came."""


def _execute_in_kernel(
    notebook_path: Path, executed_path: Path, parameter_values: Mapping[str, Any]
) -> NotebookNode:
    """Execute a notebook with those of the values that it knows, in its own folder."""
    import papermill

    loaded_notebook = papermill.iorw.load_notebook_node(str(notebook_path))
    known_parameters = papermill.inspect_notebook(str(notebook_path))
    notebook_values = {
        parameter: relative_path_if_absolute_text(parameter_value, notebook_path.parent)
        for parameter, parameter_value in parameter_values.items()
        if parameter in known_parameters
    }
    announced_values = {
        parameter: parameter_value
        for parameter, parameter_value in parameter_values.items()
        if parameter != "figures"
    }
    with announce_notebook_to_kernels(notebook_path, announced_values):
        return papermill.execute_notebook(
            loaded_notebook,
            executed_path,
            notebook_values,
            cwd=str(notebook_path.parent),
            progress_bar=False,
            stderr_file=_KernelProgressStream(notebook_path.stem),
            extra_arguments=["--log-level=40"],
        )


def _adjust_relative_links_in_place(
    executed_notebook: NotebookNode, notebook_path: Path, executed_path: Path
) -> None:
    """Make links to what lay beside a notebook lead there from where the executed one lies."""
    folder_path = os.path.relpath(notebook_path.parent.parent, executed_path.parent)
    for notebook_cell in executed_notebook.cells:
        if notebook_cell.cell_type == "markdown":
            notebook_cell.source = notebook_cell.source.replace("](../", f"]({folder_path}/")
