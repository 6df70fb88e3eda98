"""Experiments: pipelines × datasets in, rankings with reports out, kept in a store and opened again.

:func:`run` does it all (``running``): it trains where a stage learns (``folds``), ranks, measures, saves, and goes on
where it was stopped. What comes out is an :class:`Experiment` (``experiment``): runs, reports, tables, files.
:func:`reopen` and :func:`replay` (``replaying``) give it back from the store alone; ``identity`` says what a run
depends on. :func:`compare_systems` (``systems``) puts memories from outside beside pipelines: what they return
(``returns``), what that is worth (``outcomes``), and a page of it (``systems_page``); :func:`answer_questions`
(``answering``) has questions answered from what they return (``contexts``). :func:`sweep` and :func:`latency`
(``sweeps``) vary one parameter and time pipelines; ``follow_ups`` compares forms
of follow-up questions; ``learning`` looks into the learned reranker.
"""

from memlab.experiments.answering import Answers, answer_questions
from memlab.experiments.contexts import BOUNDS, SystemContexts, system_contexts
from memlab.experiments.experiment import Experiment
from memlab.experiments.folds import train_folds, untrained, with_models
from memlab.experiments.follow_ups import compare_forms, forms_table
from memlab.experiments.identity import code
from memlab.experiments.replaying import replay, seen_dataset
from memlab.experiments.returns import with_rankings
from memlab.experiments.running import distinct, measurable, reopen, run, run_pipelines
from memlab.experiments.sweeps import latency, sweep
from memlab.experiments.systems import Systems, compare_systems, explain_memory

run_grid = run  # the name that it has where several datasets are meant

__all__ = [
    "BOUNDS",
    "Answers",
    "Experiment",
    "SystemContexts",
    "Systems",
    "answer_questions",
    "code",
    "compare_forms",
    "compare_systems",
    "distinct",
    "explain_memory",
    "forms_table",
    "latency",
    "measurable",
    "reopen",
    "replay",
    "run",
    "run_grid",
    "run_pipelines",
    "seen_dataset",
    "sweep",
    "system_contexts",
    "train_folds",
    "untrained",
    "with_models",
    "with_rankings",
]  # fmt: skip
