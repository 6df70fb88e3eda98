"""Evaluations that a store gives back: as they were, and only where nothing that they depend on changed."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from talk import excerpt, write

import memlab
from memlab.datasets import chatlog
from memlab.experiments import kept_evaluations
from memlab.experiments.experiment import Experiment
from memlab.store import MemoryStore

Evaluate = Callable[..., Any]


@pytest.fixture
def evaluate(tmp_path: Path, memlab_cli: Any) -> Evaluate:
    """Evaluate a small file with a store; more arguments may follow."""
    write(tmp_path / "talk.jsonl", excerpt(60, scopes=("nadia",)))

    def call(*more: object, **variables: str) -> Any:
        command = ("evaluate", "talk.jsonl", "--pipeline", "bm25", "--pipeline", "dense")
        options = ("--encoder", "hashing:64", "--store", "store", *more)
        done = memlab_cli(*command, *options, cwd=tmp_path, **variables)
        assert done.code == 0, done.err
        return done

    return call


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Note each call that runs pipelines or reads runs back."""
    calls: list[str] = []
    run = memlab.run

    def noting_run(*arguments: Any, **options: Any) -> Experiment:
        calls.append("run")
        return run(*arguments, **options)

    monkeypatch.setattr(memlab, "run", noting_run)
    return calls


