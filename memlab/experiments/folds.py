"""Measuring learned stages honestly: each conversation is ranked by a model that did not learn from it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from memlab.experiments.replaying import code_version
from memlab.files import open_atomically
from memlab.pipelines import Pipeline, Stage
from memlab.records import Dataset
from memlab.rerank import cross_validate, training_lists
from memlab.retrieve import Bench


def has_untrained_stage(stages: Sequence[Pipeline]) -> bool:
    """Say whether a pipeline has a learned stage that names no model."""
    return any(_lacks_model(stage) for pipeline in stages for stage in pipeline.stages)


def with_models(stages: Sequence[Pipeline], directory: str | Path) -> list[Pipeline]:
    """Give each learned stage without a model those of a folder.

    >>> import memlab
    >>> from memlab.experiments.folds import with_models
    >>> [str(p) for p in with_models([memlab.pipeline("hybrid | learned")], "folds")]
    ["hybrid | learned(model='folds')"]
    """

    def of(stage: Stage) -> Stage:
        model = Path(directory).as_posix()
        return (
            Stage(stage.name, {"model": model, **stage.parameters} | {"model": model}) if _lacks_model(stage) else stage
        )

    return [Pipeline(tuple(of(stage) for stage in pipeline.stages)) for pipeline in stages]


def train_folds(bench: Bench, dataset: Dataset, directory: str | Path, *, seed: int = 0, engine: str = "local") -> Path:
    """Cross-validate by conversation on a dataset, or find that this was done with the same data, encoder and code.

    :param directory: of all datasets; this one's models stand in a folder named by its fingerprint, which
        :func:`memlab.rerank.learned` looks for.
    :raises DataError: when the dataset has one conversation with evidence only.
    """
    place = Path(directory) / dataset.fingerprint()
    about = {
        **{name: bench.provenance.get(name) for name in ("encoder", "header")},
        "code": code_version(),
        "seed": seed,
    }
    note = place / "about.json"
    with suppress(OSError, ValueError):
        if json.loads(note.read_text()) == about:
            return place
    note.unlink(missing_ok=True)
    cross_validate(training_lists(bench, dataset), place, seed=seed, engine=engine)
    with open_atomically(note) as file:  # last: what has it is whole
        file.write(json.dumps(about).encode())
    return place


def _lacks_model(stage: Stage) -> bool:
    return stage.name == "learned" and not stage.parameters.get("model")
