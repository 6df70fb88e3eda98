"""A scope on a map, and what a question draws there: evidence, hits, misses, what came instead.

Turns lie and cluster by what they are compared with each other by, their speaker-centred vectors. A
question has no speaker: the mean of the scope is subtracted from its vector before it is placed.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import polars as pl
from pydantic import BaseModel

from memlab import llm
from memlab.cluster import cluster_labels, project
from memlab.cluster.clusterers import NOISE
from memlab.cluster.density_clusters import place_among
from memlab.cluster.evidence_spread import nearest_same_speaker
from memlab.cluster.model_names import TERMS, name_clusters
from memlab.embed.speaker_centring import add_by_speaker
from memlab.errors import DataError, warn_user
from memlab.evaluate.cluster_spread import AS_ENCODED, CENTRED
from memlab.explorer.frame_filling import fill_frame
from memlab.explorer.stored_names import keep_names, stored_names
from memlab.pipelines import pipeline
from memlab.records import Run
from memlab.retrieve import Bench
from memlab.retrieve.cosine import scale_to_unit
from memlab.store.schemas import row_columns
from memlab.summaries.stored_trees import preferred_tree
from memlab.text.analysis import snippets, tokenize

_MAP, _MAP_VERSION = "map", 1
"""The task of requests whose answer is the labels of a map, which are computed by no model."""


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
    """

    scope: str
    turns: pl.DataFrame
    vectors: np.ndarray
    compared: np.ndarray
    origin: np.ndarray
    names: dict[int, str]
    sentences: dict[int, str] = field(default_factory=dict)
    named_by: str = ""


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
    :param service: who names clusters, see :func:`memlab.cluster.model_names.name_clusters`.
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
    first, last = documents.spans[scope]
    vectors = compared = documents.vectors()[first:last]
    origin = np.zeros(vectors.shape[1])
    if centred:
        compared = documents.speaker_centred()[first:last]
        origin = add_by_speaker(vectors, [""] * len(vectors)).scope_mean
    ids = pl.DataFrame({"turn_id": pl.Series(documents.ids[first:last], dtype=pl.String)})
    columns = ("turn_id", "session_id", "speaker", "timestamp", "text")
    turns = ids.join(bench.turns.select(columns), on="turn_id", maintain_order="left")
    if places is None:
        xy = fill_frame(project(compared, seed=seed))
    else:
        placed = ids.join(places, on="turn_id", how="left", maintain_order="left")
        if missing := placed["x"].null_count():
            raise DataError(
                f"{missing} turns of {scope!r} have no place in places=; lay them out again"
            )
        xy = placed.select("x", "y").to_numpy()
        centre = (xy.min(axis=0) + xy.max(axis=0)) / 2
        xy = (xy - centre) / max(float((xy.max(axis=0) - xy.min(axis=0)).max()) / 1.9, 1e-9)
    if places is not None and "label" in places.columns:
        labels = placed["label"].to_numpy()
    elif clustering is None:
        labels = np.full(len(compared), NOISE)
    else:
        request = clusters_request(bench, turns, clustering, seed=seed, centred=centred)
        found = recorded_clusters(request, service)
        if found is None:
            found = cluster_labels(compared, clustering, seed=seed)
        labels = found
    turns = turns.with_columns(
        x=pl.Series(xy[:, 0], dtype=pl.Float32),
        y=pl.Series(xy[:, 1], dtype=pl.Float32),
        label=pl.Series(labels),
    )
    scene = Scene(scope, turns, vectors, compared, origin, {})
    return name_scene(scene, bench, service)


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
    about = [part for row in turns.select("turn_id", "text").iter_rows() for part in row]
    return llm.Request(_MAP, _MAP_VERSION, (header, *about), "", MapClusters)


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