def written(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


@pytest.mark.parametrize("more", [(), ("--out", "out")])
def test_the_same_command_gives_the_same_without_reading(
    evaluate: Evaluate,
    measured: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    more: tuple[str, ...],
) -> None:
    folder = tmp_path / (more[-1] if more else "results/talk")
    first = evaluate(*more)
    files = written(folder)
    for path in folder.iterdir():
        path.unlink()
    monkeypatch.setattr(chatlog, "make_dataset_batches", None)  # what would parse the file
    versions = MemoryStore.open(tmp_path / "store", create=False).versions()
    second = evaluate(*more)
    assert measured == ["run"]
    assert written(folder) == files
    assert "report.tex" in files
    assert ("conclusions.md" in files) is not bool(more)
    assert "0 of 4 runs were there before" in first.out
    assert second.out == first.out.replace("0 of 4 runs", "4 of 4 runs")
    assert second.err == ""
    assert MemoryStore.open(tmp_path / "store", create=False).versions() == versions


def test_what_is_given_back_is_what_saved_runs_give(
    evaluate: Evaluate, tmp_path: Path, measured: list[str]
) -> None:
    evaluate("--out", "first")
    given_back = evaluate("--out", "given")
    kept_folder = tmp_path / "store" / kept_evaluations.FOLDER
    for archive in kept_folder.iterdir():
        archive.unlink()
    read_back = evaluate("--out", "given")
    assert len(measured) == 2
    assert (given_back.out, given_back.err) == (read_back.out, read_back.err)
    assert written(tmp_path / "first") == written(tmp_path / "given")


def _change_file(folder: Path) -> None:
    lines = (folder / "talk.jsonl").read_text().splitlines()
    changed = [json.loads(line) for line in lines]
    for record in changed:
        if "question" in record:
            record["question"] += " Please."
    (folder / "talk.jsonl").write_text("\n".join(map(json.dumps, changed)))


def _save_another_comparison(folder: Path) -> None:
    memlab.run("bm25", folder / "talk.jsonl", encoder=None, store=folder / "store", name="talk")


def _remove_runs(folder: Path) -> None:
    store = MemoryStore.open(folder / "store", create=False)
    store.runs.remove(store.runs.listing()["run_id"])


def _damage_archives(folder: Path) -> None:
    for archive in (folder / "store" / kept_evaluations.FOLDER).iterdir():
        content = archive.read_bytes()
        archive.write_bytes(content[: len(content) // 2])


@pytest.mark.parametrize(
    "change", [_change_file, _save_another_comparison, _remove_runs, _damage_archives]
)
def test_what_changed_is_seen(
    evaluate: Evaluate, measured: list[str], tmp_path: Path, change: Callable[[Path], None]
) -> None:
    evaluate("--out", "out")
    change(tmp_path)
    n_before = len(measured)
    evaluate("--out", "out")
    assert len(measured) == n_before + 1
    evaluate("--out", "out")
    assert len(measured) == n_before + 1  # and from there on it is kept again


def test_other_options_and_settings_are_seen(
    evaluate: Evaluate, measured: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    evaluate()
    questions = tmp_path / "more.jsonl"
    for option in (
        ("--seed", "1"),
        ("--unit", "question"),
        ("--name", "again"),
        ("--scope", "nadia"),
        ("--encoder", "hashing:32"),
        ("--pipeline", "hybrid"),
    ):
        n_before = len(measured)
        evaluate(*option)
        assert len(measured) == n_before + 1, option
    asked = {"scope": "nadia", "question": "Where?", "evidence_sessions": []}
    n_before = len(measured)
    for text in ("Where?", "When?"):
        questions.write_text(json.dumps({**asked, "question": text, "abstention": True}) + "\n")
        evaluate("--questions", questions)
    assert len(measured) == n_before + 2
    (tmp_path / "memlab.toml").write_text("gap_minutes = 31\n")
    evaluate()
    assert len(measured) == n_before + 3
    monkeypatch.setattr(kept_evaluations, "package_digest", lambda: "of another code")
    evaluate()
    assert len(measured) == n_before + 4


def test_an_interrupted_call_keeps_nothing(
    evaluate: Evaluate, measured: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for owner, name in ((kept_evaluations.zipfile.ZipFile, "writestr"), (Experiment, "export")):
        with monkeypatch.context() as patch:
            patch.setattr(owner, name, _interrupt)
            with pytest.raises(AssertionError, match="130 == 0"):
                evaluate()
    evaluate()
    assert measured == ["run"] * 3


def _interrupt(*_: object, **__: object) -> None:
    raise KeyboardInterrupt


def test_what_another_process_writes_meanwhile_is_seen(
    evaluate: Evaluate, measured: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    export = Experiment.export

    def export_while_runs_are_removed(*arguments: Any, **options: Any) -> Path:
        _remove_runs(tmp_path)
        return export(*arguments, **options)

    with monkeypatch.context() as patch:
        patch.setattr(Experiment, "export", export_while_runs_are_removed)
        evaluate()
    again = evaluate()
    assert "0 of 4 runs were there before" in again.out
    assert measured == ["run"] * 2


def test_what_warns_is_said_each_time(
    evaluate: Evaluate,
    measured: list[str],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    describe = memlab.Dataset.describe

    def warn_and_describe(data: memlab.Dataset) -> str:
        logging.getLogger("memlab.datasets").warning("an odd file")
        return describe(data)

    monkeypatch.setattr(memlab.Dataset, "describe", warn_and_describe)
    evaluate()
    caplog.clear()
    evaluate()
    assert "an odd file" in caplog.messages
    assert len(measured) == 2


def test_plugins_and_quarantine_are_not_kept(
    evaluate: Evaluate, measured: list[str], tmp_path: Path
) -> None:
    (tmp_path / "own_stage_of_kept.py").write_text("")
    for more in (("--on-error", "quarantine"), ()):
        variables = {} if more else {"MEMLAB_PLUGINS": '["own_stage_of_kept"]'}
        n_before = len(measured)
        evaluate(*more, **variables)
        evaluate(*more, **variables)
        assert len(measured) == n_before + 2
    assert not (tmp_path / "store" / kept_evaluations.FOLDER).exists()


def test_the_oldest_go_beyond_the_bound(
    evaluate: Evaluate, measured: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    evaluate("--seed", "1")
    (first,) = (tmp_path / "store" / kept_evaluations.FOLDER).iterdir()
    monkeypatch.setattr(kept_evaluations, "MAX_BYTES", int(1.5 * first.stat().st_size))
    evaluate("--seed", "2")
    (second,) = (tmp_path / "store" / kept_evaluations.FOLDER).iterdir()
    assert second != first
    monkeypatch.setattr(kept_evaluations, "MAX_ROWS", 1)
    evaluate("--seed", "3")
    assert [*second.parent.iterdir()] == [second]
