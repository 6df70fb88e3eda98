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
synthetic_turns = 600
synthetic_turns_per_scope = 200
k = 10
repeats = 1
draws = 1
sizes = [1, 2, 3, 5, 10, 20, 50, 100]
folds = 5
timed_queries = 10

# %%
from pathlib import Path

import polars as pl
from IPython.display import Markdown, display

import memlab
from memlab import learning, rerank
from memlab.experiments import latency, train_folds
from memlab.figures import export, selection
from memlab.figures import learning as drawn

_ = pl.Config(float_precision=3, fmt_str_lengths=80, tbl_rows=40)

# %% [markdown]
# ## The data
#
# The reranker reads token embeddings; an encoder that gives none makes way for MiniLM. Beside the dataset stand the
# others and synthetic conversations, which cost nothing to label.

# %%
model = memlab.embed.load(encoder)
reader = model if hasattr(model, "encode_tokens") else memlab.embed.load("minilm")
data = memlab.datasets.load(dataset, pool=pool, seed=seed, language=language)
real = [data, *(memlab.datasets.load(path, pool=size, seed=seed) for path, size in others)]
made = memlab.datasets.synthetic.generate(synthetic_turns, seed=seed + 1, turns_per_scope=synthetic_turns_per_scope)
named = {one.name: one for one in real} | {made.name: made}
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
# and the learning curve look at the synthetic conversations instead.

# %%
subject = data.name if data.name in several else made.name
about = dict(benches[subject].provenance)
place = train_folds(benches[subject], named[subject], models, seed=seed)
held = [rerank.Model.load(path) for path in sorted(place.glob("fold-*.safetensors"))]
worth = learning.importance(lists[subject], held, k=k, repeats=repeats, seed=seed)
worth.filter(pl.col("kind") == "group").select("name", "questions", "n", "plain", "loss", "low", "high")

# %%
measure = f"recall_all@{k}"
fig = drawn.importance(worth, measure=measure)
n = worth["n"].max()
caption = (
    f"Permutation importance of the learned reranker: what {measure} of turns loses when a group of features or a single "
    f"one is permuted over a conversation's candidates ({subject}, n = {n:,} questions, each conversation ranked by a "
    f"model that did not learn from it; {repeats} permutation(s); 95 % bootstrap intervals over questions)."
)
export(fig, "reranker-importance", data=worth, caption=caption, provenance=about, directory=figures)

# %% [markdown]
# ## How many conversations it needs

# %%
grown = learning.curve(lists[subject], sizes=sizes, repeats=draws, k=k, seed=seed, known=held)
grown

# %%
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
# Each dataset is ranked by the untrained sum, by models of the other datasets, of itself and of all real ones together.
# The last two are cross-validated: no conversation is ranked by a model that learned from it. (Pooled LongMemEval fills
# each question's conversation with sessions of other questions, so that there it is less strict than it sounds.)

# %%
trained = Path(models) / "transfer"
files = {name: trained / f"{one.fingerprint()}.safetensors" for name, one in named.items()}
sources = [name for name in named if name != data.name or len(real) > 1]
for name in sources:
    rerank.train(lists[name], seed=seed).save(files[name])
own = {one.name: train_folds(benches[one.name], one, models, seed=seed) for one in real if one.name in several}
together = [part for one in real for part in lists[one.name]]
if len(real) > 1:
    rerank.cross_validate(together, trained / "together", folds=folds, seed=seed)
tables = []
for one in real:
    systems = {name: files[name] for name in sources if name != one.name}
    systems |= {f"{one.name}, cross-validated": own[one.name]} if one.name in own else {}
    systems |= {"all together, cross-validated": trained / "together"} if len(real) > 1 else {}
    tables.append(learning.transfer(systems, benches[one.name], one, seed=seed))
carried = pl.concat(tables)
carried

# %%
turns = carried.filter(pl.col("level") == "turn")
rows = turns.with_columns(
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
    "after Holm's correction over the models of a dataset)."
)
provenance = dict(benches[data.name].provenance)
export(fig, "reranker-transfer", data=carried, caption=caption, provenance=provenance, directory=figures)

# %% [markdown]
# ## What it costs
#
# Milliseconds a question, many at once and one at a time, without encoding the question.

# %%
timed = latency(
    ["combsum", learning.UNTRAINED, f"{learning.UNTRAINED} | learned(model={str(files[made.name])!r})"],
    benches[data.name],
    queries=timed_queries,
    seed=seed,
)
timed

# %% [markdown]
# ## Finding

# %%
lines = []
for (questions,), rows in worth.group_by("questions", maintain_order=True):
    kept = rows.filter(pl.col("kind") == "group")
    carry = kept.filter(pl.col("low") > 0)
    which = "all questions" if questions == "all" else f"evidence in {questions} sessions"
    top = "; ".join(
        f"{row['name']} {row['loss']:.3f} [{row['low']:.3f}, {row['high']:.3f}]" for row in carry.head(5).to_dicts()
    )
    lines.append(
        f"**Features** ({subject}, {which}, n = {rows['n'][0]:,}): the reranker completes {rows['plain'][0]:.1%} in the "
        f"first {k} turns. Of {kept.height} groups of features {carry.height} lose with an interval above 0 when permuted"
        + (f"; the most: {top}." if top else ".")
    )
for (questions,), rows in grown.group_by("questions", maintain_order=True):
    first, last = rows.row(0, named=True), rows.row(-1, named=True)
    better = rows.filter(pl.col("gain_low") > 0)
    which = "all questions" if questions == "all" else f"evidence in {questions} sessions"
    lines.append(
        f"**Data** ({subject}, {which}): {first['mean']:.3f} after {first['conversations']} conversation(s)"
        + (f", {last['mean']:.3f} after {last['conversations']}" if rows.height > 1 else "")
        + f"; the untrained sum {last['untrained']:.3f}. "
        + (
            f"Shown to be better than it from {better['conversations'][0]} conversation(s) on."
            if better.height and better["conversations"].to_list() == rows["conversations"].to_list()[-better.height :]
            else f"Shown to be better than it after {better['conversations'].to_list()} conversations."
            if better.height
            else "Not shown to be better than it."
        )
    )
bullets = []
for row in turns.drop_nulls("difference").to_dicts():
    which = "all questions" if row["questions"] == "all" else f"evidence in {row['questions']} sessions"
    verdict = "not shown to differ" if row["p_holm"] >= 0.05 else "better" if row["difference"] > 0 else "worse"
    bullets.append(
        f"- **{row['trained']} → {row['measured']}** ({which}, n = {row['n']:,}): {row['mean']:.3f}, "
        f"{row['difference']:+.3f} [{row['low']:+.3f}, {row['high']:+.3f}] to the untrained sum: {verdict} "
        f"(p {'< 0.001' if row['p_holm'] < 0.001 else '= ' + format(row['p_holm'], '.3f')} after Holm's correction)"
    )
lines += ["**Transfer** (recall_all@10 of turns):", "\n".join(bullets)]
plain_ms, learned_ms = timed["single_ms"][1], timed["single_ms"][2]
lines.append(
    f"**Latency** ({timed['n'][0]} questions): {learned_ms:.0f} ms a question for the candidates and the reranker, "
    f"{plain_ms:.0f} ms for the candidates alone; in a batch {timed['batch_ms'][2]:.0f} and {timed['batch_ms'][1]:.0f} ms."
)
display(Markdown("\n\n".join(lines)))