def name_scene(
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
    labels = scene.turns["label"].to_numpy()
    present = {label for label in labels.tolist() if label != NOISE}
    old = {label: name for label, name in (kept or {}).items() if label in present}
    known = stored_names(bench, scene.scope, service)
    named = name_clusters(
        scene.turns,
        labels,
        scene.compared,
        service=service,
        language=bench.language,
        only=present - old.keys(),
        known=known,
    )
    keep_names(bench, scene.scope, named, scene.turns, service)
    if named.note:
        warn_user(named.note)
    by_model = named.frame.filter(pl.col("writer") != TERMS)
    sentences = dict(by_model.select("label", "sentence").iter_rows())
    sentences |= {label: text for label, text in scene.sentences.items() if label in old}
    writers = [*by_model["writer"].unique(), scene.named_by]
    return replace(scene, names=named.names() | old, sentences=sentences, named_by=writers[0])


def summaries_above(bench: Bench, scope: str, turn_ids: Sequence[str]) -> pl.DataFrame:
    """Give the stored summaries that stand on some turns, those of the fewest turns first.

    :returns: ``kind``, ``start``, ``text``, ``topics``, ``turns`` (ids) and ``picked``, how many of
        the turns are below; no rows without a store, or where no rollup was written.
    """
    columns = ["kind", "start", "text", "topics", "turns"]
    store = bench.store
    if store is None or bench.name not in store.datasets()["name"]:
        empty = {name: row_columns("nodes")[name] for name in columns}
        return pl.DataFrame(schema={**empty, "picked": pl.UInt32()})
    rows = store.nodes.rows(bench.name, scopes=[scope])
    picked = pl.col("turns").list.set_intersection(list(turn_ids)).list.len()
    above = rows.with_columns(picked=picked).filter(pl.col("picked") > 0)
    kinds = above.partition_by("kind", maintain_order=True)
    chosen = pl.concat([above.clear(), *map(preferred_tree, kinds)])
    nearest = chosen.sort(pl.col("turns").list.len(), maintain_order=True)
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
    ranks = dict[str, int]()
    evidence = list[str]()
    if query_id:
        asked = single_question_bench(bench, scope, "", query_id)
        ranked = pipeline(system).run(asked).top(k).frame
        ranks = dict(ranked.select("doc_id", "rank").iter_rows())
        gold = bench.evidence("turn")
        if gold is not None:
            evidence = gold.frame.filter(query_id=query_id)["doc_id"].to_list()
    points = list[pl.DataFrame]()
    questions = list[tuple[str, float, float]]()
    for way, centred in ((AS_ENCODED, False), (CENTRED, True)):
        scene = build_scene(bench, scope, clustering=None, seed=seed, centred=centred)
        share, _ = nearest_same_speaker(scene.compared, scene.turns["speaker"].to_list())
        head = f"{way}: the most similar turn is the same speaker's for {share:.0%} of turns"
        own = pl.col("turn_id")
        rank = own.replace_strict(ranks, default=None, return_dtype=pl.Int32)
        columns = {"panel": pl.lit(head), "evidence": own.is_in(evidence), "rank": rank}
        points.append(scene.turns.drop("label").with_columns(**columns))
        if query_id:
            x, y = interpolate_positions(scene, asked.query_vectors[:1])[0].tolist()
            questions.append((head, x, y))
    places = {"panel": pl.String, "x": pl.Float64, "y": pl.Float64}
    return pl.concat(points), pl.DataFrame(questions, schema=places, orient="row")


def interpolate_positions(scene: Scene, vectors: np.ndarray) -> np.ndarray:
    """Place new texts on a map that was made without them, as :func:`place_among` does.

    Turns are speaker-centred; a text that nobody of the scope says is centred on the scope. It
    lands always in the same place.

    :param vectors: (n, d) unit rows, as they are encoded.
    :returns: (n, 2) float32.
    """
    rows = scale_to_unit(vectors - scene.origin)
    xy = scene.turns.select("x", "y").to_numpy()
    return place_among(rows, scene.compared, xy).astype(np.float32)


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
    rows = dict(zip(scene.turns["turn_id"], range(scene.turns.height), strict=True))
    asked = single_question_bench(bench, scene.scope, text, query_id)
    if asked.query_vectors is None:
        raise DataError("this bench has no encoder to embed a question with; make it with one")
    vector = asked.query_vectors[:1]
    x, y = interpolate_positions(scene, vector)[0].tolist()
    cosine = (scene.vectors @ vector[0]).round(4)
    spoken = text.split()
    stems = zip(spoken, tokenize(spoken, language=bench.language), strict=True)
    spelt = {stem: word for word, own in stems for stem in own}
    wanted = [rows[turn] for turn in evidence if turn in rows]
    counted = set(range(len(rows)))
    if among is not None:
        counted = set(among.tolist())
    drawn = []
    for system in systems:
        if isinstance(system, Run):
            run, name = system, system.name
        else:
            run, name = pipeline(system).run(asked), system
        ranked = run.frame.filter(pl.col("query_id") == asked.queries["query_id"][0]).sort("rank")
        kept = [
            (rows[doc], score)
            for doc, score in ranked.select("doc_id", "score").iter_rows()
            if rows[doc] in counted
        ]
        place = {i: rank for rank, (i, _) in enumerate(kept, start=1)}
        lost = [i for i in wanted if place.get(i, k + 1) > k]
        texts = scene.turns["text"].gather([*(i for i, _ in kept[:k]), *lost]).to_list()
        told = snippets(texts, text, length=90, language=bench.language)
        shared = [
            sorted(spelt.keys() & set(own)) for own in tokenize(texts, language=bench.language)
        ]
        hits = [
            {
                "i": i,
                "rank": rank,
                "score": round(score, 4),
                "hit": i in wanted,
                "cosine": float(cosine[i]),
                "words": [spelt[word].strip(".,?!") for word in shared[rank - 1][:6]],
                "text": told[rank - 1],
            }
            for rank, (i, score) in enumerate(kept[:k], start=1)
        ]
        missed = [
            {"i": i, "rank": place.get(i), "cosine": float(cosine[i]), "text": words}
            for i, words in zip(lost, told[len(hits) :], strict=True)
        ]
        scores = [[i, round(score, 4)] for i, score in kept[:1000]]
        drawn.append(
            {
                "name": name,
                "rows": hits,
                "missed": missed,
                "scores": scores,
            }
        )
    return {"text": text, "x": x, "y": y, "evidence": wanted, "systems": drawn}


def single_question_bench(bench: Bench, scope: str, text: str, query_id: str) -> Bench:
    """Give the bench with one question, which remembers how it was ranked.

    A bench that has this one alone is given as it is.
    """
    if not query_id:
        return bench.with_queries(pl.DataFrame({"scope": [scope], "text": [text]}))
    row = bench.queries["query_id"].index_of(query_id)
    if row is None:
        raise DataError(f"no question {query_id!r} on this bench")
    if bench.queries.height == 1:
        return bench
    return bench.with_rows(np.array([row]))
