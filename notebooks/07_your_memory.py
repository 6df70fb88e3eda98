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
# # How does my memory do against the others, and what do memories lose when they write and when they search?
#
# On the committed sample, which is four invented memories:
#
# - No other system finds all evidence of significantly more questions than `best`; `bm25`, `combsum`, LangChain, mem0 without
#   a language model (`mem0-verbatim`) and the memory of the cell find it for significantly fewer.
# - Most of the evidence that this memory misses is in none of its fifty texts.
# - A memory that extracts with a language model loses evidence when it writes, and less of it when it searches than one that keeps
#   the turns.
# - With twenty times the tokens it completes more than twice as many: a budget is part of every comparison.
#
# ![Complete recall by tokens and by time](../figures/gallery/sample-memories-trade-off.png)
#
# A memory from a cell, a LangChain vector store and mem0 stand beside memlab's own pipelines: the same questions, the same
# budgets of tokens, paired tests. Replace the cell's by your own.

# %% tags=["parameters"]
dataset = "../data/sample/sample.jsonl"
part = {}  # of the dataset: pool, scopes
language = None
seed = 0
encoder = "minilm"
store = "../.memlab/store"
figures = "../figures"
baseline = "best"

# %%
import os
from importlib.util import find_spec

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer

import memlab
from memlab.experiments import recorded_memories
from memlab.figures import cost_of_recall, export

# %%
memlab.evaluate.show_tables()
data = memlab.datasets.load(dataset, **part, seed=seed, language=language)
bench = memlab.Bench.of(data, encoder=encoder, store=store)
vectors = memlab.memories.Embeddings(bench.encoder, queries=memlab.embed.load(encoder))

# %% [markdown]
# ## The memories
#
# **A function** gets the turns of one person and a question, and gives the best turns. This one adds up how many words a
# turn shares with the question, where rare ones count more, and the cosine of their vectors. Put your own memory here; a class, a
# service (`"http://localhost:9000"`) or `"module:name"` work too ([memories](../docs/memories.md)).


# %%
def words_and_vectors(turns, query, k):
    texts, words = memlab.memories.named_texts(turns), TfidfVectorizer(norm=None, stop_words="english")
    by_words = (words.fit_transform(texts) @ words.transform([query]).T).toarray()[:, 0]
    embedded = np.array(vectors.embed_documents(texts))
    scores = embedded @ vectors.embed_query(query) + by_words / max(by_words.max(), 1)
    return turns.with_columns(score=scores).sort("score", descending=True).head(k).select("text", "id")


# %% [markdown]
# **LangChain** and **mem0**, where they are installed, on the vectors of the pipelines. Turns are read from the store, each
# question is encoded, since its time is measured. mem0 stores the turns as they are (`infer=False`).

# %%
unused = {"provider": "openai", "config": {"api_key": "none"}}


class LangChain:
    def ingest(self, turns):
        from langchain_core.vectorstores import InMemoryVectorStore

        texts, ids = memlab.memories.named_texts(turns), [{"id": each} for each in turns["id"]]
        self.store = InMemoryVectorStore.from_texts(texts, vectors, ids)

    def search(self, query, k):
        return self.store.similarity_search(query, k)


# %%
class Mem0:
    def __init__(self):
        import mem0
        from qdrant_client import QdrantClient

        client = {"client": QdrantClient(":memory:"), "embedding_model_dims": vectors.dim}
        place = {"vector_store": {"provider": "qdrant", "config": client}, "history_db_path": ":memory:"}
        self.system = mem0.Memory.from_config(place | {"embedder": unused, "llm": unused})
        self.system.embedding_model, self.search = vectors, self.system.search

    def add(self, text, user_id, metadata):
        self.system.add(text, user_id=user_id, metadata=metadata, infer=False)


# %%
compared = {name: name for name in ("bm25", "combsum", baseline)} | {"my memory": words_and_vectors}
others = {"LangChain": ("langchain_core", LangChain), "mem0-verbatim": ("mem0", Mem0)}
compared |= {name: system for name, (package, system) in others.items() if find_spec(package)}
os.environ["MEM0_TELEMETRY"] = "False"

# %% [markdown]
# ## Side by side
#
# Each system gives at most 50 texts a question; they are traced to the turns that they come from.

# %%
done = memlab.compare(compared, data, baseline=baseline, encoder=bench.encoder, store=store, seed=seed)
done.tables()["Found"]

# %%
made = {"provenance": dict(bench.provenance), "directory": figures}
caption = f"Complete recall on {data.name} by tokens, and in ten turns by time of a search."
export(cost_of_recall.trade_off(done.systems), "memories-trade-off", data=done.systems, caption=caption, **made)

# %% [markdown]
# ## What does a memory lose when it writes, and what when it searches?
#
# Memories of other people were run once on one person of the sample, with the answers of one large model written down
# ([how](../docs/evaluation/memories.md)). A memory that words anew what was said can lose evidence before anybody searches: *lost at writing*
# is evidence that no stored text comes from, *lost at searching* what is stored and not among the first ten turns.

# %%
kept = recorded_memories.compare_pipelines_with_recorded_memories(["bm25", "best"], encoder=bench.encoder, store=store)
recorded_memories.memory_loss_table(kept)

# %%
fig = cost_of_recall.trade_off(kept.systems)
export(fig, "recorded-memories-trade-off", data=kept.systems, caption="Recorded memories, one person.", **made)

# %% [markdown]
# ## Why
#
# Of the questions that this memory loses and the pipeline completes, the one with most evidence: what it returned and missed, and
# where the evidence stands after each stage of the pipeline.

# %%
query_id = done.lost(system="my memory", to=baseline)["query_id"].first()
done.why(query_id, system="my memory")

# %%
done.why(query_id, system=baseline)

# %% [markdown]
# ## Answer

# %% tags=["answer"]
done.conclusions(system="my memory", left_out=others.keys() - compared.keys())
