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
# # How does my memory do against the others, and why?
#
# On the committed sample (four invented memories; complete recall of 291 questions in the first ten turns; tests over
# questions, since four memories are too few to resample, and Holm over the systems):
#
# - The best pipeline completes 0.351. Significantly worse are memlab's own `combsum` (0.261) and `bm25` (0.196),
#   LangChain and mem0 (0.268 each), the function of the cell (0.141) and bm25s (0.124).
# - Of the 636 evidence items that the function misses, 82 % are not among the texts that it returned.
# - With 4,000 tokens instead of 200 the function completes 0.241 instead of 0.131: a budget is part of every
#   comparison.
#
# ![Complete recall by tokens and by time](../figures/gallery/sample-memories-trade-off.png)
#
# A function from a cell, a server over HTTP, a LangChain retriever, mem0 and a file of rankings stand beside memlab's own
# pipelines: the same questions, the same budget of tokens, paired tests. Replace the function by your own.

# %% tags=["parameters"]
dataset = "../data/sample/sample.jsonl"
pool = None
language = None
seed = 0
encoder = "minilm"
store = "../.memlab/store"
figures = "../figures"
pipelines = ["bm25", "combsum", "best"]
shown = 10

# %% jupyter={"source_hidden": true}
import json
import tempfile
import threading
from importlib.util import find_spec
from pathlib import Path

import polars as pl
from IPython.display import Markdown, display
from sklearn.feature_extraction.text import TfidfVectorizer

import memlab
from memlab import evaluate
from memlab.evaluate import explain
from memlab.figures import anatomy, export, selection, systems
from memlab.memories import memory, server
from memlab.terminal import markdown

evaluate.show_tables()

# %% jupyter={"source_hidden": true}
data = memlab.datasets.load(dataset, pool=pool, seed=seed, language=language)
bench = memlab.Bench.of(data, encoder=encoder, store=store)
data

# %% [markdown]
# ## The memories
#
# **A function.** It gets the turns of one person and a question, and gives the best turns.


# %%
def search(turns: pl.DataFrame, query: str, k: int) -> pl.DataFrame:
    """Rank turns by TF-IDF: put your own memory here."""
    words = TfidfVectorizer(sublinear_tf=True)
    scores = (words.fit_transform(turns["text"]) @ words.transform([query]).T).toarray()[:, 0]
    ranked = turns.with_columns(score=scores).sort("score", descending=True, maintain_order=True)
    return ranked.head(k).select("text", "score", source_ids=pl.concat_list("id"))


compared = {**{name: name for name in pipelines}, "my function": search}

# %% [markdown]
# **A server.** Here it serves the function above; any program that speaks the four verbs as JSON can stand there.

# %% jupyter={"source_hidden": true}
running = server(memory(search))
threading.Thread(target=running.serve_forever, daemon=True).start()
compared["over HTTP"] = f"http://127.0.0.1:{running.server_address[1]}"


# %% [markdown]
# **LangChain and mem0**, both with the encoder of the pipelines; turns that it has read before are not read again, but each
# question is, since its time is measured.


# %% jupyter={"source_hidden": true}
class Reading:
    """The encoder, with the turns that the store knows."""

    def __init__(self):
        self.fresh = memlab.embed.load(encoder)
        self.identity, self.dim = self.fresh.identity, self.fresh.dim

    def encode(self, texts, *, kind="document", progress=True):
        source = bench.encoder if kind == "document" else self.fresh
        return source.encode(texts, kind=kind, progress=False)


if find_spec("langchain_core"):
    from langchain_core.documents import Document
    from langchain_core.embeddings import Embeddings
    from langchain_core.vectorstores import InMemoryVectorStore

    class AsLangChain(Embeddings):
        reader = Reading()

        def embed_documents(self, texts):
            return self.reader.encode(texts).tolist()

        def embed_query(self, text):
            return self.reader.encode([text], kind="query")[0].tolist()

    class LangChain:
        def ingest(self, turns):
            documents = [
                Document(f"{turn['speaker']}: {turn['text']}", id=turn["id"], metadata={"time": str(turn["time"])})
                for turn in turns.iter_rows(named=True)
            ]
            self.store = InMemoryVectorStore.from_documents(documents, AsLangChain())

        def search(self, query, k):
            return self.store.similarity_search(query, k)

    compared["LangChain"] = LangChain
