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
# # How much of a memory must one take to have all evidence of an answer in one branch?
#
# On the committed sample (four invented memories, the questions with evidence in several sessions): in the average-linkage tree
# of the turns, about half of the memory on average, and for a third of the questions less than a tenth; random turns of the same
# speakers need nearly all of it. The last cell has the numbers.
#
# ![The tree of one memory with the evidence of one question](../figures/gallery/sample-evidence-tree.png)
#
# A tree joins the turns of a conversation two groups at a time, the most similar first; no number of clusters is chosen. Where
# the evidence of a question meets says how near it lies: the lowest branch that holds all of it is the least that one could
# take. Turns are encoded with their speaker's name, and as they are encoded a tree joins who says something. Without what the
# turns of their speaker have in common (speaker-centred) it joins what is said ([concepts](../docs/concepts.md)).

# %% tags=["parameters"]
dataset = "../data/sample/sample.jsonl"
part = {}  # of the dataset: pool, scopes
language = None
seed = 0
encoder = "minilm"
service = "recorded"  # who names clusters: recorded answers, a service, or None for their terms
store = "../.memlab/store"
figures = "../figures"
n_seeds = 3
k = 10

# %%
import polars as pl

import memlab
from memlab import evaluate
from memlab.evaluate import cluster_spread, evidence_tree, groups_of_questions
from memlab.evaluate.printed_tables import select_columns_with_sources
from memlab.explorer.map_scene import both_maps
from memlab.figures import condensed_tree, export, maps

evaluate.show_tables()

# %%
data = memlab.datasets.load(dataset, **part, seed=seed, language=language)
bench = memlab.Bench.of(data, encoder=encoder, store=store)
hard = groups_of_questions.keep_multi_session_questions(data.questions)
evidence = groups_of_questions.list_evidence_items(hard)
first = memlab.pipeline("dense").run(bench).top(k).frame.select("query_id", turn_id="doc_id")
items, sessions = (pl.col(name).list.n_unique().mean() for name in ("evidence", "evidence_sessions"))
hard.group_by("scope", maintain_order=True).agg(questions=pl.len(), items=items, sessions=sessions)

# %% [markdown]
# ## One question in the tree
#
# Of the questions with three to eight evidence items, one whose branch is the nearest to the mean. Average linkage joins groups
# by the mean similarity of their turns; single linkage, as in HDBSCAN, by their two most similar turns, and grows one chain.
# Branches of fewer than five turns are left out; a branch is as wide as it has turns. The largest of those that part no further
# have names, which a language model gave; where none is recorded, they are what sets the branch apart.

# %%
asked = evidence_tree.choose_typical_question(hard, bench)
query_id, text = (asked[column][0] if asked.height else "" for column in ("query_id", "text"))
scope = asked["scope"][0] if asked.height else data.scopes[0]
own, hits = (turns.filter(query_id=query_id)["turn_id"].to_list() for turns in (evidence, first))
boxes, leaves = evidence_tree.boxes_and_leaves_of_trees(bench, scope, own, retrieved=hits, seed=seed, service=service)
note = f"turns of {scope}, speaker-centred; first {k} of dense retrieval"
fig = condensed_tree.condensed_tree(boxes, leaves, title=text, note=note)
fig

# %%
made = {"provenance": dict(bench.provenance), "directory": figures}
caption = f"The turns of {scope}, joined by average and by single linkage ({encoder}, speaker-centred), and where a question's evidence meets."
export(fig, "evidence-tree", data=leaves, caption=caption, **made)

# %% [markdown]
# ## All questions
#
# The branch that holds all evidence of a question, as a share of its memory, beside random turns: the turns of a conversation
# are permuted a thousand times, within each speaker, and within the sessions of each speaker. Intervals of what is measured are
# over questions, those of permutations the middle of the draws.

# %%
merges = evidence_tree.evidence_merge_table(evidence, bench, seed=seed)
average = merges.filter(linkage="average")
select_columns_with_sources(average, "vectors", "number", "turns", "n", "mean", "low", "high", "median")

# %% [markdown]
# ## The question, and what is missed
#
# HDBSCAN after UMAP to five dimensions, each conversation by itself, the mean over several seeds. Does a question fall into a
# cluster of its evidence? And is the evidence that dense retrieval misses an outlier (GLOSH, from 0 in the middle of a group
# to 1)?

# %%
seeds = range(seed, seed + n_seeds)
found = evidence_tree.density_clusters_by_seed_and_scope(bench, seeds=seeds)
places = evidence_tree.question_placement_table(evidence, bench, found, seed=seed)
outliers = evidence_tree.evidence_outlier_table(evidence, first, bench, found, seed=seed)
select_columns_with_sources(places, "number", "turns", "n", "mean", "low", "high", "p")

# %% [markdown]
# ## The same question on two maps
#
# A colour and a shape is a speaker.

# %%
points, questions = both_maps(bench, scope, query_id=query_id, k=k, seed=seed)
note = f"{points.height // 2:,} turns of {scope}; both maps mark the same first {k} of dense retrieval as encoded"
note += "; speaker-centred: less the mean of each speaker's turns"
fig = maps.speaker_maps(points, questions=questions, title=text, note=note)
caption = f"The turns of {scope} (UMAP of {encoder} vectors as encoded, and speaker-centred), a question, its evidence (stars) and the first {k} turns of dense retrieval."
export(fig, "cluster-map", data=points, caption=caption, **made)
fig

# %% [markdown]
# The map to explore has speaker-centred clusters, named as the branches are. Type another question or pick one, choose a pipeline,
# lasso turns and read them back as `explorer.selection`. Without a screen it is a picture ([explorer](../docs/explorer.md)).

# %%
places_on_map = points.filter(pl.col("panel") == points["panel"][-1])
explorer = memlab.explore(bench, "dense", scope=scope, k=k, seed=seed, places=places_on_map, service=service)
explorer.question = query_id
explorer

# %% [markdown]
# ## The spread over clusters
#
# How many clusters the evidence of a question spans, and which share of them the first turns reach.

# %%
labels = evidence_tree.cluster_label_table(bench, found, seeds)
spread = cluster_spread.spread_table({"evidence": evidence}, {cluster_spread.CENTRED: labels}, data.turns, seed=seed)
reached = cluster_spread.shares_of_evidence_clusters_reached(evidence, first, labels)

# %% [markdown]
# ## Answer

# %% tags=["answer"]
evidence_tree.conclude_on_trees_and_clusters(merges, places, outliers, spread, k=k, reached_shares=reached)
