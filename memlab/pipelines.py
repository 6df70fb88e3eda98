"""Pipelines: stages joined by ``|``, written the same way everywhere.

``hybrid(k=200) | mmr(lambda_=0.7)`` retrieves two hundred candidates and reorders them. The first
stage retrieves, every other takes a ranking and gives one. Parameters are Python literals.
"""

from __future__ import annotations

import ast
import difflib
import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import polars as pl
from pydantic import AfterValidator, TypeAdapter, ValidationError

from memlab import llm
from memlab.atomic_files import digest
from memlab.errors import DataError, ModelError, PipelineError, explain_arguments
from memlab.llm.recorded_answers import digest_recordings
from memlab.llm.service_addresses import resolve_service
from memlab.progress_bars import progress_bar
from memlab.records import LEVELS, Level, Run
from memlab.registry import (
    STAGE_INPUTS,
    ModelFile,
    clusterers,
    is_own_code,
    is_retriever,
    parameter_types,
    stage_parameters,
    stages,
)
from memlab.retrieve import Bench, sessions_from_turns
from memlab.retrieve.bench import MAX_REMEMBERED
from memlab.retrieve.large_scope_candidates import split_bench_of_large_scopes
from memlab.terminal_text import shorten_line

__all__ = [
    "MAX_REMEMBERED",
    "Pipeline",
    "Stage",
    "Transforms",
    "apply_transforms",
    "pipeline",
]

_RANGE_FAULTS = (
    *("greater_than_equal", "less_than_equal", "less_than", "greater_than", "literal_error"),
)
"""What pydantic calls a value of the right type that a parameter does not take."""
_BOUND_TEXTS = {"greater than or equal to": "at least", "less than or equal to": "at most"}


