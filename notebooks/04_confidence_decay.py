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
# On the committed sample (its 41 questions about a value that has changed; facts recorded from a language model and
# resolved as of the date of each question; 90 % intervals):
#
# - The current value ranks above every stale one for 39.0% [27.5%, 51.9%] of the 41 questions with neither decay nor
#   supersession, for 75.6% [63.2%, 84.8%] with decay, 73.2% [60.6%, 82.9%] with supersession and 90.2% [80.0%, 95.5%]
#   with both.
# - The same questions put to the messages: 36.6% [25.4%, 49.4%] with `best` and 56.1% [43.4%, 68.1%] with
#   `best | current`.
# - On 124 simulated updates, stated in one wording, decay reaches 79.0% [72.4%, 84.4%] and supersession 100.0% [97.9%,
#   100.0%]. Curves fitted to 1,592 simulated labels recover the rates of change: 4 of 4 intervals of 90 % hold the true
#   half-life, and the fitted ones go from 59 to 513 days.
#
# ![The current value above the stale ones](../figures/gallery/sample-decay-outranked.png)
#
# Confidence in a fact is base(source) · reinforcement · retention, and 0 once another value has superseded it. Retention
# falls with the age of the fact along a curve. This notebook fits curves to simulated facts whose rates of change are
# known, and then counts, on simulated facts and on the facts of the conversations, how often the current value of
# something ranks above the values that it replaced.

# %% tags=["parameters"]
dataset = "../data/sample/sample.jsonl"
pool = None
language = None
seed = 0
encoder = "minilm"
store = "../.memlab/store"
figures = "../figures"
service = "recorded"  # who extracts the facts: recorded answers, a service of the settings, or None for patterns
simulated_labels = 24_000  # statements that curves are fitted to
simulated_facts = 3000  # statements that are ranked

# %%
import polars as pl
from IPython.display import Markdown, display
from scipy.stats import binomtest

import memlab
from memlab import evaluate
from memlab.figures import curves, export, intervals
from memlab.knowledge import ConfidenceSettings, confidence, extract, recall, resolve, simulated, tuning
from memlab.knowledge.decay import PlateauLinear

evaluate.show_tables()

# %% [markdown]
# ## Which family of curves predicts facts that it has not seen?
#
# People change home, job, car and number at known rates, from .5 to 4 changes a year, and state the present value every 60
# days on average. A label says whether the value stated last is still true on the last day. Each family is fitted on four
# fifths of the labels and predicts the rest, with one curve for all predicates or one for each. Labels of your own are a
# frame with the columns `tuning.LABELS`, and `tuning.recommend(labels).write("memlab.toml")`
# puts the recommended curve into the settings.

# %%
stated, truth = simulated.simulate(simulated_labels, seed=seed)
labels = simulated.observations(stated, truth, dates=[stated["asserted_at"].max()])
losses = tuning.compare(labels, seed=seed).sort("log_loss")
shown = losses.with_columns(pl.col("low", "high").fill_null(pl.col("log_loss")), mean="log_loss")
fig = intervals.means(shown, rows="family", series="fit", measure="held-out log-loss, less is better", digits=3)
caption = f"Held-out log-loss of decay families, five folds (n = {labels.height:,} simulated labels; 90 % intervals)."
made = {"provenance": {"simulated": True, "seed": seed}, "directory": figures}
export(fig, "decay-compared", data=losses, caption=caption, **made)

# %% [markdown]
# ## Are the true half-lives recovered?
#
# Changes at a constant rate leave an exponential curve with a half-life of 365 · ln 2 / rate days.

# %%
rates = simulated.HAZARDS
fits = {name: tuning.fit(labels.filter(predicate=name), "exponential", seed=seed) for name in rates}
rows = [fit.intervals.with_columns(family=pl.lit(name), rate=pl.lit(float(rates[name]))) for name, fit in fits.items()]
recovered = pl.concat(rows).with_columns(truth=(365 * pl.lit(2).log() / pl.col("rate")).round(0))
recovered.select("family", "truth", pl.col("estimate", "low", "high").round(0))

# %% [markdown]
# ## Confidence over a year
#
# Along these curves and the default one: a fact that is observed (base .7) and heard again on days 60 and 200. Each
# repetition renews the age of the fact and adds .1 to the factor of reinforcement.

# %%
families = {"default": PlateauLinear()} | {name: fit.curve for name, fit in fits.items()}
path = confidence.trajectory(families, accesses_days=(0, 60, 200), source="observed")
fig = curves.over_time(path, events=(60, 200))
caption = "Confidence in an observed fact that is heard again on days 60 and 200, by the fitted curve of its predicate."
export(fig, "decay-reinforced", data=path, caption=caption, **made)

