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
# # What did the reranker learn, how much data does it need, and where does it carry over?
#
# On the committed sample (four invented memories; complete recall of turns in the first ten, 95 % intervals over
# questions):
#
# - Without late interaction the reranker loses most, 0.082 [0.045, 0.120] of complete recall (p = 0.003 of 28 tests);
#   without the shape of the turn 0.062 [0.027, 0.096], p = 0.023.
# - The bundled model, which learned from `data/train` and from no label of these people, is significantly better than
#   the untrained sum: +7.2 % [+4.5 %, +10.3 %] over all 291 questions, +9.0 % [+5.1 %, +13.5 %] over the 178 with
#   evidence in several sessions.
# - Trained on the other 3 memories it completes 22.5 % [16.9 %, 28.7 %] of these, the untrained sum 10.7 %: +11.8 %
#   [+6.2 %, +17.4 %].
#
# ![What is lost without a group of features](../figures/gallery/sample-reranker-importance.png)
#
# The learned reranker orders the candidates of an untrained sum of scores anew. Here each conversation is ranked by a
# model that did not learn from it: with one feature after the other made worthless, with fewer conversations to learn
# from, and with models of other datasets.

# %% tags=["parameters"]
dataset = "../data/sample/sample.jsonl"
pool = None
language = None
seed = 0
encoder = "minilm"
store = "../.memlab/store"
figures = "../figures"
models = "../results/cross-validated"
others = []  # further datasets, each with its pool: [["longmemeval_oracle.json", 48]]
sample_turns = None  # of the sample, which stands beside a dataset of one conversation; all by default
k = 10
repeats = 1
draws = 1
sizes = [1, 2, 3, 5, 10, 20, 50, 100]
folds = 5
timed_queries = 10

# %% jupyter={"source_hidden": true}
from pathlib import Path

import polars as pl
from IPython.display import Markdown, display

import memlab
from memlab import evaluate, learning, rerank
from memlab.experiments import latency, train_folds
from memlab.figures import export, selection
from memlab.figures import learning as drawn

evaluate.show_tables()

# %% [markdown]
# ## The data
#
# The reranker reads token embeddings; an encoder that gives none makes way for MiniLM. Beside the dataset stand the
# others and the sample.

# %% jupyter={"source_hidden": true}
model = memlab.embed.load(encoder)
reader = model if hasattr(model, "encode_tokens") else memlab.embed.load("minilm")
data = memlab.datasets.load(dataset, pool=pool, seed=seed, language=language)
real = [data, *(memlab.datasets.load(path, pool=size, seed=seed) for path, size in others)]
made = memlab.sample(turns=sample_turns)
named = {made.name: made} | {one.name: one for one in real}
benches = {name: memlab.Bench.of(one, encoder=reader, store=store) for name, one in named.items()}
lists = {name: rerank.training_lists(benches[name], one) for name, one in named.items()}
several = [name for name in named if len({part.scope for part in lists[name]}) > 1]
pl.DataFrame(
    {
        "dataset": list(named),
        "conversations": [len({part.scope for part in held}) for held in lists.values()],
        "questions with evidence": [sum(len(part.turns) for part in held) for held in lists.values()],
    }
)

# %% [markdown]
# ## Which features carry it
#
# A feature is permuted over all candidates of a conversation, and everything is ranked again. Alike features stand in
# for each other, so that the groups tell more than the single ones. Where the dataset has one conversation only, this
# and the learning curve look at the sample instead.

# %% jupyter={"source_hidden": true}
subject = data.name if data.name in several else made.name
about = dict(benches[subject].provenance)
place = train_folds(benches[subject], named[subject], models, seed=seed)
held = [rerank.Model.load(path) for path in sorted(place.glob("fold-*.safetensors"))]
worth = learning.importance(lists[subject], held, k=k, repeats=repeats, seed=seed)
# One claim, one family: every group of features on either group of questions.
of_groups = worth.filter(pl.col("kind") == "group").with_columns(
    p_holm=evaluate.holm(worth.filter(pl.col("kind") == "group")["p"].to_numpy())
)
of_groups.select("name", "questions", "n", "plain", "loss", "low", "high", "p_holm").sort("p_holm", maintain_order=True)

