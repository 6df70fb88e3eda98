# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#     text_representation:
#       extension: .py
#       format_name: percent
#       format_version: '1.3'
#       jupytext_version: 1.19.6
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Do the pieces of one answer share a cluster?
#
# The common explanation of incomplete recall is that similarity concentrates on one cluster: retrieval finds one
# group of alike turns and stops. This notebook clusters the turns of each conversation, draws the evidence on the
# map, and tests the claim with numbers, each beside what chance would give.

# %% tags=["parameters"]
dataset = "../data/sample/sample.jsonl"
pool = None
language = None
seed = 0
encoder = "minilm"
store = "../.memlab/store"
figures = "../figures"
n_scopes = 6
n_seeds = 3
k = 10

# %%
import numpy as np
import polars as pl
from IPython.display import Markdown, display

import memlab
from memlab import cluster, evaluate
from memlab.figures import anatomy, export, maps, selection, similarity

_ = pl.Config(float_precision=3, fmt_str_lengths=80, tbl_rows=20)

# %%
data = memlab.datasets.load(dataset, pool=pool, seed=seed, language=language)
questions = evaluate.describe_questions(data, "turn")
several = pl.col("n_evidence_sessions") >= 2
if not questions.filter(several).height:
    several = pl.lit(True)
ranked_scopes = questions.filter(several).group_by("scope", maintain_order=True).len().sort("len", descending=True)
data = data.take(ranked_scopes["scope"].head(n_scopes).sort().to_list())
hard = questions.filter(several & pl.col("scope").is_in(data.scopes)).sort("n_evidence_sessions", descending=True)
bench = memlab.Bench.of(data, encoder=encoder, store=store)
bench.store

# %% [markdown]
# ## Clusters
#
# HDBSCAN after UMAP to five dimensions, each conversation by itself. The clusters depend on UMAP's seed, so every
# number below is measured for several seeds.

# %%
turns = bench.documents("turn")
labelled = [
    pl.DataFrame({"turn_id": pl.Series(turns.ids[first:last], dtype=pl.String)}).with_columns(
        label=pl.Series(cluster.hdbscan_labels(turns.embeddings[first:last], seed=seed + draw)),
        scope=pl.lit(scope),
        draw=pl.lit(draw),
    )
    for scope, (first, last) in turns.spans.items()
    for draw in range(n_seeds)
]
labels = pl.concat(labelled)
labels.group_by("scope", "draw", maintain_order=True).agg(
    turns=pl.len(),
    clusters=pl.col("label").filter(pl.col("label") >= 0).n_unique(),
    noise=(pl.col("label") < 0).mean(),
    largest=pl.col("label").filter(pl.col("label") >= 0).unique_counts().max() / pl.len(),
)

# %% [markdown]
# ## One question on the map

# %%
chosen = hard.filter((pl.col("n_relevant") >= 3) & (pl.col("n_relevant") <= 8)).head(1)
chosen = chosen if chosen.height else hard.head(1)
query_id, scope = chosen.row(0, named=True)["query_id"], chosen.row(0, named=True)["scope"]
question = data.questions.filter(pl.col("query_id") == query_id).row(0, named=True)
first, last = turns.spans[scope]
of_scope = labels.filter((pl.col("scope") == scope) & (pl.col("draw") == 0))
place = cluster.project(turns.embeddings[first:last], seed=seed)
points = data.turns.select("turn_id", "session_id", "text").join(
    of_scope.with_columns(x=pl.Series(place[:, 0]), y=pl.Series(place[:, 1])), on="turn_id", how="inner"
)
points = points.with_columns(doc_id="turn_id", evidence=pl.col("turn_id").is_in(question["evidence"]))
terms = cluster.cluster_terms(points["text"].to_list(), points["label"].to_numpy())
fig = maps.embedding_map(points, terms=terms, title=question["text"])
caption = (
    f"The turns of {scope} (UMAP of {encoder} embeddings, HDBSCAN clusters named by c-TF-IDF) and the evidence of "
    f"“{question['text']}” (stars)."
)
shown = points.drop("text")
export(fig, "cluster-map", data=shown, caption=caption, provenance=dict(bench.provenance), directory=figures)

# %% [markdown]
# ## How many clusters does an answer span?
#
# A turn in no cluster counts as a group of its own. Chance is a set of as many random turns of the same conversation.

# %%
asked = data.questions.join(hard.select("query_id"), on="query_id", how="semi")
spans = pl.concat(
    [
        cluster.evidence_spans(asked, labels.filter(pl.col("draw") == draw), seed=seed).with_columns(draw=pl.lit(draw))
        for draw in range(n_seeds)
    ]
)
spans.group_by("draw", maintain_order=True).agg(
    questions=pl.len(),
    clusters=pl.col("n_clusters").mean(),
    by_chance=pl.col("expected_n_clusters").mean(),
    all_in_one=pl.col("same_cluster").mean(),
    pairs_together=pl.col("pair_share").mean(),
    pairs_by_chance=pl.col("expected_pair_share").mean(),
)

