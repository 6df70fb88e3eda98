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
# # How fast should confidence in a fact decay, and what do decay, repetition and supersession buy?
#
# On the committed sample the facts are simulated (it has no labels): the way is shown, and no setting for your users.
#
# - With 1,000 labelled facts an exponential curve for each predicate has a held-out log-loss of 0.410 [0.386, 0.435], the
#   default 0.713 [0.678, 0.748] (90 % intervals). It gets the chances right, and not always the hazard: see the table.
# - The current value stands above every stale one for 26.9 % of 160 relations without decay, 71.9 % [65.7 %, 77.3 %] with the
#   fitted curve, and 97.5 % [94.5 %, 98.9 %] with supersession and no decay: what is replaced must be closed, not aged.
# - Counting repetition does harm here: a step of 0 does best (79.4 % [73.6 %, 84.1 %]; p = 0.008 against the default 0.1).
#
# ![The current value above the stale ones](../figures/gallery/sample-decay-outranked.png)
#
# A fact is believed by how it was established, how often it was heard and how long ago:
# confidence = base(source) · reinforcement · retention, and 0 once another value has superseded it. Retention falls from 1
# with age, along a curve with parameters. Here the curves are drawn, moved by hand, fitted to labelled facts, compared on facts that
# they have not seen, and put to the test that counts: does the current value outrank the one that it replaced?

# %% tags=["parameters"]
dataset = "../data/sample/sample.jsonl"
pool = None
language = None
seed = 0
encoder = "minilm"
store = "../.memlab/store"
figures = "../figures"
labels_file = None  # your own labels: fact_id, predicate, age_days, accesses_days, still_true
truths = {  # without a file, facts are simulated by these curves
    "lives in": {"family": "weibull", "half_life_days": 900, "shape": 1.5},
    "works at": {"family": "exponential", "half_life_days": 500},
    "likes": {"family": "power_law", "half_life_days": 700, "exponent": 0.5},
    "is reading": {"family": "weibull", "half_life_days": 25, "shape": 2},
}
labels_each = 250
recovery_sets = 4
simulated_facts = 3000
updates_file = None  # a dataset with knowledge-update questions, such as LongMemEval; without one, this dataset's
asks_for_before = r"(?i)\b(previous(ly)?|initial(ly)?|before|first|used to|just started)\b"
half_life_days = 60
settings_file = None  # "../memlab.toml" writes the recommendation there

# %% jupyter={"source_hidden": true}
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import polars as pl
from IPython.display import Markdown, display

import memlab
from memlab import evaluate
from memlab.config import RecallSettings
from memlab.explorer import panels
from memlab.figures import decay as drawn
from memlab.figures import decay_live, decay_truth, export
from memlab.knowledge import (
    ConfidenceSettings,
    calibration,
    confidence,
    extraction,
    from_observations,
    labels,
    likelihood,
    outranking,
    resolve,
    search,
    simulated,
    tuning,
)
from memlab.knowledge.decay import BaseLevel, Exponential, PlateauLinear, PowerLaw, Weibull, parameters
from memlab.store import CachedEncoder, MemoryStore

evaluate.show_tables()

# %% jupyter={"source_hidden": true}
data = memlab.datasets.load(dataset, pool=pool, seed=seed, language=language)
model = CachedEncoder(MemoryStore.open(store), memlab.embed.load(encoder))
about = {"dataset": data.name, "fingerprint": data.fingerprint(), "encoder": model.identity.describe(), "seed": seed}
data

# %% [markdown]
# ## Curves over a year
#
# Five families. Four are given by their half-life, here the same for all; the plateau, which is the default of memlab,
# keeps everything for 30 days and half of it for good.

# %% jupyter={"source_hidden": true}
curves = {
    "plateau_linear (default)": PlateauLinear(),
    "exponential": Exponential(180),
    "power_law": PowerLaw(180),
    "weibull": Weibull(180),
    "base_level": BaseLevel(180),
}
path = confidence.trajectory(curves)
fig = drawn.decay_curves(path, measure="retention")
caption = (
    "Retention over a year since the last access by decay family; half-life 180 days, but for the plateau, which has none "
    "(exact curves, no data)."
)
export(fig, "decay-families", data=path, caption=caption, provenance=about, directory=figures)

# %% [markdown]
# ## The same, heard again
#
# An observed fact (base 0.7) heard again after 60 and 200 days. Each repetition renews the age and adds 0.1 to the
# factor. Base-level activation counts every access, so that what was heard three times falls more slowly.