# %% jupyter={"source_hidden": true}
measure = f"recall_all@{k}"
fig = drawn.importance(of_groups, measure=measure)
n = worth["n"].max()
caption = (
    f"Permutation importance of the learned reranker: what {measure} of turns loses when a group of features or a single "
    f"one is permuted over a conversation's candidates ({subject}, n = {n:,} questions, each conversation ranked by a "
    f"model that did not learn from it; {repeats} permutation(s); 95 % bootstrap intervals over questions; filled: p < .05 "
    "after Holm's correction over all groups)."
)
export(fig, "reranker-importance", data=worth, caption=caption, provenance=about, directory=figures)

# %% [markdown]
# ## How many conversations it needs

# %% jupyter={"source_hidden": true}
grown = learning.curve(lists[subject], sizes=sizes, repeats=draws, k=k, seed=seed, known=held)
# Every size but the last: that of all conversations is the ladder's step “+ learned reranker”, and is tested there (03).
fewer = grown["conversations"] < grown["conversations"].max()
tested = grown.filter(fewer).with_columns(p_holm=evaluate.holm(grown.filter(fewer)["p"].to_numpy()))
grown.select("conversations", "questions", "n", "mean", "low", "high", "untrained", "gain", "gain_low", "gain_high")

# %% jupyter={"source_hidden": true}
fig = drawn.learning_curve(grown, measure=measure)
caption = (
    f"Complete recall of turns on conversations that were not learned from, by the number of conversations learned from "
    f"({subject}, n = {n:,} questions; bands: 95 % bootstrap intervals over questions); grey: the untrained sum. "
    "Each panel has its own scale, which does not begin at 0."
)
export(fig, "reranker-learning-curve", data=grown, caption=caption, provenance=about, directory=figures)

# %% [markdown]
# ## Where it carries over
#
# Each dataset is ranked by the untrained sum, by the model that comes with memlab (which learned from invented talk and
# has seen none of this; with another encoder than MiniLM, by one of the sample), by models of the other datasets, of
# itself and of all real ones together. The last two are cross-validated: no conversation is ranked by a model that learned
# from it. (Pooled LongMemEval fills each question's conversation with sessions of other questions, so that there it is
# less strict than it sounds.)

# %% jupyter={"source_hidden": true}
trained = Path(models) / "transfer"
files = {one.name: trained / f"{one.fingerprint()}.safetensors" for one in real if len(real) > 1}
for name, path in files.items():
    rerank.train(lists[name], seed=seed).save(path)
if rerank.box_fits(reader, benches[data.name].header):
    unlabelled, model_file = "memlab's own", rerank.BOX
else:
    unlabelled, model_file = made.name, trained / f"{made.fingerprint()}.safetensors"
    rerank.train(lists[made.name], seed=seed).save(model_file)
own = {one.name: train_folds(benches[one.name], one, models, seed=seed) for one in real if one.name in several}
together = [part for one in real for part in lists[one.name]]
if len(real) > 1:
    rerank.cross_validate(together, trained / "together", folds=folds, seed=seed)
tables = []
for one in real:
    systems = {unlabelled: model_file} | {name: path for name, path in files.items() if name != one.name}
    systems |= {f"{one.name}, cross-validated": own[one.name]} if one.name in own else {}
    systems |= {"all together, cross-validated": trained / "together"} if len(real) > 1 else {}
    tables.append(learning.transfer(systems, benches[one.name], one, seed=seed))
# One comparison is tested in one place: what a dataset's own model adds is the last step of the ladder in 03.
own_model = pl.col("trained") == pl.format("{}, cross-validated", "measured")
carried = pl.concat(tables).with_columns(p=pl.when(~own_model).then("p"))
carried = pl.concat(
    evaluate.verdicts([rows]) if rows["p"].count() else rows.with_columns(verdict=pl.lit(None, pl.String))
    for rows in carried.partition_by("level", maintain_order=True)
)
shown = carried.filter(pl.col("trained") != "nothing")
shown.filter(level="turn").select(
    "trained", "measured", "questions", "mean", "difference", "low", "high", "p_holm", "verdict"
)

