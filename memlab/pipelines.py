"""Pipelines: stages joined by ``|``, written the same way everywhere.

``hybrid(k=200) | mmr(lambda_=0.7)`` retrieves two hundred candidates and reorders them. The first stage retrieves,
every other takes a ranking and gives one. Parameters are Python literals.
"""

from __future__ import annotations

import ast
import difflib
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, get_type_hints

from pydantic import TypeAdapter, ValidationError

from memlab.errors import DataError, PipelineError
from memlab.records import Level, Run
from memlab.rerank import cross_encoder, learned, light, position_aware
from memlab.retrieve import (
    Bench,
    bm25,
    combsum,
    decompose,
    dense,
    expand,
    hybrid,
    hyde,
    late,
    multi_hop,
    negative_feedback,
    prf,
    sessions_from_turns,
    two_stage,
)
from memlab.rollup import tree
from memlab.select import (
    adaptive,
    budget,
    by_cluster,
    coverage,
    dpp,
    expand_cluster,
    fill_sessions,
    mmr,
    msd,
)

REMEMBERED = 16


@dataclass(frozen=True)
class Stage:
    """One stage of a pipeline: a name and the parameters that differ from the defaults."""

    name: str
    parameters: Mapping[str, Any]

    def __str__(self) -> str:
        inside = ", ".join(f"{key}={value!r}" for key, value in self.parameters.items())
        return f"{self.name}({inside})" if inside else self.name


@dataclass(frozen=True)
class Pipeline:
    """Stages that turn a bench into a ranking; ``str()`` gives the text that :func:`pipeline` reads.

    :param stages: the retriever, then what reorders or cuts.
    """

    stages: tuple[Stage, ...]

    def __str__(self) -> str:
        return " | ".join(map(str, self.stages))

    def run(self, bench: Bench, *, level: Level = "turn") -> Run:
        """Rank the documents of a level for every query of the bench.

        A pipeline of one stage ranks session documents at session level. Later stages choose among turns, so with
        them sessions come in the order in which the chosen turns bring them, unless the last stage ranks sessions
        itself.

        :raises DataError: when a stage's parameter has a value that it cannot use.
        """
        if level == "session" and len(self.stages) > 1 and not self._ranks_sessions():
            run = sessions_from_turns(self._ranked(bench, "turn"), bench)
        else:
            run = self._ranked(bench, level)
        return replace(run, name=str(self), provenance={**bench.provenance, "pipeline": str(self), "level": level})

    def _ranks_sessions(self) -> bool:
        """Say whether the last stage is one that takes turns and can give sessions."""
        return "level" in inspect.signature(TRANSFORMS[self.stages[-1].name]).parameters

    def _ranked(self, bench: Bench, level: Level) -> Run:
        """Run the stages, or remember them: pipelines that are compared share their beginnings."""
        place = (str(self), level)
        run = bench.remembered.pop(place, None)
        if run is None:
            *before, last = self.stages
            if before:
                wanted = {"level": level} if self._ranks_sessions() else {}
                turns = Pipeline(tuple(before))._ranked(bench, "turn")
                run = _apply(TRANSFORMS[last.name], last, turns, bench, **wanted)
            else:
                run = _apply(RETRIEVERS[last.name], last, bench, level=level)
        bench.remembered[place] = run
        if len(bench.remembered) > REMEMBERED:
            del bench.remembered[next(iter(bench.remembered))]
        return run


def _apply(function: Callable[..., Run], stage: Stage, *data: Any, **level: Any) -> Run:
    try:
        return function(*data, **level, **stage.parameters)
    except DataError as error:
        raise DataError(f"stage {str(stage)!r}: {error}") from error
    except (TypeError, OverflowError) as error:
        raise PipelineError(f"stage {str(stage)!r}: a parameter has the wrong type or size ({error})") from error


def blend(
    run: Run,
    bench: Bench,
    *,
    reranker: str = "light",
    weights: Sequence[float] = (0.75, 0.60, 0.40),
    by: str = "score",
) -> Run:
    """Trust a reranker the less, the higher retrieval put a document; see :func:`memlab.rerank.position_aware`.

    :param reranker: a stage that reranks, as it would be written in a pipeline: ``"light(half_life_hours=24.0)"``.

    >>> import memlab
    >>> str(memlab.pipeline("bm25 | blend(reranker='light(window=2)')"))
    "bm25 | blend(reranker='light(window=2)')"
    """
    return position_aware(run, _reranking(reranker)(run, bench), bench, weights=weights, by=by)


def _reranking(text: str) -> Callable[[Run, Bench], Run]:
    """Read the stages that a stage is to apply."""
    stages = pipeline(f"bm25 | {text}").stages[1:]

    def apply(run: Run, bench: Bench) -> Run:
        for stage in stages:
            run = _apply(TRANSFORMS[stage.name], stage, run, bench)
        return run

    return apply


