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
from typing import Any

import numpy as np

import memlab
from memlab.config import settings
from memlab.errors import DataError, ExportError, require_extra
from memlab.figures.provenance import announce_notebook, relative_path, source_digest
from memlab.files import hear_interrupts, sha256
from memlab.notebooks.html_page import write_notebook_page


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
    paths = _find_notebooks(Path(source), only)
    if Path(out).resolve() == Path(source).resolve():
        raise DataError(
            f"{out} holds the notebooks themselves, which stay without outputs; name another folder"
        )
    _check_known(chosen, paths)
    given = {**parameters, **chosen}
    values = {name: _as_literal(value, name) for name, value in given.items()}
    try:
        Path(out).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ExportError(
            f"{out}: cannot be made ({error.strerror}); name another folder"
        ) from error
    return _run_found(paths, Path(out), values, jobs=jobs, again=again)


def _find_notebooks(source: Path, only: str) -> list[Path]:
    """Give the notebooks of a folder whose names hold a text, in order."""
    with require_extra("lab", "running notebooks"):
        import papermill  # noqa: F401
    found: list[Path] = []
    if os.path.isdir(source):
        found = [path for path in source.glob("[0-9]*.ipynb") if fnmatch(path.stem, f"*{only}*")]
    if not found:
        named = ""
        if only:
            named = f" whose name holds {only!r}"
        raise DataError(
            f"{source} holds no notebook{named}; run memlab where the folder 'notebooks' is, "
            "or give --source"
        )
    return sorted(found)


def _check_known(chosen: Mapping[str, Any], paths: list[Path]) -> None:
    """Refuse a value for a parameter that none of these notebooks has."""
    if not chosen:
        return
    import papermill

    known = {name for path in paths for name in papermill.inspect_notebook(str(path))}
    for name in chosen:
        if name in known:
            continue
        meant = "they"
        for near in get_close_matches(name, known, n=1):
            meant = f"did you mean {near!r}? They"
        raise DataError(
            f"no notebook that would run has a parameter {name!r}; {meant} have "
            f"{', '.join(sorted(known))}"
        )


def _run_found(
    paths: list[Path], out: Path, values: Mapping[str, Any], *, jobs: int, again: bool
) -> Iterator[tuple[Path, float]]:
    """Run notebooks, several at a time where that is wanted; those that are up to date are kept."""
    waiting = []
    for path in paths:
        target = out / path.name
        is_kept = False
        if not again:
            is_kept = _is_unchanged(path, target, values)
        if is_kept:
            yield target, 0.0
        else:
            waiting.append(path)
    if jobs < 2:
        for path in waiting:
            yield _execute(path, out / path.name, values)
        return
    # Processes, since papermill changes the working directory while it runs.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(jobs, mp_context=context, initializer=_end_with_parent) as pool:
        # The last ones take longest: begun last, one of them would run alone at the end.
        running = [
            pool.submit(_execute, path, out / path.name, values) for path in reversed(waiting)
        ]
        hear_interrupts()
        try:
            for done in as_completed(running):
                yield done.result()
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def _end_with_parent() -> None:
    """Let this worker end as soon as its parent has ended, also where that was killed.

    The kernels that it started end with it, and a browser when its kernel does: nothing goes on
    writing.
    """
    parent = multiprocessing.parent_process()
    if parent is None:
        return

    def wait() -> None:
        multiprocessing.connection.wait([parent.sentinel])
        _kill_children()
        os._exit(1)

    threading.Thread(target=wait, name="memlab-parent", daemon=True).start()


def _kill_children() -> None:
    """Kill what this process started, and what that started."""
    import psutil

    for child in psutil.Process().children(recursive=True):
        with suppress(psutil.Error):
            child.kill()


def _as_literal(value: Any, name: str) -> Any:
    """Give a parameter as papermill writes it into a notebook without changing it.

    papermill 2.7 writes what is not ``None``, a truth value, a number of Python, a text, a list or
    a dict as a text in quotes, without a word: a tuple becomes ``"(5, 10)"``, the number
    ``np.int64(5)`` becomes ``"5"``, and so does each key of a dict.

    :raises DataError: for a set, a date, bytes, a key that is no text, or any other object.
    """
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, os.PathLike):
        value = os.fspath(value)
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, list | tuple):
        return [_as_literal(each, name) for each in value]
    if isinstance(value, Mapping):
        if wrong := [key for key in value if not isinstance(key, str)]:
            raise DataError(
                f"parameter {name}: the key {wrong[0]!r} would arrive as text; use texts as keys"
            )
        return {key: _as_literal(each, name) for key, each in value.items()}
    raise DataError(
        f"parameter {name}: a {type(value).__name__} ({str(value)[:40]!r}) would arrive in the "
        "notebook as text; give None, a truth value, a number, a text, a list, or a dict of these"
    )


