#!/usr/bin/env bash
# LlamaIndex's chunks of a chat carry wrong character offsets
#
# Versions: llama-index-core 0.14.25
# Date: 2026-11-28
#
# Behaviour: start_char_idx and end_char_idx of a chunk are found by a search for its text that
# begins one character after the start of the chunk before. Where turns repeat (yes, ok, thanks),
# the second chunk is placed inside the first: with chunk_overlap=0 the ranges overlap, and the
# end of the document lies in no range. The text at the offsets equals the chunk, so that a check
# of equality passes.
#
# Guess: The splitter knows where it cut, and with an overlap of 0 the ranges are disjoint and
# cover the document.
#
# Why it matters: Evidence is marked by offsets: a chunk is mapped back to turns, a citation to
# its place. In chats, which repeat themselves, the wrong turns are credited, and recall by turn
# is wrong without an error.
#
# Output seen:
#   Metadata length (0) is close to chunk size (20). Resulting chunks are less than 50 tokens. Consider increasing the chunk size or decreasing the size of your metadata to avoid this.
#   length of the document: 216 sum of the chunks: 213
#   ranges: [(0, 89), (18, 107), (36, 71)]
#   text at the offsets equals the chunk: True
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


chat = "Yes. No. I moved. " * 12
splitter = SentenceSplitter(
    chunk_size=20, chunk_overlap=0, chunking_tokenizer_fn=sentences, tokenizer=words
)
nodes = splitter.get_nodes_from_documents([Document(text=chat)])
ranges = [(node.start_char_idx, node.end_char_idx) for node in nodes]
print("length of the document:", len(chat), "sum of the chunks:", sum(len(n.text) for n in nodes))
print("ranges:", ranges)
print("text at the offsets equals the chunk:", all(n.text == chat[a:b] for n, (a, b) in zip(nodes, ranges)))
assert ranges[1][0] < ranges[0][1]
assert max(end for _, end in ranges) < 120 < len(chat)
PY
