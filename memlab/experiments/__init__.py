"""Experiments: systems × datasets in, rankings with reports out, kept in a store and opened again.

:func:`run` does it for pipelines: it ranks, measures, saves, and goes on where it was stopped, in
several processes where it is asked to (``parallel_scopes``). :func:`compare` puts memories from
outside beside them (``compare_systems``; ``system_rankings``). Both give an :class:`Experiment`:
runs, reports, tables, files. :func:`reopen` and :func:`replay` give one back from the store alone;
``run_replay`` says what a run depends on. :func:`answer_questions` has questions answered from what
systems return (``context_bounds``). :func:`sweep` and :func:`latency` vary parameters and time
pipelines; ``follow_ups`` compares forms of follow-up questions. What is not exported here is
imported from its module.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from memlab.errors import explain_arguments
from memlab.experiments.experiment import Experiment
from memlab.experiments.model_costs import costs
from memlab.experiments.run_pipelines import reopen, run
from memlab.experiments.run_replay import replay

if TYPE_CHECKING:
    from memlab.experiments.answered_questions import answer_questions
    from memlab.experiments.compare_systems import compare
    from memlab.experiments.follow_ups import compare_follow_up_forms, follow_up_forms_table
    from memlab.experiments.parameter_sweeps import latency, sweep

__all__ = [
    "Experiment",
    "answer_questions",
    "compare",
    "compare_follow_up_forms",
    "costs",
    "follow_up_forms_table",
    "latency",
    "reopen",
    "replay",
    "run",
    "sweep",
]
# They bring in conversations and memories from outside, which no run of pipelines needs.
_LAZY = {
    "answer_questions": "answered_questions",
    "compare": "compare_systems",
    "compare_follow_up_forms": "follow_ups",
    "follow_up_forms_table": "follow_ups",
    "latency": "parameter_sweeps",
    "sweep": "parameter_sweeps",
}


def __getattr__(name: str) -> Any:
    """Import what seldom is used when it is first asked for."""
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    exported_names = globals()
    exported_names[name] = getattr(import_module(f"{__name__}.{_LAZY[name]}"), name)
    explain_arguments(exported_names)
    return exported_names[name]


explain_arguments(globals())
