"""Registries of stages, encoders, clusterers, measures and formats: memlab's own and those of
plug-ins.

Each kind has a registry: a mapping of names to functions that a decorator fills. A package brings
its own through entry points: under the registry's group (``memlab.stages``, ``memlab.encoders``,
``memlab.clusterers``, ``memlab.measures``, ``memlab.formats``) it names a module that registers
what stands in it, or one function.
"""

from __future__ import annotations

import hashlib
import importlib
import inspect
import keyword
import linecache
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, MutableMapping
from dataclasses import dataclass, fields
from functools import lru_cache
from importlib.metadata import EntryPoint, entry_points
from typing import Annotated, Any, Literal, TypeVar, overload

from pydantic import AfterValidator, Field

from memlab.errors import MemlabError, PipelineError, explain_arguments, explain_methods

F = TypeVar("F", bound=Callable[..., Any])
STAGE_INPUTS = ("run", "bench", "level")
"""Parameters that a pipeline passes to a stage; the others are written in its text."""


class Registry(MutableMapping[str, Callable[..., Any]]):
    """Functions by name.

    :param kind: what they are, for messages.
    :param group: of the entry points through which packages bring theirs.
    :param check: raises :class:`PipelineError` for a function that does not fit: name, function.
    :param own: modules of memlab that register theirs when they are imported, in the order in which
        theirs are listed. They are imported when a name is first looked for, so that what reads a
        registry imports none of them.
    :param heavy: those of them that import much besides, and come last.

    >>> import memlab
    >>> sorted(memlab.stages)[:3]
    ['best', 'blend', 'bm25']
    """

    def __init__(
        self,
        kind: str,
        group: str,
        check: Callable[[str, Callable[..., Any]], None],
        own: tuple[str, ...] = (),
        heavy: tuple[str, ...] = (),
    ) -> None:
        self.kind = kind
        self.group = group
        self._check = check
        self._own = own
        self._import_order = sorted(own, key=heavy.__contains__)
        self._functions: dict[str, Callable[..., Any]] = {}
        self._own_imported = not own
        self._packages_read = False
        self._this_thread = threading.local()

    @overload
    def register(self, function: F, *, name: str | None = None) -> F: ...
    @overload
    def register(self, function: None = None, *, name: str | None = None) -> Callable[[F], F]: ...
    def register(
        self, function: F | None = None, *, name: str | None = None
    ) -> F | Callable[[F], F]:
        """Register a function under its own name or another.

        A decorator, which returns the function unchanged.

        A function that is defined again, as a notebook cell does, takes the place of what it was.

        :raises PipelineError: when the function does not fit, its source cannot be read, or the
            name is taken.
        """
        if function is None:
            return lambda later: self.register(later, name=name)
        called: str = getattr(function, "__name__", "") if name is None else name
        self._import_own_modules_before_foreign(function)
        before = self._functions.get(called)
        if before is not None and _module_and_qualified_name(before) != _module_and_qualified_name(
            function
        ):
            taken = ".".join(_module_and_qualified_name(before))
            raise PipelineError(
                f"{self.kind} {called!r} is {taken} already; give yours another name: name='…'"
            )
        self[called] = function
        return function

    def digest(self, name: str) -> str | None:
        """Give the digest of a plug-in's file.

        ``None`` for a function of memlab, which its version identifies.
        """
        function = self[name]
        return None if is_own_code(function) else plugin_digest(function)

    def __setitem__(self, name: str, function: Callable[..., Any]) -> None:
        if not inspect.isfunction(function) or function.__name__ == "<lambda>":
            kind_text = "a lambda" if inspect.isfunction(function) else type(function).__name__
            raise PipelineError(
                f"{self.kind} {name!r} is {kind_text}; write it as a function: def "
                f"{name or 'mine'}(…)"
            )
        if not name.isidentifier() or keyword.iskeyword(name):
            raise PipelineError(f"{name!r} cannot name a {self.kind}; choose letters, digits and _")
        self._check(name, function)
        if not is_own_code(function):
            plugin_digest(function)  # of what stands there now, and raises where nothing does
        self._import_own_modules_before_foreign(function)
        self._functions[name] = function

    def __getitem__(self, name: str) -> Callable[..., Any]:
        if name not in self._functions:
            self._import_own_modules(until_registered=name)
        if name not in self._functions:
            self._load_entry_points_once()
        return self._functions[name]

    def __delitem__(self, name: str) -> None:
        self._import_own_modules()
        del self._functions[name]

    def __iter__(self) -> Iterator[str]:
        self._load_entry_points_once()
        return iter(sorted(self._functions, key=self._place_of_functions_module_among_own))

    def __len__(self) -> int:
        self._load_entry_points_once()
        return len(self._functions)

    def __repr__(self) -> str:
        return f"<{self.kind}s: {', '.join(self)}>"

    def _place_of_functions_module_among_own(self, registered_name: str) -> int:
        """Give the place of a function's module among memlab's own; those of others come last.

        So the order of a listing does not depend on what was imported first.
        """
        module = self._functions[registered_name].__module__
        module_places = [
            module_place
            for module_place, own_module in enumerate(self._own)
            if module == own_module or module.startswith(f"{own_module}.")
        ]
        return max(module_places, default=len(self._own))

    def _import_own_modules_before_foreign(self, function: Callable[..., Any]) -> None:
        """Import memlab's own modules before others' code takes a name, which may be theirs."""
        if not inspect.isfunction(function) or not is_own_code(function):
            self._import_own_modules()

    def _import_own_modules(self, *, until_registered: str = "") -> None:
        """Import memlab's own modules; one that asks while it is imported sees what came before it.

        :param until_registered: a name; the modules after the one that registers it are not
            imported.

        Nothing is locked: two threads that ask at once both import, and one waits for the other at
        the lock of the module, which a lock of the registry could only bring into deadlock.
        """
        if self._own_imported or getattr(self._this_thread, "imports_own", False):
            return
        self._this_thread.imports_own = True
        try:
            for module in self._import_order:
                importlib.import_module(module)
                if until_registered in self._functions:
                    return
            self._own_imported = True
        finally:
            self._this_thread.imports_own = False

    def _load_entry_points_once(self) -> None:
        """Import memlab's own modules and load the entry points of the group, once."""
        self._import_own_modules()
        if (
            not self._own_imported
            or self._packages_read
            or getattr(self._this_thread, "reads_packages", False)
        ):
            return
        self._this_thread.reads_packages = True
        try:
            for entry in entry_points(group=self.group):
                self._load_and_register_entry_point(entry)
        finally:
            self._packages_read = True
            self._this_thread.reads_packages = False

    def _load_and_register_entry_point(self, entry_point: EntryPoint) -> None:
        try:
            brought = entry_point.load()
            if callable(brought) and brought not in list(self._functions.values()):
                self.register(brought, name=entry_point.name)
        except MemlabError:
            raise
        except Exception as error:  # whatever the code of a package raises
            package = entry_point.dist.name if entry_point.dist else entry_point.value
            raise PipelineError(
                f"the {self.kind} {entry_point.name!r} of package {package!r} cannot be loaded "
                f"({type(error).__name__}: {error}); mend the package or remove it"
            ) from error


