"""Pipelines: stages joined by ``|``, written the same way everywhere.

``hybrid(k=200) | mmr(lambda_=0.7)`` retrieves two hundred candidates and reorders them. The first
stage retrieves, every other takes a ranking and gives one. Parameters are Python literals.
"""

from __future__ import annotations

import ast
import difflib
import inspect
import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, get_origin

import polars as pl
from pydantic import AfterValidator, TypeAdapter, ValidationError

from memlab import llm
from memlab.errors import DataError, PipelineError, explain_arguments
from memlab.files import digest
from memlab.llm.recording import recordings_digest
from memlab.records import LEVELS, Level, Run
from memlab.registry import (
    STAGE_INPUTS,
    clusterers,
    is_own_code,
    is_retriever,
    parameter_types,
    stage_parameters,
    stages,
)
from memlab.retrieve import Bench, sessions_from_turns
from memlab.retrieve.large_scopes import divide_bench
from memlab.terminal import shorten_line

__all__ = [
    "MAX_REMEMBERED",
    "Pipeline",
    "Stage",
    "Transforms",
    "apply_transforms",
    "pipeline",
]

MAX_REMEMBERED = 16


@dataclass(frozen=True)
class Stage:
    """One stage of a pipeline: a name and the parameters that differ from the defaults."""

    name: str
    parameters: Mapping[str, Any]

    def __str__(self) -> str:
        inside = ", ".join(f"{key}={value!r}" for key, value in self.parameters.items())
        return f"{self.name}({inside})" if inside else self.name

    @property
    def ranks_sessions(self) -> bool:
        """Whether it can rank sessions: whether it has a parameter ``level``."""
        return "level" in stage_parameters(stages[self.name])

    def value(self, parameter: str) -> Any:
        """Give the value of a parameter, or its default.

        ``None`` where the stage has no such parameter.
        """
        declared = stage_parameters(stages[self.name]).get(parameter)
        return self.parameters.get(parameter, declared.default if declared else None)

    def nested(self) -> list[Stage]:
        """Give the stage and the stages within its parameters, including defaults."""
        types = parameter_types(stages[self.name])
        texts = [self.value(name) for name, hint in types.items() if hint is Transforms]
        return [
            self,
            *(
                inner
                for text in texts
                for each in _parse_transforms(text)
                for inner in each.nested()
            ),
        ]


@dataclass(frozen=True)
class Pipeline:
    """Stages joined to a pipeline; ``str()`` gives the text that :func:`pipeline` parses."""

    stages: tuple[Stage, ...]

    def __str__(self) -> str:
        return " | ".join(map(str, self.stages))

    def run(self, bench: Bench, *, level: Level = "turn") -> Run:
        """Rank the documents of a level for every query of the bench.

        A retriever alone ranks session documents at session level. Later stages choose among turns,
        so with them sessions come in the order in which the chosen turns bring them, unless the
        last stage ranks sessions itself: unless it has a parameter ``level``.

        :raises DataError: when a stage's parameter has a value that it cannot use.
        """
        if not isinstance(bench, Bench):
            raise DataError(
                f"a pipeline runs on a bench, not on a {type(bench).__name__}: make one with "
                "memlab.Bench.of(data), or "
                "call memlab.run([pipeline], data)"
            )
        if level not in LEVELS:
            raise DataError(f"level is {level!r}; choose {' or '.join(LEVELS)}")
        if (parts := divide_bench(bench)) is not None:
            return self._run_parts(parts, bench, level)
        if level == "session" and not self.stages[-1].ranks_sessions:
            run, spent = self._run_stages(bench, "turn")
            run = sessions_from_turns(run, bench)
        else:
            run, spent = self._run_stages(bench, level)
        # A stage may say what it had to leave out; what the bench is made of is the bench's to say.
        about = {**run.provenance, **bench.provenance, "pipeline": str(self), "level": level}
        if spent.tokens or spent.unanswered:
            about["llm"] = spent.describe()
        return replace(
            run,
            name=_name_in_tables(self, run),
            provenance=about | {k: v for k, v in self.dependencies().items() if v},
        )

    def _run_parts(self, parts: Iterator[Bench], bench: Bench, level: Level) -> Run:
        """Run on each part of a bench with large scopes, and join the rankings."""
        from tqdm.auto import tqdm

        frames, about, name = [], dict(bench.provenance), str(self)
        with llm.track_spending() as spent:
            for part in tqdm(parts, desc=str(self), disable=bench.queries.height < 10):
                run = self.run(part, level=level)
                frames.append(run.frame)
                about |= run.provenance
                name = run.name
        if "llm" in about:
            about["llm"] = spent.describe()  # of all parts
        order = bench.queries.select("query_id").with_row_index("row")
        frame = (
            pl.concat(frames)
            .join(order, on="query_id", maintain_order="left")
            .sort("row", "rank")
            .drop("row")
        )
        return Run(frame, level, name, about)

    def dependencies(self) -> dict[str, dict[str, str]]:
        """Give digests of what decides a ranking besides its text: model files and files of
        plug-ins.

        :returns: ``files``: what stages read as ``model``, a path, by name; a model's name is no
            path. ``stages``: the stages, and the clusterers that they name in ``clustering``, that
            are not memlab's own.

        >>> from memlab import pipeline
        >>> pipeline("hybrid | mmr").dependencies()
        {'files': {}, 'stages': {}}
        """
        every = [inner for each in self.stages for inner in each.nested()]
        paths = {str(each.parameters["model"]) for each in every if "model" in each.parameters}
        digests = {each.name: stages.digest(each.name) for each in every}
        named = {each.value("clustering") for each in every} - {None}
        digests |= {
            f"clustering={name!r}": clusterers.digest(name) for name in named if name in clusterers
        }
        files = {path: digest(Path(path)) for path in sorted(paths) if os.path.exists(path)}
        if any(each.value("service") == llm.RECORDED for each in every):
            files["recorded answers"] = recordings_digest()
        return {
            "files": files,
            "stages": {name: source for name, source in sorted(digests.items()) if source},
        }

    def _run_stages(self, bench: Bench, level: Level) -> tuple[Run, llm.ModelSpending]:
        """Run the stages, or reuse the run of the same stages on the same bench.

        Give it with what it spent.
        """
        reads = self.dependencies()
        place = (str(self), level, *reads["files"].items(), *reads["stages"].items())
        remembered = bench.remembered.pop(place, None)
        if remembered is None:
            *before, last = self.stages
            options = {"level": level} if last.ranks_sessions else {}
            first, earlier = (
                Pipeline(tuple(before))._run_stages(bench, "turn")
                if before
                else (None, llm.ModelSpending())
            )
            with llm.track_spending() as spent:
                if first is None:
                    run = _call_stage(last, bench, **options)
                else:
                    run = _call_stage(last, first, bench, **options)
                    run = _keep_left_out(run, first)
            spent.add(earlier.tokens, earlier.unanswered, earlier.seconds)
            remembered = run, spent
        if not remembered[1].unanswered:  # else a service that is repaired would not be asked again
            bench.remembered[place] = remembered
        if len(bench.remembered) > MAX_REMEMBERED:
            del bench.remembered[next(iter(bench.remembered))]
        return remembered


