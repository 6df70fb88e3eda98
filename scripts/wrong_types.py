"""Calls of the public functions and methods with arguments of wrong types: a part of ``torture.py``.

Arguments are drawn: some fit the annotation of their parameter, at least one is any value at all. A
fault is an error that is neither a :class:`MemlabError` nor the ``TypeError`` of a call that does
not fit the signature.
"""

from __future__ import annotations

import inspect
import logging
import os
import random
import signal
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from itertools import islice
from pathlib import Path
from types import GeneratorType, ModuleType
from typing import Any

import numpy as np
import polars as pl

import memlab
from memlab.argument_errors import evaluate_parameter_types, fits_type
from memlab.errors import VAGUE, MemlabError

SECONDS = 20
"""A call whose arguments all happen to fit may work for longer: it is ended after so many of the
processor, and counted apart."""
_ANYTHING: tuple[Any, ...] = (
    *(None, True, False, -1, 0, 1, 7, 10**30, -(2**63), 2.5, -0.0, float("nan"), float("inf")),
    *("", " ", "tea", "owen", "turn", "\ud800", "a\0b", "../x", "x" * 5_000, "bm25 | mmr", "1e5"),
    *(b"", b"tea", [], ["tea"], ["\ud800"], [1], [None], [[]], [{"a": 1}], (), ("a", 1), {1}),
    *({}, {"a": 1}, {1: 2}, {"a": None}, {"turns": []}, frozenset("ab"), range(3), object()),
    *(
        object(),
        type(None),
        Exception("x"),
        Decimal("1.5"),
        Fraction(1, 3),
        1j,
        Path("none"),
        Path(),
    ),
    *(date(2026, 1, 1), datetime(2026, 1, 1), datetime.max, datetime.min.replace(tzinfo=UTC)),
    *(datetime(2026, 1, 1, tzinfo=timezone(timedelta(hours=14))), timedelta(0), timedelta.max),
    *(np.int64(3), np.float32("nan"), np.array(3), np.zeros(3), np.zeros((2, 0)), np.ones((2, 3))),
    *(np.array(["a", None], dtype=object), np.array([], dtype=str), np.ones((1, 1, 1))),
    *(pl.DataFrame(), pl.DataFrame({"a": [1]}), pl.DataFrame({"scope": [1], "text": [None]})),
    *(pl.DataFrame({"query_id": ["q"], "doc_id": [1], "rank": ["x"], "score": [None]}),),
    *(pl.LazyFrame({"a": [1]}), pl.Series([1]), pl.Series(["a", None]), pl.Series([[1], None])),
    *(pl.DataFrame(schema={"query_id": pl.String, "text": pl.Int8}), pl.col("x"), pl.lit(1)),
)


class _OutOfTime(BaseException):
    """Raised by the alarm; no code under test catches it."""


def _end(*_: Any) -> None:
    raise _OutOfTime


def _examples(work: Path) -> list[Any]:
    """Make one of each thing that the package gives, for arguments that fit and for their methods."""
    data = memlab.sample(["owen"], turns=120)
    store = memlab.MemoryStore.open(work / "store")
    store.ingest(data)
    encoder = memlab.embed.load("hashing:64")
    bench = memlab.Bench.of(data, encoder=encoder, store=store, progress=False)
    pipe = memlab.pipeline("bm25")
    run = pipe.run(bench, level="turn")
    done = memlab.run(["bm25", "dense"], [data], encoder="hashing:64", store=store)
    fact = memlab.Fact.__dataclass_fields__
    made = [data, store, store.vectors, store.tokens, store.search, store.runs, store.grids]
    made += [store.knowledge, store.nodes, encoder, bench, pipe, pipe.stages[0], run, done, fact]
    made += [bench.evidence("turn"), bench.documents("turn"), memlab.evaluate.evaluate(run, data)]
    made += [done.table(), memlab.stages, memlab.formats, memlab.measures, encoder.identity]
    made += [data.turns, data.sessions, data.questions, run.frame, store.knowledge, bench.queries]
    made += ["tea", "owen", "What did the bookcase cost?", "turn", "session", "bm25", "hashing:64"]
    made += ["recorded", "extractive", "recall_all@10", "weeks", "en", str(work / "new"), work]
    made += [3, 1, 0.5, True, None, lambda *_: None, datetime(2026, 3, 1, tzinfo=UTC), ["owen"]]
    made += [bench.turn_vectors, bench.query_vectors, [], {}, timedelta(minutes=30), ["tea"]]
    return made


