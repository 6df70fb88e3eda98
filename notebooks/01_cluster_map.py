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
# # Do the evidence items of one answer share a cluster?
#
# On the committed sample (four invented memories, the questions with evidence in several sessions): partly. Pairs of evidence
# items share a cluster far more often than random turns of the same speaker do, but most pairs do not, and one answer spans
# several clusters. The first turns of dense retrieval concentrate more than chance, and reach about half of the clusters that
# hold evidence. The last cell has the numbers.
#
# Turns are encoded with their speaker's name. As they are encoded, a map shows who says something: the most similar turn is
# mostly one of the same speaker. Without what the turns of their speaker have in common (speaker-centred) it shows more of
# what is said ([concepts](../docs/concepts.md)).
#
# ![One question on both maps](../figures/gallery/sample-cluster-map.png)
#
# A common explanation of incomplete recall is that similarity concentrates on one cluster: retrieval finds one group of similar
# turns and stops. Below, the turns of each conversation are clustered, the evidence is drawn on the map, and the claim is
# tested against clusters that are permuted over the turns, and over the turns of each speaker.

# %% tags=["parameters"]
dataset = "../data/sample/sample.jsonl"
pool = None
language = None
seed = 0
encoder = "minilm"
store = "../.memlab/store"
figures = "../figures"
n_seeds = 3
k = 10

# %%
import polars as pl
from IPython.display import Markdown

import memlab
from memlab import cluster, evaluate
from memlab.evaluate import cluster_spread
from memlab.explorer.scene import both_maps
from memlab.figures import export, intervals, maps
from memlab.interval_labels import format_level

evaluate.show_tables()

# %%
data = memlab.datasets.load(dataset, pool=pool, seed=seed, language=language)
bench = memlab.Bench.of(data, encoder=encoder, store=store)
n_sessions, items = pl.col("evidence_sessions").list.n_unique(), pl.col("evidence").list.n_unique()
hard = data.questions.filter(n_sessions >= 2)
hard = hard if hard.height else data.questions.filter(items > 0)
hard.group_by("scope", maintain_order=True).agg(questions=pl.len(), items=items.mean(), sessions=n_sessions.mean())

# %% [markdown]
# ## One question on both maps
#
# Of the questions with three to eight evidence items, the one whose evidence lies in most sessions. A colour and a shape is a
# speaker.

# %%
chosen = hard.filter(items.is_between(3, 8)).sort(n_sessions, descending=True, maintain_order=True)
asked = pl.concat([chosen, hard]).head(1)
query_id, text = (asked[column][0] if asked.height else "" for column in ("query_id", "text"))
scope = asked["scope"][0] if asked.height else data.scopes[0]
points, questions = both_maps(bench, scope, query_id=query_id, k=k, seed=seed)
note = f"turns of {scope}, first {k} of dense retrieval; speaker-centred: less the mean of each speaker's turns"
fig = maps.speaker_maps(points, questions=questions, title=text, note=note)
fig

# %%
caption = f"The turns of {scope} (UMAP of {encoder} vectors as encoded, and speaker-centred), a question, its evidence "
caption += f"(stars) and the first {k} turns of dense retrieval."
made = {"provenance": dict(bench.provenance), "directory": figures}
export(fig, "cluster-map", data=points, caption=caption, **made)

# %% [markdown]
# How often a turn's most similar one is the same speaker's, by conversation, and how often a random one is:

# %%
cluster_spread.speaker_shares(bench)

# %% [markdown]
# The map to explore has speaker-centred clusters. Type another question or pick one, choose a pipeline, lasso turns and read
# them back as `explorer.selection`. Without a screen it is a picture ([explorer](../docs/explorer.md)).

# %%
places = points.filter(pl.col("panel") == points["panel"][-1])
explorer = memlab.explore(bench, "dense", scope=scope, k=k, seed=seed, places=places)
explorer.question = query_id
explorer

# %% [markdown]
# ## Clusters
#
# HDBSCAN after UMAP to five dimensions, each conversation by itself, by both kinds of vectors. The clusters depend on UMAP's
# seed: every number below is the mean over several. A turn in no cluster is a group of its own.

# %%
turns, seeds = bench.documents("turn"), range(seed, seed + n_seeds)
ways = {cluster_spread.AS_ENCODED: turns.vectors(), cluster_spread.CENTRED: turns.speaker_centred()}
labels = {way: cluster.scope_labels(turns.ids, rows, turns.spans, seeds=seeds) for way, rows in ways.items()}
first = memlab.pipeline("dense").run(bench).top(k).frame.select("query_id", turn_id="doc_id")
first = first.join(hard, on="query_id", how="semi", maintain_order="left")
evidence = hard.select("query_id", turn_id=pl.col("evidence").list.unique(maintain_order=True)).explode("turn_id")

# %% [markdown]
# ## The evidence and the first turns, beside clusters that know nothing of them
#
# The null hypothesis is that clusters know nothing of questions: the labels of a conversation's turns are permuted a thousand
# times. The control is stricter: labels are permuted over the turns of each speaker, so that clusters keep who says how much
# of them. Intervals of what is measured are over questions, those of permutations the middle of the draws.

# %%
table = cluster_spread.spread_table({"evidence": evidence, f"first {k}": first}, labels, data.turns, seed=seed)
table.filter((pl.col("vectors") == cluster_spread.CENTRED) | (pl.col("number") == cluster_spread.TOGETHER))

# %%
shares = table.filter(pl.col("number") != cluster_spread.SPANNED)
shares = shares.with_columns(row=pl.format("{}: {}, {}", "of", "number", "vectors"))
caption = f"How the evidence and the first {k} turns of dense retrieval lie in clusters, beside permuted clusters"
if shares.height:
    level = format_level(shares["level"][0])
    fig = intervals.mean_intervals(shares, rows="row", series="clusters", measure="share")
    export(fig, "cluster-spread", data=shares, caption=f"{caption} ({data.name}; {level} intervals).", **made)

# %% [markdown]
# ## Answer

# %% tags=["answer"]
reached = cluster_spread.share_of_clusters_reached(evidence, first, labels[cluster_spread.CENTRED])
Markdown("\n".join(f"- {line}" for line in cluster_spread.spread_sentences(table, k=k, reached=reached)))
