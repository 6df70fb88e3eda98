"""Parallel work, on a Ray cluster or in processes of this machine: workers call a function for each
part, in order.

Only the calling process writes results. Workers compute, and at most fill caches: the parts of a
worker that dies are computed elsewhere, and a run whose head died continues where its store says
that it stopped.
"""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from types import ModuleType
from typing import Any, TypeVar

from memlab.atomic_files import call_with_time_limit
from memlab.errors import DataError, ModelError, explain_arguments, require_extra
from memlab.progress_bars import hide_bars

P = TypeVar("P")
R = TypeVar("R")

ENGINES = ("local", "ray")
PARTS_PER_CORE = 2
"""Parts that wait for each core of the cluster: enough that none is idle, few enough that what is
read is bounded.
"""

MAX_RETRIES = 5
_SECONDS_BETWEEN_LOOKS = 0.5
"""How often a process looks whether the one that it works for is still there."""

DEADLINE = 60.0
"""Seconds for the first answer of a cluster."""


def parallel_map(
    function: Callable[..., R], parts: Iterable[P], *shared: Any, engine: str = "local"
) -> Iterator[R]:
    """Call ``function(part, *shared)`` for each part.

    Give the results in the order of the parts, as they come.

    :param function: a Python function of a module that the workers can import too; one that gives
        the same when it is called again.
    :param parts: read a little ahead of the results.
    :param shared: what all calls take, sent once.
    :param engine: ``local``, one part after the other in this process, or ``ray``: on the cluster
        that ``RAY_ADDRESS`` names or that runs on this machine, else on one that is started with
        this machine's cores.
    :raises DataError: for another engine, or what is no function.
    :raises ModelError: without Ray, or when a part has killed every worker that it was given to.

    >>> from memlab.distributed import parallel_map
    >>> list(parallel_map(pow, [2, 3], 2))
    [4, 9]
    """
    if not callable(function):
        raise DataError(f"function is a {type(function).__name__}; expected a function of a module")
    if check_engine(engine) == "ray":
        return _map_on_ray(function, parts, shared)
    return (function(part, *shared) for part in parts)


def map_in_processes(
    function: Callable[..., R], parts: Iterable[P], *shared: Any, jobs: int
) -> Iterator[R]:
    """Call ``function(part, *shared)`` for each part in processes of this machine.

    Give results in order.

    Each process computes with one thread. It ends with this one, and when this one is interrupted;
    those that are idle end after five minutes.

    :param function: a function of a module.
    :param jobs: how many processes.
    :raises ModelError: when a process ends before its work is done.
    :raises Exception: as the function does.

    >>> from memlab.distributed import map_in_processes
    >>> list(map_in_processes(pow, [2, 3], 2, jobs=1))
    [4, 9]
    """
    if jobs == 1:
        yield from (function(part, *shared) for part in parts)
        return
    from joblib import Parallel, delayed
    from joblib.externals.loky.process_executor import BrokenProcessPool

    side_by_side = Parallel(
        n_jobs=jobs,
        backend="loky",
        return_as="generator",
        batch_size=1,
        max_nbytes=None,
        inner_max_num_threads=1,
        initializer=_hide_bars_and_end_with_parent_process,
        initargs=(os.getpid(),),
    )
    try:
        yield from side_by_side(delayed(function)(part, *shared) for part in parts)
    except BrokenProcessPool as error:
        raise ModelError(
            f"one of {jobs} processes ended before its work was done ({type(error).__name__}): it "
            "was killed, or "
            "memory ran out; run with fewer jobs"
        ) from error


def _hide_bars_and_end_with_parent_process(parent_pid: int) -> None:
    """Let this process end with the one that it works for, which alone answers Ctrl-C and shows
    bars.
    """
    hide_bars()
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def exit_when_parent_ends() -> None:
        while os.getppid() == parent_pid:
            time.sleep(_SECONDS_BETWEEN_LOOKS)
        os._exit(1)

    threading.Thread(target=exit_when_parent_ends, name="memlab-parent", daemon=True).start()


def check_engine(engine: str) -> str:
    """Raise for an unknown engine; else give its name back.

    :raises DataError: with the known engines.
    """
    if engine not in ENGINES:
        raise DataError(f"engine is {engine!r}; choose {' or '.join(ENGINES)}")
    return engine


def connect_and_count_cluster_cores() -> int:
    """Give the number of cores of the cluster."""
    return max(1, int(_import_and_connect_ray().cluster_resources().get("CPU", 1)))


def _map_on_ray(
    function: Callable[..., R], parts: Iterable[P], shared_arguments: tuple[Any, ...]
) -> Iterator[R]:
    ray = _import_and_connect_ray()
    remote_task = ray.remote(num_cpus=1, max_retries=MAX_RETRIES)(function)
    shared_references = [ray.put(shared_value) for shared_value in shared_arguments]
    waiting_results: deque[Any] = deque()
    try:
        for part in parts:
            waiting_results.append(remote_task.remote(part, *shared_references))
            if len(waiting_results) >= PARTS_PER_CORE * connect_and_count_cluster_cores():
                yield _get_ray_result_or_explain(ray, waiting_results.popleft())
        while waiting_results:
            yield _get_ray_result_or_explain(ray, waiting_results.popleft())
    finally:
        for waiting_result in waiting_results:
            ray.cancel(waiting_result)


def _get_ray_result_or_explain(ray: ModuleType, result_reference: object) -> Any:
    try:
        return ray.get(result_reference)
    except ray.exceptions.RayTaskError as error:
        raise (error.cause or error) from error
    except ray.exceptions.RayError as error:
        raise ModelError(
            f"a part of the work was lost on {MAX_RETRIES + 1} workers ({type(error).__name__}): "
            "look at the memory and the logs of the cluster (ray status), then run the same "
            "command again; it goes on where it stopped"
        ) from error


def _start_or_join_cluster(ray: ModuleType) -> None:
    """Connect to the cluster, or start one; Ray asks an address without an answer for minutes."""
    ray.init(log_to_driver=False, logging_level=logging.ERROR, configure_logging=False)


def _import_and_connect_ray() -> ModuleType:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    with require_extra("ray", "engine ray"):
        import ray
    if not ray.is_initialized():
        try:
            call_with_time_limit(DEADLINE, partial(_start_or_join_cluster, ray))
        except Exception as error:  # whatever a cluster does that cannot be reached
            cluster_address = os.environ.get("RAY_ADDRESS")
            raise ModelError(
                "no Ray cluster "
                f"{f'at {cluster_address}' if cluster_address else 'on this machine'} "
                f"({type(error).__name__}: {str(error)[:200]}): correct RAY_ADDRESS, or start one "
                "with `ray start --head`"
            ) from error
    return ray


explain_arguments(globals())
