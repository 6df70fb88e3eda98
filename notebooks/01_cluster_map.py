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
# On the committed sample (four invented memories, 178 questions with evidence in several sessions, 95 % intervals):
#
# - Dense retrieval concentrates: the largest cluster holds 34.1 % [31.6 %, 36.9 %] of the first ten turns, with
#   permuted clusters 15.1 % [14.2 %, 16.2 %]. Half of the ten or more lies in one cluster for 21.0 % [15.9 %, 26.6 %]
#   of the questions.
# - The evidence of one answer clusters too, but not in one cluster: its 3.4 items span 2.60 [2.43, 2.77] clusters,
#   permuted 3.36 [3.31, 3.39]; 29.4 % [24.3 %, 34.9 %] of its pairs share one, permuted 1.5 % [0.6 %, 2.6 %].
# - The first ten reach 45.5 % [40.4 %, 50.9 %] of the clusters that hold evidence: what is missed lies in other ones.
#
# ![The turns of one person, and the evidence of one question](../figures/gallery/sample-cluster-map.png)
#
# The common explanation of incomplete recall is that similarity concentrates on one cluster: retrieval finds one group of
# alike turns and stops. Below, the turns of each conversation are clustered, the evidence is drawn on the map, and the
# claim is tested against clusters that were permuted over the turns.

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

# %% jupyter={"source_hidden": true}
import numpy as np
import polars as pl
from IPython.display import Markdown, display

import memlab
from memlab import cluster, evaluate
from memlab.figures import anatomy, export, maps, selection, similarity
from memlab.terminal import markdown

evaluate.show_tables()

# %% jupyter={"source_hidden": true}
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

# %% jupyter={"source_hidden": true}
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
#
# An example is chosen by a rule: of the questions with three to eight pieces of evidence the one whose evidence lies in
# most sessions; of several, the first in the file.

# %% jupyter={"source_hidden": true}
chosen = hard.filter((pl.col("n_relevant") >= 3) & (pl.col("n_relevant") <= 8)).head(1)
chosen = chosen if chosen.height else hard.head(1)
query_id, scope = chosen.row(0, named=True)["query_id"], chosen.row(0, named=True)["scope"]
question = data.questions.filter(pl.col("query_id") == query_id).row(0, named=True)
first, last = turns.spans[scope]
of_scope = labels.filter((pl.col("scope") == scope) & (pl.col("draw") == 0))
asks = bench.query_vectors[data.questions["query_id"].index_of(query_id)]
place = cluster.project(np.vstack([turns.embeddings[first:last], asks]), seed=seed)
points = data.turns.select("turn_id", "session_id", "speaker", "text").join(
    of_scope.with_columns(x=pl.Series(place[:-1, 0]), y=pl.Series(place[:-1, 1])), on="turn_id", how="inner"
)
run = memlab.pipeline("dense").run(bench)
ranks = run.frame.filter((pl.col("query_id") == query_id) & (pl.col("rank") <= k)).select("rank", turn_id="doc_id")
points = points.join(ranks, on="turn_id", how="left", maintain_order="left")
points = points.with_columns(doc_id="turn_id", evidence=pl.col("turn_id").is_in(question["evidence"]))
terms = cluster.cluster_terms(
    points["text"].to_list(),
    points["label"].to_numpy(),
    speakers=points["speaker"].to_list(),
    language=data.language,
)
fig = maps.embedding_map(points, terms=terms, question=(place[-1, 0], place[-1, 1]), title=question["text"])
caption = (
    f"The turns of {scope} (UMAP of {encoder} embeddings, HDBSCAN clusters named by c-TF-IDF), the question "
    f"“{question['text']}”, its evidence (stars) and the first {k} turns of dense retrieval. Of the questions with three "
    "to eight pieces it is the first whose evidence lies in most sessions."
)
shown = points.drop("text")
export(fig, "cluster-map", data=shown, caption=caption, provenance=dict(bench.provenance), directory=figures)

# %% [markdown]
# The same map to play with: pick or type a question, lasso turns, and read them back as `explorer.selection`. Where no screen is,
# it is a picture. More in `docs/explorer.md`.

# %% jupyter={"source_hidden": true}
places = points.select("turn_id", "x", "y", "label")
explorer = memlab.explore(bench, "dense", scope=scope, places=places, seed=seed)
explorer

# %% [markdown]
# ## Do the pieces of one answer lie together?
#
# A turn in no cluster counts as a group of its own. The null hypothesis: clusters know nothing of answers. Its
# distribution: the labels of a conversation's turns are permuted, a thousand times. Numbers are averaged over the
# clusterings, question by question; 95 % intervals are bootstrapped over questions. Four or six conversations are too few
# to resample: these intervals say nothing about other people.

