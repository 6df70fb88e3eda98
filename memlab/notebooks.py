"""Running the notebooks, each with its parameters."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping
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
) -> Iterator[tuple[Path, float]]:
    """Execute notebooks in order of name, with papermill.

    :param source: where the ``NN_name.ipynb`` are.
    :param out: where the executed ones go.
    :param parameters: values for the cell tagged ``parameters``.
    :param only: run only notebooks whose name holds this.
    :param chosen: more values, each of which one of these notebooks must know.
    :returns: the executed notebook and its seconds, each as it is done.
    :raises DataError: when there is no such notebook or parameter, or ``out`` is where they are.
    :raises ExportError: when a notebook fails; says which cell of which, and where the executed part lies.
    """
    try:
        import papermill
        from jupyter_client.kernelspec import NoSuchKernel
    except ImportError as error:
        raise ModelError('notebooks need papermill, which is not installed; run: pip install "memlab[lab]"') from error
    paths = sorted(path for path in Path(source).glob("[0-9]*.ipynb") if only in path.stem)
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
    # It warns of every parameter whose text holds "=", as a pipeline's does.
    inspector = logging.getLogger("papermill.translators")
    for path in paths:
        target = Path(out) / path.name
        started = time.perf_counter()
        level = inspector.level
        inspector.setLevel(logging.ERROR)
        try:
            papermill.execute_notebook(path, target, values, cwd=str(path.parent), progress_bar=False)
        except papermill.PapermillExecutionError as error:
            raise ExportError(
                f"{path}: cell {error.cell_index} failed: {error.ename}: {error.evalue}; as far as it came: {target}"
            ) from error
        except (NoSuchKernel, OSError, ValueError, RuntimeError) as error:
            raise ExportError(
                f"{path}: could not be run: {error}; see that it is whole and its kernel is there"
            ) from error
        finally:
            inspector.setLevel(level)
        yield target, time.perf_counter() - started