# %% jupyter={"source_hidden": true}
heard = (0, 60, 200)
path = confidence.trajectory(curves, accesses_days=heard, source="observed")
fig = drawn.decay_curves(path, events=heard[1:])
caption = (
    "Confidence in an observed fact (base 0.7) that is heard again on days 60 and 200, by decay family; half-life 180 days "
    "(exact curves, no data)."
)
export(fig, "decay-reinforced", data=path, caption=caption, provenance=about, directory=figures)

# %% [markdown]
# ## By hand: the curve, and the ranking that it makes
#
# Facts of one person, ranked by 0.4 · similarity + 0.3 · confidence for the first question whose answer stands word for
# word in a fact from its evidence that still holds (★). Move a slider: the curve and the
# ranking follow. The facts are the dataset's observations where it has them, otherwise what is extracted from its turns.
# The arrows say how far a fact has moved since the sliders were made.

# %% jupyter={"source_hidden": true}
observed = data.annotations.filter(pl.col("kind") == "observation").height > 0
first = (data.questions if data.questions.height else data.turns)["scope"][0]
told = from_observations(data) if observed else extraction.extract(data.turns.filter(pl.col("scope") == first)).facts
told = told.drop_nulls("asserted_at")
if told.is_empty():
    told, _ = simulated.simulate(200, seed=seed)
spoken = pl.concat_str(["subject", "predicate", "object"], separator=" ").str.to_lowercase()
holding = resolve(told, as_of=told["asserted_at"].max()).facts.filter(~pl.col("superseded"))
stands_on = holding.select("fact_id", spoken=spoken, turn_id="evidence").explode("turn_id")
asked = data.questions.filter(pl.col("scope").is_in(told["scope"].unique().to_list()))
answering = asked.select("query_id", "answer", turn_id="evidence").explode("turn_id").join(stands_on, on="turn_id")
answering = answering.filter(pl.col("spoken").str.contains(pl.col("answer").str.to_lowercase(), literal=True))
asked = asked.sort(~pl.col("query_id").is_in(answering["query_id"].implode()), maintain_order=True).head(1)
if asked.is_empty():
    asked = pl.DataFrame({"query_id": ["example"], "scope": [told["scope"][0]], "text": ["What do you know about me?"]})
told = told.filter(pl.col("scope") == asked["scope"][0])
now = told["asserted_at"].max() + timedelta(days=1)
held = resolve(told, as_of=now).facts
near = search.search_facts(
    asked, confidence.score(held, now=now), encoder=model, settings=RecallSettings(graph=0), k=held.height
)
right = answering.filter(pl.col("query_id") == asked["query_id"][0])["fact_id"].implode()
shown = held.join(near.select("fact_id", "vector"), on="fact_id").with_columns(answers=pl.col("fact_id").is_in(right))
live = decay_live.sliders(shown, now=now, top=6, question=asked["text"][0])
live.family.value = "exponential"
live.sliders["half_life_days"].value = half_life_days
live

# %% [markdown]
# What is asked, and how much similarity, nearness in the graph and confidence count: choose a question and move the weights. A
# value that was superseded is struck out. The button writes the weights into `memlab.toml`.

# %% jupyter={"source_hidden": true}
own = data.questions.filter(pl.col("scope") == asked["scope"][0])
panels.weigh(
    own if own.height else asked,
    confidence.score(held, now=now),
    encoder=model,
    path=settings_file or Path(tempfile.mkdtemp()) / "memlab.toml",
)

# %% [markdown]
# ## Tuning: labelled facts
#
# A label says whether a fact of some age was still true. With labels of your own, the file in the parameters is read;
# otherwise facts are simulated, each predicate by its own known curve, so that the right answer is known.

# %% jupyter={"source_hidden": true}
own_labels = labels_file is not None
known = ConfidenceSettings.of({"decay_by_predicate": truths}).decay_by_predicate
simulated_labels = [
    tuning.simulate(curve, n=labels_each, seed=seed + i, predicate=predicate)
    for i, (predicate, curve) in enumerate(known.items())
]
observations = labels.read(labels_file) if own_labels else pl.concat(simulated_labels)
compared = tuning.compare(observations, seed=seed)
overall = compared.table.filter(pl.col("predicate").is_null())
overall.sort("log_loss").select(
    "family", "fit", "n", "log_loss", "low", "high", "brier", "ece", "difference", "difference_low", "difference_high"
)

# %% jupyter={"source_hidden": true}
fig = drawn.families(overall)
whose = "your labels" if own_labels else f"{len(truths)} simulated predicates"
caption = (
    f"Held-out log-loss of decay families on {whose} (n = {observations.height:,} facts, five folds; 90 % intervals), "
    "pooled and with a curve for each predicate, beside the share alone (constant) and the default as it is."
)
export(fig, "decay-compared", data=overall, caption=caption, provenance=about, directory=figures)

