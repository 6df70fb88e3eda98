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
# Confidence in a fact = base(source) · reinforcement · retention, and 0 once another value has superseded it. Retention
# falls with age along a curve. This notebook draws the curves, fits them to labelled facts, compares them on facts that
# they have not seen, and measures how often the current value stands above the one that it replaced.
#
# The facts are simulated: they show the way, and are no setting for your users. With `labels_file` yours are read.

# %% tags=["parameters"]
encoder = "minilm"
store = "../.memlab/store"
figures = "../figures"
seed = 0
labels_file = None  # your own labels: fact_id, predicate, age_days, accesses_days, still_true
labels_each = 250
recovery_sets = 4
simulated_facts = 3000
settings_file = None  # "../memlab.toml" writes the recommendation there

# %%
import polars as pl

import memlab
from memlab.figures import decay, decay_truth, export
from memlab.knowledge import ConfidenceSettings, calibration, confidence, recall, resolve, simulated, tuning
from memlab.knowledge.decay import FAMILIES, Exponential, PlateauLinear, PowerLaw, Weibull, parameters

about = {"seed": seed, "encoder": encoder}

# %% [markdown]
# ## What it buys: the current value above the stale ones
#
# Every value that has changed is asked for; statements are ranked by .4 · similarity + .3 · confidence.

# %%
facts, truth = simulated.simulate(simulated_facts, seed=seed)
now = facts["asserted_at"].max()
stated = truth.join(facts, on="fact_id").with_columns(query_id="slot", current=pl.col("until") > now)
stated = stated.filter(pl.col("current").any().over("slot"), ~pl.col("current").all().over("slot"))
text = pl.format("{} {} what?", "subject", "predicate")
questions = stated.select("query_id", "scope", text=text, now=pl.lit(now)).unique("query_id", maintain_order=True)

# %%
none = ConfidenceSettings(decay=PlateauLinear(floor=1.0))
ways = {"no decay": (none, False), "default curve": (ConfidenceSettings(), False), "supersession": (none, True)}
ways["default curve + supersession"] = (ConfidenceSettings(), True)
model = memlab.store.CachedEncoder(memlab.store.MemoryStore.open(store), memlab.embed.load(encoder))
resolved = resolve(facts)
bought = recall.current_first(questions, stated, resolved, conditions=ways, encoder=model)
bought

# %%
caption = f"Share of {len(questions):,} simulated updates whose current value stands above every stale one (90 %)."
export(
    decay_truth.outranked(bought), "decay-outranked", data=bought, caption=caption, provenance=about, directory=figures
)

# %% [markdown]
# ## Curves over a year
#
# An observed fact (base .7) that is heard again on days 60 and 200: each repetition renews the age and adds .1.

# %%
curves = {name: kind() if name == "plateau_linear" else kind(180) for name, kind in FAMILIES.items()}
path = confidence.trajectory(curves, accesses_days=(0, 60, 200), source="observed")
caption = "Confidence in an observed fact heard again on days 60 and 200, by decay family; half-life 180 days."
export(decay.decay_curves(path, events=(60, 200)), "decay-reinforced", data=path, caption=caption, provenance=about,
       directory=figures)  # fmt: skip

# %% [markdown]
# ## Fitted to labels, compared on held-out facts
#
# A label says whether a fact of some age was still true.

# %%
truths = {"lives in": Weibull(900, 1.5), "works at": Exponential(500), "likes": PowerLaw(700), "reads": Weibull(25, 2)}
drawn = [tuning.simulate(c, n=labels_each, seed=seed + i, predicate=p) for i, (p, c) in enumerate(truths.items())]
labels = tuning.read_labels(labels_file) if labels_file else pl.concat(drawn)
compared = tuning.compare(labels, seed=seed)
overall = compared.table.filter(pl.col("predicate").is_null()).sort("log_loss")
overall.drop("predicate")

# %%
caption = f"Held-out log-loss of decay families, five folds, n = {len(labels):,} labels, 90 % intervals."
export(decay.families(overall), "decay-compared", data=overall, caption=caption, provenance=about, directory=figures)

# %%
found = tuning.recommend(labels, comparison=compared, seed=seed)
print(found.why, found.table["decay"])
if settings_file:
    found.write(settings_file)
fits = {"all": found.pooled} | found.own
pl.concat(fit.intervals.select(pl.lit(name).alias("predicate"), pl.all()) for name, fit in fits.items())

# %%
name, how = found.pooled.curve.family, tuning.OWN if found.own else tuning.POOLED
chosen = pl.col("family").is_in(["constant", "default"]) | ((pl.col("family") == name) & (pl.col("fit") == how))
bins = calibration.reliability(compared.predictions.filter(chosen))
caption = f"Reliability of held-out chances, n = {len(labels):,} labels, 90 % Wilson intervals."
export(decay.reliability(bins), "decay-reliability", data=bins, caption=caption, provenance=about, directory=figures)

# %% [markdown]
# ## Is the truth recovered?
#
# Sets drawn from a known curve: a 90 % interval should hold the truth in nine of ten. (`tests/knowledge/test_tuning.py`
# does it with a hundred sets of each family.)

# %%
rows = []
for truth_of in (Exponential(200), Weibull(200, 1.5), PowerLaw(150, 1.0)):
    for i in range(recovery_sets):
        fit = tuning.fit(tuning.simulate(truth_of, n=1000, seed=seed + i), truth_of.family)
        values = pl.col("parameter").replace_strict(parameters(truth_of), return_dtype=pl.Float64)
        rows.append(fit.intervals.select(pl.lit(truth_of.family).alias("family"), pl.all(), truth=values))
recovered = pl.concat(rows)
caption = f"Parameters fitted to {recovery_sets} simulated sets of each family over their true values (90 %)."
export(decay_truth.recovery(recovered), "decay-recovery", data=recovered, caption=caption, provenance=about,
       directory=figures)  # fmt: skip
