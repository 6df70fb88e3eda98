"""Running the notebooks, each with its parameters."""

from __future__ import annotations

import logging
import multiprocessing
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from memlab.errors import DataError, ExportError, ModelError


def run_notebooks(
    source: str | Path,
    out: str | Path,
    parameters: Mapping[str, Any],
    *,
    only: str = "",
    chosen: Mapping[str, Any] | None = None,
    jobs: int = 1,
) -> Iterator[tuple[Path, float]]:
    """Execute notebooks with papermill, begun in order of name.

    :param source: where the ``NN_name.ipynb`` are.
    :param out: where the executed ones go.
    :param parameters: values for the cell tagged ``parameters``.
    :param only: run only notebooks whose name holds this; ``*``, ``?`` and ``[…]`` stand for what they do in a shell.
    :param chosen: more values, each of which one of these notebooks must know.
    :param jobs: how many run at a time, each in a kernel of its own of up to 2 GB.
    :returns: the executed notebook and its seconds, each as it is done.
    :raises DataError: when there is no such notebook or parameter, or ``out`` is where they are.
    :raises ExportError: when a notebook fails; says which cell of which, and where the executed part lies.
    """
    try:
        import papermill
    except ImportError as error:
        raise ModelError('notebooks need papermill, which is not installed; run: pip install "memlab[lab]"') from error
    paths = sorted(path for path in Path(source).glob("[0-9]*.ipynb") if fnmatch(path.stem, f"*{only}*"))
    if not paths:
        named = f" whose name holds {only!r}" if only else ""
        raise DataError(
            f"{source} holds no notebook{named}; run memlab where the folder 'notebooks' is, or give --source"
        )
    if Path(out).resolve() == Path(source).resolve():
        raise DataError(f"{out} holds the notebooks themselves, which stay without outputs; name another folder")
    known = {name for path in paths for name in papermill.inspect_notebook(path)} if chosen else set()
    if unknown := [name for name in chosen or {} if name not in known]:
        raise DataError(
            f"no notebook that would run has a parameter {unknown[0]!r}; they have {', '.join(sorted(known))}"
        )
    values = {**parameters, **(chosen or {})}
    try:
        Path(out).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ExportError(f"{out}: cannot be made ({error.strerror}); name another folder") from error
    if jobs < 2:
        for path in paths:
            yield _execute(path, Path(out) / path.name, values)
        return
    # Processes, since papermill changes the working directory while it runs.
    with ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("spawn")) as pool:
        running = [pool.submit(_execute, path, Path(out) / path.name, values) for path in paths]
        try:
            for done in as_completed(running):
                yield done.result()
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def _execute(path: Path, target: Path, values: Mapping[str, Any]) -> tuple[Path, float]:
    import papermill
    from jupyter_client.kernelspec import NoSuchKernel

    # It warns of every parameter whose text holds "=", as a pipeline's does.
    inspector = logging.getLogger("papermill.translators")
    started, level = time.perf_counter(), inspector.level
    inspector.setLevel(logging.ERROR)
    try:
        papermill.execute_notebook(path, target, dict(values), cwd=str(path.parent), progress_bar=False)
    except papermill.PapermillExecutionError as error:
        raise ExportError(
            f"{path}: cell {error.cell_index} failed: {error.ename}: {error.evalue}; as far as it came: {target}"
        ) from error
    except (NoSuchKernel, OSError, ValueError, RuntimeError) as error:
        raise ExportError(f"{path}: could not be run: {error}; see that it is whole and its kernel is there") from error
    finally:
        inspector.setLevel(level)
    return target, time.perf_counter() - started
