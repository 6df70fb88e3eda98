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
# # What do summaries of sessions, weeks and themes keep, and do they help to find the evidence?
#
# OPENING
#
# ![The weeks of a memory with their topics](../figures/gallery/sample-rollups-time.png)
#
# A language model has summarised each session, each week from its sessions and the week before, each month from its weeks,
# and clusters of turns on one theme wherever they stand. Every sentence names the turns that it stands on. This notebook
# reads them, counts how much of the evidence they still cite, and searches through them.

# %% tags=["parameters"]
dataset = "../data/sample/sample.jsonl"
pool = None
language = None
seed = 0
encoder = "minilm"
store = "../.memlab/store"
figures = "../figures"
service = "recorded"  # who writes the summaries: recorded answers, a service of the settings, or None for no model
themes_of = ["nadia", "owen"]  # memories of which clusters of turns are summarised too
k = 10
tz = "UTC"  # where weeks begin

# %%
from dataclasses import replace

import polars as pl
from IPython.display import Markdown, display
from scipy.stats import binomtest

import memlab
from memlab import evaluate, summaries
from memlab.figures import export, follow_ups, rollup, selection

evaluate.show_tables()

# %%
data = memlab.datasets.load(dataset, pool=pool, seed=seed, language=language)
bench = memlab.Bench.of(data, encoder=encoder, store=store)
nodes = pl.concat(tree.nodes for tree in summaries.trees_of(bench, "weeks", service=service, tz=tz).values())
about = {"provenance": dict(bench.provenance) | {"service": service}, "directory": figures}
scope = data.scopes[0]
data

# %% [markdown]
# ## A memory in time
#
# Months and their weeks, each with its topics.

# %%
above = nodes.filter(pl.col("kind") != "session", scope=scope)
labels = [f"{summaries.period_name(row, tz=tz)}: {', '.join(row['topics'])}" for row in above.to_dicts()]
boxes = above.select("node_id", "parent", "kind", label=pl.Series(labels), n_turns=pl.col("turns").list.len())
fig = rollup.icicle(boxes)
caption = f"Months and weeks of {scope} with their topics ({data.name}; weeks begin on Monday, {tz})."
export(fig, "rollups-time", data=boxes, caption=caption, **about)

# %% [markdown]
# ## A week to read
#
# The week that carries on most, as `memlab rollup SCOPE --week DATE` prints it. The ids are those of the turns that a
# sentence stands on.

# %%
weeks = nodes.filter(kind="week").sort(pl.col("carried_on").list.len(), descending=True, maintain_order=True)
Markdown(summaries.to_markdown(weeks.row(0, named=True), tz=tz))

# %% [markdown]
# What this memory carried on from one week to the next:

# %%
carried = nodes.filter(kind="week", scope=weeks["scope"][0]).explode("carried_on").drop_nulls("carried_on")
carried.select(first_day="start", carried_on="carried_on").head(12)

# %% [markdown]
# ## What the summaries still cite
#
# The share of questions whose every evidence item is cited by some sentence of a kind of summary, beside the share of all
# turns that are cited: a summary that cites every turn keeps all evidence and condenses nothing. Clusters are summarised
# for the memories of `themes_of`, layer upon layer.

# %%
part = data.take([scope for scope in data.scopes if scope in themes_of] or data.scopes[:1])
small = memlab.Bench.of(part, encoder=encoder, store=store)
themes = pl.concat(tree.nodes for tree in summaries.trees_of(small, "clusters", service=service, seed=seed).values())
made = pl.concat([nodes, themes.with_columns(kind=pl.format("cluster, layer {}", "level"))])
size = {
    "n": pl.len(),
    "sentences": pl.col("sentences").list.len().sum(),
    "words": pl.col("text").str.count_matches(r"\w+").sum(),
}
made.group_by("kind", maintain_order=True).agg(**size)

# %%
rows, cited = (
    [],
    made.select("kind", turn_id=pl.col("evidence")).explode("turn_id").explode("turn_id").drop_nulls().unique(),
)
for (kind,), its in cited.group_by("kind", maintain_order=True):
    among = part if kind.startswith("cluster") else data
    items = among.questions.select("query_id", turn_id="evidence").explode("turn_id").drop_nulls()
    whole = (
        items.join(its.with_columns(hit=1), on="turn_id", how="left")
        .group_by("query_id")
        .agg(pl.col("hit").count() == pl.len())
    )
    for form, n, hits in (("questions", whole.height, whole["hit"].sum()), ("turns", among.turns.height, its.height)):
        low, high = binomtest(hits, n).proportion_ci(0.95, "wilson")
        rows.append({"kind": kind, "form": form, "n": n, "mean": hits / n, "low": low, "high": high})
kept = pl.DataFrame(rows)
fig = follow_ups.recall(kept, measure="share of questions with every evidence item cited, and of turns cited")
caption = "Questions whose every evidence item is cited, and turns that are cited, by kind of summary (95 % intervals)."
export(fig, "rollups-kept", data=kept, caption=caption, **about)

# %% [markdown]
# ## Searching through the summaries
#
# `tree` ranks a turn by the cosine of the question with it or with a summary that stands on it. Fused with `best` by
# reciprocal ranks (weights 2 and 1), is complete recall higher, and higher than with the cosines of the turns alone?

# %%
parts = []
for over, its, on in (("weeks", data, bench), ("clusters", part, small)):
    texts = ("best", "dense", f"tree(over={over!r}, service={service!r}, tz={tz!r}, seed={seed})")
    best, dense, tree = (memlab.pipeline(text).run(on) for text in texts)
    runs = {"best": best, f"tree(over={over!r})": tree}
    runs |= {
        f"best + {name}": memlab.retrieve.rrf([best, run], weights=(2, 1))
        for name, run in (("dense", dense), (over, tree))
    }
    reports = [
        evaluate.evaluate(replace(run, name=name), its, measures=[f"recall_all@{k}"], seed=seed)
        for name, run in runs.items()
    ]
    parts.append(
        evaluate.compare(reports, measure=f"recall_all@{k}", seed=seed).with_columns(
            memories=pl.lit(", ".join(its.scopes))
        )
    )