if find_spec("mem0"):
    import mem0
    from qdrant_client import QdrantClient

    class AsMem0(Reading):
        def embed(self, text, memory_action=None):
            return self.encode([text], kind="query" if memory_action == "search" else "document")[0].tolist()

        def embed_batch(self, texts, memory_action=None):
            return [self.embed(text, memory_action) for text in texts]

    class Mem0:
        def __init__(self):
            reader = AsMem0()
            unused = {"provider": "openai", "config": {"api_key": "none"}}
            vectors = {"client": QdrantClient(":memory:"), "embedding_model_dims": reader.dim}
            settings = {"embedder": unused, "llm": unused, "history_db_path": ":memory:"}
            settings["vector_store"] = {"provider": "qdrant", "config": vectors}
            self.system = mem0.Memory.from_config(settings)
            self.system.embedding_model = reader

        def add(self, text, user_id, metadata):
            self.system.add(text, user_id=user_id, metadata=metadata, infer=False)

        def search(self, query, user_id, k):
            return self.system.search(query, filters={"user_id": user_id}, top_k=k)

    compared["mem0"] = Mem0

# %% [markdown]
# **A file of rankings**, in TREC's format. This one is made by bm25s with its own settings.

# %% jupyter={"source_hidden": true}
import bm25s

lines = []
for scope in data.scopes:
    turns = data.turns.filter(pl.col("scope") == scope)
    asked = data.questions.filter(pl.col("scope") == scope)
    index = bm25s.BM25()
    index.index(bm25s.tokenize(turns["text"].to_list(), stopwords="en", show_progress=False), show_progress=False)
    words = bm25s.tokenize(asked["text"].to_list(), stopwords="en", show_progress=False)
    places, scores = index.retrieve(words, k=min(50, turns.height), show_progress=False)
    lines += [
        f"{query} Q0 {turns['turn_id'][int(place)]} {rank} {score} bm25s"
        for query, row, values in zip(asked["query_id"], places, scores, strict=True)
        for rank, (place, score) in enumerate(zip(row, values, strict=True), 1)
    ]
theirs = Path(tempfile.mkdtemp()) / "bm25s.trec"
_ = theirs.write_text("\n".join(lines))

# %% [markdown]
# ## Side by side

# %% jupyter={"source_hidden": true}
baseline = pipelines[-1]
done = memlab.compare(compared, data, runs=[theirs], baseline=baseline, encoder=bench.encoder, store=store, seed=seed)
running.shutdown()
tables = done.tables()
display(tables["Found"], tables["All evidence in so many tokens"])
done.problems

# %% jupyter={"source_hidden": true}
display(tables["Cost"].select(pl.all().exclude("problems", "failed scopes", "named", "attributed")))
pl.DataFrame(
    {
        "system": list(done.about["systems"]),
        "settings": [
            json.dumps(
                about.get("memory", {}).get("settings") or about.get("memory") or about.get("pipeline") or "a file"
            )
            for about in done.about["systems"].values()
        ],
    }
)

# %% jupyter={"source_hidden": true}
fig = systems.trade_off(done.systems)
n = done.systems["n"][0]
caption = (
    f"Complete recall of memories and pipelines on {data.name} (n = {n:,} questions with evidence): left, by tokens that "
    "the texts take; right, in the first ten turns, by the median time of one search (Wilson's 95 % intervals; the dotted "
    "line joins what no other system beats in both). Systems that find the same lie on each other. Times are of one run, and longer where other notebooks run beside it."
)
export(
    fig, "memories-trade-off", data=done.systems, caption=caption, provenance=dict(bench.provenance), directory=figures
)

# %% jupyter={"source_hidden": true}
tests = done.tests.with_columns(shown=pl.col("p_holm") < 0.05)
within_ten = tests.filter(pl.col("measure") == "recall_all@10")
fig = selection.forest(within_ten.with_columns(baseline=pl.lit(baseline)), measure="recall_all@10")
caption = (
    f"Every memory against {baseline} on {data.name}: paired differences in recall_all@10 with 95 % bootstrap intervals, p of "
    "paired randomisation tests after Holm's correction."
)
export(fig, "memories-tests", data=tests, caption=caption, provenance=dict(bench.provenance), directory=figures)