def _keep_left_out(run: Run, first: Run) -> Run:
    """Note in a run what the stages before it left out: it chose among what these found."""
    lacking = [*first.provenance.get("left_out", []), *run.provenance.get("left_out", [])]
    if not lacking:
        return run
    return replace(run, provenance={**run.provenance, "left_out": [*dict.fromkeys(lacking)]})


def _name_in_tables(stages: Pipeline, run: Run) -> str:
    """Give a pipeline's text, and what its stages had to leave out: ``best (without late)``."""
    lacking = run.provenance.get("left_out", [])
    if not lacking:
        return str(stages)
    return f"{stages} (without {' and '.join(lacking)})"


def _call_stage(stage: Stage, *inputs: Any, **level: Any) -> Run:
    try:
        run = stages[stage.name](*inputs, **level, **stage.parameters)
    except DataError as error:
        raise DataError(f"stage {str(stage)!r}: {error}") from error
    except (TypeError, OverflowError) as error:
        if not is_own_code(stages[stage.name]):
            raise  # of code that is not memlab's, which its traceback shows
        raise PipelineError(
            f"stage {str(stage)!r}: a parameter has the wrong type or size ({error})"
        ) from error
    if not isinstance(run, Run):
        raise PipelineError(
            f"stage {str(stage)!r} gave {type(run).__name__}; a stage gives a Run: run_from_scores "
            "makes one"
        )
    return run


Transforms = Annotated[str, AfterValidator(lambda text: _parse_transforms(text) and text)]
"""Type of a stage's parameter that is itself stages, such as ``"light(window=2)"``: checked when it
is read.
"""


def _parse_transforms(text: str) -> tuple[Stage, ...]:
    return pipeline(f"bm25 | {text}").stages[1:]


def apply_transforms(text: str, run: Run, bench: Bench) -> Run:
    """Apply the stages of a text to a run of turns: what a stage with a parameter of
    :data:`Transforms` does.

    :raises PipelineError: when the text cannot be read.
    """
    for each in _parse_transforms(text):
        run = _call_stage(each, run, bench)
    return run