# %% jupyter={"source_hidden": true}
asked = data.questions.join(hard.select("query_id"), on="query_id", how="semi")
names = ["clusters spanned", "largest share", "pairs together"]
sets = asked.select("query_id", turn_id=pl.col("evidence").list.unique(maintain_order=True)).explode("turn_id")
sets = sets.join(labels, on="turn_id", how="semi", maintain_order="left")
lies, at_random = cluster.permuted_spread(sets, labels, seed=seed)
evidence_rows = [
    {"of the evidence": name, **evaluate.against_null(lies[:, i], at_random[:, :, i], seed=seed)}
    for i, name in enumerate(names)
    if np.isfinite(lies[:, i]).any()
]
pl.DataFrame(evidence_rows)

# %% jupyter={"source_hidden": true}
at_most = 6
first_draw = labels.filter(pl.col("draw") == 0).drop("draw")
once, once_random = cluster.permuted_spread(sets, first_draw, seed=seed)
n_spanned = np.arange(1, at_most + 1)
counts = (np.minimum(once[:, :1].round(), at_most) == n_spanned).sum(axis=0)
null_counts = (np.minimum(once_random[:, :, :1].round(), at_most) == n_spanned).sum(axis=1)
bars = pl.DataFrame(
    {
        "clusters": [str(n) if n < at_most else f"{n}+" for n in n_spanned],
        "count": counts,
        "expected": null_counts.mean(axis=0),
        "expected_low": np.quantile(null_counts, 0.025, axis=0),
        "expected_high": np.quantile(null_counts, 0.975, axis=0),
    }
)
fig = selection.spans(bars)
caption = (
    f"Clusters that the evidence of a question spans ({data.name}, n = {len(once)}), and after permuting the clusters of "
    "the turns (mean and middle 95 % of 1,000 permutations)."
)
export(fig, "cluster-spans", data=bars, caption=caption, provenance=dict(bench.provenance), directory=figures)

# %% [markdown]
# ## Do the first k lie in one cluster?

# %% jupyter={"source_hidden": true}
run = memlab.pipeline("dense").run(bench)
firsts = run.frame.join(hard.select("query_id"), on="query_id", how="semi").filter(pl.col("rank") <= k)
firsts = firsts.select("query_id", turn_id="doc_id")
top, top_random = cluster.permuted_spread(firsts, labels, seed=seed)
top_rows = [
    {f"of the first {k}": name, **evaluate.against_null(top[:, i], top_random[:, :, i], seed=seed)}
    for i, name in enumerate(names)
]
pl.DataFrame(top_rows)

# %% jupyter={"source_hidden": true}
permuted = top_random[:, :, 1]
drawn = np.repeat(np.arange(len(permuted)), permuted.shape[1])
shares = pl.concat(
    [
        pl.DataFrame({"largest_share": top[:, 1], "system": f"dense, first {k}"}),
        pl.DataFrame({"largest_share": permuted.ravel(), "draw": drawn, "system": f"{k} turns, clusters permuted"}),
    ],
    how="diagonal",
)
fig = selection.concentration(shares, k=k)
caption = (
    f"How much of the first {k} turns of dense retrieval lies in one cluster ({data.name}, n = {len(top)} questions, mean "
    f"of {n_seeds} clusterings; band: 95 % Wilson intervals), and after permuting the clusters of the turns 1,000 times "
    "(band: the middle 95 %)."
)
shares = shares.group_by("system", "largest_share", maintain_order=True).len()
export(fig, "cluster-concentration", data=shares, caption=caption, provenance=dict(bench.provenance), directory=figures)

# %% [markdown]
# Of the clusters that hold a question's evidence, how many does the top reach, and how often is half of it in one?

# %% jupyter={"source_hidden": true}
noise = pl.col("label") < 0
group = pl.when(noise).then("turn_id").otherwise(pl.col("label").cast(pl.String))
of_evidence, of_first = (
    its.join(labels, on="turn_id", maintain_order="left").select("query_id", "draw", group=group)
    for its in (sets, firsts)
)
per_draw = ["query_id", "draw"]
held = of_evidence.unique(maintain_order=True)
held = held.join(of_first.unique().with_columns(hit=True), on=[*per_draw, "group"], how="left", maintain_order="left")
held = held.group_by(per_draw, maintain_order=True).agg(reached=pl.col("hit").is_not_null().mean())
half = of_first.group_by(per_draw).agg(half=pl.col("group").unique_counts().max() / pl.len() >= 0.5)
reached = held.join(half, on=per_draw, maintain_order="left").group_by("query_id", maintain_order=True)
reached = reached.agg(pl.col("reached", "half").mean())
low, high = evaluate.bootstrap_interval(reached.select("reached", "half").to_numpy(), seed=seed)
reach = pl.DataFrame(
    {
        "share": ["clusters with evidence reached", f"half of the first {k} or more in one cluster"],
        "n": [reached.height] * 2,
        "mean": reached.select("reached", "half").mean().row(0),
        "low": low,
        "high": high,
    }
)
reach

# %% [markdown]
# ## How alike are the pieces?

