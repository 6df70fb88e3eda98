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
# # What does the memory of a chat assistant miss, and what helps?
#
# On the committed sample, which is four invented memories:
#
# - In the first ten turns a search by words finds all evidence of hardly any question that needs two or more sessions; `best | learned`
#   finds it several times as often, and still misses most of these questions.
# - Some of the evidence is found far more often than all of it: what looks like a good memory answers in part.
# - With `best | learned` questions with evidence in one session are mostly complete, those with evidence in several mostly
#   not.
#
# ![Complete recall over k](../figures/gallery/sample-recall-all.png)
#
# Someone asks about their own past conversations, and a memory returns the first k turns that it finds relevant. An answer
# often stands on several turns of several sessions. Below: the data, complete recall of the usual pipelines, why it is rare,
# and one question that loses its evidence.

# %% tags=["parameters"]
dataset = "../data/sample/sample.jsonl"
part = {}  # of the dataset: pool, scopes
language = None
seed = 0
encoder = "minilm"
store = "../.memlab/store"
figures = "../figures"

# %%
import polars as pl

import memlab
from memlab import evaluate
from memlab.evaluate import groups_of_questions, system_comparison
from memlab.evaluate.printed_tables import select_columns_with_sources
from memlab.figures import anatomy, curves, export

evaluate.show_tables()

# %% [markdown]
# ## The data
#
# Each question names the turns that answer it, its evidence.

# %%
data = memlab.datasets.load(dataset, **part, seed=seed, language=language)
data

# %% [markdown]
# ## Complete recall
#
# `recall_any@k` asks whether one evidence item is among the first k turns, `recall_all@k` whether all are. Questions with
# evidence in two or more sessions are the hard ones. BM25 compares words, `dense` sentence vectors, `hybrid` both; `best` adds
# late interaction and evidence of the session; `learned` reranks with the bundled model, which learned from other
# conversations.

# %%
cutoffs = (1, 2, 3, 5, 10, 20, 50)
measures = [f"{name}@{k}" for name in ("recall_any", "recall", "recall_all") for k in cutoffs]
about = {"store": store, "encoder": encoder, "seed": seed}
done = memlab.run(None, data, levels=["turn"], measures=measures, name=f"tour-{data.name}", **about)
reports = done.reports
by, group = groups_of_questions.multi_session_by_and_group(reports[0].per_query)
wanted = ["recall_any@10", "recall@10", "recall_all@10", "recall_all@20"]
evaluate.results_table(reports, measures=wanted, by=by, group=group)

# %%
tested = system_comparison.compare_reports_by_group(reports, measure="recall_all@10")
select_columns_with_sources(tested, "group", "system", "n", "mean", "difference", "low", "high", "p_holm", "verdict")

# %%
curve = evaluate.cutoff_curve(reports, by=by, group=group)
fig = curves.recall_curves(curve)
which = "with evidence in two or more sessions" if group == groups_of_questions.MULTI_SESSION else "with evidence"
caption = f"Share of the questions {which} whose every evidence item is among the first k turns ({data.name}"
made = {"provenance": dict(done.runs[0].provenance), "directory": figures}
caption += f", n = {curve['n'][0]:,}). Ceiling: k turns hold at most k evidence items; chance: turns in random order."
export(fig, "recall-all", data=curve, caption=caption, **made)

# %% [markdown]
# ## Why complete recall is rare
#
# The more items an answer needs (the last row: four or more), the rarer are all of them. `independent` is complete recall if
# items were found as often as the item of an answer that needs one, each for itself.

# %%
items = reports[-1].per_query.group_by(items=pl.col("n_relevant").clip(upper_bound=4))
several = items.agg(n=pl.len(), found=pl.mean("recall@10"), complete=pl.mean("recall_all@10"))
several = several.sort("items").with_columns(independent=pl.col("found").first().pow("items"))
groups_of_questions.add_question_sources_column(several, reports[-1].per_query)

# %%
reports[-1].summary("evidence_sessions", measures="recall_all@10")

# %% [markdown]
# ## One question that loses its evidence
#
# Of the questions that `best | learned` answers worst, the one with most evidence: the rank of each item after each stage, and
# what stands above it. `done.worst(5)` lists such questions.

# %%
why = done.why()
fig = anatomy.evidence_ranks_by_stage(why.stages, title=why.question["text"])
caption = f"Rank of each evidence item of one question of {data.name} after each stage; shaded: the first ten."
export(fig, "through-stages", data=why.stages, caption=caption, **made)

# %%
why

# %% [markdown]
# ## Answer

# %% tags=["answer"]
done.conclusions()
