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
# # How fast should confidence in a fact decay, and what do decay and supersession buy?
#
# On the committed sample, with answers as of the date of each question:
#
# - Yes, both buy something: among facts that a language model extracted, with neither the current value of something that has changed ranks above every stale one for
#   less than half of the questions, with decay or supersession for most of them, and with both for nearly all.
# - The same questions put to the messages themselves gain from `current`, which puts later messages on a subject first.
# - On gold facts the best fitted decay curve is not clearly better than any other fitted one; it predicts better than the
#   default curve and than a constant, and the default curve predicts worse than the constant.
# - Among the same facts the recommended fitted curve, alone, puts the current value first for a few more questions than the
#   default curve, and with supersession for the same number.
#
# ![The current value above the stale ones](../figures/gallery/sample-decay-outranked.png)
#
# Confidence in a fact is base(source) · reinforcement · retention, and 0 once another value has superseded it. Retention
# falls with the age of the fact along a curve. This notebook fits curves to gold facts, of which it is known whether they
# still hold, and then counts how often the current value of something ranks above the values that it replaced.

# %% tags=["parameters"]
dataset = "../data/sample/sample.jsonl"
part = {}  # of the dataset: pool, scopes
language = None
seed = 0
encoder = "minilm"
store = "../.memlab/store"
figures = "../figures"
service = "recorded"  # who extracts the facts: recorded answers, or a service of the settings
gold = None  # a folder of gold facts that curves are fitted to; None for the sample's

# %%
import polars as pl

import memlab
from memlab.atomic_files import shipped_data
from memlab.evaluate import changed_values, conclusions
from memlab.evaluate.gold_facts import read_gold_annotations
from memlab.figures import curves, export, intervals
from memlab.knowledge import ConfidenceSettings, confidence, decay_fitting, extract

# %% [markdown]
# ## Which family of curves predicts facts that it has not seen?
#
# A label is a gold fact: its age at the end of the chat, and whether it still holds then. Each family is fitted on four
# fifths of the labels and predicts the rest. Labels of your own are a frame with the columns `fact_id`, `age_days` and
# `still_true`. `default` is the curve of the settings, which is not fitted, and `constant` one chance at every age: where the
# default is worse than that, take a fitted one.

# %%
memlab.evaluate.show_tables()
labels = changed_values.ages_and_validity_of_gold_facts(read_gold_annotations(gold or shipped_data("sample")))

# %%
losses = decay_fitting.compare_curves(labels, level=0.95, seed=seed).sort("log_loss")
best = losses.filter(difference=0)["family"][0]
shown = losses.with_columns(system="family", low="difference_low", high="difference_high", p_holm=pl.lit(None))
fig = intervals.forest(shown, measure="held-out log-loss", baseline=best, lower_is_better=True)
caption = (
    f"Held-out log-loss of decay curves, five folds: paired differences to {best} (n = {labels.height:,} gold facts)."
)
made = {"provenance": {"labels": "gold facts", "seed": seed}, "directory": figures}
export(fig, "decay-compared", data=losses, caption=caption, **made)

# %% [markdown]
# ## The fitted curves, and confidence over a year
#
# A fact that is observed (base .7) and heard again on days 60 and 200. Each repetition renews the age of the fact and adds
# .1 to the factor of reinforcement.

# %%
fits = {name: decay_fitting.fit(labels, name, seed=seed) for name in ("exponential", "plateau_linear")}
fitted = pl.concat(fit.intervals.with_columns(family=pl.lit(name)) for name, fit in fits.items())
families = {"default": ConfidenceSettings().decay} | {f"fitted {name}": fit.curve for name, fit in fits.items()}
path = confidence.trajectory(families, accesses_days=(0, 60, 200), source="observed")
fig = curves.confidence_curves(path, events=(60, 200))
curve_names = " and ".join(fits)
caption = f"Confidence in an observed fact heard again on days 60 and 200: the default curve, fitted {curve_names}."
export(fig, "decay-reinforced", data=path, caption=caption, **made)

# %% [markdown]
# The recommended curve is the simplest that is not significantly worse than the best. This table, pasted into `memlab.toml`, takes
# it; without it the default stays in force.

# %%
advice = decay_fitting.recommend(labels, comparison=losses, seed=seed)
print(advice.settings_text())
fitted

# %% [markdown]
# ## What do decay and supersession buy?
#
# Questions about a value that has changed name the message with the current value and the messages with those that it
# replaced; where the data have none, the sample's are asked. Facts come from the recorded answers of a language model,
# resolved as of the time of the question, and are ranked by .4 · similarity + .3 · confidence, by the default curve and by the
# recommended one, which was fitted to gold facts of the same chats where the sample is asked. A question
# is a hit where a fact of its current message ranks above every fact of its stale messages. The same questions are put to
# the messages themselves: `best`, and `best | current`, which puts later messages on the same subject first.
#
# The current value is always the latest here, so that any preference for what is recent helps. What decay costs where a
# fact is old and still true is not measured.

# %%
own = memlab.datasets.load(dataset, **part, seed=seed, language=language)
data = changed_values.questions_of_changed_values(own)
data = data if data.questions.height else changed_values.questions_of_changed_values(memlab.sample())
elsewhere = conclusions.note_if_other_data_used(
    own.name, data.name, missing_noun="question about a value that has changed"
)
bench = memlab.Bench.of(data, encoder=encoder, store=store)

# %%
known = extract(data.turns, service=service)
print(known.note or f"{known.facts.height:,} facts")
ways = {"conditions": changed_values.add_fitted_decay_conditions(advice.decay), "encoder": bench.embedder()}
from_facts = changed_values.score_current_fact_first(data.questions.with_columns(now="timestamp"), known.facts, **ways)

# %%
runs = [memlab.pipeline(text).run(bench) for text in ("best", "best | current")]
messages = changed_values.score_current_message_first(runs, data)
bought = changed_values.compare_with_first_condition({"facts": from_facts, "messages": messages}, seed=seed)
bought.drop("win", "tie", "loss")

# %%
measure = "share of questions whose current value ranks above every stale one"
drawn = bought.with_columns(low="mean_low", high="mean_high", level="mean_level")
fig = intervals.mean_intervals(drawn, rows="system", series="data", measure=measure)
caption = "Questions about a changed value whose current value ranks above every stale one, of facts and of messages."
export(fig, "decay-outranked", data=bought, caption=caption, provenance=dict(bench.provenance), directory=figures)

# %% [markdown]
# ## Answer

# %% tags=["answer"]
decay = conclusions.on_decay_curves(losses, fits["exponential"].intervals)
elsewhere + conclusions.on_changed_values(bought) + decay