@lru_cache(maxsize=1024)
def plugin_digest(function: Callable[..., Any]) -> str:
    """Give a digest of the file, or of the notebook cell, in which a plug-in is defined.

    The digest covers the whole text of the file or cell, and where in it the function stands. It
    covers no other file or cell, and no value that is set elsewhere. It is made once for each
    function, when it is registered: a file that is edited later does not change what is running.

    :raises PipelineError: when there is no source to read, as at a bare prompt.

    >>> from memlab.registry import plugin_digest
    >>> len(plugin_digest(plugin_digest.__wrapped__))
    16
    """
    code_object = function.__code__
    linecache.checkcache(code_object.co_filename)
    source_lines = linecache.getlines(code_object.co_filename, function.__globals__)
    if not source_lines:
        raise PipelineError(
            f"the source of {code_object.co_name!r} cannot be read, and by it memlab tells whether "
            "a saved run is still its own: define it in a file or in a notebook cell"
        )
    code_place = f"{code_object.co_qualname}, line {code_object.co_firstlineno}"
    return hashlib.sha256("\x1e".join([code_place, *source_lines]).encode()).hexdigest()[:16]


def is_own_code(function: Callable[..., Any]) -> bool:
    """Say whether a function is defined in memlab."""
    module = str(function.__globals__.get("__name__", ""))
    return module.partition(".")[0] == "memlab"


def _module_and_qualified_name(function: Callable[..., Any]) -> tuple[str, str]:
    return function.__module__, getattr(function, "__qualname__", "")