# %% [markdown]
# ## Why
#
# Every piece of evidence that a system does not have among its first ten turns, by what it would have taken.

# %% jupyter={"source_hidden": true}
causes = done.missed.group_by("system", "cause", maintain_order=True).len().sort("len", descending=True)
# What is served over HTTP is the function again.
causes.filter(pl.col("system") != "over HTTP").pivot("system", index="cause", values="len").fill_null(0)

# %% [markdown]
# One question that the function lost and the best pipeline completed: of all such, the first with most evidence.

# %% jupyter={"source_hidden": true}
complete = done.per_query.pivot("system", index=["query_id", "n_sessions"], values="recall_all@10", maintain_order=True)
pieces = data.questions.select("query_id", n_evidence=pl.col("evidence").list.n_unique())
lost = (
    complete.filter((pl.col("my function") < 1) & (pl.col(baseline) == 1))
    .join(pieces, on="query_id", maintain_order="left")
    .sort("n_evidence", descending=True, maintain_order=True)
)
query_id = lost["query_id"][0] if lost.height else complete["query_id"][0]
asked = data.questions.row(by_predicate=pl.col("query_id") == query_id, named=True)
spoken = data.turns.select("turn_id", missed=pl.col("text").str.slice(0, 160))
display(Markdown(f"*{markdown(asked['text'])}* ({markdown(str(asked['answer']))})"))
done.missed.filter((pl.col("query_id") == query_id) & (pl.col("system") == "my function")).join(
    spoken, on="turn_id", maintain_order="left"
).select("missed", "rank", "cause", "nearest")

# %% jupyter={"source_hidden": true}
why = explain(query_id, baseline, bench, data, k=shown)
after = why.stages.join(why.evidence.select("turn_id", "text"), on="turn_id", maintain_order="left")
fig = anatomy.through_stages(after, k=shown, title=asked["text"])
caption = (
    f"Where the evidence of one question of {data.name} stands after each stage of {baseline}; before it what the "
    f"stages put together alone. The question is the first with most evidence of those that it completes and the function of the "
    "cell does not."
)
export(fig, "memories-why", data=after, caption=caption, provenance=dict(bench.provenance), directory=figures)

# %% [markdown]
# ## Answer

# %% jupyter={"source_hidden": true}
table = {row["system"]: row for row in done.systems.iter_rows(named=True)}
worse = within_ten.filter(pl.col("shown") & (pl.col("difference") < 0))["system"].to_list()
open_ = within_ten.filter(~pl.col("shown"))["system"].to_list()
better = within_ten.filter(pl.col("shown") & (pl.col("difference") > 0))["system"].to_list()
best = max(table.values(), key=lambda row: row["recall_all@10"])


def named(names: list[str]) -> str:
    return ", ".join(f"`{name}` ({table[name]['recall_all@10']:.3f})" for name in names) or "none"


seen = done.missed.filter(pl.col("system") == "my function")
never = seen["rank"].null_count() / max(1, seen.height)
Markdown(
    "\n".join(
        (
            f"- Most answers are completed in ten turns by `{best['system']}`: {best['recall_all@10']:.3f} of {n}.",
            f"- Against `{baseline}` ({table[baseline]['recall_all@10']:.3f}): shown to be worse are {named(worse)}; "
            f"better {named(better)}; not told apart are {named(open_)} (Holm over the systems, p < .05).",
            f"- With 4,000 tokens instead of 200, `my function` completes {table['my function']['recall_all@4000 tokens']:.3f} instead of "
            f"{table['my function']['recall_all@200 tokens']:.3f}: a budget is part of every comparison.",
            f"- Of the {seen.height} pieces that `my function` misses, {never:.0%} are not among the texts that it returned; the "
            "others came too late.",
            f"- {done.problems.height} problems, {done.systems['failed scopes'].sum()} failed scopes.",
        )
    )
)