# %% [markdown]
# ## Simulated facts: the current value above the stale ones
#
# Every value that has changed is asked for at the end. Facts are ranked by .4 · similarity + .3 · confidence (the default
# curve), and a tie counts as not above.

# %%
data = memlab.datasets.load(dataset, pool=pool, seed=seed, language=language)
bench = memlab.Bench.of(data, encoder=encoder, store=store)
none, default = ConfidenceSettings(decay=PlateauLinear(floor=1.0)), ConfidenceSettings()
ways = {"neither": (none, False), "decay": (default, False), "supersession": (none, True)}
how = {"conditions": ways | {"decay and supersession": (default, True)}, "encoder": bench.embedder()}

# %%
facts, truth = simulated.simulate(simulated_facts, seed=seed)
now = facts["asserted_at"].max()
stated = truth.join(facts, on="fact_id").with_columns(query_id="slot", current=pl.col("until") > now)
stated = stated.filter(pl.col("current").n_unique().over("slot") > 1)
asked = stated.unique("query_id", maintain_order=True).with_columns(now=pl.lit(now))
asked = asked.with_columns(text=pl.format("{} {} what?", "subject", "predicate"))
shares = [recall.current_first(asked, stated, resolve(facts), **how).with_columns(data=pl.lit("simulated facts"))]

# %% [markdown]
# ## The facts of the conversations: the current value above the stale ones
#
# Questions about a value that has changed name the message with the current value and the messages with those that it
# replaced. Facts come from the recorded answers of a language model, resolved as of the time of the question. A question is
# a hit where a fact of its current message ranks above every fact of its stale messages. The same questions are put to
# the messages themselves: `best`, and `best | current`, which puts later messages on the same subject first.
#
# The current value is always the latest here, so that any preference for what is recent helps. What decay costs where a
# fact is old and still true is not measured.

# %%
updates = data.questions.filter(pl.col("stale").list.len() > 0).drop_nulls("timestamp").with_columns(now="timestamp")
known = extract(data.turns, service=service).facts if updates.height else facts.clear()
kept = resolve(known).facts.filter(pl.col("status") != "closing").select("fact_id", turn="evidence").explode("turn")
pairs = [updates.select("query_id", turn=c, current=pl.lit(c == "evidence")) for c in ("evidence", "stale")]
named = pl.concat(pairs).explode("turn").join(kept, on="turn")
for (scope, now), asked in updates.group_by("scope", "now", maintain_order=True):
    then = resolve(known.filter(scope=scope), as_of=now, encoder=how["encoder"])
    found = recall.current_first(asked, named.join(asked, on="query_id", how="semi"), then, **how)
    shares.append(found.with_columns(data=pl.lit("recorded facts")))

# %%
runs = [memlab.pipeline(text).run(bench) for text in ("best", "best | current")] if updates.height else []
messages = [evaluate.stale_table([run], data).with_columns(data=pl.lit("messages")) for run in runs]
shares += [each.select("data", "n", condition="system", share="current first") for each in messages]
table = pl.concat(shares, how="diagonal_relaxed").group_by("data", "condition", maintain_order=True)
table = table.agg(pl.col("n").sum(), hits=(pl.col("n") * pl.col("share")).sum().round().cast(pl.Int64))
ends = [binomtest(hits, n).proportion_ci(0.9, "wilson") for n, hits in table.select("n", "hits").iter_rows()]
ends = pl.DataFrame(ends, schema=["low", "high"], orient="row")
bought = table.with_columns(share=pl.col("hits") / pl.col("n")).hstack(ends)
bought

# %%
measure = "share of questions whose current value ranks above every stale one, 90 % intervals"
fig = intervals.means(bought.rename({"share": "mean"}), rows="condition", series="data", measure=measure)
caption = "Share of questions about a changed value whose current value ranks above every stale one (90 % intervals)."
export(fig, "decay-outranked", data=bought, caption=caption, provenance=dict(bench.provenance), directory=figures)

# %% [markdown]
# ## Answer

# %%
percents = [(pl.col(name) * 100).round(1) for name in ("share", "low", "high")]
written = bought.with_columns(text=pl.format("{}% [{}%, {}%] ({})", *percents, "condition"))
written = written.group_by("data", "n", maintain_order=True).agg(pl.col("text").str.join(", "))
said = "- {}, {} questions: the current value ranks above every stale one for {}."
lines = [said.format(*row) for row in written.iter_rows()]
held = recovered.filter(pl.col("truth").is_between("low", "high")).height
lines += [f"- {held} of {len(fits)} 90 % intervals hold a true half-life: {[*map(round, recovered['estimate'])]} days."]
lines += [f"- The best family for {labels.height:,} simulated labels: {losses['family'][0]} ({losses['fit'][0]})."]
display(Markdown("\n".join(lines)))