# %% jupyter={"source_hidden": true}
turns = carried.filter(pl.col("level") == "turn")
rows = turns.filter(pl.col("trained") != "nothing").with_columns(
    system=pl.format(
        "{} → {}{}",
        "trained",
        "measured",
        pl.when(pl.col("questions") == "all").then(pl.lit("")).otherwise(pl.format(", {} sessions", "questions")),
    ),
    baseline=pl.lit("the untrained sum"),
)
fig = selection.forest(rows, measure=turns["measure"][0])
caption = (
    "What training adds to the untrained sum in recall_all@10 of turns, by what was learned from → what was ranked "
    f"(n = {turns['n'].min():,} to {turns['n'].max():,} questions; 95 % bootstrap intervals, filled where significant "
    "after Holm's correction over all of them; a dataset's own model is tested in 03_retrieval_ladder)."
)
provenance = dict(benches[data.name].provenance)
export(fig, "reranker-transfer", data=carried, caption=caption, provenance=provenance, directory=figures)

# %% [markdown]
# ## What it costs
#
# Milliseconds a question, many at once and one at a time, without encoding the question.

# %% jupyter={"source_hidden": true}
timed = latency(
    ["combsum", learning.UNTRAINED, f"{learning.UNTRAINED} | learned(model={model_file.as_posix()!r})"],
    benches[data.name],
    queries=timed_queries,
    seed=seed,
)
timed

# %% [markdown]
# ## Finding

# %% jupyter={"source_hidden": true}
which = {"all": "all questions"}
sure = of_groups.filter(pl.col("p_holm") < 0.05)
worst = of_groups.sort("loss", descending=True, maintain_order=True).row(0, named=True)
last = grown.row(-1, named=True)
early = tested.filter((pl.col("p_holm") < 0.05) & (pl.col("gain") > 0))
others = turns.drop_nulls("verdict")
own_rows = turns.filter(own_model).to_dicts()
named_groups = ", ".join(
    f"{row['name']} ({which.get(row['questions'], 'evidence in ' + row['questions'] + ' sessions')}, {row['loss']:.3f} "
    f"[{row['low']:.3f}, {row['high']:.3f}], p = {row['p_holm']:.3f})"
    for row in sure.to_dicts()
)
lines = [
    f"- {subject}, {measure} of turns: of {of_groups['name'].n_unique()} groups of features, {of_groups.height} tests, shown to "
    f"carry the reranker: {named_groups or 'none'}. The most is lost without {worst['name']}: {worst['loss']:.3f} "
    f"[{worst['low']:.3f}, {worst['high']:.3f}].",
    f"- With {last['conversations']} conversations to learn from it completes {last['mean']:.1%} [{last['low']:.1%}, "
    f"{last['high']:.1%}] ({which.get(last['questions'], last['questions'] + ' sessions')}, n = {last['n']:,}), the untrained sum "
    f"{last['untrained']:.1%}; with fewer it is shown to be better in {early.height} of {tested.height} tests.",
]
if others.height:
    lines.append(
        "- Trained elsewhere: "
        + "; ".join(
            f"{row['trained']} → {row['measured']} ({which.get(row['questions'], row['questions'] + ' sessions')}, n = "
            f"{row['n']:,}) {row['difference']:+.1%} [{row['low']:+.1%}, {row['high']:+.1%}], p = {row['p_holm']:.3f}, "
            f"{row['verdict']}"
            for row in others.head(8).to_dicts()
        )
        + f". Differences {evaluate.seen_from(others)} would have been seen."
    )
lines += [
    f"- Its own, cross-validated ({row['measured']}, {which.get(row['questions'], row['questions'] + ' sessions')}, n = "
    f"{row['n']:,}): {row['difference']:+.1%} [{row['low']:+.1%}, {row['high']:+.1%}], tested in 03."
    for row in own_rows[:2]
]
lines.append(
    f"- {timed['single_ms'][2]:.0f} ms a question for the candidates and the reranker, {timed['single_ms'][1]:.0f} ms for the "
    f"candidates alone ({timed['n'][0]} questions)."
)
display(Markdown("\n".join(lines)))
