"""The explorer in a notebook: what a person picks comes back as a question, a run and a frame."""

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

from memlab import llm
from memlab.cluster import cluster_labels
from memlab.datasets.question_files import ProposalFile
from memlab.errors import DataError, MemlabError, require_extra
from memlab.explorer.drawing import COLOURS, draw_view, scene_payload
from memlab.explorer.proposal_list import proposal_payload, proposals_of_scope
from memlab.explorer.scene import (
    Scene,
    answer_payload,
    build_scene,
    name_scene,
    single_question_bench,
    summaries_above,
)
from memlab.explorer.shared_page import (
    answered_questions,
    front_script,
    front_style,
    page_bytes,
)
from memlab.files import fix_place, open_atomically
from memlab.records import Run, decode_id_part, resolve_scope_name
from memlab.retrieve import DEFAULT, Bench
from memlab.text.analysis import snippet, snippets

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
    service: str | llm.Service | None = llm.RECORDED,
) -> Any:
    """Show the turns of a scope on a map: ask questions, see what was retrieved and missed, select.

    In JupyterLab, Notebook, VS Code and marimo (extra ``lab``); elsewhere, and in a notebook that
    is run without a screen, a picture. The widget's own:

    - ``question`` (text or ``query_id``), ``systems``, ``scope``, ``k``, ``colour`` (cluster,
      session, speaker, time or score), ``until`` (a time after which turns are hidden, or
      ``None``): what the map shows, read and set;
    - ``picture()``: what the map shows as a figure;
    - ``save_html(path)``: the map as one page to share, which needs no kernel and no network;
    - ``selection``: the turns of the last lasso or click as a frame (``turn_id``, ``session_id``,
      ``speaker``, ``timestamp``, ``text``, ``x``, ``y``, ``label``), empty where nothing is picked;
      ``select(turn_ids)`` sets it;
    - ``summaries``: the weeks, months, clusters and named clusters of maps of the store that stand
      on the selection, as a frame (``kind``, ``start``, ``text``, ``topics``, and ``picked``: how
      many of the turns);
    - ``answer``: what :func:`memlab.explorer.answer_payload` gives for the question;
    - ``cluster_again()``: new clusters within the selection; the others keep theirs;
    - ``save(question, answer)``: appends a question with the selection as its evidence to
      ``golden``;
    - ``proposals``: the questions of ``golden`` that a model proposed for the scope, as a frame;
      ``show(query_id)`` asks one and picks its evidence, ``accept(query_id)``, ``drop(query_id)``
      and ``mend(query_id, question=, answer=, evidence=)`` change its line, see
      :class:`memlab.datasets.question_files.ProposalFile`.

    :param run: one or two pipelines or runs to look at.
    :param scope: which conversation first; the one with most questions where not given.
    :param places: a map made before, see :func:`memlab.explorer.build_scene`.
    :param golden: a chat log's questions, one JSON object a line, see ``docs/conversations.md``;
        those that a model proposed are listed below the map.
    :param clustering: a name of :data:`memlab.clusterers`.
    :param service: who names clusters: a language model of the settings; ``recorded`` reads what
        one answered, ``None`` asks nobody. A cluster that none names is named by its terms.
    :raises DataError: when the bench has no vectors or no such scope, or a pipeline cannot rank.
    :raises ModelError: where anywidget is not installed, or the service cannot be asked at all.
    """
    if not isinstance(bench, Bench):
        raise DataError(
            f"the map shows a bench, not a {type(bench).__name__}; make one: memlab.Bench.of(data)"
        )
    lay = partial(
        build_scene, bench, places=places, clustering=clustering, seed=seed, service=service
    )
    first = _busiest_scope(bench)
    if scope:
        first = resolve_scope_name(scope, list(bench.documents("turn").spans))
    systems = [run] if isinstance(run, Run | str) else list(run)
    explorer = _widget_class()(bench, systems, lay(first), lay, k, fix_place(golden))
    if explorer.problem:
        raise DataError(explorer.problem)
    return explorer


def _busiest_scope(bench: Bench) -> str:
    """Give the scope with most questions or, where there are none, with most turns."""
    asked = bench.queries["scope"]
    if asked.is_empty():
        asked = bench.turns["scope"]
    counted = asked.value_counts(sort=True, name="n").sort("n", "scope", descending=[True, False])
    return str(counted["scope"][0])


