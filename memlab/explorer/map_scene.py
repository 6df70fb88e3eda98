"""A scope on a map, and what a question draws there: evidence, hits, misses, what came instead.

Turns lie and cluster by what they are compared with each other by, their speaker-centred vectors. A
question has no speaker: the mean of the scope is subtracted from its vector before it is placed.
"""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from pydantic import BaseModel

from memlab import llm
from memlab.cluster import cluster_labels, project
from memlab.cluster.clusterers import NOISE, find_distinct_rows
from memlab.cluster.evidence_spread import observed_and_chance_same_speaker
from memlab.cluster.hdbscan_clusters import PLACED_BY, place_among_known_rows
from memlab.cluster.names_by_model import TERMS, name_clusters
from memlab.cluster.umap_projection import check_and_scale_to_unit
from memlab.embed.speaker_centring import sum_vectors_by_speaker
from memlab.errors import DataError, warn_user
from memlab.evaluate.cluster_spread import AS_ENCODED, CENTRED
from memlab.explorer.map_layout import stretch_layout_to_frame
from memlab.explorer.stored_cluster_names import (
    store_model_names_if_possible,
    stored_names_by_request_key,
)
from memlab.pipelines import pipeline
from memlab.records import Run
from memlab.retrieve import Bench
from memlab.retrieve.cosine import scale_to_unit
from memlab.store.table_schemas import type_by_record_column
from memlab.summaries.stored_trees import rows_of_preferred_tree
from memlab.text.text_analyser import snippets, tokenize

_MAP = "map"
"""The task of requests whose answer is the labels of a map, which are computed by no model."""
_MAP_VERSION = 1
_MOST_BY_COMPONENTS = 4
"""Turns that :func:`memlab.cluster.project` lays out by principal components, for want of more."""


@dataclass(frozen=True)
class Scene:
    """The turns of a scope where they lie on a map.

    :param scope: which.
    :param turns: a row a turn: ``turn_id``, ``session_id``, ``speaker``, ``timestamp``, ``text``,
        ``x``, ``y`` (from −1 to 1) and ``label`` (cluster, −1 for none).
    :param vectors: (n, d) float32 unit rows, what turns are compared with questions by.
    :param compared: (n, d) float32 unit rows, what turns are compared with each other by.
    :param origin: (d,) what is subtracted from the vector of a question before it is placed.
    :param names: of the clusters, by label.
    :param sentences: what a language model says of them, by label; none where it named none.
    :param named_by: who named clusters: a service, ``recorded``, or nobody, where all names are
        terms.
    :param laid_out_by: the method whose coordinates these are; empty for a map made elsewhere.
    """

    scope: str
    turns: pl.DataFrame
    vectors: np.ndarray
    compared: np.ndarray
    origin: np.ndarray
    names: dict[int, str]
    sentences: dict[int, str] = field(default_factory=dict)
    named_by: str = ""
    laid_out_by: str = ""


