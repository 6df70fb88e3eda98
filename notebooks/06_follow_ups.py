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
# On the committed sample (follow-ups written by hand, `best`, no model, 95 % intervals over follow-ups):
#
# - As asked, 53.0% [45.9%, 60.1%] of the 183 follow-ups have all their evidence in the first 10 turns; with the words of
#   the last exchange appended 73.8% [67.2%, 79.8%].
# - In the form that stands alone it is 80.9% [75.4%, 86.3%].
# - Raising the sessions in play by 15 % wins 1 and loses 5 of the 183.
#
# ![Complete recall by kind of follow-up](../figures/gallery/sample-follow-up-recall.png)
#
# "And when was that?" cannot be searched for. The follow-ups of the sample were written by hand, thread by thread, each
# with the form that stands alone and the messages that answer it. Here each is searched for in up to four forms: as
# asked, with the words of the last exchange appended (`fallback`), rewritten by a model, and standing alone.

# %% tags=["parameters"]
dataset = "../data/sample/sample.jsonl"
threads = "../data/sample/follow-ups.jsonl"
store = "../.memlab/store"
figures = "../figures"
service = "recorded"  # or a service of memlab.toml
pipeline = "best"
k = 10
seed = 0

# %%
import polars as pl
from IPython.display import Markdown

import memlab
from memlab import conversation, evaluate
from memlab.experiments import compare_forms, forms_table
from memlab.figures import export, follow_ups

evaluate.show_tables()
data = memlab.datasets.load(dataset)
bench = memlab.Bench.of(data, store=store, progress=False)
asked = conversation.follow_ups(threads)
compared = compare_forms(asked, bench, pipeline=pipeline, service=service, k=k)

# %%
table = forms_table(compared, seed=seed)
table.filter(kind="all")

# %%
n = compared["query_id"].n_unique()
about = {"dataset": data.name, "fingerprint": data.fingerprint(), "pipeline": pipeline, "service": service}
caption = f"Complete recall in the first {k} turns by kind of follow-up (n = {n}; 95 % bootstrap intervals)."
fig = follow_ups.recall(table, measure=f"recall_all@{k}")
export(fig, "follow-up-recall", data=table, caption=caption, provenance=about, directory=figures)

# %% [markdown]
# What the rewrites look like, and those whose evidence is found only in the form that stands alone:

# %%
wide = compared.pivot("form", index=["query_id", "kind"], values="question")
wide.group_by("kind", maintain_order=True).head(2).drop("query_id")

# %%
found = compared.pivot("form", index="query_id", values="complete")
lost = found.filter(~pl.col("fallback") & pl.col("standalone")).select("query_id")
wide.join(lost, on="query_id", how="semi", maintain_order="left").head(10)

# %% [markdown]
# ## The conversation in play
#
# The sessions of the first three results of the question before are in play; their scores are raised by 15 %.

# %%
rows = asked.filter(pl.col("kind") != "first")
plain = conversation.rewrite(rows["question"].to_list(), history=rows["history"].to_list(), service=None)
own = bench.with_queries(rows.select("query_id", "scope", text=plain["rewritten"]))
run = memlab.pipeline(pipeline).run(own)
first = run.top(3).frame.join(data.turns.select(doc_id="turn_id", id="session_id"), on="doc_id")
later = rows.select("query_id", next=pl.col("query_id").shift(-1).over("thread")).drop_nulls()
in_play = later.join(first, on="query_id").select("id", query_id="next")
raised = conversation.bias(run, own, in_play=in_play)


# %%
def complete(ranked):
    found = ranked.top(k).frame.group_by("query_id").agg(found="doc_id")
    each = rows.join(found, on="query_id", how="left", maintain_order="left")
    return each["evidence"].list.set_difference(each["found"]).list.len() == 0


before, after = complete(run), complete(raised)
won, lost = (after & ~before).sum(), (before & ~after).sum()
pl.DataFrame({"n": len(before), "complete": before.mean(), "raised": after.mean(), "won": won, "lost": lost})

# %% [markdown]
# ## The context of each question
#
# What retrieval finds, within 1,100 MiniLM tokens, and whether the answer stands there.

# %%
made = conversation.assemble(conversation.gather(run, own))
gold = rows.select("query_id", "answer", question_type="kind", abstention=pl.lit(False))
held = conversation.holding({"context": made.texts}, gold)
held.select(n=pl.col("holds").count(), holds=pl.col("holds").mean(), n_tokens=pl.col("n_tokens").mean())

# %%
print(made.texts["text"][0][:1200])

# %% [markdown]
# ## Answer


# %%
def share(form):
    row = table.filter(kind="all", form=form).row(0, named=True)
    return "{mean:.1%} [{low:.1%}, {high:.1%}]".format(**row)


model = f"; rewritten by a model {share('model')}" if "model" in table["form"] else ""
Markdown(f"""- As asked, {share("as asked")} of the {n} follow-ups have all their evidence in the first {k} turns; with the words
  of the last exchange appended {share("fallback")}{model}.
- In the form that stands alone it is {share("standalone")}.
- Raising the sessions in play by 15 % wins {won} and loses {lost} of the {n}.""")
