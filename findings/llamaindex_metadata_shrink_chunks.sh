#!/usr/bin/env bash
# LlamaIndex cuts smaller chunks where a document has more metadata
#
# Versions: llama-index-core 0.14.25
# Date: 2026-11-28
#
# Behaviour: SentenceSplitter takes the length of the metadata from chunk_size before it cuts. One
# text gives five chunks of 60 words without metadata and seven of 45 with three short fields.
# Metadata longer than chunk_size are an error.
#
# Guess: chunk_size is the size of the text of a chunk; metadata do not move its borders.
#
# Why it matters: A field that is added for tracing (topic, summary of the session) changes every
# chunk of the store, and with them ids, gold evidence and all numbers. Documents with long
# session titles are cut finer than others.
#
# Output seen:
#   words a chunk, no metadata: [60, 60, 60, 60, 60]
#   Metadata length (15) is close to chunk size (60). Resulting chunks are less than 50 tokens. Consider increasing the chunk size or decreasing the size of your metadata to avoid this.
#   words a chunk, three fields: [45, 45, 45, 45, 45, 45, 30]
#   Metadata length (15) is close to chunk size (60). Resulting chunks are less than 50 tokens. Consider increasing the chunk size or decreasing the size of your metadata to avoid this.
#   Metadata length (15) is close to chunk size (60). Resulting chunks are less than 50 tokens. Consider increasing the chunk size or decreasing the size of your metadata to avoid this.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --no-compile --disable-pip-version-check \
    llama-index-core==0.14.25

"$work/venv/bin/python" - <<'PY'
import re

from llama_index.core import Document
from llama_index.core.node_parser import SentenceSplitter


def sentences(text):
    return re.findall(r"[^.]+[.]\s*", text)


def words(text):
    return text.split()


splitter = SentenceSplitter(
    chunk_size=60, chunk_overlap=0, chunking_tokenizer_fn=sentences, tokenizer=words
)
text = " ".join(f"Sentence number {number} is here." for number in range(60))
metadata = {
    "speaker": "Ann Example",
    "session": "one two three",
    "topic": "seven words about a trip to Rome",
}


def lengths(fields):
    nodes = splitter.get_nodes_from_documents([Document(text=text, metadata=fields)])
    return [len(node.text.split()) for node in nodes]


print("words a chunk, no metadata:", lengths({}))
print("words a chunk, three fields:", lengths(metadata))
assert lengths({}) == [60] * 5
assert max(lengths(metadata)) < 60
assert len(lengths(metadata)) == 7
PY