def build_scene(
    bench: Bench,
    scope: str,
    *,
    places: pl.DataFrame | None = None,
    clustering: str | None = "umap_hdbscan",
    seed: int = 0,
    centred: bool = True,
    service: str | llm.Service | None = llm.RECORDED,
) -> Scene:
    """Lay the turns of a scope out by UMAP, cluster them, and name the clusters.

    UMAP gives other clusters for vectors that differ in their last bits, as those of another
    machine may; ``recorded`` reads the clusters too, where these turns were clustered by this
    encoder, clusterer and seed.

    :param places: ``turn_id``, ``x``, ``y`` and, where wanted, ``label``: a map that was made
        before, for UMAP takes long on many turns and gives other coordinates on another machine.
    :param clustering: a name of :data:`memlab.clusterers`; with ``None`` all turns are noise.
    :param seed: of the layout and of the clusterer.
    :param centred: ``False`` lays turns out as they are encoded, speakers' names included.
    :param service: who names clusters, see :func:`memlab.cluster.names_by_model.name_clusters`.
    :raises DataError: when the bench has no vectors or no such scope, a turn has no place, or for
        another clusterer.
    :raises ModelError: when the service cannot be asked at all.

    >>> import memlab
    >>> from memlab.explorer import build_scene
    >>> data = memlab.sample(turns=60)
    >>> bench = memlab.Bench.of(data, encoder="hashing")
    >>> scene = build_scene(bench, data.scopes[0])
    >>> scene.turns.columns
    ['turn_id', 'session_id', 'speaker', 'timestamp', 'text', 'x', 'y', 'label']
    """
    documents = bench.documents("turn")
    if scope not in documents.spans:
        raise DataError(
            f"no scope {scope!r} on this bench; there are {', '.join(list(documents.spans)[:5])}"
        )
    if documents.embeddings is None:
        raise DataError(
            "this bench has no vectors to lay out; make it with an encoder, such as "
            "encoder='minilm'"
        )
    first_turn, end_turn = documents.spans[scope]
    vectors = compared = documents.vectors()[first_turn:end_turn]
    origin = np.zeros(vectors.shape[1])
    if centred:
        compared = documents.speaker_centred()[first_turn:end_turn]
        origin = sum_vectors_by_speaker(vectors, [""] * len(vectors)).scope_mean
    turn_ids = pl.DataFrame(
        {"turn_id": pl.Series(documents.ids[first_turn:end_turn], dtype=pl.String)}
    )
    columns = ("turn_id", "session_id", "speaker", "timestamp", "text")
    scene_turns = turn_ids.join(bench.turns.select(columns), on="turn_id", maintain_order="left")
    laid_out_by = ""
    if places is None:
        layout, n_laid_out = _layout_of_distinct_rows(compared, seed)
        coordinates = stretch_layout_to_frame(layout)
        laid_out_by = "UMAP"
        if n_laid_out <= _MOST_BY_COMPONENTS:
            laid_out_by = "principal components"
    else:
        placed_turns = turn_ids.join(places, on="turn_id", how="left", maintain_order="left")
        n_missing = placed_turns["x"].null_count()
        if n_missing:
            raise DataError(
                f"{n_missing} turns of {scope!r} have no place in places=; lay them out again"
            )
        coordinates = placed_turns.select("x", "y").to_numpy()
        centre = (coordinates.min(axis=0) + coordinates.max(axis=0)) / 2
        longest_side = float((coordinates.max(axis=0) - coordinates.min(axis=0)).max())
        coordinates = (coordinates - centre) / max(longest_side / 1.9, 1e-9)
    if places is not None and "label" in places.columns:
        turn_labels = placed_turns["label"].to_numpy()
    elif clustering is None:
        turn_labels = np.full(len(compared), NOISE)
    else:
        request = clusters_request(bench, scene_turns, clustering, seed=seed, centred=centred)
        found_labels = recorded_clusters(request, service)
        if found_labels is None:
            found_labels = cluster_labels(compared, clustering, seed=seed)
        turn_labels = found_labels
    scene_turns = scene_turns.with_columns(
        x=pl.Series(coordinates[:, 0], dtype=pl.Float32),
        y=pl.Series(coordinates[:, 1], dtype=pl.Float32),
        label=pl.Series(turn_labels),
    )
    scene = Scene(scope, scene_turns, vectors, compared, origin, {}, laid_out_by=laid_out_by)
    return name_scene_and_warn(scene, bench, service)


def _layout_of_distinct_rows(compared: np.ndarray, seed: int) -> tuple[np.ndarray, int]:
    """Lay turns out in two dimensions, those of equal vectors once.

    Many copies of a message would have each other alone as neighbours, an island far from what is
    like them; and the rows are those that are clustered, so both layouts share their neighbours.

    :returns: (n, 2), and how many different vectors there are.
    """
    unit_vectors = check_and_scale_to_unit(compared)
    first_copies, copy_of = find_distinct_rows(unit_vectors)
    # The clusterer scales its rows once more, which moves last bits by which neighbours are kept.
    distinct_vectors = check_and_scale_to_unit(unit_vectors[first_copies])
    layout = project(distinct_vectors, seed=seed)
    return layout[copy_of], len(distinct_vectors)


class MapClusters(BaseModel, extra="forbid"):
    """The clusters of a map as they are recorded: the label of each turn, −1 for none."""

    labels: list[int]


def clusters_request(
    bench: Bench, turns: pl.DataFrame, clustering: str, *, seed: int, centred: bool
) -> llm.Request | None:
    """Give what the clusters of a map are recorded under: its turns and how they are clustered.

    :returns: ``None`` for a bench without an encoder, whose vectors have no name.
    """
    if bench.encoder is None:
        return None
    header = json.dumps([clustering, seed, centred, bench.encoder.identity.key])
    ids_and_texts = chain.from_iterable(turns.select("turn_id", "text").iter_rows())
    return llm.Request(_MAP, _MAP_VERSION, (header, *ids_and_texts), "", MapClusters)


