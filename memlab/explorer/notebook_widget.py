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
from memlab.atomic_files import make_absolute, open_atomically
from memlab.cluster import cluster_labels
from memlab.datasets.reviewing_proposals import ProposalFile
from memlab.errors import DataError, MemlabError, check_at_least, require_extra
from memlab.explorer.map_drawing import COLOURS, draw_view, scene_payload
from memlab.explorer.map_scene import (
    Scene,
    answer_payload,
    build_scene,
    name_scene_and_warn,
    single_question_bench,
    summaries_standing_on_turns,
)
from memlab.explorer.proposal_list import proposal_payload, proposals_of_scope
from memlab.explorer.shared_page import (
    answered_questions,
    map_css_rules,
    map_script,
    shared_page_bytes,
)
from memlab.pipelines import pipeline
from memlab.records import Run, decode_id_part, resolve_scope_name
from memlab.registry import clusterers
from memlab.retrieve import DEFAULT, Bench
from memlab.text.text_analyser import snippet, snippets

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
      :class:`memlab.datasets.reviewing_proposals.ProposalFile`.

    :param run: one or two pipelines or runs to look at.
    :param scope: which conversation first; the one with most questions where not given.
    :param places: a map made before, see :func:`memlab.explorer.build_scene`.
    :param golden: a chat log's questions, one JSON object a line, see ``docs/conversations.md``;
        those that a model proposed are listed below the map.
    :param clustering: a name of :data:`memlab.clusterers`.
    :param service: who names clusters: a language model of the settings; ``recorded`` reads what
        one answered, ``None`` asks nobody. A cluster that none names is named by its terms.
    :raises PipelineError: when a pipeline cannot be read.
    :raises DataError: when the bench has no vectors or no such scope, a number is out of range, or
        a pipeline cannot rank.
    :raises ModelError: where anywidget is not installed, or the service cannot be asked at all.
    """
    if not isinstance(bench, Bench):
        raise DataError(
            f"the map shows a bench, not a {type(bench).__name__}; make one: memlab.Bench.of(data)"
        )
    # What can be refused is refused before a map is laid out.
    check_at_least(1, k=k)
    check_at_least(0, seed=seed)
    if clustering not in clusterers:
        raise DataError(f"clustering is {clustering!r}; choose from {', '.join(clusterers)}")
    shown_systems = [run] if isinstance(run, Run | str) else list(run)
    for system in shown_systems:
        if isinstance(system, str):
            pipeline(system).check_services_and_models()
    lay_out = partial(
        build_scene, bench, places=places, clustering=clustering, seed=seed, service=service
    )
    first_scope = _busiest_scope(bench)
    if scope:
        first_scope = resolve_scope_name(scope, list(bench.documents("turn").spans))
    explorer = _explorer_widget_class()(
        bench, shown_systems, lay_out(first_scope), lay_out, k, make_absolute(golden)
    )
    if explorer.problem:
        raise DataError(explorer.problem)
    return explorer


def _busiest_scope(bench: Bench) -> str:
    """Give the scope with most questions or, where there are none, with most turns."""
    scope_column = bench.queries["scope"]
    if scope_column.is_empty():
        scope_column = bench.turns["scope"]
    scope_counts = scope_column.value_counts(sort=True, name="n").sort(
        "n", "scope", descending=[True, False]
    )
    return str(scope_counts["scope"][0])


def _run_name_or_pipeline_text(system: Run | str) -> str:
    """Give the name of a run, or the text of a pipeline."""
    if isinstance(system, Run):
        return system.name
    return system


@cache
def _explorer_widget_class() -> Any:
    with require_extra("lab", "the explorer"):
        import anywidget
        import traitlets

    class Explorer(anywidget.AnyWidget):
        """A map of turns that answers questions; see :func:`memlab.explore`."""

        _esm = map_script()
        _css = map_css_rules()
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
            gold_evidence = bench.evidence("turn")
            self._evidence = dict[str, list[str]]()
            if gold_evidence is not None:
                by_question = gold_evidence.frame.group_by("query_id").agg("doc_id")
                self._evidence = dict(by_question.iter_rows())
            # It remembers what it ranked.
            self._bench_of_question = lru_cache(1)(partial(single_question_bench, bench))
            system_names = list(map(_run_name_or_pipeline_text, systems))
            super().__init__(scope=scene.scope, systems=system_names, k=k)
            self.on_msg(self._handle_browser_message)
            self.observe(self._rank_again, ["question", "systems", "k"])
            self.observe(self._open_changed_scope, "scope")
            self.observe(self._mark_answered, "_request")
            self._open_scope()
            # A question of the bench is embedded already: without this the first typed one would
            # wait for the model.
            Thread(target=_load_local_encoder, args=(bench,), daemon=True).start()

        @property
        def scene(self) -> Scene:
            """The map as it is."""
            return self._scenes[self.scope]

        @property
        def answer(self) -> dict[str, Any]:
            """What the question draws."""
            return dict(self._view)

        @property
        def _picked_rows(self) -> np.ndarray:
            return np.asarray(self._picked, np.int32)

        @property
        def selection(self) -> pl.DataFrame:
            """The turns that were picked last."""
            return self.scene.turns[self._picked_rows]

        @property
        def summaries(self) -> pl.DataFrame:
            """The stored summaries that stand on the picked turns, of the fewest turns first."""
            return summaries_standing_on_turns(
                self._bench, self.scope, self.selection["turn_id"].to_list()
            )

        def select(self, turn_ids: Sequence[str]) -> None:
            """Pick turns, as a lasso would."""
            picked_rows = self.scene.turns.with_row_index("i").filter(
                pl.col("turn_id").is_in(list(turn_ids))
            )["i"]
            self._picked = picked_rows.to_list()

        def cluster_again(self) -> pl.DataFrame:
            """Cluster the picked turns alone, or all where none is; others keep theirs."""
            shown_scene = self.scene
            turn_labels = shown_scene.turns["label"].to_numpy().copy()
            picked_rows = np.arange(shown_scene.turns.height)
            first_free = 0
            if self._picked:
                picked_rows = self._picked_rows
                first_free = int(turn_labels.max(initial=-1)) + 1
            map_options = self._lay_out.keywords
            new_labels = cluster_labels(
                shown_scene.compared[picked_rows],
                map_options["clustering"],
                seed=map_options["seed"],
            )
            turn_labels[picked_rows] = np.where(new_labels < 0, new_labels, new_labels + first_free)
            relabelled = shown_scene.turns.with_columns(label=pl.Series(turn_labels))
            kept_names = {
                cluster: cluster_name
                for cluster, cluster_name in shown_scene.names.items()
                if cluster < first_free
            }
            self._scenes[shown_scene.scope] = name_scene_and_warn(
                replace(shown_scene, turns=relabelled),
                self._bench,
                map_options["service"],
                kept=kept_names,
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
            picked_turns = self.selection.sort("timestamp", nulls_last=True)
            written_before = ""
            if self._golden.exists():
                written_before = self._golden.read_text(encoding="utf-8")
            numbers = [
                int(number) for number in re.findall(r'"query_id": "golden-(\d+)"', written_before)
            ]
            golden_record: dict[str, Any] = {
                "question": question.strip(),
                "scope": decode_id_part(self.scope),
                "query_id": f"golden-{max(numbers, default=0) + 1}",
            }
            if answer.strip():
                golden_record["answer"] = answer.strip()
            golden_record["evidence"] = picked_turns["turn_id"].to_list()
            golden_line = json.dumps(golden_record, ensure_ascii=False) + "\n"
            if not f"\n{written_before}".endswith("\n"):
                golden_line = (
                    f"\n{golden_line}"  # an editor may leave the last line without its end
                )
            with self._golden.open("a", encoding="utf-8") as golden_file:
                golden_file.write(golden_line)
            self._proposal_file.read()
            return golden_record

        @property
        def proposals(self) -> pl.DataFrame:
            """The questions of the scope that a model proposed, the unread ones first."""
            return proposals_of_scope(self._proposal_file, self.scope)

        def show(self, query_id: str) -> None:
            """Ask a proposed question, and pick the turns that it names as evidence."""
            proposal = self.proposals.filter(query_id=query_id)
            if proposal.is_empty():
                raise DataError(f"no proposal of {self.scope!r} is called {query_id!r}")
            self.question = str(proposal["question"][0])
            self.select(proposal["evidence"][0])

        def accept(self, *query_ids: str) -> None:
            """Note in the file that a person has read these proposals and finds them right."""
            self._change_proposal_file_and_list(self._proposal_file.accept, query_ids)

        def drop(self, *query_ids: str) -> None:
            """Remove the lines of these proposals from the file."""
            self._change_proposal_file_and_list(self._proposal_file.drop, query_ids)

        def mend(self, query_id: str, **changes: Any) -> None:
            """Change ``question``, ``answer`` or ``evidence`` of a proposal, which accepts it."""
            self._change_proposal_file_and_list(self._proposal_file.mend, query_id, **changes)

        def _change_proposal_file_and_list(
            self, change_file: Any, *given: Any, **changes: Any
        ) -> None:
            """Change the file, and list what it holds then, also where somebody else changed it."""
            try:
                change_file(*given, **changes)
            except DataError:
                self._proposal_file.read()
                raise
            finally:
                self._show_proposals()

        def _show_proposals(self) -> None:
            self._proposals = proposal_payload(self._proposal_file, self.scene)

        def _apply_review_button(self, browser_message: Mapping[str, Any]) -> None:
            """Do with a proposal what its buttons say."""
            self.problem = ""
            query_id = str(browser_message["query_id"])
            review_action = browser_message["action"]
            if review_action == "show":
                self.show(query_id)
            elif review_action == "accept":
                self.accept(query_id)
            elif review_action == "drop":
                self.drop(query_id)
            elif review_action == "mend":
                text_changes = {
                    field_name: str(browser_message[field_name])
                    for field_name in ("question", "answer")
                }
                self.mend(query_id, **text_changes)
            elif review_action == "evidence":
                self.mend(query_id, evidence=self.selection["turn_id"].to_list())

        def _open_changed_scope(self, trait_change: Mapping[str, Any]) -> None:
            known_scopes = list(self._bench.documents("turn").spans)
            full_name = resolve_scope_name(self.scope, known_scopes)
            if full_name != self.scope:
                self.scope = full_name
                return
            if self.scope not in self._scenes:
                try:
                    self._scenes[self.scope] = self._lay_out(self.scope)
                except MemlabError as error:
                    _log.warning("%s", error)
                    self.problem = str(error)
                    self.scope = trait_change["old"]
                    return
            self._open_scope()

        def _open_scope(self) -> None:
            """Show the scope, and its question with most evidence."""
            self._picked = []
            self.until = None
            self._show_scene()
            self._show_proposals()
            scope_questions = self._bench.queries.filter(scope=self.scope)
            self.question = max(
                scope_questions["query_id"],
                key=lambda query: len(self._evidence.get(query, ())),
                default="",
            )

        def _rank_again(self, _: Any = None, among: np.ndarray | None = None) -> None:
            known_question = self._bench.queries.filter(query_id=self.question, scope=self.scope)
            query_id = ""
            question_text = self.question
            if known_question.height:
                query_id = self.question
                question_text = str(known_question["text"][0])
            if not question_text.strip():
                self.problem = ""
                self._view = {}
                return
            # A run answers its own questions; a new one takes the pipeline that the run is named
            # after.
            asked_systems: list[Run | str] = list(self.systems)
            if query_id:
                asked_systems = [
                    self._runs.get(system_name, system_name) for system_name in self.systems
                ]
            evidence_ids = self._evidence.get(query_id, ())
            if not query_id:
                proposed_evidence = self.proposals.filter(question=question_text)["evidence"]
                evidence_ids = next(iter(proposed_evidence.to_list()), ())
            try:
                if not 1 <= len(asked_systems) <= 2:
                    raise DataError(
                        f"the map tells one or two systems apart, not {len(asked_systems)}"
                    )
                if not query_id and self.question.startswith(
                    tuple(f"{question_bench}/" for question_bench in self._bench.queries["scope"])
                ):
                    raise DataError(
                        f"{self.scope!r} has no question {self.question!r}; go to its scope, or "
                        "ask another"
                    )
                question_bench = self._bench_of_question(self.scope, question_text, query_id)
                query_id = question_bench.queries["query_id"][0]
                self._view = answer_payload(
                    self.scene,
                    question_bench,
                    question_text,
                    asked_systems,
                    k=self.k,
                    query_id=query_id,
                    evidence=evidence_ids,
                    among=among,
                ) | {"asked": self.question}
                self.problem = ""
            except MemlabError as error:
                _log.warning("%s", error)
                self.problem = str(error)
                self._view = {}

        def _mark_answered(self, _: Any) -> None:
            self._answered = self._request

        def _show_scene(self) -> None:
            self._scene = scene_payload(self.scene, self._bench)

        def _handle_browser_message(
            self, _: Any, browser_message: Mapping[str, Any], __: Any
        ) -> None:
            message_kind = browser_message.get("kind")
            try:
                if message_kind == "text":
                    self._send_turn_text(int(browser_message["i"]))
                elif message_kind == "cluster":
                    self.cluster_again()
                elif message_kind == "search":
                    self._rank_again(among=self._picked_rows)
                elif message_kind == "texts":
                    self._send_telling_sentences(
                        [int(turn_row) for turn_row in browser_message["rows"]]
                    )
                elif message_kind == "find":
                    words = str(browser_message["words"])
                    found_rows = self.find(words).to_list()
                    self.send({"kind": "found", "words": words, "rows": found_rows})
                elif message_kind == "proposal":
                    self._apply_review_button(browser_message)
                elif message_kind == "save":
                    golden_record = self.save(
                        str(browser_message.get("question", "")),
                        str(browser_message.get("answer", "")),
                    )
                    evidence_count = (
                        f"{len(golden_record['evidence'])} turns, in {self._golden.name}"
                    )
                    saved_line = f"{golden_record['query_id']}: {evidence_count}"
                    self.send({"kind": "saved", "told": saved_line})
            except MemlabError as error:
                self.problem = str(error)
            if "request" in browser_message:
                self._answered = int(browser_message["request"])

        def _send_turn_text(self, turn_row: int) -> None:
            """Send what the browser shows of a turn: who said it when, and its telling sentence."""
            turn = self.scene.turns.row(turn_row, named=True)
            time = ""
            if turn["timestamp"]:
                time = turn["timestamp"].strftime("%-d %b %Y, %H:%M")
            head = " · ".join(filter(None, (turn["speaker"], time, turn["session_id"])))
            question = self._view.get("text", "")
            text = snippet(turn["text"], question, language=self._bench.language)
            self.send({"kind": "text", "i": turn_row, "text": text, "head": head})

        def _send_telling_sentences(self, turn_rows: list[int]) -> None:
            """Send the telling sentence of each of some turns."""
            texts = self.scene.turns["text"].gather(turn_rows).to_list()
            question = self._view.get("text", "")
            sentences = snippets(texts, question, length=160, language=self._bench.language)
            rows = [*map(list, zip(turn_rows, sentences, strict=True))]
            self.send({"kind": "texts", "rows": rows})

        def find(self, words: str) -> pl.Series:
            """Give the rows of the scene whose text has all the words, in any case."""
            lower_text = pl.col("text").str.to_lowercase()
            word_filters = [
                lower_text.str.contains(word, literal=True) for word in words.lower().split()
            ]
            return self.scene.turns.with_row_index("i").filter(*word_filters)["i"]

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
            page_path = Path(path)
            if page_path.is_dir() or not page_path.parent.is_dir():
                raise DataError(
                    f"no page can be written to {str(page_path)!r}: name a file in a folder that "
                    "exists"
                )
            shown_systems = [
                self._runs.get(system_name, system_name) for system_name in self.systems
            ]
            shown_bench = self._bench
            shown_scene = self.scene
            question_views = answered_questions(
                shown_scene,
                shown_bench,
                shown_systems,
                k=self.k,
                most=questions,
                first=self.question,
            )
            n_questions = shown_bench.queries.filter(scope=self.scope).height
            count_note = (
                f"{shown_scene.turns.height:,} turns; {len(question_views):,} of "
                f"{n_questions:,} questions answered"
            )
            if self._view and self.question not in question_views:  # a question that was typed
                question_views = {self.question: {**self._view}} | question_views
                count_note += ", and the one that was typed"
            page_content = shared_page_bytes(
                shown_scene,
                shown_bench,
                question_views,
                systems=self.systems,
                k=self.k,
                question=self.question,
                colour=self.colour,
                title=title or decode_id_part(self.scope),
                note=f"{count_note}.",
            )
            try:
                with open_atomically(page_path) as page_file:
                    page_file.write(page_content)
            except OSError as error:
                raise DataError(
                    f"no page could be written to {str(page_path)!r}: {error.strerror or error}"
                ) from error
            return page_path

        def picture(self) -> Any:
            """Give the map as it is seen now as a figure, for :func:`memlab.figures.export`.

            It has the question with its evidence, the colours, the turns up to ``until`` and the
            selection, and says in its sidecar what it shows.
            """
            from memlab.figures.style import attach_provenance

            figure = draw_view(
                self.scene,
                self._view,
                k=self.k,
                colour=self.colour,
                until=self.until,
                picked=self._picked,
                problem=self.problem,
            )
            map_options = self._lay_out.keywords
            shown = {
                "scope": self.scope,
                "pipeline": list(self.systems),
                "question": self.question,
                "k": self.k,
                "colour": self.colour,
                "until": self.until,
                "clustering": map_options["clustering"],
                "seed": map_options["seed"],
            }
            attach_provenance(figure, {**self._bench.provenance, **shown})
            return figure

        def _repr_mimebundle_(self, **options: Any) -> Any:
            from memlab.figures.figure_export import pictures
            from memlab.figures.figure_provenance import NOTEBOOK_VARIABLE

            try:
                still_picture = pictures(self.picture(), ["svg"], "full", "explorer")[
                    "svg"
                ].decode()
            except MemlabError:
                still_picture = ""
            mime_bundle = {"text/plain": repr(self)}
            if still_picture:
                mime_bundle["image/svg+xml"] = still_picture
            # Without a screen a widget would leave nothing in the saved notebook.
            if NOTEBOOK_VARIABLE in os.environ:
                return mime_bundle
            widget_data, widget_metadata = super()._repr_mimebundle_(**options) or ({}, {})
            return mime_bundle | widget_data, widget_metadata

        def __repr__(self) -> str:
            turn_count = f"{self.scene.turns.height:,} turns"
            return f"Explorer({self.scope!r}: {turn_count}, {', '.join(self.systems)})"

    return Explorer


def _load_local_encoder(bench: Bench) -> None:
    """Load what embeds a typed question; a service has nothing to load, and is not called."""
    local_kinds = ("transformer", "multi-vector")
    if bench.encoder is not None and bench.encoder.identity.kind in local_kinds:
        with suppress(MemlabError):  # whoever asks is told
            bench.encoder.encode(["?"], kind="query", progress=False)
