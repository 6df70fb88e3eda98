"""The explorer in a notebook: what a person picks there comes back as a question, a run and a frame."""

from __future__ import annotations

import json
import logging
import os
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache, lru_cache, partial
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import polars as pl

from memlab.cluster import cluster_labels
from memlab.errors import DataError, MemlabError, require_extra
from memlab.explorer.drawing import COLOURS, draw_view, scene_payload
from memlab.explorer.scene import (
    Scene,
    answer_payload,
    build_scene,
    cluster_names,
    single_question_bench,
    summaries_above,
)
from memlab.records import Run, decode_id_part, resolve_scope_name
from memlab.retrieve import DEFAULT, Bench
from memlab.text.analysis import snippet

_HERE = Path(__file__).parent
_log = logging.getLogger("memlab")


def explore(
    bench: Bench,
    run: Run | str | Sequence[Run | str] = DEFAULT,
    *,
    scope: str | None = None,
    k: int = 10,
    places: pl.DataFrame | None = None,
    golden: str | os.PathLike[str] = "golden.jsonl",
    clustering: str = "umap_hdbscan",
    seed: int = 0,
) -> Any:
    """Show the turns of a scope on an interactive map: ask questions, see retrieved and missed evidence, select turns.

    In JupyterLab, Notebook, VS Code and marimo (extra ``lab``); elsewhere, and in a notebook that
    is run without a screen, a picture. The widget's own:

    - ``question`` (text or ``query_id``), ``systems``, ``scope``, ``k``, ``colour`` (cluster,
      session, speaker, time or score), ``until`` (a time after which turns are hidden, or
      ``None``): what the map shows, read and set;
    - ``picture()``: what the map shows as a figure;
    - ``selection``: the turns of the last lasso or click as a frame (``turn_id``, ``session_id``,
      ``speaker``, ``timestamp``, ``text``, ``x``, ``y``, ``label``), empty where nothing is picked;
      ``select(turn_ids)`` sets it;
    - ``summaries``: the weeks, months and clusters of the store that stand on the selection, as a
      frame (``kind``, ``start``, ``text``, ``topics``, ``picked``: how many of the turns);
    - ``answer``: what :func:`memlab.explorer.answer_payload` gives for the question;
    - ``cluster_again()``: new clusters within the selection;
    - ``save(question, answer)``: appends a question with the selection as its evidence to
      ``golden``.

    :param run: one or two pipelines or runs to look at.
    :param scope: which conversation first; the one with most questions where not given.
    :param places: a map made before, see :func:`memlab.explorer.build_scene`.
    :param golden: a chat log's questions, one JSON object a line, see ``docs/conversations.md``.
    :param clustering: a name of :data:`memlab.clusterers`.
    :raises DataError: when the bench has no vectors or no such scope, or a pipeline cannot rank.
    :raises ModelError: where anywidget is not installed.
    """
    if not isinstance(bench, Bench):
        raise DataError(
            f"the map shows a bench, not a {type(bench).__name__}; make one: memlab.Bench.of(data)"
        )
    lay = partial(build_scene, bench, places=places, clustering=clustering, seed=seed)
    asked = bench.queries["scope"] if bench.queries.height else bench.turns["scope"]
    busiest = asked.value_counts(sort=True, name="n").sort("n", "scope", descending=[True, False])[
        "scope"
    ][0]
    first = lay(
        resolve_scope_name(scope, list(bench.documents("turn").spans)) if scope else str(busiest)
    )
    systems = [run] if isinstance(run, Run | str) else list(run)
    explorer = _widget_class()(bench, systems, first, lay, k, Path(golden))
    if explorer.problem:
        raise DataError(explorer.problem)
    return explorer