def recorded_clusters(
    request: llm.Request | None, service: str | llm.Service | None
) -> np.ndarray | None:
    """Read the labels of a map; ``None`` where they are not recorded."""
    if request is None or service != llm.RECORDED:
        return None
    recorded = llm.ask([request], service)[0].value
    if recorded is None:
        return None
    return np.array(recorded.labels, dtype=np.int64)


def name_scene_and_warn(
    scene: Scene,
    bench: Bench,
    service: str | llm.Service | None,
    *,
    kept: Mapping[int, str] | None = None,
) -> Scene:
    """Give a scene with the names of its clusters; warns of those that no model named.

    What a service answered is kept in the store of the bench, and not asked for again.

    :param kept: names, by label, that stay as they are.
    """
    turn_labels = scene.turns["label"].to_numpy()
    present = {cluster for cluster in turn_labels.tolist() if cluster != NOISE}
    kept_names = {
        cluster: kept_name for cluster, kept_name in (kept or {}).items() if cluster in present
    }
    known_names = stored_names_by_request_key(bench, scene.scope, service)
    cluster_names = name_clusters(
        scene.turns,
        turn_labels,
        scene.compared,
        service=service,
        language=bench.language,
        only=present - kept_names.keys(),
        known=known_names,
    )
    store_model_names_if_possible(bench, scene.scope, cluster_names, scene.turns, service)
    if cluster_names.note:
        warn_user(cluster_names.note)
    by_model = cluster_names.frame.filter(pl.col("writer") != TERMS)
    sentences = dict(by_model.select("label", "sentence").iter_rows())
    sentences |= {
        cluster: sentence for cluster, sentence in scene.sentences.items() if cluster in kept_names
    }
    writers = [*by_model["writer"].unique(), scene.named_by]
    return replace(
        scene, names=cluster_names.names() | kept_names, sentences=sentences, named_by=writers[0]
    )


def summaries_standing_on_turns(bench: Bench, scope: str, turn_ids: Sequence[str]) -> pl.DataFrame:
    """Give the stored summaries that stand on some turns, those of the fewest turns first.

    :returns: ``kind``, ``start``, ``text``, ``topics``, ``turns`` (ids) and ``picked``, how many of
        the turns are below; no rows without a store, or where no rollup was written.
    """
    columns = ["kind", "start", "text", "topics", "turns"]
    memory_store = bench.store
    if memory_store is None or bench.name not in memory_store.datasets()["name"]:
        empty_schema = {column: type_by_record_column("nodes")[column] for column in columns}
        return pl.DataFrame(schema={**empty_schema, "picked": pl.UInt32()})
    node_rows = memory_store.nodes.rows(bench.name, scopes=[scope])
    n_picked = pl.col("turns").list.set_intersection(list(turn_ids)).list.len()
    nodes_above = node_rows.with_columns(picked=n_picked).filter(pl.col("picked") > 0)
    nodes_by_kind = nodes_above.partition_by("kind", maintain_order=True)
    chosen_nodes = pl.concat([nodes_above.clear(), *map(rows_of_preferred_tree, nodes_by_kind)])
    nearest = chosen_nodes.sort(pl.col("turns").list.len(), maintain_order=True)
    return nearest.select(*columns, "picked")