# %% [markdown]
# By predicate: the best fitted candidate, the default, and the constant.

# %% jupyter={"source_hidden": true}
single = pl.col("family").is_in(["default", "constant"])
fitted_rows = compared.table.drop_nulls("predicate").filter(~single).sort("log_loss")
best_each = fitted_rows.group_by("predicate", maintain_order=True).first()
rest = compared.table.drop_nulls("predicate").filter(single)
pl.concat([best_each.select(rest.columns), rest]).sort("predicate", "log_loss").select(
    "predicate", "family", "fit", "n", "log_loss", "ece", "difference", "difference_low", "difference_high"
)

# %% jupyter={"source_hidden": true}
found = tuning.recommend(observations, comparison=compared, seed=seed)
chosen = found.curves.pooled.curve.family
fit_name = tuning.OWN if found.curves.own else tuning.POOLED
picked = compared.predictions.filter(
    single | ((pl.col("family") == chosen) & pl.col("fit").is_in([tuning.POOLED, fit_name]))
)
bins = calibration.reliability(picked)
fig = drawn.reliability(bins)
caption = (
    f"Reliability of held-out chances on {whose} (n = {observations.height:,} facts; 90 % Wilson intervals): the share "
    f"alone, the default, and {chosen} as it was fitted."
)
export(fig, "decay-reliability", data=bins, caption=caption, provenance=about, directory=figures)

# %% jupyter={"source_hidden": true}
fits = {"all": found.curves.pooled} | found.curves.own
pl.concat(one.intervals.select(pl.lit(name).alias("predicate"), pl.all()) for name, one in fits.items())

# %% [markdown]
# Beside what is recommended, the truth, where it is known: the hazard is how many of a hundred facts that are still true
# die in the next hundred days. A family that fits the chances may have another hazard than the truth: a constant one
# (exponential) where the true one grows with age (Weibull, shape above 1) or falls (power law).

# %% jupyter={"source_hidden": true}
recommended = {name: found.curves.own.get(name, found.curves.pooled).curve for name in known}
ages = (30, 365)
hazards = pl.DataFrame(
    {
        "predicate": name,
        **{
            f"{whose} hazard, day {age}": float(
                100 * (1 - curve.retention(np.array([age + 100.0]))[0] / curve.retention(np.array([float(age)]))[0])
            )
            for age in ages
            for whose, curve in (("true", known[name]), ("recommended", curve_of))
        },
        "true family": known[name].family,
        "recommended family": curve_of.family,
    }
    for name, curve_of in recommended.items()
)
None if own_labels else hazards

# %% [markdown]
# ## Is the truth recovered?
#
# Sets of facts are simulated by a known curve of each family, and the family is fitted to them. A 90 % interval should
# hold the truth in nine of ten sets; a few sets only show what an interval looks like. (The test suite does it with a
# hundred of each.)

# %% jupyter={"source_hidden": true}
known_curves = [Exponential(200), Weibull(200, 1.5), PowerLaw(150, 1.0), BaseLevel(150, 1.5, 0.5), PlateauLinear()]
recovered = []
for family, truth in enumerate(known_curves):
    for i in range(recovery_sets):
        made = tuning.simulate(truth, n=1000, seed=seed + 100 * family + i)
        rows = likelihood.fit(made, truth.family, seed=seed).intervals
        values = {name: float(one) for name, one in parameters(truth).items()}
        value = pl.col("parameter").replace_strict(values, return_dtype=pl.Float64)
        recovered.append(
            rows.select(pl.lit(truth.family).alias("family"), pl.lit(i).alias("set"), pl.all(), truth=value)
        )
recovered = pl.concat(recovered)
covered = recovered.with_columns(holds=(pl.col("low") <= pl.col("truth")) & (pl.col("truth") <= pl.col("high")))
fig = decay_truth.recovery(recovered)
caption = (
    f"Parameters fitted to {recovery_sets} simulated sets of 1,000 facts of each family, over their true values "
    "(90 % profile-likelihood intervals)."
)
export(fig, "decay-recovery", data=covered, caption=caption, provenance=about, directory=figures)

# %% [markdown]
# ## What it buys: current against stale
#
# First on simulated people whose facts change at known rates: every value that has changed is asked for,
# and the statements are ranked by 0.4 · similarity + 0.3 · confidence. The current value should stand above every value
# before it; a tie counts as not. The fitted curve is learned from labels of *other* people: those that
# are asked about are new to it. Without supersession everything that was ever said stays in the ranking.