RETRIEVERS: Mapping[str, Callable[..., Run]] = {
    f.__name__: f for f in (dense, bm25, late, hybrid, combsum, two_stage, tree)
}
TRANSFORMS: Mapping[str, Callable[..., Run]] = {
    f.__name__: f
    for f in (
        *(prf, decompose, negative_feedback, multi_hop, expand, hyde),
        *(light, blend, cross_encoder, learned),
        *(mmr, dpp, msd, by_cluster, expand_cluster, fill_sessions, coverage, adaptive, budget),
    )
}


def pipeline(text: str | Pipeline) -> Pipeline:
    """Read a pipeline.

    :param text: for example ``"hybrid(k=200) | mmr(lambda_=0.7)"``.
    :raises PipelineError: for text that is no pipeline, an unknown stage or an unknown parameter; says which are known.

    >>> import memlab
    >>> str(memlab.pipeline(" hybrid ( k = 200 )|mmr"))
    'hybrid(k=200) | mmr'
    >>> memlab.pipeline("hybrid | mrr")
    Traceback (most recent call last):
        ...
    memlab.errors.PipelineError: no stage is called 'mrr' (did you mean 'mmr'?); after the first come ...
    """
    if isinstance(text, Pipeline):
        return text
    if not isinstance(text, str):
        raise PipelineError(f"a pipeline is text such as 'hybrid(k=200) | mmr', not {type(text).__name__}")
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise PipelineError(
            f"{_cut(text)!r} is not a pipeline ({error}); join stages with |, as in 'hybrid(k=200) | mmr(lambda_=0.7)'"
        ) from error
    nodes: list[ast.expr] = []
    while isinstance(tree, ast.BinOp) and isinstance(tree.op, ast.BitOr):
        nodes.append(tree.right)
        tree = tree.left
    nodes.append(tree)
    return Pipeline(tuple(_stage(node, first=i == 0) for i, node in enumerate(reversed(nodes))))


def _stage(node: ast.expr, *, first: bool) -> Stage:
    call = node if isinstance(node, ast.Call) else ast.Call(node, [], [])
    if not isinstance(call.func, ast.Name):
        raise PipelineError(f"{_source(node)!r} is not a stage; a stage is name or name(key=value, …)")
    name, known = call.func.id, RETRIEVERS if first else TRANSFORMS
    if name in RETRIEVERS.keys() | TRANSFORMS.keys() and name not in known:
        rule = "retrieves nothing and cannot come first" if first else "retrieves and can only come first"
        raise PipelineError(f"stage {name!r} {rule}, as in 'hybrid | mmr'; {_place(first)} {', '.join(known)}")
    if name not in known:
        near = difflib.get_close_matches(name, known, 1)
        hint = f" (did you mean {near[0]!r}?)" if near else ""
        raise PipelineError(f"no stage is called {name!r}{hint}; {_place(first)} {', '.join(known)}")
    if call.args:
        raise PipelineError(f"stage {name!r}: write {_source(call.args[0])!r} as key=value")
    named = inspect.signature(known[name]).parameters
    allowed = [p for p in named if p not in ("run", "bench", "level")]
    parameters: dict[str, Any] = {}
    for keyword in call.keywords:
        if keyword.arg in parameters:
            raise PipelineError(f"stage {name!r}: {keyword.arg} is given twice; keep one")
        if keyword.arg not in allowed:
            raise PipelineError(f"stage {name!r} has no parameter {keyword.arg!r}; it has {', '.join(allowed)}")
        value = _literal(keyword.value, f"stage {name!r}: {keyword.arg}")
        if (name, keyword.arg) == ("blend", "reranker") and isinstance(value, str):
            _reranking(value)
        parameters[keyword.arg] = _fitting(value, known[name], keyword.arg, f"stage {name!r}: {keyword.arg}")
    needed = [p for p in allowed if named[p].kind is named[p].KEYWORD_ONLY and named[p].default is named[p].empty]
    missing = [p for p in needed if p not in parameters]
    if missing:
        raise PipelineError(f"stage {name!r} needs {missing[0]}: write {name}({missing[0]}=…)")
    return Stage(name, parameters)


def _fitting(value: Any, function: Callable[..., Run], parameter: str, where: str) -> Any:
    """Refuse a value that is not of the parameter's type: 1.5 or True for a count."""
    hint = get_type_hints(function).get(parameter, Any)
    try:
        TypeAdapter(hint).validate_python(value, strict=True)
    except ValidationError:
        expected = inspect.signature(function).parameters[parameter].annotation
        raise PipelineError(f"{where} is {_cut(repr(value))}; expected {expected}") from None
    return value


def _literal(node: ast.expr, where: str) -> Any:
    """Read a value that ``repr`` writes so that it can be read again, which inf and … are not."""
    try:
        value = ast.literal_eval(node)
        if ast.literal_eval(repr(value)) == value:
            return value
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        pass
    raise PipelineError(f"{where}={_source(node)} is not a literal; give a number, quoted text or a list of them")


def _source(node: ast.expr) -> str:
    try:
        return _cut(ast.unparse(node))
    except RecursionError:
        return "…"


def _cut(text: str) -> str:
    return text if len(text) <= 200 else text[:199] + "…"


def _place(first: bool) -> str:
    return "a pipeline begins with" if first else "after the first come"
