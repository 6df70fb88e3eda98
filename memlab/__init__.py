"""memlab: a research workbench for the long-term memory of chat assistants.

Public names load when they are first used, so that ``import memlab`` costs next to nothing.
"""

from __future__ import annotations

import importlib
from typing import Any

__version__ = "0.1.0"

_EXPORTS: dict[str, str] = {
    **dict.fromkeys(
        ("DataError", "ExportError", "MemlabError", "ModelError", "PipelineError", "StoreError"),
        "memlab.errors",
    ),
    "Bench": "memlab.retrieve",
    **dict.fromkeys(
        ("Experiment", "answer_questions", "compare", "reopen", "replay", "run"),
        "memlab.experiments",
    ),
    "MemoryStore": "memlab.store",
    **dict.fromkeys(("Pipeline", "pipeline"), "memlab.pipelines"),
    **dict.fromkeys(
        ("clusterer", "clusterers", "encoders", "formats", "measures", "stage", "stages"),
        "memlab.registry",
    ),
    "explore": "memlab.explorer",
    **dict.fromkeys(
        ("Dataset", "Fact", "Qrels", "Question", "Run", "Session", "Turn", "qrels"),
        "memlab.records",
    ),
    "run_from_scores": "memlab.records",
    "sample": "memlab.datasets.sample",
    "load": "memlab.datasets",
    "search": "memlab.lookup",
}
_ROOMS = (
    "cluster",
    "config",
    "conversation",
    "datasets",
    "distributed",
    "embed",
    "errors",
    "evaluate",
    "experiments",
    "explorer",
    "figures",
    "indexing",
    "knowledge",
    "llm",
    "memories",
    "pipelines",
    "records",
    "registry",
    "rerank",
    "retrieve",
    "select",
    "sessions",
    "store",
    "summaries",
    "text",
)

__all__ = ["__version__", *_EXPORTS, *_ROOMS]


def __getattr__(name: str) -> Any:
    if name in _EXPORTS:
        exported = getattr(importlib.import_module(_EXPORTS[name]), name)
    elif name in _ROOMS:
        exported = importlib.import_module(f"memlab.{name}")
    else:
        raise AttributeError(f"module 'memlab' has no attribute {name!r}")
    globals()[name] = exported
    return exported


def __dir__() -> list[str]:
    return sorted(__all__)