def _input_digest(path: Path, values: Mapping[str, Any]) -> str:
    """Digest the inputs of a notebook: cells, parameters, settings, dataset and code of memlab."""
    texts = [value for value in values.values() if isinstance(value, str)]
    files = [Path(text) for text in texts if "\0" not in text]
    if "dataset" in values:
        files += sorted(Path(str(values["dataset"])).rglob("*"))
    questions = (values.get("part") or {}).get("questions")
    if questions:
        files.append(path.parent / questions)
    code = Path(memlab.__file__).parent.rglob("*")
    files += sorted(file for file in code if "__pycache__" not in file.parts)
    chosen = settings(directory=path.parent)[0].model_dump()
    contents = [(file.name, sha256(file)) for file in files if file.is_file()]
    about = [path.name, source_digest(path), dict(sorted(values.items())), chosen, contents]
    return hashlib.sha256(repr(about).encode()).hexdigest()


def _sidecar_digests(figures: Any, notebook: str) -> dict[str, str]:
    """Digest the sidecars of the figures that a notebook has exported to a folder, by name."""
    digests = {}
    for path in sorted(Path(figures or "").glob("*.json")):
        text = path.read_text(encoding="utf-8")
        if f'"{notebook}"' in text:
            digests[path.name] = hashlib.sha256(text.encode()).hexdigest()
    return digests


def _is_unchanged(path: Path, target: Path, values: Mapping[str, Any]) -> bool:
    try:
        about = json.loads(target.read_text(encoding="utf-8"))["metadata"]["memlab"]
    except (OSError, ValueError, KeyError):
        return False
    figures = _sidecar_digests(values.get("figures"), path.name)
    return bool(about == {"inputs": _input_digest(path, values), "figures": figures})


def _strip_paths(notebook: Any) -> None:
    """Remove folders of this machine from the record and the outputs of an executed notebook."""
    about = notebook.metadata.get("papermill", {})
    for key in ("input_path", "output_path"):
        if isinstance(about.get(key), str):
            about[key] = Path(about[key]).name
    places = [
        Path(memlab.__file__).parent.parent,
        Path.cwd(),
        Path(sys.prefix),
        Path(sys.base_prefix),
        Path.home(),
    ]
    named = "|".join(re.escape(str(place)) for place in places if place != place.parent)
    folders = re.compile(rf"(?:{named})/|(?<![\w/.])(?:{named})(?![\w.-])")
    for cell in notebook.cells:
        for output in cell.get("outputs", ()):
            output.update(_strip_folders(output, folders))


def _strip_folders(value: Any, folders: re.Pattern[str]) -> Any:
    """Remove folders from all texts of an output, but not from encoded pictures."""
    if isinstance(value, str):
        return folders.sub("", value)
    if isinstance(value, list):
        return [_strip_folders(each, folders) for each in value]
    if not isinstance(value, dict):
        return value
    stripped = {}
    for kind, content in value.items():
        stripped[kind] = content
        if kind not in ("image/png", "image/jpeg"):
            stripped[kind] = _strip_folders(content, folders)
    return stripped


def _execute(path: Path, target: Path, values: Mapping[str, Any]) -> tuple[Path, float]:
    """Execute one notebook, and write it and its page; gives the executed one and its seconds."""
    import papermill
    from jupyter_client.kernelspec import NoSuchKernel

    # It warns of every parameter whose text holds "=", as a pipeline's does.
    inspector = logging.getLogger("papermill.translators")
    started, level = time.perf_counter(), inspector.level
    inspector.setLevel(logging.ERROR)
    try:
        inputs = _input_digest(path, values)
        executed = _run_kernel(path, target, values)
        _move_links(executed, path, target)
        _strip_paths(executed)
        figures = values.get("figures")
        made = {"inputs": inputs, "figures": _sidecar_digests(figures, path.name)}
        executed.metadata["memlab"] = made
        papermill.iorw.write_ipynb(executed, str(target))
        write_notebook_page(executed, target, figures=figures)
    except papermill.PapermillExecutionError as error:
        partial = papermill.iorw.load_notebook_node(str(target))
        _strip_paths(partial)
        papermill.iorw.write_ipynb(partial, str(target))
        raise ExportError(
            f"{path}: cell {error.cell_index} failed: {error.ename}: {error.evalue}; "
            f"as far as it came: {target}"
        ) from error
    except (NoSuchKernel, OSError, ValueError, RuntimeError) as error:
        raise ExportError(
            f"{path}: could not be run: {error}; see that it is whole and its kernel is there"
        ) from error
    finally:
        inspector.setLevel(level)
    return target, time.perf_counter() - started


def _run_kernel(path: Path, target: Path, values: Mapping[str, Any]) -> Any:
    """Execute a notebook with those of the values that it knows, in its own folder."""
    import papermill

    notebook = papermill.iorw.load_notebook_node(str(path))
    known = papermill.inspect_notebook(str(path))
    parameters = {
        name: relative_path(value, path.parent) for name, value in values.items() if name in known
    }
    announced = {name: value for name, value in values.items() if name != "figures"}
    with announce_notebook(path, announced):
        return papermill.execute_notebook(
            notebook,
            target,
            parameters,
            cwd=str(path.parent),
            progress_bar=False,
            extra_arguments=["--log-level=40"],
        )


def _move_links(executed: Any, path: Path, target: Path) -> None:
    """Make links to what lay beside a notebook lead there from where the executed one lies."""
    beside = os.path.relpath(path.parent.parent, target.parent)
    for cell in executed.cells:
        if cell.cell_type == "markdown":
            cell.source = cell.source.replace("](../", f"]({beside}/")