def pipeline(text: str | Pipeline) -> Pipeline:
    """Parse a pipeline, such as ``"best | mmr(lambda_=0.7)"``.

    :raises PipelineError: for text that is no pipeline, an unknown stage or an unknown parameter;
        says which are known.

    >>> import memlab
    >>> str(memlab.pipeline(" hybrid ( k = 200 )|mmr"))
    'hybrid(k=200) | mmr'
    >>> memlab.pipeline("hybrid | mrr")
    Traceback (most recent call last):
        ...
    memlab.errors.PipelineError: no stage is called 'mrr' (did you mean 'mmr'?); after the first
    come ...
    """
    if isinstance(text, Pipeline):
        return text
    if not isinstance(text, str):
        raise PipelineError(
            f"a pipeline is text such as 'hybrid(k=200) | mmr', not {type(text).__name__}"
        )
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        if re.search(r"\blambda\s*=", text):
            raise PipelineError(
                f"{shorten_line(text)!r}: lambda is a word of Python; write lambda_=…"
            ) from None
        fault = (
            f"is not a pipeline ({error}); join stages with |: 'hybrid(k=200) | mmr(lambda_=0.7)'"
        )
        raise PipelineError(f"{shorten_line(text)!r} {fault}") from error
    nodes: list[ast.expr] = []
    while isinstance(tree, ast.BinOp) and isinstance(tree.op, ast.BitOr):
        nodes.append(tree.right)
        tree = tree.left
    nodes.append(tree)
    return Pipeline(
        tuple(_parse_stage(node, first=i == 0) for i, node in enumerate(reversed(nodes)))
    )


def _parse_stage(node: ast.expr, *, first: bool) -> Stage:
    call = node if isinstance(node, ast.Call) else ast.Call(node, [], [])
    if not isinstance(call.func, ast.Name):
        raise PipelineError(
            f"{_node_text(node)!r} is not a stage; a stage is name or name(key=value, …)"
        )
    name = call.func.id
    function = stages.get(name)
    if function is None or is_retriever(function) != first:
        raise PipelineError(_unknown_stage_message(name, first=first))
    if call.args:
        raise PipelineError(f"stage {name!r}: write {_node_text(call.args[0])!r} as key=value")
    named = stage_parameters(function)
    allowed = [p for p in named if p not in STAGE_INPUTS]
    parameters: dict[str, Any] = {}
    for keyword in call.keywords:
        if keyword.arg in parameters:
            raise PipelineError(f"stage {name!r}: {keyword.arg} is given twice; keep one")
        if keyword.arg not in allowed:
            raise PipelineError(
                f"stage {name!r} has no parameter {keyword.arg!r}; it has {', '.join(allowed)}"
            )
        value = _parse_literal(keyword.value, f"stage {name!r}: {keyword.arg}")
        parameters[keyword.arg] = _check_type(
            value, function, keyword.arg, f"stage {name!r}: {keyword.arg}"
        )
    if missing := [
        p for p in allowed if p not in parameters and named[p].default is named[p].empty
    ]:
        raise PipelineError(f"stage {name!r} needs {missing[0]}: write {name}({missing[0]}=…)")
    return Stage(name, parameters)


def _unknown_stage_message(name: str, *, first: bool) -> str:
    known = [each for each, function in stages.items() if is_retriever(function) == first]
    listed = f"{'a pipeline begins with' if first else 'after the first come'} {', '.join(known)}"
    if name in stages:
        rule = (
            "retrieves nothing and cannot come first"
            if first
            else "retrieves and can only come first"
        )
        return f"stage {name!r} {rule}, as in 'hybrid | mmr'; {listed}"
    near = difflib.get_close_matches(name, known, 1)
    return f"no stage is called {name!r}{f' (did you mean {near[0]!r}?)' if near else ''}; {listed}"


def _check_type(value: Any, function: Callable[..., Run], parameter: str, where: str) -> Any:
    """Raise for a value that is not of the parameter's type, such as 1.5 for a count.

    Else give it back.
    """
    hint = parameter_types(function).get(parameter, Any)
    try:
        TypeAdapter(hint).validate_python(value, strict=True)
    except ValidationError:
        written = stage_parameters(function)[parameter].annotation
        expected = (
            "str" if get_origin(hint) is Annotated else inspect.formatannotation(written).strip("'")
        )
        raise PipelineError(
            f"{where} is {shorten_line(repr(value))}; expected {expected}"
        ) from None
    return value


def _parse_literal(node: ast.expr, where: str) -> Any:
    """Parse a literal, which ``repr`` writes so that it can be parsed again; inf and … are none."""
    try:
        value = ast.literal_eval(node)
        if ast.literal_eval(repr(value)) == value:
            return value
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        pass
    raise PipelineError(
        f"{where}={_node_text(node)} is not a literal; give a number, quoted text or a list of them"
    )


def _node_text(node: ast.expr) -> str:
    try:
        return shorten_line(ast.unparse(node))
    except (RecursionError, ValueError):  # too deep, or a number of more digits than Python writes
        return "…"


explain_arguments(globals())
