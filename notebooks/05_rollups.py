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
# On the committed sample, which is four invented memories over eight months, with summaries by a language model:
#
# - Whether a search through summaries finds more is not shown: fused with `best`, they change complete recall by no
#   significant amount; alone, a search through weeks finds significantly less.
# - Summaries of sessions still cite every evidence item of nearly all questions, those of weeks of most, those of
#   months of less than half; they cite fewer of the turns.
# - Months are a tenth of the words that were said, weeks a quarter, sessions a third.
#
# ![The weeks of a memory with their topics](../figures/gallery/sample-rollups-time.png)
#
# A language model has summarised each session, each week from its sessions and the week before, each month from its weeks,
# and clusters of turns on one theme wherever they stand. Every sentence names the turns that it stands on. This notebook
# reads them, counts how much of the evidence they still cite, and searches through them.

# %% tags=["parameters"]
dataset = "../data/sample/sample.jsonl"
part = {}  # of the dataset: pool, scopes
language = None
seed = 0
encoder = "minilm"
store = "../.memlab/store"
figures = "../figures"
service = "recorded"  # who writes the summaries: recorded answers, a service of the settings, or None for no model
themes_of = ["nadia", "owen"]  # memories of which clusters of turns are summarised too
k = 10

# %%
import polars as pl
from IPython.display import Markdown

import memlab
from memlab import evaluate, summaries
from memlab.evaluate import conclusions
from memlab.evaluate.cited_evidence import cited_shares_by_summary_kind, count_summary_words_by_kind
from memlab.evaluate.printed_tables import select_columns_with_sources
from memlab.experiments.tree_searches import compare_tree_searches
from memlab.figures import export, icicle, intervals
from memlab.summaries.period_rollups import period_boxes

# %%
evaluate.show_tables()
data = memlab.datasets.load(dataset, **part, seed=seed, language=language)
bench = memlab.Bench.of(data, encoder=encoder, store=store)
nodes = summaries.summary_tree(bench, "weeks", service=service).nodes
about = {"provenance": dict(bench.provenance) | {"service": service}, "directory": figures}
weeks = nodes.filter(kind="week").sort(pl.col("carried_on").list.len(), descending=True, maintain_order=True)
scope = weeks["scope"][0]
data

# %% [markdown]
# ## A memory in time
#
# The memory with the week that carries on most: its months and weeks, each with its topics.

# %%
boxes = period_boxes(nodes.filter(scope=scope))
note = "a week belongs to the month of its Thursday; weeks without messages or summaries have no box"
fig = icicle.icicle(boxes, note=note)
caption = f"Months and weeks of {scope} with their topics ({data.name}; weeks begin on Monday, UTC)."
caption += " At column width: the first months, as many as have room."
export(fig, "rollups-time", data=boxes, caption=caption, **about)

# %% [markdown]
# ## A week to read
#
# That week, as `memlab rollup --scope SCOPE --week DATE` prints it. The ids are those of the turns that a
# sentence stands on.

# %%
Markdown(summaries.to_markdown(weeks.row(0, named=True)))

# %% [markdown]
# ## What the summaries still cite
#
# The share of questions whose every evidence item is cited by some sentence of a kind of summary, beside the share of all
# turns that are cited: a summary that cites every turn keeps all evidence and condenses nothing. Clusters are summarised
# for the memories of `themes_of`, layer upon layer.

# %%
part = data.take([scope for scope in data.scopes if scope in themes_of] or data.scopes[:1])
small = memlab.Bench.of(part, encoder=encoder, store=store)
themes = summaries.summary_tree(small, "clusters", service=service, seed=seed).nodes
themes = themes.with_columns(kind=pl.format("cluster, layer {}", "level"))
sizes = count_summary_words_by_kind(pl.concat([nodes, themes]), data.turns)
sizes

# %%
kept = pl.concat([cited_shares_by_summary_kind(nodes, data), cited_shares_by_summary_kind(themes, part)])
share = "share of questions with every evidence item cited, and share of turns cited"
fig = intervals.mean_intervals(kept, measure=share)
caption = "Questions whose every evidence item is cited, and turns that are cited, by kind of summary."
export(fig, "rollups-kept", data=kept, caption=caption, **about)

# %% [markdown]
# ## Searching through the summaries
#
# `tree` ranks a turn by the cosine of the question with it or with a summary that stands on it. It is fused with `best` by
# reciprocal ranks (weights 2 and 1). `best + dense` is the control: the same fusion with the cosines of the turns alone.

# %%
measure = f"recall_all@{k}"
asked = {"measure": measure, "service": service, "seed": seed}
through_weeks = compare_tree_searches("weeks", data, bench, **asked)
through_themes = compare_tree_searches("clusters", part, small, **asked)
tested = evaluate.verdicts([through_weeks, through_themes])
select_columns_with_sources(tested, "system", "n", "mean", "difference", "low", "high", "p_holm", "verdict")

# %%
fig = intervals.forest(tested, measure=measure, baseline="best")
caption = f"Paired differences in complete recall to `best` ({data.name}; intervals hold for all tests together)."
export(fig, "rollups-tests", data=tested, caption=caption, **about)

# %% [markdown]
# ## Answer

# %% tags=["answer"]
found = conclusions.on_fused_rankings(tested, measure=measure)
found + conclusions.on_cited_evidence(kept) + conclusions.on_summary_sizes(sizes)