# %% jupyter={"source_hidden": true}
rows = data.questions.with_row_index("row").join(hard.select("query_id"), on="query_id", how="semi")["row"].to_numpy()
pairs = cluster.pair_similarity(
    turns.embeddings,
    turns.ids.tolist(),
    asked,
    question_embeddings=bench.query_vectors[rows],
    turns=data.turns,
    seed=seed,
)
fig = similarity.evidence_similarity(pairs)
caption = (
    f"Cosine of {encoder} embeddings: pieces of one answer, random turns, the question ({data.name}, n = {len(rows)})."
)
export(fig, "similarity-structure", data=pairs, caption=caption, provenance=dict(bench.provenance), directory=figures)

# %% jupyter={"source_hidden": true}
hits, misses = evaluate.dissect(run, data, query_id, k=15)
distractors = run.frame.filter((pl.col("query_id") == query_id) & ~pl.col("doc_id").is_in(question["evidence"])).head(5)
members = question["evidence"][:5] + distractors["doc_id"].to_list()
vectors = turns.embeddings[turns.at(pl.Series(members, dtype=pl.String))]
texts = dict(data.turns.select("turn_id", "text").iter_rows())
is_evidence = [member in question["evidence"] for member in members]
cosines = vectors @ vectors.T
fig = similarity.evidence_matrix(
    cosines, [texts[member] for member in members], evidence=is_evidence, title=question["text"]
)
of_all = f"{sum(is_evidence)} of {len(question['evidence'])} pieces of evidence (★)"
caption = (
    f"Cosine among {of_all} of “{question['text']}” and the first {distractors.height} other turns of dense retrieval."
)
shown = pl.DataFrame(cosines, schema=members).insert_column(0, pl.Series("turn_id", members))
export(fig, "similarity-matrix", data=shown, caption=caption, provenance=dict(bench.provenance), directory=figures)

# %% jupyter={"source_hidden": true}
fig = anatomy.question_anatomy(hits, misses=misses, question=question["text"], system="dense")
caption = (
    f"The first 15 turns of dense retrieval for “{question['text']}”, and the evidence it misses; in colour: sessions that hold "
    "evidence."
)
shown = pl.concat([hits, misses.with_columns(evidence=pl.lit(True))], how="diagonal_relaxed")
export(fig, "question-anatomy", data=shown, caption=caption, provenance=dict(bench.provenance), directory=figures)

# %% [markdown]
# ## Answer

# %% jupyter={"source_hidden": true}
likeness = (
    pairs.group_by("kind", "query_id", maintain_order=True)
    .agg(pl.col("similarity").mean())
    .pivot("kind", index="query_id", values="similarity")
)
largest = top_rows[1]
lines = [
    f"- {markdown(data.name)}, {asked.height} questions, {n_seeds} clusterings of each conversation: the largest cluster holds "
    f"{largest['mean']:.1%} [{largest['low']:.1%}, {largest['high']:.1%}] of the first {k}, with permuted clusters "
    f"{largest['chance']:.1%} [{largest['chance_low']:.1%}, {largest['chance_high']:.1%}], p = {largest['p']:.3f}; half or more "
    f"of it for {reach['mean'][1]:.1%} [{reach['low'][1]:.1%}, {reach['high'][1]:.1%}] of the questions."
]
if len(evidence_rows) == 3:
    spanned, together = evidence_rows[0], evidence_rows[2]
    lines.append(
        f"- An answer of {sets.height / asked.height:.1f} pieces spans {spanned['mean']:.2f} [{spanned['low']:.2f}, "
        f"{spanned['high']:.2f}] clusters, permuted {spanned['chance']:.2f} [{spanned['chance_low']:.2f}, "
        f"{spanned['chance_high']:.2f}]; {together['mean']:.1%} [{together['low']:.1%}, {together['high']:.1%}] of its pairs "
        f"share one, permuted {together['chance']:.1%} [{together['chance_low']:.1%}, {together['chance_high']:.1%}], p = "
        f"{together['p']:.3f}."
    )
lines.append(
    f"- Of the clusters that hold evidence the first {k} reach {reach['mean'][0]:.1%} [{reach['low'][0]:.1%}, "
    f"{reach['high'][0]:.1%}]."
)
if "evidence, other session" in likeness.columns:
    apart = likeness.drop_nulls("evidence, other session")
    columns = apart.select("evidence, other session", "evidence – random").to_numpy()
    low, high = evaluate.bootstrap_interval(columns, seed=seed)
    lines.append(
        f"- Two pieces of one answer in different sessions have a cosine of {columns[:, 0].mean():.2f} [{low[0]:.2f}, "
        f"{high[0]:.2f}], a piece and a random turn {columns[:, 1].mean():.2f} [{low[1]:.2f}, {high[1]:.2f}] (means of "
        f"{len(columns)} questions)."
    )
display(Markdown("\n".join(lines)))