# %%
at_most = 6
counts = (
    spans.filter(pl.col("draw") == 0)
    .with_columns(clusters=pl.min_horizontal("n_clusters", at_most), chance=pl.col("expected_n_clusters").round(0))
    .with_columns(chance=pl.min_horizontal("chance", at_most).cast(pl.UInt32))
)
bars = (
    pl.DataFrame({"clusters": np.arange(1, at_most + 1)})
    .with_columns(
        count=pl.Series([counts.filter(pl.col("clusters") == n).height for n in range(1, at_most + 1)]),
        expected=pl.Series([counts.filter(pl.col("chance") == n).height for n in range(1, at_most + 1)]),
    )
    .with_columns(clusters=pl.col("clusters").cast(pl.String).replace(str(at_most), f"{at_most}+"))
)
fig = selection.spans(bars)
caption = (
    f"Clusters that the evidence of a question spans ({data.name}, n = {counts.height}), and as many random turns "
    "(rounded expectation of each question)."
)
export(fig, "cluster-spans", data=bars, caption=caption, provenance=dict(bench.provenance), directory=figures)

# %% [markdown]
# ## How much of the top k falls in one cluster?

# %%
run = memlab.pipeline("dense").run(bench)
run

# %%
top = pl.concat(
    [
        cluster.concentration(
            run.frame.join(hard.select("query_id"), on="query_id", how="semi"),
            labels.filter(pl.col("draw") == draw).select("turn_id", "label"),
            k=k,
            questions=asked,
            seed=seed,
        ).with_columns(draw=pl.lit(draw))
        for draw in range(n_seeds)
    ]
)
top.group_by("draw", maintain_order=True).agg(
    largest_share=pl.col("largest_share").mean(),
    by_chance=pl.col("expected_largest_share").mean(),
    in_evidence_clusters=pl.col("evidence_cluster_share").mean(),
    evidence_clusters_reached=pl.col("evidence_clusters_reached").mean(),
)

# %%
once = top.filter(pl.col("draw") == 0)
shares = pl.concat(
    [
        once.select("largest_share", system=pl.lit(f"dense, first {k}")),
        once.select(largest_share="expected_largest_share", system=pl.lit(f"{k} random turns, expected")),
    ]
)
fig = selection.concentration(shares, k=k)
caption = f"How much of the first {k} turns of dense retrieval lies in one cluster ({data.name}, n = {once.height})."
export(fig, "cluster-concentration", data=shares, caption=caption, provenance=dict(bench.provenance), directory=figures)

# %% [markdown]
# ## How alike are the pieces?

# %%
rows = data.questions.with_row_index("row").join(hard.select("query_id"), on="query_id", how="semi")["row"].to_numpy()
pairs = cluster.pair_similarity(
    turns.embeddings, turns.ids.tolist(), asked, question_embeddings=bench.query_vectors[rows], seed=seed
)
fig = similarity.evidence_similarity(pairs)
caption = (
    f"Cosine of {encoder} embeddings: pieces of one answer, random turns, the question ({data.name}, n = {len(rows)})."
)
export(fig, "similarity-structure", data=pairs, caption=caption, provenance=dict(bench.provenance), directory=figures)

# %%
hits, misses = evaluate.dissect(run, data, query_id, k=15)
distractors = run.frame.filter((pl.col("query_id") == query_id) & ~pl.col("doc_id").is_in(question["evidence"])).head(6)
members = question["evidence"][:6] + distractors["doc_id"].to_list()
vectors = turns.embeddings[turns.at(pl.Series(members, dtype=pl.String))]
texts = dict(data.turns.select("turn_id", "text").iter_rows())
is_evidence = [member in question["evidence"] for member in members]
fig = similarity.evidence_matrix(
    vectors @ vectors.T, [texts[member] for member in members], evidence=is_evidence, title=question["text"]
)
caption = f"Cosine among the evidence (★) of “{question['text']}” and the turns that dense retrieval puts first."
export(fig, "similarity-matrix", caption=caption, provenance=dict(bench.provenance), directory=figures)

# %%
fig = anatomy.question_anatomy(hits, misses=misses, question=question["text"], system="dense")
caption = f"The first 15 turns of dense retrieval for “{question['text']}”, and the evidence it misses."
export(fig, "question-anatomy", caption=caption, provenance=dict(bench.provenance), directory=figures)

# %% [markdown]
# ## Answer

# %%
median = dict(pairs.group_by("kind").agg(pl.col("similarity").median()).iter_rows())
share, chance = top["largest_share"].mean(), top["expected_largest_share"].mean()
together, together_chance = spans["pair_share"].mean(), spans["expected_pair_share"].mean()
other, random = median.get("evidence, other session"), median["evidence – random"]
apart = f"{other:.2f}" if other is not None else "not defined (no answer spans sessions)"
concentrates = share > 2 * chance
shared = "no answer has two pieces to compare"
if together is not None:
    shared = (
        f"{together:.1%} of its pairs share a cluster (chance {together_chance:.1%}), and all pieces do for "
        f"{spans['same_cluster'].mean():.1%} of the questions"
    )
display(
    Markdown(
        f"Over {asked.height} questions and {n_seeds} clusterings: an answer of {spans['n_evidence'].mean():.1f} pieces "
        f"spans {spans['n_clusters'].mean():.1f} clusters (chance {spans['expected_n_clusters'].mean():.1f}); "
        f"{shared}. The largest cluster holds {share:.1%} of the first {k} (chance {chance:.1%}). “Similarity "
        "concentrates on one cluster” is "
        f"{'supported' if concentrates else 'not supported'} here in the sense that the top {k} is "
        f"{share / chance:.1f} times as concentrated as chance, and half of it or more lies in one cluster for "
        f"{(top['largest_share'] >= 0.5).mean():.1%} of the questions. {top['evidence_clusters_reached'].mean():.1%} of "
        f"the clusters that hold evidence are reached. Pieces of one answer in different sessions have a median cosine "
        f"of {apart}, random turns of {random:.2f}."
    )
)