@cache
def _widget_class() -> Any:
    with require_extra("lab", "the explorer"):
        import anywidget
        import traitlets

    class Explorer(anywidget.AnyWidget):
        """A map of turns that answers questions; see :func:`memlab.explore`."""

        _esm = (_HERE / "regl-scatterplot.min.js").read_text("utf-8") + (
            _HERE / "explorer.js"
        ).read_text("utf-8")
        _css = (_HERE / "explorer.css").read_text("utf-8")
        scope = traitlets.Unicode().tag(sync=True)
        question = traitlets.Unicode().tag(sync=True)
        systems = traitlets.List(traitlets.Unicode()).tag(sync=True)
        k = traitlets.Int(10, min=1).tag(sync=True)
        problem = traitlets.Unicode().tag(sync=True)
        colour = traitlets.Enum(COLOURS, "cluster").tag(sync=True)
        until: Any = traitlets.Instance(datetime, allow_none=True).tag(
            sync=True,
            to_json=lambda time, _: time and time.timestamp() * 1000,
            from_json=lambda ms, _: None if ms is None else datetime.fromtimestamp(ms / 1000, UTC),
        )
        _scene = traitlets.Dict().tag(sync=True)
        _view = traitlets.Dict().tag(sync=True)
        _picked: Any = traitlets.List().tag(sync=True)

        def __init__(
            self,
            bench: Bench,
            systems: list[Run | str],
            scene: Scene,
            lay: partial[Scene],
            k: int,
            golden: Path,
        ) -> None:
            self._bench, self._lay_out, self._golden = bench, lay, golden
            self._runs = {run.name: run for run in systems if isinstance(run, Run)}
            self._scenes = {scene.scope: scene}
            gold = bench.evidence("turn")
            self._evidence = (
                {}
                if gold is None
                else dict(gold.frame.group_by("query_id").agg("doc_id").iter_rows())
            )
            self._bench_of_question = lru_cache(1)(
                partial(single_question_bench, bench)
            )  # remembers what it ranked
            names = [system.name if isinstance(system, Run) else system for system in systems]
            super().__init__(scope=scene.scope, systems=names, k=k)
            self.on_msg(self._asked)
            self.observe(self._moved, ["question", "systems", "k"])
            self.observe(self._went, "scope")
            self._open()
            # A question of the bench is embedded already: without this the first typed one would
            # wait for the model.
            Thread(target=_warm_encoder, args=(bench,), daemon=True).start()

        @property
        def scene(self) -> Scene:
            """The map as it is."""
            return self._scenes[self.scope]

        @property
        def answer(self) -> dict[str, Any]:
            """What the question draws."""
            return dict(self._view)

        @property
        def _rows(self) -> np.ndarray:
            return np.asarray(self._picked, np.int32)

        @property
        def selection(self) -> pl.DataFrame:
            """The turns that were picked last."""
            return self.scene.turns[self._rows]

        @property
        def summaries(self) -> pl.DataFrame:
            """The stored summaries that stand on the picked turns, of the fewest turns first."""
            return summaries_above(self._bench, self.scope, self.selection["turn_id"].to_list())

        def select(self, turn_ids: Sequence[str]) -> None:
            """Pick turns, as a lasso would."""
            rows = self.scene.turns.with_row_index("i").filter(
                pl.col("turn_id").is_in(list(turn_ids))
            )["i"]
            self._picked = rows.to_list()

        def cluster_again(self) -> pl.DataFrame:
            """Cluster the picked turns alone (everything where nothing is picked); the others lose their colour."""
            scene = self.scene
            rows = self._rows if self._picked else np.arange(scene.turns.height)
            labels = np.full(scene.turns.height, -1)
            how = self._lay_out.keywords
            labels[rows] = cluster_labels(scene.compared[rows], how["clustering"], seed=how["seed"])
            turns = scene.turns.with_columns(label=pl.Series(labels))
            names = cluster_names(turns, self._bench.language)
            self._scenes[scene.scope] = replace(scene, turns=turns, names=names)
            self._show_scene()
            return self.selection

        def save(self, question: str, answer: str = "") -> dict[str, Any]:
            """Append a question whose evidence is the selection to the golden set; gives the record.

            :raises DataError: when nothing is picked or asked.
            """
            if not question.strip() or not self._picked:
                raise DataError(
                    "a question needs words, and its evidence: pick the turns that answer it"
                )
            turns = self.selection.sort("timestamp", nulls_last=True)
            before = self._golden.read_text(encoding="utf-8") if self._golden.exists() else ""
            numbers = [int(number) for number in re.findall(r'"query_id": "golden-(\d+)"', before)]
            record = {
                "question": question.strip(), "scope": decode_id_part(self.scope),
                "query_id": f"golden-{max(numbers, default=0) + 1}",
                **({"answer": answer.strip()} if answer.strip() else {}), "evidence": turns["turn_id"].to_list(),
            }  # fmt: skip
            with self._golden.open("a", encoding="utf-8") as file:
                whole = "\n" if before and not before.endswith("\n") else ""
                file.write(whole + json.dumps(record, ensure_ascii=False) + "\n")
            return record

        def _went(self, change: Mapping[str, Any]) -> None:
            if (
                named := resolve_scope_name(self.scope, list(self._bench.documents("turn").spans))
            ) != self.scope:
                self.scope = named
                return
            if self.scope not in self._scenes:
                try:
                    self._scenes[self.scope] = self._lay_out(self.scope)
                except MemlabError as error:
                    _log.warning("%s", error)
                    self.problem, self.scope = str(error), change["old"]
                    return
            self._open()

        def _open(self) -> None:
            """Show the scope, and its question with most evidence."""
            self._picked, self.until = [], None
            self._show_scene()
            asked = self._bench.queries.filter(scope=self.scope)
            self.question = max(
                asked["query_id"], key=lambda query: len(self._evidence.get(query, ())), default=""
            )

        def _moved(self, _: Any = None, among: np.ndarray | None = None) -> None:
            known = self._bench.queries.filter(query_id=self.question, scope=self.scope)
            query_id = self.question if known.height else ""
            text = str(known["text"][0]) if known.height else self.question
            if not text.strip():
                self.problem, self._view = "", {}
                return
            # A run answers its own questions; a new one takes the pipeline that the run is named
            # after.
            systems = [
                self._runs[name] if query_id and name in self._runs else name
                for name in self.systems
            ]
            evidence = self._evidence.get(query_id, ())
            try:
                if not 1 <= len(systems) <= 2:
                    raise DataError(f"the map tells one or two systems apart, not {len(systems)}")
                if not query_id and self.question.startswith(
                    tuple(f"{one}/" for one in self._bench.queries["scope"])
                ):
                    raise DataError(
                        f"{self.scope!r} has no question {self.question!r}; go to its scope, or ask another"
                    )
                one = self._bench_of_question(self.scope, text, query_id)
                query_id = one.queries["query_id"][0]
                self._view = answer_payload(
                    self.scene,
                    one,
                    text,
                    systems,
                    k=self.k,
                    query_id=query_id,
                    evidence=evidence,
                    among=among,
                )
                self.problem = ""
            except MemlabError as error:
                _log.warning("%s", error)
                self.problem, self._view = str(error), {}

        def _show_scene(self) -> None:
            self._scene = scene_payload(self.scene, self._bench)

        def _asked(self, _: Any, content: Mapping[str, Any], __: Any) -> None:
            kind = content.get("kind")
            try:
                if kind == "text":
                    turn = self.scene.turns.row(int(content["i"]), named=True)
                    when = (
                        turn["timestamp"].strftime("%-d %b %Y, %H:%M") if turn["timestamp"] else ""
                    )
                    head = " · ".join(
                        part for part in (turn["speaker"], when, turn["session_id"]) if part
                    )
                    words = snippet(
                        turn["text"], self._view.get("text", ""), language=self._bench.language
                    )
                    self.send({"kind": "text", "i": int(content["i"]), "text": words, "head": head})
                elif kind == "cluster":
                    self.cluster_again()
                elif kind == "search":
                    self._moved(among=self._rows)
                elif kind == "save":
                    record = self.save(
                        str(content.get("question", "")), str(content.get("answer", ""))
                    )
                    told = f"{record['query_id']}: {len(record['evidence'])} turns, in {self._golden.name}"
                    self.send({"kind": "saved", "told": told})
            except MemlabError as error:
                self.problem = str(error)

        def picture(self) -> Any:
            """Give the map as it is seen now as a figure, for :func:`memlab.figures.export`.

            It has the question with its evidence, the colours, the turns up to ``until`` and the
            selection.
            """
            return draw_view(
                self.scene, self._view, k=self.k, colour=self.colour, until=self.until, picked=self._picked,
                problem=self.problem,
            )  # fmt: skip

        def _repr_mimebundle_(self, **options: Any) -> Any:
            from memlab.figures.export import pictures
            from memlab.figures.provenance import NOTEBOOK_VARIABLE

            try:
                still = pictures(self.picture(), ["svg"], "full", "explorer")["svg"].decode()
            except MemlabError:
                still = ""
            shown = {"text/plain": repr(self)} | ({"image/svg+xml": still} if still else {})
            if (
                NOTEBOOK_VARIABLE in os.environ
            ):  # no screen: a widget would leave nothing in the saved notebook
                return shown
            data, about = super()._repr_mimebundle_(**options) or ({}, {})
            return shown | data, about

        def __repr__(self) -> str:
            return f"Explorer({self.scope!r}: {self.scene.turns.height:,} turns, {', '.join(self.systems)})"

    return Explorer


def _warm_encoder(bench: Bench) -> None:
    """Load what embeds a typed question; a service that embeds has nothing to load, and is not called."""
    local = ("transformer", "multi-vector")
    if bench.encoder is not None and bench.encoder.identity.kind in local:
        with suppress(MemlabError):  # whoever asks is told
            bench.encoder.encode(["?"], kind="query", progress=False)