# %% jupyter={"source_hidden": true}
people, truth = simulated.simulate(simulated_facts, seed=seed)
end = datetime(2025, 3, 1, tzinfo=UTC)
others = simulated.simulate(max(simulated_facts, 600), seed=seed + 1)
seen = simulated.observations(*others, dates=[end - timedelta(days=365), end])
carried = tuning.recommend(seen.with_columns(predicate=pl.lit("any")), seed=seed)
Markdown(f"Fitted to {seen.height:,} labels: {carried.why}. Curve: `{carried.table['decay']}`.")

# %% jupyter={"source_hidden": true}
ways = outranking.conditions(carried.settings)
changed = outranking.simulated_updates(people, truth, now=end)
resolved = resolve(people, encoder=model, as_of=end)
scores = outranking.ranked(changed, resolved, conditions=ways, encoder=model)
measured = {"simulated people": outranking.outranked(scores)}
rivals = changed.labels.group_by("query_id").agg(
    pl.col("current").sum().alias("current"), (~pl.col("current")).sum().alias("stale")
)
Markdown(
    f"{changed.questions.height:,} relations have changed. On average {rivals['current'].mean():.1f} statements of the "
    f"current value stand against {rivals['stale'].mean():.1f} stale ones, so that chance would put it first in fewer than "
    "half of the questions."
)

# %% [markdown]
# Then on questions of a dataset about what has changed. The value of the latest evidence session is current, those of
# earlier sessions are stale. Questions that ask for the value *before* are left out by their words. The facts are the
# user's turns as they are, and, where extraction reads a fact from the current and from the stale turns of ten questions,
# those.
# (The dates of LongMemEval's development file come from an ordering that was stretched: which comes first is right, how
# far apart they are is not, and some questions are dated before their evidence. What decay does there shows little.)

# %% jupyter={"source_hidden": true}
source = memlab.datasets.load(updates_file) if updates_file else data
turns = source.turns.drop_nulls("timestamp")
dated = pl.col("now").is_not_null()
spoken = outranking.turn_facts(turns)
asked_all = outranking.dataset_updates(source, spoken)
current_only = asked_all.only(dated & ~pl.col("text").str.contains(asks_for_before))
n_all, n_asked = asked_all.questions.height, current_only.questions.height
n_read, dates = 0, ""
if n_asked:
    apart = current_only.labels.join(spoken.select("fact_id", "asserted_at"), on="fact_id").join(
        current_only.questions.select("query_id", "now"), on="query_id"
    )
    apart = apart.group_by("query_id").agg(
        days=(pl.col("asserted_at").max() - pl.col("asserted_at").min()).dt.total_days(),
        early=(pl.col("asserted_at") > pl.col("now")).all(),
    )
    dates = (
        f" Their values lie {apart['days'].median():.0f} days apart (median); {apart['early'].sum():,} of the questions are "
        "dated before both values, so that no curve can tell them apart."
    )
    scopes = current_only.questions["scope"].unique().to_list()
    spoken = spoken.filter(pl.col("scope").is_in(scopes))
    read = extraction.extract(turns.filter(pl.col("scope").is_in(scopes))).facts
    for name, facts in {"turns": spoken, "extracted facts": read}.items():
        its = outranking.dataset_updates(source, facts).only(
            pl.col("query_id").is_in(current_only.questions["query_id"].to_list())
        )
        if its.questions.is_empty():
            continue
        kept = resolve(facts, encoder=None if name == "turns" else model)
        if name != "turns":
            n_read = its.questions.height
            dates += f" Supersession closes {kept.log.height:,} of the {read.height:,} extracted facts."
        if its.questions.height < 10:  # a share of so few says nothing
            continue
        scores = outranking.ranked(its, kept, conditions=ways, encoder=model)
        measured[f"{source.name}, {name}"] = outranking.outranked(scores)
Markdown(
    f"{source.name}: {n_all:,} questions about an update have dated evidence of both values; {n_asked:,} of them ask for the "
    f"current one; extraction reads both for {n_read:,}." + dates
)

# %% jupyter={"source_hidden": true}
brief = ["data", "condition", "n", "share", "low", "high", "wins", "losses", "p_holm"]
bought = pl.concat(
    outranking.summary(table, seed=seed).select(pl.lit(name).alias("data"), pl.all())
    for name, table in measured.items()
)
# One claim, one family: every condition against no decay, on all data.
against = bought["condition"] != bought["condition"][0]
p_holm = evaluate.holm(bought.filter(against)["p"].to_numpy())
bought = bought.with_columns(p_holm=pl.Series(np.ones(bought.height)).scatter(against.arg_true(), p_holm))
bought.select(brief)