@dataclass(frozen=True)
class Stage:
    """One stage of a pipeline: a name and the parameters that differ from the defaults."""

    name: str
    parameters: Mapping[str, Any]

    def __str__(self) -> str:
        parameter_list = ", ".join(
            f"{parameter}={value!r}" for parameter, value in self.parameters.items()
        )
        return f"{self.name}({parameter_list})" if parameter_list else self.name

    @property
    def ranks_sessions(self) -> bool:
        """Whether it can rank sessions: whether it has a parameter ``level``."""
        return "level" in stage_parameters(stages[self.name])

    def parameter_value(self, parameter_name: str) -> Any:
        """Give the value of a parameter, or its default.

        ``None`` where the stage has no such parameter.
        """
        declared = stage_parameters(stages[self.name]).get(parameter_name)
        return self.parameters.get(parameter_name, declared.default if declared else None)

    def with_nested_stages(self) -> list[Stage]:
        """Give the stage and the stages within its parameters, including defaults."""
        types = parameter_types(stages[self.name])
        transform_texts = [
            self.parameter_value(name)
            for name, type_hint in types.items()
            if type_hint is Transforms
        ]
        return [
            self,
            *(
                nested_stage
                for text in transform_texts
                for inner_stage in _parse_transforms(text)
                for nested_stage in inner_stage.with_nested_stages()
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
        if (bench_parts := split_bench_of_large_scopes(bench)) is not None:
            return self._run_on_bench_parts(bench_parts, bench, level)
        if level == "session" and not self.stages[-1].ranks_sessions:
            run, model_spending = self._run_or_reuse_with_spending(bench, "turn")
            run = sessions_from_turns(run, bench)
        else:
            run, model_spending = self._run_or_reuse_with_spending(bench, level)
        # A stage may say what it had to leave out; what the bench is made of is the bench's to say.
        run_facts = {**run.provenance, **bench.provenance, "pipeline": str(self), "level": level}
        if model_spending.tokens or model_spending.unanswered:
            run_facts["llm"] = model_spending.describe()
        return replace(
            run,
            name=_pipeline_name_in_tables(self, run),
            provenance=run_facts
            | {
                fact_name: fact_value
                for fact_name, fact_value in self.dependencies().items()
                if fact_value
            },
        )

    def _run_on_bench_parts(self, bench_parts: Iterator[Bench], bench: Bench, level: Level) -> Run:
        """Run on each part of a bench with large scopes, and join the rankings."""
        run_frames = []
        run_facts = dict(bench.provenance)
        run_name = str(self)
        with llm.track_spending() as model_spending:
            is_short = bench.queries.height < 10
            for bench_part in progress_bar(
                bench_parts, what=run_name, unit="parts", hidden=is_short
            ):
                part_run = self.run(bench_part, level=level)
                run_frames.append(part_run.frame)
                run_facts |= part_run.provenance
                run_name = part_run.name
        if "llm" in run_facts:
            run_facts["llm"] = model_spending.describe()  # of all parts
        query_order = bench.queries.select("query_id").with_row_index("row")
        joined_frame = (
            pl.concat(run_frames)
            .join(query_order, on="query_id", maintain_order="left")
            .sort("row", "rank")
            .drop("row")
        )
        return Run(joined_frame, level, run_name, run_facts)

    def check_services_and_models(self) -> None:
        """Refuse what the stages would find missing only when all is encoded: services, models.

        :raises ModelError: when the settings name no such service, or there is no such file.

        >>> from memlab import pipeline
        >>> pipeline("hybrid | learned(model='mine')").check_services_and_models()
        Traceback (most recent call last):
            ...
        memlab.errors.ModelError: stage "learned(model='mine')": no model 'mine'; make one: memlab
        train ...
        """
        for own_stage in self._stages_with_nested():
            if not is_own_code(stages[own_stage.name]):
                continue
            service = own_stage.parameter_value("service")
            if service is not None:
                resolve_service(service)
            for name, type_hint in parameter_types(stages[own_stage.name]).items():
                model_path = own_stage.parameter_value(name)
                if type_hint is ModelFile and model_path and not os.path.isfile(model_path):
                    raise ModelError(
                        f"stage {str(own_stage)!r}: no model {model_path!r}; make one: memlab "
                        f"train DATASET --out {model_path}"
                    )

    def _stages_with_nested(self) -> list[Stage]:
        return [
            nested_stage
            for own_stage in self.stages
            for nested_stage in own_stage.with_nested_stages()
        ]

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
        all_stages = self._stages_with_nested()
        model_paths = {
            str(own_stage.parameters["model"])
            for own_stage in all_stages
            if "model" in own_stage.parameters
        }
        stage_digests = {own_stage.name: stages.digest(own_stage.name) for own_stage in all_stages}
        clusterings = {own_stage.parameter_value("clustering") for own_stage in all_stages} - {None}
        stage_digests |= {
            f"clustering={used_name!r}": clusterers.digest(used_name)
            for used_name in clusterings
            if used_name in clusterers
        }
        file_digests = {
            model_path: digest(Path(model_path))
            for model_path in sorted(model_paths)
            if os.path.exists(model_path)
        }
        if any(own_stage.parameter_value("service") == llm.RECORDED for own_stage in all_stages):
            file_digests["recorded answers"] = digest_recordings()
        return {
            "files": file_digests,
            "stages": {
                used_name: source for used_name, source in sorted(stage_digests.items()) if source
            },
        }

    def _run_or_reuse_with_spending(
        self, bench: Bench, level: Level
    ) -> tuple[Run, llm.ModelSpending]:
        """Run the stages, or reuse the run of the same stages on the same bench.

        Give it with what it spent.
        """
        read_digests = self.dependencies()
        memory_key = (
            str(self),
            level,
            *read_digests["files"].items(),
            *read_digests["stages"].items(),
        )
        remembered_run = bench.remembered.pop(memory_key, None)
        if remembered_run is None:
            *earlier_stages, last_stage = self.stages
            stage_options = {"level": level} if last_stage.ranks_sessions else {}
            first_run = None
            earlier_spending = llm.ModelSpending()
            if earlier_stages:
                earlier = Pipeline(tuple(earlier_stages))
                first_run, earlier_spending = earlier._run_or_reuse_with_spending(bench, "turn")
            with llm.track_spending() as model_spending:
                if first_run is None:
                    stage_run = _call_stage_and_check_run(last_stage, bench, **stage_options)
                else:
                    stage_run = _call_stage_and_check_run(
                        last_stage, first_run, bench, **stage_options
                    )
                    stage_run = _add_left_out_names_of_first_run(stage_run, first_run)
            model_spending.add(
                earlier_spending.tokens, earlier_spending.unanswered, earlier_spending.seconds
            )
            remembered_run = stage_run, model_spending
        _, model_spending = remembered_run
        # Else a service that is repaired would not be asked again.
        if not model_spending.unanswered:
            bench.remembered[memory_key] = remembered_run
        if len(bench.remembered) > MAX_REMEMBERED:
            del bench.remembered[next(iter(bench.remembered))]
        return remembered_run


def _add_left_out_names_of_first_run(run: Run, first_run: Run) -> Run:
    """Note in a run what the stages before it left out: it chose among what these found."""
    left_out_names = [
        *first_run.provenance.get("left_out", []),
        *run.provenance.get("left_out", []),
    ]
    if not left_out_names:
        return run
    return replace(run, provenance={**run.provenance, "left_out": [*dict.fromkeys(left_out_names)]})


def _pipeline_name_in_tables(ranked_pipeline: Pipeline, run: Run) -> str:
    """Give a pipeline's text, and what its stages had to leave out: ``best (without late)``."""
    left_out_names = run.provenance.get("left_out", [])
    if not left_out_names:
        return str(ranked_pipeline)
    return f"{ranked_pipeline} (without {' and '.join(left_out_names)})"


def _call_stage_and_check_run(stage: Stage, *inputs: Run | Bench, **level: Level) -> Run:
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
    for transform in _parse_transforms(text):
        run = _call_stage_and_check_run(transform, run, bench)
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
        syntax_tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        if re.search(r"\blambda\s*=", text):
            raise PipelineError(
                f"{shorten_line(text)!r}: lambda is a word of Python; write lambda_=…"
            ) from None
        if not text.strip():
            raise PipelineError("the pipeline is empty; name a stage, such as 'best'") from None
        reason = getattr(error, "msg", str(error))
        fault_text = (
            f"is not a pipeline ({reason}); join stages with |: 'hybrid(k=200) | mmr(lambda_=0.7)'"
        )
        raise PipelineError(f"{shorten_line(text)!r} {fault_text}") from error
    stage_nodes: list[ast.expr] = []
    while isinstance(syntax_tree, ast.BinOp) and isinstance(syntax_tree.op, ast.BitOr):
        stage_nodes.append(syntax_tree.right)
        syntax_tree = syntax_tree.left
    stage_nodes.append(syntax_tree)
    return Pipeline(
        tuple(
            _parse_stage(stage_node, is_first=stage_number == 0)
            for stage_number, stage_node in enumerate(reversed(stage_nodes))
        )
    )


def _parse_stage(node: ast.expr, *, is_first: bool) -> Stage:
    call_node = node if isinstance(node, ast.Call) else ast.Call(node, [], [])
    if not isinstance(call_node.func, ast.Name):
        raise PipelineError(
            f"{_source_text_of_node(node)!r} is not a stage; a stage is name or name(key=value, …)"
        )
    stage_name = call_node.func.id
    function = stages.get(stage_name)
    if function is None or is_retriever(function) != is_first:
        raise PipelineError(_unknown_stage_message(stage_name, is_first=is_first))
    if call_node.args:
        raise PipelineError(
            f"stage {stage_name!r}: write {_source_text_of_node(call_node.args[0])!r} as key=value"
        )
    known_parameters = stage_parameters(function)
    allowed_names = [parameter for parameter in known_parameters if parameter not in STAGE_INPUTS]
    parameters: dict[str, Any] = {}
    for keyword in call_node.keywords:
        if keyword.arg in parameters:
            raise PipelineError(f"stage {stage_name!r}: {keyword.arg} is given twice; keep one")
        if keyword.arg not in allowed_names:
            raise PipelineError(
                f"stage {stage_name!r} has no parameter {keyword.arg!r}; it has "
                f"{', '.join(allowed_names)}"
            )
        literal = _parse_literal(keyword.value, f"stage {stage_name!r}: {keyword.arg}")
        parameters[keyword.arg] = _require_parameter_type(
            literal, function, keyword.arg, f"stage {stage_name!r}: {keyword.arg}"
        )
    if missing_names := [
        parameter
        for parameter in allowed_names
        if parameter not in parameters
        and known_parameters[parameter].default is known_parameters[parameter].empty
    ]:
        raise PipelineError(
            f"stage {stage_name!r} needs {missing_names[0]}: write "
            f"{stage_name}({missing_names[0]}=…)"
        )
    return Stage(stage_name, parameters)


def _unknown_stage_message(name: str, *, is_first: bool) -> str:
    known_names = sorted(
        known_name for known_name, function in stages.items() if is_retriever(function) == is_first
    )
    opening = "a pipeline begins with" if is_first else "after the first come"
    known_text = f"{opening} {', '.join(known_names)}"
    if name in stages:
        rule_text = (
            "retrieves nothing and cannot come first"
            if is_first
            else "retrieves and can only come first"
        )
        return f"stage {name!r} {rule_text}, as in 'hybrid | mmr'; {known_text}"
    near_names = difflib.get_close_matches(name, known_names, 1)
    return (
        "no stage is called "
        f"{name!r}{f' (did you mean {near_names[0]!r}?)' if near_names else ''}; {known_text}"
    )


def _require_parameter_type(
    value: Any, function: Callable[..., Run], parameter_name: str, error_prefix: str
) -> Any:
    """Raise for a value that is not of the parameter's type, such as 1.5 for a count.

    Else give it back.
    """
    hint = parameter_types(function).get(parameter_name, Any)
    try:
        TypeAdapter(hint).validate_python(value, strict=True)
    except ValidationError as error:
        raise PipelineError(
            f"{error_prefix} is {shorten_line(repr(value))}; "
            f"{_describe_expected_value(error, function, parameter_name)}"
        ) from None
    return value


def _describe_expected_value(
    error: ValidationError, function: Callable[..., Run], parameter_name: str
) -> str:
    """Say what a parameter takes: the range or the choices that a value misses, else the type."""
    first_fault = error.errors()[0]
    if first_fault["type"] == "value_error":
        return str(first_fault["ctx"]["error"])
    if first_fault["type"] in _RANGE_FAULTS:
        expectation = first_fault["msg"].replace("Input should be", "expected", 1)
        for pydantic_text, short_text in _BOUND_TEXTS.items():
            expectation = expectation.replace(pydantic_text, short_text)
        return expectation
    from memlab.argument_errors import written_type

    annotation = stage_parameters(function)[parameter_name].annotation
    return f"expected {written_type(annotation, parameter_types(function)[parameter_name])}"


def _parse_literal(node: ast.expr, error_prefix: str) -> Any:
    """Parse a literal, which ``repr`` writes so that it can be parsed again; inf and … are none."""
    try:
        literal = ast.literal_eval(node)
        if ast.literal_eval(repr(literal)) == literal:
            return literal
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        pass
    raise PipelineError(
        f"{error_prefix}={_source_text_of_node(node)} is not a literal; give a number, quoted text "
        "or a list of them"
    )


def _source_text_of_node(node: ast.expr) -> str:
    try:
        return shorten_line(ast.unparse(node))
    except (RecursionError, ValueError):  # too deep, or a number of more digits than Python writes
        return "…"


explain_arguments(globals())
