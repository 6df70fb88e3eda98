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
# On the committed sample, with follow-ups that were written by hand and rewrites that a language model gave:
#
# - A follow-up as asked loses much: about half of them are complete, against four fifths in the form that stands alone.
#   Ordinals ("the second one") lose most.
# - Rewritten by the model, or with the words of the last exchange appended, they are complete not significantly less often
#   than in the form that stands alone.
# - Raising the sessions in play changes next to nothing.
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
import polars as pl

import memlab
from memlab import conversation, evaluate
from memlab.atomic_files import shipped_data
from memlab.evaluate import conclusions, system_comparison
from memlab.experiments import compare_follow_up_forms, follow_up_forms_table
from memlab.figures import curves, export, intervals

evaluate.show_tables()

# %%
sample = shipped_data("sample")
data = memlab.datasets.load(conversations or sample / "sample.jsonl")
bench = memlab.Bench.of(data, encoder=encoder, store=store)
asked = conversation.read_follow_ups(follow_up_file or sample / "follow-ups.jsonl")
every_depth = compare_follow_up_forms(asked, bench, pipeline=pipeline, service=service, k=sorted({5, 10, 20, 50, k}))
nothing, person = "leans on nothing", "pronoun, person"
joined = {"complete": nothing, "topic": nothing, "pronoun": person, "person": person}
grouped = every_depth.with_columns(pl.col("kind").replace(joined))
deeper = follow_up_forms_table(grouped, seed=seed)
about = {"provenance": {**bench.provenance, "pipeline": pipeline, "service": service}, "directory": figures}

# %% [markdown]
# ## Complete recall by kind of follow-up
#
# The share of follow-ups whose every evidence item is among the first k turns, with intervals over follow-ups; p
# is that of a paired randomisation test against the form that stands alone. What leans on
# nothing needs no rewriting: it is complete as asked, or on another topic.

# %%
compared, table = (rows.filter(pl.col("k") == k).drop("k") for rows in (every_depth, deeper))
ends = {name: f"mean_{name}" for name in ("low", "high", "level")}
fig = intervals.mean_intervals(table.with_columns(**ends), measure=f"recall_all@{k}")
n = compared["query_id"].n_unique()
caption = f"Complete recall in the first {k} turns by kind of follow-up (all: n = {n})."
export(fig, "follow-up-recall", data=table, caption=caption, **about)

# %%
table.filter(kind="all").drop("kind", "win", "tie", "loss")

# %% [markdown]
# ## At every cut-off

# %%
deeper = deeper.filter(kind="all").select("k", "n", "mean", "unit", "units", **ends, system="form")
fig = curves.recall_curves(deeper)
caption = f"Complete recall of {n} follow-ups over k by form of the question ({data.name})."
export(fig, "follow-up-curves", data=deeper, caption=caption, **about)

# %%
gaps = table.filter(pl.col("form") != "standalone", kind="all").rename({"form": "system"})
fig = intervals.forest(gaps, measure=f"recall_all@{k}", baseline="standalone")
caption = f"Paired differences in complete recall to the form that stands alone (n = {n})."
export(fig, "follow-up-tests", data=gaps, caption=caption, **about)

# %% [markdown]
# ## The rewrites
#
# Two of each kind:

# %%
texts = compared.pivot("form", index=["query_id", "kind"], values="question")
texts.group_by("kind", maintain_order=True).head(2).drop("query_id")

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
outcomes, complete_in = [], pl.col("evidence").list.set_difference(pl.col("found").fill_null([])).list.len() == 0
for name, ranking in (("the ranking as it is", run), ("sessions in play raised", raised)):
    first = ranking.top(k).frame.group_by("query_id").agg(found="doc_id")
    found = rows.join(first, on="query_id", how="left", maintain_order="left")
    outcomes.append(found.select("query_id", "scope", hit=complete_in, system=pl.lit(name)))
played = system_comparison.compare_question_outcomes(pl.concat(outcomes), seed=seed)
played.drop("p")

# %% [markdown]
# ## Answer

# %% tags=["answer"]
said = {"question_noun": "follow-ups", "claim": f"all evidence is among the first {k}"}
conclusions.on_follow_ups(table, k=k, conversations_name=data.name) + conclusions.on_conditions(played, **said)