@lru_cache(maxsize=1024)
def stage_parameters(function: Callable[..., Any]) -> Mapping[str, inspect.Parameter]:
    """Give the parameters of a stage."""
    return inspect.signature(function).parameters


@lru_cache(maxsize=1024)
def parameter_types(function: Callable[..., Any]) -> Mapping[str, Any]:
    """Give the types of a stage's parameters.

    An annotation that cannot be evaluated allows any value.
    """
    type_by_name: dict[str, Any] = {}
    for name, parameter in stage_parameters(function).items():
        annotation = Any if parameter.annotation is parameter.empty else parameter.annotation
        try:
            type_by_name[name] = (
                eval(annotation, function.__globals__)
                if isinstance(annotation, str)
                else annotation
            )
        except Exception:  # whatever stands in an annotation
            type_by_name[name] = Any
    return type_by_name


Count = Annotated[int, Field(ge=1)]
"""Type of a stage's parameter that counts, such as ``k``; a pipeline's text is checked by it."""
ClusterSize = Annotated[int, Field(ge=2)]
"""The same of the members of a cluster."""
Seed = Annotated[int, Field(ge=0, lt=2**32)]
"""The same of a seed."""
Share = Annotated[float, Field(ge=0, le=1)]
"""The same of a share."""
Weight = Annotated[float, Field(ge=0)]
"""The same of a weight."""

ModelFile = Annotated[str, "a file that memlab train wrote"]
"""The same of a model's file; "" for a model that comes with memlab."""


def _require_known_clusterer(name: str) -> str:
    if name not in clusterers:
        raise ValueError(f"choose from {', '.join(clusterers)}")
    return name


Clustering = Annotated[str, AfterValidator(_require_known_clusterer)]
"""The same of the name of a clusterer."""


def is_retriever(function: Callable[..., Any]) -> bool:
    """Say whether a stage is a retriever, which takes a bench.

    Any other stage takes a run and a bench.
    """
    return next(iter(stage_parameters(function))) == "bench"


def _check_stage_signature(name: str, function: Callable[..., Any]) -> None:
    parameters = inspect.signature(function).parameters
    kind_by_name = {
        parameter_name: parameter.kind for parameter_name, parameter in parameters.items()
    }
    input_names = list(parameters)[: 1 if next(iter(parameters), "") == "bench" else 2]
    if input_names not in (["bench"], ["run", "bench"]):
        raise PipelineError(
            f"stage {name!r} takes ({', '.join(parameters)}); a retriever takes bench first, any "
            "other run and bench: "
            f"def {name}(run, bench, *, k=10)"
        )
    loose_names = [
        parameter_name
        for parameter_name, parameter_kind in kind_by_name.items()
        if parameter_name not in input_names
        and parameter_kind is not inspect.Parameter.KEYWORD_ONLY
    ]
    if loose_names:
        raise PipelineError(
            f"stage {name!r}: {loose_names[0]} is written by name: put * before it, as in def "
            f"{name}(…, *, k=10)"
        )


def _make_positional_arguments_check(
    registry_kind: str, *allowed_names: tuple[str, ...]
) -> Callable[[str, Callable[..., Any]], None]:
    def check_positional_arguments(name: str, function: Callable[..., Any]) -> None:
        positional = tuple(
            parameter_name
            for parameter_name, parameter in inspect.signature(function).parameters.items()
            if parameter.kind is not inspect.Parameter.KEYWORD_ONLY
        )
        if positional not in allowed_names:
            written_forms = " or ".join(
                f"def {name}({', '.join(form_names)})" for form_names in allowed_names
            )
            raise PipelineError(
                f"{registry_kind} {name!r} takes ({', '.join(positional)}); write it as "
                f"{written_forms}"
            )

    return check_positional_arguments


explain_methods(Registry)
stages = Registry(
    "stage",
    "memlab.stages",
    _check_stage_signature,
    own=(
        "memlab.retrieve",
        "memlab.select",
        "memlab.summaries",
        "memlab.rerank",
        "memlab.rerank.rank_blending",
    ),
    heavy=("memlab.summaries",),
)
encoders = Registry(
    "encoder",
    "memlab.encoders",
    _make_positional_arguments_check("encoder", ("texts",), ("argument",)),
    own=("memlab.embed",),
)
clusterers = Registry(
    "clusterer",
    "memlab.clusterers",
    _make_positional_arguments_check("clusterer", ("vectors",)),
    own=("memlab.cluster.clusterers",),
)
measures = Registry(
    "measure",
    "memlab.measures",
    _make_positional_arguments_check("measure", ("judged", "k")),
    own=("memlab.evaluate.ranking_measures",),
)


