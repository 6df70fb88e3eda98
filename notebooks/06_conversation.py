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
# # What does a follow-up question lose, and what brings it back?
#
# On the committed sample (183 follow-ups in 32 threads; the first ten turns of `best`; rewrites recorded from a language
# model; 95 % intervals over follow-ups):
#
# - As asked, complete recall is 53.0% [45.9%, 60.1%]; in the form that stands alone 80.9% [75.4%, 86.3%]. Ordinals lose
#   most ("the second one"): 21.1% as asked, 89.5% in the form that stands alone.
# - Rewritten by the model it is 81.4% [75.4%, 86.9%], a share of 1.007 of the form that stands alone. With the words of
#   the last exchange appended it is about nine tenths of that form; one question more or less, by the processor.
# - Raising the sessions in play by 15 % wins 1 and loses 2 of the 183.
#
# ![Complete recall by kind of follow-up](../figures/gallery/sample-follow-up-recall.png)
#
# "And when was that?" cannot be searched for. The follow-ups of the sample were written by hand, thread by thread, each
# with the form that stands alone and the messages that answer it. This notebook searches for each in four forms: as asked;
# with the words of the last exchange appended (`fallback`); rewritten by a language model (`model`), which saw the thread
# and neither the form that stands alone nor the messages; and in the form that stands alone.

# %% tags=["parameters"]
conversations = None  # your own, with follow_up_file; the sample where there are none
follow_up_file = None
encoder = "minilm"
store = "../.memlab/store"
figures = "../figures"
service = "recorded"  # who rewrites: recorded answers, or a service of the settings
pipeline = "best"
k = 10
seed = 0

# %%
from pathlib import Path

import polars as pl
from IPython.display import Markdown, display

import memlab
from memlab import conversation, evaluate
from memlab.experiments import compare_follow_up_forms, follow_up_forms_table
from memlab.figures import curves, export, intervals

evaluate.show_tables()

# %%
sample = Path(memlab.__file__).parents[1] / "data" / "sample"
data = memlab.datasets.load(conversations or sample / "sample.jsonl")
bench = memlab.Bench.of(data, encoder=encoder, store=store)
asked = conversation.read_follow_ups(follow_up_file or sample / "follow-ups.jsonl")
depths = sorted({5, 10, 20, 50, k})
every_depth = compare_follow_up_forms(asked, bench, pipeline=pipeline, service=service, k=depths)
deeper = follow_up_forms_table(every_depth, seed=seed)
about = {"provenance": {**bench.provenance, "pipeline": pipeline, "service": service}, "directory": figures}

# %% [markdown]
# ## Complete recall by kind of follow-up
#
# The share of follow-ups whose every evidence item is among the first k turns, with 95 % bootstrap intervals over
# follow-ups; p is that of a paired randomisation test against the form that stands alone. Questions that need no
# rewriting (complete as asked, another topic) stand in the table alone.

# %%
compared, table = (rows.filter(pl.col("k") == k).drop("k") for rows in (every_depth, deeper))
leaning = table.filter(~pl.col("kind").is_in(["complete", "topic"]))
fig = intervals.mean_intervals(
    leaning.with_columns(low="mean_low", high="mean_high", level="mean_level"), measure=f"recall_all@{k}", between=" → "
)
n = compared["query_id"].n_unique()
caption = f"Complete recall in the first {k} turns by kind of follow-up (n = {n}; 95 % bootstrap intervals)."
export(fig, "follow-up-recall", data=table, caption=caption, **about)

# %%
table.filter(kind="all").drop("kind", "win", "tie", "loss")

# %% [markdown]
# ## At every cut-off

# %%
deeper = deeper.filter(kind="all").with_columns(system="form", low="mean_low", high="mean_high", level="mean_level")
fig = curves.recall_curves(deeper)
caption = f"Complete recall of {n} follow-ups over k by form of the question ({data.name}; 95 % bootstrap intervals)."
export(fig, "follow-up-curves", data=deeper, caption=caption, **about)

# %%
complete = compared.pivot("form", index=["query_id", "kind"], values="complete")
gaps = table.filter(pl.col("form") != "standalone", kind="all").rename({"form": "system"})
gaps = gaps.with_columns(baseline=pl.lit("standalone"))
fig = intervals.forest(gaps, measure=f"recall_all@{k}")
caption = f"Paired differences in complete recall to the form that stands alone (n = {n}; 95 % intervals)."
export(fig, "follow-up-tests", data=gaps, caption=caption, **about)

# %% [markdown]
# ## The rewrites
#
# Two of each kind, and then those whose evidence only the form that stands alone brings back:

# %%
texts = compared.pivot("form", index=["query_id", "kind"], values="question")
texts.group_by("kind", maintain_order=True).head(2).drop("query_id")

# %%
best_made = pl.col("model" if "model" in complete.columns else "fallback")
lost = complete.filter(~best_made & pl.col("standalone"))
texts.join(lost, on="query_id", how="semi", maintain_order="left").drop("query_id").head(10)

# %% [markdown]
# ## The sessions in play
#
# The sessions of the first three results of the question before are in play; their scores are raised by 15 %.

# %%
rows = asked.filter(pl.col("kind") != "first")
made = conversation.rewrite(rows["question"].to_list(), history=rows["history"].to_list(), service=service)
own = bench.with_queries(rows.select("query_id", "scope", text=made["rewritten"]))
run = memlab.pipeline(pipeline).run(own)
played = run.top(3).frame.join(data.turns.select(doc_id="turn_id", id="session_id"), on="doc_id")
later = rows.select("query_id", next=pl.col("query_id").shift(-1).over("thread")).drop_nulls()
raised = conversation.bias(run, own, in_play=later.join(played, on="query_id").select("id", query_id="next"))

# %%
ranked = [each.top(k).frame.group_by("query_id").agg(found="doc_id") for each in (run, raised)]
found = [rows.join(each, on="query_id", how="left", maintain_order="left") for each in ranked]
before, after = (each["evidence"].list.set_difference(each["found"]).list.len() == 0 for each in found)
won, lost = (after & ~before).sum(), (before & ~after).sum()

# %% [markdown]
# ## Answer

# %%
overall = table.filter(kind="all").to_dicts()
said = ", ".join("{form} {mean:.1%} [{mean_low:.1%}, {mean_high:.1%}]".format(**row) for row in overall)
lines = [f"- Complete recall@{k} of {n} follow-ups: {said}."]
shares = ", ".join(f"{row['form']} {row['mean'] / overall[-1]['mean']:.3f}" for row in overall[:-1])
lines += [f"- As a share of the form that stands alone: {shares}."]
kinds = table.filter(pl.col("kind") != "all").pivot("form", index=["kind", "n"], values="mean").sort("as asked")
said = "; ".join("{kind} {as asked:.1%} and {standalone:.1%}".format(**row) for row in kinds.head(3).to_dicts())
lines += [f"- Kinds that find least as asked, and in the form that stands alone: {said}."]
lines += [f"- Raising the sessions in play by 15 % wins {won} and loses {lost} of the {n}."]
display(Markdown("\n".join(lines)))
