"""Experiments: systems × datasets in, rankings with reports out, kept in a store and opened again.

:func:`run` does it for pipelines: it trains where a stage learns (``folds``), ranks (``benches``), measures, saves, and
goes on where it was stopped. :func:`compare` puts memories from outside beside them (``systems``; ``returns``,
``outcomes``). Both give an :class:`Experiment`: runs, reports, tables, failures, files. :func:`reopen` and
:func:`replay` give one back from the store alone; ``identity`` says what a run depends on. :func:`answer_questions` has
questions answered from what systems return (``contexts``). :func:`sweep` and :func:`latency` vary one parameter and
time pipelines; ``follow_ups`` compares forms of follow-up questions.
"""

from memlab.experiments.answering import Answers, answer_questions
from memlab.experiments.contexts import BOUNDS, SystemContexts, prompt_examples, system_contexts
from memlab.experiments.costs import costs, estimate
from memlab.experiments.experiment import Experiment
from memlab.experiments.folds import train_folds, untrained, with_models
from memlab.experiments.follow_ups import compare_forms, forms_table
from memlab.experiments.identity import code
from memlab.experiments.replaying import replay, seen_dataset
from memlab.experiments.returns import Asked
from memlab.experiments.running import distinct, measurable, reopen, run
from memlab.experiments.sweeps import latency, sweep
from memlab.experiments.systems import Comparison, compare, explain_memory

__all__ = [
    "BOUNDS", "Answers", "Asked", "Comparison", "Experiment", "SystemContexts", "answer_questions", "code", "compare",
    "compare_forms", "costs", "distinct", "estimate", "explain_memory", "forms_table", "latency", "measurable",
    "prompt_examples", "reopen", "replay", "run", "seen_dataset", "sweep", "system_contexts", "train_folds",
    "untrained", "with_models",
]  # fmt: skip