def _name_of(system: Run | str) -> str:
    """Give the name of a run, or the text of a pipeline."""
    if isinstance(system, Run):
        return system.name
    return system


@cache
def _widget_class() -> Any:
    with require_extra("lab", "the explorer"):
        import anywidget
        import traitlets

    class Explorer(anywidget.AnyWidget):
        """A map of turns that answers questions; see :func:`memlab.explore`."""

        _esm = front_script()
        _css = front_style()
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
        _proposals = traitlets.Dict().tag(sync=True)
        _picked: Any = traitlets.List().tag(sync=True)
        # What the browser asked last, and what was answered last: between them it shows that work
        # goes on.
        _request = traitlets.Int(0).tag(sync=True)
        _answered = traitlets.Int(0).tag(sync=True)

        def __init__(
            self,
            bench: Bench,
            systems: list[Run | str],
            scene: Scene,
            lay: partial[Scene],
            k: int,
            golden: Path,
        ) -> None:
            self._bench = bench
            self._lay_out = lay
            self._golden = golden
            self._proposal_file = ProposalFile(golden)
            self._runs = {run.name: run for run in systems if isinstance(run, Run)}
            self._scenes = {scene.scope: scene}
            gold = bench.evidence("turn")
            self._evidence = dict[str, list[str]]()
            if gold is not None:
                by_question = gold.frame.group_by("query_id").agg("doc_id")
                self._evidence = dict(by_question.iter_rows())
            # It remembers what it ranked.
            self._bench_of_question = lru_cache(1)(partial(single_question_bench, bench))
            names = list(map(_name_of, systems))
            super().__init__(scope=scene.scope, systems=names, k=k)
            self.on_msg(self._asked)
            self.observe(self._moved, ["question", "systems", "k"])
            self.observe(self._went, "scope")
            self.observe(self._done, "_request")
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
            """Cluster the picked turns alone, or all where none is; others keep theirs."""
            scene = self.scene
            labels = scene.turns["label"].to_numpy().copy()
            rows = np.arange(scene.turns.height)
            free = 0
            if self._picked:
                rows = self._rows
                free = int(labels.max(initial=-1)) + 1
            how = self._lay_out.keywords
            new = cluster_labels(scene.compared[rows], how["clustering"], seed=how["seed"])
            labels[rows] = np.where(new < 0, new, new + free)
            turns = scene.turns.with_columns(label=pl.Series(labels))
            kept = {label: name for label, name in scene.names.items() if label < free}
            self._scenes[scene.scope] = name_scene(
                replace(scene, turns=turns), self._bench, how["service"], kept=kept
            )
            self._show_scene()
            return self.selection

        def save(self, question: str, answer: str = "") -> dict[str, Any]:
            """Append a question whose evidence is the selection to the golden set.

            :returns: the record.

            :raises DataError: when nothing is picked or asked.
            """
            if not question.strip() or not self._picked:
                raise DataError(
                    "a question needs words, and its evidence: pick the turns that answer it"
                )
            turns = self.selection.sort("timestamp", nulls_last=True)
            before = ""
            if self._golden.exists():
                before = self._golden.read_text(encoding="utf-8")
            numbers = [int(number) for number in re.findall(r'"query_id": "golden-(\d+)"', before)]
            record: dict[str, Any] = {
                "question": question.strip(),
                "scope": decode_id_part(self.scope),
                "query_id": f"golden-{max(numbers, default=0) + 1}",
            }
            if answer.strip():
                record["answer"] = answer.strip()
            record["evidence"] = turns["turn_id"].to_list()
            line = json.dumps(record, ensure_ascii=False) + "\n"
            if not f"\n{before}".endswith("\n"):
                line = f"\n{line}"  # an editor may leave the last line without its end
            with self._golden.open("a", encoding="utf-8") as file:
                file.write(line)
            self._proposal_file.read()
            return record

        @property
        def proposals(self) -> pl.DataFrame:
            """The questions of the scope that a model proposed, the unread ones first."""
            return proposals_of_scope(self._proposal_file, self.scope)

        def show(self, query_id: str) -> None:
            """Ask a proposed question, and pick the turns that it names as evidence."""
            asked = self.proposals.filter(query_id=query_id)
            if asked.is_empty():
                raise DataError(f"no proposal of {self.scope!r} is called {query_id!r}")
            self.question = str(asked["question"][0])
            self.select(asked["evidence"][0])

        def accept(self, *query_ids: str) -> None:
            """Note in the file that a person has read these proposals and finds them right."""
            self._change_proposals(self._proposal_file.accept, query_ids)

        def drop(self, *query_ids: str) -> None:
            """Remove the lines of these proposals from the file."""
            self._change_proposals(self._proposal_file.drop, query_ids)

        def mend(self, query_id: str, **changes: Any) -> None:
            """Change ``question``, ``answer`` or ``evidence`` of a proposal, which accepts it."""
            self._change_proposals(self._proposal_file.mend, query_id, **changes)

        def _change_proposals(self, change: Any, *given: Any, **changes: Any) -> None:
            """Change the file, and list what it holds then, also where somebody else changed it."""
            try:
                change(*given, **changes)
            except DataError:
                self._proposal_file.read()
                raise
            finally:
                self._list_proposals()

        def _list_proposals(self) -> None:
            self._proposals = proposal_payload(self._proposal_file, self.scene)

        def _review(self, content: Mapping[str, Any]) -> None:
            """Do with a proposal what its buttons say."""
            self.problem = ""
            query_id = str(content["query_id"])
            action = content["action"]
            if action == "show":
                self.show(query_id)
            elif action == "accept":
                self.accept(query_id)
            elif action == "drop":
                self.drop(query_id)
            elif action == "mend":
                changes = {name: str(content[name]) for name in ("question", "answer")}
                self.mend(query_id, **changes)
            elif action == "evidence":
                self.mend(query_id, evidence=self.selection["turn_id"].to_list())

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
                    self.problem = str(error)
                    self.scope = change["old"]
                    return
            self._open()

        def _open(self) -> None:
            """Show the scope, and its question with most evidence."""
            self._picked = []
            self.until = None
            self._show_scene()
            self._list_proposals()
            asked = self._bench.queries.filter(scope=self.scope)
            self.question = max(
                asked["query_id"], key=lambda query: len(self._evidence.get(query, ())), default=""
            )

        def _moved(self, _: Any = None, among: np.ndarray | None = None) -> None:
            known = self._bench.queries.filter(query_id=self.question, scope=self.scope)
            query_id = ""
            text = self.question
            if known.height:
                query_id = self.question
                text = str(known["text"][0])
            if not text.strip():
                self.problem = ""
                self._view = {}
                return
            # A run answers its own questions; a new one takes the pipeline that the run is named
            # after.
            systems: list[Run | str] = list(self.systems)
            if query_id:
                systems = [self._runs.get(name, name) for name in self.systems]
            evidence = self._evidence.get(query_id, ())
            if not query_id:
                proposed = self.proposals.filter(question=text)["evidence"]
                evidence = next(iter(proposed.to_list()), ())
            try:
                if not 1 <= len(systems) <= 2:
                    raise DataError(f"the map tells one or two systems apart, not {len(systems)}")
                if not query_id and self.question.startswith(
                    tuple(f"{one}/" for one in self._bench.queries["scope"])
                ):
                    raise DataError(
                        f"{self.scope!r} has no question {self.question!r}; go to its scope, or "
                        "ask another"
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
                ) | {"asked": self.question}
                self.problem = ""
            except MemlabError as error:
                _log.warning("%s", error)
                self.problem = str(error)
                self._view = {}

        def _done(self, _: Any) -> None:
            self._answered = self._request

        def _show_scene(self) -> None:
            self._scene = scene_payload(self.scene, self._bench)

        def _asked(self, _: Any, content: Mapping[str, Any], __: Any) -> None:
            kind = content.get("kind")
            try:
                if kind == "text":
                    turn = self.scene.turns.row(int(content["i"]), named=True)
                    when = ""
                    if turn["timestamp"]:
                        when = turn["timestamp"].strftime("%-d %b %Y, %H:%M")
                    parts = (turn["speaker"], when, turn["session_id"])
                    head = " · ".join(filter(None, parts))
                    words = snippet(
                        turn["text"], self._view.get("text", ""), language=self._bench.language
                    )
                    self.send({"kind": "text", "i": int(content["i"]), "text": words, "head": head})
                elif kind == "cluster":
                    self.cluster_again()
                elif kind == "search":
                    self._moved(among=self._rows)
                elif kind == "texts":
                    rows = [int(i) for i in content["rows"]]
                    texts = self.scene.turns["text"].gather(rows).to_list()
                    language = self._bench.language
                    cut = snippets(texts, self._view.get("text", ""), length=160, language=language)
                    self.send(
                        {"kind": "texts", "rows": list(map(list, zip(rows, cut, strict=True)))}
                    )
                elif kind == "find":
                    words = str(content["words"])
                    self.send({"kind": "found", "words": words, "rows": self.find(words).to_list()})
                elif kind == "proposal":
                    self._review(content)
                elif kind == "save":
                    record = self.save(
                        str(content.get("question", "")), str(content.get("answer", ""))
                    )
                    counted = f"{len(record['evidence'])} turns, in {self._golden.name}"
                    told = f"{record['query_id']}: {counted}"
                    self.send({"kind": "saved", "told": told})
            except MemlabError as error:
                self.problem = str(error)
            if "request" in content:
                self._answered = int(content["request"])

        def find(self, words: str) -> pl.Series:
            """Give the rows of the scene whose text has all the words, in any case."""
            text = pl.col("text").str.to_lowercase()
            has = [text.str.contains(word, literal=True) for word in words.lower().split()]
            return self.scene.turns.with_row_index("i").filter(*has)["i"]

        def save_html(
            self, path: str | os.PathLike[str], *, title: str = "", questions: int = 300
        ) -> Path:
            """Write the map as one page that works offline and without a kernel; gives its path.

            It holds the texts of all turns of the scope and the answers to its questions. Whoever
            opens it hovers, searches, narrows by time, speaker, cluster and question, and isolates
            a group by a click on the key.

            :param path: of the page, which is replaced whole, or not at all.
            :param title: above the map; the scope where not given.
            :param questions: how many are answered: the one on the map, and those with most
                evidence. The page says how many there are.
            :raises DataError: when a pipeline cannot rank, or the page cannot be written.
            """
            target = Path(path)
            if target.is_dir() or not target.parent.is_dir():
                raise DataError(
                    f"no page can be written to {str(target)!r}: name a file in a folder that "
                    "exists"
                )
            systems = [self._runs.get(name, name) for name in self.systems]
            bench, scene = self._bench, self.scene
            views = answered_questions(
                scene, bench, systems, k=self.k, most=questions, first=self.question
            )
            asked = bench.queries.filter(scope=self.scope).height
            note = f"{scene.turns.height:,} turns; {len(views):,} of {asked:,} questions answered"
            if self._view and self.question not in views:  # a question that was typed
                views = {self.question: {**self._view}} | views
                note += ", and the one that was typed"
            page = page_bytes(
                scene,
                bench,
                views,
                systems=self.systems,
                k=self.k,
                question=self.question,
                colour=self.colour,
                title=title or decode_id_part(self.scope),
                note=f"{note}.",
            )
            try:
                with open_atomically(target) as file:
                    file.write(page)
            except OSError as error:
                raise DataError(
                    f"no page could be written to {str(target)!r}: {error.strerror or error}"
                ) from error
            return target

        def picture(self) -> Any:
            """Give the map as it is seen now as a figure, for :func:`memlab.figures.export`.

            It has the question with its evidence, the colours, the turns up to ``until`` and the
            selection.
            """
            return draw_view(
                self.scene,
                self._view,
                k=self.k,
                colour=self.colour,
                until=self.until,
                picked=self._picked,
                problem=self.problem,
            )

        def _repr_mimebundle_(self, **options: Any) -> Any:
            from memlab.figures.export import pictures
            from memlab.figures.provenance import NOTEBOOK_VARIABLE

            try:
                still = pictures(self.picture(), ["svg"], "full", "explorer")["svg"].decode()
            except MemlabError:
                still = ""
            shown = {"text/plain": repr(self)}
            if still:
                shown["image/svg+xml"] = still
            # Without a screen a widget would leave nothing in the saved notebook.
            if NOTEBOOK_VARIABLE in os.environ:
                return shown
            data, about = super()._repr_mimebundle_(**options) or ({}, {})
            return shown | data, about

        def __repr__(self) -> str:
            turns = f"{self.scene.turns.height:,} turns"
            return f"Explorer({self.scope!r}: {turns}, {', '.join(self.systems)})"

    return Explorer


def _warm_encoder(bench: Bench) -> None:
    """Load what embeds a typed question; a service has nothing to load, and is not called."""
    local = ("transformer", "multi-vector")
    if bench.encoder is not None and bench.encoder.identity.kind in local:
        with suppress(MemlabError):  # whoever asks is told
            bench.encoder.encode(["?"], kind="query", progress=False)