def _own_callables(owner: Any) -> Iterator[str]:
    """Name the public methods of an object that memlab defines."""
    for name in dir(type(owner)):
        value = inspect.getattr_static(type(owner), name)
        function = getattr(value, "__func__", value)
        home = str(getattr(function, "__module__", "")).partition(".")[0]
        if not name.startswith("_") and inspect.isfunction(function) and home == "memlab":
            yield name


def targets(examples: list[Any]) -> dict[str, Callable[..., Any]]:
    """Give the public functions, classes and methods by name."""
    found = dict[str, Callable[..., Any]]()
    modules = [memlab, *(getattr(memlab, name) for name in memlab.__all__)]
    for module in modules:
        if not isinstance(module, ModuleType):
            continue
        listed = getattr(module, "__all__", None)
        for name in listed or [name for name in vars(module) if name[0] != "_"]:
            value = getattr(module, name)
            home = str(getattr(value, "__module__", ""))
            is_public = home.startswith("memlab.") if listed else home == module.__name__
            if is_public and callable(value) and not hasattr(value, "cache_info"):
                found.setdefault(f"{home}.{name}", value)
    for owner in examples:
        for name in _own_callables(owner):
            found[f"{type(owner).__name__}.{name}"] = getattr(owner, name)
    return {name: value for name, value in found.items() if _takes_arguments(value)}


def _takes_arguments(value: Callable[..., Any]) -> bool:
    """Say whether something has arguments that could be of a wrong type; errors take any."""
    if getattr(value, "_is_protocol", False):
        return False
    if inspect.isclass(value) and issubclass(value, BaseException):
        return False
    return bool(inspect.signature(value).parameters)


def _drawn_call(
    function: Callable[..., Any], fitting: dict[str, list[Any]], rng: random.Random
) -> tuple[list[Any], dict[str, Any]]:
    parameters = [*inspect.signature(function).parameters.values()]
    args, kwargs = list[Any](), dict[str, Any]()
    wrong = rng.randrange(len(parameters)) if parameters else 0
    for place, each in enumerate(parameters):
        may_stay_out = each.default is not each.empty and place != wrong
        if each.kind in (each.VAR_POSITIONAL, each.VAR_KEYWORD):
            continue
        if may_stay_out and rng.random() < 0.7:
            continue
        choice = fitting[each.name]
        if place == wrong or rng.random() < 0.15 or not choice:
            choice = [*_ANYTHING]
        value = rng.choice(choice)
        if each.kind is each.KEYWORD_ONLY or len(args) < place:
            kwargs[each.name] = value
        else:
            args.append(value)
    return args, kwargs


def calls(count: int, rng: random.Random, work: Path) -> Counter[str]:
    """Call public functions and methods with arguments of wrong types."""
    faults: Counter[str] = Counter(foreign=0)
    before = Path.cwd()
    os.chdir(work)
    Path("memlab.toml").write_text('encoder = "hashing:64"\n')
    logging.disable(logging.WARNING)
    examples = _examples(work)
    known = targets(examples)
    fitting = {}
    for name, function in known.items():
        hints = evaluate_parameter_types(function)
        fitting[name] = {
            p: [v for v in examples if fits_type(v, hint)] for p, hint in hints.items()
        }
    signal.signal(signal.SIGPROF, _end)
    ended, kinds, vague = 0, Counter[str](), Counter[str]()
    names = sorted(known)
    for number in range(count):
        name = names[number % len(names)]
        function = known[name]
        args, kwargs = _drawn_call(function, fitting[name], rng)
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
        try:
            given = function(*args, **kwargs)
            if isinstance(given, GeneratorType):
                [*islice(given, 3)]
        except MemlabError as error:
            if VAGUE in str(error):
                vague[f"{name}: {type(error.__cause__).__name__}"] += 1
        except _OutOfTime:
            ended += 1
            print(f"call {number} of {name} took {SECONDS} s")
        except BaseException as error:
            signal.setitimer(signal.ITIMER_PROF, 0)
            if isinstance(error, TypeError) and "required positional argument" in str(error):
                continue
            faults["foreign"] += 1
            steps = traceback.extract_tb(error.__traceback__)
            own = [step for step in steps if "/memlab/" in step.filename] or steps
            place = f"{Path(own[-1].filename).name}:{own[-1].lineno}"
            kinds[f"{name}: {type(error).__name__}: {str(error)[:90]!r} at {place}"] += 1
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
    os.chdir(before)
    logging.disable(logging.NOTSET)
    print(f"{len(known)} functions and methods, {ended} of {count} calls ended after {SECONDS} s")
    print(f"{vague.total()} errors name no argument: {dict(vague.most_common(12))}")
    for kind, times in kinds.most_common():
        print(f"{times} × {kind}")
    return faults