def both_maps(
    bench: Bench,
    scope: str,
    *,
    query_id: str = "",
    system: str = "dense",
    k: int = 10,
    seed: int = 0,
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Lay a scope out twice, as it is encoded and speaker-centred, with one question on both.

    :param query_id: of a question that the bench holds; without it there are turns alone.
    :param system: a pipeline, whose first ``k`` turns are marked.
    :param seed: of the layouts.
    :returns: for :func:`memlab.figures.maps.speaker_maps`: a row a turn and map (``panel``, ``x``,
        ``y``, ``speaker``, ``evidence``, ``rank``), and ``panel``, ``x``, ``y`` of the question.
        Above each map stands how often a turn's most similar one is the same speaker's.
    :raises DataError: as :func:`build_scene`; for a pipeline that cannot rank, or an unknown
        question.
    """
    rank_by_turn = dict[str, int]()
    evidence = list[str]()
    if query_id:
        question_bench = single_question_bench(bench, scope, "", query_id)
        ranked_turns = pipeline(system).run(question_bench).top(k).frame
        rank_by_turn = dict(ranked_turns.select("doc_id", "rank").iter_rows())
        gold_evidence = bench.evidence("turn")
        if gold_evidence is not None:
            evidence = gold_evidence.frame.filter(query_id=query_id)["doc_id"].to_list()
    map_points = list[pl.DataFrame]()
    questions = list[tuple[str, float, float]]()
    for encoding_name, centred in ((AS_ENCODED, False), (CENTRED, True)):
        map_scene = build_scene(bench, scope, clustering=None, seed=seed, centred=centred)
        same_speaker, _ = observed_and_chance_same_speaker(
            map_scene.compared, map_scene.turns["speaker"].to_list()
        )
        map_heading = (
            f"{encoding_name}: the most similar turn is the same speaker's for "
            f"{same_speaker:.0%} of {map_scene.turns.height:,}"
        )
        turn_id = pl.col("turn_id")
        turn_rank = turn_id.replace_strict(rank_by_turn, default=None, return_dtype=pl.Int32)
        columns = {
            "panel": pl.lit(map_heading),
            "evidence": turn_id.is_in(evidence),
            "rank": turn_rank,
        }
        map_points.append(map_scene.turns.drop("label").with_columns(**columns))
        if query_id:
            question_x, question_y = interpolate_positions(
                map_scene,
                question_bench.require_query_vectors()[:1],
                texts=question_bench.queries["text"].head(1).to_list(),
            )[0].tolist()
            questions.append((map_heading, question_x, question_y))
    question_schema = {"panel": pl.String, "x": pl.Float64, "y": pl.Float64}
    return pl.concat(map_points), pl.DataFrame(questions, schema=question_schema, orient="row")


def interpolate_positions(
    scene: Scene, vectors: np.ndarray, *, texts: Sequence[str] = ()
) -> np.ndarray:
    """Place new texts on a map that was made without them, as :func:`place_among_known_rows` does.

    Turns are speaker-centred; a text that nobody of the scope says is centred on the scope. It
    lands always in the same place. The mean of the 15 nearest turns is the middle of a memory that
    has few: of n turns, at most the √n nearest count. A text that a turn has too lies where that
    turn does, for a turn is encoded with its speaker's name, and is not always the nearest.

    :param vectors: (n, d) unit rows, as they are encoded.
    :param texts: of the rows, where a text that a turn has too may be among them.
    :returns: (n, 2) float32.
    """
    centred_rows = scale_to_unit(vectors - scene.origin)
    coordinates = scene.turns.select("x", "y").to_numpy()
    n_nearest = max(min(PLACED_BY, math.isqrt(scene.turns.height)), 1)
    places = place_among_known_rows(
        centred_rows, scene.compared, coordinates, most_nearest=n_nearest
    )
    turn_texts = np.array([_folded_text(text) for text in scene.turns["text"]], dtype=object)
    for row, text in enumerate(texts):
        same_turns = np.flatnonzero(turn_texts == _folded_text(text))
        if len(same_turns):
            similarities = scene.compared[same_turns] @ centred_rows[row]
            places[row] = coordinates[same_turns[int(similarities.argmax())]]
    return places.astype(np.float32)


def _folded_text(text: str) -> str:
    """Give a text without what its case and its spaces say."""
    return " ".join(text.casefold().split())


def answer_payload(
    scene: Scene,
    bench: Bench,
    text: str,
    systems: Sequence[str | Run],
    *,
    k: int = 10,
    query_id: str = "",
    evidence: Collection[str] = (),
    among: np.ndarray | None = None,
) -> dict[str, Any]:
    """Rank the turns of a scene for a question, and say of each that matters what it is.

    :param systems: a pipeline each, or a run that answers the question already.
    :param query_id: of a question that the bench holds; without it the question is asked anew.
    :param evidence: ids of the turns that answer it, where they are known.
    :param among: rows of the scene that count; the others are passed over.
    :returns: what the map draws, all of it fit for JSON: ``text``, ``x``, ``y``, ``evidence`` (rows
        of the scene), and ``systems``: ``name``, ``rows`` (``i``, ``rank``, ``score``, ``hit``,
        ``cosine``, ``words`` that it shares with the question, ``text``: its telling sentence) and
        ``missed``.
    """
    row_by_turn = dict(zip(scene.turns["turn_id"], range(scene.turns.height), strict=True))
    question_bench = single_question_bench(bench, scene.scope, text, query_id)
    if question_bench.query_vectors is None:
        raise DataError("this bench has no encoder to embed a question with; make it with one")
    question_vector = question_bench.query_vectors[:1]
    question_x, question_y = interpolate_positions(
        scene, question_vector, texts=[question_bench.queries["text"][0]]
    )[0].tolist()
    cosines = (scene.vectors @ question_vector[0]).round(4)
    evidence_rows = [row_by_turn[turn_id] for turn_id in evidence if turn_id in row_by_turn]
    counted_rows = set(range(len(row_by_turn)))
    if among is not None:
        counted_rows = set(among.tolist())
    question = _SceneQuestion(
        scene, text, _question_words_by_stem(text, bench), cosines, bench.language
    )
    system_views = []
    for system in systems:
        if isinstance(system, Run):
            run = system
            system_name = system.name
        else:
            run = pipeline(system).run(question_bench)
            system_name = system
        is_asked = pl.col("query_id") == question_bench.queries["query_id"][0]
        ranked = run.frame.filter(is_asked).sort("rank").select("doc_id", "score")
        hits = []
        for turn_id, score in ranked.iter_rows():
            if row_by_turn[turn_id] in counted_rows:
                hits.append((row_by_turn[turn_id], score))
        system_views.append({"name": system_name} | question.view(hits, evidence_rows, k))
    return {
        "text": text,
        "x": question_x,
        "y": question_y,
        "evidence": evidence_rows,
        "systems": system_views,
    }


def _question_words_by_stem(question_text: str, bench: Bench) -> dict[str, str]:
    """Give the words of a question by their stems, which turns are compared by."""
    words = question_text.split()
    word_by_stem: dict[str, str] = {}
    for word, stems in zip(words, tokenize(words, language=bench.language), strict=True):
        word_by_stem |= dict.fromkeys(stems, word)
    return word_by_stem


class _SceneQuestion(NamedTuple):
    """A question to the turns of a scene.

    :param word_by_stem: its words.
    :param cosines: its cosine with each turn.
    """

    scene: Scene
    text: str
    word_by_stem: Mapping[str, str]
    cosines: np.ndarray
    language: str

    def view(
        self, hits: Sequence[tuple[int, float]], evidence_rows: Sequence[int], k: int
    ) -> dict[str, Any]:
        """Give what the map shows of a ranking: the first k turns, and the evidence beyond them.

        :param hits: row of the scene and score of each ranked turn, best first.
        :param evidence_rows: rows of the turns that answer the question.
        """
        rank_by_row = {row: rank for rank, (row, _) in enumerate(hits, start=1)}
        shown_rows = [row for row, _ in hits[:k]]
        missed_rows = [row for row in evidence_rows if rank_by_row.get(row, k + 1) > k]
        texts = self.scene.turns["text"].gather([*shown_rows, *missed_rows]).to_list()
        sentences = snippets(texts, self.text, length=90, language=self.language)
        stems_of_texts = tokenize(texts, language=self.language)
        shown = []
        for rank, (row, score) in enumerate(hits[:k], start=1):
            shown.append(
                {
                    "i": row,
                    "rank": rank,
                    "score": round(score, 4),
                    "hit": row in evidence_rows,
                    "cosine": float(self.cosines[row]),
                    "words": self._words_shared_with_question(stems_of_texts[rank - 1]),
                    "text": sentences[rank - 1],
                }
            )
        missed = []
        for row, sentence in zip(missed_rows, sentences[len(shown_rows) :], strict=True):
            missed.append(
                {
                    "i": row,
                    "rank": rank_by_row.get(row),
                    "cosine": float(self.cosines[row]),
                    "text": sentence,
                }
            )
        scores = [[row, round(score, 4)] for row, score in hits[:1000]]
        return {"rows": shown, "missed": missed, "scores": scores}

    def _words_shared_with_question(self, stems: Sequence[str]) -> list[str]:
        """Give the first words of the question that a text has too, by their stems."""
        shared_stems = sorted(self.word_by_stem.keys() & set(stems))
        return [self.word_by_stem[stem].strip(".,?!") for stem in shared_stems[:6]]


def single_question_bench(bench: Bench, scope: str, text: str, query_id: str) -> Bench:
    """Give the bench with one question, which remembers how it was ranked.

    A bench that has this one alone is given as it is.
    """
    if not query_id:
        return bench.with_queries(pl.DataFrame({"scope": [scope], "text": [text]}))
    question_row = bench.queries["query_id"].index_of(query_id)
    if question_row is None:
        raise DataError(f"no question {query_id!r} on this bench")
    if bench.queries.height == 1:
        return bench
    return bench.with_query_rows(np.array([question_row]))