# %% jupyter={"source_hidden": true}
fig = decay_truth.outranked(bought)
sizes = ", ".join(f"{name} n = {n:,}" for name, n in bought.select("data", "n").unique(maintain_order=True).iter_rows())
caption = (
    f"How often the current value outranks every stale one, by decay curve and supersession ({sizes}; 90 % Wilson "
    "intervals; ties count as not)."
)
export(fig, "decay-outranked", data=bought, caption=caption, provenance=about, directory=figures)

# %% [markdown]
# ## How much repetition should count
#
# The same test on the simulated people with the fitted curve and another reinforcement for each repetition. With these
# people repetition says nothing about how long a value lasts, and a stale value that was repeated often is lifted too:
# it is a test of the harm that reinforcement can do, not of its use.

# %% jupyter={"source_hidden": true}
steps = [0.0, 0.05, 0.1, 0.25, 0.5]
ways = [
    outranking.Condition(
        f"{step:g}{' + supersession' * closed}",
        carried.settings.model_copy(update={"reinforcement_step": step}),
        closed,
    )
    for closed in (False, True)
    for step in steps
]
scores = outranking.ranked(changed, resolved, conditions=ways, encoder=model)
repeated = outranking.summary(outranking.outranked(scores), baseline="0.1", seed=seed)
steps_tried = repeated["condition"] != "0.1"
p_holm = evaluate.holm(repeated.filter(steps_tried)["p"].to_numpy())
repeated = repeated.with_columns(p_holm=pl.Series(np.ones(repeated.height)).scatter(steps_tried.arg_true(), p_holm))
repeated.select(brief[1:])

# %% [markdown]
# ## The setting
#
# What the labels recommend, as it stands in `memlab.toml`; everything else in the file stays as it is.

# %% jupyter={"source_hidden": true}
target = Path(settings_file) if settings_file else Path(tempfile.mkdtemp()) / "memlab.toml"
print(found.write(target).read_text())

# %% [markdown]
# ## Answer

# %% jupyter={"source_hidden": true}
default, constant = (overall.filter(pl.col("family") == name).row(0, named=True) for name in ("default", "constant"))
picked_row = overall.filter(family=chosen, fit=fit_name).row(0, named=True)
held = int(covered["holds"].sum())
low, high = calibration.wilson(np.array([held]), np.array([covered.height]), confidence=0.95)
lines = [
    f"- Curve ({whose}, n = {observations.height:,}): {chosen}, {fit_name}, has a held-out log-loss of "
    f"{picked_row['log_loss']:.3f} [{picked_row['low']:.3f}, {picked_row['high']:.3f}], the default {default['log_loss']:.3f} "
    f"[{default['low']:.3f}, {default['high']:.3f}], the share alone {constant['log_loss']:.3f} (90% intervals)."
    + ("" if own_labels else " The labels are simulated: the way is shown, and not a setting for your users.")
]
for (name,), rows in bought.group_by("data", maintain_order=True):
    share = {row["condition"]: "{share:.1%} [{low:.1%}, {high:.1%}]".format(**row) for row in rows.to_dicts()}
    shown_better = rows.filter((pl.col("p_holm") < 0.05) & (pl.col("difference") > 0)).height
    lines.append(
        f"- Current above stale ({name}, n = {rows['n'][0]:,}; 90% intervals): "
        + "; ".join(f"{condition} {text}" for condition, text in list(share.items())[:4])
        + f". Against no decay {shown_better} of {rows.height - 1} conditions are shown to be better (Holm over all)."
    )
if not n_asked:
    lines.append(f"- {source.name} has no dated question that asks for a current value with evidence of both values.")
free = repeated.filter(~pl.col("condition").str.contains("supersession"))
free = free.sort("hits", descending=True, maintain_order=True).row(0, named=True)
lines += [
    f"- Repetition (simulated people, fitted curve, no supersession, n = {free['n']:,}): a step of {free['condition']} does best, "
    f"{free['share']:.1%} [{free['low']:.1%}, {free['high']:.1%}], p = {free['p_holm']:.3f} against 0.1 after correction.",
    f"- Recovery: {held} of {covered.height} intervals at 90% hold the truth ({held / covered.height:.0%} [{low[0]:.0%}, "
    f"{high[0]:.0%}]).",
]
display(Markdown("\n".join(lines)))
