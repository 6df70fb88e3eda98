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
# On the committed sample (four invented memories, 178 questions with evidence in several sessions, 95 % intervals):
#
# - Dense retrieval concentrates: of the first 10 turns the largest cluster holds 32.5 % [30.2 %, 35.2 %], with permuted
#   clusters 14.4 % [13.6 %, 15.3 %].
# - The evidence of one answer clusters too, but not in one cluster: it spans 2.64 [2.46, 2.81] clusters, permuted 3.37 [3.33,
#   3.40]; 28.4 % [23.2 %, 34.0 %] of its pairs share one, permuted 1.2 % [0.5 %, 2.3 %].
# - The first 10 reach 45.4 % [40.2 %, 50.5 %] of the clusters that hold evidence: what is missed lies in other clusters.
#
# ![The turns of one person, and the evidence of one question](../figures/gallery/sample-cluster-map.png)
#
# A common explanation of incomplete recall is that similarity concentrates on one cluster: retrieval finds one group of similar
# turns and stops. Below, the turns of each conversation are clustered, the evidence is drawn on the map, and the claim is
# tested against clusters that are permuted over the turns.

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
import numpy as np
import polars as pl
from IPython.display import Markdown

import memlab
from memlab import cluster, evaluate
from memlab.evaluate import significance
from memlab.figures import export, intervals

evaluate.show_tables()

# %%
data = memlab.datasets.load(dataset, pool=pool, seed=seed, language=language)
bench = memlab.Bench.of(data, encoder=encoder, store=store)
n_sessions, items = pl.col("evidence_sessions").list.n_unique(), pl.col("evidence").list.n_unique()
hard = data.questions.filter(n_sessions >= 2)
hard = hard if hard.height else data.questions.filter(items > 0)
hard.group_by("scope", maintain_order=True).agg(questions=pl.len(), items=items.mean(), sessions=n_sessions.mean())

# %% [markdown]
# ## One question on the map
#
# Of the questions with three to eight evidence items, the one whose evidence lies in most sessions. Type another question or
# pick one, choose a pipeline, lasso turns and read them back as `explorer.selection`. Without a screen it is a picture
# ([explorer](../docs/explorer.md)).

# %%
chosen = hard.filter(items.is_between(3, 8)).sort(n_sessions, descending=True, maintain_order=True)
chosen = chosen if chosen.height else hard
query_id, scope, text = chosen.select("query_id", "scope", "text").row(0)
explorer = memlab.explore(bench, "dense", scope=scope, k=k, seed=seed)
explorer.question = query_id
explorer

# %%
caption = f"The turns of {scope} (UMAP of {encoder} vectors, HDBSCAN clusters named by their terms), the question, its "
caption += f"evidence (stars) and the first {k} turns of dense retrieval."
made = {"provenance": dict(bench.provenance), "directory": figures}
_ = export(explorer.picture(), "cluster-map", caption=caption, **made)

# %% [markdown]
# ## Clusters
#
# HDBSCAN after UMAP to five dimensions, each conversation by itself. The clusters depend on UMAP's seed: every number below
# is the mean over several. A turn in no cluster is a group of its own.

# %%
turns = bench.documents("turn")
labels = cluster.scope_labels(turns.ids, turns.embeddings, turns.spans, seeds=range(seed, seed + n_seeds))
first = memlab.pipeline("dense").run(bench).top(k).frame.select("query_id", turn_id="doc_id")
first = first.join(hard, on="query_id", how="semi", maintain_order="left")
evidence = hard.select("query_id", turn_id=pl.col("evidence").list.unique(maintain_order=True)).explode("turn_id")

# %% [markdown]
# ## The evidence and the first turns, beside clusters that know nothing of them
#
# The null hypothesis is that clusters know nothing of questions: the labels of a conversation's turns are permuted a thousand
# times. Intervals are bootstrapped over questions; four conversations are too few to resample, so they say nothing about other
# people.

# %%
numbers, rows = ("clusters spanned", "share in the largest cluster", "pairs that share a cluster"), []
for what, sets in (("evidence", evidence), (f"first {k}", first)):
    spread, null = cluster.observed_and_null_spread(sets, labels, seed=seed)
    for i in np.flatnonzero(np.isfinite(spread).any(axis=0)):
        found = significance.compare_with_null(spread[:, i], null[:, :, i], seed=seed)
        rows.append({"of": what, "number": numbers[i], **found})
table = pl.DataFrame(rows)
table

# %%
ends = [pl.struct(mean=a, low=f"{b}low", high=f"{b}high") for a, b in (("mean", ""), ("chance", "chance_"))]
shares = table.filter(pl.col("number") != numbers[0]).with_columns(measured=ends[0], permuted=ends[1])
shares = shares.unpivot(["measured", "permuted"], index=["of", "number", "n"], variable_name="clusters").unnest("value")
shares = shares.with_columns(row=pl.format("{}: {}", "of", "number"))
fig = intervals.mean_intervals(shares, rows="row", series="clusters", measure="share")
caption = f"How the evidence and the first {k} turns of dense retrieval lie in clusters, beside permuted clusters"
export(fig, "cluster-spread", data=shares, caption=f"{caption} ({data.name}; 95 % intervals).", **made)

# %% [markdown]
# Of the clusters that hold evidence of a question, how many do the first turns reach?

# %%
group = pl.when(pl.col("label") < 0).then("turn_id").otherwise(pl.col("label").cast(pl.String)).alias("group")
of = [sets.join(labels, on="turn_id").select("query_id", "draw", group).unique() for sets in (evidence, first)]
hit = of[0].join(of[1].with_columns(hit=1), on=["query_id", "draw", "group"], how="left")
reached = hit.group_by("query_id", maintain_order=True).agg(pl.col("hit").is_not_null().mean())["hit"].sort().to_numpy()
low, high = significance.bootstrap_interval(reached[:, None], seed=seed)

# %% [markdown]
# ## Answer

# %%
said = {(row["of"], row["number"]): row for row in rows}
percent = "{mean:.1%} [{low:.1%}, {high:.1%}], permuted {chance:.1%} [{chance_low:.1%}, {chance_high:.1%}]"
plain = "{mean:.2f} clusters [{low:.2f}, {high:.2f}], permuted {chance:.2f} [{chance_low:.2f}, {chance_high:.2f}]"
lines = [f"- Of the first {k} turns the largest cluster holds {percent.format(**said[f'first {k}', numbers[1]])}."]
lines += [f"- The evidence of a question spans {plain.format(**said['evidence', numbers[0]])}."]
if ("evidence", numbers[2]) in said:
    lines += [f"- Of the pairs of its items, share a cluster: {percent.format(**said['evidence', numbers[2]])}."]
lines += [f"- The first {k} reach {reached.mean():.1%} [{low[0]:.1%}, {high[0]:.1%}] of the clusters with evidence."]
Markdown("\n".join(lines))