@dataclass(frozen=True, slots=True)
class Format:
    """What a format is, and how its files are recognised.

    One without keys, detect and files is read by its name only.

    The functions take what :class:`memlab.datasets.record_sources.Source` knows of the beginning of
    a file: ``head`` (text), ``keys`` (dotted paths of JSON keys), ``columns`` (of a table),
    ``name``.

    :param kind: ``log``; ``benchmark``, whose messages and questions come by place; or ``export``
        of a chat tool: of the files of a folder or a ZIP archive, its reader gets those that are
        recognised, as ``source.members``.
    :param keys: the first record of a file has one of these: keys of JSON, or columns of a table.
    :param detect: says whether a file is of the format, where that takes more than its keys.
    :param guess: says whether a file may be of the format; asked where no format recognises it.
    :param files: patterns of its files in a folder; the first that any file matches is taken.
    :param by_name: whether a file of such a name is enough, whatever is in it.
    :param refuse: names a file of another tool that looks like one of the format, or that no format
        reads, and says what to do; ``None`` for any other file.
    :param sent: gives those of the files of a folder or an archive that people sent in a chat.
    :param beside: names of files that the reader looks up by itself, and that hold no messages.
    :param pool: makes larger haystacks of a dataset: ``load(pool=)``.
    """

    kind: Literal["log", "benchmark", "export"] = "log"
    keys: Collection[str] = ()
    detect: Callable[[Any], bool] | None = None
    guess: Callable[[Any], bool] | None = None
    files: tuple[str, ...] = ()
    by_name: bool = False
    refuse: Callable[[Any], str | None] | None = None
    sent: Callable[[list[Any]], list[Any]] | None = None
    beside: tuple[str, ...] = ()
    pool: Callable[..., Iterator[Any]] | None = None


_PLAIN = Format()


class FormatRegistry(Registry):
    """Functions that read files, each with the :class:`Format` that it was registered with."""

    def __init__(self, *about: Any, **more: Any) -> None:
        super().__init__(*about, **more)
        self._described: dict[str, Format] = {}

    def register(
        self, function: Any = None, *, name: str | None = None, **format_fields: Any
    ) -> Any:
        """Register a function that reads a format; a decorator, as :meth:`Registry.register` is.

        :param format_fields: how its files are recognised: the fields of :class:`Format`.
        :raises PipelineError: as there, for a field that there is not, and for an export that is
            read from its path.

        >>> import memlab
        >>> @memlab.formats.register(name="diary", keys={"diary_day"})
        ... def read_diary(source):
        ...     for _, day in source.values():
        ...         yield {"scope": "me", "sender": "me", "text": day["text"]}
        >>> del memlab.formats["diary"]
        """
        if function is None:
            return lambda later: self.register(later, name=name, **format_fields)
        registered_name = getattr(function, "__name__", "") if name is None else name
        try:
            format_description = Format(**format_fields)
        except TypeError as error:
            known_fields = ", ".join(field.name for field in fields(Format))
            raise PipelineError(
                f"format {registered_name!r}: {error}; its fields are {known_fields}"
            ) from error
        is_export_reader = inspect.isfunction(function) and format_description.kind == "export"
        if is_export_reader and "path" in stage_parameters(function):
            raise PipelineError(
                f"format {registered_name!r} is an export, which may lie in an archive: write it "
                f"as def {registered_name}(source), over source.members"
            )
        super().register(function, name=name)
        self._described[registered_name] = format_description
        return function

    def describe(self, name: str) -> Format:
        """Give how the files of a format are recognised; of a name that is none, that of any."""
        return self._described.get(name, _PLAIN) if name in self else _PLAIN


explain_arguments(globals())
formats = FormatRegistry(
    "format",
    "memlab.formats",
    _make_positional_arguments_check("format", ("path",), ("source",)),
    own=(
        "memlab.datasets.chatlog",
        "memlab.datasets.importers",
        "memlab.datasets.benchmarks",
    ),
)
stage = stages.register
clusterer = clusterers.register
